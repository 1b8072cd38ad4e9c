/* What to change so that a step fits its TPU better, and what each change would gain. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "explain_internal.h"

/* ---- Padding ---- */

/* The products of a layer. */
typedef struct {
    char   name[sizeof ((CornuPadded *)0)->layer];
    int    worst;               /* of its forward products: that of the worst padding; -1: none */
    double worst_s, wasted_s;   /* MXU time of that padding, and of all */
} Layer;

static double wasted_s(const CornuTpuOp *op)
{
    return op->product.count ? op->mxu_s * (1.0 - op->use_padding) : 0.0;
}

static int by_waste(const void *a, const void *b)
{
    const double x = ((const Layer *)a)->wasted_s, y = ((const Layer *)b)->wasted_s;
    return (x < y) - (x > y);
}

/* All layers with products, in `layers`, which has room for one for each step. */
static int list_layers(const CornuExplanation *e, Layer *layers)
{
    int count = 0, k;
    for (int i = 0; i < e->tpu->op_count; i++) {
        const CornuTpuOp *op = &e->tpu->ops[i];
        char              name[sizeof layers->name];
        const bool        backward = cornu__explain_layer_of(e->steps[i].scope, name, sizeof name);
        if (op->product.count == 0) continue;
        for (k = 0; k < count && strcmp(layers[k].name, name) != 0;) k++;
        if (k == count) {
            layers[count] = (Layer){ .worst = -1 };
            memcpy(layers[count++].name, name, sizeof name);
        }
        layers[k].wasted_s += wasted_s(op);
        if (backward || (layers[k].worst >= 0 && wasted_s(op) <= layers[k].worst_s)) continue;
        layers[k].worst = i;
        layers[k].worst_s = wasted_s(op);
    }
    qsort(layers, (size_t)count, sizeof *layers, by_waste);
    return count;
}

int cornu__explain_padded(const CornuExplanation *e, CornuPadded *to, int most)
{
    int    count = 0;
    Layer *layers = e->tpu ? cornu__allocate((size_t)e->tpu->op_count + 1, sizeof *layers) : NULL;
    if (!layers) return 0;
    const CornuTpuProfile *profile = e->tpu->profile;
    const int              all = list_layers(e, layers);
    for (int i = 0; i < all; i++) {
        if (layers[i].worst < 0) continue;
        const CornuTpuProduct p = e->tpu->ops[layers[i].worst].product;
        const struct { char axis; int64_t extent, unit; } sides[] = {
            { 'K', p.k, (int64_t)profile->mxu_rows.value },
            { 'N', p.n, (int64_t)profile->mxu_columns.value },
        };
        for (int s = 0; s < 2 && count < most; s++) {
            const int64_t next = cornu__explain_round_up(sides[s].extent, sides[s].unit);
            if (4 * sides[s].extent >= 3 * next) continue;
            to[count] = (CornuPadded){ .axis = sides[s].axis, .extent = sides[s].extent,
                                       .next = next, .wasted_s = layers[i].wasted_s };
            memcpy(to[count++].layer, layers[i].name, sizeof layers[i].name);
        }
    }
    cornu__release(layers);
    return count;
}

/* ---- Sentences ---- */

typedef struct {
    const CornuExplanation *e;
    CornuAdvice            *lines;
    int                     count;
} Adviser;

static void advise(Adviser *a, double gain_s, const char *format, ...) CORNU__PRINTF(3, 4);
static void advise(Adviser *a, double gain_s, const char *format, ...)
{
    va_list arguments;
    if (a->count == CORNU_EXPLAIN_ADVICE) return;
    va_start(arguments, format);
    vsnprintf(a->lines[a->count].text, sizeof a->lines->text, format, arguments);
    va_end(arguments);
    a->lines[a->count++].gain_s = gain_s;
}

static void advise_batch(Adviser *a)
{
    const CornuTpuModel *one = a->e->tpu, *two = a->e->doubled;
    const double         least = 0.01;
    if (!two || two->use_overlapped < one->use_overlapped + least) return;
    advise(a, one->device_s - 0.5 * two->device_s,
           "Batch %" PRId64 " to %" PRId64 " lifts MXU use from %.1f to %.1f percent; the "
           "device then takes %.3f instead of %.3f us for a sample, modelled.", a->e->batch,
           2 * a->e->batch, 100.0 * one->use_overlapped, 100.0 * two->use_overlapped,
           1e6 * two->device_s / (2.0 * (double)a->e->batch),
           1e6 * one->device_s / (double)a->e->batch);
}

/* Rows of A move in groups of 8: the MXU time of what fills them up. */
static double filled_s(const CornuTpuModel *tpu)
{
    double filled = 0.0;
    for (int i = 0; i < tpu->op_count; i++) {
        const int64_t m = tpu->ops[i].product.m, full = cornu__explain_round_up(m, 8);
        if (tpu->ops[i].product.count)
            filled += tpu->ops[i].mxu_s * (1.0 - (double)m / (double)full);
    }
    return filled;
}

