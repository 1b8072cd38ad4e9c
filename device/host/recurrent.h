/*
 * What fused recurrent kernels are made of: the update of some units of one row of a cell, on what
 * the recurrent product gave; and the kernels themselves, for both devices.
 */
#ifndef CORNU_DEVICE_HOST_RECURRENT_H
#define CORNU_DEVICE_HOST_RECURRENT_H

#include "precision.h"

enum { CORNU_CELL_UNITS = 32 };   /* updated at once, at most */

/* Elements of a row, f32 or bf16; the four gates are `gate` elements apart. */
typedef struct { const void *from; bool narrow; } CornuCellInput;
typedef struct { void *to; bool narrow; } CornuCellOutput;

/* device/ops/lstm.c has the formulas. Of each pointer `units` elements, except for sums, c, h and
 * d_z, which have CORNU_CELL_UNITS. */
typedef struct {
    int             units;
    int64_t         gate;       /* from gate to gate of z, gates */
    const float    *sums;       /* h U, gates sums_gate apart */
    int64_t         sums_gate;
    CornuCellInput  z;
    CornuCellOutput gates, cells, h;
    float          *c;          /* before, then behind the step */
    float          *wide_h;
} CornuLstmCell;

typedef struct {
    int             units;
    int64_t         gate;       /* from gate to gate of gates, d_z */
    CornuCellInput  gates, cells, before, d_h;
    float          *sum;        /* d_h that later steps gave; plus what came from outside */
    float          *d_c;        /* of this step, then of the one before */
    CornuCellOutput d_z;
    float          *wide_d_z;   /* gates wide_gate apart */
    int64_t         wide_gate;
} CornuLstmGradCell;

typedef struct {
    void (*lstm)(const CornuLstmCell *cell);
    void (*lstm_grad)(const CornuLstmGradCell *cell);
} CornuCells;

extern const CornuCells cornu__cells_portable;
#if defined(__x86_64__)
extern const CornuCells cornu__cells_avx2, cornu__cells_avx512;
#endif

/* Those of the instruction set in use (cpu.h). */
const CornuCells *cornu__cells(void);

/* lstm and lstm_grad, told apart by the call. */
bool        cornu__lstm_accepts(const CornuOpCall *op, CornuMultiplier multiplier);
size_t      cornu__lstm_scratch(const CornuOpCall *op, CornuMultiplier multiplier, int threads);
CornuStatus cornu__lstm(const CornuKernelCall *call, CornuMultiplier multiplier);

#endif
