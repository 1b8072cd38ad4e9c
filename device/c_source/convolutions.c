/*
 * Convolutions, without padding (lower.c), and their gradients. A tile of pixels and filters, or of
 * channels and filters in a filter's gradient, is summed in registers, as in products.c. Gradients
 * of inputs are convolutions, too (lower.c); those that are not, and what is grouped, add each
 * product to where it belongs.
 */
#include "source_internal.h"
#include "../ops/window.h"

typedef struct {
    CornuSweep h, w;
    int64_t    batch, channels, filters, groups;   /* channels: of a group; filters: of all */
    char       fma[80];
} Convolution;

static Convolution convolution_of(const CornuCCall *call, const CornuShape filter)
{
    Convolution c = { .batch = call->op.in[0].shape.extent[0],
                      .groups = cornu__conv_groups(&call->op),
                      .channels = filter.extent[2], .filters = filter.extent[3] };
    CornuSweep  sweeps[2];
    cornu__sweeps(&call->op, sweeps);
    c.h = sweeps[0];
    c.w = sweeps[1];
    cornu__c_fma(call, c.fma, sizeof c.fma);
    return c;
}

/* Taps of one row and their channels, as one sum where they lie one after the other. */
static void write_conv2d(CornuCText *to, const CornuCCall *call)
{
    const Convolution c = convolution_of(call, call->op.in[1].shape);
    const bool    joined = c.w.dilation == 1;
    const int64_t taps = joined ? 1 : c.w.size, sum = joined ? c.w.size * c.channels : c.channels;
    const CornuCTile tile = cornu__c_tile(c.w.out, c.filters, sum, c.w.stride * c.channels == 1);
    const int64_t    rows = tile.rows, columns = tile.columns;
    char             column_at[32];
    cornu__c_print(to, "for (ptrdiff_t b = 0; b < %lld; b++)\n", (long long)c.batch);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) {\n", (long long)c.h.out);
    to->depth++;
    cornu__c_open_tiles(to, "j", c.w.out, rows);
    cornu__c_open_tiles(to, "f", c.filters, columns);
    cornu__c_print(to, "float sum[%lld][%lld] = { { 0.0f } };\n", (long long)rows,
                   (long long)columns);
    cornu__c_print(to, "for (ptrdiff_t u = 0; u < %lld; u++)%s\n", (long long)c.h.size,
                   joined ? " {" : "");
    if (!joined) cornu__c_print(to, "for (ptrdiff_t v = 0; v < %lld; v++) {\n", (long long)taps);
    to->depth++;
    cornu__c_print(to, "const float *const a = %s + ((b * %lld + i * %lld + u * %lld) * %lld"
                   " + j * %lld", call->name[0], (long long)c.h.in, (long long)c.h.stride,
                   (long long)c.h.dilation, (long long)c.w.in, (long long)c.w.stride);
    if (!joined) cornu__c_print(to, " + v * %lld", (long long)c.w.dilation);
    cornu__c_print(to, ") * %lld;\n", (long long)c.channels);
    cornu__c_print(to, joined ? "const float *const w = %s + u * %lld + f;\n"
                              : "const float *const w = %s + (u * %lld + v) * %lld + f;\n",
                   call->name[1], (long long)(joined ? sum * c.filters : taps),
                   (long long)(sum * c.filters));
    snprintf(column_at, sizeof column_at, "k * %lld", (long long)c.filters);
    cornu__c_print(to, "for (ptrdiff_t k = 0; k < %lld; k++)\n", (long long)sum);
    to->depth++;
    cornu__c_add_products(to, call, tile, &(CornuCProducts){
        "a", "k", c.w.stride * c.channels, "w", column_at });
    to->depth--;
    to->depth--;
    cornu__c_print(to, "}\n");
    cornu__c_print(to, "for (ptrdiff_t q = 0; q < %lld; q++)\n", (long long)rows);
    cornu__c_print(to, "    for (ptrdiff_t l = 0; l < %lld; l++)\n", (long long)columns);
    cornu__c_print(to, "        %s[((b * %lld + i) * %lld + j + q) * %lld + f + l] = sum[q][l];\n",
                   call->out[0], (long long)c.h.out, (long long)c.w.out, (long long)c.filters);
    cornu__c_close_tiles(to, c.filters, columns);
    cornu__c_close_tiles(to, c.w.out, rows);
    to->depth--;
    cornu__c_print(to, "}\n");
}

const CornuCRule *const cornu__conv2d_c = &(const CornuCRule){ .write = write_conv2d };

/* What all loops over a convolution's products begin with: image b, output (i, j), tap (u, v), and
 * the first elements of x, y and the filter there. */
