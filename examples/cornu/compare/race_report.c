/* The results of a race as tables, a JSON file or a chart. */
#include "../json_file.h"
#include "race.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* "12.3 %", or "-" if it is unknown. */
static const char *percent(char text[16], double part)
{
    if (isfinite(part)) snprintf(text, 16, "%.1f %%", 100.0 * part);
    else snprintf(text, 16, "-");
    return text;
}

/* Seconds with three digits, always: "0.0125 s", "2.50 s", "17.3 s", "240 s". */
static const char *seconds(char text[32], double value)
{
    const int before = value > 0.0 ? (int)floor(log10(value)) : 0;
    snprintf(text, 32, "%.*f s", before < 2 ? 2 - before : 0, value);
    return text;
}

static const char *policy(const Racer *racer) { return cornu_model_policy(racer->model)->name; }

static CornuProcessor processor(void)
{
    CornuProcessor cpu = { .name = "unknown CPU", .isa = "unknown" };
    cornu_processor_describe(&cpu);
    return cpu;
}

/* " in 2 processes", or nothing for one. */
static const char *processes(char text[48], const Race *race)
{
    const int count = cornu_process_count(race->processes);
    text[0] = '\0';
    if (count > 1) snprintf(text, 48, " in %d processes", count);
    return text;
}

static int64_t fallbacks(const Racer *racer)
{
    const CornuStatistics *step = cornu_model_statistics(racer->model);
    return step ? step->fallbacks : 0;
}

static double rate(const Race *race, const Racer *racer)
{
    return (double)race->samples / race_median(race, racer);
}

/* ---- Tables ---- */

/* Which device is faster, if that is more than chance. */
static void print_ratios(const Race *race, FILE *to)
{
    const int64_t epochs = race->done - race_first(race);
    const Racer  *base = &race->racers[0];
    if (race->count > 1 && epochs < 2)
        fprintf(to, "One epoch%s does not show which is faster; four or more would.\n",
                race->done > 1 ? " after the first" : "");
    for (int i = 1; i < race->count && epochs >= 2; i++) {
        const Racer *racer = &race->racers[i];
        const double ratio = race_ratio(race, racer, base);
        if (ratio >= 1.0)
            fprintf(to, "%s ran %.2f times as fast as %s.\n", racer->name, ratio, base->name);
        else if (ratio > 0.0)
            fprintf(to, "%s ran %.2f times as fast as %s.\n", base->name, 1.0 / ratio,
                    racer->name);
        else
            fprintf(to, "%s and %s: no difference beyond the spread of their epochs%s.\n",
                    racer->name, base->name,
                    epochs == 2 ? ";\nfour or more would show more" : "");
    }
}

/* What ran, and in which dtypes. */
static void print_racers(const Race *race, FILE *to)
{
    fprintf(to, "%-9s %-8s %-14s %6s %7s %9s\n", "device", "runs as", "policy", "shards", "threads",
            "fallbacks");
    for (int i = 0; i < race->count; i++) {
        const Racer *racer = &race->racers[i];
        fprintf(to, "%-9s %-8s %-14s %6d %7d %9lld\n", racer->name, race_kind(racer),
                policy(racer), cornu_device_shards(racer->device),
                cornu_device_threads(racer->device), (long long)fallbacks(racer));
    }
    fprintf(to, "\n"
            "runs as    native: on this processor; emulated: as a TPU would, on it\n"
            "policy     the dtypes; mixed_bfloat16 multiplies bfloat16\n"
            "shards     parts of each batch, %s\n"
            "fallbacks  ops without a kernel, which run slowly\n\n",
            race->meshed ? "each on the shards of the mesh's other axes"
                         : "one for each core of a TPU");
}

