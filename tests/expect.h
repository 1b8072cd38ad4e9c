/* What tests expect of statuses: each fails the test with the library's message. */
#ifndef CORNU_TESTS_EXPECT_H
#define CORNU_TESTS_EXPECT_H

#include "../device/status.h"

void expect_ok(CornuStatus status);

/* The status is `wanted` and the message contains `part`. */
void expect_error(CornuStatus got, CornuStatus wanted, const char *part);

/* Nothing was made, and such an error is pending; it is taken. */
void expect_failure(const void *made, CornuStatus wanted, const char *part);

/* As above of a loading function, which leaves no error pending. */
void expect_unloaded(const void *loaded, CornuStatus wanted, const char *part);

#endif
