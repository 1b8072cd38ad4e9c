/* What a model that trains as a pipeline became. */
#include "pipeline_step_internal.h"

CornuStatus cornu_pipeline_report(CornuModel *model, CornuPipelineReport *report)
{
    CORNU__NEED(model);
    CORNU__NEED(report);
    const CornuStep *step = model->steps;
    while (step && !step->microbatched) step = step->next;
    if (!step)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s", model->base.name, model->pipeline
                           ? "no training step was made yet, expected the report after one"
                           : "was not compiled in the scope of a pipeline_parallel strategy");
    *report = step->pipeline->report;
    return CORNU_OK;
}

CornuStatus cornu_pipeline_print(CornuModel *model, FILE *to)
{
    CornuPipelineReport r;
    CORNU__NEED(to);
    CORNU__TRY(cornu_pipeline_report(model, &r));
    fprintf(to, "pipeline: %d stage%s, %d microbatch%s of %lld rows, %s: %d slots\n", r.stages,
            r.stages > 1 ? "s" : "", r.microbatches, r.microbatches > 1 ? "es" : "",
            (long long)r.rows, cornu_pipeline_schedule_name(r.schedule), r.slots);
    for (int s = 0; s < r.stages; s++) {
        const CornuPipelineStage *of = &r.stage[s];
        char                      layers[96], rank[32] = "";
        snprintf(layers, sizeof layers, "%s … %s", of->first, of->last);
        if (r.ranks > 1) snprintf(rank, sizeof rank, " on rank %d", of->rank);
        fprintf(to, "stage %d%s: %-36s %5.1f %% of time, %.2f MB of weights, at most %d stash%s of "
                "%.2f MB\n", s, rank, layers, 100.0 * of->share, (double)of->weight_bytes / 1e6,
                of->stashes, of->stashes > 1 ? "es" : "", (double)of->stash_bytes / 1e6);
    }
    fprintf(to, "bubble: %.1f %% of the slots, (p - 1) / (m + p - 1) is %.1f %%\n",
            100.0 * r.bubble, 100.0 * r.least_bubble);
    return CORNU_OK;
}
