/* Races of devices: who begins with what, whose turn it is, and what is said about it in tables, in
 * the file and in the picture. */
#include "../../examples/cornu/common/mesh_flags.c"   /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/common/refuse.c"       /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/compare/race.c"        /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/compare/race_report.c" /* NOLINT(bugprone-suspicious-include) */

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/images/image.h"
#include "../expect.h"

enum { LIMIT = 256, BATCH = 64 };

static CornuTrainTest *digits(void)
{
    CornuTrainTest *mnist = cornu_mnist_load(.data = "synthetic", .limit = LIMIT);
    assert_non_null(mnist);
    return mnist;
}

static Race race_of(const CornuTrainTest *data, const char *model, int64_t epochs)
{
    return (Race){ .reference = cornu_reference_model(model), .data = data, .epochs = epochs,
                   .batch_size = BATCH };
}

/* ---- Training ---- */

static void equal_devices_get_equal_bits(void **state)
{
    (void)state;
    CornuTrainTest *data = digits();
    Race            race = race_of(data, "mnist_cnn_bn", 2);
    expect_ok(race_open(&race, "cpu,cpu"));
    expect_ok(race_run(&race));
    const Racer *a = &race.racers[0], *b = &race.racers[1];
    assert_int_equal(race.count, 2);
    assert_int_equal(race.samples, LIMIT);
    assert_memory_equal(&a->loss, &b->loss, sizeof a->loss);
    assert_memory_equal(&a->val_loss, &b->val_loss, sizeof a->val_loss);
    assert_memory_equal(&a->val_accuracy, &b->val_accuracy, sizeof a->val_accuracy);
    assert_true(a->seconds[0] > 0.0 && a->seconds[1] > 0.0 && b->seconds[1] > 0.0);
    assert_int_equal(race.modelled_count, 0);   /* there is no TPU among them */
    race_close(&race);

    Race other = race_of(data, "mnist_cnn_bn", 2);
    other.seed = 1;
    expect_ok(race_open(&other, "cpu"));
    expect_ok(race_run(&other));
    assert_true(other.racers[0].loss != a->loss);
    race_close(&other);
    cornu_train_test_free(data);
}

/* Epochs in turns are what fit does in one go, at the published rates. */
static void turns_change_nothing(void **state)
{
    (void)state;
    CornuTrainTest *data = digits();
    Race            race = race_of(data, "mnist_convnet", 3);
    expect_ok(race_open(&race, "cpu"));
    expect_ok(race_run(&race));
    const Racer  *racer = &race.racers[0];
    CornuModel   *model = race_model(&race, racer->device);
    CornuHistory *history = cornu_fit(
        model, .x = cornu_reference_input(model, data->train_x), .y = data->train_y, .epochs = 3,
        .batch_size = BATCH, .validation_split = 0.1, .verbose = CORNU_SILENT);
    assert_non_null(history);
    assert_true(cornu_history_get(history, "loss", 2) == racer->loss);
    assert_true(cornu_history_get(history, "val_loss", 2) == racer->val_loss);
    assert_int_equal(race.samples, cornu_history_samples(history, 2));
    assert_int_equal(race.steps, (race.samples + BATCH - 1) / BATCH);
    cornu_history_free(history);
    cornu_model_free(model);
    race_close(&race);
    cornu_train_test_free(data);
}

static void lists_of_devices_are_checked(void **state)
{
    (void)state;
    char longer[300] = "pjrt:";
    memset(longer + 5, 'x', sizeof longer - 6);
    const struct { const char *devices, *message; CornuStatus status; } cases[] = {
        { longer, "a device's name of 299 characters, expected at most 255", CORNU_ERR_ARGUMENT },
        { "cpu,,tpu", "a device without a name", CORNU_ERR_ARGUMENT },
        { "", "a device without a name", CORNU_ERR_ARGUMENT },
        { "cpu,", "a device without a name", CORNU_ERR_ARGUMENT },
        { "cpu,gpu", "\"gpu\"", CORNU_ERR_DEVICE },
        { "tpu:v9", "v9", CORNU_ERR_DEVICE },
        { "cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu,cpu", "more than 8 devices", CORNU_ERR_ARGUMENT },
    };
    CornuTrainTest *data = digits();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Race race = race_of(data, "mnist_cnn", 1);
        assert_int_equal(race_open(&race, cases[i].devices), cases[i].status);
        if (!strstr(cornu_error_message(), cases[i].message))
            fail_msg("%s: %s", cases[i].devices, cornu_error_message());
        cornu_error_take();
        race_close(&race);
    }
    cornu_train_test_free(data);
}

