#include "quantize_internal.h"

#include <string.h>

#include "../../datasets/pipeline/iterator.h"
#include "../../device/edgetpu/kernels.h"
#include "../../device/memory_internal.h"
#include "../training/training_internal.h"
#include "cost.h"
#include "file/file.h"
#include "rules/from_model.h"
#include "run/run.h"
#include "onnx/to_onnx.h"
#include "int8/to_int8.h"

CORNU__HAS_DATA(CornuQuantizeConfig);

enum { DEFAULT_SAMPLES = 512, BATCH = 32, ROWS = 256 };

struct CornuInt8Model {
    CornuLiteGraph *graph;
    CornuLiteRun   *run;
    double          input_scale;   /* of integers that are given */
    float          *real;          /* ROWS rows of the largest input */
    int8_t        **ports;         /* ROWS rows of each input, then of each output */
};

const CornuLiteGraph *cornu__int8_graph(const CornuInt8Model *model) { return model->graph; }

/* ---- Calibration ---- */

/* Rows of any dtype as f32; integers times `scale`. */
static void to_real(CornuArray x, int64_t first, int64_t count, double scale, float *to)
{
    const double by = cornu_dtype_is_float(x.type.dtype) ? 1.0 : scale;
    if (x.type.dtype == CORNU_U8) {
        const uint8_t *from = (const uint8_t *)x.data + first;
        for (int64_t i = 0; i < count; i++) to[i] = (float)from[i] * (float)by;
        return;
    }
    for (int64_t i = 0; i < count; i++) to[i] = (float)(cornu_array_get(x, first + i) * by);
}

/* The inputs of a batch as f32, in memory of as many rows. */
static CornuStatus take_batch(const CornuLiteGraph *graph, const CornuModel *model,
                              const CornuBatch *batch, int64_t rows, float *const *to)
{
    for (int i = 0; i < graph->input_count; i++) {
        const CornuLiteTensor *tensor = &graph->tensors[graph->inputs[i].tensor];
        const CornuArray       x = batch->arrays[i];
        const int64_t          row = cornu__lite_count(tensor->shape, 1);
        if (cornu_type_count(x.type) != row * x.type.shape.extent[0]) {
            CornuText a, b;
            return cornu__fail(CORNU_ERR_SHAPE, "cornu_quantize: x is %s, the input is %s",
                               cornu_shape_print(&a, x.type.shape),
                               cornu_shape_print(&b, tensor->shape));
        }
        to_real(x, 0, rows * row, cornu_model_input_scale(model), to[i]);
    }
    return CORNU_OK;
}

static CornuStatus read_batches(CornuLiteRanges *ranges, const CornuLiteGraph *graph,
                                const CornuModel *model, CornuIterator *iterator,
                                int64_t samples, float *const *x)
{
    const CornuBatch *batch;
    int64_t           seen = 0;
    while (seen < samples) {
        CORNU__TRY(cornu_iterator_next(iterator, &batch));
        if (!batch) break;
        const int64_t rows = batch->valid < samples - seen ? batch->valid : samples - seen;
        CORNU__TRY(take_batch(graph, model, batch, rows, x));
        CORNU__TRY(cornu__lite_ranges_add(ranges, rows, (const float *const *)x));
        seen += rows;
    }
    return seen > 0 ? CORNU_OK : cornu__fail(CORNU_ERR_VALUE, "cornu_quantize: the calibration "
                                             "data have no rows");
}

/* Takes the data set. */
static CornuStatus calibrate(CornuLiteRanges *ranges, const CornuLiteGraph *graph,
                             const CornuModel *model, CornuDataset *data, int64_t samples)
{
    if (data && cornu_dataset_batch_size(data) == 0) data = cornu_dataset_batch(data, BATCH, false);
    if (!data) return cornu_error_take();
    const int64_t  most = cornu_dataset_batch_size(data);
    float         *x[CORNU_LITE_MAX_PORTS] = { NULL };
    CornuIterator *iterator = cornu_iterator_begin(data, 0);
    CornuStatus    status = iterator ? CORNU_OK : cornu_error_take();
    for (int i = 0; i < graph->input_count && status == CORNU_OK; i++) {
        x[i] = cornu__allocate((size_t)cornu__lite_count(
            graph->tensors[graph->inputs[i].tensor].shape, most), sizeof(float));
        if (!x[i]) status = CORNU_ERR_MEMORY;
    }
    if (status == CORNU_OK)
        status = read_batches(ranges, graph, model, iterator, samples, x);
    for (int i = 0; i < graph->input_count; i++) cornu__release(x[i]);
    cornu_iterator_free(iterator);
    cornu_dataset_free(data);
    return status;
}

