/* Reverse-mode differentiation: walks the recorded ops backwards and calls the gradient rule of
 * each. Source: Griewank and Walther, "Evaluating Derivatives", chapter 3. */
#include <stdio.h>
#include <string.h>

#include "../graph_internal.h"
#include "remat_internal.h"

static CornuWeightedGradients weighted_gradients;

static bool needs_decomposition(CornuOpId id)
{
    return *cornu__gradient_rules[id] == CORNU_GRADIENT_OF_DECOMPOSITION;
}

/* The custom gradient of a value, or NULL. */
static const CornuCustomGradient *custom_of(const CornuGraph *graph, CornuValue value)
{
    for (int i = 0; i < graph->custom_count; i++)
        if (graph->customs[i].y->value == value) return &graph->customs[i];
    return NULL;
}

/* depends[v]: whether value v depends on one of x through float values, or a tensor whose gradient
 * it has does. */
static void mark_dependent(const CornuGraph *graph, CornuTensor *const *x, int count,
                           int op_count, bool *depends)
{
    const CornuProgram *program = graph->program;
    for (int i = 0; i < count; i++) depends[x[i]->value] = true;
    for (int i = 0; i < op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        const CornuValue     *in = cornu_program_operands(program, op);
        bool                  any = false;
        for (int k = 0; k < op->in_count; k++) any |= depends[in[k]];
        for (int k = 0; k < op->out_count; k++)
            if (cornu_dtype_is_float(cornu_program_type(program, op->out_first + k).dtype)) {
                const CornuCustomGradient *custom = custom_of(graph, op->out_first + k);
                depends[op->out_first + k] |= custom && custom->instead != custom->y
                                                  ? depends[custom->instead->value] : any;
            }
    }
}

/* The arrays that a rule reads and writes, which grow to the op with the most operands. */
typedef struct {
    CornuTensor **in, **d_x;
    bool         *wanted;
    int           space;
} Operands;

static CornuStatus operands_reserve(Operands *o, int count)
{
    if (count <= o->space) return CORNU_OK;
    int spaces[3] = { o->space, o->space, o->space };
    CORNU__TRY(cornu__reserve(&o->in, &spaces[0], 0, count, sizeof *o->in));
    CORNU__TRY(cornu__reserve(&o->d_x, &spaces[1], 0, count, sizeof *o->d_x));
    CORNU__TRY(cornu__reserve(&o->wanted, &spaces[2], 0, count, sizeof *o->wanted));
    o->space = spaces[0];
    return CORNU_OK;
}

/* Sets the scope of the ops recorded next: "dense/gradient". */
static CornuStatus enter_scope(CornuGraph *graph, const char *scope)
{
    char text[128];
    snprintf(text, sizeof text, "%s%sgradient", scope, *scope ? "/" : "");
    return cornu_graph_scope(graph, text);
}

/* Applies the step of a value with a gradient of its own, and moves the result to the tensor that
 * it is the gradient of. */
static CornuStatus redirect(CornuGraph *graph, CornuValue value, const char *scope,
                            CornuTensor **d)
{
    const CornuCustomGradient *found = graph->custom_count ? custom_of(graph, value) : NULL;
    if (!found || !d[value]) return CORNU_OK;
    const CornuCustomGradient custom = *found;
    CORNU__TRY(enter_scope(graph, scope));
    CornuTensor *d_y = custom.step ? custom.step(custom.context, d[value]) : d[value];
    d_y = cornu_op_convert(d_y, cornu__gradient_dtype(custom.instead));
    if (!d_y) return cornu_error_status();
    d[value] = NULL;
    CornuTensor **sum = &d[custom.instead->value];
    *sum = *sum ? cornu_op_add(*sum, d_y) : d_y;
    return *sum ? CORNU_OK : cornu_error_status();
}

