/*
 * Most numbers in files have at most 19 digits and small exponents: w 10^q with a whole number w of
 * 64 bits. If w and 10^|q| are doubles, one multiplication or division rounds the exact result:
 * Clinger, "How to Read Floating Point Numbers Accurately", PLDI 1990, section 5.
 *
 * Otherwise w is multiplied by the first 128 bits of 5^q, which decide the rounding but for very
 * few numbers: Lemire, "Number Parsing at a Gigabyte per Second", Software: Practice and Experience
 * 51 (2021), sections 5 to 9. The powers' bits are computed once.
 *
 * What is left, with more digits, larger exponents or results below the normal range, strtod reads.
 */
#include "number_internal.h"

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "../../device/text/print.h"

__extension__ typedef unsigned __int128 Wide;

/* 5^55 is the largest power below 2^128. */
enum { MOST_DIGITS = 19, EXACT_POWER = 22, LARGEST_POWER = 55 };

typedef struct { uint64_t high, low; } Power;

static Power          powers[2 * LARGEST_POWER + 1];   /* of 5, from -LARGEST_POWER */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static Power split_wide(Wide bits) { return (Power){ (uint64_t)(bits >> 64), (uint64_t)bits }; }

/* The first 128 bits of 2^n / d, rounded down. */
static Wide reciprocal(Wide d)
{
    Wide rest = 1, quotient = 0;
    while (rest < d) {   /* up to the power of two that is not below d */
        if (rest >> 127) break;
        rest <<= 1;
    }
    rest = rest >= d ? rest >> 1 : rest;   /* now the last one below it */
    for (int i = 0; i < 128; i++) {
        const bool carry = rest >> 127;
        rest <<= 1;
        quotient <<= 1;
        if (!carry && rest < d) continue;
        rest -= d;
        quotient |= 1;
    }
    return quotient;
}

/* Powers with positive exponents are rounded down; others up as long as w times them cannot be told
 * from the exact product by that, which is what the rule for ties relies on. */
static void find_powers(void)
{
    enum { ROUNDED_UP = 27 };
    Wide power = 1;
    for (int q = 0; q <= LARGEST_POWER; q++, power *= 5) {
        Wide bits = power;
        while (!(bits >> 127)) bits <<= 1;
        powers[LARGEST_POWER + q] = split_wide(bits);
        if (q > 0)
            powers[LARGEST_POWER - q] = split_wide(reciprocal(power) + (q <= ROUNDED_UP ? 1 : 0));
    }
}

/* w 10^q, where w is not 0 and |q| at most LARGEST_POWER; false if it has to be found otherwise. */
static bool by_product(uint64_t w, int q, double *number)
{
    enum { BIAS = 1023, DIGITS = 52, TIES_FROM = -4, TIES_TO = 23 };
    pthread_once(&once, find_powers);
    const Power power = powers[LARGEST_POWER + q];
    const int   zeros = __builtin_clzll(w);
    const Wide  first = (Wide)(w << zeros) * power.high;
    uint64_t    high = (uint64_t)(first >> 64), low = (uint64_t)first;
    if ((high & 0x1FF) == 0x1FF) {   /* the bits below could carry */
        const uint64_t more = (uint64_t)((Wide)(w << zeros) * power.low >> 64);
        low += more;
        high += low < more;
    }
    if (low == UINT64_MAX && (q < -27 || q > LARGEST_POWER)) return false;
    const int upper = (int)(high >> 63), shift = upper + 64 - DIGITS - 3;
    uint64_t  mantissa = high >> shift;
    int       exponent = (((152170 + 65536) * q) >> 16) + 63 + upper - zeros + BIAS;
    if (exponent <= 0) return false;
    const bool tie = low <= 1 && q >= TIES_FROM && q <= TIES_TO && (mantissa & 3) == 1 &&
                     mantissa << shift == high;
    if (tie) mantissa--;   /* to even */
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >> (DIGITS + 1)) {
        mantissa >>= 1;
        exponent++;
    }
    if (exponent >= 2 * BIAS + 1) return false;
    const uint64_t bits = (mantissa & ((UINT64_C(1) << DIGITS) - 1)) |
                          (uint64_t)exponent << DIGITS;
    memcpy(number, &bits, sizeof bits);
    return true;
}

