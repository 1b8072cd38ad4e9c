/*
 * Trains a small convolutional network on your own pictures: a folder for each class. The model
 * takes pixels from 0 to 255; notes in its file name the classes and say that pictures are resized
 * for it, which cornu predict reads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cornu/cornu.h>

#include "commands.h"
#include "common/session.h"

typedef struct {
    const char *color_mode;
    int64_t     image_size;
    double      validation_split;
    bool        no_cache;
    char      **names;   /* of the classes: a cache has none */
    int         classes;
} Pictures;

/* The training or the validation part, or all pictures. */
static CornuDataset *open_subset(const Options *options, const Pictures *pictures,
                                 CornuSubset subset)
{
    int           classes;
    CornuDataset *dataset = cornu_image_folder(
        options->arguments[0], .image_size = { pictures->image_size },
        .color_mode = pictures->color_mode[0] == 'g' ? CORNU_COLOR_GRAYSCALE : CORNU_COLOR_RGB,
        .seed = (uint64_t)options->seed, .subset = subset,
        .validation_split = subset == CORNU_SUBSET_ALL ? 0.0 : pictures->validation_split);
    const char *const *names = cornu_image_folder_class_names(dataset, &classes);
    if (dataset)
        printf("%lld pictures%s", (long long)cornu_dataset_count(dataset),
               subset == CORNU_SUBSET_VALIDATION ? " for validation\n" : " of");
    for (int c = 0; c < classes && subset != CORNU_SUBSET_VALIDATION; c++) {
        CornuShown shown;
        printf(" %s%s", cornu_shown(&shown, names[c]), c + 1 < classes ? "," : "\n");
    }
    return dataset;
}

static CornuStatus copy_names(Pictures *pictures, const CornuDataset *data)
{
    int                      count;
    const char *const *const names = cornu_image_folder_class_names(data, &count);
    pictures->names = calloc((size_t)count, sizeof *pictures->names);
    bool copied = pictures->names;
    for (; copied && pictures->classes < count; pictures->classes++)
        copied = (pictures->names[pictures->classes] = strdup(names[pictures->classes]));
    return copied ? CORNU_OK : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %d names", count);
}

static void free_names(Pictures *pictures)
{
    for (int c = 0; c < pictures->classes; c++) free(pictures->names[c]);
    free(pictures->names);
}

/* Notes in the file of the model: the names of the classes, and how images are prepared. */
static CornuStatus describe(CornuModel *model, const char *const *names, int classes)
{
    const CornuStatus status = cornu_model_set_class_names(model, names, classes);
    return status ? status : cornu_model_set_note(model, "images", "resized");
}

