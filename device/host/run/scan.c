#include <string.h>

#include "../../memory_internal.h"
#include "../compile/passes.h"

/* The parts of a scan's scratch memory, in this order: addresses of the body's operands, inputs and
 * outputs; a buffer for each slice and each stacked result; the body's arena, its packed operands
 * and its scratch memory. */
struct CornuNested {
    CornuHost            host;       /* with one shard */
    CornuPlan            plan;
    CornuAttributes_SCAN scan;       /* its body is not kept */
    int                  in_count, out_count;
    size_t               buffers;    /* offset of the first buffer   */
    size_t               arena, packed, scratch;   /* offsets of the last parts */
};

static size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

static bool is_sliced(const CornuNested *nested, int i)
{
    return i >= nested->scan.carries && i < nested->scan.carries + nested->scan.slices;
}

static CornuType input_type(const CornuNested *nested, int i)
{
    return cornu_program_type(nested->plan.program, nested->plan.program->inputs[i]);
}

static CornuType output_type(const CornuNested *nested, int i)
{
    return cornu_program_type(nested->plan.program, nested->plan.program->outputs[i].value);
}

/* The body with its carries written into the inputs that they came from. */
static CornuProgram *carry_in_place(const CornuAttributes_SCAN *scan)
{
    CornuProgram *body = cornu_program_copy(scan->body);
    for (int i = 0; body && i < scan->carries; i++) body->outputs[i].alias = i;
    return body;
}

CornuNested *cornu__nested_create(const CornuHost *host, const CornuAttributes_SCAN *scan)
{
    CornuProgram *body = carry_in_place(scan);
    CornuNested  *nested = cornu__allocate(1, sizeof *nested);
    if (!body || !nested) goto fail;
    nested->host = *host;
    nested->host.shards = 1;
    nested->scan = *scan;
    nested->in_count = body->input_count;
    nested->out_count = body->output_count;
    if (cornu__plan_build(&nested->plan, &nested->host, body) != CORNU_OK) goto fail;
    const size_t addresses = (size_t)(nested->plan.operand_count + nested->in_count +
                                      nested->out_count);
    nested->buffers = nested->arena = align(addresses * sizeof(void *));
    for (int i = 0; i < nested->in_count; i++)
        if (is_sliced(nested, i)) nested->arena += align(cornu_type_bytes(input_type(nested, i)));
    for (int i = (int)scan->carries; i < nested->out_count; i++)
        nested->arena += align(cornu_type_bytes(output_type(nested, i)));
    const CornuPlan *plan = &nested->plan;
    nested->packed = nested->arena + align(cornu__plan_bytes(plan, plan->arena));
    nested->scratch = nested->packed + align(cornu__plan_bytes(plan, plan->packed));
    cornu_program_free(body);
    return nested;
fail:
    cornu_program_free(body);
    cornu__nested_free(nested);
    return NULL;
}

void cornu__nested_free(CornuNested *nested)
{
    if (!nested) return;
    cornu__plan_free(&nested->plan);
    cornu__release(nested);
}

size_t cornu__nested_scratch(const CornuNested *nested)
{
    return nested->scratch + nested->plan.scratch_bytes;
}

void cornu__nested_count(const CornuNested *nested, int64_t times, CornuStatistics *statistics)
{
    cornu__plan_count(&nested->plan, times * nested->scan.steps, statistics);
}

void cornu__nested_print(const CornuNested *nested, FILE *to)
{
    fprintf(to, "     %lld times:\n", (long long)nested->scan.steps);
    cornu__plan_print(&nested->plan, to);
    fprintf(to, "     until here\n");
}

/* ---- Running ---- */

/* Between slice t of `whole`, whose extent along `axis` is the steps, and a buffer of its own. */
static void copy_slice(const CornuNested *nested, CornuType slice, char *whole, char *own,
                       int64_t t, bool into_whole)
{
    size_t rows = 1, bytes = cornu_dtype_size(slice.dtype);
    for (int i = 0; i < slice.shape.rank; i++)
        *(i < nested->scan.axis ? &rows : &bytes) *= (size_t)slice.shape.extent[i];
    const size_t step = bytes * (size_t)nested->scan.steps;
    char        *at = whole + (size_t)t * bytes;
    for (size_t row = 0; row < rows; row++, at += step, own += bytes)
        memcpy(into_whole ? at : own, into_whole ? own : at, bytes);
}

typedef struct {
    const CornuNested *nested;
    void             **addresses, **inputs, **outputs;
    char              *scratch;
} Run;

/* Where everything is. Carries live in the memory of the last carries, which are results. */
static Run lay_out(const CornuNested *nested, const void *const *in, void *const *out,
                   char *scratch)
{
    const int carries = (int)nested->scan.carries;
    Run       run = { nested, (void **)(void *)scratch, NULL, NULL, scratch + nested->scratch };
    run.inputs = run.addresses + nested->plan.operand_count;
    run.outputs = run.inputs + nested->in_count;
    char *buffer = scratch + nested->buffers;
    for (int i = 0; i < nested->in_count; i++) {
        run.inputs[i] = i < carries ? out[i] : (void *)(uintptr_t)in[i];
        if (!is_sliced(nested, i)) continue;
        run.inputs[i] = buffer;
        buffer += align(cornu_type_bytes(input_type(nested, i)));
    }
    for (int i = 0; i < nested->out_count; i++) {
        run.outputs[i] = i < carries ? NULL : buffer;
        if (i >= carries) buffer += align(cornu_type_bytes(output_type(nested, i)));
    }
    cornu__plan_addresses(&nested->plan, 0, run.inputs, run.outputs, scratch + nested->arena,
                          scratch + nested->packed, run.addresses);
    return run;
}

static CornuStatus run_body(const Run *run, const void *const *in, void *const *out, int64_t t,
                            int shard)
{
    const CornuNested *nested = run->nested;
    for (int i = 0; i < nested->in_count; i++)
        if (is_sliced(nested, i))
            copy_slice(nested, input_type(nested, i), (char *)(uintptr_t)in[i], run->inputs[i], t,
                       false);
    for (int i = 0; i < nested->plan.step_count; i++)
        CORNU__TRY(cornu__plan_run_step(&nested->plan, &nested->plan.steps[i], run->addresses,
                                        shard, run->scratch));
    for (int i = (int)nested->scan.carries; i < nested->out_count; i++)
        copy_slice(nested, output_type(nested, i), out[i], run->outputs[i], t, true);
    return CORNU_OK;
}

CornuStatus cornu__nested_run(const CornuNested *nested, const CornuStep *step,
                              const void *const *in, void *const *out, int shard, char *scratch)
{
    const Run run = lay_out(nested, in, out, scratch);
    for (int i = 0; i < nested->scan.carries; i++)
        memcpy(out[i], in[i], cornu_type_bytes(step->types[i]));
    for (int64_t k = 0; k < nested->scan.steps; k++)
        CORNU__TRY(run_body(&run, in, out, nested->scan.reverse ? nested->scan.steps - 1 - k : k,
                            shard));
    return CORNU_OK;
}
