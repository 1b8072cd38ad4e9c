#include "group.h"

#include <string.h>

#include "../../../integer_internal.h"
#include "../../../memory_internal.h"
#include "../../../op_internal.h"

enum { SHORT_ROW = 16 };   /* elements; shorter rows are left to kernels */

static const CornuProgramOp *maker(const CornuProgram *program, CornuValue value)
{
    int op = program->values[value].op;
    return op < 0 ? NULL : &program->ops[op];
}

CornuValue cornu__group_source(const CornuProgram *program, CornuValue value,
                                     CornuAccess *access)
{
    CornuShape shape = cornu_program_type(program, value).shape;
    *access = cornu__access(shape, shape);
    bool whole = true;
    for (;;) {
        const CornuProgramOp *op = maker(program, value);
        if (!op || (op->id != CORNU_OP_RESHAPE && op->id != CORNU_OP_BROADCAST))
            return value;
        CornuValue from = cornu_program_operands(program, op)[0];
        CornuShape inner = cornu_program_type(program, from).shape;
        CornuShape outer = cornu_program_type(program, value).shape;
        if (cornu_shape_count(inner) != cornu_shape_count(outer)) {
            if (!whole) return value; /* a broadcast of a broadcast is written out */
            *access = cornu__access(inner, outer);
            whole = false;
        }
        value = from;
    }
}

/* ---- Ops that a group computes ---- */

/* The class in which an op computes: that of the operands that are numbers. */
static CornuClass class_of_op(const CornuProgram *program, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(program, op);
    return cornu__class_of(
        cornu_program_type(program, in[op->id == CORNU_OP_SELECT]).dtype);
}

/* The loop that computes the op; NULL if there is none, or for a convert within a class. */
static CornuVector *loop_of(const CornuVectors *vectors, const CornuProgram *program,
                            const CornuProgramOp *op)
{
    if (op->id == CORNU_OP_RANDOM_UNIFORM) return vectors->uniform;
    if (op->id == CORNU_OP_IOTA) return vectors->iota;
    if (op->in_count == 0 || op->in_count > CORNU_VECTOR_INPUTS) return NULL;
    const CornuVectorClass *loops = vectors->class[class_of_op(program, op)];
    CornuVector            *loop = loops->op[op->id];
    if (op->id == CORNU_OP_COMPARE)
        loop = loops->compare[op->attributes.compare.comparison];
    else if (op->id == CORNU_OP_CONVERT)
        loop = loops->convert[cornu__class_of(op->attributes.convert.dtype)];
    return loop;
}

bool cornu__group_reads_memory(const CornuProgramOp *op, int k)
{
    return op->id == CORNU_OP_RANDOM_UNIFORM || op->id == CORNU_OP_GATHER ||
           (op->id == CORNU_OP_SCATTER_ROWS && k < 2);
}

int64_t cornu__group_count(const CornuProgram *program, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(program, op);
    const bool        reduces = op->id == CORNU_OP_REDUCE_SUM || op->id == CORNU_OP_REDUCE_MAX;
    return cornu_type_count(cornu_program_type(
        program, op->id == CORNU_OP_SCATTER_ROWS ? in[2] : reduces ? in[0] : op->out_first));
}

static int64_t row_of(int64_t elements)
{
    return elements >= SHORT_ROW && elements <= CORNU_BLOCK ? elements : 1;
}

int64_t cornu__group_reduces(const CornuProgram *program, const CornuProgramOp *op)
{
    if (op->id != CORNU_OP_REDUCE_SUM && op->id != CORNU_OP_REDUCE_MAX) return 1;
    const CornuType type = cornu_program_type(program, cornu_program_operands(program, op)[0]);
    int64_t         row = 1, rows = 1;
    if (type.dtype != CORNU_F32 && type.dtype != CORNU_BF16) return 1;
    for (int i = 0; i < type.shape.rank; i++) {
        const int64_t extent = type.shape.extent[i];
        if (op->attributes.reduce.axes >> i & 1) row *= extent;
        else if (row > 1 && extent > 1) return 1;
        else rows *= extent;
    }
    return rows > 1 ? row_of(row) : 1;
}

