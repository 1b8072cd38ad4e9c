/*
 * libmicrohttpd, loaded when the server starts: the program needs it neither to link nor to start.
 */
#ifndef CORNU_SERVE_HTTP_LIBRARY_H
#define CORNU_SERVE_HTTP_LIBRARY_H

#include <stdbool.h>

/* Loads it; false after a message on stderr that says what to install. */
bool http_library_load(void);

/* Defined if Cornu is built with its header, as the name of the library: libmicrohttpd.so.12. */
#ifdef CORNU_MICROHTTPD

#include <microhttpd.h>

/* The functions used, without "MHD_". */
#define HTTP_LIBRARY_MAP(X)                                                                        \
    X(add_response_header) X(create_response_from_buffer) X(destroy_response)                      \
    X(get_connection_info) X(lookup_connection_value) X(queue_response) X(quiesce_daemon)          \
    X(set_connection_option) X(start_daemon) X(stop_daemon)

typedef struct {
#define HTTP_LIBRARY_FIELD(name) __typeof__(MHD_##name) *name;
    HTTP_LIBRARY_MAP(HTTP_LIBRARY_FIELD)
#undef HTTP_LIBRARY_FIELD
} HttpLibrary;

extern HttpLibrary http_library;

#endif

#endif
