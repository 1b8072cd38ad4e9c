#include "placement.h"

#include <stdio.h>
#include <string.h>

#include "../device_internal.h"
#include "../ops/rewrite.h"

const char *cornu_placement_name(CornuPlacementKind kind)
{
    static const char *const names[] = { "native", "decomposed", "reference", "refused" };
    return (unsigned)kind < CORNU_PLACED_COUNT ? names[kind] : "unknown";
}

/* How often the op's name is among those before it; *first is the first of them. */
static int count_of(const CornuProgram *program, int op, int *first)
{
    int count = 0;
    for (int i = program->op_count - 1; i >= 0; i--)
        if (strcmp(cornu_program_op_name(&program->ops[i]),
                   cornu_program_op_name(&program->ops[op])) == 0)
            count++, *first = i;
    return count;
}

/* "reduce_max, subtract, 2 multiply", in the order in which they come first. */
static void list_ops(const CornuProgram *program, char to[CORNU_PLACEMENT_TEXT])
{
    size_t used = 0;
    to[0] = '\0';
    for (int i = 0; i < program->op_count && used < CORNU_PLACEMENT_TEXT; i++) {
        int       first = i;
        const int count = count_of(program, i, &first);
        if (first != i) continue;
        char number[16] = "";
        if (count > 1) snprintf(number, sizeof number, "%d ", count);
        used += (size_t)snprintf(to + used, CORNU_PLACEMENT_TEXT - used, "%s%s%s",
                                 used ? ", " : "", number,
                                 cornu_program_op_name(&program->ops[i]));
    }
}

/* Says into which ops it is decomposed, and how many of these run by reference kernels. */
static CornuStatus place_parts(const CornuDevice *device, const CornuProgram *program,
                               const CornuProgramOp *op, CornuPlacement *out)
{
    CornuProgram *parts = cornu__program_isolate(program, op, true);
    CornuStatus   status = parts ? CORNU_OK : cornu_error_take();
    for (int i = 0; !status && i < parts->op_count; i++) {
        CornuPlacement part;
        status = cornu_device_place(device, parts, i, &part);
        if (status) break;
        out->fallbacks += part.fallbacks + (part.kind == CORNU_PLACED_REFERENCE);
        if (part.kind != CORNU_PLACED_REFUSED) continue;
        out->kind = part.kind;
        snprintf(out->why, sizeof out->why, "its part %s: %.150s",
                 cornu_program_op_name(&parts->ops[i]), part.why);
    }
    if (!status) list_ops(parts, out->how);
    cornu_program_free(parts);
    return status;
}

CornuStatus cornu_device_place(const CornuDevice *device, const CornuProgram *program, int op,
                               CornuPlacement *out)
{
    CORNU__NEED(device);
    CORNU__NEED(program);
    CORNU__NEED(out);
    if (op < 0 || op >= program->op_count)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_device_place: op %d of a program with %d "
                           "ops, expected 0 to %d", op, program->op_count, program->op_count - 1);
    *out = (CornuPlacement){ .kind = CORNU_PLACED_REFERENCE };
    CORNU__TRY(device->class->place(device, program, &program->ops[op], out));
    return out->kind == CORNU_PLACED_DECOMPOSED
         ? place_parts(device, program, &program->ops[op], out) : CORNU_OK;
}
