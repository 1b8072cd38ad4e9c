#include "../../../tensor/functions/functions_internal.h"
#include "../quantized_internal.h"

typedef CORNU__LAYER(CornuDenseConfig) Dense;

static CornuStatus dense_build(CornuLayer *layer, CornuShape input)
{
    const CornuDenseConfig *config = &((Dense *)layer)->config;
    CornuText text;
    if (input.rank < 2)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected (B, …, C)",
                           cornu_shape_print(&text, input));
    const int64_t features = input.extent[input.rank - 1];
    const CornuQuantizable kernel = {
        .name = "kernel", .shape = cornu_shape(features, config->units), .kept = { 1 },
        .kept_count = 1, .scale = cornu_shape(config->units), .rows = features,
        .columns = config->units, .initializer = config->kernel_initializer,
        .regularizer = config->kernel_regularizer, .constraint = config->kernel_constraint,
    };
    CORNU__TRY(cornu__kernels_declare(layer, &kernel, 1));
    if (!config->no_bias) {
        CORNU__TRY(cornu_layer_weight(layer, "bias", cornu_shape(config->units),
                                      config->bias_initializer, false));
        CORNU__TRY(cornu_layer_weight_rules(layer, config->bias_regularizer,
                                            config->bias_constraint));
    }
    return cornu__kernels_finish(layer);
}

static CornuTensor *matmul(const void *context, CornuTensor *x, CornuTensor *kernel,
                           CornuDtype dtype)
{
    (void)context;
    return cornu_op_matmul_to(x, kernel, dtype);
}

/* As cornu__dense, with a kernel of whole numbers or of float8. */
static CornuTensor *quantized(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuDenseConfig *config = &((Dense *)layer)->config;
    CornuShape shape = cornu_tensor_shape(x);
    const int  last = shape.rank - 1;
    if (shape.rank > 2)
        x = cornu_op_reshape(x, cornu_shape(CORNU_NONE, shape.extent[last]));
    const CornuProduct product = {
        .kernel = layer->kernels, .function = matmul, .pairs = { { 1, 0 } }, .pair_count = 1,
        .from_x = { 0, -1 }, .rank = 2, .last_scaled = true,
    };
    CornuTensor *y = cornu__kernel_product(layer, call, x, &product, false);
    if (!config->no_bias) y = cornu_op_add(y, cornu__kernel_bias(layer, call));
    shape.extent[last] = config->units;
    return shape.rank > 2 ? cornu_op_reshape(y, shape) : y;
}

/* The last layer returns the product's f32 sums, whatever the dtype of the operands. */
static CornuTensor *dense_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuDenseConfig *config = &((Dense *)layer)->config;
    CornuTensor            *y;
    if (!x) return NULL;
    if (cornu__quantization(layer)) y = quantized(layer, call, x);
    else y = cornu__dense(x, cornu_layer_read(layer, call, 0),
                          config->no_bias ? NULL : cornu__kernel_bias(layer, call), layer->result);
    return cornu__layer_activate(layer, call, config->activation, y);
}

static CornuStatus dense_resolve(CornuLayer *layer)
{
    CornuDenseConfig *config = &((Dense *)layer)->config;
    if (config->units < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .units is %lld, expected at least 1",
                           cornu_layer_name(layer), (long long)config->units);
    return cornu__resolve_activation(layer, &config->activation);
}

static const CornuField fields[] = {
    { "units", CORNU_FIELD_INTEGER, offsetof(CornuDenseConfig, units) },
    CORNU__KERNEL_FIELDS(CornuDenseConfig),
    { 0 },
};

const CornuLayerClass cornu__dense_class = {
    .class_name = "Dense", .size = sizeof(Dense), .build = dense_build, .call = dense_call,
    .keras = &(const CornuKerasClass){
        CORNU__TRAINED(fields, Dense, dense_resolve), .lora = "kernel", .lora_resets_alpha = true,
        .quantizes = 1 << CORNU_INT8 | 1 << CORNU_INT4 | 1 << CORNU_FLOAT8,
    },
};

CORNU__CONSTRUCTOR(dense, CornuDenseConfig)
