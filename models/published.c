/* Epoch times as published, with their sources. */
#include "models.h"

#define COURSE "ayyucekizrak/Udemy_DerinOgrenmeyeGiris, GoogleColab_TPU_Kullanimi/"
#define ARTICLE "the article on ayyucekizrak/Udemy_DerinOgrenmeyeGiris"

static const CornuPublishedEpoch epochs[] = {
    { "mnist_cnn", "Colab TPU", 1024, 60, 3, 3, COURSE "MNIST_TPU_Egitim.ipynb" },
    { "mnist_cnn", "Colab GPU (K80)", 1024, 60, 11, 11, ARTICLE },
    { "mnist_cnn_bn", "Colab TPU", 512, 117, 1, 3,
      "tensorflow/tpu, tools/colab/keras_mnist_tpu.ipynb, runs of 2019 to 2021" },
    { "mnist_convnet", "not stated", 128, 422, 13, 17,
      "keras-team/keras-io, examples/vision/md/mnist_convnet.md" },
    { "fashion_mnist_cnn", "Colab TPU", 1024, 100, 8, 8,
      "tensorflow/tpu, tools/colab/fashion_mnist.ipynb, run of 2018" },
    { "fashion_mnist_cnn", "Colab TPU", 512, 100, 7, 7,
      COURSE "Fashion_MNIST_TPU_Egitimi.ipynb" },
    { "fashion_mnist_cnn", "Colab GPU", 512, 100, 196.0 / 15.0, 196.0 / 15.0,
      ARTICLE ": 196 s for 15 epochs" },
    { "fashion_mnist_cnn", "Colab CPU", 512, 100, 11164.0 / 15.0, 11164.0 / 15.0,
      ARTICLE ": 11,164 s for 15 epochs" },
    { "shakespeare_lstm", "Colab TPU", 1024, 100, 17, 17,
      "tensorflow/tpu, tools/colab/shakespeare_with_tpu_and_keras.ipynb, run of 2018" },
    { "shakespeare_lstm", "Colab TPU", 1024, 100, 19, 19, COURSE "LSTM__TPU_Egitimi.ipynb" },
};

const CornuPublishedEpoch *cornu_published_epochs(int *count)
{
    *count = (int)(sizeof epochs / sizeof *epochs);
    return epochs;
}
