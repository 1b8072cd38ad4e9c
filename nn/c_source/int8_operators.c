/* The operators of 8 bits as C, with the integers of device/edgetpu: formulas and sources there. */
#include "int8_internal.h"

/* ---- Constants ---- */

static void write_table(CornuCText *to, CornuDtype dtype, const char *type, const char *name,
                        const double *factors, const int32_t *integers, int64_t count)
{
    cornu__c_print(to, "static const %s %s[%lld] = {", type, name, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        cornu__c_print(to, "%s%s", i ? "," : "", i % 12 == 0 ? "\n    " : " ");
        cornu__c_number(to, dtype, factors ? factors[i] : (double)integers[i]);
    }
    cornu__c_print(to, "\n};\n");
}

static void write_bytes(CornuCText *to, const char *name, const int8_t *bytes, int64_t count)
{
    cornu__c_print(to, "static const int8_t %s[%lld] = {", name, (long long)count);
    for (int64_t i = 0; i < count; i++)
        cornu__c_print(to, "%s%s%d", i ? "," : "", i % 20 == 0 ? "\n    " : " ", bytes[i]);
    cornu__c_print(to, "\n};\n");
}

/* ---- Loops ---- */

static void open_loop(CornuCText *to, const char *name, int64_t extent)
{
    cornu__c_print(to, "for (ptrdiff_t %s = 0; %s < %lld; %s++) {\n", name, name,
                   (long long)extent, name);
    to->depth++;
}

static void close_loops(CornuCText *to, int count)
{
    for (; count > 0; count--) {
        to->depth--;
        cornu__c_print(to, "}\n");
    }
}

/* Loops over i0, i1, .. */
static void open_axes(CornuCText *to, int rank, const int64_t *extents)
{
    char name[16];
    for (int d = 0; d < rank; d++) {
        snprintf(name, sizeof name, "i%d", d);
        open_loop(to, name, extents[d]);
    }
}

static void print_at(CornuCText *to, int rank, int64_t offset, const int64_t *strides)
{
    cornu__c_print(to, "[%lld", (long long)offset);
    for (int d = 0; d < rank; d++)
        if (strides[d]) cornu__c_print(to, " + i%d * %lld", d, (long long)strides[d]);
    cornu__c_print(to, "]");
}

/* Strides of dense elements; 0 along axes of extent 1. */
static void dense(int rank, const int64_t *extents, int64_t *strides)
{
    int64_t stride = 1;
    for (int d = rank - 1; d >= 0; d--) {
        strides[d] = extents[d] > 1 ? stride : 0;
        stride *= extents[d];
    }
}

static int64_t count_of(const CornuLiteTensor *tensor)
{
    return cornu__lite_count(tensor->shape, 1);
}

/* ---- Products ---- */

static void write_constants(CornuCInt8 *c, const CornuInt8Conv *conv, int64_t filter)
{
    const int64_t filters = conv->window.out_channels;
    CornuCText   *to = &c->text;
    int32_t      *integers = cornu__allocate((size_t)filters, sizeof *integers);
    if (!integers) {
        to->status = CORNU_ERR_MEMORY;
        return;
    }
    write_bytes(to, "filter", conv->filter, filter);
    for (int64_t f = 0; f < filters; f++) integers[f] = conv->bias ? conv->bias[f] : 0;
    write_table(to, CORNU_I32, "int32_t", "bias", NULL, integers, filters);
    if (conv->factors) {
        write_table(to, CORNU_F64, "double", "factor", conv->factors, NULL, filters);
    } else {
        for (int64_t f = 0; f < filters; f++) integers[f] = conv->multipliers[f].mantissa;
        write_table(to, CORNU_I32, "int32_t", "mantissa", NULL, integers, filters);
        for (int64_t f = 0; f < filters; f++) integers[f] = conv->multipliers[f].shift;
        write_table(to, CORNU_I32, "int8_t", "shift", NULL, integers, filters);
    }
    cornu__release(integers);
}

