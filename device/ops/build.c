#include "build.h"

CornuValue cornu__build(CornuBuilder *b, CornuOpId id, const CornuAttributes *attributes,
                        const CornuValue *in, int in_count)
{
    CornuValue out[CORNU_MAX_OUTPUTS] = { CORNU_NO_VALUE };
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    b->status = cornu_program_record(b->program, id, attributes, in, in_count, out);
    return out[0];
}

CornuValue cornu__build1(CornuBuilder *b, CornuOpId id, CornuValue x)
{
    return cornu__build(b, id, NULL, &x, 1);
}

CornuValue cornu__build2(CornuBuilder *b, CornuOpId id, CornuValue x, CornuValue y)
{
    return cornu__build(b, id, NULL, (const CornuValue[]){ x, y }, 2);
}

CornuValue cornu__build_compare(CornuBuilder *b, CornuValue x, CornuComparison comparison,
                                CornuValue y)
{
    CornuAttributes attributes = { .compare = { .comparison = comparison } };
    return cornu__build(b, CORNU_OP_COMPARE, &attributes, (const CornuValue[]){ x, y }, 2);
}

CornuValue cornu__build_select(CornuBuilder *b, CornuValue condition, CornuValue x, CornuValue y)
{
    return cornu__build(b, CORNU_OP_SELECT, NULL, (const CornuValue[]){ condition, x, y }, 3);
}

CornuValue cornu__build_convert(CornuBuilder *b, CornuValue x, CornuDtype dtype)
{
    if (b->status != CORNU_OK || cornu_program_type(b->program, x).dtype == dtype) return x;
    CornuAttributes attributes = { .convert = { .dtype = dtype } };
    return cornu__build(b, CORNU_OP_CONVERT, &attributes, &x, 1);
}

/* One of the ops whose attribute is the result's shape. */
static CornuValue shaped(CornuBuilder *b, CornuOpId id, CornuValue x, CornuShape shape)
{
    CornuAttributes attributes = { .shape = { .rank = shape.rank } };
    for (int i = 0; i < shape.rank; i++) attributes.shape.extents[i] = shape.extent[i];
    return cornu__build(b, id, &attributes, &x, 1);
}

CornuValue cornu__build_broadcast(CornuBuilder *b, CornuValue x, CornuShape shape)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    if (cornu_shape_equal(cornu_program_type(b->program, x).shape, shape)) return x;
    return shaped(b, CORNU_OP_BROADCAST, x, shape);
}

CornuValue cornu__build_reshape(CornuBuilder *b, CornuValue x, CornuShape shape)
{
    return shaped(b, CORNU_OP_RESHAPE, x, shape);
}

CornuValue cornu__build_like(CornuBuilder *b, CornuValue x, CornuValue like)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    return cornu__build_broadcast(b, x, cornu_program_type(b->program, like).shape);
}

CornuValue cornu__build_constant(CornuBuilder *b, double value, CornuValue like)
{
    if (b->status != CORNU_OK) return CORNU_NO_VALUE;
    CornuDtype      dtype = cornu_program_type(b->program, like).dtype;
    CornuAttributes attributes = { .constant = { .dtype = dtype, .value = value } };
    CornuValue      scalar = cornu__build(b, CORNU_OP_CONSTANT, &attributes, NULL, 0);
    return cornu__build_like(b, scalar, like);
}

CornuValue cornu__build_scale(CornuBuilder *b, CornuValue x, double factor)
{
    return cornu__build2(b, CORNU_OP_MULTIPLY, x, cornu__build_constant(b, factor, x));
}

CornuValue cornu__build_rows(CornuBuilder *b, CornuShape shape)
{
    CornuAttributes attributes = { .iota = { .dtype = CORNU_I64, .rank = shape.rank } };
    for (int i = 0; i < shape.rank; i++) attributes.iota.extents[i] = shape.extent[i];
    return cornu__build(b, CORNU_OP_IOTA, &attributes, NULL, 0);
}

CornuValue cornu__build_reduce(CornuBuilder *b, CornuOpId id, CornuValue x, int64_t axes,
                               bool keep)
{
    CornuAttributes attributes = { .reduce = { .axes = axes, .keep = keep } };
    return cornu__build(b, id, &attributes, &x, 1);
}
