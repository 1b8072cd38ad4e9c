/* Layers that are what they record; and activations. Layers that take masks are not among them. */
#include "rules_internal.h"

#define BY_OPS(name) { name, cornu__lite_recorded }
const CornuLiteRow cornu__lite_by_ops[] = {
    BY_OPS("Activation"), BY_OPS("ActivityRegularization"), BY_OPS("Add"), BY_OPS("AlphaDropout"),
    BY_OPS("Average"), BY_OPS("Concatenate"), BY_OPS("Cropping1D"), BY_OPS("Cropping2D"),
    BY_OPS("Cropping3D"), BY_OPS("Dropout"), BY_OPS("ELU"), BY_OPS("Flatten"),
    BY_OPS("GaussianDropout"), BY_OPS("GaussianNoise"), BY_OPS("GroupNormalization"),
    BY_OPS("Identity"), BY_OPS("LayerNormalization"), BY_OPS("LayerScale"), BY_OPS("LeakyReLU"),
    BY_OPS("Maximum"), BY_OPS("Minimum"), BY_OPS("Multiply"),
    BY_OPS("PReLU"), BY_OPS("Permute"), BY_OPS("RMSNormalization"), BY_OPS("RandomBrightness"),
    BY_OPS("RandomContrast"), BY_OPS("RandomCrop"), BY_OPS("RandomFlip"), BY_OPS("RandomRotation"),
    BY_OPS("RandomTranslation"), BY_OPS("RandomZoom"), BY_OPS("ReLU"), BY_OPS("RepeatVector"),
    BY_OPS("Rescaling"), BY_OPS("Reshape"), BY_OPS("Resizing"), BY_OPS("Softmax"),
    BY_OPS("SpatialDropout1D"), BY_OPS("SpatialDropout2D"), BY_OPS("SpatialDropout3D"),
    BY_OPS("StochasticDepth"), BY_OPS("Subtract"), BY_OPS("UnitNormalization"),
    BY_OPS("UpSampling1D"), BY_OPS("UpSampling2D"), BY_OPS("ZeroPadding1D"),
    BY_OPS("ZeroPadding2D"), BY_OPS("ZeroPadding3D"),
    { 0 },
};

CornuStatus cornu__lite_activate(CornuLite *to, CornuActivation activation, int x, int *y)
{
    const CornuShape shape = shape_of(to, x);
    return cornu__lite_recorded(&(CornuLiteCall){
        .to = to, .activation = activation, .in = &x, .shapes = &shape, .in_count = 1,
        .results = &shape, .out = y });
}

CornuStatus cornu__lite_activated(const CornuLiteCall *call, int x, int *y)
{
    const CornuActivation activation = activation_of(call->layer, "activation");
    const CornuLayer     *own = call->layer->activation;
    const CornuLayer     *layer = own ? own : cornu__activation_layer(activation);
    if (!layer) return cornu__lite_activate(call->to, activation, x, y);
    CornuLiteCall inner = *call;
    inner.layer = layer;
    inner.in = &x;
    inner.in_count = 1;
    inner.shapes = call->results;
    inner.out = y;
    return cornu__lite_layer(&inner);
}
