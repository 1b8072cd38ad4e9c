#include "remote_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/system/clock_internal.h"
#include "../../device/system/thread_internal.h"
#include "parts_internal.h"
#include "transfer_internal.h"

typedef struct {
    CornuAddress    address;
    CornuCache      parts;
    int64_t         size, count;                   /* of the file, and of its parts */
    bool            ranges;                        /* else it comes from its start on */
    char            validator[CORNU__VALIDATOR];
    bool            is_etag;
    atomic_uchar   *checked;                       /* owned: of each part, whether it has been */
    pthread_mutex_t whole;                         /* of a stream without ranges */
    pthread_mutex_t lock;                          /* of what follows */
    int64_t         last;                          /* the part that was asked for last */
    int             run;                           /* how many times it was the next one */
    pthread_t       ahead;                         /* fetches parts ahead, if it is running */
    int64_t         ahead_from;
    bool            running;
    atomic_bool     stop, idle;                    /* of that thread */
} Remote;

static int64_t bytes_of(const Remote *remote, int64_t part)
{
    const int64_t left = remote->size - part * remote->parts.size;
    return left < remote->parts.size ? left : remote->parts.size;
}

/* ---- Fetching parts ---- */

/* What is copied as it passes: whoever fetches a part has its bytes, also if others, who fill the
 * cache, too, remove it at once. */
typedef struct {
    int64_t at;     /* of the file */
    char   *to;
    size_t  size, got;
} Wanted;

/* What becomes of the bytes that come. */
typedef struct {
    Remote       *remote;
    CornuRequest *request;
    CornuCachedPart  part;        /* that of byte `at`, once begun; where it is there, none */
    bool          begun;
    int64_t       at, end;     /* of the file, what is fetched */
    bool          elsewhere;   /* what follows is there, or comes by another request */
    Wanted       *wanted;      /* NULL: nothing, only for the cache */
} Fill;

static CornuStatus changed(void)
{
    return cornu__fail(CORNU_ERR_FILE, "it was changed while being read");
}

static CornuStatus check_answer(const Fill *fill, const CornuAnswer *answer)
{
    const Remote *remote = fill->remote;
    const bool    in_part = answer->code == 206;
    if (in_part != remote->ranges || (in_part ? answer->total : answer->length) != remote->size ||
        strcmp(answer->validator, remote->validator))
        return changed();
    if (!in_part || (answer->first == fill->request->first && answer->last >= answer->first &&
                     answer->last <= fill->request->last))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "the server answered bytes %lld to %lld, %lld to %lld were "
                       "asked for", (long long)answer->first, (long long)answer->last,
                       (long long)fill->request->first, (long long)fill->request->last);
}

/* Only the first part is waited for, if it is wanted now. */
static CornuStatus begin_part(Fill *fill, bool wait)
{
    const CornuCache *parts = &fill->remote->parts;
    CORNU__TRY(cornu__cached_begin(&fill->part, parts, fill->at / parts->size, wait));
    fill->begun = true;
    fill->elsewhere = fill->part.descriptor < 0 && fill->remote->ranges;
    return CORNU_OK;
}

/* Bytes come in their order, from fill->at on. */
static void copy_wanted(const Fill *fill, const unsigned char *bytes, size_t size)
{
    Wanted *wanted = fill->wanted;
    if (!wanted) return;
    const int64_t next = wanted->at + (int64_t)wanted->got, end = fill->at + (int64_t)size;
    if (next < fill->at || next >= end || wanted->got == wanted->size) return;
    const size_t left = wanted->size - wanted->got;
    const size_t n = end - next < (int64_t)left ? (size_t)(end - next) : left;
    memcpy(wanted->to + wanted->got, bytes + (next - fill->at), n);
    wanted->got += n;
}

