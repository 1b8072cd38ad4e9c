/* Tracing a graph: what is known, what depends on the open extents, and the types of the rest. */
#include "load_internal.h"

#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../tensor/tensor_internal.h"

/* ---- Constants that ops need ---- */

typedef struct {
    CornuReadLoad   *load;
    CornuReadTraced *node;       /* being run */
    int              run, next;  /* the run, and how many constants it has asked for */
    int              space;
} Notes;

/* What a node asks for again, as each turn of a loop does, is noted once. */
static CornuTensor *note(CornuReadRun *run, CornuArray array)
{
    Notes           *notes = run->context;
    CornuReadTraced *node = notes->node;
    const int        asked = notes->run == 0 ? node->made_count : notes->next;
    for (int i = 0; i < asked && i < node->made_count; i++)
        if (cornu__array_equal(node->made[i], array))
            return cornu_op_constant(run->graph, array.type, 0.0);
    if (notes->run > 0) {
        const int i = notes->next++;
        if (i >= node->made_count || !cornu__array_equal(node->made[i], array))
            return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a constant depends on an open extent");
        return cornu_op_constant(run->graph, array.type, 0.0);
    }
    if (node->made_count == notes->space) {
        const int   space = 2 * notes->space + 4;
        CornuArray *more = cornu__arena_take(&notes->load->arena, (size_t)space, sizeof *more);
        if (!more) return cornu__null();
        if (node->made_count) memcpy(more, node->made, (size_t)node->made_count * sizeof *more);
        node->made = more;
        notes->space = space;
    }
    node->made[node->made_count++] = array;
    return cornu_op_constant(run->graph, array.type, 0.0);
}

/* ---- One node ---- */

typedef struct {
    CornuReadLoad *load;
    CornuReadRun   runs[CORNU_READ_RUNS];
    Notes          notes[CORNU_READ_RUNS];
    bool           single;       /* the second run is the first */
} Trace;

/* Takes what both runs know of a value. */
static void settle(CornuReadLoad *load, CornuReadValue *value)
{
    const CornuReadOperand *a = &value->runs[0], *b = &value->runs[1];
    value->known = a->known.data && b->known.data && !a->tensor && !b->tensor;
    value->same = value->known && cornu__array_equal(a->known, b->known);
    if (value->known || !a->tensor || !b->tensor) return;
    const CornuShape other = value->shapes[1] = cornu_tensor_shape(b->tensor);
    value->type = cornu_tensor_type(a->tensor);
    value->shapes[0] = value->type.shape;
    for (int i = 0; i < value->type.shape.rank; i++) {
        int64_t *extent = &value->type.shape.extent[i];
        if (*extent != other.extent[i] || (i == 0 && load->batch && *extent == load->batch))
            *extent = CORNU_NONE;
    }
}

/* Runs the node on the values of a run; operands with a role are tensors. */
static CornuStatus run_one(Trace *trace, int n, int r, CornuReadStep *step)
{
    CornuReadLoad       *load = trace->load;
    const CornuReadNode *node = &load->model.graph.nodes[n];
    CornuReadTraced     *traced = &load->traced[n];
    CORNU__TRY(cornu__read_begin(&trace->runs[r], node, step));
    for (int i = 0; i < node->in_count; i++) {
        const CornuReadValue *value = cornu__read_value(load, node->in[i]);
        if (!value) continue;
        step->in[i] = value->runs[r];
        if (traced->roles[i] == CORNU_READ_VALUE) continue;
        step->in[i].weight = cornu_op_constant(trace->runs[r].graph, step->in[i].known.type, 0.0);
        step->in[i].known.data = NULL;
        if (!step->in[i].weight) return cornu_error_take();
        if (cornu__read_kept(traced->roles[i], step->in[i].onnx_type)) {
            CornuType bytes = step->in[i].known.type;
            bytes.dtype = CORNU_U8;
            step->in[i].bytes = cornu_op_constant(trace->runs[r].graph, bytes, 0.0);
        }
    }
    trace->notes[r] = (Notes){ .load = load, .node = traced, .run = r };
    if (r == 0) traced->made_count = 0;
    CORNU__TRY(cornu__read_step(step, false));
    for (int i = 0; i < node->out_count && node->recorded; i++) {
        CornuReadOperand *out = &step->out[i];
        if (!out->known.data) continue;
        *out = (CornuReadOperand){ .given = true,
                                   .tensor = cornu__known_tensor(step->run, &step->in[0]) };
        if (!out->tensor) return cornu_error_take();
    }
    return CORNU_OK;
}

/* Large constants are weights that are not trained, rather than part of the layer's argument. */
static bool keep_large(const CornuReadLoad *load, int n, const CornuReadStep *step)
{
    enum { LARGE = 64 };
    bool kept = false;
    for (int i = 0; i < step->in_count; i++) {
        const CornuReadOperand *in = &step->in[i];
        if (!in->used || !in->known.data || load->traced[n].roles[i]) continue;
        const CornuReadValue *value = cornu__read_value((CornuReadLoad *)load, step->node->in[i]);
        if (!value->same || cornu_type_count(in->known.type) <= LARGE) continue;
        load->traced[n].roles[i] = CORNU_READ_STATE;
        kept = true;
    }
    return kept;
}

/* Whether other operands may have the same result, so that a result that is equal in both runs says
 * nothing of a third: (samples - 400) % 160 is 144 of 64 and of 1024. */
