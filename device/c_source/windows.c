/* Pooling and its gradients: the window of each output, without what is padding. */
#include "source_internal.h"
#include "../ops/window.h"

typedef struct {
    CornuSweep h, w;
    int64_t    batch, channels;
} Pool;

static Pool pool_of(const CornuCCall *call)
{
    const CornuShape shape = call->op.in[0].shape;
    CornuSweep       sweeps[2];
    cornu__sweeps(&call->op, sweeps);
    return (Pool){ sweeps[0], sweeps[1], shape.extent[0], shape.extent[3] };
}

/* Loops over images and outputs (i, j), and the window's rows from u0 and columns from v0 on. */
static void open_outputs(CornuCText *to, const Pool *p)
{
    const CornuSweep *const sweeps[] = { &p->h, &p->w };
    cornu__c_print(to, "for (ptrdiff_t b = 0; b < %lld; b++)\n", (long long)p->batch);
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++)\n", (long long)p->h.out);
    cornu__c_print(to, "for (ptrdiff_t j = 0; j < %lld; j++) {\n", (long long)p->w.out);
    to->depth++;
    for (int k = 0; k < 2; k++) {
        const char *tap = k ? "v" : "u", *at = k ? "j" : "i";
        const CornuSweep *s = sweeps[k];
        const bool        padded = s->low > 0 || s->high > 0;
        cornu__c_print(to, "const ptrdiff_t %s0 = %s * %lld - %lld;\n", tap, at,
                       (long long)s->stride, (long long)s->low);
        if (!padded) {
            cornu__c_print(to, "const ptrdiff_t %s1 = 0, %s2 = %lld;\n", tap, tap,
                           (long long)s->size);
            continue;
        }
        cornu__c_print(to, "const ptrdiff_t %s1 = %s0 < 0 ? -%s0 : 0;\n", tap, tap, tap);
        cornu__c_print(to, "const ptrdiff_t %s2 = %s0 + %lld > %lld ? %lld - %s0 : %lld;\n", tap,
                       tap, (long long)s->size, (long long)s->in, (long long)s->in, tap,
                       (long long)s->size);
    }
}

static void close_outputs(CornuCText *to)
{
    to->depth--;
    cornu__c_print(to, "}\n");
}

/* Pointers to the channels of x at tap (u, v), and of an output. */
static void print_x(CornuCText *to, const Pool *p, const char *type, const char *name)
{
    cornu__c_print(to, "%s *const a = %s + ((b * %lld + u0 + u) * %lld + v0 + v) * %lld;\n", type,
                   name, (long long)p->h.in, (long long)p->w.in, (long long)p->channels);
}

static void print_y(CornuCText *to, const Pool *p, const char *type, const char *at,
                    const char *name)
{
    cornu__c_print(to, "%s *const %s = %s + ((b * %lld + i) * %lld + j) * %lld;\n", type, at, name,
                   (long long)p->h.out, (long long)p->w.out, (long long)p->channels);
}

static void open_taps(CornuCText *to)
{
    cornu__c_print(to, "for (ptrdiff_t u = u1; u < u2; u++)\n");
    cornu__c_print(to, "for (ptrdiff_t v = v1; v < v2; v++) {\n");
    to->depth++;
}

static void print_channels(CornuCText *to, const Pool *p)
{
    cornu__c_print(to, "for (ptrdiff_t c = 0; c < %lld; c++)", (long long)p->channels);
}