/* From the sum `sum` of output f to int8. */
static void print_finish(CornuCInt8 *c, const CornuInt8Conv *conv, const char *sum)
{
    if (conv->factors)
        cornu__c_print(&c->text, "%s_rounded((double)(int32_t)%s * factor[f], %d, %d, %d);\n",
                       c->prefix, sum, (int)conv->y_zero, (int)conv->bounds.low,
                       (int)conv->bounds.high);
    else
        cornu__c_print(&c->text, "%s_clamp(%s_scale((int32_t)%s, mantissa[f], shift[f]) + %d, %d, "
                       "%d);\n", c->prefix, c->prefix, sum, (int)conv->y_zero,
                       (int)conv->bounds.low, (int)conv->bounds.high);
}

/* The taps u1 to u2 of an output that are in the image, of which tap 0 is at u0. */
static void print_taps(CornuCText *to, const char *tap, const char *output, int64_t size,
                       int64_t stride, int64_t dilation, int64_t pad, int64_t in)
{
    cornu__c_print(to, "const ptrdiff_t %s0 = %s * %lld - %lld;\n", tap, output, (long long)stride,
                   (long long)pad);
    cornu__c_print(to, "const ptrdiff_t %s1 = %s0 < 0 ? (%lld - %s0) / %lld : 0;\n", tap, tap,
                   (long long)(dilation - 1), tap, (long long)dilation);
    cornu__c_print(to, "const ptrdiff_t %s3 = (%lld - %s0) / %lld;\n", tap,
                   (long long)(in + dilation - 1), tap, (long long)dilation);
    cornu__c_print(to, "const ptrdiff_t %s2 = %s3 < %lld ? %s3 : %lld;\n", tap, tap,
                   (long long)size, tap, (long long)size);
}

static void print_window(CornuCText *to, const CornuInt8Window *w)
{
    print_taps(to, "u", "i", w->height, w->stride_height, w->dilation_height, w->pad_height,
               w->in_height);
    print_taps(to, "v", "j", w->width, w->stride_width, w->dilation_width, w->pad_width,
               w->in_width);
}

/* A loop over the images, whose arrays are in and out. */
static void open_images(CornuCText *to, const CornuLiteStep *step)
{
    const CornuShape x = step->in->shape, y = step->out->shape;
    const int64_t    batch = y.extent[0] == CORNU_NONE ? 1 : y.extent[0];
    open_loop(to, "b", batch);
    cornu__c_print(to, "const int8_t *const in = x + b * %lld;\n",
                   (long long)(cornu__lite_count(x, 1) / batch));
    cornu__c_print(to, "int8_t *const out = y + b * %lld;\n",
                   (long long)(cornu__lite_count(y, 1) / batch));
}

static void open_pixels(CornuCText *to, const CornuLiteStep *step, const CornuInt8Window *w)
{
    open_images(to, step);
    open_loop(to, "i", w->out_height);
    open_loop(to, "j", w->out_width);
    print_window(to, w);
}

static void open_taps(CornuCText *to)
{
    cornu__c_print(to, "for (ptrdiff_t u = u1; u < u2; u++)\n");
    cornu__c_print(to, "for (ptrdiff_t v = v1; v < v2; v++) {\n");
    to->depth++;
}

static void print_pixel(CornuCText *to, const CornuInt8Window *w)
{
    cornu__c_print(to, "const int8_t *const a = in + ((u0 + u * %lld) * %lld + v0 + v * %lld) * "
                   "%lld", (long long)w->dilation_height, (long long)w->in_width,
                   (long long)w->dilation_width, (long long)w->in_channels);
}

/* Adds to `sum` the pixel at `a` by tap (u, v) of filter f. */
static void print_tap(CornuCText *to, const CornuInt8Conv *conv, int64_t channels)
{
    cornu__c_print(to, "const int8_t *const b = filter + ((f * %lld + u) * %lld + v) * %lld;\n",
                   (long long)conv->window.height, (long long)conv->window.width,
                   (long long)channels);
    cornu__c_print(to, "for (ptrdiff_t k = 0; k < %lld; k++) "
                   "sum += (uint32_t)(b[k] * (a[k] - %d));\n", (long long)channels,
                   (int)conv->x_zero);
}

/* The output that `sum` is of, and the end of the loops over images, rows, columns and filters. */
static void print_output(CornuCInt8 *c, const CornuInt8Conv *conv)
{
    cornu__c_print(&c->text, "out[(i * %lld + j) * %lld + f] = ",
                   (long long)conv->window.out_width, (long long)conv->window.out_channels);
    print_finish(c, conv, "sum");
    close_loops(&c->text, 4);
}

