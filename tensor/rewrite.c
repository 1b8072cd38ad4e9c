/*
 * Rewrites the recorded ops before gradients are taken, so that the backward pass benefits too.
 * Results stay the same, except for which of several equal maxima a pool reports:
 *
 *   max_pool(f(x)) = f(max_pool(x))   for a nondecreasing f that is the same at all positions of a
 *                                     window: activations, and adding a bias per channel. With 2x2
 *                                     windows f then has a quarter of the elements to compute,
 *                                     forward and backward.
 *   max_pool(conv2d(x))               rows and columns of the convolution that no window reads
 *                                     are not computed: its high padding shrinks.
 *
 *   gather(E) W = gather(E W)         if E has fewer rows than are looked up: the product, forward
 *   gather(E) + b = gather(E + b)     and backward, and the bias then have E's row count. Not if E
 *                                     is a variable with a sparse gradient.
 *
 *   f(transpose(x)) = transpose(f(x)) for images with channels first (layouts.c), as files of other
 *                                     programs have them: between convolutions nothing is moved.
 *
 * The program is re-recorded in order; map[] gives the new number of each value.
 */
#include "../device/debug_internal.h"
#include "../device/op_internal.h"
#include "layouts_internal.h"

typedef struct {
    const CornuGraph   *graph;
    const CornuProgram *from;
    CornuProgram       *to;
    CornuValue         *map;    /* value of `from` -> value of `to` */
    int                *uses;   /* how many operands of `from` each value is */
    bool                improves;   /* false: ops are only decomposed */
    CornuDecomposes    *decomposes; /* or NULL */
} Rewrite;

static const CornuProgramOp *producer(const CornuProgram *program, CornuValue value)
{
    int op = program->values[value].op;
    return op < 0 ? NULL : &program->ops[op];
}

static CornuValue operand(const Rewrite *r, const CornuProgramOp *op, int i)
{
    return cornu_program_operands(r->from, op)[i];
}

/* Whether y = op(x) never decreases when x grows. */
static bool nondecreasing(const CornuProgramOp *op)
{
    return cornu__op_reads(op->id) == CORNU_READS_RISING &&
           (op->id != CORNU_OP_ELU || op->attributes.alpha.alpha >= 0.0);
}

/* Which operand of an addition is a broadcast that is constant along the height and width of
 * (B, H, W, C); -1 if neither is. */
static int bias_operand(const Rewrite *r, const CornuProgramOp *op)
{
    for (int i = 0; op->id == CORNU_OP_ADD && i < 2; i++) {
        const CornuProgramOp *source = producer(r->from, operand(r, op, i));
        if (!source || source->id != CORNU_OP_BROADCAST) continue;
        CornuShape shape = cornu_program_type(r->from, operand(r, source, 0)).shape;
        bool       varies = false;
        for (int axis = 0; axis < shape.rank; axis++) {
            int of_four = axis + 4 - shape.rank;
            varies |= of_four != 3 && shape.extent[axis] != 1;
        }
        if (!varies) return i;
    }
    return -1;
}

/* How many steps that produce a pool's operand can move after the pool, at most. */
enum { MAX_MOVED = 4 };

typedef struct {
    const CornuProgramOp *steps[MAX_MOVED];   /* the last one recorded comes first */
    int                   count;
    CornuValue            base;               /* the operand of the first step */
} Chain;

static Chain find_chain(const Rewrite *r, CornuValue value)
{
    Chain chain = { .base = value };
    while (chain.count < MAX_MOVED && r->uses[chain.base] == 1) {
        const CornuProgramOp *op = producer(r->from, chain.base);
        if (!op) break;
        int bias = bias_operand(r, op);
        if (bias < 0 && !nondecreasing(op)) break;
        const CornuValue before = operand(r, op, bias < 0 ? 0 : 1 - bias);
        /* If only the bias varies from shard to shard, moving it would make the pool's index common
         * to all shards. */
        if (r->from->values[before].varies != r->from->values[chain.base].varies) break;
        chain.steps[chain.count++] = op;
        chain.base = before;
    }
    return chain;
}

