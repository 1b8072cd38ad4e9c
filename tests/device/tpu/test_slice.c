/* Slices of TPU pods: their shapes, and sums over their links against hand-computed times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "../../../device/tpu/slice.h"

enum { BYTES = 6477880 };   /* 1,619,470 weights of f32 */

static void assert_near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance * fabs(expected)))
        fail_msg("%.12g, expected %.12g", got, expected);
}

/* Shards, and the slice that holds them. */
static void shards_lie_on_the_smallest_slice(void **state)
{
    (void)state;
    const struct {
        const char *profile;
        int64_t     shards;
        const char *name;
        int64_t     chips;
        const char *shape;
    } table[] = {
        { "v2-8", 1, "v2-8", 1, "2x2" },
        { "v2-8", 8, "v2-8", 4, "2x2" },
        { "v2-8", 9, "v2-32", 5, "4x4" },
        { "v2-8", 32, "v2-32", 16, "4x4" },
        { "v2-8", 64, "v2-128", 32, "8x8" },                /* there is no v2-64 */
        { "v2-512", 256, "v2-256", 128, "8x16 torus by 16" },
        { "v2-512", 512, "v2-512", 256, "16x16 torus" },
        { "v2-512", 513, "", 0, "0x0" },
        { "v3-2048", 8, "v3-8", 4, "2x2" },
        { "v3-8", 64, "v3-64", 32, "4x8" },
        { "v3-8", 512, "v3-512", 256, "16x16" },
        { "v3-8", 1024, "v3-1024", 512, "16x32 torus by 32" },
        { "v3-8", 1025, "v3-2048", 513, "32x32 torus" },
        { "v3-8", 2048, "v3-2048", 1024, "32x32 torus" },
        { "v3-8", 2049, "", 0, "0x0" },
        { "v3-8", 0, "", 0, "0x0" },
        { "v4-8", 4, "v4-8", 4, "2x2" },                    /* two cores are one replica */
        { "v4-8", 5, "", 0, "0x0" },
        { "v5e-8", 8, "v5e-8", 8, "2x4" },
        { "v5e-8", 256, "v5e-256", 256, "16x16 torus" },
        { "v5p-8", 5, "", 0, "0x0" },
        { "v6e-8", 128, "v6e-128", 128, "8x16 torus by 16" },
        { "v6e-8", 257, "", 0, "0x0" },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char                shape[32];
        const CornuTpuSlice slice = cornu_tpu_slice(cornu_tpu_profile(table[i].profile),
                                                    table[i].shards);
        assert_string_equal(slice.name, table[i].name);
        assert_int_equal(slice.chips, table[i].chips);
        assert_int_equal(slice.shards, *table[i].name ? table[i].shards : 0);
        assert_string_equal(cornu_tpu_slice_shape(&slice, shape), table[i].shape);
    }
    assert_int_equal(cornu_tpu_pod(cornu_tpu_profile("v2-8")).shards, 512);
    assert_int_equal(cornu_tpu_pod(cornu_tpu_profile("v3-2048")).shards, 2048);
    assert_int_equal(cornu_tpu_pod(cornu_tpu_profile("v4-8")).shards, 4);
    assert_int_equal(cornu_tpu_pod(cornu_tpu_profile("v6e-8")).shards, 256);
}

/*
 * 6,477,880 bytes. In a chip of v2 three passes of 716 GB/s take 27.14 us, of v3 at 900 GB/s 21.59.
 * Links of v2 carry 62 GB/s one way, those of v3 82.
 *     16x16 torus, v2    2 x 255 / 256 of the bytes over 4 links   3.2263 MB each, 52.04 us; 32 us
 *     16x16, v3          over 2 links                              6.4526 MB, 78.69 us; 60 us
 *     16x32, v3          3 links, 511 / 512                        4.3101 MB, 52.56 us; 30 + 32 us
 *     32x32 torus, v3    4 links, 1023 / 1024                      3.2358 MB, 39.46 us; 64 us
 *     2x2, v3            2 links, 3 / 4                            4.8584 MB, 59.25 us;  4 us
 */