static void print_measured(const Race *race, FILE *to)
{
    const CornuProcessor  cpu = processor();
    const CornuCpuLimits *limits = &race->limits;
    char                  ranks[48];
    fprintf(to, "\nMeasured: %s%s, %lld samples per epoch\nin batches of %lld, on\n%s with %s, %d "
            "threads%s\n\n", race_name(race), race_data_note(race), (long long)race->samples,
            (long long)race->batch_size, cpu.name, cpu.isa, limits->threads,
            processes(ranks, race));
    print_racers(race, to);
    fprintf(to, "%-9s %8s %8s %9s %7s %7s %7s %7s\n", "device", "first s", "median s", "samples/s",
            "GFLOP/s", "limit", "loss", "val_acc");
    for (int i = 0; i < race->count; i++) {
        const Racer *racer = &race->racers[i];
        char         part[16], accuracy[16] = "-";
        if (!isnan(racer->val_accuracy))
            snprintf(accuracy, sizeof accuracy, "%.4f", racer->val_accuracy);
        fprintf(to, "%-9s %8.2f %8.2f %9.0f %7.1f %7s %7.4f %7s\n", racer->name,
                racer->seconds[0], race_median(race, racer), rate(race, racer),
                race_gflops(race, racer), percent(part, race_of_limit(race, racer)), racer->loss,
                accuracy);
    }
    fprintf(to, "\n"
            "first s    seconds of the training steps of the first epoch, with compiling\n"
            "median s   of %s\n"
            "GFLOP/s    billions of additions and multiplications in a second\n"
            "limit      the part of what this CPU did at most in this run, by dtype:\n"
            "           %.0f GFLOP/s in float32, %.0f in bfloat16\n"
            "val_acc    the part of the validation data that is classified rightly\n\n",
            race->done > 1 ? "the epochs after it" : "it, as there is no other",
            1e-9 * limits->f32_flops, 1e-9 * limits->bf16_flops);
    const int64_t targets = race_targets(race);
    for (int i = 0; targets > 1 && i < race->count; i++)
        fprintf(to, "%s: %.0f %ss/s, %lld for each sample.\n", race->racers[i].name,
                (double)targets * rate(race, &race->racers[i]), race_target_word(race),
                (long long)targets);
    print_ratios(race, to);
    if (race->modelled_count == 0) return;
    if (!limits->bf16_instructions)
        fprintf(to, "No instructions for bfloat16 are in use: this CPU has none, or has slower "
                "ones\nthan for float32. An emulated TPU no faster than cpu is expected.\n");
    else if (limits->bf16_flops < 1.1 * limits->f32_flops)
        fprintf(to, "This CPU's instructions for bfloat16 do %.2f times what those for float32 "
                "do:\nan emulated TPU no faster than cpu is expected.\n",
                limits->bf16_flops / limits->f32_flops);
}

static void print_modelled(const Race *race, FILE *to)
{
    bool as_run = false;
    fprintf(to, "\nModelled: seconds per epoch of %s length on a TPU, computed from its\npublished "
            "figures; nothing ran there\n\n", race_published(race, 0) ? "published" : "this");
    fprintf(to, "%-9s %6s %6s %6s %8s %8s %10s %8s  %s\n", "profile", "shards", "batch", "steps",
            "device s", "infeed s", "dispatch s", "total s", "bound");
    for (int i = 0; i < race->modelled_count; i++) {
        const ModelledEpoch *row = &race->modelled[i];
        as_run |= row->batch_size * row->steps == race->samples;
        fprintf(to, "%-9s %6d %6lld %6lld %8.3f %8.3f %10.3f %8.3f  %s\n", row->profile->name,
                row->shards, (long long)row->batch_size, (long long)row->steps, row->device_s,
                row->infeed_s, row->dispatch_s, row->total_s, cornu_tpu_bound_name(row->bound));
    }
    fprintf(to, "\n"
            "device s   computing\n"
            "infeed s   the batches' way to the TPU, meanwhile\n"
            "dispatch s starting each step, fitted to the published run of mnist_cnn\n"
            "total s    the longer of device and infeed, + dispatch\n"
            "bound      which of them takes longest\n\n");
    if (!as_run)
        fprintf(to, "The epochs above are of %lld samples, these of as many as were published.\n",
                (long long)race->samples);
}

/* "    from ...", in lines of 80 columns that end after a slash or before a word. */
static void print_source(const char *source, FILE *to)
{
    enum { MOST = 74 };
    fprintf(to, "    from ");
    for (int room = MOST - 5; *source; room = MOST) {
        int length = (int)strlen(source), cut = length;
        for (int at = 1; length > room && at <= room; at++)
            if (source[at - 1] == '/' || source[at] == ' ') cut = at;
        fprintf(to, "%.*s\n%s", cut, source, cut < length ? "      " : "");
        source += cut + (source[cut] == ' ');
    }
}

static void print_published(const Race *race, FILE *to)
{
    const CornuPublishedEpoch *row;
    if (!race_published(race, 0)) {
        if (!race->own) fprintf(to, "\nPublished: no times of %s\n", race_name(race));
        return;
    }
    fprintf(to, "\nPublished: seconds per epoch as others reported them\n\n");
    fprintf(to, "%-16s %6s %6s %8s %9s\n", "hardware", "batch", "steps", "samples", "epoch s");
    for (int i = 0; (row = race_published(race, i)); i++) {
        char epoch[32];
        if (row->least_s == row->most_s) snprintf(epoch, sizeof epoch, "%.3g", row->most_s);
        else snprintf(epoch, sizeof epoch, "%.3g to %.3g", row->least_s, row->most_s);
        fprintf(to, "%-16s %6lld %6lld %8lld %9s\n", row->hardware,
                (long long)row->batch_size, (long long)row->steps,
                (long long)(row->batch_size * row->steps), epoch);
        print_source(row->source, to);
    }
}

