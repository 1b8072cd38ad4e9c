/* What ranks that run programs of their own exchange, and graphs that they run together. */
#include "ranks_internal.h"

#include "../device/device_internal.h"
#include "../device/memory_internal.h"

/* ---- Ranks ---- */

CornuRanks cornu__ranks_of(const CornuDevice *device)
{
    if (device->groups < 2) return (CornuRanks){ .count = 1, .sharers = 1 };
    const int sharers = cornu__device_sharers(device), rank = cornu_process_rank(device->processes);
    return (CornuRanks){ .processes = device->processes, .count = device->groups,
                         .rank = rank / sharers, .sharers = sharers, .place = rank % sharers };
}

uint32_t cornu__ranks_all(const CornuRanks *ranks)
{
    return ranks->count < 32 ? (UINT32_C(1) << ranks->count) - 1 : ~UINT32_C(0);
}

int cornu__first_rank(uint32_t ranks)
{
    int first = 0;
    while (!(ranks >> first & 1)) first++;
    return first;
}

bool cornu__ranks_deal(const CornuBuffer *buffer, bool written)
{
    return (buffer->held.use == CORNU_USE_WEIGHTS || buffer->held.use == CORNU_USE_SLOTS) &&
           (written || buffer->type.shape.rank > 0);
}

CornuStatus cornu__ranks_begin(CornuRanks *ranks, int most, int messages)
{
    const size_t room = ((size_t)most + (size_t)messages) * (size_t)ranks->count + 1;
    if (ranks->count == 1) return CORNU_OK;
    ranks->written = cornu__allocate((size_t)most + 1, sizeof *ranks->written);
    ranks->sends = cornu__allocate(room, sizeof *ranks->sends);
    ranks->receives = cornu__allocate(room, sizeof *ranks->receives);
    return ranks->written && ranks->sends && ranks->receives ? CORNU_OK : CORNU_ERR_MEMORY;
}

void cornu__ranks_end(CornuRanks *ranks)
{
    cornu__release(ranks->written);
    cornu__release(ranks->sends);
    cornu__release(ranks->receives);
}

void cornu__ranks_add(const CornuRanks *ranks, CornuExchange *exchange, int from, uint32_t to,
                      CornuBuffer *buffer)
{
    CornuMessage *sends = (CornuMessage *)(uintptr_t)exchange->sends;   /* the caller's */
    CornuMessage *receives = (CornuMessage *)(uintptr_t)exchange->receives;
    if (ranks->rank != from && !(to >> ranks->rank & 1)) return;
    size_t bytes;
    void  *data = buffer->device->class->buffer_data(buffer, &bytes);
    if (ranks->rank != from) {
        receives[exchange->receive_count++] =
            (CornuMessage){ from * ranks->sharers + ranks->place, data, bytes };
        return;
    }
    for (int r = 0; r < ranks->count; r++)
        if (r != from && (to >> r & 1))
            sends[exchange->send_count++] =
                (CornuMessage){ r * ranks->sharers + ranks->place, data, bytes };
}

static CornuStatus exchange_now(const CornuRanks *ranks, CornuExchange *exchange)
{
    CORNU__TRY(cornu__exchange_start(ranks->processes, exchange));
    return cornu__exchange_finish(ranks->processes, exchange);
}

CornuStatus cornu__ranks_share(CornuRanks *ranks)
{
    bool          any = false;
    CornuExchange exchange = { .what = "what a stage has written", .sends = ranks->sends,
                               .receives = ranks->receives };
    for (int i = 0; i < ranks->written_count; i++) {
        const CornuWritten *of = &ranks->written[i];
        const uint32_t has = of->buffer->holders ? of->buffer->holders : cornu__ranks_all(ranks);
        any |= (has & ~of->by) != 0;
        if (has & ~of->by)
            cornu__ranks_add(ranks, &exchange, cornu__first_rank(of->by), has & ~of->by,
                             of->buffer);
    }
    return any ? exchange_now(ranks, &exchange) : CORNU_OK;
}

/* ---- A graph that updates variables ---- */

static CornuStatus lower(CornuRankGraph *self)
{
    CORNU__TRY(cornu__rewrite(self->graph, NULL));
    CornuPrepared prepared = { .program = self->program = cornu_program_create() };
    if (!self->program) return cornu_error_take();
    CornuStatus status = cornu__graph_lower(self->graph, &prepared);
    if (!status) status = cornu__graph_partition(self->graph, &prepared);
    self->program = prepared.program;
    self->inputs = prepared.inputs;
    cornu__release(prepared.laid);
    return status;
}

/* A variable that the stages' programs have dealt stays where it is. */
static CornuStatus share(CornuRankGraph *self, uint32_t *held, bool *deals)
{
    const CornuProgram *program = self->program;
    for (int i = 0; i < program->input_count; i++) {
        const CornuBuffer *buffer = self->inputs[i];
        held[i] = buffer->holders ? buffer->holders : cornu__ranks_all(&self->ranks);
        deals[i] = !buffer->holders && cornu__ranks_deal(buffer, false);
    }
    CORNU__TRY(cornu__share_program(program, self->ranks.count, self->ranks.rank, held, deals,
                                    &self->shared));
    for (int i = 0; i < program->input_count; i++)
        if (deals[i] || (self->inputs[i]->holders && held[i] & ~self->inputs[i]->holders))
            CORNU__TRY(self->inputs[i]->device->class->buffer_deal(self->inputs[i], held[i]));
    return CORNU_OK;
}

