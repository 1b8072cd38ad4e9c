/* How pictures become the input of a model: size, channels, the order of axes, and scale. */
#ifndef CORNU_EXAMPLES_PICTURE_INPUT_H
#define CORNU_EXAMPLES_PICTURE_INPUT_H

#include <cornu/cornu.h>

#include "data.h"

typedef struct {
    int64_t   height, width, channels;
    bool      channels_first;   /* (B, C, H, W), as PyTorch's models have it */
    bool      bytes;            /* pixels stay u8: the model scales them itself */
    double    scale, offset;    /* else of pixels 0 to 255 */
    CornuType rows;             /* of the input, for any number of rows */
} PictureInput;

/* CORNU_ERR_SHAPE for a model without one input of pictures: (B, H, W, C), (B, C, H, W), (B, H, W)
 * or digits as (B, 784). Where its height and width may differ they are 224. The scale is that of
 * the flags; else that of the training, if its file says so; else 1 for a model that scales pixels
 * itself, by its .input_scale or one of its first layers; else 1/255. */
CornuStatus picture_input(PictureInput *to, const CornuModel *model, const DataFlags *flags);

/* " scaled to 0 to 1" or the like, for a line about the data. */
void picture_input_say(const PictureInput *input, char *to, size_t size);

/* Whether rows of pixels have as many as the model's input: (N, 28, 28) for (28, 28, 1) or 784.
 * Else CORNU_ERR_SHAPE, naming both. */
CornuStatus picture_input_fits(const PictureInput *input, const char *name, CornuType pixels);

/* The array for the model, of pixels u8 (N, H, W, C). `memory` has picture_input_bytes, and is not
 * needed where bytes stay and no axes move: the result is then a view of the pixels. */
bool       picture_input_is_view(const PictureInput *input);
size_t     picture_input_bytes(const PictureInput *input, int64_t count);
CornuArray picture_input_convert(const PictureInput *input, CornuArray pixels, void *memory);

#endif
