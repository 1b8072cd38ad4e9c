/* Text drawn by code: lines of words of an invented language that depends on the seed. */
#include "canvas_internal.h"

enum { WORDS = 400, MOST_SYLLABLES = 3, SYLLABLE = 3, LINE = 9 };
static const uint32_t generator = UINT32_C(0xFFFF0004);

/* A random integer from 0 to count - 1. */
static int below(CornuChance *chance, int count)
{
    return (int)cornu__chance_between(chance, 0.0f, (float)count);
}

/* Writes word `number` of the language, which always has the same letters. */
static int spell(uint64_t seed, int number, char to[MOST_SYLLABLES * SYLLABLE])
{
    static const char consonants[] = "bcdfghlmnprstvw", vowels[] = "aeiou";
    CornuChance       chance = cornu__chance(seed, generator, 1 + number);
    const int         syllables = 1 + below(&chance, MOST_SYLLABLES);
    int               length = 0;
    for (int i = 0; i < syllables; i++) {
        to[length++] = consonants[below(&chance, sizeof consonants - 1)];
        to[length++] = vowels[below(&chance, sizeof vowels - 1)];
        if (below(&chance, 3)) continue;
        to[length++] = consonants[below(&chance, sizeof consonants - 1)];
    }
    return length;
}

void cornu_synthetic_text(uint64_t seed, int64_t count, char *text)
{
    CornuChance chance = cornu__chance(seed, generator, 0);
    for (int64_t at = 0; at < count;) {
        char        word[MOST_SYLLABLES * SYLLABLE];
        /* Squared, so that a few words are frequent and most are rare. */
        const float u = cornu__chance_between(&chance, 0.0f, 1.0f);
        const int   length = spell(seed, (int)(u * u * (float)WORDS), word);
        const char *separator = below(&chance, LINE) ? " " : below(&chance, 3) ? ",\n" : ".\n";
        for (int i = 0; i < length && at < count; i++) text[at++] = word[i];
        for (; *separator && at < count; separator++) text[at++] = *separator;
    }
}
