#include "canvas_internal.h"

#include <math.h>

#include "../../device/random.h"

enum { SIZE = CORNU__CANVAS };

/* ---- Random numbers ---- */

CornuChance cornu__chance(uint64_t seed, uint32_t generator, int64_t image)
{
    return (CornuChance){ .seed = seed, .generator = generator, .image = (uint32_t)image };
}

/* counter = (number / 4, 0, image, generator) */
uint32_t cornu__chance_bits(CornuChance *chance)
{
    if (chance->used % 4 == 0)
        cornu_philox(chance->seed,
                     (uint32_t[]){ chance->used / 4, 0, chance->image, chance->generator },
                     chance->word);
    return chance->word[chance->used++ % 4];
}

float cornu__chance_between(CornuChance *chance, float low, float high)
{
    return low + (high - low) * cornu_uniform(cornu__chance_bits(chance));
}

/* ---- Poses ---- */

CornuPose cornu__pose(CornuPoint centre, float width, float height, float slant, float turn)
{
    /* The half-angle formulas need no sine. */
    float cosine = (1.0f - turn * turn) / (1.0f + turn * turn);
    float sine = 2.0f * turn / (1.0f + turn * turn);
    return (CornuPose){
        .centre = centre,
        .matrix = { { cosine * width, (cosine * slant - sine) * height },
                    { sine * width, (sine * slant + cosine) * height } },
    };
}

CornuPoint cornu__place(const CornuPose *pose, CornuPoint p)
{
    float x = p.x - 0.5f, y = p.y - 0.5f;
    return (CornuPoint){ pose->centre.x + pose->matrix[0][0] * x + pose->matrix[0][1] * y,
                         pose->centre.y + pose->matrix[1][0] * x + pose->matrix[1][1] * y };
}

/* ---- Drawing ---- */

static float least(float a, float b) { return a < b ? a : b; }
static float most(float a, float b) { return a > b ? a : b; }
static float clamp01(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }

/* The pixel that contains x, or the nearest one. */
static int pixel(float x) { return x < 0.0f ? 0 : x >= (float)SIZE ? SIZE - 1 : (int)x; }

/* Updates the squared distance of each pixel within reach to the line from a to b. */
static void approach(float distance[SIZE * SIZE], CornuPoint a, CornuPoint b, float reach)
{
    float x = b.x - a.x, y = b.y - a.y, length = x * x + y * y;
    float scale = length > 0.0f ? 1.0f / length : 0.0f;
    int   left = pixel(least(a.x, b.x) - reach), right = pixel(most(a.x, b.x) + reach);
    int   top = pixel(least(a.y, b.y) - reach), bottom = pixel(most(a.y, b.y) + reach);
    for (int h = top; h <= bottom; h++)
        for (int w = left; w <= right; w++) {
            float *here = &distance[h * SIZE + w];
            float px = (float)w + 0.5f - a.x, py = (float)h + 0.5f - a.y;
            float along = clamp01((px * x + py * y) * scale); /* the nearest point */
            float dx = px - along * x, dy = py - along * y;
            *here = least(*here, dx * dx + dy * dy);
        }
}

void cornu__canvas_lines(CornuCanvas *canvas, const CornuPoint *points, int count, float radius,
                         float grey)
{
    static const float edge = 0.5f; /* coverage falls from 1 to 0 over a pixel */
    float distance[SIZE * SIZE], reach = radius + edge;
    for (int i = 0; i < SIZE * SIZE; i++) distance[i] = reach * reach;
    for (int i = 1; i < count; i++) approach(distance, points[i - 1], points[i], reach);
    for (int i = 0; i < SIZE * SIZE; i++) {
        if (distance[i] >= reach * reach) continue;
        float cover = clamp01(reach - sqrtf(distance[i]));
        canvas->grey[i] += cover * (grey - canvas->grey[i]);
    }
}

/* Adds weight times the fraction of each pixel in [from, to). */
static void add_span(float cover[SIZE], float from, float to, float weight)
{
    for (int w = pixel(from); w <= pixel(to); w++) {
        float part = least(to, (float)(w + 1)) - most(from, (float)w);
        if (part > 0.0f) cover[w] += weight * part;
    }
}

/* The intersections of the outline with the line at y, from left to right. */
static int crossings(const CornuPoint *points, int count, float y, float *x)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        CornuPoint a = points[i], b = points[(i + 1) % count];
        if ((a.y <= y) == (b.y <= y)) continue;
        float here = a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x);
        int   k = found++;
        for (; k > 0 && x[k - 1] > here; k--) x[k] = x[k - 1];
        x[k] = here;
    }
    return found;
}

void cornu__canvas_fill(CornuCanvas *canvas, const CornuPoint *points, int count, float grey)
{
    enum { LINES = 2, MOST_POINTS = 32 }; /* scan lines per pixel */
    float top = SIZE, bottom = 0.0f;
    for (int i = 0; i < count; i++) {
        top = least(top, points[i].y);
        bottom = most(bottom, points[i].y);
    }
    for (int h = pixel(top); h <= pixel(bottom); h++) {
        float cover[SIZE] = { 0.0f };
        for (int line = 0; line < LINES; line++) {
            float x[MOST_POINTS];
            int   found = crossings(points, count, (float)h + ((float)line + 0.5f) / LINES, x);
            for (int i = 0; i + 1 < found; i += 2) add_span(cover, x[i], x[i + 1], 1.0f / LINES);
        }
        float *row = &canvas->grey[h * SIZE];
        for (int w = 0; w < SIZE; w++) row[w] += clamp01(cover[w]) * (grey - row[w]);
    }
}

void cornu__canvas_finish(const CornuCanvas *canvas, CornuChance *chance, float noise,
                          uint8_t *pixels)
{
    for (int i = 0; i < SIZE * SIZE; i++) {
        float grey = canvas->grey[i];
        if (grey > 0.0f) grey += cornu__chance_between(chance, -noise, noise);
        pixels[i] = (uint8_t)(255.0f * clamp01(grey) + 0.5f);
    }
}