/* ---- Figures ---- */

/* Never; after the first epochs, or the least; when none can read that much. */
static void training_ends_when_all_read_enough(void **state)
{
    (void)state;
    static const struct { double enough; int64_t least, done; } cases[] = {
        { 0.0, 2, 4 }, { 1e-9, 0, 1 }, { 1e-9, 2, 2 }, { 1.5, 2, 4 },
    };
    CornuTrainTest *data = digits();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Race race = race_of(data, "mnist_cnn", 4);
        race.enough = cases[i].enough, race.least = cases[i].least;
        expect_ok(race_open(&race, "cpu,cpu"));
        expect_ok(race_run(&race));
        assert_int_equal(race.done, cases[i].done);
        assert_true(race.racers[1].seconds[race.done - 1] > 0.0);
        race_close(&race);
    }
    cornu_train_test_free(data);
}

/* Without the first one, which compiles. */
static void medians_are_in_the_middle(void **state)
{
    (void)state;
    double seconds[] = { 30.0, 3.0, 1.0, 2.0, 2.0, 9.0 };
    Racer  racer = { .seconds = seconds };
    Race   race = { .done = 1 };
    const double medians[] = { 30.0, 3.0, 2.0, 2.0, 2.0, 2.0 };
    for (; race.done <= 6; race.done++)
        assert_float_equal(race_median(&race, &racer), medians[race.done - 1], 0.0);
    seconds[4] = 4.0;
    race.done = 5;                        /* 3 1 2 4 */
    assert_float_equal(race_median(&race, &racer), 2.5, 0.0);
}

static void a_ratio_is_more_than_chance(void **state)
{
    (void)state;
    static const struct { double a[5], b[5], ratio; } cases[] = {
        { { 90, 4.0, 4.1, 4.0, 4.2 }, { 1, 2.0, 2.1, 2.0, 2.1 }, 4.05 / 2.05 },
        { { 90, 2.0, 2.1, 2.0, 2.1 }, { 1, 4.0, 4.1, 4.0, 4.2 }, 2.05 / 4.05 },
        /* 1.39 times, on noise: each slower once */
        { { 1, 2.5, 1.8, 2.5, 2.5 }, { 1, 1.8, 2.4, 1.8, 1.8 }, 0.0 },
        /* the fastest of one after the slowest of the other, yet no farther than they scatter */
        { { 1, 2.0, 2.2, 2.1, 2.1 }, { 1, 2.3, 2.5, 2.4, 2.4 }, 0.0 },
    };
    Race race = { .done = 5 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Racer a = { .seconds = (double *)cases[i].a },
                    b = { .seconds = (double *)cases[i].b };
        race.done = 5;
        assert_float_equal(race_ratio(&race, &b, &a), cases[i].ratio, 1e-12);
        race.done = 2;                    /* one that counts */
        assert_float_equal(race_ratio(&race, &b, &a), 0.0, 0.0);
    }
    /* Of two epochs three times the spread. */
    double two_a[] = { 1, 2.0, 2.1 }, two_b[] = { 1, 2.5, 2.6 };
    const Racer a = { .seconds = two_a }, b = { .seconds = two_b };
    race.done = 3;
    assert_float_equal(race_ratio(&race, &a, &b), 0.0, 0.0);
    two_b[1] = two_b[2] = 2.6;
    assert_float_equal(race_ratio(&race, &a, &b), 2.6 / 2.05, 1e-12);
}

static void seconds_have_three_digits(void **state)
{
    (void)state;
    static const struct { double value; const char *text; } cases[] = {
        { 2.5, "2.50 s" }, { 2.49, "2.49 s" }, { 0.0125, "0.0125 s" }, { 17.26, "17.3 s" },
        { 240.4, "240 s" }, { 0.0, "0.00 s" },
    };
    char text[32];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(seconds(text, cases[i].value), cases[i].text);
}

