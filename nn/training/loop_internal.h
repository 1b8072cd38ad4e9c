/* What fit, evaluate and predict share: sources of batches, calls of hooks, sorted logs. */
#ifndef CORNU_NN_LOOP_INTERNAL_H
#define CORNU_NN_LOOP_INTERNAL_H

#include "../../datasets/pipeline/dataset_internal.h"
#include "../../datasets/pipeline/iterator.h"
#include "../../device/clock_internal.h"
#include "history.h"
#include "../model/model_internal.h"

/* ---- Steps ---- */

/* CORNU_OK for a model of one input and one output that can be used. */
CornuStatus cornu__model_check_single(const CornuModel *model);

/* The step for batches of arrays of these types: recorded at the first call, found again later. One
 * that predicts looks at x only. */
CornuStatus cornu__step(CornuModel *model, CornuStepMode mode, const CornuArrays *arrays,
                        CornuStep **step);

/* Feeds such a batch, whose first `valid` rows count. */
CornuStatus cornu__step_feed(CornuStep *step, const CornuArrays *arrays, int64_t valid);

/* Runs on what was fed; a step that gives predictions writes those of the whole batch to `to`, one
 * array for each output. */
CornuStatus cornu__step_run(CornuStep *step, CornuArray *to);

/* values[i]: the results of the loss and each metric. */
CornuStatus cornu__metrics_read(CornuModel *model, double *values);

/* ---- Batches ---- */

/* Data as they are given: a data set, arrays for one input and one output, or lists of arrays that
 * end at the first without data. */
typedef struct {
    const char       *who;         /* begins messages */
    CornuDataset     *data;
    CornuArray        x, y, sample_weight;
    const CornuArray *xs, *ys, *sample_weights;  /* CORNU_MAX_MODEL_TENSORS of each; NULL where y
                                                    and weights are not wanted */
} CornuGiven;

/* The data set, which is kept, or one of the arrays, which are borrowed for the call. NULL with a
 * pending error unless they are what the model takes. */
CornuDataset *cornu__data(const CornuModel *model, const CornuGiven *given);

/* A batch's arrays as the model takes them. */
CornuArrays cornu__arrays_of(const CornuModel *model, const CornuBatch *batch);

/* Weights by class: class i weighs element i of an array, classes behind its end 1. */
typedef struct {
    CornuArray  weights;   /* borrowed */
    const char *who;
    int         label;     /* the component with the labels */
    CornuType   type;      /* of a label: a number, or one of C classes */
} CornuClassWeights;

/* Sets *classes for labels of that type; CORNU_OK if weights and labels are such. */
CornuStatus cornu__class_weights(CornuClassWeights *classes, const CornuModel *model,
                                 const char *who, CornuArray weights, CornuType label);

/* The sample weights of `rows` labels. */
void cornu__weigh_classes(const CornuClassWeights *classes, CornuArray labels, int64_t rows,
                          float *weights);

/* Adds them to the data set's elements; *classes must outlive it. Takes the data set. */
CornuDataset *cornu__add_class_weights(CornuClassWeights *classes, const CornuModel *model,
                                       const char *who, CornuArray weights, CornuDataset *data);

/* Steps of an epoch that lasts until the data end, which they alone tell. */
#define CORNU__UNTIL_END (INT64_MAX / 4)

/* Batches, epoch after epoch. */
typedef struct {
    CornuDataset  *dataset;
    CornuIterator *iterator;
    int64_t        steps;     /* of an epoch; CORNU__UNTIL_END */
    int64_t        batches;   /* of a pass over the data; CORNU_NONE is without end, CORNU_UNKNOWN
                                 ends where the data say */
    bool           ended;     /* they have said so, of this pass */
    CornuSample    at;        /* the next batch */
    CornuInfeed    infeed;    /* of this epoch */
} CornuSource;

/* How a source is made. The data set is taken. Names are those of the caller's arguments. */
typedef struct {
    CornuDataset *dataset;
    int64_t       batch_size;  /* 0: what a batched data set has, else usual_batch_size */
    int64_t       usual_batch_size;
    int64_t       least_rows;  /* that batches have where there are fewer in all, too */
    bool          few_sizes;   /* fewer rows are rounded up, to least_rows times a power of two */
    int64_t       steps;       /* 0: a whole pass */
    bool          shuffle;
    uint64_t      seed;
    const char   *who, *batch_name, *steps_name;
} CornuSourceConfig;

/* What batches of the model need: its own rows, or one for each shard. */
int64_t cornu__least_rows(const CornuModel *model);

CornuStatus cornu__source_open(CornuSource *source, const CornuSourceConfig *config);
void        cornu__source_close(CornuSource *source);

/* The steps of an epoch as callbacks are told them, -1 where they are not known; and " of 12", or
 * nothing. */
int64_t     cornu__source_steps(const CornuSource *source);
const char *cornu__of_steps(CornuText *to, const CornuSource *source);

/* To where `epochs` epochs end, each of source->steps steps or to the end of the data. */
void cornu__source_skip(CornuSource *source, int64_t epochs);

