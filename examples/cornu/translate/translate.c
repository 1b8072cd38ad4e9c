/* Learns to translate from pairs of sentences, source TAB target in each line of a file, with an
 * encoder-decoder transformer; translates sentences that it was not trained on, and others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "../commands.h"
#include "../common/session.h"
#include "translate_words.h"

enum { NO_EPOCHS = 0, SYNTHETIC_PAIRS = 12000, SHOWN = 5 };

/* The program's own flags. */
typedef struct {
    int64_t     pairs, words, length, channels, key_dim, hidden, heads, layers, beams, translations;
    double      dropout, validation, length_penalty;
    const char *sentence;
} Flags;

/* The state of a run; close_run frees it. */
typedef struct {
    const Options *options;
    const Flags   *flags;
    CornuDevice   *device, *writer;    /* of training; of translating, on one shard */
    CornuPairs    *pairs;              /* the last `held` ones are for validation */
    int64_t        held;
    bool           synthetic;
    Words          words;
    CornuModel    *model;
    CornuTranslator *translator;
    CornuModel      *written;          /* the translator's */
} Run;

/* ---- Data ---- */

/* Files are often sorted by length. */
static void shuffle(CornuPairs *pairs, uint64_t seed)
{
    for (int64_t i = pairs->count - 1; i > 0; i--) {
        uint32_t word[4];
        cornu_philox(seed, (uint32_t[]){ (uint32_t)i, 0, 0, UINT32_C(0xFFFF0007) }, word);
        const int64_t other = (int64_t)((uint64_t)word[0] * (uint64_t)(i + 1) >> 32);
        const char   *source = pairs->source[i], *target = pairs->target[i];
        pairs->source[i] = pairs->source[other], pairs->target[i] = pairs->target[other];
        pairs->source[other] = source, pairs->target[other] = target;
    }
}

static CornuStatus open_pairs(Run *run)
{
    const Options *options = run->options;
    const char    *file = options->argument_count ? options->arguments[0] : NULL;
    const bool     drawn = options->data && !strcmp(options->data, "synthetic");
    if (!!file == drawn)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "%s, expected FILE.tsv or --data synthetic",
                               file ? "both a file and --data are given" : "no pairs are given");
    run->synthetic = drawn;
    run->pairs = file ? cornu_pairs_load(file)
                      : cornu_pairs_synthetic((uint64_t)options->seed, run->flags->pairs);
    if (!run->pairs) return cornu_error_status();
    shuffle(run->pairs, (uint64_t)options->seed);
    if (options->limit && options->limit < run->pairs->count) run->pairs->count = options->limit;
    run->held = (int64_t)(run->flags->validation * (double)run->pairs->count);
    if (run->held == run->pairs->count) run->held--;
    printf("%s%lld pairs from %s, the last %lld of them for validation.\n",
           drawn ? "Synthetic: " : "", (long long)run->pairs->count,
           file ? file : "invented languages", (long long)run->held);
    return CORNU_OK;
}

/* Sentences that are longer than the model are cut off; say how many. */
static void say_longer(const Run *run)
{
    int64_t longer = 0;
    for (int64_t i = 0; i < run->pairs->count; i++) {
        const CornuPairs one = { 1, run->pairs->source + i, run->pairs->target + i, NULL };
        longer += words_longest(&one) > run->words.length - 1;
    }
    if (longer)
        printf("%lld pairs have more than %lld words, of which the rest is cut off.\n",
               (long long)longer, (long long)run->words.length - 1);
}

/* ---- The model ---- */

static CornuModel *build(const Run *run)
{
    const Flags *flags = run->flags;
    return cornu_transformer(
        .source_vocabulary = run->words.source_words.count,
        .target_vocabulary = run->words.target_words.count + 2,
        .sequence_length = run->words.length, .channels = flags->channels,
        .key_dim = flags->key_dim, .hidden = flags->hidden, .heads = flags->heads,
        .layers = flags->layers,
        .dropout = flags->dropout == 0.0 ? (double)CORNU_ZERO : flags->dropout);
}

/* The saved model with its words, or a new one. */
static CornuStatus open_model(Run *run)
{
    const int64_t train = run->pairs ? run->pairs->count - run->held : 0;
    if (run->options->load) {
        run->model = cornu_model_load(run->options->load);
        if (!run->model || words_read(&run->words, run->model)) return cornu_error_status();
    } else {
        const int64_t length = run->flags->length ? run->flags->length
                                                  : words_longest(run->pairs) + 1;
        if (words_learn(&run->words, run->pairs, train, run->flags->words, length))
            return cornu_error_status();
        run->model = build(run);
        if (!run->model || words_note(&run->words, run->model)) return cornu_error_status();
    }
    printf("Words: %lld of the source, %lld of the target; %lld at most in a sentence.\n",
           (long long)run->words.source_words.count, (long long)run->words.target_words.count,
           (long long)run->words.length);
    if (run->pairs) say_longer(run);
    return CORNU_OK;
}

