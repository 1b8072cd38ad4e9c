/* Layers that change the shape, or do nothing at inference; Masking. */
#include "rules_internal.h"

static CornuStatus as_it_is(const CornuOnnxCall *call)
{
    *call->out = call->in[0];
    return CORNU_OK;
}

static CornuStatus reshape(const CornuOnnxCall *call)
{
    *call->out = cornu__onnx_reshape(call->to, call->in[0], call->results[0]);
    return CORNU_OK;
}

static CornuStatus permute(const CornuOnnxCall *call)
{
    const int64_t *dims = cornu__layer_argument(call->layer, "dims");
    int64_t        order[CORNU_MAX_RANK] = { 0 };
    for (int i = 1; i < call->shapes[0].rank; i++) order[i] = dims[i - 1];
    *call->out = cornu__onnx_transpose(call->to, call->in[0], order, call->shapes[0].rank);
    return CORNU_OK;
}

static CornuStatus repeat_vector(const CornuOnnxCall *call)
{
    const int64_t times[] = { 1, whole(call->layer, "n"), 1 };
    CornuShape    single = call->results[0];
    single.extent[1] = 1;
    const int x = cornu__onnx_reshape(call->to, call->in[0], single);
    *call->out = joined(call->to, "Expand", x, cornu__onnx_integers(call->to, times, 3));
    return CORNU_OK;
}

/* A step counts if one of its elements differs from the value. */
static CornuStatus masking(const CornuOnnxCall *call)
{
    CornuOnnx *to = call->to;
    const int  x = call->in[0], rank = call->shapes[0].rank;
    const int  value = cornu__onnx_scalar(to, number(call->layer, "mask_value"));
    const int  differs = cast(to, one(to, "Not", two(to, "Equal", x, value)), CORNU_ONNX_FLOAT);
    const int64_t last = INT64_C(1) << (rank - 1);
    const int counts = cornu__onnx_reduce(to, "ReduceMax", differs, rank, last, true);
    *call->out = two(to, "Mul", x, counts);
    *call->out_masks = cast(to, cornu__onnx_reduce(to, "ReduceMax", differs, rank, last, false),
                            CORNU_ONNX_BOOL);
    return CORNU_OK;
}

const CornuOnnxRow cornu__onnx_shapes[] = {
    { "ActivityRegularization", as_it_is },
    { "AlphaDropout", as_it_is },
    { "AugMix", as_it_is },
    { "CutMix", as_it_is },
    { "Dropout", as_it_is },
    { "Equalization", as_it_is },
    { "Flatten", reshape },
    { "GaussianDropout", as_it_is },
    { "GaussianNoise", as_it_is },
    { "Identity", as_it_is },
    { "Masking", masking },
    { "MaxNumBoundingBoxes", as_it_is },
    { "MixUp", as_it_is },
    { "Permute", permute },
    { "RandAugment", as_it_is },
    { "RandomBrightness", as_it_is },
    { "RandomColorDegeneration", as_it_is },
    { "RandomColorJitter", as_it_is },
    { "RandomContrast", as_it_is },
    { "RandomCrop", as_it_is },
    { "RandomElasticTransform", as_it_is },
    { "RandomErasing", as_it_is },
    { "RandomFlip", as_it_is },
    { "RandomGaussianBlur", as_it_is },
    { "RandomGrayscale", as_it_is },
    { "RandomHue", as_it_is },
    { "RandomInvert", as_it_is },
    { "RandomPerspective", as_it_is },
    { "RandomPosterization", as_it_is },
    { "RandomRotation", as_it_is },
    { "RandomSaturation", as_it_is },
    { "RandomSharpness", as_it_is },
    { "RandomShear", as_it_is },
    { "RandomTranslation", as_it_is },
    { "RandomZoom", as_it_is },
    { "RepeatVector", repeat_vector },
    { "Reshape", reshape },
    { "Solarization", as_it_is },
    { "SpatialDropout1D", as_it_is },
    { "SpatialDropout2D", as_it_is },
    { "SpatialDropout3D", as_it_is },
    { "StochasticDepth", as_it_is },
    { 0 },
};
