#include "train_test.h"

#include <stdlib.h>

#include "../../device/status_internal.h"
#include "labels.h"

static CornuDataset *take(CornuArray *x, CornuArray *y)
{
    CornuArray    arrays[] = { *x, *y };
    CornuDataset *dataset = cornu_dataset_own_arrays(arrays, 2);
    x->data = y->data = NULL;
    return dataset;
}

CornuDataset *cornu_train_test_take_train(CornuTrainTest *data)
{
    if (!data && cornu__fail_absent("the data to train with")) return cornu__null();
    return take(&data->train_x, &data->train_y);
}

CornuDataset *cornu_train_test_take_test(CornuTrainTest *data)
{
    if (!data && cornu__fail_absent("the data to test with")) return cornu__null();
    return take(&data->test_x, &data->test_y);
}

CornuStatus cornu_train_test_rename(CornuTrainTest *data, const char *list_or_path)
{
    char **names = cornu_labels_read(list_or_path, data->classes);
    if (!names) return cornu_error_take();
    free(data->own_names);
    data->own_names = names;
    data->class_names = (const char *const *)names;
    return CORNU_OK;
}

void cornu_train_test_free(CornuTrainTest *data)
{
    if (!data) return;
    free(data->train_x.data);
    free(data->train_y.data);
    free(data->test_x.data);
    free(data->test_y.data);
    free(data->own_names);
    free(data);
}
