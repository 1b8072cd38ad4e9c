/* Clicks: ratings as MovieLens writes them, broken lines, synthetic events. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/clicks/clicks.h"
#include "../../../datasets/pipeline/iterator.h"
#include "../../../device/status.h"
#include "../files.h"

/* Replaces libc's: rows take their room by it, between the two passes over a file of ratings. */
static int    no_room;             /* what it fails with */
static off_t  shortened_to = -1;   /* what ratings.csv is then */
static bool   lengthened;

int posix_fallocate(int file, off_t offset, off_t length)
{
    const char *path = files_path(folder, "ratings.csv");
    if (shortened_to >= 0) assert_int_equal(truncate(path, shortened_to), 0);
    shortened_to = -1;
    if (lengthened) {
        FILE *more = fopen(path, "a");
        for (int i = 0; i < 5000; i++) fputs("1,2,3.5,1609718400\n", more);
        fclose(more);
    }
    lengthened = false;
    if (no_room) return no_room;
    return ftruncate(file, offset + length) ? errno : 0;
}

#define HEADER "userId,movieId,rating,timestamp\n"

static CornuClicks *ratings(const char *text, int64_t limit)
{
    const char *path = files_path(folder, "ratings.csv");
    files_write(path, text, strlen(text));
    return cornu_ratings_load(path, .limit = limit, .seed = 1);
}

static CornuClicks *made(CornuClicks *clicks)
{
    if (!clicks) fail_msg("%s", cornu_error_message());
    return clicks;
}

/* ---- Ratings ---- */

/* `rows` ratings: of user r % 7 of item 3 r, 0.5 to 5.0, an hour apart from a Monday on. */
enum { MONDAY = 1609718400 /* 2021-01-04 */, ROWS = 100 };

static char *many(int rows, const char *end)
{
    static char text[1 << 16];
    size_t      used = (size_t)snprintf(text, sizeof text, "userId,movieId,rating,timestamp%s",
                                        end);
    for (int r = 0; r < rows; r++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d,%d,%.1f,%d%s", r % 7, 3 * r,
                                 0.5 * (r % 10 + 1), MONDAY + 3600 * r, end);
    return text;
}

/* Which row a batch of one is, by its item; checks everything else of it. */
static int expect_row(const CornuBatch *batch)
{
    const int    item = ((const int32_t *)batch->arrays[1].data)[0], r = item / 3;
    const float *numbers = batch->arrays[3].data;
    const double angle = 2.0 * acos(-1.0) * (r % 24) / 24.0;
    assert_int_equal(item % 3, 0);
    assert_int_equal(((const int32_t *)batch->arrays[0].data)[0], r % 7);
    assert_int_equal(((const int32_t *)batch->arrays[2].data)[0], r % 168);
    assert_true(fabs(numbers[0] - (double)r / (ROWS - 1)) < 1e-6);
    assert_true(fabs(numbers[1] - sin(angle)) < 1e-6 && fabs(numbers[2] - cos(angle)) < 1e-6);
    assert_true(numbers[3] == (r / 24 % 7 >= 5 ? 1.0f : 0.0f));
    assert_true(((const float *)batch->arrays[4].data)[0] == (r % 10 >= 7 ? 1.0f : 0.0f));
    return r;
}

static void ratings_become_clicks(void **state)
{
    (void)state;
    static const char *const ends[] = { "\n", "\r\n", "\r" };
    for (int e = 0; e < 3; e++) {
        CornuClicks *clicks = made(ratings(many(ROWS, ends[e]), 0));
        bool         seen[ROWS] = { false };
        assert_int_equal(clicks->train_rows + clicks->test_rows, ROWS);
        assert_int_equal(clicks->train_clicks + clicks->test_clicks, 30);
        assert_in_range(clicks->test_rows, 3, 20);
        assert_int_equal(clicks->vocabulary[0], 7);
        assert_int_equal(clicks->vocabulary[1], 3 * (ROWS - 1) + 1);
        assert_int_equal(clicks->vocabulary[2], 168);
        assert_true(isnan(clicks->best_auc));
        for (int part = 0; part < 2; part++) {
            CornuDataset     *data = part ? clicks->test : clicks->train;
            CornuIterator    *iterator = cornu_iterator_begin(data, 0);
            const CornuBatch *row = NULL;
            while (!cornu_iterator_next(iterator, &row) && row) seen[expect_row(row)] = true;
            cornu_iterator_free(iterator);
        }
        for (int r = 0; r < ROWS; r++) assert_true(seen[r]);
        cornu_clicks_free(clicks);
    }
    CornuClicks *some = made(ratings(many(ROWS, "\n"), 40));
    assert_int_equal(some->train_rows + some->test_rows, 40);
    cornu_clicks_free(some);
}