static void sums_take_the_hand_computed_time(void **state)
{
    (void)state;
    const struct {
        const char *profile;
        int64_t     shards;
        double      bytes, seconds;
    } table[] = {
        { "v2-8", 512, 3226288.0, (27.142 + 52.037 + 32.0) * 1e-6 },
        { "v3-8", 512, 6452575.8, (21.593 + 78.690 + 60.0) * 1e-6 },
        { "v3-8", 1024, 4310152.0, (21.593 + 52.563 + 62.0) * 1e-6 },
        { "v3-8", 2048, 3235777.0, (21.593 + 39.461 + 64.0) * 1e-6 },
        { "v3-8", 8, 4858410.0, (21.593 + 59.249 + 4.0) * 1e-6 },
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const CornuTpuProfile *profile = cornu_tpu_profile(table[i].profile);
        const CornuTpuSlice    slice = cornu_tpu_slice(profile, table[i].shards);
        const CornuTpuExchange sum = cornu_tpu_all_reduce(profile, &slice, BYTES);
        assert_near(sum.link_bytes, table[i].bytes, 1e-6);
        assert_near(sum.seconds, table[i].seconds, 2e-5);
        assert_true(cornu_tpu_all_reduce_s(profile, table[i].shards, BYTES) == sum.seconds);
    }
    /* 1,024 chips on one ring: 1,024 hops and twice the bytes on each link. */
    const CornuTpuProfile *v3 = cornu_tpu_profile("v3-8");
    CornuTpuSlice          ring = cornu_tpu_slice(v3, 2048);
    ring.x = 1;
    ring.y = 1024;
    ring.wraps_x = false;
    assert_near(cornu_tpu_all_reduce(v3, &ring, BYTES).seconds, 1124.5e-6, 1e-4);
}

/* An axis of one chip adds nothing: what remains is the ring or the line, and a board is a ring. */
static void one_axis_is_a_ring_or_a_line(void **state)
{
    (void)state;
    const CornuTpuProfile *v5e = cornu_tpu_profile("v5e-8");   /* one core a chip, 45 GB/s */
    const double           v = BYTES, both = 90e9;
    CornuTpuSlice          slice = cornu_tpu_slice(v5e, 16);
    for (int64_t n = 3; n < 2000; n = 2 * n + 1) {
        slice.x = n;
        slice.y = 1;
        slice.chips = slice.shards = n;
        slice.wraps_x = true;
        slice.wraps_y = false;
        const double part = (double)(n - 1) / (double)n;
        assert_near(cornu_tpu_all_reduce(v5e, &slice, BYTES).seconds,
                    2.0 * v / both * part + (double)n * 1e-6, 1e-12);
        slice.wraps_x = false;
        assert_near(cornu_tpu_all_reduce(v5e, &slice, BYTES).seconds,
                    4.0 * v / both * part + 2.0 * (double)(n - 1) * 1e-6, 1e-12);
    }
    /* All chips of a board, as two open axes and as a ring along its rim. */
    CornuTpuSlice board = cornu_tpu_slice(v5e, 8), open = board;
    open.x = 4;   /* 4x2: not taken for a board */
    open.y = 2;
    assert_near(cornu_tpu_all_reduce(v5e, &open, BYTES).seconds,
                cornu_tpu_all_reduce(v5e, &board, BYTES).seconds, 1e-12);
    assert_near(cornu_tpu_all_reduce(v5e, &board, BYTES).seconds,
                2.0 * v / both * 7 / 8 + 8e-6, 1e-12);
}

/* Links at the edges never slow a sum down, and more bytes take longer. Between slices of the same
 * kind, so do more chips; but the pod, which they close, can be faster than the slice before. */
