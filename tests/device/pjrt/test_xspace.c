/* Times of devices, read from profiles. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/pjrt/xspace.h"
#include "spaces.h"

static const int64_t now_ns = 1700000000000000000;

/* Bytes that are followed by memory which cannot be read. */
static int seconds_of(const void *bytes, size_t size, int most, double *seconds)
{
    static char *guarded;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!guarded) {
        guarded = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(guarded != MAP_FAILED);
        assert_int_equal(mprotect(guarded + page, page, PROT_NONE), 0);
    }
    assert_true(size <= page);
    memcpy(guarded + page - size, bytes, size);
    return cornu__xspace_seconds(guarded + page - size, size, most, seconds);
}

static void expect_seconds(const Space *space, int count, const double *expected)
{
    double seconds[8] = { 0 };
    assert_int_equal(seconds_of(space->bytes, space->size, 8, seconds), count);
    for (int i = 0; i < count; i++)
        if (fabs(seconds[i] - expected[i]) > 1e-12)
            fail_msg("device %d: %.15g s, expected %.15g s", i, seconds[i], expected[i]);
}

static void expect_damaged(const Space *space)
{
    double seconds[8];
    assert_int_equal(seconds_of(space->bytes, space->size, 8, seconds), -1);
}

/* A space of one device with one line. */
static Space of_line(const char *name, const Space *line)
{
    Space space = { .size = 0 }, plane = space_plane(1, name);
    space_add_line(&plane, line);
    space_add_plane(&space, &plane);
    return space;
}

/* ---- A sample ----
 *
 * Made with jaxlib 0.10.2 from text:
 *
 *     from jax.profiler import ProfileData
 *     print(ProfileData.text_proto_to_serialized_xspace("""
 *         planes { id: 9 name: "/host:CPU" lines { id: 1 name: "python" timestamp_ns: T
 *             events { metadata_id: 1 offset_ps: 0 duration_ps: 9000000000 } } }
 *         planes { id: 3 name: "/device:TPU:1"
 *             lines { id: 1 name: "XLA Modules" timestamp_ns: T + 500
 *                 events { metadata_id: 1 offset_ps: 1000000 duration_ps: 2500000000
 *                     stats { metadata_id: 1 double_value: 0.5 }
 *                     stats { metadata_id: 2 str_value: "jit_step" } } }
 *             lines { id: 2 name: "XLA Ops" timestamp_ns: T
 *                 events { metadata_id: 2 offset_ps: 0 duration_ps: 7000000000 } }
 *             event_metadata { key: 1 value { id: 1 name: "jit_step(123)" } }
 *             stat_metadata { key: 1 value { id: 1 name: "x" } } }
 *         planes { id: 2 name: "/device:TPU:0"
 *             lines { id: 2 name: "Steps" timestamp_ns: T
 *                 events { metadata_id: 1 offset_ps: 0 duration_ps: 8000000000 } }
 *             lines { id: 1 name: "XLA Modules" timestamp_ns: T
 *                 events { metadata_id: 1 offset_ps: 5000000 duration_ps: 1000000000 }
 *                 events { metadata_id: 1 offset_ps: 1205000000 duration_ps: 300000000 }
 *                 events { metadata_id: 1 num_occurrences: 5 duration_ps: 77000000000 } } }
 *         planes { id: 4 name: "/device:TPU:0 SparseCore 0" lines { id: 1 name: "XLA Modules"
 *             events { metadata_id: 1 offset_ps: 0 duration_ps: 6000000000 } } }
 *         planes { id: 5 name: "/device:TPU:2" }
 *         planes { id: 6 name: "/device:TPU:3" lines { id: 1 name: "XLA Ops"
 *             events { metadata_id: 1 offset_ps: 0 duration_ps: 6000000000 } } }
 *         planes { id: 7 name: "/device:CUSTOM:Megascale" lines { id: 1 name: "XLA Modules"
 *             events { metadata_id: 1 offset_ps: 0 duration_ps: 6000000000 } } }
 *         hostnames: "host" """))
 *
 * with T = 1700000000000000000. */
