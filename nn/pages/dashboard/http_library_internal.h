/*
 * libmicrohttpd, loaded when the first dashboard is made: a program linked with Cornu needs it
 * neither to link nor to start.
 */
#ifndef CORNU_NN_PAGES_HTTP_LIBRARY_INTERNAL_H
#define CORNU_NN_PAGES_HTTP_LIBRARY_INTERNAL_H

#include "../../../device/status_internal.h"

/* Loads it on the first call, for good. CORNU_ERR_UNSUPPORTED, saying what to install, if it is
 * missing, or Cornu was built without its header. */
CornuStatus cornu__http_load(void);

/* Defined if Cornu is built with its header, as the name of the library: libmicrohttpd.so.12. */
#ifdef CORNU_MICROHTTPD

#include <microhttpd.h>

/* The functions used, without "MHD_". */
#define CORNU__HTTP_MAP(X)                                                                    \
    X(add_response_header) X(create_response_from_buffer) X(create_response_from_callback)    \
    X(destroy_response) X(get_connection_info) X(lookup_connection_value) X(queue_response)   \
    X(resume_connection) X(run_wait) X(start_daemon) X(stop_daemon) X(suspend_connection)

typedef struct {
#define CORNU__HTTP_FIELD(name) __typeof__(MHD_##name) *name;
    CORNU__HTTP_MAP(CORNU__HTTP_FIELD)
#undef CORNU__HTTP_FIELD
} CornuHttpLibrary;

/* Its addresses, once cornu__http_load has succeeded. */
extern CornuHttpLibrary cornu__http;

#endif

#endif
