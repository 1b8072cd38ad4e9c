/* cornu image_folder, predict and table on data of one's own, from training to new
 * files: drawn digits as pictures in class folders, the twenty published ones, and tables whose
 * columns follow a rule. */
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

#include "../../datasets/images/image_folder.h"
#include "../../datasets/pipeline/iterator.h"
#include "../../datasets/synthetic/synthetic.h"
#include "../../datasets/tables/table.h"
#include "../datasets/files.h"
#include "../skip.h"

enum { SIZE = 28, PIXELS = SIZE * SIZE, OUTPUT = 1 << 16, ARGUMENTS = 4 * FILES_PATH };

static char output[OUTPUT];

/* Runs a command of cornu; its exit status. What it printed is in output. Where it is not built the
 * test is skipped. */
static int run(const char *name, const char *arguments)
{
    char        path[FILES_PATH], command[ARGUMENTS + 3 * FILES_PATH];
    const char *build = getenv("BUILD"), *log = files_path(folder, "log");
    snprintf(path, sizeof path, "%s/cornu", build ? build : "build");
    if (access(path, X_OK)) SKIP_FOR("programs of examples/: make");
    snprintf(command, sizeof command, "%s %s %s >'%s' 2>&1", path, name, arguments, log);
    const int status = system(command);
    output[files_read(log, output, OUTPUT - 1)] = '\0';
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void must_run(const char *name, const char *arguments)
{
    if (run(name, arguments)) fail_msg("cornu %s %s:\n%s", name, arguments, output);
}

/* The number after a string that was printed. */
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

enum { MOST_PICTURES = 700 };

static char named[MOST_PICTURES * FILES_PATH];   /* files, as arguments */

/* Runs predict on the files of `named`; the part of which it names by the folder they are in. */
static double accuracy_of(const char *model)
{
    static char arguments[sizeof named + FILES_PATH];
    int         right = 0, lines = 0;
    snprintf(arguments, sizeof arguments, "'%s' %s", files_path(folder, model), named);
    must_run("predict", arguments);
    for (char *line = output, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        char path[FILES_PATH], class[32];
        assert_int_equal(sscanf(line, "%511[^\t]\t%31[^\t]\t", path, class), 2);
        *strrchr(path, '/') = '\0';
        right += !strcmp(strrchr(path, '/') + 1, class);
    }
    assert_true(lines > 0);
    return (double)right / lines;
}

/* The pictures that image_folder held out, in its own process. */
static void name_held_out(const char *directory)
{
    char *at = named;
    CornuDataset *held_out = cornu_image_folder(directory, .image_size = { 28 },
                                                .validation_split = 0.2,
                                                .subset = CORNU_SUBSET_VALIDATION);
    assert_non_null(held_out);
    for (int64_t i = 0; i < cornu_dataset_count(held_out) && i < MOST_PICTURES; i++)
        at += sprintf(at, " '%s'", cornu_image_folder_path(held_out, i));
    cornu_dataset_free(held_out);
}

static void name_new(int first, int last)
{
    static uint8_t pixels[200][PIXELS], labels[200];
    static const char *const names[] = { "nil", "uno, due", "zwei" };
    char                    path[FILES_PATH], *at = named;
    cornu_synthetic_digits(2, first, last - first, pixels[0], labels);
    for (int i = first; i < last; i++) {
        if (labels[i - first] >= 3) continue;
        snprintf(path, sizeof path, "new/%s/%d.png", names[labels[i - first]], i);
        files_write_png(files_path(folder, path), SIZE, SIZE, 1, pixels[i - first]);
        at += sprintf(at, " '%s'", files_path(folder, path));
    }
}

/* Classes come by their names, from a model in either format; what was said of the held-out
 * pictures in training is said of them as files, and new ones are named as well. */
static void test_pictures_are_named_by_the_trained_model(void **state)
{
    (void)state;
    static const char *const formats[] = { "safetensors", "keras" };
    char arguments[ARGUMENTS], model[32];
    snprintf(arguments, sizeof arguments, "cd '%s/digits' && mv 0 nil && mv 1 'uno, due' && "
             "mv 2 zwei", folder);
    assert_int_equal(system(arguments), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(model, sizeof model, "named.%s", formats[i]);
        snprintf(arguments, sizeof arguments, "'%s/digits' --image-size 28 --epochs 3 "
                 "--color-mode %s --batch-size 16 --verbose 0 --save '%s/%s'", folder,
                 i ? "rgb" : "grayscale", folder, model);
        if (run("image_folder", arguments)) {
            assert_non_null(strstr(output, "libhdf5"));
            continue;
        }
        const double accuracy = printed("Validation accuracy:");
        name_held_out(files_path(folder, "digits"));
        assert_float_equal(accuracy_of(model), accuracy, 0.00005);
        name_new(0, 200);
        assert_true(accuracy_of(model) >= 0.9);
        assert_non_null(strstr(output, "\tuno, due\t"));
    }
}

static void test_published_digits_are_learnt_by_heart(void **state)
{
    (void)state;
    char        arguments[ARGUMENTS];
    const char *pictures = files_real("digit-images");
    if (!pictures) SKIP_FOR(SKIP_DATA);
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
    assert_non_null(strstr(output, "/nowhere/at/all: the folder cannot be read: No such file or "
                                   "directory\n"));
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
    assert_true(printed("always predicting the mean:") > 100.0);
    assert_true(printed("Test RMSE:") < 20.0);
}

static void test_a_category_is_learnt(void **state)
{
    (void)state;
    run_table(0, "t.csv", "--target kind");
    assert_true(printed("Test accuracy:") >= 0.9);
    run_table(0, "t.csv", "--target rooms --task classification --epochs 1");
    printed("Test accuracy:");
}

/* The error or accuracy that --predict finds on a file is the one that training found on the same
 * rows: those it held out, written to a file with other columns in another order. */
static void expect_same_on_held_out(const char *flags, const char *target, const char *trained,
                                    const char *predicted)
{
    enum { ROWS = 600, HELD_OUT = 120, COLUMNS = 6 };
    static const char *const columns[] = { "kind", "note", "town", "price", "rooms", "area",
                                           "number" };
    static char lines[ROWS][100];
    char           text[200];
    FILE *file = fopen(files_path(folder, "t.csv"), "r"), *to;
    for (int i = -1; i < ROWS; i++)
        assert_non_null(fgets(i < 0 ? text : lines[i], i < 0 ? sizeof text : sizeof *lines, file));
    fclose(file);
    int32_t *rows = malloc(ROWS * sizeof *rows);
    for (int i = 0; i < ROWS; i++) rows[i] = i;
    CornuArray    array = cornu_array(rows, CORNU_I32, ROWS, 1);
    CornuDataset *data = cornu_dataset_shuffle(cornu_dataset_own_arrays(&array, 1), 0);
    data = cornu_dataset_skip(data, ROWS - HELD_OUT);
    CornuIterator    *iterator = cornu_iterator_begin(data, 0);
    const CornuBatch *row = NULL;
    assert_non_null(to = fopen(files_path(folder, "held-out.csv"), "w"));
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
        fprintf(to, "%s%s", c ? "," : "", columns[c]);
    while (!cornu_iterator_next(iterator, &row) && row) {
        char number[20], area[20], rooms[20], town[40], price[20], kind[20];
        const char *line = lines[(int)cornu_array_get(row->arrays[0], 0)];
        const char *form = strchr(line, '"') ? "%[^,],%[^,],%[^,],\"%[^\"]\",%[^,],%s"
                                             : "%[^,],%[^,],%[^,],%[^,],%[^,],%s";
        assert_int_equal(sscanf(line, form, number, area, rooms, town, price, kind), COLUMNS);
        fprintf(to, "\n%s,x,\"%s\",%s,%s,%s,%s", kind, town, price, rooms, area, number);
    }
    fclose(to);
    cornu_iterator_free(iterator);
    cornu_dataset_free(data);

    char arguments[ARGUMENTS];
    snprintf(arguments, sizeof arguments, "%s --epochs 20 --save '%s/t.safetensors'", flags,
             folder);
    run_table(0, "t.csv", arguments);
    const double expected = printed(trained);
    snprintf(arguments, sizeof arguments, "--load '%s/t.safetensors' --predict", folder);
    run_table(0, "held-out.csv", arguments);
    assert_float_equal(printed(predicted), expected, 2e-4 * expected);
    snprintf(text, sizeof text, "on 120 rows that have %s", target);
    assert_non_null(strstr(output, text));
    assert_null(strstr(output, "not seen in training"));
}

static void test_what_training_found_is_found_again(void **state)
{
    (void)state;
    expect_same_on_held_out("--target price", "price", "Test RMSE:", "RMSE:");
    expect_same_on_held_out("--target kind", "kind", "Test accuracy:", "Accuracy:");
    expect_same_on_held_out("--target rooms --task classification", "rooms", "Test accuracy:",
                            "Accuracy:");
}

/* Without the target, with a word that is new, a missing value, and numbers that follow the
 * rule. */
static void test_new_rows_are_predicted(void **state)
{
    (void)state;
    static const char text[] = "town;area;kind;rooms;number\n"
                               "Bonn;80;fair;4;9\nUlm;;cheap;1;2\nK\xC3\xB6ln;80;cheap;4;9\n";
    char   arguments[ARGUMENTS];
    double price[2];
    snprintf(arguments, sizeof arguments, "--target price --save '%s/p.safetensors'", folder);
    run_table(0, "t.csv", arguments);
    files_write(files_path(folder, "new.csv"), text, sizeof text - 1);
    snprintf(arguments, sizeof arguments, "--load '%s/p.safetensors' --delimiter ';' --predict",
             folder);
    run_table(1, "new.csv", arguments);
    assert_non_null(strstr(output, "line 3, column area: the value is missing"));
    strcat(arguments, " --drop-missing");
    run_table(0, "new.csv", arguments);
    assert_int_equal(sscanf(output, "line,price\n2,%lf\n4,%lf\n", &price[0], &price[1]), 2);
    assert_float_equal(price[0], 2 * 80 + 30 * 4 + 90 * 2, 25.0);
    assert_non_null(strstr(output, "column town: 1 of 2 rows have a value not seen in training, "
                                   "such as \"K\xC3\xB6ln\""));
    assert_non_null(strstr(output, "1 row is skipped for a missing value"));
    assert_null(strstr(output, "RMSE"));

    files_write(files_path(folder, "less.csv"), "town,area\nBonn,80\n", 18);
    snprintf(arguments, sizeof arguments, "--load '%s/p.safetensors' --predict", folder);
    run_table(1, "less.csv", arguments);
    assert_non_null(strstr(output, "has no column \"number\", which the model was trained with"));
    snprintf(arguments, sizeof arguments, "--load '%s/m.safetensors' --predict", folder);
    run_table(1, "less.csv", arguments);
    assert_non_null(strstr(output, "does not say which columns it takes"));
    run_table(2, "less.csv", "--predict");
    assert_non_null(strstr(output, "--predict needs a model, --load FILE"));
    run_table(2, "less.csv", "--predict --load x --target price");
    run_table(2, "less.csv", "--predict --load x --save y");
}

/* Real Keras, where the interpreter that CORNU_PYTHON names has it, predicts the same of a .keras
 * file, given what its notes say. */
static void test_keras_predicts_the_same(void **state)
{
    (void)state;
    static const char *const targets[] = { "price", "kind" };
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char        command[ARGUMENTS];
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not u.find_spec(\"keras\"))' 2>/dev/null", python);
    if (system(command)) SKIP_FOR(SKIP_KERAS);
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "--target %s --epochs 2 --save '%s/k.keras'", targets[i],
                 folder);
        run_table(0, "t.csv", command);
        snprintf(command, sizeof command, "%s/cornu table '%s/t.csv' --load '%s/k.keras' --predict "
                 ">'%s/o.csv' 2>/dev/null", getenv("BUILD") ? getenv("BUILD") : "build", folder,
                 folder, folder);
        assert_int_equal(system(command), 0);
        snprintf(command, sizeof command, "%s tests/examples/check_table.py '%s/k.keras' "
                 "'%s/t.csv' '%s/o.csv' >/dev/null", python, folder, folder, folder);
        assert_int_equal(system(command), 0);
    }
}

