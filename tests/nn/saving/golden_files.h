/* Files that real Keras saved, and files of a test. */
#ifndef CORNU_TESTS_NN_GOLDEN_FILES_H
#define CORNU_TESTS_NN_GOLDEN_FILES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../datasets/files.h"
#include "../golden.h"

#define GOLDEN "tests/golden/files/"

/* libhdf5 1.10.8 leaks memory on damaged files. The leak sanitizer calls this by name. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

/* Of a group of tests: a device, and a folder for files. */
static CornuDevice *device;

static inline int set_up(void **state)
{
    device = cornu_device_open("cpu");
    return !device || files_begin(state);
}

static inline int tear_down(void **state)
{
    cornu_device_close(device);
    return files_end(state);
}

static inline const char *golden(const char *name, const char *suffix)
{
    static char path[200];
    snprintf(path, sizeof path, GOLDEN "%s%s", name, suffix);
    return path;
}

/* "FOLDER/name.suffix"; eight at a time. */
static inline const char *here(const char *name, const char *suffix)
{
    static char paths[8][FILES_PATH];
    static int  next;
    char        both[100];
    snprintf(both, sizeof both, "%s%s", name, suffix);
    next = (next + 1) % 8;
    return strcpy(paths[next], files_path(folder, both));
}

/* Without libhdf5 only the error is tested. */
static inline bool has_hdf5(void)
{
    CornuModel *model = cornu_model_load(golden("images", ".h5"));
    if (!model) cornu_error_take();
    cornu_model_free(model);
    return model || !strstr(cornu_error_message(), "install libhdf5-dev");
}

static inline CornuModel *expect_model(CornuModel *model)
{
    if (!model) fail_msg("%s", cornu_error_message());
    return model;
}

static inline void expect_equal_files(const char *a, const char *b)
{
    static unsigned char x[400000], y[400000];
    const size_t size = files_read(a, x, sizeof x);
    assert_true(size > 0 && size < sizeof x);
    assert_int_equal(files_read(b, y, sizeof y), size);
    assert_memory_equal(x, y, size);
}

#endif
