/* Custom layers in files: registered ones round trip in every format, by themselves, inside other
 * layers and in models that branch; others are refused by name. Real Keras reads them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../golden.h"
#include "../../skip.h"

/* ---- y = x scale + offset, one scale or one for each channel ---- */

typedef struct {
    char             unset;
    double           offset;
    bool             by_channel;
    CornuInitializer scale_initializer;   /* default ones */
    const char      *name;
} AffineConfig;

typedef struct {
    CornuLayer   base;
    AffineConfig config;
} Affine;

static CornuLayer *affine_from(const AffineConfig *config);
#define affine(...) affine_from(&(AffineConfig){ .unset = 0, __VA_ARGS__ })

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    const AffineConfig *config = &((Affine *)layer)->config;
    const int64_t       channels = config->by_channel ? input.extent[input.rank - 1] : 1;
    return cornu_layer_weight(layer, "scale", cornu_shape(channels), config->scale_initializer,
                              false);
}

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    CornuTensor *y = cornu_op_multiply(x, cornu_layer_read(layer, call, 0));
    return cornu_op_shift(y, ((Affine *)layer)->config.offset);
}

static CornuLayer *from(const void *config) { return affine_from(config); }

static const CornuField fields[] = {
    { "offset", CORNU_FIELD_NUMBER, offsetof(AffineConfig, offset) },
    { "by_channel", CORNU_FIELD_FLAG, offsetof(AffineConfig, by_channel) },
    { "scale_initializer", CORNU_FIELD_INITIALIZER, offsetof(AffineConfig, scale_initializer) },
    { 0 },
};

static const CornuLayerClass affine_class = {
    .class_name = "Affine", .size = sizeof(Affine), .build = build, .call = call,
    .keras = &(const CornuKerasClass){ .fields = fields, .config_size = sizeof(AffineConfig),
                                       .config_offset = offsetof(Affine, config), .from = from },
};

/* The same with the name of a Keras layer, and one that is never registered. */
static const CornuLayerClass dense_class = {
    .class_name = "Dense", .size = sizeof(Affine), .build = build, .call = call,
    .keras = &(const CornuKerasClass){ .fields = fields, .config_size = sizeof(AffineConfig),
                                       .config_offset = offsetof(Affine, config), .from = from },
};
static const CornuLayerClass stranger_class = {
    .class_name = "Stranger", .size = sizeof(Affine), .build = build, .call = call,
    .keras = &(const CornuKerasClass){ .fields = fields, .config_size = sizeof(AffineConfig),
                                       .config_offset = offsetof(Affine, config), .from = from },
};

static const CornuLayerClass *made_class = &affine_class;

static CornuLayer *affine_from(const AffineConfig *config)
{
    CornuLayer *layer = cornu_layer_create(made_class, config->name, NULL);
    if (!layer) return NULL;
    AffineConfig *to = &((Affine *)layer)->config;
    *to = *config;
    to->name = NULL;
    if (!to->scale_initializer.kind) to->scale_initializer = CORNU_ONES;
    return layer;
}

/* ---- Models with it ---- */

static char folder[] = "/tmp/cornu-own-XXXXXX", path[128];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static CornuModel *in_a_row(void)
{
    CornuModel *model = cornu_sequential(.name = "row", .input_shape = { 3, 4 });
    cornu_model_add(model, affine(0.25, .by_channel = true,
                                  .scale_initializer = cornu_random_uniform(-2.0, 2.0)));
    cornu_model_add(model, cornu_dense(2));
    cornu_model_add(model, cornu_time_distributed(affine(.offset = -1.0, .by_channel = true)));
    return model;
}

static CornuModel *branching(void)
{
    CornuSymbol *x = cornu_input(.shape = { 4 }, .name = "x");
    CornuLayer  *shared = affine(0.5, .name = "shared");
    CornuSymbol *y = cornu_call(cornu_add(), cornu_call(shared, x),
                                cornu_call(shared, cornu_call(cornu_dense(4), x)));
    return cornu_model(.inputs = { x }, .outputs = { y }, .name = "branching");
}

