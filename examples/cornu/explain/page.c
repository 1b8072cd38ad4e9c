#include "page.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static double percent(double part, double whole)
{
    return whole > 0.0 ? 100.0 * part / whole : 0.0;
}

static int64_t round_up(int64_t a, int64_t unit) { return (a + unit - 1) / unit * unit; }

static int64_t steps_of_epoch(const Explanation *e)
{
    return (e->epoch_samples + e->batch - 1) / e->batch;
}

static bool is_collective(const CornuExecutableStep *step)
{
    return strcmp(step->kind, "collective") == 0;
}

/* "1024x13x13x32", "scalar". */
static const char *extents(char text[96], CornuShape shape)
{
    int used = 0;
    snprintf(text, 96, "scalar");
    for (int i = 0; i < shape.rank; i++)
        used += snprintf(text + used, 96 - (size_t)used, "%s%" PRId64, i ? "x" : "",
                         shape.extent[i]);
    return text;
}

/* MxKxN for a product, else the shape of the first result, or "in place". */
static const char *shape_of(char text[96], const CornuExecutableStep *step, const CornuTpuOp *op)
{
    if (step->out_count == 0) return "in place";
    if (!op || !op->product.count) return extents(text, step->out[0].shape);
    const CornuTpuProduct p = op->product;
    return extents(text, p.count > 1 ? cornu_shape(p.count, p.m, p.k, p.n)
                                     : cornu_shape(p.m, p.k, p.n));
}

enum { LONGEST = 64 };

/* Shortened to `width`, below LONGEST: two dots replace what is left out before the last `tail`
 * characters. */
static const char *fit(char to[LONGEST], const char *text, int width, int tail)
{
    const int length = (int)strlen(text);
    if (length <= width) snprintf(to, LONGEST, "%s", text);
    else snprintf(to, LONGEST, "%.*s..%s", width - 2 - tail, text, text + length - tail);
    return to;
}

/* "dense_1/gradient" as "dense_1/grad". */
static const char *fit_layer(char to[LONGEST], const char *scope, int width)
{
    char        text[LONGEST];
    const char *slash = strchr(scope, '/');
    snprintf(text, sizeof text, "%.*s%s", slash ? (int)(slash - scope) : LONGEST, scope,
             slash ? "/grad" : "");
    return fit(to, text, width, width / 2 - 1);
}

/* ---- Advice ---- */

typedef struct {
    const Explanation *e;
    Advice            *lines;
    int                count;
} Adviser;

static void advise(Adviser *a, const char *format, ...)
{
    va_list arguments;
    if (a->count == EXPLAIN_ADVICE) return;
    va_start(arguments, format);
    vsnprintf(a->lines[a->count].text, sizeof a->lines->text, format, arguments);
    va_end(arguments);
    a->count++;
}

static void advise_batch(Adviser *a)
{
    const CornuTpuModel *one = a->e->tpu, *two = a->e->doubled;
    const double         least = 0.01;
    if (!two || two->use_overlapped < one->use_overlapped + least) return;
    advise(a, "Batch %" PRId64 " to %" PRId64 " lifts MXU use from %.1f to %.1f percent; the "
           "device then takes %.3f instead of %.3f us for a sample, modelled.", a->e->batch,
           2 * a->e->batch, 100.0 * one->use_overlapped, 100.0 * two->use_overlapped,
           1e6 * two->device_s / (2.0 * (double)a->e->batch),
           1e6 * one->device_s / (double)a->e->batch);
}

/* Rows of A move in groups of 8. */
static void advise_rows(Adviser *a)
{
    const int64_t shards = a->e->shards, rows = (a->e->batch + shards - 1) / shards;
    const int64_t full = round_up(rows, 8);
    if (full == rows) return;
    advise(a, "A shard's %" PRId64 " rows are padded to %" PRId64 ": a batch of %" PRId64 " takes "
           "products of a row per sample no longer than %" PRId64 ".", rows, full, shards * full,
           a->e->batch);
}

/* The time that the MXU spends on padding in a step. */
static double wasted_s(const CornuTpuOp *op)
{
    return op->product.count ? op->mxu_s * (1.0 - op->use_padding) : 0.0;
}

