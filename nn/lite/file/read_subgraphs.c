/*
 * A graph of several subgraphs as one: a call is read in place, of a branch both sides are, and the
 * condition selects; a loop is read turn by turn; variables become states (graph.h).
 */
#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "read_internal.h"

enum {
    CALL = 31, IF = 118, WHILE = 119, DENSIFY = 124, CALL_ONCE = 129, VAR_HANDLE = 142,
    READ_VARIABLE = 143, ASSIGN_VARIABLE = 144,
    MOST_DEPTH = 8, MOST_VARIABLES = 256,
};

/* ---- Subgraphs ---- */

static bool is_argument(const int *args, int count, int number)
{
    for (int i = 0; i < count; i++)
        if (args[i] == number) return true;
    return false;
}

/* Numbers the tensors: those of the inputs are given, others are new ones of the graph. */
static CornuStatus read_tensors(CornuLiteReader *reader, const CornuFlatTable *subgraph,
                                const int *args, int arg_count)
{
    int *const            shared = reader->shared;
    CornuFlat            *from = &reader->from;
    const CornuFlatVector tensors = cornu__flat_vector_at(from, subgraph, 0, 4);
    const CornuFlatVector inputs = cornu__flat_vector_at(from, subgraph, 1, 4);
    reader->shared = NULL;   /* what is called from here has others */
    CORNU__TRY(cornu__lite_take(reader, 4 * tensors.count));
    reader->numbers = cornu__allocate(tensors.count, sizeof *reader->numbers);
    if (!reader->numbers) return CORNU_ERR_MEMORY;
    reader->number_count = (int)tensors.count;
    for (int i = 0; i < reader->number_count; i++) reader->numbers[i] = CORNU_LITE_UNREAD;
    if (args && inputs.count != (size_t)arg_count)
        return cornu__fail(CORNU_ERR_FORMAT, "the subgraph has %zu inputs, the operator gives %d",
                           inputs.count, arg_count);
    for (int i = 0; i < arg_count; i++) {
        const int32_t number = cornu__lite_integer(&inputs, (size_t)i);
        if (number < 0 || number >= reader->number_count || args[i] < 0)
            return cornu__lite_damaged("a number of a tensor that there is not");
        reader->numbers[number] = args[i];
    }
    for (size_t i = 0; i < tensors.count && !from->failed; i++) {
        const CornuFlatTable table = cornu__flat_element(from, &tensors, i);
        int                 *number = &reader->numbers[i];
        if (shared && shared[i] >= 0) *number = shared[i];
        if (*number == CORNU_LITE_UNREAD)
            CORNU__TRY(cornu__lite_read_tensor(reader, &table, number));
        if (shared && *number >= 0 && reader->graph->tensors[*number].data &&
            !is_argument(args, arg_count, *number))
            shared[i] = *number;
    }
    return CORNU_OK;
}

static CornuStatus read_parts(CornuLiteReader *reader, const CornuFlatTable *subgraph,
                              const int *args, int arg_count, int **outputs, int *output_count)
{
    CornuFlat            *from = &reader->from;
    const CornuFlatVector operators = cornu__flat_vector_at(from, subgraph, 3, 4);
    CORNU__TRY(read_tensors(reader, subgraph, args, arg_count));
    for (size_t i = 0; i < operators.count && !from->failed; i++) {
        const CornuFlatTable table = cornu__flat_element(from, &operators, i);
        CORNU__TRY(cornu__lite_read_operator(reader, &table, i));
    }
    return cornu__lite_read_numbers(reader, subgraph, 2, false, outputs, output_count);
}

CornuStatus cornu__lite_read_subgraph(CornuLiteReader *reader, int64_t index, const int *args,
                                      int arg_count, int **outputs, int *output_count)
{
    int *const numbers = reader->numbers, count = reader->number_count;
    *outputs = NULL;
    *output_count = 0;
    if (index < 0 || (size_t)index >= reader->subgraphs.count)
        return cornu__lite_damaged("a number of a subgraph that there is not");
    if (reader->depth == MOST_DEPTH)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "subgraphs nested more than %d deep", MOST_DEPTH);
    const CornuFlatTable subgraph = cornu__flat_element(&reader->from, &reader->subgraphs,
                                                        (size_t)index);
    reader->depth++;
    const CornuStatus status = read_parts(reader, &subgraph, args, arg_count, outputs,
                                          output_count);
    reader->depth--;
    if (reader->depth == 0) return status;   /* the numbers of the first are used later */
    cornu__release(reader->numbers);
    reader->numbers = numbers;
    reader->number_count = count;
    return status;
}

/* ---- Calls and branches ---- */

