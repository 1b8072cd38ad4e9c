#include "exchange.h"

#include <stdio.h>
#include <string.h>

#include "../../integer_internal.h"
#include "../../memory_internal.h"
#include "../../processes/processes_internal.h"
#include "../../program_internal.h"
#include "../kernels/collective.h"
#include "buffer.h"
#include "tree.h"

/* Elements that one piece of work finishes; and bytes up to which it is cheaper that every process
 * gets all elements of a sum and finishes it than that it waits for a second exchange. */
enum { BLOCK = 256, PIECE = 16 * BLOCK, SMALL = 64 << 10 };

struct CornuCollective {
    const CornuPlan     *plan;
    const CornuPlanStep *step;
    CornuProcesses      *processes;
    CornuOpId            id;
    CornuDtype           dtype;
    int64_t              count;      /* elements of a shard's operand */
    int64_t              out_count;  /* and of its result */
    size_t               size;       /* bytes of an element */
    int                  shards, rank, ranks;
    CornuRange           own;
    bool                 whole;      /* every process finishes all elements of a sum */
    CornuTree            tree;       /* of a sum over all shards */
    size_t               sum_bytes, received_bytes;
    char                *sums;       /* of the own nodes of more than one shard */
    char                *received;   /* these two are the executable's memory */
    bool                *readers;    /* in groups, by rank and shard: see reads() */
    const void         **terms;      /* what a sum adds: by shard, or by node of the tree */
    CornuMessage        *sends, *receives;
    CornuExchange        exchange;
    CornuBuffer         *buffer;     /* that a gather is left or under way to; NULL: none is */
    bool                 begun;      /* that gather */
    CornuExchangeEvent  *events;     /* of the exchanges of a run; NULL: nobody wants to know */
    char                 what[96], parts[112];
};

/* ---- Making ---- */

static bool is_sum(const CornuCollective *c) { return c->id != CORNU_OP_ALL_GATHER; }

static const CornuAttributes *attributes_of(const CornuCollective *c)
{
    return &c->plan->program->ops[c->step->op].attributes;
}

static bool is_grouped(const CornuCollective *c)
{
    return attributes_of(c)->shards.groups.count > 0;
}

/* Whether each shard has an operand of its own; else nothing is exchanged. */
static bool varies(const CornuCollective *c)
{
    return c->plan->varies[c->plan->operands[c->step->in_first]];
}

/* The elements of the sum that a rank finishes. */
typedef struct { int64_t first, count; } Part;

static Part part_of(const CornuCollective *c, int rank)
{
    const int64_t each = 64 / (int64_t)c->size;
    if (c->id == CORNU_OP_REDUCE_SCATTER) {
        const CornuRange range = cornu__range_of(c->shards, rank, c->ranks);
        return (Part){ range.first * c->out_count, range.count * c->out_count };
    }
    if (c->whole) return (Part){ 0, c->count };
    const int64_t pieces = ceil_divide(c->count, each);
    const int64_t first = pieces * rank / c->ranks * each;
    const int64_t end = smaller(c->count, pieces * (rank + 1) / c->ranks * each);
    return (Part){ first, end - first };
}

static int nodes_of(const CornuCollective *c, int rank)
{
    return c->tree.first[rank + 1] - c->tree.first[rank];
}

/* Own nodes before this one that are of more than one shard, and so need a sum. */
static int sums_before(const CornuCollective *c, int node)
{
    int sums = 0;
    for (int i = c->tree.first[c->rank]; i < node; i++) sums += c->tree.nodes[i].count > 1;
    return sums;
}

/* Bytes of one node's elements in `sums` and `received`. */
static size_t row_bytes(const CornuCollective *c, int64_t count)
{
    return cornu__aligned((size_t)count * c->size);
}

/* Whether each shard has a result of its own. */
static bool result_varies(const CornuCollective *c)
{
    return c->plan->varies[c->plan->operands[c->step->out_first]];
}

/* In groups: whether a rank computes a result, or the one that all have, of what the shard has. */
static bool reads(const CornuCollective *c, int rank, int shard)
{
    return c->readers[(size_t)rank * (size_t)c->shards + (size_t)shard];
}

