/* Models that real Keras saved (tests/golden/make_trained.py) predict and train as there, are saved
 * and loaded again; the arguments in their files are those that Keras writes. */
#include "../../../device/memory_internal.h"
#include "../../../device/files/zip_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../skip.h"
#include <jansson.h>

#include "golden_files.h"

enum { MOST = 4, STEPS = 3, MOST_VALUES = 4096 };

static const char *const cases[] = { "calls", "products", "states", "batches", "forms" };
enum { CASES = sizeof cases / sizeof *cases };

static const char *model_path(const char *name, const char *suffix)
{
    static char path[100];
    snprintf(path, sizeof path, "tests/golden/trained/%s%s", name, suffix);
    return path;
}

/* ---- Data of a case ---- */

typedef struct {
    CornuNpz  *file;
    CornuArray x[MOST], y[MOST];
} Data;

static CornuArray array_of(const Data *data, char letter, int i)
{
    char name[16];
    snprintf(name, sizeof name, "%c%d", letter, i);
    const CornuNamedArray *found = cornu_npz_find(data->file, name);
    return found ? found->array : (CornuArray){ 0 };
}

static Data data_of(const char *name)
{
    Data data = { .file = cornu_npz_open(model_path(name, ".npz")) };
    if (!data.file) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < MOST; i++) {
        data.x[i] = array_of(&data, 'x', i);
        data.y[i] = array_of(&data, 'y', i);
    }
    return data;
}

static void expect_predictions(const char *what, CornuModel *model, const Data *data, char letter)
{
    static float got[MOST][MOST_VALUES];
    CornuArray   out[MOST], want[MOST];
    for (int i = 0; i < cornu_model_output_count(model); i++) {
        want[i] = array_of(data, letter, i);
        out[i] = cornu_array_from(got[i], want[i].type);
        assert_true(cornu_type_bytes(want[i].type) <= sizeof got[i]);
    }
    expect_ok(cornu_predict_on_batch_many(model, data->x, out));
    for (int i = 0; i < cornu_model_output_count(model); i++)
        expect_near(what, got[i], want[i], 2e-5);
}

static void expect_weights(CornuModel *model, const Data *data)
{
    static float got[MOST_VALUES];
    char         what[32];
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        assert_true(cornu_type_bytes(weight->type) <= sizeof got);
        expect_ok(cornu_weight_read(weight, cornu_array_from(got, weight->type)));
        snprintf(what, sizeof what, "weight %d", i);
        expect_near(what, got, array_of(data, 'w', i), 5e-5);
    }
}

/* ---- Numbers ---- */

static void test_trains_as_keras(void **state)
{
    const char *name = *state;
    Data        data = data_of(name);
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load_compiled(model_path(name, ".keras"), device));
    expect_predictions("predictions", model, &data, 'p');
    float losses[STEPS];
    for (int i = 0; i < STEPS; i++) {
        double values[16];
        expect_ok(cornu_train_on_batch_many(model, data.x, data.y, values));
        losses[i] = (float)values[0];
    }
    expect_near("losses", losses, cornu_npz_find(data.file, "losses")->array, 2e-5);
    expect_weights(model, &data);
    expect_predictions("later predictions", model, &data, 'q');
    expect_ok(cornu_model_save(model, here(name, ".keras")));
    cornu_model_free(model);
    model = expect_model(cornu_model_load_compiled(here(name, ".keras"), device));
    expect_predictions("predictions of our file", model, &data, 'q');
    cornu_model_free(model);
    cornu_npz_close(data.file);
}

/* ---- Arguments ---- */

static json_t *config_of(const char *path)
{
    unsigned char *bytes;
    size_t         size;
    CornuZip      *zip = cornu__zip_open(path);
    if (!zip) fail_msg("%s", cornu_error_message());
    expect_ok(cornu__zip_read(zip, cornu__zip_find(zip, "config.json"), &bytes, &size));
    json_t *config = json_loadb((const char *)bytes, size, 0, NULL);
    assert_non_null(config);
    cornu__release(bytes);
    cornu__zip_close(zip);
    return config;
}

static json_t *layers_of(json_t *model)
{
    return json_object_get(json_object_get(model, "config"), "layers");
}

static json_t *layer_named(json_t *layers, const char *name)
{
    size_t  i;
    json_t *layer;
    json_array_foreach(layers, i, layer) {
        const json_t *own = json_object_get(json_object_get(layer, "config"), "name");
        if (!strcmp(json_string_value(own), name)) return layer;
    }
    fail_msg("Keras has no layer %s", name);
    return NULL;
}

/* Some of Keras' constructors take no `trainable`. Extents may be null, axes not. */
static void expect_arguments(json_t *ours, json_t *keras)
{
    size_t  i, k;
    json_t *layer;
    json_array_foreach(ours, i, layer) {
        const char *kind = json_string_value(json_object_get(layer, "class_name"));
        if (!strcmp(kind, "InputLayer")) continue;
        json_t     *config = json_object_get(layer, "config"), *value, *item;
        const char *name = json_string_value(json_object_get(config, "name")), *key;
        json_t     *theirs = layer_named(keras, name);
        if (layers_of(layer)) {
            expect_arguments(layers_of(layer), layers_of(theirs));
            continue;
        }
        if (json_object_get(config, "trainable"))
            assert_non_null(json_object_get(json_object_get(theirs, "config"), "trainable"));
        json_object_foreach(config, key, value)
            json_array_foreach(value, k, item)
                if (json_is_null(item)) fail_msg("%s: %s has a null", name, key);
    }
}

static void test_writes_the_arguments_of_keras(void **state)
{
    const char *name = *state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuModel *model = expect_model(cornu_model_load(model_path(name, ".keras")));
    expect_ok(cornu_model_save(model, here(name, ".keras")));
    cornu_model_free(model);
    json_t *ours = config_of(here(name, ".keras")), *keras = config_of(model_path(name, ".keras"));
    expect_arguments(layers_of(ours), layers_of(keras));
    json_decref(ours);
    json_decref(keras);
}

int main(void)
{
    static char       names[2 * CASES][80];
    struct CMUnitTest tests[2 * CASES];
    for (int i = 0; i < CASES; i++) {
        snprintf(names[2 * i], sizeof names[0], "test_trains_as_keras %s", cases[i]);
        snprintf(names[2 * i + 1], sizeof names[0], "test_writes_the_arguments_of_keras %s",
                 cases[i]);
        tests[2 * i] = (struct CMUnitTest){ .name = names[2 * i],
                                            .test_func = test_trains_as_keras,
                                            .initial_state = (void *)cases[i] };
        tests[2 * i + 1] = (struct CMUnitTest){ .name = names[2 * i + 1],
                                                .test_func = test_writes_the_arguments_of_keras,
                                                .initial_state = (void *)cases[i] };
    }
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
