/* The ops of a program one by one, and their values: recorded_internal.h. */
#include "recorded_internal.h"

typedef CornuLiteOp Op;

CornuShape cornu__lite_value_shape(const CornuLiteProgram *program, CornuValue value)
{
    CornuShape       shape = program->program->values[value].type.shape;
    const CornuShape other = program->worlds[1]->values[value].type.shape;
    for (int i = 0; i < shape.rank; i++)
        if (shape.extent[i] != other.extent[i]) shape.extent[i] = CORNU_NONE;
    return shape;
}

CornuDtype cornu__lite_value_dtype(const Op *op, CornuValue value)
{
    return op->program->program->values[value].type.dtype;
}

CornuLiteDtype cornu__lite_kept(CornuDtype dtype)
{
    return dtype == CORNU_BOOL           ? CORNU_LITE_BOOL
         : cornu_dtype_is_float(dtype)   ? CORNU_LITE_F32 : CORNU_LITE_I32;
}

int cornu__lite_small(const Op *op, int i) { return op->program->tensors[op->in[i]]; }

/* The size of the batch, an i32 without axes. */
static int batch_of(CornuLite *to)
{
    const int32_t          zero = 0, one = 1;
    const CornuLiteOptions shapes = { .out_dtype = CORNU_LITE_I32 };
    const CornuLiteOptions single = { .shrink_axis_mask = 1 };
    const int              x = to->graph->inputs[0].tensor;
    int in[4] = { cornu__lite_node_of(to, CORNU_LITE_SHAPE, &x, 1, CORNU_LITE_I32,
                                      cornu_shape(shape_of(to, x).rank), &shapes) };
    in[1] = cornu__lite_add_integers(to->graph, &zero, 1);
    in[2] = in[3] = cornu__lite_add_integers(to->graph, &one, 1);
    return cornu__lite_node_of(to, CORNU_LITE_STRIDED_SLICE, in, 4, CORNU_LITE_I32,
                               (CornuShape){ 0 }, &single);
}

static int extent_constant(CornuLite *to, int64_t value)
{
    return cornu__lite_add_constant(to->graph, "extent", CORNU_LITE_I32, (CornuShape){ 0 },
                                    &(int32_t){ (int32_t)value });
}

/* An extent as an i32 without axes; `batch` is added once. */
static CornuStatus extent_at(const Op *op, const CornuShape *worlds, int axis, int *batch,
                             int *tensor)
{
    CornuLite    *to = op->to;
    const int64_t first = worlds[0].extent[axis], second = worlds[1].extent[axis];
    const int64_t times = first / cornu__lite_batches[0];
    if (first == second) {
        *tensor = extent_constant(to, first);
        return CORNU_OK;
    }
    if (times * cornu__lite_batches[0] != first || times * cornu__lite_batches[1] != second)
        return cornu__lite_op_refuse(op, "of an extent that is not a multiple of the batch");
    if (*batch < 0) *batch = batch_of(to);
    *tensor = *batch;
    if (times == 1) return CORNU_OK;
    const int in[] = { *batch, extent_constant(to, times) };
    *tensor = cornu__lite_node_of(to, CORNU_LITE_MUL, in, 2, CORNU_LITE_I32, (CornuShape){ 0 },
                                  NULL);
    return CORNU_OK;
}

CornuStatus cornu__lite_extents_of(const Op *op, const CornuShape *worlds, int *tensor)
{
    const int rank = worlds[0].rank;
    int32_t   known[CORNU_MAX_RANK];
    int       in[CORNU_MAX_RANK], batch = CORNU_LITE_NONE;
    for (int i = 0; i < rank; i++) known[i] = (int32_t)worlds[0].extent[i];
    if (cornu_shape_equal(worlds[0], worlds[1])) {
        *tensor = cornu__lite_add_integers(op->to->graph, known, rank);
        return op->to->graph->status;
    }
    for (int i = 0; i < rank; i++) CORNU__TRY(extent_at(op, worlds, i, &batch, &in[i]));
    *tensor = cornu__lite_node_of(op->to, CORNU_LITE_PACK, in, rank, CORNU_LITE_I32,
                                  cornu_shape(rank), &(CornuLiteOptions){ .count = rank });
    return op->to->graph->status;
}

