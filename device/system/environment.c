#include "environment_internal.h"

#include <stdio.h>
#include <stdlib.h>

const char *cornu__environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

int cornu__cache_path(char *path, size_t size, const char *below)
{
    const char *cache = cornu__environment("XDG_CACHE_HOME"), *home = cornu__environment("HOME");
    if (cache && *cache == '/') return snprintf(path, size, "%s/cornu%s", cache, below);
    if (home && *home == '/') return snprintf(path, size, "%s/.cache/cornu%s", home, below);
    return -1;
}
