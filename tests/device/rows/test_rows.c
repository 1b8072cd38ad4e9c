/*
 * Rows that are said to stay apart do: every op with the rows along every axis of its operands, in
 * all cases of tests/op_cases/, computed by reference kernels on data and on the same data with the
 * rows moved on by one. And what is said of small programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/rows/axes.h"
#include "../../../device/rows/rows.h"
#include "../../../tensor/graph_internal.h"
#include "../../evaluate.h"
#include "../../op_cases.h"

/* ---- All ops ---- */

/* The axis that the rows lie along in operands, by bits, and in a result. */
typedef struct {
    const OpCase *row;
    unsigned      operands;
    int           axis, result, result_axis;
    int64_t       rows;
} Placed;

typedef struct {
    CornuProgram *program;
    CornuValue    in[CORNU_MAX_INPUTS], out;
    bool          made;
} Made;

static CornuStatus move_axis(CornuProgram *program, CornuValue x, int from, int to, CornuValue *out)
{
    CornuAttributes attributes = { .permutation = { .axes = { 0 } } };
    const int       rank = cornu_program_type(program, x).shape.rank;
    for (int i = 0, at = 0; i < rank; i++) {
        if (at == from) at++;
        attributes.permutation.axes[i] = i == to ? from : at++;
    }
    return cornu_program_record(program, CORNU_OP_TRANSPOSE, &attributes, &x, 1, out);
}

/* Inputs with the rows along axis 0, moved to where the op has them, and the result moved back. */
static Made make(const Placed *placed)
{
    const OpCase *row = placed->row;
    Made          made = { .program = cornu_program_create() };
    CornuValue    in[CORNU_MAX_INPUTS], out[CORNU_MAX_OUTPUTS];
    CornuStatus   status = CORNU_OK;
    for (int i = 0; i < op_case_in_count(row) && !status; i++) {
        CornuType type = row->in[i];
        if (placed->operands >> i & 1) {
            for (int k = placed->axis; k > 0; k--) type.shape.extent[k] = type.shape.extent[k - 1];
            type.shape.extent[0] = placed->rows;
        }
        status = cornu_program_input(made.program, type, &made.in[i]);
        in[i] = made.in[i];
        if (!status && placed->operands >> i & 1)
            status = move_axis(made.program, in[i], 0, placed->axis, &in[i]);
    }
    if (!status)
        status = cornu_program_record(made.program, row->id, &row->attributes, in,
                                      op_case_in_count(row), out);
    if (!status)
        status = move_axis(made.program, out[placed->result], placed->result_axis, 0, &made.out);
    if (!status) status = cornu_program_output(made.program, made.out, -1);
    made.made = !status;
    return made;
}

/* A copy with the rows moved on by one, if the operand has them. */
static double *moved_on(const Placed *placed, int i, const double *x)
{
    const int64_t count = cornu_type_count(placed->row->in[i]);
    const int64_t each = count / placed->rows;
    const bool    moves = placed->operands >> i & 1;
    double       *y = calloc((size_t)count + 1, sizeof *y);
    for (int64_t k = 0; k < count; k++) y[moves ? (k + each) % count : k] = x[k];
    return y;
}

/* An op may refuse the other order. */
static void compare(const Placed *placed, const Made *made)
{
    double *x[CORNU_MAX_INPUTS], *y[CORNU_MAX_INPUTS];
    const int count = op_case_in_count(placed->row);
    for (int i = 0; i < count; i++) {
        x[i] = calloc((size_t)cornu_type_count(placed->row->in[i]) + 1, sizeof **x);
        op_case_fill(placed->row, i, x[i]);
        y[i] = moved_on(placed, i, x[i]);
    }
    Evaluation a = evaluate(made->program, (const double *const *)x);
    Evaluation b = evaluate(made->program, (const double *const *)y);
    const int64_t all = cornu_type_count(cornu_program_type(made->program, made->out));
    const int64_t each = all / placed->rows;
    for (int64_t k = 0; k < all && !a.status && !b.status; k++) {
        const double is = b.value[made->out][(k + each) % all], wanted = a.value[made->out][k];
        if (is != wanted && !(fabs(is - wanted) < 1e-9 * (1.0 + fabs(wanted))) && !isnan(wanted))
            fail_msg("%s: rows along axis %d are said to stay apart in result %d, axis %d",
                     cornu_op_name(placed->row->id), placed->axis, placed->result,
                     placed->result_axis);
    }
    evaluation_free(&a);
    evaluation_free(&b);
    for (int i = 0; i < count; i++) {
        free(x[i]);
        free(y[i]);
    }
}