int64_t cornu__group_repeats(CornuType type, const CornuAccess *access)
{
    const bool repeats = access->rank == 2 && access->stride[0] == 1 && access->stride[1] == 0 &&
                         access->extent[0] == cornu_type_count(type);
    return repeats && cornu__class_of(type.dtype) == CORNU_CLASS_F32 ? row_of(access->extent[1])
                                                                     : 1;
}

bool cornu__group_computes(const CornuVectors *vectors, const CornuProgram *program,
                                 const CornuProgramOp *op)
{
    if (op->id == CORNU_OP_CONVERT) return true;
    return loop_of(vectors, program, op) != NULL;
}

/* ---- Making a group ---- */

/* A group under construction. */
typedef struct {
    CornuGroup         *group;
    const CornuVectors *vectors;
    const CornuProgram *program;
    int                *slot_of;  /* by value of the program, -1: none yet */
    CornuStatus         status;   /* the first failure; what follows it is void */
} Maker;

static int add_slot(Maker *make, CornuSlot slot)
{
    CornuGroup *group = make->group;
    CornuStatus status = cornu__reserve(&group->slots, &group->slot_space,
                                        group->slot_count, 1, sizeof *group->slots);
    if (status != CORNU_OK) {
        make->status = status;
        return 0;
    }
    slot.last_use = -1;
    group->slots[group->slot_count] = slot;
    return group->slot_count++;
}

static int add_register(Maker *make, CornuClass class)
{
    return add_slot(make, (CornuSlot){ .kind = CORNU_SLOT_REGISTER,
                                       .size = cornu__class_size(class) });
}

static CornuInstruction *add_instruction(Maker *make, CornuVector *run, bool by_row)
{
    static CornuInstruction ignored;
    CornuGroup        *group = make->group;
    CornuStatus        status =
        cornu__reserve(&group->instructions, &group->instruction_space,
                       group->instruction_count, 1, sizeof *group->instructions);
    if (status != CORNU_OK) {
        make->status = status;
        return &ignored;
    }
    CornuInstruction *made = &group->instructions[group->instruction_count++];
    *made = (CornuInstruction){ .run = run, .by_row = by_row, .out = { -1, -1, -1 },
                                .seed = { -1, -1, -1 } };
    for (int i = 0; i < CORNU_VECTOR_INPUTS; i++) made->in[i] = -1;
    return made;
}

/* One operand, one result. */
static void add_step(Maker *make, CornuVector *run, bool by_row, int from, int to)
{
    CornuInstruction *made = add_instruction(make, run, by_row);
    made->in[0] = from;
    made->out[0] = to;
}

static int add_input(Maker *make, CornuValue value)
{
    CornuGroup *group = make->group;
    for (int i = 0; i < group->input_count; i++)
        if (group->inputs[i] == value) return i;
    CornuStatus status = cornu__reserve(&group->inputs, &group->input_space,
                                        group->input_count, 1, sizeof *group->inputs);
    if (status != CORNU_OK) {
        make->status = status;
        return 0;
    }
    group->inputs[group->input_count] = value;
    return group->input_count++;
}

static int64_t count_of(const Maker *make, CornuValue value)
{
    return cornu_type_count(cornu_program_type(make->program, value));
}

/* Whether the value has an element for each row. */
static bool is_by_row(const Maker *make, CornuValue value)
{
    return count_of(make, value) != make->group->count;
}

/* ---- Rows: `repeat` elements each ---- */

static void sum_rows(const CornuVectorCall *call, int64_t rows)
{
    cornu__vectors()->sum_runs(call->in[0], rows, call->repeat, call->out[0]);
}

