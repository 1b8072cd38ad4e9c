/*
 * Every row of op_cases/, checked in every possible way: wrong operands are refused, hand-checked
 * numbers come out, the decomposition agrees with the reference kernel, every device agrees with
 * the reference, and gradients agree with finite differences in double.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../skip.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/device_internal.h"
#include "../../../tensor/graph_internal.h"
#include "../../evaluate.h"
#include "../../op_cases.h"
#include "../pjrt/opened.h"

/* A row that fails is named and counted; the others still run. */
static int failures;

/* The row that `narrow_row` was made from. */
static OpCase        narrow_row;
static const OpCase *wide_row;

CORNU__PRINTF(2, 3)
static void fault(const OpCase *row, const char *format, ...)
{
    char    text[1024], attributes[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    cornu__attributes_print(row->id, &row->attributes, attributes, sizeof attributes);
    int         number;
    const char *family = op_case_place(row == &narrow_row ? wide_row : row, &number);
    print_error("%s, row %d%s, %s(%s): %s\n", family, number,
                row == &narrow_row ? " in bf16" : "", cornu__called(row->id, &row->attributes),
                attributes, text);
    failures++;
}

typedef void Check(const OpCase *row);

static void for_each_row(Check *check)
{
    failures = 0;
    for (int i = 0; op_case(i); i++) check(op_case(i));
    assert_int_equal(failures, 0);
}

/* ---- The row as a program, its operands as doubles ---- */

typedef struct {
    CornuProgram *program;
    int           in_count, out_count;
    double       *operand[CORNU_MAX_INPUTS];
    CornuValue    in[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS];
    CornuStatus   recorded;
} Row;

/* Operands become inputs; the outputs are not yet declared as the program's. */
static Row row_open(const OpCase *row)
{
    Row r = { .program = cornu_program_create(), .in_count = op_case_in_count(row),
              .out_count = cornu__result_count(row->id, &row->attributes) };
    assert_non_null(r.program);
    for (int i = 0; i < r.in_count; i++) {
        assert_int_equal(cornu_program_input(r.program, row->in[i], &r.in[i]), CORNU_OK);
        r.operand[i] = calloc((size_t)cornu_type_count(row->in[i]) + 1, sizeof(double));
        op_case_fill(row, i, r.operand[i]);
        for (int64_t k = 0; k < cornu_type_count(row->in[i]) && row->in[i].dtype == CORNU_BF16; k++)
            r.operand[i][k] = (double)cornu_bf16_to_float(
                cornu_bf16_from_float((float)r.operand[i][k]));
    }
    return r;
}

static void row_record(Row *r, const OpCase *row)
{
    r->recorded = cornu_program_record(r->program, row->id, &row->attributes, r->in, r->in_count,
                                       r->out);
    if (r->recorded != row->refused)
        fault(row, "recording gave %s, expected %s: %s", cornu_status_name(r->recorded),
              cornu_status_name(row->refused), cornu_error_message());
}

static void row_close(Row *r)
{
    for (int i = 0; i < r->in_count; i++) free(r->operand[i]);
    cornu_program_free(r->program);
}

static Evaluation row_evaluate(const Row *r)
{
    return evaluate(r->program, (const double *const *)r->operand);
}

static double largest(const double *x, int64_t count)
{
    double most = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(x[i]) && fabs(x[i]) > most) most = fabs(x[i]);
    return most;
}

/* Compares one output; false names the first element that differs. */
static bool agree(const OpCase *row, const char *what, int output, const double *got,
                  const double *expected, int64_t count, double near)
{
    double scale = largest(expected, count);
    for (int64_t i = 0; i < count; i++)
        if (!is_near(got[i], expected[i], near, scale)) {
            fault(row, "%s: element %lld of output %d is %.17g, expected %.17g", what,
                  (long long)i, output, got[i], expected[i]);
            return false;
        }
    return true;
}

