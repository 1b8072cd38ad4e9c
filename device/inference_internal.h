/*
 * A library that loads models and predicts, and does nothing else, is built with CORNU_INFERENCE
 * (nn/prediction/inference.mk). It differs in tables alone, whose entries the linker cannot see to
 * be unused: CORNU__FULL(entry, other) is `entry` in the full library, `other` in that one.
 */
#ifndef CORNU_DEVICE_INFERENCE_INTERNAL_H
#define CORNU_DEVICE_INFERENCE_INTERNAL_H

#if defined(CORNU_INFERENCE)
#define CORNU__FULL(entry, other) (0 ? (entry) : (other))   /* the entry counts as used */
#else
#define CORNU__FULL(entry, other) (entry)
#endif

#endif
