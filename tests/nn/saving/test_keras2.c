/* Files of Keras 2 and tf.keras, as tf-keras wrote them (tests/golden/make_keras2.py), and a .h5
 * file of Keras 3 that was not trained (make_keras3_h5.py): they predict as there, training
 * continues as there, and they are saved as models of Keras 3. */
#include "golden_files.h"
#include "../../skip.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4, STEPS = 4 };

#define KERAS2 "tests/golden/keras2/"

typedef struct { const char *name, *suffix; double bound; bool compiled; } Case;

/* bound: bfloat16 has 8 bits, and each system rounds where it likes. */
#define PLAIN(name, suffix) { name, suffix, 1e-5, false }
#define COMPILED(name, suffix) { name, suffix, 1e-5, true }

static const Case cases[] = {
    PLAIN("images", ".h5"), PLAIN("volumes", ".h5"), PLAIN("recurrent", ".h5"),
    PLAIN("convolved", ".h5"), PLAIN("oldest", ".h5"), PLAIN("cudnn", ".h5"),
    PLAIN("merged", ".h5"), PLAIN("nested", ".h5"), PLAIN("states", ".h5"),
    PLAIN("prepared", ".h5"), PLAIN("functions", ".h5"), { "policy", ".h5", 1.0 / 128, false },
    PLAIN("archive_functional", ".keras"),
    COMPILED("adam", ".h5"), COMPILED("adamax", ".h5"), COMPILED("rmsprop", ".h5"),
    COMPILED("sgd", ".hdf5"), COMPILED("adadelta", ".h5"), COMPILED("adagrad", ".h5"),
    COMPILED("ftrl", ".h5"), COMPILED("adamw", ".h5"), COMPILED("nadam", ".h5"),
    COMPILED("decayed", ".h5"), COMPILED("old_adam", ".h5"), COMPILED("old_sgd", ".h5"),
    COMPILED("old_rmsprop", ".h5"), COMPILED("old_adagrad", ".h5"),
    COMPILED("old_adadelta", ".h5"), COMPILED("old_ftrl", ".h5"), COMPILED("outputs", ".h5"),
    COMPILED("archive", ".keras"), COMPILED("unnamed", ".h5"),
    COMPILED("sorted", ".h5"), COMPILED("unused", ".h5"),
};
enum { CASES = sizeof cases / sizeof *cases };

static const char *path_of(const Case *of, const char *suffix)
{
    static char path[120];
    snprintf(path, sizeof path, KERAS2 "%s%s", of->name, suffix);
    return path;
}

/* Arrays "x0", "x1", …; their number. */
static int arrays_of(const CornuNpz *file, char letter, CornuArray to[MOST])
{
    int count = 0;
    for (; count < MOST; count++) {
        const char             name[] = { letter, (char)('0' + count), '\0' };
        const CornuNamedArray *found = cornu_npz_find(file, name);
        if (!found) break;
        to[count] = found->array;
    }
    return count;
}

static CornuNpz *data_of(const Case *of)
{
    CornuNpz *data = cornu_npz_open(path_of(of, ".npz"));
    if (!data) fail_msg("%s", cornu_error_message());
    return data;
}

static void expect_predictions(CornuModel *model, const Case *of, const CornuNpz *data)
{
    CornuArray x[MOST], want[MOST], got[MOST];
    arrays_of(data, 'x', x);
    const int outputs = arrays_of(data, 'y', want);
    assert_int_equal(outputs, cornu_model_output_count(model));
    for (int i = 0; i < outputs; i++)
        got[i] = cornu_array_from(malloc(cornu_type_bytes(want[i].type)), want[i].type);
    expect_ok(cornu_predict_on_batch_many(model, x, got));
    for (int i = 0; i < outputs; i++) {
        expect_near(of->name, got[i].data, want[i], of->bound);
        free(got[i].data);
    }
}