/* Adds bytes to the part that they begin in; *size: how many of them it takes. */
static CornuStatus add_bytes(Fill *fill, const unsigned char *bytes, size_t *size)
{
    Remote       *remote = fill->remote;
    const int64_t part = fill->at / remote->parts.size;
    const int64_t left = part * remote->parts.size + bytes_of(remote, part) - fill->at;
    if ((int64_t)*size > left) *size = (size_t)left;
    copy_wanted(fill, bytes, *size);
    if (fill->part.descriptor >= 0) CORNU__TRY(cornu__cached_add(&fill->part, bytes, *size));
    fill->at += (int64_t)*size;
    if (remote->ranges) fill->request->first = fill->at;
    if ((int64_t)*size < left) return CORNU_OK;
    fill->begun = false;
    return fill->part.descriptor < 0 ? CORNU_OK : cornu__cached_commit(&fill->part);
}

static CornuStatus take(void *context, const CornuAnswer *answer, int64_t at,
                        const unsigned char *bytes, size_t size, bool *enough)
{
    Fill *fill = context;
    if (at == 0) CORNU__TRY(check_answer(fill, answer));
    /* From a server without ranges comes again what has come before a connection ended. */
    int64_t place = at + (answer->code == 206 ? answer->first : 0);
    if (place < fill->at) {
        const size_t known = fill->at - place < (int64_t)size ? (size_t)(fill->at - place) : size;
        bytes += known;
        size -= known;
    }
    while (size > 0 && fill->at < fill->end && !fill->elsewhere) {
        size_t taken = size;
        if (!fill->begun) CORNU__TRY(begin_part(fill, false));
        if (fill->elsewhere) break;
        CORNU__TRY(add_bytes(fill, bytes, &taken));
        bytes += taken;
        size -= taken;
    }
    *enough = fill->elsewhere || fill->at >= fill->end;
    return CORNU_OK;
}

static CornuStatus fetch_range(Fill *fill)
{
    CornuAnswer answer;
    while (!fill->elsewhere && fill->at < fill->end) {
        const int64_t before = fill->at;
        CORNU__TRY(cornu__transfer_patiently(fill->request, &answer, take, fill));
        if (answer.code == 416) return changed();
        if (fill->at == before && !fill->elsewhere)
            return cornu__fail(CORNU_ERR_FILE, "the server sent nothing from byte %lld on",
                               (long long)before);
    }
    return CORNU_OK;
}

/* Fetches parts from `first` on, up to `count` of them, until one is there or comes already; from a
 * server without ranges all of the file. */
static CornuStatus fetch(Remote *remote, int64_t first, int64_t count, Wanted *wanted,
                         atomic_bool *stop)
{
    const bool    ranges = remote->ranges;
    const int64_t last = !ranges || first + count > remote->count ? remote->count : first + count;
    CornuRequest  request = { .address = &remote->address, .first = -1, .stop = stop };
    Fill          fill = { .remote = remote, .request = &request, .part = { .descriptor = -1 },
                           .wanted = wanted,
                           .at = ranges ? first * remote->parts.size : 0,
                           .end = last == remote->count ? remote->size
                                                        : last * remote->parts.size };
    if (ranges) request.first = fill.at;
    request.last = fill.end - 1;
    request.if_range = ranges && remote->is_etag ? remote->validator : NULL;
    CornuStatus status = begin_part(&fill, stop == NULL);
    if (!status) status = fetch_range(&fill);
    cornu__cached_abandon(&fill.part);
    return status;
}

/* A stream of the whole file is one at a time: it may have brought the part meanwhile. */
static CornuStatus fetch_whole(Remote *remote, int64_t part, Wanted *wanted)
{
    bool there;
    pthread_mutex_lock(&remote->whole);
    CornuStatus status = cornu__cache_read(&remote->parts, part, bytes_of(remote, part), false, 0,
                                           NULL, 0, &there);
    if (!status && !there) status = fetch(remote, part, 1, wanted, NULL);
    pthread_mutex_unlock(&remote->whole);
    return status;
}

/* ---- Ahead of those who read ---- */

enum { AHEAD = 4 };   /* parts, in one request */

