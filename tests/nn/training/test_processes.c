/*
 * Training in several processes: weights, variables of the optimizer, logs, evaluation and
 * predictions have the bits of one process.
 *
 * tests/run: takes 60 s, quick
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../device/processes/results.h"
#include "../../quick.h"

enum { ROWS = 37, BATCH = 16, SIDE = 6, TIMES = 4, FEATURES = SIDE * SIDE, WORDS = 11,
       CLASSES = 3 };

static float   x[ROWS * FEATURES];
static int32_t words[ROWS * TIMES], y[ROWS];

static void make_data(void)
{
    for (int i = 0; i < ROWS * FEATURES; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < ROWS * TIMES; i++) words[i] = (i * 29 + i / 7) % WORDS;
    for (int i = 0; i < ROWS; i++) y[i] = (i * 7 + i / 5) % CLASSES;
}

/* ---- Models ---- */

typedef struct {
    const char *name;
    CornuModel *(*layers)(void);
    CornuOptimizer *(*optimizer)(void);
    const char *policy;
    int64_t     times;        /* of its inputs; 0: images; the inputs are words if it is TIMES */
    bool        stateful;     /* whole batches alone, in order */
    bool        gradient_norm;
    int64_t     steps_per_execution;
    int         shards;       /* that it is for; 0: any */
} Case;

static CornuModel *convolved(bool synchronized)
{
    CornuModel *model = cornu_sequential(.input_shape = { SIDE, SIDE, 1 });
    cornu_model_add(model, cornu_conv2d(4, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_batch_normalization(.momentum = 0.9,
                                                     .synchronized = synchronized));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dropout(0.3));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *cnn_bn(void) { return convolved(false); }

static CornuModel *cnn_sync(void) { return convolved(true); }

/* Its weights are large enough for sums that are sent early and gathers that go on. */
static CornuModel *wide(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { SIDE, SIDE, 1 });
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(500, .activation = CORNU_TANH));
    cornu_model_add(model, cornu_dense(70, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dropout(0.2));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *stateful(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { 9, TIMES });
    cornu_model_add(model, cornu_lstm(5, .stateful = true, .dropout = 0.2));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuModel *embedded(void)
{
    CornuModel *model = cornu_sequential(.input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, 6));
    cornu_model_add(model, cornu_gru(7, .return_sequences = true));
    cornu_model_add(model, cornu_layer_normalization());
    cornu_model_add(model, cornu_global_average_pooling1d());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuOptimizer *adam_ema(void)
{
    return cornu_adam(.use_ema = true, .ema_momentum = 0.8, .clipnorm = 0.05);
}

static CornuOptimizer *sgd_clipped(void)
{
    return cornu_sgd(.momentum = 0.9, .nesterov = true, .global_clipnorm = 0.1,
                     .schedule = cornu_exponential_decay(0.1, 3, 0.7));
}

static CornuOptimizer *accumulated(void)
{
    return cornu_adam(.learning_rate = 0.01, .gradient_accumulation_steps = 3, .use_ema = true,
                      .ema_momentum = 0.7, .ema_overwrite_frequency = 2, .global_clipnorm = 0.5);
}

static CornuOptimizer *rms_centered(void)
{
    return cornu_rmsprop(.momentum = 0.5, .centered = true);
}

static CornuOptimizer *decayed(void) { return cornu_adamw(.learning_rate = 0.01, .amsgrad = true); }

static CornuOptimizer *scaled(void)
{
    return cornu_loss_scale_optimizer(cornu_sgd(.momentum = 0.5));
}

static CornuOptimizer *in_groups(void)
{
    return cornu_cross_shard_optimizer(cornu_adam(), .group_size = 4,
                                       .group_assignment = { 0, 3, 1, 2, 5, 7, 6, 4 });
}

static const Case cases[] = {
    { "cnn_bn", cnn_bn, adam_ema, .steps_per_execution = 4 },
    { "cnn_sync", cnn_sync, sgd_clipped, .gradient_norm = true },
    { "wide", wide, adam_ema, .shards = 0 },
    { "accumulated", wide, accumulated, .shards = 0 },
    { "stateful", stateful, rms_centered, .times = 9, .stateful = true },
    { "embedded", embedded, decayed, .times = TIMES },
    { "float16", wide, scaled, .policy = "mixed_float16", .steps_per_execution = 2 },
    { "groups", cnn_bn, in_groups, .shards = 8 },
};
enum { CASES = sizeof cases / sizeof *cases };

static CornuArray inputs(const Case *of, int rows)
{
    if (of->times == TIMES) return cornu_array(words, CORNU_I32, rows, TIMES);
    if (of->times) return cornu_array(x, CORNU_F32, rows, 9, TIMES);
    return cornu_array(x, CORNU_F32, rows, SIDE, SIDE, 1);
}

/* ---- What a training leaves ---- */

static CornuStatus keep_variable(const char *of, const char *name, const CornuVariable *variable)
{
    char        text[80];
    CornuType   type = cornu_variable_host_type(variable);
    CornuArray  host = cornu_array_from(malloc(cornu_type_bytes(type) + 1), type);
    CornuStatus status = cornu_variable_read(variable, host);
    snprintf(text, sizeof text, "%s, %.50s", of, name);
    if (!status) result(text, host.data, cornu_type_bytes(type));
    free(host.data);
    return status;
}

static CornuStatus keep_state(const char *of, const CornuModel *model)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        CORNU__TRY(keep_variable(of, weight->path, weight->variable));
    }
    for (int i = 0; i < cornu_model_optimizer_variable_count(model); i++) {
        const CornuVariable *variable = cornu_model_optimizer_variable(model, i);
        CORNU__TRY(keep_variable(of, cornu_variable_name(variable), variable));
    }
    return CORNU_OK;
}

