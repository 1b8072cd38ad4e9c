/* CRC-32C: the examples of RFC 3720, appendix B.4, and both ways to compute it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../device/hash/crc32c_internal.h"

static void examples_of_the_rfc(void **state)
{
    (void)state;
    unsigned char zeros[32] = { 0 }, ones[32], up[32], down[32];
    for (int i = 0; i < 32; i++) {
        ones[i] = 0xFF;
        up[i] = (unsigned char)i;
        down[i] = (unsigned char)(31 - i);
    }
    assert_int_equal(cornu__crc32c(zeros, 32), 0x8A9136AA);
    assert_int_equal(cornu__crc32c(ones, 32), 0x62A8AB43);
    assert_int_equal(cornu__crc32c(up, 32), 0x46DD794E);
    assert_int_equal(cornu__crc32c(down, 32), 0x113FDB5C);
    assert_int_equal(cornu__crc32c("", 0), 0);
}

static void both_ways_agree(void **state)
{
    (void)state;
    unsigned char bytes[80];
    for (int i = 0; i < 80; i++) bytes[i] = (unsigned char)(i * i * 7 + 3);
    for (size_t from = 0; from < 9; from++)
        for (size_t size = 0; from + size <= sizeof bytes; size++)
            assert_int_equal(cornu__crc32c(bytes + from, size),
                             cornu__crc32c_portable(bytes + from, size));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(examples_of_the_rfc),
                                        cmocka_unit_test(both_ways_agree) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
