/* cornu train MODEL: a model on your own data, or a network of models/ as it was published. */
#include "train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "common/session.h"

/* A flag that is given although nothing would read it. */
static CornuStatus check_flags(const TrainFlags *flags, bool images, bool text)
{
    const DataFlags *data = &flags->data;
    const bool of_text = flags->text || flags->sampling || flags->rmsprop || flags->sequence_length;
    const bool of_images =
        flags->large.recipe || flags->large.warmup_epochs > 0.0 || flags->shift || flags->flip;
    const bool  of_arrays = data->y.count || data->test_x.count || data->test_y.count;
    const bool  of_pictures = data->scale != DATA_BY_MODEL || data->offset != 0.0;
    const char *what =
        text && (flags->objective.loss || flags->objective.optimizer || flags->objective.metrics)
            ? "--loss, --optimizer and --metrics are not for networks of text"
        : of_text && !text
            ? "--text, --sampling, --rmsprop and --sequence-length are for networks of text alone"
        : of_images && !images        ? "--large-batch, --warmup-epochs and --augment-... are for "
                                        "networks of digits and garments "
                                        "alone"
        : of_arrays && !data->x.count ? "--y, --test-x and --test-y come with --x"
        : data->target && (images || text)
            ? "--target is for --data FILE.csv and FILE.parquet alone"
        : data->encoding && images         ? "--encoding is for texts alone"
        : of_pictures && (images || text)
            ? "--scale and --offset are not for networks of models/ on their own data"
        : flags->validation_split > 0.0 && data->test_x.count
            ? "--validation-split and --test-x: expected only one of them"
            : NULL;
    return what ? options_refuse("%s", what) : CORNU_OK;
}

int64_t train_updates(const TrainFlags *flags, int64_t steps)
{
    const int64_t each = flags->objective.accumulate_steps;
    return each > 1 && steps > each ? steps / each : steps;
}

enum { MOST_NAMES = 64, NAMES = 4096 };

/* The names of --remat, separated by commas, in `list`. */
static CornuStatus read_names(const char *given, char list[NAMES], const char **names)
{
    if (strlen(given) >= NAMES)
        return options_refuse("--remat: names of %zu characters, expected "
                              "fewer than %d", strlen(given), NAMES);
    strcpy(list, given);
    int count = 0;
    for (char *at = list; at; count++) {
        if (count == MOST_NAMES)
            return options_refuse("--remat: more than %d names", MOST_NAMES);
        names[count] = at;
        if ((at = strchr(at, ','))) *at++ = 0;
    }
    return CORNU_OK;
}

/* How --remat says which layers: full, activations, larger_than, larger_than=N, or their names. */
static CornuStatus read_remat(const char *given, char list[NAMES], CornuRematConfig *config,
                              const char **names)
{
    static const char larger[] = "larger_than=";
    char             *end;
    *config = (CornuRematConfig){ .mode = CORNU_REMAT_OFF, .layer_names = names };
    if (!given || !strcmp(given, "none")) return CORNU_OK;
    for (int mode = 0; mode < CORNU_REMAT_MODES; mode++)
        if (mode != CORNU_REMAT_LIST_OF_LAYERS &&
            !strcmp(given, cornu_remat_mode_name((CornuRematMode)mode))) {
            config->mode = (CornuRematMode)mode;
            return CORNU_OK;
        }
    if (strncmp(given, larger, sizeof larger - 1) != 0) {
        config->mode = CORNU_REMAT_LIST_OF_LAYERS;
        return read_names(given, list, names);
    }
    config->mode = CORNU_REMAT_LARGER_THAN;
    config->output_size_threshold = strtoll(given + sizeof larger - 1, &end, 10);
    if (config->output_size_threshold >= 1 && !*end) return CORNU_OK;
    return options_refuse("--remat %s: expected larger_than=N, from 1 element "
                          "on", given);
}

/* Enters the scope in which the model is made. */
static CornuStatus enter_remat(const char *given)
{
    const char      *names[MOST_NAMES + 1] = { NULL };
    char             list[NAMES];
    CornuRematConfig config;
    if (read_remat(given, list, &config, names)) return cornu_error_status();
    cornu_remat_enter(&config);
    return cornu_error_status();
}

