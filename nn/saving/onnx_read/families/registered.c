/* The rule of operators that a registration knows: operators.h. */
#include "../registry_internal.h"
#include "../run_internal.h"

#include <string.h>

enum { MOST_TENSORS = 64 };

/* ---- Attributes ---- */

static const CornuReadAttribute *attribute_of(const CornuOperatorCall *call, const char *name)
{
    return cornu__attribute(call->node, name);
}

double cornu_operator_number(const CornuOperatorCall *call, const char *attribute, double usual)
{
    const CornuReadAttribute *found = attribute_of(call, attribute);
    return found ? found->number : usual;
}

int64_t cornu_operator_integer(const CornuOperatorCall *call, const char *attribute, int64_t usual)
{
    const CornuReadAttribute *found = attribute_of(call, attribute);
    return found ? found->whole : usual;
}

const char *cornu_operator_text(const CornuOperatorCall *call, const char *attribute,
                                const char *usual)
{
    const CornuReadAttribute *found = attribute_of(call, attribute);
    return found && found->text ? found->text : usual;
}

/* ---- The rule ---- */

/* The bytes of a .tflite file, which nodes have as a list of integers. */
static CornuStatus read_options(CornuReadStep *step, CornuOperatorCall *call)
{
    const CornuReadAttribute *list = cornu__attribute(step, "options");
    if (*step->node->domain || !list || !list->integer_count) return CORNU_OK;
    unsigned char *bytes = cornu__arena_take(step->run->arena, (size_t)list->integer_count, 1);
    if (!bytes) return CORNU_ERR_MEMORY;
    for (int i = 0; i < list->integer_count; i++) bytes[i] = (unsigned char)list->integers[i];
    call->options = bytes;
    call->option_bytes = (size_t)list->integer_count;
    return CORNU_OK;
}

static CornuStatus read_registered(CornuReadStep *step)
{
    CornuTensor           *in[MOST_TENSORS] = { NULL }, *out[MOST_TENSORS] = { NULL };
    CornuOperatorFunction *function = cornu__registered_node(step->node);
    const char            *colon = strchr(step->node->op, ':');
    CornuOperatorCall      call = {
        .graph = step->run->graph, .name = *step->node->domain || !colon ? step->node->op
                                                                         : colon + 1,
        .in = in, .in_count = step->node->own_count, .out = out, .out_count = step->out_count,
        .node = step,
    };
    if (!function || call.in_count > MOST_TENSORS || call.out_count > MOST_TENSORS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "an operator that is not registered, or of more "
                           "than %d tensors", MOST_TENSORS);
    CORNU__TRY(read_options(step, &call));
    for (int i = 0; i < call.in_count; i++) in[i] = cornu__optional(step, i);
    if (cornu_error_pending()) return cornu_error_take();
    const CornuStatus status = function(&call);
    if (cornu_error_pending()) return cornu_error_take();
    if (status)
        return cornu__fail(status, "the registered function of the operator %s fails", call.name);
    for (int i = 0; i < call.out_count; i++) {
        if (!out[i])
            return cornu__fail(CORNU_ERR_FORMAT, "the registered function of the operator %s sets "
                               "no result %d", call.name, i);
        CORNU__TRY(cornu__result(step, i, out[i]));
    }
    return CORNU_OK;
}

const CornuReadRow cornu__read_registered[] = {
    { CORNU_READ_REGISTERED, read_registered, .operands = 0 },
    { 0 },
};