/* The number in the operator's options. */
static int32_t option(CornuLiteReader *reader, const CornuFlatTable *op, int slot)
{
    const CornuFlatTable options = cornu__flat_table_at(&reader->from, op, 4);
    return cornu__flat_i32(&reader->from, &options, slot, 0);
}

static CornuStatus copy_one(CornuLiteReader *reader, CornuLiteCode code, const int *in,
                            int in_count, int out)
{
    CornuLiteOptions options = { .extent_count = 0 };
    const CornuShape shape = reader->graph->tensors[out].shape;
    options.extent_count = shape.rank;
    for (int i = 0; i < shape.rank; i++)   /* -1: open */
        options.extents[i] = shape.extent[i] == CORNU_NONE ? -1 : (int32_t)shape.extent[i];
    CORNU__TRY(cornu__lite_take(reader, sizeof(CornuLiteOperator)));
    cornu__lite_add_operator(reader->graph, code, in, in_count, &out, 1, &options);
    return reader->graph->status;
}

static CornuStatus read_branch(CornuLiteReader *reader, int64_t index, const int *args,
                               int arg_count, int results, int **outputs)
{
    int       count;
    const int before = reader->graph->variable_count;
    int      *next = cornu__allocate((size_t)before + 1, sizeof *next);
    if (!next) return CORNU_ERR_MEMORY;
    for (int i = 0; i < before; i++) next[i] = reader->graph->variables[i].next;
    CornuStatus status = cornu__lite_read_subgraph(reader, index, args, arg_count, outputs, &count);
    for (int i = 0; i < reader->graph->variable_count && !status; i++)
        if (reader->graph->variables[i].next != (i < before ? next[i] : CORNU_LITE_NONE))
            status = cornu__fail(CORNU_ERR_UNSUPPORTED, "a branch that sets the variable \"%s\"",
                                 reader->graph->variables[i].name);
    cornu__release(next);
    if (!status && count != results)
        status = cornu__fail(CORNU_ERR_FORMAT, "a branch has %d outputs, the operator %d", count,
                             results);
    for (int i = 0; i < count && !status; i++)
        if ((*outputs)[i] < 0) status = cornu__lite_damaged("a branch without a result");
    return status;
}

/* The condition has one element; a side may have another rank than the result. */
static CornuStatus select_sides(CornuLiteReader *reader, int condition, int yes, int no, int out)
{
    const CornuLiteGraph *graph = reader->graph;
    int                   in[] = { condition, yes, no };
    CornuText             a, b;
    for (int i = 1; i < 3; i++) {
        const CornuLiteTensor side = graph->tensors[in[i]], to = graph->tensors[out];
        if (side.shape.rank == to.shape.rank) continue;
        if (cornu__lite_count(side.shape, 1) != cornu__lite_count(to.shape, 1))
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "a branch gives %s, the other %s",
                               cornu_shape_print(&a, side.shape), cornu_shape_print(&b, to.shape));
        CORNU__TRY(cornu__lite_take(reader, sizeof side));
        const int made = cornu__lite_add_tensor(reader->graph, side.name, side.dtype, to.shape);
        CORNU__TRY(reader->graph->status);
        CORNU__TRY(copy_one(reader, CORNU_LITE_RESHAPE, &in[i], 1, made));
        in[i] = made;
    }
    return copy_one(reader, CORNU_LITE_SELECT_V2, in, 3, out);
}

static CornuStatus read_if(CornuLiteReader *reader, const CornuFlatTable *op, const int *in,
                           int in_count, const int *out, int out_count)
{
    int *sides[2] = { NULL, NULL };
    if (in_count < 1 || in[0] < 0) return cornu__lite_damaged("a branch without a condition");
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < 2 && !status; i++)
        status = read_branch(reader, option(reader, op, i), in + 1, in_count - 1, out_count,
                             &sides[i]);
    for (int i = 0; i < out_count && !status; i++)
        status = out[i] < 0 ? cornu__lite_damaged("a branch without a result")
                            : select_sides(reader, in[0], sides[0][i], sides[1][i], out[i]);
    cornu__release(sides[0]);
    cornu__release(sides[1]);
    return status;
}

/* From now on result i of the operator is `number` of the graph. */
static CornuStatus stand_for(CornuLiteReader *reader, const CornuFlatTable *op, int i, int number)
{
    const CornuFlatVector out = cornu__flat_vector_at(&reader->from, op, 2, 4);
    const int32_t place = (size_t)i < out.count ? cornu__lite_integer(&out, (size_t)i) : -1;
    if (place < 0 || place >= reader->number_count || number == CORNU_LITE_OMITTED)
        return cornu__lite_damaged("a number of a tensor that there is not");
    reader->numbers[place] = number;
    return CORNU_OK;
}

