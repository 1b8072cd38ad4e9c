#define _XOPEN_SOURCE 700    /* fseeko, realpath */

#include "inputs_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../remote/remote_internal.h"

/* Of one data set; programs have at least 1024 descriptors. */
enum { MOST_OPEN = 128 };

typedef struct {
    char      *path;      /* owned: as messages name it */
    CornuInput input;     /* its size stays while it is closed */
    int        users;     /* threads that read it now */
    uint64_t   used;      /* a count of uses */
} File;

struct CornuInputs {
    File           *files;
    int             count, space;
    pthread_mutex_t lock;
    int             open;
    uint64_t        uses;
};

/* ---- Opening ---- */

CornuStatus cornu__input_open_any(CornuInput *input, const char *path)
{
    return cornu__is_remote(path) ? cornu__remote_open(input, path)
                                  : cornu__input_open(input, path);
}

const char *cornu__inputs_name(const char *path, char shown[CORNU__SHOWN])
{
    if (!cornu__is_remote(path)) return path;
    cornu__remote_shown(path, shown);
    return shown;
}

static CornuStatus copy(const CornuInput *input, FILE *to)
{
    enum { BLOCK = 1 << 16 };
    unsigned char block[BLOCK];
    for (int64_t at = 0, n; at < input->size; at += n) {
        n = input->size - at < BLOCK ? input->size - at : BLOCK;
        CORNU__TRY(cornu__input_read(input, at, block, (size_t)n));
        if (fwrite(block, 1, (size_t)n, to) != (size_t)n) break;
    }
    if (fflush(to) == 0 && !ferror(to) && fseeko(to, 0, SEEK_SET) == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "its temporary copy cannot be written: %s", strerror(errno));
}

/* tmpfile's file has no name, so that nothing of it stays. */
static CornuStatus make_copy(const CornuInput *input, FILE **stream)
{
    *stream = tmpfile();
    if (!*stream)
        return cornu__fail(CORNU_ERR_FILE, "there can be no temporary copy of it: %s",
                           strerror(errno));
    const CornuStatus status = copy(input, *stream);
    if (!status) return CORNU_OK;
    fclose(*stream);
    *stream = NULL;
    return status;
}

static CornuStatus copy_remote(const char *path, int64_t most, FILE **stream)
{
    CornuInput  input;
    CornuStatus status = cornu__remote_open(&input, path);
    if (!status && input.size > most)
        status = cornu__fail(CORNU_ERR_FORMAT, "has %lld bytes, expected at most %lld",
                             (long long)input.size, (long long)most);
    if (!status) status = make_copy(&input, stream);
    cornu__input_close(&input);
    return status;
}

CornuStatus cornu__inputs_stream(const char *path, int64_t most, FILE **stream)
{
    char shown[CORNU__SHOWN];
    if (!cornu__is_remote(path)) return cornu__open_to_read(path, stream);
    return cornu__fail_prefix(copy_remote(path, most, stream), cornu__inputs_name(path, shown));
}

/* Files of other machines stay open: they have no descriptors. */
static bool has_descriptor(const File *file) { return file->input.descriptor >= 0; }
static bool is_closed(const File *file) { return !has_descriptor(file) && !file->input.own; }

CornuInputs *cornu__inputs_create(void)
{
    CornuInputs *inputs = cornu__allocate(1, sizeof *inputs);
    if (inputs) pthread_mutex_init(&inputs->lock, NULL);
    return inputs;
}

CornuStatus cornu__inputs_add(CornuInputs *inputs, const char *path)
{
    CORNU__TRY(cornu__reserve(&inputs->files, &inputs->space, inputs->count, 1,
                              sizeof *inputs->files));
    File *file = &inputs->files[inputs->count];
    char        shown[CORNU__SHOWN];
    const char *name = cornu__inputs_name(path, shown);
    *file = (File){ .path = cornu__copy_text(name), .input = { .descriptor = -1 } };
    if (!file->path) return CORNU_ERR_MEMORY;
    inputs->count++;
    CORNU__TRY(cornu__fail_prefix(cornu__input_open_any(&file->input, path), name));
    if (has_descriptor(file) && ++inputs->open > MOST_OPEN) {
        cornu__input_close(&file->input);
        inputs->open--;
    }
    return CORNU_OK;
}