/* To where the source stands: an epoch begins. */
CornuStatus cornu__source_begin(CornuSource *source);

/* The next batch; NULL at the end of the data, after which comes the next pass. */
CornuStatus cornu__source_next(CornuSource *source, const CornuBatch **batch);

/* The batch before which an execution that begins with batch `first` of the epoch ends, unless the
 * data end earlier. */
int64_t cornu__execution_end(const CornuModel *model, const CornuSource *source, int64_t first);

/* Feeds the step for a batch of this source. */
CornuStatus cornu__source_feed(CornuSource *source, CornuStep *step, const CornuArrays *arrays,
                               int64_t valid);

/* cornu__step_run on a batch of this source: a failure for a value of the data names the element of
 * the data set that it is in. */
CornuStatus cornu__source_run(const CornuSource *source, CornuStep *step, CornuSample at,
                              CornuArray *to);

/* Called between epochs: a pass that is over begins anew. */
void cornu__source_turn(CornuSource *source);

/* ---- Hooks ---- */

typedef struct {
    CornuModel    *model;
    CornuCallback *items[CORNU_MAX_CALLBACKS + 1];
    int            count;
} CornuCallbacks;

/* Takes the callbacks, first of all, so that whatever fails they are freed by close. NULLs among
 * them are left out. */
CornuStatus cornu__callbacks_take(CornuCallbacks *callbacks, CornuModel *model,
                           CornuCallback *const given[CORNU_MAX_CALLBACKS]);

/* Adds the progress bar unless verbose is CORNU_SILENT, and sets everyone's params: those given,
 * with the number that is verbose; `written` is the call. */
CornuStatus cornu__callbacks_open(CornuCallbacks *callbacks, const char *written,
                                  CornuVerbose verbose, CornuParams params);
void        cornu__callbacks_close(CornuCallbacks *callbacks);

/* Calls a hook of each callback, given by its offset in CornuCallback. */
CornuStatus cornu__hook(const CornuCallbacks *callbacks, size_t hook, const CornuLogs *logs);
CornuStatus cornu__index_hook(const CornuCallbacks *callbacks, size_t hook, int64_t index,
                              const CornuLogs *logs);
#define CORNU__HOOK(name) offsetof(CornuCallback, name)

/* Whether a callback with this batch_end hook wants its logs. */
bool cornu__wants_logs(const CornuCallbacks *callbacks, size_t hook, int64_t batch);

/* Whether some callback takes a loss that is no number. */
bool cornu__takes_nan(const CornuCallbacks *callbacks);

/* ---- Logs ---- */

/* The metrics' results under their names, sorted: those of training, those of evaluation, or both,
 * evaluation's then with "val_". */
typedef struct {
    CornuLogs logs;
    CornuLog *items;    /* behind those of logs there is room for what callbacks add */
    char    **names;
    int      *source;   /* item i shows value source[i]; those of validation come second */
    int       metrics;  /* before those of validation */
    double   *values;   /* of training or evaluation, then of validation */
} CornuLogSet;

CornuStatus cornu__logs_open(CornuLogSet *set, const CornuModel *model, bool training,
                             bool evaluation);
void        cornu__logs_close(CornuLogSet *set);

/* Brings the items up to date with values[]. */
void cornu__logs_refresh(CornuLogSet *set);

/* Calls epoch_end of the callbacks that run last, or of the others before them, with *logs, the
 * set's at first; what one of them adds goes there for those behind it and for History. */
CornuStatus cornu__epoch_end(const CornuCallbacks *callbacks, bool last, int64_t epoch,
                             CornuLogSet *set, CornuLogs *logs);

/* ---- Training ---- */

/* Where fit stands: all that it goes on from besides the model and the data. Callbacks find it at
 * model->training, and may set it when training begins. */
typedef struct CornuTraining {
    int64_t       epoch, step;   /* `step` steps of this epoch have run */
    int64_t       samples;       /* in them */
    bool          stopped;       /* no epoch follows, though there are more */
    CornuSource  *source;        /* with the place of the next batch in the data */
    const CornuSource *validation;   /* without a data set if there is none */
    CornuHistory *history;       /* the epochs before */
    const CornuCallbacks *callbacks;
} CornuTraining;

/* ---- Evaluation ---- */

/* Runs the test steps of a source and leaves the results in logs->values, with the hooks of
 * evaluation. */
CornuStatus cornu__evaluate_source(CornuModel *model, CornuSource *source,
                                   const CornuCallbacks *callbacks, CornuLogSet *logs);

/* ---- History ---- */

CornuHistory *cornu__history_create(void);
/* Room for one more epoch, so that adding it allocates nothing but for logs of a new name. */
CornuStatus   cornu__history_reserve(CornuHistory *history);
CornuStatus   cornu__history_add(CornuHistory *history, int64_t epoch, const CornuLogs *logs,
                                 double seconds, int64_t samples, const CornuInfeed *infeed);

#endif
