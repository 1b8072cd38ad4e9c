/*
 * Operators in an order in which those between a variable's value and its next one stand together:
 * they become one node State, which keeps the value from run to run.
 *
 * A group is a variable, or several, with the operators on ways from its values to their
 * successors. As one node it must not need itself: what lies on a way out of a group and back is
 * part of it, where ways lead through other groups as a whole.
 */
#include "onnx_internal.h"

#include "../../../device/memory_internal.h"

#include <string.h>

enum { NO_GROUP = -1, MOST_VISITS = 1 << 30, MOST_PARTS = 64 };

typedef struct {
    const CornuLiteOnnx  *of;
    const CornuLiteGraph *graph;
    int   *groups;            /* of each operator */
    int   *homes;             /* of each variable: its group */
    bool  *tensors, *passed;  /* reached: tensors, and groups */
    bool  *ahead, *behind;    /* operators and, after them, groups on ways from and to a group */
    long   visits;
} Plan;

static int variable_count(const Plan *plan) { return plan->graph->variable_count; }

/* ---- Groups ---- */

/* Marks a node that is reached and what it gives; true if that was new. */
static bool reach(bool *tensors, const int *from, int from_count, const int *to, int to_count,
                  bool *node, bool certain)
{
    bool hit = certain, new = false;
    for (int i = 0; i < from_count; i++) hit |= from[i] >= 0 && tensors[from[i]];
    if (!hit) return false;
    new |= !*node;
    *node = true;
    for (int i = 0; i < to_count; i++)
        if (to[i] >= 0 && !tensors[to[i]]) new = tensors[to[i]] = true;
    return new;
}

/* One pass over the operators in their order, or with `back` in the other one, from what group
 * `own` gives, or to what it needs. A group that is reached gives all its results. */
static bool pass(Plan *plan, int own, bool back, bool *nodes)
{
    const CornuLiteGraph *graph = plan->graph;
    const int             count = graph->operator_count;
    bool                  new = false;
    plan->visits += count + variable_count(plan);
    for (int i = 0; i < variable_count(plan); i++) {
        const int *now = &graph->variables[i].now, *next = &graph->variables[i].next;
        const int  home = plan->homes[i];
        new |= reach(plan->tensors, back ? now : next, 1, back ? next : now, 1,
                     &nodes[count + home], home == own || nodes[count + home]);
    }
    for (int k = 0; k < count; k++) {
        const int                i = back ? count - 1 - k : k, home = plan->groups[i];
        const CornuLiteOperator *op = &graph->operators[i];
        bool *node = home == NO_GROUP ? &nodes[i] : &nodes[count + home];
        new |= reach(plan->tensors, back ? op->out : op->in, back ? op->out_count : op->in_count,
                     back ? op->in : op->out, back ? op->in_count : op->out_count, node,
                     home != NO_GROUP && (home == own || *node));
    }
    return new;
}

static CornuStatus walk(Plan *plan, int own, bool back, bool *nodes)
{
    const size_t count = (size_t)plan->graph->operator_count + (size_t)variable_count(plan);
    memset(nodes, 0, count * sizeof *nodes);
    memset(plan->tensors, 0, (size_t)plan->graph->tensor_count * sizeof *plan->tensors);
    while (pass(plan, own, back, nodes))
        if (plan->visits > MOST_VISITS)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its variables depend on each other in too "
                               "many ways");
    return CORNU_OK;
}

static void merge(Plan *plan, int from, int into)
{
    for (int i = 0; i < plan->graph->operator_count; i++)
        if (plan->groups[i] == from) plan->groups[i] = into;
    for (int i = 0; i < variable_count(plan); i++)
        if (plan->homes[i] == from) plan->homes[i] = into;
}

