/* ConvLSTM1D, ConvLSTM2D and ConvLSTM3D. Sequences of (W, C) are images of one row. A frame is an
 * image or a volume. */
#include "../convolutional/convolution_internal.h"
#include "../convolutional/depth_internal.h"
#include "recurrent_internal.h"

typedef struct {
    CornuLayer          base;
    CornuConvLstmConfig config;   /* resolved */
} ConvLstm;

enum { KERNEL, RECURRENT_KERNEL, BIAS, GATES = 4 };

extern const CornuLayerClass cornu__conv_lstm1d_class, cornu__conv_lstm2d_class;
extern const CornuLayerClass cornu__conv_lstm3d_class;

static const CornuConvLstmConfig *config_of(const CornuLayer *layer)
{
    return &((const ConvLstm *)layer)->config;
}

/* The axes of a frame without batch and channels, as the input has them. */
static int spatial(const CornuLayer *layer)
{
    return layer->kind == &cornu__conv_lstm1d_class   ? 1
           : layer->kind == &cornu__conv_lstm2d_class ? 2 : 3;
}

/* x (rows, …, C), frames, convolved with all gates' or one gate's kernel. */
static CornuTensor *convolve(const CornuVolumeWindow *window, CornuTensor *x, CornuTensor *kernel)
{
    if (!x || !kernel) return NULL;
    if (cornu_tensor_shape(x).rank == 5) return cornu__convolve_volume(x, kernel, window, 1);
    const CornuKernelWindow image = cornu__kernel_window(window->padding, window->size,
                                                         window->strides, window->dilation);
    const CornuConvolution  c = cornu__convolution(&image, cornu_tensor_shape(x), 1);
    return cornu_op_conv2d(x, kernel, &c);
}

static CornuVolumeWindow window_of(const CornuConvLstmConfig *config)
{
    CornuVolumeWindow window = { .padding = config->padding };
    for (int i = 0; i < 3; i++) {
        window.size[i] = config->kernel_size[i];
        window.strides[i] = config->strides[i];
        window.dilation[i] = config->dilation_rate[i];
    }
    return window;
}

/* The window of the convolution of h. */
static CornuVolumeWindow own_window(const CornuConvLstmConfig *config)
{
    CornuVolumeWindow window = window_of(config);
    window.padding = CORNU_SAME;
    for (int i = 0; i < 3; i++) window.strides[i] = window.dilation[i] = 1;
    return window;
}

/* ---- Weights ---- */

static CornuShape kernel_shape(const CornuLayer *layer, int64_t channels)
{
    const CornuConvLstmConfig *config = config_of(layer);
    const int                  axes = spatial(layer);
    CornuShape                 shape = cornu_shape_from(axes, config->kernel_size + (axes == 1));
    shape.extent[shape.rank++] = channels;
    shape.extent[shape.rank++] = GATES * config->filters;
    return shape;
}

static CornuStatus conv_lstm_build(CornuLayer *layer, CornuShape input)
{
    static const char *const   axes[] = { "(B, T, W, C)", "(B, T, H, W, C)", "(B, T, D, H, W, C)" };
    const CornuConvLstmConfig *config = config_of(layer);
    const int                  rank = spatial(layer) + 3, first = rank == 4;
    CornuShape                 step = { .rank = rank - 1, .extent = { CORNU_NONE } };
    CornuText                  text;
    CORNU__TRY(cornu__expect_input(input, rank, axes[rank - 4]));
    for (int i = 1; i < step.rank; i++) {
        step.extent[i] = input.extent[i + 1];
        if (step.extent[i] == CORNU_NONE)
            return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected known extents after "
                               "the steps", cornu_shape_print(&text, input));
    }
    CORNU__TRY(cornu__kernel_fits(config->padding, rank - 3, config->kernel_size + first,
                                  config->dilation_rate + first, step));
    CORNU__TRY(cornu__declare_weight(layer, "conv_lstm_cell/kernel",
                                     kernel_shape(layer, input.extent[rank - 1]),
                                     config->kernel_initializer, config->kernel_regularizer,
                                     config->kernel_constraint));
    CORNU__TRY(cornu__declare_weight(layer, "conv_lstm_cell/recurrent_kernel",
                                     kernel_shape(layer, config->filters),
                                     config->recurrent_initializer, config->recurrent_regularizer,
                                     config->recurrent_constraint));
    if (!config->no_bias)
        CORNU__TRY(cornu__declare_weight(layer, "conv_lstm_cell/bias",
                                         cornu_shape(GATES * config->filters),
                                         config->bias_initializer, config->bias_regularizer,
                                         config->bias_constraint));
    for (int i = 0; i < layer->own_count; i++) layer->weights[i]->blocks = GATES;
    return config->no_bias || config->no_unit_forget_bias
         ? CORNU_OK : cornu__forget_bias(layer->weights[BIAS]);
}