/* "N = 10 is padded to 128 columns", for extents that leave more than a tenth empty. */
static void advise_padding_of(Adviser *a, int i)
{
    const CornuTpuOp      *op = &a->e->tpu->ops[i];
    const CornuTpuProfile *profile = a->e->tpu->profile;
    const struct { char name; int64_t extent, unit; const char *what; } sides[] = {
        { 'K', op->product.k, (int64_t)profile->mxu_rows.value, "rows" },
        { 'N', op->product.n, (int64_t)profile->mxu_columns.value, "columns" },
    };
    char shape[96], reason[120] = "";
    int  used = 0;
    for (int s = 0; s < 2; s++) {
        const int64_t full = round_up(sides[s].extent, sides[s].unit);
        if (10 * sides[s].extent < 9 * full)
            used += snprintf(reason + used, sizeof reason - (size_t)used, "%s%c = %" PRId64 " is "
                             "padded to %" PRId64 " %s", used ? ", " : "", sides[s].name,
                             sides[s].extent, full, sides[s].what);
    }
    advise(a, "%s, %s %s: %s: %.0f percent of this product's MACs are padding, %.1f percent of the "
           "MXU's time.", a->e->steps[i].scope, a->e->steps[i].name,
           shape_of(shape, &a->e->steps[i], op), reason, 100.0 * (1.0 - op->use_padding),
           percent(wasted_s(op), a->e->tpu->mxu_s));
}

/* Of the products with more padding than work, the one that wastes most after `last`, or -1. */
static int next_padded(const CornuTpuModel *tpu, int last)
{
    int next = -1;
    for (int i = 0; i < tpu->op_count; i++) {
        const double wasted = wasted_s(&tpu->ops[i]);
        const double before = last < 0 ? INFINITY : wasted_s(&tpu->ops[last]);
        if (tpu->ops[i].product.count == 0 || tpu->ops[i].use_padding >= 0.5) continue;
        if ((wasted < before || (wasted == before && i > last)) &&
            (next < 0 || wasted > wasted_s(&tpu->ops[next])))
            next = i;
    }
    return next;
}

/* One line for each of the most wasteful, and one for the rest. */
static void advise_padding(Adviser *a)
{
    enum { MOST = 3 };
    const CornuTpuModel *tpu = a->e->tpu;
    char                 names[200] = "";
    int                  rest = 0, used = 0, at = next_padded(tpu, -1);
    double               rest_s = 0.0;
    for (int i = 0; at >= 0; i++, at = next_padded(tpu, at)) {
        if (i < MOST) {
            advise_padding_of(a, at);
            continue;
        }
        rest++;
        rest_s += wasted_s(&tpu->ops[at]);
        if (used < 120)
            used += snprintf(names + used, sizeof names - (size_t)used, "%s%.40s %.0f",
                             used ? ", " : "", a->e->steps[at].scope,
                             100.0 * (1.0 - tpu->ops[at].use_padding));
    }
    if (rest > 0)
        advise(a, "%d more products are mostly padding (%s percent%s): %.1f percent of the MXU's "
               "time.", rest, names, used < 120 ? "" : ", ..", percent(rest_s, tpu->mxu_s));
}

static void advise_precision(Adviser *a)
{
    const CornuTpuModel *tpu = a->e->tpu;
    double               saved = 0.0;
    int                  passes = 0;
    for (int i = 0; i < tpu->op_count; i++) {
        if (tpu->ops[i].passes <= 1) continue;
        passes = tpu->ops[i].passes;
        saved += tpu->ops[i].mxu_s * (1.0 - 1.0 / passes);
    }
    if (saved == 0.0) return;
    advise(a, "Products of float32 take the MXU %d passes; --policy mixed_bfloat16 takes one: MXU "
           "time %.1f instead of %.1f us, modelled.", passes,
           1e6 * (tpu->mxu_s - saved), 1e6 * tpu->mxu_s);
}

static void advise_links(Adviser *a)
{
    const CornuTpuModel *tpu = a->e->tpu;
    const double         much = 0.2;
    if (tpu->links_s <= much * tpu->device_s) return;
    advise(a, "The shards' exchange takes %.0f percent of the modelled device time: a larger batch "
           "or fewer shards put more work beside each.", percent(tpu->links_s, tpu->device_s));
}

