/* Tables with a sparse gradient: rows that are looked up get the updates that TensorFlow gives them
 * (tests/golden/sparse), others stay; with SGD the bits are those of the dense gradient. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../../nn/optimizers/optimizer_internal.h"
#include "../golden.h"

enum { ROWS = 12, COLUMNS = 3, LOOKUPS = 8, STEPS = 5, MOST = ROWS * COLUMNS };

static void *made(void *thing)
{
    if (!thing) fail_msg("%s", cornu_error_message());
    return thing;
}

static CornuOptimizer *optimizer_of(const char *kind, const json_t *given)
{
    const double rate = golden_number(given, "learning_rate");
    if (!strcmp(kind, "sgd"))
        return cornu_sgd(rate, golden_number(given, "momentum"), golden_flag(given, "nesterov"));
    if (!strcmp(kind, "adam")) return cornu_adam(rate, .amsgrad = golden_flag(given, "amsgrad"));
    if (!strcmp(kind, "ftrl"))
        return cornu_ftrl_from(&(CornuFtrlConfig){
            .learning_rate = rate,
            .initial_accumulator_value = golden_number(given, "initial_accumulator_value"),
            .l1_regularization_strength = golden_number(given, "l1_regularization_strength"),
            .l2_regularization_strength = golden_number(given, "l2_regularization_strength") });
    CornuOptimizer *optimizer = made(cornu_optimizer(kind));
    expect_ok(cornu_optimizer_set_learning_rate(optimizer, rate));
    return optimizer;
}

/* ---- A step: loss = the sum of looked-up rows times numbers, which are their gradients ---- */

typedef struct {
    CornuDevice    *device;
    CornuVariable  *table;
    CornuOptimizer *optimizer;
    CornuGraph     *graph;
    CornuTensor    *indices, *factors, *norm;
    int64_t         each;      /* lookups of a shard */
} Lookup;

static Lookup lookup_of(const char *device, int shards, int threads, bool sparse,
                        CornuOptimizer *optimizer)
{
    Lookup l = { .device = made(cornu_device_open(device, .shards = shards, .threads = threads)),
                 .optimizer = made(optimizer), .each = LOOKUPS / shards };
    const CornuType type = cornu_type(CORNU_F32, ROWS, COLUMNS);
    l.table = made(cornu_variable_create(l.device, type, "table/embeddings",
                                         .sparse_gradient = sparse));
    l.graph = made(cornu_graph_create(l.device));
    l.indices = cornu_graph_shard_input(l.graph, cornu_type(CORNU_I32, l.each));
    l.factors = cornu_graph_shard_input(l.graph, cornu_type(CORNU_F32, l.each, COLUMNS));
    return l;
}

static void record(Lookup *l)
{
    expect_ok(cornu_optimizer_build(l->optimizer, &l->table, 1));
    CornuTensor *table = cornu_read(l->graph, l->table), *d_table;
    CornuTensor *rows = cornu_op_gather(table, l->indices);
    CornuTensor *loss = made(cornu_op_sum(cornu_op_multiply(rows, l->factors)));
    expect_ok(cornu_gradients(cornu_optimizer_scale_loss(l->optimizer, loss), &table, 1, &d_table));
    l->norm = made(cornu_optimizer_gradient_norm(l->optimizer, l->graph, &d_table));
    expect_ok(cornu_optimizer_apply(l->optimizer, l->graph, &d_table));
}

/* The arrays are of the whole batch: shard after shard. */
static float step(Lookup *l, const int32_t *indices, const float *factors)
{
    const int64_t shards = LOOKUPS / l->each;
    float         norm;
    CornuArray    to = cornu_array_from(&norm, cornu_scalar(CORNU_F32));
    expect_ok(cornu_graph_feed(l->indices, cornu_array((void *)(uintptr_t)indices, CORNU_I32,
                                                       shards, l->each)));
    expect_ok(cornu_graph_feed(l->factors, cornu_array((void *)(uintptr_t)factors, CORNU_F32,
                                                       shards, l->each, COLUMNS)));
    expect_ok(cornu_run(l->graph, &l->norm, 1, &to));
    return norm;
}

static void read(const CornuVariable *variable, float *to)
{
    expect_ok(cornu_variable_read(variable, cornu_array(to, CORNU_F32, ROWS, COLUMNS)));
}

static void end(Lookup *l)
{
    cornu_graph_free(l->graph);
    cornu_variable_free(l->table);
    cornu_optimizer_free(l->optimizer);
    cornu_device_close(l->device);
}

static void write_table(Lookup *l, const float *from)
{
    expect_ok(cornu_variable_write(l->table, cornu_array((void *)(uintptr_t)from, CORNU_F32, ROWS,
                                                         COLUMNS)));
}

/* ---- TensorFlow's updates ---- */

