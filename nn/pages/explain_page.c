#include "explain_page.h"

#include <math.h>

#include "../explain/explain_internal.h"
#include "../formats/json_internal.h"
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

/* What each thread worked on in the run that was measured, [[[step, shard, begin, end], …], …] in
 * seconds from its first step on; null if nothing ran. */
static json_t *describe_threads(const CornuExplanation *e)
{
    const int threads = cornu_device_threads(cornu_executable_device(e->executable));
    const int count = cornu_executable_event_count(e->executable);
    double    begin = INFINITY;
    if (!e->events) return json_null();
    for (int i = 0; i < count; i++)
        if (e->events[i].begin_s > 0.0) begin = fmin(begin, e->events[i].begin_s);
    json_t *all = json_array();
    for (int thread = 0; thread < threads; thread++) {
        json_t *own = json_array();
        for (int i = thread; i < count; i += threads) {
            const CornuStepEvent *event = &e->events[i];
            if (event->begin_s > 0.0)
                own = cornu__json_append(own, json_pack("[i, i, f, f]", event->step, event->shard,
                                                        event->begin_s - begin,
                                                        event->end_s - begin));
        }
        all = cornu__json_append(all, own);
    }
    return all;
}

CornuStatus cornu_explanation_save_page(const CornuExplanation *explanation, const char *path)
{
    CORNU__NEED(explanation);
    CORNU__NEED(path);
    if (!cornu_explanation_executable(explanation))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: an explanation of stages has no page", path);
    json_t *data = json_pack("{s:o, s:o, s:o}", "explanation", cornu__explain_json(explanation),
                             "profile", describe_profile(cornu_explanation_model(explanation)),
                             "threads", describe_threads(explanation));
    return cornu__page_write(path, (const char *const[]){ "explain.js", "timeline.js", "mxu.js",
                                                          NULL }, data);
}
