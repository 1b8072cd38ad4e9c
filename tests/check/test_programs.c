/*
 * Random programs of all ops on every device, beside the reference.
 *
 *     test_programs                                    a fixed seed, for some seconds
 *     test_programs --seconds 3600 --seed 17           for an hour
 *     test_programs --count 1 --seed 4711              one program again
 *
 * Program number k of a run has the seed SEED + k, which decides everything about it: the program,
 * its numbers, how many shards it has, the instruction sets and the numbers of threads it is tried
 * with. A finding is shrunk to the fewest ops and printed as a program and as a C test, with the
 * passes without which it goes away. Exits 1 on a finding, and where a long run misses an op.
 *
 * tests/run: takes 45 s, all instruction sets, quick
 */
#include <stdlib.h>
#include <string.h>

#include "generator.h"
#include "runs.h"
#include "shrink.h"

static void count_ops(const CornuProgram *program, int64_t *of)
{
    for (int i = 0; i < program->op_count; i++) of[program->ops[i].id]++;
}

static void try_program(uint64_t seed, Run *run)
{
    Trial    c;
    Setting setting;
    run_says(run, "making it");
    if (generate(seed, &c)) {
        count_ops(c.program, run->counted);
        for (int i = 0; generated_setting(seed, &c, i, &setting) && !run->failed; i++) {
            setting_print(&setting, c.shards, run->where, sizeof run->where);
            run->setting = i;
            const Verdict verdict = trial_run_here(&c, &setting);
            if (!verdict.failed) continue;
            run->failed = true;
            run_says(run, "%s", verdict.message);
        }
    }
    run->compared += trial_counts.compared;
    run->unbounded += trial_counts.unbounded;
    trial_counts = (TrialCounts){ 0, 0 };
    trial_free(&c);
}

static void report_program(uint64_t seed, const Run *run)
{
    Trial    c;
    Setting setting;
    char    passes[200], name[64], where[200];
    if (run->setting < 0 || !generate(seed, &c)) return;
    generated_setting(seed, &c, run->setting, &setting);
    const int ops = c.program->op_count;
    Verdict   verdict = trial_run(&c, &setting);
    if (!verdict.failed) {
        printf("  in a process of its own it does not fail\n");
    } else {
        shrink(&c, &setting, 60.0);
        verdict = trial_run(&c, &setting);
        trial_guilty(&c, &setting, passes, sizeof passes);
        setting_print(&setting, c.shards, where, sizeof where);
        printf("  on %s: %s\n  %d ops shrunk to %d; without this pass it is right: %s\n\n", where,
               verdict.message, ops, c.program->op_count, passes);
        cornu_program_print(c.program, stdout);
        printf("\n");
        snprintf(name, sizeof name, "program_%llu", (unsigned long long)seed);
        trial_print_test(&c, &setting, name, stdout);
        printf("\n");
    }
    trial_free(&c);
}

static const char *op_name(int i) { return cornu_op_name((CornuOpId)i); }

int main(int argc, char **argv)
{
    return run_main(argc, argv, &(Runs){
        .what = "programs", .try_one = try_program, .report = report_program, .seconds = 40.0,
        .name_of = op_name, .names = CORNU_OP_COUNT, .enough = 2000 });
}
