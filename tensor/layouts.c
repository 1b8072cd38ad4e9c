/* Images with channels first between ops that have them last: a transpose moves past the ops that
 * do not mind, until it meets its inverse and both are gone. Part of rewrite.c. */
#include "layouts_internal.h"

#include "../device/op_internal.h"

static const CornuProgramOp *producer(const CornuProgram *program, CornuValue value)
{
    const int op = program->values[value].op;
    return op < 0 ? NULL : &program->ops[op];
}

static CornuShape shape_of(const CornuProgram *program, CornuValue value)
{
    return cornu_program_type(program, value).shape;
}

/* The axis with channels last of an axis with channels first: (B, C, H, W) of (B, H, W, C). */
static int last_of(int axis, int rank) { return axis == 0 ? 0 : axis == 1 ? rank - 1 : axis - 1; }

/* Sets the value of which this one is the transpose with channels first. */
static bool is_first(const CornuProgram *program, CornuValue value, CornuValue *source)
{
    const CornuProgramOp *op = producer(program, value);
    const int             rank = shape_of(program, value).rank;
    if (!op || op->id != CORNU_OP_TRANSPOSE || rank < 3) return false;
    for (int i = 0; i < rank; i++)
        if (op->attributes.permutation.axes[i] != last_of(i, rank)) return false;
    *source = cornu_program_operands(program, op)[0];
    return true;
}

static CornuStatus make_first(CornuProgram *to, CornuValue x, CornuValue *out)
{
    CornuAttributes attributes = { .permutation = { .axes = { 0 } } };
    const int       rank = shape_of(to, x).rank;
    for (int i = 0; i < rank; i++) attributes.permutation.axes[i] = last_of(i, rank);
    return cornu_program_record(to, CORNU_OP_TRANSPOSE, &attributes, &x, 1, out);
}

static CornuShape with_last(CornuShape first)
{
    CornuShape shape = first;
    for (int i = 0; i < first.rank; i++)
        shape.extent[last_of(i, first.rank)] = first.extent[i];
    return shape;
}

static CornuStatus record_shape(CornuProgram *to, CornuOpId id, CornuShape shape, CornuValue *value)
{
    CornuAttributes  attributes = { .shape = { .rank = shape.rank } };
    const CornuValue x = *value;
    for (int i = 0; i < shape.rank; i++) attributes.shape.extents[i] = shape.extent[i];
    return cornu_program_record(to, id, &attributes, &x, 1, value);
}

/* ---- Elementwise ops ---- */

/* Whether a value is the broadcast of a much smaller one, which is cheap to transpose. */
static bool is_small(const CornuProgram *program, CornuValue value, CornuValue *source)
{
    const CornuProgramOp *op = producer(program, value);
    if (!op || op->id != CORNU_OP_BROADCAST) return false;
    *source = cornu_program_operands(program, op)[0];
    return 4 * cornu_shape_count(shape_of(program, *source)) <=
           cornu_shape_count(shape_of(program, value));
}

/* The broadcast of a source to this shape, which has channels first, with channels last. */
static CornuStatus broadcast_last(CornuProgram *to, CornuValue source, CornuShape shape,
                                  CornuValue *out)
{
    const CornuShape given = shape_of(to, source);
    CornuShape       wide = { .rank = shape.rank };
    int              long_axes = 0;   /* of several the order changes: reshaping is not enough */
    *out = source;
    for (int i = 0; i < wide.rank; i++) {
        const int k = i - (wide.rank - given.rank);
        wide.extent[i] = k < 0 ? 1 : given.extent[k];
        long_axes += i > 0 && wide.extent[i] > 1;
    }
    if (given.rank > 0 && long_axes < 2) {
        CORNU__TRY(record_shape(to, CORNU_OP_RESHAPE, with_last(wide), out));
    } else if (long_axes > 1) {
        CornuAttributes attributes = { .permutation = { .axes = { 0 } } };
        CornuValue      turned = source;
        CORNU__TRY(record_shape(to, CORNU_OP_RESHAPE, wide, &turned));
        for (int i = 0; i < wide.rank; i++)
            attributes.permutation.axes[last_of(i, wide.rank)] = i;
        CORNU__TRY(cornu_program_record(to, CORNU_OP_TRANSPOSE, &attributes, &turned, 1, out));
    }
    return record_shape(to, CORNU_OP_BROADCAST, with_last(shape), out);
}