static CornuStatus read_call(CornuLiteReader *reader, const CornuFlatTable *op, const int *in,
                             int in_count, int out_count)
{
    int        *results, count;
    CornuStatus status = cornu__lite_read_subgraph(reader, option(reader, op, 0), in, in_count,
                                                   &results, &count);
    if (!status && count != out_count)
        status = cornu__fail(CORNU_ERR_FORMAT, "the subgraph has %d outputs, the operator %d",
                             count, out_count);
    for (int i = 0; i < count && !status; i++) status = stand_for(reader, op, i, results[i]);
    cornu__release(results);
    return status;
}

static CornuStatus read_while(CornuLiteReader *reader, const CornuFlatTable *op, const int *in,
                              int in_count, int out_count)
{
    int        *results = NULL;
    CornuStatus status = in_count != out_count
        ? cornu__fail(CORNU_ERR_FORMAT, "the loop has %d inputs and %d outputs", in_count,
                      out_count)
        : cornu__lite_read_loop(reader, option(reader, op, 0), option(reader, op, 1), in, in_count,
                                &results);
    for (int i = 0; results && i < out_count && !status; i++)
        status = stand_for(reader, op, i, results[i]);
    cornu__release(results);
    return status;
}

/* Constants were read in full: the result is the operand. */
static CornuStatus densify(CornuLiteReader *reader, const CornuFlatTable *op, const int *in,
                           int in_count)
{
    if (in_count != 1 || in[0] < 0 || !reader->graph->tensors[in[0]].data)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "its operand is not a constant");
    return stand_for(reader, op, 0, in[0]);
}

/* ---- Variables ---- */

/* Handles are told apart by the names of their container and of the variable in it. */
static CornuStatus read_handle(CornuLiteReader *reader, const CornuFlatTable *op)
{
    CornuLiteGraph      *graph = reader->graph;
    const CornuFlatTable options = cornu__flat_table_at(&reader->from, op, 4);
    CornuLiteText        parts[2];
    char                 name[2 * CORNU_LITE_MOST_NAME + 2];
    int                  i = 0;
    const char *container = cornu__lite_text(reader, &parts[0], &options, 0, "");
    snprintf(name, sizeof name, "%s%s%s", container, *container ? "/" : "",
             cornu__lite_text(reader, &parts[1], &options, 1, ""));
    while (i < graph->variable_count && strcmp(graph->variables[i].name, name)) i++;
    if (i == MOST_VARIABLES)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "more than %d variables", MOST_VARIABLES);
    if (i == graph->variable_count)
        cornu__lite_add_variable(graph, name, CORNU_LITE_NONE, CORNU_LITE_NONE, CORNU_LITE_NONE);
    CORNU__TRY(graph->status);
    return stand_for(reader, op, 0, CORNU_LITE_HANDLE - i);
}

static CornuLiteVariable *variable_of(CornuLiteReader *reader, const int *in, int in_count,
                                      int most)
{
    const int i = in_count == most ? CORNU_LITE_HANDLE - in[0] : -1;
    if (i < 0 || i >= reader->graph->variable_count)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "its handle is not that of a variable");
    return &reader->graph->variables[i];
}

static CornuStatus read_variable(CornuLiteReader *reader, const CornuFlatTable *op, const int *in,
                                 int in_count, const int *out, int out_count)
{
    CornuLiteVariable *variable = variable_of(reader, in, in_count, 1);
    if (!variable) return cornu_error_take();
    if (out_count != 1 || out[0] < 0 || reader->graph->tensors[out[0]].data)
        return cornu__lite_damaged("a variable is read as no tensor");
    if (variable->next >= 0) return stand_for(reader, op, 0, variable->next);
    if (variable->now >= 0) return stand_for(reader, op, 0, variable->now);
    variable->now = out[0];
    return CORNU_OK;
}

static CornuStatus assign_variable(CornuLiteReader *reader, const int *in, int in_count)
{
    CornuLiteVariable *variable = variable_of(reader, in, in_count, 2);
    if (!variable) return cornu_error_take();
    if (in[1] < 0) return cornu__lite_damaged("a variable is set to no tensor");
    if (!reader->initial) {
        variable->next = in[1];
        return CORNU_OK;
    }
    if (!reader->graph->tensors[in[1]].data)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the first value of the variable \"%s\" is no "
                           "constant", variable->name);
    variable->initial = in[1];
    return CORNU_OK;
}