static void advise_host(Adviser *a)
{
    const CornuTpuModel *tpu = a->e->tpu;
    const double beside = tpu->infeed_s > tpu->device_s ? tpu->infeed_s : tpu->device_s;
    if (tpu->dispatch_s > beside && beside > 0.0) {
        const double loop = pow(10.0, ceil(log10(tpu->dispatch_s / beside)));
        advise(a, "Dispatch is the bound: iterations_per_loop 1 to %.0f takes the modelled step "
               "from %.2f to %.2f ms. (Its constant is %s.)", loop, 1e3 * tpu->step_s,
               1e3 * (beside + tpu->dispatch_s / loop),
               tpu->profile->dispatch_ms.mark == 'F' ? "fitted to one published run"
                                                     : "assumed for this profile");
    }
    if (tpu->infeed_s > tpu->device_s)
        advise(a, "Infeed is slower than the device, %.3f against %.3f ms: %.0f bytes go in for "
               "each sample; bytes rather than floats, or fewer, would help.",
               1e3 * tpu->infeed_s, 1e3 * tpu->device_s,
               (double)tpu->infeed_bytes / (double)a->e->batch);
}

/* The reference device has only reference kernels. */
static void advise_fallbacks(Adviser *a)
{
    const CornuStatistics *s = &a->e->statistics;
    char                   names[200] = "";
    int                    used = 0;
    if (s->fallbacks == 0 || s->fallbacks == a->e->step_count) return;
    for (int id = 0; id < CORNU_OP_COUNT && used < (int)sizeof names; id++)
        if (s->fell_back[id])
            used += snprintf(names + used, sizeof names - (size_t)used, "%s%s", used ? ", " : "",
                             s->fell_back[id]);
    advise(a, "%" PRId64 " ops fell back to the reference kernels, which are slow: %s.",
           s->fallbacks, names);
}

int explain_advise(const Explanation *e, Advice advice[EXPLAIN_ADVICE])
{
    Adviser a = { .e = e, .lines = advice };
    advise_fallbacks(&a);
    if (e->tpu) {
        advise_batch(&a);
        advise_rows(&a);
        advise_padding(&a);
        advise_precision(&a);
        advise_links(&a);
        advise_host(&a);
    }
    return a.count;
}

/* ---- The page ---- */

/* Prints words on lines of at most `width`, the first after `mark`, which is "-" or "", and returns
 * how many lines. With `to` NULL they are only counted. */
static int wrap(const char *mark, const char *text, int width, FILE *to)
{
    int column = (int)strlen(mark), lines = 1;
    if (to) fputs(mark, to);
    while (*text) {
        const int length = (int)strcspn(text, " ");
        if (column + 1 + length > width) {
            column = (int)strlen(mark);
            lines++;
            if (to) fprintf(to, "\n%*s", column, "");
        }
        const char *blank = column ? " " : "";
        column += length + *blank / ' ';
        if (to) fprintf(to, "%s%.*s", blank, length, text);
        text += length + (text[length] == ' ');
    }
    if (to) fputc('\n', to);
    return lines;
}

static double sum_here(const Explanation *e)
{
    double sum = 0.0;
    for (int i = 0; i < e->step_count; i++) sum += e->here_s[i];
    return sum;
}

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

static void print_head(const Explanation *e, FILE *to)
{
    const CornuStatistics *s = &e->statistics;
    char                   exchanged[400];
    fprintf(to, "%s: %" PRId64 " parameters, a training step of %" PRId64 " samples, %s, %s, %d "
            "shard%s, %d thread%s\n", e->model, e->parameters, e->batch,
            e->tpu ? "emulated" : "native", e->policy, e->shards, e->shards == 1 ? "" : "s",
            e->threads, e->threads == 1 ? "" : "s");
    fprintf(to, "compiled: %" PRId64 " ops to %" PRId64 " steps, %.2f GFLOP, %.1f MB moved, "
            "%" PRId64 " copies\n", s->ops, s->kernels, 1e-9 * (double)s->flops,
            1e-6 * (double)s->bytes_moved, s->copies);
    if (s->fallbacks)
        fprintf(to, "%" PRId64 " op%s fell back to the reference kernels\n", s->fallbacks,
                s->fallbacks == 1 ? "" : "s");
    explain_exchanges_line(&e->exchanges, exchanged);
    if (*exchanged) wrap("", exchanged, 118, to);
    print_memory(&e->memory, false, to);
    print_memory(&e->memory, true, to);
    fprintf(to, "measured here: %.3f ms per step (the median of %d), %.1f GFLOP/s, %.0f "
            "samples/s", 1e3 * e->wall_s, e->runs, 1e-9 * (double)s->flops / e->wall_s,
            (double)e->batch / e->wall_s);
    if (e->targets > 1)
        fprintf(to, ", %.0f %ss/s", (double)(e->batch * e->targets) / e->wall_s, e->target);
    fputc('\n', to);
    if (e->clock == CORNU_CLOCK_DEVICE)
        fputs("timed by the device profiler: without the host's calls and copies\n", to);
    if (!e->tpu) return;
    const CornuTpuModel *tpu = e->tpu;
    fprintf(to, "modelled on %s: %.3f ms per step = max(device %.3f, infeed %.3f) + dispatch %.3f "
            "(%c), bound by %s\n", tpu->slice.name, 1e3 * tpu->step_s, 1e3 * tpu->device_s,
            1e3 * tpu->infeed_s, 1e3 * tpu->dispatch_s, tpu->profile->dispatch_ms.mark,
            cornu_tpu_bound_name(tpu->bound));
}

