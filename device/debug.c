#include "debug_internal.h"

#include <stdlib.h>
#include <string.h>

#include "status_internal.h"

static const char *const passes[] = {
#define X(id, name) #name,
    CORNU_PASSES(X)
#undef X
};

static const char all_passes[] =
#define X(id, name) " -" #name
    CORNU_PASSES(X)
#undef X
    ;

/* The next word of a comma-separated list, which is advanced; its length, 0 at the end. */
static size_t next_word(const char **list, const char **word)
{
    if (!*list || !**list) return 0;
    const size_t size = strcspn(*list, ",");
    *word = *list;
    *list += size + ((*list)[size] == ',');
    return size;
}

static bool is_word(const char *word, size_t size, const char *wanted)
{
    return strlen(wanted) == size && strncmp(word, wanted, size) == 0;
}

bool cornu__dumps(const char *wanted)
{
    const char *list = getenv("CORNU_DUMP"), *word;
    for (size_t size; (size = next_word(&list, &word)) > 0;)
        if (is_word(word, size, wanted)) return true;
    return false;
}

bool cornu__verifies(void)
{
    const char *value = getenv("CORNU_VERIFY");
    return value && strcmp(value, "1") == 0;
}

bool cornu__pass_runs(CornuPass pass)
{
    const char *list = getenv("CORNU_PASSES"), *word;
    for (size_t size; (size = next_word(&list, &word)) > 0;)
        if (*word == '-' && is_word(word + 1, size - 1, passes[pass])) return false;
    return true;
}

CornuStatus cornu__check_passes(void)
{
    const char *list = getenv("CORNU_PASSES"), *word;
    for (size_t size; (size = next_word(&list, &word)) > 0;) {
        bool known = false;
        for (int i = 0; i < CORNU_PASS_COUNT; i++)
            known = known || (*word == '-' && is_word(word + 1, size - 1, passes[i]));
        if (!known)
            return cornu__fail(CORNU_ERR_VALUE,
                               "CORNU_PASSES has \"%.*s\", expected passes to leave out, among%s",
                               (int)size, word, all_passes);
    }
    return CORNU_OK;
}
