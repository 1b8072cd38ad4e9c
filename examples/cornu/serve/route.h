/* The paths of the REST interface. */
#ifndef CORNU_SERVE_ROUTE_H
#define CORNU_SERVE_ROUTE_H

#include "models/library.h"

typedef enum {
    ROUTE_STATUS, ROUTE_METADATA, ROUTE_PREDICT, ROUTE_CLASSIFY, ROUTE_REGRESS
} RouteKind;

typedef struct {
    RouteKind kind;
    char      name[256], label[256];   /* decoded; a route without a model has no name */
    Choice    choice;
} Route;

/* "predict", …; "" for status and metadata: the label API of figures. */
const char *route_method(RouteKind kind);

/* The path as it came, without what follows '?'. False with a problem if it is none of them. */
bool route_parse(Route *route, const char *http_method, const char *path, Problem *problem);

#endif
