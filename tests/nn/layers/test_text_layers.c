/* Layers of strings and hashes beside those of Keras and TensorFlow (tests/golden/text): from
 * Keras' JSON, adapted to its data, computed on arrays and over data sets, written to JSON
 * again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/saving/architecture/architecture_internal.h"
#include "../golden.h"

/* ---- Cases ---- */

/* Nested lists of strings or whole numbers as an array, freed with free(). */
static CornuArray array_of(const json_t *value)
{
    CornuShape    shape = { 0 };
    const json_t *at = value;
    for (; json_is_array(at); at = json_array_get(at, 0))
        shape.extent[shape.rank++] = (int64_t)json_array_size(at);
    const bool    strings = json_is_string(at);
    const int64_t count = cornu_shape_count(shape);
    CornuArray    array = { cornu_type_from(strings ? CORNU_STRING : CORNU_I64, shape), NULL };
    array.data = calloc((size_t)count + 1, 8);
    assert_non_null(array.data);
    for (int64_t i = 0; i < count; i++) {
        const json_t *one = shape.rank == 1 ? json_array_get(value, (size_t)i)
            : json_array_get(json_array_get(value, (size_t)(i / shape.extent[1])),
                             (size_t)(i % shape.extent[1]));
        if (strings) ((const char **)array.data)[i] = json_string_value(one);
        else ((int64_t *)array.data)[i] = json_integer_value(one);
    }
    return array;
}

/* Flattens nested lists of results. */
static void flatten(const json_t *value, const json_t **to, int64_t *count)
{
    for (size_t i = 0; i < json_array_size(value); i++)
        flatten(json_array_get(value, i), to, count);
    if (!json_is_array(value)) to[(*count)++] = value;
}

static void expect_same(const char *name, CornuArray got, const json_t *about)
{
    const json_t *shape = json_object_get(about, "shape");
    const json_t *want[4096];
    int64_t       count = 0;
    if (got.type.shape.rank != (int)json_array_size(shape)) fail_msg("%s: the rank differs", name);
    for (int i = 0; i < got.type.shape.rank; i++)
        if (got.type.shape.extent[i] != json_integer_value(json_array_get(shape, (size_t)i)))
            fail_msg("%s: extent %d is %d", name, i, (int)got.type.shape.extent[i]);
    flatten(json_object_get(about, "output"), want, &count);
    assert_int_equal(count, cornu_type_count(got.type));
    for (int64_t i = 0; i < count; i++) {
        if (got.type.dtype == CORNU_STRING) {
            assert_string_equal(((const char **)got.data)[i], json_string_value(want[i]));
            continue;
        }
        const double number = json_number_value(want[i]), value = cornu_array_get(got, i);
        if (fabs(value - number) > 1e-6 * fabs(number))
            fail_msg("%s: element %d is %g, Keras has %g", name, (int)i, value, number);
    }
}

static void expect_vocabulary(const CornuLayer *layer, const json_t *want)
{
    CornuTexts texts;
    expect_ok(cornu_layer_vocabulary(layer, &texts));
    assert_int_equal(texts.count, json_array_size(want));
    for (int64_t i = 0; i < texts.count; i++)
        assert_string_equal(texts.values[i],
                            json_string_value(json_array_get(want, (size_t)i)));
    free((void *)(uintptr_t)texts.values);
}

