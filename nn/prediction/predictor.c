/*
 * A predictor has a clone of the model, compiled on a device of its own. Each call takes a Caller
 * from the idle ones, or makes one: steps of its own, whose graphs run beside those of others
 * (cornu_graph_set_concurrent). Recording and compiling a step of a new size is done by one thread
 * at a time; running one that is there takes no lock but that of the list of idle callers.
 */
#include "../model/predictor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "../model/host_stage_internal.h"
#include "../training/training_internal.h"

enum { DEFAULT_BATCH = 32, KEPT_STEPS = 8 };

typedef struct Caller {
    CornuStep     *steps;    /* the most recently used first, at most KEPT_STEPS */
    void          *partial[CORNU_MAX_MODEL_TENSORS];   /* outputs of a batch with padding rows */
    size_t         partial_bytes[CORNU_MAX_MODEL_TENSORS];
    struct Caller *next;
} Caller;

struct CornuPredictor {
    CornuModel      *model;
    CornuDevice     *device;
    int64_t          max_batch;
    bool             alone;        /* the device runs one at a time: there is one caller */
    atomic_bool      once;         /* each call is computed as a whole, see `ready` */
    atomic_bool      ready;        /* it is known whether rows may be cut */
    CornuHostProgram host;         /* calls NULL: no layer runs on the host */
    pthread_mutex_t  making;       /* of whoever uses the model or makes a step */
    pthread_mutex_t  lock;         /* of the fields below */
    pthread_cond_t   returned;
    Caller          *idle;
    int              callers;
};

/* ---- Making ---- */

/* The first layer with Keras' argument stateful=True. */
static const CornuLayer *stateful_layer(const CornuLayer *layer)
{
    const char       *config = cornu__config(layer);
    const CornuLayer *found = NULL;
    for (const CornuField *field = cornu__keras_class(layer)->fields; field && field->name; field++)
        if (field->kind == CORNU_FIELD_FLAG && !strcmp(field->name, "stateful") &&
            *(const bool *)(config + field->offset))
            return layer;
    for (int i = 0; i < layer->inner_count && !found; i++) found = stateful_layer(layer->inner[i]);
    return found;
}

static CornuStatus refuse_states(const CornuModel *model, const CornuLayer *layer)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "cornu_predictor: %s of %s is stateful and callers "
                       "would share its state, expected layers without states",
                       layer ? cornu_layer_name(layer) : "a layer", model->base.name);
}

static CornuStatus check_predictor(const CornuPredictorConfig *config)
{
    const CornuModel *model = config->model;
    CORNU__TRY(cornu__model_check(model));
    const CornuDevice *device = config->device ? config->device : model->device;
    const CornuLayer  *stateful = stateful_layer(&model->base);
    if (stateful) return refuse_states(model, stateful);
    if (!model->base.built)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_predictor: %s is not built, expected a model "
                           "with weights; give its input shape or load it", model->base.name);
    if (config->max_batch_size < 0 || config->threads < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_predictor: .%s is negative, expected at "
                           "least 1", config->threads < 0 ? "threads" : "max_batch_size");
    if (device && cornu_process_count(cornu_device_processes(device)) > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_predictor: %d processes share the device, "
                           "expected a device of this process",
                           cornu_process_count(cornu_device_processes(device)));
    return CORNU_OK;
}

static CornuStatus fill_predictor(CornuPredictor *predictor, const CornuPredictorConfig *config)
{
    const CornuModel  *model = config->model;
    const CornuDevice *like = config->device ? config->device : model->device;
    predictor->device = like ? cornu_device_open_like(like, config->threads)
                             : cornu_device_open("cpu", .threads = config->threads);
    if (!predictor->device) return cornu_error_take();
    predictor->alone = !cornu_device_runs_twins(predictor->device);
    predictor->model = cornu_model_clone(model);
    if (!predictor->model) return cornu__fail_prefix(cornu_error_take(), "cornu_predictor");
    predictor->model->seed = model->seed;
    CORNU__TRY(cornu__model_predict_on(predictor->model, predictor->device));
    CORNU__TRY(CORNU__FULL(cornu__model_apply_policy(predictor->model), CORNU_OK));
    CORNU__TRY(cornu_model_copy_weights(predictor->model, model));
    CORNU__TRY(cornu__model_make_variables(predictor->model));
    const int64_t fixed = cornu_model_batch_size(model);
    predictor->max_batch = fixed != CORNU_NONE ? fixed
                         : config->max_batch_size ? config->max_batch_size : DEFAULT_BATCH;
    const int shards = cornu_device_shards(predictor->device);
    if (predictor->max_batch < shards) predictor->max_batch = shards;   /* a row for each */
    if (!cornu__model_on_host(predictor->model)) return CORNU_OK;
    return cornu__model_host_program(predictor->model, model->input_count, &predictor->host);
}

