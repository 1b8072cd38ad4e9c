/* Failures that a command line is to blame for, found after its flags were read: cornu run does not
 * start such a program again. */
#ifndef CORNU_EXAMPLES_REFUSE_H
#define CORNU_EXAMPLES_REFUSE_H

#include <cornu/cornu.h>

enum { OPTIONS_BAD_USAGE = 2 };   /* the exit status */

/* A value of a flag that cannot be, or flags that do not go together: CORNU_ERR_ARGUMENT with this
 * message, and session_end ends the program with status 2. */
CornuStatus options_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Likewise where the library refused what a flag says, with this status. CORNU_OK stays that. */
CornuStatus options_blame(CornuStatus status);

/* Whether the last message is of such a failure. */
bool options_refused(void);

#endif
