/* Operations on tensors without a batch, beside what Keras computes (tests/golden/operations): of
 * functional models, whose tensors have one, tests/python/test_ops.py has the others. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "../../../nn/layers/operations/operation_internal.h"
#include "../../../nn/cornu.h"
#include "../../expect.h"

enum { MOST = 512, MOST_IN = 4 };

static json_t *all;

/* A recorded call: its inputs, as tensors of the graph. */
typedef struct {
    CornuGraph  *graph;
    CornuTensor *in[MOST_IN];
    int          count;
} Recorded;

static double number(const json_t *value)
{
    return json_is_string(value) ? strtod(json_string_value(value), NULL)
                                 : json_number_value(value);
}

/* The input of this name, as an input of the graph that is fed. */
static CornuTensor *input(Recorded *r, const char *name)
{
    const json_t *values = json_object_get(json_object_get(all, "inputs"), name);
    const json_t *shape = json_object_get(json_object_get(all, "shapes"), name);
    const char   *dtype = json_string_value(json_object_get(json_object_get(all, "dtypes"), name));
    CornuType     type = { .dtype = strcmp(dtype, "int32") ? CORNU_F32 : CORNU_I32 };
    float         data[MOST];
    for (size_t i = 0; i < json_array_size(shape); i++)
        type.shape.extent[type.shape.rank++] = json_integer_value(json_array_get(shape, i));
    assert_true(json_array_size(values) <= MOST);
    const CornuArray array = cornu_array_from(data, type);
    for (size_t i = 0; i < json_array_size(values); i++)
        cornu_array_set(array, (int64_t)i, number(json_array_get(values, i)));
    CornuTensor *made = cornu_graph_input(r->graph, type);
    expect_ok(cornu_graph_feed(made, array));
    return made;
}

/* Keras' arguments as those of a layer, with operands in the place of inputs. */
static json_t *argument(Recorded *r, const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "input"));
    if (name) {
        assert_true(r->count < MOST_IN);
        r->in[r->count] = input(r, name);
        return json_pack("{s:s, s:i}", "class_name", "__keras_tensor__", "config", r->count++);
    }
    if (!json_is_array(value)) return json_incref((json_t *)value);
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        json_array_append_new(list, argument(r, json_array_get(value, i)));
    return list;
}

static CornuLayer *layer_of(Recorded *r, const json_t *c)
{
    const char *class_name = json_string_value(json_object_get(c, "class"));
    const char *module = json_string_value(json_object_get(c, "module"));
    char        full[64] = CORNU__OPERATIONS_MODULE;
    json_t     *given = argument(r, json_object_get(c, "args"));
    json_t     *config = json_object(), *args = json_array(), *kwargs = json_object();
    const CornuOperationClass *kind = cornu__operation_class(strcat(full, module), class_name);
    assert_non_null(kind);
    expect_ok(cornu__operation_bind(kind, given, NULL, config, args, kwargs));
    CornuLayer *layer = cornu__operation_create(kind, NULL, config, args, kwargs);
    json_decref(given);
    json_decref(config);
    json_decref(args);
    json_decref(kwargs);
    return layer;
}

static void compare(const json_t *c, int i, CornuTensor *got)
{
    const char   *name = json_string_value(json_object_get(c, "function"));
    const json_t *values = json_array_get(json_object_get(c, "results"), (size_t)i);
    const json_t *shape = json_array_get(json_object_get(c, "shapes"), (size_t)i);
    float         data[MOST];
    got = cornu_op_convert(got, CORNU_F32);
    if (!got) fail_msg("%s: %s", name, cornu_error_message());
    const CornuType type = cornu_tensor_type(got);
    assert_int_equal(type.shape.rank, json_array_size(shape));
    for (int k = 0; k < type.shape.rank; k++)
        assert_int_equal(type.shape.extent[k],
                         json_integer_value(json_array_get(shape, (size_t)k)));
    CornuArray out = cornu_array_from(data, type);
    expect_ok(cornu_run(cornu_tensor_graph(got), &got, 1, &out));
    for (size_t k = 0; k < json_array_size(values); k++) {
        const double want = number(json_array_get(values, k));
        if (isfinite(want) ? fabs(data[k] - want) > 1e-6 + 2e-5 * fabs(want) : data[k] != want)
            fail_msg("%s: element %zu of result %d is %g, expected %g", name, k, i, data[k], want);
    }
}

static void run(CornuDevice *device, const json_t *c)
{
    Recorded     r = { .graph = cornu_graph_create(device) };
    CornuTensor *out[CORNU_MAX_LAYER_TENSORS] = { NULL };
    CornuShape   shapes[MOST_IN];
    CornuLayer  *layer = layer_of(&r, c);
    CornuCall    call = { .graph = r.graph };
    for (int i = 0; i < r.count; i++) shapes[i] = cornu_tensor_shape(r.in[i]);
    expect_ok(cornu__operation_build(layer, shapes, r.count));
    out[0] = cornu__operation_call(layer, &call, r.in, r.count, out);
    assert_int_equal(cornu_layer_outputs(layer), json_array_size(json_object_get(c, "results")));
    for (int i = 0; i < cornu_layer_outputs(layer); i++) compare(c, i, out[i]);
    cornu_layer_free(layer);
    cornu_graph_free(r.graph);
}

static void as_in_keras(void **state)
{
    (void)state;
    const json_t *cases = json_object_get(all, "whole");
    CornuDevice  *device = cornu_device_open("cpu");
    assert_true(json_array_size(cases) >= 20);
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *c = json_array_get(cases, i);
        print_message("%s\n", json_string_value(json_object_get(c, "function")));
        run(device, c);
    }
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(as_in_keras) };
    json_error_t error;
    all = json_load_file("tests/golden/operations/operations.json", 0, &error);
    if (!all) return 1;
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    json_decref(all);
    return failed;
}
