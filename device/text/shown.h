/* Names from files or users as they may be printed: with control characters, which a terminal would
 * obey, spelled out. */
#ifndef CORNU_DEVICE_SHOWN_H
#define CORNU_DEVICE_SHOWN_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct { char text[240]; } CornuShown;

/* `name` itself, or if it has control characters, line ends included, a copy in *to that spells them
 * as a backslash, x and two hexadecimal digits, truncated to its size. Valid as long as both. */
const char *cornu_shown(CornuShown *to, const char *name);

#ifdef __cplusplus
}
#endif
#endif
