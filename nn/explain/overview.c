/* The answers on about a screen: what the step does, how the device computes it, its memory, where
 * its time goes, and what to change. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "explain_internal.h"

enum { PARTS_SHOWN = 5, ADVICE_SHOWN = 3, REASONS_SHOWN = 4 };

static void say(FILE *to, const char *text)
{
    cornu__explain_wrap("", text, CORNU_EXPLAIN_WIDTH, to);
}

/* ---- What it is ---- */

static void print_head(const CornuExplanation *e, FILE *to)
{
    const CornuStatistics *s = &e->statistics;
    char                   text[CORNU_EXPLAIN_TEXT], does[160];
    if (e->trains)
        snprintf(does, sizeof does, "a training step takes %" PRId64 " sample%s forward and back "
                 "and updates %" PRId64 " parameters once", e->batch, e->batch == 1 ? "" : "s",
                 e->trainable);
    else if (e->function)
        snprintf(does, sizeof does, "a run of the function, which has %" PRId64 " parameters",
                 e->parameters);
    else
        snprintf(does, sizeof does, "a prediction step takes %" PRId64 " sample%s forward through "
                 "%" PRId64 " parameters", e->batch, e->batch == 1 ? "" : "s", e->parameters);
    snprintf(text, sizeof text, "%s: %s: %" PRId64 " ops, compiled to %" PRId64 " step%s, in %s.",
             e->model, does, s->ops, s->kernels, s->kernels == 1 ? "" : "s", e->policy);
    say(to, text);
    for (int i = 0; i < e->note_count; i++) say(to, e->notes[i]);
    cornu__explain_exchanges_line(&e->exchanges, text);
    if (*text) say(to, text);
}

/* ---- Where the time goes ---- */

/* What steps belong to: a layer, the loss, a metric, the optimizer. */
typedef struct {
    char   name[CORNU_EXPLAIN_LONGEST];
    double forward_s, backward_s;   /* measured */
    double tpu_s;                   /* modelled */
} Part;

static double part_s(const Part *part) { return part->forward_s + part->backward_s; }

static int by_time(const void *a, const void *b)
{
    const Part  *x = a, *y = b;
    const double s = part_s(x), t = part_s(y);
    return s != t ? (s < t) - (s > t) : (x->tpu_s < y->tpu_s) - (x->tpu_s > y->tpu_s);
}

/* Sums the steps of each part, the longest first; `parts` has room for one for each step. */
static int collect_parts(const CornuExplanation *e, Part *parts)
{
    int count = 0, k;
    for (int i = 0; i < e->step_count; i++) {
        char       name[CORNU_EXPLAIN_LONGEST];
        const bool backward = cornu__explain_layer_of(e->steps[i].scope, name, sizeof name);
        for (k = 0; k < count && strcmp(parts[k].name, name) != 0;) k++;
        if (k == count) {
            parts[count] = (Part){ .forward_s = 0.0 };
            memcpy(parts[count++].name, name, sizeof name);
        }
        *(backward ? &parts[k].backward_s : &parts[k].forward_s) += e->here_s[i];
        parts[k].tpu_s += e->tpu ? e->tpu->ops[i].seconds : 0.0;
    }
    qsort(parts, (size_t)count, sizeof *parts, by_time);
    return count;
}

static void print_part(const CornuExplanation *e, const Part *part, FILE *to)
{
    char name[CORNU_EXPLAIN_LONGEST];
    fprintf(to, "  %-30s", cornu__explain_fit(name, part->name, 30, 14));
    if (e->runs)
        fprintf(to, " %10.2f %11.2f %9.1f", 1e3 * part->forward_s, 1e3 * part->backward_s,
                cornu__explain_percent(part_s(part), e->wall_s));
    if (e->tpu) fprintf(to, " %13.2f", 1e6 * part->tpu_s);
    fputc('\n', to);
}

static void print_parts(const CornuExplanation *e, FILE *to)
{
    Part         others = { .forward_s = 0.0 };
    Part        *parts = cornu__allocate((size_t)e->step_count + 1, sizeof *parts);
    const int    count = parts ? collect_parts(e, parts) : 0;
    const int    shown = count > PARTS_SHOWN + 1 ? PARTS_SHOWN : count;
    const double waiting = e->wall_s - cornu__explain_sum_here(e);
    fprintf(to, "  %-30s", "part");
    if (e->runs) fprintf(to, " %10s %11s %9s", "forward ms", "backward ms", "percent");
    if (e->tpu) fprintf(to, " %13s", "modelled us");
    fputc('\n', to);
    for (int i = 0; i < shown; i++) print_part(e, &parts[i], to);
    for (int i = shown; i < count; i++) {
        others.forward_s += parts[i].forward_s;
        others.backward_s += parts[i].backward_s;
        others.tpu_s += parts[i].tpu_s;
    }
    snprintf(others.name, sizeof others.name, "%d others", count - shown);
    if (shown < count) print_part(e, &others, to);
    cornu__release(parts);
    if (waiting > 0.0)
        fprintf(to, "  %-30s %22.2f %9.1f\n", "between steps, and waiting", 1e3 * waiting,
                cornu__explain_percent(waiting, e->wall_s));
}

