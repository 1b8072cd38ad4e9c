/* Layers as C source: each of those that tests/golden has from real Keras, with its weights there,
 * predicts as in the library.
 *
 * tests/run: takes 90 s
 * tests/run: in check */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../../skip.h"
#include "../golden.h"
#include "compiled.h"

/* As in test_compile_to_c.c: sums in another order, and <math.h>. */
static const double bound = 1e-5;

static CornuModel *layer_of(Golden *golden, const char *name, const json_t *settings)
{
    CornuModel *model = golden_layer(settings, golden_array(golden, name, "x").type);
    CornuLayer *layer = cornu_model_layer(model, 0);
    for (int i = 0; i < layer->weight_count; i++)
        expect_ok(cornu_weight_write(
            layer->weights[i],
            golden_array(golden, name, strrchr(layer->weights[i]->path, '/') + 1)));
    expect_ok(cornu_compile(model));
    return model;
}

static CornuArray row_of(CornuType type)
{
    type.shape.extent[0] = 1;
    return cornu_array_from(calloc(1, cornu_type_bytes(type)), type);
}

static void expect_predicts_alike(const char *name, const Compiled *c, CornuModel *model,
                                  CornuArray x)
{
    const CornuType y = cornu_type_from(CORNU_F32, cornu_model_output_shape(model));
    CornuArray      got = row_of(y), want = row_of(y);
    x.type.shape.extent[0] = 1;
    c->predict((const void *const[]){ x.data }, got.data);
    expect_ok(cornu_predict(model, .x = x, .to = want));
    expect_near(name, got.data, want, bound);
    free(got.data);
    free(want.data);
}

static void expect_case(Golden *golden, const char *name, const json_t *settings)
{
    CornuModel *model = layer_of(golden, name, settings);
    Compiled    compiled = compiled_open("one", (CornuCompileToCConfig){ .model = model });
    expect_predicts_alike(name, &compiled, model, golden_array(golden, name, "x"));
    compiled_close(&compiled);
    cornu_model_free(model);
}

static void predict_as_the_library(void **state)
{
    char        path[128];
    const char *name;
    json_t     *settings;
    if (!has_compiler()) SKIP_FOR("a C compiler: apt-get install gcc");
    snprintf(path, sizeof path, "tests/golden/%s.safetensors", (const char *)*state);
    Golden golden = golden_open(path);
    expect_ok(cornu_set_dtype_policy("float32"));
    json_object_foreach(golden.cases, name, settings) expect_case(&golden, name, settings);
    golden_close(&golden);
}

#define CASES(name, path) { name, predict_as_the_library, NULL, NULL, path }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASES("dense", "pieces/layers"), CASES("conv2d", "pieces/conv2d"),
        CASES("pooling", "pieces/pooling"),
        CASES("batch_normalization", "pieces/batch_normalization"),
        CASES("activations", "pieces/activations"), CASES("normalizations", "norms/layers"),
        CASES("batches", "norms/batch"), CASES("more_activations", "norms/activations"),
        CASES("convolutions", "convs/convolutions"), CASES("spatial", "convs/spatial"),
        CASES("volumes", "convs/volumes"), CASES("adaptive", "convs/adaptive"),
        CASES("channels_first", "convs/channels_first"),
        CASES("numbers", "preprocessing/numbers"), CASES("images", "preprocessing/images"),
        CASES("categories", "preprocessing/categories"),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
