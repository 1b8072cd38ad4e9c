/* The registered operators: operators.h. */
#include "registry_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../../../device/status_internal.h"

enum { MOST_OPERATORS = 256, MOST_NAME = 101 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    char                   domain[MOST_NAME], name[MOST_NAME];
    CornuOperatorFunction *function;
} operators[MOST_OPERATORS];
static int count;

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

CornuOperatorFunction *cornu__registered_operator(const char *domain, const char *name)
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
    return domain && name && cornu__registered_operator(domain, name);
}

CornuOperatorFunction *cornu__registered_node(const CornuReadNode *node)
{
    const size_t length = sizeof CORNU_READ_LITE - 1;
    if (!*node->domain && !strncmp(node->op, CORNU_READ_LITE, length))
        return cornu__registered_operator("tflite", node->op + length);
    return *node->domain ? cornu__registered_operator(node->domain, node->op) : NULL;
}
