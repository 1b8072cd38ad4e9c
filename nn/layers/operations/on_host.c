/* Operations that move elements, such as reshape, on the host before the step: there strings are.
 * The step computes with numbers only, so what is moved is the place of each element among all of
 * the operands. */
#include <string.h>

#include "operation_internal.h"

CornuStatus cornu__operation_host_type(const CornuLayer *layer, const CornuArray *in, int in_count,
                                       CornuType *out)
{
    CornuType types[CORNU_MAX_LAYER_TENSORS];
    CornuText a, b;
    for (int i = 0; i < in_count; i++) {
        types[i] = in[i].type;
        if (types[i].dtype != types[0].dtype)
            return cornu__fail(CORNU_ERR_DTYPE, "operands are %s and %s, expected one dtype",
                               cornu_type_print(&a, types[0]), cornu_type_print(&b, types[i]));
    }
    return cornu__layer_trace((CornuLayer *)layer, types, in_count, out);
}

/* Feeds the operands with the places of their elements, counted over all. */
static CornuStatus feed_places(CornuGraph *graph, const CornuArray *in, int in_count,
                               int64_t *places, CornuTensor **operands)
{
    int64_t first = 0;
    for (int i = 0; i < in_count; i++) {
        const CornuType type = cornu_type_from(CORNU_I64, in[i].type.shape);
        const int64_t   count = cornu_type_count(type);
        for (int64_t k = 0; k < count; k++) places[first + k] = first + k;
        operands[i] = cornu_graph_input(graph, type);
        CORNU__TRY(cornu_graph_feed(operands[i], cornu_array_from(&places[first], type)));
        first += count;
    }
    return CORNU_OK;
}

/* to: the places of the elements of the result. */
static CornuStatus move_places(const CornuLayer *layer, const CornuArray *in, int in_count,
                               int64_t *places, CornuArray to)
{
    CornuTensor *operands[CORNU_MAX_LAYER_TENSORS], *results[CORNU_MAX_LAYER_TENSORS] = { NULL };
    CornuDevice *device = cornu_device_open("reference");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuStatus  status = graph ? feed_places(graph, in, in_count, places, operands)
                                : cornu_error_take();
    CornuTensor *moved = status ? NULL
                       : cornu__operation_call((CornuLayer *)layer, &(CornuCall){ .graph = graph },
                                               operands, in_count, results);
    if (!status && !moved) status = cornu_error_take();
    if (!status) status = cornu_run(graph, &moved, 1, &to);
    cornu_graph_free(graph);
    cornu_device_close(device);
    return status;
}

/* The elements at these places of the operands. */
static void gather(const CornuArray *in, int in_count, const int64_t *places, CornuArray out)
{
    const size_t  size = cornu_dtype_size(out.type.dtype);
    const int64_t count = cornu_type_count(out.type);
    for (int64_t k = 0; k < count; k++) {
        int64_t place = places[k], of;
        int     i = 0;
        while (i < in_count - 1 && place >= (of = cornu_type_count(in[i].type))) {
            place -= of;
            i++;
        }
        memcpy((char *)out.data + (size_t)k * size, (const char *)in[i].data + (size_t)place * size,
               size);
    }
}

CornuStatus cornu__operation_host_call(const CornuLayer *layer, const CornuArray *in, int in_count,
                                       CornuArray out)
{
    const CornuType type = cornu_type_from(CORNU_I64, out.type.shape);
    int64_t         count = 0;
    for (int i = 0; i < in_count; i++) count += cornu_type_count(in[i].type);
    int64_t    *places = cornu__allocate((size_t)count + 1, sizeof *places);
    int64_t    *moved = cornu__allocate((size_t)cornu_type_count(type) + 1, sizeof *moved);
    CornuStatus status = places && moved
                       ? move_places(layer, in, in_count, places, cornu_array_from(moved, type))
                       : CORNU_ERR_MEMORY;
    if (!status) gather(in, in_count, moved, out);
    cornu__release(places);
    cornu__release(moved);
    return status;
}