static CornuStatus make(CornuPredictor *predictor, const CornuPredictorConfig *config)
{
    CORNU__TRY(check_predictor(config));
    CORNU__TRY(cornu__model_enter(config->model, "cornu_predictor"));
    const CornuStatus status = fill_predictor(predictor, config);
    cornu__model_leave(config->model);
    return status;
}

CornuPredictor *cornu_predictor_from(const CornuPredictorConfig *config)
{
    CornuPredictor *predictor = cornu__allocate(1, sizeof *predictor);
    if (!predictor) return cornu__null();
    pthread_mutex_init(&predictor->making, NULL);
    pthread_mutex_init(&predictor->lock, NULL);
    pthread_cond_init(&predictor->returned, NULL);
    if (make(predictor, config) == CORNU_OK) return predictor;
    cornu_predictor_free(predictor);
    return cornu__null();
}

static void free_caller(CornuPredictor *predictor, Caller *caller)
{
    for (CornuStep *next, *step = caller->steps; step; step = next) {
        next = step->next;
        cornu__step_free(step);
    }
    for (int i = 0; i < predictor->model->output_count; i++) cornu__release(caller->partial[i]);
    cornu__release(caller);
}

void cornu_predictor_free(CornuPredictor *predictor)
{
    if (!predictor) return;
    for (Caller *next, *caller = predictor->idle; caller; caller = next) {
        next = caller->next;
        free_caller(predictor, caller);
    }
    cornu__release(predictor->host.calls);
    cornu_model_free(predictor->model);
    cornu_device_close(predictor->device);
    pthread_cond_destroy(&predictor->returned);
    pthread_mutex_destroy(&predictor->lock);
    pthread_mutex_destroy(&predictor->making);
    cornu__release(predictor);
}

/* ---- Callers ---- */

/* A caller that no thread uses; NULL: a new one must be made. */
static Caller *take_idle(CornuPredictor *predictor)
{
    pthread_mutex_lock(&predictor->lock);
    while (predictor->alone && !predictor->idle && predictor->callers > 0)
        pthread_cond_wait(&predictor->returned, &predictor->lock);
    Caller *caller = predictor->idle;
    if (caller) predictor->idle = caller->next;
    else predictor->callers++;
    pthread_mutex_unlock(&predictor->lock);
    return caller;
}

static void give_back(CornuPredictor *predictor, Caller *caller)
{
    pthread_mutex_lock(&predictor->lock);
    if (caller) {
        caller->next = predictor->idle;
        predictor->idle = caller;
    } else {
        predictor->callers--;
    }
    pthread_cond_signal(&predictor->returned);
    pthread_mutex_unlock(&predictor->lock);
}

static Caller *take(CornuPredictor *predictor)
{
    Caller *caller = take_idle(predictor);
    if (!caller) caller = cornu__allocate(1, sizeof *caller);
    if (!caller) give_back(predictor, NULL);
    return caller;
}

/* Moves the step at *link to the front. */
static CornuStep *use(Caller *caller, CornuStep **link)
{
    CornuStep *step = *link;
    *link = step->next;
    step->next = caller->steps;
    return caller->steps = step;
}

static void evict(Caller *caller)
{
    int kept = 0;
    for (CornuStep **link = &caller->steps; *link; link = &(*link)->next) {
        if (++kept <= KEPT_STEPS) continue;
        CornuStep *step = *link;
        *link = step->next;
        cornu__step_free(step);
        return;
    }
}

