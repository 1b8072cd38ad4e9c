/* Registered ops: by composition, with a kernel, by a reference kernel alone. */
#include "rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../tensor/graph_internal.h"
#include "../../tensor/ops/custom_internal.h"

/* ---- case_swish: y = x sigmoid(beta x), with all that a definition may have ---- */

static void swish_composition(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    y[0] = cornu_op_multiply(x[0], cornu_op_sigmoid(cornu_op_scale(x[0], call->numbers[0])));
}

/* d_x = d (s + beta y (1 - s)) with s = sigmoid(beta x) */
static void swish_gradient(const CornuOpArguments *call, CornuTensor *const *x,
                           CornuTensor *const *y, CornuTensor *const *d_y, CornuTensor **d_x)
{
    CornuTensor *s = cornu_op_sigmoid(cornu_op_scale(x[0], call->numbers[0]));
    CornuTensor *rest = cornu_op_subtract(cornu_op_constant_like(s, 1.0), s);
    CornuTensor *bent = cornu_op_scale(cornu_op_multiply(y[0], rest), call->numbers[0]);
    d_x[0] = cornu_op_multiply(d_y[0], cornu_op_add(s, bent));
}

static CornuStatus swish_reference(const CornuOpArguments *call, const double *const *in,
                                   const CornuType *out_type, double *const *out)
{
    for (int64_t i = 0; i < cornu_type_count(out_type[0]); i++)
        out[0][i] = in[0][i] / (1.0 + exp(-call->numbers[0] * in[0][i]));
    return CORNU_OK;
}

static CornuStatus swish_type(const CornuOpArguments *call, CornuType *out)
{
    if (call->number_count != 1)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "%d numbers, expected beta alone",
                               call->number_count);
    if (!cornu_dtype_is_float(call->in[0].dtype))
        return cornu_error_set(CORNU_ERR_DTYPE, "x is %s, expected a float",
                               cornu_dtype_name(call->in[0].dtype));
    out[0] = call->in[0];
    return CORNU_OK;
}

/* ---- case_blend: y = a x + (1 - a) z, differentiated by its composition, with a kernel ---- */

static void blend_composition(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    const double a = call->numbers[0];
    y[0] = cornu_op_add(cornu_op_scale(x[0], a), cornu_op_scale(x[1], 1.0 - a));
}

typedef struct {
    const float *x, *z;
    float       *y, a;
    int64_t      count;
} Blend;

enum { GRAIN = 7 };

static void blend_block(void *context, int64_t block)
{
    const Blend *b = context;
    for (int64_t i = block * GRAIN; i < b->count && i < (block + 1) * GRAIN; i++)
        b->y[i] = b->a * b->x[i] + (1.0f - b->a) * b->z[i];
}

static CornuStatus blend_kernel(const CornuOpArguments *call, const void *const *in,
                                const CornuType *out_type, void *const *out)
{
    Blend b = { in[0], in[1], out[0], (float)call->numbers[0], cornu_type_count(out_type[0]) };
    cornu_op_parallel(call, (b.count + GRAIN - 1) / GRAIN, blend_block, &b);
    return CORNU_OK;
}

/* ---- case_norms: x (B, C) to the norm (B) of each row and whether it is above 1 (B); any number
 * of operands, of which the first counts. Loops in double alone. ---- */

static CornuStatus norms_type(const CornuOpArguments *call, CornuType *out)
{
    if (call->in[0].shape.rank != 2)
        return cornu_error_set(CORNU_ERR_SHAPE, "x has rank %d, expected 2",
                               call->in[0].shape.rank);
    out[0] = cornu_type(call->in[0].dtype, call->in[0].shape.extent[0]);
    out[1] = cornu_type(CORNU_BOOL, call->in[0].shape.extent[0]);
    return CORNU_OK;
}

static CornuStatus norms_reference(const CornuOpArguments *call, const double *const *in,
                                   const CornuType *out_type, double *const *out)
{
    const int64_t columns = call->in[0].shape.extent[1];
    for (int64_t b = 0; b < out_type[0].shape.extent[0]; b++) {
        double sum = 0.0;
        const double *x = in[0] + b * columns;
        for (int64_t c = 0; c < columns; c++) sum += x[c] * x[c];
        if (isnan(sum)) return cornu_error_set(CORNU_ERR_VALUE, "row %lld is NaN", (long long)b);
        out[0][b] = sqrt(sum);
        out[1][b] = out[0][b] > 1.0;
    }
    return CORNU_OK;
}

/* d_x = d x / norm */
static void norms_gradient(const CornuOpArguments *call, CornuTensor *const *x,
                           CornuTensor *const *y, CornuTensor *const *d_y, CornuTensor **d_x)
{
    const int64_t rows = call->in[0].shape.extent[0];
    CornuTensor  *factor = cornu_op_reshape(cornu_op_divide(d_y[0], y[0]), cornu_shape(rows, 1));
    d_x[0] = cornu_op_multiply(x[0], cornu_op_broadcast(factor, call->in[0].shape));
}

/* ---- Rows ---- */

static const CornuOpDefinition definitions[] = {
    { .name = "case_swish", .type = swish_type, .reference = swish_reference,
      .composition = swish_composition, .gradient = swish_gradient },
    { .name = "case_blend", .inputs = 2, .composition = blend_composition,
      .kernel = blend_kernel },
    { .name = "case_norms", .inputs = -1, .outputs = 2, .type = norms_type,
      .reference = norms_reference, .gradient = norms_gradient },
};
enum { SWISH, BLEND, NORMS };

