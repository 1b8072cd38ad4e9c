/* Models whose weights a mesh cuts train as on the shards that share the batch. */
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
#include "../../device/pjrt/opened.h"
#include "../../device/processes/results.h"
#include "../../skip.h"

enum { ROWS = 64, BATCH = 16, EPOCHS = 2, CLASSES = 8, FEATURES = 12, SIDE = 8, TIMES = 6,
       WORDS = 24 };

static float   x[ROWS * SIDE * SIDE * 3];
static int32_t words[ROWS * TIMES], next_words[ROWS * TIMES], classes[ROWS];

static void make_data(void)
{
    for (int i = 0; i < ROWS * SIDE * SIDE * 3; i++) x[i] = (float)(i * 37 % 101) / 50.0f - 1.0f;
    for (int i = 0; i < ROWS * TIMES; i++) words[i] = (i * 29 + i / 7) % WORDS;
    for (int i = 0; i < ROWS * TIMES; i++) next_words[i] = (words[i] * 5 + 1 + i % 2) % WORDS;
    for (int i = 0; i < ROWS; i++) classes[i] = (i * 5 + i / 3) % CLASSES;
}

/* ---- Networks, and how a mesh may cut them ---- */

static CornuModel *mlp(void)
{
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(32, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(16, .no_bias = true, .name = "down"));
    cornu_model_add(model, cornu_batch_normalization(.name = "norm"));
    cornu_model_add(model, cornu_dropout(0.25));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .name = "out"));
    return model;
}

/* Columns, then rows. */
static const CornuLayoutRow mlp_cut[] = {
    { "up/kernel", { NULL, "model" } }, { "up/bias", { "model" } },
    { "down/kernel", { "model" } }, { 0 }
};

/* What the layers make, of whole weights and beside cut ones. */
static const CornuLayoutRow mlp_outputs[] = {
    { "(up|norm)/output", { "batch", "model" } }, { "down/output", { "batch" } },
    { "out/kernel", { NULL, "model" } }, { "dropout.*/output", { "batch" } }, { 0 }
};

static CornuModel *cnn(void)
{
    CornuModel *model = cornu_sequential(.name = "cnn", .input_shape = { SIDE, SIDE, 3 });
    cornu_model_add(model, cornu_conv2d(8, 3, .padding = CORNU_SAME, .no_bias = true,
                                        .name = "first"));
    cornu_model_add(model, cornu_batch_normalization(.name = "norm"));
    cornu_model_add(model, cornu_activation(CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(16, 3, .activation = CORNU_RELU, .name = "second"));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .name = "out"));
    return model;
}

/* Filters, statistics by channel, then channels. */
static const CornuLayoutRow cnn_cut[] = {
    { "first/kernel", { NULL, NULL, NULL, "model" } }, { "norm/.*", { "model" } },
    { "second/kernel", { NULL, NULL, "model" } }, { 0 }
};

static CornuModel *gpt(void)
{
    CornuSymbol *text = cornu_input(.shape = { TIMES }, .name = "text");
    CornuSymbol *h = cornu_call(cornu_embedding(WORDS, 16, .name = "embedding"), text);
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(8, 4, .use_causal_mask = true,
                                                           .name = "heads"),
                                cornu_call(cornu_layer_normalization(), h));
    h = cornu_call(cornu_add(), h, y);
    y = cornu_call(cornu_dense(64, .activation = CORNU_GELU, .name = "up"),
                   cornu_call(cornu_layer_normalization(), h));
    h = cornu_call(cornu_add(), h, cornu_call(cornu_dense(16, .name = "down"), y));
    h = cornu_call(cornu_flatten(), h);
    return cornu_model(.inputs = { text }, .name = "gpt",
                       .outputs = { cornu_call(cornu_dense(CLASSES, .activation = CORNU_SOFTMAX,
                                                           .name = "out"), h) });
}

