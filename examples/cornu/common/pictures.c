#include "pictures.h"
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TITLE = 128 };

/* ---- Files ---- */

/* Makes the folder unless it exists, or another process writes the files. */
static CornuStatus open_folder(const char *folder, bool *made)
{
    struct stat there;
    *made = false;
    if (cornu_process_rank(session_processes()) > 0) return CORNU_OK;
    *made = mkdir(folder, 0777) == 0;
    if (!*made && errno != EEXIST)
        return cornu_error_set(CORNU_ERR_FILE, "%s: the folder cannot be made: %s", folder,
                               strerror(errno));
    if (*made || (stat(folder, &there) == 0 && S_ISDIR(there.st_mode))) return CORNU_OK;
    return cornu_error_set(CORNU_ERR_FILE, "%s: is a file, expected a folder", folder);
}

static CornuStatus path_of(char path[CORNU_PATH_SIZE], const char *folder, const char *name)
{
    const int length = snprintf(path, CORNU_PATH_SIZE, "%s/%s", folder, name);
    return length < CORNU_PATH_SIZE ? CORNU_OK
        : cornu_error_set(CORNU_ERR_FILE, "%s: the path is longer than %d bytes", folder,
                          CORNU_PATH_SIZE - 1);
}

CornuStatus pictures_check(const char *folder)
{
    static const char *const names[] = { "curves.png", "filters.png", "predictions.png",
                                         "confusion.png" };
    bool        made;
    char        path[CORNU_PATH_SIZE];
    CornuStatus status = open_folder(folder, &made);
    for (int i = 0; i < 4 && !status; i++) {
        status = path_of(path, folder, names[i]);
        if (!status) status = cornu_file_check(path);
    }
    if (made) rmdir(folder);
    return status;
}

/* Takes the plot; NULL if making it failed. */
static CornuStatus save(CornuPlot *plot, const char *folder, const char *name)
{
    char        path[CORNU_PATH_SIZE];
    bool        made;
    CornuStatus status = plot ? open_folder(folder, &made) : cornu_error_status();
    if (!status) status = path_of(path, folder, name);
    if (!status) status = cornu_plot_save(plot, path);
    cornu_plot_free(plot);
    return status;
}

/* ---- Pictures ---- */

/* "mnist_cnn, digits of mnist", "mnist_cnn, synthetic digits", "shakespeare_lstm" */
static const char *title_of(char title[TITLE], const CornuModel *model, const char *part,
                            const CornuTrainTest *data)
{
    const char *name = cornu_model_name(model);
    if (!data)
        snprintf(title, TITLE, "%s", name);
    else if (data->synthetic)
        snprintf(title, TITLE, "%s, synthetic %s%s%s", name, part, *part ? " " : "", data->things);
    else
        snprintf(title, TITLE, "%s, %s%s%s of %s", name, part, *part ? " " : "", data->things,
                 data->name);
    return title;
}

/* The kernel of the first convolution, or NULL. */
static const CornuWeight *first_kernel(const CornuModel *model)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        if (cornu_model_weight(model, i)->type.shape.rank == 4) return cornu_model_weight(model, i);
    return NULL;
}

static CornuStatus write_filters(const char *folder, const CornuModel *model)
{
    const CornuWeight *weight = first_kernel(model);
    char               title[TITLE];
    if (!weight) {
        printf("%s has no convolution, so there is no %s/filters.png.\n", cornu_model_name(model),
               folder);
        return CORNU_OK;
    }
    snprintf(title, sizeof title, "%s, %s", cornu_model_name(model), weight->path);
    const CornuArray kernel = cornu_array_from(malloc(cornu_type_bytes(weight->type)),
                                               weight->type);
    CornuStatus status = kernel.data ? cornu_weight_read(weight, kernel)
                                     : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %s",
                                                       weight->path);
    if (!status) status = save(cornu_picture_filters(kernel, title), folder, "filters.png");
    free(kernel.data);
    return status;
}

CornuStatus pictures_of_training(const char *folder, CornuModel *model,
                                 const CornuHistory *history, const CornuTrainTest *data)
{
    char        title[TITLE];
    CornuPlot  *curves = cornu_picture_curves(history, title_of(title, model, "", data));
    CornuStatus status = save(curves, folder, "curves.png");
    return status ? status : write_filters(folder, model);
}

CornuStatus pictures_of_test(const char *folder, const CornuModel *model,
                             const CornuTrainTest *data, const char *part, CornuArray predictions)
{
    const int64_t    classes = data->classes;
    const CornuArray counts = cornu_array(calloc((size_t)(classes * classes), sizeof(int64_t)),
                                          CORNU_I64, classes, classes);
    char             title[TITLE];
    CornuStatus      status = counts.data ? cornu_confusion(predictions, data->test_y, counts)
        : cornu_error_set(CORNU_ERR_MEMORY, "no memory for %lld classes", (long long)classes);
    title_of(title, model, part, data);
    if (!status)
        status = save(cornu_picture_predictions(title, data->test_x, data->test_y, predictions,
                                                data->class_names,
                                                .dark_on_light = !strcmp(data->things, "pictures")),
                      folder, "predictions.png");
    if (!status)
        status = save(cornu_picture_confusion(counts, data->class_names, title), folder,
                      "confusion.png");
    free(counts.data);
    return status;
}