/* Filters are (F, h, w, C), C those of a group; of depthwise ones (h, w, F). */
static void write_windows(CornuCInt8 *c, const CornuLiteStep *step)
{
    const CornuInt8Conv   *conv = &step->conv;
    const CornuInt8Window *w = &conv->window;
    CornuCText            *to = &c->text;
    const bool    depthwise = step->op->code == CORNU_LITE_DEPTHWISE_CONV_2D;
    const int64_t channels = depthwise ? 1 : conv->filter_channels;
    const int64_t taps = w->height * w->width;
    const int64_t group = depthwise ? w->out_channels / w->in_channels
                                    : w->out_channels / (w->in_channels / channels);
    write_constants(c, conv, w->out_channels * taps * channels);
    open_pixels(to, step, w);
    open_loop(to, "f", w->out_channels);
    cornu__c_print(to, "uint32_t sum = (uint32_t)bias[f];\n");
    open_taps(to);
    print_pixel(to, w);
    cornu__c_print(to, group < w->out_channels ? " + f / %lld * %lld;\n" : ";\n",
                   (long long)group, (long long)channels);
    if (depthwise) {
        cornu__c_print(to, "sum += (uint32_t)(filter[(u * %lld + v) * %lld + f] * (a[0] - %d));\n",
                       (long long)w->width, (long long)w->out_channels, (int)conv->x_zero);
    } else {
        print_tap(to, conv, channels);
    }
    close_loops(to, 1);
    print_output(c, conv);
}

/* An output is of the pixels of x from which a tap of the filter (F, h, w, C) leads to it. */
static void write_transpose_conv(CornuCInt8 *c, const CornuLiteStep *step)
{
    const CornuInt8Conv   *conv = &step->conv;
    const CornuInt8Window *w = &conv->window;
    CornuCText            *to = &c->text;
    write_constants(c, conv, w->out_channels * w->height * w->width * w->in_channels);
    open_images(to, step);
    open_loop(to, "i", w->out_height);
    open_loop(to, "j", w->out_width);
    open_loop(to, "f", w->out_channels);
    cornu__c_print(to, "uint32_t sum = (uint32_t)bias[f];\n");
    open_loop(to, "u", w->height);
    open_loop(to, "v", w->width);
    cornu__c_print(to, "const ptrdiff_t p = i + %lld - u, q = j + %lld - v;\n",
                   (long long)w->pad_height, (long long)w->pad_width);
    cornu__c_print(to, "if (p < 0 || q < 0 || p %% %lld || q %% %lld || p >= %lld || q >= %lld) "
                   "continue;\n", (long long)w->stride_height, (long long)w->stride_width,
                   (long long)(w->in_height * w->stride_height),
                   (long long)(w->in_width * w->stride_width));
    cornu__c_print(to, "const int8_t *const a = in + (p / %lld * %lld + q / %lld) * %lld;\n",
                   (long long)w->stride_height, (long long)w->in_width,
                   (long long)w->stride_width, (long long)w->in_channels);
    print_tap(to, conv, w->in_channels);
    close_loops(to, 2);
    print_output(c, conv);
}

static void write_fully_connected(CornuCInt8 *c, const CornuLiteStep *step)
{
    const CornuInt8Conv *conv = &step->conv;
    const int64_t        units = conv->window.out_channels, sum = conv->window.in_channels;
    CornuCText          *to = &c->text;
    write_constants(c, conv, units * sum);
    open_loop(to, "i", count_of(step->out) / units);
    open_loop(to, "f", units);
    cornu__c_print(to, "const int8_t *const a = x + i * %lld, *const b = filter + f * %lld;\n",
                   (long long)sum, (long long)sum);
    cornu__c_print(to, "uint32_t sum = (uint32_t)bias[f];\n");
    cornu__c_print(to, "for (ptrdiff_t k = 0; k < %lld; k++) sum += (uint32_t)(b[k] * (a[k] - "
                   "%d));\n", (long long)sum, (int)conv->x_zero);
    cornu__c_print(to, "y[i * %lld + f] = ", (long long)units);
    print_finish(c, conv, "sum");
    close_loops(to, 2);
}

/* ---- Pools and reductions ---- */