static CornuStatus make_step(CornuPredictor *predictor, Caller *caller, const CornuArrays *arrays)
{
    CornuStep *fresh;
    /* A model that was loaded for this alone has been freed. */
    if (CORNU__FULL(!caller->steps, false)) cornu__give_back_memory();
    CORNU__TRY(cornu__step_make(predictor->model, CORNU_STEP_PREDICT, arrays, !predictor->alone,
                                &fresh));
    if (fresh->stateful) {   /* a layer of the user's own */
        cornu__step_free(fresh);
        return refuse_states(predictor->model, NULL);
    }
    fresh->next = caller->steps;
    caller->steps = fresh;
    evict(caller);
    return CORNU_OK;
}

/* The caller's step for batches of these types, first in its list. */
static CornuStatus find_step(CornuPredictor *predictor, Caller *caller, const CornuArrays *arrays,
                             CornuStep **step)
{
    for (CornuStep **link = &caller->steps; *link; link = &(*link)->next)
        if (cornu__step_takes(*link, arrays)) {
            *step = use(caller, link);
            return CORNU_OK;
        }
    pthread_mutex_lock(&predictor->making);
    const CornuStatus status = make_step(predictor, caller, arrays);
    pthread_mutex_unlock(&predictor->making);
    *step = caller->steps;
    return status;
}

/* ---- Predicting ---- */

static bool runs_once(const CornuPredictor *predictor)
{
    return CORNU__FULL(atomic_load(&predictor->once), false);
}

/* Finds out, in the first call, whether rows may be cut: cornu__model_rows. */
static CornuStatus find_rows(CornuPredictor *predictor, const CornuArray *fed)
{
    CornuSymbol *symbols[CORNU_MAX_MODEL_TENSORS];
    CornuType    types[CORNU_MAX_MODEL_TENSORS];
    CornuModel  *model = predictor->model;
    if (atomic_load(&predictor->ready)) return CORNU_OK;
    const int count = cornu__model_fed(model, symbols);
    for (int i = 0; i < count; i++) types[i] = fed[i].type;
    pthread_mutex_lock(&predictor->making);
    const CornuStatus status = cornu__model_rows(model, types);
    atomic_store(&predictor->once, cornu__model_runs_once(model));
    atomic_store(&predictor->ready, cornu__model_is_function(model) ||
                                    model->rows != CORNU_ROWS_UNKNOWN);
    pthread_mutex_unlock(&predictor->making);
    return status;
}

static size_t row_bytes(CornuType type)
{
    type.shape.extent[0] = 1;
    return cornu_type_bytes(type);
}

static CornuStatus check_inputs(const CornuPredictor *predictor, const CornuArray *x)
{
    const CornuModel *model = predictor->model;
    for (int i = 0; i < model->input_count; i++) {
        const char      *name = cornu__input_name(model, i);
        const CornuShape shape = x[i].type.shape, first = x[0].type.shape;
        if (!x[i].data)
            return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_predictor_predict: input %s has no data",
                               name);
        CORNU__TRY(cornu__fail_prefix(cornu_host_type_check(x[i].type), name));
        if (cornu__model_is_function(model)) continue;
        if (shape.rank < 1 || shape.extent[0] < 1 || shape.extent[0] != first.extent[0])
            return cornu__fail(CORNU_ERR_SHAPE, "cornu_predictor_predict: input %s has %lld rows, "
                               "expected %s%.0lld", name,
                               (long long)(shape.rank < 1 ? 0 : shape.extent[0]),
                               i == 0 ? "at least 1" : "as the first: ",
                               i == 0 ? 0LL : (long long)first.extent[0]);
    }
    return CORNU_OK;
}

static CornuStatus check_outputs(const CornuPredictor *predictor, const CornuStep *step,
                                 const CornuArray *to, int64_t rows)
{
    for (int i = 0; i < step->y_count; i++) {
        CornuText   a, b;
        CornuType   want = step->outputs[i];
        const char *name = cornu__output_name(predictor->model, i);
        if (!cornu__step_runs_once(step)) want.shape.extent[0] = rows;
        if (!to[i].data)
            return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_predictor_predict: output %s has no data",
                               name);
        if (!cornu_type_equal(to[i].type, want))
            return cornu__fail(to[i].type.dtype == want.dtype ? CORNU_ERR_SHAPE : CORNU_ERR_DTYPE,
                               "cornu_predictor_predict: output %s is %s, expected %s", name,
                               cornu_type_print(&a, to[i].type), cornu_type_print(&b, want));
    }
    return CORNU_OK;
}

