/*
 * Random models on cpu and tpu, in the float32 policy, beside the reference: predictions, three
 * training steps, predictions again.
 *
 *     test_models                                  a fixed seed, for some seconds
 *     test_models --seconds 1800 --seed 17         for half an hour
 *     test_models --count 1 --seed 4711            one model again
 *
 * The bounds are those of bounds.h, of the very programs that the model's steps are recorded as:
 * from the first prediction through the weights after each step to the last one. A finding is
 * shrunk to the fewest layers and printed as a C program; where its training step alone, compiled
 * as a program, is wrong, too, that is shrunk and printed as test_programs does.
 *
 * tests/run: all instruction sets, quick
 */
#include <stdio.h>
#include <string.h>

#include "runs.h"
#include "shrink.h"
#include "stack.h"

static void try_model(uint64_t seed, Run *run)
{
    Stack   stack;
    Setting setting;
    run_says(run, "making it");
    if (stack_generate(seed, &stack)) {
        for (int i = 0; stack_setting(&stack, i, &setting) && !run->failed; i++) {
            setting_print(&setting, i ? stack.shards : 1, run->where, sizeof run->where);
            run->setting = i;
            const Verdict verdict = stack_run_here(&stack, &setting);
            if (verdict.unusable) break;
            for (int k = 0; i == 0 && k < stack.count; k++) run->counted[stack.layers[k].kind]++;
            if (!verdict.failed) continue;
            run->failed = true;
            run_says(run, "%s", verdict.message);
        }
    }
    run->compared += trial_counts.compared;
    run->unbounded += trial_counts.unbounded;
    trial_counts = (TrialCounts){ 0, 0 };
}

static void report_model(uint64_t seed, const Run *run)
{
    Stack   stack;
    Setting setting;
    Trial   trial;
    char    passes[200];
    if (run->setting < 0 || !stack_generate(seed, &stack)) return;
    stack_setting(&stack, run->setting, &setting);
    if (!stack_run(&stack, &setting).failed) {
        printf("  in a process of its own it does not fail\n");
        return;
    }
    stack_shrink(&stack, &setting, 60.0);
    printf("  %s\n  layers:", stack_run(&stack, &setting).message);
    for (int i = 0; i < stack.count; i++)
        printf("%s %s", i ? "," : "", stack_kind_name(stack.layers[i].kind));
    stack_guilty(&stack, &setting, passes, sizeof passes);
    printf("; %s, %s\n  without this pass it is right: %s\n\n", stack_optimizer(&stack), stack.loss,
           passes);
    stack_print(&stack, &setting, stdout);
    if (stack_trial(&stack, &trial)) {
        if (trial_run(&trial, &setting).failed) {
            shrink(&trial, &setting, 60.0);
            printf("\nits training step: %s\n\n", trial_run(&trial, &setting).message);
            cornu_program_print(trial.program, stdout);
            trial_print_test(&trial, &setting, "training_step", stdout);
        }
        trial_free(&trial);
    }
}

int main(int argc, char **argv)
{
    return run_main(argc, argv, &(Runs){
        .what = "models", .try_one = try_model, .report = report_model, .seconds = 20.0,
        .name_of = stack_kind_name, .names = stack_kind_count(), .enough = 3000 });
}
