/* What a training costs: its time, energy and price, measured here, and on the TPU that is emulated
 * as modelled. */
#include "report_internal.h"

#include <math.h>
#include <sys/resource.h>

#include "../../device/system/clock_internal.h"
#include "../../device/tpu/model.h"
#include "../formats/json_internal.h"
#include "../training/training_internal.h"

/* Seconds of all threads of this process. */
static double processor_seconds(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_SELF, &used) != 0) return NAN;
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Before the evaluation of classes, which is not part of the run. */
void cornu__report_cost_read(CornuReportCost *cost)
{
    cost->seconds = cornu__seconds() - cost->begin_s;
    cost->processor_s = processor_seconds() - cost->processor_begin_s;
    cost->joules = cornu_energy_joules(&cost->meter);
}

void cornu__report_cost_begin(CornuReportCost *cost)
{
    *cost = (CornuReportCost){ .begin_s = cornu__seconds(),
                               .processor_begin_s = processor_seconds() };
    cornu_energy_open(&cost->meter, NULL);
}

/* The step that was trained, on the TPU that this device emulates. */
static CornuStatus model_step(CornuReportCost *cost, CornuModel *model)
{
    const CornuDevice *device = cornu_model_device(model);
    CornuStep         *step;
    cost->modelled = true;
    if (!cornu_device_profile(device)) return CORNU_OK;
    CORNU__TRY(cornu__training_prepare(model, &step));
    if (step->pipeline) return CORNU_OK;
    CornuTpuModel *made = cornu_tpu_model(
        .executable = cornu_graph_executable(step->graph),
        .passes = cornu_tpu_passes(cornu_device_precision(device)));
    if (!made) return cornu_error_take();
    cost->profile = made->profile;
    cost->bound = cornu_tpu_bound_name(made->bound);
    cost->chips = made->slice.chips;
    cost->step_s = made->step_s;
    cornu_tpu_model_free(made);
    return CORNU_OK;
}

CornuStatus cornu__report_cost_epoch(CornuReportCost *cost, CornuModel *model)
{
    cornu__report_cost_read(cost);
    return cost->modelled ? CORNU_OK : model_step(cost, model);
}

/* ---- Rows ---- */

/* Takes `note`. */
static json_t *with_row(json_t *rows, const char *name, double value, const char *unit,
                        const char *kind, json_t *note)
{
    return cornu__json_append(rows, json_pack("{s:s, s:o, s:s, s:s, s:o}", "name", name, "value",
                                              cornu__page_number(value), "unit", unit, "kind",
                                              kind, "note", note));
}

static json_t *with_measured(json_t *rows, const CornuReportCost *cost, double price_per_hour)
{
    const CornuEnergyMeter *meter = &cost->meter;
    rows = with_row(rows, "the run", cost->seconds, "s", "measured",
                    json_string("from the first step to the end of the last epoch, validation "
                                "included"));
    rows = with_row(rows, "processor time", cost->processor_s, "s", "measured",
                    json_string("of all threads of this process"));
    rows = with_row(rows, "energy of this machine", cost->joules, "J", "measured",
                    meter->count ? json_string("counters of the kernel: all that ran on its "
                                               "processors meanwhile")
                                 : json_sprintf("not available: %s", meter->why));
    if (price_per_hour == 0.0) return rows;
    rows = with_row(rows, "price of an hour", price_per_hour, "", "given",
                    json_string("by the program that trained"));
    return with_row(rows, "price of the run", price_per_hour * cost->seconds / 3600.0, "",
                    "measured", json_string("its seconds at that price"));
}

/* What a mark of device/tpu/profiles.def means for a figure of power. */
static const char *certainty(char mark)
{
    switch (mark) {
    case 'V': return "by the vendor";
    case 'P': return "in the paper on that generation";
    case 'T': return "by third parties";
    default:  return "derived from published figures";
    }
}

static json_t *with_modelled(json_t *rows, const CornuReportCost *cost, double steps)
{
    const CornuTpuProfile *profile = cost->profile;
    const CornuTpuFigure   watts = profile->chip_watts;
    const double           chips = (double)cost->chips, seconds = steps * cost->step_s;
    rows = with_row(rows, "a step on the TPU", cost->step_s, "s", "modelled",
                    json_sprintf("%s, bound by %s; nothing ran there", profile->name,
                                 cost->bound));
    rows = with_row(rows, "training steps on the TPU", seconds, "s", "modelled",
                    json_sprintf("%.0f steps, without validation", steps));
    rows = with_row(rows, "chips", chips, "", "published", json_string("that the shards occupy"));
    rows = with_row(rows, "power of a chip", watts.value > 0.0 ? watts.value : NAN, "W",
                    "published",
                    json_string(watts.value > 0.0 ? certainty(watts.mark) : "not published"));
    return with_row(rows, "energy of the chips", watts.value > 0.0 ? watts.value * chips * seconds
                                                                   : NAN, "J", "modelled",
                    json_string("that power for those seconds"));
}

json_t *cornu__report_cost(const CornuReportCost *cost, const CornuModel *model,
                           double price_per_hour)
{
    const CornuHistory *history = model->training->history;
    double              steps = 0.0;
    for (int i = 0; i < cornu_history_epochs(history); i++)
        steps += (double)cornu_history_infeed(history, i).batches;
    json_t *rows = with_measured(json_array(), cost, price_per_hour);
    return cost->profile ? with_modelled(rows, cost, steps) : rows;
}
