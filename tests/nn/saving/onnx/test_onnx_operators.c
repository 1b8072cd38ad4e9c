/* Operators of .onnx files, whose attributes decide the numbers, against onnxruntime:
 * tests/golden/make_onnx_operators.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../golden.h"

#define GOLDEN "tests/golden/onnx_operators/operators.npz"
#define PATH   "build/test_onnx_operators.onnx"

enum { MOST = 8 };

/* The arrays CASE.LETTER0, CASE.LETTER1, …; returns their number. */
static int collect(const CornuNpz *file, const char *name, char letter, CornuArray to[MOST])
{
    int count = 0;
    for (; count < MOST; count++) {
        char member[80];
        snprintf(member, sizeof member, "%s.%c%d", name, letter, count);
        const CornuNamedArray *found = cornu_npz_find(file, member);
        if (!found) break;
        to[count] = found->array;
    }
    return count;
}

static void write_file(CornuArray bytes)
{
    FILE *file = fopen(PATH, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, cornu_type_bytes(bytes.type), file),
                     cornu_type_bytes(bytes.type));
    assert_int_equal(fclose(file), 0);
}

/* Predictions are f32, whatever the file's outputs are. */
static CornuArray in_f32(CornuArray from, bool with_values)
{
    const CornuType  type = cornu_type_from(CORNU_F32, from.type.shape);
    const CornuArray to = cornu_array_from(calloc(1, cornu_type_bytes(type) + 1), type);
    for (int64_t i = 0; with_values && i < cornu_type_count(type); i++)
        cornu_array_set(to, i, cornu_array_get(from, i));
    return to;
}

static void check(const CornuNpz *file, const char *name, CornuArray model_bytes)
{
    CornuArray x[MOST], p[MOST], got[MOST];
    const int  xs = collect(file, name, 'x', x), ps = collect(file, name, 'p', p);
    write_file(model_bytes);
    CornuModel *model = cornu_model_load(PATH);
    if (!model) fail_msg("%s: %s", name, cornu_error_message());
    assert_int_equal(cornu_model_input_count(model), xs);
    assert_int_equal(cornu_model_output_count(model), ps);
    for (int i = 0; i < ps; i++) got[i] = in_f32(p[i], false);
    if (cornu_predict_on_batch_many(model, x, got))
        fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < ps; i++) {
        const CornuArray want = in_f32(p[i], true);
        expect_near(name, got[i].data, want, 1e-5);
        free(want.data);
        free(got[i].data);
    }
    cornu_model_free(model);
}

static void operators_compute_what_onnxruntime_does(void **state)
{
    (void)state;
    static const char ending[] = ".model";
    CornuNpz *file = cornu_npz_open(GOLDEN);
    int       cases = 0;
    if (!file) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < cornu_npz_count(file); i++) {
        const CornuNamedArray *member = cornu_npz_at(file, i);
        char                   name[64];
        const char            *end = strstr(member->name, ending);
        if (!end || end[sizeof ending - 1]) continue;
        snprintf(name, sizeof name, "%.*s", (int)(end - member->name), member->name);
        check(file, name, member->array);
        cases++;
    }
    assert_int_equal(cases, 128);
    cornu_npz_close(file);
    unlink(PATH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operators_compute_what_onnxruntime_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