static void open_products(CornuCText *to, const Convolution *c, const char *x, const char *y,
                          const char *filter, const char *const qualifiers[3])
{
    const char   *const names[] = { "b", "i", "j", "u", "v" };
    const int64_t extents[] = { c->batch, c->h.out, c->w.out, c->h.size, c->w.size };
    for (int i = 0; i < 5; i++)
        cornu__c_print(to, "for (ptrdiff_t %s = 0; %s < %lld; %s++)%s\n", names[i], names[i],
                       (long long)extents[i], names[i], i == 4 ? " {" : "");
    to->depth++;
    cornu__c_print(to, "%sfloat *const a = %s + ((b * %lld + i * %lld + u * %lld) * %lld + j * %lld"
                   " + v * %lld) * %lld;\n", qualifiers[0], x, (long long)c->h.in,
                   (long long)c->h.stride, (long long)c->h.dilation, (long long)c->w.in,
                   (long long)c->w.stride, (long long)c->w.dilation,
                   (long long)(c->channels * c->groups));
    cornu__c_print(to, "%sfloat *const o = %s + ((b * %lld + i) * %lld + j) * %lld;\n",
                   qualifiers[1], y, (long long)c->h.out, (long long)c->w.out,
                   (long long)c->filters);
    cornu__c_print(to, "%sfloat *const w = %s + (u * %lld + v) * %lld;\n", qualifiers[2], filter,
                   (long long)c->w.size, (long long)(c->channels * c->filters));
}

static void write_zeros(CornuCText *to, const char *y, CornuType type)
{
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) %s[i] = 0.0f;\n",
                   (long long)cornu_type_count(type), y);
}

/* Over the groups g, the channels k and filters f of each; or of depthwise ones at once. */
static void write_sums(CornuCText *to, const Convolution *c, const char *format)
{
    const int64_t filters = c->filters / c->groups;
    cornu__c_print(to, "for (ptrdiff_t g = 0; g < %lld; g++)\n", (long long)c->groups);
    cornu__c_print(to, "    for (ptrdiff_t k = 0; k < %lld; k++)\n", (long long)c->channels);
    cornu__c_print(to, "        for (ptrdiff_t f = 0; f < %lld; f++) {\n", (long long)filters);
    to->depth += 3;
    cornu__c_print(to, "const ptrdiff_t p = g * %lld + k, q = g * %lld + f, r = k * %lld + q;\n",
                   (long long)c->channels, (long long)filters, (long long)c->filters);
    cornu__c_print(to, format, c->fma);
    to->depth -= 3;
    cornu__c_print(to, "        }\n");
}

typedef enum { OF_Y, OF_X, OF_FILTER } Sum;

/* The result is the sum over all products that have one of its elements. */
static void write_products(CornuCText *to, const CornuCCall *call, const Convolution *c, Sum sum)
{
    static const char *const formulas[] = {
        "o[q] = %s(a[p], w[r], o[q]);\n",
        "a[p] = %s(o[q], w[r], a[p]);\n",
        "w[r] = %s(a[p], o[q], w[r]);\n",
    };
    static const char *const qualifiers[][3] = {
        { "const ", "", "const " }, { "", "const ", "const " }, { "const ", "const ", "" },
    };
    const char *x = sum == OF_X ? call->out[0] : call->name[0];
    const char *y = sum == OF_Y ? call->out[0] : call->name[sum == OF_X ? 0 : 1];
    const char *filter = sum == OF_FILTER ? call->out[0] : call->name[1];
    write_zeros(to, call->out[0], call->out_type[0]);
    open_products(to, c, x, y, filter, qualifiers[sum]);
    write_sums(to, c, formulas[sum]);
    to->depth--;
    cornu__c_print(to, "}\n");
}

static void write_grouped_conv2d(CornuCText *to, const CornuCCall *call)
{
    const Convolution c = convolution_of(call, call->op.in[1].shape);
    write_products(to, call, &c, OF_Y);
}

static void write_input_gradient(CornuCText *to, const CornuCCall *call)
{
    const Convolution c = convolution_of(call, call->op.in[1].shape);
    write_products(to, call, &c, OF_X);
}

static void write_grouped_filter_gradient(CornuCText *to, const CornuCCall *call)
{
    const Convolution c = convolution_of(call, call->out_type[0].shape);
    write_products(to, call, &c, OF_FILTER);
}

/* The loop over an image's pixels of a filter's gradient, as one, since compilers unroll short
 * ones, with the first elements of x and y there. */
