/* Allocations sized by files and settings respect the limit of device/memory.h, with a message that
 * names it; and none is larger than needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/mnist/idx.h"
#include "../../../datasets/images/image.h"
#include "../../../datasets/tables/table.h"
#include "../../../nn/cornu.h"
#include "../../datasets/files.h"
#include "../../expect.h"

enum { MIB = 1 << 20 };

/* Opened before the limit is set, as it has a reserve of its own. */
static CornuDevice *device;

static int begin(void **state)
{
    device = cornu_device_open("cpu", .threads = 2);
    return !device || files_begin(state);
}

static int end(void **state)
{
    cornu_device_close(device);
    return files_end(state);
}

static int forget_limit(void **state)
{
    (void)state;
    cornu_set_memory_limit(0);
    return 0;
}

static void expect_too_much(CornuStatus status)
{
    expect_error(status, CORNU_ERR_MEMORY, ", the limit is ");
    assert_non_null(strstr(cornu_error_message(), "CORNU_MAX_MEMORY raises it"));
}

/* ---- The limit ---- */

/* In a separate process, as the limit is read once. */
static size_t limit_with(const char *value)
{
    int    pipes[2], status;
    size_t limit = 99;
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    if (child == 0) {
        setenv("CORNU_MAX_MEMORY", value, 1);
        limit = cornu_memory_limit();
        _exit(write(pipes[1], &limit, sizeof limit) != sizeof limit);
    }
    assert_int_equal(read(pipes[0], &limit, sizeof limit), sizeof limit);
    close(pipes[0]);
    close(pipes[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return limit;
}

static void the_environment_sets_it(void **state)
{
    (void)state;
    assert_int_equal(limit_with("1000"), 1000);
    assert_int_equal(limit_with("3K"), 3 << 10);
    assert_int_equal(limit_with("512M"), 512 * (size_t)MIB);
    assert_int_equal(limit_with("4G"), (size_t)4 << 30);
    static const char *const none[] = { "", "0", "-5", "1.5G", "2GB", "lots", "99999999999T",
                                        "99999999999999999999999" };
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_int_equal(limit_with(none[i]), 0);
}

static void what_is_no_limit_is_refused(void **state)
{
    int status;
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        setenv("CORNU_MAX_MEMORY", "lots", 1);
        const bool refused = !cornu_device_open("cpu") &&
                             strstr(cornu_error_message(), "CORNU_MAX_MEMORY is \"lots\"");
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void a_program_sets_it(void **state)
{
    (void)state;
    const size_t usual = cornu_memory_limit();
    assert_true(usual >= 64 * (size_t)MIB);
    cornu_set_memory_limit(32 * MIB);
    assert_int_equal(cornu_memory_limit(), 32 * MIB);
    cornu_set_memory_limit(0);
    assert_int_equal(cornu_memory_limit(), usual);
}

/* ---- Models ---- */

/* Loads the small file of a model with this layer and predicts one row. */
static CornuStatus predict_with(CornuLayer *layer, CornuShape input)
{
    const char *path = files_path(folder, "small.safetensors");
    struct stat info;
    CornuModel *model = cornu_sequential();
    cornu_model_add(model, layer);
    assert_int_equal(cornu_model_build(model, input), CORNU_OK);
    assert_int_equal(cornu_model_save(model, path), CORNU_OK);
    cornu_model_free(model);
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size < 2048);

    model = cornu_model_load(path);
    assert_non_null(model);
    assert_int_equal(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .device = device),
                     CORNU_OK);
    static float x[64];
    const CornuType one = { .dtype = CORNU_F32, .shape = { input.rank + 1, {
        1, input.extent[0], input.extent[1], input.extent[2] } } };
    CornuType out = { .dtype = CORNU_F32, .shape = cornu_model_output_shape(model) };
    out.shape.extent[0] = 1;
    float *y = malloc(cornu_type_bytes(out));
    const CornuStatus status = cornu_predict_on_batch(model, cornu_array_from(x, one),
                                                      cornu_array_from(y, out));
    free(y);
    cornu_model_free(model);
    return status;
}

static void small_models_of_large_values_are_refused(void **state)
{
    (void)state;
    cornu_set_memory_limit(32 * MIB);
    expect_too_much(predict_with(cornu_repeat_vector(20000000), cornu_shape(4)));
    expect_too_much(predict_with(cornu_up_sampling2d(4000), cornu_shape(2, 2, 1)));
    expect_too_much(predict_with(cornu_zero_padding2d(4000), cornu_shape(2, 2, 1)));
    assert_int_equal(predict_with(cornu_repeat_vector(2000), cornu_shape(4)), CORNU_OK);
}

static void large_weights_are_refused(void **state)
{
    (void)state;
    cornu_set_memory_limit(32 * MIB);
    CornuLayer *layers[] = { cornu_dense(4000000), cornu_conv2d(4000000, 3),
                             cornu_embedding(10000000, 4) };
    const CornuShape inputs[] = { cornu_shape(4), cornu_shape(3, 3, 1), cornu_shape(4) };
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        CornuModel *model = cornu_sequential();
        cornu_model_add(model, layers[i]);
        assert_int_equal(cornu_model_build(model, inputs[i]), CORNU_OK);
        expect_too_much(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR,
                                      .device = device));
        cornu_model_free(model);
    }
}

