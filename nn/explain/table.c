/* Everything, with a row for each step of the plan. */
#include <inttypes.h>
#include <string.h>

#include "explain_internal.h"

/* The memory of each use, now or at its own peak. */
static void print_memory(const CornuMemory *memory, bool peak, FILE *to)
{
    fprintf(to, "%s %.1f MB", peak ? "             at most" : "memory of a shard: now",
            1e-6 * (double)(peak ? memory->total.peak : memory->total.now));
    if (memory->capacity) fprintf(to, " of %.0f", 1e-6 * (double)memory->capacity);
    for (int use = 0; use < CORNU_USE_COUNT; use++) {
        const CornuBytes bytes = memory->uses[use];
        fprintf(to, "%s%s %.1f", use ? ", " : " (", cornu_use_name((CornuUse)use),
                1e-6 * (double)(peak ? bytes.peak : bytes.now));
    }
    fputs(")\n", to);
}

static void print_measured(const CornuExplanation *e, FILE *to)
{
    if (!e->runs) return;
    fprintf(to, "measured here: %.3f ms per step (the median of %d), %.1f GFLOP/s, %.0f "
            "samples/s", 1e3 * e->wall_s, e->runs, 1e-9 * (double)e->statistics.flops / e->wall_s,
            (double)e->batch / e->wall_s);
    if (e->targets > 1)
        fprintf(to, ", %.0f %ss/s", (double)(e->batch * e->targets) / e->wall_s, e->target);
    fputc('\n', to);
    if (e->clock == CORNU_CLOCK_DEVICE)
        fputs("timed by the device profiler: without the host's calls and copies\n", to);
}

static void print_head(const CornuExplanation *e, FILE *to)
{
    const CornuStatistics *s = &e->statistics;
    char                   exchanged[CORNU_EXPLAIN_TEXT];
    fprintf(to, "%s: %" PRId64 " parameters, a %s of %" PRId64 " sample%s, %s, %s, %d "
            "shard%s, %d thread%s\n", e->model, e->parameters,
            e->trains ? "training step" : e->function ? "run" : "prediction step", e->batch,
            e->batch == 1 ? "" : "s", e->tpu ? "emulated" : "native", e->policy, e->shards,
            e->shards == 1 ? "" : "s", e->threads, e->threads == 1 ? "" : "s");
    fprintf(to, "compiled: %" PRId64 " ops to %" PRId64 " steps, %.2f GFLOP, %.1f MB moved, "
            "%" PRId64 " copies\n", s->ops, s->kernels, 1e-9 * (double)s->flops,
            1e-6 * (double)s->bytes_moved, s->copies);
    if (s->fallbacks)
        fprintf(to, "%" PRId64 " op%s fell back to the reference kernels\n", s->fallbacks,
                s->fallbacks == 1 ? "" : "s");
    for (int i = 0; i < e->note_count; i++) cornu__explain_wrap("", e->notes[i], 118, to);
    cornu__explain_exchanges_line(&e->exchanges, exchanged);
    if (*exchanged) cornu__explain_wrap("", exchanged, 118, to);
    print_memory(&e->memory, false, to);
    print_memory(&e->memory, true, to);
    print_measured(e, to);
    if (!e->tpu) return;
    const CornuTpuModel *tpu = e->tpu;
    fprintf(to, "modelled on %s: %.3f ms per step = max(device %.3f, infeed %.3f) + dispatch %.3f "
            "(%c), bound by %s\n", tpu->slice.name, 1e3 * tpu->step_s, 1e3 * tpu->device_s,
            1e3 * tpu->infeed_s, 1e3 * tpu->dispatch_s, tpu->profile->dispatch_ms.mark,
            cornu_tpu_bound_name(tpu->bound));
}

enum { CORNU_EXPLAIN_DECLINED = CORNU_MOST_DECLINED * (CORNU_DECLINED_TEXT + 48) };

