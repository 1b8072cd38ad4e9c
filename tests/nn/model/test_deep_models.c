/*
 * Models with very long sequences of layers: no function recurses to the depth of the model, or
 * takes quadratic time.
 *
 * tests/run: alone, in check
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../../../nn/cornu.h"
#include "../../datasets/files.h"

/* A fiftieth of the usual stack of a thread; sanitizers enlarge frames. */
#if defined(__SANITIZE_ADDRESS__)
enum { STACK = 1024 * 1024 };
#else
enum { STACK = 128 * 1024 };
#endif

/* fail_msg works only on the first thread. */
typedef struct {
    int         layers;
    const char *path;
    char        failure[1200];
    size_t      printed;
    float       predicted[2];
} Work;

static void *fails(Work *work, const char *what)
{
    snprintf(work->failure, sizeof work->failure, "%s: %s", what, cornu_error_message());
    return NULL;
}

static void in_small_stack(void *(*body)(void *), Work *work)
{
    pthread_attr_t attributes;
    pthread_t      thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK), 0);
    assert_int_equal(pthread_create(&thread, &attributes, body, work), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    if (*work->failure) fail_msg("%s", work->failure);
}

static CornuModel *chain(int layers)
{
    CornuSymbol *input = cornu_input(.shape = { 2 }), *x = input;
    for (int i = 0; i < layers; i++) x = cornu_call(cornu_activation(CORNU_RELU), x);
    return cornu_model(.inputs = { input }, .outputs = { x });
}

static void count_text(void *context, const char *text)
{
    ((Work *)context)->printed = strlen(text);
}

/* ---- In a small stack ---- */

static void *save_load_summarize(void *context)
{
    Work       *work = context;
    CornuModel *model = chain(work->layers);
    if (!model) return fails(work, "building");
    if (cornu_model_save(model, work->path)) return fails(work, "saving");
    cornu_model_free(model);
    if (!(model = cornu_model_load(work->path))) return fails(work, "loading");
    if (cornu_model_layer_count(model) != work->layers + 1) return fails(work, "counting layers");
    if (cornu_summary(model, .print_fn = count_text, .print_context = work))
        return fails(work, "summarizing");
    cornu_model_free(model);
    return NULL;
}

static void many_layers_need_no_deep_stack(void **state)
{
    (void)state;
    Work work = { .layers = 50000, .path = files_path(folder, "chain.safetensors") };
    in_small_stack(save_load_summarize, &work);
    assert_true(work.printed > 50000 * sizeof "activation_10000 (Activation)");
}

static void *add_and_clone(void *context)
{
    Work       *work = context;
    CornuModel *model = cornu_sequential(.input_shape = { 2 });
    for (int i = 0; i < work->layers; i++)
        if (cornu_model_add(model, cornu_activation(CORNU_RELU))) return fails(work, "adding");
    CornuModel *clone = cornu_model_clone(model);
    if (!clone) return fails(work, "cloning");
    cornu_model_free(model);
    cornu_model_free(clone);
    return NULL;
}

static void many_added_layers_need_no_deep_stack(void **state)
{
    (void)state;
    Work work = { .layers = 50000 };
    in_small_stack(add_and_clone, &work);
}

static void *predict(void *context)
{
    Work       *work = context;
    CornuModel *model = chain(work->layers);
    if (!model || cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR))
        return fails(work, "compiling");
    const float x[2] = { 3.0f, -4.0f };
    if (cornu_predict_on_batch(model, cornu_array((float *)x, CORNU_F32, 1, 2),
                               cornu_array(work->predicted, CORNU_F32, 1, 2)))
        return fails(work, "predicting");
    cornu_model_free(model);
    return NULL;
}

static void many_layers_predict(void **state)
{
    (void)state;
    Work work = { .layers = 4000 };
    in_small_stack(predict, &work);
    assert_true(work.predicted[0] == 3.0f && work.predicted[1] == 0.0f);
}