static CornuStatus move_elementwise(CornuProgram *to, const CornuProgramOp *op,
                                    const CornuValue *in, CornuValue *out, bool *moved)
{
    CornuValue source[3], y;
    bool       first = false, is_source[3];
    if (op->in_count > 3) return CORNU_OK;
    for (int i = 0; i < op->in_count; i++) {
        is_source[i] = is_first(to, in[i], &source[i]);
        first |= is_source[i];
        if (!is_source[i] && !is_small(to, in[i], &source[i])) return CORNU_OK;
    }
    if (!first) return CORNU_OK;
    const CornuShape shape = shape_of(to, in[0]);
    for (int i = 0; i < op->in_count; i++)
        if (!is_source[i]) CORNU__TRY(broadcast_last(to, source[i], shape, &source[i]));
    CORNU__TRY(cornu_program_record(to, op->id, &op->attributes, source, op->in_count, &y));
    *moved = true;
    return make_first(to, y, out);
}

/* ---- Ops along axes ---- */

/* Reduced axes that are dropped must leave the others in their order. */
static CornuStatus move_reduce(CornuProgram *to, const CornuProgramOp *op, const CornuValue *in,
                               CornuValue *out, bool *moved)
{
    CornuAttributes attributes = op->attributes;
    CornuValue      source, y;
    if (!is_first(to, *in, &source)) return CORNU_OK;
    const int rank = shape_of(to, *in).rank;
    int       before = -1;
    attributes.reduce.axes = 0;
    for (int i = 0; i < rank; i++) {
        if (op->attributes.reduce.axes >> i & 1) {
            attributes.reduce.axes |= INT64_C(1) << last_of(i, rank);
            continue;
        }
        if (!attributes.reduce.keep && last_of(i, rank) < before) return CORNU_OK;
        before = last_of(i, rank);
    }
    *moved = true;
    CORNU__TRY(cornu_program_record(to, op->id, &attributes, &source, 1, &y));
    *out = y;
    return attributes.reduce.keep ? make_first(to, y, out) : CORNU_OK;
}

static CornuStatus move_pad(CornuProgram *to, const CornuProgramOp *op, const CornuValue *in,
                            CornuValue *out, bool *moved)
{
    CornuAttributes attributes = op->attributes;
    CornuValue      source, y;
    if (!is_first(to, *in, &source)) return CORNU_OK;
    const int rank = shape_of(to, *in).rank;
    for (int i = 0; i < rank; i++) {
        attributes.pad.low[last_of(i, rank)] = op->attributes.pad.low[i];
        attributes.pad.high[last_of(i, rank)] = op->attributes.pad.high[i];
    }
    *moved = true;
    CORNU__TRY(cornu_program_record(to, op->id, &attributes, &source, 1, &y));
    return make_first(to, y, out);
}

static CornuStatus move_along(CornuProgram *to, const CornuProgramOp *op, const CornuValue *in,
                              CornuValue *out, bool *moved)
{
    enum { MOST = 64 };
    CornuAttributes attributes = op->attributes;
    CornuValue      source[MOST], y;
    if (op->in_count > MOST) return CORNU_OK;
    for (int i = 0; i < op->in_count; i++)
        if (!is_first(to, in[i], &source[i])) return CORNU_OK;
    attributes.axis.axis = last_of((int)op->attributes.axis.axis, shape_of(to, in[0]).rank);
    *moved = true;
    CORNU__TRY(cornu_program_record(to, op->id, &attributes, source, op->in_count, &y));
    return make_first(to, y, out);
}

/* The matrix stays as it is. */
static CornuStatus move_resample(CornuProgram *to, const CornuProgramOp *op, const CornuValue *in,
                                 CornuValue *out, bool *moved)
{
    CornuAttributes attributes = op->attributes;
    CornuValue      source[2] = { CORNU_NO_VALUE, in[1] }, y;
    if (!is_first(to, in[0], &source[0])) return CORNU_OK;
    attributes.axis.axis = last_of((int)op->attributes.axis.axis, shape_of(to, in[0]).rank);
    *moved = true;
    CORNU__TRY(cornu_program_record(to, op->id, &attributes, source, 2, &y));
    return make_first(to, y, out);
}

/* Elements before and after place `at` of a shape. */
static void around(CornuShape shape, int at, int64_t extent[2])
{
    extent[0] = extent[1] = 1;
    for (int i = 0; i < shape.rank; i++) extent[i >= at] *= shape.extent[i];
}

