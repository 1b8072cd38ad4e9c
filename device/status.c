#include "status_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    CornuStatus status;
    bool        pending;
    char        message[CORNU_MESSAGE_SIZE];
} error;

static const struct { const char *name, *text; } statuses[] = {
#define X(name, text) { #name, text },
    CORNU_STATUS_MAP(X)
#undef X
};

static bool known(CornuStatus status)
{
    return (unsigned)status < sizeof statuses / sizeof *statuses;
}

const char *cornu_status_name(CornuStatus status)
{
    return known(status) ? statuses[status].name : "UNKNOWN";
}

const char *cornu_status_text(CornuStatus status)
{
    return known(status) ? statuses[status].text : "unknown status";
}

const char *cornu_error_message(void) { return error.message; }
CornuStatus cornu_error_status(void) { return error.status; }
bool        cornu_error_pending(void) { return error.pending; }

CornuStatus cornu_error_take(void)
{
    CornuStatus status = error.pending ? error.status : CORNU_OK;
    error.pending = false;
    return status;
}

static CornuStatus record(CornuStatus status, const char *format, va_list arguments)
{
    if (error.pending) return error.status;
    /* Formatted aside first: an argument may be the old message. */
    char text[CORNU_MESSAGE_SIZE];
    vsnprintf(text, sizeof text, format, arguments);
    memcpy(error.message, text, sizeof text);
    error.status = status;
    return status;
}

CornuStatus cornu__fail(CornuStatus status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status = record(status, format, arguments);
    va_end(arguments);
    return status;
}

void cornu__failure_keep(CornuFailure *failure, CornuStatus status)
{
    failure->status = status;
    if (status != CORNU_OK)
        snprintf(failure->message, sizeof failure->message, "%s", error.message);
}

CornuStatus cornu__failure_tell(const CornuFailure *failure)
{
    return failure->status == CORNU_OK ? CORNU_OK
                                       : cornu__fail(failure->status, "%s", failure->message);
}

CornuStatus cornu_error_set(CornuStatus status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status = record(status, format, arguments);
    va_end(arguments);
    return status;
}

void *cornu__fail_null(CornuStatus status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record(status, format, arguments);
    va_end(arguments);
    return cornu__null();
}

void *cornu__null(void)
{
    error.pending = true;
    return NULL;
}

CornuStatus cornu__fail_prefix(CornuStatus status, const char *prefix)
{
    if (error.pending || status == CORNU_OK) return status;
    return cornu__fail(status, "%s: %s", prefix, error.message);
}
