/* Summaries of described models; every byte must be what Keras printed
 * (tests/golden/summary, made by make_summary.py). */
#include "../../../nn/terminal/summary_table_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N CORNU_NONE
#define ROW(name, class, parameters, ...) \
    { name, class, true, { sizeof((int64_t[]){ __VA_ARGS__ }) / 8, { __VA_ARGS__ } }, \
      parameters, parameters > 0, false, NULL, 0, NULL, 0 }
#define UNBUILT(name, class) { name, class, false, { 0, { 0 } }, 0, false, false, NULL, 0, NULL, 0 }

static CornuSummaryRow mnist_cnn[] = {
    ROW("conv2d", "Conv2D", 320, N, 26, 26, 32),
    ROW("max_pooling2d", "MaxPooling2D", 0, N, 13, 13, 32),
    ROW("conv2d_1", "Conv2D", 18496, N, 11, 11, 64),
    ROW("max_pooling2d_1", "MaxPooling2D", 0, N, 5, 5, 64),
    ROW("conv2d_2", "Conv2D", 36928, N, 3, 3, 64),
    ROW("flatten", "Flatten", 0, N, 576),
    ROW("dense", "Dense", 36928, N, 64),
    ROW("dropout", "Dropout", 0, N, 64),
    ROW("dense_1", "Dense", 650, N, 10),
};

static CornuSummaryRow mnist_cnn_bn[] = {
    ROW("reshape", "Reshape", 0, N, 28, 28, 1),
    ROW("conv2d", "Conv2D", 108, N, 28, 28, 12),
    ROW("batch_normalization", "BatchNormalization", 36, N, 28, 28, 12),
    ROW("activation", "Activation", 0, N, 28, 28, 12),
    ROW("conv2d_1", "Conv2D", 10368, N, 14, 14, 24),
    ROW("batch_normalization_1", "BatchNormalization", 72, N, 14, 14, 24),
    ROW("activation_1", "Activation", 0, N, 14, 14, 24),
    ROW("conv2d_2", "Conv2D", 27648, N, 7, 7, 32),
    ROW("batch_normalization_2", "BatchNormalization", 96, N, 7, 7, 32),
    ROW("activation_2", "Activation", 0, N, 7, 7, 32),
    ROW("flatten", "Flatten", 0, N, 1568),
    ROW("dense", "Dense", 313600, N, 200),
    ROW("batch_normalization_3", "BatchNormalization", 600, N, 200),
    ROW("activation_3", "Activation", 0, N, 200),
    ROW("dropout", "Dropout", 0, N, 200),
    ROW("dense_1", "Dense", 2010, N, 10),
};

#define CONVNET(i, j, k, l, rest, dense)                          \
    { ROW("conv2d" i, "Conv2D", 320, N, 26, 26, 32),              \
      ROW("max_pooling2d" k, "MaxPooling2D", 0, N, 13, 13, 32),   \
      ROW("conv2d" j, "Conv2D", 18496, N, 11, 11, 64),            \
      ROW("max_pooling2d" l, "MaxPooling2D", 0, N, 5, 5, 64),     \
      ROW("flatten" rest, "Flatten", 0, N, 1600),                 \
      ROW("dropout" rest, "Dropout", 0, N, 1600),                 \
      ROW("dense" dense, "Dense", 16010, N, 10) }
static CornuSummaryRow mnist_convnet[] = CONVNET("", "_1", "", "_1", "", "");
static CornuSummaryRow second_convnet[] = CONVNET("_3", "_4", "_2", "_3", "_1", "_2");
static CornuSummaryRow third_convnet[] = CONVNET("_5", "_6", "_4", "_5", "_2", "_3");

static CornuSummaryRow unbuilt[] = {
    UNBUILT("conv2d", "Conv2D"), UNBUILT("batch_normalization", "BatchNormalization"),
    UNBUILT("flatten", "Flatten"), UNBUILT("dense", "Dense"),
};

static CornuSummaryRow long_names[] = {
    ROW("a_name_that_breaks_before_type", "Dense", 16781312, N, 4096),
    ROW("a_name_as_long_as_fits_31_cells", "Dense", 16781312, N, 4096),
    ROW("a_name_longer_than_the_column_itself_is_cut_short_by_rich", "Dense", 8390656, N, 2048),
    ROW("normalise", "BatchNormalization", 8192, N, 2048),
    ROW("name with blanks in it that goes on over several lines", "Dense", 20490, N, 10),
    ROW("[bold]markup", "Activation", 0, N, 10),
};