static void max_rows(const CornuVectorCall *call, int64_t rows)
{
    cornu__vectors()->max_runs(call->in[0], rows, call->repeat, call->out[0]);
}

static void repeat_rows(const CornuVectorCall *call, int64_t rows)
{
    cornu__vectors()->repeat_runs(call->in[0], rows, call->repeat, call->out[0]);
}

/* From an operand, or to a result, of an element for each row. */
static CornuInstruction *add_row_step(Maker *make, CornuVector *run, int from, int to)
{
    CornuInstruction *made = add_instruction(make, run, false);
    made->in[0] = from;
    made->out[0] = to;
    made->whole_rows = true;
    made->repeat = make->group->row;
    return made;
}

static CornuSlotKind kind_of_access(const CornuAccess *access)
{
    if (access->rank == 0) return CORNU_SLOT_SCALAR;
    if (cornu__access_is_whole(access)) return CORNU_SLOT_INPUT;
    if (cornu__access_is_period(access) && access->extent[1] <= CORNU_BLOCK)
        return CORNU_SLOT_PERIOD;
    return CORNU_SLOT_GATHERED;
}

/* The slot in which an instruction finds `value`, in the class of its dtype. */
static int operand_slot(Maker *make, CornuValue value)
{
    if (make->slot_of[value] >= 0) return make->slot_of[value];
    CornuAccess access;
    CornuValue  source = cornu__group_source(make->program, value, &access);
    CornuDtype  dtype = cornu_program_type(make->program, source).dtype;
    int         slot;
    const CornuProgramOp *op = maker(make->program, source);
    const bool is_there = make->slot_of[source] >= 0;
    const bool by_row = access.rank > 0 && is_by_row(make, value);   /* scalars serve either */
    if (is_there && count_of(make, source) == count_of(make, value)) {
        slot = make->slot_of[source];   /* a member's, seen through a reshape */
    } else if (is_there && make->group->row > 1 &&
               cornu__group_repeats(cornu_program_type(make->program, source), &access) ==
                   make->group->row) {
        slot = add_register(make, cornu__class_of(dtype));
        add_row_step(make, repeat_rows, make->slot_of[source], slot);
    } else if (op && op->id == CORNU_OP_CONSTANT) {
        CornuClass class = cornu__class_of(dtype);
        slot = add_slot(make, (CornuSlot){ .kind = CORNU_SLOT_CONSTANT, .by_row = by_row,
                                      .size = cornu__class_size(class),
                                      .value = op->attributes.constant.value,
                                      .class = class });
        if (make->vectors->round[dtype]) {
            int rounded = add_register(make, class);
            add_step(make, make->vectors->round[dtype], by_row, slot, rounded);
            slot = rounded;
        }
    } else {
        slot = add_slot(make, (CornuSlot){ .kind = kind_of_access(&access), .by_row = by_row,
                                      .size = cornu_dtype_size(dtype), .access = access,
                                      .operand = add_input(make, source) });
        if (make->vectors->load[dtype]) {
            int loaded = add_register(make, cornu__class_of(dtype));
            add_step(make, make->vectors->load[dtype], by_row, slot, loaded);
            slot = loaded;
        }
    }
    return make->slot_of[value] = slot;
}

