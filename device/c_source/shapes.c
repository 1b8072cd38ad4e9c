/* Ops that move elements, and reductions. */
#include "source_internal.h"

/* ---- Copies ---- */

/* An operand of an op as a view of its own: a place in the result, of the operand's shape. */
static void write_into(CornuCText *to, const CornuCCall *call, int k, const CornuCView *place,
                       CornuShape shape)
{
    const CornuCView *const views[] = { place, call->in[k] };
    const CornuCLoops loops = cornu__c_loops(shape, views, 2);
    cornu__c_open(to, &loops);
    cornu__c_element(to, call->section, place, &loops, call->out_type[0].dtype);
    cornu__c_print(to, " = ");
    cornu__c_element(to, call->section, call->in[k], &loops, call->out_type[0].dtype);
    cornu__c_print(to, ";\n");
    cornu__c_close(to, loops.rank);
}

static void write_all(CornuCText *to, const CornuCCall *call, double number)
{
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) %s[i] = ",
                   (long long)cornu_type_count(call->out_type[0]), call->out[0]);
    cornu__c_number(to, call->out_type[0].dtype, number);
    cornu__c_print(to, ";\n");
}

static void write_pad(CornuCText *to, const CornuCCall *call)
{
    const CornuAttributes_PAD *pad = &call->op.attributes->pad;
    CornuCView place = cornu__c_dense(call->record->out_first, call->out_type[0].shape);
    for (int i = 0; i < call->op.in[0].shape.rank; i++)
        place.offset += pad->low[i] * place.stride[i];
    write_all(to, call, pad->value);
    write_into(to, call, 0, &place, call->op.in[0].shape);
}

static void write_concat(CornuCText *to, const CornuCCall *call)
{
    const int64_t axis = call->op.attributes->axis.axis;
    CornuCView    place = cornu__c_dense(call->record->out_first, call->out_type[0].shape);
    for (int k = 0; k < call->op.in_count; k++) {
        write_into(to, call, k, &place, call->op.in[k].shape);
        place.offset += call->op.in[k].shape.extent[axis] * place.stride[axis];
    }
}

static void write_pack(CornuCText *to, const CornuCCall *call)
{
    int64_t end = 0;
    write_all(to, call, 0.0);
    for (int k = 0; k < call->op.in_count; k++) {
        const int64_t start = cornu__pack_start(&call->op.attributes->pack, end);
        CornuCView    place = cornu__c_dense(call->record->out_first, call->op.in[k].shape);
        place.offset = start;
        write_into(to, call, k, &place, call->op.in[k].shape);
        end = start + cornu_type_count(call->op.in[k]);
    }
}

static void write_iota(CornuCText *to, const CornuCCall *call)
{
    const CornuType  type = call->out_type[0];
    const CornuCView y = cornu__c_dense(call->record->out_first, type.shape);
    const CornuCView *const views[] = { &y };
    const int64_t    axis = call->op.attributes->iota.axis;
    const CornuCLoops loops = cornu__c_loops_apart(type.shape, views, 1, INT64_C(1) << axis);
    cornu__c_open(to, &loops);
    cornu__c_element(to, call->section, &y, &loops, type.dtype);
    cornu__c_print(to, " = (%s)", cornu__c_type(type.dtype));
    bool any = false;
    for (int i = 0; i < loops.rank; i++)
        if (loops.axes[i] == axis) cornu__c_print(to, "i%d;\n", i), any = true;
    if (!any) cornu__c_print(to, "0;\n");
    cornu__c_close(to, loops.rank);
}

const CornuCRule *const cornu__pad_c =
    &(const CornuCRule){ .write = write_pad, .strided = ~0u, .any = true };
const CornuCRule *const cornu__concat_c =
    &(const CornuCRule){ .write = write_concat, .strided = ~0u, .any = true };
const CornuCRule *const cornu__pack_c =
    &(const CornuCRule){ .write = write_pack, .strided = ~0u, .any = true };
const CornuCRule *const cornu__iota_c = &(const CornuCRule){ .write = write_iota };

/* ---- Reductions ---- */

/* The result with the axes of the operand, of no extent where they are reduced. */
static CornuCView reduced(const CornuCCall *call, int64_t axes)
{
    const CornuShape from = call->op.in[0].shape;
    CornuCView       y = { .root = call->record->out_first };
    int64_t          stride = 1;
    for (int i = from.rank - 1; i >= 0; i--) {
        if (axes >> i & 1) continue;
        y.stride[i] = stride;
        stride *= from.extent[i];
    }
    return y;
}

static void print_step(CornuCText *to, const CornuCCall *call, const CornuCView *y,
                       const CornuCLoops *loops, bool is_max, const char *target)
{
    const CornuDtype dtype = call->out_type[0].dtype;
    const char      *sum = target;
    cornu__c_print(to, "const %s a = ", cornu__c_type(dtype));
    cornu__c_element(to, call->section, call->in[0], loops, dtype);
    cornu__c_print(to, ";\n");
    for (int i = 0; i < 3; i++) {
        if (i == 2 && !is_max) break;
        if (i > 0) cornu__c_print(to, i == 1 ? " = " : "");
        if (i == 1 && is_max) cornu__c_print(to, "a > ");
        if (i == 2) cornu__c_print(to, " || a != a ? a : ");
        if (sum) cornu__c_print(to, "%s", sum);
        else cornu__c_element(to, call->section, y, loops, dtype);
    }
    cornu__c_print(to, is_max ? ";\n" : " + a;\n");
}

