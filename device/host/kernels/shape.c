/*
 * Ops that move elements: transpose, slice, pad, flip, concat, pack. The first four are one copy
 * between two arrays with a stride per axis, negative where it runs backwards, whose elements are
 * moved as 1, 2, 4 or 8 bytes whatever they mean. Operands that the plan placed in the result of
 * concat or pack stay.
 *
 * Reference: device/ops/shape.c; tests/device/host/run/test_executor.c compares them.
 * Source: own.
 * Gain: places found from those before, 1024 x 14 x 2 x 14 x 24 by rows of 24, Zen 3, two threads:
 *     4.8 ms, then 3.1. Lines of x in turn, 1024 x 14 x 14 x 2 x 24 of the same, Zen 5, two
 *     threads: 3.2 ms, then 1.1. Operands of concat row by row, those of eight groups of 8 or 16
 *     channels, Xeon with AMX, two threads: 30.3 ms, then 9.6. Elements of 2 and 4 bytes turned in
 *     registers (isa/transpose.c), Zen 4, one thread, images of 16 x 16 x 384 to channels last and
 *     back around a convolution: 0.197 ms, then 0.159 (AVX2).
 */
#include <stdlib.h>
#include <string.h>

#include "../isa/transpose.h"
#include "../machine/access.h"
#include "kernels.h"

/* y[sum of i_k to_k] = x[sum of i_k from_k] for all indices below `extent`. */
typedef struct {
    int         rank;
    int64_t     extent[CORNU_MAX_RANK], from[CORNU_MAX_RANK], to[CORNU_MAX_RANK];
    size_t      size;
    const char *x;
    char       *y;
    int         tiled; /* an axis along which x is contiguous while y is not; -1: none */
    int64_t     outer;    /* indices of the axes but the last and the tiled one */
    int64_t     tiles;    /* pieces of the tiled axis */
    int64_t     grain;    /* of (outer, tile) pairs in one piece of work */
} Copy;

enum { TILE = 32, GRAIN = 32768, NEAR = 32 << 10 /* bytes */,
       ROWS_BYTES = 128 << 10   /* of concat, in one piece of work */ };

/* Drops axes of extent 1 and merges those that are contiguous in both arrays. */
static void simplify(Copy *copy)
{
    int rank = 0;
    for (int i = 0; i < copy->rank; i++) {
        int64_t extent = copy->extent[i], from = copy->from[i], to = copy->to[i];
        if (extent == 1) continue;
        if (rank && copy->from[rank - 1] == from * extent &&
            copy->to[rank - 1] == to * extent) {
            copy->extent[rank - 1] *= extent;
            copy->from[rank - 1] = from;
            copy->to[rank - 1] = to;
            continue;
        }
        copy->extent[rank] = extent;
        copy->from[rank] = from;
        copy->to[rank++] = to;
    }
    if (rank == 0) copy->extent[0] = copy->from[0] = copy->to[0] = rank = 1;
    copy->rank = rank;
}

/* Copies lines of x one after the other where those of y alternate between few places of x, which
 * processors do not foresee, and these lines of y lie in the nearest cache. */
static void read_in_turn(Copy *copy)
{
    const int inner = copy->rank - 2;
    int       next = inner;   /* the axis of lines that are neighbours in x */
    for (int i = 0; i < inner; i++)
        if (llabs(copy->from[i]) < llabs(copy->from[next])) next = i;
    if (inner < 0 || copy->extent[next] <= copy->extent[inner] ||
        copy->extent[next] * copy->to[next] * (int64_t)copy->size > NEAR)
        return;
    const int64_t extent = copy->extent[next], from = copy->from[next], to = copy->to[next];
    for (int i = next; i < inner; i++) {
        copy->extent[i] = copy->extent[i + 1];
        copy->from[i] = copy->from[i + 1];
        copy->to[i] = copy->to[i + 1];
    }
    copy->extent[inner] = extent;
    copy->from[inner] = from;
    copy->to[inner] = to;
}