static void write_pool(CornuCInt8 *c, const CornuLiteStep *step)
{
    CornuInt8Window w = step->window;
    CornuCText     *to = &c->text;
    const bool      is_max = step->op->code == CORNU_LITE_MAX_POOL_2D;
    w.dilation_height = w.dilation_width = 1;
    open_pixels(to, step, &w);
    open_loop(to, "f", w.in_channels);
    cornu__c_print(to, "int32_t sum = %d;\n", is_max ? (int)step->bounds.low : 0);
    open_taps(to);
    print_pixel(to, &w);
    cornu__c_print(to, ";\n");
    cornu__c_print(to, is_max ? "sum = a[f] > sum ? a[f] : sum;\n" : "sum += a[f];\n");
    close_loops(to, 1);
    if (!is_max) {
        cornu__c_print(to, "const int32_t count = (int32_t)((u2 - u1) * (v2 - v1));\n");
        cornu__c_print(to, "sum = count > 0 ? (sum + (sum > 0 ? count / 2 : -(count / 2))) / count "
                       ": 0;\n");
    }
    cornu__c_print(to, "out[(i * %lld + j) * %lld + f] = %s_clamp(sum, %d, %d);\n",
                   (long long)w.out_width, (long long)w.in_channels, c->prefix,
                   (int)step->bounds.low, (int)step->bounds.high);
    close_loops(to, 4);
}

/* Outer loops over what is kept, inner ones over what is reduced. */
static void write_reduction(CornuCInt8 *c, const CornuLiteStep *step)
{
    CornuCText   *to = &c->text;
    const int     rank = step->in->shape.rank;
    const bool    is_max = step->op->code == CORNU_LITE_REDUCE_MAX;
    int64_t       extents[CORNU_MAX_RANK], x[CORNU_MAX_RANK], y[CORNU_MAX_RANK] = { 0 };
    int64_t       stride = 1, count = 1;
    cornu__step_extents(step->in, 1, extents);
    dense(rank, extents, x);
    for (int d = rank - 1; d >= 0; d--) {
        if (step->reduced[d]) count *= extents[d];
        else y[d] = stride, stride *= extents[d];
    }
    for (int pass = 0; pass < 2; pass++) {
        for (int d = 0; d < rank; d++) {
            char name[16];
            snprintf(name, sizeof name, "i%d", d);
            if (step->reduced[d] == (pass == 1)) open_loop(to, name, extents[d]);
        }
        if (pass == 0) cornu__c_print(to, "int32_t sum = %d;\n", is_max ? CORNU_INT8_MIN : 0);
    }
    cornu__c_print(to, "const int8_t a = x");
    print_at(to, rank, 0, x);
    cornu__c_print(to, is_max ? ";\nsum = a > sum ? a : sum;\n" : ";\nsum += a;\n");
    int kept = 0;
    for (int d = 0; d < rank; d++) kept += !step->reduced[d];
    close_loops(to, rank - kept);
    cornu__c_print(to, "y");
    print_at(to, rank, 0, y);
    const CornuMultiplier by = cornu__int8_mean_multiplier(step->x, step->y, count);
    if (is_max) cornu__c_print(to, " = (int8_t)sum;\n");
    else
        cornu__c_print(to, " = %s_clamp(%s_scale(sum - %lld, %ld, %d) + %d, -128, 127);\n",
                       c->prefix, c->prefix, (long long)(step->x.zero * count), (long)by.mantissa,
                       (int)by.shift, (int)step->y.zero);
    close_loops(to, kept);
}

/* ---- Element by element ---- */

static void write_map(CornuCInt8 *c, const CornuLiteStep *step)
{
    write_bytes(&c->text, "table", step->table.y, 256);
    open_loop(&c->text, "i", count_of(step->out));
    cornu__c_print(&c->text, step->in->dtype == CORNU_LITE_U8 ? "y[i] = table[x[i] ^ 128];\n"
                                                              : "y[i] = table[x[i] + 128];\n");
    close_loops(&c->text, 1);
}

/* Numbers of an operand along the result's axes; 0 where it is repeated. */
static void aligned(const CornuLiteTensor *x, int rank, int64_t *strides)
{
    int64_t   extents[CORNU_MAX_RANK], own[CORNU_MAX_RANK];
    const int missing = rank - x->shape.rank;
    cornu__step_extents(x, 1, extents);
    dense(x->shape.rank, extents, own);
    for (int d = 0; d < rank; d++) strides[d] = d < missing ? 0 : own[d - missing];
}