/* Heads, the hidden layer, and the features of the embedding. */
static const CornuLayoutRow gpt_cut[] = {
    { "heads/(query|key|value)/kernel", { NULL, "model" } },
    { "heads/(query|key|value)/bias", { "model" } },
    { "heads/attention_output/kernel", { "model" } },
    { "up/kernel", { NULL, "model" } }, { "up/bias", { "model" } },
    { "down/kernel", { "model" } }, { "embedding", { NULL, "model" } }, { 0 }
};

/* A text's next words: the vocabulary is an axis of the table and of the result. */
static CornuModel *writer(void)
{
    CornuSymbol *text = cornu_input(.shape = { TIMES }, .name = "text");
    CornuSymbol *h = cornu_call(cornu_embedding(WORDS, 16, .name = "embedding"), text);
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(8, 4, .use_causal_mask = true,
                                                           .dropout = 0.1, .name = "heads"), h);
    h = cornu_call(cornu_layer_normalization(.name = "norm"), cornu_call(cornu_add(), h, y));
    y = cornu_call(cornu_dense(32, .activation = CORNU_GELU, .name = "up"), h);
    y = cornu_call(cornu_dense(16, .name = "down"), cornu_call(cornu_dropout(0.2), y));
    h = cornu_call(cornu_add(), h, y);
    return cornu_model(.inputs = { text }, .name = "writer",
                       .outputs = { cornu_call(cornu_dense(WORDS, .activation = CORNU_SOFTMAX,
                                                           .name = "out"), h) });
}

static const CornuLayoutRow writer_cut[] = {
    { "embedding", { "model" } },
    { "heads/(query|key|value)/kernel", { NULL, "model" } },
    { "heads/(query|key|value)/bias", { "model" } },
    { "heads/attention_output/kernel", { "model" } },
    { "up/kernel", { NULL, "model" } }, { "up/bias", { "model" } }, { "down/kernel", { "model" } },
    { "out/kernel", { NULL, "model" } }, { "out/bias", { "model" } }, { 0 }
};

static const CornuLayoutRow keras_writer_cut[] = {
    { "embedding/embeddings", { "model" } },
    { "heads/(query|key|value)/kernel", { NULL, "model" } },
    { "heads/(query|key|value)/bias", { "model" } },
    { "heads/attention_output/kernel", { "model" } },
    { "up/kernel", { NULL, "model" } }, { "up/bias", { "model" } }, { "down/kernel", { "model" } },
    { "norm/output", { "batch", NULL, "model" } },
    { "out/kernel", { NULL, "model" } }, { "out/bias", { "model" } }, { 0 }
};

/* Recurrent layers, units of all gates in slices. */
static CornuModel *recurrent(void)
{
    CornuModel *model = cornu_sequential(.name = "recurrent", .input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, 8, .name = "embedding"));
    cornu_model_add(model, cornu_lstm(16, .return_sequences = true, .name = "lstm"));
    cornu_model_add(model, cornu_gru(8, .return_sequences = true, .name = "gru"));
    cornu_model_add(model, cornu_simple_rnn(8, .return_sequences = true, .name = "rnn"));
    cornu_model_add(model, cornu_dense(WORDS, .activation = CORNU_SOFTMAX, .name = "out"));
    return model;
}

/* The transformer of models/, in small. */
static CornuModel *char_gpt(void)
{
    static const CornuTextPreset small = { .name = "small", .model = "char_gpt", .channels = 16,
                                           .layers = 2, .heads = 8, .sequence_length = TIMES };
    return cornu_char_gpt(.preset = &small, .vocabulary = WORDS);
}

static const CornuLayoutRow char_gpt_cut[] = {
    { "^embedding", { "model" } },
    { "attention.*/(query|key|value)/kernel", { NULL, "model" } },
    { "attention.*/(query|key|value)/bias", { "model" } },
    { "attention_output/kernel", { "model" } },
    { "dense(_2|_4)?/kernel", { NULL, "model" } }, { "dense(_2|_4)?/bias", { "model" } },
    { "dense_[13]/kernel", { "model" } }, { 0 }
};

