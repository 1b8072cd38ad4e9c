/* Safetensors files: round trips, equal bytes, files of the original library, hostile headers,
 * targets that cannot be written. */
#include "../../../nn/formats/safetensors.h"
#include "../../datasets/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../skip.h"

static char path[FILES_PATH], other[FILES_PATH];

static int set_up(void **state)
{
    files_begin(state);
    strcpy(path, files_path(folder, "a.safetensors"));
    strcpy(other, files_path(folder, "b.safetensors"));
    return 0;
}

static int tear_down(void **state)
{
    unlink(path);
    unlink(other);
    const int left_behind = files_count(folder);
    return files_end(state) || left_behind;
}

/* ---- Well-formed files ---- */

static float   kernel[6] = { 1, 2, 3, 4, 5, 6 }, bias[3] = { -1, 0, 0.5F };
static int64_t iteration = 1875;
static uint8_t flags[5] = { 0, 1, 1, 0, 1 };
static float   nothing[1];

static int make_arrays(CornuNamedArray *arrays, bool reversed)
{
    const CornuNamedArray all[] = {
        { "dense/kernel", cornu_array(kernel, CORNU_F32, 2, 3) },
        { "dense/bias", cornu_array(bias, CORNU_F32, 3) },
        { "flags", cornu_array(flags, CORNU_BOOL, 5) },
        { "adam/iteration", cornu_array_from(&iteration, cornu_scalar(CORNU_I64)) },
        { "none \"of\" \\ these \xc3\xa9", cornu_array(nothing, CORNU_F32, 4, 0) },
    };
    const int count = sizeof all / sizeof *all;
    for (int i = 0; i < count; i++)
        arrays[i] = all[reversed ? count - 1 - i : i];
    return count;
}

static const CornuMetadata texts[] = { { "config", "{\"a\": [1, 2]}" }, { "by", "cornu" } };

static void test_round_trip(void **state)
{
    (void)state;
    CornuNamedArray arrays[5];
    int count = make_arrays(arrays, false);
    assert_int_equal(cornu_safetensors_write(path, arrays, count, texts, 2), CORNU_OK);

    CornuSafetensors *file = cornu_safetensors_open(path);
    assert_non_null(file);
    assert_int_equal(cornu_safetensors_count(file), count);
    assert_string_equal(cornu_safetensors_at(file, 0)->name, "adam/iteration");
    assert_null(cornu_safetensors_at(file, count));
    assert_null(cornu_safetensors_find(file, "dense"));
    for (int i = 0; i < count; i++) {
        const CornuNamedArray *read = cornu_safetensors_find(file, arrays[i].name);
        assert_non_null(read);
        assert_true(cornu_type_equal(read->array.type, arrays[i].array.type));
        assert_memory_equal(read->array.data, arrays[i].array.data,
                            cornu_type_bytes(read->array.type));
    }
    assert_string_equal(cornu_safetensors_metadata(file, "config"), texts[0].text);
    assert_null(cornu_safetensors_metadata(file, "dtype"));
    cornu_safetensors_close(file);
}

static void test_equal_bytes(void **state)
{
    (void)state;
    static unsigned char a[4096], b[4096];
    CornuNamedArray arrays[5];
    int count = make_arrays(arrays, false);
    const CornuMetadata swapped[] = { texts[1], texts[0] };
    assert_int_equal(cornu_safetensors_write(path, arrays, count, texts, 2), CORNU_OK);
    make_arrays(arrays, true);
    assert_int_equal(cornu_safetensors_write(other, arrays, count, swapped, 2), CORNU_OK);
    size_t size = files_read(path, a, sizeof a);
    assert_int_equal(files_read(other, b, sizeof b), size);
    assert_memory_equal(a, b, size);
    assert_int_equal(a[0] % 8, 0);
}

static void test_empty_file(void **state)
{
    (void)state;
    assert_int_equal(cornu_safetensors_write(path, NULL, 0, NULL, 0), CORNU_OK);
    CornuSafetensors *file = cornu_safetensors_open(path);
    assert_non_null(file);
    assert_int_equal(cornu_safetensors_count(file), 0);
    assert_null(cornu_safetensors_metadata(file, "x"));
    cornu_safetensors_close(file);
}

