/* Images of each format: the numbers that Pillow and pydicom read, and damaged files, refused by
 * name and byte. */
#include <ctype.h>
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

#define GOLDEN "tests/golden/image_files/"

/* Compares all cases of a file; returns how many. JPEG has another inverse transform. */
static int compare(const char *list, bool numbers)
{
    FILE *golden = fopen(list, "r");
    assert_non_null(golden);
    char name[32], path[128];
    int  channels, H, W, cases = 0;
    for (; fscanf(golden, "%31s %d %d %d", name, &channels, &H, &W) == 4; cases++) {
        const double   tolerance = strstr(name, "jpg") || strstr(name, "jpeg") ? 3.0 : 1e-3;
        CornuArray     image;
        CornuImageInfo info;
        snprintf(path, sizeof path, GOLDEN "%s", name);
        if (numbers ? cornu_image_load_f32(path, channels, &image)
                    : cornu_image_load(path, channels, &image))
            fail_msg("%s", cornu_error_message());
        assert_true(cornu_type_equal(image.type, cornu_type(numbers ? CORNU_F32 : CORNU_U8, H, W,
                                                            channels)));
        assert_int_equal(cornu_image_info(path, &info), CORNU_OK);
        assert_true(info.height == H && info.width == W);
        for (int i = 0; i < H * W * channels; i++) {
            double       value;
            const double got = numbers ? (double)((float *)image.data)[i]
                                       : ((uint8_t *)image.data)[i];
            assert_int_equal(fscanf(golden, "%lf", &value), 1);
            if (!(fabs(got - value) <= tolerance))
                fail_msg("%s, %d channels, pixel (%d, %d), channel %d: %g, expected %g", name,
                         channels, i / channels / W, i / channels % W, i % channels, got, value);
        }
        free(image.data);
    }
    fclose(golden);
    return cases;
}

static void test_pixels_of_each_format(void **state)
{
    (void)state;
    assert_int_equal(compare(GOLDEN "pixels.txt", false), 49);
}

static void test_numbers_of_each_format(void **state)
{
    (void)state;
    assert_int_equal(compare(GOLDEN "numbers.txt", true), 20);
}

static void expect_info(const char *name, const char *format, int channels, int bits)
{
    char           path[128];
    CornuImageInfo info;
    snprintf(path, sizeof path, GOLDEN "%s", name);
    assert_int_equal(cornu_image_info(path, &info), CORNU_OK);
    assert_string_equal(info.format, format);
    if (info.channels != channels || info.bits != bits)
        fail_msg("%s: %d channels of %d bits", name, info.channels, info.bits);
}

static void test_info(void **state)
{
    (void)state;
    expect_info("grey.bmp", "BMP", 1, 8);
    expect_info("palette.bmp", "BMP", 3, 8);
    expect_info("clear.gif", "GIF", 4, 8);
    expect_info("deep.png", "PNG", 1, 16);
    expect_info("deep.pgm", "PNM", 1, 16);
    expect_info("rgb.ppm", "PNM", 3, 8);
    expect_info("turned1.jpg", "JPEG", 3, 8);
    expect_info("ct.dcm", "DICOM", 1, 16);
    expect_info("rgb_jpeg.dcm", "DICOM", 3, 8);
}

/* Channels that a file does not have: 4 of a file without alpha, of 16 bits, and by default. */
static void test_channels_of_16_bits(void **state)
{
    (void)state;
    CornuArray one, four;
    assert_int_equal(cornu_image_load_f32(GOLDEN "deep.png", 0, &one), CORNU_OK);
    assert_true(cornu_type_equal(one.type, cornu_type(CORNU_F32, 5, 7, 1)));
    assert_int_equal(cornu_image_load_f32(GOLDEN "deep.png", 4, &four), CORNU_OK);
    assert_true(cornu_type_equal(four.type, cornu_type(CORNU_F32, 5, 7, 4)));
    const float *from = one.data, *to = four.data;
    for (int i = 0; i < 35; i++)
        for (int c = 0; c < 4; c++)
            assert_true(to[4 * i + c] == (c < 3 ? from[i] : 65535.0f));
    free(one.data);
    free(four.data);
}

/* ---- Damage ---- */

enum { MOST = 1 << 16 };