/* What a row shows, cut to its columns. */
typedef struct {
    char layer[CORNU_EXPLAIN_LONGEST], step[CORNU_EXPLAIN_LONGEST], cut[CORNU_EXPLAIN_LONGEST];
    char kernel[CORNU_EXPLAIN_LONGEST];
    char shape[96];
} Names;

/* '*': by each shard; '=': between them. */
static char where(const CornuExecutableStep *step)
{
    return !strcmp(step->kind, "collective") ? '=' : step->per_shard ? '*' : ' ';
}

static void print_emulated_row(const CornuExplanation *e, int i, FILE *to)
{
    const CornuExecutableStep *step = &e->steps[i];
    const CornuTpuOp          *op = &e->tpu->ops[i];
    Names                      names;
    fprintf(to, "%3d %c %-17s %-23s %-16s", i, where(step),
            cornu__explain_fit_layer(names.layer, step->scope, 17),
            cornu__explain_fit(names.step, step->name, 23, 0),
            cornu__explain_fit(names.cut, cornu__explain_shape(names.shape, step, op), 16, 0));
    if (op->product.count)
        fprintf(to, " %6" PRId64 " %3.0f %3.0f %3.0f", op->cycles.folds, 100.0 * op->use_padding,
                100.0 * op->use_overlapped, 100.0 * op->use_no_overlap);
    else fprintf(to, " %6s %3s %3s %3s", "", "", "", "");
    fprintf(to, " %7.0f %7.2f %-6s %7.3f %4.1f\n", 1e-3 * (double)op->hbm_bytes,
            1e6 * op->seconds, cornu_tpu_bound_name(op->bound), 1e3 * e->here_s[i],
            cornu__explain_percent(e->here_s[i], cornu__explain_sum_here(e)));
}

/* The kernels that ran here, which its table has no room for: "3 conv2d_winograd, 5 matmul". */
static void print_kernels(const CornuExplanation *e, FILE *to)
{
    char   line[CORNU_EXPLAIN_TEXT];
    size_t used = (size_t)snprintf(line, sizeof line, "kernels here:");
    for (int i = 0; i < e->step_count; i++) {
        if (!*e->steps[i].kernel) continue;
        char         item[CORNU_EXPLAIN_LONGEST];
        const size_t size = (size_t)snprintf(item, sizeof item, " %d %.40s,", i,
                                             e->steps[i].kernel);
        if (used + size > 118) {
            fprintf(to, "%s\n", line);
            used = (size_t)snprintf(line, sizeof line, " ");
        }
        memcpy(line + used, item, size + 1);
        used += size;
    }
    if (line[used - 1] != ',') return;
    line[used - 1] = '\0';
    fprintf(to, "%s\n", line);
}

/* "conv2d_direct, as conv2d_winograd needs at least 12 channels, has 1"; false if no kernel was
 * asked before the step's. */
static bool say_declined(const CornuExplanation *e, int i, char text[CORNU_EXPLAIN_DECLINED])
{
    CornuDeclined declined[CORNU_MOST_DECLINED];
    const char   *kernel = e->steps[i].kernel;
    const int     count = cornu_executable_declined(e->executable, i, declined);
    size_t        used = (size_t)snprintf(text, CORNU_EXPLAIN_DECLINED, "%.40s",
                                          *kernel ? kernel : "the reference kernel");
    for (int k = 0; k < count; k++)
        used += (size_t)snprintf(text + used, CORNU_EXPLAIN_DECLINED - used, "%s %.40s %s",
                                 k ? ";" : ", as", declined[k].kernel, declined[k].why);
    return count > 0;
}

/* Which kernels were asked before those that run, and why they declined; of steps with the same
 * answers once, by the numbers of all. */
