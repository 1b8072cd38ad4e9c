/*
 * Handwritten digits: a glyph is a few strokes of quadratic curves whose points are perturbed; it
 * is then scaled, slanted, rotated and drawn with a pen of some width.
 */
#include "canvas_internal.h"

enum { MOST_STROKES = 2, MOST_POINTS = 13, PIECES = 5 };

/* Connected curves in the unit square: point, control, point, control, point, ... */
typedef struct {
    int        count;
    CornuPoint points[MOST_POINTS];
} Stroke;

typedef struct {
    int    digit;
    Stroke strokes[MOST_STROKES];
} Glyph;

static const Glyph glyphs[] = {
    { 0, { { 9, { { .50f, .00f }, { .08f, .00f }, { .08f, .50f }, { .08f, 1.0f }, { .50f, 1.0f },
                  { .92f, 1.0f }, { .92f, .50f }, { .92f, .00f }, { .50f, .00f } } } } },
    { 1, { { 3, { { .52f, .00f }, { .50f, .50f }, { .48f, 1.0f } } } } },
    { 1, { { 5, { { .25f, .25f }, { .45f, .15f }, { .58f, .00f }, { .56f, .50f },
                  { .55f, 1.0f } } } } },
    { 1, { { 5, { { .25f, .25f }, { .45f, .15f }, { .58f, .00f }, { .56f, .50f },
                  { .55f, 1.0f } } },
           { 3, { { .22f, 1.0f }, { .50f, 1.0f }, { .85f, 1.0f } } } } },
    { 2, { { 9, { { .10f, .25f }, { .15f, .00f }, { .50f, .00f }, { .95f, .02f }, { .85f, .35f },
                  { .70f, .65f }, { .08f, 1.0f }, { .50f, .98f }, { .95f, 1.0f } } } } },
    { 2, { { 11, { { .10f, .22f }, { .20f, .00f }, { .50f, .00f }, { .95f, .02f }, { .80f, .40f },
                   { .65f, .80f }, { .25f, .96f }, { .00f, 1.0f }, { .12f, .82f }, { .30f, .72f },
                   { .98f, 1.0f } } } } },
    { 3, { { 9, { { .12f, .12f }, { .40f, -.08f }, { .75f, .10f }, { .98f, .40f }, { .38f, .47f },
                  { 1.0f, .48f }, { .88f, .80f }, { .60f, 1.12f }, { .06f, .90f } } } } },
    { 3, { { 9, { { .12f, .02f }, { .50f, .02f }, { .85f, .03f }, { .65f, .20f }, { .40f, .42f },
                  { 1.0f, .40f }, { .90f, .75f }, { .65f, 1.12f }, { .06f, .92f } } } } },
    { 4, { { 5, { { .22f, .00f }, { .10f, .30f }, { .10f, .56f }, { .50f, .58f },
                  { .95f, .52f } } },
           { 3, { { .78f, .05f }, { .74f, .50f }, { .70f, 1.0f } } } } },
    { 4, { { 5, { { .66f, .00f }, { .30f, .40f }, { .05f, .66f }, { .50f, .67f },
                  { .98f, .64f } } },
           { 3, { { .66f, .00f }, { .66f, .50f }, { .65f, 1.0f } } } } },
    { 5, { { 9, { { .88f, .02f }, { .50f, .00f }, { .22f, .04f }, { .20f, .20f }, { .16f, .44f },
                  { .88f, .26f }, { .88f, .65f }, { .85f, 1.08f }, { .08f, .94f } } } } },
    { 6, { { 11, { { .75f, .02f }, { .20f, .15f }, { .12f, .65f }, { .10f, 1.0f }, { .50f, 1.0f },
                   { .92f, .98f }, { .88f, .70f }, { .80f, .40f }, { .45f, .50f }, { .20f, .55f },
                   { .13f, .75f } } } } },
    { 7, { { 5, { { .08f, .06f }, { .50f, .03f }, { .92f, .05f }, { .58f, .45f },
                  { .40f, 1.0f } } } } },
    { 7, { { 5, { { .08f, .06f }, { .50f, .03f }, { .92f, .05f }, { .58f, .45f },
                  { .40f, 1.0f } } },
           { 3, { { .30f, .50f }, { .55f, .49f }, { .85f, .48f } } } } },
    { 8, { { 13, { { .80f, .15f }, { .50f, -.12f }, { .20f, .15f }, { .10f, .38f },
                   { .50f, .48f }, { 1.0f, .62f }, { .85f, .85f }, { .50f, 1.15f },
                   { .12f, .85f }, { .05f, .62f }, { .50f, .48f }, { .95f, .35f },
                   { .80f, .15f } } } } },
    { 9, { { 9, { { .85f, .20f }, { .55f, -.12f }, { .18f, .15f }, { .02f, .42f }, { .32f, .52f },
                  { .78f, .55f }, { .85f, .20f }, { .84f, .60f }, { .74f, 1.0f } } } } },
    { 9, { { 9, { { .85f, .20f }, { .55f, -.12f }, { .18f, .15f }, { .02f, .42f }, { .32f, .52f },
                  { .78f, .55f }, { .85f, .20f }, { .95f, .95f }, { .25f, .98f } } } } },
};

