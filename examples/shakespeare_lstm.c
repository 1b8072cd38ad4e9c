/* Learns to write like a given text, character by character, and writes. The generated text goes to
 * stdout, everything else to stderr. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cornu/cornu.h>

#include "pictures.h"
#include "session.h"

enum { NO_EPOCHS = 0, EPOCHS_OF_PRESET = -1 };

/* The program's own flags. */
typedef struct {
    const char *text, *preset, *sampling, *rmsprop, *encoding, *prime;
    int64_t     sequence_length, generate, top_k;
    double      temperature, validation;
} Flags;

/* The state of a run; close_run frees it. */
typedef struct {
    const Options         *options;
    const Flags           *flags;
    const CornuTextPreset *preset;
    CornuReferenceModel   reference;         /* its training, in the form of --rmsprop */
    CornuDevice           *device, *writer;  /* of training; of generation, on one shard */
    CornuTextData         *text;
    CornuDataset          *train, *test;
    CornuModel            *model;
    FILE                  *page;             /* where the generated text goes */
} Run;

/* ---- Data ---- */

static CornuTextEncoding encoding_of(const Flags *flags)
{
    return !strcmp(flags->encoding, "alphabet") ? CORNU_TEXT_ALPHABET
         : !strcmp(flags->encoding, "bytes")    ? CORNU_TEXT_BYTES
                                                : CORNU_TEXT_CODE_POINTS;
}

/* The text; if nothing is trained only its encoding, unless that comes from the text. */
static CornuStatus open_text(Run *run)
{
    const CornuTextEncoding encoding = encoding_of(run->flags);
    if (run->options->epochs == NO_EPOCHS && encoding != CORNU_TEXT_ALPHABET) {
        run->text = cornu_text_encoding(encoding);
        return run->text ? CORNU_OK : cornu_error_status();
    }
    run->text = cornu_text_load(.file = run->flags->text, .data = run->options->data,
                                .limit = run->options->limit, .encoding = encoding,
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
    const Flags  *flags = run->flags;
    const int64_t all = run->text->tokens.type.shape.extent[0];
    const int64_t count = all - (int64_t)(flags->validation * (double)all);
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
    const int64_t held = (int64_t)(run->flags->validation * (double)all);
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
    if (open_data(run)) return cornu_error_status();
    run->model = cornu_text_network(.preset = run->preset, .vocabulary = run->text->vocabulary,
                                    .sequence_length = run->flags->sequence_length);
    cornu_compile(run->model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                  .optimizer = cornu_reference_optimizer(&run->reference, steps(run),
                                                         options->learning_rate),
                  .metrics = { CORNU_ACCURACY }, .device = run->device,
                  .steps_per_execution = options->steps_per_execution,
                  .gradient_norm = options->gradient_norm,
                  .debug_nans = options->debug_nans);
    cornu_summary(run->model);
    if (session_prepare(options, run->model, NULL)) return cornu_error_status();
    CornuHistory *history = cornu_fit(
        run->model, run->train, .epochs = options->epochs, .validation_data = run->test,
        .steps_per_epoch = options->steps_per_epoch, .verbose = options->verbose,
        .callbacks = { SESSION_CALLBACKS(options) });
    if (!history) return session_stopped(options, run->model);

    CornuStatus status = session_save(options, run->model);
    const int last = cornu_history_epochs(history) - 1;
    say_optimizer(run);
    say_loss(run, "Training loss", cornu_history_get(history, "loss", last));
    if (run->test)
        say_loss(run, "Validation loss", cornu_history_get(history, "val_loss", last));
    session_remarks(run->device, cornu_model_statistics(run->model));
    if (!status) status = record(run, history);
    if (!status) status = session_finish(options);
    cornu_history_free(history);
    return status;
}

/* ---- Writing ---- */

/* Copies the weights of a model with the same layers. */
static CornuStatus copy_weights(const CornuModel *from, CornuModel *to)
{
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < cornu_model_weight_count(from) && !status; i++) {
        const CornuWeight *weight = cornu_model_weight(from, i);
        CornuArray values = cornu_array_from(malloc(cornu_type_bytes(weight->type)), weight->type);
        status = values.data ? cornu_weight_read(weight, values)
                             : cornu_error_set(CORNU_ERR_MEMORY, "no memory for the weights");
        if (!status) status = cornu_weight_write(cornu_model_weight(to, i), values);
        free(values.data);
    }
    return status;
}

