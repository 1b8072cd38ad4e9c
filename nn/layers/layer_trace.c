/*
 * The types of a layer's results, from traces of its call on graphs that never run.
 *
 * What is unknown is replaced by two numbers in turn: an extent of a result that differs depends on
 * it. Most layers compute each row of a batch alone, so that one row stands for it. Operations may
 * work along axis 0, which then is an axis like others; whether one does is seen in its ops.
 */
#include "../../device/rows/rows.h"
#include "../../tensor/graph_internal.h"
#include "steps/past_internal.h"

#include <stdio.h>
#include <string.h>

/* What stands for the unknown extents of operands: axis 0, and others. `steps`, unless 0, for axis
 * 1 of all operands, of one row each. */
typedef struct {
    int64_t rows, unknown, steps;
} Numbers;

/* A trace of a layer and its results. */
typedef struct {
    CornuGraph  *graph;
    CornuTensor *in[CORNU_MAX_LAYER_TENSORS], *out[CORNU_MAX_LAYER_TENSORS];
    CornuTensor *position;
} Trace;

/* Weights and arrays of a graph that is never run, wherever they are: values of their types, which
 * take no memory. */
static CornuTensor *weight_of(void *context, const CornuWeight *weight)
{
    return cornu__graph_parameter(context, weight->type);
}

static CornuTensor *array_of(void *context, CornuArray array)
{
    return cornu__graph_parameter(context, array.type);
}

/* An operand of one row: the parameter, *steps, has its axis 1 as axis 0. */
static CornuTensor *of_steps(CornuGraph *graph, CornuType type, CornuTensor **steps)
{
    const CornuShape row = type.shape;
    type.shape.rank--;
    for (int i = 0; i < type.shape.rank; i++) type.shape.extent[i] = row.extent[i + 1];
    return cornu_op_reshape(*steps = cornu__graph_parameter(graph, type), row);
}

static CornuStatus record(CornuLayer *layer, const CornuType *in, int in_count, Numbers numbers,
                          Trace *trace)
{
    CornuTensor *x[CORNU_MAX_LAYER_TENSORS];
    CornuGraph *graph = trace->graph;
    if (!graph) return cornu_error_take();
    CornuTensor *scalar = cornu__graph_parameter(graph, cornu_scalar(CORNU_I64));
    trace->position = scalar;
    const CornuDescription types = { graph, weight_of, array_of };
    CornuCall    call = { .graph = graph, .count = scalar, .total = scalar, .seed = scalar,
                          .iteration = scalar, .position = scalar, .shapes_only = true,
                          .description = &types };
    for (int i = 0; i < in_count; i++) {
        CornuType type = in[i];
        for (int k = 0; k < type.shape.rank; k++)
            if (type.shape.extent[k] == CORNU_NONE)
                type.shape.extent[k] = k == 0 ? numbers.rows : numbers.unknown;
        if (numbers.steps) type.shape.extent[1] = numbers.steps;
        x[i] = numbers.steps ? of_steps(graph, type, &trace->in[i])
                             : (trace->in[i] = cornu__graph_parameter(graph, type));
    }
    cornu_layer_call_many(layer, &call, x, in_count, trace->out, cornu_layer_outputs(layer));
    return cornu_error_take();
}

/* Calls `then` with a trace in a graph of the reference device. */
typedef CornuStatus ThenDo(CornuLayer *layer, const Trace *trace, void *context);

static CornuStatus with_trace(CornuLayer *layer, const CornuType *in, int in_count,
                              Numbers numbers, ThenDo *then, void *context)
{
    CornuDevice *device = cornu_device_open("reference");
    Trace        trace = { .graph = cornu_graph_create(device) };
    CornuStatus  status = record(layer, in, in_count, numbers, &trace);
    if (!status) status = then(layer, &trace, context);
    cornu_graph_free(trace.graph);
    cornu_device_close(device);
    return status;
}

static CornuStatus read_types(CornuLayer *layer, const Trace *trace, void *context)
{
    CornuType *out = context;
    for (int i = 0; i < cornu_layer_outputs(layer); i++) out[i] = cornu_tensor_type(trace->out[i]);
    return CORNU_OK;
}

