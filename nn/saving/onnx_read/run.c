/* Running nodes: operands, results, and what all operators share. */
#include "registry_internal.h"
#include "run_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../tensor/tensor_internal.h"

/* ---- Rules ---- */

CornuStatus cornu__cannot(const char *what, const char *why)
{
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s is not supported, %s", what, why);
}

static const CornuReadRow *row_named(const CornuReadRow *const *families, const char *domain,
                                     const char *op)
{
    const size_t length = strlen(domain);
    for (; *families; families++)
        for (const CornuReadRow *row = *families; row->op; row++)
            if (!strncmp(row->op, domain, length) && (!length || row->op[length] == '.') &&
                !strcmp(row->op + length + (length > 0), op))
                return row;
    return NULL;
}

CornuStatus cornu__read_row_of(const CornuReadRow *const *families, const CornuReadNode *node,
                               const CornuReadRow **row)
{
    const char *domain = strcmp(node->domain, "ai.onnx") ? node->domain : "";
    *row = row_named(families, domain, node->op);
    if (!*row && cornu__registered_node(node))
        *row = row_named(families, "", CORNU_READ_REGISTERED);
    if (*row) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "the operator %.60s%s%.60s is not supported",
                       node->domain, *node->domain ? "." : "", node->op);
}

CornuStatus cornu__read_apply(CornuReadStep *step)
{
    if (!step->row) CORNU__TRY(cornu__read_row_of(step->run->families, step->node, &step->row));
    for (int i = 0; i < step->row->operands; i++)
        if (!cornu__operand_of(step, i)) return cornu_error_take();
    return step->row->rule(step);
}

/* ---- Attributes ---- */

const CornuReadAttribute *cornu__attribute(const CornuReadStep *step, const char *name)
{
    for (int i = 0; i < step->node->attribute_count; i++)
        if (!strcmp(step->node->attributes[i].name, name)) return &step->node->attributes[i];
    return NULL;
}

int64_t cornu__whole(const CornuReadStep *step, const char *name, int64_t usual)
{
    const CornuReadAttribute *attribute = cornu__attribute(step, name);
    return attribute ? attribute->whole : usual;
}

double cornu__real(const CornuReadStep *step, const char *name, double usual)
{
    const CornuReadAttribute *attribute = cornu__attribute(step, name);
    return attribute ? attribute->number : usual;
}

const char *cornu__word(const CornuReadStep *step, const char *name, const char *usual)
{
    const CornuReadAttribute *attribute = cornu__attribute(step, name);
    return attribute && attribute->text ? attribute->text : usual;
}

CornuStatus cornu__integers(const CornuReadStep *step, const char *name, int64_t *to, int most,
                            int *count)
{
    const CornuReadAttribute *attribute = cornu__attribute(step, name);
    *count = -1;
    if (!attribute) return CORNU_OK;
    if (attribute->integer_count > most)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has %d numbers, expected at most %d", name,
                           attribute->integer_count, most);
    *count = attribute->integer_count;
    for (int i = 0; i < *count; i++) to[i] = attribute->integers[i];
    return CORNU_OK;
}

CornuStatus cornu__list_for(const CornuReadStep *step, const char *name, int count, int64_t usual,
                            int64_t least, int64_t *to)
{
    int given;
    CORNU__TRY(cornu__integers(step, name, to, count, &given));
    if (given >= 0 && given != count)
        return cornu__fail(CORNU_ERR_FORMAT, "%s has %d numbers, expected %d", name, given, count);
    for (int i = 0; i < count; i++) {
        if (given < 0) to[i] = usual;
        if (to[i] < least || to[i] > INT32_MAX)
            return cornu__fail(CORNU_ERR_FORMAT, "%s has %lld", name, (long long)to[i]);
    }
    return CORNU_OK;
}

/* ---- Operands ---- */

bool cornu__given(const CornuReadStep *step, int i)
{
    return i < step->in_count && step->in[i].given;
}

static int64_t count_of(CornuArray array) { return cornu_type_count(array.type); }

bool cornu__array_equal(CornuArray a, CornuArray b)
{
    return cornu_type_equal(a.type, b.type) &&
           (a.data == b.data || !memcmp(a.data, b.data, cornu_type_bytes(a.type)));
}

/* Whether element (i, j, …) is first + by[0] i + by[1] j + …; *axes counts the axes along which it
 * changes. */