/* ---- A race with TPUs, trained once for the tests that look at it ---- */

static CornuTrainTest *data;
static Race            tpus;

static int train_tpus(void **state)
{
    (void)state;
    data = digits();
    tpus = race_of(data, "mnist_cnn", 1);
    expect_ok(race_open(&tpus, "cpu,tpu:v4-8"));
    expect_ok(race_run(&tpus));
    for (int i = 0; i < 2; i++) {         /* figures that can be foretold */
        Racer *racer = &tpus.racers[i];
        racer->seconds = realloc(racer->seconds, 4 * sizeof *racer->seconds);
        assert_non_null(racer->seconds);
        racer->seconds[0] = 7.0 + i;
        for (int k = 1; k < 4; k++) racer->seconds[k] = i ? 1.0 : 4.0;
    }
    tpus.done = 4;
    tpus.limits.f32_flops = 1e12;
    tpus.limits.bf16_flops = 1.5e12;
    tpus.limits.bf16_instructions = true;
    return 0;
}

static int end_tpus(void **state)
{
    (void)state;
    race_close(&tpus);
    cornu_train_test_free(data);
    return 0;
}

static void rates_follow_from_the_step(void **state)
{
    (void)state;
    const Racer *cpu = &tpus.racers[0], *tpu = &tpus.racers[1];
    const double flops = (double)cornu_model_statistics(cpu->model)->flops * LIMIT / BATCH;
    assert_float_equal(race_gflops(&tpus, cpu), 1e-9 * flops / 4.0, 1e-9);
    assert_float_equal(race_of_limit(&tpus, cpu), flops / 4.0 / 1e12, 1e-9);
    const double bf16 = (double)cornu_model_statistics(tpu->model)->flops * LIMIT / BATCH;
    assert_float_equal(race_of_limit(&tpus, tpu), bf16 / 1.0 / 1.5e12, 1e-9);
    assert_string_equal(race_kind(cpu), "native");
    assert_string_equal(race_kind(tpu), "emulated");
    /* Three convolutions and two dense layers, forward and back, on 64 images: 0.9 GFLOP. */
    assert_true(flops * BATCH / LIMIT > 0.5e9 && flops * BATCH / LIMIT < 2e9);
}

static void epochs_of_published_length_are_modelled(void **state)
{
    (void)state;
    assert_int_equal(tpus.modelled_count, 2);   /* the one named, and v2-8 */
    const char *const profiles[] = { "v2-8", "v4-8" };
    for (int i = 0; i < 2; i++) {
        const ModelledEpoch *row = &tpus.modelled[i];
        assert_string_equal(row->profile->name, profiles[i]);
        assert_int_equal(row->shards, i ? 4 : 8);
        assert_int_equal(row->batch_size * row->steps, 61440);
        assert_float_equal(row->dispatch_s, 60 * 1e-3 * row->profile->dispatch_ms.value, 1e-9);
        assert_float_equal(row->total_s, fmax(row->device_s, row->infeed_s) + row->dispatch_s,
                           1e-9);
        assert_true(row->device_s > 0.0 && row->device_s < 3.0);   /* less than was published */
    }
}