/* The file with `size` bytes, of which those at `at` are replaced, is refused with this text. */
static void expect_refusal(const char *name, size_t size, size_t at, const char *bytes,
                           size_t count, const char *text)
{
    static uint8_t file[MOST];
    char           path[128];
    CornuArray     image = { .data = file };
    CornuImageInfo info;
    snprintf(path, sizeof path, GOLDEN "%s", name);
    const size_t all = files_read(path, file, sizeof file);
    if (size == 0 || size > all) size = all;
    memcpy(file + at, bytes, count);
    const char *damaged = files_path(folder, name);
    files_write(damaged, file, size);
    const CornuStatus status = cornu_image_load(damaged, 0, &image);
    if (status != CORNU_ERR_FORMAT && status != CORNU_ERR_UNSUPPORTED)
        fail_msg("%s with %zu bytes, %zu at %zu: status %d", name, size, count, at, (int)status);
    assert_ptr_equal(image.data, file);
    if (!strstr(cornu_error_message(), damaged) || !strstr(cornu_error_message(), text))
        fail_msg("\"%s\" does not name %s and \"%s\"", cornu_error_message(), damaged, text);
    cornu_image_info(damaged, &info);
}

static const struct {
    const char *name;
    size_t      size, at;          /* size 0: all of it */
    const char *bytes;
    size_t      count;
    const char *text;
} damages[] = {
    { "rgb.bmp", 10, 0, "", 0, "byte 10: the file ends in its header" },
    { "rgb.bmp", 30, 0, "", 0, "byte 30: the file ends in its header" },
    { "rgb.bmp", 100, 0, "", 0, "byte 100: the file ends in row 1 of 5, expected 171 bytes" },
    { "rgb.bmp", 0, 14, "\1", 1, "byte 14: a header of 1 bytes" },
    { "rgb.bmp", 0, 28, "\7", 1, "7 bits a pixel" },
    { "rgb.bmp", 0, 30, "\1", 1, "compression 1" },
    { "rgb.bmp", 0, 18, "\0\0\0\x7F", 4, "pixels, expected at most" },
    { "rgb.bmp", 0, 18, "\0\0\0\0", 4, "has 0 x 5 pixels" },
    { "rgb.bmp", 0, 10, "\xFF\xFF\xFF\xFF", 4, "the file ends in row 0 of 5" },
    { "palette.bmp", 60, 0, "", 0, "the file ends in its palette" },
    { "palette.bmp", 0, 46, "\2\0\0\0", 4, "has a colour after the 2 of the palette" },

    { "palette.gif", 9, 0, "", 0, "byte 9: the file ends in its header" },
    { "palette.gif", 15, 0, "", 0, "byte 15: the file ends in a palette" },
    { "palette.gif", 30, 0, "", 0, "the file ends in its header, before a frame" },
    { "palette.gif", 41, 0, "", 0, "the data end at pixel" },
    { "palette.gif", 0, 25, "\x3B", 1, "byte 25: the end, of code 3B, before a frame" },
    { "palette.gif", 0, 25, "\x55", 1, "byte 25: a block of unknown code 55" },
    { "palette.gif", 0, 26, "\x09", 1, "byte 25: a frame of 7 x 5 pixels at (9, 0)" },
    { "palette.gif", 0, 35, "\x0E", 1, "byte 35: codes of 14 bits" },
    { "palette.gif", 0, 10, "\x01", 1, "" },
    { "palette.gif", 0, 6, "\0\0", 2, "" },
    { "long.gif", 3000, 0, "", 0, "byte 3000: the data end at pixel" },
    { "long.gif", 0, 797, "\xFF\xFF\xFF\xFF\xFF", 5, "of 6300, expected less than" },

    { "text.pgm", 4, 0, "", 0, "the width is not a number" },
    { "text.pgm", 17, 0, "", 0, "the height is not a number" },
    { "text.pgm", 40, 0, "", 0, "byte 40: the file ends at sample 3 of 6" },
    { "text.pgm", 0, 38, "x", 1, "byte 38: sample 2 of 6 is not a number" },
    { "text.pgm", 0, 40, "500", 3, "is above the maximum" },
    { "grey.pgm", 30, 0, "", 0, "byte 30: the file ends at sample 19 of 35" },
    { "grey.pgm", 0, 7, "99999", 5, "the maximum is not a number" },
    { "deep.pgm", 50, 0, "", 0, "the file ends at sample" },
    { "small.pgm", 0, 11, "\x10", 1, "byte 11: sample 1 of 6 is above the maximum" },
    { "bits.pbm", 9, 0, "", 0, "the file ends at sample" },
    { "rgb.ppm", 0, 3, "9", 1, "the file ends at sample 105 of 135" },

    { "deep.png", 60, 0, "", 0, "the file ends after" },
    { "deep.png", 0, 50, "\x55\x55", 2, "byte 33: wrong checksum of chunk IDAT" },
    { "turned1.jpg", 300, 0, "", 0, "byte 300: the file ends in the segment of marker" },
    { "turned1.jpg", 900, 0, "", 0, "byte 900: the file ends in scan 1" },

    { "ct.dcm", 131, 0, "", 0, "not a readable image" },
    { "ct.dcm", 140, 0, "", 0, "byte 140: the file ends in element (0002,0000)" },
    { "ct.dcm", 600, 0, "", 0, "the file ends in element" },
};

