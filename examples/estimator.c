/*
 * TensorFlow 1's way to train on a TPU, TPUEstimator: a model_fn says what the network is, an
 * input_fn what its data are, and everything learned is in checkpoints in a folder. Killed at any
 * time, the program goes on from the newest one; once it has ended, it only evaluates.
 * Takes 4 seconds on two cores (AMD EPYC, Zen 4) and reaches 98.5 % of the test digits. Remove
 * the folder "digits" to begin anew.
 * Source: tensorflow/tpu, models/official/mnist/mnist_tpu.py, 2018.
 */
#include <stdio.h>

#include <cornu/cornu.h>

static CornuTPUEstimatorSpec *model_fn(CornuSymbol *const *features, CornuSymbol *const *labels,
                                       CornuModeKeys mode, const CornuEstimatorParams *params)
{
    (void)params;
    CornuSymbol *x = cornu_call(cornu_rescaling(1.0 / 255), features[0]);
    x = cornu_call(cornu_reshape({ 28, 28, 1 }), x);
    for (int filters = 16; filters <= 32; filters *= 2) {
        x = cornu_call(cornu_conv2d(filters, 5, .activation = CORNU_RELU), x);
        x = cornu_call(cornu_max_pooling2d(2), x);
    }
    CornuSymbol *logits = cornu_call(cornu_dense(10), cornu_call(cornu_flatten(), x));
    if (mode == CORNU_MODE_PREDICT)
        return cornu_tpu_estimator_spec(mode, .predictions = {
            { "class_ids", cornu_operation("argmax", "{ \"axis\": 1 }", logits) },
            { "probabilities", cornu_call(cornu_softmax(), logits) } });

    CornuLoss *loss = cornu_sparse_categorical_crossentropy(.from_logits = true);
    if (mode == CORNU_MODE_EVAL)
        return cornu_tpu_estimator_spec(mode, .loss = { { loss, labels[0], logits } },
                                        .eval_metrics = { { CORNU_ACCURACY, labels[0], logits } });
    return cornu_tpu_estimator_spec(mode, .loss = { { loss, labels[0], logits } },
                                    .train_op = cornu_cross_shard_optimizer(cornu_adam()));
}

static CornuTrainTest *mnist;

static CornuDataset *train_input_fn(const CornuEstimatorParams *params)
{
    CornuDataset *data = cornu_dataset_from_arrays(
        (CornuArray[]){ mnist->train_x, mnist->train_y }, 2);
    data = cornu_dataset_repeat(cornu_dataset_shuffle(data, 0), 3);
    return cornu_dataset_prefetch(cornu_dataset_batch(data, params->batch_size, true), 2);
}

static CornuDataset *eval_input_fn(const CornuEstimatorParams *params)
{
    return cornu_dataset_batch(cornu_dataset_from_arrays(
        (CornuArray[]){ mnist->test_x, mnist->test_y }, 2), params->batch_size, false);
}

/* As tf.logging with the verbosity INFO. */
static void print(void *context, CornuLogLevel level, const char *message)
{
    fprintf(context, "%s: %s\n", cornu_log_level_name(level), message);
}

int main(void)
{
    CornuEvaluation results;
    cornu_set_log(CORNU_LOG_INFO, print, stderr);
    if (!(mnist = cornu_mnist_load())) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    CornuTPUEstimator *estimator = cornu_tpu_estimator(
        model_fn, .use_tpu = true, .train_batch_size = 128, .eval_batch_size = 400,
        .predict_batch_size = 8, .config = cornu_run_config(
            .model_dir = "digits", .tpu_config = cornu_tpu_config(.iterations_per_loop = 50)));
    const int64_t steps = 3 * mnist->train_y.type.shape.extent[0] / 128;
    if (!estimator || cornu_estimator_train(estimator, train_input_fn, .max_steps = steps) ||
        cornu_estimator_evaluate(estimator, eval_input_fn, .results = &results))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("Step %lld: loss %.4f\nTest accuracy: %.4f\n", (long long)results.global_step,
           cornu_evaluation_get(&results, "loss"), cornu_evaluation_get(&results, "accuracy"));

    CornuPredictions      *predictions = cornu_estimator_predict(estimator, eval_input_fn);
    const CornuPrediction *one;
    for (int i = 0; i < 5 && !cornu_predictions_next(predictions, &one) && one; i++) {
        const double class_id = cornu_array_get(cornu_prediction_get(one, "class_ids"), 0);
        const CornuArray p = cornu_prediction_get(one, "probabilities");
        printf("Prediction is \"%.0f\" (%.1f%%).\n", class_id,
               100.0 * cornu_array_get(p, (int64_t)class_id));
    }
    cornu_predictions_free(predictions), cornu_tpu_estimator_free(estimator);
    cornu_train_test_free(mnist);
}
