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

enum { MOST_VISITS = 1 << 30, MOST_PARTS = 64 };

/* A variable, which makes its value of its next one, or an operator. */
typedef struct {
    const int *in, *out;
    int        in_count, out_count;
    int        home;          /* the first variable of its group; an operator without one: itself */
} Part;

/* Parts are the variables and then the operators. */
typedef struct {
    const CornuLiteOnnx  *of;
    const CornuLiteGraph *graph;
    Part *parts;
    int   count;
    bool *tensors;            /* reached */
    bool *ahead, *behind;     /* homes on ways from and to a group */
    long  visits;
} Plan;

static bool is_variable(const Plan *plan, int i) { return i < plan->graph->variable_count; }

/* ---- Groups ---- */

/* One pass over the parts in their order, or with `back` in the other one, from what group `own`
 * gives, or to what it needs. A group that is reached gives all its results. True if that reached
 * anything new. */
static bool pass(Plan *plan, int own, bool back, bool *homes)
{
    bool new = false;
    plan->visits += plan->count;
    for (int k = 0; k < plan->count; k++) {
        const Part *part = &plan->parts[back ? plan->count - 1 - k : k];
        const int  *from = back ? part->out : part->in, *to = back ? part->in : part->out;
        const int   from_count = back ? part->out_count : part->in_count;
        const int   to_count = back ? part->in_count : part->out_count;
        bool        hit = part->home == own || homes[part->home];
        for (int i = 0; i < from_count; i++) hit |= from[i] >= 0 && plan->tensors[from[i]];
        if (!hit) continue;
        new |= !homes[part->home];
        homes[part->home] = true;
        for (int i = 0; i < to_count; i++)
            if (to[i] >= 0 && !plan->tensors[to[i]]) new = plan->tensors[to[i]] = true;
    }
    return new;
}

static CornuStatus walk(Plan *plan, int own, bool back, bool *homes)
{
    memset(homes, 0, (size_t)plan->count * sizeof *homes);
    memset(plan->tensors, 0, (size_t)plan->graph->tensor_count * sizeof *plan->tensors);
    while (pass(plan, own, back, homes))
        if (plan->visits > MOST_VISITS)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "its variables depend on each other in too "
                               "many ways");
    return CORNU_OK;
}

/* Takes what lies between group `own` and itself into it. */
static CornuStatus close(Plan *plan, int own, bool *changed)
{
    bool grown = true;
    while (grown) {
        grown = false;
        CORNU__TRY(walk(plan, own, false, plan->ahead));
        CORNU__TRY(walk(plan, own, true, plan->behind));
        for (int i = 0; i < plan->count; i++) {
            const int home = plan->parts[i].home;
            if (home == own || !plan->ahead[home] || !plan->behind[home]) continue;
            plan->parts[i].home = own;
            *changed = grown = true;
        }
    }
    return CORNU_OK;
}

static CornuStatus find_groups(Plan *plan)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (int i = 0; is_variable(plan, i); i++)
            if (plan->parts[i].home == i) CORNU__TRY(close(plan, i, &changed));
    }
    return CORNU_OK;
}

/* ---- Nodes ---- */

/* Tensors of a group that others use, and its variables. */
typedef struct {
    int variables[MOST_PARTS], variable_count;
    int results[MOST_PARTS], result_count;
} Group;

static bool is_made(const Plan *plan, int home, int tensor)
{
    for (int i = 0; i < plan->count; i++)
        for (int k = 0; plan->parts[i].home == home && k < plan->parts[i].out_count; k++)
            if (plan->parts[i].out[k] == tensor) return true;
    return false;
}

static CornuStatus add_result(const Plan *plan, int home, Group *group, int tensor)
{
    if (tensor < 0 || !is_made(plan, home, tensor)) return CORNU_OK;
    for (int i = 0; i < group->result_count; i++)
        if (group->results[i] == tensor) return CORNU_OK;
    if (group->result_count == MOST_PARTS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "variables with more than %d results",
                           MOST_PARTS);
    group->results[group->result_count++] = tensor;
    return CORNU_OK;
}

static CornuStatus describe(const Plan *plan, int home, Group *group)
{
    const CornuLiteGraph *graph = plan->graph;
    *group = (Group){ .variable_count = 0 };
    for (int i = 0; i < plan->count; i++) {
        for (int k = 0; plan->parts[i].home != home && k < plan->parts[i].in_count; k++)
            CORNU__TRY(add_result(plan, home, group, plan->parts[i].in[k]));
        if (plan->parts[i].home != home || !is_variable(plan, i)) continue;
        if (group->variable_count == MOST_PARTS)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "more than %d variables that depend on each "
                               "other", MOST_PARTS);
        group->variables[group->variable_count++] = i;
    }
    for (int i = 0; i < graph->output_count; i++)
        CORNU__TRY(add_result(plan, home, group, graph->outputs[i].tensor));
    return group->result_count ? CORNU_OK
        : cornu__fail(CORNU_ERR_UNSUPPORTED, "the variable \"%s\" is read, but nothing depends "
                      "on it", graph->variables[group->variables[0]].name);
}

