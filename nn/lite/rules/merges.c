/* Layers that merge several tensors into one. */
#include "rules_internal.h"

/* Tensors of lower rank get axes of extent 1 after the batch. */
static int raised(const CornuLiteCall *call, int i)
{
    const CornuShape shape = call->shapes[i];
    const int        rank = call->results[0].rank, ahead = rank - shape.rank;
    CornuShape       to = { .rank = rank, .extent = { CORNU_NONE } };
    if (!ahead) return call->in[i];
    for (int k = 1; k < rank; k++) to.extent[k] = k <= ahead ? 1 : shape.extent[k - ahead];
    return cornu__lite_reshape(call->to, call->in[i], to);
}

static CornuStatus combine(const CornuLiteCall *call, CornuLiteCode code)
{
    int y = raised(call, 0);
    for (int i = 1; i < call->in_count; i++)
        y = cornu__lite_two(call->to, code, y, raised(call, i));
    *call->out = y;
    return CORNU_OK;
}

static CornuStatus add(const CornuLiteCall *call) { return combine(call, CORNU_LITE_ADD); }
static CornuStatus subtract(const CornuLiteCall *call) { return combine(call, CORNU_LITE_SUB); }
static CornuStatus multiply(const CornuLiteCall *call) { return combine(call, CORNU_LITE_MUL); }
static CornuStatus maximum(const CornuLiteCall *call) { return combine(call, CORNU_LITE_MAXIMUM); }
static CornuStatus minimum(const CornuLiteCall *call) { return combine(call, CORNU_LITE_MINIMUM); }

static CornuStatus average(const CornuLiteCall *call)
{
    CORNU__TRY(combine(call, CORNU_LITE_ADD));
    *call->out = cornu__lite_with(call->to, CORNU_LITE_MUL, *call->out, 1.0 / call->in_count);
    return CORNU_OK;
}

static CornuStatus concatenate(const CornuLiteCall *call)
{
    const int64_t axis = whole(call->layer, "axis");
    const CornuLiteOptions options = {
        .axis = (int32_t)(axis < 0 ? axis + call->shapes[0].rank : axis),
    };
    *call->out = cornu__lite_node(call->to, CORNU_LITE_CONCATENATION, call->in, call->in_count,
                                  call->results[0], &options);
    return CORNU_OK;
}

const CornuLiteRow cornu__lite_merges[] = {
    { "Add", add },
    { "Average", average },
    { "Concatenate", concatenate },
    { "Maximum", maximum },
    { "Minimum", minimum },
    { "Multiply", multiply },
    { "Subtract", subtract },
    { 0 },
};
