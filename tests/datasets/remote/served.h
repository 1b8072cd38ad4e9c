/* What tests of remote files share: a file of random bytes on the server, and a cache of its own
 * for each test. */
#ifndef CORNU_TESTS_SERVED_H
#define CORNU_TESTS_SERVED_H

#include <stdbool.h>

#include "../../../datasets/files/inputs_internal.h"
#include "../../skip.h"

enum { SERVED_SIZE = 3000001, SERVED_PART = 1 << 20 };   /* parts of a cache of 64 MB */

extern unsigned char served_bytes[SERVED_SIZE];   /* of the file "a" */
extern char          served_path[4096];           /* PATH, without what a test puts there */

/* For cmocka: of the group, and before each test. */
int served_begin(void **state);
int served_end(void **state);
int served_enter(void **state);

bool served_by_curl(void);
#define NEED_CURL()                                  \
    do {                                             \
        if (!served_by_curl()) SKIP_FOR(SKIP_CURL);  \
    } while (0)

CornuInput served_open(const char *address);
/* Reads and compares bytes of "a". */
void       served_expect(const CornuInput *input, int64_t at, size_t size);
/* All of it, and over the ends of parts. */
void       served_expect_whole(const char *behaviour);

#endif