/* No time passes in such a file: the number that says when is 0, not 0 / 0. */
static void ratings_all_at_one_time(void **state)
{
    (void)state;
    CornuClicks *clicks = made(ratings(HEADER "0,1,5,1609718400\n1,0,1,1609718400\n"
                                              "2,3,5,1609718400\n3,2,1,1609718400\n"
                                              "4,5,5,1609718400\n5,4,1,1609718400\n"
                                              "6,7,5,1609718400\n7,6,1,1609718400\n", 0));
    CornuIterator    *iterator = cornu_iterator_begin(clicks->train, 0);
    const CornuBatch *row = NULL;
    int               rows = 0;
    for (; !cornu_iterator_next(iterator, &row) && row; rows++)
        assert_true(((const float *)row->arrays[3].data)[0] == 0.0f);
    assert_int_equal(rows, clicks->train_rows);
    cornu_iterator_free(iterator);
    cornu_clicks_free(clicks);
}

/* More than is read at a time, so that lines lie across the parts. */
static void long_files_are_read_in_parts(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    const char *path = files_path(folder, "long.csv");
    FILE       *file = fopen(path, "w");
    double      wanted = 0.0, got = 0.0;
    assert_non_null(file);
    fputs(HEADER, file);
    for (int r = 0; r < MANY; r++) {
        fprintf(file, "%d,%d,%d,%d\n", r, MANY - r, r % 2 ? 5 : 1, MONDAY + r * r);
        wanted += (double)r * (MANY - r);
    }
    fclose(file);
    CornuClicks *clicks = made(cornu_ratings_load(path, .seed = 1));
    assert_int_equal(clicks->train_rows + clicks->test_rows, MANY);
    assert_int_equal(clicks->train_clicks + clicks->test_clicks, MANY / 2);
    for (int part = 0; part < 2; part++) {
        CornuIterator    *iterator = cornu_iterator_begin(part ? clicks->test : clicks->train, 0);
        const CornuBatch *row = NULL;
        while (!cornu_iterator_next(iterator, &row) && row)
            got += (double)((const int32_t *)row->arrays[0].data)[0] *
                   ((const int32_t *)row->arrays[1].data)[0];
        cornu_iterator_free(iterator);
    }
    assert_true(got == wanted);
    cornu_clicks_free(clicks);
}

