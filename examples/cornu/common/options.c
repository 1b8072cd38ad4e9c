#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FLAGS = 64 };

/* Flags in the order of --help. */
typedef struct {
    const Program *program;
    Option         flags[MAX_FLAGS];
    int            count;
    const char    *verbose;        /* as a word; Options has the enum */
    bool           help, version;
} Table;

static void add(Table *table, const Option *flags)
{
    for (; flags->name && table->count < MAX_FLAGS; flags++)
        table->flags[table->count++] = *flags;
}

static void fill_table(Table *table, Options *o)
{
    static const char *const devices[] = { "cpu", "tpu", "tpu:v2-8", "tpu:v3-8", "tpu:v4-8",
                                           "tpu:v5e-8", "tpu:v5p-8", "tpu:v6e-8",
                                           "tpu:v2-512", "tpu:v3-2048", "reference",
                                           "pjrt:...", NULL };
    static const char *const policies[] = { "float32", "mixed_bfloat16", "mixed_float16",
                                            NULL };
    static const char *const precisions[] = { "highest", "high", "default", NULL };
    static const char *const transports[] = { "auto", "shm", "tcp", "mpi", NULL };
    static const char *const verbosities[] = { "auto", "0", "1", "2", NULL };
    const Option device[] = {
        { "device", OPTION_CHOICE, &o->device, "NAME", "device to run on", 0, 0, devices },
        OPTION_END,
    };
    const Option numerics[] = {
        { "policy", OPTION_CHOICE, &o->policy, "NAME",
          "precision policy; default the device's", 0, 0, policies },
        { "precision", OPTION_CHOICE, &o->precision, "NAME",
          "of float32 products: on a tpu 6, 3 or 1 passes, on pjrt XLA's; default highest",
          0, 0, precisions },
        { "shards", OPTION_WHOLE, &o->shards, "N",
          o->shards ? "cpu, tpu or pjrt replicas that share each batch"
                    : "cpu, tpu or pjrt replicas that share each batch; default the device's",
          1, CORNU_MAX_SHARDS, NULL },
        OPTION_END,
    };
    const Option mesh[] = {
        { "mesh", OPTION_TEXT, &o->mesh, "AXIS=N,...",
          "the shards as a mesh, such as batch=2,model=4, that cuts the model's weights", 0, 0,
          NULL },
        { "layout", OPTION_TEXTS, &o->layout, "PATTERN=AXES",
          "with --mesh: the axes that cut those of the weights of this name, or in whose names the "
          "regular expression is found, such as dense/kernel=,model; default by the layers' "
          "classes", 0, 0, NULL },
        { "fully-sharded", OPTION_SWITCH, &o->fully_sharded, "",
          "each shard keeps its part of the weights and the optimizer's slots alone", 0, 0, NULL },
        OPTION_END,
    };
    const Option pipeline[] = {
        { "pipeline", OPTION_TEXT, &o->pipeline, "S[,M]",
          "S stages of layers, dealt to the processes, and M microbatches of each batch, default "
          "4 S; a third word is the schedule, 1f1b or gpipe. With --shards or --mesh each stage "
          "has them, and processes are groups that share the shards of a stage", 0, 0, NULL },
        OPTION_END,
    };
    const Option threads[] = {
        { "threads", OPTION_WHOLE, &o->threads, "N",
          o->threads > 0 ? "threads to use" : "threads to use; default one per processor", 1, 1024,
          NULL },
        OPTION_END,
    };
    const Option processes[] = {
        { "transport", OPTION_CHOICE, &o->transport, "NAME",
          "what moves bytes between processes; default the best", 0, 0, transports },
        { "rank-timeout", OPTION_NUMBER, &o->rank_timeout, "S",
          "seconds after which a silent process has failed; default 60", 0.1, 1e6, NULL },
        OPTION_END,
    };
    const Option model[] = {
        { "model", OPTION_CHOICE, &o->model, "NAME", "network", 0, 0, table->program->models },
        OPTION_END,
    };
    const Option training[] = {
        { "epochs", OPTION_WHOLE, &o->epochs, "N",
          o->epochs > 0 ? "passes over the data" : "passes over the data; default the model's",
          table->program->epochs_may_be_0 ? 0 : 1, 1e6, NULL },
        { "batch-size", OPTION_WHOLE, &o->batch_size, "N",
          o->batch_size > 0 ? "samples per step" : "samples per step; default the model's", 1, 1e6,
          NULL },
        { "learning-rate", OPTION_NUMBER, &o->learning_rate, "X",
          o->learning_rate > 0.0 ? "learning rate" : "learning rate; default the model's",
          1e-12, 1e38, NULL },
        OPTION_END,
    };
    const Option seed[] = {
        { "seed", OPTION_WHOLE, &o->seed, "N",
          "seed of initial weights, dropout and shuffling", 0, 0x1p53, NULL },
        OPTION_END,
    };
    const Option data[] = {
        { "limit", OPTION_WHOLE, &o->limit, "N", "use only the first N samples", 1, 1e12, NULL },
        { "data", OPTION_TEXT, &o->data, "WHAT", table->program->data ? table->program->data
          : "a folder of sets, as --data-dir, or synthetic", 0, 0, NULL },
        OPTION_END,
    };
    const Option sets[] = {
        { "data-dir", OPTION_TEXT, &o->data_dir, "DIR", "where sets of data lie by their names; "
          "default CORNU_DATA, ./data or a download", 0, 0, NULL },
        OPTION_END,
    };
    const Option classes[] = {
        { "labels", OPTION_TEXT, &o->labels, "NAMES",
          "class names: A,B,... or a file with one per line", 0, 0, NULL },
        OPTION_END,
    };
    const Option fit[] = {
        { "steps-per-epoch", OPTION_WHOLE, &o->steps_per_epoch, "N", "end each epoch after N steps",
          1, 1e9, NULL },
        { "steps-per-execution", OPTION_WHOLE, &o->steps_per_execution, "N",
          "steps from one call of the callbacks to the next", 1, 1e9, NULL },
        { "save", OPTION_TEXT, &o->save, "FILE",
          "write the model to FILE, .safetensors, .keras or .onnx", 0, 0,
          NULL },
        { "load", OPTION_TEXT, &o->load, "FILE", "start from the weights in FILE", 0, 0, NULL },
        { "history", OPTION_TEXT, &o->history, "FILE", "write losses and times as JSON", 0, 0,
          NULL },
        { "trace", OPTION_TEXT, &o->trace, "FILE",
          "write a timeline of one late step, as JSON for ui.perfetto.dev", 0, 0, NULL },
        { "tensorboard", OPTION_TEXT, &o->tensorboard, "DIR",
          "write TensorBoard events to DIR: metrics by epoch, weight histograms",
          0, 0, NULL },
        { "profile-batch", OPTION_WHOLE, &o->profile_batch, "N",
          "write a profile of the N-th batch there, for its plugin XProf", 1, 1e12, NULL },
        { "plots", OPTION_TEXT, &o->plots, "DIR",
          "write plots of the training and the test to DIR", 0, 0, NULL },
        { "report", OPTION_TEXT, &o->report, "FILE.html",
          "write a page for a browser, anew after each epoch: curves, classes, the run", 0, 0,
          NULL },
        { "price-per-hour", OPTION_NUMBER, &o->price_per_hour, "AMOUNT",
          "of this machine, for the costs in the report", 0.0, 1e12, NULL },
        { "dashboard", OPTION_MAYBE, &o->dashboard, "[PORT]",
          "serve that page while it trains, with controls to pause, stop, save and set the "
          "learning rate, at an address that is printed; default a free port", 0, 65535, NULL },
        { "dashboard-address", OPTION_TEXT, &o->dashboard_address, "ADDRESS",
          "of this machine, where --dashboard listens, without TLS; default 127.0.0.1, which no "
          "other reaches", 0, 0, NULL },
        { "backup", OPTION_TEXT, &o->backup, "DIR",
          "back up to DIR after each epoch, and resume from a backup there", 0, 0,
          NULL },
        { "backup-freq", OPTION_WHOLE, &o->backup_freq, "N",
          "back up after every N steps, too", 1, 1e9, NULL },
        { "gradient-norm", OPTION_SWITCH, &o->gradient_norm, "",
          "also log the norm of all gradients, before clipping", 0, 0, NULL },
        { "debug-nans", OPTION_SWITCH, &o->debug_nans, "",
          "name the layer and op where a value first becomes NaN or infinite; slower", 0, 0, NULL },
        { "verbose", OPTION_CHOICE, &table->verbose, "auto|0|1|2",
          "silent, a progress bar, a line per epoch; auto: a bar on a terminal, else lines", 0, 0,
          verbosities },
        OPTION_END,
    };
    const Option everywhere[] = {
        { "help", OPTION_SWITCH, &table->help, "", "print this help", 0, 0, NULL },
        { "version", OPTION_SWITCH, &table->version, "", "print the version", 0, 0, NULL },
        OPTION_END,
    };
    if (table->program->models) add(table, model);
    if (table->program->extra) add(table, table->program->extra);
    if (table->program->groups & OPTIONS_TRAINING) add(table, training);
    if (table->program->groups & (OPTIONS_SEED | OPTIONS_DATA)) add(table, seed);
    if (table->program->groups & OPTIONS_DATA) add(table, data);
    if ((table->program->groups & OPTIONS_DATA) && !table->program->data_no_sets) add(table, sets);
    if (table->program->groups & OPTIONS_CLASSES) add(table, classes);
    if (table->program->groups & OPTIONS_FIT) add(table, fit);
    if (table->program->groups & OPTIONS_DEVICE) add(table, device);
    if (table->program->groups & OPTIONS_NUMERICS) add(table, numerics);
    if (table->program->groups & OPTIONS_MESH) add(table, mesh);
    if (table->program->groups & OPTIONS_PIPELINE) add(table, pipeline);
    if (table->program->groups & OPTIONS_THREADS) add(table, threads);
    if (table->program->groups & OPTIONS_PROCESSES) add(table, processes);
    add(table, everywhere);
}

