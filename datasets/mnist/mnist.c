/* MNIST and Fashion-MNIST, from files or drawn by code. */
#include "mnist.h"

#include <stdio.h>
#include <string.h>

#include "../../device/host/machine/threads.h"
#include "../../device/memory_internal.h"
#include "../../device/text/print.h"
#include "idx.h"
#include "../synthetic/synthetic.h"

enum { SIZE = 28, CLASSES = 10, TRAIN = 60000, TEST = 10000 };

/* The files of a set: training images and labels, then test images and labels. */
enum { IMAGES, LABELS, HALF, FILES = 2 * HALF };

typedef struct {
    CornuDataSource source;
    const char     *things;   /* shown by the images */
    const char     *class_names[CLASSES];
    void (*draw)(uint64_t seed, int64_t first, int64_t count, uint8_t *images, uint8_t *labels);
} ImageSet;

static const char without[] = ".data = \"synthetic\" needs none";

static const ImageSet mnist = {
    .source = {
        .folder = "mnist",
        .addresses = (const char *const[]){
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            NULL,
        },
        .files = (const CornuDataFile[FILES]){
            { "train-images-idx3-ubyte.gz", 9912422,
              "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609" },
            { "train-labels-idx1-ubyte.gz", 28881,
              "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c" },
            { "t10k-images-idx3-ubyte.gz", 1648877,
              "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6" },
            { "t10k-labels-idx1-ubyte.gz", 4542,
              "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6" },
        },
        .count = FILES,
        .otherwise = without,
    },
    .things = "digits",
    .class_names = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9" },
    .draw = cornu_synthetic_digits,
};

static const ImageSet fashion_mnist = {
    .source = {
        .folder = "fashion-mnist",
        .addresses = (const char *const[]){
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
            NULL,
        },
        .files = (const CornuDataFile[FILES]){
            { "train-images-idx3-ubyte.gz", 26421880,
              "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84" },
            { "train-labels-idx1-ubyte.gz", 29515,
              "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845" },
            { "t10k-images-idx3-ubyte.gz", 4422102,
              "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073" },
            { "t10k-labels-idx1-ubyte.gz", 5148,
              "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5" },
        },
        .count = FILES,
        .otherwise = without,
    },
    .things = "garments",
    .class_names = { "t_shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt",
                     "sneaker", "bag", "ankle_boots" },
    .draw = cornu_synthetic_garments,
};

/* ---- Files ---- */

static CornuStatus load_file(const char *folder, const CornuDataFile *file,
                             char path[2 * CORNU_PATH_SIZE], CornuArray *array)
{
    cornu_data_path(folder, file, path);   /* if it has disappeared, the load reports it */
    return cornu_idx_load(path, array);
}

static CornuStatus load_images(const char *folder, const CornuDataFile *file, CornuArray *x)
{
    char path[2 * CORNU_PATH_SIZE];
    CORNU__TRY(load_file(folder, file, path, x));
    CornuShape shape = x->type.shape;
    CornuText  text;
    if (x->type.dtype == CORNU_U8 && shape.rank == 3 && shape.extent[1] == SIZE &&
        shape.extent[2] == SIZE)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: holds %s, expected u8 (N, %d, %d)", path,
                       cornu_type_print(&text, x->type), SIZE, SIZE);
}

/* The labels of count images. */
static CornuStatus load_labels(const char *folder, const CornuDataFile *file, int64_t count,
                               CornuArray *y)
{
    char path[2 * CORNU_PATH_SIZE];
    CORNU__TRY(load_file(folder, file, path, y));
    CornuText text;
    if (y->type.dtype != CORNU_U8 || y->type.shape.rank != 1)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: holds %s, expected u8 (N,)", path,
                           cornu_type_print(&text, y->type));
    int64_t labels = y->type.shape.extent[0];
    if (labels != count)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: has %lld labels, expected %lld, one per image",
                           path, (long long)labels, (long long)count);
    const uint8_t *label = y->data;
    for (int64_t b = 0; b < labels; b++)
        if (label[b] >= CLASSES)
            return cornu__fail(CORNU_ERR_VALUE, "%s: label %lld is %d, expected 0 to %d", path,
                               (long long)b, label[b], CLASSES - 1);
    return CORNU_OK;
}

/* The training data or the test data. */
typedef struct {
    const char          *folder;
    const CornuDataFile *files;
    CornuArray          *x, *y;
    CornuFailure         failure;
} Half;

static CornuStatus load_both(const Half *half)
{
    CORNU__TRY(load_images(half->folder, &half->files[IMAGES], half->x));
    return load_labels(half->folder, &half->files[LABELS], half->x->type.shape.extent[0], half->y);
}

