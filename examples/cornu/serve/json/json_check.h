/* Whether a body is JSON. */
#ifndef CORNU_SERVE_JSON_CHECK_H
#define CORNU_SERVE_JSON_CHECK_H

#include "reply.h"

/* Checks one value from *at on, with the blanks around it; moves *at after it. */
bool json_check(const char **at, const char *begin, const char *end, Problem *problem);

/* The length of NaN, Infinity or the like at the start of some bytes, and its value; 0: none. Reads
 * no more than what is like one. */
size_t json_special(const char *bytes, size_t size, double *value);

const char *json_skip_blanks(const char *at, const char *end);

#endif
