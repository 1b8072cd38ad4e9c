/*
 * Tests of each instruction set. Those that this processor lacks are skipped by name, so that a run
 * reports what it could not test.
 */
#ifndef CORNU_TESTS_DEVICE_ISAS_H
#define CORNU_TESTS_DEVICE_ISAS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdbool.h>

#include "../../device/host/machine/cpu.h"

/* Whether this processor has the instruction set. */
bool isa_present(CornuIsa isa);

/* From now on devices and direct calls use the kernels of this set; false if the processor lacks
 * it. */
bool isa_take(CornuIsa isa);

/* The tests under CORNU_ISA, each named "NAME ISA: TEST"; returns how many failed. NAME may be
 * empty. */
int isa_run_group(const char *name, CornuIsa isa, const struct CMUnitTest *tests, size_t count);

/* For tests that compare several sets with one expectation: isa_begin tells whether a set is
 * present and counts it as tested; isas_run_counted runs a test for each set up to `last`, which
 * fails if the set was not tested. */
bool isa_begin(CornuIsa isa);
int  isas_run_counted(CornuIsa last);

#endif
