#include "generator.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../tensor/graph_internal.h"

enum { MOST_ELEMENTS = 5000, MOST_INPUTS = 14, MOST_VALUES = 160, MOST_SHARDS = 40 };

static const int64_t MOST_FLOPS = 1000000;

/* splitmix64: every seed a stream of its own. Source: Steele, Lea, Flood, "Fast Splittable
 * Pseudorandom Number Generators", OOPSLA 2014. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t pick(uint64_t *state, int64_t count)
{
    const uint64_t drawn = next(state);
    return count > 0 ? (int64_t)(drawn % (uint64_t)count) : 0;
}

typedef struct {
    Trial    *c;
    uint64_t state;
    Bounds   bounds;
} Generator;

static int64_t draw(Generator *g, int64_t count) { return pick(&g->state, count); }
static bool    chance(Generator *g, int percent) { return draw(g, 100) < percent; }

static CornuType type_of(const Generator *g, CornuValue v)
{
    return cornu_program_type(g->c->program, v);
}

static int64_t extent(Generator *g)
{
    static const int64_t extents[] = { 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33 };
    return extents[draw(g, sizeof extents / sizeof *extents)];
}

/* ---- Recording ---- */

/* Whether it can be compared: in the range of its dtype, with a bound that is small beside it.
 * Whole values are checked, as elements near zero have relatively large bounds. */
static bool usable(const Generator *g, CornuValue v)
{
    const CornuDtype dtype = type_of(g, v).dtype;
    const double     limit = dtype == CORNU_F16 ? 1e3 : 1e6;
    double           largest = 0.0, bound = 0.0;
    for (int64_t i = 0; i < bounds_count(&g->bounds, g->c->program, v); i++) {
        const double x = g->bounds.value[v][i];
        if (!(fabs(x) <= limit) || !isfinite(g->bounds.bound[v][i])) return false;
        if (!cornu_dtype_is_float(dtype) && rounded(x, dtype) != x) return false;
        largest = fmax(largest, fabs(x));
        bound = fmax(bound, g->bounds.bound[v][i]);
    }
    return bound <= 0.05 * largest || bound <= 1e-3;
}

/* Removes the last op. */
static void unrecord(Generator *g)
{
    CornuProgram   *p = g->c->program;
    CornuProgramOp *op = &p->ops[--p->op_count];
    cornu__attributes_free(op->id, &op->attributes);
    p->operand_count -= op->in_count;
    p->value_count = op->out_first;
    bounds_cut(&g->bounds, p->value_count);
}

/* Whether an op is small enough to be computed often. */
static bool affordable(const Generator *g, CornuOpId id, const CornuAttributes *attributes,
                       const CornuValue *in, int in_count)
{
    CornuType   types[64], out[CORNU_MAX_OUTPUTS];
    CornuOpCall call = { id, attributes, in_count, types };
    for (int i = 0; i < in_count; i++) types[i] = type_of(g, in[i]);
    if (cornu__op_type(&call, out)) return false;
    for (int k = 0; k < cornu__result_count(id, attributes); k++)
        if (cornu_type_count(out[k]) > MOST_ELEMENTS || cornu_type_count(out[k]) < 1) return false;
    return cornu_op_flops(&call) <= MOST_FLOPS;
}

/* Records an op if it is allowed and useful; fills out[] or gives CORNU_NO_VALUE. */
static CornuValue emit_all(Generator *g, CornuOpId id, const CornuAttributes *attributes,
                           const CornuValue *in, int in_count, CornuValue *out)
{
    static const CornuAttributes none;
    CornuProgram *p = g->c->program;
    out[0] = CORNU_NO_VALUE;
    if (!attributes) attributes = &none;
    for (int i = 0; i < in_count; i++)
        if (in[i] == CORNU_NO_VALUE) return CORNU_NO_VALUE;
    if (p->value_count >= MOST_VALUES || !affordable(g, id, attributes, in, in_count) ||
        cornu_program_record(p, id, attributes, in, in_count, out)) {
        cornu_error_take();
        return out[0] = CORNU_NO_VALUE;
    }
    bool kept = bounds_extend(&g->bounds, p, NULL, NULL) == CORNU_OK;
    for (int k = 0; k < p->ops[p->op_count - 1].out_count && kept; k++) kept = usable(g, out[k]);
    if (kept) return out[0];
    cornu_error_take();
    unrecord(g);
    return out[0] = CORNU_NO_VALUE;
}

static CornuValue emit(Generator *g, CornuOpId id, const CornuAttributes *attributes,
                       const CornuValue *in, int in_count)
{
    CornuValue out[CORNU_MAX_OUTPUTS];
    return emit_all(g, id, attributes, in, in_count, out);
}

static CornuValue emit1(Generator *g, CornuOpId id, CornuValue x)
{
    return emit(g, id, NULL, &x, 1);
}

static CornuValue emit2(Generator *g, CornuOpId id, CornuValue x, CornuValue y)
{
    return emit(g, id, NULL, (CornuValue[]){ x, y }, 2);
}

/* ---- Operands ---- */

typedef enum { ANY, POSITIVE, SMALL, LABELS, VARIED } Numbers;

static double number(Generator *g, CornuDtype dtype, Numbers numbers, int64_t labels)
{
    const double uniform = (double)(next(&g->state) >> 11) * 0x1p-53;
    if (dtype == CORNU_BOOL) return uniform < 0.5;
    if (!cornu_dtype_is_float(dtype)) return floor(uniform * (double)(labels > 0 ? labels : 10));
    switch (numbers) {
    case POSITIVE: return 0.5 + 2.0 * uniform;
    case SMALL:    return 0.5 * uniform - 0.25;
    case VARIED:   return uniform < 0.3 ? 0.0 : exp(20.0 * (uniform - 0.65));
    default:       return 4.0 * uniform - 2.0;
    }
}

