/* Layers that merge several tensors element by element. Source: keras/src/layers/merging. */
#include "../layer_internal.h"

typedef CORNU__LAYER(CornuMergeLayerConfig) Merge;

typedef struct {
    CornuTensor *(*combine)(CornuTensor *a, CornuTensor *b);
    bool mean;      /* divide the sum by the number of inputs */
    bool product;   /* steps that a mask leaves out are 1 */
    bool pick;      /* steps that a mask leaves out are not picked */
    int  most;      /* maximum number of inputs; 0: any */
} Merging;

static const Merging *merging(const CornuLayer *layer) { return layer->kind->family; }

/* Broadcasts with all axes but the batch aligned at the right. */
static CornuStatus join(CornuShape *all, CornuShape next)
{
    const CornuShape more = all->rank >= next.rank ? *all : next;
    const CornuShape less = all->rank >= next.rank ? next : *all;
    const int        ahead = more.rank - less.rank;
    CornuShape       joined = more;
    for (int i = 1; i < less.rank; i++) {
        const int64_t a = more.extent[ahead + i], b = less.extent[i];
        CornuText     first, second;
        if (a != b && a != 1 && b != 1)
            return cornu__fail(CORNU_ERR_SHAPE, "%s and %s cannot be broadcast, expected the same "
                               "extents or 1 where they differ", cornu_shape_print(&first, *all),
                               cornu_shape_print(&second, next));
        joined.extent[ahead + i] = a == 1 ? b : a;
    }
    *all = joined;
    return CORNU_OK;
}

static CornuStatus merge_build(CornuLayer *layer, const CornuShape *in, int in_count)
{
    const int  most = merging(layer)->most;
    CornuShape all = in[0];
    if (most && in_count != most)
        return cornu__fail(CORNU_ERR_ARGUMENT, "got %d tensors, expected %d", in_count, most);
    for (int i = 1; i < in_count; i++) CORNU__TRY(join(&all, in[i]));
    return CORNU_OK;
}

/* A lower rank gets extents of 1 after the batch. */
static CornuTensor *raised(CornuTensor *x, int rank)
{
    const CornuShape shape = cornu_tensor_shape(x);
    const int        ahead = rank - shape.rank;
    CornuShape       to = { .rank = rank, .extent = { shape.extent[0] } };
    for (int i = 1; i < rank; i++) to.extent[i] = i <= ahead ? 1 : shape.extent[i - ahead];
    return ahead ? cornu_op_reshape(x, to) : x;
}

/* A mask (B, T) as (B, T, 1). */
static CornuTensor *of_steps(CornuTensor *mask)
{
    const CornuShape shape = cornu_tensor_shape(mask);
    return cornu_op_reshape(mask, cornu_shape(shape.extent[0], shape.extent[1], 1));
}

/* Only of (B, T, C), as Keras fails with masks of other inputs. */
static CornuTensor *mask_of(const CornuCall *call, CornuTensor *const *in, int i)
{
    return cornu_tensor_shape(in[i]).rank == 3 && call->masks ? call->masks[i] : NULL;
}

/* Factors: outside of its mask an input is 1. Source: keras/src/layers/merging/multiply.py. */
static CornuTensor *or_one(const CornuCall *call, CornuTensor *const *in, int i, CornuTensor *x)
{
    CornuTensor *mask = mask_of(call, in, i);
    if (!mask || !x) return x;
    return cornu_op_select(of_steps(mask), x, cornu_op_constant_like(x, 1.0));
}

/* Their product: where all inputs have a mask, it is 0 outside of all of them. */
static CornuTensor *or_zero(const CornuCall *call, CornuTensor *const *in, int in_count,
                            CornuTensor *y)
{
    CornuTensor *any = mask_of(call, in, 0);
    for (int i = 1; i < in_count && any; i++) {
        CornuTensor *mask = mask_of(call, in, i);
        any = mask ? cornu_op_select(any, any, mask) : NULL;
    }
    if (!any || !y) return y;
    return cornu_op_select(of_steps(any), y, cornu_op_constant_like(y, 0.0));
}

/* The larger or smaller of those that their masks leave in, one after another.
 * Source: keras/src/layers/merging/base_merge.py, _apply_merge_op_and_or_mask. */
static CornuTensor *picked(const Merging *self, const CornuCall *call, CornuTensor *const *in,
                           int in_count, int rank)
{
    CornuTensor *y = raised(in[0], rank), *y_mask = mask_of(call, in, 0);
    for (int i = 1; i < in_count; i++) {
        CornuTensor *x = raised(in[i], rank), *mask = mask_of(call, in, i);
        if (mask) x = cornu_op_select(of_steps(mask), x, y);
        if (y_mask) y = cornu_op_select(of_steps(y_mask), y, x);
        y_mask = mask && y_mask ? cornu_op_select(y_mask, y_mask, mask) : NULL;
        y = self->combine(y, x);
    }
    return y;
}

static CornuTensor *call_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out)
{
    const Merging *self = merging(layer);
    int            rank = 0;
    (void)out;
    for (int i = 0; i < in_count; i++) {
        const CornuShape shape = cornu_tensor_shape(in[i]);
        if (shape.rank > rank) rank = shape.rank;
    }
    if (self->pick) return picked(self, call, in, in_count, rank);
    CornuTensor *y = NULL;
    for (int i = 0; i < in_count; i++) {
        CornuTensor *x = raised(in[i], rank);
        if (self->product) x = or_one(call, in, i, x);
        y = i ? self->combine(y, x) : x;
    }
    if (self->product) y = or_zero(call, in, in_count, y);
    return self->mean ? cornu_op_scale(y, 1.0 / in_count) : y;
}

/* A step is valid if it is in any input; NULL if any input has no mask. */
static CornuTensor *mask_many(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor *const *masks, CornuTensor **out_masks)
{
    CornuTensor *any = masks[0];
    (void)layer, (void)call, (void)in, (void)out_masks;
    for (int i = 1; i < in_count && any; i++)
        any = masks[i] ? cornu_op_select(any, any, masks[i]) : NULL;
    return any;
}

static const CornuField fields[] = { { 0 } };

#define MERGE_CLASS(label, name, ...)                                                           \
    const CornuLayerClass cornu__##label##_class = {                                            \
        .class_name = name, .keeps_integers = true, .size = sizeof(Merge),                      \
        .build_many = merge_build, .call_many = call_many, .mask_many = mask_many,              \
        .family = &(const Merging){ __VA_ARGS__ },                                              \
        .keras = &(const CornuKerasClass){ CORNU__CONFIG(fields, Merge, NULL) },                \
    }
MERGE_CLASS(add, "Add", .combine = cornu_op_add);
MERGE_CLASS(subtract, "Subtract", .combine = cornu_op_subtract, .most = 2);
MERGE_CLASS(multiply, "Multiply", .combine = cornu_op_multiply, .product = true);
MERGE_CLASS(average, "Average", .combine = cornu_op_add, .mean = true);
MERGE_CLASS(maximum, "Maximum", .combine = cornu_op_maximum, .pick = true);
MERGE_CLASS(minimum, "Minimum", .combine = cornu_op_minimum, .pick = true);

CORNU__CONSTRUCTOR(add, CornuMergeLayerConfig)
CORNU__CONSTRUCTOR(subtract, CornuMergeLayerConfig)
CORNU__CONSTRUCTOR(multiply, CornuMergeLayerConfig)
CORNU__CONSTRUCTOR(average, CornuMergeLayerConfig)
CORNU__CONSTRUCTOR(maximum, CornuMergeLayerConfig)
CORNU__CONSTRUCTOR(minimum, CornuMergeLayerConfig)