static void *train(void *context)
{
    Work        *work = context;
    CornuSymbol *input = cornu_input(.shape = { 2 });
    CornuSymbol *x = cornu_call(cornu_dense(2), input);
    for (int i = 0; i < work->layers; i++) x = cornu_call(cornu_activation(CORNU_TANH), x);
    CornuModel *model = cornu_model(.inputs = { input }, .outputs = { x });
    if (!model || cornu_compile(model, .loss = CORNU_MEAN_SQUARED_ERROR))
        return fails(work, "compiling");
    const float one[2] = { 3.0f, -4.0f };
    if (cornu_train_on_batch(model, cornu_array((float *)one, CORNU_F32, 1, 2),
                             cornu_array((float *)one, CORNU_F32, 1, 2)))
        return fails(work, "training");
    cornu_model_free(model);
    return NULL;
}

static void many_layers_train(void **state)
{
    (void)state;
    Work work = { .layers = 1000 };
    in_small_stack(train, &work);
}

/* ---- Files from elsewhere ---- */

/* The file of a chain with its layers in reverse order: each pass over them finds only one that can
 * be called. */
static void write_chain(const char *path, int layers, bool reversed)
{
    char  *text = NULL;
    size_t size;
    FILE  *file = open_memstream(&text, &size);
    assert_non_null(file);
    fprintf(file, "{\"class_name\":\"Functional\",\"config\":{\"name\":\"chain\",\"input_layers\":"
                  "[\"l0\",0,0],\"output_layers\":[\"l%d\",0,0],\"layers\":[", layers);
    for (int k = 0; k <= layers; k++) {
        const int i = reversed ? layers - k : k;
        if (k > 0) fputc(',', file);
        if (i == 0)
            fprintf(file, "{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"l0\",\"dtype\":"
                          "\"float32\",\"batch_shape\":[null,2]},\"inbound_nodes\":[]}");
        else
            fprintf(file, "{\"class_name\":\"Activation\",\"config\":{\"name\":\"l%d\","
                          "\"activation\":\"relu\"},\"inbound_nodes\":[{\"args\":[{\"class_name\":"
                          "\"__keras_tensor__\",\"config\":{\"keras_history\":[\"l%d\",0,0]}}],"
                          "\"kwargs\":{}}]}", i, i - 1);
    }
    fprintf(file, "]}}");
    assert_int_equal(fclose(file), 0);
    const CornuMetadata metadata = { "architecture", text };
    assert_int_equal(cornu_safetensors_write(path, NULL, 0, &metadata, 1), CORNU_OK);
    free(text);
}

/* The thread's seconds for loading, the minimum of three runs. */
static double seconds_to_load(int layers, bool reversed)
{
    const char *path = files_path(folder, "foreign.safetensors");
    double      least = 1e9;
    write_chain(path, layers, reversed);
    for (int i = 0; i < 3; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        CornuModel *model = cornu_model_load(path);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        if (!model) fail_msg("%s", cornu_error_message());
        assert_int_equal(cornu_model_layer_count(model), layers + 1);
        const double seconds = (double)(end.tv_sec - begin.tv_sec) +
                               1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
        if (seconds < least) least = seconds;
        cornu_model_free(model);
    }
    return least;
}

/* Four times as many layers take four times as long, not sixteen times; the margin on either side
 * is for caches and noise. */
static void loading_is_not_quadratic(void **state)
{
    (void)state;
    for (int reversed = 0; reversed < 2; reversed++) {
        const double few = seconds_to_load(5000, reversed);
        const double many = seconds_to_load(20000, reversed);
        if (many > 9.0 * few)
            fail_msg("%s: 5000 layers take %.3f s, 20000 take %.3f s",
                     reversed ? "the last layer first" : "the first layer first", few, many);
    }
}

