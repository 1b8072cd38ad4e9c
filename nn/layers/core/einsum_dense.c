#include "../einsum_internal.h"
#include "../quantized_internal.h"

#include <stdio.h>
#include <string.h>

enum { MAX_EQUATION = 40 };

typedef struct {
    CornuLayer             base;
    CornuEinsumDenseConfig config;
    char                   equation[MAX_EQUATION], bias_axes[MAX_EQUATION];
} EinsumDense;

/* ---- The equation ---- */

/* The letters of input, kernel and result; "..." before or after those of input and result. */
typedef struct {
    char input[CORNU_MAX_RANK + 1], kernel[CORNU_MAX_RANK + 1], result[CORNU_MAX_RANK + 1];
    bool ahead, behind;
} Equation;

/* Takes "..." if it is next. */
static bool take_dots(const char **text)
{
    const bool dots = !strncmp(*text, "...", 3);
    *text += dots ? 3 : 0;
    return dots;
}

static bool take_letters(const char **text, char letters[CORNU_MAX_RANK + 1])
{
    static const char all[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const size_t count = strspn(*text, all);
    if (count < 1 || count > CORNU_MAX_RANK) return false;
    memcpy(letters, *text, count);
    letters[count] = '\0';
    *text += count;
    return true;
}

static bool take(const char **text, const char *wanted)
{
    const size_t length = strlen(wanted);
    if (strncmp(*text, wanted, length)) return false;
    *text += length;
    return true;
}

static bool read_equation(const char *text, Equation *equation)
{
    equation->ahead = take_dots(&text);
    if (!take_letters(&text, equation->input)) return false;
    equation->behind = take_dots(&text);
    if (!take(&text, ",") || !take_letters(&text, equation->kernel) || !take(&text, "->") ||
        take_dots(&text) != equation->ahead || !take_letters(&text, equation->result))
        return false;
    return take_dots(&text) == equation->behind && !(equation->ahead && equation->behind) &&
           !*text;
}

/* ---- Shapes ---- */

/* What follows from the shape of an input. Source: keras/src/layers/core/einsum_dense.py,
 * _analyze_split_string. */
typedef struct {
    CornuShape kernel, bias, result;
    int64_t    summed, kept;     /* axes of the kernel as bits */
} Shapes;

static int place(const char *letters, char letter)
{
    const char *found = strchr(letters, letter);
    return found ? (int)(found - letters) : -1;
}

/* The result: the batch, the axes of "...", and output_shape. */
static CornuStatus find_result(const CornuEinsumDenseConfig *config, const Equation *equation,
                               CornuShape input, int elided, CornuShape *result)
{
    int count = 0;
    *result = (CornuShape){ .rank = 0 };
    while (count < CORNU_MAX_RANK && config->output_shape[count]) count++;
    const int skipped = elided > 0 && equation->ahead ? elided : 1;
    const int rank = skipped + count + (equation->behind ? elided : 0);
    const int named = (int)strlen(equation->result) + (equation->ahead || equation->behind
                                                           ? elided : 0);
    if (rank > CORNU_MAX_RANK || rank != named)
        return cornu__fail(CORNU_ERR_ARGUMENT, ".output_shape has %d extents, the equation %s "
                           "needs %d for an input of %d axes", count, config->equation,
                           count + named - rank, input.rank);
    for (int i = 0; i < skipped; i++) result->extent[result->rank++] = input.extent[i];
    for (int i = 0; i < count; i++) result->extent[result->rank++] = config->output_shape[i];
    for (int i = input.rank - elided; equation->behind && i < input.rank; i++)
        result->extent[result->rank++] = input.extent[i];
    return CORNU_OK;
}

static CornuStatus find_kernel(const Equation *equation, CornuShape input, int ahead,
                               Shapes *shapes)
{
    for (int i = 0; equation->input[i]; i++) {
        const int     at = place(equation->result, equation->input[i]);
        const int64_t given = input.extent[ahead + i];
        const int64_t wanted = at < 0 ? CORNU_NONE : shapes->result.extent[ahead + at];
        if (wanted != CORNU_NONE && wanted != given)
            return cornu__fail(CORNU_ERR_SHAPE, "the axis '%c' has the extent %lld in the input "
                               "and %lld in .output_shape", equation->input[i],
                               (long long)given, (long long)wanted);
    }
    for (int i = 0; equation->kernel[i]; i++) {
        const char letter = equation->kernel[i];
        const int  in = place(equation->input, letter), out = place(equation->result, letter);
        if (in < 0 && out < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "the kernel's axis '%c' is neither in the input "
                               "nor in the result", letter);
        shapes->kernel.extent[shapes->kernel.rank++] =
            out >= 0 ? shapes->result.extent[ahead + out] : input.extent[ahead + in];
        *(out >= 0 ? &shapes->kept : &shapes->summed) |= INT64_C(1) << i;
    }
    return CORNU_OK;
}

/* From the first letter of bias_axes on, with extents of 1 along others. */
static CornuStatus find_bias(const char *axes, const Equation *equation, int ahead, Shapes *shapes)
{
    int first = CORNU_MAX_RANK;
    for (; *axes; axes++) {
        const int at = place(equation->result, *axes);
        if (at < 0)
            return cornu__fail(CORNU_ERR_ARGUMENT, ".bias_axes has '%c', which the result lacks",
                               *axes);
        if (at < first) first = at;
        shapes->bias.extent[at] = shapes->result.extent[ahead + at];
    }
    const int rank = shapes->result.rank - ahead;
    for (int i = first; i < rank; i++) {
        const int64_t extent = shapes->bias.extent[i];
        shapes->bias.extent[i] = 0;
        shapes->bias.extent[shapes->bias.rank++] = extent ? extent : 1;
    }
    return CORNU_OK;
}

static CornuStatus find_shapes(const EinsumDense *self, CornuShape input, Shapes *shapes)
{
    const CornuEinsumDenseConfig *config = &self->config;
    Equation  equation = { .ahead = false };
    CornuText text;
    *shapes = (Shapes){ .summed = 0 };
    read_equation(config->equation, &equation);
    const int elided = input.rank - (int)strlen(equation.input);
    const int ahead = equation.ahead ? elided : 0;
    if (elided < 0 || (elided > 0 && !equation.ahead && !equation.behind))
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected the axes of %s",
                           cornu_shape_print(&text, input), config->equation);
    CORNU__TRY(find_result(config, &equation, input, elided, &shapes->result));
    CORNU__TRY(find_kernel(&equation, input, ahead, shapes));
    return config->bias_axes ? find_bias(config->bias_axes, &equation, ahead, shapes) : CORNU_OK;
}

