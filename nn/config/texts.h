/*
 * Lists of strings as arguments, such as the vocabulary of a StringLookup:
 *
 *     cornu_string_lookup(.vocabulary = cornu_texts("red", "green"))
 *
 * Constructors copy them.
 */
#ifndef CORNU_NN_TEXTS_H
#define CORNU_NN_TEXTS_H

#include <stdint.h>

/* A list of strings; values NULL: not given. */
typedef struct {
    const char *const *values;
    int64_t            count;
} CornuTexts;

#define cornu_texts(...)                                                      \
    ((CornuTexts){ (const char *const[]){ __VA_ARGS__ },                      \
                   (int64_t)(sizeof((const char *const[]){ __VA_ARGS__ }) / \
                             sizeof(const char *)) })

#endif
