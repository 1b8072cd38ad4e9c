/* Random programs: recording ops whose results can be compared, and drawing their operands. */
#include "generator_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

CornuType gen_type_of(const Generator *g, CornuValue v)
{
    return cornu_program_type(g->c->program, v);
}

int64_t gen_extent(Generator *g)
{
    static const int64_t extents[] = { 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33 };
    return extents[draw(g, sizeof extents / sizeof *extents)];
}

/* ---- Recording ---- */

/* Whether it can be compared: in the range of its dtype, with a bound that is small beside it.
 * Whole values are checked, as elements near zero have relatively large bounds. */
bool gen_usable(const Generator *g, CornuValue v)
{
    const CornuDtype dtype = gen_type_of(g, v).dtype;
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
    for (int i = 0; i < in_count; i++) types[i] = gen_type_of(g, in[i]);
    if (cornu__op_type(&call, out)) return false;
    for (int k = 0; k < cornu__result_count(id, attributes); k++)
        if (cornu_type_count(out[k]) > MOST_ELEMENTS || cornu_type_count(out[k]) < 1) return false;
    return cornu_op_flops(&call) <= MOST_FLOPS;
}

/* Records an op if it is allowed and useful; fills out[] or gives CORNU_NO_VALUE. */
CornuValue gen_emit_all(Generator *g, CornuOpId id, const CornuAttributes *attributes,
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
    for (int k = 0; k < p->ops[p->op_count - 1].out_count && kept; k++)
        kept = gen_usable(g, out[k]);
    if (kept) return out[0];
    cornu_error_take();
    unrecord(g);
    return out[0] = CORNU_NO_VALUE;
}

CornuValue gen_emit(Generator *g, CornuOpId id, const CornuAttributes *attributes,
                    const CornuValue *in, int in_count)
{
    CornuValue out[CORNU_MAX_OUTPUTS];
    return gen_emit_all(g, id, attributes, in, in_count, out);
}

CornuValue gen_emit1(Generator *g, CornuOpId id, CornuValue x)
{
    return gen_emit(g, id, NULL, &x, 1);
}

CornuValue gen_emit2(Generator *g, CornuOpId id, CornuValue x, CornuValue y)
{
    return gen_emit(g, id, NULL, (CornuValue[]){ x, y }, 2);
}

/* ---- Operands ---- */