/* `definition` and `body` are filled in once the ops are registered. */
#define NUMBERS(...) { .custom = { .number_count = 1, .numbers = { __VA_ARGS__ } } }
#define NO_NUMBERS   { .custom = { .number_count = 0 } }
static const struct {
    int    op;
    OpCase row;
} cases[] = {
    { SWISH, { CORNU_OP_CUSTOM, NUMBERS(1.5), .in_count = 1, .in = { T(F32, 1, 4) },
      .near = NEAR_COMPOSED, .given = { D(0, 1, -1, 2) },
      .out = { D(0, 0.8175744761936437, -0.18242552380635635, 1.9051482536448667) },
      .differentiate = 1 } },
    { SWISH, { CORNU_OP_CUSTOM, NUMBERS(-0.5), .in_count = 1, .in = { T(F32, 3, 3, 5, 7) },
      .near = NEAR_COMPOSED, .differentiate = 1 } },
    { SWISH, { CORNU_OP_CUSTOM, NUMBERS(1), .in_count = 1, .in = { T(F64, 2, 3, 5) } } },
    { SWISH, { CORNU_OP_CUSTOM, NUMBERS(1), .in_count = 1, .in = { T(F32, 2, 0, 5) } } },
    { SWISH, { CORNU_OP_CUSTOM, NUMBERS(1), .in_count = 1, .in = { T(I32, 1, 4) },
      .refused = CORNU_ERR_DTYPE } },
    { SWISH, { CORNU_OP_CUSTOM, NO_NUMBERS, .in_count = 1, .in = { T(F32, 1, 4) },
      .refused = CORNU_ERR_ARGUMENT } },
    { SWISH, { CORNU_OP_CUSTOM, NUMBERS(1), .in_count = 2,
      .in = { T(F32, 1, 4), T(F32, 1, 4) }, .refused = CORNU_ERR_ARGUMENT } },
    { BLEND, { CORNU_OP_CUSTOM, NUMBERS(0.25), .in_count = 2,
      .in = { T(F32, 1, 2), T(F32, 1, 2) }, .given = { D(4, -8), D(8, 4) }, .out = { D(7, 1) },
      .differentiate = 3 } },
    { BLEND, { CORNU_OP_CUSTOM, NUMBERS(0.25), .in_count = 2,
      .in = { T(F32, 2, 3, 20), T(F32, 2, 3, 20) }, .near = NEAR_COMPOSED, .differentiate = 3 } },
    { NORMS, { CORNU_OP_CUSTOM, NO_NUMBERS, .in_count = 1, .in = { T(F32, 2, 2, 2) },
      .given = { D(3, 4, 0.25, 0) }, .out = { D(5, 0.25), D(1, 0) }, .by_reference = true,
      .differentiate = 1 } },
    { NORMS, { CORNU_OP_CUSTOM, NO_NUMBERS, .in_count = 2,
      .in = { T(F32, 2, 5, 9), T(I32, 1, 1) }, .draw = { DRAW_POSITIVE }, .by_reference = true,
      .differentiate = 1 } },
    { NORMS, { CORNU_OP_CUSTOM, NO_NUMBERS, .in_count = 1, .in = { T(F32, 2, 1, 2) },
      .given = { D(1, NAN) }, .by_reference = true, .fault = "case_norms: row 0 is NaN" } },
    { NORMS, { CORNU_OP_CUSTOM, NO_NUMBERS, .in_count = 1, .in = { T(F32, 1, 2) },
      .refused = CORNU_ERR_SHAPE } },
};
enum { ROWS = sizeof cases / sizeof *cases };

static void fail(void)
{
    fprintf(stderr, "op_cases/custom: %s\n", cornu_error_message());
    exit(1);
}

/* Bodies live as long as the test: rows point to them. */
static CornuGraph **kept;
static int          kept_count;

static const CornuProgram *body_of(const CornuOp *op, const OpCase *row)
{
    static CornuDevice *device;
    const CornuOpArguments call = {
        .name = op->name, .in = row->in, .in_count = row->in_count,
        .numbers = row->attributes.custom.numbers,
        .number_count = (int)row->attributes.custom.number_count,
    };
    if (!op->composition || row->refused) return NULL;
    if (!device && !(device = cornu_device_open("reference"))) fail();
    CornuGraph *graph = cornu__op_compose(op, device, &call);
    CornuGraph **more = realloc(kept, (size_t)(kept_count + 1) * sizeof *kept);
    if (!graph || !more) fail();
    kept = more;
    kept[kept_count++] = graph;
    return graph->program;
}

void op_case_compose(OpCase *row)
{
    const CornuDefinition *definition = row->attributes.custom.definition;
    row->attributes.custom.body = body_of((const CornuOp *)definition, row);
}

static OpCase rows[ROWS + 1];   /* the last has no definition */

void op_cases_custom_make(void)
{
    CornuOp *ops[sizeof definitions / sizeof *definitions];
    if (rows[0].attributes.custom.definition) return;
    for (int i = 0; i < (int)(sizeof definitions / sizeof *definitions); i++)
        if (!(ops[i] = cornu_op_register(&definitions[i]))) fail();
    for (int i = 0; i < ROWS; i++) {
        rows[i] = cases[i].row;
        rows[i].attributes.custom.definition = &ops[cases[i].op]->base;
        op_case_compose(&rows[i]);
    }
    rows[ROWS] = (OpCase){ CORNU_OP_CUSTOM, NO_NUMBERS, .in_count = 1, .in = { T(F32, 1, 2) },
                           .refused = CORNU_ERR_ARGUMENT };
}

const OpCases op_cases_custom = { "custom", rows, ROWS + 1 };
