/* Small files that would take hours or gigabytes are refused: by functions that call each other,
 * names and attributes that grow, searches of extents, windows. Where there are only many, they are
 * read in seconds. */
#include "../../../../nn/cornu.h"
#include "../../../../device/memory_internal.h"
#include "../../../../device/files/protobuf_internal.h"
#include "../../../datasets/files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Fields of ONNX' messages (onnx/onnx.proto). */
enum { GRAPH = 7, OPSET = 8, FUNCTION = 25 };                               /* of a model */
enum { GRAPH_NODE = 1, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NAME = 1, FROM = 4, TO = 5, ATTRIBUTES = 6, BODY = 7, OPSETS = 9 };  /* of a function */
enum { X = 1, Y = 2, OP = 4, ATTRIBUTE = 5, DOMAIN_OF = 7 };                /* of a node */
enum { STRING = 4, SUBGRAPH = 6, REFERS = 21 };                             /* of an attribute */

static void put_opset(CornuMessage *to, int field, int version)
{
    const size_t at = cornu__begin_field(to, field);
    cornu__put_number(to, 2, version);
    cornu__end_field(to, at);
}

/* A node with one input and one output; `call` tells a local function from an operator. */
static size_t begin_node(CornuMessage *to, int field, const char *op, bool call, const char *x,
                         const char *y)
{
    const size_t at = cornu__begin_field(to, field);
    cornu__put_text(to, X, x);
    cornu__put_text(to, Y, y);
    cornu__put_text(to, OP, op);
    if (call) cornu__put_text(to, DOMAIN_OF, "local");
    return at;
}

static void put_node(CornuMessage *to, int field, const char *op, bool call, const char *x,
                     const char *y)
{
    cornu__end_field(to, begin_node(to, field, op, call, x, y));
}

/* The function of x that is y; with the attribute "s" unless that is "". */
static size_t begin_function(CornuMessage *to, const char *name, const char *attribute)
{
    const size_t at = cornu__begin_field(to, FUNCTION);
    cornu__put_text(to, NAME, name);
    cornu__put_text(to, FROM, "x");
    cornu__put_text(to, TO, "y");
    if (*attribute) cornu__put_text(to, ATTRIBUTES, attribute);
    cornu__put_text(to, 10, "local");
    put_opset(to, OPSETS, 18);
    return at;
}

/* An input or output of floats: (batch, 3), or of `open` axes, each of a name of its own. */
static void put_info(CornuMessage *to, int field, const char *name, int open)
{
    const size_t info = cornu__begin_field(to, field);
    cornu__put_text(to, 1, name);
    const size_t type = cornu__begin_field(to, 2), tensor = cornu__begin_field(to, 1);
    cornu__put_number(to, 1, 1);   /* float */
    const size_t shape = cornu__begin_field(to, 2);
    for (int i = 0; i < (open ? open : 2); i++) {
        char         text[40];
        const size_t extent = cornu__begin_field(to, 1);
        snprintf(text, sizeof text, "%s%d", open ? name : "batch", i);
        if (open || i == 0) cornu__put_text(to, 2, text);
        else cornu__put_number(to, 1, 3);
        cornu__end_field(to, extent);
    }
    cornu__end_field(to, shape);
    cornu__end_field(to, tensor);
    cornu__end_field(to, type);
    cornu__end_field(to, info);
}

static size_t begin_graph(CornuMessage *to)
{
    cornu__put_number(to, 1, 8);
    put_opset(to, OPSET, 18);
    const size_t at = cornu__begin_field(to, GRAPH);
    put_info(to, GRAPH_INPUT, "x", 0);
    put_info(to, GRAPH_OUTPUT, "y", 0);
    return at;
}

static CornuModel *load(CornuMessage *file)
{
    const char *path = files_path(folder, "functions.onnx");
    FILE       *to = fopen(path, "wb");
    assert_false(file->failed);
    assert_non_null(to);
    assert_true(fwrite(file->bytes, 1, file->size, to) == file->size);
    assert_true(!fclose(to));
    cornu__release(file->bytes);
    return cornu_model_load(path);
}

static void expect_refused(CornuMessage *file, CornuStatus status, const char *part)
{
    CornuModel *model = load(file);
    assert_null(model);
    assert_int_equal(cornu_error_status(), status);
    if (!strstr(cornu_error_message(), part)) fail_msg("%s", cornu_error_message());
}

/* A model that returns its input. */
static void expect_same(CornuMessage *file)
{
    float       x[2][3] = { { 1, -2, 3 }, { -4, 5, -6 } }, y[2][3] = { { 0 } };
    CornuModel *model = load(file);
    if (!model) fail_msg("%s", cornu_error_message());
    assert_int_equal(cornu_predict_on_batch(model, cornu_array(x, CORNU_F32, 2, 3),
                                            cornu_array(y, CORNU_F32, 2, 3)), CORNU_OK);
    assert_memory_equal(x, y, sizeof x);
    cornu_model_free(model);
}