void race_print(const Race *race, FILE *to)
{
    print_measured(race, to);
    if (race->modelled_count > 0) print_modelled(race, to);
    print_published(race, to);
}

/* ---- JSON ---- */

static json_t *number(double value) { return isfinite(value) ? json_real(value) : json_null(); }

static json_t *describe_racer(const Race *race, const Racer *racer)
{
    json_t *epochs = json_array();
    for (int64_t i = 0; i < race->done; i++)
        json_array_append_new(epochs, json_real(racer->seconds[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, "
                     "s:o, s:o}",
                     "device", racer->name, "label", "measured", "runs_as", race_kind(racer),
                     "policy", policy(racer), "shards", cornu_device_shards(racer->device),
                     "threads", cornu_device_threads(racer->device), "epoch_seconds", epochs,
                     "median_seconds", number(race_median(race, racer)),
                     "samples_per_second", number(rate(race, racer)),
                     "gflops", number(race_gflops(race, racer)),
                     "of_limit", number(race_of_limit(race, racer)),
                     "loss", number(racer->loss), "val_loss", number(racer->val_loss),
                     "accuracy", number(racer->val_accuracy),
                     "fallbacks", (json_int_t)fallbacks(racer),
                     "joules_per_epoch", number(race_joules(race, racer)),
                     "price_per_hour", number(racer->has_price ? racer->price : NAN));
}

static json_t *describe_modelled(const ModelledEpoch *row)
{
    return json_pack("{s:s, s:s, s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:s}",
                     "profile", row->profile->name, "label", "modelled", "shards", row->shards,
                     "batch_size", (json_int_t)row->batch_size, "steps", (json_int_t)row->steps,
                     "samples", (json_int_t)(row->batch_size * row->steps),
                     "device_seconds", number(row->device_s),
                     "infeed_seconds", number(row->infeed_s),
                     "dispatch_seconds", number(row->dispatch_s),
                     "epoch_seconds", number(row->total_s),
                     "bound", cornu_tpu_bound_name(row->bound));
}

static json_t *describe_published(const CornuPublishedEpoch *row)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:[o, o], s:s}",
                     "hardware", row->hardware, "label", "published",
                     "batch_size", (json_int_t)row->batch_size, "steps", (json_int_t)row->steps,
                     "samples", (json_int_t)(row->batch_size * row->steps),
                     "epoch_seconds", number(row->least_s), number(row->most_s),
                     "source", row->source);
}

static json_t *describe(const Race *race)
{
    json_t *measured = json_array(), *modelled = json_array(), *published = json_array();
    for (int i = 0; i < race->count; i++)
        json_array_append_new(measured, describe_racer(race, &race->racers[i]));
    for (int i = 0; i < race->modelled_count; i++)
        json_array_append_new(modelled, describe_modelled(&race->modelled[i]));
    for (int i = 0; race_published(race, i); i++)
        json_array_append_new(published, describe_published(race_published(race, i)));
    const CornuProcessor cpu = processor();
    return json_pack("{s:s, s:{s:s, s:b}, s:s, s:I, s:I, s:I, s:I, s:I,"
                     " s:{s:s, s:s, s:s, s:i, s:i, s:o, s:o, s:b, s:o}, s:o, s:o, s:o}",
                     "model", race_name(race),
                     "data", "name", race_data(race), "synthetic", (int)race_is_synthetic(race),
                     "target", race_target_word(race),
                     "targets_per_sample", (json_int_t)race_targets(race),
                     "seed", (json_int_t)race->seed, "batch_size", (json_int_t)race->batch_size,
                     "steps", (json_int_t)race->steps, "samples", (json_int_t)race->samples,
                     "machine", "cpu", cpu.name, "isa", cpu.isa, "label", "measured",
                     "threads", race->limits.threads,
                     "processes", cornu_process_count(race->processes),
                     "float32_gflops", number(1e-9 * race->limits.f32_flops),
                     "bfloat16_gflops", number(1e-9 * race->limits.bf16_flops),
                     "bfloat16_instructions", (int)race->limits.bf16_instructions,
                     "read_gb_per_second", number(1e-9 * race->limits.read_bytes),
                     "measured", measured, "modelled", modelled, "published", published);
}

CornuStatus race_write(const Race *race, const char *path)
{
    return json_file_write(describe(race), path);
}

/* ---- The chart ---- */

enum {
    WIDTH = 1100, MARGIN = 36, HEAD = 78, ROW = 36, AROUND = 104, BETWEEN = 26,
    LABELS = 210, BARS = RACE_MODELLED + 16,
};
static const CornuColour INK = 0x1f2933, FAINT_INK = 0x5f6b78;
static const CornuPlotSeries kinds[] = { { "native", 0x3b6fb6 }, { "emulated", 0xd98a29 } };
static const CornuPlotSeries others[] = { { "modelled", 0x7a5ea8 }, { "published", 0x6b7785 } };

