/* Cells as Scan, a loop of which ONNX has the body as a graph: for masks, and for activations that
 * the recurrent operators lack. What a body reads from the graph around it is constant. */
#include "recurrent_internal.h"

#include "../../../device/memory_internal.h"
#include "../../layers/convolutional/convolution_internal.h"

enum { MOST_STATES = 2, GATES = 4 };

/* ---- The loop ---- */

/* The values of a step: its states, its slice of z and of the mask. */
typedef struct {
    int state[MOST_STATES], z, mask;
} Step;

/* Fills `next` with the next states, of which the first is the output too. */
typedef void Body(CornuOnnxRun *run, const void *context, const Step *step, int *next);

/* new where the mask (B) of the step is true, else old; both are of this rank. */
static int kept(CornuOnnx *to, int mask, int rank, int new, int old)
{
    int64_t   axes[CORNU_MAX_RANK];
    if (mask == CORNU_ONNX_NONE) return new;
    for (int i = 1; i < rank; i++) axes[i - 1] = i;
    const int wide = joined(to, "Unsqueeze", mask, cornu__onnx_integers(to, axes, rank - 1));
    return cornu__onnx_node(to, "Where", (const int[]){ wide, new, old }, 3, NULL, 0, 1);
}

/* Zeros (B, …) for the batch of x; the shape's own batch is open. */
static int zeros(CornuOnnx *to, int x, CornuShape shape)
{
    const int64_t begin = 0, end = 1;
    const int in[] = { one(to, "Shape", x), cornu__onnx_integers(to, &begin, 1),
                       cornu__onnx_integers(to, &end, 1) };
    int       of[] = { cornu__onnx_node(to, "Slice", in, 3, NULL, 0, 1), 0 };
    of[1] = cornu__onnx_integers(to, shape.extent + 1, shape.rank - 1);
    const int extents = CORNU__ONNX_NODE(to, "Concat", of, { .name = "axis", .whole = 0 });
    return joined(to, "Expand", cornu__onnx_scalar(to, 0.0), extents);
}

/* Runs the body over z (B, T, …); `state` is the shape of each state. Sets run->y and run->last in
 * the layout of the states. */
static void scan(CornuOnnxRun *run, int z, CornuShape state, int states, Body *body,
                 const void *context)
{
    CornuOnnx    *to = run->to;
    const bool    masked = run->mask != CORNU_ONNX_NONE;
    const int     slices = masked ? 2 : 1;
    const int64_t axis[] = { 1, 1 }, direction[] = { run->reverse, run->reverse };
    int           in[MOST_STATES + 2], inner[MOST_STATES + 2], out[MOST_STATES + 1];
    bool          truths[MOST_STATES + 2] = { false };
    Step          step = { .z = 0 };
    run->state = state;
    const int     none = run->first ? 0 : zeros(to, z, state);
    for (int i = 0; i < states; i++) in[i] = run->first ? run->first[i] : none;
    in[states] = z;
    in[states + 1] = run->mask;
    truths[states + 1] = true;

    CornuOnnxBody graph = cornu__onnx_begin_body(to, states + slices, inner);
    for (int i = 0; i < states; i++) step.state[i] = inner[i];
    step.z = inner[states];
    if (masked) step.mask = inner[states + 1];
    body(run, context, &step, out);
    for (int i = 0; i < states; i++)
        out[i] = kept(to, step.mask, state.rank, out[i], step.state[i]);
    out[states] = one(to, "Identity", out[0]);
    cornu__onnx_end_body(to, &graph, inner, truths, states + slices, out, states + 1);

    const CornuOnnxAttribute attributes[] = {
        { .name = "body", .graph = &graph.body },
        { .name = "num_scan_inputs", .whole = slices },
        { .name = "scan_input_axes", .integers = axis, .count = slices },
        { .name = "scan_input_directions", .integers = direction, .count = slices },
        { .name = "scan_output_axes", .integers = axis, .count = 1 },
        { .name = "scan_output_directions", .integers = direction, .count = 1 },
    };
    const int made = cornu__onnx_node(to, "Scan", in, states + slices, attributes,
                                      (int)(sizeof attributes / sizeof *attributes), states + 1);
    cornu__onnx_free_body(&graph);
    for (int i = 0; i < states; i++) run->last[i] = made + i;
    run->y = made + states;
}

/* ---- LSTM, GRU, SimpleRNN ---- */

/* Constants of the recurrent product: the kernel (U, G U), or for a GRU with the reset before it
 * those of the gates and of the state; and their biases. */
typedef struct {
    int kernel[2], bias[2];
} Products;