/* Re-records the base of the chain without the rows and columns that the pool drops. */
static CornuStatus record_base(Rewrite *r, CornuValue base, const CornuProgramOp *pool,
                               CornuValue *out)
{
    *out = r->map[base];
    const CornuProgramOp *conv = producer(r->from, base);
    if (!conv || conv->id != CORNU_OP_CONV2D || r->uses[base] != 1) return CORNU_OK;

    CornuShape      y = cornu_program_type(r->from, base).shape;
    CornuShape      pooled = cornu_program_type(r->from, pool->out_first).shape;
    CornuShape      x = cornu_program_type(r->from, operand(r, conv, 0)).shape;
    CornuShape      filter = cornu_program_type(r->from, operand(r, conv, 1)).shape;
    CornuAttributes attributes = conv->attributes;
    bool            fewer = false;
    for (int i = 0; i < 2; i++) {
        int64_t step = pool->attributes.window.strides[i], s = attributes.conv2d.strides[i];
        int64_t dilation = attributes.conv2d.dilation[i];
        int64_t read = (pooled.extent[i + 1] - 1) * (step ? step : 1) +
                       pool->attributes.window.size[i] - pool->attributes.window.low[i];
        if (read >= y.extent[i + 1]) continue;
        fewer = true;
        attributes.conv2d.high[i] = (read - 1) * (s ? s : 1) +
                                    (dilation ? dilation : 1) * (filter.extent[i] - 1) + 1 -
                                    x.extent[i + 1] - attributes.conv2d.low[i];
    }
    if (!fewer) return CORNU_OK;
    CornuValue in[2] = { r->map[operand(r, conv, 0)], r->map[operand(r, conv, 1)] };
    CORNU__TRY(cornu__program_follow(r->to, conv));
    return cornu_program_record(r->to, CORNU_OP_CONV2D, &attributes, in, 2, out);
}

/* Adds the bias, operand `bias` of the step, to a value of a different shape. */
static CornuStatus record_biased(Rewrite *r, const CornuProgramOp *step, int bias,
                                 CornuValue *value)
{
    const CornuProgramOp *broadcast = producer(r->from, operand(r, step, bias));
    const CornuValue      x = *value;
    CornuShape            shape = cornu_program_type(r->to, x).shape;
    CORNU__TRY(cornu__program_follow(r->to, step));
    CornuAttributes       attributes = { .shape = { .rank = shape.rank } };
    for (int i = 0; i < shape.rank; i++) attributes.shape.extents[i] = shape.extent[i];
    CornuValue in[2], source = r->map[operand(r, broadcast, 0)];
    in[1 - bias] = x;
    CORNU__TRY(cornu_program_record(r->to, CORNU_OP_BROADCAST, &attributes, &source, 1, &in[bias]));
    return cornu_program_record(r->to, CORNU_OP_ADD, NULL, in, 2, value);
}

/* Applies one step of the chain to the pooled value. */
static CornuStatus record_step(Rewrite *r, const CornuProgramOp *step, CornuValue *value)
{
    const int        bias = bias_operand(r, step);
    const CornuValue x = *value;
    if (bias >= 0) return record_biased(r, step, bias, value);
    CORNU__TRY(cornu__program_follow(r->to, step));
    return cornu_program_record(r->to, step->id, &step->attributes, &x, 1, value);
}

static CornuStatus rewrite_max_pool(Rewrite *r, const CornuProgramOp *op, CornuValue *out)
{
    Chain      chain = find_chain(r, operand(r, op, 0));
    CornuValue base;
    CORNU__TRY(record_base(r, chain.base, op, &base));
    CORNU__TRY(cornu__program_follow(r->to, op));
    CORNU__TRY(cornu_program_record(r->to, op->id, &op->attributes, &base, 1, out));
    for (int i = chain.count - 1; i >= 0; i--) CORNU__TRY(record_step(r, chain.steps[i], &out[0]));
    return CORNU_OK;
}

/* Whether only the rows of the table that are looked up are to be read: an input of the program. */
static bool is_sparse(const Rewrite *r, const CornuProgram *program, CornuValue table)
{
    const CornuProgramValue *value = &program->values[table];
    const CornuVariable     *variable = value->op < 0 ? r->graph->inputs[value->index].variable
                                                      : NULL;
    return variable && variable->sparse_gradient;
}

