/* Small models of every kind of layer, as Keras writes them (tests/golden/make_models.py): read,
 * they predict and train as in Keras; written and read again, too. With CORNU_PYTHON naming an
 * interpreter that has Keras and onnxruntime, these read what is saved. */
#include <dirent.h>
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

#define FOLDER "tests/golden/models/"

enum { MOST = CORNU_MAX_MODEL_TENSORS };

typedef struct {
    char        path[128];
    char        name[64];
} Case;

static CornuModel *model_of(const json_t *about)
{
    CornuModel *model = cornu__model_from_config(json_object_get(about, "model"), NULL);
    if (!model) fail_msg("%s", cornu_error_message());
    return model;
}

static CornuWeight *weight_of(CornuModel *model, const json_t *about, int i)
{
    const char *path = json_string_value(json_array_get(json_object_get(about, "paths"),
                                                        (size_t)i));
    CornuWeight *weight = cornu_model_find_weight(model, path);
    if (!weight) fail_msg("the model has no weight %s", path);
    return weight;
}

static int weights_of(const json_t *about)
{
    return (int)json_array_size(json_object_get(about, "paths"));
}

static void set_weights(Golden *golden, const char *name, CornuModel *model)
{
    const json_t *about = json_object_get(golden->cases, name);
    char          key[16];
    assert_int_equal(cornu_model_weight_count(model), weights_of(about));
    for (int i = 0; i < weights_of(about); i++) {
        snprintf(key, sizeof key, "w%d", i);
        expect_ok(cornu_weight_write(weight_of(model, about, i),
                                     golden_array(golden, name, key)));
    }
}

/* By which results may differ: 1e-5 in float32, more by the dtype of a layer. */
static double bound_of(Golden *golden, const char *name, double usual)
{
    const json_t *bound = json_object_get(json_object_get(golden->cases, name), "bound");
    return bound ? json_number_value(bound) : usual;
}

/* kind: "y", or "r" after a round trip that changes them. */
static void check_predictions(Golden *golden, const char *name, CornuModel *model,
                              const char *kind)
{
    CornuArray x[MOST], want[MOST], got[MOST];
    golden_arrays(golden, name, "x", x, MOST);
    const int outputs = golden_arrays(golden, name, kind, want, MOST);
    assert_int_equal(outputs, cornu_model_output_count(model));
    for (int i = 0; i < outputs; i++)
        got[i] = cornu_array_from(malloc(cornu_type_bytes(want[i].type)), want[i].type);
    expect_ok(cornu_predict_on_batch_many(model, x, got));
    for (int i = 0; i < outputs; i++) {
        expect_near(name, got[i].data, want[i], bound_of(golden, name, 1e-5));
        free(got[i].data);
    }
}

static void check_step(Golden *golden, const char *name, CornuModel *model)
{
    const json_t *about = json_object_get(golden->cases, name);
    CornuArray    x[MOST], z[MOST];
    double        values[2 * MOST + 2];
    golden_arrays(golden, name, "x", x, MOST);
    golden_arrays(golden, name, "z", z, MOST);
    expect_ok(cornu_train_on_batch_many(model, x, z, values));
    for (int i = 0; i < weights_of(about); i++) {
        char key[16];
        snprintf(key, sizeof key, "s%d", i);
        const CornuArray   want = golden_array(golden, name, key);
        const CornuWeight *weight = weight_of(model, about, i);
        const CornuArray   got = cornu_array_from(malloc(cornu_type_bytes(want.type)), want.type);
        expect_ok(cornu_weight_read(weight, got));
        expect_near(weight->path, got.data, want, bound_of(golden, name, 2e-5));
        free(got.data);
    }
}

static void compile(CornuModel *model, CornuDevice *device)
{
    CornuCompileConfig config = { .model = model, .optimizer = cornu_sgd(.learning_rate = 0.1),
                                  .device = device };
    for (int i = 0; i < cornu_model_output_count(model); i++)
        config.losses[i] = cornu_loss("mse");
    expect_ok(cornu_compile_from(&config));
}

