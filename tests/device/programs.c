#include "programs.h"

#include "../../device/ops/rules.h"
#include "../expect.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

CornuValue input(CornuProgram *program, CornuType type)
{
    CornuValue value;
    expect_ok(cornu_program_input(program, type, &value));
    return value;
}

CornuValue op(CornuProgram *program, CornuOpId id, const CornuAttributes *attributes,
              const CornuValue *in, int in_count)
{
    CornuValue out[CORNU_MAX_OUTPUTS];
    expect_ok(cornu_program_record(program, id, attributes, in, in_count, out));
    return out[0];
}

CornuValue op0(CornuProgram *program, CornuOpId id, const CornuAttributes *attributes)
{
    return op(program, id, attributes, NULL, 0);
}

CornuValue op1(CornuProgram *program, CornuOpId id, CornuValue x)
{
    return op(program, id, NULL, &x, 1);
}

CornuValue op2(CornuProgram *program, CornuOpId id, CornuValue a, CornuValue b)
{
    return op(program, id, NULL, (CornuValue[]){ a, b }, 2);
}

CornuValue constant(CornuProgram *program, CornuDtype dtype, double value)
{
    CornuAttributes attributes = { .constant = { dtype, value } };
    return op0(program, CORNU_OP_CONSTANT, &attributes);
}

static CornuValue to_shape(CornuProgram *program, CornuOpId id, CornuValue x,
                           CornuShape shape)
{
    CornuAttributes attributes = { .shape = { .rank = shape.rank } };
    for (int i = 0; i < shape.rank; i++) attributes.shape.extents[i] = shape.extent[i];
    return op(program, id, &attributes, &x, 1);
}

CornuValue broadcast(CornuProgram *program, CornuValue x, CornuShape shape)
{
    return to_shape(program, CORNU_OP_BROADCAST, x, shape);
}

CornuValue reshape(CornuProgram *program, CornuValue x, CornuShape shape)
{
    return to_shape(program, CORNU_OP_RESHAPE, x, shape);
}

CornuValue convert(CornuProgram *program, CornuValue x, CornuDtype dtype)
{
    return op(program, CORNU_OP_CONVERT, &(CornuAttributes){ .convert = { dtype } }, &x,
              1);
}

CornuValue reduce(CornuProgram *program, CornuOpId id, CornuValue x, int64_t axes)
{
    return op(program, id, &(CornuAttributes){ .reduce = { axes, 0, 0 } }, &x, 1);
}

void output(CornuProgram *program, CornuValue value, int alias)
{
    expect_ok(cornu_program_output(program, value, alias));
}

Compiled compile(CornuDevice *device, const CornuProgram *program)
{
    Compiled compiled = { .device = device, .program = program };
    if (!device) fail_msg("%s", cornu_error_message());
    compiled.executable = cornu_device_compile(device, program);
    if (!compiled.executable) fail_msg("%s", cornu_error_message());
    compiled.inputs = calloc((size_t)program->input_count + 1, sizeof(CornuBuffer *));
    compiled.outputs = calloc((size_t)program->output_count + 1, sizeof(CornuBuffer *));
    const int shards = cornu_device_shards(device);
    for (int i = 0; i < program->input_count; i++)
        compiled.inputs[i] = cornu_buffer_create(
            device, cornu_program_buffer_type(program, program->inputs[i], shards));
    for (int i = 0; i < program->output_count; i++)
        if (program->outputs[i].alias < 0)
            compiled.outputs[i] = cornu_buffer_create(
                device, cornu_program_buffer_type(program, program->outputs[i].value, shards));
    return compiled;
}

void set_input(Compiled *compiled, int i, const void *data)
{
    CornuType type = cornu_buffer_type(compiled->inputs[i]);
    expect_ok(
        cornu_buffer_write(compiled->inputs[i], cornu_array_from((void *)data, type)));
}

void set_numbers(Compiled *compiled, int i, const double *numbers)
{
    CornuType  type = cornu_buffer_type(compiled->inputs[i]);
    CornuArray array = { type, malloc(cornu_type_bytes(type) + 1) };
    for (int64_t k = 0; k < cornu_type_count(type); k++) cornu_array_set(array, k, numbers[k]);
    expect_ok(cornu_buffer_write(compiled->inputs[i], array));
    free(array.data);
}

int64_t draw(uint64_t *state, int64_t count)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*state >> 33) % (uint64_t)count);
}

void set_inputs(Compiled *compiled, uint64_t seed)
{
    uint64_t state = seed * 2654435761u + 99;
    for (int k = 0; k < compiled->program->input_count; k++) {
        CornuType  type = cornu_buffer_type(compiled->inputs[k]);
        CornuArray array = { type, malloc(cornu_type_bytes(type) + 1) };
        for (int64_t i = 0, count = cornu_type_count(type); i < count; i++) {
            double real = (double)(draw(&state, 511) - 255) / 128.0;
            cornu_array_set(array, i,
                            cornu_dtype_is_float(type.dtype) ? real
                            : type.dtype == CORNU_BOOL       ? (double)draw(&state, 2)
                                                             : (double)draw(&state, 10));
        }
        expect_ok(cornu_buffer_write(compiled->inputs[k], array));
        free(array.data);
    }
}

void run(Compiled *compiled)
{
    expect_ok(
        cornu_executable_run(compiled->executable, compiled->inputs, compiled->outputs));
}

static double *read_all(const CornuBuffer *buffer, int64_t *count)
{
    CornuType  type = cornu_buffer_type(buffer);
    CornuArray array = { type, malloc(cornu_type_bytes(type) + 1) };
    expect_ok(cornu_buffer_read(buffer, array));
    *count = cornu_type_count(type);
    double *values = malloc((size_t)*count * sizeof *values + 1);
    for (int64_t i = 0; i < *count; i++) values[i] = cornu_array_get(array, i);
    free(array.data);
    return values;
}

double *get_output(const Compiled *compiled, int i, int64_t *count)
{
    int alias = compiled->program->outputs[i].alias;
    return read_all(alias < 0 ? compiled->outputs[i] : compiled->inputs[alias], count);
}

double *get_input(const Compiled *compiled, int i, int64_t *count)
{
    return read_all(compiled->inputs[i], count);
}

void expect_within(const Compiled *compiled, int i, const double *expected, const double *bound)
{
    int64_t count;
    double *got = get_output(compiled, i, &count);
    for (int64_t k = 0; k < count; k++)
        if (!(fabs(got[k] - expected[k]) <= bound[k]))
            fail_msg("output %d, element %lld: %.9g, expected %.9g within %.2g", i, (long long)k,
                     got[k], expected[k], bound[k]);
    free(got);
}

void release(Compiled *compiled)
{
    for (int i = 0; i < compiled->program->input_count; i++)
        cornu_buffer_free(compiled->inputs[i]);
    for (int i = 0; i < compiled->program->output_count; i++)
        cornu_buffer_free(compiled->outputs[i]);
    free(compiled->inputs);
    free(compiled->outputs);
    cornu_executable_release(compiled->executable);
}

double *numbers_of(CornuDevice *device, const CornuProgram *program, uint64_t seed, int64_t *count)
{
    Compiled made = compile(device, program);
    set_inputs(&made, seed);
    run(&made);
    double *got = get_output(&made, 0, count);
    release(&made);
    return got;
}

const CornuStatistics *statistics(const Compiled *compiled)
{
    return cornu_executable_statistics(compiled->executable);
}
