/* Who may join a group: those with the job's key, whatever others say, and at no cost of theirs.
 *
 * test_strangers --knock ADDRESS RANK COUNT is one of them, for launchers (test_launchers.sh): it
 * ends with 0 if it was refused in every way.
 *
 * tests/run: waits
 */
#define _GNU_SOURCE    /* seals of files */

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../device/system/clock_internal.h"
#include "../../../device/log.h"
#include "../../../device/processes/key_internal.h"
#include "../../../device/processes/shm_memory_internal.h"
#include "../../datasets/files.h"
#include "../../expect.h"
#include "ranks.h"
#include "stranger.h"

/* The address of a rank, in CORNU_WORKERS. */
static const char *address_of(int rank)
{
    static char copy[400];
    snprintf(copy, sizeof copy, "%s", getenv("CORNU_WORKERS"));
    char *at = copy;
    for (; rank > 0; rank--) at = strchr(at, ',') + 1;
    at[strcspn(at, ",")] = '\0';
    return at;
}

static CornuStatus meet(CornuProcesses *processes)
{
    int64_t own = 100 + cornu_process_rank(processes), all[RANKS_MOST];
    CORNU__TRY(cornu__processes_gather(processes, "meeting", &own, sizeof own, all));
    for (int i = 0; i < cornu_process_count(processes); i++)
        if (all[i] != 100 + i) return cornu__fail(CORNU_ERR_VALUE, "rank %d is another", i);
    return CORNU_OK;
}

static void expect_success(const Ranks *ranks)
{
    for (int i = 0; i < ranks->count; i++)
        if (!ranks->ends[i].reported || ranks->ends[i].status)
            fail_msg("rank %d: %s", i, ranks->ends[i].message);
}

/* ---- Strangers ---- */

enum { EACH = 5, KNOCKS = EACH * STRANGER_KINDS };

static double knocked_s;

static void knock(const char *address)
{
    for (int i = 0; i < KNOCKS; i++)
        if (!stranger_knocks((StrangerKind)(i % STRANGER_KINDS), address, 1 + i % 2, 3)) _exit(3);
    knocked_s = cornu__seconds();
}

/* Rank 1 comes after strangers who were at rank 0's, and were all answered while that waits; silent
 * ones are still connected. */
static void knock_first(int rank)
{
    if (rank == 1) knock(address_of(0));
}

/* The others are known in 50 ms for each of them, and a second. */
static CornuStatus meet_soon(CornuProcesses *processes)
{
    const double took = cornu__seconds() - knocked_s;
    if (knocked_s > 0 && took > 1 + 0.05 * KNOCKS)
        return cornu__fail(CORNU_ERR_VALUE, "opening takes %g s", took);
    return meet(processes);
}

static void strangers_are_dropped(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 3, *state, 30, knock_first, meet_soon);
    expect_success(&ranks);
}

/* More silent ones than are listened to at once, of whom each is dropped for the next. */
static void crowd(int rank)
{
    if (rank != 1) return;
    for (int i = 0; i < 400; i++)
        if (!stranger_knocks(i % 2 ? STRANGER_SILENT : STRANGER_HALF, address_of(0), 1, 2))
            _exit(3);
    knocked_s = cornu__seconds();
}

static void a_crowd_keeps_nobody_out(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 2, *state, 30, crowd, meet_soon);
    expect_success(&ranks);
}

/* Until no process that the test has started holds a socket at the address any more. */
static void await_free(const char *address)
{
    struct sockaddr_in at = { .sin_family = AF_INET };
    const int          on = 1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    for (int i = 0, free = 0; i < 1000 && !free; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        free = bind(fd, (struct sockaddr *)&at, sizeof at) == 0;
        close(fd);
        poll(NULL, 0, 5);
    }
}

/* The same by TF_CONFIG, where each rank listens by itself. */
static void launch_by_tf_config(int rank)
{
    char text[900] = "{\"cluster\": {\"worker\": [\"";
    for (const char *c = getenv("CORNU_WORKERS"); *c; c++)
        strcat(text, *c == ',' ? "\", \"" : (char[]){ *c, '\0' });
    snprintf(text + strlen(text), 100, "\"]}, \"task\": {\"type\": \"worker\", \"index\": %d}}",
             rank);
    close(atoi(getenv("CORNU_LISTEN_FD")));
    await_free(address_of(rank));
    if (rank == 1) knock(address_of(0));
    unsetenv("CORNU_WORKERS");
    unsetenv("CORNU_RANK");
    unsetenv("CORNU_LISTEN_FD");
    setenv("TF_CONFIG", text, 1);
}

