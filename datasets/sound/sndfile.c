/* What libsndfile reads, which is loaded at the first such file. Its interface, sndfile.h of 1.0.18
 * and later, is stable. */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/system/library_internal.h"
#include "sound_internal.h"

typedef struct {
    int64_t frames;
    int     sampling_rate, channels, format, sections, seekable;
} SndfileInfo;

typedef struct {
    void       *(*open)(int descriptor, int mode, SndfileInfo *info, int close_it);
    int64_t     (*readf_float)(void *file, float *to, int64_t frames);
    const char *(*strerror)(void *file);
    int         (*close)(void *file);
} Library;

static Library library;

static CornuStatus load(void)
{
    static const CornuLibrarySymbol symbols[] = {
        { "sf_open_fd", offsetof(Library, open) },
        { "sf_readf_float", offsetof(Library, readf_float) },
        { "sf_strerror", offsetof(Library, strerror) }, { "sf_close", offsetof(Library, close) },
    };
    static CornuLibrary sndfile = {
        .files = { "libsndfile.so.1" }, .symbols = symbols,
        .count = sizeof symbols / sizeof *symbols, .need = "needs libsndfile",
        .help = "install it (on Debian libsndfile1), or convert the file to WAV",
    };
    return cornu__library_load(&sndfile, &library);
}

static CornuStatus read_samples(CornuSoundReader *reader, float *to, int64_t count)
{
    const int64_t got = library.readf_float(reader->own, to, count);
    reader->done += got > 0 ? got : 0;
    if (got == count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s: a damaged %s file, sample %lld of %lld is not there: "
                       "%s", reader->path, reader->info.format, (long long)reader->done,
                       (long long)reader->info.samples, library.strerror(reader->own));
}

static void close_file(CornuSoundReader *reader) { library.close(reader->own); }

static const char *name_of(int format)
{
    static const struct { int format; const char *name; } known[] = {
        { 0x02, "AIFF" }, { 0x03, "AU" }, { 0x17, "FLAC" }, { 0x20, "Ogg" },
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].format == (format >> 16 & 0xFFF)) return known[i].name;
    return "sound";
}

CornuStatus cornu__sndfile_open(CornuSoundReader *reader)
{
    enum { READ = 0x10 };
    SndfileInfo info = { .format = 0 };
    CORNU__TRY(cornu__fail_prefix(load(), reader->path));
    /* It reads from where the descriptor is. */
    if (lseek(fileno(reader->file), 0, SEEK_SET) != 0)
        return cornu__fail(CORNU_ERR_FILE, "%s: cannot be read: %s", reader->path, strerror(errno));
    reader->own = library.open(fileno(reader->file), READ, &info, 0);
    if (!reader->own)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: not a readable sound file: %s", reader->path,
                           library.strerror(NULL));
    reader->close = close_file;
    reader->read = read_samples;
    reader->info.format = name_of(info.format);
    reader->info.samples = info.frames;
    reader->info.channels = info.channels;
    reader->info.sampling_rate = info.sampling_rate;
    if (info.frames >= 0 && info.channels >= 1 && info.channels <= CORNU_SOUND_CHANNELS &&
        info.sampling_rate > 0)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld samples of %d channels at %d a second, "
                       "expected 1 to %d channels", reader->path, (long long)info.frames,
                       info.channels, info.sampling_rate, CORNU_SOUND_CHANNELS);
}
