/*
 * Recording ONNX nodes as Cornu's ops.
 *
 * An operator has a row in a table (operators.def): its function gets the node's operands and
 * records ops; operators of one form share it, and their rows say in what they differ. An operand
 * is a tensor of the graph, or known: a host array, as constants are and what is computed from
 * shapes.
 * Parameters such as a Reshape's shape must be known. A node of which all operands are known is
 * computed on the host, and its results are known. Ops, and what takes tensors here, give NULL with
 * a pending error for NULL, so that rules check only what they look into.
 * Source: github.com/onnx/onnx, docs/Operators.md and docs/Changelog.md.
 */
#ifndef CORNU_NN_ONNX_RUN_INTERNAL_H
#define CORNU_NN_ONNX_RUN_INTERNAL_H

#include "../../../tensor/functions/functions_internal.h"
#include "../../layers/layer_internal.h"
#include "parse_internal.h"

typedef struct CornuReadRun CornuReadRun;
typedef struct CornuReadRow CornuReadRow;

struct CornuReadRun {
    const CornuReadRow *const *families;   /* tables of operators; NULL ends the list */
    CornuGraph *graph;
    CornuArena *arena;               /* of known arrays */
    int64_t     opset;
    /* The tensor of a known array that is neither a single number nor an arithmetic progression.
     * NULL with a pending error. */
    CornuTensor *(*constant)(CornuReadRun *run, CornuArray array);
    /* State i of a layer, f32 of this shape, whose axis 0 has one row, as the last run left it; and
     * what this one leaves. NULL where nothing is kept. */
    CornuTensor *(*read_state)(CornuReadRun *run, int i, CornuShape shape);
    CornuStatus  (*keep_state)(CornuReadRun *run, int i, CornuTensor *value);
    void       *context;             /* for these */
    int         depth;               /* of subgraphs that are being run */
    int         making;              /* of known results that are being recorded */
    int         turn;                /* of the nodes of the graph */
    int        *budget;              /* how many ops may still be recorded; NULL: any number */
};

/* How many ops and nodes reading a file may take in all, in all graphs, and how many more for each
 * node of the graph, which is traced several times; the arena limits the bytes.
 * A few hundred bytes could ask for terabytes: loops in loops, or a constant that is joined with
 * itself again and again. */
enum { CORNU_READ_MOST_OPS = 1 << 19, CORNU_READ_OPS_OF_A_NODE = 64 };

/* Numbers that a parameter has at most, as those of Pad do. */
enum { CORNU_READ_PARAMETER = 2 * CORNU_MAX_RANK };

enum { CORNU_READ_MOST_DEPTH = 8 };  /* of subgraphs in subgraphs */

typedef struct {
    CornuTensor *tensor;             /* NULL for one that is known, until it is needed */
    CornuArray   known;              /* data NULL: not known */
    CornuTensor *weight;             /* of a weight: its tensor */
    CornuTensor *filter;             /* of a filter: with channels last; NULL if it is none */
    CornuTensor *bytes;              /* of a weight of 8 bits: as cornu__layer_read_bytes has it */
    bool         given, used;        /* `used`: as a tensor */
    int          turn;               /* in which the tensor of a known one was recorded */
    /* Of a known result: the step that computed it, which can record it as ops where it is no
     * constant, and which result it is. NULL for constants. */
    struct CornuReadStep *maker;
    int                   made;
    int64_t     onnx_type;           /* of the elements of a known array; 0: that of its dtype */
} CornuReadOperand;

typedef struct CornuReadStep {
    CornuReadRun        *run;
    const CornuReadNode *node;
    const CornuReadRow  *row;        /* of its operator; NULL until it is looked up */
    CornuReadOperand    *in, *out;
    int                  in_count, out_count;
} CornuReadStep;

typedef CornuStatus CornuReadRule(CornuReadStep *step);

/* A number of a node, and what it is where the node does not say. */
typedef struct { const char *name; double usual; } CornuReadNumber;