static void print_measured(const CornuExplanation *e, FILE *to)
{
    char text[CORNU_EXPLAIN_TEXT];
    int  used;
    if (!e->runs) {
        say(to, "Nothing ran: times are modelled.");
        return;
    }
    used = snprintf(text, sizeof text, "Measured here: %.*f ms (the median of %d%s)",
                    e->wall_s < 0.01 ? 3 : 1, 1e3 * e->wall_s, e->runs,
                    e->clock == CORNU_CLOCK_DEVICE ? ", by the device profiler" : "");
    if (!e->function)
        used += snprintf(text + used, sizeof text - (size_t)used, ", %.0f samples/s",
                         (double)e->batch / e->wall_s);
    used += snprintf(text + used, sizeof text - (size_t)used, ", %.1f GFLOP/s",
                     1e-9 * (double)e->statistics.flops / e->wall_s);
    if (e->targets > 1)
        used += snprintf(text + used, sizeof text - (size_t)used, ", %.0f %ss/s",
                         (double)(e->batch * e->targets) / e->wall_s, e->target);
    snprintf(text + used, sizeof text - (size_t)used, ".");
    say(to, text);
}

/* Steps with many operations per byte are bound by arithmetic, others by memory. */
static void print_bound(const CornuExplanation *e, FILE *to)
{
    enum { MUCH = 10 };   /* operations: about as many as a core does while memory moves a byte */
    double arithmetic = 0.0, memory = 0.0;
    char   text[CORNU_EXPLAIN_TEXT];
    for (int i = 0; i < e->step_count; i++) {
        const CornuExecutableStep *step = &e->steps[i];
        const int64_t              bytes = step->bytes_read + step->bytes_written;
        *(step->flops >= MUCH * bytes && step->flops ? &arithmetic : &memory) += e->here_s[i];
    }
    snprintf(text, sizeof text, "%s-bound here: %.0f percent of the time is in steps that do %d "
             "operations or more for each byte they move, %.0f percent in others.",
             arithmetic >= memory ? "Compute" : "Memory",
             cornu__explain_percent(arithmetic, e->wall_s), MUCH,
             cornu__explain_percent(memory, e->wall_s));
    if (e->runs) say(to, text);
}

static void print_modelled(const CornuExplanation *e, FILE *to)
{
    const CornuTpuModel *tpu = e->tpu;
    char                 text[CORNU_EXPLAIN_TEXT];
    if (!tpu) return;
    snprintf(text, sizeof text, "Modelled on a TPU %s: %.2f ms, bound by %s. Dispatch %.2f ms, "
             "device %.2f ms (bound by %s), infeed in parallel %.2f ms.",
             tpu->slice.name, 1e3 * tpu->step_s, cornu_tpu_bound_name(tpu->bound),
             1e3 * tpu->dispatch_s, 1e3 * tpu->device_s, cornu_tpu_bound_name(tpu->device_bound),
             1e3 * tpu->infeed_s);
    say(to, text);
    if (!tpu->folds) {
        say(to, "MXU: no product goes to it.");
        return;
    }
    snprintf(text, sizeof text, "MXU: %" PRId64 " tiles of %.0f x %.0f weights. Of what it "
             "multiplies in them %.1f percent is useful and %.1f padding; of what it could in that "
             "time %.1f percent is useful.", tpu->folds, tpu->profile->mxu_rows.value,
             tpu->profile->mxu_columns.value,
             cornu__explain_percent((double)tpu->useful_macs, (double)tpu->padded_macs),
             100.0 - cornu__explain_percent((double)tpu->useful_macs, (double)tpu->padded_macs),
             100.0 * tpu->use_overlapped);
    say(to, text);
}

/* ---- How it is computed ---- */

typedef struct {
    const char *op, *why, *kind;
    int         count;
} Reason;

