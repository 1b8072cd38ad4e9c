#include "two_tasks.h"

#include <stdlib.h>

#include "../../expect.h"

static float   x[TASK_ROWS][TASK_FEATURES], sums[TASK_ROWS];
static int32_t classes[TASK_ROWS];

CornuArray two_tasks_array(int component)
{
    for (int i = 0; i < TASK_ROWS; i++) {
        sums[i] = 0.0f;
        for (int k = 0; k < TASK_FEATURES; k++) {
            x[i][k] = (float)((i * 7 + k * 5) % 13) / 6.0f - 1.0f;
            sums[i] += x[i][k];
        }
        classes[i] = sums[i] > 0.0f;
    }
    return component == 0 ? cornu_array(x, CORNU_F32, TASK_ROWS, TASK_FEATURES)
         : component == 1 ? cornu_array(classes, CORNU_I32, TASK_ROWS)
                          : cornu_array(sums, CORNU_F32, TASK_ROWS);
}

CornuTPUEstimatorSpec *two_tasks_model(CornuSymbol *const *features, CornuSymbol *const *labels,
                                       CornuModeKeys mode, const CornuEstimatorParams *params)
{
    const TwoTasks *own = params->own;
    CornuModel *body = cornu_sequential(.input_shape = { TASK_FEATURES });
    cornu_model_add(body, cornu_dense(6, .activation = CORNU_TANH));
    CornuSymbol *h = cornu_call(cornu_as_layer(body), features[0]);
    cornu_model_free(body);
    h = cornu_call(cornu_dropout(0.25), h);
    CornuSymbol *logits = cornu_call(cornu_dense(2), h), *sum = cornu_call(cornu_dense(1), h);
    if (mode == CORNU_MODE_PREDICT)
        return cornu_tpu_estimator_spec(mode, .predictions = {
            { "sum", sum }, { "probabilities", cornu_call(cornu_softmax(), logits) } });
    CornuSpecLoss class = { cornu_sparse_categorical_crossentropy(.from_logits = true), labels[0],
                            logits };
    CornuSpecLoss size = { cornu_mean_squared_error(), labels[1], sum };
    const double  weights[2] = { own->swapped ? 0.5 : 1.0, own->swapped ? 1.0 : 0.5 };
    if (mode == CORNU_MODE_EVAL)
        return cornu_tpu_estimator_spec(
            mode, .loss = { own->swapped ? size : class, own->swapped ? class : size },
            .loss_weights = { weights[0], weights[1] },
            .eval_metrics = { { CORNU_ACCURACY, labels[0], logits },
                              { cornu_metric("mae"), labels[1], sum } });
    const double    rate = own->learning_rate > 0.0 ? own->learning_rate : 0.05;
    CornuOptimizer *optimizer = own->adam ? cornu_adam(.learning_rate = rate)
                                          : cornu_sgd(.learning_rate = rate, .momentum = 0.5);
    return cornu_tpu_estimator_spec(
        mode, .loss = { own->swapped ? size : class, own->swapped ? class : size },
        .loss_weights = { weights[0], weights[1] },
        .train_op = cornu_cross_shard_optimizer(optimizer));
}

static CornuDataset *rows(int components)
{
    CornuArray arrays[3];
    for (int i = 0; i < components; i++) arrays[i] = two_tasks_array(i);
    return cornu_dataset_from_arrays(arrays, components);
}

CornuDataset *two_tasks_train(const CornuEstimatorParams *params)
{
    const TwoTasks *own = params->own;
    CornuDataset   *data = rows(3);
    if (own->shuffle) data = cornu_dataset_shuffle(data, own->shuffle);
    if (!own->finite) data = cornu_dataset_repeat(data, CORNU_NONE);
    return cornu_dataset_batch(data, own->batch_size ? own->batch_size : params->batch_size, true);
}

CornuDataset *two_tasks_test(const CornuEstimatorParams *params)
{
    return cornu_dataset_batch(rows(3), params->batch_size, false);
}

CornuDataset *two_tasks_features(const CornuEstimatorParams *params)
{
    return cornu_dataset_batch(rows(1), params->batch_size, false);
}

CornuTPUEstimator *two_tasks_estimator(const char *model_dir, const TwoTasks *own, bool use_tpu,
                                       int shards)
{
    return cornu_tpu_estimator(
        two_tasks_model, .params = own, .use_tpu = use_tpu, .train_batch_size = TASK_BATCH,
        .eval_batch_size = TASK_BATCH, .predict_batch_size = TASK_BATCH,
        .config = cornu_run_config(.model_dir = model_dir, .save_checkpoints_steps = 2,
                                   .save_summary_steps = 3, .log_step_count_steps = 4,
                                   .tf_random_seed = 5, .master = "tpu:v2-8",
                                   .session_config = cornu_session_config(
                                       .allow_soft_placement = true,
                                       .intra_op_parallelism_threads = 1),
                                   .tpu_config = cornu_tpu_config(3, shards)));
}

void two_tasks_run(const char *model_dir, int64_t max_steps)
{
    static const TwoTasks own = { .shuffle = 3 };
    CornuTPUEstimator    *estimator = two_tasks_estimator(model_dir, &own, false, 1);
    expect_ok(cornu_estimator_train(estimator, two_tasks_train, .max_steps = max_steps));
    cornu_tpu_estimator_free(estimator);
}
