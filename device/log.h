/*
 * Logging: which device is used, what was compiled, which files were read or written, what fell
 * back to something slower. Nothing is logged unless a function is set:
 *
 *     static void print(void *context, CornuLogLevel level, const char *message)
 *     {
 *         fprintf(context, "%s: %s\n", cornu_log_level_name(level), message);
 *     }
 *     cornu_set_log(CORNU_LOG_INFO, print, stderr);
 *
 * or CORNU_LOG is error, warning, info or debug in the environment, which prints such lines to
 * stderr while no function is set. With any other word in CORNU_LOG no device opens.
 *
 *     error      a call failed; its status says so too
 *     warning    something was done otherwise than asked for, or more slowly
 *     info       what happens once, never in a repeated step
 *     debug      each run of a program; each reference device, on which layers are traced
 */
#ifndef CORNU_DEVICE_LOG_H
#define CORNU_DEVICE_LOG_H

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CORNU_LOG_NOTHING, CORNU_LOG_ERROR, CORNU_LOG_WARNING, CORNU_LOG_INFO, CORNU_LOG_DEBUG
} CornuLogLevel;

/* "error", "warning", "info", "debug"; NULL for anything else. */
const char *cornu_log_level_name(CornuLogLevel level);

/* Gets one line without a newline, valid during the call. */
typedef void CornuLogFunction(void *context, CornuLogLevel level, const char *message);

/* From now on the function gets the messages of this level and of more serious ones, from any
 * thread, one call at a time; a call in progress has ended when this returns. Messages caused by
 * the function's own calls of Cornu are dropped; it must not call cornu_set_log. NULL unsets it. */
void cornu_set_log(CornuLogLevel level, CornuLogFunction *function, void *context);

#ifdef __cplusplus
}
#endif
#endif
