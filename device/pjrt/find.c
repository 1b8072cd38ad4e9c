/*
 * Where plugins are. A name with a "/" or ending in ".so" is a library's path. Another name is
 * searched in these places, of which the first that has the plugin counts; of several versions
 * there, the newest:
 *
 *   1. the folder CORNU_PJRT, which is laid out as site-packages (pip install --target FOLDER)
 *   2. for tpu, the library TPU_LIBRARY_PATH
 *   3. the folders in PYTHONPATH
 *   4. the packages of VIRTUAL_ENV, of CONDA_PREFIX, of each python3 in PATH, of pyenv's Pythons in
 *      ~/.pyenv, of ~/.local, of /usr/local and of /usr
 *   5. the user's cache, ${XDG_CACHE_HOME:-~/.cache}/cornu/pjrt, where `make deps-pjrt` puts
 *      plugins, each in a folder NAME-VERSION
 *
 * There cpu, cuda, rocm and tpu are the files in the table below. Any other name is that of a
 * package in jax_plugins, or of an entry point in the group jax_plugins of any package's metadata:
 * the two ways in which JAX finds plugins. Python is not started.
 *
 * No name at all is the library CORNU_PJRT, if that is a library; else the first that is found of
 * tpu and cuda, unless their hardware is absent, and cpu.
 */
#define _XOPEN_SOURCE 700    /* realpath */

#include <glob.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../system/environment_internal.h"
#include "../open.h"
#include "../host/machine/accelerators.h"
#include "plugin.h"

/* Below site-packages; the first that is there counts. */
static const struct { const char *name, *file; } known[] = {
    { "cpu",  "lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so" },
    { "cpu",  "fastatomstruct_xla_cpu/libpjrt_cpu.so" },
    { "cpu",  "xla_plugins/xla_cpu_pjrt/xla_cpu_pjrt.so" },
    { "cuda", "jax_plugins/xla_cuda*/xla_cuda_plugin.so" },
    { "rocm", "jax_plugins/xla_rocm*/xla_rocm_plugin.so" },
    { "tpu",  "libtpu/libtpu.so" },
};

/* A plugin that is not known: in a package's folder. */
static const char *const likely[] = { "*pjrt*plugin*.so", "*plugin*.so", "*pjrt*.so", "*.so" };

#define COUNT(array) (sizeof (array) / sizeof *(array))

enum { PATTERN = 2 * PATH_MAX };

typedef struct {
    const char *plugin;
    char       *path;                        /* of the library: the result */
    CornuStatus status;                      /* out of memory */
    char        searched[CORNU_MESSAGE_SIZE];/* the places, for the message */
} Search;

/* ---- Files ---- */

/* Appends to a pattern; false if it does not fit. */
static bool append_pattern(char pattern[PATTERN], const char *text)
{
    const size_t length = strlen(pattern), more = strlen(text);
    if (length + more >= PATTERN) return false;
    memcpy(pattern + length, text, more + 1);
    return true;
}

/* Likewise, as it is: no character has a special meaning. */
static bool append_plain(char pattern[PATTERN], const char *text, size_t size)
{
    char *to = pattern + strlen(pattern);
    if ((size_t)(to - pattern) + 2 * size >= PATTERN) return false;
    for (size_t i = 0; i < size; i++) {
        if (strchr("*?[]\\", text[i])) *to++ = '\\';
        *to++ = text[i];
    }
    *to = '\0';
    return true;
}

/* Compares with numbers as numbers: python3.9 is before python3.12. */
static int compare_names(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    for (; *a && *b; a++, b++) {
        const size_t m = strspn(a, digits), n = strspn(b, digits);
        if (m && n) {
            char              *after_a, *after_b;
            const unsigned long x = strtoul(a, &after_a, 10), y = strtoul(b, &after_b, 10);
            if (x != y) return x < y ? -1 : 1;
            a = after_a - 1;
            b = after_b - 1;
        } else if (*a != *b) {
            break;
        }
    }
    return (unsigned char)*a - (unsigned char)*b;
}

