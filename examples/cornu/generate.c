/* cornu generate MODEL: continues text, with a model of characters that was trained. The text
 * goes to stdout, everything else to stderr. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "common/session.h"
#include "common/subject.h"
#include "common/text_notes.h"
#include "train.h"

typedef struct {
    DataFlags   data;                        /* --encoding alone */
    const char *text, *prime, *window;
    OptionTexts stop;
    int64_t     length, top_k, sequence_length;
    double      temperature, top_p;
} Flags;

typedef struct {
    const Options       *options;
    const Flags         *flags;
    CornuDevice         *device;
    CornuTextData       *text;               /* its encoding */
    CornuTokenGenerator *generator;          /* NULL: whole windows are computed */
    bool                 logits;             /* are what the model predicts */
    FILE                *page;               /* where the generated text goes */
} Run;

/* By CornuWhenFull. */
static const char *const windows[] = { "slides", "halves", "stops", NULL };

static CornuWhenFull window_of(const Flags *flags)
{
    int i = 0;
    while (flags->window && strcmp(flags->window, windows[i])) i++;
    return (CornuWhenFull)i;
}

/* The encoding is what --encoding says, else what the model's file does. Only an alphabet comes
 * from the text itself. */
static CornuStatus open_text(Run *run, const CornuModel *saved)
{
    const Options          *options = run->options;
    const CornuTextEncoding encoding = data_encoding(&run->flags->data);
    const char             *file = run->flags->text;
    if (!file && options->data && data_kind(options->data) == DATA_TEXT) file = options->data;
    if (!run->flags->data.encoding) {
        const CornuStatus status = text_noted(saved, &run->text);
        if (status || run->text) return status;
    }
    if (encoding != CORNU_TEXT_ALPHABET)
        run->text = cornu_text_encoding(encoding);
    else
        run->text = cornu_text_load(.file = file,
                                    .data = file == options->data ? options->data_dir
                                                                  : session_folder(options),
                                    .limit = options->limit, .encoding = encoding,
                                    .progress = session_show_download);
    return run->text ? CORNU_OK : cornu_error_status();
}

/* ---- Models that do not go step by step ---- */

/* The model's predictions for `steps` tokens, of which the last `changed` are others. */
static CornuStatus probe(CornuModel *model, int64_t steps, int64_t changed, CornuArray to)
{
    uint8_t *tokens = malloc((size_t)steps);
    if (!tokens)
        return cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld tokens", (long long)steps);
    for (int64_t t = 0; t < steps; t++) tokens[t] = (uint8_t)(1 + (t + (t >= steps - changed)) % 2);
    const CornuStatus status =
        cornu_predict_on_batch(model, cornu_array(tokens, CORNU_U8, 1, steps), to);
    free(tokens);
    return status;
}

/* Whether the predictions for a token are logits: no probabilities, whose sum is 1. */
static bool are_logits(const float *p, int64_t vocabulary)
{
    double sum = 0.0;
    bool   negative = false;
    for (int64_t i = 0; i < vocabulary; i++) {
        sum += p[i];
        negative |= p[i] < 0.0F;
    }
    return negative || fabs(sum - 1.0) > 0.02;
}

/* Refuses a model whose predictions depend on later tokens, saying which layer may be why; finds
 * out whether they are logits. */
static CornuStatus examine(Run *run, CornuModel *model, int64_t steps, const char *why)
{
    const int64_t vocabulary = run->text->vocabulary;
    const int64_t half = steps / 2, count = steps * vocabulary;
    float        *first = malloc(2 * (size_t)count * sizeof *first), *second = first + count;
    const char   *file = run->options->arguments[0];
    CornuStatus   status =
        first ? CORNU_OK : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %s", file);
    if (!status)
        status = probe(model, steps, 0, cornu_array(first, CORNU_F32, 1, steps, vocabulary));
    if (!status)
        status = probe(model, steps, half, cornu_array(second, CORNU_F32, 1, steps, vocabulary));
    for (int64_t i = 0; i < (steps - half) * vocabulary && !status; i++)
        if (fabsf(first[i] - second[i]) > 1e-3F * (1.0F + fabsf(first[i])))
            status =
                cornu_error_set(CORNU_ERR_UNSUPPORTED,
                                "%s: is not causal: what it predicts for a "
                                "character depends on later ones, so that it cannot continue a "
                                "text. %s",
                                file, why);
    if (!status) run->logits = are_logits(first, vocabulary);
    free(first);
    return status;
}

