/*
 * Data of a command, for any model. One table, in all commands:
 *
 *     --data NAME          a set: mnist, fashion-mnist, shakespeare; in --data-dir DIR, found or
 *                          downloaded. A DIR of sets is also taken
 *     --data synthetic     digits or text drawn by code
 *     --data pictures/     a folder of pictures for each class
 *     --data FILE.csv      columns of numbers and words; --target COLUMN are the labels
 *     --data FILE.parquet  likewise
 *     --data FILE.npz      arrays x, y, or x_train, y_train, x_test, y_test, or of the names of the
 *                          model's inputs and outputs
 *     --data FILE          else text, for models of characters
 *     --x FILE --y FILE    .npy, .npz or FILE.npz:NAME, for each input by order, or as NAME=FILE
 *
 *     Data data;
 *     if (data_load(&data, &options, &flags, model, DATA_LABELS)) ...
 *     cornu_fit(model, .x = data.x[0], .y = data.y[0]) ...
 *     data_free(&data);
 */
#ifndef CORNU_EXAMPLES_DATA_H
#define CORNU_EXAMPLES_DATA_H

#include <cornu/cornu.h>

#include "arrays.h"
#include "options.h"

typedef struct {
    OptionTexts x, y, test_x, test_y;
    const char *target, *encoding;     /* NULL: not given */
    double      scale, offset;     /* of pixels; DATA_BY_MODEL: as the model wants them */
} DataFlags;

#define DATA_BY_MODEL (-1e9)
#define DATA_FLAGS { .scale = DATA_BY_MODEL }

extern const char *const data_encodings[];

/* Of --data, for Program.data. */
#define DATA_HELP \
    "mnist, fashion-mnist, shakespeare or synthetic; a folder of pictures for each class; a "      \
    ".csv, .parquet, .npz or text file"

/* In a list of Option: what all commands have that take data, and those that train. */
#define DATA_OPTIONS(flags)                                                                        \
    { "x", OPTION_TEXTS, &(flags).x, "FILE",                                                       \
      "an input's array, .npy, FILE.npz or FILE.npz:NAME; for several by order, or NAME=FILE", 0,  \
      0, NULL },                                                                                   \
    { "target", OPTION_TEXT, &(flags).target, "COLUMN", "of a table: what is predicted", 0, 0, \
      NULL },                                                                                      \
    { "encoding", OPTION_CHOICE, &(flags).encoding, "NAME",                                       \
      "what a character of text is; default code-points", 0, 0, data_encodings },            \
    { "scale", OPTION_NUMBER, &(flags).scale, "X",                                                 \
      "factor of pixels; default 1 if the model scales them itself, else 1/255", -1e6, 1e6, NULL },\
    { "offset", OPTION_NUMBER, &(flags).offset, "X", "added to scaled pixels, as -1", -1e6, 1e6,   \
      NULL }
#define DATA_LABEL_OPTIONS(flags)                                                                  \
    { "y", OPTION_TEXTS, &(flags).y, "FILE", "the labels of each output, likewise", 0, 0, NULL }
#define DATA_TEST_OPTIONS(flags)                                                                   \
    { "test-x", OPTION_TEXTS, &(flags).test_x, "FILE", "data of the validation, likewise", 0, 0,   \
      NULL },                                                                                      \
    { "test-y", OPTION_TEXTS, &(flags).test_y, "FILE", "and their labels", 0, 0, NULL }

enum { DATA_MOST = CORNU_MAX_MODEL_TENSORS };

/* In which order rows of files can be read without much more time than in their own. */
typedef enum { DATA_ANY_ORDER, DATA_BLOCKS } DataOrder;

/* Rows for each input and output of a model, in its order; data_free frees them. */
typedef struct {
    char               about[CORNU_PATH_SIZE + 300];  /* one line: what, how many, from where */
    const char        *name;           /* of the set or file */
    const char        *labels;         /* of the file of labels, for messages; NULL: the same */
    bool               synthetic;      /* drawn by code; say so wherever a score is printed */
    bool               random;         /* numbers without meaning: times count, scores do not */
    CornuArray         x[DATA_MOST], y[DATA_MOST];
    CornuArray         test_x[DATA_MOST], test_y[DATA_MOST];   /* .data NULL: there are none */
    /* Rows that may stay in their files, with a component for each input and each output that has
     * labels, in place of the arrays, which have the first ones alone then; NULL: the arrays are
     * all of them. */
    CornuDataset      *rows, *test_rows;
    DataOrder          order;          /* of rows */
    int64_t            classes;        /* 0: unknown */
    const char *const *class_names;    /* or NULL */
    bool               pictures;       /* of any size, resized for the model */
    bool               scaled;         /* by these, and not by the model */
    double             scale, offset;

    /* What the arrays belong to. */
    CornuTrainTest *set;
    CornuTable     *table;
    CornuDataset   *folder;
    Loaded          files[4 * DATA_MOST];
    int             file_count;
    void           *owned[8 * DATA_MOST];
    int             owned_count;
} Data;

/* What is loaded: inputs, and labels only where they are given; or also labels. */
typedef enum { DATA_INPUTS, DATA_LABELS } DataNeed;

