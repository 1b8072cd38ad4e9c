/* The font of plots: each character is a few straight strokes of a round pen. */
#ifndef CORNU_NN_FONT_INTERNAL_H
#define CORNU_NN_FONT_INTERNAL_H

enum { CORNU__FONT_CAPITAL = 12 };   /* height of a capital in units */

/* Strokes separated by blanks, each a sequence of points: a digit (: is 10) for the units to the
 * right, then a letter for the units down: a is the top of a capital, m the baseline, q the lowest
 * position. Characters other than ASCII have the strokes of '?'. */
const char *cornu__font_strokes(char character);

/* Units to the next character. */
int cornu__font_advance(char character);

#endif
