/* Event files: complete records with right checksums, with the content that Keras' TensorBoard
 * callback writes (tests/golden/tensorboard, made by make_tensorboard.py). */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../datasets/images/image.h"
#include "../../../nn/callbacks/event_file_internal.h"
#include "../golden.h"

#define FOLDER "tests/golden/tensorboard/"
#define LOGS   "build/tests/tensorboard/"

/* ---- Reading records ---- */

/* CRC-32C from a table: the polynomial as RFC 3720 writes it, bits from the right. */
static uint32_t crc32c(const uint8_t *bytes, size_t size)
{
    static uint32_t table[256];
    for (uint32_t i = 0; !table[255] && i < 256; i++) {
        uint32_t reversed = 0, polynomial = 0x1EDC6F41;
        for (int bit = 0; bit < 32; bit++) reversed |= (polynomial >> bit & 1) << (31 - bit);
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? rest >> 1 ^ reversed : rest >> 1;
        table[i] = rest;
    }
    uint32_t crc = ~0u;
    for (size_t i = 0; i < size; i++) crc = crc >> 8 ^ table[(crc ^ bytes[i]) & 255];
    return ~crc;
}

static void expect_checksum(const uint8_t *bytes, size_t size, const uint8_t *at)
{
    uint32_t masked;
    memcpy(&masked, at, sizeof masked);
    const uint32_t rotated = masked - 0xA282EAD8;
    assert_int_equal(rotated << 15 | rotated >> 17, crc32c(bytes, size));
}

/* The rest of a message. */
typedef struct { const uint8_t *at, *end; } Bytes;

static uint64_t take_varint(Bytes *bytes)
{
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
        assert_true(bytes->at < bytes->end && shift < 64);
        value |= (uint64_t)(*bytes->at & 0x7f) << shift;
        if (!(*bytes->at++ & 0x80)) return value;
    }
}

/* Reads the next field: its number, and its bytes or its value. 0 at the end. */
static int take_field(Bytes *bytes, Bytes *in, uint64_t *value)
{
    if (bytes->at == bytes->end) return 0;
    const uint64_t key = take_varint(bytes);
    uint64_t       size = 0;
    *value = 0;
    switch (key & 7) {
    case 0: *value = take_varint(bytes); break;
    case 1: size = 8; break;
    case 2: size = take_varint(bytes); break;
    default: fail_msg("wire type %d", (int)(key & 7));
    }
    assert_true(size <= (uint64_t)(bytes->end - bytes->at));
    const uint8_t *at = bytes->at;
    bytes->at += size;
    *in = (Bytes){ at, at + size };              /* may be the same object */
    return (int)(key >> 3);
}

/* ---- Events as lines, like make_tensorboard.py's ---- */

typedef struct {
    uint64_t    dtype, extent[4];
    int         rank, string_count;
    Bytes       content, strings[8];
} Tensor;

static Tensor read_tensor(Bytes bytes)
{
    Tensor   tensor = { 0 };
    Bytes    in, dim;
    uint64_t value;
    for (int field; (field = take_field(&bytes, &in, &value)) != 0;) {
        if (field == 1) tensor.dtype = value;
        if (field == 2)
            while (take_field(&in, &dim, &value))
                assert_int_equal(take_field(&dim, &dim, &tensor.extent[tensor.rank++]), 1);
        if (field == 4 || field == 5) tensor.content = in;
        if (field == 8) tensor.strings[tensor.string_count++] = in;
    }
    return tensor;
}

static void print_text(FILE *to, Bytes text)
{
    fprintf(to, "%.*s", (int)(text.end - text.at), (const char *)text.at);
}

static void print_picture(FILE *to, Bytes png)
{
    char       path[] = "/tmp/cornu_png_XXXXXX";
    CornuArray image;
    FILE      *file = fdopen(mkstemp(path), "wb");
    fwrite(png.at, 1, (size_t)(png.end - png.at), file);
    fclose(file);
    expect_ok(cornu_image_load(path, 1, &image));
    for (int64_t i = 0; i < cornu_type_count(image.type); i++)
        fprintf(to, " %d", ((const uint8_t *)image.data)[i]);
    free(image.data);
    unlink(path);
}

