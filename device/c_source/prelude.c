/* What functions share: macros for functions of <math.h>, which a machine without it defines
 * itself, and a few functions of our own. */
#include <ctype.h>
#include <string.h>

#include "source_internal.h"

/* Functions of double; those of float have an f at the end. */
static const char *const math[] = {
    "exp", "log", "sqrt", "sin", "cos", "tanh", "erf", "log1p", "expm1", "pow", "floor", "fabs",
    "fmax", "fmin", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh", "acosh",
    "atanh", "exp2", "log2", "log10", "cbrt", "ceil", "round", "trunc", "rint", "fmod",
};
enum { MATH = sizeof math / sizeof *math };

bool cornu__c_math(CornuCSource *source, const char *name, size_t length)
{
    for (int i = 0; i < MATH; i++) {
        if (strlen(math[i]) != length || strncmp(math[i], name, length) != 0) continue;
        if (source) source->math |= UINT64_C(1) << i;
        return true;
    }
    return false;
}

bool cornu__c_calls(const char *formula, bool *known)
{
    bool calls = false;
    *known = true;
    for (const char *at = formula; *at;) {
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || at[length] == '_') length++;
        if (length > 0 && at[length] == '(' && isalpha((unsigned char)*at)) {
            calls = true;
            *known &= cornu__c_math(NULL, at, length);
        }
        at += length > 0 ? length : 1;
    }
    return calls;
}

void cornu__c_helper(CornuCSource *source, int helper) { source->helpers |= 1u << helper; }

/* P is the prefix, M it in capitals. */
static const char *const helpers[] = {
    [CORNU_C_HELPER_FMA] =
        "/* a b + c, rounded once where the machine has an instruction for it. */\n"
        "#ifndef M_FMAF\n"
        "#if defined __FMA__ || defined __ARM_FEATURE_FMA\n"
        "#define M_FMAF(a, b, c) __builtin_fmaf(a, b, c)\n"
        "#else\n"
        "#define M_FMAF(a, b, c) ((a) * (b) + (c))\n"
        "#endif\n"
        "#endif\n\n",
    [CORNU_C_HELPER_TO_I32] =
        "/* Truncates; what is out of range becomes the nearest there is, NaN 0. */\n"
        "static inline int32_t P_to_int32(float x)\n"
        "{\n"
        "    return x != x ? 0 : x <= -2147483648.0f ? INT32_MIN\n"
        "         : x >= 2147483648.0f ? INT32_MAX : (int32_t)x;\n"
        "}\n\n",
    [CORNU_C_HELPER_TO_I64] =
        "/* Truncates; what is out of range becomes the nearest there is, NaN 0. */\n"
        "static inline int64_t P_to_int64(float x)\n"
        "{\n"
        "    return x != x ? 0 : x <= -9223372036854775808.0f ? INT64_MIN\n"
        "         : x >= 9223372036854775808.0f ? INT64_MAX : (int64_t)x;\n"
        "}\n\n",
    [CORNU_C_HELPER_TO_U32] =
        "/* Truncates; what is out of range becomes the nearest there is, NaN 0. */\n"
        "static inline uint32_t P_to_uint32(float x)\n"
        "{\n"
        "    return !(x > 0.0f) ? 0 : x >= 4294967296.0f ? UINT32_MAX : (uint32_t)x;\n"
        "}\n\n",
    [CORNU_C_HELPER_TO_U8] =
        "/* Truncates; what is out of range becomes the nearest there is, NaN 0. */\n"
        "static inline uint8_t P_to_uint8(float x)\n"
        "{\n"
        "    return (uint8_t)(!(x > 0.0f) ? 0 : x >= 255.0f ? 255 : (int)x);\n"
        "}\n\n",
    [CORNU_C_HELPER_PHILOX] =
        "/* Random numbers in [0, 1): four for a key and a counter, by Philox 4x32-10 (Salmon et\n"
        " * al., \"Parallel Random Numbers: As Easy as 1, 2, 3\", SC 2011). */\n"
        "static inline void P_philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2,\n"
        "                            uint32_t c3, float out[4])\n"
        "{\n"
        "    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);\n"
        "    for (int round = 0; round < 10; round++) {\n"
        "        const uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;\n"
        "        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;\n"
        "        c1 = (uint32_t)p1;\n"
        "        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;\n"
        "        c3 = (uint32_t)p0;\n"
        "        k0 += 0x9E3779B9u;\n"
        "        k1 += 0xBB67AE85u;\n"
        "    }\n"
        "    out[0] = (float)(c0 >> 8) * (1.0f / 16777216.0f);\n"
        "    out[1] = (float)(c1 >> 8) * (1.0f / 16777216.0f);\n"
        "    out[2] = (float)(c2 >> 8) * (1.0f / 16777216.0f);\n"
        "    out[3] = (float)(c3 >> 8) * (1.0f / 16777216.0f);\n"
        "}\n\n",
    [CORNU_C_HELPER_ROW] =
        "/* A row of a table; the nearest there is for an index that is out of range. */\n"
        "static inline ptrdiff_t P_row(int64_t index, ptrdiff_t rows)\n"
        "{\n"
        "    return index < 0 ? 0 : index >= rows ? rows - 1 : (ptrdiff_t)index;\n"
        "}\n\n",
};

static void print_capitals(CornuCText *to, const char *text)
{
    for (; *text; text++) cornu__c_print(to, "%c", toupper((unsigned char)*text));
}

/* "P_" and "M_" are the prefix. */
static void print_template(CornuCText *to, const CornuCSource *source, const char *text)
{
    bool inside = false;   /* of a word, of which "P_" is not the beginning */
    for (; *text; text++) {
        const bool begins = !inside && text[1] == '_' && (text[0] == 'P' || text[0] == 'M');
        inside = isalnum((unsigned char)*text) || *text == '_';
        if (begins && text[0] == 'P') cornu__c_print(to, "%s", source->prefix);
        else if (begins) print_capitals(to, source->prefix);
        else cornu__c_print(to, "%c", *text);
    }
}

bool cornu__c_is_helper(const CornuCSource *source, const char *name)
{
    const size_t length = strlen(source->prefix);
    char         called[80];
    if (strncmp(name, source->prefix, length) != 0) return false;
    snprintf(called, sizeof called, " P%s(", name + length);
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
        if (strstr(helpers[i], called)) return true;
    return false;
}

void cornu__c_prelude(const CornuCSource *source, CornuCText *to)
{
    if (source->math) {
        cornu__c_print(to, "/* Functions of <math.h>; define a macro to use another one. */\n");
        for (int i = 0; i < MATH; i++) {
            if (!(source->math >> i & 1)) continue;
            char macro[16];
            for (size_t k = 0; k <= strlen(math[i]); k++)
                macro[k] = (char)toupper((unsigned char)math[i][k]);
            print_template(to, source, "#ifndef M_");
            cornu__c_print(to, "%sF\n#include <math.h>\n", macro);
            print_template(to, source, "#define M_");
            cornu__c_print(to, "%sF %sf\n#endif\n", macro, math[i]);
        }
        cornu__c_print(to, "\n");
    }
    for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
        if (source->helpers >> i & 1) print_template(to, source, helpers[i]);
}
