#include "type.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "status_internal.h"

static const struct { const char *name; size_t size; } dtypes[CORNU_DTYPE_COUNT] = {
#define X(id, name, size, file_name) { name, size },
    CORNU_DTYPE_MAP(X)
#undef X
};

static bool known(CornuDtype dtype) { return (unsigned)dtype < CORNU_DTYPE_COUNT; }

const char *cornu_dtype_name(CornuDtype dtype)
{
    if (dtype == CORNU_STRING) return "string";
    return known(dtype) ? dtypes[dtype].name : "unknown";
}

size_t cornu_dtype_size(CornuDtype dtype)
{
    if (dtype == CORNU_STRING) return sizeof(const char *);
    return known(dtype) ? dtypes[dtype].size : 0;
}

bool cornu_dtype_is_float(CornuDtype dtype)
{
    return dtype == CORNU_F32 || dtype == CORNU_F64 || dtype == CORNU_BF16 || dtype == CORNU_F16;
}

CornuShape cornu_shape_from(int rank, const int64_t *extents)
{
    CornuShape shape = { .rank = rank };
    for (int i = 0; i < rank && i < CORNU_MAX_RANK; i++) shape.extent[i] = extents[i];
    return shape;
}

CornuType cornu_type_from(CornuDtype dtype, CornuShape shape)
{
    return (CornuType){ .dtype = dtype, .shape = shape };
}

CornuType cornu_scalar(CornuDtype dtype) { return (CornuType){ .dtype = dtype }; }

bool cornu_shape_equal(CornuShape a, CornuShape b)
{
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++)
        if (a.extent[i] != b.extent[i]) return false;
    return true;
}

bool cornu_type_equal(CornuType a, CornuType b)
{
    return a.dtype == b.dtype && cornu_shape_equal(a.shape, b.shape);
}

int64_t cornu_shape_count(CornuShape shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) count *= shape.extent[i];
    return count;
}

int64_t cornu_type_count(CornuType type) { return cornu_shape_count(type.shape); }

size_t cornu_type_bytes(CornuType type)
{
    return (size_t)cornu_type_count(type) * cornu_dtype_size(type.dtype);
}

static CornuStatus check_shape(CornuType type)
{
    if (type.shape.rank < 0 || type.shape.rank > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "a shape has rank %d, expected 0 to %d",
                           type.shape.rank, CORNU_MAX_RANK);
    CornuText text;
    bool      empty = false;
    for (int i = 0; i < type.shape.rank; i++) {
        if (type.shape.extent[i] < 0)
            return cornu__fail(CORNU_ERR_SHAPE, "shape %s has a negative extent",
                               cornu_shape_print(&text, type.shape));
        empty |= type.shape.extent[i] == 0;
    }
    /* An empty shape holds no bytes, whatever its other extents. */
    int64_t bytes = (int64_t)cornu_dtype_size(type.dtype);
    for (int i = 0; i < type.shape.rank && !empty; i++) {
        if (type.shape.extent[i] > INT64_MAX / bytes)
            return cornu__fail(CORNU_ERR_SHAPE, "shape %s has more elements than can be counted",
                               cornu_shape_print(&text, type.shape));
        bytes *= type.shape.extent[i];
    }
    return CORNU_OK;
}

CornuStatus cornu_type_check(CornuType type)
{
    if (type.dtype == CORNU_STRING)
        return cornu__fail(CORNU_ERR_DTYPE, "strings, where numbers are expected");
    if (!known(type.dtype))
        return cornu__fail(CORNU_ERR_DTYPE, "element type %d is not one of the %d known",
                           (int)type.dtype, (int)CORNU_DTYPE_COUNT);
    return check_shape(type);
}

CornuStatus cornu_host_type_check(CornuType type)
{
    return type.dtype == CORNU_STRING ? check_shape(type) : cornu_type_check(type);
}

const char *cornu_shape_print(CornuText *to, CornuShape shape)
{
    size_t used = (size_t)snprintf(to->text, sizeof to->text, "(");
    for (int i = 0; i < shape.rank && i < CORNU_MAX_RANK; i++) {
        const char *comma = i ? ", " : "";
        used += shape.extent[i] == CORNU_NONE
              ? (size_t)snprintf(to->text + used, sizeof to->text - used, "%sNone", comma)
              : (size_t)snprintf(to->text + used, sizeof to->text - used, "%s%lld", comma,
                                 (long long)shape.extent[i]);
    }
    /* As Python prints a tuple of one. */
    snprintf(to->text + used, sizeof to->text - used, shape.rank == 1 ? ",)" : ")");
    return to->text;
}

