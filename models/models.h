/*
 * Complete networks with their published training settings.
 *
 *     const CornuReferenceModel *reference = cornu_reference_model("mnist_cnn");
 *     CornuModel *model = reference->build(&(CornuNetworkConfig){ 0 });
 *     cornu_compile(model, .optimizer = cornu_reference_optimizer(reference, steps, 0.0),
 *                   .loss = cornu_loss(reference->loss), .metrics = { CORNU_ACCURACY });
 *     cornu_fit(model, .x = cornu_reference_input(model, images), .y = labels,
 *               .epochs = reference->epochs, .batch_size = reference->batch_size,
 *               .validation_split = reference->validation_split);
 */
#ifndef CORNU_MODELS_MODELS_H
#define CORNU_MODELS_MODELS_H

#include "../datasets/mnist/mnist.h"
#include "../datasets/text/shakespeare.h"
#include "../nn/layers/activations.h"
#include "../nn/model/model.h"
#include "../nn/model/tpu_embedding.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char   unset;
    double dropout;   /* of all dropout layers; default the published rates; CORNU_ZERO: none */
} CornuNetworkConfig;

/* ---- Handwritten digits: u8 images (28, 28), 10 classes ---- */

/* Three convolutions, two dense layers; 93,322 parameters. Source: ayyucekizrak/
 * Udemy_DerinOgrenmeyeGiris, GoogleColab_TPU_Kullanimi/MNIST_TPU_Egitim.ipynb. */
CornuModel *cornu_mnist_cnn_from(const CornuNetworkConfig *config);
#define cornu_mnist_cnn(...) \
    cornu_mnist_cnn_from(&(CornuNetworkConfig){ .unset = 0, __VA_ARGS__ })

/* Strided convolutions with batch normalization, images as rows of 784; 354,538 parameters.
 * Source: tensorflow/tpu, tools/colab/keras_mnist_tpu.ipynb, as of 2020. */
CornuModel *cornu_mnist_cnn_bn_from(const CornuNetworkConfig *config);
#define cornu_mnist_cnn_bn(...) \
    cornu_mnist_cnn_bn_from(&(CornuNetworkConfig){ .unset = 0, __VA_ARGS__ })

/* Two convolutions, one dense layer; 34,826 parameters. Source: keras-team/keras-io,
 * examples/vision/mnist_convnet.py. */
CornuModel *cornu_mnist_convnet_from(const CornuNetworkConfig *config);
#define cornu_mnist_convnet(...) \
    cornu_mnist_convnet_from(&(CornuNetworkConfig){ .unset = 0, __VA_ARGS__ })

/* Two convolutions of 5x5, two dense layers; logits; 3,274,634 parameters. Not one of
 * cornu_reference_models: an estimator trains it (examples/estimator.c). Source:
 * tensorflow/models, official/mnist/mnist.py, create_model. */
