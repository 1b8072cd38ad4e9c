#include "file_list_internal.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "../../device/memory_internal.h"
#include "../../device/processes/processes_internal.h"
#include "../fetching/find.h"
#include "../remote/remote_internal.h"
#include "class_folder.h"

void cornu__file_list_free(CornuFileList *list)
{
    for (int i = 0; i < list->class_count; i++) cornu__release(list->classes[i]);
    for (int i = 0; i < list->count; i++) cornu__release(list->files[i].path);
    cornu__release(list->classes);
    cornu__release(list->files);
    *list = (CornuFileList){ 0 };
}

static CornuStatus join_path(char path[CORNU_PATH_SIZE], const char *folder, const char *name)
{
    if (snprintf(path, CORNU_PATH_SIZE, "%s/%s", folder, name) < CORNU_PATH_SIZE) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: paths below it are longer than %d bytes", folder,
                       CORNU_PATH_SIZE - 1);
}

/* Calls visit for every entry of a folder except "." and "..", in no particular order. */
typedef CornuStatus Visit(CornuFileList *list, const char *folder, const char *name,
                          const void *context);

static CornuStatus each(CornuFileList *list, const char *folder, Visit *visit,
                        const void *context)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return cornu__fail(CORNU_ERR_FILE, "%s: the folder cannot be read: %s", folder,
                           strerror(errno));
    CornuStatus status = CORNU_OK;
    for (struct dirent *entry; !status && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            status = visit(list, folder, entry->d_name, context);
    closedir(directory);
    return status;
}

/* ---- Classes ---- */

static CornuStatus add_class(CornuFileList *list, const char *name)
{
    if (list->class_count == CORNU_MAX_FOLDER_CLASSES)
        return cornu__fail(CORNU_ERR_DATA, "more than %d class folders", CORNU_MAX_FOLDER_CLASSES);
    return cornu__add_text(&list->classes, &list->class_space, &list->class_count, name);
}

static CornuStatus visit_class(CornuFileList *list, const char *folder, const char *name,
                               const void *context)
{
    (void)context;
    char        path[CORNU_PATH_SIZE];
    struct stat at;
    CORNU__TRY(join_path(path, folder, name));
    return name[0] != '.' && stat(path, &at) == 0 && S_ISDIR(at.st_mode) ? add_class(list, name)
                                                                         : CORNU_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Named classes must exist and be different. */
static CornuStatus add_named(CornuFileList *list, const char *directory,
                             const char *const *names)
{
    for (int i = 0; names[i]; i++) {
        char        path[CORNU_PATH_SIZE];
        struct stat at;
        CORNU__TRY(join_path(path, directory, names[i]));
        if (!names[i][0] || strchr(names[i], '/') || stat(path, &at) || !S_ISDIR(at.st_mode))
            return cornu__fail(CORNU_ERR_DATA, "%s: has no folder \"%s\", expected one for each of "
                               ".class_names", directory, names[i]);
        for (int k = 0; k < i; k++)
            if (!strcmp(names[k], names[i]))
                return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .class_names has \"%s\" twice",
                                   directory, names[i]);
        CORNU__TRY(add_class(list, names[i]));
    }
    return CORNU_OK;
}

/* ---- Files ---- */

typedef struct {
    const CornuFileKind *kind;
    int32_t              label;
    int                  depth;
    bool                 follow_links;
} Walk;

static bool ends_in(const char *name, const char *suffix)
{
    const size_t length = strlen(name), tail = strlen(suffix);
    return length > tail && strcasecmp(name + length - tail, suffix) == 0;
}

static CornuStatus add_file(CornuFileList *list, const char *path, const char *folder,
                            const Walk *walk)
{
    if (list->count == INT32_MAX)
        return cornu__fail(CORNU_ERR_DATA, "%s: more than %d %ss", folder, INT32_MAX,
                           walk->kind->name);
    CORNU__TRY(cornu__reserve(&list->files, &list->space, list->count, 1, sizeof *list->files));
    char *copy = cornu__copy_text(path);
    if (!copy) return CORNU_ERR_MEMORY;
    list->files[list->count++] = (CornuListedFile){ copy, (int)strlen(folder), walk->label };
    return CORNU_OK;
}

static bool is_of_kind(const CornuFileKind *kind, const char *name)
{
    for (const char *const *suffix = kind->suffixes; *suffix; suffix++)
        if (ends_in(name, *suffix)) return true;
    return false;
}

