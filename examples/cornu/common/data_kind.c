/* What --data is: a set by a name, a folder, a file. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "data.h"

const char *const data_encodings[] = { "code-points", "alphabet", "bytes", NULL };

CornuTextEncoding data_encoding(const DataFlags *flags)
{
    const char *name = flags->encoding ? flags->encoding : data_encodings[0];
    return name[0] == 'a' ? CORNU_TEXT_ALPHABET
         : name[0] == 'b' ? CORNU_TEXT_BYTES : CORNU_TEXT_CODE_POINTS;
}

/* ---- What --data is ---- */

static const DataSet sets[] = {
    { "mnist", cornu_mnist_load_from },
    { "fashion-mnist", cornu_fashion_mnist_load_from },
    { "fashion_mnist", cornu_fashion_mnist_load_from },   /* as Keras writes it */
    { "shakespeare", cornu_shakespeare_load_from },
};
enum { SETS = sizeof sets / sizeof *sets };

const DataSet *data_set(const char *name)
{
    for (int i = 0; name && i < SETS; i++)
        if (!strcmp(name, sets[i].name)) return &sets[i];
    return NULL;
}

/* The name of an address ends before its query. */
static bool ends_with(const char *path, const char *suffix)
{
    const size_t length = strstr(path, "://") ? strcspn(path, "?") : strlen(path);
    const size_t tail = strlen(suffix);
    return length > tail && !strncasecmp(path + length - tail, suffix, tail);
}

/* Whether one of the sets lies in it. */
static bool has_sets(const char *folder)
{
    char        path[2 * CORNU_PATH_SIZE];
    struct stat about;
    for (int i = 0; i < SETS; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, sets[i].name);
        if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) return true;
    }
    return false;
}

/* Whether it has a folder that is not hidden. */
static bool has_folders(const char *folder)
{
    char           path[2 * CORNU_PATH_SIZE];
    struct stat    about;
    struct dirent *entry;
    bool           found = false;
    DIR           *open = opendir(folder);
    while (open && !found && (entry = readdir(open))) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        found = entry->d_name[0] != '.' && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    }
    if (open) closedir(open);
    return found;
}

DataKind data_kind(const char *what)
{
    struct stat about;
    if (data_set(what)) return DATA_SET;
    if (!strcmp(what, "synthetic")) return DATA_SYNTHETIC;
    const bool remote = strstr(what, "://");
    if (!remote && stat(what, &about)) return DATA_ABSENT;
    if (!remote && S_ISDIR(about.st_mode))
        return has_sets(what) ? DATA_SETS : has_folders(what) ? DATA_PICTURES : DATA_EMPTY;
    if (ends_with(what, ".csv")) return DATA_TABLE;
    if (ends_with(what, ".parquet")) return DATA_PARQUET;
    return ends_with(what, ".npz") || ends_with(what, ".npy") ? DATA_ARRAYS : DATA_TEXT;
}

bool data_is_published(const Options *options, const DataFlags *flags, bool text)
{
    const DataSet *set = data_set(options->data);
    const DataKind kind = options->data ? data_kind(options->data) : DATA_SETS;
    if (flags->x.count) return false;
    if (set) return text == (set->load == cornu_shakespeare_load_from);
    return kind == DATA_SYNTHETIC || kind == DATA_SETS || kind == DATA_EMPTY ||
           kind == DATA_ABSENT || (text && (kind == DATA_TEXT || kind == DATA_PICTURES));
}
