/*
 * The cells of the fused recurrent kernels: the update of some units of one row, from the result of
 * the recurrent product.
 */
#ifndef CORNU_DEVICE_HOST_RECURRENT_H
#define CORNU_DEVICE_HOST_RECURRENT_H

#include <stdbool.h>
#include <stdint.h>

#include "../machine/isa.h"

enum { CORNU_CELL_UNITS = 32 };   /* updated at once, at most */

/* Elements of a row, f32 or bf16; gates are `gate` elements apart. Streams bypass the caches: whole
 * vectors of 16 elements, aligned to 64 bytes of f32, 32 of bf16. An output to NULL is none: `next`
 * is a copy of a result for the next step's product. */
typedef struct { const void *from; bool narrow; } CornuCellInput;
typedef struct { void *to; bool narrow, stream; } CornuCellOutput;

/* device/ops/lstm.c and gru.c have the formulas. Memory of f32 has space for CORNU_CELL_UNITS
 * elements of each gate, operands and results have `units`. */
typedef struct {
    int             units;
    float           gate_slope; /* 0: gates are sigmoids; as in device/ops/recurrence.h */
    int64_t         gate;       /* from gate to gate of z, gates */
    const float    *sums;       /* h U, gates sums_gate apart */
    int64_t         sums_gate;
    CornuCellInput  z;
    CornuCellOutput gates, cells, h, next;
    float          *c;          /* before, then after the step */
} CornuLstmCell;

typedef struct {
    int             units;
    float           gate_slope;
    int64_t         gate;       /* from gate to gate of gates, d_z */
    CornuCellInput  gates, cells, before, d_h;
    const float    *product;    /* of d_h: from the d_z of the later step              */
    float          *direct;     /* what bypassed its product; then this step's: none   */
    float          *d_c;        /* of this step, then of the one before */
    CornuCellOutput d_z, next;
} CornuLstmGradCell;

typedef struct {
    int             units;
    float           gate_slope;
    int64_t         gate;       /* from gate to gate of x, gates */
    const float    *sums;       /* h U + bias, gates sums_gate apart */
    int64_t         sums_gate;
    CornuCellInput  x;
    CornuCellOutput gates, h, next;
    float          *state;      /* h before, then after the step */
} CornuGruCell;

typedef struct {
    int             units;
    float           gate_slope;
    int64_t         gate;       /* from gate to gate of gates, d_x, d_inner */
    CornuCellInput  gates, before, d_h;
    const float    *product;    /* of d_h: from the d_inner of the later step          */
    float          *direct;     /* what bypassed its product; then this step's: d_h z  */
    CornuCellOutput d_x, d_inner, next;
} CornuGruGradCell;

typedef struct {
    void (*lstm)(const CornuLstmCell *cell);
    void (*lstm_grad)(const CornuLstmGradCell *cell);
    void (*gru)(const CornuGruCell *cell);
    void (*gru_grad)(const CornuGruGradCell *cell);
    void (*fence)(void);   /* other threads see what this one streamed before it */
} CornuCells;

CORNU__F32_ISAS(CORNU__DECLARE, const CornuCells, cornu__cells)
CORNU__BF16_ISAS(CORNU__DECLARE, const CornuCells, cornu__cells)

/* Those of the instruction set in use (cpu.h). */
const CornuCells *cornu__cells(void);

#endif
