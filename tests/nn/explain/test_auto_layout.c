/* Layouts chosen by the performance model: the fastest of all, within the memory. */
#include "../../../nn/explain/auto_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../../nn/explain/explain_internal.h"

enum { BATCH = 16, TIMES = 8, WORDS = 23, CLASSES = 8 };

/* Layers of which the first makes much of little, so that it is worth cutting. */
static CornuModel *mlp(void)
{
    CornuModel *model = cornu_sequential(.name = "mlp", .input_shape = { 512 });
    cornu_model_add(model, cornu_dense(2048, .activation = CORNU_RELU, .name = "up"));
    cornu_model_add(model, cornu_dense(512, .name = "down"));
    cornu_model_add(model, cornu_dense(CLASSES, .activation = CORNU_SOFTMAX, .name = "out"));
    return model;
}

static CornuModel *gpt(void)
{
    CornuSymbol *text = cornu_input(.shape = { TIMES }, .name = "text");
    CornuSymbol *h = cornu_call(cornu_embedding(WORDS, 256, .name = "embedding"), text);
    CornuSymbol *y = cornu_call(cornu_multi_head_attention(4, 64, .use_causal_mask = true,
                                                           .name = "heads"),
                                cornu_call(cornu_layer_normalization(), h));
    h = cornu_call(cornu_add(), h, y);
    y = cornu_call(cornu_dense(1024, .activation = CORNU_GELU, .name = "up"),
                   cornu_call(cornu_layer_normalization(), h));
    h = cornu_call(cornu_add(), h, cornu_call(cornu_dense(256, .name = "down"), y));
    h = cornu_call(cornu_flatten(), h);
    return cornu_model(.inputs = { text }, .name = "gpt",
                       .outputs = { cornu_call(cornu_dense(CLASSES, .activation = CORNU_SOFTMAX,
                                                           .name = "out"), h) });
}

/* ---- All layouts, written by hand ---- */

enum { WAYS = 4, ROWS = 3, LAYERS = 5 };

/* The ways to cut a layer; the first row without a pattern ends one. */
typedef struct {
    CornuLayoutRow ways[WAYS][ROWS];
    int            count;
} Layer;

#define COLUMNS(name) { { name "/kernel", { NULL, "model" } }, { name "/bias", { "model" } } }
#define DENSE(name)                                                                             \
    { { { { 0 } }, COLUMNS(name), { { name "/kernel", { "model" } } },                          \
        { { name "/kernel", { "batch" } } } }, 4 }

static const Layer mlp_layers[] = { DENSE("up"), DENSE("down"), DENSE("out") };
static const Layer gpt_layers[] = {
    { { { { 0 } }, { { "embedding", { NULL, "model" } } }, { { "embedding", { NULL, "batch" } } } },
      3 },
    { { { { 0 } },
        { { "heads/(query|key|value)/kernel", { NULL, "model" } },
          { "heads/(query|key|value)/bias", { "model" } },
          { "heads/attention_output/kernel", { "model" } } },
        { { "heads/.*/kernel", { "batch" } } } }, 3 },
    DENSE("up"), DENSE("down"), DENSE("out"),
};

typedef struct {
    double  step_s;
    int64_t bytes;
    int     priced;
} Best;

/* The fastest of all layouts whose memory fits. */
static Best best_of_all(CornuModel *model, CornuMesh mesh, const Layer *layers, int count,
                        int64_t hbm)
{
    Best best = { .step_s = 1e9 };
    int  all = 1;
    for (int i = 0; i < count; i++) all *= layers[i].count;
    for (int number = 0; number < all; number++) {
        CornuLayoutRow rows[LAYERS * ROWS + 1] = { { 0 } };
        int            used = 0, left = number;
        for (int i = 0; i < count; left /= layers[i++].count) {
            const CornuLayoutRow *way = layers[i].ways[left % layers[i].count];
            for (int k = 0; k < ROWS && way[k].pattern; k++) rows[used++] = way[k];
        }
        CornuExplanation *e = cornu_explain(model, .device_name = "tpu:v3-8", .mesh = mesh,
                                            .layout_map = rows, .batch_size = BATCH);
        if (!e) fail_msg("%s", cornu_error_message());
        const double  step_s = cornu_explanation_model(e)->device_s;
        const int64_t bytes = e->memory.total.now;
        cornu_explanation_free(e);
        best.priced++;
        if (bytes <= hbm && step_s < best.step_s) {
            best.step_s = step_s;
            best.bytes = bytes;
        }
    }
    return best;
}

static CornuAutoLayout *chosen_for(CornuModel *model, CornuMesh mesh, int64_t hbm)
{
    CornuAutoLayout *chosen = cornu_auto_layout(model, mesh, .batch_size = BATCH,
                                                .hbm_bytes = hbm);
    if (!chosen) fail_msg("%s", cornu_error_message());
    return chosen;
}

