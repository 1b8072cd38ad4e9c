/* The LC_NUMERIC of a program does not change numbers in files, names or messages. */
#include <dirent.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/tpu/topology.h"
#include "../../../nn/pictures/axis_internal.h"
#include "../../../nn/cornu.h"
#include "../../comma.h"
#include "../../datasets/files.h"
#include "../../skip.h"

static void fail_with(FILE *to, CornuStatus status)
{
    fprintf(to, "%s: %s\n", cornu_status_name(status), cornu_error_message());
}

/* Names and contents of the files of a folder, sorted by name. */
static void print_folder(FILE *to, const char *from)
{
    static unsigned char bytes[1 << 16];
    struct dirent      **entries;
    const int            count = scandir(from, &entries, NULL, alphasort);
    assert_true(count > 2);
    for (int i = 0; i < count; i++) {
        const char *path = files_path(from, entries[i]->d_name);
        fprintf(to, "%s\n", entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            fwrite(bytes, 1, files_read(path, bytes, sizeof bytes), to);
        free(entries[i]);
    }
    free(entries);
}

/* A training that writes logs, and checkpoints named after them. */
static void train(FILE *to, const char *work)
{
    static const float   x[8] = { 0.5f, 1.5f, 2.5f, -0.5f, 3.25f, 0, 1, 2 };
    static const int32_t y[4] = { 0, 1, 0, 1 };
    char csv[FILES_PATH], checkpoints[FILES_PATH];
    snprintf(csv, sizeof csv, "%s", files_path(work, "log.csv"));
    snprintf(checkpoints, sizeof checkpoints, "%s/{epoch:02d}-{loss:.4f}-{loss}.safetensors", work);
    cornu_set_random_seed(1);
    CornuModel *model = cornu_sequential(.name = "numbers", .input_shape = { 2 });
    cornu_model_add(model, cornu_dense(300, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    CornuDevice *device = cornu_device_open("cpu", .threads = 1);
    assert_int_equal(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.125),
                                   .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                                   .device = device), CORNU_OK);
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array((void *)x, CORNU_F32, 4, 2),
        .y = cornu_array((void *)y, CORNU_I32, 4), .epochs = 2, .verbose = CORNU_SILENT,
        .callbacks = { cornu_csv_logger(csv), cornu_model_checkpoint(checkpoints) });
    assert_non_null(history);
    cornu_summary(model, .file = to);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    print_folder(to, work);
}

static void keep_log(void *context, CornuLogLevel level, const char *message)
{
    if (level <= CORNU_LOG_WARNING) fprintf(context, "logged: %s\n", message);
}

static void print_reports(FILE *to)
{
    static int64_t counts[4] = { 3, 1, 2, 5 };
    char           tick[32];
    cornu_report_print(cornu_array(counts, CORNU_I64, 2, 2), NULL, 4, to);
    cornu_tpu_profiles_print(to);
    fprintf(to, "%s\n", cornu__axis_tick_text(tick, 0.125));

    const CornuLog  logs[] = { { "loss", 0.375 } };
    const CornuLogs all = { 1, logs };
    CornuBarStyle   style = cornu_bar_style((CornuTerminal){ .columns = 80 });
    CornuBar       *bar = cornu_bar_create(&style, to, 0.0);
    cornu_bar_restart(bar, 4, 0.0);
    assert_int_equal(cornu_bar_update(bar, 4, &all, true, 0.0125), CORNU_OK);
    cornu_bar_free(bar);

    CornuProgram   *program = cornu_program_create();
    CornuValue      value;
    CornuAttributes constant = { .constant = { CORNU_F32, 0.1 } };
    cornu_program_record(program, CORNU_OP_CONSTANT, &constant, NULL, 0, &value);
    cornu_program_print(program, to);
    cornu_program_free(program);
}

static void print_refusals(FILE *to)
{
    cornu_layer_free(cornu_dropout(1.5));
    fail_with(to, cornu_error_take());
    cornu_set_log(CORNU_LOG_WARNING, keep_log, to);
    cornu_optimizer_free(cornu_sgd(.momentum = 2.5));
    fail_with(to, cornu_error_take());
    cornu_set_log(CORNU_LOG_NOTHING, NULL, NULL);
}

static char *everything(size_t *size)
{
    char  *text = NULL, work[FILES_PATH];
    FILE  *to = open_memstream(&text, size);
    assert_non_null(to);
    files_begin(NULL);
    snprintf(work, sizeof work, "%s", folder);
    print_refusals(to);
    print_reports(to);
    train(to, work);
    files_end(NULL);
    fclose(to);
    return text;
}

static void a_comma_changes_nothing(void **state)
{
    (void)state;
    size_t sizes[2];
    char   locales[FILES_PATH];
    char  *plain = everything(&sizes[0]);
    assert_non_null(strstr(plain, "rate is 1.5"));
    files_begin(NULL);
    snprintf(locales, sizeof locales, "%s", folder);
    const bool there = comma_begin(locales);
    files_end(NULL);
    if (!there) {
        free(plain);
        SKIP_FOR(SKIP_LOCALE);
    }
    char *comma = everything(&sizes[1]);
    assert_string_equal(localeconv()->decimal_point, ",");
    setlocale(LC_NUMERIC, "C");
    for (size_t i = 0; i < sizes[0] && i < sizes[1]; i++)
        if (plain[i] != comma[i])
            fail_msg("in place of \"%.60s\": \"%.60s\"", plain + i, comma + i);
    assert_int_equal(sizes[0], sizes[1]);
    free(plain);
    free(comma);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_comma_changes_nothing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
