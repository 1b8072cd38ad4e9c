/*
 * Convolutions, without padding (lower.c), and their gradients. A tile of pixels and filters is
 * summed in registers, as in products.c; what is grouped, and gradients, add each product to where
 * it belongs.
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
    const CornuCTile tile = cornu__c_tile(c.w.out, c.filters, sum);
    const int64_t    rows = tile.rows, columns = tile.columns;
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
    cornu__c_print(to, "for (ptrdiff_t k = 0; k < %lld; k++)\n", (long long)sum);
    cornu__c_print(to, "    for (ptrdiff_t q = 0; q < %lld; q++)\n", (long long)rows);
    cornu__c_print(to, "        for (ptrdiff_t l = 0; l < %lld; l++)\n", (long long)columns);
    cornu__c_print(to, "            sum[q][l] = %s(a[q * %lld + k], w[k * %lld + l], "
                   "sum[q][l]);\n", c.fma, (long long)(c.w.stride * c.channels),
                   (long long)c.filters);
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

static void write_filter_gradient(CornuCText *to, const CornuCCall *call)
{
    const Convolution c = convolution_of(call, call->out_type[0].shape);
    write_products(to, call, &c, OF_FILTER);
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
    &(const CornuCRule){ .write = write_filter_gradient };
