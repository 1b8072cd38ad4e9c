/* Layers and operations whose JSON lacks one key, each in turn (tests/golden/make_missing.py): what
 * Keras computes without it, or an error that says what is wrong. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "../../../nn/saving/files_internal.h"
#include "../../expect.h"
#include "../../../nn/cornu.h"

enum { MOST = 8, ROWS = 3, OPEN = 4 };

/* tests/golden/common.py, hashed_uniform */
static double hashed_uniform(const char *name, int64_t i)
{
    uint32_t x = (uint32_t)crc32(0, (const Bytef *)name, (uInt)strlen(name)) +
                 (uint32_t)i * UINT32_C(0x9E3779B9);
    x ^= x >> 16;
    x *= UINT32_C(0x85EBCA6B);
    x ^= x >> 13;
    x *= UINT32_C(0xC2B2AE35);
    x ^= x >> 16;
    return ((double)(x >> 8) - 8388608.0) / 8388608.0;
}

static void set_weights(CornuModel *model)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        CornuArray   array = cornu_array_from(malloc(cornu_type_bytes(weight->type)),
                                              weight->type);
        const char *name = strrchr(weight->path, '/') + 1;
        for (int64_t k = 0; k < cornu_type_count(weight->type); k++)
            cornu_array_set(array, k, (float)(0.5 * hashed_uniform(name, k)));
        if (cornu_dtype_is_float(weight->type.dtype)) expect_ok(cornu_weight_write(weight, array));
        free(array.data);
    }
}

/* Input i of ROWS rows. */
static CornuArray input_of(const CornuModel *model, int i)
{
    CornuType type = cornu_symbol_type(cornu_model_input(model, i));
    char      name[16];
    snprintf(name, sizeof name, "x%d", i);
    type.shape.extent[0] = ROWS;
    for (int k = 1; k < type.shape.rank; k++)
        if (type.shape.extent[k] == CORNU_NONE) type.shape.extent[k] = OPEN;
    CornuArray array = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    for (int64_t k = 0; k < cornu_type_count(type); k++) {
        const double x = hashed_uniform(name, k);
        cornu_array_set(array, k, cornu_dtype_is_float(type.dtype) ? x : floor((x + 1.0) * 1.5));
    }
    return array;
}

/* null is NaN. */
static bool near(double a, const json_t *b)
{
    if (json_is_null(b)) return isnan(a);
    return fabs(a - json_number_value(b)) <= 2e-5 * (1.0 + fabs(json_number_value(b)));
}

/* Whether the outputs are those of Keras: shapes, means, means of absolute values. */
static bool as_keras(CornuArray *y, int count, const json_t *outputs)
{
    if (json_array_size(outputs) != (size_t)count) return false;
    for (int i = 0; i < count; i++) {
        const json_t *of = json_array_get(outputs, (size_t)i), *shape = json_array_get(of, 0);
        const int64_t n = cornu_type_count(y[i].type);
        double        mean = 0.0, absolute = 0.0;
        if (json_array_size(shape) != (size_t)y[i].type.shape.rank) return false;
        for (int k = 0; k < y[i].type.shape.rank; k++)
            if (json_integer_value(json_array_get(shape, (size_t)k)) != y[i].type.shape.extent[k])
                return false;
        for (int64_t k = 0; k < n; k++) {
            mean += cornu_array_get(y[i], k) / (double)n;
            absolute += fabs(cornu_array_get(y[i], k)) / (double)n;
        }
        const bool random = json_is_integer(json_array_get(of, 1));
        if (!random &&
            !(near(mean, json_array_get(of, 1)) && near(absolute, json_array_get(of, 2))))
            return false;
    }
    return true;
}

/* CORNU_OK if it predicts as Keras; else the status, with a message. *other: it predicts something
 * else. */
static CornuStatus predicts(CornuModel *model, const json_t *outputs, bool *other)
{
    CornuArray  x[MOST], y[MOST];
    CornuStatus status = CORNU_OK;
    const int   inputs = cornu_model_input_count(model), count = cornu_model_output_count(model);
    set_weights(model);
    for (int i = 0; i < inputs; i++) x[i] = input_of(model, i);
    for (int i = 0; i < count && i < MOST; i++) {
        CornuType type = cornu_symbol_type(cornu_model_output(model, i));
        type.shape.extent[0] = ROWS;
        for (int k = 1; k < type.shape.rank; k++)
            if (type.shape.extent[k] == CORNU_NONE) type.shape.extent[k] = OPEN;
        y[i] = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    }
    status = cornu_predict_on_batch_many(model, x, y);
    *other = !status && !as_keras(y, count, outputs);
    for (int i = 0; i < inputs; i++) free(x[i].data);
    for (int i = 0; i < count; i++) free(y[i].data);
    return status;
}

static const json_t *at_path(json_t *layer, const json_t *path, size_t length)
{
    json_t *at = layer;
    for (size_t i = 0; i < length; i++) {
        const json_t *key = json_array_get(path, i);
        at = json_is_string(key) ? json_object_get(at, json_string_value(key))
                                 : json_array_get(at, (size_t)json_integer_value(key));
    }
    return at;
}

/* The model without a key of its last layer. */
static json_t *without(const json_t *model, const json_t *path)
{
    json_t       *copy = json_deep_copy(model);
    json_t       *layers = json_object_get(json_object_get(copy, "config"), "layers");
    const size_t  length = json_array_size(path);
    json_t       *at = (json_t *)(uintptr_t)at_path(
        json_array_get(layers, json_array_size(layers) - 1), path, length - 1);
    const char   *key = json_string_value(json_array_get(path, length - 1));
    if (key) assert_int_equal(json_object_del(at, key), 0);
    else json_array_remove(at, (size_t)json_integer_value(json_array_get(path, length - 1)));
    return copy;
}

static int check_key(const json_t *model, const json_t *about)
{
    const json_t *path = json_object_get(about, "path");
    const json_t *outputs = json_object_get(about, "outputs");
    json_t       *config = without(model, path);
    bool          other = false;
    CornuModel   *made = cornu__model_from_config(config, NULL);
    CornuStatus   status = made ? predicts(made, outputs, &other) : cornu_error_take();
    const bool    wrong = other || (status && !*cornu_error_message());
    if (wrong) {
        const json_t *layers = json_object_get(json_object_get(config, "config"), "layers");
        const json_t *layer = json_array_get(layers, json_array_size(layers) - 1);
        char         *text = json_dumps(path, JSON_COMPACT);
        char         *want = json_dumps(outputs, JSON_COMPACT | JSON_ENCODE_ANY);
        fprintf(stderr, "%s without %s: %s; Keras: %s\n",
                json_string_value(json_object_get(layer, "class_name")), text,
                status ? "an error without a message" : "predicts", want);
        free(text);
        free(want);
    }
    cornu_model_free(made);
    json_decref(config);
    return wrong;
}

static void test_missing_keys(void **state)
{
    json_error_t error;
    json_t      *cases = json_load_file("tests/golden/missing/missing.json", 0, &error);
    int          wrong = 0, count = 0;
    (void)state;
    assert_non_null(cases);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *keys = json_object_get(json_array_get(cases, i), "keys");
        for (size_t k = 0; k < json_array_size(keys); k++, count++)
            wrong += check_key(json_object_get(json_array_get(cases, i), "model"),
                               json_array_get(keys, k));
    }
    json_decref(cases);
    assert_true(count > 1000);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_missing_keys) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
