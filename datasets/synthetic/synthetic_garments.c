/*
 * Garments in the ten classes of Fashion-MNIST: a filled outline, patches and lines whose points
 * are perturbed; they are then scaled and drawn in some shade of grey.
 */
#include <stdbool.h>

#include "canvas_internal.h"

enum { MOST_POINTS = 12, MOST_PARTS = 6 };

/* How a part is drawn: SHELL is cloth, OVER darker cloth on it, CUT background; SEAM is a thin line
 * in a darker grey, STRAP a thick one in the grey of the cloth. */
typedef enum { NOTHING, SHELL, OVER, CUT, SEAM, STRAP } Manner;

/* Of a mirrored part only the right half is given, which ends in the middle; the left half
 * continues from there, with x -> 1 - x. */
typedef struct {
    Manner     manner;
    bool       mirrored;
    int        count;
    CornuPoint points[MOST_POINTS];
} Part;

typedef struct {
    Part parts[MOST_PARTS]; /* terminated by NOTHING */
} Garment;

/* The outlines of each class, in Fashion-MNIST's order, in the unit square. */
static const Garment garments[] = {
    { { /* T-shirt/top */
        { SHELL, true, 7, { { .58f, .08f }, { .76f, .11f }, { .97f, .32f }, { .84f, .42f },
                            { .75f, .34f }, { .74f, .94f }, { .50f, .95f } } },
        { SEAM, true, 2, { { .58f, .09f }, { .50f, .15f } } } } },
    { { /* Trouser */
        { SHELL, true, 5, { { .50f, .04f }, { .72f, .04f }, { .76f, .97f }, { .57f, .97f },
                            { .50f, .34f } } },
        { SEAM, true, 2, { { .72f, .10f }, { .50f, .10f } } } } },
    { { /* Pullover */
        { SHELL, true, 7, { { .58f, .07f }, { .76f, .11f }, { .98f, .84f }, { .86f, .90f },
                            { .75f, .42f }, { .74f, .94f }, { .50f, .95f } } },
        { SEAM, true, 2, { { .59f, .08f }, { .50f, .12f } } },
        { SEAM, true, 2, { { .74f, .90f }, { .50f, .90f } } } } },
    { { /* Dress */
        { SHELL, true, 6, { { .56f, .10f }, { .60f, .02f }, { .66f, .04f }, { .60f, .38f },
                            { .74f, .97f }, { .50f, .98f } } },
        { SEAM, true, 2, { { .60f, .38f }, { .50f, .38f } } } } },
    { { /* Coat */
        { SHELL, true, 7, { { .58f, .05f }, { .78f, .10f }, { .97f, .82f }, { .87f, .87f },
                            { .76f, .42f }, { .78f, .97f }, { .50f, .97f } } },
        { CUT, true, 3, { { .56f, .03f }, { .56f, .06f }, { .50f, .24f } } },
        { SEAM, false, 2, { { .50f, .24f }, { .50f, .97f } } },
        { SEAM, true, 3, { { .58f, .06f }, { .64f, .18f }, { .50f, .34f } } } } },
    { { /* Sandal */
        { SHELL, false, 6, { { .03f, .60f }, { .14f, .60f }, { .40f, .74f }, { .97f, .74f },
                             { .97f, .80f }, { .03f, .80f } } },
        { STRAP, false, 3, { { .08f, .64f }, { .12f, .40f }, { .36f, .36f } } },
        { STRAP, false, 3, { { .30f, .70f }, { .40f, .44f }, { .56f, .72f } } },
        { STRAP, false, 3, { { .60f, .74f }, { .74f, .56f }, { .90f, .74f } } } } },
    { { /* Shirt */
        { SHELL, true, 7, { { .58f, .06f }, { .75f, .11f }, { .95f, .70f }, { .83f, .76f },
                            { .74f, .40f }, { .72f, .95f }, { .50f, .97f } } },
        { OVER, true, 4, { { .50f, .14f }, { .58f, .05f }, { .63f, .12f }, { .54f, .20f } } },
        { SEAM, false, 2, { { .50f, .16f }, { .50f, .96f } } },
        { SEAM, false, 2, { { .60f, .36f }, { .69f, .36f } } } } },
    { { /* Sneaker */
        { SHELL, false, 8, { { .04f, .44f }, { .12f, .40f }, { .22f, .48f }, { .42f, .40f },
                             { .60f, .52f }, { .92f, .60f }, { .97f, .74f }, { .04f, .74f } } },
        { OVER, false, 4, { { .03f, .68f }, { .97f, .68f }, { .97f, .76f }, { .03f, .76f } } },
        { SEAM, false, 2, { { .44f, .46f }, { .56f, .58f } } },
        { SEAM, false, 2, { { .36f, .48f }, { .48f, .62f } } } } },
    { { /* Bag */
        { SHELL, true, 5, { { .50f, .36f }, { .86f, .36f }, { .94f, .60f }, { .92f, .90f },
                            { .50f, .90f } } },
        { STRAP, true, 4, { { .76f, .36f }, { .72f, .16f }, { .62f, .08f }, { .50f, .08f } } },
        { SEAM, true, 2, { { .90f, .52f }, { .50f, .52f } } } } },
    { { /* Ankle boot */
        { SHELL, false, 9, { { .10f, .12f }, { .50f, .12f }, { .54f, .44f }, { .74f, .56f },
                             { .95f, .66f }, { .97f, .84f }, { .38f, .84f }, { .34f, .78f },
                             { .08f, .78f } } },
        { OVER, false, 4, { { .07f, .78f }, { .34f, .78f }, { .32f, .88f }, { .07f, .88f } } },
        { SEAM, false, 2, { { .40f, .16f }, { .44f, .50f } } } } },
};