/* ---- The layer ---- */

/* Scales of int8 have the axes of the result, with extents of 1 where the kernel has none; for int4
 * the kernel is read as a matrix of summed by kept elements, whatever the order of its axes. */
static CornuStatus describe_kernel(const EinsumDense *self, const Shapes *shapes,
                                   CornuQuantizable *kernel)
{
    const CornuEinsumDenseConfig *config = &self->config;
    const CornuQuantization       mode = cornu__quantization(&self->base);
    Equation equation = { .ahead = false };
    read_equation(config->equation, &equation);
    if (mode && mode != CORNU_FLOAT8 && (equation.ahead || equation.behind))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a kernel is not quantized with the equation "
                           "%s, expected one without ...; Keras does not either",
                           config->equation);
    *kernel = (CornuQuantizable){
        .name = "kernel", .shape = shapes->kernel, .rows = 1, .columns = 1,
        .initializer = cornu__initializer_along(config->kernel_initializer, shapes->summed,
                                                shapes->kept),
        .regularizer = config->kernel_regularizer, .constraint = config->kernel_constraint,
    };
    for (int i = 0; equation.result[i]; i++) {
        const int at = place(equation.kernel, equation.result[i]);
        if (at >= 0) kernel->kept[kernel->kept_count++] = at;
        kernel->scale.extent[kernel->scale.rank++] = at < 0 ? 1 : shapes->kernel.extent[at];
    }
    for (int i = 0; i < shapes->kernel.rank; i++)
        *(shapes->kept >> i & 1 ? &kernel->columns : &kernel->rows) *= shapes->kernel.extent[i];
    return CORNU_OK;
}

static CornuStatus einsum_dense_build(CornuLayer *layer, CornuShape input)
{
    const EinsumDense            *self = (EinsumDense *)layer;
    const CornuEinsumDenseConfig *config = &self->config;
    Shapes shapes;
    CORNU__TRY(find_shapes(self, input, &shapes));
    CornuQuantizable kernel;
    CORNU__TRY(describe_kernel(self, &shapes, &kernel));
    CORNU__TRY(cornu__kernels_declare(layer, &kernel, 1));
    if (config->bias_axes) {
        CORNU__TRY(cornu_layer_weight(layer, "bias", shapes.bias, config->bias_initializer,
                                      false));
        CORNU__TRY(cornu_layer_weight_rules(layer, config->bias_regularizer,
                                            config->bias_constraint));
    }
    return cornu__kernels_finish(layer);
}