/* The numbers a loop takes from the op's attributes. */
static void set_attributes(CornuInstruction *made, const CornuProgramOp *op,
                           CornuShape shape)
{
    const CornuAttributes *from = &op->attributes;
    double                *to = made->attributes;
    switch (op->id) {
    case CORNU_OP_ELU:
        to[0] = from->alpha.alpha;
        break;
    case CORNU_OP_BOUNDED_RELU: case CORNU_OP_BOUNDED_STEP:
        to[0] = from->bound.bound;
        break;
    case CORNU_OP_MOMENTUM_UPDATE:
        to[0] = from->momentum.momentum;
        to[1] = from->momentum.nesterov != 0;
        break;
    case CORNU_OP_RMSPROP_UPDATE:
        to[0] = from->rmsprop.rho;
        to[1] = 1.0 - from->rmsprop.rho;
        to[2] = from->rmsprop.epsilon;
        break;
    case CORNU_OP_ADAM_UPDATE:
        to[0] = 1.0 - from->adam.beta_1;
        to[1] = 1.0 - from->adam.beta_2;
        to[2] = from->adam.epsilon;
        break;
    case CORNU_OP_IOTA:
        made->extent = shape.extent[from->iota.axis];
        made->repeat = 1;
        for (int i = (int)from->iota.axis + 1; i < shape.rank; i++)
            made->repeat *= shape.extent[i];
        break;
    case CORNU_OP_RANDOM_UNIFORM:
        made->random.generator = (uint32_t)from->random.generator;
        made->random.row = 1;
        for (int i = 1; i < shape.rank; i++) made->random.row *= shape.extent[i];
        break;
    default: break;
    }
}

/* A slot for the rows of the op, a gather or a scatter_rows. */
static CornuSlot rows_of(Maker *make, const CornuProgramOp *op, CornuSlotKind kind)
{
    const CornuValue *in = cornu_program_operands(make->program, op);
    const CornuType   table = cornu_program_type(make->program, in[0]);
    return (CornuSlot){
        .kind = kind, .by_row = cornu__group_count(make->program, op) != make->group->count,
        .size = cornu_dtype_size(table.dtype), .operand = add_input(make, in[0]),
        .rows = { .op = op, .table = add_input(make, in[0]), .indices = add_input(make, in[1]),
                  .type = cornu_program_type(make->program, in[1]),
                  .count = table.shape.extent[0], .columns = table.shape.extent[1],
                  .padded = op->id == CORNU_OP_GATHER ? op->attributes.gather.padded : 0 },
    };
}

/* Rows looked up are a slot for the instructions that read them, rows replaced one for those that
 * make them (add_output). */
static void add_rows(Maker *make, const CornuProgramOp *op)
{
    const CornuType table = cornu_program_type(make->program, op->out_first);
    int             slot;
    if (op->id == CORNU_OP_SCATTER_ROWS) {
        slot = operand_slot(make, cornu_program_operands(make->program, op)[2]);
    } else {
        slot = add_slot(make, rows_of(make, op, CORNU_SLOT_ROWS));
        if (make->vectors->load[table.dtype]) {
            const int loaded = add_register(make, cornu__class_of(table.dtype));
            add_step(make, make->vectors->load[table.dtype], is_by_row(make, op->out_first), slot,
                     loaded);
            slot = loaded;
        }
    }
    make->slot_of[op->out_first] = slot;
}

