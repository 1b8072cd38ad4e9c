/* How the library reports failures; see status.h for the rule about pending errors. */
#ifndef CORNU_DEVICE_STATUS_INTERNAL_H
#define CORNU_DEVICE_STATUS_INTERNAL_H

#include <stdint.h>

#include "status.h"

#if defined(__GNUC__)
#define CORNU__PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define CORNU__PRINTF(text, first)
#endif

/* For functions that return a status: records the message unless an error is pending (the
 * first one stays) and returns the status to report. */
CornuStatus cornu__fail(CornuStatus status, const char *format, ...) CORNU__PRINTF(2, 3);

/* Where bad data is: row `index` of `count`, on a shard, in the run before `runs_ago` others. */
typedef struct { int64_t index, count; int shard; int64_t runs_ago; } CornuFault;

/* As cornu__fail, for a value of the data. */
CornuStatus cornu__fail_value(CornuFault fault, const char *format, ...) CORNU__PRINTF(2, 3);

/* The index that stands for NaN: no table has it, and messages call it nan. */
#define CORNU__NAN_INDEX INT64_MIN

/* As cornu__fail_value, for an element of `what` at fault.index that is not from 0 to last. */
CornuStatus cornu__fail_element(CornuFault fault, const char *what, int64_t number, int64_t last);

/* That of the message just recorded; count is 0 if it has none. */
CornuFault cornu__error_fault(void);

/* For functions that return a pointer: as cornu__fail, and makes the error pending. NULL. */
void *cornu__fail_null(CornuStatus status, const char *format, ...) CORNU__PRINTF(2, 3);

/* For a constructor whose callee failed with a status: makes that error pending. NULL. */
void *cornu__null(void);

/* First in a constructor: whether it must fail because an error is pending. From then on the
 * message says so. */
bool cornu__refused(void);

/* Likewise in a function that returns a status: that of the pending error, or CORNU_OK. */
CornuStatus cornu__refused_status(void);

/* Last in a loading function that was not refused: returns `loaded`, and if that is NULL the error
 * is no longer pending. */
void *cornu__loaded(void *loaded);

/* For a function given NULL for a required argument, which the format names: keeps the failure of
 * the loading function that may have returned it, if nothing has failed since; else "… is NULL".
 * Returns the status to report. */
CornuStatus cornu__fail_absent(const char *format, ...) CORNU__PRINTF(1, 2);

/* Puts "prefix: " in front of the message just recorded, to name the layer or file it belongs
 * to. Does nothing while an older error is pending. Returns status. */
CornuStatus cornu__fail_prefix(CornuStatus status, const char *prefix);

enum { CORNU_MESSAGE_SIZE = 1024 };

/* Messages belong to threads: this carries one from the thread that failed to another. */
typedef struct {
    CornuStatus status;
    CornuFault  fault;
    char        message[CORNU_MESSAGE_SIZE];   /* of a failure */
} CornuFailure;

/* Stores how a call ended, with the message just recorded on this thread. */
void cornu__failure_keep(CornuFailure *failure, CornuStatus status);

/* Records a failure on this thread and returns its status, which may be CORNU_OK; the second one
 * names the shard, too. */
CornuStatus cornu__failure_tell(const CornuFailure *failure);
CornuStatus cornu__failure_tell_shard(const CornuFailure *failure, int shard);

/* Around calls whose failure nobody is to be told: the message before them stays the last one. */
void cornu__error_keep(CornuFailure *before);
void cornu__error_restore(const CornuFailure *before);

/* For public functions: an index that is not in 0 to count - 1. */
CornuStatus cornu__fail_index(const char *function, const char *argument, int64_t index,
                              int64_t count);

/* Checks of required arguments in public functions. They fail with a message that names function
 * and argument, and return `otherwise`, a status, or NULL with the error pending. */
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

/* Returns from the calling function if the call fails. */
#define CORNU__TRY(call)                                 \
    do {                                                 \
        CornuStatus cornu__try = (call);                 \
        if (cornu__try != CORNU_OK) return cornu__try;   \
    } while (0)

#endif
