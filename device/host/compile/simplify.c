/*
 * simplify: drops what need not be computed. Dead ops go; equal ops become one, unless they are
 * kept apart; conversions, reshapes, broadcasts and the like that change nothing become their
 * operand; ops on constants become constants; sums of widened bf16 read the bf16; x * 1, x / 1,
 * x - 0 and, of integers, x + 0 become x. A float's x + 0 stays: for x = -0 it is +0. Stacked
 * results of a scan that nothing reads are dropped. Transposes that keep the order of elements are
 * reshapes. On one shard collectives become their operand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../memory_internal.h"
#include "../../op_internal.h"
#include "../../program_internal.h"
#include "passes.h"
#include "../../ops/rewrite.h"

typedef struct {
    CornuRewrite rewrite;
    bool        *used;      /* by value of rewrite.from: an output depends on it */
    int         *table;     /* hash table of the ops of rewrite.to, -1: empty */
    int          size;      /* a power of two */
    bool         one_shard; /* then its number is 0, and collectives become their operand */
} Simplifier;

static const CornuProgramOp *maker(const CornuProgram *program, CornuValue value)
{
    int op = program->values[value].op;
    return op < 0 ? NULL : &program->ops[op];
}

/* Whether all elements of the value are one constant. */
static bool is_constant(const CornuProgram *program, CornuValue value, double *number)
{
    const CornuProgramOp *op = maker(program, value);
    while (op && (op->id == CORNU_OP_RESHAPE || op->id == CORNU_OP_BROADCAST))
        op = maker(program, cornu_program_operands(program, op)[0]);
    if (!op || op->id != CORNU_OP_CONSTANT) return false;
    *number = op->attributes.constant.value;
    return true;
}

static bool is_number(const CornuProgram *program, CornuValue value, double number)
{
    double constant;
    /* -0 == 0, but x - (-0) is not x for x = -0 */
    return is_constant(program, value, &constant) &&
           constant == number && signbit(constant) == signbit(number);
}

static uint64_t hash_of(CornuOpId id, const CornuAttributes *attributes,
                        const CornuValue *in, int in_count)
{
    uint64_t hash = cornu__attributes_hash(id, attributes, cornu__hash(0, (uint64_t)id));
    for (int i = 0; i < in_count; i++) hash = cornu__hash(hash, (uint64_t)in[i]);
    return hash;
}

/* Records the op, or finds the one like it. */
static CornuStatus record(Simplifier *s, CornuOpId id, const CornuAttributes *attributes,
                          const CornuValue *in, int in_count, CornuValue *out)
{
    CornuProgram *to = s->rewrite.to;
    uint64_t      slot = cornu__hash(hash_of(id, attributes, in, in_count), (uint64_t)to->apart);
    for (;; slot++) {
        int index = s->table[slot & (uint64_t)(s->size - 1)];
        if (index < 0) break;
        const CornuProgramOp *op = &to->ops[index];
        if (op->id == id && op->in_count == in_count && op->apart == to->apart &&
            cornu__attributes_equal(id, &op->attributes, attributes) &&
            (in_count == 0 || memcmp(cornu_program_operands(to, op), in,
                                     (size_t)in_count * sizeof *in) == 0)) {
            for (int i = 0; i < op->out_count; i++) out[i] = op->out_first + i;
            return CORNU_OK;
        }
    }
    CORNU__TRY(cornu_program_record(to, id, attributes, in, in_count, out));
    s->table[slot & (uint64_t)(s->size - 1)] = to->op_count - 1;
    return CORNU_OK;
}

/* Whether it is f32 converted from bf16. */
static bool is_widened(const CornuProgram *program, CornuValue value)
{
    const CornuProgramOp *op = maker(program, value);
    return op && op->id == CORNU_OP_CONVERT && op->attributes.convert.dtype == CORNU_F32 &&
           cornu_program_type(program, cornu_program_operands(program, op)[0]).dtype == CORNU_BF16;
}

/* A constant of this type. */
static CornuStatus record_constant(Simplifier *s, CornuType type, double number,
                                   CornuValue *out)
{
    CornuAttributes constant = { .constant = { .dtype = type.dtype, .value = number } };
    CornuValue      scalar;
    CORNU__TRY(record(s, CORNU_OP_CONSTANT, &constant, NULL, 0, &scalar));
    *out = scalar;
    if (type.shape.rank == 0) return CORNU_OK;
    CornuAttributes shape = { .shape = { .rank = type.shape.rank } };
    for (int i = 0; i < type.shape.rank; i++)
        shape.shape.extents[i] = type.shape.extent[i];
    return record(s, CORNU_OP_BROADCAST, &shape, &scalar, 1, out);
}

