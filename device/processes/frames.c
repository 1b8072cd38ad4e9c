#include "frames_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAGIC = 0x434f524e };

CornuFrame cornu__frame_make(CornuFrameKind kind, const CornuExchange *exchange, size_t bytes)
{
    CornuFrame frame = { .magic = MAGIC, .kind = kind, .bytes = bytes };
    if (exchange) {
        frame.number = exchange->number;
        frame.of_part = exchange->of_part;
        snprintf(frame.what, sizeof frame.what, "%s", exchange->what);
    }
    return frame;
}

bool cornu__frame_is_later(const CornuFrame *frame, const CornuExchange *exchange)
{
    if (frame->number == exchange->number) return frame->of_part > exchange->of_part;
    return (int64_t)(frame->number - exchange->number) > 0;
}

CornuStatus cornu__frame_check(CornuFrame *frame, int from)
{
    frame->what[sizeof frame->what - 1] = '\0';
    if (frame->magic == MAGIC && frame->kind <= CORNU_FRAME_WAITING) return CORNU_OK;
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d sends what is not of Cornu", from);
}

int cornu__frame_count(const CornuMessage *messages, int count, int rank, size_t *bytes)
{
    int found = 0;
    *bytes = 0;
    for (int i = 0; i < count; i++) {
        if (messages[i].rank != rank) continue;
        *bytes += messages[i].bytes;
        found++;
    }
    return found;
}

CornuStatus cornu__frame_expect(const CornuFrame *frame, const CornuExchange *exchange, int from,
                                int to)
{
    const CornuFrame own = cornu__frame_make(CORNU_FRAME_MESSAGES, exchange, 0);
    size_t           bytes;
    if (frame->number != own.number || frame->of_part != own.of_part ||
        strcmp(frame->what, own.what) != 0)
        return cornu__fail(CORNU_ERR_PROCESS, "rank %d is in exchange %lld (%s), but rank %d in "
                           "exchange %lld (%s)", from, (long long)frame->number, frame->what, to,
                           (long long)own.number, own.what);
    const int count = cornu__frame_count(exchange->receives, exchange->receive_count,
                                         from - exchange->first, &bytes);
    if (count > 0 && frame->bytes == bytes) return CORNU_OK;
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d sends %llu bytes to rank %d, which expects %zu, "
                       "in exchange %lld (%s)", from, (unsigned long long)frame->bytes, to, bytes,
                       (long long)own.number, own.what);
}

CornuStatus cornu__frame_fail(const CornuExchange *exchange, int rank, const char *what)
{
    return cornu__fail(CORNU_ERR_PROCESS, "rank %d %s, in exchange %lld (%s)", rank, what,
                       (long long)exchange->number, exchange->what);
}
