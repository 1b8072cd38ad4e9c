/*
 * The parts of the reader of .tflite files: read.c the file, read_tensors.c, read_operators.c, and
 * read_subgraphs.c and read_loops.c, by which a graph of several subgraphs becomes one;
 * read_parts.c for all of them.
 */
#ifndef CORNU_NN_LITE_READ_INTERNAL_H
#define CORNU_NN_LITE_READ_INTERNAL_H

#include "../../formats/flatbuffer_internal.h"
#include "options_internal.h"

enum { CORNU_LITE_MOST_NAME = 200 };    /* bytes of a name; longer ones are cut */

/* What a number of a subgraph's tensor stands for in place of one of the graph: an omitted operand,
 * no tensor yet, and from CORNU_LITE_HANDLE down the handles of variables. */
enum { CORNU_LITE_OMITTED = -1, CORNU_LITE_UNREAD = -2, CORNU_LITE_HANDLE = -3 };

typedef struct {
    CornuFlat       from;
    CornuLiteGraph *graph;
    CornuFlatVector codes, buffers, subgraphs;
    size_t          copied;       /* bytes, of names, constants and lists */
    int            *numbers;      /* of the subgraph that is read: its tensors in the graph */
    int             number_count;
    int             depth;        /* of subgraphs in subgraphs */
    bool            initial;      /* one that gives variables their first values is read */
    int             loops;        /* around what is read */
    size_t          repeated;     /* bytes in loops */
    int            *shared;       /* of a subgraph read again: its constants; NULL */
} CornuLiteReader;

CornuStatus cornu__lite_damaged(const char *what);

/* Whether so many bytes more may be copied: CORNU_ERR_FORMAT, as tables can be shared. */
CornuStatus cornu__lite_take(CornuLiteReader *reader, size_t bytes);

/* A string of a table, cut, or `usual`. */
typedef struct { char text[CORNU_LITE_MOST_NAME + 1]; } CornuLiteText;
const char *cornu__lite_text(CornuLiteReader *reader, CornuLiteText *name,
                             const CornuFlatTable *table, int slot, const char *usual);

/* Element i of a vector of i32. */
int32_t cornu__lite_integer(const CornuFlatVector *vector, size_t i);

/* Numbers of tensors, in the graph; CORNU_LITE_OMITTED for one that is omitted, where that may be.
 * The caller releases them. */
CornuStatus cornu__lite_read_numbers(CornuLiteReader *reader, const CornuFlatTable *table, int slot,
                                     bool omit, int **numbers, int *count);

/* ---- read_tensors.c ---- */

/* Adds a tensor to the graph, or none for a handle: CORNU_LITE_UNREAD. */
CornuStatus cornu__lite_read_tensor(CornuLiteReader *reader, const CornuFlatTable *table,
                                    int *number);

/* The elements of a sparse constant, in full: those of zero as well. The caller releases them. */
CornuStatus cornu__lite_densify(CornuLiteReader *reader, const CornuFlatTable *sparsity,
                                const CornuLiteTensor *tensor, const CornuFlatVector *data,
                                void **dense);

/* ---- read_operators.c ---- */

/* Adds operator `node` of a subgraph, or what it stands for. */
CornuStatus cornu__lite_read_operator(CornuLiteReader *reader, const CornuFlatTable *table,
                                      size_t node);

/* ---- read_subgraphs.c ---- */

/* Reads a subgraph on tensors of the graph; its outputs are released by the caller. `args` NULL:
 * the first one, whose inputs are those of the graph. */
CornuStatus cornu__lite_read_subgraph(CornuLiteReader *reader, int64_t index, const int *args,
                                      int arg_count, int **outputs, int *output_count);

/* Operators that name other subgraphs or variables, or make constants dense; `in` and `out` are
 * their tensors. */
bool        cornu__lite_is_control(int code);
CornuStatus cornu__lite_read_control(CornuLiteReader *reader, int code, const CornuFlatTable *op,
                                     const int *in, int in_count, const int *out, int out_count);

/* ---- read_loops.c ---- */

/* Reads a loop whose turns are known, turn by turn. `results` are released by the caller. */
CornuStatus cornu__lite_read_loop(CornuLiteReader *reader, int64_t condition, int64_t body,
                                  const int *in, int count, int **results);

/* In loops: whether the result of an operator is a single integer or a truth that follows from
 * constants; it is one then, and the operator is not needed. */
CornuStatus cornu__lite_fold_number(CornuLiteReader *reader, int code, const int *in, int in_count,
                                    int out, bool *folded);

/* Gives all variables a first value, and drops those that nothing reads. */
CornuStatus cornu__lite_settle_variables(CornuLiteReader *reader);

#endif
