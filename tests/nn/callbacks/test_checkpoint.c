/* ModelCheckpoint under scripted logs: its messages and saves, as in Keras
 * (tests/golden/checkpoint, made by make_hooks.py), with our suffix in place of Keras'. */
#include "../../../nn/callbacks/checkpoint_internal.h"

#include "../../../device/memory_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Golden events ---- */

static char saved[100];          /* the path of the last save, "" if there was none */

static CornuStatus remember(CornuModel *model, const char *path, bool weights_only)
{
    (void)model, (void)weights_only;
    snprintf(saved, sizeof saved, "%s", path);
    return CORNU_OK;
}

/* The file's content, with Keras' suffixes replaced by ours. */
static char *read_golden(const char *name, const char *suffix)
{
    static const char *const keras[] = { ".keras", ".weights.h5" };
    char path[200], *text = calloc(1, 1 << 15), *out = calloc(1, 1 << 16);
    snprintf(path, sizeof path, "tests/golden/checkpoint/%s.%s", name, suffix);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s cannot be opened", path);
    assert_true(fread(text, 1, (1 << 15) - 1, file) > 0 || strcmp(name, "quiet") == 0);
    fclose(file);
    char *to = out;
    for (const char *from = text; *from;) {
        size_t skip = 0;
        for (int k = 0; k < 2; k++)
            if (!strncmp(from, keras[k], strlen(keras[k]))) skip = strlen(keras[k]);
        if (skip) to += sprintf(to, ".safetensors");
        else *to++ = *from;
        from += skip ? skip : 1;
    }
    free(text);
    return out;
}

static void setting(CornuModelCheckpointConfig *config, const char *key, const char *value)
{
    const bool yes = strcmp(value, "True") == 0;
    if (!strcmp(key, "filepath")) config->filepath = value;
    else if (!strcmp(key, "verbose")) config->verbose = atoi(value);
    else if (!strcmp(key, "monitor")) config->monitor = value;
    else if (!strcmp(key, "save_best_only")) config->save_best_only = yes;
    else if (!strcmp(key, "save_weights_only")) config->save_weights_only = yes;
    else if (!strcmp(key, "save_freq")) config->save_freq = atoll(value);
    else if (!strcmp(key, "mode")) config->mode = CORNU_MODE_MAX;
    else if (!strcmp(key, "initial_value_threshold")) {
        config->has_initial_value = true;
        config->initial_value_threshold = strtod(value, NULL);
    } else fail_msg("unknown setting %s", key);
}

static void hook(CornuCallback *self, const char *verb)
{
    CornuLog  logs[8];
    CornuLogs values = { 0, logs };
    int64_t   index = atoll(strtok(NULL, " "));
    for (char *word; (word = strtok(NULL, " "));) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        logs[values.count++] = (CornuLog){ word, strtod(equals + 1, NULL) };
    }
    CornuStatus status = CORNU_OK;
    if (!strcmp(verb, "epoch_begin")) {
        status = self->epoch_begin(self, NULL, index, NULL);
    } else if (!strcmp(verb, "epoch_end")) {
        status = self->epoch_end(self, NULL, index, &values);
    } else {
        bool wanted = self->wants_batch_logs && self->wants_batch_logs(self, index);
        status = self->train_batch_end(self, NULL, index, wanted ? &values : NULL);
    }
    assert_int_equal(status, CORNU_OK);
}

static void test_golden(void **state)
{
    const char *name = *state;
    char *events = read_golden(name, "events"), *expected = read_golden(name, "out");
    char *written = NULL;
    size_t size = 0;
    CornuModelCheckpointConfig config = { .file = open_memstream(&written, &size) };
    CornuCallback *checkpoint = NULL;
    char verb[40];

    for (char *line = events, *end; *line; line = end + 1) {
        end = strchr(line, '\n');
        *end = '\0';
        char *space = strchr(line, ' ');
        snprintf(verb, sizeof verb, "%.*s", (int)(space - line), line);
        if (!strcmp(verb, "saves")) {
            assert_string_equal(saved, space + 1);
            saved[0] = '\0';
        } else if (strcmp(verb, "epoch_begin") && strcmp(verb, "epoch_end") &&
                   strcmp(verb, "train_batch_end")) {
            setting(&config, verb, space + 1);
        } else {
            assert_string_equal(saved, "");       /* each save is in the script */
            if (!checkpoint) checkpoint = cornu__checkpoint_create(&config, remember);
            assert_non_null(checkpoint);
            strtok(line, " ");
            hook(checkpoint, verb);
        }
    }
    fclose(config.file);
    assert_string_equal(written, expected);
    checkpoint->free(checkpoint);
    if (strchr(name, '_') == NULL && access("at", F_OK) == 0) rmdir("at");
    free(written);
    free(events);
    free(expected);
}