static void print_declined(const CornuExplanation *e, FILE *to)
{
    char said[CORNU_EXPLAIN_DECLINED], other[CORNU_EXPLAIN_DECLINED];
    bool first = true;
    for (int i = 0, k; i < e->step_count; i++) {
        char   line[2 * CORNU_EXPLAIN_DECLINED];
        size_t used = 0;
        if (!say_declined(e, i, said)) continue;
        for (k = 0; k < i && (!say_declined(e, k, other) || strcmp(said, other)); k++);
        if (k < i) continue;
        for (; k < e->step_count && used < sizeof line / 2 - 16; k++)
            if (k == i || (say_declined(e, k, other) && !strcmp(said, other)))
                used += (size_t)snprintf(line + used, sizeof line - used, "%s%d", used ? ", " : "",
                                         k);
        snprintf(line + used, sizeof line - used, "%s by %s", k < e->step_count ? ", …" : "", said);
        if (first) fprintf(to, "\nsteps for which other kernels were asked first\n");
        first = false;
        cornu__explain_wrap("-", line, 118, to);
    }
}

/* The rest of the run: threads that wait for others, and the time between steps. */
static void print_waiting(const CornuExplanation *e, int left, int width, FILE *to)
{
    const double rest = e->wall_s - cornu__explain_sum_here(e);
    if (rest > 0.0) fprintf(to, "%-*s%*.3f\n", left, "      waiting", width, 1e3 * rest);
}

/* Prints which layer's product needs most VMEM, and how much. */
static void print_vmem(const CornuExplanation *e, FILE *to)
{
    const CornuTpuModel *tpu = e->tpu;
    const int            most = cornu__explain_vmem(e);
    char                 layer[CORNU_EXPLAIN_LONGEST], name[CORNU_EXPLAIN_LONGEST], shape[96];
    if (most < 0) return;
    const CornuTpuTiling tiling = tpu->ops[most].tiling;
    fprintf(to, "VMEM: at most %.1f of %.0f MiB (%c) at once, in %s, %s %s: %" PRId64 " block%s of "
            "%" PRId64 " rows\n", (double)tiling.bytes / 0x1p20, tpu->profile->vmem_mib.value,
            tpu->profile->vmem_mib.mark,
            cornu__explain_fit_layer(layer, e->steps[most].scope, 17),
            cornu__explain_fit(name, e->steps[most].name, 27, 0),
            cornu__explain_shape(shape, &e->steps[most], &tpu->ops[most]), tiling.blocks,
            tiling.blocks == 1 ? "" : "s", tiling.rows);
}

static void print_emulated(const CornuExplanation *e, FILE *to)
{
    const CornuTpuModel *tpu = e->tpu;
    char                 title[64];
    snprintf(title, sizeof title, "modelled: %s, one replica", tpu->slice.name);
    fprintf(to, "\n%-66s%-40s %s\n", "", title, "measured here");
    fprintf(to, "%-66s%16s\n", "", "MXU use, percent");
    fprintf(to, "%3s %c %-17s %-23s %-16s %6s %3s %3s %3s %7s %7s %-6s %7s %4s\n", "", ' ', "layer",
            "step", "MxKxN or shape", "tile", "pad", "use", "low", "HBM kB", "us", "bound", "ms",
            "%");
    for (int i = 0; i < e->step_count; i++) print_emulated_row(e, i, to);
    fprintf(to, "%-64s%6" PRId64 " %3.0f %3.0f %3s %7.0f %7.2f %-6s %7.3f\n", "      all",
            tpu->folds, cornu__explain_percent((double)tpu->useful_macs, (double)tpu->padded_macs),
            100.0 * tpu->use_overlapped, "", 1e-3 * (double)tpu->hbm_bytes, 1e6 * tpu->device_s,
            cornu_tpu_bound_name(tpu->device_bound), 1e3 * cornu__explain_sum_here(e));
    print_waiting(e, 106, 7, to);
    fprintf(to, "* by each of %d shards   = between them   others once for all\n"
            "tile: tiles of weights. Of the MXU's multiply-accumulates those that are useful: pad, "
            "if only padding were lost; use, as\nmodelled; low, if each tile loaded by itself.\n",
            e->shards);
    print_kernels(e, to);
    print_vmem(e, to);
}

