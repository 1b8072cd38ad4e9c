/* ConvLSTM1D and ConvLSTM2D. Sequences of (W, C) are images of one row. */
#include "../convolutional/convolution_internal.h"
#include "recurrent_internal.h"

typedef struct {
    CornuCellLayer      base;
    CornuConvLstmConfig config;   /* resolved */
} ConvLstm;

enum { KERNEL, RECURRENT_KERNEL, BIAS, GATES = 4 };

extern const CornuLayerClass cornu__conv_lstm1d_class, cornu__conv_lstm2d_class;

static const CornuConvLstmConfig *config_of(const CornuLayer *layer)
{
    return &((const ConvLstm *)layer)->config;
}

/* The axes of a picture without its channels. */
static int spatial(const CornuLayer *layer)
{
    return layer->kind == &cornu__conv_lstm1d_class ? 1 : 2;
}

static CornuKernelWindow window_of(const CornuConvLstmConfig *config)
{
    return cornu__kernel_window(config->padding, config->kernel_size, config->strides,
                                config->dilation_rate);
}

/* The window of the convolution of h. */
static CornuKernelWindow own_window(const CornuConvLstmConfig *config)
{
    const int64_t one[] = { 1, 1 };
    return cornu__kernel_window(CORNU_SAME, config->kernel_size, one, one);
}

/* ---- Weights ---- */

static CornuShape kernel_shape(const CornuLayer *layer, int64_t channels)
{
    const CornuConvLstmConfig *config = config_of(layer);
    const int64_t              wide = GATES * config->filters, *size = config->kernel_size;
    return spatial(layer) == 1 ? cornu_shape(size[1], channels, wide)
                               : cornu_shape(size[0], size[1], channels, wide);
}

static CornuStatus build(CornuLayer *layer, CornuShape input)
{
    static const char *const   axes[] = { "(B, T, W, C)", "(B, T, H, W, C)" };
    const CornuConvLstmConfig *config = config_of(layer);
    const CornuKernelWindow    window = window_of(config);
    const int                  rank = spatial(layer) + 3;
    CornuShape                 step = { .rank = rank - 1, .extent = { CORNU_NONE } };
    CornuText                  text;
    CORNU__TRY(cornu__expect_input(input, rank, axes[rank - 4]));
    for (int i = 1; i < step.rank; i++) {
        step.extent[i] = input.extent[i + 1];
        if (step.extent[i] == CORNU_NONE)
            return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected known extents after "
                               "the steps", cornu_shape_print(&text, input));
    }
    CORNU__TRY((rank == 4 ? cornu__row_window_fits : cornu__window_fits)(&window, step));
    CORNU__TRY(cornu__declare_weight(layer, "conv_lstm_cell/kernel",
                                     kernel_shape(layer, input.extent[rank - 1]),
                                     config->kernel_initializer, config->kernel_regularizer,
                                     config->kernel_constraint));
    CORNU__TRY(cornu__declare_weight(layer, "conv_lstm_cell/recurrent_kernel",
                                     kernel_shape(layer, config->filters),
                                     config->recurrent_initializer, config->recurrent_regularizer,
                                     config->recurrent_constraint));
    if (config->no_bias) return CORNU_OK;
    CORNU__TRY(cornu__declare_weight(layer, "conv_lstm_cell/bias",
                                     cornu_shape(GATES * config->filters),
                                     config->bias_initializer, config->bias_regularizer,
                                     config->bias_constraint));
    return config->no_unit_forget_bias ? CORNU_OK : cornu__forget_bias(layer->weights[BIAS]);
}

/* A kernel as that of an image. */
static CornuTensor *kernel_of(CornuLayer *layer, const CornuCall *call, int i)
{
    CornuTensor *kernel = cornu_layer_read(layer, call, i);
    if (!kernel || spatial(layer) == 2) return kernel;
    const CornuShape k = cornu_tensor_shape(kernel);
    return cornu_op_reshape(kernel, cornu_shape(1, k.extent[0], k.extent[1], k.extent[2]));
}

/* ---- Shapes ---- */

/* x (B, T, …, C) as images (B T, H, W, C). */
static CornuShape images_of(const CornuLayer *layer, CornuShape x)
{
    const int64_t *last = x.extent + x.rank - 3;
    return cornu_shape(x.extent[0] * x.extent[1], spatial(layer) == 1 ? 1 : last[0], last[1],
                       last[2]);
}

/* The image (B, H', W', filters) that the convolution of x (B, T, …, C) gives of a step. */
static CornuShape image_of_state(const CornuLayer *layer, CornuShape x)
{
    const CornuConvLstmConfig *config = config_of(layer);
    const CornuKernelWindow    window = window_of(config);
    const CornuShape           image = images_of(layer, x);
    const CornuConvolution     c = cornu__convolution(&window, image, 1);
    int64_t                    extent[2];
    for (int i = 0; i < 2; i++) {
        const int64_t reach = window.dilation[i] * (window.size[i] - 1) + 1;
        extent[i] = (image.extent[i + 1] + c.low[i] + c.high[i] - reach) / c.strides[i] + 1;
    }
    return cornu_shape(x.extent[0], extent[0], extent[1], config->filters);
}

