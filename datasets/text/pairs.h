/*
 * Pairs of sentences, one of each language, as translation learns them.
 *
 *     CornuPairs *pairs = cornu_pairs_load("spa-eng.tsv");
 *     printf("%s -> %s\n", pairs->source[0], pairs->target[0]);
 *     cornu_pairs_free(pairs);
 */
#ifndef CORNU_DATASETS_PAIRS_H
#define CORNU_DATASETS_PAIRS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data; cornu_pairs_free frees it. */
typedef struct {
    int64_t      count;
    const char **source, **target;   /* UTF-8, without tabs and line ends */
    char        *texts;              /* what they point into */
} CornuPairs;

/*
 * Reads a file of at most 512 MiB with a pair in each line, source TAB target. Lines end in LF, CR
 * LF or CR; a byte-order mark and empty lines at the end of the file are skipped. NULL with
 * CORNU_ERR_FILE if it cannot be read; CORNU_ERR_FORMAT, naming line and column (in characters,
 * from 1), for a line without a tab or with two, for an empty side, and where it is not valid
 * UTF-8 or has a control character.
 */
CornuPairs *cornu_pairs_load(const char *path);

/* The same from memory; `name` is for messages. */
CornuPairs *cornu_pairs_parse(const char *bytes, size_t size, const char *name);

/*
 * Pairs of two invented languages with known rules, given by the seed: no sentence comes twice.
 *     words       each has one translation, whose ending agrees with others
 *     order       subject verb object, adverb last, adjectives before their noun; translated
 *                 adverb first, subject object verb, adjectives after their noun
 *     agreement   articles, adjectives and nouns end by the noun's gender, of three, and all three
 *                 by its number; the verb by the number of its subject
 * At most 2^20.
 */
CornuPairs *cornu_pairs_synthetic(uint64_t seed, int64_t count);

/* Once; NULL is ignored. */
void cornu_pairs_free(CornuPairs *pairs);

#ifdef __cplusplus
}
#endif
#endif
