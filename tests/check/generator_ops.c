/* Random programs: a maker for each kind of op. */
#include "generator_internal.h"

#include "../../device/definition_internal.h"
#include "../../tensor/custom.h"
#include "../../tensor/ops.h"

static void compose_swish(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    (void)call;
    y[0] = cornu_op_multiply(x[0], cornu_op_sigmoid(x[0]));
}

/* A registered op, x sigmoid(x), without a kernel. */
static CornuValue make_custom(Generator *g, CornuOpId id)
{
    static const char name[] = "check_swish";
    CornuValue        x = gen_any_float(g), in[2], y = CORNU_NO_VALUE;
    CornuProgram     *body = cornu_program_create();
    if (!cornu_op_find(name))
        cornu_op_register(&(CornuOpDefinition){ .name = name, .composition = compose_swish });
    if (x != CORNU_NO_VALUE && body &&
        !cornu_program_input(body, gen_type_of(g, x), &in[0]) &&
        !cornu_program_record(body, CORNU_OP_SIGMOID, NULL, in, 1, &in[1]) &&
        !cornu_program_record(body, CORNU_OP_MULTIPLY, NULL, in, 2, &in[1]) &&
        !cornu_program_output(body, in[1], -1))
        y = gen_emit(g, id, &(CornuAttributes){ .custom = {
                         .definition = cornu__definition_find(name), .body = body } }, &x, 1);
    cornu_program_free(body);
    return y;
}

