/*
 * Recommendation: learns from events, who saw what and when, to predict whether a click follows. A
 * DLRM with tables of which a step touches only the rows that it looks up, on MovieLens' ratings or
 * on synthetic events whose structure is known. The area under the curve of the test rows is what
 * counts: the part of pairs of a click and another event that the model puts in the right order.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cornu/cornu.h>

#include "clock.h"
#include "commands.h"
#include "common/session.h"

typedef struct {
    double  table_rate, threshold;
    int64_t users, items, dim;
} Settings;

static CornuClicks *load(const Options *options, const Settings *settings)
{
    if (!strcmp(options->data, "synthetic"))
        return cornu_synthetic_clicks(options->limit ? options->limit : 500000, settings->users,
                                      settings->items, (uint64_t)options->seed);
    char         path[1024];
    const size_t length = strlen(options->data);
    const bool   is_file = length > 4 && !strcmp(options->data + length - 4, ".csv");
    snprintf(path, sizeof path, is_file ? "%s" : "%s/ratings.csv", options->data);
    return cornu_ratings_load(path, .limit = options->limit, .threshold = settings->threshold,
                              .seed = (uint64_t)options->seed);
}

static CornuModel *build(const Settings *settings, const CornuClicks *clicks)
{
    CornuDlrmConfig config = { .numbers = clicks->numbers, .dim = settings->dim,
                               .optimizer = cornu_adam(settings->table_rate) };
    for (int f = 0; f < clicks->features; f++) {
        config.vocabulary[f] = clicks->vocabulary[f];
        config.names[f] = clicks->names[f];
    }
    return cornu_dlrm_from(&config);
}

static CornuStatus train(const Options *options, CornuDevice *device, CornuModel *model,
                         const CornuClicks *clicks)
{
    double      results[2] = { NAN, NAN };
    CornuStatus status = cornu_compile(
        model, .device = device,
        .optimizer = cornu_dlrm_optimizer(model, cornu_adam(.learning_rate =
                                                                options->learning_rate)),
        .loss = CORNU_BINARY_CROSSENTROPY, .metrics = { cornu_auc(.name = "auc") },
        .steps_per_execution = options->steps_per_execution,
        .gradient_norm = options->gradient_norm, .debug_nans = options->debug_nans);
    CornuDataset *data = cornu_dataset_shuffle(cornu_dataset_retain(clicks->train),
                                               (uint64_t)options->seed);
    if (!status && !data) status = cornu_error_status();
    if (!status) cornu_summary(model);
    Options without = *options;   /* --save: the layers are the program's, so it has the weights */
    without.save = NULL;
    const double begin = clock_seconds();
    if (!status) status = session_train(&without, model, data, clicks->test, "events", results);
    if (!status && options->save) status = cornu_model_save_weights(model, options->save);
    const double seconds = clock_seconds() - begin;
    const int64_t steps = session_steps(options, clicks->train_rows);
    const double  seen = options->steps_per_epoch ? (double)(steps * options->batch_size)
                                                  : (double)clicks->train_rows;
    if (!status) {
        printf("Test loss: %.4f\nTest AUC: %.4f", results[0], results[1]);
        if (!isnan(clicks->best_auc))
            printf(" (synthetic; %.4f by the probabilities it was drawn with)", clicks->best_auc);
        printf("\n%.0f events/s, tests included\n", (double)options->epochs * seen / seconds);
    }
    cornu_dataset_free(data);
    return status;
}

static CornuStatus recommend(const Options *options, const Settings *settings)
{
    CornuDevice *device = session_open(options);
    CornuClicks *clicks = device ? load(options, settings) : NULL;
    CornuModel  *model = clicks ? build(settings, clicks) : NULL;
    CornuStatus  status = model ? CORNU_OK : cornu_error_status();
    if (clicks)
        printf("%s; %lld for training, %.1f %% of them clicks, %lld for testing\n",
               clicks->description, (long long)clicks->train_rows,
               100.0 * (double)clicks->train_clicks / (double)clicks->train_rows,
               (long long)clicks->test_rows);
    if (model) status = train(options, device, model, clicks);
    cornu_model_free(model);
    cornu_clicks_free(clicks);
    cornu_device_close(device);
    return status;
}

int command_recommend(int argc, char **argv)
{
    Settings     settings = { .table_rate = 0.01, .threshold = 4.0, .users = 1000, .items = 500,
                              .dim = 8 };
    Options      options = { .epochs = 3, .batch_size = 1024, .learning_rate = 1e-3,
                             .data = "synthetic" };
    const Option extra[] = {
        { "table-rate", OPTION_NUMBER, &settings.table_rate, "X", "learning rate of lazy Adam, for "
          "the tables", 1e-9, 100, NULL },
        { "dim", OPTION_WHOLE, &settings.dim, "N", "columns of the tables", 1, 4096, NULL },
        { "threshold", OPTION_NUMBER, &settings.threshold, "X", "ratings from here on count as "
          "clicks", 0.01, 100, NULL },
        { "users", OPTION_WHOLE, &settings.users, "N", "of synthetic events", 1, 1e9, NULL },
        { "items", OPTION_WHOLE, &settings.items, "N", "of synthetic events", 1, 1e9, NULL },
        OPTION_END,
    };
    const Program program = {
        .name = "cornu recommend", .extra = extra,
        .groups = OPTIONS_MACHINE | OPTIONS_DATA | OPTIONS_TRAINING | OPTIONS_FIT,
        .data = "MovieLens' ratings.csv or its folder, or synthetic", .data_no_sets = true,
        .purpose = "Learns which events lead to clicks.\n\nThey are MovieLens' ratings, or "
                   "synthetic ones, of which it is known how well they can be predicted.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    return session_end("cornu recommend", recommend(&options, &settings));
}
