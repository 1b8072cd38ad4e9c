/* Blocks of pixels that become channels or images, and back, as ONNX nodes. */
#include "onnx_internal.h"

enum { IMAGE = 4 };

static int turned(const Step *step, const int *x)
{
    const int in[] = { cornu__onnx_channels_first(step->to, x[0], IMAGE) };
    const CornuOnnxAttribute attributes[] = {
        { .name = "blocksize", .whole = step->op->options.block_size },
        { .name = "mode", .text = "DCR" },
    };
    const bool deep = step->op->code == CORNU_LITE_DEPTH_TO_SPACE;
    const int  y = cornu__onnx_node(step->to, step->row->whole, in, 1, attributes, 1 + deep, 1);
    return cornu__onnx_channels_last(step->to, y, IMAGE);
}

/* ---- Blocks that become images of the batch ---- */

/* The blocks of some axes after the first, and what is added to them or cut off. */
typedef struct {
    int     axes, rank;
    int64_t block[CORNU_MAX_RANK], edges[2 * CORNU_MAX_RANK];
} Blocks;

static CornuStatus read_blocks(const Step *step, Blocks *b)
{
    int edges;
    b->rank = rank_of(step, 0);
    CORNU__TRY(cornu__lite_list(step, 1, CORNU_MAX_RANK, b->block, &b->axes));
    CORNU__TRY(cornu__lite_list(step, 2, 2 * CORNU_MAX_RANK, b->edges, &edges));
    bool good = edges == 2 * b->axes && b->axes < b->rank && b->rank + b->axes <= CORNU_MAX_RANK;
    for (int i = 0; i < b->axes; i++) good &= b->block[i] > 0;
    for (int i = 0; i < edges; i++) good &= b->edges[i] >= 0;
    if (!good) return cornu__fail(CORNU_ERR_FORMAT, "%d blocks of a tensor of rank %d", b->axes,
                                  b->rank);
    for (int i = 1; i < b->rank; i++)
        if (cornu__lite_operand(step, 0)->shape.extent[i] < 1)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "of an unknown extent");
    return CORNU_OK;
}

static int reshaped(const Step *step, int x, const int64_t *extents, int rank)
{
    return joined(step->to, "Reshape", x, integers(step, extents, rank));
}

/* (B, H b, …) as (B, H, b, …), then (b, …, B, H, …) */
static CornuStatus space_to_batch(const Step *step)
{
    Blocks  b;
    int64_t pads[2 * CORNU_MAX_RANK] = { 0 }, parts[CORNU_MAX_RANK], order[CORNU_MAX_RANK];
    int64_t last[CORNU_MAX_RANK];
    CORNU__TRY(read_blocks(step, &b));
    const CornuShape shape = cornu__lite_operand(step, 0)->shape;
    int              at = 0, y = cornu__lite_value(step, 0);
    parts[at++] = last[0] = -1;
    for (int i = 1; i < b.rank; i++) {
        const bool    cut = i <= b.axes;
        const int64_t block = cut ? b.block[i - 1] : 1;
        if (cut) pads[i] = b.edges[2 * i - 2];
        if (cut) pads[b.rank + i] = b.edges[2 * i - 1];
        const int64_t extent = shape.extent[i] + pads[i] + pads[b.rank + i];
        if (extent % block)
            return cornu__fail(CORNU_ERR_FORMAT, "%lld rows in blocks of %lld", (long long)extent,
                               (long long)block);
        parts[at++] = last[i] = extent / block;
        if (cut) parts[at++] = block;
    }
    for (int i = 0; i < b.axes; i++) order[i] = 2 + 2 * i;
    order[b.axes] = 0;
    for (int i = 1; i < b.rank; i++)
        order[b.axes + i] = i <= b.axes ? 2 * i - 1 : b.axes + i;
    y = joined(step->to, "Pad", y, integers(step, pads, 2 * b.rank));
    y = cornu__onnx_transpose(step->to, reshaped(step, y, parts, at), order, at);
    return cornu__lite_give(step, reshaped(step, y, last, b.rank));
}

/* (b B, H, …) as (b, B, H, …), then (B, H b, …), of which the edges are cut off */
static CornuStatus batch_to_space(const Step *step)
{
    Blocks  b;
    int64_t parts[CORNU_MAX_RANK], order[CORNU_MAX_RANK], last[CORNU_MAX_RANK];
    CORNU__TRY(read_blocks(step, &b));
    const CornuShape shape = cornu__lite_operand(step, 0)->shape;
    int              at = 0, y = cornu__lite_value(step, 0);
    for (int i = 0; i < b.axes; i++) parts[at++] = b.block[i];
    parts[at++] = last[0] = -1;
    for (int i = 1; i < b.rank; i++) {
        parts[at++] = shape.extent[i];
        last[i] = shape.extent[i] * (i <= b.axes ? b.block[i - 1] : 1);
    }
    at = 0;
    order[at++] = b.axes;
    for (int i = 1; i < b.rank; i++) {
        order[at++] = b.axes + i;
        if (i <= b.axes) order[at++] = i - 1;
    }
    y = cornu__onnx_transpose(step->to, reshaped(step, y, parts, at), order, at);
    y = reshaped(step, y, last, b.rank);
    for (int i = 0; i < b.axes; i++) {
        const int64_t end = last[i + 1] - b.edges[2 * i + 1];
        if (b.edges[2 * i] || b.edges[2 * i + 1])
            y = cornu__onnx_slice(step->to, y, i + 1, b.edges[2 * i], end > 0 ? end : 0);
    }
    return cornu__lite_give(step, y);
}

const CornuLiteOnnxRow cornu__lite_onnx_blocks[] = {
    { CORNU_LITE_BATCH_TO_SPACE_ND, 3, .rule = batch_to_space },
    { CORNU_LITE_DEPTH_TO_SPACE, 1, .value = turned, .whole = "DepthToSpace", .rank = IMAGE },
    { CORNU_LITE_SPACE_TO_BATCH_ND, 3, .rule = space_to_batch },
    { CORNU_LITE_SPACE_TO_DEPTH, 1, .value = turned, .whole = "SpaceToDepth", .rank = IMAGE },
    { 0 },
};
