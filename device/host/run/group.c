/* Groups run chunk by chunk on the threads, each chunk block by block. */
#include "group.h"

#include <string.h>

#include "../../integer_internal.h"

typedef struct {
    const CornuGroup  *group;
    const void *const *in;
    void *const       *out;
    char              *scratch;
} Job;

/* Rounded up to whole vectors: the loops never see a remainder. */
static int64_t padded(int64_t count)
{
    return (count + CORNU_VECTOR_STEP - 1) / CORNU_VECTOR_STEP * CORNU_VECTOR_STEP;
}

static void fill_constant(const CornuSlot *slot, void *to, int64_t count)
{
    float   f32 = (float)slot->value;
    double  f64 = slot->value;
    /* As cornu_array_set: 2^63 does not fit an int64_t. */
    int64_t i64 = slot->class != CORNU_CLASS_I64 ? 0
                : slot->value >= 0x1p63          ? INT64_MAX : (int64_t)slot->value;
    uint8_t truth = slot->value != 0.0;
    const void *elements[CORNU_CLASS_COUNT] = {
        [CORNU_CLASS_F32] = &f32, [CORNU_CLASS_F64] = &f64, [CORNU_CLASS_I64] = &i64,
        [CORNU_CLASS_BOOL] = &truth,
    };
    cornu__fill(to, elements[slot->class], slot->size, count);
}

/* Fills what is the same in all blocks of a chunk. `at` are the addresses of the slots. */
static void prepare(const Job *job, char *memory, void **at, int64_t count)
{
    for (int i = 0; i < job->group->slot_count; i++) {
        const CornuSlot *slot = &job->group->slots[i];
        at[i] = memory + slot->offset;
        int64_t length = padded(smaller(count, CORNU_BLOCK));
        if (slot->kind == CORNU_SLOT_CONSTANT)
            fill_constant(slot, at[i], length);
        else if (slot->kind == CORNU_SLOT_SCALAR)
            cornu__fill(at[i], job->in[slot->operand], slot->size, length);
        else if (slot->kind == CORNU_SLOT_PERIOD) {
            size_t period = (size_t)slot->access.extent[1] * slot->size;
            memcpy(at[i], job->in[slot->operand], period);
            cornu__repeat(at[i], period, period + (size_t)length * slot->size);
        }
    }
}

/* Finds the addresses for one block. At a ragged end, registers stand in for the memory. */
static void open_block(const Job *job, char *memory, void **at, int64_t first,
                       int64_t count)
{
    bool ragged = count % CORNU_VECTOR_STEP != 0;
    for (int i = 0; i < job->group->slot_count; i++) {
        const CornuSlot *slot = &job->group->slots[i];
        size_t      start = (size_t)first * slot->size;
        switch (slot->kind) {
        case CORNU_SLOT_PERIOD:
            at[i] = memory + slot->offset +
                    (size_t)(first % slot->access.extent[1]) * slot->size;
            break;
        case CORNU_SLOT_GATHERED:
            cornu__gather(&slot->access, at[i], job->in[slot->operand], slot->size, first,
                          count);
            break;
        case CORNU_SLOT_INPUT:
            if (ragged) {
                at[i] = memory + slot->offset;
                memcpy(at[i], (const char *)job->in[slot->operand] + start,
                       (size_t)count * slot->size);
            } else {
                /* Only ever read: the one pointer table serves both directions. */
                at[i] = (char *)(uintptr_t)job->in[slot->operand] + start;
            }
            break;
        case CORNU_SLOT_OUTPUT:
            at[i] =
                ragged ? memory + slot->offset : (char *)job->out[slot->operand] + start;
            break;
        default: break;
        }
    }
}

static void close_block(const Job *job, void **at, int64_t first, int64_t count)
{
    if (count % CORNU_VECTOR_STEP == 0) return;
    for (int i = 0; i < job->group->slot_count; i++) {
        const CornuSlot *slot = &job->group->slots[i];
        if (slot->kind == CORNU_SLOT_OUTPUT)
            memcpy((char *)job->out[slot->operand] + (size_t)first * slot->size, at[i],
                   (size_t)count * slot->size);
    }
}

