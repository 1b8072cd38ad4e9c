/* Prediction, batch by batch as rows are wanted; export. */
#include "estimator_internal.h"

#include <string.h>

#include "../../device/open.h"
#include "../saving/files.h"

struct CornuPredictions {
    CornuTPUEstimator  *estimator;
    CornuEstimatorModel of;
    CornuIterator      *iterator;
    CornuArray          batch[CORNU_MAX_MODEL_TENSORS];   /* of each output; owned */
    CornuNamedArray     arrays[CORNU_MAX_MODEL_TENSORS];
    CornuPrediction     prediction;
    bool                whole;       /* batches, not rows */
    int64_t             row, rows;   /* the next one, and those of the batch */
};

void cornu_predictions_free(CornuPredictions *self)
{
    if (!self) return;
    cornu_iterator_free(self->iterator);
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) cornu__release(self->batch[i].data);
    cornu__estimator_model_close(&self->of);
    cornu__release(self);
}

static CornuType without_batch(CornuType type)
{
    CornuType row = { .dtype = type.dtype, .shape = { .rank = type.shape.rank - 1 } };
    for (int i = 0; i < row.shape.rank; i++) row.shape.extent[i] = type.shape.extent[i + 1];
    return row;
}

/* Arrays for the predictions of a batch, of which only the batch is unknown, unless the data have
 * extents that differ. */
static CornuStatus make_arrays(CornuPredictions *self)
{
    CornuText text;
    for (int i = 0; i < self->of.key_count; i++) {
        CornuType type = { .dtype = CORNU_F32,
                           .shape = cornu_symbol_shape(cornu_model_output(self->of.model, i)) };
        type.shape.extent[0] = self->estimator->batch_size[CORNU_MODE_PREDICT];
        for (int k = 1; k < type.shape.rank; k++)
            if (type.shape.extent[k] < 1)
                return cornu__fail(CORNU_ERR_SHAPE, "predict: the shape of \"%s\" is %s, expected "
                                   "known extents", self->of.keys[i],
                                   cornu_shape_print(&text, type.shape));
        CORNU__TRY(cornu_type_check(type));
        self->batch[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
        if (!self->batch[i].data) return CORNU_ERR_MEMORY;
        self->arrays[i] = (CornuNamedArray){ self->of.keys[i], self->batch[i] };
        if (!self->whole) self->arrays[i].array.type = without_batch(type);
    }
    self->prediction = (CornuPrediction){ self->arrays, self->of.key_count };
    return CORNU_OK;
}

static CornuStatus open_predictions(CornuPredictions *self,
                                    const CornuEstimatorPredictConfig *config)
{
    int64_t step;
    CORNU__TRY(cornu__estimator_model_open(config->estimator, CORNU_MODE_PREDICT, config->input_fn,
                                           false, &self->of));
    CORNU__TRY(cornu__checkpoint_load(config->estimator, config->checkpoint_path, self->of.model,
                                      "predict", &step));
    CORNU__TRY(make_arrays(self));
    self->iterator = cornu_iterator_begin(self->of.data, 0);
    return self->iterator ? CORNU_OK : cornu_error_take();
}

CornuPredictions *cornu_estimator_predict_from(const CornuEstimatorPredictConfig *config)
{
    if (cornu__refused()) return NULL;
    if (!config->estimator)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "predict: .estimator is required");
    CornuPredictions *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (CornuPredictions){ .estimator = config->estimator,
                                .whole = config->no_yield_single_examples };
    if (!open_predictions(self, config)) return self;
    cornu_predictions_free(self);
    return cornu__null();
}

/* Computes the next batch; rows is 0 after the last. */
static CornuStatus next_batch(CornuPredictions *self)
{
    const CornuBatch *batch;
    self->row = self->rows = 0;
    CORNU__TRY(cornu_iterator_next(self->iterator, &batch));
    if (!batch) return CORNU_OK;
    CORNU__TRY(cornu_predict_on_batch_many(self->of.model, batch->arrays, self->batch));
    self->rows = batch->valid;
    return CORNU_OK;
}

CornuStatus cornu_predictions_next(CornuPredictions *self, const CornuPrediction **prediction)
{
    CORNU__NEED(self);
    *prediction = NULL;
    if (self->row == self->rows) CORNU__TRY(next_batch(self));
    if (self->rows == 0) return CORNU_OK;
    for (int i = 0; i < self->of.key_count; i++) {
        CornuArray  *array = &self->arrays[i].array;
        const size_t bytes = cornu_type_bytes(array->type);
        if (self->whole) array->type.shape.extent[0] = self->rows;
        else array->data = (char *)self->batch[i].data + (size_t)self->row * bytes;
    }
    self->row = self->whole ? self->rows : self->row + 1;
    *prediction = &self->prediction;
    return CORNU_OK;
}

CornuArray cornu_prediction_get(const CornuPrediction *prediction, const char *name)
{
    CORNU__NEED_OR(prediction, (CornuArray){ .data = NULL });
    for (int i = 0; i < prediction->count; i++)
        if (!strcmp(prediction->arrays[i].name, name)) return prediction->arrays[i].array;
    return (CornuArray){ .data = NULL };
}

/* ---- Export ---- */

static CornuStatus export(const CornuEstimatorExportConfig *config, CornuModel *model)
{
    int64_t step;
    CORNU__TRY(cornu__checkpoint_load(config->estimator, config->checkpoint_path, model, "export",
                                      &step));
    cornu__model_free_compiled(model);   /* it only predicts: no optimizer, no device */
    return cornu_model_save(model, config->path);
}

CornuStatus cornu_estimator_export_from(const CornuEstimatorExportConfig *config)
{
    CornuEstimatorModel of;
    CORNU__TRY(cornu__refused_status());
    if (!config->estimator || !config->path)
        return cornu__fail(CORNU_ERR_ARGUMENT, "export: .%s is required",
                           config->estimator ? "path" : "estimator");
    CORNU__TRY(cornu__make_folders_above(config->path));
    CORNU__TRY(cornu_model_save_check(config->path));
    CORNU__TRY(cornu__estimator_model_open(config->estimator, CORNU_MODE_PREDICT, config->input_fn,
                                           true, &of));
    const CornuStatus status = export(config, of.model);
    cornu__estimator_model_close(&of);
    return status;
}
