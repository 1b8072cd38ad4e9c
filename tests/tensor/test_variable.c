/* Packed variables: used as before, while their memory is contiguous. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../tensor/ops.h"
#include "../expect.h"

enum { PARTS = 3 };

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

/* (2, 3), () and (17): 6, 1 and 17 elements, counting up from 10, 20 and 30. */
static CornuType type_of(int i)
{
    return i == 0   ? cornu_type(CORNU_F32, 2, 3)
           : i == 1 ? cornu_scalar(CORNU_F32) : cornu_type(CORNU_F32, 17);
}

static void make_parts(CornuDevice *device, CornuVariable **v)
{
    for (int i = 0; i < PARTS; i++) {
        static const char *const names[PARTS] = { "a", "b", "c" };
        float                    values[17];
        for (int k = 0; k < 17; k++) values[k] = (float)(10 * (i + 1) + k);
        v[i] = made(cornu_variable_create(device, type_of(i), names[i]));
        expect_ok(cornu_variable_write(v[i], cornu_array_from(values, type_of(i))));
    }
}

static void expect_values(const CornuVariable *v, int i, float first)
{
    float got[17];
    expect_ok(cornu_variable_read(v, cornu_array_from(got, type_of(i))));
    for (int k = 0; k < cornu_type_count(type_of(i)); k++)
        assert_float_equal(got[k], first + (float)k, 0);
}

static void free_parts(CornuVariable **v)
{
    for (int i = 0; i < PARTS; i++) cornu_variable_free(v[i]);
}

/* Parts start at multiples of 16 elements, with zeros between; the extent is a multiple of that for
 * every shard. */
static void parts_keep_their_values(void **state)
{
    (void)state;
    static const char *const devices[] = { "cpu", "reference" };
    for (int d = 0; d < 4; d++) {
        const CornuSpread spread = d == 2 ? CORNU_SLICED : d == 3 ? CORNU_DUPLICATED : CORNU_SHARED;
        CornuDevice *device = made(cornu_device_open(devices[d == 1], .shards = d == 1 ? 1 : 4));
        CornuVariable *v[PARTS], *whole;
        make_parts(device, v);
        whole = made(cornu_variable_pack(v, PARTS, spread, "whole"));
        const int64_t extent = cornu_type_count(cornu_variable_type(whole));
        assert_int_equal(extent, 64);
        float flat[64];
        expect_ok(cornu_variable_read(whole, cornu_array_from(flat, cornu_variable_type(whole))));
        for (int k = 0; k < 64; k++)
            assert_float_equal(flat[k], k < 6    ? 10 + k
                                        : k == 16 ? 20
                                        : k >= 32 && k < 49 ? 30 + (k - 32) : 0, 0);
        for (int i = 0; i < PARTS; i++) expect_values(v[i], i, (float)(10 * (i + 1)));
        expect_ok(cornu_variable_set(v[1], 5));
        expect_values(v[1], 1, 5);
        expect_values(v[0], 0, 10);
        expect_values(v[2], 2, 30);
        float wrong[17];
        expect_error(cornu_variable_write(v[0], cornu_array(wrong, CORNU_F32, 6)), CORNU_ERR_SHAPE,
                     "a: the array written is f32 (6,), expected f32 (2, 3)");
        assert_ptr_equal(cornu_variable_pack(v, PARTS, spread, "again"), whole);
        free_parts(v);
        cornu_device_close(device);
    }
}

