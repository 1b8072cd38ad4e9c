/* PNG and JPEG files, and resizing. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/images/image.h"
#include "../files.h"

enum { SIZE = 28, PIXELS = SIZE * SIZE };

static void test_png_of_every_kind(void **state)
{
    (void)state;
    const char   *path = files_path(folder, "image.png");
    const uint8_t grey[] = { 0, 50, 255, 7, 8, 9 };
    files_write_png(path, 3, 2, 1, grey);
    files_expect_image(path, 0, cornu_type(CORNU_U8, 2, 3, 1), grey);
    files_expect_image(path, 1, cornu_type(CORNU_U8, 2, 3, 1), grey);
    files_expect_image(path, 3, cornu_type(CORNU_U8, 2, 3, 3),
                 (const uint8_t[]){ 0, 0, 0, 50, 50, 50, 255, 255, 255,
                                    7, 7, 7, 8,  8,  8,  9,   9,   9 });

    const uint8_t rgb[] = { 255, 0, 0, 0, 255, 0, 0, 0, 255, 10, 10, 10 };
    files_write_png(path, 2, 2, 3, rgb);
    files_expect_image(path, 0, cornu_type(CORNU_U8, 2, 2, 3), rgb);
    files_expect_image(path, 1, cornu_type(CORNU_U8, 2, 2, 1),
                       (const uint8_t[]){ 77, 149, 29, 10 });

    /* Black ink on transparent ground, which many programs store as black. */
    const uint8_t alpha[] = { 0, 0, 0, 255, 100, 51 };
    files_write_png(path, 3, 1, 2, alpha);
    files_expect_image(path, 0, cornu_type(CORNU_U8, 1, 3, 1), (const uint8_t[]){ 255, 0, 224 });
    const uint8_t rgba[] = { 0, 0, 0, 0, 9, 8, 7, 255 };
    files_write_png(path, 2, 1, 4, rgba);
    files_expect_image(path, 3, cornu_type(CORNU_U8, 1, 2, 3),
                 (const uint8_t[]){ 255, 255, 255, 9, 8, 7 });
}

/* The smallest JPEG: one 8x8 block with only a mean. All quantizers are 16, and each Huffman table
 * has one code, "0": for the mean "4 bits follow", for the rest "end of block". The bits are
 * 0 1010 0 11: a mean of 10, so every pixel is 128 + 10 * 16 / 8. */
static void test_jpeg(void **state)
{
    (void)state;
    uint8_t file[256], expected[64], *to = file;
    static const uint8_t begin_file[] = { 0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0 };
    static const uint8_t frame[] = { 0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0 };
    static const uint8_t scan[] = { 0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 63, 0, 0x53, 0xFF, 0xD9 };
    memcpy(to, begin_file, sizeof begin_file), to += sizeof begin_file;
    memset(to, 16, 64), to += 64;
    memcpy(to, frame, sizeof frame), to += sizeof frame;
    memcpy(to, (uint8_t[22]){ 0xFF, 0xC4, 0, 20, 0x00, 1, [21] = 4 }, 22), to += 22;
    memcpy(to, (uint8_t[22]){ 0xFF, 0xC4, 0, 20, 0x10, 1, [21] = 0 }, 22), to += 22;
    memcpy(to, scan, sizeof scan), to += sizeof scan;
    files_write(files_path(folder, "image.jpg"), file, (size_t)(to - file));
    memset(expected, 148, sizeof expected);
    files_expect_image(files_path(folder, "image.jpg"), 0, cornu_type(CORNU_U8, 8, 8, 1), expected);
}

