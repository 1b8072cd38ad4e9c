/* The socket that clients connect to. */
#ifndef CORNU_SERVE_LISTEN_H
#define CORNU_SERVE_LISTEN_H

#include "../settings.h"

/* Listens on --address and --port; -1 with a message on stderr. */
int listen_on(const Settings *settings);

/* "listening on http://127.0.0.1:8501", on stdout. */
void listen_print(int listener);

/* Drops the packets of clients that would connect from now on. Those whose connection the kernel
 * has already made may have sent their request: they can still be accepted. */
void listen_no_more(int listener);

/* Whether none of them is left. */
bool listen_empty(int listener);

#endif
