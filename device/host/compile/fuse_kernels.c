/* Kernels joined with their neighbours: pools, sums over shards, epilogues. */
#include "fuse_internal.h"

static void absorb(CornuFuser *f, int op, int last)
{
    cornu__units_append(&f->units, op, last);
    f->nodes[last].kind = CORNU_NODE_KERNEL;
}

/* With `value` as that operand of the epilogue. */
static void absorb_part(CornuFuser *f, int op, int last, CornuEpilogueOperand part,
                        CornuValue value)
{
    absorb(f, op, last);
    f->nodes[last].part = part;
    f->nodes[last].part_value = value;
}

/* The pool's gradient that makes d_y of op `op`, a convolution's gradient; -1: there is none. */
static int unpooling(const CornuFuser *f, int op)
{
    const CornuOpId id = cornu__kernel_id(f, op);
    if (id != CORNU_OP_CONV2D_GRAD_INPUT && id != CORNU_OP_CONV2D_GRAD_FILTER) return -1;
    const CornuValue d_y = cornu__op_operands(f, op)[id == CORNU_OP_CONV2D_GRAD_FILTER];
    const int        before = f->program->values[d_y].op;
    return before >= 0 && f->program->ops[before].id == CORNU_OP_MAX_POOL2D_GRAD ? before : -1;
}

static const CornuKernel *joined(const CornuFuser *f, int op, int pool)
{
    const CornuProgramOp *ops = f->program->ops;
    return cornu__kernel_for(f->plan->host, f->program, &ops[op], &ops[pool]);
}

/* How often the result of op `before` is read by gradients that could be joined with it. */
static int joining_reads(const CornuFuser *f, int before)
{
    int reads = 0;
    for (int i = before + 1; i <= f->nodes[before].user; i++)
        reads += unpooling(f, i) == before && joined(f, i, before);
    return reads;
}

/* The pool's gradient that op `op` may be joined with, -1: none. */
static int pool_before(const CornuFuser *f, int op)
{
    const int before = unpooling(f, op);
    if (before < 0) return -1;
    const CornuNode *node = &f->nodes[before];
    const bool  alone = node->kind == CORNU_NODE_KERNEL && node->uses == joining_reads(f, before);
    return alone || node->kind == CORNU_NODE_JOINED ? before : -1;
}

static int pool_after(const CornuFuser *f, int op)
{
    const CornuNode *node = &f->nodes[op];
    return node->uses == 1 && cornu__kernel_id(f, node->user) == CORNU_OP_MAX_POOL2D ? node->user
                                                                                     : -1;
}

/* Joins a convolution with the pool after it, or its gradient with the pool's gradient before it,
 * which each of the gradients makes again, where nothing else reads the value between. */
static void join_pool(CornuFuser *f, int op)
{
    const bool         after = cornu__kernel_id(f, op) == CORNU_OP_CONV2D;
    const int          pool = after ? pool_after(f, op) : pool_before(f, op);
    const CornuKernel *kernel = pool < 0 ? NULL : joined(f, op, pool);
    if (!kernel) return;
    if (after) absorb(f, op, pool);
    else f->nodes[pool].kind = CORNU_NODE_JOINED;
    f->nodes[op].pool = pool;
    f->nodes[op].kernel = kernel;
}

/* Joins a product with its sum over all shards. */
static void join_sum(CornuFuser *f, int op)
{
    const int          user = f->nodes[op].user;
    const CornuValue   value = f->program->ops[op].out_first;
    const CornuKernel *kernel = NULL;
    if (f->nodes[op].uses == 1 && cornu__kernel_id(f, user) == CORNU_OP_ALL_REDUCE &&
        f->program->ops[user].attributes.shards.groups.count == 0)
        kernel = cornu__summed_kernel_for(f->plan->host, f->program, value);
    if (!kernel) return;
    absorb(f, op, user);
    f->nodes[op].kernel = kernel;
    f->nodes[op].summed = true;
}

/* Whether `value` is a vector along the last axis of `type`, broadcast; `bias` is then the vector.
 * Of one row, too, where a sum of two rows is not a bias: more rows would add it in another
 * order. */
static bool is_bias(const CornuFuser *f, CornuValue value, CornuType type, CornuValue *bias)
{
    CornuAccess access;
    int64_t     last = type.shape.rank ? type.shape.extent[type.shape.rank - 1] : 1;
    *bias = cornu__group_source(f->program, value, &access);
    if (access.rank == 1 && access.stride[0] == 1 && access.extent[0] == last &&
        cornu_type_count(type) == last)
        return cornu_program_type(f->program, *bias).shape.rank == 1 &&
               cornu__value_count(f, *bias) == last;
    return access.rank == 2 && access.stride[0] == 0 && access.stride[1] == 1 &&
           access.extent[1] == last && cornu__value_count(f, *bias) == last;
}

