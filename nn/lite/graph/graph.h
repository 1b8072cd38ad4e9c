/*
 * A model as LiteRT's files have it: tensors, and operators in the order in which they run. Plain
 * data that the writer and the reader of .tflite files, the quantizer and the interpreters share.
 *
 * Tensors and operators are referred to by their numbers, which start at 0. Images are NHWC.
 * Weights have LiteRT's axes: FULLY_CONNECTED (U, K), CONV_2D (F, H, W, C), DEPTHWISE_CONV_2D
 * (1, H, W, C m), TRANSPOSE_CONV (F, H, W, C).
 *
 * Everything added is copied and belongs to the graph. Functions that add to a graph out of memory
 * record that in graph->status and return CORNU_LITE_NONE; what is added after that is dropped, so
 * status is looked at once, at the end.
 * Source: github.com/google-ai-edge/LiteRT, tflite/converter/schema/schema.fbs.
 */
#ifndef CORNU_NN_LITE_GRAPH_H
#define CORNU_NN_LITE_GRAPH_H

#include "../../../device/type.h"

enum { CORNU_LITE_NONE = -1 };          /* an omitted input */

/* TensorType, with the numbers of the schema; the elements of others are not known here. */
typedef enum {
    CORNU_LITE_F32 = 0, CORNU_LITE_F16 = 1, CORNU_LITE_I32 = 2, CORNU_LITE_U8 = 3,
    CORNU_LITE_I64 = 4, CORNU_LITE_BOOL = 6, CORNU_LITE_I16 = 7, CORNU_LITE_COMPLEX64 = 8,
    CORNU_LITE_I8 = 9,
} CornuLiteDtype;

size_t      cornu__lite_dtype_size(CornuLiteDtype dtype);   /* 0 for an unknown one */
const char *cornu__lite_dtype_name(CornuLiteDtype dtype);   /* "f32"; "type 5" is "?" */

/* BuiltinOperator: CORNU_LITE_CONV_2D is 3, etc. */
typedef enum {
#define OPERATOR(number, name, options, int8) CORNU_LITE_##name = number,
#include "operators.def"
#undef OPERATOR
} CornuLiteCode;

const char *cornu__lite_code_name(int code);     /* "CONV_2D", of any builtin one; else NULL */

typedef enum { CORNU_LITE_SAME = 0, CORNU_LITE_VALID = 1 } CornuLitePadding;

/* ActivationFunctionType: what an operator applies to its result. */
typedef enum {
    CORNU_LITE_LINEAR = 0, CORNU_LITE_FUSED_RELU = 1, CORNU_LITE_FUSED_RELU_N1_TO_1 = 2,
    CORNU_LITE_FUSED_RELU6 = 3, CORNU_LITE_FUSED_TANH = 4,
} CornuLiteActivation;

/* The fields of all tables of options; an operator uses those of its own, under their names in the
 * schema. Those that others leave 0 are 1 there by default: dilations, pot_scale_int16. */
typedef struct {
    CornuLitePadding    padding;
    CornuLiteActivation fused_activation;
    int32_t stride_d, stride_h, stride_w;                 /* 0 is read as 1 */
    int32_t dilation_d, dilation_h, dilation_w;           /* likewise */
    int32_t filter_h, filter_w;                           /* of pools */
    int32_t depth_multiplier;
    int32_t axis, batch_dims;                             /* CONCATENATION, GATHER, PACK, UNPACK */
    int32_t count;                                        /* SPLIT, SPLIT_V, PACK, UNPACK */
    int32_t block_size;                                   /* DEPTH_TO_SPACE, SPACE_TO_DEPTH */
    int32_t mirror;                                       /* MIRROR_PAD: 0 REFLECT, 1 SYMMETRIC */
    int32_t radius;                                       /* LOCAL_RESPONSE_NORMALIZATION */
    int32_t begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask;
    CornuLiteDtype in_dtype, out_dtype;                   /* CAST; out_dtype of SHAPE, ARG_MAX */
    float   beta, alpha, bias;                            /* SOFTMAX; LEAKY_RELU */
    float   cell_clip, proj_clip;                         /* 0: none */
    int32_t weights_format;                               /* FULLY_CONNECTED: 0, others refused */
    bool    keep_dims;                                    /* reductions; keep_num_dims */
    bool    align_corners, half_pixel_centers;
    bool    time_major, asymmetric_quantize_inputs, diagonal_recurrent_tensors;
    bool    adj_x, adj_y, approximate, offset;
    bool    exclusive, reverse;                           /* CUMSUM */
    int32_t extents[CORNU_MAX_RANK], extent_count;        /* RESHAPE's new_shape, SQUEEZE's axes */
} CornuLiteOptions;

