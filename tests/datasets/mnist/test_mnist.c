/* MNIST and Fashion-MNIST: real files, small ones made here, bad ones, synthetic images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/mnist/mnist.h"
#include "../../../datasets/synthetic/synthetic.h"
#include "../../allocations.h"
#include "../files.h"
#include "../../skip.h"

enum { PIXELS = 28 * 28, TRAIN = 30, TEST = 12 };

/* Writes mnist/name: u8 of these extents, element i being i % 10. */
static void write_idx(const char *name, int rank, const int64_t *extents)
{
    unsigned char bytes[64 + 40 * PIXELS];
    size_t        header = files_idx_header(bytes, rank, extents), count = 1;
    char          path[64];
    for (int i = 0; i < rank; i++) count *= (size_t)extents[i];
    for (size_t i = 0; i < count; i++) bytes[header + i] = (unsigned char)(i % 10);
    snprintf(path, sizeof path, "mnist/%s", name);
    files_write_gz(files_path(folder, path), bytes, header + count);
}

static void write_good_files(void)
{
    write_idx("train-images-idx3-ubyte.gz", 3, (int64_t[]){ TRAIN, 28, 28 });
    write_idx("train-labels-idx1-ubyte.gz", 1, (int64_t[]){ TRAIN });
    write_idx("t10k-images-idx3-ubyte.gz", 3, (int64_t[]){ TEST, 28, 28 });
    write_idx("t10k-labels-idx1-ubyte.gz", 1, (int64_t[]){ TEST });
}

static void test_files_become_arrays(void **state)
{
    (void)state;
    write_good_files();
    CornuTrainTest *mnist = cornu_mnist_load(.data = folder);
    assert_non_null(mnist);
    assert_string_equal(mnist->name, "mnist");
    assert_false(mnist->synthetic);
    assert_int_equal(mnist->classes, 10);
    assert_string_equal(mnist->class_names[7], "7");
    assert_non_null(strstr(mnist->description, folder));
    assert_non_null(strstr(mnist->description, "30 to train, 12 to test"));
    assert_true(cornu_type_equal(mnist->train_x.type, cornu_type(CORNU_U8, TRAIN, 28, 28)));
    assert_true(cornu_type_equal(mnist->train_y.type, cornu_type(CORNU_U8, TRAIN)));
    assert_true(cornu_type_equal(mnist->test_x.type, cornu_type(CORNU_U8, TEST, 28, 28)));
    assert_true(cornu_type_equal(mnist->test_y.type, cornu_type(CORNU_U8, TEST)));
    assert_int_equal(((uint8_t *)mnist->train_y.data)[23], 3);
    cornu_train_test_free(mnist);
}

static void test_limit_and_data_sets(void **state)
{
    (void)state;
    write_good_files();
    CornuTrainTest *mnist = cornu_mnist_load(.data = folder, .limit = 20);
    assert_non_null(mnist);
    CornuDataset *train = cornu_train_test_take_train(mnist);
    CornuDataset *test = cornu_train_test_take_test(mnist);
    assert_null(mnist->train_x.data);
    cornu_train_test_free(mnist);
    assert_int_equal(cornu_dataset_count(train), 20);
    assert_int_equal(cornu_dataset_count(test), TEST);
    assert_true(cornu_type_equal(cornu_dataset_type(train, 0), cornu_type(CORNU_U8, 28, 28)));
    assert_true(cornu_type_equal(cornu_dataset_type(train, 1), cornu_scalar(CORNU_U8)));
    cornu_dataset_free(train);
    cornu_dataset_free(test);
}

static void expect_failure(CornuStatus status, const char *file, const char *text)
{
    assert_null(cornu_mnist_load(.data = folder));
    assert_int_equal(cornu_error_status(), status);
    if (!strstr(cornu_error_message(), file) || !strstr(cornu_error_message(), text))
        fail_msg("\"%s\" does not name %s and \"%s\"", cornu_error_message(), file, text);
}