/* A kernel as that of an image. */
static CornuTensor *kernel_of(CornuLayer *layer, const CornuCall *call, int i)
{
    CornuTensor *kernel = cornu_layer_read(layer, call, i);
    if (!kernel || spatial(layer) > 1) return kernel;
    const CornuShape k = cornu_tensor_shape(kernel);
    return cornu_op_reshape(kernel, cornu_shape(1, k.extent[0], k.extent[1], k.extent[2]));
}

/* ---- Shapes ---- */

/* x (B, T, …, C) as frames (B T, …, C). */
static CornuShape frames_of(const CornuLayer *layer, CornuShape x)
{
    CornuShape frames = { .rank = 1, .extent = { x.extent[0] * x.extent[1] } };
    if (spatial(layer) == 1) frames.extent[frames.rank++] = 1;
    for (int i = 2; i < x.rank; i++) frames.extent[frames.rank++] = x.extent[i];
    return frames;
}

/* The frame (B, …, filters) that the convolution of x (B, T, …, C) gives of a step. */
static CornuShape frame_of_state(const CornuLayer *layer, CornuShape x)
{
    const CornuConvLstmConfig *config = config_of(layer);
    CornuShape                 frame = frames_of(layer, x);
    frame.extent[0] = x.extent[0];
    frame.extent[frame.rank - 1] = config->filters;
    for (int i = 0; i < frame.rank - 2; i++) {
        const int64_t size = config->kernel_size[i], dilation = config->dilation_rate[i];
        int64_t      *extent = &frame.extent[i + 1], low, high;
        cornu__padding(config->padding, *extent, size, config->strides[i], dilation, &low, &high);
        *extent = (*extent + low + high - dilation * (size - 1) - 1) / config->strides[i] + 1;
    }
    return frame;
}

/* Of ConvLSTM1D the frames have one row, its values do not. */
static CornuShape without_row(const CornuLayer *layer, CornuShape image)
{
    if (spatial(layer) > 1) return image;
    return cornu_shape(image.extent[0], image.extent[2], image.extent[3]);
}

/* frames (B T, …) with the axes of batch and steps, (B, T, …), of x. */
static CornuShape with_steps(CornuShape x, CornuShape frames)
{
    CornuShape shape = { .rank = 2, .extent = { x.extent[0], x.extent[1] } };
    for (int i = 1; i < frames.rank; i++) shape.extent[shape.rank++] = frames.extent[i];
    return shape;
}

static int states(const CornuLayer *layer)
{
    (void)layer;
    return 2;
}

static CornuShape state_shape(const CornuLayer *layer, int i, CornuShape x)
{
    (void)i;
    return without_row(layer, frame_of_state(layer, x));
}

/* ---- Dropout ---- */

/* For each gate the factors of x, (B, 1, …, C), and of h, (B, …, filters); NULL without. */
typedef struct { CornuTensor *x[GATES], *h[GATES]; } Dropped;

static bool draw(const CornuLayer *layer, const CornuCall *call, CornuShape x, CornuShape state,
                 Dropped *dropped)
{
    const CornuConvLstmConfig *config = config_of(layer);
    const double               rate = config->dropout, state_rate = config->recurrent_dropout;
    const int64_t own = cornu_shape_count(state) / state.extent[0];
    const int64_t in = cornu_shape_count(x) / (x.extent[0] * x.extent[1]);
    *dropped = (Dropped){ .x = { NULL } };
    if (!call->training || (rate == 0.0 && state_rate == 0.0)) return true;
    CornuTensor *uniform = cornu_op_random_uniform(
        cornu_shape(x.extent[0], GATES * (in + own)), call->seed, call->iteration, call->position,
        layer->generator);
    if (!uniform) return false;
    x.extent[1] = 1;
    for (int g = 0; g < GATES; g++) {
        if (rate > 0.0)
            dropped->x[g] = cornu_op_reshape(
                cornu__dropout_factors(layer, uniform, g * in, in, rate), x);
        if (state_rate > 0.0)
            dropped->h[g] = cornu_op_reshape(
                cornu__dropout_factors(layer, uniform, GATES * in + g * own, own, state_rate),
                state);
    }
    return !cornu_error_pending();
}