static void keep_history(const char *of, const CornuHistory *history)
{
    char text[80];
    for (int key = 0; key < cornu_history_key_count(history); key++)
        for (int i = 0; i < cornu_history_epochs(history); i++) {
            const double value = cornu_history_get(history, cornu_history_key(history, key), i);
            snprintf(text, sizeof text, "%s, epoch %d, %s", of, i + 1,
                     cornu_history_key(history, key));
            result(text, &value, sizeof value);
        }
}

static CornuStatus train(const Case *of, CornuModel *model, const char *name)
{
    const int     rows = of->stateful ? ROWS / BATCH * BATCH : ROWS;
    double        values[4] = { 0 };
    float         predictions[ROWS * CLASSES];
    CornuHistory *history = cornu_fit(model, .x = inputs(of, rows),
                                      .y = cornu_array(y, CORNU_I32, rows), .epochs = 2,
                                      .batch_size = BATCH, .no_shuffle = of->stateful,
                                      .validation_data.x = inputs(of, BATCH),
                                      .validation_data.y = cornu_array(y, CORNU_I32, BATCH),
                                      .verbose = CORNU_SILENT);
    if (!history) return cornu_error_take();
    keep_history(name, history);
    cornu_history_free(history);
    CORNU__TRY(keep_state(name, model));
    for (int i = 0; i < 2; i++)
        CORNU__TRY(cornu_train_on_batch(model, inputs(of, BATCH), cornu_array(y, CORNU_I32, BATCH),
                                        values));
    result("values on batches", values, sizeof values);
    CORNU__TRY(cornu_evaluate(model, .x = inputs(of, rows), .y = cornu_array(y, CORNU_I32, rows),
                              .batch_size = BATCH, .results = values, .verbose = CORNU_SILENT));
    result("evaluation", values, sizeof values);
    CORNU__TRY(cornu_predict(model, .x = inputs(of, rows), .batch_size = BATCH,
                             .to = cornu_array(predictions, CORNU_F32, rows, CLASSES),
                             .verbose = CORNU_SILENT));
    result("predictions", predictions, (size_t)rows * CLASSES * sizeof *predictions);
    return keep_state(name, model);
}

static CornuStatus train_case(const Case *of, CornuDevice *device)
{
    char name[60];
    snprintf(name, sizeof name, "%s, %s, %d shards", of->name, cornu_device_name(device),
             cornu_device_shards(device));
    cornu_set_random_seed(11);
    cornu_set_dtype_policy(of->policy);
    CornuModel *model = of->layers();
    CornuStatus status = cornu_compile(
        model, .optimizer = of->optimizer(), .metrics = { CORNU_ACCURACY }, .device = device,
        .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .gradient_norm = of->gradient_norm,
        .steps_per_execution = of->steps_per_execution);
    if (!status) status = train(of, model, name);
    cornu_model_free(model);
    return status;
}

