/* The weights of a quantized kernel. */
#include "../quantized_internal.h"

#include <stdio.h>
#include <string.h>

/* ---- Declaring ---- */

static CornuStatus add(CornuLayer *layer, const CornuQuantizable *kernel, const char *suffix,
                       CornuShape shape, CornuInitializer initializer, CornuStored stored)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s", kernel->name, suffix);
    CORNU__TRY(cornu_layer_weight(layer, name, shape, initializer, true));
    layer->weights[layer->own_count - 1]->stored = stored;
    return CORNU_OK;
}

static int64_t halved(int64_t extent) { return (extent + 1) / 2; }

/* g_idx: the number of each row's block. */
static CornuStatus add_index(CornuLayer *layer, int64_t rows, int64_t block)
{
    const CornuShape shape = cornu_shape(rows);
    CORNU__TRY(cornu_layer_weight(layer, "g_idx", shape, CORNU_ZEROS, true));
    CornuWeight *weight = layer->weights[layer->own_count - 1];
    weight->stored = CORNU_STORED_F32;
    weight->host = cornu__allocate((size_t)rows, sizeof(float));
    if (!weight->host) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < rows; i++) weight->host[i] = (float)(i / block);
    return CORNU_OK;
}

static CornuStatus declare_int4(CornuLayer *layer, const CornuQuantizable *kernel)
{
    const int64_t rows = kernel->rows, columns = kernel->columns, block = cornu__block(layer);
    const int64_t outputs = kernel->by_row ? rows : columns;
    const int64_t summed = kernel->by_row ? columns : rows;
    CornuShape    packed = cornu_shape(rows, halved(columns)), scale = cornu_shape(outputs);
    if (kernel->packs_rows) packed = cornu_shape(halved(rows), columns);
    CORNU__TRY(add(layer, kernel, "", packed, CORNU_ZEROS, CORNU_STORED_I8));
    if (block == CORNU_NONE)
        return add(layer, kernel, "_scale", scale, CORNU_ONES, CORNU_STORED_BY_POLICY);
    const int64_t blocks = (summed + block - 1) / block;
    scale = kernel->by_row ? cornu_shape(outputs, blocks) : cornu_shape(blocks, outputs);
    CORNU__TRY(add(layer, kernel, "_scale", scale, CORNU_ONES, CORNU_STORED_BY_POLICY));
    CORNU__TRY(add(layer, kernel, "_zero", scale, CORNU_ZEROS,
                   kernel->follows ? CORNU_STORED_BY_POLICY : CORNU_STORED_I8));
    return kernel->follows ? CORNU_OK : add_index(layer, summed, block);
}

CornuStatus cornu__kernels_declare(CornuLayer *layer, const CornuQuantizable *kernels, int count)
{
    const CornuQuantization mode = cornu__quantization(layer);
    CornuQuantizable *copy = cornu__allocate((size_t)count, sizeof *copy);
    if (!copy) return CORNU_ERR_MEMORY;
    memcpy(copy, kernels, (size_t)count * sizeof *copy);
    CORNU__TRY(cornu__layer_keep(layer, copy));
    layer->kernels = copy;
    layer->kernel_count = count;
    if (mode == CORNU_INT8 || mode == CORNU_INT4) return CORNU_OK;
    if (mode == CORNU_FLOAT8) CORNU__TRY(cornu__float8_declare(layer));
    for (int i = 0; i < count; i++) {
        CORNU__TRY(cornu_layer_weight(layer, copy[i].name, copy[i].shape, copy[i].initializer,
                                      false));
        CORNU__TRY(cornu_layer_weight_rules(layer, copy[i].regularizer, copy[i].constraint));
    }
    return CORNU_OK;
}

static CornuStatus declare_int8(CornuLayer *layer, const CornuQuantizable *kernel)
{
    CORNU__TRY(add(layer, kernel, "", kernel->shape, CORNU_ZEROS, CORNU_STORED_I8));
    return add(layer, kernel, "_scale", kernel->scale, CORNU_ONES, CORNU_STORED_BY_POLICY);
}

