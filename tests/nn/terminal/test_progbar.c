/* The progress bar replays scripted events; every byte must be what Keras wrote
 * (tests/golden/progbar, made by make_progbar.py). */
#include "../../../nn/training/progbar_logger.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define GOLDEN "tests/golden/progbar/"

static double now;
static double scripted_clock(void) { return now; }

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *text = calloc(*size + 1, 1);
    assert_int_equal(fread(text, 1, *size, file), *size);
    fclose(file);
    return text;
}

enum { MAX_VALUES = 16 };

/* The remaining "name=value" words of a line that strtok splits. */
static CornuLogs rest_of_line(CornuLog *logs)
{
    CornuLogs result = { 0, logs };
    for (char *word; (word = strtok(NULL, " ")) && result.count < MAX_VALUES;) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        logs[result.count++] = (CornuLog){ word, strtod(equals + 1, NULL) };
    }
    return result;
}

typedef struct {
    CornuBarStyle  style;
    CornuBar      *bar;
    CornuCallback *logger;
    FILE          *out;
} Replay;

static bool is_yes(const char *word) { return strcmp(word, "yes") == 0; }

static void setting(Replay *replay, const char *verb, const char *word)
{
    CornuBarStyle *style = &replay->style;
    if (!strcmp(verb, "target")) style->target = strcmp(word, "unknown") ? atoll(word) : -1;
    else if (!strcmp(verb, "width")) style->width = atoi(word);
    else if (!strcmp(verb, "verbose")) style->verbose = atoi(word);
    else if (!strcmp(verb, "interval")) style->interval = strtod(word, NULL);
    else if (!strcmp(verb, "unit")) style->unit = strcmp(word, "sample") ? "step" : "sample";
    else if (!strcmp(verb, "averaged")) style->averaged = is_yes(word);
    else if (!strcmp(verb, "display")) style->moving = !strcmp(word, "dynamic");
    else if (!strcmp(verb, "encoding")) style->utf8 = !strcmp(word, "utf-8");
    else fail_msg("unknown event %s", verb);
}

static void set_params(Replay *replay)
{
    CornuParams params = { .verbose = 0, .epochs = 1, .steps = -1 };
    for (char *word; (word = strtok(NULL, " "));) {
        if (!strncmp(word, "verbose=", 8)) params.verbose = atoi(word + 8);
        if (!strncmp(word, "epochs=", 7)) params.epochs = atoll(word + 7);
        if (!strncmp(word, "steps=", 6) && strcmp(word + 6, "unknown"))
            params.steps = atoll(word + 6);
    }
    replay->logger = cornu_progbar(.file = replay->out, .style = &replay->style,
                                   .clock = scripted_clock);
    assert_non_null(replay->logger);
    replay->logger->params = params;
}

/* Calls the hook of that name, as fit would: logs of batches only if they are wanted. */
static void hook(CornuCallback *self, const char *verb)
{
    const struct { const char *name; CornuHook *plain; CornuIndexHook *indexed; } hooks[] = {
        { "train_begin", self->train_begin, NULL }, { "train_end", self->train_end, NULL },
        { "epoch_begin", NULL, self->epoch_begin }, { "epoch_end", NULL, self->epoch_end },
        { "train_batch_end", NULL, self->train_batch_end },
        { "test_begin", self->test_begin, NULL }, { "test_end", self->test_end, NULL },
        { "test_batch_end", NULL, self->test_batch_end },
        { "predict_begin", self->predict_begin, NULL },
        { "predict_end", self->predict_end, NULL },
        { "predict_batch_end", NULL, self->predict_batch_end },
    };
    for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++) {
        if (strcmp(hooks[i].name, verb)) continue;
        CornuLog logs[MAX_VALUES];
        int64_t index = hooks[i].indexed ? atoll(strtok(NULL, " ")) : 0;
        CornuLogs values = rest_of_line(logs);
        bool told = !strstr(verb, "batch") || self->wants_batch_logs(self, index);
        const CornuLogs *given = told ? &values : NULL;
        assert_int_equal(hooks[i].indexed ? hooks[i].indexed(self, NULL, index, given)
                                          : hooks[i].plain(self, NULL, given), CORNU_OK);
        return;
    }
    fail_msg("unknown hook %s", verb);
}

