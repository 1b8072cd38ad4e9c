/*
 * Operations: keras.ops on tensors of a functional model, as layers without weights.
 *
 * Each has a class, a row of operations.def. Its arguments are kept as Keras writes them, as JSON:
 * `config` are those of the operation's constructor, `args` and `kwargs` those of the call, where
 * { "class_name": "__keras_tensor__", "config": i } is operand i of the layer. A rule records the
 * ops.
 *
 * Where Keras takes a whole number there may be an extent of an operand, which is known when shapes
 * are: { "class_name": "__extent__", "config": { "of": k, "axis": a } } is that of axis a of tensor
 * k in the list "__extents__" of `kwargs`; with "operation" (add, subtract, multiply, floor_divide,
 * divide, minimum, maximum) and "operands", two extents or numbers, it is computed of these.
 */
#ifndef CORNU_NN_OPERATION_INTERNAL_H
#define CORNU_NN_OPERATION_INTERNAL_H

#include "../../../tensor/functions/functions_internal.h"
#include "../../formats/json_internal.h"
#include "../layer_internal.h"

/* What a rule is given: a call of an operation. */
typedef struct {
    const CornuLayer   *layer;
    const CornuCall    *call;             /* NULL while results are counted */
    CornuGraph         *graph;
    bool                shapes_only;      /* as CornuCall */
    const json_t       *config, *args, *kwargs;
    CornuTensor *const *in;
    int                 in_count;
    CornuTensor       **out;              /* for operations with several results */
    uint64_t           *asked;            /* NULL, or a bit for each argument of config, in its
                                             order, that the rule has read */
} CornuOperands;

/* Records an operation: returns its only result, or sets o->out and returns the first. NULL on
 * failure, as ops do; without an error where a required argument is missing, which then is one
 * of layer_call.c. */
typedef CornuTensor *CornuOperationRule(const CornuOperands *o);

/* The number of results, given the arguments and the shape of operand 0. At most
 * CORNU_MAX_LAYER_TENSORS. */
typedef int CornuOperationCount(const CornuOperands *o, CornuShape x);

typedef struct {
    CornuLayerClass      kind;            /* must stay first */
    const char          *module;          /* "numpy" of keras.src.ops.numpy */
    CornuOperationRule  *rule;
    CornuOperationCount *count;           /* NULL: one */
} CornuOperationClass;

typedef struct {
    CornuLayer base;
    json_t    *config, *args, *kwargs;
    int        count;                     /* of results */
} CornuOperation;

/* All operations, by class name; the last has a class without a name. */
extern const CornuOperationClass cornu__operations[];

/* cornu__operation_RULE of each row, and cornu__operation_RULE_count of those with several
 * results. */
#define OPERATION(module, name, rule) CornuOperationRule cornu__operation_##rule;
#define OPERATION_MANY(module, name, rule)    \
    CornuOperationRule  cornu__operation_##rule; \
    CornuOperationCount cornu__operation_##rule##_count;
#define OPERATION_MOVES OPERATION
#include "operations.def"
#undef OPERATION
#undef OPERATION_MANY
#undef OPERATION_MOVES

/* "keras.src.ops." */
#define CORNU__OPERATIONS_MODULE "keras.src.ops."

/* The class of keras.src.ops.MODULE.NAME; NULL if there is none. */
const CornuOperationClass *cornu__operation_class(const char *module, const char *class_name);

/* The layer as an operation; NULL if it is another one. */
const CornuOperation *cornu__as_operation(const CornuLayer *layer);

/* A layer of the class; references the arguments. NULL with a pending error. */
CornuLayer *cornu__operation_create(const CornuOperationClass *kind, const char *name,
                                    json_t *config, json_t *args, json_t *kwargs);

/* ---- Signatures ---- */

/* An argument of Keras' function, a row's word in signatures.def. */
typedef struct {
    char    name[32];
    bool    operand, many, required;
    json_t *usual;                        /* the default, the caller's; NULL without one */
} CornuOperationArgument;

/* The name of Keras' function, maybe in `text`: layer_normalization of the class LayerNorm. */
const char *cornu__operation_function(const CornuOperationClass *kind, CornuText *text);

/* The i-th other name of the function, from 0; NULL after the last one. */
const char *cornu__operation_alias(const CornuOperationClass *kind, int i);

/* Argument i of the function, in Keras' order; false after the last one. */
bool cornu__operation_argument(const CornuOperationClass *kind, int i,
                               CornuOperationArgument *argument);

/* Binds arguments given by position (a list) and by name (an object), as Python does, either NULL
 * if there are none: adds operands to args, or to kwargs after one that is left out, and others to
 * config. CORNU_ERR_ARGUMENT for unknown, missing and superfluous ones. */
CornuStatus cornu__operation_bind(const CornuOperationClass *kind, const json_t *positional,
                                  const json_t *named, json_t *config, json_t *args,
                                  json_t *kwargs);

/* CORNU_ERR_UNSUPPORTED if an argument of config was not asked for, and is not what it is by
 * default: the result would be another one than Keras'. */
CornuStatus cornu__operation_check_asked(const CornuOperationClass *kind, const CornuOperands *o);

/* For class tables: the functions of every operation. */
CornuStatus  cornu__operation_build(CornuLayer *layer, const CornuShape *in, int in_count);
CornuTensor *cornu__operation_call(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out);
CornuTensor *cornu__operation_mask(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count,
                                   CornuTensor *const *masks, CornuTensor **out_masks);