static void assert_is_fastest(CornuModel *model, CornuMesh mesh, const Layer *layers, int count,
                              int64_t hbm)
{
    CornuAutoLayout         *chosen = chosen_for(model, mesh, hbm);
    const CornuLayoutChoice *first = cornu_auto_layout_choice(chosen, 0);
    const Best               best = best_of_all(model, mesh, layers, count, hbm);
    print_message("%s %dx%d: %.3f us of %d layouts, %s\n", cornu_model_name(model),
                  mesh.extent[0], mesh.extent[1], 1e6 * best.step_s, best.priced, first->summary);
    assert_true(first->bytes <= hbm);
    if (!(first->step_s <= best.step_s * (1.0 + 1e-9)))
        fail_msg("%s takes %.4f us, the fastest %.4f", first->summary, 1e6 * first->step_s,
                 1e6 * best.step_s);
    cornu_auto_layout_free(chosen);
}

static const int64_t plenty = (int64_t)16 << 30;

static void test_mlp(void **state)
{
    (void)state;
    CornuModel *model = mlp();
    for (int data = 1; data <= 4; data *= 2) {
        const CornuMesh  mesh = cornu_device_mesh(.shape = { data, 8 / data });
        assert_is_fastest(model, mesh, mlp_layers, 3, plenty);
    }
    cornu_model_free(model);
}

static void test_gpt(void **state)
{
    (void)state;
    CornuModel *model = gpt();
    assert_is_fastest(model, cornu_device_mesh(.shape = { 2, 4 }), gpt_layers, LAYERS, plenty);
    cornu_model_free(model);
}

/* ---- Memory ---- */

/* With less memory than the fastest layout takes, the fastest of those that fit is chosen; with
 * less than any takes, none. */