/* Whether they are said to stay apart. */
static bool check(const Placed *placed)
{
    Made           made = make(placed);
    CornuRowsFound found = { .independent = false };
    bool           of_rows[CORNU_MAX_INPUTS];
    for (int i = 0; i < CORNU_MAX_INPUTS; i++) of_rows[i] = placed->operands >> i & 1;
    if (made.made) {
        assert_int_equal(cornu__rows_find(made.program, placed->rows, of_rows, &made.out, 1,
                                          &found), CORNU_OK);
        if (found.independent) compare(placed, &made);
    }
    cornu_error_take();
    cornu_program_free(made.program);
    return found.independent;
}

/* With the rows along `axis` of operand i, or of all that have as many there. */
static int check_operand(const OpCase *row, const CornuType *out, int outs, int i, int axis)
{
    Placed placed = { .row = row, .axis = axis, .rows = row->in[i].shape.extent[axis] };
    int    apart = 0;
    if (placed.rows < 2) return 0;
    for (int all = 0; all < 2; all++) {
        placed.operands = 1u << i;
        for (int k = 0; k < op_case_in_count(row) && all; k++)
            if (row->in[k].shape.rank > axis && row->in[k].shape.extent[axis] == placed.rows)
                placed.operands |= 1u << k;
        for (placed.result = 0; placed.result < outs; placed.result++)
            for (int k = 0; k < out[placed.result].shape.rank; k++) {
                placed.result_axis = k;
                if (out[placed.result].shape.extent[k] == placed.rows) apart += check(&placed);
            }
    }
    return apart;
}

/* Those that read all have its rule, also where rows.c knows better. */
static bool says_axes(CornuOpId id)
{
    return cornu__axes_rules[cornu__op_reads(id)] != cornu__axes_rules[CORNU_READS_ALL];
}

static void test_ops(void **state)
{
    int apart[CORNU_OP_COUNT] = { 0 };
    (void)state;
    for (int i = 0; op_case(i); i++) {
        OpCase            row = *op_case(i);
        CornuType         out[CORNU_MAX_OUTPUTS];
        const int         count = op_case_in_count(&row);
        const CornuOpCall call = { row.id, &row.attributes, count, row.in };
        if (row.refused || row.fault || count > CORNU_MAX_INPUTS || cornu__is_collective(row.id))
            continue;
        if (cornu__op_type(&call, out)) continue;
        for (int k = 0; k < count; k++)
            for (int axis = 0; axis < row.in[k].shape.rank; axis++)
                apart[row.id] += check_operand(&row, out, cornu__result_count(row.id,
                                               &row.attributes), k, axis);
    }
    /* An op that says along which axes it reads leaves rows apart somewhere. */
    for (int id = 0; id < CORNU_OP_COUNT; id++)
        if (says_axes(id) && cornu_op_input_count(id) != 0 && !apart[id])
            fail_msg("%s: no case leaves rows apart", cornu_op_name(id));
}

/* ---- Small programs ---- */

enum { ROWS = 7 };

static CornuDevice *device;
static CornuGraph  *graph;

static int begin(void **state)
{
    (void)state;
    device = cornu_device_open("reference");
    graph = cornu_graph_create(device);
    return !graph;
}

static int end(void **state)
{
    (void)state;
    cornu_graph_free(graph);
    cornu_device_close(device);
    return 0;
}

/* Of a program of which x has the rows. */
static CornuRowsFound found(CornuTensor *x, CornuTensor *y)
{
    CornuRowsFound found;
    bool          *of_rows = calloc((size_t)graph->program->input_count + 1, sizeof *of_rows);
    if (!y) fail_msg("%s", cornu_error_message());
    of_rows[graph->program->values[x->value].index] = true;
    assert_int_equal(cornu__rows_find(graph->program, ROWS, of_rows, &y->value, 1, &found),
                     CORNU_OK);
    free(of_rows);
    return found;
}

#define INDEPENDENT(x, y) assert_true(found(x, y).independent)
#define DEPENDENT(x, y)   assert_false(found(x, y).independent)

static CornuTensor *data(CornuShape shape)
{
    return cornu__graph_parameter(graph, cornu_type_from(CORNU_F32, shape));
}

