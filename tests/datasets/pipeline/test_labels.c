/* Class names from a list or a file: reading and refusals, with their messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/labels.h"
#include "../../../datasets/mnist/mnist.h"
#include "../../allocations.h"
#include "../files.h"
#include "../../skip.h"

static const char *file_of(const char *text)
{
    const char *path = files_path(folder, "names");
    files_write(path, text, strlen(text));
    return path;
}

static void expect_names(const char *list_or_path, const char *const *want, int count)
{
    char **names = cornu_labels_read(list_or_path, count);
    if (!names) fail_msg("%s: %s", list_or_path, cornu_error_message());
    for (int i = 0; i < count; i++) assert_string_equal(names[i], want[i]);
    free(names);
}

static void lists_and_files_are_read(void **state)
{
    (void)state;
    static const char *const want[] = { "cat", "guinea pig", "hérisson" };
    expect_names("cat,guinea pig,hérisson", want, 3);
    expect_names(" cat , guinea pig ,\thérisson", want, 3);
    expect_names(file_of("cat\nguinea pig\nhérisson\n"), want, 3);
    expect_names(file_of("cat\r\nguinea pig\r\nhérisson"), want, 3);
    static const char *const commas[] = { "one, two", "three" };
    expect_names(file_of("one, two\nthree\n"), commas, 2);
}

static void expect_refusal(const char *list_or_path, CornuStatus status, const char *text)
{
    assert_null(cornu_labels_read(list_or_path, 3));
    assert_int_equal(cornu_error_take(), status);
    if (!strstr(cornu_error_message(), text))
        fail_msg("%s: \"%s\" does not contain \"%s\"", list_or_path, cornu_error_message(), text);
}

static void mistakes_are_refused(void **state)
{
    (void)state;
    expect_refusal("cat,dog", CORNU_ERR_VALUE, "labels: 2 names, expected 3");
    expect_refusal("a,b,c,d,e", CORNU_ERR_VALUE, "labels: 5 names, expected 3");
    expect_refusal("cat,,dog", CORNU_ERR_VALUE, "labels: name 2 is empty");
    expect_refusal("cat,dog,cow, ", CORNU_ERR_VALUE, "labels: name 4 is empty");
    expect_refusal("cat,dog, cat", CORNU_ERR_VALUE,
                   "labels: names 1 and 3 are both \"cat\", expected 3 different ones");
    expect_refusal("cat,d\033og,cow", CORNU_ERR_VALUE, "name 2 contains the control character 27");
    expect_refusal("nowhere/names", CORNU_ERR_FILE, "nowhere/names: cannot be opened: No such");
    expect_refusal(folder, CORNU_ERR_FILE, "is a folder, expected a file");
    expect_refusal(file_of(""), CORNU_ERR_VALUE, "names: name 1 is empty");
    expect_refusal(file_of("cat\n\ndog\n"), CORNU_ERR_VALUE, "names: name 2 is empty");
    expect_refusal(file_of("cat\n"), CORNU_ERR_VALUE, "names: 1 name, expected 3");
    files_write(files_path(folder, "names"), "cat\0dog\nx", 9);
    expect_refusal(files_path(folder, "names"), CORNU_ERR_VALUE, "NUL bytes, expected text");
    static char long_text[(1 << 20) + 2];
    memset(long_text, 'x', sizeof long_text - 1);
    expect_refusal(file_of(long_text), CORNU_ERR_VALUE, "is longer than 1048576 bytes");
}

static void classes_are_renamed_all_or_none(void **state)
{
    (void)state;
    CornuTrainTest *garments = cornu_fashion_mnist_load(.data = "synthetic", .limit = 1);
    assert_string_equal(garments->class_names[0], "t_shirt");
    assert_string_equal(garments->class_names[9], "ankle_boots");
    assert_string_equal(garments->things, "garments");
    assert_int_equal(cornu_train_test_rename(garments, "a,b"), CORNU_ERR_VALUE);
    assert_false(cornu_error_pending());
    assert_string_equal(garments->class_names[0], "t_shirt");
    for (int i = 0; i < 2; i++)   /* the second call frees the names of the first */
        assert_int_equal(cornu_train_test_rename(garments, "a,b,c,d,e,f,g,h,i,j"), CORNU_OK);
    assert_string_equal(garments->class_names[9], "j");
    cornu_train_test_free(garments);
}

static void without_memory_nothing_is_read(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    char **names = NULL;
    for (int64_t allowed = 0; !names; allowed++) {
        allocations_fail_after(allowed);
        names = cornu_labels_read("cat,dog,cow", 3);
        allocations_fail_after(NEVER);
        if (!names) assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    }
    free(names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_and_files_are_read),
        cmocka_unit_test(mistakes_are_refused),
        cmocka_unit_test(classes_are_renamed_all_or_none),
        cmocka_unit_test(without_memory_nothing_is_read),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