/* Files that the original library wrote. */
static void test_reads_original(void **state)
{
    (void)state;
    CornuSafetensors *file = cornu_safetensors_open("tests/golden/networks/batches.safetensors");
    if (!file) {
        cornu_error_take();
        SKIP_FOR("golden files: tests/golden");
    }
    assert_true(cornu_safetensors_count(file) > 0);
    assert_non_null(cornu_safetensors_metadata(file, "golden"));
    cornu_safetensors_close(file);
}

static void test_original_reads(void **state)
{
    (void)state;
    const char *python = getenv("CORNU_PYTHON") ? getenv("CORNU_PYTHON") : "python3";
    char command[FILES_PATH + 600];
    snprintf(command, sizeof command, "%s -c 'import safetensors.numpy' 2>/dev/null", python);
    if (system(command) != 0) SKIP_FOR("safetensors: CORNU_PYTHON=an interpreter with safetensors");
    CornuNamedArray arrays[5];
    int count = make_arrays(arrays, false);
    assert_int_equal(cornu_safetensors_write(path, arrays, count, texts, 2), CORNU_OK);
    snprintf(command, sizeof command,
             "%s -c 'import safetensors as s; f = s.safe_open(\"%s\", \"np\");"
             " assert f.metadata()[\"by\"] == \"cornu\";"
             " assert f.get_tensor(\"dense/kernel\").tolist() == [[1, 2, 3], [4, 5, 6]];"
             " assert f.get_tensor(\"adam/iteration\") == 1875;"
             " assert f.get_tensor(\"flags\").tolist() == [False, True, True, False, True]'",
             python, path);
    assert_int_equal(system(command), 0);
}

/* ---- Hostile headers: `header` and 16 bytes of data, or whole files ---- */

#define ARRAY(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape \
    ",\"data_offsets\":[" begin "," end "]}"
#define GOOD ARRAY("a", "F32", "[4]", "0", "16")

static const struct { const char *header, *message; } hostile[] = {
    { "{" ARRAY("a", "F32", "[4]", "0", "12") "}", "takes 16 bytes, its offsets span 12" },
    { "{" ARRAY("a", "F32", "[3]", "0", "12") "}", "end at byte 12, its data at 16" },
    { "{" ARRAY("a", "F32", "[5]", "0", "20") "}", "expected a range within 0 to 16" },
    { "{" ARRAY("a", "F32", "[4]", "4", "20") "}", "expected a range within 0 to 16" },
    { "{" ARRAY("a", "F32", "[4]", "16", "0") "}", "bytes 16 to 0" },
    { "{" ARRAY("a", "F32", "[4]", "-16", "0") "}", "bytes -16 to 0" },
    { "{" ARRAY("a", "F32", "[4]", "0", "9223372036854775807") "}", "expected a range" },
    { "{" ARRAY("a", "F32", "[4]", "0", "9223372036854775808") "}", "JSON" },
    { "{" ARRAY("a", "F32", "[4]", "0.0", "16") "}", "not two integers" },
    { "{" ARRAY("a", "F32", "[4]", "\"0\"", "16") "}", "not two integers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}}", "not two integers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,8,16]}}", "not two integers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":16}}", "not two integers" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4]}}", "data_offsets" },
    { "{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,16]}}", "\"shape\"" },
    { "{\"a\":{\"shape\":[4],\"data_offsets\":[0,16]}}", "\"dtype\"" },
    { "{" ARRAY("a", "F31", "[4]", "0", "16") "}", "dtype F31, expected one of" },
    { "{" ARRAY("a", "f32", "[4]", "0", "16") "}", "dtype f32" },
    { "{" ARRAY("a", "", "[4]", "0", "16") "}", "dtype ," },
    { "{\"a\":{\"dtype\":7,\"shape\":[4],\"data_offsets\":[0,16]}}", "\"dtype\"" },
    { "{" ARRAY("a", "F32", "[-4]", "0", "16") "}", "axis 0" },
    { "{" ARRAY("a", "F32", "[2,2.0]", "0", "16") "}", "axis 1" },
    { "{" ARRAY("a", "F32", "[4,null]", "0", "16") "}", "axis 1" },
    { "{" ARRAY("a", "F32", "4", "0", "16") "}", "\"shape\"" },
    { "{" ARRAY("a", "F32", "[1,1,1,1,1,1,1,1,4]", "0", "16") "}", "9 axes" },
    { "{" ARRAY("a", "F32", "[4611686018427387904,4]", "0", "16") "}", "" },
    { "{" ARRAY("a", "F32", "[3037000500,3037000500,3037000500]", "0", "16") "}", "" },
    { "{" ARRAY("a", "F32", "[4,0]", "0", "16") "}", "takes 0 bytes" },
    { "{" ARRAY("a", "F32", "[2]", "0", "8") "," ARRAY("b", "F32", "[3]", "4", "16") "}",
      "\"b\" begins at byte 4, expected 8: arrays overlap" },
    { "{" ARRAY("a", "F32", "[4]", "0", "16") "," ARRAY("b", "F32", "[4]", "0", "16") "}",
      "overlap" },
    { "{" ARRAY("a", "F32", "[2]", "0", "8") "," ARRAY("b", "F32", "[1]", "12", "16") "}",
      "\"b\" begins at byte 12, expected 8: there is a gap" },
    { "{" ARRAY("a", "F32", "[2]", "8", "16") "}", "there is a gap" },
    { "{" GOOD "," GOOD "}", "JSON: duplicate" },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}",
      "JSON: duplicate" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16],\"x\":1}}",
      "keys other than" },
    { "{\"a\":[]}", "is not an object" },
    { "{\"__metadata__\":[]," GOOD "}", "__metadata__ is not an object" },
    { "{\"__metadata__\":{\"a\":1}," GOOD "}", "\"a\" is not a string" },
    { "{\"__metadata__\":{\"a\":{\"b\":{}}}," GOOD "}", "nests 4 deep" },
    { "{\"a\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}", "nests 17 deep" },
    { "{}", "its arrays end at byte 0, its data at 16" },
    { "{" GOOD, "JSON" },
    { "{" GOOD "} x", "JSON" },
    { "{" GOOD ",}", "JSON" },
    { "{a:1}", "JSON" },
    { "{\"\xff\":{}}", "JSON" },
    { "{\"a\\u0000b\":{}}", "JSON" },
    { "[" GOOD "]", "begins with byte 0x5b" },
    { " {" GOOD "}", "begins with byte 0x20" },
};

