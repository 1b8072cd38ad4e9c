#include "library.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../clock.h"
#include "folder.h"

/* How many versions that have ended are remembered, for status; the longest time, in seconds, until
 * a version is tried again. */
enum { MOST_ENDED = 16, LONGEST_PAUSE_S = 60 };

/* START and LOADING to END are the states of TensorFlow Serving's get_model_status.proto. */
typedef enum { STATE_LOADING, STATE_AVAILABLE, STATE_UNLOADING, STATE_END } State;

static const char *const state_names[] = { "LOADING", "AVAILABLE", "UNLOADING", "END" };

typedef struct Version {
    int64_t         number;
    State           state;
    Served         *served;            /* while AVAILABLE */
    bool            wanted;            /* by the update that is under way */
    struct stat     identity;          /* of the file that was loaded, or failed to */
    Problem         problem;           /* of the last attempt to load it */
    double          pause_s, again_s;  /* then: when it is tried again, INFINITY for never */
    struct Version *next;              /* a lower number */
} Version;

typedef struct Entry {
    char         *name, *path;
    bool          required;            /* one of --model */
    bool          gone;                /* from the folder of --models, which was read */
    Problem       problem;             /* of reading its folder: told once */
    Version      *versions;            /* descending */
    struct Entry *next;
} Entry;

/* The thread that updates is the only one that changes lists; it locks what others read. */
struct Library {
    const Settings *settings;
    Entry          *entries;
    Problem         problem;           /* of reading the folder of models */
    bool            all;               /* the update tries all versions that failed */
    pthread_mutex_t lock;
};

/* ---- What is told ---- */

/* Tells a problem that is not the one that was told last. */
static void complain(Problem *told, const Problem *problem)
{
    if (problem->code && strcmp(told->message, problem->message) != 0)
        fprintf(stderr, "cornu serve: %s\n", problem->message);
    *told = *problem;
}

/* ---- Entries ---- */

static Entry *find_entry(Library *library, const char *name)
{
    for (Entry *entry = library->entries; entry; entry = entry->next)
        if (!strcmp(entry->name, name)) return entry;
    return NULL;
}

static bool add_entry(Library *library, const char *name, size_t length, const char *folder,
                      const char *path)
{
    const size_t size = (folder ? strlen(folder) + 1 : 0) + strlen(path) + 1;
    Entry       *entry = calloc(1, sizeof *entry);
    if (!entry) return false;
    entry->name = strndup(name, length);
    entry->path = malloc(size);
    entry->required = !folder;
    if (!entry->name || !entry->path) {
        free(entry->name);
        free(entry->path);
        free(entry);
        return false;
    }
    snprintf(entry->path, size, "%s%s%s", folder ? folder : "", folder ? "/" : "", path);
    pthread_mutex_lock(&library->lock);
    Entry **at = &library->entries;
    while (*at) at = &(*at)->next;
    *at = entry;
    pthread_mutex_unlock(&library->lock);
    return true;
}

static bool add_found(void *context, const char *name)
{
    Library *library = context;
    Entry   *entry = find_entry(library, name);
    if (entry) entry->gone = false;
    return entry || add_entry(library, name, strlen(name), library->settings->models, name);
}

Library *library_create(const Settings *settings)
{
    Library *library = calloc(1, sizeof *library);
    if (!library) return NULL;
    library->settings = settings;
    pthread_mutex_init(&library->lock, NULL);
    for (int i = 0; i < settings->model.count; i++) {
        const char  *model = settings->model.text[i];
        const size_t name = settings_name(model, '=');
        if (add_entry(library, model, name, NULL, model + name + 1)) continue;
        library_free(library);
        return NULL;
    }
    return library;
}

void library_free(Library *library)
{
    if (!library) return;
    while (library->entries) {
        Entry *entry = library->entries;
        library->entries = entry->next;
        while (entry->versions) {
            Version *version = entry->versions;
            entry->versions = version->next;
            served_release(version->served);
            free(version);
        }
        free(entry->name);
        free(entry->path);
        free(entry);
    }
    pthread_mutex_destroy(&library->lock);
    free(library);
}

/* ---- Versions ---- */

static Version *find_version(Entry *entry, int64_t number)
{
    for (Version *version = entry->versions; version; version = version->next)
        if (version->number == number) return version;
    return NULL;
}

static Version *add_version(Library *library, Entry *entry, int64_t number)
{
    Version *version = calloc(1, sizeof *version), **at = &entry->versions;
    if (!version) return NULL;
    version->number = number;
    version->state = STATE_END;
    pthread_mutex_lock(&library->lock);
    while (*at && (*at)->number > number) at = &(*at)->next;
    version->next = *at;
    *at = version;
    pthread_mutex_unlock(&library->lock);
    return version;
}