/* Takes what lies between group `own` and itself into it. */
static CornuStatus close(Plan *plan, int own, bool *changed)
{
    const int count = plan->graph->operator_count;
    bool      grown = true;
    while (grown) {
        grown = false;
        CORNU__TRY(walk(plan, own, false, plan->ahead));
        CORNU__TRY(walk(plan, own, true, plan->behind));
        for (int i = 0; i < count; i++)
            if (plan->groups[i] == NO_GROUP && plan->ahead[i] && plan->behind[i]) {
                plan->groups[i] = own;
                *changed = true;
            }
        for (int i = 0; i < variable_count(plan); i++) {
            const int home = plan->homes[i];
            if (home == own || !plan->ahead[count + home] || !plan->behind[count + home]) continue;
            merge(plan, home, own);
            *changed = grown = true;
        }
    }
    return CORNU_OK;
}

static CornuStatus find_groups(Plan *plan)
{
    bool changed = true;
    for (int i = 0; i < plan->graph->operator_count; i++) plan->groups[i] = NO_GROUP;
    for (int i = 0; i < variable_count(plan); i++) plan->homes[i] = i;
    while (changed) {
        changed = false;
        for (int i = 0; i < variable_count(plan); i++)
            if (plan->homes[i] == i) CORNU__TRY(close(plan, i, &changed));
    }
    return CORNU_OK;
}

/* ---- Nodes ---- */

/* Tensors of a group that others use, and what it needs. */
typedef struct {
    int variables[MOST_PARTS], variable_count;
    int results[MOST_PARTS], result_count;
} Group;

static bool is_made(const Plan *plan, int group, int tensor)
{
    const CornuLiteGraph *graph = plan->graph;
    for (int i = 0; i < variable_count(plan); i++)
        if (plan->homes[i] == group && graph->variables[i].now == tensor) return true;
    for (int i = 0; i < graph->operator_count; i++)
        for (int k = 0; plan->groups[i] == group && k < graph->operators[i].out_count; k++)
            if (graph->operators[i].out[k] == tensor) return true;
    return false;
}

static CornuStatus add_result(const Plan *plan, int id, Group *group, int tensor)
{
    if (tensor < 0 || !is_made(plan, id, tensor)) return CORNU_OK;
    for (int i = 0; i < group->result_count; i++)
        if (group->results[i] == tensor) return CORNU_OK;
    if (group->result_count == MOST_PARTS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "variables with more than %d results",
                           MOST_PARTS);
    group->results[group->result_count++] = tensor;
    return CORNU_OK;
}

static CornuStatus describe(const Plan *plan, int id, Group *group)
{
    const CornuLiteGraph *graph = plan->graph;
    *group = (Group){ .variable_count = 0 };
    for (int i = 0; i < variable_count(plan); i++) {
        if (plan->homes[i] != id) {
            CORNU__TRY(add_result(plan, id, group, graph->variables[i].next));
            continue;
        }
        if (group->variable_count == MOST_PARTS)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "more than %d variables that depend on each "
                               "other", MOST_PARTS);
        group->variables[group->variable_count++] = i;
    }
    for (int i = 0; i < graph->operator_count; i++)
        for (int k = 0; plan->groups[i] != id && k < graph->operators[i].in_count; k++)
            CORNU__TRY(add_result(plan, id, group, graph->operators[i].in[k]));
    for (int i = 0; i < graph->output_count; i++)
        CORNU__TRY(add_result(plan, id, group, graph->outputs[i].tensor));
    return group->result_count ? CORNU_OK
        : cornu__fail(CORNU_ERR_UNSUPPORTED, "the variable \"%s\" is read, but nothing depends "
                      "on it", graph->variables[group->variables[0]].name);
}

/* What the body takes from around it is computed before. */
static void prepare(const Plan *plan, int id)
{
    const CornuLiteGraph *graph = plan->graph;
    CornuOnnx            *to = plan->of->to;
    for (int i = 0; i < graph->operator_count; i++)
        for (int k = 0; plan->groups[i] == id && k < graph->operators[i].in_count; k++) {
            const int t = graph->operators[i].in[k];
            if (t >= 0 && graph->tensors[t].data) cornu__lite_value_of(plan->of, t);
        }
    for (int i = 0; i < variable_count(plan); i++)
        if (plan->homes[i] == id) cornu__lite_value_of(plan->of, graph->variables[i].next);
    for (int i = 1; i < to->count; i++) cornu__onnx_put_transpose(to, i);
}

