#include "../layer_internal.h"

#include <string.h>

/* Its layer is the inner layer. */
typedef CORNU__LAYER(CornuSpectralNormalizationConfig) SpectralNormalization;

/* The index among the layer's weights of the inner kernel or embeddings; -1 if there is none. */
static int kernel_of(const CornuLayer *layer)
{
    for (int i = layer->own_count; i < layer->weight_count; i++) {
        const char *name = strrchr(layer->weights[i]->path, '/') + 1;
        if (!strcmp(name, "kernel") || !strcmp(name, "embeddings")) return i;
    }
    return -1;
}

static CornuWeight *lists(const CornuLayer *layer) { return layer->weights[kernel_of(layer)]; }

static CornuStatus spectral_normalization_build(CornuLayer *layer, CornuShape input)
{
    CORNU__TRY(cornu__layer_build_inner(layer, 0, input));
    const int kernel = kernel_of(layer);
    if (kernel < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "its .layer, of class %s, has no kernel and no "
                           "embeddings", layer->inner[0]->kind->class_name);
    const CornuShape shape = layer->weights[kernel]->type.shape;
    return cornu_layer_weight(layer, "vector_u", cornu_shape(1, shape.extent[shape.rank - 1]),
                              cornu_truncated_normal(.stddev = 0.02), true);
}

/* x as a constant for gradients: the mean of a batch of one row, which carries none. */
static CornuTensor *stopped(CornuTensor *x)
{
    if (!x) return NULL;
    const CornuShape shape = cornu_tensor_shape(x);
    const CornuType  each = cornu_type(CORNU_F32, cornu_shape_count(shape));
    CornuGraph  *graph = cornu_tensor_graph(x);
    CornuTensor *mean, *variance;
    CornuTensor *row = cornu_op_reshape(x, cornu_shape(1, CORNU_NONE));
    if (!cornu_op_batch_norm(row, cornu_op_constant(graph, each, 1.0),
                             cornu_op_constant(graph, each, 0.0),
                             cornu_op_constant(graph, cornu_scalar(CORNU_I64), 1.0), 1.0, &mean,
                             &variance))
        return NULL;
    return cornu_op_reshape(mean, shape);
}

/* x / |x| */
static CornuTensor *unit(CornuTensor *x)
{
    CornuTensor *squares = cornu_op_reduce_sum(cornu_op_square(x), CORNU_ALL_AXES, false);
    CornuTensor *least = squares ? cornu_op_constant_like(squares, 1e-24) : NULL;
    return cornu_op_multiply(x, cornu_op_rsqrt(cornu_op_maximum(squares, least)));
}

/* The kernel over its largest singular value, and *u after the iterations. A kernel of zeros stays
 * as it is, and so does u. */
static CornuTensor *normalized(CornuLayer *layer, const CornuCall *call, int kernel,
                               CornuTensor **u)
{
    const int64_t iterations = ((SpectralNormalization *)layer)->config.power_iterations;
    CornuTensor  *w = cornu_layer_read_as(layer, call, kernel, CORNU_F32);
    if (!w) return NULL;
    const CornuShape shape = cornu_tensor_shape(w);
    CornuTensor *matrix = cornu_op_reshape(w, cornu_shape(CORNU_NONE,
                                                          shape.extent[shape.rank - 1]));
    CornuTensor *fixed = stopped(matrix), *before = cornu_layer_read_as(layer, call, 0, CORNU_F32);
    CornuTensor *v = NULL;
    *u = before;
    for (int64_t i = 0; i < iterations; i++) {
        v = unit(cornu_op_matmul_transposed(*u, false, fixed, true));
        *u = unit(cornu_op_matmul(v, fixed));
    }
    CornuTensor *value = cornu_op_matmul_transposed(cornu_op_matmul(v, matrix), false, *u, true);
    CornuTensor *most = cornu_op_reduce_max(cornu_op_absolute(fixed), CORNU_ALL_AXES, false);
    CornuTensor *none = most ? cornu_op_compare(most, CORNU_EQUAL,
                                                cornu_op_constant_like(most, 0.0)) : NULL;
    if (!value || !none) return NULL;
    value = cornu_op_select(none, cornu_op_constant_like(value, 1.0), value);
    *u = cornu_op_select(none, before, *u);
    return cornu_op_reshape(cornu_op_divide(matrix, value), shape);
}

static CornuTensor *spectral_normalization_call(CornuLayer *layer, const CornuCall *call,
                                                CornuTensor *x)
{
    CornuCall     inner = *call;
    CornuReplaced replaced = { .next = call->replaced };
    CornuTensor  *u;
    if (!cornu__in_training(call)) return cornu_layer_call(layer->inner[0], &inner, x);
    const int kernel = kernel_of(layer);
    replaced.weight = layer->weights[kernel];
    replaced.value = normalized(layer, call, kernel, &u);
    if (!replaced.value || cornu_layer_assign(layer, call, 0, u)) return NULL;
    inner.replaced = &replaced;
    return cornu_layer_call(layer->inner[0], &inner, x);
}

/* Keras warns that the layer ends a mask, but its output has that of the inner layer. */
static CornuTensor *mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    return cornu_layer_mask(layer->inner[0], call, x);
}

static CornuLayer *spectral_normalization_from(const void *config)
{
    return cornu_spectral_normalization_from(config);
}

#define FIELD(field) offsetof(CornuSpectralNormalizationConfig, field)
static const CornuField fields[] = {
    { "layer", CORNU_FIELD_LAYER, FIELD(layer) },
    { "power_iterations", CORNU_FIELD_INTEGER, FIELD(power_iterations) },
    { 0 },
};

static const char *const folders[] = { "layer", NULL };

const CornuLayerClass cornu__spectral_normalization_class = {
    .class_name = "SpectralNormalization", .size = sizeof(SpectralNormalization),
    .build = spectral_normalization_build, .call = spectral_normalization_call, .mask = mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, SpectralNormalization,
                                                    spectral_normalization_from),
                                       .folders = folders, .lists = lists },
};

static CornuStatus spectral_normalization_check(const CornuSpectralNormalizationConfig *config,
                                                const char *name)
{
    const CornuLayer *inner = config->layer;
    if (!inner) return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layer is required", name);
    if (config->power_iterations)
        CORNU__TRY(cornu__positive(name, "power_iterations", config->power_iterations));
    if (inner->inner_count > 0 || inner->kind->call_many || cornu_layer_outputs(inner) > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .layer is of class %s, expected one with a "
                           "kernel or embeddings", name, inner->kind->class_name);
    return cornu__check_depth(name, inner);
}

CornuLayer *cornu_spectral_normalization_from(const CornuSpectralNormalizationConfig *config)
{
    const char *name = config->name ? config->name : "spectral_normalization";
    CornuLayer *layer = NULL;
    if (!cornu__refused() && !spectral_normalization_check(config, name))
        layer = cornu_layer_create(&cornu__spectral_normalization_class, config->name,
                                   config->dtype);
    if (!layer) {
        cornu__layer_free_unowned(config->layer);
        return cornu__null();
    }
    cornu__layer_add_inner(layer, config->layer, "");
    layer->takes_integers = config->layer->takes_integers;
    CornuSpectralNormalizationConfig *to = &((SpectralNormalization *)layer)->config;
    to->layer = config->layer;
    to->power_iterations = config->power_iterations ? config->power_iterations : 1;
    layer->frozen = config->frozen;
    return layer;
}