enum { CLASSES = sizeof garments / sizeof *garments };

/* The points of a part on the canvas, perturbed, symmetrically if mirrored. Returns their
 * number. */
static int cut_part(CornuChance *chance, const Part *part, const CornuPose *pose,
                    CornuPoint *points)
{
    static const float wobble = 0.06f;
    int count = part->mirrored ? 2 * part->count : part->count;
    for (int i = 0; i < part->count; i++) {
        CornuPoint p = part->points[i];
        p.x += cornu__chance_between(chance, -wobble, wobble);
        p.y += cornu__chance_between(chance, -wobble, wobble);
        points[i] = cornu__place(pose, p);
        if (!part->mirrored) continue;
        p.x = 1.0f - p.x;
        points[count - 1 - i] = cornu__place(pose, p);
    }
    return count;
}

static void draw_part(CornuCanvas *canvas, CornuChance *chance, const Part *part,
                      const CornuPose *pose, float shade)
{
    CornuPoint points[2 * MOST_POINTS];
    int        count = cut_part(chance, part, pose, points);
    float      thickness = cornu__chance_between(chance, 0.8f, 1.4f);
    switch (part->manner) {
    case SHELL: cornu__canvas_fill(canvas, points, count, shade); break;
    case OVER:  cornu__canvas_fill(canvas, points, count, 0.6f * shade); break;
    case CUT:   cornu__canvas_fill(canvas, points, count, 0.0f); break;
    case SEAM:  cornu__canvas_lines(canvas, points, count, 0.4f, 0.5f * shade); break;
    case STRAP: cornu__canvas_lines(canvas, points, count, thickness, shade); break;
    case NOTHING: break;
    }
}

/* Darkens horizontal stripes. */
static void add_stripes(CornuCanvas *canvas, CornuChance *chance)
{
    uint32_t period = 2 + cornu__chance_bits(chance) % 4;
    float    keep = cornu__chance_between(chance, 0.5f, 0.9f);
    for (uint32_t h = 0; h < CORNU__CANVAS; h += period)
        for (uint32_t w = 0; w < CORNU__CANVAS; w++) canvas->grey[h * CORNU__CANVAS + w] *= keep;
}

static void draw_garment(CornuChance *chance, int class, uint8_t *pixels)
{
    CornuPoint  centre = { cornu__chance_between(chance, 12.0f, 16.0f),
                           cornu__chance_between(chance, 12.0f, 16.0f) };
    float       height = cornu__chance_between(chance, 19.0f, 28.0f);
    float       width = height * cornu__chance_between(chance, 0.75f, 1.1f);
    float       turn = cornu__chance_between(chance, -0.1f, 0.1f);
    float       shade = cornu__chance_between(chance, 0.3f, 1.0f);
    CornuPose   pose = cornu__pose(centre, width, height, 0.0f, turn);
    CornuCanvas canvas = { { 0.0f } };
    const Part *parts = garments[class].parts;
    for (int i = 0; i < MOST_PARTS && parts[i].manner != NOTHING; i++)
        draw_part(&canvas, chance, &parts[i], &pose, shade);
    if (cornu__chance_bits(chance) % 4 == 0) add_stripes(&canvas, chance);
    cornu__canvas_finish(&canvas, chance, 0.1f, pixels);
}

void cornu_synthetic_garments(uint64_t seed, int64_t first, int64_t count, uint8_t *images,
                              uint8_t *labels)
{
    static const uint32_t generator = UINT32_C(0xFFFF0003);
    for (int64_t i = 0; i < count; i++) {
        CornuChance chance = cornu__chance(seed, generator, first + i);
        labels[i] = (uint8_t)(cornu__chance_bits(&chance) % CLASSES);
        draw_garment(&chance, labels[i], images + i * CORNU__CANVAS * CORNU__CANVAS);
    }
}