static CornuStatus quantize(const CornuQuantizeConfig *config, CornuLiteGraph **to)
{
    const int64_t    samples = config->samples ? config->samples : DEFAULT_SAMPLES;
    CornuLiteGraph  *graph = NULL;
    CornuLiteRanges *ranges = NULL;
    if (!config->model) return cornu__fail_absent("cornu_quantize: .model is NULL");
    if (samples < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_quantize: .samples is %lld, expected at "
                           "least 1", (long long)samples);
    CornuStatus status = cornu__lite_from_model(config->model, NULL, &graph);
    if (status == CORNU_OK) status = cornu__lite_run_check(graph);
    if (status != CORNU_OK) {
        cornu__lite_graph_free(graph);
        return cornu__fail_prefix(status, "cornu_quantize");
    }
    const CornuData given = CORNU__DATA_OF(CornuQuantizeConfig, config);
    CornuDataset   *data = cornu__dataset_of(config->model, "cornu_quantize", &given,
                                             CORNU_STEP_PREDICT);
    if (!data) status = cornu_error_take();
    if (status == CORNU_OK) {
        ranges = cornu__lite_ranges_create(config->model);
        if (!ranges) status = cornu__fail_prefix(cornu_error_take(), "cornu_quantize");
    }
    if (status == CORNU_OK) status = calibrate(ranges, graph, config->model, data, samples);
    else                    cornu_dataset_free(data);
    if (status == CORNU_OK) status = cornu__lite_to_int8(graph, cornu__lite_ranges(ranges), to);
    cornu__lite_ranges_free(ranges);
    cornu__lite_graph_free(graph);
    return status;
}

/* ---- Making, saving, loading ---- */

static const CornuLiteTensor *input_of(const CornuInt8Model *q, int i)
{
    return &q->graph->tensors[q->graph->inputs[i].tensor];
}

static const CornuLiteTensor *output_of(const CornuInt8Model *q, int i)
{
    return &q->graph->tensors[q->graph->outputs[i].tensor];
}

static int64_t row_of(const CornuLiteTensor *tensor) { return cornu__lite_count(tensor->shape, 1); }

static CornuStatus check_port(const CornuLiteTensor *tensor)
{
    if (tensor->dtype == CORNU_LITE_I8 && tensor->quantization.count == 1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s is %s, expected i8 of one scale",
                       tensor->name, cornu__lite_dtype_name(tensor->dtype));
}

