/* Names of devices: "pjrt:PLUGIN,OPTION=VALUE,…", where "\\," is a comma. */
#include "plugin.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../text/print.h"

/* Paths may have a "=" after their first "/". */
static bool is_option(const char *word, size_t length)
{
    const char *equals = memchr(word, '=', length), *slash = memchr(word, '/', length);
    return equals && (!slash || equals < slash);
}

/* Characters before the next comma that separates. */
static size_t word_length(const char *text)
{
    size_t length = strcspn(text, ",");
    while (length && text[length] && text[length - 1] == '\\')
        length += 1 + strcspn(text + length + 1, ",");
    return length;
}

/* Copies a part of a name; false if it does not fit. */
static bool copy(char *to, size_t size, const char *from, size_t length)
{
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        if (from[i] == '\\' && i + 1 < length && from[i + 1] == ',') continue;
        if (used + 1 >= size) return false;
        to[used++] = from[i];
    }
    to[used] = '\0';
    return true;
}

static CornuStatus add_option(const char *device_name, const char *word, size_t length,
                              CornuPjrtName *name)
{
    const int   n = length < 80 ? (int)length : 80;   /* for messages */
    const char *equals = memchr(word, '=', length);
    if (!equals || equals == word)
        return cornu__fail(CORNU_ERR_DEVICE, "device \"%s\": \"%.*s\", expected OPTION=VALUE",
                           device_name, n, word);
    if (name->count == CORNU_PJRT_OPTIONS)
        return cornu__fail(CORNU_ERR_DEVICE, "device \"%s\": more than %d options", device_name,
                           CORNU_PJRT_OPTIONS);
    char *const  option = name->options[name->count].name;
    char *const  value = name->options[name->count].value;
    const size_t before = (size_t)(equals - word);
    if (!copy(option, sizeof name->options->name, word, before) ||
        !copy(value, sizeof name->options->value, equals + 1, length - before - 1))
        return cornu__fail(CORNU_ERR_DEVICE, "device \"pjrt\": \"%.*s\" is too long: at most %zu "
                           "characters for an option and %zu for its value", n, word,
                           sizeof name->options->name - 1, sizeof name->options->value - 1);
    for (int i = 0; i < name->count; i++)
        if (strcmp(name->options[i].name, option) == 0)
            return cornu__fail(CORNU_ERR_DEVICE, "device \"%s\": %s is given twice", device_name,
                               option);
    name->count++;
    return CORNU_OK;
}

CornuStatus cornu__pjrt_parse(const char *device_name, CornuPjrtName *name)
{
    const char *at = strchr(device_name, ':');
    memset(name, 0, sizeof *name);
    if (!at) return CORNU_OK;
    for (bool first = true; *at; first = false) {
        const char  *word = at + 1;
        const size_t length = word_length(word);
        at = word + length;
        if (!first || is_option(word, length))
            CORNU__TRY(add_option(device_name, word, length, name));
        else if (!copy(name->plugin, sizeof name->plugin, word, length))
            return cornu__fail(CORNU_ERR_DEVICE, "device \"pjrt\": a path of %zu characters, "
                               "expected at most %d", length, CORNU_PJRT_PATH - 1);
    }
    return CORNU_OK;
}

/* The option goes after those that remain, where no later call moves it. */
const char *cornu__pjrt_take(CornuPjrtName *name, const char *option)
{
    for (int i = 0; i < name->count; i++) {
        if (strcmp(name->options[i].name, option) != 0) continue;
        const int last = --name->count;
        char      taken[sizeof *name->options];
        memcpy(taken, &name->options[i], sizeof taken);
        memmove(&name->options[i], &name->options[i + 1],
                (size_t)(last - i) * sizeof *name->options);
        memcpy(&name->options[last], taken, sizeof taken);
        return name->options[last].value;
    }
    return NULL;
}

/* ---- Values ---- */

/* An integer up to `end`, not beyond 64 bits. */
static bool integer(const char *text, const char **end, int64_t *value)
{
    char *after;
    if (!strchr("+-0123456789", *text)) return false;   /* no blanks */
    errno = 0;
    *value = strtoll(text, &after, 10);
    *end = after;
    return after > text && errno == 0;
}

/* "2:2:1", and "0:", a list of one; how many, or 0 if it is none. */
static size_t list(const char *text, int64_t *to, size_t most)
{
    size_t count = 0;
    for (const char *end; count < most && integer(text, &end, &to[count]); text = end + 1) {
        count++;
        if (*end != ':') return *end || count < 2 ? 0 : count;
        if (!end[1]) return count == 1 ? 1 : 0;
    }
    return 0;
}

static bool real(const char *text, float *value)
{
    char *end;
    if (text[strspn(text, "+-.0123456789eE")]) return false;   /* no inf, nan, hexadecimal */
    *value = (float)cornu__parse_number(text, &end);
    return end > text && !*end;
}

int cornu__pjrt_values(const CornuPjrtName *name, CornuPjrtLists *lists,
                       PjrtNamedValue values[CORNU_PJRT_OPTIONS])
{
    for (int i = 0; i < name->count; i++) {
        const char     *text = name->options[i].value, *end;
        PjrtNamedValue *to = &values[i];
        const size_t    most = sizeof lists->of[i] / sizeof *lists->of[i];
        *to = (PjrtNamedValue)PJRT_ARGUMENTS(PjrtNamedValue, .name = name->options[i].name,
                                             .name_size = strlen(name->options[i].name),
                                             .value_size = 1);
        if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
            to->type = PJRT_BOOL;
            to->value.boolean = text[0] == 't';
        } else if (integer(text, &end, &to->value.int64) && !*end) {
            to->type = PJRT_INT64;
        } else if ((to->value_size = list(text, lists->of[i], most))) {
            to->type = PJRT_INT64_LIST;
            to->value.int64_list = lists->of[i];
        } else if (to->value_size = 1, real(text, &to->value.real)) {
            to->type = PJRT_FLOAT;
        } else {
            to->type = PJRT_STRING;
            to->value.string = text;
            to->value_size = strlen(text);
        }
    }
    return name->count;
}
