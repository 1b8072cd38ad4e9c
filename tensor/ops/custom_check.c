/*
 * cornu_op_check: does a registered op compute the same everywhere, and is its gradient right?
 *
 * The graph of the op, of a loss and of its gradients is run in double by reference kernels, once
 * as it is, once with the op composed of others, and twice for each element of each operand, which
 * is moved a little up and down. Then the op alone runs on devices.
 */
#include <math.h>

#include "../../device/ops/body.h"
#include "../../device/ops/rewrite.h"
#include "../../device/random.h"
#include "../graph_internal.h"
#include "custom_internal.h"

enum { MOST = CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS };

typedef struct {
    const CornuOp      *op;
    const CornuOpCheck *check;
    CornuArray          in[CORNU_MAX_INPUTS];     /* of the operands' types */
    double             *element[MOST];            /* of the operands, then of the weights */
    int                 element_count;
    double             *expected[CORNU_MAX_OUTPUTS];
    CornuGraph         *graph;
    CornuTensor        *x[CORNU_MAX_INPUTS], *y[CORNU_MAX_OUTPUTS], *loss;
    CornuBodyMemory     memory;                   /* of the graph's program */
} Trial;

/* ---- Operands ---- */

/* In (-2, 2), 0 to 2, or 0 and 1; the same numbers each time. */
static double drawn(CornuDtype dtype, int operand, int64_t i)
{
    const uint32_t counter[4] = { (uint32_t)i, (uint32_t)operand, 0, 0 };
    uint32_t       words[4];
    cornu_philox(1, counter, words);
    if (dtype == CORNU_BOOL) return words[0] & 1;
    return cornu_dtype_is_float(dtype) ? 4.0 * cornu_uniform(words[0]) - 2.0 : (double)(i % 3);
}

static CornuStatus fill_operand(Trial *t, int i)
{
    const CornuType type = t->check->in[i];
    const int64_t   count = cornu_type_count(type);
    t->in[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type) + 1, 1), type);
    t->element[i] = cornu__allocate((size_t)count + 1, sizeof(double));
    t->element_count = i + 1;
    if (!t->in[i].data || !t->element[i]) return CORNU_ERR_MEMORY;
    for (int64_t k = 0; k < count; k++) {
        cornu_array_set(t->in[i], k, t->check->values ? t->check->values[i][k]
                                                      : drawn(type.dtype, i, k));
        t->element[i][k] = cornu_array_get(t->in[i], k);
    }
    return CORNU_OK;
}

/* ---- Recording, and running in double ---- */

static CornuGraph *record_trial(Trial *t, CornuDevice *device)
{
    const CornuOpCheck *check = t->check;
    CornuGraph         *graph = cornu_graph_create(device);
    for (int i = 0; i < check->in_count && graph; i++)
        t->x[i] = cornu_graph_input(graph, check->in[i]);
    if (graph && cornu_op_custom(t->op, t->x, check->in_count, check->numbers,
                                 check->number_count, t->y))
        return graph;
    cornu_graph_free(graph);
    return NULL;
}

/* The loss: the sum of all float results, each element times a weight of its own, so that one loss
 * tests all of every gradient. */
static CornuStatus add_loss(Trial *t)
{
    for (int i = 0; i < t->op->base.outputs; i++) {
        const CornuType type = cornu_tensor_type(t->y[i]);
        const int64_t   count = cornu_type_count(type);
        if (!cornu_dtype_is_float(type.dtype)) continue;
        double *weight = cornu__allocate((size_t)count + 1, sizeof *weight);
        if (!weight) return CORNU_ERR_MEMORY;
        t->element[t->element_count++] = weight;
        for (int64_t k = 0; k < count; k++) weight[k] = sin(1.0 + 3.7 * (double)k);
        CornuTensor *w = cornu_graph_input(t->graph, type);
        CornuTensor *term = cornu_op_convert(cornu_op_sum(cornu_op_multiply(t->y[i], w)),
                                             CORNU_F64);
        t->loss = t->loss ? cornu_op_add(t->loss, term) : term;
        if (!t->loss) return cornu_error_take();
    }
    return CORNU_OK;
}

static CornuStatus run_in_double(const Trial *t, const CornuProgram *program,
                                 const CornuBodyMemory *memory)
{
    for (int i = 0; i < program->input_count; i++) {
        const CornuValue value = program->inputs[i];
        for (int64_t k = 0; k < cornu__body_count(program, value); k++)
            memory->value[value][k] = t->element[i][k];
    }
    return cornu__reference_program(program, memory->value, memory->in, memory->in_type);
}

