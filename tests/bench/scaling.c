/* Training steps by batch size and by number of threads. */
#include <stdio.h>

#include "../../device/host/machine/cpu.h"
#include "steps.h"

static CornuStatus measure(Bench *bench, const char *model, int64_t batch, int threads)
{
    return steps_measure(bench, "scaling", &(SubjectConfig){
        .model = model, .batch = batch, .threads = threads });
}

/* mnist_cnn, or the networks of --models, with many batch sizes; then a batch of 1024 on one
 * thread, on one per processor, and on two per processor. */
CornuStatus bench_scaling(Bench *bench)
{
    const char *models = bench->models ? bench->models : "mnist_cnn";
    int64_t     batches[BENCH_MOST_NUMBERS];
    const int   count = bench_numbers(bench->batches ? bench->batches
                                                     : "64,128,256,512,1024,2048,4096", batches);
    const int   cores = cornu__cpu_threads(), threads[] = { 1, cores, 2 * cores };
    const int64_t batch = bench->batches ? batches[0] : 1024;
    for (int i = 0; subject_model(i); i++) {
        const char *model = subject_model(i);
        CornuStatus status = CORNU_OK;
        if (!bench_listed(models, model)) continue;
        for (int k = 0; k < count && !status; k++)
            status = measure(bench, model, batches[k], 0);
        for (int k = cores == 1; k < 3 && !status; k++)
            status = measure(bench, model, batch, threads[k]);
        if (status) return status;
    }
    return CORNU_OK;
}

void bench_scaling_print(const Bench *bench)
{
    printf("\nscaling: training steps by batch size, then by threads\n");
    steps_print(bench, "scaling");
}
