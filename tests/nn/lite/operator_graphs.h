/* The graphs of one operator of 8 bits in tests/golden/int8, which tests/golden/make_int8.py has
 * written with operands and LiteRT's results. */
#ifndef CORNU_TESTS_OPERATOR_GRAPHS_H
#define CORNU_TESTS_OPERATOR_GRAPHS_H

#include "../../../nn/lite/graph/graph.h"
#include "../golden.h"

enum { MOST_PORTS = 4 };

/* The graph of a case, which the caller frees. */
CornuLiteGraph *operator_graph(Golden *golden, const char *name, const json_t *about);

#endif
