/* Evaluation, prediction, and single steps. */
#include <string.h>

#include "agree_internal.h"
#include "../model/host_stage_internal.h"

/* ---- Predictions, batch by batch ---- */

/* The destination of each output's predictions: the caller's rows, by way of one batch. */
typedef struct {
    const char *who;
    CornuArray  to[CORNU_MAX_MODEL_TENSORS];
    bool        wanted;   /* predictions are kept at all */
    int64_t     rows;     /* written so far */
    CornuArray  batch[CORNU_MAX_MODEL_TENSORS];
} Output;

static CornuStatus output_open(Output *output, const char *who, const CornuEvaluateConfig *config)
{
    const bool one = config->to.data, named = config->tos_by_name[0].name;
    bool       many = false;
    output->who = who;
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        output->to[i] = one && i == 0 ? config->to : config->tos[i];
        many |= config->tos[i].data != NULL;
    }
    output->wanted = one || many || named;
    if (one + many + named > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .to%s and .tos%s are given, expected one",
                           who, one ? "" : "s", named ? "_by_name" : "");
    return !named ? CORNU_OK : cornu_model_order_outputs(config->model, config->tos_by_name,
                                                         CORNU_MAX_MODEL_TENSORS, output->to);
}

static void output_close(Output *output)
{
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) cornu__release(output->batch[i].data);
}

static CornuStatus prepare_one(Output *output, int i, CornuType type)
{
    const CornuArray to = output->to[i];
    CornuArray *batch = &output->batch[i];
    if (batch->data && cornu_type_equal(batch->type, type)) return CORNU_OK;
    const CornuShape got = to.type.shape;
    CornuShape       want = type.shape;
    want.extent[0] = got.extent[0];
    CornuText a, b;
    if (!to.data || to.type.dtype != type.dtype || !cornu_shape_equal(got, want))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: .to is %s, expected one for batches of "
                           "predictions %s",
                           output->who, to.data ? cornu_type_print(&a, to.type) : "not given",
                           cornu_type_print(&b, type));
    if (got.extent[0] != output->to[0].type.shape.extent[0])
        return cornu__fail(CORNU_ERR_SHAPE, "%s: .tos have %lld and %lld rows, expected the same "
                           "number",
                           output->who, (long long)output->to[0].type.shape.extent[0],
                           (long long)got.extent[0]);
    cornu__release(batch->data);
    *batch = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    return batch->data ? CORNU_OK : CORNU_ERR_MEMORY;
}

int64_t cornu__rows_to_predict(const CornuModel *model, int64_t valid, int64_t batch)
{
    if (cornu__model_runs_once(model) || cornu__model_mixes_rows(model)) return valid;
    const int64_t wanted = cornu_model_batch_size(model);
    if (wanted != CORNU_NONE) return wanted == valid ? valid : batch;
    int64_t rows = cornu_device_shards(model->device);
    while (rows < valid) rows *= 2;
    return rows < batch ? rows : batch;
}

/* Names the rows of all data, or those that have come. */
static CornuStatus check_room(const Output *output, const CornuDataLoader *loader, int64_t valid)
{
    const int64_t rows = output->to[0].type.shape.extent[0], came = output->rows + valid;
    if (came <= rows) return CORNU_OK;
    const bool known = loader->rows >= came && loader->steps == loader->batches;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: .to has %lld rows, the data %lld%s", output->who,
                       (long long)rows, (long long)(known ? loader->rows : came),
                       known ? "" : " or more");
}

/* Runs the step for this mode and the types of the batch, and stores the predictions. The first
 * batch of an execution says how many there are in it. */
