/* Evaluation, prediction, and single steps. */
#include <string.h>

#include "loop_internal.h"

/* ---- Predictions of batch after batch ---- */

/* Where predictions go: the caller's rows, by way of one batch. */
typedef struct {
    const char *who;
    CornuArray  to;       /* without data: nowhere */
    int64_t     rows;     /* written so far */
    size_t      row_bytes;
    void       *batch;
    CornuShape  shape;    /* of batch */
} Output;

static CornuStatus prepare_output(Output *output, const CornuStep *step)
{
    const CornuType type = step->output;
    if (output->batch && cornu_shape_equal(output->shape, type.shape)) return CORNU_OK;
    const CornuShape got = output->to.type.shape;
    CornuShape       want = type.shape;
    want.extent[0] = got.extent[0];
    CornuText a, b;
    if (!output->to.data || output->to.type.dtype != type.dtype || !cornu_shape_equal(got, want))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: .to is %s, a batch of predictions %s",
                           output->who,
                           output->to.data ? cornu_type_print(&a, output->to.type) : "not given",
                           cornu_type_print(&b, type));
    cornu__release(output->batch);
    output->batch = cornu__allocate(cornu_type_bytes(type), 1);
    output->shape = type.shape;
    output->row_bytes = cornu_type_bytes(type) / (size_t)type.shape.extent[0];
    return output->batch ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Runs the step that belongs to mode and the types of a batch, and keeps the predictions. */
static CornuStatus run_batch(CornuModel *model, CornuSource *source, CornuStepMode mode,
                             const CornuBatch *in, Output *output)
{
    const int64_t   valid = in->valid;
    const CornuType none = { 0 };
    CornuStep      *step;
    CORNU__TRY(cornu__step(model, mode, in->arrays[0].type,
                           in->count > 1 ? in->arrays[1].type : none, &step));
    if (mode == CORNU_STEP_TEST) {
        CORNU__TRY(cornu__source_feed(source, step, in));
        return cornu__step_run(step, NULL);
    }
    CORNU__TRY(prepare_output(output, step));
    if (valid > output->to.type.shape.extent[0] - output->rows)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: .to has %lld rows, the data have more",
                           output->who, (long long)output->to.type.shape.extent[0]);
    CornuArray batch = cornu_array_from(output->batch, step->output);
    CORNU__TRY(cornu__source_feed(source, step, in));
    CORNU__TRY(cornu__step_run(step, &batch));
    memcpy((char *)output->to.data + (size_t)output->rows * output->row_bytes, batch.data,
           (size_t)valid * output->row_bytes);
    output->rows += valid;
    return CORNU_OK;
}

/* The steps of one execution, from batch *i on. */
static CornuStatus run_execution(CornuModel *model, CornuSource *source, CornuStepMode mode,
                                 const CornuBatch *batch, int64_t *i, Output *output)
{
    const int64_t end = cornu__execution_end(model, source, *i);
    while (batch) {
        CORNU__TRY(run_batch(model, source, mode, batch, output));
        batch = NULL;
        if (++*i < end) CORNU__TRY(cornu__source_next(source, &batch));
    }
    return CORNU_OK;
}

/* All rows that were asked for have been written. */
static CornuStatus finish_output(const Output *output)
{
    const int64_t want = output->to.type.shape.extent[0];
    return output->rows == want ? CORNU_OK
        : cornu__fail(CORNU_ERR_SHAPE, "%s: .to has %lld rows, the data %lld", output->who,
                      (long long)want, (long long)output->rows);
}

/* ---- Evaluation ---- */

static CornuStatus test_batches(CornuModel *model, CornuSource *source,
                                const CornuCallbacks *callbacks, CornuLogSet *logs,
                                Output *output)
{
    const CornuStepMode mode = output->to.data ? CORNU_STEP_TEST_PREDICT : CORNU_STEP_TEST;
    CORNU__TRY(cornu__source_begin(source));
    for (int64_t i = 0; i < source->steps;) {
        const int64_t     last = i + model->steps_per_execution - 1;
        const CornuBatch *batch;
        CORNU__TRY(cornu__source_next(source, &batch));
        if (!batch) break;
        CORNU__TRY(cornu__index_hook(callbacks, CORNU__HOOK(test_batch_begin), i, NULL));
        CORNU__TRY(run_execution(model, source, mode, batch, &i, output));
        const bool wants = cornu__wants_logs(callbacks, CORNU__HOOK(test_batch_end), last);
        if (wants) {
            CORNU__TRY(cornu__metrics_read(model, logs->values));
            cornu__logs_refresh(logs);
        }
        CORNU__TRY(cornu__index_hook(callbacks, CORNU__HOOK(test_batch_end), last,
                                     wants ? &logs->logs : NULL));
    }
    return output->to.data ? finish_output(output) : CORNU_OK;
}

static CornuStatus evaluate_source(CornuModel *model, CornuSource *source,
                                   const CornuCallbacks *callbacks, CornuLogSet *logs,
                                   Output *output)
{
    source->at = (CornuSample){ 0, 0 };   /* the same batches each time */
    CORNU__TRY(cornu_model_reset_metrics(model));
    CORNU__TRY(cornu__hook(callbacks, CORNU__HOOK(test_begin), NULL));
    CORNU__TRY(test_batches(model, source, callbacks, logs, output));
    CORNU__TRY(cornu__metrics_read(model, logs->values));
    cornu__logs_refresh(logs);
    return cornu__hook(callbacks, CORNU__HOOK(test_end), &logs->logs);
}

CornuStatus cornu__evaluate_source(CornuModel *model, CornuSource *source,
                                   const CornuCallbacks *callbacks, CornuLogSet *logs)
{
    return evaluate_source(model, source, callbacks, logs, &(Output){ .who = "evaluate" });
}