/* An operator. Those of other domains are named with them: "com.microsoft.QGemm". */
struct CornuReadRow {
    const char    *op;
    CornuReadRule *rule;
    int            operands;         /* the first so many must be given, and are tensors */
    union {                          /* what operators with the same rule differ in */
        CornuTensor *(*one)(CornuTensor *x);
        CornuTensor *(*two)(CornuTensor *a, CornuTensor *b);
        CornuTensor *(*along)(CornuTensor *x, int64_t axes, bool keep);
        CornuTensor *(*by)(CornuTensor *x, const double *numbers);
        CornuComparison comparison;
        const char     *name;
    };
    CornuReadNumber numbers[3];
};

#define FAMILY(name) extern const CornuReadRow cornu__read_##name[];
#include "operators.def"
#undef FAMILY

/* The tables of families, each ended by a row without a name. For those who open files: rules and
 * what they call have them in their run. */
extern const CornuReadRow *const cornu__read_families[];

/* The row of all operators that are registered. */
#define CORNU_READ_REGISTERED "*"

/* CORNU_ERR_UNSUPPORTED if there is no such operator. */
CornuStatus cornu__read_row_of(const CornuReadRow *const *families, const CornuReadNode *node,
                               const CornuReadRow **row);

/* Runs a node by the rule of its row. */
CornuStatus cornu__read_apply(CornuReadStep *step);

/* Runs one node: on the host if all operands are known and `record` is false. Messages name node
 * and operator. */
CornuStatus cornu__read_step(CornuReadStep *step, bool record);

/* Whether it has states, so that its results are never known. */
bool cornu__read_has_states(const CornuReadNode *node);

/* Notes in the known results of a step that it computed them; it is copied. */
CornuStatus cornu__read_keep_maker(CornuReadStep *step);

/* Parses the subgraphs of nodes, and adds to the operands of such nodes what those use of the graph
 * around them. */
CornuStatus cornu__read_captures(CornuArena *arena, CornuReadNode *nodes, int count);

/* A step that runs a node, with room for its operands and results. */
CornuStatus cornu__read_begin(CornuReadRun *run, const CornuReadNode *node, CornuReadStep *step);

/* A tensor of a graph as an operand. */
static inline CornuReadOperand cornu__read_constant(const CornuReadTensor *tensor)
{
    return (CornuReadOperand){ .given = true, .known = tensor->array,
                               .onnx_type = tensor->onnx_type };
}

/* How a layer keeps a weight: constants of 8 bits as they are. */
static inline CornuKept cornu__read_kept(CornuReadRole role, int64_t onnx_type)
{
    return role != CORNU_READ_STATE         ? CORNU_KEPT_F32
           : onnx_type == CORNU_READ_INT8   ? CORNU_KEPT_I8
           : onnx_type == CORNU_READ_UINT8  ? CORNU_KEPT_U8 : CORNU_KEPT_F32;
}

/* Numbers the names of the values of a graph, as cornu__read_name: its inputs, tensors and the
 * results of nodes. */
CornuStatus cornu__read_names(CornuLookup *names, const CornuReadGraph *graph);

/* Runs nodes in order on values, by the numbers of their names. */
CornuStatus cornu__read_nodes(CornuReadRun *run, const CornuReadGraph *graph,
                              const CornuLookup *names, CornuReadOperand *values);

/* The number of a name, which may be new; -1 with CORNU_ERR_MEMORY. */
int cornu__read_name(CornuLookup *names, const char *name);

/* ---- For rules: operands ---- */

bool         cornu__given(const CornuReadStep *step, int i);
/* Operand i as a tensor; NULL with a pending error if it is absent. */
CornuTensor *cornu__operand_of(CornuReadStep *step, int i);
/* Likewise, but NULL without an error if it is absent. */
CornuTensor *cornu__optional(CornuReadStep *step, int i);
CornuTensor *cornu__optional_as(CornuReadStep *step, int i, CornuDtype dtype);
CornuType    cornu__operand_type(const CornuReadStep *step, int i);
/* The known array of operand i; CORNU_ERR_UNSUPPORTED if it is not known. */
CornuStatus  cornu__known(const CornuReadStep *step, int i, CornuArray *array);
/* A list of at most `most` integers, which must be known. Absent: count is -1. */
CornuStatus  cornu__known_integers(const CornuReadStep *step, int i, int64_t *to, int most,
                                   int *count);
/* A known number; `usual` if absent. */
CornuStatus  cornu__known_number(const CornuReadStep *step, int i, double usual, double *to);