static void print_layers(FILE *to, Bytes text)
{
    json_t *model = json_loadb((const char *)text.at, (size_t)(text.end - text.at), 0, NULL);
    json_t *layers = json_object_get(json_object_get(model, "config"), "layers");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        json_t *config = json_object_get(json_array_get(layers, i), "config");
        fprintf(to, " %s", json_string_value(json_object_get(config, "name")));
    }
    json_decref(model);
}

static void print_tensor(FILE *to, const Tensor *tensor)
{
    static const char *const names[] = { [1] = "float32", [2] = "float64", [7] = "object" };
    fprintf(to, " %s ", names[tensor->dtype]);
    for (int i = 0; i < tensor->rank; i++)
        fprintf(to, "%s%d", i ? "x" : "", (int)tensor->extent[i]);
    /* TensorBoard's reader makes a lone string a list of one. */
    if (tensor->rank == 0) fputs(tensor->dtype == 7 ? "1" : "scalar", to);
    const size_t size = tensor->dtype == 1 ? sizeof(float) : sizeof(double);
    for (const uint8_t *at = tensor->content.at; at < tensor->content.end; at += size) {
        double number;
        float  single;
        memcpy(&number, at, tensor->dtype == 1 ? 0 : sizeof number);
        memcpy(&single, at, sizeof single);
        fprintf(to, " %.9g", tensor->dtype == 1 ? (double)single : number);
    }
    for (int i = 0; i < tensor->string_count; i++) {
        if (tensor->rank == 0) print_layers(to, tensor->strings[i]);
        else if (i >= 2) print_picture(to, tensor->strings[i]);
        else fputc(' ', to), print_text(to, tensor->strings[i]);
    }
}

/* FOLDER STEP TAG PLUGIN DTYPE SHAPE VALUE... */
static void print_value(FILE *to, const char *folder, uint64_t step, Bytes bytes)
{
    Bytes    in, tag = { 0 }, plugin = { 0 };
    Tensor   tensor = { 0 };
    uint64_t value;
    for (int field; (field = take_field(&bytes, &in, &value)) != 0;) {
        if (field == 1) tag = in;
        if (field == 8) tensor = read_tensor(in);
        if (field != 9) continue;
        assert_int_equal(take_field(&in, &in, &value), 1);       /* plugin_data */
        assert_int_equal(take_field(&in, &plugin, &value), 1);   /* plugin_name */
    }
    fprintf(to, "%s %llu ", folder, (unsigned long long)step);
    print_text(to, tag);
    fputc(' ', to);
    print_text(to, plugin);
    print_tensor(to, &tensor);
    fputc('\n', to);
}

static void print_event(FILE *to, const char *folder, Bytes bytes, bool first)
{
    Bytes    in, in_summary;
    uint64_t value, step = 0;
    double   time = 0.0;
    bool     has_version = false;
    for (int field; (field = take_field(&bytes, &in, &value)) != 0;) {
        if (field == 1) memcpy(&time, in.at, sizeof time);
        if (field == 2) step = value;
        if (field == 3) has_version = memcmp(in.at, "brain.Event:2", 13) == 0;
        while (field == 5 && take_field(&in, &in_summary, &value))
            print_value(to, folder, step, in_summary);
    }
    assert_true(time > 1.6e9 && time < 1e11);
    assert_int_equal(has_version, first);
}

static void print_file(FILE *to, const char *folder, const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    uint8_t     *bytes = malloc(1 << 20);
    const size_t size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    for (size_t at = 0; at < size;) {
        uint64_t length;
        memcpy(&length, bytes + at, sizeof length);
        assert_true(at + 16 <= size && length <= size - at - 16);
        expect_checksum(bytes + at, 8, bytes + at + 8);
        expect_checksum(bytes + at + 12, length, bytes + at + 12 + length);
        print_event(to, folder, (Bytes){ bytes + at + 12, bytes + at + 12 + length }, at == 0);
        at += length + 16;
    }
    free(bytes);
}

