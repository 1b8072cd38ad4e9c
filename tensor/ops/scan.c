/* scan: recording the step in a template graph, and the gradient, a scan in reverse. */
#include "../graph_internal.h"

/* The type of one slice of an operand. */
static CornuType slice_type(CornuType type, int axis)
{
    for (int i = axis; i + 1 < type.shape.rank; i++)
        type.shape.extent[i] = type.shape.extent[i + 1];
    type.shape.extent[--type.shape.rank] = 0;
    return type;
}

typedef struct {
    const CornuScan *scan;
    bool             keeps_carries;   /* those before each step, stacked after the other results */
    CornuTensor     *in[CORNU_MAX_INPUTS];
    int              in_count;
    int64_t          steps;
} Recording;

static int result_count(const Recording *r)
{
    return r->scan->carry_count * (r->keeps_carries ? 2 : 1) + r->scan->stacked_count;
}

/* Gathers the operands; false with a pending error. */
static bool take_operands(Recording *r)
{
    const CornuScan *scan = r->scan;
    r->steps = scan->steps;
    r->in_count = scan->carry_count + scan->slice_count + scan->constant_count;
    if (r->in_count < 1 || r->in_count > CORNU_MAX_INPUTS || result_count(r) < 1 ||
        result_count(r) > CORNU_MAX_OUTPUTS) {
        cornu__fail_null(CORNU_ERR_UNSUPPORTED, "scan: %d operands and %d results, including kept "
                         "carries; expected 1 to %d and 1 to %d", r->in_count, result_count(r),
                         CORNU_MAX_INPUTS, CORNU_MAX_OUTPUTS);
        return false;
    }
    for (int i = 0; i < r->in_count; i++) {
        const int of_slices = i - scan->carry_count, of_constants = of_slices - scan->slice_count;
        r->in[i] = of_slices < 0      ? scan->carries[i]
                   : of_constants < 0 ? scan->slices[of_slices] : scan->constants[of_constants];
        if (!r->in[i]) {
            cornu__fail_null(CORNU_ERR_ARGUMENT, "scan: operand %d is NULL", i);
            return false;
        }
        if (of_slices < 0 || of_constants >= 0) continue;
        const CornuShape shape = cornu_tensor_shape(r->in[i]);
        if (scan->axis < 0 || scan->axis >= shape.rank) {
            CornuText text;
            cornu__fail_null(CORNU_ERR_SHAPE, "scan: operand %d is %s, which has no axis %d to cut",
                             i, cornu_shape_print(&text, shape), scan->axis);
            return false;
        }
        if (of_slices == 0) r->steps = shape.extent[scan->axis];
    }
    return true;
}

/* What the step takes; false with a pending error. */
static bool add_parameters(const Recording *r, CornuGraph *template, CornuTensor **in)
{
    const CornuScan *scan = r->scan;
    for (int i = 0; i < r->in_count; i++) {
        CornuType  type = cornu_tensor_type(r->in[i]);
        const bool sliced = i >= scan->carry_count && i < scan->carry_count + scan->slice_count;
        in[i] = cornu__graph_parameter(template, sliced ? slice_type(type, scan->axis) : type);
        if (!in[i]) return false;
    }
    return true;
}

/* Records the step in the template; false with a pending error. */
static bool record_step(const Recording *r, CornuGraph *template, CornuScanStep *step,
                        void *context)
{
    const CornuScan *scan = r->scan;
    const int        made = scan->carry_count + scan->stacked_count;
    CornuTensor     *in[CORNU_MAX_INPUTS], *out[CORNU_MAX_OUTPUTS] = { NULL };
    if (!add_parameters(r, template, in)) return false;
    step(context, in, out);
    for (int i = 0; r->keeps_carries && i < scan->carry_count; i++) out[made + i] = in[i];
    if (cornu_error_pending()) return false;
    for (int i = 0; i < result_count(r); i++) {
        if (!out[i] || out[i]->graph != template) {
            cornu__fail_null(CORNU_ERR_ARGUMENT, "scan: result %d of the step is %s", i,
                             out[i] ? "a tensor of another graph" : "NULL");
            return false;
        }
    }
    if (!cornu__graph_close(template, r->in_count, out, result_count(r), "scan: a step",
                            "constants or carries"))
        return true;
    cornu__null();
    return false;
}