static void set_state(Library *library, Version *version, State state)
{
    pthread_mutex_lock(&library->lock);
    version->state = state;
    pthread_mutex_unlock(&library->lock);
}

/* Whether the machine may be at fault, and not the file. */
static bool may_pass(Code code)
{
    return code == CODE_RESOURCE_EXHAUSTED || code == CODE_NOT_FOUND || code == CODE_INTERNAL ||
           code == CODE_UNAVAILABLE;
}

/* Whether there is nothing to do with a file that was tried before. */
static bool is_settled(const Library *library, const Version *version)
{
    if (!version->problem.code) return version->served;
    return !library->all && clock_seconds() < version->again_s;
}

/* Nothing is known of the version's file now. */
static Version *leave(Library *library, Entry *entry, const FolderVersion *file)
{
    CornuShown shown;
    Problem    problem;
    Version   *version = find_version(entry, file->number);
    if (!version) version = add_version(library, entry, file->number);
    if (!version || version->served) return version;
    problem_set(&problem, CODE_NOT_FOUND, "cannot serve %s version %lld: its folder or file cannot "
                "be read: %s", cornu_shown(&shown, entry->name), (long long)file->number,
                strerror(file->error));
    pthread_mutex_lock(&library->lock);
    complain(&version->problem, &problem);
    pthread_mutex_unlock(&library->lock);
    version->pause_s = 0;
    memset(&version->identity, 0, sizeof version->identity);
    return version;
}

/* Loads a version, unless this file of it is loaded or has failed. The one of the same number that
 * was loaded before is served until then. NULL when memory runs out. */
static Version *load(Library *library, Entry *entry, const FolderVersion *file)
{
    CornuShown shown;
    Version   *version = find_version(entry, file->number);
    if (!version) version = add_version(library, entry, file->number);
    const bool same = version && folder_same_file(&version->identity, &file->identity);
    if (!version || (same && is_settled(library, version))) return version;
    if (!version->served) set_state(library, version, STATE_LOADING);
    Problem problem = { .code = CODE_OK };
    Served *served = served_load(library->settings, entry->name, file->number, file->path,
                                 &problem);
    pthread_mutex_lock(&library->lock);
    Served *before = served ? version->served : NULL;
    if (served) version->served = served;
    version->state = version->served ? STATE_AVAILABLE : STATE_END;
    version->identity = file->identity;
    version->problem = problem;
    pthread_mutex_unlock(&library->lock);
    version->pause_s = !same || !version->pause_s ? library->settings->poll_s
                     : fmin(2 * version->pause_s, LONGEST_PAUSE_S);
    version->again_s = may_pass(problem.code) ? clock_seconds() + version->pause_s : INFINITY;
    served_release(before);
    if (served)
        fprintf(stderr, "cornu serve: serving %s version %lld, %s\n",
                cornu_shown(&shown, entry->name), (long long)file->number, file->path);
    if (served && served->input_scale != 1)
        fprintf(stderr, "cornu serve: %s takes numbers as they are: clients multiply pixels by its "
                "input_scale, %g\n", cornu_shown(&shown, entry->name), served->input_scale);
    if (!served)
        fprintf(stderr, "cornu serve: cannot serve %s version %lld: %s\n",
                cornu_shown(&shown, entry->name), (long long)file->number, problem.message);
    return version;
}

static void unload(Library *library, const Entry *entry, Version *version)
{
    CornuShown shown;
    pthread_mutex_lock(&library->lock);
    Served *served = version->served;
    version->served = NULL;
    version->state = STATE_UNLOADING;
    pthread_mutex_unlock(&library->lock);
    served_release(served);
    set_state(library, version, STATE_END);
    memset(&version->identity, 0, sizeof version->identity);
    fprintf(stderr, "cornu serve: no longer serving %s version %lld\n",
            cornu_shown(&shown, entry->name), (long long)version->number);
}

static void forget_ended(Library *library, Entry *entry)
{
    int ended = 0;
    pthread_mutex_lock(&library->lock);
    for (Version **at = &entry->versions; *at;) {
        Version *version = *at;
        if (version->state == STATE_END && ++ended > MOST_ENDED) {
            *at = version->next;
            free(version);
        } else {
            at = &version->next;
        }
    }
    pthread_mutex_unlock(&library->lock);
}

static bool is_served(const Entry *entry)
{
    for (const Version *version = entry->versions; version; version = version->next)
        if (version->served) return true;
    return false;
}

/* The latest versions that load are served, and those with a label; then others go. Where the
 * folder cannot be read, all stay as they are. */
