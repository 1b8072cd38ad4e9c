/* Lists the devices: the processor of this machine, and the TPUs whose times are modelled. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cornu/cornu.h>

#include "commands.h"
#include "common/options.h"
#include "common/session.h"

/* "2048 KiB", "36 MiB"; caches come in powers of two or small multiples of them. */
static void print_cache(const char *name, int64_t bytes)
{
    if (bytes >= 8 << 20) printf("  %s %lld MiB", name, (long long)(bytes >> 20));
    else if (bytes > 0) printf("  %s %lld KiB", name, (long long)(bytes >> 10));
}

static CornuStatus print_machine(void)
{
    CornuProcessor cpu;
    CornuCpuLimits limits;
    CornuStatus    status = cornu_processor_describe(&cpu);
    if (!status) status = cornu_cpu_limits(0, &limits);
    if (status) return status;
    printf("This machine\n");
    printf("  processor   %s\n", cpu.name);
    printf("  SIMD        %s in use, %s at best\n", cpu.isa, cpu.best_isa);
    printf("  caches    ");
    print_cache("L1d", cpu.l1d);
    print_cache("L2", cpu.l2);
    print_cache("L3", cpu.l3);
    printf("\n  threads     %d of %ld processors\n", cpu.threads,
           sysconf(_SC_NPROCESSORS_ONLN));
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    printf("  memory      %.1f GiB, read at %.0f GB/s (measured)\n", memory / (1 << 30),
           1e-9 * limits.read_bytes);
    printf("  limits      %.0f GFLOP/s in float32, %.0f in bfloat16, %s (measured)\n\n",
           1e-9 * limits.f32_flops, 1e-9 * limits.bf16_flops,
           limits.bf16_instructions ? "which has instructions" : "widened to float32");
    return CORNU_OK;
}

static const char *kind_of(const char *name)
{
    if (strcmp(name, "cpu") == 0) return "native: float32";
    if (strcmp(name, "reference") == 0) return "native: double, one plain loop per op, the oracle";
    return "emulated: real numerics, this machine's time";
}

/* What "tpu" emulates; the table below says how certain these figures are. */
static void print_profile(const CornuTpuProfile *profile)
{
    const double  hbm = cornu_tpu_replica_hbm(profile) * 1e-9;
    const int64_t mxus = cornu_tpu_replica_mxus(profile);
    printf("  %-10s  as a %s: %g replicas, each %lld MXU%s of %g x %g and %.3g GB of HBM; %g MiB "
           "of VMEM a core\n", "", profile->name, profile->replicas.value, (long long)mxus,
           mxus == 1 ? "" : "s", profile->mxu_rows.value, profile->mxu_columns.value, hbm,
           profile->vmem_mib.value);
}

/* What XLA's plugins run on, if any are installed. */
static void print_plugins(void)
{
    static const char *const names[] = { "pjrt:cpu", "pjrt:cuda", "pjrt:tpu" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        CornuDevice *device = cornu_device_open(names[i]);
        if (!device) cornu_error_take();
        printf("  %-10s  %s\n", names[i], device ? "native: compiled by XLA"
                                                 : "no plugin for it opens:");
        printf("  %-10s  %s\n", "", device ? cornu_device_description(device)
                                           : cornu_error_message());
        const CornuMemory memory = device ? cornu_device_memory(device) : (CornuMemory){ 0 };
        if (memory.capacity)
            printf("  %-10s  %.1f GiB of memory\n", "", (double)memory.capacity / (1 << 30));
        cornu_device_close(device);
    }
}

/* Opens each one, which shows that it works. */
static CornuStatus print_devices(void)
{
    printf("Devices\n");
    for (int i = 0; cornu_device_known(i); i++) {
        const char  *name = cornu_device_known(i);
        if (strcmp(name, "pjrt") == 0) {
            print_plugins();
            continue;
        }
        CornuDevice *device = cornu_device_open(name);
        if (!device) return cornu_error_take();
        printf("  %-10s  %s\n", name, kind_of(name));
        printf("  %-10s  %s\n", "", cornu_device_description(device));
        printf("  %-10s  %d thread%s, tensors of up to %d axes\n", "",
               cornu_device_threads(device), cornu_device_threads(device) == 1 ? "" : "s",
               CORNU_MAX_RANK);
        if (strcmp(name, "tpu") == 0) print_profile(cornu_tpu_profile(NULL));
        cornu_device_close(device);
    }
    putchar('\n');
    return CORNU_OK;
}

static CornuStatus print_tpus(void)
{
    CornuTpuTarget target;
    CornuStatus    status = cornu_tpu_resolve(&target);
    if (status) return status;
    fputs(target.text, stdout);
    printf("\nTPU profiles: for emulation, and for modelled times. None of them is attached, and "
           "nothing\nhere was measured. After each figure stands how sure it is.\n\n");
    cornu_tpu_profiles_print(stdout);
    putchar('\n');
    cornu_tpu_legend_print(stdout);
    return CORNU_OK;
}

int command_devices(int argc, char **argv)
{
    Options       options = { .device = NULL };
    const Program program = { .name = "cornu devices",
                              .purpose = "Lists the devices of this machine and the profiles of "
                                         "TPUs." };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    CornuStatus status = print_machine();
    if (!status) status = print_devices();
    if (!status) status = print_tpus();
    return session_end("cornu devices", status);
}