/* ---- Calls ---- */

/* Channels of gate g, the last axis of x. */
static CornuTensor *gate(CornuTensor *x, int g)
{
    if (!x) return NULL;
    CornuShape shape = cornu_tensor_shape(x);
    int64_t    starts[CORNU_MAX_RANK] = { 0 };
    shape.extent[shape.rank - 1] /= GATES;
    starts[shape.rank - 1] = g * shape.extent[shape.rank - 1];
    return cornu_op_slice(x, starts, shape.extent);
}

/* x (B, T, …, C) convolved with all gates' kernels; with factors, each gate has its own x. */
static CornuTensor *convolved(const CornuLayer *layer, CornuTensor *x, CornuTensor *kernel,
                              CornuTensor *const *factors)
{
    const CornuVolumeWindow window = window_of(config_of(layer));
    CornuTensor            *each[GATES];
    if (!x || !kernel) return NULL;
    const CornuShape frames = frames_of(layer, cornu_tensor_shape(x));
    if (!factors[0]) return convolve(&window, cornu_op_reshape(x, frames), kernel);
    for (int g = 0; g < GATES; g++)
        each[g] = convolve(&window, cornu_op_reshape(cornu_op_multiply(x, factors[g]), frames),
                           gate(kernel, g));
    return cornu_op_concat(each, GATES, frames.rank - 1);
}

/* z (B, T, …, 4 filters): the gates' pre-activations from x. */
static CornuTensor *from_input(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                               const Dropped *dropped)
{
    CornuTensor *z = convolved(layer, x, kernel_of(layer, call, KERNEL), dropped->x);
    if (z && !config_of(layer)->no_bias) z = cornu_op_add(z, cornu_layer_read(layer, call, BIAS));
    if (!z) return NULL;
    return cornu_op_reshape(z, with_steps(cornu_tensor_shape(x), cornu_tensor_shape(z)));
}

typedef struct {
    const CornuConvLstmConfig *config;
    bool                       masked, dropped;
} Step;

/* h' = o act(c')   c' = f c + i act(…) */
static void step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Step                *self = context;
    const CornuConvLstmConfig *config = self->config;
    const CornuVolumeWindow    window = own_window(config);
    CornuTensor *h = in[0], *c = in[1], *z = in[2], *mask = self->masked ? in[3] : NULL, *a[GATES];
    CornuTensor *const *rest = in + 3 + self->masked;
    CornuTensor        *kernel = rest[0], *u;
    if (!h || !kernel) return;
    for (int g = 0; g < GATES && self->dropped; g++)
        a[g] = convolve(&window, cornu_op_multiply(h, rest[1 + g]), gate(kernel, g));
    u = self->dropped ? cornu_op_concat(a, GATES, cornu_tensor_shape(h).rank - 1)
                      : convolve(&window, h, kernel);
    z = cornu_op_add(z, u);
    for (int g = 0; g < GATES; g++)
        a[g] = cornu_activation_apply(g == 2 ? config->activation : config->recurrent_activation,
                                      gate(z, g));
    CornuTensor *new_c = cornu_op_add(cornu_op_multiply(a[1], c), cornu_op_multiply(a[0], a[2]));
    CornuTensor *new_h = cornu_op_multiply(a[3],
                                           cornu_activation_apply(config->activation, new_c));
    out[0] = out[2] = cornu__where_valid(mask, new_h, h);
    out[1] = cornu__where_valid(mask, new_c, c);
}

static CornuTensor *run(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                        CornuTensor *const *first, bool reverse, CornuTensor **last)
{
    const CornuShape shape = cornu_tensor_shape(x), state = frame_of_state(layer, shape);
    CornuTensor     *carries[2], *slices[2], *constants[1 + GATES], *out[3] = { NULL };
    Dropped          dropped;
    if (!draw(layer, call, shape, state, &dropped)) return NULL;
    Step self = { config_of(layer), call->mask != NULL, dropped.h[0] != NULL };
    for (int i = 0; i < 2; i++)
        carries[i] = first[i]
            ? cornu_op_reshape(cornu_op_convert(first[i], layer->compute), state)
            : cornu_op_constant(call->graph, cornu_type_from(layer->compute, state), 0.0);
    slices[0] = from_input(layer, call, x, &dropped);
    slices[1] = call->mask;
    constants[0] = kernel_of(layer, call, RECURRENT_KERNEL);
    for (int g = 0; g < GATES; g++) constants[1 + g] = dropped.h[g];
    if (!carries[0] || !carries[1] || !slices[0] || !constants[0]) return NULL;
    const CornuScan scan = {
        .carries = carries, .carry_count = 2, .slices = slices,
        .slice_count = self.masked ? 2 : 1, .constants = constants,
        .constant_count = self.dropped ? 1 + GATES : 1, .axis = 1, .stacked_count = 1,
        .reverse = reverse,
    };
    if (!cornu_op_scan(&scan, step, &self, out)) return NULL;
    for (int i = 0; i < 2; i++) last[i] = cornu_op_reshape(out[i], without_row(layer, state));
    return cornu_op_reshape(out[2], with_steps(shape, without_row(layer, state)));
}