/* The innermost loops are over what is reduced: one sum after the other. */
static void write_inner(CornuCText *to, const CornuCCall *call, const CornuCView *y,
                        const CornuCLoops *loops, bool is_max, int kept)
{
    const CornuDtype dtype = call->out_type[0].dtype;
    CornuCLoops      outer = *loops, inner = *loops;
    outer.rank = kept;
    cornu__c_open(to, &outer);
    if (kept == 0) cornu__c_print(to, "{\n"), to->depth++;
    cornu__c_print(to, "%s sum = ", cornu__c_type(dtype));
    if (is_max) cornu__c_element(to, call->section, call->in[0], &outer, dtype);
    else cornu__c_number(to, dtype, 0.0);
    cornu__c_print(to, ";\n");
    for (int i = kept; i < inner.rank; i++)
        cornu__c_print(to, "for (ptrdiff_t i%d = 0; i%d < %lld; i%d++)%s\n", i, i,
                       (long long)inner.extent[i], i, i == inner.rank - 1 ? " {" : "");
    const int extra = inner.rank > kept;
    to->depth += extra;
    print_step(to, call, y, loops, is_max, "sum");
    cornu__c_close(to, extra);
    cornu__c_element(to, call->section, y, &outer, dtype);
    cornu__c_print(to, " = sum;\n");
    cornu__c_close(to, 1);
}

/* The result is added to in passes over the operand. */
static void write_passes(CornuCText *to, const CornuCCall *call, const CornuCView *y,
                         const CornuCLoops *loops, bool is_max)
{
    if (is_max) {   /* begins with the first element that each is of */
        CornuCLoops first = *loops;
        for (int i = 0; i < first.rank; i++)
            if (y->stride[first.axes[i]] == 0) first.extent[i] = 1;
        cornu__c_open(to, &first);
        cornu__c_element(to, call->section, y, &first, call->out_type[0].dtype);
        cornu__c_print(to, " = ");
        cornu__c_element(to, call->section, call->in[0], &first, call->out_type[0].dtype);
        cornu__c_print(to, ";\n");
        cornu__c_close(to, first.rank);
    } else {
        write_all(to, call, 0.0);
    }
    cornu__c_open(to, loops);
    print_step(to, call, y, loops, is_max, NULL);
    cornu__c_close(to, loops->rank);
}

static void write_reduce(CornuCText *to, const CornuCCall *call)
{
    const bool       is_max = call->op.id == CORNU_OP_REDUCE_MAX;
    const CornuShape from = call->op.in[0].shape;
    const int64_t    axes = call->op.attributes->reduce.axes;
    const CornuCView y = reduced(call, axes);
    const CornuCView *const views[] = { &y, call->in[0] };
    const CornuCLoops loops = cornu__c_loops_apart(from, views, 2, axes);
    int               kept = 0;
    while (kept < loops.rank && !(axes >> loops.axes[kept] & 1)) kept++;
    bool inner = true;
    for (int i = kept; i < loops.rank; i++) inner &= axes >> loops.axes[i] & 1;
    if (inner) write_inner(to, call, &y, &loops, is_max, kept);
    else write_passes(to, call, &y, &loops, is_max);
}

static void write_argmax(CornuCText *to, const CornuCCall *call)
{
    const CornuShape  from = call->op.in[0].shape;
    const int64_t     axis = call->op.attributes->axis.axis, axes = INT64_C(1) << axis;
    const CornuCView  y = reduced(call, axes);
    CornuCView        x = *call->in[0];
    CornuShape        kept = from;
    const CornuCView *const views[] = { &y, &x };
    const int64_t     stride = x.stride[axis];
    kept.extent[axis] = 1;
    const CornuCLoops loops = cornu__c_loops(kept, views, 2);
    if (loops.rank == 0) cornu__c_print(to, "{\n"), to->depth++;
    cornu__c_open(to, &loops);
    cornu__c_print(to, "const %s *const a = %s + ", cornu__c_type(call->op.in[0].dtype),
                   cornu__c_label(call->section, x.root));
    cornu__c_index(to, &x, &loops);
    cornu__c_print(to, ";\n");
    cornu__c_print(to, "ptrdiff_t best = 0;\n");
    cornu__c_print(to, "for (ptrdiff_t k = 1; k < %lld; k++)\n", (long long)from.extent[axis]);
    cornu__c_print(to, "    if (a[k * %lld] > a[best * %lld] ||\n", (long long)stride,
                   (long long)stride);
    cornu__c_print(to, "        (a[k * %lld] != a[k * %lld] && a[best * %lld] == a[best * %lld]))"
                   " best = k;\n", (long long)stride, (long long)stride, (long long)stride,
                   (long long)stride);
    cornu__c_element(to, call->section, &y, &loops, CORNU_I32);
    cornu__c_print(to, " = (int32_t)best;\n");
    cornu__c_close(to, 1);
}

const CornuCRule *const cornu__reduce_sum_c =
    &(const CornuCRule){ .write = write_reduce, .strided = 1, .any = true };
const CornuCRule *const cornu__reduce_max_c =
    &(const CornuCRule){ .write = write_reduce, .strided = 1, .any = true };
const CornuCRule *const cornu__argmax_c =
    &(const CornuCRule){ .write = write_argmax, .strided = 1 };
