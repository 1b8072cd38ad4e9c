/* Embedding tables: lookups as TensorFlow's safe_embedding_lookup_sparse (tests/golden/sparse),
 * several features of a table, optimizers of their own, ragged data that is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../golden.h"

enum { ROWS = 12, COLUMNS = 3, SAMPLES = 6, LENGTH = 4 };

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static const char *const combiners[] = { "mean", "sum", "sqrtn" };

/* ---- Lookups ---- */

static CornuModel *lookup_model(CornuDevice *device, CornuCombiner combiner, bool weighted)
{
    CornuEmbeddingTableConfig table = { .vocabulary_size = ROWS, .dim = COLUMNS,
                                        .combiner = combiner };
    CornuLayer  *embedding = cornu_tpu_embedding(
        .feature_config = { { .table = &table, .weighted = weighted } });
    CornuSymbol *ids = cornu_input(.shape = { LENGTH }, .dtype = CORNU_I32);
    CornuSymbol *w = weighted ? cornu_input(.shape = { LENGTH }) : NULL;
    CornuSymbol *y = weighted ? cornu_call(embedding, ids, w) : cornu_call(embedding, ids);
    CornuModel  *model = made(weighted ? cornu_model(.inputs = { ids, w }, .outputs = { y })
                                       : cornu_model(.inputs = { ids }, .outputs = { y }));
    if (cornu_compile(model, .device = device, .loss = cornu_loss("mean_squared_error"),
                      .optimizer = cornu_tpu_embedding_optimizer(embedding, cornu_sgd(1.0))))
        fail_msg("%s", cornu_error_message());
    return model;
}

/* With the loss mean((y - (y - f))^2) / 2 a step by SGD subtracts the gradient of sum(y f) / count
 * from the table: f is (y - labels). */
static void run_lookup(Golden *golden, const char *name, const json_t *about, CornuDevice *device)
{
    CornuCombiner combiner = CORNU_COMBINER_MEAN;
    const char   *wanted = json_string_value(json_object_get(about, "combiner"));
    const bool    weighted = golden_flag(about, "weighted");
    while (strcmp(combiners[combiner], wanted)) combiner++;
    CornuModel       *model = lookup_model(device, combiner, weighted);
    CornuWeight      *weight = cornu_model_weight(model, 0);
    const CornuArray  table = golden_array(golden, NULL, "table");
    const CornuRagged ragged = { golden_array(golden, NULL, "offsets"),
                                 golden_array(golden, NULL, "indices"),
                                 golden_array(golden, NULL, "weights") };
    int32_t ids[SAMPLES * LENGTH];
    float   w[SAMPLES * LENGTH], y[SAMPLES * COLUMNS], labels[SAMPLES * COLUMNS], d[ROWS * COLUMNS];
    char    what[128];
    CornuArray xs[2] = { cornu_array(ids, CORNU_I32, SAMPLES, LENGTH),
                         cornu_array(w, CORNU_F32, SAMPLES, LENGTH) };
    CornuArray to = cornu_array(y, CORNU_F32, SAMPLES, COLUMNS);
    CornuArray ys = cornu_array(labels, CORNU_F32, SAMPLES, COLUMNS);
    expect_ok(cornu_tpu_embedding_rows(cornu_model_layer(model, weighted ? 2 : 1), 0, &ragged,
                                       xs[0], weighted ? xs[1] : (CornuArray){ .data = NULL }));
    expect_ok(cornu_weight_write(weight, table));
    if (cornu_predict_on_batch_many(model, xs, &to))
        fail_msg("%s", cornu_error_message());
    snprintf(what, sizeof what, "%s on %s", name, cornu_device_name(device));
    expect_near(what, y, golden_array(golden, name, "y"), 1e-6);

    const float *factors = golden_array(golden, NULL, "factors").data;
    for (int i = 0; i < SAMPLES * COLUMNS; i++) labels[i] = y[i] - factors[i];
    expect_ok(cornu_train_on_batch_many(model, xs, &ys, NULL));
    expect_ok(cornu_weight_read(weight, cornu_array(d, CORNU_F32, ROWS, COLUMNS)));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        d[i] = (((float *)table.data)[i] - d[i]) * SAMPLES * COLUMNS / 2;
    expect_near(what, d, golden_array(golden, name, "d_table"), 1e-5);
    cornu_model_free(model);
}