/* '*': by each shard; '=': between them. */
static char where(const CornuExecutableStep *step)
{
    return is_collective(step) ? '=' : step->per_shard ? '*' : ' ';
}

static void print_emulated_row(const Explanation *e, int i, FILE *to)
{
    const CornuExecutableStep *step = &e->steps[i];
    const CornuTpuOp          *op = &e->tpu->ops[i];
    char                       layer[LONGEST], name[LONGEST], shape[96], cut[LONGEST];
    fprintf(to, "%3d %c %-17s %-23s %-16s", i, where(step), fit_layer(layer, step->scope, 17),
            fit(name, step->name, 23, 0), fit(cut, shape_of(shape, step, op), 16, 0));
    if (op->product.count)
        fprintf(to, " %6" PRId64 " %3.0f %3.0f %3.0f", op->cycles.folds, 100.0 * op->use_padding,
                100.0 * op->use_overlapped, 100.0 * op->use_no_overlap);
    else fprintf(to, " %6s %3s %3s %3s", "", "", "", "");
    fprintf(to, " %7.0f %7.2f %-6s %7.3f %4.1f\n", 1e-3 * (double)op->hbm_bytes,
            1e6 * op->seconds, cornu_tpu_bound_name(op->bound), 1e3 * e->here_s[i],
            percent(e->here_s[i], sum_here(e)));
}

/* The rest of the run: threads that wait for others, and the time between steps. */
static void print_waiting(const Explanation *e, int left, int width, FILE *to)
{
    const double rest = e->wall_s - sum_here(e);
    if (rest > 0.0) fprintf(to, "%-*s%*.3f\n", left, "      waiting", width, 1e3 * rest);
}

/* The product that needs most VMEM. */
static void print_vmem(const Explanation *e, FILE *to)
{
    const CornuTpuModel *tpu = e->tpu;
    int                  most = 0;
    for (int i = 1; i < tpu->op_count; i++)
        if (tpu->ops[i].tiling.bytes > tpu->ops[most].tiling.bytes) most = i;
    const CornuTpuTiling tiling = tpu->ops[most].tiling;
    char                 layer[LONGEST], name[LONGEST], shape[96];
    if (tiling.bytes == 0) return;
    fprintf(to, "VMEM: at most %.1f of %.0f MiB (%c) at once, in %s, %s %s: %" PRId64 " block%s of "
            "%" PRId64 " rows\n", (double)tiling.bytes / 0x1p20, tpu->profile->vmem_mib.value,
            tpu->profile->vmem_mib.mark, fit_layer(layer, e->steps[most].scope, 17),
            fit(name, e->steps[most].name, 27, 0),
            shape_of(shape, &e->steps[most], &tpu->ops[most]), tiling.blocks,
            tiling.blocks == 1 ? "" : "s", tiling.rows);
}

static void print_emulated(const Explanation *e, FILE *to)
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
            tpu->folds, percent((double)tpu->useful_macs, (double)tpu->padded_macs),
            100.0 * tpu->use_overlapped, "", 1e-3 * (double)tpu->hbm_bytes, 1e6 * tpu->device_s,
            cornu_tpu_bound_name(tpu->device_bound), 1e3 * sum_here(e));
    print_waiting(e, 106, 7, to);
    fprintf(to, "* by each of %d shards   = between them   others once for all\n"
            "tile: tiles of weights. Of the MXU's multiply-accumulates those that are useful: pad, "
            "if only padding were lost; use, as\nmodelled; low, if each tile loaded by itself.\n",
            e->shards);
    print_vmem(e, to);
}

