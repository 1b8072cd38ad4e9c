#include "explain_page.h"

#include "../explain/explain_internal.h"
#include "page_internal.h"

/* What the page computes with of the TPU, of one replica; null without one. */
static json_t *describe_profile(const CornuTpuModel *model)
{
    const CornuTpuProfile *profile = model ? model->profile : NULL;
    if (!profile) return json_null();
    const double rows = profile->mxu_rows.value, columns = profile->mxu_columns.value;
    const double arrays = (double)cornu_tpu_replica_mxus(profile);
    const double clock = 1e6 * profile->clock_mhz.value;
    return json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "name", profile->name, "rows", rows,
                     "columns", columns, "arrays", arrays, "clock_hz", clock, "flops_s",
                     2.0 * rows * columns * arrays * clock, "hbm_bytes_s",
                     cornu_tpu_replica_hbm_rate(profile));
}

CornuStatus cornu_explanation_save_page(const CornuExplanation *explanation, const char *path)
{
    CORNU__NEED(explanation);
    CORNU__NEED(path);
    if (!cornu_explanation_executable(explanation))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: an explanation of stages has no page", path);
    json_t *data = json_pack("{s:o, s:o}", "explanation", cornu__explain_json(explanation),
                             "profile", describe_profile(cornu_explanation_model(explanation)));
    return cornu__page_write(path, (const char *const[]){ "explain.js", "mxu.js", NULL }, data);
}