/* Appends the instructions of one op. */
static void add_op(Maker *make, const CornuProgramOp *op)
{
    if (op->id == CORNU_OP_GATHER || op->id == CORNU_OP_SCATTER_ROWS) {
        add_rows(make, op);
        return;
    }
    const CornuProgram *program = make->program;
    const CornuValue   *in = cornu_program_operands(program, op);
    CornuType           type = cornu_program_type(program, op->out_first);
    CornuClass          class = cornu__class_of(type.dtype);
    CornuVector        *loop = loop_of(make->vectors, program, op);
    bool                random = op->id == CORNU_OP_RANDOM_UNIFORM;
    const bool          reduces = cornu__group_reduces(program, op) > 1;
    const bool          by_row = is_by_row(make, op->out_first);
    int                 slots[CORNU_VECTOR_INPUTS] = { 0 }, result;
    for (int i = 0; i < op->in_count && !random; i++)
        slots[i] = operand_slot(make, in[i]);

    if (reduces) {
        result = add_register(make, class);
        add_row_step(make, op->id == CORNU_OP_REDUCE_SUM ? sum_rows : max_rows, slots[0],
                     result)->op = op;
    } else if (loop) {
        CornuClass   own = op->id == CORNU_OP_IOTA ? CORNU_CLASS_I64 : class;
        int          out[CORNU_VECTOR_OUTPUTS] = { 0 };
        for (int i = 0; i < op->out_count; i++) out[i] = add_register(make, own);
        int          seed[3] = { -1, -1, -1 };
        for (int i = 0; i < 3 && random; i++) seed[i] = add_input(make, in[i]);
        CornuInstruction *made = add_instruction(make, loop, by_row);
        made->op = op;
        set_attributes(made, op, type.shape);
        memcpy(made->seed, seed, sizeof seed);
        for (int i = 0; i < op->in_count && !random; i++) made->in[i] = slots[i];
        for (int i = 0; i < op->out_count; i++)
            make->slot_of[op->out_first + i] = made->out[i] = out[i];
        result = out[0];
        if (own != class) { /* an iota of floats counts in integers */
            result = add_register(make, class);
            add_step(make, make->vectors->class[own]->convert[class], by_row, out[0], result);
        }
    } else {
        result = slots[0];  /* a convert within a class changes the rounding at most */
    }
    bool widens = op->id == CORNU_OP_SELECT || op->id == CORNU_OP_RANDOM_UNIFORM;
    if (make->vectors->round[type.dtype] && !widens && class != CORNU_CLASS_BOOL) {
        int rounded = add_register(make, class);
        add_step(make, make->vectors->round[type.dtype], by_row, result, rounded);
        result = rounded;
    }
    make->slot_of[op->out_first] = result;
}

static void copy_1(const CornuVectorCall *call, int64_t count)
{
    memcpy(call->out[0], call->in[0], (size_t)count);
}

static void copy_4(const CornuVectorCall *call, int64_t count)
{
    memcpy(call->out[0], call->in[0], (size_t)count * 4);
}

static void copy_8(const CornuVectorCall *call, int64_t count)
{
    memcpy(call->out[0], call->in[0], (size_t)count * 8);
}

/* The value becomes output number `number`: the instruction that makes it writes to
 * memory, or one more stores it there. */
static void add_output(Maker *make, CornuValue value, int number)
{
    CornuDtype dtype = cornu_program_type(make->program, value).dtype;
    int        slot = operand_slot(make, value);
    if (make->status != CORNU_OK) return;
    const CornuProgramOp *op = maker(make->program, value);
    CornuSlot       memory = { .kind = CORNU_SLOT_OUTPUT, .size = cornu_dtype_size(dtype) };
    memory.by_row = is_by_row(make, value);
    if (op && op->id == CORNU_OP_SCATTER_ROWS)
        memory = rows_of(make, op, CORNU_SLOT_REPLACED);
    memory.operand = number;
    memory.last_use = -1;
    CornuVector *store = make->vectors->store[dtype];
    if (!store && make->group->slots[slot].kind == CORNU_SLOT_REGISTER) {
        make->group->slots[slot] = memory;
        return;
    }
    if (!store) store = memory.size == 1 ? copy_1 : memory.size == 4 ? copy_4 : copy_8;
    add_step(make, store, memory.by_row, slot, add_slot(make, memory));
}

/* Allocates a register to every slot; one that no later instruction reads is free again. Registers
 * are as large as the largest element of the group requires. */
