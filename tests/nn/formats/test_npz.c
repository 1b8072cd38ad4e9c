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
#include "../../../nn/formats/zip_internal.h"
#include "../../datasets/files.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(headers_are_numpys) };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
