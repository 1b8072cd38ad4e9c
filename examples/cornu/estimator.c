/*
 * The MNIST program of TensorFlow's TPU tutorials in C, with its flags and in its order: a network,
 * its data, and an estimator that trains, evaluates and predicts. Killed at any time, the same
 * command goes on from the newest checkpoint in --model_dir. Sources: tensorflow/tpu,
 * models/official/mnist/mnist_tpu.py, 2018; tensorflow/models, official/mnist/mnist.py.
 */
#include <stdio.h>

#include <cornu/cornu.h>

#include "commands.h"
#include "common/session.h"

typedef struct {
    const char *data_dir, *model_dir, *export;
    int64_t     batch_size, train_steps, eval_steps, iterations, num_shards;
    int64_t     save_checkpoints_steps;
    double      learning_rate;
    bool        use_tpu, enable_predict;
    const CornuTrainTest *mnist;
} Flags;

static CornuTPUEstimatorSpec *model_fn(CornuSymbol *const *features, CornuSymbol *const *labels,
                                       CornuModeKeys mode, const CornuEstimatorParams *params)
{
    const Flags *flags = params->own;
    CornuSymbol *image = cornu_call(cornu_rescaling(1.0 / 255.0), features[0]);
    CornuModel  *network = cornu_mnist_tutorial();
    CornuSymbol *logits = cornu_call(cornu_as_layer(network), image);
    cornu_model_free(network);   /* the call holds it */

    if (mode == CORNU_MODE_PREDICT)
        return cornu_tpu_estimator_spec(mode, .predictions = {
            { "class_ids", cornu_operation("argmax", "{ \"axis\": 1 }", logits) },
            { "probabilities", cornu_call(cornu_softmax(), logits) } });

    CornuLoss *loss = cornu_sparse_categorical_crossentropy(.from_logits = true);

    if (mode == CORNU_MODE_TRAIN) {
        CornuOptimizer *optimizer = cornu_sgd(
            .schedule = cornu_exponential_decay(flags->learning_rate, 100000, 0.96));
        if (params->use_tpu) optimizer = cornu_cross_shard_optimizer(optimizer);
        return cornu_tpu_estimator_spec(mode, .loss = { { loss, labels[0], logits } },
                                        .train_op = optimizer);
    }
    return cornu_tpu_estimator_spec(mode, .loss = { { loss, labels[0], logits } },
                                    .eval_metrics = { { CORNU_ACCURACY, labels[0], logits } });
}

static CornuDataset *train_input_fn(const CornuEstimatorParams *params)
{
    const CornuTrainTest *mnist = ((const Flags *)params->own)->mnist;
    CornuDataset *data = cornu_dataset_from_arrays(
        (CornuArray[]){ mnist->train_x, mnist->train_y }, 2);
    data = cornu_dataset_repeat(cornu_dataset_shuffle(data, 0), CORNU_NONE);
    return cornu_dataset_prefetch(cornu_dataset_batch(data, params->batch_size, true), 2);
}

static CornuDataset *eval_input_fn(const CornuEstimatorParams *params)
{
    const CornuTrainTest *mnist = ((const Flags *)params->own)->mnist;
    CornuDataset *data = cornu_dataset_from_arrays(
        (CornuArray[]){ mnist->test_x, mnist->test_y }, 2);
    return cornu_dataset_batch(data, params->batch_size, true);
}

/* The first 10 of the test data. */
static CornuDataset *predict_input_fn(const CornuEstimatorParams *params)
{
    const CornuTrainTest *mnist = ((const Flags *)params->own)->mnist;
    CornuDataset *data = cornu_dataset_from_arrays((CornuArray[]){ mnist->test_x }, 1);
    return cornu_dataset_batch(cornu_dataset_take(data, 10), params->batch_size, false);
}

static CornuStatus predict(CornuTPUEstimator *estimator)
{
    CornuPredictions      *predictions = cornu_estimator_predict(estimator, predict_input_fn);
    const CornuPrediction *one;
    CornuStatus            status = predictions ? CORNU_OK : cornu_error_take();
    while (!status && !(status = cornu_predictions_next(predictions, &one)) && one) {
        const int64_t class_id = (int64_t)cornu_array_get(cornu_prediction_get(one, "class_ids"),
                                                          0);
        const double  probability = cornu_array_get(cornu_prediction_get(one, "probabilities"),
                                                    class_id);
        printf("Prediction is \"%lld\" (%.1f%%).\n", (long long)class_id, 100.0 * probability);
    }
    cornu_predictions_free(predictions);
    return status;
}