/* Pixels as Pillow decodes them, up to the rounding of another inverse transform. */
static void test_jpeg_colours_agree_with_pillow(void **state)
{
    (void)state;
    FILE *golden = fopen("tests/golden/jpegs/pixels.txt", "r");
    assert_non_null(golden);
    char name[32], path[128];
    int  height, width, cases = 0;
    while (fscanf(golden, "%31s %d %d", name, &height, &width) == 3) {
        CornuArray image;
        snprintf(path, sizeof path, "tests/golden/jpegs/%s.jpg", name);
        assert_int_equal(cornu_image_load(path, 3, &image), CORNU_OK);
        assert_true(cornu_type_equal(image.type, cornu_type(CORNU_U8, height, width, 3)));
        for (int i = 0; i < height * width * 3; i++) {
            const int got = ((const uint8_t *)image.data)[i];
            int       value;
            assert_int_equal(fscanf(golden, "%d", &value), 1);
            if (abs(got - value) > 3)
                fail_msg("%s, pixel (%d, %d), channel %d: %d, Pillow has %d", name,
                         i / 3 / width, i / 3 % width, i % 3, got, value);
        }
        free(image.data);
        cases++;
    }
    fclose(golden);
    assert_int_equal(cases, 10);
}

static void expect_failure(const char *path, int channels, CornuStatus status, const char *text)
{
    CornuArray image = { .data = folder };
    assert_int_equal(cornu_image_load(path, channels, &image), status);
    assert_ptr_equal(image.data, folder);
    if (!strstr(cornu_error_message(), path) || !strstr(cornu_error_message(), text))
        fail_msg("\"%s\" does not name %s and \"%s\"", cornu_error_message(), path, text);
}

static void test_unreadable_images(void **state)
{
    (void)state;
    expect_failure(files_path(folder, "absent.png"), 1, CORNU_ERR_FILE, "No such file");
    expect_failure(folder, 1, CORNU_ERR_FILE, "is a folder, expected a file");
    files_write(files_path(folder, "text.png"), "hello", 5);
    expect_failure(files_path(folder, "text.png"), 1, CORNU_ERR_FORMAT, "not a readable");
    files_write(files_path(folder, "empty.png"), "", 0);
    expect_failure(files_path(folder, "empty.png"), 1, CORNU_ERR_FORMAT, "not a readable");
    expect_failure(files_path(folder, "text.png"), 2, CORNU_ERR_ARGUMENT, "2 channels");

    uint8_t     pixels[PIXELS], file[4096];
    const char *path = files_path(folder, "whole.png");
    for (int i = 0; i < PIXELS; i++) pixels[i] = (uint8_t)(i * i);
    files_write_png(path, SIZE, SIZE, 1, pixels);
    size_t size = files_read(path, file, sizeof file);
    for (size_t length = 1; length < size / 2; length += 7) {
        files_write(files_path(folder, "short.png"), file, length);
        expect_failure(files_path(folder, "short.png"), 1, CORNU_ERR_FORMAT,
                       length < 8 ? "not a readable image" : "PNG image");
    }
    /* A flipped bit in a chunk's data or checksum is an error, never different pixels. */
    for (size_t at = 8 + 8; at < size - 12; at += 3) {
        file[at] ^= 4;
        files_write(files_path(folder, "bit.png"), file, size);
        file[at] ^= 4;
        expect_failure(files_path(folder, "bit.png"), 1, CORNU_ERR_FORMAT, "bit.png: ");
    }
    file[size - 20] ^= 1;
    files_write(files_path(folder, "bit.png"), file, size);
    file[size - 20] ^= 1;
    expect_failure(files_path(folder, "bit.png"), 1, CORNU_ERR_FORMAT,
                   "wrong checksum of chunk IDAT");
    /* A width of 2^24 in the header, followed by little data. */
    memcpy(file + 16, (const uint8_t[]){ 1, 0, 0, 0 }, 4);
    files_write(files_path(folder, "wide.png"), file, size);
    expect_failure(files_path(folder, "wide.png"), 1, CORNU_ERR_FORMAT, "not a readable");
}