static CornuStatus train(Run *run)
{
    const Options *options = run->options;
    const int64_t  count = run->pairs->count - run->held;
    double         results[2];
    CornuDataset  *data = words_dataset(&run->words, run->pairs, 0, count);
    CornuDataset  *held = run->held ? words_dataset(&run->words, run->pairs, count, run->held)
                                    : NULL;
    CornuStatus    status = cornu_compile(
        run->model, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .metrics = { CORNU_ACCURACY },
        /* At a constant rate the last step may be a bad one: 2 of 33 trainings ended below 95 %. */
        .optimizer = cornu_adam(.schedule = cornu_cosine_decay(
            options->learning_rate, (double)(options->epochs * session_steps(options, count)))),
        .device = run->device,
        .steps_per_execution = options->steps_per_execution,
        .gradient_norm = options->gradient_norm, .debug_nans = options->debug_nans);
    if (!status) status = cornu_summary(run->model);
    if (!status) status = session_train(options, run->model, data, held, "pairs", results);
    cornu_dataset_free(data);
    cornu_dataset_free(held);
    return status;
}

/* ---- Translating ---- */

/* The same weights on a device with one shard. */
static CornuStatus open_translator(Run *run)
{
    const Options *options = run->options;
    CornuStatus    status = CORNU_OK;
    run->writer = cornu_device_open(options->device, .threads = (int)options->threads, .shards = 1);
    run->written = run->writer ? cornu_model_clone(run->model) : NULL;
    if (!run->written || cornu_compile(run->written, .device = run->writer))
        return cornu_error_status();
    for (int i = 0; i < cornu_model_weight_count(run->model) && !status; i++) {
        const CornuWeight *weight = cornu_model_weight(run->model, i);
        CornuArray values = cornu_array_from(malloc(cornu_type_bytes(weight->type)), weight->type);
        status = values.data ? cornu_weight_read(weight, values)
                             : cornu_error_set(CORNU_ERR_MEMORY, "no memory for the weights");
        if (!status) status = cornu_weight_write(cornu_model_weight(run->written, i), values);
        free(values.data);
    }
    if (status) return status;
    run->translator = cornu_translator_create(
        .model = run->written, .start = run->words.start, .end = run->words.end,
        .beams = run->flags->beams, .length_penalty = run->flags->length_penalty == 0.0
                                        ? (double)CORNU_ZERO : run->flags->length_penalty);
    return run->translator ? CORNU_OK : cornu_error_status();
}

/* Sentences to strings, each to be freed with free(). */
static CornuStatus translate(Run *run, const char *const *sentences, int64_t count, char **to)
{
    const int64_t T = run->words.length;
    CornuArray    source = { .data = NULL }, target = cornu_array(NULL, CORNU_I32, count, T);
    CornuStatus   status = words_encode(&run->words, sentences, count, &source);
    target.data = calloc((size_t)(count * T), sizeof(int32_t));
    if (!status && !target.data)
        status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for the translations");
    if (!status) status = cornu_translator_run(run->translator, source, target);
    for (int64_t i = 0; i < count && !status; i++) {
        to[i] = words_decode(&run->words, (const int32_t *)target.data + i * T);
        if (!to[i]) status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for a translation");
    }
    free(source.data);
    free(target.data);
    return status;
}

/* Prints some translations, how many are the reference's, and BLEU, of lower case without
 * punctuation. */
static CornuStatus score(const Run *run, char *const *translations, char *const *references,
                         int64_t first, int64_t count)
{
    int64_t   exact = 0;
    CornuBleu bleu;
    for (int64_t i = 0; i < count; i++) {
        const bool same = !strcmp(translations[i], references[i]);
        exact += same;
        if (i >= SHOWN) continue;
        printf("\n  %s\n  %s%s\n", run->pairs->source[first + i], translations[i],
               same ? "" : "    (wrong)");
        if (!same) printf("  %s    (expected)\n", references[i]);
    }
    if (cornu_bleu((const char *const *)translations, (const char *const *)references, count,
                   &bleu)) return cornu_error_status();
    printf("\nTranslations of %lld %ssentences that were not trained on: %.2f %% exact, BLEU "
           "%.2f\n", (long long)count, run->synthetic ? "synthetic " : "",
           100.0 * (double)exact / (double)count, bleu.score);
    return CORNU_OK;
}