static const CornuCell cell = { .states = states, .state_shape = state_shape, .run = run };

/* ---- Classes and constructors ---- */

#define AT(field) offsetof(CornuConvLstmConfig, field)
#define FIELDS                                                                      \
    { "filters", CORNU_FIELD_INTEGER, AT(filters) },                                \
    { "padding", CORNU_FIELD_PADDING, AT(padding) },                                \
    CORNU__KERNEL_FIELDS(CornuConvLstmConfig),                                      \
    { "recurrent_activation", CORNU_FIELD_ACTIVATION, AT(recurrent_activation) },   \
    { "unit_forget_bias", CORNU_FIELD_NOT, AT(no_unit_forget_bias) },               \
    { "recurrent_initializer", CORNU_FIELD_INITIALIZER, AT(recurrent_initializer) },\
    { "recurrent_regularizer", CORNU_FIELD_REGULARIZER, AT(recurrent_regularizer) },\
    { "recurrent_constraint", CORNU_FIELD_CONSTRAINT, AT(recurrent_constraint) },   \
    { "dropout", CORNU_FIELD_NUMBER, AT(dropout) },                                 \
    { "recurrent_dropout", CORNU_FIELD_NUMBER, AT(recurrent_dropout) },             \
    CORNU__OVER_TIME_FIELDS(CornuConvLstmConfig)

static const CornuField row_fields[] = {
    FIELDS, CORNU__ROW_WINDOW_FIELDS(CornuConvLstmConfig), { 0 },
};
static const CornuField image_fields[] = {
    FIELDS, CORNU__WINDOW_FIELDS(CornuConvLstmConfig), { 0 },
};
static const CornuField volume_fields[] = {
    FIELDS,
    { "kernel_size", CORNU_FIELD_TRIPLE, AT(kernel_size) },
    { "strides", CORNU_FIELD_TRIPLE, AT(strides) },
    { "dilation_rate", CORNU_FIELD_TRIPLE, AT(dilation_rate) },
    { 0 },
};

static CornuStatus conv_lstm_resolve(CornuLayer *layer)
{
    CornuConvLstmConfig *config = &((ConvLstm *)layer)->config;
    CORNU__TRY(cornu__positive(cornu_layer_name(layer), "filters", config->filters));
    CORNU__TRY(cornu__resolve_rate(layer, "dropout", &config->dropout));
    CORNU__TRY(cornu__resolve_rate(layer, "recurrent_dropout", &config->recurrent_dropout));
    config->activation = cornu__activation(config->activation, CORNU_TANH);
    config->recurrent_activation = cornu__activation(config->recurrent_activation, CORNU_SIGMOID);
    return cornu__resolve_window(layer, config->padding, &config->kernel, config->kernel_size,
                                 &config->stride, config->strides, config->dilation_rate);
}

static const char *const folders[] = { "conv_lstm_cell:cell", NULL };

#define CLASS(label, name, fields)                                                            \
    const CornuLayerClass cornu__##label##_class = {                                          \
        .class_name = name, .size = sizeof(ConvLstm), .build = conv_lstm_build,               \
        .call_many = cornu__over_time_call, .outputs = cornu__over_time_outputs,              \
        .mask = cornu__over_time_mask, .family = &cell,                                       \
        .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields, ConvLstm, conv_lstm_resolve), \
                                           .folders = folders, .operands = "initial_state*" }, \
    }
CLASS(conv_lstm1d, "ConvLSTM1D", row_fields);
CLASS(conv_lstm2d, "ConvLSTM2D", image_fields);
CLASS(conv_lstm3d, "ConvLSTM3D", volume_fields);

CORNU__CONSTRUCTOR(conv_lstm1d, CornuConvLstmConfig)
CORNU__CONSTRUCTOR(conv_lstm2d, CornuConvLstmConfig)
CORNU__CONSTRUCTOR(conv_lstm3d, CornuConvLstmConfig)