static void test_predicts(void **state)
{
    const Case *of = *state;
    static const char *const saved[] = { ".keras", ".safetensors" };
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuNpz   *data = data_of(of);
    CornuModel *model = expect_model(cornu_model_load(path_of(of, of->suffix)));
    expect_predictions(model, of, data);
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) {
        expect_ok(cornu_model_save(model, here("a", saved[i])));
        CornuModel *again = expect_model(cornu_model_load(here("a", saved[i])));
        expect_predictions(again, of, data);
        cornu_model_free(again);
    }
    cornu_model_free(model);
    cornu_npz_close(data);
}

static void test_continues(void **state)
{
    const Case *of = *state;
    CornuArray  x[MOST], t[MOST];
    float       got[STEPS];
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuNpz   *data = data_of(of);
    CornuModel *model = expect_model(cornu_model_load_compiled(path_of(of, of->suffix), device));
    arrays_of(data, 'x', x);
    arrays_of(data, 't', t);
    for (int i = 0; i < STEPS; i++) {
        double logs[16];
        expect_ok(cornu_model_reset_metrics(model));
        expect_ok(cornu_train_on_batch_many(model, x, t, logs));
        got[i] = (float)logs[0];
    }
    expect_near(of->name, got, cornu_npz_find(data, "losses")->array, 1e-5);
    cornu_model_free(model);
    cornu_npz_close(data);
}

/* Weights alone, into a model that has none of them yet. */
static void test_weights_of_cudnn(void **state)
{
    const Case *of = *state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuNpz   *data = data_of(of);
    CornuModel *model = expect_model(cornu_model_load(path_of(of, of->suffix)));
    CornuModel *other = expect_model(cornu_model_clone(model));
    expect_ok(cornu_model_load_weights(other, path_of(of, of->suffix)));
    expect_predictions(other, of, data);
    cornu_model_free(other);
    cornu_model_free(model);
    cornu_npz_close(data);
}

/* ---- JSON that tf-keras does not write any more ---- */

#define DENSE(more) \
    "{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":3," more "\"use_bias\":true}}"

