/* Profiles of batches for XProf, decoded as protobuf; tests/python/test_profile.py has XProf open
 * them. */
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cornu/cornu.h>

#include "../../../device/files/protobuf_internal.h"
#include "../../expect.h"

enum { ROWS = 80, BATCH = 32, STEPS = 3, LINES = 16 };   /* the last batch is half full */

static char folder[] = "/tmp/cornu-profile-XXXXXX";
static char logs[64];

static CornuModel *network(CornuDevice *device)
{
    CornuModel *model = cornu_sequential(.input_shape = { 12, 12, 1 });
    cornu_model_add(model, cornu_conv2d(8, 3, .activation = CORNU_RELU, .name = "conv"));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(10, .activation = CORNU_SOFTMAX));
    expect_ok(cornu_compile(model, .optimizer = cornu_adam(), .device = device,
                            .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    return model;
}

static CornuStatus train(CornuModel *model, int64_t epochs, CornuCallback *one,
                         CornuCallback *other)
{
    static uint8_t images[ROWS * 12 * 12], labels[ROWS];
    for (int i = 0; i < ROWS; i++) labels[i] = (uint8_t)(i % 10);
    for (int i = 0; i < ROWS * 12 * 12; i++) images[i] = (uint8_t)(37 * i % 251);
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(images, CORNU_U8, ROWS, 12, 12, 1),
        .y = cornu_array(labels, CORNU_U8, ROWS), .batch_size = BATCH, .epochs = epochs,
        .verbose = CORNU_SILENT, .callbacks = { one, other });
    cornu_history_free(history);
    return history ? CORNU_OK : cornu_error_take();
}

/* ---- Reading: fields by xplane.proto ---- */

typedef struct {
    char    name[64];
    int     count;                /* of events */
    int64_t first_ps, last_ps, sum_ps;
} Line;

typedef struct {
    char    name[64];
    Line    lines[LINES];
    int     line_count;
    char    events[512][128], stats[64][64];   /* names by number */
    char    categories[512][32];               /* hlo_category of an event's metadata */
    int64_t flops[512];
    int64_t step_nums[8], epochs[8];
    int     whole_count;          /* events "training step", whose two numbers those are */
} Plane;

static Plane planes[4];
static int   plane_count;

static void copy_text(char *to, size_t size, const CornuProtobufField *field)
{
    assert_true(field->kind == CORNU_PROTOBUF_BYTES && field->size < size);
    memcpy(to, field->bytes, field->size);
    to[field->size] = '\0';
}

/* The entry of a map: its key, and the fields of its value. */
static int64_t read_entry(const CornuProtobufField *field, CornuFields *value)
{
    CornuFields        entry = cornu__fields(field->bytes, field->size);
    CornuProtobufField part;
    int64_t            key = 0;
    while (cornu__next_field(&entry, &part)) {
        if (part.field == 1) key = (int64_t)part.bits;
        if (part.field == 2) *value = cornu__fields(part.bytes, part.size);
    }
    assert_false(entry.failed);
    return key;
}

static int64_t read_stat(const CornuProtobufField *field, CornuProtobufField *value)
{
    CornuFields        fields = cornu__fields(field->bytes, field->size);
    CornuProtobufField part;
    int64_t            number = 0;
    while (cornu__next_field(&fields, &part))
        if (part.field == 1) number = (int64_t)part.bits;
        else *value = part;
    assert_false(fields.failed);
    return number;
}

/* Names of stats, then of events with what their metadata say. */
static void read_names(Plane *plane, const CornuProtobufField *field, bool stats)
{
    CornuFields        value = { NULL, NULL, false };
    CornuProtobufField part, number;
    const int64_t      key = read_entry(field, &value);
    assert_true(key > 0 && key < (stats ? 64 : 512));
    while (cornu__next_field(&value, &part)) {
        if (part.field == 1) assert_int_equal(part.bits, key);
        if (part.field == 2) copy_text(stats ? plane->stats[key] : plane->events[key],
                                       stats ? 64 : 128, &part);
        if (part.field != 5) continue;
        const char *name = plane->stats[read_stat(&part, &number)];
        if (!strcmp(name, "hlo_category")) copy_text(plane->categories[key], 32, &number);
        if (!strcmp(name, "flops")) plane->flops[key] = (int64_t)number.bits;
    }
}