static void strangers_are_dropped_by_tf_config(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 3, *state, 30, launch_by_tf_config, meet_soon);
    expect_success(&ranks);
}

/* Who takes rank 0's place before it listens is not believed, and rank 1 comes again. */
static void pose_first(int rank)
{
    const int listener = atoi(getenv("CORNU_LISTEN_FD"));
    if (rank == 0 && (!stranger_poses(listener, 2, false) || !stranger_poses(listener, 2, true)))
        _exit(3);
}

static void a_false_rank_0_is_not_believed(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 2, *state, 30, pose_first, meet);
    expect_success(&ranks);
}

static int  logged;
static char drop_logged[300];

static void note(void *context, CornuLogLevel level, const char *message)
{
    (void)context, (void)level;
    if (!strstr(message, "dropped a connection")) return;
    logged++;
    if (strstr(message, "key")) snprintf(drop_logged, sizeof drop_logged, "%s", message);
}

static void claim_first(int rank)
{
    if (rank == 0) cornu_set_log(CORNU_LOG_WARNING, note, NULL);
    else if (!stranger_knocks(STRANGER_CLAIMS, address_of(0), 1, 2)) _exit(3);
}

static CornuStatus expect_log(CornuProcesses *processes)
{
    CORNU__TRY(meet(processes));
    if (cornu_process_rank(processes) > 0) return CORNU_OK;
    if (logged == 1 && strstr(drop_logged, "rank 0 dropped a connection from 127.0.0.1:") &&
        strstr(drop_logged, ": it does not have the key of this job"))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "%d lines, \"%s\"", logged, drop_logged);
}

static void strangers_are_logged(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 2, *state, 30, claim_first, expect_log);
    expect_success(&ranks);
}

/* ---- Ranks that are not of the job, or two of one number ---- */

static void take_another_key(int rank)
{
    if (rank == 1) setenv("CORNU_KEY", "a key that only rank 1 has", 1);
}

static void another_key_is_named(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 2, *state, 1, take_another_key, meet);
    ranks_expect(&ranks, 0, CORNU_ERR_PROCESS, "rank 1 has not connected to rank 0 within 1 s; a "
                 "connection was dropped, from 127.0.0.1:");
    ranks_expect(&ranks, 0, CORNU_ERR_PROCESS, "it does not have the key of this job");
    ranks_expect(&ranks, 1, CORNU_ERR_PROCESS, "it has left when it saw this rank's key; is the "
                 "key the same on both?");
    for (int i = 0; i < 2; i++) assert_null(strstr(ranks.ends[i].message, "a key that"));
}

static void be_rank_1(int rank)
{
    if (rank == 2) setenv("CORNU_RANK", "1", 1);
}

static void two_of_one_rank_are_named(void **state)
{
    Ranks ranks;
    ranks_run(&ranks, 3, *state, 2, be_rank_1, meet);
    ranks_expect(&ranks, 0, CORNU_ERR_PROCESS, "rank 0 was reached by a second rank 1; each "
                 "process needs a rank of its own");
}

/* ---- Keys ---- */

static const char *const two[] = { "192.0.2.7:7000", "127.0.0.1:7001" };

static void refuses(const char *key, CornuStatus status, const char *part)
{
    expect_failure(cornu_processes_open(.workers = two, .count = 2, .rank = 0, .timeout_s = 0.2,
                                        .key = key), status, part);
}

static void a_key_is_needed(void **state)
{
    (void)state;
    unsetenv("CORNU_KEY");
    unsetenv("CORNU_KEY_FILE");
    refuses(NULL, CORNU_ERR_ARGUMENT, "the processes have no key to know each other by: set "
            "CORNU_KEY to the same secret on all of them");
    refuses("fifteen letters", CORNU_ERR_ARGUMENT, ".key has a key of 15 characters, expected at "
            "least 16");
    assert_null(strstr(cornu_error_message(), "fifteen"));
    setenv("CORNU_KEY", "short", 1);
    refuses(NULL, CORNU_ERR_ARGUMENT, "CORNU_KEY has a key of 5 characters");
    setenv("CORNU_KEY", "sixteen letters.", 1);
    refuses(NULL, CORNU_ERR_PROCESS, "rank 0 cannot listen at 192.0.2.7:7000, which is not an "
            "address of this host");
    unsetenv("CORNU_KEY");
}

