#include "misuses.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WELL, NOT_REFUSED, NO_MESSAGE, OTHER_MESSAGE };
static const char *const ends[] = { "well", "was not refused", "left no message",
                                    "left another message" };

static bool says(const char *message, const char *words)
{
    char word[80];
    while (*words) {
        const size_t length = strcspn(words, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, words);
        if (!strstr(message, word)) return false;
        words += length + (words[length] == '|');
    }
    return true;
}

/* In the child: runs the misuse. */
static int end_of(const Misuse *misuse)
{
    if (!misuse->misuse()) return NOT_REFUSED;
    if (!*cornu_error_message()) return NO_MESSAGE;
    return says(cornu_error_message(), misuse->says) ? WELL : OTHER_MESSAGE;
}

static bool try(const Misuse *misuse)
{
    int  status, pipes[2];
    char message[1200] = "";
    fflush(stdout);
    assert_int_equal(pipe(pipes), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static const int crashes[] = { SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL };
        for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
            signal(crashes[i], SIG_DFL);   /* else cmocka's handler would run in the child */
        alarm(60);
        const int end = end_of(misuse);
        if (write(pipes[1], cornu_error_message(), strlen(cornu_error_message())) < 0) _exit(99);
        _exit(end);
    }
    close(pipes[1]);
    if (read(pipes[0], message, sizeof message - 1) < 0) message[0] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == WELL) return true;
    if (WIFSIGNALED(status))
        printf("# %s: crashed with signal %d\n", misuse->what, WTERMSIG(status));
    else
        printf("# %s: %s: \"%s\", expected \"%s\"\n", misuse->what,
               WEXITSTATUS(status) < 4 ? ends[WEXITSTATUS(status)] : "ended", message,
               misuse->says);
    return false;
}

static const Misuse *all;
static size_t        all_count;

static void misuses_are_refused(void **state)
{
    (void)state;
    int failed_ones = 0;
    for (size_t i = 0; i < all_count; i++) failed_ones += !try(&all[i]);
    if (failed_ones) fail_msg("%d of %zu misuses", failed_ones, all_count);
}

int misuses_run(const Misuse *misuses, size_t count)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(misuses_are_refused) };
    all = misuses;
    all_count = count;
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
