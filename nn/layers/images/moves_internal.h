/* Changes of images that move pixels, for layers made of several changes. */
#ifndef CORNU_NN_MOVES_INTERNAL_H
#define CORNU_NN_MOVES_INTERNAL_H

#include "image_internal.h"
#include "sampling_internal.h"

CornuTensor *cornu__shear(CornuTensor *x, CornuDraws *draws, const double x_factor[2],
                          const double y_factor[2], const CornuSampling *sampling);
CornuTensor *cornu__translate(CornuTensor *x, CornuDraws *draws, const double height[2],
                              const double width[2], const CornuSampling *sampling);
/* By parts of a full turn. */
CornuTensor *cornu__rotate(CornuTensor *x, CornuDraws *draws, const double factor[2],
                           const CornuSampling *sampling);

/* x (B, H, W, C) convolved with exp(-d^2 / 2 sigma^2), normalized, of size[0] rows by size[1]
 * columns; sigmas like a draw; zeros are outside. */
CornuTensor *cornu__blur(CornuTensor *x, const int64_t size[2], CornuTensor *const sigma[2]);

#endif