/* ---- --help ---- */

enum { HELP_TEXT = 1000, HELP_WIDTH = 80, HELP_COLUMN = 28 };

/* " (default 128)", if the flag has a default. */
static void add_default(char text[HELP_TEXT], const Option *flag)
{
    const size_t at = strlen(text);
    switch (flag->kind) {
    case OPTION_TEXT:
    case OPTION_CHOICE: {
        const char *word = *(const char **)flag->to;
        if (word && *word != '\n') snprintf(text + at, HELP_TEXT - at, " (default %s)", word);
        break;
    }
    case OPTION_WHOLE: {
        const int64_t number = *(int64_t *)flag->to;
        if (number >= (int64_t)flag->least)
            snprintf(text + at, HELP_TEXT - at, " (default %lld)", (long long)number);
        break;
    }
    case OPTION_NUMBER: {
        const double number = *(double *)flag->to;
        if (number > 0.0) snprintf(text + at, HELP_TEXT - at, " (default %g)", number);
        break;
    }
    case OPTION_FLAG:
        snprintf(text + at, HELP_TEXT - at, "; --no%s for not (default %s)", flag->name,
                 *(bool *)flag->to ? "true" : "false");
        break;
    case OPTION_TEXTS: snprintf(text + at, HELP_TEXT - at, "; may be repeated"); break;
    case OPTION_MAYBE:
    case OPTION_SWITCH: break;
    }
}