static CornuModel *build(const Options *options, const Pictures *pictures,
                         const CornuDataset *data)
{
    int                      classes;
    const char *const *const names = cornu_image_folder_class_names(data, &classes);
    const int64_t size = pictures->image_size, channels = pictures->color_mode[0] == 'g' ? 1 : 3;
    CornuModel   *model = cornu_sequential(.name = "image_folder",
                                           .input_shape = { size, size, channels });
    cornu_model_add(model, cornu_rescaling(1.0 / 255.0, .dtype = "float32"));
    cornu_model_add(model, cornu_conv2d(32, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(64, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_max_pooling2d(2));
    cornu_model_add(model, cornu_conv2d(64, 3, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(64, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(classes, .activation = CORNU_SOFTMAX));
    if (!options->save || describe(model, names, classes) == CORNU_OK) return model;
    cornu_model_free(model);
    return NULL;
}

/* ---- What the validation pictures are taken for ---- */

/* Copies the labels, and the pictures if --plots draws them, in the order of evaluate. */
static CornuStatus collect(CornuDataset *validation, CornuTrainTest *to)
{
    CornuIterator *iterator = cornu_iterator_begin(validation, 0);
    const int64_t  count = cornu_dataset_count(validation);
    const size_t   each = cornu_type_bytes(to->test_x.type) / (size_t)count;
    CornuStatus    status = iterator ? CORNU_OK : cornu_error_status();
    for (int64_t i = 0; !status; i++) {
        const CornuBatch *picture;
        status = cornu_iterator_next(iterator, &picture);
        if (status || !picture) break;
        if (to->test_x.data)
            memcpy((char *)to->test_x.data + (size_t)i * each, picture->arrays[0].data, each);
        ((int32_t *)to->test_y.data)[i] = *(const int32_t *)picture->arrays[1].data;
    }
    cornu_iterator_free(iterator);
    return status;
}

/* A report on each class, and with --plots DIR the predictions and the confusion matrix. */
static CornuStatus show(const Options *options, const Pictures *pictures, CornuModel *model,
                        CornuDataset *validation)
{
    const int64_t  count = cornu_dataset_count(validation), size = pictures->image_size;
    const int64_t  classes = pictures->classes;
    CornuTrainTest seen = { .classes = classes, .class_names = (const char *const *)pictures->names,
                            .things = "pictures", .name = options->arguments[0],
                            .test_x.type = cornu_type(CORNU_U8, count, size, size,
                                                      pictures->color_mode[0] == 'g' ? 1 : 3),
                            .test_y = cornu_array(malloc((size_t)count * sizeof(int32_t)),
                                                  CORNU_I32, count) };
    CornuArray     guesses = cornu_array(malloc((size_t)(count * classes) * sizeof(float)),
                                         CORNU_F32, count, classes);
    if (options->plots) seen.test_x.data = malloc(cornu_type_bytes(seen.test_x.type));
    CornuStatus    status = seen.test_y.data && guesses.data &&
                            (seen.test_x.data || !options->plots) ? CORNU_OK
        : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld pictures", (long long)count);
    if (!status)
        status = cornu_evaluate(model, validation, .batch_size = options->batch_size,
                                .verbose = CORNU_SILENT, .to = guesses);
    /* Of several processes, the others have opened no pictures but those of their rows. */
    if (!status && cornu_process_rank(session_processes()) == 0) {
        status = collect(validation, &seen);
        if (!status) status = session_show(options, model, &seen, "validation", guesses);
    }
    free(seen.test_x.data);
    free(seen.test_y.data);
    free(guesses.data);
    return status;
}

static CornuStatus train(const Options *options, const Pictures *pictures, CornuModel *model,
                         CornuDataset *data, CornuDataset *validation, CornuDevice *device)
{
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = options->learning_rate),
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .metrics = { CORNU_ACCURACY },
                  .device = device, .steps_per_execution = options->steps_per_execution,
                  .gradient_norm = options->gradient_norm,
                  .debug_nans = options->debug_nans);
    cornu_summary(model);
    double            test[2];
    CornuStatus       status = session_train(options, model, data, validation, "pictures", test);
    if (status || !validation) return status;
    printf("Validation loss: %.4f\nValidation accuracy: %.4f\n", test[0], test[1]);
    return show(options, pictures, model, validation);
}

int command_image_folder(int argc, char **argv)
{
    static const char *const modes[] = { "rgb", "grayscale", NULL };
    Pictures      pictures = { .color_mode = "rgb", .image_size = 64, .validation_split = 0.2 };
    Options       options = { .epochs = 10, .batch_size = 32, .learning_rate = 1e-3 };
    const Option  extra[] = {
        { "image-size", OPTION_WHOLE, &pictures.image_size, "N",
          "height and width that images are resized to", 20, 1024, NULL },
        { "color-mode", OPTION_CHOICE, &pictures.color_mode, "NAME", "channels to use", 0, 0,
          modes },
        { "validation-split", OPTION_NUMBER, &pictures.validation_split, "X",
          "fraction held out for validation, 0 for none", 0, 0.9, NULL },
        { "no-cache", OPTION_SWITCH, &pictures.no_cache, "",
          "read the files anew each epoch, for more than memory holds", 0, 0, NULL },
        OPTION_END,
    };
    const Program program = {
        .name = "cornu image_folder", .extra = extra, .arguments = "DIR", .least_arguments = 1,
        .groups = OPTIONS_MACHINE | OPTIONS_TRAINING | OPTIONS_SEED | OPTIONS_FIT,
        .purpose = "Trains an image classifier on the pictures in DIR/CLASS/*.png and *.jpg.",
    };
    const int usage = options_parse(&options, &program, argc, argv);
    if (usage >= 0) return usage;

    const bool    split = pictures.validation_split > 0.0;
    CornuDevice  *device = session_open(&options);
    CornuDataset *data = !device ? NULL
        : open_subset(&options, &pictures, split ? CORNU_SUBSET_TRAINING : CORNU_SUBSET_ALL);
    CornuDataset *validation = data && split
        ? open_subset(&options, &pictures, CORNU_SUBSET_VALIDATION) : NULL;
    CornuModel   *model = data && (validation || !split) ? build(&options, &pictures, data) : NULL;
    const bool    named = model && copy_names(&pictures, data) == CORNU_OK;
    if (model && !pictures.no_cache) {
        data = cornu_dataset_cache(data);
        if (validation) validation = cornu_dataset_cache(validation);
    }
    CornuStatus   status = named && model
        ? train(&options, &pictures, model, data, validation, device) : cornu_error_status();
    cornu_model_free(model);
    cornu_dataset_free(validation);
    cornu_dataset_free(data);
    cornu_device_close(device);
    free_names(&pictures);
    return session_end("cornu image_folder", status);
}