/* b and c move to another packed variable; a stays and is read as before. */
static void parts_may_leave(void **state)
{
    (void)state;
    CornuDevice   *device = made(cornu_device_open("cpu"));
    CornuVariable *v[PARTS];
    make_parts(device, v);
    CornuVariable *whole = made(cornu_variable_pack(v, PARTS, CORNU_SHARED, NULL));
    CornuVariable *other = made(cornu_variable_pack(v + 1, 2, CORNU_SHARED, NULL));
    assert_ptr_not_equal(whole, other);
    assert_int_equal(cornu_type_count(cornu_variable_type(other)), 48);
    for (int i = 0; i < PARTS; i++) expect_values(v[i], i, (float)(10 * (i + 1)));
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *c = cornu_read(graph, v[2]), *a = cornu_read(graph, v[0]);
    CornuTensor *fetch[2] = { cornu_op_sum(c), cornu_op_sum(a) };
    float        sums[2];
    CornuArray   to[2] = { cornu_array_from(&sums[0], cornu_scalar(CORNU_F32)),
                           cornu_array_from(&sums[1], cornu_scalar(CORNU_F32)) };
    expect_ok(cornu_assign(v[0], cornu_op_shift(a, 1)));
    expect_ok(cornu_run(graph, fetch, 2, to));
    assert_float_equal(sums[0], 17 * 38, 0);
    assert_float_equal(sums[1], 75, 0);
    expect_values(v[0], 0, 11);
    /* The graph keeps the packed variable alive, but its parts must not have moved. */
    made(cornu_variable_pack(v, PARTS, CORNU_SHARED, NULL));
    expect_error(cornu_run(graph, fetch, 2, to), CORNU_ERR_ARGUMENT,
                 "was packed after this graph read it");
    free_parts(v);
    cornu_graph_free(graph);
    cornu_device_close(device);
}

static void an_outdated_graph_is_refused(void **state)
{
    (void)state;
    CornuDevice   *device = made(cornu_device_open("cpu"));
    CornuGraph    *graph = made(cornu_graph_create(device));
    CornuVariable *v[PARTS];
    make_parts(device, v);
    expect_ok(cornu_assign(v[1], cornu_op_shift(cornu_read(graph, v[1]), 1)));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    made(cornu_variable_pack(v, PARTS, CORNU_SHARED, NULL));
    expect_values(v[1], 1, 21);
    expect_error(cornu_run(graph, NULL, 0, NULL), CORNU_ERR_ARGUMENT,
                 "b: was packed after this graph read it");
    cornu_graph_free(graph);
    free_parts(v);
    cornu_device_close(device);
}

/* Assigned one by one, in place, two of them twice; one is replaced by a constant. */
static void parts_are_assigned(void **state)
{
    (void)state;
    for (int spread = CORNU_SHARED; spread <= CORNU_SLICED; spread++)
        for (int shards = 1; shards <= 4; shards *= 4) {
            CornuDevice   *device = made(cornu_device_open("cpu", .shards = shards, .threads = 2));
            CornuGraph    *graph = made(cornu_graph_create(device));
            CornuVariable *v[PARTS];
            make_parts(device, v);
            made(cornu_variable_pack(v, PARTS, (CornuSpread)spread, NULL));
            CornuTensor *a = cornu_read(graph, v[0]), *c = cornu_read(graph, v[2]);
            assert_ptr_equal(a, cornu_read(graph, v[0]));
            expect_ok(cornu_assign(v[0], cornu_op_shift(a, 7)));
            expect_ok(cornu_assign(v[0], cornu_op_shift(a, 2)));
            expect_ok(cornu_assign(v[2], cornu_op_shift(cornu_op_scale(c, 1), 3)));
            for (int run = 1; run <= 3; run++) {
                expect_ok(cornu_run(graph, NULL, 0, NULL));
                expect_values(v[0], 0, (float)(10 + 2 * run));
                expect_values(v[1], 1, 20);
                expect_values(v[2], 2, (float)(30 + 3 * run));
            }
            if (spread == CORNU_SHARED)
                assert_int_equal(cornu_graph_statistics(graph)->copies, 0);
            cornu_graph_free(graph);
            free_parts(v);
            cornu_device_close(device);
        }
}

