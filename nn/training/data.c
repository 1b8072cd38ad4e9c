/* CornuData: the arguments of fit, evaluate and predict, as the data set that they read. */
#include "../model/host_stage_internal.h"
#include "training_internal.h"

CORNU__HAS_DATA(CornuFitConfig);
CORNU__HAS_DATA(CornuEvaluateConfig);

/* Arrays by name in the order of the model's tensors. */
typedef CornuStatus OrderFunction(const CornuModel *model, const CornuNamedArray *arrays, int count,
                                  CornuArray *to);

/* One kind of arrays, which may be given in three ways. */
typedef struct {
    const char            *what;
    CornuArray             one;
    const CornuArray      *many;
    const CornuNamedArray *named;
    OrderFunction         *order;
    int                    wanted;      /* by the model */
    int                    some, end;   /* the number of `many`, the index after the last of them */
    bool                   any;         /* in whatever way */
} Given;

enum { X, Y, WEIGHTS, KINDS };

/* The data of a model's own step, which are not its inputs and outputs. */
static bool are_own(const CornuModel *model, CornuStepMode mode)
{
    return cornu__model_has_own_data(model) &&
           (mode != CORNU_STEP_PREDICT || cornu__model_has_own(model, mode));
}

static void find_given(const CornuModel *model, const CornuData *data, CornuStepMode mode,
                       Given given[KINDS])
{
    const bool own = are_own(model, mode);
    const int  xs = own ? cornu__model_xs(model, mode) : model->input_count;
    const int  ys = own ? cornu__model_ys(model, mode) : model->output_count;
    given[X] = (Given){ "x", data->x, data->xs, data->xs_by_name,
                        own ? NULL : cornu_model_order_inputs, xs, .some = 0 };
    given[Y] = (Given){ "y", data->y, data->ys, data->ys_by_name,
                        own ? NULL : cornu_model_order_outputs, ys, .some = 0 };
    given[WEIGHTS] = (Given){ "sample_weight", data->sample_weight, data->sample_weights,
                              data->sample_weights_by_name, own ? NULL : cornu__order_some_outputs,
                              data->sample_weight.data ? 1 : ys, .some = 0 };
    for (Given *one = given; one < given + KINDS; one++) {
        for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
            one->some += one->many[i].data != NULL;
            if (one->many[i].data) one->end = i + 1;
        }
        one->any = one->one.data || one->some || one->named[0].name;
    }
}

bool cornu__data_given(const CornuModel *model, const CornuData *data)
{
    Given given[KINDS];
    find_given(model, data, CORNU_STEP_TEST, given);
    return data->data || given[X].any || given[Y].any || given[WEIGHTS].any;
}

/* Appends the arrays in the order of the model's tensors to to[*count]. */
static CornuStatus append_arrays(const CornuModel *model, const char *who, const Given *given,
                                 CornuArray *to, int *count)
{
    const bool one = given->one.data, many = given->some, named = given->named[0].name;
    const int  some = one ? 1 : given->some == given->wanted ? given->end : given->some;
    if (one + many + named > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: both .%s%s and .%ss%s are given, expected one",
                           who, given->what, one ? "" : "s", given->what, named ? "_by_name" : "");
    if (named && !given->order)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%ss_by_name is given, but the data are those "
                           "of the model's own step, which have no names", who, given->what);
    to += *count;
    *count += given->wanted;
    if (named) return given->order(model, given->named, CORNU_MAX_MODEL_TENSORS, to);
    if (some != given->wanted)   /* or one is left out and another too much */
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d array%s given for %s, the model takes %d",
                           who, some, some == 1 ? " is" : "s are", given->what, given->wanted);
    for (int i = 0; i < some; i++) to[i] = one ? given->one : given->many[i];
    return CORNU_OK;
}

/* Weights of 1 for the outputs that have none in a list of weights by name, (rows) in *ones, or
 * NULL if all have. */
