/* initial_state and return_state of recurrent layers, by cornu_layer_call_many: against Keras (the
 * script is tests/golden/make_recurrent.py), over parts of a sequence, and invalid use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden.h"

enum { BATCH = 3, STEPS = 5, CHANNELS = 4, UNITS = 6, MOST = 16 };

/* The layer under test, with its weights, on the device. */
static CornuLayer *layer_of(Golden *golden, const char *name, const json_t *about,
                            CornuDevice *device)
{
    static const char *const weights[] = { "kernel", "recurrent", "bias" };
    const char          *kind = json_string_value(json_object_get(about, "layer"));
    const bool           other = json_object_get(about, "activation") != NULL;
    CornuRecurrentConfig config = {
        .units = UNITS, .return_sequences = true, .return_state = true,
        .go_backwards = json_is_true(json_object_get(about, "go_backwards")),
        .no_reset_after = json_is_false(json_object_get(about, "reset_after")),
    };
    if (other) {
        expect_ok(cornu_activation_find("relu", &config.activation));
        expect_ok(cornu_activation_find("hard_sigmoid", &config.recurrent_activation));
    }
    CornuLayer *layer = strcmp(kind, "LSTM") == 0  ? cornu_lstm_from(&config)
                        : strcmp(kind, "GRU") == 0 ? cornu_gru_from(&config)
                                                   : cornu_simple_rnn_from(&config);
    assert_non_null(layer);
    expect_ok(cornu_layer_build(layer, cornu_shape(CORNU_NONE, STEPS, CHANNELS)));
    for (int i = 0; i < layer->weight_count; i++)
        expect_ok(cornu_weight_write(layer->weights[i], golden_array(golden, name, weights[i])));
    expect_ok(cornu_layer_move(layer, device));
    return layer;
}

/* A case on a device: inputs, outputs, and gradients of the weighted sum of the outputs. */
typedef struct {
    Golden      *golden;
    const char  *name;
    CornuGraph  *graph;
    CornuTensor *loss, *fetches[MOST];
    char         names[MOST][24];
    int          count;
} Case;

static CornuTensor *fed(Case *c, const char *test_case, const char *name)
{
    const CornuArray array = golden_array(c->golden, test_case, name);
    CornuTensor     *tensor = cornu_graph_input(c->graph, array.type);
    expect_ok(cornu_graph_feed(tensor, array));
    return tensor;
}

static void fetch(Case *c, CornuTensor *tensor, const char *prefix, const char *name)
{
    snprintf(c->names[c->count], sizeof *c->names, "%s%s", prefix, name);
    c->fetches[c->count++] = tensor;
}

/* Weighs a result in the loss. */
static void result(Case *c, CornuTensor *tensor, const char *name)
{
    char weight[32];
    snprintf(weight, sizeof weight, "weight_%s", name);
    CornuTensor *term = cornu_op_sum(cornu_op_multiply(tensor, fed(c, c->name, weight)));
    c->loss = c->loss ? cornu_op_add(c->loss, term) : term;
    fetch(c, tensor, "", name);
}

static void run_case(Case *c)
{
    CornuArray out[MOST];
    for (int i = 0; i < c->count; i++) {
        const CornuType type = cornu_tensor_type(c->fetches[i]);
        out[i] = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    }
    expect_ok(cornu_run(c->graph, c->fetches, c->count, out));
    for (int i = 0; i < c->count; i++) {
        char what[96];
        snprintf(what, sizeof what, "%s/%s", c->name, c->names[i]);
        expect_near(what, out[i].data, golden_array(c->golden, c->name, c->names[i]), 2e-5);
        free(out[i].data);
    }
}

