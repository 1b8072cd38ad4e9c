#include "golden.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../nn/saving/files_internal.h"

Golden golden_open(const char *path)
{
    Golden golden = { .file = cornu_safetensors_open(path) };
    if (!golden.file) fail_msg("%s: %s", path, cornu_error_message());
    golden.about = json_loads(cornu_safetensors_metadata(golden.file, "golden"), 0, NULL);
    golden.cases = json_object_get(golden.about, "cases");
    assert_non_null(golden.cases);
    return golden;
}

void golden_close(Golden *golden)
{
    for (int i = 0; i < golden->copy_count; i++) free(golden->copies[i]);
    free(golden->copies);
    json_decref(golden->about);
    cornu_safetensors_close(golden->file);
}

CornuArray golden_array(Golden *golden, const char *test_case, const char *name)
{
    char full[256];
    snprintf(full, sizeof full, "%s%s%s", test_case ? test_case : "", test_case ? "/" : "", name);
    const CornuNamedArray *found = cornu_safetensors_find(golden->file, full);
    if (!found) return cornu_array_from(NULL, cornu_scalar(CORNU_F32));
    const size_t bytes = cornu_type_bytes(found->array.type);
    void        *copy = malloc(bytes + 1);   /* arrays in the file are unaligned */
    golden->copies = realloc(golden->copies, (size_t)(golden->copy_count + 1) * sizeof(void *));
    if (!copy || !golden->copies) abort();
    golden->copies[golden->copy_count++] = copy;
    memcpy(copy, found->array.data, bytes);
    return cornu_array_from(copy, found->array.type);
}

int golden_arrays(Golden *golden, const char *test_case, const char *kind, CornuArray *to,
                  int most)
{
    int count = 0;
    for (; count < most; count++) {
        char key[16];
        snprintf(key, sizeof key, "%s%d", kind, count);
        to[count] = golden_array(golden, test_case, key);
        if (!to[count].data) break;
    }
    return count;
}

void expect_near(const char *what, const float *got, CornuArray want, double tolerance)
{
    const int64_t count = cornu_type_count(want.type);
    double        largest = 0.0;
    assert_non_null(want.data);
    for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(cornu_array_get(want, i)));
    for (int64_t i = 0; i < count; i++) {
        const double value = cornu_array_get(want, i);
        if (!(fabs((double)got[i] - value) <= tolerance * largest + 1e-12))
            fail_msg("%s[%lld] is %.9g, Keras has %.9g (greatest %.3g)", what, (long long)i, got[i],
                     value, largest);
    }
}

CornuModel *golden_layer(const json_t *settings, CornuType x)
{
    const char *class_name = json_string_value(json_object_get(settings, "layer"));
    json_t     *config = json_deep_copy(settings);
    json_object_del(config, "layer");
    json_object_del(config, "training");
    json_object_set_new(config, "name", json_string("layer"));
    json_t *batch_shape = json_pack("[n]");
    for (int i = 1; i < x.shape.rank; i++)
        json_array_append_new(batch_shape, json_integer(x.shape.extent[i]));
    json_t *architecture = json_pack(
        "{s:s, s:{s:s, s:[{s:s, s:{s:o}}, {s:s, s:o}]}}", "class_name", "Sequential", "config",
        "name", "one", "layers", "class_name", "InputLayer", "config", "batch_shape", batch_shape,
        "class_name", class_name ? class_name : "Activation", "config", config);
    CornuModel *model = cornu__model_from_config(architecture, NULL);
    if (!model) fail_msg("%s", cornu_error_message());
    json_decref(architecture);
    return model;
}

double golden_number(const json_t *settings, const char *name)
{
    const json_t *value = json_object_get(settings, name);
    if (!value || json_is_null(value)) return 0.0;
    return json_number_value(value) == 0.0 ? (double)CORNU_ZERO : json_number_value(value);
}

int64_t golden_integer(const json_t *settings, const char *name)
{
    return (int64_t)golden_number(settings, name);
}

bool golden_flag(const json_t *settings, const char *name)
{
    return json_is_true(json_object_get(settings, name));
}

void expect_file(void *path, const char *text)
{
    char   want[16384];
    FILE  *file = fopen(path, "rb");
    assert_non_null(file);
    want[fread(want, 1, sizeof want - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text, want);
}

CornuDevice *expect_device(const char *name)
{
    CornuDevice *device = cornu_device_open(name, .shards = 1);
    if (!device) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_set_dtype_policy("float32"));
    return device;
}
