#define _DEFAULT_SOURCE    /* flock */

#include "parts_internal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "../../device/files/file_internal.h"
#include "../../device/hash/sha256_internal.h"
#include "../../device/memory_internal.h"
#include "../../device/open.h"
#include "../../device/system/environment_internal.h"
#include "evict_internal.h"

enum { TAIL = 12, PATH = 4096 };

/* ---- The folder ---- */

/* "500M", "20G", or bytes. */
static CornuStatus read_limit(int64_t *limit)
{
    static const char units[] = "KMGT";
    const char *text = cornu__environment("CORNU_CACHE_SIZE");
    char       *end = NULL;
    *limit = INT64_C(10) << 30;
    if (!text) return CORNU_OK;
    errno = 0;
    const double number = isdigit((unsigned char)*text) ? strtod(text, &end) : -1.0;
    const char  *unit = end && *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    double       bytes = number;
    for (long i = unit ? unit - units : -1; i >= 0; i--) bytes *= 1024.0;
    if (number >= 0.0 && !errno && !end[unit != NULL] && bytes >= 1 << 20 && bytes < 1e18) {
        *limit = (int64_t)bytes;
        return CORNU_OK;
    }
    return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_CACHE_SIZE is \"%.40s\", expected at least 1M, "
                       "as 500M or 20G", text);
}

/* Parts are as large as requests are worth it, and so small that those which are being read and
 * fetched at a time are a small part of what there may be. */
static int64_t part_size(int64_t limit)
{
    enum { LARGEST = 1 << 23, SMALLEST = 1 << 14, SHARE = 64 };
    int64_t size = LARGEST;
    while (size > SMALLEST && size > limit / SHARE) size /= 2;
    return size;
}

CornuStatus cornu__cache_find(CornuCache *parts)
{
    char        path[PATH];
    const char *given = cornu__environment("CORNU_CACHE");
    const int   length = given ? snprintf(path, sizeof path, "%s", given)
                               : cornu__cache_path(path, sizeof path, "/remote");
    *parts = (CornuCache){ .folder = NULL };
    CORNU__TRY(read_limit(&parts->limit));
    parts->size = part_size(parts->limit);
    if (length < 0)
        return cornu__fail(CORNU_ERR_FILE, "there is no folder for what is fetched: neither "
                           "CORNU_CACHE nor HOME is set");
    if (length > PATH - 100)
        return cornu__fail(CORNU_ERR_FILE, "the path of the cache has more than %d bytes",
                           PATH - 100);
    parts->folder = cornu__copy_text(path);
    return parts->folder ? CORNU_OK : CORNU_ERR_MEMORY;
}

CornuStatus cornu__cache_open(CornuCache *parts, const char *key)
{
    char        path[PATH], name[CORNU__SHA256_TEXT];
    CornuSha256 sum;
    cornu__sha256_begin(&sum);
    cornu__sha256_add(&sum, key, strlen(key));
    cornu__sha256_add(&sum, &parts->size, sizeof parts->size);
    cornu__sha256_end(&sum, name);
    name[32] = '\0';
    parts->name = cornu__copy_text(name);
    if (!parts->name) return CORNU_ERR_MEMORY;
    snprintf(path, sizeof path, "%s/%s/part", parts->folder, name);
    return cornu__make_folders_above(path);
}

void cornu__cache_close(CornuCache *parts)
{
    cornu__release(parts->folder);
    cornu__release(parts->name);
    *parts = (CornuCache){ .folder = NULL };
}

static void path_of(const CornuCache *parts, int64_t part, const char *suffix, char path[PATH])
{
    snprintf(path, PATH, "%s/%s/%08lld%s", parts->folder, parts->name, (long long)part, suffix);
}

static CornuStatus cannot(const CornuCache *parts, const char *what)
{
    return cornu__fail(CORNU_ERR_FILE, "the cache, %s, cannot be %s: %s", parts->folder, what,
                       strerror(errno));
}

/* ---- Reading ---- */