/* One line of the last axis, elements of a constant size once inlined. */
static inline void copy_line(const Copy *copy, const char *x, char *y, size_t size)
{
    int     last = copy->rank - 1;
    int64_t count = copy->extent[last], from = copy->from[last], to = copy->to[last];
    if (from == 1 && to == 1) {
        memcpy(y, x, (size_t)count * size);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(y + (size_t)(i * to) * size, x + i * from * (int64_t)size, size);
}

/* So many lines of the tiled axis, in tiles that stay in the cache. */
static inline void copy_tile(const Copy *copy, const char *x, char *y, int64_t columns, size_t size)
{
    int64_t count = copy->extent[copy->rank - 1], step = copy->from[copy->rank - 1];
    int64_t line = copy->to[copy->tiled];
    for (int64_t start = 0; start < count; start += TILE) {
        int64_t end = start + TILE < count ? start + TILE : count;
        for (int64_t j = 0; j < columns; j++)
            for (int64_t i = start; i < end; i++)
                memcpy(y + (size_t)(j * line + i) * size,
                       x + (size_t)(i * step + j) * size, size);
    }
}

static void copy_piece(const Copy *copy, const char *x, char *y, int64_t first,
                       int64_t last)
{
    if (copy->tiled < 0) {
        switch (copy->size) {
        case 1: copy_line(copy, x, y, 1); break;
        case 2: copy_line(copy, x, y, 2); break;
        case 4: copy_line(copy, x, y, 4); break;
        case 8: copy_line(copy, x, y, 8); break;
        }
        return;
    }
    const int64_t count = copy->extent[copy->rank - 1], step = copy->from[copy->rank - 1];
    const int64_t line = copy->to[copy->tiled], columns = last - first;
    x += first * (int64_t)copy->size;
    y += (size_t)(first * line) * copy->size;
    switch (copy->size) {
    case 1: copy_tile(copy, x, y, columns, 1); break;
    case 2:
        cornu__transposes()->halves((const void *)x, step, count, columns, (void *)y, line);
        break;
    case 4:
        cornu__transposes()->words((const void *)x, step, count, columns, (void *)y, line);
        break;
    case 8: copy_tile(copy, x, y, columns, 8); break;
    }
}

/* Where a piece is: an index along each outer axis, and the elements that they skip. */
typedef struct {
    int64_t index[CORNU_MAX_RANK], from, to;
} Place;

static Place place_of(const Copy *copy, int64_t outer)
{
    Place place = { .from = 0 };
    for (int i = copy->rank - 2; i >= 0; i--) {
        if (i == copy->tiled) continue;
        place.index[i] = outer % copy->extent[i];
        place.from += place.index[i] * copy->from[i];
        place.to += place.index[i] * copy->to[i];
        outer /= copy->extent[i];
    }
    return place;
}

static void next_place(const Copy *copy, Place *place)
{
    for (int i = copy->rank - 2; i >= 0; i--) {
        if (i == copy->tiled) continue;
        place->from += copy->from[i];
        place->to += copy->to[i];
        if (++place->index[i] < copy->extent[i]) return;
        place->from -= copy->extent[i] * copy->from[i];
        place->to -= copy->extent[i] * copy->to[i];
        place->index[i] = 0;
    }
}

static void copy_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Copy *copy = context;
    int64_t     pieces = copy->outer * copy->tiles, end = (block + 1) * copy->grain;
    int64_t     piece = block * copy->grain, tile = piece % copy->tiles;
    Place       place = place_of(copy, piece / copy->tiles);
    if (end > pieces) end = pieces;
    for (; piece < end; piece++) {
        int64_t first = tile * TILE, last = first + TILE;
        if (copy->tiled >= 0 && last > copy->extent[copy->tiled])
            last = copy->extent[copy->tiled];
        copy_piece(copy, copy->x + place.from * (int64_t)copy->size,
                   copy->y + (size_t)place.to * copy->size, first, last);
        if (++tile < copy->tiles) continue;
        tile = 0;
        next_place(copy, &place);
    }
}