static CornuStatus run_batch(CornuModel *model, CornuDataLoader *loader, CornuStepMode mode,
                             const CornuBatch *in, int64_t batches, Output *output)
{
    const int64_t valid = in->valid;
    CornuArray    some[CORNU_MAX_COMPONENTS];
    CornuStep    *step;
    for (int i = 0; i < in->count; i++) {
        int64_t *rows = &some[i].type.shape.extent[0];
        some[i] = in->arrays[i];
        if (mode == CORNU_STEP_PREDICT) *rows = cornu__rows_to_predict(model, valid, *rows);
        else if (cornu__model_cuts_batches(model)) *rows = valid;
    }
    const CornuBatch  batch = { .arrays = some, .count = in->count, .valid = valid };
    const CornuArrays arrays = cornu__batch_arrays(model, mode, loader, &batch);
    CORNU__TRY(cornu__step(model, mode, &arrays, &step));
    if (mode == CORNU_STEP_TEST) {
        CORNU__TRY(cornu__data_loader_feed(loader, step, &arrays, valid));
        if (batches) cornu_executable_collect(cornu_graph_executable(step->graph), batches);
        return cornu__data_loader_run(loader, step, in->sample, NULL);
    }
    for (int i = 0; i < step->y_count; i++)
        CORNU__TRY(prepare_one(output, i, step->outputs[i]));
    CORNU__TRY(check_room(output, loader, valid));
    CORNU__TRY(cornu__data_loader_feed(loader, step, &arrays, valid));
    CORNU__TRY(cornu__data_loader_run(loader, step, in->sample, output->batch));
    for (int i = 0; i < step->y_count; i++) {
        const CornuType type = step->outputs[i];
        const size_t    row = cornu_type_bytes(type) / (size_t)type.shape.extent[0];
        memcpy((char *)output->to[i].data + (size_t)output->rows * row, output->batch[i].data,
               (size_t)valid * row);
    }
    output->rows += valid;
    return CORNU_OK;
}

/* The steps of one execution, which begins with batch *i. */
static CornuStatus run_execution(CornuModel *model, CornuDataLoader *loader, CornuStepMode mode,
                                 const CornuBatch *batch, int64_t *i, Output *output)
{
    const int64_t first = *i, end = cornu__execution_end(model, loader, first);
    while (batch) {
        CORNU__TRY(run_batch(model, loader, mode, batch, *i == first ? end - first : 0, output));
        batch = NULL;
        if (++*i < end) CORNU__TRY(cornu__data_loader_next(loader, &batch));
    }
    return CORNU_OK;
}

/* Checks that all rows of .to have been written. */
static CornuStatus finish_output(const Output *output)
{
    const int64_t want = output->to[0].type.shape.extent[0];
    return output->rows == want ? CORNU_OK
        : cornu__fail(CORNU_ERR_SHAPE, "%s: .to has %lld rows, the data %lld", output->who,
                      (long long)want, (long long)output->rows);
}

/* All batches. Each execution is between the hooks `begin` and `end`; the latter gets logs unless
 * they are NULL. */
static CornuStatus run_batches(CornuModel *model, CornuDataLoader *loader, CornuStepMode mode,
                               const CornuCallbackList *callbacks, size_t begin, size_t end,
                               CornuLogSet *logs, Output *output)
{
    CORNU__TRY(cornu__data_loader_begin_epoch(loader));
    for (int64_t i = 0; i < loader->steps;) {
        const int64_t     last = i + model->steps_per_execution - 1;
        const CornuBatch *batch;
        CORNU__TRY(cornu__data_loader_next(loader, &batch));
        if (!batch) break;
        CORNU__TRY(cornu__call_index_hook(callbacks, begin, i, NULL));
        CORNU__TRY(run_execution(model, loader, mode, batch, &i, output));
        const bool wants = logs && cornu__wants_logs(callbacks, end, last);
        if (wants) {
            CORNU__TRY(cornu__data_loader_wait(loader, model));
            CORNU__TRY(cornu__metrics_read(model, logs->values));
            cornu__logs_refresh(logs);
        }
        CORNU__TRY(cornu__call_index_hook(callbacks, end, last, wants ? &logs->logs : NULL));
    }
    CORNU__TRY(cornu__data_loader_wait(loader, model));
    return mode == CORNU_STEP_TEST ? CORNU_OK : finish_output(output);
}