static void event(Replay *replay, char *line)
{
    char *verb = strtok(line, " ");
    if (!strcmp(verb, "time")) {
        now = strtod(strtok(NULL, " "), NULL);
    } else if (!strcmp(verb, "begin")) {
        replay->bar = cornu_bar_create(&replay->style, replay->out, now);
        assert_non_null(replay->bar);
    } else if (!strcmp(verb, "params")) {
        set_params(replay);
    } else if (replay->logger) {
        hook(replay->logger, verb);
    } else if (replay->bar) {
        CornuLog logs[MAX_VALUES];
        int64_t current = atoll(strtok(NULL, " "));
        CornuLogs values = rest_of_line(logs);
        bool last = !strcmp(verb, "finish") ||
                    (!strcmp(verb, "update") && current >= replay->style.target &&
                     replay->style.target >= 0);
        assert_int_equal(cornu_bar_update(replay->bar, current, &values, last, now), CORNU_OK);
    } else {
        setting(replay, verb, strtok(NULL, " "));
    }
}

static void replay_golden(const char *name)
{
    char path[200], *written = NULL;
    size_t size, expected_size, written_size = 0;
    snprintf(path, sizeof path, GOLDEN "%s.events", name);
    char *events = read_file(path, &size);
    snprintf(path, sizeof path, GOLDEN "%s.out", name);
    char *expected = read_file(path, &expected_size);

    Replay replay = { .out = open_memstream(&written, &written_size) };
    replay.style = cornu_bar_style((CornuTerminal){ true, true, 80, CORNU_256_COLOURS });
    for (char *line = events, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        event(&replay, line);
    }
    fclose(replay.out);

    if (written_size != expected_size || memcmp(written, expected, expected_size)) {
        size_t at = 0;
        while (at < expected_size && at < written_size && written[at] == expected[at]) at++;
        fail_msg("%s: byte %zu differs (%zu written, %zu expected)\n"
                 "written  %.200s\nexpected %.200s",
                 name, at, written_size, expected_size, written + at, expected + at);
    }
    cornu_bar_free(replay.bar);
    if (replay.logger) replay.logger->free(replay.logger);
    free(written);
    free(events);
    free(expected);
}

static const char *const names[] = {
    "ascii", "averaged", "beyond_target", "digits_10", "digits_1000", "digits_1000000",
    "digits_1001", "digits_9", "digits_99", "eta_edges", "evaluate_verbose1",
    "evaluate_verbose2", "fit_1_verbose1", "fit_1_verbose2", "fit_2_verbose1",
    "fit_2_verbose2", "fit_unknown_steps", "five_verbose0", "five_verbose1", "five_verbose2",
    "interval", "no_values", "one_step", "per_step_edges", "predict_verbose1",
    "predict_verbose2", "shorter_line", "static", "steps_1875_fast", "steps_1875_hours",
    "steps_1875_minutes", "steps_1875_us", "unknown_target", "values", "values_verbose2",
    "width_1", "width_30", "width_7", "zero_target",
};

static void test_golden(void **state) { replay_golden(*state); }

/* ---- Streams other than colour terminals, for which Keras has no output to compare ---- */

static char *drawn(CornuTerminal terminal)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    CornuBarStyle style = cornu_bar_style(terminal);
    style.target = 4;
    style.width = 8;
    CornuBar *bar = cornu_bar_create(&style, out, 0.0);
    CornuLogs logs = { 1, &(CornuLog){ "loss", 0.25 } };
    cornu_bar_update(bar, 1, &logs, false, 1.0);
    cornu_bar_update(bar, 2, NULL, false, 1.01);        /* too soon */
    cornu_bar_free(bar);
    fclose(out);
    return text;
}

