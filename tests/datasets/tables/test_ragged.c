/* cornu_ragged_rows: rows of one length from offsets and indices, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../../../datasets/tables/ragged.h"
#include "../../expect.h"

enum { ROWS = 3, LENGTH = 2 };

static int64_t offsets[] = { 0, 2, 2, 3 };
static int32_t indices[] = { 7, 4, 9 };
static float   weights[] = { 0.5f, 2.0f, 3.0f };

static CornuRagged ragged(void)
{
    return (CornuRagged){ .offsets = cornu_array(offsets, CORNU_I64, ROWS + 1),
                          .indices = cornu_array(indices, CORNU_I32, 3),
                          .weights = cornu_array(weights, CORNU_F32, 3) };
}

static void rows_are_padded_at_their_ends(void **state)
{
    (void)state;
    const int32_t     want[ROWS * LENGTH] = { 7, 4, -1, -1, 9, -1 };
    const float       want_weights[ROWS * LENGTH] = { 0.5f, 2.0f, 0, 0, 3.0f, 0 };
    const float       ones[ROWS * LENGTH] = { 1, 1, 0, 0, 1, 0 };
    int32_t           to[ROWS * LENGTH];
    float             weights_to[ROWS * LENGTH];
    CornuRagged       r = ragged();
    const CornuArray  rows = cornu_array(to, CORNU_I32, ROWS, LENGTH);
    const CornuArray  row_weights = cornu_array(weights_to, CORNU_F32, ROWS, LENGTH);
    expect_ok(cornu_ragged_rows(&r, .limit = 10, .length = LENGTH, .to = rows,
                                .weights_to = row_weights));
    assert_memory_equal(to, want, sizeof want);
    assert_memory_equal(weights_to, want_weights, sizeof want_weights);
    r.weights.data = NULL;
    expect_ok(cornu_ragged_rows(&r, .limit = 10, .length = LENGTH, .to = rows,
                                .weights_to = row_weights));
    assert_memory_equal(weights_to, ones, sizeof ones);
}

static void an_index_is_below_the_limit(void **state)
{
    (void)state;
    int32_t           to[ROWS * LENGTH] = { 0 };
    const int32_t     untouched[ROWS * LENGTH] = { 0 };
    const CornuRagged r = ragged();
    const CornuArray  rows = cornu_array(to, CORNU_I32, ROWS, LENGTH);
    expect_error(cornu_ragged_rows(&r, .name = "watched", .limit = 9, .length = LENGTH, .to = rows),
                 CORNU_ERR_VALUE, "watched: index 9 in row 2, expected 0 to 8");
    assert_memory_equal(to, untouched, sizeof to);
}

static void long_rows_are_refused_or_cut(void **state)
{
    (void)state;
    int32_t           to[ROWS];
    const int32_t     want[ROWS] = { 7, -1, 9 };
    const CornuRagged r = ragged();
    const CornuArray  rows = cornu_array(to, CORNU_I32, ROWS, 1);
    expect_error(cornu_ragged_rows(&r, .limit = 10, .length = 1, .to = rows), CORNU_ERR_VALUE,
                 "row 0 has 2 indices, expected at most 1");
    expect_ok(cornu_ragged_rows(&r, .limit = 10, .length = 1, .truncate = true, .to = rows));
    assert_memory_equal(to, want, sizeof want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_padded_at_their_ends),
        cmocka_unit_test(an_index_is_below_the_limit),
        cmocka_unit_test(long_rows_are_refused_or_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