/* Rows and steps as one axis, and as two again; not in another order. */
static void test_reshapes(void **state)
{
    (void)state;
    CornuTensor *x = data(cornu_shape(ROWS, 5, 4)), *w = data(cornu_shape(4, 3));
    CornuTensor *flat = cornu_op_reshape(x, cornu_shape(ROWS * 5, 4));
    CornuTensor *y = cornu_op_reshape(cornu_op_matmul(flat, w), cornu_shape(ROWS, 5, 3));
    INDEPENDENT(x, y);
    INDEPENDENT(x, cornu_op_reshape(x, cornu_shape(ROWS, 20)));
    DEPENDENT(x, cornu_op_reshape(x, cornu_shape(5, ROWS, 4)));
    DEPENDENT(x, cornu_op_reshape(cornu_op_softmax(cornu_op_reshape(x, cornu_shape(4, ROWS * 5))),
                             cornu_shape(ROWS, 5, 4)));
    /* (B, T, C) with T in front and behind. */
    CornuTensor *turned = cornu_op_transpose(x, (const int[]){ 1, 0, 2 });
    INDEPENDENT(x, cornu_op_transpose(turned, (const int[]){ 1, 0, 2 }));
    DEPENDENT(x, turned);
    CornuTensor *both = cornu_op_reshape(turned, cornu_shape(5 * ROWS, 4));
    INDEPENDENT(x, cornu_op_transpose(cornu_op_reshape(cornu_op_relu(both),
                                                       cornu_shape(5, ROWS, 4)),
                                      (const int[]){ 1, 0, 2 }));
    DEPENDENT(x, cornu_op_reshape(both, cornu_shape(ROWS, 5, 4)));
}

/* What has no rows is the same for all of them, or their places count. */
static void test_places(void **state)
{
    (void)state;
    CornuTensor *x = data(cornu_shape(ROWS, 5, 4)), *steps = data(cornu_shape(1, 5, 4));
    const CornuType rows = cornu_type(CORNU_F32, ROWS, 5, 4);
    INDEPENDENT(x, cornu_op_add(x, steps));
    INDEPENDENT(x, cornu_op_add(x, data(cornu_shape(4))));
    DEPENDENT(x, cornu_op_add(x, data(cornu_shape(ROWS, 5, 4))));
    INDEPENDENT(x, cornu_op_add(x, cornu_op_iota(graph, rows, 1)));
    DEPENDENT(x, cornu_op_add(x, cornu_op_iota(graph, rows, 0)));
    INDEPENDENT(x, cornu_op_add(x, cornu_op_constant(graph, rows, 2.0)));
    /* Broadcast and reshaped before it is added. */
    CornuTensor *wide = cornu_op_reshape(cornu_op_broadcast(steps, rows.shape),
                                         cornu_shape(ROWS * 5, 4));
    CornuTensor *flat = cornu_op_reshape(x, cornu_shape(ROWS * 5, 4));
    INDEPENDENT(x, cornu_op_reshape(cornu_op_add(flat, wide), rows.shape));
    /* A result without rows. */
    INDEPENDENT(x, cornu_op_constant(graph, rows, 0.0));
    INDEPENDENT(x, cornu_op_broadcast(steps, rows.shape));
    DEPENDENT(x, steps);
    DEPENDENT(x, cornu_op_iota(graph, rows, 0));
}

static void test_meeting(void **state)
{
    (void)state;
    CornuTensor *x = data(cornu_shape(ROWS, 4));
    CornuTensor *turned = cornu_op_transpose(x, (const int[]){ 1, 0 });
    DEPENDENT(x, cornu_op_add(x, cornu_op_broadcast(cornu_op_reduce_max(x, 3, false),
                                               cornu_shape(ROWS, 4))));
    DEPENDENT(x, cornu_op_matmul(cornu_op_matmul(x, turned), x));
    DEPENDENT(x, cornu_op_flip(x, 0));
    INDEPENDENT(x, cornu_op_flip(x, 1));
    DEPENDENT(x, cornu_op_transpose(cornu_op_softmax(turned), (const int[]){ 1, 0 }));
    const CornuRowsFound at = found(x, cornu_op_broadcast(cornu_op_reduce_sum(x, 1, true),
                                                          cornu_shape(ROWS, 4)));
    assert_false(at.independent);
    assert_int_equal(at.mixed_by->id, CORNU_OP_REDUCE_SUM);
    /* A lookup of rows by other data, and of rows of a table by the data. */
    CornuTensor *which = cornu__graph_parameter(graph, cornu_type(CORNU_I32, ROWS));
    DEPENDENT(x, cornu_op_gather(x, which));
    INDEPENDENT(which, cornu_op_gather(data(cornu_shape(9, 4)), which));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ops),
        cmocka_unit_test_setup_teardown(test_reshapes, begin, end),
        cmocka_unit_test_setup_teardown(test_places, begin, end),
        cmocka_unit_test_setup_teardown(test_meeting, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