/* Of ConvLSTM1D the images have one row, its values do not. */
static CornuShape without_row(const CornuLayer *layer, CornuShape image)
{
    if (spatial(layer) == 2) return image;
    return cornu_shape(image.extent[0], image.extent[2], image.extent[3]);
}

static int states(const CornuLayer *layer)
{
    (void)layer;
    return 2;
}

static CornuShape state_shape(const CornuLayer *layer, int i, CornuShape x)
{
    (void)i;
    return without_row(layer, image_of_state(layer, x));
}

/* ---- Dropout ---- */

/* For each gate the factors of x, (B, 1, H, W, C), and of h, (B, H', W', filters); NULL without. */
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

/* The convolution of x, images or with an axis of steps, by all gates' kernels; with factors, each
 * gate has its own x. */
static CornuTensor *convolved(const CornuLayer *layer, CornuTensor *x, CornuTensor *kernel,
                              const CornuKernelWindow *window, CornuTensor *const *factors)
{
    CornuTensor *each[GATES];
    if (!x || !kernel) return NULL;
    const CornuShape       shape = cornu_tensor_shape(x);
    const bool             steps = shape.rank > 4 || spatial(layer) == 1;
    const CornuShape       image = steps ? images_of(layer, shape) : shape;
    const CornuConvolution c = cornu__convolution(window, image, 1);
    if (!factors[0])
        return cornu_op_conv2d(steps ? cornu_op_reshape(x, image) : x, kernel, &c);
    for (int g = 0; g < GATES; g++) {
        CornuTensor *own = cornu_op_multiply(x, factors[g]);
        each[g] = cornu_op_conv2d(steps ? cornu_op_reshape(own, image) : own, gate(kernel, g), &c);
    }
    return cornu_op_concat(each, GATES, 3);
}

/* z (B, T, H', W', 4 filters): the gates' pre-activations from x. */
static CornuTensor *from_input(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                               const Dropped *dropped)
{
    const CornuKernelWindow window = window_of(config_of(layer));
    const CornuShape        shape = cornu_tensor_shape(x);
    CornuTensor *z = convolved(layer, x, kernel_of(layer, call, KERNEL), &window, dropped->x);
    if (z && !config_of(layer)->no_bias) z = cornu_op_add(z, cornu_layer_read(layer, call, BIAS));
    if (!z) return NULL;
    const CornuShape made = cornu_tensor_shape(z);
    return cornu_op_reshape(z, cornu_shape(shape.extent[0], shape.extent[1], made.extent[1],
                                           made.extent[2], made.extent[3]));
}

typedef struct {
    const CornuConvLstmConfig *config;
    bool                       masked, dropped;
} Step;

/* new where the mask (B) is true, else old. */
static CornuTensor *where(CornuTensor *mask, CornuTensor *new, CornuTensor *old)
{
    if (!mask) return new;
    return cornu_op_select(cornu_op_reshape(mask, cornu_shape(CORNU_NONE, 1, 1, 1)), new, old);
}

/* h' = o act(c')   c' = f c + i act(…) */
static void step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    const Step                *self = context;
    const CornuConvLstmConfig *config = self->config;
    const CornuKernelWindow    window = own_window(config);
    CornuTensor *h = in[0], *c = in[1], *z = in[2], *mask = self->masked ? in[3] : NULL, *a[GATES];
    CornuTensor *const *rest = in + 3 + self->masked;
    CornuTensor        *kernel = rest[0], *u;
    if (!h || !kernel) return;
    const CornuConvolution own = cornu__convolution(&window, cornu_tensor_shape(h), 1);
    for (int g = 0; g < GATES && self->dropped; g++)
        a[g] = cornu_op_conv2d(cornu_op_multiply(h, rest[1 + g]), gate(kernel, g), &own);
    u = self->dropped ? cornu_op_concat(a, GATES, 3) : cornu_op_conv2d(h, kernel, &own);
    z = cornu_op_add(z, u);
    for (int g = 0; g < GATES; g++)
        a[g] = cornu_activation_apply(g == 2 ? config->activation : config->recurrent_activation,
                                      gate(z, g));
    CornuTensor *new_c = cornu_op_add(cornu_op_multiply(a[1], c), cornu_op_multiply(a[0], a[2]));
    CornuTensor *new_h = cornu_op_multiply(a[3],
                                           cornu_activation_apply(config->activation, new_c));
    out[0] = out[2] = where(mask, new_h, h);
    out[1] = where(mask, new_c, c);
}

