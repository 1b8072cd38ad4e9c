/* What cornu_bindings_to_json says agrees with the compiler. tests/python/test_library.py compares
 * every field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "../../../nn/cornu.h"
#include "../../expect.h"

static json_t *bindings(void)
{
    char *text = cornu_bindings_to_json();
    assert_non_null(text);
    json_t *all = json_loads(text, 0, NULL);
    assert_non_null(all);
    free(text);
    return all;
}

static void expect_field(const json_t *all, const char *of, const char *name, size_t offset,
                         size_t size, const char *type)
{
    const json_t *fields = json_object_get(
        json_object_get(json_object_get(all, "structs"), of), "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        if (strcmp(json_string_value(json_array_get(field, 0)), name)) continue;
        assert_int_equal(json_integer_value(json_array_get(field, 1)), offset);
        assert_int_equal(json_integer_value(json_array_get(field, 2)), size);
        assert_string_equal(json_string_value(json_array_get(field, 3)), type);
        return;
    }
    fail_msg("no %s.%s", of, name);
}

static void test_structs(void **state)
{
    (void)state;
    json_t *all = bindings();
#define EXPECT(of, name, type) \
    expect_field(all, #of, #name, offsetof(of, name), sizeof(((of *)0)->name), type)
    EXPECT(CornuShape, rank, "i32");
    EXPECT(CornuShape, extent, "i64");
    EXPECT(CornuArray, type, "CornuType");
    EXPECT(CornuArray, data, "pointer");
    EXPECT(CornuFitConfig, xs, "CornuArray");
    EXPECT(CornuFitConfig, validation_data, "CornuData");
    EXPECT(CornuData, ys, "CornuArray");
    EXPECT(CornuFitConfig, validation_split, "f64");
    EXPECT(CornuFitConfig, no_shuffle, "bool");
    EXPECT(CornuFitConfig, callbacks, "pointer");
    EXPECT(CornuLayer, name, "text");
    EXPECT(CornuModelConfig, input_keys, "text");
    EXPECT(CornuTrainTest, description, "char");
    EXPECT(CornuCallback, epoch_end, "pointer");
#undef EXPECT
    assert_int_equal(json_integer_value(json_object_get(json_object_get(
        json_object_get(all, "structs"), "CornuFitConfig"), "size")), sizeof(CornuFitConfig));
    json_decref(all);
}

static void expect_function(const json_t *all, const char *name, const char *wanted)
{
    json_t *types = json_loads(wanted, 0, NULL);
    if (!json_equal(json_object_get(json_object_get(all, "functions"), name), types))
        fail_msg("%s is not %s", name, wanted);
    json_decref(types);
}

static void test_functions(void **state)
{
    (void)state;
    json_t *all = bindings();
    expect_function(all, "cornu_fit_from", "[\"pointer\", \"pointer\"]");
    expect_function(all, "cornu_error_message", "[\"text\", \"void\"]");
    expect_function(all, "cornu_layer_to_json", "[\"pointer\", \"pointer\"]");
    expect_function(all, "cornu_model_save", "[\"status\", \"pointer\", \"text\"]");
    expect_function(all, "cornu_weight_read", "[\"status\", \"pointer\", \"CornuArray\"]");
    expect_function(all, "cornu_symbol_type", "[\"CornuType\", \"pointer\"]");
    expect_function(all, "cornu_layer_enable_lora", "[\"status\", \"pointer\", \"i64\", \"f64\"]");
    expect_function(all, "cornu_operation_from",
                    "[\"pointer\", \"text\", \"text\", \"pointer\", \"i32\"]");
    expect_function(all, "cornu_early_stopping_from", "[\"pointer\", \"pointer\"]");
    json_decref(all);
}

static void test_the_rest(void **state)
{
    (void)state;
    json_t       *all = bindings();
    const json_t *constants = json_object_get(all, "constants");
    const json_t *status = json_array_get(json_object_get(all, "statuses"), CORNU_ERR_BUSY);
    assert_string_equal(json_string_value(json_object_get(all, "version")), CORNU_VERSION);
    assert_true(json_integer_value(json_object_get(constants, "CORNU_ZERO")) == CORNU_ZERO);
    assert_int_equal(json_integer_value(json_object_get(constants, "CORNU_NONE")), CORNU_NONE);
    assert_string_equal(json_string_value(json_array_get(status, 0)), "ERR_BUSY");
    assert_string_equal(json_string_value(json_array_get(json_object_get(all, "dtypes"),
                                                         CORNU_U8)), "u8");
    assert_true(json_array_size(json_object_get(all, "callbacks")) >= 8);
    assert_null(cornu_dense(-1));
    assert_null(cornu_bindings_to_json());
    expect_failure(NULL, CORNU_ERR_ARGUMENT, "units");
    json_decref(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_structs),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
