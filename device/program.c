#include "program_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lookup_internal.h"
#include "memory_internal.h"
#include "op_internal.h"
#include "ops/rules.h"

struct CornuScopes {
    CornuLookup texts;
};

CornuProgram *cornu__program_create(const CornuOpRules *const *rules)
{
    CornuProgram *program = cornu__allocate(1, sizeof *program);
    if (!program) return cornu__null();
    program->scope = "";
    program->origin = -1;
    program->rules = rules;
    return program;
}

void cornu__attributes_free(CornuOpId id, CornuAttributes *attributes)
{
    const CornuProgram **place = cornu__attributes_place(id, attributes);
    CornuInts           *list = cornu__attributes_list(id, attributes);
    if (place) cornu_program_free((CornuProgram *)(uintptr_t)*place);
    if (list) cornu__release((int *)(uintptr_t)list->at);
}

static CornuStatus own_list(CornuInts *list)
{
    const CornuInts from = *list;
    *list = (CornuInts){ 0, NULL };
    if (from.count == 0) return CORNU_OK;
    int *own = cornu__allocate((size_t)from.count, sizeof *own);
    if (!own) return CORNU_ERR_MEMORY;
    memcpy(own, from.at, (size_t)from.count * sizeof *own);
    *list = (CornuInts){ from.count, own };
    return CORNU_OK;
}

CornuStatus cornu__attributes_own(CornuOpId id, CornuAttributes *attributes)
{
    const CornuProgram **place = cornu__attributes_place(id, attributes);
    CornuInts           *list = cornu__attributes_list(id, attributes);
    if (list) CORNU__TRY(own_list(list));
    if (!place || !*place || (*place = cornu_program_copy(*place))) return CORNU_OK;
    cornu_error_take();
    return CORNU_ERR_MEMORY;
}

void cornu_program_free(CornuProgram *program)
{
    if (!program) return;
    if (program->scopes) cornu__lookup_clear(&program->scopes->texts);
    cornu__release(program->scopes);
    for (int i = 0; i < program->op_count; i++)
        cornu__attributes_free(program->ops[i].id, &program->ops[i].attributes);
    cornu__release(program->outputs);
    cornu__release(program->inputs);
    cornu__release(program->operands);
    cornu__release(program->ops);
    cornu__release(program->values);
    cornu__release(program);
}

/* The program's own copy of a string, one for equal strings; NULL if out of memory. */
static const char *own_scope(CornuProgram *program, const char *text)
{
    if (!text || !*text) return "";
    if (!strcmp(text, program->scope)) return program->scope;   /* as for most ops */
    if (!program->scopes) {
        program->scopes = cornu__allocate(1, sizeof *program->scopes);
        if (!program->scopes) return NULL;
        program->scopes->texts.of_strings = true;
    }
    CornuLookup *texts = &program->scopes->texts;
    const char  *own = cornu__lookup_text(texts, text);
    if (own || cornu__lookup_set(texts, text, 0)) return own;
    return cornu__lookup_text(texts, text);
}

CornuStatus cornu_program_scope(CornuProgram *program, const char *scope)
{
    const char *text = own_scope(program, scope);
    if (!text) return CORNU_ERR_MEMORY;
    program->scope = text;
    return CORNU_OK;
}

CornuStatus cornu__program_follow(CornuProgram *program, const CornuProgramOp *op)
{
    program->origin = op->origin;
    program->apart = op->apart;
    program->remat = op->remat;
    return cornu_program_scope(program, op->scope);
}

int cornu__program_most_apart(const CornuProgram *program)
{
    int most = 0;
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].apart > most) most = program->ops[i].apart;
    return most;
}

static bool known(const CornuProgram *program, CornuValue value)
{
    return value >= 0 && value < program->value_count;
}

