/* WAV files, read as they are and as one channel, and cut or continued to 50 samples. */
#include "fuzz.h"

#include "../../datasets/sound/sound_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CornuSoundInfo info;
    /* Other formats are libsndfile's. */
    if (size < 4 || memcmp(data, "RIFF", 4)) return 0;
    const char *path = fuzz_file("sound.wav", data, size);
    if (!fuzz_done(cornu_sound_info(path, &info))) return 0;
    for (int channels = 0; channels <= 2; channels++) {
        CornuArray sound = { 0 };
        if (!fuzz_done(cornu_sound_load(path, channels, &sound, NULL))) continue;
        fuzz_expect(sound.type.shape.extent[0] == info.samples, "as many samples as it says");
        fuzz_read(sound.data, cornu_type_bytes(sound.type));
        free(sound.data);
    }
    float            samples[50];
    CornuSoundReader reader;
    if (!fuzz_done(cornu__sound_open(path, &reader))) return 0;
    if (fuzz_done(cornu__sound_read(&reader, cornu_array(samples, CORNU_F32, 50, 1))))
        fuzz_read(samples, sizeof samples);
    cornu__sound_close(&reader);
    return 0;
}
