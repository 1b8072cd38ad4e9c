#include "status_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/print.h"

static _Thread_local struct {
    CornuStatus status;
    bool        pending, refused;   /* refused: the pending error made a constructor fail */
    bool        unloaded;           /* the failure is a loading function's */
    CornuFault  fault;
    char        message[CORNU_MESSAGE_SIZE];
    char        refusal[CORNU_MESSAGE_SIZE + 120];   /* with what cornu__refused adds */
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

const char *cornu_error_message(void)
{
    return error.pending && error.refused ? error.refusal : error.message;
}

CornuStatus cornu_error_status(void) { return error.status; }
bool        cornu_error_pending(void) { return error.pending; }

CornuStatus cornu_error_take(void)
{
    CornuStatus status = error.pending ? error.status : CORNU_OK;
    error.pending = error.refused = false;
    return status;
}

bool cornu__refused(void)
{
    if (!error.pending || error.refused) return error.pending;
    error.refused = true;
    snprintf(error.refusal, sizeof error.refusal, "%s (still pending: constructors fail until "
             "cornu_error_take() is called)", error.message);
    return true;
}

CornuStatus cornu__refused_status(void) { return cornu__refused() ? error.status : CORNU_OK; }

void *cornu__loaded(void *loaded)
{
    if (!loaded) cornu_error_take();
    error.unloaded = !loaded;
    return loaded;
}

static CornuStatus record_message(CornuStatus status, const char *format, va_list arguments)
{
    if (error.pending) return error.status;
    /* Into a buffer of its own, since an argument may be the old message. */
    char text[CORNU_MESSAGE_SIZE];
    cornu__vformat_shown(text, sizeof text, format, arguments);
    memcpy(error.message, text, sizeof text);
    error.status = status;
    error.unloaded = false;
    error.fault = (CornuFault){ 0 };
    return status;
}

CornuStatus cornu__fail(CornuStatus status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status = record_message(status, format, arguments);
    va_end(arguments);
    return status;
}

CornuStatus cornu__fail_absent(const char *format, ...)
{
    char    what[CORNU_MESSAGE_SIZE / 2];
    va_list arguments;
    if (error.pending || error.unloaded) return error.status;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s is NULL", what);
}

CornuStatus cornu__fail_value(CornuFault fault, const char *format, ...)
{
    va_list arguments;
    if (error.pending) return error.status;
    va_start(arguments, format);
    record_message(CORNU_ERR_VALUE, format, arguments);
    va_end(arguments);
    error.fault = fault;
    return CORNU_ERR_VALUE;
}

CornuStatus cornu__fail_element(CornuFault fault, const char *what, int64_t number, int64_t last)
{
    const long long row = fault.index;
    if (number == CORNU__NAN_INDEX)
        return cornu__fail_value(fault, "%s nan in row %lld, expected a whole number", what, row);
    return cornu__fail_value(fault, "%s %lld in row %lld, expected 0 to %lld", what,
                             (long long)number, row, (long long)last);
}

CornuFault cornu__error_fault(void) { return error.fault; }

CornuStatus cornu__fail_index(const char *function, const char *argument, int64_t index,
                              int64_t count)
{
    if (count < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is %lld, but there are none", function,
                           argument, (long long)index);
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is %lld, expected 0 to %lld", function, argument,
                       (long long)index, (long long)count - 1);
}

void cornu__failure_keep(CornuFailure *failure, CornuStatus status)
{
    failure->status = status;
    failure->fault = error.fault;
    if (status != CORNU_OK)
        snprintf(failure->message, sizeof failure->message, "%s", error.message);
}

void cornu__error_keep(CornuFailure *before) { cornu__failure_keep(before, error.status); }

void cornu__error_restore(const CornuFailure *before)
{
    if (before->status) cornu__failure_tell(before);
    else if (!error.pending) cornu_error_take();
}

CornuStatus cornu__failure_tell(const CornuFailure *failure)
{
    if (failure->status == CORNU_OK) return CORNU_OK;
    if (error.pending) return error.status;
    cornu__fail(failure->status, "%s", failure->message);
    error.fault = failure->fault;
    return failure->status;
}

CornuStatus cornu__failure_tell_shard(const CornuFailure *failure, int shard)
{
    if (failure->status == CORNU_OK) return CORNU_OK;
    if (error.pending) return error.status;
    cornu__fail(failure->status, "shard %d: %s", shard, failure->message);
    error.fault = failure->fault;
    error.fault.shard = shard;
    return failure->status;
}

CornuStatus cornu_error_set(CornuStatus status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    status = record_message(status, format, arguments);
    va_end(arguments);
    return status;
}

void cornu_error_raise(CornuStatus status, const char *message)
{
    cornu_error_set(status, "%s", message ? message : "");
    error.pending = true;
}

void *cornu__fail_null(CornuStatus status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    record_message(status, format, arguments);
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
    const CornuFault fault = error.fault;
    if (error.pending || status == CORNU_OK) return status;
    cornu__fail(status, "%s: %s", prefix, error.message);
    error.fault = fault;
    return status;
}
