/* Sound files: the samples that soundfile reads, channels, damaged files, class folders. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/sound/sound_folder.h"
#include "../../expect.h"
#include "../../skip.h"
#include "../files.h"

#define GOLDEN "tests/golden/sounds/"
#define SKIP_SNDFILE "libsndfile: apt-get install libsndfile1"

static bool has_sndfile(void)
{
    void *library = dlopen("libsndfile.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library) dlclose(library);
    return library != NULL;
}

/* Compares the files whose format libsndfile reads, or the others; returns how many. */
static int compare(bool others)
{
    FILE *golden = fopen(GOLDEN "samples.txt", "r");
    assert_non_null(golden);
    char      name[32], path[128];
    long long rate, N, C;
    int       cases = 0;
    while (fscanf(golden, "%31s %lld %lld %lld", name, &rate, &N, &C) == 4) {
        const bool     chosen = !strstr(name, ".wav") == others;
        CornuArray     sound = { .data = NULL };
        CornuSoundInfo info;
        int64_t        got_rate = 0;
        snprintf(path, sizeof path, GOLDEN "%s", name);
        /* Decoders of Vorbis round differently. */
        const float tolerance = strstr(name, ".ogg") ? 1e-6f : 0.0f;
        if (chosen && cornu_sound_load(path, 0, &sound, &got_rate))
            fail_msg("%s", cornu_error_message());
        for (long long i = 0; i < N * C; i++) {
            float value;
            assert_int_equal(fscanf(golden, "%f", &value), 1);
            if (chosen && !(fabsf(((const float *)sound.data)[i] - value) <= tolerance))
                fail_msg("%s, sample %lld: %.9g, expected %.9g", name, i,
                         (double)((const float *)sound.data)[i], (double)value);
        }
        if (chosen) {
            assert_int_equal(got_rate, rate);
            assert_true(cornu_type_equal(sound.type, cornu_type(CORNU_F32, N, C)));
            expect_ok(cornu_sound_info(path, &info));
            assert_true(info.samples == N && info.channels == C && info.sampling_rate == rate);
            assert_true(info.seconds == (double)N / (double)rate);
            free(sound.data);
            cases++;
        }
    }
    fclose(golden);
    return cases;
}

static void test_wav_files_agree_with_soundfile(void **state)
{
    (void)state;
    assert_int_equal(compare(false), 9);
}

static void test_other_files_agree_with_soundfile(void **state)
{
    (void)state;
    if (!has_sndfile()) SKIP_FOR(SKIP_SNDFILE);
    assert_int_equal(compare(true), 4);
}

static void test_without_libsndfile(void **state)
{
    (void)state;
    CornuArray sound;
    if (has_sndfile()) SKIP_FOR("a machine without libsndfile");
    expect_error(cornu_sound_load(GOLDEN "mono.flac", 0, &sound, NULL), CORNU_ERR_UNSUPPORTED,
                 "mono.flac: needs libsndfile, which cannot be loaded");
}

static void test_channels(void **state)
{
    (void)state;
    CornuArray one, two, five;
    expect_ok(cornu_sound_load(GOLDEN "stereo.wav", 0, &two, NULL));
    expect_ok(cornu_sound_load(GOLDEN "stereo.wav", 1, &one, NULL));
    assert_true(cornu_type_equal(one.type, cornu_type(CORNU_F32, 30, 1)));
    const float *pair = two.data, *mean = one.data;
    for (int i = 0; i < 30; i++) assert_true(mean[i] == (pair[2 * i] + pair[2 * i + 1]) / 2.0f);
    free(two.data);
    free(one.data);
    expect_ok(cornu_sound_load(GOLDEN "i16.wav", 0, &one, NULL));
    expect_ok(cornu_sound_load(GOLDEN "i16.wav", 2, &two, NULL));
    pair = two.data, mean = one.data;
    for (int i = 0; i < 40; i++) assert_true(pair[2 * i] == mean[i] && pair[2 * i + 1] == mean[i]);
    free(two.data);
    free(one.data);
    expect_error(cornu_sound_load(GOLDEN "five.wav", 2, &five, NULL), CORNU_ERR_UNSUPPORTED,
                 "has 5 channels, of which 2 cannot be made");
    expect_error(cornu_sound_load(GOLDEN "five.wav", 3, &five, NULL), CORNU_ERR_ARGUMENT,
                 "3 channels requested");
}

