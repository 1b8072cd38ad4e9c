#include "check.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

CornuStatus explain_check_print(const Check *check, FILE *to)
{
    fprintf(to, "%s, a training step of %lld samples: ", check->model, (long long)check->batch);
    return cornu_executable_print_placement(check->executable, to);
}

/* NULL without memory. */
static json_t *describe(const CornuPlacedOp *ops, int count)
{
    json_t *list = json_array();
    for (int i = 0; list && i < count; i++) {
        const CornuPlacement *placement = &ops[i].placement;
        CornuText             type;
        json_t *op = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i}",
                               "op", ops[i].number, "name", cornu_program_op_name(ops[i].op),
                               "layer", ops[i].op->scope,
                               "result", cornu_type_print(&type, ops[i].type),
                               "placed", cornu_placement_name(placement->kind),
                               "how", placement->how, "why", placement->why,
                               "fallbacks", placement->fallbacks, "step", ops[i].step);
        if (json_array_append_new(list, op) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

CornuStatus explain_check_write(const Check *check, const char *path)
{
    const CornuDevice *device = cornu_executable_device(check->executable);
    CornuPlacedOp     *ops;
    int                count;
    CornuStatus        status = cornu_executable_place(check->executable, &ops, &count);
    if (status) return status;
    json_t *page = json_pack("{s:s, s:s, s:I, s:o}", "model", check->model, "device",
                             cornu_device_description(device), "batch_size",
                             (json_int_t)check->batch, "ops", describe(ops, count));
    char   *text = page ? json_dumps(page, JSON_INDENT(1)) : NULL;
    status = text ? cornu_file_write(path, text, strlen(text))
                  : cornu_error_set(CORNU_ERR_MEMORY, "%s: no memory for the page", path);
    free(text);
    json_decref(page);
    cornu_placed_free(ops);
    return status;
}