static CornuSummaryRow long_model_name[] = { ROW("dense", "Dense", 9, N, 3) };
static CornuSummaryRow no_parameters[] = {
    ROW("reshape", "Reshape", 0, N, 1, 1, 1, 1, 3), ROW("flatten", "Flatten", 0, N, 3),
};
static CornuSummaryRow wide_shape[] = {
    ROW("activation", "Activation", 0, N, 1234, 1234, 1234),
    ROW("r", "ReLU", 0, N, 1234, 1234, 1234),
};

#define TEXT60 "a_model_whose_own_name_is_longer_than_any_terminal_is_wide_"
#define MODEL(name, rows, trainable, non_trainable, ...)                                       \
    { name, rows, sizeof rows / sizeof *rows, { trainable, 4 * (int64_t)(trainable) },         \
      { non_trainable, 4 * (int64_t)(non_trainable) }, __VA_ARGS__, false, 0 }
#define TRAINED(count) { count, 4 * (count) }, true
#define UNTRAINED { 0, 0 }, false

static const struct {
    const char  *file;           /* NAME, or NAME: of NAME.wCOLUMNS.txt */
    CornuSummary model;
    bool         show_trainable;
    int          line_length;
    const char  *frozen;         /* indices of frozen layers, as digits */
} cases[] = {
    { "mnist_cnn", MODEL("mnist_cnn", mnist_cnn, 93322, 0, UNTRAINED), 0, 0, "" },
    { "mnist_cnn.show_trainable", MODEL("mnist_cnn", mnist_cnn, 93322, 0, UNTRAINED), 1, 0, "" },
    { "mnist_cnn.trained", MODEL("mnist_cnn", mnist_cnn, 93322, 0, TRAINED(186646)), 0, 0, "" },
    { "mnist_cnn_bn", MODEL("mnist_cnn_bn", mnist_cnn_bn, 354002, 536, UNTRAINED), 0, 0, "" },
    { "mnist_cnn_bn.show_trainable",
      MODEL("mnist_cnn_bn", mnist_cnn_bn, 354002, 536, UNTRAINED), 1, 0, "" },
    { "mnist_cnn_bn.trained",
      MODEL("mnist_cnn_bn", mnist_cnn_bn, 354002, 536, TRAINED(708006)), 0, 0, "" },
    { "mnist_convnet", MODEL("mnist_convnet", mnist_convnet, 34826, 0, UNTRAINED), 0, 0, "" },
    { "mnist_convnet.show_trainable",
      MODEL("mnist_convnet", mnist_convnet, 34826, 0, UNTRAINED), 1, 0, "" },
    { "mnist_convnet.trained",
      MODEL("mnist_convnet", mnist_convnet, 34826, 0, TRAINED(69654)), 0, 0, "" },
    { "trained_sgd", MODEL("mnist_convnet", mnist_convnet, 34826, 0, TRAINED(2)), 0, 0, "" },
    { "trained_rmsprop",
      MODEL("mnist_convnet", mnist_convnet, 34826, 0, TRAINED(34828)), 0, 0, "" },
    { "frozen", MODEL("mnist_cnn", mnist_cnn, 74506, 18816, UNTRAINED), 1, 0, "02" },
    { "frozen_plain", MODEL("mnist_cnn", mnist_cnn, 74506, 18816, UNTRAINED), 0, 0, "02" },
    { "line_length_60", MODEL("mnist_convnet", second_convnet, 34826, 0, UNTRAINED), 0, 60, "" },
    { "line_length_100", MODEL("mnist_convnet", third_convnet, 34826, 0, UNTRAINED), 0, 100, "" },
    { "unbuilt", MODEL("unbuilt", unbuilt, 0, 0, UNTRAINED), 0, 0, "" },
    { "empty", { "empty", NULL, 0, { 0, 0 }, { 0, 0 }, UNTRAINED, false, 0 }, 0, 0, "" },
    { "long_names", MODEL("long_names", long_names, 41977866, 4096, UNTRAINED), 0, 0, "" },
    { "long_model_name",
      MODEL(TEXT60 TEXT60, long_model_name, 9, 0, UNTRAINED), 0, 0, "" },
    { "no_parameters", MODEL("no_parameters", no_parameters, 0, 0, UNTRAINED), 0, 0, "" },
    { "wide_shape", MODEL("wide_shape", wide_shape, 0, 0, UNTRAINED), 0, 0, "" },
};

