#include "options.h"

#include <string.h>

/* The fields that are set:
 *     CompileOptionsProto     executable_build_options 3, env_option_overrides 7 (a map: key 1,
 *                             value 2)
 *     OptionOverrideProto     bool_field 2
 *     ExecutableBuildOptions  device_ordinal 1 (-1: none), num_replicas 4, num_partitions 5,
 *                             device_assignment 9
 *     DeviceAssignment        replica_count 1, computation_count 2, computation_devices 3
 *     ComputationDevice       replica_device_ids 1, packed */
enum { VARINT = 0, BYTES = 2 };

static void put_varint(CornuPjrtOptions *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7) to->bytes[to->size++] = (char)(number | 0x80);
    to->bytes[to->size++] = (char)number;
}

static void put_number(CornuPjrtOptions *to, int field, uint64_t number)
{
    put_varint(to, (uint64_t)field << 3 | VARINT);
    put_varint(to, number);
}

static void put_message(CornuPjrtOptions *to, int field, const CornuPjrtOptions *message)
{
    put_varint(to, (uint64_t)field << 3 | BYTES);
    put_varint(to, message->size);
    memcpy(to->bytes + to->size, message->bytes, message->size);
    to->size += message->size;
}

static void put_text(CornuPjrtOptions *to, int field, const char *text)
{
    CornuPjrtOptions bytes = { .size = strlen(text) };
    memcpy(bytes.bytes, text, bytes.size);
    put_message(to, field, &bytes);
}

/* A flag of XLA's. */
static void put_flag(CornuPjrtOptions *to, const char *flag, bool on)
{
    CornuPjrtOptions value = { .size = 0 }, entry = { .size = 0 };
    put_number(&value, 2, on);
    put_text(&entry, 1, flag);
    put_message(&entry, 2, &value);
    put_message(to, 7, &entry);
}

void cornu__pjrt_options(CornuPjrtOptions *options, const CornuPjrtDevice *device)
{
    const int  replicas = device->base.shards;
    const int *ids = device->ids;
    CornuPjrtOptions numbers = { .size = 0 }, row = { .size = 0 }, assignment = { .size = 0 };
    CornuPjrtOptions build = { .size = 0 };
    for (int i = 0; i < replicas; i++) put_varint(&numbers, (uint64_t)ids[i]);
    put_message(&row, 1, &numbers);
    put_number(&assignment, 1, (uint64_t)replicas);
    put_number(&assignment, 2, 1);
    put_message(&assignment, 3, &row);
    put_number(&build, 1, UINT64_MAX);
    put_number(&build, 4, (uint64_t)replicas);
    put_number(&build, 5, 1);
    put_message(&build, 9, &assignment);
    options->size = 0;
    put_message(options, 3, &build);
    if (device->is_cpu) put_flag(options, "xla_cpu_enable_fast_min_max", false);   /* loses NaN */
    if (device->is_gpu && device->target.deterministic)
        put_flag(options, "xla_gpu_exclude_nondeterministic_ops", true);
}
