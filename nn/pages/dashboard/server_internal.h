/*
 * The server of a dashboard: one thread, in which libmicrohttpd handles all connections.
 *
 *     GET  /         the page
 *     GET  /events   server-sent events: points, report, line, progress, as the board has them
 *     POST /control  {"action": "pause"}, resume, stop, go_on, save, learning_rate with "value"
 *
 * Refused are, in this order: a Host of others (403), paths (404) and methods (405) that are not
 * these, a wrong token or an Origin of others (403), for POST what is not JSON (415), too large
 * (413), or no such action (400), without a file to save to (409), and too many (503). The token
 * comes as ?token=… or, for POST alone so, as "Authorization: Bearer …".
 *
 * Of the clients only numbers are kept: a reader of events gets what is newest when it has taken
 * what came before, so that a slow one sees less. One that takes nothing for 10 s is dropped, and
 * so is a request that takes longer than 20 s.
 */
#ifndef CORNU_NN_PAGES_SERVER_INTERNAL_H
#define CORNU_NN_PAGES_SERVER_INTERNAL_H

#include "board_internal.h"
#include "listen_internal.h"

typedef struct CornuServer CornuServer;

/* Serves on the listener, which must outlive it, as the board. CORNU_ERR_UNSUPPORTED without
 * libmicrohttpd, CORNU_ERR_MEMORY, CORNU_ERR_BUSY without a thread. */
CornuStatus cornu__server_start(CornuServer **server, const CornuListener *listener,
                                CornuBoard *board);

/* Waits, at most five seconds, until all readers have the last events, and ends it. NULL does
 * nothing. */
void cornu__server_end(CornuServer *server);

#endif
