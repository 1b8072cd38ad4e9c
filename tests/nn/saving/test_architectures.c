/* Architectures as Keras writes them (tests/golden/make_architectures.py): models read from them
 * predict what Keras predicts; written and read again, or cloned, they are the same. Damaged ones
 * are refused. Real Keras reads ours if the interpreter that CORNU_PYTHON names has it. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/saving/files_internal.h"
#include "../../datasets/files.h"
#include "../golden.h"
#include "../../skip.h"

enum { MOST = 2 };

#define FOLDER "tests/golden/architectures/"

static const char *const names[] = { "branches", "sequences", "image", "stack",
                                     "attention", "translate", "masked", "operations",
                                     "elementwise", "rearranged" };
enum { CASES = sizeof names / sizeof *names, SUMMARIES = CASES - 2 };

static json_t *keras_json(const char *name)
{
    char         path[96];
    json_error_t error;
    snprintf(path, sizeof path, FOLDER "%s.json", name);
    json_t *json = json_load_file(path, 0, &error);
    if (!json) fail_msg("%s: %s", path, error.text);
    return json;
}

static CornuModel *model_of(const json_t *json)
{
    CornuModel *model = cornu__model_from_config(json, NULL);
    if (cornu_error_take()) fail_msg("%s", cornu_error_message());
    return model;
}

static CornuModel *keras_model(const char *name)
{
    json_t     *json = keras_json(name);
    CornuModel *model = model_of(json);
    json_decref(json);
    return model;
}

static void set_weights(Golden *golden, const char *name, CornuModel *model)
{
    const json_t *about = json_object_get(golden->cases, name);
    char          key[16];
    assert_int_equal(cornu_model_weight_count(model),
                     json_integer_value(json_object_get(about, "weights")));
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        snprintf(key, sizeof key, "w%d", i);
        expect_ok(cornu_weight_write(cornu_model_weight(model, i),
                                     golden_array(golden, name, key)));
    }
}

static void check_predictions(Golden *golden, const char *name, CornuModel *model,
                              CornuDevice *device)
{
    CornuArray x[MOST], want[MOST], got[MOST];
    golden_arrays(golden, name, "x", x, MOST);
    const int outputs = golden_arrays(golden, name, "y", want, MOST);
    assert_int_equal(outputs, cornu_model_output_count(model));
    for (int i = 0; i < outputs; i++)
        got[i] = cornu_array_from(malloc(cornu_type_bytes(want[i].type)), want[i].type);
    expect_ok(cornu_compile(model, .device = device));
    expect_ok(cornu_predict_on_batch_many(model, x, got));
    for (int i = 0; i < outputs; i++) {
        expect_near(name, got[i].data, want[i], 1e-5);
        free(got[i].data);
    }
}

/* ---- Reading and writing ---- */

static void predicts_what_keras_predicts(void **state)
{
    const char  *name = *state;
    Golden       golden = golden_open(FOLDER "architectures.safetensors");
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = keras_model(name);
    assert_string_equal(cornu_model_name(model), name);
    set_weights(&golden, name, model);
    check_predictions(&golden, name, model, device);
    cornu_model_free(model);
    cornu_device_close(device);
    golden_close(&golden);
}

/* Keras' JSON is read and written; reading and writing that gives the same JSON. */
static void written_and_read_it_is_the_same(void **state)
{
    const char  *name = *state;
    Golden       golden = golden_open(FOLDER "architectures.safetensors");
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = keras_model(name);
    const char  *path = files_path(folder, "model.safetensors");
    set_weights(&golden, name, model);
    expect_ok(cornu_model_save(model, path));
    CornuModel *again = cornu_model_load(path);
    if (!again) fail_msg("%s", cornu_error_message());
    json_t *first = cornu__model_config(model), *second = cornu__model_config(again);
    assert_non_null(first);
    assert_true(json_equal(first, second));
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        assert_string_equal(cornu_model_weight(model, i)->path, cornu_model_weight(again, i)->path);
    check_predictions(&golden, name, again, device);
    json_decref(first);
    json_decref(second);
    cornu_model_free(model);
    cornu_model_free(again);
    cornu_device_close(device);
    golden_close(&golden);
    remove(path);
}

static void summary_shows_nested_layers(void **state)
{
    const char *name = *state;
    char        path[96];
    snprintf(path, sizeof path, FOLDER "%s.w100.txt", name);
    setenv("COLUMNS", "100", 1);
    assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
    CornuModel *model = keras_model(name);
    expect_ok(cornu_summary(model, .expand_nested = true, .print_fn = expect_file,
                            .print_context = path));
    cornu_model_free(model);
}