static void lookups_are_tensorflows(void **state)
{
    (void)state;
    static const struct { const char *name; int shards; } devices[] = {
        { "reference", 1 }, { "cpu", 1 }, { "cpu", 3 },
    };
    Golden      golden = golden_open("tests/golden/sparse/lookups.safetensors");
    const char *name;
    json_t     *about;
    assert_int_equal(json_object_size(golden.cases), 6);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        CornuDevice *device = made(cornu_device_open(devices[i].name,
                                                     .shards = devices[i].shards));
        json_object_foreach(golden.cases, name, about) run_lookup(&golden, name, about, device);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* ---- Several tables and features ---- */

typedef struct {
    CornuModel *model;
    CornuLayer *embedding;
} Net;

/* Two features of one table, one of them a sequence, and another table; Adagrad for one table, SGD
 * for the other, Adam for the rest. */
static Net net(bool duplicated)
{
    CornuEmbeddingTableConfig films = { .vocabulary_size = 20, .dim = 4, .name = "films",
                                        .optimizer = cornu_adagrad(0.1) };
    CornuEmbeddingTableConfig users = { .vocabulary_size = 9, .dim = 4, .name = "users" };
    CornuLayer  *embedding = made(cornu_tpu_embedding(
        .feature_config = { { .table = &films, .name = "film" },
                            { .table = &users, .name = "user" },
                            { .table = &films, .name = "watched", .max_sequence_length = 3 } },
        .optimizer = cornu_sgd(0.1), .duplicated = duplicated));
    CornuSymbol *film = cornu_input(.shape = { 1 }, .dtype = CORNU_I32);
    CornuSymbol *user = cornu_input(.shape = { 1 }, .dtype = CORNU_I32);
    CornuSymbol *watched = cornu_input(.shape = { 2 }, .dtype = CORNU_I32);
    CornuSymbol *first = cornu_call(embedding, film, user, watched);
    CornuSymbol *sequence = cornu_call(cornu_flatten(), cornu_call_result(first, 2));
    CornuSymbol *second = cornu_call_result(first, 1);
    CornuSymbol *all = cornu_call(cornu_concatenate(), first, second, sequence);
    CornuSymbol *y = cornu_call(cornu_dense(1), all);
    CornuModel  *model = made(cornu_model(.inputs = { film, user, watched }, .outputs = { y }));
    return (Net){ model, embedding };
}

/* The optimizer's variable whose name has this in it; NULL if there is none. */
static CornuVariable *slot(const CornuModel *model, const char *part)
{
    const CornuOptimizer *optimizer = cornu_model_optimizer((CornuModel *)(uintptr_t)model);
    for (int i = 0; i < cornu_optimizer_variable_count(optimizer); i++)
        if (strstr(cornu_variable_name(cornu_optimizer_variable(optimizer, i)), part))
            return cornu_optimizer_variable(optimizer, i);
    return NULL;
}

static void tables_have_optimizers_of_their_own(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("cpu"));
    Net          n = net(false);
    if (cornu_compile(n.model, .device = device, .loss = cornu_loss("mean_squared_error"),
                      .optimizer = cornu_tpu_embedding_optimizer(n.embedding, cornu_adam())))
        fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_layer_outputs(n.embedding), 3);
    assert_string_equal(n.embedding->weights[0]->path, "tpu_embedding/films");
    assert_non_null(slot(n.model, "films_adagrad/tpu_embedding_films_accumulator"));
    assert_null(slot(n.model, "films_momentum"));
    assert_null(slot(n.model, "users_momentum"));
    assert_non_null(slot(n.model, "dense_kernel_velocity"));
    int32_t film[4] = { 1, 2, 1, 3 }, user[4] = { 0, 8, 8, 4 }, watched[8] = { 5, 1, 7, -1, -1, -1,
                                                                               19, 2 };
    float   y[4] = { 1, -1, 0.5f, 0 }, before[20 * 4], after[20 * 4];
    CornuArray xs[3] = { cornu_array(film, CORNU_I32, 4, 1), cornu_array(user, CORNU_I32, 4, 1),
                         cornu_array(watched, CORNU_I32, 4, 2) };
    CornuArray ys = cornu_array(y, CORNU_F32, 4, 1);
    const CornuArray table = cornu_array(after, CORNU_F32, 20, 4);
    expect_ok(cornu_weight_read(n.embedding->weights[0], table));
    memcpy(before, after, sizeof before);
    double first = 0, last[8] = { 0 };
    for (int i = 0; i < 60; i++) {
        expect_ok(cornu_train_on_batch_many(n.model, xs, &ys, last));
        if (i == 0) first = last[0];
    }
    expect_ok(cornu_weight_read(n.embedding->weights[0], table));
    assert_true(last[0] < 0.2 * first);
    static const bool looked_up[20] = { [1] = true, [2] = true, [3] = true, [5] = true, [7] = true,
                                        [19] = true };
    for (int row = 0; row < 20; row++)
        assert_int_equal(memcmp(before + 4 * row, after + 4 * row, 16) != 0, looked_up[row]);
    cornu_model_free(n.model);
    cornu_device_close(device);
}

