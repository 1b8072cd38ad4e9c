/* Whether the rows of a batch are independent, from the ops that a model records. */
#include <stdio.h>

#include "../../device/rows/rows.h"
#include "../../tensor/graph_internal.h"
#include "host_stage_internal.h"

/* Primes, so that no other extent is a multiple of one by accident. */
enum { ROWS = 13, OTHER_ROWS = 17 };

static CornuTensor *weight_of(void *context, const CornuWeight *weight)
{
    return cornu__graph_parameter(context, weight->type);
}

static CornuTensor *array_of(void *context, CornuArray array)
{
    return cornu__graph_parameter(context, array.type);
}

bool cornu__model_trace(const CornuModel *model, CornuGraph *graph, const CornuType *types,
                        CornuTensor **in, CornuTensor **out)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    CornuTensor *masks[CORNU_MAX_MODEL_TENSORS] = { NULL }, *out_masks[CORNU_MAX_MODEL_TENSORS];
    CornuTensor *scalar = cornu__graph_parameter(graph, cornu_scalar(CORNU_I64));
    const CornuDescription description = { graph, weight_of, array_of };
    const CornuCall call = { .graph = graph, .count = scalar, .total = scalar, .seed = scalar,
                             .iteration = scalar, .position = scalar, .shapes_only = true,
                             .description = &description };
    const int count = cornu__model_fed(model, fed);
    for (int i = 0; i < count; i++)
        if (!(in[i] = cornu__graph_parameter(graph, types[i]))) return false;
    return cornu__model_call_layers(model, &call, in, masks, out, out_masks) != NULL;
}

/* For so many rows, with other extents that are open as the data have them. */
static bool record_rows(const CornuModel *model, CornuGraph *graph, const CornuType *x,
                        int64_t rows, CornuTensor **in, CornuTensor **out)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    CornuType    types[CORNU_MAX_MODEL_TENSORS];
    const int    count = cornu__model_fed(model, fed);
    for (int i = 0; i < count; i++) {
        types[i] = fed[i]->type;
        for (int k = 1; k < types[i].shape.rank; k++)
            if (types[i].shape.extent[k] == CORNU_NONE)
                types[i].shape.extent[k] = k < x[i].shape.rank ? x[i].shape.extent[k] : 1;
        types[i].shape.extent[0] = rows;
    }
    return cornu__model_trace(model, graph, types, in, out);
}

/* Whether the program is the same for another number of rows: else its results depend on that. */
static CornuStatus compare_programs(const CornuModel *model, CornuDevice *device,
                                    const CornuType *x, const CornuProgram *program,
                                    CornuRowsFound *found, CornuText *where)
{
    CornuTensor *in[CORNU_MAX_MODEL_TENSORS], *out[CORNU_MAX_MODEL_TENSORS];
    CornuGraph  *graph = cornu_graph_create(device);
    if (!graph || !record_rows(model, graph, x, OTHER_ROWS, in, out)) {
        cornu_graph_free(graph);
        return cornu_error_take();
    }
    const CornuProgramOp *op = cornu__rows_counted(program, graph->program);
    if (op) {
        found->independent = false;
        snprintf(where->text, sizeof where->text, "%.80s computes with the number of rows (%.40s)",
                 op->scope, cornu_program_op_name(op));
    }
    cornu_graph_free(graph);
    return CORNU_OK;
}

static CornuStatus find_rows(const CornuModel *model, CornuGraph *graph, const CornuType *x,
                             CornuRowsFound *found, CornuText *where)
{
    CornuSymbol  *fed[CORNU_MAX_MODEL_TENSORS];
    CornuTensor  *in[CORNU_MAX_MODEL_TENSORS], *out[CORNU_MAX_MODEL_TENSORS];
    CornuValue    results[CORNU_MAX_MODEL_TENSORS];
    const int64_t rows = model->batch_size ? model->batch_size : ROWS;
    if (!record_rows(model, graph, x, rows, in, out)) return cornu_error_take();
    const CornuProgram *program = graph->program;
    const int           count = cornu__model_fed(model, fed);
    bool *of_rows = cornu__allocate((size_t)program->input_count + 1, sizeof *of_rows);
    if (!of_rows) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) of_rows[program->values[in[i]->value].index] = true;
    for (int i = 0; i < model->output_count; i++) results[i] = out[i]->value;
    CornuStatus status = cornu__rows_find(program, rows, of_rows, results, model->output_count,
                                          found);
    if (!status && found->independent && !model->batch_size)
        status = compare_programs(model, graph->device, x, program, found, where);
    else if (found->mixed_by)
        snprintf(where->text, sizeof where->text, "%.90s computes along axis 0 (%.40s)",
                 found->mixed_by->scope, cornu_program_op_name(found->mixed_by));
    else if (!status)
        snprintf(where->text, sizeof where->text, "an output does not have a row for each of the "
                 "input");
    cornu__release(of_rows);
    return status;
}

/* Where it cannot be recorded it stays unknown: a step of such data fails, too, or is not cut. */
CornuStatus cornu__model_find_rows(CornuModel *model, const CornuType *x)
{
    CornuRowsFound found = { .independent = false };
    CornuText      where = { "" };
    CornuDevice   *device = cornu_device_open("reference");
    CornuGraph    *graph = cornu_graph_create(device);
    CornuStatus    status = graph ? find_rows(model, graph, x, &found, &where) : cornu_error_take();
    if (status && status != CORNU_ERR_MEMORY) {
        snprintf(where.text, sizeof where.text, "%.150s", cornu_error_message());
        status = CORNU_OK;
    } else if (!status) {
        model->rows = found.independent ? CORNU_ROWS_INDEPENDENT : CORNU_ROWS_DEPENDENT;
    }
    model->dependence = where;
    cornu_graph_free(graph);
    cornu_device_close(device);
    return status;
}
