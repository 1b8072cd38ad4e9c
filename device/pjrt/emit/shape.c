/* Ops that move elements. */
#include "../../memory_internal.h"
#include "emit.h"

/* Axes are aligned at the right. */
static void broadcast(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuShape from = call->op.in[0].shape, to = call->out_type[0].shape;
    int              axes[CORNU_MAX_RANK];
    for (int i = 0; i < from.rank; i++) axes[i] = to.rank - from.rank + i;
    call->out[0] = cornu__hlo_broadcast(e, call->in[0], to, axes);
}
CornuEmit *const cornu__broadcast_stablehlo = broadcast;

static void reshape(CornuEmitter *e, const CornuEmitCall *call)
{
    call->out[0] = cornu__hlo_reshape(e, call->in[0], call->out_type[0].shape);
}
CornuEmit *const cornu__reshape_stablehlo = reshape;

static void transpose(CornuEmitter *e, const CornuEmitCall *call)
{
    call->out[0] = cornu__hlo_transpose(e, call->in[0], call->op.attributes->permutation.axes);
}
CornuEmit *const cornu__transpose_stablehlo = transpose;

static void slice(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuAttributes_SLICE *slice = &call->op.attributes->slice;
    call->out[0] = cornu__hlo_slice(e, call->in[0], slice->starts, slice->sizes, NULL);
}
CornuEmit *const cornu__slice_stablehlo = slice;

static void pad(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuAttributes_PAD *pad = &call->op.attributes->pad;
    call->out[0] = cornu__hlo_pad(e, call->in[0], pad->value, pad->low, pad->high, NULL);
}
CornuEmit *const cornu__pad_stablehlo = pad;

static void concat(CornuEmitter *e, const CornuEmitCall *call)
{
    call->out[0] = cornu__hlo_concat(e, call->in, call->op.in_count,
                                     (int)call->op.attributes->axis.axis);
}
CornuEmit *const cornu__concat_stablehlo = concat;

static void flip(CornuEmitter *e, const CornuEmitCall *call)
{
    call->out[0] = cornu__hlo_reverse(e, call->in[0], &call->op.attributes->axis.axis, 1);
}
CornuEmit *const cornu__flip_stablehlo = flip;

/* Each operand as a vector, with zeros up to the next one's beginning. */
static void pack(CornuEmitter *e, const CornuEmitCall *call)
{
    const CornuAttributes_PACK *pack = &call->op.attributes->pack;
    const int                   count = call->op.in_count;
    CornuName                  *parts = cornu__allocate((size_t)count, sizeof *parts);
    int64_t                     start = 0;
    if (!parts) {
        e->status = CORNU_ERR_MEMORY;
        return;
    }
    for (int i = 0; i < count; i++) {
        const int64_t size = cornu_type_count(call->op.in[i]);
        const int64_t next = i + 1 < count ? cornu__pack_start(pack, start + size) : pack->extent;
        const int64_t none = 0, zeros = next - start - size;
        parts[i] = cornu__hlo_reshape(e, call->in[i], cornu_shape(size));
        if (zeros) parts[i] = cornu__hlo_pad(e, parts[i], 0.0, &none, &zeros, NULL);
        start = next;
    }
    call->out[0] = cornu__hlo_concat(e, parts, count, 0);
    cornu__release(parts);
}
CornuEmit *const cornu__pack_stablehlo = pack;
