/*
 * From a program to steps in memory: the passes of host devices, one file each, in this order;
 * those about sums over shards in sums/.
 *
 *     simplify     drops what need not be computed
 *     decompose    replaces ops that have no kernel by ops that have one
 *     simplify     again: these leave duplicates and constants
 *     distribute   moves sums over shards before products of what is summed
 *     share        with many shards, or of large products, sums of which each gets a slice are
 *                  made for all
 *     combine      joins sums over shards into few
 *     fuse         turns ops into steps: kernels with epilogues, elementwise groups; with ops that
 *                  are computed twice (recompute.c)
 *     sums         with many shards, adds up what they have as they are done
 *     exchanges    with several processes, sends early what they sum, and waits late
 *     plan_memory  orders the steps and gives every value its place in memory
 *
 * Passes up to combine map programs to programs, the others fill a CornuPlan, which verify.c checks
 * if CORNU_VERIFY is 1. CORNU_DUMP=program prints the program after decompose and after combine,
 * CORNU_DUMP=plan the steps; CORNU_PASSES leaves passes out (debug_internal.h).
 */
#ifndef CORNU_DEVICE_HOST_PASSES_H
#define CORNU_DEVICE_HOST_PASSES_H

#include "../../debug_internal.h"
#include "plan/plan.h"

/* Runs all passes into an empty plan; cornu__plan_free frees the plan, also after a failure. `host`
 * must outlive it. */
CornuStatus cornu__plan_build(CornuPlan *plan, const CornuHost *host, const CornuProgram *program);

/* ---- The passes ---- */

CornuProgram *cornu__simplify(const CornuHost *host, const CornuProgram *program);
CornuProgram *cornu__decompose(const CornuHost *host, const CornuProgram *program);
CornuProgram *cornu__distribute(const CornuHost *host, const CornuProgram *program);
CornuProgram *cornu__share(const CornuHost *host, const CornuProgram *program);
CornuProgram *cornu__combine(const CornuHost *host, const CornuProgram *program);
CornuStatus   cornu__fuse(CornuPlan *plan);
/* The kernel that adds up `value` over all shards where it is computed (kernel.h, .summed), if it
 * is the result of a product of values that vary and is read once; NULL: there is none. */
const CornuKernel *cornu__summed_kernel_for(const CornuHost *host, const CornuProgram *program,
                                            CornuValue value);
CornuStatus   cornu__plan_sums(CornuPlan *plan);
CornuStatus   cornu__plan_exchange(CornuPlan *plan);
/* CORNU_ERR_PROCESS unless all processes are about to compile this program. */
CornuStatus   cornu__plan_check_program(const CornuHost *host, const CornuProgram *program);
/* Once order and places are known. CORNU_ERR_PROCESS if another process has another order. */
CornuStatus   cornu__plan_check_exchanges(CornuPlan *plan);
CornuStatus   cornu__plan_memory(CornuPlan *plan);

/* CORNU_ERR_UNSUPPORTED for a plan that does not compute its program, naming step and value. It
 * takes time and memory, and is for tests and for CORNU_VERIFY=1. */
CornuStatus cornu__plan_verify(const CornuPlan *plan);

#endif
