/* WAV files. Sources: IBM and Microsoft, "Multimedia Programming Interface and Data Specifications
 * 1.0", chapter 3; Microsoft, "Multiple Channel Audio Data and WAVE Files". */
#include <string.h>

#include "../../device/status_internal.h"
#include "sound_internal.h"

enum { PCM = 1, FLOATS = 3, EXTENSIBLE = 0xFFFE, FORMAT = 16, EXTENDED = 26, HEADER = 8 };

static uint32_t u16(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
static uint32_t u32(const uint8_t *at) { return u16(at) | u16(at + 2) << 16; }

/* One sample. */
static float sample(const CornuSoundReader *reader, const uint8_t *at)
{
    float   f;
    double  d;
    int32_t value;
    switch (reader->bits) {
    case 8:  return (float)(at[0] - 128) / 128.0f;
    case 16: return (float)(int16_t)u16(at) / 32768.0f;
    case 24:
        value = (int32_t)((uint32_t)at[0] << 8 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 24);
        return (float)(value / 256) / 8388608.0f;
    case 32:
        value = (int32_t)u32(at);
        memcpy(&f, &value, sizeof f);
        return reader->floats ? f : (float)((double)value / 2147483648.0);
    default: {
        const uint64_t bits = u32(at) | (uint64_t)u32(at + 4) << 32;
        memcpy(&d, &bits, sizeof d);
        return (float)d;
    }
    }
}

static CornuStatus read_samples(CornuSoundReader *reader, float *to, int64_t count)
{
    enum { BLOCK = 1 << 13 };
    uint8_t      bytes[BLOCK];
    const size_t each = (size_t)reader->bytes;
    for (size_t left = (size_t)count * (size_t)reader->info.channels; left > 0;) {
        const size_t most = BLOCK / each, n = left < most ? left : most;
        const off_t  at = ftello(reader->file);
        if (fread(bytes, each, n, reader->file) != n)
            return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read at byte %lld", reader->path,
                               (long long)at);
        for (size_t i = 0; i < n; i++) *to++ = sample(reader, bytes + i * each);
        left -= n;
    }
    return CORNU_OK;
}

static CornuStatus damaged(const CornuSoundReader *reader, int64_t at, const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged WAV file, byte %lld: %s", reader->path,
                       (long long)at, what);
}

/* The chunk of the format, `length` bytes at `at`. */
static CornuStatus read_format(CornuSoundReader *reader, int64_t at, uint32_t length)
{
    uint8_t      bytes[EXTENDED] = { 0 };
    const size_t most = length < EXTENDED ? length : EXTENDED;
    if (length < FORMAT || fread(bytes, 1, most, reader->file) != most)
        return damaged(reader, at, "the file ends in its format, or that has less than 16 bytes");
    const uint32_t tag = u16(bytes), kind = tag == EXTENSIBLE ? u16(bytes + 24) : tag;
    const uint32_t align = u16(bytes + 12);
    reader->info.channels = (int)u16(bytes + 2);
    reader->info.sampling_rate = u32(bytes + 4);
    reader->bits = (int)u16(bytes + 14);
    reader->bytes = reader->bits / 8;
    reader->floats = kind == FLOATS;
    const int  bits = reader->bits;
    const bool whole = kind == PCM && (bits == 8 || bits == 16 || bits == 24 || bits == 32);
    if (!whole && !(kind == FLOATS && (bits == 32 || bits == 64)))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: a WAV file with samples of format %u and "
                           "%d bits, expected PCM (1) of 8, 16, 24 or 32, or floats (3) of 32 or "
                           "64", reader->path, kind, bits);
    if (reader->info.channels < 1 || reader->info.channels > CORNU_SOUND_CHANNELS)
        return damaged(reader, at + 2, "the number of channels is not from 1 to 64");
    if (!reader->info.sampling_rate) return damaged(reader, at + 4, "the sampling rate is 0");
    if (align == (uint32_t)(reader->info.channels * reader->bytes)) return CORNU_OK;
    return damaged(reader, at + 12, "the bytes of a block are not those of its samples");
}

/* The samples, `length` bytes of them at `at`, of a file of `size`. */
static CornuStatus find_samples(CornuSoundReader *reader, int64_t at, uint32_t length, int64_t size)
{
    const int64_t each = (int64_t)reader->bytes * reader->info.channels;
    const int64_t bytes = length == UINT32_MAX ? size - at : length;
    if (!each) return damaged(reader, at, "samples before their format");
    reader->info.samples = bytes / each;
    if (bytes <= size - at) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged WAV file, byte %lld: the file ends at "
                       "sample %lld of %lld", reader->path, (long long)size,
                       (long long)((size - at) / each), (long long)reader->info.samples);
}

CornuStatus cornu__wav_open(CornuSoundReader *reader)
{
    enum { RIFF = 12 };
    uint8_t header[HEADER];
    int64_t size = 0;
    reader->info.format = "WAV";
    reader->read = read_samples;
    if (fseeko(reader->file, 0, SEEK_END) == 0) size = ftello(reader->file);
    for (int64_t at = RIFF; at + HEADER <= size;) {
        if (fseeko(reader->file, at, SEEK_SET) || fread(header, 1, HEADER, reader->file) != HEADER)
            return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read at byte %lld", reader->path,
                               (long long)at);
        const uint32_t length = u32(header + 4);
        at += HEADER;
        if (!memcmp(header, "data", 4)) return find_samples(reader, at, length, size);
        if (!memcmp(header, "fmt ", 4)) CORNU__TRY(read_format(reader, at, length));
        at += (int64_t)length + length % 2;
    }
    return damaged(reader, size, "the file ends before its samples");
}
