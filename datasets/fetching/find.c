/* Finding the files of a set in the data directory and the cache, and downloading missing ones. */
#include "find.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../device/system/environment_internal.h"
#include "../../device/log_internal.h"
#include "../../device/status_internal.h"
#include "download_internal.h"

/* Writes the path of the set's folder in a data directory; false if it is too long. */
static bool folder_in(char folder[CORNU_PATH_SIZE], const char *directory,
                      const CornuDataSource *source)
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') length--;
    return snprintf(folder, CORNU_PATH_SIZE, "%.*s/%s", (int)length, directory,
                    source->folder) < CORNU_PATH_SIZE;
}

bool cornu_data_path(const char *folder, const CornuDataFile *file,
                     char path[2 * CORNU_PATH_SIZE])
{
    static const char packed[] = ".gz";
    const size_t length = strlen(file->name), suffix = sizeof packed - 1;
    if (length > suffix && strcmp(file->name + length - suffix, packed) == 0) {
        snprintf(path, 2 * CORNU_PATH_SIZE, "%s/%.*s", folder, (int)(length - suffix), file->name);
        if (access(path, R_OK) == 0) return true;
    }
    snprintf(path, 2 * CORNU_PATH_SIZE, "%s/%s", folder, file->name);
    return access(path, R_OK) == 0;
}

/* The first file of the set that is not in the folder; NULL if all are. */
static const CornuDataFile *missing_from(const char *folder, const CornuDataSource *source)
{
    char path[2 * CORNU_PATH_SIZE];
    for (int i = 0; i < source->count; i++)
        if (!cornu_data_path(folder, &source->files[i], path)) return &source->files[i];
    return NULL;
}

/* The user's cache; false if there is none. */
static bool cache_directory(char directory[CORNU_PATH_SIZE])
{
    const int length = cornu__cache_path(directory, CORNU_PATH_SIZE, "");
    return length >= 0 && length < CORNU_PATH_SIZE;
}

/* Downloads all missing files from one address; on failure *failed and url say which. */
static CornuStatus download_from(const char *address, const CornuDataSource *source,
                                 const char *folder, const CornuDataSearch *search,
                                 const CornuDataFile **failed, char url[CORNU_PATH_SIZE])
{
    static const CornuDownloadPatience patience = { .connect = 3, .stall = 10 };
    while ((*failed = missing_from(folder, source)) != NULL) {
        snprintf(url, CORNU_PATH_SIZE, "%s%s", address, (*failed)->name);
        CORNU__TRY(cornu__download(url, folder, *failed, search, patience));
    }
    return CORNU_OK;
}

/* What a file is known by, which messages leave out. */
static void log_expected(const CornuDataFile *file)
{
    cornu__log(CORNU_LOG_INFO, "%s has %lld bytes and SHA-256 %s", file->name,
               (long long)file->bytes, file->sha256);
}

/* Tries the published addresses in order, or only CORNU_DATA_URL. */
static CornuStatus download(const CornuDataSource *source, const char *folder,
                            const CornuDataSearch *search)
{
    char        own[CORNU_PATH_SIZE], url[CORNU_PATH_SIZE];
    const char *own_addresses[] = { own, NULL }, *base = cornu__environment("CORNU_DATA_URL");
    if (base && !folder_in(own, base, source))
        return cornu__fail(CORNU_ERR_ARGUMENT, "CORNU_DATA_URL is too long");
    if (base) strncat(own, "/", sizeof own - strlen(own) - 1);

    CornuStatus status = CORNU_ERR_DATA;
    for (const char *const *address = base ? own_addresses : source->addresses;
         *address && status == CORNU_ERR_DATA; address++) {
        const CornuDataFile *file;
        status = download_from(*address, source, folder, search, &file, url);
        if (status == CORNU_ERR_DATA) {
            cornu__fail(status, "%s is neither in ./data/%s nor in the cache; its download failed: "
                        "%s\n    %s%s has it; .data names another folder, %s",
                        file->name, source->folder, cornu_error_message(), *address, file->name,
                        source->otherwise);
            log_expected(file);
        }
    }
    return status;
}

/* Looks in a directory that was named explicitly. */
static CornuStatus find_in(const char *directory, const char *asked_by,
                           const CornuDataSource *source, char folder[CORNU_PATH_SIZE])
{
    if (!folder_in(folder, directory, source))
        return cornu__fail(CORNU_ERR_ARGUMENT, "the path given by %s is too long", asked_by);
    const CornuDataFile *file = missing_from(folder, source);
    if (!file) return CORNU_OK;
    log_expected(file);
    return cornu__fail(CORNU_ERR_DATA, "%s/%s is missing; %s must name a directory that holds "
                                       "%s/\n    %s%s has it; %s",
                       folder, file->name, asked_by, source->folder, source->addresses[0],
                       file->name, source->otherwise);
}

CornuStatus cornu_data_find(const CornuDataSource *source, const CornuDataSearch *search,
                            char folder[CORNU_PATH_SIZE])
{
    static const CornuDataSearch everywhere = { .data = NULL };
    if (!search) search = &everywhere;
    if (search->data) return find_in(search->data, ".data", source, folder);
    const char *directory = cornu__environment("CORNU_DATA");
    if (directory) return find_in(directory, "CORNU_DATA", source, folder);

    folder_in(folder, "./data", source);
    if (!missing_from(folder, source)) return CORNU_OK;
    char cache[CORNU_PATH_SIZE];
    if (cache_directory(cache) && folder_in(folder, cache, source) &&
        !missing_from(folder, source))
        return CORNU_OK;
    return download(source, folder, search);
}

/* Whether directory/name exists; writes path in any case. */
static bool is_in(const char *directory, const char *name, char path[2 * CORNU_PATH_SIZE])
{
    const int length = snprintf(path, 2 * CORNU_PATH_SIZE, "%s/%s", directory, name);
    return length < 2 * CORNU_PATH_SIZE && access(path, F_OK) == 0;
}

CornuStatus cornu_data_find_file(const char *name, const CornuDataSearch *search,
                                 char path[2 * CORNU_PATH_SIZE])
{
    char        cache[CORNU_PATH_SIZE];
    const char *directory = search->data ? search->data : cornu__environment("CORNU_DATA");
    if (snprintf(path, 2 * CORNU_PATH_SIZE, "%s", name) >= 2 * CORNU_PATH_SIZE)
        return cornu__fail(CORNU_ERR_ARGUMENT, "the file name is too long");
    if (access(name, F_OK) == 0) return CORNU_OK;
    if (directory ? is_in(directory, name, path)
                  : is_in("./data", name, path) ||
                        (cache_directory(cache) && is_in(cache, name, path)))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_DATA, "file %s not found, neither here nor in %s", name,
                       directory ? directory : "./data or the user's cache");
}