static void key_files_are_their_owners(void **state)
{
    (void)state;
    CornuKey    from_file, given;
    const char *path = files_path(folder, "key"), secret[] = "a secret that is long enough\n";
    setenv("CORNU_KEY_FILE", path, 1);
    refuses(NULL, CORNU_ERR_FILE, "CORNU_KEY_FILE: ");
    files_write(path, secret, strlen(secret));
    for (unsigned mode = 0; mode < 64; mode++) {
        assert_int_equal(chmod(path, 0600 | mode), 0);
        if (mode == 0) expect_ok(cornu__key_read(&from_file, NULL));
        else refuses(NULL, CORNU_ERR_ARGUMENT, "other users may use ");
    }
    expect_ok(cornu__key_read(&given, "a secret that is long enough"));
    assert_memory_equal(&from_file, &given, sizeof given);
    assert_int_equal(chmod(path, 0400), 0);
    static char large[5000];
    memset(large, 'k', sizeof large);
    path = files_path(folder, "large");
    files_write(path, large, sizeof large);
    assert_int_equal(chmod(path, 0400), 0);
    setenv("CORNU_KEY_FILE", path, 1);
    refuses(NULL, CORNU_ERR_ARGUMENT, "has more than 4096 bytes");
    setenv("CORNU_KEY_FILE", folder, 1);
    refuses(NULL, CORNU_ERR_ARGUMENT, "is not a file");
    unsetenv("CORNU_KEY_FILE");
}

/* ---- Shared memory ---- */

static int count_names(void)
{
    int  count = 0;
    DIR *all = opendir("/dev/shm");
    for (struct dirent *entry; all && (entry = readdir(all));)
        count += !strncmp(entry->d_name, "cornu-", 6);
    if (all) closedir(all);
    return count;
}

/* A rank that is killed when it has just made the memory leaves nothing, and nobody else may map it
 * or cut it off. */
static void shared_memory_has_no_name(void **state)
{
    (void)state;
    CornuShmMemory memory = { .file = -1 }, other = { .file = -1 };
    struct stat    is;
    const int      before = count_names();
    assert_int_equal(cornu__shm_create(&memory, 2), 0);
    assert_int_equal(count_names(), before);
    assert_int_equal(fstat(memory.file, &is), 0);
    assert_int_equal(is.st_mode & 07777, 0600);
    assert_int_equal(is.st_nlink, 0);
    assert_int_not_equal(ftruncate(memory.file, 4096), 0);
    other.place = memory.place;
    const pid_t child = fork();
    if (child == 0) {
        if (cornu__shm_map(&other, 2)) _exit(1);
        strcpy(cornu__shm_ring(&other, 0, 1).bytes, "written");
        cornu__shm_unmap(&other);
        other.place.inode++;
        _exit(cornu__shm_map(&other, 2) == 0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_string_equal(cornu__shm_ring(&memory, 0, 1).bytes, "written");
    cornu__shm_hide(&memory);
    assert_int_not_equal(cornu__shm_map(&other, 2), 0);
    cornu__shm_unmap(&memory);
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "--knock")) {
        bool refused = true;
        for (int kind = 0; kind < STRANGER_KINDS; kind++)
            refused &= stranger_knocks((StrangerKind)kind, argv[2], atoi(argv[3]), atoi(argv[4]));
        return !refused;
    }
    static char tcp[] = "tcp", shm[] = "shm";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(strangers_are_dropped, tcp),
        cmocka_unit_test_prestate(strangers_are_dropped, shm),
        cmocka_unit_test_prestate(strangers_are_dropped_by_tf_config, tcp),
        cmocka_unit_test_prestate(a_crowd_keeps_nobody_out, tcp),
        cmocka_unit_test_prestate(a_false_rank_0_is_not_believed, tcp),
        cmocka_unit_test_prestate(strangers_are_logged, tcp),
        cmocka_unit_test_prestate(another_key_is_named, tcp),
        cmocka_unit_test_prestate(two_of_one_rank_are_named, tcp),
        cmocka_unit_test(a_key_is_needed),
        cmocka_unit_test_setup_teardown(key_files_are_their_owners, files_begin, files_end),
        cmocka_unit_test(shared_memory_has_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
