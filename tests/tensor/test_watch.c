/* Watched graphs: the op that first produces a nan or an infinity is named, and no other. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../nn/golden.h"

enum { ROWS = 4, COLUMNS = 3 };

typedef struct {
    CornuDevice   *device;
    CornuGraph    *graph;
    CornuVariable *total;      /* assigned by a run: the sum of the shards' results */
    CornuTensor   *x;
} Watched;

static Watched open_watched(const char *name, int shards)
{
    Watched w = { .device = cornu_device_open(name, .threads = 1, .shards = shards) };
    w.graph = cornu_graph_create(w.device);
    w.total = cornu_variable_create(w.device, cornu_scalar(CORNU_F32), "total");
    w.x = cornu_graph_shard_input(w.graph, cornu_type(CORNU_F32, ROWS, COLUMNS));
    if (!w.total || !w.x) fail_msg("%s", cornu_error_message());
    cornu_graph_watch(w.graph, true);
    return w;
}

static void close_watched(Watched *w)
{
    cornu_graph_free(w->graph);
    cornu_variable_free(w->total);
    cornu_device_close(w->device);
}

/* Runs on ones except for one element. */
static CornuStatus run_with(Watched *w, CornuTensor *y, double element)
{
    float         x[2 * ROWS * COLUMNS];
    const int64_t shards = cornu_device_shards(w->device);
    for (int i = 0; i < 2 * ROWS * COLUMNS; i++) x[i] = 1.0F;
    x[shards * ROWS * COLUMNS - 2] = (float)element;
    expect_ok(cornu_assign(w->total, cornu_op_all_reduce(cornu_op_sum(y))));
    expect_ok(cornu_graph_feed(w->x, cornu_array(x, CORNU_F32, shards, ROWS, COLUMNS)));
    return cornu_run(w->graph, NULL, 0, NULL);
}

typedef struct {
    const char *device;
    int         shards;
    bool        meshed;     /* half of the shards along the batch, half cut the first layer */
} Machine;

static void the_first_op_is_named(void **state)
{
    const Machine *m = *state;
    Watched        w = open_watched(m->device, m->shards);
    cornu_graph_scope(w.graph, "first");
    CornuTensor *log = cornu_op_log(w.x);
    cornu_graph_scope(w.graph, "second");
    CornuTensor *y = cornu_op_scale(cornu_op_exp(log), 2.0);
    double       total = 0.0;
    expect_ok(run_with(&w, y, 3.0));
    expect_ok(cornu_variable_get(w.total, &total));
    assert_true(fabs(total - (24.0 * m->shards + 4.0)) < 1e-3);
    expect_error(run_with(&w, y, -1.0), CORNU_ERR_VALUE,
                 "first: log: 1 elements of its result, f32 (4, 3), are nan or infinite");
    expect_error(run_with(&w, y, NAN), CORNU_ERR_VALUE,
                 "a fed input: 1 elements of f32 (4, 3) are nan or infinite before the step");
    close_watched(&w);
}

static void unselected_infinities_are_ignored(void **state)
{
    const Machine *m = *state;
    Watched        w = open_watched(m->device, m->shards);
    CornuTensor   *zero = cornu_op_constant_like(w.x, 0.0);
    CornuTensor   *log = cornu_op_log(w.x);
    CornuTensor   *y = cornu_op_select(cornu_op_compare(w.x, CORNU_GREATER, zero), log, zero);
    expect_ok(run_with(&w, y, 0.0));
    close_watched(&w);
}

static void variables_are_named(void **state)
{
    const Machine *m = *state;
    Watched        w = open_watched(m->device, m->shards);
    CornuVariable *scale = cornu_variable_create(w.device, cornu_scalar(CORNU_F32), "scale");
    expect_ok(cornu_variable_set(scale, INFINITY));
    CornuTensor *y = cornu_op_multiply(w.x, cornu_op_broadcast(
        cornu_read(w.graph, scale), cornu_shape(ROWS, COLUMNS)));
    expect_error(run_with(&w, y, 1.0), CORNU_ERR_VALUE, "scale: 1 elements of f32");
    cornu_graph_watch(w.graph, false);
    expect_ok(run_with(&w, y, 1.0));
    cornu_graph_free(w.graph);
    cornu_variable_free(scale);
    w.graph = NULL;
    close_watched(&w);
}

/* ---- In a model ---- */

/* sqrt at 0 is fine; its gradient there is not. */
static CornuTensor *call_root(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return cornu_op_sqrt(cornu_op_relu(x));
}

static const CornuLayerClass root_class = { .class_name = "Root", .size = sizeof(CornuLayer),
                                            .call = call_root };

static CornuStatus train(const Machine *m, bool root, double rate)
{
    static float x[8 * 3];
    static float y[8];
    static const CornuLayoutRow rows[] = { { "dense/kernel", { NULL, "model" } }, { 0 } };
    for (int i = 0; i < 24; i++) x[i] = root ? 0.0F : 1e18F * (float)(i % 5);
    CornuDevice *device = cornu_device_open(m->device, .threads = 1, .shards = m->shards);
    CornuModel  *model = cornu_sequential(.input_shape = { 3 }, .policy = "float32");
    if (m->meshed) {
        const CornuMesh mesh = cornu_device_mesh(.shape = { m->shards / 2, 2 });
        expect_ok(cornu_device_set_mesh(device, &mesh, NULL, rows));
    }
    cornu_model_add(model, cornu_dense(4, .name = "dense"));
    if (root) cornu_model_add(model, cornu_layer_create(&root_class, NULL, NULL));
    cornu_model_add(model, cornu_dense(1));
    expect_ok(cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR, .optimizer = cornu_sgd(rate),
                            .device = device, .debug_nans = true));
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = cornu_train_on_batch(model, cornu_array(x, CORNU_F32, 8, 3),
                                      cornu_array(y, CORNU_F32, 8), NULL);
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}

static void models_name_the_layer(void **state)
{
    expect_error(train(*state, true, 0.1), CORNU_ERR_VALUE, "root/gradient: ");
    expect_error(train(*state, false, 0.1), CORNU_ERR_VALUE, "are nan or infinite");
    assert_null(strstr(cornu_error_message(), "before the step"));
}

#define ON_EACH(test)                                          \
    { #test " reference", test, NULL, NULL, &machines[0] },    \
    { #test " cpu", test, NULL, NULL, &machines[1] },          \
    { #test " tpu", test, NULL, NULL, &machines[2] }

int main(void)
{
    static Machine machines[] = { { "reference", 1, false }, { "cpu", 1, false },
                                  { "tpu", 2, false }, { "cpu", 4, true }, { "cpu", 2, true } };
    const struct CMUnitTest tests[] = {
        ON_EACH(the_first_op_is_named),
        ON_EACH(unselected_infinities_are_ignored),
        ON_EACH(variables_are_named),
        { "models_name_the_layer cpu", models_name_the_layer, NULL, NULL, &machines[1] },
        { "models_name_the_layer tpu", models_name_the_layer, NULL, NULL, &machines[2] },
        { "models_name_the_layer mesh", models_name_the_layer, NULL, NULL, &machines[3] },
        { "models_name_the_layer cut", models_name_the_layer, NULL, NULL, &machines[4] },
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
