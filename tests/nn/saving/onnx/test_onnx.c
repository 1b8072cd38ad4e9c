/* Models as ONNX files: every class of layers is written, the files have the expected nodes, ONNX'
 * checker accepts them, and the ONNX runtime computes the same numbers. The last two need onnx and
 * onnxruntime in the interpreter that CORNU_PYTHON names (default python3), or are skipped.
 *
 * tests/run: quick
 */
#include "../../../../models/models.h"
#include "../../../../nn/cornu.h"
#include "../../../../nn/model/model_internal.h"
#include "../../../allocations.h"
#include "../../../datasets/files.h"
#include "../../../quick.h"
#include "../../golden.h"
#include "onnx_files.h"
#include "onnx_models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../../skip.h"
#include <zlib.h>

enum { MOST_BYTES = 1 << 20 };

static CornuDevice *device;

static int open_device(void **state)
{
    (void)state;
    device = cornu_device_open("cpu");
    return !device;
}

static int close_device(void **state)
{
    (void)state;
    cornu_device_close(device);
    return 0;
}

/* ---- The ONNX runtime ---- */

#define GOLDEN "tests/golden/onnx/outputs.npz"

static void write_layers(void)
{
    for (int i = 0; i < onnx_case_count; i++)
        onnx_write_case(device, onnx_cases[i].name, onnx_cases[i].make(), false, 0, 0);
}

/* With CORNU_WRITE_GOLDEN the outputs of the runtime are kept for the next test. */
static void test_layers_run_elsewhere(void **state)
{
    (void)state;
    write_layers();
    onnx_run_elsewhere(onnx_case_count, getenv("CORNU_WRITE_GOLDEN") ? GOLDEN : "");
}

/* The files are byte for byte those that the ONNX runtime ran, and outputs are close to those that
 * it computed: even without the runtime no attribute or constant can change unnoticed. */
static void test_files_are_those_that_ran(void **state)
{
    (void)state;
    static unsigned char bytes[MOST_BYTES];
    CornuNpz            *golden = cornu_npz_open(GOLDEN);
    int                  arrays = 0;
    if (!golden) fail_msg("%s", cornu_error_message());
    write_layers();
    for (int i = 0; i < onnx_case_count; i++) {
        char         name[100];
        const char  *model = onnx_cases[i].name;
        const size_t size = files_read(onnx_file(model, ".onnx"), bytes, sizeof bytes);
        snprintf(name, sizeof name, "%s/file", model);
        const CornuNamedArray *file = cornu_npz_find(golden, name);
        if (!file) fail_msg("%s is not in " GOLDEN, name);
        if (cornu_array_get(file->array, 0) != (double)size ||
            cornu_array_get(file->array, 1) != (double)crc32(crc32(0, NULL, 0), bytes, (uInt)size))
            fail_msg("%s.onnx is not the file that the ONNX runtime ran. If it is meant to be "
                     "another: CORNU_WRITE_GOLDEN=1 %s with onnxruntime", model, "test_onnx");
        CornuNpz *own = cornu_npz_open(onnx_file(model, ".npz"));
        assert_non_null(own);
        for (int k = 0; k < CORNU_MAX_MODEL_TENSORS; k++, arrays++) {
            snprintf(name, sizeof name, "%s/p%d", model, k);
            const CornuNamedArray *want = cornu_npz_find(golden, name);
            const CornuNamedArray *got = cornu_npz_find(own, strchr(name, '/') + 1);
            assert_int_equal(!want, !got);
            if (!want) break;
            assert_true(cornu_type_equal(want->array.type, got->array.type));
            expect_near(name, got->array.data, want->array, 1e-5);
        }
        cornu_npz_close(own);
    }
    assert_true(arrays >= onnx_case_count);
    assert_int_equal(cornu_npz_count(golden), arrays + onnx_case_count);
    cornu_npz_close(golden);
}