/* A cycle of calls over two layers. */
static void circles_are_refused(void **state)
{
    static const char *const text =
        "{\"class_name\":\"Functional\",\"config\":{\"name\":\"circle\",\"input_layers\":"
        "[\"a\",0,0],\"output_layers\":[\"b\",0,0],\"layers\":[{\"class_name\":\"InputLayer\","
        "\"config\":{\"name\":\"a\",\"batch_shape\":[null,2]},\"inbound_nodes\":[]},{"
        "\"class_name\":\"Activation\",\"config\":{\"name\":\"b\",\"activation\":\"relu\"},"
        "\"inbound_nodes\":[{\"args\":[{\"class_name\":\"__keras_tensor__\",\"config\":{"
        "\"keras_history\":[\"c\",0,0]}}]}]},{\"class_name\":\"Activation\",\"config\":{"
        "\"name\":\"c\",\"activation\":\"relu\"},\"inbound_nodes\":[{\"args\":[{\"class_name\":"
        "\"__keras_tensor__\",\"config\":{\"keras_history\":[\"b\",0,0]}}]}]}]}}";
    const CornuMetadata metadata = { "architecture", text };
    const char *path = files_path(folder, "circle.safetensors");
    (void)state;
    assert_int_equal(cornu_safetensors_write(path, NULL, 0, &metadata, 1), CORNU_OK);
    assert_null(cornu_model_load(path));
    assert_int_equal(cornu_error_status(), CORNU_ERR_FORMAT);
    assert_non_null(strstr(cornu_error_message(), "depends on itself"));
}

/* ---- Layers in layers ---- */

static void nesting_is_bounded(void **state)
{
    CornuModel *models[CORNU_MAX_LAYER_DEPTH + 1] = { NULL };
    const char *path = files_path(folder, "nested.safetensors");
    (void)state;
    for (int i = 0; i <= CORNU_MAX_LAYER_DEPTH; i++) {
        CornuSymbol *x = cornu_input(.shape = { 2 });
        models[i] = cornu_model(.inputs = { x }, .outputs = {
            cornu_call(i ? cornu_as_layer(models[i - 1]) : cornu_relu(), x) });
    }
    assert_null(models[CORNU_MAX_LAYER_DEPTH]);
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "expected less than 16"));

    /* Any model that can be made can be saved, and loaded again. */
    assert_int_equal(cornu_model_save(models[CORNU_MAX_LAYER_DEPTH - 1], path), CORNU_OK);
    CornuModel *loaded = cornu_model_load(path);
    if (!loaded) fail_msg("%s", cornu_error_message());
    cornu_model_free(loaded);

    /* A model in use as a layer accepts no more layers, which could nest it deeper. */
    CornuModel *inner = cornu_sequential(), *outer = cornu_sequential();
    assert_int_equal(cornu_model_add(outer, cornu_as_layer(inner)), CORNU_OK);
    assert_int_equal(cornu_model_add(inner, cornu_relu()), CORNU_ERR_ARGUMENT);
    assert_non_null(strstr(cornu_error_message(), "after the model was added to another"));
    cornu_model_free(outer);
    cornu_model_free(inner);
    for (int i = 0; i < CORNU_MAX_LAYER_DEPTH; i++) cornu_model_free(models[i]);

    CornuLayer *layer = cornu_dense(2);
    for (int i = 0; i < CORNU_MAX_LAYER_DEPTH; i++) layer = cornu_time_distributed(layer);
    assert_non_null(layer);
    assert_null(cornu_time_distributed(layer));
    assert_int_equal(cornu_error_take(), CORNU_ERR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_layers_need_no_deep_stack),
        cmocka_unit_test(many_added_layers_need_no_deep_stack),
        cmocka_unit_test(many_layers_predict),
        cmocka_unit_test(many_layers_train),
        cmocka_unit_test(loading_is_not_quadratic),
        cmocka_unit_test(circles_are_refused),
        cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
