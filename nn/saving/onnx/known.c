/* What depends on no input and on no open extent is computed when the file is written: it becomes
 * constants, of which files have those that other nodes read. */
#include "recorded_internal.h"

#include "../../../device/memory_internal.h"
#include "../../../device/ops/body.h"
#include "../../../device/ops/rules.h"

/* Larger tables are left to the runtime: files stay small. */
enum { MOST_ELEMENTS = 1 << 15, MOST_IN_ALL = 1 << 22 };

struct CornuOnnxKnown {
    bool           *known, *needed;    /* by value of the program */
    CornuValue     *map;               /* its number in `own` */
    CornuProgram   *own;               /* of the ops that are known */
    CornuBodyMemory memory;            /* the values of `own` */
};

/* Constants and broadcasts stay as they are: operators broadcast them. */
static bool stays(const CornuProgramOp *op)
{
    return op->id == CORNU_OP_CONSTANT || op->id == CORNU_OP_BROADCAST;
}

/* Whether the op is the same in all worlds, and so are its results. */
static bool is_closed(const CornuOnnxProgram *program, int number)
{
    const CornuProgramOp *op = &program->program->ops[number];
    for (int k = 0; k < op->out_count; k++) {
        const CornuType type = program->program->values[op->out_first + k].type;
        if (cornu_type_count(type) > MOST_ELEMENTS) return false;
        for (int w = 1; w < CORNU_ONNX_WORLDS; w++)
            if (!cornu_type_equal(type,
                                  program->worlds[w]->values[op->out_first + k].type))
                return false;
    }
    for (int w = 1; w < CORNU_ONNX_WORLDS; w++)
        if (!cornu__attributes_equal(op->id, &op->attributes,
                                     &program->worlds[w]->ops[number].attributes))
            return false;
    return true;
}

/* Marks the known values, and those of them that are read: by other ops or from outside. */
static void mark(const CornuOnnxProgram *program, bool (*can_be)(CornuOpId), CornuOnnxKnown *k)
{
    const CornuProgram *from = program->program;
    for (int i = 0; i < from->op_count; i++) {
        const CornuProgramOp *op = &from->ops[i];
        const CornuValue     *in = cornu_program_operands(from, op);
        bool                  known = can_be(op->id) && is_closed(program, i);
        for (int n = 0; n < op->in_count; n++) known = known && k->known[in[n]];
        for (int n = 0; n < op->out_count; n++) k->known[op->out_first + n] = known;
    }
    for (int i = 0; i < from->output_count; i++)
        if (!program->wanted || program->wanted[i]) k->needed[from->outputs[i].value] = true;
    for (int i = from->op_count - 1; i >= 0; i--) {
        const CornuProgramOp *op = &from->ops[i];
        const bool known = k->known[op->out_first];
        bool       needed = false;
        for (int n = 0; n < op->out_count; n++) needed |= k->needed[op->out_first + n];
        for (int n = 0; n < op->in_count; n++)
            k->needed[cornu_program_operands(from, op)[n]] |=
                needed && (!known || op->id == CORNU_OP_BROADCAST);
    }
}

/* Records the known ops. */
static CornuStatus record(const CornuProgram *from, CornuOnnxKnown *k)
{
    CornuValue *in = cornu__allocate((size_t)cornu__most_operands(from), sizeof *in);
    CornuStatus status = in ? CORNU_OK : CORNU_ERR_MEMORY;
    int64_t     elements = 0;
    for (int i = 0; i < from->op_count && !status; i++) {
        const CornuProgramOp *op = &from->ops[i];
        if (!k->known[op->out_first]) continue;
        for (int n = 0; n < op->in_count; n++)
            in[n] = k->map[cornu_program_operands(from, op)[n]];
        status = cornu_program_record(k->own, op->id, &op->attributes, in, op->in_count,
                                      &k->map[op->out_first]);
        for (int n = 0; n < op->out_count; n++)
            elements += cornu_type_count(from->values[op->out_first + n].type);
    }
    cornu__release(in);
    if (elements > MOST_IN_ALL)
        for (int v = 0; v < from->value_count; v++) k->known[v] = false;
    return status;
}

CornuStatus cornu__onnx_find_known(CornuOnnxProgram *program, bool (*can_be)(CornuOpId))
{
    const CornuProgram *from = program->program;
    const size_t        count = (size_t)from->value_count;
    CornuOnnxKnown     *k = program->known = cornu__allocate(1, sizeof *k);
    bool                computed = false;
    if (!k || !(k->known = cornu__allocate(2 * count, sizeof *k->known)) ||
        !(k->map = cornu__allocate(count, sizeof *k->map)))
        return CORNU_ERR_MEMORY;
    k->needed = k->known + count;
    mark(program, can_be, k);
    for (int i = 0; i < from->op_count; i++)
        computed |= k->known[from->ops[i].out_first] && k->needed[from->ops[i].out_first] &&
                    !stays(&from->ops[i]);
    if (!computed) return CORNU_OK;
    if (!(k->own = cornu_program_create())) return cornu_error_take();
    CORNU__TRY(record(from, k));
    CORNU__TRY(cornu__body_take(&k->memory, k->own));
    return cornu__reference_program(k->own, k->memory.value, k->memory.in, k->memory.in_type);
}

void cornu__onnx_free_known(CornuOnnxProgram *program)
{
    CornuOnnxKnown *k = program->known;
    if (!k) return;
    cornu__body_release(&k->memory);
    cornu_program_free(k->own);
    cornu__release(k->map);
    cornu__release(k->known);
    cornu__release(k);
}

bool cornu__onnx_is_read(const CornuOnnxOp *op, int result)
{
    return op->program->known->needed[op->out + result];
}

bool cornu__onnx_is_left_out(const CornuOnnxOp *op)
{
    const CornuOnnxKnown *k = op->program->known;
    bool                  needed = false;
    for (int i = 0; i < op->op->out_count; i++) needed |= cornu__onnx_is_read(op, i);
    return !needed || (k->known[op->out] && !stays(op->op));
}

int cornu__onnx_known_value(const CornuOnnxProgram *program, CornuValue value)
{
    const CornuOnnxKnown *k = program->known;
    if (!k->known[value] || !k->own) return CORNU_ONNX_NONE;
    CornuType     type = program->program->values[value].type;
    const double *from = k->memory.value[k->map[value]];
    if (type.dtype != CORNU_BOOL)
        type.dtype = cornu_dtype_is_float(type.dtype) ? CORNU_F32 : CORNU_I64;
    CornuArray array = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!array.data) {
        program->to->nodes.failed = true;
        return CORNU_ONNX_NONE;
    }
    for (int64_t i = 0; i < cornu_type_count(type); i++) cornu_array_set(array, i, from[i]);
    const int constant = cornu__onnx_constant(program->to, array);
    cornu__release(array.data);
    return constant;
}