static CornuStatus place_registers(CornuGroup *group)
{
    size_t size = 4;
    for (int i = 0; i < group->slot_count; i++)
        if (group->slots[i].size > size) size = group->slots[i].size;
    for (int i = 0; i < group->instruction_count; i++)
        for (int k = 0; k < CORNU_VECTOR_INPUTS; k++)
            if (group->instructions[i].in[k] >= 0)
                group->slots[group->instructions[i].in[k]].last_use = i;

    size_t at = ((size_t)group->slot_count * sizeof(void *) + 63) / 64 * 64;
    size_t *free_offsets =
        cornu__allocate((size_t)group->slot_count + 1, sizeof *free_offsets);
    if (!free_offsets) return CORNU_ERR_MEMORY;
    int free_count = 0;
    /* Inputs, constants and the ragged ends of outputs keep theirs. */
    for (int i = 0; i < group->slot_count; i++) {
        CornuSlot *slot = &group->slots[i];
        if (slot->kind == CORNU_SLOT_REGISTER) continue;
        slot->offset = at;
        at += size * CORNU_BLOCK * (slot->kind == CORNU_SLOT_PERIOD ? 2 : 1);
    }
    for (int i = 0; i < group->instruction_count; i++) {
        const CornuInstruction *instruction = &group->instructions[i];
        for (int k = 0; k < CORNU_VECTOR_OUTPUTS && instruction->out[k] >= 0; k++) {
            CornuSlot *slot = &group->slots[instruction->out[k]];
            if (slot->kind != CORNU_SLOT_REGISTER) continue;
            slot->offset = free_count ? free_offsets[--free_count] : at;
            if (slot->offset == at) at += size * CORNU_BLOCK;
        }
        for (int k = 0; k < CORNU_VECTOR_INPUTS && instruction->in[k] >= 0; k++) {
            CornuSlot *slot = &group->slots[instruction->in[k]];
            if (slot->kind != CORNU_SLOT_REGISTER || slot->last_use != i) continue;
            slot->last_use = -1;   /* once, even if it is both operands */
            free_offsets[free_count++] = slot->offset;
        }
    }
    cornu__release(free_offsets);
    group->bytes = at;
    return CORNU_OK;
}

/* Takes back what the ops and outputs have set of slot_of. */
static void forget_slots(Maker *make, const int *ops, int op_count, const CornuValue *outputs,
                         int output_count)
{
    for (int i = 0; i < op_count; i++) {
        const CornuProgramOp *op = &make->program->ops[ops[i]];
        for (int k = 0; k < op->in_count; k++)
            make->slot_of[cornu_program_operands(make->program, op)[k]] = -1;
        for (int k = 0; k < op->out_count; k++) make->slot_of[op->out_first + k] = -1;
    }
    for (int i = 0; i < output_count; i++) make->slot_of[outputs[i]] = -1;
}

/* Elements of a block: whole rows, and whole vectors where a block holds so many. */
static int64_t block_of(int64_t row)
{
    int64_t rows = CORNU_BLOCK / row, whole = 1;
    while (whole * row % CORNU_VECTOR_STEP) whole *= 2;
    if (rows >= whole) rows -= rows % whole;
    return rows * row;
}

CornuGroup *cornu__group_create(const CornuVectors *vectors, const CornuProgram *program,
                                const int *ops, int op_count, int64_t row,
                                const CornuValue *outputs, int output_count, int *slot_of)
{
    Maker make = { .vectors = vectors, .program = program, .slot_of = slot_of };
    make.group = cornu__allocate(1, sizeof *make.group);
    if (!make.group) return NULL;
    make.group->count = op_count ? 0 : count_of(&make, outputs[0]);
    for (int i = 0; i < op_count; i++)
        make.group->count = larger(make.group->count,
                                   cornu__group_count(program, &program->ops[ops[i]]));
    make.group->row = row;
    make.group->block = block_of(row);

    for (int i = 0; i < op_count; i++) add_op(&make, &program->ops[ops[i]]);
    for (int i = 0; i < output_count; i++) add_output(&make, outputs[i], i);
    forget_slots(&make, ops, op_count, outputs, output_count);
    if (make.status != CORNU_OK || place_registers(make.group) != CORNU_OK) {
        cornu__group_free(make.group);
        return NULL;
    }

    int64_t cost = 1;
    for (int i = 0; i < make.group->instruction_count; i++) {
        const CornuProgramOp *op = make.group->instructions[i].op;
        cost += op ? cornu__op_cost(op->id) : 1;
    }
    /* Some ten thousand additions: worth handing to a thread, filling constants and prefetching
     * for. */
    make.group->chunk = make.group->block * (cost < 8 ? 32 / cost : 16);
    return make.group;
}

