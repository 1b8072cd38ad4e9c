/*
 * A file is a header of four lines (format, key, SHA-256 of the bytes, their number), then the
 * bytes. It is written under a temporary name, locked as long as its writer lives, and renamed. It
 * is not synced: what a crash of the machine damages is found by the checksum.
 */
#define _DEFAULT_SOURCE    /* flock, futimens */

#include "cache_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../system/environment_internal.h"
#include "../log_internal.h"
#include "../memory_internal.h"
#include "../open.h"

static const char format[] = "cornu pjrt executable 1";
static const char temporary_prefix[] = ".new-";

enum { KEY = CORNU__SHA256_TEXT - 1, HEADER = sizeof format + 2 * CORNU__SHA256_TEXT + 21 };

static const int64_t most_bytes = INT64_C(1) << 30;

/* ---- The folder ---- */

/* False if nothing is to be kept. */
static bool find_folder(char path[CORNU_PJRT_PATH])
{
    const char *chosen = cornu__environment("CORNU_PJRT_CACHE");
    if (chosen && strcmp(chosen, "off") == 0) return false;
    const int length = chosen ? snprintf(path, CORNU_PJRT_PATH, "%s", chosen)
                              : cornu__cache_path(path, CORNU_PJRT_PATH, "/pjrt-compiled");
    if (length >= 0 && length < CORNU_PJRT_PATH) return true;
    cornu__log(CORNU_LOG_DEBUG, "pjrt: compiled programs are not kept: %s",
               length < 0 ? "neither XDG_CACHE_HOME nor HOME names a folder"
                          : "the path of the cache is too long");
    return false;
}

/* Why a file or folder of the cache is not to be trusted; NULL if it is. */
static const char *distrust(const struct stat *info)
{
    return info->st_uid != geteuid()              ? "belongs to another user"
         : info->st_mode & (S_IWGRP | S_IWOTH)    ? "may be written by other users"
                                                  : NULL;
}

void cornu__pjrt_folder_open(CornuPjrtFolder *folder)
{
    struct stat info;
    *folder = (CornuPjrtFolder){ .descriptor = -1, .most_bytes = most_bytes };
    if (!find_folder(folder->path)) return;
    if (cornu__make_folders_above(folder->path) == CORNU_OK) (void)!mkdir(folder->path, 0700);
    folder->descriptor = cornu__open(folder->path, O_RDONLY | O_DIRECTORY, 0);
    if (folder->descriptor < 0 || fstat(folder->descriptor, &info) != 0) {
        cornu__log(CORNU_LOG_DEBUG, "pjrt: compiled programs are not kept: %s: %s", folder->path,
                   strerror(errno));
        cornu__pjrt_folder_close(folder);
    } else if (distrust(&info)) {
        cornu__log(CORNU_LOG_WARNING, "pjrt: compiled programs are not kept: %s %s; set "
                   "CORNU_PJRT_CACHE to a folder of your own, or to off", folder->path,
                   distrust(&info));
        cornu__pjrt_folder_close(folder);
    }
}

void cornu__pjrt_folder_close(CornuPjrtFolder *folder)
{
    if (folder->descriptor >= 0) close(folder->descriptor);
    folder->descriptor = -1;
}