/* A NaN counts as larger than any number. */
static void write_max_pool2d(CornuCText *to, const CornuCCall *call)
{
    const Pool p = pool_of(call);
    const bool indexed = call->out[1] != NULL;
    open_outputs(to, &p);
    print_y(to, &p, "float", "o", call->out[0]);
    if (indexed) print_y(to, &p, "uint8_t", "n", call->out[1]);
    cornu__c_print(to, "{\n");
    to->depth++;
    cornu__c_print(to, "const ptrdiff_t u = u1, v = v1;\n");
    print_x(to, &p, "const float", call->name[0]);
    print_channels(to, &p);
    cornu__c_print(to, " o[c] = a[c];\n");
    if (indexed) {
        print_channels(to, &p);
        cornu__c_print(to, " n[c] = (uint8_t)(u * %lld + v);\n", (long long)p.w.size);
    }
    close_outputs(to);
    open_taps(to);
    print_x(to, &p, "const float", call->name[0]);
    print_channels(to, &p);
    if (indexed) {
        cornu__c_print(to, "\n    if (a[c] > o[c] || (a[c] != a[c] && o[c] == o[c])) {\n");
        cornu__c_print(to, "        o[c] = a[c];\n");
        cornu__c_print(to, "        n[c] = (uint8_t)(u * %lld + v);\n", (long long)p.w.size);
        cornu__c_print(to, "    }\n");
    } else {
        cornu__c_print(to, " o[c] = a[c] > o[c] || a[c] != a[c] ? a[c] : o[c];\n");
    }
    close_outputs(to);
    close_outputs(to);
}

static void write_zeros(CornuCText *to, const char *y, CornuType type)
{
    cornu__c_print(to, "for (ptrdiff_t i = 0; i < %lld; i++) %s[i] = 0.0f;\n",
                   (long long)cornu_type_count(type), y);
}

static void write_max_pool2d_grad(CornuCText *to, const CornuCCall *call)
{
    const Pool p = pool_of(call);
    write_zeros(to, call->out[0], call->out_type[0]);
    open_outputs(to, &p);
    cornu__c_print(to, "(void)u1, (void)u2, (void)v1, (void)v2;\n");
    print_y(to, &p, "const float", "o", call->name[0]);
    print_y(to, &p, "const uint8_t", "n", call->name[1]);
    print_channels(to, &p);
    cornu__c_print(to, " {\n");
    to->depth++;
    cornu__c_print(to, "const ptrdiff_t u = n[c] / %lld, v = n[c] %% %lld;\n",
                   (long long)p.w.size, (long long)p.w.size);
    print_x(to, &p, "float", call->out[0]);
    cornu__c_print(to, "a[c] += o[c];\n");
    close_outputs(to);
    close_outputs(to);
}

static void write_average_pool2d(CornuCText *to, const CornuCCall *call)
{
    const Pool p = pool_of(call);
    open_outputs(to, &p);
    print_y(to, &p, "float", "o", call->out[0]);
    cornu__c_print(to, "const float count = (float)((u2 - u1) * (v2 - v1));\n");
    print_channels(to, &p);
    cornu__c_print(to, " o[c] = 0.0f;\n");
    open_taps(to);
    print_x(to, &p, "const float", call->name[0]);
    print_channels(to, &p);
    cornu__c_print(to, " o[c] += a[c];\n");
    close_outputs(to);
    print_channels(to, &p);
    cornu__c_print(to, " o[c] /= count;\n");
    close_outputs(to);
}

static void write_average_pool2d_grad(CornuCText *to, const CornuCCall *call)
{
    const Pool p = pool_of(call);
    write_zeros(to, call->out[0], call->out_type[0]);
    open_outputs(to, &p);
    print_y(to, &p, "const float", "o", call->name[0]);
    cornu__c_print(to, "const float count = (float)((u2 - u1) * (v2 - v1));\n");
    open_taps(to);
    print_x(to, &p, "float", call->out[0]);
    print_channels(to, &p);
    cornu__c_print(to, " a[c] += o[c] / count;\n");
    close_outputs(to);
    close_outputs(to);
}

const CornuCRule *const cornu__max_pool2d_c =
    &(const CornuCRule){ .write = write_max_pool2d, .skips = true };
const CornuCRule *const cornu__max_pool2d_grad_c =
    &(const CornuCRule){ .write = write_max_pool2d_grad };
const CornuCRule *const cornu__average_pool2d_c =
    &(const CornuCRule){ .write = write_average_pool2d };
const CornuCRule *const cornu__average_pool2d_grad_c =
    &(const CornuCRule){ .write = write_average_pool2d_grad };
