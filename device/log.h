/*
 * What the library tells of its work: which device it took, what it compiled, which files it wrote
 * or read, what fell back to something slower. Nothing is said unless somebody listens:
 *
 *     static void say(void *context, CornuLogLevel level, const char *message)
 *     {
 *         fprintf(context, "%s: %s\n", cornu_log_level_name(level), message);
 *     }
 *     cornu_set_log(CORNU_LOG_INFO, say, stderr);
 *
 * or the environment has CORNU_LOG=error, warning, info or debug, which prints such lines on stderr
 * as long as no function is set. A device is not opened where CORNU_LOG is another word.
 *
 *     error      what ended a call of the program: its status says so too
 *     warning    what went on in another way than was asked for, or more slowly
 *     info       what happens once: nothing in a step that runs again
 *     debug      each run of a program, each reference device, on which layers are traced
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

/* Gets one line without its end; valid during the call. */
typedef void CornuLogFunction(void *context, CornuLogLevel level, const char *message);

/* From now on the function gets what is said at this level and the more serious ones, from whatever
 * thread, one call at a time; a call that is under way has ended when this returns. What Cornu says
 * while the function itself calls it is dropped; it does not call this one. NULL: as without. */
void cornu_set_log(CornuLogLevel level, CornuLogFunction *function, void *context);

#ifdef __cplusplus
}
#endif
#endif