static const unsigned char sample[] = {
    0x0a, 0x2f, 0x08, 0x09, 0x12, 0x09, 0x2f, 0x68, 0x6f, 0x73, 0x74, 0x3a, 0x43, 0x50, 0x55, 0x1a,
    0x20, 0x08, 0x01, 0x12, 0x06, 0x70, 0x79, 0x74, 0x68, 0x6f, 0x6e, 0x18, 0x80, 0x80, 0xa8, 0xb1,
    0xe3, 0x9f, 0xe7, 0xcb, 0x17, 0x22, 0x0a, 0x08, 0x01, 0x10, 0x00, 0x18, 0x80, 0xb4, 0xc4, 0xc3,
    0x21, 0x0a, 0x9a, 0x01, 0x08, 0x03, 0x12, 0x0d, 0x2f, 0x64, 0x65, 0x76, 0x69, 0x63, 0x65, 0x3a,
    0x54, 0x50, 0x55, 0x3a, 0x31, 0x1a, 0x42, 0x08, 0x01, 0x12, 0x0b, 0x58, 0x4c, 0x41, 0x20, 0x4d,
    0x6f, 0x64, 0x75, 0x6c, 0x65, 0x73, 0x18, 0xf4, 0x83, 0xa8, 0xb1, 0xe3, 0x9f, 0xe7, 0xcb, 0x17,
    0x22, 0x27, 0x08, 0x01, 0x10, 0xc0, 0x84, 0x3d, 0x18, 0x80, 0xf2, 0x8b, 0xa8, 0x09, 0x22, 0x0b,
    0x08, 0x01, 0x11, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xe0, 0x3f, 0x22, 0x0c, 0x08, 0x02, 0x2a,
    0x08, 0x6a, 0x69, 0x74, 0x5f, 0x73, 0x74, 0x65, 0x70, 0x1a, 0x21, 0x08, 0x02, 0x12, 0x07, 0x58,
    0x4c, 0x41, 0x20, 0x4f, 0x70, 0x73, 0x18, 0x80, 0x80, 0xa8, 0xb1, 0xe3, 0x9f, 0xe7, 0xcb, 0x17,
    0x22, 0x0a, 0x08, 0x02, 0x10, 0x00, 0x18, 0x80, 0x8c, 0xee, 0x89, 0x1a, 0x22, 0x15, 0x08, 0x01,
    0x12, 0x11, 0x08, 0x01, 0x12, 0x0d, 0x6a, 0x69, 0x74, 0x5f, 0x73, 0x74, 0x65, 0x70, 0x28, 0x31,
    0x32, 0x33, 0x29, 0x2a, 0x09, 0x08, 0x01, 0x12, 0x05, 0x08, 0x01, 0x12, 0x01, 0x78, 0x0a, 0x79,
    0x08, 0x02, 0x12, 0x0d, 0x2f, 0x64, 0x65, 0x76, 0x69, 0x63, 0x65, 0x3a, 0x54, 0x50, 0x55, 0x3a,
    0x30, 0x1a, 0x1f, 0x08, 0x02, 0x12, 0x05, 0x53, 0x74, 0x65, 0x70, 0x73, 0x18, 0x80, 0x80, 0xa8,
    0xb1, 0xe3, 0x9f, 0xe7, 0xcb, 0x17, 0x22, 0x0a, 0x08, 0x01, 0x10, 0x00, 0x18, 0x80, 0xa0, 0xd9,
    0xe6, 0x1d, 0x1a, 0x45, 0x08, 0x01, 0x12, 0x0b, 0x58, 0x4c, 0x41, 0x20, 0x4d, 0x6f, 0x64, 0x75,
    0x6c, 0x65, 0x73, 0x18, 0x80, 0x80, 0xa8, 0xb1, 0xe3, 0x9f, 0xe7, 0xcb, 0x17, 0x22, 0x0d, 0x08,
    0x01, 0x10, 0xc0, 0x96, 0xb1, 0x02, 0x18, 0x80, 0x94, 0xeb, 0xdc, 0x03, 0x22, 0x0e, 0x08, 0x01,
    0x10, 0xc0, 0xae, 0xcb, 0xbe, 0x04, 0x18, 0x80, 0xc6, 0x86, 0x8f, 0x01, 0x22, 0x0b, 0x08, 0x01,
    0x18, 0x80, 0x84, 0xbb, 0xec, 0x9e, 0x02, 0x28, 0x05, 0x0a, 0x3b, 0x08, 0x04, 0x12, 0x1a, 0x2f,
    0x64, 0x65, 0x76, 0x69, 0x63, 0x65, 0x3a, 0x54, 0x50, 0x55, 0x3a, 0x30, 0x20, 0x53, 0x70, 0x61,
    0x72, 0x73, 0x65, 0x43, 0x6f, 0x72, 0x65, 0x20, 0x30, 0x1a, 0x1b, 0x08, 0x01, 0x12, 0x0b, 0x58,
    0x4c, 0x41, 0x20, 0x4d, 0x6f, 0x64, 0x75, 0x6c, 0x65, 0x73, 0x22, 0x0a, 0x08, 0x01, 0x10, 0x00,
    0x18, 0x80, 0xf8, 0x82, 0xad, 0x16, 0x0a, 0x11, 0x08, 0x05, 0x12, 0x0d, 0x2f, 0x64, 0x65, 0x76,
    0x69, 0x63, 0x65, 0x3a, 0x54, 0x50, 0x55, 0x3a, 0x32, 0x0a, 0x2a, 0x08, 0x06, 0x12, 0x0d, 0x2f,
    0x64, 0x65, 0x76, 0x69, 0x63, 0x65, 0x3a, 0x54, 0x50, 0x55, 0x3a, 0x33, 0x1a, 0x17, 0x08, 0x01,
    0x12, 0x07, 0x58, 0x4c, 0x41, 0x20, 0x4f, 0x70, 0x73, 0x22, 0x0a, 0x08, 0x01, 0x10, 0x00, 0x18,
    0x80, 0xf8, 0x82, 0xad, 0x16, 0x0a, 0x39, 0x08, 0x07, 0x12, 0x18, 0x2f, 0x64, 0x65, 0x76, 0x69,
    0x63, 0x65, 0x3a, 0x43, 0x55, 0x53, 0x54, 0x4f, 0x4d, 0x3a, 0x4d, 0x65, 0x67, 0x61, 0x73, 0x63,
    0x61, 0x6c, 0x65, 0x1a, 0x1b, 0x08, 0x01, 0x12, 0x0b, 0x58, 0x4c, 0x41, 0x20, 0x4d, 0x6f, 0x64,
    0x75, 0x6c, 0x65, 0x73, 0x22, 0x0a, 0x08, 0x01, 0x10, 0x00, 0x18, 0x80, 0xf8, 0x82, 0xad, 0x16,
    0x22, 0x04, 0x68, 0x6f, 0x73, 0x74,
};