static void test_networks_run_elsewhere(void **state)
{
    (void)state;
    int                        count, written = 0;
    const CornuReferenceModel *models = cornu_reference_models(&count);
    for (int i = 0; i < count; i++) {
        if (models[i].large) continue;
        onnx_write_case(device, models[i].name, models[i].build(&(CornuNetworkConfig){ 0 }), true,
                        0, 0);
        written++;
    }
    onnx_run_elsewhere(written, "");
}

/* ---- Contents of the files ---- */

/* The rest of a protobuf message, see device/files/protobuf_internal.h. */
typedef struct { const unsigned char *at, *end; } Span;

static uint64_t next_number(Span *from)
{
    uint64_t number = 0;
    for (int shift = 0; from->at < from->end; shift += 7) {
        number |= (uint64_t)(*from->at & 0x7f) << shift;
        if (*from->at++ < 0x80) break;
    }
    return number;
}

/* The next field of bytes, skipping others; 0 at the end. */
static int next_field(Span *from, Span *value)
{
    while (from->at < from->end) {
        const uint64_t key = next_number(from);
        uint64_t       size = key % 8 == 1 ? 8 : key % 8 == 5 ? 4 : 0;
        if (key % 8 == 0) next_number(from);
        if (key % 8 == 2) size = next_number(from);
        assert_true(size <= (size_t)(from->end - from->at));
        *value = (Span){ from->at, from->at + size };
        from->at += size;
        if (key % 8 == 2) return (int)(key / 8);
    }
    return 0;
}

/* Whether a NodeProto is of this operator. */
static bool is_of(Span node, const char *operator)
{
    Span value;
    int  field;
    while ((field = next_field(&node, &value)) != 0)
        if (field == 4 && (size_t)(value.end - value.at) == strlen(operator) &&
            !memcmp(value.at, operator, strlen(operator)))
            return true;
    return false;
}

/* The number of nodes of an operator in a file, or of "constants". */
static int count_of(Span file, const char *what)
{
    enum { GRAPH = 7, NODE = 1, CONSTANT = 5 };
    Span graph = { 0 }, value;
    int  field, count = 0;
    while ((field = next_field(&file, &value)) != 0)
        if (field == GRAPH) graph = value;
    while ((field = next_field(&graph, &value)) != 0)
        count += strcmp(what, "constants") ? field == NODE && is_of(value, what)
                                           : field == CONSTANT;
    return count;
}

static void test_nodes(void **state)
{
    static unsigned char bytes[MOST_BYTES];
    (void)state;
    for (int i = 0; i < onnx_case_count; i++) {
        CornuModel *model = onnx_cases[i].make();
        const char *text = onnx_cases[i].nodes;
        char        what[40];
        int         want, used;
        if (!model) fail_msg("%s: %s", onnx_cases[i].name, cornu_error_message());
        expect_ok(cornu_model_save(model, onnx_file(onnx_cases[i].name, ".onnx")));
        const size_t size = files_read(onnx_file(onnx_cases[i].name, ".onnx"), bytes, sizeof bytes);
        for (; sscanf(text, "%39s %d%n", what, &want, &used) == 2; text += used) {
            const int got = count_of((Span){ bytes, bytes + size }, what);
            if (got != want) fail_msg("%s: %s: %d, not %d", onnx_cases[i].name, what, got, want);
        }
        assert_string_equal(text, "");
        cornu_model_free(model);
    }
}

/* Whether the graph has an input or output of this name. */
static bool has(Span file, int field, const char *name)
{
    enum { GRAPH = 7, NAME = 1 };
    Span graph = { 0 }, value, text;
    int  found;
    while ((found = next_field(&file, &value)) != 0)
        if (found == GRAPH) graph = value;
    while ((found = next_field(&graph, &value)) != 0)
        if (found == field && next_field(&value, &text) == NAME &&
            (size_t)(text.end - text.at) == strlen(name) &&
            !memcmp(text.at, name, strlen(name)))
            return true;
    return false;
}