/* Records the gradients with respect to the operands of op i and adds them to d[]. */
static CornuStatus differentiate(CornuRemat *remat, int i, const bool *depends, CornuTensor **d,
                                 Operands *o)
{
    CornuGraph    *graph = remat->graph;
    /* A copy: recording moves the program's arrays. */
    CornuProgramOp op = graph->program->ops[i];
    CornuTensor   *out[CORNU_MAX_OUTPUTS], *d_y[CORNU_MAX_OUTPUTS];
    bool           reached = false, any = false;
    for (int k = 0; k < op.out_count; k++)
        if (depends[op.out_first + k])
            CORNU__TRY(redirect(graph, op.out_first + k, op.scope, d));
    for (int k = 0; k < op.out_count; k++) {
        d_y[k] = d[op.out_first + k];
        reached |= d_y[k] != NULL;
    }
    CORNU__TRY(operands_reserve(o, op.in_count));
    for (int k = 0; k < op.in_count; k++) {
        CornuValue in = cornu_program_operands(graph->program, &op)[k];
        o->wanted[k] = depends[in];
        o->d_x[k] = NULL;
        any |= depends[in];
    }
    if (!reached || !any) return CORNU_OK;

    CORNU__TRY(cornu__remat_reach(remat, i));
    for (int k = 0; k < op.in_count; k++)
        o->in[k] = cornu__tensor(graph, cornu__remat_value(
            remat, cornu_program_operands(graph->program, &op)[k]));
    for (int k = 0; k < op.out_count; k++)
        out[k] = cornu__tensor(graph, cornu__remat_value(remat, op.out_first + k));
    if (cornu_error_pending()) return cornu_error_status();   /* no memory for a handle */
    CORNU__TRY(enter_scope(graph, op.scope));
    CornuRecorded recorded = { .graph = graph, .id = op.id, .attributes = &op.attributes,
                               .in = o->in, .out = out, .in_count = op.in_count,
                               .out_count = op.out_count, .wanted = o->wanted,
                               .gradients = weighted_gradients };
    (*cornu__gradient_rules[op.id])(&recorded, d_y, o->d_x);
    if (cornu_error_pending()) return cornu_error_status();

    for (int k = 0; k < op.in_count; k++) {
        if (!o->wanted[k] || !o->d_x[k]) continue;
        CornuTensor **sum = &d[cornu_program_operands(graph->program, &op)[k]];
        CornuTensor  *term = cornu_op_convert(o->d_x[k], cornu__gradient_dtype(o->in[k]));
        *sum = *sum ? cornu_op_add(*sum, term) : term;
        if (!*sum) return cornu_error_status();
    }
    return CORNU_OK;
}

static CornuStatus check_gradients(const CornuTensor *loss, CornuTensor *const *x, int count)
{
    if (!loss) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_gradients: the loss is NULL");
    if (count > 0 && !x) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_gradients: x is NULL");
    for (int i = 0; i < count; i++)
        if (!x[i] || x[i]->graph != loss->graph)
            return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_gradients: x[%d] is %s", i,
                               x[i] ? "a tensor of another graph" : "NULL");
    CornuText text;
    CornuType type = cornu_tensor_type(loss);
    if (type.shape.rank != 0 || !cornu_dtype_is_float(type.dtype))
        return cornu__fail(CORNU_ERR_SHAPE,
                           "cornu_gradients: the loss is %s, expected a float scalar",
                           cornu_type_print(&text, type));
    return cornu_error_pending() ? cornu_error_status() : CORNU_OK;
}

static CornuStatus weighted_gradients(CornuTensor *const *y, CornuTensor *const *d_y, int y_count,
                                      CornuTensor *const *x, int count, CornuTensor **d_x)
{
    CornuGraph *graph = y[0]->graph;
    CORNU__TRY(cornu__rewrite(graph, needs_decomposition));

    CornuProgram *program = graph->program;
    Operands      operands = { 0 };
    int           op_count = program->op_count;   /* the backward pass adds more */
    CornuTensor **d = cornu__allocate((size_t)program->value_count, sizeof(CornuTensor *));
    bool         *depends = cornu__allocate((size_t)program->value_count, sizeof *depends);
    const int     within = program->remat;   /* which gradients do not belong to */
    CornuRemat    remat;
    CornuStatus   status = cornu__remat_open(&remat, graph, d);
    if (!d || !depends) status = CORNU_ERR_MEMORY;
    program->remat = 0;
    if (status) goto done;

    mark_dependent(graph, x, count, op_count, depends);
    for (int k = 0; !status && k < y_count; k++) {
        CornuTensor **sum = &d[y[k]->value];
        *sum = *sum ? cornu_op_add(*sum, d_y[k]) : d_y[k];
        if (!*sum) status = cornu_error_status();
    }
    for (int i = op_count - 1; !status && i >= 0; i--)
        status = differentiate(&remat, i, depends, d, &operands);
    cornu_graph_scope(graph, NULL);
    for (int i = 0; !status && i < count; i++) {
        CornuTensor *of_x = d[x[i]->value];
        d_x[i] = of_x ? of_x : cornu_op_constant_like(x[i], 0.0);
        if (!d_x[i]) status = cornu_error_status();
    }
done:
    if (status) cornu_error_take();
    program->remat = within;
    cornu__remat_close(&remat);
    cornu__release(operands.in);
    cornu__release(operands.d_x);
    cornu__release(operands.wanted);
    cornu__release(depends);
    cornu__release(d);
    return status;
}

CornuStatus cornu_gradients(CornuTensor *loss, CornuTensor *const *x, int count,
                            CornuTensor **d_x)
{
    CORNU__TRY(check_gradients(loss, x, count));
    CornuTensor *one = cornu_op_constant_like(loss, 1.0);
    if (!one) {
        CornuStatus status = cornu_error_status();
        cornu_error_take();
        return status;
    }
    return weighted_gradients(&loss, &one, 1, x, count, d_x);
}