/* Wraps text to lines that begin at `left`; `column` is where the first one stands now. */
static void print_wrapped(const char *text, int left, int column)
{
    for (bool first = true; *text; first = false) {
        const int length = (int)strcspn(text, " ");
        if (!first && column + 1 + length > HELP_WIDTH)
            column = printf("\n%*s", left, "") - 1;
        else if (!first)
            column += printf(" ");
        column += printf("%.*s", length, text);
        text += length + (text[length] == ' ');
    }
    putchar('\n');
}

/* Paragraphs, between empty lines, are wrapped; lines that begin with a blank stay as they are. */
static void print_purpose(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        while (*text != ' ' && length && text[length] && !strchr("\n ", text[length + 1]))
            length += 1 + strcspn(text + length + 1, "\n");
        char *paragraph = strndup(text, length);
        for (char *c = paragraph; c && *text != ' ' && (c = strchr(c, '\n'));) *c = ' ';
        if (paragraph && *text != ' ') print_wrapped(paragraph, 0, 0);
        else if (paragraph) puts(paragraph);
        free(paragraph);
        text += length + (text[length] == '\n');
    }
    putchar('\n');
}

static void print_help(const Table *table)
{
    const Program *program = table->program;
    printf("usage: %s [FLAG]...%s%s\n", program->name, program->arguments ? " " : "",
           program->arguments ? program->arguments : "");
    print_purpose(program->purpose);
    for (int i = 0; i < table->count; i++) {
        const Option *flag = &table->flags[i];
        /* Choices come before the "; default ..." of the help. */
        const char *tail = strstr(flag->help, "; default");
        const int   head = (int)(tail ? (size_t)(tail - flag->help) : strlen(flag->help));
        char        left[60], text[HELP_TEXT];
        snprintf(left, sizeof left, "--%s %s", flag->name, flag->value);
        snprintf(text, sizeof text, "%.*s", head, flag->help);
        for (int c = 0; flag->kind == OPTION_CHOICE && flag->choices[c]; c++) {
            const size_t at = strlen(text);
            if (!strchr(flag->value, '|'))
                snprintf(text + at, sizeof text - at, "%s%s", c ? ", " : ": ", flag->choices[c]);
        }
        if (tail) snprintf(text + strlen(text), sizeof text - strlen(text), "%s", tail);
        add_default(text, flag);
        print_wrapped(text, HELP_COLUMN, printf("  %-24s  ", left));
    }
}

