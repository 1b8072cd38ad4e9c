#include "../json_file.h"
#include "scaling.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "explained.h"
#include "../common/session.h"

/* ---- What is asked for ---- */

/* The numbers of a list, ascending; 0 for anything else. */
static int read_list(const char *list, int64_t shards[SCALING_ROWS])
{
    int count = 0;
    for (const char *at = list; count < SCALING_ROWS; at++) {
        char     *end;
        const int digits = (int)strspn(at, "0123456789");
        if (digits < 1 || digits > 9) return 0;
        shards[count] = strtol(at, &end, 10);
        if (shards[count] <= (count ? shards[count - 1] : 0)) return 0;
        count++;
        if (!*end) return count;
        if (*end != ',') return 0;
        at = end;
    }
    return 0;
}

static CornuStatus check(const Options *options, const char *list, const CornuTpuProfile **profile,
                         int64_t shards[SCALING_ROWS], int *count)
{
    const char *colon = strchr(options->device, ':');
    if (strncmp(options->device, "tpu", 3) != 0)
        return options_refuse("--scaling, but the device is %s: expected "
                              "--device tpu, or one of its profiles", options->device);
    if (options->shards)
        return options_refuse("--shards %" PRId64 " and --scaling %s: "
                              "expected only one of them", options->shards, list);
    *profile = cornu_tpu_profile(colon ? colon + 1 : NULL);
    if (!*profile) return cornu_error_status();
    *count = read_list(list, shards);
    if (*count == 0)
        return options_refuse("--scaling %s: expected up to %d ascending "
                              "numbers of shards, such as 8,32,128", list, SCALING_ROWS);
    const CornuTpuSlice pod = cornu_tpu_pod(*profile);
    if (shards[*count - 1] > pod.shards)
        return options_refuse("--scaling %s: %" PRId64 " shards, expected 1 "
                              "to the %" PRId64 " of %s", list, shards[*count - 1], pod.shards,
                              pod.name);
    return shards[0] <= options->batch_size
        ? CORNU_OK
        : cornu_error_set(CORNU_ERR_ARGUMENT, "a batch of %" PRId64 " samples for %" PRId64
                          " shards, expected one for each: --batch-size", options->batch_size,
                          shards[0]);
}

/* ---- The model ---- */

/* The passes of a product of f32, by --precision. */
static int passes_of(const Options *options)
{
    static const int passes[] = { [CORNU_PRECISION_HIGHEST] = CORNU_TPU_HIGHEST,
                                  [CORNU_PRECISION_HIGH] = CORNU_TPU_HIGH,
                                  [CORNU_PRECISION_DEFAULT] = CORNU_TPU_DEFAULT };
    return passes[session_precision(options)];
}

static double step_s(const CornuTpuModel *model)
{
    return model->device_s > model->infeed_s ? model->device_s : model->infeed_s;
}

/* Models the compiled step on the row's shards. */
static CornuStatus model_row(const Options *options, const CornuTpuProfile *profile,
                             const CornuExecutable *executable, ScalingRow *row, double *wrapped_s)
{
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        CornuTpuModel *model = cornu_tpu_model(
            .executable = executable, .profile = profile, .shards = row->shards, .scaled = true,
            .passes = passes_of(options), .wrapped = wrapped);
        if (!model) return cornu_error_status();
        if (wrapped) {
            *wrapped_s = step_s(model);
        } else {
            row->slice = model->slice;
            row->step_s = step_s(model);
            row->infeed_s = model->infeed_s;
            row->links_s = model->links_s;
            row->link_bytes = model->wire_bytes;
        }
        cornu_tpu_model_free(model);
    }
    return CORNU_OK;
}

/* Compiles the step of one of the row's shards. An emulation with many shards sums their gradients
 * as no TPU would, so that the plan for a few is scaled. */