static void predict(CornuModel *model, float *to, size_t size)
{
    static float x[5 * 12];
    CornuShape   in = cornu_model_input_shape(model), out = cornu_model_output_shape(model);
    for (int i = 0; i < 60; i++) x[i] = sinf((float)i);
    in.extent[0] = out.extent[0] = 5;
    assert_true(cornu_type_bytes(cornu_type_from(CORNU_F32, out)) <= size);
    expect_ok(cornu_predict_on_batch(model, cornu_array_from(x, cornu_type_from(CORNU_F32, in)),
                                     cornu_array_from(to, cornu_type_from(CORNU_F32, out))));
}

static void own_layers_round_trip(void **state)
{
    CornuModel *(*const makers[])(void) = { in_a_row, branching };
    static const char *const names[] = { "a.safetensors", "a.keras" };
    (void)state;
    expect_ok(cornu_register_layer(&affine_class, NULL));
    expect_ok(cornu_register_layer(&affine_class, "Custom"));   /* as it is */
    for (int m = 0; m < 2; m++)
        for (int n = 0; n < 2; n++) {
            float       before[64] = { 0 }, after[64] = { 0 };
            CornuModel *model = makers[m]();
            if (!model) fail_msg("%s", cornu_error_message());
            expect_ok(cornu_compile(model));
            predict(model, before, sizeof before);
            const CornuStatus saved = cornu_model_save(model, in_folder(names[n]));
            if (n && saved == CORNU_ERR_UNSUPPORTED) {   /* without libhdf5 */
                cornu_model_free(model);
                continue;
            }
            expect_ok(saved);
            CornuModel *loaded = cornu_model_load(path);
            if (!loaded) fail_msg("%s", cornu_error_message());
            const CornuLayer *layer = cornu_model_find_layer(loaded, m ? "shared" : "affine");
            assert_ptr_equal(layer->kind, &affine_class);
            assert_float_equal(((const Affine *)layer)->config.offset, m ? 0.5 : 0.25, 0.0);
            assert_int_equal(((const Affine *)layer)->config.by_channel, m == 0);
            expect_ok(cornu_compile(loaded));
            predict(loaded, after, sizeof after);
            assert_memory_equal(before, after, sizeof before);

            CornuModel *clone = cornu_model_clone(model);
            if (!clone) fail_msg("%s", cornu_error_message());
            cornu_model_free(clone);
            cornu_model_free(loaded);
            cornu_model_free(model);
        }
}

/* A class with the name of a Keras layer is another class. */
static void packages_tell_classes_apart(void **state)
{
    (void)state;
    expect_ok(cornu_register_layer(&dense_class, "mine"));
    made_class = &dense_class;
    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, affine(2.0));
    cornu_model_add(model, cornu_dense(3));
    made_class = &affine_class;
    expect_ok(cornu_model_save(model, in_folder("a.safetensors")));
    made_class = &dense_class;
    CornuModel *loaded = cornu_model_load(path);
    made_class = &affine_class;
    if (!loaded) fail_msg("%s", cornu_error_message());
    assert_ptr_equal(cornu_model_layer(loaded, 0)->kind, &dense_class);
    assert_ptr_not_equal(cornu_model_layer(loaded, 1)->kind, &dense_class);
    cornu_model_free(loaded);
    cornu_model_free(model);
}