/* A Huffman table of 16 * 255 codes, before the frame and after it. */
static void test_huffman_tables(void **state)
{
    (void)state;
    enum { CODES = 16 * 255, TABLE = 4 + 17 + CODES };
    static uint8_t file[2 + 13 + TABLE] = { 0xFF, 0xD8 };
    static const uint8_t frame[] = { 0xFF, 0xC0, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0 };
    const char    *path = files_path(folder, "table.jpg");
    uint8_t       *table = file + 2;
    int64_t        height, width;
    memcpy(table, (uint8_t[]){ 0xFF, 0xC4, (TABLE - 2) >> 8, (TABLE - 2) & 0xFF, 0 }, 5);
    memset(table + 5, 255, 16);
    files_write(path, file, sizeof file);
    expect_failure(path, 1, CORNU_ERR_FORMAT, "256 codes");
    assert_int_equal(cornu_image_size(path, &height, &width), CORNU_ERR_FORMAT);
    memmove(table + sizeof frame, table, TABLE);
    memcpy(table, frame, sizeof frame);
    files_write(path, file, sizeof file);
    expect_failure(path, 1, CORNU_ERR_FORMAT, "256 codes");
    assert_int_equal(cornu_image_size(path, &height, &width), CORNU_OK);
    /* A marker may be preceded by any number of bytes FF. */
    memmove(file + 1, file, sizeof file - 1);
    files_write(path, file, sizeof file);
    expect_failure(path, 1, CORNU_ERR_FORMAT, "256 codes");
}

/* A small file that claims to be 16384 x 16384 is refused without decoding it. */
static void test_a_bomb_is_refused_by_its_header(void **state)
{
    (void)state;
    const uint8_t pixel = 0;
    uint8_t       file[4096];
    int64_t       height, width;
    const char   *path = files_path(folder, "bomb.png");
    files_write_png(path, 1, 1, 1, &pixel);
    assert_int_equal(cornu_image_size(path, &height, &width), CORNU_OK);
    assert_int_equal(height * width, 1);
    const size_t size = files_read(path, file, sizeof file);
    memcpy(file + 16, (const uint8_t[]){ 0, 0, 0x40, 0, 0, 0, 0x40, 0 }, 8);
    files_write(path, file, size);
    expect_failure(path, 1, CORNU_ERR_FORMAT, "16384 x 16384 pixels, expected at most");
    assert_int_equal(cornu_image_size(path, &height, &width), CORNU_ERR_FORMAT);
}

/* ---- Resizing ---- */

static void test_resizing_agrees_with_keras(void **state)
{
    (void)state;
    FILE *golden = fopen("tests/golden/images/resize.txt", "r");
    char  kind[16];
    int   crop, H, W, height, width, cases = 0;
    assert_non_null(golden);
    while (fscanf(golden, "%15s %d %d %d %d %d", kind, &crop, &H, &W, &height, &width) == 6) {
        uint8_t from[512], to[512];
        assert_true(H * W * 2 <= 512 && height * width * 2 <= 512);
        for (int i = 0; i < H * W * 2; i++) {
            const int h = i / 2 / W, w = i / 2 % W;
            from[i] = (uint8_t)(31 * h + 57 * w * w + 101 * (i % 2) + 7 * h * w);
        }
        assert_int_equal(cornu_image_resize(cornu_array(from, CORNU_U8, H, W, 2),
                                            kind[0] == 'n' ? CORNU_IMAGE_NEAREST
                                                           : CORNU_IMAGE_BILINEAR,
                                            crop, cornu_array(to, CORNU_U8, height, width, 2)),
                         CORNU_OK);
        for (int i = 0; i < height * width * 2; i++) {
            double value;
            assert_int_equal(fscanf(golden, "%lf", &value), 1);
            if (fabs(to[i] - value) > 0.501) fail_msg("case %d, value %d: %d, Keras has %g", cases,
                                                      i, to[i], value);
        }
        cases++;
    }
    fclose(golden);
    assert_int_equal(cases, 10);
}

