/* Cutting a recorded step: which phase each op is in, what crosses, the program of each phase. */
#include "stages.h"

#include <stdio.h>
#include <string.h>

#include "../memory_internal.h"
#include "../program_internal.h"

/* ---- Layers ---- */

/* The number of the op's layer, or -1; *backward: the op is of its gradient. */
static int layer_of(const CornuLookup *numbers, const char *scope, bool *backward)
{
    static const char suffix[] = "gradient";
    char              name[128];
    const size_t      length = strlen(scope), end = sizeof suffix - 1;
    *backward = length >= end && strcmp(scope + length - end, suffix) == 0 &&
                (length == end || scope[length - end - 1] == '/');
    if (!*backward) return cornu__lookup_find(numbers, scope);
    if (length == end || length >= sizeof name) return -1;
    snprintf(name, sizeof name, "%.*s", (int)(length - end - 1), scope);
    return cornu__lookup_find(numbers, name);
}

/* Operations that take as long as a byte from or to memory. */
enum { OPERATIONS_PER_BYTE = 8 };

void cornu__stages_costs(const CornuProgram *program, const CornuLookup *numbers, double *cost)
{
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        bool                  backward;
        const int             layer = layer_of(numbers, op->scope, &backward);
        const CornuValue     *in = cornu_program_operands(program, op);
        CornuType             types[CORNU_MAX_INPUTS];
        double                bytes = 0.0;
        if (layer < 0 || op->id == CORNU_OP_RESHAPE || op->id == CORNU_OP_CONSTANT) continue;
        for (int k = 0; k < op->in_count; k++)
            bytes += (double)cornu_type_bytes(cornu_program_type(program, in[k]));
        for (int k = 0; k < op->out_count; k++)
            bytes += (double)cornu_type_bytes(cornu_program_type(program, op->out_first + k));
        cost[layer] += bytes * OPERATIONS_PER_BYTE;
        if (op->in_count > CORNU_MAX_INPUTS) continue;   /* a concat or a pack, which moves data */
        const CornuOpCall call = cornu_program_call(program, op, types);
        cost[layer] += (double)cornu_op_flops(&call);
    }
}

/* How many stages layers from the first on need if none costs more than `most`; with `stage`, deals
 * them to at least `stages`: a stage ends early where as many layers are left as stages. */
static int deal(const double *cost, int count, double most, int stages, int *stage)
{
    int    s = -1, left = 0;
    double sum = 0.0;
    for (int i = 0; i < count; i++) left += cost[i] > 0.0;
    for (int i = 0; i < count; i++) {
        const bool costs = cost[i] > 0.0;
        if (costs && (s < 0 || sum + cost[i] > most || left == stages - 1 - s)) {
            s++;
            sum = 0.0;
        }
        sum += cost[i];
        left -= costs;
        if (stage) stage[i] = s < 0 ? 0 : s;
    }
    return s + 1;
}

bool cornu__stages_balance(const double *cost, int count, int stages, int *stage)
{
    double least = 0.0, most = 0.0;
    int    costly = 0;
    for (int i = 0; i < count; i++) {
        costly += cost[i] > 0.0;
        most += cost[i];
        if (cost[i] > least) least = cost[i];
    }
    if (costly < stages) return false;
    for (int i = 0; i < 60; i++) {   /* bisection to the last bits */
        const double middle = least + (most - least) / 2.0;
        if (deal(cost, count, middle, 0, NULL) > stages) least = middle;
        else most = middle;
    }
    return deal(cost, count, most, stages, stage) == stages;
}

/* ---- Phases ---- */

enum { EVERYWHERE = -1 };   /* the phase of a value that any phase can make, or has as its input */

typedef struct {
    const CornuProgram *program;
    const CornuLookup  *stage_of;
    const bool         *fed;
    int                 stages;
    int                *phase;     /* of each value */
    bool               *still;     /* of each value: made of constants and variables that stay */
    int                *origin;    /* of each value that is still: the stage of the layer whose
                                      weights it is made of; else -1 */
    int                *home;      /* that one if the value is short: it sends it to the others */
    int                *written;   /* of each input: the phase that writes it; else EVERYWHERE */
} Cut;

/* The first phase that the op may be in; *inside: it is a layer's, and data's way through it. */
static int first_phase(const Cut *cut, const CornuProgramOp *op, bool *inside)
{
    bool      backward;
    const int stage = layer_of(cut->stage_of, op->scope, &backward);
    *inside = stage >= 0;
    if (cut->stages == 1) return 0;
    if (stage < 0) return backward ? cut->stages : 0;
    return backward ? 2 * cut->stages - 1 - stage : stage;
}