static bool collapses(const CornuReadNode *node)
{
    static const char *const ops[] = {
        "Abs", "And", "Ceil", "Clip", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less",
        "LessOrEqual", "Max", "Min", "Mod", "Not", "Or", "ReduceMax", "ReduceMin", "Relu", "Round",
        "Sign", "Where", "Xor",
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (!strcmp(ops[i], node->op)) return true;
    return false;
}

static CornuStatus trace_node(Trace *trace, int n)
{
    CornuReadLoad       *load = trace->load;
    const CornuReadNode *node = &load->model.graph.nodes[n];
    CornuReadTraced     *traced = &load->traced[n];
    bool                 known = true, same = true, parameter = false, varies = false;
    CornuReadStep        steps[CORNU_READ_RUNS];
    for (int i = 0; i < node->in_count; i++) {
        const CornuReadValue *value = cornu__read_value(load, node->in[i]);
        traced->roles[i] = CORNU_READ_VALUE;
        if (!*node->in[i]) continue;
        if (!value || !value->runs[0].given)
            return cornu__fail(CORNU_ERR_FORMAT, "%.100s: the tensor %.100s is not computed before "
                               "it is used", node->name, node->in[i]);
        known &= value->known;
        same &= value->same;
        parameter |= value->parameter;
        varies |= value->varies;
    }
    varies |= known && !same && collapses(node);
    known &= !node->tied && !node->recorded && !cornu__read_has_states(node);
    for (int i = 0; i < node->in_count && !(known && same); i++)
        if (*node->in[i])
            traced->roles[i] = cornu__read_role(node, i, cornu__read_value(load, node->in[i]));
    CORNU__TRY(run_one(trace, n, 0, &steps[0]));
    if (!(known && same) && keep_large(load, n, &steps[0]))
        CORNU__TRY(run_one(trace, n, 0, &steps[0]));
    if (!(known && same) && !trace->single) CORNU__TRY(run_one(trace, n, 1, &steps[1]));
    else steps[1] = steps[0];
    traced->real = false;
    for (int i = 0; i < node->out_count; i++) {
        CornuReadValue *value = cornu__read_value(load, node->out[i]);
        if (!value) continue;
        for (int r = 0; r < CORNU_READ_RUNS; r++) value->runs[r] = steps[r].out[i];
        value->parameter = parameter;
        settle(load, value);
        value->varies = value->known && varies;
        value->same &= !value->varies;
        for (int r = 0; r < CORNU_READ_RUNS && value->known && !value->same; r++) {
            CORNU__TRY(cornu__read_keep_maker(&steps[r]));
            value->runs[r] = steps[r].out[i];
        }
        if (!value->known && (!value->runs[0].tensor || !value->runs[1].tensor))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%.100s: %.100s is known for some sizes of "
                               "the batch only", node->name, node->out[i]);
        traced->real |= !value->known;
    }
    return CORNU_OK;
}

/* ---- All nodes ---- */

static CornuStatus start_values(Trace *trace)
{
    CornuReadLoad        *load = trace->load;
    const CornuReadGraph *graph = &load->model.graph;
    for (int i = 0; i < graph->input_count; i++) {
        const CornuReadInfo *info = &graph->inputs[i];
        CornuReadValue      *value = cornu__read_value(load, info->name);
        if (!value) continue;
        for (int r = 0; r < CORNU_READ_RUNS; r++) {
            CornuType type = info->type;
            for (int k = 0; k < type.shape.rank; k++)
                if (type.shape.extent[k] == CORNU_NONE)
                    type.shape.extent[k] = load->extents[load->extent_at[i][k]].size[r];
            value->runs[r] = r > 0 && trace->single ? value->runs[0] : (CornuReadOperand){
                .given = true, .tensor = cornu_op_constant(trace->runs[r].graph, type, 0.0) };
            if (!value->runs[r].tensor) return cornu_error_take();
        }
        settle(load, value);
    }
    for (int i = 0; i < graph->tensor_count; i++) {
        CornuReadValue *value = cornu__read_value(load, graph->tensors[i].name);
        if (!value) continue;
        for (int r = 0; r < CORNU_READ_RUNS; r++)
            value->runs[r] = cornu__read_constant(&graph->tensors[i]);
        value->parameter = cornu_dtype_is_float(graph->tensors[i].array.type.dtype);
        value->literal = graph->tensors[i].literal;
        settle(load, value);
    }
    return CORNU_OK;
}

CornuStatus cornu__read_run(CornuReadLoad *load, CornuDevice *device, bool single)
{
    Trace       trace = { .load = load, .single = single };
    CornuStatus status = CORNU_OK;
    for (int r = 0; r < CORNU_READ_RUNS; r++) {
        trace.runs[r] = (CornuReadRun){ .families = cornu__read_families, .arena = &load->arena,
                                        .graph = cornu_graph_create(device),
                                        .opset = load->model.opset, .constant = note,
                                        .context = &trace.notes[r], .budget = &load->budget };
        if (!trace.runs[r].graph) status = cornu_error_take();
        cornu__graph_limit(trace.runs[r].graph, &load->budget);
    }
    if (!status) status = start_values(&trace);
    const int budget = load->budget;
    for (int i = 0; i < load->model.graph.node_count && !status; i++)
        status = trace_node(&trace, i);
    load->reached = budget - load->budget;
    const CornuStatus pending = cornu_error_take();
    for (int r = 0; r < CORNU_READ_RUNS; r++) {
        cornu__graph_spend(trace.runs[r].graph, &load->budget, 0);
        cornu_graph_free(trace.runs[r].graph);
    }
    return status ? status : pending;
}