static bool record_body(Recording *r, CornuScanStep *step, void *context, CornuTensor **out)
{
    if (!take_operands(r)) return false;
    CornuGraph *graph = r->in[0]->graph;
    CornuGraph *template = cornu_graph_create(graph->device);
    CornuTensor *made[CORNU_MAX_OUTPUTS] = { NULL };
    bool         done = false;
    if (template) template->keeps_functions = graph->keeps_functions;
    if (template && record_step(r, template, step, context)) {
        CornuAttributes attributes = {
            .scan = { .body = template->program, .carries = r->scan->carry_count,
                      .slices = r->scan->slice_count, .axis = r->scan->axis, .steps = r->steps,
                      .reverse = r->scan->reverse },
        };
        done = cornu__record(CORNU_OP_SCAN, &attributes, r->in, r->in_count, made) != NULL;
    }
    for (int i = 0; i < r->scan->carry_count + r->scan->stacked_count; i++) out[i] = made[i];
    cornu_graph_free(template);
    return done;
}

bool cornu_op_scan(const CornuScan *scan, CornuScanStep *step, void *context, CornuTensor **out)
{
    Recording r = { .scan = scan, .keeps_carries = true };
    return record_body(&r, step, context, out);
}

/* ---- Gradient ---- */

/* What a product over all steps multiplies: a slice that the gradient's scan is given, or a result
 * that it stacks; the other is -1. */
typedef struct { int slice, stacked; } Factor;

/*
 * Step t of the gradient recomputes step t of the scan from the kept carries and differentiates
 * it. With d_x for the gradient with respect to x, its operands and results are:
 *     carries    d_carry of each float carry; the sum of d_constant so far, of each float constant
 *     slices     the kept carries, the scan's slices, d_result of each stacked float result
 *     constants  the scan's
 *     stacked    d_slice of each float slice; factors of d_constant
 *
 * Where d_constant is a product a' b over the rows of a and b, as that of a cell's kernel is, the
 * sum over the steps is one product, over the rows of all steps: a and b are stacked, unless they
 * are slices or results anyway, and multiplied once, after the loop.
 */
typedef struct {
    const CornuRecorded        *op;
    const CornuAttributes_SCAN *scan;
    CornuTensor *const         *d_y;
    int carries[CORNU_MAX_INPUTS], carry_count;         /* operands that are float carries    */
    int constants[CORNU_MAX_INPUTS], constant_count;    /* float constants that are wanted    */
    int slices[CORNU_MAX_INPUTS], slice_count;          /* float slices that are wanted       */
    int stacked[CORNU_MAX_OUTPUTS], stacked_count;      /* results the loss depends on        */
    int kept[CORNU_MAX_INPUTS];                         /* which result keeps a carry         */
    bool   finds_products;                              /* a first recording of the step does */
    bool   products[CORNU_MAX_INPUTS];                  /* d_constant that are               */
    Factor factors[CORNU_MAX_INPUTS][2];
    int    made_count;                                  /* results that are stacked           */
} Gradient;

static bool is_float(const CornuTensor *x)
{
    return cornu_dtype_is_float(cornu_tensor_type(x).dtype);
}

/* Sums over the steps are in f32 at least. */
static CornuDtype sums_of(CornuDtype dtype) { return dtype == CORNU_F64 ? dtype : CORNU_F32; }

/* Constants whose gradients are summed step by step. */
static int sum_count(const Gradient *g)
{
    int count = g->constant_count;
    for (int i = 0; i < g->constant_count; i++) count -= g->products[i];
    return count;
}

/* What the gradient's scan is given slices of. */
static int given_count(const Gradient *g)
{
    return (int)(g->scan->carries + g->scan->slices) + g->stacked_count;
}

/* The result that stacks the carry before each step; -1 if there is none. */
static int keeper(const CornuAttributes_SCAN *scan, int carry)
{
    for (int i = (int)scan->carries; i < scan->body->output_count; i++)
        if (scan->body->outputs[i].value == scan->body->inputs[carry]) return i;
    return -1;
}

/* Classifies operands and results; false with a pending error. */
static bool sort(Gradient *g)
{
    const int carries = (int)g->scan->carries, slices = (int)g->scan->slices;
    for (int i = 0; i < carries; i++) {
        g->kept[i] = keeper(g->scan, i);
        if (g->kept[i] < 0) {
            cornu__fail_null(CORNU_ERR_UNSUPPORTED, "scan: has no gradient, since carry %d is not "
                             "kept", i);
            return false;
        }
    }
    for (int i = 0; i < g->op->in_count; i++) {
        if (!is_float(g->op->in[i])) continue;
        if (i < carries) g->carries[g->carry_count++] = i;
        else if (!g->op->wanted[i]) continue;
        else if (i < carries + slices) g->slices[g->slice_count++] = i;
        else g->constants[g->constant_count++] = i;
    }
    for (int i = carries; i < g->op->out_count; i++)
        if (g->d_y[i]) g->stacked[g->stacked_count++] = i;
    return true;
}