/* Calls of calls that have no nodes in the end: 40 to the 15th. */
static void test_calls_of_nothing(void **state)
{
    CornuMessage file = { 0 };
    char         name[20], y[20];
    (void)state;
    const size_t graph = begin_graph(&file);
    put_node(&file, GRAPH_NODE, "F0", true, "x", "none");
    put_node(&file, GRAPH_NODE, "Identity", false, "x", "y");
    cornu__end_field(&file, graph);
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "F%d", i);
        const size_t function = begin_function(&file, name, "");
        snprintf(name, sizeof name, "F%d", i + 1);
        for (int k = 0; k < 40 && i < 15; k++) {
            snprintf(y, sizeof y, "t%d", k);
            put_node(&file, BODY, name, true, "x", y);
        }
        cornu__end_field(&file, function);
    }
    expect_refused(&file, CORNU_ERR_MEMORY,
                   "the calls of its functions make more than 262144 nodes");
}

/* An attribute that a function hands on under 1,000 names: 1 MB becomes 1 GB. */
static void test_growing_attribute(void **state)
{
    enum { LENGTH = 1 << 20, COPIES = 1000 };
    CornuMessage file = { 0 };
    char        *text = calloc(LENGTH + 1, 1), name[20];
    (void)state;
    assert_non_null(text);
    memset(text, 's', LENGTH);
    const size_t graph = begin_graph(&file);
    const size_t call = begin_node(&file, GRAPH_NODE, "Outer", true, "x", "y");
    const size_t own = cornu__begin_field(&file, ATTRIBUTE);
    cornu__put_text(&file, 1, "s");
    cornu__put_text(&file, STRING, text);
    cornu__end_field(&file, own);
    cornu__end_field(&file, call);
    cornu__end_field(&file, graph);
    free(text);
    const size_t outer = begin_function(&file, "Outer", "s");
    const size_t next = begin_node(&file, BODY, "Inner", true, "x", "y");
    for (int i = 0; i < COPIES; i++) {
        const size_t copy = cornu__begin_field(&file, ATTRIBUTE);
        snprintf(name, sizeof name, "s%d", i);
        cornu__put_text(&file, 1, name);
        cornu__put_text(&file, REFERS, "s");
        cornu__end_field(&file, copy);
    }
    cornu__end_field(&file, next);
    cornu__end_field(&file, outer);
    const size_t inner = begin_function(&file, "Inner", "");
    put_node(&file, BODY, "Identity", false, "x", "y");
    cornu__end_field(&file, inner);
    expect_refused(&file, CORNU_ERR_MEMORY, "the calls of its functions make more than");
}

/* One node with many names in a call with a long one. */
static void test_long_names(void **state)
{
    enum { NAMES = 20000, LENGTH = 100000 };
    CornuMessage file = { 0 };
    char        *name = calloc(LENGTH + 1, 1);
    (void)state;
    assert_non_null(name);
    memset(name, 'n', LENGTH);
    const size_t graph = begin_graph(&file);
    const size_t call = begin_node(&file, GRAPH_NODE, "F", true, "x", "y");
    cornu__put_text(&file, 3, name);
    cornu__end_field(&file, call);
    cornu__end_field(&file, graph);
    const size_t function = begin_function(&file, "F", "");
    const size_t node = begin_node(&file, BODY, "Sum", false, "a", "y");
    for (int i = 0; i < NAMES; i++) cornu__put_text(&file, X, "a");
    cornu__end_field(&file, node);
    cornu__end_field(&file, function);
    free(name);
    expect_refused(&file, CORNU_ERR_MEMORY, "the calls of its functions make more than");
}

/* Beside a function, subgraphs in each other are copied; 20,000 would need too large a stack. */
static void test_deep_subgraphs(void **state)
{
    enum { DEPTH = 20000 };
    CornuMessage  file = { 0 };
    static size_t begun[DEPTH][3];
    (void)state;
    const size_t graph = begin_graph(&file);
    for (int i = 0; i < DEPTH; i++) {
        begun[i][0] = begin_node(&file, GRAPH_NODE, "If", false, "x", "y");
        begun[i][1] = cornu__begin_field(&file, ATTRIBUTE);
        cornu__put_text(&file, 1, "then_branch");
        begun[i][2] = cornu__begin_field(&file, SUBGRAPH);
    }
    for (int i = DEPTH - 1; i >= 0; i--)
        for (int k = 2; k >= 0; k--) cornu__end_field(&file, begun[i][k]);
    cornu__end_field(&file, graph);
    cornu__end_field(&file, begin_function(&file, "F", ""));
    expect_refused(&file, CORNU_ERR_UNSUPPORTED, "subgraphs are in each other more than 8 deep");
}

