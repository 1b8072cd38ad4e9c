/*
 * A custom layer, loss and metric, written with ops: they are differentiated, compiled and placed
 * on every device as those of the library are. The network learns y = 2 x + 1 by a loss that is
 * robust against outliers.
 * A second on two cores (AMD EPYC, Zen 4); it finds 2.00 and 1.06.
 */
#include <stdio.h>
#include <stdlib.h>

#include <cornu/cornu.h>

/* ---- The layer: x (B, n) times a weight for each column, plus another ---- */

static CornuStatus build(CornuLayer *layer, CornuShape x)
{
    const CornuShape columns = cornu_shape(x.extent[x.rank - 1]);
    const CornuStatus status = cornu_layer_weight(layer, "factor", columns, CORNU_ONES, false);
    return status ? status : cornu_layer_weight(layer, "term", columns, CORNU_ZEROS, false);
}

static CornuTensor *call(CornuLayer *layer, const CornuCall *call, CornuTensor *x)
{
    x = cornu_op_multiply(x, cornu_layer_read(layer, call, 0));
    return cornu_op_add(x, cornu_layer_read(layer, call, 1));
}

static const CornuLayerClass line = { .class_name = "Line", .size = sizeof(CornuLayer),
                                      .build = build, .call = call };

/* ---- The loss: sqrt(1 + error^2) - 1, for each row its mean ---- */

static CornuTensor *charbonnier(const CornuLoss *self, CornuTensor *y_true, CornuTensor *y_pred)
{
    (void)self;
    CornuTensor *error = cornu_op_subtract(cornu_op_convert(y_true, CORNU_F32), y_pred);
    CornuTensor *root = cornu_op_sqrt(cornu_op_shift(cornu_op_square(error), 1.0));
    return cornu_op_reduce_mean(cornu_op_shift(root, -1.0), 1 << 1, false);
}

/* ---- The metric: of the rows so far, the part that is within a tenth ---- */

static CornuTensor *within_a_tenth(CornuTensor *y_true, CornuTensor *y_pred)
{
    CornuTensor *error = cornu_op_absolute(cornu_op_subtract(y_true, y_pred));
    CornuTensor *tenth = cornu_op_constant_like(error, 0.1);
    return cornu_op_convert(cornu_op_compare(error, CORNU_LESS, tenth), CORNU_F32);
}

int main(void)
{
    static float x[2000][1], y[2000][1];
    for (int i = 0; i < 2000; i++) {
        x[i][0] = 4.0f * (float)rand() / (float)RAND_MAX - 2.0f;
        y[i][0] = i % 20 ? 2.0f * x[i][0] + 1.0f : 50.0f;   /* each twentieth is wrong */
    }
    CornuLoss   loss = { .name = "charbonnier", .call = charbonnier };
    CornuModel *model = cornu_sequential(.input_shape = { 1 });
    cornu_model_add(model, cornu_layer_create(&line, "line", NULL));
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = 0.02), .loss = &loss,
                  .metrics = { cornu_mean_metric("within_a_tenth", within_a_tenth) });
    CornuHistory *history = cornu_fit(model, .x = cornu_array(x, CORNU_F32, 2000, 1),
                                      .y = cornu_array(y, CORNU_F32, 2000, 1), .epochs = 20,
                                      .verbose = CORNU_LINES);
    float w[2];
    for (int i = 0; i < 2; i++)
        if (!history || cornu_weight_read(cornu_model_weight(model, i),
                                          cornu_array(&w[i], CORNU_F32, 1)))
            return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("y = %.3f x + %.3f\n", (double)w[0], (double)w[1]);
    cornu_history_free(history);
    cornu_model_free(model);
}
