#include "ranges.h"

#include <math.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../saving/files_internal.h"
#include "../../training/training_internal.h"
#include "../onnx/to_onnx.h"
#include "../rules/from_model.h"

enum { BATCH = 32 };

/* The graph as a model is what the reader of .tflite files makes of it. Its only output has the
 * extremes of each row of each watched tensor: the largest element, and the smallest. */
struct CornuLiteRanges {
    CornuLiteGraph *graph;
    CornuDevice    *device;
    CornuModel     *model;
    int            *watched;      /* tensors, `count` of them */
    int             count;
    float          *extremes;     /* (BATCH, 2 count) */
    CornuArray      batches[CORNU_LITE_MAX_PORTS];
    CornuLiteRange *ranges;
};

/* ---- The watched graph ---- */

/* The result of an operator, f32 (B, columns). */
static int add(CornuLiteGraph *graph, CornuLiteCode code, const int *in, int count, int64_t columns,
               const CornuLiteOptions *options)
{
    const int out = cornu__lite_add_tensor(graph, "watched", CORNU_LITE_F32,
                                           cornu_shape(CORNU_NONE, columns));
    cornu__lite_add_operator(graph, code, in, count, &out, 1, options);
    return out;
}

/* Adds the extremes of a tensor to `so far`, those of others. */
static int watch(CornuLiteGraph *graph, int tensor, int so_far, int64_t columns)
{
    const CornuShape       shape = graph->tensors[tensor].shape;
    const int64_t          row = cornu__lite_count(shape, 1);
    const CornuLiteOptions keep = { .keep_dims = true }, rows = { .axis = 1 };
    const int              flat[] = { tensor, cornu__lite_add_integers(
                                                  graph, (int32_t[]){ -1, (int32_t)row }, 2) };
    const int by_row[] = { add(graph, CORNU_LITE_RESHAPE, flat, 2, row, NULL),
                           cornu__lite_add_integers(graph, (int32_t[]){ 1 }, 1) };
    const int all[] = { add(graph, CORNU_LITE_REDUCE_MAX, by_row, 2, 1, &keep),
                        add(graph, CORNU_LITE_REDUCE_MIN, by_row, 2, 1, &keep), so_far };
    return so_far == CORNU_LITE_NONE ? add(graph, CORNU_LITE_CONCATENATION, all, 2, 2, &rows)
                                     : add(graph, CORNU_LITE_CONCATENATION, all, 3, columns, &rows);
}

/* Extremes are of rows of the batch. A reshape may make others, as the planes of volumes. */
static CornuStatus check_rows(const CornuLiteGraph *graph)
{
    for (int i = 0; i < graph->operator_count; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        if (op->code != CORNU_LITE_RESHAPE || graph->tensors[op->in[0]].data) continue;
        const CornuLiteTensor *from = &graph->tensors[op->in[0]], *to = &graph->tensors[op->out[0]];
        CornuText              a, b;
        if (cornu__lite_count(from->shape, 1) != cornu__lite_count(to->shape, 1))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s is %s, made of %s: its rows are "
                               "not those of the batch, which 8 bits need", to->name,
                               cornu_shape_print(&a, to->shape),
                               cornu_shape_print(&b, from->shape));
    }
    return CORNU_OK;
}

/* Watches what is f32 and not a constant; the extremes become the only output. */
static CornuStatus watch_all(CornuLiteRanges *r)
{
    CornuLiteGraph *graph = r->graph;
    const int       tensors = graph->tensor_count;
    int             all = CORNU_LITE_NONE;
    CORNU__TRY(check_rows(graph));
    for (int t = 0; t < tensors; t++) {
        const CornuLiteTensor *tensor = &graph->tensors[t];
        if (tensor->dtype != CORNU_LITE_F32 || tensor->data) continue;
        if (tensor->shape.rank < 1 || tensor->shape.extent[0] != CORNU_NONE) {
            CornuText shape;
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensor %s is %s, expected a batch of any "
                               "size as its first axis", tensor->name,
                               cornu_shape_print(&shape, tensor->shape));
        }
        r->watched[r->count++] = t;
        all = watch(graph, t, all, 2 * r->count);
    }
    CORNU__TRY(graph->status);
    while (graph->output_count > 0) cornu__release(graph->outputs[--graph->output_count].name);
    cornu__lite_add_output(graph, all, "watched");
    return graph->status;
}

/* ---- The model ---- */

