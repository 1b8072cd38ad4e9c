/* Permute and RepeatVector. */
#include "../layer_internal.h"

/* ---- Permute ---- */

typedef CORNU__LAYER(CornuPermuteConfig) Permute;

/* The number of axes besides the batch. */
static int count_of(const CornuPermuteConfig *config)
{
    int count = 0;
    while (count < CORNU_MAX_RANK && config->dims[count]) count++;
    return count;
}

static CornuStatus permute_build(CornuLayer *layer, CornuShape input)
{
    const int count = count_of(&((Permute *)layer)->config);
    CornuText text;
    if (input.rank == count + 1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected %d axes after the batch, as "
                       "many as .dims", cornu_shape_print(&text, input), count);
}

static CornuTensor *permute_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuPermuteConfig *config = &((Permute *)layer)->config;
    int                       axes[CORNU_MAX_RANK + 1] = { 0 };
    (void)call;
    for (int i = 0; i < count_of(config); i++) axes[i + 1] = (int)config->dims[i];
    return cornu_op_transpose(x, axes);
}

static CornuStatus permute_resolve(CornuLayer *layer)
{
    const CornuPermuteConfig *config = &((Permute *)layer)->config;
    const int count = count_of(config);
    unsigned  seen = 0;
    for (int i = 0; i < count; i++) {
        const int64_t axis = config->dims[i];
        if (axis < 1 || axis > count || seen >> axis & 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .dims[%d] is %lld, expected each of 1 to "
                               "%d once", cornu_layer_name(layer), i, (long long)axis, count);
        seen |= 1u << axis;
    }
    if (count > 0 && count < CORNU_MAX_RANK) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .dims has %d axes, expected 1 to %d",
                       cornu_layer_name(layer), count, CORNU_MAX_RANK - 1);
}

static const CornuField permute_fields[] = {
    { "dims", CORNU_FIELD_SHAPE, offsetof(CornuPermuteConfig, dims) },
    { 0 },
};

const CornuLayerClass cornu__permute_class = {
    .class_name = "Permute", .keeps_integers = true, .size = sizeof(Permute),
    .build = permute_build, .call = permute_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(permute_fields, Permute, permute_resolve) },
};

CORNU__CONSTRUCTOR(permute, CornuPermuteConfig)

/* ---- RepeatVector ---- */

typedef CORNU__LAYER(CornuRepeatVectorConfig) RepeatVector;

static CornuStatus repeat_build(CornuLayer *layer, CornuShape input)
{
    (void)layer;
    return cornu__expect_input(input, 2, "(B, C)");
}

static CornuTensor *repeat_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)call;
    if (!x) return NULL;
    const CornuShape s = cornu_tensor_shape(x);
    return cornu_op_broadcast(cornu_op_reshape(x, cornu_shape(s.extent[0], 1, s.extent[1])),
                              cornu_shape(s.extent[0], ((RepeatVector *)layer)->config.n,
                                          s.extent[1]));
}

static CornuStatus repeat_resolve(CornuLayer *layer)
{
    return cornu__positive(cornu_layer_name(layer), "n", ((RepeatVector *)layer)->config.n);
}

static const CornuField repeat_fields[] = {
    { "n", CORNU_FIELD_INTEGER, offsetof(CornuRepeatVectorConfig, n) },
    { 0 },
};

const CornuLayerClass cornu__repeat_vector_class = {
    .class_name = "RepeatVector", .keeps_integers = true, .size = sizeof(RepeatVector),
    .build = repeat_build, .call = repeat_call, .mask = cornu__no_mask,
    .keras = &(const CornuKerasClass){ CORNU__CONFIG(repeat_fields, RepeatVector, repeat_resolve) },
};

CORNU__CONSTRUCTOR(repeat_vector, CornuRepeatVectorConfig)
