#include "train_test.h"

#include <stdlib.h>

static CornuDataset *take(CornuArray *x, CornuArray *y)
{
    CornuArray    arrays[] = { *x, *y };
    CornuDataset *dataset = cornu_dataset_own_arrays(arrays, 2);
    x->data = y->data = NULL;
    return dataset;
}

CornuDataset *cornu_train_test_take_train(CornuTrainTest *data)
{
    return take(&data->train_x, &data->train_y);
}

CornuDataset *cornu_train_test_take_test(CornuTrainTest *data)
{
    return take(&data->test_x, &data->test_y);
}

void cornu_train_test_free(CornuTrainTest *data)
{
    if (!data) return;
    free(data->train_x.data);
    free(data->train_y.data);
    free(data->test_x.data);
    free(data->test_y.data);
    free(data);
}
