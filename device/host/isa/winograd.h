/* The transforms of Winograd's minimal filtering, F(OUT x OUT, TAPS x TAPS): vectors run over
 * channels. */
#ifndef CORNU_DEVICE_HOST_WINOGRAD_H
#define CORNU_DEVICE_HOST_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"
#include "product.h"

/* The largest of all kinds. */
enum {
    CORNU_WINOGRAD_POINTS = 36, CORNU_WINOGRAD_TAPS = 25, CORNU_WINOGRAD_OUTPUTS = 16,
    CORNU_WINOGRAD_WINDOWS = CORNU_WINOGRAD_OUTPUTS / 4, CORNU_WINOGRAD_KINDS = 3
};

/* What becomes of the outputs of a tile, row by row: y = sum + bias, then finished, with a term or
 * NULL. The bias has whole registers. Bit k of `zero`: the sum of output k is zero, whatever
 * rounding left. */
typedef struct {
    uint32_t     zero;
    float       *y[CORNU_WINOGRAD_OUTPUTS];      /* NULL: not stored */
    const float *term[CORNU_WINOGRAD_OUTPUTS];   /* NULL: none       */
    const float *bias;
    CornuFinish  finish;
} CornuWinogradOutputs;

/* The outputs of a tile as windows of two by two, row by row: the largest of each, the first of
 * equal ones, or the first NaN; y = that + bias, then finished; index is its number, 2 i + j. */
typedef struct {
    uint32_t     zero;                        /* of outputs       */
    float       *y[CORNU_WINOGRAD_WINDOWS];   /* NULL: not stored */
    uint8_t     *index[CORNU_WINOGRAD_WINDOWS];
    const float *bias;
    CornuFinish  finish;
} CornuWinogradWindows;

/* A tile of out x out outputs of taps x taps is computed from in x in elements of the input, by as
 * many products: its points. in = out + taps - 1. */
typedef struct {
    int out, taps, in;
    /* u[k part + n] = G g_n G', k the points, g_n[t] = g[t][n] the taps; whole registers are
     * written, zeros after the last one */
    void (*filter)(const float *const *g, int64_t count, float *u, ptrdiff_t part);
    /* v[k part + c] = B' x_c B, x_c[k] = x[k][c], likewise */
    void (*input)(const float *const *x, int64_t channels, float *v, ptrdiff_t part);
    /* Bit k: all x[k][c] are zero. 0 if no output reads such elements alone. This one and the last
     * are NULL for gradients. */
    uint64_t (*zeros)(const float *const *x, int64_t channels);
    /* A' m_f A of m[k part + f], and what becomes of it */
    void (*output)(const float *m, ptrdiff_t part, int64_t channels,
                   const CornuWinogradOutputs *outputs);
    void (*windows)(const float *m, ptrdiff_t part, int64_t channels,
                    const CornuWinogradWindows *windows);
} CornuWinograd;

/* Of convolutions; and of the gradient of a filter of 3 x 3 taps, which are its outputs: there d_y
 * is the filter, 4 x 4 of its elements at a time. Not in the library for predictions. */
typedef struct {
    CornuWinograd kind[CORNU_WINOGRAD_KINDS], gradient;
} CornuWinograds;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuWinograds, cornu__winograds)

/* Those of the instruction set in use (cpu.h). */
const CornuWinograds *cornu__winograds(void);

#endif
