#include "bleu.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"

enum { ORDER = 4 };

/* ---- Tokens of mteval-v13a ---- */

/* A sentence with blanks around its tokens, and where they begin. */
typedef struct {
    char   *text;
    int     used, space;
    int    *begins;
    int     count, begin_space;
} Words;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Punctuation that is a token wherever it is: ASCII but for . , - ' */
static bool splits(char c)
{
    return (c >= '{' && c <= '~') || (c >= '[' && c <= '`') || (c >= ' ' && c <= '&') ||
           (c >= '(' && c <= '+') || (c >= ':' && c <= '@') || c == '/';
}

static CornuStatus put_character(Words *words, char c)
{
    CORNU__TRY(cornu__reserve(&words->text, &words->space, words->used, 1, 1));
    words->text[words->used++] = c;
    return CORNU_OK;
}

static CornuStatus put_apart(Words *words, char c)
{
    CORNU__TRY(put_character(words, ' '));
    CORNU__TRY(put_character(words, c));
    return put_character(words, ' ');
}

/* The character that an entity of SGML at `text` stands for, and the entity's length. */
static char unescaped(const char *text, int *length)
{
    static const struct { const char *entity; char stands_for; } entities[] = {
        { "&quot;", '"' }, { "&amp;", '&' }, { "&lt;", '<' }, { "&gt;", '>' },
    };
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        *length = (int)strlen(entities[i].entity);
        if (!strncmp(text, entities[i].entity, (size_t)*length)) return entities[i].stands_for;
    }
    *length = 1;
    return *text == '\n' ? ' ' : *text;
}

static bool is_stop(char c) { return c == '.' || c == ','; }

/* A stop is apart unless digits are on both sides, a hyphen after a digit. Of two stops the second
 * does not count as one after a character other than a digit, as the expressions of mteval-v13a
 * have used that character for the first. */
static CornuStatus split_words(const char *text, Words *words)
{
    char before = ' ';
    bool used = false;      /* `before` is a stop that is apart for what is before it */
    int  length;
    words->used = words->count = 0;
    for (const char *at = text; *at; at += length) {
        const char c = unescaped(at, &length);
        int        next_length;
        const char next = at[length] ? unescaped(at + length, &next_length) : ' ';
        const bool after = is_stop(c) && !is_digit(before) && !used;
        const bool apart = splits(c) || after || (is_stop(c) && !is_digit(next)) ||
                           (c == '-' && is_digit(before));
        CORNU__TRY(apart ? put_apart(words, c) : put_character(words, c));
        before = c;
        used = after;
    }
    CORNU__TRY(put_character(words, '\0'));
    for (int i = 0; i + 1 < words->used;) {
        while (words->text[i] == ' ' || (words->text[i] >= '\t' && words->text[i] <= '\r'))
            words->text[i++] = '\0';
        if (i + 1 >= words->used) break;
        CORNU__TRY(cornu__reserve(&words->begins, &words->begin_space, words->count, 1,
                                  sizeof *words->begins));
        words->begins[words->count++] = i;
        while (words->text[i] && words->text[i] != ' ' &&
               !(words->text[i] >= '\t' && words->text[i] <= '\r')) i++;
    }
    return CORNU_OK;
}

static void words_free(Words *words)
{
    cornu__release(words->text);
    cornu__release(words->begins);
}

/* ---- Counts of n-grams ---- */

typedef struct {
    int64_t matches[ORDER], totals[ORDER], length, reference_length;
} Counts;

static bool same(const Words *a, int i, const Words *b, int k, int n)
{
    for (int w = 0; w < n; w++)
        if (strcmp(a->text + a->begins[i + w], b->text + b->begins[k + w])) return false;
    return true;
}

/* Each n-gram of the translation takes one of the reference that is not taken yet. */
static CornuStatus count_matches(const Words *translation, const Words *reference, Counts *counts)
{
    bool *taken = cornu__allocate((size_t)reference->count + 1, sizeof *taken);
    if (!taken) return CORNU_ERR_MEMORY;
    counts->length += translation->count;
    counts->reference_length += reference->count;
    for (int n = 1; n <= ORDER; n++) {
        memset(taken, 0, (size_t)reference->count * sizeof *taken);
        for (int i = 0; i + n <= translation->count; i++) {
            counts->totals[n - 1]++;
            for (int k = 0; k + n <= reference->count; k++) {
                if (taken[k] || !same(translation, i, reference, k, n)) continue;
                taken[k] = true;
                counts->matches[n - 1]++;
                break;
            }
        }
    }
    cornu__release(taken);
    return CORNU_OK;
}

/* exp of the mean logarithm of the precisions, times the penalty for short translations; a
 * precision of 0 counts as 1 / 2^k of one match, k growing with each. */
static CornuBleu score(const Counts *counts)
{
    const double ratio = counts->length
        ? (double)counts->reference_length / (double)counts->length : INFINITY;
    CornuBleu    bleu = { .length = counts->length, .reference_length = counts->reference_length,
                          .brevity_penalty = ratio > 1.0 ? exp(1.0 - ratio) : 1.0 };
    double       sum = 0.0, halved = 1.0;
    bool         whole = counts->matches[0] > 0;     /* longer n-grams match where words do */
    for (int n = 0; n < ORDER && counts->matches[0]; n++) {
        const double total = (double)counts->totals[n];
        if (counts->totals[n] == 0) {
            whole = false;
            break;
        }
        if (counts->matches[n] == 0) halved *= 2.0;
        bleu.precisions[n] = 100.0 * (counts->matches[n] ? (double)counts->matches[n] / total
                                                         : 1.0 / (halved * total));
        sum += log(bleu.precisions[n]);
    }
    if (whole) bleu.score = bleu.brevity_penalty * exp(sum / ORDER);
    return bleu;
}

CornuStatus cornu_bleu(const char *const *translations, const char *const *references,
                       int64_t count, CornuBleu *to)
{
    Counts      counts = { .length = 0 };
    Words       translation = { 0 }, reference = { 0 };
    CornuStatus status = CORNU_OK;
    if (count < 1) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_bleu: no sentences");
    for (int64_t i = 0; i < count && !status; i++) {
        status = split_words(translations[i], &translation);
        if (!status) status = split_words(references[i], &reference);
        if (!status) status = count_matches(&translation, &reference, &counts);
    }
    words_free(&translation);
    words_free(&reference);
    if (!status) *to = score(&counts);
    return status;
}