static void print_native(const CornuExplanation *e, FILE *to)
{
    fprintf(to, "\n%-86s%s\n", "", "measured here");
    fprintf(to, "%3s %c %-18s %-24s %-15s %-14s %7s %8s %7s %7s %5s\n", "", ' ', "layer", "step",
            "kernel", "shape", "MB", "ms", "GFLOP/s", "GB/s", "%");
    for (int i = 0; i < e->step_count; i++) {
        const CornuExecutableStep *step = &e->steps[i];
        const double               here = e->here_s[i];
        const int64_t              bytes = step->bytes_read + step->bytes_written;
        const double               times = step->per_shard ? e->shards : 1;
        Names                      names;
        fprintf(to, "%3d %c %-18s %-24s %-15s %-14s %7.2f %8.3f %7.1f %7.1f %5.1f\n", i,
                where(step), cornu__explain_fit_layer(names.layer, step->scope, 18),
                cornu__explain_fit(names.step, step->name, 24, 0),
                cornu__explain_fit(names.kernel, step->kernel, 15, 0),
                cornu__explain_fit(names.cut, cornu__explain_shape(names.shape, step, NULL), 14, 0),
                1e-6 * (double)bytes, 1e3 * here,
                here > 0.0 ? 1e-9 * times * (double)step->flops / here : 0.0,
                here > 0.0 ? 1e-9 * times * (double)bytes / here : 0.0,
                cornu__explain_percent(here, cornu__explain_sum_here(e)));
    }
    fprintf(to, "%-81s%7.2f %8.3f\n", "      all", 1e-6 * (double)e->statistics.bytes_moved,
            1e3 * cornu__explain_sum_here(e));
    print_waiting(e, 89, 8, to);
}

/* One row of the tables of shards and profiles. */
static void print_step(const CornuExplanation *e, const CornuTpuModel *tpu, FILE *to)
{
    const int64_t steps = (e->epoch_samples + e->batch - 1) / e->batch;
    fprintf(to, "%-6s %6" PRId64 " %10.1f %8.1f %10.1f %10.1f %11.2f %10.3f", tpu->slice.name,
            tpu->shards, 1e6 * tpu->device_s, 100.0 * tpu->use_overlapped, 1e6 * tpu->links_s,
            1e6 * tpu->infeed_s, 1e3 * tpu->dispatch_s, 1e3 * tpu->step_s);
    if (e->epoch_samples) fprintf(to, " %9.2f", (double)steps * tpu->step_s);
    fprintf(to, "  %s\n", cornu_tpu_bound_name(tpu->device_bound));
}

static void print_steps(const CornuExplanation *e, FILE *to)
{
    fprintf(to, "\nThe same batch of %" PRId64 ", modelled", e->batch);
    if (e->epoch_samples)
        fprintf(to, " (an epoch is %" PRId64 " samples in %" PRId64 " steps)", e->epoch_samples,
                (e->epoch_samples + e->batch - 1) / e->batch);
    fprintf(to, "\n%-6s %6s %10s %8s %10s %10s %11s %10s%s  %s\n", "", "shards", "device us",
            "MXU use", "links us", "infeed us", "dispatch ms", "step ms",
            e->epoch_samples ? "   epoch s" : "", "device's bound");
    for (int i = 0; i < CORNU_EXPLAIN_SHARDS; i++)
        if (e->by_shards[i]) print_step(e, e->by_shards[i], to);
    fputc('\n', to);
    for (int i = 0; i < CORNU_EXPLAIN_PROFILES; i++)
        if (e->by_profile[i]) print_step(e, e->by_profile[i], to);
}

void cornu__explain_print_all(const CornuExplanation *e, FILE *to)
{
    CornuAdvice advice[CORNU_EXPLAIN_ADVICE];
    const int count = cornu__explain_advise(e, advice);
    print_head(e, to);
    if (e->tpu) {
        print_emulated(e, to);
        if (e->config.others) print_steps(e, to);
    } else {
        print_native(e, to);
    }
    print_declined(e, to);
    cornu__explain_exchanges_print(&e->exchanges, to);
    if (count > 0) fputc('\n', to);
    for (int i = 0; i < count; i++) cornu__explain_wrap("-", advice[i].text, 118, to);
}
