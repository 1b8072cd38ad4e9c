/* Lists of keywords in class tables, "value key", which blanks separate; one that takes a list of
 * tensors ends in a star. */
#include "architecture_internal.h"

#include <stdio.h>
#include <string.h>

/* Takes the next of the words in *text, which blanks separate; false after the last. */
bool cornu__next_word(const char **text, char word[64])
{
    size_t length = *text ? strcspn(*text, " ") : 0;
    if (length == 0) return false;
    snprintf(word, 64, "%.*s", (int)length, *text);
    *text += length + strspn(*text + length, " ");
    return true;
}

/* The keyword without the mark of a list. */
bool cornu__cut_star(char word[64])
{
    const size_t last = strlen(word) - 1;
    if (word[last] != '*') return false;
    word[last] = '\0';
    return true;
}

/* Whether one of the words, which blanks separate, is this one; the mark of a list is ignored. */
bool cornu__has_word(const char *words, const char *wanted)
{
    char word[64];
    while (cornu__next_word(&words, word)) {
        cornu__cut_star(word);
        if (!strcmp(word, wanted)) return true;
    }
    return false;
}