static bool has_zeros(const CornuLiteTensor *tensor)
{
    const CornuLiteQuantization *q = &tensor->quantization;
    const unsigned char *bytes = tensor->data, zero = q->count ? (unsigned char)q->zero_points[0]
                                                               : 0;
    bool same = q->count <= 1;
    for (size_t i = 0; i < tensor->bytes && same; i++) same = bytes[i] == zero;
    return same;
}

static CornuStatus put_body(const Plan *plan, int id, const Group *group, int *out)
{
    const CornuLiteOnnx *of = plan->of;
    for (int i = 0; i < of->graph->operator_count; i++)
        if (plan->groups[i] == id) CORNU__TRY(cornu__lite_put_operator(of, i));
    if (of->to->label) of->to->label = "";
    for (int i = 0; i < group->variable_count; i++) {
        const int next = of->graph->variables[group->variables[i]].next;
        *out++ = one(of->to, "Identity", of->values[next]);
    }
    for (int i = 0; i < group->result_count; i++)
        *out++ = one(of->to, "Identity", of->values[group->results[i]]);
    return CORNU_OK;
}

static CornuStatus put_group(const Plan *plan, int id)
{
    const CornuLiteOnnx  *of = plan->of;
    CornuOnnx            *to = of->to;
    Group                 group;
    int                   initial[MOST_PARTS], in[MOST_PARTS], out[2 * MOST_PARTS] = { 0 };
    int64_t               begins[MOST_PARTS];
    const bool            floats[MOST_PARTS] = { false };
    CORNU__TRY(describe(plan, id, &group));
    for (int i = 0; i < group.variable_count; i++) {
        const int first = of->graph->variables[group.variables[i]].initial;
        initial[i] = cornu__lite_value_of(of, first);
        begins[i] = !has_zeros(&of->graph->tensors[first]);
    }
    prepare(plan, id);
    CornuOnnxBody body = cornu__onnx_begin_body(to, group.variable_count, in);
    const int     before = to->count;
    for (int i = 0; i < group.variable_count; i++)
        of->values[of->graph->variables[group.variables[i]].now] = in[i];
    const CornuStatus status = put_body(plan, id, &group, out);
    cornu__onnx_end_body(to, &body, in, floats, group.variable_count, out,
                         group.variable_count + group.result_count);
    for (int i = before; i < to->count; i++) to->values[i].source = 0;   /* are not seen outside */
    if (to->label) to->label = of->graph->variables[group.variables[0]].name;
    const CornuOnnxAttribute attributes[] = {
        { .name = "body", .graph = &body.body },
        { .name = "begins", .integers = begins, .count = group.variable_count },
    };
    if (!status) {
        const int made = cornu__onnx_node(to, "State", initial, group.variable_count, attributes, 2,
                                          group.result_count);
        for (int i = 0; i < group.result_count; i++) {
            of->values[group.results[i]] = made + i;
            of->quantized[group.results[i]] = CORNU_ONNX_NONE;
        }
    }
    cornu__onnx_free_body(&body);
    return status;
}

/* ---- Order ---- */

/* Whether all that operator i needs, or its group from outside, has a value; and marks what it
 * gives. */
static bool is_ready(const Plan *plan, const bool *known, const CornuLiteOperator *op)
{
    for (int i = 0; i < op->in_count; i++)
        if (op->in[i] >= 0 && !known[op->in[i]] && !plan->graph->tensors[op->in[i]].data)
            return false;
    return true;
}