static CornuStatus find_readers(CornuCollective *c)
{
    c->readers = cornu__allocate((size_t)c->ranks * (size_t)c->shards, sizeof *c->readers);
    if (!c->readers) return CORNU_ERR_MEMORY;
    for (int rank = 0; rank < c->ranks; rank++) {
        const CornuRange of = cornu__range_of(c->shards, rank, c->ranks);
        for (int s = 0; s < (result_varies(c) ? of.count : 1); s++) {
            const CornuMembers group = cornu__members(attributes_of(c), c->shards, of.first + s);
            for (int i = 0; i < group.size; i++)
                c->readers[(size_t)rank * (size_t)c->shards +
                           (size_t)cornu__member(&group, i)] = true;
        }
    }
    return CORNU_OK;
}

static CornuStatus allocate(CornuCollective *c)
{
    const size_t shards = (size_t)c->shards, ranks = (size_t)c->ranks;
    size_t       messages = ranks;
    if (varies(c) && is_grouped(c)) {
        CORNU__TRY(find_readers(c));
        messages = ranks * shards;
        c->received_bytes = shards * row_bytes(c, c->count);
    } else if (varies(c) && is_sum(c)) {
        CORNU__TRY(cornu__tree_make(&c->tree, c->shards, c->ranks));
        messages = ranks * (size_t)nodes_of(c, c->rank) + (size_t)c->tree.count + ranks;
        c->sum_bytes = (size_t)sums_before(c, c->tree.first[c->rank + 1]) * row_bytes(c, c->count);
        c->received_bytes = (size_t)c->tree.count * row_bytes(c, part_of(c, c->rank).count);
    }
    c->terms = cornu__allocate(shards, sizeof *c->terms);
    c->sends = cornu__allocate(messages, sizeof *c->sends);
    c->receives = cornu__allocate(messages, sizeof *c->receives);
    return c->terms && c->sends && c->receives ? CORNU_OK : CORNU_ERR_MEMORY;
}

size_t cornu__collective_bytes(const CornuCollective *c)
{
    return c->sum_bytes + c->received_bytes;
}

void cornu__collective_use(CornuCollective *c, char *memory)
{
    c->sums = memory;
    c->received = memory + c->sum_bytes;
}

CornuCollective *cornu__collective_create(const CornuPlan *plan, const CornuPlanStep *step)
{
    CornuCollective      *c = cornu__allocate(1, sizeof *c);
    const CornuProgramOp *op = &plan->program->ops[step->op];
    if (!c) return NULL;
    c->plan = plan;
    c->step = step;
    c->processes = plan->host->processes;
    c->id = op->id;
    c->dtype = step->types[0].dtype;
    c->size = cornu_dtype_size(c->dtype);
    c->count = cornu_type_count(step->types[0]);
    c->out_count = cornu_type_count(step->types[step->in_count]);
    c->shards = cornu__plan_shards(plan);
    c->rank = cornu_process_rank(c->processes);
    c->ranks = cornu_process_count(c->processes);
    c->own = cornu__plan_own(plan);
    c->whole = c->id == CORNU_OP_ALL_REDUCE && (size_t)c->count * c->size <= SMALL;
    snprintf(c->what, sizeof c->what, "%s%s%.64s", cornu_op_name(op->id), *op->scope ? " in " : "",
             op->scope);
    snprintf(c->parts, sizeof c->parts, "%s, parts", c->what);
    if (allocate(c) == CORNU_OK) return c;
    cornu__collective_free(c);
    return NULL;
}

void cornu__collective_free(CornuCollective *c)
{
    if (!c) return;
    cornu__gather_end(c);
    cornu__tree_free(&c->tree);
    cornu__release(c->readers);
    cornu__release(c->terms);
    cornu__release(c->sends);
    cornu__release(c->receives);
    cornu__release(c);
}

/* ---- What is told of it ---- */

