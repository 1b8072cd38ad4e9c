/*
 * What recurrent.c and its products (recurrent_products.c) share.
 */
#ifndef CORNU_DEVICE_HOST_KERNELS_RECURRENT_H
#define CORNU_DEVICE_HOST_KERNELS_RECURRENT_H

#include "../../integer_internal.h"
#include "../isa/recurrent.h"
#include "kernel.h"
#include "precision.h"

enum {
    CORNU_RECURRENT_UNITS = CORNU_CELL_UNITS,   /* whose gates are summed at a time */
    CORNU_RECURRENT_GATES = 4                   /* at most                          */
};

/* Operands and results; STATES and FIRST are what lstm's cells or gru's h were. */
enum { X, KERNEL, H0, C0, BIAS = C0, MASK, H = 0, LAST_C, GRU_GATES = 1, CELLS, LSTM_GATES };
enum { GATES, STATES, FIRST, G_KERNEL, D_H, GRU_MASK, D_C = GRU_MASK, LSTM_MASK };
enum { D_X, D_H0, D_C0, D_INNER = D_C0 };

typedef struct {
    const CornuKernelCall *call;
    CornuMultiplication    how;
    const CornuProducts   *products;
    const CornuCells      *cells;
    bool    lstm, backward, narrow, narrow_cells, reverse;
    bool    stream;               /* gates and cells: past the caches                         */
    float   gate_slope;
    int64_t batch, steps, units, gates;
    int64_t groups, k;            /* panels are of each gate over U, or of all over gates U   */
    int64_t depth, padded;        /* k and units, rounded up to pairs and registers           */
    int64_t blocks, rows;         /* of the batch, and at most in one                         */
    int64_t stride, plane;        /* elements between rows of x, and between its parts        */
    size_t  x_bytes, thread_bytes;
    const uint8_t *mask;
    float      *bias;             /* of each group, zeros but for gru forwards */
    const char *packed;           /* the kernel's panels */
    char       *threads;
    size_t      each;             /* bytes from thread to thread there */
    int64_t     pieces;           /* of a step's units, forwards; 1: not divided */
} CornuRecurrent;

/* The dtype of lstm's cells; of gru, x'. */
CornuDtype cornu__recurrent_cells(const CornuOpCall *op);

void cornu__recurrent_find_sizes(CornuRecurrent *p, const CornuQuery *q);

static inline int64_t cornu__recurrent_panel_width(const CornuRecurrent *p, int64_t unit)
{
    return smaller(2 * p->products->lanes, p->padded - unit);
}

/* Where the panel at column `unit` of a group is: `depth` rows for each part. */
static inline int64_t cornu__recurrent_panel_offset(const CornuRecurrent *p, int64_t group,
                                                    int64_t unit)
{
    return (group * p->padded + unit) * p->depth * p->how.parts * (int64_t)p->products->size;
}

/* As CornuKernel's. */
size_t cornu__recurrent_pack_bytes(const CornuQuery *q);
void   cornu__recurrent_pack(const CornuKernelCall *call);

/* y = x times `count` columns of a group from `unit` on, rounded up to registers, plus the bias. */
void cornu__recurrent_multiply(const CornuRecurrent *p, const char *x, int64_t rows, int64_t group,
                               int64_t unit, int64_t count, float *y, int64_t y_stride,
                               CornuAhead *ahead);

/* The same of the units' columns of all gates, results CORNU_RECURRENT_UNITS apart. */
void cornu__recurrent_multiply_gates(const CornuRecurrent *p, const char *x, int64_t rows,
                                     int64_t unit, float *y, CornuAhead *ahead);

#endif
