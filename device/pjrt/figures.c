/*
 * What XLA says of a compiled program. The optimized program comes as a protobuf; these fields of
 * it are read (xla/service/hlo.proto):
 *     HloModuleProtoWithConfig  hlo_module 1
 *     HloModuleProto            computations 3
 *     HloComputationProto       instructions 2, id 5
 *     HloInstructionProto       opcode 2, called_computation_ids 38
 */
#include "figures.h"

#include <string.h>

#include "../memory_internal.h"

void cornu__pjrt_read_memory(const CornuPjrtPlugin *plugin, PjrtExecutable *executable,
                             CornuCompiledFigures *figures)
{
    PjrtExecutableMemoryStats stats = PJRT_ARGUMENTS(PjrtExecutableMemoryStats,
                                                     .executable = executable);
    if (!cornu__pjrt_try(plugin, PJRT_EXECUTABLE_MEMORY_STATS, &stats)) return;
    figures->has_memory = true;
    figures->argument_bytes = stats.arguments;
    figures->output_bytes = stats.outputs;
    figures->alias_bytes = stats.aliases;
    figures->temporary_bytes = stats.temporaries;
    figures->code_bytes = stats.code;
    figures->peak_bytes = stats.peak;
}

static void read_cost(const CornuPjrtPlugin *plugin, PjrtExecutable *executable,
                      CornuCompiledFigures *figures)
{
    PjrtExecutableCostAnalysis cost = PJRT_ARGUMENTS(PjrtExecutableCostAnalysis,
                                                     .executable = executable);
    if (!cornu__pjrt_try(plugin, PJRT_EXECUTABLE_COST_ANALYSIS, &cost)) return;
    for (size_t i = 0; i < cost.count; i++) {
        const PjrtNamedValue *property = &cost.properties[i];
        const size_t          size = property->name_size;
        const bool            flops = size == 5 && memcmp(property->name, "flops", size) == 0;
        const bool            bytes = size == 14 &&
                                      memcmp(property->name, "bytes accessed", size) == 0;
        if (property->type != PJRT_FLOAT || (!flops && !bytes)) continue;
        *(flops ? &figures->flops : &figures->bytes_accessed) = (double)property->value.real;
        figures->has_cost = true;
    }
}

/* ---- Protobufs ---- */

typedef struct {
    const unsigned char *at, *end;
} Bytes;

typedef struct {
    int      number;   /* 0: none is left, or the rest cannot be read */
    uint64_t value;    /* of a number */
    Bytes    bytes;    /* of a message, a string, packed numbers */
} Field;

static uint64_t read_varint(Bytes *from)
{
    uint64_t value = 0;
    for (int shift = 0; from->at < from->end && shift < 64; shift += 7) {
        const unsigned char byte = *from->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) return value;
    }
    from->at = from->end;
    return 0;
}

static Field next(Bytes *from)
{
    enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };
    const uint64_t tag = read_varint(from);
    const uint64_t left = (uint64_t)(from->end - from->at);
    const int      kind = (int)(tag & 7);
    Field          field = { .number = (int)(tag >> 3) };
    if (kind == VARINT) {
        field.value = read_varint(from);
        return field;
    }
    const uint64_t size = kind == FIXED64 ? 8 : kind == FIXED32 ? 4
                        : kind == BYTES   ? read_varint(from) : left + 1;
    if (size > (uint64_t)(from->end - from->at)) return (Field){ .number = 0 };
    field.bytes = (Bytes){ from->at, from->at + size };
    from->at += size;
    return field;
}

static Bytes find_field(Bytes message, int number)
{
    for (Field field; (field = next(&message)).number;)
        if (field.number == number) return field.bytes;
    return (Bytes){ NULL, NULL };
}

/* ---- The optimized program ---- */

/* Computations by their numbers: those that are the inside of a fusion. */
typedef struct {
    uint64_t *ids;
    int       count, space;
} Inside;

static bool is_fusion(Bytes instruction)
{
    static const char opcode[] = "fusion";
    const Bytes       own = find_field(instruction, 2);
    return own.at && own.end - own.at == sizeof opcode - 1 &&
           memcmp(own.at, opcode, sizeof opcode - 1) == 0;
}

static bool add_id(Inside *inside, uint64_t id)
{
    if (cornu__reserve(&inside->ids, &inside->space, inside->count, 1, sizeof *inside->ids))
        return false;
    inside->ids[inside->count++] = id;
    return true;
}

static bool add_called(Inside *inside, Bytes instruction)
{
    for (Field field; (field = next(&instruction)).number;) {
        if (field.number != 38) continue;
        if (!field.bytes.at && !add_id(inside, field.value)) return false;
        while (field.bytes.at < field.bytes.end)
            if (!add_id(inside, read_varint(&field.bytes))) return false;
    }
    return true;
}

/* Finds the insides of all fusions. */
static bool find_inside(Bytes module, Inside *inside)
{
    for (Field c; (c = next(&module)).number;)
        for (Field i; c.number == 3 && (i = next(&c.bytes)).number;)
            if (i.number == 2 && is_fusion(i.bytes) && !add_called(inside, i.bytes)) return false;
    return true;
}

/* The fusions of a computation; none if it is one's inside. */
static int64_t count_in(Bytes computation, const Inside *inside)
{
    int64_t count = 0;
    for (Field field; (field = next(&computation)).number;) {
        for (int i = 0; field.number == 5 && i < inside->count; i++)
            if (inside->ids[i] == field.value) return 0;
        count += field.number == 2 && is_fusion(field.bytes);
    }
    return count;
}

static void count_fusions(Bytes program, CornuCompiledFigures *figures)
{
    Bytes  module = find_field(program, 1);
    Inside inside = { .ids = NULL };
    if (module.at && find_inside(module, &inside)) {
        figures->has_program = true;
        for (Field field; (field = next(&module)).number;)
            if (field.number == 3) figures->fusions += count_in(field.bytes, &inside);
    }
    cornu__release(inside.ids);
}

static void read_program(const CornuPjrtPlugin *plugin, PjrtExecutable *executable,
                         CornuCompiledFigures *figures)
{
    static const char format[] = "hlo_with_config";
    PjrtProgram       program = PJRT_ARGUMENTS(PjrtProgram, .code = NULL);
    PjrtExecutableOptimizedProgram get = PJRT_ARGUMENTS(PjrtExecutableOptimizedProgram,
        .executable = executable, .program = &program);
    if (!cornu__pjrt_try(plugin, PJRT_EXECUTABLE_OPTIMIZED_PROGRAM, &get) ||
        !program.code_size)
        return;
    unsigned char *code = cornu__allocate(program.code_size, 1);
    if (!code) return;
    program.code = (char *)code;
    if (cornu__pjrt_try(plugin, PJRT_EXECUTABLE_OPTIMIZED_PROGRAM, &get) &&
        program.format_size == sizeof format - 1 &&
        memcmp(program.format, format, sizeof format - 1) == 0)
        count_fusions((Bytes){ code, code + program.code_size }, figures);
    cornu__release(code);
}

void cornu__pjrt_read_figures(const CornuPjrtPlugin *plugin, PjrtExecutable *executable,
                              CornuCompiledFigures *figures)
{
    cornu__pjrt_read_memory(plugin, executable, figures);
    read_cost(plugin, executable, figures);
    read_program(plugin, executable, figures);
}