/* ---- The checks ---- */

static void check_refusal(const OpCase *row)
{
    if (row->refused == CORNU_OK) return;
    Row r = row_open(row);
    assert_int_equal(cornu_program_scope(r.program, "dense_2"), CORNU_OK);
    uint64_t before = cornu_program_hash(r.program);
    row_record(&r, row);
    char place[64];
    snprintf(place, sizeof place, "dense_2: %s: ", cornu__called(row->id, &row->attributes));
    if (strncmp(cornu_error_message(), place, strlen(place)) != 0)
        fault(row, "the message \"%s\" does not begin with \"%s\"", cornu_error_message(), place);
    if (cornu_program_hash(r.program) != before || r.program->op_count != 0)
        fault(row, "the refused op changed the program");
    row_close(&r);
}

static void refuses_wrong_operands(void **state)
{
    (void)state;
    for_each_row(check_refusal);
}

static void check_operand_count(const OpCase *row)
{
    if (row->refused != CORNU_OK) return;
    Row        r = row_open(row);
    CornuValue in[CORNU_MAX_INPUTS + 1] = { 0 }, extra, out[CORNU_MAX_OUTPUTS];
    memcpy(in, r.in, sizeof r.in);
    cornu_program_input(r.program, cornu_scalar(CORNU_F32), &extra);
    in[r.in_count] = extra;
    bool variadic = cornu_op_input_count(row->id) < 0;
    int  wrong = variadic ? 0 : r.in_count + 1;
    if (cornu_program_record(r.program, row->id, &row->attributes, in, wrong, out) !=
        CORNU_ERR_ARGUMENT)
        fault(row, "%d operands were taken", wrong);
    row_close(&r);
}

static void refuses_wrong_counts_of_operands(void **state)
{
    (void)state;
    for_each_row(check_operand_count);
}

static void check_numbers(const OpCase *row)
{
    if (row->refused != CORNU_OK) return;
    Row r = row_open(row);
    row_record(&r, row);
    if (r.recorded == CORNU_OK) {
        Evaluation  e = row_evaluate(&r);
        CornuStatus expected = row->fault ? CORNU_ERR_VALUE : CORNU_OK;
        if (e.status != expected || (row->fault && !strstr(cornu_error_message(), row->fault)))
            fault(row, "running gave %s: %s", cornu_status_name(e.status), cornu_error_message());
        for (int i = 0; i < r.out_count && !row->fault; i++)
            if (row->out[i])
                agree(row, "reference", i, e.value[r.out[i]], row->out[i],
                      cornu_type_count(cornu_program_type(r.program, r.out[i])), 1e-14);
        evaluation_free(&e);
    }
    row_close(&r);
}

static void gives_known_numbers(void **state)
{
    (void)state;
    for_each_row(check_numbers);
}

static void check_decomposition(const OpCase *row)
{
    const CornuOpRules *rules = cornu__op_rules(row->id);
    if (row->refused != CORNU_OK || cornu__is_primitive(row->id, &row->attributes))
        return;
    Row         r = row_open(row);
    CornuOpCall call = { row->id, &row->attributes, r.in_count, row->in };
    CornuValue  parts[CORNU_MAX_OUTPUTS];
    row_record(&r, row);
    if (rules->decompose(r.program, &call, r.in, parts) != CORNU_OK) {
        fault(row, "decomposing: %s", cornu_error_message());
    } else {
        Evaluation e = row_evaluate(&r);
        if ((e.status == CORNU_ERR_VALUE) != (row->fault != NULL))
            fault(row, "the decomposition gave %s", cornu_status_name(e.status));
        for (int i = 0; i < r.out_count && !row->fault; i++) {
            CornuType whole = cornu_program_type(r.program, r.out[i]);
            if (!cornu_type_equal(whole, cornu_program_type(r.program, parts[i])))
                fault(row, "output %d of the decomposition has another type", i);
            else
                agree(row, "decomposition", i, e.value[parts[i]], e.value[r.out[i]],
                      cornu_type_count(whole), 1e-12);
        }
        evaluation_free(&e);
    }
    row_close(&r);
}

