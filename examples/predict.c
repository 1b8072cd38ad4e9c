/* Which digit is it? Reads pictures and prints, per line,
 * FILE <tab> CLASS <tab> PROBABILITY <tab> second:p <tab> third:p */
#include "options.h"

#include <cornu/cornu.h>
#include <cornu/datasets/digit.h>
#include <cornu/datasets/image.h>

#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = CORNU_DIGIT_SIZE * CORNU_DIGIT_SIZE, MAX_CLASSES = 1000 };

/* The picture as the model wants it: 28x28 bytes, white on black. */
static CornuStatus read_digit(const char *path, uint8_t pixels[PIXELS])
{
    CornuArray image;
    CornuStatus status = cornu_image_load(path, 1, &image);
    if (status != CORNU_OK) return status;
    status = cornu_digit_prepare(image, pixels);
    free(image.data);
    return status;
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

static bool predict(CornuModel *model, const char *path)
{
    static float   probabilities[MAX_CLASSES];
    static uint8_t pixels[PIXELS];
    const int  classes = (int)cornu_model_output_shape(model).extent[1];
    CornuShape shape = cornu_model_input_shape(model);
    shape.extent[0] = 1;
    const CornuArray x = cornu_array_from(pixels, cornu_type_from(CORNU_U8, shape));
    const CornuArray to = cornu_array(probabilities, CORNU_F32, 1, classes);
    if (read_digit(path, pixels) != CORNU_OK ||
        cornu_predict_on_batch(model, x, to) != CORNU_OK) {
        fprintf(stderr, "predict: %s\n", cornu_error_message());
        return false;
    }
    double p;
    int best = take_best(probabilities, classes, &p);
    printf("%s\t%d\t%.4f", path, best, p);
    for (int rank = 1; rank < 3 && rank < classes; rank++) {
        best = take_best(probabilities, classes, &p);
        printf("\t%d:%.4f", best, p);
    }
    putchar('\n');
    return true;
}

/* Whether its input is a 28x28 image and its output is classes. */
static bool fits(const CornuModel *model, const char *path)
{
    CornuText input, output;
    const CornuShape in = cornu_model_input_shape(model), out = cornu_model_output_shape(model);
    int64_t pixels = 1;
    for (int i = 1; i < in.rank; i++)
        pixels *= in.extent[i];
    if (pixels == PIXELS && out.rank == 2 && out.extent[1] <= MAX_CLASSES) return true;
    fprintf(stderr, "predict: %s turns %s into %s, expected 28x28 images and classes\n", path,
            cornu_shape_print(&input, in), cornu_shape_print(&output, out));
    return false;
}

int main(int argc, char **argv)
{
    Options options = { 0 };
    const Program program = {
        .name = "predict", .purpose = "Names the digit in each picture (PNG or JPEG).",
        .groups = OPTIONS_MACHINE, .arguments = "MODEL.safetensors IMAGE...",
        .least_arguments = 2,
    };
    int status = options_parse(&options, &program, argc, argv);
    if (status >= 0) return status;

    CornuDevice *device = cornu_device_open(options.device, .threads = (int)options.threads);
    CornuModel  *model = cornu_model_load(options.arguments[0]);
    cornu_compile(model, .device = device);
    if (cornu_error_take() != CORNU_OK || !cornu_model_compiled(model)) {
        fprintf(stderr, "predict: %s\n", cornu_error_message());
        status = 1;
    } else {
        const bool fit = fits(model, options.arguments[0]);
        status = fit ? 0 : 1;
        for (int i = 1; i < options.argument_count && fit; i++)
            if (!predict(model, options.arguments[i])) status = 1;
    }
    cornu_model_free(model);
    cornu_device_close(device);
    return status;
}