static CornuStatus check_form(const Run *run, const CornuModel *saved)
{
    const char      *file = run->options->arguments[0];
    const CornuShape in = cornu_model_input_shape(saved), out = cornu_model_output_shape(saved);
    CornuText        a, b;
    if (cornu_model_input_count(saved) == 1 && cornu_model_output_count(saved) == 1 &&
        in.rank == 2 && out.rank == 3 && in.extent[1] == out.extent[1])
        return CORNU_OK;
    if (in.rank == 2 && out.rank == 2)
        return cornu_error_set(CORNU_ERR_SHAPE, "%s: turns %s into %s, one prediction for a whole "
                               "sequence; expected one for each character, (None, T, V)", file,
                               cornu_shape_print(&a, in), cornu_shape_print(&b, out));
    return cornu_error_set(CORNU_ERR_SHAPE,
                           "%s: turns %s into %s, expected one input of characters, "
                           "(None, T), and predictions of each one's successor, (None, T, V)",
                           file, cornu_shape_print(&a, in), cornu_shape_print(&b, out));
}

static CornuStatus prepare_window(Run *run, CornuModel *saved, const char *why)
{
    const int64_t T = cornu_model_input_shape(saved).extent[1];
    const int64_t steps = T != CORNU_NONE               ? T
                          : run->flags->sequence_length ? run->flags->sequence_length
                                                        : 128;
    return examine(run, saved, steps, why);
}

/* ---- Those that do ---- */

/* Makes the generator and finds out what it predicts; of a model that does not go step by step it
 * stays NULL. */
static CornuStatus prepare(Run *run, CornuModel *saved, CornuArray prime)
{
    const int64_t vocabulary = run->text->vocabulary;
    CornuStatus   status = cornu_compile(saved, .device = run->device);
    char          why[512];
    if (status) return status;
    run->generator = cornu_generator(saved, 1, run->flags->sequence_length, window_of(run->flags));
    if (!run->generator) {
        status = cornu_error_take();
        if (status != CORNU_ERR_UNSUPPORTED || run->flags->window) return status;
        snprintf(why, sizeof why, "%s", cornu_error_message());
        return prepare_window(run, saved, why);
    }
    float *p = malloc((size_t)vocabulary * sizeof *p);
    if (!p) return cornu_error_set(CORNU_ERR_MEMORY, "no memory for predictions");
    status = cornu_generator_begin(run->generator, &prime,
                                   cornu_array(p, CORNU_F32, 1, vocabulary));
    if (!status) run->logits = are_logits(p, vocabulary);
    free(p);
    return status;
}

/* ---- Generating ---- */

static CornuStatus check(Run *run, const CornuModel *saved)
{
    const CornuShape out = cornu_model_output_shape(saved);
    const int64_t    vocabulary = out.extent[out.rank - 1];
    if (check_form(run, saved)) return cornu_error_status();
    if (vocabulary == run->text->vocabulary) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_ARGUMENT, "%s knows %lld characters, --encoding %s has %lld: "
                           "expected the --encoding, and the --text, of its training",
                           run->options->arguments[0], (long long)vocabulary,
                           data_encodings[run->text->encoding],
                           (long long)run->text->vocabulary);
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

static CornuStatus encode(const Run *run, const char *flag, const char *text, CornuArray *tokens)
{
    const CornuStatus status = cornu_text_encode(run->text, text, strlen(text), tokens);
    return status ? cornu_error_set(status, "%s: %s", flag, cornu_error_message()) : CORNU_OK;
}

static CornuStatus run_generate(Run *run, CornuModel *saved, CornuGenerateConfig *config)
{
    const Flags *flags = run->flags;
    CornuStatus  status = encode(run, "--prime", flags->prime, &config->prime);
    for (int i = 0; i < flags->stop.count && !status; i++)
        status = i == CORNU_MAX_STOPS
                     ? cornu_error_set(CORNU_ERR_ARGUMENT, "--stop is given %d times, expected at "
                                       "most %d", flags->stop.count, CORNU_MAX_STOPS)
                     : encode(run, "--stop", flags->stop.text[i], &config->stop[i]);
    if (!status) status = prepare(run, saved, config->prime);
    if (status) return status;
    config->generator = run->generator;
    if (!run->generator) {
        config->model = saved;
        config->sequence_length = flags->sequence_length;
    }
    config->logits = run->logits;
    return cornu_generate_from(config);
}