/* Extents that differ between the outputs of two traces depend on an unknown one. */
static CornuStatus compare(const CornuLayer *layer, CornuType *out, const CornuType *other)
{
    for (int i = 0; i < cornu_layer_outputs(layer); i++) {
        CornuShape *shape = &out[i].shape;
        if (shape->rank != other[i].shape.rank)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: the rank of its output depends on an "
                               "unknown extent", cornu_layer_name(layer));
        for (int k = 0; k < shape->rank; k++)
            if (shape->extent[k] != other[i].shape.extent[k]) shape->extent[k] = CORNU_NONE;
    }
    return CORNU_OK;
}

static bool has_unknown(const CornuType *in, int in_count, int first)
{
    for (int i = 0; i < in_count; i++)
        for (int k = first; k < in[i].shape.rank; k++)
            if (in[i].shape.extent[k] == CORNU_NONE) return true;
    return false;
}

/* ---- Layers that compute each row alone ---- */

/* Axis 0 of the results is that of the operands, of which it is unknown if it is of one. */
static CornuStatus check_rows(const CornuLayer *layer, const CornuType *in, int in_count,
                              CornuType *out)
{
    CornuText text;
    int64_t   rows = in[0].shape.rank > 0 ? in[0].shape.extent[0] : CORNU_NONE;
    for (int i = 1; i < in_count; i++)
        if (in[i].shape.rank > 0 && in[i].shape.extent[0] == CORNU_NONE) rows = CORNU_NONE;
    for (int i = 0; i < cornu_layer_outputs(layer); i++) {
        if (out[i].shape.rank < 1 || out[i].shape.extent[0] != 1)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: the output of a batch of one row is %s, "
                               "expected one row",
                               cornu_layer_name(layer), cornu_shape_print(&text, out[i].shape));
        out[i].shape.extent[0] = rows;
    }
    return CORNU_OK;
}

static CornuStatus trace_row(CornuLayer *layer, const CornuType *in, int in_count, int64_t unknown,
                             CornuType *out)
{
    CornuType row[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < in_count; i++) {
        row[i] = in[i];
        row[i].shape.extent[0] = 1;
    }
    CORNU__TRY(with_trace(layer, row, in_count, (Numbers){ 1, unknown, 0 }, read_types, out));
    return check_rows(layer, in, in_count, out);
}

static int count_unknown(CornuShape shape)
{
    int count = 0;
    for (int k = 0; k < shape.rank; k++) count += shape.extent[k] == CORNU_NONE;
    return count;
}

/* Whether an output has fewer unknown extents than an operand of no more axes: a stride as long as
 * the extents that were tried gives the same for both. */
static bool loses_unknown(const CornuLayer *layer, const CornuType *in, int in_count,
                          const CornuType *out)
{
    bool loses = false;
    for (int i = 0; i < cornu_layer_outputs(layer); i++)
        for (int k = 0; k < in_count; k++)
            loses |= out[i].shape.rank >= in[k].shape.rank &&
                     count_unknown(out[i].shape) < count_unknown(in[k].shape);
    return loses;
}

/* Longer than strides are. */
enum { LONG_EXTENT = 1 << 15 };

static CornuStatus trace_rows_apart(CornuLayer *layer, const CornuType *in, int in_count,
                                    int64_t unknown, CornuType *out)
{
    CornuType other[CORNU_MAX_LAYER_TENSORS];
    CORNU__TRY(trace_row(layer, in, in_count, unknown, out));
    if (!has_unknown(in, in_count, 1)) return CORNU_OK;
    CORNU__TRY(trace_row(layer, in, in_count, 2 * unknown, other));
    CORNU__TRY(compare(layer, out, other));
    const bool longer = unknown < LONG_EXTENT && loses_unknown(layer, in, in_count, out) &&
                        !trace_row(layer, in, in_count, LONG_EXTENT, other);
    return longer ? compare(layer, out, other) : CORNU_OK;
}

/* ---- Layers for which axis 0 is an axis like others ---- */

/* Primes tell most about rows (rows.h); they do not fit where an axis 0 must be even, or a multiple
 * of another number, as where several rows become one: the last are multiples of all numbers up to
 * 12. An operation may have been made for one row. */
static const int64_t row_counts[][2] = { { 13, 17 }, { 32, 64 }, { 27720, 55440 } };

