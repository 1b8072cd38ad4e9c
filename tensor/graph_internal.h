/* Shared by the files that build, rewrite and run graphs: their structs and functions. */
#ifndef CORNU_TENSOR_GRAPH_INTERNAL_H
#define CORNU_TENSOR_GRAPH_INTERNAL_H

#include "../device/lookup_internal.h"
#include "tensor_internal.h"

/* The source of input i of the recorded program: a variable, or a buffer to feed. */
typedef struct {
    CornuVariable *variable;
    CornuBuffer   *feed;
    bool           is_whole;   /* a packed variable, which the graph keeps alive */
    bool           dealt;      /* recorded whole, and cut by rows over the shards of a batch */
} CornuGraphInput;

/* A part of a packed variable that the graph reads or assigns. */
typedef struct {
    CornuVariable *part;
    CornuVariable *whole;      /* when it was read; a run needs it to be there still */
    CornuTensor   *value;
    CornuTensor   *assigned;   /* or NULL */
} CornuGraphPart;

typedef struct {
    CornuVariable *variable;
    CornuTensor   *tensor;
} CornuAssignment;

/* A tensor with a gradient of its own (ops/custom_gradient.c). */
typedef struct {
    CornuTensor       *y, *instead;
    CornuGradientStep *step;
    void              *context;
} CornuCustomGradient;

/* A tensor in a layout of its own. */
typedef struct {
    CornuTensor *tensor;
    CornuLayout  layout;
} CornuTensorLayout;

/* A list of fetches, compiled. The key is tensors, as a rewrite may renumber their values. */
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
    CornuLaid            *laid;      /* until the program is cut */
    int                   laid_count;
    float                *not_finite;   /* how many elements of each value */
    struct CornuPrepared *next;
} CornuPrepared;

struct CornuGraph {
    CornuDevice     *device;
    CornuProgram    *program;      /* everything recorded, dead or alive */
    CornuTensor    **tensors;      /* the handle of each value, NULL until requested */
    int              tensor_space;
    CornuTensor    **handles;      /* all handles, to be freed */
    int              handle_count, handle_space;
    CornuGraphInput *inputs;
    int              input_count, input_space;
    CornuLookup      input_of, part_of, assignment_of;   /* of a variable: its number */
    CornuGraphPart  *parts;
    int              part_count, part_space;
    CornuAssignment *assignments;
    int              assignment_count, assignment_space, assignment_version;
    CornuCustomGradient *customs;
    int              custom_count, custom_space;
    CornuTensorLayout *laid;
    int              laid_count, laid_space;
    int              remat_depth, remat_count;   /* parts within parts; all there are */
    int              rewritten;    /* ops of `program` that rewrite.c has processed */
    int              op_limit;     /* of `program`; 0: none */
    bool             watches;
    bool             sequential;   /* reads follow assignments */
    bool             whole_batch;  /* recorded for one shard, and partitioned for those there are */
    CornuPartition  *partition;    /* set with it, so that other programs need no partitioning */
    bool             keeps_functions;   /* function_internal.h */
    bool             concurrent;   /* runs twins of executables */
    CornuPrepared   *prepared;     /* newest first */
    CornuPrepared   *last;
};

/* The handle of a value; NULL, pending, only if out of memory. */
CornuTensor *cornu__tensor(CornuGraph *graph, CornuValue value);

/* Adds an input to the graph's program, one for each shard if `per_shard`. */
CornuTensor *cornu__graph_add_input(CornuGraph *graph, CornuType type, bool per_shard,
                                    CornuGraphInput input);

/* An input that is never fed: the graph is a template whose program becomes part of another. */
CornuTensor *cornu__graph_parameter(CornuGraph *graph, CornuType type);

/* The program of what these tensors need, in the order of recording, with them as its outputs; for
 * graphs that do not run. The caller frees it; NULL, pending, after a failure. */
CornuProgram *cornu__graph_lowered(const CornuGraph *graph, CornuTensor *const *fetches, int count);

/* Makes the program of the fetches and all assignments: inputs in the graph's order, with their
 * buffers; outputs are the assignments, then the fetches. */
CornuStatus cornu__graph_lower(const CornuGraph *graph, CornuPrepared *prepared);
/* On a device with a mesh, or of whole batches, replaces it by the program for all shards. */
CornuStatus cornu__graph_partition(const CornuGraph *graph, CornuPrepared *prepared);

/* Declares the outputs of a template with `in_count` parameters (ops/body.c). CORNU_ERR_UNSUPPORTED
 * if it reads or assigns a variable: "WHO reads … a variable; expected it among the WHERE". */
CornuStatus cornu__graph_close(CornuGraph *template, int in_count, CornuTensor *const *out,
                               int out_count, const char *who, const char *where);

/* Records the ops of a body with the inputs `in` and fills its outputs; false with a pending
 * error. */
bool cornu__record_body(CornuGraph *graph, const CornuProgram *body, CornuTensor *const *in,
                        CornuTensor **out);

/* Makes the lowered program count the elements that are not finite; after a run, reports where they
 * originate (CORNU_ERR_VALUE). */
CornuStatus cornu__watch(const CornuGraph *graph, CornuPrepared *prepared);
CornuStatus cornu__watch_check(const CornuGraph *graph, const CornuPrepared *prepared);

/* Whether the ops of this id are to be replaced by their decompositions. */
typedef bool CornuDecomposes(CornuOpId id);

/* Improves the recorded ops and decomposes those that `decomposes` names (NULL: none). Handles are
 * updated to the new values. */
CornuStatus cornu__rewrite(CornuGraph *graph, CornuDecomposes *decomposes);

#endif