/* What the body takes from around it is computed before. */
static void prepare(const Plan *plan, int home)
{
    CornuOnnx *to = plan->of->to;
    for (int i = 0; i < plan->count; i++)
        for (int k = 0; plan->parts[i].home == home && k < plan->parts[i].in_count; k++)
            if (plan->parts[i].in[k] >= 0) cornu__lite_value_of(plan->of, plan->parts[i].in[k]);
    for (int i = 1; i < to->count; i++) cornu__onnx_put_pending(to, i);
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

static CornuStatus put_body(const Plan *plan, int home, const Group *group, int *out)
{
    const CornuLiteOnnx *of = plan->of;
    for (int i = of->graph->variable_count; i < plan->count; i++)
        if (plan->parts[i].home == home)
            CORNU__TRY(cornu__lite_put_operator(of, i - of->graph->variable_count));
    if (of->to->label) of->to->label = "";
    for (int i = 0; i < group->variable_count; i++) {
        const int next = of->graph->variables[group->variables[i]].next;
        *out++ = one(of->to, "Identity", of->values[next]);
    }
    for (int i = 0; i < group->result_count; i++)
        *out++ = one(of->to, "Identity", of->values[group->results[i]]);
    return CORNU_OK;
}

static CornuStatus put_group(const Plan *plan, int home)
{
    const CornuLiteOnnx  *of = plan->of;
    CornuOnnx            *to = of->to;
    Group                 group;
    int                   initial[MOST_PARTS], in[MOST_PARTS], out[2 * MOST_PARTS] = { 0 };
    int64_t               begins[MOST_PARTS];
    int                   types[2 * MOST_PARTS];
    CORNU__TRY(describe(plan, home, &group));
    for (int i = 0; i < group.variable_count; i++) {
        const int first = of->graph->variables[group.variables[i]].initial;
        initial[i] = cornu__lite_value_of(of, first);
        begins[i] = !has_zeros(&of->graph->tensors[first]);
    }
    for (int i = 0; i < 2 * MOST_PARTS; i++) types[i] = CORNU_ONNX_FLOAT;
    prepare(plan, home);
    CornuOnnxBody body = cornu__onnx_begin_body(to, group.variable_count, in);
    for (int i = 0; i < group.variable_count; i++)
        of->values[of->graph->variables[group.variables[i]].now] = in[i];
    const CornuStatus status = put_body(plan, home, &group, out);
    cornu__onnx_end_body(to, &body, in, types, group.variable_count, out, types,
                         group.variable_count + group.result_count);
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

/* Whether all that a group, or an operator of none, needs from outside has a value. */
static bool is_ready(const Plan *plan, int home, const bool *known)
{
    for (int i = 0; i < plan->count; i++)
        for (int k = 0; plan->parts[i].home == home && k < plan->parts[i].in_count; k++) {
            const int t = plan->parts[i].in[k];
            const bool own = is_variable(plan, home) && t >= 0 && is_made(plan, home, t);
            if (t >= 0 && !known[t] && !plan->graph->tensors[t].data && !own) return false;
        }
    return true;
}

/* One pass over what is not put yet; `left` says whether something was, `put` whether this one put
 * anything. */
static CornuStatus put_ready(Plan *plan, bool *known, bool *done, bool *put, bool *left)
{
    *put = *left = false;
    for (int i = 0; i < plan->count; i++) {
        if (plan->parts[i].home != i || done[i]) continue;
        *left = true;
        if (!is_ready(plan, i, known)) continue;
        CORNU__TRY(is_variable(plan, i)
                       ? put_group(plan, i)
                       : cornu__lite_put_operator(plan->of, i - plan->graph->variable_count));
        for (int k = 0; k < plan->count; k++)
            for (int n = 0; plan->parts[k].home == i && n < plan->parts[k].out_count; n++)
                known[plan->parts[k].out[n]] = true;
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

static void list_parts(Plan *plan)
{
    const CornuLiteGraph *graph = plan->graph;
    for (int i = 0; i < plan->count; i++) {
        if (is_variable(plan, i)) {
            const CornuLiteVariable *variable = &graph->variables[i];
            plan->parts[i] = (Part){ &variable->next, &variable->now, 1, 1, i };
        } else {
            const CornuLiteOperator *op = &graph->operators[i - graph->variable_count];
            plan->parts[i] = (Part){ op->in, op->out, op->in_count, op->out_count, i };
        }
    }
}

CornuStatus cornu__lite_put_operators(const CornuLiteOnnx *of)
{
    const CornuLiteGraph *graph = of->graph;
    const size_t          tensors = (size_t)graph->tensor_count;
    const size_t          count = (size_t)graph->operator_count + (size_t)graph->variable_count;
    if (!graph->variable_count) {
        for (int i = 0; i < graph->operator_count; i++)
            CORNU__TRY(cornu__lite_put_operator(of, i));
        return CORNU_OK;
    }
    bool *flags = cornu__allocate(2 * tensors + 3 * count, sizeof *flags);
    Plan  plan = { .of = of, .graph = graph, .count = (int)count, .tensors = flags,
                   .parts = cornu__allocate(count, sizeof *plan.parts) };
    CornuStatus status = flags && plan.parts ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status) {
        plan.ahead = flags + 2 * tensors;
        plan.behind = plan.ahead + count;
        list_parts(&plan);
        status = find_groups(&plan);
    }
    if (!status) status = put_all(&plan, flags + tensors, plan.behind + count);
    cornu__release(flags);
    cornu__release(plan.parts);
    return status;
}