static char *read_golden(const char *name, int columns, const char *suffix)
{
    char path[200];
    snprintf(path, sizeof path, "tests/golden/summary/%s.w%d.%s", name, columns, suffix);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = calloc(1, 1 << 16);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return text;
}

static char *print(int i, CornuTerminal terminal)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    for (const char *digit = cases[i].frozen; *digit; digit++)
        cases[i].model.rows[*digit - '0'].frozen = true;
    assert_int_equal(cornu__summary_print(&cases[i].model, cases[i].line_length,
                                          cases[i].show_trainable, terminal, file), CORNU_OK);
    for (const char *digit = cases[i].frozen; *digit; digit++)
        cases[i].model.rows[*digit - '0'].frozen = false;
    fclose(file);
    return text;
}

/* All golden files of the case, at least one. */
static void test_golden(void **state)
{
    static const struct { const char *suffix; CornuStyling styling; bool utf8; } kinds[] = {
        { "txt", CORNU_PLAIN, true }, { "ansi", CORNU_256_COLOURS, true },
        { "ascii", CORNU_PLAIN, false },
    };
    static const int columns[] = { 40, 60, 80, 100, 120 };
    const int i = (int)(intptr_t)*state;
    int compared = 0;
    for (int c = 0; c < 5; c++) {
        for (int k = 0; k < 3; k++) {
            char *expected = read_golden(cases[i].file, columns[c], kinds[k].suffix);
            if (!expected) continue;
            char *text = print(i, (CornuTerminal){ .columns = columns[c], .utf8 = kinds[k].utf8,
                                                   .styling = kinds[k].styling });
            if (strcmp(text, expected))
                fail_msg("%s.w%d.%s\nprinted\n%s\nexpected\n%s", cases[i].file, columns[c],
                         kinds[k].suffix, text, expected);
            free(text);
            free(expected);
            compared++;
        }
    }
    assert_true(compared > 0);
}

static void test_sizes(void **state)
{
    (void)state;
    FILE *file = fopen("tests/golden/summary/memory_sizes.txt", "r");
    assert_non_null(file);
    char line[200];
    int lines = 0;
    while (fgets(line, sizeof line, file)) {
        CornuText text;
        char *tab = strchr(line, '\t');
        tab[strcspn(tab, "\n")] = '\0';
        assert_string_equal(cornu__print_size(&text, strtod(line, NULL)), tab + 1);
        lines++;
    }
    assert_true(lines > 10);
    fclose(file);
}

/* NO_COLOR leaves bold; other terminals get the 16 colours rich chooses. */
static void test_styling(void **state)
{
    (void)state;
    char *text = print(18, (CornuTerminal){ .columns = 80, .styling = CORNU_16_COLOURS });
    assert_non_null(strstr(text, "| dense (\033[94mDense\033[0m)  "));
    assert_non_null(strstr(text, "(\033[96mNone\033[0m, \033[32m3\033[0m)"));
    free(text);
    text = print(18, (CornuTerminal){ .columns = 80, .styling = CORNU_BOLD });
    assert_non_null(strstr(text, "| dense (Dense)  "));
    assert_non_null(strstr(text, "\033[1m Total params: \033[0m9 (36.00 B)\n"));
    free(text);
}

static void test_narrow(void **state)
{
    (void)state;
    CornuSummary model = { .name = "m" };
    CornuStatus status = cornu__summary_print(&model, 0, true, (CornuTerminal){ .columns = 30 },
                                              stdout);
    assert_int_equal(status, CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "leaves"));
}

int main(void)
{
    enum { CASES = sizeof cases / sizeof *cases };
    struct CMUnitTest tests[CASES + 3] = { cmocka_unit_test(test_sizes),
                                           cmocka_unit_test(test_styling),
                                           cmocka_unit_test(test_narrow) };
    for (int i = 0; i < CASES; i++)
        tests[i + 3] = (struct CMUnitTest){ cases[i].file, test_golden, NULL, NULL,
                                            (void *)(intptr_t)i };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