/* Inputs and outputs have the names of their layers, also those of a layer that is called twice. */
static void test_names(void **state)
{
    enum { INPUT = 11, OUTPUT = 12 };
    static unsigned char bytes[MOST_BYTES];
    (void)state;
    CornuSymbol *a = cornu_input(.shape = { 3 }, .name = "left"), *b = cornu_input(.shape = { 3 });
    CornuLayer  *shared = cornu_dense(2, .name = "code");
    CornuModel  *model = cornu_model(.inputs = { a, b },
                                     .outputs = { cornu_call(shared, a), cornu_call(shared, b) });
    if (!model) fail_msg("%s", cornu_error_message());
    expect_ok(cornu_model_save(model, onnx_file("names", ".onnx")));
    const Span file = { bytes, bytes + files_read(onnx_file("names", ".onnx"), bytes,
                                                  sizeof bytes) };
    assert_true(has(file, INPUT, "left") && has(file, INPUT, cornu_layer_name(b->node->layer)));
    assert_true(has(file, OUTPUT, "code_out") && has(file, OUTPUT, "code_out_1"));
    cornu_model_free(model);
}

/* ---- Completeness and refusals ---- */

static void note_classes(const CornuLayer *layer, const CornuLayerClass *const *classes, int count,
                         bool *seen)
{
    for (int i = 0; i < count; i++) seen[i] |= classes[i] == layer->kind;
    for (int i = 0; i < layer->inner_count; i++)
        note_classes(layer->inner[i], classes, count, seen);
}

/* A class without a rule would have no case either. */
static void test_every_class(void **state)
{
    bool seen[200] = { false };
    int  count = 0;
    (void)state;
    const CornuLayerClass *const *classes = cornu__layer_classes;
    while (classes[count]) count++;
    assert_true(count <= 200);
    for (int i = 0; i < onnx_case_count; i++) {
        CornuModel *model = onnx_cases[i].make();
        if (!model) fail_msg("%s: %s", onnx_cases[i].name, cornu_error_message());
        note_classes(&model->base, classes, count, seen);
        cornu_model_free(model);
    }
    for (int i = 0; i < count; i++)   /* those that run on the host have no nodes */
        if (!seen[i] && !classes[i]->host_call)
            fail_msg("no case has a layer of class %s", classes[i]->class_name);
}

static void test_equal_bytes(void **state)
{
    static unsigned char a[40000], b[40000];
    (void)state;
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        cornu_set_random_seed(3);
        CornuModel *model = onnx_cases[0].make();
        expect_ok(cornu_model_save(model, onnx_file("equal", ".onnx")));
        sizes[i] = files_read(onnx_file("equal", ".onnx"), i ? b : a, sizeof a);
        cornu_model_free(model);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(a, b, sizes[0]);
}

static void refuse(CornuModel *model, const char *message)
{
    if (!model) fail_msg("%s", cornu_error_message());
    expect_error(cornu_model_save(model, onnx_file("refused", ".onnx")), CORNU_ERR_UNSUPPORTED,
                 message);
    assert_int_equal(files_count(folder), 0);
    cornu_model_free(model);
}

static CornuModel *of_one(CornuLayer *layer)
{
    CornuModel *model = cornu_sequential(.input_shape = { 5, 2 }, .batch_size = 4);
    cornu_model_add(model, layer);
    return model;
}

static CornuTensor *noise(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer;
    return cornu_op_add(x, cornu_op_random_uniform(cornu_tensor_shape(x), call->seed,
                                                   call->iteration, call->position, 0));
}

/* y = x sigmoid(1.5 x): as a registered op, which is written as what it is composed of, and
 * written out. */
static void swish(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    y[0] = cornu_op_multiply(x[0], cornu_op_sigmoid(cornu_op_scale(x[0], call->numbers[0])));
}

static CornuTensor *swishes(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return cornu_op_custom(cornu_op_find("onnx_swish"), &x, 1, (const double[]){ 1.5 }, 1, NULL);
}

static CornuTensor *swishes_by_hand(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return cornu_op_multiply(x, cornu_op_sigmoid(cornu_op_scale(x, 1.5)));
}