static void test_damaged_files_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++)
        expect_refusal(damages[i].name, damages[i].size, damages[i].at, damages[i].bytes,
                       damages[i].count, damages[i].text);
}

/* Where an element of a DICOM file begins, the last one: not that of a sequence. */
static size_t find_tag(const char *name, const char tag[4])
{
    static uint8_t file[MOST];
    char           path[128];
    size_t         found = 0;
    snprintf(path, sizeof path, GOLDEN "%s", name);
    const size_t size = files_read(path, file, sizeof file);
    for (size_t i = 132; i + 4 < size; i++)
        if (!memcmp(file + i, tag, 4) && (tag[0] == '\xFE' || isupper(file[i + 4]))) found = i;
    assert_true(found > 0);
    return found;
}

static void test_damaged_dicom_is_refused(void **state)
{
    (void)state;
    const struct {
        const char *name, *tag;
        size_t      after;
        const char *bytes;
        size_t      count;
        const char *text;
    } faults[] = {
        { "ct.dcm", "\x28\0\x10\0", 8, "\0\0", 2, "has 7 x 0 pixels" },
        { "ct.dcm", "\x28\0\x10\0", 8, "\xFF\xFF", 2, "x 65535 pixels, expected at most" },
        { "ct.dcm", "\x28\0\x10\0", 8, "\x06\0", 2, "have 70 bytes, of which the file has 70, "
                                                    "expected 84" },
        { "ct.dcm", "\x28\0\0\1", 8, "\x20", 1, "of 32 bits" },
        { "ct.dcm", "\x28\0\1\1", 8, "\x11", 1, "17 of them stored" },
        { "ct.dcm", "\x28\0\2\1", 8, "\x10", 1, "expected 1 sample of 8 or 16 bits" },
        { "ct.dcm", "\x28\0\2\0", 8, "\3", 1, "3 samples a pixel" },
        { "ct.dcm", "\x28\0\4\0", 8, "PALETTE COLOR ", 11, "\"PALETTE COL" },
        { "ct.dcm", "\x28\0\x50\x10", 8, "x", 1, "element (0028,1050) has 2 bytes, \"x0\"" },
        { "ct.dcm", "\2\0\x10\0", 26, "2", 1, "transfer syntax \"1.2.840.10008.1.2.2\" "
                                               "(big-endian)" },
        { "ct.dcm", "\xE0\x7F\x10\0", 8, "\xFF\xFF\xFF\xFF", 4, "the pixels are in items" },
        { "ct.dcm", "\xE0\x7F\x10\0", 2, "\x55", 1, "the file has no pixels" },
        { "rgb_jpeg.dcm", "\x28\0\x10\0", 8, "\x09", 1, "JPEG image of 7 x 5 pixels and 3 "
                                                        "channels, the header says 7 x 9 and 3" },
        { "rgb_jpeg.dcm", "\xFE\xFF\0\xE0", 4, "\xF0\xFF", 2, "the file ends in element "
                                                               "(FFFE,E000)" },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        expect_refusal(faults[i].name, 0, find_tag(faults[i].name, faults[i].tag) + faults[i].after,
                       faults[i].bytes, faults[i].count, faults[i].text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_of_each_format),
        cmocka_unit_test(test_numbers_of_each_format),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_channels_of_16_bits),
        cmocka_unit_test(test_damaged_files_are_refused),
        cmocka_unit_test(test_damaged_dicom_is_refused),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