/* ---- Comparing ---- */

static double largest(const double *x, int64_t count)
{
    double most = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(x[i]) && fabs(x[i]) > most) most = fabs(x[i]);
    return most;
}

static bool is_near(double a, double b, double difference)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= difference;
}

static CornuStatus compare_results(const Trial *t, const char *what, int result, const double *got,
                                   double near)
{
    const int64_t count = cornu_type_count(cornu_tensor_type(t->y[result]));
    const double  scale = largest(t->expected[result], count);
    for (int64_t i = 0; i < count; i++)
        if (!is_near(got[i], t->expected[result][i], near * scale))
            return cornu__fail(CORNU_ERR_VALUE, "%s: %s: element %lld of result %d is %.9g, the "
                               "reference gives %.9g", t->op->name, what, (long long)i, result,
                               got[i], t->expected[result][i]);
    return CORNU_OK;
}

/* The tolerance of a device, relative to the largest element. */
static double nearness(const Trial *t, CornuDtype dtype)
{
    if (!cornu_dtype_is_float(dtype)) return 0.0;
    if (t->check->near > 0.0) return t->check->near;
    return dtype == CORNU_BF16 ? 1.0 / 64.0 : dtype == CORNU_F16 ? 1.0 / 512.0 : 1e-5;
}

/* ---- What is checked ---- */

static CornuStatus keep_expected(Trial *t)
{
    for (int i = 0; i < t->op->base.outputs; i++) {
        const int64_t count = cornu_type_count(cornu_tensor_type(t->y[i]));
        t->expected[i] = cornu__allocate((size_t)count + 1, sizeof(double));
        if (!t->expected[i]) return CORNU_ERR_MEMORY;
        for (int64_t k = 0; k < count; k++)
            t->expected[i][k] = t->memory.value[t->y[i]->value][k];
    }
    return CORNU_OK;
}

/* The results of a program of the op alone, composed of others. */
static CornuStatus check_composition(Trial *t)
{
    CornuProgram   *whole = cornu_program_copy(t->graph->program);
    CornuBodyMemory memory = { 0 };
    CornuStatus     status = whole ? CORNU_OK : cornu_error_take();
    for (int i = 0; !status && i < t->op->base.outputs; i++)
        status = cornu_program_output(whole, t->y[i]->value, -1);
    CornuProgram *composed = status ? NULL : cornu__rewrite_bodies(whole);
    if (!status && !composed) status = CORNU_ERR_MEMORY;
    if (!status) status = cornu__body_take(&memory, composed);
    if (!status) status = run_in_double(t, composed, &memory);
    for (int i = 0; !status && i < t->op->base.outputs; i++)
        status = compare_results(t, "composition", i, memory.value[composed->outputs[i].value],
                                 1e-9);
    cornu__body_release(&memory);
    cornu_program_free(composed);
    cornu_program_free(whole);
    return status;
}

/* (loss(x + h) - loss(x - h)) / 2h has an error of h^2 from the third derivative and 1e-16 / h from
 * rounding. */
static CornuStatus check_element(Trial *t, int operand, int64_t i, double gradient, double scale)
{
    const double  h = 1e-5;
    const double *loss = t->memory.value[t->loss->value];
    double       *x = &t->element[operand][i], kept = *x, at[2];
    CornuStatus   status = CORNU_OK;
    for (int k = 0; k < 2 && !status; k++) {
        *x = k ? kept - h : kept + h;
        status = run_in_double(t, t->graph->program, &t->memory);
        at[k] = loss[0];
    }
    *x = kept;
    if (status || is_near(gradient, (at[0] - at[1]) / (2.0 * h), 1e-6 * scale)) return status;
    return cornu__fail(CORNU_ERR_VALUE, "%s: gradient: with respect to element %lld of operand %d "
                       "it is %.9g, differences give %.9g", t->op->name, (long long)i, operand,
                       gradient, (at[0] - at[1]) / (2.0 * h));
}

static CornuStatus check_gradient(Trial *t, int operand, const CornuTensor *d_x)
{
    const int64_t count = cornu_type_count(t->check->in[operand]);
    double       *gradient = cornu__allocate((size_t)count + 1, sizeof *gradient);
    CornuStatus   status = CORNU_ERR_MEMORY;
    if (gradient) status = run_in_double(t, t->graph->program, &t->memory);
    for (int64_t i = 0; !status && i < count; i++) gradient[i] = t->memory.value[d_x->value][i];
    const double scale = status ? 0.0 : largest(gradient, count) + 0.1;
    for (int64_t i = 0; !status && i < count; i++)
        status = check_element(t, operand, i, gradient[i], scale);
    cornu__release(gradient);
    return status;
}

