/* An estimator's functions for tests: of 52 rows of four numbers, whether their sum is positive and
 * how large it is, by two heads on one layer with dropout. */
#ifndef CORNU_TESTS_NN_TWO_TASKS_H
#define CORNU_TESTS_NN_TWO_TASKS_H

#include "../../../nn/cornu.h"

enum { TASK_ROWS = 52, TASK_BATCH = 8, TASK_FEATURES = 4 };

/* .params of the estimator. */
typedef struct {
    double   learning_rate;   /* default 0.05 */
    uint64_t shuffle;         /* seed; 0: in order, without end */
    int64_t  batch_size;      /* of the data; default params->batch_size */
    bool     swapped;         /* the heads are named in the order other than their labels' */
    bool     adam;            /* else momentum */
    bool     finite;          /* one pass */
} TwoTasks;

CornuTPUEstimatorSpec *two_tasks_model(CornuSymbol *const *features, CornuSymbol *const *labels,
                                       CornuModeKeys mode, const CornuEstimatorParams *params);

/* (x, class, sum): for training batches without end, else all rows; the last batch is partial. */
CornuDataset *two_tasks_train(const CornuEstimatorParams *params);
CornuDataset *two_tasks_test(const CornuEstimatorParams *params);
CornuDataset *two_tasks_features(const CornuEstimatorParams *params);   /* x alone */

/* The rows: x (52, 4) f32, class (52) i32, sum (52) f32. */
CornuArray two_tasks_array(int component);

/* Trains so many steps from scratch to the folder, and fails the test if that fails. */
void two_tasks_run(const char *model_dir, int64_t max_steps);

/* An estimator for the folder with these settings; steps are saved every two. */
CornuTPUEstimator *two_tasks_estimator(const char *model_dir, const TwoTasks *own, bool use_tpu,
                                       int shards);

#endif
