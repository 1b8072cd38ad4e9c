/* What convolutions and pools have in common: kernels, strides, paddings of one to three axes. */
#ifndef CORNU_NN_ONNX_WINDOW_INTERNAL_H
#define CORNU_NN_ONNX_WINDOW_INTERNAL_H

#include "../run_internal.h"

enum { CORNU_READ_AXES = 3 };

typedef struct {
    int     axes;                    /* 1 to 3 */
    int64_t kernel[CORNU_READ_AXES], strides[CORNU_READ_AXES], dilation[CORNU_READ_AXES];
    int64_t low[CORNU_READ_AXES], high[CORNU_READ_AXES];
    int64_t extra[CORNU_READ_AXES];  /* after `high`: what ceil_mode adds */
    int64_t results[CORNU_READ_AXES];
} CornuReadWindow;

/* Reads the attributes for x (B, C, …); `kernel` is the window if the node does not say, or
 * NULL. */
CornuStatus cornu__read_window(const CornuReadStep *step, CornuShape x, const int64_t *kernel,
                               CornuReadWindow *window);

/* x (B, C, …) with its padding, every element of it that has the offset in its window: (B, C, …) of
 * the window's results. `offset` counts positions of the kernel. */
CornuTensor *cornu__window_slice(CornuTensor *padded, const CornuReadWindow *window,
                                 int64_t offset);
int64_t      cornu__window_size(const CornuReadWindow *window);

#endif