static CornuModel *wide(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, cornu_dense(1000, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dense(1));
    assert_int_equal(cornu_compile(model, .optimizer = cornu_sgd(.learning_rate = 0.01),
                                   .loss = CORNU_MEAN_SQUARED_ERROR, .device = device), CORNU_OK);
    return model;
}

/* 20,000 rows of 1000 values are 80 MB. */
static void batches_are_no_larger_than_the_data(void **state)
{
    (void)state;
    static float x[64][4], y[64][1];
    double       losses[2];
    for (int i = 0; i < 256; i++) x[i / 4][i % 4] = (float)(i % 17) / 17.0f - 0.5f;
    for (int i = 0; i < 64; i++) y[i][0] = x[i][0] - x[i][2];
    cornu_set_memory_limit(32 * MIB);
    for (int k = 0; k < 2; k++) {
        CornuModel   *model = wide();
        CornuHistory *history = cornu_fit(model, .x = cornu_array(x, CORNU_F32, 64, 4),
                                          .y = cornu_array(y, CORNU_F32, 64, 1), .epochs = 3,
                                          .batch_size = k ? 20000 : 64, .validation_split = 0.25,
                                          .verbose = CORNU_SILENT);
        if (!history) fail_msg("%s", cornu_error_message());
        losses[k] = cornu_history_get(history, "val_loss", 2);
        cornu_history_free(history);
        assert_int_equal(cornu_evaluate(model, .x = cornu_array(x, CORNU_F32, 64, 4),
                                        .y = cornu_array(y, CORNU_F32, 64, 1), .batch_size = 20000,
                                        .verbose = CORNU_SILENT), CORNU_OK);
        cornu_model_free(model);
    }
    assert_true(losses[0] == losses[1]);
}

/* ---- Files ---- */

static void tables_of_names_are_refused(void **state)
{
    (void)state;
    const char *path = files_path(folder, "names.csv");
    FILE       *file = fopen(path, "w");
    fprintf(file, "size,name\n");
    for (int i = 0; i < 4000; i++) fprintf(file, "%d,n%d\n", i, i);
    fclose(file);
    CornuTable *table = cornu_table_load(path);
    assert_non_null(table);
    CornuArray array;
    cornu_set_memory_limit(32 * MIB);
    expect_too_much(cornu_table_take(table, .to = &array, .one_hot = true));
    assert_non_null(strstr(cornu_error_message(), "4000 columns of it from name"));
    assert_int_equal(cornu_table_take(table, .to = &array), CORNU_OK);
    free(array.data);
    cornu_table_free(table);
}

/* Only headers: a frame of this size, with so many scans. */
static const char *jpeg_of(int height, int width, int scans)
{
    const char         *path = files_path(folder, "scans.jpg");
    const unsigned char start[] = { 0xFF, 0xD8, 0xFF, 0xC2, 0, 11, 8,
                                    (unsigned char)(height >> 8), (unsigned char)height,
                                    (unsigned char)(width >> 8), (unsigned char)width, 1, 1, 0x11,
                                    0 };
    const unsigned char scan[] = { 0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0, 0 }, end[] = { 0xFF, 0xD9 };
    FILE               *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(start, 1, sizeof start, file);
    for (int i = 0; i < scans; i++) fwrite(scan, 1, sizeof scan, file);
    fwrite(end, 1, sizeof end, file);
    fclose(file);
    return path;
}