/* Memory for rows on their way. */
static CornuStatus make_ports(CornuInt8Model *q)
{
    const int inputs = q->graph->input_count, outputs = q->graph->output_count;
    int64_t   largest = 1;
    if (inputs < 1 || outputs < 1)
        return cornu__fail(CORNU_ERR_FORMAT, "the graph has %d inputs and %d outputs", inputs,
                           outputs);
    q->ports = cornu__allocate((size_t)(inputs + outputs), sizeof *q->ports);
    if (!q->ports) return CORNU_ERR_MEMORY;
    for (int i = 0; i < inputs + outputs; i++) {
        const CornuLiteTensor *tensor = i < inputs ? input_of(q, i) : output_of(q, i - inputs);
        CORNU__TRY(check_port(tensor));
        q->ports[i] = cornu__allocate((size_t)row_of(tensor) * ROWS, 1);
        if (!q->ports[i]) return CORNU_ERR_MEMORY;
        if (i < inputs && row_of(tensor) > largest) largest = row_of(tensor);
    }
    q->real = cornu__allocate((size_t)largest * ROWS, sizeof *q->real);
    return q->real ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* Takes the graph. */
static CornuInt8Model *create(CornuLiteGraph *graph, double input_scale, int threads)
{
    CornuInt8Model *q = cornu__allocate(1, sizeof *q);
    if (!q) {
        cornu__lite_graph_free(graph);
        return cornu__null();
    }
    q->graph = graph;
    q->input_scale = input_scale;
    q->run = cornu__lite_run_create(graph, threads);
    if (q->run && make_ports(q) == CORNU_OK) return q;
    cornu_int8_free(q);
    return cornu__null();
}

CornuInt8Model *cornu_quantize_from(const CornuQuantizeConfig *config)
{
    CornuLiteGraph *graph;
    if (cornu__refused()) return NULL;
    if (quantize(config, &graph) != CORNU_OK) return cornu__null();
    return create(graph, cornu_model_input_scale(config->model), config->threads);
}

void cornu_int8_free(CornuInt8Model *q)
{
    if (!q) return;
    cornu__lite_run_free(q->run);
    for (int i = 0; q->ports && i < q->graph->input_count + q->graph->output_count; i++)
        cornu__release(q->ports[i]);
    cornu__release(q->ports);
    cornu__release(q->real);
    cornu__lite_graph_free(q->graph);
    cornu__release(q);
}

CornuStatus cornu_int8_save(const CornuInt8Model *q, const char *path)
{
    if (!q || !path) return cornu__fail_absent("cornu_int8_save: an argument is NULL");
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ".onnx") == 0 ? cornu__lite_export_onnx(q->graph, path)
                                            : cornu__lite_save(q->graph, path);
}

CornuInt8Model *cornu_int8_load(const char *path)
{
    CornuLiteGraph *graph;
    if (cornu__refused()) return NULL;
    if (!path) return cornu__loaded(cornu__fail_null(CORNU_ERR_ARGUMENT, "cornu_int8_load: the "
                                                     "path is NULL"));
    return cornu__loaded(cornu__lite_open(path, &graph) ? cornu__null() : create(graph, 1.0, 0));
}

/* ---- Predicting ---- */

CornuStatus cornu_int8_predict_integers(CornuInt8Model *q, int64_t rows, const int8_t *x,
                                         int8_t *y)
{
    if (!q || !x || !y)
        return cornu__fail_absent("cornu_int8_predict_integers: an argument is NULL");
    if (q->graph->input_count != 1 || q->graph->output_count != 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the model has %d inputs and %d outputs, expected "
                           "one of each", q->graph->input_count, q->graph->output_count);
    return cornu__lite_run(q->run, rows, (const void *[]){ x }, (void *[]){ y });
}

static CornuAffine affine_of(const CornuLiteTensor *tensor)
{
    return (CornuAffine){ tensor->quantization.scales[0],
                          (int32_t)tensor->quantization.zero_points[0] };
}

static CornuStatus check_rows(const char *what, CornuArray array, int64_t rows,
                              const CornuLiteTensor *tensor)
{
    CornuText got, want;
    if (array.data && array.type.shape.rank > 0 && array.type.shape.extent[0] == rows &&
        cornu_type_count(array.type) == rows * row_of(tensor))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "cornu_int8_predict: %s is %s, expected %lld rows of %s",
                       what, array.data ? cornu_type_print(&got, array.type) : "not given",
                       (long long)rows, cornu_shape_print(&want, tensor->shape));
}

static CornuStatus check_arrays(const CornuInt8Model *q, const CornuArray *xs, int inputs,
                                const CornuArray *tos, int outputs, int64_t rows)
{
    if (inputs != q->graph->input_count || outputs != q->graph->output_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_int8_predict: %d inputs and %d outputs are "
                           "given, the model has %d and %d", inputs, outputs,
                           q->graph->input_count, q->graph->output_count);
    for (int i = 0; i < inputs; i++) CORNU__TRY(check_rows("x", xs[i], rows, input_of(q, i)));
    for (int i = 0; i < outputs; i++) {
        CORNU__TRY(check_rows("to", tos[i], rows, output_of(q, i)));
        if (tos[i].type.dtype != CORNU_F32)
            return cornu__fail(CORNU_ERR_DTYPE, "cornu_int8_predict: to is %s, expected f32",
                               cornu_dtype_name(tos[i].type.dtype));
    }
    return CORNU_OK;
}