void cornu__group_free(CornuGroup *group)
{
    if (!group) return;
    cornu__release(group->slots);
    cornu__release(group->instructions);
    cornu__release(group->inputs);
    cornu__release(group);
}

static bool is_of_rows(const CornuSlot *slot)
{
    return slot->kind == CORNU_SLOT_ROWS || slot->kind == CORNU_SLOT_REPLACED;
}

/* Whether input `in` is read element by element. */
static bool reads_elements(const CornuSlot *slot, int in)
{
    return slot->kind >= CORNU_SLOT_SCALAR && slot->kind <= CORNU_SLOT_INPUT &&
           slot->operand == in;
}

/* Whether rows of input `in` can be replaced in its own memory: no others are read, so that each
 * block reads but what it is going to write. */
static bool replaces_in_place(const CornuGroup *group, int in, const CornuSlot *replaced)
{
    for (int i = 0; i < group->slot_count; i++) {
        const CornuSlot *slot = &group->slots[i];
        if (reads_elements(slot, in) || (is_of_rows(slot) && slot->rows.indices == in))
            return false;
        if (is_of_rows(slot) && slot != replaced && slot->rows.table == in &&
            (slot->kind == CORNU_SLOT_REPLACED || slot->rows.indices != replaced->rows.indices))
            return false;
    }
    return replaced->rows.table == in;
}

bool cornu__group_in_place(const CornuGroup *group, int in, int out)
{
    for (int i = 0; i < group->slot_count; i++) {
        const CornuSlot *slot = &group->slots[i];
        if (slot->kind == CORNU_SLOT_REPLACED && slot->operand == out)
            return replaces_in_place(group, in, slot);
    }
    for (int i = 0; i < group->slot_count; i++) {
        const CornuSlot *slot = &group->slots[i];
        if (is_of_rows(slot) && (slot->rows.table == in || slot->rows.indices == in)) return false;
    }
    int  written = -1;
    bool by_row = false;
    for (int i = 0; i < group->instruction_count; i++)
        for (int k = 0; k < CORNU_VECTOR_OUTPUTS; k++) {
            int slot = group->instructions[i].out[k];
            if (slot < 0) continue;
            if (group->slots[slot].kind == CORNU_SLOT_OUTPUT &&
                group->slots[slot].operand == out) {
                written = i;
                by_row = group->slots[slot].by_row;
            }
        }
    for (int i = 0; i < group->instruction_count; i++)
        for (int k = 0; k < CORNU_VECTOR_INPUTS; k++) {
            int index = group->instructions[i].in[k];
            if (index < 0) continue;
            const CornuSlot *slot = &group->slots[index];
            if (!reads_elements(slot, in) ||
                (slot->kind == CORNU_SLOT_SCALAR && group->count == 1))
                continue;
            if (slot->kind != CORNU_SLOT_INPUT || slot->by_row != by_row || i > written)
                return false;
        }
    return true;
}

static void print_rows(const CornuGroup *group, CornuSlotKind kind, FILE *to)
{
    for (int i = 0; i < group->slot_count; i++)
        if (group->slots[i].kind == kind)
            fprintf(to, " %s", cornu_program_op_name(group->slots[i].rows.op));
}

void cornu__group_print(const CornuGroup *group, FILE *to)
{
    fprintf(to, " of %lld:", (long long)group->count);
    print_rows(group, CORNU_SLOT_ROWS, to);
    for (int i = 0; i < group->instruction_count; i++)
        if (group->instructions[i].op)
            fprintf(to, " %s", cornu_program_op_name(group->instructions[i].op));
    print_rows(group, CORNU_SLOT_REPLACED, to);
}

size_t cornu__group_scratch(const CornuGroup *group, int threads)
{
    return group->bytes * (size_t)threads;
}
