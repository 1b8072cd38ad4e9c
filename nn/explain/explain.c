/* Explanations: made, printed, freed. The work is in the files beside this one. */
#include "explain.h"

#include <stdlib.h>
#include <string.h>

#include "explain_internal.h"

/* ---- The step ---- */

/* A copy with its step. A model that turns out not to train predicts, unless a loss was asked
 * for; what a mesh makes of it is a question about training. */
static CornuStatus make_subject(CornuExplanation *e)
{
    const bool  runs = !e->config.mesh.axes;   /* a plan has no weights */
    CornuStatus status = cornu__explain_make(e, e->device, &e->probe, runs, &e->subject);
    if (!status || !e->trains || !runs || e->config.loss || status == CORNU_ERR_MEMORY)
        return status;
    cornu__explain_note(e, "But it cannot be trained, so it predicts: %.300s",
                        cornu_error_message());
    e->trains = false;
    e->loss[0] = '\0';
    return cornu__explain_make(e, e->device, &e->probe, runs, &e->subject);
}

/* Layers with weights that compute in f32 by a dtype of their own. */
static int count_own_f32(const CornuLayer *layer)
{
    int count = !layer->inner_count && layer->weight_count && layer->own_policy &&
                layer->own_policy->compute == CORNU_F32 && !layer->kind->normalizes;
    for (int i = 0; i < layer->inner_count; i++) count += count_own_f32(layer->inner[i]);
    return count;
}

/* Whether there are products, and all of f32. */
static bool multiplies_f32(const CornuProgram *program)
{
    int f32 = 0, others = 0;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        CornuType            *in = cornu__allocate((size_t)op->in_count + 1, sizeof *in);
        if (!in) return false;
        const CornuOpCall call = cornu_program_call(program, op, in);
        if (op->out_count > 0 &&
            cornu_tpu_product(&call, cornu_program_type(program, op->out_first)).count > 0)
            ++*(in[0].dtype == CORNU_F32 ? &f32 : &others);
        cornu__release(in);
    }
    return f32 > 0 && !others;
}

/* The name of the policy in which it computes: the model's, unless all products are of f32, as are
 * those of layers with a dtype of their own, and of nodes of .onnx and .tflite files. */
static void find_policy(CornuExplanation *e)
{
    const CornuModel *model = e->subject.model;
    const bool        f32 = multiplies_f32(cornu_executable_recorded(e->executable));
    e->policy = model->policy ? model->policy->name : cornu_device_policy(e->device);
    e->own_f32 = count_own_f32(&model->base);
    e->fixed_f32 = f32 && strcmp(e->policy, "float32") != 0;
    if (f32) e->policy = "float32";
}

static void describe_model(CornuExplanation *e)
{
    const CornuModel *model = e->subject.model;
    const CornuStep  *step = e->subject.step;
    const CornuType   y = step->y_types[0];
    e->model = e->config.name ? e->config.name : cornu_model_name(model);
    e->target = e->config.target ? e->config.target : "class";
    e->epoch_samples = e->trains ? e->config.epoch_samples : 0;
    e->parameters = cornu_model_parameters(model);
    e->trainable = cornu_model_trainable_parameters(model);
    e->fixed_batch = cornu_model_batch_size(model) > 0 ? cornu_model_batch_size(model) : 0;
    e->targets = e->trains && e->config.target ? cornu_type_count(y) / e->batch : 1;
    e->description = cornu_device_description(e->device);
    e->shards = cornu_device_shards(e->device);
    e->threads = cornu_device_threads(e->device);
    e->executable = cornu_graph_executable(step->graph);
    find_policy(e);
    e->statistics = *cornu_executable_statistics(e->executable);
    e->steps = cornu_executable_steps(e->executable, &e->step_count);
}

static CornuStatus explain(CornuExplanation *e)
{
    if (e->config.pipeline) CORNU__TRY(cornu__explain_plan_pipeline(e));
    CORNU__TRY(cornu__explain_choose(e));
    if (e->config.pipeline) return cornu__explain_pipeline(e);
    CORNU__TRY(make_subject(e));
    describe_model(e);
    e->here_s = cornu__allocate((size_t)e->step_count + 1, sizeof *e->here_s);
    if (!e->here_s) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu_executable_place(e->executable, &e->placed, &e->placed_count));
    if (!e->config.no_run) CORNU__TRY(cornu__explain_measure(e));
    e->exchanges = cornu__explain_exchanges(e->executable);
    e->memory = cornu_device_memory(e->device);
    CORNU__TRY(cornu__explain_remat(e));
    return cornu__explain_model_all(e);
}