static double number(Generator *g, CornuDtype dtype, Numbers numbers, int64_t labels)
{
    const double uniform = (double)(gen_bits(&g->state) >> 11) * 0x1p-53;
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
CornuValue gen_fresh_for(Generator *g, CornuType type, Numbers numbers, int64_t labels,
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

CornuValue gen_fresh(Generator *g, CornuType type, Numbers numbers, int64_t labels)
{
    const bool varies = g->c->shards > 1 && type.shape.rank < CORNU_MAX_RANK && chance(g, 60);
    return gen_fresh_for(g, type, numbers, labels, varies);
}

/* An earlier value, more often a recent one; of this dtype unless it is -1. */
CornuValue gen_any_value(Generator *g, int dtype)
{
    const int count = g->c->program->value_count;
    for (int tries = 0; tries < 12; tries++) {
        const bool recent = chance(g, 55) && count > 5;
        CornuValue v = (CornuValue)(recent ? count - 1 - draw(g, 5) : draw(g, count));
        if (dtype < 0 || (int)gen_type_of(g, v).dtype == dtype) return v;
    }
    return CORNU_NO_VALUE;
}

CornuDtype gen_a_float(Generator *g)
{
    static const CornuDtype floats[] = { CORNU_F32, CORNU_F32, CORNU_F32, CORNU_F32, CORNU_F32,
                                         CORNU_F32, CORNU_BF16, CORNU_BF16, CORNU_F16, CORNU_F64 };
    return floats[draw(g, 10)];
}

CornuValue gen_any_float(Generator *g)
{
    CornuValue v = gen_any_value(g, (int)gen_a_float(g));
    return v != CORNU_NO_VALUE ? v : gen_any_value(g, CORNU_F32);
}

CornuValue gen_shaped(Generator *g, CornuOpId id, CornuValue x, CornuShape shape)
{
    CornuAttributes attributes = { .shape = { .rank = shape.rank } };
    for (int i = 0; i < shape.rank; i++) attributes.shape.extents[i] = shape.extent[i];
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue converted(Generator *g, CornuValue x, CornuDtype dtype)
{
    if (x == CORNU_NO_VALUE || gen_type_of(g, x).dtype == dtype) return x;
    return gen_emit(g, CORNU_OP_CONVERT, &(CornuAttributes){ .convert = { dtype } }, &x,
                    1);
}

CornuValue gen_scalar(Generator *g, CornuDtype dtype, double value)
{
    CornuAttributes attributes = { .constant = { dtype, value } };
    return gen_emit(g, CORNU_OP_CONSTANT, &attributes, NULL, 0);
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
CornuValue gen_fit(Generator *g, CornuValue x, CornuType type)
{
    x = converted(g, x, type.dtype);
    if (x == CORNU_NO_VALUE || cornu_type_equal(gen_type_of(g, x), type)) return x;
    const CornuShape from = gen_type_of(g, x).shape;
    const int64_t    have = cornu_shape_count(from), want = cornu_type_count(type);
    if (have != want && broadcasts(from, type.shape))
        return gen_shaped(g, CORNU_OP_BROADCAST, x, type.shape);
    if (have != want) {
        x = from.rank == 1 ? x : gen_shaped(g, CORNU_OP_RESHAPE, x, cornu_shape(have));
        CornuAttributes part = { .slice = { { have > want ? draw(g, have - want + 1) : 0 },
                                            { want } } };
        CornuAttributes pad = { .pad = { .high = { want - have } } };
        x = have > want ? gen_emit(g, CORNU_OP_SLICE, &part, &x, 1)
                        : gen_emit(g, CORNU_OP_PAD, &pad, &x, 1);
        if (x == CORNU_NO_VALUE) return x;
    }
    if (cornu_shape_equal(gen_type_of(g, x).shape, type.shape)) return x;
    return gen_shaped(g, CORNU_OP_RESHAPE, x, type.shape);
}

/* A value of this type. */
CornuValue gen_want(Generator *g, CornuType type, Numbers numbers)
{
    const int count = g->c->program->value_count, first = (int)draw(g, count + 1);
    CornuValue v = CORNU_NO_VALUE;
    if (chance(g, 60))
        for (int i = 0; i < count && v == CORNU_NO_VALUE; i++)
            if (cornu_type_equal(gen_type_of(g, (first + i) % count), type))
                v = (first + i) % count;
    const bool many = g->c->program->input_count >= MOST_INPUTS;
    if (v == CORNU_NO_VALUE && count && (chance(g, 60) || many))
        v = gen_fit(g, gen_any_value(g, -1), type);
    if (v == CORNU_NO_VALUE && g->c->program->input_count < MOST_INPUTS + 6)
        v = gen_fresh(g, type, numbers, 0);
    if (v == CORNU_NO_VALUE && type.dtype != CORNU_BOOL)
        v = gen_fit(g, gen_scalar(g, type.dtype, 1.0), type);
    return v;
}

/* Integers below `labels`: nothing else is known to be in range. */
CornuValue gen_labelled(Generator *g, CornuShape shape, int64_t labels)
{
    static const CornuDtype dtypes[] = { CORNU_I32, CORNU_I64, CORNU_U8, CORNU_U32 };
    CornuType type = cornu_type_from(dtypes[draw(g, 4)], shape);
    if (chance(g, 25)) {
        CornuValue v = gen_want(g, type, ANY);
        if (v != CORNU_NO_VALUE) return v;
    }
    return gen_fresh(g, type, LABELS, labels);
}

CornuShape gen_a_shape(Generator *g, int rank)
{
    CornuShape shape = { .rank = rank };
    for (;;) {
        for (int i = 0; i < rank; i++) shape.extent[i] = gen_extent(g);
        if (cornu_shape_count(shape) <= 600) return shape;
    }
}

/* A float value of this rank. */
CornuValue gen_of_rank(Generator *g, int rank)
{
    for (int tries = 0; tries < 8; tries++) {
        CornuValue v = gen_any_float(g);
        if (v != CORNU_NO_VALUE && gen_type_of(g, v).shape.rank == rank) return v;
    }
    return gen_want(g, cornu_type_from(gen_a_float(g), gen_a_shape(g, rank)), ANY);
}