/* From the first module's begin to the last one's end, by number; ops, steps, sums, other cores and
 * devices that ran no module do not count. */
static void modules_of_a_tpu(void **state)
{
    (void)state;
    Space space = { .size = sizeof sample };
    memcpy(space.bytes, sample, sizeof sample);
    expect_seconds(&space, 2, (const double[]){ 1.5e-3, 2.5e-3 });
    space.bytes[space.size++] = 0;   /* as profilers of XLA end it */
    expect_seconds(&space, 2, (const double[]){ 1.5e-3, 2.5e-3 });
    double seconds[2] = { -1.0, -1.0 };
    assert_int_equal(seconds_of(sample, sizeof sample, 1, seconds), 2);
    assert_true(seconds[0] > 0.0 && seconds[1] == -1.0);
}

/* ---- Other devices ---- */

/* On a GPU copies between host and device do not count beside kernels. */
static void kernels_of_gpus(void **state)
{
    (void)state;
    Space space = { .size = 0 };
    for (int i = 1; i >= 0; i--) {
        char  name[32];
        snprintf(name, sizeof name, "/device:GPU:%d", i);
        Space plane = space_plane(i, name);
        Space copies = space_line("Stream #13(MemcpyH2D)", now_ns);
        Space graph = space_line("Stream #15(CudaGraph)", now_ns + 100);
        Space kernels = space_line("Stream #14(MemcpyD2D,Compute)", now_ns + 200);
        Space overhead = space_line("CUPTI overhead", now_ns);
        space_event(&copies, 0, 900000);
        space_event(&graph, 0, 300000);
        space_event(&kernels, 1000, 50000);
        space_event(&kernels, 150000, 100000 * (i + 1));
        space_event(&overhead, 0, 5000000);
        space_add_line(&plane, &copies);
        space_add_line(&plane, &graph);
        space_add_line(&plane, &kernels);
        space_add_line(&plane, &overhead);
        space_add_plane(&space, &plane);
    }
    expect_seconds(&space, 2, (const double[]){ 350e-9, 450e-9 });
}