enum { GLYPHS = sizeof glyphs / sizeof *glyphs, DIGITS = 10 };

/* A random glyph of the digit. */
static const Glyph *choose_glyph(CornuChance *chance, int digit)
{
    const Glyph *ways[GLYPHS];
    uint32_t     count = 0;
    for (int i = 0; i < GLYPHS; i++)
        if (glyphs[i].digit == digit) ways[count++] = &glyphs[i];
    return ways[cornu__chance_bits(chance) % count];
}

/* Perturbs the points of a stroke and divides each curve into PIECES lines. Returns the number of
 * points. */
static int write_stroke(CornuChance *chance, const Stroke *stroke, const CornuPose *pose,
                        CornuPoint *line)
{
    static const float wobble = 0.12f;
    CornuPoint p[MOST_POINTS] = { { 0.0f, 0.0f } };
    for (int i = 0; i < stroke->count; i++) {
        p[i].x = stroke->points[i].x + cornu__chance_between(chance, -wobble, wobble);
        p[i].y = stroke->points[i].y + cornu__chance_between(chance, -wobble, wobble);
        p[i] = cornu__place(pose, p[i]);
    }
    int count = 0;
    line[count++] = p[0];
    for (int i = 0; i + 2 < stroke->count; i += 2)
        for (int k = 1; k <= PIECES; k++) {
            /* (1-t)^2 p0 + 2 t (1-t) p1 + t^2 p2 */
            float t = (float)k / PIECES, s = 1.0f - t;
            line[count++] = (CornuPoint){
                s * s * p[i].x + 2.0f * s * t * p[i + 1].x + t * t * p[i + 2].x,
                s * s * p[i].y + 2.0f * s * t * p[i + 1].y + t * t * p[i + 2].y,
            };
        }
    return count;
}

static void draw_digit(CornuChance *chance, int digit, uint8_t *pixels)
{
    const Glyph *glyph = choose_glyph(chance, digit);
    CornuPoint   centre = { cornu__chance_between(chance, 12.5f, 15.5f),
                            cornu__chance_between(chance, 12.5f, 15.5f) };
    float        height = cornu__chance_between(chance, 15.0f, 20.0f);
    float        width = height * cornu__chance_between(chance, 0.5f, 0.85f);
    float        slant = cornu__chance_between(chance, -0.45f, 0.25f); /* mostly to the right */
    float        turn = cornu__chance_between(chance, -0.17f, 0.17f);
    float        radius = cornu__chance_between(chance, 0.7f, 1.9f);
    float        grey = cornu__chance_between(chance, 0.75f, 1.0f);
    CornuPose    pose = cornu__pose(centre, width, height, slant, turn);
    CornuCanvas  canvas = { { 0.0f } };
    for (int s = 0; s < MOST_STROKES && glyph->strokes[s].count; s++) {
        CornuPoint line[1 + (MOST_POINTS / 2) * PIECES];
        int        count = write_stroke(chance, &glyph->strokes[s], &pose, line);
        cornu__canvas_lines(&canvas, line, count, radius, grey);
    }
    cornu__canvas_finish(&canvas, chance, 0.12f, pixels);
}

void cornu_synthetic_digits(uint64_t seed, int64_t first, int64_t count, uint8_t *images,
                            uint8_t *labels)
{
    static const uint32_t generator = UINT32_C(0xFFFF0002);
    for (int64_t i = 0; i < count; i++) {
        CornuChance chance = cornu__chance(seed, generator, first + i);
        labels[i] = (uint8_t)(cornu__chance_bits(&chance) % DIGITS);
        draw_digit(&chance, labels[i], images + i * CORNU__CANVAS * CORNU__CANVAS);
    }
}