/* The content of all event files of a run, for the caller to free; removes the files if wanted. */
static char *read_logs(const char *logs, bool remove_them)
{
    static const char *const folders[] = { "train", "validation" };
    char  *text = NULL;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    for (int i = 0; i < 2; i++) {
        char folder[200], path[500];
        snprintf(folder, sizeof folder, "%s/%s", logs, folders[i]);
        DIR *directory = opendir(folder);
        for (struct dirent *entry; directory && (entry = readdir(directory));) {
            if (strncmp(entry->d_name, "events.out.tfevents.", 20) != 0) continue;
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
            if (remove_them) unlink(path);
            else print_file(to, folders[i], path);
        }
        if (directory) closedir(directory);
    }
    fclose(to);
    return text;
}

static void clear_logs(const char *logs) { free(read_logs(logs, true)); }

/* Compares line by line: equal words, numbers up to rounding. */
static void expect_lines(const char *name, char *got)
{
    char  path[200], *want = calloc(1, 1 << 16), *save_got, *save_want;
    snprintf(path, sizeof path, FOLDER "%s.txt", name);
    FILE *file = fopen(path, "r");
    if (!file) fail_msg("cannot read %s", path);
    assert_true(fread(want, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    char *a = strtok_r(got, " \n", &save_got), *b = strtok_r(want, " \n", &save_want);
    char  tag[100] = "";
    for (; a && b; a = strtok_r(NULL, " \n", &save_got), b = strtok_r(NULL, " \n", &save_want)) {
        char        *end_a, *end_b;
        const double x = strtod(a, &end_a), y = strtod(b, &end_b);
        if (strchr(b, '/') || strchr(b, '_')) snprintf(tag, sizeof tag, "%s", b);
        const bool same = *end_a || *end_b ? !strcmp(a, b) : fabs(x - y) <= 2e-6 * (1 + fabs(y));
        if (!same) fail_msg("%s: %s: got %s, want %s", name, tag, a, b);
    }
    if (a || b) fail_msg("%s: after %s %s is %s", name, tag, a ? a : b, a ? "too much" : "missing");
    free(want);
}

/* ---- Trainings ---- */

static int open_device(void **state)
{
    *state = cornu_device_open("reference");
    return *state ? 0 : -1;
}

static int close_device(void **state)
{
    cornu_device_close(*state);
    return 0;
}

static CornuArray rows(CornuArray array, int64_t count)
{
    array.type.shape.extent[0] = count;
    return array;
}

static CornuModel *build_with(CornuDevice *device, Golden *golden, CornuOptimizer *optimizer)
{
    CornuModel *model = cornu_sequential(.name = "tiny", .input_shape = { 4, 4, 1 });
    cornu_model_add(model, cornu_conv2d(2, 2));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .device = device, .optimizer = optimizer,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY,
                            .metrics = { CORNU_ACCURACY }));
    for (int i = 0; i < 4; i++) {
        char name[20];
        snprintf(name, sizeof name, "start_%d", i);
        expect_ok(cornu_weight_write(cornu_model_weight(model, i),
                                     golden_array(golden, NULL, name)));
    }
    return model;
}

static CornuModel *build(CornuDevice *device, Golden *golden)
{
    return build_with(device, golden, cornu_sgd(.learning_rate = 0.25));
}

static double half(void *context, int64_t epoch, double rate)
{
    (void)context, (void)epoch;
    return 0.5 * rate;
}