/* ---- Damage ---- */

enum { MOST = 1 << 12 };

/* The file with `size` bytes, 0 for all, of which those at `at` are replaced. */
static const char *damage(const char *name, size_t size, size_t at, const char *bytes,
                          size_t count)
{
    static uint8_t file[MOST];
    char           path[128];
    snprintf(path, sizeof path, GOLDEN "%s", name);
    const size_t all = files_read(path, file, sizeof file);
    memcpy(file + at, bytes, count);
    const char *damaged = files_path(folder, name);
    files_write(damaged, file, size ? size : all);
    return damaged;
}

static void test_damaged_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t      size, at;
        const char *bytes;
        size_t      count;
        CornuStatus status;
        const char *text;
    } faults[] = {
        { "i16.wav", 3, 0, "", 0, CORNU_ERR_FORMAT, "not a readable sound file" },
        { "i16.wav", 12, 0, "", 0, CORNU_ERR_FORMAT, "byte 12: the file ends before its samples" },
        { "i16.wav", 30, 0, "", 0, CORNU_ERR_FORMAT, "byte 20: the file ends in its format" },
        { "i16.wav", 100, 0, "", 0, CORNU_ERR_FORMAT, "byte 100: the file ends at sample 28 of "
                                                 "40" },
        { "i16.wav", 0, 0, "RIFX", 4, CORNU_ERR_FORMAT, "not a readable sound file" },
        { "i16.wav", 0, 12, "fmx ", 4, CORNU_ERR_FORMAT, "byte 44: samples before their format" },
        { "i16.wav", 0, 16, "\x08", 1, CORNU_ERR_FORMAT, "byte 20: the file ends in its format" },
        { "i16.wav", 0, 16, "\xFF\xFF\xFF\xFF", 4, CORNU_ERR_FORMAT, "before its samples" },
        { "i16.wav", 0, 20, "\x07", 1, CORNU_ERR_UNSUPPORTED, "samples of format 7 and 16 bits" },
        { "i16.wav", 0, 22, "\0", 1, CORNU_ERR_FORMAT, "byte 22: the number of channels" },
        { "i16.wav", 0, 24, "\0\0", 2, CORNU_ERR_FORMAT, "byte 24: the sampling rate is 0" },
        { "i16.wav", 0, 32, "\x05", 1, CORNU_ERR_FORMAT, "byte 32: the bytes of a block" },
        { "i16.wav", 0, 34, "\x0C", 1, CORNU_ERR_UNSUPPORTED, "format 1 and 12 bits" },
        { "i16.wav", 0, 40, "\x52", 1, CORNU_ERR_FORMAT, "byte 124: the file ends at sample 40 of "
                                                         "41" },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *path = damage(faults[i].name, faults[i].size, faults[i].at, faults[i].bytes,
                                  faults[i].count);
        CornuArray  sound = { .data = folder };
        expect_error(cornu_sound_load(path, 0, &sound, NULL), faults[i].status, faults[i].text);
        assert_non_null(strstr(cornu_error_message(), path));
        assert_ptr_equal(sound.data, folder);
    }
}

/* The length that a program leaves that writes to a pipe. */
static void test_an_unknown_length(void **state)
{
    (void)state;
    CornuArray sound;
    expect_ok(cornu_sound_load(damage("i16.wav", 0, 40, "\xFF\xFF\xFF\xFF", 4), 0, &sound, NULL));
    assert_int_equal(sound.type.shape.extent[0], 40);
    free(sound.data);
}

static void test_damaged_flac_is_refused(void **state)
{
    (void)state;
    if (!has_sndfile()) SKIP_FOR(SKIP_SNDFILE);
    static const struct { size_t size, at; const char *bytes; size_t count; } faults[] = {
        { 4, 0, "", 0 },   { 20, 0, "", 0 },  { 42, 0, "", 0 },  { 100, 0, "", 0 },
        { 120, 0, "", 0 }, { 175, 0, "", 0 }, { 0, 4, "\x7F", 1 }, { 0, 25, "\xFF", 1 },
        { 0, 86, "\0", 1 }, { 0, 100, "\x55", 1 }, { 0, 174, "\x55", 1 },
    };
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        const char *path = damage("mono.flac", faults[i].size, faults[i].at, faults[i].bytes,
                                  faults[i].count);
        CornuArray  sound = { .data = folder };
        if (!cornu_sound_load(path, 0, &sound, NULL)) fail_msg("fault %zu is read", i);
        assert_non_null(strstr(cornu_error_message(), path));
        assert_ptr_equal(sound.data, folder);
    }
}