static void read_event(Plane *plane, Line *line, const CornuProtobufField *field)
{
    CornuFields        fields = cornu__fields(field->bytes, field->size);
    CornuProtobufField part, number;
    int64_t            id = 0, offset = 0, duration = 0;
    while (cornu__next_field(&fields, &part)) {
        if (part.field == 1) id = (int64_t)part.bits;
        if (part.field == 2) offset = (int64_t)part.bits;
        if (part.field == 3) duration = (int64_t)part.bits;
        if (part.field != 4) continue;
        const char *name = plane->stats[read_stat(&part, &number)];
        assert_true(*name);
        if (strcmp(plane->events[id], "training step") != 0) continue;
        if (!strcmp(name, "step_num")) plane->step_nums[plane->whole_count] = (int64_t)number.bits;
        if (!strcmp(name, "epoch")) plane->epochs[plane->whole_count++] = (int64_t)number.bits;
    }
    assert_true(!fields.failed && id > 0 && *plane->events[id] && offset >= 0 && duration >= 0);
    if (line->count++ == 0) line->first_ps = offset;
    line->last_ps = offset + duration;
    line->sum_ps += duration;
}

static void read_line(Plane *plane, const CornuProtobufField *field)
{
    CornuFields        fields = cornu__fields(field->bytes, field->size);
    CornuProtobufField part;
    Line              *line = &plane->lines[plane->line_count++];
    assert_true(plane->line_count <= LINES);
    while (cornu__next_field(&fields, &part)) {
        if (part.field == 2) copy_text(line->name, sizeof line->name, &part);
        if (part.field == 4) read_event(plane, line, &part);
    }
    assert_false(fields.failed);
}

/* Stats and events are named after the lines, so the plane is read three times. */
static void read_plane(const CornuProtobufField *field)
{
    Plane             *plane = &planes[plane_count++];
    CornuProtobufField part;
    for (uint32_t pass = 0; pass < 3; pass++) {
        CornuFields fields = cornu__fields(field->bytes, field->size);
        while (cornu__next_field(&fields, &part)) {
            if (part.field == 2) copy_text(plane->name, sizeof plane->name, &part);
            if (pass == 0 && part.field == 5) read_names(plane, &part, true);
            if (pass == 1 && part.field == 4) read_names(plane, &part, false);
            if (pass == 2 && part.field == 3) read_line(plane, &part);
        }
        assert_false(fields.failed);
    }
}

