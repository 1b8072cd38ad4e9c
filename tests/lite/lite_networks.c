/* lite_networks FOLDER [EPOCHS [SAMPLES]]: trains the reference networks of images, on SAMPLES rows
 * if given, and writes for each FOLDER/NAME.tflite and NAME.npz: the test set as f32, and the
 * predictions. Prints how far those of the model that is read from the file are from them. */
#include "../../models/models.h"
#include "../../nn/cornu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const networks[] = {
    "mnist_cnn", "mnist_cnn_bn", "mnist_convnet", "fashion_mnist_cnn", "resnet20",
};

static CornuStatus fail(const char *name)
{
    fprintf(stderr, "lite_networks: %s: %s\n", name, cornu_error_message());
    return cornu_error_status();
}

/* f32 of u8, as the model's step has them. */
static CornuArray scaled(const CornuModel *model, CornuArray from)
{
    CornuArray     to = cornu_array_from(NULL, cornu_type_from(CORNU_F32, from.type.shape));
    const uint8_t *bytes = from.data;
    const float    scale = (float)cornu_model_input_scale(model);
    float         *values = to.data = malloc(cornu_type_bytes(to.type));
    for (int64_t i = 0; values && i < cornu_type_count(to.type); i++)
        values[i] = (float)bytes[i] * scale;
    return to;
}

/* The largest distance of the predictions of the file's model. */
static CornuStatus compare(const char *path, CornuArray x, CornuArray want)
{
    CornuModel *model = cornu_model_load(path);
    CornuArray  got = cornu_array_from(malloc(cornu_type_bytes(want.type)), want.type);
    CornuStatus status = model && got.data ? CORNU_OK : cornu_error_status();
    double      most = 0.0;
    if (!status) status = cornu_compile(model, .loss = cornu_mean_squared_error());
    if (!status) status = cornu_predict(model, .x = x, .to = got, .verbose = CORNU_SILENT);
    for (int64_t i = 0; !status && i < cornu_type_count(want.type); i++)
        most = fmax(most, fabs(cornu_array_get(got, i) - cornu_array_get(want, i)));
    if (!status) printf("%s: read again, predictions within %.2g\n", path, most);
    free(got.data);
    cornu_model_free(model);
    return status;
}

static CornuStatus write_files(CornuModel *model, const CornuTrainTest *data, const char *folder,
                               const char *name)
{
    char             path[2][400];
    const CornuArray images = cornu_reference_input(model, data->test_x);
    const CornuArray x = scaled(model, images);
    const int64_t    rows = images.type.shape.extent[0];
    CornuType        type = { CORNU_F32, cornu_symbol_shape(cornu_model_output(model, 0)) };
    type.shape.extent[0] = rows;
    const CornuArray p = cornu_array_from(malloc(cornu_type_bytes(type)), type);
    snprintf(path[0], sizeof path[0], "%s/%s.tflite", folder, name);
    snprintf(path[1], sizeof path[1], "%s/%s.npz", folder, name);
    CornuStatus status = x.data && p.data ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status) status = cornu_predict(model, .x = images, .to = p, .verbose = CORNU_SILENT);
    if (!status) status = cornu_model_export(model, path[0]);
    const CornuNamedArray arrays[] = { { "x0", x }, { "p0", p }, { "y0", data->test_y } };
    if (!status) status = cornu_npz_write(path[1], arrays, 3);
    if (!status) status = compare(path[0], x, p);
    free(x.data);
    free(p.data);
    return status;
}

static CornuStatus train(const char *name, const char *folder, int64_t epochs, int64_t samples)
{
    const CornuReferenceModel *reference = cornu_reference_model(name);
    CornuTrainTest *data = reference ? reference->load(&(CornuTrainTestConfig){ 0 }) : NULL;
    CornuModel     *model = data ? reference->build(&(CornuNetworkConfig){ 0 }) : NULL;
    if (!model) return fail(name);
    CornuArray x = cornu_reference_input(model, data->train_x), y = data->train_y;
    if (samples) x.type.shape.extent[0] = y.type.shape.extent[0] = samples;
    const int64_t steps = (x.type.shape.extent[0] + 127) / 128;
    CornuStatus   status = cornu_compile(model, .loss = cornu_loss(reference->loss),
                                         .optimizer = cornu_reference_optimizer(reference, steps,
                                                                                0.0));
    CornuHistory *history = status ? NULL
        : cornu_fit(model, .x = x, .y = y, .batch_size = 128, .epochs = epochs,
                    .verbose = CORNU_SILENT);
    status = history ? write_files(model, data, folder, name) : cornu_error_status();
    if (status) fail(name);
    cornu_history_free(history);
    cornu_model_free(model);
    cornu_train_test_free(data);
    return status;
}

int main(int argc, char **argv)
{
    const int64_t epochs = argc > 2 ? atol(argv[2]) : 1, samples = argc > 3 ? atol(argv[3]) : 0;
    CornuStatus   status = argc > 1 ? CORNU_OK : CORNU_ERR_ARGUMENT;
    if (status) fprintf(stderr, "lite_networks: expected FOLDER [EPOCHS [SAMPLES]]\n");
    for (size_t i = 0; i < sizeof networks / sizeof *networks && !status; i++)
        status = train(networks[i], argv[1], epochs, samples);
    return status != CORNU_OK;
}
