/* Which files make a sample, and where they are. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "../../device/memory_internal.h"
#include "../../device/status_internal.h"
#include "tar_internal.h"

typedef struct {
    CornuTar      *tar;
    CornuReader    reader;
    CornuTarMember member;
    int            file;
    int64_t        count, space;           /* of all samples so far */
    char           key[CORNU__TAR_NAME];   /* of the last one */
    bool           begun;                  /* it is of this file */
} Scan;

static CornuStatus add_sample(Scan *scan)
{
    CornuTar    *tar = scan->tar;
    const size_t rows = (size_t)tar->table.count;
    if (scan->count == scan->space) {
        const int64_t  space = scan->space ? 2 * scan->space : 1024;
        int64_t       *start = cornu__allocate((size_t)space, sizeof *start);
        CornuTarPlace *places = cornu__allocate((size_t)space * rows, sizeof *places);
        if (start && places && scan->count) {
            memcpy(start, tar->start, (size_t)scan->count * sizeof *start);
            memcpy(places, tar->places, (size_t)scan->count * rows * sizeof *places);
        }
        cornu__release(tar->start);
        cornu__release(tar->places);
        tar->start = start;
        tar->places = places;
        if (!start || !places) return CORNU_ERR_MEMORY;
        scan->space = space;
    }
    tar->start[scan->count] = scan->member.header;
    for (size_t i = 0; i < rows; i++)
        tar->places[(size_t)scan->count * rows + i] = (CornuTarPlace){ -1, 0 };
    scan->count++;
    return CORNU_OK;
}

/* Whether an extension is one of "jpg;png", or the "json" of "json:field". */
static bool is_listed(const char *list, const char *extension)
{
    const size_t length = strlen(extension);
    for (;;) {
        const size_t here = strcspn(list, ";:");
        if (here == length && !strncasecmp(list, extension, here)) return true;
        if (list[here] != ';') return false;
        list += here + 1;
    }
}

/* Where the extension begins: after the first dot of the last part of the name, which is not its
 * first character. NULL: there is none. */
static char *extension_of(char *name)
{
    char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name, *dot = strchr(base, '.');
    return dot && dot > base ? dot + 1 : NULL;
}

static bool is_passed_over(const char *name)
{
    const size_t length = strlen(name);
    return length >= 4 && !strchr(name, '/') && !memcmp(name, "__", 2) &&
           !memcmp(name + length - 2, "__", 2);
}

/* Adds the scan's member, a file, to its sample. */
static CornuStatus add_file(Scan *scan)
{
    CornuTar *tar = scan->tar;
    char     *name = scan->member.name, *extension = extension_of(name);
    if (is_passed_over(name) || !extension) return CORNU_OK;
    extension[-1] = '\0';   /* the key is left */
    const bool same = scan->begun && !strcmp(scan->key, name);
    if (!same) {
        CORNU__TRY(add_sample(scan));
        memcpy(scan->key, name, strlen(name) + 1);
        scan->begun = true;
    }
    CornuTarPlace *places = tar->places + (scan->count - 1) * tar->table.count;
    for (int i = 0; i < tar->table.count; i++) {
        if (!is_listed(tar->table.rows[i].feature.name, extension)) continue;
        if (places[i].at >= 0)
            return cornu__fail(CORNU_ERR_FORMAT, "sample \"%.80s\" has two files of \"%.40s\"",
                               name, tar->table.rows[i].feature.name);
        places[i] = (CornuTarPlace){ scan->member.at, scan->member.size };
    }
    return CORNU_OK;
}

static CornuStatus scan_file(Scan *scan)
{
    CornuTar *tar = scan->tar;
    bool      end = false;
    int64_t   members = 0;
    tar->first[scan->file] = scan->count;
    scan->begun = false;
    for (int64_t at = 0; !end; members++) {
        CornuStatus status = cornu__tar_member(&scan->reader, scan->file, at, &scan->member, &end);
        if (!status && !end && scan->member.is_file) status = add_file(scan);
        if (status) {
            char what[CORNU_MESSAGE_SIZE / 2];
            snprintf(what, sizeof what, "%.400s: member %lld at byte %lld",
                     cornu__inputs_path(tar->inputs, scan->file), (long long)members,
                     (long long)at);
            return cornu__fail_prefix(status, what);
        }
        at = scan->member.next;
    }
    return CORNU_OK;
}

CornuStatus cornu__tar_index(CornuTar *tar)
{
    const int files = cornu__inputs_count(tar->inputs);
    Scan     *scan = cornu__allocate(1, sizeof *scan);
    tar->first = cornu__allocate((size_t)files + 1, sizeof *tar->first);
    CornuStatus status = tar->first && scan ? CORNU_OK : CORNU_ERR_MEMORY;
    if (scan) {
        scan->tar = tar;
        scan->reader.inputs = tar->inputs;
    }
    for (int file = 0; file < files && !status; file++) {
        scan->file = file;
        status = scan_file(scan);
    }
    if (!status) tar->first[files] = scan->count;
    if (scan) cornu__reader_close(&scan->reader);
    cornu__release(scan);
    return status;
}
