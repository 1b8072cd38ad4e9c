/* Data that are sets by a name, folders of pictures, and texts. */
#include <stdio.h>
#include <string.h>

#include "picture_input.h"
#include "session.h"

/* All elements of a data set, in its order, as arrays. */
static CornuStatus gather(Data *data, CornuDataset *dataset, CornuArray *x, CornuArray *y)
{
    const int64_t count = cornu_dataset_count(dataset);
    CornuArray   *to[] = { x, y };
    size_t        each[2];
    for (int c = 0; c < 2; c++) {
        CornuType type = cornu_dataset_type(dataset, c);
        each[c] = cornu_type_bytes(type);
        for (int axis = type.shape.rank++; axis > 0; axis--)
            type.shape.extent[axis] = type.shape.extent[axis - 1];
        type.shape.extent[0] = count;
        *to[c] = cornu_array_from(data_own(data, cornu_type_bytes(type)), type);
        if (!to[c]->data) return cornu_error_status();
    }
    CornuIterator *iterator = cornu_iterator_begin(dataset, 0);
    CornuStatus    status = iterator ? CORNU_OK : cornu_error_status();
    for (int64_t i = 0; i < count && !status; i++) {
        const CornuBatch *element = NULL;
        status = cornu_iterator_next(iterator, &element);
        if (status || !element) break;
        for (int c = 0; c < 2; c++)
            memcpy((char *)to[c]->data + (size_t)i * each[c], element->arrays[c].data, each[c]);
    }
    cornu_iterator_free(iterator);
    return status;
}

/* ---- Pictures ---- */

static CornuStatus convert(Data *data, const PictureInput *input, CornuArray pixels, CornuArray *to)
{
    void *memory = picture_input_is_view(input) ? NULL
        : data_own(data, picture_input_bytes(input, pixels.type.shape.extent[0]));
    if (!memory && !picture_input_is_view(input)) return cornu_error_status();
    data->scaled = !input->bytes;
    data->scale = input->scale, data->offset = input->offset;
    *to = picture_input_convert(input, pixels, memory);
    return CORNU_OK;
}

CornuStatus data_from_folder(Data *data, const Options *options, const DataFlags *flags,
                             const CornuModel *model)
{
    PictureInput input;
    CornuArray   pixels = { .data = NULL };
    int          classes;
    char         scale[64];
    if (picture_input(&input, model, flags)) return cornu_error_status();
    data->folder = cornu_image_folder(options->data, .image_size = { input.height, input.width },
                                      .color_mode = input.channels == 1 ? CORNU_COLOR_GRAYSCALE
                                                                        : CORNU_COLOR_RGB,
                                      .seed = (uint64_t)options->seed);
    if (!data->folder) return cornu_error_status();
    data->class_names = cornu_image_folder_class_names(data->folder, &classes);
    data->classes = classes;
    data->pictures = true;
    if (gather(data, data->folder, &pixels, &data->y[0])) return cornu_error_status();
    picture_input_say(&input, scale, sizeof scale);
    snprintf(data->about, sizeof data->about,
             "%lld pictures of %d classes in %s, as %lld x %lld, %s",
             (long long)pixels.type.shape.extent[0], classes, options->data,
             (long long)input.height, (long long)input.width, scale);
    return convert(data, &input, pixels, &data->x[0]);
}

/* ---- Sets by a name ---- */

/* Rows of characters, for each of which it predicts something. */
static bool takes_tokens(const CornuModel *model)
{
    return cornu_model_input_shape(model).rank == 2 && cornu_model_output_shape(model).rank == 3;
}

static CornuStatus take_set(Data *data, const DataFlags *flags, const CornuModel *model)
{
    PictureInput input;
    char         scale[64];
    const size_t at = strlen(data->about);
    CornuText    a, b;
    if (picture_input(&input, model, flags)) {
        cornu_error_take();
        return cornu_error_set(CORNU_ERR_SHAPE, "%s is %s, expected rows of %s", data->name,
                               cornu_type_print(&a, data->set->train_x.type),
                               cornu_shape_print(&b, input.rows.shape));
    }
    if (picture_input_fits(&input, data->name, data->set->train_x.type) ||
        convert(data, &input, data->set->train_x, &data->x[0]) ||
        convert(data, &input, data->set->test_x, &data->test_x[0]))
        return cornu_error_status();
    picture_input_say(&input, scale, sizeof scale);
    snprintf(data->about + at, sizeof data->about - at, "; %s", scale);
    data->y[0] = data->set->train_y;
    data->test_y[0] = data->set->test_y;
    return CORNU_OK;
}

CornuStatus data_from_set(Data *data, const Options *options, const DataFlags *flags,
                          const CornuModel *model)
{
    const DataSet *set = data_set(options->data);
    const bool     text = set ? set->load == cornu_shakespeare_load_from : takes_tokens(model);
    if (text) return data_from_text(data, options, flags, model);
    data->set = session_load(options, set ? set->load : cornu_mnist_load_from);
    if (!data->set) return cornu_error_status();
    data->synthetic = data->set->synthetic;
    data->classes = data->set->classes;
    data->class_names = data->set->class_names;
    snprintf(data->about, sizeof data->about, "%s", data->set->description);
    return take_set(data, flags, model);
}

/* ---- Texts ---- */

enum { ANY_STEPS = CORNU_SHAKESPEARE_STEPS };

/* Blocks of tokens, the last tenth of them for testing; y are the tokens that follow. */
static CornuStatus take_text(Data *data, const CornuTextData *text, int64_t steps)
{
    const int64_t all = text->tokens.type.shape.extent[0], train = all - all / 10;
    CornuDataset *first = cornu_text_dataset(text, steps, .count = train);
    CornuDataset *last =
        first && all - train > steps ? cornu_text_dataset(text, steps, .first = train) : NULL;
    CornuStatus status =
        first ? gather(data, first, &data->x[0], &data->y[0]) : cornu_error_status();
    if (!status && last) status = gather(data, last, &data->test_x[0], &data->test_y[0]);
    cornu_dataset_free(first);
    cornu_dataset_free(last);
    return status;
}

CornuStatus data_from_text(Data *data, const Options *options, const DataFlags *flags,
                           const CornuModel *model)
{
    const CornuShape in = cornu_model_input_shape(model);
    const bool       is_file = data_kind(options->data) == DATA_TEXT;
    CornuText        shape;
    if (in.rank != 2 || cornu_model_input_count(model) != 1)
        return cornu_error_set(CORNU_ERR_SHAPE,
                               "--data %s: text is rows of characters, but %s takes "
                               "%s",
                               options->data, cornu_model_name(model),
                               cornu_shape_print(&shape, in));
    CornuTextData *text = cornu_text_load(
        .file = is_file ? options->data : NULL, .data = is_file ? NULL : session_folder(options),
        .encoding = data_encoding(flags), .seed = (uint64_t)options->seed,
        .progress = session_show_download);
    if (!text) return cornu_error_status();
    data->synthetic = text->synthetic;
    data->classes = text->vocabulary;
    snprintf(data->about, sizeof data->about, "%s", text->description);
    const CornuStatus status = take_text(data, text, in.extent[1] == CORNU_NONE ? ANY_STEPS
                                                                                : in.extent[1]);
    cornu_text_free(text);
    return status;
}
