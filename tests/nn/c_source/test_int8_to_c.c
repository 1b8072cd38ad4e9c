/*
 * Models of 8 bits as C source: the bits of the library, for every operator that quantized networks
 * have. Needs a compiler, `cc`.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../../datasets/files.h"
#include "../../expect.h"
#include "../../../nn/c_source/int8_internal.h"
#include "../../skip.h"
#include "../lite/operator_graphs.h"
#include "compiled.h"

enum { ROWS = 64 };

static CornuSymbol *image(void) { return cornu_input(.shape = { 11, 9, 4 }); }

static CornuModel *convolutions(void)
{
    CornuSymbol *x = image();
    CornuSymbol *y = cornu_call(cornu_conv2d(8, 3, .strides = { 2, 2 }, .padding = CORNU_SAME,
                                             .activation = CORNU_RELU), x);
    y = cornu_call(cornu_depthwise_conv2d(3, .depth_multiplier = 2, .padding = CORNU_SAME), y);
    y = cornu_call(cornu_conv2d(6, 2, .dilation_rate = { 2, 1 }, .activation = CORNU_RELU6), y);
    y = cornu_call(cornu_average_pooling2d(2, .padding = CORNU_SAME), y);
    y = cornu_call(cornu_flatten(), y);
    return cornu_model(.inputs = { x }, .outputs = { cornu_call(
                           cornu_dense(10, .activation = CORNU_SOFTMAX), y) });
}

static CornuModel *branches(void)
{
    CornuSymbol *x = image();
    CornuSymbol *a = cornu_call(cornu_conv2d(4, 3, .padding = CORNU_SAME), x);
    CornuSymbol *y = cornu_call(cornu_add(), x, a);
    y = cornu_call(cornu_multiply(), y, cornu_call(cornu_activation(CORNU_SIGMOID), a));
    y = cornu_call(cornu_concatenate(), y, cornu_call(cornu_activation(CORNU_TANH), x));
    y = cornu_call(cornu_max_pooling2d(3, 2, .padding = CORNU_SAME), y);
    y = cornu_call(cornu_up_sampling2d(2), y);
    y = cornu_call(cornu_zero_padding2d(.padding = { { 1, 2 }, { 0, 1 } }), y);
    y = cornu_call(cornu_maximum(), y, cornu_call(cornu_leaky_relu(), y));
    y = cornu_call(cornu_global_average_pooling2d(), y);
    return cornu_model(.inputs = { x }, .outputs = { cornu_call(cornu_dense(3), y) });
}

static CornuModel *moved(void)
{
    CornuSymbol *x = image();
    CornuSymbol *y = cornu_call(cornu_permute({ 3, 1, 2 }), x);
    y = cornu_call(cornu_reshape({ 36, 11 }), y);
    y = cornu_call(cornu_dense(5, .activation = CORNU_ELU), y);
    y = cornu_call(cornu_cropping1d(.cropping = { 3, 2 }), y);
    y = cornu_call(cornu_global_max_pooling1d(), y);
    return cornu_model(.inputs = { x }, .outputs = { y });
}

static void compile_both(const char *name, CornuInt8Model *small)
{
    static const char *const flags[] = {
        "cc -std=c99 -O1 -fsanitize=undefined -fno-sanitize-recover=all -shared -fPIC "
        "-o '%s/%s.so'",
        "c++ -std=c++17 -x c++ -c -o '%s/%s.o'", "clang -std=c99 -c -o '%s/%s.o'"
    };
    char path[FILES_PATH + 80], command[2048];
    snprintf(path, sizeof path, "%s/%s.c", folder, name);
    expect_ok(cornu_int8_compile_to_c(small, path, NULL));
    for (int i = 0; i < 3; i++) {
        char compiler[256];
        if (i == 2 && system("clang --version >/dev/null 2>&1") != 0) continue;
        snprintf(compiler, sizeof compiler, flags[i], folder, name);
        snprintf(command, sizeof command, "%s -Wall -Wextra -Wconversion -Werror '%s'", compiler,
                 path);
        if (system(command) != 0) fail_msg("%s", command);
    }
}

static void expect_bits(const char *name, CornuModel *model)
{
    const CornuType type = cornu_type(CORNU_F32, ROWS, 11, 9, 4);
    float          *x = malloc(cornu_type_bytes(type));
    uint32_t        seed = 5;
    assert_non_null(x);
    if (!model) fail_msg("%s", cornu_error_message());
    for (int64_t i = 0; i < cornu_type_count(type); i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
    CornuInt8Model *small = cornu_quantize(model, .x = cornu_array_from(x, type));
    if (!small) fail_msg("%s", cornu_error_message());
    compile_both(name, small);
    char path[FILES_PATH + 80], symbol[80];
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    snprintf(symbol, sizeof symbol, "%s_predict", name);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    void *found = dlsym(library, symbol);
    void (*predict)(void *, const int8_t *, int8_t *);
    memcpy(&predict, &found, sizeof found);
    assert_non_null(found);
    enum { X = 11 * 9 * 4, MOST = 64 };
    static _Alignas(64) unsigned char scratch[1 << 16];
    const CornuShape y = cornu_int8_output_shape(small);
    const int64_t    each = cornu_shape_count(y) < 0 ? -cornu_shape_count(y)
                                                     : cornu_shape_count(y);
    int8_t in[X], got[MOST], want[MOST];
    for (int row = 0; row < ROWS; row++) {
        for (int i = 0; i < X; i++) {
            seed = seed * 1664525u + 1013904223u;
            in[i] = (int8_t)(seed >> 24);
        }
        predict(scratch, in, got);
        expect_ok(cornu_int8_predict_integers(small, 1, in, want));
        assert_memory_equal(got, want, (size_t)each);
    }
    dlclose(library);
    cornu_int8_free(small);
    cornu_model_free(model);
    free(x);
}

static void test_bits(void **state)
{
    (void)state;
    if (!has_compiler()) SKIP_FOR("a C compiler: apt-get install gcc");
    expect_bits("convolutions", convolutions());
    expect_bits("branches", branches());
    expect_bits("moved", moved());
}

/* ---- Operators one by one, with what LiteRT's interpreter computed ---- */

