#include "rows.h"

#include "../memory_internal.h"
#include "axes.h"

/* A digit of an index l, in a mixed radix: l / stride % extent. */
typedef struct { int64_t stride, extent; } Digit;

typedef enum { OF_NONE, OF_ROWS, OF_ALL } Kind;

typedef struct {
    Kind    kind;
    int64_t stride;                  /* of rows: element l is of row l / stride % rows */
    int     count;                   /* of none: the digits along which it is the same */
    Digit   same[CORNU_MAX_RANK];
    const CornuProgramOp *mixed_by;  /* of all: the first op that did */
} Value;

/* An operand, or the operand of a body, and what becomes of its axes. */
typedef struct {
    const Value *value;
    CornuShape   shape;
    int          to[CORNU_MAX_RANK];
    int          varies;
} Operand;

typedef struct {
    int64_t             rows;
    const CornuProgram *program;     /* of whose inputs `of_rows` tells */
    const bool         *of_rows;
} Analysis;

/* ---- Digits ---- */

static int64_t stride_of(CornuShape shape, int axis)
{
    int64_t stride = 1;
    for (int i = axis + 1; i < shape.rank; i++) stride *= shape.extent[i];
    return stride;
}

/* Whether digit b depends on digit a alone. */
static bool covers(Digit a, Digit b)
{
    return b.stride % a.stride == 0 && a.stride * a.extent % (b.stride * b.extent) == 0;
}

/* The part of a digit that an index along one axis has; false: none, or not exactly. */
static bool part_on(CornuShape shape, int axis, Digit digit, Digit *part)
{
    const int64_t begin = stride_of(shape, axis), end = begin * shape.extent[axis];
    const int64_t own_end = digit.stride * digit.extent;
    const int64_t low = digit.stride > begin ? digit.stride : begin;
    const int64_t high = own_end < end ? own_end : end;
    *part = (Digit){ 0, 0 };
    if (low >= high || low % begin || low % digit.stride || high % low || end % high ||
        own_end % high) return false;
    *part = (Digit){ low / begin, high / low };
    return true;
}

/* The axis that has the rows of a value, and their digit of its index; -1: several. */
static int axis_of_rows(CornuShape shape, Digit rows, Digit *part)
{
    for (int i = 0; i < shape.rank; i++)
        if (part_on(shape, i, rows, part) && part->extent == rows.extent) return i;
    return -1;
}

static bool equal(const Value *a, const Value *b)
{
    bool same = a->kind == b->kind && a->stride == b->stride && a->count == b->count;
    for (int i = 0; i < a->count && same; i++)
        same = a->same[i].stride == b->same[i].stride && a->same[i].extent == b->same[i].extent;
    return same;
}

/* Adds a digit to the list, joined with one that it continues. */
static void add_same(Value *value, Digit digit)
{
    for (int i = 0; i < value->count; i++) {
        Digit *old = &value->same[i];
        if (old->stride * old->extent != digit.stride) continue;
        old->extent *= digit.extent;
        return;
    }
    if (value->count < CORNU_MAX_RANK) value->same[value->count++] = digit;
}

/* ---- Joining operands ---- */

enum { MOST_DIGITS = 4 };            /* along one axis */

typedef struct { int count; Digit at[MOST_DIGITS]; } Digits;

static bool some_covers(const Digits *digits, Digit digit)
{
    for (int i = 0; i < digits->count; i++)
        if (covers(digits->at[i], digit)) return true;
    return false;
}

/* The digits of axis j of the result along which an operand without rows is the same. */
static Digits same_along(const Operand *in, int j, int64_t extent)
{
    Digits same = { 0 };
    if (in->varies >> j & 1) return same;
    for (int a = 0; a < in->shape.rank; a++) {
        if (in->to[a] == CORNU_AXIS_MAKES(j)) return same;
        if (in->to[a] != j || in->shape.extent[a] != extent) continue;
        for (int i = 0; i < in->value->count && same.count < MOST_DIGITS; i++)
            same.count += part_on(in->shape, a, in->value->same[i], &same.at[same.count]);
        return same;
    }
    return (Digits){ 1, { { 1, extent } } };   /* broadcast */
}