static bool progression(CornuArray array, int *axes, double *first, double by[CORNU_MAX_RANK])
{
    const CornuShape shape = array.type.shape;
    const int64_t    count = count_of(array);
    const CornuDtype dtype = array.type.dtype;
    *axes = 0;
    *first = 0.0;
    if (count == 0) return true;   /* no numbers at all, whatever the extents are */
    *first = cornu_array_get(array, 0);
    int64_t stride = count;
    for (int i = 0; i < shape.rank; i++) {
        stride /= shape.extent[i];
        by[i] = shape.extent[i] < 2 ? 0.0 : cornu_array_get(array, stride) - *first;
        *axes += by[i] != 0.0;
    }
    /* Floats are computed again in f32: only whole numbers come out the same. */
    bool whole = *first == floor(*first);
    for (int i = 0; i < shape.rank; i++) whole &= by[i] == floor(by[i]);
    if (*axes && (!whole || dtype == CORNU_BOOL || dtype == CORNU_U8)) return false;
    for (int64_t i = 0; i < count; i++) {
        const double value = cornu_array_get(array, i);
        double       wanted = *first;
        int64_t      rest = i;
        for (int k = shape.rank - 1; k >= 0 && *axes; k--) {
            wanted += by[k] * (double)(rest % shape.extent[k]);
            rest /= shape.extent[k];
        }
        if (!(value == wanted) || (*axes && !(fabs(value) < 0x1p24))) return false;
    }
    return true;
}

CornuTensor *cornu__tensor_of(CornuReadRun *run, CornuArray array)
{
    int    axes;
    double first, by[CORNU_MAX_RANK];
    if (cornu_error_pending()) return NULL;
    if (!progression(array, &axes, &first, by)) return run->constant(run, array);
    if (!axes) return cornu_op_constant(run->graph, array.type, first);
    const CornuDtype counted = cornu_dtype_is_float(array.type.dtype) ? CORNU_F32 : CORNU_I64;
    const CornuType  type = cornu_type_from(counted, array.type.shape);
    CornuTensor     *sum = NULL;
    for (int i = 0; i < array.type.shape.rank; i++) {
        if (by[i] == 0.0) continue;
        CornuTensor *n = cornu_op_iota(run->graph, type, i);
        if (n && by[i] != 1.0) n = cornu_op_multiply(n, cornu_op_constant_like(n, by[i]));
        sum = sum ? cornu_op_add(sum, n) : n;
    }
    if (sum && first != 0.0) sum = cornu_op_add(sum, cornu_op_constant_like(sum, first));
    return cornu_op_convert(sum, array.type.dtype);
}

/* Records what the host has computed from shapes. */
static CornuTensor *record_again(CornuReadRun *run, const CornuReadOperand *operand)
{
    enum { MOST_MAKING = 32 };
    CornuReadStep again = *operand->maker;
    if (run->making == MOST_MAKING)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "a constant depends on an open extent");
    again.run = run;
    again.out = cornu__arena_take(run->arena, (size_t)again.out_count, sizeof *again.out);
    if (!again.out) return cornu__null();
    run->making++;
    const CornuStatus status = cornu__read_apply(&again);
    run->making--;
    if (status) return cornu__null();
    const CornuReadOperand *made = &again.out[operand->made];
    return made->tensor ? made->tensor : cornu__tensor_of(run, operand->known);
}

CornuStatus cornu__read_keep_maker(CornuReadStep *step)
{
    CornuReadStep *copy = cornu__arena_take(step->run->arena, 1, sizeof *copy);
    if (!copy) return CORNU_ERR_MEMORY;
    *copy = *step;
    for (int i = 0; i < step->out_count; i++) {
        if (!step->out[i].known.data) continue;
        step->out[i].maker = copy;
        step->out[i].made = i;
    }
    return CORNU_OK;
}

CornuTensor *cornu__known_tensor(CornuReadRun *run, const CornuReadOperand *operand)
{
    int    axes;
    double first, by[CORNU_MAX_RANK];
    if (!operand->maker || progression(operand->known, &axes, &first, by))
        return cornu__tensor_of(run, operand->known);
    return record_again(run, operand);
}

CornuTensor *cornu__read_tensor(CornuReadRun *run, const CornuReadOperand *operand)
{
    return operand->tensor ? operand->tensor : operand->weight ? operand->weight
                                             : cornu__tensor_of(run, operand->known);
}

