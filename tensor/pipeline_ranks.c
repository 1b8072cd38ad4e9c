/* A pipeline over ranks: which stages are whose, which variables, and what crosses between ranks.
 *
 * What the tasks of a slot make for other ranks is one exchange, which every rank takes part in,
 * even without messages. So all follow one order, that of the timetable: the exchange of a slot
 * waits for tasks of slots before it alone, and nobody waits for what never comes. */
#include "pipeline_internal.h"

int cornu__task_phase(const CornuPipeline *p, const CornuPipelineTask *task)
{
    return task->backward ? 2 * p->stages.stages - 1 - task->stage : task->stage;
}

int cornu__phase_rank(const CornuPipeline *p, int phase)
{
    const int stages = p->stages.stages, stage = phase < stages ? phase : 2 * stages - 1 - phase;
    int       rank = 0;
    for (CornuRange of; rank < p->ranks.count - 1; rank++) {
        of = cornu__range_of(stages, rank, p->ranks.count);
        if (stage < of.first + of.count) break;
    }
    return rank;
}

/* The ranks that read a crossing. */
static uint32_t readers_of(const CornuPipeline *p, const CornuCrossing *crossing)
{
    uint32_t ranks = 0;
    for (int phase = 0; phase <= crossing->last; phase++)
        if (crossing->readers >> phase & 1) ranks |= UINT32_C(1) << cornu__phase_rank(p, phase);
    return ranks;
}

bool cornu__crossing_is_here(const CornuPipeline *p, const CornuCrossing *crossing)
{
    return cornu__phase_rank(p, crossing->from) == p->ranks.rank ||
           (readers_of(p, crossing) >> p->ranks.rank & 1);
}

/* ---- Variables ---- */

static void list_readers(CornuPipeline *p)
{
    for (int phase = 0; phase < 2 * p->stages.stages; phase++) {
        const CornuPhase *of = &p->stages.phases[phase];
        for (int i = 0; i < of->program->input_count && of->program->output_count > 0; i++)
            if (of->inputs[i] >= 0)
                p->readers[of->inputs[i]] |= UINT32_C(1) << cornu__phase_rank(p, phase);
    }
}

/* A variable is written in one phase, so that one rank alone reads it. */
static bool is_written(const CornuPipeline *p, int input)
{
    for (int i = 0; i < p->program->output_count; i++)
        if (p->program->outputs[i].alias == input) return true;
    return false;
}

static CornuStatus deal_variables(CornuPipeline *p)
{
    for (int i = 0; i < p->program->input_count; i++) {
        CornuBuffer *buffer = p->inputs[i];
        const bool   written = is_written(p, i);
        if (p->fed[i] || !p->readers[i]) continue;
        if (cornu__ranks_deal(buffer, written))
            CORNU__TRY(buffer->device->class->buffer_deal(buffer, p->readers[i]));
        if (written)
            p->ranks.written[p->ranks.written_count++] = (CornuWritten){ buffer, p->readers[i] };
    }
    return CORNU_OK;
}

/* ---- Exchanges ---- */

/* How many messages a run has, those of all ranks together. */
static size_t count_messages(const CornuPipeline *p)
{
    size_t count = 0;
    for (int t = 0; t < p->timetable.count; t++)
        for (int c = 0; c < p->stages.crossing_count; c++)
            if (p->stages.crossings[c].from == cornu__task_phase(p, &p->timetable.tasks[t]))
                for (uint32_t to = readers_of(p, &p->stages.crossings[c]); to; to &= to - 1)
                    count++;
    return count;
}