static void test_other_streams(void **state)
{
    (void)state;
    char *text = drawn((CornuTerminal){ false, false, 80, CORNU_PLAIN });
    assert_string_equal(text, "\n1/4 ==...... 3s 1s/step - loss: 0.2500");
    free(text);
    text = drawn((CornuTerminal){ true, true, 80, CORNU_BOLD });
    assert_string_equal(text, "\r\033[1m1/4\033[0m ━━────── "
                              "\033[1m3s\033[0m 1s/step"
                              " - loss: 0.2500");
    free(text);
}

/* Auto: a stream in memory is not a terminal, so an epoch is one line. */
static void test_auto_verbose(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    now = 0.0;
    CornuCallback *bar = cornu_progbar(.file = out, .clock = scripted_clock);
    bar->params.steps = 2;
    bar->train_begin(bar, NULL, NULL);
    bar->epoch_begin(bar, NULL, 0, NULL);
    assert_false(bar->wants_batch_logs(bar, 0));
    for (int64_t b = 0; b < 2; b++) {
        now += 1.0;
        bar->train_batch_end(bar, NULL, b, NULL);
    }
    CornuLogs logs = { 1, &(CornuLog){ "loss", 0.25 } };
    bar->epoch_end(bar, NULL, 0, &logs);
    bar->free(bar);
    fclose(out);
    assert_string_equal(text, "2/2 - 2s - 1s/step - loss: 0.2500\n");
    free(text);
}

/* Names in a loaded model may contain any characters. */
static void test_control_characters(void **state)
{
    (void)state;
    char  *text = NULL;
    size_t size = 0;
    FILE  *out = open_memstream(&text, &size);
    CornuBarStyle style = { .target = 1, .verbose = 2, .unit = "step" };
    CornuBar     *bar = cornu_bar_create(&style, out, 0.0);
    CornuLogs     logs = { 1, &(CornuLog){ "a\033[2J\rb", 0.25 } };
    assert_int_equal(cornu_bar_update(bar, 1, &logs, true, 1.0), CORNU_OK);
    cornu_bar_free(bar);
    fclose(out);
    assert_string_equal(text, "1/1 - 1s - 1s/step - a\\x1b[2J\\x0db: 0.2500\n");
    free(text);
}

/* A pipe whose reader has left: nothing fails, and neither writing nor reading logs goes on. */
static void test_a_reader_that_leaves(void **state)
{
    (void)state;
    int ends[2];
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    FILE *out = fdopen(ends[1], "w");
    CornuBarStyle style = { .target = 9, .width = 5, .verbose = 1, .unit = "step" };
    CornuBar     *bar = cornu_bar_create(&style, out, 0.0);
    assert_true(cornu_bar_due(bar, 1.0));
    close(ends[0]);
    for (int i = 1; i < 9; i++)
        assert_int_equal(cornu_bar_update(bar, i, NULL, false, 1.0 * i), CORNU_OK);
    assert_false(cornu_bar_due(bar, 20.0));
    assert_int_equal(cornu_bar_update(bar, 9, NULL, true, 21.0), CORNU_OK);
    cornu_bar_free(bar);
    fclose(out);
    signal(SIGPIPE, SIG_DFL);
}

int main(void)
{
    enum { GOLDENS = sizeof names / sizeof *names };
    enum { OTHERS = 4 };
    struct CMUnitTest tests[GOLDENS + OTHERS] = { cmocka_unit_test(test_other_streams),
                                                  cmocka_unit_test(test_auto_verbose),
                                                  cmocka_unit_test(test_control_characters),
                                                  cmocka_unit_test(test_a_reader_that_leaves) };
    for (int i = 0; i < GOLDENS; i++)
        tests[i + OTHERS] = (struct CMUnitTest){ names[i], test_golden, NULL, NULL,
                                                 (void *)names[i] };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
