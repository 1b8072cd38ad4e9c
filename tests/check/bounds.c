#include "bounds_internal.h"

#include <stdlib.h>
#include <string.h>

bool bounds_any_maximum, bounds_roots_of_squares;

double unit_roundoff(CornuDtype dtype)
{
    switch (dtype) {
    case CORNU_F64:  return 0x1p-53;
    case CORNU_F32:  return 0x1p-24;
    case CORNU_F16:  return 0x1p-11;
    case CORNU_BF16: return 0x1p-8;
    default:         return 0.0;
    }
}

double rounded(double x, CornuDtype dtype)
{
    int64_t    memory;
    CornuArray held = { cornu_scalar(dtype), &memory };
    cornu_array_set(held, 0, x);
    return cornu_array_get(held, 0);
}

/* ---- Collectives: all shards at once ---- */

/* Value and bound of x on each shard, and likewise of the result. */
static void exchange(const CornuOpCall *call, int shards, const double *x, const double *e,
                     bool x_varies, int64_t count, double *y, double *bound, int64_t y_count)
{
    const double u = sum_roundoff(call->in[0].dtype);
    for (int shard = 0; shard < shards; shard++) {
        CornuMembers m = cornu__members(call->attributes, shards, shard);
        for (int64_t i = 0; i < y_count; i++) {
            double *to = &y[shard * y_count + i], *to_bound = &bound[shard * y_count + i];
            *to = *to_bound = 0.0;
            const int64_t first = call->id == CORNU_OP_REDUCE_SCATTER ? m.rank * y_count + i : i;
            if (call->id == CORNU_OP_SHARD_SLICE || call->id == CORNU_OP_ALL_GATHER) {
                const bool    gather = call->id == CORNU_OP_ALL_GATHER;
                const int     from = gather ? cornu__member(&m, (int)(i / count)) : shard;
                const int64_t at = gather ? i % count : m.rank * y_count + i;
                *to = x[(x_varies ? from * count : 0) + at];
                *to_bound = e[(x_varies ? from * count : 0) + at];
                continue;
            }
            double size = 0.0;
            for (int k = 0; k < m.size; k++) {
                const int64_t at = (x_varies ? cornu__member(&m, k) * count : 0) + first;
                *to += x[at];
                *to_bound += e[at];
                size += magnitude(x[at], e[at]);
            }
            *to_bound = at_least(*to_bound + m.size * u * size);
        }
    }
}

/* ---- Programs ---- */

int64_t bounds_count(const Bounds *b, const CornuProgram *program, CornuValue v)
{
    return cornu_type_count(cornu_program_type(program, v)) * (b->varies[v] ? b->shards : 1);
}

static CornuStatus run_op(Bounds *b, const CornuProgram *program, const CornuProgramOp *op)
{
    const CornuValue *operands = cornu_program_operands(program, op);
    const double     *in[MOST_OPERANDS], *in_bound[MOST_OPERANDS];
    CornuType         in_type[MOST_OPERANDS], out_type[CORNU_MAX_OUTPUTS];
    double           *out[CORNU_MAX_OUTPUTS], *bound[CORNU_MAX_OUTPUTS];
    const bool        varies = b->varies[op->out_first];
    for (int k = 0; k < op->out_count; k++)
        out_type[k] = cornu_program_type(program, op->out_first + k);
    BoundsStep step = { cornu_program_call(program, op, in_type), in, in_bound, out_type, out,
                        bound, 0.0, 0.0 };
    for (int i = 0; i < op->in_count; i++) step.pending += b->terms[operands[i]];
    if (cornu__is_collective(op->id) && b->shards > 1) {
        const int64_t y_count = cornu_type_count(out_type[0]);
        const size_t  all = (size_t)(y_count * b->shards) + 1;
        double       *y = calloc(all, sizeof *y), *e = calloc(all, sizeof *e);
        exchange(&step.call, b->shards, b->value[operands[0]], b->bound[operands[0]],
                 b->varies[operands[0]], cornu_type_count(in_type[0]), y, e, y_count);
        const size_t bytes = (size_t)bounds_count(b, program, op->out_first) * sizeof *y;
        memcpy(b->value[op->out_first], y, bytes);
        memcpy(b->bound[op->out_first], e, bytes);
        free(y);
        free(e);
        return CORNU_OK;
    }
    for (int shard = 0; shard < (varies ? b->shards : 1); shard++) {
        for (int i = 0; i < op->in_count; i++) {
            const int64_t first = b->varies[operands[i]] ? shard * cornu_type_count(in_type[i]) : 0;
            in[i] = b->value[operands[i]] + first;
            in_bound[i] = b->bound[operands[i]] + first;
        }
        for (int k = 0; k < op->out_count; k++) {
            const int64_t first = shard * cornu_type_count(out_type[k]);
            out[k] = b->value[op->out_first + k] + first;
            bound[k] = b->bound[op->out_first + k] + first;
        }
        CORNU__TRY(bounds_of_op(&step, shard));
    }
    for (int k = 0; k < op->out_count; k++) b->terms[op->out_first + k] = step.terms;
    return CORNU_OK;
}

CornuStatus bounds_extend(Bounds *b, const CornuProgram *program, double *const *input,
                          double *const *input_bound)
{
    const size_t count = (size_t)program->value_count + 1;
    const int    old = b->count;
    b->value = realloc(b->value, count * sizeof *b->value);
    b->bound = realloc(b->bound, count * sizeof *b->bound);
    b->varies = realloc(b->varies, count * sizeof *b->varies);
    b->terms = realloc(b->terms, count * sizeof *b->terms);
    for (int v = old; v < program->value_count; v++) {
        const CornuProgramValue *at = &program->values[v];
        b->varies[v] = at->varies && b->shards > 1;
        b->terms[v] = 0.0;
        const int64_t n = bounds_count(b, program, v);
        b->value[v] = calloc((size_t)n + 1, sizeof *b->value[v]);
        b->bound[v] = calloc((size_t)n + 1, sizeof *b->bound[v]);
        if (at->op >= 0) continue;
        memcpy(b->value[v], input[at->index], (size_t)n * sizeof(double));
        if (input_bound && input_bound[at->index])
            memcpy(b->bound[v], input_bound[at->index], (size_t)n * sizeof(double));
    }
    b->count = program->value_count;
    for (int v = old; v < program->value_count; v++) {
        const int op = program->values[v].op;
        if (op < 0 || program->ops[op].out_first != v) continue;
        CornuStatus status = run_op(b, program, &program->ops[op]);
        if (status) return cornu__fail_prefix(status, cornu_op_name(program->ops[op].id));
    }
    return CORNU_OK;
}

CornuStatus bounds_of(Bounds *b, const CornuProgram *program, int shards, double *const *input,
                      double *const *input_bound)
{
    *b = (Bounds){ .shards = shards };
    return bounds_extend(b, program, input, input_bound);
}

void bounds_cut(Bounds *b, int count)
{
    while (b->count > count) {
        free(b->value[--b->count]);
        free(b->bound[b->count]);
    }
}

void bounds_free(Bounds *b)
{
    bounds_cut(b, 0);
    free(b->value);
    free(b->bound);
    free(b->varies);
    free(b->terms);
    *b = (Bounds){ .shards = b->shards };
}
