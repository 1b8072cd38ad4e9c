/* Environment variables. */
#ifndef CORNU_DEVICE_ENVIRONMENT_INTERNAL_H
#define CORNU_DEVICE_ENVIRONMENT_INTERNAL_H

#include <stddef.h>

/* NULL if the variable is unset or empty. */
const char *cornu__environment(const char *name);

/* Writes the path of Cornu's folder in the user's cache, ${XDG_CACHE_HOME:-~/.cache}/cornu, and
 * then `below`, such as "/pjrt". Returns its length, as snprintf also where that is too long; -1 if
 * neither variable has an absolute path: relative ones are ignored, as the XDG base directory
 * specification says. */
int cornu__cache_path(char *path, size_t size, const char *below);

#endif