static void *fetch_ahead(void *argument)
{
    Remote      *remote = argument;
    CornuFailure before;
    cornu__error_keep(&before);
    /* Who needs the part will report a failure. */
    if (fetch(remote, remote->ahead_from, AHEAD, NULL, &remote->stop))
        cornu__error_restore(&before);
    atomic_store(&remote->idle, true);
    return NULL;
}

/* The part after those that are there, of the next few; -1: all of them are. */
static int64_t first_absent(const Remote *remote, int64_t from)
{
    for (int64_t part = from; part < from + AHEAD && part < remote->count; part++)
        if (!cornu__cache_has(&remote->parts, part)) return part;
    return -1;
}

/* Notes that a part is read. If it follows the last one, and that followed another, or the file is
 * read from its start, so will others; what lies in two parts is read at any place. */
static void note(Remote *remote, int64_t part)
{
    enum { IN_ORDER = 2 };
    pthread_mutex_lock(&remote->lock);
    const bool follows = part == remote->last + 1;
    remote->run = follows ? remote->run + (remote->run < IN_ORDER)
                          : part == remote->last ? remote->run : 0;
    remote->last = part;
    if (follows && remote->run == IN_ORDER && remote->ranges &&
        (!remote->running || atomic_load(&remote->idle))) {
        if (remote->running) pthread_join(remote->ahead, NULL);
        remote->ahead_from = first_absent(remote, part + 1);
        atomic_store(&remote->idle, false);
        remote->running = remote->ahead_from >= 0 &&
                          cornu__thread_start(&remote->ahead, fetch_ahead, remote) == 0;
    }
    pthread_mutex_unlock(&remote->lock);
}

/* ---- Reading ---- */

/* Others may remove a part that one of them has fetched between its end and now, if there is little
 * space. */
static CornuStatus read_part(Remote *remote, int64_t part, int64_t at, void *to, size_t size)
{
    enum { TRIES = 8 };
    atomic_uchar *checked = &remote->checked[part];
    note(remote, part);
    for (int i = 0; i < TRIES; i++) {
        bool there;
        CORNU__TRY(cornu__cache_read(&remote->parts, part, bytes_of(remote, part),
                                     !atomic_load(checked), at, to, size, &there));
        if (there) atomic_store(checked, 1);
        if (there) return CORNU_OK;
        atomic_store(checked, 0);
        Wanted wanted = { part * remote->parts.size + at, to, size, 0 };
        CORNU__TRY(remote->ranges ? fetch(remote, part, 1, &wanted, NULL)
                                  : fetch_whole(remote, part, &wanted));
        if (wanted.got == size) return CORNU_OK;
    }
    return cornu__fail(CORNU_ERR_FILE, "part %lld was removed from the cache, %s, %d times before "
                       "it was read; CORNU_CACHE_SIZE is %lld bytes", (long long)part,
                       remote->parts.folder, TRIES, (long long)remote->parts.limit);
}

static CornuStatus read_remote(void *own, int64_t at, void *to, size_t size)
{
    Remote *remote = own;
    char   *next = to;
    if (at < 0 || at > remote->size || (int64_t)size > remote->size - at)
        return cornu__fail(CORNU_ERR_FILE, "has %lld bytes, %zu of them at byte %lld are read",
                           (long long)remote->size, size, (long long)at);
    while (size > 0) {
        const int64_t part = at / remote->parts.size, from = at % remote->parts.size;
        const int64_t left = bytes_of(remote, part) - from;
        const size_t  n = (int64_t)size < left ? size : (size_t)left;
        CORNU__TRY(read_part(remote, part, from, next, n));
        next += n;
        at += (int64_t)n;
        size -= n;
    }
    return CORNU_OK;
}

static void close_remote(void *own)
{
    Remote *remote = own;
    atomic_store(&remote->stop, true);
    if (remote->running) pthread_join(remote->ahead, NULL);
    cornu__address_close(&remote->address);
    cornu__cache_close(&remote->parts);
    cornu__release(remote->checked);
    pthread_mutex_destroy(&remote->lock);
    pthread_mutex_destroy(&remote->whole);
    cornu__release(remote);
}