static CornuStatus write_text(Run *run, CornuModel *saved)
{
    const Flags        *flags = run->flags;
    CornuGenerateConfig config = { .count = flags->length, .top_k = flags->top_k,
                                   .top_p = flags->top_p,
                                   .temperature = flags->temperature == 0.0 ? (double)CORNU_ZERO
                                                                            : flags->temperature,
                                   .seed = (uint64_t)run->options->seed, .emit = print_token,
                                   .context = run };
    const CornuStatus   status = run_generate(run, saved, &config);
    if (!status && writes()) fputc('\n', run->page);
    free(config.prime.data);
    for (int i = 0; i < CORNU_MAX_STOPS; i++) free(config.stop[i].data);
    cornu_generator_free(run->generator);
    return status;
}

/* Flags that nothing would read. */
static CornuStatus check_flags(const Run *run)
{
    const Options *options = run->options;
    const bool     alphabet = data_encoding(&run->flags->data) == CORNU_TEXT_ALPHABET;
    const char    *what =
        !alphabet && (run->flags->text || options->data || options->data_dir || options->limit)
               ? "--text, --data, --data-dir and --limit give the alphabet of --encoding alphabet, "
                    "and are "
                 "for it alone"
           : options->shards > 1 ? "--shards: one sequence cannot be shared, expected 1"
                                 : NULL;
    return what ? options_refuse("%s", what) : CORNU_OK;
}

static CornuStatus generate(Run *run)
{
    Subject     subject;
    CornuModel *saved = NULL;
    CornuStatus status = session_begin(run->options);
    if (!status) status = check_flags(run);
    if (!status) status = subject_find(&subject, run->options->arguments[0]);
    if (!status)
        run->device = cornu_device_open(run->options->device, .threads = (int)run->options->threads,
                                        .precision = session_precision(run->options), .shards = 1);
    if (run->device) saved = subject_model(&subject);
    if (!status) status = saved ? open_text(run, saved) : cornu_error_status();
    if (!status) status = check(run, saved);
    if (!status) status = write_text(run, saved);
    cornu_model_free(saved);
    cornu_text_free(run->text);
    cornu_device_close(run->device);
    return status;
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

int command_generate(int argc, char **argv)
{
    Options      options = { .device = "cpu" };
    Flags        flags = { .data = DATA_FLAGS, .prime = "\n", .temperature = 1.0, .length = 500 };
    const Option extra[] = {
        { "length", OPTION_WHOLE, &flags.length, "N", "characters to write", 1, 1e9, NULL },
        { "prime", OPTION_TEXT, &flags.prime, "TEXT", "text to continue; default a new line", 0, 0,
          NULL },
        { "temperature", OPTION_NUMBER, &flags.temperature, "X",
          "of sampling: below 1 more predictable; 0: always the most probable character", 0, 1e6,
          NULL },
        { "top-k", OPTION_WHOLE, &flags.top_k, "N",
          "sample from the N most probable characters only", 1, 1e6, NULL },
        { "top-p", OPTION_NUMBER, &flags.top_p, "P",
          "and from the most probable that together have this probability; default 1", 0.001, 1,
          NULL },
        { "stop", OPTION_TEXTS, &flags.stop, "TEXT",
          "end after this text, if it is written; may be given several times", 0, 0, NULL },
        { "window", OPTION_CHOICE, &flags.window, "WHAT",
          "when a model with attention has read as many characters as it sees at once: forget the "
          "oldest and compute all again for each character, the default; forget the older half; "
          "or stop", 0, 0, windows },
        { "sequence-length", OPTION_WHOLE, &flags.sequence_length, "N",
          "characters that the model sees at once, where it takes any number; default 128", 1, 1e5,
          NULL },
        { "encoding", OPTION_CHOICE, &flags.data.encoding, "NAME",
          "what a character is, as in the training; default what the model's file says, else "
          "code-points", 0, 0, data_encodings },
        { "text", OPTION_TEXT, &flags.text, "FILE",
          "with --encoding alphabet, the text of the training, as --data FILE", 0, 0, NULL },
        OPTION_END,
    };
    const Program program = {
        .name = "cornu generate", .extra = extra, .arguments = "MODEL", .least_arguments = 1,
        .groups = OPTIONS_MACHINE | OPTIONS_DATA, .data = DATA_HELP,
        .purpose = "Continues text with a model of characters, (None, T) to (None, T, V).",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    Run         run = { .options = &options, .flags = &flags, .page = keep_stdout_for_text() };
    CornuStatus status = run.page ? generate(&run)
                                  : cornu_error_set(CORNU_ERR_FILE, "standard output cannot be set "
                                                    "aside for the text");
    if (run.page && fclose(run.page) != 0 && !status)
        status = cornu_error_set(CORNU_ERR_FILE, "standard output cannot be written");
    return session_end("cornu generate", status);
}
