/* Shared by fit, evaluate and predict: steps, batches, callbacks and logs. */
#ifndef CORNU_NN_TRAINING_INTERNAL_H
#define CORNU_NN_TRAINING_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "../../datasets/pipeline/dataset_internal.h"
#include "../../datasets/pipeline/iterator.h"
#include "../../device/system/clock_internal.h"
#include "history.h"
#include "../model/model_internal.h"

/* ---- Steps ---- */

/* CORNU_OK for a usable model with one input and one output. */
CornuStatus cornu__model_check_single(const CornuModel *model);

/* The step for batches of arrays of these types: recorded by the first call, cached after it. One
 * that predicts looks at x only. */
CornuStatus cornu__step(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                        CornuStep **step);

/* A step of the caller's, not cached; cornu__step_free frees it. A concurrent one may run while
 * other threads run others (cornu_graph_set_concurrent). */
CornuStatus cornu__step_make(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                             bool concurrent, CornuStep **step);

/* Input i of the model from data: f32, or the input's own dtype; scales integers unless they are
 * indices. */
CornuTensor *cornu__model_convert_input(const CornuModel *model, int i, CornuTensor *x);

/* Whether the step is for batches of these types. */
bool cornu__step_takes(const CornuStep *step, const CornuArrays *arrays);

/* Feeds such a batch, of which the first `valid` rows count. Only the rows of this process' shards
 * are read (cornu__own_rows). */
CornuStatus cornu__step_feed(CornuStep *step, const CornuArrays *arrays, int64_t valid);

/* Runs the step on the batch fed last. A step that predicts writes the predictions for the whole
 * batch to `to`, one array per output. */
CornuStatus cornu__step_run(CornuStep *step, CornuArray *to);

/* values[i]: the results of the loss and each metric. */
CornuStatus cornu__metrics_read(CornuModel *model, double *values);

/* The rows to compute for the valid rows of a batch: the next power of two, so that few sizes are
 * compiled whatever comes, and at least one per shard; or the model's fixed batch size. */
int64_t cornu__rows_to_predict(const CornuModel *model, int64_t valid, int64_t batch);

/* ---- Batches ---- */

/* The type of so many rows. */
static inline CornuType cornu__rows_of(CornuType row, int64_t rows)
{
    CornuType type = { .dtype = row.dtype, .shape = { .rank = row.shape.rank + 1 } };
    type.shape.extent[0] = rows;
    for (int i = 0; i < row.shape.rank; i++) type.shape.extent[i + 1] = row.shape.extent[i];
    return type;
}

/* The data among the arguments of a config, CORNU_DATA_MEMBERS, which lie there as in CornuData:
 * CORNU__HAS_DATA checks it. */
