/* What cornu_classes_to_json says of classes, and layers and the arguments of compile made from
 * JSON. tests/python/test_classes.py compares all of it with Keras. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../../nn/saving/architecture/architecture_internal.h"
#include "../../../nn/saving/keras_internal.h"
#include "../../expect.h"

/* ---- Descriptions ---- */

static json_t *classes(void)
{
    char *text = cornu_classes_to_json();
    assert_non_null(text);
    json_t *all = json_loads(text, 0, NULL);
    assert_non_null(all);
    free(text);
    return all;
}

static const json_t *entry_of(const json_t *all, const char *kind, const char *class_name)
{
    const json_t *list = json_object_get(all, kind);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i);
        if (!strcmp(json_string_value(json_object_get(entry, "class_name")), class_name))
            return entry;
    }
    fail_msg("no %s in %s", class_name, kind);
    return NULL;
}

static const json_t *field_of(const json_t *entry, const char *name)
{
    const json_t *fields = json_object_get(entry, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        if (!strcmp(json_string_value(json_object_get(field, "name")), name)) return field;
    }
    fail_msg("no field %s", name);
    return NULL;
}

static const char *text_of(const json_t *field, const char *key)
{
    return json_string_value(json_object_get(field, key));
}

static void test_fields(void **state)
{
    (void)state;
    json_t       *all = classes();
    const json_t *dense = entry_of(all, "layers", "Dense");
    assert_true(json_is_true(json_object_get(field_of(dense, "units"), "required")));
    assert_null(json_object_get(field_of(dense, "units"), "default"));
    assert_null(json_object_get(field_of(dense, "activation"), "required"));
    assert_string_equal(text_of(field_of(dense, "activation"), "default"), "linear");
    assert_string_equal(text_of(field_of(dense, "activation"), "type"), "activation");
    assert_true(json_is_true(json_object_get(field_of(dense, "use_bias"), "default")));
    const json_t *padding = field_of(entry_of(all, "layers", "Conv2D"), "padding");
    assert_string_equal(text_of(padding, "default"), "valid");
    assert_string_equal(json_string_value(json_array_get(json_object_get(padding, "choices"), 1)),
                        "same");
    const json_t *orthogonal = entry_of(all, "regularizers", "OrthogonalRegularizer");
    assert_int_equal(json_array_size(json_object_get(field_of(orthogonal, "mode"), "choices")), 2);
    assert_string_equal(text_of(entry_of(all, "layers", "LSTM"), "operands"), "initial_state*");
    const json_t *decay = field_of(entry_of(all, "optimizers", "AdamW"), "weight_decay");
    assert_true(json_real_value(json_object_get(decay, "default")) == 0.004);
    assert_string_equal(text_of(json_array_get(json_object_get(
        entry_of(all, "optimizers", "AdamW"), "fields"), 1), "name"), "weight_decay");
    assert_true(json_real_value(json_object_get(
        field_of(entry_of(all, "regularizers", "L2"), "l2"), "default")) == 0.01);
    json_decref(all);
}

/* The strings of an enumeration are read as the values of which they are written. */
static void check_words(const CornuField *field)
{
    const CornuField at_0 = { field->name, field->kind, 0 };
    for (int i = 0; i < CORNU__MOST_WORDS; i++) {
        int     value = i, read = -1;
        json_t *word = cornu__fields_to_json(NULL, (const CornuField[]){ at_0, { 0 } }, &value,
                                             json_object());
        const json_t *text = json_object_get(word, field->name);
        if (field->kind->words[i]) {
            assert_string_equal(json_string_value(text), field->kind->words[i]);
            expect_ok(cornu__read_field(NULL, &at_0, text, &read));
            assert_int_equal(read, i);
        }
        json_decref(word);
    }
}

static void kinds_of_fields_are_whole(void **state)
{
    int words = 0;
    (void)state;
    for (const CornuLayerClass *const *kind = cornu__layer_classes; *kind; kind++) {
        assert_non_null((*kind)->keras);
        for (const CornuField *field = (*kind)->keras->fields; field->name; field++) {
            assert_non_null(field->kind->name);
            assert_true(field->kind->read && field->kind->write);
            if (!field->kind->words[0]) continue;
            check_words(field);
            words++;
        }
    }
    assert_true(words > 20);
}