static void test_registered_ops(void **state)
{
    static const CornuLayerClass kinds[] = {
        { .class_name = "Swish", .size = sizeof(CornuLayer), .call = swishes },
        { .class_name = "Swish", .size = sizeof(CornuLayer), .call = swishes_by_hand },
    };
    static unsigned char bytes[2][10000];
    size_t               sizes[2];
    (void)state;
    assert_non_null(cornu_op_register(&(CornuOpDefinition){ .name = "onnx_swish",
                                                            .composition = swish }));
    for (int i = 0; i < 2; i++) {
        CornuModel *model = cornu_sequential(.name = "swishes", .input_shape = { 5, 2 });
        cornu_model_add(model, cornu_layer_create(&kinds[i], "swish", NULL));
        expect_ok(cornu_model_save(model, onnx_file("registered", ".onnx")));
        sizes[i] = files_read(onnx_file("registered", ".onnx"), bytes[i], sizeof bytes[i]);
        cornu_model_free(model);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_memory_equal(bytes[0], bytes[1], sizes[0]);
}

static CornuStatus doubled(const CornuOpArguments *call, const double *const *in,
                           const CornuType *out_type, double *const *out)
{
    (void)call;
    for (int64_t i = 0; i < cornu_type_count(out_type[0]); i++) out[0][i] = 2.0 * in[0][i];
    return CORNU_OK;
}

static CornuTensor *doubles(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return cornu_op_custom(cornu_op_find("onnx_doubled"), &x, 1, NULL, 0, NULL);
}

static void test_refused(void **state)
{
    static const CornuLayerClass own = { .class_name = "Noise", .size = sizeof(CornuLayer),
                                         .call = noise };
    (void)state;
    CornuModel *draws = of_one(cornu_layer_create(&own, NULL, NULL));   /* RandomUniformLike */
    expect_ok(cornu_model_save(draws, onnx_file("draws", ".onnx")));
    assert_int_equal(unlink(onnx_file("draws", ".onnx")), 0);
    cornu_model_free(draws);
    static const CornuLayerClass twice = { .class_name = "Twice", .size = sizeof(CornuLayer),
                                           .call = doubles };
    assert_non_null(cornu_op_register(&(CornuOpDefinition){ .name = "onnx_doubled",
                                                            .reference = doubled }));
    refuse(of_one(cornu_layer_create(&twice, NULL, NULL)),
           "twice: the op onnx_doubled is not available in ONNX files, it has no counterpart");
}

/* Out of memory at any point of saving. */
static void test_no_memory(void **state)
{
    (void)state;
    if (!allocations_counted()) SKIP_FOR(SKIP_SANITIZER);
    for (int i = 0; i <= onnx_case_count; i++) {
        const bool  weights = i == onnx_case_count;
        CornuModel *model = onnx_cases[weights ? 0 : i].make();
        CornuStatus status = CORNU_ERR_MEMORY;
        char        path[FILES_PATH];
        strcpy(path, onnx_file("no_memory", weights ? ".npz" : ".onnx"));
        unlink(path);
        for (int n = 0; status != CORNU_OK; n += quick(13, 1)) {
            assert_int_not_equal(access(path, F_OK), 0);
            const int64_t held = allocations_held();
            allocations_fail_after(n);
            status = (weights ? cornu_model_save_weights : cornu_model_save)(model, path);
            allocations_fail_after(NEVER);
            assert_int_equal(allocations_held(), held);
        }
        assert_int_equal(access(path, F_OK), 0);
        cornu_model_free(model);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)
    const struct CMUnitTest tests[] = {
        TEST(test_layers_run_elsewhere),
        TEST(test_files_are_those_that_ran),
        TEST(test_networks_run_elsewhere),
        TEST(test_nodes),
        TEST(test_names),
        TEST(test_every_class),
        TEST(test_equal_bytes),
        TEST(test_registered_ops),
        TEST(test_refused),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