static void test_bad_files(void **state)
{
    (void)state;
    write_good_files();
    write_idx("train-labels-idx1-ubyte.gz", 1, (int64_t[]){ TRAIN - 1 });
    expect_failure(CORNU_ERR_SHAPE, "train-labels-idx1-ubyte.gz", "29 labels, expected 30");
    write_idx("train-labels-idx1-ubyte.gz", 2, (int64_t[]){ TRAIN, 1 });
    expect_failure(CORNU_ERR_SHAPE, "train-labels-idx1-ubyte.gz", "u8 (30, 1), expected u8 (N,)");

    write_good_files();
    write_idx("t10k-images-idx3-ubyte.gz", 3, (int64_t[]){ TEST, 28, 27 });
    expect_failure(CORNU_ERR_SHAPE, "t10k-images-idx3-ubyte.gz",
                   "u8 (12, 28, 27), expected u8 (N, 28, 28)");
    write_idx("t10k-images-idx3-ubyte.gz", 1, (int64_t[]){ TEST });
    expect_failure(CORNU_ERR_SHAPE, "t10k-images-idx3-ubyte.gz", "u8 (12,), expected");

    write_good_files();
    unsigned char bad[8 + TEST] = { 0 };
    files_idx_header(bad, 1, (int64_t[]){ TEST });
    bad[8 + 5] = 10;
    files_write_gz(files_path(folder, "mnist/t10k-labels-idx1-ubyte.gz"), bad, sizeof bad);
    expect_failure(CORNU_ERR_VALUE, "t10k-labels-idx1-ubyte.gz", "label 5 is 10, expected 0 to 9");

    write_good_files();
    files_write(files_path(folder, "mnist/train-images-idx3-ubyte.gz"), "\x1f\x8b", 2);
    expect_failure(CORNU_ERR_FORMAT, "train-images-idx3-ubyte.gz", "truncated");
    files_write(files_path(folder, "mnist/train-images-idx3-ubyte.gz"), "hello", 5);
    expect_failure(CORNU_ERR_FORMAT, "train-images-idx3-ubyte.gz", "begins with 68 65 6c 6c");
    unlink(files_path(folder, "mnist/train-images-idx3-ubyte.gz"));
    expect_failure(CORNU_ERR_DATA, "train-images-idx3-ubyte.gz", "is missing");
    assert_null(cornu_mnist_load(.data = "synthetic", .limit = -1));
    assert_int_equal(cornu_error_status(), CORNU_ERR_ARGUMENT);
}

static double mean(CornuArray array)
{
    uint64_t sum = 0;
    size_t   count = cornu_type_bytes(array.type);
    for (size_t i = 0; i < count; i++) sum += ((const uint8_t *)array.data)[i];
    return (double)sum / (double)count / 255.0;
}

/* A file may be there uncompressed, which takes precedence. */
static void test_unpacked_files(void **state)
{
    (void)state;
    const char *both = "mnist/t10k-labels-idx1-ubyte", *alone = "mnist/train-images-idx3-ubyte";
    unsigned char bytes[64 + TRAIN * PIXELS];
    write_good_files();
    size_t size = files_idx_header(bytes, 1, (int64_t[]){ TEST });
    memset(bytes + size, 7, TEST);
    files_write(files_path(folder, both), bytes, size + TEST);
    size = files_idx_header(bytes, 3, (int64_t[]){ TRAIN, 28, 28 });
    for (int i = 0; i < TRAIN * PIXELS; i++) bytes[size + (size_t)i] = (unsigned char)(i % 251);
    files_write(files_path(folder, alone), bytes, size + TRAIN * PIXELS);
    assert_int_equal(unlink(files_path(folder, "mnist/train-images-idx3-ubyte.gz")), 0);

    CornuTrainTest *mnist = cornu_mnist_load(.data = folder);
    assert_non_null(mnist);
    assert_memory_equal(mnist->train_x.data, bytes + size, TRAIN * PIXELS);
    for (int i = 0; i < TEST; i++) assert_int_equal(((uint8_t *)mnist->test_y.data)[i], 7);
    cornu_train_test_free(mnist);

    files_write(files_path(folder, alone), bytes, size + TRAIN * PIXELS - 1);
    expect_failure(CORNU_ERR_FORMAT, alone, "ends after 23519 bytes");
    assert_int_equal(unlink(files_path(folder, alone)), 0);
    assert_int_equal(unlink(files_path(folder, both)), 0);
}

/* The published counts and mean grey values. */
static void expect_real(CornuTrainTest *data, double train_mean, double test_mean)
{
    assert_non_null(data);
    assert_true(cornu_type_equal(data->train_x.type, cornu_type(CORNU_U8, 60000, 28, 28)));
    assert_true(cornu_type_equal(data->test_x.type, cornu_type(CORNU_U8, 10000, 28, 28)));
    assert_true(mean(data->train_x) > train_mean - 1e-4 && mean(data->train_x) < train_mean + 1e-4);
    assert_true(mean(data->test_x) > test_mean - 1e-4 && mean(data->test_x) < test_mean + 1e-4);
    cornu_train_test_free(data);
}