static CornuStatus visit_file(CornuFileList *list, const char *folder, const char *name,
                              const void *context)
{
    const Walk *walk = context;
    char        path[CORNU_PATH_SIZE];
    struct stat at, itself;
    CORNU__TRY(join_path(path, folder, name));
    const bool there = stat(path, &at) == 0;
    if (there && S_ISDIR(at.st_mode)) {
        const bool link = lstat(path, &itself) == 0 && S_ISLNK(itself.st_mode);
        if (link && !walk->follow_links) return CORNU_OK;
        if (walk->depth == CORNU_MAX_FOLDER_DEPTH)
            return cornu__fail(CORNU_ERR_DATA, "%s: folders are nested more than %d deep; do links "
                               "form a loop?", path, CORNU_MAX_FOLDER_DEPTH);
        Walk deeper = *walk;
        deeper.depth++;
        return each(list, path, visit_file, &deeper);
    }
    if (!is_of_kind(walk->kind, name)) return CORNU_OK;
    if (there && !S_ISREG(at.st_mode))
        return cornu__fail(CORNU_ERR_FORMAT, "%s: not a regular file", path);
    return add_file(list, path, folder, walk);
}

/* By folder, then by file name, both as strings, as Keras does. */
static int by_path(const void *a, const void *b)
{
    const CornuListedFile *one = a, *other = b;
    const int shorter = one->folder < other->folder ? one->folder : other->folder;
    int       order = memcmp(one->path, other->path, (size_t)shorter);
    if (!order) order = (one->folder > other->folder) - (one->folder < other->folder);
    return order ? order : strcmp(one->path + one->folder, other->path + other->folder);
}

/* Reads all headers, so that bad files are reported before training starts. One of several
 * processes opens no file but those of its rows, and reports a bad one when it reads it. */
static CornuStatus check_files(const CornuFileList *list, const CornuFileKind *kind,
                               void *settings, const char *directory)
{
    enum { NAMED = 3, TEXT = 800 };
    char   text[TEXT] = "";
    size_t used = 0;
    int    bad = 0;
    if (cornu_process_count(cornu__processes_current()) > 1) return CORNU_OK;
    for (int i = 0; i < list->count; i++) {
        if (kind->check(list->files[i].path, settings) == CORNU_OK) continue;
        if (bad++ < NAMED && used < TEXT)
            used += (size_t)snprintf(text + used, TEXT - used, "\n    %s",
                                     cornu_error_message());
    }
    if (!bad) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FORMAT, "%s: %d of %d %ss cannot be read%s:%s", directory, bad,
                       list->count, kind->name, bad > NAMED ? ", the first" : "", text);
}

/* Writes ".a, .b or .c". */
static void name_suffixes(const CornuFileKind *kind, char *text, size_t size)
{
    text[0] = '\0';
    for (const char *const *suffix = kind->suffixes; *suffix; suffix++) {
        const size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s", !used ? "" : suffix[1] ? ", " : " or ", *suffix);
    }
}

CornuStatus cornu__file_list(CornuFileList *list, const CornuFileKind *kind, void *settings,
                             const char *directory, const char *const *names, bool follow_links)
{
    char suffixes[100], shown[CORNU__SHOWN];
    if (cornu__is_remote(directory))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: folders of other machines are not listed; "
                           "pack its files into tar archives, which are read from there, or copy "
                           "it", cornu__inputs_name(directory, shown));
    if (names) {
        CORNU__TRY(add_named(list, directory, names));
    } else {
        CORNU__TRY(each(list, directory, visit_class, NULL));
        if (list->class_count)
            qsort(list->classes, (size_t)list->class_count, sizeof *list->classes, by_name);
    }
    if (!list->class_count)
        return cornu__fail(CORNU_ERR_DATA, "%s: has no folders, expected one for each class",
                           directory);
    for (int c = 0; c < list->class_count; c++) {
        char      path[CORNU_PATH_SIZE];
        const int first = list->count;
        CORNU__TRY(join_path(path, directory, list->classes[c]));
        CORNU__TRY(each(list, path, visit_file, &(Walk){ kind, c, 1, follow_links }));
        if (list->count > first)
            qsort(list->files + first, (size_t)(list->count - first), sizeof *list->files, by_path);
    }
    name_suffixes(kind, suffixes, sizeof suffixes);
    if (!list->count)
        return cornu__fail(CORNU_ERR_DATA, "%s: no %ss in its %d folders, expected %s", directory,
                           kind->name, list->class_count, suffixes);
    return check_files(list, kind, settings, directory);
}
