/* Only the table of operations.def, so that no rule depends on the others; or of CORNU_OPERATIONS,
 * some of its rows (prediction/inference.mk). */
#include "operation_internal.h"

#if !defined(CORNU_OPERATIONS) && defined(CORNU_INFERENCE)
#define TABLE_OF_FEWER
#endif
#if !defined(CORNU_OPERATIONS)
#define CORNU_OPERATIONS "operations.def"
#endif

#define KIND(name, ...)                                                                        \
    { .class_name = #name, .size = sizeof(CornuOperation), .build_many = cornu__operation_build, \
      .call_many = cornu__operation_call, .mask_many = cornu__operation_mask,                  \
      .outputs = cornu__operation_outputs, .free = cornu__operation_free,                      \
      .keeps_dtypes = true, .any_axis = true, __VA_ARGS__ }
#define ON_HOST                                                                                \
    .host_type = cornu__operation_host_type, .host_call = cornu__operation_host_call,          \
    .moves_to_host = true
#define OPERATION(module, name, rule) { KIND(name, ), #module, cornu__operation_##rule, NULL },
#define OPERATION_MOVES(module, name, rule) \
    { KIND(name, ON_HOST), #module, cornu__operation_##rule, NULL },
#define OPERATION_MANY(module, name, rule) \
    { KIND(name, ), #module, cornu__operation_##rule, cornu__operation_##rule##_count },

#if defined(TABLE_OF_FEWER)
#define CORNU_FEWER_OPERATIONS
#endif
const CornuOperationClass cornu__operations[] = {
#include CORNU_OPERATIONS
    { .module = NULL },
};
