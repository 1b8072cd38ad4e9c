/* Registration of custom layer classes, which files name as Keras does: "package>Name". Source:
 * keras/src/saving/object_registration.py. */
#include "layer_internal.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MAX_CLASSES = 256, PACKAGE_SIZE = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct { const CornuLayerClass *kind; char package[PACKAGE_SIZE]; } registered[MAX_CLASSES];
static int count;

static CornuStatus register_layer_check(const CornuLayerClass *kind, const char *package)
{
    if (!kind || !kind->class_name || !*kind->class_name)
        return cornu__fail(CORNU_ERR_ARGUMENT, "register_layer: the class%s is missing",
                           kind ? "'s .class_name" : "");
    const CornuKerasClass *keras = cornu__keras_class_of(kind);
    if (!keras->from || !keras->fields || keras->config_size == 0 || keras->config_offset == 0 ||
        keras->config_offset + keras->config_size > kind->size)
        return cornu__fail(CORNU_ERR_ARGUMENT, "register_layer: the class %s cannot be stored in "
                           "files: expected .keras with .from, .fields, .config_size and "
                           ".config_offset of a config within its struct", kind->class_name);
    if (!*package || strchr(package, '>') || strlen(package) >= PACKAGE_SIZE)
        return cornu__fail(CORNU_ERR_ARGUMENT, "register_layer: the package of %s is \"%.80s\", "
                           "expected 1 to %d characters without >", kind->class_name, package,
                           PACKAGE_SIZE - 1);
    return CORNU_OK;
}

static CornuStatus add(const CornuLayerClass *kind, const char *package)
{
    for (int i = 0; i < count; i++) {
        if (registered[i].kind == kind && !strcmp(registered[i].package, package)) return CORNU_OK;
        if (registered[i].kind == kind || (!strcmp(registered[i].package, package) &&
                                           !strcmp(registered[i].kind->class_name,
                                                   kind->class_name)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "register_layer: %s>%s is registered already as "
                               "%s", package, kind->class_name, registered[i].kind == kind
                               ? registered[i].package : "another class");
    }
    if (count == MAX_CLASSES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "register_layer: no space for %s, expected at most "
                           "%d classes",
                           kind->class_name, MAX_CLASSES);
    registered[count].kind = kind;
    snprintf(registered[count].package, PACKAGE_SIZE, "%s", package);
    count++;
    return CORNU_OK;
}

CornuStatus cornu_register_layer(const CornuLayerClass *kind, const char *package)
{
    if (!package) package = "Custom";
    CORNU__TRY(register_layer_check(kind, package));
    pthread_mutex_lock(&mutex);
    const CornuStatus status = add(kind, package);
    pthread_mutex_unlock(&mutex);
    return status;
}

const char *cornu__registered_package(const CornuLayerClass *kind)
{
    const char *package = NULL;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count && !package; i++)
        if (registered[i].kind == kind) package = registered[i].package;
    pthread_mutex_unlock(&mutex);
    return package;   /* valid after unlocking, as classes stay registered */
}

const CornuLayerClass *cornu__registered_class(const char *name)
{
    const CornuLayerClass *found = NULL;
    const char            *mark = strchr(name, '>');
    const size_t           length = mark ? (size_t)(mark - name) : 0;
    pthread_mutex_lock(&mutex);
    for (int i = 0; i < count && !found; i++) {
        const char *package = registered[i].package;
        if (mark && (strlen(package) != length || strncmp(name, package, length))) continue;
        if (!strcmp(registered[i].kind->class_name, mark ? mark + 1 : name))
            found = registered[i].kind;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}