/* The lookup that produces the left operand of a product of two matrices, possibly reshaped, and
 * that looks up more rows than its table has; NULL if there is none. */
static const CornuProgramOp *find_lookup(const Rewrite *r, const CornuProgramOp *op)
{
    const CornuShape a = cornu_program_type(r->from, operand(r, op, 0)).shape;
    const CornuShape b = cornu_program_type(r->from, operand(r, op, 1)).shape;
    if (op->attributes.matmul.transpose_a || a.rank != 2 || b.rank != 2) return NULL;
    const CornuProgramOp *lookup = producer(r->from, operand(r, op, 0));
    if (lookup && lookup->id == CORNU_OP_RESHAPE)
        lookup = producer(r->from, operand(r, lookup, 0));
    if (!lookup || lookup->id != CORNU_OP_GATHER || lookup->attributes.gather.padded ||
        is_sparse(r, r->from, operand(r, lookup, 0)))
        return NULL;
    const CornuShape table = cornu_program_type(r->from, operand(r, lookup, 0)).shape;
    return table.extent[1] == a.extent[1] && table.extent[0] < a.extent[0] ? lookup : NULL;
}

static CornuStatus rewrite_lookup(Rewrite *r, const CornuProgramOp *op,
                                  const CornuProgramOp *lookup, CornuValue *out)
{
    CornuValue in[2] = { r->map[operand(r, lookup, 0)], r->map[operand(r, op, 1)] };
    CornuValue indices = r->map[operand(r, lookup, 1)];
    CornuAttributes flat = {
        .shape = { 1, { cornu_shape_count(cornu_program_type(r->to, indices).shape) } },
    };
    CORNU__TRY(cornu__program_follow(r->to, op));
    CORNU__TRY(cornu_program_record(r->to, op->id, &op->attributes, in, 2, &in[0]));
    CORNU__TRY(cornu_program_record(r->to, CORNU_OP_RESHAPE, &flat, &indices, 1, &in[1]));
    return cornu_program_record(r->to, CORNU_OP_GATHER, NULL, in, 2, out);
}

/* The lookup to which a bias, operand *bias, is added, that nothing else reads and that looks up
 * more rows than its table has; NULL if there is none. */
static const CornuProgramOp *find_biased_lookup(const Rewrite *r, const CornuProgramOp *op,
                                                int *bias)
{
    *bias = bias_operand(r, op);
    if (*bias < 0 || r->uses[operand(r, op, 1 - *bias)] != 1) return NULL;
    const CornuProgramOp *lookup = producer(r->to, r->map[operand(r, op, 1 - *bias)]);
    if (!lookup || lookup->id != CORNU_OP_GATHER || lookup->attributes.gather.padded ||
        is_sparse(r, r->to, cornu_program_operands(r->to, lookup)[0]))
        return NULL;
    const CornuShape rows = cornu_program_type(r->to, lookup->out_first).shape;
    const CornuShape table =
        cornu_program_type(r->to, cornu_program_operands(r->to, lookup)[0]).shape;
    return rows.rank == 2 && table.rank == 2 && table.extent[0] < rows.extent[0] ? lookup : NULL;
}

static CornuStatus rewrite_biased_lookup(Rewrite *r, const CornuProgramOp *op,
                                         const CornuProgramOp *lookup, int bias, CornuValue *out)
{
    const CornuValue *of_lookup = cornu_program_operands(r->to, lookup);
    CornuValue        biased[2] = { of_lookup[0], of_lookup[1] };
    CORNU__TRY(record_biased(r, op, bias, &biased[0]));
    return cornu_program_record(r->to, CORNU_OP_GATHER, NULL, biased, 2, out);
}

static CornuStatus copy(Rewrite *r, const CornuProgramOp *op, const CornuValue *in, bool expand,
                        CornuValue *out)
{
    CORNU__TRY(cornu__program_follow(r->to, op));
    if (!expand)
        return cornu_program_record(r->to, op->id, &op->attributes, in, op->in_count, out);
    CornuType *types = cornu__allocate((size_t)op->in_count, sizeof *types);
    if (!types) return CORNU_ERR_MEMORY;
    CornuOpCall call = cornu_program_call(r->from, op, types);
    CornuStatus status = cornu__op_rules(op->id)->decompose(r->to, &call, in, out);
    cornu__release(types);
    return status;
}