static Digits common(const Digits *a, const Digits *b)
{
    Digits both = { 0 };
    for (int i = 0; i < a->count && both.count < MOST_DIGITS; i++)
        if (some_covers(b, a->at[i])) both.at[both.count++] = a->at[i];
    for (int i = 0; i < b->count && both.count < MOST_DIGITS; i++)
        if (some_covers(a, b->at[i]) && !some_covers(&both, b->at[i]))
            both.at[both.count++] = b->at[i];
    return both;
}

static bool is_empty(CornuShape shape) { return cornu_shape_count(shape) == 0; }

/* Adds the digits along which a result of operands without rows is the same. */
static void join_same(const Operand *in, int count, int varies, CornuShape shape, Value *out)
{
    for (int j = shape.rank - 1; j >= 0; j--) {
        Digits same = { 1, { { 1, shape.extent[j] } } };
        if (shape.extent[j] == 1 || varies >> j & 1) continue;
        for (int i = 0; i < count; i++) {
            const Digits own = same_along(&in[i], j, shape.extent[j]);
            if (!is_empty(in[i].shape)) same = common(&same, &own);
        }
        for (int i = 0; i < same.count; i++)
            add_same(out, (Digit){ stride_of(shape, j) * same.at[i].stride, same.at[i].extent });
    }
}

/* The axis of the result that has the rows of the operands, -1 if none has rows; false: they are
 * read together, or do not agree. */
static bool rows_of(const Analysis *of, const Operand *in, int count, int *axis, Digit *rows)
{
    *axis = -1;
    for (int i = 0; i < count; i++) {
        Digit part;
        if (in[i].value->kind == OF_NONE || is_empty(in[i].shape)) continue;
        if (in[i].value->kind == OF_ALL) return false;
        const int a = axis_of_rows(in[i].shape, (Digit){ in[i].value->stride, of->rows }, &part);
        const int j = a < 0 ? -1 : in[i].to[a];
        if (j < 0 || in[i].varies >> j & 1) return false;
        if (*axis >= 0 && (*axis != j || rows->stride != part.stride)) return false;
        *axis = j;
        *rows = part;
    }
    return true;
}

/* A result of an op that reads its operands along axes. */
static Value join_operands(const Analysis *of, const Operand *in, int count, int varies,
                           CornuShape shape)
{
    Value value = { .kind = OF_NONE };
    int   axis;
    Digit rows = { 0, 0 };
    if (is_empty(shape)) return value;
    if (!rows_of(of, in, count, &axis, &rows)) return (Value){ .kind = OF_ALL };
    if (axis < 0) {
        join_same(in, count, varies, shape, &value);
        return value;
    }
    /* What has no rows must be the same for each of them: else their place in the batch counts. */
    for (int i = 0; i < count; i++) {
        const Digits same = same_along(&in[i], axis, shape.extent[axis]);
        if (in[i].value->kind == OF_NONE && !is_empty(in[i].shape) && !some_covers(&same, rows))
            return (Value){ .kind = OF_ALL };
    }
    return (Value){ .kind = OF_ROWS, .stride = stride_of(shape, axis) * rows.stride };
}

/* ---- Ops ---- */

/* The result of an op that reads all of its operands: it mixes rows if one of them has any. */
static Value read_all(const Operand *in, int count)
{
    for (int i = 0; i < count; i++)
        if (in[i].value->kind != OF_NONE && !is_empty(in[i].shape))
            return (Value){ .kind = OF_ALL };
    return (Value){ .kind = OF_NONE };
}

static Value result(const Analysis *of, const CornuOpCall *call, const CornuType *out, int r,
                    Operand *in)
{
    CornuAxesRule *const rule = cornu__axes_rules[cornu__op_reads(call->id)];
    CornuAxesCall        c = { .call = call, .out = out, .result = r, .operand = -1 };
    int                  varies = 0;
    if (call->in_count == 0) varies = rule(&c, NULL);
    for (int i = 0; i < call->in_count && varies >= 0; i++) {
        c.operand = i;
        varies = in[i].varies = rule(&c, in[i].to);
    }
    if (varies < 0) return read_all(in, call->in_count);
    return join_operands(of, in, call->in_count, call->in_count ? 0 : varies, out->shape);
}

/* ---- Bodies ---- */

static CornuStatus find_values(Analysis *of, const CornuProgram *program, Value *values);

