#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../settings.h"

void folder_free(FolderVersions *versions)
{
    for (int i = 0; i < versions->count; i++) free(versions->versions[i].path);
    free(versions->versions);
    *versions = (FolderVersions){ .count = 0 };
}

bool folder_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* Whether cornu_model_load knows the suffix. */
static bool is_model(const char *name)
{
    static const char *const suffixes[] = { ".keras", ".safetensors", ".onnx", ".h5",
                                            ".hdf5", ".tflite" };
    const size_t             length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        const size_t suffix = strlen(suffixes[i]);
        if (length > suffix && !strcmp(name + length - suffix, suffixes[i]) && *name != '.')
            return true;
    }
    return false;
}

static char *join(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char        *path = malloc(size);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

/* The version at the start of a name, up to *end; -1 if there is none, or a zero before it. */
static int64_t number_of(const char *name, const char **end)
{
    const size_t digits = strspn(name, "0123456789");
    *end = name + digits;
    return digits && digits < 19 && (*name != '0' || digits == 1) ? strtoll(name, NULL, 10) : -1;
}

/* Whether that says that there is nothing, and not only that nothing can be seen of it. */
static bool is_absence(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

/* Takes the path, NULL if that is not known. The file of a folder counts more than one that is
 * named after the version. */
static bool add(FolderVersions *to, int64_t number, char *path, int error, bool from_folder)
{
    FolderVersion version = { .number = number, .path = path, .error = error };
    if (!error && !path) return false;
    if (!error && stat(path, &version.identity)) version.error = errno;
    if (is_absence(version.error) || (!version.error && !S_ISREG(version.identity.st_mode))) {
        free(path);
        return true;
    }
    int at = to->count;
    while (at > 0 && to->versions[at - 1].number >= number) at--;
    if (at < to->count && to->versions[at].number == number) {
        char *other = to->versions[at].path;
        if (from_folder) {
            to->versions[at] = version;
            to->versions[at].path = path;   /* analysers do not see it in `version` */
        }
        free(from_folder ? other : path);
        return true;
    }
    if (to->count == to->space) {
        const int      space = 2 * to->space + 8;
        FolderVersion *versions = realloc(to->versions, (size_t)space * sizeof *versions);
        if (!versions) {
            free(path);
            return false;
        }
        to->versions = versions;
        to->space = space;
    }
    memmove(&to->versions[at + 1], &to->versions[at],
            (size_t)(to->count++ - at) * sizeof *to->versions);
    to->versions[at] = version;
    to->versions[at].path = path;
    return true;
}

/* The next entry; NULL at the end with *error 0, or else why there may be others. */
static struct dirent *next(DIR *directory, int *error)
{
    errno = 0;
    struct dirent *entry = readdir(directory);
    *error = entry ? 0 : errno;
    return entry;
}

/* The name of the model in the folder of a version, "" if there is none. An errno, or 0. */
static int find_model(const char *folder, char best[256])
{
    DIR *directory = opendir(folder);
    int  error = directory ? 0 : errno;
    *best = '\0';
    for (struct dirent *entry; directory && (entry = next(directory, &error));) {
        const bool preferred = !strncmp(entry->d_name, "model.", 6);
        const bool had = !strncmp(best, "model.", 6);
        if (!is_model(entry->d_name) || preferred < had) continue;
        if (preferred > had || !*best || strcmp(entry->d_name, best) < 0)
            snprintf(best, 256, "%s", entry->d_name);
    }
    if (directory) closedir(directory);
    return error;
}

/* The version in a folder. False when memory runs out. */
static bool add_folder(FolderVersions *to, int64_t number, char *folder)
{
    char      model[256];
    const int error = folder ? find_model(folder, model) : 0;
    bool      good = folder;
    if (error) good = add(to, number, NULL, error, true);
    else if (folder && *model) good = add(to, number, join(folder, model), 0, true);
    free(folder);
    return good;
}

bool folder_list(const char *path, FolderVersions *to, Problem *problem)
{
    *to = (FolderVersions){ .count = 0 };
    DIR *directory = opendir(path);
    int  error = directory ? 0 : errno;
    bool good = true;
    if (error == ENOTDIR) {
        good = add(to, 1, strdup(path), 0, true);
        error = good && !to->count ? ENOENT : to->count ? to->versions[0].error : 0;
    }
    for (struct dirent *entry; good && directory && (entry = next(directory, &error));) {
        const char   *end;
        const int64_t number = number_of(entry->d_name, &end);
        if (number < 0) continue;
        if (is_model(entry->d_name) && !strchr(end + 1, '.'))
            good = add(to, number, join(path, entry->d_name), 0, false);
        else if (!*end)
            good = add_folder(to, number, join(path, entry->d_name));
    }
    if (directory) closedir(directory);
    if (good && !error) return true;
    folder_free(to);
    if (!good)
        return problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the versions in %s",
                           path);
    return problem_set(problem, CODE_NOT_FOUND, "%s has no version that can be read: %s; expected "
                       "a model's file or a folder with VERSION/ or VERSION.SUFFIX", path,
                       strerror(error));
}

/* Whether an entry of the folder is a folder, or cannot be asked. */
static bool may_be_folder(const char *path, const char *name, bool *memory)
{
    char       *folder = join(path, name);
    struct stat what;
    *memory = folder;
    const int  error = folder && stat(folder, &what) ? errno : 0;
    const bool may = folder && (error ? !is_absence(error) : S_ISDIR(what.st_mode));
    free(folder);
    return may;
}

bool folder_models(const char *path, bool (*visit)(void *context, const char *name), void *context,
                   Problem *problem)
{
    DIR *directory = opendir(path);
    int  error = directory ? 0 : errno;
    bool good = true;
    for (struct dirent *entry; good && directory && (entry = next(directory, &error));)
        if (*entry->d_name != '.' && settings_name(entry->d_name, '\0') &&
            may_be_folder(path, entry->d_name, &good) && good)
            good = visit(context, entry->d_name);
    if (directory) closedir(directory);
    if (good && !error) return true;
    if (!good)
        return problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the models in %s",
                           path);
    return problem_set(problem, CODE_NOT_FOUND, "cannot read the folder %s: %s", path,
                       strerror(error));
}
