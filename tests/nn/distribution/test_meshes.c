/* Networks of models/ over meshes of eight shards, cut as cornu_default_layout says: the same bits
 * in any number of processes, the same training within rounding over any mesh, one file.
 * tests/run: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../models/models.h"
#include "../../../nn/cornu.h"
#include "../../datasets/files.h"
#include "../../device/processes/results.h"
#include "../../quick.h"
#include "../callbacks/stopper.h"

enum { STEPS = 10, BATCH = 8, TIMES = 16, WORDS = 64 };

static const int meshes[][2] = { { 2, 4 }, { 4, 2 }, { 1, 8 }, { 8, 1 } };
enum { MESHES = sizeof meshes / sizeof *meshes, FEW = 1 };

/* ---- The networks ---- */

typedef struct {
    const char     *name;
    CornuModel     *(*layers)(void);
    CornuOptimizer *(*optimizer)(void);
    double          terms;   /* of its longest sum */
} Network;

/* 8 heads, so that each mesh can deal them out. */
static CornuModel *gpt(void)
{
    static const CornuTextPreset small = { .model = "char_gpt", .channels = 64, .layers = 2,
                                           .heads = 8, .sequence_length = TIMES };
    return cornu_char_gpt(.preset = &small, .vocabulary = WORDS);
}

static CornuModel *cnn(void)
{
    return cornu_reference_model("mnist_cnn")->build(&(CornuNetworkConfig){ 0 });
}

static CornuModel *lstm(void)
{
    static const CornuTextPreset small = { .model = "shakespeare_lstm", .channels = 32,
                                           .units = 64, .layers = 2, .sequence_length = TIMES };
    return cornu_shakespeare_lstm(.preset = &small, .vocabulary = WORDS);
}

static CornuModel *gru(void)
{
    CornuModel *model = cornu_sequential(.name = "gru", .input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, 32));
    cornu_model_add(model, cornu_gru(64, .return_sequences = true));
    cornu_model_add(model, cornu_simple_rnn(32, .return_sequences = true));
    cornu_model_add(model, cornu_dense(WORDS, .activation = CORNU_SOFTMAX));
    return model;
}

static CornuOptimizer *adam(void) { return cornu_adam(); }
/* Clipped by the norm of all shards' gradients together, as models/ trains it; here always. */
static CornuOptimizer *adamw(void)
{
    return cornu_adamw(.learning_rate = 1e-3, .global_clipnorm = 0.1);
}

/* Of a filter's gradient, over all pixels; of a kernel's, over the hidden layer or the rows. */
static const Network networks[] = {
    { "mnist_cnn", cnn, adam, BATCH * 26 * 26 }, { "char_gpt", gpt, adamw, 256 },
    { "shakespeare_lstm", lstm, adam, 256 }, { "gru", gru, adam, 256 },
};
enum { NETWORKS = sizeof networks / sizeof *networks };

static uint8_t images[STEPS * BATCH * 28 * 28];
static int32_t digits[STEPS * BATCH], text[STEPS * BATCH * TIMES], next[STEPS * BATCH * TIMES];

static void make_data(void)
{
    CornuTrainTest *drawn = cornu_mnist_load(.data = "synthetic", .limit = STEPS * BATCH);
    memcpy(images, drawn->train_x.data, sizeof images);
    for (int i = 0; i < STEPS * BATCH; i++) digits[i] = ((uint8_t *)drawn->train_y.data)[i];
    cornu_train_test_free(drawn);
    for (int i = 0; i < STEPS * BATCH * TIMES; i++) {
        text[i] = (i * 29 + i / 7) % WORDS;
        next[i] = ((i + 1) * 29 + (i + 1) / 7) % WORDS;
    }
}

static CornuArray inputs(const Network *network, int step)
{
    return network->layers == cnn
        ? cornu_array(images + step * BATCH * 28 * 28, CORNU_U8, BATCH, 28, 28, 1)
        : cornu_array(text + step * BATCH * TIMES, CORNU_I32, BATCH, TIMES);
}

static CornuArray labels(const Network *network, int step)
{
    return network->layers == cnn
        ? cornu_array(digits + step * BATCH, CORNU_I32, BATCH)
        : cornu_array(next + step * BATCH * TIMES, CORNU_I32, BATCH, TIMES);
}

/* ---- Training ---- */

