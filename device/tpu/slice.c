#include "slice.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "../integer_internal.h"

/* Shapes by generation, the last of which is the pod. */
enum { SLICES = 8 };

static const struct {
    char    generation[8];
    int64_t shapes[SLICES][2];
} pods[] = {
    { "v2-", { { 2, 2 }, { 4, 4 }, { 8, 8 }, { 8, 16 }, { 16, 16 } } },
    { "v3-", { { 2, 2 }, { 4, 4 }, { 4, 8 }, { 8, 8 }, { 8, 16 }, { 16, 16 }, { 16, 32 },
               { 32, 32 } } },
    { "v4-", { { 2, 2 } } },
    { "v5e-", { { 2, 4 }, { 4, 4 }, { 4, 8 }, { 8, 8 }, { 8, 16 }, { 16, 16 } } },
    { "v5p-", { { 2, 2 } } },
    { "v6e-", { { 2, 4 }, { 4, 4 }, { 4, 8 }, { 8, 8 }, { 8, 16 }, { 16, 16 } } },
};

static int64_t replicas_of_chip(const CornuTpuProfile *profile)
{
    return (int64_t)(profile->replicas.value / profile->chips.value);
}

static size_t pod_of(const CornuTpuProfile *profile)
{
    size_t i = sizeof pods / sizeof *pods - 1;
    while (i && strncmp(profile->name, pods[i].generation, strlen(pods[i].generation)) != 0) i--;
    return i;
}

static int last_of(size_t pod)
{
    int last = 0;
    while (last + 1 < SLICES && pods[pod].shapes[last + 1][0]) last++;
    return last;
}

CornuTpuSlice cornu_tpu_slice(const CornuTpuProfile *profile, int64_t shards)
{
    const size_t  pod = pod_of(profile);
    const int     last = last_of(pod);
    const int64_t closed = pods[pod].shapes[last][1];   /* an axis as long as the pod's */
    CornuTpuSlice slice = { .shards = shards };
    if (shards < 1) return (CornuTpuSlice){ .shards = 0 };
    slice.chips = ceil_divide(shards, replicas_of_chip(profile));
    for (int i = 0; i <= last; i++) {
        slice.x = pods[pod].shapes[i][0];
        slice.y = pods[pod].shapes[i][1];
        if (slice.x * slice.y < slice.chips) continue;
        slice.wraps_x = i && slice.x == closed;
        slice.wraps_y = i && slice.y == closed;
        snprintf(slice.name, sizeof slice.name, "%s%lld", pods[pod].generation,
                 (long long)slice.x * slice.y *
                     (long long)(profile->cores.value / profile->chips.value));
        return slice;
    }
    return (CornuTpuSlice){ .shards = 0 };
}

CornuTpuSlice cornu_tpu_pod(const CornuTpuProfile *profile)
{
    const size_t   pod = pod_of(profile);
    const int64_t *shape = pods[pod].shapes[last_of(pod)];
    return cornu_tpu_slice(profile, shape[0] * shape[1] * replicas_of_chip(profile));
}

/* Of two or four, or of v5e's eight: those that a profile begins with. */
static bool is_board(const CornuTpuSlice *slice) { return slice->x <= 2; }

CornuTpuSlice cornu_tpu_wrapped(CornuTpuSlice slice)
{
    slice.wraps_x = slice.wraps_y = !is_board(&slice);
    return slice;
}

const char *cornu_tpu_slice_shape(const CornuTpuSlice *slice, char to[32])
{
    const long long x = slice->x, y = slice->y;
    if (slice->wraps_x != slice->wraps_y)
        snprintf(to, 32, "%lldx%lld torus by %lld", x, y, slice->wraps_x ? x : y);
    else
        snprintf(to, 32, "%lldx%lld%s", x, y, slice->wraps_x ? " torus" : "");
    return to;
}

/* What an axis of so many chips adds to an all_reduce, in links that are busy all the time, one way
 * each, and in hops. */
typedef struct {
    double links, hops;
} Axis;

static Axis axis_of(int64_t chips, bool closed)
{
    if (chips < 2) return (Axis){ 0.0, 0.0 };
    if (closed && chips > 2) return (Axis){ 2.0, (double)chips };
    return (Axis){ 1.0, 2.0 * (double)(chips - 1) };
}

