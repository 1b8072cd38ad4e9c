/*
 * Shared by the fuzz targets. Each defines LLVMFuzzerTestOneInput, which passes untrusted bytes to
 * a function that reads them; libFuzzer calls it with new inputs, replay.c with those in
 * seeds/TARGET/. A finding is what a sanitizer reports, or a failure without a message.
 */
#ifndef CORNU_TESTS_FUZZ_H
#define CORNU_TESTS_FUZZ_H

#include "../../device/hash/sha256_internal.h"
#include "../../nn/cornu.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);   /* optional */

/* Ends the process unless `holds`: a finding. */
static inline void fuzz_expect(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "expected: %s; the message is \"%s\"\n", what, cornu_error_message());
    abort();
}

static inline bool fuzz_done(CornuStatus status)
{
    fuzz_expect(!status || *cornu_error_message(), "a message with a failure");
    fuzz_expect(!cornu_error_pending(), "no error is pending after a status");
    return status == CORNU_OK;
}

/* Likewise for a constructor, whose pending error is taken. */
static inline bool fuzz_made(const void *object)
{
    fuzz_expect(object ? !cornu_error_pending() : cornu_error_pending(),
                "an object, or an error that is pending");
    if (!object) fuzz_done(cornu_error_take());
    return object != NULL;
}

/* Likewise for a loading function, which leaves no error pending (device/status.h). */
static inline bool fuzz_loaded(const void *object)
{
    fuzz_done(object ? CORNU_OK : cornu_error_status());
    fuzz_expect(object || cornu_error_status(), "an object, or a status");
    return object != NULL;
}

/* Reads all bytes. */
static inline void fuzz_read(const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) (void)((const volatile uint8_t *)bytes)[i];
}

/* $TMPDIR/cornu-fuzz-PID/NAME; makes the folder. Valid until the fourth call from now. */
static inline const char *fuzz_path(const char *name)
{
    static char paths[4][300];
    static int  next;
    const char *folder = getenv("TMPDIR");
    char       *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/cornu-fuzz-%ld", folder ? folder : "/tmp", (long)getpid());
    if (next == 1) (void)!mkdir(path, 0700);
    snprintf(path + strlen(path), sizeof paths[0] - strlen(path), "/%s", name);
    return path;
}

/* Writes a file of these bytes; returns its path. */
static inline const char *fuzz_file(const char *name, const void *bytes, size_t size)
{
    const char *path = fuzz_path(name);
    const int   file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (file < 0 || write(file, bytes, size) != (ssize_t)size) abort();
    close(file);
    return path;
}

/* Reads the first elements of a data set, which it takes, in order. */
static inline void fuzz_read_dataset(CornuDataset *dataset)
{
    enum { MOST = 100 };
    if (!fuzz_made(dataset)) return;
    CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
    const CornuBatch *element = NULL;
    fuzz_expect(iterator, "an iterator");
    for (int64_t i = 0; i < MOST; i++) {
        const int64_t count = cornu_dataset_count(dataset);
        if (count >= 0 && i >= count) break;
        fuzz_done(cornu_iterator_seek(iterator, (CornuSample){ 0, i }));
        const bool done = fuzz_done(cornu_iterator_next(iterator, &element));
        if (!done && count < 0) break;      /* those after it are not reached, either */
        if (!done) continue;
        if (!element) break;
        for (int c = 0; c < element->count; c++)
            fuzz_read(element->arrays[c].data, cornu_type_bytes(element->arrays[c].type));
    }
    cornu_iterator_free(iterator);
    cornu_dataset_free(dataset);
}

/* A model to load weights into. */
static inline CornuModel *fuzz_small_model(void)
{
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { 3 });
    cornu_model_add(model, cornu_dense(2));
    return model;
}

/* Writes a safetensors file: its header is the JSON up to a zero byte, the rest are the data. Adds
 * the right length of the header, and the right checksum if the header has a field for it. */
static inline const char *fuzz_safetensors(const char *name, const uint8_t *data, size_t size)
{
    static const char mark[] = "\"sha256\":\"";
    enum { DIGITS = CORNU__SHA256_TEXT - 1 };
    const uint8_t *end = memchr(data, 0, size);
    const size_t   header = end ? (size_t)(end - data) : size, rest = end ? size - header - 1 : 0;
    char          *file = malloc(8 + header + rest + 1), *digits;
    if (!file) abort();
    for (int i = 0; i < 8; i++) file[i] = (char)(header >> (8 * i) & 0xFF);
    memcpy(file + 8, data, header);
    file[8 + header] = '\0';
    digits = strstr(file + 8, mark);
    if (digits) digits += strlen(mark);
    if (digits && strlen(digits) >= DIGITS) memset(digits, '0', DIGITS);
    else digits = NULL;
    if (rest) memcpy(file + 8 + header, end + 1, rest);
    if (digits) {
        CornuSha256 sum;
        char        text[CORNU__SHA256_TEXT];
        cornu__sha256_begin(&sum);
        cornu__sha256_add(&sum, file, 8 + header + rest);
        cornu__sha256_end(&sum, text);
        memcpy(digits, text, DIGITS);
    }
    const char *path = fuzz_file(name, file, 8 + header + rest);
    free(file);
    return path;
}

#endif
