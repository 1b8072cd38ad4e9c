#include "race_advice.h"

#include <inttypes.h>
#include <string.h>

static const double near_enough = 1.1;

static bool is_infeed(const ScalingRow *row) { return row->infeed_s >= row->step_s; }

void race_choose(Advice *advice)
{
    const ScalingRow *rows = advice->scaling.strong;
    const int         count = advice->scaling.strong_count;
    advice->best = advice->enough = 0;
    advice->infeed = -1;
    for (int i = 1; i < count; i++)
        if (rows[i].step_s < rows[advice->best].step_s) advice->best = i;
    while (rows[advice->enough].step_s > near_enough * rows[advice->best].step_s) advice->enough++;
    for (int i = count - 1; i >= 0; i--)
        if (is_infeed(&rows[i])) advice->infeed = i;
}

/* 1, 2, 4, ... up to what the pod has and the batch has samples. */
static void list_shards(const CornuTpuProfile *profile, int64_t batch, char *list, size_t size)
{
    const int64_t pod = cornu_tpu_pod(profile).shards;
    size_t        at = 0;
    int           count = 0;
    const int64_t most = pod < batch ? pod : batch;
    for (int64_t n = 1; n <= most && count < SCALING_ROWS && at < size; n *= 2, count++)
        at += (size_t)snprintf(list + at, size - at, "%s%" PRId64, count ? "," : "", n);
}

CornuStatus race_advise(const Options *options, const CornuReferenceModel *reference,
                        const char *device, Advice *advice)
{
    const char            *colon = strchr(device, ':');
    const CornuTpuProfile *profile = cornu_tpu_profile(colon ? colon + 1 : NULL);
    Options                modelled = *options;
    char                   list[256];
    *advice = (Advice){ .device = device };
    if (!profile) return cornu_error_status();
    modelled.device = device;
    modelled.shards = 0;
    list_shards(profile, options->batch_size, list, sizeof list);
    CornuStatus status = explain_strong_scaling(&modelled, reference, list, &advice->scaling);
    if (!status) race_choose(advice);
    return status;
}

void race_advice_print(const Advice *advice, FILE *to)
{
    const ScalingRow *rows = advice->scaling.strong;
    const int         count = advice->scaling.strong_count;
    fprintf(to, "\nAdvice for %s, modelled: %s, a batch of %" PRId64 " samples\n\n", advice->device,
            advice->scaling.model, advice->scaling.batch);
    fprintf(to, "%6s %7s %10s %10s %10s  %s\n", "shards", "chips", "step us", "infeed us",
            "times best", "limit");
    for (int i = 0; i < count; i++)
        fprintf(to, "%6" PRId64 " %7" PRId64 " %10.1f %10.1f %10.2f  %s%s\n", rows[i].shards,
                (int64_t)rows[i].slice.chips, 1e6 * rows[i].step_s, 1e6 * rows[i].infeed_s,
                rows[i].step_s / rows[advice->best].step_s,
                is_infeed(&rows[i]) ? "infeed" : "device",
                i == advice->enough ? "  <- enough" : "");
    const ScalingRow *enough = &rows[advice->enough], *best = &rows[advice->best];
    fprintf(to, "\nTake %" PRId64 " shard%s: the fewest whose step is within 10 %% of the best, "
            "that of %" PRId64 ".\n", enough->shards, enough->shards == 1 ? "" : "s",
            best->shards);
    if (advice->infeed < 0) fputs("The infeed is not the limit of any of them.\n", to);
    else if (is_infeed(enough))
        fputs("The infeed is the limit there: more shards help by the links of more chips to "
              "their\nhosts, faster arithmetic does not.\n", to);
    else
        fprintf(to, "The infeed is the limit with %" PRId64 " shard%s.\n",
                rows[advice->infeed].shards, rows[advice->infeed].shards == 1 ? "" : "s");
    fputs("Without the host's dispatch, which more shards do not shorten.\n", to);
}