static CornuStatus run(const Flags *flags, const Options *options, const CornuTpuTarget *tpu)
{
    CornuRunConfig run_config = cornu_run_config(
        .cluster = flags->use_tpu ? tpu : NULL, .model_dir = flags->model_dir,
        .session_config = cornu_session_config(
            .allow_soft_placement = true, .log_device_placement = true,
            .intra_op_parallelism_threads = (int)options->threads),
        .tpu_config = cornu_tpu_config(flags->iterations, (int)flags->num_shards));
    if (flags->save_checkpoints_steps)
        run_config.save_checkpoints_steps = flags->save_checkpoints_steps;
    CornuTPUEstimator *estimator = cornu_tpu_estimator(
        model_fn, .use_tpu = flags->use_tpu, .train_batch_size = flags->batch_size,
        .eval_batch_size = flags->batch_size, .predict_batch_size = flags->batch_size,
        .params = flags, .config = run_config);
    CornuStatus     status = estimator ? CORNU_OK : cornu_error_take();
    CornuEvaluation results;
    if (!status && flags->train_steps)
        status = cornu_estimator_train(estimator, train_input_fn,
                                       .max_steps = flags->train_steps);
    if (!status && flags->eval_steps) {
        status = cornu_estimator_evaluate(estimator, eval_input_fn, .steps = flags->eval_steps,
                                          .results = &results);
        if (!status)
            printf("Step %lld: loss %.4f, accuracy on %stest digits %.4f\n",
                   (long long)results.global_step, cornu_evaluation_get(&results, "loss"),
                   flags->mnist->synthetic ? "synthetic " : "",
                   cornu_evaluation_get(&results, "accuracy"));
    }
    if (!status && flags->enable_predict) status = predict(estimator);
    if (!status && flags->export)
        status = cornu_estimator_export(estimator, flags->export, predict_input_fn);
    cornu_tpu_estimator_free(estimator);
    return status;
}

/* As tf.logging with the verbosity INFO. */
static void print(void *context, CornuLogLevel level, const char *message)
{
    fprintf(context, "%s: %s\n", cornu_log_level_name(level), message);
}

int command_estimator(int argc, char **argv)
{
    Flags flags = { .batch_size = 1024, .train_steps = 1000, .learning_rate = 0.05,
                    .iterations = 50, .num_shards = 8, .use_tpu = true, .enable_predict = true };
    Options options = { 0 };
    const Option extra[] = {
        { "data_dir", OPTION_TEXT, &flags.data_dir, "DIR",
          "data directory, or synthetic; default CORNU_DATA, ./data or a download", 0, 0, NULL },
        { "model_dir", OPTION_TEXT, &flags.model_dir, "DIR",
          "checkpoints and events; default a new folder", 0, 0, NULL },
        { "batch_size", OPTION_WHOLE, &flags.batch_size, "N", "samples per step of all shards", 1,
          1e6, NULL },
        { "train_steps", OPTION_WHOLE, &flags.train_steps, "N",
          "the step to train to; 0: no training", 0, 1e12, NULL },
        { "eval_steps", OPTION_WHOLE, &flags.eval_steps, "N", "batches to evaluate; 0: none", 0,
          1e12, NULL },
        { "learning_rate", OPTION_NUMBER, &flags.learning_rate, "X", "learning rate", 1e-12, 1e38,
          NULL },
        { "use_tpu", OPTION_FLAG, &flags.use_tpu, "", "a TPU rather than a cpu", 0, 0, NULL },
        { "enable_predict", OPTION_FLAG, &flags.enable_predict, "",
          "some predictions at the end", 0, 0, NULL },
        { "iterations", OPTION_WHOLE, &flags.iterations, "N",
          "steps of a loop on the TPU, after which the host logs and saves", 1, 1e9, NULL },
        { "num_shards", OPTION_WHOLE, &flags.num_shards, "N", "shards (TPU chips)", 1,
          CORNU_MAX_SHARDS, NULL },
        { "save_checkpoints_steps", OPTION_WHOLE, &flags.save_checkpoints_steps, "N",
          "steps between checkpoints; default 600 seconds", 1, 1e12, NULL },
        { "export", OPTION_TEXT, &flags.export, "FILE",
          "write the model that predicts to FILE, .keras, .onnx or .safetensors", 0, 0, NULL },
        { "limit", OPTION_WHOLE, &options.limit, "N", "use only the first N samples", 1, 1e12,
          NULL },
        OPTION_END,
    };
    const Program program = { .name = "cornu estimator", .groups = OPTIONS_THREADS, .extra = extra,
                              .purpose = "Trains on handwritten digits with a TPUEstimator, as "
                                         "TensorFlow's TPU tutorial." };
    const int     usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    CornuTpuTarget tpu;
    options.data = flags.data_dir;
    cornu_set_log(CORNU_LOG_INFO, print, stderr);
    CornuStatus status = session_begin(&options);
    if (!status && cornu_process_count(session_processes()) > 1)
        status = cornu_error_set(CORNU_ERR_UNSUPPORTED, "an estimator trains in one process, and "
                                 "was started in several; mnist_cnn can be");
    if (!status && flags.use_tpu && !(status = cornu_tpu_resolve(&tpu))) fputs(tpu.text, stdout);
    CornuTrainTest *mnist = status ? NULL : session_mnist(&options);
    flags.mnist = mnist;
    if (!status) status = mnist ? run(&flags, &options, &tpu) : cornu_error_status();
    cornu_train_test_free(mnist);
    return session_end("cornu estimator", status);
}