/* ---- Evaluation ---- */

static CornuStatus evaluate_batches(CornuModel *model, CornuDataLoader *loader,
                                    const CornuCallbackList *callbacks, CornuLogSet *logs,
                                    Output *output)
{
    loader->at = (CornuSample){ 0, 0 };   /* the same batches each time */
    CORNU__TRY(cornu_model_reset_metrics(model));
    CORNU__TRY(cornu__call_hook(callbacks, CORNU__HOOK(test_begin), NULL));
    CORNU__TRY(run_batches(model, loader,
                           output->wanted ? CORNU_STEP_TEST_PREDICT : CORNU_STEP_TEST, callbacks,
                           CORNU__HOOK(test_batch_begin), CORNU__HOOK(test_batch_end), logs,
                           output));
    CORNU__TRY(cornu__metrics_read(model, logs->values));
    cornu__logs_refresh(logs);
    return cornu__call_hook(callbacks, CORNU__HOOK(test_end), &logs->logs);
}

CornuStatus cornu__evaluate_batches(CornuModel *model, CornuDataLoader *loader,
                                    const CornuCallbackList *callbacks, CornuLogSet *logs)
{
    return evaluate_batches(model, loader, callbacks, logs, &(Output){ .who = "evaluate" });
}

/* ---- Evaluation and prediction ---- */

typedef struct {
    const char                *who;
    const CornuEvaluateConfig *config;
    CornuCallbackList          callbacks;
    CornuDataLoader            loader;
    CornuLogSet                logs;     /* of an evaluation */
    Output                     output;
} Pass;

/* Opens the data, the callbacks and the destinations. */
static CornuStatus open_pass(Pass *pass, bool predicts)
{
    const CornuEvaluateConfig *config = pass->config;
    const CornuData            data = CORNU__DATA_OF(CornuEvaluateConfig, config);
    CornuModel                *model = config->model;
    CORNU__TRY(cornu__model_refuse_function(model, pass->who));
    CORNU__TRY(output_open(&pass->output, pass->who, config));
    CORNU__TRY(cornu__data_loader_open_for(model, &pass->loader, &(CornuDataLoaderConfig){
        .dataset = cornu__dataset_of(model, pass->who, &data,
                                     predicts ? CORNU_STEP_PREDICT : CORNU_STEP_TEST),
        .device = model->device, .batch_size = config->batch_size, .default_batch_size = 32,
        .takes_all = true, .steps = config->steps, .min_batch_rows = cornu__min_batch_rows(model),
        .few_sizes = predicts, .predicts = predicts, .who = pass->who, .batch_name = "batch_size",
        .steps_name = "steps" }));
    return cornu__callback_list_open(&pass->callbacks, config->written, config->verbose,
        (CornuParams){ .epochs = 1, .steps = cornu__data_loader_steps(&pass->loader) });
}

/* The step that tests is recorded before the logs are: it may be the model's own. */
static CornuStatus prepare_to_test(Pass *pass)
{
    CornuStep *step;
    if (!cornu__model_has_own(pass->config->model, CORNU_STEP_TEST)) return CORNU_OK;
    if (pass->output.wanted)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "evaluate: .to is given, but %s tests by a step "
                           "of its own, which has no predictions", pass->config->model->base.name);
    return cornu__step_of(pass->config->model, CORNU_STEP_TEST, &pass->loader, &step);
}

static CornuStatus evaluate(Pass *pass)
{
    CornuModel *model = pass->config->model;
    double     *results = pass->config->results;
    CORNU__TRY(cornu__model_check(model));
    CORNU__TRY(open_pass(pass, false));
    CORNU__TRY(prepare_to_test(pass));
    CORNU__TRY(cornu__logs_open(&pass->logs, model, false, true));
    CORNU__TRY(cornu__agree_on_data(model, &pass->loader, "the data of the evaluation"));
    CORNU__TRY(evaluate_batches(model, &pass->loader, &pass->callbacks, &pass->logs,
                                &pass->output));
    if (results)
        memcpy(results, pass->logs.values,
               (size_t)cornu_model_metric_count(model) * sizeof *results);
    return CORNU_OK;
}