/* The operand that the op's only result is equal to, CORNU_NO_VALUE if there is none. */
static CornuValue same_as(const CornuProgram *to, const CornuProgramOp *op,
                          CornuType type, const CornuValue *in)
{
    bool integer = cornu__is_integer(type.dtype);
    switch (op->id) {
    case CORNU_OP_CONVERT:
    case CORNU_OP_RESHAPE:
    case CORNU_OP_BROADCAST:
    case CORNU_OP_SLICE:
    case CORNU_OP_PAD: case CORNU_OP_CONCAT:
        return op->in_count == 1 && cornu_type_equal(cornu_program_type(to, in[0]), type)
                   ? in[0] : CORNU_NO_VALUE;
    case CORNU_OP_MULTIPLY:
        if (is_number(to, in[1], 1.0)) return in[0];
        if (is_number(to, in[0], 1.0)) return in[1];
        return CORNU_NO_VALUE;
    case CORNU_OP_DIVIDE:   return is_number(to, in[1], 1.0) ? in[0] : CORNU_NO_VALUE;
    case CORNU_OP_SUBTRACT: return is_number(to, in[1], 0.0) ? in[0] : CORNU_NO_VALUE;
    case CORNU_OP_ADD:
        if (integer && is_number(to, in[1], 0.0)) return in[0];
        if (integer && is_number(to, in[0], 0.0)) return in[1];
        return CORNU_NO_VALUE;
    case CORNU_OP_SELECT:   return in[1] == in[2] ? in[1] : CORNU_NO_VALUE;
    default: return CORNU_NO_VALUE;
    }
}

/* Computes an elementwise op on constants: on scalars, by the reference kernel, rounded to its
 * dtype. */
static bool fold(const CornuProgram *to, const CornuProgramOp *op, CornuType type,
                 const CornuValue *in, double *number)
{
    if (!cornu__is_elementwise(op->id) || op->in_count > 3) return false;
    int64_t     memory[3], result;
    CornuType   types[3], out_type = cornu_scalar(type.dtype);
    const void *operands[3];
    double      scratch[16];
    for (int i = 0; i < op->in_count; i++) {
        double value;
        if (!is_constant(to, in[i], &value)) return false;
        types[i] = cornu_scalar(cornu_program_type(to, in[i]).dtype);
        cornu_array_set((CornuArray){ types[i], &memory[i] }, 0, value);
        operands[i] = &memory[i];
    }
    CornuOpCall call = { op->id, &op->attributes, op->in_count, types };
    if (cornu__reference_run(&call, &out_type, operands, (void *[]){ &result },
                             scratch) != CORNU_OK)
        return false;
    *number = cornu_array_get((CornuArray){ out_type, &result }, 0);
    return true;
}

/* Records a scan whose body has only the outputs that are carries or used. */
static CornuStatus simplify_scan(Simplifier *s, const CornuProgramOp *op)
{
    const CornuValue *in = cornu__rewrite_operands(&s->rewrite, op);
    CornuAttributes   attributes = op->attributes;
    CornuValue        made[CORNU_MAX_OUTPUTS];
    CornuProgram     *body = cornu_program_copy(attributes.scan.body);
    if (!body) return CORNU_ERR_MEMORY;
    int kept = 0;
    for (int i = 0; i < op->out_count; i++)
        if (i < attributes.scan.carries || s->used[op->out_first + i])
            body->outputs[kept++] = body->outputs[i];
    body->output_count = kept;
    attributes.scan.body = body;
    CornuStatus status = record(s, op->id, &attributes, in, op->in_count, made);
    cornu_program_free(body);
    for (int i = 0, next = 0; i < op->out_count && !status; i++)
        if (i < attributes.scan.carries || s->used[op->out_first + i])
            s->rewrite.map[op->out_first + i] = made[next++];
    return status;
}

/* A transpose that only moves axes of extent 1, as of images with one channel, is a reshape. */
static CornuProgramOp without_moving(const CornuProgram *program, const CornuProgramOp *op)
{
    CornuProgramOp reshape = *op;
    if (op->id != CORNU_OP_TRANSPOSE) return reshape;
    const CornuShape in = cornu_program_type(program, cornu_program_operands(program, op)[0]).shape;
    const CornuShape out = cornu_program_type(program, op->out_first).shape;
    int              before = -1;
    reshape.id = CORNU_OP_RESHAPE;
    reshape.attributes = (CornuAttributes){ .shape = { .rank = out.rank } };
    for (int i = 0; i < in.rank; i++) {
        const int axis = (int)op->attributes.permutation.axes[i];
        reshape.attributes.shape.extents[i] = out.extent[i];
        if (in.extent[axis] == 1) continue;
        if (axis < before) return *op;
        before = axis;
    }
    return reshape;
}