static CornuStatus train_all(CornuProcesses *processes)
{
    static const int shards[] = { 5, 8 };
    make_data();
    for (int i = 0; i < 4; i++) {
        if (shards[i / 2] < cornu_process_count(processes)) continue;
        CornuDevice *device = cornu_device_open(i % 2 ? "tpu" : "cpu", .threads = 1,
                                                .shards = shards[i / 2], .processes = processes);
        CornuStatus  status = device ? CORNU_OK : cornu_error_take();
        for (int k = 0; k < CASES && !status; k++)
            if (!cases[k].shards || cases[k].shards == shards[i / 2])
                status = train_case(&cases[k], device);
        cornu_device_close(device);
        CORNU__TRY(status);
    }
    return CORNU_OK;
}

static void trainings_have_the_bits_of_one_process(void **state)
{
    static const int counts[] = { 2, 8, 3, 0 };
    results_agree(*state, counts + quick(2, 0), quick(250, 500), train_all);
}

/* ---- A rank that fails: the others end with its message, whatever they are in ---- */

enum { FAILING = 2, BAD_ROW = 9 };   /* of 16 rows on 4 shards, row 9 is rank 2's */

static CornuModel *open_small(CornuProcesses *processes, CornuDevice **device)
{
    make_data();
    cornu_set_random_seed(11);
    *device = cornu_device_open("cpu", .threads = 1, .shards = 4, .processes = processes);
    CornuModel *model = *device ? cnn_bn() : NULL;
    if (model && !cornu_compile(model, .optimizer = cornu_adam(), .device = *device,
                                .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY))
        return model;
    cornu_model_free(model);
    return NULL;
}

