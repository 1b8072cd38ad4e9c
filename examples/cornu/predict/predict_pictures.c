/*
 * cornu predict MODEL IMAGE...: a line for each picture, of tabs between its name, the most
 * probable class with its probability, and the next two:
 *
 *     digit.png       7       0.9986  9:0.0011        2:0.0002
 *
 * A picture for a model of 28x28 grey pixels is taken for a digit, dark on light or light on dark,
 * and cut out as MNIST's were; for other models, and those trained on folders, it is resized.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/picture_input.h"
#include "../common/session.h"
#include "predict.h"

typedef struct {
    CornuModel  *model;
    PictureInput input;
    bool         digits;          /* prepares pictures as MNIST does; else resizes them */
    int          classes;
    uint8_t     *pixels;          /* owned, as the next */
    void        *values;
    float       *probabilities;
} Reader;

/* The picture as input of the model. */
static CornuStatus read_picture(Reader *reader, const char *path, CornuArray *x)
{
    const PictureInput *input = &reader->input;
    CornuArray          image,
        to = cornu_array(reader->pixels, CORNU_U8, input->height, input->width, input->channels);
    CornuStatus         status = cornu_image_load(path, (int)input->channels, &image);
    if (status) return status;
    status = reader->digits ? cornu_digit_prepare(image, reader->pixels)
                            : cornu_image_resize(image, CORNU_IMAGE_BILINEAR, false, to);
    free(image.data);
    if (status) return cornu_error_set(status, "%s: %s", path, cornu_error_message());
    to = cornu_array(reader->pixels, CORNU_U8, 1, input->height, input->width, input->channels);
    *x = picture_input_convert(input, to, reader->values);
    return CORNU_OK;
}

/* The class with the largest value, which is then taken away, so that the next call gives the
 * second. */
static int take_best(float *values, int classes, double *value)
{
    int best = 0;
    for (int c = 1; c < classes; c++)
        if (values[c] > values[best]) best = c;
    *value = values[best];
    values[best] = -INFINITY;
    return best;
}

static CornuStatus check_numbers(const float *values, int classes, const char *path)
{
    for (int c = 0; c < classes; c++)
        if (!isfinite(values[c]))
            return cornu_error_set(CORNU_ERR_VALUE,
                                   "%s: the probability of class %d is not finite; "
                                   "weights of the model may not be either",
                                   path, c);
    return CORNU_OK;
}

/* The name of a class, or its number if the model has no names. */
static void print_class(const CornuModel *model, int c)
{
    const char *name = cornu_model_class_name(model, c);
    CornuShown  shown;
    if (name) fputs(cornu_shown(&shown, name), stdout);
    else printf("%d", c);
}

static CornuStatus predict(Reader *reader, const char *path)
{
    const int        classes = reader->classes;
    const CornuArray to = cornu_array(reader->probabilities, CORNU_F32, 1, classes);
    CornuArray       x;
    CornuShown       shown;
    double           value;
    CornuStatus      status = read_picture(reader, path, &x);
    if (!status) status = cornu_predict_on_batch(reader->model, x, to);
    if (!status) status = check_numbers(reader->probabilities, classes, path);
    if (status) return status;
    printf("%s", cornu_shown(&shown, path));
    for (int rank = 0; rank < 3 && rank < classes; rank++) {
        const int best = take_best(reader->probabilities, classes, &value);
        putchar('\t');
        print_class(reader->model, best);
        printf(rank == 0 ? "\t%.4f" : ":%.4f", value);
    }
    putchar('\n');
    return CORNU_OK;
}

/* Whether the model classifies pictures. Grey ones of 28x28 are digits, unless a note in its file
 * says that they are resized. */
static CornuStatus open_reader(Reader *reader, CornuModel *model, const DataFlags *flags,
                               const char *path)
{
    PictureInput    *input = &reader->input;
    const CornuShape out = cornu_model_output_shape(model);
    const char      *images = cornu_model_note(model, "images");
    CornuText        texts[2];
    if (picture_input(input, model, flags) || out.rank != 2 || out.extent[1] < 2 ||
        out.extent[1] > CORNU_MAX_FOLDER_CLASSES) {
        cornu_error_take();
        return cornu_error_set(CORNU_ERR_SHAPE, "%s turns %s into %s, expected images, grey or in "
                               "colour, and 2 to %d classes", path,
                               cornu_shape_print(&texts[0], cornu_model_input_shape(model)),
                               cornu_shape_print(&texts[1], out), CORNU_MAX_FOLDER_CLASSES);
    }
    reader->model = model;
    reader->digits = !(images && !strcmp(images, "resized")) && input->channels == 1 &&
                     input->height == CORNU_DIGIT_SIZE && input->width == CORNU_DIGIT_SIZE;
    reader->classes = (int)out.extent[1];
    reader->pixels = malloc((size_t)(input->height * input->width * input->channels));
    reader->values = malloc(picture_input_bytes(input, 1));
    reader->probabilities = malloc((size_t)reader->classes * sizeof *reader->probabilities);
    if (reader->pixels && reader->values && reader->probabilities) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_MEMORY, "no memory for a picture and its classes");
}

CornuStatus predict_pictures(const Options *options, const DataFlags *flags, CornuModel *model,
                             CornuDevice *device, int *failed)
{
    Reader      reader = { .model = NULL };
    CornuStatus status = open_reader(&reader, model, flags, options->arguments[0]);
    if (!status) status = cornu_compile(model, .device = device);
    for (int i = 1; i < options->argument_count && !status; i++)
        *failed |= session_report("cornu predict", predict(&reader, options->arguments[i]));
    free(reader.pixels);
    free(reader.values);
    free(reader.probabilities);
    return status;
}