/* All of them in one library. */
static void *compile_operators(Golden *golden)
{
    char        path[FILES_PATH + 80], command[2048];
    const char *name;
    json_t     *about;
    int         count = 0;
    snprintf(path, sizeof path, "%s/operators.c", folder);
    FILE *all = fopen(path, "w");
    assert_non_null(all);
    json_object_foreach(golden->cases, name, about) {
        CornuLiteGraph *graph = operator_graph(golden, name, about);
        snprintf(path, sizeof path, "%s/op_n%d.c", folder, count);
        expect_ok(cornu__c_int8_write(graph, path, NULL));
        fprintf(all, "#include \"op_n%d.c\"\n", count++);
        cornu__lite_graph_free(graph);
    }
    assert_int_equal(fclose(all), 0);
    snprintf(command, sizeof command, "cd '%s' && cc -std=c99 -Wall -Wextra -Wconversion -Werror "
             "-fsanitize=undefined -fno-sanitize-recover=all -shared -fPIC operators.c "
             "-o operators.so", folder);
    if (system(command) != 0) fail_msg("%s", command);
    snprintf(path, sizeof path, "%s/operators.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) fail_msg("%s", dlerror());
    return library;
}

/* With up to two inputs. */
static void call(void *library, int number, const void *const *in, int count, void *out)
{
    static _Alignas(64) unsigned char scratch[1 << 16];
    char  symbol[64];
    snprintf(symbol, sizeof symbol, "op_n%d_predict", number);
    void *found = dlsym(library, symbol);
    if (!found) fail_msg("%s", dlerror());
    void (*one)(void *, const void *, void *);
    void (*two)(void *, const void *, const void *, void *);
    void (*three)(void *, const void *, const void *, const void *, void *);
    memcpy(&one, &found, sizeof found);
    memcpy(&two, &found, sizeof found);
    memcpy(&three, &found, sizeof found);
    if (count == 1) one(scratch, in[0], out);
    else if (count == 2) two(scratch, in[0], in[1], out);
    else three(scratch, in[0], in[1], in[2], out);
}

static void test_operators(void **state)
{
    (void)state;
    if (!has_compiler()) SKIP_FOR("a C compiler: apt-get install gcc");
    Golden      golden = golden_open("tests/golden/int8/operators.safetensors");
    void       *library = compile_operators(&golden);
    const char *name;
    json_t     *about;
    int         tried = 0;
    json_object_foreach(golden.cases, name, about) {
        const int   count = (int)json_array_size(json_object_get(about, "inputs"));
        const void *in[MOST_PORTS];
        assert_in_range(count, 1, 3);
        for (int i = 0; i < count; i++) {
            char key[16];
            snprintf(key, sizeof key, "in%d", i);
            in[i] = golden_array(&golden, name, key).data;
        }
        const CornuArray want = golden_array(&golden, name, "out0");
        char            *got = malloc(cornu_type_bytes(want.type) + 1);
        assert_non_null(got);
        call(library, tried, in, count, got);
        if (memcmp(got, want.data, cornu_type_bytes(want.type))) fail_msg("%s differs", name);
        free(got);
        tried++;
    }
    assert_true(tried >= 110);
    dlclose(library);
    golden_close(&golden);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_bits),
                                        cmocka_unit_test(test_operators) };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