/* The same elements one by one, and in batches of which the last is not full. */
static void check_dataset(const char *name, const CornuLayer *layer, const CornuArray *in,
                          int count, CornuArray want, int64_t batch_size)
{
    const CornuBatch *batch;
    const int64_t     rows = want.type.shape.extent[0];
    const size_t      bytes = cornu_type_bytes(want.type) / (size_t)rows;
    CornuDataset     *data = cornu_dataset_from_arrays(in, count);
    if (batch_size) data = cornu_dataset_batch(data, batch_size, false);
    data = cornu_dataset_layer(data, layer, 0, count);
    if (!data) {      /* a row is as long as the longest one of an array */
        assert_non_null(strstr(cornu_error_message(), ".output_sequence_length"));
        cornu_error_take();
        return;
    }
    CornuIterator *iterator = cornu_iterator_begin(data, 0);
    assert_non_null(iterator);
    for (int64_t row = 0; row < rows; row += batch->valid) {
        expect_ok(cornu_iterator_next(iterator, &batch));
        assert_non_null(batch);
        assert_int_equal(batch->count, 1);
        if (memcmp(batch->arrays[0].data, (char *)want.data + (size_t)row * bytes,
                   (size_t)batch->valid * bytes) && want.type.dtype != CORNU_STRING)
            fail_msg("%s: row %d differs in a data set", name, (int)row);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(data);
}

static void check_case(const json_t *about)
{
    const char   *name = json_string_value(json_object_get(about, "name"));
    const json_t *inputs = json_object_get(about, "inputs");
    const json_t *adapt = json_object_get(about, "adapt");
    const json_t *vocabulary = json_object_get(about, "vocabulary");
    const int     count = (int)json_array_size(inputs);
    CornuLayer   *layer;
    CornuArray    in[4], out;
    if (cornu__layer_from_json(json_object_get(about, "layer"), NULL, &layer))
        fail_msg("%s: %s", name, cornu_error_message());
    for (int i = 0; i < count; i++) in[i] = array_of(json_array_get(inputs, (size_t)i));
    if (adapt) {
        CornuArray data = array_of(adapt);
        expect_ok(cornu_adapt(layer, .x = data));
        free(data.data);
    }
    if (vocabulary) expect_vocabulary(layer, vocabulary);
    if (cornu_layer_compute(layer, in, count, &out))
        fail_msg("%s: %s", name, cornu_error_message());
    expect_same(name, out, about);
    check_dataset(name, layer, in, count, out, 0);
    check_dataset(name, layer, in, count, out, 4);
    if (!adapt) {     /* written again, it is the same layer */
        CornuLayer *copy;
        CornuArray  again;
        json_t     *json = cornu__layer_to_json(layer, NULL);
        assert_non_null(json);
        if (cornu__layer_from_json(json, NULL, &copy))
            fail_msg("%s: %s", name, cornu_error_message());
        expect_ok(cornu_layer_compute(copy, in, count, &again));
        expect_same(name, again, about);
        free(again.data);
        cornu_layer_free(copy);
        json_decref(json);
    }
    free(out.data);
    for (int i = 0; i < count; i++) free(in[i].data);
    cornu_layer_free(layer);
}

static void cases_of_keras(void **state)
{
    (void)state;
    json_error_t error;
    json_t      *cases = json_load_file("tests/golden/text/layers.json", 0, &error);
    if (!cases) fail_msg("%s", error.text);
    assert_int_equal(json_array_size(cases), 45);
    for (size_t i = 0; i < json_array_size(cases); i++) check_case(json_array_get(cases, i));
    json_decref(cases);
}

/* ---- Functions of the caller's ---- */

/* The string without its first character; of "" two strings, which are refused. */
static CornuStatus shorter(const CornuTextFunction *self, const char *string, CornuTextStrings *out)
{
    ++*(int *)self->context;
    if (!*string && cornu_text_add(out, "")) return cornu_error_status();
    return cornu_text_add(out, *string ? string + 1 : "");
}

/* Each character. */
static CornuStatus characters(const CornuTextFunction *self, const char *string,
                              CornuTextStrings *out)
{
    (void)self;
    for (; *string; string++)
        if (cornu_text_add(out, (char[]){ *string, 0 })) return cornu_error_status();
    return CORNU_OK;
}

static void functions_of_the_caller(void **state)
{
    const char *texts[] = { "xaba", "yb" }, *empty[] = { "" };
    int         calls = 0;
    (void)state;
    CornuLayer *layer = cornu_text_vectorization(
        .standardize_by = { .call = shorter, .name = "shorter", .context = &calls },
        .split_by = { .call = characters });
    assert_non_null(layer);
    assert_int_equal(cornu_adapt(layer, .x = { { CORNU_STRING, cornu_shape(2) }, texts }),
                     CORNU_OK);
    assert_int_equal(calls, 2);
    char *words = cornu_layer_vocabulary_to_json(layer, true);
    assert_string_equal(words, "[\"b\",\"a\"]");
    free(words);
    json_t *object = cornu__layer_to_json(layer, NULL);
    json_t *written = json_object_get(json_object_get(object, "config"), "standardize");
    assert_string_equal(json_string_value(json_object_get(written, "class_name")), "function");
    assert_string_equal(json_string_value(json_object_get(written, "config")), "shorter");
    json_decref(object);
    assert_int_equal(cornu_adapt(layer, .x = { { CORNU_STRING, cornu_shape(1) }, empty }),
                     CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "standardize adds 2 strings, expected 1"));
    assert_int_equal(cornu_text_add(NULL, NULL), CORNU_ERR_ARGUMENT);
    cornu_layer_free(layer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_of_keras), cmocka_unit_test(functions_of_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