static void run_copy(Copy copy, CornuThreads *threads)
{
    for (int i = 0; i < copy.rank; i++)
        if (copy.extent[i] == 0) return;
    simplify(&copy);
    int last = copy.rank - 1;
    copy.tiled = -1;
    for (int i = 0; i < last && copy.from[last] != 1 && copy.to[last] == 1; i++)
        if (copy.from[i] == 1) copy.tiled = i;
    if (copy.tiled < 0) read_in_turn(&copy);
    copy.outer = copy.tiles = 1;
    for (int i = 0; i < last; i++)
        if (i != copy.tiled) copy.outer *= copy.extent[i];
    int64_t piece = copy.extent[last];
    if (copy.tiled >= 0) {
        copy.tiles = (copy.extent[copy.tiled] + TILE - 1) / TILE;
        piece *= TILE;
    }
    copy.grain = piece < GRAIN ? GRAIN / piece : 1;
    int64_t blocks = (copy.outer * copy.tiles + copy.grain - 1) / copy.grain;
    cornu__threads_run(threads, blocks, copy_block, &copy);
}

/* Strides of a packed array, in elements. */
static void strides_of(CornuShape shape, int64_t *strides)
{
    int64_t stride = 1;
    for (int i = shape.rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape.extent[i];
    }
}

/* A copy of all of the operand, axes in their order, to where the result's strides put it. */
static Copy copy_of(const CornuKernelCall *call)
{
    Copy copy = {
        .rank = call->op.in[0].shape.rank,
        .size = cornu_dtype_size(call->op.in[0].dtype),
        .x = call->in[0],
        .y = call->out[0],
    };
    for (int i = 0; i < copy.rank; i++) copy.extent[i] = call->op.in[0].shape.extent[i];
    strides_of(call->op.in[0].shape, copy.from);
    strides_of(call->out_type[0].shape, copy.to);
    return copy;
}

static CornuStatus transpose(const CornuKernelCall *call)
{
    Copy    copy = copy_of(call);
    int64_t from[CORNU_MAX_RANK];
    memcpy(from, copy.from, sizeof from);
    for (int i = 0; i < copy.rank; i++) {
        copy.extent[i] = call->out_type[0].shape.extent[i];
        copy.from[i] = from[call->op.attributes->permutation.axes[i]];
    }
    run_copy(copy, call->threads);
    return CORNU_OK;
}

static CornuStatus slice(const CornuKernelCall *call)
{
    Copy copy = copy_of(call);
    for (int i = 0; i < copy.rank; i++) {
        copy.x +=
            (size_t)(call->op.attributes->slice.starts[i] * copy.from[i]) * copy.size;
        copy.extent[i] = call->op.attributes->slice.sizes[i];
    }
    run_copy(copy, call->threads);
    return CORNU_OK;
}

typedef struct { char *y; size_t size; int64_t count; const void *element; } Fill;

static void fill_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Fill *fill = context;
    int64_t     first = block * GRAIN, rest = fill->count - first;
    cornu__fill(fill->y + (size_t)first * fill->size, fill->element, fill->size,
                rest < GRAIN ? rest : GRAIN);
}

static CornuStatus pad(const CornuKernelCall *call)
{
    int64_t element = 0;
    Copy    copy = copy_of(call);
    Fill    fill = { copy.y, copy.size, cornu_type_count(call->out_type[0]), &element };
    cornu_array_set((CornuArray){ cornu_scalar(call->out_type[0].dtype), &element }, 0,
                    call->op.attributes->pad.value);
    cornu__threads_run(call->threads, (fill.count + GRAIN - 1) / GRAIN, fill_block,
                       &fill);
    for (int i = 0; i < copy.rank; i++)
        copy.y += (size_t)(call->op.attributes->pad.low[i] * copy.to[i]) * copy.size;
    run_copy(copy, call->threads);
    return CORNU_OK;
}

