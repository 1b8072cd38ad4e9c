/* The transforms of Winograd's minimal filtering of 3 x 3 taps, F(2 x 2, 3 x 3): vectors run over
 * channels. */
#ifndef CORNU_DEVICE_HOST_WINOGRAD_H
#define CORNU_DEVICE_HOST_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../machine/isa.h"

/* A tile of OUT x OUT outputs is computed from IN x IN elements of the input. */
enum {
    CORNU_WINOGRAD_OUT = 2, CORNU_WINOGRAD_TAPS = 3, CORNU_WINOGRAD_IN = 4,
    CORNU_WINOGRAD_POINTS = CORNU_WINOGRAD_IN * CORNU_WINOGRAD_IN,
    CORNU_WINOGRAD_OUTPUTS = CORNU_WINOGRAD_OUT * CORNU_WINOGRAD_OUT,
    CORNU_WINOGRAD_FILTER = CORNU_WINOGRAD_TAPS * CORNU_WINOGRAD_TAPS
};

/* What becomes of the outputs of a tile: y = sum + bias, y = y scale + shift, y = y + term, then
 * max(y, 0) if `relu`. Vectors have whole registers; scale and shift are both there or NULL. */
typedef struct {
    float       *y[CORNU_WINOGRAD_OUTPUTS];      /* NULL: not stored */
    const float *term[CORNU_WINOGRAD_OUTPUTS];   /* NULL: none       */
    const float *bias, *scale, *shift;
    bool         relu;
} CornuWinogradOutputs;

/* The outputs of a tile as a window of two by two: the largest, the first of equal ones, or the
 * first NaN; y = that + bias, then max(y, 0) if `relu`; index is its number, 2 i + j. */
typedef struct {
    float       *y;
    uint8_t     *index;
    const float *bias;
    bool         relu;
} CornuWinogradWindow;

typedef struct {
    /* u[k part + n] = G g_n G', k the points, g_n[t] = g[t][n] the taps */
    void (*filter)(const float *const g[CORNU_WINOGRAD_FILTER], int64_t count, float *u,
                   ptrdiff_t part);
    /* v[k part + c] = B' x_c B; whole registers are written, zeros after the last channel */
    void (*input)(const float *const x[CORNU_WINOGRAD_POINTS], int64_t channels, float *v,
                  ptrdiff_t part);
    /* A' m_f A of m[k part + f], and what becomes of it */
    void (*output)(const float *m, ptrdiff_t part, int64_t channels,
                   const CornuWinogradOutputs *outputs);
    void (*window)(const float *m, ptrdiff_t part, int64_t channels,
                   const CornuWinogradWindow *window);
} CornuWinograd;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuWinograd, cornu__winograd)

/* Those of the instruction set in use (cpu.h). */
const CornuWinograd *cornu__winograd(void);

#endif
