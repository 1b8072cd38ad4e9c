/* GPUs that need not be there: their descriptions, and compiling for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../device/host/machine/accelerators.h"
#include "../../../device/memory_internal.h"
#include "../../../device/pjrt/gpus.h"
#include "../../../device/pjrt/plugin.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "../programs.h"
#include "../../skip.h"

/* XLA's compiler for GPUs leaks. The leak sanitizer calls this by name. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:xla_cuda_plugin"; }

/* ---- Descriptions ---- */

static void a_gpu_is_described(void **state)
{
    (void)state;
    char *target = NULL;
    expect_ok(cornu__pjrt_gpu_target("h100", &target));
    static const char *const fields[] = {
        "cuda_compute_capability { major: 9 minor: 0 }\n",
        "core_count: 132\n",
        "clock_rate_ghz: 1.980\n",
        "threads_per_core_limit: 2048\n",
        "shared_memory_per_core: 233472\n",          /* 228 KiB */
        "shared_memory_per_block: 49152\n",          /* 48 KiB */
        "shared_memory_per_block_optin: 232448\n",   /* 227 KiB */
        "l2_cache_size: 52428800\n",                 /* 50 MiB */
        "device_memory_size: 85899345920\n",         /* 80 GiB */
        "memory_bandwidth: 3350000000000\n",
        "device_description_str: \"NVIDIA H100 SXM5 80GB\"\n",
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!strstr(target, fields[i])) fail_msg("%s is not in %s", fields[i], target);
    assert_int_equal(cornu__pjrt_target_memory(target), 85899345920);
    cornu__release(target);
}

/* Each has a string of its own, which fits. */
static void all_gpus_are_described(void **state)
{
    (void)state;
    char *target = NULL, *before = NULL;
    int   i;
    for (i = 0; cornu__pjrt_gpu_at(i); i++) {
        expect_ok(cornu__pjrt_gpu_target(cornu__pjrt_gpu_at(i), &target));
        assert_true(strlen(target) > 400);
        assert_string_equal(target + strlen(target) - 2, "\"\n");
        assert_true(cornu__pjrt_target_memory(target) >= INT64_C(16) << 30);
        if (before) assert_string_not_equal(target, before);
        cornu__release(before);
        before = target;
    }
    cornu__release(before);
    assert_true(i >= 5);
    assert_null(cornu__pjrt_gpu_at(-1));
}

static void an_unknown_gpu_is_refused(void **state)
{
    (void)state;
    char *target = NULL;
    expect_error(cornu__pjrt_gpu_target("h20", &target), CORNU_ERR_DEVICE,
                 "GPU \"h20\" is unknown, expected \"h200\", \"t4\", ");
    expect_error(cornu__pjrt_gpu_target("1x1x2", &target), CORNU_ERR_DEVICE,
                 "expected \"t4\", \"a100\", ");
    assert_non_null(strstr(cornu_error_message(), "\"b200\", or a file"));
    assert_null(target);
}

static void a_file_describes_one_too(void **state)
{
    (void)state;
    static const char text[] = "gpu_device_info { device_memory_size: 1234 }";
    char             *target = NULL;
    files_write(files_path(folder, "gpu"), text, sizeof text - 1);
    expect_ok(cornu__pjrt_read_target(files_path(folder, "gpu"), &target));
    assert_string_equal(target, text);
    assert_int_equal(cornu__pjrt_target_memory(target), 1234);
    assert_int_equal(cornu__pjrt_target_memory("gpu_device_info { }"), 0);
    cornu__release(target);
    target = NULL;
    expect_error(cornu__pjrt_read_target(files_path(folder, "none"), &target), CORNU_ERR_FILE,
                 "none");
    expect_error(cornu__pjrt_read_target(folder, &target), CORNU_ERR_FILE, folder);
    static char large[(1 << 20) + 1];
    memset(large, ' ', sizeof large);
    files_write(files_path(folder, "gpu"), large, sizeof large - 1);
    expect_ok(cornu__pjrt_read_target(files_path(folder, "gpu"), &target));
    cornu__release(target);
    target = NULL;
    files_write(files_path(folder, "gpu"), large, sizeof large);
    expect_error(cornu__pjrt_read_target(files_path(folder, "gpu"), &target), CORNU_ERR_FILE,
                 "more than 1048576 bytes");
    assert_null(target);
}

/* ---- Compiling, with the plugin ---- */

static void needs_plugin(void)
{
    char path[CORNU_PJRT_PATH];
    /* The plugins that are installed are for another processor than an emulated one. */
    if (getenv("CORNU_TEST_WRAPPER")) SKIP_FOR(SKIP_EMULATOR);
    if (cornu__pjrt_find("cuda", path) == CORNU_OK) return;
    print_message("%s\n", cornu_error_message());
    cornu_error_take();
    SKIP_FOR("pjrt for GPUs: pip install jax-cuda12-plugin");
}

