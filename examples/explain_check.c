#include "explain_check.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* An op of the step, or of the body of one of its loops. */
typedef struct {
    char                       number[32];   /* "12", "12.3" */
    const CornuProgramOp      *op;
    CornuType                  type;         /* of its first result */
    CornuPlacement             placement;
    int                        step;         /* that computes it; -1: none does, or that of its
                                                loop */
    const CornuExecutableStep *steps;
} Row;

typedef CornuStatus Visit(const Row *row, void *context);

/* The first step with an op that comes from op `origin` of the recorded program; -1: none. */
static int step_of(const CornuExecutable *executable, int origin)
{
    int                        count;
    const CornuExecutableStep *steps = cornu_executable_steps(executable, &count);
    const CornuProgram        *compiled = cornu_executable_program(executable);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < steps[i].op_count; k++)
            if (compiled->ops[steps[i].ops[k]].origin == origin) return i;
    return -1;
}

static CornuStatus visit_program(const Check *check, const CornuProgram *program,
                                 const char *before, Visit *visit, void *context)
{
    const CornuDevice *device = cornu_executable_device(check->executable);
    int                count;
    CornuStatus        status = CORNU_OK;
    for (int i = 0; !status && i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        Row row = { .op = op, .type = cornu_program_type(program, op->out_first),
                    .step = *before ? -1 : step_of(check->executable, i),
                    .steps = cornu_executable_steps(check->executable, &count) };
        snprintf(row.number, sizeof row.number, "%.20s%d", before, i);
        status = cornu_device_place(device, program, i, &row.placement);
        if (!status) status = visit(&row, context);
        if (status || op->id != CORNU_OP_SCAN) continue;
        char body[32];
        snprintf(body, sizeof body, "%.30s.", row.number);
        status = visit_program(check, op->attributes.scan.body, body, visit, context);
    }
    return status;
}

static CornuStatus visit_all(const Check *check, Visit *visit, void *context)
{
    return visit_program(check, cornu_executable_recorded(check->executable), "", visit, context);
}

/* ---- Counts ---- */

typedef struct {
    int of[CORNU_PLACED_COUNT], all, fallbacks;
} Counts;

static CornuStatus count(const Row *row, void *context)
{
    Counts *counts = context;
    counts->of[row->placement.kind]++;
    counts->all++;
    counts->fallbacks += row->placement.fallbacks;
    return CORNU_OK;
}

/* ---- The table ---- */

static CornuStatus print(const Row *row, void *context)
{
    const CornuPlacement *placement = &row->placement;
    FILE                 *to = context;
    CornuText             type;
    char                  step[64] = "", parts[64] = "";
    if (row->step >= 0)
        snprintf(step, sizeof step, "  [%d %.40s]", row->step, row->steps[row->step].name);
    fprintf(to, "%6s  %-19.19s %-22.22s %-24.24s %-10s %s%s\n", row->number,
            cornu_program_op_name(row->op), row->op->scope, cornu_type_print(&type, row->type),
            cornu_placement_name(placement->kind), placement->how, step);
    if (placement->fallbacks)
        snprintf(parts, sizeof parts, "; %d of these by reference kernels", placement->fallbacks);
    if (*placement->why || *parts) fprintf(to, "%87s%s%s\n", "", placement->why, parts);
    return CORNU_OK;
}

CornuStatus explain_check_print(const Check *check, FILE *to)
{
    Counts      counts = { .all = 0 };
    CornuStatus status = visit_all(check, count, &counts);
    if (status) return status;
    fprintf(to, "%s, a training step of %lld samples: %d ops, of which %d native, %d "
            "decomposed, %d by reference kernels, %d refused\n",
            check->model, (long long)check->batch, counts.all, counts.of[CORNU_PLACED_NATIVE],
            counts.of[CORNU_PLACED_DECOMPOSED], counts.of[CORNU_PLACED_REFERENCE],
            counts.of[CORNU_PLACED_REFUSED]);
    if (counts.fallbacks)
        fprintf(to, "of the ops that these are decomposed into, %d run by reference kernels\n",
                counts.fallbacks);
    fprintf(to, "\n%6s  %-19s %-22s %-24s %-10s %s\n", "op", "name", "layer", "result", "placed",
            "how  [step of the plan]; below it why");
    return visit_all(check, print, to);
}

/* ---- JSON ---- */

static CornuStatus add(const Row *row, void *context)
{
    CornuText type;
    json_t   *json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "op", row->number,
                               "name", cornu_program_op_name(row->op), "layer", row->op->scope,
                               "result", cornu_type_print(&type, row->type), "placed",
                               cornu_placement_name(row->placement.kind), "how",
                               row->placement.how, "why", row->placement.why, "fallbacks",
                               row->placement.fallbacks, "step", row->step);
    if (json_array_append_new(context, json) == 0) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_MEMORY, "no memory for the page as JSON");
}

CornuStatus explain_check_write(const Check *check, const char *path)
{
    json_t     *ops = json_array();
    CornuStatus status = ops ? visit_all(check, add, ops) : CORNU_OK;
    json_t     *page = json_pack("{s:s, s:s, s:I, s:o}", "model", check->model, "device",
                                 cornu_device_description(
                                     cornu_executable_device(check->executable)),
                                 "batch_size", (json_int_t)check->batch, "ops", ops);
    char       *text = status || !page ? NULL : json_dumps(page, JSON_INDENT(1));
    if (!status)
        status = text ? cornu_file_write(path, text, strlen(text))
                      : cornu_error_set(CORNU_ERR_MEMORY, "%s: no memory for the page", path);
    free(text);
    json_decref(page);
    return status;
}
