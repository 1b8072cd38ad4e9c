/*
 * Layers are written op by op: the layer is recorded in a graph that is never run and keeps
 * functions (recorded.c), and each op becomes nodes (ops.c) between values (program.c). A function
 * becomes the operator that ONNX has for it (functions.c), or else its ops. What is known when the
 * file is written becomes constants (known.c), and what repeats is written once.
 *
 * ONNX files have an open batch, and other extents may be open; programs have none. So the layer is
 * recorded in several worlds, extents_internal.h, whose programs differ in extents alone.
 */
#ifndef CORNU_NN_ONNX_RECORDED_INTERNAL_H
#define CORNU_NN_ONNX_RECORDED_INTERNAL_H

#include "../../../device/program_internal.h"
#include "extents_internal.h"
#include "rules_internal.h"

typedef struct CornuOnnxKnown CornuOnnxKnown;

/* A program that becomes nodes. Each of its values has a place. A value that is constant along some
 * axes is kept small until a node needs it in full: `small` broadcasts to it. */
typedef struct {
    CornuOnnx          *to;
    const CornuProgram *worlds[CORNU_ONNX_WORLDS], *program;   /* the first of them */
    int                *full, *small;      /* by value of the program; 0: not yet, or not kept */
    CornuShape         *extents;           /* of `small`, as of cornu__onnx_extents */
    CornuValue         *first;             /* of equal values */
    CornuOnnxKnown     *known;             /* of known.c */
    const bool         *wanted;            /* which outputs are, NULL for all */
} CornuOnnxProgram;

/* Makes the places of its values, `to`, `program`, `worlds` and `wanted` being set; to be closed in
 * any case. */
CornuStatus cornu__onnx_open_program(CornuOnnxProgram *program);
void        cornu__onnx_close_program(CornuOnnxProgram *program);

/* An extent of a value; 0 if it is open and nothing explains it. And all of them; false if there is
 * such a one. */
int64_t cornu__onnx_extent_at(const CornuOnnxProgram *program, CornuValue value, int axis);
bool cornu__onnx_extents(const CornuOnnxProgram *program, CornuValue value, CornuShape *shape);

/* Sets the value to a tensor of its full shape. Extents that nothing explained are from then on
 * those of this tensor. */
void cornu__onnx_set(const CornuOnnxProgram *program, CornuValue value, int full);

/* The value as a tensor of its full shape; and, for operators that broadcast, a smaller one that
 * broadcasts to it. */
int cornu__onnx_full(CornuOnnxProgram *program, CornuValue value);
int cornu__onnx_small(CornuOnnxProgram *program, CornuValue value);

/* FLOAT for all floats, INT64 for all integers, BOOL. */
int cornu__onnx_type(CornuDtype dtype);

/* An op as its writer sees it. */
typedef struct {
    CornuOnnxProgram      *program;
    CornuOnnx             *to;
    const CornuProgramOp  *op;
    int                    number;       /* in the programs of all worlds */
    const CornuAttributes *attributes;
    const CornuValue      *in;
    CornuValue             out;
} CornuOnnxOp;

typedef CornuStatus CornuOnnxWriter(const CornuOnnxOp *op);

/* Operand i in full shape. */
int cornu__onnx_operand(const CornuOnnxOp *op, int i);

/* What becomes of an op: a value of its full shape; a small one of these extents; that of an
 * elementwise op, which is small if its operands are, unless together they have its extents. */
CornuStatus cornu__onnx_give(const CornuOnnxOp *op, int value);
void        cornu__onnx_keep_small(const CornuOnnxOp *op, int value, CornuShape extents);
CornuStatus cornu__onnx_keep(const CornuOnnxOp *op, int value);

/* A node of an elementwise operator; min(max(x, low), high) of operand 0. */
CornuStatus cornu__onnx_op_elementwise(const CornuOnnxOp *op, const char *operator,
                                       const CornuOnnxAttribute *attributes, int attribute_count);
CornuStatus cornu__onnx_op_clip(const CornuOnnxOp *op, double low, double high);

/* ---- known.c ---- */

/* Finds and computes what depends on no input and no open extent, of ops that can be; to be freed
 * in any case. */
CornuStatus cornu__onnx_find_known(CornuOnnxProgram *program, bool (*can_be)(CornuOpId));
void        cornu__onnx_free_known(CornuOnnxProgram *program);

/* Whether something reads a result; whether the op is not to be written, as nothing does or its
 * value is known; and a value as a constant, none if it is not known. */
bool cornu__onnx_is_read(const CornuOnnxOp *op, int result);
bool cornu__onnx_is_left_out(const CornuOnnxOp *op);
int  cornu__onnx_known_value(const CornuOnnxProgram *program, CornuValue value);

/* Whether it is an op that is written already, whose values its own become. */
bool cornu__onnx_repeats(const CornuOnnxOp *op);

/* CORNU_ERR_UNSUPPORTED naming the op and the reason; that it depends on open extents. */
CornuStatus cornu__onnx_refuse_op(const CornuOnnxOp *op, const char *why);
CornuStatus cornu__onnx_refuse_open(const CornuOnnxOp *op);

/* Functions that programs keep, tensor/function_internal.h: functions.c. Whether this call is of
 * one that has an operator; and writes it. */
bool            cornu__onnx_has_function(const CornuOnnx *to, const CornuOpCall *call);
CornuOnnxWriter cornu__onnx_function;
/* Whether two calls, recorded for different extents, are the same but for those of the result. */
bool            cornu__onnx_same_function(const CornuAttributes *a, const CornuAttributes *b);

/* Sets result i of the op. */
void cornu__onnx_set_result(const CornuOnnxOp *op, int i, int value);

/* Slices: slices.c. Loops: scan.c. Recurrent layers, which functions.c lists: recurrent.c. */
CornuOnnxWriter cornu__onnx_op_slice, cornu__onnx_scan;
CornuOnnxWriter cornu__onnx_lstm, cornu__onnx_gru, cornu__onnx_simple_rnn;
bool            cornu__onnx_takes_recurrence(const CornuOpCall *call);
/* Convolutions and pools, ops and functions: windows.c. */
CornuOnnxWriter cornu__onnx_conv2d, cornu__onnx_conv2d_grad_input, cornu__onnx_max_pool,
    cornu__onnx_average_pool, cornu__onnx_conv, cornu__onnx_conv_transpose;

/* Writes all ops of the program, the values of whose inputs are set, but for those whose results
 * are known. CORNU_ERR_UNSUPPORTED naming an op that has no counterpart. */
CornuStatus cornu__onnx_ops(CornuOnnxProgram *program);
/* Whether ops of this id can be. */
bool        cornu__onnx_has_writer(CornuOpId id);

/* Writes a call of a layer. CORNU_ERR_UNSUPPORTED naming what ONNX does not have, and why. */
CornuStatus cornu__onnx_recorded(const CornuOnnxCall *call);

#endif
