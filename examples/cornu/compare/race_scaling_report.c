/* How steps scale, as tables and as JSON. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../json_file.h"
#include "race_scaling.h"

/* How many times as many samples a second as in the first row. */
static double speed_up(const RanksRow *rows, int i)
{
    return (double)rows[i].batch / rows[i].step_s / ((double)rows[0].batch / rows[0].step_s);
}

static double efficiency(const RanksRow *rows, int i)
{
    return speed_up(rows, i) * (double)rows[0].ranks / (double)rows[i].ranks;
}

static void print_rows(const RanksRow *rows, int count, FILE *to)
{
    fprintf(to, "%5s %7s %6s %10s %8s %6s %10s %9s\n", "ranks", "threads", "batch", "step ms",
            "speed-up", "eff %", "sent kB", "wait ms");
    for (int i = 0; i < count; i++)
        fprintf(to, "%5lld %7lld %6lld %10.2f %8.2f %6.1f %10.1f %9.2f\n", (long long)rows[i].ranks,
                (long long)rows[i].threads, (long long)rows[i].batch, 1e3 * rows[i].step_s,
                speed_up(rows, i), 100.0 * efficiency(rows, i), 1e-3 * rows[i].sent_bytes,
                1e3 * rows[i].wait_s);
}

/* Whether some rows had more threads than the processor runs at once. */
static bool is_crowded(const RanksScaling *scaling, int processors)
{
    for (int i = 0; i < scaling->count; i++)
        if (scaling->strong[i].ranks * scaling->strong[i].threads > processors) return true;
    return false;
}

void race_scaling_print(const Race *race, const RanksScaling *scaling, FILE *to)
{
    const RanksRow *strong = scaling->strong, *last = &strong[scaling->count - 1];
    CornuProcessor  cpu = { .name = "unknown CPU", .threads = 1 };
    cornu_processor_describe(&cpu);
    fprintf(to, "\nStrong scaling, measured: %s%s on %s,\na batch of %lld samples in %lld shards\n",
            race_name(race), race_data_note(race),
            scaling->device, (long long)strong->batch, (long long)strong->shards);
    print_rows(strong, scaling->count, to);
    fprintf(to, "\nWeak scaling, measured: %lld samples a process\n",
            (long long)(strong->batch / strong->ranks));
    print_rows(scaling->weak, scaling->count, to);
    fprintf(to, "\n%s with %d processor%s; %s\n", cpu.name, cpu.threads,
            cpu.threads == 1 ? "" : "s", last->description);
    if (is_crowded(scaling, cpu.threads))
        fputs("Rows with more threads than processors share them: no speed-up is expected.\n", to);
    fprintf(to, "step: the median of those after the first epoch, and of three rounds.\n"
            "sent: by a rank in a step, at most. wait: in a step, the mean of the rank that\n"
            "waited longest for others.\n"
            "All of these groups have trained the same weights: checksum %016llx\n",
            (unsigned long long)strong->checksum);
    if (!scaling->is_modelled) return;
    fputc('\n', to);
    explain_scaling_print(&scaling->modelled, to);
}

/* ---- JSON ---- */

static json_t *describe(const RanksRow *rows, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_pack(
            "{s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "ranks",
            (json_int_t)rows[i].ranks, "threads", (json_int_t)rows[i].threads, "batch_size",
            (json_int_t)rows[i].batch, "steps", (json_int_t)rows[i].steps, "step_seconds",
            rows[i].step_s, "speed_up", speed_up(rows, i), "efficiency", efficiency(rows, i),
            "sent_bytes", rows[i].sent_bytes, "wait_seconds", rows[i].wait_s, "loss",
            rows[i].loss));
    return list;
}

CornuStatus race_scaling_write(const Race *race, const RanksScaling *scalings, int count,
                               const char *path)
{
    json_t *measured = json_array();
    for (int i = 0; i < count; i++) {
        const RanksScaling *s = &scalings[i];
        char                sum[20];
        snprintf(sum, sizeof sum, "%016llx", (unsigned long long)s->strong->checksum);
        json_array_append_new(measured, json_pack(
            "{s:s, s:s, s:I, s:s, s:s, s:o, s:o}", "device", s->device, "label", "measured",
            "shards", (json_int_t)s->strong->shards, "checksum", sum, "processes",
            s->strong[s->count - 1].description, "strong", describe(s->strong, s->count), "weak",
            describe(s->weak, s->count)));
    }
    json_t *root = json_pack("{s:s, s:{s:s, s:b}, s:I, s:o}", "model", race_name(race),
                             "data", "name", race_data(race), "synthetic",
                             (int)race_is_synthetic(race), "seed", (json_int_t)race->seed,
                             "measured", measured);
    return json_file_write(root, path);
}
