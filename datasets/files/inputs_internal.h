/*
 * The files that a data set reads records of: any number of them, of which some are open at a time,
 * read at any place by several threads.
 *
 * They are read into memory of a bounded size, not mapped, see device/files/input_internal.h.
 */
#ifndef CORNU_DATASETS_INPUTS_INTERNAL_H
#define CORNU_DATASETS_INPUTS_INTERNAL_H

#include <stdbool.h>
#include <stdio.h>

#include "../../device/files/input_internal.h"

/* Opens a file, or one of another machine (remote/remote_internal.h), which cornu__input_read and
 * cornu__input_close take, too. Errors do not name it. */
CornuStatus cornu__input_open_any(CornuInput *input, const char *path);

/* The path as messages name it: that itself, or in `shown` an address without its secrets. */
enum { CORNU__SHOWN = 1024 };
const char *cornu__inputs_name(const char *path, char shown[CORNU__SHOWN]);

/* The same as a stream at its start; of another machine's file a copy, which is gone when it is
 * closed, of at most `most` bytes. Errors name the file. */
CornuStatus cornu__inputs_stream(const char *path, int64_t most, FILE **stream);

typedef struct CornuInputs CornuInputs;

/* Without files at first. NULL with CORNU_ERR_MEMORY, not pending. */
CornuInputs *cornu__inputs_create(void);
void         cornu__inputs_free(CornuInputs *inputs);   /* NULL is ignored */

/* Adds a file. CORNU_ERR_FILE, naming it, if it cannot be read. */
CornuStatus cornu__inputs_add(CornuInputs *inputs, const char *path);

/* Adds the file of this name or, if there is none, those that it stands for as a pattern: with
 * {000..127} and {a,b} each of these, which must be there, in their order; with * ? and [...], as
 * in a shell, all that match, sorted by byte. CORNU_ERR_DATA if none does. */
CornuStatus cornu__inputs_match(CornuInputs *inputs, const char *pattern);

/* Adds those of a config: of one pattern, or of a NULL-terminated list of them. `what` is for
 * messages: CORNU_ERR_ARGUMENT for both, none, and an empty list. */
CornuStatus cornu__inputs_match_all(CornuInputs *inputs, const char *pattern,
                                    const char *const *patterns, const char *what);

int         cornu__inputs_count(const CornuInputs *inputs);
bool        cornu__inputs_is_local(const CornuInputs *inputs, int file);
bool        cornu__inputs_are_local(const CornuInputs *inputs);
/* A copy of a file that is not local, without a name and gone when it is closed. Errors do not name
 * the file. */
CornuStatus cornu__inputs_copy(const CornuInputs *inputs, int file, FILE **stream);
/* As messages name it: an address without what is secret in it. */
const char *cornu__inputs_path(const CornuInputs *inputs, int file);
/* Writes what tells a file of this machine from others and from what it was before: its path, size
 * and time of change. false for those of other machines, and if it is too long. */
bool        cornu__inputs_identity(const CornuInputs *inputs, int file, char *to, size_t size);
int64_t     cornu__inputs_size(const CornuInputs *inputs, int file);

/* Reads `size` bytes of a file from byte `at` on, which it has. CORNU_ERR_FILE, not naming the
 * file, if that fails, or if it has another size than when it was added. */
CornuStatus cornu__inputs_read(CornuInputs *inputs, int file, int64_t at, void *to, size_t size);

/* The file of record `record` of all, where first[i] is the number of the first one of file i. */
int cornu__inputs_find(const int64_t *first, int files, int64_t record);

/*
 * What one thread reads with. It keeps the bytes that were read last of a few files, and reads
 * ahead where it is asked for what follows soon. Start from all zeros but inputs.
 */
enum { CORNU__WINDOWS = 32 };

typedef struct {
    unsigned char *bytes;
    size_t         space, size;
    int64_t        at, next;       /* of bytes; where the last request ended */
    int            file;
    uint64_t       used;           /* a count of requests; 0: never */
} CornuInputWindow;

typedef struct {
    CornuInputs *inputs;
    CornuInputWindow  window[CORNU__WINDOWS];
    uint64_t     requests;
} CornuReader;

/* `size` bytes of a file from byte `at` on, which it has; *bytes is valid until the next call. */
CornuStatus cornu__reader_get(CornuReader *reader, int file, int64_t at, size_t size,
                              const unsigned char **bytes);
/* The same, copied. */
CornuStatus cornu__reader_copy(CornuReader *reader, int file, int64_t at, size_t size, void *to);
void        cornu__reader_close(CornuReader *reader);

/* One in memory of its own, NULL without that (not pending); freed once, NULL is ignored. */
CornuReader *cornu__reader_create(CornuInputs *inputs);
void         cornu__reader_free(CornuReader *reader);

#endif