static void images_have_few_scans_and_fit(void **state)
{
    (void)state;
    CornuArray image;
    expect_error(cornu_image_load(jpeg_of(8192, 8192, 17), 3, &image), CORNU_ERR_FORMAT,
                   "has 17 scans of 8192 x 8192 pixels, expected at most 16");
    cornu_set_memory_limit(32 * MIB);
    expect_too_much(cornu_image_load(jpeg_of(4096, 4096, 1), 3, &image));
}

/* A sparse file with 14 GB that the header does not mention. */
static void headers_are_checked_before_files_are_read(void **state)
{
    (void)state;
    const char    *path = files_path(folder, "large.safetensors");
    const uint64_t length = 2;
    FILE          *file = fopen(path, "wb");
    assert_true(fwrite(&length, 1, 8, file) == 8 && fputs("{}", file) >= 0);
    fclose(file);
    assert_int_equal(truncate(path, (off_t)14 << 30), 0);
    cornu_set_memory_limit(32 * MIB);
    assert_null(cornu_safetensors_open(path));
    expect_error(cornu_error_status(), CORNU_ERR_FORMAT, "its arrays end at byte 0, its data at");

    /* A header that covers all of it still exceeds the limit. */
    char header[200];
    const int64_t bytes = (int64_t)14 << 30;
    snprintf(header, sizeof header, "........{\"a\":{\"dtype\":\"U8\",\"shape\":[%lld],"
             "\"data_offsets\":[0,%lld]}}", (long long)bytes, (long long)bytes);
    const uint64_t size = strlen(header) - 8;
    memcpy(header, &size, 8);
    file = fopen(path, "wb");
    assert_int_equal(fwrite(header, 1, 8 + size, file), 8 + size);
    fclose(file);
    assert_int_equal(truncate(path, (off_t)(8 + size) + bytes), 0);
    assert_null(cornu_safetensors_open(path));
    expect_too_much(cornu_error_status());
    remove(path);
}

static void small_files_of_large_arrays_are_refused(void **state)
{
    (void)state;
    enum { COUNT = 40 * MIB };
    unsigned char *zeros = calloc(16 + COUNT, 1);
    const int64_t  extents[] = { COUNT };
    const char    *idx = files_path(folder, "zeros.gz"), *npz = files_path(folder, "zeros.npz");
    const size_t   header = files_idx_header(zeros, 1, extents);
    files_write_gz(idx, zeros, header + COUNT);
    const CornuNamedArray named = { "zeros", cornu_array(zeros, CORNU_U8, COUNT) };
    assert_int_equal(cornu_npz_write(npz, &named, 1), CORNU_OK);

    CornuArray array;
    cornu_set_memory_limit(32 * MIB);
    expect_too_much(cornu_idx_load(idx, &array));
    assert_null(cornu_npz_open(npz));
    expect_too_much(cornu_error_status());

    cornu_set_memory_limit(64 * MIB);
    assert_int_equal(cornu_idx_load(idx, &array), CORNU_OK);
    free(array.data);
    free(zeros);
}

int main(void)
{
#define WITH_LIMIT(test) cmocka_unit_test_teardown(test, forget_limit)
    const struct CMUnitTest first[] = {   /* before the limit is read */
        WITH_LIMIT(the_environment_sets_it),
        WITH_LIMIT(what_is_no_limit_is_refused),
    };
    const struct CMUnitTest tests[] = {
        WITH_LIMIT(a_program_sets_it),
        WITH_LIMIT(small_models_of_large_values_are_refused),
        WITH_LIMIT(large_weights_are_refused),
        WITH_LIMIT(batches_are_no_larger_than_the_data),
        WITH_LIMIT(tables_of_names_are_refused),
        WITH_LIMIT(images_have_few_scans_and_fit),
        WITH_LIMIT(headers_are_checked_before_files_are_read),
        WITH_LIMIT(small_files_of_large_arrays_are_refused),
    };
    return cmocka_run_group_tests(first, NULL, NULL) + cmocka_run_group_tests(tests, begin, end);
}
