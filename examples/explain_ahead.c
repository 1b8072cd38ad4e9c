#include "explain_ahead.h"

#include <string.h>

static const char key[] = "topology=";

CornuStatus explain_topology_device(const char *device, const char *topology, char *to,
                                    size_t size)
{
    if (strncmp(device, "pjrt", 4) != 0)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "--topology %s, but the device is %s, which "
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
    double value[3];   /* of XLA, of the plan, of the model */
} Row;

static void print_row(FILE *to, const char *what, const char *unit, Row row)
{
    fprintf(to, "  %-26s", what);
    for (int i = 0; i < 3; i++) print_number(to, row.known[i], row.value[i], unit);
    putc('\n', to);
}

/* A shard's inputs: as they are, and in tiles of 8 by 128. */
static void count_inputs(const CornuExecutable *executable, double *plain, double *tiled)
{
    const CornuProgram *program = cornu_executable_program(executable);
    *plain = *tiled = 0.0;
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

void explain_ahead_print(const Ahead *ahead, FILE *to)
{
    const CornuCompiledFigures xla = cornu_executable_figures(ahead->ahead);
    const CornuStatistics     *plan = ahead->emulated
                                          ? cornu_executable_statistics(ahead->emulated) : NULL;
    const CornuTpuModel       *model = ahead->model;
    const bool                 has = plan, models = model;
    const double shards = has ? cornu_device_shards(cornu_executable_device(ahead->emulated)) : 1;
    const CornuMemory memory = has
        ? cornu_device_memory(cornu_executable_device(ahead->emulated)) : (CornuMemory){ 0 };
    double plain = 0.0, tiled = 0.0;
    if (has) count_inputs(ahead->emulated, &plain, &tiled);

    fprintf(to, "\nOne training step on one of its replicas, compiled for %s, not run:\n",
            ahead->topology);
    fprintf(to, "  %-26s %*s %*s %*s\n", "", WIDTH, "XLA says", WIDTH, "emulated plan", WIDTH,
            models ? model->profile->name : "model");
    print_row(to, "FLOPs", "FLOP", (Row){ { xla.has_cost, has, models },
        { xla.flops, has ? (double)plan->flops / shards : 0.0,
          models ? 2.0 * (double)model->useful_macs + (double)model->vector_ops : 0.0 } });
    print_row(to, "HBM read and written", "B", (Row){ { xla.has_cost, has, models },
        { xla.bytes_accessed, has ? (double)plan->bytes_moved / shards : 0.0,
          models ? (double)model->hbm_bytes : 0.0 } });
    print_row(to, "arguments", "B", (Row){ { xla.has_memory, has, models },
        { (double)xla.argument_bytes, plain, tiled } });
    print_row(to, "outputs", "B", (Row){ { xla.has_memory }, { (double)xla.output_bytes } });
    print_row(to, "  of these into arguments", "B",
              (Row){ { xla.has_memory }, { (double)xla.alias_bytes } });
    print_row(to, "temporaries", "B", (Row){ { xla.has_memory, has },
        { (double)xla.temporary_bytes, (double)memory.uses[CORNU_USE_ACTIVATIONS].peak } });
    print_row(to, "peak", "B", (Row){ { xla.peak_bytes > 0 }, { (double)xla.peak_bytes } });
    print_row(to, "code", "B", (Row){ { xla.has_memory }, { (double)xla.code_bytes } });
    print_row(to, "VMEM of products", "B", (Row){ { false, false, models },
        { 0.0, 0.0, models ? vmem_of(model) : 0.0 } });
    print_row(to, "fusions; kernels", "", (Row){ { xla.has_program, has },
        { (double)xla.fusions, has ? (double)plan->kernels : 0.0 } });
    if (models)
        fprintf(to, "  The model's step takes %.3f ms on the device; XLA gives no time.\n",
                1e3 * model->device_s);
}