/* Two traces that differ in the number of rows alone. */
typedef struct {
    const CornuType *in;
    int              in_count;
    Numbers          numbers, others;
    CornuType       *out, other[CORNU_MAX_LAYER_TENSORS];
    const Trace     *first;
} Compared;

/* Whether a row of a result depends on other rows, or on how many there are: then a batch must not
 * be padded. */
static CornuStatus find_mixing(CornuLayer *layer, const Compared *compared, const Trace *second)
{
    CornuRowsFound      found = { .independent = true };
    CornuValue          results[CORNU_MAX_LAYER_TENSORS];
    const CornuProgram *program = compared->first->graph->program;
    bool                any = false;
    bool *of_rows = cornu__allocate((size_t)program->input_count + 1, sizeof *of_rows);
    if (!of_rows) return CORNU_ERR_MEMORY;
    for (int i = 0; i < compared->in_count; i++) {
        const CornuShape shape = compared->in[i].shape;
        const bool       has = shape.rank > 0 && shape.extent[0] == CORNU_NONE;
        of_rows[program->values[compared->first->in[i]->value].index] = has;
        any |= has;
    }
    of_rows[program->values[compared->first->position->value].index] = true;
    for (int i = 0; i < cornu_layer_outputs(layer); i++)
        results[i] = compared->first->out[i]->value;
    CornuStatus status = CORNU_OK;
    if (any)
        status = cornu__rows_find(program, compared->numbers.rows, of_rows, results,
                                  cornu_layer_outputs(layer), &found);
    cornu__release(of_rows);
    layer->whole_batch |= any && (!found.independent ||
                                  cornu__rows_counted(program, second->graph->program));
    return status;
}

/* The library for inference does not look, and pads no batch of such a layer. */
static CornuStatus (*const look)(CornuLayer *layer, const Compared *compared,
                                 const Trace *second) = CORNU__FULL(find_mixing, NULL);

static CornuStatus then_compare(CornuLayer *layer, const Trace *second, void *context)
{
    Compared *compared = context;
    CORNU__TRY(read_types(layer, second, compared->other));
    CORNU__TRY(compare(layer, compared->out, compared->other));
    if (look) return look(layer, compared, second);
    layer->whole_batch = true;
    return CORNU_OK;
}

static CornuStatus then_second(CornuLayer *layer, const Trace *first, void *context)
{
    Compared *compared = context;
    compared->first = first;
    CornuStatus status = read_types(layer, first, compared->out);
    if (!status)
        status = with_trace(layer, compared->in, compared->in_count, compared->others,
                            then_compare, compared);
    compared->first = NULL;
    return status;
}

/* For operands whose axis 0 is not a batch but a length that is axis 1 of another one, as in a mask
 * of all pairs of steps: one number stands for all unknown extents. */
static CornuStatus trace_alike(CornuLayer *layer, const CornuType *in, int in_count,
                               int64_t unknown, CornuType *out)
{
    const Numbers numbers = { unknown, unknown, 0 };
    const Numbers others = { 2 * unknown, 2 * unknown, 0 };
    CornuType     other[CORNU_MAX_LAYER_TENSORS];
    CORNU__TRY(with_trace(layer, in, in_count, numbers, read_types, out));
    CORNU__TRY(with_trace(layer, in, in_count, others, read_types, other));
    return compare(layer, out, other);
}

/* Says what the number is that stands for an unknown axis 0, where the message has it. */
static CornuStatus tell_rows(const CornuFailure *failure, const CornuType *in, int in_count)
{
    char              number[24];
    const CornuStatus status = cornu__failure_tell(failure);
    snprintf(number, sizeof number, "(%lld,", (long long)row_counts[0][0]);
    if (status != CORNU_ERR_SHAPE || !has_unknown(in, in_count, 0) ||
        !strstr(cornu_error_message(), number))
        return status;
    return cornu__fail(status, "%s; %lld stands for the rows of the batch, which are not known: -1 "
                       "in a shape takes them", cornu_error_message(),
                       (long long)row_counts[0][0]);
}