/* ---- Opening ---- */

static CornuStatus take_nothing(void *context, const CornuAnswer *answer, int64_t at,
                                const unsigned char *bytes, size_t size, bool *enough)
{
    (void)context, (void)answer, (void)at, (void)bytes, (void)size;
    *enough = true;
    return CORNU_OK;
}

/* By a request for the first byte: a signed address may be for GET alone, not for HEAD. */
static CornuStatus ask_size(Remote *remote)
{
    CornuAnswer  answer;
    CornuRequest request = { .address = &remote->address, .first = 0, .last = 0 };
    CORNU__TRY(cornu__transfer_patiently(&request, &answer, take_nothing, NULL));
    const bool empty = answer.code == 416 && answer.total == 0;
    remote->ranges = answer.code != 200;
    remote->size = remote->ranges ? answer.total : answer.length;
    remote->is_etag = answer.is_etag;
    memcpy(remote->validator, answer.validator, sizeof remote->validator);
    if (remote->size < 0)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the server does not say how many bytes it has; "
                           "download it, as by curl");
    if (!empty && remote->ranges && (answer.first != 0 || answer.last != 0))
        return cornu__fail(CORNU_ERR_FILE, "the server answered %d, bytes %lld to %lld, for byte 0",
                           answer.code, (long long)answer.first, (long long)answer.last);
    return CORNU_OK;
}

/* The key of this version of the file; without a validator, of this one opening. */
static CornuStatus open_parts(Remote *remote)
{
    static atomic_int openings;
    const CornuCache *parts = &remote->parts;
    if (!remote->ranges && remote->size > parts->limit / 2)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "its server sends it as a whole, %lld bytes, "
                           "more than half of the cache's %lld; raise CORNU_CACHE_SIZE",
                           (long long)remote->size, (long long)parts->limit);
    char         once[80] = "";
    const size_t most = strlen(remote->address.given) + sizeof once + CORNU__VALIDATOR + 40;
    char        *key = cornu__allocate(most, 1);
    if (!key) return CORNU_ERR_MEMORY;
    if (!remote->validator[0])
        snprintf(once, sizeof once, "%ld %.9f %d", (long)getpid(), cornu__seconds(),
                 atomic_fetch_add(&openings, 1));
    snprintf(key, most, "%s\n%s\n%lld\n%s", remote->address.given, remote->validator,
             (long long)remote->size, once);
    const CornuStatus status = cornu__cache_open(&remote->parts, key);
    cornu__release(key);
    remote->count = (remote->size + parts->size - 1) / parts->size;
    remote->checked = cornu__allocate((size_t)remote->count, sizeof *remote->checked);
    return status ? status : remote->checked ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__remote_open(CornuInput *input, const char *address)
{
    char    shown[CORNU__SHOWN];
    Remote *remote = cornu__allocate(1, sizeof *remote);
    *input = (CornuInput){ .descriptor = -1 };
    if (!remote) return CORNU_ERR_MEMORY;
    pthread_mutex_init(&remote->lock, NULL);
    pthread_mutex_init(&remote->whole, NULL);
    remote->last = -1;
    remote->run = 1;
    CornuStatus status = cornu__address_open(&remote->address, address);
    if (!status) status = cornu__cache_find(&remote->parts);
    if (!status) status = ask_size(remote);
    if (!status) status = open_parts(remote);
    if (status) {
        close_remote(remote);
        return status;
    }
    cornu__remote_shown(address, shown);
    cornu__log(CORNU_LOG_INFO, "%s: %lld bytes, %s, in %s/%s", shown, (long long)remote->size,
               remote->ranges ? "in parts" : "as a whole", remote->parts.folder,
               remote->parts.name);
    *input = (CornuInput){ .descriptor = -1, .size = remote->size, .read = read_remote,
                           .close = close_remote, .own = remote };
    return CORNU_OK;
}