static void print_combined(CornuCInt8 *c, const CornuInt8Arithmetic *a)
{
    CornuCText *to = &c->text;
    const char *p = c->prefix;
    switch (a->op) {
    case CORNU_INT8_MAXIMUM: cornu__c_print(to, "const int32_t sum = a > b ? a : b;\n"); break;
    case CORNU_INT8_MINIMUM: cornu__c_print(to, "const int32_t sum = a < b ? a : b;\n"); break;
    case CORNU_INT8_PRELU:
        cornu__c_print(to, "const int32_t d = a - %d;\n", (int)a->zero1);
        cornu__c_print(to, "const int32_t sum = %d + (d >= 0 ? %s_scale(d, %ld, %d)\n",
                       (int)a->y_zero, p, (long)a->by_x1.mantissa, (int)a->by_x1.shift);
        cornu__c_print(to, "    : %s_scale(d * (b - %d), %ld, %d));\n", p, (int)a->zero2,
                       (long)a->by_y.mantissa, (int)a->by_y.shift);
        break;
    default:
        if (a->op == CORNU_INT8_MUL)
            cornu__c_print(to, "const int32_t d = (a - %d) * (b - %d);\n", (int)a->zero1,
                           (int)a->zero2);
        else cornu__c_print(to, "const int32_t d = terms0[a + 128] + terms1[b + 128];\n");
        cornu__c_print(to, "const int32_t sum = %d + %s_scale(d, %ld, %d);\n", (int)a->y_zero, p,
                       (long)a->by_y.mantissa, (int)a->by_y.shift);
    }
}

static void write_binary(CornuCInt8 *c, const CornuLiteStep *step)
{
    const CornuInt8Arithmetic *a = &step->arithmetic;
    CornuCText                *to = &c->text;
    const int                  rank = step->out->shape.rank;
    int64_t extents[CORNU_MAX_RANK], y[CORNU_MAX_RANK], x0[CORNU_MAX_RANK], x1[CORNU_MAX_RANK];
    const bool is_sum = a->op == CORNU_INT8_ADD || a->op == CORNU_INT8_SUB;
    const bool selects = a->op == CORNU_INT8_MAXIMUM || a->op == CORNU_INT8_MINIMUM;
    cornu__step_extents(step->out, 1, extents);
    dense(rank, extents, y);
    aligned(step->in, rank, x0);
    aligned(cornu__step_in(step, 1), rank, x1);
    for (int k = 0; is_sum && k < 2; k++) {
        int32_t terms[256];
        for (int i = 0; i < 256; i++) terms[i] = cornu__int8_term(a, k, i + CORNU_INT8_MIN);
        write_table(to, CORNU_I32, "int32_t", k ? "terms1" : "terms0", NULL, terms, 256);
    }
    open_axes(to, rank, extents);
    cornu__c_print(to, "const int8_t a = x0");
    print_at(to, rank, 0, x0);
    cornu__c_print(to, ", b = x1");
    print_at(to, rank, 0, x1);
    cornu__c_print(to, ";\n");
    print_combined(c, a);
    cornu__c_print(to, "y");
    print_at(to, rank, 0, y);
    cornu__c_print(to, " = %s_clamp(sum, %d, %d);\n", c->prefix,
                   selects ? CORNU_INT8_MIN : (int)a->bounds.low,
                   selects ? CORNU_INT8_MAX : (int)a->bounds.high);
    close_loops(to, rank);
}

static void write_softmax(CornuCInt8 *c, const CornuLiteStep *step)
{
    const int64_t depth = step->in->shape.extent[step->in->shape.rank - 1];
    int32_t       exps[256];
    cornu__int8_softmax_exps(step->x, step->op->options.beta, exps);
    write_table(&c->text, CORNU_I32, "int32_t", "exps", NULL, exps, 256);
    cornu__c_print(&c->text, "for (ptrdiff_t i = 0; i < %lld; i++)\n",
                   (long long)(count_of(step->out) / depth));
    cornu__c_print(&c->text, "    %s_softmax(exps, %lld, x + i * %lld, y + i * %lld);\n", c->prefix,
                   (long long)depth, (long long)depth, (long long)depth);
}