static CornuTensor *run(CornuLayer *layer, const CornuCall *call, CornuTensor *x,
                        CornuTensor *const *first, bool reverse, CornuTensor **last)
{
    const CornuShape shape = cornu_tensor_shape(x), state = image_of_state(layer, shape);
    CornuTensor     *carries[2], *slices[2], *constants[1 + GATES], *out[3] = { NULL };
    Dropped          dropped;
    if (!draw(layer, call, shape, state, &dropped)) return NULL;
    Step self = { config_of(layer), call->mask != NULL, dropped.h[0] != NULL };
    for (int i = 0; i < 2; i++)
        carries[i] = cornu_op_reshape(cornu_op_convert(first[i], layer->compute), state);
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
    if (spatial(layer) == 2) return out[2];
    return cornu_op_reshape(out[2], cornu_shape(shape.extent[0], shape.extent[1], state.extent[2],
                                                state.extent[3]));
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

static CornuLayer *from_1d(const void *config) { return cornu_conv_lstm1d_from(config); }
static CornuLayer *from_2d(const void *config) { return cornu_conv_lstm2d_from(config); }

static const char *const folders[] = { "conv_lstm_cell:cell", NULL };

const CornuLayerClass cornu__conv_lstm1d_class = {
    .class_name = "ConvLSTM1D", .size = sizeof(ConvLstm), .build = build,
    .call_many = cornu__over_time_call, .outputs = cornu__over_time_outputs,
    .mask = cornu__over_time_mask, .fields = row_fields,
    .config_size = sizeof(CornuConvLstmConfig), .config_offset = offsetof(ConvLstm, config),
    .from = from_1d, .operands = "initial_state*", .folders = folders,
};

const CornuLayerClass cornu__conv_lstm2d_class = {
    .class_name = "ConvLSTM2D", .size = sizeof(ConvLstm), .build = build,
    .call_many = cornu__over_time_call, .outputs = cornu__over_time_outputs,
    .mask = cornu__over_time_mask, .fields = image_fields,
    .config_size = sizeof(CornuConvLstmConfig), .config_offset = offsetof(ConvLstm, config),
    .from = from_2d, .operands = "initial_state*", .folders = folders,
};

static CornuStatus resolve(CornuResolveWindow *window, const char *name, CornuConvLstmConfig *to)
{
    const CornuInitializer initializers[] = { to->kernel_initializer, to->recurrent_initializer,
                                              to->bias_initializer };
    to->name = to->dtype = NULL;
    to->dropout = cornu__number(to->dropout, 0.0);
    to->recurrent_dropout = cornu__number(to->recurrent_dropout, 0.0);
    CORNU__TRY(cornu__positive(name, "filters", to->filters));
    CORNU__TRY(cornu__check_enums(name, to->activation, initializers, 3));
    CORNU__TRY(cornu__check_enums(name, to->recurrent_activation, NULL, 0));
    CORNU__TRY(cornu__check_activity(name, &to->activity_regularizer));
    CORNU__TRY(cornu__check_rate(name, "dropout", to->dropout));
    CORNU__TRY(cornu__check_rate(name, "recurrent_dropout", to->recurrent_dropout));
    CORNU__TRY(window(name, to->padding, &to->kernel, to->kernel_size, &to->stride, to->strides,
                      to->dilation_rate));
    to->activation = cornu__activation(to->activation, CORNU_TANH);
    to->recurrent_activation = cornu__activation(to->recurrent_activation, CORNU_SIGMOID);
    to->kernel_initializer = cornu__initializer(to->kernel_initializer, CORNU_GLOROT_UNIFORM);
    to->recurrent_initializer = cornu__initializer(to->recurrent_initializer, CORNU_ORTHOGONAL);
    to->bias_initializer = cornu__initializer(to->bias_initializer, CORNU_ZEROS);
    return CORNU_OK;
}

static CornuLayer *create(const CornuLayerClass *kind, CornuResolveWindow *window,
                          const char *label, const CornuConvLstmConfig *config)
{
    CornuConvLstmConfig resolved = *config;
    if (resolve(window, config->name ? config->name : label, &resolved)) return cornu__null();
    CornuLayer *layer = cornu_layer_create(kind, config->name, config->dtype);
    if (!layer) return NULL;
    ((ConvLstm *)layer)->base.cell = &cell;
    ((ConvLstm *)layer)->config = resolved;
    layer->frozen = config->frozen;
    layer->activity_regularizer = config->activity_regularizer;
    return layer;
}

CornuLayer *cornu_conv_lstm1d_from(const CornuConvLstmConfig *config)
{
    return create(&cornu__conv_lstm1d_class, cornu__resolve_row_window, "conv_lstm1d", config);
}

CornuLayer *cornu_conv_lstm2d_from(const CornuConvLstmConfig *config)
{
    return create(&cornu__conv_lstm2d_class, cornu__resolve_window, "conv_lstm2d", config);
}
