/* Recurrent layers whose kernels a mesh cuts by units train as whole ones do: of all kinds, with
 * masks, states and dropout, cut along columns or rows, in any number of processes.
 * tests/run: quick */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../../nn/cornu.h"
#include "../../device/pjrt/opened.h"
#include "../../device/processes/results.h"
#include "../../quick.h"
#include "../../skip.h"

enum { STEPS = 10, BATCH = 8, TIMES = 7, WORDS = 12, UNITS = 16 };

static const int meshes[][2] = { { 2, 2 }, { 1, 4 }, { 1, 2 }, { 2, 4 } };
enum { MESHES = sizeof meshes / sizeof *meshes, FEW = 2 };

/* ---- The networks ---- */

/* Words, of which 0 is masked if `masks`, a layer, and the next words; of a layer that gives its
 * last step alone the first of these. */
static CornuModel *around(CornuLayer *layer, bool masks)
{
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, 8, .mask_zero = masks));
    cornu_model_add(model, layer);
    cornu_model_add(model, cornu_dense(WORDS, .activation = CORNU_SOFTMAX));
    return model;
}

#define ALL .return_sequences = true, .name = "cut"

static CornuModel *lstm(void) { return around(cornu_lstm(UNITS, ALL), false); }
static CornuModel *gru(void) { return around(cornu_gru(UNITS, ALL), false); }
static CornuModel *simple_rnn(void) { return around(cornu_simple_rnn(UNITS, ALL), false); }
static CornuModel *masked_lstm(void) { return around(cornu_lstm(UNITS, ALL), true); }
static CornuModel *masked_gru(void) { return around(cornu_gru(UNITS, ALL), true); }
static CornuModel *last_lstm(void) { return around(cornu_lstm(UNITS, .name = "cut"), true); }
static CornuModel *backwards(void)
{
    return around(cornu_lstm(UNITS, ALL, .go_backwards = true), true);
}

static CornuModel *stateful(void)
{
    return around(cornu_lstm(UNITS, ALL, .stateful = true), false);
}

static CornuModel *stateful_gru(void)
{
    return around(cornu_gru(UNITS, ALL, .stateful = true, .no_bias = true), true);
}

static CornuModel *reset_before(void)
{
    return around(cornu_gru(UNITS, ALL, .no_reset_after = true), true);
}

static CornuModel *of_relu(void)
{
    return around(cornu_lstm(UNITS, ALL, .activation = CORNU_RELU,
                             .recurrent_activation = CORNU_HARD_SIGMOID), false);
}

static CornuModel *hard(void)
{
    return around(cornu_lstm(UNITS, ALL, .recurrent_activation = CORNU_HARD_SIGMOID), false);
}

static CornuModel *dropped(void)
{
    return around(cornu_lstm(UNITS, ALL, .dropout = 0.2, .recurrent_dropout = 0.3), false);
}

static CornuModel *both_ways(void)
{
    return around(cornu_bidirectional(cornu_gru(UNITS, ALL)), true);
}

static CornuModel *cells(void)
{
    CornuLayer *stacked = cornu_stacked_rnn_cells(
        .cells = { cornu_lstm_cell(UNITS), cornu_gru_cell(UNITS) });
    return around(cornu_rnn(stacked, ALL), true);
}

static CornuModel *conv_lstm(void)
{
    CornuModel *model = cornu_sequential(.name = "model", .input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, 8));
    cornu_model_add(model, cornu_reshape({ TIMES, 2, 2, 2 }));
    cornu_model_add(model, cornu_conv_lstm2d(8, 2, .padding = CORNU_SAME, ALL));
    cornu_model_add(model, cornu_reshape({ TIMES, 32 }));
    cornu_model_add(model, cornu_dense(WORDS, .activation = CORNU_SOFTMAX));
    return model;
}

/* 24 columns divide into 2 and 4 slices, 6 units into 2 alone. */
static CornuModel *few_units(void) { return around(cornu_lstm(6, ALL), false); }

static const CornuLayoutRow units[] = {
    { "cut/.*kernel", { NULL, "model" } }, { "cut/.*bias", { "model" } }, { 0 }
};
static const CornuLayoutRow gru_units[] = {   /* of two rows of biases */
    { "cut/.*kernel", { NULL, "model" } }, { "cut/.*bias", { NULL, "model" } }, { 0 }
};
static const CornuLayoutRow kernels[] = { { "cut/.*kernel", { NULL, "model" } }, { 0 } };
static const CornuLayoutRow recurrent[] = { { "recurrent_kernel", { NULL, "model" } }, { 0 } };
static const CornuLayoutRow of_input[] = { { "cell/kernel", { NULL, "model" } }, { 0 } };
static const CornuLayoutRow joined[] = {   /* both directions' units side by side, then rows */
    { "recurrent_kernel", { NULL, "model" } }, { "dense.*kernel", { "model" } }, { 0 }
};
static const CornuLayoutRow rows[] = { { "recurrent_kernel", { "model" } }, { 0 } };
static const CornuLayoutRow filters[] = {
    { "cut/.*kernel", { NULL, NULL, NULL, "model" } }, { "cut/.*bias", { "model" } }, { 0 }
};
static const CornuLayoutRow both[] = { { "cut/.*kernel", { "batch", "model" } }, { 0 } };
static const CornuLayoutRow together[] = { { "recurrent_kernel", { NULL, "batch+model" } }, { 0 } };

typedef struct {
    const char           *name;
    CornuModel           *(*layers)(void);
    const CornuLayoutRow *layout_map;
} Case;