static void test_the_real_files(void **state)
{
    (void)state;
    if (!files_real("mnist/train-images-idx3-ubyte.gz")) SKIP_FOR(SKIP_DATA);
    expect_real(cornu_mnist_load(), 0.1307, 0.1325);
    if (!files_real("fashion-mnist/train-images-idx3-ubyte.gz")) SKIP_FOR(SKIP_DATA);
    CornuTrainTest *fashion = cornu_fashion_mnist_load();
    assert_string_equal(fashion->class_names[9], "ankle_boots");
    expect_real(fashion, 0.2860, 0.2868);
}

static void test_drawings_stand_in(void **state)
{
    (void)state;
    CornuTrainTest *some = cornu_mnist_load(.data = "synthetic", .limit = 100, .seed = 3);
    assert_true(some->synthetic);
    assert_non_null(strstr(some->description, "synthetic digits"));
    assert_true(cornu_type_equal(some->train_x.type, cornu_type(CORNU_U8, 100, 28, 28)));
    CornuTrainTest *all = cornu_mnist_load(.data = "synthetic", .seed = 3);
    assert_true(cornu_type_equal(all->train_x.type, cornu_type(CORNU_U8, 60000, 28, 28)));
    assert_true(cornu_type_equal(all->test_x.type, cornu_type(CORNU_U8, 10000, 28, 28)));
    /* A limit changes the number of images, not the images. */
    assert_memory_equal(all->train_x.data, some->train_x.data, 100 * PIXELS);
    assert_memory_equal(all->test_x.data, some->test_x.data, 100 * PIXELS);
    assert_memory_not_equal(all->train_x.data, all->test_x.data, PIXELS);
    int of_class[10] = { 0 };
    for (int i = 0; i < 60000; i++) of_class[((uint8_t *)all->train_y.data)[i]]++;
    for (int c = 0; c < 10; c++) assert_true(of_class[c] > 5700 && of_class[c] < 6300);
    cornu_train_test_free(some);
    cornu_train_test_free(all);
    some = cornu_fashion_mnist_load(.data = "synthetic", .limit = 10);
    assert_non_null(strstr(some->description, "synthetic garments"));
    assert_string_equal(some->name, "fashion-mnist");
    cornu_train_test_free(some);
}

/* FNV-1a */
static uint32_t digest(const uint8_t *bytes, size_t count)
{
    uint32_t hash = 2166136261;
    for (size_t i = 0; i < count; i++) hash = (hash ^ bytes[i]) * 16777619;
    return hash;
}

/* Drawings do not depend on machine, compiler or position in the series. */
static void test_drawings_never_change(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    static uint8_t images[COUNT * PIXELS], labels[COUNT], again[PIXELS], label;
    cornu_synthetic_digits(0, 0, COUNT, images, labels);
    uint32_t digits = digest(images, sizeof images);
    cornu_synthetic_digits(0, 321, 1, again, &label);
    assert_memory_equal(again, images + 321 * PIXELS, PIXELS);
    assert_int_equal(label, labels[321]);
    cornu_synthetic_digits(1, 321, 1, again, &label);
    assert_memory_not_equal(again, images + 321 * PIXELS, PIXELS);
    cornu_synthetic_garments(0, 0, COUNT, images, labels);
    uint32_t garments = digest(images, sizeof images);
    if (digits != UINT32_C(0xc02ca7d8) || garments != UINT32_C(0x50bbcf0f))
        fail_msg("the digests are 0x%08x and 0x%08x", digits, garments);
}

static void test_each_allocation_may_fail(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    CornuDataset   *train = NULL;
    CornuIterator  *iterator = NULL;
    CornuTrainTest *data = NULL;
    for (int64_t n = 0; !iterator; n++) {
        allocations_fail_after(n);
        data = cornu_mnist_load(.data = "synthetic", .limit = 10);
        train = data ? cornu_train_test_take_train(data) : NULL;
        train = cornu_dataset_batch(cornu_dataset_shuffle(train, 0), 4, false);
        iterator = cornu_iterator_begin(train, 0);
        allocations_fail_after(NEVER);
        if (iterator) break;
        assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
        assert_true(n < 100);
        cornu_dataset_free(train);
        cornu_train_test_free(data);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(train);
    cornu_train_test_free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_become_arrays),
        cmocka_unit_test(test_limit_and_data_sets),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_unpacked_files),
        cmocka_unit_test(test_the_real_files),
        cmocka_unit_test(test_drawings_stand_in),
        cmocka_unit_test(test_drawings_never_change),
        cmocka_unit_test(test_each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
