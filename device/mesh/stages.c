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

static uint64_t later_than(int phase) { return phase + 1 < 64 ? ~UINT64_C(0) << (phase + 1) : 0; }

/* The phases that read the value, other than the one that makes it. */
static uint64_t crosses(const Cut *cut, const uint64_t *readers, CornuValue v)
{
    if (cut->program->values[v].op < 0 || cut->phase[v] == EVERYWHERE) return 0;
    return readers[v] & later_than(cut->phase[v]);
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
    uint64_t *readers = cornu__allocate((size_t)program->value_count + 1, sizeof *readers);
    int       count = 0;
    if (!readers) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        const int             phase = cut->phase[op->out_first];
        for (int k = 0; k < op->in_count && phase != EVERYWHERE; k++)
            readers[in[k]] |= UINT64_C(1) << phase;
    }
    for (CornuValue v = 0; v < program->value_count; v++) count += crosses(cut, readers, v) != 0;
    to->crossings = cornu__allocate((size_t)count + 1, sizeof *to->crossings);
    for (CornuValue v = 0; v < program->value_count && to->crossings; v++) {
        const uint64_t by = crosses(cut, readers, v);
        if (by)
            to->crossings[to->crossing_count++] =
                (CornuCrossing){ v, cut->phase[v], last_of(by), by };
    }
    cornu__release(readers);
    return to->crossings ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* ---- Programs ---- */

/* The outputs of the phase: an assignment belongs to where its variable is read and written. */
static bool is_written_in(const Cut *cut, const CornuProgramOutput *out, int phase)
{
    return cut->written[out->alias] == phase;
}

/* Marks what the phase needs: values that it makes, inputs, and what crosses into it. */
static void mark(const Cut *cut, const CornuStages *stages, int phase, bool *needed)
{
    const CornuProgram *program = cut->program;
    for (int i = 0; i < program->output_count; i++)
        if (is_written_in(cut, &program->outputs[i], phase)) {
            needed[program->outputs[i].value] = true;
            needed[program->inputs[program->outputs[i].alias]] = true;
        }
    for (int c = 0; c < stages->crossing_count; c++)
        if (stages->crossings[c].from == phase) needed[stages->crossings[c].value] = true;
    for (int i = program->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &program->ops[i];
        const int             of = cut->phase[op->out_first];
        bool                  used = false;
        for (int k = 0; k < op->out_count; k++) used |= needed[op->out_first + k];
        const CornuValue *in = cornu_program_operands(program, op);
        for (int k = 0; used && (of == phase || of == EVERYWHERE) && k < op->in_count; k++)
            needed[in[k]] = true;
    }
}

static CornuStatus add_inputs(const Cut *cut, const CornuStages *stages, int phase,
                              const bool *needed, CornuPhase *to, CornuValue *map)
{
    const CornuProgram *program = cut->program;
    const size_t        most = (size_t)(program->input_count + stages->crossing_count) + 1;
    int                 count = 0;
    if (!(to->inputs = cornu__allocate(most, sizeof *to->inputs))) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->input_count; i++) {
        const CornuValue value = program->inputs[i];
        if (!needed[value]) continue;
        CORNU__TRY(cornu_program_copy_input(to->program, program, value, &map[value]));
        to->inputs[count++] = i;
    }
    for (int c = 0; c < stages->crossing_count; c++) {
        const CornuValue value = stages->crossings[c].value;
        if (!needed[value] || stages->crossings[c].from == phase) continue;
        CORNU__TRY(cornu_program_copy_input(to->program, program, value, &map[value]));
        to->inputs[count++] = ~c;
    }
    return CORNU_OK;
}

static CornuStatus copy_op(const CornuProgram *from, const CornuProgramOp *op, CornuProgram *to,
                           CornuValue *map)
{
    CornuValue  out[CORNU_MAX_OUTPUTS];
    CornuValue *in = cornu__allocate((size_t)op->in_count + 1, sizeof *in);
    if (!in) return CORNU_ERR_MEMORY;
    for (int k = 0; k < op->in_count; k++) in[k] = map[cornu_program_operands(from, op)[k]];
    CornuStatus status = cornu_program_scope(to, op->scope);
    if (!status) status = cornu_program_record(to, op->id, &op->attributes, in, op->in_count, out);
    cornu__release(in);
    for (int k = 0; !status && k < op->out_count; k++) map[op->out_first + k] = out[k];
    return status;
}

static CornuStatus add_ops(const Cut *cut, int phase, const bool *needed, CornuPhase *to,
                           CornuValue *map)
{
    for (int i = 0; i < cut->program->op_count; i++) {
        const CornuProgramOp *op = &cut->program->ops[i];
        const int             of = cut->phase[op->out_first];
        bool                  used = false;
        for (int k = 0; k < op->out_count; k++) used |= needed[op->out_first + k];
        if (used && (of == phase || of == EVERYWHERE))
            CORNU__TRY(copy_op(cut->program, op, to->program, map));
    }
    return CORNU_OK;
}

static CornuStatus add_outputs(const Cut *cut, const CornuStages *stages, int phase,
                               CornuPhase *to, const CornuValue *map)
{
    const CornuProgram *program = cut->program;
    const size_t        most = (size_t)(program->output_count + stages->crossing_count) + 1;
    int                 count = 0;
    if (!(to->outputs = cornu__allocate(most, sizeof *to->outputs))) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->output_count; i++) {
        const CornuProgramOutput *out = &program->outputs[i];
        if (!is_written_in(cut, out, phase)) continue;
        const CornuValue input = map[program->inputs[out->alias]];
        CORNU__TRY(cornu_program_output(to->program, map[out->value],
                                        to->program->values[input].index));
        to->outputs[count++] = -1;
    }
    for (int c = 0; c < stages->crossing_count; c++) {
        if (stages->crossings[c].from != phase) continue;
        CORNU__TRY(cornu_program_output(to->program, map[stages->crossings[c].value], -1));
        to->outputs[count++] = c;
    }
    return CORNU_OK;
}

static CornuStatus make_phase(const Cut *cut, const CornuStages *stages, int phase, CornuPhase *to)
{
    const size_t values = (size_t)cut->program->value_count + 1;
    bool        *needed = cornu__allocate(values, sizeof *needed);
    CornuValue  *map = cornu__allocate(values, sizeof *map);
    CornuStatus  status = needed && map ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status && !(to->program = cornu_program_create())) status = cornu_error_take();
    if (!status) {
        mark(cut, stages, phase, needed);
        status = add_inputs(cut, stages, phase, needed, to, map);
    }
    if (!status) status = add_ops(cut, phase, needed, to, map);
    if (!status) status = add_outputs(cut, stages, phase, to, map);
    cornu__release(needed);
    cornu__release(map);
    return status;
}

static CornuStatus make_all(Cut *cut, CornuStages *to)
{
    settle(cut);
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
                         .written = cornu__allocate((size_t)program->input_count + 1,
                                                    sizeof(int)) };
    *to = (CornuStages){ .stages = stages };
    const bool  made = cut.phase && cut.still && cut.written;
    CornuStatus status = made ? make_all(&cut, to) : CORNU_ERR_MEMORY;
    cornu__release(cut.phase);
    cornu__release(cut.still);
    cornu__release(cut.written);
    return status;
}

void cornu__stages_free(CornuStages *stages)
{
    for (int p = 0; p < CORNU__MAX_PHASES; p++) {
        cornu_program_free(stages->phases[p].program);
        cornu__release(stages->phases[p].inputs);
        cornu__release(stages->phases[p].outputs);
    }
    cornu__release(stages->crossings);
    *stages = (CornuStages){ .stages = 0 };
}