static CornuStatus trace_any_axis(CornuLayer *layer, const CornuType *in, int in_count,
                                  int64_t unknown, CornuType *out)
{
    CornuFailure failure = { .status = CORNU_OK };
    CornuType    other[CORNU_MAX_LAYER_TENSORS];
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++) {
        const int64_t *rows = row_counts[i];
        Compared compared = { .in = in, .in_count = in_count, .out = out,
                              .numbers = { rows[0], unknown, 0 },
                              .others = { rows[1], unknown, 0 } };
        CornuStatus status = with_trace(layer, in, in_count, compared.numbers, then_second,
                                        &compared);
        if (!status && !has_unknown(in, in_count, 1)) return CORNU_OK;
        if (!status)
            status = with_trace(layer, in, in_count, (Numbers){ rows[0], 2 * unknown, 0 },
                                read_types, other);
        if (!status) return compare(layer, out, other);
        if (!failure.status) cornu__failure_keep(&failure, status);
    }
    layer->whole_batch = true;
    if (!trace_alike(layer, in, in_count, unknown, out)) return CORNU_OK;
    if (!trace_rows_apart(layer, in, in_count, unknown, out)) return CORNU_OK;
    return tell_rows(&failure, in, in_count);
}

/* ---- Layers that act on each step alone ---- */

/* Primes, so that no other extent is a multiple of one by accident. */
enum { STEPS = 13, OTHER_STEPS = 17 };

typedef struct {
    const CornuType *in;
    int              in_count;
    CornuProgram    *program;  /* what the results of the first trace need */
    CornuText        why;      /* "": each step is computed alone */
} Stepwise;

/* The results (1, T, …) with their steps as axis 0; false for others. */
static bool results_by_steps(const CornuLayer *layer, const Trace *trace, int64_t steps,
                             CornuTensor **results)
{
    for (int i = 0; i < cornu_layer_outputs(layer); i++) {
        CornuShape shape = cornu_tensor_shape(trace->out[i]);
        if (shape.rank < 2 || shape.extent[1] != steps) return false;
        shape.rank--;
        for (int k = 0; k < shape.rank; k++) shape.extent[k] = shape.extent[k + 1];
        shape.extent[shape.rank] = 0;
        if (!(results[i] = cornu_op_reshape(trace->out[i], shape))) return false;
    }
    return true;
}

static CornuStatus say(Stepwise *stepwise, const char *why, const char *op)
{
    snprintf(stepwise->why.text, sizeof stepwise->why.text, "%s%s%.40s%s", why, op ? " (" : "",
             op ? op : "", op ? ")" : "");
    return CORNU_OK;
}

static CornuStatus then_count_steps(CornuLayer *layer, const Trace *second, void *context)
{
    Stepwise    *stepwise = context;
    CornuTensor *results[CORNU_MAX_LAYER_TENSORS];
    if (!results_by_steps(layer, second, OTHER_STEPS, results))
        return say(stepwise, "gives no step for each of theirs", NULL);
    CornuProgram *program = cornu__graph_lowered(second->graph, results,
                                                 cornu_layer_outputs(layer));
    if (!program) return cornu_error_take();
    const CornuProgramOp *op = cornu__rows_counted(stepwise->program, program);
    if (op) say(stepwise, "computes with the number of steps", cornu_program_op_name(op));
    cornu_program_free(program);
    return CORNU_OK;
}

static CornuStatus then_look_at_steps(CornuLayer *layer, const Trace *first, void *context)
{
    Stepwise      *stepwise = context;
    CornuRowsFound found = { .independent = false };
    CornuTensor   *results[CORNU_MAX_LAYER_TENSORS];
    CornuValue     values[CORNU_MAX_LAYER_TENSORS];
    const int      count = cornu_layer_outputs(layer);
    if (!results_by_steps(layer, first, STEPS, results))
        return say(stepwise, "gives no step for each of theirs", NULL);
    const CornuProgram *program = first->graph->program;
    bool *of_steps = cornu__allocate((size_t)program->input_count + 1, sizeof *of_steps);
    if (!of_steps) return CORNU_ERR_MEMORY;
    for (int i = 0; i < stepwise->in_count; i++)
        of_steps[program->values[first->in[i]->value].index] = true;
    for (int i = 0; i < count; i++) values[i] = results[i]->value;
    const CornuStatus status = cornu__rows_find(program, STEPS, of_steps, values, count, &found);
    cornu__release(of_steps);
    if (status) return status;
    if (!found.independent)
        return say(stepwise, "computes along the steps",
                   found.mixed_by ? cornu_program_op_name(found.mixed_by) : NULL);
    stepwise->program = cornu__graph_lowered(first->graph, results, count);
    if (!stepwise->program) return cornu_error_take();
    const CornuStatus counted = with_trace(layer, stepwise->in, stepwise->in_count,
                                           (Numbers){ 1, 1, OTHER_STEPS }, then_count_steps,
                                           stepwise);
    cornu_program_free(stepwise->program);
    return counted;
}

