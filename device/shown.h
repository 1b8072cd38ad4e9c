/* Names from files or users as they may be printed: a control character, which could make a terminal
 * do anything, is shown as \x1b. */
#ifndef CORNU_DEVICE_SHOWN_H
#define CORNU_DEVICE_SHOWN_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct { char text[240]; } CornuShown;

/* `name` itself if it has no control characters, or a copy in *to that shows them, line ends
 * included, truncated to its size. Valid as long as both. */
const char *cornu_shown(CornuShown *to, const char *name);

#ifdef __cplusplus
}
#endif
#endif