/* The value without axis `axis`, or with one more there, along which it differs. */
static Value stepped(const Analysis *of, const Value *value, CornuShape from, CornuShape to,
                     int axis)
{
    Operand   in = { .value = value, .shape = from };
    const int less = from.rank > to.rank;
    for (int a = 0; a < from.rank; a++)
        in.to[a] = less && a == axis ? CORNU_AXIS_READ : less ? a - (a > axis) : a + (a >= axis);
    in.varies = less ? 0 : 1 << axis;
    return join_operands(of, &in, 1, 0, to);
}

static Value value_of_both(const Analysis *of, const Value *a, const Value *b, CornuShape shape)
{
    Operand in[2] = { { .value = a, .shape = shape }, { .value = b, .shape = shape } };
    for (int i = 0; i < shape.rank; i++) in[0].to[i] = in[1].to[i] = i;
    return join_operands(of, in, 2, 0, shape);
}

/* The carries begin as given and are what all steps leave: until they no longer change. */
static CornuStatus find_scan(Analysis *of, const CornuOpCall *call, const CornuType *out,
                             const Operand *in, Value *body, Value *results)
{
    const CornuAttributes_SCAN *scan = &call->attributes->scan;
    const CornuProgram         *program = scan->body;
    const int                   carries = (int)scan->carries, axis = (int)scan->axis;
    bool                        changes = true;
    for (int i = 0; i < call->in_count; i++) {
        const CornuShape shape = cornu_program_type(program, program->inputs[i]).shape;
        const bool       sliced = i >= carries && i < carries + scan->slices;
        body[program->inputs[i]] = sliced ? stepped(of, in[i].value, in[i].shape, shape, axis)
                                          : *in[i].value;
    }
    for (int turn = 0; changes; turn++) {
        CORNU__TRY(find_values(of, program, body));
        changes = false;
        for (int i = 0; i < carries; i++) {
            Value *carry = &body[program->inputs[i]];
            Value  next = { .kind = OF_ALL };
            if (turn <= 4 * carries + 4)
                next = value_of_both(of, carry, &body[program->outputs[i].value], in[i].shape);
            changes |= !equal(carry, &next);
            *carry = next;
        }
    }
    for (int i = 0; i < program->output_count; i++) {
        const CornuValue made = program->outputs[i].value;
        results[i] = i < carries ? body[program->inputs[i]]
                   : stepped(of, &body[made], cornu_program_type(program, made).shape,
                             out[i].shape, axis);
    }
    return CORNU_OK;
}

static CornuStatus find_body(Analysis *of, const CornuOpCall *call, const CornuType *out,
                             const Operand *in, Value *results)
{
    const CornuProgram *program = cornu__attributes_program(call->id, call->attributes);
    Value              *body = cornu__allocate((size_t)program->value_count, sizeof *body);
    CornuStatus         status = body ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status && call->id == CORNU_OP_SCAN) {
        status = find_scan(of, call, out, in, body, results);
    } else if (!status) {
        for (int i = 0; i < call->in_count; i++) body[program->inputs[i]] = *in[i].value;
        status = find_values(of, program, body);
        for (int i = 0; i < program->output_count; i++)
            results[i] = body[program->outputs[i].value];
    }
    cornu__release(body);
    return status;
}

/* ---- Programs ---- */

/* Whether the rows of random numbers are those of the batch, by which they are drawn: then a row's
 * numbers are its own. Those at a fixed place, as for all batches, are not. The last operand is the
 * place; of dropout the first one has the rows. */
static bool draws_rows(const Analysis *of, const CornuProgram *program, const CornuProgramOp *op,
                       const Operand *in, CornuShape shape)
{
    if ((op->id != CORNU_OP_RANDOM_UNIFORM && op->id != CORNU_OP_DROPOUT) || shape.rank < 1 ||
        shape.extent[0] != of->rows || program != of->program)
        return false;
    const CornuValue place = cornu_program_operands(program, op)[op->in_count - 1];
    if (program->values[place].op >= 0 || !of->of_rows[program->values[place].index]) return false;
    const Value *x = in[0].value;
    return op->id == CORNU_OP_RANDOM_UNIFORM || x->kind == OF_NONE ||
           (x->kind == OF_ROWS && x->stride == stride_of(shape, 0));
}