static CornuStatus check_held(Run *run)
{
    const int64_t first = run->pairs->count - run->held;
    const int64_t count = run->flags->translations < run->held ? run->flags->translations
                                                               : run->held;
    char **texts = calloc(2 * (size_t)count + 1, sizeof *texts);
    if (!texts) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for the translations");
    char **references = texts + count;
    CornuStatus status = translate(run, run->pairs->source + first, count, texts);
    for (int64_t i = 0; i < count && !status; i++)
        if (!(references[i] = words_plain(run->pairs->target[first + i])))
            status = cornu_error_set(CORNU_ERR_MEMORY, "no memory for a sentence");
    if (!status) status = score(run, texts, references, first, count);
    for (int64_t i = 0; i < 2 * count; i++) free(texts[i]);
    free(texts);
    return status;
}

static CornuStatus translate_one(Run *run)
{
    char       *translation = NULL;
    CornuStatus status = translate(run, &run->flags->sentence, 1, &translation);
    if (!status) printf("%s\n", translation);
    free(translation);
    return status;
}

/* ---- Program ---- */

static CornuStatus work(Run *run)
{
    const Options *options = run->options;
    const bool     trains = options->epochs != NO_EPOCHS;
    if (!trains && !options->load)
        return options_refuse("--epochs 0 trains nothing: it needs --load");
    run->device = session_open(options);
    if (!run->device) return cornu_error_status();
    if ((trains || options->argument_count || options->data) && open_pairs(run))
        return cornu_error_status();
    if (open_model(run) || (trains && train(run))) return cornu_error_status();
    if (open_translator(run)) return cornu_error_status();
    if (run->pairs && run->held && run->flags->translations && check_held(run))
        return cornu_error_status();
    return run->flags->sentence ? translate_one(run) : CORNU_OK;
}

static void close_run(Run *run)
{
    cornu_translator_free(run->translator);
    cornu_model_free(run->written);
    cornu_model_free(run->model);
    words_free(&run->words);
    cornu_pairs_free(run->pairs);
    cornu_device_close(run->writer);
    cornu_device_close(run->device);
}

int command_translate(int argc, char **argv)
{
    Options options = { .epochs = 5, .batch_size = 64, .learning_rate = 2e-3 };
    Flags   flags = { .pairs = SYNTHETIC_PAIRS, .channels = 64, .key_dim = 16, .hidden = 128,
                      .heads = 4, .layers = 1, .beams = 1, .translations = 600, .dropout = 0.1,
                      .validation = 0.05, .length_penalty = 0.6 };
    const Option extra[] = {
        { "pairs", OPTION_WHOLE, &flags.pairs, "N", "synthetic pairs", 20, 1 << 20, NULL },
        { "words", OPTION_WHOLE, &flags.words, "N",
          "the most frequent words of each language that are learnt; default all", 2, 1e6, NULL },
        { "sequence-length", OPTION_WHOLE, &flags.length, "N",
          "words of a sentence, of which the rest is cut off; default the longest", 2, 1e4, NULL },
        { "channels", OPTION_WHOLE, &flags.channels, "N", "of the embeddings", 1, 1e5, NULL },
        { "key-dim", OPTION_WHOLE, &flags.key_dim, "N", "of each head", 1, 1e5, NULL },
        { "hidden", OPTION_WHOLE, &flags.hidden, "N", "units of the dense layers", 1, 1e6, NULL },
        { "heads", OPTION_WHOLE, &flags.heads, "N", "of the attention", 1, 1e3, NULL },
        { "layers", OPTION_WHOLE, &flags.layers, "N", "blocks of encoder and of decoder", 1, 32,
          NULL },
        { "dropout", OPTION_NUMBER, &flags.dropout, "X", "before the last layer", 0, 0.9, NULL },
        { "validation-split", OPTION_NUMBER, &flags.validation, "X", "fraction of pairs held out",
          0, 0.9, NULL },
        { "translations", OPTION_WHOLE, &flags.translations, "N",
          "sentences held out that are translated after training", 0, 1e9, NULL },
        { "beams", OPTION_WHOLE, &flags.beams, "N", "hypotheses kept; 1: greedy", 1, 64, NULL },
        { "length-penalty", OPTION_NUMBER, &flags.length_penalty, "X",
          "exponent of hypotheses' lengths", 0, 10, NULL },
        { "translate", OPTION_TEXT, &flags.sentence, "TEXT",
          "a sentence to translate", 0, 0, NULL },
        OPTION_END,
    };
    const Program program = {
        .name = "cornu translate", .groups = OPTIONS_ALL, .extra = extra, .epochs_may_be_0 = true,
        .arguments = "FILE.tsv...", .least_arguments = 0,
        .data = "synthetic: pairs drawn by code, in place of FILE.tsv", .data_no_sets = true,
        .purpose = "Learns to translate from pairs of sentences, source TAB target in each line.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;
    Run run = { .options = &options, .flags = &flags };
    const CornuStatus status = options.argument_count > 1
        ? cornu_error_set(CORNU_ERR_ARGUMENT, "%d files are given, expected one",
                          options.argument_count) : work(&run);
    close_run(&run);
    return session_end("cornu translate", status);
}