/* The phase of an op, given those of its operands. */
static int phase_of(const Cut *cut, const CornuProgramOp *op, bool *still)
{
    const CornuValue *in = cornu_program_operands(cut->program, op);
    bool              inside, everywhere = true;
    int               phase = first_phase(cut, op, &inside);
    *still = true;
    for (int k = 0; k < op->in_count; k++) {
        *still &= cut->still[in[k]];
        everywhere &= cut->phase[in[k]] == EVERYWHERE;
        if (cut->phase[in[k]] > phase) phase = cut->phase[in[k]];
    }
    return *still || (everywhere && !inside) ? EVERYWHERE : phase;
}

/* Goes through the program once; whether an op has moved. */
static bool find_phases(Cut *cut)
{
    const CornuProgram *program = cut->program;
    bool                moved = false;
    for (int i = 0; i < program->input_count; i++) {
        cut->phase[program->inputs[i]] = cut->written[i];
        cut->still[program->inputs[i]] = !cut->fed[i] && cut->written[i] == EVERYWHERE;
    }
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        bool                  still;
        const int             phase = phase_of(cut, op, &still);
        for (int k = 0; k < op->out_count; k++) {
            moved |= cut->phase[op->out_first + k] != phase;
            cut->phase[op->out_first + k] = phase;
            cut->still[op->out_first + k] = still;
        }
    }
    return moved;
}

/* A variable is read where it is written, as the next microbatch's forward may be before this one's
 * backward: what reads it moves there. */
static void settle(Cut *cut)
{
    const CornuProgram *program = cut->program;
    for (int i = 0; i < program->input_count; i++) cut->written[i] = EVERYWHERE;
    for (int i = 0; i < program->output_count; i++) cut->written[program->outputs[i].alias] = 0;
    while (find_phases(cut))
        for (int i = 0; i < program->output_count; i++) {
            const CornuProgramOutput out = program->outputs[i];
            if (cut->phase[out.value] > cut->written[out.alias])
                cut->written[out.alias] = cut->phase[out.value];
        }
}

/* What is made of weights is made where it is read, but for numbers and short vectors: so a penalty
 * on weights, and the bias of a layer that goes on in the next stage, leave them in their stage. */
enum { SENT_BYTES = 4096 };

/* The stage of what the op reads: of its layer; else of its operands, if they have one. */
static int origin_of(const Cut *cut, const CornuProgramOp *op)
{
    const CornuValue *in = cornu_program_operands(cut->program, op);
    bool              backward;
    int               stage = layer_of(cut->stage_of, op->scope, &backward), origin = -1;
    for (int k = 0; k < op->in_count; k++) {
        const int of = cut->origin[in[k]];
        if (of < 0 && cut->program->values[in[k]].op < 0 && stage >= 0 && !backward)
            cut->origin[in[k]] = stage;   /* the layer that first reads a variable */
        if (origin < 0) origin = cut->origin[in[k]];
        else if (of >= 0 && of != origin) return -1;
    }
    return origin >= 0 && stage >= 0 && !backward ? stage : origin;
}

static void find_homes(Cut *cut)
{
    const CornuProgram *program = cut->program;
    for (CornuValue v = 0; v < program->value_count; v++) cut->home[v] = cut->origin[v] = -1;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuType       type = cornu_program_type(program, op->out_first);
        if (!cut->still[op->out_first]) continue;
        for (int k = 0; k < op->out_count; k++) cut->origin[op->out_first + k] = origin_of(cut, op);
        if (op->out_count == 1 && type.shape.rank <= 1 && cornu_type_bytes(type) <= SENT_BYTES)
            cut->home[op->out_first] = cut->origin[op->out_first];
    }
}

/* Whether a phase makes a value that is everywhere, rather than being sent it. */
static bool makes(const Cut *cut, CornuValue v, int phase)
{
    const int home = cut->home[v], stages = cut->stages;
    return home < 0 || phase <= home || phase == 2 * stages - 1 - home;
}

static CornuStatus check_variables(const Cut *cut)
{
    const CornuProgram *program = cut->program;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        for (int k = 0; k < op->in_count; k++) {
            const CornuProgramValue *value = &program->values[in[k]];
            if (value->op >= 0 || cut->written[value->index] == EVERYWHERE ||
                cut->phase[op->out_first] == cut->written[value->index])
                continue;
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s reads what another part of the step "
                               "changes, before the next microbatch has read it; expected layers "
                               "whose variables change where they are read", op->scope,
                               cornu_program_op_name(op));
        }
    }
    return CORNU_OK;
}

/* ---- Crossings ---- */

static uint64_t bit(int phase) { return UINT64_C(1) << phase; }

/* The phases in which the op runs, given those that need its results. */
static uint64_t phases_of(const Cut *cut, const CornuProgramOp *op, const uint64_t *needs)
{
    uint64_t phases = 0;
    if (cut->phase[op->out_first] != EVERYWHERE) return bit(cut->phase[op->out_first]);
    for (int phase = 0; phase < 2 * cut->stages; phase++)
        for (int k = 0; k < op->out_count; k++)
            if (needs[op->out_first + k] & bit(phase))   /* there, or where it is sent from */
                phases |= bit(makes(cut, op->out_first + k, phase) ? phase
                                                                   : cut->home[op->out_first]);
    return phases;
}