static void print_native(const Explanation *e, FILE *to)
{
    fprintf(to, "\n%-83s%s\n", "", "measured here");
    fprintf(to, "%3s %c %-27s %-28s %-14s %7s %8s %8s %8s %6s\n", "", ' ', "layer", "step",
            "shape", "MB", "ms", "GFLOP/s", "GB/s", "%");
    for (int i = 0; i < e->step_count; i++) {
        const CornuExecutableStep *step = &e->steps[i];
        const double               here = e->here_s[i];
        const int64_t              bytes = step->bytes_read + step->bytes_written;
        const double               times = step->per_shard ? e->shards : 1;
        char                       layer[LONGEST], name[LONGEST], shape[96], cut[LONGEST];
        fprintf(to, "%3d %c %-27s %-28s %-14s %7.2f %8.3f %8.1f %8.1f %6.1f\n", i, where(step),
                fit_layer(layer, step->scope, 27), fit(name, step->name, 28, 0),
                fit(cut, shape_of(shape, step, NULL), 14, 0), 1e-6 * (double)bytes, 1e3 * here,
                here > 0.0 ? 1e-9 * times * (double)step->flops / here : 0.0,
                here > 0.0 ? 1e-9 * times * (double)bytes / here : 0.0, percent(here, sum_here(e)));
    }
    fprintf(to, "%-78s%7.2f %8.3f\n", "      all", 1e-6 * (double)e->statistics.bytes_moved,
            1e3 * sum_here(e));
    print_waiting(e, 86, 8, to);
}

/* One row of the tables of shards and profiles. */
static void print_step(const Explanation *e, const CornuTpuModel *tpu, FILE *to)
{
    fprintf(to, "%-6s %6" PRId64 " %10.1f %8.1f %10.1f %10.1f %11.2f %10.3f %9.2f  %s\n",
            tpu->slice.name, tpu->shards, 1e6 * tpu->device_s, 100.0 * tpu->use_overlapped,
            1e6 * tpu->links_s, 1e6 * tpu->infeed_s, 1e3 * tpu->dispatch_s, 1e3 * tpu->step_s,
            (double)steps_of_epoch(e) * tpu->step_s, cornu_tpu_bound_name(tpu->device_bound));
}

static void print_steps(const Explanation *e, FILE *to)
{
    fprintf(to, "\nThe same batch of %" PRId64 ", modelled (an epoch is %" PRId64 " samples in %"
            PRId64 " steps)\n", e->batch, e->epoch_samples, steps_of_epoch(e));
    fprintf(to, "%-6s %6s %10s %8s %10s %10s %11s %10s %9s  %s\n", "", "shards", "device us",
            "MXU use", "links us", "infeed us", "dispatch ms", "step ms", "epoch s",
            "device's bound");
    for (int i = 0; i < EXPLAIN_SHARDS; i++)
        if (e->by_shards[i]) print_step(e, e->by_shards[i], to);
    fputc('\n', to);
    for (int i = 0; i < EXPLAIN_PROFILES; i++)
        if (e->by_profile[i]) print_step(e, e->by_profile[i], to);
}

/* ---- The overview ---- */

enum { PARTS = 64, PARTS_SHOWN = 5 };

/* What steps belong to: a layer, the loss, a metric, the optimizer. */
typedef struct {
    char   name[LONGEST];
    double forward_s, backward_s;
} Part;

static double part_s(const Part *part) { return part->forward_s + part->backward_s; }

static int by_time(const void *a, const void *b)
{
    const double x = part_s(a), y = part_s(b);
    return (x < y) - (x > y);
}

/* Sums the steps of each part, the longest first; the last part collects those that do not
 * fit. */
static int collect_parts(const Explanation *e, Part parts[PARTS])
{
    int count = 0, k;
    for (int i = 0; i < e->step_count; i++) {
        const char *scope = e->steps[i].scope, *slash = strchr(scope, '/');
        const int   length = slash ? (int)(slash - scope) : (int)strlen(scope);
        char        name[LONGEST];
        snprintf(name, sizeof name, "%.*s", length, scope);
        for (k = 0; k < count && strcmp(parts[k].name, name) != 0;) k++;
        if (k == PARTS) k = PARTS - 1;
        if (k == count) {
            parts[count] = (Part){ .forward_s = 0.0 };
            memcpy(parts[count++].name, name, sizeof name);
        }
        *(slash ? &parts[k].backward_s : &parts[k].forward_s) += e->here_s[i];
    }
    qsort(parts, (size_t)count, sizeof *parts, by_time);
    return count;
}

static int print_part(const Explanation *e, const Part *part, FILE *to)
{
    char name[LONGEST];
    fprintf(to, "  %-30s %10.2f %11.2f %9.1f\n", fit(name, part->name, 30, 14),
            1e3 * part->forward_s, 1e3 * part->backward_s, percent(part_s(part), e->wall_s));
    return 1;
}

