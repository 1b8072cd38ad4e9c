/* Loops as Scan, whose body is a graph. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "recorded_layer.h"

enum { MOST = CORNU_MAX_INPUTS > CORNU_MAX_OUTPUTS ? CORNU_MAX_INPUTS : CORNU_MAX_OUTPUTS };

typedef CornuOnnxOp Op;

/* Inputs and outputs of the body, which are those of the node too, apart from constants. */
typedef struct {
    const CornuAttributes_SCAN *scan;
    CornuOnnxProgram            program;
    CornuOnnxBody               graph;
    bool                        wanted[CORNU_MAX_OUTPUTS];
    int                         in_count, out_count;
    int                         in[MOST], out[MOST], in_types[MOST], out_types[MOST];
} Loop;

static const CornuAttributes_SCAN *in_world(const Op *op, int world)
{
    return &op->program->worlds[world]->ops[op->number].attributes.scan;
}

static int type_of(const Loop *loop, CornuValue value)
{
    return cornu__onnx_type(loop->program.program->values[value].type.dtype);
}

/* Whether steps differ in extents alone. */
static bool is_same(const Op *op, Loop *loop)
{
    const CornuAttributes_SCAN *scan = loop->scan;
    bool                        same = true;
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++) {
        const CornuAttributes_SCAN *other = in_world(op, w);
        loop->program.worlds[w] = other->body;
        same = same && cornu__programs_alike(scan->body, other->body) &&
               other->axis == scan->axis && other->reverse == scan->reverse;
    }
    return same;
}

/* The operands of the node; what the body takes from around it is written before. */
static void take_operands(const Op *op, Loop *loop, int *operands)
{
    const CornuProgram *body = loop->scan->body;
    for (int i = 0; i < op->op->in_count; i++) {
        const int x = cornu__onnx_operand(op, i);
        if (i < loop->in_count) loop->in_types[i] = type_of(loop, body->inputs[i]);
        if (i < loop->in_count) operands[i] = x;
        else loop->program.full[body->inputs[i]] = x;
        if (!cornu__onnx_form_of(op->to, x)) cornu__onnx_put_pending(op->to, x);
    }
}

/* Each output is a value of the body alone, and only one output. */
static int output_of(const Op *op, const Loop *loop, CornuValue value)
{
    int  y = cornu__onnx_full((CornuOnnxProgram *)&loop->program, value);
    bool own = y >= loop->graph.first + loop->in_count && !op->to->values[y].constant;
    for (int i = 0; i < loop->out_count; i++) own = own && loop->out[i] != y;
    return own ? y : cornu__onnx_node(op->to, "Identity", &y, 1, NULL, 0, 1);
}

static CornuStatus put_body(const Op *op, Loop *loop)
{
    const CornuProgram *body = loop->scan->body;
    loop->graph = cornu__onnx_begin_body(op->to, loop->in_count, loop->in);
    for (int i = 0; i < loop->in_count; i++)
        cornu__onnx_set(&loop->program, body->inputs[i], loop->in[i]);
    const CornuStatus status = cornu__onnx_ops(&loop->program);
    for (int i = 0; i < body->output_count && !status; i++) {
        const CornuValue value = body->outputs[i].value;
        if (!loop->wanted[i]) continue;
        const int y = output_of(op, loop, value);
        loop->out_types[loop->out_count] = type_of(loop, value);
        loop->out[loop->out_count++] = y;
    }
    cornu__onnx_end_body(op->to, &loop->graph, loop->in, loop->in_types, loop->in_count, loop->out,
                         loop->out_types, loop->out_count);
    return status;
}

static void put_node(const Op *op, const Loop *loop, const int *operands)
{
    const int slices = (int)loop->scan->slices;
    const int stacked = loop->out_count - (int)loop->scan->carries;
    int64_t   axes[MOST], directions[MOST];
    for (int i = 0; i < MOST; i++) axes[i] = loop->scan->axis, directions[i] = loop->scan->reverse;
    const CornuOnnxAttribute attributes[] = {
        { .name = "body", .graph = &loop->graph.body },
        { .name = "num_scan_inputs", .whole = slices },
        { .name = "scan_input_axes", .integers = axes, .count = slices },
        { .name = "scan_input_directions", .integers = directions, .count = slices },
        { .name = "scan_output_axes", .integers = axes, .count = stacked },
        { .name = "scan_output_directions", .integers = directions, .count = stacked },
    };
    int made = cornu__onnx_node(op->to, "Scan", operands, loop->in_count, attributes,
                                stacked ? 6 : 4, loop->out_count);
    for (int i = 0; i < loop->scan->body->output_count; i++)
        if (loop->wanted[i]) cornu__onnx_set_result(op, i, made++);
}

/* Carries that nothing reads are results of the node anyway. */
CornuStatus cornu__onnx_scan(const CornuOnnxOp *op)
{
    const CornuAttributes_SCAN *scan = &op->attributes->scan;
    int  operands[MOST];
    Loop loop = { .scan = scan, .in_count = (int)(scan->carries + scan->slices),
                  .program = { .to = op->to, .program = scan->body, .wanted = loop.wanted } };
    if (!scan->slices) return cornu__onnx_refuse_op(op, "where Scan reads at least one sequence");
    if (!is_same(op, &loop)) return cornu__onnx_refuse_open(op);
    for (int i = 0; i < op->op->out_count; i++)
        loop.wanted[i] = i < scan->carries || cornu__onnx_is_read(op, i);
    CornuStatus status = cornu__onnx_open_program(&loop.program);
    if (!status) {
        take_operands(op, &loop, operands);
        status = put_body(op, &loop);
    }
    if (!status) put_node(op, &loop, operands);
    cornu__onnx_free_body(&loop.graph);
    cornu__onnx_close_program(&loop.program);
    return status;
}