static size_t build(unsigned char *bytes, const char *header)
{
    const size_t length = strlen(header);
    memset(bytes, 0, 8);
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    memcpy(bytes + 8, header, length);
    memset(bytes + 8 + length, 0, 16);
    return 8 + length + 16;
}

static void refuse(const char *expected, CornuStatus status)
{
    cornu_error_take();
    assert_null(cornu_safetensors_open(path));
    assert_false(cornu_error_pending());
    if (status != CORNU_OK) assert_int_equal(cornu_error_status(), status);
    if (!strstr(cornu_error_message(), expected) || !strstr(cornu_error_message(), path))
        fail_msg("message: %s\nexpected: %s", cornu_error_message(), expected);
}

static void test_hostile(void **state)
{
    (void)state;
    static unsigned char bytes[4096];
    files_write(path, bytes, build(bytes, "{" GOOD "}"));
    CornuSafetensors *file = cornu_safetensors_open(path);
    assert_non_null(file);
    cornu_safetensors_close(file);
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        files_write(path, bytes, build(bytes, hostile[i].header));
        refuse(hostile[i].message, CORNU_OK);
    }
}

static void test_lengths(void **state)
{
    (void)state;
    static unsigned char bytes[4096];
    const size_t size = build(bytes, "{" GOOD "}");
    for (size_t cut = 0; cut < size; cut++) {         /* every truncation */
        files_write(path, bytes, cut);
        refuse("", CORNU_ERR_FORMAT);
    }
    for (int i = 1; i < 8; i++) {                     /* lengths beyond the file */
        bytes[i] ^= i == 7 ? 0xFF : 1;
        files_write(path, bytes, size);
        refuse("its header declares", CORNU_ERR_FORMAT);
        bytes[i] ^= i == 7 ? 0xFF : 1;
    }
    files_write(path, bytes, size + 1);                     /* a byte too many */
    refuse("end at byte 16, its data at 17", CORNU_ERR_FORMAT);
}

