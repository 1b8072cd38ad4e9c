#define _GNU_SOURCE    /* pipe2 */

#include "program_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../device/open.h"
#include "../../device/system/clock_internal.h"

extern char **environ;

/* ---- Pipes ---- */

/* Ends above standard error, which other programs do not inherit. */
static int make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        ends[0] = ends[1] = -1;
        return errno;
    }
    for (int i = 0; i < 2; i++) {
        ends[i] = cornu__above_standard(ends[i]);
        if (ends[i] >= 0) fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    return ends[0] < 0 || ends[1] < 0 ? EMFILE : 0;
}

static void close_end(int *end)
{
    if (*end >= 0) close(*end);
    *end = -1;
}

/* Writes all of the input while nobody reads it yet: a program that ends early cannot send us
 * SIGPIPE. */
static int fill_pipe(int ends[2], const char *input)
{
    const size_t size = strlen(input);
    int          error = make_pipe(ends);
    if (!error && fcntl(ends[1], F_SETFL, O_NONBLOCK) != 0) error = errno;
    if (!error && size && write(ends[1], input, size) != (ssize_t)size) error = E2BIG;
    close_end(&ends[1]);
    return error;
}

/* ---- Starting ---- */

static int spawn(CornuProgram *program, const char *const *arguments, int input, int output,
                 int complaints)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    if (input >= 0) posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    else posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (output >= 0) posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    else posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
    /* The strings are not modified: the type is historical. */
    error = posix_spawnp(&program->child, arguments[0], &actions, NULL, (char *const *)arguments,
                         environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

int cornu__program_start(CornuProgram *program, const char *const *arguments, const char *input,
                         bool output)
{
    int in[2] = { -1, -1 }, out[2] = { -1, -1 }, complaints[2] = { -1, -1 };
    *program = (CornuProgram){ -1, -1, -1 };
    int error = make_pipe(complaints);
    if (!error && output) error = make_pipe(out);
    if (!error && input) error = fill_pipe(in, input);
    if (!error) error = spawn(program, arguments, in[0], out[1], complaints[1]);
    close_end(&in[0]);
    close_end(&out[1]);
    close_end(&complaints[1]);
    if (error) {
        close_end(&out[0]);
        close_end(&complaints[0]);
    }
    program->output = out[0];
    program->complaints = complaints[0];
    return error;
}

int cornu__program_end(CornuProgram *program, bool kill_it)
{
    int   result = 0;
    pid_t ended;
    if (kill_it) kill(program->child, SIGKILL);
    do ended = waitpid(program->child, &result, 0);
    while (ended < 0 && errno == EINTR);
    close_end(&program->output);
    close_end(&program->complaints);
    return ended >= 0 && WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

bool cornu__program_hear(int pipe, char *said, size_t size)
{
    char    text[256];
    ssize_t got = read(pipe, text, sizeof text);
    size_t  used = strlen(said);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    for (ssize_t i = 0; i < got && used + 1 < size; i++)
        said[used++] = text[i] == '\n' || text[i] == '\r' ? ' ' : text[i];
    said[used] = '\0';
    return got > 0;
}

/* ---- Running to the end ---- */

/* The first line of a string whose lines cornu__program_hear has joined cannot be found again: the
 * output is read here. */
static bool read_line(int pipe, char *line, size_t size, size_t *used, bool *whole)
{
    char          text[512];
    const ssize_t got = read(pipe, text, sizeof text);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    for (ssize_t i = 0; i < got && !*whole; i++) {
        *whole = text[i] == '\n' || *used + 1 >= size;
        if (!*whole && text[i] != '\r') line[(*used)++] = text[i];
    }
    line[*used] = '\0';
    return got > 0;
}

int cornu__program_line(const char *const *arguments, int seconds, char *line, size_t size)
{
    CornuProgram program;
    char         said[256] = "";
    size_t       used = 0;
    bool         whole = false, late = false;
    const int    error = cornu__program_start(&program, arguments, NULL, true);
    const double until = cornu__seconds() + seconds;
    line[0] = '\0';
    if (error) return error;
    for (bool out = true, err = true; (out || err) && !late;) {
        struct pollfd wait[2] = { { .fd = out ? program.output : -1, .events = POLLIN },
                                  { .fd = err ? program.complaints : -1, .events = POLLIN } };
        const double  left = until - cornu__seconds();
        late = left <= 0.0;
        if (late || poll(wait, 2, (int)(left * 1e3) + 1) <= 0) continue;
        if (wait[0].revents) out = read_line(program.output, line, size, &used, &whole);
        if (wait[1].revents) err = cornu__program_hear(program.complaints, said, sizeof said);
    }
    const int result = cornu__program_end(&program, late);
    if (late) return ETIMEDOUT;
    if (result == 0) return 0;
    strncpy(line, said, size - 1);
    line[size - 1] = '\0';
    return -1;
}