/* Columns first to first + count - 1 of row `row` of a weight, or of all rows if it is -1. */
static int columns(CornuOnnxRun *run, int i, int64_t row, int64_t first, int64_t count)
{
    CornuOnnx       *to = run->to;
    const CornuShape shape = run->cell->weights[i]->type.shape;
    const int64_t    wide = shape.extent[shape.rank - 1];
    const int64_t    rows = row >= 0 || shape.rank == 1 ? 1 : shape.extent[0];
    const float     *from = cornu__onnx_values(to, run->cell, i) + (row > 0 ? row * wide : 0);
    float           *values = cornu__onnx_room(to, cornu_shape(rows, count));
    if (!values) return CORNU_ONNX_NONE;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < count; c++) values[r * count + c] = from[r * wide + first + c];
    const int constant = cornu__onnx_constant(
        to, row >= 0 || shape.rank == 1 ? cornu_array(values, CORNU_F32, count)
                                        : cornu_array(values, CORNU_F32, rows, count));
    cornu__release(values);
    return constant;
}

/* x kernel + bias, unless there is no bias. */
static int product(CornuOnnx *to, int x, int kernel, int bias)
{
    const int y = joined(to, "MatMul", x, kernel);
    return bias == CORNU_ONNX_NONE ? y : two(to, "Add", y, bias);
}

static int activate(CornuOnnxRun *run, const char *argument, int x)
{
    return cornu__onnx_activate(run->to, activation_of(run->cell, argument), x, run->state);
}

/* c' = f c + i act(g)   h' = o act(c'); a are the pre-activations i f g o. */
static void lstm_step(CornuOnnxRun *run, int a, int c, int *next)
{
    CornuOnnx *to = run->to;
    const int  i = activate(run, "recurrent_activation", a);
    const int  f = activate(run, "recurrent_activation", a + 1);
    const int  g = activate(run, "activation", a + 2);
    const int  o = activate(run, "recurrent_activation", a + 3);
    const int  old = two(to, "Mul", f, c), new = two(to, "Mul", i, g);
    next[1] = two(to, "Add", old, new);
    next[0] = two(to, "Mul", o, activate(run, "activation", next[1]));
}

static void lstm(CornuOnnxRun *run, const void *context, const Step *step, int *next)
{
    const Products *products = context;
    const int       u = product(run->to, step->state[0], products->kernel[0], CORNU_ONNX_NONE);
    const int       a = two(run->to, "Add", step->z, u);
    lstm_step(run, cornu__onnx_split(run->to, a, 1, GATES), step->state[1], next);
}

/* h' = z h + (1 - z) g = g + z (h - g) */
static void gru(CornuOnnxRun *run, const void *context, const Step *step, int *next)
{
    CornuOnnx      *to = run->to;
    const Products *products = context;
    const bool      after = given(run->cell, "reset_after");
    const int       h = step->state[0], x = cornu__onnx_split(to, step->z, 1, 3);
    const int       u = product(to, h, products->kernel[0], products->bias[0]);
    const int       own = cornu__onnx_split(to, u, 1, after ? 3 : 2);
    const int       to_z = two(to, "Add", x, own);
    const int       z = activate(run, "recurrent_activation", to_z);
    const int       to_r = two(to, "Add", x + 1, own + 1);
    const int       r = activate(run, "recurrent_activation", to_r);
    int             inner = after ? own + 2 : h;
    inner = two(to, "Mul", r, inner);
    if (!after) inner = product(to, inner, products->kernel[1], products->bias[1]);
    const int g = activate(run, "activation", two(to, "Add", x + 2, inner));
    const int kept_part = two(to, "Mul", z, two(to, "Sub", h, g));
    next[0] = two(to, "Add", g, kept_part);
}

static void simple_rnn(CornuOnnxRun *run, const void *context, const Step *step, int *next)
{
    const Products *products = context;
    const int       u = product(run->to, step->state[0], products->kernel[0], CORNU_ONNX_NONE);
    next[0] = activate(run, "activation", two(run->to, "Add", step->z, u));
}

CornuStatus cornu__onnx_scan_gates(CornuOnnxRun *run)
{
    const CornuLayer *cell = run->cell;
    const bool        bias = given(cell, "use_bias");
    const int         gates = cornu__onnx_gates(cell);
    const int64_t     units = whole(cell, "units"), wide = gates * units;
    const bool        two_rows = bias && cell->weights[2]->type.shape.rank == 2;
    const int64_t     row = two_rows ? 0 : -1;
    const bool        before = gates == 3 && flag(cell, "reset_after");   /* a flag's opposite */
    Products          products = { { 0 }, { 0 } };
    const int         kernel = columns(run, 0, -1, 0, wide);
    const int         own_bias = bias ? columns(run, 2, row, 0, wide) : CORNU_ONNX_NONE;
    const int         z = product(run->to, run->x, kernel, own_bias);
    products.kernel[0] = columns(run, 1, -1, 0, before ? 2 * units : wide);
    if (before) products.kernel[1] = columns(run, 1, -1, 2 * units, units);
    if (two_rows) products.bias[0] = columns(run, 2, 1, 0, wide);
    scan(run, z, cornu_shape(CORNU_NONE, units), gates == 4 ? 2 : 1,
         gates == 4 ? lstm : gates == 3 ? gru : simple_rnn, &products);
    return CORNU_OK;
}

/* ---- ConvLSTM: states have channels first ---- */

typedef struct {
    int     axes;                    /* spatial */
    int     kernel;
    int64_t pads[6];
} Own;