static CornuStatus reserve_partial(Caller *caller, int i, size_t bytes)
{
    if (caller->partial_bytes[i] >= bytes) return CORNU_OK;
    cornu__release(caller->partial[i]);
    caller->partial[i] = cornu__allocate(bytes, 1);
    caller->partial_bytes[i] = caller->partial[i] ? bytes : 0;
    return caller->partial[i] ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Runs all rows in one step, for models that are not cut into batches. */
static CornuStatus predict_once(CornuPredictor *predictor, Caller *caller, const CornuArray *fed,
                                const CornuArray *to)
{
    const CornuArrays arrays = { .x = fed };
    CornuArray        y[CORNU_MAX_MODEL_TENSORS];
    CornuStep        *step;
    CORNU__TRY(find_step(predictor, caller, &arrays, &step));
    CORNU__TRY(check_outputs(predictor, step, to, 0));
    for (int i = 0; i < step->y_count; i++) y[i] = to[i];
    CORNU__TRY(cornu__step_feed(step, &arrays, 0));
    return cornu__step_run(step, y);
}

/* The step for rows first to first + valid - 1 of the arrays that it is fed with, from which x[] is
 * cut: as many rows as the step computes. */
static CornuStatus step_for(CornuPredictor *predictor, Caller *caller, const CornuArray *fed,
                            int64_t first, int64_t valid, CornuArray *x, CornuStep **step)
{
    CornuSymbol      *symbols[CORNU_MAX_MODEL_TENSORS];
    const int         fed_count = cornu__model_fed(predictor->model, symbols);
    const CornuArrays arrays = { .x = x };
    for (int i = 0; i < fed_count; i++) {
        x[i] = fed[i];
        x[i].data = (char *)fed[i].data + (size_t)first * row_bytes(fed[i].type);
        x[i].type.shape.extent[0] = cornu__rows_to_predict(predictor->model, valid,
                                                           predictor->max_batch);
    }
    return find_step(predictor, caller, &arrays, step);
}

static CornuStatus predict_batch(CornuPredictor *predictor, Caller *caller, const CornuArray *fed,
                                 int64_t first, int64_t valid, const CornuArray *to)
{
    CornuArray    x[CORNU_MAX_MODEL_TENSORS], y[CORNU_MAX_MODEL_TENSORS];
    CornuStep    *step;
    const int64_t rows = fed[0].type.shape.extent[0];
    CORNU__TRY(step_for(predictor, caller, fed, first, valid, x, &step));
    const int64_t     computed = x[0].type.shape.extent[0];
    const CornuArrays arrays = { .x = x };
    if (first == 0) CORNU__TRY(check_outputs(predictor, step, to, rows));
    for (int i = 0; i < step->y_count; i++) {
        y[i] = cornu_array_from((char *)to[i].data + (size_t)first * row_bytes(step->outputs[i]),
                                step->outputs[i]);
        if (valid == computed) continue;
        CORNU__TRY(reserve_partial(caller, i, cornu_type_bytes(step->outputs[i])));
        y[i].data = caller->partial[i];
    }
    CORNU__TRY(cornu__step_feed(step, &arrays, valid));
    CORNU__TRY(cornu__step_run(step, y));
    for (int i = 0; i < step->y_count && valid < computed; i++) {
        const size_t row = row_bytes(step->outputs[i]);
        memcpy((char *)to[i].data + (size_t)first * row, y[i].data, (size_t)valid * row);
    }
    return CORNU_OK;
}

static CornuStatus predict_fed(CornuPredictor *predictor, const CornuArray *fed,
                               const CornuArray *to)
{
    const bool    once = runs_once(predictor);
    const int64_t rows = once ? 0 : fed[0].type.shape.extent[0], most = predictor->max_batch;
    Caller       *caller = take(predictor);
    CornuStatus   status = caller ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status && once) status = predict_once(predictor, caller, fed, to);
    for (int64_t first = 0; first < rows && !status; first += most)
        status = predict_batch(predictor, caller, fed, first,
                               rows - first < most ? rows - first : most, to);
    if (caller) give_back(predictor, caller);
    return status;
}