/* Fields that are not known are skipped. */
static void anything_of_other_devices(void **state)
{
    (void)state;
    static const unsigned char unknown[] = { 12 << 3 | 5, 1, 2, 3, 4, 13 << 3 | 2, 1, 0,
                                             14 << 3 | 1, 1, 2, 3, 4, 5, 6, 7, 8, 15 << 3, 0 };
    Space line = space_line("queue", now_ns);
    memcpy(line.bytes + line.size, unknown, sizeof unknown);
    line.size += sizeof unknown;
    space_event(&line, 2000, 3000);
    space_event(&line, -4000, 1000);
    Space space = of_line("/device:NPU:0", &line);
    expect_seconds(&space, 1, (const double[]){ 9e-9 });
}

/* What is shown instead of a name comes first. */
static void lines_have_two_names(void **state)
{
    (void)state;
    Space plane = space_plane(1, "/device:TPU:0"), space = { .size = 0 };
    Space ops = space_line("XLA Modules", now_ns), modules = space_line("7", now_ns);
    space_bytes(&ops, 11, "XLA Ops", 7);
    space_bytes(&modules, 11, "XLA Modules", 11);
    space_event(&ops, 0, 9000000);
    space_event(&modules, 0, 2000000);
    space_add_line(&plane, &ops);
    space_add_line(&plane, &modules);
    space_add_plane(&space, &plane);
    expect_seconds(&space, 1, (const double[]){ 2e-6 });
}

static void without_devices_there_are_no_times(void **state)
{
    (void)state;
    double seconds;
    Space  space = { .size = 0 }, line = space_line("XLA Modules", now_ns);
    assert_int_equal(cornu__xspace_seconds(NULL, 0, 1, &seconds), 0);
    expect_seconds(&space, 0, NULL);
    space.bytes[space.size++] = 0;
    expect_seconds(&space, 0, NULL);
    space = of_line("/device:TPU:0", &line);
    expect_seconds(&space, 0, NULL);
    space_event(&line, 0, 1000);
    space = of_line("/host:CPU", &line);
    expect_seconds(&space, 0, NULL);
    space = of_line("/device:", &line);
    expect_seconds(&space, 1, (const double[]){ 1e-9 });
}

/* More than are kept. */
static void many_devices(void **state)
{
    (void)state;
    Space space = { .size = 0 };
    for (int i = 0; i < 40; i++) {
        Space line = { .size = 0 }, plane = { .size = 0 };
        space_event(&line, 0, 1000);
        space_bytes(&plane, 2, "/device:", 8);
        space_add_line(&plane, &line);
        space_add_plane(&space, &plane);
    }
    Space  twice;
    double seconds[8];
    char   bytes[2 * sizeof twice.bytes];
    memcpy(bytes, space.bytes, space.size);
    memcpy(bytes + space.size, space.bytes, space.size);
    assert_int_equal(seconds_of(bytes, 2 * space.size, 8, seconds), 64);
}