CornuTensor *cornu__optional(CornuReadStep *step, int i)
{
    if (!cornu__given(step, i) || cornu_error_pending()) return NULL;
    CornuReadOperand *operand = &step->in[i];
    operand->used = true;
    /* A node asks for its constants itself, even if another has asked for the same. */
    const bool stale = operand->known.data && operand->turn != step->run->turn;
    if (!operand->tensor || stale)
        operand->tensor = operand->weight ? operand->weight
                                          : cornu__known_tensor(step->run, operand);
    operand->turn = step->run->turn;
    return operand->tensor;
}

CornuTensor *cornu__optional_as(CornuReadStep *step, int i, CornuDtype dtype)
{
    CornuTensor *x = cornu__optional(step, i);
    return x ? cornu_op_convert(x, dtype) : NULL;
}

CornuTensor *cornu__operand_of(CornuReadStep *step, int i)
{
    if (cornu__given(step, i)) return cornu__optional(step, i);
    return cornu__fail_null(CORNU_ERR_FORMAT, "operand %d is missing", i);
}

CornuType cornu__operand_type(const CornuReadStep *step, int i)
{
    if (!cornu__given(step, i)) return (CornuType){ 0 };
    const CornuReadOperand *operand = &step->in[i];
    if (operand->tensor) return cornu_tensor_type(operand->tensor);
    return operand->weight ? cornu_tensor_type(operand->weight) : operand->known.type;
}

CornuStatus cornu__known(const CornuReadStep *step, int i, CornuArray *array)
{
    if (!cornu__given(step, i)) return cornu__fail(CORNU_ERR_FORMAT, "operand %d is missing", i);
    if (!step->in[i].known.data)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "operand %d, \"%.80s\", is computed from data, "
                           "expected one that is known when the file is loaded", i,
                           step->node->in[i]);
    *array = step->in[i].known;
    return CORNU_OK;
}

CornuStatus cornu__known_integers(const CornuReadStep *step, int i, int64_t *to, int most,
                                  int *count)
{
    CornuArray array;
    *count = -1;
    if (!cornu__given(step, i)) return CORNU_OK;
    CORNU__TRY(cornu__known(step, i, &array));
    if (count_of(array) > most)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "operand %d has %lld numbers, expected at most "
                           "%d", i, (long long)count_of(array), most);
    *count = (int)count_of(array);
    for (int k = 0; k < *count; k++) {
        const double number = cornu_array_get(array, k);
        if (array.type.dtype == CORNU_I64) to[k] = ((int64_t *)array.data)[k];
        else if (fabs(number) < 0x1p53) to[k] = (int64_t)number;
        else return cornu__fail(CORNU_ERR_FORMAT, "operand %d has the number %g, expected an "
                                "integer", i, number);
    }
    return CORNU_OK;
}

CornuStatus cornu__known_number(const CornuReadStep *step, int i, double usual, double *to)
{
    CornuArray array;
    *to = usual;
    if (!cornu__given(step, i)) return CORNU_OK;
    CORNU__TRY(cornu__known(step, i, &array));
    if (count_of(array) < 1)
        return cornu__fail(CORNU_ERR_FORMAT, "operand %d is empty, expected a number", i);
    *to = cornu_array_get(array, 0);
    return CORNU_OK;
}

/* ---- Results ---- */

bool cornu__wanted(const CornuReadStep *step, int i)
{
    return i < step->out_count && *step->node->out[i];
}

CornuStatus cornu__result(CornuReadStep *step, int i, CornuTensor *tensor)
{
    if (!tensor) return cornu_error_take();
    if (cornu__wanted(step, i))
        step->out[i] = (CornuReadOperand){ .tensor = tensor, .given = true };
    return CORNU_OK;
}

CornuStatus cornu__known_result(CornuReadStep *step, int i, CornuArray array)
{
    if (!array.data) return CORNU_ERR_MEMORY;
    if (cornu__wanted(step, i)) step->out[i] = (CornuReadOperand){ .known = array, .given = true };
    return CORNU_OK;
}

int64_t cornu__operand_onnx_type(const CornuReadStep *step, int i)
{
    const int64_t type = cornu__given(step, i) ? step->in[i].onnx_type : 0;
    return type ? type : cornu__onnx_type_number(cornu__operand_type(step, i).dtype);
}

