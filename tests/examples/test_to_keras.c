/* Real Keras, fed by examples/python/to_keras.py, must predict what we predict. Needs Keras in the
 * interpreter that CORNU_PYTHON names (default python3), else it is skipped. */
#include "../../nn/cornu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../skip.h"

enum { IMAGES = 1000, PIXELS = 28 * 28, CLASSES = 10 };

static uint8_t images[IMAGES][PIXELS];
static float   probabilities[IMAGES][CLASSES];

/* Blots of different place, size and grey. */
static void draw(void)
{
    for (int i = 0; i < IMAGES; i++) {
        const int row = i * 7 % 20, column = i * 11 % 20, size = 3 + i % 6;
        for (int p = 0; p < PIXELS; p++) {
            const bool inside = p / 28 >= row && p / 28 < row + size && p % 28 >= column &&
                                p % 28 < column + size;
            images[i][p] = (uint8_t)(inside ? 100 + i % 156 : p * i % 23);
        }
    }
}

static void write_idx(const char *path)
{
    static const uint8_t header[] = { 0, 0, 8, 3, 0, 0, IMAGES >> 8, IMAGES & 255,
                                      0, 0, 0, 28, 0, 0, 0, 28 };
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fwrite(header, 1, sizeof header, file);
    fwrite(images, 1, sizeof images, file);
    assert_int_equal(fclose(file), 0);
}

static CornuModel *make_model(CornuDevice *device)
{
    cornu_set_random_seed(5);
    CornuModel *model = cornu_sequential(.name = "blots", .input_shape = { 28, 28, 1 },
                                         .input_scale = 1.0 / 255);
    cornu_model_add(model, cornu_conv2d(8, 3, .strides = { 2, 2 }, .padding = CORNU_SAME,
                                        .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization());
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(8, 3, .activation = CORNU_ELU));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.5));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    cornu_compile(model, .device = device);
    if (cornu_error_take() != CORNU_OK || !cornu_model_compiled(model))
        fail_msg("%s", cornu_error_message());
    return model;
}

static int best_class(const float *p)
{
    int best = 0;
    for (int c = 1; c < CLASSES; c++)
        if (p[c] > p[best]) best = c;
    return best;
}

static void test_same_classes(void **state)
{
    (void)state;
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char command[600], folder[] = "/tmp/cornu-keras-XXXXXX", model_path[60], idx_path[60];
    snprintf(command, sizeof command, "%s -c 'import importlib.util as u; "
             "exit(not u.find_spec(\"keras\"))' 2>/dev/null", python);
    if (system(command) != 0) SKIP_FOR(SKIP_KERAS);

    draw();
    assert_non_null(mkdtemp(folder));
    snprintf(model_path, sizeof model_path, "%s/blots.safetensors", folder);
    snprintf(idx_path, sizeof idx_path, "%s/blots.idx", folder);
    write_idx(idx_path);
    CornuDevice *device = cornu_device_open("cpu");
    CornuModel  *model = make_model(device);
    if (cornu_model_save(model, model_path) != CORNU_OK ||
        cornu_predict(model, .x = cornu_array(images, CORNU_U8, IMAGES, 28, 28),
                      .verbose = CORNU_SILENT,
                      .to = cornu_array(probabilities, CORNU_F32, IMAGES, CLASSES)) != CORNU_OK)
        fail_msg("%s", cornu_error_message());
    cornu_model_free(model);
    cornu_device_close(device);

    snprintf(command, sizeof command, "%s examples/python/to_keras.py %s --predict %s", python,
             model_path, idx_path);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    int count = 0, different = 0, class, seen[CLASSES] = { 0 };
    for (; count < IMAGES && fscanf(pipe, "%d", &class) == 1; count++) {
        different += class != best_class(probabilities[count]);
        if (class >= 0 && class < CLASSES) seen[class]++;
    }
    assert_int_equal(pclose(pipe), 0);
    unlink(model_path);
    unlink(idx_path);
    rmdir(folder);
    int kinds = 0;
    for (int c = 0; c < CLASSES; c++)
        kinds += seen[c] > 0;
    assert_int_equal(count, IMAGES);
    assert_int_equal(different, 0);
    assert_true(kinds > 1);           /* else the comparison would say little */
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_same_classes) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
