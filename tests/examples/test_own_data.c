/* build/image_folder and build/table on data of one's own: drawn digits as pictures in class
 * folders, the twenty published ones, and tables whose columns follow a rule. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/synthetic.h"
#include "../datasets/files.h"

enum { SIZE = 28, PIXELS = SIZE * SIZE, OUTPUT = 1 << 16, ARGUMENTS = 4 * FILES_PATH };

static char output[OUTPUT];

/* Runs a program of the build; its exit status. What it printed is in output. A test whose program
 * is not built is skipped. */
static int run(const char *program, const char *arguments)
{
    char        path[FILES_PATH], command[ARGUMENTS + 3 * FILES_PATH];
    const char *build = getenv("BUILD"), *log = files_path(folder, "log");
    snprintf(path, sizeof path, "%s/%s", build ? build : "build", program);
    if (access(path, X_OK)) skip();
    snprintf(command, sizeof command, "%s %s >'%s' 2>&1", path, arguments, log);
    const int status = system(command);
    output[files_read(log, output, OUTPUT - 1)] = '\0';
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void must_run(const char *program, const char *arguments)
{
    if (run(program, arguments)) fail_msg("%s %s:\n%s", program, arguments, output);
}

/* The number behind a text that was printed. */
static double printed(const char *text)
{
    const char *at = strstr(output, text);
    if (!at) fail_msg("no \"%s\" in:\n%s", text, output);
    return strtod(at + strlen(text), NULL);
}

/* ---- Pictures ---- */

static void test_drawn_digits_are_learnt(void **state)
{
    (void)state;
    enum { COUNT = 600, CLASSES = 3 };
    static uint8_t pixels[COUNT][PIXELS], labels[COUNT];
    char           path[FILES_PATH], arguments[ARGUMENTS];
    cornu_synthetic_digits(1, 0, COUNT, pixels[0], labels);
    for (int i = 0; i < COUNT; i++) {
        if (labels[i] >= CLASSES) continue;
        snprintf(path, sizeof path, "digits/%d/%d.png", labels[i], i);
        files_write_png(files_path(folder, path), SIZE, SIZE, 1, pixels[i]);
    }
    snprintf(arguments, sizeof arguments, "'%s/digits' --image-size 28 --color-mode grayscale "
             "--epochs 5 --batch-size 16 --verbose 0 --save '%s/m.safetensors' --history "
             "'%s/h.json'", folder, folder, folder);
    must_run("image_folder", arguments);
    assert_non_null(strstr(output, "pictures of 0, 1, 2\n"));
    assert_true(printed("Validation accuracy:") >= 0.9);
    assert_int_equal(access(files_path(folder, "m.safetensors"), R_OK), 0);
    assert_int_equal(access(files_path(folder, "h.json"), R_OK), 0);

    /* In colour, read anew in each epoch, without validation: it starts and ends all the same. */
    snprintf(arguments, sizeof arguments, "'%s/digits' --no-cache --image-size 20 --epochs 1 "
             "--validation-split 0 --verbose 2", folder);
    must_run("image_folder", arguments);
    assert_null(strstr(output, "Validation"));
}

static void test_published_digits_are_learnt_by_heart(void **state)
{
    (void)state;
    char        arguments[ARGUMENTS];
    const char *pictures = files_real("digit-images");
    if (!pictures) skip();
    snprintf(arguments, sizeof arguments, "cd '%s' && for f in '%s'/digit*.png; do "
             "n=${f##*/digit}; mkdir -p real/${n%%%%_*} && ln -s \"$f\" real/${n%%%%_*}/ || "
             "exit 1; done", folder, pictures);
    assert_int_equal(system(arguments), 0);
    snprintf(arguments, sizeof arguments, "'%s/real' --image-size 28 --color-mode grayscale "
             "--validation-split 0 --epochs 30 --batch-size 5 --verbose 2", folder);
    must_run("image_folder", arguments);
    char *last = strstr(output, "Epoch 30/30");
    assert_non_null(last);
    memmove(output, last, strlen(last) + 1);
    assert_true(printed("accuracy:") >= 0.95);
}

static void test_pictures_that_cannot_be_read(void **state)
{
    (void)state;
    char arguments[ARGUMENTS];
    files_write(files_path(folder, "bad/a/x.png"), "hello", 5);
    snprintf(arguments, sizeof arguments, "'%s/bad' --epochs 1", folder);
    assert_int_equal(run("image_folder", arguments), 1);
    assert_non_null(strstr(output, "x.png"));
    assert_int_equal(run("image_folder", "/nowhere/at/all"), 1);
    assert_int_equal(run("image_folder", ""), 2);
    assert_int_equal(run("image_folder", "one two"), 2);
}

/* ---- Tables ---- */

/* price = 2 area + 30 rooms + by town, kind by price; number has nothing to do with it. */
static void write_table(const char *path, bool missing)
{
    static const char *const towns[] = { "Ulm", "\"Halle, Saale\"", "Bonn" };
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("number,area,rooms,town,price,kind\n", file);
    srand(1);
    for (int i = 0; i < 600; i++) {
        const int    rooms = 1 + rand() % 6, town = rand() % 3;
        const double area = 30.0 + rand() % 1700 * 0.1;
        const double price = 2.0 * area + 30 * rooms + 90 * town;
        fprintf(file, "%d,%.1f,%d,%s,%.2f,%s\n", rand() % 100, area, rooms, towns[town], price,
                price < 300.0 ? "cheap" : price < 450.0 ? "fair" : "dear");
    }
    if (missing) fputs("1,2,,Ulm,3,cheap\n", file);
    assert_int_equal(fclose(file), 0);
}

static void run_table(int status, const char *name, const char *flags)
{
    char arguments[ARGUMENTS];
    snprintf(arguments, sizeof arguments, "'%s/%s' --verbose 0 %s", folder, name, flags);
    const int got = run("table", arguments);
    if (got != status) fail_msg("table %s ends with %d:\n%s", arguments, got, output);
}

static void test_a_number_is_learnt(void **state)
{
    (void)state;
    write_table(files_path(folder, "t.csv"), false);
    run_table(0, "t.csv", "--target price");
    /* The deviation of the price is above 130: the rule must have been found, up to little. */
    assert_true(printed("always guessing the mean:") > 100.0);
    assert_true(printed("Test error:") < 20.0);
}

static void test_a_category_is_learnt(void **state)
{
    (void)state;
    run_table(0, "t.csv", "--target kind");
    assert_true(printed("Test accuracy:") >= 0.9);
    run_table(0, "t.csv", "--target rooms --task classification --epochs 1");
    printed("Test accuracy:");
}

static void test_tables_that_cannot_be_learnt(void **state)
{
    (void)state;
    write_table(files_path(folder, "missing.csv"), true);
    run_table(1, "missing.csv", "--target price");
    assert_non_null(strstr(output, "line 602, column rooms: the value is missing"));
    run_table(0, "missing.csv", "--target price --drop-missing --epochs 1");
    assert_non_null(strstr(output, "600 rows, 120 of them for the test, 1 left out"));
    run_table(1, "t.csv", "--target prize");
    assert_non_null(strstr(output, "did you mean \"price\""));
    run_table(1, "t.csv", "--target kind --task regression");
    assert_non_null(strstr(output, "holds words, expected numbers"));
    run_table(2, "t.csv", "");
    assert_non_null(strstr(output, "--target is missing"));
    run_table(1, "none.csv", "--target a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_digits_are_learnt),
        cmocka_unit_test(test_published_digits_are_learnt_by_heart),
        cmocka_unit_test(test_pictures_that_cannot_be_read),
        cmocka_unit_test(test_a_number_is_learnt),
        cmocka_unit_test(test_a_category_is_learnt),
        cmocka_unit_test(test_tables_that_cannot_be_learnt),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
