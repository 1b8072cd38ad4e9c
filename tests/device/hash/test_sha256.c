/* SHA-256 of a file: the messages of FIPS 180-2, appendix B, and an empty one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/hash/sha256_internal.h"
#include "../../datasets/files.h"
#include "../../skip.h"

static void test_sha256(void **state)
{
    (void)state;
    static const struct { const char *text, *sum; } cases[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
          "lmnopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
    };
    char sum[CORNU__SHA256_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        files_write(files_path(folder, "message"), cases[i].text, strlen(cases[i].text));
        assert_int_equal(cornu__sha256_file(files_path(folder, "message"), sum), CORNU_OK);
        assert_string_equal(sum, cases[i].sum);
    }
    static char many[1000000];
    memset(many, 'a', sizeof many);
    files_write(files_path(folder, "message"), many, sizeof many);
    assert_int_equal(cornu__sha256_file(files_path(folder, "message"), sum), CORNU_OK);
    assert_string_equal(sum,
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    assert_int_equal(cornu__sha256_file(files_path(folder, "absent"), sum), CORNU_ERR_FILE);
}

/* Digests are made by instructions where there are some, so the portable code has a test here: both
 * have the state of "abc", padded (FIPS 180-2, appendix B.1), and the same of other blocks. */
static void test_instructions(void **state)
{
    (void)state;
    enum { BLOCKS = 5 };
    static const uint32_t begin[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                       0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };
    static const uint32_t abc[8] = { 0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223,
                                     0xb00361a3, 0x96177a9c, 0xb410ff61, 0xf20015ad };
    unsigned char message[CORNU__SHA256_BLOCK] = { 'a', 'b', 'c', 0x80, [63] = 24 };
    unsigned char many[BLOCKS * CORNU__SHA256_BLOCK];
    uint32_t      a[8], b[8];
    for (size_t i = 0; i < sizeof many; i++) many[i] = (unsigned char)(i * i + 7 * i / 3);
    memcpy(a, begin, sizeof a);
    cornu__sha256_blocks(a, message, 1);
    assert_memory_equal(a, abc, sizeof a);
    if (!cornu__sha256_x86()) SKIP_FOR(SKIP_ISA);
    memcpy(b, begin, sizeof b);
    cornu__sha256_blocks_x86(b, message, 1);
    assert_memory_equal(b, abc, sizeof b);
    cornu__sha256_blocks(a, many, BLOCKS);
    cornu__sha256_blocks_x86(b, many, BLOCKS);
    assert_memory_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions),
        cmocka_unit_test_setup_teardown(test_sha256, files_begin, files_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