static void write_quantize(CornuCInt8 *c, const CornuLiteStep *step)
{
    open_loop(&c->text, "i", count_of(step->out));
    cornu__c_print(&c->text, "y[i] = %s_rounded((double)(x[i] / ", c->prefix);
    cornu__c_number(&c->text, CORNU_F32, step->y.scale);
    cornu__c_print(&c->text, "), %d, -128, 127);\n", (int)step->y.zero);
    close_loops(&c->text, 1);
}

static void write_dequantize(CornuCInt8 *c, const CornuLiteStep *step)
{
    open_loop(&c->text, "i", count_of(step->out));
    cornu__c_print(&c->text, "y[i] = (float)(");
    cornu__c_number(&c->text, CORNU_F64, step->x.scale);
    cornu__c_print(&c->text, " * (x[i] - %d));\n", (int)step->x.zero);
    close_loops(&c->text, 1);
}

/* ---- Moved ---- */

/* y[offset + ..] = x[..], over extents. */
static void write_moves(CornuCText *to, const char *name, int rank, const int64_t *extents,
                        int64_t x_offset, const int64_t *x, int64_t y_offset, const int64_t *y)
{
    open_axes(to, rank, extents);
    cornu__c_print(to, "y");
    print_at(to, rank, y_offset, y);
    cornu__c_print(to, " = %s", name);
    print_at(to, rank, x_offset, x);
    cornu__c_print(to, ";\n");
    close_loops(to, rank);
}

static void write_copy(CornuCInt8 *c, const CornuLiteStep *step)
{
    open_loop(&c->text, "i", count_of(step->out));
    cornu__c_print(&c->text, "y[i] = x[i];\n");
    close_loops(&c->text, 1);
}

static void write_pad(CornuCInt8 *c, const CornuLiteStep *step)
{
    const int rank = step->in->shape.rank;
    int64_t   extents[CORNU_MAX_RANK], x[CORNU_MAX_RANK], y[CORNU_MAX_RANK], offset = 0;
    open_loop(&c->text, "i", count_of(step->out));
    cornu__c_print(&c->text, "y[i] = %d;\n", step->fill);
    close_loops(&c->text, 1);
    cornu__step_extents(step->out, 1, extents);
    dense(rank, extents, y);
    for (int d = 0; d < rank; d++) offset += step->at[d] * y[d];
    cornu__step_extents(step->in, 1, extents);
    dense(rank, extents, x);
    write_moves(&c->text, "x", rank, extents, 0, x, offset, y);
}

static void write_transpose(CornuCInt8 *c, const CornuLiteStep *step)
{
    const int rank = step->in->shape.rank;
    int64_t   from[CORNU_MAX_RANK], extents[CORNU_MAX_RANK], x[CORNU_MAX_RANK], y[CORNU_MAX_RANK],
              moved[CORNU_MAX_RANK];
    cornu__step_extents(step->in, 1, from);
    dense(rank, from, x);
    for (int d = 0; d < rank; d++) {
        extents[d] = from[step->permutation[d]];
        moved[d] = x[step->permutation[d]];
    }
    dense(rank, extents, y);
    write_moves(&c->text, "x", rank, extents, 0, moved, 0, y);
}

static void write_slice(CornuCInt8 *c, const CornuLiteStep *step)
{
    const int rank = step->in->shape.rank;
    int64_t   from[CORNU_MAX_RANK], extents[CORNU_MAX_RANK], x[CORNU_MAX_RANK], y[CORNU_MAX_RANK],
              offset = 0;
    cornu__step_extents(step->in, 1, from);
    dense(rank, from, x);
    for (int d = 0; d < rank; d++) {
        extents[d] = step->in->shape.extent[d] == CORNU_NONE ? 1 : step->counts[d];
        offset += step->at[d] * x[d];
        x[d] *= step->steps[d];
    }
    dense(rank, extents, y);
    write_moves(&c->text, "x", rank, extents, offset, x, 0, y);
}