CornuStatus cornu__inputs_match_all(CornuInputs *inputs, const char *pattern,
                                    const char *const *patterns, const char *what)
{
    if (!pattern == !patterns)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: expected .file or .files, %s", what,
                           pattern ? "both are given" : "none is given");
    if (pattern) return cornu__inputs_match(inputs, pattern);
    for (; *patterns; patterns++) CORNU__TRY(cornu__inputs_match(inputs, *patterns));
    if (inputs->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .files is empty", what);
}

void cornu__inputs_free(CornuInputs *inputs)
{
    if (!inputs) return;
    for (int i = 0; i < inputs->count; i++) {
        cornu__input_close(&inputs->files[i].input);
        cornu__release(inputs->files[i].path);
    }
    cornu__release(inputs->files);
    pthread_mutex_destroy(&inputs->lock);
    cornu__release(inputs);
}

int cornu__inputs_count(const CornuInputs *inputs) { return inputs->count; }

const char *cornu__inputs_path(const CornuInputs *inputs, int file)
{
    return inputs->files[file].path;
}

bool cornu__inputs_is_local(const CornuInputs *inputs, int file)
{
    return !inputs->files[file].input.own;
}

bool cornu__inputs_are_local(const CornuInputs *inputs)
{
    for (int i = 0; i < inputs->count; i++)
        if (!cornu__inputs_is_local(inputs, i)) return false;
    return true;
}

CornuStatus cornu__inputs_copy(const CornuInputs *inputs, int file, FILE **stream)
{
    return make_copy(&inputs->files[file].input, stream);
}

bool cornu__inputs_identity(const CornuInputs *inputs, int file, char *to, size_t size)
{
    const File *of = &inputs->files[file];
    struct stat about;
    char       *path = of->input.own ? NULL : realpath(of->path, NULL);
    if (!path) return false;
    const bool there = stat(path, &about) == 0 && about.st_size == of->input.size;
    const int  length = snprintf(to, size, "%s\n%lld\n%lld.%09ld", path, (long long)about.st_size,
                                 (long long)about.st_mtim.tv_sec, about.st_mtim.tv_nsec);
    free(path);
    return there && length > 0 && (size_t)length < size;
}

int64_t cornu__inputs_size(const CornuInputs *inputs, int file)
{
    return inputs->files[file].input.size;
}

/* The last one whose first record is not after it. */
int cornu__inputs_find(const int64_t *first, int files, int64_t record)
{
    int low = 0, high = files;
    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (first[middle] <= record) low = middle;
        else high = middle;
    }
    return low;
}

/* ---- Reading ---- */

/* Closes the file that nobody reads and that was used longest ago, if there are too many. */
static void close_one(CornuInputs *inputs)
{
    File *oldest = NULL;
    for (int i = 0; i < inputs->count && inputs->open > MOST_OPEN; i++) {
        File *file = &inputs->files[i];
        if (has_descriptor(file) && !file->users && (!oldest || file->used < oldest->used))
            oldest = file;
    }
    if (!oldest) return;
    cornu__input_close(&oldest->input);
    inputs->open--;
}

static CornuStatus reopen(CornuInputs *inputs, File *file)
{
    const int64_t     size = file->input.size;
    const CornuStatus status = cornu__input_open(&file->input, file->path);
    const int64_t     now = file->input.size;
    file->input.size = size;
    CORNU__TRY(status);
    inputs->open++;
    if (now == size) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "has %lld bytes, it had %lld before: it was changed while "
                       "being read", (long long)now, (long long)size);
}