/* Makes room for `extra` more items; the program still reads the same. */
#define RESERVE(program, items, extra)                                                         \
    cornu__reserve(&(program)->items##s, &(program)->items##_space, (program)->items##_count, \
                   extra, sizeof *(program)->items##s)

static CornuStatus add_input(CornuProgram *program, CornuType type, unsigned varies,
                             CornuValue *out)
{
    *out = CORNU_NO_VALUE;
    CORNU__TRY(cornu_type_check(type));
    CORNU__TRY(RESERVE(program, value, 1));
    CORNU__TRY(RESERVE(program, input, 1));
    CornuValue value = program->value_count++;
    program->values[value] =
        (CornuProgramValue){ .type = type, .op = -1, .index = program->input_count,
                             .varies = (unsigned char)varies };
    program->inputs[program->input_count++] = value;
    *out = value;
    return CORNU_OK;
}

CornuStatus cornu_program_input(CornuProgram *program, CornuType type, CornuValue *out)
{
    return add_input(program, type, 0, out);
}

CornuStatus cornu_program_shard_input(CornuProgram *program, CornuType type, CornuValue *out)
{
    return cornu_program_mesh_input(program, type, CORNU_ALL_SHARDS, out);
}

CornuStatus cornu_program_mesh_input(CornuProgram *program, CornuType type, unsigned axes,
                                     CornuValue *out)
{
    if (type.shape.rank >= CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "an input with a value for each shard has rank %d, "
                           "expected at most %d", type.shape.rank, CORNU_MAX_RANK - 1);
    return add_input(program, type, axes, out);
}

CornuStatus cornu_program_copy_input(CornuProgram *to, const CornuProgram *from, CornuValue value,
                                     CornuValue *out)
{
    CORNU__TRY(add_input(to, from->values[value].type, from->values[value].varies, out));
    to->values[*out].fixed = from->values[value].fixed;
    return CORNU_OK;
}

void cornu_program_fix_input(CornuProgram *program, CornuValue value)
{
    program->values[value].fixed = program->values[value].op == -1;
}

/* "dense_2: matmul: " in front of the message, which names the operands. */
static CornuStatus located(const CornuProgram *program, CornuOpId id,
                           const CornuAttributes *attributes, CornuStatus status)
{
    cornu__fail_prefix(status, cornu__called(id, attributes));
    return *program->scope ? cornu__fail_prefix(status, program->scope) : status;
}

CornuStatus cornu__check_call(const CornuOpRules *const *rules, const CornuOpCall *call,
                              CornuType *out)
{
    if ((unsigned)call->id >= CORNU_OP_COUNT)
        return cornu__fail(CORNU_ERR_ARGUMENT, "op %d does not exist, expected 0 to %d",
                           (int)call->id, CORNU_OP_COUNT - 1);
    int expected = cornu_op_input_count(call->id);
    if (expected < 0 ? call->in_count < 1 : call->in_count != expected)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%d operands, expected %s%d", call->in_count,
                           expected < 0 ? "at least " : "", expected < 0 ? 1 : expected);
    CORNU__TRY(cornu__attributes_check(call->id, call->attributes));
    CORNU__TRY(rules[call->id]->type(call, out));
    const int count = cornu__result_count(call->id, call->attributes);
    for (int i = 0; i < count; i++) CORNU__TRY(cornu_type_check(out[i]));
    return CORNU_OK;
}

/* Operands are few, except those of a long concat, whose types are on the heap. */
enum { FEW_OPERANDS = 16 };

static CornuStatus output_types(const CornuProgram *program, CornuOpId id,
                                const CornuAttributes *attributes, const CornuValue *in,
                                int in_count, CornuType *out)
{
    CornuType  few[FEW_OPERANDS];
    CornuType *types = few;
    if (in_count > FEW_OPERANDS) types = cornu__allocate((size_t)in_count, sizeof *types);
    if (!types) return CORNU_ERR_MEMORY;

    CornuStatus status = CORNU_OK;
    for (int i = 0; i < in_count && status == CORNU_OK; i++) {
        if (known(program, in[i])) types[i] = program->values[in[i]].type;
        else status = cornu__fail(CORNU_ERR_ARGUMENT, "operand %d is value %d, expected 0 to %d",
                                  i, (int)in[i], program->value_count - 1);
    }
    if (status == CORNU_OK)
        status = cornu__check_call(program->rules,
                                   &(CornuOpCall){ id, attributes, in_count, types }, out);
    if (types != few) cornu__release(types);
    return status;
}

bool cornu__between_shards(const CornuProgram *program)
{
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        if (cornu__is_collective(op->id) || op->id == CORNU_OP_REPLICA_ID ||
            (op->id == CORNU_OP_SCAN && cornu__between_shards(op->attributes.scan.body)))
            return true;
    }
    return false;
}