/* A large all_reduce gathers the parts that each process has finished. */
int cornu__collective_exchanges(const CornuCollective *c)
{
    if (!varies(c)) return 0;
    return is_sum(c) && !is_grouped(c) && c->id == CORNU_OP_ALL_REDUCE && !c->whole ? 2 : 1;
}

void cornu__collective_report(CornuCollective *c, int begin_step, int end_step,
                              CornuExchangeEvent *to)
{
    c->events = to;
    for (int i = 0; i < cornu__collective_exchanges(c); i++)
        to[i] = (CornuExchangeEvent){ .name = i ? c->parts : c->what,
                                      .begin_step = i ? end_step : begin_step,
                                      .end_step = end_step };
}

/* ---- Messages ---- */

static void begin_messages(CornuCollective *c)
{
    c->exchange = (CornuExchange){ .what = c->what, .sends = c->sends, .receives = c->receives };
}

static void send_to(CornuCollective *c, int rank, const void *data, size_t bytes)
{
    c->sends[c->exchange.send_count++] =
        (CornuMessage){ rank, (void *)(uintptr_t)data, bytes };   /* only ever read */
}

static void receive_from(CornuCollective *c, int rank, void *data, size_t bytes)
{
    c->receives[c->exchange.receive_count++] = (CornuMessage){ rank, data, bytes };
}

static CornuStatus begin(CornuCollective *c)
{
    return cornu__exchange_start(c->processes, &c->exchange);
}

static int64_t bytes_of(const CornuMessage *messages, int count)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += (int64_t)messages[i].bytes;
    return bytes;
}

/* Exchange i of the run has ended. */
static void note(CornuCollective *c, int i)
{
    const CornuExchange *exchange = &c->exchange;
    c->events[i].bytes_sent = bytes_of(exchange->sends, exchange->send_count);
    c->events[i].bytes_received = bytes_of(exchange->receives, exchange->receive_count);
    c->events[i].begin_s = exchange->begin_s;
    c->events[i].end_s = exchange->end_s;
}

static CornuStatus end(CornuCollective *c, int i)
{
    CORNU__TRY(cornu__exchange_finish(c->processes, &c->exchange));
    if (c->events) note(c, i);
    return CORNU_OK;
}

/* Everybody's part of one memory to all. */
static void list_gather(CornuCollective *c, char *memory,
                        Part (*part)(const CornuCollective *c, int rank))
{
    const Part own = part(c, c->rank);
    begin_messages(c);
    for (int rank = 0; rank < c->ranks; rank++) {
        const Part of = part(c, rank);
        if (rank == c->rank) continue;
        send_to(c, rank, memory + (size_t)own.first * c->size, (size_t)own.count * c->size);
        receive_from(c, rank, memory + (size_t)of.first * c->size, (size_t)of.count * c->size);
    }
}

/* ---- The operands and results of own shards, by number ---- */

static const char *operand(const CornuCollective *c, void *const *addresses, int own)
{
    return addresses[own * c->plan->operand_count + c->step->in_first];
}

static char *result(const CornuCollective *c, void *const *addresses, int own)
{
    return addresses[own * c->plan->operand_count + c->step->out_first];
}

/* ---- Sums over all shards ---- */

typedef struct {
    const CornuCollective *collective;
    int64_t                first, count;   /* elements, from the terms' first on */
    char                  *to;
} Finish;

/* Adds up the terms, one for each node, in the order of the tree. */
static void finish_piece(void *context, int64_t piece, int thread)
{
    (void)thread;
    const Finish          *finish = context;
    const CornuCollective *c = finish->collective;
    const int64_t          end = smaller(finish->count, (piece + 1) * PIECE);
    _Alignas(64) char      sums[CORNU_TREE_DEEPEST][BLOCK * sizeof(double)];
    for (int64_t at = piece * PIECE; at < end; at += BLOCK) {
        const int64_t some = smaller(BLOCK, end - at);
        int           depth = 0;
        for (int i = 0; i < c->tree.order_count; i++) {
            const int node = c->tree.order[i];
            if (node == CORNU_TREE_ADD) {
                depth--;
                cornu__tree_add(c->dtype, sums[depth - 1], sums[depth], some);
            } else {
                memcpy(sums[depth++],
                       (const char *)c->terms[node] + (size_t)(finish->first + at) * c->size,
                       (size_t)some * c->size);
            }
        }
        memcpy(finish->to + (size_t)at * c->size, sums[0], (size_t)some * c->size);
    }
}