/* A table of which a step touches the rows that were looked up alone. */
static CornuModel *looked_up(void)
{
    CornuModel *model = cornu_sequential(.name = "looked_up", .input_shape = { TIMES });
    cornu_model_add(model, cornu_embedding(WORDS, 8, .sparse_gradient = true,
                                           .name = "embedding"));
    cornu_model_add(model, cornu_dense(WORDS, .activation = CORNU_SOFTMAX, .name = "out"));
    return model;
}

static CornuModel *in_bf16(CornuModel *(*make)(void))
{
    assert_int_equal(cornu_set_dtype_policy("mixed_bfloat16"), CORNU_OK);
    CornuModel *model = make();
    assert_int_equal(cornu_set_dtype_policy("float32"), CORNU_OK);
    return model;
}

static const CornuLayoutRow table_rows[] = { { "embedding", { "model" } }, { 0 } };
static const CornuLayoutRow table_features[] = { { "embedding", { NULL, "model" } }, { 0 } };

static CornuModel *narrow_writer(void) { return in_bf16(writer); }
static CornuModel *narrow_recurrent(void) { return in_bf16(recurrent); }

static const CornuLayoutRow recurrent_cut[] = {
    { "embedding", { "model" } }, { "(lstm|gru|rnn)/.*kernel", { NULL, "model" } },
    { "out/kernel", { NULL, "model" } }, { "out/bias", { "model" } }, { 0 }
};

/* Everything along the batch, what others call fully sharded. */
static const CornuLayoutRow sharded[] = {
    { "/kernel$", { NULL, "batch" } }, { "(up|out)/bias|norm/(gamma|beta)", { "batch" } }, { 0 }
};

static CornuOptimizer *adam(void) { return cornu_adam(.learning_rate = 0.01); }
static CornuOptimizer *sgd(void) { return cornu_sgd(.learning_rate = 0.1, .momentum = 0.9); }

/* Slots that do not begin as zeros. */
static CornuOptimizer *adagrad(void) { return cornu_adagrad(.learning_rate = 0.05); }
static CornuOptimizer *ftrl(void) { return cornu_ftrl(.learning_rate = 0.05); }

static CornuOptimizer *clipped(void)
{
    return cornu_sgd(.learning_rate = 0.2, .global_clipnorm = 0.5);
}

static CornuOptimizer *each_clipped(void)
{
    return cornu_sgd(.learning_rate = 0.2, .clipnorm = 0.1);
}

typedef struct {
    CornuModel           *(*layers)(void);
    CornuOptimizer       *(*optimizer)(void);
    const CornuLayoutRow *layout_map;
    int                   batch, model;   /* the mesh */
    const char           *device;
} Case;

