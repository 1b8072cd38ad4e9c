/* Making graphs: graph.h. */
#include "graph.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"

size_t cornu__lite_dtype_size(CornuLiteDtype dtype)
{
    switch (dtype) {
    case CORNU_LITE_F32:
    case CORNU_LITE_I32:  return 4;
    case CORNU_LITE_F16:
    case CORNU_LITE_I16:  return 2;
    case CORNU_LITE_I64:
    case CORNU_LITE_COMPLEX64: return 8;
    case CORNU_LITE_U8:
    case CORNU_LITE_BOOL:
    case CORNU_LITE_I8:   return 1;
    }
    return 0;
}

const char *cornu__lite_dtype_name(CornuLiteDtype dtype)
{
    switch (dtype) {
    case CORNU_LITE_F32:  return "f32";
    case CORNU_LITE_F16:  return "f16";
    case CORNU_LITE_I32:  return "i32";
    case CORNU_LITE_U8:   return "u8";
    case CORNU_LITE_I64:  return "i64";
    case CORNU_LITE_BOOL: return "bool";
    case CORNU_LITE_I16:  return "i16";
    case CORNU_LITE_COMPLEX64: return "complex64";
    case CORNU_LITE_I8:   return "i8";
    }
    return "?";
}

const char *cornu__lite_code_name(int code)
{
    static const char *const names[] = {
#define BUILTIN(name) #name,
#include "builtins.def"
#undef BUILTIN
    };
    return code >= 0 && code < (int)(sizeof names / sizeof *names) ? names[code] : NULL;
}

CornuLiteGraph *cornu__lite_graph_create(const char *name)
{
    CornuLiteGraph *graph = cornu__allocate(1, sizeof *graph);
    if (!graph) return NULL;
    if (!name || (graph->name = cornu__copy_text(name))) return graph;
    cornu__release(graph);
    return NULL;
}

static void free_ports(CornuLitePort *ports, int count)
{
    for (int i = 0; i < count; i++) cornu__release(ports[i].name);
    cornu__release(ports);
}

static void free_scales(CornuLiteQuantization *quantization)
{
    cornu__release(quantization->scales);
    cornu__release(quantization->zero_points);
    *quantization = (CornuLiteQuantization){ 0 };
}

void cornu__lite_graph_free(CornuLiteGraph *graph)
{
    if (!graph) return;
    for (int i = 0; i < graph->tensor_count; i++) {
        cornu__release(graph->tensors[i].name);
        cornu__release(graph->tensors[i].data);
        free_scales(&graph->tensors[i].quantization);
    }
    for (int i = 0; i < graph->operator_count; i++) {
        cornu__release(graph->operators[i].in);
        cornu__release(graph->operators[i].out);
        cornu__release(graph->operators[i].custom);
        cornu__release(graph->operators[i].custom_options);
    }
    for (int i = 0; i < graph->variable_count; i++) cornu__release(graph->variables[i].name);
    cornu__release(graph->variables);
    cornu__release(graph->tensors);
    cornu__release(graph->operators);
    free_ports(graph->inputs, graph->input_count);
    free_ports(graph->outputs, graph->output_count);
    cornu__release(graph->name);
    cornu__release(graph);
}

/* Room for one more of an array; false when out of memory, now or before. */
static bool room(CornuLiteGraph *graph, void *items, int *space, int count, size_t size)
{
    if (!graph->status) graph->status = cornu__reserve(items, space, count, 1, size);
    return !graph->status;
}

static void *failed(CornuLiteGraph *graph)
{
    graph->status = CORNU_ERR_MEMORY;
    return NULL;
}

static void *copied(CornuLiteGraph *graph, const void *items, size_t count, size_t size)
{
    void *copy = graph->status ? NULL : cornu__allocate(count, size);
    if (!copy) return failed(graph);
    if (items && count) memcpy(copy, items, count * size);
    return copy;
}

int cornu__lite_add_tensor(CornuLiteGraph *graph, const char *name, CornuLiteDtype dtype,
                           CornuShape shape)
{
    if (!room(graph, &graph->tensors, &graph->tensor_space, graph->tensor_count,
              sizeof *graph->tensors))
        return CORNU_LITE_NONE;
    char *copy = copied(graph, name, strlen(name) + 1, 1);
    if (!copy) return CORNU_LITE_NONE;
    graph->tensors[graph->tensor_count] =
        (CornuLiteTensor){ .name = copy, .dtype = dtype, .shape = shape };
    return graph->tensor_count++;
}

int cornu__lite_add_constant(CornuLiteGraph *graph, const char *name, CornuLiteDtype dtype,
                             CornuShape shape, const void *data)
{
    const int tensor = cornu__lite_add_tensor(graph, name, dtype, shape);
    if (tensor < 0) return tensor;
    const size_t count = (size_t)cornu_shape_count(shape), size = cornu__lite_dtype_size(dtype);
    graph->tensors[tensor].data = copied(graph, data, count, size);
    graph->tensors[tensor].bytes = count * size;
    return graph->status ? CORNU_LITE_NONE : tensor;
}

