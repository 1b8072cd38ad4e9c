/* How the library reports failures; see status.h for the rule about pending errors. */
#ifndef CORNU_DEVICE_STATUS_INTERNAL_H
#define CORNU_DEVICE_STATUS_INTERNAL_H

#include <stdint.h>

#include "status.h"

#include <stdint.h>

#if defined(__GNUC__)
#define CORNU__PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CORNU__PRINTF(text, first)
#endif

/* For functions that return a status: records the message unless an error is pending (the
 * first one stays) and returns the status to report. */
CornuStatus cornu__fail(CornuStatus status, const char *format, ...) CORNU__PRINTF(2, 3);

/* Which of `count` values that all rows have, in their order, is at fault, of one shard. */
typedef struct { int64_t index, count; int shard; } CornuFault;

/* As cornu__fail, for a value of the data. */
CornuStatus cornu__fail_value(CornuFault fault, const char *format, ...) CORNU__PRINTF(2, 3);

/* That of the message just recorded; its count is 0 where there is none. */
CornuFault cornu__error_fault(void);

/* For functions that return a pointer: as above, makes the error pending and returns NULL. */
void *cornu__fail_null(CornuStatus status, const char *format, ...) CORNU__PRINTF(2, 3);

/* For a constructor whose callee failed with a status: makes that error pending. NULL. */
void *cornu__null(void);

/* For a constructor, first of all: whether it must fail because an error is pending. The message
 * says so from then on. */
bool cornu__refused(void);

/* For a loading function that was not refused, of what it returns: if that is NULL the error is no
 * longer pending. Returns `loaded`. */
void *cornu__loaded(void *loaded);

/* For a function given NULL for what is required, named by the format: the failure of the loading
 * function that may have given it, if nothing has failed since, else "… is NULL". Returns the
 * status to report. */
CornuStatus cornu__fail_absent(const char *format, ...) CORNU__PRINTF(1, 2);

/* Puts "prefix: " in front of the message just recorded, to name the layer or file it belongs
 * to. Does nothing while an older error is pending. Returns status. */
CornuStatus cornu__fail_prefix(CornuStatus status, const char *prefix);

enum { CORNU_MESSAGE_SIZE = 1024 };

/* Messages belong to threads: what failed on one, to be told on another. */
typedef struct {
    CornuStatus status;
    CornuFault  fault;
    char        message[CORNU_MESSAGE_SIZE];   /* of a failure */
} CornuFailure;

/* Keeps how a call ended, with the message just recorded on this thread. */
void cornu__failure_keep(CornuFailure *failure, CornuStatus status);

/* Records a failure on this thread; returns its status, CORNU_OK if it was none. Of a shard: with
 * its number. */
CornuStatus cornu__failure_tell(const CornuFailure *failure);
CornuStatus cornu__failure_tell_shard(const CornuFailure *failure, int shard);

/* An index that is not from 0 to count - 1, of a public function. */
CornuStatus cornu__fail_index(const char *function, const char *argument, int64_t index,
                              int64_t count);

/* For public functions: what they cannot do without. They fail with a message that names function
 * and argument; where they return no status the result is `otherwise`, and a constructor's error is
 * pending. */
#define CORNU__NEED_OR(argument, otherwise)                                                  \
    do {                                                                                     \
        if (!(argument)) {                                                                   \
            cornu__fail_absent("%s: %s", __func__, #argument);                               \
            return otherwise;                                                                \
        }                                                                                    \
    } while (0)
#define CORNU__NEED(argument) CORNU__NEED_OR(argument, cornu_error_status())
#define CORNU__NEED_TO_MAKE(argument) CORNU__NEED_OR(argument, cornu__null())
#define CORNU__NEED_TO_LOAD(argument) \
    CORNU__NEED_OR(argument, cornu__refused() ? NULL : cornu__loaded(NULL))
#define CORNU__NEED_INDEX(index, count, otherwise)                                           \
    do {                                                                                     \
        if ((index) < 0 || (index) >= (count)) {                                             \
            cornu__fail_index(__func__, #index, index, count);                               \
            return otherwise;                                                                \
        }                                                                                    \
    } while (0)

/* One step of a sequence: returns from the calling function when the call failed. */
#define CORNU__TRY(call)                                 \
    do {                                                 \
        CornuStatus cornu__try = (call);                 \
        if (cornu__try != CORNU_OK) return cornu__try;   \
    } while (0)

#endif