/* Each class of layers.def is described, and nearly each could be made for its defaults. */
static void test_all_layers_are_described(void **state)
{
    (void)state;
    json_t *all = classes();
    int     without = 0, count = 0;
    for (const CornuLayerClass *const *kind = cornu__layer_classes; *kind; kind++, count++) {
        const json_t *fields = json_object_get(entry_of(all, "layers", (*kind)->class_name),
                                               "fields");
        bool known = json_array_size(fields) == 0;
        for (size_t i = 0; i < json_array_size(fields); i++) {
            const json_t *field = json_array_get(fields, i);
            assert_non_null(text_of(field, "type"));
            known |= json_object_get(field, "default") || json_object_get(field, "required");
        }
        without += !known;
    }
    assert_int_equal(json_array_size(json_object_get(all, "layers")), count);
    assert_true(count > 100);
    assert_true(without <= 1);   /* Pipeline, of layers that agree */
    json_decref(all);
}

static void test_rows_of_orders_name_classes(void **state)
{
    (void)state;
    json_t *all = classes();
#define ORDER(kind, class_name, order) entry_of(all, #kind, #class_name);
#include "../../../nn/saving/orders.def"
#undef ORDER
#define SIGNATURE(class_name, text) entry_of(all, "operations", #class_name);
#define FUNCTION(class_name, name) \
    assert_string_equal(text_of(entry_of(all, "operations", #class_name), "name"), #name);
#include "../../../nn/layers/operations/signatures.def"
    json_decref(all);
}

static void test_operations(void **state)
{
    (void)state;
    json_t       *all = classes();
    const json_t *pad = entry_of(all, "operations", "Pad");
    const json_t *arguments = json_object_get(pad, "arguments");
    assert_string_equal(text_of(pad, "module"), "numpy");
    assert_string_equal(text_of(json_array_get(arguments, 2), "name"), "mode");
    assert_string_equal(text_of(json_array_get(arguments, 2), "default"), "constant");
    assert_true(json_is_true(json_object_get(json_array_get(arguments, 3), "operand")));
    assert_true(json_is_null(json_object_get(json_array_get(arguments, 3), "default")));
    assert_null(json_object_get(json_array_get(arguments, 1), "default"));
    assert_true(json_is_true(json_object_get(entry_of(all, "operations", "TopK"), "several")));
    json_decref(all);
}

static void expect_vocabulary(CornuLayer *layer, bool no_special_tokens, const char *wanted)
{
    char *text = cornu_layer_vocabulary_to_json(layer, no_special_tokens);
    if (!text) fail_msg("%s", cornu_error_message());
    assert_string_equal(text, wanted);
    free(text);
}

static void test_vocabularies(void **state)
{
    (void)state;
    json_t     *all = classes();
    CornuLayer *words = cornu_string_lookup(.vocabulary = cornu_texts("b", "a"));
    CornuLayer *numbers = cornu_integer_lookup(.vocabulary = cornu_numbers(7, 5), .mask_token = 9);
    CornuLayer *other = cornu_dense(2, .name = "other");
    expect_vocabulary(words, false, "[\"[UNK]\",\"b\",\"a\"]");
    expect_vocabulary(words, true, "[\"b\",\"a\"]");
    expect_vocabulary(numbers, false, "[9,-1,7,5]");
    expect_vocabulary(numbers, true, "[7,5]");
    expect_failure(cornu_layer_vocabulary_to_json(other, false), CORNU_ERR_ARGUMENT,
                   "other: is of class Dense, expected StringLookup, IntegerLookup or");
    assert_true(json_is_true(json_object_get(entry_of(all, "layers", "IntegerLookup"),
                                             "has_vocabulary")));
    assert_true(json_is_true(json_object_get(entry_of(all, "layers", "Normalization"), "adapts")));
    assert_null(json_object_get(entry_of(all, "layers", "Dense"), "adapts"));
    cornu_layer_free(words);
    cornu_layer_free(numbers);
    cornu_layer_free(other);
    json_decref(all);
}

static void test_pending_errors_stay(void **state)
{
    (void)state;
    assert_null(cornu_dense(-1));
    assert_null(cornu_classes_to_json());
    assert_null(cornu_layer_from_json("{}"));
    expect_failure(NULL, CORNU_ERR_ARGUMENT, "units");
}

/* ---- Layers ---- */

static CornuLayer *layer_of(const char *class_name, const char *arguments)
{
    char text[512];
    snprintf(text, sizeof text, "{\"class_name\": \"%s\", \"config\": {\"name\": \"it\"%s%s}}",
             class_name, *arguments ? ", " : "", arguments);
    return cornu_layer_from_json(text);
}

/* The layer's argument as JSON, which the caller releases. */
static json_t *argument_of(const char *class_name, const char *arguments, const char *name)
{
    CornuLayer *layer = layer_of(class_name, arguments);
    if (!layer) fail_msg("%s", cornu_error_message());
    char *text = cornu_layer_to_json(layer);
    assert_non_null(text);
    json_t *value = json_loads(text, 0, NULL);
    json_t *found = json_incref(json_object_get(json_object_get(value, "config"), name));
    assert_non_null(found);
    json_decref(value);
    free(text);
    cornu_layer_free(layer);
    return found;
}

static void expect_argument(const char *class_name, const char *arguments, const char *name,
                            const char *wanted)
{
    json_t *found = argument_of(class_name, arguments, name);
    json_t *value = json_loads(wanted, JSON_DECODE_ANY, NULL);
    if (!json_equal(found, value)) {
        char *text = json_dumps(found, JSON_ENCODE_ANY);
        fail_msg("%s(%s).%s is %s, expected %s", class_name, arguments, name, text, wanted);
    }
    json_decref(found);
    json_decref(value);
}

static void test_arguments_are_keras(void **state)
{
    (void)state;
    expect_argument("Dense", "\"units\": 3", "activation", "\"linear\"");
    expect_argument("LSTM", "\"units\": 3", "activation", "\"tanh\"");
    expect_argument("LSTM", "\"units\": 3, \"activation\": null", "activation", "\"linear\"");
    expect_argument("ZeroPadding2D", "\"padding\": 2", "padding", "[[2, 2], [2, 2]]");
    expect_argument("ZeroPadding2D", "\"padding\": [1, 2]", "padding", "[[1, 1], [2, 2]]");
    expect_argument("ZeroPadding2D", "\"padding\": [[1, 2], 3]", "padding", "[[1, 2], [3, 3]]");
    expect_argument("ZeroPadding2D", "\"padding\": 0", "padding", "[[0, 0], [0, 0]]");
    expect_argument("Cropping3D", "\"cropping\": 1", "cropping", "[[1, 1], [1, 1], [1, 1]]");
    expect_argument("STFTSpectrogram", "", "window", "\"hann\"");
    expect_argument("STFTSpectrogram", "", "scaling", "\"density\"");
    expect_argument("STFTSpectrogram", "\"window\": null, \"scaling\": null", "window", "null");
    expect_argument("MelSpectrogram", "", "window", "\"hann\"");
    expect_argument("MelSpectrogram", "\"window\": null", "window", "null");
}

static void test_wrong_layers_are_refused(void **state)
{
    (void)state;
    expect_failure(layer_of("Dense", ""), CORNU_ERR_ARGUMENT, "units");
    expect_failure(layer_of("Dens", ""), CORNU_ERR_UNSUPPORTED, "Dens");
    expect_failure(layer_of("Dense", "\"units\": 2, \"unit\": 3"), CORNU_ERR_UNSUPPORTED, "unit");
    expect_failure(layer_of("ZeroPadding2D", "\"padding\": [1, 2, 3]"), CORNU_ERR_FORMAT,
                   "a number or two lists");
    expect_failure(cornu_layer_from_json("{"), CORNU_ERR_FORMAT, "");
    expect_failure(cornu_layer_from_json("{\"class_name\": \"Dense\"}"), CORNU_ERR_FORMAT, "name");
    expect_failure(cornu_layer_from_json(NULL), CORNU_ERR_ARGUMENT, "NULL");
    expect_failure(cornu_layer_to_json(NULL), CORNU_ERR_ARGUMENT, "NULL");
}

/* The caller keeps its reference when a model takes the layer. */
static void test_a_layer_outlives_its_models(void **state)
{
    (void)state;
    CornuLayer *layer = layer_of("Dense", "\"units\": 2");
    for (int i = 0; i < 2; i++) {
        CornuModel *model = cornu_sequential(.input_shape = { 3 });
        expect_ok(cornu_model_add(model, layer));
        cornu_model_free(model);
    }
    assert_string_equal(cornu_layer_name(layer), "it");
    cornu_layer_free(layer);
}

/* ---- Compiling ---- */

static CornuModel *small(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    expect_ok(cornu_model_add(model, cornu_dense(2)));
    return model;
}

static void test_compile(void **state)
{
    (void)state;
    CornuModel *model = small();
    double      rate;
    expect_ok(cornu_compile_from_json(model, "{\"optimizer\": \"sgd\", \"loss\": \"mse\", "
                                             "\"metrics\": [\"mae\"], \"gradient_norm\": true}",
                                      NULL));
    assert_int_equal(cornu_model_metric_count(model), 3);
    assert_string_equal(cornu_model_metric_name(model, 1), "mae");
    assert_string_equal(cornu_model_metric_name(model, 2), "gradient_norm");
    expect_ok(cornu_optimizer_learning_rate(cornu_model_optimizer(model), &rate));
    assert_true((float)rate == 0.01f);
    char *text = cornu_compile_to_json(model);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"class_name\":\"SGD\""));
    expect_ok(cornu_compile_from_json(model, text, NULL));
    free(text);
    CornuModel *other = small();
    expect_failure(cornu_compile_to_json(other), CORNU_ERR_UNSUPPORTED, "is not compiled");
    cornu_model_free(other);
    expect_error(cornu_compile_from_json(model, "{\"loss\": \"mse\"}", NULL),
                 CORNU_ERR_UNSUPPORTED, "compiled with");
    expect_error(cornu_compile_from_json(model, "[", NULL), CORNU_ERR_FORMAT, "");
    expect_error(cornu_compile_from_json(model, NULL, NULL), CORNU_ERR_ARGUMENT, "NULL");
    expect_error(cornu_compile_from_json(NULL, "{}", NULL), CORNU_ERR_ARGUMENT, "NULL");
    cornu_model_free(model);
}

/* Metrics in a dictionary, as many as there may be and one more. */
static void test_most_metrics(void **state)
{
    (void)state;
    CornuModel *model = small();
    for (int count = CORNU_MAX_METRICS; count <= CORNU_MAX_METRICS + 1; count++) {
        char text[8000];
        int  at = snprintf(text, sizeof text, "{\"optimizer\": \"sgd\", \"loss\": \"mse\", "
                           "\"metrics\": {");
        for (int i = 0; i < count; i++)
            at += snprintf(text + at, sizeof text - (size_t)at,
                           "%s\"%d\": {\"class_name\": \"MeanAbsoluteError\", "
                           "\"config\": {\"name\": \"m%d\"}}", i ? ", " : "", i, i);
        snprintf(text + at, sizeof text - (size_t)at, "}}");
        if (count == CORNU_MAX_METRICS) expect_ok(cornu_compile_from_json(model, text, NULL));
        else expect_error(cornu_compile_from_json(model, text, NULL), CORNU_ERR_UNSUPPORTED,
                          "are more than 32");
    }
    cornu_model_free(model);
}

/* An argument that is absent has the default of its class, null is none. */
static void test_arguments_of_optimizers(void **state)
{
    (void)state;
    static const struct { const char *config; double rate, decay; } cases[] = {
        { "{}", 0.001, 0.004 },
        { "{\"learning_rate\": 0.5}", 0.5, 0.004 },
        { "{\"weight_decay\": 0.25}", 0.001, 0.25 },
        { "{\"weight_decay\": null}", 0.001, 0.0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *config = json_loads(cases[i].config, 0, NULL);
        json_t *value = json_pack("{s:s, s:o}", "class_name", "AdamW", "config", config);
        CornuOptimizer *optimizer = cornu__optimizer_from_json(value);
        assert_non_null(optimizer);
        json_t       *written = cornu__optimizer_to_json(optimizer);
        const json_t *found = json_object_get(written, "config");
        assert_true(json_number_value(json_object_get(found, "learning_rate")) == cases[i].rate);
        assert_true(json_number_value(json_object_get(found, "weight_decay")) == cases[i].decay);
        json_decref(written);
        json_decref(value);
        cornu_optimizer_free(optimizer);
    }
}

static void test_one_hot_predictions_are_the_default(void **state)
{
    (void)state;
    static const struct { const char *config; bool sparse; } cases[] = {
        { "{\"num_classes\": 3}", false },
        { "{\"num_classes\": 3, \"sparse_y_pred\": true}", true },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_t *value = json_pack("{s:s, s:o}", "class_name", "OneHotMeanIoU", "config",
                                  json_loads(cases[i].config, 0, NULL));
        CornuMetric *metric = cornu__metric_from_json(value);
        assert_non_null(metric);
        json_t *written = cornu__metric_to_json(metric);
        assert_true(json_is_true(json_object_get(json_object_get(written, "config"),
                                                 "sparse_y_pred")) == cases[i].sparse);
        json_decref(written);
        json_decref(value);
        cornu_metric_free(metric);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields),
        cmocka_unit_test(kinds_of_fields_are_whole),
        cmocka_unit_test(test_all_layers_are_described),
        cmocka_unit_test(test_rows_of_orders_name_classes),
        cmocka_unit_test(test_operations),
        cmocka_unit_test(test_vocabularies),
        cmocka_unit_test(test_pending_errors_stay),
        cmocka_unit_test(test_arguments_are_keras),
        cmocka_unit_test(test_wrong_layers_are_refused),
        cmocka_unit_test(test_a_layer_outlives_its_models),
        cmocka_unit_test(test_compile), cmocka_unit_test(test_most_metrics),
        cmocka_unit_test(test_arguments_of_optimizers),
        cmocka_unit_test(test_one_hot_predictions_are_the_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
