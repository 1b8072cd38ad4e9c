/*
 * The loops of vector.h around a scalar function. They are inlined with the function
 * known, so that each becomes one vector loop; the simd directive says that a destination
 * may be a source but overlaps no other element.
 */
#ifndef CORNU_DEVICE_HOST_ISA_VECTOR_LOOP_H
#define CORNU_DEVICE_HOST_ISA_VECTOR_LOOP_H

#include "../../machine/vector.h"
#include "../per_isa.h"

#define CORNU__SIMD   _Pragma("omp simd")
#define CORNU__INLINE static inline __attribute__((always_inline))

CORNU__INLINE void map1_f32(const CornuVectorCall *call, int64_t count, float (*f)(float))
{
    const float *x = call->in[0];
    float       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = f(x[i]);
}

CORNU__INLINE void map2_f32(const CornuVectorCall *call, int64_t count, float (*f)(float, float))
{
    const float *a = call->in[0], *b = call->in[1];
    float       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = f(a[i], b[i]);
}

CORNU__INLINE void test2_f32(const CornuVectorCall *call, int64_t count, int (*f)(float, float))
{
    const float *a = call->in[0], *b = call->in[1];
    uint8_t     *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint8_t)f(a[i], b[i]);
}

CORNU__INLINE void map1_f64(const CornuVectorCall *call, int64_t count, double (*f)(double))
{
    const double *x = call->in[0];
    double       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = f(x[i]);
}

CORNU__INLINE void map2_f64(const CornuVectorCall *call, int64_t count,
                            double (*f)(double, double))
{
    const double *a = call->in[0], *b = call->in[1];
    double       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = f(a[i], b[i]);
}

CORNU__INLINE void test2_f64(const CornuVectorCall *call, int64_t count, int (*f)(double, double))
{
    const double *a = call->in[0], *b = call->in[1];
    uint8_t      *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint8_t)f(a[i], b[i]);
}

CORNU__INLINE void map1_i64(const CornuVectorCall *call, int64_t count, int64_t (*f)(int64_t))
{
    const int64_t *x = call->in[0];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = f(x[i]);
}

CORNU__INLINE void map2_i64(const CornuVectorCall *call, int64_t count,
                            int64_t (*f)(int64_t, int64_t))
{
    const int64_t *a = call->in[0], *b = call->in[1];
    int64_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = f(a[i], b[i]);
}

CORNU__INLINE void test2_i64(const CornuVectorCall *call, int64_t count,
                             int (*f)(int64_t, int64_t))
{
    const int64_t *a = call->in[0], *b = call->in[1];
    uint8_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint8_t)f(a[i], b[i]);
}

CORNU__INLINE void test2_bool(const CornuVectorCall *call, int64_t count,
                              int (*f)(uint8_t, uint8_t))
{
    const uint8_t *a = call->in[0], *b = call->in[1];
    uint8_t       *y = call->out[0];
    CORNU__SIMD for (int64_t i = 0; i < count; i++) y[i] = (uint8_t)f(a[i], b[i]);
}

#endif