static void open_pixels(CornuCText *to, const CornuCCall *call, const Convolution *c,
                        const char *tap)
{
    const long long width = c->w.out;
    cornu__c_print(to, "for (ptrdiff_t p = 0; p < %lld; p++) {\n", (long long)c->h.out * width);
    to->depth++;
    cornu__c_print(to, "const ptrdiff_t i = p / %lld, j = p %% %lld;\n", width, width);
    cornu__c_print(to, "const float *const a = %s + ((b * %lld + i * %lld + u * %lld) * %lld"
                   " + j * %lld%s) * %lld + k;\n", call->name[0], (long long)c->h.in,
                   (long long)c->h.stride, (long long)c->h.dilation, (long long)c->w.in,
                   (long long)c->w.stride, tap, (long long)c->channels);
    cornu__c_print(to, "const float *const o = %s + (b * %lld + p) * %lld + f;\n", call->name[1],
                   (long long)c->h.out * width, (long long)c->filters);
}

/* Of each tap, or of a row of taps at once, the sums over all pixels. A tile's columns are along
 * the filters, or along the channels where there are more. */
static void write_filter_gradient(CornuCText *to, const CornuCCall *call)
{
    enum { ROWS = 6, COLUMNS = 32, FEW = 16 };
    const Convolution c = convolution_of(call, call->out_type[0].shape);
    const bool        joined = c.w.dilation == 1;
    const int64_t     k = joined ? c.w.size * c.channels : c.channels;
    const bool        across = c.filters <= FEW && k > c.filters;
    const int64_t     of_k = cornu__c_divisor(k, across ? COLUMNS : ROWS);
    const int64_t     of_f = cornu__c_divisor(c.filters, across ? ROWS : COLUMNS);
    const char       *at_k = across ? "l" : "q", *at_f = across ? "q" : "l";
    const CornuCTile  tile = { across ? of_f : of_k, across ? of_k : of_f };
    const long long   rows = tile.rows, columns = tile.columns, filters = c.filters;
    char              of_x[48] = "", of_w[48] = "";
    if (!joined) snprintf(of_x, sizeof of_x, " + v * %lld", (long long)c.w.dilation);
    if (!joined) snprintf(of_w, sizeof of_w, " + v * %lld", (long long)c.channels);
    write_zeros(to, call->out[0], call->out_type[0]);
    cornu__c_print(to, "for (ptrdiff_t b = 0; b < %lld; b++)\n", (long long)c.batch);
    if (!joined)
        cornu__c_print(to, "for (ptrdiff_t v = 0; v < %lld; v++)\n", (long long)c.w.size);
    cornu__c_print(to, "for (ptrdiff_t u = 0; u < %lld; u++) {\n", (long long)c.h.size);
    to->depth++;
    cornu__c_open_tiles(to, "k", k, of_k);
    cornu__c_open_tiles(to, "f", filters, of_f);
    cornu__c_print(to, "float *const w = %s + (u * %lld%s + k) * %lld + f;\n", call->out[0],
                   (long long)(c.w.size * c.channels), of_w, filters);
    cornu__c_print(to, "float sum[%lld][%lld];\n", rows, columns);
    for (int last = 0; last < 2; last++) {
        cornu__c_print(to, "for (ptrdiff_t q = 0; q < %lld; q++)\n", rows);
        cornu__c_print(to, "    for (ptrdiff_t l = 0; l < %lld; l++)\n", columns);
        if (last) break;
        cornu__c_print(to, "        sum[q][l] = w[%s * %lld + %s];\n", at_k, filters, at_f);
        open_pixels(to, call, &c, of_x);
        cornu__c_add_products(to, call, tile, &(CornuCProducts){ across ? "o" : "a", "", 1,
                                                                 across ? "a" : "o", "" });
        to->depth--;
        cornu__c_print(to, "}\n");
    }
    cornu__c_print(to, "        w[%s * %lld + %s] = sum[q][l];\n", at_k, filters, at_f);
    cornu__c_close_tiles(to, filters, of_f);
    cornu__c_close_tiles(to, k, of_k);
    to->depth--;
    cornu__c_print(to, "}\n");
}

const CornuCRule *const cornu__grouped_conv2d_c =
    &(const CornuCRule){ .write = write_grouped_conv2d };
const CornuCRule *const cornu__conv2d_grad_input_c =
    &(const CornuCRule){ .write = write_input_gradient };
const CornuCRule *const cornu__grouped_conv2d_grad_input_c =
    &(const CornuCRule){ .write = write_input_gradient };
const CornuCRule *const cornu__conv2d_grad_filter_c =
    &(const CornuCRule){ .write = write_filter_gradient };
const CornuCRule *const cornu__grouped_conv2d_grad_filter_c =
    &(const CornuCRule){ .write = write_grouped_filter_gradient };