/* How often each element along an axis is repeated where a reshape of a broadcast of a reshape of x
 * does that, as for the nearest neighbours of whole scales; 0: it does not. */
static int64_t repeats(const CornuProgram *program, CornuValue repeated, CornuShape out,
                       CornuValue *x, int *axis)
{
    const CornuProgramOp *wide = producer(program, repeated), *flat;
    if (!wide || wide->id != CORNU_OP_BROADCAST) return 0;
    const CornuValue narrow = cornu_program_operands(program, wide)[0];
    flat = producer(program, narrow);
    if (!flat || flat->id != CORNU_OP_RESHAPE) return 0;
    *x = cornu_program_operands(program, flat)[0];
    const CornuShape from = shape_of(program, *x), one = shape_of(program, narrow);
    const CornuShape all = shape_of(program, repeated);
    int64_t          of_x[2], of_one[2];
    int              at = -1;
    *axis = -1;
    if (from.rank != out.rank || one.rank != all.rank) return 0;
    for (int i = 0; i < one.rank; i++)
        if (one.extent[i] != all.extent[i]) at = at < 0 ? i : one.rank;
    for (int i = 0; i < from.rank; i++)
        if (from.extent[i] != out.extent[i]) *axis = *axis < 0 ? i : from.rank;
    if (at < 0 || at == one.rank || *axis < 0 || *axis == from.rank) return 0;
    around(from, *axis + 1, of_x);
    around(one, at, of_one);
    return of_x[0] == of_one[0] && of_x[1] == of_one[1] ? all.extent[at] : 0;
}

static CornuStatus move_repeat(CornuProgram *to, const CornuProgramOp *op, const CornuValue *in,
                               CornuValue *out, bool *moved)
{
    CornuShape shape = { .rank = (int)op->attributes.shape.rank };
    CornuValue x, y;
    int        axis;
    int64_t    extent[2];
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = op->attributes.shape.extents[i];
    const int64_t times = repeats(to, *in, shape, &x, &axis);
    if (!times || !is_first(to, x, &y)) return CORNU_OK;
    around(shape_of(to, y), last_of(axis, shape.rank) + 1, extent);
    CORNU__TRY(record_shape(to, CORNU_OP_RESHAPE, cornu_shape(extent[0], 1, extent[1]), &y));
    CORNU__TRY(record_shape(to, CORNU_OP_BROADCAST, cornu_shape(extent[0], times, extent[1]), &y));
    CORNU__TRY(record_shape(to, CORNU_OP_RESHAPE, with_last(shape), &y));
    *moved = true;
    return make_first(to, y, out);
}

/* A transpose of a transpose: their product, which may be nothing at all. */
static CornuStatus join_transposes(CornuProgram *to, const CornuProgramOp *op,
                                   const CornuValue *in, CornuValue *out, bool *moved)
{
    const CornuProgramOp *before = producer(to, *in);
    bool                  same = true;
    if (!before || before->id != CORNU_OP_TRANSPOSE) return CORNU_OK;
    for (int i = 0; i < shape_of(to, *in).rank; i++)
        same &= before->attributes.permutation.axes[op->attributes.permutation.axes[i]] == i;
    if (!same) return CORNU_OK;
    *out = cornu_program_operands(to, before)[0];
    *moved = true;
    return CORNU_OK;
}

CornuStatus cornu__move_transpose(CornuProgram *to, const CornuProgramOp *op, const CornuValue *in,
                                  CornuValue *out, bool *moved)
{
    *moved = false;
    CORNU__TRY(cornu__program_follow(to, op));
    switch (cornu__op_reads(op->id)) {
    case CORNU_READS_ELEMENTWISE: case CORNU_READS_RISING:
        return move_elementwise(to, op, in, out, moved);
    case CORNU_READS_REDUCE:    return move_reduce(to, op, in, out, moved);
    case CORNU_READS_PAD:       return move_pad(to, op, in, out, moved);
    case CORNU_READS_ALONG:     return move_along(to, op, in, out, moved);
    case CORNU_READS_RESAMPLE:  return move_resample(to, op, in, out, moved);
    case CORNU_READS_RESHAPE:   return move_repeat(to, op, in, out, moved);
    case CORNU_READS_TRANSPOSE: return join_transposes(to, op, in, out, moved);
    default:                    return CORNU_OK;
    }
}
