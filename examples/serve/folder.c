#include "folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "settings.h"

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
    static const char *const suffixes[] = { ".keras", ".safetensors", ".onnx", ".h5" };
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

/* Takes the path. The file of a folder counts more than one that is named after the version. */
static bool add(FolderVersions *to, int64_t number, char *path, bool from_folder)
{
    struct stat identity;
    if (!path) return false;
    if (stat(path, &identity) || !S_ISREG(identity.st_mode)) {
        free(path);
        return true;
    }
    int at = to->count;
    while (at > 0 && to->versions[at - 1].number >= number) at--;
    if (at < to->count && to->versions[at].number == number) {
        char *other = to->versions[at].path;
        if (from_folder) to->versions[at] = (FolderVersion){ number, path, identity };
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
    to->versions[at] = (FolderVersion){ number, path, identity };
    return true;
}

/* The model in the folder of a version; an empty string if there is none. */
static char *find_model(const char *folder)
{
    DIR  *directory = opendir(folder);
    char  best[256] = "";
    if (!directory) return strdup("");
    for (struct dirent *entry; (entry = readdir(directory));) {
        const bool preferred = !strncmp(entry->d_name, "model.", 6);
        const bool had = !strncmp(best, "model.", 6);
        if (!is_model(entry->d_name) || preferred < had) continue;
        if (preferred > had || !*best || strcmp(entry->d_name, best) < 0)
            snprintf(best, sizeof best, "%s", entry->d_name);
    }
    closedir(directory);
    return *best ? join(folder, best) : strdup("");
}

bool folder_list(const char *path, FolderVersions *to, Problem *problem)
{
    *to = (FolderVersions){ .count = 0 };
    DIR *directory = opendir(path);
    bool good = directory || errno != ENOTDIR || add(to, 1, strdup(path), true);
    for (struct dirent *entry; good && directory && (entry = readdir(directory));) {
        const char   *end;
        const int64_t number = number_of(entry->d_name, &end);
        if (number < 0) continue;
        if (is_model(entry->d_name) && !strchr(end + 1, '.')) {
            good = add(to, number, join(path, entry->d_name), false);
        } else if (!*end) {
            char *folder = join(path, entry->d_name);
            good = folder && add(to, number, find_model(folder), true);
            free(folder);
        }
    }
    if (directory) closedir(directory);
    if (good) return true;
    folder_free(to);
    return problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the versions in %s", path);
}

bool folder_models(const char *path, bool (*visit)(void *context, const char *name), void *context,
                   Problem *problem)
{
    DIR *directory = opendir(path);
    if (!directory)
        return problem_set(problem, CODE_NOT_FOUND, "cannot read the folder %s: %s", path,
                           strerror(errno));
    bool good = true;
    for (struct dirent *entry; good && (entry = readdir(directory));) {
        char       *folder = join(path, entry->d_name);
        struct stat what;
        good = folder;
        if (good && *entry->d_name != '.' && settings_name(entry->d_name, '\0') &&
            !stat(folder, &what) && S_ISDIR(what.st_mode))
            good = visit(context, entry->d_name);
        free(folder);
    }
    closedir(directory);
    return good || problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the models in %s",
                               path);
}