static CornuStatus make_arrays(CornuLiteRanges *r)
{
    const size_t count = (size_t)r->graph->tensor_count + 1;
    r->watched = cornu__allocate(count, sizeof *r->watched);
    r->extremes = cornu__allocate(2 * BATCH * count, sizeof *r->extremes);
    r->ranges = cornu__allocate(count, sizeof *r->ranges);
    if (!r->watched || !r->extremes || !r->ranges) return CORNU_ERR_MEMORY;
    for (size_t t = 0; t < count; t++) r->ranges[t] = (CornuLiteRange){ INFINITY, -INFINITY };
    if (r->graph->input_count > CORNU_LITE_MAX_PORTS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%d inputs, at most %d are handled",
                           r->graph->input_count, CORNU_LITE_MAX_PORTS);
    for (int i = 0; i < r->graph->input_count; i++) {
        const CornuLitePort   *port = &r->graph->inputs[i];
        const CornuLiteTensor *tensor = &r->graph->tensors[port->tensor];
        CornuType              type = cornu_type_from(CORNU_F32, tensor->shape);
        if (tensor->dtype != CORNU_LITE_F32)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "input %s is %s, expected f32", port->name,
                               cornu__lite_dtype_name(tensor->dtype));
        if (type.shape.rank) type.shape.extent[0] = BATCH;
        r->batches[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
        if (!r->batches[i].data) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

static CornuStatus set_up(CornuLiteRanges *r, const CornuModel *model)
{
    CornuMessage file = { 0 };
    CORNU__TRY(cornu__lite_from_model(model, NULL, &r->graph));
    CORNU__TRY(make_arrays(r));
    CORNU__TRY(watch_all(r));
    CornuStatus status = cornu__lite_to_onnx(r->graph, true, &file);
    if (!status) status = cornu__onnx_load_bytes(file.bytes, file.size, NULL, &r->model);
    cornu__release(file.bytes);
    CORNU__TRY(status);
    if (!(r->device = cornu_device_open("cpu"))) return cornu_error_take();
    return cornu_compile(r->model, .device = r->device);
}

CornuLiteRanges *cornu__lite_ranges_create(const CornuModel *model)
{
    if (cornu__refused()) return NULL;
    CornuLiteRanges *r = cornu__allocate(1, sizeof *r);
    if (!r) return cornu__null();
    if (set_up(r, model) == CORNU_OK) return r;
    cornu__lite_ranges_free(r);
    return cornu__null();
}

void cornu__lite_ranges_free(CornuLiteRanges *r)
{
    if (!r) return;
    cornu_model_free(r->model);
    if (r->device) cornu_device_close(r->device);
    for (int i = 0; i < CORNU_LITE_MAX_PORTS; i++) cornu__release(r->batches[i].data);
    cornu__lite_graph_free(r->graph);
    cornu__release(r->watched);
    cornu__release(r->extremes);
    cornu__release(r->ranges);
    cornu__release(r);
}

/* ---- The data ---- */

/* A batch; missing rows repeat the first one, which changes no range. */
static void feed(CornuLiteRanges *r, int64_t first, int64_t rows, const float *const *x)
{
    for (int i = 0; i < r->graph->input_count; i++) {
        const size_t row = cornu_type_bytes(r->batches[i].type) / BATCH;
        for (int64_t b = 0; b < BATCH; b++)
            memcpy((char *)r->batches[i].data + (size_t)b * row,
                   (const char *)x[i] + (size_t)(first + (b < rows ? b : 0)) * row, row);
    }
}

static CornuStatus widen(CornuLiteRange *range, const CornuLiteTensor *tensor, float low,
                         float high)
{
    if (!isfinite(low) || !isfinite(high))
        return cornu__fail(CORNU_ERR_VALUE, "tensor %s is not finite on the calibration data",
                           tensor->name);
    range->low = fminf(range->low, low);
    range->high = fmaxf(range->high, high);
    return CORNU_OK;
}

/* The extremes of the last tensor come first. */
static CornuStatus widen_all(CornuLiteRanges *r)
{
    for (int b = 0; b < BATCH; b++)
        for (int n = 0; n < r->count; n++) {
            const float *pair = r->extremes + 2 * (b * r->count + r->count - 1 - n);
            const int    t = r->watched[n];
            CORNU__TRY(widen(&r->ranges[t], &r->graph->tensors[t], pair[1], pair[0]));
        }
    return CORNU_OK;
}

CornuStatus cornu__lite_ranges_add(CornuLiteRanges *r, int64_t rows, const float *const *x)
{
    const CornuArray to = cornu_array(r->extremes, CORNU_F32, BATCH, 2 * r->count);
    for (int64_t first = 0; first < rows; first += BATCH) {
        feed(r, first, rows - first < BATCH ? rows - first : BATCH, x);
        CORNU__TRY(cornu_predict_on_batch_many(r->model, r->batches, &to));
        CORNU__TRY(widen_all(r));
    }
    return CORNU_OK;
}

const CornuLiteRange *cornu__lite_ranges(const CornuLiteRanges *ranges) { return ranges->ranges; }
