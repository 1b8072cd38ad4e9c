#include "served.h"

#include <stdlib.h>
#include <string.h>

static void free_all(Served *served)
{
    cornu_predictor_free(served->predictor);
    free(served->name);
    free(served);
}

Served *served_hold(Served *served)
{
    atomic_fetch_add_explicit(&served->references, 1, memory_order_relaxed);
    return served;
}

void served_release(Served *served)
{
    if (served && atomic_fetch_sub_explicit(&served->references, 1, memory_order_acq_rel) == 1)
        free_all(served);
}

bool served_predict(Served *served, const CornuArray *x, const CornuArray *to, Problem *problem)
{
    const CornuStatus status = cornu_predictor_predict(served->predictor, x, to);
    if (status) return problem_of(problem, status);
    if (cornu_predictor_cuts(served->predictor)) return true;
    return problem_set(problem, CODE_INVALID_ARGUMENT, "rows of the model depend on each other: "
                       "several requests would change each other's predictions");
}

/* Only open extents need to be asked for. */
static bool output_types(Served *served, const CornuArray *x, CornuType *types, Problem *problem)
{
    bool open = false;
    for (int i = 0; i < served->output_count; i++) {
        types[i] = served->outputs[i].type;
        types[i].shape.extent[0] = x[0].type.shape.extent[0];
        for (int axis = 1; axis < types[i].shape.rank; axis++)
            open |= types[i].shape.extent[axis] == CORNU_NONE;
    }
    if (!open) return true;
    const CornuStatus status = cornu_predictor_output_types(served->predictor, x, types);
    return !status || problem_of(problem, status);
}

bool served_make_outputs(Served *served, const CornuArray *x, CornuArray *y, Problem *problem)
{
    CornuType types[CORNU_MAX_MODEL_TENSORS];
    if (!output_types(served, x, types, problem)) return false;
    for (int i = 0; i < served->output_count; i++) {
        y[i] = cornu_array_from(malloc(cornu_type_bytes(types[i])), types[i]);
        if (!y[i].data)
            return problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the predictions");
    }
    return true;
}

bool served_classifies(const Served *served)
{
    return served->output_count == 1 && served->outputs[0].type.shape.rank == 2;
}

bool served_regresses(const Served *served)
{
    const CornuShape out = served->outputs[0].type.shape;
    return served->output_count == 1 &&
           (out.rank == 1 || (out.rank == 2 && out.extent[1] == 1));
}

static void describe(Served *served)
{
    const CornuPredictor *predictor = served->predictor;
    served->input_count = cornu_predictor_input_count(predictor);
    served->output_count = cornu_predictor_output_count(predictor);
    for (int i = 0; i < served->input_count; i++)
        served->inputs[i] = (ServedTensor){ cornu_predictor_input_name(predictor, i),
                                            cornu_predictor_input_type(predictor, i) };
    for (int i = 0; i < served->output_count; i++)
        served->outputs[i] = (ServedTensor){ cornu_predictor_output_name(predictor, i),
                                             cornu_predictor_output_type(predictor, i) };
    served->input_scale = cornu_model_input_scale(cornu_predictor_model(predictor));
    const int64_t rows = cornu_model_batch_size(cornu_predictor_model(predictor));
    served->fixed_rows = rows > 0 ? rows : 0;
}

static CornuPredictor *load(const Settings *settings, const char *path)
{
    CornuPredictor *predictor = NULL;
    CornuModel     *model = cornu_model_load(path);
    CornuDevice    *device = model ? cornu_device_open(settings->options.device) : NULL;
    if (device)
        predictor = cornu_predictor(model, .device = device, .threads = 1,
                                    .max_batch_size = settings->batch_size);
    cornu_model_free(model);
    cornu_device_close(device);
    return predictor;
}

/* Rows of several requests are one batch. */
static bool has_batches(const Served *served, Problem *problem)
{
    if (!cornu_model_is_function(cornu_predictor_model(served->predictor))) return true;
    return problem_set(problem, CODE_INVALID_ARGUMENT, "the model has no batches: axis 0 is not "
                       "one of all inputs and outputs");
}

Served *served_load(const Settings *settings, const char *name, int64_t version, const char *path,
                    Problem *problem)
{
    Served *served = calloc(1, sizeof *served);
    if (!served || !(served->name = strdup(name))) {
        free(served);
        problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the model %s", name);
        return NULL;
    }
    served->version = version;
    atomic_init(&served->references, 1);
    bool good = (served->predictor = load(settings, path)) ||
                problem_of(problem, cornu_error_status());
    cornu_error_take();
    good = good && has_batches(served, problem);
    if (good) describe(served);
    if (good && served_try_sizes(served, settings->batch_size, problem)) return served;
    free_all(served);
    return NULL;
}
