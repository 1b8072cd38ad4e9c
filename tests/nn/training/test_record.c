/* The record of a run: its text, and targets that cannot be written; files of any bytes. */
#include "../../../device/files/file.h"
#include "../../../nn/training/record.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const CornuRunRecord record = {
    .model = "mnist_cnn", .device = "cpu", .policy = "float32", .threads = 2, .shards = 1,
    .parameters = 93322, .data = { "mnist", false, 60000, 10000 }, .flops_per_sample = NAN,
    .test_loss = 0.0312500001, .test_accuracy = NAN,
};

static void test_text(void **state)
{
    (void)state;
    char path[] = "/tmp/cornu-record-XXXXXX", text[1000];
    close(mkstemp(path));
    assert_int_equal(cornu_record_write(&record, path), CORNU_OK);
    FILE *file = fopen(path, "r");
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    unlink(path);
    assert_string_equal(text,
        "{\n"
        " \"model\": \"mnist_cnn\",\n"
        " \"device\": \"cpu\",\n"
        " \"policy\": \"float32\",\n"
        " \"threads\": 2,\n"
        " \"shards\": 1,\n"
        " \"processes\": 1,\n"
        " \"label\": \"measured\",\n"
        " \"parameters\": 93322,\n"
        " \"data\": {\n"
        "  \"name\": \"mnist\",\n"
        "  \"synthetic\": false,\n"
        "  \"train\": 60000,\n"
        "  \"test\": 10000\n"
        " },\n"
        " \"epochs\": [],\n"
        " \"test\": {\n"
        "  \"loss\": 0.0312500001,\n"
        "  \"accuracy\": null\n"
        " }\n"
        "}\n");
}

static void test_targets(void **state)
{
    (void)state;
    assert_int_equal(cornu_record_write(&record, "/absent/h.json"), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), "/absent/h.json: cannot be written: No such"));
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(cornu_record_write(&record, "/dev/full"), CORNU_ERR_FILE);
        assert_non_null(strstr(cornu_error_message(), "No space left"));
        assert_int_equal(cornu_file_check("/dev/full"), CORNU_ERR_FILE);
        assert_int_equal(access("/dev/full", W_OK), 0);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    char path[] = "/tmp/cornu-file-XXXXXX", bytes[16] = { 0 };
    close(mkstemp(path));
    assert_int_equal(cornu_file_write(path, "long\0text", 9), CORNU_OK);
    assert_int_equal(cornu_file_write(path, "a\0b", 3), CORNU_OK);   /* replaces the whole file */
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(bytes, 1, sizeof bytes, file), 3);
    assert_memory_equal(bytes, "a\0b", 3);
    fclose(file);
    unlink(path);
    assert_int_equal(cornu_file_write("/absent/f", "", 0), CORNU_ERR_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_text),
                                        cmocka_unit_test(test_targets),
                                        cmocka_unit_test(test_bytes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