static CornuStatus compile_row(const Options *options, const CornuExplainConfig *config,
                               const CornuTpuProfile *profile, Scaling *scaling, ScalingRow *row,
                               double *wrapped_s)
{
    enum { EMULATED = 8 };
    const int     shards = row->shards < EMULATED ? (int)row->shards : EMULATED;
    const int64_t rows = (row->batch + row->shards - 1) / row->shards;
    CornuDevice  *device = cornu_device_open(options->device, .threads = 1, .shards = shards,
                                             .precision = session_precision(options));
    CornuExplainConfig one = *config;
    one.device = device;
    one.batch_size = rows * shards;
    one.no_run = true;
    one.others = false;
    CornuExplanation *explanation = device ? cornu_explain_from(&one) : NULL;
    CornuStatus       status = explanation ? CORNU_OK : cornu_error_status();
    if (!status)
        status = model_row(options, profile, cornu_explanation_executable(explanation), row,
                           wrapped_s);
    if (!status) scaling->policy = cornu_explanation_policy(explanation);
    cornu_explanation_free(explanation);
    cornu_device_close(device);
    return status;
}

/* Each shard has as many samples as it has in the first row, compared with one alone. */
static CornuStatus scale_weakly(const Options *options, const CornuExplainConfig *config,
                                const CornuTpuProfile *profile, const int64_t *shards,
                                Scaling *scaling)
{
    double      wrapped_s;
    ScalingRow  alone = { .shards = 1, .batch = scaling->rows };
    CornuStatus status = compile_row(options, config, profile, scaling, &alone, &wrapped_s);
    scaling->alone_s = alone.step_s;
    for (int i = 0; !status && i < scaling->count; i++) {
        ScalingRow *row = &scaling->weak[i];
        *row = (ScalingRow){ .shards = shards[i], .batch = shards[i] * scaling->rows };
        status = compile_row(options, config, profile, scaling, row, &wrapped_s);
        row->efficiency = alone.step_s / row->step_s;
        row->wrapped = alone.step_s / wrapped_s;
    }
    return status;
}

/* The same batch for all. */
static CornuStatus scale_strongly(const Options *options, const CornuExplainConfig *config,
                                  const CornuTpuProfile *profile, const int64_t *shards,
                                  Scaling *scaling)
{
    double      wrapped_s, first_s = 0.0;
    CornuStatus status = CORNU_OK;
    for (int i = 0; !status && i < scaling->count && shards[i] <= scaling->batch; i++) {
        ScalingRow  *row = &scaling->strong[scaling->strong_count++];
        const double times = (double)shards[i] / (double)shards[0];
        *row = (ScalingRow){ .shards = shards[i], .batch = scaling->batch };
        status = compile_row(options, config, profile, scaling, row, &wrapped_s);
        if (i == 0) first_s = wrapped_s;
        row->efficiency = scaling->strong[0].step_s / (times * row->step_s);
        row->wrapped = first_s / (times * wrapped_s);
    }
    return status;
}

static CornuStatus scale(const Options *options, const CornuExplainConfig *config,
                         const char *list, bool weakly, Scaling *scaling)
{
    const CornuTpuProfile *profile = NULL;
    int64_t                shards[SCALING_ROWS];
    *scaling = (Scaling){ .model = config->name, .batch = options->batch_size };
    CornuStatus status = check(options, list, &profile, shards, &scaling->count);
    if (status) return status;
    scaling->rows = (scaling->batch + shards[0] - 1) / shards[0];
    if (weakly) status = scale_weakly(options, config, profile, shards, scaling);
    return status ? status : scale_strongly(options, config, profile, shards, scaling);
}

CornuStatus explain_scaling_of(const Options *options, const CornuExplainConfig *config,
                               const char *list, Scaling *scaling)
{
    return scale(options, config, list, true, scaling);
}

static CornuStatus scale_network(const Options *options, const CornuReferenceModel *reference,
                                 const char *list, bool weakly, Scaling *scaling)
{
    const Subject      subject = { .name = reference->name, .reference = reference };
    CornuExplainConfig config = { .loss = NULL };
    CornuStatus        status = explained_open(&subject, options, &config);
    if (!status) status = scale(options, &config, list, weakly, scaling);
    cornu_model_free(config.model);
    return status;
}

CornuStatus explain_scaling(const Options *options, const CornuReferenceModel *reference,
                            const char *list, Scaling *scaling)
{
    return scale_network(options, reference, list, true, scaling);
}

