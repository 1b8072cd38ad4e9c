/* Which digit is it? Reads pictures and prints, per line,
 * FILE <tab> CLASS <tab> PROBABILITY <tab> second:p <tab> third:p */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cornu/cornu.h>
#include <cornu/datasets/digit.h>
#include <cornu/datasets/image.h>

#include "session.h"

enum { PIXELS = CORNU_DIGIT_SIZE * CORNU_DIGIT_SIZE, MAX_CLASSES = 1000 };

/* The picture as the model wants it: 28x28 bytes, white on black. */
static CornuStatus read_digit(const char *path, uint8_t pixels[PIXELS])
{
    CornuArray image;
    CornuStatus status = cornu_image_load(path, 1, &image);
    if (status) return status;
    status = cornu_digit_prepare(image, pixels);
    free(image.data);
    return status ? cornu_error_set(status, "%s: %s", path, cornu_error_message()) : CORNU_OK;
}

/* The class of the largest probability, which is set to -1 so that the next call gives the
 * second largest. */
static int take_best(float *probabilities, int classes, double *probability)
{
    int best = 0;
    for (int c = 1; c < classes; c++)
        if (probabilities[c] > probabilities[best]) best = c;
    *probability = probabilities[best];
    probabilities[best] = -1.0F;
    return best;
}

static CornuStatus check_numbers(const float *probabilities, int classes, const char *path)
{
    for (int c = 0; c < classes; c++)
        if (!isfinite(probabilities[c]))
            return cornu_error_set(CORNU_ERR_VALUE, "%s: the probability of class %d is no finite "
                                   "number; the model's weights may hold such", path, c);
    return CORNU_OK;
}

static CornuStatus predict(CornuModel *model, const char *path)
{
    static float   probabilities[MAX_CLASSES];
    static uint8_t pixels[PIXELS];
    const int  classes = (int)cornu_model_output_shape(model).extent[1];
    CornuShape shape = cornu_model_input_shape(model);
    shape.extent[0] = 1;
    const CornuArray x = cornu_array_from(pixels, cornu_type_from(CORNU_U8, shape));
    const CornuArray to = cornu_array(probabilities, CORNU_F32, 1, classes);
    CornuStatus status = read_digit(path, pixels);
    if (!status) status = cornu_predict_on_batch(model, x, to);
    if (!status) status = check_numbers(probabilities, classes, path);
    if (status) return status;
    double p;
    int best = take_best(probabilities, classes, &p);
    printf("%s\t%d\t%.4f", path, best, p);
    for (int rank = 1; rank < 3 && rank < classes; rank++) {
        best = take_best(probabilities, classes, &p);
        printf("\t%d:%.4f", best, p);
    }
    putchar('\n');
    return CORNU_OK;
}

/* Whether its input is a 28x28 image and its output is classes. */
static CornuStatus check_fit(const CornuModel *model, const char *path)
{
    CornuText input, output;
    const CornuShape in = cornu_model_input_shape(model), out = cornu_model_output_shape(model);
    int64_t pixels = 1;
    for (int i = 1; i < in.rank && pixels <= PIXELS; i++)
        pixels *= in.extent[i];
    if (pixels == PIXELS && out.rank == 2 && out.extent[1] <= MAX_CLASSES) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_SHAPE, "%s turns %s into %s, expected 28x28 images and at "
                           "most %d classes", path, cornu_shape_print(&input, in),
                           cornu_shape_print(&output, out), MAX_CLASSES);
}

int main(int argc, char **argv)
{
    Options options = { .shards = 1 };   /* one picture at a time */
    const Program program = {
        .name = "predict", .purpose = "Names the digit in each picture (PNG or JPEG).",
        .groups = OPTIONS_MACHINE, .arguments = "MODEL.safetensors IMAGE...",
        .least_arguments = 2,
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    CornuStatus  status = session_begin(&options);
    CornuDevice *device = status ? NULL
        : cornu_device_open(options.device, .threads = (int)options.threads,
                            .shards = (int)options.shards,
                              .precision = session_precision(&options));
    CornuModel  *model = status ? NULL : cornu_model_load(options.arguments[0]);
    if (!status) status = cornu_compile(model, .device = device);
    if (!status) status = check_fit(model, options.arguments[0]);
    int failed = 0;
    for (int i = 1; i < options.argument_count && !status; i++)
        failed |= session_end("predict", predict(model, options.arguments[i]));
    cornu_model_free(model);
    cornu_device_close(device);
    return session_end("predict", status) | failed;
}
