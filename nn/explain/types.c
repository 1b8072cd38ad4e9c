#include "types.h"

#include "../../tensor/graph_internal.h"
#include "../model/host_stage_internal.h"
#include "explain_internal.h"

/* ---- The types of a batch ---- */

/* What stands for an open extent unless it is given; then others that models ask for. */
static int64_t usual_extent(int rank) { return rank == 4 ? 224 : rank == 5 ? 32 : 128; }
static const int64_t others[] = { 0,  128, 224, 256, 512, 64, 32,  16,  8,   4,   2,   1,
                                  12, 24,  48,  96,  112, 160, 192, 299, 320, 384, 416, 640 };
enum { OTHERS = sizeof others / sizeof *others };

/* A model's axis 0 is the batch, a function's like any other. Whether other extents are open. */
static bool take_types(const CornuModel *model, int64_t batch, int64_t extent, CornuModelTypes *to)
{
    CornuSymbol *fed[CORNU_MAX_MODEL_TENSORS];
    const bool   has_batch = !cornu_model_is_function(model);
    bool         open = false;
    to->input_count = cornu__model_fed(model, fed);
    for (int i = 0; i < to->input_count; i++) {
        CornuType type = cornu_symbol_type(fed[i]);
        for (int k = 0; k < type.shape.rank; k++) {
            if (type.shape.extent[k] != CORNU_NONE) continue;
            const bool rows = k == 0 && has_batch;
            open |= !rows;
            type.shape.extent[k] = rows ? batch : extent ? extent : usual_extent(type.shape.rank);
        }
        to->inputs[i] = type;
    }
    return open;
}

/* ---- What the program says ---- */

/* Whether a value is a number of the input: moved, compared with bounds, shifted, but not computed
 * from it. */
static bool comes_from(const CornuProgram *program, CornuValue value, CornuValue input, int depth)
{
    enum { DEEPEST = 24 };
    if (value == input) return true;
    if (depth == DEEPEST || program->values[value].op < 0) return false;
    const CornuProgramOp *made = &program->ops[program->values[value].op];
    switch (made->id) {
    case CORNU_OP_CONVERT: case CORNU_OP_RESHAPE: case CORNU_OP_TRANSPOSE: case CORNU_OP_SLICE:
    case CORNU_OP_PAD:     case CORNU_OP_CONCAT:  case CORNU_OP_FLIP:      case CORNU_OP_BROADCAST:
    case CORNU_OP_SELECT:  case CORNU_OP_MAXIMUM: case CORNU_OP_MINIMUM:   case CORNU_OP_ADD:
    case CORNU_OP_FLOOR:
        for (int i = 0; i < made->in_count; i++)
            if (comes_from(program, cornu_program_operands(program, made)[i], input, depth + 1))
                return true;
        return false;
    default: return false;
    }
}

/* The rows of the smallest table in which it is looked up; 0: in none. */
static int64_t find_rows(const CornuProgram *program, CornuValue input)
{
    int64_t rows = 0;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        if (op->id != CORNU_OP_GATHER && op->id != CORNU_OP_ONE_HOT) continue;
        const bool    gathers = op->id == CORNU_OP_GATHER;
        const int64_t has = gathers ? cornu_program_type(program, in[0]).shape.extent[0]
                                    : op->attributes.one_hot.depth;
        if (comes_from(program, in[gathers], input, 0) && (rows == 0 || has < rows)) rows = has;
    }
    return rows;
}

static CornuOpId find_maker(const CornuProgram *program, CornuValue value)
{
    while (program->values[value].op >= 0) {
        const CornuProgramOp *made = &program->ops[program->values[value].op];
        if (made->id != CORNU_OP_CONVERT && made->id != CORNU_OP_RESHAPE) return made->id;
        value = cornu_program_operands(program, made)[0];
    }
    return CORNU_OP_COUNT;
}

/* ---- Recording ---- */

static CornuStatus record_types(const CornuModel *model, CornuGraph *graph, CornuModelTypes *to)
{
    CornuTensor *in[CORNU_MAX_MODEL_TENSORS], *out[CORNU_MAX_MODEL_TENSORS];
    if (!cornu__model_trace(model, graph, to->inputs, in, out)) return cornu_error_take();
    to->output_count = cornu_model_output_count(model);
    for (int i = 0; i < to->output_count; i++) {
        to->outputs[i] = cornu_tensor_type(out[i]);
        to->made_by[i] = find_maker(graph->program, out[i]->value);
    }
    for (int i = 0; i < to->input_count; i++)
        to->rows_of[i] = find_rows(graph->program, in[i]->value);
    return CORNU_OK;
}

static CornuStatus try(const CornuModel *model, CornuModelTypes *to)
{
    CornuDevice *device = cornu_device_open("reference");
    CornuGraph  *graph = cornu_graph_create(device);
    CornuStatus  status = graph ? record_types(model, graph, to) : cornu_error_take();
    cornu_graph_free(graph);
    cornu_device_close(device);
    return status;
}

CornuStatus cornu__model_types(const CornuModel *model, int64_t batch, int64_t extent,
                               CornuModelTypes *to, int64_t *taken)
{
    CornuStatus status = CORNU_OK;
    bool        open = false;
    for (int i = 0; i < OTHERS; i++) {
        *taken = extent ? extent : others[i];
        *to = (CornuModelTypes){ .input_count = 0 };
        open = take_types(model, batch, *taken, to);
        status = try(model, to);
        if (!open) *taken = CORNU_NONE;
        if (!status) return CORNU_OK;
        if (!open || extent || status == CORNU_ERR_MEMORY) break;
    }
    if (open && !extent) {   /* what the first one says */
        take_types(model, batch, 0, to);
        status = try(model, to);
    }
    if (open && status != CORNU_ERR_MEMORY)
        cornu__fail_prefix(status, "the inputs have open extents, which .extent gives, and those "
                           "that were tried do not fit");
    return status;
}

CornuStatus cornu_model_types(const CornuModel *model, int64_t batch_size, int64_t extent,
                              CornuModelTypes *to)
{
    const int64_t fixed = model ? cornu_model_batch_size(model) : CORNU_NONE;
    int64_t       taken;
    CORNU__NEED(to);
    CORNU__TRY(cornu__model_check(model));
    if (!model->base.built)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_model_types: %s is not built; give its input "
                           "shape or load it", cornu_model_name(model));
    if (batch_size < 1 || extent < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_model_types: %lld rows and an extent of "
                           "%lld, expected at least 1 row and no negative extent",
                           (long long)batch_size, (long long)extent);
    if (cornu__model_on_host(model))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "cornu_model_types: layers of %s run on the host "
                           "before others, so what these take follows from data alone",
                           cornu_model_name(model));
    return cornu__model_types(model, fixed > 0 ? fixed : batch_size, extent, to, &taken);
}