CornuTensor *cornu__read_by(CornuReadStep *step, const char *op, CornuTensor *const *in, int count)
{
    enum { MOST = 8 };
    const char      *names[MOST], *result = "y";
    CornuReadOperand operands[MOST] = { { 0 } }, out = { 0 };
    CornuReadNode    node = { .op = op, .domain = "", .name = step->node->name, .in = names,
                              .out = &result, .attributes = step->node->attributes,
                              .in_count = count, .out_count = 1, .own_count = count,
                              .attribute_count = step->node->attribute_count };
    CornuReadStep    sub = { .run = step->run, .node = &node, .in = operands, .out = &out,
                             .in_count = count, .out_count = 1 };
    for (int i = 0; i < count && i < MOST; i++) {
        names[i] = in[i] ? "x" : "";
        operands[i] = (CornuReadOperand){ .given = in[i], .tensor = in[i] };
    }
    return cornu__read_apply(&sub) ? cornu__null() : out.tensor;
}

CornuArray cornu__host_array(CornuReadRun *run, CornuType type)
{
    CornuArray array = { .type = type };
    if (cornu_type_check(type)) return array;
    array.data = cornu__arena_take(run->arena, cornu_type_bytes(type) + 1, 1);
    return array;
}

/* ---- Axes ---- */

CornuStatus cornu__list_of(const CornuReadStep *step, const char *name, int i, int64_t *to,
                           int most, int *count)
{
    CORNU__TRY(cornu__integers(step, name, to, most, count));
    return *count < 0 && i >= 0 ? cornu__known_integers(step, i, to, most, count) : CORNU_OK;
}

CornuStatus cornu__axis_of(int64_t axis, int rank, int *to)
{
    if (axis < -rank || axis >= rank)
        return cornu__fail(CORNU_ERR_SHAPE, "axis %lld of a tensor of rank %d", (long long)axis,
                           rank);
    *to = (int)(axis < 0 ? axis + rank : axis);
    return CORNU_OK;
}

CornuStatus cornu__axes_of(const CornuReadStep *step, const char *name, int i, int rank,
                           int64_t none, int64_t *bits)
{
    int64_t axes[CORNU_MAX_RANK];
    int     count = -1, axis;
    CORNU__TRY(cornu__list_of(step, name, i, axes, CORNU_MAX_RANK, &count));
    *bits = count <= 0 ? none : 0;
    for (int k = 0; k < count; k++) {
        CORNU__TRY(cornu__axis_of(axes[k], rank, &axis));
        *bits |= INT64_C(1) << axis;
    }
    return CORNU_OK;
}

/* ---- Ops ---- */

CornuTensor *cornu__reshaped(CornuTensor *x, int rank, const int64_t *extents)
{
    return x ? cornu_op_reshape(x, cornu_shape_from(rank, extents)) : NULL;
}

CornuTensor *cornu__read_channels_last(CornuTensor *x)
{
    return x && cornu__rank_of(x) > 2 ? cornu__move_axis(x, 1, cornu__rank_of(x) - 1) : x;
}

CornuTensor *cornu__read_channels_first(CornuTensor *x)
{
    return x && cornu__rank_of(x) > 2 ? cornu__move_axis(x, cornu__rank_of(x) - 1, 1) : x;
}

CornuTensor *cornu__count_along(CornuGraph *graph, CornuDtype dtype, int rank, int axis,
                                int64_t extent)
{
    int64_t extents[CORNU_MAX_RANK] = { 0 };
    for (int i = 0; i < rank; i++) extents[i] = i == axis ? extent : 1;
    return cornu_op_iota(graph, cornu_type_from(dtype, cornu_shape_from(rank, extents)), axis);
}

/* ---- A node ---- */

CornuStatus cornu__read_begin(CornuReadRun *run, const CornuReadNode *node, CornuReadStep *step)
{
    *step = (CornuReadStep){ .run = run, .node = node, .in_count = node->in_count,
                             .out_count = node->out_count };
    step->in = cornu__arena_take(run->arena, (size_t)node->in_count, sizeof *step->in);
    step->out = cornu__arena_take(run->arena, (size_t)node->out_count, sizeof *step->out);
    return step->in && step->out ? CORNU_OK : CORNU_ERR_MEMORY;
}

bool cornu__read_has_states(const CornuReadNode *node) { return !strcmp(node->op, "State"); }

/* Of its second operand CastLike takes the type alone. What depends on states is not known. */
static bool all_known(const CornuReadStep *step)
{
    if (cornu__read_has_states(step->node)) return false;
    const bool casts = !strcmp(step->node->op, "CastLike");
    for (int i = 0; i < step->in_count; i++)
        if (step->in[i].given && !step->in[i].known.data && !(casts && i == 1)) return false;
    return true;
}

