/* An op of your own: written, tested, used in a layer, placed. Takes the name of a device. */
#include <math.h>
#include <stdio.h>
#include <cornu/cornu.h>

/* y = x sigmoid(beta x), in other ops: all that XLA, bf16 and gradients need. */
static void composition(const CornuOpArguments *call, CornuTensor *const *x, CornuTensor **y)
{
    y[0] = cornu_op_multiply(x[0], cornu_op_sigmoid(cornu_op_scale(x[0], call->numbers[0])));
}

/* The same in f32 on processors: worth it where a loop of your own is faster. */
static CornuStatus kernel(const CornuOpArguments *call, const void *const *in,
                          const CornuType *out_type, void *const *out)
{
    const float *x = in[0], beta = (float)call->numbers[0];
    for (int64_t i = 0; i < cornu_type_count(out_type[0]); i++)
        ((float *)out[0])[i] = x[i] / (1.0f + expf(-beta * x[i]));
    return CORNU_OK;
}

static CornuTensor *swish(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    (void)layer, (void)call;
    return cornu_op_custom(cornu_op_find("my_swish"), &x, 1, (const double[]){ 1.5 }, 1, NULL);
}

int main(int argc, char **argv)
{
    static const CornuLayerClass layer = { .class_name = "Swish", .size = sizeof(CornuLayer),
                                           .call = swish };
    CornuOp *op = cornu_op_register(&(CornuOpDefinition){
        .name = "my_swish", .composition = composition, .kernel = kernel });
    if (cornu_op_check(op, .in = (CornuType[]){ cornu_type(CORNU_F32, 3, 5) }, .in_count = 1,
                       .numbers = (double[]){ 1.5 }, .number_count = 1))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;

    CornuDevice *device = cornu_device_open(argc > 1 ? argv[1] : "cpu");
    CornuModel  *model = cornu_sequential(.input_shape = { 2 });
    cornu_model_add(model, cornu_dense(32));
    cornu_model_add(model, cornu_layer_create(&layer, "swish", NULL));
    cornu_model_add(model, cornu_dense(3, .activation = CORNU_SOFTMAX));
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.01), .device = device,
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .metrics = { CORNU_ACCURACY });
    const CornuExecutable *step = cornu_model_train_step(model, cornu_type(CORNU_F32, 64, 2),
                                                         cornu_type(CORNU_U8, 64));
    if (!step || cornu_executable_print_placement(step, stdout))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    cornu_model_free(model);
    cornu_device_close(device);
}
