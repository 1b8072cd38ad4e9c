#include "../nn/layers/layers.h"
#include "models.h"

CornuModel *cornu_shakespeare_lstm_from(const CornuShakespeareConfig *config)
{
    const CornuTextPreset *preset = config->preset ? config->preset : cornu_text_preset("full");
    const int64_t T = config->sequence_length ? config->sequence_length : preset->sequence_length;
    const int64_t vocabulary = config->vocabulary ? config->vocabulary : 256;
    CornuModel   *model = cornu_sequential(.name = preset->model, .input_shape = { T });
    cornu_model_add(model, cornu_embedding(vocabulary, preset->channels));
    for (int64_t i = 0; i < preset->layers; i++)
        cornu_model_add(model, cornu_lstm(preset->units, .return_sequences = true,
                                          .recurrent_activation = preset->recurrent_activation,
                                          .stateful = config->stateful));
    cornu_model_add(model, cornu_time_distributed(
                               cornu_dense(vocabulary, .activation = CORNU_SOFTMAX)));
    return model;
}