static void keras_reads_ours(void **state)
{
    const char *name = *state;
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char        command[700];
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not u.find_spec(\"keras\"))' 2>/dev/null", python);
    if (system(command) != 0) SKIP_FOR(SKIP_KERAS);
    Golden      golden = golden_open(FOLDER "architectures.safetensors");
    CornuModel *model = keras_model(name);
    const char *path = files_path(folder, "model.safetensors");
    set_weights(&golden, name, model);
    expect_ok(cornu_model_save(model, path));
    snprintf(command, sizeof command, "%s tests/golden/check_architecture.py %s %s %s", python,
             path, FOLDER "architectures.safetensors", name);
    assert_int_equal(system(command), 0);
    cornu_model_free(model);
    golden_close(&golden);
    remove(path);
}

/* ---- Clones ---- */

static double sum_of_weights(const CornuModel *model)
{
    double sum = 0.0;
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        const CornuArray   values = cornu_array_from(malloc(cornu_type_bytes(weight->type)),
                                                     weight->type);
        expect_ok(cornu_weight_read(weight, values));
        for (int64_t k = 0; k < cornu_type_count(weight->type); k++)
            sum += cornu_array_get(values, k);
        free(values.data);
    }
    return sum;
}

static void a_clone_has_weights_of_its_own(void **state)
{
    const char *name = *state;
    cornu_set_random_seed(1);
    CornuModel *model = keras_model(name), *like = cornu_model_clone(model);
    cornu_set_random_seed(2);
    CornuModel *other = cornu_model_clone(model);
    cornu_set_random_seed(0);
    assert_non_null(like);
    assert_non_null(other);
    json_t *first = cornu__model_config(model), *second = cornu__model_config(other);
    assert_true(json_equal(first, second));
    const double drawn = sum_of_weights(model);
    assert_true(sum_of_weights(like) == drawn);     /* with the same seed */
    assert_true(sum_of_weights(other) != drawn);
    CornuWeight *weight = cornu_model_weight(model, 0);
    CornuArray   zeros = cornu_array_from(calloc(1, cornu_type_bytes(weight->type)), weight->type);
    expect_ok(cornu_weight_write(weight, zeros));
    assert_true(sum_of_weights(model) != drawn);
    assert_true(sum_of_weights(like) == drawn);
    free(zeros.data);
    json_decref(first);
    json_decref(second);
    cornu_model_free(model);
    cornu_model_free(like);
    cornu_model_free(other);
}

/* Each input has a scale; a model without an input shape is cloned as such. */
static void a_clone_keeps_what_inputs_say(void **state)
{
    (void)state;
    CornuSymbol *a = cornu_input(.shape = { 2 }, .scale = 0.5);
    CornuSymbol *b = cornu_input(.shape = { 2 }, .scale = 0.25);
    CornuModel  *model = cornu_model(.inputs = { a, b },
                                     .outputs = { cornu_call(cornu_add(), a, b) });
    CornuModel  *clone = cornu_model_clone(model);
    assert_non_null(clone);
    json_t *input = cornu__input_config(clone);
    json_t *want = json_pack("{s:[f, f]}", "scale", 0.5, 0.25);
    assert_true(json_equal(input, want));
    json_decref(input);
    json_decref(want);
    cornu_model_free(model);
    cornu_model_free(clone);

    model = cornu_sequential(.name = "unbuilt", .input_scale = 0.125);
    cornu_model_add(model, cornu_dense(3));
    clone = cornu_model_clone(model);
    assert_non_null(clone);
    assert_false(cornu_model_built(clone));
    assert_true(cornu_model_input_scale(clone) == 0.125);
    assert_int_equal(cornu_model_layer_count(clone), 1);
    cornu_model_free(model);
    cornu_model_free(clone);
}

static void a_clone_keeps_policies(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { 2 });
    CornuSymbol *y = cornu_call(cornu_dense(2), cornu_call(cornu_dense(2, .dtype = "float32"), x));
    CornuModel  *model = cornu_model(.inputs = { x }, .outputs = { y },
                                     .policy = "mixed_bfloat16");
    CornuModel  *clone = cornu_model_clone(model);
    assert_non_null(clone);
    assert_string_equal(cornu_model_policy(clone)->name, "mixed_bfloat16");
    assert_string_equal(cornu_model_layer(clone, 1)->own_policy->name, "float32");
    assert_null(cornu_model_layer(clone, 2)->own_policy);
    cornu_model_free(model);
    cornu_model_free(clone);
}

/* ---- Damage ---- */

