/* Source: tensorflow/serving, model_servers/http_rest_api_util.cc: its two regular expressions,
 * which ignore case, and its messages. */
#include "route.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const methods[] = { "", "", "predict", "classify", "regress" };

const char *route_method(RouteKind kind) { return methods[kind]; }

/* Skips a word. */
static bool skip(const char **path, const char *word)
{
    const size_t length = strlen(word);
    if (strncasecmp(*path, word, length) != 0) return false;
    *path += length;
    return true;
}

static int hex(char c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char       *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) % 16 : -1;
}

/* A part of the path up to '/' or ':', with each %41 decoded. */
static bool take(const char **path, char *to, size_t size, const char *what, Problem *problem)
{
    const char *from = *path;
    size_t      length = 0;
    for (; *from && *from != '/' && *from != ':' && length + 1 < size; length++) {
        const int high = *from == '%' ? hex(from[1]) : -1, low = high >= 0 ? hex(from[2]) : -1;
        to[length] = low >= 0 ? (char)(high * 16 + low) : *from;
        if (!to[length]) break;
        from += low >= 0 ? 3 : 1;
    }
    to[length] = '\0';
    if (*from && *from != '/' && *from != ':')
        return problem_set(problem, CODE_INVALID_ARGUMENT, "Failed to decode %s:%s", what, *path);
    *path = from;
    return true;
}

static bool malformed(const char *http_method, const char *path, Problem *problem)
{
    return problem_set(problem, CODE_INVALID_ARGUMENT, "Malformed request: %s %s", http_method,
                       path);
}

/* /versions/N or /labels/LABEL, if one is there. The digits must be followed by the path's end. */
static bool take_choice(Route *route, const char **path, Problem *problem)
{
    const char *digits = *path;
    if (skip(path, "/labels/")) {
        if (!take(path, route->label, sizeof route->label, "model version label", problem))
            return false;
        route->choice.label = route->label;
    } else if (skip(&digits, "/versions/")) {
        const size_t count = strspn(digits, "0123456789");
        const char   after = digits[count];
        if (!count || (after && after != '/' && after != ':')) return true;
        errno = 0;
        route->choice.version = strtoll(digits, NULL, 10);
        if (errno)
            return problem_set(problem, CODE_INVALID_ARGUMENT,
                               "Failed to convert version: %.*s to numeric.", (int)count, digits);
        *path = digits + count;
    }
    return true;
}

bool route_parse(Route *route, const char *http_method, const char *path, Problem *problem)
{
    const char *at = path;
    const bool  get = !strcmp(http_method, "GET"), post = !strcmp(http_method, "POST");
    *route = (Route){ .kind = ROUTE_STATUS, .choice = { .version = -1 } };
    if (strncasecmp(path, "/v1/", 4) != 0)
        return problem_set(problem, CODE_NOT_FOUND, "Not found: %s", path);
    if (!skip(&at, "/v1/models") || (!get && !post)) return malformed(http_method, path, problem);
    if (*at == '/' && at[1] && at[1] != '/' && at[1] != ':') {
        at++;
        if (!take(&at, route->name, sizeof route->name, "model name", problem) ||
            !take_choice(route, &at, problem))
            return false;
    }
    if (get) {
        if (skip(&at, "/metadata")) route->kind = ROUTE_METADATA;
        if (*at) return malformed(http_method, path, problem);
        return *route->name || problem_set(problem, CODE_INVALID_ARGUMENT,
                                           "Missing model name in request.");
    }
    if (*route->name && *at == ':')
        for (RouteKind kind = ROUTE_PREDICT; kind <= ROUTE_REGRESS; kind++)
            if (!strcasecmp(at + 1, methods[kind])) {
                route->kind = kind;
                return true;
            }
    return malformed(http_method, path, problem);
}