/* Over 1, 2, 3 and 8 shards, tables whose rows do not divide, sliced and not: the same weights but
 * for the order of sums; an index of no row fails the step. */
static void train_over(int shards, bool duplicated, float *films, float *users)
{
    enum { BATCH = 8 };
    CornuDevice *device = made(cornu_device_open("cpu", .shards = shards));
    Net          n = net(duplicated);
    if (cornu_compile(n.model, .device = device, .loss = cornu_loss("mean_squared_error"),
                      .optimizer = cornu_tpu_embedding_optimizer(n.embedding, cornu_adam())))
        fail_msg("%s", cornu_error_message());
    int32_t    film[BATCH], user[BATCH], watched[2 * BATCH];
    float      y[BATCH];
    CornuArray xs[3] = { cornu_array(film, CORNU_I32, BATCH, 1),
                         cornu_array(user, CORNU_I32, BATCH, 1),
                         cornu_array(watched, CORNU_I32, BATCH, 2) };
    CornuArray ys = cornu_array(y, CORNU_F32, BATCH, 1);
    for (int step = 0; step < 5; step++) {
        for (int r = 0; r < BATCH; r++) {
            film[r] = (7 * r + step) % 20, user[r] = (2 * r + step) % 9;
            watched[2 * r] = (3 * r + step) % 20, watched[2 * r + 1] = r % 2 ? -1 : 19;
            y[r] = (float)sin(r + step);
        }
        expect_ok(cornu_train_on_batch_many(n.model, xs, &ys, NULL));
    }
    expect_ok(cornu_weight_read(n.embedding->weights[0], cornu_array(films, CORNU_F32, 20, 4)));
    expect_ok(cornu_weight_read(n.embedding->weights[1], cornu_array(users, CORNU_F32, 9, 4)));
    user[3] = 9;
    assert_int_equal(cornu_train_on_batch_many(n.model, xs, &ys, NULL), CORNU_ERR_VALUE);
    assert_non_null(strstr(cornu_error_message(), "index 9 in row"));
    cornu_error_take();
    CornuVariable *v = n.embedding->weights[0]->variable;
    assert_int_equal(cornu_variable_is_sliced(v), shards > 1 && !duplicated);
    cornu_model_free(n.model);
    cornu_device_close(device);
}

static void tables_are_sliced_over_shards(void **state)
{
    (void)state;
    float films[80], users[36];
    train_over(1, false, films, users);
    for (int i = 0; i < 6; i++) {
        static const int shards[] = { 2, 3, 8 };
        float            got_films[80], got_users[36];
        train_over(shards[i / 2], i % 2, got_films, got_users);
        for (int k = 0; k < 80; k++) assert_true(fabs(got_films[k] - films[k]) < 1e-5);
        for (int k = 0; k < 36; k++) assert_true(fabs(got_users[k] - users[k]) < 1e-5);
    }
}

/* ---- Refusals ---- */

static void expect_refused(CornuStatus status, const char *message)
{
    if (!status) fail_msg("accepted, expected \"%s\"", message);
    if (!strstr(cornu_error_message(), message))
        fail_msg("\"%s\", expected \"%s\"", cornu_error_message(), message);
    cornu_error_take();
}

static void bad_data_is_refused(void **state)
{
    (void)state;
    static const struct { int64_t offsets[4]; int32_t indices[3]; const char *message; } cases[] = {
        { { 0, 2, 1, 3 }, { 1, 2, 3 },
          "feature film: row 1 begins at offset 2 and ends at 1, expected ascending offsets" },
        { { 0, 1, 2, 4 }, { 1, 2, 3 }, "feature film: row 2 has indices 2 to 3, expected 0 to 2" },
        { { 1, 1, 2, 3 }, { 1, 2, 3 }, "feature film: offsets go from 1 to 3, expected 0 to 3" },
        { { 0, 1, 2, 2 }, { 1, 2, 3 }, "feature film: offsets go from 0 to 2, expected 0 to 3" },
        { { 0, 1, 2, 3 }, { 1, 20, 3 }, "feature film: index 20 in row 1, expected 0 to 19" },
        { { 0, 1, 2, 3 }, { 1, 2, -1 }, "feature film: index -1 in row 2, expected 0 to 19" },
        { { 0, 0, 3, 3 }, { 1, 2, 3 }, "feature film: row 1 has 3 indices, expected at most 2" },
    };
    Net n = net(false);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t     lists[6] = { 77, 77, 77, 77, 77, 77 };
        CornuRagged ragged = {
            .offsets = cornu_array((void *)(uintptr_t)cases[i].offsets, CORNU_I64, 4),
            .indices = cornu_array((void *)(uintptr_t)cases[i].indices, CORNU_I32, 3) };
        expect_refused(cornu_tpu_embedding_rows(n.embedding, 0, &ragged,
                                                cornu_array(lists, CORNU_I32, 3, 2),
                                                (CornuArray){ .data = NULL }), cases[i].message);
        for (int k = 0; k < 6; k++) assert_int_equal(lists[k], 77);
    }
    /* A sequence ends where its list does. */
    int64_t     offsets[] = { 0, 3, 3, 4 };
    int32_t     indices[] = { 1, 2, 3, 4 }, lists[6];
    CornuRagged ragged = { .offsets = cornu_array(offsets, CORNU_I64, 4),
                           .indices = cornu_array(indices, CORNU_I32, 4) };
    expect_ok(cornu_tpu_embedding_rows(n.embedding, 2, &ragged, cornu_array(lists, CORNU_I32, 3, 2),
                                       (CornuArray){ .data = NULL }));
    assert_memory_equal(lists, ((int32_t[]){ 1, 2, -1, -1, 4, -1 }), sizeof lists);
    cornu_model_free(n.model);
}

