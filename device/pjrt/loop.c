/*
 * Collected runs: what the host feeds is kept until enough runs are there, and then they are one
 * call, a loop on the device, which the host's calls do not slow down. A single run more or less
 * than a loop's is done as such.
 */
#include <string.h>

#include "../memory_internal.h"
#include "executable.h"

/* Bytes that a loop is fed with, on a shard, at most. */
static const int64_t most_fed = (int64_t)64 << 20;

/* ---- Which runs ---- */

static bool is_fed(const CornuProgram *program, const CornuBuffer *buffer, int i)
{
    for (int k = 0; k < program->output_count; k++)
        if (program->outputs[k].alias == i) return false;
    return buffer->held.use == CORNU_USE_INFEED;
}

bool cornu__pjrt_collects(const CornuPjrtExecutable *executable)
{
    return executable->loop.expected > 0 && !executable->base.events;
}

bool cornu__pjrt_continues(const CornuPjrtExecutable *executable, CornuBuffer *const *inputs)
{
    const CornuPjrtLoop *loop = &executable->loop;
    const size_t         count = (size_t)executable->base.program->input_count;
    return cornu__pjrt_of(executable->base.device)->collecting == executable &&
           cornu__pjrt_collects(executable) &&
           memcmp(loop->inputs, inputs, count * sizeof *inputs) == 0;
}

/* On processors XLA compiles convolutions within a loop to plain loops of their own, on one thread:
 * mnist_cnn's step is 12 times slower so. */
static bool may_loop(const CornuPjrtExecutable *executable)
{
    const CornuProgram *program = executable->base.program;
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].alias < 0) return false;
    for (int i = 0; i < program->input_count; i++)   /* it has one axis more in a loop */
        if (cornu_program_type(program, program->inputs[i]).shape.rank == CORNU_MAX_RANK)
            return false;
    return !cornu__pjrt_of(executable->base.device)->is_cpu ||
           !strstr(executable->once.module.text, "stablehlo.convolution");
}

void cornu__pjrt_collect(CornuExecutable *base, int64_t runs)
{
    CornuPjrtExecutable *executable = (CornuPjrtExecutable *)base;
    if (executable->loop.collected > 0 || !executable->once.loaded) return;
    executable->loop.expected = runs > 1 && may_loop(executable) ? runs : 0;
}

/* ---- Memory ---- */

void cornu__pjrt_loop_free(CornuPjrtLoop *loop, const CornuPjrtDevice *device)
{
    for (size_t i = 0; loop->staged && i < loop->compiled.in_count; i++)
        cornu__release(loop->staged[i]);
    cornu__release(loop->staged);
    cornu__release(loop->inputs);
    cornu__pjrt_compiled_free(&loop->compiled, device);
    *loop = (CornuPjrtLoop){ 0 };
}

/* Loops of equal length, as few as the memory for what they are fed allows. */
static int64_t length_of(const CornuPjrtExecutable *executable, CornuBuffer *const *inputs)
{
    const CornuProgram *program = executable->base.program;
    const int64_t       expected = executable->loop.expected;
    int64_t             bytes = 1;
    for (int i = 0; i < program->input_count; i++)
        if (is_fed(program, inputs[i], i))
            bytes += (int64_t)cornu_type_bytes(cornu_program_type(program, program->inputs[i]));
    const int64_t fit = most_fed / bytes > 1 ? most_fed / bytes : 1;
    const int64_t loops = (expected + fit - 1) / fit;
    return (expected + loops - 1) / loops;
}