static CornuStatus predict(Pass *pass)
{
    CornuModel *model = pass->config->model;
    CORNU__TRY(cornu__model_prepare_to_predict(model));
    if (pass->config->results)
        return cornu__fail(CORNU_ERR_ARGUMENT, "predict: .results is given, expected .to alone");
    CORNU__TRY(open_pass(pass, true));
    CORNU__TRY(cornu__agree_on_data(model, &pass->loader, "the data of the prediction"));
    CORNU__TRY(cornu__call_hook(&pass->callbacks, CORNU__HOOK(predict_begin), NULL));
    CORNU__TRY(run_batches(model, &pass->loader, CORNU_STEP_PREDICT, &pass->callbacks,
                           CORNU__HOOK(predict_batch_begin), CORNU__HOOK(predict_batch_end), NULL,
                           &pass->output));
    return cornu__call_hook(&pass->callbacks, CORNU__HOOK(predict_end), NULL);
}

static CornuStatus run_pass(const CornuEvaluateConfig *config, const char *function,
                            const char *who, CornuStatus (*run)(Pass *pass))
{
    Pass        pass = { .who = who, .config = config };
    CornuStatus status = cornu__callback_list_take(&pass.callbacks, config->model,
                                                   config->callbacks);
    if (!status) status = cornu__model_enter(config->model, function);
    if (!status) {
        status = cornu__fail_together(config->model, run(&pass));
        cornu__model_leave(config->model);
    }
    output_close(&pass.output);
    cornu__logs_close(&pass.logs);
    cornu__data_loader_close(&pass.loader);
    cornu__callback_list_close(&pass.callbacks);
    return status;
}

CornuStatus cornu_evaluate_from(const CornuEvaluateConfig *config)
{
    return run_pass(config, "cornu_evaluate", "evaluate", evaluate);
}

CornuStatus cornu_predict_from(const CornuPredictConfig *config)
{
    return run_pass(config, "cornu_predict", "predict", predict);
}

/* ---- Single steps ---- */

/* Calls `run` with what the step is fed with: the arrays, or what layers on the host make of x. */
typedef CornuStatus FedFunction(CornuModel *model, const CornuArrays *fed, void *context);

static CornuStatus with_fed(CornuModel *model, const CornuArrays *arrays, FedFunction *run,
                            void *context)
{
    CornuHostProgram program;
    CornuArray       x[CORNU_MAX_COMPONENTS];
    CornuArrays      fed = *arrays;
    CORNU__TRY(cornu__model_check(model));
    if (!cornu__model_on_host(model) || cornu__model_has_own_data(model))
        return run(model, arrays, context);
    CORNU__TRY(cornu__model_host_program(model, model->input_count, &program));
    CornuStatus status = cornu__host_program_run(&program, arrays->x, x);
    fed.x = x;
    if (!status) status = run(model, &fed, context);
    cornu__host_results_free(&program, x);
    cornu__release(program.calls);
    return status;
}

typedef struct {
    CornuStepMode mode;
    double       *values;
} OneBatch;

static CornuStatus run_one(CornuModel *model, const CornuArrays *arrays, void *context)
{
    const OneBatch *batch = context;
    CornuStep      *step;
    CORNU__TRY(cornu__step(model, batch->mode, arrays, &step));
    if (batch->values) CORNU__TRY(cornu_model_reset_metrics(model));
    CORNU__TRY(cornu__step_feed(step, arrays, arrays->x[0].type.shape.extent[0]));
    CORNU__TRY(cornu__step_run(step, NULL));
    return batch->values ? cornu__metrics_read(model, batch->values) : CORNU_OK;
}