static const Case cases[] = {
    { mlp, adam, mlp_cut, 2, 4, "cpu" },    { mlp, sgd, mlp_cut, 1, 8, "cpu" },
    { mlp, adam, mlp_cut, 8, 1, "cpu" },    { mlp, clipped, mlp_cut, 4, 2, "cpu" },
    { mlp, adam, sharded, 4, 1, "cpu" },    { mlp, sgd, sharded, 2, 2, "cpu" },
    { mlp, adagrad, mlp_cut, 2, 4, "cpu" }, { mlp, ftrl, sharded, 4, 1, "cpu" },
    { cnn, sgd, cnn_cut, 2, 4, "cpu" },     { cnn, sgd, cnn_cut, 1, 8, "cpu" },
    { gpt, sgd, gpt_cut, 2, 4, "cpu" },     { gpt, sgd, gpt_cut, 1, 8, "cpu" },
    { gpt, adam, gpt_cut, 4, 2, "cpu" },    { mlp, sgd, mlp_cut, 2, 4, "tpu" },
    { cnn, sgd, cnn_cut, 2, 2, "tpu" },     { gpt, clipped, gpt_cut, 2, 2, "tpu" },
    { writer, adam, writer_cut, 2, 4, "cpu" },    { writer, clipped, writer_cut, 1, 4, "cpu" },
    { writer, sgd, writer_cut, 4, 2, "tpu" },     { recurrent, adam, recurrent_cut, 2, 4, "cpu" },
    { recurrent, clipped, recurrent_cut, 1, 8, "cpu" },
    { char_gpt, adam, char_gpt_cut, 2, 4, "cpu" },  { char_gpt, sgd, char_gpt_cut, 1, 8, "cpu" },
    { char_gpt, adam, char_gpt_cut, 4, 2, "cpu" },  { char_gpt, sgd, char_gpt_cut, 8, 1, "cpu" },
    { looked_up, adam, table_rows, 2, 4, "cpu" }, { looked_up, sgd, table_features, 2, 4, "cpu" },
    { narrow_writer, sgd, writer_cut, 2, 4, "cpu" },
    { narrow_recurrent, sgd, recurrent_cut, 2, 4, "cpu" },
    { gpt, each_clipped, gpt_cut, 2, 4, "cpu" }, { mlp, each_clipped, mlp_cut, 1, 8, "cpu" },
    { mlp, adam, mlp_outputs, 2, 4, "cpu" },    { mlp, clipped, mlp_outputs, 1, 8, "cpu" },
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- Training ---- */

static bool is_narrow(const Case *c)
{
    return c->layers == narrow_writer || c->layers == narrow_recurrent;
}

/* Whether it tells each word's next. */
static bool writes(const Case *c)
{
    return c->layers == writer || c->layers == recurrent || c->layers == looked_up ||
           c->layers == char_gpt || is_narrow(c);
}

static CornuArray inputs_of(const Case *c)
{
    if (c->layers == gpt || writes(c)) return cornu_array(words, CORNU_I32, ROWS, TIMES);
    if (c->layers == mlp) return cornu_array(x, CORNU_F32, ROWS, FEATURES);
    return cornu_array(x, CORNU_F32, ROWS, SIDE, SIDE, 3);
}

static CornuArray labels_of(const Case *c)
{
    return writes(c) ? cornu_array(next_words, CORNU_I32, ROWS, TIMES)
                     : cornu_array(classes, CORNU_I32, ROWS);
}

static int predicted(const Case *c) { return writes(c) ? ROWS * TIMES * WORDS : ROWS * CLASSES; }

static CornuArray predictions_of(const Case *c, float *to)
{
    return writes(c) ? cornu_array(to, CORNU_F32, ROWS, TIMES, WORDS)
                     : cornu_array(to, CORNU_F32, ROWS, CLASSES);
}

/* What a training comes to. */
typedef struct {
    double loss[EPOCHS];
    double accuracy[EPOCHS];
    float  predictions[ROWS * TIMES * WORDS];
} Outcome;

/* Trains on the device, and keeps the weights' bytes as results if a rank does so. */
static CornuStatus train(const Case *c, CornuDevice *device, Outcome *outcome, bool keeps)
{
    char name[64];
    cornu_set_random_seed(7);
    CornuModel *model = c->layers();
    CORNU__TRY(cornu_compile(model, .optimizer = c->optimizer(), .device = device,
                             .metrics = { CORNU_ACCURACY },
                             .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY));
    CornuHistory *history = cornu_fit(model, .x = inputs_of(c), .epochs = EPOCHS,
                                      .y = labels_of(c),
                                      .batch_size = BATCH, .verbose = CORNU_SILENT);
    if (!history) return cornu_error_take();
    for (int e = 0; e < EPOCHS; e++) {
        outcome->loss[e] = cornu_history_get(history, "loss", e);
        outcome->accuracy[e] = cornu_history_get(history, "accuracy", e);
    }
    cornu_history_free(history);
    CORNU__TRY(cornu_predict(model, .x = inputs_of(c), .verbose = CORNU_SILENT,
                             .to = predictions_of(c, outcome->predictions)));
    for (int i = 0; i < cornu_model_weight_count(model) && keeps; i++) {
        const CornuWeight *w = cornu_model_weight(model, i);
        static float       values[1 << 16];
        snprintf(name, sizeof name, "case %d, weight %d", (int)(c - cases), i);
        CORNU__TRY(cornu_weight_read(w, cornu_array_from(values, w->type)));
        result(name, values, cornu_type_bytes(w->type));
    }
    cornu_model_free(model);
    return CORNU_OK;
}

static CornuDevice *open_mesh(const Case *c, CornuProcesses *processes)
{
    const CornuMesh mesh = cornu_device_mesh(.shape = { c->batch, c->model });
    CornuDevice    *device = cornu_device_open(c->device, .threads = 2,
                                               .processes = processes,
                                               .shards = c->batch * c->model);
    if (!device || !cornu_device_set_mesh(device, &mesh, NULL, c->layout_map)) return device;
    cornu_device_close(device);
    return NULL;
}

/* As without a mesh, on the shards that share the batch, within what other orders of sums make of
 * ten steps; cut along the batch alone, to the bit. */
static void expect_as_without(const Case *c, const char *what, double bound)
{
    Outcome      plain = { .loss = { 0 } }, cut = { .loss = { 0 } };
    CornuDevice *device = cornu_device_open(c->device, .shards = c->batch, .threads = 2);
    CornuDevice *mesh = open_mesh(c, NULL);
    if (!mesh || train(c, device, &plain, false) || train(c, mesh, &cut, false))
        fail_msg("%s: %s", what, cornu_error_message());
    for (int e = 0; e < EPOCHS; e++)
        if (fabs(plain.loss[e] - cut.loss[e]) > bound)
            fail_msg("%s, epoch %d: loss %.9g, %.9g without a mesh", what, e, cut.loss[e],
                     plain.loss[e]);
    for (int e = 0; e < EPOCHS && bound < 1e-2; e++)
        if (fabs(plain.accuracy[e] - cut.accuracy[e]) > 1e-12)
            fail_msg("%s, epoch %d: accuracy %.9g, %.9g without a mesh", what, e, cut.accuracy[e],
                     plain.accuracy[e]);
    for (int i = 0; i < predicted(c); i++)
        if (fabsf(plain.predictions[i] - cut.predictions[i]) > (float)bound)
            fail_msg("%s: prediction %d is %.9g, %.9g without a mesh", what, i,
                     (double)cut.predictions[i], (double)plain.predictions[i]);
    cornu_device_close(device);
    cornu_device_close(mesh);
}

static void layouts_agree(void **state)
{
    (void)state;
    char what[32];
    for (const Case *c = cases; c < cases + CASES; c++) {
        snprintf(what, sizeof what, "case %d", (int)(c - cases));
        /* Products are in bfloat16. */
        const bool narrow = strcmp(c->device, "tpu") == 0 || is_narrow(c);
        expect_as_without(c, what, c->model == 1 ? 0.0 : narrow ? 2e-2 : 2e-4);
    }
}

/* The axes of a mesh are replica groups of XLA's collectives, which add in orders of their own.
 * Adam makes whole steps of what rounding leaves of gradients near zero, as many of the first
 * layer's are where shards share the batch alone: those train by SGD. */
static void pjrt_agrees(void **state)
{
    (void)state;
    static const Case on_pjrt[] = {
        { mlp, adam, mlp_cut, 2, 4, NULL }, { mlp, clipped, mlp_cut, 4, 2, NULL },
        { mlp, sgd, sharded, 4, 1, NULL },  { cnn, sgd, cnn_cut, 2, 4, NULL },
        { gpt, sgd, gpt_cut, 2, 4, NULL },  { gpt, adam, gpt_cut, 1, 8, NULL },
        { writer, adam, writer_cut, 2, 4, NULL },
        { recurrent, adam, recurrent_cut, 2, 4, NULL },
    };
    char what[32];
    if (pjrt_most_shards() < 8) SKIP_FOR("pjrt: eight devices");
    for (int i = 0; i < (int)(sizeof on_pjrt / sizeof *on_pjrt); i++) {
        Case c = on_pjrt[i];
        c.device = pjrt_name();
        snprintf(what, sizeof what, "pjrt case %d", i);
        expect_as_without(&c, what, 2e-4);
    }
}

/* ---- Keras on JAX, 8 devices: model_parallel.py ---- */

enum { STEPS = 10 };

static void fill(float *to, int count, int first, float factor)
{
    for (int i = 0; i < count; i++)
        to[i] = ((float)((i * 37 + first) % 101) / 50.0f - 1.0f) * factor;
}

static CornuModel *keras_mlp(void)
{
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { FEATURES });
    cornu_model_add(model, cornu_dense(32, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(16, .name = "down"));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .name = "out"));
    return model;
}

