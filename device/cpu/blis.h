/*
 * The cpu device's interface to BLIS, which multiplies its matrices.
 *
 * The library contains a serial copy of BLIS under hidden names, so that a program may link any
 * other BLAS too. Three sets of kernels are built in: skx (AVX-512), haswell (AVX2) and generic; on
 * arm64 only cortexa57. BLIS aborts the process on an unknown BLIS_ARCH_TYPE and when malloc fails;
 * so the variable is checked first, and all memory comes from a reserve.
 */
#ifndef CORNU_DEVICE_CPU_BLIS_H
#define CORNU_DEVICE_CPU_BLIS_H

#include <stdint.h>

#include "../status.h"

/*
 * Must be called first, with the number of threads that will multiply at the same time; several
 * calls add up. The first success chooses the kernels for the process: those of BLIS_ARCH_TYPE if
 * that is set in the environment; else those of cornu__cpu_isa(), with haswell in place of skx if
 * the CPU runs 512-bit instructions in two halves.
 *   CORNU_ERR_DEVICE    BLIS_ARCH_TYPE is not the number of a built-in set, or this CPU lacks the
 *                       instructions it needs
 *   CORNU_ERR_MEMORY    for the reserve, 20 MiB a thread, touched only where used
 *   those of cornu__cpu_isa()
 */
CornuStatus cornu__blis_open(int threads);

/* Undoes one call of cornu__blis_open. The memory is kept for the next one. */
void cornu__blis_close(int threads);

/* "skx", "haswell", "generic", "cortexa57"; and the version, "0.9.0". */
const char *cornu__blis_kernels(void);
const char *cornu__blis_version(void);

/*
 * C = alpha A B + beta C for A (m, k), B (k, n), C (m, n), all f32; strides by row and by column in
 * elements: a transposed operand has them exchanged. Rows of A or B may overlap. With beta 0, C is
 * not read. Runs on the calling thread alone.
 */
void cornu__blis_sgemm(int64_t m, int64_t n, int64_t k, float alpha,
                       const float *a, int64_t a_row, int64_t a_column,
                       const float *b, int64_t b_row, int64_t b_column, float beta,
                       float *c, int64_t c_row, int64_t c_column);

#endif
