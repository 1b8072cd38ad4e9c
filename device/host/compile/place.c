/* Where decompose.c sends an op, in words. */
#include <stdio.h>
#include <string.h>

#include "plan/group.h"
#include "plan/host.h"

/* "f32 (2, 3), i32 (2)": what the op is applied to, or makes if it has no operands. */
static void print_operands(const CornuProgram *program, const CornuProgramOp *op, char *to,
                           size_t size)
{
    const CornuValue *in = cornu_program_operands(program, op);
    CornuText         text;
    size_t            used = 0;
    for (int i = 0; i < op->in_count && used < size; i++)
        used += (size_t)snprintf(to + used, size - used, "%s%s", i ? ", " : "",
                                 cornu_type_print(&text, cornu_program_type(program, in[i])));
    if (op->in_count == 0)
        snprintf(to, size, "%s",
                 cornu_type_print(&text, cornu_program_type(program, op->out_first)));
}

static bool has_kernel(const CornuHost *host, CornuOpId id)
{
    for (int i = 0; host->kernels[i]; i++)
        if (host->kernels[i][id][0]) return true;
    return false;
}

static bool has_loop(const CornuHost *host, CornuOpId id)
{
    for (int i = 0; i < CORNU_CLASS_COUNT; i++)
        if (host->vectors->class[i]->op[id]) return true;
    return false;
}

/* Why the op is not computed as it is. */
static void explain(const CornuHost *host, const CornuProgram *program, const CornuProgramOp *op,
                    CornuPlacement *out)
{
    char       operands[CORNU_PLACEMENT_TEXT - 80];
    const bool kernel = has_kernel(host, op->id);
    if (!kernel && !has_loop(host, op->id)) {
        snprintf(out->why, sizeof out->why, "no kernel");
        return;
    }
    print_operands(program, op, operands, sizeof operands);
    snprintf(out->why, sizeof out->why, "no %s takes %s", kernel ? "kernel" : "loop",
             operands);
}

CornuStatus cornu__host_place(const CornuHost *host, const CornuProgram *program,
                              const CornuProgramOp *op, CornuPlacement *out)
{
    const char *name = cornu_program_op_name(op);
    size_t      used;
    out->kind = CORNU_PLACED_NATIVE;
    switch (cornu__choice(host, program, op)) {
    case CORNU_CHOICE_NOTHING:
        snprintf(out->how, sizeof out->how, "%s",
                 op->in_count == 0 ? "a constant" : "its operand is read in place");
        break;
    case CORNU_CHOICE_KERNEL: snprintf(out->how, sizeof out->how, "kernel %s", name); break;
    case CORNU_CHOICE_GROUP: snprintf(out->how, sizeof out->how, "loop %s", name); break;
    case CORNU_CHOICE_SCAN: snprintf(out->how, sizeof out->how, "a loop over its body"); break;
    case CORNU_CHOICE_WIDENED:
        snprintf(out->how, sizeof out->how, "kernel %s, between conversions to f32", name);
        explain(host, program, op, out);
        break;
    case CORNU_CHOICE_DECOMPOSED:
        out->kind = CORNU_PLACED_DECOMPOSED;
        explain(host, program, op, out);
        break;
    case CORNU_CHOICE_REFERENCE:
        out->kind = CORNU_PLACED_REFERENCE;
        snprintf(out->how, sizeof out->how, "reference kernel %s", name);
        explain(host, program, op, out);
        used = strlen(out->why);
        snprintf(out->why + used, sizeof out->why - used, ", and it is not composed of others");
        break;
    }
    return CORNU_OK;
}
