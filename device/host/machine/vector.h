/*
 * Vector loops: one elementwise op on a block of elements.
 *
 * A block lives in registers in the sense of group.h: arrays of up to CORNU_BLOCK
 * elements in the first-level cache. Registers know four classes, and every dtype is held
 * in one of them:
 *
 *     F32   f32; bf16 and f16 as the floats they stand for, rounded after each op
 *     F64   f64
 *     I64   i64; i32, u32, u8 as i64, saturated to their range after each op
 *     BOOL  one byte, 0 or 1
 *
 * The files in isa/ are compiled once per instruction set and make one CornuVectors each.
 * A count is always a multiple of CORNU_VECTOR_STEP, so that no element goes through a
 * loop's remainder, whose rounding might differ. Destinations may be one of the sources,
 * never overlap them in another way.
 *
 * Largest errors of the functions of F32 registers, in units in the last place (ULP) of the exact
 * result, for every float, denormals and both infinities included; NaN gives NaN. They are the same
 * on every instruction set, though the bits differ; tests/device/host/machine/test_vector.c
 * measures them.
 *
 *     log sin cos        1          exp               1.05
 *     tanh erf rsqrt     1.5        elu               1 with alpha 1, else 2
 *     softplus           2          sigmoid           2.5
 *     sqrt and arithmetic: rounded as IEEE 754 asks
 *     power, and all functions of F64: libm's
 */
#ifndef CORNU_DEVICE_HOST_VECTOR_H
#define CORNU_DEVICE_HOST_VECTOR_H

#include "../../ops/rules.h"
#include "isa.h"

enum { CORNU_BLOCK = 1024, CORNU_VECTOR_STEP = 16 };

/* That sum_rows adds up, at most. */
enum { CORNU_SUM_ROWS = 8 };

/* Operands and results of one loop. */
enum { CORNU_VECTOR_INPUTS = 6, CORNU_VECTOR_OUTPUTS = 3 };

typedef enum {
    CORNU_CLASS_F32, CORNU_CLASS_F64, CORNU_CLASS_I64, CORNU_CLASS_BOOL, CORNU_CLASS_COUNT
} CornuClass;

CornuClass cornu__class_of(CornuDtype dtype);
size_t     cornu__class_size(CornuClass class);

/* Where the numbers of a random_uniform come from; see random.h. */
typedef struct {
    uint64_t seed;
    uint32_t position, iteration, generator;
    int64_t  row;         /* elements of one row */
} CornuRandom;

typedef struct {
    void              *out[CORNU_VECTOR_OUTPUTS];
    const void        *in[CORNU_VECTOR_INPUTS];
    const double      *attributes;   /* of the op: alpha, a bound, or the coefficients of an
                                        update */
    int64_t            first;        /* number of the block's first element in its tensor */
    const CornuRandom *random;
    int64_t            repeat, extent; /* iota: element i is (i / repeat) % extent; of rows:
                                          elements of each */
} CornuVectorCall;

typedef void CornuVector(const CornuVectorCall *call, int64_t count);

/* The loops over one class. NULL: the op is not computed in this class. */
typedef struct {
    CornuVector *op[CORNU_OP_COUNT];
    CornuVector *compare[CORNU_GREATER_EQUAL + 1];
    CornuVector *convert[CORNU_CLASS_COUNT];   /* to the other classes, as op convert does */
} CornuVectorClass;

typedef struct {
    const char              *name;
    const CornuVectorClass  *class[CORNU_CLASS_COUNT];
    CornuVector             *load[CORNU_DTYPE_COUNT];  /* memory to register; NULL: same bits */
    CornuVector             *store[CORNU_DTYPE_COUNT]; /* and back: the value fits the dtype  */
    CornuVector             *round[CORNU_DTYPE_COUNT]; /* in the register, to what dtype holds;
                                                          NULL: it holds all of the class     */
    CornuVector             *uniform;                  /* F32, from call->random              */
    CornuVector             *iota;                     /* I64 */
    /* Sums and maxima; see reduce.c. */
    void  (*add_row)(float *sum, const float *x, int64_t count);    /* sum += x, any count    */
    void  (*max_row)(float *max, const float *x, int64_t count);
    /* y[i] of run i, each of `count` elements, at least one and at most a chunk. */
    void  (*sum_runs)(const float *x, int64_t runs, int64_t count, float *y);
    void  (*max_runs)(const float *x, int64_t runs, int64_t count, float *y);
    /* y = x[i] in run i, each of `count` elements. */
    void  (*repeat_runs)(const float *x, int64_t runs, int64_t count, float *y);
    /* The sum of some rows, element by element, in a binary tree: neighbours first. */
    void  (*sum_rows)(float *to, const float *const *x, int rows, int64_t count);
    /* Only reads, the limit of all memory; count a multiple of 128. The result means nothing. */
    float (*read)(const float *x, int64_t count);
} CornuVectors;

/* One table per instruction set: cornu__vectors_portable, … */
CORNU__F32_ISAS(CORNU__DECLARE, const CornuVectors, cornu__vectors)

/* Those of the instruction set in use (cpu.h). */
const CornuVectors *cornu__vectors(void);

#endif