static void fit(CornuModel *model, Golden *golden, int64_t count, int64_t epochs, bool validates,
                CornuCallback *before, CornuCallback *board)
{
    const CornuArray x = golden_array(golden, NULL, "x"), y = golden_array(golden, NULL, "y");
    const CornuArray none = { .data = NULL };
    CornuHistory    *history = cornu_fit(
        model, .x = rows(x, count), .y = rows(y, count), .batch_size = 4, .epochs = epochs,
        .validation_data.x = validates ? rows(x, 8) : none,
        .validation_data.y = validates ? rows(y, 8) : none, .no_shuffle = true,
        .verbose = CORNU_SILENT, .callbacks = { before, board });
    if (!history) fail_msg("%s", cornu_error_message());
    cornu_history_free(history);
}

/* The files stay, for make_tensorboard.py to read. */
static void events_are_those_of_keras(void **state)
{
    static const struct {
        const char            *name;
        int64_t                count, epochs;
        bool                   validates, halves, evaluates;
        CornuTensorboardConfig config;
    } cases[] = {
        { "batches", 10, 2, .validates = true,
          .config = { .histogram_freq = 1, .write_images = true, .update_freq = 1 } },
        { "epochs", 10, 3, .halves = true, .config = { .histogram_freq = 2, .no_graph = true } },
        { "every_2", 16, 2, .validates = true, .config = { .no_graph = true, .update_freq = 2 } },
        { "evaluate", 16, 1, .evaluates = true, .config = { .no_graph = true } },
    };
    Golden golden = golden_open(FOLDER "data.safetensors");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CornuTensorboardConfig config = cases[i].config;
        CornuModel            *model = build(*state, &golden);
        char                   logs[100];
        snprintf(logs, sizeof logs, LOGS "%s", cases[i].name);
        config.log_dir = logs;
        clear_logs(logs);
        fit(model, &golden, cases[i].count, cases[i].epochs, cases[i].validates,
            cases[i].halves ? cornu_learning_rate_scheduler(half) : cornu_lambda_callback(),
            cornu_tensorboard_from(&config));
        if (cases[i].evaluates) {
            clear_logs(logs);
            expect_ok(cornu_evaluate(model, .x = rows(golden_array(&golden, NULL, "x"), 6),
                                     .y = rows(golden_array(&golden, NULL, "y"), 6),
                                     .batch_size = 4, .verbose = CORNU_SILENT,
                                     .callbacks = { cornu_tensorboard_from(&config) }));
        }
        char *got = read_logs(logs, false);
        expect_lines(cases[i].name, got);
        free(got);
        cornu_model_free(model);
    }
    golden_close(&golden);
}

/* Values of epochs are written even if update_freq skips their last batch. */
static void speed_and_epochs_are_written(void **state)
{
    Golden      golden = golden_open(FOLDER "data.safetensors");
    CornuModel *model = build(*state, &golden);
    clear_logs(LOGS "speed");
    fit(model, &golden, 10, 1, true, cornu_lambda_callback(),
        cornu_tensorboard(LOGS "speed", .write_steps_per_second = true, .update_freq = 2));
    char   *text = read_logs(LOGS "speed", false), *epoch, *batch;
    assert_non_null(epoch = strstr(text, "train 0 epoch_steps_per_second scalars float32 scalar "));
    assert_non_null(batch = strstr(text, "train 2 batch_steps_per_second scalars float32 scalar "));
    assert_true(strtod(strstr(epoch, "scalar ") + 7, NULL) > 0.0);
    assert_true(strtod(strstr(batch, "scalar ") + 7, NULL) > 0.0);
    assert_non_null(strstr(text, "train 0 epoch_loss"));
    assert_non_null(strstr(text, "validation 0 epoch_loss"));
    assert_non_null(strstr(text, "validation 3 evaluation_loss_vs_iterations"));
    assert_null(strstr(text, "train 1 batch_"));
    assert_null(strstr(text, "train 3 batch_"));
    free(text);
    cornu_model_free(model);
    golden_close(&golden);
}