static void run_case(Golden *golden, const char *name, const json_t *about, const char *device,
                     int shards)
{
    Lookup l = lookup_of(device, shards, 2, true,
                         optimizer_of(json_string_value(json_object_get(about, "optimizer")),
                                      json_object_get(about, "given")));
    const CornuArray tables = golden_array(golden, name, "tables");
    char             text[64], what[160];
    write_table(&l, golden_array(golden, NULL, "table").data);
    record(&l);
    for (int i = 0; i < STEPS; i++) {
        float got[MOST];
        snprintf(text, sizeof text, "indices%d", i);
        const CornuArray indices = golden_array(golden, NULL, text);
        snprintf(text, sizeof text, "gradient%d", i);
        step(&l, indices.data, golden_array(golden, NULL, text).data);
        read(l.table, got);
        snprintf(what, sizeof what, "%s with %d shards, %s, step %d", device, shards, name, i);
        expect_near(what, got, cornu_array((float *)tables.data + i * MOST, CORNU_F32, ROWS,
                                           COLUMNS), 2e-6);
    }
    const int slots = l.optimizer->slot_count;
    for (int s = 0; s < slots; s++) {
        float got[MOST];
        snprintf(text, sizeof text, "slot%d", s);
        const CornuArray want = golden_array(golden, name, text);
        if (!want.data) fail_msg("%s has no %s", name, text);
        read(l.optimizer->slots[s], got);
        snprintf(what, sizeof what, "%s with %d shards, %s, slot %d", device, shards, name, s);
        expect_near(what, got, want, 1e-5);
    }
    end(&l);
}

/* A plugin may not be. */
static bool is_there(const char *name)
{
    CornuDevice *device = cornu_device_open(name);
    if (!device) cornu_error_take();
    cornu_device_close(device);
    return device != NULL;
}

static void updates_are_tensorflows(void **state)
{
    (void)state;
    static const struct { const char *device; int shards; } devices[] = {
        { "reference", 1 }, { "cpu", 1 }, { "cpu", 2 }, { "cpu", 8 }, { "tpu", 1 }, { "tpu", 8 },
        { "pjrt:cpu", 1 }, { "pjrt:cpu", 2 },
    };
    Golden      golden = golden_open("tests/golden/sparse/updates.safetensors");
    const char *name;
    json_t     *about;
    assert_int_equal(json_object_size(golden.cases), 13);
    for (size_t i = 0; i < sizeof devices / sizeof *devices && is_there(devices[i].device); i++)
        json_object_foreach(golden.cases, name, about)
            if (strcmp(devices[i].device, "pjrt:cpu") != 0 || !strcmp(name, "adam"))   /* slow */
                run_case(&golden, name, about, devices[i].device, devices[i].shards);
    golden_close(&golden);
}

/* ---- The dense gradient ---- */

static void draw(int i, int32_t *indices, float *factors)
{
    for (int k = 0; k < LOOKUPS; k++) indices[k] = (5 * k * k + 3 * i) % 7;
    for (int k = 0; k < LOOKUPS * COLUMNS; k++)
        factors[k] = (float)sin(1.7 * k + i) * (k % 3 ? 1.0f : 1e-3f);
}

typedef CornuOptimizer *Make(void);

static void train(const char *device, int shards, int threads, bool sparse, Make *make,
                  float *table, float *norms)
{
    Lookup  l = lookup_of(device, shards, threads, sparse, make());
    int32_t indices[LOOKUPS];
    float   factors[LOOKUPS * COLUMNS], start[MOST];
    for (int k = 0; k < MOST; k++) start[k] = (float)cos(0.3 * k);
    write_table(&l, start);
    record(&l);
    for (int i = 0; i < STEPS; i++) {
        draw(i, indices, factors);
        norms[i] = step(&l, indices, factors);
    }
    read(l.table, table);
    end(&l);
}

static CornuOptimizer *plain(void) { return cornu_sgd(0.1); }
static CornuOptimizer *by_value(void) { return cornu_sgd(0.1, .clipvalue = 0.4); }
static CornuOptimizer *by_norm(void) { return cornu_sgd(0.1, .clipnorm = 0.5); }
static CornuOptimizer *by_all_norms(void) { return cornu_sgd(0.1, .global_clipnorm = 0.5); }
static CornuOptimizer *by_factor(void) { return cornu_sgd(0.1, .loss_scale_factor = 4.0); }
static CornuOptimizer *scaled(void)
{
    return cornu_loss_scale_optimizer(cornu_sgd(0.1), .initial_scale = 4.0);
}