static CornuStatus close_small(CornuModel *model, CornuDevice *device, CornuStatus status)
{
    if (!model) status = cornu_error_take();
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

static const CornuArray small_x = { .data = x,
                                    .type = { CORNU_F32, { 4, { BATCH, SIDE, SIDE, 1 } } } };
static const CornuArray small_y = { .data = y, .type = { CORNU_I32, { 1, { BATCH } } } };

static CornuStatus fit_small(CornuModel *model, CornuCallback *callback)
{
    CornuHistory *history = cornu_fit(model, .x = small_x, .y = small_y, .batch_size = BATCH,
                                      .epochs = 3, .no_shuffle = true, .verbose = CORNU_SILENT,
                                      .callbacks = { callback });
    if (!history) return cornu_error_take();
    cornu_history_free(history);
    return CORNU_OK;
}

static CornuStatus fit_bad_label(CornuProcesses *processes)
{
    CornuDevice *device;
    CornuModel  *model = open_small(processes, &device);
    y[BAD_ROW] = 99;
    return close_small(model, device, model ? fit_small(model, NULL) : CORNU_OK);
}

static CornuStatus evaluate_bad_label(CornuProcesses *processes)
{
    CornuDevice *device;
    CornuModel  *model = open_small(processes, &device);
    y[BAD_ROW] = 99;
    return close_small(model, device,
                       model ? cornu_evaluate(model, .x = small_x, .y = small_y,
                                              .batch_size = BATCH, .verbose = CORNU_SILENT)
                             : CORNU_OK);
}

/* The rank that has failed goes on to the next batch: its sums must not be added to those that the
 * others wait for. */
static CornuStatus train_on_bad_label(CornuProcesses *processes)
{
    CornuDevice *device;
    CornuModel  *model = open_small(processes, &device);
    CornuStatus  status = CORNU_OK;
    for (int i = 0; i < 4 && model; i++) {
        y[BAD_ROW] = i == 1 ? 99 : 0;
        const CornuStatus of_batch = cornu_train_on_batch(model, small_x, small_y, NULL);
        if (i > 1 && of_batch == CORNU_OK)
            return cornu__fail(CORNU_ERR_SHAPE, "batch %d is trained on without all ranks", i);
        if (!status) status = of_batch;
    }
    return close_small(model, device, status);
}

static CornuStatus fail_at_second_epoch(CornuCallback *self, CornuModel *model, int64_t epoch,
                                        const CornuLogs *logs)
{
    (void)self, (void)model, (void)logs;
    return epoch == 0 ? CORNU_OK : cornu_error_set(CORNU_ERR_FILE, "label 99 cannot be noted");
}

static CornuStatus fit_bad_callback(CornuProcesses *processes)
{
    CornuDevice  *device;
    CornuModel   *model = open_small(processes, &device);
    CornuCallback callback = { .epoch_begin = fail_at_second_epoch };
    const bool    fails = cornu_process_rank(processes) == FAILING;
    return close_small(model, device, model ? fit_small(model, fails ? &callback : NULL)
                                            : CORNU_OK);
}

static void a_rank_that_fails_is_named(void **state)
{
    static const struct { const char *name; RankBody *body; CornuStatus own; } fails[] = {
        { "fit", fit_bad_label, CORNU_ERR_VALUE },
        { "evaluate", evaluate_bad_label, CORNU_ERR_VALUE },
        { "train_on_batch", train_on_bad_label, CORNU_ERR_VALUE },
        { "a callback", fit_bad_callback, CORNU_ERR_FILE },
    };
    for (size_t k = 0; k < sizeof fails / sizeof *fails; k++) {
        Ranks ranks;
        ranks_run(&ranks, 4, *state, 20, NULL, fails[k].body);
        for (int i = 0; i < 4; i++) {
            const bool own = i == FAILING;
            ranks_expect(&ranks, i, own ? fails[k].own : CORNU_ERR_PROCESS,
                         own ? "label 99" : "rank 2: ");
            ranks_expect(&ranks, i, own ? fails[k].own : CORNU_ERR_PROCESS, "label 99");
            if (ranks.ends[i].seconds > 10) fail_msg("%s: rank %d is late", fails[k].name, i);
        }
        printf("%-16s %s\n", fails[k].name, ranks.ends[0].message);
    }
}

/* ---- Data that differ ---- */

static CornuStatus evaluate_other_data(CornuProcesses *processes)
{
    CornuDevice *device;
    CornuModel  *model = open_small(processes, &device);
    if (cornu_process_rank(processes) == FAILING) x[3] = 0.1234f;
    return close_small(model, device,
                       model ? cornu_evaluate(model, .x = small_x, .y = small_y,
                                              .batch_size = BATCH, .verbose = CORNU_SILENT)
                             : CORNU_OK);
}

static CornuStatus predict_more(CornuProcesses *processes)
{
    CornuDevice *device;
    CornuModel  *model = open_small(processes, &device);
    float        to[ROWS * CLASSES];
    const int    rows = cornu_process_rank(processes) == FAILING ? ROWS : BATCH;
    return close_small(model, device,
                       model ? cornu_predict(model, .x = cornu_array(x, CORNU_F32, rows, SIDE, SIDE,
                                                                     1),
                                             .to = cornu_array(to, CORNU_F32, rows, CLASSES),
                                             .batch_size = 8, .verbose = CORNU_SILENT)
                             : CORNU_OK);
}

static CornuStatus fit_other_validation(CornuProcesses *processes)
{
    CornuDevice *device;
    CornuModel  *model = open_small(processes, &device);
    int32_t      labels[8] = { 0 };
    if (!model) return close_small(model, device, CORNU_OK);
    if (cornu_process_rank(processes) == FAILING) labels[7] = 1;
    CornuHistory *history = cornu_fit(model, .x = small_x, .y = small_y, .batch_size = BATCH,
                                      .validation_data = {
                                          .x = cornu_array(x, CORNU_F32, 8, SIDE, SIDE, 1),
                                          .y = cornu_array(labels, CORNU_I32, 8) },
                                      .verbose = CORNU_SILENT);
    const CornuStatus status = history ? CORNU_OK : cornu_error_take();
    cornu_history_free(history);
    return close_small(model, device, status);
}

static void other_data_are_named(void **state)
{
    static const struct { const char *what; RankBody *body; } differ[] = {
        { "the data of the evaluation is 1 batches", evaluate_other_data },
        { "the data of the prediction is 5 batches", predict_more },
        { "the validation data is 1 batches", fit_other_validation },
    };
    for (size_t k = 0; k < sizeof differ / sizeof *differ; k++) {
        Ranks ranks;
        ranks_run(&ranks, 4, *state, 20, NULL, differ[k].body);
        for (int i = 0; i < 4; i++) {
            ranks_expect(&ranks, i, CORNU_ERR_PROCESS, differ[k].what);
            ranks_expect(&ranks, i, CORNU_ERR_PROCESS, "on rank 2 and ");
        }
    }
}

int main(void)
{
    static char shm[] = "shm", tcp[] = "tcp";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(trainings_have_the_bits_of_one_process, shm),
        cmocka_unit_test_prestate(trainings_have_the_bits_of_one_process, tcp),
        cmocka_unit_test_prestate(other_data_are_named, shm),
        cmocka_unit_test_prestate(a_rank_that_fails_is_named, shm),
        cmocka_unit_test_prestate(a_rank_that_fails_is_named, tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
