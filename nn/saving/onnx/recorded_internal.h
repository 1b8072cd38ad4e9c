/*
 * Layers without a rule of their own are written op by op: the layer is recorded in a graph that
 * is never run (recorded.c), and each op becomes nodes (ops.c) between values (program.c).
 *
 * ONNX files have an open batch, programs do not. So the layer is recorded twice, for batches of
 * different sizes: an extent that differs between the two programs is a multiple of the batch.
 */
#ifndef CORNU_NN_ONNX_RECORDED_INTERNAL_H
#define CORNU_NN_ONNX_RECORDED_INTERNAL_H

#include "rules_internal.h"

/* The sizes of the two batches: primes, so that a multiple of one is rarely anything else. */
enum { CORNU_ONNX_ROWS = 7, CORNU_ONNX_OTHER_ROWS = 11 };

/* A program that becomes nodes. Each of its values has a place. A value that is constant along some
 * axes is kept small until a node needs it in full: `small` broadcasts to it. */
typedef struct {
    CornuOnnx          *to;
    const CornuProgram *program, *other;   /* for the two batches */
    int                *full, *small;      /* by value of the program; 0: not yet, or not kept */
    CornuShape         *extents;           /* of `small`, as of cornu__onnx_extents */
    int                *rows;              /* the batch, an i64 vector of one; 0: not yet */
    int                 source;            /* a value whose axis 0 is the batch; 0: none */
} CornuOnnxProgram;

/* The shape of a value, in which an extent of -k is k times the batch. false if one depends on the
 * batch in any other way. */
bool cornu__onnx_extents(const CornuOnnxProgram *program, CornuValue value, CornuShape *shape);

/* The value as a tensor of its full shape; and, for operators that broadcast, a smaller one that
 * broadcasts to it. */
int cornu__onnx_full(CornuOnnxProgram *program, CornuValue value);
int cornu__onnx_small(const CornuOnnxProgram *program, CornuValue value);

/* An i64 vector of these extents, with -k for k times the batch. */
int cornu__onnx_shape(CornuOnnxProgram *program, CornuShape shape);

/* FLOAT for all floats, INT64 for all integers, BOOL. */
int cornu__onnx_type(CornuDtype dtype);

/* Writes all ops of the program, the values of whose inputs are set. CORNU_ERR_UNSUPPORTED naming
 * an op that has no counterpart. */
CornuStatus cornu__onnx_ops(CornuOnnxProgram *program);

/* Writes a layer. */
CornuOnnxRule cornu__onnx_recorded;

#endif