static CornuModel *keras_writer(void)
{
    CornuSymbol *text = cornu_input(.shape = { TIMES }, .dtype = CORNU_I32);
    CornuSymbol *h = cornu_call(cornu_embedding(WORDS, 16, .name = "embedding"), text);
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(8, 4, .use_causal_mask = true,
                                                           .name = "heads"), h);
    h = cornu_call(cornu_layer_normalization(.name = "norm"), cornu_call(cornu_add(), h, y));
    y = cornu_call(cornu_dense(32, .activation = CORNU_RELU, .name = "up"), h);
    h = cornu_call(cornu_add(), h, cornu_call(cornu_dense(16, .name = "down"), y));
    return cornu_model(.inputs = { text }, .name = "writer",
                       .outputs = { cornu_call(cornu_dense(WORDS, .activation = CORNU_SOFTMAX,
                                                           .name = "out"), h) });
}

static CornuModel *begin_as_keras(CornuModel *model, CornuDevice *device)
{
    static float values[1 << 12];
    if (cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01), .device = device,
                      .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY))
        fail_msg("%s", cornu_error_message());
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *w = cornu_model_weight(model, i);
        fill(values, (int)cornu_type_count(w->type), 11 * i, 0.3f);
        assert_int_equal(cornu_weight_write(w, cornu_array_from(values, w->type)), CORNU_OK);
    }
    return model;
}