/* A file with any bit of the header flipped is refused, or read within bounds. */
static void test_flipped_bytes(void **state)
{
    (void)state;
    static unsigned char bytes[4096];
    const size_t size = build(bytes, "{\"__metadata__\":{\"k\":\"v\"},"
                              ARRAY("a", "F32", "[1,2]", "0", "8") ","
                              ARRAY("b", "U8", "[8]", "8", "16") "}");
    for (size_t i = 0; i < size - 16; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (unsigned char)(1 << bit);
            files_write(path, bytes, size);
            CornuSafetensors *file = cornu_safetensors_open(path);
            if (file) {
                double sum = 0.0;
                for (int a = 0; a < cornu_safetensors_count(file); a++) {
                    const CornuNamedArray *read = cornu_safetensors_at(file, a);
                    unsigned char byte;
                    for (size_t k = 0; k < cornu_type_bytes(read->array.type); k++) {
                        memcpy(&byte, (unsigned char *)read->array.data + k, 1);
                        sum += byte;
                    }
                }
                assert_true(sum == 0.0);
            }
            cornu_safetensors_close(file);
            cornu_error_take();
            bytes[i] ^= (unsigned char)(1 << bit);
        }
    }
}

static void test_no_file(void **state)
{
    (void)state;
    unlink(path);
    refuse("No such file", CORNU_ERR_FILE);
    assert_int_equal(mkfifo(path, 0600), 0);
    refuse("is a pipe, expected a file", CORNU_ERR_FILE);
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    refuse("is a folder", CORNU_ERR_FILE);
    rmdir(path);
}

/* ---- Targets that cannot be written ---- */

static void fail_to_write(const char *target, const char *expected)
{
    CornuNamedArray arrays[5];
    int count = make_arrays(arrays, false);
    assert_int_equal(cornu_safetensors_write(target, arrays, count, NULL, 0), CORNU_ERR_FILE);
    assert_non_null(strstr(cornu_error_message(), target));
    assert_non_null(strstr(cornu_error_message(), expected));
}

static void test_bad_targets(void **state)
{
    (void)state;
    fail_to_write(folder, "Is a directory");
    const char *target = files_path(folder, "absent/x.safetensors");
    assert_int_equal(rmdir(files_path(folder, "absent")), 0);
    fail_to_write(target, "No such file");
    if (access("/dev/full", W_OK) == 0) {
        fail_to_write("/dev/full", "No space left");
        unlink(path);
        assert_int_equal(symlink("/dev/full", path), 0);
        fail_to_write(path, "No space left");
        unlink(path);
        struct stat info;
        assert_int_equal(stat("/dev/full", &info), 0);
        assert_true(S_ISCHR(info.st_mode));
    }
}

/* The old file remains until the new one is complete; its mode and a link to it are kept. */
static void test_replaces(void **state)
{
    (void)state;
    CornuNamedArray arrays[5];
    struct stat info;
    int count = make_arrays(arrays, false);
    files_write(path, "old", 3);
    assert_int_equal(chmod(path, 0640), 0);
    unlink(other);
    assert_int_equal(symlink(path, other), 0);
    CornuNamedArray twice[2] = { arrays[0], arrays[0] };
    assert_int_equal(cornu_safetensors_write(other, twice, 2, NULL, 0), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "given twice"));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_size, 3);

    assert_int_equal(cornu_safetensors_write(other, arrays, count, NULL, 0), CORNU_OK);
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > 3);
    assert_int_equal(info.st_mode & 0777, 0640);
    assert_int_equal(lstat(other, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
}

static void test_bad_names(void **state)
{
    (void)state;
    const CornuNamedArray array = { "\xff", cornu_array(kernel, CORNU_F32, 6) };
    assert_int_equal(cornu_safetensors_write(path, &array, 1, NULL, 0), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "not UTF-8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_equal_bytes),
        cmocka_unit_test(test_empty_file),     cmocka_unit_test(test_reads_original),
        cmocka_unit_test(test_original_reads), cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_lengths),        cmocka_unit_test(test_flipped_bytes),
        cmocka_unit_test(test_no_file),        cmocka_unit_test(test_bad_targets),
        cmocka_unit_test(test_replaces),       cmocka_unit_test(test_bad_names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
