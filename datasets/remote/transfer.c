#define _POSIX_C_SOURCE 200809L    /* strnlen */

#include "transfer_internal.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/system/clock_internal.h"
#include "../fetching/program_internal.h"

CornuRemotePatience cornu__remote_patience = { .connect = 10, .stall = 30, .tries = 5,
                                               .pause = 0.5 };

/* ---- Starting curl ---- */

/* A line of curl's settings, in which a value is quoted; false if it does not fit. */
static bool put(char *settings, size_t size, const char *name, const char *value)
{
    size_t used = strlen(settings);
    used += (size_t)snprintf(settings + used, size - used, "%s = \"", name);
    for (; *value && used + 4 < size; value++) {
        if (*value == '"' || *value == '\\') settings[used++] = '\\';
        settings[used++] = *value;
    }
    if (*value || used + 4 >= size) return false;
    memcpy(settings + used, "\"\n", 3);
    return true;
}

/* The settings go to curl's standard input: addresses and headers may be secrets, and other users
 * see the arguments of a program. */
static CornuStatus write_settings(const CornuRequest *request, const char *url, const char *header,
                                  char *settings, size_t size)
{
    char       range[64], condition[CORNU__VALIDATOR + 16], seconds[16];
    const bool web = !strncasecmp(url, "http://", 7);
    snprintf(range, sizeof range, "%lld-%lld", (long long)request->first, (long long)request->last);
    snprintf(condition, sizeof condition, "If-Range: %s", request->if_range ? request->if_range
                                                                            : "");
    snprintf(seconds, sizeof seconds, "%d", cornu__remote_patience.connect);
    snprintf(settings, size, "silent\nshow-error\nlocation\ninclude\nno-buffer\n"
             "suppress-connect-headers\nglobeoff\n");
    const bool fits =
        put(settings, size, "max-redirs", "5") && put(settings, size, "connect-timeout", seconds) &&
        put(settings, size, "proto", "=http,https") &&
        put(settings, size, "proto-redir", web ? "=http,https" : "=https") &&
        put(settings, size, "header", "Accept-Encoding: identity") &&
        (request->first < 0 || put(settings, size, "range", range)) &&
        (!request->if_range || put(settings, size, "header", condition)) &&
        (!header || put(settings, size, "header", header)) && put(settings, size, "url", url);
    if (fits) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "the address and its credentials have more than %d "
                       "bytes", CORNU__PROGRAM_INPUT);
}

static CornuStatus start_curl(const CornuRequest *request, CornuProgram *curl)
{
    static const char *const arguments[] = { "curl", "--config", "-", NULL };
    char       *url = NULL, *header = NULL;
    char       *settings = cornu__allocate(CORNU__PROGRAM_INPUT, 1);
    CornuStatus status = settings ? cornu__address_now(request->address, &url, &header)
                                  : CORNU_ERR_MEMORY;
    if (!status)
        status = write_settings(request, request->url ? request->url : url, header, settings,
                                CORNU__PROGRAM_INPUT);
    const int error = status ? 0 : cornu__program_start(curl, arguments, settings, true);
    if (settings) memset(settings, 0, strnlen(settings, CORNU__PROGRAM_INPUT));
    cornu__release(settings);
    cornu__release(url);
    cornu__release(header);
    if (error == ENOENT)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "is read by curl, which is not installed");
    if (error)
        return cornu__fail(CORNU_ERR_FILE, "curl cannot be started: %s", strerror(error));
    return status;
}

/* ---- Headers ---- */

enum { HEADER = 1 << 16 };

/* The value of a header line of this name, or NULL. */
static const char *value_of(const char *line, const char *name)
{
    const size_t length = strlen(name);
    if (strncasecmp(line, name, length) || line[length] != ':') return NULL;
    for (line += length + 1; *line == ' ' || *line == '\t'; line++) continue;
    return line;
}

/* A number of digits alone, of a size of a file; -1 for others. */
static int64_t number(const char *text, const char **end)
{
    char *after;
    errno = 0;
    const long long value = isdigit((unsigned char)*text) ? strtoll(text, &after, 10) : -1;
    *end = value < 0 ? text : after;
    return value < 0 || errno || value > INT64_C(1) << 60 ? -1 : (int64_t)value;
}

/* "bytes 0-99/1234", "bytes 0-99" with a slash and a star for the total, "bytes" and a star and
 * "/1234". Source: RFC 9110, section 14.4. */
static void read_range(const char *value, CornuAnswer *answer)
{
    const char *at;
    if (strncasecmp(value, "bytes ", 6)) return;
    value += 6;
    if (*value == '*') {
        at = value + 1;
    } else {
        answer->first = number(value, &at);
        if (*at == '-') answer->last = number(at + 1, &at);
    }
    if (*at == '/') answer->total = number(at + 1, &at);
}