static const char *printed(void (*print)(const Race *race, FILE *to), const Race *race)
{
    static char text[16000];
    FILE       *file = tmpfile();
    print(race, file);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void tables_keep_kinds_of_seconds_apart(void **state)
{
    (void)state;
    const char *text = printed(race_print, &tpus);
    const char *measured = strstr(text, "\nMeasured: mnist_cnn on SYNTHETIC data, 256 samples");
    const char *modelled = strstr(text, "\nModelled: ");
    const char *published = strstr(text, "\nPublished: ");
    assert_true(measured && modelled > measured && published > modelled);
    static const struct { const char *text; int block; } lines[] = {
        { "\ncpu       native   float32             1", 0 },
        { "\ntpu:v4-8  emulated mixed_bfloat16      4", 0 },
        { "\ncpu           7.00     4.00 ", 0 }, { "tpu:v4-8 ran 4.00 times as fast as cpu.", 0 },
        { "1000 GFLOP/s in float32, 1500 in bfloat16", 0 },
        { "\nv2-8           8   1024     60 ", 1 }, { "dispatch s  total s  bound", 1 },
        { "The epochs above are of 256 samples, these of as many as were published", 1 },
        { "\nColab TPU          1024     60    61440         3\n    from ayyucekizrak/", 2 },
        { "\nColab GPU (K80)    1024     60    61440        11\n", 2 },
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *found = strstr(text, lines[i].text);
        if (!found) fail_msg("no \"%s\" in\n%s", lines[i].text, text);
        assert_int_equal((found >= modelled) + (found >= published), lines[i].block);
    }
    Race other = tpus;
    other.done = 1;
    assert_non_null(strstr(printed(race_print, &other), "One epoch does not show which is faster"));
    other.done = 4;
    other.racers[0].seconds[1] = 0.9;
    assert_non_null(strstr(printed(race_print, &other),
                           "tpu:v4-8 and cpu: no difference beyond the spread of their epochs.\n"));
    other.racers[0].seconds[1] = 4.0;
    text = printed(race_print, &tpus);
    assert_null(strstr(text, "is expected"));   /* of a CPU that is faster in bf16 */
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        if (end - line > 80) fail_msg("over 80 columns: %.*s", (int)(end - line), line);
}

static void a_slow_bf16_is_said(void **state)
{
    (void)state;
    Race slow = tpus;
    static const char *const said[] = { "this CPU has none, or has slower ones",
                                        "do 0.50 times what those for float32 do" };
    for (int i = 0; i < 2; i++) {
        slow.limits.bf16_flops = 0.5e12;
        slow.limits.bf16_instructions = i;
        assert_non_null(strstr(printed(race_print, &slow), said[i]));
    }
}

/* ---- Sequences of characters ---- */

/* Samples are sequences, so characters are told, too; without published epochs those run here are
 * modelled. */
static void texts_race_like_images(void **state)
{
    (void)state;
    CornuTrainTest *plays = cornu_shakespeare_load(.data = "synthetic", .limit = 24);
    assert_non_null(plays);
    Race race = race_of(plays, "shakespeare_lstm_quick", 1);
    race.batch_size = 16;
    expect_ok(race_open(&race, "cpu,tpu"));
    expect_ok(race_run(&race));
    assert_int_equal(race.samples, 24);
    assert_int_equal(race.steps, 2);
    assert_int_equal(race_targets(&race), 100);
    assert_int_equal(race.modelled_count, 1);
    assert_int_equal(race.modelled[0].batch_size, 16);
    assert_int_equal(race.modelled[0].steps, 2);
    assert_true(race.modelled[0].device_s > 0.0);
    for (int i = 0; i < 2; i++) {      /* a loss of ln 256 and less, in nats per character */
        assert_true(race.racers[i].loss > 1.0 && race.racers[i].loss < 5.6);
        assert_true(race.racers[i].val_accuracy >= 0.0 && race.racers[i].val_accuracy <= 1.0);
        assert_int_equal(fallbacks(&race.racers[i]), 0);
    }
    race.racers[0].seconds[0] = 2.0;   /* 12 sequences a second */
    race.racers[1].seconds[0] = 1.0;
    static const char *const lines[] = {
        "\nMeasured: shakespeare_lstm_quick on SYNTHETIC data, 24 samples per epoch\nin batches ",
        "\ncpu: 1200 characters/s, 100 for each sample.\n", "\ntpu: 2400 characters/s, 100 for ",
        "\nModelled: seconds per epoch of this length",
        "\nv2-8           8     16      2 ",
        "\nPublished: no times of shakespeare_lstm_quick\n",
    };
    const char *text = printed(race_print, &race);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (!strstr(text, lines[i])) fail_msg("no \"%s\" in\n%s", lines[i], text);
    race_close(&race);

    race.reference = cornu_reference_model("shakespeare_lstm");
    text = printed(print_published, &race);
    assert_non_null(strstr(text, "\nColab TPU          1024    100   102400        17\n"
                                 "    from tensor"));
    assert_non_null(strstr(text, "\nColab TPU          1024    100   102400        19\n"
                                 "    from ayyuce"));
    cornu_train_test_free(plays);
}

/* ---- The file ---- */

static void the_file_has_the_three_lists(void **state)
{
    (void)state;
    char path[] = "/tmp/cornu-race-XXXXXX";
    close(mkstemp(path));
    expect_ok(race_write(&tpus, path));
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    unlink(path);
    assert_non_null(root);
    const char *const lists[] = { "measured", "modelled", "published" };
    for (int i = 0; i < 3; i++) {
        const json_t *list = json_object_get(root, lists[i]);
        assert_int_equal(json_array_size(list), 2);
        for (size_t k = 0; k < json_array_size(list); k++)
            assert_string_equal(lists[i], json_string_value(json_object_get(
                                              json_array_get(list, k), "label")));
    }
    const json_t *cpu = json_array_get(json_object_get(root, "measured"), 0);
    assert_string_equal(json_string_value(json_object_get(cpu, "device")), "cpu");
    assert_float_equal(json_real_value(json_array_get(json_object_get(cpu, "epoch_seconds"), 1)),
                       4.0, 0.0);
    assert_float_equal(json_real_value(json_object_get(cpu, "accuracy")),
                       tpus.racers[0].val_accuracy, 0.0);
    assert_float_equal(json_real_value(json_object_get(cpu, "loss")), tpus.racers[0].loss, 0.0);
    assert_true(json_is_true(json_object_get(json_object_get(root, "data"), "synthetic")));
    assert_string_equal(json_string_value(json_object_get(root, "target")), "class");
    assert_int_equal(json_integer_value(json_object_get(root, "targets_per_sample")), 1);
    assert_int_equal(race_write(&tpus, "/absent/r.json"), CORNU_ERR_FILE);
    json_decref(root);
}

/* ---- The picture ---- */

static int longest(const CornuArray *image, CornuColour colour)
{
    const int64_t  height = image->type.shape.extent[0], width = image->type.shape.extent[1];
    const uint8_t *rgb = image->data;
    int            most = 0;
    for (int64_t y = 0; y < height; y++) {
        int count = 0;
        for (int64_t x = 0; x < width; x++, rgb += 3)
            count += (CornuColour)(rgb[0] << 16 | rgb[1] << 8 | rgb[2]) == colour;
        if (count > most) most = count;
    }
    return most;
}

static void the_picture_has_bars_of_their_length(void **state)
{
    (void)state;
    char       path[] = "/tmp/cornu-race-XXXXXX";
    CornuArray image;
    close(mkstemp(path));
    expect_ok(race_draw(&tpus, path));
    expect_ok(cornu_image_load(path, 3, &image));
    unlink(path);
    assert_int_equal(image.type.shape.extent[1], WIDTH);
    assert_int_equal(image.type.shape.extent[0],
                     MARGIN + HEAD + 2 * AROUND + 6 * ROW + BETWEEN + MARGIN / 2);
    const int cpu = longest(&image, kinds[0].colour), tpu = longest(&image, kinds[1].colour);
    assert_in_range(cpu, 400, WIDTH);
    assert_true(abs(cpu - 4 * tpu) <= 8);
    /* Dots, of one size: 11 s published by a GPU, less on a modelled TPU. */
    assert_in_range(longest(&image, others[0].colour), 8, 14);
    assert_in_range(longest(&image, others[1].colour), 8, 14);
    free(image.data);
    assert_int_equal(race_draw(&tpus, "/absent/r.png"), CORNU_ERR_FILE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_devices_get_equal_bits),
        cmocka_unit_test(turns_change_nothing),
        cmocka_unit_test(lists_of_devices_are_checked),
        cmocka_unit_test(training_ends_when_all_read_enough),
        cmocka_unit_test(medians_are_in_the_middle),
        cmocka_unit_test(a_ratio_is_more_than_chance),
        cmocka_unit_test(seconds_have_three_digits),
        cmocka_unit_test(rates_follow_from_the_step),
        cmocka_unit_test(epochs_of_published_length_are_modelled),
        cmocka_unit_test(tables_keep_kinds_of_seconds_apart),
        cmocka_unit_test(a_slow_bf16_is_said),
        cmocka_unit_test(texts_race_like_images),
        cmocka_unit_test(the_file_has_the_three_lists),
        cmocka_unit_test(the_picture_has_bars_of_their_length),
    };
    return cmocka_run_group_tests(tests, train_tpus, end_tpus);
}
