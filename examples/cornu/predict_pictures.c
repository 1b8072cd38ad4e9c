/* cornu predict MODEL IMAGE...: a line for each picture,
 * FILE <tab> CLASS <tab> PROBABILITY <tab> second:p <tab> third:p */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "predict.h"
#include "common/session.h"

/* The model's input and output, with buffers that are used for each picture. */
typedef struct {
    CornuModel *model;
    bool        digits;          /* prepares pictures as MNIST does; else resizes them */
    CornuType   picture;         /* u8 (H, W, C) */
    int         classes;
    uint8_t    *pixels;          /* owned, as the next */
    float      *probabilities;
} Reader;

/* The picture as input of the model: a digit as 28x28, white on black, another one resized. */
static CornuStatus read_picture(Reader *reader, const char *path)
{
    CornuArray  image;
    CornuStatus status = cornu_image_load(path, (int)reader->picture.shape.extent[2], &image);
    if (status) return status;
    status = reader->digits
        ? cornu_digit_prepare(image, reader->pixels)
        : cornu_image_resize(image, CORNU_IMAGE_BILINEAR, false,
                             cornu_array_from(reader->pixels, reader->picture));
    free(image.data);
    return status ? cornu_error_set(status, "%s: %s", path, cornu_error_message()) : CORNU_OK;
}

/* The class with the largest probability, which is set to -1, so that the next call gives the
 * second. */
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
            return cornu_error_set(CORNU_ERR_VALUE, "%s: the probability of class %d is not "
                                   "finite; weights of the model may not be either", path, c);
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
    float *const probabilities = reader->probabilities;
    const int    classes = reader->classes;
    CornuShape   shape = cornu_model_input_shape(reader->model);
    shape.extent[0] = 1;
    const CornuArray x = cornu_array_from(reader->pixels, cornu_type_from(CORNU_U8, shape));
    const CornuArray to = cornu_array(probabilities, CORNU_F32, 1, classes);
    CornuStatus status = read_picture(reader, path);
    if (!status) status = cornu_predict_on_batch(reader->model, x, to);
    if (!status) status = check_numbers(probabilities, classes, path);
    if (status) return status;
    double p;
    int        best = take_best(probabilities, classes, &p);
    CornuShown shown;
    printf("%s\t", cornu_shown(&shown, path));
    print_class(reader->model, best);
    printf("\t%.4f", p);
    for (int rank = 1; rank < 3 && rank < classes; rank++) {
        best = take_best(probabilities, classes, &p);
        putchar('\t');
        print_class(reader->model, best);
        printf(":%.4f", p);
    }
    putchar('\n');
    return CORNU_OK;
}

/* Checks that the model classifies images. Grey 28x28 images are digits, unless a note in its file
 * says that they are resized. */
static CornuStatus open_reader(Reader *reader, CornuModel *model, const char *path)
{
    CornuText        texts[2];
    const CornuShape in = cornu_model_input_shape(model), out = cornu_model_output_shape(model);
    const char      *images = cornu_model_note(model, "images");
    const bool       resized = images && !strcmp(images, "resized");
    const int64_t    channels = in.rank == 4 ? in.extent[3] : 1;
    const bool       flat = in.rank == 2 && in.extent[1] == CORNU_DIGIT_SIZE * CORNU_DIGIT_SIZE;
    const bool       image = (in.rank == 3 || in.rank == 4) && (channels == 1 || channels == 3) &&
                             in.extent[1] <= CORNU_IMAGE_EXTENT &&
                             in.extent[2] <= CORNU_IMAGE_EXTENT;
    if (!(flat || image) || out.rank != 2 || out.extent[1] < 2 ||
        out.extent[1] > CORNU_MAX_FOLDER_CLASSES)
        return cornu_error_set(CORNU_ERR_SHAPE, "%s turns %s into %s, expected images, grey or in "
                               "colour, and 2 to %d classes", path,
                               cornu_shape_print(&texts[0], in), cornu_shape_print(&texts[1], out),
                               CORNU_MAX_FOLDER_CLASSES);
    const int64_t height = flat ? CORNU_DIGIT_SIZE : in.extent[1];
    const int64_t width = flat ? CORNU_DIGIT_SIZE : in.extent[2];
    reader->model = model;
    reader->digits = !resized && channels == 1 && height == CORNU_DIGIT_SIZE &&
                     width == CORNU_DIGIT_SIZE;
    reader->picture = cornu_type(CORNU_U8, height, width, channels);
    reader->classes = (int)out.extent[1];
    reader->pixels = malloc(cornu_type_bytes(reader->picture));
    reader->probabilities = malloc((size_t)reader->classes * sizeof *reader->probabilities);
    if (reader->pixels && reader->probabilities) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_MEMORY, "no memory for a picture and its classes");
}

int predict_pictures(const Options *options, const char *program)
{
    Reader       reader = { .model = NULL };
    CornuStatus  status = session_begin(options);
    CornuDevice *device = status ? NULL
        : cornu_device_open(options->device, .threads = (int)options->threads, .shards = 1,
                            .precision = session_precision(options),
                            .processes = session_processes());
    CornuModel  *model = status ? NULL : cornu_model_load(options->arguments[0]);
    if (!status) status = cornu_compile(model, .device = device);
    if (!status) status = open_reader(&reader, model, options->arguments[0]);
    int failed = 0;
    for (int i = 1; i < options->argument_count && !status; i++)
        failed |= session_report(program, predict(&reader, options->arguments[i]));
    free(reader.pixels);
    free(reader.probabilities);
    cornu_model_free(model);
    cornu_device_close(device);
    return session_end(program, status) | failed;
}