CornuStatus cornu__inputs_read(CornuInputs *inputs, int index, int64_t at, void *to, size_t size)
{
    File       *file = &inputs->files[index];
    CornuStatus status = CORNU_OK;
    CornuInput  input;
    pthread_mutex_lock(&inputs->lock);
    file->users++;
    file->used = ++inputs->uses;
    if (is_closed(file)) {
        status = reopen(inputs, file);
        close_one(inputs);
    }
    input = file->input;
    pthread_mutex_unlock(&inputs->lock);
    if (!status) status = cornu__input_read(&input, at, to, size);
    pthread_mutex_lock(&inputs->lock);
    file->users--;
    pthread_mutex_unlock(&inputs->lock);
    return status;
}

/* ---- One thread's reader ---- */

/* What is read ahead of a request that begins at most so many bytes after the last one; requests
 * that are larger are read without a window. */
enum { AHEAD = 1 << 17, NEAR = 1 << 13 };

static CornuInputWindow *window_of(CornuReader *reader, int file)
{
    CornuInputWindow *oldest = reader->window;
    for (int i = 0; i < CORNU__WINDOWS; i++) {
        CornuInputWindow *window = &reader->window[i];
        if (window->used && window->file == file) return window;
        if (window->used < oldest->used) oldest = window;
    }
    oldest->size = 0;
    oldest->file = file;
    oldest->at = oldest->next = -1;
    return oldest;
}

static CornuStatus fill(CornuReader *reader, CornuInputWindow *window, int64_t at, size_t size)
{
    const int64_t left = cornu__inputs_size(reader->inputs, window->file) - at;
    const bool    follows = window->next >= 0 && at >= window->next && at - window->next <= NEAR;
    size_t        wanted = size;
    if (follows && wanted < AHEAD) wanted = left < AHEAD ? (size_t)left : AHEAD;
    window->size = 0;
    if (wanted > window->space) {
        cornu__release(window->bytes);
        window->space = 0;
        window->bytes = cornu__allocate(wanted, 1);
        if (!window->bytes) return CORNU_ERR_MEMORY;
        window->space = wanted;
    }
    CORNU__TRY(cornu__inputs_read(reader->inputs, window->file, at, window->bytes, wanted));
    window->at = at;
    window->size = wanted;
    return CORNU_OK;
}

CornuStatus cornu__reader_get(CornuReader *reader, int file, int64_t at, size_t size,
                              const unsigned char **bytes)
{
    CornuInputWindow *window = window_of(reader, file);
    window->used = ++reader->requests;
    if (size == 0) {
        *bytes = (const unsigned char *)"";
        return CORNU_OK;
    }
    if (at < window->at || size > window->size || at - window->at > (int64_t)(window->size - size))
        CORNU__TRY(fill(reader, window, at, size));
    window->next = at + (int64_t)size;
    *bytes = window->bytes + (at - window->at);
    return CORNU_OK;
}

CornuStatus cornu__reader_copy(CornuReader *reader, int file, int64_t at, size_t size, void *to)
{
    const unsigned char *bytes;
    if (size >= AHEAD) return cornu__inputs_read(reader->inputs, file, at, to, size);
    CORNU__TRY(cornu__reader_get(reader, file, at, size, &bytes));
    memcpy(to, bytes, size);
    return CORNU_OK;
}

void cornu__reader_close(CornuReader *reader)
{
    for (int i = 0; i < CORNU__WINDOWS; i++) cornu__release(reader->window[i].bytes);
    *reader = (CornuReader){ .inputs = reader->inputs };
}

CornuReader *cornu__reader_create(CornuInputs *inputs)
{
    CornuReader *reader = cornu__allocate(1, sizeof *reader);
    if (reader) reader->inputs = inputs;
    return reader;
}

void cornu__reader_free(CornuReader *reader)
{
    if (reader) cornu__reader_close(reader);
    cornu__release(reader);
}
