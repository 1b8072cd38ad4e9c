#include "hash_internal.h"

/* ---- FarmHash ---- */

static const uint64_t k0 = UINT64_C(0xc3a5c85c97cb3127), k1 = UINT64_C(0xb492b66fbe98f273),
                      k2 = UINT64_C(0x9ae16a3b2f90404f);

/* Little-endian, on any machine. */
static uint64_t load(const char *s, int bytes)
{
    uint64_t x = 0;
    for (int i = bytes - 1; i >= 0; i--) x = x << 8 | (unsigned char)s[i];
    return x;
}

static uint64_t load64(const char *s) { return load(s, 8); }

static uint64_t right(uint64_t x, int by) { return x >> by | x << (64 - by); }

static uint64_t fold(uint64_t x) { return x ^ x >> 47; }

static uint64_t mix(uint64_t u, uint64_t v, uint64_t factor)
{
    const uint64_t a = fold((u ^ v) * factor);
    return fold((v ^ a) * factor) * factor;
}

static uint64_t hash_0_to_16(const char *s, size_t n)
{
    const uint64_t factor = k2 + n * 2;
    if (n >= 8) {
        const uint64_t a = load64(s) + k2, b = load64(s + n - 8);
        return mix(right(b, 37) * factor + a, (right(a, 25) + b) * factor, factor);
    }
    if (n >= 4) return mix(n + (load(s, 4) << 3), load(s + n - 4, 4), factor);
    if (n == 0) return k2;
    const uint64_t first = (unsigned char)s[0], middle = (unsigned char)s[n >> 1];
    const uint64_t last = (unsigned char)s[n - 1];
    return fold((first + (middle << 8)) * k2 ^ (n + (last << 2)) * k0) * k2;
}

static uint64_t hash_17_to_32(const char *s, size_t n)
{
    const uint64_t factor = k2 + n * 2, a = load64(s) * k1, b = load64(s + 8);
    const uint64_t c = load64(s + n - 8) * factor, d = load64(s + n - 16) * k2;
    return mix(right(a + b, 43) + right(c, 30) + d, a + right(b + k2, 18) + c, factor);
}

static uint64_t hash_33_to_64(const char *s, size_t n)
{
    const uint64_t factor = k2 + n * 2, a = load64(s) * k2, b = load64(s + 8);
    const uint64_t c = load64(s + n - 8) * factor, d = load64(s + n - 16) * k2;
    const uint64_t y = right(a + b, 43) + right(c, 30) + d;
    const uint64_t z = mix(y, a + right(b + k2, 18) + c, factor);
    const uint64_t e = load64(s + 16) * factor, f = load64(s + 24);
    const uint64_t g = (y + load64(s + n - 32)) * factor, h = (z + load64(s + n - 24)) * factor;
    return mix(right(e + f, 43) + right(g, 30) + h, e + right(f + a, 18) + g, factor);
}

typedef struct { uint64_t a, b; } Pair;

/* Mixes the next 32 bytes into two words of state: WeakHashLen32WithSeeds. */
static Pair absorb(const char *s, uint64_t a, uint64_t b)
{
    const uint64_t w = load64(s), x = load64(s + 8), y = load64(s + 16), z = load64(s + 24);
    a += w;
    b = right(b + a + z, 21);
    const uint64_t c = a;
    a += x + y;
    b += right(a, 44);
    return (Pair){ a + z, b + c };
}

uint64_t cornu__farm_hash(const char *s, size_t n)
{
    if (n <= 16) return hash_0_to_16(s, n);
    if (n <= 32) return hash_17_to_32(s, n);
    if (n <= 64) return hash_33_to_64(s, n);
    const uint64_t seed = 81;
    const char    *end = s + (n - 1) / 64 * 64, *last = s + n - 64;
    uint64_t       x = seed * k2 + load64(s), y = seed * k1 + 113, z = fold(y * k2 + 113) * k2;
    Pair           v = { 0, 0 }, w = { 0, 0 };
    /* A block of 64 bytes; the last one overlaps the one before and counts differently. */
    for (;; s += 64) {
        const int      tail = s == end;
        const uint64_t factor = tail ? k1 + ((z & 0xff) << 1) : k1, times = tail ? 9 : 1;
        if (tail) {
            s = last;
            w.a += (n - 1) & 63;
            v.a += w.a;
            w.a += v.a;
        }
        x = right(x + y + v.a + load64(s + 8), 37) * factor;
        y = right(y + v.b + load64(s + 48), 42) * factor;
        x ^= w.b * times;
        y += v.a * times + load64(s + 40);
        z = right(z + w.a, 33) * factor;
        v = absorb(s, v.b * factor, x + w.a);
        w = absorb(s + 32, z + w.b, y + load64(s + 16));
        const uint64_t swapped = z;
        z = x;
        x = swapped;
        if (tail)
            return mix(mix(v.a, w.a, factor) + fold(y) * k0 + z, mix(v.b, w.b, factor) + x, factor);
    }
}

/* ---- SipHash ---- */

static uint64_t left(uint64_t x, int by) { return x << by | x >> (64 - by); }

static void rounds(uint64_t v[4], int count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = left(v[1], 13) ^ v[0];
        v[3] = left(v[3], 16) ^ v[2];
        v[0] = left(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = left(v[1], 17) ^ v[2];
        v[3] = left(v[3], 21) ^ v[0];
        v[2] = left(v[2], 32);
    }
}

uint64_t cornu__sip_hash(const uint64_t key[2], const char *text, size_t length)
{
    uint64_t v[4] = {
        key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
        key[0] ^ UINT64_C(0x6c7967656e657261), key[1] ^ UINT64_C(0x7465646279746573),
    };
    for (size_t i = 0; i <= length; i += 8) {
        const size_t left_over = length - i;
        uint64_t     word = left_over >= 8 ? load64(text + i)
                          : load(text + i, (int)left_over) | (uint64_t)length << 56;
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t cornu__hash_pair(uint64_t a, uint64_t b)
{
    const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    uint64_t       hash = (a ^ factor) ^ fold(b * factor) * factor;
    hash = fold(hash * factor) * factor;
    return fold(hash);
}