/* A model compiled for a mesh, or without one (NULL); the device is the caller's. */
static CornuModel *compiled(const Network *network, const int mesh[2], CornuProcesses *processes,
                            CornuDevice **device)
{
    cornu_set_random_seed(7);
    CornuModel *model = network->layers();
    *device = cornu_device_open("cpu", .threads = 2, .processes = processes,
                                .shards = mesh ? mesh[0] * mesh[1] : 1);
    if (mesh && model && *device) {
        const CornuMesh of = cornu_device_mesh(.shape = { mesh[0], mesh[1] });
        CornuLayoutRow *rows = cornu_default_layout(model, of);
        if (rows) cornu_device_set_mesh(*device, &of, NULL, rows);
        cornu_layout_free(rows);
    }
    cornu_compile(model, .optimizer = network->optimizer(), .device = *device,
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    return model;
}

static CornuStatus train(const Network *network, CornuModel *model, int from, int to,
                         double losses[STEPS])
{
    for (int k = from; k < to; k++)
        if (cornu_train_on_batch(model, .values = &losses[k], .x = inputs(network, k),
                                 .y = labels(network, k)))
            return cornu_error_status();
    return CORNU_OK;
}

static CornuStatus train_over(const Network *network, const int mesh[2], CornuProcesses *processes,
                              double losses[STEPS], bool keeps)
{
    char         name[80];
    CornuDevice *device;
    CornuModel  *model = compiled(network, mesh, processes, &device);
    CORNU__TRY(train(network, model, 0, STEPS, losses));
    for (int i = 0; i < cornu_model_weight_count(model) && keeps; i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        static float       values[1 << 17];
        snprintf(name, sizeof name, "%s, %d x %d: %s", network->name, mesh[0], mesh[1], w->path);
        CORNU__TRY(cornu_weight_read(w, cornu_array_from(values, w->type)));
        result(name, values, cornu_type_bytes(w->type));
    }
    cornu_model_free(model);
    cornu_device_close(device);
    return CORNU_OK;
}

/* ---- Processes ---- */

static CornuStatus train_all(CornuProcesses *processes)
{
    char name[80];
    for (int n = 0; n < NETWORKS; n++)
        for (int m = 0; m < quick(FEW, MESHES); m++) {
            double losses[STEPS];
            CORNU__TRY(train_over(&networks[n], meshes[m], processes, losses, true));
            snprintf(name, sizeof name, "%s, mesh %d: losses", networks[n].name, m);
            result(name, losses, sizeof losses);
        }
    return CORNU_OK;
}

static void processes_agree(void **state)
{
    (void)state;
    const int counts[] = { quick(4, 2), quick(0, 4), 0 };
    results_agree("shm", counts, NETWORKS * quick(FEW, MESHES) * 10, train_all);
}

/* ---- Meshes ---- */

/* A sum of n terms in another order differs by about sqrt(n) roundings of 2^-24, relative to what
 * is added (Higham, "Accuracy and Stability of Numerical Algorithms", section 2.8); ten steps add
 * ten of these. */
static double bound(const Network *network, double loss)
{
    return STEPS * sqrt(network->terms) * 0x1p-24 * loss;
}

static void meshes_agree(void **state)
{
    (void)state;
    for (int n = 0; n < NETWORKS; n++) {
        const Network *network = &networks[n];
        double         whole[STEPS], cut[STEPS];
        assert_int_equal(train_over(network, NULL, NULL, whole, false), CORNU_OK);
        assert_true(whole[STEPS - 1] < whole[0]);
        for (int m = 0; m < quick(FEW, MESHES); m++) {
            if (train_over(network, meshes[m], NULL, cut, false))
                fail_msg("%s: %s", network->name, cornu_error_message());
            for (int k = 0; k < STEPS; k++)
                if (!(fabs(cut[k] - whole[k]) <= bound(network, whole[k])))
                    fail_msg("%s, %d x %d, step %d: loss %.9g, %.9g without a mesh", network->name,
                             meshes[m][0], meshes[m][1], k, cut[k], whole[k]);
        }
    }
}

/* ---- Default layouts ---- */

static void expect_layout(const CornuModel *model, CornuMesh mesh, const char *expected)
{
    char            said[2000] = "";
    CornuLayoutRow *rows = cornu_default_layout(model, mesh);
    assert_non_null(rows);
    for (const CornuLayoutRow *row = rows; row->pattern; row++) {
        size_t at = strlen(said);
        int    axis = 0;
        while (!row->axes[axis]) axis++;
        snprintf(said + at, sizeof said - at, "%s %d %s\n", row->pattern, axis, row->axes[axis]);
    }
    assert_string_equal(said, expected);
    cornu_layout_free(rows);
}

static void layouts_are_by_class(void **state)
{
    (void)state;
    const CornuMesh mesh = cornu_device_mesh(.shape = { 2, 4 });
    CornuModel     *model = gpt();
    expect_layout(model, mesh,
                  "^embedding/embeddings$ 0 model\n"
                  "^multi_head_attention/query/kernel$ 1 model\n"
                  "^multi_head_attention/query/bias$ 0 model\n"
                  "^multi_head_attention/key/kernel$ 1 model\n"
                  "^multi_head_attention/key/bias$ 0 model\n"
                  "^multi_head_attention/value/kernel$ 1 model\n"
                  "^multi_head_attention/value/bias$ 0 model\n"
                  "^multi_head_attention/attention_output/kernel$ 0 model\n"
                  "^dense/kernel$ 1 model\n^dense/bias$ 0 model\n^dense_1/kernel$ 0 model\n"
                  "^multi_head_attention_1/query/kernel$ 1 model\n"
                  "^multi_head_attention_1/query/bias$ 0 model\n"
                  "^multi_head_attention_1/key/kernel$ 1 model\n"
                  "^multi_head_attention_1/key/bias$ 0 model\n"
                  "^multi_head_attention_1/value/kernel$ 1 model\n"
                  "^multi_head_attention_1/value/bias$ 0 model\n"
                  "^multi_head_attention_1/attention_output/kernel$ 0 model\n"
                  "^dense_2/kernel$ 1 model\n^dense_2/bias$ 0 model\n^dense_3/kernel$ 0 model\n"
                  "^dense_4/kernel$ 1 model\n^dense_4/bias$ 0 model\n");
    cornu_model_free(model);
    model = cnn();
    expect_layout(model, mesh,
                  "^conv2d/kernel$ 3 model\n^conv2d/bias$ 0 model\n^conv2d_1/kernel$ 2 model\n"
                  "^conv2d_2/kernel$ 3 model\n^conv2d_2/bias$ 0 model\n^dense/kernel$ 0 model\n");
    expect_layout(model, cornu_device_mesh(.shape = { 8, 1 }), "");
    expect_layout(model, cornu_device_mesh(.shape = { 8 }), "");
    expect_layout(model, cornu_device_mesh(.shape = { 2, 3 }), "");
    /* Rows of a batch are dealt over the first axis, or the one of that name; the last other one
     * cuts. */
    expect_layout(model, cornu_device_mesh(.shape = { 2, 32 }, .axis_names = { "x", "y" }),
                  "^conv2d/kernel$ 3 y\n^conv2d/bias$ 0 y\n^conv2d_1/kernel$ 2 y\n"
                  "^conv2d_2/kernel$ 3 y\n^conv2d_2/bias$ 0 y\n^dense/kernel$ 0 y\n");
    expect_layout(model, cornu_device_mesh(.shape = { 64, 2 }, .axis_names = { "x", "batch" }),
                  "^conv2d_1/kernel$ 3 x\n^conv2d_1/bias$ 0 x\n^conv2d_2/kernel$ 2 x\n"
                  "^dense/kernel$ 1 x\n^dense/bias$ 0 x\n^dense_1/kernel$ 0 x\n");
    cornu_model_free(model);
    model = gru();
    expect_layout(model, mesh,
                  "^embedding/embeddings$ 0 model\n^gru/gru_cell/kernel$ 1 model\n"
                  "^gru/gru_cell/recurrent_kernel$ 1 model\n^gru/gru_cell/bias$ 1 model\n"
                  "^simple_rnn/simple_rnn_cell/kernel$ 1 model\n"
                  "^simple_rnn/simple_rnn_cell/recurrent_kernel$ 1 model\n"
                  "^simple_rnn/simple_rnn_cell/bias$ 0 model\n"
                  "^dense/kernel$ 1 model\n^dense/bias$ 0 model\n");
    /* 3 times 64 columns divide into 48 slices, the 64 units of a gate do not. */
    expect_layout(model, cornu_device_mesh(.shape = { 1, 48 }), "");
    cornu_model_free(model);
}

/* Names that are part of others, or no expressions. */
static void layouts_are_of_one_weight(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.input_shape = { 3 });
    cornu_model_add(model, cornu_dense(4, .name = "a.(b", .no_bias = true));
    cornu_model_add(model, cornu_dense(5, .name = "xa.(b"));
    cornu_model_add(model, cornu_dense(7, .name = "[c"));
    expect_layout(model, cornu_device_mesh(.shape = { 2, 2 }),
                  "^a\\.\\(b/kernel$ 1 model\n^xa\\.\\(b/kernel$ 0 model\n");
    cornu_model_free(model);

    model = cornu_sequential();
    cornu_model_add(model, cornu_dense(4));
    assert_null(cornu_default_layout(model, cornu_device_mesh(.shape = { 2, 2 })));
    assert_non_null(strstr(cornu_error_message(), "has no weights yet"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    cornu_model_free(model);
}

/* ---- Files ---- */

static unsigned char first[1 << 22], second[1 << 22];

static void expect_same_files(const char *a, const char *b)
{
    const size_t size = files_read(a, first, sizeof first);
    assert_true(size > 0 && size < sizeof first);
    assert_int_equal(files_read(b, second, sizeof second), size);
    assert_memory_equal(first, second, size);
}

static void save(const Network *network, const int mesh[2], const char *from, const char *to)
{
    CornuDevice *device;
    CornuModel  *model = compiled(network, mesh, NULL, &device);
    if ((from && cornu_model_load_weights(model, from)) || cornu_model_save(model, to))
        fail_msg("%s: %s", network->name, cornu_error_message());
    cornu_model_free(model);
    cornu_device_close(device);
}

/* Initial weights, and those and the slots of a training over one mesh, are written by any. */
static void files_are_whole(void **state)
{
    (void)state;
    char begun[FILES_PATH], trained[FILES_PATH], again[FILES_PATH];
    snprintf(begun, sizeof begun, "%s", files_path(folder, "begun.safetensors"));
    snprintf(trained, sizeof trained, "%s", files_path(folder, "trained.safetensors"));
    snprintf(again, sizeof again, "%s", files_path(folder, "again.safetensors"));
    for (int n = 0; n < NETWORKS; n++) {
        const Network *network = &networks[n];
        double         losses[STEPS];
        CornuDevice   *device;
        CornuModel    *model = compiled(network, meshes[0], NULL, &device);
        assert_int_equal(train(network, model, 0, 2, losses), CORNU_OK);
        assert_int_equal(cornu_model_save(model, trained), CORNU_OK);
        cornu_model_free(model);
        cornu_device_close(device);
        save(network, NULL, NULL, begun);
        for (int m = -1; m < quick(FEW, MESHES); m++) {
            save(network, m < 0 ? NULL : meshes[m], NULL, again);
            expect_same_files(begun, again);
            save(network, m < 0 ? NULL : meshes[m], trained, again);
            expect_same_files(trained, again);
        }
    }
}

/* ---- Backups ---- */

static CornuStatus fit(const int mesh[2], int stop_at, double *loss)
{
    CornuDevice  *device;
    Stopper       stopper = stop_after(stop_at, NULL);
    CornuModel   *model = compiled(&networks[0], mesh, NULL, &device);
    CornuHistory *history = cornu_fit(
        model, .x = cornu_array(images, CORNU_U8, STEPS * BATCH, 28, 28, 1),
        .y = cornu_array(digits, CORNU_I32, STEPS * BATCH), .batch_size = BATCH, .epochs = 1,
        .verbose = CORNU_SILENT,
        .callbacks = { &stopper.base,
                       cornu_backup_and_restore(files_path(folder, "kept"), 1,
                                                .keep_checkpoint = stop_at >= 0) });
    if (history) *loss = cornu_history_get(history, "loss", 0);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_device_close(device);
    return cornu_error_take();
}

/* Stopped over one mesh it goes on over any, or without: with the same bits over the same. */
static void backups_go_on_over_other_meshes(void **state)
{
    (void)state;
    double whole, resumed;
    assert_int_equal(fit(meshes[0], -1, &whole), CORNU_OK);
    for (int m = -1; m < quick(FEW, MESHES); m++) {
        assert_int_equal(fit(meshes[0], 4, &resumed), CORNU_ERR_INTERRUPTED);
        if (fit(m < 0 ? NULL : meshes[m], -1, &resumed)) fail_msg("%s", cornu_error_message());
        assert_true(fabs(resumed - whole) <= (m == 0 ? 0.0 : bound(&networks[0], whole)));
    }
    /* And begun without a mesh. */
    assert_int_equal(fit(NULL, 4, &resumed), CORNU_ERR_INTERRUPTED);
    assert_int_equal(fit(meshes[1], -1, &resumed), CORNU_OK);
    assert_true(fabs(resumed - whole) <= bound(&networks[0], whole));
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_agree), cmocka_unit_test(meshes_agree),
        cmocka_unit_test(layouts_are_by_class), cmocka_unit_test(layouts_are_of_one_weight),
        cmocka_unit_test(files_are_whole), cmocka_unit_test(backups_go_on_over_other_meshes),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
