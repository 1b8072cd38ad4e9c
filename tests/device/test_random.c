/* Philox 4x32-10 against the known answers of Random123 (kat_vectors). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../device/random.h"

static const struct { uint64_t seed; uint32_t counter[4], out[4]; } known[] = {
    { 0, { 0, 0, 0, 0 }, { 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8 } },
    { UINT64_MAX, { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff },
      { 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd } },
    { 0x299f31d0a4093822, { 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344 },
      { 0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1 } },
};

static void philox_gives_the_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint32_t out[4];
        cornu_philox(known[i].seed, known[i].counter, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

static void uniforms_stay_below_one(void **state)
{
    (void)state;
    assert_true(cornu_uniform(0) == 0.0f);
    assert_true(cornu_uniform(0xff) == 0.0f);
    assert_true(cornu_uniform(UINT32_C(0x80000000)) == 0.5f);
    assert_true(cornu_uniform(UINT32_MAX) == 1.0f - 0x1p-24f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(uniforms_stay_below_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
