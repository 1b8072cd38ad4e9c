/* Sources: keras/src/callbacks/tensorboard.py for the batches;
 * tensorflow/python/profiler/profiler_v2.py for the folder, plugins/profile/TIME. */
#include "tensorboard_profile_internal.h"

#include <stdio.h>
#include <time.h>

#include "../formats/output_internal.h"
#include "../model/model_internal.h"
#include "../training/xplane_internal.h"

CornuStatus cornu__profile_before(CornuTensorboardProfile *profile, CornuModel *model, int64_t next,
                                  int64_t epoch, int64_t step)
{
    if (next < profile->first || next > profile->last) return CORNU_OK;
    profile->model = model;
    return cornu__trace_arm(model, &profile->current, epoch, step);
}

static CornuStatus write_profile(CornuTensorboardProfile *profile, const char *log_dir)
{
    const time_t now = time(NULL);
    struct tm    parts;
    char         run[32], folder[4096];
    strftime(run, sizeof run, "%Y_%m_%d_%H_%M_%S", localtime_r(&now, &parts));
    if (snprintf(folder, sizeof folder, "%s/plugins/profile/%s", log_dir, run) >=
        (int)sizeof folder)
        return cornu__fail(CORNU_ERR_FILE, "tensorboard: .log_dir is longer than 4000 bytes");
    CornuStatus status = CORNU_OK;
    if (cornu__output_writes())
        status = cornu__xplane_write(profile->done, profile->count, profile->first, folder);
    for (int i = 0; i < profile->count; i++) cornu_trace_free(profile->done[i]);
    profile->count = 0;
    profile->last = 0;
    return status;
}

CornuStatus cornu__profile_after(CornuTensorboardProfile *profile, const char *log_dir, bool ended)
{
    CornuTrace *trace = profile->current;
    if (trace && trace->events && profile->count < CORNU_MOST_PROFILED) {
        cornu_trace_phase(trace, NULL);
        profile->done[profile->count++] = trace;
        profile->current = profile->model->trace = NULL;
    }
    const bool whole = profile->count > profile->last - profile->first;
    return profile->count && (whole || ended) ? write_profile(profile, log_dir) : CORNU_OK;
}

void cornu__profile_free(CornuTensorboardProfile *profile)
{
    cornu__trace_disarm(profile->model, &profile->current);
    for (int i = 0; i < profile->count; i++) cornu_trace_free(profile->done[i]);
}