static void check_case(CornuDevice *device, Golden *golden, const char *name, const json_t *about)
{
    static const char *const inputs[] = { "x", "h0", "c0", "kernel", "recurrent", "bias" };
    static const char *const outputs[] = { "h", "last_h", "last_c" };
    Case         c = { .golden = golden, .name = name, .graph = cornu_graph_create(device) };
    CornuLayer  *layer = layer_of(golden, name, about, device);
    CornuCall    call = { .graph = c.graph };
    CornuTensor *wanted[6], *d[6], *out[3];
    const char  *names[6];
    const int    count = cornu_layer_outputs(layer);
    assert_int_equal(count, strcmp(layer->kind->class_name, "LSTM") == 0 ? 3 : 2);
    if (json_is_true(json_object_get(about, "masked")))
        call.mask = cornu_op_convert(fed(&c, NULL, "mask"), CORNU_BOOL);
    for (int i = 0; i < count; i++) wanted[i] = fed(&c, name, names[i] = inputs[i]);
    for (int i = 0; i < 3; i++) {
        wanted[count + i] = cornu_layer_read(layer, &call, i);
        names[count + i] = inputs[3 + i];
    }
    CornuTensor *y = cornu_layer_call_many(layer, &call, wanted, count, out, count);
    assert_ptr_equal(y, out[0]);
    /* The golden outputs are in the order of time. */
    if (json_is_true(json_object_get(about, "go_backwards"))) out[0] = cornu_op_flip(out[0], 1);
    for (int i = 0; i < count; i++) result(&c, out[i], outputs[i]);
    expect_ok(cornu_gradients(c.loss, wanted, count + 3, d));
    for (int i = 0; i < count + 3; i++) fetch(&c, d[i], "d_", names[i]);
    run_case(&c);
    cornu_graph_free(c.graph);
    cornu_layer_free(layer);
}

static void agrees_with_keras(void **state)
{
    static const char *const devices[] = { "reference", "cpu", "tpu" };
    (void)state;
    Golden      golden = golden_open("tests/golden/recurrent/recurrent.safetensors");
    const char *name;
    json_t     *about;
    for (int i = 0; i < 3; i++) {
        int          count = 0;
        CornuDevice *device = cornu_device_open(devices[i], .shards = 1);
        assert_non_null(device);
        json_object_foreach(golden.cases, name, about) {
            check_case(device, &golden, name, about);
            count++;
        }
        assert_int_equal(count, 11);
        cornu_device_close(device);
    }
    golden_close(&golden);
}

/* ---- From part to part ---- */

static CornuLayer *small_lstm(CornuDevice *device, bool sequences, bool stateful)
{
    CornuLayer *layer = cornu_lstm(UNITS, .return_sequences = sequences, .return_state = true,
                                   .stateful = stateful);
    assert_non_null(layer);
    expect_ok(cornu_layer_build(layer, cornu_shape(CORNU_NONE, STEPS, CHANNELS)));
    expect_ok(cornu_layer_move(layer, device));
    return layer;
}

static CornuTensor *steps(CornuTensor *x, int64_t first, int64_t count)
{
    return cornu_op_slice(x, (int64_t[]){ 0, first, 0 }, (int64_t[]){ BATCH, count, CHANNELS });
}

typedef struct {
    CornuGraph  *graph;
    CornuCall    call;
    CornuTensor *x;
} Part;

/* A graph whose x, steps first to first + count of a sequence, differs per shard, as the states
 * do. */
static Part begin(CornuDevice *device, int64_t first, int64_t count)
{
    static float sequence[BATCH * STEPS * CHANNELS];
    for (int i = 0; i < BATCH * STEPS * CHANNELS; i++) sequence[i] = (float)(i * 7 % 11 - 5) / 5;
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_shard_input(
        graph, cornu_type(CORNU_F32, BATCH, STEPS, CHANNELS));
    expect_ok(cornu_graph_feed(x, cornu_array(sequence, CORNU_F32, 1, BATCH, STEPS, CHANNELS)));
    return (Part){ graph, { .graph = graph }, steps(x, first, count) };
}

/* Runs and ends it. */
static void run_part(Part *part, CornuTensor *const *fetches, int count, float (*to)[BATCH * UNITS])
{
    CornuArray out[4];
    for (int i = 0; i < count; i++) out[i] = cornu_array(to[i], CORNU_F32, 1, BATCH, UNITS);
    expect_ok(cornu_run(part->graph, fetches, count, out));
    cornu_graph_free(part->graph);
}

static void expect_same(const char *what, const float *got, const float *wanted)
{
    float copy[BATCH * UNITS];
    memcpy(copy, wanted, sizeof copy);
    expect_near(what, got, cornu_array(copy, CORNU_F32, BATCH, UNITS), 1e-6);
}