/* With SGD, on one shard; sums of squares are added in another order. */
static void sgd_has_the_bits_of_the_dense_gradient(void **state)
{
    (void)state;
    static const struct { Make *make; double tolerance; } cases[] = {
        { plain, 0 }, { by_value, 0 }, { by_norm, 1e-6 }, { by_all_norms, 1e-6 }, { by_factor, 0 },
        { scaled, 0 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int shards = 1; shards <= 8; shards *= 8)
            for (int threads = 1; threads <= 2; threads++) {
                float        got[MOST], want[MOST], got_norms[STEPS], norms[STEPS];
                const double most = shards == 1 ? cases[i].tolerance : 1e-6;
                train("cpu", shards, threads, true, cases[i].make, got, got_norms);
                train("cpu", shards, 2, false, cases[i].make, want, norms);
                for (int k = 0; k < MOST; k++)
                    if (!(fabs(got[k] - want[k]) <= most))
                        fail_msg("case %d, %d shards, %d threads: element %d is %.9g, expected "
                                 "%.9g", (int)i, shards, threads, k, got[k], want[k]);
                for (int k = 0; k < STEPS; k++)
                    assert_true(fabs(got_norms[k] - norms[k]) <= 1e-5 * norms[k]);
            }
}

static CornuOptimizer *adam(void) { return cornu_adam(0.1); }

/* Sums of rows do not depend on threads. */
static void bits_do_not_depend_on_threads(void **state)
{
    (void)state;
    for (int shards = 1; shards <= 8; shards *= 8) {
        float one[MOST], several[MOST], norms[2][STEPS];
        train("cpu", shards, 1, true, adam, one, norms[0]);
        train("cpu", shards, 3, true, adam, several, norms[1]);
        assert_memory_equal(one, several, sizeof one);
        assert_memory_equal(norms[0], norms[1], sizeof norms[0]);
    }
}

/* ---- A table of 10 million rows ---- */

/* Neither a gradient nor a copy of the table is among the step's values. */
static void no_dense_gradient_is_allocated(void **state)
{
    (void)state;
    enum { MANY = 1000000, WIDE = 32, BATCH = 256 };
    CornuDevice   *device = made(cornu_device_open("cpu", .threads = 2));
    CornuOptimizer *optimizer = made(cornu_adam(0.1));
    CornuVariable *table = made(cornu_variable_create(
        device, cornu_type(CORNU_F32, MANY, WIDE), "table", .sparse_gradient = true));
    CornuGraph    *graph = made(cornu_graph_create(device));
    CornuTensor   *indices = cornu_graph_input(graph, cornu_type(CORNU_I32, BATCH));
    CornuTensor   *w = cornu_read(graph, table), *d_w;
    CornuTensor   *loss = cornu_op_sum(cornu_op_square(cornu_op_gather(w, indices)));
    expect_ok(cornu_optimizer_build(optimizer, &table, 1));
    expect_ok(cornu_gradients(loss, &w, 1, &d_w));
    expect_ok(cornu_optimizer_apply(optimizer, graph, &d_w));
    expect_ok(cornu_run(graph, NULL, 0, NULL));
    const CornuStatistics *statistics = cornu_graph_statistics(graph);
    assert_int_equal(statistics->copies, 0);
    assert_int_equal(statistics->fallbacks, 0);
    assert_true(statistics->bytes_planned < 20 * BATCH * WIDE * 4);
    assert_true(statistics->bytes_moved < 40 * BATCH * WIDE * 4);
    cornu_graph_free(graph);
    cornu_variable_free(table);
    cornu_optimizer_free(optimizer);
    cornu_device_close(device);
}

/* ---- Refusals ---- */

static void whole_tables_are_refused(void **state)
{
    (void)state;
    const struct { CornuOptimizer *optimizer; const char *message; } cases[] = {
        { cornu_adamw(0.1), ".weight_decay needs all rows" },
        { cornu_sgd(0.1, .use_ema = true), ".use_ema needs all rows" },
        { cornu_sgd(0.1, .gradient_accumulation_steps = 2),
          ".gradient_accumulation_steps needs all rows" },
        { cornu_lamb(0.1), "its update of whole weights needs all rows" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Lookup l = lookup_of("cpu", 1, 1, true, cases[i].optimizer);
        assert_int_equal(cornu_optimizer_build(l.optimizer, &l.table, 1), CORNU_ERR_UNSUPPORTED);
        if (!strstr(cornu_error_message(), cases[i].message))
            fail_msg("\"%s\", expected \"%s\"", cornu_error_message(), cases[i].message);
        end(&l);
    }
    /* A table that something else reads, too. */
    Lookup       l = lookup_of("cpu", 1, 1, true, cornu_sgd(0.1));
    CornuTensor *table = cornu_read(l.graph, l.table), *d_table;
    CornuTensor *rows = cornu_op_sum(cornu_op_gather(table, l.indices));
    CornuTensor *loss = cornu_op_add(rows, cornu_op_sum(cornu_op_square(table)));
    expect_ok(cornu_optimizer_build(l.optimizer, &l.table, 1));
    expect_ok(cornu_gradients(loss, &table, 1, &d_table));
    assert_int_equal(cornu_optimizer_apply(l.optimizer, l.graph, &d_table), CORNU_ERR_UNSUPPORTED);
    assert_non_null(strstr(cornu_error_message(), "table/embeddings: the gradient comes from"));
    end(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_tensorflows),
        cmocka_unit_test(sgd_has_the_bits_of_the_dense_gradient),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(no_dense_gradient_is_allocated),
        cmocka_unit_test(whole_tables_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