/* A part may be assigned another's value, so that the result cannot be written in place. */
static void parts_swap_values(void **state)
{
    (void)state;
    CornuDevice   *device = made(cornu_device_open("cpu"));
    CornuGraph    *graph = made(cornu_graph_create(device));
    CornuVariable *v[2];
    for (int i = 0; i < 2; i++) {
        v[i] = made(cornu_variable_create(device, cornu_scalar(CORNU_F32), i ? "y" : "x"));
        expect_ok(cornu_variable_set(v[i], i + 1));
    }
    made(cornu_variable_pack(v, 2, CORNU_SHARED, NULL));
    expect_ok(cornu_assign(v[0], cornu_read(graph, v[1])));
    expect_ok(cornu_assign(v[1], cornu_op_shift(cornu_read(graph, v[0]), 10)));
    for (int run = 0; run < 2; run++) expect_ok(cornu_run(graph, NULL, 0, NULL));
    double value;
    expect_ok(cornu_variable_get(v[0], &value));
    assert_float_equal(value, 11, 0);
    expect_ok(cornu_variable_get(v[1], &value));
    assert_float_equal(value, 12, 0);
    cornu_graph_free(graph);
    for (int i = 0; i < 2; i++) cornu_variable_free(v[i]);
    cornu_device_close(device);
}

/* A variable for packing has no memory before that, and is all zeros then. */
static void packing_allocates_memory(void **state)
{
    (void)state;
    CornuDevice   *device = made(cornu_device_open("cpu", .shards = 2));
    CornuVariable *v[2];
    for (int i = 0; i < 2; i++)
        v[i] = made(cornu_variable_create(device, cornu_type(CORNU_F32, 20), i ? "y" : "x",
                                          .for_packing = true));
    assert_int_equal(cornu_device_memory(device).total.now, 0);
    float values[20] = { 1 };
    CornuArray array = cornu_array(values, CORNU_F32, 20);
    expect_error(cornu_variable_read(v[1], array), CORNU_ERR_ARGUMENT, "y: has no memory");
    expect_error(cornu_variable_write(v[1], array), CORNU_ERR_ARGUMENT, "y: has no memory");
    made(cornu_variable_pack(v, 2, CORNU_SLICED, "slots"));
    assert_int_equal(cornu_device_memory(device).total.now, 4 * 64 / 2);
    expect_ok(cornu_variable_read(v[1], array));
    for (int k = 0; k < 20; k++) assert_float_equal(values[k], 0, 0);
    for (int i = 0; i < 2; i++) cornu_variable_free(v[i]);
    assert_int_equal(cornu_device_memory(device).total.peak, 4 * 64 / 2);
    cornu_device_close(device);
}

static void wrong_parts_are_refused(void **state)
{
    (void)state;
    CornuDevice   *device = made(cornu_device_open("cpu", .shards = 2));
    CornuDevice   *other = made(cornu_device_open("reference"));
    CornuVariable *f = made(cornu_variable_create(device, cornu_scalar(CORNU_F32), "f"));
    CornuVariable *i = made(cornu_variable_create(device, cornu_scalar(CORNU_I64), "i"));
    CornuVariable *o = made(cornu_variable_create(other, cornu_scalar(CORNU_F32), "o"));
    CornuVariable *s = made(cornu_variable_create(device, cornu_scalar(CORNU_F32), "s",
                                                  .spread = CORNU_PER_SHARD));
    const struct { CornuVariable *parts[2]; int count; CornuStatus status; const char *part; }
    wrong[] = {
        { { f, i }, 2, CORNU_ERR_DTYPE, "i: is i64, but f is f32; expected one dtype" },
        { { f, o }, 2, CORNU_ERR_DEVICE, "o: is on device reference, but f on cpu" },
        { { f, f }, 2, CORNU_ERR_ARGUMENT, "f: is listed twice" },
        { { f, s }, 2, CORNU_ERR_ARGUMENT, "s: is CORNU_PER_SHARD" },
        { { f, f }, 0, CORNU_ERR_ARGUMENT, "no variable given" },
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_null(cornu_variable_pack(wrong[k].parts, wrong[k].count, CORNU_SHARED, NULL));
        expect_error(cornu_error_take(), wrong[k].status, wrong[k].part);
    }
    assert_null(cornu_variable_pack(&f, 1, CORNU_PER_SHARD, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "the spread is CORNU_PER_SHARD");
    const CornuType deepest = cornu_type(CORNU_F32, 1, 1, 1, 1, 1, 1, 1, 1);
    assert_null(cornu_variable_create(device, deepest, "d", .spread = CORNU_PER_SHARD));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "d: rank 8, expected at most 7");
    assert_null(cornu_variable_create(device, deepest, "d", .spread = CORNU_SLICED));
    expect_error(cornu_error_take(), CORNU_ERR_SHAPE, "d: rank 8, expected at most 7");
    assert_null(cornu_variable_create(device, deepest, "d", .spread = CORNU_DUPLICATED));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "only packed variables are duplicated");
    CornuVariable *whole = made(cornu_variable_pack(&f, 1, CORNU_SLICED, "whole"));
    assert_null(cornu_variable_pack(&whole, 1, CORNU_SHARED, NULL));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "whole: is a packed variable");
    CornuGraph  *graph = made(cornu_graph_create(device));
    CornuTensor *x = cornu_graph_shard_input(graph, cornu_scalar(CORNU_F32));
    expect_error(cornu_assign(f, x), CORNU_ERR_ARGUMENT, "f: the assigned value varies");
    cornu_graph_free(graph);
    cornu_variable_free(f);
    cornu_variable_free(i);
    cornu_variable_free(o);
    cornu_variable_free(s);
    cornu_device_close(other);
    cornu_device_close(device);
}

