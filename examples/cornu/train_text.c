/* cornu train NAME, for a network of text: learns to write like it, character by character. */
#include "train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/mesh_flags.h"
#include "common/pictures.h"
#include "common/session.h"
#include "common/text_notes.h"

/* The state of a run; train_text frees it. */
typedef struct {
    const Options         *options;
    const TrainFlags      *flags;
    const CornuTextPreset *preset;
    CornuReferenceModel    reference;        /* its training, in the form of --rmsprop */
    CornuDevice           *device;
    CornuTextData         *text;
    CornuDataset          *train, *test;
    CornuModel            *model;
} Run;

/* ---- Data ---- */

const CornuTextPreset *text_preset_of(const char *model)
{
    static const char *const presets[] = { "full", "quick", "gpt", "gpt_large" };
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        const CornuTextPreset *preset = cornu_text_preset(presets[i]);
        if (!strcmp(preset->model, model)) return preset;
    }
    return NULL;
}

/* --text, or --data if that is a file, which may also lie in the data directory. */
static const char *file_of(const Run *run)
{
    const char    *what = run->flags->text ? run->flags->text : run->options->data;
    const DataKind kind = what ? data_kind(what) : DATA_SETS;
    return what == run->flags->text || kind == DATA_TEXT ||
                   (kind == DATA_ABSENT && strchr(what, '.'))
               ? what
               : NULL;
}

static CornuStatus open_text(Run *run)
{
    const char *file = file_of(run);
    const bool  is_data = file && file == run->options->data;
    run->text = cornu_text_load(.file = file,
                                .data = is_data ? run->options->data_dir
                                                : session_folder(run->options),
                                .limit = run->options->limit,
                                .encoding = data_encoding(&run->flags->data),
                                .seed = (uint64_t)run->options->seed,
                                .progress = session_show_download);
    if (!run->text) return cornu_error_status();
    printf("%s\n", run->text->description);
    return CORNU_OK;
}

/* Batches for training: blocks, in a new order in each epoch, or as many random windows as the
 * steps need. */
static CornuDataset *batches(const Run *run, int64_t count, bool random)
{
    const Options *options = run->options;
    const int64_t  T = run->flags->sequence_length, rows = options->batch_size;
    const int64_t  blocks = count / (T + 1), all_steps = blocks > rows ? blocks / rows : 1;
    const int64_t  steps = options->steps_per_epoch;
    const uint64_t seed = (uint64_t)options->seed;
    if (!random && blocks < rows) {
        cornu_error_set(CORNU_ERR_DATA, "%lld characters to train on are %lld blocks of %lld, "
                        "expected at least a batch of %lld; give a longer text or a smaller "
                        "--batch-size or --sequence-length", (long long)count, (long long)blocks,
                        (long long)T + 1, (long long)rows);
        return NULL;
    }
    CornuDataset *dataset = cornu_text_dataset(
        run->text, T, random ? CORNU_TEXT_RANDOM : CORNU_TEXT_BLOCKS, .count = count, .seed = seed,
        .samples = rows * (steps ? steps : all_steps));
    if (!random) dataset = cornu_dataset_shuffle(dataset, seed);
    dataset = cornu_dataset_batch(dataset, rows, true);
    if (!random && steps) dataset = cornu_dataset_repeat(dataset, CORNU_NONE);
    return cornu_dataset_prefetch(dataset, 2);
}

static CornuStatus open_data(Run *run)
{
    const TrainFlags *flags = run->flags;
    const int64_t all = run->text->tokens.type.shape.extent[0];
    const int64_t count = all - (int64_t)(flags->validation_split * (double)all);
    const bool    random = flags->sampling ? flags->sampling[0] == 'r' : run->preset->random;
    run->train = batches(run, count, random);
    if (!run->train) return cornu_error_status();
    if (count == all) return CORNU_OK;
    run->test = cornu_dataset_batch(cornu_text_dataset(run->text, flags->sequence_length,
                                                       .first = count),
                                    run->options->batch_size, false);
    if (!run->test) return cornu_error_status();
    printf("The last %lld of these are for validation.\n", (long long)(all - count));
    return CORNU_OK;
}

/* ---- Training ---- */

static void say_loss(const Run *run, const char *name, double loss)
{
    printf("%s%s: %.4f nats, %.4f bits per character\n", name,
           run->text->synthetic ? " on a synthetic text" : "", loss, loss / log(2.0));
}

static CornuStatus record(const Run *run, const CornuHistory *history)
{
    const Options         *options = run->options;
    const CornuStatistics *step = cornu_model_statistics(run->model);
    const int64_t all = run->text->tokens.type.shape.extent[0];
    const int64_t held = (int64_t)(run->flags->validation_split * (double)all);
    const int     last = cornu_history_epochs(history) - 1;
    if (options->plots && pictures_of_training(options->plots, run->model, history, NULL))
        return cornu_error_status();
    if (!options->history) return CORNU_OK;
    const CornuRunRecord made = {
        .model = cornu_model_name(run->model), .device = cornu_device_name(run->device),
        .policy = cornu_model_policy(run->model)->name,
        .threads = cornu_device_threads(run->device), .shards = cornu_device_shards(run->device),
        .processes = cornu_process_count(cornu_device_processes(run->device)),
        .parameters = cornu_model_parameters(run->model),
        .data = { .name = "text", .synthetic = run->text->synthetic, .train = all - held,
                  .test = held },
        .history = history,
        .flops_per_sample = step ? (double)step->flops / (double)options->batch_size : NAN,
        .test_loss = held ? cornu_history_get(history, "val_loss", last) : NAN,
        .test_accuracy = held ? cornu_history_get(history, "val_accuracy", last) : NAN,
    };
    return cornu_record_write(&made, options->history);
}

