#include "policy.h"

#include <string.h>

#include "../../device/text/nearest.h"
#include "../../device/status_internal.h"

static const CornuPolicy policies[] = {
    { "float32", CORNU_F32, CORNU_F32 },
    { "mixed_bfloat16", CORNU_BF16, CORNU_F32 },
    { "mixed_float16", CORNU_F16, CORNU_F32 },
};
enum { POLICIES = sizeof policies / sizeof *policies };

const CornuPolicy *cornu_policy(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    static const char *const narrow[] = { "bfloat16", "float16", "float64" };
    const char *known[POLICIES];
    if (cornu__refused()) return NULL;
    for (int i = 0; i < POLICIES; i++) {
        known[i] = policies[i].name;
        if (!strcmp(name, known[i])) return &policies[i];
    }
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++)
        if (!strcmp(name, narrow[i]))
            return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the policy %s stores weights in %s, "
                                    "which is not available in this version; expected "
                                    "float32, mixed_bfloat16 or mixed_float16", name, name);
    const char *near = cornu_nearest(name, known, POLICIES);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "the policy \"%s\" is not known, expected float32, "
                            "mixed_bfloat16 or mixed_float16%s%s%s", name,
                            near ? "; is \"" : "", near ? near : "", near ? "\" meant?" : "");
}

static _Thread_local const CornuPolicy *global;

CornuStatus cornu_set_dtype_policy(const char *name)
{
    const CornuPolicy *policy = name ? cornu_policy(name) : NULL;
    if (name && !policy) return cornu_error_take();
    global = policy;
    return CORNU_OK;
}

const CornuPolicy *cornu_dtype_policy(void) { return global; }