/* Sets result i; true if it is wanted. */
bool        cornu__wanted(const CornuReadStep *step, int i);
CornuStatus cornu__result(CornuReadStep *step, int i, CornuTensor *tensor);
CornuStatus cornu__known_result(CornuReadStep *step, int i, CornuArray array);

/* The type of ONNX of operand i's elements, if they are narrow integers and it is known; else that
 * of its dtype. */
int64_t     cornu__operand_onnx_type(const CornuReadStep *step, int i);

/* Operator `op` of ONNX, with the step's attributes, of other operands: NULL for those that are
 * absent. NULL with a pending error. */
CornuTensor *cornu__read_by(CornuReadStep *step, const char *op, CornuTensor *const *in,
                            int count);

/* A new host array in the run's arena. Data NULL with CORNU_ERR_MEMORY. */
CornuArray cornu__host_array(CornuReadRun *run, CornuType type);
/* The tensor of a known array. */
CornuTensor *cornu__tensor_of(CornuReadRun *run, CornuArray array);
/* That of an operand of any kind. */
CornuTensor *cornu__read_tensor(CornuReadRun *run, const CornuReadOperand *operand);
/* That of a known result, which is recorded as ops where it is not a constant. */
CornuTensor *cornu__known_tensor(CornuReadRun *run, const CornuReadOperand *operand);
bool         cornu__array_equal(CornuArray a, CornuArray b);

/* ---- For rules: attributes ---- */

const CornuReadAttribute *cornu__attribute(const CornuReadStep *step, const char *name);
int64_t     cornu__whole(const CornuReadStep *step, const char *name, int64_t usual);
double      cornu__real(const CornuReadStep *step, const char *name, double usual);
const char *cornu__word(const CornuReadStep *step, const char *name, const char *usual);
/* At most `most` integers of a list; count is -1 if it is absent. */
CornuStatus cornu__integers(const CornuReadStep *step, const char *name, int64_t *to, int most,
                            int *count);

/* A list of `count` integers from `least` to INT32_MAX; all `usual` if it is absent. */
CornuStatus cornu__list_for(const CornuReadStep *step, const char *name, int count, int64_t usual,
                            int64_t least, int64_t *to);
/* A list that is the attribute `name` in files of old opsets and operand i in others. */
CornuStatus cornu__list_of(const CornuReadStep *step, const char *name, int i, int64_t *to,
                           int most, int *count);

/* An axis from -rank to rank - 1 as one from 0. */
CornuStatus cornu__axis_of(int64_t axis, int rank, int *to);
/* Such axes, from the attribute `name` or operand i, as bits: `none` if both are absent. */
CornuStatus cornu__axes_of(const CornuReadStep *step, const char *name, int i, int rank,
                           int64_t none, int64_t *bits);

/* CORNU_ERR_UNSUPPORTED: what, and why. */
CornuStatus cornu__cannot(const char *what, const char *why);

/* ---- For rules: ops ---- */

CornuTensor *cornu__reshaped(CornuTensor *x, int rank, const int64_t *extents);
/* Elements from `begin` on along one axis. */
static inline CornuTensor *cornu__part_of(CornuTensor *x, int axis, int64_t begin, int64_t size)
{
    return cornu__slice_axis(x, axis, begin, begin + size);
}
/* (B, C, …) to (B, …, C), and back. */
CornuTensor *cornu__read_channels_last(CornuTensor *x);
CornuTensor *cornu__read_channels_first(CornuTensor *x);
CornuTensor *cornu__floor_of(CornuTensor *x);
/* An i64 or f32 tensor 0, 1, 2, … along one axis of a shape in which the others are 1. */
CornuTensor *cornu__count_along(CornuGraph *graph, CornuDtype dtype, int rank, int axis,
                                int64_t extent);

static inline int cornu__rank_of(CornuTensor *x) { return x ? cornu_tensor_shape(x).rank : 0; }
static inline int64_t cornu__extent_of(CornuTensor *x, int axis)
{
    return x ? cornu_tensor_shape(x).extent[axis] : 0;
}
static inline CornuDtype cornu__dtype_of(CornuTensor *x)
{
    return x ? cornu_tensor_type(x).dtype : CORNU_F32;
}

#endif