/* The rows of step k. */
static void feed(bool of_words, int k, CornuArray *in, CornuArray *labels)
{
    static float   features[BATCH * FEATURES];
    static int32_t text[BATCH * TIMES], next[BATCH * TIMES];
    if (of_words) {
        for (int j = 0; j < BATCH * TIMES; j++) {
            const int i = k * BATCH * TIMES + j;
            text[j] = (i * 29 + i / 7) % WORDS;
            next[j] = (text[j] * 5 + 1 + i % 2) % WORDS;
        }
        *in = cornu_array(text, CORNU_I32, BATCH, TIMES);
        *labels = cornu_array(next, CORNU_I32, BATCH, TIMES);
        return;
    }
    fill(features, BATCH * FEATURES, 37 * k * BATCH * FEATURES, 1.0f);
    for (int j = 0; j < BATCH; j++)
        next[j] = ((k * BATCH + j) * 5 + (k * BATCH + j) / 3) % CLASSES;
    *in = cornu_array(features, CORNU_F32, BATCH, FEATURES);
    *labels = cornu_array(next, CORNU_I32, BATCH);
}

static void expect_curve(Case c, CornuModel *(*make)(void), const double *keras)
{
    CornuDevice *device = open_mesh(&c, NULL);
    CornuModel  *model = begin_as_keras(make(), device);
    for (int k = 0; k < STEPS; k++) {
        CornuArray in, labels;
        double     loss;
        feed(make == keras_writer, k, &in, &labels);
        if (cornu_train_on_batch(model, .values = &loss, .x = in, .y = labels))
            fail_msg("%s", cornu_error_message());
        if (fabs(loss - keras[k]) > 2e-6)
            fail_msg("%s, %d x %d, step %d: loss %.7f, Keras' %.7f", c.layout_map->pattern,
                     c.batch, c.model, k, loss, keras[k]);
    }
    cornu_model_free(model);
    cornu_device_close(device);
}

