/*
 * Layers that prepare data beyond single calls, which test_layers.c compares with Keras: lookups
 * and adapted boundaries (expected numbers are Keras 3.15's), random augmentations, files.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../golden.h"
#include "call_layer.h"

enum { MOST = 1 << 14 };

/* y of the layer, which is taken; x of any type. */
static int64_t run(CornuLayer *layer, CornuArray x, bool training, int64_t position,
                   int64_t iteration, float *y)
{
    const LayerCall how = { .training = training, .position = position, .iteration = iteration };
    return call_layer(layer, x, &how, y, MOST);
}

static float x[MOST], y[MOST], z[MOST];

static void fill(int64_t count)
{
    for (int64_t i = 0; i < count; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
}

static void expect_all(const float *want, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (y[i] != want[i]) fail_msg("y[%d] is %g, expected %g", (int)i, (double)y[i],
                                      (double)want[i]);
}

/* ---- Lookups ---- */

static int32_t given[6] = { 3, 4, 9, 5, 3, 11 };
#define GIVEN  cornu_array(given, CORNU_I32, 2, 3)
#define WORDS  .vocabulary = cornu_numbers(3, 4, 5)
#define EXPECT(...) expect_all((const float[]){ __VA_ARGS__ },                              \
                               (int64_t)(sizeof((const float[]){ __VA_ARGS__ }) / sizeof(float)))

static void integers_have_places(void **state)
{
    (void)state;
    run(cornu_integer_lookup(WORDS), GIVEN, false, 0, 0, y);
    EXPECT(1, 2, 0, 3, 1, 0);
    run(cornu_integer_lookup(WORDS, .num_oov_indices = 2), GIVEN, false, 0, 0, y);
    EXPECT(2, 3, 1, 4, 2, 1);
    run(cornu_integer_lookup(WORDS, .mask_token = CORNU_ZERO), GIVEN, false, 0, 0, y);
    EXPECT(2, 3, 1, 4, 2, 1);
    run(cornu_integer_lookup(WORDS, .output_mode = CORNU_MULTI_HOT_OUTPUT), GIVEN, false, 0, 0, y);
    EXPECT(1, 1, 1, 0, 1, 1, 0, 1);
    run(cornu_integer_lookup(WORDS, .max_tokens = 6, .pad_to_max_tokens = true,
                             .output_mode = CORNU_COUNT_OUTPUT), GIVEN, false, 0, 0, y);
    EXPECT(1, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0);
    run(cornu_integer_lookup(WORDS, .output_mode = CORNU_TF_IDF_OUTPUT,
                             .idf_weights = cornu_numbers(0.5, 0.625, 0.75)), GIVEN, false, 0, 0,
        y);
    EXPECT(0.625f, 0.5f, 0.625f, 0, 0.625f, 0.5f, 0, 0.75f);
    int32_t places[6] = { 0, 1, 2, 3, 1, 4 };
    run(cornu_integer_lookup(WORDS, .invert = true), cornu_array(places, CORNU_I32, 2, 3), false, 0,
        0, y);
    EXPECT(-1, 3, 4, 5, 3, -1);
}

static void vocabularies_come_from_data(void **state)
{
    (void)state;
    int32_t     data[6] = { 3, 4, 4, 5, 5, 5 };
    CornuLayer *layer = cornu_integer_lookup();
    expect_ok(cornu_adapt(layer, .x = cornu_array(data, CORNU_I32, 6)));
    run(layer, GIVEN, false, 0, 0, y);
    EXPECT(3, 2, 0, 1, 3, 0);

    float       numbers[100];
    for (int i = 0; i < 100; i++) numbers[i] = (float)(i * 37 % 100);
    const float at[6] = { 0.0f, 23.9f, 24.1f, 50.0f, 74.5f, 99.0f };
    layer = cornu_discretization(.num_bins = 4);
    expect_ok(cornu_adapt(layer, .x = cornu_array(numbers, CORNU_F32, 100)));
    memcpy(x, at, sizeof at);
    run(layer, cornu_array(x, CORNU_F32, 2, 3), false, 0, 0, y);
    EXPECT(0, 0, 1, 2, 3, 3);
}

/* A number on a boundary is in the bin above it, as numpy.digitize: 0, 1, 1 for -0.5, 0, 0.5. A
 * boundary counts as f32 holds it, so that 0.1 is on it. */
static void a_boundary_belongs_to_the_bin_above(void **state)
{
    (void)state;
    float       at[6] = { -0.5f, 0.0f, 0.5f, 1.0f, 2.0f, 2.5f };
    float       tenths[6] = { 0.1f, 0.0999f, 0.2f, 0.3f, 0.29999f, NAN };
    CornuLayer *layer = cornu_discretization(.bin_boundaries = cornu_numbers(0, 1, 2));
    run(layer, cornu_array(at, CORNU_F32, 2, 3), false, 0, 0, y);
    EXPECT(0, 1, 1, 2, 3, 3);
    layer = cornu_discretization(.bin_boundaries = cornu_numbers(0.1, 0.2, 0.3));
    run(layer, cornu_array(tenths, CORNU_F32, 2, 3), false, 0, 0, y);
    EXPECT(1, 0, 2, 3, 2, 3);
}

static void unusable_vocabularies_are_refused(void **state)
{
    (void)state;
    assert_null(cornu_integer_lookup(.vocabulary = cornu_numbers(3, 4, 3)));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".vocabulary has 3 twice");
    assert_null(cornu_integer_lookup(.vocabulary = cornu_numbers(3, 4.5)));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".vocabulary has 4.5");
    assert_null(cornu_discretization());
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "neither .bin_boundaries");
    assert_null(cornu_discretization(.bin_boundaries = cornu_numbers(1, 0)));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "have 1 before 0");
    assert_null(cornu_category_encoding());
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, ".num_tokens is 0");
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    expect_ok(cornu_model_add(model, cornu_discretization(.num_bins = 4)));
    float from[3] = { 0 }, to[3];
    expect_ok(cornu_compile(model));
    expect_error(cornu_predict_on_batch(model, cornu_array(from, CORNU_F32, 1, 3),
                                        cornu_array(to, CORNU_F32, 1, 3)),
                 CORNU_ERR_ARGUMENT, "has no boundaries");
    cornu_model_free(model);
}

