#include "served.h"

#include <stdlib.h>
#include <string.h>

#include <pthread.h>

struct Served_predictor { pthread_mutex_t lock; };

static void free_all(Served *served)
{
    if (served->predictor) pthread_mutex_destroy(&served->predictor->lock);
    free(served->predictor);
    cornu_model_free(served->model);
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
    pthread_mutex_lock(&served->predictor->lock);
    const CornuStatus status = cornu_predict_on_batch_many(served->model, x, to);
    pthread_mutex_unlock(&served->predictor->lock);
    return !status || problem_of(problem, status);
}

/* An open extent is that of the first input's same axis. */
CornuType served_output(const Served *served, int i, const CornuArray *x)
{
    CornuType type = served->outputs[i].type;
    for (int axis = 0; axis < type.shape.rank; axis++)
        if (type.shape.extent[axis] == CORNU_NONE)
            type.shape.extent[axis] = axis < x[0].type.shape.rank ? x[0].type.shape.extent[axis]
                                                                  : 1;
    return type;
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
    CornuModel *model = served->model;
    served->input_count = cornu_model_input_count(model);
    served->output_count = cornu_model_output_count(model);
    for (int i = 0; i < served->input_count; i++)
        served->inputs[i] = (ServedTensor){
            "x", { CORNU_F32, cornu_symbol_shape(cornu_model_input(model, i)) } };
    for (int i = 0; i < served->output_count; i++)
        served->outputs[i] = (ServedTensor){
            "y", { CORNU_F32, cornu_symbol_shape(cornu_model_output(model, i)) } };
    const int64_t rows = cornu_model_batch_size(model);
    served->fixed_rows = rows > 0 ? rows : 0;
}

/* Predicts zeros, unless an extent is open. */
static bool warm_up(Served *served, Problem *problem)
{
    CornuArray x[CORNU_MAX_MODEL_TENSORS], y[CORNU_MAX_MODEL_TENSORS];
    bool       known = true, good = true;
    for (int i = 0; i < served->input_count; i++) {
        CornuType type = served->inputs[i].type;
        type.shape.extent[0] = served->fixed_rows ? served->fixed_rows : 1;
        for (int axis = 0; axis < type.shape.rank; axis++) known &= type.shape.extent[axis] > 0;
        x[i] = (CornuArray){ .type = type };
    }
    if (!known) return true;
    for (int i = 0; i < served->input_count; i++)
        good &= (x[i].data = calloc(1, cornu_type_bytes(x[i].type))) != NULL;
    for (int i = 0; i < served->output_count; i++) {
        y[i] = (CornuArray){ .type = served_output(served, i, x) };
        good &= (y[i].data = malloc(cornu_type_bytes(y[i].type))) != NULL;
    }
    if (!good) problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for a first prediction");
    good = good && served_predict(served, x, y, problem);
    for (int i = 0; i < served->input_count; i++) free(x[i].data);
    for (int i = 0; i < served->output_count; i++) free(y[i].data);
    return good;
}

Served *served_load(const Settings *settings, const char *name, int64_t version, const char *path,
                    Problem *problem)
{
    Served *served = calloc(1, sizeof *served);
    if (served) {
        served->name = strdup(name);
        served->predictor = calloc(1, sizeof *served->predictor);
    }
    if (!served || !served->name || !served->predictor) {
        if (served) free(served->name);
        free(served);
        problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the model %s", name);
        return NULL;
    }
    (void)settings;
    pthread_mutex_init(&served->predictor->lock, NULL);
    served->version = version;
    atomic_init(&served->references, 1);
    served->model = cornu_model_load(path);
    bool good = served->model || problem_of(problem, cornu_error_status());
    if (good) {
        const CornuStatus status = cornu_compile(served->model);
        good = !status || problem_of(problem, status);
    }
    if (good) describe(served);
    if (good && warm_up(served, problem)) return served;
    free_all(served);
    return NULL;
}
