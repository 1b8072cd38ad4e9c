/*
 * Runs ONNX graphs on Cornu's ops without making models of them, for tests of single nodes, which
 * have no batch:
 *
 *     onnx_nodes DEVICE < LIST
 *
 * Each line of LIST names a folder with model.onnx, input_0.pb, … and output_0.pb, …, as ONNX' own
 * tests have them, and the tolerances: FOLDER RTOL ATOL. Prints a line for each: "passed",
 * "refused MESSAGE" or "wrong MESSAGE".
 */
#include "../../nn/cornu.h"
#include "../../nn/saving/onnx_read/run_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64 };

typedef struct {
    CornuArena     arena;
    CornuFileBytes files[2 * MOST + 1];
    int            file_count;
    CornuReadModel model;
    CornuLookup    names;
    CornuReadOperand *values;
    CornuReadRun   run;
} Test;

static CornuStatus open_file(Test *test, const char *folder, const char *name,
                             CornuFileBytes *file)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CornuStatus status = cornu__file_read(file, path);
    if (!status) test->files[test->file_count++] = *file;
    return status;
}

static CornuTensor *feed(CornuReadRun *run, CornuArray array)
{
    CornuTensor *input = cornu_graph_input(run->graph, array.type);
    if (input && cornu_graph_feed(input, array)) return NULL;
    return input;
}

static CornuReadOperand *value_of(Test *test, const char *name)
{
    const int at = cornu__lookup_find(&test->names, name);
    return at < 0 ? NULL : &test->values[at];
}

static CornuReadOperand *add_value(Test *test, const char *name)
{
    const int next = test->names.count;
    if (cornu__lookup_find(&test->names, name) < 0 &&
        cornu__lookup_set(&test->names, name, next)) return NULL;
    return value_of(test, name);
}

static CornuStatus load(Test *test, const char *folder)
{
    CornuFileBytes file;
    CornuStatus    status = open_file(test, folder, "model.onnx", &file);
    if (!status)
        status = cornu__onnx_parse(&test->arena, file.bytes, file.size, "model.onnx", &test->model);
    const CornuReadGraph *graph = &test->model.graph;
    if (!status) status = cornu__read_captures(&test->arena, graph->nodes, graph->node_count);
    int count = graph->input_count + graph->tensor_count;
    for (int i = 0; i < graph->node_count; i++) count += graph->nodes[i].out_count;
    test->values = calloc((size_t)count + 1, sizeof *test->values);
    test->run.opset = test->model.opset;
    for (int i = 0; i < graph->tensor_count && !status; i++)
        *add_value(test, graph->tensors[i].name) = (CornuReadOperand){
            .known = graph->tensors[i].array, .given = true };
    for (int i = 0; i < graph->input_count && !status; i++) {
        char            name[40];
        CornuReadTensor tensor;
        snprintf(name, sizeof name, "input_%d.pb", i);
        status = open_file(test, folder, name, &file);
        if (!status)
            status = cornu__onnx_parse_tensor(&test->arena, file.bytes, file.size, &tensor);
        if (status) break;
        /* Floats are data; integers and booleans may be parameters, too. */
        const bool data = cornu_dtype_is_float(tensor.array.type.dtype) &&
                          cornu_type_count(tensor.array.type) > 8;
        CornuReadOperand *value = add_value(test, graph->inputs[i].name);
        *value = (CornuReadOperand){ .given = true, .tensor = feed(&test->run, tensor.array) };
        if (!data) value->known = tensor.array;
        if (!value->tensor) status = cornu_error_take();
    }
    return status;
}

/* A node whose operands are all known is recorded all the same, if it can be: what is tested is the
 * ops. */