static int print_parts(const Explanation *e, FILE *to)
{
    Part      parts[PARTS], others = { .forward_s = 0.0 };
    const int count = collect_parts(e, parts);
    const int shown = count > PARTS_SHOWN + 1 ? PARTS_SHOWN : count;
    const double waiting = e->wall_s - sum_here(e);
    int       lines = 1;
    fprintf(to, "  %-30s %10s %11s %9s\n", "part", "forward ms", "backward ms", "percent");
    for (int i = 0; i < shown; i++) lines += print_part(e, &parts[i], to);
    for (int i = shown; i < count; i++) {
        others.forward_s += parts[i].forward_s;
        others.backward_s += parts[i].backward_s;
    }
    snprintf(others.name, sizeof others.name, "%d others", count - shown);
    if (shown < count) lines += print_part(e, &others, to);
    if (waiting <= 0.0) return lines;
    fprintf(to, "  %-30s %22.2f %9.1f\n", "between steps, and waiting", 1e3 * waiting,
            percent(waiting, e->wall_s));
    return lines + 1;
}

/* Steps with many operations per byte are bound by arithmetic, others by memory. */
static int print_bound(const Explanation *e, FILE *to)
{
    enum { MUCH = 10 };   /* operations: about as many as a core does while memory moves a byte */
    double arithmetic = 0.0, memory = 0.0;
    char   text[400];
    for (int i = 0; i < e->step_count; i++) {
        const CornuExecutableStep *step = &e->steps[i];
        const int64_t              bytes = step->bytes_read + step->bytes_written;
        *(step->flops >= MUCH * bytes && step->flops ? &arithmetic : &memory) += e->here_s[i];
    }
    snprintf(text, sizeof text, "%s-bound here: %.0f percent of the time is in steps that do %d "
             "operations or more for each byte they move, %.0f percent in others.",
             arithmetic >= memory ? "Compute" : "Memory", percent(arithmetic, e->wall_s), MUCH,
             percent(memory, e->wall_s));
    int lines = wrap("", text, EXPLAIN_WIDTH, to);
    if (!e->tpu) return lines;
    const CornuTpuModel *tpu = e->tpu;
    snprintf(text, sizeof text, "Modelled on a TPU %s: %.2f ms, bound by %s. Dispatch %.2f ms, "
             "device %.2f ms (bound by %s), infeed in parallel %.2f ms.",
             tpu->slice.name, 1e3 * tpu->step_s, cornu_tpu_bound_name(tpu->bound),
             1e3 * tpu->dispatch_s, 1e3 * tpu->device_s, cornu_tpu_bound_name(tpu->device_bound),
             1e3 * tpu->infeed_s);
    return lines + wrap("", text, EXPLAIN_WIDTH, to);
}

static int print_memory_line(const Explanation *e, FILE *to)
{
    const CornuMemory *memory = &e->memory;
    char               text[400];
    int                used = snprintf(text, sizeof text, "Memory%s: at most %.1f MB",
                                       e->shards > 1 ? " of a shard" : "",
                                       1e-6 * (double)memory->total.peak);
    for (int use = 0, listed = 0; use < CORNU_USE_COUNT; use++) {
        if (memory->uses[use].peak < 50000) continue;   /* 0.0 MB */
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %.1f",
                         listed++ ? ", " : " (", cornu_use_name((CornuUse)use),
                         1e-6 * (double)memory->uses[use].peak);
    }
    snprintf(text + used, sizeof text - (size_t)used, "%s.", strchr(text, '(') ? ")" : "");
    return wrap("", text, EXPLAIN_WIDTH, to);
}

