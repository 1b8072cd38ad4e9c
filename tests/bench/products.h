/* Products for the group "kernels": micro-kernels, and whole large products. */
#ifndef CORNU_TESTS_BENCH_PRODUCTS_H
#define CORNU_TESTS_BENCH_PRODUCTS_H

#include "bench.h"

/* Adds rows for the micro-kernels of f32 and bf16, with operands in the first-level cache, on all
 * threads, and for products of N by N matrices on cpu and tpu, packing included. */
CornuStatus products_measure(Bench *bench);

#endif
