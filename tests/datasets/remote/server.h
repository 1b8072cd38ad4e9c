/*
 * An HTTP server of files in memory, which answers requests for ranges and misbehaves on request:
 * http://127.0.0.1:PORT/BEHAVIOUR/NAME.
 *
 *     ranges       as it should be, with an ETag
 *     whole        without ranges: 200 and all of it
 *     undated      ranges without ETag and Last-Modified
 *     dated        ranges with Last-Modified alone
 *     404, 403 …   this code, always
 *     flaky        503 two times of three
 *     cut          at most 50,001 bytes of what was asked for, then the connection ends
 *     never        likewise, without a byte
 *     stalled      half of it, then nothing
 *     shifted      206 and bytes that are one further
 *     longer       206 and bytes without end
 *     endless      200 and bytes without end, without a length
 *     header       a header without end
 *     changed      another ETag after the first two answers
 *     grown        another size after the first two answers
 *     vanished     416 after the first two answers
 *     moved        302 to ranges/NAME
 *     circle       302 to itself
 *     token        401 without "Authorization: Bearer letters"
 *     query        403 without the query ?secret=letters
 *
 * /bucket/NAME and /storage/v1/b/bucket/o are `ranges` and a listing, of two pages, as Google's; a
 * list-type=2 in the query of /bucket/ one as Amazon's, whose first page comes again and again for
 * names with "circle". /closed/NAME wants a token or a query.
 */
#ifndef CORNU_TESTS_SERVER_H
#define CORNU_TESTS_SERVER_H

#include <stdbool.h>
#include <stddef.h>

enum { SERVER_LOG = 1 << 16 };

/* false where there is no loopback. */
bool server_start(void);
void server_stop(void);
int  server_port(void);

/* A file of this name, whose bytes are the caller's and stay. */
void server_file(const char *name, const void *bytes, size_t size);
void server_forget(void);

/* The requests since the last call of server_forget_log: lines "GET /ranges/a bytes=0-0"; valid
 * until the next call, of one thread. */
const char *server_log(void);
int         server_requests(void);
void        server_forget_log(void);

/* "http://127.0.0.1:PORT/BEHAVIOUR/NAME", valid until the fourth call from now. */
const char *server_url(const char *behaviour, const char *name);

#endif
