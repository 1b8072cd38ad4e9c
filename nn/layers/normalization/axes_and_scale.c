/* Shared by normalization layers: axes as arguments, epsilon. */
#include "../layer_internal.h"

CornuStatus cornu__axes(const char *layer, int64_t *one, int64_t *several)
{
    if (*one && several[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .axis and .axes are given, expected one",
                           layer);
    if (!several[0]) several[0] = *one ? *one : -1;
    *one = 0;
    return CORNU_OK;
}

CornuStatus cornu__axis_bits(const int64_t *axes, CornuShape input, int64_t *bits)
{
    CornuText text;
    *bits = 0;
    for (int i = 0; i < CORNU_MAX_RANK && axes[i]; i++) {
        const int64_t given = axes[i] == CORNU_ZERO ? 0 : axes[i];
        const int64_t axis = given < 0 ? given + input.rank : given;
        if (axis < 1 || axis >= input.rank)
            return cornu__fail(CORNU_ERR_ARGUMENT, "the input is %s, which has no axis %lld after "
                               "the batch", cornu_shape_print(&text, input), (long long)given);
        if (*bits >> axis & 1)
            return cornu__fail(CORNU_ERR_ARGUMENT, "axis %lld is given twice", (long long)axis);
        *bits |= INT64_C(1) << axis;
    }
    return CORNU_OK;
}

CornuShape cornu__along(CornuShape input, int64_t bits, bool keep)
{
    CornuShape shape = { 0 };
    for (int i = 0; i < input.rank; i++)
        if (bits >> i & 1) shape.extent[shape.rank++] = input.extent[i];
        else if (keep) shape.extent[shape.rank++] = 1;
    return shape;
}

CornuStatus cornu__resolve_epsilon(const CornuLayer *layer, double *epsilon, double usual)
{
    *epsilon = cornu__number(*epsilon, usual);
    if (*epsilon >= 0.0 && *epsilon < 1e30) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .epsilon is %g, expected 0 or more",
                       cornu_layer_name(layer), *epsilon);
}