static void strangers_are_refused_by_name(void **state)
{
    (void)state;
    made_class = &stranger_class;
    CornuModel *model = cornu_sequential(.input_shape = { 4 });
    cornu_model_add(model, affine(1.0));
    expect_error(cornu_model_save(model, in_folder("a.safetensors")), CORNU_ERR_UNSUPPORTED,
                 "stranger: layers of class Stranger can be neither saved nor cloned, since it is "
                 "not registered: see cornu_register_layer");
    assert_null(cornu_model_clone(model));
    expect_error(cornu_error_take(), CORNU_ERR_UNSUPPORTED, "Stranger");
    expect_ok(cornu_model_save_weights(model, path));
    cornu_model_free(model);
    made_class = &affine_class;

    /* As if written by a program that knows the class: "Custom>Affine", here with another name. */
    model = branching();
    expect_ok(cornu_model_save(model, in_folder("a.safetensors")));
    cornu_model_free(model);
    CornuSafetensors *file = cornu_safetensors_open(path);
    CornuMetadata     texts[] = { { "weights", NULL }, { "optimizer", NULL }, { "input", NULL },
                                  { "architecture", NULL } };
    CornuNamedArray   arrays[4];
    char              changed[4096];
    for (int i = 0; i < 4; i++) texts[i].text = cornu_safetensors_metadata(file, texts[i].key);
    for (int i = 0; i < cornu_safetensors_count(file); i++)
        arrays[i] = *cornu_safetensors_at(file, i);
    snprintf(changed, sizeof changed, "%s", texts[3].text);
    for (char *at = changed; (at = strstr(at, "Affine"));) memcpy(at, "Absent", 6);
    texts[3].text = changed;
    expect_ok(cornu_safetensors_write(in_folder("b.safetensors"), arrays,
                                      cornu_safetensors_count(file), texts, 4));
    cornu_safetensors_close(file);
    assert_null(cornu_model_load(path));
    expect_error(cornu_error_status(), CORNU_ERR_UNSUPPORTED,
                 "shared: there is no layer class \"Absent\" of module \"Custom\"; "
                 "a class of your own must be registered by cornu_register_layer, here as "
                 "\"Custom>Absent\"");
}

static void mistakes_are_named(void **state)
{
    CornuLayerClass incomplete = affine_class;
    CornuKerasClass keras = *affine_class.keras;
    (void)state;
    keras.from = NULL;
    incomplete.keras = &keras;
    expect_error(cornu_register_layer(NULL, NULL), CORNU_ERR_ARGUMENT, "the class is missing");
    expect_error(cornu_register_layer(&incomplete, NULL), CORNU_ERR_ARGUMENT,
                 "the class Affine cannot be stored in files: expected .keras with .from");
    incomplete.keras = NULL;
    expect_error(cornu_register_layer(&incomplete, NULL), CORNU_ERR_ARGUMENT, "expected .keras");
    expect_error(cornu_register_layer(&affine_class, "a>b"), CORNU_ERR_ARGUMENT, "without >");
    expect_error(cornu_register_layer(&affine_class, "other"), CORNU_ERR_ARGUMENT,
                 "other>Affine is registered already as Custom");
    incomplete = affine_class;
    expect_error(cornu_register_layer(&incomplete, "Custom"), CORNU_ERR_ARGUMENT,
                 "Custom>Affine is registered already as another class");
}

/* Keras, whose program registers a class of the same name and arguments, predicts the same. */
static void keras_reads_them(void **state)
{
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char        command[600];
    float       y[64] = { 0 };
    (void)state;
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not u.find_spec(\"keras\"))' 2>/dev/null", python);
    CornuModel       *model = in_a_row();
    const CornuStatus saved = cornu_model_save(model, in_folder("a.keras"));
    if (saved == CORNU_ERR_UNSUPPORTED || system(command) != 0) {
        cornu_model_free(model);
        SKIP_FOR(saved == CORNU_ERR_UNSUPPORTED ? SKIP_HDF5 : SKIP_KERAS);
    }
    expect_ok(saved);
    expect_ok(cornu_compile(model));
    predict(model, y, sizeof y);
    cornu_model_free(model);
    const CornuNamedArray array = { "y", cornu_array(y, CORNU_F32, 5, 3, 2) };
    expect_ok(cornu_npz_write(in_folder("a.npz"), &array, 1));
    snprintf(command, sizeof command, "%s tests/nn/layers/check_register_layer.py %s >/dev/null",
             python,
             folder);
    assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(in_folder("a.safetensors"));
    unlink(in_folder("b.safetensors"));
    unlink(in_folder("a.keras"));
    unlink(in_folder("a.npz"));
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(own_layers_round_trip),
        cmocka_unit_test(packages_tell_classes_apart),
        cmocka_unit_test(strangers_are_refused_by_name),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(keras_reads_them),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
