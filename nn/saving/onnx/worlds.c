/* The numbers of open extents in the worlds, and what layers make of them. */
#include "extents_internal.h"

#include <string.h>

#include "../../layers/layer_internal.h"

/* Neither multiples nor sums of each other, and of all remainders: what is rounded down and what is
 * rounded up must not look the same. Models may ask for others: that several extents are equal,
 * that halves of halves fit what they are joined with, or that sequences are short. */
static const int64_t mixed[][CORNU_ONNX_WORLDS] = {
    { 101, 134, 171 }, { 113, 158, 207 }, { 125, 146, 231 }, { 89, 118, 183 },
    { 97, 142, 219 }, { 109, 150, 215 }, { 121, 166, 199 }, { 105, 178, 227 },
};
static const int64_t halved[][CORNU_ONNX_WORLDS] = {
    { 192, 320, 704 }, { 256, 448, 576 }, { 384, 832, 1088 }, { 128, 640, 1216 },
};
static const int64_t brief[][CORNU_ONNX_WORLDS] = {
    { 6, 9, 13 }, { 7, 12, 16 }, { 8, 11, 18 }, { 5, 10, 17 },
};

static const struct {
    const int64_t (*numbers)[CORNU_ONNX_WORLDS];
    int             count;
    bool            shared;   /* between inputs */
} attempts[] = {
    { mixed, 8, false }, { mixed, 8, true }, { halved, 4, false }, { halved, 4, true },
    { brief, 4, false }, { brief, 4, true },
};

int cornu__onnx_attempts(const CornuModel *model)
{
    for (int i = 0; i < model->input_count; i++)
        for (int k = 1; k < model->inputs[i]->type.shape.rank; k++)
            if (model->inputs[i]->type.shape.extent[k] == CORNU_NONE)
                return (int)(sizeof attempts / sizeof *attempts);
    return 1;
}

CornuShape cornu__onnx_input_shape(CornuOnnx *to, CornuShape shape, int value)
{
    const bool shared = attempts[to->attempt].shared;
    for (int i = 1; i < shape.rank; i++) {
        if (shape.extent[i] != CORNU_NONE) continue;
        const int      number = (shared ? i - 1 : to->unknown++) % attempts[to->attempt].count;
        const int64_t *numbers = attempts[to->attempt].numbers[number];
        shape.extent[i] = shared ? cornu__onnx_extent(to, numbers) : 0;
        if (!shape.extent[i]) shape.extent[i] = cornu__onnx_axis(to, numbers, value, i);
    }
    return shape;
}

/* The shapes of the results in one world. */
static CornuStatus trace(const CornuOnnx *to, CornuLayer *layer, const CornuShape *shapes,
                         const CornuDtype *dtypes, int in_count, int world, CornuType *out)
{
    CornuType  in[CORNU_MAX_LAYER_TENSORS];
    const bool keeps = layer->takes_integers || layer->kind->keeps_dtypes || layer->kind->types;
    for (int i = 0; i < in_count; i++) {
        in[i] = cornu_type_from(keeps ? dtypes[i] : CORNU_F32, shapes[i]);
        for (int k = 0; k < shapes[i].rank; k++)
            if (cornu__onnx_is_open(shapes[i].extent[k]))
                in[i].shape.extent[k] = cornu__onnx_extent_in(to, shapes[i].extent[k], world);
    }
    return cornu__layer_trace(layer, in, in_count, out);
}

CornuStatus cornu__onnx_results(CornuOnnx *to, const CornuLayer *layer, const CornuShape *shapes,
                                const CornuDtype *dtypes, int in_count, CornuShape *results)
{
    CornuType made[CORNU_ONNX_WORLDS][CORNU_MAX_LAYER_TENSORS];
    const int outputs = cornu_layer_outputs(layer);
    int64_t   numbers[CORNU_ONNX_WORLDS];
    bool      open = false;
    for (int i = 0; i < outputs; i++)
        for (int k = 1; k < results[i].rank; k++) open |= results[i].extent[k] == CORNU_NONE;
    for (int w = 0; w < CORNU_ONNX_WORLDS && open; w++)
        CORNU__TRY(trace(to, (CornuLayer *)layer, shapes, dtypes, in_count, w, made[w]));
    for (int i = 0; i < outputs && open; i++)
        for (int k = 0; k < results[i].rank; k++) {
            if (made[0][i].shape.extent[k] == CORNU_NONE) continue;
            for (int w = 0; w < CORNU_ONNX_WORLDS; w++) numbers[w] = made[w][i].shape.extent[k];
            results[i].extent[k] = cornu__onnx_extent(to, numbers);
            if (!results[i].extent[k])
                results[i].extent[k] = cornu__onnx_axis(to, numbers, CORNU_ONNX_NONE, k);
        }
    return CORNU_OK;
}
