#include "recurrence.h"

#include <math.h>

CornuStatus cornu__expect_steps(const CornuOpCall *call, int i, int64_t parts, const char *names,
                                CornuExtents *e)
{
    const int64_t *extent = call->in[i].shape.extent;
    CORNU__TRY(cornu__expect_float(call, i, names));
    CORNU__TRY(cornu__expect_rank(call, i, 3, names));
    if (extent[1] < 1 || extent[2] < parts || extent[2] % parts)
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected at least one step, and a "
                             "last axis divisible by %lld", (long long)parts);
    const double slope = call->attributes->recurrence.gate_slope;
    if (!(slope >= 0.0) || isinf(slope))
        return cornu__refuse(call, CORNU_ERR_ARGUMENT, names, "gate_slope %g, expected a finite "
                             "number of 0 or more", slope);
    *e = (CornuExtents){ extent[0], extent[1], extent[2] / parts };
    return CORNU_OK;
}

CornuStatus cornu__expect_type(const CornuOpCall *call, int i, CornuType wanted,
                               const char *names)
{
    CornuText text;
    if (cornu_type_equal(call->in[i], wanted)) return CORNU_OK;
    return cornu__refuse(call, call->in[i].dtype == wanted.dtype ? CORNU_ERR_SHAPE
                                                                 : CORNU_ERR_DTYPE,
                         names, "expected operand %d to be %s", i, cornu_type_print(&text, wanted));
}

CornuStatus cornu__expect_count(const CornuOpCall *call, int without_mask, const char *names)
{
    if (call->in_count == without_mask || call->in_count == without_mask + 1) return CORNU_OK;
    return cornu__refuse(call, CORNU_ERR_ARGUMENT, names, "%d operands, expected %d or %d",
                         call->in_count, without_mask, without_mask + 1);
}

CornuStatus cornu__expect_mask(const CornuOpCall *call, int i, CornuExtents e, const char *names)
{
    const CornuType mask = cornu_type(CORNU_BOOL, e.batch, e.steps);
    return i == call->in_count ? CORNU_OK : cornu__expect_type(call, i, mask, names);
}

double cornu__gate(const CornuOpCall *call, double a)
{
    const double slope = call->attributes->recurrence.gate_slope;
    return slope == 0.0 ? 1.0 / (1.0 + exp(-a)) : fmin(fmax(slope * a + 0.5, 0.0), 1.0);
}

double cornu__gate_slope(const CornuOpCall *call, double gate)
{
    const double slope = call->attributes->recurrence.gate_slope;
    return slope == 0.0 ? gate * (1.0 - gate) : gate > 0.0 && gate < 1.0 ? slope : 0.0;
}

CornuValue cornu__build_gate(CornuBuilder *b, const CornuOpCall *call, CornuValue a)
{
    const double slope = call->attributes->recurrence.gate_slope;
    if (slope == 0.0) return cornu__build1(b, CORNU_OP_SIGMOID, a);
    CornuValue line = cornu__build2(b, CORNU_OP_ADD, cornu__build_scale(b, a, slope),
                                    cornu__build_constant(b, 0.5, a));
    line = cornu__build2(b, CORNU_OP_MAXIMUM, line, cornu__build_constant(b, 0.0, a));
    return cornu__build2(b, CORNU_OP_MINIMUM, line, cornu__build_constant(b, 1.0, a));
}

CornuValue cornu__build_gate_slope(CornuBuilder *b, const CornuOpCall *call, CornuValue gate)
{
    const double slope = call->attributes->recurrence.gate_slope;
    CornuValue   zero = cornu__build_constant(b, 0.0, gate);
    CornuValue   one = cornu__build_constant(b, 1.0, gate);
    if (slope == 0.0)
        return cornu__build2(b, CORNU_OP_MULTIPLY, gate,
                             cornu__build2(b, CORNU_OP_SUBTRACT, one, gate));
    CornuValue ajar = cornu__build_select(b, cornu__build_compare(b, gate, CORNU_LESS, one),
                                          cornu__build_constant(b, slope, gate), zero);
    return cornu__build_select(b, cornu__build_compare(b, gate, CORNU_GREATER, zero), ajar, zero);
}