static bool find_number(uint64_t w, int64_t q, double *number)
{
    static const double tens[EXACT_POWER + 1] = {
        1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22
    };
    *number = (double)w;
    if (w == 0 || (q == 0 && w >> 53 == 0)) return true;
#if FLT_EVAL_METHOD == 0
    if (w >> 53 == 0 && q >= -EXACT_POWER && q <= EXACT_POWER) {
        *number = q < 0 ? *number / tens[-q] : *number * tens[q];
        return true;
    }
#endif
    return q >= -LARGEST_POWER && q <= LARGEST_POWER && by_product(w, (int)q, number);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Whether the eight characters are digits; *value is the number they form. The tests and sums are
 * of all bytes at once: Lemire's article, section 3. */
static bool eight_digits(const char *text, uint64_t *value)
{
    uint64_t bytes;
    memcpy(&bytes, text, sizeof bytes);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bytes = __builtin_bswap64(bytes);
#endif
    if (((bytes + 0x4646464646464646) | (bytes - 0x3030303030303030)) & 0x8080808080808080)
        return false;
    bytes -= 0x3030303030303030;
    bytes = bytes * 10 + (bytes >> 8);
    *value = ((bytes & 0x000000FF000000FF) * (100 + (UINT64_C(1000000) << 32)) +
              (bytes >> 16 & 0x000000FF000000FF) * (1 + (UINT64_C(10000) << 32))) >> 32;
    return true;
}

/* Reads digits, which may run over; `end` may not be read. */
static const char *read_digits(const char *at, const char *limit, uint64_t *w)
{
    uint64_t eight;
    while (limit - at >= 8 && eight_digits(at, &eight)) {
        *w = *w * 100000000 + eight;
        at += 8;
    }
    for (; is_digit(*at); at++) *w = *w * 10 + (uint64_t)(*at - '0');
    return at;
}

/* The slow way, for what the table of powers does not decide: as the C library rounds. */
static bool by_library(const char *text, const char **end, double *number)
{
    char        *after;
    const double read = cornu__parse_number(text, &after);
    if (!isfinite(read)) return false;
    *number = read;
    *end = after;
    return true;
}

/* An exponent "e-12" at `at`; where there is none the number ends there. */
static const char *read_exponent(const char *at, int64_t *q)
{
    const char *from = at + 1;
    int64_t     value = 0;
    if (*at != 'e' && *at != 'E') return at;
    const bool negative = *from == '-';
    if (*from == '-' || *from == '+') from++;
    if (!is_digit(*from)) return at;
    for (; is_digit(*from); from++)
        if (value < 100000) value = value * 10 + (*from - '0');
    *q += negative ? -value : value;
    return from;
}

bool cornu__scan_number(const char *text, const char *limit, const char **end, double *number)
{
    const bool  negative = *text == '-';
    const char *first = text + (*text == '-' || *text == '+');
    uint64_t    w = 0;
    int64_t     q = 0;
    const char *at = read_digits(first, limit, &w), *digits = first;
    int64_t     count = at - first;
    if (*at == '.') {
        const char *fraction = at + 1;
        at = read_digits(fraction, limit, &w);
        q = fraction - at;
        count += at - fraction;
    }
    if (count == 0) return false;
    at = read_exponent(at, &q);
    for (; count > MOST_DIGITS && (*digits == '0' || *digits == '.'); digits++)
        count -= *digits == '0';   /* leading zeros are not digits of w */
    if (count > MOST_DIGITS || !find_number(w, q, number)) return by_library(text, end, number);
    if (negative) *number = -*number;
    *end = at;
    return true;
}