static int open_in(const CornuPjrtFolder *folder, const char *name, int flags)
{
    return cornu__above_standard(openat(folder->descriptor, name,
                                        flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
}

void cornu__pjrt_folder_remove(const CornuPjrtFolder *folder, const char key[CORNU__SHA256_TEXT])
{
    if (folder->descriptor >= 0) unlinkat(folder->descriptor, key, 0);
}

/* ---- Reading ---- */

static void make_header(char header[HEADER + 1], const char *key, const void *bytes, size_t size)
{
    CornuSha256 sum;
    char        text[CORNU__SHA256_TEXT];
    cornu__sha256_begin(&sum);
    cornu__sha256_add(&sum, bytes, size);
    cornu__sha256_end(&sum, text);
    snprintf(header, HEADER + 1, "%s\n%s\n%s\n%020llu\n", format, key, text,
             (unsigned long long)size);
}

static bool read_all(int file, void *to, size_t size)
{
    for (size_t at = 0; at < size; ) {
        const ssize_t got = read(file, (char *)to + at, size - at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        at += (size_t)got;
    }
    return true;
}

/* NULL, and *fault, if it is not what was written under the key. */
static void *read_file(const CornuPjrtFolder *folder, int file, const char *key, size_t *size,
                       const char **fault)
{
    struct stat info;
    char        header[HEADER], expected[HEADER + 1];
    if (fstat(file, &info) != 0) return *fault = "cannot be read", NULL;
    *fault = !S_ISREG(info.st_mode) ? "is not a file" : distrust(&info);
    if (*fault) return NULL;
    if (info.st_size <= HEADER) return *fault = "is truncated", NULL;
    if (info.st_size > folder->most_bytes) return *fault = "is too large", NULL;
    *size = (size_t)info.st_size - HEADER;
    void *bytes = cornu__allocate(*size, 1);
    if (!bytes) return *fault = "does not fit into memory", NULL;
    if (!read_all(file, header, HEADER) || !read_all(file, bytes, *size)) {
        *fault = "cannot be read";
    } else {
        make_header(expected, key, bytes, *size);
        if (memcmp(header, expected, HEADER) == 0) return bytes;
        *fault = "is damaged";
    }
    cornu__release(bytes);
    return NULL;
}

void *cornu__pjrt_folder_read(const CornuPjrtFolder *folder, const char key[CORNU__SHA256_TEXT],
                              size_t *size)
{
    const char *fault;
    const int   file = folder->descriptor < 0 ? -1 : open_in(folder, key, O_RDONLY);
    *size = 0;
    if (file < 0) return NULL;
    void *bytes = read_file(folder, file, key, size, &fault);
    if (bytes) {
        futimens(file, NULL);   /* now; it is only an order for removing them */
    } else {
        cornu__log(CORNU_LOG_WARNING, "pjrt: %s/%s %s: it is removed, and its program compiled "
                   "again", folder->path, key, fault);
        cornu__pjrt_folder_remove(folder, key);
    }
    close(file);
    return bytes;
}

/* ---- Removing ---- */

typedef struct {
    char            name[KEY + 1];
    struct timespec used;
    int64_t         bytes;
} File;

static int by_use(const void *left, const void *right)
{
    const File *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    return (a->used.tv_nsec > b->used.tv_nsec) - (a->used.tv_nsec < b->used.tv_nsec);
}

/* A file that is being written, unless its writer is dead. */
static void remove_leftover(const CornuPjrtFolder *folder, const char *name)
{
    const int file = open_in(folder, name, O_RDONLY);
    if (file >= 0 && flock(file, LOCK_EX | LOCK_NB) == 0) unlinkat(folder->descriptor, name, 0);
    if (file >= 0) close(file);
}

static bool is_key(const char *name)
{
    return strlen(name) == KEY && strspn(name, "0123456789abcdef") == KEY;
}

/* Removes leftovers, and the least recently used files until there is room for `extra` bytes. */
static void evict_files(const CornuPjrtFolder *folder, int64_t extra)
{
    const int list = open_in(folder, ".", O_RDONLY | O_DIRECTORY);
    DIR      *directory = list < 0 ? NULL : fdopendir(list);
    File     *files = NULL;
    int       count = 0, space = 0;
    int64_t   total = extra;
    if (list >= 0 && !directory) close(list);
    for (const struct dirent *entry; directory && (entry = readdir(directory)); ) {
        struct stat info;
        if (strncmp(entry->d_name, temporary_prefix, sizeof temporary_prefix - 1) == 0)
            remove_leftover(folder, entry->d_name);
        if (!is_key(entry->d_name) ||
            fstatat(folder->descriptor, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            cornu__reserve(&files, &space, count, 1, sizeof *files) != CORNU_OK)
            continue;
        memcpy(files[count].name, entry->d_name, sizeof files[count].name);
        files[count].used = info.st_mtim;
        files[count].bytes = info.st_size;
        total += files[count++].bytes;
    }
    if (directory) closedir(directory);
    if (count) qsort(files, (size_t)count, sizeof *files, by_use);
    for (int i = 0; i < count && total > folder->most_bytes; i++) {
        cornu__log(CORNU_LOG_DEBUG, "pjrt: the cache is full: %s is removed", files[i].name);
        unlinkat(folder->descriptor, files[i].name, 0);
        total -= files[i].bytes;
    }
    cornu__release(files);
}

/* ---- Writing ---- */

/* Creates and locks a temporary file; -1 with errno on failure. */
static int open_temporary(const CornuPjrtFolder *folder, char name[40])
{
    for (int n = 0; n < 100; n++) {
        struct stat info;
        snprintf(name, 40, "%s%ld-%d", temporary_prefix, (long)getpid(), n);
        const int file = open_in(folder, name, O_WRONLY | O_CREAT | O_EXCL);
        if (file < 0 && errno == EEXIST) continue;
        if (file < 0) return -1;
        fchmod(file, 0600);
        flock(file, LOCK_EX);
        /* Another process may have removed it as a leftover before it was locked. */
        if (fstat(file, &info) == 0 && info.st_nlink > 0) return file;
        close(file);
    }
    return -1;
}

static bool write_all(int file, const void *from, size_t size)
{
    for (size_t at = 0; at < size; ) {
        const ssize_t put = write(file, (const char *)from + at, size - at);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        at += (size_t)put;
    }
    return true;
}

void cornu__pjrt_folder_write(const CornuPjrtFolder *folder, const char key[CORNU__SHA256_TEXT],
                              const void *bytes, size_t size)
{
    char          header[HEADER + 1], name[40];
    const int64_t whole = (int64_t)size + HEADER;
    if (folder->descriptor < 0 || size == 0 || whole > folder->most_bytes) return;
    evict_files(folder, whole);
    make_header(header, key, bytes, size);
    const int file = open_temporary(folder, name);
    if (file >= 0 && write_all(file, header, HEADER) && write_all(file, bytes, size) &&
        renameat(folder->descriptor, name, folder->descriptor, key) == 0) {
        cornu__log(CORNU_LOG_INFO, "pjrt: wrote %s/%s: %zu bytes", folder->path, key, size);
    } else {
        cornu__log(CORNU_LOG_DEBUG, "pjrt: a compiled program is not kept: %s: %s", folder->path,
                   strerror(errno));
        if (file >= 0) unlinkat(folder->descriptor, name, 0);
    }
    if (file >= 0) close(file);
}