/* Rows are the indices of the axes before the one along which operands follow each other. */
typedef struct {
    const CornuKernelCall *call;
    int                    axis;
    size_t                 bytes;   /* of one index along it, in a row */
    int64_t                rows, grain;
} Concat;

static size_t row_bytes(const Concat *c, const CornuType *type)
{
    return (size_t)type->shape.extent[c->axis] * c->bytes;
}

/* Rows from end to end: a line of the result that several operands share is written while it is in
 * the cache. */
static void concat_block(void *context, int64_t block, int thread)
{
    (void)thread;
    const Concat *c = context;
    const int64_t begin = block * c->grain, end = begin + c->grain;
    char *y = (char *)c->call->out[0] + (size_t)begin * row_bytes(c, c->call->out_type);
    for (int64_t k = begin; k < end && k < c->rows; k++)
        for (int i = 0; i < c->call->op.in_count; i++) {
            const size_t bytes = row_bytes(c, &c->call->op.in[i]);
            const char  *x = (const char *)c->call->in[i] + (size_t)k * bytes;
            if (x != y) memcpy(y, x, bytes);
            y += bytes;
        }
}

static CornuStatus concat(const CornuKernelCall *call)
{
    const CornuShape shape = call->out_type[0].shape;
    Concat           c = { .call = call, .axis = (int)call->op.attributes->axis.axis,
                           .bytes = cornu_dtype_size(call->out_type[0].dtype), .rows = 1 };
    for (int i = 0; i < c.axis; i++) c.rows *= shape.extent[i];
    for (int i = c.axis + 1; i < shape.rank; i++) c.bytes *= (size_t)shape.extent[i];
    const int64_t row = (int64_t)row_bytes(&c, call->out_type);
    c.grain = row > 0 && row < ROWS_BYTES ? ROWS_BYTES / row : 1;
    cornu__threads_run(call->threads, (c.rows + c.grain - 1) / c.grain, concat_block, &c);
    return CORNU_OK;
}

static CornuStatus flip(const CornuKernelCall *call)
{
    const int64_t axis = call->op.attributes->axis.axis;
    Copy          copy = copy_of(call);
    copy.x += (copy.extent[axis] - 1) * copy.from[axis] * (int64_t)copy.size;
    copy.from[axis] = -copy.from[axis];
    run_copy(copy, call->threads);
    return CORNU_OK;
}

static CornuStatus pack(const CornuKernelCall *call)
{
    const CornuAttributes_PACK *attributes = &call->op.attributes->pack;
    const size_t size = cornu_dtype_size(call->out_type[0].dtype);
    char        *y = call->out[0];
    int64_t      end = 0;
    for (int i = 0; i < call->op.in_count; i++) {
        const int64_t start = cornu__pack_start(attributes, end);
        const int64_t count = cornu_type_count(call->op.in[i]);
        memset(y + (size_t)end * size, 0, (size_t)(start - end) * size);
        if (call->in[i] != y + (size_t)start * size)
            memcpy(y + (size_t)start * size, call->in[i], (size_t)count * size);
        end = start + count;
    }
    memset(y + (size_t)end * size, 0, (size_t)(attributes->extent - end) * size);
    return CORNU_OK;
}

const CornuKernel cornu__host_transpose = {
    .name = "shape", .declines = cornu__takes_all, .run = transpose,
};
const CornuKernel cornu__host_slice = {
    .name = "shape", .declines = cornu__takes_all, .run = slice,
};
const CornuKernel cornu__host_pad = { .name = "shape", .declines = cornu__takes_all, .run = pad };
const CornuKernel cornu__host_concat = {
    .name = "shape", .declines = cornu__takes_all, .run = concat,
};
const CornuKernel cornu__host_flip = {
    .name = "shape", .declines = cornu__takes_all, .run = flip,
};
const CornuKernel cornu__host_pack = {
    .name = "shape", .declines = cornu__takes_all, .run = pack,
};