static void refuses(const char *text, CornuStatus status, const char *part)
{
    json_t     *json = json_loads(text, 0, NULL);
    CornuModel *model;
    assert_non_null(json);
    model = cornu__model_from_config(json, NULL);
    json_decref(json);
    assert_null(model);
    expect_error(cornu_error_take(), status, part);
}

#define FUNCTIONAL(layers, inputs, outputs)                                                    \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[" layers            \
    "],\"input_layers\":" inputs ",\"output_layers\":" outputs "}}"
#define INPUT                                                                                  \
    "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,4],\"name\":\"x\"},"     \
    "\"inbound_nodes\":[]}"
#define DENSE(name, calls)                                                                     \
    "{\"class_name\":\"Dense\",\"config\":{\"name\":\"" name "\",\"units\":4},"                \
    "\"inbound_nodes\":[" calls "]}"
#define TENSOR(layer, call, result)                                                            \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"keras_history\":[\"" layer "\"," #call \
    "," #result "]}}"
#define CALL(operand) "{\"args\":[" operand "],\"kwargs\":{}}"
#define ONE(layer) FUNCTIONAL(INPUT "," layer, "[\"x\",0,0]", "[[\"d\",0,0]]")

static void damage_is_named(void **state)
{
    (void)state;
    static const struct { CornuStatus status; const char *text, *message; } cases[] = {
        { CORNU_ERR_FORMAT, ONE(DENSE("d", CALL(TENSOR("y", 0, 0)))), "no layer \"y\"" },
        { CORNU_ERR_FORMAT, ONE(DENSE("d", CALL(TENSOR("x", 1, 0)))),
          "d: a result of call 1 of x is used, which has 1" },
        { CORNU_ERR_FORMAT, ONE(DENSE("d", CALL(TENSOR("x", -1, 0)))), "call -1 of x" },
        { CORNU_ERR_FORMAT, ONE(DENSE("d", CALL(TENSOR("x", 0, 3)))),
          "result 3 of x is used, which has 1" },
        { CORNU_ERR_FORMAT, ONE(DENSE("d", CALL(TENSOR("d", 0, 0)))),
          "d: call 0 depends on itself" },
        { CORNU_ERR_FORMAT,
          ONE(DENSE("d", CALL(TENSOR("e", 0, 0))) "," DENSE("e", CALL(TENSOR("d", 0, 0)))),
          "e: call 0 depends on itself, or on one that does" },
        { CORNU_ERR_FORMAT, ONE(DENSE("d", CALL(""))), "d: is called without a tensor" },
        { CORNU_ERR_UNSUPPORTED, ONE(DENSE("d", CALL("3"))),
          "d: is called on something other than a tensor" },
        { CORNU_ERR_UNSUPPORTED, ONE(DENSE("d", "3")),
          "d: is called on something other than a tensor" },
        { CORNU_ERR_FORMAT, ONE(DENSE("d", "")), "output_layers: a result of call 0 of d" },
        { CORNU_ERR_UNSUPPORTED,
          ONE(DENSE("d", "{\"args\":[" TENSOR("x", 0, 0) "],\"kwargs\":{\"verbose\":true}}")),
          "d: is called with \"verbose\"" },
        { CORNU_ERR_ARGUMENT, ONE(DENSE("d", CALL(TENSOR("x", 0, 0) "," TENSOR("x", 0, 0)))),
          "got 2 tensors, expected 1" },
        { CORNU_ERR_FORMAT, ONE(DENSE("x", "")), "two layers have the name \"x\"" },
        { CORNU_ERR_FORMAT, ONE("3"), "without class_name or name" },
        { CORNU_ERR_UNSUPPORTED,
          ONE("{\"class_name\":\"Add\",\"module\":\"mine\",\"config\":{\"name\":\"d\"},"
              "\"inbound_nodes\":[]}"),
          "d: there is no layer class \"Add\" of module \"mine\"" },
        { CORNU_ERR_UNSUPPORTED,
          ONE("{\"class_name\":\"Unique\",\"module\":\"keras.src.ops.numpy\",\"name\":\"d\"}"),
          "output_layers: the operation d of class Unique is not available" },
        { CORNU_ERR_FORMAT,
          ONE("{\"class_name\":\"Add\",\"module\":\"keras.src.ops.numpy\",\"name\":\"d\"}"),
          "d: an operation without name, config, args or kwargs" },
        { CORNU_ERR_UNSUPPORTED,
          ONE("{\"class_name\":\"Add\",\"module\":\"keras.src.ops.numpy\",\"name\":\"d\","
              "\"config\":{\"x1\":{\"class_name\":\"__keras_tensor__\",\"config\":99}},"
              "\"inbound_nodes\":[" CALL(TENSOR("x", 0, 0) ",2") "]}"),
          "d: an operand is neither a tensor nor a number" },
        { CORNU_ERR_UNSUPPORTED,
          ONE("{\"class_name\":\"Lambda\",\"config\":{\"name\":\"d\"},"
              "\"inbound_nodes\":[]}"),
          "d: a Lambda holds Python code" },
        { CORNU_ERR_FORMAT, FUNCTIONAL(INPUT, "{\"x\":[]}", "[\"x\",0,0]"),
          "input_layers is empty" },
        { CORNU_ERR_FORMAT, FUNCTIONAL(INPUT, "[\"x\",0,0]", "[[\"x\",0]]"),
          "output_layers: a tensor is not of the form [layer, call, result]" },
        { CORNU_ERR_UNSUPPORTED,
          FUNCTIONAL(INPUT "," DENSE("d", CALL(TENSOR("x", 0, 0))), "[\"d\",0,0]", "[\"d\",0,0]"),
          "m: .inputs[0] is d[0][0], the output of a layer" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refuses(cases[i].text, cases[i].status, cases[i].message);
}

/* A chain whose layers are listed far apart, and a model of an input alone. */
static void order_is_free(void **state)
{
    (void)state;
    json_t *json = json_loads(ONE(DENSE("d", CALL(TENSOR("e", 0, 0))) ","
                                  DENSE("e", CALL(TENSOR("x", 0, 0)))), 0, NULL);
    CornuModel *model = model_of(json);
    assert_string_equal(cornu_layer_name(cornu_model_layer(model, 1)), "e");
    cornu_model_free(model);
    json_decref(json);
}

/* Removes each member of the tree in turn, and replaces it by something else. */
static void damage_each(json_t *root, json_t *at, int *count)
{
    static const char *const others[] = { "null", "7", "-1", "\"x\"", "[]", "{}" };
    const size_t size = json_is_array(at) ? json_array_size(at) : json_object_size(at);
    size_t       i = 0;
    void        *member = json_object_iter(at);
    for (; i < size; i++, member = member ? json_object_iter_next(at, member) : NULL) {
        json_t *was = json_is_array(at) ? json_array_get(at, i) : json_object_iter_value(member);
        json_incref(was);
        if ((*count)++ % 5 == 0) {
            json_t *other = json_loads(others[*count / 5 % 6], JSON_DECODE_ANY, NULL);
            if (json_is_array(at)) json_array_set(at, i, other);
            else json_object_iter_set(at, member, other);
            json_decref(other);
            CornuModel *model = cornu__model_from_config(root, NULL);
            if (!model) assert_int_not_equal(cornu_error_take(), CORNU_OK);
            cornu_model_free(model);
            if (json_is_array(at)) json_array_set(at, i, was);
            else json_object_iter_set(at, member, was);
        }
        damage_each(root, was, count);
        json_decref(was);
    }
}

static void any_damage_is_survived(void **state)
{
    json_t *json = keras_json(*state);
    int     count = 0;
    damage_each(json, json, &count);
    print_message("# %d values, every fifth replaced\n", count);
    assert_true(count > 300);
    json_decref(json);
}

int main(void)
{
    static const struct { const char *name; CMUnitTestFunction test; } each[] = {
        { "predicts_what_keras_predicts", predicts_what_keras_predicts },
        { "written_and_read_it_is_the_same", written_and_read_it_is_the_same },
        { "summary_shows_nested_layers", summary_shows_nested_layers },
        { "a_clone_has_weights_of_its_own", a_clone_has_weights_of_its_own },
        { "any_damage_is_survived", any_damage_is_survived },
        { "keras_reads_ours", keras_reads_ours },
    };
    enum { PLAIN = 4, TESTS = sizeof each / sizeof *each };
    static char labels[TESTS * CASES][64];
    struct CMUnitTest tests[PLAIN + TESTS * CASES] = {
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(order_is_free),
        cmocka_unit_test(a_clone_keeps_what_inputs_say),
        cmocka_unit_test(a_clone_keeps_policies),
    };
    int count = PLAIN;
    for (int i = 0; i < TESTS * CASES; i++) {
        const int test = i / CASES, model = i % CASES;
        snprintf(labels[i], sizeof labels[i], "%s %s", each[test].name, names[model]);
        if (each[test].test == summary_shows_nested_layers && model >= SUMMARIES) continue;
        tests[count++] = (struct CMUnitTest){ labels[i], each[test].test, NULL, NULL,
                                              (void *)(intptr_t)names[model] };
    }
    return _cmocka_run_group_tests("architectures", tests, (size_t)count, files_begin, files_end);
}
