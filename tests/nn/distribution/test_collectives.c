/* What the shards of a mesh exchange along the axis that cuts a model, in a step of training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../nn/cornu.h"
#include "../../../nn/model/model_internal.h"
#include "../../../tensor/graph_internal.h"

enum { BATCH = 8, TIMES = 6, WORDS = 24, WIDTH = 16, MODEL = 2 };   /* MODEL: the axis, by bits */

/* A line for each exchange over the axis, in the program's order, with the layer that it is for; of
 * those in a loop, how often. */
static void list(const CornuProgram *program, int times, char *text, size_t size)
{
    char often[24] = "";
    CornuText type;
    for (int i = 0; i < program->op_count; i++) {
        const CornuProgramOp *op = &program->ops[i];
        if (op->id == CORNU_OP_SCAN)
            list(op->attributes.scan.body, (int)op->attributes.scan.steps, text, size);
        if (!cornu__crosses(op->id) || op->attributes.shards.axes != MODEL) continue;
        const size_t at = strlen(text);
        if (times > 1) snprintf(often, sizeof often, "%d times ", times);
        snprintf(text + at, size - at, "%s%s %s    %s\n", often, cornu_op_name(op->id),
                 cornu_type_print(&type, cornu_program_type(program, op->out_first)), op->scope);
    }
}

/* Trains a step over a mesh of 2 by 4. */
static void expect(CornuModel *model, const CornuLayoutRow *rows, CornuArray x, CornuArray y,
                   CornuLoss *loss, const char *expected)
{
    char           text[2000] = "";
    double         value;
    CornuStrategy *parallel = cornu_model_parallel(
        .mesh = cornu_device_mesh(.shape = { 2, 4 }), .layout_map = rows);
    CornuStatus status = CORNU_ERR_ARGUMENT;
    CORNU_SCOPE(parallel)
        status = cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01),
                               .loss = loss,
                               .metrics = { y.type.dtype == CORNU_I32 ? CORNU_ACCURACY : NULL });
    if (status || cornu_train_on_batch(model, .x = x, .y = y, .values = &value))
        fail_msg("%s", cornu_error_message());
    list(cornu_graph_program(model->steps->graph), 1, text, sizeof text);
    if (getenv("PRINT")) cornu_program_print(cornu_graph_program(model->steps->graph), stdout);
    if (strcmp(text, expected)) fail_msg("exchanges\n%sexpected\n%s", text, expected);
    cornu_model_free(model);
    cornu_strategy_free(parallel);
}

static float   features[BATCH * TIMES * WIDTH];
static int32_t words[BATCH * TIMES];

static CornuArray vectors(void) { return cornu_array(features, CORNU_F32, BATCH, WIDTH); }
static CornuArray series(void) { return cornu_array(features, CORNU_F32, BATCH, TIMES, WIDTH); }
static CornuArray texts(void) { return cornu_array(words, CORNU_I32, BATCH, TIMES); }

static const CornuLayoutRow block[] = {
    { "heads/(query|key|value)/kernel", { NULL, "model" } },
    { "heads/(query|key|value)/bias", { "model" } },
    { "heads/attention_output/kernel", { "model" } },
    { "up/kernel", { NULL, "model" } }, { "up/bias", { "model" } },
    { "down/kernel", { "model" } }, { 0 }
};

/* A column split, then a row split: a sum forward, one backward. */
static void two_layers(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { WIDTH });
    cornu_model_add(model, cornu_dense(WIDTH, .name = "first"));
    cornu_model_add(model, cornu_dense(32, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(WIDTH, .name = "down"));
    expect(model, block + 3, vectors(), vectors(), cornu_mean_squared_error(),
           "all_reduce f32 (4, 16)    down\n"
           "all_reduce f32 (4, 16)    first/gradient\n");
}

/* Where both factors of a product are cut, the smaller one is gathered: here what the layer before
 * made, for the product and for the gradient of the kernel alike. */
static void columns_after_columns(void **state)
{
    (void)state;
    static const CornuLayoutRow rows[] = { { "(up|out)/kernel", { NULL, "model" } },
                                           { "(up|out)/bias", { "model" } }, { 0 } };
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { WIDTH });
    cornu_model_add(model, cornu_dense(32, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(WIDTH, .name = "out"));
    expect(model, rows, vectors(), vectors(), cornu_mean_squared_error(),
           "all_gather f32 (32, 4)    out\n"
           "all_reduce f32 (4,)    loss\n"
           "reduce_scatter f32 (8, 4)    up/gradient\n");
}