/* A product of n by n. */
static CornuProgram *product(int64_t n)
{
    CornuProgram *p = cornu_program_create();
    CornuValue    x = input(p, cornu_type(CORNU_F32, n, n));
    output(p, op2(p, CORNU_OP_MATMUL, x, x), -1);
    return p;
}

static CornuDevice *opened(const char *topology, int shards)
{
    char name[FILES_PATH + 32];
    snprintf(name, sizeof name, "pjrt:cuda,topology=%s", topology);
    CornuDevice *device = cornu_device_open(.name = name, .shards = shards);
    if (!device) fail_msg("%s: %s", name, cornu_error_message());
    return device;
}

static void programs_compile_for_every_gpu(void **state)
{
    (void)state;
    needs_plugin();
    CornuProgram *p = product(64);
    for (int i = 0; cornu__pjrt_gpu_at(i); i++) {
        CornuDevice     *device = opened(cornu__pjrt_gpu_at(i), 0);
        CornuExecutable *executable = cornu_device_compile(device, p);
        if (!executable) fail_msg("%s: %s", cornu__pjrt_gpu_at(i), cornu_error_message());
        assert_int_equal(cornu_device_shards(device), 1);
        assert_non_null(strstr(cornu_device_description(device), "pjrt: cuda, NVIDIA "));
        assert_int_equal(cornu_executable_figures(executable).argument_bytes, 64 * 64 * 4);
        cornu_executable_release(executable);
        cornu_device_close(device);
    }
    cornu_program_free(p);
}

static void nothing_runs(void **state)
{
    (void)state;
    needs_plugin();
    CornuProgram *p = product(8);
    CornuDevice  *device = opened("h100", 2);
    Compiled      compiled = compile(device, p);
    assert_int_equal(cornu_device_shards(device), 2);
    expect_error(cornu_executable_run(compiled.executable, compiled.inputs, compiled.outputs),
                 CORNU_ERR_UNSUPPORTED, "compiled ahead of time for NVIDIA H100 SXM5 80GB");
    release(&compiled);
    cornu_device_close(device);
    cornu_program_free(p);
}

/* A file with the L4's description under another name and with 1 MiB of memory: the product's
 * result alone is 4 MiB. */
static void a_described_gpu_has_its_memory(void **state)
{
    (void)state;
    needs_plugin();
    char *target, text[2048];
    expect_ok(cornu__pjrt_gpu_target("l4", &target));
    char *memory = strstr(target, "device_memory_size: 25769803776");
    assert_non_null(memory);
    *memory = '\0';
    snprintf(text, sizeof text, "%sdevice_memory_size: 1048576%s", target,
             memory + strlen("device_memory_size: 25769803776"));
    cornu__release(target);
    files_write(files_path(folder, "gpu"), text, strlen(text));
    CornuDevice  *device = opened(files_path(folder, "gpu"), 1);
    CornuProgram *p = product(1024);
    assert_int_equal(cornu_device_memory(device).capacity, 1048576);
    CornuBuffer *x =
        cornu_buffer_create(.device = device, .type = cornu_type(CORNU_F32, 1024, 1024));
    assert_null(x);
    expect_error(cornu_error_take(), CORNU_ERR_MEMORY, "1.05 MB");
    cornu_program_free(p);
    cornu_device_close(device);
}

static void bad_descriptions_are_refused(void **state)
{
    (void)state;
    needs_plugin();
    char name[FILES_PATH + 32];
    files_write(files_path(folder, "gpu"), "not a description", 17);
    snprintf(name, sizeof name, "pjrt:cuda,topology=%s", files_path(folder, "gpu"));
    expect_failure(cornu_device_open(.name = name), CORNU_ERR_DEVICE, "target_config");
    expect_failure(cornu_device_open(.name = "pjrt:cuda,topology=a1000"), CORNU_ERR_DEVICE,
                   "expected \"a100\", ");
}

static void without_a_gpu_it_says_so(void **state)
{
    (void)state;
    needs_plugin();
    if (cornu__has_gpu()) SKIP_FOR("no GPU: a machine without one");
    expect_failure(cornu_device_open(.name = "pjrt:cuda"), CORNU_ERR_DEVICE,
                   "this machine has no NVIDIA GPU");
}

#define WITH_FILES(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_described),
        cmocka_unit_test(all_gpus_are_described),
        cmocka_unit_test(an_unknown_gpu_is_refused),
        WITH_FILES(a_file_describes_one_too),
        cmocka_unit_test(programs_compile_for_every_gpu),
        cmocka_unit_test(nothing_runs),
        WITH_FILES(a_described_gpu_has_its_memory),
        WITH_FILES(bad_descriptions_are_refused),
        cmocka_unit_test(without_a_gpu_it_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
