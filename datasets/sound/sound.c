#include "sound.h"

#include <stdlib.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "sound_internal.h"

/* ---- Readers ---- */

CornuStatus cornu__sound_open(const char *path, CornuSoundReader *reader)
{
    static const char *const others[] = { "fLaC", "OggS", "FORM", ".snd" };
    char                     begin[12] = { 0 };
    bool                     other = false;
    *reader = (CornuSoundReader){ .path = NULL };
    CORNU__TRY(cornu__inputs_stream(path, INT64_MAX, &reader->file));
    reader->path = cornu__inputs_name(path, reader->shown);
    const size_t got = fread(begin, 1, sizeof begin, reader->file);
    const bool   wav = got == sizeof begin && !memcmp(begin, "RIFF", 4) &&
                     !memcmp(begin + 8, "WAVE", 4);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        other |= !memcmp(begin, others[i], 4);
    const CornuStatus status = wav ? cornu__wav_open(reader)
        : other ? cornu__sndfile_open(reader)
        : cornu__fail(CORNU_ERR_FORMAT, "%s: not a readable sound file, expected WAV, FLAC, Ogg, "
                      "AIFF or AU", reader->path);
    reader->info.seconds = status ? 0.0 : (double)reader->info.samples /
                                          (double)reader->info.sampling_rate;
    if (status) cornu__sound_close(reader);
    return status;
}

void cornu__sound_close(CornuSoundReader *reader)
{
    if (reader->close) reader->close(reader);
    if (reader->file) fclose(reader->file);
    *reader = (CornuSoundReader){ .path = NULL };
}

/* ---- Samples ---- */

static CornuStatus check_channels(const CornuSoundReader *reader, int64_t wanted)
{
    const int have = reader->info.channels;
    if (wanted == 1 || wanted == have || (wanted == 2 && have == 1)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has %d channels, of which %lld cannot be made; "
                       "expected 1, their mean, or %d", reader->path, have, (long long)wanted,
                       have);
}

/* `count` samples of `have` channels as `want`: 1 or, of 1, 2. */
static void mix(const float *from, int have, int64_t count, int want, float *to)
{
    for (int64_t i = 0; i < count; i++, from += have, to += want) {
        float sum = 0.0f;
        for (int c = 0; c < have; c++) sum += from[c];
        for (int c = 0; c < want; c++) to[c] = sum / (float)have;
    }
}

CornuStatus cornu__sound_read(CornuSoundReader *reader, CornuArray to)
{
    enum { BLOCK = 1 << 12 };
    const int64_t N = to.type.shape.extent[0];
    const int     want = (int)to.type.shape.extent[1], have = reader->info.channels;
    const int64_t count = reader->info.samples < N ? reader->info.samples : N;
    float        *samples = to.data, block[BLOCK];
    CORNU__TRY(check_channels(reader, want));
    if (want == have) CORNU__TRY(reader->read(reader, samples, count));
    for (int64_t i = 0, n; i < count && want != have; i += n) {
        n = count - i < BLOCK / have ? count - i : BLOCK / have;
        CORNU__TRY(reader->read(reader, block, n));
        mix(block, have, n, want, samples + i * want);
    }
    memset(samples + count * want, 0, (size_t)((N - count) * want) * sizeof *samples);
    return CORNU_OK;
}

CornuStatus cornu_sound_info(const char *path, CornuSoundInfo *info)
{
    CORNU__NEED(path);
    CORNU__NEED(info);
    CornuSoundReader reader;
    CORNU__TRY(cornu__sound_open(path, &reader));
    *info = reader.info;
    cornu__sound_close(&reader);
    return CORNU_OK;
}

/* A damaged header of a compressed file can claim any number of samples, which the file's bytes do
 * not bound. */
static CornuStatus allocate(const CornuSoundReader *reader, int64_t channels, CornuArray *to)
{
    const CornuType type = { CORNU_F32, cornu_shape(reader->info.samples, channels) };
    CORNU__TRY(cornu__fail_prefix(cornu_type_check(type), reader->path));
    const size_t bytes = cornu_type_bytes(type);
    CORNU__TRY(cornu__fail_prefix(cornu__check_memory(bytes), reader->path));
    *to = cornu_array_from(malloc(bytes ? bytes : 1), type);
    if (to->data) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for %zu bytes", reader->path, bytes);
}

CornuStatus cornu_sound_load(const char *path, int channels, CornuArray *sound,
                             int64_t *sampling_rate)
{
    CORNU__NEED(path);
    CORNU__NEED(sound);
    CornuSoundReader reader;
    CornuArray       made = { .data = NULL };
    if (channels < 0 || channels > 2)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d channels requested, expected 0, 1 or 2",
                           path, channels);
    CORNU__TRY(cornu__sound_open(path, &reader));
    const int   want = channels ? channels : reader.info.channels;
    CornuStatus status = check_channels(&reader, want);
    if (!status) status = allocate(&reader, want, &made);
    if (!status) status = cornu__sound_read(&reader, made);
    if (!status) *sound = made;
    else free(made.data);
    if (!status && sampling_rate) *sampling_rate = reader.info.sampling_rate;
    cornu__sound_close(&reader);
    return status;
}
