/* Opening files: never as descriptor 0, 1 or 2, never waiting for a pipe; folders that are made. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../device/open.h"
#include "../datasets/files.h"

/* In a process in which the standard descriptors are closed; how many of the checks fail. */
static int open_without_standard(const char *path)
{
    FILE *file;
    int   bad = 0;
    for (int i = 0; i < 3; i++) close(i);
    for (int i = 0; i < 4; i++) {
        const int descriptor = cornu__open(path, O_RDWR | O_CREAT, 0600);
        bad += descriptor <= STDERR_FILENO || !(fcntl(descriptor, F_GETFD) & FD_CLOEXEC) ||
               (fcntl(descriptor, F_GETFL) & O_NONBLOCK);
    }
    bad += cornu__open_to_read(path, &file) != CORNU_OK || fileno(file) <= STDERR_FILENO;
    for (int i = 0; i < 3; i++) bad += fcntl(i, F_GETFD) >= 0;   /* nothing of it is left there */
    return bad;
}

static void standard_descriptors_stay_free(void **state)
{
    (void)state;
    int         status = -1;
    const char *path = files_path(folder, "file");
    const pid_t child = fork();
    if (child == 0) _exit(open_without_standard(path));
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void pipes_do_not_hang(void **state)
{
    (void)state;
    FILE       *file;
    const char *path = files_path(folder, "pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(20);
    assert_int_equal(cornu__open(path, O_WRONLY, 0), -1);
    assert_int_equal(errno, ENXIO);
    assert_int_equal(cornu__open_to_read(path, &file), CORNU_ERR_FILE);
    assert_null(file);
    assert_non_null(strstr(cornu_error_message(), "is a pipe, expected a file"));
    /* With a reader it is written as usual, waiting for room. */
    const int reader = cornu__open(path, O_RDONLY, 0), writer = cornu__open(path, O_WRONLY, 0);
    assert_true(reader > 2 && writer > 2);
    assert_int_equal(write(writer, "word", 4), 4);
    assert_int_equal(fcntl(writer, F_GETFL) & O_NONBLOCK, 0);
    close(reader);
    close(writer);
    alarm(0);
    assert_int_equal(cornu__open_to_read(folder, &file), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), "is a folder, expected a file"));
    assert_int_equal(cornu__open_to_read(files_path(folder, "none"), &file), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), "cannot be opened: No such file"));
}

static void folders_are_made(void **state)
{
    (void)state;
    bool        made;
    const char *path = files_path(folder, "a");
    char        deep[FILES_PATH + 20];
    snprintf(deep, sizeof deep, "%s/b/c/file", path);
    assert_int_equal(cornu__make_folders_above(deep), CORNU_OK);
    assert_int_equal(cornu__make_folder(path, &made), CORNU_OK);
    assert_false(made);
    assert_int_equal(cornu__make_folder(files_path(folder, "new"), &made), CORNU_OK);
    assert_true(made);
    assert_int_equal(cornu__make_folder("/dev/null/x", &made), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), "/dev/null/x: the folder cannot be made"));
    struct stat info;
    deep[strlen(deep) - 5] = '\0';
    assert_int_equal(stat(deep, &info), 0);
    assert_true(S_ISDIR(info.st_mode));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(standard_descriptors_stay_free, files_begin, files_end),
        cmocka_unit_test_setup_teardown(pipes_do_not_hang, files_begin, files_end),
        cmocka_unit_test_setup_teardown(folders_are_made, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