/* The network that generates: the same weights, on one shard. A recurrent one keeps its state and
 * takes one character at a time; a transformer sees as many as in training. */
static CornuModel *open_writer(Run *run)
{
    const Options *options = run->options;
    const bool     attends = run->preset->heads > 0;
    run->writer = cornu_device_open(options->device, .threads = (int)options->threads,
                                    .shards = 1);
    CornuModel *model = run->writer
        ? cornu_text_network(.preset = run->preset, .vocabulary = run->text->vocabulary,
                             .sequence_length = attends ? run->flags->sequence_length : 1,
                             .stateful = !attends) : NULL;
    CornuStatus status = model ? cornu_compile(model, .device = run->writer)
                               : cornu_error_status();
    if (!status)
        status = run->model ? copy_weights(run->model, model)
                            : cornu_model_load_weights(model, options->load);
    if (!status) return model;
    cornu_model_free(model);
    return NULL;
}

/* All processes generate the same, and the first writes it. */
static bool writes(void) { return cornu_process_rank(session_processes()) == 0; }

static bool print_token(void *context, int64_t token)
{
    const Run *run = context;
    if (!writes()) return true;
    char       bytes[5];
    const int  length = cornu_text_decode(run->text, token, bytes);
    return fwrite(bytes, 1, (size_t)length, run->page) == (size_t)length &&
           fflush(run->page) == 0;
}

static CornuStatus write_text(Run *run)
{
    const Flags *flags = run->flags;
    CornuArray   prime;
    CornuStatus  status = cornu_text_encode(run->text, flags->prime, strlen(flags->prime), &prime);
    if (status) return cornu_error_set(status, "--prime: %s", cornu_error_message());
    CornuModel *model = open_writer(run);
    status = model ? cornu_generate(model, prime, flags->generate, .top_k = flags->top_k,
                                    .temperature = flags->temperature == 0.0 ? (double)CORNU_ZERO
                                                                             : flags->temperature,
                                    .seed = (uint64_t)run->options->seed, .emit = print_token,
                                    .context = run)
                   : cornu_error_status();
    if (!status && writes()) fputc('\n', run->page);
    cornu_model_free(model);
    free(prime.data);
    return status;
}

/* ---- Program ---- */

static CornuStatus check_flags(const Run *run)
{
    const Options *options = run->options;
    if (run->flags->rmsprop && run->preset->heads)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "--rmsprop is for the LSTMs, --preset %s is "
                               "trained by AdamW", run->preset->name);
    if (options->epochs != NO_EPOCHS) return CORNU_OK;
    if (!options->load || !run->flags->generate)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "--epochs 0 trains nothing: it needs --load "
                               "FILE, and --generate N to write with it");
    const char *unused = options->save ? "save" : options->history ? "history"
                       : options->trace ? "trace" : options->plots ? "plots" : NULL;
    if (!unused) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_ARGUMENT, "--epochs 0 trains nothing, so there is nothing to "
                           "write to --%s", unused);
}

static CornuStatus work(Run *run)
{
    if (check_flags(run)) return cornu_error_status();
    run->device = session_open(run->options);
    if (!run->device || open_text(run)) return cornu_error_status();
    printf("Preset %s: %s.\n", run->preset->name, run->preset->note);
    if (run->options->epochs != NO_EPOCHS && train(run)) return cornu_error_status();
    return run->flags->generate ? write_text(run) : CORNU_OK;
}

static void close_run(Run *run)
{
    cornu_model_free(run->model);
    cornu_dataset_free(run->train);
    cornu_dataset_free(run->test);
    cornu_text_free(run->text);
    cornu_device_close(run->writer);
    cornu_device_close(run->device);
}