#define CORNU__HAS_DATA(Config)                                                         \
    _Static_assert(offsetof(Config, sample_weights_by_name) - offsetof(Config, data) == \
                   offsetof(CornuData, sample_weights_by_name), "the data of " #Config)
#define CORNU__DATA_OF(Config, config) cornu__data_at((config), offsetof(Config, data))
static inline CornuData cornu__data_at(const void *config, size_t offset)
{
    CornuData data;
    memcpy(&data, (const char *)config + offset, sizeof data);
    return data;
}

/* Whether data were given. */
bool cornu__data_given(const CornuModel *model, const CornuData *data);

/* The data set, retained, or a new one of the arrays, which are borrowed for the call, for steps of
 * this mode: CORNU_STEP_PREDICT takes the inputs alone. NULL with a pending error, which `who`
 * begins, unless they fit the model's inputs and outputs. */
CornuDataset *cornu__dataset_of(const CornuModel *model, const char *who, const CornuData *data,
                                CornuStepMode mode);

/* Whether labels of these rows are class numbers: the device would truncate 1.7 to class 1, and
 * convert NaN to any number. */
CornuStatus cornu__check_classes(CornuArray y, int64_t first, int64_t count);

/* Class weights: element i of an array weighs class i; classes beyond its end weigh 1. */
typedef struct {
    CornuArray  weights;   /* borrowed */
    const char *who;
    int         label;     /* the component with the labels */
    CornuType   type;      /* of a label: class numbers, or one of C classes */
    bool        numbers;   /* the loss takes class numbers: each has a weight of its own */
    CornuType   weight;    /* of the weights of a label, f32 */
} CornuClassWeights;

/* Sets *classes for labels of that type. Errors unless the weights are a vector and the labels
 * classes. */
CornuStatus cornu__class_weights(CornuClassWeights *classes, const CornuModel *model,
                                 const char *who, CornuArray weights, CornuType label);

/* Writes `count` sample weights, those of whole labels. CORNU_ERR_VALUE for integers that are
 * neither class numbers of the loss nor one of C classes. */
CornuStatus cornu__weigh_classes(const CornuClassWeights *classes, CornuArray labels, int64_t count,
                                 float *weights);

/* Appends them to the data set's elements; *classes must outlive it. Takes the data set. */
CornuDataset *cornu__add_class_weights(CornuClassWeights *classes, const CornuModel *model,
                                       const char *who, CornuArray weights, CornuDataset *data);

/* The steps of an epoch that lasts until the data end, after an unknown number of batches. */
#define CORNU__UNTIL_END (INT64_MAX / 4)

/* A batch that was run, for the message about bad data in it: a device may report them later. */
typedef struct {
    CornuSample at;
    int         shards;
    int64_t     rows, valid;   /* of a shard, of all */
    const CornuDevice *device; /* whose shards faults name; NULL: they name those of the batch */
} CornuRecentBatch;

enum { CORNU__RECENT_BATCHES = 1024 };

/* The source of batches: reads them from the data, epoch after epoch, while steps run. */
typedef struct {
    CornuDataset  *dataset;
    CornuIterator *iterator;
    int64_t        steps;     /* per epoch; or CORNU__UNTIL_END */
    int64_t        batches;   /* of a pass; CORNU_NONE: infinite; or CORNU_UNKNOWN */
    bool           ended;     /* the data of this pass have ended, after unknown many batches */
    CornuSample    at;        /* the next batch */
    int64_t        rows;      /* of a whole pass; -1 if that is not known */
    CornuInfeed    infeed;    /* of this epoch */
    int64_t        fed;       /* rows of it so far */
    CornuResident *resident;  /* the device has the rows: the iterator reads their numbers, and */
    CornuBatch     batch;     /* a batch is these types and rows; NULL: it reads arrays */
    CornuArray     arrays[CORNU_MAX_COMPONENTS], rows_read;
    CornuRecentBatch *recent; /* CORNU__RECENT_BATCHES; batch i of the epoch at i % of these */
} CornuDataLoader;

/* How a loader is made. Takes the data set. The names are those of the caller's arguments. */
typedef struct {
    CornuDataset *dataset;
    const CornuDevice *device; /* whose own shards are fed: only their rows are fetched */
    int64_t       batch_size;  /* 0: a batched data set's own, else default_batch_size */
    int64_t       default_batch_size;
    int64_t       min_batch_rows;  /* the rows of a batch even where there are fewer in all */
    bool          takes_all;   /* of a model whose rows depend on each other, all rows by default */
    bool          predicts;    /* the data are of the model's inputs, also if its step has others */
    bool          on_device;   /* rows may be taken from a data set on the device */
    bool          few_sizes;   /* round fewer rows up, to min_batch_rows times a power of two */
    int64_t       steps;       /* 0: a whole pass */
    bool          shuffle;
    uint64_t      seed;
    const char   *who, *batch_name, *steps_name;
} CornuDataLoaderConfig;

/* The fewest rows that a batch of the model may have: its fixed batch size, or one per shard. */
int64_t cornu__min_batch_rows(const CornuModel *model);

/* The arrays of a batch of the loader, or of one of other extents, divided into x, y and sample
 * weights. */
CornuArrays cornu__batch_arrays(const CornuModel *model, CornuStepMode mode,
                                const CornuDataLoader *loader, const CornuBatch *batch);

CornuStatus cornu__data_loader_open(CornuDataLoader *loader, const CornuDataLoaderConfig *config);
/* For a model: batches of its own size by default, if it has one; and where its rows depend on each
 * other one batch of all rows, else CORNU_ERR_SHAPE. */
CornuStatus cornu__data_loader_open_for(CornuModel *model, CornuDataLoader *loader,
                                        const CornuDataLoaderConfig *config);
void        cornu__data_loader_close(CornuDataLoader *loader);

/* The steps of an epoch as callbacks get them, -1 if unknown; and " of 12", or "". */
int64_t     cornu__data_loader_steps(const CornuDataLoader *loader);
const char *cornu__of_steps(CornuText *to, const CornuDataLoader *loader);

/* Moves on by `epochs` epochs, each of loader->steps steps or to the end of the data. */
void cornu__data_loader_skip_epochs(CornuDataLoader *loader, int64_t epochs);

/* Begins an epoch at loader->at. */
CornuStatus cornu__data_loader_begin_epoch(CornuDataLoader *loader);

/* The next batch; NULL at the end of the data. The call after that begins the next pass. */
CornuStatus cornu__data_loader_next(CornuDataLoader *loader, const CornuBatch **batch);

/* The end, exclusive, of the execution that begins with batch `first` of the epoch, unless the data
 * end earlier. */
int64_t cornu__execution_end(const CornuModel *model, const CornuDataLoader *loader, int64_t first);

/* Feeds the step with a batch of this loader. */
CornuStatus cornu__data_loader_feed(CornuDataLoader *loader, CornuStep *step,
                                    const CornuArrays *arrays, int64_t valid);

/* The step for batches of this loader. */
CornuStatus cornu__step_of(CornuModel *model, CornuStepMode mode, const CornuDataLoader *loader,
                           CornuStep **step);

/* cornu__step_run on the batch just fed; and until all steps have ended. An error about a value
 * names the element of the data set. */
CornuStatus cornu__data_loader_run(CornuDataLoader *loader, CornuStep *step, CornuSample at,
                                   CornuArray *to);
CornuStatus cornu__data_loader_wait(const CornuDataLoader *loader, CornuModel *model);

/* Ends an epoch: after a whole pass the next one begins. */
void cornu__data_loader_end_epoch(CornuDataLoader *loader);

/* ---- Callbacks ---- */

typedef struct {
    CornuModel    *model;
    CornuCallback *items[CORNU_MAX_CALLBACKS + 1];
    int            count;
} CornuCallbackList;

/* Takes the callbacks, skipping NULLs. Comes before anything that may fail, so that close frees
 * them in any case. */
CornuStatus cornu__callback_list_take(CornuCallbackList *callbacks, CornuModel *model,
                                      CornuCallback *const given[CORNU_MAX_CALLBACKS]);

/* Appends the progress bar unless verbose is CORNU_SILENT, and sets the params of all, with the
 * number of `verbose` filled in; `written` is the text of the call. */
CornuStatus cornu__callback_list_open(CornuCallbackList *callbacks, const char *written,
                                      CornuVerbose verbose, CornuParams params);
void        cornu__callback_list_close(CornuCallbackList *callbacks);

/* Calls a hook of each callback; `hook` is its offset in CornuCallback. */
CornuStatus cornu__call_hook(const CornuCallbackList *callbacks, size_t hook,
                             const CornuLogs *logs);
CornuStatus cornu__call_index_hook(const CornuCallbackList *callbacks, size_t hook, int64_t index,
                                   const CornuLogs *logs);
#define CORNU__HOOK(name) offsetof(CornuCallback, name)

/* Whether a callback with this batch_end hook wants its logs. */
bool cornu__wants_logs(const CornuCallbackList *callbacks, size_t hook, int64_t batch);

/* Whether a callback is about to end the call, for one that holds it up. */
bool cornu__interrupted(const CornuCallbackList *callbacks);

/* Whether a callback handles a loss that is not finite. */
bool cornu__takes_nan(const CornuCallbackList *callbacks);

/* ---- Logs ---- */

/* The metrics' results by name, sorted: of training, of evaluation, or of both, with "val_" before
 * the names of evaluation. */
typedef struct {
    CornuLogs logs;
    CornuLog *items;    /* those of logs, then space for the logs that callbacks add */
    char    **names;
    int      *value_of; /* item i shows values[value_of[i]] */
    int       metrics;  /* the number of values before those of validation */
    double   *values;   /* of training or evaluation, then of validation */
} CornuLogSet;

CornuStatus cornu__logs_open(CornuLogSet *set, const CornuModel *model, bool training,
                             bool evaluation);
void        cornu__logs_close(CornuLogSet *set);

/* Updates the items from values[]. */
void cornu__logs_refresh(CornuLogSet *set);

/* Calls epoch_end of the callbacks that run last, or of the others, with *logs, at first the set's.
 * Logs that a callback adds are visible to the callbacks after it and to History. */
CornuStatus cornu__epoch_end(const CornuCallbackList *callbacks, bool last, int64_t epoch,
                             CornuLogSet *set, CornuLogs *logs);

/* ---- Training ---- */

/* The state of fit: all that it resumes from besides the model and the data. Callbacks find it at
 * model->training and may set it in train_begin. */
typedef struct CornuTraining {
    int64_t       epoch, step;   /* `step` steps of this epoch have run */
    int64_t       samples;       /* in them */
    double        seconds;       /* that the steps of the last epoch took */
    double        idle_seconds;  /* of this epoch, that a callback held its steps up: not counted */
    bool          stopped;       /* before the last epoch */
    CornuDataLoader *loader;
    const CornuDataLoader *validation;   /* without a data set if there is none */
    CornuHistory *history;       /* of earlier epochs */
    const CornuCallbackList *callbacks;
} CornuTraining;

/* Records the training step of the model's fit, which is about to begin: it creates the states of
 * metrics and layers. */
CornuStatus cornu__training_prepare(CornuModel *model, CornuStep **step);

/* ---- Evaluation ---- */

/* Runs the test steps on all batches and leaves the results in logs->values; calls the hooks of
 * evaluation. */
CornuStatus cornu__evaluate_batches(CornuModel *model, CornuDataLoader *loader,
                                    const CornuCallbackList *callbacks, CornuLogSet *logs);

/* ---- History ---- */

CornuHistory *cornu__history_create(void);
/* Whether it is one, maybe NaN, and not what stands where an epoch has no value. */
bool          cornu__history_is_value(double value);
/* Reserves memory for one more epoch: adding it then allocates only for logs of a new name. */
CornuStatus   cornu__history_reserve(CornuHistory *history);
CornuStatus   cornu__history_add(CornuHistory *history, int64_t epoch, const CornuLogs *logs,
                                 double seconds, int64_t samples, const CornuInfeed *infeed);

#endif
