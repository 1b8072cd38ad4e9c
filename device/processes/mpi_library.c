#define _GNU_SOURCE    /* dladdr */

#include "mpi_library_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../system/environment_internal.h"
#include "../log_internal.h"

/* ---- The launcher ---- */

static CornuStatus read_number(const char *name, int least, int most, int *number)
{
    const char *text = cornu__environment(name);
    char       *end;
    errno = 0;
    const long value = text ? strtol(text, &end, 10) : 0;
    if (!text || end == text || *end || errno || value < least || value > most)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s is \"%s\", expected a number from %d to %d",
                           name, text ? text : "", least, most);
    *number = (int)value;
    return CORNU_OK;
}

/* Slurm's variables of a job are also those of its script, which srun has not started: only a step
 * has several processes. */
CornuStatus cornu__mpi_launcher(CornuMpiLauncher *launcher)
{
    static const struct { const char *count, *rank, *step, *name, *library; } known[] = {
        { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL, "Open MPI's mpirun", "openmpi" },
        { "PMI_SIZE", "PMI_RANK", "HYDI_CONTROL_FD", "MPICH's mpirun", "mpich" },
        { "PMI_SIZE", "PMI_RANK", NULL, "a launcher with PMI", "mpich" },
        { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL, "srun", NULL },
        { "SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_ID", "srun", NULL },
    };
    *launcher = (CornuMpiLauncher){ .count = 1 };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!cornu__environment(known[i].count) || !cornu__environment(known[i].rank)) continue;
        if (known[i].step && !cornu__environment(known[i].step)) continue;
        CORNU__TRY(read_number(known[i].count, 1, CORNU_MAX_PROCESSES, &launcher->count));
        if (launcher->count == 1) continue;
        CORNU__TRY(read_number(known[i].rank, 0, launcher->count - 1, &launcher->rank));
        launcher->name = known[i].name;
        launcher->library = known[i].library;
        return CORNU_OK;
    }
    return CORNU_OK;
}

/* ---- The plugin ---- */

/* Writes the folder of a file, and what is below it. */
static void beside(char *path, size_t size, const char *file, const char *below, const char *name)
{
    const char *slash = strrchr(file, '/');
    snprintf(path, size, "%.*s/%s%s", slash ? (int)(slash - file) : 1, slash ? file : ".", below,
             name);
}

/* Beside the program and libcornu.so, as they are built; where they are installed, in lib/cornu;
 * and where the run-time linker looks. places[i] is "" where there is none. */
enum { PLACES = 5, PATH = 1024 };

static void list_places(char places[PLACES][PATH], const char *name)
{
    char          program[PATH];
    Dl_info       library;
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    for (int i = 0; i < PLACES; i++) places[i][0] = '\0';
    if (n > 0) {
        program[n] = '\0';
        beside(places[0], PATH, program, "", name);
        beside(places[1], PATH, program, "../lib/cornu/", name);
    }
    if (dladdr(cornu_status_name(CORNU_OK), &library) && library.dli_fname) {
        beside(places[2], PATH, library.dli_fname, "", name);
        beside(places[3], PATH, library.dli_fname, "cornu/", name);
    }
    snprintf(places[4], PATH, "%s", name);
}

static const CornuMpiPlugin *load_library(const char *path, char *why, size_t size)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *said = dlerror();
        /* What a plugin that is there lacks says more than where none is. */
        if (!*why && (!strchr(path, '/') || access(path, F_OK) == 0))
            snprintf(why, size, "%s", said ? said : path);
        return NULL;
    }
    const CornuMpiPlugin *plugin = dlsym(library, "cornu_mpi_plugin");
    if (!plugin || plugin->abi != CORNU_MPI_ABI) {
        snprintf(why, size, "%s is of another version of Cornu", path);
        dlclose(library);
        return NULL;
    }
    if (plugin->global) dlopen(path, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
    cornu__log(CORNU_LOG_INFO, "loaded %s", path);
    return plugin;
}

CornuStatus cornu__mpi_load(const CornuMpiLauncher *launcher, const CornuMpiPlugin **plugin)
{
    static const char *const libraries[] = { "openmpi", "mpich" };
    const char              *chosen = cornu__environment("CORNU_MPI");
    char                     name[64] = "", why[300] = "";
    static char              places[PLACES][PATH];   /* by the group's thread alone */
    if (chosen) {
        *plugin = load_library(chosen, why, sizeof why);
        return *plugin ? CORNU_OK
                       : cornu__fail(CORNU_ERR_UNSUPPORTED, "CORNU_MPI is \"%s\", which cannot be "
                                     "loaded%s%s", chosen, *why ? ": " : "", why);
    }
    for (size_t k = 0; k < sizeof libraries / sizeof *libraries; k++) {
        if (launcher->library && strcmp(launcher->library, libraries[k]) != 0) continue;
        snprintf(name, sizeof name, "libcornu_mpi_%s.so", libraries[k]);
        list_places(places, name);
        for (int i = 0; i < PLACES; i++)
            if (places[i][0] && (*plugin = load_library(places[i], why, sizeof why)))
                return CORNU_OK;
    }
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has started this process as rank %d of %d, but "
                       "Cornu's plugin for its MPI, %s, cannot be loaded (%s); make deps-mpi && "
                       "make builds it, CORNU_MPI=PATH names another one", launcher->name,
                       launcher->rank, launcher->count,
                       launcher->library ? name : "libcornu_mpi_*.so", why);
}