int          cornu__operation_outputs(const CornuLayer *layer);
/* Of those that move elements: kind->host_type and kind->host_call. */
CornuStatus  cornu__operation_host_type(const CornuLayer *layer, const CornuArray *in, int in_count,
                                        CornuType *out);
CornuStatus  cornu__operation_host_call(const CornuLayer *layer, const CornuArray *in, int in_count,
                                        CornuArray out);
void         cornu__operation_free(CornuLayer *layer);

/* ---- Arguments ---- */

/* NULL with a pending CORNU_ERR_UNSUPPORTED: "add_1: WHAT". */
void *cornu__operation_refuse(const CornuOperands *o, const char *what);
/* Likewise because of its argument dtype. */
void *cornu__operation_refuse_dtype(const CornuOperands *o);

/* The argument of that name of the constructor or the call, or number `at` of the call (-1: by name
 * only). NULL if it is absent or null. */
const json_t *cornu__argument(const CornuOperands *o, const char *name, int at);

/* Whether `value` is a number, or an extent, which becomes one. */
bool cornu__number_of(const CornuOperands *o, const json_t *value, double *number);
/* Likewise a whole number. */
bool cornu__whole_of(const CornuOperands *o, const json_t *value, int64_t *number);
/* Whether it is the extent of a batch: of axis 0. */
bool cornu__is_rows(const json_t *value);

int64_t     cornu__argument_integer(const CornuOperands *o, const char *name, int64_t usual);
double      cornu__argument_number(const CornuOperands *o, const char *name, double usual);
bool        cornu__argument_flag(const CornuOperands *o, const char *name);
const char *cornu__argument_text(const CornuOperands *o, const char *name, const char *usual);

/* Keras' dtype of that name; CORNU_DTYPE_COUNT for an unknown one, `usual` if there is no name. */
CornuDtype cornu__argument_dtype(const CornuOperands *o, const char *name, CornuDtype usual);

/* One integer or a list of them, into CORNU_MAX_RANK numbers; the number of them, -1 if absent.
 * Anything else is a pending error and -2. */
int cornu__argument_list(const CornuOperands *o, const char *name, int at,
                         int64_t numbers[CORNU_MAX_RANK]);

/* An axis of a tensor of this rank, counted from the front; -1 with a pending error if it does not
 * exist. `usual` if the argument is absent or null. */
int cornu__argument_axis(const CornuOperands *o, const char *name, int rank, int usual);

/* Axes as bits. Absent or null, they are all axes; 0, with a pending error, if one does not
 * exist. */
int64_t cornu__argument_axes(const CornuOperands *o, const char *name, int rank);

/* x, or all of its elements in a row if no "axis" is given: what None is to most functions. */
CornuTensor *cornu__flat_without_axis(const CornuOperands *o, CornuTensor *x);
/* y, that such a function of x has reduced along an axis, with keepdims. */
CornuTensor *cornu__with_axes(const CornuOperands *o, CornuTensor *y, CornuTensor *x, int axis);

/* ---- Operands: tensors and constants ---- */

/* A tensor, or a number that takes the dtype of the others, as Python's do. */
typedef struct {
    CornuTensor *tensor;      /* NULL for a number */
    enum { CORNU__BOOL, CORNU__INTEGER, CORNU__FLOAT } kind;   /* of a number */
    double       number;
} CornuOperand;

/* Argument `at` of the call, or the one of that name; false, with a pending error, if it is neither
 * tensor nor number. */
bool cornu__operand(const CornuOperands *o, const char *name, int at, CornuOperand *operand);

/* The same as a tensor; a number becomes a scalar of its usual dtype. */
CornuTensor *cornu__operand_tensor(const CornuOperands *o, const char *name, int at);

/* A list of tensors, or one as a list; their number, at most CORNU_MAX_LAYER_TENSORS, or -1 with a
 * pending error. All get one dtype. */
int cornu__operand_list(const CornuOperands *o, const char *name, int at, CornuTensor **x);

/* The dtype of a result of both. Source: keras/src/backend/common/dtypes.py. */
CornuDtype cornu__promote(CornuDtype a, CornuDtype b);

/* Two operands, x1 and x2, as tensors of their common dtype, which is a float if `floats`. */
bool cornu__operand_pair(const CornuOperands *o, bool floats, CornuTensor **a, CornuTensor **b);

/* Operands of one dtype, numbers as scalars; false with a pending error. */
bool cornu__operands_join(const CornuOperands *o, CornuOperand *operands, int count, bool floats,
                          CornuTensor **x);

/* Operand "x" of the call; as floats, into which integers and bools are converted. */
CornuTensor *cornu__operand_x(const CornuOperands *o);
CornuTensor *cornu__operand_float(const CornuOperands *o);

/* ---- Shared by rules ---- */

/* Defines the rule that is a function of one operand, as floats. */
#define CORNU__OF_FLOATS(name, function)                               \
    CornuTensor *cornu__operation_##name(const CornuOperands *o)       \
    {                                                                  \
        return function(cornu__operand_float(o));                      \
    }

/* A constant with the type of x. */
static inline CornuTensor *cornu__like(CornuTensor *x, double value)
{
    return x ? cornu_op_constant_like(x, value) : NULL;
}

/* x broadcast to this shape by the rules of NumPy. */
CornuTensor *cornu__broadcast_to(CornuTensor *x, CornuShape shape);

#endif
