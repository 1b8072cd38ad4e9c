#include "keywords_internal.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* The comma after an argument, or the end; commas in parentheses and in strings do not count. */
static const char *argument_end(const char *at)
{
    int  depth = 0;
    char quote = 0;
    for (; *at && (*at != ',' || depth > 0 || quote); at++) {
        if (quote && *at == '\\' && at[1]) at++;
        else if (quote) quote = *at == quote ? 0 : quote;
        else if (*at == '"' || *at == '\'') quote = *at;
        else if (strchr("([{", *at)) depth++;
        else if (strchr(")]}", *at)) depth--;
    }
    return at;
}

static bool is_named(const char *at, const char *name)
{
    const size_t length = strlen(name);
    while (isspace((unsigned char)*++at)) continue;
    return !strncmp(at, name, length) && !isalnum((unsigned char)at[length]) && at[length] != '_';
}

bool cornu__is_written(const char *written, const char *name, int place)
{
    for (int i = 0; written && *written; i++) {
        while (isspace((unsigned char)*written)) written++;
        if (*written == '.') {
            if (is_named(written, name)) return true;
            place = -1;   /* positions no longer count after a name */
        } else if (*written && i == place) {
            return true;
        }
        written = argument_end(written);
        if (*written) written++;
    }
    return false;
}