static bool read_all(int descriptor, void *to, size_t size, int64_t at)
{
    for (char *next = to; size > 0;) {
        const ssize_t got = pread(descriptor, next, size, (off_t)at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        next += got;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

/* Whether a part has so many bytes, and, if they are checked, their checksum. */
static bool is_sound(int descriptor, int64_t bytes, bool check)
{
    enum { BLOCK = 1 << 16 };
    unsigned char  tail[TAIL], block[BLOCK];
    unsigned long  sum = crc32(0, NULL, 0);
    struct stat    about;
    if (fstat(descriptor, &about) || about.st_size != bytes + TAIL) return false;
    if (!check) return true;
    for (int64_t at = 0, n; at < bytes; at += n) {
        n = bytes - at < BLOCK ? bytes - at : BLOCK;
        if (!read_all(descriptor, block, (size_t)n, at)) return false;
        sum = crc32(sum, block, (uInt)n);
    }
    return read_all(descriptor, tail, TAIL, bytes) &&
           (int64_t)cornu__little_endian(tail, 8) == bytes &&
           cornu__little_endian(tail + 8, 4) == sum;
}

CornuStatus cornu__cache_read(const CornuCache *parts, int64_t part, int64_t bytes, bool check,
                              int64_t at, void *to, size_t size, bool *there)
{
    char path[PATH];
    path_of(parts, part, "", path);
    const int descriptor = cornu__open(path, O_RDONLY, 0);
    *there = false;
    if (descriptor < 0) return errno == ENOENT ? CORNU_OK : cannot(parts, "read");
    *there = is_sound(descriptor, bytes, check) && read_all(descriptor, to, size, at);
    CornuStatus status = CORNU_OK;
    if (*there) futimens(descriptor, NULL);   /* now: what was used last is removed last */
    else if (unlink(path) && errno != ENOENT) status = cannot(parts, "mended");
    close(descriptor);
    return status;
}

bool cornu__cache_has(const CornuCache *parts, int64_t part)
{
    char path[PATH];
    path_of(parts, part, "", path);
    return access(path, F_OK) == 0;
}

/* ---- Writing ---- */

/* Opens and locks PART.new, which is no link to a file elsewhere; *descriptor is -1 if the part is
 * there, or another one has it. Another one may have finished or removed the file while this
 * waited: then it is no longer the one of that name, and is opened anew. */
static CornuStatus open_new(const CornuCache *parts, int64_t part, bool wait, int *descriptor)
{
    char        path[PATH], done[PATH];
    struct stat one, other;
    path_of(parts, part, ".new", path);
    path_of(parts, part, "", done);
    for (;;) {
        *descriptor = -1;
        if (access(done, F_OK) == 0) return CORNU_OK;
        const int opened = cornu__open(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
        if (opened < 0 && errno == ENOENT) {   /* the folder was empty, and was removed */
            CORNU__TRY(cornu__make_folders_above(path));
            continue;
        }
        if (opened < 0) return cannot(parts, "written");
        while (flock(opened, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
            if (errno == EINTR) continue;
            const bool other_has_it = errno == EWOULDBLOCK;
            close(opened);
            return other_has_it ? CORNU_OK : cannot(parts, "locked");
        }
        if (fstat(opened, &one) == 0 && stat(path, &other) == 0 && one.st_ino == other.st_ino &&
            access(done, F_OK) != 0) {
            *descriptor = opened;
            return CORNU_OK;
        }
        close(opened);
    }
}

CornuStatus cornu__cached_begin(CornuCachedPart *new_part, const CornuCache *parts, int64_t part,
                              bool wait)
{
    *new_part = (CornuCachedPart){ parts, part, -1, 0, crc32(0, NULL, 0) };
    CORNU__TRY(open_new(parts, part, wait, &new_part->descriptor));
    /* What a program left that was killed is not known to be whole. */
    if (new_part->descriptor < 0 || ftruncate(new_part->descriptor, 0) == 0) return CORNU_OK;
    const CornuStatus status = cannot(parts, "written");
    cornu__cached_abandon(new_part);
    return status;
}

CornuStatus cornu__cached_add(CornuCachedPart *new_part, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;
    new_part->sum = crc32(new_part->sum, from, (uInt)size);
    new_part->written += (int64_t)size;
    while (size > 0) {
        const ssize_t put = write(new_part->descriptor, from, size);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return cannot(new_part->parts, "written");
        from += put;
        size -= (size_t)put;
    }
    return CORNU_OK;
}

CornuStatus cornu__cached_commit(CornuCachedPart *new_part)
{
    const CornuCache *parts = new_part->parts;
    const int64_t     written = new_part->written;
    unsigned char     tail[TAIL];
    char              path[PATH], done[PATH];
    for (int i = 0; i < 8; i++) tail[i] = (unsigned char)((uint64_t)written >> 8 * i);
    for (int i = 0; i < 4; i++) tail[8 + i] = (unsigned char)(new_part->sum >> 8 * i);
    CornuStatus status = cornu__cached_add(new_part, tail, TAIL);
    path_of(parts, new_part->part, ".new", path);
    path_of(parts, new_part->part, "", done);
    if (!status && rename(path, done) != 0) status = cannot(parts, "written");
    if (!status) close(new_part->descriptor), new_part->descriptor = -1;
    else cornu__cached_abandon(new_part);
    if (!status) cornu__evict(parts->folder, parts->limit, done);
    return status;
}

void cornu__cached_abandon(CornuCachedPart *new_part)
{
    char path[PATH];
    if (new_part->descriptor < 0) return;
    path_of(new_part->parts, new_part->part, ".new", path);
    unlink(path);
    close(new_part->descriptor);
    new_part->descriptor = -1;
}