static void give_all(const Plan *plan, int id, bool *known)
{
    const CornuLiteGraph *graph = plan->graph;
    for (int i = 0; i < variable_count(plan); i++)
        if (plan->homes[i] == id) known[graph->variables[i].now] = true;
    for (int i = 0; i < graph->operator_count; i++)
        for (int k = 0; plan->groups[i] == id && k < graph->operators[i].out_count; k++)
            known[graph->operators[i].out[k]] = true;
}

static bool is_group_ready(const Plan *plan, int id, const bool *known)
{
    const CornuLiteGraph *graph = plan->graph;
    for (int i = 0; i < variable_count(plan); i++) {
        const int next = graph->variables[i].next;
        if (plan->homes[i] == id && !known[next] && !graph->tensors[next].data &&
            !is_made(plan, id, next))
            return false;
    }
    for (int i = 0; i < graph->operator_count; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        for (int k = 0; plan->groups[i] == id && k < op->in_count; k++)
            if (op->in[k] >= 0 && !known[op->in[k]] && !graph->tensors[op->in[k]].data &&
                !is_made(plan, id, op->in[k]))
                return false;
    }
    return true;
}

/* One pass over what is not put yet; `left` says whether something was, `put` whether this one put
 * anything. */
static CornuStatus put_ready(Plan *plan, bool *known, bool *done, bool *put, bool *left)
{
    const CornuLiteGraph *graph = plan->graph;
    const int             count = graph->operator_count;
    *put = *left = false;
    for (int g = 0; g < variable_count(plan); g++) {
        if (plan->homes[g] != g || done[count + g]) continue;
        *left = true;
        if (!is_group_ready(plan, g, known)) continue;
        CORNU__TRY(put_group(plan, g));
        give_all(plan, g, known);
        done[count + g] = *put = true;
    }
    for (int i = 0; i < count; i++) {
        const CornuLiteOperator *op = &graph->operators[i];
        if (plan->groups[i] != NO_GROUP || done[i]) continue;
        *left = true;
        if (!is_ready(plan, known, op)) continue;
        CORNU__TRY(cornu__lite_put_operator(plan->of, i));
        for (int k = 0; k < op->out_count; k++) known[op->out[k]] = true;
        done[i] = *put = true;
    }
    return CORNU_OK;
}

static CornuStatus put_all(Plan *plan, bool *known, bool *done)
{
    const CornuLiteGraph *graph = plan->graph;
    bool                  put = true, left = true;
    for (int i = 0; i < graph->input_count; i++) known[graph->inputs[i].tensor] = true;
    for (int i = 0; i < graph->tensor_count; i++) known[i] |= graph->tensors[i].variable;
    while (left && put) CORNU__TRY(put_ready(plan, known, done, &put, &left));
    return left ? cornu__fail(CORNU_ERR_FORMAT, "its variables need each other") : CORNU_OK;
}

CornuStatus cornu__lite_put_operators(const CornuLiteOnnx *of)
{
    const CornuLiteGraph *graph = of->graph;
    const size_t operators = (size_t)graph->operator_count, tensors = (size_t)graph->tensor_count;
    const size_t variables = (size_t)graph->variable_count, nodes = operators + variables;
    if (!variables) {
        for (int i = 0; i < graph->operator_count; i++)
            CORNU__TRY(cornu__lite_put_operator(of, i));
        return CORNU_OK;
    }
    bool *flags = cornu__allocate(2 * tensors + 3 * nodes, sizeof *flags);
    int  *numbers = cornu__allocate(nodes, sizeof *numbers);
    Plan  plan = { .of = of, .graph = graph, .groups = numbers, .tensors = flags };
    CornuStatus status = flags && numbers ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status) {
        plan.homes = numbers + operators;
        plan.ahead = flags + 2 * tensors;
        plan.behind = plan.ahead + nodes;
        status = find_groups(&plan);
    }
    if (!status) status = put_all(&plan, flags + tensors, plan.behind + nodes);
    cornu__release(flags);
    cornu__release(numbers);
    return status;
}