static void read_line(const char *line, CornuAnswer *answer)
{
    const char *value, *end;
    if ((value = value_of(line, "Content-Range"))) read_range(value, answer);
    if ((value = value_of(line, "Content-Length"))) answer->length = number(value, &end);
    if ((value = value_of(line, "Retry-After"))) {
        const int64_t seconds = number(value, &end);
        answer->retry_after = seconds < 0 ? 0 : seconds > 60 ? 60 : (int)seconds;
    }
    const bool etag = (value = value_of(line, "ETag")) != NULL;
    if (!value && !answer->validator[0]) value = value_of(line, "Last-Modified");
    if (!value || strlen(value) >= CORNU__VALIDATOR) return;
    snprintf(answer->validator, sizeof answer->validator, "%s", value);
    answer->is_etag = etag && value[0] == '"';
}

/* Takes one header, which is complete in `text`; whether another one follows: after an interim
 * answer, and after a redirection, which curl goes after. */
static bool read_header(char *text, CornuAnswer *answer)
{
    bool  moved = false;
    char *rest;
    *answer = (CornuAnswer){ .first = -1, .last = -1, .total = -1, .length = -1 };
    for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        if (!strncmp(line, "HTTP/", 5)) answer->code = atoi(line + strcspn(line, " "));
        else read_line(line, answer);
        moved |= value_of(line, "Location") != NULL;
    }
    return answer->code < 200 || (moved && answer->code >= 300 && answer->code < 400);
}

/* ---- Receiving ---- */

typedef struct {
    const CornuRequest *request;
    CornuAnswer        *answer;
    CornuTake          *take;
    void               *context;
    unsigned char      *bytes;      /* owned: HEADER of them */
    size_t              size;       /* of a header that is not complete */
    bool                in_body, enough;
    int64_t             received;   /* of the body */
} Receiver;

/* The size of the header that `bytes` begin with; 0: it is not complete. */
static size_t header_size(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++) {
        if (bytes[i] != '\n') continue;
        if (bytes[i + 1] == '\n') return i + 2;
        if (i + 2 < size && bytes[i + 1] == '\r' && bytes[i + 2] == '\n') return i + 3;
    }
    return 0;
}

static CornuStatus give(Receiver *receiver, const unsigned char *bytes, size_t size)
{
    const CornuAnswer *answer = receiver->answer;
    const int64_t      at = receiver->received;
    receiver->received += (int64_t)size;
    receiver->enough = answer->code != 200 && answer->code != 206;
    if (receiver->enough) return CORNU_OK;
    return receiver->take(receiver->context, answer, at, bytes, size, &receiver->enough);
}

/* `size` bytes more after receiver->size. */
static CornuStatus receive(Receiver *receiver, size_t size)
{
    receiver->size += size;
    while (!receiver->in_body) {
        const size_t header = header_size(receiver->bytes, receiver->size);
        if (!header && receiver->size == HEADER)
            return cornu__fail(CORNU_ERR_FORMAT, "the server's header has more than %d bytes",
                               HEADER);
        if (!header) return CORNU_OK;
        receiver->bytes[header - 1] = '\0';
        receiver->in_body = !read_header((char *)receiver->bytes, receiver->answer);
        receiver->size -= header;
        memmove(receiver->bytes, receiver->bytes + header, receiver->size);
    }
    size = receiver->size;
    receiver->size = 0;
    return give(receiver, receiver->bytes, size);
}

static bool is_stopped(const CornuRequest *request)
{
    return request->stop && atomic_load(request->stop);
}

/* Reads until curl's output ends, there is enough of it, or nothing comes for too long. */
static CornuStatus receive_all(Receiver *receiver, const CornuProgram *curl, char *said,
                               size_t said_size, bool *again)
{
    enum { BETWEEN_LOOKS_MS = 100 };
    const int stall = cornu__remote_patience.stall;
    double    heard = cornu__seconds();
    bool      hears = true;
    while (!receiver->enough) {
        struct pollfd wait[2] = { { .fd = curl->output, .events = POLLIN },
                                  { .fd = hears ? curl->complaints : -1, .events = POLLIN } };
        if (is_stopped(receiver->request))
            return cornu__fail(CORNU_ERR_INTERRUPTED, "stopped on request");
        const int ready = poll(wait, 2, BETWEEN_LOOKS_MS);
        if (ready > 0 && wait[1].revents)
            hears = cornu__program_hear(curl->complaints, said, said_size);
        if (ready > 0 && wait[0].revents) {
            const ssize_t got = read(curl->output, receiver->bytes + receiver->size,
                                     HEADER - receiver->size);
            if (got == 0) return CORNU_OK;
            if (got > 0) CORNU__TRY(receive(receiver, (size_t)got));
            heard = cornu__seconds();
        } else if (cornu__seconds() - heard > stall) {
            *again = true;
            return cornu__fail(CORNU_ERR_FILE, "nothing came for %d seconds", stall);
        }
    }
    return CORNU_OK;
}