/* The tensor of a known array in a graph that runs once: an input that is fed at once. */
static CornuTensor *feed(CornuReadRun *run, CornuArray array)
{
    CornuTensor *input = cornu_graph_input(run->graph, array.type);
    if (input && cornu_graph_feed(input, array)) return cornu__null();
    return input;
}

/* Computing takes several times the memory of a result. */
static CornuStatus check_result(const CornuReadRun *run, CornuType type)
{
    const size_t most = run->arena->limit / 16;
    if (!most || cornu_type_bytes(type) <= most) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "a constant of %zu bytes is computed, expected at most "
                       "%zu for a file of its size; CORNU_MAX_MEMORY raises this",
                       cornu_type_bytes(type), most);
}

/* Fetches the results of a step that was recorded in a graph of its own. */
static CornuStatus fetch(CornuReadRun *run, const CornuReadStep *made, CornuReadStep *step)
{
    for (int i = 0; i < made->out_count; i++) {
        if (!made->out[i].given) continue;
        CornuArray array = made->out[i].known;
        if (!array.data) {
            CORNU__TRY(check_result(run, cornu_tensor_type(made->out[i].tensor)));
            array = cornu__host_array(step->run, cornu_tensor_type(made->out[i].tensor));
            if (!array.data) return CORNU_ERR_MEMORY;
            CORNU__TRY(cornu_run(run->graph, &made->out[i].tensor, 1, &array));
        }
        CORNU__TRY(cornu__known_result(step, i, array));
        step->out[i].onnx_type = made->out[i].onnx_type;
    }
    return CORNU_OK;
}

/* Computes a node of known operands by its own rule, in a graph of the reference device. */
static CornuStatus compute(CornuReadStep *step)
{
    CornuDevice *device = cornu_device_open("reference");
    CornuGraph  *graph = cornu_graph_create(device);
    const int    before = cornu__graph_limit(graph, step->run->budget);
    CornuReadRun run = *step->run;
    run.graph = graph;
    run.constant = feed;
    CornuReadStep made;
    CornuStatus   status = graph ? cornu__read_begin(&run, step->node, &made) : cornu_error_take();
    for (int i = 0; i < step->in_count && !status; i++) {
        made.in[i] = (CornuReadOperand){ .known = step->in[i].known, .given = step->in[i].given,
                                         .onnx_type = step->in[i].onnx_type };
        made.in[i].known.type = cornu__operand_type(step, i);
    }
    if (!status) status = cornu__read_apply(&made);
    if (!status) status = fetch(&run, &made, step);
    const CornuStatus pending = cornu_error_take();
    cornu__graph_spend(graph, step->run->budget, before);
    cornu_graph_free(graph);
    cornu_device_close(device);
    return status ? status : pending;
}

/* Whether a known operand is a tensor of the graph, too, of more numbers than a parameter has: in a
 * loop no constant can be made of what is computed from it. */
static bool has_table(const CornuReadStep *step)
{
    bool any = false;
    for (int i = 0; i < step->in_count && step->run->depth; i++)
        any |= step->in[i].tensor && step->in[i].known.data &&
               count_of(step->in[i].known) > CORNU_READ_PARAMETER;
    return any;
}

CornuStatus cornu__read_step(CornuReadStep *step, bool record)
{
    char        place[160];
    CornuStatus status = cornu__read_row_of(step->run->families, step->node, &step->row);
    if (!step->run->making && !step->run->depth) step->run->turn++;
    if (!status && step->run->budget && --*step->run->budget < 0)
        status = cornu__fail(CORNU_ERR_MEMORY, "the file asks for more than %d ops and %d for each "
                             "of its nodes", CORNU_READ_MOST_OPS, CORNU_READ_OPS_OF_A_NODE);
    record |= has_table(step);
    if (!status) status = !record && all_known(step) ? compute(step) : cornu__read_apply(step);
    const CornuStatus pending = cornu_error_take();
    if (!status) status = pending;
    for (int i = 0; i < step->out_count && !status; i++)
        if (cornu__wanted(step, i) && !step->out[i].given)
            status = cornu__fail(CORNU_ERR_UNSUPPORTED, "its result %d is not supported", i);
    if (!status) return CORNU_OK;
    const CornuReadNode *node = step->node;
    snprintf(place, sizeof place, "%.100s (%.40s)",
             *node->name ? node->name : node->out_count ? node->out[0] : "", node->op);
    return cornu__fail_prefix(status, place);
}
