/* Sharing a program: who can compute each value, what is sent, the programs of a rank. */
#include "share.h"

#include "../memory_internal.h"
#include "../program_internal.h"

typedef struct {
    const CornuProgram *program;
    uint32_t            all;      /* ranks */
    uint32_t           *held;     /* of each input */
    uint32_t           *ranks;    /* of each value: those that can compute it */
    int                *round;    /* of each value: the first in which it can be computed */
    bool               *sent;     /* of each value: to all */
} Sharing;

/* Whether the op goes on with a number that all have been sent the terms of: a sum over stages. */
static bool adds_to_common(const Sharing *sharing, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(sharing->program, op);
    bool              common = false, numbers = true;
    for (int k = 0; k < op->in_count; k++) {
        common |= sharing->ranks[in[k]] == sharing->all && sharing->round[in[k]] > 0;
        numbers &= cornu_type_count(cornu_program_type(sharing->program, in[k])) == 1;
    }
    return common && numbers;
}

/* An op of what no rank has together is for all, once its operands have been sent. */
static CornuStatus place_op(Sharing *sharing, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(sharing->program, op);
    uint32_t          ranks = sharing->all;
    int               round = 0;
    for (int k = 0; k < op->in_count; k++) ranks &= sharing->ranks[in[k]];
    if (adds_to_common(sharing, op)) ranks = 0;
    for (int k = 0; k < op->in_count; k++) {
        const bool sends = !ranks && sharing->ranks[in[k]] != sharing->all;
        const int  after = sharing->round[in[k]] + sends;
        sharing->sent[in[k]] |= sends;
        if (after > round) round = after;
    }
    if (round >= CORNU__SHARE_ROUNDS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s of what several stages have takes more "
                           "than %d exchanges, expected fewer", op->scope,
                           cornu_program_op_name(op), CORNU__SHARE_ROUNDS - 1);
    for (int k = 0; k < op->out_count; k++) {
        sharing->ranks[op->out_first + k] = ranks ? ranks : sharing->all;
        sharing->round[op->out_first + k] = round;
    }
    return CORNU_OK;
}

static CornuStatus place_all(Sharing *sharing)
{
    const CornuProgram *program = sharing->program;
    for (CornuValue v = 0; v < program->value_count; v++) sharing->sent[v] = false;
    for (int i = 0; i < program->input_count; i++)
        sharing->ranks[program->inputs[i]] = sharing->held[i];
    for (int i = 0; i < program->op_count; i++)
        CORNU__TRY(place_op(sharing, &program->ops[i]));
    return CORNU_OK;
}

/* Variables go where what is written into them is computed. That takes ranks away from them, and so
 * from what reads them. */
static CornuStatus settle(Sharing *sharing, const bool *deals)
{
    const CornuProgram *program = sharing->program;
    for (bool moved = true; moved;) {
        moved = false;
        CORNU__TRY(place_all(sharing));
        for (int i = 0; i < program->output_count; i++) {
            const int      input = program->outputs[i].alias;
            const uint32_t ranks = sharing->ranks[program->outputs[i].value];
            if (!deals[input] || !(sharing->held[input] & ~ranks) ||
                !(sharing->held[input] & ranks))
                continue;
            sharing->held[input] &= ranks;
            moved = true;
        }
    }
    return CORNU_OK;
}

static int first_of(uint32_t ranks)
{
    int first = 0;
    while (!(ranks >> first & 1)) first++;
    return first;
}

static CornuStatus list_crossings(const Sharing *sharing, CornuShared *to)
{
    const CornuProgram *program = sharing->program;
    to->crossings = cornu__allocate((size_t)program->value_count + 1, sizeof *to->crossings);
    to->written = cornu__allocate((size_t)program->output_count + 1, sizeof *to->written);
    if (!to->crossings || !to->written) return CORNU_ERR_MEMORY;
    for (CornuValue v = 0; v < program->value_count; v++)
        if (sharing->sent[v])
            to->crossings[to->crossing_count++] =
                (CornuSharedValue){ v, first_of(sharing->ranks[v]), sharing->round[v] };
    for (int i = 0; i < program->output_count; i++)
        to->written[i] = sharing->ranks[program->outputs[i].value];
    for (CornuValue v = 0; v < program->value_count; v++)
        if (sharing->round[v] >= to->rounds) to->rounds = sharing->round[v] + 1;
    return CORNU_OK;
}

/* A value that is sent is read by all as it was sent. */
static CornuStatus make_phase(const Sharing *sharing, const CornuShared *shared, int rank,
                              int round, CornuPhase *to)
{
    const CornuProgram *program = sharing->program;
    CornuPart           part;
    CornuStatus         status = cornu__part_begin(&part, program, shared->crossing_count);
    for (int i = 0; i < program->op_count && !status; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const int             of = sharing->round[op->out_first];
        const bool given = of < round && op->out_count == 1 && sharing->sent[op->out_first];
        part.computes[i] = (sharing->ranks[op->out_first] >> rank & 1) && !given && of <= round;
    }
    for (int i = 0; i < program->output_count && !status; i++)
        part.writes[i] = round == shared->rounds - 1 && (shared->written[i] >> rank & 1);
    for (int c = 0; c < shared->crossing_count && !status; c++)
        part.crossings[c] = (CornuPartCrossing){
            shared->crossings[c].value,
            shared->crossings[c].round == round && shared->crossings[c].from == rank };
    if (!status) status = cornu__part_make(&part, to);
    cornu__part_end(&part);
    return status;
}

static CornuStatus share(Sharing *sharing, int rank, const bool *deals, CornuShared *to)
{
    const CornuProgram *program = sharing->program;
    CORNU__TRY(settle(sharing, deals));
    CORNU__TRY(list_crossings(sharing, to));
    for (int i = 0; i < program->output_count; i++) {
        uint32_t *has = &sharing->held[program->outputs[i].alias];
        if (!(*has & to->written[i])) *has |= to->written[i];   /* who computes it has it as well */
        to->written[i] &= *has;
    }
    for (int round = 0; round < to->rounds; round++)
        CORNU__TRY(make_phase(sharing, to, rank, round, &to->phases[round]));
    return CORNU_OK;
}

CornuStatus cornu__share_program(const CornuProgram *program, int ranks, int rank, uint32_t *held,
                                 const bool *deals, CornuShared *to)
{
    const size_t values = (size_t)program->value_count + 1;
    Sharing      sharing = { .program = program, .held = held,
                             .all = ranks < 32 ? (UINT32_C(1) << ranks) - 1 : ~UINT32_C(0),
                             .ranks = cornu__allocate(values, sizeof *sharing.ranks),
                             .round = cornu__allocate(values, sizeof *sharing.round),
                             .sent = cornu__allocate(values, sizeof *sharing.sent) };
    *to = (CornuShared){ .rounds = 1 };
    const bool  made = sharing.ranks && sharing.round && sharing.sent;
    CornuStatus status = made ? share(&sharing, rank, deals, to) : CORNU_ERR_MEMORY;
    cornu__release(sharing.ranks);
    cornu__release(sharing.round);
    cornu__release(sharing.sent);
    return status;
}

void cornu__shared_free(CornuShared *shared)
{
    for (int i = 0; i < CORNU__SHARE_ROUNDS; i++) cornu__phase_free(&shared->phases[i]);
    cornu__release(shared->crossings);
    cornu__release(shared->written);
    *shared = (CornuShared){ .crossing_count = 0 };
}