/* The axes along which result i varies, by those of the operands; of a loop whose shards meet, by
 * its body. Of groups that follow no mesh nothing is known. */
static unsigned result_varies(CornuOpId id, const CornuAttributes *attributes, unsigned operands,
                              int i)
{
    const CornuReads    reads = cornu__op_reads(id);
    const CornuProgram *body = id == CORNU_OP_SCAN ? attributes->scan.body : NULL;
    if (body && cornu__between_shards(body))
        return body->values[body->outputs[i].value].varies |
               (i < attributes->scan.carries ? body->values[body->inputs[i]].varies : 0u);
    if (reads != CORNU_READS_OWN && reads != CORNU_READS_SCATTER && reads != CORNU_READS_SHARDS)
        return operands;
    const unsigned axes = (unsigned)attributes->shards.axes;
    const bool     of_mesh = axes || attributes->shards.groups.count == 0;
    if (reads == CORNU_READS_SHARDS) return !of_mesh ? operands : axes ? operands & ~axes : 0;
    return operands | (axes ? axes : CORNU_ALL_SHARDS);
}

static CornuStatus record_op(CornuProgram *program, CornuOpId id, const CornuAttributes *attributes,
                             const CornuValue *in, int in_count, CornuValue *out)
{
    CornuType   types[CORNU_MAX_OUTPUTS];
    CornuStatus status = output_types(program, id, attributes, in, in_count, types);
    if (status != CORNU_OK) return located(program, id, attributes, status);
    const int       out_count = cornu__result_count(id, attributes);
    CornuAttributes own = *attributes;
    CORNU__TRY(RESERVE(program, op, 1));
    CORNU__TRY(RESERVE(program, operand, in_count));
    CORNU__TRY(RESERVE(program, value, out_count));
    CORNU__TRY(cornu__attributes_own(id, &own));

    program->ops[program->op_count] = (CornuProgramOp){
        .id = id, .attributes = own,
        .in_first = program->operand_count, .in_count = in_count,
        .out_first = program->value_count, .out_count = out_count,
        .scope = program->scope, .origin = program->origin, .apart = program->apart,
        .remat = program->remat,
    };
    unsigned varies = 0;
    for (int i = 0; i < in_count; i++) {
        varies |= program->values[in[i]].varies;
        program->operands[program->operand_count++] = in[i];
    }
    for (int i = 0; i < out_count; i++) {
        out[i] = program->value_count++;
        program->values[out[i]] = (CornuProgramValue){
            .type = types[i], .op = program->op_count, .index = i,
            .varies = (unsigned char)result_varies(id, attributes, varies, i) };
    }
    program->op_count++;
    return CORNU_OK;
}

CornuStatus cornu_program_record(CornuProgram *program, CornuOpId id,
                                 const CornuAttributes *attributes, const CornuValue *in,
                                 int in_count, CornuValue *out)
{
    static const CornuAttributes zeros;
    CornuStatus status = record_op(program, id, attributes ? attributes : &zeros, in, in_count,
                                   out);
    const int count = cornu_op_output_count(id);   /* 0 for an unknown op */
    for (int i = 0; i < (count < 0 ? 1 : count) && status != CORNU_OK; i++)
        out[i] = CORNU_NO_VALUE;
    return status;
}

