/* Adding operators and constants to the graph, for the rules. */
#include "rules_internal.h"

#include "../../model/model_internal.h"

#include <stdio.h>

CornuStatus cornu__lite_refuse(const CornuLayer *layer, const char *what, const char *why)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s is not available in .tflite files, %s",
                       layer ? cornu_layer_name(layer) : "an activation", what, why);
}

/* ---- Operators ---- */

int cornu__lite_node_of(CornuLite *to, CornuLiteCode code, const int *in, int in_count,
                        CornuLiteDtype dtype, CornuShape shape, const CornuLiteOptions *options)
{
    char name[200];
    for (int i = 0; i < in_count; i++) cornu__lite_settle(to, in[i]);
    snprintf(name, sizeof name, "%.150s/%s", to->name, cornu__lite_code_name(code));
    const int out = cornu__lite_add_tensor(to->graph, name, dtype, shape);
    cornu__lite_add_operator(to->graph, code, in, in_count, &out, 1, options);
    return to->graph->status ? CORNU_LITE_NONE : out;
}

int cornu__lite_node(CornuLite *to, CornuLiteCode code, const int *in, int in_count,
                     CornuShape shape, const CornuLiteOptions *options)
{
    return cornu__lite_node_of(to, code, in, in_count, CORNU_LITE_F32, shape, options);
}

CornuShape cornu__lite_joined(CornuShape a, CornuShape b)
{
    const CornuShape thin = a.rank < b.rank ? a : b;
    CornuShape       wide = a.rank < b.rank ? b : a;
    for (int i = 0; i < thin.rank; i++) {
        int64_t *extent = &wide.extent[wide.rank - thin.rank + i];
        if (*extent == 1) *extent = thin.extent[i];
    }
    return wide;
}

int cornu__lite_two(CornuLite *to, CornuLiteCode code, int a, int b)
{
    const int in[] = { a, b };
    return cornu__lite_node(to, code, in, 2, cornu__lite_joined(shape_of(to, a), shape_of(to, b)),
                            NULL);
}

int cornu__lite_with(CornuLite *to, CornuLiteCode code, int x, double value)
{
    return cornu__lite_two(to, code, x, cornu__lite_add_scalar(to->graph, (float)value));
}

/* The batch is inferred. */
int cornu__lite_reshape(CornuLite *to, int x, CornuShape shape)
{
    CornuLiteOptions options = { .extent_count = shape.rank };
    for (int i = 0; i < shape.rank; i++) options.extents[i] = (int32_t)shape.extent[i];
    const int in[] = { x, cornu__lite_add_integers(to->graph, options.extents, shape.rank) };
    return cornu__lite_node(to, CORNU_LITE_RESHAPE, in, 2, shape, &options);
}

int cornu__lite_reduce(CornuLite *to, CornuLiteCode code, int x, int64_t axes, bool keep)
{
    const CornuShape from = shape_of(to, x);
    CornuShape       shape = { 0 };
    int32_t          list[CORNU_MAX_RANK];
    int              count = 0;
    for (int i = 0; i < from.rank; i++) {
        const bool reduced = axes >> i & 1;
        if (reduced) list[count++] = i;
        if (!reduced || keep) shape.extent[shape.rank++] = reduced ? 1 : from.extent[i];
    }
    const int in[] = { x, cornu__lite_add_integers(to->graph, list, count) };
    return cornu__lite_node(to, code, in, 2, shape, &(CornuLiteOptions){ .keep_dims = keep });
}

/* ---- Constants ---- */

static const CornuNamedArray *weight_of(const CornuLite *to, const CornuLayer *layer, int i)
{
    return &to->weights->arrays[cornu__model_weight_index(to->model, layer->weights[i])];
}

const float *cornu__lite_values(const CornuLite *to, const CornuLayer *layer, int i)
{
    return weight_of(to, layer, i)->array.data;
}

int cornu__lite_weight(CornuLite *to, const CornuLayer *layer, int i)
{
    const CornuNamedArray *weight = weight_of(to, layer, i);
    return cornu__lite_add_constant(to->graph, weight->name, CORNU_LITE_F32,
                                    layer->weights[i]->type.shape, weight->array.data);
}

int cornu__lite_room(CornuLite *to, const char *what, CornuShape shape)
{
    char name[200];
    snprintf(name, sizeof name, "%.150s/%s", to->name, what);
    return cornu__lite_add_constant(to->graph, name, CORNU_LITE_F32, shape, NULL);
}

float *cornu__lite_data(CornuLite *to, int constant)
{
    return constant < 0 ? NULL : to->graph->tensors[constant].data;
}