/* to = elements first, first + 1, … of the sum of the terms. */
static void finish_tree(CornuCollective *c, int64_t first, int64_t count, char *to)
{
    CornuThreads *threads = c->plan->host->threads;
    if (c->tree.is_regular) {
        const void *terms[CORNU_MAX_SHARDS];
        for (int i = 0; i < c->tree.count; i++)
            terms[i] = (const char *)c->terms[i] + (size_t)first * c->size;
        cornu__tree_sum(threads, c->dtype, count, terms, c->tree.count, to);
        return;
    }
    Finish finish = { c, first, count, to };
    cornu__threads_run(threads, ceil_divide(count, PIECE), finish_piece, &finish);
}

/* Adds up what own shards have; a node of one shard is in memory already. */
static const char *sum_node(CornuCollective *c, void *const *addresses, int node)
{
    const CornuRange shards = c->tree.nodes[node];
    const int        first = shards.first - c->own.first;
    const void      *terms[CORNU_MAX_SHARDS];
    if (shards.count == 1) return operand(c, addresses, first);
    for (int i = 0; i < shards.count; i++) terms[i] = operand(c, addresses, first + i);
    char *sum = c->sums + (size_t)sums_before(c, node) * row_bytes(c, c->count);
    cornu__tree_sum(c->plan->host->threads, c->dtype, c->count, terms, shards.count, sum);
    return sum;
}

/* When the exchange has ended, terms[i] are the elements of node i that this process finishes. */
static CornuStatus begin_sum(CornuCollective *c, void *const *addresses)
{
    const CornuTree *tree = &c->tree;
    const Part       own = part_of(c, c->rank);
    const size_t     bytes = (size_t)own.count * c->size;
    begin_messages(c);
    for (int i = tree->first[c->rank]; i < tree->first[c->rank + 1]; i++) {
        const char *sum = sum_node(c, addresses, i);
        c->terms[i] = sum + (size_t)own.first * c->size;
        for (int rank = 0; rank < c->ranks; rank++) {
            const Part of = part_of(c, rank);
            if (rank == c->rank) continue;
            send_to(c, rank, sum + (size_t)of.first * c->size, (size_t)of.count * c->size);
        }
    }
    for (int rank = 0; rank < c->ranks; rank++)
        for (int i = tree->first[rank]; i < tree->first[rank + 1] && rank != c->rank; i++) {
            char *to = c->received + (size_t)i * row_bytes(c, own.count);
            c->terms[i] = to;
            receive_from(c, rank, to, bytes);
        }
    return begin(c);
}

static CornuStatus end_sum(CornuCollective *c, void *const *addresses)
{
    CORNU__TRY(end(c, 0));
    if (c->id == CORNU_OP_REDUCE_SCATTER) {
        for (int i = 0; i < c->own.count; i++)
            finish_tree(c, i * c->out_count, c->out_count, result(c, addresses, i));
        return CORNU_OK;
    }
    const Part own = part_of(c, c->rank);
    char      *to = result(c, addresses, 0);
    finish_tree(c, 0, own.count, to + (size_t)own.first * c->size);
    if (c->whole) return CORNU_OK;
    list_gather(c, to, part_of);
    CORNU__TRY(begin(c));
    return end(c, 1);
}

/* ---- The others ---- */

static Part rows_of(const CornuCollective *c, int rank)
{
    const CornuRange range = cornu__range_of(c->shards, rank, c->ranks);
    return (Part){ range.first * c->count, range.count * c->count };
}

static void list_rows(CornuCollective *c, void *const *addresses)
{
    const size_t bytes = (size_t)c->count * c->size;
    char        *to = result(c, addresses, 0);
    for (int i = 0; i < c->own.count; i++) {
        char *place = to + (size_t)(c->own.first + i) * bytes;
        if (place != operand(c, addresses, i)) memcpy(place, operand(c, addresses, i), bytes);
    }
    list_gather(c, to, rows_of);
}