CornuStatus cornu_program_output(CornuProgram *program, CornuValue value, int alias)
{
    if (!known(program, value))
        return cornu__fail(CORNU_ERR_ARGUMENT, "output %d is value %d, expected 0 to %d",
                           program->output_count, (int)value, program->value_count - 1);
    if (alias < -1 || alias >= program->input_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "output %d is written into input %d, expected -1 to "
                           "%d", program->output_count, alias, program->input_count - 1);
    if (alias >= 0) {
        CornuType from = cornu_program_type(program, value);
        CornuType to = cornu_program_type(program, program->inputs[alias]);
        CornuText from_text, to_text;
        if (!cornu_type_equal(from, to))
            return cornu__fail(from.dtype == to.dtype ? CORNU_ERR_SHAPE : CORNU_ERR_DTYPE,
                               "output %d is %s, input %d, which it is written into, is %s",
                               program->output_count, cornu_type_print(&from_text, from), alias,
                               cornu_type_print(&to_text, to));
    }
    if (alias >= 0 &&
        !program->values[value].varies != !program->values[program->inputs[alias]].varies)
        return cornu__fail(CORNU_ERR_ARGUMENT, "output %d %s from shard to shard, input %d, which "
                           "it is written into, %s", program->output_count,
                           program->values[value].varies ? "varies" : "does not vary", alias,
                           program->values[value].varies ? "does not" : "does");
    const bool replaced = alias >= 0 && program->values[program->inputs[alias]].replaced;
    for (int i = 0; i < program->output_count && replaced; i++)
        if (program->outputs[i].alias == alias)
            return cornu__fail(CORNU_ERR_ARGUMENT, "outputs %d and %d are both written into input "
                               "%d", i, program->output_count, alias);
    CORNU__TRY(RESERVE(program, output, 1));
    program->outputs[program->output_count++] = (CornuProgramOutput){ value, alias };
    if (alias >= 0) program->values[program->inputs[alias]].replaced = true;
    return CORNU_OK;
}

CornuType cornu_program_type(const CornuProgram *program, CornuValue value)
{
    return program->values[value].type;
}

CornuType cornu__sharded(CornuType type, int shards)
{
    CornuShape shape = { .rank = type.shape.rank + 1, .extent = { shards } };
    for (int i = 0; i < type.shape.rank && i + 1 < CORNU_MAX_RANK; i++)
        shape.extent[i + 1] = type.shape.extent[i];
    return cornu_type_from(type.dtype, shape);
}

CornuType cornu_program_buffer_type(const CornuProgram *program, CornuValue value, int shards)
{
    const CornuType type = program->values[value].type;
    return program->values[value].varies ? cornu__sharded(type, shards) : type;
}

const CornuValue *cornu_program_operands(const CornuProgram *program, const CornuProgramOp *op)
{
    /* Never NULL, so that zero operands can be copied from it. */
    static const CornuValue none = CORNU_NO_VALUE;
    return op->in_count ? program->operands + op->in_first : &none;
}

CornuOpCall cornu_program_call(const CornuProgram *program, const CornuProgramOp *op,
                               CornuType *in)
{
    const CornuValue *operands = cornu_program_operands(program, op);
    for (int i = 0; i < op->in_count; i++) in[i] = program->values[operands[i]].type;
    return (CornuOpCall){ op->id, &op->attributes, op->in_count, in };
}

static uint64_t hash_type(uint64_t hash, CornuType type)
{
    hash = cornu__hash(hash, (uint64_t)type.dtype);
    hash = cornu__hash(hash, (uint64_t)type.shape.rank);
    for (int i = 0; i < type.shape.rank; i++)
        hash = cornu__hash(hash, (uint64_t)type.shape.extent[i]);
    return hash;
}

uint64_t cornu__attributes_hash(CornuOpId id, const CornuAttributes *attributes, uint64_t hash)
{
    const CornuProgram *program = cornu__attributes_program(id, attributes);
    if (program) hash = cornu__hash(hash, cornu_program_hash(program));
    return cornu__fields_hash(id, attributes, hash);
}

/* The types of other values follow from the ops. */
uint64_t cornu_program_hash(const CornuProgram *program)
{
    uint64_t hash = cornu__hash(0, (uint64_t)program->input_count);
    for (int i = 0; i < program->input_count; i++) {
        hash = cornu__hash(hash, (uint64_t)program->inputs[i]);
        hash = cornu__hash(hash, program->values[program->inputs[i]].varies);
        hash = cornu__hash(hash, program->values[program->inputs[i]].fixed);
        hash = hash_type(hash, cornu_program_type(program, program->inputs[i]));
    }
    hash = cornu__hash(hash, (uint64_t)program->op_count);
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *operands = cornu_program_operands(program, op);
        hash = cornu__hash(hash, (uint64_t)op->id);
        hash = cornu__hash(hash, (uint64_t)op->apart);
        hash = cornu__attributes_hash(op->id, &op->attributes, hash);
        hash = cornu__hash(hash, (uint64_t)op->in_count);
        for (int j = 0; j < op->in_count; j++) hash = cornu__hash(hash, (uint64_t)operands[j]);
    }
    hash = cornu__hash(hash, (uint64_t)program->output_count);
    for (int i = 0; i < program->output_count; i++) {
        hash = cornu__hash(hash, (uint64_t)program->outputs[i].value);
        hash = cornu__hash(hash, (uint64_t)program->outputs[i].alias);
    }
    return hash;
}

