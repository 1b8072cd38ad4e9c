/* The stages that a pipeline would cut a training step into: planned, modelled, not run. */
#include "explain_internal.h"

#include "../model/pipeline_plan_internal.h"
#include "../training/pipeline_parallel.h"

/* Without a mesh the stages have one shard. */
CornuStatus cornu__explain_plan_pipeline(CornuExplanation *e)
{
    e->plan = cornu__allocate(1, sizeof *e->plan);
    if (!e->plan) return CORNU_ERR_MEMORY;
    if (!e->config.mesh.axes) e->config.mesh = (CornuMesh){ 1, { 1 }, { "batch" } };
    return cornu__fail_prefix(cornu__plan_stages(e->config.pipeline, e->plan), "cornu_explain");
}

CornuStatus cornu__explain_pipeline(CornuExplanation *e)
{
    if (!e->trains)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: a pipeline is of a training step, but it "
                           "predicts; expected a model that can be trained",
                           cornu_model_name(e->config.model));
    CORNU__TRY(cornu__explain_make(e, e->device, &e->probe, false, &e->subject));
    const CornuModel *model = e->subject.model;
    e->model = e->config.name ? e->config.name : cornu_model_name(model);
    e->policy = model->policy ? model->policy->name : cornu_device_policy(e->device);
    return CORNU_OK;
}

CornuStatus cornu__explain_print_pipeline(const CornuExplanation *e, FILE *to)
{
    CornuMeshText text;
    if (!e->config.pipeline)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explanation_print: there are no stages, "
                           "expected .pipeline of cornu_explain");
    fprintf(to, "%s: a training step of %lld samples, in %s", e->model, (long long)e->batch,
            e->policy);
    if (e->device->shards > 1)
        fprintf(to, ", on the mesh %s", cornu_mesh_print(&text, &e->config.mesh));
    fputs(".\n\n", to);
    return cornu_pipeline_print(e->subject.model, to);
}

static json_t *stage_json(const CornuPipelineStage *of)
{
    return json_pack("{s:s, s:s, s:f, s:f, s:f, s:I, s:I, s:I, s:i, s:I, s:I, s:I}",
                     "first", of->first, "last", of->last, "share", of->share,
                     "forward_s", of->forward_s, "backward_s", of->backward_s,
                     "weight_bytes", (json_int_t)of->weight_bytes,
                     "slot_bytes", (json_int_t)of->slot_bytes,
                     "gradient_bytes", (json_int_t)of->gradient_bytes, "stashes", of->stashes,
                     "stash_bytes", (json_int_t)of->stash_bytes,
                     "sent_bytes", (json_int_t)of->sent_bytes,
                     "returned_bytes", (json_int_t)of->returned_bytes);
}

json_t *cornu__explain_pipeline_json(const CornuExplanation *e)
{
    CornuPipelineReport r;
    json_t             *stages = json_array();
    if (cornu_pipeline_report(e->subject.model, &r)) {
        cornu_error_take();
        json_decref(stages);
        return NULL;
    }
    for (int s = 0; s < r.stages; s++) json_array_append_new(stages, stage_json(&r.stage[s]));
    return json_pack("{s:s, s:s, s:I, s:{s:i, s:i, s:I, s:s, s:i, s:f, s:f, s:f, s:f, s:o}}",
                     "model", e->model, "policy", e->policy, "batch_size", (json_int_t)e->batch,
                     "pipeline", "microbatches", r.microbatches, "shards", r.shards,
                     "rows", (json_int_t)r.rows,
                     "schedule", cornu_pipeline_schedule_name(r.schedule), "slots", r.slots,
                     "bubble", r.bubble, "least_bubble", r.least_bubble, "step_s", r.step_s,
                     "idle", r.idle, "stages", stages);
}