static CornuStatus simplify_op(Simplifier *s, const CornuProgramOp *op)
{
    if (op->id == CORNU_OP_SCAN) return simplify_scan(s, op);
    CornuRewrite     *rewrite = &s->rewrite;
    const CornuValue *in = cornu__rewrite_operands(rewrite, op);
    CornuValue       *out = &rewrite->map[op->out_first];
    CornuType         type = cornu_program_type(rewrite->from, op->out_first);
    CornuValue        same = same_as(rewrite->to, op, type, in);
    double            number;
    if (s->one_shard && cornu__is_collective(op->id)) same = in[0];
    if (same != CORNU_NO_VALUE) {
        *out = same;
        return CORNU_OK;
    }
    if (s->one_shard && op->id == CORNU_OP_REPLICA_ID) return record_constant(s, type, 0.0, out);
    if (fold(rewrite->to, op, type, in, &number))
        return record_constant(s, type, number, out);
    if ((op->id == CORNU_OP_REDUCE_SUM || op->id == CORNU_OP_GATHER_GRAD) &&
        is_widened(rewrite->to, in[0])) {
        CornuAttributes sum = op->attributes;
        if (op->id == CORNU_OP_REDUCE_SUM) sum.reduce.widen = 1;
        rewrite->in[0] = cornu_program_operands(rewrite->to, maker(rewrite->to, in[0]))[0];
        return record(s, op->id, &sum, rewrite->in, op->in_count, out);
    }
    CornuValue  source = in ? in[0] : CORNU_NO_VALUE;
    const CornuProgramOp *inner = op->in_count == 1 ? maker(rewrite->to, source) : NULL;
    /* A reshape of a reshape is one. */
    if (inner && inner->id == op->id && op->id == CORNU_OP_RESHAPE) {
        source = cornu_program_operands(rewrite->to, inner)[0];
        if (cornu_type_equal(cornu_program_type(rewrite->to, source), type)) {
            *out = source;
            return CORNU_OK;
        }
        return record(s, op->id, &op->attributes, &source, 1, out);
    }
    return record(s, op->id, &op->attributes, in, op->in_count, out);
}

/* Whether an output depends on the op. */
static bool is_live(const Simplifier *s, const CornuProgramOp *op)
{
    for (int k = 0; k < op->out_count; k++)
        if (s->used[op->out_first + k]) return true;
    return false;
}

static void mark_used(Simplifier *s)
{
    const CornuProgram *program = s->rewrite.from;
    for (int i = 0; i < program->output_count; i++) s->used[program->outputs[i].value] = true;
    for (int i = program->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &program->ops[i];
        for (int k = 0; k < op->in_count && is_live(s, op); k++)
            s->used[cornu_program_operands(program, op)[k]] = true;
    }
}

static CornuProgram *simplify_once(const CornuProgram *program, bool one_shard)
{
    Simplifier  s = { .size = 64, .one_shard = one_shard };
    CornuStatus status = cornu__rewrite_begin(&s.rewrite, program, one_shard);
    s.used = cornu__allocate((size_t)program->value_count, sizeof *s.used);
    /* An op becomes two at most, a constant and its broadcast, so half of the table stays empty. */
    while (s.size < 4 * program->op_count) s.size *= 2;
    s.table = cornu__allocate((size_t)s.size, sizeof *s.table);
    if (!s.used || !s.table) status = CORNU_ERR_MEMORY;
    if (status == CORNU_OK) {
        for (int i = 0; i < s.size; i++) s.table[i] = -1;
        mark_used(&s);
    }
    for (int i = 0; i < program->op_count && status == CORNU_OK; i++) {
        if (!is_live(&s, &program->ops[i])) continue;
        status = cornu__program_follow(s.rewrite.to, &program->ops[i]);
        const CornuProgramOp op = without_moving(program, &program->ops[i]);
        if (status == CORNU_OK) status = simplify_op(&s, &op);
    }
    cornu__release(s.used);
    cornu__release(s.table);
    return cornu__rewrite_end(&s.rewrite, status);
}

CornuProgram *cornu__simplify(const CornuHost *host, const CornuProgram *program)
{
    const bool one_shard = host->shards <= 1;
    if (!cornu__pass_runs(CORNU_PASS_SIMPLIFY)) return cornu__rewrite_copy(program, one_shard);
    CornuProgram *result = simplify_once(program, one_shard);
    /* A round may leave dead ops to the next. */
    for (int before = program->op_count; result && result->op_count < before;) {
        before = result->op_count;
        CornuProgram *next = simplify_once(result, one_shard);
        cornu_program_free(result);
        result = next;
    }
    return result;
}
