/*
 * Status codes and error messages.
 *
 * A function that does something returns a CornuStatus; a function that makes something
 * returns a pointer, NULL on failure. Both record a message for this thread that names the
 * place, what was expected and what came.
 *
 * A failed *constructor* (a function that returns NULL) also leaves its error *pending*: until
 * cornu_error_take() every further constructor fails, frees its arguments and keeps the first
 * message, so nested calls such as
 *
 *     cornu_compile(model, .optimizer = cornu_adam(.beta_1 = 2.0))
 *
 * cannot turn a mistake into a silent default, and a chain of calls is checked once, at its
 * end. When a constructor, or a function of a model, fails because an error is pending, the message
 * is that error's, says that it is still pending, and names cornu_error_take().
 *
 * A *loading* function (its name ends in _load, _open, _parse or _load_compiled: models, tables,
 * texts, digits, files of arrays; all but cornu_device_open and cornu_processes_open) leaves
 * nothing pending. Its result is never an optional argument, so its NULL cannot pass for one that
 * was left out, and a missing file is an ordinary case:
 *
 *     CornuModel *model = cornu_model_load("digits.keras");
 *     if (!model) model = build();
 *
 * Its status is cornu_error_status(). A function that is given the NULL fails with the message of
 * the loading function, if nothing has failed since. An error that is returned as a status is not
 * pending either: the caller can see it. Data sets that read files (cornu_image_folder) are
 * constructors, since cornu_fit takes NULL for no validation data. A getter leaves nothing pending:
 * given NULL, or an index out of range, it returns NULL, 0 or what its header says, and records a
 * message.
 */
#ifndef CORNU_DEVICE_STATUS_H
#define CORNU_DEVICE_STATUS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CORNU_STATUS_MAP(X)                                                     \
    X(OK,              "success")                                               \
    X(ERR_ARGUMENT,    "an argument cannot be used")                            \
    X(ERR_SHAPE,       "shapes do not fit the operation")                       \
    X(ERR_DTYPE,       "element types do not fit the operation")                \
    X(ERR_VALUE,       "a value is outside its range")                          \
    X(ERR_MEMORY,      "out of memory")                                         \
    X(ERR_FILE,        "a file cannot be read or written")                      \
    X(ERR_FORMAT,      "a file does not have the expected format")              \
    X(ERR_DATA,        "a data set is missing or incomplete")                   \
    X(ERR_DEVICE,      "a device is absent or cannot be used")                  \
    X(ERR_UNSUPPORTED, "not available in this version")                         \
    X(ERR_INTERRUPTED, "stopped on request")                                    \
    X(ERR_BUSY,        "in use by another thread")                              \
    X(ERR_PROCESS,     "another process has ended, or differs from this one")

typedef enum {
#define X(name, text) CORNU_##name,
    CORNU_STATUS_MAP(X)
#undef X
} CornuStatus;

/* "ERR_SHAPE"; "UNKNOWN" for any other number. */
const char *cornu_status_name(CornuStatus status);
/* What it means, above; "unknown status" for any other number. */
const char *cornu_status_text(CornuStatus status);

/* The last message of this thread, or "". Valid until the next failure or cornu_error_take(). */
const char *cornu_error_message(void);

/* The status of cornu_error_message(). */
CornuStatus cornu_error_status(void);

/* Whether a constructor of this thread failed and its error has not been taken yet. */
bool cornu_error_pending(void);

/* For functions of other languages that the library calls: fails with this message, copied, and
 * leaves it pending, as a constructor does. */
void cornu_error_raise(CornuStatus status, const char *message);

/* Ends the pending state and returns the status. The message stays readable until the next
 * failure. CORNU_OK when nothing was pending. */
CornuStatus cornu_error_take(void);

/* For code outside the library, such as a failing callback: records the message, unless an error
 * is pending, and returns the status to report. The format is printf's. */
CornuStatus cornu_error_set(CornuStatus status, const char *format, ...);

#ifdef __cplusplus
}
#endif
#endif