CornuStatus explain_strong_scaling(const Options *options, const CornuReferenceModel *reference,
                                   const char *list, Scaling *scaling)
{
    return scale_network(options, reference, list, false, scaling);
}

/* ---- The tables ---- */

static void print_rows(const ScalingRow *rows, int count, FILE *to)
{
    char shape[32];
    fprintf(to, "%-7s %-17s %6s %9s %8s %8s %6s %8s\n", "slice", "chips", "shards", "step us",
            "links us", "MB/link", "eff %", "wrapped");
    for (int i = 0; i < count; i++)
        fprintf(to, "%-7s %-17s %6" PRId64 " %9.1f %8.1f %8.2f %6.1f %8.1f\n", rows[i].slice.name,
                cornu_tpu_slice_shape(&rows[i].slice, shape), rows[i].shards, 1e6 * rows[i].step_s,
                1e6 * rows[i].links_s, 1e-6 * rows[i].link_bytes, 100.0 * rows[i].efficiency,
                100.0 * rows[i].wrapped);
}

void explain_scaling_print(const Scaling *scaling, FILE *to)
{
    fprintf(to, "%s in %s, modelled: no TPU is here, and nothing ran.\n", scaling->model,
            scaling->policy);
    fprintf(to, "\nWeak scaling, modelled: %" PRId64 " samples a shard; one shard alone takes "
            "%.1f us\n", scaling->rows, 1e6 * scaling->alone_s);
    print_rows(scaling->weak, scaling->count, to);
    fprintf(to, "\nStrong scaling, modelled: a batch of %" PRId64 " samples\n", scaling->batch);
    print_rows(scaling->strong, scaling->strong_count, to);
    if (scaling->strong_count < scaling->count)
        fprintf(to, "From %" PRId64 " shards on, some have no sample.\n",
                scaling->weak[scaling->strong_count].shards);
    fprintf(to,
            "\nstep: the longer of device and infeed, without the host's dispatch.\n"
            "links: of it, what shards exchange, in parallel with nothing.\n"
            "MB/link: what the busiest link moves one way.\n"
            "eff: weak, the step of one shard alone by this one, over 100 where they divide\n"
            "the optimizer's work; strong, the speed-up over %s by that in shards.\n"
            "wrapped: eff if links closed all axes of slices to rings. Which axes they close\n"
            "is not published for v2 and v3: assumed are those as long as the pod's (?).\n",
            scaling->weak[0].slice.name);
}

/* ---- JSON ---- */

static json_t *describe(const ScalingRow *rows, int count)
{
    json_t *list = json_array();
    for (int i = 0; list && i < count; i++) {
        const CornuTpuSlice *slice = &rows[i].slice;
        json_t *row = json_pack("{s:s, s:[I,I], s:[b,b], s:I, s:I, s:f, s:f, s:f, s:f, s:f}",
                                "slice", slice->name, "chips", (json_int_t)slice->x,
                                (json_int_t)slice->y, "closed", (int)slice->wraps_x,
                                (int)slice->wraps_y, "shards", (json_int_t)rows[i].shards,
                                "batch_size", (json_int_t)rows[i].batch, "step_s", rows[i].step_s,
                                "links_s", rows[i].links_s, "link_bytes", rows[i].link_bytes,
                                "efficiency", rows[i].efficiency, "efficiency_wrapped",
                                rows[i].wrapped);
        if (json_array_append_new(list, row) == 0) continue;
        json_decref(list);
        list = NULL;
    }
    return list;
}

CornuStatus explain_scaling_write(const Scaling *scaling, const char *path)
{
    json_t *all = json_pack("{s:s, s:s, s:{s:I, s:f, s:o, s:o}}", "model", scaling->model,
                            "policy", scaling->policy, "modelled",
                            "rows_of_a_shard", (json_int_t)scaling->rows, "alone_s",
                            scaling->alone_s, "weak", describe(scaling->weak, scaling->count),
                            "strong", describe(scaling->strong, scaling->strong_count));
    return json_file_write(all, path);
}
