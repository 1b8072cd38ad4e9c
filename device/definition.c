#include "definition_internal.h"

#include <pthread.h>
#include <string.h>

#include "program_internal.h"

enum { LONGEST_NAME = 63 };

static pthread_mutex_t  lock = PTHREAD_MUTEX_INITIALIZER;   /* of the list */
static CornuDefinition *definitions;

static CornuDefinition *find(const char *name)
{
    for (CornuDefinition *at = definitions; at; at = at->next)
        if (strcmp(at->name, name) == 0) return at;
    return NULL;
}

CornuDefinition *cornu__definition_find(const char *name)
{
    pthread_mutex_lock(&lock);
    CornuDefinition *found = find(name);
    pthread_mutex_unlock(&lock);
    return found;
}

static CornuStatus check_name(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    if (!name) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_register: .name is not set");
    if (!*name || !strchr(letters, *name) || strlen(name) > LONGEST_NAME ||
        name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")])
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_register: .name is \"%.80s\", expected a "
                           "small letter and then small letters, digits and underscores, %d "
                           "characters at most", name, LONGEST_NAME);
    for (int id = 0; id < CORNU_OP_COUNT; id++)
        if (strcmp(name, cornu_op_name((CornuOpId)id)) == 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_register: .name is \"%s\", an op of "
                               "Cornu's own", name);
    return CORNU_OK;
}

static CornuStatus check(const CornuDefinition *d)
{
    CORNU__TRY(check_name(d->name));
    if (d->inputs < -1 || d->inputs == 0 || d->inputs > CORNU_MAX_INPUTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_register: %s: .inputs is %d, expected 1 "
                           "to %d, or -1 for one or more", d->name, d->inputs, CORNU_MAX_INPUTS);
    if (d->outputs < 1 || d->outputs > CORNU_MAX_OUTPUTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_register: %s: .outputs is %d, expected 1 "
                           "to %d", d->name, d->outputs, CORNU_MAX_OUTPUTS);
    if (!d->reference && !d->is_composed)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_register: %s: has neither .reference nor "
                           ".composition, expected one of them, which says what the op computes",
                           d->name);
    return CORNU_OK;
}

CornuStatus cornu__definition_add(CornuDefinition *definition)
{
    CORNU__TRY(check(definition));
    pthread_mutex_lock(&lock);
    const bool taken = find(definition->name) != NULL;
    if (!taken) {
        definition->next = definitions;
        definitions = definition;
    }
    pthread_mutex_unlock(&lock);
    if (!taken) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_register: %s: registered before; "
                       "cornu_op_find gives its handle", definition->name);
}

CornuOpArguments cornu__definition_arguments(const CornuOpCall *call)
{
    const CornuAttributes_CUSTOM *custom = &call->attributes->custom;
    return (CornuOpArguments){ .name = custom->definition->name, .in = call->in,
                               .in_count = call->in_count, .numbers = custom->numbers,
                               .number_count = (int)custom->number_count };
}

void cornu_op_parallel(const CornuOpArguments *call, int64_t blocks, CornuOpBlock *block,
                       void *context)
{
    if (call->run) {
        call->run(call->runner, blocks, block, context);
        return;
    }
    for (int64_t i = 0; i < blocks; i++) block(context, i);
}