/* Many calls without a name of their own, and many functions: the time is not their product. */
static void test_many_calls(void **state)
{
    enum { CALLS = 50000, FUNCTIONS = 10000 };
    CornuMessage file = { 0 };
    char         name[60];
    (void)state;
    const size_t graph = begin_graph(&file);
    for (int i = 0; i < CALLS; i++) {
        snprintf(name, sizeof name, "t%d", i);
        put_node(&file, GRAPH_NODE, "a_function_of_a_long_name_0", true, "x", name);
    }
    put_node(&file, GRAPH_NODE, "Identity", false, "x", "y");
    cornu__end_field(&file, graph);
    for (int i = 0; i < FUNCTIONS; i++) {
        snprintf(name, sizeof name, "a_function_of_a_long_name_%d", i);
        const size_t function = begin_function(&file, name, "");
        put_node(&file, BODY, "Identity", false, "x", "y");
        cornu__end_field(&file, function);
    }
    expect_same(&file);
}

/* Of 240 extents any might make the last of 6,000 nodes fit; after so many trials none is tried any
 * more. */
static void test_many_extents(void **state)
{
    enum { INPUTS = 30, AXES = 8, NODES = 6000 };
    CornuMessage file = { 0 };
    char         x[20] = "x", y[20];
    (void)state;
    cornu__put_number(&file, 1, 8);
    put_opset(&file, OPSET, 18);
    const size_t graph = cornu__begin_field(&file, GRAPH);
    for (int i = 0; i < INPUTS; i++) {
        snprintf(y, sizeof y, i ? "x%c" : "x", 'a' + i);
        put_info(&file, GRAPH_INPUT, y, AXES);
    }
    put_info(&file, GRAPH_OUTPUT, "y", 2);
    for (int i = 0; i < NODES; i++) {
        snprintf(y, sizeof y, "t%d", i);
        put_node(&file, GRAPH_NODE, "Relu", false, x, y);
        memcpy(x, y, sizeof x);
    }
    const size_t shape = begin_node(&file, GRAPH_NODE, "Constant", false, "", "shape");
    const size_t value = cornu__begin_field(&file, ATTRIBUTE);
    cornu__put_text(&file, 1, "value_ints");
    cornu__put_number(&file, 8, 1000003);
    cornu__end_field(&file, value);
    cornu__end_field(&file, shape);
    const size_t last = begin_node(&file, GRAPH_NODE, "Reshape", false, x, "y");
    cornu__put_text(&file, X, "shape");
    cornu__end_field(&file, last);
    cornu__end_field(&file, graph);
    expect_refused(&file, CORNU_ERR_SHAPE, "It has open extents, with sizes of which this fails");
}

/* A node of known whole numbers alone, which stand in Constant nodes. */
static void put_known(CornuMessage *to, const char *op, const int64_t *numbers, int count)
{
    static const char *const names[] = { "a", "b", "c", "d", "e" };
    for (int i = 0; i < count; i++) {
        const size_t node = cornu__begin_field(to, GRAPH_NODE);
        cornu__put_text(to, Y, names[i]);
        cornu__put_text(to, OP, "Constant");
        const size_t value = cornu__begin_field(to, ATTRIBUTE);
        cornu__put_text(to, 1, "value_int");
        cornu__put_number(to, 3, numbers[i]);
        cornu__end_field(to, value);
        cornu__end_field(to, node);
    }
    const size_t node = cornu__begin_field(to, GRAPH_NODE);
    for (int i = 0; i < count; i++) cornu__put_text(to, X, names[i]);
    cornu__put_text(to, Y, "known");
    cornu__put_text(to, 3, "large");
    cornu__put_text(to, OP, op);
    cornu__end_field(to, node);
}

/* Windows and scales of more memory than a file may ask for, and of more elements than there can
 * be. */
static void test_large_windows(void **state)
{
    static const struct { const char *op; int count; int64_t numbers[5]; } large[] = {
        { "HannWindow", 1, { INT32_MAX } }, { "HammingWindow", 1, { INT32_MAX } },
        { "BlackmanWindow", 1, { INT32_MAX } },
        { "MelWeightMatrix", 5, { 1 << 17, 1 << 17, 16000, 0, 8000 } },
        { "MelWeightMatrix", 5, { INT32_MAX, INT32_MAX, 16000, 0, 8000 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        CornuMessage file = { 0 };
        const size_t graph = begin_graph(&file);
        put_known(&file, large[i].op, large[i].numbers, large[i].count);
        const size_t node = begin_node(&file, GRAPH_NODE, "Add", false, "x", "y");
        cornu__put_text(&file, X, "known");
        cornu__end_field(&file, node);
        cornu__end_field(&file, graph);
        expect_refused(&file, CORNU_ERR_MEMORY, "large (");
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, files_begin, files_end)
    const struct CMUnitTest tests[] = {
        TEST(test_calls_of_nothing),
        TEST(test_growing_attribute),
        TEST(test_long_names),
        TEST(test_deep_subgraphs),
        TEST(test_many_calls),
        TEST(test_many_extents),
        TEST(test_large_windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
