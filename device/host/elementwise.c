#include "elementwise.h"

#include <string.h>

#include "../memory_internal.h"
#include "../op_internal.h"
#include "../random.h"
#include "access.h"

/* Where an instruction finds an operand. */
typedef enum {
    SLOT_REGISTER,   /* made by an instruction                                          */
    SLOT_CONSTANT,   /* a register filled with `value` before the first block           */
    SLOT_SCALAR,     /* a register filled with the only element of input `operand`      */
    SLOT_PERIOD,     /* a register with a period of an input repeated; blocks start in it */
    SLOT_GATHERED,   /* a register into which an input is gathered before each block    */
    SLOT_INPUT,      /* the memory of input `operand`, or a register at a ragged end    */
    SLOT_OUTPUT,     /* the memory of output `operand`, likewise                        */
} SlotKind;

typedef struct {
    SlotKind    kind;
    size_t      size;        /* bytes of an element */
    int         operand;
    CornuAccess access;
    double      value;
    CornuClass  class;       /* of a constant */
    size_t      offset;      /* of the register behind the thread's memory */
    int         last_use;    /* the last instruction that reads it */
} Slot;

typedef struct {
    CornuVector *run;
    int          out[CORNU_MAX_OUTPUTS], in[CORNU_MAX_INPUTS]; /* slots, -1: none */
    float        attributes[3];
    int64_t      repeat, extent;
    CornuRandom  random;
    int          seed[3];    /* inputs: seed, iteration, position; -1 if not random */
    CornuProgramOp const *op;
} Instruction;

struct CornuGroup {
    int64_t      count, chunk;              /* elements in all, and of one piece of work */
    Slot        *slots;
    int          slot_count, slot_space;
    Instruction *instructions;
    int          instruction_count, instruction_space;
    CornuValue  *inputs;
    int          input_count, input_space;
    int          output_count;
    size_t       bytes;                     /* memory of one thread */
};

static const CornuProgramOp *maker(const CornuProgram *program, CornuValue value)
{
    int op = program->values[value].op;
    return op < 0 ? NULL : &program->ops[op];
}

