/* If, Loop and Scan. Of an If whose condition is known the branch is taken when the graph is
 * recorded; else both are computed, and the results selected. What a Loop depends on must be known:
 * it is unrolled. A Scan is a loop of Cornu's. */
#include "../bodies_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../../../tensor/tensor_internal.h"

enum { MOST = 64, MOST_TURNS = 1024 };

static const CornuReadOperand *captured_of(const CornuReadStep *step)
{
    return step->in + step->node->own_count;
}

static CornuStatus hand_on(CornuReadStep *step, int i, const CornuReadOperand *from)
{
    if (cornu__wanted(step, i)) step->out[i] = *from;
    return CORNU_OK;
}

/* ---- If ---- */

/* Runs a branch; `out` has room for MOST results. */
static CornuStatus branch(CornuReadStep *step, bool which, CornuReadOperand *out, int *count)
{
    CornuReadBody body;
    CornuStatus   status = cornu__subgraph_open(step, which ? "then_branch" : "else_branch", &body);
    *count = body.graph ? body.graph->output_count : 0;
    if (!status && *count > MOST) status = cornu__cannot("If", "too many results");
    if (!status)
        status = cornu__subgraph_run(step, &body, step->run, captured_of(step), NULL, 0, out);
    cornu__subgraph_free(&body);
    return status;
}

