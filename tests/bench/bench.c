#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../device/host/machine/cpu.h"
#include "../../examples/cornu/common/options.h"
#include "../../models/models.h"
#include "../../device/files/file.h"
#include "subject.h"

/* ---- Lists of the command line ---- */

bool bench_listed(const char *list, const char *word)
{
    const size_t length = strlen(word);
    if (!list) return true;
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        if (!strncmp(at, word, length) && (at[length] == ',' || !at[length])) return true;
    return false;
}

int bench_numbers(const char *list, int64_t numbers[BENCH_MOST_NUMBERS])
{
    int count = 0;
    for (const char *at = list; count < BENCH_MOST_NUMBERS; at++) {
        char *end;
        if (*at < '0' || *at > '9') return -1;
        numbers[count] = strtoll(at, &end, 10);
        if (numbers[count++] < 1) return -1;
        at = end;
        if (!*at) return count;
        if (*at != ',') return -1;
    }
    return -1;
}

/* ---- Times ---- */

static double now_of(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double bench_now(void) { return now_of(CLOCK_MONOTONIC); }

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
}

CornuStatus bench_alternate(BenchCase *cases, int count, double seconds)
{
    enum { LEAST_ROUNDS = 3 };
    for (int i = 0; i < count; i++) {
        CornuStatus status = cases[i].run(cases[i].context);
        if (status) return status;
    }
    const double begin = bench_now();
    for (int round = 0; round < BENCH_MOST_ROUNDS; round++) {
        if (round >= LEAST_ROUNDS && bench_now() - begin > seconds * count) break;
        for (int i = 0; i < count; i++) {
            const double busy = now_of(CLOCK_PROCESS_CPUTIME_ID), start = bench_now();
            CornuStatus  status = cases[i].run(cases[i].context);
            if (status) return status;
            cases[i].seconds[round] = bench_now() - start;
            cases[i].busy[round] = now_of(CLOCK_PROCESS_CPUTIME_ID) - busy;
            cases[i].rounds = round + 1;
        }
    }
    for (int i = 0; i < count; i++) {
        bench_sort(cases[i].seconds, cases[i].rounds);
        bench_sort(cases[i].busy, cases[i].rounds);
    }
    return CORNU_OK;
}

double bench_quantile(const BenchCase *measured, double part)
{
    const int last = measured->rounds - 1;
    return measured->seconds[(int)(part * last + 0.5)];
}

/* ---- The page ---- */

json_t *bench_rows(const Bench *bench, const char *group)
{
    json_t *rows = json_object_get(bench->page, group);
    if (rows) return rows;
    json_object_set_new(bench->page, group, json_array());
    return json_object_get(bench->page, group);
}

double bench_number(const json_t *row, const char *name)
{
    return json_number_value(json_object_get(row, name));
}

const char *bench_text(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));
    return text ? text : "";
}

static json_t *machine(void)
{
    char  load[64] = "";
    FILE *file = fopen("/proc/loadavg", "r");
    if (file && !fgets(load, sizeof load, file)) *load = '\0';
    if (file) fclose(file);
    return json_pack("{sssssisf}", "cpu", cornu__cpu()->name, "isa",
                     cornu__isa_name(cornu__isa_in_use()), "threads", cornu__cpu_threads(),
                     "load", strtod(load, NULL));
}

/* ---- The program ---- */

static const struct {
    const char *name;
    CornuStatus (*measure)(Bench *bench);
    void (*print)(const Bench *bench);
} groups[] = {
#define X(name, function) { name, function, function##_print },
    BENCH_MAP(X)
#undef X
};
enum { GROUPS = sizeof groups / sizeof *groups };

static int refuse(const char *flag, const char *value, const char *expected)
{
    fprintf(stderr, "bench: --%s is \"%s\", expected %s\n\nTry 'bench --help'.\n", flag, value,
            expected);
    return 2;
}

/* Whether `known` returns each word of the list. */
static bool all_known(const char *list, const char *(*known)(int i))
{
    for (const char *at = list; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        const size_t length = strcspn(at, ",");
        bool         found = false;
        for (int i = 0; known(i) && !found; i++)
            found = strlen(known(i)) == length && !strncmp(known(i), at, length);
        if (!found) return false;
    }
    return true;
}

static const char *known_isa(int i)
{
    return i <= (int)cornu__cpu()->best ? cornu__isa_name((CornuIsa)i) : NULL;
}

/* "a, b, c" */
static const char *join(char text[256], const char *(*known)(int i))
{
    int used = snprintf(text, 256, "a list of");
    for (int i = 0; known(i); i++)
        used += snprintf(text + used, 256 - (size_t)used, "%s %s", i ? "," : "", known(i));
    return text;
}

