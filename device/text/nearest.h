/* Which of the words that are known was meant by one that is not: "did you mean ...?" */
#ifndef CORNU_DEVICE_NEAREST_H
#define CORNU_DEVICE_NEAREST_H

#ifdef __cplusplus
extern "C" {
#endif

/* The one of `known` that the fewest insertions, deletions, replacements and swaps of
 * neighbours turn into `word`; NULL when none is near: that would take more than a third of the
 * letters, or 2 of a short word. */
const char *cornu_nearest(const char *word, const char *const *known, int count);

#ifdef __cplusplus
}
#endif
#endif
