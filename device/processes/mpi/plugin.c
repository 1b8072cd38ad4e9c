/* Built by mpicc into a library of its own, never into libcornu: see mpi.mk. */
#include "plugin_internal.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Comm     communicator = MPI_COMM_NULL;
static MPI_Request *requests;
static int          request_count;
static bool         initialized;   /* by the plugin */

/* "Open MPI 4.1.4" of "Open MPI v4.1.4, package: …", and the like; else the first line. */
static int describe_library(char *library, size_t bytes)
{
    char      version[MPI_MAX_LIBRARY_VERSION_STRING];
    int       length;
    const int error = MPI_Get_library_version(version, &length);
    if (error) return error;
    version[strcspn(version, ",\n")] = '\0';
    const char *number = strpbrk(version, "0123456789");
    if (number && strncmp(version, "Open MPI", 8) == 0)
        snprintf(library, bytes, "Open MPI %s", number);
    else if (number && strncmp(version, "MPICH", 5) == 0)
        snprintf(library, bytes, "MPICH %s", number);
    else
        snprintf(library, bytes, "%s", version);
    return 0;
}

/* A program that uses MPI itself must allow other threads to do so. */
static int initialize(void)
{
    int provided, done = 0;
    int error = MPI_Initialized(&done);
    if (error) return error;
    if (!done) {
        error = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided);
        initialized = !error;
        return error;
    }
    error = MPI_Query_thread(&provided);
    return error ? error : provided == MPI_THREAD_MULTIPLE ? 0 : MPI_ERR_OTHER;
}

static int plugin_open(int *rank, int *size, char *library, size_t bytes)
{
    int error = initialize();
    if (!error) error = describe_library(library, bytes);
    if (!error) error = MPI_Comm_dup(MPI_COMM_WORLD, &communicator);
    if (!error) error = MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
    if (!error) error = MPI_Comm_rank(communicator, rank);
    if (!error) error = MPI_Comm_size(communicator, size);
    return error;
}

static int plugin_reserve(int count)
{
    if (count <= request_count) return 0;
    MPI_Request *more = realloc(requests, (size_t)count * sizeof *more);
    if (!more) return MPI_ERR_NO_MEM;
    requests = more;
    while (request_count < count) requests[request_count++] = MPI_REQUEST_NULL;
    return 0;
}

static int plugin_send(int request, const void *from, size_t bytes, int rank, int tag)
{
    return MPI_Isend(from, (int)bytes, MPI_BYTE, rank, tag, communicator, &requests[request]);
}

static int plugin_receive(int request, void *to, size_t bytes, int rank, int tag)
{
    return MPI_Irecv(to, (int)bytes, MPI_BYTE, rank, tag, communicator, &requests[request]);
}

static int plugin_test(int request, int *done)
{
    return MPI_Test(&requests[request], done, MPI_STATUS_IGNORE);
}

static int plugin_probe(int tag, int *rank)
{
    int        there;
    MPI_Status status;
    const int  error = MPI_Iprobe(MPI_ANY_SOURCE, tag, communicator, &there, &status);
    *rank = !error && there ? status.MPI_SOURCE : -1;
    return error;
}

static void plugin_cancel(int request)
{
    if (requests[request] == MPI_REQUEST_NULL) return;
    MPI_Cancel(&requests[request]);
    MPI_Request_free(&requests[request]);
}

static void plugin_explain(int error, char *text, size_t bytes)
{
    char why[MPI_MAX_ERROR_STRING];
    int  length;
    if (MPI_Error_string(error, why, &length)) snprintf(why, sizeof why, "error %d", error);
    snprintf(text, bytes, "%s", why);
}

static void plugin_close(void)
{
    free(requests);
    requests = NULL;
    request_count = 0;
    if (communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
    if (initialized) MPI_Finalize();
    initialized = false;
}

#if defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION < 3
enum { GLOBAL = true };    /* its components look for its symbols there */
#else
enum { GLOBAL = false };
#endif

const CornuMpiPlugin cornu_mpi_plugin = {
    .abi = CORNU_MPI_ABI, .global = GLOBAL, .open = plugin_open, .reserve = plugin_reserve,
    .send = plugin_send, .receive = plugin_receive, .test = plugin_test, .probe = plugin_probe,
    .cancel = plugin_cancel, .explain = plugin_explain, .close = plugin_close,
};