static CornuStatus call_once(CornuLiteReader *reader, const CornuFlatTable *op)
{
    int       *results, count;
    const bool before = reader->initial;
    reader->initial = true;
    const CornuStatus status = cornu__lite_read_subgraph(reader, option(reader, op, 0), NULL, 0,
                                                         &results, &count);
    reader->initial = before;
    cornu__release(results);
    return status;
}

/* Zeros like a tensor: what a variable without a first value begins with. */
static CornuStatus add_zeros(CornuLiteReader *reader, CornuLiteVariable *variable)
{
    CornuLiteGraph       *graph = reader->graph;
    const CornuLiteTensor now = graph->tensors[variable->now];
    for (int i = 0; i < now.shape.rank; i++)
        if (now.shape.extent[i] < 0 || now.shape.extent[i] > INT32_MAX)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the variable \"%s\" has an unknown extent",
                               variable->name);
    CORNU__TRY(cornu__lite_take(reader, sizeof now));
    const int zeros = cornu__lite_add_tensor(graph, variable->name, now.dtype, now.shape);
    CORNU__TRY(graph->status);
    CornuLiteTensor *made = &graph->tensors[zeros];
    int64_t          count = 1;
    for (int i = 0; i < now.shape.rank; i++)
        if (now.shape.extent[i] && count > INT32_MAX / now.shape.extent[i])
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the variable \"%s\" is too large",
                               variable->name);
        else count *= now.shape.extent[i];
    made->bytes = (size_t)count * cornu__lite_dtype_size(now.dtype);
    CORNU__TRY(cornu__lite_take(reader, made->bytes));
    if (!(made->data = cornu__allocate(made->bytes, 1))) return CORNU_ERR_MEMORY;
    const CornuLiteQuantization *scales = &now.quantization;
    for (int64_t i = 0; i < count && scales->count == 1 && made->dtype == CORNU_LITE_I8; i++)
        ((int8_t *)made->data)[i] = (int8_t)scales->zero_points[0];
    if (scales->count)
        cornu__lite_set_scales(graph, zeros, scales->scales, scales->zero_points, scales->count,
                               scales->axis);
    variable->initial = zeros;
    return graph->status;
}

static CornuStatus settle(CornuLiteReader *reader, CornuLiteVariable *variable)
{
    CornuLiteGraph *graph = reader->graph;
    if (variable->initial < 0) CORNU__TRY(add_zeros(reader, variable));
    const CornuLiteTensor *initial = &graph->tensors[variable->initial];
    if (initial->dtype != graph->tensors[variable->now].dtype)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the variable \"%s\" begins as %s and is read as "
                           "%s", variable->name, cornu__lite_dtype_name(initial->dtype),
                           cornu__lite_dtype_name(graph->tensors[variable->now].dtype));
    graph->tensors[variable->now].shape = initial->shape;
    if (variable->next < 0) variable->next = variable->now;
    return CORNU_OK;
}

CornuStatus cornu__lite_settle_variables(CornuLiteReader *reader)
{
    CornuLiteGraph *graph = reader->graph;
    int             kept = 0;
    for (int i = 0; i < graph->variable_count; i++) {
        CornuLiteVariable *variable = &graph->variables[i];
        if (variable->now < 0) {   /* nothing depends on it */
            cornu__release(variable->name);
            continue;
        }
        graph->variables[kept++] = *variable;
    }
    graph->variable_count = kept;
    for (int i = 0; i < kept; i++) CORNU__TRY(settle(reader, &graph->variables[i]));
    return CORNU_OK;
}

/* ---- By the operator ---- */

bool cornu__lite_is_control(int code)
{
    return code == CALL || code == IF || code == WHILE || code == DENSIFY || code == CALL_ONCE ||
           code == VAR_HANDLE || code == READ_VARIABLE || code == ASSIGN_VARIABLE;
}

CornuStatus cornu__lite_read_control(CornuLiteReader *reader, int code, const CornuFlatTable *op,
                                     const int *in, int in_count, const int *out, int out_count)
{
    CORNU__TRY(cornu__lite_take(reader, sizeof(CornuLiteVariable)));
    switch (code) {
    case VAR_HANDLE:      return read_handle(reader, op);
    case ASSIGN_VARIABLE: return assign_variable(reader, in, in_count);
    case READ_VARIABLE:
        if (!reader->initial) return read_variable(reader, op, in, in_count, out, out_count);
        break;
    case CALL_ONCE:       return call_once(reader, op);
    case CALL:            return read_call(reader, op, in, in_count, out_count);
    case DENSIFY:         return densify(reader, op, in, in_count);
    case IF:              return read_if(reader, op, in, in_count, out, out_count);
    default:              return read_while(reader, op, in, in_count, out_count);
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "a variable is read for the first value of another");
}
