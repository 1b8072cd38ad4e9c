/* .npz files: headers as NumPy writes them, and reading them back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cornu/cornu.h>
#include <cornu/nn/formats/npz.h>

#include "../../../device/memory_internal.h"
#include "../../../device/files/zip_internal.h"
#include "../../datasets/files.h"
#include "../../expect.h"

/* numpy.lib.format.header_data_from_array_1_0, printed by NumPy 1.24 for such arrays. */
static void headers_are_numpys(void **state)
{
    (void)state;
    static float         f32[6];
    static int64_t       i64[2];
    static const uint8_t u8[1];
    static const struct { CornuNamedArray array; const char *header; } cases[] = {
        { { "scalar", { { .dtype = CORNU_F32 }, f32 } },
          "{'descr': '<f4', 'fortran_order': False, 'shape': (), }" },
        { { "one", { { .dtype = CORNU_I64, .shape = { 1, { 2 } } }, i64 } },
          "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }" },
        { { "two", { { .dtype = CORNU_F32, .shape = { 2, { 2, 3 } } }, f32 } },
          "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" },
        { { "three", { { .dtype = CORNU_U8, .shape = { 3, { 1, 1, 1 } } }, (void *)u8 } },
          "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1), }" },
    };
    enum { COUNT = sizeof cases / sizeof *cases };
    CornuNamedArray arrays[COUNT];
    const char     *path = files_path(folder, "a.npz");
    for (int i = 0; i < COUNT; i++) arrays[i] = cases[i].array;
    assert_int_equal(cornu_npz_write(path, arrays, COUNT), CORNU_OK);
    CornuZip *zip = cornu__zip_open(path);
    assert_non_null(zip);
    for (int i = 0; i < COUNT; i++) {
        unsigned char *bytes;
        size_t         size;
        const size_t   length = strlen(cases[i].header);
        assert_int_equal(cornu__zip_read(zip, i, &bytes, &size), CORNU_OK);
        assert_memory_equal(bytes, "\x93NUMPY\1\0", 8);
        const size_t header = bytes[8] + 256u * bytes[9];
        assert_int_equal((10 + header) % 64, 0);
        assert_memory_equal(bytes + 10, cases[i].header, length);
        for (size_t k = length; k < header - 1; k++) assert_int_equal(bytes[10 + k], ' ');
        assert_int_equal(bytes[10 + header - 1], '\n');
        assert_int_equal(size, 10 + header + cornu_type_bytes(arrays[i].array.type));
        cornu__release(bytes);
    }
    cornu__zip_close(zip);
    CornuNpz *file = cornu_npz_open(path);
    if (!file) fail_msg("%s", cornu_error_message());
    for (int i = 0; i < COUNT; i++)
        assert_true(cornu_type_equal(cornu_npz_find(file, arrays[i].name)->array.type,
                                     arrays[i].array.type));
    cornu_npz_close(file);
}

/* A member of an archive is a .npy file. */
static void one_array_alone(void **state)
{
    (void)state;
    static float          values[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    const CornuNamedArray one = { "x", cornu_array(values, CORNU_F32, 2, 3) };
    const char           *path = files_path(folder, "b.npz");
    assert_int_equal(cornu_npz_write(path, &one, 1), CORNU_OK);
    unsigned char *bytes;
    size_t         size;
    CornuZip      *zip = cornu__zip_open(path);
    assert_int_equal(cornu__zip_read(zip, 0, &bytes, &size), CORNU_OK);
    for (size_t cut = 0; cut <= 1; cut++) {
        files_write(files_path(folder, "b.npy"), bytes, size - cut);
        CornuNpz *file = cornu_npz_open(files_path(folder, "b.npy"));
        if (cut) {
            assert_null(file);
            expect_error(cornu_error_status(), CORNU_ERR_FORMAT,
                         "b.npy: f32 (2, 3) takes 24 bytes, the member has 23");
        } else {
            assert_int_equal(cornu_npz_count(file), 1);
            const CornuNamedArray *found = cornu_npz_find(file, "arr_0");
            assert_true(cornu_type_equal(found->array.type, one.array.type));
            assert_memory_equal(found->array.data, values, sizeof values);
        }
        cornu_npz_close(file);
    }
    cornu__release(bytes);
    cornu__zip_close(zip);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(headers_are_numpys),
                                        cmocka_unit_test(one_array_alone) };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