static void test_lists_of_layers(void **state)
{
    (void)state;
    /* Keras 2.0: the config of a Sequential model is a list of its layers. */
    CornuModel *model = expect_model(cornu_model_from_json(
        "{\"class_name\":\"Sequential\",\"keras_version\":\"2.0.8\",\"config\":["
        DENSE("\"batch_input_shape\":[null,4],\"activation\":\"hard_sigmoid\",") "]}"));
    char *json = cornu_model_to_json(model);
    assert_non_null(strstr(json, "\"keras_2_hard_sigmoid\""));
    assert_int_equal(cornu_model_parameters(model), 15);
    free(json);
    cornu_model_free(model);
    /* Without a version what is in it shows that it is old. */
    model = expect_model(cornu_model_from_json(
        "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":["
        DENSE("\"batch_input_shape\":[null,5],") "]}}"));
    assert_int_equal(cornu_model_parameters(model), 18);
    cornu_model_free(model);
}

/* hard_sigmoid of Keras 3 is another function, and stays so. */
static void test_keras_3_stays(void **state)
{
    (void)state;
    CornuModel *model = expect_model(cornu_model_from_json(
        "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":["
        "{\"class_name\":\"InputLayer\",\"config\":{\"batch_shape\":[null,4],\"name\":\"in\"}},"
        DENSE("\"activation\":\"hard_sigmoid\",") "]}}"));
    char *json = cornu_model_to_json(model);
    assert_non_null(strstr(json, "\"hard_sigmoid\""));
    free(json);
    cornu_model_free(model);
}

/* A functional model of one layer on "in", (None, 4, 4). */
static CornuModel *with_layer(const char *class_name, const char *arguments, const char *keywords)
{
    char json[1200];
    snprintf(json, sizeof json,
             "{\"class_name\":\"Model\",\"keras_version\":\"2.2.4\",\"config\":{\"name\":\"m\","
             "\"layers\":[{\"class_name\":\"InputLayer\",\"name\":\"in\",\"config\":{\"name\":"
             "\"in\",\"batch_input_shape\":[null,4,4]},\"inbound_nodes\":[]},"
             "{\"class_name\":\"%s\",\"name\":\"l\",\"config\":{\"name\":\"l\"%s},"
             "\"inbound_nodes\":[[[\"in\",0,0,{%s}]]]}],"
             "\"input_layers\":[[\"in\",0,0]],\"output_layers\":[[\"l\",0,0]]}}",
             class_name, arguments, keywords);
    return cornu_model_from_json(json);
}

static void test_refuses_by_name(void **state)
{
    static const struct { const char *class_name, *arguments, *keywords, *message; } refused[] = {
        { "Merge", ",\"mode\":\"sum\"", "", "l: Merge: the layer Merge is one of Keras 1" },
        { "Lambda", ",\"function\":\"x\"", "", "a Lambda holds Python code" },
        { "TensorFlowOpLayer", ",\"node_def\":\"\"", "", "a node of a TensorFlow graph" },
        { "LocallyConnected1D", ",\"filters\":2", "", "no locally connected" },
        { "LSTM", ",\"units\":2,\"time_major\":true", "",
          "l: the argument \"time_major\" of Keras 2 is only available as false" },
        { "TFOpLambda", ",\"function\":\"fft\"", "", "l: the function tf.fft is not available" },
        { "TFOpLambda", ",\"function\":\"math.cumsum\"", "\"axis\":1,\"reverse\":true",
          "l: the argument \"reverse\" of tf.math.cumsum" },
        { "TFOpLambda", ",\"function\":\"math.l2_normalize\"", "",
          "is not available without \"axis\"" },
        { "TFOpLambda", ",\"function\":\"stack\"", "", "expected the batch as axis 0" },
        { "Dense", ",\"unit\":3", "", "the argument \"unit\" is not known" },
        { "Attack", "", "", "there is no layer class \"Attack\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const CornuModel *model = with_layer(refused[i].class_name, refused[i].arguments,
                                             refused[i].keywords);
        expect_unloaded(model, cornu_error_status(), refused[i].message);
    }
    expect_unloaded(cornu_model_from_json(
                        "{\"class_name\":\"Sequential\",\"keras_version\":\"1.2.2\",\"config\":["
                        DENSE("\"batch_input_shape\":[null,4],") "]}"),
                    CORNU_ERR_UNSUPPORTED, "was written by Keras 1.2.2");
}

/* Arguments under their names of Keras 2, and defaults that Keras 3 changed. */
static void test_renames(void **state)
{
    static const struct { const char *class_name, *arguments, *in_json; } renamed[] = {
        { "LeakyReLU", ",\"alpha\":0.25", "\"negative_slope\":0.25" },
        { "LeakyReLU", ",\"alpha\":{\"type\":\"ndarray\",\"value\":0.5}",
          "\"negative_slope\":0.5" },
        { "GRU", ",\"units\":2", "\"reset_after\":false" },
        { "ThresholdedReLU", ",\"theta\":0.75", "\"threshold\":0.75" },
        { "BatchNormalization", ",\"axis\":[2],\"fused\":true", "\"axis\":2" },
        { "SyncBatchNormalization", ",\"axis\":[2]", "\"synchronized\":true" },
        { "Keras>Rescaling", ",\"scale\":0.5", "\"class_name\":\"Rescaling\"" },
        { "CategoryEncoding", ",\"max_tokens\":7,\"output_mode\":\"multi_hot\"",
          "\"num_tokens\":7" },
        { "Activation", ",\"activation\":\"hard_sigmoid\"", "keras_2_hard_sigmoid" },
        { "LSTM", ",\"units\":2,\"recurrent_activation\":\"hard_sigmoid\",\"implementation\":2",
          "\"recurrent_activation\":\"keras_2_hard_sigmoid\"" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
        CornuModel *model = expect_model(with_layer(renamed[i].class_name, renamed[i].arguments,
                                                    ""));
        char *json = cornu_model_to_json(model);
        if (!strstr(json, renamed[i].in_json))
            fail_msg("%s is not in %s", renamed[i].in_json, json);
        free(json);
        cornu_model_free(model);
    }
}

/* A functional model of x (None, 6), whose second layer has this config and this call of x. */
#define SPLIT(sizes, call)                                                                    \
    "{\"class_name\":\"Functional\",\"config\":{\"name\":\"m\",\"layers\":[{\"class_name\":"  \
    "\"InputLayer\",\"config\":{\"batch_input_shape\":[null,6],\"dtype\":\"float32\","        \
    "\"name\":\"x\"},\"name\":\"x\",\"inbound_nodes\":[]},{\"class_name\":\"TFOpLambda\","    \
    "\"config\":{\"name\":\"s\",\"function\":\"split\"},\"name\":\"s\",\"inbound_nodes\":"    \
    "[[\"x\"," call ",0,{\"num_or_size_splits\":[" sizes "],\"axis\":1}]]}],"                 \
    "\"input_layers\":[[\"x\",0,0]],\"output_layers\":[[\"s\",0,0],[\"s\",0,1]]}}"

/* What is left over is -1, at each place: parts as tf.split of TensorFlow 2.21 makes them. */
static void test_split_of_the_rest(void **state)
{
    static const struct { const char *json; int64_t first; } splits[] = {
        { SPLIT("-1,2", "0"), 4 }, { SPLIT("-1,5", "0"), 1 }, { SPLIT("4,-1", "0"), 4 },
        { SPLIT("1,5", "0"), 1 },
    };
    float x[6] = { 1, 2, 3, 4, 5, 6 };
    (void)state;
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        const int64_t first = splits[i].first;
        float         y[2][6] = { { 0 } };
        CornuModel   *model = expect_model(cornu_model_from_json(splits[i].json));
        const CornuArray given = cornu_array(x, CORNU_F32, 1, 6);
        const CornuArray parts[] = { cornu_array(y[0], CORNU_F32, 1, first),
                                     cornu_array(y[1], CORNU_F32, 1, 6 - first) };
        expect_ok(cornu_predict_on_batch_many(model, &given, parts));
        for (int64_t k = 0; k < 6; k++)
            assert_float_equal(k < first ? y[0][k] : y[1][k - first], x[k], 0);
        cornu_model_free(model);
    }
}

/* Numbers that no call and no part has are refused, and not computed with. */
static void test_numbers_beyond(void **state)
{
    static const char *const texts[] = {
        SPLIT("1,5", "-9223372036854775808"), SPLIT("1,5", "9223372036854775807"),
        SPLIT("9223372036854775807,9223372036854775807,1", "0"),
        SPLIT("-9223372036854775808,-9223372036854775808,1", "0"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect_unloaded(cornu_model_from_json(texts[i]),
                        i < 2 ? CORNU_ERR_FORMAT : CORNU_ERR_UNSUPPORTED, "model_from_json: s: ");
}

int main(void)
{
    static struct CMUnitTest tests[2 * CASES + 10];
    int                      count = 0;
    for (int i = 0; i < CASES; i++) {
        void *of = (void *)(uintptr_t)&cases[i];
        tests[count++] = (struct CMUnitTest){ .name = cases[i].name, .test_func = test_predicts,
                                              .initial_state = of };
        if (cases[i].compiled)
            tests[count++] = (struct CMUnitTest){ .name = cases[i].name,
                                                  .test_func = test_continues,
                                                  .initial_state = of };
        if (!strcmp(cases[i].name, "cudnn"))
            tests[count++] = (struct CMUnitTest){ .name = "cudnn's weights",
                                                  .test_func = test_weights_of_cudnn,
                                                  .initial_state = of };
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_lists_of_layers);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_keras_3_stays);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_refuses_by_name);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_renames);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_split_of_the_rest);
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_numbers_beyond);
    return _cmocka_run_group_tests("keras2", tests, (size_t)count, set_up, tear_down);
}
