/* The font of plots: each character is drawn with a round pen along a few straight strokes. */
#ifndef CORNU_NN_FONT_INTERNAL_H
#define CORNU_NN_FONT_INTERNAL_H

enum { CORNU__FONT_CAPITAL = 12 };   /* units that a capital is high */

/* Strokes between blanks, each a row of points: a digit (: is 10) counts units to the right, then a
 * letter units down, a the top of a capital, m the baseline, q the lowest there is. A character
 * that is not ASCII has those of '?'. */
const char *cornu__font_strokes(char character);

/* Units to the next character. */
int cornu__font_advance(char character);

#endif