CornuStatus cornu__past_refuse(const CornuLayer *layer, const char *why)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s (%s) %s: a generator takes layers that act on "
                       "each step alone, causal attention, causal convolutions and recurrences "
                       "that return sequences", cornu_layer_name(layer), layer->kind->class_name,
                       why);
}

/* As rows of a batch are looked at: with one row the steps are the first axis. */
CornuStatus cornu__layer_check_steps(CornuLayer *layer, const CornuCall *call,
                                     CornuTensor *const *in, int in_count)
{
    CornuType types[CORNU_MAX_LAYER_TENSORS];
    Stepwise  stepwise = { .in = types, .in_count = in_count };
    if (call->past->checked) return CORNU_OK;
    for (int i = 0; i < in_count; i++) {
        types[i] = cornu_tensor_type(in[i]);
        if (types[i].shape.rank < 2)
            return cornu__past_refuse(layer, "gets a tensor without steps");
        types[i].shape.extent[0] = 1;
    }
    CornuStatus status = with_trace(layer, types, in_count, (Numbers){ 1, 1, STEPS },
                                    then_look_at_steps, &stepwise);
    if (status == CORNU_ERR_MEMORY || (!status && !stepwise.why.text[0])) return status;
    return cornu__past_refuse(layer, status ? cornu_error_message() : stepwise.why.text);
}

/* ---- All layers ---- */

bool cornu__shape_fits(CornuShape given, CornuShape want)
{
    bool fits = given.rank == want.rank;
    for (int i = 1; i < want.rank && fits; i++)
        fits = want.extent[i] == CORNU_NONE || given.extent[i] == want.extent[i];
    return fits;
}

/* Strings are moved as numbers are. */
static CornuStatus trace_strings(CornuLayer *layer, const CornuType *in, int in_count,
                                 CornuType *out)
{
    CornuType numbers[CORNU_MAX_LAYER_TENSORS];
    for (int i = 0; i < in_count; i++) {
        numbers[i] = cornu_type_from(CORNU_I64, in[i].shape);
        if (in[i].dtype != CORNU_STRING)
            return cornu__fail(CORNU_ERR_DTYPE, "%s: some of the operands are strings, expected "
                               "all or none", cornu_layer_name(layer));
    }
    CORNU__TRY(cornu__layer_trace(layer, numbers, in_count, out));
    out[0].dtype = CORNU_STRING;
    return CORNU_OK;
}

/* Unknown extents are n and 2 n. As some layers refuse long sequences (position_embedding, of 2
 * positions or more) and others short ones (a large kernel, or networks for DNA, which crop 5,000
 * bases at each end), several pairs are tried. Powers of two divide by the usual pools and
 * strides. */
CornuStatus cornu__layer_trace(CornuLayer *layer, const CornuType *in, int in_count,
                               CornuType *out)
{
    static const int64_t tried[] = { 64, 512, 8, 4, 2, 1, 4096, 1 << 15, 1 << 18 };
    const bool   any_axis = layer->kind->any_axis ||
                            (layer->kind->one_image && in[0].shape.rank == 3);
    CornuFailure failure = { .status = CORNU_OK };
    if (layer->kind->types)
        return cornu__fail_prefix(layer->kind->types(layer, in, in_count, out),
                                  cornu_layer_name(layer));
    if (layer->moved_to_host && in[0].dtype == CORNU_STRING)
        return trace_strings(layer, in, in_count, out);
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        CornuStatus status = any_axis
                                 ? trace_any_axis(layer, in, in_count, tried[i], out)
                                 : trace_rows_apart(layer, in, in_count, tried[i], out);
        if (!status) return CORNU_OK;
        if (!has_unknown(in, in_count, 1)) return status;
        if (!failure.status) cornu__failure_keep(&failure, status);
    }
    return cornu__failure_tell(&failure);
}