static void times_grow(void **state)
{
    (void)state;
    const char *const names[] = { "v2-8", "v3-8", "v5e-8", "v6e-8" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const CornuTpuProfile *profile = cornu_tpu_profile(names[i]);
        const int64_t          pod = cornu_tpu_pod(profile).shards;
        CornuTpuSlice          before = cornu_tpu_slice(profile, 1);
        double                 wrapped_before = 0.0;
        for (int64_t shards = 2; shards <= pod; shards++) {
            const CornuTpuSlice slice = cornu_tpu_slice(profile, shards);
            const CornuTpuSlice wrapped = cornu_tpu_wrapped(slice);
            const double s = cornu_tpu_all_reduce(profile, &slice, BYTES).seconds;
            const double least = cornu_tpu_all_reduce(profile, &wrapped, BYTES).seconds;
            assert_true(s < cornu_tpu_all_reduce(profile, &slice, BYTES + 1000).seconds);
            assert_true(s < cornu_tpu_all_reduce(profile, &slice, INT64_MAX).seconds);
            assert_true(least <= s && (slice.x > 2) == wrapped.wraps_x);
            if (slice.x > 2 && slice.wraps_x) assert_true(least == s);
            if (!slice.wraps_y && slice.chips != 3)   /* two chips are not a ring, three are */
                assert_true(s >= cornu_tpu_all_reduce(profile, &before, BYTES).seconds);
            if (before.x > 2) assert_true(least >= wrapped_before);
            wrapped_before = least;
            before = slice;
        }
        assert_true(cornu_tpu_all_reduce(profile, &before, 0).seconds == 0.0);
    }
    const CornuTpuProfile *v3 = cornu_tpu_profile("v3-8");
    assert_true(cornu_tpu_all_reduce_s(v3, 2048, BYTES) < cornu_tpu_all_reduce_s(v3, 512, BYTES));
    assert_true(cornu_tpu_all_reduce_s(v3, 2048, 1000) > cornu_tpu_all_reduce_s(v3, 512, 1000));
}

/* docs.cloud.google.com/tpu/docs/v3: 340 TB/s for the all-reduces of a pod, all links at once. */
static void links_agree_with_the_pod(void **state)
{
    (void)state;
    const CornuTpuProfile *v3 = cornu_tpu_profile("v3-2048");
    assert_near(v3->chips.value * v3->links.value * v3->link_gbps.value * 1e9, 340e12, 0.02);
}

/*
 * A board of v3 has chips 0 and 1 over 2 and 3, with two shards each. V = 82 MB are 1 ms on a link
 * of 82 GB/s, and three passes over 900 GB/s of HBM take 273.333 us.
 */
static void groups_take_the_hand_computed_time(void **state)
{
    (void)state;
    enum { V = 82000000 };
    const double local = 3.0 * V / 900e9, ms = 1e-3, us = 1e-6;
    const struct {
        int    shards, count, members[8];
        double seconds, link_bytes;
    } table[] = {
        { 8, 2, { 0, 1 }, local, 0.0 },                       /* one chip: in its memory */
        { 8, 4, { 0, 1, 2, 3 }, local + ms + 2 * us, V },     /* two chips, of all replicas */
        { 8, 2, { 0, 4 }, 2 * ms + 2 * us, 2.0 * V },         /* two groups on the same two */
        { 8, 4, { 0, 2, 4, 6 }, 1.5 * ms + 4 * us, 1.5 * V }, /* the ring of four, by two groups */
        { 8, 1, { 3 }, 0.0, 0.0 },
        /* 4x4 chips: a row, whose line has 3/2 V one way; every second chip of it, so that hops
         * are of two links and two groups share them, with two replicas each. */
        { 32, 8, { 0, 1, 2, 3, 4, 5, 6, 7 }, local + 1.5 * ms + 6 * us, 1.5 * V },
        { 32, 2, { 0, 4 }, 4 * ms + 4 * us, 4.0 * V },
    };
    const CornuTpuProfile *v3 = cornu_tpu_profile("v3-8");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const CornuTpuSlice    slice = cornu_tpu_slice(v3, table[i].shards);
        const CornuTpuExchange got = cornu_tpu_group_reduce(v3, &slice, table[i].members,
                                                            table[i].count, V);
        assert_near(got.seconds, table[i].seconds, 1e-12);
        assert_near(got.link_bytes, table[i].link_bytes, 1e-12);
    }
    const CornuTpuSlice    board = cornu_tpu_slice(v3, 8);
    const int              all[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const CornuTpuExchange whole = cornu_tpu_all_reduce(v3, &board, V);
    assert_true(cornu_tpu_group_reduce(v3, &board, all, 8, V).seconds == whole.seconds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_lie_on_the_smallest_slice),
        cmocka_unit_test(sums_take_the_hand_computed_time),
        cmocka_unit_test(one_axis_is_a_ring_or_a_line),
        cmocka_unit_test(times_grow),
        cmocka_unit_test(links_agree_with_the_pod),
        cmocka_unit_test(groups_take_the_hand_computed_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