static void load_half(void *halves, int64_t which, int thread)
{
    (void)thread;
    Half *half = (Half *)halves + which;
    cornu__failure_keep(&half->failure, load_both(half));
}

/* Decompression takes most of the time, so training and test files are read in parallel. */
static CornuStatus load_all(CornuTrainTest *data, const ImageSet *set,
                            const CornuTrainTestConfig *config, char folder[CORNU_PATH_SIZE])
{
    const CornuDataFile  *files = set->source.files;
    const CornuDataSearch search = { .data = config->data, .progress = config->progress,
                                     .context = config->context };
    CORNU__TRY(cornu_data_find(&set->source, &search, folder));
    Half halves[] = {
        { .folder = folder, .files = files, .x = &data->train_x, .y = &data->train_y },
        { .folder = folder, .files = files + HALF, .x = &data->test_x, .y = &data->test_y },
    };
    CornuThreads *threads = cornu__threads_create(2);
    if (!threads) return cornu_error_take();
    cornu__threads_run(threads, 2, load_half, halves);
    cornu__threads_free(threads);
    CORNU__TRY(cornu__failure_tell(&halves[0].failure));
    return cornu__failure_tell(&halves[1].failure);
}

/* Truncates an array to limit rows. */
static void shorten(CornuArray *array, int64_t limit)
{
    int64_t *rows = &array->type.shape.extent[0];
    if (limit && *rows > limit) *rows = limit;
}

/* ---- Drawings ---- */

/* Draws images first to first + count, or to first + limit. */
static CornuStatus draw_part(const ImageSet *set, const CornuTrainTestConfig *config, int64_t first,
                             int64_t count, CornuArray *x, CornuArray *y)
{
    if (config->limit && count > config->limit) count = config->limit;
    *x = cornu_array(cornu__allocate((size_t)count, SIZE * SIZE), CORNU_U8, count, SIZE, SIZE);
    *y = cornu_array(cornu__allocate((size_t)count, 1), CORNU_U8, count);
    if (!x->data || !y->data) return CORNU_ERR_MEMORY;
    set->draw(config->seed, first, count, x->data, y->data);
    return CORNU_OK;
}

static CornuStatus draw_all(CornuTrainTest *data, const ImageSet *set,
                            const CornuTrainTestConfig *config)
{
    data->synthetic = true;
    CORNU__TRY(draw_part(set, config, 0, TRAIN, &data->train_x, &data->train_y));
    return draw_part(set, config, TRAIN, TEST, &data->test_x, &data->test_y);
}

/* ---- Both ---- */

static CornuTrainTest *load_set(const ImageSet *set, const CornuTrainTestConfig *config)
{
    if (config->limit < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: limit is %lld, expected 1 or more, or 0 "
                                                    "for all", set->source.folder,
                                (long long)config->limit);
    CornuTrainTest *data = cornu__allocate(1, sizeof *data);
    if (!data) return NULL;
    data->name = set->source.folder;
    data->classes = CLASSES;
    data->class_names = set->class_names;
    data->things = set->things;
    char folder[CORNU_PATH_SIZE] = "";
    bool synthetic = config->data && strcmp(config->data, "synthetic") == 0;
    if ((synthetic ? draw_all(data, set, config) : load_all(data, set, config, folder)) !=
        CORNU_OK) {
        cornu_train_test_free(data);
        return NULL;
    }
    shorten(&data->train_x, config->limit);
    shorten(&data->train_y, config->limit);
    shorten(&data->test_x, config->limit);
    shorten(&data->test_y, config->limit);
    long long train = (long long)data->train_x.type.shape.extent[0];
    long long test = (long long)data->test_x.type.shape.extent[0];
    if (synthetic)
        snprintf(data->description, sizeof data->description,
                 "synthetic %s, drawn by code with seed %llu: %lld to train, %lld to test",
                 set->things, (unsigned long long)config->seed, train, test);
    else
        snprintf(data->description, sizeof data->description,
                 "%s from %s: %lld to train, %lld to test", data->name, folder, train, test);
    cornu__show_controls(data->description, sizeof data->description);
    return data;
}

CornuTrainTest *cornu_mnist_load_from(const CornuTrainTestConfig *config)
{
    return cornu__refused() ? NULL : cornu__loaded(load_set(&mnist, config));
}

CornuTrainTest *cornu_fashion_mnist_load_from(const CornuTrainTestConfig *config)
{
    return cornu__refused() ? NULL : cornu__loaded(load_set(&fashion_mnist, config));
}