/* To any length: in the header, in a line, after one, empty; and a file that grows. */
static void a_file_that_changes_is_an_error(void **state)
{
    (void)state;
    for (off_t left = 0; left < 600; left += 7) {
        shortened_to = left;
        assert_null(ratings(many(ROWS, "\n"), 0));
        assert_int_equal(cornu_error_take(), CORNU_ERR_DATA);
    }
    shortened_to = (off_t)strlen(many(50, "\n"));
    assert_null(ratings(many(ROWS, "\n"), 0));
    assert_non_null(strstr(cornu_error_message(), "line 52: the file changed while it was read"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DATA);
    lengthened = true;
    assert_null(ratings(many(ROWS, "\n"), 0));
    assert_non_null(strstr(cornu_error_message(), "the file changed while it was read"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DATA);
}

/* By an error, where a mapped page without a block would end the process. */
static void a_full_disk_is_an_error(void **state)
{
    (void)state;
    no_room = ENOSPC;
    CornuClicks *clicks = cornu_synthetic_clicks(100, 5, 5, 0);
    assert_null(clicks);
    assert_non_null(strstr(cornu_error_message(), "no room for "));
    assert_non_null(strstr(cornu_error_message(), "TMPDIR names another folder"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);
    assert_null(ratings(many(ROWS, "\n"), 0));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);
    no_room = 0;
}

static void broken_lines_are_named(void **state)
{
    (void)state;
    static const struct { const char *text, *message; } cases[] = {
        { "user,movie\n", "line 1, column 1: \"user,movie\", expected userId,movieId,rating" },
        { "userId,movieId,rating,timestamp,x\n", "line 1, column 32: \",x\", expected the end" },
        { HEADER "1,2,3.5,4\nx,2,3.5,4\n", "line 3, column 1: \"x,2,3.5,4\", expected a number" },
        { HEADER "1,2,3.5,4\n1,,3.5,4\n", "line 3, column 3: \",3.5,4\", expected a number" },
        { HEADER "1,2,good,4\n", "line 2, column 5: \"good,4\", expected a rating" },
        { HEADER "1,2,.,4\n", "line 2, column 5: \".,4\", expected a rating" },
        { HEADER "1,2,3.5\n", "line 2, column 8: \"\", expected a comma" },
        { HEADER "1,2,3.5,\n", "line 2, column 9: \"\", expected a time" },
        { HEADER "1,2,3.5,4,5\n", "line 2, column 10: \",5\", expected the end of the line" },
        { HEADER "1,2,3.5,4\n\n1,2,3.5,4\n", "line 3, column 1: \"\", expected a number" },
        { HEADER "-1,2,3.5,4\n", "line 2, column 1: \"-1,2,3.5,4\", expected a number from 0" },
        { HEADER "1,200000001,3.5,4\n", "line 2, column 3: \"200000001,3.5,4\", expected a n" },
        { HEADER "1,2,3.5,4\n1,2,3\x01" "5,4\n", "line 3, column 6: \"?5,4\", expected a comma" },
        { HEADER, "no rows for training" },
        { HEADER "1,2,3.5,4\n", "no rows for testing, expected more data" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuClicks *clicks = ratings(cases[i].text, 0);
        if (clicks) fail_msg("case %d: accepted", (int)i);
        if (!strstr(cornu_error_message(), cases[i].message))
            fail_msg("\"%s\", expected \"%s\"", cornu_error_message(), cases[i].message);
        assert_int_equal(cornu_error_take(), CORNU_ERR_DATA);
    }
    assert_null(cornu_ratings_load("/nowhere/ratings.csv"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);
    assert_null(cornu_ratings_load(folder));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);
}

/* ---- Synthetic events ---- */

static void expect_same_rows(CornuDataset *a, CornuDataset *b)
{
    CornuIterator *of_a = cornu_iterator_begin(a, 0), *of_b = cornu_iterator_begin(b, 0);
    for (int i = 0; i < 100; i++) {
        const CornuBatch *x = NULL, *y = NULL;
        assert_int_equal(cornu_iterator_next(of_a, &x), CORNU_OK);
        assert_int_equal(cornu_iterator_next(of_b, &y), CORNU_OK);
        for (int k = 0; k < 5; k++)
            assert_memory_equal(x->arrays[k].data, y->arrays[k].data,
                                cornu_type_bytes(x->arrays[k].type));
    }
    cornu_iterator_free(of_a);
    cornu_iterator_free(of_b);
}

static void events_depend_on_the_seed_alone(void **state)
{
    (void)state;
    CornuClicks *few = made(cornu_synthetic_clicks(5000, 50, 20, 3));
    CornuClicks *more = made(cornu_synthetic_clicks(20000, 50, 20, 3));
    CornuClicks *other = made(cornu_synthetic_clicks(20000, 50, 20, 4));
    expect_same_rows(few->train, more->train);
    expect_same_rows(few->test, more->test);
    assert_true(more->train_clicks != other->train_clicks);
    assert_in_range(more->test_rows, 1800, 2200);
    assert_true(more->best_auc > 0.75 && more->best_auc < 0.97);
    cornu_clicks_free(few);
    cornu_clicks_free(more);
    cornu_clicks_free(other);
    assert_null(cornu_synthetic_clicks(0, 50, 20, 3));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

static void a_missing_folder_is_named(void **state)
{
    (void)state;
    setenv("TMPDIR", "/nowhere", 1);
    CornuClicks *clicks = cornu_synthetic_clicks(100, 5, 5, 0);
    unsetenv("TMPDIR");
    assert_null(clicks);
    assert_non_null(strstr(cornu_error_message(), "TMPDIR names another folder"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ratings_become_clicks),
        cmocka_unit_test(ratings_all_at_one_time),
        cmocka_unit_test(long_files_are_read_in_parts),
        cmocka_unit_test(a_file_that_changes_is_an_error),
        cmocka_unit_test(a_full_disk_is_an_error),
        cmocka_unit_test(broken_lines_are_named),
        cmocka_unit_test(events_depend_on_the_seed_alone),
        cmocka_unit_test(a_missing_folder_is_named),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
