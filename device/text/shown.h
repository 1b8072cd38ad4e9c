/* Names from files or users, made safe to print: control characters, which a terminal would obey,
 * are escaped. */
#ifndef CORNU_DEVICE_SHOWN_H
#define CORNU_DEVICE_SHOWN_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct { char text[240]; } CornuShown;

/* `name` itself, or if it has control characters, newlines included, a copy in *to that has each as
 * a backslash, x and two hexadecimal digits, truncated to fit. Valid as long as both. */
const char *cornu_shown(CornuShown *to, const char *name);

#ifdef __cplusplus
}
#endif
#endif