CornuStatus train_check_remat(const TrainFlags *flags, const CornuModel *model)
{
    const char      *names[MOST_NAMES + 1] = { NULL };
    char             list[NAMES];
    CornuRematConfig config;
    if (read_remat(flags->remat, list, &config, names)) return cornu_error_status();
    for (int i = 0; names[i]; i++)
        if (!cornu_model_find_layer(model, names[i])) {
            cornu_error_take();
            return options_refuse("--remat %s: expected full, activations, "
                                  "larger_than=N or names of layers, as %s has none called "
                                  "\"%s\"", flags->remat, cornu_model_name(model), names[i]);
        }
    return CORNU_OK;
}

static CornuStatus train(Options *options, TrainFlags *flags)
{
    Subject subject;
    if (subject_find(&subject, options->arguments[0]) || enter_remat(flags->remat))
        return cornu_error_status();
    const CornuReferenceModel *reference = subject.reference;
    const CornuTextPreset     *preset = reference ? text_preset_of(reference->name) : NULL;
    const bool published = reference && data_is_published(options, &flags->data, preset);
    if (check_flags(flags, published && !preset, published && preset)) return cornu_error_status();
    return !published ? train_own(options, flags, &subject)
           : preset   ? train_text(options, flags, preset)
                      : train_images(options, flags, reference);
}

int command_train(int argc, char **argv)
{
    static const char *const samplings[] = { "blocks", "random", NULL };
    static const char *const forms[] = { "keras", "tensorflow1", NULL };
    Options       options = { .device = "cpu" };
    TrainFlags    flags = { .data = DATA_FLAGS, .validation_split = -1.0 };
    const Option  extra[] = {
        DATA_OPTIONS(flags.data),
        DATA_LABEL_OPTIONS(flags.data),
        DATA_TEST_OPTIONS(flags.data),
        { "validation-split", OPTION_NUMBER, &flags.validation_split, "X",
          "or this part of the data, its end; default the network's", 0.0, 0.99, NULL },
        OBJECTIVE_OPTIONS(flags.objective),
        { "accumulate-steps", OPTION_WHOLE, &flags.objective.accumulate_steps, "N",
          "update by the mean gradient of N batches; default the optimizer's", 1, 1e6, NULL },
        { "remat", OPTION_TEXT, &flags.remat, "MODE",
          "compute activations again for the backward pass, in less memory: full, activations, "
          "larger_than=N (elements), or names of layers", 0, 0, NULL },
        LARGE_BATCH_OPTIONS(flags.large),
        { "augment-shift", OPTION_WHOLE, &flags.shift, "N",
          "shift each training image by up to N pixels each way", 0, 27, NULL },
        { "augment-flip", OPTION_SWITCH, &flags.flip, "",
          "flip half of the training images, chosen anew each epoch", 0, 0, NULL },
        { "text", OPTION_TEXT, &flags.text, "FILE",
          "text to learn from, as --data FILE", 0, 0, NULL },
        { "sequence-length", OPTION_WHOLE, &flags.sequence_length, "N",
          "characters per sequence; default the network's", 1, 1e5, NULL },
        { "sampling", OPTION_CHOICE, &flags.sampling, "NAME",
          "how sequences are drawn from the text; default the network's", 0, 0, samplings },
        { "rmsprop", OPTION_CHOICE, &flags.rmsprop, "NAME",
          "form of RMSprop, for the LSTMs; default the network's", 0, 0, forms },
        OPTION_END,
    };
    const Program program = { .name = "cornu train",
                              .extra = extra,
                              .arguments = "MODEL",
                              .least_arguments = 1,
                              .groups = OPTIONS_ALL | OPTIONS_CLASSES | OPTIONS_MESH |
                                        OPTIONS_PIPELINE,
                              .data = DATA_HELP,
                              .purpose =
                                  "Trains a model on your data, or a network of models/ on its "
                                  "own." };
    const int     usage = options_parse(&options, &program, argc, argv);
    return usage >= 0 ? usage : session_end("cornu train", train(&options, &flags));
}
