/* How XLA gets an op: by which ops of StableHLO, read from the module of the op alone. */
#include <stdio.h>
#include <string.h>

#include "../ops/rewrite.h"
#include "client.h"
#include "emit/emit.h"

/* In front of an op; of an attribute it has no quotation mark. */
static const char dialect[] = "\"stablehlo.";

/* Whether the name of `length` is among those in the list, "add, multiply". */
static bool lists(const char *list, const char *name, size_t length)
{
    for (const char *at = list; (at = strstr(at, name)); at++)
        if ((at == list || at[-1] == ' ') && (at[length] == ',' || at[length] == '\0')) return true;
    return false;
}

/* The ops of the module, each once. "return" ends regions. */
static void list_ops(const char *text, char to[CORNU_PLACEMENT_TEXT])
{
    size_t used = 0;
    for (const char *at = text; (at = strstr(at, dialect)); ) {
        char name[40];
        at += sizeof dialect - 1;
        const size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_0123456789");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (strcmp(name, "return") == 0 || lists(to, name, strlen(name))) continue;
        if (used + strlen(name) + 3 > CORNU_PLACEMENT_TEXT) return;
        used += (size_t)snprintf(to + used, CORNU_PLACEMENT_TEXT - used, "%s%s",
                                 used ? ", " : "", name);
    }
}

CornuStatus cornu__pjrt_place(const CornuDevice *device, const CornuProgram *program,
                              const CornuProgramOp *op, CornuPlacement *out)
{
    CornuModule module;
    if (*cornu__emit_table[op->id] == CORNU_DECOMPOSED &&
        !cornu__is_primitive(op->id, &op->attributes)) {
        out->kind = CORNU_PLACED_DECOMPOSED;
        snprintf(out->why, sizeof out->why, "XLA has no such op");
        return CORNU_OK;
    }
    CornuProgram *alone = cornu__program_isolate(program, op, false);
    if (!alone) return cornu_error_take();
    const CornuStatus status = cornu__module_emit(&module, alone, cornu__pjrt_of(device)->target,
                                                  NULL);
    out->kind = status ? CORNU_PLACED_REFUSED : CORNU_PLACED_NATIVE;
    if (status) snprintf(out->why, sizeof out->why, "%s", cornu_error_message());
    else list_ops(module.text, out->how);
    if (!status && !*out->how) snprintf(out->how, sizeof out->how, "its operand as it is");
    cornu__module_free(&module);
    cornu_program_free(alone);
    return status == CORNU_ERR_MEMORY ? status : CORNU_OK;
}
