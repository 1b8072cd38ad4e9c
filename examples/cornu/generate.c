/* cornu generate MODEL: continues a text, with a network of text that was trained. The text goes to
 * stdout, everything else to stderr. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "train.h"
#include "common/session.h"

typedef struct {
    const char *text, *encoding, *prime;
    int64_t     length, top_k;
    double      temperature;
} Flags;

typedef struct {
    const Options         *options;
    const Flags           *flags;
    const CornuTextPreset *preset;
    CornuDevice           *device;
    CornuTextData         *text;             /* its encoding */
    FILE                  *page;             /* where the generated text goes */
} Run;

/* Only an alphabet comes from the text itself. */
static CornuStatus open_text(Run *run)
{
    const CornuTextEncoding encoding = text_encoding(run->flags->encoding);
    if (encoding != CORNU_TEXT_ALPHABET)
        run->text = cornu_text_encoding(encoding);
    else
        run->text = cornu_text_load(.file = run->flags->text, .data = run->options->data,
                                    .limit = run->options->limit, .encoding = encoding,
                                    .progress = session_show_download);
    return run->text ? CORNU_OK : cornu_error_status();
}

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

/* The network that generates: the weights of the saved one, on one shard. A recurrent one keeps its
 * state and takes one character at a time; a transformer sees as many as in training. */
static CornuModel *open_writer(const Run *run, const CornuModel *saved)
{
    const bool  attends = run->preset->heads > 0;
    CornuModel *model = cornu_text_network(
        .preset = run->preset, .vocabulary = run->text->vocabulary, .stateful = !attends,
        .sequence_length = attends ? cornu_model_input_shape(saved).extent[1] : 1);
    CornuStatus status = cornu_compile(model, .device = run->device);
    if (!status) status = copy_weights(saved, model);
    if (!status) return model;
    cornu_model_free(model);
    return NULL;
}

static CornuStatus check(Run *run, const CornuModel *saved)
{
    const CornuShape out = cornu_model_output_shape(saved);
    run->preset = text_preset_of(cornu_model_name(saved));
    if (!run->preset)
        return cornu_error_set(CORNU_ERR_ARGUMENT, "%s is %s, expected a network of text that cornu "
                               "train saved: shakespeare_lstm, shakespeare_lstm_quick, char_gpt",
                               run->options->arguments[0], cornu_model_name(saved));
    if (out.extent[out.rank - 1] == run->text->vocabulary) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_ARGUMENT, "%s knows %lld characters, --encoding %s has %lld: "
                           "expected the --encoding, and the --text, of its training",
                           run->options->arguments[0], (long long)out.extent[out.rank - 1],
                           run->flags->encoding, (long long)run->text->vocabulary);
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

static CornuStatus write_text(Run *run, const CornuModel *saved)
{
    const Flags *flags = run->flags;
    CornuArray   prime;
    CornuStatus  status = cornu_text_encode(run->text, flags->prime, strlen(flags->prime), &prime);
    if (status) return cornu_error_set(status, "--prime: %s", cornu_error_message());
    CornuModel *model = open_writer(run, saved);
    status = model ? cornu_generate(model, prime, flags->length, .top_k = flags->top_k,
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

static CornuStatus generate(Run *run)
{
    CornuStatus status = session_begin(run->options);
    if (!status)
        run->device = cornu_device_open(run->options->device, .threads = (int)run->options->threads,
                                        .shards = 1);
    CornuModel *saved = run->device ? cornu_model_load(run->options->arguments[0]) : NULL;
    if (!status) status = saved ? open_text(run) : cornu_error_status();
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
    static const char *const encodings[] = { "code-points", "alphabet", "bytes", NULL };
    Options      options = { .device = "cpu" };
    Flags        flags = { .encoding = "code-points", .prime = "\n", .temperature = 1.0,
                           .length = 500 };
    const Option extra[] = {
        { "length", OPTION_WHOLE, &flags.length, "N", "characters to write", 1, 1e9, NULL },
        { "prime", OPTION_TEXT, &flags.prime, "TEXT", "text to continue; default a new line", 0, 0,
          NULL },
        { "temperature", OPTION_NUMBER, &flags.temperature, "X",
          "of sampling: below 1 more predictable; 0: always the most probable character", 0, 1e6,
          NULL },
        { "top-k", OPTION_WHOLE, &flags.top_k, "N",
          "sample from the N most probable characters only", 1, 1e6, NULL },
        { "encoding", OPTION_CHOICE, &flags.encoding, "NAME",
          "what a character is, as in the training", 0, 0, encodings },
        { "text", OPTION_TEXT, &flags.text, "FILE",
          "with --encoding alphabet, the text of the training", 0, 0, NULL },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = {
        .name = "cornu generate", .extra = extra, .arguments = "MODEL", .least_arguments = 1,
        .groups = OPTIONS_MACHINE | OPTIONS_DATA,
        .purpose = "Continues a text with a network of text that cornu train saved.",
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
