/* Collectives on any number of shards, up to 1,024: exactly, in the documented order. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../tensor/ops.h"
#include "../../expect.h"

enum { MOST = 1024 };

static const int counts[] = { 1, 2, 3, 5, 7, 8, 9, 16, 17, 31, 100, 1000, 1024 };
enum { COUNTS = sizeof counts / sizeof *counts };

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

/* The verifier tracks what each shard has: of a thousand that takes minutes, and has nothing to see
 * that fewer do not show. */
static CornuDevice *open_device(const char *name, int shards, int threads)
{
    setenv("CORNU_VERIFY", shards > 40 ? "0" : "1", 1);
    return made(cornu_device_open(name, .threads = threads, .shards = shards));
}

/* Element i of what shard s has: of all magnitudes, so that every order of a sum has other bits. */
static float fed(int s, int64_t i)
{
    return (float)sin(0.7 * (double)(s * 37 + i) + 0.2) * (float)(1 << (s * 5 + i) % 22);
}

static int64_t whole(int s, int64_t i) { return (s * 7919 + i * 31) % 1000003 - 500000; }

/* The documented tree: the members up to the largest power of two below their number are one side,
 * the rest is the other. */
static float sum_of_floats(const int *member, int count, int64_t i)
{
    int left = 1;
    if (count == 1) return fed(member[0], i);
    while (2 * left < count) left *= 2;
    return sum_of_floats(member, left, i) + sum_of_floats(member + left, count - left, i);
}

static double sum_of_doubles(const int *member, int count, int64_t i)
{
    int left = 1;
    if (count == 1) return (double)fed(member[0], i) / 3.0;
    while (2 * left < count) left *= 2;
    return sum_of_doubles(member, left, i) + sum_of_doubles(member + left, count - left, i);
}

/* The groups of a device, as the user gives them, and the members of each in ascending order. */
typedef struct {
    CornuGroups groups;
    int         member[MOST];   /* group by group */
} Division;

/* 0: one group; 1: neighbours; 2: far apart, listed backwards. */
static Division divide(int shards, int size, int kind)
{
    Division d = { .groups = { .size = kind ? size : 0 } };
    if (kind == 0) size = shards;
    for (int i = 0; i < shards; i++) {
        d.member[i] = kind == 2 ? i / size + i % size * (shards / size) : i;
        if (kind == 2) d.groups.members[(i / size + 1) * size - 1 - i % size] = d.member[i];
    }
    return d;
}

/* All four collectives of f32, i64 and f64 on these groups. */
static void exchange(const char *device_name, int shards, int threads, int size, int kind)
{
    static Division d;
    d = divide(shards, size, kind);
    if (kind == 0) size = shards;
    const int64_t      n = size * (3 + (shards <= 17 ? 4096 : 0));
    CornuDevice       *device = open_device(device_name, shards, threads);
    CornuGraph        *graph = made(cornu_graph_create(device));
    const CornuGroups *groups = kind ? &d.groups : NULL;
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, n));
    CornuTensor *w = cornu_graph_shard_input(graph, cornu_type(CORNU_I64, n));
    CornuTensor *third = cornu_op_divide(cornu_op_convert(x, CORNU_F64),
                                         cornu_op_constant_like(cornu_op_convert(x, CORNU_F64), 3));
    CornuTensor *zero = cornu_op_multiply(cornu_op_convert(cornu_op_replica_id(graph), CORNU_F32),
                                          cornu_op_constant(graph, cornu_scalar(CORNU_F32), 0));
    CornuTensor *zeros = cornu_op_convert(zero, CORNU_I64);
    CornuTensor *zeros64 = cornu_op_convert(zero, CORNU_F64);
    /* Results that shards share are added to each shard's zero: all fetches then have one form. */
    CornuTensor *fetch[] = {
        cornu_op_add(cornu_op_all_reduce_in(x, groups), zero),
        cornu_op_add(cornu_op_reduce_scatter(x, groups), zero),
        cornu_op_add(cornu_op_all_reduce_in(w, groups), zeros),
        cornu_op_add(cornu_op_reduce_scatter(third, groups), zeros64),
        cornu_op_shard_slice(x, groups),
    };
    const int64_t slice = n / size, all = shards * n, parts = shards * slice;
    float   *in = calloc((size_t)all, sizeof *in), *sum = calloc((size_t)all, sizeof *sum);
    float   *part = calloc((size_t)parts, sizeof *part), *own = calloc((size_t)parts, sizeof *own);
    double  *thirds = calloc((size_t)parts, sizeof *thirds);
    int64_t *in_w = calloc((size_t)all, sizeof *in_w), *sum_w = calloc((size_t)all, sizeof *sum_w);
    CornuArray to[] = {
        cornu_array(sum, CORNU_F32, shards, n), cornu_array(part, CORNU_F32, shards, slice),
        cornu_array(sum_w, CORNU_I64, shards, n), cornu_array(thirds, CORNU_F64, shards, slice),
        cornu_array(own, CORNU_F32, shards, slice),
    };
    for (size_t i = 0; i < sizeof to / sizeof *to; i++)
        if (!cornu_tensor_varies(made(fetch[i]))) to[i].type = cornu_tensor_type(fetch[i]);
    for (int s = 0; s < shards; s++)
        for (int64_t i = 0; i < n; i++) {
            in[s * n + i] = fed(s, i);
            in_w[s * n + i] = whole(s, i);
        }
    expect_ok(cornu_graph_feed(x, cornu_array(in, CORNU_F32, shards, n)));
    expect_ok(cornu_graph_feed(w, cornu_array(in_w, CORNU_I64, shards, n)));
    for (int run = 0; run < 2; run++)
        expect_ok(cornu_run(graph, fetch, (int)(sizeof fetch / sizeof *fetch), to));
    for (int at = 0; at < shards; at++) {
        const int *member = d.member + at / size * size;
        const int  s = d.member[at], rank = at % size;
        for (int64_t i = 0; i < n; i += 1 + i / 7) {
            if (s != member[0]) {   /* all members have the same sum */
                assert_float_equal(sum[s * n + i], sum[member[0] * n + i], 0);
                assert_int_equal(sum_w[s * n + i], sum_w[member[0] * n + i]);
                continue;
            }
            int64_t exact = 0;
            for (int k = 0; k < size; k++) exact += whole(member[k], i);
            assert_int_equal(sum_w[s * n + i], exact);
            if (sum[s * n + i] != sum_of_floats(member, size, i))
                fail_msg("%s, %d shards, groups of %d: element %d on shard %d is %.9g, by the tree "
                         "%.9g", device_name, shards, size, (int)i, s, sum[s * n + i],
                         sum_of_floats(member, size, i));
        }
        for (int64_t i = 0; i < slice; i += 1 + i / 7) {
            const int64_t from = rank * slice + i;
            assert_float_equal(own[s * slice + i], fed(s, from), 0);
            assert_true(part[s * slice + i] == sum_of_floats(member, size, from));
            assert_true(thirds[s * slice + i] == sum_of_doubles(member, size, from));
        }
    }
    free(in), free(sum), free(part), free(own), free(thirds), free(in_w), free(sum_w);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