CornuStatus cornu__kernels_finish(CornuLayer *layer)
{
    const CornuQuantization mode = cornu__quantization(layer);
    for (int i = 0; i < layer->kernel_count; i++)
        if (mode == CORNU_INT8) CORNU__TRY(declare_int8(layer, &layer->kernels[i]));
        else if (mode == CORNU_INT4) CORNU__TRY(declare_int4(layer, &layer->kernels[i]));
    return CORNU_OK;
}

/* ---- What they stand for ---- */

static CornuTensor *read_f32(CornuLayer *layer, const CornuCall *call, int i)
{
    return cornu__layer_read_plain(layer, call, i, CORNU_F32);
}

/* Two whole numbers from -8 to 7 in each from -128 to 127: p = 16 high + (low mod 16). `axis` is
 * that of the pairs, of which there are `extent` numbers. */
static CornuTensor *unpack(CornuTensor *p, int axis, int64_t extent)
{
    CornuTensor *high = cornu_op_floor(cornu_op_scale(p, 1.0 / 16.0));
    CornuTensor *low = cornu_op_subtract(p, cornu_op_scale(high, 16.0));
    CornuTensor *wraps = cornu_op_floor(cornu_op_scale(low, 1.0 / 8.0));
    low = cornu_op_subtract(low, cornu_op_scale(wraps, 16.0));
    if (!low) return NULL;
    CornuShape one = cornu_tensor_shape(p), both = one;
    for (int i = one.rank; i > axis + 1; i--) one.extent[i] = one.extent[i - 1];
    one.extent[axis + 1] = 1;
    one.rank++;
    CornuTensor *const parts[] = { cornu_op_reshape(low, one), cornu_op_reshape(high, one) };
    both.extent[axis] *= 2;
    CornuTensor *y = cornu_op_reshape(cornu_op_concat(parts, 2, axis + 1), both);
    if (both.extent[axis] == extent) return y;
    int64_t starts[CORNU_MAX_RANK] = { 0 };
    both.extent[axis] = extent;
    return cornu_op_slice(y, starts, both.extent);
}

/* The scale of int8, with an extent of 1 along the axes of the kernel that it spans. */
static CornuTensor *along_kernel(const CornuQuantizable *kernel, CornuTensor *scale)
{
    CornuShape order = { .rank = kernel->kept_count }, full = kernel->shape;
    int        axes[CORNU_MAX_RANK], at = 0;
    for (int i = 0; i < full.rank; i++) {
        int k = 0;
        while (k < kernel->kept_count && kernel->kept[k] != i) k++;
        if (k == kernel->kept_count) full.extent[i] = 1;
        else axes[at++] = k;
    }
    for (int k = 0; k < kernel->kept_count; k++)
        order.extent[k] = kernel->shape.extent[kernel->kept[k]];
    scale = cornu_op_reshape(scale, order);
    if (order.rank > 1) scale = cornu_op_transpose(scale, axes);
    return cornu_op_reshape(scale, full);
}

CornuTensor *cornu__kernel_integers(CornuLayer *layer, const CornuCall *call,
                                    const CornuQuantizable *kernel)
{
    CornuTensor *q = read_f32(layer, call, cornu__kernel_weight(layer, kernel, ""));
    if (cornu__quantization(layer) == CORNU_INT8) return q;
    return kernel->packs_rows ? unpack(q, 0, kernel->rows) : unpack(q, 1, kernel->columns);
}

/* For each row or column of a matrix its block's number: x (blocks, n) to (rows, n), or x
 * (n, blocks) to (n, columns). */
static CornuTensor *spread_blocks(CornuTensor *x, CornuTensor *index, bool by_row)
{
    static const int swapped[] = { 1, 0 };
    index = cornu_op_convert(index, CORNU_I32);
    if (!by_row) return cornu_op_gather(x, index);
    x = cornu_op_gather(cornu_op_transpose(x, swapped), index);
    return cornu_op_transpose(x, swapped);
}