/* The op that alone reads result 0 of op `op`, through reshapes that keep the last axis, and as
 * which value it does; -1: there is none. */
static int next_after(const CornuFuser *f, int op, CornuValue *read)
{
    const CornuShape shape = cornu_program_type(f->program, f->program->ops[op].out_first).shape;
    for (;;) {
        *read = f->program->ops[op].out_first;
        if (f->nodes[op].uses != 1 || f->nodes[op].user < 0) return -1;
        op = f->nodes[op].user;
        if (f->program->ops[op].id != CORNU_OP_RESHAPE) return op;
        const CornuShape next =
            cornu_program_type(f->program, f->program->ops[op].out_first).shape;
        if (shape.rank < 1 || next.rank < 1 ||
            shape.extent[shape.rank - 1] != next.extent[next.rank - 1])
            return -1;
    }
}

/* Whether `value` has the elements of a result of `type`, in its order, and is or can be in memory:
 * `term` is then what is read. */
static bool is_term(const CornuFuser *f, CornuValue value, CornuType type, CornuValue *term)
{
    CornuAccess access;
    *term = cornu__group_source(f->program, value, &access);
    const CornuProgramValue *source = &f->program->values[*term];
    return access.rank == 1 && access.stride[0] == 1 && cornu_type_count(type) > 1 &&
           access.extent[0] == cornu_type_count(type) && source->type.dtype == type.dtype &&
           cornu__value_count(f, *term) == cornu_type_count(type) &&
           !(source->op >= 0 && f->program->ops[source->op].id == CORNU_OP_CONSTANT);
}

/* What op `next` would be in an epilogue whose parts before `stage` are there: the operand that it
 * adds or multiplies by; OPERANDS: none. */
static CornuEpilogueOperand part_of(const CornuFuser *f, const CornuNode *node, int next,
                                    CornuValue result, CornuEpilogueOperand stage,
                                    CornuValue *value)
{
    const CornuOpId  id = f->program->ops[next].id;
    const CornuType  type = cornu_program_type(f->program, result);
    const bool       scales = node->kernel->takes_scale && node->pool < 0 &&
                              type.dtype == CORNU_F32;
    if (id != CORNU_OP_ADD && id != CORNU_OP_MULTIPLY) return CORNU_EPILOGUE_OPERANDS;
    const CornuValue *in = cornu__op_operands(f, next), other = in[in[0] == result];
    const bool        vector = is_bias(f, other, type, value);
    if (id == CORNU_OP_MULTIPLY)
        return vector && scales && stage <= CORNU_EPILOGUE_SCALE ? CORNU_EPILOGUE_SCALE
                                                                 : CORNU_EPILOGUE_OPERANDS;
    if (vector && stage == CORNU_EPILOGUE_BIAS) return CORNU_EPILOGUE_BIAS;
    if (vector && scales && stage <= CORNU_EPILOGUE_SHIFT) return CORNU_EPILOGUE_SHIFT;
    return scales && stage <= CORNU_EPILOGUE_TERM && is_term(f, other, type, value)
         ? CORNU_EPILOGUE_TERM : CORNU_EPILOGUE_OPERANDS;
}

/* Of bf16 an epilogue has only activations of one instruction. */
static bool is_activation(CornuOpId id, const CornuKernel *kernel, bool narrow)
{
    switch (id) {
    case CORNU_OP_RELU: return true;
    case CORNU_OP_BOUNDED_RELU: return kernel->takes_relu || !narrow;
    case CORNU_OP_ELU: case CORNU_OP_TANH: case CORNU_OP_SIGMOID:
        return kernel->takes_epilogue && !narrow;
    default: return false;
    }
}

/* Whether op `op` is at least 0 of `value`. */
static bool compares_with_zero(const CornuFuser *f, int op, CornuValue value)
{
    const CornuProgram   *program = f->program;
    const CornuProgramOp *compare = &program->ops[op];
    CornuAccess           access;
    if (compare->id != CORNU_OP_COMPARE || cornu__op_operands(f, op)[0] != value ||
        compare->attributes.compare.comparison != CORNU_GREATER_EQUAL)
        return false;
    const int zero = program->values[cornu__op_source(f, op, 1, &access)].op;
    return zero >= 0 && program->ops[zero].id == CORNU_OP_CONSTANT &&
           program->ops[zero].attributes.constant.value == 0.0;
}

/* Joins select(y >= 0, y, y slope), a PReLU, to the kernel of op `op`, where these alone read y,
 * the result of op `at`, and the slope is a vector. Returns whether it did. */
