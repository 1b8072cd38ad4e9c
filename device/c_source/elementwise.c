/* Formulas of elementwise ops, and the ops that are views or decompositions. */
#include "source_internal.h"

#define ROW(name, text) \
    const CornuCRule *const cornu__##name##_c = &(const CornuCRule){ .formula = text };

/* Of one operand x: device/ops/elementwise.def. */
#define CORNU_UNARY(ID, name, types, value, gradient, stablehlo)         ROW(name, #value)
#define CORNU_FLAT(ID, name, types, value, stablehlo)                    ROW(name, #value)
#define CORNU_COMPOSED(ID, name, types, value, gradient, stablehlo, ...) ROW(name, #value)
#include "../ops/elementwise.def"
#undef CORNU_COMPOSED
#undef CORNU_FLAT
#undef CORNU_UNARY

ROW(elu, "x > 0.0 ? x : n * expm1(x)")
ROW(bounded_relu, "x <= 0.0 ? 0.0 : x >= n ? n : x")
ROW(bounded_step, "x > 0.0 && x < n ? 1.0 : 0.0")
ROW(add, "a + b")
ROW(subtract, "a - b")
ROW(multiply, "a * b")
ROW(divide, "a / b")
ROW(maximum, "a != a || a > b ? a : b")
ROW(minimum, "a != a || a < b ? a : b")
ROW(power, "pow(a, b)")
ROW(compare, "a holds b")
ROW(is_finite, "x - x == 0.0")
ROW(select, "a ? b : c")
ROW(convert, "")   /* loops.c */

#define SEEN(name) const CornuCRule *const cornu__##name##_c = CORNU_C_SEEN;
SEEN(constant)
SEEN(replica_id)
SEEN(broadcast)
SEEN(reshape)
SEEN(transpose)
SEEN(slice)
SEEN(flip)

#define DECOMPOSED(name) const CornuCRule *const cornu__##name##_c = CORNU_C_DECOMPOSED;
DECOMPOSED(batch_norm)
DECOMPOSED(batch_norm_grad)
DECOMPOSED(softmax)
DECOMPOSED(log_softmax)
DECOMPOSED(sparse_cross_entropy)
DECOMPOSED(lstm)
DECOMPOSED(lstm_grad)
DECOMPOSED(gru)
DECOMPOSED(gru_grad)
DECOMPOSED(dropout)
DECOMPOSED(momentum_update)
DECOMPOSED(rmsprop_update)
DECOMPOSED(adam_update)
DECOMPOSED(custom)
DECOMPOSED(attention)
DECOMPOSED(attention_grad)
DECOMPOSED(resample)

/* Between shards: on one, simplify has left none. */
#define REFUSED(name) const CornuCRule *const cornu__##name##_c = CORNU_C_REFUSED;
REFUSED(all_reduce)
REFUSED(reduce_scatter)
REFUSED(all_gather)
REFUSED(shard_slice)
