/* Pictures of a digit, prepared as MNIST's were. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/mnist/digit.h"
#include "../../../datasets/mnist/idx.h"
#include "../../../datasets/images/image.h"
#include "../../../datasets/synthetic/synthetic.h"
#include "../files.h"
#include "../../skip.h"

enum { SIZE = 28, PIXELS = SIZE * SIZE };

/* The test digits published as PNG equal their idx records, bit for bit. */
static void test_published_digits(void **state)
{
    (void)state;
    static const char *const names[] = {
        "digit0_test00003", "digit0_test00010", "digit1_test00002", "digit1_test00005",
        "digit2_test00001", "digit2_test00035", "digit3_test00018", "digit3_test00030",
        "digit4_test00004", "digit4_test00006", "digit5_test00008", "digit5_test00015",
        "digit6_test00011", "digit6_test00021", "digit7_test00000", "digit7_test00017",
        "digit8_test00061", "digit8_test00084", "digit9_test00007", "digit9_test00009",
    };
    const char *path = files_real("mnist/t10k-images-idx3-ubyte.gz");
    if (!path) SKIP_FOR(SKIP_DATA);
    CornuArray images, labels;
    assert_int_equal(cornu_idx_load(path, &images), CORNU_OK);
    assert_int_equal(cornu_idx_load(files_real("mnist/t10k-labels-idx1-ubyte.gz"), &labels),
                     CORNU_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        snprintf(name, sizeof name, "digit-images/%s.png", names[i]);
        path = files_real(name);
        if (!path) SKIP_FOR(SKIP_DATA);
        int digit, record;
        assert_int_equal(sscanf(names[i], "digit%1d_test%d", &digit, &record), 2);
        const uint8_t *pixels = (const uint8_t *)images.data + record * PIXELS;
        files_expect_image(path, 0, cornu_type(CORNU_U8, SIZE, SIZE, 1), pixels);
        assert_int_equal(((const uint8_t *)labels.data)[record], digit);
    }
    free(images.data);
    free(labels.data);
}

/* ---- Drawn digits ---- */

/* Drawn digits, positioned as in MNIST by preparing them once at twice the size. */
static void some_digits(uint8_t *digits, int count)
{
    uint8_t *drawn = malloc((size_t)count * PIXELS), *labels = malloc((size_t)count);
    uint8_t  big[4 * PIXELS];
    cornu_synthetic_digits(1, 0, count, drawn, labels);
    for (int n = 0; n < count; n++) {
        for (int i = 0; i < 4 * PIXELS; i++)
            big[i] = drawn[n * PIXELS + i / 2 / (2 * SIZE) * SIZE + i % (2 * SIZE) / 2];
        assert_int_equal(cornu_digit_prepare(cornu_array(big, CORNU_U8, 2 * SIZE, 2 * SIZE),
                                             digits + n * PIXELS), CORNU_OK);
    }
    free(drawn);
    free(labels);
}

static void test_a_ready_digit_is_left_alone(void **state)
{
    (void)state;
    uint8_t digits[8 * PIXELS], inverted[PIXELS], out[PIXELS];
    some_digits(digits, 8);
    for (int n = 0; n < 8; n++) {
        const uint8_t *digit = digits + n * PIXELS;
        assert_int_equal(cornu_digit_prepare(cornu_array((void *)digit, CORNU_U8, SIZE, SIZE), out),
                         CORNU_OK);
        assert_memory_equal(out, digit, PIXELS);
        for (int i = 0; i < PIXELS; i++) inverted[i] = (uint8_t)(255 - digit[i]);
        assert_int_equal(cornu_digit_prepare(cornu_array(inverted, CORNU_U8, SIZE, SIZE, 1), out),
                         CORNU_OK);
        assert_memory_equal(out, digit, PIXELS);
    }
}

/* The largest difference of any pixel after enlarging a digit threefold, each pixel to nine, and
 * preparing it, which the box filter undoes. The strongest ink becomes 255. */
static double difference_after_enlarging(const uint8_t *digit, bool inverted)
{
    enum { BIG = 3 * SIZE };
    uint8_t big[BIG * BIG], out[PIXELS];
    int     most = 0;
    for (int i = 0; i < BIG * BIG; i++) {
        uint8_t value = digit[i / BIG / 3 * SIZE + i % BIG / 3];
        big[i] = inverted ? (uint8_t)(255 - value) : value;
        if (value > most) most = value;
    }
    assert_int_equal(cornu_digit_prepare(cornu_array(big, CORNU_U8, BIG, BIG), out), CORNU_OK);
    double worst = 0.0;
    for (int i = 0; i < PIXELS; i++) {
        const double off = fabs(out[i] - digit[i] * 255.0 / most);
        if (off > worst) worst = off;   /* fmax: an internal error of gcc 12.2 for arm64 */
    }
    return worst;
}

