/*
 * Operators that files of ONNX do not have, by which nn/lite/onnx/ says what LiteRT has: states
 * from run to run, and values on the grid of quantized numbers.
 */
#include "../../../layers/layer.h"
#include "../bodies_internal.h"

/* ---- State ---- */

/*
 * Operands: the first value of each state. Attributes: `body`, a graph that takes what the run
 * before this one has left of the states and gives what this one leaves, then the node's results;
 * `begins`, for each state whether its first value may be other than zeros.
 */
enum { MOST_STATES = CORNU_MAX_LAYER_STATES - 1, MOST_RESULTS = 64 };

typedef struct {
    CornuReadStep *step;
    CornuReadBody  body;
    int            states;
    bool           begins[MOST_STATES], any;   /* with a first value; one of them */
    CornuTensor   *count, *begun;              /* 0 in the first run, then 1; and as a bool */
} Node;

/* One row, whatever the axes of the state: a layer's states begin with the rows. */
static CornuShape stored_shape(CornuShape shape)
{
    CornuShape stored = { .rank = shape.rank + 1, .extent = { 1 } };
    for (int i = 0; i < shape.rank; i++) stored.extent[i + 1] = shape.extent[i];
    return stored;
}

static CornuTensor *read_stored(CornuReadRun *run, int i, CornuShape shape)
{
    if (run->read_state) return run->read_state(run, i, shape);
    return cornu_op_constant(run->graph, cornu_type_from(CORNU_F32, shape), 0.0);
}

static CornuStatus keep_stored(CornuReadRun *run, int i, CornuTensor *value)
{
    if (!value) return cornu_error_take();
    return run->keep_state ? run->keep_state(run, i, value) : CORNU_OK;
}

static CornuStatus open_node(Node *node)
{
    CornuReadStep *step = node->step;
    int64_t        begins[MOST_STATES];
    int            count;
    node->states = step->node->own_count;
    CORNU__TRY(cornu__integers(step, "begins", begins, MOST_STATES, &count));
    if (node->states < 1 || node->states > MOST_STATES)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%d states that depend on each other, expected "
                           "at most %d", node->states, MOST_STATES);
    for (int i = 0; i < node->states; i++) {
        node->begins[i] = i < count && begins[i];
        node->any |= node->begins[i];
        if (cornu__operand_type(step, i).shape.rank >= CORNU_MAX_RANK)
            return cornu__cannot("a state of rank 8", "");
    }
    CORNU__TRY(cornu__subgraph_open(step, "body", &node->body));
    const int results = node->body.graph->output_count;
    if (node->body.graph->input_count == node->states && results >= node->states &&
        results <= MOST_RESULTS)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "its graph has %d inputs and %d results for %d states",
                       node->body.graph->input_count, results, node->states);
}

/* The state as the body takes it. */
static CornuTensor *value_of(Node *node, int i)
{
    const CornuType type = cornu__operand_type(node->step, i);
    CornuTensor    *x = read_stored(node->step->run, i, stored_shape(type.shape));
    x = cornu_op_convert(cornu__reshaped(x, type.shape.rank, type.shape.extent), type.dtype);
    if (!x || !node->begins[i]) return x;
    return cornu_op_select(node->begun, x, cornu__operand_of(node->step, i));
}

static CornuStatus run_body(Node *node, CornuReadOperand *out)
{
    CornuReadStep   *step = node->step;
    CornuReadRun    *run = step->run;
    CornuReadOperand in[MOST_STATES];
    if (node->any) {
        const int64_t none[1] = { 0 };
        node->count = read_stored(run, node->states, cornu_shape(1));
        CornuTensor *count = cornu__reshaped(node->count, 0, none);
        node->begun = cornu_op_compare(count, CORNU_GREATER, cornu_op_constant_like(count, 0.0));
        if (!node->begun) return cornu_error_take();
    }
    for (int i = 0; i < node->states; i++) {
        in[i] = (CornuReadOperand){ .given = true, .tensor = value_of(node, i) };
        if (!in[i].tensor) return cornu_error_take();
    }
    return cornu__subgraph_run(step, &node->body, run, step->in + step->node->own_count, in,
                               node->states, out);
}

static CornuStatus keep_states(Node *node, const CornuReadOperand *out)
{
    CornuReadRun *run = node->step->run;
    for (int i = 0; i < node->states; i++) {
        const CornuShape shape = cornu__operand_type(node->step, i).shape;
        const CornuShape stored = stored_shape(shape);
        CornuTensor     *x = cornu__read_tensor(run, &out[i]);
        CornuText        a, b;
        if (!x) return cornu_error_take();
        if (!cornu_shape_equal(cornu_tensor_shape(x), shape))
            return cornu__fail(CORNU_ERR_SHAPE, "a state of %s is set to %s",
                               cornu_shape_print(&a, shape),
                               cornu_shape_print(&b, cornu_tensor_shape(x)));
        CORNU__TRY(keep_stored(run, i, cornu__reshaped(x, stored.rank, stored.extent)));
    }
    if (!node->any) return CORNU_OK;
    return keep_stored(run, node->states, cornu_op_maximum(
        node->count, cornu_op_constant_like(node->count, 1.0)));
}

static CornuStatus read_state(CornuReadStep *step)
{
    Node             node = { .step = step };
    CornuReadOperand out[MOST_RESULTS] = { { .given = false } };
    if (step->run->depth) return cornu__cannot("states within a loop", "");
    CornuStatus status = open_node(&node);
    if (!status) status = run_body(&node, out);
    if (!status) status = keep_states(&node, out);
    for (int i = node.states; !status && i < node.body.graph->output_count; i++)
        if (cornu__wanted(step, i - node.states)) step->out[i - node.states] = out[i];
    cornu__subgraph_free(&node.body);
    return status;
}

/* ---- FakeQuantize ---- */

/* To the nearest whole number, halves away from 0. */
static CornuTensor *rounded(CornuTensor *x)
{
    CornuTensor *size = cornu__floor_of(cornu_op_shift(cornu_op_absolute(x), 0.5));
    return cornu_op_with_gradient(cornu_op_multiply(cornu_op_sign(x), size), x, NULL, NULL);
}

/*
 * x on the grid of integers from `low` to `high`: scale (q - zero), or with `stored` q itself.
 *     q = x / scale, rounded, + zero, clipped
 * With `first` x is multiplied by it and rounded before, as kernels of integers do. The gradient is
 * that of what is rounded, so that quantized files can be trained further.
 */
static CornuStatus read_fake_quantize(CornuReadStep *step)
{
    const double scale = cornu__real(step, "scale", 1.0), first = cornu__real(step, "first", 0.0);
    const double zero = (double)cornu__whole(step, "zero", 0);
    CornuTensor *x = cornu_op_convert(cornu__operand_of(step, 0), CORNU_F32);
    if (!(scale > 0.0)) return cornu__fail(CORNU_ERR_FORMAT, "the scale %g", scale);
    if (!x) return cornu_error_take();
    if (first > 0.0) x = rounded(cornu_op_scale(x, first));
    x = rounded(cornu_op_divide(x, cornu_op_constant_like(x, scale)));
    x = cornu_op_clip(cornu_op_shift(x, zero), (double)cornu__whole(step, "low", -128),
                      (double)cornu__whole(step, "high", 127));
    if (!cornu__whole(step, "stored", 0)) x = cornu_op_scale(cornu_op_shift(x, -zero), scale);
    return cornu__result(step, 0, x);
}

const CornuReadRow cornu__read_states[] = {
    { "FakeQuantize", read_fake_quantize, .operands = 0 }, { "State", read_state, .operands = 0 },
    { 0 },
};