/* An input, one for every shard or one for all. */
static CornuValue fresh_for(Generator *g, CornuType type, Numbers numbers, int64_t labels,
                            bool varies)
{
    const int64_t count = cornu_type_count(type) * (varies ? g->c->shards : 1);
    if (g->c->program->value_count >= MOST_VALUES || count > MOST_ELEMENTS * 8)
        return CORNU_NO_VALUE;
    double *x = calloc((size_t)count + 1, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = rounded(number(g, type.dtype, numbers, labels), type.dtype);
    CornuValue v = trial_input(g->c, type, varies, x);
    free(x);
    if (v == CORNU_NO_VALUE) {
        cornu_error_take();
        return v;
    }
    bounds_extend(&g->bounds, g->c->program, g->c->input, NULL);
    return v;
}

static CornuValue fresh(Generator *g, CornuType type, Numbers numbers, int64_t labels)
{
    const bool varies = g->c->shards > 1 && type.shape.rank < CORNU_MAX_RANK && chance(g, 60);
    return fresh_for(g, type, numbers, labels, varies);
}

/* An earlier value, more often a recent one; of this dtype unless it is -1. */
static CornuValue any_value(Generator *g, int dtype)
{
    const int count = g->c->program->value_count;
    for (int tries = 0; tries < 12; tries++) {
        const bool recent = chance(g, 55) && count > 5;
        CornuValue v = (CornuValue)(recent ? count - 1 - draw(g, 5) : draw(g, count));
        if (dtype < 0 || (int)type_of(g, v).dtype == dtype) return v;
    }
    return CORNU_NO_VALUE;
}

static CornuDtype a_float(Generator *g)
{
    static const CornuDtype floats[] = { CORNU_F32, CORNU_F32, CORNU_F32, CORNU_F32, CORNU_F32,
                                         CORNU_F32, CORNU_BF16, CORNU_BF16, CORNU_F16, CORNU_F64 };
    return floats[draw(g, 10)];
}

static CornuValue any_float(Generator *g)
{
    CornuValue v = any_value(g, (int)a_float(g));
    return v != CORNU_NO_VALUE ? v : any_value(g, CORNU_F32);
}

static CornuValue shaped(Generator *g, CornuOpId id, CornuValue x, CornuShape shape)
{
    CornuAttributes attributes = { .shape = { .rank = shape.rank } };
    for (int i = 0; i < shape.rank; i++) attributes.shape.extents[i] = shape.extent[i];
    return emit(g, id, &attributes, &x, 1);
}

static CornuValue converted(Generator *g, CornuValue x, CornuDtype dtype)
{
    if (x == CORNU_NO_VALUE || type_of(g, x).dtype == dtype) return x;
    return emit(g, CORNU_OP_CONVERT, &(CornuAttributes){ .convert = { dtype } }, &x, 1);
}

static CornuValue scalar(Generator *g, CornuDtype dtype, double value)
{
    CornuAttributes attributes = { .constant = { dtype, value } };
    return emit(g, CORNU_OP_CONSTANT, &attributes, NULL, 0);
}

static bool broadcasts(CornuShape from, CornuShape to)
{
    if (from.rank > to.rank) return false;
    for (int a = 1; a <= from.rank; a++) {
        const int64_t e = from.extent[from.rank - a];
        if (e != 1 && e != to.extent[to.rank - a]) return false;
    }
    return true;
}

/* x in another type, by whatever that takes: a conversion, a reshape, a broadcast, a slice,
 * padding. */
static CornuValue fit(Generator *g, CornuValue x, CornuType type)
{
    x = converted(g, x, type.dtype);
    if (x == CORNU_NO_VALUE || cornu_type_equal(type_of(g, x), type)) return x;
    const CornuShape from = type_of(g, x).shape;
    const int64_t    have = cornu_shape_count(from), want = cornu_type_count(type);
    if (have != want && broadcasts(from, type.shape))
        return shaped(g, CORNU_OP_BROADCAST, x, type.shape);
    if (have != want) {
        x = from.rank == 1 ? x : shaped(g, CORNU_OP_RESHAPE, x, cornu_shape(have));
        CornuAttributes part = { .slice = { { have > want ? draw(g, have - want + 1) : 0 },
                                            { want } } };
        CornuAttributes pad = { .pad = { .high = { want - have } } };
        x = have > want ? emit(g, CORNU_OP_SLICE, &part, &x, 1)
                        : emit(g, CORNU_OP_PAD, &pad, &x, 1);
        if (x == CORNU_NO_VALUE) return x;
    }
    if (cornu_shape_equal(type_of(g, x).shape, type.shape)) return x;
    return shaped(g, CORNU_OP_RESHAPE, x, type.shape);
}

/* A value of this type. */
static CornuValue want(Generator *g, CornuType type, Numbers numbers)
{
    const int count = g->c->program->value_count, first = (int)draw(g, count + 1);
    CornuValue v = CORNU_NO_VALUE;
    if (chance(g, 60))
        for (int i = 0; i < count && v == CORNU_NO_VALUE; i++)
            if (cornu_type_equal(type_of(g, (first + i) % count), type)) v = (first + i) % count;
    const bool many = g->c->program->input_count >= MOST_INPUTS;
    if (v == CORNU_NO_VALUE && count && (chance(g, 60) || many))
        v = fit(g, any_value(g, -1), type);
    if (v == CORNU_NO_VALUE && g->c->program->input_count < MOST_INPUTS + 6)
        v = fresh(g, type, numbers, 0);
    if (v == CORNU_NO_VALUE && type.dtype != CORNU_BOOL)
        v = fit(g, scalar(g, type.dtype, 1.0), type);
    return v;
}

/* Integers below `labels`: nothing else is known to be in range. */
static CornuValue labelled(Generator *g, CornuShape shape, int64_t labels)
{
    static const CornuDtype dtypes[] = { CORNU_I32, CORNU_I64, CORNU_U8, CORNU_U32 };
    CornuType type = cornu_type_from(dtypes[draw(g, 4)], shape);
    if (chance(g, 25)) {
        CornuValue v = want(g, type, ANY);
        if (v != CORNU_NO_VALUE) return v;
    }
    return fresh(g, type, LABELS, labels);
}

static CornuShape a_shape(Generator *g, int rank)
{
    CornuShape shape = { .rank = rank };
    for (;;) {
        for (int i = 0; i < rank; i++) shape.extent[i] = extent(g);
        if (cornu_shape_count(shape) <= 600) return shape;
    }
}

/* A float value of this rank. */
static CornuValue of_rank(Generator *g, int rank)
{
    for (int tries = 0; tries < 8; tries++) {
        CornuValue v = any_float(g);
        if (v != CORNU_NO_VALUE && type_of(g, v).shape.rank == rank) return v;
    }
    return want(g, cornu_type_from(a_float(g), a_shape(g, rank)), ANY);
}

/* ---- One maker for each kind of op ---- */

static CornuValue make_unary(Generator *g, CornuOpId id)
{
    CornuValue      x = any_float(g);
    CornuAttributes attributes = {
        .alpha = { chance(g, 50) ? 1.0 : 0.25 * (double)draw(g, 7) - 0.5 },
    };
    if (x == CORNU_NO_VALUE) return x;
    if ((id == CORNU_OP_LOG || id == CORNU_OP_SQRT || id == CORNU_OP_RSQRT) && chance(g, 70)) {
        x = emit1(g, CORNU_OP_ABSOLUTE, x);
        if (x == CORNU_NO_VALUE) return x;
        x = emit2(g, CORNU_OP_ADD, x, fit(g, scalar(g, type_of(g, x).dtype, 0.5), type_of(g, x)));
    }
    if ((id == CORNU_OP_NEGATIVE || id == CORNU_OP_ABSOLUTE) && chance(g, 20))
        x = any_value(g, chance(g, 50) ? CORNU_I32 : CORNU_I64);
    return emit(g, id, id == CORNU_OP_ELU ? &attributes : NULL, &x, 1);
}

static CornuValue make_binary(Generator *g, CornuOpId id)
{
    CornuValue x = chance(g, 75) ? any_float(g) : any_value(g, -1);
    if (x == CORNU_NO_VALUE) return x;
    CornuValue y = chance(g, 10) ? x : want(g, type_of(g, x), POSITIVE);
    if (id == CORNU_OP_POWER && cornu_dtype_is_float(type_of(g, x).dtype))
        x = emit1(g, CORNU_OP_ABSOLUTE, x);
    return chance(g, 50) ? emit2(g, id, x, y) : emit2(g, id, y, x);
}

static CornuValue make_compare(Generator *g, CornuOpId id)
{
    CornuValue      x = any_value(g, -1);
    CornuAttributes attributes = { .compare = { (CornuComparison)draw(g, 6) } };
    CornuValue      in[2] = { x, want(g, type_of(g, x), ANY) };
    return emit(g, id, &attributes, in, 2);
}

static CornuValue make_select(Generator *g, CornuOpId id)
{
    CornuValue x = any_value(g, -1), in[3] = { CORNU_NO_VALUE, x, want(g, type_of(g, x), ANY) };
    in[0] = want(g, cornu_type_from(CORNU_BOOL, type_of(g, x).shape), ANY);
    return emit(g, id, NULL, in, 3);
}

static CornuValue make_convert(Generator *g, CornuOpId id)
{
    CornuValue      x = any_value(g, -1);
    CornuAttributes attributes = { .convert = { chance(g, 60) ? a_float(g)
                                                : (CornuDtype)draw(g, CORNU_DTYPE_COUNT) } };
    return emit(g, id, &attributes, &x, 1);
}

static CornuValue make_broadcast(Generator *g, CornuOpId id)
{
    CornuValue x = any_value(g, -1);
    CornuShape from = type_of(g, x).shape, to = from;
    if (from.rank < CORNU_MAX_RANK && chance(g, 60)) {
        to.rank++;
        for (int i = 0; i < from.rank; i++) to.extent[i + 1] = from.extent[i];
        to.extent[0] = extent(g);
    }
    for (int i = 0; i < to.rank; i++)
        if (to.extent[i] == 1 && chance(g, 60)) to.extent[i] = extent(g);
    return shaped(g, id, x, to);
}

static CornuValue make_reshape(Generator *g, CornuOpId id)
{
    CornuValue x = any_value(g, -1);
    int64_t    left = cornu_type_count(type_of(g, x));
    CornuShape to = { .rank = (int)draw(g, 5) };
    for (int i = 0; i < to.rank; i++) {
        int64_t part = 1 + draw(g, left < 9 ? left : 9);
        while (left % part) part--;
        to.extent[i] = i + 1 < to.rank ? part : left;
        left /= to.extent[i];
    }
    return shaped(g, id, x, to);
}

static CornuValue make_transpose(Generator *g, CornuOpId id)
{
    CornuValue      x = any_value(g, -1);
    CornuAttributes attributes = { .permutation = { { 0 } } };
    const int       rank = type_of(g, x).shape.rank;
    for (int i = 0; i < rank; i++) attributes.permutation.axes[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int64_t k = draw(g, i + 1), kept = attributes.permutation.axes[i];
        attributes.permutation.axes[i] = attributes.permutation.axes[k];
        attributes.permutation.axes[k] = kept;
    }
    return emit(g, id, &attributes, &x, 1);
}

static CornuValue make_slice(Generator *g, CornuOpId id)
{
    CornuValue       x = any_value(g, -1);
    const CornuShape shape = type_of(g, x).shape;
    CornuAttributes  attributes = { .slice = { { 0 }, { 0 } } };
    for (int i = 0; i < shape.rank; i++) {
        const bool whole = chance(g, 50);
        attributes.slice.starts[i] = whole ? 0 : draw(g, shape.extent[i]);
        const int64_t left = shape.extent[i] - attributes.slice.starts[i];
        attributes.slice.sizes[i] = whole ? left : 1 + draw(g, left);
    }
    return emit(g, id, &attributes, &x, 1);
}

static CornuValue make_pad(Generator *g, CornuOpId id)
{
    CornuValue      x = any_value(g, -1);
    CornuAttributes attributes = { .pad = { .value = chance(g, 70) ? 0.0 : 1.0 } };
    for (int i = 0; i < type_of(g, x).shape.rank; i++) {
        attributes.pad.low[i] = chance(g, 50) ? 0 : draw(g, 3);
        attributes.pad.high[i] = chance(g, 50) ? 0 : draw(g, 3);
    }
    return emit(g, id, &attributes, &x, 1);
}

static CornuValue make_concat(Generator *g, CornuOpId id)
{
    CornuValue in[4] = { any_value(g, -1) };
    CornuType  type = type_of(g, in[0]);
    if (type.shape.rank == 0) return CORNU_NO_VALUE;
    CornuAttributes attributes = { .axis = { draw(g, type.shape.rank) } };
    const int       count = 1 + (int)draw(g, 4);
    for (int i = 1; i < count; i++) {
        if (chance(g, 30)) type.shape.extent[attributes.axis.axis] = extent(g);
        in[i] = chance(g, 15) ? in[i - 1] : want(g, type, ANY);
    }
    return emit(g, id, &attributes, in, count);
}

static CornuValue make_flip(Generator *g, CornuOpId id)
{
    CornuValue x = any_value(g, -1);
    const int  rank = type_of(g, x).shape.rank;
    return rank ? emit(g, id, &(CornuAttributes){ .axis = { draw(g, rank) } }, &x, 1)
                : CORNU_NO_VALUE;
}

static CornuValue make_pack(Generator *g, CornuOpId id)
{
    CornuValue in[4] = { any_value(g, -1) };
    CornuAttributes attributes = { .pack = { 1 + draw(g, 20), 0 } };
    const int       count = 1 + (int)draw(g, 4);
    int64_t         end = 0;
    for (int i = 0; i < count; i++) {
        if (i) in[i] = any_value(g, (int)type_of(g, in[0]).dtype);
        if (in[i] == CORNU_NO_VALUE) return CORNU_NO_VALUE;
        end = cornu__pack_start(&attributes.pack, end) + cornu_type_count(type_of(g, in[i]));
    }
    attributes.pack.extent = end + draw(g, 20);
    return emit(g, id, &attributes, in, count);
}

static CornuValue make_reduce(Generator *g, CornuOpId id)
{
    CornuValue      x = chance(g, 90) ? any_float(g) : any_value(g, -1);
    if (x == CORNU_NO_VALUE) return x;
    const int       rank = type_of(g, x).shape.rank;
    CornuAttributes attributes = {
        .reduce = { chance(g, 15) ? 63 : draw(g, INT64_C(1) << rank), draw(g, 2), draw(g, 2) },
    };
    return emit(g, id, &attributes, &x, 1);
}

static CornuValue make_argmax(Generator *g, CornuOpId id)
{
    CornuValue x = any_float(g);
    if (x == CORNU_NO_VALUE || type_of(g, x).shape.rank == 0) return CORNU_NO_VALUE;
    CornuAttributes attributes = { .axis = { draw(g, type_of(g, x).shape.rank) } };
    return emit(g, id, &attributes, &x, 1);
}

/* A dtype for the result of products of this one. */
static CornuDtype product_dtype(Generator *g, CornuDtype dtype)
{
    return chance(g, 60) ? dtype : dtype == CORNU_F64 || chance(g, 20) ? a_float(g) : CORNU_F32;
}

static CornuValue make_matmul(Generator *g, CornuOpId id)
{
    CornuValue in[2] = { of_rank(g, chance(g, 75) ? 2 : 3) };
    if (in[0] == CORNU_NO_VALUE) return CORNU_NO_VALUE;
    const CornuType a = type_of(g, in[0]);
    CornuAttributes attributes = {
        .matmul = { draw(g, 2), draw(g, 2), product_dtype(g, a.dtype) },
    };
    const int64_t k = a.shape.extent[a.shape.rank - (attributes.matmul.transpose_a ? 2 : 1)];
    const int64_t n = extent(g);
    CornuType     b = a;
    if (chance(g, 60)) b.shape = cornu_shape(1, 1);
    b.shape.extent[b.shape.rank - 2] = attributes.matmul.transpose_b ? n : k;
    b.shape.extent[b.shape.rank - 1] = attributes.matmul.transpose_b ? k : n;
    in[1] = want(g, b, SMALL);
    return emit(g, id, &attributes, in, 2);
}

/* The forward attributes of a convolution of x; those of the other ops start with the same fields.
 * */
static CornuAttributes_GROUPED_CONV2D convolution(Generator *g, const int64_t *filter,
                                                  int64_t groups, CornuDtype dtype)
{
    CornuAttributes_GROUPED_CONV2D a = { .dtype = dtype, .groups = groups };
    for (int i = 0; i < 2; i++) {
        a.strides[i] = chance(g, 60) ? 1 : 1 + draw(g, 3);
        a.dilation[i] = chance(g, 80) ? 1 : 2;
        a.low[i] = chance(g, 10) ? -draw(g, 2) : draw(g, filter[i] + 1);
        a.high[i] = chance(g, 10) ? -draw(g, 2) : draw(g, filter[i] + 1);
    }
    return a;
}

static CornuValue make_conv2d(Generator *g, CornuOpId id)
{
    const bool grouped = id == CORNU_OP_GROUPED_CONV2D ||
                         id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT ||
                         id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
    const bool by_input = id == CORNU_OP_CONV2D_GRAD_INPUT ||
                          id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT;
    const bool by_filter = id == CORNU_OP_CONV2D_GRAD_FILTER ||
                           id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
    CornuValue x = of_rank(g, 4);
    if (x == CORNU_NO_VALUE) return x;
    CornuType  of_x = type_of(g, x);
    int64_t    channels = of_x.shape.extent[3], groups = 1;
    if (grouped) {
        groups = chance(g, 50) ? channels : 1 + draw(g, channels);
        while (channels % groups) groups--;
    }
    /* Many filters now and then: whole vectors have other kernels than a few filters. */
    const int64_t   filters = groups == 1 && chance(g, 15) ? 16 + 16 * draw(g, 2)
                                                           : groups * (1 + draw(g, 3));
    const CornuType filter = cornu_type(of_x.dtype, 1 + draw(g, 3), 1 + draw(g, 3),
                                        channels / groups, filters);
    CornuAttributes forward = {
        .grouped_conv2d = convolution(g, filter.shape.extent, groups,
                                      product_dtype(g, of_x.dtype)),
    };
    if (!by_input && !by_filter)
        return emit(g, id, &forward, (CornuValue[]){ x, want(g, filter, SMALL) }, 2);
    CornuType   d_y, both[2] = { of_x, filter };
    CornuOpCall call = { grouped ? CORNU_OP_GROUPED_CONV2D : CORNU_OP_CONV2D, &forward, 2, both };
    if (cornu__op_type(&call, &d_y)) return cornu_error_take(), CORNU_NO_VALUE;
    d_y.dtype = of_x.dtype;
    const CornuAttributes_GROUPED_CONV2D *f = &forward.grouped_conv2d;
    CornuAttributes attributes = { .grouped_conv2d_grad = { .dtype = f->dtype, .groups = groups } };
    if (!grouped) attributes = (CornuAttributes){ .conv2d_grad = { .dtype = f->dtype } };
    for (int i = 0; i < 2; i++) {
        attributes.conv2d_grad.strides[i] = f->strides[i];
        attributes.conv2d_grad.low[i] = f->low[i];
        attributes.conv2d_grad.high[i] = f->high[i];
        attributes.conv2d_grad.dilation[i] = f->dilation[i];
        attributes.conv2d_grad.extents[i] = by_input ? of_x.shape.extent[1 + i]
                                                     : filter.shape.extent[i];
    }
    CornuValue in[2] = { x, want(g, d_y, ANY) };
    if (by_input) in[0] = in[1], in[1] = want(g, filter, SMALL);
    return emit(g, id, &attributes, in, 2);
}

static CornuValue make_pool(Generator *g, CornuOpId id)
{
    CornuValue x = of_rank(g, 4), out[CORNU_MAX_OUTPUTS];
    if (x == CORNU_NO_VALUE) return x;
    const int64_t  *shape = type_of(g, x).shape.extent;
    CornuAttributes forward = { .window = { .size = { 0 } } };
    CornuAttributes grad = { .window_grad = { .size = { 0 } } };
    const int64_t   extents[2] = { shape[1], shape[2] };
    for (int i = 0; i < 2; i++) {
        const int64_t size = chance(g, 50) ? 2 : 1 + draw(g, 3);
        const int64_t stride = chance(g, 60) ? size : 1 + draw(g, 3);
        const int64_t low = chance(g, 70) ? 0 : draw(g, size);
        const int64_t high = chance(g, 70) ? 0 : draw(g, size);
        forward.window.size[i] = grad.window_grad.size[i] = size;
        forward.window.strides[i] = grad.window_grad.strides[i] = stride;
        forward.window.low[i] = grad.window_grad.low[i] = low;
        forward.window.high[i] = grad.window_grad.high[i] = high;
        grad.window_grad.extents[i] = extents[i];
    }
    const bool max = id == CORNU_OP_MAX_POOL2D || id == CORNU_OP_MAX_POOL2D_GRAD;
    CornuValue y = emit_all(g, max ? CORNU_OP_MAX_POOL2D : CORNU_OP_AVERAGE_POOL2D, &forward, &x, 1,
                            out);
    if (y == CORNU_NO_VALUE || id == CORNU_OP_MAX_POOL2D || id == CORNU_OP_AVERAGE_POOL2D) return y;
    CornuValue in[2] = { want(g, type_of(g, y), ANY), out[1] };
    return emit(g, id, &grad, in, max ? 2 : 1);
}

static CornuValue make_batch_norm(Generator *g, CornuOpId id)
{
    CornuValue x = of_rank(g, chance(g, 50) ? 4 : 2);
    if (x == CORNU_NO_VALUE) return x;
    const CornuType  type = type_of(g, x);
    const CornuType  vector = cornu_type(CORNU_F32, type.shape.extent[type.shape.rank - 1]);
    CornuAttributes  attributes = { .epsilon = { chance(g, 50) ? 1e-3 : 1e-2 } };
    const int64_t    batch = type.shape.extent[0];
    CornuValue count = scalar(g, CORNU_I64, (double)(chance(g, 60) ? batch : draw(g, batch + 1)));
    if (id == CORNU_OP_BATCH_NORM)
        return emit(g, id, &attributes, (CornuValue[]){ x, want(g, vector, POSITIVE),
                                                        want(g, vector, ANY), count }, 4);
    return emit(g, id, &attributes,
                (CornuValue[]){ x, want(g, vector, POSITIVE), want(g, vector, ANY),
                                fresh(g, vector, POSITIVE, 0), want(g, type, ANY), count }, 6);
}

static CornuValue make_softmax(Generator *g, CornuOpId id) { return emit1(g, id, any_float(g)); }

static CornuValue make_one_hot(Generator *g, CornuOpId id)
{
    CornuAttributes attributes = { .one_hot = { 1 + draw(g, 9), a_float(g) } };
    CornuValue      labels = labelled(g, a_shape(g, (int)draw(g, 3)), attributes.one_hot.depth);
    return emit(g, id, &attributes, &labels, 1);
}

static CornuValue make_cross_entropy(Generator *g, CornuOpId id)
{
    CornuValue x = any_float(g);
    if (x == CORNU_NO_VALUE || type_of(g, x).shape.rank == 0) return CORNU_NO_VALUE;
    CornuShape shape = type_of(g, x).shape;
    const int64_t classes = shape.extent[--shape.rank];
    shape.extent[shape.rank] = 0;
    return emit2(g, id, x, labelled(g, shape, classes));
}

static CornuValue make_gather(Generator *g, CornuOpId id)
{
    CornuValue table = chance(g, 85) ? of_rank(g, 2) : any_value(g, -1);
    if (table == CORNU_NO_VALUE || type_of(g, table).shape.rank != 2) return CORNU_NO_VALUE;
    const CornuType type = type_of(g, table);
    CornuShape      lookup = a_shape(g, (int)draw(g, 3));
    CornuValue      indices = labelled(g, lookup, type.shape.extent[0]);
    if (id == CORNU_OP_GATHER) return emit2(g, id, table, indices);
    lookup.extent[lookup.rank++] = type.shape.extent[1];
    CornuAttributes grad = { .gather_grad = { type.shape.extent[0],
                                              product_dtype(g, type.dtype) } };
    if (!cornu_dtype_is_float(type.dtype)) return CORNU_NO_VALUE;
    return emit(g, id, &grad, (CornuValue[]){ want(g, cornu_type_from(type.dtype, lookup), ANY),
                                              indices }, 2);
}

/* A body of elementwise ops, and a product where the carry is a matrix. */
static CornuProgram *scan_body(Generator *g, CornuType type, int carries, int slices, int constants)
{
    static const CornuOpId unary[] = { CORNU_OP_TANH, CORNU_OP_SIGMOID, CORNU_OP_SIN,
                                       CORNU_OP_RELU, CORNU_OP_NEGATIVE };
    static const CornuOpId binary[] = { CORNU_OP_ADD, CORNU_OP_MULTIPLY, CORNU_OP_SUBTRACT,
                                        CORNU_OP_MAXIMUM };
    CornuProgram *body = cornu_program_create();
    CornuValue    values[32];
    int           count = 0;
    for (int i = 0; i < carries + slices + constants; i++)
        cornu_program_input(body, type, &values[count++]);
    const int ops = 1 + (int)draw(g, 8);
    for (int i = 0; i < ops; i++) {
        CornuValue in[2] = { values[draw(g, count)], values[draw(g, count)] };
        if (type.shape.rank == 2 && type.shape.extent[0] == type.shape.extent[1] && chance(g, 20)) {
            CornuAttributes product = { .matmul = { draw(g, 2), draw(g, 2), type.dtype } };
            cornu_program_record(body, CORNU_OP_MATMUL, &product, in, 2, &values[count++]);
        } else if (chance(g, 40)) {
            cornu_program_record(body, unary[draw(g, 5)], NULL, in, 1, &values[count++]);
        } else {
            cornu_program_record(body, binary[draw(g, 4)], NULL, in, 2, &values[count++]);
        }
    }
    const int outputs = carries + (int)draw(g, 3);
    for (int i = 0; i < outputs || i == 0; i++)
        cornu_program_output(body, values[chance(g, 70) ? count - 1 - draw(g, count < 3 ? count : 3)
                                                        : draw(g, count)], -1);
    return body;
}

static CornuValue make_scan(Generator *g, CornuOpId id)
{
    CornuValue      in[6];
    const int       carries = (int)draw(g, 3), slices = (int)draw(g, 3);
    const int       constants = (int)draw(g, 3);
    CornuType       type = cornu_type_from(chance(g, 80) ? CORNU_F32 : a_float(g),
                                           a_shape(g, (int)draw(g, 3)));
    if (type.shape.rank == 2 && chance(g, 40)) type.shape.extent[1] = type.shape.extent[0];
    CornuAttributes a = { .scan = { .carries = carries, .slices = slices, .steps = 1 + draw(g, 5),
                                    .axis = draw(g, type.shape.rank + 1),
                                    .reverse = draw(g, 2) } };
    CornuType whole = type;
    for (int i = whole.shape.rank++; i > a.scan.axis; i--)
        whole.shape.extent[i] = whole.shape.extent[i - 1];
    whole.shape.extent[a.scan.axis] = a.scan.steps;
    if (carries + slices + constants == 0) return CORNU_NO_VALUE;
    for (int i = 0; i < carries + slices + constants; i++)
        in[i] = want(g, i >= carries && i < carries + slices ? whole : type, SMALL);
    CornuProgram *body = scan_body(g, type, carries, slices, constants);
    a.scan.body = body;
    CornuValue y = emit(g, id, &a, in, carries + slices + constants);
    cornu_program_free(body);
    return y;
}

static CornuValue make_recurrent(Generator *g, CornuOpId id)
{
    const int64_t    b = 1 + draw(g, 5), t = 1 + draw(g, 5);
    const int64_t    u = chance(g, 80) ? 1 + draw(g, 9) : 17;
    const CornuDtype dtype = chance(g, 70) ? CORNU_F32 : a_float(g);
    const CornuDtype wide = (dtype == CORNU_BF16 || dtype == CORNU_F16) && chance(g, 50) ? CORNU_F32
                                                                                         : dtype;
    const CornuType  h = cornu_type(dtype, b, u), mask = cornu_type(CORNU_BOOL, b, t);
    const CornuType  c = cornu_type(wide, b, u), cells = cornu_type(wide, b, t, u);
    const CornuType  all = cornu_type(dtype, b, t, u), four = cornu_type(dtype, b, t, 4 * u);
    CornuAttributes  a = { .recurrence = { draw(g, 2), chance(g, 75) ? 0.0 : 0.2 } };
    CornuValue       in[8];
    int              n = 0;
    switch (id) {
    case CORNU_OP_LSTM:
        in[n++] = want(g, four, ANY);
        in[n++] = want(g, cornu_type(dtype, u, 4 * u), SMALL);
        in[n++] = want(g, h, SMALL);
        in[n++] = want(g, c, SMALL);
        break;
    case CORNU_OP_LSTM_GRAD:
        in[n++] = fresh(g, four, POSITIVE, 0);
        in[n++] = want(g, cells, SMALL);
        in[n++] = want(g, c, SMALL);
        in[n++] = want(g, cornu_type(dtype, u, 4 * u), SMALL);
        in[n++] = want(g, all, ANY);
        in[n++] = want(g, c, ANY);
        break;
    case CORNU_OP_GRU:
        in[n++] = want(g, cornu_type(dtype, b, t, 3 * u), ANY);
        in[n++] = want(g, cornu_type(dtype, u, 3 * u), SMALL);
        in[n++] = want(g, h, SMALL);
        in[n++] = want(g, cornu_type(dtype, 3 * u), SMALL);
        break;
    default:
        in[n++] = fresh(g, four, SMALL, 0);
        in[n++] = want(g, all, SMALL);
        in[n++] = want(g, h, SMALL);
        in[n++] = want(g, cornu_type(dtype, u, 3 * u), SMALL);
        in[n++] = want(g, all, ANY);
    }
    if (chance(g, 40)) in[n++] = want(g, mask, ANY);
    return emit(g, id, &a, in, n);
}

/* For an even number of four shards and more sometimes groups: of two or of half of them, some
 * neighbours, some far apart; else all in one. */
static CornuAttributes groups(Generator *g, int listed[MOST_SHARDS])
{
    const int shards = g->c->shards;
    if (shards < 4 || shards % 2 || !chance(g, 30))
        return (CornuAttributes){ .shards = { .size = shards } };
    const int  size = chance(g, 50) ? 2 : shards / 2, count = shards / size;
    const bool neighbours = chance(g, 50);
    for (int i = 0; i < shards; i++)
        listed[i] = neighbours ? i : i / size + i % size * count;
    return (CornuAttributes){ .shards = { size, { shards, listed } } };
}

static CornuValue make_collective(Generator *g, CornuOpId id)
{
    CornuValue      x = any_value(g, chance(g, 80) ? CORNU_F32 : -1);
    int             listed[MOST_SHARDS];
    CornuAttributes attributes = groups(g, listed);
    if (x == CORNU_NO_VALUE) return x;
    if ((id == CORNU_OP_REDUCE_SCATTER || id == CORNU_OP_SHARD_SLICE) &&
        (type_of(g, x).shape.rank == 0 ||
         type_of(g, x).shape.extent[0] % attributes.shards.size)) {
        CornuType type = type_of(g, x);
        if (type.shape.rank == 0) type.shape = cornu_shape(1, 3);
        type.shape.extent[0] = attributes.shards.size * (1 + draw(g, 3));
        x = want(g, type, ANY);
    }
    return emit(g, id, &attributes, &x, 1);
}

static CornuValue make_random(Generator *g, CornuOpId id)
{
    CornuValue in[4] = { any_float(g), scalar(g, CORNU_I64, (double)draw(g, 1000)),
                         scalar(g, CORNU_I64, (double)draw(g, 9)),
                         scalar(g, CORNU_I64, (double)draw(g, 99)) };
    CornuAttributes attributes = { .dropout = { 0.25 * (double)draw(g, 4), draw(g, 5) } };
    if (id == CORNU_OP_DROPOUT) return emit(g, id, &attributes, in, 4);
    const CornuShape shape = a_shape(g, (int)draw(g, 5));
    attributes = (CornuAttributes){ .random = { .rank = shape.rank, .generator = draw(g, 5) } };
    for (int i = 0; i < shape.rank; i++) attributes.random.extents[i] = shape.extent[i];
    return emit(g, id, &attributes, in + 1, 3);
}

static CornuValue make_update(Generator *g, CornuOpId id)
{
    CornuValue w = any_value(g, CORNU_F32);
    if (w == CORNU_NO_VALUE) return w;
    const CornuType type = type_of(g, w);
    CornuValue slot = want(g, type, SMALL), gradient = want(g, type, ANY);
    CornuValue rate = want(g, cornu_scalar(CORNU_F32), POSITIVE);
    CornuAttributes momentum = { .momentum = { 0.9, draw(g, 2) } };
    CornuAttributes rmsprop = { .rmsprop = { 0.9, 1e-3 } }, adam = { .adam = { 0.9, 0.99, 1e-3 } };
    if (id == CORNU_OP_MOMENTUM_UPDATE)
        return emit(g, id, &momentum, (CornuValue[]){ w, slot, gradient, rate }, 4);
    CornuValue squares = fresh(g, type, POSITIVE, 0);
    if (id == CORNU_OP_RMSPROP_UPDATE)
        return emit(g, id, &rmsprop, (CornuValue[]){ w, squares, gradient, rate }, 4);
    return emit(g, id, &adam, (CornuValue[]){ w, slot, squares, gradient, rate }, 5);
}

static CornuValue make_source(Generator *g, CornuOpId id)
{
    static const CornuDtype numbers[] = { CORNU_F32, CORNU_F64, CORNU_I32, CORNU_I64, CORNU_BF16 };
    const CornuDtype dtype = numbers[draw(g, 5)];
    if (id == CORNU_OP_CONSTANT) return scalar(g, dtype, (double)draw(g, 5) - 1.0);
    if (id == CORNU_OP_REPLICA_ID) return emit(g, id, NULL, NULL, 0);
    const CornuShape shape = a_shape(g, 1 + (int)draw(g, 4));
    CornuAttributes  attributes = { .iota = { dtype, shape.rank, { 0 }, draw(g, shape.rank) } };
    for (int i = 0; i < shape.rank; i++) attributes.iota.extents[i] = shape.extent[i];
    return emit(g, id, &attributes, NULL, 0);
}

/* ---- Several ops that layers put together ---- */

static CornuValue scaled(Generator *g, CornuValue x, double factor)
{
    if (x == CORNU_NO_VALUE) return x;
    const CornuType type = type_of(g, x);
    return emit2(g, CORNU_OP_MULTIPLY, x, fit(g, scalar(g, type.dtype, factor), type));
}

static CornuValue mean(Generator *g, CornuValue x, int64_t axes, bool keep)
{
    if (x == CORNU_NO_VALUE) return x;
    CornuAttributes reduce = { .reduce = { axes, keep, 0 } };
    const int64_t   all = cornu_type_count(type_of(g, x));
    CornuValue      sum = emit(g, CORNU_OP_REDUCE_SUM, &reduce, &x, 1);
    if (sum == CORNU_NO_VALUE) return sum;
    return scaled(g, sum, (double)cornu_type_count(type_of(g, sum)) / (double)all);
}

/* (x - mean) / sqrt(variance + epsilon) over some axes. */
static CornuValue make_normalized(Generator *g)
{
    CornuValue x = any_value(g, CORNU_F32);
    if (x == CORNU_NO_VALUE || type_of(g, x).shape.rank == 0) return CORNU_NO_VALUE;
    const CornuType type = type_of(g, x);
    const int64_t   axes = chance(g, 50) ? INT64_C(1) << (type.shape.rank - 1)
                                         : 1 + draw(g, (INT64_C(1) << type.shape.rank) - 1);
    CornuValue mu = mean(g, x, axes, true);
    if (mu == CORNU_NO_VALUE) return mu;
    CornuValue centred = emit2(g, CORNU_OP_SUBTRACT, x, fit(g, mu, type));
    if (centred == CORNU_NO_VALUE) return centred;
    CornuValue variance = mean(g, emit2(g, CORNU_OP_MULTIPLY, centred, centred), axes, true);
    if (variance == CORNU_NO_VALUE) return variance;
    const CornuType  row = type_of(g, variance);
    variance = emit2(g, CORNU_OP_ADD, variance, fit(g, scalar(g, CORNU_F32, 1e-3), row));
    CornuValue inverse = emit1(g, CORNU_OP_RSQRT, variance);
    return inverse == CORNU_NO_VALUE ? inverse
                                     : emit2(g, CORNU_OP_MULTIPLY, centred, fit(g, inverse, type));
}

static CornuValue make_mean(Generator *g)
{
    CornuValue x = any_float(g);
    if (x == CORNU_NO_VALUE) return x;
    return mean(g, x, draw(g, INT64_C(1) << type_of(g, x).shape.rank), chance(g, 30));
}

/* A product or convolution, a bias or two, an activation, perhaps a pool. */
static CornuValue make_layer(Generator *g)
{
    static const CornuOpId activations[] = { CORNU_OP_RELU, CORNU_OP_TANH, CORNU_OP_SIGMOID,
                                             CORNU_OP_ELU, CORNU_OP_SOFTPLUS };
    const bool image = chance(g, 50);
    CornuValue y = image ? make_conv2d(g, CORNU_OP_CONV2D) : make_matmul(g, CORNU_OP_MATMUL);
    for (int i = (int)draw(g, 3); i > 0 && y != CORNU_NO_VALUE; i--) {
        const CornuType type = type_of(g, y);
        const CornuType bias = cornu_type(type.dtype, type.shape.extent[type.shape.rank - 1]);
        y = emit2(g, CORNU_OP_ADD, y, fit(g, want(g, bias, ANY), type));
    }
    CornuAttributes alpha = { .alpha = { chance(g, 75) ? 1.0 : -0.5 } };
    if (y != CORNU_NO_VALUE && chance(g, 70))
    {
        const CornuOpId id = activations[draw(g, 5)];
        y = emit(g, id, id == CORNU_OP_ELU ? &alpha : NULL, &y, 1);
    }
    if (y != CORNU_NO_VALUE && image && chance(g, 50)) {
        CornuAttributes pool = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
        y = emit(g, chance(g, 70) ? CORNU_OP_MAX_POOL2D : CORNU_OP_AVERAGE_POOL2D, &pool, &y, 1);
    }
    return y;
}

/* A convolution with as many channels and filters as vectors have elements, and its pool. */
static CornuValue make_wide_layer(Generator *g)
{
    const CornuDtype dtype = chance(g, 60) ? CORNU_F32 : CORNU_BF16;
    const CornuType  image = cornu_type(dtype, 1 + draw(g, 3), 4 + draw(g, 4), 4 + draw(g, 4), 16);
    const CornuType  filter = cornu_type(dtype, 3, 3, 16, 16 + 16 * draw(g, 2));
    CornuAttributes  conv = { .conv2d = { .strides = { 1, 1 },
                                          .dtype = chance(g, 80) ? dtype : CORNU_F32 } };
    CornuAttributes  pool = { .window = { .size = { 2, 2 }, .strides = { 2, 2 } } };
    if (chance(g, 50)) conv.conv2d.low[0] = conv.conv2d.low[1] = 1;
    if (chance(g, 50)) conv.conv2d.high[0] = conv.conv2d.high[1] = 1;
    CornuValue y = emit(g, CORNU_OP_CONV2D, &conv, (CornuValue[]){ want(g, image, ANY),
                                                                   want(g, filter, SMALL) }, 2);
    if (y == CORNU_NO_VALUE) return y;
    if (chance(g, 60)) {
        CornuValue bias = want(g, cornu_type(type_of(g, y).dtype, filter.shape.extent[3]), ANY);
        y = emit2(g, CORNU_OP_ADD, y, fit(g, bias, type_of(g, y)));
    }
    if (y != CORNU_NO_VALUE && chance(g, 60)) y = emit1(g, CORNU_OP_RELU, y);
    return y == CORNU_NO_VALUE ? y : emit(g, CORNU_OP_MAX_POOL2D, &pool, &y, 1);
}

/* Rows of a small table, a product, a bias: what a step on characters does. */
static CornuValue make_lookup(Generator *g)
{
    const int64_t    rows = 2 + draw(g, 6), columns = 1 + draw(g, 6), units = 1 + draw(g, 9);
    const CornuDtype dtype = chance(g, 75) ? CORNU_F32 : CORNU_BF16;
    const CornuShape lookup = cornu_shape(1 + draw(g, 4), 1 + draw(g, 9));
    CornuValue table = fresh_for(g, cornu_type(dtype, rows, columns), ANY, 0, false);
    CornuValue w = fresh_for(g, cornu_type(dtype, columns, units), SMALL, 0, false);
    CornuValue bias = fresh_for(g, cornu_type(CORNU_F32, units), ANY, 0, false);
    CornuValue indices = fresh_for(g, cornu_type_from(CORNU_I32, lookup), LABELS, rows,
                                   g->c->shards > 1);
    CornuValue x = emit2(g, CORNU_OP_GATHER, table, indices);
    if (x == CORNU_NO_VALUE) return x;
    x = shaped(g, CORNU_OP_RESHAPE, x, cornu_shape(lookup.extent[0] * lookup.extent[1], columns));
    const CornuAttributes product = { .matmul = { .dtype = CORNU_F32 } };
    CornuValue y = emit(g, CORNU_OP_MATMUL, &product, (CornuValue[]){ x, w }, 2);
    if (y == CORNU_NO_VALUE || chance(g, 30)) return y;
    return emit2(g, CORNU_OP_ADD, y, fit(g, bias, type_of(g, y)));
}

/* The gradient of a lookup on each shard, ops linear in it, and sums of those over shards. */
static CornuValue make_lookup_gradient(Generator *g)
{
    const int64_t rows = 8 * (1 + draw(g, 3)), units = 1 + draw(g, 9), count = 1 + draw(g, 9);
    const bool    varies = g->c->shards > 1;
    CornuAttributes grad = { .gather_grad = { rows, CORNU_F32 } };
    CornuAttributes sum = { .reduce = { 1 + draw(g, 3), draw(g, 2), 0 } };
    CornuAttributes left = { .matmul = { .dtype = CORNU_F32, .transpose_b = draw(g, 2) } };
    CornuAttributes right = { .matmul = { .dtype = CORNU_F32, .transpose_a = 1 } };
    CornuAttributes all = { .shards = { .size = g->c->shards } };
    CornuValue d_y = fresh_for(g, cornu_type(CORNU_F32, count, units), ANY, 0, varies);
    CornuValue indices = fresh_for(g, cornu_type(CORNU_I32, count), LABELS, rows, varies);
    CornuValue d_table = emit(g, CORNU_OP_GATHER_GRAD, &grad, (CornuValue[]){ d_y, indices }, 2);
    for (int i = 1 + (int)draw(g, 3); i > 0 && d_table != CORNU_NO_VALUE; i--) {
        CornuValue made = CORNU_NO_VALUE;
        const int  kind = (int)draw(g, 3);
        if (kind == 0) made = emit(g, CORNU_OP_REDUCE_SUM, &sum, &d_table, 1);
        if (kind == 1) {
            CornuType w = cornu_type(CORNU_F32, units, 3);
            if (left.matmul.transpose_b) w = cornu_type(CORNU_F32, 3, units);
            made = emit(g, CORNU_OP_MATMUL, &left,
                        (CornuValue[]){ d_table, fresh_for(g, w, SMALL, 0, false) }, 2);
        }
        if (kind == 2)
            made = emit(g, CORNU_OP_MATMUL, &right,
                        (CornuValue[]){ fresh_for(g, cornu_type(CORNU_F32, rows, 2), SMALL, 0,
                                                  false), d_table }, 2);
        if (made != CORNU_NO_VALUE) emit(g, CORNU_OP_ALL_REDUCE, &all, &made, 1);
    }
    return d_table;
}

typedef CornuValue Maker(Generator *g, CornuOpId id);

static Maker *maker_of(CornuOpId id)
{
    switch (id) {
    case CORNU_OP_CONSTANT: case CORNU_OP_IOTA: case CORNU_OP_REPLICA_ID: return make_source;
    case CORNU_OP_ADD: case CORNU_OP_SUBTRACT: case CORNU_OP_MULTIPLY: case CORNU_OP_DIVIDE:
    case CORNU_OP_MAXIMUM: case CORNU_OP_MINIMUM: case CORNU_OP_POWER: return make_binary;
    case CORNU_OP_COMPARE:   return make_compare;
    case CORNU_OP_SELECT:    return make_select;
    case CORNU_OP_CONVERT:   return make_convert;
    case CORNU_OP_BROADCAST: return make_broadcast;
    case CORNU_OP_RESHAPE:   return make_reshape;
    case CORNU_OP_TRANSPOSE: return make_transpose;
    case CORNU_OP_SLICE:     return make_slice;
    case CORNU_OP_PAD:       return make_pad;
    case CORNU_OP_CONCAT:    return make_concat;
    case CORNU_OP_FLIP:      return make_flip;
    case CORNU_OP_PACK:      return make_pack;
    case CORNU_OP_REDUCE_SUM: case CORNU_OP_REDUCE_MAX: return make_reduce;
    case CORNU_OP_ARGMAX:    return make_argmax;
    case CORNU_OP_MATMUL:    return make_matmul;
    case CORNU_OP_CONV2D: case CORNU_OP_CONV2D_GRAD_INPUT: case CORNU_OP_CONV2D_GRAD_FILTER:
    case CORNU_OP_GROUPED_CONV2D: case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT:
    case CORNU_OP_GROUPED_CONV2D_GRAD_FILTER: return make_conv2d;
    case CORNU_OP_MAX_POOL2D: case CORNU_OP_MAX_POOL2D_GRAD: case CORNU_OP_AVERAGE_POOL2D:
    case CORNU_OP_AVERAGE_POOL2D_GRAD: return make_pool;
    case CORNU_OP_BATCH_NORM: case CORNU_OP_BATCH_NORM_GRAD: return make_batch_norm;
    case CORNU_OP_SOFTMAX: case CORNU_OP_LOG_SOFTMAX: return make_softmax;
    case CORNU_OP_ONE_HOT:   return make_one_hot;
    case CORNU_OP_SPARSE_CROSS_ENTROPY: return make_cross_entropy;
    case CORNU_OP_GATHER: case CORNU_OP_GATHER_GRAD: return make_gather;
    case CORNU_OP_SCAN:      return make_scan;
    case CORNU_OP_LSTM: case CORNU_OP_LSTM_GRAD: case CORNU_OP_GRU: case CORNU_OP_GRU_GRAD:
        return make_recurrent;
    case CORNU_OP_ALL_REDUCE: case CORNU_OP_REDUCE_SCATTER: case CORNU_OP_ALL_GATHER:
    case CORNU_OP_SHARD_SLICE: return make_collective;
    case CORNU_OP_RANDOM_UNIFORM: case CORNU_OP_DROPOUT: return make_random;
    case CORNU_OP_MOMENTUM_UPDATE: case CORNU_OP_RMSPROP_UPDATE: case CORNU_OP_ADAM_UPDATE:
        return make_update;
    default: return make_unary;
    }
}

static void add_op(Generator *g)
{
    static const CornuOpId common[] = {
        CORNU_OP_ADD, CORNU_OP_MULTIPLY, CORNU_OP_SUBTRACT, CORNU_OP_RELU, CORNU_OP_TANH,
        CORNU_OP_RESHAPE, CORNU_OP_RESHAPE, CORNU_OP_TRANSPOSE, CORNU_OP_BROADCAST,
        CORNU_OP_REDUCE_SUM, CORNU_OP_REDUCE_SUM, CORNU_OP_REDUCE_MAX, CORNU_OP_SELECT,
        CORNU_OP_CONVERT, CORNU_OP_SLICE, CORNU_OP_MATMUL, CORNU_OP_CONCAT,
    };
    const int64_t kind = draw(g, 100);
    if (kind < 8) { make_normalized(g); return; }
    if (kind < 14) { make_mean(g); return; }
    if (kind < 22) { make_layer(g); return; }
    if (kind < 24) { make_lookup(g); return; }
    if (kind < 25) { make_lookup_gradient(g); return; }
    if (kind < 28) { make_wide_layer(g); return; }
    const CornuOpId id = kind < 60 ? common[draw(g, sizeof common / sizeof *common)]
                                   : (CornuOpId)draw(g, CORNU_OP_COUNT);
    maker_of(id)(g, id);
}

/* ---- Whole programs ---- */

static void choose_outputs(Generator *g)
{
    CornuProgram *p = g->c->program;
    const int     inputs = p->input_count, count = 1 + (int)draw(g, 4);
    bool          taken[MOST_VALUES + 64] = { false };
    for (int i = 0; i < count; i++) {
        CornuValue v = (CornuValue)(i == 0 ? p->value_count - 1 : draw(g, p->value_count));
        cornu_program_output(p, v, -1);
    }
    for (int k = p->value_count - 1; k >= 0; k--)    /* some inputs are variables */
        for (int i = 0; i < inputs && p->values[k].op >= 0; i++) {
            const CornuProgramValue *in = &p->values[p->inputs[i]], *v = &p->values[k];
            if (taken[i] || !cornu_type_equal(in->type, v->type) || in->varies != v->varies ||
                !chance(g, 25))
                continue;
            taken[i] = true;
            cornu_program_output(p, k, i);
            break;
        }
}

/* The loss is the sum of some values, each element times a weight of its own; `summed` over the
 * shards, or each shard's part of it. */
static CornuTensor *loss_of(Generator *g, CornuTensor *const *tensor, bool summed)
{
    const CornuProgram *p = g->c->program;
    CornuTensor        *loss = NULL;
    for (int i = 0; i < 1 + draw(g, 3) || (!loss && i < 12); i++) {
        const CornuValue v = (CornuValue)(i == 0 ? p->value_count - 1 : draw(g, p->value_count));
        if (p->values[v].op < 0 || !cornu_dtype_is_float(type_of(g, v).dtype)) continue;
        CornuTensor *y = cornu_op_convert(tensor[v], CORNU_F32);
        const CornuType type = cornu_tensor_type(y);
        CornuTensor *term = y;
        if (type.shape.rank > 0)
            term = cornu_op_multiply(y, cornu_op_shift(cornu_op_scale(cornu_op_iota(
                       cornu_tensor_graph(y), type, type.shape.rank - 1), 0.25), 0.5));
        term = cornu_op_reduce_sum(term, CORNU_ALL_AXES, false);
        if (cornu_tensor_varies(term) && summed) term = cornu_op_all_reduce(term);
        loss = loss ? cornu_op_add(loss, term) : term;
    }
    return loss;
}

/* Adds gradients by its float inputs as outputs to the case; false if there are none. */
static bool differentiate(Generator *g)
{
    CornuProgram *p = g->c->program;
    CornuDevice  *device = cornu_device_open(.name = "cpu", .threads = 1, .shards = g->c->shards);
    CornuTensor **tensor = calloc((size_t)p->value_count + 1, sizeof *tensor);
    CornuTensor  *x[64], *d_x[64];
    int           count = 0;
    bool          done = false;
    CornuGraph   *graph = device ? trial_graph(g->c, device, tensor) : NULL;
    if (!graph) goto end;
    CornuTensor *loss = loss_of(g, tensor, chance(g, 40));
    for (int i = 0; i < p->input_count; i++)
        if (cornu_dtype_is_float(type_of(g, p->inputs[i]).dtype)) x[count++] = tensor[p->inputs[i]];
    if (!loss || !count || cornu_gradients(loss, x, count, d_x)) goto end;
    for (int i = 0; i < count; i++)   /* as optimizers do */
        if (cornu_tensor_varies(d_x[i]) && !cornu_tensor_varies(x[i]) && chance(g, 80) &&
            cornu_tensor_type(d_x[i]).dtype == CORNU_F32)
            d_x[i] = cornu_op_all_reduce(d_x[i]);
    Trial with = { .program = cornu_program_copy(graph->program), .shards = g->c->shards };
    with.input = calloc((size_t)p->input_count + 1, sizeof *with.input);
    with.input_space = p->input_count + 1;
    for (int i = 0; i < p->input_count; i++) {
        const int64_t n = trial_count(g->c, i);
        with.input[i] = calloc((size_t)n + 1, sizeof(double));
        memcpy(with.input[i], g->c->input[i], (size_t)n * sizeof(double));
    }
    Bounds b;
    if (bounds_of(&b, with.program, with.shards, with.input, NULL) == CORNU_OK) {
        for (int i = 0; i < count; i++) {
            Generator at = { &with, 0, b };
            if (with.program->values[d_x[i]->value].op >= 0 && usable(&at, d_x[i]->value))
                done |= cornu_program_output(with.program, d_x[i]->value, -1) == CORNU_OK;
        }
        cornu_program_output(with.program, loss->value, -1);
    }
    bounds_free(&b);
    Trial pruned;
    done = done && trial_pruned(&with, NULL, &pruned);
    trial_free(&with);
    if (done) {
        trial_free(g->c);
        *g->c = pruned;
    }
end:
    cornu_error_take();
    free(tensor);
    cornu_graph_free(graph);
    cornu_device_close(device);
    return done;
}

bool generate(uint64_t seed, Trial *c)
{
    static const int shards[] = { 1, 1, 1, 1, 2, 4, 8, 8 };
    static const int others[] = { 3, 5, 6, 9, 11, 12, 16, MOST_SHARDS };
    Generator g = { .c = c, .state = seed };
    const int drawn = shards[draw(&g, 8)];
    *c = (Trial){ .program = cornu_program_create(),
                  .shards = drawn > 1 && chance(&g, 40) ? others[draw(&g, 8)] : drawn };
    g.bounds = (Bounds){ .shards = c->shards };
    for (int i = 0; i < 3; i++)
        fresh(&g, cornu_type_from(i ? a_float(&g) : CORNU_F32, a_shape(&g, 1 + (int)draw(&g, 4))),
              chance(&g, 80) ? ANY : VARIED, 0);
    /* One in eight is a layer with its gradients and little else: these have kernels of their own,
     * which any other reader of a value would rule out. */
    const bool layer = chance(&g, 12);
    if (layer && chance(&g, 50)) make_wide_layer(&g);
    else if (layer) make_lookup(&g);
    const int ops = c->program->op_count + (layer ? (int)draw(&g, 3)
                                                  : 3 + (int)draw(&g, chance(&g, 30) ? 50 : 20));
    for (int tries = 0; tries < 4 * ops && c->program->op_count < ops; tries++) add_op(&g);
    const bool some = c->program->op_count > 0;
    const bool gradients = some && (layer || chance(&g, 35));
    if (some && !(gradients && differentiate(&g))) {
        choose_outputs(&g);
        Trial pruned;
        if (trial_pruned(c, NULL, &pruned)) {
            trial_free(c);
            *c = pruned;
        }
    }
    bounds_free(&g.bounds);
    return some;
}

bool generated_setting(uint64_t seed, const Trial *c, int i, Setting *setting)
{
    uint64_t  state = seed ^ 0x5e771465u;
    const int best = (int)cornu__cpu()->best;
    const int isas = best < CORNU_TESTED_ISA_COUNT ? best + 1 : CORNU_TESTED_ISA_COUNT;
    const int threads = 2 + (int)pick(&state, 3);
    const CornuIsa isa = (CornuIsa)pick(&state, isas), other = (CornuIsa)pick(&state, isas);
    const Setting settings[] = {
        { "reference", CORNU_ISA_PORTABLE, 1 }, { "rewrite", CORNU_ISA_PORTABLE, 1 },
        { "cpu", isa, threads }, { "tpu", other, 1 + (int)pick(&state, 4) },
    };
    const int first = c->shards > 1 ? 1 : 0;   /* the reference device has one shard */
    if (i + first >= (int)(sizeof settings / sizeof *settings)) return false;
    *setting = settings[i + first];
    return true;
}
