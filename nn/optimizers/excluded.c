/* Patterns of the paths of weights that an optimizer treats differently. */
#include <regex.h>

#include "optimizer_internal.h"

/* The patterns compile: cornu__exclude has tried. */
static bool matches(const char *pattern, const char *path)
{
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0) return false;
    const bool found = regexec(&compiled, path, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

bool cornu__is_excluded(char *const patterns[CORNU_MAX_EXCLUDED], const char *path)
{
    for (int i = 0; i < CORNU_MAX_EXCLUDED && patterns[i]; i++)
        if (matches(patterns[i], path)) return true;
    return false;
}

void cornu__free_excluded(char *patterns[CORNU_MAX_EXCLUDED])
{
    for (int i = 0; i < CORNU_MAX_EXCLUDED; i++) cornu__release(patterns[i]);
}

static CornuStatus copy(const char *name, const char *argument, int i, const char *pattern,
                        char **to)
{
    regex_t compiled;
    if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB) != 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s[%d] is \"%s\", expected a POSIX extended "
                           "regular expression", name, argument, i, pattern);
    regfree(&compiled);
    return (*to = cornu__copy_text(pattern)) ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuOptimizer *cornu__exclude(CornuOptimizer *optimizer, const char *argument,
                               const char *const from[CORNU_MAX_EXCLUDED],
                               char *to[CORNU_MAX_EXCLUDED])
{
    for (int i = 0; i < CORNU_MAX_EXCLUDED && optimizer && from[i]; i++) {
        if (copy(optimizer->name, argument, i, from[i], &to[i]) == CORNU_OK) continue;
        cornu_optimizer_free(optimizer);
        return cornu__null();
    }
    return optimizer;
}