/* ---- Paths ---- */

static void fill(const char *filepath, const char *expected)
{
    const CornuLogs logs = { 2, (CornuLog[]){ { "loss", 0.5 }, { "val_loss", 0.0123456 } } };
    char *path = NULL;
    CornuStatus status = cornu__fill_path(filepath, 4, 41, &logs, &path);
    if (status != CORNU_OK) fail_msg("%s", cornu_error_message());
    assert_string_equal(path, expected);
    cornu__release(path);
}

static void refuse(const char *filepath, const char *message)
{
    const CornuLogs logs = { 1, &(CornuLog){ "loss", 0.5 } };
    char *path = NULL;
    assert_int_equal(cornu__fill_path(filepath, 4, -1, &logs, &path), CORNU_ERR_ARGUMENT);
    if (!strstr(cornu_error_message(), message)) fail_msg("%s", cornu_error_message());
}

static void test_paths(void **state)
{
    (void)state;
    fill("plain", "plain");
    fill("{epoch}", "5");
    fill("{epoch:03d}-{batch:4d}", "005-  42");
    fill("{val_loss:.2f}|{val_loss:.3e}|{loss}|{val_loss}", "0.01|1.235e-02|0.5|0.0123456");
    fill("{loss:08.3f}{epoch:.1f}", "0000.5005.0");
    fill("{{epoch}}", "{epoch}");
    refuse("{val_los:.2f}", "no log \"val_los\", expected one of epoch, loss");
    refuse("{batch}", "no log \"batch\"");
    refuse("{epoch:02x}", "\"02x\"");
    refuse("{epoch:-1d}", "\"-1d\"");
    refuse("{epoch:999999999d}", "999999999d");
    refuse("{loss:n}", "\"n\"");
    refuse("{loss:.f}", "\".f\"");
    refuse("{loss:d}", "cannot be shown");
    refuse("{epoch", "not closed");
    refuse("{loss:%n}", "%n");
}

static void test_constructor(void **state)
{
    (void)state;
    static const struct { CornuModelCheckpointConfig config; const char *message; } cases[] = {
        { { 0 }, "filepath is required" },
        { { .filepath = "a.keras", .save_weights_only = true }, ".weights.h5" },
        { { .filepath = "a.weights.h5" }, ".safetensors" },
        { { .filepath = "a" }, ".safetensors" },
        { { .filepath = "a.safetensors", .save_freq = -1 }, "save_freq is -1" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(cornu__checkpoint_create(&cases[i].config, remember));
        assert_true(cornu_error_take() != CORNU_OK);
        if (!strstr(cornu_error_message(), cases[i].message))
            fail_msg("%s", cornu_error_message());
    }
}

static void test_unknown_direction(void **state)
{
    (void)state;
    const CornuModelCheckpointConfig config = { .filepath = "a.safetensors", .monitor = "speed",
                                                .save_best_only = true };
    CornuCallback *checkpoint = cornu__checkpoint_create(&config, remember);
    const CornuLogs logs = { 1, &(CornuLog){ "speed", 0.5 } };
    assert_int_equal(checkpoint->epoch_end(checkpoint, NULL, 0, &logs), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "CORNU_MODE_MIN"));
    checkpoint->free(checkpoint);
}

int main(void)
{
    static const char *const names[] = { "every_epoch", "best", "best_accuracy", "best_mode_max",
                                         "best_threshold", "formatted", "weights_only", "quiet",
                                         "every_4_batches" };
    enum { GOLDENS = sizeof names / sizeof *names };
    struct CMUnitTest tests[GOLDENS + 3] = { cmocka_unit_test(test_paths),
                                             cmocka_unit_test(test_constructor),
                                             cmocka_unit_test(test_unknown_direction) };
    for (int i = 0; i < GOLDENS; i++)
        tests[i + 3] = (struct CMUnitTest){ names[i], test_golden, NULL, NULL, (void *)names[i] };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
