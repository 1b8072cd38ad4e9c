/*
 * Reading the protobuf messages of ONNX files, which are not trusted: sizes are checked before
 * memory is taken, subgraphs stay bytes until they are asked for, so that nesting costs no stack.
 * What is read lives in an arena, or points into the bytes it was read from.
 * Source: github.com/onnx/onnx, onnx/onnx.proto.
 */
#ifndef CORNU_NN_ONNX_PARSE_INTERNAL_H
#define CORNU_NN_ONNX_PARSE_INTERNAL_H

#include "../../../device/lookup_internal.h"
#include "../../../device/type.h"
#include "../../../device/files/file_internal.h"
#include "../../../device/files/protobuf_internal.h"

/* ---- An arena: memory that is freed at once; all zeros is empty ---- */

typedef struct CornuArenaBlock CornuArenaBlock;
typedef struct {
    CornuArenaBlock *blocks;
    size_t           taken, limit;   /* in bytes; a limit of 0 is none */
} CornuArena;

/* Zeroed memory; NULL with CORNU_ERR_MEMORY. */
void *cornu__arena_take(CornuArena *arena, size_t count, size_t size);

/* From now on at most so many bytes more are taken: a gigabyte and 16 times what has been taken,
 * that is, what was read from a file; or what CORNU_MAX_MEMORY says. */
void  cornu__arena_limit(CornuArena *arena);
char *cornu__arena_text(CornuArena *arena, const void *bytes, size_t size);
size_t cornu__arena_size(const CornuArena *arena);   /* of what was taken */
void  cornu__arena_free(CornuArena *arena);

/* ---- Messages ---- */

/* TensorProto.DataType. Types that Cornu lacks are kept wider: int8, int16 and uint16 as i32,
 * uint64 as i64, float16 and bfloat16 as f32. */
enum {
    CORNU_READ_FLOAT = 1, CORNU_READ_UINT8, CORNU_READ_INT8, CORNU_READ_UINT16, CORNU_READ_INT16,
    CORNU_READ_INT32, CORNU_READ_INT64, CORNU_READ_STRING, CORNU_READ_BOOL, CORNU_READ_FLOAT16,
    CORNU_READ_DOUBLE, CORNU_READ_UINT32, CORNU_READ_UINT64, CORNU_READ_BFLOAT16 = 16
};
CornuStatus cornu__onnx_dtype(int64_t type, CornuDtype *dtype);
/* The type to write for a dtype. */
int         cornu__onnx_type_number(CornuDtype dtype);

/* Bytes of an element in raw data; 0 for a type that is refused. */
size_t cornu__onnx_type_size(int64_t type);

/* An integer type that is kept as i32: int8, int16 or uint16. */
bool cornu__onnx_is_narrow(int64_t type);

/* What a tensor of a layer's graph is; files have values only. The others are weights of the layer:
 * trainable; the same for filters, which the layer has as (…, C, F) where ONNX has (F, C, …); not
 * trainable; and a constant that the ops need, not named by any node. */
typedef enum {
    CORNU_READ_VALUE, CORNU_READ_WEIGHT, CORNU_READ_FILTER, CORNU_READ_STATE, CORNU_READ_MADE
} CornuReadRole;
const char *cornu__onnx_role_name(CornuReadRole role);

/* Axis i of a layer's filter is axis order[i] of ONNX'; its shape. */
CornuShape cornu__filter_shape(CornuShape shape, int order[CORNU_MAX_RANK]);

typedef struct {
    const char   *name;
    CornuReadRole role;
    CornuArray    array;     /* data NULL for weights */
    int64_t       onnx_type; /* of its elements in the file */
    bool          literal;   /* from a Constant node */
} CornuReadTensor;

typedef struct CornuReadGraph CornuReadGraph;

typedef struct {
    const char     *name;
    int64_t         whole;
    double          number;
    const char     *text;         /* NULL if it has none */
    CornuArray      tensor;       /* data NULL: none */
    int64_t         tensor_type;  /* of its elements in the file */
    CornuProtobufField graph;     /* bytes NULL: none */
    CornuReadGraph *body;         /* that graph, from cornu__read_captures on */
    const int64_t  *integers;
    const double   *numbers;
    const char    **texts;
    int             integer_count, number_count, text_count;
    CornuProtobufField bytes;      /* the message */
} CornuReadAttribute;

typedef struct {
    const char         *op, *domain, *name;   /* "" if absent */
    const char        **in, **out;            /* "" is an omitted one */
    CornuReadAttribute *attributes;
    int                 in_count, out_count, attribute_count;
    int                 own_count;            /* of `in`; what subgraphs use comes after them */
    bool                tied;                 /* gives a weight to several others:
                                                 load_internal.h */
    bool                recorded;             /* its results are tensors, if its operands are known,
                                                 too: likewise */
} CornuReadNode;

/* An input or output: its type; open extents are CORNU_NONE, with the name of each or "". A rank of
 * -1 is unknown. */
typedef struct {
    const char *name;
    CornuType   type;
    const char *symbols[CORNU_MAX_RANK];
    int64_t     onnx_type;                    /* 0: not a tensor */
} CornuReadInfo;

struct CornuReadGraph {
    const char      *name;
    CornuReadNode   *nodes;
    CornuReadTensor *tensors;
    CornuReadInfo   *inputs, *outputs;
    int              node_count, tensor_count, input_count, output_count;
};

typedef struct {
    int64_t        opset;                     /* of ONNX' own operators */
    CornuReadGraph graph;                     /* nodes that call local functions are replaced */
} CornuReadModel;

/* Reads a model from bytes that outlive the arena. `path` is its file's, beside which files of
 * external data are; NULL: such tensors are refused. CORNU_ERR_FORMAT or CORNU_ERR_UNSUPPORTED. */
CornuStatus cornu__onnx_parse(CornuArena *arena, const void *bytes, size_t size,
                              const char *path, CornuReadModel *model);

/* A graph that is an attribute, without external data. */
CornuStatus cornu__onnx_parse_graph(CornuArena *arena, const CornuProtobufField *field,
                                    CornuReadGraph *graph);

/* A TensorProto alone, as in the .pb files beside models. */
CornuStatus cornu__onnx_parse_tensor(CornuArena *arena, const void *bytes, size_t size,
                                     CornuReadTensor *tensor);

#endif
