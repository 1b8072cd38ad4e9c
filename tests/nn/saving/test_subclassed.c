/* Weights of models that are subclasses in Keras, whose layers have the names of attributes. */
#include "golden_files.h"
#include "../../skip.h"

/* The network of tests/golden/make_subclassed.py, whose layers have these names. */
static CornuModel *subclassed(const char *const names[6])
{
    CornuSymbol *x = cornu_input(.shape = { 6 });
    CornuSymbol *y = cornu_call(cornu_embedding(5, 4), x);
    y = cornu_call(cornu_bidirectional(cornu_lstm(3)), y);
    y = cornu_call(cornu_dense(5, .name = names[0]), y);
    y = cornu_call(cornu_dense(4, CORNU_RELU, .name = names[1]), y);
    y = cornu_call(cornu_batch_normalization(.name = names[2]), y);
    y = cornu_call(cornu_dense(3, CORNU_RELU, .name = names[3]), y);
    y = cornu_call(cornu_batch_normalization(.name = names[4]), y);
    CornuModel *head = cornu_sequential(.name = names[5]);
    expect_ok(cornu_model_add(head, cornu_dense(4, CORNU_TANH)));
    expect_ok(cornu_model_add(head, cornu_dense(2)));
    CornuModel *model = cornu_model(.inputs = { x },
                                    .outputs = { cornu_call(cornu_as_layer(head), y) });
    cornu_model_free(head);
    return expect_model(model);
}

/* Weights of a subclass are under its attributes' names, and under those of classes what Keras
 * reaches by the list of layers: layers are found by both, and by the names that Keras gave them.
 * */
static void test_weights_by_attributes(void **state)
{
    static const char *const named[2][6] = {
        { "dense1", "blocks/block/first", "blocks/block/norm", "blocks/block_1/first",
          "blocks/block_1/norm", "head" },
        { "dense_2", "dense", "batch_normalization", "dense_1", "batch_normalization_1",
          "sequential" },
    };
    static const char *const other[6] = { "dense1", "dense", "batch_normalization", "dense_1",
                                          "another", "head" };
    (void)state;
    if (!has_hdf5()) SKIP_FOR(SKIP_HDF5);
    CornuNpz         *data = cornu_npz_open("tests/golden/subclassed/attributes.npz");
    const CornuArray *x = &cornu_npz_find(data, "x0")->array;
    const CornuArray  want = cornu_npz_find(data, "y0")->array;
    const char       *path = "tests/golden/subclassed/attributes.weights.h5";
    for (int i = 0; i < 2; i++) {
        float       y[8];
        CornuArray  got = cornu_array_from(y, want.type);
        CornuModel *model = subclassed(named[i]);
        expect_ok(cornu_model_load_weights(model, path));
        expect_ok(cornu_predict_on_batch_many(model, x, &got));
        expect_near("prediction", y, want, 1e-5);
        cornu_model_free(model);
    }
    CornuModel *model = subclassed(other);
    expect_error(cornu_model_load_weights(model, path), CORNU_ERR_SHAPE,
                 "none is that of the model's layer another; left are");
    cornu_model_free(model);
    CornuSymbol *in = cornu_input(.shape = { 6 });
    model = expect_model(cornu_model(.inputs = { in }, .outputs = { cornu_call(
        cornu_dense(5, .name = "dense1"), in) }));
    expect_error(cornu_model_load_weights(model, path), CORNU_ERR_SHAPE,
                 "\"blocks/block/first\" has 2 weights, and is none of the model's layers");
    cornu_model_free(model);
    cornu_npz_close(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_weights_by_attributes) };
    return cmocka_run_group_tests(tests, files_begin, files_end);
}
