/*
 * Pictures in folders, a folder for each class, as keras.utils.image_dataset_from_directory: they
 * are read, decoded and resized, a fifth is held out, and the others are mirrored and turned in
 * training. The pictures here are drawn, circles and crosses; put folders of your own (.png, .jpg)
 * in their place. The saved model knows the names: cornu predict shapes.keras shapes/circle/1.png
 * Ten epochs take 2 seconds on two cores (AMD EPYC, Zen 4) and reach 98 % of those held out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cornu/cornu.h>

enum { EACH = 200, SIZE = 64 };

static double between(double low, double high) { return low + (high - low) * rand() / RAND_MAX; }

/* A circle or a cross of any colours, place and size. */
static CornuStatus draw(const char *path, bool circle)
{
    const CornuColour paper = 0xffffff - (CornuColour)between(0, 0x50) * 0x010201;
    const CornuColour ink = (CornuColour)between(0, 0x7f) * 0x010102;
    const double      x = between(24, 56), y = between(22, 38), r = between(10, 18);
    const double      turn = between(0, 6.28), thickness = between(1, 4);
    CornuPlot        *plot = cornu_plot_create(80, 60, paper);
    for (int i = 0; i < (circle ? 24 : 2); i++) {
        const double a = circle ? i * 6.2832 / 24 : turn + i * 1.5708;
        const double b = circle ? a + 6.2832 / 24 : a + 3.1416;
        cornu_plot_line(plot, x + r * cos(a), y + r * sin(a), x + r * cos(b), y + r * sin(b),
                        thickness, ink);
    }
    const CornuStatus status = plot ? cornu_plot_save(plot, path) : cornu_error_status();
    cornu_plot_free(plot);
    return status;
}

int main(void)
{
    if (system("mkdir -p shapes/circle shapes/cross")) return 1;
    for (int i = 0; i < 2 * EACH; i++) {
        char path[64];
        snprintf(path, sizeof path, "shapes/%s/%d.png", i % 2 ? "circle" : "cross", i / 2);
        if (draw(path, i % 2)) return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    }

    CornuDataset *train = cornu_image_folder("shapes", .image_size = { SIZE }, .seed = 1,
                                             .validation_split = 0.2,
                                             .subset = CORNU_SUBSET_TRAINING);
    CornuDataset *validation = cornu_image_folder("shapes", .image_size = { SIZE }, .seed = 1,
                                                  .validation_split = 0.2,
                                                  .subset = CORNU_SUBSET_VALIDATION);
    int                classes;
    const char *const *names = cornu_image_folder_class_names(train, &classes);

    CornuModel *model = cornu_sequential(.name = "shapes", .input_shape = { SIZE, SIZE, 3 });
    cornu_model_add(model, cornu_random_flip());
    cornu_model_add(model, cornu_random_rotation(0.1));
    cornu_model_add(model, cornu_rescaling(1.0 / 255));
    for (int filters = 16; filters <= 64; filters *= 2) {
        cornu_model_add(model, cornu_conv2d(filters, 3, .activation = CORNU_RELU));
        cornu_model_add(model, cornu_max_pooling2d(2));
    }
    cornu_model_add(model, cornu_flatten());
    cornu_model_add(model, cornu_dense(64, .activation = CORNU_RELU));
    cornu_model_add(model, cornu_dense(classes, .activation = CORNU_SOFTMAX));
    cornu_summary(model);
    cornu_model_set_class_names(model, names, classes);
    cornu_model_set_note(model, "images", "resized");

    cornu_compile(model, .optimizer = cornu_adam(), .metrics = { CORNU_ACCURACY },
                  .loss = CORNU_SPARSE_CATEGORICAL_CROSSENTROPY);
    CornuHistory *history = cornu_fit(model, train, .epochs = 10,
                                      .validation_data = { .data = validation });
    if (!history || cornu_model_save(model, "shapes.keras"))
        return fprintf(stderr, "%s\n", cornu_error_message()), 1;
    printf("Validation accuracy: %.4f\n", cornu_history_get(history, "val_accuracy", 9));

    cornu_history_free(history), cornu_model_free(model);
    cornu_dataset_free(train), cornu_dataset_free(validation);
}
