/* Formulas of elementwise ops, and the ops that are views or decompositions. */
#include "source_internal.h"

#define ROW(name, text) \
    const CornuCRule *const cornu__##name##_c = &(const CornuCRule){ .formula = text };

ROW(negative, "-$a")
ROW(absolute, "$a > $0 ? $a : $0 - $a")
ROW(sign, "$a > $0 ? $1 : $a < $0 ? $0 - $1 : $a")
ROW(floor, "@floorf($a)")
ROW(exp, "@expf($a)")
ROW(log, "@logf($a)")
ROW(sqrt, "@sqrtf($a)")
ROW(rsqrt, "1.0f / @sqrtf($a)")
ROW(sin, "@sinf($a)")
ROW(cos, "@cosf($a)")
ROW(tanh, "@tanhf($a)")
ROW(sigmoid, "1.0f / (1.0f + @expf(-$a))")
ROW(erf, "@erff($a)")
ROW(softplus, "($a > 0.0f ? $a : 0.0f) + @log1pf(@expf($a > 0.0f ? -$a : $a))")
ROW(relu, "$a <= 0.0f ? 0.0f : $a")
ROW(elu, "$a > 0.0f ? $a : $n * @expm1f($a)")
ROW(step, "$a > 0.0f ? 1.0f : 0.0f")
ROW(bounded_relu, "$a <= 0.0f ? 0.0f : $a >= $n ? $n : $a")
ROW(bounded_step, "$a > 0.0f && $a < $n ? 1.0f : 0.0f")
ROW(add, "$a + $b")
ROW(subtract, "$a - $b")
ROW(multiply, "$a * $b")
ROW(divide, "$a / $b")
ROW(maximum, "$a != $a || $a > $b ? $a : $b")
ROW(minimum, "$a != $a || $a < $b ? $a : $b")
ROW(power, "@powf($a, $b)")
ROW(compare, "$a $? $b")
ROW(is_finite, "$a - $a == 0.0f")
ROW(select, "$a ? $b : $c")
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

/* Between shards: on one, simplify has left none. */
#define REFUSED(name) const CornuCRule *const cornu__##name##_c = CORNU_C_REFUSED;
REFUSED(all_reduce)
REFUSED(reduce_scatter)
REFUSED(all_gather)
REFUSED(shard_slice)