static void advise_rows(Adviser *a)
{
    const int64_t shards = a->e->shards, rows = (a->e->batch + shards - 1) / shards;
    const int64_t full = cornu__explain_round_up(rows, 8);
    const double  gain_s = filled_s(a->e->tpu);
    if (full == rows || a->e->function || gain_s == 0.0) return;
    if (a->e->fixed_batch) {
        advise(a, gain_s, "The model fixes its batch at %" PRId64 ": %" PRId64 " row%s of a shard "
               "are padded to %" PRId64 ". With an open batch, more rows would take products of a "
               "row per sample no longer.", a->e->fixed_batch, rows, rows == 1 ? "" : "s", full);
        return;
    }
    advise(a, gain_s,
           "A shard's %" PRId64 " rows are padded to %" PRId64 ": a batch of %" PRId64 " takes "
           "products of a row per sample no longer than %" PRId64 ".", rows, full, shards * full,
           a->e->batch);
}

/* "K = 64 is padded to 128 rows": one or both axes of a layer. */
static int describe_axes(const CornuPadded *padded, int count, char *text, size_t size)
{
    const int shown = count > 1 && !strcmp(padded[0].layer, padded[1].layer) ? 2 : 1;
    int       used = 0;
    for (int i = 0; i < shown; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%c = %" PRId64 " %spadded to %" PRId64
                         " %s", i ? " and " : "", padded[i].axis, padded[i].extent,
                         i ? "" : "is ", padded[i].next,
                         padded[i].axis == 'K' ? "rows" : "columns");
    used += snprintf(text + used, size - (size_t)used, " of the MXU's tiles, which %.0f",
                     100.0 * (double)padded[0].extent / (double)padded[0].next);
    if (shown == 2)
        snprintf(text + used, size - (size_t)used, " and %.0f",
                 100.0 * (double)padded[1].extent / (double)padded[1].next);
    return shown;
}

/* A sentence for each of the worst layers, and one for the others. */
static void advise_padding(Adviser *a)
{
    enum { TOLD = 3, MOST = 64 };
    CornuPadded padded[MOST];
    const int   count = cornu__explain_padded(a->e, padded, MOST);
    const char *named[] = { "inputs", "outputs" };
    int         told = 0, others = 0;
    double      others_s = 0.0;
    for (int i = 0, axes; i < count; i += axes) {
        char         text[CORNU_EXPLAIN_TEXT];
        axes = describe_axes(padded + i, count - i, text, sizeof text);
        const double part = cornu__explain_percent(padded[i].wasted_s, a->e->tpu->mxu_s);
        if (told++ >= TOLD) {
            others++;
            others_s += padded[i].wasted_s;
            continue;
        }
        advise(a, padded[i].wasted_s, "%.60s: %s percent fill; up to %" PRId64 " %s take no "
               "longer. Its padding takes %.1f percent of the MXU's time.", padded[i].layer, text,
               padded[i + axes - 1].next, named[padded[i + axes - 1].axis == 'N'], part);
    }
    if (others > 0)
        advise(a, 0.0, "%d more layer%s pad%s tiles by more than a quarter, %.1f percent of the "
               "MXU's time.", others, others == 1 ? "" : "s", others == 1 ? "s" : "",
               cornu__explain_percent(others_s, a->e->tpu->mxu_s));
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
    const char *by = a->e->own_f32 ? "dtype mixed_bfloat16 for the layers, which have float32 of "
                                     "their own,"
                   : a->e->fixed_f32 ? "precision \"default\"" : "the policy mixed_bfloat16";
    advise(a, saved, "Products of float32 take the MXU %d passes; %s takes one: MXU time %.1f "
           "instead of %.1f us, modelled.", passes, by, 1e6 * (tpu->mxu_s - saved),
           1e6 * tpu->mxu_s);
}

static void advise_links(Adviser *a)
{
    const CornuTpuModel *tpu = a->e->tpu;
    const double         much = 0.2;
    if (tpu->links_s <= much * tpu->device_s) return;
    advise(a, 0.5 * tpu->links_s, "The shards' exchange takes %.0f percent of the modelled device "
           "time: a larger batch or fewer shards put more work beside each.",
           cornu__explain_percent(tpu->links_s, tpu->device_s));
}

static void advise_host(Adviser *a)
{
    const CornuTpuModel *tpu = a->e->tpu;
    const double beside = tpu->infeed_s > tpu->device_s ? tpu->infeed_s : tpu->device_s;
    if (tpu->dispatch_s > beside && beside > 0.0) {
        const double loop = pow(10.0, ceil(log10(tpu->dispatch_s / beside)));
        advise(a, tpu->dispatch_s * (1.0 - 1.0 / loop), "Dispatch is the bound: "
               "iterations_per_loop 1 to %.0f takes the modelled step "
               "from %.2f to %.2f ms. (Its constant is %s.)", loop, 1e3 * tpu->step_s,
               1e3 * (beside + tpu->dispatch_s / loop),
               tpu->profile->dispatch_ms.mark == 'F' ? "fitted to one published run"
                                                     : "assumed for this profile");
    }
    if (tpu->infeed_s > tpu->device_s)
        advise(a, tpu->infeed_s - tpu->device_s, "Infeed is slower than the device, %.3f against "
               "%.3f ms: %.0f bytes go in for "
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
    advise(a, INFINITY, "%" PRId64 " ops fell back to the reference kernels, which are slow: %s.",
           s->fallbacks, names);
}

static int by_gain(const void *a, const void *b)
{
    const double x = ((const CornuAdvice *)a)->gain_s, y = ((const CornuAdvice *)b)->gain_s;
    return (x < y) - (x > y);
}

int cornu__explain_advise(const CornuExplanation *e, CornuAdvice advice[CORNU_EXPLAIN_ADVICE])
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
    qsort(advice, (size_t)a.count, sizeof *advice, by_gain);
    return a.count;
}
