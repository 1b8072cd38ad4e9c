/* Blocks of images, sequences turned around, triangles. */
#include "../run_internal.h"

#include <string.h>

/* Images (B, C, H, W), a blocksize, and whether the block is the minor part of the channel,
 * "CRD". */
static CornuStatus read_blocks(const CornuReadStep *step, CornuShape s, int64_t *b, bool *minor)
{
    *b = cornu__whole(step, "blocksize", 0);
    *minor = !strcmp(cornu__word(step, "mode", "DCR"), "CRD");
    if (s.rank == 4 && *b > 0 && *b <= INT16_MAX) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "blocks of %lld of a tensor of rank %d, expected 4",
                       (long long)*b, s.rank);
}

/* (B, C, H, W) to (B, C / b b, H b, W b). */
static CornuStatus read_depth_to_space(CornuReadStep *step)
{
    CornuTensor     *x = cornu__operand_of(step, 0);
    const CornuShape s = cornu_tensor_shape(x);
    int64_t          b;
    bool             minor;
    CORNU__TRY(read_blocks(step, s, &b, &minor));
    if (s.extent[1] % (b * b))
        return cornu__fail(CORNU_ERR_SHAPE, "blocks of %lld for %lld channels", (long long)b,
                           (long long)s.extent[1]);
    const int64_t c = s.extent[1] / (b * b);
    x = cornu_op_reshape(x, minor ? cornu_shape(s.extent[0], c, b, b, s.extent[2], s.extent[3])
                                  : cornu_shape(s.extent[0], b, b, c, s.extent[2], s.extent[3]));
    x = cornu_op_transpose(x, minor ? (const int[]){ 0, 1, 4, 2, 5, 3 }
                                    : (const int[]){ 0, 3, 4, 1, 5, 2 });
    return cornu__result(step, 0, cornu_op_reshape(x, cornu_shape(s.extent[0], c, s.extent[2] * b,
                                                                  s.extent[3] * b)));
}

static CornuStatus read_space_to_depth(CornuReadStep *step)
{
    CornuTensor     *x = cornu__operand_of(step, 0);
    const CornuShape s = cornu_tensor_shape(x);
    int64_t          b;
    bool             minor;
    CORNU__TRY(read_blocks(step, s, &b, &minor));
    if (s.extent[2] % b || s.extent[3] % b)
        return cornu__fail(CORNU_ERR_SHAPE, "blocks of %lld of images of %lld x %lld", (long long)b,
                           (long long)s.extent[2], (long long)s.extent[3]);
    const int64_t h = s.extent[2] / b, w = s.extent[3] / b;
    x = cornu_op_reshape(x, cornu_shape(s.extent[0], s.extent[1], h, b, w, b));
    x = cornu_op_transpose(x, minor ? (const int[]){ 0, 1, 3, 5, 2, 4 }
                                    : (const int[]){ 0, 3, 5, 1, 2, 4 });
    return cornu__result(step, 0, cornu_op_reshape(x, cornu_shape(s.extent[0], s.extent[1] * b * b,
                                                                  h, w)));
}

/* Above, or below, a diagonal; the rest is 0. */
static CornuStatus read_trilu(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0);
    int64_t      k = 0;
    int          count;
    CORNU__TRY(cornu__known_integers(step, 1, &k, 1, &count));
    const int  rank = cornu__rank_of(x);
    const bool upper = cornu__whole(step, "upper", 1);
    if (rank < 2) return cornu__fail(CORNU_ERR_SHAPE, "rank %d, expected at least 2", rank);
    CornuGraph  *graph = step->run->graph;
    CornuTensor *i = cornu__count_along(graph, CORNU_I64, rank, rank - 2,
                                        cornu__extent_of(x, rank - 2));
    CornuTensor *j = cornu__count_along(graph, CORNU_I64, rank, rank - 1,
                                        cornu__extent_of(x, rank - 1));
    CornuTensor *edge = cornu_op_add(i, cornu_op_constant_like(i, (double)k));
    CornuTensor *in = cornu_op_compare(j, upper ? CORNU_GREATER_EQUAL : CORNU_LESS_EQUAL, edge);
    return cornu__result(step, 0, cornu_op_select(in, x, cornu_op_constant_like(x, 0.0)));
}

static CornuStatus read_eye(CornuReadStep *step)
{
    const CornuType type = cornu__operand_type(step, 0);
    CornuDtype      dtype;
    CORNU__TRY(cornu__onnx_dtype(cornu__whole(step, "dtype", cornu__onnx_type_number(type.dtype)),
                                 &dtype));
    if (type.shape.rank != 2) return cornu__fail(CORNU_ERR_SHAPE, "expected rank 2");
    CornuGraph  *graph = step->run->graph;
    CornuTensor *i = cornu__count_along(graph, CORNU_I64, 2, 0, type.shape.extent[0]);
    CornuTensor *j = cornu__count_along(graph, CORNU_I64, 2, 1, type.shape.extent[1]);
    CornuTensor *edge = cornu_op_add(i, cornu_op_constant_like(
        i, (double)cornu__whole(step, "k", 0)));
    return cornu__result(step, 0, cornu_op_convert(cornu_op_compare(i ? j : NULL, CORNU_EQUAL,
                                                                    edge), dtype));
}

/* The first lengths[b] elements along the time axis in the opposite order, by gathering. */
static CornuStatus read_reverse(CornuReadStep *step)
{
    CornuTensor *x = cornu__operand_of(step, 0), *lengths = cornu__operand_of(step, 1);
    int          time, batch;
    const int rank = cornu__rank_of(x);
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "time_axis", 0), rank, &time));
    CORNU__TRY(cornu__axis_of(cornu__whole(step, "batch_axis", 1), rank, &batch));
    CornuTensor *y = cornu__move_axis(x, time, 0);
    y = cornu__move_axis(y, batch < time ? batch + 1 : batch, 1);
    if (!y) return cornu_error_take();
    const CornuShape shape = cornu_tensor_shape(y);
    const int64_t    t = shape.extent[0], b = shape.extent[1];
    CornuGraph      *graph = step->run->graph;
    CornuTensor *i = cornu__count_along(graph, CORNU_I64, 2, 0, t);
    CornuTensor *n = cornu_op_reshape(cornu_op_convert(lengths, CORNU_I64), cornu_shape(1, b));
    CornuTensor *from = cornu_op_select(cornu_op_compare(i, CORNU_LESS, n),
                                        cornu_op_subtract(cornu_op_subtract(n,
                                            cornu_op_constant_like(n, 1.0)), i), i);
    CornuTensor *row = cornu__count_along(graph, CORNU_I64, 2, 1, b);
    CornuTensor *at = cornu_op_add(cornu_op_multiply(from, cornu_op_constant_like(row, (double)b)
                                                                ), row);
    const int64_t rows[] = { t * b, cornu_shape_count(shape) / (t * b > 0 ? t * b : 1) };
    y = cornu_op_gather(cornu__reshaped(y, 2, rows), cornu__reshaped(at, 1, rows));
    y = cornu_op_reshape(y, shape);
    y = cornu__move_axis(y, 1, batch < time ? batch + 1 : batch);
    return cornu__result(step, 0, cornu__move_axis(y, 0, time));
}

const CornuReadRow cornu__read_pieces[] = {
    { "DepthToSpace", read_depth_to_space, .operands = 1 }, { "EyeLike", read_eye, .operands = 0 },
    { "ReverseSequence", read_reverse, .operands = 2 },
    { "SpaceToDepth", read_space_to_depth, .operands = 1 }, { "Trilu", read_trilu, .operands = 1 },
    { 0 },
};