static CornuStatus complete_weights(const CornuModel *model, CornuArray *weights, float **ones)
{
    int64_t rows = 0;
    bool    lacks = false;
    for (int i = 0; i < model->output_count; i++) {
        if (weights[i].data && weights[i].type.shape.rank > 0)
            rows = weights[i].type.shape.extent[0];
        lacks |= !weights[i].data;
    }
    if (!lacks) return CORNU_OK;
    if (!(*ones = cornu__allocate((size_t)rows + 1, sizeof **ones))) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < rows; i++) (*ones)[i] = 1.0f;
    for (int i = 0; i < model->output_count; i++)
        if (!weights[i].data) weights[i] = cornu_array(*ones, CORNU_F32, rows);
    return CORNU_OK;
}

static CornuStatus check_kinds(const char *who, const Given given[KINDS], bool x_only)
{
    const bool  y = given[Y].any, more = y || given[WEIGHTS].any;
    const char *what = y ? "y" : "sample_weight";
    if (!given[X].any)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s%s, expected a data set or arrays", who,
                           more ? what : "no data", more ? " is given without x" : "");
    if (x_only && more)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is given, expected x alone", who, what);
    if (!x_only && !y && given[Y].wanted > 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: x is given without y", who);
    return CORNU_OK;
}

static CornuDataset *from_arrays(const CornuModel *model, const char *who, const Given given[KINDS],
                                 bool x_only)
{
    CornuArray  arrays[KINDS * CORNU_MAX_MODEL_TENSORS];
    int         count = 0;
    float      *ones = NULL;
    CornuStatus status = check_kinds(who, given, x_only);
    for (int k = 0; k < KINDS && !status; k++)
        if (given[k].any) status = append_arrays(model, who, &given[k], arrays, &count);
    if (!status && given[WEIGHTS].named[0].name)
        status = complete_weights(model, arrays + count - model->output_count, &ones);
    return status ? cornu__null() : cornu__dataset_borrow_arrays(arrays, count, ones);
}

static CornuDataset *from_set(const char *who, CornuDataset *set,
                              const Given given[KINDS], bool x_only)
{
    if (given[X].any || given[Y].any)
        return cornu__fail_null(CORNU_ERR_ARGUMENT,
                                "%s: both a data set and arrays are given, expected one", who);
    if (given[WEIGHTS].any)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: both a data set and .sample_weight are "
                                "given; weights are a further component of the data set", who);
    const int inputs = given[X].wanted, outputs = given[Y].wanted, all = inputs + outputs;
    const int components = cornu_dataset_components(set);
    if (components == all || components == all + 1 || components == all + outputs ||
        (components == inputs && x_only))
        return cornu_dataset_retain(set);
    if (all != 2)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: an element of the data set has %d "
                                "components, expected %d: %d inputs and %d outputs, then "
                                "optional sample weights, one component or %d", who, components,
                                all, inputs, outputs, outputs);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: an element of the data set has %d components, "
                            "expected %s", who, components,
                            x_only ? "1 to 3: x, or x and y, and sample weights"
                                   : "2 or 3: x and y, and sample weights");
}

/* What the step is fed with, where layers of the model run on the host. Takes the data set. */
static CornuDataset *after_host(const CornuModel *model, CornuDataset *data)
{
    CornuHostProgram program;
    if (!data || !cornu__model_on_host(model) || cornu__model_has_own_data(model)) return data;
    if (!cornu__model_host_program(model, cornu_dataset_components(data), &program))
        return cornu__dataset_host(data, program);
    cornu_dataset_free(data);
    return cornu__null();
}

CornuDataset *cornu__dataset_of(const CornuModel *model, const char *who, const CornuData *data,
                                CornuStepMode mode)
{
    Given      given[KINDS];
    const bool x_only = mode == CORNU_STEP_PREDICT;
    if (cornu_error_pending()) return NULL;
    find_given(model, data, mode, given);
    return after_host(model, data->data ? from_set(who, data->data, given, x_only)
                                        : from_arrays(model, who, given, x_only));
}