static void test_memory(void **state)
{
    (void)state;
    CornuModel      *model = mlp();
    const CornuMesh  mesh = cornu_device_mesh(.shape = { 4, 2 });
    CornuAutoLayout *chosen = cornu_auto_layout(model, mesh, .batch_size = BATCH);
    const int64_t    plain = cornu_auto_layout_data_parallel(chosen)->bytes;
    const int64_t    fastest = cornu_auto_layout_choice(chosen, 0)->bytes;
    cornu_auto_layout_free(chosen);
    assert_is_fastest(model, mesh, mlp_layers, 3, fastest - 1);
    assert_is_fastest(model, mesh, mlp_layers, 3, plain / 5 * 4);
    chosen = chosen_for(model, mesh, plain / 5 * 4);
    assert_false(cornu_auto_layout_data_parallel(chosen)->fits);
    for (int i = 0; i < 4; i++) {
        const CornuLayoutChoice *choice = cornu_auto_layout_choice(chosen, i);
        if (choice) assert_true(choice->fits && choice->bytes <= plain / 5 * 4);
    }
    assert_null(cornu_auto_layout_choice(chosen, 3));
    cornu_auto_layout_free(chosen);
    assert_null(cornu_auto_layout(model, mesh, .batch_size = BATCH, .hbm_bytes = 100000));
    assert_non_null(strstr(cornu_error_message(), "no layout of mlp fits"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_MEMORY);
    cornu_model_free(model);
}

/* What does not fit without a mesh says which layout would, when it is compiled or when its first
 * step is made; but not where none would, nor on one shard. */
static void assert_message(int shards, int64_t memory, CornuStatus compiles, const char *says)
{
    static float   x[BATCH * 512];
    static int32_t y[BATCH];
    CornuModel    *model = mlp();
    CornuDevice   *device = cornu_device_open("tpu:v3-8", .shards = shards, .shard_memory = memory);
    CornuStatus    status = cornu_compile(model, .device = device, .optimizer = cornu_adam(),
                                          .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    double loss;
    assert_int_equal(status, compiles);
    if (!status)
        status = cornu_train_on_batch(model, cornu_array(x, CORNU_F32, BATCH, 512),
                                      cornu_array(y, CORNU_I32, BATCH), &loss);
    assert_int_equal(status, CORNU_ERR_MEMORY);
    assert_non_null(strstr(cornu_error_message(), "out of memory: "));
    if (says ? !strstr(cornu_error_message(), says) : !!strstr(cornu_error_message(), "It fits"))
        fail_msg("%s", cornu_error_message());
    cornu_model_free(model);
    cornu_device_close(device);
}

static void test_message(void **state)
{
    (void)state;
    assert_message(8, 9000000, CORNU_ERR_MEMORY, "It fits if a mesh cuts it, as (batch=1, "
                   "model=8), 4.9 MB of a shard with batches of 32: columns of up, out; rows of "
                   "down. cornu_auto_layout and");
    assert_message(8, 15000000, CORNU_OK, "It fits if a mesh cuts it, as (batch=1, model=8), ");
    assert_message(8, 200000, CORNU_ERR_MEMORY, NULL);
    assert_message(1, 9000000, CORNU_ERR_MEMORY, NULL);
}

/* ---- The mesh ---- */

static char *printed(const CornuAutoLayout *chosen)
{
    char  *text = NULL;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    assert_int_equal(cornu_auto_layout_print(chosen, to), CORNU_OK);
    fclose(to);
    return text;
}

/* Without a mesh the best of all of 8 shards is taken; the same on each run, told in five lines. */
static void test_meshes(void **state)
{
    (void)state;
    CornuModel      *model = mlp();
    double           least = 1e9;
    CornuAutoLayout *chosen = cornu_auto_layout(model, .batch_size = BATCH);
    CornuAutoLayout *again = cornu_auto_layout(model, .batch_size = BATCH);
    for (int data = 1; data <= 8; data *= 2) {
        CornuAutoLayout *one = chosen_for(model, cornu_device_mesh(.shape = { data, 8 / data }), 0);
        const double     step_s = cornu_auto_layout_choice(one, 0)->step_s;
        if (step_s < least) least = step_s;
        cornu_auto_layout_free(one);
    }
    assert_true(cornu_auto_layout_choice(chosen, 0)->step_s == least);
    char *text = printed(chosen), *same = printed(again);
    int   lines = 0;
    for (const char *c = text; *c; c++) lines += *c == '\n';
    print_message("%s", text);
    assert_int_equal(lines, 5);
    assert_string_equal(text, same);
    free(text);
    free(same);
    cornu_auto_layout_free(again);
    cornu_auto_layout_free(chosen);
    cornu_model_free(model);
}

/* What is chosen trains. */
static void test_trains(void **state)
{
    (void)state;
    static float     x[BATCH * 512];
    static int32_t   y[BATCH];
    CornuModel      *model = mlp();
    CornuAutoLayout *chosen = cornu_auto_layout(model, cornu_device_mesh(.shape = { 2, 4 }),
                                                .batch_size = BATCH);
    const CornuLayoutChoice *first = cornu_auto_layout_choice(chosen, 0);
    CornuStrategy *parallel = cornu_model_parallel(.mesh = first->mesh, .device = "tpu:v3-8",
                                                   .layout_map = first->layout_map);
    CORNU_SCOPE(parallel)
        cornu_compile(model, .optimizer = cornu_adam(),
                      .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    CornuHistory *history = cornu_fit(model, .x = cornu_array(x, CORNU_F32, BATCH, 512),
                                      .y = cornu_array(y, CORNU_I32, BATCH), .batch_size = BATCH,
                                      .epochs = 1, .verbose = 0);
    if (!history) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_device_memory(cornu_strategy_device(parallel)).total.now, first->bytes);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_strategy_free(parallel);
    cornu_auto_layout_free(chosen);
}

/* Blocks of layers are cut alike, equal layers in a row by turns. */
static void test_alike(void **state)
{
    (void)state;
    CornuModel *model = cornu_sequential(.name = "deep", .input_shape = { 1024 });
    for (int i = 0; i < 8; i++)
        cornu_model_add(model, cornu_dense(1024, .activation = CORNU_RELU));
    CornuAutoLayout *chosen = chosen_for(model, cornu_device_mesh(.shape = { 1, 8 }), 0);
    const CornuLayoutChoice *first = cornu_auto_layout_choice(chosen, 0);
    assert_string_equal(first->summary,
                        "columns of dense and 3 alike; rows of dense_1 and 3 alike");
    cornu_auto_layout_free(chosen);
    cornu_model_free(model);
}

static void test_errors(void **state)
{
    (void)state;
    CornuModel *model = mlp();
    assert_null(cornu_auto_layout(model, .profile = "v9"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
    assert_null(cornu_auto_layout(model, .shards = -1));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_null(cornu_auto_layout(model, cornu_device_mesh(.shape = { 2, 4 }), .shards = 4));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_null(cornu_auto_layout(model, cornu_device_mesh(.shape = { 8, 1 }), .batch_size = 4));
    assert_int_equal(cornu_error_take(), CORNU_ERR_SHAPE);
    assert_null(cornu_auto_layout(.profile = "v3-8"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    cornu_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp),    cmocka_unit_test(test_gpt),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_meshes),
        cmocka_unit_test(test_trains), cmocka_unit_test(test_alike),
        cmocka_unit_test(test_message), cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
