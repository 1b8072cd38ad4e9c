/*
 * The cpu device's only door to BLIS, which multiplies its matrices.
 *
 * The library holds a serial BLIS of its own under hidden names, so that a program may
 * link any other BLAS beside it. Three sets of kernels are built in: skx (AVX-512),
 * haswell (AVX2) and generic; on arm64 cortexa57 alone. BLIS stops the process on an
 * unknown CPU number in BLIS_ARCH_TYPE and when its malloc fails; here the number is
 * checked first, and all its memory comes from a reserve.
 */
#ifndef CORNU_DEVICE_CPU_BLIS_H
#define CORNU_DEVICE_CPU_BLIS_H

#include <stdint.h>

#include "../status.h"

/*
 * To be called before anything else here, with the number of threads that will multiply
 * at the same time; several calls add up. The first success chooses the kernels for the
 * process: those of cornu__cpu_isa(), but haswell for skx where 512-bit instructions run in two
 * halves; or of the environment variable BLIS_ARCH_TYPE if it is set.
 *   CORNU_ERR_DEVICE    BLIS_ARCH_TYPE is not the number of a built-in set, or this CPU
 *                       lacks what that needs
 *   CORNU_ERR_MEMORY    no room for the reserve, 20 MiB a thread, touched only where used
 *   those of cornu__cpu_isa()
 */
CornuStatus cornu__blis_open(int threads);

/* Takes back what one call of cornu__blis_open announced. The memory stays for the next
 * one. */
void cornu__blis_close(int threads);

/* "skx", "haswell", "generic", "cortexa57"; and the version, "0.9.0". */
const char *cornu__blis_kernels(void);
const char *cornu__blis_version(void);

/*
 * C = alpha A B + beta C for A (m, k), B (k, n), C (m, n), all f32; strides in elements,
 * by row and by column: a transposed operand has them exchanged. Rows of A or B may
 * overlap. With beta 0 what C held is not read. Runs on the calling thread alone.
 */
void cornu__blis_sgemm(int64_t m, int64_t n, int64_t k, float alpha,
                       const float *a, int64_t a_row, int64_t a_column,
                       const float *b, int64_t b_row, int64_t b_column, float beta,
                       float *c, int64_t c_row, int64_t c_column);

#endif