/* The flags for a shell that completes them, a line each: --device NAME cpu tpu; "pjrt:..." as its
 * beginning. */
static void print_words(const Table *table)
{
    for (int i = 0; i < table->count; i++) {
        const Option *flag = &table->flags[i];
        printf("--%s %s", flag->name, flag->value);
        for (int c = 0; flag->kind == OPTION_CHOICE && flag->choices[c]; c++) {
            const char *dots = strstr(flag->choices[c], "...");
            printf(" %.*s", (int)(dots ? dots - flag->choices[c] : 100), flag->choices[c]);
        }
        putchar('\n');
    }
}

/* ---- Parsing ---- */

static int bad_usage(const Table *table)
{
    fprintf(stderr, "\nTry '%s --help'.\n", table->program->name);
    return OPTIONS_BAD_USAGE;
}

/* "; did you mean ...?" if a known word is near. */
static void suggest(const char *dashes, const char *word, const char *const *known, int count)
{
    const char *nearest = cornu_nearest(word, known, count);
    if (nearest) fprintf(stderr, "; did you mean %s%s?", dashes, nearest);
}

static const Option *find_flag(const Table *table, const char *name, size_t length)
{
    for (int i = 0; i < table->count; i++)
        if (strlen(table->flags[i].name) == length && !memcmp(table->flags[i].name, name, length))
            return &table->flags[i];
    return NULL;
}

static int unknown_flag(const Table *table, const char *argument)
{
    char name[100];
    const char *names[MAX_FLAGS];
    const char *start = argument + strspn(argument, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "="), start);
    for (int i = 0; i < table->count; i++)
        names[i] = table->flags[i].name;
    fprintf(stderr, "%s: unknown flag %.*s", table->program->name, (int)strcspn(argument, "="),
            argument);
    suggest("--", name, names, table->count);
    return bad_usage(table);
}

/* A decimal number and nothing else. */
static bool parse_number(const char *text, bool whole, double *number)
{
    char *end;
    const size_t length = strlen(text);
    const char *letters = whole ? "-0123456789" : "-0123456789.eE+";
    errno = 0;
    *number = strtod(text, &end);
    return length > 0 && strspn(text, letters) == length && text[0] != '+' && *end == '\0' &&
           errno == 0 && isfinite(*number);
}

static int bad_value(const Table *table, const Option *flag, const char *value)
{
    const char *program = table->program->name;
    if (flag->kind == OPTION_CHOICE) {
        int count = 0;
        fprintf(stderr, "%s: --%s is \"%s\", expected", program, flag->name, value);
        for (; flag->choices[count]; count++)
            fprintf(stderr, "%s %s", count ? "," : "", flag->choices[count]);
        suggest("", value, flag->choices, count);
    } else if (flag->least == flag->most) {
        fprintf(stderr, "%s: --%s is \"%s\", expected %g", program, flag->name, value,
                flag->least);
    } else {
        fprintf(stderr, "%s: --%s is \"%s\", expected a %s from %.16g to %.16g", program,
                flag->name, value, flag->kind == OPTION_NUMBER ? "number" : "whole number",
                flag->least, flag->most);
    }
    return bad_usage(table);
}

static int add_text(const Table *table, const Option *flag, const char *value)
{
    OptionTexts *texts = flag->to;
    if (texts->count < OPTION_MAX_TEXTS) {
        texts->text[texts->count++] = value;
        return -1;
    }
    fprintf(stderr, "%s: --%s is given more than %d times", table->program->name, flag->name,
            OPTION_MAX_TEXTS);
    return bad_usage(table);
}