/* At most so many requests at a time: data sets read many files. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  ended = PTHREAD_COND_INITIALIZER;
static int             running;
enum { MOST = 8 };

static void begin_turn(void)
{
    pthread_mutex_lock(&lock);
    while (running == MOST) pthread_cond_wait(&ended, &lock);
    running++;
    pthread_mutex_unlock(&lock);
}

static void end_turn(void)
{
    pthread_mutex_lock(&lock);
    running--;
    pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
}

/* What curl says begins with its name and a number, "curl: (7) ". */
static CornuStatus explain(char *said, int result, bool *again)
{
    /* A protocol that it lacks, an address that is none, a certificate that is not trusted. */
    static const int final[] = { 1, 2, 3, 47, 58, 60, 77 };
    char            *why = strncmp(said, "curl: (", 7) ? said : strchr(said, ')');
    if (why && why != said) why += 1 + (why[1] == ' ');
    for (size_t end = why ? strlen(why) : 0; end > 0 && why[end - 1] == ' '; end--)
        why[end - 1] = '\0';
    *again = true;
    for (size_t i = 0; i < sizeof final / sizeof *final; i++)
        if (result == final[i]) *again = false;
    return cornu__fail(CORNU_ERR_FILE, "%s", why && *why ? why : "the connection ended early");
}

CornuStatus cornu__transfer(const CornuRequest *request, CornuAnswer *answer, CornuTake *take,
                            void *context, bool *again)
{
    Receiver     receiver = { .request = request, .answer = answer, .take = take,
                              .context = context };
    CornuProgram curl = { -1, -1, -1 };
    char         said[256] = "";
    *answer = (CornuAnswer){ .code = 0 };
    *again = false;
    receiver.bytes = cornu__allocate(HEADER, 1);
    if (!receiver.bytes) return CORNU_ERR_MEMORY;
    begin_turn();
    CornuStatus status = start_curl(request, &curl);
    if (!status) {
        status = receive_all(&receiver, &curl, said, sizeof said, again);
        /* Its last words come after its output. */
        if (!status && !receiver.enough)
            while (cornu__program_hear(curl.complaints, said, sizeof said)) continue;
        const int  result = cornu__program_end(&curl, status || receiver.enough);
        const bool whole = receiver.in_body &&
                           (answer->length < 0 || receiver.received >= answer->length);
        if (!status && !receiver.enough && (result > 0 || !whole))
            status = explain(said, result, again);
    }
    end_turn();
    cornu__release(receiver.bytes);
    return status;
}

/* ---- Patience ---- */

static const char *meaning(int code)
{
    static const struct { int code; const char *text; } known[] = {
        { 400, "bad request" }, { 401, "needs credentials" }, { 403, "forbidden" },
        { 404, "not found" }, { 410, "gone" }, { 416, "it has no such bytes" },
        { 429, "too many requests" }, { 500, "internal error" }, { 502, "bad gateway" },
        { 503, "unavailable" }, { 504, "gateway timeout" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) return known[i].text;
    return "expected 200 or 206";
}

/* Waits, also a while longer after each failure; not at all once it is stopped. */
static void wait_a_while(const CornuRequest *request, int failures, int retry_after)
{
    enum { LOOK_MS = 20 };
    double pause = cornu__remote_patience.pause;
    for (int i = 1; i < failures; i++) pause *= 2.0;
    if (retry_after > pause && pause > 0.0) pause = retry_after;
    const double until = cornu__seconds() + pause;
    while (!is_stopped(request) && cornu__seconds() < until) poll(NULL, 0, LOOK_MS);
}

/* The status of an answer's code; *again: it may be another one later. */
static CornuStatus judge(const CornuAnswer *answer, bool *again)
{
    const int code = answer->code;
    if (code == 200 || code == 206 || code == 416) return CORNU_OK;
    *again = code == 408 || code == 429 || code >= 500;
    return cornu__fail(CORNU_ERR_FILE, "the server answered %d (%s)", code, meaning(code));
}

CornuStatus cornu__transfer_patiently(CornuRequest *request, CornuAnswer *answer, CornuTake *take,
                                      void *context)
{
    enum { PROGRESS = 4096 };   /* bytes without which a try has brought nothing */
    const bool bucket = request->address->store != CORNU__WEB;
    for (int failures = 0, refusals = 0;;) {
        CornuFailure  before;
        bool          again = false;
        const double  sent = cornu__seconds();
        const int64_t first = request->first;
        cornu__error_keep(&before);
        CornuStatus status = cornu__transfer(request, answer, take, context, &again);
        if (!status && bucket && (answer->code == 401 || answer->code == 403) && !refusals++) {
            status = cornu__address_sign(request->address, sent);
            if (!status) continue;
        } else if (!status) {
            status = judge(answer, &again);
        }
        if (request->first - first >= PROGRESS) failures = 0;
        if (!status || !again || ++failures >= cornu__remote_patience.tries) return status;
        cornu__log(CORNU_LOG_INFO, "trying again: %s", cornu_error_message());
        cornu__error_restore(&before);
        wait_a_while(request, failures, answer->retry_after);
    }
}