CornuStatus cornu_int8_predict_many(CornuInt8Model *q, const CornuArray *xs, int inputs,
                                    const CornuArray *tos, int outputs)
{
    if (!q || !xs || !tos) return cornu__fail_absent("cornu_int8_predict: an argument is NULL");
    const int64_t rows = inputs > 0 && xs[0].type.shape.rank > 0 ? xs[0].type.shape.extent[0] : 0;
    CORNU__TRY(check_arrays(q, xs, inputs, tos, outputs, rows));
    for (int64_t first = 0; first < rows; first += ROWS) {
        const int64_t count = rows - first < ROWS ? rows - first : ROWS;
        for (int i = 0; i < inputs; i++) {
            const int64_t row = row_of(input_of(q, i));
            to_real(xs[i], first * row, count * row, q->input_scale, q->real);
            cornu__int8_quantize(affine_of(input_of(q, i)), count * row, q->real, q->ports[i]);
        }
        CORNU__TRY(cornu__lite_run(q->run, count, (const void *const *)q->ports,
                                   (void *const *)(q->ports + inputs)));
        for (int i = 0; i < outputs; i++) {
            const int64_t row = row_of(output_of(q, i));
            cornu__int8_dequantize(affine_of(output_of(q, i)), count * row,
                                   q->ports[inputs + i], (float *)tos[i].data + first * row);
        }
    }
    return CORNU_OK;
}

CornuStatus cornu_int8_predict(CornuInt8Model *q, CornuArray x, CornuArray to)
{
    return cornu_int8_predict_many(q, &x, 1, &to, 1);
}

/* ---- What it is ---- */

static CornuScale scale_of(const CornuLiteTensor *tensor)
{
    const CornuAffine affine = affine_of(tensor);
    return (CornuScale){ (double)affine.scale, (int)affine.zero };
}

CornuScale cornu_int8_input_scale(const CornuInt8Model *q) { return scale_of(input_of(q, 0)); }
CornuScale cornu_int8_output_scale(const CornuInt8Model *q) { return scale_of(output_of(q, 0)); }
CornuShape cornu_int8_input_shape(const CornuInt8Model *q) { return input_of(q, 0)->shape; }
CornuShape cornu_int8_output_shape(const CornuInt8Model *q) { return output_of(q, 0)->shape; }

int        cornu_int8_input_count(const CornuInt8Model *q) { return q->graph->input_count; }
int        cornu_int8_output_count(const CornuInt8Model *q) { return q->graph->output_count; }
CornuShape cornu_int8_output_shape_at(const CornuInt8Model *q, int i)
{
    return output_of(q, i)->shape;
}

int64_t cornu_int8_bytes(const CornuInt8Model *q)
{
    size_t bytes = 0;
    for (int t = 0; t < q->graph->tensor_count; t++) bytes += q->graph->tensors[t].bytes;
    return (int64_t)bytes;
}

/* ---- On an Edge TPU ---- */

static CornuEdgeTpuCost fill(const CornuInt8Model *q, CornuEdgeTpuOperator *operators)
{
    int64_t moved = 0;
    for (int o = 0; o < q->graph->operator_count; o++)
        operators[o] = cornu__lite_edgetpu_operator(q->graph, o);
    for (int i = 0; i < q->graph->input_count; i++) moved += row_of(input_of(q, i));
    for (int i = 0; i < q->graph->output_count; i++) moved += row_of(output_of(q, i));
    return cornu_edgetpu_cost(operators, q->graph->operator_count, moved);
}

int cornu_int8_operator_count(const CornuInt8Model *q) { return q->graph->operator_count; }

CornuStatus cornu_int8_edgetpu_cost(const CornuInt8Model *q, CornuEdgeTpuCost *cost,
                                    CornuEdgeTpuOperator *operators)
{
    CornuEdgeTpuOperator *own = operators ? NULL
        : cornu__allocate((size_t)q->graph->operator_count + 1, sizeof *own);
    if (!operators && !own) return CORNU_ERR_MEMORY;
    *cost = fill(q, operators ? operators : own);
    cornu__release(own);
    return CORNU_OK;
}