CornuStatus cornu__model_check_single(const CornuModel *model)
{
    CORNU__TRY(cornu__model_check(model));
    if (model->input_count == 1 && model->output_count == 1) return CORNU_OK;
    if (cornu__model_has_own_data(model) && model->own->xs == 1 && model->own->ys < 2)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s has %d inputs and %d outputs, expected one of each; "
                       "call the function that ends in _many", model->base.name,
                       model->input_count, model->output_count);
}

CornuExecutable *cornu_model_train_step(CornuModel *model, CornuType x, CornuType y)
{
    CornuStep       *step;
    const CornuArray data[] = { cornu_array_from(NULL, x), cornu_array_from(NULL, y) };
    if (cornu__model_enter(model, "cornu_model_train_step")) return cornu__null();
    CornuStatus status = cornu__model_check_single(model);
    if (!status)
        status = cornu__step(model, CORNU_STEP_TRAIN,
                             &(CornuArrays){ .x = &data[0], .y = &data[1] }, &step);
    cornu__model_leave(model);
    if (!status && step->pipeline)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "cornu_model_train_step: the stages of a "
                                "pipeline have a program each, expected a model without");
    return status ? cornu__null() : cornu_graph_executable(step->graph);
}

static CornuStatus on_batch(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                            double *values)
{
    return with_fed(model, arrays, run_one, &(OneBatch){ mode, values });
}

/* *weights: the sample weights by class, for the caller to release. */
static CornuStatus weights_by_class(const CornuOnBatchConfig *config, CornuArray *weights)
{
    CornuClassWeights classes;
    CornuType         label = config->y.type;
    const int64_t     rows = label.shape.rank > 0 ? label.shape.extent[0] : 0;
    if (config->sample_weight.data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_train_on_batch: both .sample_weight and "
                           ".class_weight are given, expected one");
    for (int i = 1; i < label.shape.rank; i++) label.shape.extent[i - 1] = label.shape.extent[i];
    if (label.shape.rank > 0) label.shape.extent[--label.shape.rank] = 0;
    CORNU__TRY(cornu__class_weights(&classes, config->model, "cornu_train_on_batch",
                                    config->class_weight, label));
    CornuType all = { .dtype = CORNU_F32, .shape = { .rank = classes.weight.shape.rank + 1 } };
    all.shape.extent[0] = rows;
    for (int i = 1; i < all.shape.rank; i++)
        all.shape.extent[i] = classes.weight.shape.extent[i - 1];
    *weights = cornu_array_from(cornu__allocate(cornu_type_bytes(all), 1), all);
    if (!weights->data) return CORNU_ERR_MEMORY;
    const CornuStatus status = cornu__weigh_classes(&classes, config->y, cornu_type_count(all),
                                                    weights->data);
    if (status) cornu__release(weights->data);
    return status;
}

static CornuStatus on_single_batch(const CornuOnBatchConfig *config, CornuStepMode mode)
{
    CornuArray by_class = { .data = NULL };
    CORNU__TRY(cornu__model_check_single(config->model));
    const bool y = config->y.data || cornu__model_ys(config->model, mode) == 0;
    if (!config->x.data || !y)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_%s_on_batch: .%s is not given",
                           mode == CORNU_STEP_TRAIN ? "train" : "test", config->x.data ? "y" : "x");
    if (config->class_weight.data) CORNU__TRY(weights_by_class(config, &by_class));
    const CornuArray weights = by_class.data ? by_class : config->sample_weight;
    CornuStatus      status = on_batch(config->model, mode, &(CornuArrays){
        .x = &config->x, .y = &config->y, .weights = &weights,
        .weight_count = weights.data ? 1 : 0 }, config->values);
    cornu__release(by_class.data);
    return status;
}

CornuStatus cornu_train_on_batch_from(const CornuOnBatchConfig *config)
{
    CORNU__WITHIN(config->model, "cornu_train_on_batch",
                  on_single_batch(config, CORNU_STEP_TRAIN));
}

