/*
 * Element types, shapes, types of values, and host arrays.
 *
 * Everything is row-major: images are NHWC, filters HWIO, sequences (B, T, C). Extents and
 * counts are int64_t and every product of extents is checked for overflow.
 */
#ifndef CORNU_DEVICE_TYPE_H
#define CORNU_DEVICE_TYPE_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* id, printed name, bytes of one element on the host, safetensors name */
#define CORNU_DTYPE_MAP(X)        \
    X(F32,  "f32",  4, "F32")     \
    X(F64,  "f64",  8, "F64")     \
    X(BF16, "bf16", 2, "BF16")    \
    X(F16,  "f16",  2, "F16")     \
    X(I64,  "i64",  8, "I64")     \
    X(I32,  "i32",  4, "I32")     \
    X(U32,  "u32",  4, "U32")     \
    X(U8,   "u8",   1, "U8")      \
    X(BOOL, "bool", 1, "BOOL")

typedef enum {
#define X(id, name, size, file_name) CORNU_##id,
    CORNU_DTYPE_MAP(X)
#undef X
    CORNU_DTYPE_COUNT,
    /* For host arrays alone, which data sets and layers that prepare data take: an element is a
     * const char *, UTF-8, and NULL is "". Devices, graphs and files do not have it:
     * cornu_type_check refuses it. */
    CORNU_STRING = CORNU_DTYPE_COUNT
} CornuDtype;

/* "f32", "bf16", "string"; "unknown" for any other number. */
const char *cornu_dtype_name(CornuDtype dtype);
/* Bytes of an element in a host array; 0 for an unknown dtype. */
size_t      cornu_dtype_size(CornuDtype dtype);
/* Whether it is f32, f64, bf16 or f16. */
bool        cornu_dtype_is_float(CornuDtype dtype);

enum { CORNU_MAX_RANK = 8 };

/* An unknown extent, such as the batch in a layer's output shape. */
#define CORNU_NONE (-1)

typedef struct {
    int     rank;                   /* 0 is a scalar */
    int64_t extent[CORNU_MAX_RANK]; /* unused ones are 0 */
} CornuShape;

/* The type of a value: the dtype of its elements, and its shape. */
typedef struct {
    CornuDtype dtype;
    CornuShape shape;
} CornuType;

/* cornu_shape(60000, 28, 28): 0 to 8 extents; more is a compile-time error. */
#define cornu_shape(...)                                                                  \
    cornu_shape_from((int)(sizeof((int64_t[]){ 0, __VA_ARGS__ }) / sizeof(int64_t)) - 1, \
                     (const int64_t[CORNU_MAX_RANK + 1]){ 0, __VA_ARGS__ } + 1)
CornuShape cornu_shape_from(int rank, const int64_t *extents);

/* cornu_type(CORNU_F32, 128, 10) */
#define cornu_type(dtype, ...) cornu_type_from((dtype), cornu_shape(__VA_ARGS__))
CornuType cornu_type_from(CornuDtype dtype, CornuShape shape);
/* The type of a scalar, of rank 0. */
CornuType cornu_scalar(CornuDtype dtype);

/* Whether rank and extents are equal; CORNU_NONE equals itself alone. */
bool cornu_shape_equal(CornuShape a, CornuShape b);
/* Whether dtypes and shapes are equal. */
bool cornu_type_equal(CornuType a, CornuType b);

/* The number of elements, 1 of a scalar. The shape must have passed cornu_type_check. */
int64_t cornu_shape_count(CornuShape shape);
/* The number of elements of a checked type. */
int64_t cornu_type_count(CornuType type);
/* The bytes of a host array of a checked type. */
size_t  cornu_type_bytes(CornuType type);

/* CORNU_ERR_SHAPE if an extent is negative, the rank exceeds CORNU_MAX_RANK, or the number of
 * bytes does not fit in int64_t; CORNU_ERR_DTYPE for an unknown dtype. */
CornuStatus cornu_type_check(CornuType type);

/* The same for the type of a host array, which may be of strings. */
CornuStatus cornu_host_type_check(CornuType type);

/* The buffer of a printed shape or type: each argument of a printf needs one of its own. */
typedef struct { char text[160]; } CornuText;

/* Prints "(128, 28, 28, 1)", CORNU_NONE as "None". Returns the string, which is in `to`. */
const char *cornu_shape_print(CornuText *to, CornuShape shape);
/* Likewise "f32 (128, 10)". */
const char *cornu_type_print(CornuText *to, CornuType type);

/* A host array: elements of `type`, packed, row-major. Plain data; it does not own `data`. bf16 and
 * f16 are stored as their 16 bits, bool as one byte 0 or 1. */
typedef struct {
    CornuType type;
    void     *data;
} CornuArray;

/* cornu_array(pixels, CORNU_U8, 128, 28, 28): an array of the caller's memory. */
#define cornu_array(data, dtype, ...) cornu_array_from((data), cornu_type((dtype), __VA_ARGS__))
CornuArray cornu_array_from(void *data, CornuType type);

/* Element i, from 0, as a double. For tests, files and the reference device, not for inner
 * loops. */
double cornu_array_get(CornuArray array, int64_t i);
/* Sets element i: floats round to nearest even, integers saturate, NaN becomes 0 in an integer. */
void   cornu_array_set(CornuArray array, int64_t i, double value);

/* The 16 bits of bf16, the upper half of an f32, rounded to nearest even; NaN stays NaN. */
uint16_t cornu_bf16_from_float(float x);
float    cornu_bf16_to_float(uint16_t x);     /* exact */
/* The 16 bits of IEEE 754 binary16, rounded to nearest even; NaN stays NaN. */
uint16_t cornu_f16_from_float(float x);
float    cornu_f16_to_float(uint16_t x);      /* exact */

#ifdef __cplusplus
}
#endif
#endif