static CornuStatus evaluate(const CornuEvaluateConfig *config, CornuCallbacks *callbacks,
                            CornuSource *source, CornuLogSet *logs, Output *output)
{
    CornuModel *model = config->model;
    CORNU__TRY(cornu__model_check(model));
    CORNU__TRY(cornu__source_open(source, &(CornuSourceConfig){
        .dataset = cornu__data("evaluate", config->data, config->x, config->y, 2),
        .batch_size = config->batch_size, .usual_batch_size = 32, .steps = config->steps,
        .who = "evaluate", .batch_name = "batch_size", .steps_name = "steps" }));
    CORNU__TRY(cornu__callbacks_open(callbacks, config->verbose, 1, source->steps));
    CORNU__TRY(cornu__logs_open(logs, model, false));
    CORNU__TRY(evaluate_source(model, source, callbacks, logs, output));
    if (config->results)
        memcpy(config->results, logs->values, (size_t)logs->metrics * sizeof *config->results);
    return CORNU_OK;
}

CornuStatus cornu_evaluate_from(const CornuEvaluateConfig *config)
{
    CornuCallbacks callbacks;
    CornuSource    source = { 0 };
    CornuLogSet    logs = { 0 };
    Output         output = { .who = "evaluate", .to = config->to };
    cornu__callbacks_take(&callbacks, config->model, config->callbacks);
    CornuStatus status = evaluate(config, &callbacks, &source, &logs, &output);
    cornu__release(output.batch);
    cornu__logs_close(&logs);
    cornu__source_close(&source);
    cornu__callbacks_close(&callbacks);
    return status;
}

/* ---- Prediction ---- */

static CornuStatus predict_batches(CornuModel *model, CornuSource *source,
                                   const CornuCallbacks *callbacks, Output *output)
{
    CORNU__TRY(cornu__source_begin(source));
    for (int64_t i = 0; i < source->steps;) {
        const int64_t     last = i + model->steps_per_execution - 1;
        const CornuBatch *batch;
        CORNU__TRY(cornu__source_next(source, &batch));
        if (!batch) break;
        CORNU__TRY(cornu__index_hook(callbacks, CORNU__HOOK(predict_batch_begin), i, NULL));
        CORNU__TRY(run_execution(model, source, CORNU_STEP_PREDICT, batch, &i, output));
        CORNU__TRY(cornu__index_hook(callbacks, CORNU__HOOK(predict_batch_end), last, NULL));
    }
    return finish_output(output);
}

static CornuStatus predict(const CornuPredictConfig *config, CornuCallbacks *callbacks,
                           CornuSource *source, Output *output)
{
    const CornuArray no_labels = { .data = NULL };
    CornuModel      *model = config->model;
    CORNU__TRY(cornu__model_check(model));
    CORNU__TRY(cornu__source_open(source, &(CornuSourceConfig){
        .dataset = cornu__data("predict", config->data, config->x, no_labels, 1),
        .batch_size = config->batch_size, .usual_batch_size = 32, .steps = config->steps,
        .who = "predict", .batch_name = "batch_size", .steps_name = "steps" }));
    CORNU__TRY(cornu__callbacks_open(callbacks, config->verbose, 1, source->steps));
    CORNU__TRY(cornu__hook(callbacks, CORNU__HOOK(predict_begin), NULL));
    CORNU__TRY(predict_batches(model, source, callbacks, output));
    return cornu__hook(callbacks, CORNU__HOOK(predict_end), NULL);
}

CornuStatus cornu_predict_from(const CornuPredictConfig *config)
{
    CornuCallbacks callbacks;
    CornuSource    source = { 0 };
    Output         output = { .who = "predict", .to = config->to };
    cornu__callbacks_take(&callbacks, config->model, config->callbacks);
    CornuStatus status = predict(config, &callbacks, &source, &output);
    cornu__release(output.batch);
    cornu__source_close(&source);
    cornu__callbacks_close(&callbacks);
    return status;
}

/* ---- Single steps ---- */

static CornuStatus on_batch(CornuModel *model, CornuStepMode mode, CornuArray x, CornuArray y,
                            double *values)
{
    CornuStep *step;
    CORNU__TRY(cornu__step(model, mode, x.type, y.type, &step));
    CORNU__TRY(cornu__step_feed(step, x, &y, x.type.shape.extent[0]));
    CORNU__TRY(cornu__step_run(step, NULL));
    return values ? cornu__metrics_read(model, values) : CORNU_OK;
}

CornuStatus cornu_train_on_batch(CornuModel *model, CornuArray x, CornuArray y, double *values)
{
    return on_batch(model, CORNU_STEP_TRAIN, x, y, values);
}

CornuStatus cornu_test_on_batch(CornuModel *model, CornuArray x, CornuArray y, double *values)
{
    return on_batch(model, CORNU_STEP_TEST, x, y, values);
}

CornuStatus cornu_predict_on_batch(CornuModel *model, CornuArray x, CornuArray to)
{
    CornuStep *step;
    CornuText  a, b;
    CORNU__TRY(cornu__step(model, CORNU_STEP_PREDICT, x.type, (CornuType){ 0 }, &step));
    const CornuType type = step->output;
    if (!cornu_type_equal(type, to.type))
        return cornu__fail(CORNU_ERR_SHAPE, "predict: .to is %s, the predictions %s",
                           cornu_type_print(&a, to.type), cornu_type_print(&b, type));
    CORNU__TRY(cornu__step_feed(step, x, NULL, x.type.shape.extent[0]));
    return cornu__step_run(step, &to);
}