static CornuValue make_unary(Generator *g, CornuOpId id)
{
    CornuValue      x = gen_any_float(g);
    CornuAttributes attributes = {
        .alpha = { chance(g, 50) ? 1.0 : 0.25 * (double)draw(g, 7) - 0.5 },
    };
    if (x == CORNU_NO_VALUE) return x;
    if ((id == CORNU_OP_LOG || id == CORNU_OP_SQRT || id == CORNU_OP_RSQRT) && chance(g, 70)) {
        x = gen_emit1(g, CORNU_OP_ABSOLUTE, x);
        if (x == CORNU_NO_VALUE) return x;
        x = gen_emit2(
            g, CORNU_OP_ADD, x,
            gen_fit(g, gen_scalar(g, gen_type_of(g, x).dtype, 0.5), gen_type_of(g, x)));
    }
    if ((id == CORNU_OP_NEGATIVE || id == CORNU_OP_ABSOLUTE) && chance(g, 20))
        x = gen_any_value(g, chance(g, 50) ? CORNU_I32 : CORNU_I64);
    if (id == CORNU_OP_BOUNDED_RELU || id == CORNU_OP_BOUNDED_STEP)
        attributes = (CornuAttributes){ .bound = { 0.25 + 0.25 * (double)draw(g, 7) } };
    else if (id != CORNU_OP_ELU) return gen_emit1(g, id, x);
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue make_binary(Generator *g, CornuOpId id)
{
    CornuValue x = chance(g, 75) ? gen_any_float(g) : gen_any_value(g, -1);
    if (x == CORNU_NO_VALUE) return x;
    CornuValue y = chance(g, 10) ? x : gen_want(g, gen_type_of(g, x), POSITIVE);
    if (id == CORNU_OP_POWER && cornu_dtype_is_float(gen_type_of(g, x).dtype))
        x = gen_emit1(g, CORNU_OP_ABSOLUTE, x);
    return chance(g, 50) ? gen_emit2(g, id, x, y) : gen_emit2(g, id, y, x);
}

static CornuValue make_compare(Generator *g, CornuOpId id)
{
    CornuValue      x = gen_any_value(g, -1);
    CornuAttributes attributes = { .compare = { (CornuComparison)draw(g, 6) } };
    CornuValue      in[2] = { x, gen_want(g, gen_type_of(g, x), ANY) };
    return gen_emit(g, id, &attributes, in, 2);
}

static CornuValue make_select(Generator *g, CornuOpId id)
{
    CornuValue x = gen_any_value(g, -1),
               in[3] = { CORNU_NO_VALUE, x, gen_want(g, gen_type_of(g, x), ANY) };
    in[0] = gen_want(g, cornu_type_from(CORNU_BOOL, gen_type_of(g, x).shape), ANY);
    return gen_emit(g, id, NULL, in, 3);
}

static CornuValue make_convert(Generator *g, CornuOpId id)
{
    CornuValue      x = gen_any_value(g, -1);
    CornuAttributes attributes = {
        .convert = { chance(g, 60) ? gen_a_float(g)
                                   : (CornuDtype)draw(g, CORNU_DTYPE_COUNT) }
    };
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue make_broadcast(Generator *g, CornuOpId id)
{
    CornuValue x = gen_any_value(g, -1);
    CornuShape from = gen_type_of(g, x).shape, to = from;
    if (from.rank < CORNU_MAX_RANK && chance(g, 60)) {
        to.rank++;
        for (int i = 0; i < from.rank; i++) to.extent[i + 1] = from.extent[i];
        to.extent[0] = gen_extent(g);
    }
    for (int i = 0; i < to.rank; i++)
        if (to.extent[i] == 1 && chance(g, 60)) to.extent[i] = gen_extent(g);
    return gen_shaped(g, id, x, to);
}

static CornuValue make_reshape(Generator *g, CornuOpId id)
{
    CornuValue x = gen_any_value(g, -1);
    int64_t    left = cornu_type_count(gen_type_of(g, x));
    CornuShape to = { .rank = (int)draw(g, 5) };
    for (int i = 0; i < to.rank; i++) {
        int64_t part = 1 + draw(g, left < 9 ? left : 9);
        while (left % part) part--;
        to.extent[i] = i + 1 < to.rank ? part : left;
        left /= to.extent[i];
    }
    return gen_shaped(g, id, x, to);
}

static CornuValue make_transpose(Generator *g, CornuOpId id)
{
    CornuValue      x = gen_any_value(g, -1);
    CornuAttributes attributes = { .permutation = { { 0 } } };
    const int       rank = gen_type_of(g, x).shape.rank;
    for (int i = 0; i < rank; i++) attributes.permutation.axes[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int64_t k = draw(g, i + 1), kept = attributes.permutation.axes[i];
        attributes.permutation.axes[i] = attributes.permutation.axes[k];
        attributes.permutation.axes[k] = kept;
    }
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue make_slice(Generator *g, CornuOpId id)
{
    CornuValue       x = gen_any_value(g, -1);
    const CornuShape shape = gen_type_of(g, x).shape;
    CornuAttributes  attributes = { .slice = { { 0 }, { 0 } } };
    for (int i = 0; i < shape.rank; i++) {
        const bool whole = chance(g, 50);
        attributes.slice.starts[i] = whole ? 0 : draw(g, shape.extent[i]);
        const int64_t left = shape.extent[i] - attributes.slice.starts[i];
        attributes.slice.sizes[i] = whole ? left : 1 + draw(g, left);
    }
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue make_pad(Generator *g, CornuOpId id)
{
    CornuValue      x = gen_any_value(g, -1);
    CornuAttributes attributes = { .pad = { .value = chance(g, 70) ? 0.0 : 1.0 } };
    for (int i = 0; i < gen_type_of(g, x).shape.rank; i++) {
        attributes.pad.low[i] = chance(g, 50) ? 0 : draw(g, 3);
        attributes.pad.high[i] = chance(g, 50) ? 0 : draw(g, 3);
    }
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue make_concat(Generator *g, CornuOpId id)
{
    CornuValue in[4] = { gen_any_value(g, -1) };
    CornuType  type = gen_type_of(g, in[0]);
    if (type.shape.rank == 0) return CORNU_NO_VALUE;
    CornuAttributes attributes = { .axis = { draw(g, type.shape.rank) } };
    const int       count = 1 + (int)draw(g, 4);
    for (int i = 1; i < count; i++) {
        if (chance(g, 30)) type.shape.extent[attributes.axis.axis] = gen_extent(g);
        in[i] = chance(g, 15) ? in[i - 1] : gen_want(g, type, ANY);
    }
    return gen_emit(g, id, &attributes, in, count);
}

static CornuValue make_flip(Generator *g, CornuOpId id)
{
    CornuValue x = gen_any_value(g, -1);
    const int  rank = gen_type_of(g, x).shape.rank;
    return rank ? gen_emit(g, id, &(CornuAttributes){ .axis = { draw(g, rank) } }, &x, 1)
                : CORNU_NO_VALUE;
}

static CornuValue make_pack(Generator *g, CornuOpId id)
{
    CornuValue      in[4] = { gen_any_value(g, -1) };
    CornuAttributes attributes = { .pack = { 1 + draw(g, 20), 0 } };
    const int       count = 1 + (int)draw(g, 4);
    int64_t         end = 0;
    for (int i = 0; i < count; i++) {
        if (i) in[i] = gen_any_value(g, (int)gen_type_of(g, in[0]).dtype);
        if (in[i] == CORNU_NO_VALUE) return CORNU_NO_VALUE;
        end = cornu__pack_start(&attributes.pack, end) +
              cornu_type_count(gen_type_of(g, in[i]));
    }
    attributes.pack.extent = end + draw(g, 20);
    return gen_emit(g, id, &attributes, in, count);
}

static CornuValue make_reduce(Generator *g, CornuOpId id)
{
    CornuValue x = chance(g, 90) ? gen_any_float(g) : gen_any_value(g, -1);
    if (x == CORNU_NO_VALUE) return x;
    const int       rank = gen_type_of(g, x).shape.rank;
    CornuAttributes attributes = {
        .reduce = { chance(g, 15) ? 63 : draw(g, INT64_C(1) << rank), draw(g, 2), draw(g, 2) },
    };
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue make_argmax(Generator *g, CornuOpId id)
{
    CornuValue x = gen_any_float(g);
    if (x == CORNU_NO_VALUE || gen_type_of(g, x).shape.rank == 0) return CORNU_NO_VALUE;
    CornuAttributes attributes = { .axis = { draw(g, gen_type_of(g, x).shape.rank) } };
    return gen_emit(g, id, &attributes, &x, 1);
}

/* A dtype for the result of products of this one. */
static CornuDtype product_dtype(Generator *g, CornuDtype dtype)
{
    return chance(g, 60)                         ? dtype
           : dtype == CORNU_F64 || chance(g, 20) ? gen_a_float(g)
                                                 : CORNU_F32;
}

CornuValue gen_make_matmul(Generator *g, CornuOpId id)
{
    CornuValue in[2] = { gen_of_rank(g, chance(g, 75) ? 2 : 3) };
    if (in[0] == CORNU_NO_VALUE) return CORNU_NO_VALUE;
    const CornuType a = gen_type_of(g, in[0]);
    CornuAttributes attributes = {
        .matmul = { draw(g, 2), draw(g, 2), product_dtype(g, a.dtype) },
    };
    const int64_t k = a.shape.extent[a.shape.rank - (attributes.matmul.transpose_a ? 2 : 1)];
    const int64_t n = gen_extent(g);
    CornuType     b = a;
    if (chance(g, 60)) b.shape = cornu_shape(1, 1);
    b.shape.extent[b.shape.rank - 2] = attributes.matmul.transpose_b ? n : k;
    b.shape.extent[b.shape.rank - 1] = attributes.matmul.transpose_b ? k : n;
    in[1] = gen_want(g, b, SMALL);
    return gen_emit(g, id, &attributes, in, 2);
}

static CornuValue make_resample(Generator *g, CornuOpId id)
{
    CornuValue in[2] = { gen_of_rank(g, 1 + (int)draw(g, 4)) };
    if (in[0] == CORNU_NO_VALUE) return CORNU_NO_VALUE;
    CornuType             type = gen_type_of(g, in[0]);
    const CornuAttributes attributes = { .axis = { draw(g, type.shape.rank) } };
    type.shape = cornu_shape(gen_extent(g), type.shape.extent[attributes.axis.axis]);
    in[1] = gen_want(g, type, SMALL);
    return gen_emit(g, id, &attributes, in, 2);
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

CornuValue gen_make_conv2d(Generator *g, CornuOpId id)
{
    const bool grouped = id == CORNU_OP_GROUPED_CONV2D ||
                         id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT ||
                         id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
    const bool by_input = id == CORNU_OP_CONV2D_GRAD_INPUT ||
                          id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT;
    const bool by_filter = id == CORNU_OP_CONV2D_GRAD_FILTER ||
                           id == CORNU_OP_GROUPED_CONV2D_GRAD_FILTER;
    CornuValue x = gen_of_rank(g, 4);
    if (x == CORNU_NO_VALUE) return x;
    CornuType  of_x = gen_type_of(g, x);
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
        return gen_emit(g, id, &forward, (CornuValue[]){ x, gen_want(g, filter, SMALL) },
                        2);
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
    CornuValue in[2] = { x, gen_want(g, d_y, ANY) };
    if (by_input) in[0] = in[1], in[1] = gen_want(g, filter, SMALL);
    return gen_emit(g, id, &attributes, in, 2);
}

static CornuValue make_pool(Generator *g, CornuOpId id)
{
    CornuValue x = gen_of_rank(g, 4), out[CORNU_MAX_OUTPUTS];
    if (x == CORNU_NO_VALUE) return x;
    const int64_t  *shape = gen_type_of(g, x).shape.extent;
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
    CornuValue y = gen_emit_all(g, max ? CORNU_OP_MAX_POOL2D : CORNU_OP_AVERAGE_POOL2D,
                                &forward, &x, 1, out);
    if (y == CORNU_NO_VALUE || id == CORNU_OP_MAX_POOL2D || id == CORNU_OP_AVERAGE_POOL2D) return y;
    CornuValue in[2] = { gen_want(g, gen_type_of(g, y), ANY), out[1] };
    return gen_emit(g, id, &grad, in, max ? 2 : 1);
}

static CornuValue make_batch_norm(Generator *g, CornuOpId id)
{
    CornuValue x = gen_of_rank(g, chance(g, 50) ? 4 : 2);
    if (x == CORNU_NO_VALUE) return x;
    const CornuType  type = gen_type_of(g, x);
    const CornuType  vector = cornu_type(CORNU_F32, type.shape.extent[type.shape.rank - 1]);
    CornuAttributes  attributes = { .epsilon = { chance(g, 50) ? 1e-3 : 1e-2 } };
    const int64_t    batch = type.shape.extent[0];
    CornuValue       count =
        gen_scalar(g, CORNU_I64, (double)(chance(g, 60) ? batch : draw(g, batch + 1)));
    if (id == CORNU_OP_BATCH_NORM)
        return gen_emit(g, id, &attributes,
                        (CornuValue[]){ x, gen_want(g, vector, POSITIVE),
                                        gen_want(g, vector, ANY), count },
                        4);
    return gen_emit(g, id, &attributes,
                    (CornuValue[]){ x, gen_want(g, vector, POSITIVE),
                                    gen_want(g, vector, ANY),
                                    gen_fresh(g, vector, POSITIVE, 0),
                                    gen_want(g, type, ANY), count },
                    6);
}

static CornuValue make_softmax(Generator *g, CornuOpId id)
{
    return gen_emit1(g, id, gen_any_float(g));
}

static CornuValue make_one_hot(Generator *g, CornuOpId id)
{
    CornuAttributes attributes = { .one_hot = { 1 + draw(g, 9), gen_a_float(g) } };
    CornuValue      labels =
        gen_labelled(g, gen_a_shape(g, (int)draw(g, 3)), attributes.one_hot.depth);
    return gen_emit(g, id, &attributes, &labels, 1);
}

static CornuValue make_cross_entropy(Generator *g, CornuOpId id)
{
    CornuValue x = gen_any_float(g);
    if (x == CORNU_NO_VALUE || gen_type_of(g, x).shape.rank == 0) return CORNU_NO_VALUE;
    CornuShape    shape = gen_type_of(g, x).shape;
    const int64_t classes = shape.extent[--shape.rank];
    shape.extent[shape.rank] = 0;
    return gen_emit2(g, id, x, gen_labelled(g, shape, classes));
}

static CornuValue make_gather(Generator *g, CornuOpId id)
{
    CornuValue table = chance(g, 85) ? gen_of_rank(g, 2) : gen_any_value(g, -1);
    if (table == CORNU_NO_VALUE || gen_type_of(g, table).shape.rank != 2)
        return CORNU_NO_VALUE;
    const CornuType type = gen_type_of(g, table);
    CornuShape      lookup = gen_a_shape(g, (int)draw(g, 3));
    CornuValue      indices = gen_labelled(g, lookup, type.shape.extent[0]);
    if (id == CORNU_OP_GATHER) return gen_emit2(g, id, table, indices);
    lookup.extent[lookup.rank++] = type.shape.extent[1];
    CornuAttributes grad = { .gather_grad = { .rows = type.shape.extent[0],
                                              .dtype = product_dtype(g, type.dtype) } };
    if (!cornu_dtype_is_float(type.dtype)) return CORNU_NO_VALUE;
    return gen_emit(
        g, id, &grad,
        (CornuValue[]){ gen_want(g, cornu_type_from(type.dtype, lookup), ANY), indices },
        2);
}

/* Rows that were looked up, some of them twice, and their replacement. */
static CornuValue make_rows(Generator *g, CornuOpId id)
{
    CornuValue table = gen_of_rank(g, 2);
    if (table == CORNU_NO_VALUE || gen_type_of(g, table).shape.rank != 2) return CORNU_NO_VALUE;
    const CornuType  type = gen_type_of(g, table);
    const CornuShape lookups = gen_a_shape(g, 1);
    CornuAttributes  rows = { .rows = { type.shape.extent[0] } };
    CornuValue       indices = gen_labelled(g, lookups, type.shape.extent[0]);
    CornuValue       unique = gen_emit(g, CORNU_OP_UNIQUE_ROWS, &rows, &indices, 1);
    if (id == CORNU_OP_UNIQUE_ROWS || unique == CORNU_NO_VALUE) return unique;
    const CornuType each = cornu_type(type.dtype, lookups.extent[0], type.shape.extent[1]);
    CornuValue      values = gen_want(g, each, ANY);
    if (chance(g, 50) && cornu_dtype_is_float(type.dtype)) {   /* an update of the rows there are */
        const CornuAttributes padded = { .gather = { .padded = CORNU_PADDED_ABOVE } };
        values = gen_emit2(g, CORNU_OP_ADD, values,
                           gen_emit(g, CORNU_OP_GATHER, &padded, (CornuValue[]){ table, unique },
                                    2));
    }
    return gen_emit(g, id, NULL, (CornuValue[]){ table, unique, values }, 3);
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
    CornuType       type = cornu_type_from(chance(g, 80) ? CORNU_F32 : gen_a_float(g),
                                     gen_a_shape(g, (int)draw(g, 3)));
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
        in[i] = gen_want(g, i >= carries && i < carries + slices ? whole : type, SMALL);
    CornuProgram *body = scan_body(g, type, carries, slices, constants);
    a.scan.body = body;
    CornuValue y = gen_emit(g, id, &a, in, carries + slices + constants);
    cornu_program_free(body);
    return y;
}

static CornuValue make_recurrent(Generator *g, CornuOpId id)
{
    const int64_t    b = 1 + draw(g, 5), t = 1 + draw(g, 5);
    const int64_t    u = chance(g, 80) ? 1 + draw(g, 9) : 17;
    const CornuDtype dtype = chance(g, 70) ? CORNU_F32 : gen_a_float(g);
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
        in[n++] = gen_want(g, four, ANY);
        in[n++] = gen_want(g, cornu_type(dtype, u, 4 * u), SMALL);
        in[n++] = gen_want(g, h, SMALL);
        in[n++] = gen_want(g, c, SMALL);
        break;
    case CORNU_OP_LSTM_GRAD:
        in[n++] = gen_fresh(g, four, POSITIVE, 0);
        in[n++] = gen_want(g, cells, SMALL);
        in[n++] = gen_want(g, c, SMALL);
        in[n++] = gen_want(g, cornu_type(dtype, u, 4 * u), SMALL);
        in[n++] = gen_want(g, all, ANY);
        in[n++] = gen_want(g, c, ANY);
        break;
    case CORNU_OP_GRU:
        in[n++] = gen_want(g, cornu_type(dtype, b, t, 3 * u), ANY);
        in[n++] = gen_want(g, cornu_type(dtype, u, 3 * u), SMALL);
        in[n++] = gen_want(g, h, SMALL);
        in[n++] = gen_want(g, cornu_type(dtype, 3 * u), SMALL);
        break;
    default:
        in[n++] = gen_fresh(g, four, SMALL, 0);
        in[n++] = gen_want(g, all, SMALL);
        in[n++] = gen_want(g, h, SMALL);
        in[n++] = gen_want(g, cornu_type(dtype, u, 3 * u), SMALL);
        in[n++] = gen_want(g, all, ANY);
    }
    if (chance(g, 40)) in[n++] = gen_want(g, mask, ANY);
    return gen_emit(g, id, &a, in, n);
}

/* Sometimes of more than one block of steps, and then small otherwise. */
static CornuValue make_attention(Generator *g, CornuOpId id)
{
    const bool       wide = chance(g, 25);
    const int64_t    B = wide ? 1 : 1 + draw(g, 2), G = wide ? 1 : 1 + draw(g, 2);
    const int64_t    N = G * (1 + draw(g, 2)), H = 1 + draw(g, 5), V = 1 + draw(g, 5);
    const int64_t    T = wide && chance(g, 50) ? 130 + draw(g, 9) : 1 + draw(g, 9);
    const int64_t    S = wide && T < 100 ? 130 + draw(g, 9) : 1 + draw(g, 9);
    const CornuDtype dtype = chance(g, 70) ? CORNU_F32 : gen_a_float(g);
    const CornuType  q = cornu_type(dtype, B, T, N, H), y = cornu_type(dtype, B, T, N, V);
    const CornuDtype sums = dtype == CORNU_F64 ? CORNU_F64 : CORNU_F32;
    CornuType        mask = cornu_type(CORNU_BOOL, B, N, T, S);
    CornuAttributes  a = { .attention = { draw(g, 2), chance(g, 75) ? 0 : 1 + draw(g, 9) } };
    CornuValue       in[8];
    int              n = 0;
    for (int axis = 0; axis < 4; axis++)
        if (chance(g, 50)) mask.shape.extent[axis] = 1;
    in[n++] = gen_want(g, q, SMALL);
    in[n++] = gen_want(g, cornu_type(dtype, B, S, G, H), SMALL);
    in[n++] = gen_want(g, cornu_type(dtype, B, S, G, V), ANY);
    if (id == CORNU_OP_ATTENTION_GRAD) {
        in[n++] = gen_want(g, y, ANY);
        in[n++] = gen_fresh(g, cornu_type(sums, B, N, T), POSITIVE, 0);
        in[n++] = gen_want(g, y, ANY);
    }
    if (chance(g, 40)) in[n++] = gen_want(g, mask, ANY);
    return gen_emit(g, id, &a, in, n);
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
    return (CornuAttributes){ .shards = { size, { shards, listed }, 0 } };
}

static CornuValue make_collective(Generator *g, CornuOpId id)
{
    CornuValue      x = gen_any_value(g, chance(g, 80) ? CORNU_F32 : -1);
    int             listed[MOST_SHARDS];
    CornuAttributes attributes = groups(g, listed);
    if (x == CORNU_NO_VALUE) return x;
    if ((id == CORNU_OP_REDUCE_SCATTER || id == CORNU_OP_SHARD_SLICE) &&
        (gen_type_of(g, x).shape.rank == 0 ||
         gen_type_of(g, x).shape.extent[0] % attributes.shards.size)) {
        CornuType type = gen_type_of(g, x);
        if (type.shape.rank == 0) type.shape = cornu_shape(1, 3);
        type.shape.extent[0] = attributes.shards.size * (1 + draw(g, 3));
        x = gen_want(g, type, ANY);
    }
    return gen_emit(g, id, &attributes, &x, 1);
}

static CornuValue make_random(Generator *g, CornuOpId id)
{
    CornuValue      in[4] = { gen_any_float(g),
                              gen_scalar(g, CORNU_I64, (double)draw(g, 1000)),
                              gen_scalar(g, CORNU_I64, (double)draw(g, 9)),
                              gen_scalar(g, CORNU_I64, (double)draw(g, 99)) };
    CornuAttributes attributes = { .dropout = { 0.25 * (double)draw(g, 4), draw(g, 5) } };
    if (id == CORNU_OP_DROPOUT) return gen_emit(g, id, &attributes, in, 4);
    const CornuShape shape = gen_a_shape(g, (int)draw(g, 5));
    attributes = (CornuAttributes){ .random = { .rank = shape.rank, .generator = draw(g, 5) } };
    for (int i = 0; i < shape.rank; i++) attributes.random.extents[i] = shape.extent[i];
    return gen_emit(g, id, &attributes, in + 1, 3);
}

static CornuValue make_update(Generator *g, CornuOpId id)
{
    CornuValue w = gen_any_value(g, CORNU_F32);
    if (w == CORNU_NO_VALUE) return w;
    const CornuType type = gen_type_of(g, w);
    CornuValue      slot = gen_want(g, type, SMALL), gradient = gen_want(g, type, ANY);
    CornuValue      rate = gen_want(g, cornu_scalar(CORNU_F32), POSITIVE);
    CornuAttributes momentum = { .momentum = { 0.9, draw(g, 2) } };
    CornuAttributes rmsprop = { .rmsprop = { 0.9, 1e-3 } }, adam = { .adam = { 0.9, 0.99, 1e-3 } };
    if (id == CORNU_OP_MOMENTUM_UPDATE)
        return gen_emit(g, id, &momentum, (CornuValue[]){ w, slot, gradient, rate }, 4);
    CornuValue squares = gen_fresh(g, type, POSITIVE, 0);
    if (id == CORNU_OP_RMSPROP_UPDATE)
        return gen_emit(g, id, &rmsprop, (CornuValue[]){ w, squares, gradient, rate }, 4);
    return gen_emit(g, id, &adam, (CornuValue[]){ w, slot, squares, gradient, rate }, 5);
}

static CornuValue make_source(Generator *g, CornuOpId id)
{
    static const CornuDtype numbers[] = { CORNU_F32, CORNU_F64, CORNU_I32, CORNU_I64, CORNU_BF16 };
    const CornuDtype dtype = numbers[draw(g, 5)];
    if (id == CORNU_OP_CONSTANT) return gen_scalar(g, dtype, (double)draw(g, 5) - 1.0);
    if (id == CORNU_OP_REPLICA_ID) return gen_emit(g, id, NULL, NULL, 0);
    const CornuShape shape = gen_a_shape(g, 1 + (int)draw(g, 4));
    CornuAttributes  attributes = { .iota = { dtype, shape.rank, { 0 }, draw(g, shape.rank) } };
    for (int i = 0; i < shape.rank; i++) attributes.iota.extents[i] = shape.extent[i];
    return gen_emit(g, id, &attributes, NULL, 0);
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
    case CORNU_OP_MATMUL: return gen_make_matmul;
    case CORNU_OP_RESAMPLE: return make_resample;
    case CORNU_OP_CONV2D: case CORNU_OP_CONV2D_GRAD_INPUT: case CORNU_OP_CONV2D_GRAD_FILTER:
    case CORNU_OP_GROUPED_CONV2D: case CORNU_OP_GROUPED_CONV2D_GRAD_INPUT:
    case CORNU_OP_GROUPED_CONV2D_GRAD_FILTER: return gen_make_conv2d;
    case CORNU_OP_MAX_POOL2D: case CORNU_OP_MAX_POOL2D_GRAD: case CORNU_OP_AVERAGE_POOL2D:
    case CORNU_OP_AVERAGE_POOL2D_GRAD: return make_pool;
    case CORNU_OP_BATCH_NORM: case CORNU_OP_BATCH_NORM_GRAD: return make_batch_norm;
    case CORNU_OP_SOFTMAX: case CORNU_OP_LOG_SOFTMAX: return make_softmax;
    case CORNU_OP_ONE_HOT:   return make_one_hot;
    case CORNU_OP_SPARSE_CROSS_ENTROPY: return make_cross_entropy;
    case CORNU_OP_GATHER: case CORNU_OP_GATHER_GRAD: return make_gather;
    case CORNU_OP_UNIQUE_ROWS: case CORNU_OP_SCATTER_ROWS: return make_rows;
    case CORNU_OP_SCAN:      return make_scan;
    case CORNU_OP_LSTM: case CORNU_OP_LSTM_GRAD: case CORNU_OP_GRU: case CORNU_OP_GRU_GRAD:
        return make_recurrent;
    case CORNU_OP_ATTENTION: case CORNU_OP_ATTENTION_GRAD: return make_attention;
    case CORNU_OP_ALL_REDUCE: case CORNU_OP_REDUCE_SCATTER: case CORNU_OP_ALL_GATHER:
    case CORNU_OP_SHARD_SLICE: return make_collective;
    case CORNU_OP_RANDOM_UNIFORM: case CORNU_OP_DROPOUT: return make_random;
    case CORNU_OP_MOMENTUM_UPDATE: case CORNU_OP_RMSPROP_UPDATE: case CORNU_OP_ADAM_UPDATE:
        return make_update;
    case CORNU_OP_CUSTOM: return make_custom;
    default: return make_unary;
    }
}

void gen_op(Generator *g, CornuOpId id) { maker_of(id)(g, id); }