const char *cornu_type_print(CornuText *to, CornuType type)
{
    CornuText shape;
    snprintf(to->text, sizeof to->text, "%s %s", cornu_dtype_name(type.dtype),
             cornu_shape_print(&shape, type.shape));
    return to->text;
}

CornuArray cornu_array_from(void *data, CornuType type)
{
    return (CornuArray){ .type = type, .data = data };
}

double cornu_array_get(CornuArray array, int64_t i)
{
    switch (array.type.dtype) {
    case CORNU_F32:  return ((const float *)array.data)[i];
    case CORNU_F64:  return ((const double *)array.data)[i];
    case CORNU_BF16: return cornu_bf16_to_float(((const uint16_t *)array.data)[i]);
    case CORNU_F16:  return cornu_f16_to_float(((const uint16_t *)array.data)[i]);
    case CORNU_I64:  return (double)((const int64_t *)array.data)[i];
    case CORNU_I32:  return ((const int32_t *)array.data)[i];
    case CORNU_U32:  return ((const uint32_t *)array.data)[i];
    case CORNU_U8:
    case CORNU_BOOL: return ((const uint8_t *)array.data)[i];
    case CORNU_DTYPE_COUNT: break;
    }
    return 0.0;
}

/* The nearest integer in [low, high]; NaN gives 0. Halves go to even, as floats round. */
static double saturated(double value, double low, double high)
{
    if (isnan(value)) return 0.0;
    return value <= low ? low : value >= high ? high : nearbyint(value);
}

void cornu_array_set(CornuArray array, int64_t i, double value)
{
    switch (array.type.dtype) {
    case CORNU_F32:  ((float *)array.data)[i] = (float)value; break;
    case CORNU_F64:  ((double *)array.data)[i] = value; break;
    case CORNU_BF16: ((uint16_t *)array.data)[i] = cornu_bf16_from_float((float)value); break;
    case CORNU_F16:  ((uint16_t *)array.data)[i] = cornu_f16_from_float((float)value); break;
    case CORNU_I64:
        /* 2^63 is out of range of int64_t, and INT64_MAX is not representable as a double. */
        ((int64_t *)array.data)[i] = value >= 0x1p63 ? INT64_MAX
                                   : (int64_t)saturated(value, -0x1p63, 0x1p63);
        break;
    case CORNU_I32:
        ((int32_t *)array.data)[i] = (int32_t)saturated(value, INT32_MIN, INT32_MAX);
        break;
    case CORNU_U32:
        ((uint32_t *)array.data)[i] = (uint32_t)saturated(value, 0, UINT32_MAX);
        break;
    case CORNU_U8:   ((uint8_t *)array.data)[i] = (uint8_t)saturated(value, 0, UINT8_MAX); break;
    case CORNU_BOOL: ((uint8_t *)array.data)[i] = value != 0.0; break;
    case CORNU_DTYPE_COUNT: break;
    }
}

static uint32_t float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

uint16_t cornu_bf16_from_float(float x)
{
    uint32_t bits = float_bits(x);
    if (isnan(x)) return (uint16_t)(bits >> 16 | 0x40); /* keep it a quiet NaN */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float cornu_bf16_to_float(uint16_t x) { return bits_float((uint32_t)x << 16); }

uint16_t cornu_f16_from_float(float x)
{
    uint32_t bits = float_bits(x), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
    if (size >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds past 65504 */
    if (size < 0x38800000) {
        /* Subnormal: adding 0.5 lets the hardware round at the last bit of 2^-24. */
        float half = fabsf(x) + 0.5f;
        return (uint16_t)(sign | (float_bits(half) - 0x3f000000));
    }
    size += 0xc8000000 + 0xfff + (size >> 13 & 1); /* re-bias the exponent by 15 - 127, round */
    return (uint16_t)(sign | size >> 13);
}

float cornu_f16_to_float(uint16_t x)
{
    uint32_t sign = (uint32_t)(x & 0x8000) << 16, exponent = x >> 10 & 31, fraction = x & 0x3ff;
    if (exponent == 31) return bits_float(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) {
        float size = (float)fraction * 0x1p-24f;
        return sign ? -size : size;
    }
    return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
}