/* ---- Damage ---- */

static void damaged_fields(void **state)
{
    (void)state;
    static const struct { const char *what; size_t size; unsigned char bytes[16]; } damages[] = {
        { "no value", 1, { 0x08 } },
        { "a number that does not end", 3, { 0x08, 0xff, 0xff } },
        { "a number of 11 bytes", 12, { 0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                        0x80, 0x00 } },
        { "no size", 1, { 0x12 } },
        { "more bytes than there are", 3, { 0x12, 0x02, 0x00 } },
        { "more bytes than any", 11, { 0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0x01 } },
        { "half of 8 bytes", 5, { 0x11, 0, 0, 0, 0 } },
        { "half of 4 bytes", 3, { 0x15, 0, 0 } },
        { "a group", 2, { 0x13, 0x14 } },
        { "type 6", 2, { 0x16, 0 } },
        { "type 7", 2, { 0x17, 0 } },
        { "field 0", 2, { 0x00, 0x00 } },
    };
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        Space line = space_line("XLA Modules", now_ns), space = { .size = 0 };
        memcpy(space.bytes, damages[i].bytes, damages[i].size);
        space.size = damages[i].size;
        expect_damaged(&space);
        Space event = space, within = line;
        space_bytes(&within, 4, event.bytes, event.size);
        space = of_line("/device:TPU:0", &within);
        expect_damaged(&space);
    }
    Space line = space_line("XLA Modules", now_ns);
    space_event(&line, 0, -1);
    Space space = of_line("/device:TPU:0", &line);
    expect_damaged(&space);
}

/* Numbers at the ends of their ranges do not overflow. */
static void extreme_numbers(void **state)
{
    (void)state;
    static const int64_t numbers[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX };
    enum { COUNT = sizeof numbers / sizeof *numbers };
    for (int i = 0; i < COUNT * COUNT * COUNT; i++) {
        Space plane = space_plane(numbers[i % COUNT], "/device:TPU:0"), space = { .size = 0 };
        Space first = space_line("XLA Modules", numbers[i / COUNT % COUNT]);
        Space second = space_line("XLA Modules", numbers[i % COUNT]);
        double seconds;
        space_event(&first, numbers[i / COUNT / COUNT], INT64_MAX);
        space_event(&second, numbers[i / COUNT / COUNT], 1);
        space_add_line(&plane, &first);
        space_add_line(&plane, &second);
        space_add_plane(&space, &plane);
        assert_int_equal(seconds_of(space.bytes, space.size, 1, &seconds), 1);
        assert_true(seconds > 0.0 && isfinite(seconds));
    }
}

/* Nothing is read beyond a sample's end, wherever it is cut and whatever its bytes are. */
static void cut_and_changed_samples(void **state)
{
    (void)state;
    double        seconds[2];
    unsigned char bytes[sizeof sample];
    uint64_t      random = 1;
    for (size_t size = 0; size < sizeof sample; size++) {
        const int found = seconds_of(sample, size, 2, seconds);
        assert_in_range(found + 1, 0, 4);
    }
    int damaged = 0;
    for (int i = 0; i < 100000; i++) {
        memcpy(bytes, sample, sizeof sample);
        for (int k = 0; k < 1 + i % 4; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[(random >> 33) % sizeof sample] ^= (unsigned char)(1 + (random >> 20) % 255);
        }
        const int found = seconds_of(bytes, sizeof bytes, 2, seconds);
        assert_in_range(found + 1, 0, 8);
        damaged += found < 0;
    }
    assert_in_range(damaged, 10000, 90000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_of_a_tpu),
        cmocka_unit_test(kernels_of_gpus),
        cmocka_unit_test(anything_of_other_devices),
        cmocka_unit_test(lines_have_two_names),
        cmocka_unit_test(without_devices_there_are_no_times),
        cmocka_unit_test(many_devices),
        cmocka_unit_test(damaged_fields),
        cmocka_unit_test(extreme_numbers),
        cmocka_unit_test(cut_and_changed_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