/* (q - zero) scale, in `dtype`, for a matrix; for one of looked up rows `scale` and `zero` are
 * those of the rows. */
static CornuTensor *in_blocks(CornuLayer *layer, const CornuCall *call,
                              const CornuQuantizable *kernel, CornuTensor *q, CornuTensor *scale,
                              CornuTensor *zero, CornuDtype dtype)
{
    CornuTensor *index = read_f32(layer, call, cornu__weight_index(layer, "g_idx"));
    zero = spread_blocks(zero, index, kernel->by_row);
    scale = cornu_op_convert(spread_blocks(scale, index, kernel->by_row), dtype);
    return cornu_op_multiply(cornu_op_convert(cornu_op_subtract(q, zero), dtype), scale);
}

CornuTensor *cornu__kernel_floats(CornuLayer *layer, const CornuCall *call,
                                  const CornuQuantizable *kernel)
{
    const CornuQuantization mode = cornu__quantization(layer);
    if (mode != CORNU_INT8 && mode != CORNU_INT4)
        return cornu_layer_read(layer, call, cornu__kernel_weight(layer, kernel, ""));
    CornuTensor *q = cornu__kernel_integers(layer, call, kernel);
    CornuTensor *scale = read_f32(layer, call, cornu__kernel_weight(layer, kernel, "_scale"));
    if (cornu__has_blocks(layer)) {
        CornuTensor *zero = read_f32(layer, call, cornu__kernel_weight(layer, kernel, "_zero"));
        q = in_blocks(layer, call, kernel, q, scale, zero, layer->compute);
    } else {
        scale = cornu_op_convert(scale, layer->compute);
        if (mode == CORNU_INT8) scale = along_kernel(kernel, scale);
        else if (kernel->by_row) scale = cornu_op_reshape(scale, cornu_shape(kernel->rows, 1));
        q = cornu_op_divide(cornu_op_convert(q, layer->compute), scale);
    }
    return cornu_op_reshape(q, kernel->shape);
}

CornuTensor *cornu__kernel_rows(CornuLayer *layer, const CornuCall *call,
                                const CornuQuantizable *kernel, CornuTensor *indices)
{
    const CornuQuantization mode = cornu__quantization(layer);
    const int               table = cornu__kernel_weight(layer, kernel, "");
    if (!mode) return cornu_op_gather(cornu_layer_read(layer, call, table), indices);
    if (!indices) return NULL;
    CornuShape   shape = cornu_tensor_shape(indices);
    indices = cornu_op_reshape(indices, cornu_shape(CORNU_NONE));
    CornuTensor *q = cornu_op_gather(read_f32(layer, call, table), indices);
    CornuTensor *scale = read_f32(layer, call, cornu__kernel_weight(layer, kernel, "_scale"));
    if (!cornu__has_blocks(layer)) scale = cornu_op_reshape(scale, cornu_shape(kernel->rows, 1));
    scale = cornu_op_gather(scale, indices);
    if (mode == CORNU_INT4) q = unpack(q, 1, kernel->columns);
    if (cornu__has_blocks(layer)) {
        CornuTensor *zero = read_f32(layer, call, cornu__kernel_weight(layer, kernel, "_zero"));
        q = in_blocks(layer, call, kernel, q, scale, cornu_op_gather(zero, indices), CORNU_F32);
    } else {
        q = cornu_op_divide(q, scale);
    }
    if (layer->weights[table]->lora_a) {
        CornuTensor *lora = cornu_op_gather(cornu__layer_lora(layer, call, table, kernel->shape),
                                            indices);
        q = cornu_op_add(q, lora);
    }
    q = cornu_op_convert(q, layer->result);
    shape.extent[shape.rank++] = kernel->columns;
    return cornu_op_reshape(q, shape);
}