static int set(const Table *table, const Option *flag, const char *value)
{
    double number = 0.0;
    switch (flag->kind) {
    case OPTION_TEXTS:
        return add_text(table, flag, value);
    case OPTION_TEXT:
        *(const char **)flag->to = value;
        return -1;
    case OPTION_CHOICE:
        for (int i = 0; flag->choices[i]; i++) {
            const char *dots = strstr(flag->choices[i], "...");
            if (dots ? strncmp(flag->choices[i], value, (size_t)(dots - flag->choices[i]))
                     : strcmp(flag->choices[i], value)) continue;
            *(const char **)flag->to = value;
            return -1;
        }
        return bad_value(table, flag, value);
    case OPTION_WHOLE:
    case OPTION_MAYBE:
    case OPTION_NUMBER:
        if (!parse_number(value, flag->kind != OPTION_NUMBER, &number) ||
            number < flag->least || number > flag->most)
            return bad_value(table, flag, value);
        if (flag->kind == OPTION_MAYBE) *(const char **)flag->to = value;
        else if (flag->kind == OPTION_WHOLE) *(int64_t *)flag->to = (int64_t)number;
        else *(double *)flag->to = number;
        return -1;
    case OPTION_SWITCH:
        *(bool *)flag->to = true;
        return -1;
    case OPTION_FLAG:
        *(bool *)flag->to = !strcmp(value, "true");
        return -1;
    }
    return OPTIONS_BAD_USAGE;
}

/* --use_tpu, --nouse_tpu, --use_tpu=true, also True and 1, and --use_tpu=false. */
static int take_boolean(const Table *table, const Option *flag, bool negated, const char *value)
{
    static const char *const words[] = { "false", "true", "False", "True", "0", "1" };
    if (!value) return set(table, flag, negated ? "false" : "true");
    for (size_t i = 0; i < sizeof words / sizeof *words && !negated; i++)
        if (!strcmp(value, words[i])) return set(table, flag, i % 2 ? "true" : "false");
    fprintf(stderr, "%s: --%s%s is \"%s\", expected %s", table->program->name,
            negated ? "no" : "", flag->name, value, negated ? "no value" : "true or false");
    return bad_usage(table);
}

/* The flag at argv[*at], whose value follows "=" or is the next argument. */
static int take_flag(const Table *table, int argc, char **argv, int *at)
{
    const char *argument = argv[*at], *name = argument + 2;
    const size_t length = strcspn(name, "=");
    const Option *flag = strncmp(argument, "--", 2) ? NULL : find_flag(table, name, length);
    const bool    negated = !flag && !strncmp(argument, "--no", 4);
    if (negated) flag = find_flag(table, name + 2, length - 2);
    if (!flag || (negated && flag->kind != OPTION_FLAG)) return unknown_flag(table, argument);

    const char *value = name[length] == '=' ? name + length + 1 : NULL;
    if (flag->kind == OPTION_FLAG) return take_boolean(table, flag, negated, value);
    if (flag->kind == OPTION_SWITCH) {
        if (!value) return set(table, flag, "");
        fprintf(stderr, "%s: --%s takes no value, got \"%s\"", table->program->name, flag->name,
                value);
        return bad_usage(table);
    }
    const char *next = !value && *at + 1 < argc ? argv[*at + 1] : NULL;
    double      number;
    if (next && (flag->kind == OPTION_MAYBE ? parse_number(next, true, &number)
                                            : strncmp(next, "--", 2) != 0))
        value = argv[++*at];
    if (!value && flag->kind == OPTION_MAYBE) value = "0";
    if (value && *value) return set(table, flag, value);
    fprintf(stderr, "%s: --%s needs a value, %s", table->program->name, flag->name, flag->value);
    return bad_usage(table);
}

static int check_arguments(const Table *table, const Options *options)
{
    const Program *program = table->program;
    const bool     any_more = program->arguments && strstr(program->arguments, "...");
    if (options->argument_count == program->least_arguments ||
        (options->argument_count > program->least_arguments && any_more))
        return -1;
    if (program->arguments)
        fprintf(stderr, "%s: expected %s, got %d argument%s", program->name, program->arguments,
                options->argument_count, options->argument_count == 1 ? "" : "s");
    else
        fprintf(stderr, "%s: unexpected argument \"%s\", expected only flags", program->name,
                options->arguments[0]);
    return bad_usage(table);
}

/* ---- Messages ---- */

static const char *known_flags[MAX_FLAGS];   /* of the command line that was parsed */
static int         known_count;

static bool is_known(const char *flag)
{
    for (int i = 0; i < known_count; i++)
        if (!strcmp(known_flags[i], flag)) return true;
    return false;
}