static bool is_file(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

/* The newest file that fits the pattern. */
static bool newest(Search *search, const char *pattern)
{
    glob_t      files;
    const char *best = NULL;
    const int   failure = glob(pattern, 0, NULL, &files);
    if (failure == GLOB_NOSPACE)
        search->status = cornu__fail(CORNU_ERR_MEMORY, "no memory to search for PJRT plugins");
    for (size_t i = 0; failure == 0 && i < files.gl_pathc; i++) {
        const char *file = files.gl_pathv[i];
        if (strlen(file) < CORNU_PJRT_PATH && (!best || compare_names(best, file) < 0) &&
            is_file(file))
            best = file;
    }
    if (best) memcpy(search->path, best, strlen(best) + 1);
    globfree(&files);
    return best;
}

/* ---- Plugins that are found by metadata ---- */

/* The library in a folder. */
static bool find_likely(Search *search, const char *folder)
{
    char pattern[PATTERN];
    for (size_t i = 0; i < COUNT(likely); i++) {
        *pattern = '\0';
        if (append_pattern(pattern, folder) && append_pattern(pattern, "/") &&
            append_pattern(pattern, likely[i]) && newest(search, pattern))
            return true;
    }
    return false;
}

/* Removes blanks at both ends. */
static char *trim(char *text)
{
    static const char blanks[] = " \t\r\n";
    size_t length;
    text += strspn(text, blanks);
    for (length = strlen(text); length && strchr(blanks, text[length - 1]); length--) {}
    text[length] = '\0';
    return text;
}

/* The module of an entry point, from a file with lines "[GROUP]" and "NAME = MODULE:FUNCTION".
 * Source: the entry points specification of the Python Packaging User Guide. */
static bool read_module(const char *file, const char *plugin, char module[256])
{
    char  line[512];
    bool  inside = false, found = false;
    FILE *from;
    if (cornu__open_to_read(file, &from) != CORNU_OK) return false;
    while (!found && fgets(line, sizeof line, from)) {
        char *text = trim(line), *equals = strchr(text, '=');
        if (*text == '[') inside = strcmp(text, "[jax_plugins]") == 0;
        if (!inside || !equals) continue;
        *equals = '\0';
        if (strcmp(trim(text), plugin) != 0) continue;
        char *value = trim(equals + 1);
        value[strcspn(value, ":[ ")] = '\0';
        found = *value && *value != '.' && !strchr(value, '/') && strlen(value) < 256;
        if (found) memcpy(module, value, strlen(value) + 1);
    }
    fclose(from);
    return found;
}

/* By the metadata of the packages beside it. */
static bool find_entry_point(Search *search, const char *packages)
{
    char   pattern[PATTERN] = "", module[256];
    glob_t files;
    bool   found = false;
    if (!append_pattern(pattern, packages) ||
        !append_pattern(pattern, "/*-info/entry_points.txt"))
        return false;
    const int failure = glob(pattern, 0, NULL, &files);
    if (failure == GLOB_NOSPACE)
        search->status = cornu__fail(CORNU_ERR_MEMORY, "no memory to search for PJRT plugins");
    for (size_t i = 0; failure == 0 && !found && i < files.gl_pathc; i++) {
        const char *file = files.gl_pathv[i];
        if (!read_module(file, search->plugin, module)) continue;
        for (char *dot = module; (dot = strchr(dot, '.')); ) *dot = '/';
        const char *end = file + strlen(file);
        for (int slashes = 0; slashes < 2; ) slashes += *--end == '/';
        *pattern = '\0';
        found = append_plain(pattern, file, (size_t)(end - file)) && append_pattern(pattern, "/") &&
                append_plain(pattern, module, strlen(module)) && find_likely(search, pattern);
    }
    globfree(&files);
    return found;
}

/* ---- Places ---- */

/* Searches a folder of packages, a pattern. */
static bool look_into(Search *search, const char *packages)
{
    char   pattern[PATTERN];
    bool   in_table = false;
    size_t length = strlen(search->searched);
    if (search->status != CORNU_OK) return false;
    if (!strstr(search->searched, packages))
        snprintf(search->searched + length, sizeof search->searched - length, "%s%s",
                 length ? ", " : "", packages);
    for (size_t i = 0; i < COUNT(known); i++) {
        if (strcmp(known[i].name, search->plugin) != 0) continue;
        in_table = true;
        *pattern = '\0';
        if (append_pattern(pattern, packages) && append_pattern(pattern, "/") &&
            append_pattern(pattern, known[i].file) && newest(search, pattern))
            return true;
    }
    *pattern = '\0';
    return !in_table &&
           ((append_pattern(pattern, packages) && append_pattern(pattern, "/jax_plugins/") &&
             append_plain(pattern, search->plugin, strlen(search->plugin)) &&
             find_likely(search, pattern)) ||
            find_entry_point(search, packages));
}

/* Likewise, a folder by its name, which is absolute, and what is below it. */
static bool look_below(Search *search, const char *folder, size_t size, const char *below)
{
    char pattern[PATTERN] = "";
    while (size > 1 && folder[size - 1] == '/') size--;
    return size && folder[0] == '/' && append_plain(pattern, folder, size) &&
           append_pattern(pattern, below) && look_into(search, pattern);
}

/* Below a prefix of Python's: those of Fedora are in lib64, too, and Debian's are called
 * dist-packages. */
static const char packages[] = "/lib*/python3*/*-packages";

static bool look_in_variable(Search *search, const char *name, const char *below)
{
    const char *folder = cornu__environment(name);
    return folder && look_below(search, folder, strlen(folder), below);
}

/* The python3 in a folder of PATH: its own environment, and that of the Python that it is a link
 * to. */
static bool look_beside(Search *search, const char *folder, size_t size)
{
    char python[2][PATH_MAX];
    while (size > 1 && folder[size - 1] == '/') size--;
    if (snprintf(python[0], PATH_MAX, "%.*s/python3", (int)size, folder) >= PATH_MAX ||
        access(python[0], X_OK) != 0 || !realpath(python[0], python[1]))
        return false;
    for (int i = 0; i < 2; i++) {
        for (int up = 0; up < 2; up++) {
            char *slash = strrchr(python[i], '/');
            if (slash) *slash = '\0';
        }
        if (look_below(search, python[i], strlen(python[i]), packages)) return true;
    }
    return false;
}

static bool look_in_list(Search *search, const char *list,
                         bool look(Search *search, const char *folder, size_t size))
{
    for (size_t size; list && *list; list += size + (list[size] == ':')) {
        size = strcspn(list, ":");
        if (size && look(search, list, size)) return true;
    }
    return false;
}

static bool look_there(Search *search, const char *folder, size_t size)
{
    return look_below(search, folder, size, "");
}

/* Whether the plugin is found; its path is in search->path. */
static bool find_plugin(Search *search, const char *plugin)
{
    const char *const library = cornu__environment("TPU_LIBRARY_PATH");
    char              cache[PATH_MAX];
    const int         length = cornu__cache_path(cache, sizeof cache, "/pjrt");
    search->plugin = plugin;
    if (look_in_variable(search, "CORNU_PJRT", "")) return true;
    if (strcmp(plugin, "tpu") == 0 && library && strlen(library) < CORNU_PJRT_PATH) {
        memcpy(search->path, library, strlen(library) + 1);   /* which must be there */
        return true;
    }
    return look_in_list(search, cornu__environment("PYTHONPATH"), look_there) ||
           look_in_variable(search, "VIRTUAL_ENV", packages) ||
           look_in_variable(search, "CONDA_PREFIX", packages) ||
           look_in_list(search, cornu__environment("PATH"), look_beside) ||
           look_in_variable(search, "HOME", "/.pyenv/versions/*/lib/python3*/site-packages") ||
           look_in_variable(search, "HOME", "/.local/lib/python3*/site-packages") ||
           look_below(search, "/usr/local", strlen("/usr/local"), packages) ||
           look_below(search, "/usr", strlen("/usr"), packages) ||
           (length > 0 && length < PATH_MAX &&
            look_below(search, cache, (size_t)length, "/*"));
}

/* What to install for a plugin. */
static const char *advice(const char *plugin)
{
    return strcmp(plugin, "tpu") == 0  ? "pip install libtpu"
         : strcmp(plugin, "cuda") == 0 ? "pip install \"jax[cuda12]\""
         : strcmp(plugin, "rocm") == 0 ? "pip install jax-rocm7-pjrt"
         : strcmp(plugin, "cpu") == 0  ? "`make deps-pjrt` in Cornu's sources"
         : *plugin ? "pip install the package that has it"
                   : "pip install libtpu or \"jax[cuda12]\"; for the CPU `make deps-pjrt` in "
                     "Cornu's sources";
}

static CornuStatus copy_path(const char *from, char path[CORNU_PJRT_PATH])
{
    const size_t length = strlen(from);
    if (length >= CORNU_PJRT_PATH)
        return cornu__fail(CORNU_ERR_DEVICE, "a plugin's path of %zu characters, expected at most "
                           "%d", length, CORNU_PJRT_PATH - 1);
    memcpy(path, from, length + 1);
    return CORNU_OK;
}

CornuStatus cornu__pjrt_find(const char *plugin, char path[CORNU_PJRT_PATH])
{
    Search       search = { .path = path };
    struct stat  file;
    const char  *chosen = cornu__environment("CORNU_PJRT");
    const size_t length = strlen(plugin);
    if (strchr(plugin, '/') || (length > 3 && strcmp(plugin + length - 3, ".so") == 0))
        return copy_path(plugin, path);
    if (chosen && stat(chosen, &file) != 0)
        return cornu__fail(CORNU_ERR_DEVICE, "CORNU_PJRT is %s, which does not exist; expected a "
                           "PJRT plugin, or a folder of Python packages", chosen);
    if (!*plugin && chosen && !S_ISDIR(file.st_mode)) return copy_path(chosen, path);
    if (*plugin ? find_plugin(&search, plugin)
                : (cornu__has_tpu() && find_plugin(&search, "tpu")) ||
                  (cornu__has_gpu() && find_plugin(&search, "cuda")) || find_plugin(&search, "cpu"))
        return CORNU_OK;
    if (search.status != CORNU_OK) return search.status;
    return cornu__fail(CORNU_ERR_DEVICE, "no PJRT plugin%s%s; install one (%s), set CORNU_PJRT to "
                       "a folder of packages%s, or name a library: \"pjrt:/path/plugin.so\"; "
                       "searched: %s", *plugin ? " for " : "", plugin, advice(plugin),
                       *plugin ? "" : " or a library", search.searched);
}