/* `in` and `types` have room for the operands. */
static CornuStatus find_op(Analysis *of, const CornuProgram *program, const CornuProgramOp *op,
                           Value *values, Operand *in, CornuType *types)
{
    const CornuValue *operands = cornu_program_operands(program, op);
    const CornuOpCall call = cornu_program_call(program, op, types);
    CornuType         out[CORNU_MAX_OUTPUTS];
    Value            *results = &values[op->out_first];
    const CornuProgramOp *mixed_by = op;
    for (int i = op->in_count - 1; i >= 0; i--) {
        in[i] = (Operand){ .value = &values[operands[i]], .shape = types[i].shape };
        if (in[i].value->kind == OF_ALL) mixed_by = in[i].value->mixed_by;
    }
    for (int i = 0; i < op->out_count; i++) out[i] = cornu_program_type(program, op->out_first + i);
    if (cornu__attributes_program(op->id, &op->attributes))
        CORNU__TRY(find_body(of, &call, out, in, results));
    else
        for (int i = 0; i < op->out_count; i++)
            results[i] = cornu__op_reads(op->id) == CORNU_READS_RESHAPE
                             ? *in[0].value : result(of, &call, &out[i], i, in);
    if (draws_rows(of, program, op, in, out[0].shape))
        results[0] = (Value){ .kind = OF_ROWS, .stride = stride_of(out[0].shape, 0) };
    for (int i = 0; i < op->out_count; i++) results[i].mixed_by = mixed_by;
    return CORNU_OK;
}

/* Fills the values of ops, those of inputs being there. */
static CornuStatus find_values(Analysis *of, const CornuProgram *program, Value *values)
{
    int most = 1;
    for (int i = 0; i < program->op_count; i++)
        if (program->ops[i].in_count > most) most = program->ops[i].in_count;
    Operand    *in = cornu__allocate((size_t)most, sizeof *in);
    CornuType  *types = cornu__allocate((size_t)most, sizeof *types);
    CornuStatus status = in && types ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; i < program->op_count && !status; i++)
        status = find_op(of, program, &program->ops[i], values, in, types);
    cornu__release(in);
    cornu__release(types);
    return status;
}

/* Whether row i of the result is all that depends on row i of the inputs. */
static bool is_independent(const Analysis *of, const Value *value, CornuShape shape)
{
    if (shape.rank < 1 || shape.extent[0] != of->rows || value->kind == OF_ALL) return false;
    if (is_empty(shape)) return true;
    const Digit rows = { stride_of(shape, 0), of->rows };
    if (value->kind == OF_ROWS) return value->stride == rows.stride;
    for (int i = 0; i < value->count; i++)
        if (covers(value->same[i], rows)) return true;
    return false;
}

CornuStatus cornu__rows_find(const CornuProgram *program, int64_t rows, const bool *of_rows,
                             const CornuValue *results, int count, CornuRowsFound *found)
{
    Analysis of = { rows, program, of_rows };
    Value   *values = cornu__allocate((size_t)program->value_count + 1, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    for (int i = 0; i < program->input_count; i++) {
        const CornuShape shape = cornu_program_type(program, program->inputs[i]).shape;
        if (of_rows[i] && shape.rank > 0 && !is_empty(shape))
            values[program->inputs[i]] = (Value){ .kind = OF_ROWS, .stride = stride_of(shape, 0) };
    }
    const CornuStatus status = find_values(&of, program, values);
    *found = (CornuRowsFound){ .independent = !status };
    for (int i = 0; i < count && found->independent; i++) {
        const Value *value = &values[results[i]];
        if (is_independent(&of, value, cornu_program_type(program, results[i]).shape)) continue;
        found->independent = false;
        found->mixed_by = value->kind == OF_ALL ? value->mixed_by : NULL;
    }
    cornu__release(values);
    return status;
}

/* ---- The number of rows ---- */

const CornuProgramOp *cornu__rows_counted(const CornuProgram *program, const CornuProgram *other)
{
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        if (i == other->op_count || op->id != other->ops[i].id ||
            !cornu__numbers_equal(op->id, &op->attributes, &other->ops[i].attributes)) return op;
        const CornuProgram *body = cornu__attributes_program(op->id, &op->attributes);
        const CornuProgram *in_other = cornu__attributes_program(op->id, &other->ops[i].attributes);
        if (body && in_other && cornu__rows_counted(body, in_other)) return op;
    }
    return NULL;
}