/* The op on an own shard, whose group has its operands at terms[shard]. */
static void run_group(CornuCollective *c, char *to, int shard)
{
    const CornuMembers group = cornu__members(attributes_of(c), c->shards, shard);
    const size_t       bytes = (size_t)c->count * c->size;
    const int64_t      first = c->id == CORNU_OP_REDUCE_SCATTER ? group.rank * c->out_count : 0;
    const void        *terms[CORNU_MAX_SHARDS];
    for (int i = 0; i < group.size; i++)
        terms[i] = (const char *)c->terms[cornu__member(&group, i)] + (size_t)first * c->size;
    if (is_sum(c))
        cornu__tree_sum(c->plan->host->threads, c->dtype, c->out_count, terms, group.size, to);
    else
        for (int i = 0; i < group.size; i++) memcpy(to + (size_t)i * bytes, terms[i], bytes);
}

/* Each rank sends what its shards have to those ranks that have others of their groups. */
static CornuStatus exchange_operands(CornuCollective *c, void *const *addresses)
{
    const size_t bytes = (size_t)c->count * c->size;
    begin_messages(c);
    for (int rank = 0; rank < c->ranks; rank++) {
        const CornuRange of = cornu__range_of(c->shards, rank, c->ranks);
        for (int i = 0; i < c->own.count && rank != c->rank; i++)
            if (reads(c, rank, c->own.first + i))
                send_to(c, rank, operand(c, addresses, i), bytes);
        for (int shard = of.first; shard < of.first + of.count; shard++) {
            char *to = c->received + (size_t)shard * row_bytes(c, c->count);
            c->terms[shard] = rank == c->rank ? operand(c, addresses, shard - of.first) : to;
            if (rank != c->rank && reads(c, c->rank, shard)) receive_from(c, rank, to, bytes);
        }
    }
    CORNU__TRY(begin(c));
    return end(c, 0);
}

/* In groups, or of one operand that all shards have. */
static CornuStatus run_groups(CornuCollective *c, void *const *addresses)
{
    if (varies(c)) CORNU__TRY(exchange_operands(c, addresses));
    else for (int shard = 0; shard < c->shards; shard++) c->terms[shard] = operand(c, addresses, 0);
    for (int i = 0; i < (result_varies(c) ? c->own.count : 1); i++)
        run_group(c, result(c, addresses, i), c->own.first + i);
    return CORNU_OK;
}

CornuStatus cornu__collective_begin(CornuCollective *c, void *const *addresses)
{
    if (is_sum(c)) return begin_sum(c, addresses);
    list_rows(c, addresses);
    return begin(c);
}

CornuStatus cornu__collective_end(CornuCollective *c, void *const *addresses)
{
    return is_sum(c) ? end_sum(c, addresses) : end(c, 0);
}

CornuStatus cornu__collective_run(CornuCollective *c, void *const *addresses)
{
    if (is_grouped(c) || !varies(c)) return run_groups(c, addresses);
    CORNU__TRY(cornu__collective_begin(c, addresses));
    return cornu__collective_end(c, addresses);
}

void cornu__gather_leave(CornuCollective *c, void *const *addresses, CornuBuffer *buffer)
{
    list_rows(c, addresses);
    c->buffer = buffer;
    c->begun = false;
    cornu__host_gathers(buffer, c);
}

CornuStatus cornu__gather_begin(CornuCollective *c)
{
    if (!c->buffer || c->begun) return CORNU_OK;
    c->begun = true;
    return begin(c);
}

CornuStatus cornu__gather_end(CornuCollective *c)
{
    if (!c->buffer) return CORNU_OK;
    const CornuStatus status = cornu__gather_begin(c);
    cornu__host_gathers(c->buffer, NULL);
    c->buffer = NULL;
    return status ? status : end(c, 0);
}

void cornu__gather_note(CornuCollective *c)
{
    if (c->buffer && c->begun && c->events && cornu__exchange_ended(c->processes, &c->exchange))
        note(c, 0);
}