static void decomposes_into_the_same(void **state)
{
    (void)state;
    for_each_row(check_decomposition);
}

/* ---- Devices, on arrays of the declared dtypes ---- */

static CornuDevice *device;

/* The tolerance of an element, relative to the largest of the reference. */
static double nearness(const OpCase *row, CornuDtype dtype)
{
    if (!cornu_dtype_is_float(dtype)) return 0.0;
    if (dtype == CORNU_BF16) return row->near == NEAR_COMPOSED ? 4.0 / 256.0 : 1.0 / 256.0;
    switch (row->near) {
    case NEAR_EXACT:   return 6e-8; /* the reference itself does not round to f32 */
    case NEAR_ROUNDED: case NEAR_COMPOSED: return 1e-6;
    case NEAR_SUMMED:  return 4e-6;
    case NEAR_BF16:    return 4e-3;
    }
    return 0.0;
}

static CornuBuffer *filled_buffer(CornuType type, const double *elements)
{
    CornuBuffer *buffer = cornu_buffer_create(device, type);
    CornuArray   array = { type, calloc(cornu_type_bytes(type) + 1, 1) };
    assert_non_null(buffer);
    for (int64_t i = 0; i < cornu_type_count(type); i++) cornu_array_set(array, i, elements[i]);
    assert_int_equal(cornu_buffer_write(buffer, array), CORNU_OK);
    free(array.data);
    return buffer;
}

static void check_output(const OpCase *row, int i, const CornuBuffer *buffer,
                         const double *expected)
{
    CornuType  type = cornu_buffer_type(buffer);
    int64_t    count = cornu_type_count(type);
    CornuArray array = { type, calloc(cornu_type_bytes(type) + 1, 1) };
    double    *got = calloc((size_t)count + 1, sizeof *got);
    assert_int_equal(cornu_buffer_read(buffer, array), CORNU_OK);
    for (int64_t k = 0; k < count; k++) got[k] = cornu_array_get(array, k);
    agree(row, cornu_device_name(device), i, got, expected, count, nearness(row, type.dtype));
    free(got);
    free(array.data);
}

/* What placement says of the row is what compiling it did. */
static void check_placement(const OpCase *row, const Row *r, const CornuExecutable *executable)
{
    CornuPlacement p;
    const int64_t  fallbacks = cornu_executable_statistics(executable)->fallbacks;
    if (cornu_device_place(device, r->program, 0, &p) != CORNU_OK) {
        fault(row, "%s does not place it: %s", cornu_device_name(device), cornu_error_message());
        return;
    }
    if (p.kind == CORNU_PLACED_REFUSED || !*p.how ||
        (fallbacks > 0) != (p.kind == CORNU_PLACED_REFERENCE || p.fallbacks > 0))
        fault(row, "%s places it %s: \"%s\", \"%s\"; %d parts fall back, %lld ops did",
              cornu_device_name(device), cornu_placement_name(p.kind), p.how, p.why, p.fallbacks,
              (long long)fallbacks);
}