void explain_overview(const Explanation *e, FILE *to)
{
    const CornuStatistics *s = &e->statistics;
    Advice                 advice[EXPLAIN_ADVICE];
    char                   text[400], exchanged[400];
    snprintf(text, sizeof text, "%s: a training step takes %" PRId64 " samples forward and back "
             "and updates %" PRId64 " parameters once: %" PRId64 " ops, compiled to %" PRId64
             " step%s, in %s.", e->model, e->batch, e->parameters, s->ops, s->kernels,
             s->kernels == 1 ? "" : "s", e->policy);
    int lines = 1 + wrap("", text, EXPLAIN_WIDTH, to);   /* and the line of the device */
    snprintf(text, sizeof text, "Measured here: %.*f ms (the median of %d%s), %.0f samples/s, "
             "%.1f GFLOP/s.", e->wall_s < 0.01 ? 3 : 1, 1e3 * e->wall_s, e->runs,
             e->clock == CORNU_CLOCK_DEVICE ? ", by the device profiler" : "",
             (double)e->batch / e->wall_s, 1e-9 * (double)s->flops / e->wall_s);
    if (e->targets > 1)
        snprintf(text + strlen(text) - 1, sizeof text - strlen(text), ", %.0f %ss/s.",
                 (double)(e->batch * e->targets) / e->wall_s, e->target);
    explain_exchanges_line(&e->exchanges, exchanged);
    if (*exchanged) lines += wrap("", exchanged, EXPLAIN_WIDTH, to);
    fputc('\n', to);
    lines += 1 + wrap("", text, EXPLAIN_WIDTH, to);
    if (s->kernels > 1) {   /* else a compiler of others made one of it, which has no parts */
        lines += print_parts(e, to);
        fputc('\n', to);
        lines += 1 + print_bound(e, to);
    }
    lines += print_memory_line(e, to);
    const int count = explain_advise(e, advice);
    const int footer = 1;
    int       given = 0;
    for (int i = 0; i < count; i++) {
        const int needed = wrap("-", advice[i].text, EXPLAIN_WIDTH, NULL);
        if (lines + needed + footer > EXPLAIN_LINES) continue;
        lines += wrap("-", advice[i].text, EXPLAIN_WIDTH, to);
        given++;
    }
    fprintf(to, "--all shows every step%s", e->tpu ? ", other TPUs" : "");
    if (given < count) fprintf(to, ", and %d more piece%s of advice", count - given,
                               count - given == 1 ? "" : "s");
    fputs(".\n", to);
}

void explain_print(const Explanation *e, FILE *to)
{
    Advice    advice[EXPLAIN_ADVICE];
    const int count = explain_advise(e, advice);
    print_head(e, to);
    if (e->tpu) {
        print_emulated(e, to);
        print_steps(e, to);
    } else {
        print_native(e, to);
    }
    explain_exchanges_print(&e->exchanges, to);
    if (count > 0) fputc('\n', to);
    for (int i = 0; i < count; i++) wrap("-", advice[i].text, 118, to);
}

/* ---- JSON ---- */

static json_t *describe_step(const Explanation *e, int i)
{
    const CornuExecutableStep *step = &e->steps[i];
    json_t *ops = json_pack("{s:s, s:s, s:s, s:b, s:I, s:I, s:I, s:{s:f}}",
                            "layer", step->scope, "name", step->name, "kind", step->kind,
                            "per_shard", (int)step->per_shard, "flops", (json_int_t)step->flops,
                            "bytes_read", (json_int_t)step->bytes_read,
                            "bytes_written", (json_int_t)step->bytes_written,
                            "measured", "seconds", e->here_s[i]);
    if (!e->tpu) return ops;
    const CornuTpuOp *op = &e->tpu->ops[i];
    json_t *modelled = json_pack(
        "{s:[I,I,I,I], s:i, s:I, s:{s:I, s:I, s:I}, s:I, s:I, s:{s:f, s:f, s:f}, s:I, s:I, s:I,"
        " s:f, s:f, s:f, s:f, s:f, s:s}",
        "product", (json_int_t)op->product.count, (json_int_t)op->product.m,
        (json_int_t)op->product.k, (json_int_t)op->product.n, "passes", op->passes,
        "tiles", (json_int_t)op->cycles.folds,
        "vmem", "blocks", (json_int_t)op->tiling.blocks, "rows", (json_int_t)op->tiling.rows,
        "bytes", (json_int_t)op->tiling.bytes, "useful_macs", (json_int_t)op->useful_macs,
        "padded_macs", (json_int_t)op->cycles.padded_macs,
        "use", "padding", op->use_padding, "overlapped", op->use_overlapped, "no_overlap",
        op->use_no_overlap, "vector_ops", (json_int_t)op->vector_ops, "hbm_bytes",
        (json_int_t)op->hbm_bytes, "link_bytes", (json_int_t)op->link_bytes,
        "mxu_s", op->mxu_s, "vector_s", op->vector_s, "hbm_s", op->hbm_s, "links_s", op->links_s,
        "seconds", op->seconds, "bound", cornu_tpu_bound_name(op->bound));
    if (json_object_set_new(ops, "modelled", modelled) == 0) return ops;
    json_decref(ops);
    return NULL;
}

