/* User-defined layers, which are written op by op; together they record all ops of inference. */
#include "onnx_models.h"

/* Elementwise ops, with constants and positions that broadcast. x (B, 4, 3). */
static CornuTensor *elements(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    CornuTensor *w = cornu_layer_read(layer, call, 0);      /* (3) */
    CornuType    column = { CORNU_I32, cornu_shape(1, 4, 1) };
    CornuTensor *step = cornu_op_convert(cornu_op_iota(call->graph, column, 1), CORNU_F32);
    CornuTensor *y = cornu_op_add(cornu_op_multiply(x, w), cornu_op_scale(step, 0.25));
    CornuTensor *flat = cornu_op_compare(cornu_op_absolute(y), CORNU_LESS,
                                         cornu_op_constant_like(y, 0.5));
    CornuTensor *odd = cornu_op_compare(step, CORNU_NOT_EQUAL,
                                        cornu_op_scale(cornu_op_floor(cornu_op_scale(step, 0.5)),
                                                       2.0));
    CornuTensor *both = cornu_op_select(flat, cornu_op_broadcast(odd, cornu_tensor_shape(y)),
                                        cornu_op_is_finite(y));
    CornuTensor *waves = cornu_op_add(cornu_op_sin(y), cornu_op_cos(cornu_op_square(y)));
    CornuTensor *bent = cornu_op_add(cornu_op_tanh(y), cornu_op_elu(cornu_op_negative(y), 0.5));
    bent = cornu_op_maximum(bent, cornu_op_erf(cornu_op_sigmoid(y)));
    CornuTensor *size = cornu_op_shift(cornu_op_absolute(y), 0.5);
    CornuTensor *roots = cornu_op_divide(cornu_op_sqrt(size), cornu_op_power(size, cornu_op_rsqrt(
                                                                  size)));
    CornuTensor *tail = cornu_op_minimum(cornu_op_log(size), cornu_op_exp(cornu_op_softplus(y)));
    tail = cornu_op_subtract(tail, cornu_op_multiply(cornu_op_step(y), cornu_op_sign(y)));
    tail = cornu_op_add(tail, cornu_op_relu(roots));
    return cornu_op_select(both, cornu_op_add(waves, bent), tail);
}

/* Ops that move, reduce and look up. x (B, 4, 3). */
static CornuTensor *moves(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer;
    const int64_t low[] = { 0, 1, 0 }, high[] = { 0, 0, 2 }, from[] = { 0, 1, 0 };
    const int64_t rows = cornu_tensor_shape(x).extent[0], size[] = { rows, 3, 3 };
    CornuTensor  *wide = cornu_op_pad(x, low, high, -1.0);                      /* (B, 5, 5) */
    CornuTensor  *turned = cornu_op_transpose(wide, (const int[]){ 0, 2, 1 });
    CornuTensor  *product = cornu_op_matmul_transposed(wide, true, turned, false);
    CornuTensor  *parts[] = { cornu_op_flip(product, 1),
                              cornu_op_softmax(cornu_op_broadcast(
                                  cornu_op_reduce_max(product, 4, true),
                                  cornu_shape(rows, 5, 5))) };
    CornuTensor  *joined = cornu_op_concat(parts, 2, 2);                        /* (B, 5, 10) */
    CornuTensor  *best = cornu_op_argmax(joined, 2);                            /* (B, 5) */
    CornuTensor  *chosen = cornu_op_one_hot(best, 10, CORNU_F32);
    CornuTensor  *table = cornu_op_reshape(cornu_op_convert(cornu_op_iota(
        call->graph, cornu_type(CORNU_I32, 20), 0), CORNU_F32), cornu_shape(10, 2));
    CornuTensor  *found = cornu_op_gather(table, best);                         /* (B, 5, 2) */
    CornuTensor  *cut = cornu_op_log_softmax(cornu_op_slice(x, from, size));    /* (B, 3, 3) */
    CornuTensor  *all[] = { cornu_op_reshape(chosen, cornu_shape(rows, 50)),
                            cornu_op_reshape(found, cornu_shape(CORNU_NONE, 10)),
                            cornu_op_reshape(cut, cornu_shape(rows, 9)),
                            cornu_op_reduce_sum(joined, 2, false) };
    return cornu_op_concat(all, 4, 1);
}

/* Windows over images: padding of both signs, and rows that no window reaches. x (B, 6, 6, 2). */
static CornuTensor *windows(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuConvolution in = { .strides = { 2, 1 }, .low = { -1, 1 }, .high = { 2, 1 } };
    const CornuConvolution out = { .strides = { 2, 3 }, .low = { -1, 1 }, .high = { 0, 0 },
                                   .groups = 2 };
    const CornuWindow  pool = { .size = { 2, 2 }, .strides = { 2, 1 }, .low = { 1, 0 } };
    CornuTensor *y = cornu_op_conv2d(x, cornu_layer_read(layer, call, 0), &in); /* (B, 3, 6, 2) */
    CornuTensor *z = cornu_op_conv2d_grad_input(y, cornu_layer_read(layer, call, 1), 8, 17, &out);
    z = cornu_op_add(cornu_op_max_pool2d(z, &pool), cornu_op_average_pool2d(z, &pool));
    return z;
}

static CornuStatus build_elements(CornuLayer *layer, CornuShape input)
{
    return cornu_layer_weight(layer, "w", cornu_shape(input.extent[2]),
                              CORNU_ONES, false);
}

static CornuStatus build_windows(CornuLayer *layer, CornuShape input)
{
    const CornuInitializer ones = CORNU_ONES;
    CornuStatus status = cornu_layer_weight(layer, "in", cornu_shape(3, 3, input.extent[3], 2),
                                            ones, false);
    return status ? status : cornu_layer_weight(layer, "out", cornu_shape(2, 3, 2, 2), ones, false);
}

static const CornuLayerClass elements_class = {
    .class_name = "Elements", .size = sizeof(CornuLayer), .build = build_elements,
    .call = elements,
};
static const CornuLayerClass moves_class = {
    .class_name = "Moves", .size = sizeof(CornuLayer), .call = moves,
};
static const CornuLayerClass windows_class = {
    .class_name = "Windows", .size = sizeof(CornuLayer), .build = build_windows, .call = windows,
};

static CornuLayer *of(const CornuLayerClass *kind) { return cornu_layer_create(kind, NULL, NULL); }

CornuModel *onnx_own_layers(void)
{
    CornuSymbol *x = cornu_input(.shape = { 4, 3 }), *image = cornu_input(.shape = { 6, 6, 2 });
    return cornu_model(.inputs = { x, image }, .name = "own",
                       .outputs = { cornu_call(of(&elements_class), x),
                                    cornu_call(of(&moves_class), x),
                                    cornu_call(of(&windows_class), image) });
}
