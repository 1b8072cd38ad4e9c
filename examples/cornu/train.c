/* cornu train MODEL: a model on arrays, or a network of models/ on its own data. */
#include "train.h"

#include <string.h>

#include "commands.h"
#include "common/session.h"

/* A flag that is given although nothing would read it. */
static CornuStatus check_flags(const TrainFlags *flags, bool images, bool text)
{
    const bool  of_text = flags->text || flags->sampling || flags->rmsprop || flags->sequence_length;
    const bool  of_images = flags->large.recipe || flags->shift || flags->flip;
    const bool  of_arrays = flags->y || flags->test_x || flags->test_y;
    const char *what = text && (flags->objective.loss || flags->objective.optimizer ||
                                flags->objective.metrics)
                           ? "--loss, --optimizer and --metrics are not for networks of text"
                       : of_text && !text ? "--text, --sampling, --rmsprop and --sequence-length are "
                                            "for networks of text alone"
                       : of_images && !images ? "--large-batch and --augment-... are for networks "
                                                "of digits and garments alone"
                       : of_arrays && !flags->x ? "--y, --test-x and --test-y come with --x" : NULL;
    return what ? cornu_error_set(CORNU_ERR_ARGUMENT, "%s", what) : CORNU_OK;
}

static CornuStatus train(Options *options, TrainFlags *flags)
{
    Subject subject;
    if (subject_find(&subject, options->arguments[0])) return cornu_error_status();
    const bool                 own = subject.reference && !flags->x;
    const CornuTextPreset     *preset = own ? text_preset_of(subject.reference->name) : NULL;
    const CornuReferenceModel *images = own && !preset ? subject.reference : NULL;
    if (check_flags(flags, images, preset)) return cornu_error_status();
    return preset   ? train_text(options, flags, preset)
           : images ? train_images(options, flags, images)
                    : train_arrays(options, flags, &subject);
}

int command_train(int argc, char **argv)
{
    static const char *const samplings[] = { "blocks", "random", NULL };
    static const char *const forms[] = { "keras", "tensorflow1", NULL };
    static const char *const encodings[] = { "code-points", "alphabet", "bytes", NULL };
    Options       options = { .device = "cpu" };
    TrainFlags    flags = { .validation_split = -1.0, .encoding = "code-points" };
    const Option  extra[] = {
        { "x", OPTION_TEXT, &flags.x, "FILE", "a .npy file, FILE.npz, or FILE.npz:NAME", 0, 0, NULL },
        { "y", OPTION_TEXT, &flags.y, "FILE", "the labels, likewise", 0, 0, NULL },
        { "test-x", OPTION_TEXT, &flags.test_x, "FILE", "data of the validation", 0, 0, NULL },
        { "test-y", OPTION_TEXT, &flags.test_y, "FILE", "and their labels", 0, 0, NULL },
        { "validation-split", OPTION_NUMBER, &flags.validation_split, "X",
          "or this part of the data, its end; default the network's", 0.0, 0.99, NULL },
        OBJECTIVE_OPTIONS(flags.objective),
        LARGE_BATCH_OPTIONS(flags.large),
        { "augment-shift", OPTION_WHOLE, &flags.shift, "N",
          "shift each training image by up to N pixels each way", 0, 27, NULL },
        { "augment-flip", OPTION_SWITCH, &flags.flip, "",
          "flip half of the training images, chosen anew each epoch", 0, 0, NULL },
        { "text", OPTION_TEXT, &flags.text, "FILE",
          "text to learn from, here or in the data directory; default shakespeare/input.txt", 0, 0,
          NULL },
        { "sequence-length", OPTION_WHOLE, &flags.sequence_length, "N",
          "characters per sequence; default the network's", 1, 1e5, NULL },
        { "sampling", OPTION_CHOICE, &flags.sampling, "NAME",
          "how sequences are drawn from the text; default the network's", 0, 0, samplings },
        { "rmsprop", OPTION_CHOICE, &flags.rmsprop, "NAME",
          "form of RMSprop, for the LSTMs; default the network's", 0, 0, forms },
        { "encoding", OPTION_CHOICE, &flags.encoding, "NAME", "what a character of a text is", 0, 0,
          encodings },
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = { .name = "cornu train", .extra = extra, .arguments = "MODEL",
                              .least_arguments = 1, .groups = OPTIONS_ALL | OPTIONS_CLASSES,
                              .purpose = "Trains a model on your data, or a network of models/ on its "
                                         "own." };
    const int     usage = options_parse(&options, &program, argc, argv);
    return usage >= 0 ? usage : session_end("cornu train", train(&options, &flags));
}