/* Fills in a and b; false if x is not such a product, or slices of them cannot be stacked. */
static bool is_product(const Gradient *g, CornuTensor *x, CornuTensor *factors[2])
{
    const CornuProgram   *program = x->graph->program;
    const int             made_by = program->values[x->value].op;
    const CornuProgramOp *op = &program->ops[made_by < 0 ? 0 : made_by];
    if (made_by < 0 || op->id != CORNU_OP_MATMUL || !op->attributes.matmul.transpose_a ||
        op->attributes.matmul.transpose_b || g->scan->axis > 1)
        return false;
    for (int i = 0; i < 2; i++) {
        factors[i] = cornu__tensor(x->graph, cornu_program_operands(program, op)[i]);
        if (!factors[i] || cornu_tensor_shape(factors[i]).rank != 2) return false;
    }
    return true;
}

/* Of x among the slices, or the results `made`, to which it is added if it is neither. */
static Factor factor_of(const Gradient *g, CornuTensor *x, CornuTensor *const *slices,
                        CornuTensor **made, int *count)
{
    for (int i = 0; i < given_count(g); i++)
        if (slices[i] == x) return (Factor){ i, -1 };
    for (int i = 0; i < *count; i++)
        if (made[i] == x) return (Factor){ -1, i };
    made[*count] = x;
    return (Factor){ -1, (*count)++ };
}

/* Adds the factors of products to the results that are stacked, which are d_slice by now. Products
 * are found where their factors are not too many results. */
static void stack_factors(Gradient *g, CornuTensor *const *d_constants, CornuTensor *const *slices,
                          CornuTensor **made)
{
    const int most = CORNU_MAX_OUTPUTS - g->carry_count - sum_count(g);
    for (int i = 0; i < g->constant_count; i++) {
        CornuTensor *factors[2];
        if (!is_product(g, d_constants[i], factors)) continue;
        if (g->finds_products) g->products[i] = g->made_count + 2 <= most;
        for (int k = 0; k < 2 && g->products[i]; k++)
            g->factors[i][k] = factor_of(g, factors[k], slices, made, &g->made_count);
    }
}

static void gradient_step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    Gradient *g = context;
    const int carries = (int)g->scan->carries, slices = (int)g->scan->slices;
    CornuTensor *const *sums = in + g->carry_count, *const *before = sums + sum_count(g);
    CornuTensor *const *d_stacked = before + carries + slices;
    CornuTensor *const *constants = d_stacked + g->stacked_count;
    CornuTensor *x[CORNU_MAX_INPUTS], *y[CORNU_MAX_OUTPUTS], *d_x[CORNU_MAX_INPUTS];
    CornuTensor *reached[CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS];
    CornuTensor *d_y[CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS], *wanted[CORNU_MAX_INPUTS];
    CornuTensor *made[CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS];
    int          count = 0, wanted_count = 0;
    for (int i = 0; i < g->op->in_count; i++)
        x[i] = i < carries + slices ? before[i] : constants[i - carries - slices];
    if (!cornu__record_body(in[0]->graph, g->scan->body, x, y)) return;
    for (int i = 0; i < g->carry_count; i++, count++) {
        reached[count] = y[g->carries[i]];
        d_y[count] = in[i];
    }
    for (int i = 0; i < g->stacked_count; i++, count++) {
        reached[count] = y[g->stacked[i]];
        d_y[count] = d_stacked[i];
    }
    for (int i = 0; i < g->carry_count; i++) wanted[wanted_count++] = x[g->carries[i]];
    for (int i = 0; i < g->constant_count; i++) wanted[wanted_count++] = x[g->constants[i]];
    for (int i = 0; i < g->slice_count; i++) wanted[wanted_count++] = x[g->slices[i]];
    if (g->op->gradients(reached, d_y, count, wanted, wanted_count, d_x)) {
        cornu__null();
        return;
    }
    CornuTensor *const *d_constants = d_x + g->carry_count;
    for (g->made_count = 0; g->made_count < g->slice_count; g->made_count++)
        made[g->made_count] = d_constants[g->constant_count + g->made_count];
    stack_factors(g, d_constants, before, made);
    if (g->finds_products) return;
    for (int i = 0; i < g->carry_count; i++) *out++ = d_x[i];
    for (int i = 0; i < g->constant_count; i++) {
        if (g->products[i]) continue;
        const CornuDtype dtype = cornu_tensor_type(*sums).dtype;
        *out++ = cornu_op_add(*sums++, cornu_op_convert(d_constants[i], dtype));
    }
    for (int i = 0; i < g->made_count; i++) *out++ = made[i];
}