/* real = scale (stored - zero_point). One scale for the tensor, or one for each index of an axis;
 * count is 0 for a tensor that is not quantized. */
typedef struct {
    float   *scales;
    int64_t *zero_points;               /* `count` as well */
    int      count, axis;
} CornuLiteQuantization;

typedef struct {
    char                 *name;         /* never NULL */
    CornuLiteDtype        dtype;
    CornuShape            shape;        /* CORNU_NONE: unknown, as the batch */
    void                 *data;         /* of a constant, packed, little-endian; NULL: computed */
    size_t                bytes;        /* of data */
    bool                  variable;     /* a state, which starts with zeros */
    CornuLiteQuantization quantization;
} CornuLiteTensor;

typedef struct {
    CornuLiteCode    code;
    int             *in, *out;          /* tensors; CORNU_LITE_NONE for an omitted input */
    int              in_count, out_count;
    CornuLiteOptions options;
    char            *custom;            /* the name of a CUSTOM operator; else NULL */
    unsigned char   *custom_options;    /* its own bytes; NULL: none */
    size_t           custom_bytes;
} CornuLiteOperator;

/* A state of a streaming model: each run reads what the one before it has left. */
typedef struct {
    char *name;                         /* never NULL */
    int   initial;                      /* a constant of the same type */
    int   now, next;                    /* the tensor read at the beginning, and its successor */
} CornuLiteVariable;

/* An input or output, under the name that the signature "serving_default" gives it. */
typedef struct {
    int   tensor;
    char *name;                         /* never NULL */
} CornuLitePort;

typedef struct {
    CornuLiteTensor   *tensors;
    CornuLiteOperator *operators;
    CornuLitePort     *inputs, *outputs;
    CornuLiteVariable *variables;
    int                tensor_count, operator_count, input_count, output_count, variable_count;
    int                tensor_space, operator_space, input_space, output_space, variable_space;
    char              *name;            /* of the model; may be NULL */
    CornuStatus        status;          /* CORNU_ERR_MEMORY once something could not be added */
} CornuLiteGraph;

/* An empty graph; NULL when out of memory. */
CornuLiteGraph *cornu__lite_graph_create(const char *name);
void            cornu__lite_graph_free(CornuLiteGraph *graph);

/* A tensor that is computed, or fed. */
int cornu__lite_add_tensor(CornuLiteGraph *graph, const char *name, CornuLiteDtype dtype,
                           CornuShape shape);

/* A constant, whose elements are copied; with data NULL they are zeros, to be filled by the caller
 * in graph->tensors[…].data. All extents are known. */
int cornu__lite_add_constant(CornuLiteGraph *graph, const char *name, CornuLiteDtype dtype,
                             CornuShape shape, const void *data);

/* A vector of i32, such as axes; a scalar f32. */
int cornu__lite_add_integers(CornuLiteGraph *graph, const int32_t *values, int count);
int cornu__lite_add_scalar(CornuLiteGraph *graph, float value);

/* Replaces the scales of a tensor; one for count 1, else one for each index of `axis`. zero_points
 * NULL is all zeros. */
void cornu__lite_set_scales(CornuLiteGraph *graph, int tensor, const float *scales,
                            const int64_t *zero_points, int count, int axis);

/* Returns the number of the operator. Options NULL is all zeros. */
int cornu__lite_add_operator(CornuLiteGraph *graph, CornuLiteCode code, const int *in, int in_count,
                             const int *out, int out_count, const CornuLiteOptions *options);

/* Makes operator `op` a custom one of this name, with its own options. */
void cornu__lite_set_custom(CornuLiteGraph *graph, int op, const char *name, const void *options,
                            size_t bytes);

/* Values before the first run, and the tensors that are read and kept. */
void cornu__lite_add_variable(CornuLiteGraph *graph, const char *name, int initial, int now,
                              int next);

/* The name of an operator: "CONV_2D", or that of a custom one. */
const char *cornu__lite_operator_name(const CornuLiteOperator *op);

/* Operand `i` of an operator; NULL for one that is omitted. */
const CornuLiteTensor *cornu__lite_in(const CornuLiteGraph *graph, const CornuLiteOperator *op,
                                      int i);

/* Where something failed, for messages: "operator 7, CONV_2D". */
typedef struct { char text[96]; } CornuLitePlace;
void cornu__lite_place(const CornuLiteGraph *graph, int op, CornuLitePlace *place);

void cornu__lite_add_input(CornuLiteGraph *graph, int tensor, const char *name);
void cornu__lite_add_output(CornuLiteGraph *graph, int tensor, const char *name);

/* Elements of a shape, with `batch` for each unknown extent. */
int64_t cornu__lite_count(CornuShape shape, int64_t batch);

#endif
