/* What the pictures share: sizes, colours, titles and how they are saved. */
#ifndef CORNU_NN_PICTURES_PICTURES_INTERNAL_H
#define CORNU_NN_PICTURES_PICTURES_INTERNAL_H

#include "../../device/memory_internal.h"
#include "../../device/text/print.h"
#include "chart_internal.h"
#include "pictures.h"

enum { CORNU__MARGIN = 24, CORNU__PICTURE_HEAD = 68, CORNU__PICTURE_TEXT = 160 };

/* A white plot of this width, or wider if the title or the note below it needs that; both may be
 * NULL. Its height is CORNU__PICTURE_HEAD pixels for these two, `height` and a margin. */
CornuPlot *cornu__picture_create(double width, double height, const char *title, const char *note);

/* A name shortened to `width` pixels: "a long nam.." */
const char *cornu__picture_name(char text[CORNU__PICTURE_TEXT], const char *name, double size,
                                double width);

/* Width in pixels of the widest name, at most `most`. */
double cornu__picture_widest(const char *const *names, int count, double size, double most);

/* The colour at `part`, 0 to 1, between two. */
CornuColour cornu__picture_blend(CornuColour from, CornuColour to, double part);

/* Ink or white, whichever has more contrast to a colour, as "Web Content Accessibility Guidelines
 * 2.2" defines contrast. */
CornuColour cornu__picture_ink_on(CornuColour colour);

/* A vertical bar with the colours of a scale, its smallest value at the bottom. */
typedef struct {
    double      least, most;
    CornuColour (*colour)(double part);   /* 0 at the bottom, 1 at the top */
    const char *unit;                     /* after the numbers, " %"; may be NULL */
} CornuPictureScale;

enum { CORNU__PICTURE_SCALE = 90 };       /* its width in pixels, numbers included */

void cornu__picture_scale(CornuPlot *plot, const CornuPictureScale *scale, double x, double y,
                          double height);

/* ---- The note, for tests ---- */

/* "168 of 10000 shown, wrong ones first: … Of all 10000, 312 are wrong (3.12 %)" */
void cornu__predictions_note(char note[CORNU__PICTURE_TEXT], int64_t shown, int64_t count,
                             int64_t wrong);

#endif
