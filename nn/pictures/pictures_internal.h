/* What the pictures have in common. */
#ifndef CORNU_NN_PICTURES_PICTURES_INTERNAL_H
#define CORNU_NN_PICTURES_PICTURES_INTERNAL_H

#include "../../device/memory_internal.h"
#include "../../device/text/print.h"
#include "chart_internal.h"
#include "pictures.h"

enum { CORNU__MARGIN = 24, CORNU__PICTURE_HEAD = 68, CORNU__PICTURE_TEXT = 160 };

/* A white plot of this width, or wider where the title and the line below it are, either of which
 * may be NULL; under the CORNU__PICTURE_HEAD pixels for these two are `height` more and a
 * margin. */
CornuPlot *cornu__picture_create(double width, double height, const char *title, const char *note);

/* A name as it fits in so many pixels: "a long nam.." */
const char *cornu__picture_name(char text[CORNU__PICTURE_TEXT], const char *name, double size,
                                double width);

/* Pixels of the widest of the names as they are drawn, at most `most`. */
double cornu__picture_widest(const char *const *names, int count, double size, double most);

/* A colour `part` of the way from one to the other. */
CornuColour cornu__picture_blend(CornuColour from, CornuColour to, double part);

/* Ink or white, whichever stands out more against a colour: the one of greater contrast as "Web
 * Content Accessibility Guidelines 2.2" defines it. */
CornuColour cornu__picture_ink_on(CornuColour colour);

/* A vertical bar of a scale's colours, from its least value, at the bottom, to its most. */
typedef struct {
    double      least, most;
    CornuColour (*colour)(double part);   /* 0 at the bottom, 1 at the top */
    const char *unit;                     /* behind the numbers, "%"; may be NULL */
} CornuPictureScale;

enum { CORNU__PICTURE_SCALE = 90 };       /* pixels that it takes with its numbers */

void cornu__picture_scale(CornuPlot *plot, const CornuPictureScale *scale, double x, double y,
                          double height);

/* ---- Texts, for tests ---- */

/* "168 of 10000 shown, wrong ones first: … Of all 10000, 312 are wrong (3.12 %)" */
void cornu__predictions_note(char note[CORNU__PICTURE_TEXT], int64_t shown, int64_t count,
                             int64_t wrong);

#endif