static CornuStatus check_on(Trial *t, CornuDevice *device)
{
    CornuArray  out[CORNU_MAX_OUTPUTS] = { { .data = NULL } };
    CornuGraph *graph = record_trial(t, device);
    CornuStatus status = graph ? CORNU_OK : cornu_error_take();
    for (int i = 0; !status && i < t->check->in_count; i++)
        status = cornu_graph_feed(t->x[i], t->in[i]);
    for (int i = 0; !status && i < t->op->base.outputs; i++) {
        const CornuType type = cornu_tensor_type(t->y[i]);
        out[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type) + 1, 1), type);
        if (!out[i].data) status = CORNU_ERR_MEMORY;
    }
    if (!status) status = cornu_run(graph, t->y, t->op->base.outputs, out);
    for (int i = 0; !status && i < t->op->base.outputs; i++) {
        const int64_t count = cornu_type_count(out[i].type);
        double       *got = cornu__allocate((size_t)count + 1, sizeof *got);
        if (got) cornu__widen(out[i], got);
        status = got ? compare_results(t, cornu_device_name(device), i, got,
                                       nearness(t, out[i].type.dtype)) : CORNU_ERR_MEMORY;
        cornu__release(got);
    }
    for (int i = 0; i < t->op->base.outputs; i++) cornu__release(out[i].data);
    cornu_graph_free(graph);
    return status;
}

static CornuStatus check_devices(Trial *t)
{
    static const char *const usual[] = { "cpu", "tpu", NULL };
    const char *const       *names = t->check->devices ? t->check->devices : usual;
    CornuStatus              status = CORNU_OK;
    for (int i = 0; !status && names[i]; i++) {
        CornuDevice *device = cornu_device_open(names[i], .shards = 1);
        status = device ? check_on(t, device) : cornu_error_take();
        cornu_device_close(device);
    }
    return status;
}

static CornuStatus check_in_double(Trial *t, CornuDevice *device)
{
    CornuTensor *x[CORNU_MAX_INPUTS], *d_x[CORNU_MAX_INPUTS];
    int          operand[CORNU_MAX_INPUTS], count = 0;
    for (int i = 0; i < t->check->in_count; i++) CORNU__TRY(fill_operand(t, i));
    if (!(t->graph = record_trial(t, device))) return cornu_error_take();
    CORNU__TRY(add_loss(t));
    for (int i = 0; i < t->check->in_count; i++)
        if (cornu_dtype_is_float(t->check->in[i].dtype)) operand[count] = i, x[count++] = t->x[i];
    const bool differentiates = t->loss && count && (t->op->gradient || t->op->composition);
    if (differentiates) {
        CornuTensor *loss = cornu_op_convert(t->loss, CORNU_F64);
        CORNU__TRY(loss ? cornu_gradients(loss, x, count, d_x) : cornu_error_take());
    }
    CORNU__TRY(cornu__body_take(&t->memory, t->graph->program));
    CORNU__TRY(run_in_double(t, t->graph->program, &t->memory));
    CORNU__TRY(keep_expected(t));
    if (t->op->composition) CORNU__TRY(check_composition(t));
    for (int i = 0; differentiates && i < count; i++)
        CORNU__TRY(check_gradient(t, operand[i], d_x[i]));
    return CORNU_OK;
}

CornuStatus cornu_op_check_from(const CornuOp *op, const CornuOpCheck *check)
{
    CORNU__NEED(op);
    CORNU__NEED(check);
    CORNU__NEED(check->in);
    if (check->in_count < 1 || check->in_count > CORNU_MAX_INPUTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_op_check: %s: .in_count is %d, expected 1 to "
                           "%d", op->name, check->in_count, CORNU_MAX_INPUTS);
    Trial        t = { .op = op, .check = check };
    CornuDevice *device = cornu_device_open("reference");
    CornuStatus  status = device ? check_in_double(&t, device) : cornu_error_take();
    cornu_graph_free(t.graph);
    cornu_device_close(device);
    if (!status) status = check_devices(&t);
    cornu__body_release(&t.memory);
    for (int i = 0; i < check->in_count; i++) cornu__release(t.in[i].data);
    for (int i = 0; i < t.element_count; i++) cornu__release(t.element[i]);
    for (int i = 0; i < op->base.outputs; i++) cornu__release(t.expected[i]);
    return status;
}