static json_t *describe_model(const Explanation *e, const CornuTpuModel *tpu)
{
    return json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:I, s:f, s:I, s:f, s:f, s:f, s:s, s:s}",
                     "profile", tpu->profile->name, "slice", tpu->slice.name,
                     "shards", (json_int_t)tpu->shards,
                     "device_s", tpu->device_s, "mxu_use", tpu->use_overlapped,
                     "links_s", tpu->links_s, "link_bytes", (json_int_t)tpu->link_bytes,
                     "infeed_s", tpu->infeed_s, "infeed_bytes", (json_int_t)tpu->infeed_bytes,
                     "dispatch_s", tpu->dispatch_s, "step_s", tpu->step_s,
                     "epoch_s", (double)steps_of_epoch(e) * tpu->step_s,
                     "device_bound", cornu_tpu_bound_name(tpu->device_bound),
                     "bound", cornu_tpu_bound_name(tpu->bound));
}

static json_t *describe_bytes(CornuBytes bytes)
{
    return json_pack("{s:I, s:I}", "now", (json_int_t)bytes.now, "peak", (json_int_t)bytes.peak);
}

static json_t *describe_memory(const CornuMemory *memory)
{
    json_t *all = json_pack("{s:I, s:o}", "capacity", (json_int_t)memory->capacity, "total",
                            describe_bytes(memory->total));
    for (int use = 0; use < CORNU_USE_COUNT; use++)
        if (json_object_set_new(all, cornu_use_name((CornuUse)use),
                                describe_bytes(memory->uses[use]))) {
            json_decref(all);
            return NULL;
        }
    return all;
}

/* Appends what may be NULL for want of memory. */
static void append(json_t *list, json_t *item, bool *failed)
{
    if (json_array_append_new(list, item)) *failed = true;
}

static json_t *describe(const Explanation *e)
{
    Advice    advice[EXPLAIN_ADVICE];
    const int count = explain_advise(e, advice);
    bool      failed = false;
    json_t   *steps = json_array(), *lines = json_array(), *modelled = json_array();
    for (int i = 0; i < e->step_count; i++) append(steps, describe_step(e, i), &failed);
    for (int i = 0; i < count; i++) append(lines, json_string(advice[i].text), &failed);
    for (int i = 0; i < EXPLAIN_SHARDS; i++)
        if (e->by_shards[i]) append(modelled, describe_model(e, e->by_shards[i]), &failed);
    for (int i = 0; i < EXPLAIN_PROFILES; i++)
        if (e->by_profile[i]) append(modelled, describe_model(e, e->by_profile[i]), &failed);
    const CornuStatistics *s = &e->statistics;
    json_t *exchanges = explain_exchanges_json(&e->exchanges);
    if (!exchanges) failed = true;
    json_t *all = json_pack(
        "{s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:I, s:i, s:i, s:i, s:i, s:o, s:I, s:I, s:I, s:I, s:o,"
        " s:{s:f, s:i, s:s}, s:o, s:o, s:o}",
        "model", e->model, "device", e->description, "kind", e->tpu ? "emulated" : "native",
        "policy", e->policy, "parameters", (json_int_t)e->parameters, "batch_size",
        (json_int_t)e->batch, "target", e->target, "targets_per_sample", (json_int_t)e->targets,
        "shards", e->shards, "threads", e->threads, "processes", e->exchanges.processes,
        "own_shards", e->exchanges.own, "exchanges", exchanges,
        "flops", (json_int_t)s->flops, "fallbacks", (json_int_t)s->fallbacks, "bytes_planned",
        (json_int_t)s->bytes_planned, "bytes_moved", (json_int_t)s->bytes_moved,
        "memory_of_a_shard", describe_memory(&e->memory),
        "measured", "step_s", e->wall_s, "runs", e->runs, "clock", cornu_clock_name(e->clock),
        "modelled", modelled, "steps", steps, "advice", lines);
    if (!failed) return all;
    json_decref(all);
    return NULL;
}

CornuStatus explain_write(const Explanation *e, const char *path)
{
    json_t *all = describe(e);
    if (!all) return cornu_error_set(CORNU_ERR_MEMORY, "%s: no memory for the page", path);
    char       *text = json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    CornuStatus status = text ? cornu_file_write(path, text, strlen(text))
                              : cornu_error_set(CORNU_ERR_MEMORY, "%s: no memory", path);
    free(text);
    json_decref(all);
    return status;
}