/* Steps per epoch: --steps-per-epoch, or the number of batches. */
static int64_t steps(const Run *run)
{
    const int64_t batches = cornu_dataset_count(run->train);
    return run->options->steps_per_epoch ? run->options->steps_per_epoch : batches;
}

static void say_optimizer(const Run *run)
{
    static const char *const forms[] = {
        [CORNU_REFERENCE_RMSPROP] =
            "RMSprop in the form of Keras: average begins with 0, epsilon 1e-7",
        [CORNU_REFERENCE_RMSPROP_TENSORFLOW_1] =
            "RMSprop in the form of TensorFlow 1: average begins with 1, epsilon 1e-10",
        [CORNU_REFERENCE_ADAMW] = "AdamW in a cosine",
    };
    double rate;
    cornu_optimizer_learning_rate(cornu_model_optimizer(run->model), &rate);
    printf("Trained with %s, learning rate %g.\n", forms[run->reference.optimizer], rate);
}

static CornuStatus train(Run *run)
{
    const Options *options = run->options;
    run->device = session_open(options);
    if (!run->device || open_text(run)) return cornu_error_status();
    printf("Preset %s: %s.\n", run->preset->name, run->preset->note);
    if (open_data(run)) return cornu_error_status();
    run->model = cornu_text_network(.preset = run->preset, .vocabulary = run->text->vocabulary,
                                    .sequence_length = run->flags->sequence_length);
    if (!run->model || train_check_remat(run->flags, run->model) ||
        mesh_lay_out(options, run->model, run->device))
        return cornu_error_status();
    mesh_blame(options, cornu_compile(
        run->model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
        .optimizer = cornu_reference_optimizer(&run->reference,
                                               train_updates(run->flags, steps(run)),
                                               options->learning_rate),
        .accumulate_steps = run->flags->objective.accumulate_steps,
        .metrics = { CORNU_ACCURACY }, .device = run->device,
        .steps_per_execution = options->steps_per_execution,
        .gradient_norm = options->gradient_norm, .debug_nans = options->debug_nans));
    cornu_summary(run->model);
    if (text_note(run->model, run->text) || session_prepare(options, run->model, NULL))
        return cornu_error_status();
    CornuHistory *history = cornu_fit(
        run->model, run->train, .epochs = options->epochs, .validation_data = { .data = run->test },
        .steps_per_epoch = options->steps_per_epoch, .verbose = options->verbose,
        .callbacks = { SESSION_CALLBACKS(options) });
    if (!history) return session_stopped(options, run->model);

    CornuStatus status = session_save(options, run->model);
    const int last = cornu_history_epochs(history) - 1;
    say_optimizer(run);
    say_loss(run, "Training loss", cornu_history_get(history, "loss", last));
    if (run->test)
        say_loss(run, "Validation loss", cornu_history_get(history, "val_loss", last));
    session_remarks(run->model);
    if (!status) status = record(run, history);
    if (!status) status = session_finish(options);
    cornu_history_free(history);
    return status;
}

CornuStatus train_text(Options *options, TrainFlags *flags, const CornuTextPreset *preset)
{
    Run run = { .options = options, .flags = flags, .preset = preset,
                .reference = *cornu_reference_model(preset->model) };
    if (flags->text && options->data && data_kind(options->data) == DATA_TEXT)
        return options_refuse("--text and --data FILE: expected only one of them");
    if (flags->rmsprop && preset->heads)
        return options_refuse("--rmsprop is for the LSTMs, %s is trained by "
                              "AdamW", preset->model);
    if (flags->rmsprop)
        run.reference.optimizer = flags->rmsprop[0] == 't' ? CORNU_REFERENCE_RMSPROP_TENSORFLOW_1
                                                           : CORNU_REFERENCE_RMSPROP;
    if (!options->epochs) options->epochs = run.reference.epochs;
    run.reference.epochs = options->epochs;
    if (!options->batch_size) options->batch_size = run.reference.batch_size;
    if (!options->steps_per_epoch) options->steps_per_epoch = preset->steps_per_epoch;
    if (!flags->sequence_length) flags->sequence_length = preset->sequence_length;
    if (flags->validation_split < 0.0) flags->validation_split = preset->validation;
    const CornuStatus status = train(&run);
    cornu_model_free(run.model);
    cornu_dataset_free(run.train);
    cornu_dataset_free(run.test);
    cornu_text_free(run.text);
    cornu_device_close(run.device);
    return status;
}
