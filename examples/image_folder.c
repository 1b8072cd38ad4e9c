/*
 * Trains a small convolutional network on your own pictures: a folder for each class. The model
 * takes pixels from 0 to 255; notes in its file name the classes and say that pictures are resized
 * for it, which build/predict reads.
 */
#include <stdio.h>

#include <cornu/cornu.h>

#include "session.h"

typedef struct {
    const char *color_mode;
    int64_t     image_size;
    double      validation_split;
    bool        no_cache;
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

static CornuStatus train(const Options *options, CornuModel *model, CornuDataset *data,
                         CornuDataset *validation, CornuDevice *device)
{
    cornu_compile(model, .optimizer = cornu_adam(.learning_rate = options->learning_rate),
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY, .metrics = { CORNU_ACCURACY },
                  .device = device, .steps_per_execution = options->steps_per_execution,
                  .gradient_norm = options->gradient_norm,
                  .debug_nans = options->debug_nans);
    cornu_summary(model);
    double            test[2];
    const CornuStatus status = session_train(options, model, data, validation, "pictures", test);
    if (!status && validation)
        printf("Validation loss: %.4f\nValidation accuracy: %.4f\n", test[0], test[1]);
    return status;
}

int main(int argc, char **argv)
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
        { NULL, 0, NULL, NULL, NULL, 0, 0, NULL },
    };
    const Program program = {
        .name = "image_folder", .extra = extra, .arguments = "DIR", .least_arguments = 1,
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
    if (model && !pictures.no_cache) {   /* a cache has no class names */
        data = cornu_dataset_cache(data);
        if (validation) validation = cornu_dataset_cache(validation);
    }
    CornuStatus   status = model ? train(&options, model, data, validation, device)
                                 : cornu_error_status();
    cornu_model_free(model);
    cornu_dataset_free(validation);
    cornu_dataset_free(data);
    cornu_device_close(device);
    return session_end("image_folder", status);
}
