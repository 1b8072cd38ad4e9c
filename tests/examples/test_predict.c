/*
 * cornu predict on pictures of digits: as they are, inverted (dark on light paper), and three
 * times as large, for a model that was trained briefly.
 *
 *     test_predict                 trains for the test; 17 of 20 must be right, 16 changed
 *     test_predict MODEL 19 18     takes this model, with these numbers
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/images/image.h"
#include "../datasets/files.h"
#include "../skip.h"

enum { MOST = 100, SCALE = 3 };

static char        model[FILES_PATH];
static const char *given;                        /* a model from the command line */
static int         wanted = 17, wanted_changed = 16;
static char        names[MOST][64];              /* "digit7_test00000.png": the label is in it */
static int         count;

/* ---- Pictures ---- */

/* Writes every picture, inverted or `scale` times as large, under the same name. */
static void change_pictures(int scale, bool invert)
{
    for (int i = 0; i < count; i++) {
        CornuArray  image;
        const char *path = files_path(files_real("digit-images"), names[i]);
        assert_int_equal(cornu_image_load(path, 1, &image), CORNU_OK);
        const size_t   height = (size_t)image.type.shape.extent[0];
        const size_t   width = (size_t)image.type.shape.extent[1], by = (size_t)scale;
        const uint8_t *from = image.data;
        uint8_t       *to = malloc(height * width * by * by);
        assert_non_null(to);
        for (size_t y = 0; y < height * by; y++)
            for (size_t x = 0; x < width * by; x++) {
                const uint8_t value = from[y / by * width + x / by];
                to[y * width * by + x] = invert ? (uint8_t)(255 - value) : value;
            }
        files_write_png(files_path(folder, names[i]), (int)(width * by), (int)(height * by), 1, to);
        free(to), free(image.data);
    }
}

/* ---- Running cornu ---- */

static const char *build(void)
{
    const char *name = getenv("BUILD");
    return name ? name : "build";
}

static int begin(void **state)
{
    char command[3 * FILES_PATH];
    files_begin(state);
    snprintf(command, sizeof command, "%s/cornu", build());
    if (access(command, X_OK)) return 0;
    DIR *pictures = files_real("digit-images") ? opendir(files_real("digit-images")) : NULL;
    for (struct dirent *entry; pictures && (entry = readdir(pictures)) && count < MOST;)
        if (!strncmp(entry->d_name, "digit", 5) && strlen(entry->d_name) < sizeof names[0])
            strcpy(names[count++], entry->d_name);
    if (pictures) closedir(pictures);
    if (count == 0) return 0;
    snprintf(model, sizeof model, "%s", given ? given : files_path(folder, "m.safetensors"));
    snprintf(command, sizeof command, "%s/cornu train mnist_cnn --limit 4000 --epochs 3 "
             "--batch-size 32 --verbose 0 --save %s > /dev/null", build(), model);
    return given ? 0 : system(command);
}

/* How many pictures in `from` are named rightly; the form of each line is checked. */
static int run_predict(const char *from)
{
    static char command[MOST * (FILES_PATH + 64)], line[2 * FILES_PATH];
    int         length = snprintf(command, sizeof command, "%s/cornu predict %s", build(), model);
    int         right = 0, lines = 0;
    for (int i = 0; i < count; i++)
        length += snprintf(command + length, sizeof command - (size_t)length, " %s/%s", from,
                           names[i]);
    FILE *output = popen(command, "r");
    assert_non_null(output);
    while (fgets(line, sizeof line, output)) {
        char  *tab = strchr(line, '\t');
        int    digit, second, third;
        double p, p2, p3;
        assert_non_null(tab);
        assert_int_equal(sscanf(tab, "\t%d\t%lf\t%d:%lf\t%d:%lf\n", &digit, &p, &second, &p2,
                                &third, &p3), 6);
        assert_true(p >= p2 && p2 >= p3 && p3 >= 0.0 && p + p2 + p3 <= 1.0002);
        *tab = '\0';
        assert_string_equal(strrchr(line, '/') + 1, names[lines++]);
        right += digit == names[lines - 1][5] - '0';
    }
    assert_int_equal(pclose(output), 0);
    assert_int_equal(lines, count);
    return right;
}

static void expect_right(const char *what, const char *from, int least)
{
    const int right = run_predict(from);
    printf("# predict names %d of %d pictures %s\n", right, count, what);
    assert_true(right * 20 >= least * count);
}

static void as_they_are(void **state)
{
    (void)state;
    if (count == 0) SKIP_FOR(SKIP_DATA);
    expect_right("as they are", files_real("digit-images"), wanted);
}

static void inverted(void **state)
{
    (void)state;
    if (count == 0) SKIP_FOR(SKIP_DATA);
    change_pictures(1, true);
    expect_right("inverted", folder, wanted_changed);
}

static void enlarged(void **state)
{
    (void)state;
    if (count == 0) SKIP_FOR(SKIP_DATA);
    change_pictures(SCALE, false);
    expect_right("at three times the size", folder, wanted_changed);
}

static void enlarged_and_inverted(void **state)
{
    (void)state;
    if (count == 0) SKIP_FOR(SKIP_DATA);
    change_pictures(SCALE, true);
    expect_right("inverted at three times the size", folder, wanted_changed);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_they_are), cmocka_unit_test(inverted),
        cmocka_unit_test(enlarged), cmocka_unit_test(enlarged_and_inverted),
    };
    if (argc > 3) {
        given = argv[1];
        wanted = atoi(argv[2]);
        wanted_changed = atoi(argv[3]);
    }
    return cmocka_run_group_tests(tests, begin, files_end);
}
