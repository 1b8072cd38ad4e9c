/* Timetables of pipelines, against small ones drawn by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "../../../device/mesh/timetable.h"

/* Row s is stage s, two characters a slot: F and B with the microbatch, or two dots. */
static void expect(int stages, int microbatches, CornuPipelineSchedule schedule,
                   const char *const *rows)
{
    CornuTimetable t;
    char           drawn[CORNU_MAX_STAGES][64];
    assert_int_equal(cornu_timetable_make(&t, stages, microbatches, schedule), CORNU_OK);
    assert_int_equal(t.count, 2 * stages * microbatches);
    assert_true(t.slots * 2 < 64);
    for (int s = 0; s < stages; s++) {
        memset(drawn[s], '.', (size_t)t.slots * 2);
        drawn[s][t.slots * 2] = '\0';
    }
    for (int i = 0; i < t.count; i++) {
        char *at = drawn[t.tasks[i].stage] + t.tasks[i].slot * 2;
        at[0] = t.tasks[i].backward ? 'B' : 'F';
        at[1] = (char)('0' + t.tasks[i].microbatch);
    }
    for (int s = 0; s < stages; s++) assert_string_equal(drawn[s], rows[s]);
    cornu_timetable_free(&t);
}

static void test_drawn(void **state)
{
    (void)state;
    expect(1, 2, CORNU_GPIPE, (const char *[]){ "F0F1B0B1" });
    expect(1, 2, CORNU_1F1B, (const char *[]){ "F0B0F1B1" });
    expect(2, 3, CORNU_GPIPE, (const char *[]){ "F0F1F2....B0B1B2",
                                                "..F0F1F2B0B1B2.." });
    expect(2, 3, CORNU_1F1B, (const char *[]){ "F0F1..B0F2B1..B2",
                                               "..F0B0F1B1F2B2.." });
    expect(3, 4, CORNU_1F1B, (const char *[]){ "F0F1F2....B0F3B1..B2..B3",
                                               "..F0F1..B0F2B1F3B2..B3..",
                                               "....F0B0F1B1F2B2F3B3...." });
}

/* Fewer microbatches than stages. */
static void test_few_microbatches(void **state)
{
    (void)state;
    static const char *const same[] = { "F0F1............B0B1", "..F0F1........B0B1..",
                                        "....F0F1....B0B1....", "......F0F1B0B1......" };
    expect(4, 2, CORNU_GPIPE, same);
    expect(4, 2, CORNU_1F1B, (const char *[]){ "F0F1..........B0..B1", "..F0F1......B0..B1..",
                                               "....F0F1..B0..B1....", "......F0B0F1B1......" });
    expect(3, 1, CORNU_GPIPE, (const char *[]){ "F0........B0", "..F0....B0..", "....F0B0...." });
}

/* Every task comes once, after what it waits for; stages hold what they are said to, and idle no
 * more than they must. */
static void test_all(void **state)
{
    (void)state;
    for (int stages = 1; stages <= 9; stages++)
        for (int microbatches = 1; microbatches <= 20; microbatches++)
            for (int schedule = CORNU_GPIPE; schedule <= CORNU_1F1B; schedule++) {
                static int     done[2][CORNU_MAX_STAGES][32];
                CornuTimetable t;
                assert_int_equal(cornu_timetable_make(&t, stages, microbatches,
                                                      (CornuPipelineSchedule)schedule), CORNU_OK);
                memset(done, 0, sizeof done);
                for (int i = 0; i < t.count; i++) {
                    const CornuPipelineTask of = t.tasks[i];
                    const int s = of.stage, m = of.microbatch, end = of.slot + 1;
                    assert_int_equal(done[of.backward][s][m], 0);
                    if (m > 0) assert_in_range(done[of.backward][s][m - 1], 1, of.slot);
                    if (of.backward) assert_in_range(done[0][s][m], 1, of.slot);
                    if (!of.backward && s > 0) assert_in_range(done[0][s - 1][m], 1, of.slot);
                    if (of.backward && s < stages - 1)
                        assert_in_range(done[1][s + 1][m], 1, of.slot);
                    done[of.backward][s][m] = end;
                }
                for (int s = 0; s < stages; s++) {
                    const int behind = stages - s;
                    assert_int_equal(t.stashes[s],
                                     schedule == CORNU_1F1B && behind < microbatches
                                     ? behind : microbatches);
                }
                assert_int_equal(t.count, 2 * stages * microbatches);
                assert_float_equal(t.bubble, cornu_timetable_least_bubble(stages, microbatches),
                                   1e-12);
                cornu_timetable_free(&t);
            }
}

static void test_refused(void **state)
{
    (void)state;
    CornuTimetable t;
    assert_int_equal(cornu_timetable_make(&t, 0, 1, CORNU_GPIPE), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_timetable_make(&t, 33, 1, CORNU_GPIPE), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_timetable_make(&t, 2, 0, CORNU_GPIPE), CORNU_ERR_ARGUMENT);
    assert_int_equal(cornu_timetable_make(&t, 2, 2, (CornuPipelineSchedule)7),
                     CORNU_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn), cmocka_unit_test(test_few_microbatches),
        cmocka_unit_test(test_all), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