static CornuStatus select_one(CornuReadStep *step, CornuTensor *which, int i,
                              const CornuReadOperand *yes, const CornuReadOperand *no)
{
    CornuTensor *a = cornu__read_tensor(step->run, yes), *b = cornu__read_tensor(step->run, no);
    CornuText    shapes[2];
    if (!cornu__wanted(step, i)) return CORNU_OK;
    if (!a || !b) return cornu_error_take();
    if (!cornu_type_equal(cornu_tensor_type(a), cornu_tensor_type(b)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "its condition is computed from data, and result "
                           "%d is %s of one branch and %s of the other, expected the same of both",
                           i, cornu_type_print(&shapes[0], cornu_tensor_type(a)),
                           cornu_type_print(&shapes[1], cornu_tensor_type(b)));
    return cornu__result(step, i, cornu_op_select(which, a, b));
}

/* A branch that its operands do not fit is not computed where they do not have to fit it: then the
 * other must be the one that is chosen. A number that indexes a table of one row, 0 for that
 * branch, checks it when the graph runs. */
static CornuStatus only(CornuReadStep *step, CornuTensor *which, bool one,
                        const CornuReadOperand *out, int count)
{
    CornuGraph  *graph = step->run->graph;
    CornuTensor *table = cornu_op_constant(graph, cornu_type(CORNU_F32, 1, 1), 0.0);
    CornuTensor *row = cornu__reshaped(cornu_op_convert(which, CORNU_I32), 1,
                                       (const int64_t[]){ 1 });
    char         scope[120], place[280];
    snprintf(scope, sizeof scope, "%s", cornu__scope(graph));
    snprintf(place, sizeof place, "%s: the condition chose %s, which does not take operands of "
             "these shapes", scope, one ? "else_branch" : "then_branch");
    if (one && row) row = cornu_op_subtract(cornu_op_constant_like(row, 1.0), row);
    CORNU__TRY(cornu_graph_scope(graph, place));
    CornuTensor *zero = cornu__reshaped(cornu_op_gather(table, row), 0, NULL);
    CORNU__TRY(cornu_graph_scope(graph, scope));
    for (int i = 0; i < count; i++) {
        if (!cornu__wanted(step, i)) continue;
        CornuTensor *y = cornu__read_tensor(step->run, &out[i]);
        if (!y || !zero) return cornu_error_take();
        CORNU__TRY(cornu__result(step, i, cornu_op_add(
            y, cornu_op_convert(zero, cornu__dtype_of(y)))));
    }
    return CORNU_OK;
}

static CornuStatus read_if(CornuReadStep *step)
{
    CornuReadOperand yes[MOST], no[MOST];
    double           known;
    int              counts[2];
    if (cornu__given(step, 0) && step->in[0].known.data) {
        CORNU__TRY(cornu__known_number(step, 0, 0.0, &known));
        CORNU__TRY(branch(step, known != 0.0, yes, counts));
        for (int i = 0; i < counts[0]; i++) CORNU__TRY(hand_on(step, i, &yes[i]));
        return CORNU_OK;
    }
    CornuTensor *which = cornu_op_convert(cornu__operand_of(step, 0), CORNU_BOOL);
    which = cornu__reshaped(which, 0, NULL);
    if (!which) return cornu_error_take();
    const CornuStatus first = branch(step, true, yes, &counts[0]);
    if (first && first != CORNU_ERR_SHAPE) return first;
    cornu_error_take();
    const CornuStatus second = branch(step, false, no, &counts[1]);
    if (second && (first || second != CORNU_ERR_SHAPE)) return second;
    cornu_error_take();
    if (first) return only(step, which, false, no, counts[1]);
    if (second) return only(step, which, true, yes, counts[0]);
    if (counts[0] != counts[1])
        return cornu__fail(CORNU_ERR_FORMAT, "its branches have %d and %d results", counts[0],
                           counts[1]);
    for (int i = 0; i < counts[0]; i++) CORNU__TRY(select_one(step, which, i, &yes[i], &no[i]));
    return CORNU_OK;
}

/* ---- Loop ---- */

/* The rows that turns give, one above the other. */
static CornuStatus stack_rows(CornuReadStep *step, int i, CornuReadOperand *const *turns,
                              int count, int result)
{
    CornuTensor *rows[MOST_TURNS];
    for (int k = 0; k < count; k++) {
        CornuTensor *row = cornu__read_tensor(step->run, &turns[k][result]);
        if (!row) return cornu_error_take();
        if (!(rows[k] = cornu__add_axis(row, 0))) return cornu_error_take();
    }
    if (count == 0) return cornu__cannot("a Loop without turns", "its results have no type");
    return cornu__result(step, i, count > 1 ? cornu_op_concat(rows, count, 0) : rows[0]);
}

static CornuStatus one_turn(CornuReadStep *step, const CornuReadBody *body, int turn,
                            CornuReadOperand *in, CornuReadOperand **out)
{
    const CornuArray number = cornu__host_array(step->run, cornu_scalar(CORNU_I64));
    const CornuArray goes = cornu__host_array(step->run, cornu_scalar(CORNU_BOOL));
    *out = cornu__arena_take(step->run->arena, (size_t)body->graph->output_count, sizeof **out);
    if (!number.data || !goes.data || !*out) return CORNU_ERR_MEMORY;
    cornu_array_set(number, 0, turn);
    cornu_array_set(goes, 0, 1.0);
    in[0] = (CornuReadOperand){ .given = true, .known = number };
    in[1] = (CornuReadOperand){ .given = true, .known = goes };
    return cornu__subgraph_run(step, body, step->run, captured_of(step), in,
                               body->graph->input_count, *out);
}

static CornuStatus unroll(CornuReadStep *step, const CornuReadBody *body)
{
    CornuReadOperand  in[MOST], *turns[MOST_TURNS];
    const int         states = step->node->own_count - 2, results = body->graph->output_count - 1;
    double            most, goes;
    int               count = 0;
    CORNU__TRY(cornu__known_number(step, 0, 0x1p62, &most));
    CORNU__TRY(cornu__known_number(step, 1, 1.0, &goes));
    if (states < 0 || states + 2 > MOST || results < states ||
        body->graph->input_count != states + 2)
        return cornu__fail(CORNU_ERR_FORMAT, "its graph has %d inputs and %d results for %d states",
                           body->graph->input_count, results, states);
    for (int i = 0; i < states; i++) in[2 + i] = step->in[2 + i];
    while (goes != 0.0 && count < most) {
        if (count == MOST_TURNS)
            return cornu__cannot("a Loop of over 1024 turns", "it is unrolled");
        CORNU__TRY(one_turn(step, body, count, in, &turns[count]));
        const CornuReadOperand *out = turns[count++];
        if (!out[0].known.data || cornu_type_count(out[0].known.type) < 1)
            return cornu__cannot("a Loop that ends by its data", "its turns must be known");
        goes = cornu_array_get(out[0].known, 0);
        for (int i = 0; i < states; i++) in[2 + i] = out[1 + i];
    }
    for (int i = 0; i < states; i++) CORNU__TRY(hand_on(step, i, &in[2 + i]));
    for (int i = states; i < results; i++)
        if (cornu__wanted(step, i)) CORNU__TRY(stack_rows(step, i, turns, count, 1 + i));
    return CORNU_OK;
}

static CornuStatus run_body(CornuReadStep *step,
                            CornuStatus run(CornuReadStep *, const CornuReadBody *))
{
    CornuReadBody body;
    CornuStatus   status = cornu__subgraph_open(step, "body", &body);
    if (!status) status = run(step, &body);
    cornu__subgraph_free(&body);
    return status;
}

static CornuStatus read_loop(CornuReadStep *step) { return run_body(step, unroll); }

/* ---- Scan ---- */

typedef struct {
    const CornuReadStep *step;
    const CornuReadBody *body;
    CornuReadRun         run;
    int                  states, slices;
    const int           *constant;    /* for each captured operand its constant; -1: none */
    CornuStatus          status;
} Loop;

static CornuTensor *no_constant(CornuReadRun *run, CornuArray array)
{
    (void)run, (void)array;
    return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a table within a loop is not supported");
}

static CornuStatus run_step(Loop *loop, CornuTensor *const *in, CornuTensor **out)
{
    const CornuReadStep *step = loop->step;
    const int            count = loop->states + loop->slices;
    const int            captured = step->node->in_count - step->node->own_count;
    CornuReadOperand     given[MOST], around[MOST], results[MOST];
    loop->run.graph = cornu_tensor_graph(in[0]);
    for (int i = 0; i < count; i++)
        given[i] = (CornuReadOperand){ .given = true, .tensor = in[i] };
    for (int i = 0; i < captured; i++) {
        around[i] = step->in[step->node->own_count + i];
        around[i].weight = NULL;
        around[i].maker = NULL;   /* of the graph around this one */
        around[i].tensor = loop->constant[i] < 0 ? NULL : in[count + loop->constant[i]];
    }
    CORNU__TRY(cornu__subgraph_run(step, loop->body, &loop->run, around, given, count, results));
    for (int i = 0; i < loop->body->graph->output_count; i++)
        if (!(out[i] = cornu__read_tensor(&loop->run, &results[i]))) return cornu_error_take();
    return CORNU_OK;
}

static void scan_step(void *context, CornuTensor *const *in, CornuTensor **out)
{
    Loop *loop = context;
    for (int i = 0; i < loop->body->graph->output_count; i++) out[i] = NULL;
    if (cornu_error_pending()) return;
    loop->status = run_step(loop, in, out);
    if (!loop->status) return;
    for (int i = 0; i < loop->body->graph->output_count; i++) out[i] = NULL;
    cornu__null();
}

static bool all_equal(const int64_t *list, int count, int64_t value)
{
    for (int i = 0; i < count; i++)
        if (list[i] != value) return false;
    return true;
}

typedef struct {
    int64_t in_axes[MOST], out_axes[MOST], in_turned[MOST], out_turned[MOST];
    int     axis;                 /* of all, if they are alike; else they are moved to 0 */
    bool    same, reverse;
} Layout;

static CornuStatus read_layout(const CornuReadStep *step, int slices, int stacked, Layout *to)
{
    CORNU__TRY(cornu__list_for(step, "scan_input_axes", slices, 0, -CORNU_MAX_RANK, to->in_axes));
    CORNU__TRY(cornu__list_for(step, "scan_output_axes", stacked, 0, -CORNU_MAX_RANK,
                               to->out_axes));
    CORNU__TRY(cornu__list_for(step, "scan_input_directions", slices, 0, -CORNU_MAX_RANK,
                               to->in_turned));
    CORNU__TRY(cornu__list_for(step, "scan_output_directions", stacked, 0, -CORNU_MAX_RANK,
                               to->out_turned));
    const int64_t axis = to->in_axes[0], turned = to->in_turned[0];
    to->same = axis >= 0 && all_equal(to->in_axes, slices, axis) &&
               all_equal(to->out_axes, stacked, axis) &&
               all_equal(to->in_turned, slices, turned) &&
               all_equal(to->out_turned, stacked, turned);
    to->axis = to->same ? (int)axis : 0;
    to->reverse = to->same && turned;
    return CORNU_OK;
}

static CornuStatus scan(CornuReadStep *step, const CornuReadBody *body)
{
    const CornuReadNode *node = step->node;
    const int slices = (int)cornu__whole(step, "num_scan_inputs", 0);
    const int states = node->own_count - slices, stacked = body->graph->output_count - states;
    const int captured = node->in_count - node->own_count;
    CornuTensor *carries[MOST], *sliced[MOST], *constants[MOST], *out[MOST] = { NULL };
    int          constant[MOST], constant_count = 0;
    Layout       layout;
    if (step->run->opset < 9) return cornu__cannot("a Scan of opset 8", "it has another form");
    if (slices < 1 || states < 0 || stacked < 0 || node->own_count > MOST || captured > MOST ||
        body->graph->output_count > MOST)
        return cornu__fail(CORNU_ERR_FORMAT, "%d scanned tensors of %d", slices, node->own_count);
    CORNU__TRY(read_layout(step, slices, stacked, &layout));
    for (int i = 0; i < states; i++)
        if (!(carries[i] = cornu__operand_of(step, i))) return cornu_error_take();
    for (int i = 0; i < slices; i++) {
        CornuTensor *x = cornu__operand_of(step, states + i);
        int          axis;
        if (!x) return cornu_error_take();
        CORNU__TRY(cornu__axis_of(layout.in_axes[i], cornu__rank_of(x), &axis));
        if (!layout.same) {
            x = cornu__move_axis(x, axis, 0);
            if (x && layout.in_turned[i]) x = cornu_op_flip(x, 0);
        }
        if (!(sliced[i] = x)) return cornu_error_take();
    }
    /* Known numbers, and integers as parameters have them, stay known in the step. */
    for (int i = 0; i < captured; i++) {
        const CornuReadOperand *from = &step->in[node->own_count + i];
        const int64_t numbers = cornu_dtype_is_float(from->known.type.dtype) ? 1
                                                                             : CORNU_READ_PARAMETER;
        const bool parameter = from->known.data && cornu_type_count(from->known.type) <= numbers;
        constant[i] = -1;
        if (parameter && !from->tensor) continue;
        constant[i] = constant_count;
        if (!(constants[constant_count++] = cornu__operand_of(step, node->own_count + i)))
            return cornu_error_take();
    }
    Loop loop = { .step = step, .body = body, .run = *step->run, .states = states,
                  .slices = slices, .constant = constant };
    loop.run.constant = no_constant;
    const CornuScan how = { .carries = carries, .slices = sliced, .constants = constants,
                            .carry_count = states, .slice_count = slices,
                            .constant_count = constant_count, .axis = layout.axis,
                            .stacked_count = stacked, .reverse = layout.reverse };
    if (!cornu_op_scan(&how, scan_step, &loop, out)) {
        const CornuStatus pending = cornu_error_take();
        return loop.status ? loop.status : pending;
    }
    for (int i = 0; i < states; i++) CORNU__TRY(cornu__result(step, i, out[i]));
    for (int i = states; i < states + stacked; i++) {
        CornuTensor *y = out[i];
        int          axis;
        CORNU__TRY(cornu__axis_of(layout.out_axes[i - states], cornu__rank_of(y), &axis));
        if (!layout.same) {
            if (layout.out_turned[i - states]) y = cornu_op_flip(y, 0);
            y = cornu__move_axis(y, 0, axis);
        }
        CORNU__TRY(cornu__result(step, i, y));
    }
    return CORNU_OK;
}

static CornuStatus read_scan(CornuReadStep *step) { return run_body(step, scan); }

const CornuReadRow cornu__read_control[] = {
    { "If", read_if, .operands = 0 }, { "Loop", read_loop, .operands = 0 },
    { "Scan", read_scan, .operands = 0 },
    { 0 },
};