CornuStatus cornu__lite_extents(const Op *op, CornuValue value, int *tensor)
{
    const CornuShape worlds[] = { op->program->worlds[0]->values[value].type.shape,
                                  op->program->worlds[1]->values[value].type.shape };
    return cornu__lite_extents_of(op, worlds, tensor);
}

/* How often x is repeated along each axis to have this shape, whose open extents it has already;
 * false if it is another. */
static bool times_of(CornuShape from, CornuShape shape, int32_t *times)
{
    bool fits = from.rank == shape.rank, open = false;
    for (int i = 0; i < shape.rank && fits; i++) {
        const bool same = from.extent[i] == shape.extent[i];
        open |= shape.extent[i] == CORNU_NONE;
        times[i] = same ? 1 : (int32_t)shape.extent[i];
        fits = same || shape.extent[i] != CORNU_NONE;
    }
    return fits && open;
}

CornuStatus cornu__lite_full(const Op *op, int i, int *tensor)
{
    int32_t          times[CORNU_MAX_RANK];
    CornuLite       *to = op->to;
    const CornuShape shape = cornu__lite_value_shape(op->program, op->in[i]);
    const int        x = cornu__lite_small(op, i);
    int              in[] = { x, 0 };
    *tensor = x;
    if (x < 0) return to->graph->status ? to->graph->status : CORNU_ERR_MEMORY;
    if (cornu_shape_equal(shape_of(to, x), shape)) return CORNU_OK;
    const bool tiles = times_of(shape_of(to, x), shape, times);
    if (tiles) in[1] = cornu__lite_add_integers(to->graph, times, shape.rank);
    else CORNU__TRY(cornu__lite_extents(op, op->in[i], &in[1]));
    *tensor = cornu__lite_node_of(to, tiles ? CORNU_LITE_TILE : CORNU_LITE_BROADCAST_TO, in, 2,
                                  to->graph->tensors[x].dtype, shape, NULL);
    op->program->tensors[op->in[i]] = *tensor;
    return to->graph->status;
}

CornuStatus cornu__lite_op_give(const Op *op, int tensor)
{
    op->program->tensors[op->out] = tensor;
    return op->to->graph->status;
}

CornuStatus cornu__lite_op_refuse(const Op *op, const char *why)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the op %s is not available in .tflite files, %s",
                       cornu_program_op_name(op->op), why);
}

/* ---- All ops; those without a writer serve training, or several shards ---- */

static CornuLiteWriter *writer_of(CornuOpId id)
{
    for (const CornuLiteOpRow *const *family = cornu__lite_op_families; *family; family++)
        for (const CornuLiteOpRow *row = *family; row->write; row++)
            if (row->id == id) return row->write;
    return NULL;
}

bool cornu__lite_has_writer(CornuOpId id) { return writer_of(id) != NULL; }

CornuStatus cornu__lite_ops(CornuLiteProgram *program)
{
    for (int i = 0; i < program->program->op_count; i++) {
        const CornuProgramOp *op = &program->program->ops[i];
        const Op              at = {
            .program = program, .to = program->to, .op = op, .number = i,
            .attributes = &op->attributes, .in = cornu_program_operands(program->program, op),
            .out = op->out_first,
        };
        CornuLiteWriter *write = writer_of(op->id);
        if (!write) return cornu__lite_op_refuse(&at, "which has no operator for it");
        bool known;
        CORNU__TRY(cornu__lite_known(&at, &known));
        if (!known) CORNU__TRY(write(&at));
    }
    return program->to->graph->status;
}