/* Ops that are not native, each kind of op and reason once, the most frequent first. */
static int collect_reasons(const CornuExplanation *e, Reason *reasons, int most)
{
    int count = 0, k;
    for (int i = 0; i < e->placed_count; i++) {
        const CornuPlacement *placement = &e->placed[i].placement;
        const char           *op = cornu_program_op_name(e->placed[i].op);
        if (placement->kind == CORNU_PLACED_NATIVE) continue;
        for (k = 0; k < count; k++)
            if (!strcmp(reasons[k].op, op) && !strcmp(reasons[k].why, placement->why)) break;
        if (k == most) continue;
        if (k == count)
            reasons[count++] = (Reason){ .op = op, .why = placement->why,
                                         .kind = cornu_placement_name(placement->kind) };
        reasons[k].count++;
    }
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && reasons[j].count > reasons[j - 1].count; j--) {
            const Reason swapped = reasons[j];
            reasons[j] = reasons[j - 1];
            reasons[j - 1] = swapped;
        }
    return count;
}

static void print_ops(const CornuExplanation *e, FILE *to)
{
    enum { MOST = 32 };
    Reason    reasons[MOST];
    char      text[2 * CORNU_EXPLAIN_TEXT];
    int       of[CORNU_PLACED_COUNT];
    const int count = collect_reasons(e, reasons, MOST);
    if (!e->placed_count) return;
    cornu__explain_count_placed(e, of);
    int used = snprintf(text, sizeof text, "Ops: %d, of which %d native, %d decomposed, %d by "
                        "reference kernels, %d refused", e->placed_count, of[CORNU_PLACED_NATIVE],
                        of[CORNU_PLACED_DECOMPOSED], of[CORNU_PLACED_REFERENCE],
                        of[CORNU_PLACED_REFUSED]);
    for (int i = 0; i < count && i < REASONS_SHOWN; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s %d %s %s%s%.60s",
                         i ? "," : ":", reasons[i].count, reasons[i].op, reasons[i].kind,
                         *reasons[i].why ? ", " : "", reasons[i].why);
    snprintf(text + used, sizeof text - (size_t)used, "%s.", count > REASONS_SHOWN ? ", .." : "");
    say(to, text);
}

static void print_memory(const CornuExplanation *e, FILE *to)
{
    const CornuMemory *memory = &e->memory;
    char               text[CORNU_EXPLAIN_TEXT], layer[CORNU_EXPLAIN_LONGEST];
    const int          vmem = cornu__explain_vmem(e);
    int                listed = 0;
    const bool         little = memory->total.peak < 50000;   /* 0.0 MB */
    int                used = snprintf(text, sizeof text, "Memory%s: at most %.1f %s",
                                       e->shards > 1 ? " of a shard" : "",
                                       (little ? 1e-3 : 1e-6) * (double)memory->total.peak,
                                       little ? "kB" : "MB");
    if (memory->capacity)
        used += snprintf(text + used, sizeof text - (size_t)used, " of %.0f MB of HBM",
                         1e-6 * (double)memory->capacity);
    for (int use = 0; use < CORNU_USE_COUNT; use++) {
        if (memory->uses[use].peak < 50000) continue;   /* 0.0 MB */
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %.1f",
                         listed++ ? ", " : " (", cornu_use_name((CornuUse)use),
                         1e-6 * (double)memory->uses[use].peak);
    }
    used += snprintf(text + used, sizeof text - (size_t)used, "%s.", listed ? ")" : "");
    if (vmem >= 0)
        snprintf(text + used, sizeof text - (size_t)used, " VMEM: at most %.1f of %.0f MiB (%c) at "
                 "once, in %s.", (double)e->tpu->ops[vmem].tiling.bytes / 0x1p20,
                 e->tpu->profile->vmem_mib.value, e->tpu->profile->vmem_mib.mark,
                 cornu__explain_fit_layer(layer, e->steps[vmem].scope, 30));
    say(to, text);
}

/* ---- What to change ---- */

static void print_advice(const CornuExplanation *e, FILE *to)
{
    CornuAdvice advice[CORNU_EXPLAIN_ADVICE];
    const int   count = cornu__explain_advise(e, advice);
    const int   shown = count < ADVICE_SHOWN ? count : ADVICE_SHOWN;
    if (count) fputs("\nTo fit better:\n", to);
    for (int i = 0; i < shown; i++)
        cornu__explain_wrap("-", advice[i].text, CORNU_EXPLAIN_WIDTH, to);
    fprintf(to, "--all shows every step%s", e->tpu ? ", other TPUs" : "");
    if (shown < count)
        fprintf(to, ", and %d more piece%s of advice", count - shown,
                count - shown == 1 ? "" : "s");
    fputs(".\n", to);
}

void cornu__explain_print_overview(const CornuExplanation *e, FILE *to)
{
    print_head(e, to);
    fputc('\n', to);
    print_measured(e, to);
    if (e->statistics.kernels > 1) {   /* else a compiler of others made one of it, without parts */
        print_parts(e, to);
        fputc('\n', to);
        print_bound(e, to);
    }
    print_modelled(e, to);
    print_ops(e, to);
    print_memory(e, to);
    cornu__explain_print_remat(e, to);
    print_advice(e, to);
}
