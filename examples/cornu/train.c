/* cornu train MODEL: a model on your own data, or a network of models/ as it was published. */
#include "train.h"

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
        : data->target && (images || text) ? "--target is for --data FILE.csv alone"
        : data->encoding && images         ? "--encoding is for texts alone"
        : of_pictures && (images || text)
            ? "--scale and --offset are not for networks of models/ on their own data"
        : flags->validation_split > 0.0 && data->test_x.count
            ? "--validation-split and --test-x: expected only one of them"
            : NULL;
    return what ? cornu_error_set(CORNU_ERR_ARGUMENT, "%s", what) : CORNU_OK;
}

static CornuStatus train(Options *options, TrainFlags *flags)
{
    Subject subject;
    if (subject_find(&subject, options->arguments[0])) return cornu_error_status();
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
                              .groups = OPTIONS_ALL | OPTIONS_CLASSES | OPTIONS_MESH,
                              .data = DATA_HELP,
                              .purpose =
                                  "Trains a model on your data, or a network of models/ on its "
                                  "own." };
    const int     usage = options_parse(&options, &program, argc, argv);
    return usage >= 0 ? usage : session_end("cornu train", train(&options, &flags));
}