/* Two row splits: the gradient of the first kernel is cut as the kernel is. */
static void rows_after_rows(void **state)
{
    (void)state;
    static const CornuLayoutRow rows[] = { { "(up|out)/kernel", { "model" } }, { 0 } };
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { WIDTH });
    cornu_model_add(model, cornu_dense(32, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(WIDTH, .name = "out"));
    expect(model, rows, vectors(), vectors(), cornu_mean_squared_error(),
           "all_reduce f32 (4, 32)    up\n"
           "all_reduce f32 (4, 16)    out\n"
           "all_gather f32 (32, 4)    up/gradient\n"
           "all_gather f32 (32,)    adam\n");
}

/* Heads and the hidden layer: two forward, two backward. */
static void transformer_block(void **state)
{
    (void)state;
    CornuSymbol *x = cornu_input(.shape = { TIMES, WIDTH });
    CornuSymbol *h = cornu_call(cornu_dense(WIDTH, .name = "first"), x);
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(8, 4, .dropout = 0.1, .name = "heads"),
                                cornu_call(cornu_layer_normalization(), h));
    h = cornu_call(cornu_add(), h, y);
    y = cornu_call(cornu_layer_normalization(), h);
    y = cornu_call(cornu_dense(64, .activation = CORNU_GELU, .name = "up"), y);
    y = cornu_call(cornu_dense(WIDTH, .name = "down"), cornu_call(cornu_dropout(0.1), y));
    h = cornu_call(cornu_add(), h, y);
    expect(cornu_model(.inputs = { x }, .outputs = { h }), block, series(), series(),
           cornu_mean_squared_error(),
           "all_reduce f32 (24, 16)    heads\n"
           "all_reduce f32 (24, 16)    down\n"
           "all_reduce f32 (4, 6, 16)    layer_normalization_1/gradient\n"
           "all_reduce f32 (4, 6, 16)    layer_normalization/gradient\n");
}

/* The vocabulary in slices: of the table's rows the sum that has each text's; of logits numbers by
 * row, the largest, the sum of exponentials, the label's and the sum of the gradient; none of the
 * logits, nor of the gradients of table and kernel. */
static void vocabulary(void **state)
{
    (void)state;
    static const CornuLayoutRow rows[] = {
        { "embedding", { "model" } }, { "out/kernel", { NULL, "model" } },
        { "out/bias", { "model" } }, { 0 }
    };
    CornuModel *model = cornu_sequential(.name = "words", .input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, WIDTH, .name = "embedding"));
    cornu_model_add(model, cornu_dense(WORDS, .name = "out"));
    expect(model, rows, texts(), texts(),
           cornu_sparse_categorical_crossentropy(.from_logits = true),
           "all_reduce f32 (24, 16)    out\n"
           "all_gather f32 (4, 24)    loss\n"
           "all_reduce f32 (4, 6, 1)    loss\n"
           "all_reduce f32 (4, 6)    loss\n"
           "all_gather f32 (4, 24)    accuracy\n"
           "all_gather i32 (4, 24)    accuracy\n"
           "all_gather f32 (4, 24)    loss/gradient\n"
           "all_reduce f32 (4, 6, 1)    loss/gradient\n"
           "all_reduce f32 (4, 6, 16)    embedding/gradient\n");
}

/* Each time step gathers h, (16, 4) turned, and backwards sums its gradient. Of all steps' h the
 * kernel's gradient is made, and a step of simple_rnn again; no kernel is gathered. */
