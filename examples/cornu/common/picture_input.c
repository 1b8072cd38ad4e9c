#include "picture_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANY_SIZE = 224 };   /* of ImageNet's classifiers */

static bool is_channels(int64_t extent) { return extent == 1 || extent == 3; }

/* By one of the first layers, or a factor for bytes. */
static bool scales_itself(const CornuModel *model)
{
    enum { FIRST = 4 };
    static const char *const classes[] = { "Rescaling", "Normalization", "BatchNormalization" };
    if (cornu_model_input_scale(model) != 1.0) return true;
    for (int i = 0; i < FIRST && i < cornu_model_layer_count(model); i++) {
        const char *name = cornu_model_layer(model, i)->kind->class_name;
        for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
            if (!strcmp(name, classes[k])) return true;
        if (cornu_model_layer(model, i)->weight_count) break;
    }
    return false;
}

static CornuStatus no_pictures(const CornuModel *model, CornuShape shape)
{
    CornuText text;
    if (cornu_model_input_count(model) != 1)
        return cornu_error_set(CORNU_ERR_SHAPE, "%s has %d inputs, expected one of pictures",
                               cornu_model_name(model), cornu_model_input_count(model));
    return cornu_error_set(CORNU_ERR_SHAPE,
                           "%s takes %s, expected pictures: (None, height, width, 1 or "
                           "3)",
                           cornu_model_name(model), cornu_shape_print(&text, shape));
}

static bool read_shape(PictureInput *to, CornuShape in)
{
    const int64_t *e = in.extent;
    const bool     first = in.rank == 4 && is_channels(e[1]) && !is_channels(e[3]);
    if (in.rank == 2 && e[1] == CORNU_DIGIT_SIZE * CORNU_DIGIT_SIZE)
        to->height = to->width = CORNU_DIGIT_SIZE, to->channels = 1;
    else if (in.rank == 3)
        to->height = e[1], to->width = e[2], to->channels = 1;
    else if (in.rank == 4 && (first || is_channels(e[3])))
        to->height = e[first ? 2 : 1], to->width = e[first ? 3 : 2],
        to->channels = e[first ? 1 : 3];
    else
        return false;
    to->channels_first = first;
    if (to->height == CORNU_NONE) to->height = ANY_SIZE;
    if (to->width == CORNU_NONE) to->width = ANY_SIZE;
    return to->height <= CORNU_IMAGE_EXTENT && to->width <= CORNU_IMAGE_EXTENT;
}

CornuStatus picture_input(PictureInput *to, const CornuModel *model, const DataFlags *flags)
{
    const CornuType in = cornu_symbol_type(cornu_model_input(model, 0));
    *to = (PictureInput){ .scale = 1.0, .offset = flags->offset, .rows = in };
    if (cornu_model_input_count(model) != 1 || !read_shape(to, in.shape))
        return no_pictures(model, in.shape);
    const char *scale = cornu_model_note(model, "pixel_scale");
    const char *offset = cornu_model_note(model, "pixel_offset");
    if (flags->scale != DATA_BY_MODEL) to->scale = flags->scale;
    else if (scale && offset && flags->offset == 0.0)   /* those of its training */
        to->scale = strtod(scale, NULL), to->offset = strtod(offset, NULL);
    else if (!scales_itself(model) && cornu_dtype_is_float(in.dtype)) to->scale = 1.0 / 255.0;
    /* A factor that was given is the only one. */
    to->bytes = to->scale == 1.0 && to->offset == 0.0 &&
                (flags->scale == DATA_BY_MODEL || cornu_model_input_scale(model) == 1.0);
    if (in.shape.rank < 3) return CORNU_OK;
    const int at = to->channels_first ? 2 : 1;
    to->rows.shape.extent[at] = to->height;
    to->rows.shape.extent[at + 1] = to->width;
    return CORNU_OK;
}

void picture_input_say(const PictureInput *input, char *to, size_t size)
{
    if (input->bytes) snprintf(to, size, "pixels 0 to 255");
    else snprintf(to, size, "pixels scaled to %.4g to %.4g", input->offset,
                  255.0 * input->scale + input->offset);
}

CornuStatus picture_input_fits(const PictureInput *input, const char *name, CornuType pixels)
{
    const int64_t rows = pixels.shape.extent[0] ? pixels.shape.extent[0] : 1;
    CornuText     a, b;
    if (cornu_type_count(pixels) / rows == input->height * input->width * input->channels)
        return CORNU_OK;
    return cornu_error_set(CORNU_ERR_SHAPE, "%s is %s, expected rows of %s", name,
                           cornu_type_print(&a, pixels), cornu_shape_print(&b, input->rows.shape));
}

bool picture_input_is_view(const PictureInput *input)
{
    return input->bytes && (!input->channels_first || input->channels == 1);
}

static CornuType type_of(const PictureInput *input, int64_t count)
{
    CornuType type = input->rows;
    type.dtype = input->bytes ? CORNU_U8 : CORNU_F32;
    type.shape.extent[0] = count;
    return type;
}

size_t picture_input_bytes(const PictureInput *input, int64_t count)
{
    return cornu_type_bytes(type_of(input, count));
}

CornuArray picture_input_convert(const PictureInput *input, CornuArray pixels, void *memory)
{
    const int64_t  count = pixels.type.shape.extent[0], C = input->channels;
    const int64_t  area = input->height * input->width;
    const uint8_t *from = pixels.data;
    const CornuType type = type_of(input, count);
    if (picture_input_is_view(input)) return cornu_array_from(pixels.data, type);
    for (int64_t n = 0; n < count; n++)
        for (int64_t p = 0; p < area; p++)
            for (int64_t c = 0; c < C; c++, from++) {
                const int64_t to =
                    n * area * C + (input->channels_first ? c * area + p : p * C + c);
                if (input->bytes) ((uint8_t *)memory)[to] = *from;
                else ((float *)memory)[to] = (float)(*from * input->scale + input->offset);
            }
    return cornu_array_from(memory, type);
}
