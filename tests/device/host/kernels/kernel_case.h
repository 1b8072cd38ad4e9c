/* One call of a kernel under test: its operands, the result of the reference, which computes in
 * double, and whether the kernel agrees. */
#ifndef CORNU_TESTS_DEVICE_KERNEL_CASE_H
#define CORNU_TESTS_DEVICE_KERNEL_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../../../device/host/kernels/kernels.h"

/* Of the device under test: its kernels, and how it multiplies. */
extern CornuKernels   *tested_kernels;
extern CornuMultiplier tested_multiplier;
extern CornuDtype                operands, results;   /* the dtypes of products */

enum { MOST_INPUTS = 7, MOST_THREADS = 3 };

/* One call under test: operands and the result of the reference. */
typedef struct {
    CornuOpId       id;
    CornuAttributes attributes;
    int             in_count;
    CornuType       in_type[MOST_INPUTS], out_type[CORNU_MAX_OUTPUTS];
    void           *in[MOST_INPUTS];
    double         *expected[CORNU_MAX_OUTPUTS];
    CornuEpilogue   epilogue;
    double          terms;      /* terms that one element sums, for the bound */
    double          sum;        /* the largest that an activation was applied to, likewise */
} Case;

/* In [-1, 1). */
double random_value(void);

/* One of so many. */
int64_t one_of(const int64_t *from, int count);

/* None, CORNU_OP_COUNT, or one of the first `last` of relu, elu, tanh, sigmoid, bounded_relu; and
 * its attributes. */
CornuOpId       random_activation(int last);
CornuAttributes activation_attributes(CornuOpId id);

/* Attributes that leave at least one output. */
CornuAttributes random_convolution(CornuShape x, CornuShape filter, bool plain);

/* Random shapes of a test: fewer where dtypes share them. */
int case_rounds(int count);

CornuOpCall case_op(const Case *c);
CornuArray  case_operand(const Case *c, int i);

/* Adds an operand of random floats, or zeros of another dtype. */
void case_add(Case *c, CornuType type);
void case_free(Case *c);

/* Finds the result types and runs the reference, once for all cases with the same operands: what
 * the instruction sets share. False where the type rule refuses the case. */
bool case_expect(Case *c);
/* Applies bias and activation to the expected result. */
void case_expect_epilogue(Case *c);

/* Memory whose contents nothing may rely on starts as NaNs or as zeros, in turn. */
void *unset_memory(size_t bytes);

/* Joined with the pooling `pool`, or, if that is NULL, not. */
bool case_accepts(const CornuKernel *kernel, const Case *c, const Case *pool);

/* The first of the op's kernels that takes the case, and the first after a kernel; of those joined
 * with the pooling `pool` likewise. NULL: none. */
const CornuKernel *case_kernel(const Case *c);
const CornuKernel *case_kernel_after(const CornuKernel *kernel, const Case *c);
const CornuKernel *case_pooled(const Case *c, const Case *pool);
const CornuKernel *case_pooled_after(const CornuKernel *kernel, const Case *c, const Case *pool);

/* Whether it makes fewer products than there are taps, of sums of elements and of taps. */
bool case_makes_fewer_products(const CornuKernel *kernel);

/* The kernel's call with all that it needs: pool of threads, scratch memory, the packed operand 1.
 * The operands are in `in`. */
CornuStatus case_run_call(const CornuKernel *kernel, CornuKernelCall call, const void *const *in,
                          int threads);
/* Runs that kernel; `out` receives newly allocated results. */
CornuStatus case_run(const Case *c, int threads, void **out);
CornuStatus case_run_with(const CornuKernel *kernel, const Case *c, int threads, void **out);
void        case_free_results(const Case *c, void **out);

/* Whether output i agrees with the expected one, within rounding errors. */
void case_compare(const Case *c, int i, const void *got);
/* All kernels that take the case agree with the expected result, within the rounding of its terms,
 * and with themselves for any number of threads. */
void case_check(const Case *c);
/* The same for a case that must not be refused. */
void case_check_and_free(Case *c);

/* Tests of the cpu device's kernels, and of the tpu device's: of these the first `f32` are for
 * operands of f32, for bf16 with results in f32, and for bf16; the others for the last alone. */
typedef struct {
    const struct CMUnitTest *cpu;
    size_t                   cpu_count;
    const struct CMUnitTest *tpu;
    size_t                   tpu_count, f32;
} CaseTests;

/* The setup of a test: each has its own random numbers, whatever earlier tests used. */
int case_begin(void **state);

/* Runs the tests with each instruction set; how many failed. */
int cases_run(const CaseTests *tests);

#endif