static bool absorb_slope(CornuFuser *f, int op, int at)
{
    const CornuProgram *program = f->program;
    const CornuNode    *nodes = f->nodes;
    const CornuValue    y = program->ops[at].out_first;
    const CornuType     type = cornu_program_type(program, y);
    const int           select = nodes[at].user;
    CornuValue          slope;
    if (nodes[at].uses != 3 || !nodes[op].kernel->takes_scale || nodes[op].pool >= 0 ||
        type.dtype != CORNU_F32 || program->ops[select].id != CORNU_OP_SELECT)
        return false;
    const CornuValue *in = cornu__op_operands(f, select);
    const int         compare = program->values[in[0]].op, multiply = program->values[in[2]].op;
    const int         first = smaller(compare, multiply), second = larger(compare, multiply);
    if (in[1] != y || first <= at || !compares_with_zero(f, compare, y) ||
        program->ops[multiply].id != CORNU_OP_MULTIPLY)
        return false;
    const CornuValue *factors = cornu__op_operands(f, multiply);
    if ((factors[0] != y && factors[1] != y) || !is_bias(f, factors[factors[0] == y], type, &slope))
        return false;
    for (int i = first; i <= select; i++)
        if ((i == compare || i == multiply || i == select) &&
            (nodes[i].kind != CORNU_NODE_GROUP || (i != select && nodes[i].uses != 1)))
            return false;
    absorb_part(f, op, first, CORNU_EPILOGUE_SLOPE, slope);
    absorb_part(f, op, second, CORNU_EPILOGUE_SLOPE, slope);
    absorb_part(f, op, select, CORNU_EPILOGUE_SLOPE, slope);
    return true;
}

/* Joins what an epilogue can do to the kernel of op `op`, where nothing else reads the values
 * between. */
static void absorb_epilogue(CornuFuser *f, int op)
{
    const CornuProgram *program = f->program;
    const CornuKernel  *kernel = f->nodes[op].kernel;
    int at = f->units.next[op] >= 0 ? f->units.next[op] : op; /* a pool after it */
    const CornuType type = cornu_program_type(program, program->ops[at].out_first);
    const bool narrow = type.dtype == CORNU_BF16;
    const bool all = kernel->takes_epilogue;
    if (!all && !kernel->takes_relu) return;
    if (type.dtype != CORNU_F32 && !narrow) return;
    CornuEpilogueOperand stage = all ? CORNU_EPILOGUE_BIAS : CORNU_EPILOGUE_OPERANDS;
    CornuValue           value, read;
    for (int next; !absorb_slope(f, op, at) && (next = next_after(f, at, &read)) >= 0; at = next) {
        const CornuOpId id = program->ops[next].id;
        if (f->nodes[next].kind != CORNU_NODE_GROUP) return;
        if (is_activation(id, kernel, narrow)) {
            absorb(f, op, next);
            return;
        }
        const CornuEpilogueOperand part = part_of(f, &f->nodes[op], next, read, stage, &value);
        if (part == CORNU_EPILOGUE_OPERANDS) return;
        absorb_part(f, op, next, part, value);
        stage = part + 1;
    }
}

/* Joins the multiplication by the slope of a relu to the kernel of op `op`, where nothing else
 * reads the value between; the relu's result, from which the slope is computed, is in memory
 * anyway. */
static void absorb_gate(CornuFuser *f, int op)
{
    const CornuProgram *program = f->program;
    CornuValue          value;
    const int           next = next_after(f, op, &value);
    if (!f->nodes[op].kernel->takes_gate || next < 0 || f->units.next[op] >= 0 ||
        program->ops[next].id != CORNU_OP_MULTIPLY || f->nodes[next].kind != CORNU_NODE_GROUP)
        return;
    const CornuValue *in = cornu__op_operands(f, next);
    const int         slope = program->values[in[in[0] == value]].op;
    const CornuOpId   id = slope > op ? program->ops[slope].id : CORNU_OP_COUNT;
    if ((id != CORNU_OP_STEP && id != CORNU_OP_BOUNDED_STEP) || f->nodes[slope].uses != 1) return;
    absorb_part(f, op, slope, CORNU_EPILOGUE_GATE, cornu__op_operands(f, slope)[0]);
    absorb(f, op, next);
}

void cornu__fuse_kernel(CornuFuser *f, int op)
{
    if (cornu__pass_runs(CORNU_PASS_POOL)) join_pool(f, op);
    join_sum(f, op);
    if (cornu__pass_runs(CORNU_PASS_EPILOGUE)) absorb_epilogue(f, op);
    if (cornu__pass_runs(CORNU_PASS_GATE)) absorb_gate(f, op);
}
