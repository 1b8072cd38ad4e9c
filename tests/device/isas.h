/*
 * Tests of each instruction set. Those of one that this processor lacks are skipped, each by its
 * name, so that a run says what it could not look at.
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

/* Whether this processor has it. */
bool isa_present(CornuIsa isa);

/* Takes its kernels from now on, those of devices and those that are called here; false without
 * it. */
bool isa_take(CornuIsa isa);

/* The tests under CORNU_ISA, each named "NAME ISA: TEST"; returns how many failed. NAME may be
 * empty. */
int isa_run_group(const char *name, CornuIsa isa, const struct CMUnitTest *tests, size_t count);

/* For tests that compare several sets with one expectation: isa_begin says whether a set is there
 * and counts that it is looked at, isas_run_counted is a test for each set up to `last`, which
 * fails if nothing was looked at under it. */
bool isa_begin(CornuIsa isa);
int  isas_run_counted(CornuIsa last);

#endif
