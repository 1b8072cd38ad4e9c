#include <math.h>

#include "kernel.h"

void cornu__epilogue_apply(const CornuEpilogue *epilogue, float *y, int64_t rows,
                           int64_t columns, int64_t stride, int64_t first_column)
{
    const float *bias = epilogue->bias ? epilogue->bias + first_column : NULL;
    const float  alpha = (float)epilogue->attributes.alpha.alpha;
    for (int64_t m = 0; m < rows; m++, y += stride) {
        if (bias)
            for (int64_t n = 0; n < columns; n++) y[n] += bias[n];
        switch (epilogue->activation) {
        case CORNU_OP_RELU:
            for (int64_t n = 0; n < columns; n++) y[n] = y[n] <= 0.0f ? 0.0f : y[n];
            break;
        case CORNU_OP_ELU:
            for (int64_t n = 0; n < columns; n++)
                y[n] = y[n] > 0.0f ? y[n] : alpha * expm1f(y[n]);
            break;
        case CORNU_OP_TANH:
            for (int64_t n = 0; n < columns; n++) y[n] = tanhf(y[n]);
            break;
        case CORNU_OP_SIGMOID:
            for (int64_t n = 0; n < columns; n++) y[n] = 1.0f / (1.0f + expf(-y[n]));
            break;
        default:
            break;
        }
    }
}