static bool update(Library *library, Entry *entry)
{
    FolderVersions files;
    Problem        problem = { .code = CODE_OK };
    int64_t        served = 0;
    if (entry->gone) files = (FolderVersions){ .count = 0 };
    else if (!folder_list(entry->path, &files, &problem)) {
        complain(&entry->problem, &problem);
        return is_served(entry);
    }
    entry->problem = problem;
    for (Version *version = entry->versions; version; version = version->next)
        version->wanted = false;
    for (int i = files.count - 1; i >= 0; i--) {
        const FolderVersion *file = &files.versions[i];
        if (served >= library->settings->versions &&
            !settings_has_label(&library->settings->label, entry->name, file->number))
            continue;
        Version *version = file->error ? leave(library, entry, file) : load(library, entry, file);
        if (!version) continue;
        version->wanted = true;
        served += version->served != NULL;
    }
    for (Version *version = entry->versions; version; version = version->next)
        if (version->served && !version->wanted) unload(library, entry, version);
    forget_ended(library, entry);
    if (files.count == 0 && entry->required && !entry->versions)
        fprintf(stderr, "cornu serve: %s has no version, expected a model's file or a folder with "
                "VERSION/ or VERSION.SUFFIX\n", entry->path);
    folder_free(&files);
    return served > 0;
}

/* Looks for models; those that are not there are gone only if all of the folder was read. */
static bool find_models(Library *library)
{
    Problem problem = { .code = CODE_OK };
    if (!library->settings->models) return true;
    for (Entry *entry = library->entries; entry; entry = entry->next)
        entry->gone = !entry->required;
    const bool good = folder_models(library->settings->models, add_found, library, &problem);
    for (Entry *entry = library->entries; entry && !good; entry = entry->next) entry->gone = false;
    complain(&library->problem, &problem);
    return good;
}

bool library_update(Library *library, bool all)
{
    library->all = all;
    bool good = find_models(library);
    for (Entry *entry = library->entries; entry; entry = entry->next)
        good &= update(library, entry) || !entry->required;
    return good;
}

/* ---- For requests ---- */

/* The number of the version that is wanted; -1: any. */
static bool choose(const Library *library, const char *name, const Choice *choice,
                   int64_t *number, Problem *problem)
{
    *number = choice->version;
    if (!choice->label) return true;
    *number = settings_label(&library->settings->label, name, choice->label);
    return *number >= 0 || problem_set(problem, CODE_INVALID_ARGUMENT,
                                       "Unrecognized servable version label: %s", choice->label);
}

Served *library_find(Library *library, const char *name, const Choice *choice, Problem *problem)
{
    Served *served = NULL;
    int64_t number;
    if (!choose(library, name, choice, &number, problem)) return NULL;
    pthread_mutex_lock(&library->lock);
    Entry *entry = find_entry(library, name);
    for (Version *version = entry ? entry->versions : NULL; version && !served;
         version = version->next)
        if (version->served && (number < 0 || version->number == number))
            served = served_hold(version->served);
    pthread_mutex_unlock(&library->lock);
    if (served) return served;
    if (number < 0)
        problem_set(problem, CODE_NOT_FOUND, "Servable not found for request: Latest(%s)", name);
    else
        problem_set(problem, CODE_NOT_FOUND, "Servable not found for request: Specific(%s, %lld)",
                    name, (long long)number);
    return NULL;
}

static void add_state(Text *to, const Version *version, bool first)
{
    const Problem *problem = &version->problem;
    text_add(to, "%s  {\n   \"version\": \"%lld\",\n   \"state\": \"%s\",\n   \"status\": {\n"
             "    \"error_code\": \"%s\",\n    \"error_message\": ", first ? "" : ",\n",
             (long long)version->number, state_names[version->state], code_name(problem->code));
    text_add_quoted(to, problem->message);
    text_add(to, "\n   }\n  }");
}

bool library_status(Library *library, const char *name, const Choice *choice, Text *to,
                    Problem *problem)
{
    bool    any = false;
    int64_t number;
    if (!choose(library, name, choice, &number, problem)) return false;
    text_add(to, "{\n \"model_version_status\": [\n");
    pthread_mutex_lock(&library->lock);
    Entry *entry = find_entry(library, name);
    for (Version *version = entry ? entry->versions : NULL; version; version = version->next)
        if (number < 0 || version->number == number) {
            add_state(to, version, !any);
            any = true;
        }
    pthread_mutex_unlock(&library->lock);
    text_add(to, "\n ]\n}\n");
    if (any) return true;
    if (number < 0)
        return problem_set(problem, CODE_NOT_FOUND, "Could not find any versions of model %s",
                           name);
    return problem_set(problem, CODE_NOT_FOUND, "Could not find version %lld of model %s",
                       (long long)number, name);
}