static void check_on_device(const OpCase *row)
{
    if (row->refused != CORNU_OK) return;
    Row          r = row_open(row);
    CornuBuffer *in[CORNU_MAX_INPUTS], *out[CORNU_MAX_OUTPUTS];
    row_record(&r, row);
    for (int i = 0; i < r.out_count; i++)
        assert_int_equal(cornu_program_output(r.program, r.out[i], -1), CORNU_OK);
    CornuExecutable *executable = cornu_device_compile(device, r.program);
    if (!executable) {
        cornu_error_take();
        if (!row->by_reference || !strstr(cornu_error_message(), "XLA has no such op"))
            fault(row, "%s does not compile it: %s", cornu_device_name(device),
                  cornu_error_message());
        row_close(&r);
        return;
    }
    check_placement(row, &r, executable);
    for (int i = 0; i < r.in_count; i++) in[i] = filled_buffer(row->in[i], r.operand[i]);
    for (int i = 0; i < r.out_count; i++)
        out[i] = cornu_buffer_create(device, cornu_program_buffer_type(r.program, r.out[i], 1));

    CornuStatus status = cornu_executable_run(executable, in, out);
    if (status != (row->fault ? CORNU_ERR_VALUE : CORNU_OK) ||
        (row->fault && !strstr(cornu_error_message(), row->fault)))
        fault(row, "%s gave %s: %s", cornu_device_name(device), cornu_status_name(status),
              status ? cornu_error_message() : "");
    if (strcmp(cornu_device_name(device), "tpu") == 0 && !row->by_reference &&
        cornu_executable_statistics(executable)->fallbacks)
        fault(row, "%s falls back", cornu_device_name(device));
    if (status == CORNU_OK) {
        Evaluation e = row_evaluate(&r);
        for (int i = 0; i < r.out_count; i++) check_output(row, i, out[i], e.value[r.out[i]]);
        evaluation_free(&e);
    }
    for (int i = 0; i < r.in_count; i++) cornu_buffer_free(in[i]);
    for (int i = 0; i < r.out_count; i++) cornu_buffer_free(out[i]);
    cornu_executable_release(executable);
    row_close(&r);
}

/* A device that this machine or this build does not have is skipped. */
static void open_device(const char *name)
{
    device = cornu_device_open(.name = name, .shards = 1);
    failures = 0;
    if (device) return;
    assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
    SKIP_FOR(SKIP_PJRT);
}

static void check_device(const char *name)
{
    open_device(name);
    for (int i = 0; op_case(i); i++) check_on_device(op_case(i));
    cornu_device_close(device);
    assert_int_equal(failures, 0);
}

static void runs_on_reference(void **state)
{
    (void)state;
    check_device("reference");
}

static void runs_on_cpu(void **state)
{
    (void)state;
    check_device("cpu");
}

/* The row with bf16 in place of f32; false if its rule refuses that. */
static bool make_narrow(const OpCase *row)
{
    CornuType   out[CORNU_MAX_OUTPUTS];
    CornuOpCall call = { row->id, &narrow_row.attributes, op_case_in_count(row), narrow_row.in };
    wide_row = row;
    narrow_row = *row;
    bool changed = false;
    for (int i = 0; i < CORNU_MAX_INPUTS; i++) {
        CornuDtype *dtype = &narrow_row.in[i].dtype;
        changed |= i < op_case_in_count(row) && *dtype == CORNU_F32;
        if (*dtype == CORNU_F32) *dtype = CORNU_BF16;
    }
    if (row->id == CORNU_OP_MATMUL) narrow_row.attributes.matmul.dtype = CORNU_BF16;
    if (row->id == CORNU_OP_CONV2D) narrow_row.attributes.conv2d.dtype = CORNU_BF16;
    if (row->id == CORNU_OP_CONV2D_GRAD_INPUT) narrow_row.attributes.conv2d_grad.dtype = CORNU_BF16;
    if (row->id == CORNU_OP_GROUPED_CONV2D)
        narrow_row.attributes.grouped_conv2d.dtype = CORNU_BF16;
    if (row->id == CORNU_OP_GROUPED_CONV2D_GRAD_INPUT)
        narrow_row.attributes.grouped_conv2d_grad.dtype = CORNU_BF16;
    if (row->id == CORNU_OP_ATTENTION_GRAD) narrow_row.in[4].dtype = row->in[4].dtype;
    if (row->id == CORNU_OP_BATCH_NORM || row->id == CORNU_OP_BATCH_NORM_GRAD)
        for (int i = 1; i < call.in_count; i++)
            if (i != 4) narrow_row.in[i].dtype = row->in[i].dtype;
    if (!changed || row->refused != CORNU_OK) return false;
    if (row->id == CORNU_OP_CUSTOM) op_case_compose(&narrow_row);
    const bool taken = cornu__op_type(&call, out) == CORNU_OK;
    cornu_error_take();
    return taken;
}