static const char *known_group(int i) { return i < GROUPS ? groups[i].name : NULL; }

static const char *known_model(int i)
{
    int count = 0;
    while (subject_model(count)) count++;
    return i < count ? subject_model(i) : bench_compile_network(i - count);
}

/* -1 to continue, or the status to exit with after a message. */
static int check(const Bench *bench, const char *filter)
{
    char    text[256];
    int64_t numbers[BENCH_MOST_NUMBERS];
    SubjectConfig configs[SUBJECT_MOST];
    if (!all_known(filter, known_group)) return refuse("filter", filter, join(text, known_group));
    if (!all_known(bench->models, known_model))
        return refuse("models", bench->models, join(text, known_model));
    if (subject_configs(bench->devices, &(SubjectConfig){ .unset = 0 }, configs) < 0)
        return refuse("devices", bench->devices, "a list of cpu, tpu, and pjrt:NAME without "
                      "options; at most four");
    if (!all_known(bench->isas, known_isa))
        return refuse("isas", bench->isas, join(text, known_isa));
    if (bench->batches && bench_numbers(bench->batches, numbers) < 0)
        return refuse("batches", bench->batches, "a list of whole numbers from 1, as 128,1024");
    return -1;
}

/* All groups by default, but one that takes gigabytes. */
static bool is_wanted(const char *filter, const char *group)
{
    return bench_listed(filter, group) && (filter || strcmp(group, "large"));
}

static CornuStatus run(Bench *bench, const char *filter, const char *json)
{
    CornuStatus status = json ? cornu_file_check(json) : CORNU_OK;
    if (!status) status = bench_limits(bench);
    bool only_limits = true;
    for (int i = 1; i < GROUPS && !status; i++) {
        if (!is_wanted(filter, groups[i].name)) continue;
        fprintf(stderr, "%s ...\n", groups[i].name);
        status = groups[i].measure(bench);
        only_limits = false;
    }
    if (!status && !only_limits) status = bench_limits(bench);
    for (int i = 0; i < GROUPS && !status; i++)
        if (i == 0 || is_wanted(filter, groups[i].name)) groups[i].print(bench);
    if (!status && json && json_dump_file(bench->page, json, JSON_INDENT(1) |
                                          JSON_REAL_PRECISION(6)))
        status = cornu_error_set(CORNU_ERR_FILE, "%s: cannot be written", json);
    return status;
}

int main(int count, char **arguments)
{
    Bench       bench = { .seconds = 1.0 };
    const char *filter = NULL, *json = NULL;
    Options     options = { 0 };
    const Option flags[] = {
        { "filter", OPTION_TEXT, &filter, "LIST",
          "of limits, threads, kernels, steps, scaling, latency, generation, predictor, int8, "
          "generated, overhead, embedding, images, compile, layouts, large; default all but large",
          0, 0, NULL },
        { "models", OPTION_TEXT, &bench.models, "LIST",
          "networks; default all, but only those of models/ except for steps", 0, 0, NULL },
        { "devices", OPTION_TEXT, &bench.devices, "LIST",
          "of cpu, tpu, pjrt:NAME, in turn; default cpu,tpu", 0, 0, NULL },
        { "batches", OPTION_TEXT, &bench.batches, "LIST",
          "batch sizes; default 128,1024 for steps, 128 for kernels, 64 to 4096 for scaling", 0, 0,
          NULL },
        { "shards", OPTION_WHOLE, &bench.shards, "N",
          "of the devices of steps; default as many as each has", 1, 1024, NULL },
        { "isas", OPTION_TEXT, &bench.isas, "LIST",
          "instruction sets for kernels, each in a process of its own; default all there are, or "
          "what CORNU_ISA says", 0, 0, NULL },
        { "seconds", OPTION_NUMBER, &bench.seconds, "S", "to spend on each case, about", 1e-6,
          3600, NULL },
        { "json", OPTION_TEXT, &json, "FILE", "write all of it as JSON", 0, 0, NULL },
        OPTION_END,
    };
    const Program program = { .name = "bench", .extra = flags,
                              .purpose = "Measures this machine's limits, and what part of them "
                                         "kernels, training steps and predictions reach." };
    int usage = options_parse(&options, &program, count, arguments);
    if (usage < 0) usage = check(&bench, filter);
    if (usage >= 0) return usage;

    CornuIsa    isa;
    CornuStatus status = cornu__cpu_isa(&isa);
    bench.page = json_pack("{so}", "machine", machine());
    if (!status) status = run(&bench, filter, json);
    json_decref(bench.page);
    if (!status) return 0;
    fprintf(stderr, "bench: %s\n", cornu_error_message());
    return 1;
}