CornuModel *cornu_mnist_tutorial_from(const CornuNetworkConfig *config);
#define cornu_mnist_tutorial(...) \
    cornu_mnist_tutorial_from(&(CornuNetworkConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Garments: u8 images (28, 28), 10 classes ---- */

/* Three convolutions of 5x5, each after a batch normalization, the first of which gets the raw
 * pixels; 1,619,470 parameters, 386 of them not trainable. Source: tensorflow/tpu,
 * tools/colab/fashion_mnist.ipynb, as of 2018. */
CornuModel *cornu_fashion_mnist_cnn_from(const CornuNetworkConfig *config);
#define cornu_fashion_mnist_cnn(...) \
    cornu_fashion_mnist_cnn_from(&(CornuNetworkConfig){ .unset = 0, __VA_ARGS__ })

/* Nine residual blocks of two convolutions each; 274,154 parameters, 1,376 of them not trainable.
 * Pixels are scaled to 0 to 1. No dropout. Source: keras-team/keras, as of
 * 2018, examples/cifar10_resnet.py (ResNet20 v1), for one channel of 28 x 28; He et al., "Deep
 * Residual Learning for Image Recognition", section 4.2. */
CornuModel *cornu_resnet20_from(const CornuNetworkConfig *config);
#define cornu_resnet20(...) \
    cornu_resnet20_from(&(CornuNetworkConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Characters: (T) of 256 code points or another vocabulary; predicts each successor ---- */

/* The networks for Shakespeare and their data: the LSTMs as published, a smaller one that trains in
 * minutes, and a transformer. Training settings are below, under the name of the model. */
typedef struct {
    const char *name;                        /* "full", "quick", "gpt", "gpt_large" */
    const char *note;                        /* one line of description */
    const char *model;                       /* "shakespeare_lstm", "shakespeare_lstm_quick",
                                                "char_gpt", "gpt_large" */
    int64_t     channels, units, layers;     /* of the embedding; of each LSTM; number of LSTMs */
    CornuActivation recurrent_activation;    /* of the LSTMs; default sigmoid */
    int64_t     heads;                       /* of a transformer, whose `layers` are blocks; 0 for
                                                LSTMs */
    int64_t     sequence_length;
    int64_t     steps_per_epoch;             /* 0: all blocks of the text */
    bool        random;                      /* windows at random positions, else blocks */
    double      validation;                  /* fraction of the text, at its end, held out */
} CornuTextPreset;

/* NULL and CORNU_ERR_ARGUMENT, pending, for any other name. */
const CornuTextPreset *cornu_text_preset(const char *name);

typedef struct {
    char                   unset;
    const CornuTextPreset *preset;           /* default "full"           */
    int64_t                sequence_length;  /* default the preset's     */
    int64_t                vocabulary;       /* default 256              */
    bool                   stateful;         /* keep states between batches, for generation */
} CornuShakespeareConfig;

/* Embedding, LSTMs, and at every step a dense layer with softmax over the vocabulary; 4,460,800
 * parameters as published. Source: tensorflow/tpu,
 * tools/colab/shakespeare_with_tpu_and_keras.ipynb, as of 2018. */
CornuModel *cornu_shakespeare_lstm_from(const CornuShakespeareConfig *config);
#define cornu_shakespeare_lstm(...) \
    cornu_shakespeare_lstm_from(&(CornuShakespeareConfig){ .unset = 0, __VA_ARGS__ })

/* Embeddings of characters and positions, blocks of causal attention and two dense layers, each
 * after a layer normalization, and softmax over the vocabulary; 875,520 parameters with 128
 * positions and 256 characters. Each position is predicted from those before it; there are no
 * states. Its preset is "gpt"; that of "gpt_large" has 57,196,288, for a mesh to cut. Source:
 * Radford et al., "Language Models are Unsupervised Multitask Learners", section 2.3;
 * karpathy/nanoGPT, config/train_shakespeare_char.py, in the size that its readme gives for a
 * CPU. */
CornuModel *cornu_char_gpt_from(const CornuShakespeareConfig *config);
#define cornu_char_gpt(...) \
    cornu_char_gpt_from(&(CornuShakespeareConfig){ .unset = 0, __VA_ARGS__ })

/* The one of the two that the preset selects. */
CornuModel *cornu_text_network_from(const CornuShakespeareConfig *config);
#define cornu_text_network(...) \
    cornu_text_network_from(&(CornuShakespeareConfig){ .unset = 0, __VA_ARGS__ })

/* ---- Recommendation: categories and numbers of an event; predicts a click ---- */

enum { CORNU_DLRM_FEATURES = 26, CORNU_DLRM_LAYERS = 4 };

typedef struct {
    char            unset;
    int64_t         vocabulary[CORNU_DLRM_FEATURES]; /* required: of each category, up to a 0 */
    const char     *names[CORNU_DLRM_FEATURES];      /* of the categories */
    int64_t         numbers;                         /* required: how many there are */
    int64_t         dim;                             /* of embeddings; default 16 */
    int64_t         bottom[CORNU_DLRM_LAYERS];       /* units of the layers for numbers, before one
                                                        of dim; default 64 */
    int64_t         top[CORNU_DLRM_LAYERS];          /* of those for the dot products, before one of
                                                        1; default 64, 32 */
    CornuOptimizer *optimizer;                       /* of the tables; default that of the rest;
                                                        taken */
} CornuDlrmConfig;

/*
 * Embeddings of categories and a network for numbers give vectors of one length; the dot products
 * of all pairs and the vector of the numbers go through another network. Inputs: an i32 (1) for
 * each category, then f32 (numbers). Output: the probability of a click. Steps touch only the rows
 * of tables that are looked up. Source: Naumov et al., "Deep Learning Recommendation Model for
 * Personalization and Recommendation Systems", arXiv 1906.00091.
 */
CornuModel *cornu_dlrm_from(const CornuDlrmConfig *config);
#define cornu_dlrm(...) cornu_dlrm_from(&(CornuDlrmConfig){ .unset = 0, __VA_ARGS__ })

/* Its optimizer for cornu_compile: that of the tables, and `others`, which is taken, of the
 * rest. */
CornuOptimizer *cornu_dlrm_optimizer(CornuModel *model, CornuOptimizer *others);

/* ---- By name, with the published settings ---- */

typedef enum {
    CORNU_REFERENCE_ADAM,
    CORNU_REFERENCE_RMSPROP,
    CORNU_REFERENCE_RMSPROP_TENSORFLOW_1,   /* its form, see cornu_rmsprop */
    CORNU_REFERENCE_ADAMW                   /* clipped; the rate rises for 100 steps, then decays as
                                               a cosine to a tenth in the last epoch */
} CornuReferenceOptimizer;

typedef struct {
    const char *name;
    CornuModel *(*build)(const CornuNetworkConfig *config);
    CornuTrainTest *(*load)(const CornuTrainTestConfig *config);   /* its data: u8 x and y */
    const char *target;             /* the prediction, in one word: "class", "character" */
    const char *loss;               /* for cornu_loss, of labels: y has the output's shape without
                                       the last axis */
    CornuReferenceOptimizer optimizer;
    double      learning_rate;      /* in the first epoch */
    double      decay_per_epoch;    /* the rate's factor per epoch; 1: no decay */
    int64_t     epochs, batch_size;
    int64_t     epoch_samples;      /* per epoch as published, else all of the training data */
    double      validation_split;   /* fraction of the training data held out; 0: validation on the
                                       test data */
    bool        large;              /* tens of millions of parameters: comparisons of all networks
                                       leave it out */
} CornuReferenceModel;

/* All of them, *count in number. */
const CornuReferenceModel *cornu_reference_models(int *count);

/* NULL and CORNU_ERR_ARGUMENT, pending, suggesting the most similar name. */
const CornuReferenceModel *cornu_reference_model(const char *name);

/* The type of a batch of inputs, u8, for a model that `build` returned. */
CornuType cornu_reference_input_type(const CornuModel *model, int64_t batch_size);
/* Likewise of its labels. */
CornuType cornu_reference_label_type(const CornuModel *model, int64_t batch_size);

/* The published optimizer, whose rate changes every steps_per_epoch steps for reference->epochs
 * epochs; a learning_rate other than 0 replaces rate and decay. */
CornuOptimizer *cornu_reference_optimizer(const CornuReferenceModel *reference,
                                          int64_t steps_per_epoch, double learning_rate);

/* x reshaped to rows of the model's input shape, without a copy: images (N, 28, 28) as (N, 784). */
CornuArray cornu_reference_input(const CornuModel *model, CornuArray x);

/* ---- Published epoch times ---- */

typedef struct {
    const char *model, *hardware;   /* "mnist_cnn", "Colab TPU" */
    int64_t     batch_size, steps;  /* of an epoch; their product is its samples */
    double      least_s, most_s;    /* seconds per epoch, without the first one, which compiles,
                                       unless only a mean of all epochs was published */
    const char *source;
} CornuPublishedEpoch;

/* All of them, grouped by model, *count in number. */
const CornuPublishedEpoch *cornu_published_epochs(int *count);

#ifdef __cplusplus
}
#endif
#endif