/* A sequential graph reads what was assigned before: a part, the whole that it is in, and a
 * variable by itself; gradients are by the value that was read. */
static void sequential_reads_follow_assignments(void **state)
{
    (void)state;
    static const CornuSpread spreads[] = { CORNU_SHARED, CORNU_SLICED };
    for (int k = 0; k < 4; k++) {
        CornuDevice   *device = made(cornu_device_open("cpu", .shards = k / 2 + 1));
        CornuVariable *v[PARTS], *alone;
        make_parts(device, v);
        CornuVariable *whole = made(cornu_variable_pack(v, PARTS, spreads[k % 2], "whole"));
        alone = made(cornu_variable_create(device, cornu_scalar(CORNU_F32), "alone"));
        expect_ok(cornu_variable_set(alone, 2.0));
        CornuGraph *graph = made(cornu_graph_create(device));
        cornu_graph_set_sequential(graph);
        CornuTensor *first = made(cornu_read(graph, v[0]));
        assert_ptr_equal(cornu_read(graph, v[0]), first);
        expect_ok(cornu_assign(v[0], cornu_op_shift(first, 100.0)));
        expect_ok(cornu_assign(v[0], cornu_op_shift(cornu_read(graph, v[0]), 100.0)));
        CornuTensor *all = made(cornu_read(graph, whole));   /* of a slice its shard's elements */
        expect_ok(cornu_assign(whole, cornu_op_shift(all, 1000.0)));
        expect_ok(cornu_assign(v[1], cornu_op_shift(cornu_read(graph, v[1]), 5.0)));
        expect_ok(cornu_assign(alone, cornu_op_square(cornu_read(graph, alone))));
        CornuTensor *w = made(cornu_read(graph, alone)), *d_w;   /* 4, of which w^2 has 8 */
        assert_ptr_equal(cornu_read(graph, alone), w);
        assert_ptr_equal(cornu_read_assigned(graph, alone), w);
        expect_ok(cornu_gradients(cornu_op_square(w), &w, 1, &d_w));
        expect_ok(cornu_assign(alone, d_w));
        expect_ok(cornu_run(graph, NULL, 0, NULL));
        expect_values(v[0], 0, 1210.0f);
        expect_values(v[1], 1, 1025.0f);
        expect_values(v[2], 2, 1030.0f);
        double value;
        expect_ok(cornu_variable_get(alone, &value));
        assert_true(value == 8.0);
        cornu_graph_free(graph);
        cornu_variable_free(alone);
        free_parts(v);
        cornu_device_close(device);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_keep_their_values),
        cmocka_unit_test(parts_may_leave),
        cmocka_unit_test(an_outdated_graph_is_refused),
        cmocka_unit_test(parts_are_assigned),
        cmocka_unit_test(parts_swap_values),
        cmocka_unit_test(sequential_reads_follow_assignments),
        cmocka_unit_test(packing_allocates_memory),
        cmocka_unit_test(wrong_parts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