static CornuTensor *einsum(const void *context, CornuTensor *x, CornuTensor *kernel,
                           CornuDtype dtype)
{
    CornuTensor *const operands[] = { x, kernel };
    return cornu__einsum(((const EinsumDense *)context)->config.equation, operands, 2, dtype);
}

/* The axes of the input and of the kernel that are summed over, and where the others of the input
 * are in the result. Keras quantizes by equations without "..." alone. */
static void find_axes(const Equation *equation, CornuProduct *product)
{
    for (int i = 0; equation->input[i]; i++) {
        if (place(equation->result, equation->input[i]) >= 0) continue;
        product->pairs[product->pair_count][0] = i;
        product->pairs[product->pair_count++][1] = place(equation->kernel, equation->input[i]);
    }
    for (; equation->result[product->rank]; product->rank++)
        product->from_x[product->rank] = place(equation->input, equation->result[product->rank]);
}

/* The last layer returns the sums unrounded, as Dense does. */
static CornuTensor *einsum_dense_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    const CornuEinsumDenseConfig *config = &((EinsumDense *)layer)->config;
    CornuProduct product = { .kernel = layer->kernels, .function = einsum, .context = layer };
    Equation     equation = { .ahead = false };
    read_equation(config->equation, &equation);
    find_axes(&equation, &product);
    CornuTensor *y = cornu__kernel_product(layer, call, x, &product, false);
    if (config->bias_axes) y = cornu_op_add(y, cornu__kernel_bias(layer, call));
    return cornu__layer_activate(layer, call, config->activation, y);
}

static CornuStatus einsum_dense_resolve(CornuLayer *layer)
{
    CornuEinsumDenseConfig *config = &((EinsumDense *)layer)->config;
    const char             *name = cornu_layer_name(layer);
    Equation equation;
    if (!config->equation || strlen(config->equation) >= MAX_EQUATION ||
        !read_equation(config->equation, &equation))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .equation is \"%.60s\", expected the form "
                           "\"ab,bc->ac\", \"...b,bc->...c\" or \"ab...,bc->ac...\", with at most "
                           "%d letters in a row", name, config->equation ? config->equation : "",
                           CORNU_MAX_RANK);
    if (config->bias_axes && strlen(config->bias_axes) > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .bias_axes is \"%.60s\", expected at most %d "
                           "letters", name, config->bias_axes, CORNU_MAX_RANK);
    for (int i = 0; i < CORNU_MAX_RANK && config->output_shape[i]; i++)
        if (config->output_shape[i] != CORNU_NONE)
            CORNU__TRY(cornu__positive(name, "output_shape", config->output_shape[i]));
    CORNU__TRY(cornu__layer_copy_text(layer, &config->equation));
    CORNU__TRY(cornu__layer_copy_text(layer, &config->bias_axes));
    return cornu__resolve_activation(layer, &config->activation);
}

#define FIELD(field) offsetof(CornuEinsumDenseConfig, field)
static const CornuField fields[] = {
    { "output_shape", CORNU_FIELD_EXTENTS, FIELD(output_shape) },
    { "equation", CORNU_FIELD_TEXT, FIELD(equation) },
    { "activation", CORNU_FIELD_ACTIVATION, FIELD(activation) },
    { "bias_axes", CORNU_FIELD_TEXT, FIELD(bias_axes) },
    { "kernel_initializer", CORNU_FIELD_INITIALIZER, FIELD(kernel_initializer) },
    { "bias_initializer", CORNU_FIELD_INITIALIZER, FIELD(bias_initializer) },
    { "kernel_regularizer", CORNU_FIELD_REGULARIZER, FIELD(kernel_regularizer) },
    { "bias_regularizer", CORNU_FIELD_REGULARIZER, FIELD(bias_regularizer) },
    { "activity_regularizer", CORNU_FIELD_REGULARIZER, FIELD(activity_regularizer) },
    { "kernel_constraint", CORNU_FIELD_CONSTRAINT, FIELD(kernel_constraint) },
    { "bias_constraint", CORNU_FIELD_CONSTRAINT, FIELD(bias_constraint) },
    { 0 },
};

const CornuLayerClass cornu__einsum_dense_class = {
    .class_name = "EinsumDense", .size = sizeof(EinsumDense), .build = einsum_dense_build,
    .call = einsum_dense_call, .mask = cornu__no_mask, .keras = &(const CornuKerasClass){
        CORNU__TRAINED(fields, EinsumDense, einsum_dense_resolve), .lora = "kernel",
        .quantizes = 1 << CORNU_INT8 | 1 << CORNU_INT4 | 1 << CORNU_FLOAT8,
    },
};

CORNU__CONSTRUCTOR(einsum_dense, CornuEinsumDenseConfig)
