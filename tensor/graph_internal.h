/* The structs of a graph, and what the files that build, rewrite and run it share. */
#ifndef CORNU_TENSOR_GRAPH_INTERNAL_H
#define CORNU_TENSOR_GRAPH_INTERNAL_H

#include "tensor_internal.h"

/* What stands behind input i of the recorded program: a variable, or a buffer to feed. */
typedef struct {
    CornuVariable *variable;
    CornuBuffer   *feed;
    bool           is_whole;   /* a packed variable, of which the graph is a user */
} CornuGraphInput;

/* A packed variable that the graph reads or assigns by itself. */
typedef struct {
    CornuVariable *part;
    CornuVariable *whole;      /* then; it must not have moved when the graph runs */
    CornuTensor   *value;
    CornuTensor   *assigned;   /* or NULL */
} CornuGraphPart;

typedef struct {
    CornuVariable *variable;
    CornuTensor   *tensor;
} CornuAssignment;

/* A list of fetches, compiled. It is keyed by tensors, whose values a rewrite may renumber. */
typedef struct CornuPrepared {
    CornuTensor         **fetches;
    int                   fetch_count;
    int                   assignment_version;
    CornuProgram         *program;
    CornuExecutable      *executable;
    CornuBuffer         **inputs;   /* borrowed: of variables and graph inputs */
    CornuBuffer         **outputs;  /* NULL for assignments, owned for fetches */
    CornuValue           *watched;  /* values whose counts are the last outputs (watch.c) */
    int                   watched_count;
    float                *not_finite;   /* of each value, how many of its elements */
    struct CornuPrepared *next;
} CornuPrepared;

struct CornuGraph {
    CornuDevice     *device;
    CornuProgram    *program;      /* everything recorded, dead or alive */
    CornuTensor    **tensors;      /* the handle of each value, NULL until asked for */
    int              tensor_space;
    CornuTensor    **handles;      /* every handle made, to free */
    int              handle_count, handle_space;
    CornuGraphInput *inputs;
    int              input_count, input_space;
    CornuGraphPart  *parts;
    int              part_count, part_space;
    CornuAssignment *assignments;
    int              assignment_count, assignment_space, assignment_version;
    int              rewritten;    /* ops of `program` that rewrite.c has seen */
    bool             watches;
    CornuPrepared   *prepared;     /* newest first */
    CornuPrepared   *last;
};

/* The handle of a value; NULL (pending) only when out of memory. */
CornuTensor *cornu__tensor(CornuGraph *graph, CornuValue value);

/* Adds an input to the graph's program, one for each shard if `per_shard`. */
CornuTensor *cornu__graph_add_input(CornuGraph *graph, CornuType type, bool per_shard,
                                    CornuGraphInput input);

/* A value that nobody feeds: the graph is a template, whose program becomes part of another. */
CornuTensor *cornu__graph_parameter(CornuGraph *graph, CornuType type);

/* Lets the lowered program count what is not finite; and, after a run, tells where it comes from:
 * CORNU_ERR_VALUE. */
CornuStatus cornu__watch(const CornuGraph *graph, CornuPrepared *prepared);
CornuStatus cornu__watch_check(const CornuGraph *graph, const CornuPrepared *prepared);

/* Whether the ops of this id are to be replaced by their decompositions. */
typedef bool CornuDecomposes(CornuOpId id);

/* Improves the recorded ops and decomposes those that `decomposes` names (NULL: none). Handles are
 * updated to the new values. */
CornuStatus cornu__rewrite(CornuGraph *graph, CornuDecomposes *decomposes);

#endif
