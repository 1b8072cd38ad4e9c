/*
 * A trial: a program with numbers for its inputs, run on a device and compared with its bounds.
 * A trial runs in a process of its own, so that a crash or a hang is a finding like any other.
 */
#ifndef CORNU_TESTS_CHECK_TRIAL_H
#define CORNU_TESTS_CHECK_TRIAL_H

#include "../../device/host/machine/cpu.h"
#include "bounds.h"

#include <cornu/tensor/tensor.h>

/* The same inputs are run twice, the second time with the variables that the first run wrote. */
enum { TRIAL_ROUNDS = 2 };

typedef struct {
    CornuProgram *program;
    int           shards;
    double      **input;      /* of input i, for all shards if they have their own */
    int           input_space;
} Trial;

void trial_free(Trial *c);
/* Elements of input i, of all shards. */
int64_t trial_count(const Trial *c, int i);
/* Declares an input with these elements, which are copied. CORNU_NO_VALUE if it is refused. */
CornuValue trial_input(Trial *c, CornuType type, bool varies, const double *numbers);

/* The same case with only the ops and inputs that its outputs need; replaced[v], unless it is NULL,
 * are the elements of a new input in place of value v. False if no such program exists. */
bool trial_pruned(const Trial *c, double *const *replaced, Trial *pruned);

/* Where a trial runs. "rewrite" is not a device: the ops after tensor/rewrite.c, in double. */
typedef struct {
    const char *device;
    CornuIsa    isa;
    int         threads;
} Setting;

/* "cpu avx2, 3 threads, 1 shard" */
void setting_print(const Setting *setting, int shards, char *text, size_t size);

typedef struct {
    bool failed;
    bool unusable;       /* the reference refuses it: not a finding */
    int  output;         /* that differs, or -1 */
    char message[400];
} Verdict;

/* The result of an attempt in another process; a crash or a hang is a failure. */
typedef Verdict Attempt(const void *what, const Setting *setting);
Verdict attempt_apart(Attempt *attempt, const void *what, const Setting *setting);

/* The passes without any one of which the attempt does not fail (CORNU_PASSES=-NAME): "group,
 * reuse"; "none alone" if there is none. */
void guilty_passes(Attempt *attempt, const void *what, const Setting *setting, char *text,
                   size_t size);

/* Tries the setting in another process; several threads must also give the bits of one. */
Verdict trial_run(const Trial *c, const Setting *setting);
/* In this process. */
Verdict trial_run_here(const Trial *c, const Setting *setting);
void    trial_guilty(const Trial *c, const Setting *setting, char *text, size_t size);

/* What all outputs are after each round, one after the other, on a device with the trial's shards,
 * to be freed; NULL if the trial is unusable. The verdict is that all ran. */
double *trial_numbers(const Trial *c, CornuDevice *device, int64_t *count, Verdict *verdict);

/* The ops of the trial in a graph on `device`; tensor[v] becomes value v. NULL if it is refused. */
CornuGraph *trial_graph(const Trial *c, CornuDevice *device, CornuTensor **tensor);

/* Counts the elements compared, and those of them with an infinite bound. */
typedef struct { int64_t compared, unbounded; } TrialCounts;
extern TrialCounts trial_counts;

/* A test that does the same, to be pasted into tests/device/test_NAME.c. */
void trial_print_test(const Trial *c, const Setting *setting, const char *name, FILE *to);

#endif
