/*
 * MNIST (handwritten digits) and Fashion-MNIST (garments): 60,000 training and 10,000 test
 * images, 28x28, grey, light on black, in ten classes.
 *
 *     CornuTrainTest *mnist = cornu_mnist_load(.data = "synthetic", .limit = 1000);
 *
 * Sources: LeCun, Cortes, Burges, "The MNIST database of handwritten digits"; Xiao, Rasul,
 * Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning Algorithms"
 * (arXiv:1708.07747).
 */
#ifndef CORNU_DATASETS_MNIST_H
#define CORNU_DATASETS_MNIST_H

#include "../pipeline/train_test.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Handwritten digits: images are u8 (N, 28, 28), labels u8 (N,), each below 10.
 *
 * Loads both parts and checks that there are as many labels as images, that images are 28x28 and
 * labels below 10. NULL with CORNU_ERR_DATA if files cannot be found or downloaded, CORNU_ERR_FILE,
 * CORNU_ERR_FORMAT, CORNU_ERR_SHAPE or CORNU_ERR_VALUE if they are not valid; the message names the
 * file.
 */
#define cornu_mnist_load(...) \
    cornu_mnist_load_from(&(CornuTrainTestConfig){ .unset = 0, __VA_ARGS__ })
CornuTrainTest *cornu_mnist_load_from(const CornuTrainTestConfig *config);

/* Garments of the same shape and classes as many, likewise. */
#define cornu_fashion_mnist_load(...) \
    cornu_fashion_mnist_load_from(&(CornuTrainTestConfig){ .unset = 0, __VA_ARGS__ })
CornuTrainTest *cornu_fashion_mnist_load_from(const CornuTrainTestConfig *config);

#ifdef __cplusplus
}
#endif
#endif