static CornuStatus run_node(Test *test, const CornuReadNode *node)
{
    CornuReadOperand in[MOST], out[MOST] = { { 0 } }, host[MOST] = { { 0 } };
    CornuReadStep    step = { .run = &test->run, .node = node, .in = in, .out = out,
                              .in_count = node->in_count, .out_count = node->out_count };
    bool known = true, tensors = false;
    for (int i = 0; i < node->in_count; i++) {
        const CornuReadOperand *value = *node->in[i] ? value_of(test, node->in[i]) : NULL;
        in[i] = value ? *value : (CornuReadOperand){ .given = false };
        if (*node->in[i] && !value) return cornu__fail(CORNU_ERR_FORMAT, "no %s", node->in[i]);
        known &= !value || value->known.data;
        tensors |= value && value->tensor;
    }
    CornuStatus status = cornu__read_step(&step, tensors);
    if (known && tensors) {
        CornuReadStep again = step;
        again.out = host;
        for (int i = 0; i < node->in_count; i++) in[i].tensor = NULL;
        CornuFailure failure;
        cornu__failure_keep(&failure, status);
        const CornuStatus folded = cornu__read_step(&again, false);
        for (int i = 0; i < node->out_count && !folded; i++) {
            if (status) out[i] = host[i];
            else out[i].known = host[i].known;
        }
        if (!folded) status = CORNU_OK;
        else cornu__failure_tell(&failure);
    }
    for (int i = 0; i < node->out_count && !status; i++)
        if (*node->out[i]) *add_value(test, node->out[i]) = out[i];
    return status;
}

static CornuStatus compare(CornuArray got, CornuArray want, double rtol, double atol)
{
    CornuText a, b;
    if (!cornu_type_equal(got.type, want.type))
        return cornu__fail(CORNU_ERR_VALUE, "wrong type %s, expected %s",
                           cornu_type_print(&a, got.type), cornu_type_print(&b, want.type));
    for (int64_t i = 0; i < cornu_type_count(want.type); i++) {
        const double x = cornu_array_get(got, i), y = cornu_array_get(want, i);
        if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= atol + rtol * fabs(y)) continue;
        return cornu__fail(CORNU_ERR_VALUE, "wrong number %lld: %.9g, expected %.9g",
                           (long long)i, x, y);
    }
    return CORNU_OK;
}

static CornuStatus run(Test *test, const char *folder, double rtol, double atol)
{
    const CornuReadGraph *graph = &test->model.graph;
    CornuStatus           status = load(test, folder);
    for (int i = 0; i < graph->node_count && !status; i++)
        status = run_node(test, &graph->nodes[i]);
    for (int i = 0; i < graph->output_count && !status; i++) {
        char            name[40];
        CornuFileBytes  file;
        CornuReadTensor want;
        snprintf(name, sizeof name, "output_%d.pb", i);
        status = open_file(test, folder, name, &file);
        if (!status)
            status = cornu__onnx_parse_tensor(&test->arena, file.bytes, file.size, &want);
        CornuReadOperand *value = value_of(test, graph->outputs[i].name);
        if (!status && !value) status = cornu__fail(CORNU_ERR_FORMAT, "no output %d", i);
        if (status) break;
        CornuArray got = value->known;
        if (value->tensor) {
            got.type = cornu_tensor_type(value->tensor);
            got.data = calloc(cornu_type_bytes(got.type) + 1, 1);
            status = cornu_run(test->run.graph, &value->tensor, 1, &got);
        }
        if (!status) status = compare(got, want.array, rtol, atol);
        if (value->tensor) free(got.data);
    }
    return status;
}

int main(int argc, char **argv)
{
    char         line[1000], folder[900];
    CornuDevice *device = cornu_device_open(argc > 1 ? argv[1] : "cpu");
    if (!device) return 2;
    while (fgets(line, sizeof line, stdin)) {
        double rtol = 1e-3, atol = 1e-7;
        if (sscanf(line, "%899s %lf %lf", folder, &rtol, &atol) < 1) continue;
        Test test = { .names = { .of_strings = true } };
        test.run = (CornuReadRun){ .families = cornu__read_families, .arena = &test.arena,
                                   .graph = cornu_graph_create(device), .constant = feed };
        const CornuStatus status = run(&test, folder, rtol, atol);
        const CornuStatus pending = cornu_error_take();
        if (!status && !pending) puts("passed");
        else printf("%s %s\n", status == CORNU_ERR_UNSUPPORTED ? "refused" : "wrong",
                    cornu_error_message());
        fflush(stdout);
        cornu_graph_free(test.run.graph);
        cornu__lookup_clear(&test.names);
        cornu__arena_free(&test.arena);
        for (int i = 0; i < test.file_count; i++) cornu__file_release(&test.files[i]);
        free(test.values);
    }
    cornu_device_close(device);
    return 0;
}
