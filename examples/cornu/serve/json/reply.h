/* What a request comes to: a status code and a body. */
#ifndef CORNU_SERVE_REPLY_H
#define CORNU_SERVE_REPLY_H

#include <cornu/cornu.h>

#include "text.h"

/* The codes of TensorFlow Serving that occur here, with the HTTP status of each (ToHTTPStatusCode
 * of its http_server.cc), and one of this server's own for a body that is too large. */
#define REPLY_CODES(X)           \
    X(OK,                  200)  \
    X(INVALID_ARGUMENT,    400)  \
    X(FAILED_PRECONDITION, 400)  \
    X(NOT_FOUND,           404)  \
    X(TOO_LARGE,           413)  \
    X(RESOURCE_EXHAUSTED,  429)  \
    X(INTERNAL,            500)  \
    X(UNIMPLEMENTED,       501)  \
    X(UNAVAILABLE,         503)  \
    X(DEADLINE_EXCEEDED,   504)

typedef enum {
#define X(name, http) CODE_##name,
    REPLY_CODES(X)
#undef X
    CODE_COUNT
} Code;

const char *code_name(Code code);      /* "INVALID_ARGUMENT" */
int         code_http(Code code);

/* What went wrong; all zeros: nothing. */
typedef struct {
    Code code;
    char message[1200];
} Problem;

/* Sets code and message, and returns false, for `return problem_set(…)`. */
bool problem_set(Problem *problem, Code code, const char *format, ...);

/* Puts a string before the message of a problem. Returns false. */
bool problem_prefix(Problem *problem, const char *format, ...);

/* The failure that a function of the library just returned. Returns false. */
bool problem_of(Problem *problem, CornuStatus status);

/* An answer. */
typedef struct {
    Code        code;
    const char *type;                  /* its Content-Type; NULL is application/json */
    Text        body;
} Reply;

/* {"error": message} with its code, in place of what the reply had. */
void reply_problem(Reply *reply, const Problem *problem);

#endif