/* A group of chips that exchange with each other. */
typedef struct {
    double chips;
    Axis   x, y;
    double sharing;    /* groups that share a link */
    double together;   /* replicas of a chip that are in the group */
} Group;

static CornuTpuExchange reduce(const CornuTpuProfile *profile, const Group *group, int64_t bytes)
{
    const double v = (double)bytes, w = profile->link_gbps.value * 1e9, n = group->chips;
    const double local = group->together > 1.0 ? 3.0 * v / (profile->hbm_gbps.value * 1e9) : 0.0;
    if (n < 2.0) return (CornuTpuExchange){ local, 0.0 };
    const double link_bytes =
        group->sharing * 2.0 * v * (n - 1.0) / n / (group->x.links + group->y.links);
    return (CornuTpuExchange){
        .seconds = local + link_bytes / w +
                   (group->x.hops + group->y.hops) * profile->hop_us.value * 1e-6,
        .link_bytes = link_bytes,
    };
}

CornuTpuExchange cornu_tpu_all_reduce(const CornuTpuProfile *profile, const CornuTpuSlice *slice,
                                      int64_t bytes)
{
    if (slice->shards <= 1 || bytes <= 0) return (CornuTpuExchange){ 0.0, 0.0 };
    const bool  board = is_board(slice);
    const Group all = {
        .chips = (double)(board ? slice->chips : slice->x * slice->y),
        .x = board ? axis_of(slice->chips, true) : axis_of(slice->x, slice->wraps_x),
        .y = board ? axis_of(1, false) : axis_of(slice->y, slice->wraps_y),
        .sharing = 1.0, .together = (double)replicas_of_chip(profile),
    };
    return reduce(profile, &all, bytes);
}

/* Along one axis of a slice: how many places a group has, from the lowest to the highest. */
typedef struct {
    int64_t count, low, high;
} Places;

static void add_place(Places *places, int64_t place, bool *seen)
{
    if (*seen) return;
    *seen = true;
    places->low = places->count ? smaller(places->low, place) : place;
    places->high = places->count ? larger(places->high, place) : place;
    places->count++;
}

/* Every k-th place: k. */
static double stride_of(Places places)
{
    return places.count < 2 ? 1.0
                            : (double)(places.high - places.low) / (double)(places.count - 1);
}

static Axis strided(Places places, int64_t extent, bool wraps)
{
    Axis axis = axis_of(places.count, wraps && places.count == extent);
    axis.hops *= stride_of(places);
    return axis;
}

enum { MOST_PLACES = 32 };   /* along an axis of the largest pod */

CornuTpuExchange cornu_tpu_group_reduce(const CornuTpuProfile *profile, const CornuTpuSlice *slice,
                                        const int *members, int count, int64_t bytes)
{
    if (count >= slice->shards) return cornu_tpu_all_reduce(profile, slice, bytes);
    if (count <= 1 || bytes <= 0) return (CornuTpuExchange){ 0.0, 0.0 };
    const int64_t each = replicas_of_chip(profile);
    bool          columns[MOST_PLACES] = { false }, rows[MOST_PLACES] = { false };
    Places        x = { 0 }, y = { 0 };
    int64_t       chips = 0, last = -1;
    for (int i = 0; i < count; i++) {
        const int64_t chip = members[i] / each;
        if (chip == last) continue;
        last = chip;
        chips++;
        add_place(&x, chip % slice->x, &columns[chip % slice->x]);
        add_place(&y, chip / slice->x, &rows[chip / slice->x]);
    }
    const double together = (double)count / (double)chips;
    Group        group = { .chips = (double)chips, .together = together,
                           .x = strided(x, slice->x, slice->wraps_x),
                           .y = strided(y, slice->y, slice->wraps_y),
                           .sharing = stride_of(x) * stride_of(y) *
                                      (double)smaller(each, slice->shards) / together };
    if (x.count * y.count != chips) {
        group.x = axis_of(chips, false);
        group.y = axis_of(1, false);
    } else if (is_board(slice) && chips == slice->chips) {
        group.x = axis_of(chips, true);
        group.y = axis_of(1, false);
    }
    return reduce(profile, &group, bytes);
}

double cornu_tpu_all_reduce_s(const CornuTpuProfile *profile, int64_t shards, int64_t bytes)
{
    const CornuTpuSlice slice = cornu_tpu_slice(profile, shards);
    return cornu_tpu_all_reduce(profile, &slice, bytes).seconds;
}