static void test_an_enlarged_digit_comes_back(void **state)
{
    (void)state;
    enum { COUNT = 1000, FAINT = 8 }; /* a row without stronger ink is ignored */
    const char *path = files_real("mnist/t10k-images-idx3-ubyte.gz");
    if (!path) SKIP_FOR(SKIP_DATA);
    CornuArray images;
    int        same = 0;
    assert_int_equal(cornu_idx_load(path, &images), CORNU_OK);
    for (int n = 0; n < COUNT; n++)
        same += difference_after_enlarging((const uint8_t *)images.data + n * PIXELS,
                                           n % 2) <= FAINT;
    assert_int_equal(same, COUNT);
    free(images.data);
}

/* Any size and position on the paper gives the same digit, within the blur of a grey level. */
static void test_size_and_position_do_not_matter(void **state)
{
    (void)state;
    enum { W = 300, H = 200 };
    uint8_t digits[4 * PIXELS], out[PIXELS];
    some_digits(digits, 4);
    for (int n = 0; n < 4; n++) {
        uint8_t *paper = malloc(W * H);
        memset(paper, 240, W * H);
        for (int h = 0; h < 5 * SIZE; h++)
            for (int w = 0; w < 5 * SIZE; w++)
                paper[(h + 10) * W + w + 100 + 10 * n] =
                    (uint8_t)(240 - digits[n * PIXELS + h / 5 * SIZE + w / 5] * 200 / 255);
        assert_int_equal(cornu_digit_prepare(cornu_array(paper, CORNU_U8, H, W), out), CORNU_OK);
        for (int i = 0; i < PIXELS; i++)
            assert_true(abs(out[i] - digits[n * PIXELS + i]) <= 3);
        free(paper);
    }
}

/* Grain of the paper does not count as ink: it neither enlarges the box nor darkens the ground. */
static void test_grain_is_not_ink(void **state)
{
    (void)state;
    enum { W = 140 };
    uint8_t  digit[PIXELS], paper[W * W], out[PIXELS];
    uint32_t x = 1;
    some_digits(digit, 1);
    for (int i = 0; i < W * W; i++) {
        x = x * 1664525 + 1013904223;
        int ink = digit[i / W / 5 * SIZE + i % W / 5];
        paper[i] = (uint8_t)(200 + (int)(x >> 28) - 160 * ink / 255);
    }
    assert_int_equal(cornu_digit_prepare(cornu_array(paper, CORNU_U8, W, W), out), CORNU_OK);
    double difference = 0.0, ink = 0.0;
    for (int i = 0; i < PIXELS; i++) {
        difference += abs(out[i] - digit[i]);
        ink += digit[i];
    }
    assert_true(difference / ink < 0.1);
}

static void test_pictures_without_a_digit(void **state)
{
    (void)state;
    uint8_t white[50 * 40], out[PIXELS];
    memset(white, 255, sizeof white);
    assert_int_equal(cornu_digit_prepare(cornu_array(white, CORNU_U8, 50, 40), out),
                     CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "no ink"));
    assert_int_equal(cornu_digit_prepare(cornu_array(white, CORNU_U8, 1, 1), out),
                     CORNU_ERR_VALUE);
    uint8_t grain[50 * 40]; /* only grain */
    for (int i = 0; i < 50 * 40; i++) grain[i] = (uint8_t)(i * 7919 % 251);
    assert_int_equal(cornu_digit_prepare(cornu_array(grain, CORNU_U8, 50, 40), out),
                     CORNU_ERR_VALUE);
    assert_int_equal(cornu_digit_prepare(cornu_array(white, CORNU_U8, 10, 10, 3), out),
                     CORNU_ERR_SHAPE);
    assert_non_null(strstr(cornu_error_message(), "u8 (10, 10, 3), expected"));
    assert_int_equal(cornu_digit_prepare(cornu_array(white, CORNU_F32, 10, 10), out),
                     CORNU_ERR_SHAPE);
    /* A single dot is scaled to fill the box. */
    white[0] = 0;
    assert_int_equal(cornu_digit_prepare(cornu_array(white, CORNU_U8, 50, 40), out), CORNU_OK);
    assert_int_equal(out[14 * SIZE + 14], 255);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_digits),
        cmocka_unit_test(test_a_ready_digit_is_left_alone),
        cmocka_unit_test(test_an_enlarged_digit_comes_back),
        cmocka_unit_test(test_size_and_position_do_not_matter),
        cmocka_unit_test(test_grain_is_not_ink),
        cmocka_unit_test(test_pictures_without_a_digit),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
