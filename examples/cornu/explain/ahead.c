#include "ahead.h"

#include <string.h>

#include "../common/options.h"

static const char key[] = "topology=";

CornuStatus explain_topology_device(const char *device, const char *topology, char *to,
                                    size_t size)
{
    if (strncmp(device, "pjrt", 4) != 0)
        return options_refuse("--topology %s, but the device is %s, which "
                              "does not compile for others: expected --device pjrt:tpu or "
                              "pjrt:PLUGIN", topology, device);
    const char separator = strchr(device, ':') ? ',' : ':';
    if (snprintf(to, size, "%s%c%s%s", device, separator, key, topology) < (int)size)
        return CORNU_OK;
    return cornu_error_set(CORNU_ERR_ARGUMENT, "the name of a device of more than %zu characters",
                           size - 1);
}

const char *explain_topology(const char *device)
{
    for (const char *at = device; at && (at = strpbrk(at, ":,")); ) {
        at++;
        if (strncmp(at, key, sizeof key - 1) == 0) return at + sizeof key - 1;
    }
    return NULL;
}

const CornuTpuProfile *explain_topology_profile(const char *topology)
{
    const size_t length = strcspn(topology, ":");
    for (int i = 0; cornu_tpu_profile_at(i); i++) {
        const CornuTpuProfile *profile = cornu_tpu_profile_at(i);
        if (strncmp(profile->name, topology, length) == 0 && profile->name[length] == '-')
            return profile;
    }
    return NULL;
}

/* ---- The table ---- */

enum { WIDTH = 14 };

/* A number with three digits and a unit, or "-" where there is none. */
static void print_number(FILE *to, bool known, double value, const char *unit)
{
    static const char *const prefix[] = { "", "k", "M", "G", "T", "P" };
    char text[32] = "-";
    int  i = 0;
    for (; value >= 1000.0 && i < 5; i++) value *= 1e-3;
    const int digits = i == 0 || value >= 100.0 ? 0 : value < 10.0 ? 2 : 1;
    if (known) snprintf(text, sizeof text, "%.*f %s%s", digits, value, prefix[i], unit);
    fprintf(to, " %*s", WIDTH, text);
}

typedef struct {
    bool   known[3];
    double value[3];   /* of XLA; of the plan, or counted; of the model */
} Row;

static void print_row(FILE *to, const char *what, const char *unit, Row row, bool models)
{
    fprintf(to, "  %-26s", what);
    for (int i = 0; i < (models ? 3 : 2); i++) print_number(to, row.known[i], row.value[i], unit);
    putc('\n', to);
}

/* A shard's inputs: as they are, and in tiles of 8 by 128. */
static void count_inputs(const CornuExecutable *executable, double *plain, double *tiled)
{
    *plain = *tiled = 0.0;
    if (!executable) return;
    const CornuProgram *program = cornu_executable_program(executable);
    for (int i = 0; i < program->input_count; i++) {
        const CornuType type = cornu_program_type(program, program->inputs[i]);
        *plain += (double)cornu_type_bytes(type);
        *tiled += (double)cornu_tpu_hbm_bytes(type);
    }
}

/* The most that products keep in VMEM at once. */
static double vmem_of(const CornuTpuModel *model)
{
    int64_t most = 0;
    for (int i = 0; i < model->op_count; i++)
        if (model->ops[i].tiling.bytes > most) most = model->ops[i].tiling.bytes;
    return (double)most;
}

/* Operations of a shard's step, as our own rules count them. */
static double flops_of(const CornuExecutable *executable)
{
    return executable ? (double)cornu_executable_statistics(executable)->flops /
                            cornu_device_shards(cornu_executable_device(executable)) : 0.0;
}

void explain_ahead_print(const Ahead *ahead, FILE *to)
{
    const CornuCompiledFigures xla = cornu_executable_figures(ahead->ahead);
    const CornuStatistics     *plan = ahead->emulated
                                          ? cornu_executable_statistics(ahead->emulated) : NULL;
    const CornuTpuModel       *model = ahead->model;
    const CornuExecutable     *counted = plan ? ahead->emulated : ahead->ahead;
    const bool                 has = plan, models = model, counts = counted;
    const double shards = has ? cornu_device_shards(cornu_executable_device(ahead->emulated)) : 1;
    const CornuMemory memory = has
        ? cornu_device_memory(cornu_executable_device(ahead->emulated)) : (CornuMemory){ 0 };
    double plain, tiled;
    count_inputs(counted, &plain, &tiled);

    fprintf(to, "\nOne training step on one of its replicas, compiled for %s, not run:\n",
            ahead->topology);
    fprintf(to, "  %-26s %*s %*s", "", WIDTH, "XLA says", WIDTH,
            has ? "emulated plan" : "counted here");
    if (models) fprintf(to, " %*s", WIDTH, model->profile->name);
    putc('\n', to);
    print_row(to, "FLOPs", "FLOP", (Row){ { xla.has_cost, counts, models },
        { xla.flops, flops_of(counted),
          models ? 2.0 * (double)model->useful_macs + (double)model->vector_ops : 0.0 } }, models);
    print_row(to, "HBM read and written", "B", (Row){ { xla.has_cost, has, models },
        { xla.bytes_accessed, has ? (double)plan->bytes_moved / shards : 0.0,
          models ? (double)model->hbm_bytes : 0.0 } }, models);
    print_row(to, "arguments", "B", (Row){ { xla.has_memory, counts, models },
        { (double)xla.argument_bytes, plain, tiled } }, models);
    print_row(to, "outputs", "B", (Row){ { xla.has_memory }, { (double)xla.output_bytes } },
              models);
    print_row(to, "  of these into arguments", "B",
              (Row){ { xla.has_memory }, { (double)xla.alias_bytes } }, models);
    print_row(to, "temporaries", "B", (Row){ { xla.has_memory, has },
        { (double)xla.temporary_bytes, (double)memory.uses[CORNU_USE_ACTIVATIONS].peak } },
              models);
    print_row(to, "peak", "B", (Row){ { xla.peak_bytes > 0 }, { (double)xla.peak_bytes } },
              models);
    print_row(to, "code", "B", (Row){ { xla.code_bytes > 0 }, { (double)xla.code_bytes } },
              models);
    if (models)
        print_row(to, "VMEM of products", "B", (Row){ { false, false, true },
            { 0.0, 0.0, vmem_of(model) } }, models);
    print_row(to, "fusions; kernels", "", (Row){ { xla.has_program, has },
        { (double)xla.fusions, has ? (double)plan->kernels : 0.0 } }, models);
    if (ahead->ahead && !xla.has_cost)
        fputs("  This plugin does not say how much work a step is: FLOPs and bytes moved.\n", to);
    if (models)
        fprintf(to, "  The model's step takes %.3f ms on the device; XLA gives no time.\n",
                1e3 * model->device_s);
}
