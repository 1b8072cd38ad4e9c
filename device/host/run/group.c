/* Groups run chunk by chunk on the threads, each chunk block by block. */
#include "group.h"

#include <string.h>

#include "../../integer_internal.h"
#include "../kernels/rows.h"
#include "../machine/prefetch.h"

enum { MANY_INSTRUCTIONS = 5 };   /* between blocks, so that the processor stops reading ahead */

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

/* Some elements, by [false], and rows, by [true], of a group. */
typedef struct { int64_t first[2], count[2]; } Part;

static Part part_of(const CornuGroup *group, int64_t first, int64_t count)
{
    return (Part){ { first, first / group->row }, { count, count / group->row } };
}

/* Fills what is the same in all blocks of a chunk. `at` are the addresses of the slots. */
static void prepare(const Job *job, char *memory, void **at, int64_t count)
{
    const CornuGroup *group = job->group;
    const Part        block = part_of(group, 0, smaller(count, group->block));
    for (int i = 0; i < group->slot_count; i++) {
        const CornuSlot *slot = &group->slots[i];
        at[i] = memory + slot->offset;
        int64_t length = padded(block.count[slot->by_row]);
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

static CornuArray indices_of(const CornuRows *rows, const void *const *in)
{
    return (CornuArray){ rows->type, (void *)(uintptr_t)in[rows->indices] };
}

/* Moves elements first to end of the rows of a table: those looked up to the register, those
 * replaced from there. Rows further on are requested meanwhile. */
static void move_rows(const Job *job, const CornuSlot *slot, char *at, int64_t first, int64_t end)
{
    const CornuRows *rows = &slot->rows;
    const CornuArray indices = indices_of(rows, job->in);
    const int64_t    lookups = cornu_type_count(rows->type);
    const size_t     row_bytes = (size_t)rows->columns * slot->size;
    const bool       looks_up = slot->kind == CORNU_SLOT_ROWS;
    /* Of an input, which is only read, through the pointer to both. */
    char *table = looks_up ? (char *)(uintptr_t)job->in[slot->operand] : job->out[slot->operand];
    int64_t from = first % rows->columns;
    for (int64_t i = first / rows->columns, count; first < end; i++, first += count, from = 0) {
        count = smaller(rows->columns - from, end - first);
        if (looks_up && i + CORNU_ROWS_AHEAD < lookups)
            cornu__prefetch_row(table, cornu__index_at(indices, i + CORNU_ROWS_AHEAD), row_bytes);
        const int64_t index = cornu__index_at(indices, i);
        const bool    is_row = index >= 0 && index < rows->count;
        const size_t  bytes = (size_t)count * slot->size;
        char *row = table + (is_row ? (size_t)index * row_bytes + (size_t)from * slot->size : 0);
        if (!looks_up && is_row) memcpy(row, at, bytes);
        else if (looks_up && is_row) memcpy(at, row, bytes);
        else if (looks_up) memset(at, 0, bytes);
        at += bytes;
    }
}

/* Requests what the next block reads and writes where it lies, while this one is computed. */
static void request_next(const CornuGroup *group, void *const *at, const Part *block)
{
    for (int i = 0; i < group->slot_count; i++) {
        const CornuSlot *slot = &group->slots[i];
        const int64_t    count = block->count[slot->by_row];
        const size_t     bytes = (size_t)count * slot->size;
        const char      *next = (const char *)at[i] + bytes;
        if (count % CORNU_VECTOR_STEP) continue;
        if (slot->kind == CORNU_SLOT_OUTPUT) cornu__prefetch_to_write(next, bytes);
        for (size_t line = 0; line < bytes && slot->kind == CORNU_SLOT_INPUT;
             line += CORNU_LINE_BYTES)
            cornu__prefetch_near(next, line);
    }
}

/* Finds the addresses for one block. At a ragged end, registers stand in for the memory. */
static void open_block(const Job *job, char *memory, void **at, const Part *block)
{
    for (int i = 0; i < job->group->slot_count; i++) {
        const CornuSlot *slot = &job->group->slots[i];
        const int64_t    first = block->first[slot->by_row], count = block->count[slot->by_row];
        const bool       ragged = count % CORNU_VECTOR_STEP != 0;
        const size_t     start = (size_t)first * slot->size;
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
        case CORNU_SLOT_ROWS: move_rows(job, slot, at[i], first, first + count); break;
        default: break;
        }
    }
}

static void close_block(const Job *job, void **at, const Part *block)
{
    for (int i = 0; i < job->group->slot_count; i++) {
        const CornuSlot *slot = &job->group->slots[i];
        const int64_t    first = block->first[slot->by_row], count = block->count[slot->by_row];
        const bool       ragged = count % CORNU_VECTOR_STEP != 0;
        if (slot->kind == CORNU_SLOT_REPLACED) move_rows(job, slot, at[i], first, first + count);
        else if (slot->kind == CORNU_SLOT_OUTPUT && ragged)
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
    for (int64_t first = begin; first < end; first += group->block) {
        const Part block = part_of(group, first, smaller(group->block, end - first));
        open_block(job, memory, at, &block);
        if (group->instruction_count >= MANY_INSTRUCTIONS && first + group->block < end)
            request_next(group, at, &block);
        for (int i = 0; i < group->instruction_count; i++) {
            const CornuInstruction *instruction = &group->instructions[i];
            CornuVectorCall         call = {
                .attributes = instruction->attributes, .first = block.first[instruction->by_row],
                .random = &random, .repeat = instruction->repeat,
                .extent = instruction->extent,
            };
            if (instruction->seed[0] >= 0) random = random_of(instruction, job->in);
            for (int k = 0; k < CORNU_VECTOR_OUTPUTS && instruction->out[k] >= 0; k++)
                call.out[k] = at[instruction->out[k]];
            for (int k = 0; k < CORNU_VECTOR_INPUTS && instruction->in[k] >= 0; k++)
                call.in[k] = at[instruction->in[k]];
            instruction->run(&call, instruction->whole_rows
                                    ? block.count[true] : padded(block.count[instruction->by_row]));
        }
        close_block(job, at, &block);
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

/* The message names the op whose operands are at fault. */
static CornuStatus blame(CornuStatus status, const CornuProgramOp *op)
{
    cornu__fail_prefix(status, cornu_program_op_name(op));
    return *op->scope ? cornu__fail_prefix(status, op->scope) : status;
}

/* Whether an earlier slot is of the same rows of a table as large. */
static bool is_checked(const CornuGroup *group, int i)
{
    const CornuSlot *slot = &group->slots[i];
    for (int k = 0; k < i; k++)
        if (group->slots[k].kind == slot->kind &&
            group->slots[k].rows.indices == slot->rows.indices &&
            group->slots[k].rows.count == slot->rows.count &&
            group->slots[k].rows.padded == slot->rows.padded)
            return true;
    return false;
}

/* Checks the indices, and brings along what a table that is not replaced in place has in its other
 * rows. *in_order: whether one thread has to replace rows, as some may be replaced twice. */
static CornuStatus prepare_rows(const Job *job, bool *in_order)
{
    for (int i = 0; i < job->group->slot_count; i++) {
        const CornuSlot *slot = &job->group->slots[i];
        const CornuRows *rows = &slot->rows;
        const bool       replaces = slot->kind == CORNU_SLOT_REPLACED;
        if (slot->kind < CORNU_SLOT_ROWS) continue;
        if (replaces && job->out[slot->operand] != job->in[rows->table])
            memcpy(job->out[slot->operand], job->in[rows->table],
                   (size_t)(rows->count * rows->columns) * slot->size);
        if (is_checked(job->group, i)) continue;
        const CornuArray  indices = indices_of(rows, job->in);
        const CornuStatus status = cornu__indices_check("index", indices, rows->count + replaces,
                                                        rows->padded);
        if (status) return blame(status, rows->op);
        if (replaces && !cornu__indices_ascend(indices, rows->count)) *in_order = true;
    }
    return CORNU_OK;
}

CornuStatus cornu__group_run(const CornuGroup *group, const void *const *in, void *const *out,
                             CornuThreads *threads, void *scratch)
{
    for (int i = 0; i < group->instruction_count; i++) {
        const CornuInstruction *instruction = &group->instructions[i];
        if (instruction->seed[0] < 0) continue;
        const Part  all = part_of(group, 0, group->count);
        CornuStatus status = check_seeds(instruction, in, all.count[instruction->by_row]);
        if (status) return blame(status, instruction->op);
    }
    Job     job = { group, in, out, scratch };
    int64_t chunks = (group->count + group->chunk - 1) / group->chunk;
    bool    in_order = chunks == 1;
    CORNU__TRY(prepare_rows(&job, &in_order));
    if (in_order)
        for (int64_t i = 0; i < chunks; i++) run_chunk(&job, i, 0);
    else cornu__threads_run(threads, chunks, run_chunk, &job);
    return CORNU_OK;
}
