/* The fixed point of 8-bit models as C: device/edgetpu/fixed.h and softmax.c. */
#include "int8_internal.h"

/* Each after those that it calls. P is the prefix. */
static const struct { const char *name, *text; } functions[] = {
    { "clamp",
      "static inline int8_t P_clamp(int32_t x, int32_t low, int32_t high)\n"
      "{\n"
      "    return (int8_t)(x < low ? low : x > high ? high : x);\n"
      "}\n\n" },
    { "product",
      "/* round(a b / 2^31), halves up. */\n"
      "static inline int32_t P_product(int32_t a, int32_t b)\n"
      "{\n"
      "    const int64_t high = ((int64_t)a * b + (INT64_C(1) << 30)) >> 31;\n"
      "    return high > INT32_MAX ? INT32_MAX : (int32_t)high;\n"
      "}\n\n" },
    { "shift",
      "/* round(x / 2^shift), halves away from zero. */\n"
      "static inline int32_t P_shift(int32_t x, int shift)\n"
      "{\n"
      "    const int32_t mask = (int32_t)((UINT32_C(1) << shift) - 1), rest = x & mask;\n"
      "    return (x >> shift) + (rest > (mask >> 1) + (x < 0));\n"
      "}\n\n" },
    { "scale",
      "/* x mantissa 2^(shift - 31), rounded twice, as LiteRT's reference kernels do. */\n"
      "static inline int32_t P_scale(int32_t x, int32_t mantissa, int shift)\n"
      "{\n"
      "    const int32_t raised = (int32_t)((uint32_t)x << (shift > 0 ? shift : 0));\n"
      "    return P_shift(P_product(raised, mantissa), shift > 0 ? 0 : -shift);\n"
      "}\n\n" },
    { "rounded",
      "/* x to the boundedest, halves away from zero; NaN counts as 0. */\n"
      "static inline int8_t P_rounded(double x, int32_t zero, int32_t low, int32_t high)\n"
      "{\n"
      "    const double bounded = x > 1000.0 ? 1000.0 : x < -1000.0 ? -1000.0 : x != x ? 0.0 : x;\n"
      "    int32_t y = (int32_t)bounded;\n"
      "    y += bounded - y >= 0.5;\n"
      "    y -= bounded - y <= -0.5;\n"
      "    return P_clamp(y + zero, low, high);\n"
      "}\n\n" },
    { "raised",
      "static inline int32_t P_raised(int32_t x, int shift)\n"
      "{\n"
      "    const int64_t y = (int64_t)x * (1 << shift);\n"
      "    return y > INT32_MAX ? INT32_MAX : y < INT32_MIN ? INT32_MIN : (int32_t)y;\n"
      "}\n\n" },
    { "softmax",
      "/* exps[d]: exp of an element that is d less than the largest, in 2^-31; -1: 0. */\n"
      "static inline void P_softmax(const int32_t *exps, ptrdiff_t depth, const int8_t *x,\n"
      "                             int8_t *y)\n"
      "{\n"
      "    int8_t most = -128;\n"
      "    uint32_t sum = 0;\n"
      "    int zeros = 0;\n"
      "    for (ptrdiff_t i = 0; i < depth; i++) most = x[i] > most ? x[i] : most;\n"
      "    for (ptrdiff_t i = 0; i < depth; i++)\n"
      "        if (exps[most - x[i]] >= 0) sum += (uint32_t)P_shift(exps[most - x[i]], 12);\n"
      "    while (zeros < 31 && !(sum >> (31 - zeros))) zeros++;\n"
      "    /* 1 / (1 + fraction): Newton's division, three steps. */\n"
      "    const int shift = 35 - zeros;\n"
      "    const int32_t fraction = (int32_t)((sum << zeros) - (UINT32_C(1) << 31));\n"
      "    const int32_t half = (int32_t)(((int64_t)fraction + INT32_MAX + 1) / 2);\n"
      "    int32_t scale = 1515870810 + P_product(half, -1010580540);\n"
      "    for (int i = 0; i < 3; i++)\n"
      "        scale += P_raised(P_product(scale, (1 << 29) - P_product(half, scale)), 2);\n"
      "    scale = P_raised(scale, 1);\n"
      "    for (ptrdiff_t i = 0; i < depth; i++) {\n"
      "        const int32_t e = exps[most - x[i]];\n"
      "        const int32_t to = e < 0 || shift > 31 ? 0 : P_shift(P_product(scale, e), shift);\n"
      "        y[i] = P_clamp(to - 128, -128, 127);\n"
      "    }\n"
      "}\n\n" },
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static bool is_called(const char *text, const char *prefix, const char *name)
{
    char call[CORNU_C_NAME + 32];
    snprintf(call, sizeof call, "%s_%s(", prefix, name);
    return text && strstr(text, call);
}

static void write_text(FILE *to, const char *text, const char *prefix)
{
    bool inside = false;   /* of a word, of which "P_" is not the beginning */
    for (const char *at = text; *at; at++) {
        const bool begins = !inside && at[0] == 'P' && at[1] == '_';
        inside = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || *at == '_' ||
                 (*at >= '0' && *at <= '9');
        if (begins) fputs(prefix, to);
        else fputc(*at, to);
    }
}

void cornu__c_int8_prelude(FILE *to, const CornuCInt8 *c)
{
    bool called[FUNCTIONS];
    for (int i = FUNCTIONS - 1; i >= 0; i--) {
        called[i] = is_called(c->text.text, c->prefix, functions[i].name);
        for (int k = i + 1; k < FUNCTIONS; k++)
            called[i] |= called[k] && is_called(functions[k].text, "P", functions[i].name);
    }
    for (int i = 0; i < FUNCTIONS; i++)
        if (called[i]) write_text(to, functions[i].text, c->prefix);
}