/* A channel of pixel (h, w) of an image resized bilinearly, in the arithmetic of the library. */
static float resized(const float *from, const int64_t extent[3], const int64_t size[2], int64_t h,
                     int64_t w, int64_t c)
{
    const int64_t at[] = { h, w };
    int64_t       low[2], high[2];
    float         part[2];
    for (int axis = 0; axis < 2; axis++) {
        const float centre = ((float)at[axis] + 0.5f) *
                             ((float)extent[axis] / (float)size[axis]) - 0.5f;
        low[axis] = (int64_t)floorf(centre);
        part[axis] = centre - floorf(centre);
        high[axis] = low[axis] + 1 < extent[axis] ? low[axis] + 1 : extent[axis] - 1;
        if (low[axis] < 0) low[axis] = high[axis] = 0;
    }
    const float *top = from + low[0] * extent[1] * extent[2] + c;
    const float *bottom = from + high[0] * extent[1] * extent[2] + c;
    const int64_t x = low[1] * extent[2], y = high[1] * extent[2];
    const float   above = top[x] + (top[y] - top[x]) * part[1];
    const float   below = bottom[x] + (bottom[y] - bottom[x]) * part[1];
    return above + (below - above) * part[0];
}

/* Whole vectors and what is left of them, in rows and in channels: the same bits. */
static void test_resizing_any_extents(void **state)
{
    (void)state;
    enum { MOST = 40 * 40 * 9 };
    static uint8_t from[MOST], to[MOST];
    static float   numbers[MOST], out[MOST];
    for (int i = 0; i < MOST; i++) numbers[i] = from[i] = (uint8_t)(i * i / 7 + 13 * i);
    for (int64_t k = 0; k < 90; k++) {
        const int64_t extent[] = { 1 + 7 * k % 23, 1 + 5 * k % 37, 1 + k % 9 };
        const int64_t size[] = { 1 + 11 * k % 29, 1 + 3 * k % 40 };
        const CornuType made = cornu_type(CORNU_U8, size[0], size[1], extent[2]);
        if (extent[0] == size[0] && extent[1] == size[1]) continue;
        assert_int_equal(cornu_image_resize(
            cornu_array(from, CORNU_U8, extent[0], extent[1], extent[2]), CORNU_IMAGE_BILINEAR,
            false, cornu_array_from(to, made)), CORNU_OK);
        assert_int_equal(cornu_image_resize(
            cornu_array(numbers, CORNU_F32, extent[0], extent[1], extent[2]), CORNU_IMAGE_BILINEAR,
            false, cornu_array(out, CORNU_F32, size[0], size[1], extent[2])), CORNU_OK);
        for (int64_t i = 0; i < cornu_type_count(made); i++) {
            const float value = resized(numbers, extent, size, i / extent[2] / size[1],
                                        i / extent[2] % size[1], i % extent[2]);
            if (to[i] != (uint8_t)(value + 0.5f) || memcmp(&out[i], &value, sizeof value))
                fail_msg("case %d, value %d: %d and %.9g, expected %.9g", (int)k, (int)i, to[i],
                         (double)out[i], (double)value);
        }
    }
}

static void test_only_images_are_resized(void **state)
{
    (void)state;
    uint8_t from[12] = { 0 }, to[12];
    const CornuArray image = cornu_array(from, CORNU_U8, 2, 2, 3);
    const CornuArray bad[] = { cornu_array(to, CORNU_U8, 2, 2, 1), cornu_array(to, CORNU_U8, 2, 2),
                               cornu_array(to, CORNU_U8, 0, 2, 3),
                               cornu_array(NULL, CORNU_U8, 1, 1, 3),
                               cornu_array(to, CORNU_F32, 1, 1, 3) };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(cornu_image_resize(image, CORNU_IMAGE_BILINEAR, false, bad[i]),
                         CORNU_ERR_SHAPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_of_every_kind),
        cmocka_unit_test(test_jpeg),
        cmocka_unit_test(test_jpeg_colours_agree_with_pillow),
        cmocka_unit_test(test_unreadable_images),
        cmocka_unit_test(test_huffman_tables),
        cmocka_unit_test(test_a_bomb_is_refused_by_its_header),
        cmocka_unit_test(test_resizing_agrees_with_keras),
        cmocka_unit_test(test_resizing_any_extents),
        cmocka_unit_test(test_only_images_are_resized),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
