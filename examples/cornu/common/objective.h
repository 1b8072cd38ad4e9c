/* What a model is compiled with: --loss, --optimizer and --metrics, or what its file was saved
 * with. */
#ifndef CORNU_EXAMPLES_OBJECTIVE_H
#define CORNU_EXAMPLES_OBJECTIVE_H

#include "options.h"
#include "subject.h"

typedef struct {
    const char *loss, *optimizer, *metrics;   /* NULL: not given; metrics "accuracy,mae" */
    int64_t     accumulate_steps;             /* 0: the optimizer's own */
    bool        logits[CORNU_MAX_MODEL_TENSORS];   /* of which outputs the loss takes logits */
} Objective;

/* The flags of an objective, in a list of Option; without the optimizer where nothing is
 * trained. */
#define OBJECTIVE_LOSS_OPTIONS(objective)                                                          \
    { "loss", OPTION_TEXT, &(objective).loss, "NAME",                                              \
      "Keras' name, as mse; default that of the file or network", 0, 0, NULL },                    \
    { "metrics", OPTION_TEXT, &(objective).metrics, "NAME,...", "Keras' names, as accuracy,auc",   \
      0, 0, NULL }
#define OBJECTIVE_OPTIONS(objective)                                                               \
    OBJECTIVE_LOSS_OPTIONS(objective),                                                             \
    { "optimizer", OPTION_TEXT, &(objective).optimizer, "NAME",                                    \
      "Keras' name; default that of the file or network, else adam", 0, 0, NULL }

/* --optimizer, or Adam, with --learning-rate. */
CornuOptimizer *objective_optimizer(const Objective *objective, const Options *options);

/* Compiles with the named loss and metrics, and what else Options has for it; takes the
 * optimizer. */
CornuStatus objective_compile(const Objective *objective, const Options *options, CornuModel *model,
                              CornuOptimizer *optimizer, CornuDevice *device);

/* A compiled model of the subject. Without --loss a network has its published one, a .keras or .h5
 * file that with which it was saved; another one is asked for it. NULL on failure. */
CornuModel *objective_model(const Objective *objective, const Options *options,
                            const Subject *subject, CornuDevice *device);

/* A model that ends in no softmax or sigmoid, as PyTorch's classifiers do, gives logits, and a
 * crossentropy by its name alone takes probabilities: trained so, it learns nothing. Predicts the
 * first rows of `x` and, where they are outside 0 to 1, says so and compiles --loss NAME from
 * logits. */
CornuStatus objective_logits(Objective *objective, const Options *options, CornuModel *model,
                             CornuDevice *device, const CornuArray *x);

/* --batch-size, else that which the model fixes, as files of .onnx may, else `usual`. */
int64_t objective_batch(const Options *options, const CornuModel *model, int64_t usual);

#endif