static void write_concatenation(CornuCInt8 *c, const CornuLiteStep *step)
{
    const int rank = step->out->shape.rank;
    int64_t   extents[CORNU_MAX_RANK], x[CORNU_MAX_RANK], y[CORNU_MAX_RANK], offset = 0;
    cornu__step_extents(step->out, 1, extents);
    dense(rank, extents, y);
    for (int i = 0; i < step->op->in_count; i++) {
        char name[16];
        snprintf(name, sizeof name, step->op->in_count > 1 ? "x%d" : "x", i);
        cornu__step_extents(cornu__step_in(step, i), 1, extents);
        dense(rank, extents, x);
        write_moves(&c->text, name, rank, extents, 0, x, offset, y);
        offset += extents[step->axis] * y[step->axis];
    }
}

static void write_resize(CornuCInt8 *c, const CornuLiteStep *step)
{
    const CornuInt8Window  *w = &step->window;
    const CornuLiteOptions *o = &step->op->options;
    CornuCText             *to = &c->text;
    const int64_t           in_extents[] = { w->in_height, w->in_width };
    const int64_t           out_extents[] = { w->out_height, w->out_width };
    for (int d = 0; d < 2; d++) {
        cornu__c_print(to, "static const int32_t %s[%lld] = { ", d ? "columns" : "rows",
                       (long long)out_extents[d]);
        for (int64_t i = 0; i < out_extents[d]; i++)
            cornu__c_print(to, "%s%lld", i ? ", " : "",
                           (long long)cornu__int8_nearest(i, in_extents[d], out_extents[d],
                                                          o->align_corners,
                                                          o->half_pixel_centers));
        cornu__c_print(to, " };\n");
    }
    open_images(to, step);
    open_loop(to, "i", out_extents[0]);
    open_loop(to, "j", out_extents[1]);
    cornu__c_print(to, "for (ptrdiff_t f = 0; f < %lld; f++)\n", (long long)w->in_channels);
    cornu__c_print(to, "    out[(i * %lld + j) * %lld + f] = in[(rows[i] * %lld + columns[j]) * "
                   "%lld + f];\n", (long long)out_extents[1], (long long)w->in_channels,
                   (long long)in_extents[1], (long long)w->in_channels);
    close_loops(to, 3);
}

CornuCInt8Write *cornu__c_int8_writer(const CornuLiteStep *step)
{
    switch (step->op->code) {
    case CORNU_LITE_CONV_2D: case CORNU_LITE_DEPTHWISE_CONV_2D: return write_windows;
    case CORNU_LITE_TRANSPOSE_CONV: return write_transpose_conv;
    case CORNU_LITE_FULLY_CONNECTED: return write_fully_connected;
    case CORNU_LITE_MAX_POOL_2D: case CORNU_LITE_AVERAGE_POOL_2D: return write_pool;
    case CORNU_LITE_MEAN: case CORNU_LITE_REDUCE_MAX: return write_reduction;
    case CORNU_LITE_ADD: case CORNU_LITE_SUB: case CORNU_LITE_MUL: case CORNU_LITE_MAXIMUM:
    case CORNU_LITE_MINIMUM: case CORNU_LITE_PRELU: return write_binary;
    case CORNU_LITE_SOFTMAX: return write_softmax;
    case CORNU_LITE_EXP: case CORNU_LITE_ELU: case CORNU_LITE_GELU: case CORNU_LITE_RELU:
    case CORNU_LITE_RELU_N1_TO_1: case CORNU_LITE_RELU6: case CORNU_LITE_LEAKY_RELU:
    case CORNU_LITE_LOGISTIC: case CORNU_LITE_TANH: return write_map;
    case CORNU_LITE_QUANTIZE:
        return step->in->dtype == CORNU_LITE_F32 ? write_quantize : write_map;
    case CORNU_LITE_DEQUANTIZE: return write_dequantize;
    case CORNU_LITE_RESHAPE: case CORNU_LITE_SQUEEZE: case CORNU_LITE_EXPAND_DIMS:
        return write_copy;
    case CORNU_LITE_PAD: case CORNU_LITE_PADV2: return write_pad;
    case CORNU_LITE_TRANSPOSE: return write_transpose;
    case CORNU_LITE_CONCATENATION: return write_concatenation;
    case CORNU_LITE_STRIDED_SLICE: return write_slice;
    case CORNU_LITE_RESIZE_NEAREST_NEIGHBOR: return write_resize;
    default: return NULL;
    }
}
