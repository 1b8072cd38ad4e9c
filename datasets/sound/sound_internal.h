/* Readers of sound files. */
#ifndef CORNU_DATASETS_SOUND_INTERNAL_H
#define CORNU_DATASETS_SOUND_INTERNAL_H

#include <stdio.h>

#include "../files/inputs_internal.h"
#include "sound.h"

/* An opened file, at its first sample. */
typedef struct CornuSoundReader CornuSoundReader;
struct CornuSoundReader {
    const char    *path;     /* for messages: the caller's, or shown */
    char           shown[CORNU__SHOWN];
    CornuSoundInfo info;
    /* Reads the next `count` samples of each channel, of which the file says that it has them. */
    CornuStatus  (*read)(CornuSoundReader *reader, float *to, int64_t count);
    FILE          *file;     /* closed with the reader */
    void         (*close)(CornuSoundReader *reader);   /* NULL: nothing but the file */
    void          *own;
    int64_t        done;     /* samples read, for messages */
    int            bits, bytes;   /* of a sample in a WAV file: */
    bool           floats;
};

/* Takes the file, which is at its start, also on failure. */
CornuStatus cornu__wav_open(CornuSoundReader *reader);
CornuStatus cornu__sndfile_open(CornuSoundReader *reader);

CornuStatus cornu__sound_open(const char *path, CornuSoundReader *reader);
void        cornu__sound_close(CornuSoundReader *reader);

/* Reads from the start into to, f32 (N, C): what is after N samples is cut, what is missing 0. */
CornuStatus cornu__sound_read(CornuSoundReader *reader, CornuArray to);

#endif
