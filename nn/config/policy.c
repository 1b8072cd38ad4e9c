#include "policy.h"
#include "policy_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../device/text/nearest.h"
#include "../../device/status_internal.h"

/* Policies of floats, and what Keras quantizes from each: it refuses int8 from float16. */
#define FLOATS(X)                                \
    X("float32", CORNU_F32, CORNU_F32)           \
    X("mixed_bfloat16", CORNU_BF16, CORNU_F32)   \
    X("bfloat16", CORNU_BF16, CORNU_BF16)
#define HALVES(X)                                \
    X("mixed_float16", CORNU_F16, CORNU_F32)     \
    X("float16", CORNU_F16, CORNU_F16)

static const CornuPolicy policies[] = {
#define X(name, compute, variable) { name, compute, variable, CORNU_NOT_QUANTIZED },
    FLOATS(X) HALVES(X)
#undef X
#define X(name, compute, variable) { "int8_from_" name, compute, variable, CORNU_INT8 },
    FLOATS(X)
#undef X
#define X(name, compute, variable) { "int4_from_" name, compute, variable, CORNU_INT4 },
    FLOATS(X) HALVES(X)
#undef X
#define X(name, compute, variable) { "float8_from_" name, compute, variable, CORNU_FLOAT8 },
    FLOATS(X) HALVES(X)
#undef X
};
enum { POLICIES = sizeof policies / sizeof *policies };

const char *const cornu__quantization_names[] = { "", "int8", "int4", "float8" };

/* The name without the blocks, "/32", after its first word. */
static void without_block(const char *name, char plain[64])
{
    const char *slash = strchr(name, '/'), *from = strstr(name, "_from_");
    const bool  has = !strncmp(name, "int4/", 5) && slash && from && from > slash;
    snprintf(plain, 64, "%.*s%s", has ? (int)(slash - name) : 0, name, has ? from : name);
}

CornuStatus cornu__policy_block(const char *name, int64_t *block)
{
    const char *slash = strchr(name, '/');
    char       *end = NULL;
    *block = 0;
    if (!slash) return CORNU_OK;
    *block = strtoll(slash + 1, &end, 10);
    if (end > slash + 1 && !strncmp(end, "_from_", 6) &&
        (*block == CORNU_NONE || (*block > 0 && *block <= INT32_MAX)))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "the policy \"%.80s\" has blocks that are not a whole "
                       "number of at least 1, nor -1", name);
}

const CornuPolicy *cornu__policy_from(const CornuPolicy *source, CornuQuantization quantization)
{
    char name[64];
    snprintf(name, sizeof name, "%s%s%s", cornu__quantization_names[quantization],
             quantization ? "_from_" : "", source->name);
    return cornu_policy(name);
}

const char *cornu__policy_source(const CornuPolicy *policy)
{
    const char *from = strstr(policy->name, "_from_");
    return from ? from + strlen("_from_") : policy->name;
}

const CornuPolicy *cornu_policy(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const char *known[POLICIES];
    char        plain[64];
    if (cornu__refused()) return NULL;
    without_block(name, plain);
    for (int i = 0; i < POLICIES; i++) {
        known[i] = policies[i].name;
        if (!strcmp(plain, known[i])) return &policies[i];
    }
    if (!strcmp(name, "float64"))
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the policy float64 stores weights in "
                                "float64, which is not available in this version; expected "
                                "float32, bfloat16, float16, mixed_bfloat16 or mixed_float16");
    const char *near = cornu_nearest(name, known, POLICIES);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "the policy \"%.80s\" is not known, expected "
                            "float32, mixed_bfloat16, mixed_float16, bfloat16 or float16, or one "
                            "of int8, int4 and float8 from these%s%s%s", name,
                            near ? "; is \"" : "", near ? near : "", near ? "\" meant?" : "");
}

static _Thread_local const CornuPolicy *global;

CornuStatus cornu__policy_of_models(const CornuPolicy *policy)
{
    if (!policy || !policy->quantization) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "the policy %s quantizes a kernel: it is for a Dense, "
                       "EinsumDense, Embedding or ReversibleEmbedding, not for whole models; see "
                       "cornu_model_quantize_weights", policy->name);
}

CornuStatus cornu_set_dtype_policy(const char *name)
{
    const CornuPolicy *policy = name ? cornu_policy(name) : NULL;
    if (name && !policy) return cornu_error_take();
    CORNU__TRY(cornu__policy_of_models(policy));
    global = policy;
    return CORNU_OK;
}

const CornuPolicy *cornu_dtype_policy(void) { return global; }