CornuStatus cornu__pipeline_deal(CornuPipeline *p)
{
    p->readers = cornu__allocate((size_t)p->program->input_count + 1, sizeof *p->readers);
    if (!p->readers) return CORNU_ERR_MEMORY;
    list_readers(p);
    if (p->ranks.count == 1) return CORNU_OK;
    CORNU__TRY(cornu__ranks_begin(&p->ranks, p->program->output_count, 0));
    const size_t messages = count_messages(p) + 1, slots = (size_t)p->timetable.slots;
    p->exchanges = cornu__allocate(slots, sizeof *p->exchanges);
    p->sends = cornu__allocate(messages, sizeof *p->sends);
    p->receives = cornu__allocate(messages, sizeof *p->receives);
    if (!p->exchanges || !p->sends || !p->receives) return CORNU_ERR_MEMORY;
    return deal_variables(p);
}

/* Waits for the exchanges of the first so many slots. */
static CornuStatus finish(CornuPipeline *p, int slots)
{
    while (p->finished < slots) {
        CornuExchange *exchange = &p->exchanges[p->finished++];
        if (exchange->number) CORNU__TRY(cornu__exchange_finish(p->ranks.processes, exchange));
    }
    return CORNU_OK;
}

static int buffer_of(const CornuPipeline *p, int c, int microbatch)
{
    return p->first[c] + microbatch % p->held[c];
}

CornuStatus cornu__pipeline_await(CornuPipeline *p, const CornuPipelineTask *task)
{
    const int         phase = cornu__task_phase(p, task);
    const CornuPhase *of = &p->stages.phases[phase];
    int               slots = 0;
    if (p->ranks.count == 1) return CORNU_OK;
    for (int i = 0; i < of->program->input_count; i++)
        if (of->inputs[i] < 0) {
            const int used = p->exchanged[buffer_of(p, ~of->inputs[i], task->microbatch)];
            if (used > slots) slots = used;
        }
    for (int i = 0; i < of->program->output_count; i++)
        if (of->outputs[i] >= 0) {
            const int used = p->exchanged[buffer_of(p, of->outputs[i], task->microbatch)];
            if (used > slots) slots = used;
        }
    return finish(p, slots);
}

/* What a task makes, for the ranks that read it; whether there is anything. */
static bool add_messages(CornuPipeline *p, const CornuPipelineTask *task, CornuExchange *exchange)
{
    const int phase = cornu__task_phase(p, task), from = cornu__phase_rank(p, phase);
    bool      any = false;
    for (int c = 0; c < p->stages.crossing_count; c++) {
        if (p->stages.crossings[c].from != phase) continue;
        const uint32_t to = readers_of(p, &p->stages.crossings[c]) & ~(UINT32_C(1) << from);
        const int      buffer = buffer_of(p, c, task->microbatch);
        any |= to != 0;
        if (from != p->ranks.rank && !(to >> p->ranks.rank & 1)) continue;
        cornu__ranks_add(&p->ranks, exchange, from, to, p->crossing[buffer]);
        if (to) p->exchanged[buffer] = task->slot + 1;
    }
    return any;
}

CornuStatus cornu__pipeline_exchange(CornuPipeline *p, int first, int end, int microbatches)
{
    if (p->ranks.count == 1) return CORNU_OK;
    const int      slot = p->timetable.tasks[first].slot;
    CornuExchange *exchange = &p->exchanges[slot];
    bool           any = false;
    if (slot == 0) {   /* of a new run */
        p->send_count = p->receive_count = p->finished = 0;
        for (int i = 0; i < p->crossing_count; i++) p->exchanged[i] = 0;
    }
    *exchange = (CornuExchange){ .what = "values between stages",
                                 .sends = p->sends + p->send_count,
                                 .receives = p->receives + p->receive_count };
    for (int i = first; i < end; i++)
        if (p->timetable.tasks[i].microbatch < microbatches)
            any |= add_messages(p, &p->timetable.tasks[i], exchange);
    p->send_count += exchange->send_count;
    p->receive_count += exchange->receive_count;
    return any ? cornu__exchange_start(p->ranks.processes, exchange) : CORNU_OK;
}

CornuStatus cornu__pipeline_end(CornuPipeline *p)
{
    if (p->ranks.count == 1) return CORNU_OK;
    CORNU__TRY(finish(p, p->timetable.slots));
    return cornu__ranks_share(&p->ranks);
}