/* ---- Augmentation ---- */

static CornuLayer *augmentation(int kind)
{
    const double range[2] = { -1, 1 };
    switch (kind) {
    case 0:  return cornu_random_contrast(0.5, .value_range = { range[0], range[1] });
    case 1:  return cornu_random_brightness(0.5, .value_range = { range[0], range[1] });
    case 2:  return cornu_random_saturation(0.4, .value_range = { range[0], range[1] });
    case 3:  return cornu_random_hue(0.5, .value_range = { range[0], range[1] });
    case 4:  return cornu_random_color_degeneration(0.5, .value_range = { range[0], range[1] });
    case 5:  return cornu_random_sharpness(0.5, .value_range = { range[0], range[1] });
    case 6:  return cornu_random_posterization(7, .value_range = { range[0], range[1] });
    case 7:  return cornu_random_invert(.factor = { 0.5, 0.5 }, .value_range = { -1, 1 });
    case 8:  return cornu_random_grayscale();
    case 9:  return cornu_random_erasing(.value_range = { range[0], range[1] });
    case 10: return cornu_random_shear(0.4, 0.3);
    case 11: return cornu_random_perspective();
    case 12: return cornu_solarization(0.5, 0.5, .value_range = { range[0], range[1] });
    default: return cornu_random_gaussian_blur(.factor = { 0.5, 0.5 }, .value_range = { -1, 1 });
    }
}
enum { AUGMENTATIONS = 14 };

/* Rows from 3 on of a batch equal the first rows of a call at position 3; another step draws other
 * numbers; in inference nothing changes. */
static void draws_belong_to_rows(void **state)
{
    (void)state;
    enum { ROW = 6 * 5 * 3 };
    fill(8 * ROW);
    for (int kind = 0; kind < AUGMENTATIONS; kind++) {
        CornuArray all = cornu_array(x, CORNU_F32, 8, 6, 5, 3);
        CornuArray rest = cornu_array(x + 3 * ROW, CORNU_F32, 5, 6, 5, 3);
        run(augmentation(kind), all, true, 0, 1, y);
        run(augmentation(kind), rest, true, 3, 1, z);
        if (memcmp(y + 3 * ROW, z, 5 * ROW * sizeof(float))) fail_msg("augmentation %d", kind);
        run(augmentation(kind), all, true, 0, 2, z);
        if (!memcmp(y, z, 8 * ROW * sizeof(float))) fail_msg("augmentation %d draws once", kind);
        run(augmentation(kind), all, false, 0, 1, y);
        assert_memory_equal(x, y, 8 * ROW * sizeof(float));
    }
}

/* Mixed pixels are between those of images; an image cut from another one has its pixels. */
static void images_are_mixed(void **state)
{
    (void)state;
    enum { B = 16, ROW = 6 * 5 };
    double weight = 0.0, cut = 0.0;
    for (int i = 0; i < B * ROW; i++) {
        const int row = i / ROW;
        x[i] = (float)row;
    }
    const CornuArray images = cornu_array(x, CORNU_F32, B, 6, 5, 1);
    for (int step = 0; step < 40; step++) {
        run(cornu_mix_up(.alpha = 1.0), images, true, 0, step, y);
        run(cornu_cut_mix(), images, true, 0, step, z);
        for (int i = 0; i < B * ROW; i++) {
            assert_true(y[i] >= -1e-4f && y[i] <= B - 1 + 1e-4f && y[i] == y[i - i % ROW]);
            assert_true(z[i] == floorf(z[i]) && z[i] >= 0 && z[i] < B);
            cut += z[i] != x[i];
        }
        const double shift = (double)y[0];   /* image 0 and image d: (1 - w) d */
        weight += shift;
    }
    assert_true(weight / 40 > 1.5 && weight / 40 < 6.5);   /* the mean of (1 - w) d is 3.75 */
    assert_true(cut / (40.0 * B * ROW) > 0.2 && cut / (40.0 * B * ROW) < 0.7);
}

/* The corners of the image go where the draws send them: with the four corners moved, a ramp of
 * columns and rows stays between its ends and is still one in every row. */
static void policies_stay_in_range(void **state)
{
    (void)state;
    enum { COUNT = 4 * 6 * 5 * 3 };
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i * 37 % 256);
    const CornuArray images = cornu_array(x, CORNU_F32, 4, 6, 5, 3);
    bool             changed = false;
    for (int step = 0; step < 12; step++) {
        run(cornu_rand_augment(), images, true, 0, step, y);
        run(cornu_aug_mix(.num_chains = 2), images, true, 0, step, z);
        for (int i = 0; i < COUNT; i++) {
            assert_true(y[i] >= -1e-3f && y[i] <= 255.001f);
            assert_true(z[i] >= 0.0f && z[i] <= 255.0f);
            changed |= y[i] != x[i];
        }
    }
    assert_true(changed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_have_places),
        cmocka_unit_test(vocabularies_come_from_data),
        cmocka_unit_test(a_boundary_belongs_to_the_bin_above),
        cmocka_unit_test(unusable_vocabularies_are_refused),
        cmocka_unit_test(draws_belong_to_rows),
        cmocka_unit_test(images_are_mixed),
        cmocka_unit_test(policies_stay_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
