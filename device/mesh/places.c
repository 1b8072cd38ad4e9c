#include "places.h"

static int64_t slices(const CornuCutAxis *cut) { return cornu_mesh_size(cut->mesh, cut->axes); }

static CornuAttributes over(const CornuCutAxis *cut, int listed[CORNU_MAX_SHARDS])
{
    return (CornuAttributes){ .shards = cornu__mesh_shards(cut->mesh, cut->axes, listed) };
}

/* Where this shard's slice begins, in the type of `like`. */
static CornuValue first_place(CornuBuilder *b, const CornuCutAxis *cut, CornuValue like)
{
    int                   listed[CORNU_MAX_SHARDS];
    const CornuAttributes attributes = over(cut, listed);
    CornuValue            id = cornu__build(b, CORNU_OP_REPLICA_ID, &attributes, NULL, 0);
    if (b->status) return CORNU_NO_VALUE;
    CornuValue first = cornu__build_scale(b, id, (double)(cut->extent / slices(cut)));
    first = cornu__build_convert(b, first, cornu_program_type(b->program, like).dtype);
    return cornu__build_like(b, first, like);
}

/* The indices in i64, -1 for those of no row: they are looked up in a table that has its row's
 * number in each row, for a lookup checks them. */
static CornuValue checked(CornuBuilder *b, const CornuCutAxis *cut, int64_t padded,
                          CornuValue indices)
{
    const CornuAttributes pads = { .gather = { .padded = padded } };
    CornuValue table = cornu__build_rows(b, cornu_shape(cut->extent, 1));
    CornuValue one = cornu__build_constant(b, 1.0, table);
    table = cornu__build2(b, CORNU_OP_ADD, table, one);
    CornuValue found = cornu__build(b, CORNU_OP_GATHER, &pads,
                                    (const CornuValue[]){ table, indices }, 2);
    if (b->status) return CORNU_NO_VALUE;
    found = cornu__build_reshape(b, found, cornu_program_type(b->program, indices).shape);
    return cornu__build2(b, CORNU_OP_SUBTRACT, found, cornu__build_constant(b, 1.0, found));
}

CornuStatus cornu__own_places(const CornuCutAxis *cut, int64_t padded, CornuValue *indices)
{
    CornuBuilder b = { cut->program, CORNU_OK };
    CornuValue   all = checked(&b, cut, padded, *indices);
    CornuValue   own = cornu__build2(&b, CORNU_OP_SUBTRACT, all, first_place(&b, cut, all));
    CornuValue   none = cornu__build_constant(&b, (double)(cut->extent / slices(cut)), all);
    CornuValue   zero = cornu__build_constant(&b, 0.0, all);
    own = cornu__build_select(&b, cornu__build_compare(&b, own, CORNU_LESS, zero), none, own);
    *indices = cornu__build2(&b, CORNU_OP_MINIMUM, own, none);
    return b.status;
}

CornuStatus cornu__own_iota(const CornuCutAxis *cut, const CornuAttributes *attributes,
                            CornuValue *out)
{
    CornuBuilder    b = { cut->program, CORNU_OK };
    CornuAttributes exact = *attributes;
    exact.iota.dtype = CORNU_I64;
    CornuValue places = cornu__build(&b, CORNU_OP_IOTA, &exact, NULL, 0);
    places = cornu__build2(&b, CORNU_OP_ADD, places, first_place(&b, cut, places));
    *out = cornu__build_convert(&b, places, attributes->iota.dtype);
    return b.status;
}

CornuStatus cornu__own_one_hot(const CornuCutAxis *cut, CornuDtype dtype, CornuValue labels,
                               CornuValue *out)
{
    CornuBuilder    b = { cut->program, CORNU_OK };
    CornuShape      shape = cornu_program_type(cut->program, labels).shape, column = shape;
    CornuAttributes iota = { .iota = { .dtype = CORNU_I64, .rank = shape.rank + 1,
                                       .axis = shape.rank } };
    CORNU__TRY(cornu__own_places(cut, CORNU_NOT_PADDED, &labels));
    shape.extent[shape.rank++] = cut->extent / slices(cut);
    column.extent[column.rank++] = 1;
    for (int i = 0; i < shape.rank; i++) iota.iota.extents[i] = shape.extent[i];
    CornuValue places = cornu__build(&b, CORNU_OP_IOTA, &iota, NULL, 0);
    CornuValue wanted = cornu__build_broadcast(&b, cornu__build_reshape(&b, labels, column), shape);
    CornuValue hot = cornu__build_compare(&b, places, CORNU_EQUAL, wanted);
    *out = cornu__build_convert(&b, hot, dtype);
    return b.status;
}

/* ---- The largest ---- */

/* x of each slice, one below the other: (slices, elements of x). */
static CornuValue stacked(CornuBuilder *b, const CornuCutAxis *cut, CornuValue x)
{
    int                   listed[CORNU_MAX_SHARDS];
    const CornuAttributes attributes = over(cut, listed);
    if (b->status) return CORNU_NO_VALUE;
    const int64_t count = cornu_type_count(cornu_program_type(b->program, x));
    return cornu__build(b, CORNU_OP_ALL_GATHER, &attributes,
                        (const CornuValue[]){ cornu__build_reshape(b, x, cornu_shape(1, count)) },
                        1);
}

CornuStatus cornu__join_max(const CornuCutAxis *cut, CornuValue *largest)
{
    CornuBuilder     b = { cut->program, CORNU_OK };
    const CornuShape shape = cornu_program_type(cut->program, *largest).shape;
    CornuValue       all = stacked(&b, cut, *largest);
    all = cornu__build_reduce(&b, CORNU_OP_REDUCE_MAX, all, 1, false);
    *largest = cornu__build_reshape(&b, all, shape);
    return b.status;
}

/* In the slices' order the first of equal ones is that of the whole axis. */
CornuStatus cornu__join_argmax(const CornuCutAxis *cut, CornuValue x, int64_t axis,
                               CornuValue *index)
{
    const CornuAttributes by_slice = { .axis = { 0 } };
    CornuBuilder          b = { cut->program, CORNU_OK };
    const CornuShape      shape = cornu_program_type(cut->program, *index).shape;
    CornuValue values = cornu__build_reduce(&b, CORNU_OP_REDUCE_MAX, x, INT64_C(1) << axis, false);
    CornuValue indices = cornu__build2(&b, CORNU_OP_ADD, *index, first_place(&b, cut, *index));
    values = stacked(&b, cut, values);
    indices = stacked(&b, cut, indices);
    if (b.status) return b.status;
    const CornuShape all = cornu_program_type(b.program, values).shape;
    CornuValue who = cornu__build(&b, CORNU_OP_ARGMAX, &by_slice, &values, 1);
    CornuValue slice = cornu__build_convert(&b, cornu__build_rows(&b, all), CORNU_I32);
    CornuValue its = cornu__build_compare(&b, slice, CORNU_EQUAL,
                                          cornu__build_broadcast(&b, who, all));
    CornuValue zero = cornu__build_constant(&b, 0.0, indices);
    CornuValue chosen = cornu__build_select(&b, its, indices, zero);
    *index = cornu__build_reshape(&b, cornu__build_reduce(&b, CORNU_OP_REDUCE_SUM, chosen, 1,
                                                          false), shape);
    return b.status;
}