static void keras_agrees(void **state)
{
    (void)state;
    static const double mlp_curve[STEPS] = { 2.0329347, 1.9159304, 1.7984161, 1.6706047,
                                             1.5364603, 1.4921228, 1.4159472, 1.3212318,
                                             1.2955618, 1.2382997 };
    static const double words_curve[STEPS] = { 3.1523920, 3.0140138, 2.8945482, 2.7660136,
                                               2.6125908, 2.4517283, 2.2595203, 2.0610065,
                                               1.8760154, 1.6964091 };
    static const int    shapes[][2] = { { 2, 4 }, { 1, 8 }, { 4, 2 }, { 8, 1 } };
    for (int m = 0; m < 4; m++) {
        Case c = { .layout_map = mlp_cut, .batch = shapes[m][0], .model = shapes[m][1],
                   .device = "cpu" };
        expect_curve(c, keras_mlp, mlp_curve);
        c.layout_map = keras_writer_cut;
        expect_curve(c, keras_writer, words_curve);
    }
}

/* ---- Processes ---- */

static CornuStatus train_all(CornuProcesses *processes)
{
    char name[64];
    for (const Case *c = cases; c < cases + CASES; c++) {
        Outcome      outcome = { .loss = { 0 } };
        CornuDevice *device = open_mesh(c, processes);
        if (!device) return cornu_error_take();
        CORNU__TRY(train(c, device, &outcome, true));
        snprintf(name, sizeof name, "case %d, losses", (int)(c - cases));
        result(name, outcome.loss, sizeof outcome.loss);
        snprintf(name, sizeof name, "case %d, predictions", (int)(c - cases));
        result(name, outcome.predictions, sizeof outcome.predictions);
        cornu_device_close(device);
    }
    return CORNU_OK;
}

static void processes_agree(void **state)
{
    (void)state;
    static const int counts[] = { 2, 4, 0 };
    results_agree("shm", counts, 2 * CASES + 60, train_all);
}

/* ---- Errors ---- */

static void expect_error(const CornuLayoutRow *rows, const char *text)
{
    CornuStrategy *parallel = cornu_model_parallel(
        .mesh = cornu_device_mesh(.shape = { 2, 4 }), .layout_map = rows);
    CornuStatus status = parallel ? CORNU_OK : cornu_error_status();
    double      loss;
    if (parallel) {
        CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { FEATURES });
        cornu_model_add(model, cornu_dense(30, .name = "up"));
        CORNU_SCOPE(parallel) status = cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR);
        if (!status)
            status = cornu_train_on_batch(model, .values = &loss,
                                          .x = cornu_array(x, CORNU_F32, 8, FEATURES),
                                          .y = cornu_array(x, CORNU_F32, 8, 30));
        cornu_model_free(model);
    }
    assert_int_not_equal(status, CORNU_OK);
    assert_string_equal(cornu_error_message(), text);
    cornu_error_take();
    cornu_strategy_free(parallel);
}

