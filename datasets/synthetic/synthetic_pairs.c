/* Pairs of sentences of two invented languages: the rules are those of pairs.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"
#include "canvas_internal.h"
#include "synthetic.h"

enum { NOUNS = 36, ADJECTIVES = 16, VERBS = 20, ADVERBS = 6, ARTICLES = 2, MOST = 1 << 20,
       LINE = 160 };
static const uint32_t generator = UINT32_C(0xFFFF0006);

/* The kinds of words, whose first letters tell them apart. */
typedef enum { NOUN, ADJECTIVE, VERB, ADVERB, ARTICLE } Kind;

/* A noun and what is said of it: the same in both languages. */
typedef struct {
    int  noun, article, adjectives[2], adjective_count;
    bool plural;
} Phrase;

typedef struct {
    Phrase subject, object;
    int    verb, adverb;             /* -1: no adverb */
} Sentence;

/* A random integer from 0 to count - 1. */
static int below(CornuChance *chance, int count)
{
    return (int)(cornu__chance_bits(chance) % (uint32_t)count);
}

static Phrase draw_phrase(CornuChance *chance)
{
    Phrase phrase = { .noun = below(chance, NOUNS), .article = below(chance, ARTICLES),
                      .plural = below(chance, 2) };
    phrase.adjective_count = below(chance, 3);
    for (int i = 0; i < phrase.adjective_count; i++)
        phrase.adjectives[i] = below(chance, ADJECTIVES);
    return phrase;
}

static Sentence draw_sentence(CornuChance *chance)
{
    Sentence sentence = { .subject = draw_phrase(chance), .object = draw_phrase(chance),
                          .verb = below(chance, VERBS), .adverb = -1 };
    if (below(chance, 2)) sentence.adverb = below(chance, ADVERBS);
    return sentence;
}

/* ---- Words ---- */

/* Appends word `number` of a kind, two syllables, an ending, and a blank. */
static void say(char *line, bool target, Kind kind, int number, const char *ending)
{
    static const char *const first[] = { "bcdfgklmprst", "vrzlnwjxqhgm" };
    const char *const        letters = first[target];
    const size_t             used = strlen(line);
    snprintf(line + used, LINE - used, "%s%c%c%c%c%s", used ? " " : "",
             letters[(int)kind * 2 + number / 25 % 2], "aeiou"[number % 5],
             letters[(number + 5 * target) % 12], "aeiou"[number / 5 % 5], ending);
}

/* ---- Languages ---- */

static void say_source_phrase(char *line, const Phrase *phrase)
{
    say(line, false, ARTICLE, phrase->article, phrase->plural ? "n" : "");
    for (int i = 0; i < phrase->adjective_count; i++)
        say(line, false, ADJECTIVE, phrase->adjectives[i], "");
    say(line, false, NOUN, phrase->noun, phrase->plural ? "s" : "");
}

static void say_source(char *line, const Sentence *sentence)
{
    say_source_phrase(line, &sentence->subject);
    say(line, false, VERB, sentence->verb, "");
    say_source_phrase(line, &sentence->object);
    if (sentence->adverb >= 0) say(line, false, ADVERB, sentence->adverb, "ly");
}

/* Endings by gender, which follows from the noun, and number. */
static void say_target_phrase(char *line, const Phrase *phrase)
{
    static const char *const endings[2][3] = { { "o", "a", "e" }, { "ok", "ak", "ek" } };
    const char *const        ending = endings[phrase->plural][phrase->noun % 3];
    say(line, true, ARTICLE, phrase->article, ending);
    say(line, true, NOUN, phrase->noun, ending);
    for (int i = 0; i < phrase->adjective_count; i++)
        say(line, true, ADJECTIVE, phrase->adjectives[i], ending);
}

static void say_target(char *line, const Sentence *sentence)
{
    if (sentence->adverb >= 0) say(line, true, ADVERB, sentence->adverb, "th");
    say_target_phrase(line, &sentence->subject);
    say_target_phrase(line, &sentence->object);
    say(line, true, VERB, sentence->verb, sentence->subject.plural ? "ti" : "ta");
}

/* ---- Pairs ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Draws more sentences than are wanted and drops those that came before. */
CornuStatus cornu_synthetic_pairs(uint64_t seed, int64_t count, const char **source,
                                  const char **target, char **texts)
{
    const int64_t drawn = count + count / 4 + 16;
    int64_t       kept = 0;
    if (count < 1 || count > MOST)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%lld synthetic pairs, expected 1 to %d",
                           (long long)count, MOST);
    const char **order = cornu__allocate((size_t)drawn, sizeof *order);
    char        *lines = *texts = cornu__allocate((size_t)drawn, 2 * (size_t)LINE);
    if (!order || !lines) {
        cornu__release(order);
        return CORNU_ERR_MEMORY;
    }
    for (int64_t i = 0; i < drawn; i++) {
        CornuChance    chance = cornu__chance(seed, generator, i);
        const Sentence sentence = draw_sentence(&chance);
        char          *line = lines + (size_t)i * 2 * LINE;
        say_source(line, &sentence);
        say_target(line + LINE, &sentence);
        order[i] = line;
    }
    qsort(order, (size_t)drawn, sizeof *order, by_text);
    for (int64_t i = 1, first = 0; i < drawn; i++) {    /* a repeated one is marked by its target */
        if (strcmp(order[i], order[first])) first = i;
        else ((char *)(uintptr_t)order[i])[LINE] = '\0';
    }
    for (int64_t i = 0; i < drawn && kept < count; i++) {
        const char *line = lines + (size_t)i * 2 * LINE;
        if (!line[LINE]) continue;
        source[kept] = line;
        target[kept++] = line + LINE;
    }
    cornu__release(order);
    return kept == count ? CORNU_OK
         : cornu__fail(CORNU_ERR_DATA, "only %lld different sentences were drawn of %lld",
                       (long long)kept, (long long)count);
}