/* The flag for a field of a config, whose name starts at `field`; *length is that of the name. */
static bool find_field(const char *field, size_t *length, char flag[64])
{
    static const struct { const char *field, *flag; } others[] = {
        { "missing = CORNU_MISSING_DROPPED", "drop-missing" }, { "file", "text" },
        { "port", "dashboard" }, { "address", "dashboard-address" },
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        *length = strlen(others[i].field);
        snprintf(flag, 64, "%s", others[i].flag);
        if (!strncmp(field, others[i].field, *length) && !isalpha((unsigned char)field[*length]) &&
            is_known(flag))
            return true;
    }
    *length = strspn(field, "abcdefghijklmnopqrstuvwxyz0123456789_");
    snprintf(flag, 64, "%.*s", (int)*length, field);
    for (char *c = flag; (c = strchr(c, '_'));) *c = '-';
    return field[*length] != '/' && is_known(flag);   /* not a path */
}

const char *options_translate(const char *message)
{
    static char to[1024];
    size_t      at = 0;
    char        flag[64];
    for (const char *from = message; *from && at + sizeof flag + 4 < sizeof to;) {
        size_t     length;
        const bool begins = from == message || strchr(" (\"", from[-1]);
        if (!strncmp(from, " (still pending: ", 17)) break;
        if (*from != '.' || !begins || !find_field(from + 1, &length, flag)) {
            to[at++] = *from++;
            continue;
        }
        at += (size_t)snprintf(to + at, sizeof to - at, "--%s", flag);
        from += 1 + length;
        if (strncmp(from, " = \"", 4) != 0) continue;
        to[at++] = ' ';
        for (from += 4; *from && *from != '"' && at + 1 < sizeof to;) to[at++] = *from++;
        from += *from == '"';
    }
    to[at] = '\0';
    return to;
}

/* The words of a command line, quoted where a shell would cut them. */
static void print_command(char *to, size_t size, int argc, char **argv)
{
    size_t used = 0;
    for (int i = 0; i < argc && used < size; i++) {
        const bool  plain = i == 0 || (*argv[i] && !strpbrk(argv[i], " \t\n\"$&|;<>()*?#~"));
        const char *quote = plain ? "" : "'";
        used += (size_t)snprintf(to + used, size - used, "%s%s%s%s", i ? " " : "", quote, argv[i],
                                 quote);
    }
}

int options_parse(Options *options, const Program *program, int argc, char **argv)
{
    if (!options->device) options->device = "cpu";
    Program named = *program;             /* as it was called */
    Table   table = { .program = &named, .verbose = "auto" };
    if (argc > 0) {
        const char *slash = strrchr(argv[0], '/');
        named.name = slash ? slash + 1 : argv[0];
    }
    print_command(options->command, sizeof options->command, argc, argv);
    fill_table(&table, options);
    for (known_count = 0; known_count < table.count; known_count++)
        known_flags[known_count] = table.flags[known_count].name;

    if (argc == 2 && !strcmp(argv[1], "--complete")) {
        print_words(&table);
        return 0;
    }
    int  kept = 0;                        /* arguments that are not flags move to the front */
    bool only_arguments = false;
    for (int i = 1; i < argc; i++) {
        int status = -1;
        if (!only_arguments && strcmp(argv[i], "--") == 0)
            only_arguments = true;
        else if (!only_arguments && argv[i][0] == '-' && argv[i][1] != '\0')
            status = take_flag(&table, argc, argv, &i);
        else
            argv[kept++] = argv[i];
        if (status >= 0) return status;
    }
    options->arguments = (const char *const *)argv;
    options->argument_count = kept;
    switch (table.verbose[0]) {
    case '0': options->verbose = CORNU_SILENT; break;
    case '1': options->verbose = CORNU_BAR; break;
    case '2': options->verbose = CORNU_LINES; break;
    default:  options->verbose = CORNU_AUTO; break;
    }

    if (table.help) {
        print_help(&table);
        return 0;
    }
    if (table.version) {
        puts("Cornu " CORNU_VERSION);
        return 0;
    }
    if (options->shards > 1 && !strcmp(options->device, "reference")) {
        fprintf(stderr, "%s: --shards is \"%lld\", expected 1 on device %s", named.name,
                (long long)options->shards, options->device);
        return bad_usage(&table);
    }
    if (options->precision && strcmp(options->precision, "highest") != 0 &&
        strncmp(options->device, "tpu", 3) != 0 && strncmp(options->device, "pjrt", 4) != 0) {
        fprintf(stderr, "%s: --precision is \"%s\", expected highest on device %s",
                named.name, options->precision, options->device);
        return bad_usage(&table);
    }
    return check_arguments(&table, options);
}
