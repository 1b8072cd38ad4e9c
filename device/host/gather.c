/* Rows of a table by index, and the sums of gradients by index. */
#include <string.h>

#include "../integer_internal.h"
#include "bf16.h"
#include "kernels.h"
#include "vector.h"

enum {
    GRAIN = 65536,     /* bytes that one block of gather moves                            */
    COLUMNS = 128      /* that one block of gather_grad sums, over all rows in their order */
};

static int64_t index_at(CornuArray indices, int64_t i)
{
    switch (indices.type.dtype) {
    case CORNU_I64: return ((const int64_t *)indices.data)[i];
    case CORNU_I32: return ((const int32_t *)indices.data)[i];
    case CORNU_U8:  return ((const uint8_t *)indices.data)[i];
    default:        return (int64_t)cornu_array_get(indices, i);
    }
}

static CornuArray indices_of(const CornuKernelCall *call)
{
    return (CornuArray){ call->op.in[1], (void *)(uintptr_t)call->in[1] };
}

/* The first index that names no row is the fault, whatever the threads. */
static CornuStatus check(CornuArray indices, int64_t rows)
{
    const int64_t count = cornu_type_count(indices.type);
    for (int64_t i = 0; i < count; i++) {
        const int64_t index = index_at(indices, i);
        if (index < 0 || index >= rows)
            return cornu__fail(CORNU_ERR_VALUE, "index %lld in row %lld, expected 0 to %lld",
                               (long long)index, (long long)i, (long long)rows - 1);
    }
    return CORNU_OK;
}

/* ---- gather: table (V, C), indices (N), y (N, C), any dtype ---- */

typedef struct {
    const char *table;
    char       *y;
    CornuArray  indices;
    int64_t     count, grain;
    size_t      bytes;     /* of a row */
} Gather;

static void gather_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Gather *g = context;
    const int64_t end = smaller(g->count, (block + 1) * g->grain);
    for (int64_t i = block * g->grain; i < end; i++)
        memcpy(g->y + (size_t)i * g->bytes,
               g->table + (size_t)index_at(g->indices, i) * g->bytes, g->bytes);
}

static CornuStatus gather(const CornuKernelCall *call)
{
    const CornuType table = call->op.in[0];
    Gather g = { .table = call->in[0], .y = call->out[0], .indices = indices_of(call),
                 .count = cornu_type_count(call->op.in[1]),
                 .bytes = (size_t)table.shape.extent[1] * cornu_dtype_size(table.dtype) };
    CORNU__TRY(check(g.indices, table.shape.extent[0]));
    g.grain = larger(1, GRAIN / larger(1, (int64_t)g.bytes));
    cornu__threads_run(call->threads, ceil_divide(g.count, g.grain), gather_block, &g);
    return CORNU_OK;
}

const CornuKernel cornu__host_gather = { .accepts = cornu__accepts_all, .run = gather };

/* ---- gather_grad: d_y (N, C) f32 or bf16, indices (N), d_table (V, C) f32 ---- */

typedef struct {
    const CornuKernelCall *call;
    CornuArray             indices;
    int64_t                count, columns;
} Sum;

/* All rows of d_y in their order, some columns: no thread adds to what another adds to. */
static void sum_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Sum    *sum = context;
    const int64_t first = block * COLUMNS, width = smaller(COLUMNS, sum->columns - first);
    const bool    narrow = sum->call->op.in[0].dtype == CORNU_BF16;
    float        *to = (float *)sum->call->out[0] + first, wide[COLUMNS];
    void  (*const add)(float *, const float *, int64_t) = cornu__vectors()->add_row;
    const CornuBf16 *bf16 = cornu__bf16();
    for (int64_t v = 0; v < sum->call->out_type[0].shape.extent[0]; v++)
        memset(to + v * sum->columns, 0, (size_t)width * sizeof *to);
    for (int64_t i = 0; i < sum->count; i++) {
        const int64_t at = i * sum->columns + first;
        const float  *x = (const float *)sum->call->in[0] + (narrow ? 0 : at);
        if (narrow) bf16->widen((const uint16_t *)sum->call->in[0] + at, width, wide);
        add(to + index_at(sum->indices, i) * sum->columns, narrow ? wide : x, width);
    }
}

static CornuStatus gather_grad(const CornuKernelCall *call)
{
    const int64_t *shape = call->out_type[0].shape.extent;
    Sum sum = { call, indices_of(call), cornu_type_count(call->op.in[1]), shape[1] };
    CORNU__TRY(check(sum.indices, shape[0]));
    cornu__threads_run(call->threads, ceil_divide(shape[1], COLUMNS), sum_block, &sum);
    return CORNU_OK;
}

static bool accepts_floats(const CornuOpCall *call, const CornuType *out_type,
                           const CornuMachine *machine)
{
    (void)machine;
    const CornuDtype d_y = call->in[0].dtype;
    return (d_y == CORNU_F32 || d_y == CORNU_BF16) && out_type->dtype == CORNU_F32;
}

const CornuKernel cornu__host_gather_grad = { .accepts = accepts_floats, .run = gather_grad };