/* An index outside a table fails the step, and no table changes. */
static void bad_indices_change_nothing(void **state)
{
    (void)state;
    CornuDevice *device = made(cornu_device_open("cpu"));
    Net          n = net(false);
    if (cornu_compile(n.model, .device = device, .loss = cornu_loss("mean_squared_error"),
                      .optimizer = cornu_tpu_embedding_optimizer(n.embedding, cornu_adam())))
        fail_msg("%s", cornu_error_message());
    int32_t    film[2] = { 1, 2 }, user[2] = { 0, 9 }, watched[4] = { 5, 1, 7, -1 };
    float      y[2] = { 1, -1 }, before[20 * 4], after[20 * 4];
    CornuArray xs[3] = { cornu_array(film, CORNU_I32, 2, 1), cornu_array(user, CORNU_I32, 2, 1),
                         cornu_array(watched, CORNU_I32, 2, 2) };
    CornuArray ys = cornu_array(y, CORNU_F32, 2, 1);
    expect_ok(cornu_weight_read(n.embedding->weights[0], cornu_array(before, CORNU_F32, 20, 4)));
    expect_refused(cornu_train_on_batch_many(n.model, xs, &ys, NULL),
                   "index 9 in row 1, expected 0 to 8");
    expect_ok(cornu_weight_read(n.embedding->weights[0], cornu_array(after, CORNU_F32, 20, 4)));
    assert_memory_equal(before, after, sizeof before);
    user[1] = 8;
    expect_ok(cornu_train_on_batch_many(n.model, xs, &ys, NULL));
    cornu_model_free(n.model);
    cornu_device_close(device);
}

static void bad_tables_are_refused(void **state)
{
    (void)state;
    CornuEmbeddingTableConfig good = { .vocabulary_size = 3, .dim = 2, .name = "t" };
    CornuEmbeddingTableConfig empty = { .dim = 2, .optimizer = cornu_adagrad(0.1) };
    CornuEmbeddingTableConfig twice = good;
    assert_null(cornu_tpu_embedding(.optimizer = cornu_sgd(0.1)));
    expect_refused(CORNU_ERR_ARGUMENT, ".feature_config is empty");
    assert_null(cornu_tpu_embedding(.feature_config = { { .table = &empty } }));
    expect_refused(CORNU_ERR_ARGUMENT, ".vocabulary_size is 0");
    assert_null(cornu_tpu_embedding(.feature_config = { { .table = &good }, { .table = &twice } }));
    expect_refused(CORNU_ERR_ARGUMENT, "two tables are named t");
    assert_null(cornu_tpu_embedding(
        .feature_config = { { .table = &good, .max_sequence_length = 2, .weighted = true } }));
    expect_refused(CORNU_ERR_ARGUMENT, "rows of a sequence have no weights");
    CornuLayer *unbuilt = made(cornu_tpu_embedding(.feature_config = { { .table = &good } }));
    assert_null(cornu_tpu_embedding_optimizer(unbuilt, cornu_adam()));
    expect_refused(CORNU_ERR_ARGUMENT, "not built yet");
    cornu_layer_free(unbuilt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_are_tensorflows),
        cmocka_unit_test(tables_have_optimizers_of_their_own),
        cmocka_unit_test(tables_are_sliced_over_shards),
        cmocka_unit_test(bad_data_is_refused),
        cmocka_unit_test(bad_indices_change_nothing),
        cmocka_unit_test(bad_tables_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
