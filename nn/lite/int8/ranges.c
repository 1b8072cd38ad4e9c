#include "ranges.h"

#include <math.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "record.h"

enum { BATCH = 32 };

struct CornuLiteRanges {
    const CornuLiteGraph *graph;
    CornuDevice          *device;
    CornuGraph           *computed;
    CornuTensor         **tensors;    /* of the graph's, NULL for constants of integers */
    CornuTensor         **fetches;    /* the maximum and the maximum of the negative of each */
    CornuArray           *out;        /* of the fetches, their values in `values` */
    float                *values;
    int                  *which;      /* the tensor of a pair of fetches */
    int                   count;      /* of pairs */
    float                *batches[CORNU_LITE_MAX_PORTS];
    CornuLiteRange       *ranges;
};

static CornuStatus make_arrays(CornuLiteRanges *r)
{
    const size_t count = (size_t)r->graph->tensor_count + 1;
    r->tensors = cornu__allocate(count, sizeof *r->tensors);
    r->fetches = cornu__allocate(2 * count, sizeof *r->fetches);
    r->out = cornu__allocate(2 * count, sizeof *r->out);
    r->values = cornu__allocate(2 * count, sizeof *r->values);
    r->which = cornu__allocate(count, sizeof *r->which);
    r->ranges = cornu__allocate(count, sizeof *r->ranges);
    if (!r->tensors || !r->fetches || !r->out || !r->values || !r->which || !r->ranges)
        return CORNU_ERR_MEMORY;
    for (size_t t = 0; t < count; t++) r->ranges[t] = (CornuLiteRange){ INFINITY, -INFINITY };
    if (r->graph->input_count > CORNU_LITE_MAX_PORTS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%d inputs, at most %d are handled",
                           r->graph->input_count, CORNU_LITE_MAX_PORTS);
    for (int i = 0; i < r->graph->input_count; i++) {
        const CornuLiteTensor *tensor = &r->graph->tensors[r->graph->inputs[i].tensor];
        r->batches[i] = cornu__allocate((size_t)cornu__lite_count(tensor->shape, BATCH),
                                        sizeof(float));
        if (!r->batches[i]) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

/* Fetches of what is f32 and not a constant. */
static CornuStatus fetch(CornuLiteRanges *r)
{
    for (int t = 0; t < r->graph->tensor_count; t++) {
        CornuTensor *x = r->tensors[t];
        if (!x || r->graph->tensors[t].data) continue;
        const int n = 2 * r->count;
        r->fetches[n] = cornu_op_reduce_max(x, CORNU_ALL_AXES, false);
        r->fetches[n + 1] = cornu_op_reduce_max(cornu_op_negative(x), CORNU_ALL_AXES, false);
        if (!r->fetches[n] || !r->fetches[n + 1]) return cornu_error_take();
        for (int k = n; k < n + 2; k++)
            r->out[k] = cornu_array_from(&r->values[k], cornu_scalar(CORNU_F32));
        r->which[r->count++] = t;
    }
    return CORNU_OK;
}

CornuLiteRanges *cornu__lite_ranges_create(const CornuLiteGraph *graph)
{
    if (cornu__refused()) return NULL;
    CornuLiteRanges *r = cornu__allocate(1, sizeof *r);
    if (!r) return cornu__null();
    r->graph = graph;
    CornuStatus status = make_arrays(r);
    if (status == CORNU_OK) {
        r->device = cornu_device_open("cpu");
        r->computed = r->device ? cornu_graph_create(r->device) : NULL;
        if (!r->computed) status = cornu_error_take();
    }
    if (status == CORNU_OK) status = cornu__lite_record(graph, BATCH, r->computed, r->tensors);
    if (status == CORNU_OK) status = fetch(r);
    if (status == CORNU_OK) return r;
    cornu__lite_ranges_free(r);
    return cornu__null();
}

void cornu__lite_ranges_free(CornuLiteRanges *r)
{
    if (!r) return;
    if (r->computed) cornu_graph_free(r->computed);
    if (r->device) cornu_device_close(r->device);
    for (int i = 0; i < CORNU_LITE_MAX_PORTS; i++) cornu__release(r->batches[i]);
    cornu__release(r->tensors);
    cornu__release(r->fetches);
    cornu__release(r->out);
    cornu__release(r->values);
    cornu__release(r->which);
    cornu__release(r->ranges);
    cornu__release(r);
}

/* Feeds a batch; missing rows repeat the first one, which changes no range. */
static CornuStatus feed(CornuLiteRanges *r, int64_t first, int64_t rows, const float *const *x)
{
    for (int i = 0; i < r->graph->input_count; i++) {
        const int     t = r->graph->inputs[i].tensor;
        const int64_t row = cornu__lite_count(r->graph->tensors[t].shape, 1);
        for (int64_t b = 0; b < BATCH; b++)
            memcpy(r->batches[i] + b * row, x[i] + (first + (b < rows ? b : 0)) * row,
                   (size_t)row * sizeof(float));
        const CornuStatus status = cornu_graph_feed(r->tensors[t], cornu_array_from(
            r->batches[i], cornu_tensor_type(r->tensors[t])));
        if (status != CORNU_OK) return status;
    }
    return CORNU_OK;
}

static CornuStatus widen(CornuLiteRanges *r)
{
    for (int n = 0; n < r->count; n++) {
        CornuLiteRange *range = &r->ranges[r->which[n]];
        const float     high = r->values[2 * n], low = -r->values[2 * n + 1];
        if (!isfinite(low) || !isfinite(high))
            return cornu__fail(CORNU_ERR_VALUE, "tensor %s is not finite on the calibration data",
                               r->graph->tensors[r->which[n]].name);
        range->low = fminf(range->low, low);
        range->high = fmaxf(range->high, high);
    }
    return CORNU_OK;
}

CornuStatus cornu__lite_ranges_add(CornuLiteRanges *r, int64_t rows, const float *const *x)
{
    CornuStatus status = CORNU_OK;
    for (int64_t first = 0; first < rows && status == CORNU_OK; first += BATCH) {
        status = feed(r, first, rows - first < BATCH ? rows - first : BATCH, x);
        if (status == CORNU_OK) status = cornu_run(r->computed, r->fetches, 2 * r->count, r->out);
        if (status == CORNU_OK) status = widen(r);
    }
    return status;
}

const CornuLiteRange *cornu__lite_ranges(const CornuLiteRanges *ranges) { return ranges->ranges; }