static void sums_over_all_follow_the_tree(void **state)
{
    (void)state;
    for (int i = 0; i < COUNTS; i++)
        for (int threads = 1; threads <= 3; threads++) {
            if (counts[i] >= 1000 && threads == 2) continue;
            exchange(threads == 2 ? "tpu" : "cpu", counts[i], threads, counts[i], 0);
        }
}

static void sums_over_groups_follow_the_tree(void **state)
{
    (void)state;
    static const struct { int shards, size; } in[] = {
        { 9, 3 }, { 16, 8 }, { 18, 9 }, { 34, 17 }, { 100, 4 }, { 100, 50 }, { 1000, 8 },
        { 1024, 2 }, { 20, 1 },
    };
    for (size_t i = 0; i < sizeof in / sizeof *in; i++)
        for (int kind = 1; kind <= 2; kind++)
            exchange("cpu", in[i].shards, 1 + (int)i % 3, in[i].size, kind);
}

/* What every shard has is gathered in the order of the shards. */
static void gathers_are_in_order(void **state)
{
    (void)state;
    static float out[MOST * 3];
    for (int i = 0; i < COUNTS; i++) {
        const int    shards = counts[i];
        CornuDevice *device = open_device("cpu", shards, 2);
        CornuGraph  *graph = made(cornu_graph_create(device));
        CornuTensor *id = cornu_op_convert(cornu_op_replica_id(graph), CORNU_F32);
        CornuTensor *own = cornu_op_add(cornu_op_iota(graph, cornu_type(CORNU_F32, 3), 0), id);
        CornuTensor *all = cornu_op_all_gather(own, NULL);
        CornuArray   to = cornu_array(out, CORNU_F32, 3 * shards);
        expect_ok(cornu_run(graph, &all, 1, &to));
        for (int s = 0; s < shards; s++)
            for (int k = 0; k < 3; k++) assert_float_equal(out[3 * s + k], s + k, 0);
        cornu_graph_free(graph);
        cornu_device_close(device);
    }
}

/* A sum does not depend on the device: the reference computes that of one shard. */
static void one_shard_is_the_reference(void **state)
{
    (void)state;
    exchange("reference", 1, 1, 1, 0);
}

/* A program for one number of shards, or with groups of other shards, is not run on another. */
static void other_numbers_are_refused(void **state)
{
    (void)state;
    static const CornuGroups pairs = { 2, { 0 } };
    CornuDevice *device = open_device("cpu", 9, 1);
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_type(CORNU_F32, 10));
    assert_null(cornu_op_all_reduce_in(x, &pairs));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "expected a size that divides the 9"));
    assert_null(cornu_op_reduce_scatter(x, NULL));
    assert_int_equal(cornu_error_take(), CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "axis 0 does not divide into 9"));
    cornu_graph_free(graph);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_shard_is_the_reference),
        cmocka_unit_test(sums_over_all_follow_the_tree),
        cmocka_unit_test(sums_over_groups_follow_the_tree),
        cmocka_unit_test(gathers_are_in_order),
        cmocka_unit_test(other_numbers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