static void errors(void **state)
{
    (void)state;
    expect_error((CornuLayoutRow[]){ { "up/kernel", { "model" } }, { "down", { "model" } }, { 0 } },
                 "mlp: the layout map's \"down\" is for none of its 2 weights, whose names are as "
                 "up/kernel");
    expect_error((CornuLayoutRow[]){ { "up/kernel", { NULL, "model" } }, { 0 } },
                 "up/kernel: axis 1 of f32 (12, 30) does not divide into the 4 slices of its "
                 "layout");
    expect_error((CornuLayoutRow[]){ { "up/bias", { NULL, "model" } }, { 0 } },
                 "up/bias is f32 (30,), but its layout is of 2 axes");
    expect_error((CornuLayoutRow[]){ { "up/kernel", { "rows" } }, { 0 } },
                 "layout of up/kernel: the mesh (batch=2, model=4) has no axis \"rows\"");
    expect_error((CornuLayoutRow[]){ { "up/kernel", { "model", "model" } }, { 0 } },
                 "layout of up/kernel: an axis of the mesh cuts two axes of the variable");
    expect_error((CornuLayoutRow[]){ { "up/k", { "batch" } }, { "kernel", { "batch" } }, { 0 } },
                 "up/kernel: the layouts of up/k and of kernel are both for it, expected one");
    expect_error((CornuLayoutRow[]){ { "up/output", { "batch", "model" } }, { 0 } },
                 "up/output: axis 1 of f32 (4, 30) does not divide into the 4 slices of its "
                 "layout");
    expect_error((CornuLayoutRow[]){ { "up/output", { NULL, "batch" } }, { 0 } },
                 "layout of up/output: the axis of the mesh over which the rows of a batch are "
                 "dealt can cut axis 0 alone");
    expect_error((CornuLayoutRow[]){ { "up/output", { NULL, NULL, "model" } }, { 0 } },
                 "up/output is f32 (4, 30), but its layout is of 3 axes");
    expect_error((CornuLayoutRow[]){ { "p/output", { NULL, "model" } }, { 0 } },
                 "mlp: the layout map's \"p/output\" is for none of its layers' outputs, whose "
                 "names are as up/output");
    expect_error((CornuLayoutRow[]){ { ".*/output", { NULL, "model" } },
                                     { "up.*/output", { "batch" } }, { 0 } },
                 "up/output: the layouts of .*/output and of up.*/output are both for it, expected "
                 "one");
    expect_error((CornuLayoutRow[]){ { "up/(", { "batch" } }, { 0 } },
                 "layout of up/(: expected a path or a regular expression");
    expect_error((CornuLayoutRow[]){ { "up/bias", { "model" } }, { "up/bias", { NULL } }, { 0 } },
                 "layout of up/bias: the map has it in rows 0 and 1, expected once");
}

/* A word or a label that there is not fails the step as without a mesh, whichever shard has it. */
static void wrong_places(void **state)
{
    (void)state;
    const Case c = { .layout_map = writer_cut, .batch = 2, .model = 4, .device = "cpu" };
    for (int i = 0; i < 3; i++) {
        static const int32_t wrong[] = { WORDS, -1, WORDS + 100 };
        CornuDevice *device = open_mesh(&c, NULL);
        CornuModel  *model = writer();
        int32_t      text[2][BATCH * TIMES] = { { 0 } };
        double       loss;
        text[i % 2][13] = wrong[i];
        assert_int_equal(cornu_compile(model, .device = device,
                                       .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY), CORNU_OK);
        assert_int_equal(cornu_train_on_batch(model, .values = &loss,
                             .x = cornu_array(text[0], CORNU_I32, BATCH, TIMES),
                             .y = cornu_array(text[1], CORNU_I32, BATCH, TIMES)), CORNU_ERR_VALUE);
        char text_of[64];
        snprintf(text_of, sizeof text_of, "%d", (int)wrong[i]);
        if (!strstr(cornu_error_message(), text_of) || getenv("PRINT"))
            print_message("%s\n", cornu_error_message());
        assert_non_null(strstr(cornu_error_message(), text_of));
        cornu_error_take();
        cornu_model_free(model);
        cornu_device_close(device);
    }
}

int main(void)
{
    make_data();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_agree), cmocka_unit_test(layouts_agree),
        cmocka_unit_test(pjrt_agrees), cmocka_unit_test(keras_agrees), cmocka_unit_test(errors),
        cmocka_unit_test(wrong_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