/* Loads what --x or --data and --limit name, in the shapes of the model, which is built, and with
 * labels as its losses take them. Messages name both shapes, a label that is not a class, and the
 * first value that is not finite. */
CornuStatus data_load(Data *data, const Options *options, const DataFlags *flags,
                      const CornuModel *model, DataNeed need);
void        data_free(Data *data);

/* Whether any flag names data. */
bool data_given(const Options *options, const DataFlags *flags);

/* Notes for the file of a model that was trained on them: classes, and how pictures were scaled. */
CornuStatus data_describe(const Data *data, CornuModel *model);

/* Random rows of the model's inputs, with extents that it takes where it leaves them open, and
 * labels that fit its losses. */
CornuStatus data_random(Data *data, const CornuModel *model, int64_t rows, uint64_t seed);

/* The arrays of a test, else all of them; of predictions likewise. */
const CornuArray *data_test_x(const Data *data);
const CornuArray *data_test_y(const Data *data);

/* ---- What --data is ---- */

typedef enum {
    DATA_SET,        /* a name */
    DATA_SYNTHETIC,
    DATA_SETS,       /* a folder of sets */
    DATA_PICTURES,   /* another folder with folders */
    DATA_EMPTY,      /* a folder without them */
    DATA_TABLE, DATA_PARQUET, DATA_ARRAYS, DATA_TEXT,
    DATA_ABSENT      /* no such file */
} DataKind;

typedef struct {
    const char *name;
    CornuTrainTest *(*load)(const CornuTrainTestConfig *config);
} DataSet;

DataKind       data_kind(const char *what);
const DataSet *data_set(const char *name);      /* NULL: no such name */

/* The table of a CSV or a Parquet file, by its name. */
CornuTable *data_table_load(const CornuTableConfig *config);

/* Whether these are data on which a network of models/, of text or of images, was published: a set,
 * one drawn by code, a folder of sets. And, for one of text, a text file, and any folder. */
bool data_is_published(const Options *options, const DataFlags *flags, bool text);

CornuTextEncoding data_encoding(const DataFlags *flags);

/* ---- Its parts (data_kind.c, data_files.c, data_sets.c, data_labels.c) ---- */

CornuStatus data_from_arrays(Data *data, const DataFlags *flags, const CornuModel *model,
                             DataNeed need);
CornuStatus data_from_archive(Data *data, const char *path, const CornuModel *model, DataNeed need);
CornuStatus data_from_table(Data *data, const Options *options, const DataFlags *flags,
                            const CornuModel *model, DataNeed need);
CornuStatus data_from_set(Data *data, const Options *options, const DataFlags *flags,
                          const CornuModel *model);
CornuStatus data_from_folder(Data *data, const Options *options, const DataFlags *flags,
                             const CornuModel *model);
CornuStatus data_from_text(Data *data, const Options *options, const DataFlags *flags,
                           const CornuModel *model);

/* The number of rows, of arrays or in files. */
static inline int64_t data_count(const Data *data)
{
    return data->rows ? cornu_dataset_count(data->rows) : data->x[0].type.shape.extent[0];
}

/* Of files, "x.npy", "x.npz" or "x.npz:NAME", of which an archive has an array usual[i] or only
 * one, the rows as a data set: few of them in memory, many in the files. NULL with an error. */
CornuDataset *data_rows_open(char *const *files, const char *const *usual, int count);

/* Keeps few rows in memory, from which any order is fast; *order is that of the file and becomes
 * theirs. Takes the rows. */
CornuDataset *data_rows_fast(CornuDataset *rows, DataOrder *order);

/* Rows in another order in each epoch, which is any one if `order` permits it, or nearly: of those
 * that are near each other in the file, or of blocks of it that are not. Takes the rows. */
CornuDataset *data_rows_shuffle(CornuDataset *rows, DataOrder order, uint64_t seed);

/* All rows of a test, else all of them, with a component for each input, and then for each output
 * that has labels; a reference, which the caller frees. NULL with an error. */
CornuDataset *data_rows(const Data *data);

/* Copies the first `count` rows, or all of them, to x and y; what is there stays for data_free. */
CornuStatus data_rows_first(Data *data, CornuDataset *rows, int inputs, int64_t count,
                            CornuArray *x, CornuArray *y);

/* Calls a function for blocks of `size` rows, each the arrays of the components from row `first`
 * on, until it sets *more to false. */
typedef CornuStatus DataRowsFunction(void *context, const CornuArray *arrays, int64_t first,
                                     bool *more);
CornuStatus data_rows_each(CornuDataset *rows, int64_t size, DataRowsFunction *function,
                           void *context);
/* So many rows that a block is worth reading and takes little memory. */
int64_t     data_rows_block(const CornuDataset *rows);

/* Memory that data_free frees. NULL: there is none, which is an error. */
void *data_own(Data *data, size_t bytes);

/* Whether a loss wants labels of so many classes one-hot. */
bool data_wants_one_hot(const CornuModel *model, int64_t classes);
/* One-hot labels where a loss wants them of class numbers that come from a set or folder. */
CornuStatus data_label_form(Data *data, const CornuModel *model);

/* Shapes of inputs and labels, labels that are not classes, values that are not finite. */
CornuStatus data_check(const Data *data, const CornuModel *model, DataNeed need);

#endif
