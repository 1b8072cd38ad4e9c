/* Operators that a registration knows: operators.h. */
#include "../../operators.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../../../../device/memory_internal.h"
#include "../run_internal.h"

enum { MOST_OPERATORS = 256, MOST_NAME = 101, MOST_TENSORS = 64 };

/* Operators of .tflite files are nodes of ONNX' own domain, of a type that begins so. */
static const char lite[] = "tflite:";

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char                   domain[MOST_NAME], name[MOST_NAME];
    CornuOperatorFunction *function;
} operators[MOST_OPERATORS];
static int count;

/* ---- Registration ---- */

static CornuStatus add(const char *domain, const char *name, CornuOperatorFunction *function)
{
    int i = 0;
    while (i < count && (strcmp(operators[i].domain, domain) || strcmp(operators[i].name, name)))
        i++;
    if (i == MOST_OPERATORS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "register_operator: no space for %s.%s, expected at "
                           "most %d operators", domain, name, MOST_OPERATORS);
    if (i == count) {
        snprintf(operators[i].domain, MOST_NAME, "%s", domain);
        snprintf(operators[i].name, MOST_NAME, "%s", name);
        count++;
    }
    operators[i].function = function;
    return CORNU_OK;
}

CornuStatus cornu_register_operator(const char *domain, const char *name,
                                    CornuOperatorFunction *function)
{
    if (!domain || !name || !*domain || !*name || !strcmp(domain, "ai.onnx") ||
        strlen(domain) >= MOST_NAME || strlen(name) >= MOST_NAME)
        return cornu__fail(CORNU_ERR_ARGUMENT, "register_operator: the operator \"%.120s\" of the "
                           "domain \"%.120s\": expected names of 1 to %d characters, and a domain "
                           "that is not ONNX' own", name ? name : "", domain ? domain : "",
                           MOST_NAME - 1);
    pthread_mutex_lock(&mutex);
    const CornuStatus status = add(domain, name, function);
    pthread_mutex_unlock(&mutex);
    return status;
}

static CornuOperatorFunction *find(const char *domain, const char *name)
{
    CornuOperatorFunction *found = NULL;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count && !found; i++)
        if (!strcmp(operators[i].domain, domain) && !strcmp(operators[i].name, name))
            found = operators[i].function;
    pthread_mutex_unlock(&mutex);
    return found;
}

bool cornu_operator_registered(const char *domain, const char *name)
{
    return domain && name && find(domain, name);
}

static CornuOperatorFunction *function_of(const CornuReadNode *node)
{
    const size_t length = sizeof lite - 1;
    if (!*node->domain && !strncmp(node->op, lite, length))
        return find("tflite", node->op + length);
    return *node->domain ? find(node->domain, node->op) : NULL;
}

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
    CornuOperatorFunction *function = function_of(step->node);
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

CornuReadRule *cornu__read_registered(const CornuReadNode *node)
{
    return function_of(node) ? read_registered : NULL;
}
