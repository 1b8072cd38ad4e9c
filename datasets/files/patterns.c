/* The files that a pattern stands for. */
#define _XOPEN_SOURCE 700    /* glob */

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../../device/memory_internal.h"
#include "../remote/remote_internal.h"
#include "inputs_internal.h"

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static CornuStatus add_matches(CornuInputs *inputs, const char *pattern)
{
    glob_t    found;
    const int result = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (result == GLOB_NOSPACE)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for the files' names", pattern);
    if (result == GLOB_NOMATCH)
        return cornu__fail(CORNU_ERR_DATA, "%s: no file matches this pattern", pattern);
    if (result)
        return cornu__fail(CORNU_ERR_FILE, "%s: a folder cannot be read", pattern);
    qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_text);
    CornuStatus status = CORNU_OK;
    for (size_t i = 0; i < found.gl_pathc && !status; i++)
        status = cornu__inputs_add(inputs, found.gl_pathv[i]);
    globfree(&found);
    return status;
}

static CornuStatus add_address(void *inputs, const char *address)
{
    return cornu__inputs_add(inputs, address);
}

/* In the address of a web page ? begins its query, and * is a character. */
static bool is_bucket_pattern(const char *pattern)
{
    return cornu__is_remote(pattern) && strncasecmp(pattern, "http", 4) &&
           strpbrk(pattern, "*?[") != NULL;
}

/* ---- Braces, as of bash ---- */

/* "000..127": ascending or descending, with zeros up to the longer one if one has them. */
typedef struct { long first, last; int digits; } Range;

static bool is_range(const char *text, size_t length, Range *range)
{
    enum { MOST_DIGITS = 9 };
    size_t low = 0, high = 0;
    while (low < length && isdigit((unsigned char)text[low])) low++;
    if (low == 0 || low > MOST_DIGITS || low + 2 > length || memcmp(text + low, "..", 2))
        return false;
    for (const char *at = text + low + 2; low + 2 + high < length && isdigit((unsigned char)*at);
         at++)
        high++;
    if (high == 0 || high > MOST_DIGITS || low + 2 + high != length) return false;
    const bool zeros = text[0] == '0' || text[low + 2] == '0';
    *range = (Range){ strtol(text, NULL, 10), strtol(text + low + 2, NULL, 10),
                      zeros ? (int)(low > high ? low : high) : 1 };
    return true;
}

static CornuStatus match(CornuInputs *inputs, const char *pattern);

/* The pattern with `length` bytes in place of its braces, from `open` to `close`. */
static CornuStatus match_with(CornuInputs *inputs, const char *pattern, const char *open,
                              const char *close, const char *text, size_t length)
{
    const size_t before = (size_t)(open - pattern), after = strlen(close + 1);
    char        *made = cornu__allocate(before + length + after + 1, 1);
    if (!made) return CORNU_ERR_MEMORY;
    memcpy(made, pattern, before);
    memcpy(made + before, text, length);
    memcpy(made + before + length, close + 1, after);
    const CornuStatus status = match(inputs, made);
    cornu__release(made);
    return status;
}

static CornuStatus match_range(CornuInputs *inputs, const char *pattern, const char *open,
                               const char *close, Range range)
{
    const long step = range.first <= range.last ? 1 : -1;
    for (long i = range.first;; i += step) {
        char number[32];
        snprintf(number, sizeof number, "%0*ld", range.digits, i);
        CORNU__TRY(match_with(inputs, pattern, open, close, number, strlen(number)));
        if (i == range.last) return CORNU_OK;
    }
}

static CornuStatus match(CornuInputs *inputs, const char *pattern)
{
    const char *open = strchr(pattern, '{'), *close = open ? strchr(open, '}') : NULL;
    Range       range;
    if (close && is_range(open + 1, (size_t)(close - open - 1), &range))
        return match_range(inputs, pattern, open, close, range);
    if (close && memchr(open, ',', (size_t)(close - open))) {
        for (const char *at = open + 1; at <= close;) {
            const size_t length = strcspn(at, ",}");
            CORNU__TRY(match_with(inputs, pattern, open, close, at, length));
            at += length + 1;
        }
        return CORNU_OK;
    }
    if (is_bucket_pattern(pattern)) return cornu__remote_match(pattern, add_address, inputs);
    if (cornu__is_remote(pattern)) return cornu__inputs_add(inputs, pattern);
    return strpbrk(pattern, "*?[") && access(pattern, F_OK) ? add_matches(inputs, pattern)
                                                            : cornu__inputs_add(inputs, pattern);
}

CornuStatus cornu__inputs_match(CornuInputs *inputs, const char *pattern)
{
    return access(pattern, F_OK) ? match(inputs, pattern) : cornu__inputs_add(inputs, pattern);
}
