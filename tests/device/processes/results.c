#define _GNU_SOURCE    /* MAP_ANONYMOUS */

#include "results.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { MOST_RESULTS = 8192, NAME = 80 };

typedef struct {
    int64_t count;
    struct { char name[NAME]; uint64_t hash; } all[MOST_RESULTS];
} Kept;

/* Shared with the children: of one process, then of each rank. */
static Kept     *kept;
static Kept     *own;    /* of this process */
static RankBody *one_body;

/* FNV-1a, eight bytes at a time. */
static uint64_t hash_of(const void *data, size_t bytes)
{
    const unsigned char *at = data;
    uint64_t             hash = 0xcbf29ce484222325u ^ bytes;
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, at + i, bytes - i < 8 ? bytes - i : 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

void result(const char *name, const void *data, size_t bytes)
{
    if (!own || own->count == MOST_RESULTS) return;
    snprintf(own->all[own->count].name, NAME, "%s", name);
    own->all[own->count++].hash = hash_of(data, bytes);
}

static CornuStatus be_one(CornuProcesses *processes)
{
    (void)processes;
    own = &kept[0];
    return one_body(NULL);
}

static CornuStatus be_one_of_many(CornuProcesses *processes)
{
    own = &kept[1 + cornu_process_rank(processes)];
    return one_body(processes);
}

static void run(int count, const char *transport, RankBody *body)
{
    Ranks ranks;
    ranks_run(&ranks, count, transport, 60, NULL, body);
    for (int i = 0; i < count; i++) {
        const Kept *of = count == 1 ? kept : &kept[1 + i];
        const char *last = of->count ? of->all[of->count - 1].name : "nothing";
        if (!ranks.ends[i].reported)
            fail_msg("rank %d of %d has not come to its end, after %s", i, count, last);
        if (ranks.ends[i].status)
            fail_msg("rank %d of %d, after %s: %s", i, count, last, ranks.ends[i].message);
    }
}

static void expect_same(const Kept *one, const Kept *of, int rank, int count, int64_t least)
{
    int64_t at = 0;
    if (of->count < least)
        fail_msg("rank %d of %d has %lld results, expected at least %lld", rank, count,
                 (long long)of->count, (long long)least);
    for (int64_t i = 0; i < of->count; i++, at++) {
        while (at < one->count && strcmp(one->all[at].name, of->all[i].name) != 0) at++;
        if (at == one->count) fail_msg("one process has no result %s", of->all[i].name);
        if (one->all[at].hash != of->all[i].hash)
            fail_msg("rank %d of %d has other bits than one process: %s", rank, count,
                     of->all[i].name);
    }
}

void results_agree(const char *transport, const int *counts, int64_t least, RankBody *body)
{
    const size_t bytes = (1 + RANKS_MOST) * sizeof *kept;
    kept = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(kept != MAP_FAILED);
    one_body = body;
    run(1, transport, be_one);
    assert_true(kept[0].count < MOST_RESULTS);
    for (; *counts; counts++) {
        memset(kept + 1, 0, RANKS_MOST * sizeof *kept);
        run(*counts, transport, be_one_of_many);
        for (int i = 0; i < *counts; i++)
            expect_same(&kept[0], &kept[1 + i], i, *counts, least);
    }
    munmap(kept, bytes);
}
