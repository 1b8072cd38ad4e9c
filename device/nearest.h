/* Which known word somebody may have meant. */
#ifndef CORNU_DEVICE_NEAREST_H
#define CORNU_DEVICE_NEAREST_H

/* The one of `known` that the fewest insertions, deletions, replacements and swaps of
 * neighbours turn into `word`; NULL when none is near: that would take more than a third of the
 * letters, or 2 of a short word. */
const char *cornu__nearest(const char *word, const char *const *known, int count);

#endif