typedef struct {
    CornuPlotBar bars[BARS];
    char         labels[BARS][64], texts[BARS][64];
    int          count;
} Bars;

static void add_bar(Bars *bars, const char *label, double value, const char *text, int series)
{
    if (bars->count == BARS) return;
    const int i = bars->count++;
    snprintf(bars->labels[i], sizeof bars->labels[i], "%s", label);
    snprintf(bars->texts[i], sizeof bars->texts[i], "%s", text);
    bars->bars[i] = (CornuPlotBar){ bars->labels[i], value, bars->texts[i], series };
}

static void collect_measured(const Race *race, Bars *bars)
{
    for (int i = 0; i < race->count; i++) {
        const Racer *racer = &race->racers[i];
        char         label[64], text[32];
        const double median = race_median(race, racer);
        snprintf(label, sizeof label, "%.40s, %s", racer->name, policy(racer));
        add_bar(bars, label, median, seconds(text, median),
                strcmp(race_kind(racer), "emulated") == 0);
    }
}

static void collect_others(const Race *race, Bars *bars)
{
    const CornuPublishedEpoch *p;
    char                       label[64], text[64];
    for (int i = 0; i < race->modelled_count; i++) {
        const ModelledEpoch *row = &race->modelled[i];
        snprintf(label, sizeof label, "TPU %s, %lld x %lld", row->profile->name,
                 (long long)row->steps, (long long)row->batch_size);
        add_bar(bars, label, row->total_s, seconds(text, row->total_s), 0);
    }
    for (int i = 0; (p = race_published(race, i)); i++) {
        snprintf(label, sizeof label, "%s, %lld x %lld", p->hardware, (long long)p->steps,
                 (long long)p->batch_size);
        if (p->least_s == p->most_s) snprintf(text, sizeof text, "%.3g s", p->most_s);
        else snprintf(text, sizeof text, "%.3g to %.3g s", p->least_s, p->most_s);
        add_bar(bars, label, p->most_s, text, 1);
    }
}

static void draw_head(const Race *race, CornuPlot *plot)
{
    const CornuProcessor cpu = processor();
    char title[128], below[256], ranks[48];
    snprintf(title, sizeof title, "%s: seconds per epoch", race_name(race));
    snprintf(below, sizeof below, "%s, %s, %d threads%s; %lld samples of %s%s in batches of "
             "%lld", cpu.name, cpu.isa, race->limits.threads, processes(ranks, race),
             (long long)race->samples,
             race_is_synthetic(race) ? "SYNTHETIC " : "", race_data(race),
             (long long)race->batch_size);
    cornu_plot_text(plot, title, MARGIN, MARGIN + 16, 18, .bold = true, .colour = INK);
    cornu_plot_text(plot, below, MARGIN, MARGIN + 40, .colour = FAINT_INK);
}

static CornuStatus draw(const Race *race, const Bars *measured, const Bars *rest, const char *path)
{
    const int  first = AROUND + ROW * measured->count, second = AROUND + ROW * rest->count;
    const int  top = MARGIN + HEAD;
    CornuPlot *plot = cornu_plot_create(WIDTH, top + first + BETWEEN + second + MARGIN / 2,
                                        0xffffff);
    if (!plot) return cornu_error_status();
    char title[64];
    const int64_t epochs = race->done - race_first(race);
    snprintf(title, sizeof title, "Measured here: median of %lld epoch%s%s", (long long)epochs,
             epochs == 1 ? "" : "s", race_first(race) ? " after the first" : "");
    draw_head(race, plot);
    cornu_plot_bars(plot, MARGIN, top, WIDTH - 2 * MARGIN, first, title,
                    "seconds per epoch, measured", measured->bars, measured->count, kinds, 2,
                    .label_room = LABELS);
    cornu_plot_bars(plot, MARGIN, top + first + BETWEEN, WIDTH - 2 * MARGIN, second,
                    "Modelled, or published by others: steps x batch of an epoch",
                    "seconds per epoch, on a logarithmic scale", rest->bars, rest->count, others,
                    2, true, LABELS);
    CornuStatus status = cornu_plot_save(plot, path);
    cornu_plot_free(plot);
    return status;
}

CornuStatus race_draw(const Race *race, const char *path)
{
    Bars *bars = calloc(2, sizeof *bars);
    if (!bars) return cornu_error_set(CORNU_ERR_MEMORY, "%s: no memory", path);
    collect_measured(race, &bars[0]);
    collect_others(race, &bars[1]);
    CornuStatus status = draw(race, &bars[0], &bars[1], path);
    free(bars);
    return status;
}