CornuExplanation *cornu_explain_from(const CornuExplainConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    CORNU__NEED_TO_MAKE(config->model);
    if (cornu__refused()) return NULL;
    CornuExplanation *e = cornu__allocate(1, sizeof *e);
    if (!e) return cornu__null();
    e->config = *config;
    CornuStatus status = cornu__model_enter(config->model, "cornu_explain");
    if (!status) {
        status = explain(e);
        cornu__model_leave(config->model);
    }
    if (!status) return e;
    cornu_explanation_free(e);
    return cornu__null();
}

void cornu_explanation_free(CornuExplanation *e)
{
    if (!e) return;
    cornu_tpu_model_free((CornuTpuModel *)e->tpu);
    cornu_tpu_model_free((CornuTpuModel *)e->doubled);
    for (int i = 0; i < CORNU_EXPLAIN_SHARDS; i++)
        cornu_tpu_model_free((CornuTpuModel *)e->by_shards[i]);
    for (int i = 0; i < CORNU_EXPLAIN_PROFILES; i++)
        cornu_tpu_model_free((CornuTpuModel *)e->by_profile[i]);
    cornu_placed_free(e->placed);
    cornu_model_free(e->subject.model);
    cornu_device_close(e->own_device);
    cornu__release(e->here_s);
    cornu__release(e->events);
    cornu__release(e->plan);
    free(e->compiled);
    cornu__release(e);
}

/* ---- Texts ---- */

CornuStatus cornu_explanation_print(const CornuExplanation *e, CornuExplainPart part, FILE *to)
{
    CORNU__NEED(e);
    CORNU__NEED(to);
    if (e->config.pipeline || part == CORNU_EXPLAIN_PIPELINE) {
        if (part == CORNU_EXPLAIN_PIPELINE) return cornu__explain_print_pipeline(e, to);
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explanation_print: part %d of stages, "
                           "expected CORNU_EXPLAIN_PIPELINE", (int)part);
    }
    switch (part) {
    case CORNU_EXPLAIN_OVERVIEW: cornu__explain_print_overview(e, to); return CORNU_OK;
    case CORNU_EXPLAIN_ALL: cornu__explain_print_all(e, to); return CORNU_OK;
    case CORNU_EXPLAIN_MESH: return cornu__explain_print_mesh(e, to);
    case CORNU_EXPLAIN_OPS: break;
    default:
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_explanation_print: there is no part %d",
                           (int)part);
    }
    fprintf(to, "%s, a %s step of %lld samples: ", e->model,
            e->trains ? "training" : "prediction", (long long)e->batch);
    return cornu_executable_print_placement(e->executable, to);
}

char *cornu_explanation_to_text(const CornuExplanation *e, CornuExplainPart part)
{
    char  *text = NULL;
    size_t size = 0;
    CORNU__NEED_TO_MAKE(e);
    if (cornu__refused()) return NULL;
    FILE       *to = open_memstream(&text, &size);
    CornuStatus status = to ? cornu_explanation_print(e, part, to) : CORNU_ERR_MEMORY;
    if (to && fclose(to) == 0 && !status) return text;
    free(text);
    if (status && to) return cornu__null();
    return cornu__fail_null(CORNU_ERR_MEMORY, "%s: no memory for its explanation", e->model);
}

CornuExecutable *cornu_explanation_executable(const CornuExplanation *e)
{
    return e ? e->executable : NULL;
}

const CornuTpuModel *cornu_explanation_model(const CornuExplanation *e)
{
    return e ? e->tpu : NULL;
}

double cornu_explanation_seconds(const CornuExplanation *e)
{
    return e && e->runs ? e->wall_s : 0.0;
}

const char *cornu_explanation_policy(const CornuExplanation *e) { return e ? e->policy : NULL; }