static CornuStatus types_fed(CornuPredictor *predictor, const CornuArray *fed, CornuType *types)
{
    const bool        once = runs_once(predictor);
    const CornuArrays arrays = { .x = fed };
    const int64_t rows = once ? 0 : fed[0].type.shape.extent[0], most = predictor->max_batch;
    CornuArray    x[CORNU_MAX_MODEL_TENSORS];
    CornuStep    *step = NULL;
    Caller       *caller = take(predictor);
    CornuStatus   status = caller ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status)
        status = once ? find_step(predictor, caller, &arrays, &step)
                      : step_for(predictor, caller, fed, 0, rows < most ? rows : most, x, &step);
    for (int i = 0; !status && i < step->y_count; i++) {
        types[i] = step->outputs[i];
        if (!once) types[i].shape.extent[0] = rows;
    }
    if (caller) give_back(predictor, caller);
    return status;
}

/* Computes what runs on the host, then either predicts or, without `to`, sets the types. */
static CornuStatus with_inputs(CornuPredictor *predictor, const CornuArray *x,
                               const CornuArray *to, CornuType *types)
{
    CornuArray        results[CORNU_MAX_COMPONENTS];
    const CornuArray *fed = predictor->host.calls ? results : x;
    CORNU__TRY(cornu__refused_status());
    CORNU__TRY(check_inputs(predictor, x));
    if (predictor->host.calls) CORNU__TRY(cornu__host_program_run(&predictor->host, x, results));
    CornuStatus status = find_rows(predictor, fed);
    if (!status) status = to ? predict_fed(predictor, fed, to) : types_fed(predictor, fed, types);
    if (predictor->host.calls) cornu__host_results_free(&predictor->host, results);
    return status;
}

CornuStatus cornu_predictor_predict(CornuPredictor *predictor, const CornuArray *x,
                                    const CornuArray *to)
{
    CORNU__NEED(predictor);
    CORNU__NEED(x);
    CORNU__NEED(to);
    return with_inputs(predictor, x, to, NULL);
}

CornuStatus cornu_predictor_output_types(CornuPredictor *predictor, const CornuArray *x,
                                         CornuType *types)
{
    CORNU__NEED(predictor);
    CORNU__NEED(x);
    CORNU__NEED(types);
    return with_inputs(predictor, x, NULL, types);
}

/* ---- What it expects and gives ---- */

int cornu_predictor_input_count(const CornuPredictor *predictor)
{
    CORNU__NEED_OR(predictor, 0);
    return predictor->model->input_count;
}

int cornu_predictor_output_count(const CornuPredictor *predictor)
{
    CORNU__NEED_OR(predictor, 0);
    return predictor->model->output_count;
}

const char *cornu_predictor_input_name(const CornuPredictor *predictor, int i)
{
    CORNU__NEED_OR(predictor, NULL);
    return i >= 0 && i < predictor->model->input_count ? cornu__input_name(predictor->model, i)
                                                       : NULL;
}

const char *cornu_predictor_output_name(const CornuPredictor *predictor, int i)
{
    CORNU__NEED_OR(predictor, NULL);
    return i >= 0 && i < predictor->model->output_count ? cornu__output_name(predictor->model, i)
                                                        : NULL;
}

CornuType cornu_predictor_input_type(const CornuPredictor *predictor, int i)
{
    CORNU__NEED_OR(predictor, (CornuType){ 0 });
    const CornuModel *model = predictor->model;
    return i >= 0 && i < model->input_count ? model->inputs[i]->type : (CornuType){ 0 };
}

CornuType cornu_predictor_output_type(const CornuPredictor *predictor, int i)
{
    CORNU__NEED_OR(predictor, (CornuType){ 0 });
    const CornuModel *model = predictor->model;
    if (i < 0 || i >= model->output_count) return (CornuType){ 0 };
    return (CornuType){ .dtype = CORNU_F32, .shape = model->outputs[i]->type.shape };
}

int64_t cornu_predictor_max_batch_size(const CornuPredictor *predictor)
{
    CORNU__NEED_OR(predictor, 0);
    return predictor->max_batch;
}

bool cornu_predictor_cuts(const CornuPredictor *predictor)
{
    CORNU__NEED_OR(predictor, false);
    return !cornu__model_is_function(predictor->model) && !runs_once(predictor);
}

const CornuModel *cornu_predictor_model(const CornuPredictor *predictor)
{
    CORNU__NEED_OR(predictor, NULL);
    return predictor->model;
}