static const Case cases[] = {
    { "lstm", lstm, units },                 { "gru", gru, gru_units },
    { "simple_rnn", simple_rnn, kernels },   { "masked lstm", masked_lstm, units },
    { "masked gru", masked_gru, gru_units }, { "last step", last_lstm, units },
    { "backwards", backwards, units },       { "stateful", stateful, units },
    { "stateful gru", stateful_gru, kernels }, { "reset before", reset_before, kernels },
    { "relu", of_relu, units },              { "hard sigmoid", hard, units },
    { "dropout", dropped, units },           { "bidirectional", both_ways, gru_units },
    { "cells", cells, kernels },             { "conv_lstm", conv_lstm, filters },
    { "few units", few_units, kernels },
    { "recurrent kernel", lstm, recurrent }, { "input's kernel", gru, of_input },
    { "rows", lstm, rows },                  { "rows of gru", gru, rows },
    { "rows of simple_rnn", simple_rnn, rows }, { "both axes", lstm, both },
    { "along both", gru, together },         { "rows of both ways", both_ways, joined },
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Training ---- */

static CornuDevice *open_mesh(const char *name, const Case *c, const int mesh[2],
                              CornuProcesses *processes)
{
    const CornuMesh of = cornu_device_mesh(.shape = { mesh[0], mesh[1] });
    CornuDevice    *device = cornu_device_open(name, .threads = 2, .processes = processes,
                                               .shards = mesh[0] * mesh[1]);
    if (!device || !cornu_device_set_mesh(device, &of, NULL, c->layout_map)) return device;
    cornu_device_close(device);
    return NULL;
}

static CornuStatus train(const Case *c, CornuDevice *device, double losses[STEPS])
{
    int32_t text[BATCH * TIMES], next[BATCH * TIMES], first[BATCH];
    cornu_set_random_seed(7);
    CornuModel *model = c->layers();
    CORNU__TRY(cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01),
                             .device = device, .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    const bool last = cornu_model_output_shape(model).rank == 2;
    for (int k = 0; k < STEPS; k++) {
        for (int j = 0; j < BATCH * TIMES; j++) {
            text[j] = (k * 31 + j * 29 + j / 5) % WORDS;
            next[j] = (text[j] * 5 + 1 + j % 2) % WORDS;
            first[j / TIMES] = next[j];
        }
        CORNU__TRY(cornu_train_on_batch(
            model, .values = &losses[k], .x = cornu_array(text, CORNU_I32, BATCH, TIMES),
            .y = last ? cornu_array(first, CORNU_I32, BATCH)
                      : cornu_array(next, CORNU_I32, BATCH, TIMES)));
    }
    cornu_model_free(model);
    return CORNU_OK;
}

static CornuStatus train_over(const char *name, const Case *c, const int mesh[2],
                              CornuProcesses *processes, double losses[STEPS])
{
    CornuDevice *device = open_mesh(name, c, mesh, processes);
    CORNU__TRY(device ? train(c, device, losses) : cornu_error_take());
    cornu_device_close(device);
    return CORNU_OK;
}

/* A sum of n terms in another order differs by about sqrt(n) roundings of 2^-24 (Higham, "Accuracy
 * and Stability of Numerical Algorithms", section 2.8); ten steps add ten of these. */
static void expect_curve(const char *device, const Case *c, const int mesh[2],
                         const double whole[STEPS])
{
    double cut[STEPS];
    if (train_over(device, c, mesh, NULL, cut))
        fail_msg("%s, %d x %d: %s", c->name, mesh[0], mesh[1], cornu_error_message());
    for (int k = 0; k < STEPS; k++)
        if (!(fabs(cut[k] - whole[k]) <= STEPS * sqrt(256.0) * 0x1p-24 * whole[k]))
            fail_msg("%s on %s, %d x %d, step %d: loss %.9g, %.9g without a mesh", c->name, device,
                     mesh[0], mesh[1], k, cut[k], whole[k]);
}

static void meshes_agree(void **state)
{
    (void)state;
    for (const Case *c = cases; c < cases + CASES; c++) {
        double       whole[STEPS];
        CornuDevice *device = cornu_device_open("cpu", .threads = 2);
        if (train(c, device, whole)) fail_msg("%s: %s", c->name, cornu_error_message());
        cornu_device_close(device);
        for (int m = 0; m < quick(FEW, MESHES); m++) expect_curve("cpu", c, meshes[m], whole);
    }
}

/* ---- Processes ---- */

static CornuStatus train_all(CornuProcesses *processes)
{
    char name[80];
    for (const Case *c = cases; c < cases + CASES; c++)
        for (int m = 0; m < quick(FEW, MESHES); m++) {
            double losses[STEPS];
            if (processes && meshes[m][0] * meshes[m][1] < cornu_process_count(processes)) continue;
            CORNU__TRY(train_over("cpu", c, meshes[m], processes, losses));
            snprintf(name, sizeof name, "%s, %d x %d", c->name, meshes[m][0], meshes[m][1]);
            result(name, losses, sizeof losses);
        }
    return CORNU_OK;
}

static void processes_agree(void **state)
{
    (void)state;
    const int counts[] = { quick(4, 2), quick(0, 4), 0 };
    results_agree("shm", counts, CASES * quick(FEW, MESHES - 1), train_all);
}

/* ---- XLA ---- */

/* A while with collectives in it. */
static void pjrt_agrees(void **state)
{
    (void)state;
    if (pjrt_most_shards() < 8) SKIP_FOR("pjrt: eight devices");
    for (const Case *c = cases; c < cases + CASES; c += quick(4, 1)) {
        double       whole[STEPS];
        CornuDevice *device = cornu_device_open(pjrt_name(), .shards = 1);
        if (train(c, device, whole)) fail_msg("%s: %s", c->name, cornu_error_message());
        cornu_device_close(device);
        expect_curve(pjrt_name(), c, meshes[0], whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_agree), cmocka_unit_test(meshes_agree),
        cmocka_unit_test(pjrt_agrees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
