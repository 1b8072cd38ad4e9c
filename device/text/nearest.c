#include "print.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 64 };

static int smaller(int a, int b) { return a < b ? a : b; }

/* The optimal string alignment distance: Levenshtein's, with swaps of neighbours. Only three rows
 * of its table are kept; row i holds the distances of a's first i letters. */
static int distance(const char *a, const char *b)
{
    int length_a = (int)strlen(a), length_b = (int)strlen(b);
    if (length_a > LONGEST || length_b > LONGEST) return INT_MAX;
    int rows[3][LONGEST + 1];
    for (int j = 0; j <= length_b; j++) rows[0][j] = j;
    for (int i = 1; i <= length_a; i++) {
        int *row = rows[i % 3], *above = rows[(i + 2) % 3], *above2 = rows[(i + 1) % 3];
        row[0] = i;
        for (int j = 1; j <= length_b; j++) {
            int changed = a[i - 1] != b[j - 1];
            row[j] = smaller(smaller(above[j], row[j - 1]) + 1, above[j - 1] + changed);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = smaller(row[j], above2[j - 2] + 1);
        }
    }
    return rows[length_a % 3][length_b];
}

const char *cornu_nearest(const char *word, const char *const *known, int count)
{
    int         length = (int)strlen(word);
    int         best = (length > 6 ? length / 3 : length > 2 ? 2 : 1) + 1;
    const char *nearest = NULL;
    for (int i = 0; i < count; i++) {
        int far = distance(word, known[i]);
        if (far < best) best = far, nearest = known[i];
    }
    return nearest;
}

const char *cornu_nearest_first(char *to, size_t size, const char *word, const char *const *known,
                                int count)
{
    const char *nearest = cornu_nearest(word, known, count);
    size_t      used = 0;
    *to = '\0';
    for (int i = nearest ? -1 : 0; i < count && used < size; i++)
        if (i < 0 || known[i] != nearest)
            used += (size_t)snprintf(to + used, size - used, "%s\"%s\"", used ? ", " : "",
                                     i < 0 ? nearest : known[i]);
    return to;
}