/* The operands of the scan that computes the gradient, from the last step to the first. */
typedef struct {
    CornuTensor *carries[2 * CORNU_MAX_INPUTS], *slices[2 * CORNU_MAX_INPUTS];
} Operands;

static CornuScan scan_of(const Gradient *g, Operands *operands)
{
    const CornuRecorded *op = g->op;
    const int            plain = (int)(g->scan->carries + g->scan->slices);
    int                  carries = 0, slices = 0;
    for (int i = 0; i < g->carry_count; i++) {
        CornuTensor *d_last = g->d_y[g->carries[i]];
        operands->carries[carries++] =
            d_last ? d_last : cornu_op_constant_like(op->in[g->carries[i]], 0.0);
    }
    for (int i = 0; i < g->constant_count; i++) {
        CornuType type = cornu_tensor_type(op->in[g->constants[i]]);
        type.dtype = sums_of(type.dtype);
        if (!g->products[i])
            operands->carries[carries++] = cornu_op_constant(op->graph, type, 0.0);
    }
    for (int i = 0; i < g->scan->carries; i++) operands->slices[slices++] = op->out[g->kept[i]];
    for (int i = 0; i < g->scan->slices; i++)
        operands->slices[slices++] = op->in[g->scan->carries + i];
    for (int i = 0; i < g->stacked_count; i++)
        operands->slices[slices++] = g->d_y[g->stacked[i]];
    return (CornuScan){
        .carries = operands->carries, .carry_count = carries,
        .slices = operands->slices, .slice_count = slices,
        .constants = op->in + plain, .constant_count = op->in_count - plain,
        .axis = (int)g->scan->axis, .stacked_count = g->made_count,
        .steps = g->scan->steps, .reverse = !g->scan->reverse,
    };
}

/* Records the step in a graph that is not kept; false with a pending error. */
static bool find_products(Gradient *g)
{
    Operands        operands;
    const CornuScan scan = scan_of(g, &operands);
    Recording       r = { .scan = &scan };
    CornuTensor    *in[CORNU_MAX_INPUTS];
    if (!take_operands(&r)) return false;
    CornuGraph *template = cornu_graph_create(g->op->graph->device);
    g->finds_products = true;
    if (template && add_parameters(&r, template, in)) gradient_step(g, in, NULL);
    g->finds_products = false;
    cornu_graph_free(template);
    return !cornu_error_pending();
}

static CornuTensor *product_of(const Gradient *g, int constant, CornuTensor *const *slices,
                               CornuTensor *const *made)
{
    const CornuType type = cornu_tensor_type(g->op->in[g->constants[constant]]);
    CornuTensor    *factors[2];
    for (int k = 0; k < 2; k++) {
        const Factor f = g->factors[constant][k];
        factors[k] = f.slice >= 0 ? slices[f.slice] : made[f.stacked];
    }
    return cornu__product_over_rows(factors[0], factors[1], sums_of(type.dtype));
}

static void scan_gradient(const CornuRecorded *op, CornuTensor *const *d_y, CornuTensor **d_x)
{
    Gradient     g = { .op = op, .scan = &op->attributes->scan, .d_y = d_y };
    Operands     operands;
    CornuTensor *out[3 * CORNU_MAX_INPUTS], *const *next = out;
    if (!sort(&g)) return;
    g.made_count = g.slice_count;
    if (g.constant_count > 0 && !find_products(&g)) return;
    const CornuScan scan = scan_of(&g, &operands);
    Recording       r = { .scan = &scan };
    if (!record_body(&r, gradient_step, &g, out)) return;
    for (int i = 0; i < g.carry_count; i++) d_x[g.carries[i]] = *next++;
    for (int i = 0; i < g.constant_count; i++)
        if (!g.products[i]) d_x[g.constants[i]] = *next++;
    for (int i = 0; i < g.slice_count; i++) d_x[g.slices[i]] = next[i];
    for (int i = 0; i < g.constant_count; i++)
        if (g.products[i]) d_x[g.constants[i]] = product_of(&g, i, operands.slices, next);
}
CornuGradient *const cornu__scan_gradient = scan_gradient;
