/* HMAC-SHA-256: the test cases of RFC 4231, section 4. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/hash/hmac_internal.h"

/* A key or message of `count` times one byte, or a string. */
typedef struct {
    const char *text;
    int         count;
    char        byte;
} Bytes;

static size_t spell(char to[200], Bytes bytes)
{
    if (bytes.text) return strlen(strcpy(to, bytes.text));
    memset(to, bytes.byte, (size_t)bytes.count);
    return (size_t)bytes.count;
}

static void published_codes(void **state)
{
    (void)state;
    static const struct { Bytes key, message; const char *code; } cases[] = {
        { { NULL, 20, 0x0b }, { .text = "Hi There" },
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { { .text = "Jefe" }, { .text = "what do ya want for nothing?" },
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { { NULL, 20, (char)0xaa }, { NULL, 50, (char)0xdd },
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
        { { .text = "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13"
                    "\x14\x15\x16\x17\x18\x19" }, { NULL, 50, (char)0xcd },
          "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
        { { NULL, 131, (char)0xaa },
          { .text = "Test Using Larger Than Block-Size Key - Hash Key First" },
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
        { { NULL, 131, (char)0xaa },
          { .text = "This is a test using a larger than block-size key and a larger than "
                    "block-size data. The key needs to be hashed before being used by the HMAC "
                    "algorithm." },
          "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char          key[200], message[200], text[2 * CORNU_HMAC_SIZE + 1];
        unsigned char code[CORNU_HMAC_SIZE];
        const size_t  key_size = spell(key, cases[i].key), size = spell(message, cases[i].message);
        const size_t  cut = size / 3;
        const CornuHmacPart parts[] = { { message, cut }, { message + cut, size - cut } };
        cornu__hmac(key, key_size, parts, 2, code);
        for (int k = 0; k < CORNU_HMAC_SIZE; k++) snprintf(text + 2 * k, 3, "%02x", code[k]);
        assert_string_equal(text, cases[i].code);
    }
}

static void codes_are_compared_whole(void **state)
{
    (void)state;
    unsigned char a[CORNU_HMAC_SIZE], b[CORNU_HMAC_SIZE];
    memset(a, 7, sizeof a);
    memcpy(b, a, sizeof b);
    assert_true(cornu__hmac_equal(a, b));
    for (int i = 0; i < CORNU_HMAC_SIZE; i++)
        for (int bit = 0; bit < 8; bit++) {
            b[i] ^= (unsigned char)(1 << bit);
            assert_false(cornu__hmac_equal(a, b));
            b[i] = a[i];
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_codes),
        cmocka_unit_test(codes_are_compared_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