/* Redirects stdout to stderr from now on, and returns a file for the real stdout. */
static FILE *keep_stdout_for_text(void)
{
    fflush(stdout);
    const int page = dup(STDOUT_FILENO);
    if (page < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return NULL;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);   /* keeps the order with stderr */
    return fdopen(page, "w");
}

int main(int argc, char **argv)
{
    static const char *const presets[] = { "full", "quick", "gpt", NULL };
    static const char *const samplings[] = { "blocks", "random", NULL };
    static const char *const forms[] = { "keras", "tensorflow1", NULL };
    static const char *const encodings[] = { "code-points", "alphabet", "bytes", NULL };
    Options options = { .epochs = EPOCHS_OF_PRESET };
    Flags   flags = { .preset = "quick", .encoding = "code-points", .prime = "\n",
                      .temperature = 1.0, .validation = -1.0 };
    const Option extra[] = {
        { "text", OPTION_TEXT, &flags.text, "FILE",
          "text to learn from, here or in the data directory; default shakespeare/input.txt", 0, 0,
          NULL },
        { "preset", OPTION_CHOICE, &flags.preset, "NAME", "size and training", 0, 0, presets },
        { "sequence-length", OPTION_WHOLE, &flags.sequence_length, "N",
          "characters per sequence; default the preset's", 1, 1e5, NULL },
        { "sampling", OPTION_CHOICE, &flags.sampling, "NAME",
          "how sequences are drawn from the text; default the preset's", 0, 0, samplings },
        { "rmsprop", OPTION_CHOICE, &flags.rmsprop, "NAME",
          "form of RMSprop, for the LSTMs; default the preset's", 0, 0, forms },
        { "encoding", OPTION_CHOICE, &flags.encoding, "NAME", "what a character is", 0, 0,
          encodings },
        { "validation", OPTION_NUMBER, &flags.validation, "X",
          "fraction of the text held out, from its end; default the preset's", 0, 0.9, NULL },
        { "generate", OPTION_WHOLE, &flags.generate, "N",
          "characters to write after training", 0, 1e9, NULL },
        { "prime", OPTION_TEXT, &flags.prime, "TEXT", "text to continue; default a new line", 0, 0,
          NULL },
        { "temperature", OPTION_NUMBER, &flags.temperature, "X",
          "of sampling: below 1 more predictable; 0: always the most probable character", 0, 1e6,
          NULL },
        { "top-k", OPTION_WHOLE, &flags.top_k, "N",
          "sample from the N most probable characters only", 1, 1e6, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = {
        .name = "shakespeare_lstm", .groups = OPTIONS_ALL, .extra = extra, .epochs_may_be_0 = true,
        .purpose = "Learns to write like a given text, character by character, and writes.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    Run run = { .options = &options, .flags = &flags, .page = keep_stdout_for_text(),
                .preset = cornu_text_preset(flags.preset) };
    run.reference = *cornu_reference_model(run.preset->model);
    if (flags.rmsprop)
        run.reference.optimizer = flags.rmsprop[0] == 't' ? CORNU_REFERENCE_RMSPROP_TENSORFLOW_1
                                                          : CORNU_REFERENCE_RMSPROP;
    if (options.epochs == EPOCHS_OF_PRESET) options.epochs = run.reference.epochs;
    run.reference.epochs = options.epochs;
    if (!options.batch_size) options.batch_size = run.reference.batch_size;
    if (!options.steps_per_epoch) options.steps_per_epoch = run.preset->steps_per_epoch;
    if (!flags.sequence_length) flags.sequence_length = run.preset->sequence_length;
    if (flags.validation < 0.0) flags.validation = run.preset->validation;
    const CornuStatus status =
        run.page ? work(&run)
                 : cornu_error_set(CORNU_ERR_FILE,
                                   "standard output cannot be set aside for the text");
    const bool lost = run.page && fclose(run.page) != 0;
    close_run(&run);
    if (!status && lost)
        cornu_error_set(CORNU_ERR_FILE, "standard output cannot be written");
    return session_end("shakespeare_lstm", lost && !status ? CORNU_ERR_FILE : status);
}