/* The final states of one part are the initial states of the next; h is also the output. */
static void states_go_from_part_to_part(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu");
    CornuLayer  *layer = small_lstm(device, false, false);
    CornuTensor *y[3], *in[3];
    float        whole[3][BATCH * UNITS], got[3][BATCH * UNITS];
    Part         part = begin(device, 0, STEPS);
    cornu_layer_call_many(layer, &part.call, &part.x, 1, y, 3);
    run_part(&part, y, 3, whole);
    assert_memory_equal(whole[0], whole[1], sizeof *whole);

    part = begin(device, 0, STEPS);
    in[0] = steps(part.x, 0, 2);
    cornu_layer_call_many(layer, &part.call, in, 1, y, 3);
    in[0] = steps(part.x, 2, 3), in[1] = y[1], in[2] = y[2];
    cornu_layer_call_many(layer, &part.call, in, 3, y, 3);
    run_part(&part, y, 3, got);
    for (int i = 1; i < 3; i++) expect_same("state", got[i], whole[i]);
    cornu_layer_free(layer);
    cornu_device_close(device);
}

/* A stateful layer starts from given states, and still stores its final states. */
static void a_stateful_layer_takes_states(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu");
    CornuLayer  *layer = small_lstm(device, false, true);
    CornuTensor *y[3], *in[3];
    float        whole[3][BATCH * UNITS], got[2][3][BATCH * UNITS];
    Part         part = begin(device, 0, STEPS);
    cornu_layer_call_many(layer, &part.call, &part.x, 1, y, 3);
    run_part(&part, y, 3, whole);
    for (int round = 0; round < 2; round++) {
        part = begin(device, 0, 2);
        in[0] = part.x;
        in[1] = in[2] = cornu_op_constant(part.graph, cornu_type(CORNU_F32, BATCH, UNITS), 0.0);
        cornu_layer_call_many(layer, &part.call, in, 3, y, 3);
        run_part(&part, y, 3, got[round]);
    }
    assert_memory_equal(got[0], got[1], sizeof *got);
    part = begin(device, 2, 3);
    cornu_layer_call_many(layer, &part.call, &part.x, 1, y, 3);
    run_part(&part, y, 3, got[0]);
    for (int i = 1; i < 3; i++) expect_same("remembered state", got[0][i], whole[i]);
    cornu_layer_free(layer);
    cornu_device_close(device);
}

/* ---- Refusals ---- */

static void refusals(void **state)
{
    (void)state;
    CornuDevice *device = cornu_device_open("cpu");
    CornuLayer  *layer = small_lstm(device, true, false), *dense = cornu_dense(2);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuCall    call = { .graph = graph };
    CornuTensor *x = cornu_op_constant(graph, cornu_type(CORNU_F32, BATCH, STEPS, CHANNELS), 0.0);
    CornuTensor *h = cornu_op_constant(graph, cornu_type(CORNU_F32, BATCH, UNITS + 1), 0.0);
    CornuTensor *in[] = { x, h, h, h, h }, *out[3] = { x, x, x };
    expect_ok(cornu_layer_build(dense, cornu_shape(CORNU_NONE, STEPS, CHANNELS)));
    const struct {
        CornuLayer *layer;
        int         in, out;
        CornuStatus status;
        const char *part;
    } wrong[] = {
        { layer, 1, 1, CORNU_ERR_ARGUMENT, "lstm: returns 3 tensors, not 1" },
        { layer, 5, 3, CORNU_ERR_ARGUMENT, "lstm: 4 initial states, expected 2 or none" },
        { layer, 2, 3, CORNU_ERR_ARGUMENT, "lstm: 1 initial states, expected 2 or none" },
        { layer, 3, 3, CORNU_ERR_SHAPE, "initial state 0 is f32 (3, 7), expected f32 (3, 6)" },
        { dense, 2, 1, CORNU_ERR_ARGUMENT, "dense: got 2 tensors, expected 1 to 1" },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        out[0] = x;
        assert_null(cornu_layer_call_many(wrong[i].layer, &call, in, wrong[i].in, out,
                                          wrong[i].out));
        assert_null(out[0]);
        expect_error(cornu_error_take(), wrong[i].status, wrong[i].part);
    }
    in[1] = NULL;
    assert_null(cornu_layer_call_many(layer, &call, in, 3, out, 3));
    assert_false(cornu_error_pending());

    CornuModel *model = cornu_sequential(.input_shape = { STEPS, CHANNELS }, .name = "net");
    expect_error(cornu_model_add(model, cornu_gru(2, .return_state = true)), CORNU_ERR_UNSUPPORTED,
                 "gru: returns 2 tensors, expected 1 in the Sequential model net; use cornu_call");
    cornu_model_free(model);
    cornu_graph_free(graph);
    cornu_layer_free(layer), cornu_layer_free(dense);
    cornu_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_keras),
        cmocka_unit_test(states_go_from_part_to_part),
        cmocka_unit_test(a_stateful_layer_takes_states),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
