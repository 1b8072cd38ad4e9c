/* A stranger for tests: one who connects to a rank that waits for others, knows how ranks speak,
 * but has no key. It shares no code with the library. */
#ifndef CORNU_TESTS_STRANGER_H
#define CORNU_TESTS_STRANGER_H

#include <stdbool.h>

typedef enum {
    STRANGER_SILENT,      /* connects, and says nothing */
    STRANGER_LEAVES,      /* at once */
    STRANGER_BROWSES,     /* speaks HTTP */
    STRANGER_HALF,        /* of a hello, and then nothing */
    STRANGER_OLD,         /* a hello of protocol 1, which had no key */
    STRANGER_CLAIMS,      /* to be a rank, with a code of zeros */
    STRANGER_MIRRORS,     /* claims to be a rank, and shows what it was shown */
    STRANGER_KINDS
} StrangerKind;

/* Connects to "127.0.0.1:port" as such a one, who says that it is that rank of `count`. True unless
 * it was shown a code, or taken for a rank: those that leave or are silent are not seen to be
 * refused, and stay connected as long as the process lives. */
bool stranger_knocks(StrangerKind kind, const char *address, int rank, int count);

/* Takes one connection at a socket that listens, and poses as rank 0 of `count`, with a code of
 * zeros or the one that it was shown. True if the other left then. */
bool stranger_poses(int listener, int count, bool mirrors);

#endif
