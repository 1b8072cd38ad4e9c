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

/* 1, 1.5, -2, 0.25, 65504 and 2^-14 in 16 bits. */
static const uint16_t bf16[] = { 0x3f80, 0x3fc0, 0xc000, 0x3e80, 0x4780, 0x3880 };
static const uint16_t f16[] = { 0x3c00, 0x3e00, 0xc000, 0x3400, 0x7bff, 0x0400 };

static void expect_weights(const CornuModel *model)
{
    static const float of_bf16[] = { 1.0f, 1.5f, -2.0f, 0.25f, 65536.0f, 0x1p-14f };
    static const float of_f16[] = { 1.0f, 1.5f, -2.0f, 0.25f, 65504.0f, 0x1p-14f };
    float              got[36];
    for (int i = 0; i < 2; i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const int64_t      count = cornu_type_count(weight->type);
        expect_ok(cornu_weight_read(weight, cornu_array_from(got, weight->type)));
        for (int64_t k = 0; k < count; k++)
            assert_true(got[k] == (i ? of_f16 : of_bf16)[k % 6]);
    }
}

/* What Hugging Face publishes: weights in 16 bits, also of a model in f32. */
static void narrow_weights_fill(void **state)
{
    static uint16_t kernel[36];
    static int32_t  whole[6];
    (void)state;
    for (int i = 0; i < 36; i++) kernel[i] = bf16[i % 6];
    CornuNamedArray arrays[] = {
        { "wide/kernel", cornu_array_from(kernel, cornu_type(CORNU_BF16, 6, 6)) },
        { "wide/bias", cornu_array_from((void *)(uintptr_t)f16, cornu_type(CORNU_F16, 6)) },
    };
    CornuModel *model = cornu_sequential(.input_shape = { 6 });
    expect_ok(cornu_model_add(model, cornu_dense(6, .name = "wide")));
    expect_ok(cornu_safetensors_write(path, arrays, 2, NULL, 0));
    expect_ok(cornu_model_load_weights(model, path));
    expect_weights(model);
    cornu_model_free(model);
    model = cornu_sequential(.input_shape = { 6 });
    expect_ok(cornu_model_add(model, cornu_dense(6, .name = "wide")));
    expect_ok(cornu_model_load_by_name(model, path));
    expect_weights(model);
    /* Integers are not weights. */
    arrays[1].array = cornu_array_from(whole, cornu_type(CORNU_I32, 6));
    expect_ok(cornu_safetensors_write(path, arrays, 2, NULL, 0));
    expect_error(cornu_model_load_weights(model, path), CORNU_ERR_DTYPE,
                 "wide/bias is f32 (6,) in the model and i32 (6,) in the file");
    expect_weights(model);
    /* NumPy has float16. */
    arrays[1].array = cornu_array_from((void *)(uintptr_t)f16, cornu_type(CORNU_F16, 6));
    for (int i = 0; i < 36; i++) kernel[i] = f16[i % 6];
    arrays[0].array.type.dtype = CORNU_F16;
    expect_ok(cornu_npz_write(files_path(folder, "a.npz"), arrays, 2));
    expect_ok(cornu_model_load_weights(model, files_path(folder, "a.npz")));
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_fits_is_loaded, set_up, files_end),
        cmocka_unit_test_setup_teardown(mistakes_are_named, set_up, files_end),
        cmocka_unit_test_setup_teardown(narrow_weights_fill, set_up, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
