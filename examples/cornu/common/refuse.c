#include "refuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static char refusal[1200];

CornuStatus options_blame(CornuStatus status)
{
    if (status) snprintf(refusal, sizeof refusal, "%s", cornu_error_message());
    return status;
}

CornuStatus options_refuse(const char *format, ...)
{
    char    message[sizeof refusal];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return options_blame(cornu_error_set(CORNU_ERR_ARGUMENT, "%s", message));
}

bool options_refused(void) { return *refusal && !strcmp(cornu_error_message(), refusal); }