CornuStatus cornu_test_on_batch_from(const CornuOnBatchConfig *config)
{
    CORNU__WITHIN(config->model, "cornu_test_on_batch", on_single_batch(config, CORNU_STEP_TEST));
}

static CornuStatus need_y(const CornuModel *model, CornuStepMode mode, const CornuArray *y)
{
    if (!model || cornu__model_ys(model, mode) > 0) CORNU__NEED(y);
    return CORNU_OK;
}

CornuStatus cornu_train_on_batch_many(CornuModel *model, const CornuArray *x, const CornuArray *y,
                                      double *values)
{
    CORNU__NEED(x);
    CORNU__TRY(need_y(model, CORNU_STEP_TRAIN, y));
    CORNU__WITHIN(model, "cornu_train_on_batch_many",
                  on_batch(model, CORNU_STEP_TRAIN, &(CornuArrays){ .x = x, .y = y }, values));
}

CornuStatus cornu_test_on_batch_many(CornuModel *model, const CornuArray *x, const CornuArray *y,
                                     double *values)
{
    CORNU__NEED(x);
    CORNU__TRY(need_y(model, CORNU_STEP_TEST, y));
    CORNU__WITHIN(model, "cornu_test_on_batch_many",
                  on_batch(model, CORNU_STEP_TEST, &(CornuArrays){ .x = x, .y = y }, values));
}

static CornuStatus predict_fed(CornuModel *model, const CornuArrays *arrays, void *context)
{
    const CornuArray *to = context;
    CornuStep *step;
    CornuText  a, b;
    CornuArray out[CORNU_MAX_MODEL_TENSORS];
    CORNU__TRY(cornu__step(model, CORNU_STEP_PREDICT, arrays, &step));
    for (int i = 0; i < step->y_count; i++) {
        out[i] = to[i];
        if (!to[i].data)
            return cornu__fail(CORNU_ERR_ARGUMENT, "predict: .to has no data");
        if (!cornu_type_equal(step->outputs[i], to[i].type))
            return cornu__fail(CORNU_ERR_SHAPE, "predict: .to is %s, expected %s",
                               cornu_type_print(&a, to[i].type),
                               cornu_type_print(&b, step->outputs[i]));
    }
    CORNU__TRY(cornu__step_feed(step, arrays, arrays->x[0].type.shape.extent[0]));
    return cornu__step_run(step, out);
}

static CornuStatus predict_on_batch(CornuModel *model, const CornuArray *x, const CornuArray *to)
{
    return with_fed(model, &(CornuArrays){ .x = x }, predict_fed, (void *)(uintptr_t)to);
}

CornuStatus cornu_predict_on_batch_many(CornuModel *model, const CornuArray *x,
                                        const CornuArray *to)
{
    CORNU__NEED(x);
    CORNU__NEED(to);
    CORNU__WITHIN(model, "cornu_predict_on_batch_many", predict_on_batch(model, x, to));
}

static CornuStatus types_fed(CornuModel *model, const CornuArrays *arrays, void *context)
{
    CornuType *to = context;
    CornuStep *step;
    CORNU__TRY(cornu__step(model, CORNU_STEP_PREDICT, arrays, &step));
    for (int i = 0; i < step->y_count; i++) to[i] = step->outputs[i];
    return CORNU_OK;
}

CornuStatus cornu_model_predict_types(CornuModel *model, const CornuArray *x, CornuType *to)
{
    CORNU__NEED(x);
    CORNU__NEED(to);
    CORNU__WITHIN(model, "cornu_model_predict_types",
                  with_fed(model, &(CornuArrays){ .x = x }, types_fed, to));
}

static CornuStatus predict_on_single_batch(CornuModel *model, CornuArray x, CornuArray to)
{
    CORNU__TRY(cornu__model_check_single(model));
    return predict_on_batch(model, &x, &to);
}

CornuStatus cornu_predict_on_batch(CornuModel *model, CornuArray x, CornuArray to)
{
    CORNU__WITHIN(model, "cornu_predict_on_batch", predict_on_single_batch(model, x, to));
}
