/*
 * Programs for tests, written short: ops recorded one after the other, failing the test
 * where one does; and running a program on a device with arrays in and out.
 */
#ifndef CORNU_TESTS_DEVICE_PROGRAMS_H
#define CORNU_TESTS_DEVICE_PROGRAMS_H

#include <cornu/device/device.h>

CornuValue input(CornuProgram *program, CornuType type);
CornuValue op(CornuProgram *program, CornuOpId id, const CornuAttributes *attributes,
              const CornuValue *in, int in_count);
CornuValue op0(CornuProgram *program, CornuOpId id, const CornuAttributes *attributes);
CornuValue op1(CornuProgram *program, CornuOpId id, CornuValue x);
CornuValue op2(CornuProgram *program, CornuOpId id, CornuValue a, CornuValue b);
CornuValue constant(CornuProgram *program, CornuDtype dtype, double value);
CornuValue broadcast(CornuProgram *program, CornuValue x, CornuShape shape);
CornuValue reshape(CornuProgram *program, CornuValue x, CornuShape shape);
CornuValue convert(CornuProgram *program, CornuValue x, CornuDtype dtype);
CornuValue reduce(CornuProgram *program, CornuOpId id, CornuValue x, int64_t axes);
void       output(CornuProgram *program, CornuValue value, int alias);

/* A program compiled on a device, with a buffer for each input and unaliased output. */
typedef struct {
    CornuDevice         *device;
    const CornuProgram  *program;
    CornuExecutable     *executable;
    CornuBuffer        **inputs, **outputs;
} Compiled;

Compiled compile(CornuDevice *device, const CornuProgram *program);
void     set_input(Compiled *compiled, int i, const void *data);
/* Fills every input with numbers that depend on `seed` alone, exact in each dtype: reals
 * within (-2, 2), integers 0 to 9, booleans. */
void     set_inputs(Compiled *compiled, uint64_t seed);
/* The same with these numbers; for a per-shard input, those of all shards. */
void     set_numbers(Compiled *compiled, int i, const double *numbers);
void     run(Compiled *compiled);
/* The number of an output's elements, as double. The caller frees it. */
double  *get_output(const Compiled *compiled, int i, int64_t *count);
double  *get_input(const Compiled *compiled, int i, int64_t *count);
/* Each number of the output is as near to the expected one as its bound says. */
void     expect_within(const Compiled *compiled, int i, const double *expected,
                       const double *bound);
void     release(Compiled *compiled);
/* Output 0 of the program, run once on a device with the numbers of set_inputs. The caller frees
 * it. */
double  *numbers_of(CornuDevice *device, const CornuProgram *program, uint64_t seed,
                    int64_t *count);
const CornuStatistics *statistics(const Compiled *compiled);

/* Uniform in [0, count), from a state that is advanced. */
int64_t draw(uint64_t *state, int64_t count);

#endif