bool cornu__attributes_equal(CornuOpId id, const CornuAttributes *a, const CornuAttributes *b)
{
    const CornuProgram *in_a = cornu__attributes_program(id, a);
    const CornuProgram *in_b = cornu__attributes_program(id, b);
    return cornu__fields_equal(id, a, b) &&
           (in_a && in_b ? cornu_program_equal(in_a, in_b) : in_a == in_b);
}

static bool equal_ops(const CornuProgram *a, const CornuProgram *b, int i)
{
    const CornuProgramOp *in_a = &a->ops[i], *in_b = &b->ops[i];
    if (in_a->id != in_b->id || in_a->in_count != in_b->in_count ||
        in_a->out_first != in_b->out_first || in_a->apart != in_b->apart ||
        !cornu__attributes_equal(in_a->id, &in_a->attributes, &in_b->attributes))
        return false;
    const CornuValue *operands_a = cornu_program_operands(a, in_a);
    const CornuValue *operands_b = cornu_program_operands(b, in_b);
    for (int j = 0; j < in_a->in_count; j++)
        if (operands_a[j] != operands_b[j]) return false;
    return true;
}

bool cornu_program_equal(const CornuProgram *a, const CornuProgram *b)
{
    if (a->value_count != b->value_count || a->op_count != b->op_count ||
        a->input_count != b->input_count || a->output_count != b->output_count)
        return false;
    for (int i = 0; i < a->input_count; i++)
        if (a->inputs[i] != b->inputs[i] ||
            a->values[a->inputs[i]].varies != b->values[b->inputs[i]].varies ||
            a->values[a->inputs[i]].fixed != b->values[b->inputs[i]].fixed ||
            !cornu_type_equal(a->values[a->inputs[i]].type, b->values[b->inputs[i]].type))
            return false;
    for (int i = 0; i < a->op_count; i++)
        if (!equal_ops(a, b, i)) return false;
    for (int i = 0; i < a->output_count; i++)
        if (a->outputs[i].value != b->outputs[i].value ||
            a->outputs[i].alias != b->outputs[i].alias)
            return false;
    return true;
}

static CornuStatus copy_items(void *to, int *space, const void *from, int count, size_t size)
{
    CORNU__TRY(cornu__reserve(to, space, 0, count, size));
    void *items;
    memcpy(&items, to, sizeof items);
    if (count) memcpy(items, from, (size_t)count * size);
    return CORNU_OK;
}

#define COPY(to, from, items)                                                             \
    ((to)->items##_count = (from)->items##_count,                                         \
     copy_items(&(to)->items##s, &(to)->items##_space, (from)->items##s,                  \
                (from)->items##_count, sizeof *(from)->items##s))

static CornuStatus copy_into(CornuProgram *to, const CornuProgram *from)
{
    CORNU__TRY(COPY(to, from, value));
    const CornuStatus status = COPY(to, from, op);
    to->op_count = 0;   /* counts the ops that own what they point to */
    CORNU__TRY(status);
    CORNU__TRY(COPY(to, from, operand));
    CORNU__TRY(COPY(to, from, input));
    CORNU__TRY(COPY(to, from, output));
    for (int i = 0; i < from->op_count; i++) {
        to->ops[i].scope = own_scope(to, from->ops[i].scope);
        if (!to->ops[i].scope) return CORNU_ERR_MEMORY;
        to->op_count++;
        CORNU__TRY(cornu__attributes_own(to->ops[i].id, &to->ops[i].attributes));
    }
    return cornu_program_scope(to, from->scope);
}

CornuProgram *cornu_program_copy(const CornuProgram *program)
{
    CornuProgram *copy = cornu__program_create(program->rules);
    if (!copy) return NULL;
    if (copy_into(copy, program) == CORNU_OK) return copy;
    cornu_program_free(copy);
    return cornu__null();
}
