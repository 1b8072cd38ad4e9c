/* The parts of policies' names. */
#ifndef CORNU_NN_POLICY_INTERNAL_H
#define CORNU_NN_POLICY_INTERNAL_H

#include "policy.h"

/* "int8", …; "" for CORNU_NOT_QUANTIZED. */
extern const char *const cornu__quantization_names[];

/* The length of the blocks in the name of a policy, "int4/32_from_float32": -1 is a valid one,
 * which means none; 0 if the name has no length. */
CornuStatus cornu__policy_block(const char *name, int64_t *block);

/* "int8_from_NAME" for the policy NAME. NULL with a pending error if Keras does not have it. */
const CornuPolicy *cornu__policy_from(const CornuPolicy *source, CornuQuantization quantization);

/* NAME of "int8_from_NAME", or its own name. */
const char *cornu__policy_source(const CornuPolicy *policy);

/* CORNU_ERR_ARGUMENT for a policy that only some layers can have. */
CornuStatus cornu__policy_of_models(const CornuPolicy *policy);

#endif