static void check_device_in_bf16(const char *name)
{
    open_device(name);
    for (int i = 0; op_case(i); i++)
        if (make_narrow(op_case(i))) check_on_device(&narrow_row);
    cornu_device_close(device);
    assert_int_equal(failures, 0);
}

/* In the float32 policy, whose products are as near as any in f32; then in bf16. */
static void runs_on_tpu(void **state)
{
    (void)state;
    check_device("tpu");
}

static void runs_on_tpu_in_bf16(void **state)
{
    (void)state;
    check_device_in_bf16("tpu");
}

/* By XLA, where a plugin is installed. */
static void runs_on_pjrt(void **state)
{
    (void)state;
    check_device(pjrt_name());
}

static void runs_on_pjrt_in_bf16(void **state)
{
    (void)state;
    check_device_in_bf16(pjrt_name());
}

/* ---- Gradients ---- */

/*
 * The loss is the sum of all float outputs, each times a weight of its own, so that every
 * element of every gradient is tested by one loss. Operands and weights are inputs of the
 * graph's program, which is then evaluated in double.
 */
typedef struct {
    CornuGraph   *graph;
    CornuTensor  *in[CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS];  /* operands, then weights */
    double       *elements[CORNU_MAX_INPUTS + CORNU_MAX_OUTPUTS];
    int           in_count;
    CornuTensor  *loss;
} Differentiated;

static void add_term(Differentiated *d, const OpCase *row, CornuTensor *y, int output)
{
    CornuType type = cornu_tensor_type(y);
    int64_t   count = cornu_type_count(type);
    double   *weights = calloc((size_t)count + 1, sizeof *weights);
    bool      weighed = !(row->no_weight >> output & 1);
    for (int64_t i = 0; i < count && weighed; i++) weights[i] = sin(1.0 + 3.7 * (double)i);
    d->elements[d->in_count] = weights;
    CornuTensor *w = d->in[d->in_count++] = cornu_graph_input(d->graph, type);
    CornuTensor *term = cornu_op_convert(cornu_op_sum(cornu_op_multiply(y, w)), CORNU_F32);
    d->loss = d->loss ? cornu_op_add(d->loss, term) : term;
}

static Differentiated differentiated(const OpCase *row)
{
    Differentiated d = { .graph = cornu_graph_create(device), .in_count = op_case_in_count(row) };
    CornuTensor   *out[CORNU_MAX_OUTPUTS];
    for (int i = 0; i < d.in_count; i++) {
        d.in[i] = cornu_graph_input(d.graph, row->in[i]);
        d.elements[i] = calloc((size_t)cornu_type_count(row->in[i]) + 1, sizeof(double));
        op_case_fill(row, i, d.elements[i]);
    }
    cornu__record(row->id, &row->attributes, d.in, d.in_count, out);
    for (int i = 0; i < cornu__result_count(row->id, &row->attributes); i++)
        if (cornu_dtype_is_float(cornu_tensor_type(out[i]).dtype)) add_term(&d, row, out[i], i);
    return d;
}

static double loss_at(const Differentiated *d)
{
    Evaluation e = evaluate(d->graph->program, (const double *const *)d->elements);
    assert_int_equal(e.status, CORNU_OK);
    double loss = e.value[d->loss->value][0];
    evaluation_free(&e);
    return loss;
}

/* (loss(x + h) - loss(x - h)) / 2h has an error of h^2 from the third derivative and 1e-16 / h
 * from rounding. */