/* What Keras and onnxruntime say of the files that the other tests leave. */
static void python_reads_them(void **state)
{
    const char *python = getenv("CORNU_PYTHON");
    char        command[700];
    (void)state;
    if (!python) SKIP_FOR("Keras and onnxruntime: CORNU_PYTHON=an interpreter with both");
    snprintf(command, sizeof command, "%s tests/nn/saving/check_models.py %s " FOLDER, python,
             folder);
    if (system(command) != 0) fail_msg("%s", command);
}

static void predicts_and_trains_as_keras(void **state)
{
    const Case   *self = *state;
    Golden        golden = golden_open(self->path);
    CornuDevice  *device = cornu_device_open("cpu");
    const json_t *about = json_object_get(golden.cases, self->name);
    CornuModel   *model = model_of(about);
    char          saved[80], onnx[80];
    snprintf(saved, sizeof saved, "%s.keras", self->name);
    snprintf(onnx, sizeof onnx, "%s.onnx", self->name);
    set_weights(&golden, self->name, model);
    compile(model, device);
    check_predictions(&golden, self->name, model, "y");
    expect_ok(cornu_model_save(model, files_path(folder, saved)));
    CornuModel *again = cornu_model_load(files_path(folder, saved));
    if (!again) fail_msg("%s", cornu_error_message());
    compile(again, device);
    /* Each saving quantizes the sum of an integer kernel and its LoRA anew. */
    const bool anew = golden_array(&golden, self->name, "r0").data;
    check_predictions(&golden, self->name, again, anew ? "r" : "y");
    if (strstr(self->name, "lora")) {   /* the file has the sum, in the kernel */
        check_step(&golden, self->name, model);
        set_weights(&golden, self->name, model);
    } else if (json_is_true(json_object_get(about, "train"))) {
        check_step(&golden, self->name, again);
    }
    if (!anew) expect_ok(cornu_model_save(again, files_path(folder, saved)));
    if (cornu_model_save(model, files_path(folder, onnx)))
        print_message("# %s\n", cornu_error_message());
    cornu_error_take();
    cornu_model_free(again);
    cornu_model_free(model);
    cornu_device_close(device);
    golden_close(&golden);
}

/* ---- The cases ---- */

static int compare_cases(const void *a, const void *b)
{
    const Case *x = a, *y = b;
    const int   order = strcmp(x->path, y->path);
    return order ? order : strcmp(x->name, y->name);
}

static void add_cases(const char *file, Case **cases, size_t *count)
{
    Case about;
    snprintf(about.path, sizeof about.path, FOLDER "%.80s", file);
    Golden      golden = golden_open(about.path);
    const char *name;
    json_t     *value;
    json_object_foreach(golden.cases, name, value) {
        snprintf(about.name, sizeof about.name, "%s", name);
        *cases = realloc(*cases, (*count + 1) * sizeof **cases);
        (*cases)[(*count)++] = about;
    }
    golden_close(&golden);
}

int main(void)
{
    Case          *cases = NULL;
    size_t         count = 0;
    DIR           *files = opendir(FOLDER);
    struct dirent *file;
    const char    *only = getenv("CORNU_CASE");
    if (!files) return 1;
    while ((file = readdir(files)))
        if (strstr(file->d_name, ".safetensors")) add_cases(file->d_name, &cases, &count);
    closedir(files);
    qsort(cases, count, sizeof *cases, compare_cases);
    struct CMUnitTest *tests = calloc(count + 1, sizeof *tests);
    size_t             chosen = 0;
    for (size_t i = 0; i < count; i++)
        if (!only || strstr(cases[i].name, only))
            tests[chosen++] = (struct CMUnitTest){ cases[i].name, predicts_and_trains_as_keras,
                                                   NULL, NULL, &cases[i] };
    tests[chosen++] = (struct CMUnitTest){ "python_reads_them", python_reads_them, NULL, NULL,
                                           NULL };
    const int failed = _cmocka_run_group_tests("models", tests, chosen, files_begin, files_end);
    free(tests);
    free(cases);
    return failed;
}