static void test_tables_that_cannot_be_learnt(void **state)
{
    (void)state;
    write_table(files_path(folder, "missing.csv"), true);
    run_table(1, "missing.csv", "--target price");
    assert_non_null(strstr(output, "line 602, column rooms: the value is missing; "
                                   "--drop-missing drops such rows\n"));
    run_table(0, "missing.csv", "--target price --drop-missing --epochs 1");
    assert_non_null(strstr(output, "600 rows, 120 of them for testing; 1 skipped"));
    run_table(1, "t.csv", "--target prize");
    assert_non_null(strstr(output, "did you mean \"price\""));
    run_table(1, "t.csv", "--target kind --task regression");
    assert_non_null(strstr(output, "holds words, expected numbers"));
    run_table(2, "t.csv", "");
    assert_non_null(strstr(output, "--target is missing"));
    run_table(1, "none.csv", "--target a");
    files_write(files_path(folder, "latin.csv"), "a,b\nM\xF6we,1\nx,2\nx,4\n", 19);
    run_table(0, "latin.csv", "--target b --test-split 0.4 --epochs 1");
    run_table(1, "latin.csv", "--target b --test-split 0.4 --epochs 1 --save never.safetensors");
    assert_non_null(strstr(output, "latin.csv: holds words that are not UTF-8, expected UTF-8 for "
                                   "--save"));
    files_write(files_path(folder, "small.csv"), "a,b,c\nx,1e-19,1\ny,2e-19,2\nx,0,3\n", 32);
    run_table(1, "small.csv", "--target c --test-split 0.4");
    assert_non_null(strstr(output, "column b has a standard deviation of"));
    run_table(1, "small.csv", "--target b --test-split 0.4");
    assert_non_null(strstr(output, "column b has a standard deviation of"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_digits_are_learnt),
        cmocka_unit_test(test_pictures_are_named_by_the_trained_model),
        cmocka_unit_test(test_published_digits_are_learnt_by_heart),
        cmocka_unit_test(test_pictures_that_cannot_be_read),
        cmocka_unit_test(test_a_number_is_learnt),
        cmocka_unit_test(test_a_category_is_learnt),
        cmocka_unit_test(test_what_training_found_is_found_again),
        cmocka_unit_test(test_new_rows_are_predicted),
        cmocka_unit_test(test_keras_predicts_the_same),
        cmocka_unit_test(test_tables_that_cannot_be_learnt),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