/* A loop of `most` steps, compiled, with memory for what it is fed. */
static CornuStatus prepare(CornuPjrtExecutable *executable, CornuBuffer *const *inputs,
                           int64_t most)
{
    const CornuProgram *program = executable->base.program;
    CornuPjrtDevice    *device = cornu__pjrt_of(executable->base.device);
    CornuPjrtLoop      *loop = &executable->loop;
    const size_t        count = (size_t)program->input_count;
    const int64_t       expected = loop->expected;
    bool               *is_stacked = cornu__allocate(count, sizeof *is_stacked);
    CornuStatus         status = is_stacked ? CORNU_OK : CORNU_ERR_MEMORY;
    cornu__pjrt_loop_free(loop, device);
    for (size_t i = 0; i < count && !status; i++)
        is_stacked[i] = is_fed(program, inputs[i], (int)i);
    if (!status)
        status = cornu__pjrt_compile_module(&loop->compiled, device, program,
                                            &(CornuModuleLoop){ most, is_stacked });
    if (!status) {
        loop->staged = cornu__allocate(count, sizeof *loop->staged);
        loop->inputs = cornu__allocate(count, sizeof *loop->inputs);
        if (!loop->staged || !loop->inputs) status = CORNU_ERR_MEMORY;
    }
    for (size_t i = 0; i < count && !status; i++)
        if (is_stacked[i]) {
            loop->staged[i] = cornu__allocate_aligned(cornu_type_bytes(inputs[i]->type) *
                                                      (size_t)most);
            if (!loop->staged[i]) status = CORNU_ERR_MEMORY;
        }
    cornu__release(is_stacked);
    if (status) cornu__pjrt_loop_free(loop, device);
    else loop->most = most, loop->expected = expected;
    return status;
}

/* ---- Collecting ---- */

/* Copies the INFEED buffers of a run that is done later, in a loop. */
static CornuStatus stage(const CornuPjrtExecutable *executable, CornuBuffer *const *inputs)
{
    const CornuProgram  *program = executable->base.program;
    const CornuPjrtLoop *loop = &executable->loop;
    for (int i = 0; i < program->input_count; i++) {
        const bool    varies = program->values[program->inputs[i]].varies;
        const int     shards = varies ? executable->base.device->shards : 1;
        const size_t  bytes = cornu_type_bytes(inputs[i]->type) / (size_t)shards;
        const char   *from;
        if (!loop->staged[i]) continue;
        CORNU__TRY(cornu__pjrt_on_host((CornuPjrtBuffer *)inputs[i], &from));
        for (int shard = 0; shard < shards; shard++)
            memcpy(loop->staged[i] + (size_t)(shard * loop->most + loop->collected) * bytes,
                   from + (size_t)shard * bytes, bytes);
    }
    return CORNU_OK;
}

CornuStatus cornu__pjrt_collect_run(CornuPjrtExecutable *executable, CornuBuffer *const *inputs)
{
    CornuPjrtDevice *device = cornu__pjrt_of(executable->base.device);
    CornuPjrtLoop   *loop = &executable->loop;
    if (loop->collected == 0) {
        const int64_t most = length_of(executable, inputs);
        if (most == 1) {
            loop->expected--;
            return cornu__pjrt_launch(executable, &executable->once, inputs, NULL, -1);
        }
        if (loop->most < most) CORNU__TRY(prepare(executable, inputs, most));
        memcpy(loop->inputs, inputs,
               (size_t)executable->base.program->input_count * sizeof *inputs);
    }
    CORNU__TRY(stage(executable, inputs));
    loop->expected--;
    loop->collected++;
    device->collecting = executable;
    return loop->collected == loop->most || loop->expected == 0 ? cornu__pjrt_flush(&device->base)
                                                                : CORNU_OK;
}

CornuStatus cornu__pjrt_flush(CornuDevice *base)
{
    CornuPjrtDevice     *device = cornu__pjrt_of(base);
    CornuPjrtExecutable *executable = device->collecting;
    CornuStatus          status = CORNU_OK;
    if (!executable) return CORNU_OK;
    CornuPjrtLoop *loop = &executable->loop;
    const bool     whole = loop->collected == loop->most;
    device->collecting = NULL;
    for (int64_t i = 0; i < loop->collected && !status; i += whole ? loop->most : 1)
        status = cornu__pjrt_launch(executable, whole ? &loop->compiled : &executable->once,
                                    loop->inputs, NULL, i);
    loop->collected = 0;
    return status;
}

CornuStatus cornu__pjrt_wait(CornuDevice *base)
{
    CornuPjrtDevice *device = cornu__pjrt_of(base);
    CornuFailure     failure;
    cornu__failure_keep(&failure, cornu__pjrt_flush(base));
    const CornuStatus status = cornu__pjrt_settle(device);
    return failure.status ? cornu__failure_tell(&failure) : status;
}
