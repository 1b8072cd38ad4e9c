/* The pictures that programs write, and where. pictures.c needs no main. */
#include "../../examples/cornu/common/pictures.c" /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The session's: this process is on its own. */
CornuProcesses *session_processes(void) { return NULL; }

static char folder[] = "/tmp/cornu-pictures-XXXXXX";

static bool is_there(const char *name)
{
    char        path[CORNU_PATH_SIZE];
    struct stat there;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return stat(path, &there) == 0;
}

static void remove_file(const char *name)
{
    char path[CORNU_PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

/* A trained network, with a convolution or without; what pictures_of_training prints. */
static void write_pictures(bool convolution, char printed[200])
{
    float       x[4 * 16] = { 0 };
    uint8_t     y[4] = { 0, 1, 0, 1 };
    CornuModel *model = cornu_sequential(.name = "net", .input_shape = { 4, 4, 1 });
    if (convolution) cornu_model_add(model, cornu_conv2d(2, 3));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(2, .activation = CORNU_SOFTMAX));
    cornu_compile(model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    CornuHistory *history = cornu_fit(model, .x = cornu_array(x, CORNU_F32, 4, 4, 4, 1),
                                      .y = cornu_array(y, CORNU_U8, 4), .verbose = CORNU_SILENT);
    if (!history) fail_msg("%s", cornu_error_message());

    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    const CornuStatus status = pictures_of_training(folder, model, history, NULL);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    rewind(file);
    printed[fread(printed, 1, 199, file)] = '\0';
    fclose(file);
    assert_int_equal(status, CORNU_OK);
    cornu_history_free(history);
    cornu_model_free(model);
}

static void filters_are_those_of_the_first_convolution(void **state)
{
    (void)state;
    char printed[200];
    write_pictures(true, printed);
    assert_string_equal(printed, "");
    assert_true(is_there("curves.png") && is_there("filters.png"));
    remove_file("curves.png");
    remove_file("filters.png");
}

static void without_a_convolution_it_is_said(void **state)
{
    (void)state;
    char printed[200];
    write_pictures(false, printed);
    assert_non_null(strstr(printed, "net has no convolution, so there is no /tmp/"));
    assert_true(is_there("curves.png") && !is_there("filters.png"));
    remove_file("curves.png");
}

static void checking_leaves_nothing_behind(void **state)
{
    (void)state;
    char path[CORNU_PATH_SIZE];
    snprintf(path, sizeof path, "%s/new", folder);
    assert_int_equal(pictures_check(path), CORNU_OK);
    assert_false(is_there("new"));
    snprintf(path, sizeof path, "%s/absent/new", folder);
    assert_int_equal(pictures_check(path), CORNU_ERR_FILE);
}

static void titles_say_what_is_synthetic(void **state)
{
    (void)state;
    char                 title[TITLE];
    CornuModel          *model = cornu_sequential(.name = "net");
    const CornuTrainTest real = { .name = "mnist", .things = "digits" };
    const CornuTrainTest drawn = { .name = "mnist", .things = "digits", .synthetic = true };
    assert_string_equal(title_of(title, model, "test", &real), "net, test digits of mnist");
    assert_string_equal(title_of(title, model, "test", &drawn), "net, synthetic test digits");
    assert_string_equal(title_of(title, model, "", NULL), "net");
    cornu_model_free(model);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_are_those_of_the_first_convolution),
        cmocka_unit_test(without_a_convolution_it_is_said),
        cmocka_unit_test(checking_leaves_nothing_behind),
        cmocka_unit_test(titles_say_what_is_synthetic),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