static int convolve(CornuOnnx *to, int x, int kernel, int bias, int axes, const int64_t *strides,
                    const int64_t *dilations, const int64_t *pads)
{
    const int in[] = { x, kernel, bias };
    return CORNU__ONNX_NODE(to, "Conv", in,
                            { .name = "strides", .integers = strides, .count = axes },
                            { .name = "dilations", .integers = dilations, .count = axes },
                            { .name = "pads", .integers = pads, .count = 2 * axes });
}

static void conv_lstm(CornuOnnxRun *run, const void *context, const Step *step, int *next)
{
    static const int64_t ones[] = { 1, 1, 1 };
    const Own *own = context;
    const int  u = convolve(run->to, step->state[0], own->kernel, CORNU_ONNX_NONE, own->axes, ones,
                            ones, own->pads);
    const int  a = two(run->to, "Add", step->z, u);
    lstm_step(run, cornu__onnx_split(run->to, a, 1, GATES), step->state[1], next);
}

/* The kernel (…, C, 4 F) as (4 F, C, …). */
static int kernel_of(CornuOnnxRun *run, int i)
{
    const CornuShape own = run->cell->weights[i]->type.shape;
    CornuShape       shape = { .rank = own.rank };
    int              order[CORNU_MAX_RANK];
    for (int k = 0; k < own.rank; k++) {
        order[k] = k < 2 ? own.rank - 1 - k : k - 2;
        shape.extent[k] = own.extent[order[k]];
    }
    return cornu__onnx_weight_as(run->to, run->cell, i, order, shape);
}

/* x (B, T, …, C) as (B T, C, …) */
static int pictures(CornuOnnxRun *run)
{
    CornuShape shape = { .rank = run->shape.rank - 1, .extent = { CORNU_NONE } };
    for (int i = 1; i < shape.rank; i++) shape.extent[i] = run->shape.extent[i + 1];
    const int x = cornu__onnx_reshape(run->to, run->x, shape);
    return cornu__onnx_channels_first(run->to, x, shape.rank);
}

/* A state with channels first, (B, F, …), from one with channels last, or back. */
static int turned(CornuOnnxRun *run, int x, bool first, int rank)
{
    return (first ? cornu__onnx_channels_first : cornu__onnx_channels_last)(run->to, x, rank);
}

CornuStatus cornu__onnx_scan_convolutions(CornuOnnxRun *run)
{
    CornuOnnx         *to = run->to;
    const CornuLayer  *cell = run->cell;
    const CornuPadding padding = *(const CornuPadding *)cornu__layer_argument(cell, "padding");
    const int64_t *size = cornu__layer_argument(cell, "kernel_size");
    const int64_t *strides = cornu__layer_argument(cell, "strides");
    const int64_t *dilations = cornu__layer_argument(cell, "dilation_rate");
    const int64_t  filters = whole(cell, "filters");
    const int      axes = run->shape.rank - 3, rank = axes + 2;
    int64_t        pads[6];
    int            first[MOST_STATES];
    Own            own = { .axes = axes };
    CornuShape     state = { .rank = rank, .extent = { CORNU_NONE, filters } };
    CornuShape     steps = { .rank = rank + 1, .extent = { CORNU_NONE, run->shape.extent[1],
                                                           GATES * filters } };
    for (int i = 0; i < axes; i++) {
        const int64_t extent = run->shape.extent[2 + i], reach = dilations[i] * (size[i] - 1) + 1;
        if (cornu__onnx_is_open(extent))
            return cornu__onnx_refuse(cell, "an input of unknown extents",
                                      "the states of this layer have them");
        cornu__padding(padding, extent, size[i], strides[i], dilations[i], &pads[i],
                       &pads[axes + i]);
        state.extent[2 + i] = (extent + pads[i] + pads[axes + i] - reach) / strides[i] + 1;
        steps.extent[3 + i] = state.extent[2 + i];
        cornu__padding(CORNU_SAME, state.extent[2 + i], size[i], 1, 1, &own.pads[i],
                       &own.pads[axes + i]);
    }
    const int x = pictures(run), kernel = kernel_of(run, 0);
    const int bias = given(cell, "use_bias") ? cornu__onnx_weight(to, cell, 2) : CORNU_ONNX_NONE;
    const int z = convolve(to, x, kernel, bias, axes, strides, dilations, pads);
    own.kernel = kernel_of(run, 1);
    for (int i = 0; i < MOST_STATES && run->first; i++)
        first[i] = turned(run, run->first[i], true, rank);
    if (run->first) run->first = first;
    scan(run, cornu__onnx_reshape(to, z, steps), state, MOST_STATES, conv_lstm, &own);
    for (int i = 0; i < MOST_STATES; i++) run->last[i] = turned(run, run->last[i], false, rank);
    int64_t order[CORNU_MAX_RANK] = { 0, 1 };
    for (int i = 2; i < rank; i++) order[i] = i + 1;
    order[rank] = 2;
    run->y = cornu__onnx_transpose(to, run->y, order, rank + 1);
    return CORNU_OK;
}
