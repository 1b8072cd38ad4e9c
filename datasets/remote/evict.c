#define _DEFAULT_SOURCE    /* flock */

#include "evict_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../device/memory_internal.h"
#include "../../device/open.h"

enum { PATH = 4096 };

typedef struct {
    char   *path;      /* owned */
    int64_t used;      /* nanoseconds of the clock */
    int64_t bytes;
} Part;

typedef struct {
    Part   *part;      /* owned */
    int     count, space;
    int64_t bytes;
} Parts;

static CornuStatus add(Parts *parts, const char *path)
{
    struct stat about;
    if (stat(path, &about) || !S_ISREG(about.st_mode)) return CORNU_OK;
    CORNU__TRY(cornu__reserve(&parts->part, &parts->space, parts->count, 1, sizeof *parts->part));
    Part *part = &parts->part[parts->count];
    *part = (Part){ cornu__copy_text(path),
                    (int64_t)about.st_mtim.tv_sec * 1000000000 + about.st_mtim.tv_nsec,
                    about.st_size };
    if (!part->path) return CORNU_ERR_MEMORY;
    parts->count++;
    parts->bytes += about.st_size;
    return CORNU_OK;
}

/* Whether a name is one that parts_internal.h describes, of a folder or of a file in it: others in
 * a folder that CORNU_CACHE names are not ours. */
static bool is_ours(const char *name, bool is_folder)
{
    static const char digits[] = "0123456789", hex[] = "0123456789abcdef";
    const size_t      length = strspn(name, is_folder ? hex : digits);
    if (is_folder) return length == 32 && !name[length];
    return length >= 8 && (!name[length] || !strcmp(name + length, ".new"));
}

/* The files of a folder, or those of the folders in it, `depth` 1. */
static CornuStatus list(Parts *parts, const char *folder, int depth)
{
    CornuStatus status = CORNU_OK;
    DIR        *directory = opendir(folder);
    for (struct dirent *entry; directory && !status && (entry = readdir(directory));) {
        char path[PATH];
        if (!is_ours(entry->d_name, depth > 0) ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        status = depth ? list(parts, path, depth - 1) : add(parts, path);
    }
    if (directory) closedir(directory);
    return status;
}

static int by_use(const void *a, const void *b)
{
    const Part *one = a, *other = b;
    return (one->used > other->used) - (one->used < other->used);
}

/* Unless it is being written: it is locked until it is gone, so that nobody begins meanwhile. */
static bool remove_part(const char *path)
{
    char        folder[PATH];
    const char *slash = strrchr(path, '/');
    const int   descriptor = cornu__open(path, O_RDONLY, 0);
    const bool  gone = descriptor >= 0 && flock(descriptor, LOCK_EX | LOCK_NB) == 0 &&
                       unlink(path) == 0;
    if (descriptor >= 0) close(descriptor);
    if (!gone || !slash) return gone;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    rmdir(folder);   /* fails unless it is empty */
    return true;
}

void cornu__evict(const char *folder, int64_t limit, const char *newest)
{
    char         path[PATH];
    Parts        parts = { .part = NULL };
    CornuFailure before;
    if (snprintf(path, sizeof path, "%s/.lock", folder) >= (int)sizeof path) return;
    const int lock = cornu__open(path, O_RDWR | O_CREAT, 0666);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
        cornu__error_keep(&before);
        if (list(&parts, folder, 1)) cornu__error_restore(&before);
        if (parts.count) qsort(parts.part, (size_t)parts.count, sizeof *parts.part, by_use);
        for (int i = 0; i < parts.count && parts.bytes > limit; i++) {
            const Part *part = &parts.part[i];
            if (strcmp(part->path, newest) && remove_part(part->path)) parts.bytes -= part->bytes;
        }
    }
    if (lock >= 0) close(lock);
    for (int i = 0; i < parts.count; i++) cornu__release(parts.part[i].path);
    cornu__release(parts.part);
}