int cornu__lite_add_integers(CornuLiteGraph *graph, const int32_t *values, int count)
{
    return cornu__lite_add_constant(graph, "integers", CORNU_LITE_I32, cornu_shape(count), values);
}

int cornu__lite_add_scalar(CornuLiteGraph *graph, float value)
{
    return cornu__lite_add_constant(graph, "scalar", CORNU_LITE_F32, (CornuShape){ 0 }, &value);
}

void cornu__lite_set_scales(CornuLiteGraph *graph, int tensor, const float *scales,
                            const int64_t *zero_points, int count, int axis)
{
    if (graph->status) return;
    CornuLiteQuantization made = {
        .scales = copied(graph, scales, (size_t)count, sizeof *scales),
        .zero_points = copied(graph, zero_points, (size_t)count, sizeof *zero_points),
        .count = count, .axis = axis,
    };
    if (graph->status) {
        free_scales(&made);
        return;
    }
    free_scales(&graph->tensors[tensor].quantization);
    graph->tensors[tensor].quantization = made;
}

int cornu__lite_add_operator(CornuLiteGraph *graph, CornuLiteCode code, const int *in, int in_count,
                             const int *out, int out_count, const CornuLiteOptions *options)
{
    if (!room(graph, &graph->operators, &graph->operator_space, graph->operator_count,
              sizeof *graph->operators))
        return CORNU_LITE_NONE;
    CornuLiteOperator made = {
        .code = code, .in_count = in_count, .out_count = out_count,
        .in = copied(graph, in, (size_t)in_count, sizeof *in),
        .out = copied(graph, out, (size_t)out_count, sizeof *out),
    };
    if (options) made.options = *options;
    if (graph->status) {
        cornu__release(made.in);
        cornu__release(made.out);
        return CORNU_LITE_NONE;
    }
    graph->operators[graph->operator_count] = made;
    return graph->operator_count++;
}

void cornu__lite_set_custom(CornuLiteGraph *graph, int op, const char *name, const void *options,
                            size_t bytes)
{
    char          *copy = copied(graph, name, strlen(name) + 1, 1);
    unsigned char *own = bytes ? copied(graph, options, bytes, 1) : NULL;
    if (graph->status) {
        cornu__release(copy);
        cornu__release(own);
        return;
    }
    graph->operators[op].custom = copy;
    graph->operators[op].custom_options = own;
    graph->operators[op].custom_bytes = bytes;
}

const char *cornu__lite_operator_name(const CornuLiteOperator *op)
{
    return op->custom ? op->custom : cornu__lite_code_name(op->code);
}

const CornuLiteTensor *cornu__lite_in(const CornuLiteGraph *graph, const CornuLiteOperator *op,
                                      int i)
{
    const int number = i < op->in_count ? op->in[i] : CORNU_LITE_NONE;
    return number == CORNU_LITE_NONE ? NULL : &graph->tensors[number];
}

void cornu__lite_place(const CornuLiteGraph *graph, int op, CornuLitePlace *place)
{
    const char *name = cornu__lite_code_name(graph->operators[op].code);
    snprintf(place->text, sizeof place->text, "operator %d, %s", op, name ? name : "unknown");
}

void cornu__lite_add_variable(CornuLiteGraph *graph, const char *name, int initial, int now,
                              int next)
{
    if (!room(graph, &graph->variables, &graph->variable_space, graph->variable_count,
              sizeof *graph->variables))
        return;
    char *copy = copied(graph, name, strlen(name) + 1, 1);
    if (copy)
        graph->variables[graph->variable_count++] =
            (CornuLiteVariable){ .name = copy, .initial = initial, .now = now, .next = next };
}

static void add_port(CornuLiteGraph *graph, CornuLitePort **ports, int *space, int *count,
                     int tensor, const char *name)
{
    if (!room(graph, ports, space, *count, sizeof **ports)) return;
    char *copy = copied(graph, name, strlen(name) + 1, 1);
    if (copy) (*ports)[(*count)++] = (CornuLitePort){ .tensor = tensor, .name = copy };
}

void cornu__lite_add_input(CornuLiteGraph *graph, int tensor, const char *name)
{
    add_port(graph, &graph->inputs, &graph->input_space, &graph->input_count, tensor, name);
}

void cornu__lite_add_output(CornuLiteGraph *graph, int tensor, const char *name)
{
    add_port(graph, &graph->outputs, &graph->output_space, &graph->output_count, tensor, name);
}

int64_t cornu__lite_count(CornuShape shape, int64_t batch)
{
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++)
        count *= shape.extent[i] == CORNU_NONE ? batch : shape.extent[i];
    return count;
}