static void list_written(CornuRankGraph *self)
{
    const CornuProgram *program = self->program;
    for (int i = 0; i < program->output_count; i++)
        self->ranks.written[i] = (CornuWritten){ self->inputs[program->outputs[i].alias],
                                                 self->shared.written[i] };
    self->ranks.written_count = program->output_count;
}

static CornuStatus make_buffers(CornuRankGraph *self)
{
    const CornuShared *shared = &self->shared;
    int                in = 0, out = 0;
    self->crossing = cornu__allocate((size_t)shared->crossing_count + 1, sizeof(CornuBuffer *));
    if (!self->crossing) return CORNU_ERR_MEMORY;
    for (int c = 0; c < shared->crossing_count; c++) {
        const CornuValue value = shared->crossings[c].value;
        CornuDevice     *device = self->graph->device;
        self->crossing[c] = cornu_buffer_create(
            device, cornu_program_buffer_type(self->program, value, device->shards),
            .use = CORNU_USE_ACTIVATIONS, .name = "a value that stages exchange",
            .per_shard = self->program->values[value].varies);
        if (!self->crossing[c]) return cornu_error_take();
    }
    for (int i = 0; i < shared->rounds; i++) {
        const CornuProgram *program = shared->phases[i].program;
        if (program->input_count > in) in = program->input_count;
        if (program->output_count > out) out = program->output_count;
    }
    self->in = cornu__allocate((size_t)in + 1, sizeof(CornuBuffer *));
    self->out = cornu__allocate((size_t)out + 1, sizeof(CornuBuffer *));
    return self->in && self->out ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus compile(CornuRankGraph *self)
{
    for (int i = 0; i < self->shared.rounds; i++) {
        if (self->shared.phases[i].program->output_count == 0) continue;
        self->executables[i] = cornu_device_compile(self->graph->device,
                                                    self->shared.phases[i].program);
        if (!self->executables[i]) return cornu_error_take();
    }
    return CORNU_OK;
}

static CornuStatus prepare(CornuRankGraph *self)
{
    CORNU__TRY(lower(self));
    const size_t inputs = (size_t)self->program->input_count + 1;
    uint32_t    *held = cornu__allocate(inputs, sizeof *held);
    bool        *deals = cornu__allocate(inputs, sizeof *deals);
    CornuStatus  status = held && deals ? share(self, held, deals) : CORNU_ERR_MEMORY;
    cornu__release(held);
    cornu__release(deals);
    CORNU__TRY(status);
    CORNU__TRY(cornu__ranks_begin(&self->ranks, self->program->output_count,
                                  self->shared.crossing_count));
    list_written(self);
    CORNU__TRY(make_buffers(self));
    return compile(self);
}

CornuRankGraph *cornu__rank_graph_create(CornuGraph *graph)
{
    CornuRankGraph *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    self->graph = graph;
    self->ranks = cornu__ranks_of(graph->device);
    if (prepare(self) == CORNU_OK) return self;
    cornu__rank_graph_free(self);
    return cornu__null();
}

void cornu__rank_graph_free(CornuRankGraph *self)
{
    if (!self) return;
    for (int i = 0; i < CORNU__SHARE_ROUNDS; i++) cornu_executable_release(self->executables[i]);
    for (int c = 0; self->crossing && c < self->shared.crossing_count; c++)
        cornu_buffer_free(self->crossing[c]);
    cornu__shared_free(&self->shared);
    cornu__ranks_end(&self->ranks);
    cornu_program_free(self->program);
    cornu__release(self->inputs);
    cornu__release(self->crossing);
    cornu__release(self->in);
    cornu__release(self->out);
    cornu__release(self);
}

static CornuStatus run_phase(CornuRankGraph *self, int round)
{
    const CornuPhase *phase = &self->shared.phases[round];
    if (!self->executables[round]) return CORNU_OK;
    for (int i = 0; i < phase->program->input_count; i++)
        self->in[i] = phase->inputs[i] < 0 ? self->crossing[~phase->inputs[i]]
                                           : self->inputs[phase->inputs[i]];
    for (int i = 0; i < phase->program->output_count; i++)
        self->out[i] = phase->outputs[i] < 0 ? NULL : self->crossing[phase->outputs[i]];
    return cornu_executable_run(self->executables[round], self->in, self->out);
}

static CornuStatus exchange_round(CornuRankGraph *self, int round)
{
    CornuExchange exchange = { .what = "numbers of all stages", .sends = self->ranks.sends,
                               .receives = self->ranks.receives };
    for (int c = 0; c < self->shared.crossing_count; c++)
        if (self->shared.crossings[c].round == round)
            cornu__ranks_add(&self->ranks, &exchange, self->shared.crossings[c].from,
                             ~UINT32_C(0), self->crossing[c]);
    return exchange_now(&self->ranks, &exchange);
}

CornuStatus cornu__rank_graph_run(CornuRankGraph *self)
{
    for (int round = 0; round < self->shared.rounds; round++) {
        if (round > 0) CORNU__TRY(exchange_round(self, round - 1));
        const CornuStatus status = run_phase(self, round);
        if (status) return cornu__processes_fail(self->ranks.processes, status);
    }
    return cornu__ranks_share(&self->ranks);
}