static int64_t scalar(const void *const *in, int operand) { return *(const int64_t *)in[operand]; }

/* The generator of this run, on this shard. */
static CornuRandom random_of(const CornuInstruction *instruction, const void *const *in)
{
    CornuRandom random = instruction->random;
    random.seed = (uint64_t)scalar(in, instruction->seed[0]);
    random.iteration = (uint32_t)scalar(in, instruction->seed[1]);
    random.position = (uint32_t)scalar(in, instruction->seed[2]);
    return random;
}

static void run_chunk(void *context, int64_t chunk, int thread)
{
    const Job        *job = context;
    const CornuGroup *group = job->group;
    char             *memory = job->scratch + (size_t)thread * group->bytes;
    void            **at = (void **)(void *)memory;
    int64_t           begin = chunk * group->chunk;
    int64_t           end = smaller(begin + group->chunk, group->count);
    CornuRandom       random;
    prepare(job, memory, at, end - begin);
    for (int64_t first = begin; first < end; first += CORNU_BLOCK) {
        int64_t count = smaller(CORNU_BLOCK, end - first);
        open_block(job, memory, at, first, count);
        for (int i = 0; i < group->instruction_count; i++) {
            const CornuInstruction *instruction = &group->instructions[i];
            CornuVectorCall    call = {
                .attributes = instruction->attributes, .first = first,
                .random = &random, .repeat = instruction->repeat,
                .extent = instruction->extent,
            };
            if (instruction->seed[0] >= 0) random = random_of(instruction, job->in);
            for (int k = 0; k < CORNU_VECTOR_OUTPUTS && instruction->out[k] >= 0; k++)
                call.out[k] = at[instruction->out[k]];
            for (int k = 0; k < CORNU_VECTOR_INPUTS && instruction->in[k] >= 0; k++)
                call.in[k] = at[instruction->in[k]];
            instruction->run(&call, padded(count));
        }
        close_block(job, at, first, count);
    }
}

/* Iteration, position and the number of every row must fit in 32 bits. */
static CornuStatus check_seeds(const CornuInstruction *instruction, const void *const *in,
                               int64_t count)
{
    int64_t iteration = scalar(in, instruction->seed[1]);
    int64_t position = scalar(in, instruction->seed[2]);
    int64_t rows = instruction->random.row ? count / instruction->random.row : 0;
    int64_t last = UINT32_MAX - (rows > 0 ? rows - 1 : 0);
    if (iteration < 0 || iteration > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "iteration is %lld, expected 0 to %u",
                           (long long)iteration, UINT32_MAX);
    if (position < 0 || position > last)
        return cornu__fail(CORNU_ERR_VALUE, "position is %lld, expected 0 to %lld",
                           (long long)position, (long long)last);
    return CORNU_OK;
}

CornuStatus cornu__group_run(const CornuGroup *group, const void *const *in, void *const *out,
                             CornuThreads *threads, void *scratch)
{
    for (int i = 0; i < group->instruction_count; i++) {
        const CornuInstruction *instruction = &group->instructions[i];
        if (instruction->seed[0] < 0) continue;
        CornuStatus status = check_seeds(instruction, in, group->count);
        if (status == CORNU_OK) continue;
        cornu__fail_prefix(status, cornu_program_op_name(instruction->op));
        return *instruction->op->scope
                   ? cornu__fail_prefix(status, instruction->op->scope)
                   : status;
    }
    Job     job = { group, in, out, scratch };
    int64_t chunks = (group->count + group->chunk - 1) / group->chunk;
    if (chunks == 1) run_chunk(&job, 0, 0);
    else cornu__threads_run(threads, chunks, run_chunk, &job);
    return CORNU_OK;
}