/* Keras' iterations are updates: with gradients of two batches each, half as many as batches. */
static void iterations_are_updates(void **state)
{
    Golden      golden = golden_open(FOLDER "data.safetensors");
    CornuModel *model = build_with(*state, &golden, cornu_sgd(.learning_rate = 0.25,
                                                              .gradient_accumulation_steps = 2));
    clear_logs(LOGS "updates");
    fit(model, &golden, 16, 2, true, cornu_lambda_callback(), cornu_tensorboard(LOGS "updates"));
    char *text = read_logs(LOGS "updates", false);
    assert_non_null(strstr(text, "validation 2 evaluation_loss_vs_iterations"));
    assert_non_null(strstr(text, "validation 4 evaluation_loss_vs_iterations"));
    assert_null(strstr(text, "validation 8 evaluation_loss_vs_iterations"));
    free(text);
    cornu_model_free(model);
    golden_close(&golden);
}

/* ---- Unusual values ---- */

static void histograms_leave_out_what_is_no_number(void **state)
{
    const float  same[] = { 2.0f, 2.0f, 2.0f }, none[] = { NAN, INFINITY };
    const float  some[] = { -INFINITY, 1.0f, NAN, 4.0f, 2.5f, INFINITY };
    const char  *at;
    (void)state;
    clear_logs(LOGS "odd");
    CornuEventFile *events = cornu__event_file_open(LOGS "odd/train");
    assert_non_null(events);
    expect_ok(cornu__event_file_histogram(events, "same", 7, same, 3));
    expect_ok(cornu__event_file_histogram(events, "none", 7, none, 2));
    expect_ok(cornu__event_file_histogram(events, "some", 7, some, 6));
    expect_ok(cornu__event_file_flush(events));
    cornu__event_file_close(events);
    char *text = read_logs(LOGS "odd", false);
    assert_null(strstr(text, "none"));
    assert_non_null(at = strstr(text, "train 7 same histograms float64 30x3 2 2 0 2 2 0 "));
    assert_int_equal(strncmp(strchr(at, '\n') - 6, " 2 2 3\n", 7), 0);
    assert_non_null(at = strstr(text, "train 7 some histograms float64 30x3 1 1.1 1 1.1 1.2 0 "));
    assert_non_null(strstr(at, " 2.5 2.6 1 "));
    assert_non_null(strstr(at, " 3.9 4 1\n"));
    free(text);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    static const struct { CornuTensorboardConfig config; CornuStatus status; const char *part; }
    cases[] = {
        { { .profile_batch = -1 }, CORNU_ERR_ARGUMENT, ".profile_batch is -1" },
        { { .profile_batch = 5, .profile_until = 4 }, CORNU_ERR_ARGUMENT, ".profile_until 4" },
        { { .profile_until = 4 }, CORNU_ERR_ARGUMENT, ".profile_batch is 0" },
        { { .profile_batch = 1, .profile_until = 101 }, CORNU_ERR_ARGUMENT, "at most 100 in all" },
        { { .embeddings_freq = 1 }, CORNU_ERR_UNSUPPORTED, ".embeddings_freq is not supported" },
        { { .histogram_freq = -1 }, CORNU_ERR_ARGUMENT, ".histogram_freq is -1" },
        { { .update_freq = -2 }, CORNU_ERR_ARGUMENT, ".update_freq -2" },
        { { .write_images = true }, CORNU_ERR_ARGUMENT, ".write_images without" },
        { { .log_dir = "" }, CORNU_ERR_ARGUMENT, ".log_dir is empty" },
        { { .log_dir = "/dev/null" }, CORNU_ERR_FILE, "/dev/null/: cannot be written" },
        { { .log_dir = "/dev/null/logs" }, CORNU_ERR_FILE, "/dev/null/logs: the folder cannot" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_null(cornu_tensorboard_from(&cases[i].config));
        expect_error(cornu_error_take(), cases[i].status, cases[i].part);
    }
    assert_int_equal(crc32c((const uint8_t *)"123456789", 9), 0xE3069283);   /* the test's own */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(histograms_leave_out_what_is_no_number),
        cmocka_unit_test(events_are_those_of_keras),
        cmocka_unit_test(iterations_are_updates),
        cmocka_unit_test(iterations_are_updates),
        cmocka_unit_test(speed_and_epochs_are_written),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