static void check_by_differences(const OpCase *row, Differentiated *d, int operand,
                                 const double *gradient)
{
    const double h = 1e-5;
    int64_t      count = cornu_type_count(row->in[operand]);
    double       scale = largest(gradient, count) + 0.1;
    for (int64_t i = 0; i < count; i++) {
        double *x = &d->elements[operand][i], kept = *x;
        *x = kept + h;
        double above = loss_at(d);
        *x = kept - h;
        double below = loss_at(d);
        *x = kept;
        double slope = (above - below) / (2.0 * h);
        if (!is_near(gradient[i], slope, 1e-7, scale)) {
            fault(row, "the gradient by element %lld of operand %d is %.12g, differences give "
                  "%.12g", (long long)i, operand, gradient[i], slope);
            return;
        }
    }
}

static void check_gradient(const OpCase *row)
{
    if (row->refused != CORNU_OK || !row->differentiate) return;
    Differentiated d = differentiated(row);
    CornuTensor   *x[CORNU_MAX_INPUTS], *d_x[CORNU_MAX_INPUTS];
    int            operand[CORNU_MAX_INPUTS], count = 0;
    for (int i = 0; i < op_case_in_count(row); i++)
        if (row->differentiate >> i & 1) operand[count] = i, x[count++] = d.in[i];

    CornuStatus status = cornu_gradients(d.loss, x, count, d_x);
    if (status != CORNU_OK) {
        fault(row, "no gradients: %s", cornu_error_message());
    } else {
        Evaluation e = evaluate(d.graph->program, (const double *const *)d.elements);
        assert_int_equal(e.status, CORNU_OK);
        for (int i = 0; i < count; i++)
            check_by_differences(row, &d, operand[i], e.value[d_x[i]->value]);
        evaluation_free(&e);
    }
    for (int i = 0; i < d.in_count; i++) free(d.elements[i]);
    cornu_graph_free(d.graph);
}

static void gradients_match_differences(void **state)
{
    (void)state;
    device = cornu_device_open(.name = "reference");
    assert_non_null(device);
    failures = 0;
    for (int i = 0; op_case(i); i++) check_gradient(op_case(i));
    cornu_device_close(device);
    assert_int_equal(failures, 0);
}

/* ---- Completeness ---- */

static void has_rows_for_every_op(void **state)
{
    (void)state;
    failures = 0;
    for (int id = 0; id < CORNU_OP_COUNT; id++) {
        bool known = false, refused = cornu_op_input_count((CornuOpId)id) == 0;
        bool differentiated = *cornu__gradient_rules[id] == CORNU_NO_GRADIENT;
        for (int i = 0; op_case(i); i++) {
            const OpCase *row = op_case(i);
            if (row->id != (CornuOpId)id) continue;
            known |= row->out[0] != NULL && row->refused == CORNU_OK;
            refused |= row->refused != CORNU_OK;
            differentiated |= row->differentiate != 0;
        }
        if (known && refused && differentiated) continue;
        print_error("%s: %s%s%s\n", cornu_op_name((CornuOpId)id),
                    known ? "" : "no row with known numbers; ",
                    refused ? "" : "no row that is refused; ",
                    differentiated ? "" : "no row to differentiate");
        failures++;
    }
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_rows_for_every_op),
        cmocka_unit_test(refuses_wrong_operands),
        cmocka_unit_test(refuses_wrong_counts_of_operands),
        cmocka_unit_test(gives_known_numbers),
        cmocka_unit_test(decomposes_into_the_same),
        cmocka_unit_test(runs_on_reference),
        cmocka_unit_test(runs_on_cpu),
        cmocka_unit_test(runs_on_tpu),
        cmocka_unit_test(runs_on_tpu_in_bf16),
        cmocka_unit_test(runs_on_pjrt),
        cmocka_unit_test(runs_on_pjrt_in_bf16),
        cmocka_unit_test(gradients_match_differences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