/* Reads the only profile of the logs, and removes it. */
static void read_profile(void)
{
    char   pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/plugins/profile/*/*.xplane.pb", logs);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    FILE *file = fopen(found.gl_pathv[0], "rb");
    assert_non_null(file);
    static unsigned char bytes[1 << 20];
    const size_t         size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size > 0 && size < sizeof bytes);
    fclose(file);
    remove(found.gl_pathv[0]);
    globfree(&found);
    memset(planes, 0, sizeof planes);
    plane_count = 0;
    int                hosts = 0;
    CornuFields        space = cornu__fields(bytes, size);
    CornuProtobufField field;
    while (cornu__next_field(&space, &field)) {
        if (field.field == 1) read_plane(&field);
        hosts += field.field == 4;
    }
    assert_false(space.failed);
    assert_int_equal(hosts, 1);
}

static const Line *line_of(const Plane *plane, const char *name)
{
    for (int i = 0; i < plane->line_count; i++)
        if (!strcmp(plane->lines[i].name, name)) return &plane->lines[i];
    fail_msg("%s has no line %s", plane->name, name);
    return NULL;
}

/* ---- Tests ---- */

/* Batches 3 and 4 of steps 1 to 3 of two epochs: the last of one and the first of the next. The
 * device's times are those of its model, to a picosecond an instruction. */
static void a_tpu_has_its_model(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("tpu:v3-8", .shards = 2, .threads = 2);
    CornuModel  *model = network(device);
    expect_ok(train(model, 2, cornu_tensorboard(logs, .profile_batch = 3, .profile_until = 4),
                    NULL));
    read_profile();
    assert_int_equal(plane_count, 2);
    const Plane *host = &planes[0], *tpu = &planes[1];
    assert_string_equal(host->name, "/host:CPU");
    assert_int_equal(host->whole_count, 2);
    assert_int_equal(host->step_nums[0], 3);
    assert_int_equal(host->step_nums[1], 4);
    assert_int_equal(host->epochs[0], 1);
    assert_int_equal(host->epochs[1], 2);
    assert_true(line_of(host, "thread 0, the program's own")->count > 10);
    for (int i = 0; i < host->line_count; i++)   /* another thread that got work in these steps */
        if (!strncmp(host->lines[i].name, "thread ", 7)) assert_true(host->lines[i].count > 0);

    const CornuExecutable *step = cornu_model_train_step(
        model, cornu_type(CORNU_U8, BATCH, 12, 12, 1), cornu_type(CORNU_U8, BATCH));
    CornuTpuModel *modelled = cornu_tpu_model(.executable = step, .passes = CORNU_TPU_HIGHEST);
    assert_non_null(modelled);
    int     ops = 0, products = 0;
    int64_t flops = 0;
    for (int i = 0; i < modelled->op_count; i++) {
        ops += modelled->ops[i].seconds > 0.0;
        products += modelled->ops[i].product.count > 0;
        if (!strncmp(tpu->categories[i + 1], "convolution", 11)) products--;
        flops += tpu->flops[i + 1];
        assert_true(*tpu->categories[i + 1]);
    }
    assert_int_equal(products, 0);
    assert_true(flops >= 2 * modelled->useful_macs);
    assert_string_equal(tpu->name, "/device:TPU:0");
    const Line *lines[] = { line_of(tpu, "Steps"), line_of(tpu, "XLA Modules"),
                            line_of(tpu, "XLA Ops") };
    assert_int_equal(lines[0]->count, 2);
    assert_int_equal(lines[1]->count, 2);
    assert_int_equal(lines[2]->count, 2 * ops);
    assert_float_equal((double)lines[0]->sum_ps, 2e12 * modelled->step_s, 4.0);
    assert_float_equal((double)lines[2]->sum_ps, 2e12 * modelled->device_s, 2.0 * ops);
    assert_float_equal((double)lines[2]->first_ps, 1e12 * modelled->dispatch_s, 1.0);
    assert_float_equal((double)line_of(tpu, "MXU")->sum_ps, 2e12 * modelled->mxu_s, 2.0 * ops);
    assert_float_equal((double)line_of(tpu, "HBM")->sum_ps, 2e12 * modelled->hbm_s, 2.0 * ops);
    cornu_tpu_model_free(modelled);
    cornu_model_free(model);
    cornu_device_close(device);
}

/* A training that ends before the last batch asked for leaves a profile of those that it had. */
static void what_was_trained_is_profiled(void **state)
{
    (void)state;
    CornuModel *model = network(NULL);
    expect_ok(train(model, 1, cornu_tensorboard(logs, .profile_batch = 2, .profile_until = 50),
                    NULL));
    read_profile();
    assert_int_equal(plane_count, 1);
    assert_int_equal(planes[0].whole_count, 2);
    assert_int_equal(planes[0].step_nums[0], 2);
    assert_int_equal(planes[0].step_nums[1], 3);
    expect_ok(train(model, 1, cornu_tensorboard(logs, .profile_batch = 4), NULL));
    char   pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/plugins/profile/*/*.xplane.pb", logs);
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
    cornu_model_free(model);
}

static void only_one_callback_traces(void **state)
{
    (void)state;
    char path[96];
    snprintf(path, sizeof path, "%s/step.json", folder);
    CornuModel *model = network(NULL);
    assert_int_equal(train(model, 1, cornu_trace(path),
                           cornu_tensorboard(logs, .profile_batch = 1)), CORNU_ERR_ARGUMENT);
    assert_int_equal(train(model, 1, cornu_trace(path), cornu_trace(path)), CORNU_ERR_ARGUMENT);
    expect_ok(train(model, 1, cornu_trace(path), cornu_tensorboard(logs)));
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tpu_has_its_model),
        cmocka_unit_test(what_was_trained_is_profiled),
        cmocka_unit_test(only_one_callback_traces),
    };
    if (!mkdtemp(folder)) return 1;
    snprintf(logs, sizeof logs, "%s/logs", folder);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char      command[96];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 1 : failed;
}
