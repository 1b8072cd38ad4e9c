/* What the rules of many ops share: checks of operands, type rules, FLOP counts. */
#include "rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../text/print.h"

int64_t cornu__no_flops(const CornuOpCall *call)
{
    (void)call;
    return 0;
}

/* A marker: callers compare a rule with it before they call it. */
CornuStatus cornu__primitive(CornuProgram *program, const CornuOpCall *call,
                             const CornuValue *in, CornuValue *out)
{
    (void)program, (void)in, (void)out;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is primitive: it has no decomposition",
                       cornu__called(call->id, call->attributes));
}

CornuStatus cornu__same_type(const CornuOpCall *call, CornuType *out)
{
    for (int i = 0; i < cornu_op_output_count(call->id); i++) out[i] = call->in[0];
    return CORNU_OK;
}

int64_t cornu__flops_per_element(const CornuOpCall *call)
{
    return cornu_type_count(call->in[0]);
}

int64_t cornu__flops(int count, const int64_t *factors)
{
    int64_t product = 1;
    for (int i = 0; i < count; i++) {
        if (factors[i] == 0) return 0;
        product = product > INT64_MAX / factors[i] ? INT64_MAX : product * factors[i];
    }
    return product;
}

CornuStatus cornu__refuse(const CornuOpCall *call, CornuStatus status, const char *names,
                          const char *format, ...)
{
    char   text[512] = "";
    size_t used = 0;
    for (int i = 0; i < call->in_count && *names && used < sizeof text; i++) {
        int       length = (int)strcspn(names, " ");
        CornuText type;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.*s is %s", i ? ", " : "",
                                 length, names, cornu_type_print(&type, call->in[i]));
        names += length + (names[length] == ' ');
    }
    char    reason[512];
    va_list arguments;
    va_start(arguments, format);
    cornu__vformat(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return cornu__fail(status, "%s: %s", text, reason);
}

bool cornu__is_number(CornuDtype dtype) { return dtype != CORNU_BOOL; }

bool cornu__is_integer(CornuDtype dtype)
{
    return cornu__is_number(dtype) && !cornu_dtype_is_float(dtype);
}

/* The i-th of some names separated by blanks, for "%.*s". */
static const char *name_of(const char *names, int i, int *length)
{
    while (i-- > 0) names += strcspn(names, " ") + 1;
    *length = (int)strcspn(names, " ");
    return names;
}

CornuStatus cornu__expect_float(const CornuOpCall *call, int i, const char *names)
{
    if (cornu_dtype_is_float(call->in[i].dtype)) return CORNU_OK;
    int         length;
    const char *name = name_of(names, i, &length);
    return cornu__refuse(call, CORNU_ERR_DTYPE, names, "expected a float as %.*s", length, name);
}

CornuStatus cornu__expect_dtype(const CornuOpCall *call, int i, CornuDtype dtype,
                                const char *names)
{
    if (call->in[i].dtype == dtype) return CORNU_OK;
    int         length;
    const char *name = name_of(names, i, &length);
    return cornu__refuse(call, CORNU_ERR_DTYPE, names, "expected %s as %.*s",
                         cornu_dtype_name(dtype), length, name);
}

CornuStatus cornu__expect_rank(const CornuOpCall *call, int i, int rank, const char *names)
{
    if (call->in[i].shape.rank == rank) return CORNU_OK;
    int         length;
    const char *name = name_of(names, i, &length);
    return cornu__refuse(call, CORNU_ERR_SHAPE, names, "expected rank %d for %.*s", rank, length,
                         name);
}

CornuStatus cornu__expect_alike(const CornuOpCall *call, int i, int j, const char *names)
{
    int         length_i, length_j;
    const char *name_i = name_of(names, i, &length_i), *name_j = name_of(names, j, &length_j);
    if (call->in[i].dtype != call->in[j].dtype)
        return cornu__refuse(call, CORNU_ERR_DTYPE, names, "%.*s and %.*s must have the same dtype",
                             length_i, name_i, length_j, name_j);
    if (!cornu_shape_equal(call->in[i].shape, call->in[j].shape))
        return cornu__refuse(call, CORNU_ERR_SHAPE, names, "%.*s and %.*s must have the same shape",
                             length_i, name_i, length_j, name_j);
    return CORNU_OK;
}
