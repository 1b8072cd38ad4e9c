/* Loading weights by name: those loaded, those skipped and listed, and failures that change
 * nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../golden.h"

static char path[FILES_PATH];

static int set_up(void **state)
{
    files_begin(state);
    strcpy(path, files_path(folder, "a.safetensors"));
    return 0;
}

/* 6 -> body (4) -> head (classes) [-> extra (2)] */
static CornuModel *make_model(uint64_t seed, int64_t classes, bool extra)
{
    cornu_set_random_seed(seed);
    CornuModel *model = cornu_sequential(.name = "network", .input_shape = { 6 });
    cornu_model_add(model, cornu_dense(4, .name = "body"));
    cornu_model_add(model, cornu_dense(classes, .name = "head"));
    if (extra) cornu_model_add(model, cornu_dense(2, .name = "extra"));
    expect_ok(cornu_error_take());
    return model;
}

/* Whether a weight has the same value in both. */
static bool same(const CornuModel *a, const CornuModel *b, const char *name)
{
    float              x[100], y[100];
    const CornuWeight *u = cornu_model_find_weight(a, name), *v = cornu_model_find_weight(b, name);
    expect_ok(cornu_weight_read(u, cornu_array_from(x, u->type)));
    expect_ok(cornu_weight_read(v, cornu_array_from(y, v->type)));
    return !memcmp(x, y, cornu_type_bytes(u->type));
}

static void what_fits_is_loaded(void **state)
{
    (void)state;
    CornuModel *from = make_model(1, 3, false), *to = make_model(2, 5, true);
    CornuModel *untouched = make_model(2, 5, true);
    expect_ok(cornu_model_save(from, path));
    expect_error(cornu_model_load_by_name(to, path), CORNU_ERR_SHAPE,
                 "head/kernel is (4, 5) in the model and (4, 3) in the file");
    assert_true(same(to, untouched, "body/kernel"));

    char  *text = NULL;
    size_t size = 0;
    int    loaded = -1;
    FILE  *file = open_memstream(&text, &size);
    expect_ok(cornu_model_load_by_name(to, path, .skip_mismatch = true, .file = file,
                                       .loaded = &loaded));
    fclose(file);
    assert_int_equal(loaded, 2);
    assert_true(same(to, from, "body/kernel"));
    assert_true(same(to, untouched, "head/kernel"));
    assert_true(same(to, untouched, "extra/kernel"));
    static const char *const lines[] = {
        "skipped: head/kernel is (4, 5) in the model and (4, 3) in the file\n",
        "skipped: head/bias is (5,) in the model and (3,) in the file\n",
        "skipped: there is no extra/kernel, which the model has\n",
        "skipped: there is no extra/bias, which the model has\n",
    };
    for (int i = 0; i < 4; i++)
        if (!strstr(text, lines[i])) fail_msg("\"%s\" is not in:\n%s", lines[i], text);
    free(text);
    cornu_model_free(from);
    cornu_model_free(to);
    cornu_model_free(untouched);
}

static void mistakes_are_named(void **state)
{
    (void)state;
    CornuModel *from = make_model(1, 3, false);
    CornuModel *to = cornu_sequential(.input_shape = { 6 });
    CornuModel *unbuilt = cornu_sequential();
    expect_ok(cornu_model_add(to, cornu_dense(4, .name = "other")));
    expect_ok(cornu_model_add(unbuilt, cornu_dense(4)));
    expect_ok(cornu_model_save_weights(from, path));
    expect_error(cornu_model_load_by_name(to, path), CORNU_ERR_SHAPE,
                 "none of its 4 arrays is a weight of the model");
    expect_error(cornu_model_load_by_name(unbuilt, path), CORNU_ERR_ARGUMENT, "is not built");
    expect_error(cornu_model_load_by_name(to, "absent.safetensors"), CORNU_ERR_FILE, "No such");
    expect_error(cornu_model_load_by_name(to), CORNU_ERR_ARGUMENT, ".path is NULL");
    cornu_model_free(from);
    cornu_model_free(to);
    cornu_model_free(unbuilt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_fits_is_loaded, set_up, files_end),
        cmocka_unit_test_setup_teardown(mistakes_are_named, set_up, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