CornuValue cornu__body_input(CornuBuilder *b, CornuType type)
{
    CornuValue value = CORNU_NO_VALUE;
    if (b->status == CORNU_OK) b->status = cornu_program_input(b->program, type, &value);
    return value;
}

void cornu__body_output(CornuBuilder *b, CornuValue value)
{
    if (b->status == CORNU_OK) b->status = cornu_program_output(b->program, value, -1);
}

CornuValue cornu__build_columns(CornuBuilder *b, CornuValue x, int64_t first, int64_t count)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    CornuAttributes slice = { .slice = { { 0, first }, { 0, count } } };
    slice.slice.sizes[0] = cornu_program_type(b->program, x).shape.extent[0];
    return cornu__build(b, CORNU_OP_SLICE, &slice, &x, 1);
}

CornuValue cornu__build_product(CornuBuilder *b, CornuValue x, CornuValue y, bool transposed,
                                CornuDtype dtype)
{
    CornuAttributes matmul = { .matmul = { .transpose_b = transposed, .dtype = dtype } };
    return cornu__build(b, CORNU_OP_MATMUL, &matmul, (const CornuValue[]){ x, y }, 2);
}

CornuValue cornu__build_beside(CornuBuilder *b, const CornuValue *parts, int count)
{
    CornuAttributes axis = { .axis = { 1 } };
    return cornu__build(b, CORNU_OP_CONCAT, &axis, parts, count);
}

CornuValue cornu__build_where(CornuBuilder *b, CornuValue mask, CornuValue x, CornuValue y)
{
    if (mask == CORNU_NO_VALUE || b->status != CORNU_OK) return x;
    CornuShape shape = cornu_program_type(b->program, x).shape;
    CornuValue tall = cornu__build_reshape(b, mask, cornu_shape(shape.extent[0], 1));
    return cornu__build_select(b, cornu__build_broadcast(b, tall, shape), x, y);
}

CornuType cornu__step_type(CornuType type)
{
    for (int i = 1; i + 1 < type.shape.rank; i++) type.shape.extent[i] = type.shape.extent[i + 1];
    type.shape.extent[--type.shape.rank] = 0;
    return type;
}

CornuDtype cornu__sums_dtype(CornuDtype dtype) { return dtype == CORNU_F64 ? dtype : CORNU_F32; }

CornuStatus cornu__body_record(CornuProgram *program, CornuBuilder *body, CornuAttributes scan,
                               const CornuValue *in, int in_count, CornuValue *out)
{
    scan.scan.body = body->program;
    if (body->status == CORNU_OK)
        body->status = cornu_program_record(program, CORNU_OP_SCAN, &scan, in, in_count, out);
    cornu_program_free(body->program);
    return body->status;
}

CornuStatus cornu__body_open(CornuBuilder *body, const CornuProgram *program)
{
    *body = (CornuBuilder){ cornu__program_create(program->rules), CORNU_OK };
    if (body->program) return CORNU_OK;
    cornu_error_take();
    return CORNU_ERR_MEMORY;
}

CornuValue cornu__build_before(CornuBuilder *b, CornuValue first, CornuValue x, bool reverse)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    const CornuType type = cornu_program_type(b->program, x);
    const int64_t  *shape = type.shape.extent;
    CornuAttributes rest = { .slice = { { 0, reverse, 0 }, { shape[0], shape[1] - 1, shape[2] } } };
    CornuAttributes axis = { .axis = { 1 } };
    CornuValue      begin = cornu__build_reshape(b, first, cornu_shape(shape[0], 1, shape[2]));
    CornuValue      others = cornu__build(b, CORNU_OP_SLICE, &rest, &x, 1);
    CornuValue      parts[2] = { reverse ? others : begin, reverse ? begin : others };
    return cornu__build(b, CORNU_OP_CONCAT, &axis, parts, 2);
}
