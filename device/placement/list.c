/* The placement of all ops of an executable, as a list and as a table. */
#include "placement.h"

#include <stdio.h>

#include "../device_internal.h"
#include "../memory_internal.h"

typedef struct {
    const CornuExecutable *executable;
    CornuPlacedOp         *ops;
    int                    count, space;
} List;

/* The first step with an op that comes from op `origin` of the recorded program; -1: none. */
static int step_of(const CornuExecutable *executable, int origin)
{
    const CornuProgram *compiled = executable->compiled;
    for (int i = 0; i < executable->step_count; i++)
        for (int k = 0; k < executable->steps[i].op_count; k++)
            if (compiled->ops[executable->steps[i].ops[k]].origin == origin) return i;
    return -1;
}

static CornuStatus list_program(List *list, const CornuProgram *program, const char *loop)
{
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        CORNU__TRY(cornu__reserve(&list->ops, &list->space, list->count, 1, sizeof *list->ops));
        CornuPlacedOp *placed = &list->ops[list->count++];
        *placed = (CornuPlacedOp){ .op = op, .type = cornu_program_type(program, op->out_first),
                                   .step = *loop ? -1 : step_of(list->executable, i) };
        snprintf(placed->number, sizeof placed->number, "%.19s%d", loop, i);
        CORNU__TRY(cornu_device_place(list->executable->device, program, i, &placed->placement));
        if (op->id != CORNU_OP_SCAN) continue;
        char body[32];
        snprintf(body, sizeof body, "%.30s.", placed->number);
        CORNU__TRY(list_program(list, op->attributes.scan.body, body));
    }
    return CORNU_OK;
}

CornuStatus cornu_executable_place(const CornuExecutable *executable, CornuPlacedOp **ops,
                                   int *count)
{
    CORNU__NEED(executable);
    CORNU__NEED(ops);
    CORNU__NEED(count);
    List              list = { .executable = executable };
    const CornuStatus status = list_program(&list, executable->program, "");
    *ops = status ? NULL : list.ops;
    *count = status ? 0 : list.count;
    if (status) cornu__release(list.ops);
    return status;
}

void cornu_placed_free(CornuPlacedOp *ops) { cornu__release(ops); }

/* ---- The table ---- */

static void print_op(const CornuExecutable *executable, const CornuPlacedOp *op, FILE *to)
{
    const CornuPlacement *placement = &op->placement;
    CornuText             type;
    fprintf(to, "%6s  %-19s %-22.22s %-24s %-10s %s", op->number, cornu_program_op_name(op->op),
            op->op->scope, cornu_type_print(&type, op->type),
            cornu_placement_name(placement->kind), placement->how);
    if (op->step >= 0) fprintf(to, "  [%d %.40s]", op->step, executable->steps[op->step].name);
    if (*placement->why) fprintf(to, "\n%87s%s", "", placement->why);
    if (placement->fallbacks)
        fprintf(to, "%s%d of these by reference kernels", *placement->why ? "; " : "",
                placement->fallbacks);
    fputc('\n', to);
}

static void print_counts(const CornuPlacedOp *ops, int count, FILE *to)
{
    int of[CORNU_PLACED_COUNT] = { 0 }, fallbacks = 0;
    for (int i = 0; i < count; i++) {
        of[ops[i].placement.kind]++;
        fallbacks += ops[i].placement.fallbacks;
    }
    fprintf(to, "%d ops, of which %d native, %d decomposed, %d by reference kernels, %d refused\n",
            count, of[CORNU_PLACED_NATIVE], of[CORNU_PLACED_DECOMPOSED],
            of[CORNU_PLACED_REFERENCE], of[CORNU_PLACED_REFUSED]);
    if (fallbacks)
        fprintf(to, "of the ops that these are decomposed into, %d run by reference kernels\n",
                fallbacks);
}

CornuStatus cornu_executable_print_placement(const CornuExecutable *executable, FILE *to)
{
    CornuPlacedOp *ops;
    int            count;
    CORNU__TRY(cornu_executable_place(executable, &ops, &count));
    print_counts(ops, count, to);
    fprintf(to, "\n%6s  %-19s %-22s %-24s %-10s %s\n", "op", "name", "layer", "result", "placed",
            "how  [step of the plan]; below it why");
    for (int i = 0; i < count; i++) print_op(executable, &ops[i], to);
    cornu_placed_free(ops);
    return CORNU_OK;
}
