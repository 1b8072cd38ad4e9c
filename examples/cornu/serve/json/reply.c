#include "reply.h"

#include <stdio.h>
#include <string.h>

static const struct { const char *name; int http; } codes[CODE_COUNT] = {
#define X(name, http) { #name, http },
    REPLY_CODES(X)
#undef X
};

const char *code_name(Code code) { return codes[code].name; }

int code_http(Code code) { return codes[code].http; }

bool problem_set(Problem *problem, Code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    problem->code = code;
    vsnprintf(problem->message, sizeof problem->message, format, arguments);
    va_end(arguments);
    return false;
}

bool problem_prefix(Problem *problem, const char *format, ...)
{
    char         prefix[sizeof problem->message];
    va_list      arguments;
    const size_t most = sizeof prefix - 1;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    const size_t length = strlen(prefix);
    size_t       kept = strlen(problem->message);
    if (kept > most - length) kept = most - length;
    memmove(problem->message + length, problem->message, kept);
    memcpy(problem->message, prefix, length);
    problem->message[length + kept] = '\0';
    return false;
}

bool problem_of(Problem *problem, CornuStatus status)
{
    static const Code codes_of[] = {
        [CORNU_ERR_ARGUMENT] = CODE_INVALID_ARGUMENT, [CORNU_ERR_SHAPE] = CODE_INVALID_ARGUMENT,
        [CORNU_ERR_DTYPE] = CODE_INVALID_ARGUMENT, [CORNU_ERR_VALUE] = CODE_INVALID_ARGUMENT,
        [CORNU_ERR_MEMORY] = CODE_RESOURCE_EXHAUSTED, [CORNU_ERR_FILE] = CODE_NOT_FOUND,
        [CORNU_ERR_FORMAT] = CODE_INVALID_ARGUMENT, [CORNU_ERR_UNSUPPORTED] = CODE_UNIMPLEMENTED,
    };
    Code code = CODE_INTERNAL;
    if ((size_t)status < sizeof codes_of / sizeof *codes_of && codes_of[status])
        code = codes_of[status];
    return problem_set(problem, code, "%s", cornu_error_message());
}

void reply_problem(Reply *reply, const Problem *problem)
{
    reply->code = problem->code;
    reply->type = NULL;
    reply->body.length = 0;
    text_add(&reply->body, "{\n    \"error\": ");
    text_add_quoted(&reply->body, problem->message);
    text_add(&reply->body, "\n}\n");
}
