/* What products request while they sum, so that it is near when the next ones need it. */
#ifndef CORNU_DEVICE_HOST_ISA_AHEAD_H
#define CORNU_DEVICE_HOST_ISA_AHEAD_H

#include <stddef.h>
#include <stdint.h>

#include "../machine/prefetch.h"

/* Rows of memory, of `bytes` each, `stride` bytes apart; of the first one `done` bytes are done
 * with. */
typedef struct {
    const void *at;
    int64_t     rows;
    ptrdiff_t   bytes, stride, done;
} CornuAheadRows;

/* At most `lines` lines every `terms` terms of a sum: those of `rows`, and of `count`
 * more at `then`, for the second-level cache; and a row of sums, for the first-level one. Requests
 * for all of it at once would wait for each other, and the tile for them. */
typedef struct {
    CornuAheadRows        rows, sums;
    const CornuAheadRows *then;
    int64_t               count, lines, terms;
} CornuAhead;

/* Operands along a sum. Stopping to request costs low tiles more, whose steps are short, and they
 * have few sums to request: outer of 6 x 16 sums, AVX2, a Xeon (model 207), 256 x 1024 x 4096, two
 * threads, every 16 terms 15.1 ms, then 14.1. */
enum { CORNU_AHEAD_TERMS = 16, CORNU_AHEAD_LOW_TERMS = 64 };

static inline CornuAheadRows cornu__ahead_rows(const void *at, int64_t rows, ptrdiff_t bytes,
                                               ptrdiff_t stride)
{
    return (CornuAheadRows){ at, rows, bytes, stride, 0 };
}

/* Of what is contiguous: so many lines. */
static inline CornuAheadRows cornu__ahead_lines(const void *at, int64_t lines)
{
    return cornu__ahead_rows(at, lines > 0, lines * CORNU_LINE_BYTES, 0);
}

static inline int64_t cornu__ahead_count(const CornuAheadRows *a)
{
    return a->rows * ((a->bytes + CORNU_LINE_BYTES - 1) / CORNU_LINE_BYTES);
}

/* Spreads the requests over `terms` terms, every so many of them. */
static inline void cornu__ahead_pace(CornuAhead *ahead, int64_t terms, int64_t every)
{
    const int64_t times = (terms + every - 1) / every - ahead->count;
    int64_t       lines = cornu__ahead_count(&ahead->rows);
    for (int64_t i = 0; i < ahead->count; i++) lines += cornu__ahead_count(&ahead->then[i]);
    ahead->lines = times > 0 ? (lines + times - 1) / times : lines;
    ahead->terms = every;
}

static inline void cornu__next_row(CornuAheadRows *rows)
{
    rows->at = (const void *)((uintptr_t)rows->at + (uintptr_t)rows->stride);
    rows->rows--;
}

/* So many lines, but none beyond the rows at hand, and a row of sums. */
static inline void cornu__request(CornuAhead *ahead, int64_t lines)
{
    CornuAheadRows *rows = &ahead->rows, *sums = &ahead->sums;
    if (rows->rows == 0 && ahead->count > 0) {
        *rows = *ahead->then++;
        ahead->count--;
    }
    for (; lines > 0 && rows->rows > 0; lines--) {
        cornu__prefetch_near(rows->at, (size_t)rows->done);
        rows->done += CORNU_LINE_BYTES;
        if (rows->done < rows->bytes) continue;
        rows->done = 0;
        cornu__next_row(rows);
    }
    if (sums->rows == 0) return;
    for (ptrdiff_t at = 0; at < sums->bytes; at += CORNU_LINE_BYTES)
        cornu__prefetch(sums->at, (size_t)at);
    cornu__next_row(sums);
}

#endif