CornuValue cornu__elementwise_source(const CornuProgram *program, CornuValue value,
                                     CornuAccess *access)
{
    CornuShape shape = cornu_program_type(program, value).shape;
    *access = cornu__access(shape, shape);
    bool whole = true;
    for (;;) {
        const CornuProgramOp *op = maker(program, value);
        if (!op || (op->id != CORNU_OP_RESHAPE && op->id != CORNU_OP_BROADCAST)) return value;
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

/* ---- What a group can compute ---- */

/* The class in which an op computes: that of the operands that are numbers. */
static CornuClass class_of_op(const CornuProgram *program, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(program, op);
    return cornu__class_of(cornu_program_type(program, in[op->id == CORNU_OP_SELECT]).dtype);
}

/* The loop that computes the op; NULL if there is none, also for a convert within a class. */
static CornuVector *loop_of(const CornuVectors *vectors, const CornuProgram *program,
                            const CornuProgramOp *op)
{
    if (op->id == CORNU_OP_RANDOM_UNIFORM) return vectors->uniform;
    if (op->id == CORNU_OP_IOTA) return vectors->iota;
    if (op->in_count == 0 || op->in_count > CORNU_MAX_INPUTS) return NULL;
    CornuClass              class = class_of_op(program, op);
    const CornuVectorClass *loops = vectors->class[class];
    switch (op->id) {
    case CORNU_OP_COMPARE:   return loops->compare[op->attributes.compare.comparison];
    case CORNU_OP_SELECT:    return loops->select;
    case CORNU_OP_IS_FINITE: return loops->is_finite;
    case CORNU_OP_CONVERT:   return loops->convert[cornu__class_of(op->attributes.convert.dtype)];
    default:                 return loops->op[op->id];
    }
}

bool cornu__elementwise_computes(const CornuVectors *vectors, const CornuProgram *program,
                                 const CornuProgramOp *op)
{
    if (op->id == CORNU_OP_CONVERT) return true;
    return loop_of(vectors, program, op) != NULL;
}

/* ---- Making a group ---- */

/* A group under construction. The slot of each value of the program, -1 while it has none. */
typedef struct {
    CornuGroup         *group;
    const CornuVectors *vectors;
    const CornuProgram *program;
    int                *slot_of;
    CornuStatus         status;   /* the first failure; later steps do nothing useful */
} Maker;

static int add_slot(Maker *make, Slot slot)
{
    CornuGroup *group = make->group;
    CornuStatus status = cornu__reserve(&group->slots, &group->slot_space, group->slot_count, 1,
                                        sizeof *group->slots);
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
    return add_slot(make, (Slot){ .kind = SLOT_REGISTER, .size = cornu__class_size(class) });
}

static Instruction *add_instruction(Maker *make, CornuVector *run)
{
    static Instruction ignored;
    CornuGroup        *group = make->group;
    CornuStatus        status = cornu__reserve(&group->instructions, &group->instruction_space,
                                               group->instruction_count, 1,
                                               sizeof *group->instructions);
    if (status != CORNU_OK) {
        make->status = status;
        return &ignored;
    }
    Instruction *made = &group->instructions[group->instruction_count++];
    *made = (Instruction){ .run = run, .out = { -1, -1, -1 }, .seed = { -1, -1, -1 } };
    for (int i = 0; i < CORNU_MAX_INPUTS; i++) made->in[i] = -1;
    return made;
}

/* One operand, one result. */
static void add_step(Maker *make, CornuVector *run, int from, int to)
{
    Instruction *made = add_instruction(make, run);
    made->in[0] = from;
    made->out[0] = to;
}

static int add_input(Maker *make, CornuValue value)
{
    CornuGroup *group = make->group;
    for (int i = 0; i < group->input_count; i++)
        if (group->inputs[i] == value) return i;
    CornuStatus status = cornu__reserve(&group->inputs, &group->input_space, group->input_count,
                                        1, sizeof *group->inputs);
    if (status != CORNU_OK) {
        make->status = status;
        return 0;
    }
    group->inputs[group->input_count] = value;
    return group->input_count++;
}

static SlotKind kind_of_access(const CornuAccess *access)
{
    if (access->rank == 0) return SLOT_SCALAR;
    if (cornu__access_is_whole(access)) return SLOT_INPUT;
    if (cornu__access_is_period(access) && access->extent[1] <= CORNU_BLOCK) return SLOT_PERIOD;
    return SLOT_GATHERED;
}

/* The slot in which an instruction finds `value`, in the class of its dtype. */
static int operand_slot(Maker *make, CornuValue value)
{
    if (make->slot_of[value] >= 0) return make->slot_of[value];
    CornuAccess access;
    CornuValue  source = cornu__elementwise_source(make->program, value, &access);
    CornuDtype  dtype = cornu_program_type(make->program, source).dtype;
    int         slot;
    const CornuProgramOp *op = maker(make->program, source);
    if (make->slot_of[source] >= 0 &&
        cornu_type_count(cornu_program_type(make->program, source)) == make->group->count) {
        slot = make->slot_of[source];   /* a member's, seen through a reshape */
    } else if (op && op->id == CORNU_OP_CONSTANT) {
        CornuClass class = cornu__class_of(dtype);
        slot = add_slot(make, (Slot){ .kind = SLOT_CONSTANT, .size = cornu__class_size(class),
                                      .value = op->attributes.constant.value, .class = class });
        if (make->vectors->round[dtype]) {
            int rounded = add_register(make, class);
            add_step(make, make->vectors->round[dtype], slot, rounded);
            slot = rounded;
        }
    } else {
        slot = add_slot(make, (Slot){ .kind = kind_of_access(&access),
                                      .size = cornu_dtype_size(dtype), .access = access,
                                      .operand = add_input(make, source) });
        if (make->vectors->load[dtype]) {
            int loaded = add_register(make, cornu__class_of(dtype));
            add_step(make, make->vectors->load[dtype], slot, loaded);
            slot = loaded;
        }
    }
    return make->slot_of[value] = slot;
}

/* The numbers a loop takes from the op's attributes. */
static void set_attributes(Instruction *made, const CornuProgramOp *op, CornuShape shape)
{
    const CornuAttributes *from = &op->attributes;
    float                 *to = made->attributes;
    switch (op->id) {
    case CORNU_OP_ELU:
        to[0] = (float)from->alpha.alpha;
        break;
    case CORNU_OP_MOMENTUM_UPDATE:
        to[0] = (float)from->momentum.momentum;
        to[1] = (float)(from->momentum.nesterov != 0);
        break;
    case CORNU_OP_RMSPROP_UPDATE:
        to[0] = (float)from->rmsprop.rho;
        to[1] = (float)(1.0 - from->rmsprop.rho);
        to[2] = (float)from->rmsprop.epsilon;
        break;
    case CORNU_OP_ADAM_UPDATE:
        to[0] = (float)(1.0 - from->adam.beta_1);
        to[1] = (float)(1.0 - from->adam.beta_2);
        to[2] = (float)from->adam.epsilon;
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

/* Appends the instructions of one op. */
static void add_op(Maker *make, const CornuProgramOp *op)
{
    const CornuProgram *program = make->program;
    const CornuValue   *in = cornu_program_operands(program, op);
    CornuType           type = cornu_program_type(program, op->out_first);
    CornuClass          class = cornu__class_of(type.dtype);
    CornuVector        *loop = loop_of(make->vectors, program, op);
    bool                random = op->id == CORNU_OP_RANDOM_UNIFORM;
    int                 slots[CORNU_MAX_INPUTS], result;
    for (int i = 0; i < op->in_count && !random; i++) slots[i] = operand_slot(make, in[i]);

    if (loop) {
        CornuClass   own = op->id == CORNU_OP_IOTA ? CORNU_CLASS_I64 : class;
        int          out[CORNU_MAX_OUTPUTS];
        for (int i = 0; i < op->out_count; i++) out[i] = add_register(make, own);
        int          seed[3] = { -1, -1, -1 };
        for (int i = 0; i < 3 && random; i++) seed[i] = add_input(make, in[i]);
        Instruction *made = add_instruction(make, loop);
        made->op = op;
        set_attributes(made, op, type.shape);
        memcpy(made->seed, seed, sizeof seed);
        for (int i = 0; i < op->in_count && !random; i++) made->in[i] = slots[i];
        for (int i = 0; i < op->out_count; i++)
            make->slot_of[op->out_first + i] = made->out[i] = out[i];
        result = out[0];
        if (own != class) { /* an iota of floats counts in integers */
            result = add_register(make, class);
            add_step(make, make->vectors->class[own]->convert[class], out[0], result);
        }
    } else {
        result = slots[0];  /* a convert within a class changes the rounding at most */
    }
    bool widens = op->id == CORNU_OP_SELECT || op->id == CORNU_OP_RANDOM_UNIFORM;
    if (make->vectors->round[type.dtype] && !widens && class != CORNU_CLASS_BOOL) {
        int rounded = add_register(make, class);
        add_step(make, make->vectors->round[type.dtype], result, rounded);
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

/* The value becomes output number `number`: the instruction that makes it writes to memory, or
 * one more stores it there. */
static void add_output(Maker *make, CornuValue value, int number)
{
    CornuDtype dtype = cornu_program_type(make->program, value).dtype;
    int        slot = operand_slot(make, value);
    if (make->status != CORNU_OK) return;
    Slot       memory = { .kind = SLOT_OUTPUT, .size = cornu_dtype_size(dtype),
                          .operand = number, .last_use = -1 };
    CornuVector *store = make->vectors->store[dtype];
    if (!store && make->group->slots[slot].kind == SLOT_REGISTER) {
        make->group->slots[slot] = memory;
        return;
    }
    if (!store) store = memory.size == 1 ? copy_1 : memory.size == 4 ? copy_4 : copy_8;
    add_step(make, store, slot, add_slot(make, memory));
}

/* What a loop costs, in units of an addition. */
static int64_t weight(const Instruction *instruction)
{
    if (!instruction->op) return 1;
    switch (instruction->op->id) {
    case CORNU_OP_POWER: return 64;
    case CORNU_OP_EXP: case CORNU_OP_LOG: case CORNU_OP_TANH: case CORNU_OP_SIGMOID:
    case CORNU_OP_ERF: case CORNU_OP_SOFTPLUS: case CORNU_OP_ELU: case CORNU_OP_SIN:
    case CORNU_OP_COS: case CORNU_OP_RANDOM_UNIFORM: case CORNU_OP_ADAM_UPDATE:
    case CORNU_OP_RMSPROP_UPDATE: return 8;
    default: return 1;
    }
}

/* Gives every slot its register: one that no later instruction reads is free again. Registers
 * are as large as the largest element in the group asks for. */
static CornuStatus place_registers(CornuGroup *group)
{
    size_t size = 4;
    for (int i = 0; i < group->slot_count; i++)
        if (group->slots[i].size > size) size = group->slots[i].size;
    for (int i = 0; i < group->instruction_count; i++)
        for (int k = 0; k < CORNU_MAX_INPUTS; k++)
            if (group->instructions[i].in[k] >= 0)
                group->slots[group->instructions[i].in[k]].last_use = i;

    size_t at = ((size_t)group->slot_count * sizeof(void *) + 63) / 64 * 64;
    size_t *free_offsets = cornu__allocate((size_t)group->slot_count + 1, sizeof *free_offsets);
    if (!free_offsets) return CORNU_ERR_MEMORY;
    int free_count = 0;
    /* Inputs, constants and the ragged ends of outputs keep theirs. */
    for (int i = 0; i < group->slot_count; i++) {
        Slot *slot = &group->slots[i];
        if (slot->kind == SLOT_REGISTER) continue;
        slot->offset = at;
        at += size * CORNU_BLOCK * (slot->kind == SLOT_PERIOD ? 2 : 1);
    }
    for (int i = 0; i < group->instruction_count; i++) {
        const Instruction *instruction = &group->instructions[i];
        for (int k = 0; k < CORNU_MAX_OUTPUTS && instruction->out[k] >= 0; k++) {
            Slot *slot = &group->slots[instruction->out[k]];
            if (slot->kind != SLOT_REGISTER) continue;
            slot->offset = free_count ? free_offsets[--free_count] : at;
            if (slot->offset == at) at += size * CORNU_BLOCK;
        }
        for (int k = 0; k < CORNU_MAX_INPUTS && instruction->in[k] >= 0; k++) {
            Slot *slot = &group->slots[instruction->in[k]];
            if (slot->kind != SLOT_REGISTER || slot->last_use != i) continue;
            slot->last_use = -1;   /* once, should it be both operands */
            free_offsets[free_count++] = slot->offset;
        }
    }
    cornu__release(free_offsets);
    group->bytes = at;
    return CORNU_OK;
}

CornuGroup *cornu__group_create(const CornuVectors *vectors, const CornuProgram *program,
                                const int *ops, int op_count, const CornuValue *outputs,
                                int output_count)
{
    Maker make = { .vectors = vectors, .program = program };
    make.group = cornu__allocate(1, sizeof *make.group);
    make.slot_of = cornu__allocate((size_t)program->value_count, sizeof *make.slot_of);
    if (!make.group || !make.slot_of) goto fail;
    make.group->count = cornu_type_count(cornu_program_type(program, outputs[0]));
    make.group->output_count = output_count;
    for (int i = 0; i < program->value_count; i++) make.slot_of[i] = -1;

    for (int i = 0; i < op_count; i++) add_op(&make, &program->ops[ops[i]]);
    for (int i = 0; i < output_count; i++) add_output(&make, outputs[i], i);
    if (make.status != CORNU_OK || place_registers(make.group) != CORNU_OK) goto fail;

    int64_t cost = 1;
    for (int i = 0; i < make.group->instruction_count; i++)
        cost += weight(&make.group->instructions[i]);
    /* Long enough to be worth handing to a thread: some ten thousand additions. */
    make.group->chunk = CORNU_BLOCK * (cost < 8 ? 32 / cost : 4);
    cornu__release(make.slot_of);
    return make.group;
fail:
    cornu__release(make.slot_of);
    cornu__group_free(make.group);
    return NULL;
}

void cornu__group_free(CornuGroup *group)
{
    if (!group) return;
    cornu__release(group->slots);
    cornu__release(group->instructions);
    cornu__release(group->inputs);
    cornu__release(group);
}

int cornu__group_input_count(const CornuGroup *group) { return group->input_count; }
const CornuValue *cornu__group_inputs(const CornuGroup *group) { return group->inputs; }

bool cornu__group_in_place(const CornuGroup *group, int in, int out)
{
    int written = -1;
    for (int i = 0; i < group->instruction_count; i++)
        for (int k = 0; k < CORNU_MAX_OUTPUTS; k++) {
            int slot = group->instructions[i].out[k];
            if (slot < 0) continue;
            if (group->slots[slot].kind == SLOT_OUTPUT && group->slots[slot].operand == out)
                written = i;
        }
    for (int i = 0; i < group->instruction_count; i++)
        for (int k = 0; k < CORNU_MAX_INPUTS; k++) {
            int index = group->instructions[i].in[k];
            if (index < 0) continue;
            const Slot *slot = &group->slots[index];
            bool reads = slot->operand == in && slot->kind >= SLOT_SCALAR &&
                         slot->kind <= SLOT_INPUT;
            if (!reads || (slot->kind == SLOT_SCALAR && group->count == 1)) continue;
            if (slot->kind != SLOT_INPUT || i > written) return false;
        }
    return true;
}

void cornu__group_print(const CornuGroup *group, FILE *to)
{
    fprintf(to, " of %lld:", (long long)group->count);
    for (int i = 0; i < group->instruction_count; i++)
        if (group->instructions[i].op)
            fprintf(to, " %s", cornu_op_name(group->instructions[i].op->id));
}

/* ---- Running ---- */

size_t cornu__group_scratch(const CornuGroup *group, int threads)
{
    return group->bytes * (size_t)threads;
}

typedef struct {
    const CornuGroup  *group;
    const void *const *in;
    void *const       *out;
    char              *scratch;
} Job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* To whole vectors: the loops never see a remainder. */
static int64_t padded(int64_t count)
{
    return (count + CORNU_VECTOR_STEP - 1) / CORNU_VECTOR_STEP * CORNU_VECTOR_STEP;
}

static void fill_constant(const Slot *slot, void *to, int64_t count)
{
    float   f32 = (float)slot->value;
    double  f64 = slot->value;
    /* As cornu_array_set: 2^63 is no int64_t. */
    int64_t i64 = slot->class != CORNU_CLASS_I64 ? 0
                : slot->value >= 0x1p63          ? INT64_MAX : (int64_t)slot->value;
    uint8_t truth = slot->value != 0.0;
    const void *elements[CORNU_CLASS_COUNT] = {
        [CORNU_CLASS_F32] = &f32, [CORNU_CLASS_F64] = &f64, [CORNU_CLASS_I64] = &i64,
        [CORNU_CLASS_BOOL] = &truth,
    };
    cornu__fill(to, elements[slot->class], slot->size, count);
}

/* What holds for all blocks of a chunk. `at` are the addresses of the slots. */
static void prepare(const Job *job, char *memory, void **at, int64_t count)
{
    for (int i = 0; i < job->group->slot_count; i++) {
        const Slot *slot = &job->group->slots[i];
        at[i] = memory + slot->offset;
        int64_t length = padded(least(count, CORNU_BLOCK));
        if (slot->kind == SLOT_CONSTANT)
            fill_constant(slot, at[i], length);
        else if (slot->kind == SLOT_SCALAR)
            cornu__fill(at[i], job->in[slot->operand], slot->size, length);
        else if (slot->kind == SLOT_PERIOD) {
            size_t period = (size_t)slot->access.extent[1] * slot->size;
            memcpy(at[i], job->in[slot->operand], period);
            cornu__repeat(at[i], period, period + (size_t)length * slot->size);
        }
    }
}

/* The addresses that belong to one block. At a ragged end, registers stand for the memory. */
static void open_block(const Job *job, char *memory, void **at, int64_t first, int64_t count)
{
    bool ragged = count % CORNU_VECTOR_STEP != 0;
    for (int i = 0; i < job->group->slot_count; i++) {
        const Slot *slot = &job->group->slots[i];
        size_t      start = (size_t)first * slot->size;
        switch (slot->kind) {
        case SLOT_PERIOD:
            at[i] = memory + slot->offset + (size_t)(first % slot->access.extent[1]) * slot->size;
            break;
        case SLOT_GATHERED:
            cornu__gather(&slot->access, at[i], job->in[slot->operand], slot->size, first, count);
            break;
        case SLOT_INPUT:
            if (ragged) {
                at[i] = memory + slot->offset;
                memcpy(at[i], (const char *)job->in[slot->operand] + start,
                       (size_t)count * slot->size);
            } else {
                /* Only ever read: the one pointer table serves both directions. */
                at[i] = (char *)(uintptr_t)job->in[slot->operand] + start;
            }
            break;
        case SLOT_OUTPUT:
            at[i] = ragged ? memory + slot->offset : (char *)job->out[slot->operand] + start;
            break;
        default: break;
        }
    }
}

static void close_block(const Job *job, void **at, int64_t first, int64_t count)
{
    if (count % CORNU_VECTOR_STEP == 0) return;
    for (int i = 0; i < job->group->slot_count; i++) {
        const Slot *slot = &job->group->slots[i];
        if (slot->kind == SLOT_OUTPUT)
            memcpy((char *)job->out[slot->operand] + (size_t)first * slot->size, at[i],
                   (size_t)count * slot->size);
    }
}

static void run_chunk(void *context, int64_t chunk, int thread)
{
    const Job        *job = context;
    const CornuGroup *group = job->group;
    char             *memory = job->scratch + (size_t)thread * group->bytes;
    void            **at = (void **)(void *)memory;
    int64_t           begin = chunk * group->chunk;
    int64_t           end = least(begin + group->chunk, group->count);
    prepare(job, memory, at, end - begin);
    for (int64_t first = begin; first < end; first += CORNU_BLOCK) {
        int64_t count = least(CORNU_BLOCK, end - first);
        open_block(job, memory, at, first, count);
        for (int i = 0; i < group->instruction_count; i++) {
            const Instruction *instruction = &group->instructions[i];
            CornuVectorCall    call = {
                .attributes = instruction->attributes, .first = first,
                .random = &instruction->random, .repeat = instruction->repeat,
                .extent = instruction->extent,
            };
            for (int k = 0; k < CORNU_MAX_OUTPUTS && instruction->out[k] >= 0; k++)
                call.out[k] = at[instruction->out[k]];
            for (int k = 0; k < CORNU_MAX_INPUTS && instruction->in[k] >= 0; k++)
                call.in[k] = at[instruction->in[k]];
            instruction->run(&call, padded(count));
        }
        close_block(job, at, first, count);
    }
}

/* Reads what random numbers depend on. Every row's number must fit in its word as well. */
static CornuStatus read_seeds(Instruction *instruction, const void *const *in, int64_t count)
{
    int64_t iteration = *(const int64_t *)in[instruction->seed[1]];
    int64_t position = *(const int64_t *)in[instruction->seed[2]];
    int64_t rows = instruction->random.row ? count / instruction->random.row : 0;
    if (iteration < 0 || iteration > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "iteration %lld, expected 0 to %u",
                           (long long)iteration, UINT32_MAX);
    if (position < 0 || position > UINT32_MAX - rows + 1)
        return cornu__fail(CORNU_ERR_VALUE, "rows %lld to %lld, expected 0 to %u",
                           (long long)position, (long long)position + rows - 1, UINT32_MAX);
    instruction->random.seed = (uint64_t)*(const int64_t *)in[instruction->seed[0]];
    instruction->random.iteration = (uint32_t)iteration;
    instruction->random.position = (uint32_t)position;
    return CORNU_OK;
}

CornuStatus cornu__group_run(CornuGroup *group, const void *const *in, void *const *out,
                             CornuThreads *threads, void *scratch)
{
    for (int i = 0; i < group->instruction_count; i++) {
        Instruction *instruction = &group->instructions[i];
        if (instruction->seed[0] < 0) continue;
        CornuStatus status = read_seeds(instruction, in, group->count);
        if (status == CORNU_OK) continue;
        cornu__fail_prefix(status, cornu_op_name(instruction->op->id));
        return *instruction->op->scope ? cornu__fail_prefix(status, instruction->op->scope) : status;
    }
    Job     job = { group, in, out, scratch };
    int64_t chunks = (group->count + group->chunk - 1) / group->chunk;
    if (chunks == 1) run_chunk(&job, 0, 0);
    else cornu__threads_run(threads, chunks, run_chunk, &job);
    return CORNU_OK;
}