/* ---- Folders ---- */

/* A WAV file of 16 bits whose samples are its number. */
static void write_wav(const char *name, int rate, int samples, int number)
{
    uint8_t file[44 + 2 * 64] = "RIFF....WAVEfmt ";
    memcpy(file + 16, (uint8_t[]){ 16, 0, 0, 0, 1, 0, 1, 0, (uint8_t)rate, (uint8_t)(rate >> 8), 0,
                                   0, 0, 0, 0, 0, 2, 0, 16, 0, 'd', 'a', 't', 'a',
                                   (uint8_t)(2 * samples), 0, 0, 0 }, 28);
    for (int i = 0; i < samples; i++) file[44 + 2 * i] = (uint8_t)number;
    files_write(files_path(folder, name), file, 44 + 2 * (size_t)samples);
}

static void test_folders(void **state)
{
    (void)state;
    int               count;
    const CornuBatch *batch;
    write_wav("calls/cat/a.wav", 8000, 3, 1);
    write_wav("calls/cat/b.WAV", 8000, 9, 2);
    write_wav("calls/dog/c.wav", 8000, 5, 3);
    files_write(files_path(folder, "calls/dog/notes.txt"), "no sound", 8);
    CornuDataset *dataset = cornu_sound_folder(files_path(folder, "calls"), .samples = 5,
                                               .no_shuffle = true);
    if (!dataset) fail_msg("%s", cornu_error_message());
    const char *const *names = cornu_sound_folder_class_names(dataset, &count);
    assert_int_equal(count, 2);
    assert_string_equal(names[1], "dog");
    assert_non_null(strstr(cornu_sound_folder_path(dataset, 1), "cat/b.WAV"));
    assert_true(cornu_type_equal(cornu_dataset_type(dataset, 0), cornu_type(CORNU_F32, 5, 1)));
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    for (int i = 0; i < 3; i++) {
        expect_ok(cornu_iterator_next(iterator, &batch));
        const float *x = batch->arrays[0].data;
        for (int k = 0; k < 5; k++)
            assert_true(x[k] == (i == 0 && k >= 3 ? 0.0f : (float)(i + 1) / 32768.0f));
        assert_int_equal(*(const int32_t *)batch->arrays[1].data, i == 2);
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

static void test_bad_folders(void **state)
{
    (void)state;
    write_wav("rates/cat/a.wav", 8000, 3, 1);
    write_wav("rates/dog/b.wav", 9000, 3, 2);
    const char *rates = files_path(folder, "rates");
    expect_failure(cornu_sound_folder(rates, .samples = 5), CORNU_ERR_FORMAT,
                   "b.wav: has 9000 samples a second, expected 8000 as in the others");
    expect_failure(cornu_sound_folder(rates, .samples = 5, .sampling_rate = 16000),
                   CORNU_ERR_FORMAT, "2 of 2 sounds cannot be read");
    expect_failure(cornu_sound_folder(rates), CORNU_ERR_ARGUMENT, ".samples is 0");
    expect_failure(cornu_sound_folder(.samples = 5), CORNU_ERR_ARGUMENT, ".directory");
    expect_failure(cornu_sound_folder(rates, .samples = 5, .channels = 3), CORNU_ERR_ARGUMENT,
                   ".channels 3");
    files_write(files_path(folder, "none/cat/a.mp3"), "a", 1);
    expect_failure(cornu_sound_folder(files_path(folder, "none"), .samples = 5), CORNU_ERR_DATA,
                   "no sounds in its 1 folders, expected .wav, .flac, .ogg, .aiff or .au");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wav_files_agree_with_soundfile),
        cmocka_unit_test(test_other_files_agree_with_soundfile),
        cmocka_unit_test(test_without_libsndfile),
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_damaged_files_are_refused),
        cmocka_unit_test(test_an_unknown_length),
        cmocka_unit_test(test_damaged_flac_is_refused),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_bad_folders),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