static void recurrent(void **state)
{
    (void)state;
    static const CornuLayoutRow of_gru[] = {
        { "rnn/.*kernel", { NULL, "model" } }, { "rnn/.*bias", { NULL, "model" } }, { 0 }
    };
    static const CornuLayoutRow of_others[] = {
        { "rnn/.*kernel", { NULL, "model" } }, { "rnn/.*bias", { "model" } }, { 0 }
    };
    static const char of_gates[] = "6 times all_gather f32 (16, 4)    rnn\n"
                                   "all_reduce f32 (4, 6)    loss\n"
                                   "6 times reduce_scatter f32 (4, 4)    rnn/gradient\n"
                                   "all_gather f32 (16, 24)    rnn/gradient\n"
                                   "all_reduce f32 (24, 16)    first/gradient\n";
    static const char of_simple[] = "6 times all_gather f32 (16, 4)    rnn\n"
                                    "all_reduce f32 (4, 6)    loss\n"
                                    "all_gather f32 (16, 4, 6)    rnn/gradient\n"
                                    "6 times reduce_scatter f32 (4, 4)    gradient\n"
                                    "all_gather f32 (16, 24)    rnn/gradient\n"
                                    "all_reduce f32 (24, 16)    first/gradient\n";
    for (int i = 0; i < 3; i++) {
        CornuModel *model = cornu_sequential(.name = "series", .input_shape = { TIMES, WIDTH });
        cornu_model_add(model, cornu_dense(WIDTH, .name = "first"));
        cornu_model_add(model,
            i == 0 ? cornu_lstm(WIDTH, .return_sequences = true, .name = "rnn")
            : i == 1 ? cornu_gru(WIDTH, .return_sequences = true, .name = "rnn")
            : cornu_simple_rnn(WIDTH, .return_sequences = true, .name = "rnn"));
        expect(model, i == 1 ? of_gru : of_others, series(), series(), cornu_mean_squared_error(),
               i < 2 ? of_gates : of_simple);
    }
}

/* A normalization of a cut axis adds up rows; others go channel by channel. */
static void normalizations(void **state)
{
    (void)state;
    static const CornuLayoutRow rows[] = {
        { "up/kernel", { NULL, "model" } }, { "up/bias|rows/.*|channels/.*", { "model" } },
        { "down/kernel", { "model" } }, { 0 }
    };
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { WIDTH });
    cornu_model_add(model, cornu_dense(32, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_layer_normalization(.name = "rows"));
    cornu_model_add(model, cornu_batch_normalization(.name = "channels"));
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(WIDTH, .name = "down"));
    expect(model, rows, vectors(), vectors(), cornu_mean_squared_error(),
           "all_reduce f32 (4, 1)    rows\n"
           "all_reduce f32 (4, 1)    rows\n"
           "all_reduce f32 (4, 16)    down\n"
           "all_reduce f32 (4, 1)    rows/gradient\n"
           "all_reduce f32 (4, 1)    rows/gradient\n");
}

/* Features of a table: the lookups are in slices, which the next layer's rows take. */
static void table_features(void **state)
{
    (void)state;
    static const CornuLayoutRow rows[] = {
        { "embedding", { NULL, "model" } }, { "out/kernel", { "model" } }, { 0 }
    };
    CornuModel *model = cornu_sequential(.name = "words", .input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, WIDTH, .name = "embedding"));
    cornu_model_add(model, cornu_activation(CORNU_TANH));
    cornu_model_add(model, cornu_dense(WORDS, .name = "out"));
    expect(model, rows, texts(), texts(),
           cornu_sparse_categorical_crossentropy(.from_logits = true),
           "all_reduce f32 (24, 24)    out\n");
}

/* Outputs of layers whose weights are whole, of which each shard takes its slices: it computes its
 * part of each layer, and of the gradients, which are gathered. */
static void outputs(void **state)
{
    (void)state;
    static const CornuLayoutRow rows[] = { { "(first|up)/output", { "batch", "model" } }, { 0 } };
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { WIDTH });
    cornu_model_add(model, cornu_dense(WIDTH, .activation = CORNU_TANH, .name = "first"));
    cornu_model_add(model, cornu_dense(32, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(WIDTH, .name = "down"));
    expect(model, rows, vectors(), vectors(), cornu_mean_squared_error(),
           "all_gather f32 (16, 4)    up\n"
           "all_reduce f32 (4, 16)    down\n"
           "reduce_scatter f32 (4, 4)    first/gradient\n"
           "all_gather f32 (16, 16)    adam\n"
           "all_gather f32 (16,)    adam\n"
           "all_gather f32 (32, 16)    adam\n"
           "all_gather f32 (32,)    adam\n"
           "all_gather f32 (32, 16)    adam\n");
}

int main(void)
{
    for (int i = 0; i < BATCH * TIMES * WIDTH; i++) features[i] = (float)(i * 37 % 101) / 50.0f;
    for (int i = 0; i < BATCH * TIMES; i++) words[i] = i * 7 % WORDS;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_layers), cmocka_unit_test(columns_after_columns),
        cmocka_unit_test(rows_after_rows), cmocka_unit_test(transformer_block),
        cmocka_unit_test(vocabulary), cmocka_unit_test(recurrent),
        cmocka_unit_test(outputs), cmocka_unit_test(normalizations),
        cmocka_unit_test(table_features),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
