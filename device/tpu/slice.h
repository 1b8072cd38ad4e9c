/*
 * Slices of a pod: the chips that so many shards occupy, the links between them, and how long an
 * exchange over these takes.
 *
 *     CornuTpuSlice slice = cornu_tpu_slice(cornu_tpu_profile("v3-8"), 2048);
 *     CornuTpuExchange sum = cornu_tpu_all_reduce(cornu_tpu_profile("v3-8"), &slice, bytes);
 *
 * A chip of v2, v3, v5e and v6e has links to its four neighbours in a rectangle of chips. The pods
 * are squares, 16x16 (v2, v5e, v6e) or 32x32 (v3), whose edges are linked too: a two-dimensional
 * torus. A profile stands for its generation here: v3-8 and v3-2048 have the same slices. v4 and
 * v5p are three-dimensional and have no slice but their board.
 *
 * Sources. Shapes: pytorch/xla, torch_xla/_internal/tpu.py (v2 and v3, in boards of 2x2);
 * docs.cloud.google.com/tpu/docs (v3: 1,024 chips, a 2D torus; v5e and v6e: their shapes); libtpu
 * knows these names too. Links at the edges: jax-ml/scaling-book, tpus.md: v2 and v3 form tori;
 * the slices of v5e and v6e are closed only along axes of 16 chips, one of 8x16 along its longer
 * axis, since no optical switches rewire them.
 *
 * Assumed: that slices of v2 and v3, which have no such switches either, are closed likewise only
 * along axes as long as the pod's. No source says so. `wrapped` shows what this matters: up to
 * twice the time.
 */
#ifndef CORNU_DEVICE_TPU_SLICE_H
#define CORNU_DEVICE_TPU_SLICE_H

#include <stdbool.h>
#include <stdint.h>

#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char    name[16];            /* "v3-32": counts cores, that of v5e and v6e chips */
    int64_t shards;              /* on it, a replica each */
    int64_t chips;               /* that they occupy */
    int64_t x, y;                /* chips across and down, x <= y */
    bool    wraps_x, wraps_y;    /* links close this axis to a ring */
} CornuTpuSlice;

/* The smallest slice of the profile's generation that has so many replicas; all zeros if there is
 * none. The slices of v3 have 2x2, 4x4, 4x8, 8x8, 8x16, 16x16, 16x32 and 32x32 chips; v2 lacks 4x8
 * and ends with 16x16; v5e and v6e begin with 2x4. */
CornuTpuSlice cornu_tpu_slice(const CornuTpuProfile *profile, int64_t shards);

/* The whole pod: the largest slice of the generation. */
CornuTpuSlice cornu_tpu_pod(const CornuTpuProfile *profile);

/* The slice as if links closed both of its axes, except for a single board. */
CornuTpuSlice cornu_tpu_wrapped(CornuTpuSlice slice);

/* "2x2", "16x16 torus", "16x32 torus by 32": both axes are closed, or only the one of 32. */
const char *cornu_tpu_slice_shape(const CornuTpuSlice *slice, char to[32]);

typedef struct {
    double seconds;
    double link_bytes;   /* that the busiest link moves in one direction */
} CornuTpuExchange;

/*
 * The sum of `bytes` over all shards, for each of them: a reduce_scatter, after which each chip has
 * the n-th part of the sum, and an all_gather. Each of the two takes half of this.
 *
 * First the replicas of each chip add theirs in memory, in three passes over it. Then, with n = x y
 * chips, V bytes, w the bandwidth of a link one way and B = 2 w:
 *
 * One axis of m chips, reduce_scatter. Closed to a ring, half of every part goes round each way:
 * all 2 m links carry (m - 1) / m V / 2 at once, which takes V / B (m - 1) / m, and the farthest
 * part takes m / 2 hops. An open line has a last link, which carries what all others have of one
 * end's part one way and of theirs the other, (m - 1) / m V: V / w (m - 1) / m, twice as long, and
 * m - 1 hops. Two chips are a line. In short V (m - 1) / m / R, where the rate R of the axis is B
 * if it is closed and B / 2 if not.
 *
 * Two axes, in two phases: a fraction a of the bytes is reduced along x first, and of it the x-th
 * part that remains on a chip along y; the rest, 1 - a, along y first. Both go on at once, in
 * pieces one after the other, so that each axis needs time only for all that it carries:
 *     along x   V (a (x - 1) / x + (1 - a) (x - 1) / (x y))
 *     along y   V ((1 - a) (y - 1) / y + a (y - 1) / (x y))         together V (n - 1) / n
 * whatever a is. It is such that x carries Rx / (Rx + Ry) of this, which is possible for all slices
 * above (a = 1 / 2 on squares), and both axes are done at the same time. With as much again for the
 * all_gather, and the hops of all phases,
 *
 *     2 V (n - 1) / n / (Rx + Ry)  +  hops: for each axis m, or 2 (m - 1) if it is open
 *
 * An axis of one chip has R = 0 and no hops: what remains is the ring, or the line, of the other.
 * A board of 2x2 or 2x4 is two open axes: 2 V (n - 1) / n / B and n hops, which is also the time of
 * the ring along its rim. Where only some chips of a board are used, they are such a ring; in
 * larger slices all chips pass on the sum, used or not.
 *
 * Sources: jax-ml/scaling-book, sharding.md (one axis; several add their bandwidths; 1 us a hop);
 * Ying et al., "Image classification at supercomputer scale", arXiv 1811.06992 (all-reduce along
 * both axes of a pod of v3). Check: 340 TB/s, published as the all-reduce bandwidth of a pod of v3,
 * is that of the 4 links of its 1,024 chips at 83 GB/s.
 */
CornuTpuExchange cornu_tpu_all_reduce(const CornuTpuProfile *profile, const CornuTpuSlice *slice,
                                      int64_t bytes);

/*
 * The same where all groups of `count` shards sum theirs at once, as the groups along an axis of a
 * mesh do; `members` are those of the first one, ascending, which stands for all. Shards lie on the
 * chips of the slice row by row, those of a chip side by side.
 *
 * A group on one chip exchanges in memory. Another has the links between its columns and between
 * its rows: where it has every k-th of them a hop is k links long, and k groups share each link, as
 * do groups that have different replicas of the same chips. An axis is closed only for a group that
 * reaches all round it. A group that is not a rectangle of chips is taken for an open line of them.
 */
CornuTpuExchange cornu_tpu_group_reduce(const CornuTpuProfile *profile, const CornuTpuSlice *slice,
                                        const int *members, int count, int64_t bytes);

/* Its seconds on the slice of so many shards. */
double cornu_tpu_all_reduce_s(const CornuTpuProfile *profile, int64_t shards, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif
