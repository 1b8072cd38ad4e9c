/* The presets of the text models, by name. */
#include <string.h>

#include "../device/status_internal.h"
#include "models.h"

static const CornuTextPreset presets[] = {
    /* With hard sigmoids as the gates, as in TensorFlow 1, which was used for the publication. */
    { .name = "full", .note = "the network as published",
      .model = "shakespeare_lstm", .channels = 512, .units = 512, .layers = 2,
      .recurrent_activation = CORNU_KERAS_2_HARD_SIGMOID,
      .sequence_length = CORNU_SHAKESPEARE_STEPS, .steps_per_epoch = 100, .random = true },
    { .name = "quick", .note = "a smaller network than the published one, for minutes",
      .model = "shakespeare_lstm_quick", .channels = 64, .units = 256, .layers = 1,
      .sequence_length = CORNU_SHAKESPEARE_STEPS, .validation = 0.1 },
    { .name = "gpt", .note = "a transformer of four blocks",
      .model = "char_gpt", .channels = 128, .layers = 4, .heads = 4,
      .sequence_length = 128, .steps_per_epoch = 250, .random = true, .validation = 0.1 },
    { .name = "gpt_large", .note = "a transformer of eight blocks of 768 channels, for a mesh",
      .model = "gpt_large", .channels = 768, .layers = 8, .heads = 12,
      .sequence_length = 128, .steps_per_epoch = 250, .random = true, .validation = 0.1 },
};

const CornuTextPreset *cornu_text_preset(const char *name)
{
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
        if (!strcmp(name, presets[i].name)) return &presets[i];
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "preset \"%s\" is not known, expected full, "
                            "quick, gpt or gpt_large", name);
}
