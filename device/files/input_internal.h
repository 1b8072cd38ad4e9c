/*
 * Files that are read at any place, by several threads at a time. They are not mapped: a disk error
 * in a mapped file, or one that becomes shorter, would end the program, and its pages count as the
 * program's memory.
 */
#ifndef CORNU_DEVICE_INPUT_INTERNAL_H
#define CORNU_DEVICE_INPUT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "../status_internal.h"

typedef struct {
    int     descriptor;   /* -1: not open, or not a file of this machine */
    int64_t size;         /* bytes, when it was opened */
    /* Of what is read by other means: `read` does what cornu__input_read says, `close` releases
     * `own`. NULL: a file. */
    CornuStatus (*read)(void *own, int64_t at, void *to, size_t size);
    void        (*close)(void *own);
    void         *own;
} CornuInput;

/* Opens a regular file. CORNU_ERR_FILE, not naming it, if it cannot be read or is another kind. */
CornuStatus cornu__input_open(CornuInput *input, const char *path);
void        cornu__input_close(CornuInput *input);

/* Reads `size` bytes from byte `at` on. CORNU_ERR_FILE, not naming the file, if that fails or the
 * file ends before. */
CornuStatus cornu__input_read(const CornuInput *input, int64_t at, void *to, size_t size);

#endif
