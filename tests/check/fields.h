/* The attributes of an op field by field. */
#ifndef CORNU_TESTS_CHECK_FIELDS_H
#define CORNU_TESTS_CHECK_FIELDS_H

#include "../../device/ops/rules.h"

/* "&(CornuAttributes){ .reduce = { .axes = 1, .keep = 0, .widen = 0 } }"; programs are `body`. */
void fields_print(CornuOpId id, const CornuAttributes *attributes, FILE *to);

/* Replaces every integer that is `old` by `new`. */
void fields_replace(CornuOpId id, CornuAttributes *attributes, int64_t old, int64_t new);

/* "CORNU_F32", "CORNU_OP_MATMUL" */
const char *dtype_identifier(CornuDtype dtype);
const char *op_identifier(CornuOpId id);

#endif