static CornuStatus rewrite_op(Rewrite *r, const CornuProgramOp *op)
{
    enum { USUAL = 8 };
    CornuValue  usual[USUAL], *in = usual, out[CORNU_MAX_OUTPUTS];
    CornuStatus status;
    int                   bias;
    const CornuProgramOp *lookup =
        r->improves && op->id == CORNU_OP_MATMUL ? find_lookup(r, op) : NULL;
    const CornuProgramOp *biased = r->improves ? find_biased_lookup(r, op, &bias) : NULL;
    if (r->improves && op->id == CORNU_OP_MAX_POOL2D) {
        status = rewrite_max_pool(r, op, out);
    } else if (lookup) {
        status = rewrite_lookup(r, op, lookup, out);
    } else if (biased) {
        status = rewrite_biased_lookup(r, op, biased, bias, out);
    } else {
        if (op->in_count > USUAL && !(in = cornu__allocate((size_t)op->in_count, sizeof *in)))
            return CORNU_ERR_MEMORY;
        for (int i = 0; i < op->in_count; i++) in[i] = r->map[operand(r, op, i)];
        bool moved = false;
        status = r->improves ? cornu__move_transpose(r->to, op, in, out, &moved) : CORNU_OK;
        if (!status && !moved)
            status = copy(r, op, in, r->decomposes && r->decomposes(op->id), out);
        if (in != usual) cornu__release(in);
    }
    for (int i = 0; !status && i < op->out_count; i++) r->map[op->out_first + i] = out[i];
    return status;
}

static CornuStatus rewrite_program(Rewrite *r)
{
    for (int i = 0; i < r->from->operand_count; i++) r->uses[r->from->operands[i]]++;
    for (int i = 0; i < r->from->input_count; i++) {
        CornuValue value = r->from->inputs[i];
        CORNU__TRY(cornu_program_copy_input(r->to, r->from, value, &r->map[value]));
    }
    for (int i = 0; i < r->from->op_count; i++)
        CORNU__TRY(rewrite_op(r, &r->from->ops[i]));
    r->to->remat = r->from->remat;
    return cornu_program_scope(r->to, NULL);
}

/* Updates every handle to its new value. */
static CornuStatus move_handles(CornuGraph *graph, const CornuProgram *to, const CornuValue *map)
{
    int grow = to->value_count - graph->tensor_space;
    if (grow > 0)
        CORNU__TRY(cornu__reserve(&graph->tensors, &graph->tensor_space, graph->tensor_space, grow,
                                  sizeof *graph->tensors));
    for (int i = 0; i < graph->tensor_space; i++) graph->tensors[i] = NULL;
    for (int i = 0; i < graph->handle_count; i++) {
        CornuTensor *handle = graph->handles[i];
        handle->value = map[handle->value];
        graph->tensors[handle->value] = handle;
    }
    return CORNU_OK;
}

CornuStatus cornu__rewrite(CornuGraph *graph, CornuDecomposes *decomposes)
{
    if (graph->rewritten == graph->program->op_count && !decomposes) return CORNU_OK;
    size_t  count = (size_t)graph->program->value_count;
    Rewrite r = { .graph = graph, .from = graph->program, .to = cornu_program_create(),
                  .map = cornu__allocate(count, sizeof *r.map),
                  .uses = cornu__allocate(count, sizeof *r.uses),
                  .improves = cornu__pass_runs(CORNU_PASS_REWRITE),
                  .decomposes = decomposes };
    CornuStatus status = r.to && r.map && r.uses ? rewrite_program(&r) : CORNU_ERR_MEMORY;
    if (!r.to) status = cornu_error_take();
    if (!status) status = move_handles(graph, r.to, r.map);
    if (!status) {
        CornuProgram *old = graph->program;
        graph->program = r.to;
        graph->rewritten = r.to->op_count;
        r.to = old;
    }
    cornu_program_free(r.to);
    cornu__release(r.map);
    cornu__release(r.uses);
    return status;
}