/* The phases that need each value. */
static void find_needs(const Cut *cut, uint64_t *needs)
{
    const CornuProgram *program = cut->program;
    for (int i = 0; i < program->output_count; i++)
        needs[program->outputs[i].value] |= bit(cut->written[program->outputs[i].alias]);
    for (int i = program->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        const uint64_t        phases = phases_of(cut, op, needs);
        for (int k = 0; k < op->in_count; k++) needs[in[k]] |= phases;
    }
}

/* The phases that are sent the value. */
static uint64_t crosses(const Cut *cut, const uint64_t *needs, CornuValue v)
{
    uint64_t phases = needs[v];
    if (cut->program->values[v].op < 0) return 0;
    if (cut->phase[v] != EVERYWHERE) return needs[v] & ~bit(cut->phase[v]);
    for (int phase = 0; phase < 2 * cut->stages; phase++)
        if (makes(cut, v, phase)) phases &= ~bit(phase);
    return phases;
}

static int last_of(uint64_t phases)
{
    int last = 0;
    while (phases >>= 1) last++;
    return last;
}

static CornuStatus find_crossings(const Cut *cut, CornuStages *to)
{
    const CornuProgram *program = cut->program;
    uint64_t *needs = cornu__allocate((size_t)program->value_count + 1, sizeof *needs);
    int       count = 0;
    if (!needs) return CORNU_ERR_MEMORY;
    find_needs(cut, needs);
    for (CornuValue v = 0; v < program->value_count; v++) count += crosses(cut, needs, v) != 0;
    to->crossings = cornu__allocate((size_t)count + 1, sizeof *to->crossings);
    for (CornuValue v = 0; v < program->value_count && to->crossings; v++) {
        const uint64_t by = crosses(cut, needs, v);
        const int      from = cut->phase[v] == EVERYWHERE ? cut->home[v] : cut->phase[v];
        if (by) to->crossings[to->crossing_count++] = (CornuCrossing){ v, from, last_of(by), by };
    }
    cornu__release(needs);
    return to->crossings ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- Programs ---- */

static CornuStatus make_phase(const Cut *cut, const CornuStages *stages, int phase, CornuPhase *to)
{
    const CornuProgram *program = cut->program;
    CornuPart           part;
    CornuStatus         status = cornu__part_begin(&part, program, stages->crossing_count);
    for (int i = 0; i < program->op_count && !status; i++) {
        const int of = cut->phase[program->ops[i].out_first];
        part.computes[i] = of == phase || (of == EVERYWHERE &&
                                           makes(cut, program->ops[i].out_first, phase));
    }
    /* An assignment belongs to where its variable is read and written. */
    for (int i = 0; i < program->output_count && !status; i++)
        part.writes[i] = cut->written[program->outputs[i].alias] == phase;
    for (int c = 0; c < stages->crossing_count && !status; c++)
        part.crossings[c] = (CornuPartCrossing){ stages->crossings[c].value,
                                                 stages->crossings[c].from == phase };
    if (!status) status = cornu__part_make(&part, to);
    cornu__part_end(&part);
    return status;
}

static CornuStatus make_all(Cut *cut, CornuStages *to)
{
    settle(cut);
    find_homes(cut);
    CORNU__TRY(check_variables(cut));
    CORNU__TRY(find_crossings(cut, to));
    for (int p = 0; p < 2 * to->stages; p++)
        CORNU__TRY(make_phase(cut, to, p, &to->phases[p]));
    return CORNU_OK;
}

CornuStatus cornu__stages_cut(const CornuProgram *program, const CornuLookup *stage_of, int stages,
                              const bool *fed, CornuStages *to)
{
    const size_t values = (size_t)program->value_count + 1;
    Cut          cut = { .program = program, .stage_of = stage_of, .fed = fed, .stages = stages,
                         .phase = cornu__allocate(values, sizeof(int)),
                         .still = cornu__allocate(values, sizeof(bool)),
                         .origin = cornu__allocate(values, sizeof(int)),
                         .home = cornu__allocate(values, sizeof(int)),
                         .written = cornu__allocate((size_t)program->input_count + 1,
                                                    sizeof(int)) };
    *to = (CornuStages){ .stages = stages };
    const bool  made = cut.phase && cut.still && cut.origin && cut.home && cut.written;
    CornuStatus status = made ? make_all(&cut, to) : CORNU_ERR_MEMORY;
    cornu__release(cut.phase);
    cornu__release(cut.still);
    cornu__release(cut.origin);
    cornu__release(cut.home);
    cornu__release(cut.written);
    return status;
}

void cornu__stages_free(CornuStages *stages)
{
    for (int p = 0; p < CORNU__MAX_PHASES; p++) cornu__phase_free(&stages->phases[p]);
    cornu__release(stages->crossings);
    *stages = (CornuStages){ .stages = 0 };
}
