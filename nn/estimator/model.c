/* The model of a mode: symbols for the data, model_fn, and what its spec becomes. */
#include "estimator_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../model/strategy.h"

/* An output of the model and what it is compared with. */
typedef struct {
    CornuSymbol *symbol;
    const char  *key;         /* of a prediction */
    int          label;       /* index of the labels */
    CornuLoss   *loss;
    double       weight;
    CornuMetric *metrics[CORNU_MAX_METRICS];
    int          metric_count;
} Output;

/* What making a model of a mode needs; freed when it is made. */
typedef struct {
    CornuTPUEstimator *estimator;
    CornuModeKeys      mode;
    CornuEstimatorParams params;   /* of model_fn */
    CornuSymbol       *features[CORNU_MAX_MODEL_TENSORS], *labels[CORNU_MAX_MODEL_TENSORS];
    int                label_count;
    Output             outputs[CORNU_MAX_MODEL_TENSORS];
    int                output_count;
} Making;

static const char *const mode_names[] = { NULL, "train", "evaluate", "predict" };

/* ---- Data ---- */

static CornuStatus check_data(const Making *making, const CornuDataset *data)
{
    const char   *who = mode_names[making->mode];
    const int64_t size = cornu_dataset_batch_size(data);
    const int64_t want = making->estimator->batch_size[making->mode];
    const int     components = cornu_dataset_components(data);
    const int     features = making->estimator->feature_count;
    const bool    labels = making->mode != CORNU_MODE_PREDICT;
    if (size == 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the data of input_fn are not batched; expected "
                           "batches of params->batch_size, %lld", who, (long long)want);
    if (size != want)
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the batches of input_fn have %lld rows, expected "
                           "params->batch_size, %lld", who, (long long)size, (long long)want);
    if (components < features + labels || components - features > CORNU_MAX_MODEL_TENSORS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: an element of the data of input_fn has %d "
                           "components, expected %d features%s", who, components, features,
                           labels ? " and then labels" : "");
    return CORNU_OK;
}

/* A symbol for a component of the data. */
static CornuSymbol *input_of(CornuType type, const char *name)
{
    CornuInputConfig config = { .name = name, .shape = { 1 } };
    for (int i = 0; i < type.shape.rank && i < CORNU_MAX_RANK; i++)
        config.shape[i] = type.shape.extent[i];
    return cornu_input_from(&config);
}

static CornuStatus make_symbols(Making *making, const CornuDataset *data)
{
    const int features = making->estimator->feature_count;
    for (int i = 0; i < features; i++) {
        making->features[i] = input_of(cornu_dataset_type(data, i),
                                       making->estimator->feature_names[i]);
        if (!making->features[i]) return cornu_error_take();
    }
    if (making->mode == CORNU_MODE_PREDICT) return CORNU_OK;
    for (int i = features; i < cornu_dataset_components(data); i++) {
        char name[24] = "labels";
        if (making->label_count) snprintf(name, sizeof name, "labels_%d", making->label_count);
        CornuSymbol *label = input_of(cornu_dataset_type(data, i), name);
        if (!label) return cornu_error_take();
        making->labels[making->label_count++] = label;
    }
    return CORNU_OK;
}

/* model_fn, whose models have the default names and seeds of a new program. */
static CornuTPUEstimatorSpec *call_model_fn(Making *making)
{
    const CornuTPUEstimator *estimator = making->estimator;
    const CornuDevice *device = cornu__estimator_device(making->estimator, making->mode);
    const CornuMaking  before = *cornu__making();
    const int64_t      seed = estimator->config.tf_random_seed;
    if (!device) return NULL;
    *cornu__making() = (CornuMaking){ .seed = seed ? (uint64_t)seed : before.seed };
    making->params = (CornuEstimatorParams){
        .batch_size = estimator->batch_size[making->mode] / cornu_device_shards(device),
        .use_tpu = estimator->use_tpu, .own = estimator->params };
    const bool labels = making->mode != CORNU_MODE_PREDICT;
    CornuTPUEstimatorSpec *spec = estimator->model_fn(
        making->features, labels ? making->labels : NULL, making->mode, &making->params);
    *cornu__making() = before;
    return spec;
}

/* ---- What the spec says ---- */

static CornuStatus find_label(const Making *making, const CornuSymbol *symbol, const char *field,
                              int i, int *label)
{
    for (*label = 0; *label < making->label_count; ++*label)
        if (making->labels[*label] == symbol) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .labels of .%s[%d] is not one of the labels that "
                       "model_fn was given", mode_names[making->mode], field, i);
}

/* The output that is compared with these labels; made if it is new. */
static CornuStatus output_of(Making *making, CornuSymbol *symbol, const CornuSymbol *labels,
                             const char *field, int i, Output **output)
{
    CornuText text;
    int       label;
    CORNU__TRY(find_label(making, labels, field, i, &label));
    for (int k = 0; k < making->output_count; k++) {
        *output = &making->outputs[k];
        if ((*output)->symbol != symbol) continue;
        if ((*output)->label == label) return CORNU_OK;
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: %s is compared with two of the labels, "
                           "expected one", mode_names[making->mode],
                           cornu__symbol_print(&text, symbol));
    }
    if (making->output_count == CORNU_MAX_LOSSES)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: losses and metrics of more than %d symbols",
                           mode_names[making->mode], CORNU_MAX_LOSSES);
    *output = &making->outputs[making->output_count++];
    **output = (Output){ .symbol = symbol, .label = label };
    return CORNU_OK;
}

/* Moves losses and metrics from the spec to the outputs, which own them until they are compiled. */
static CornuStatus take_losses(Making *making, CornuTPUEstimatorSpec *spec)
{
    Output   *output;
    CornuText text;
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && spec->config.loss[i].loss; i++) {
        CornuSpecLoss *of = &spec->config.loss[i];
        CORNU__TRY(output_of(making, of->predictions, of->labels, "loss", i, &output));
        if (output->loss)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: two losses are of %s, expected one for "
                               "each symbol", mode_names[making->mode],
                               cornu__symbol_print(&text, of->predictions));
        output->loss = of->loss;
        output->weight = spec->config.loss_weights[i];
        of->loss = NULL;
    }
    for (int i = 0; i < CORNU_MAX_METRICS && spec->config.eval_metrics[i].metric; i++) {
        CornuSpecMetric *of = &spec->config.eval_metrics[i];
        if (making->mode != CORNU_MODE_EVAL) break;
        CORNU__TRY(output_of(making, of->predictions, of->labels, "eval_metrics", i, &output));
        output->metrics[output->metric_count++] = of->metric;
        of->metric = NULL;
    }
    return CORNU_OK;
}

static int by_key(const void *a, const void *b)
{
    return strcmp(((const Output *)a)->key, ((const Output *)b)->key);
}

static CornuStatus take_predictions(Making *making, const CornuNamedSymbol *named)
{
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && named[i].name; i++)
        making->outputs[making->output_count++] = (Output){ .symbol = named[i].symbol,
                                                            .key = named[i].name };
    qsort(making->outputs, (size_t)making->output_count, sizeof(Output), by_key);
    for (int i = 1; i < making->output_count; i++)
        if (!strcmp(making->outputs[i].key, making->outputs[i - 1].key))
            return cornu__fail(CORNU_ERR_ARGUMENT, "predict: two predictions are called \"%s\"",
                               making->outputs[i].key);
    return CORNU_OK;
}

/* ---- The model ---- */

static CornuStatus make_model(const Making *making, CornuEstimatorModel *to)
{
    const bool       keys = making->mode == CORNU_MODE_PREDICT;
    CornuModelConfig config = { .name = "estimator" };
    for (int i = 0; i < making->estimator->feature_count; i++)
        config.inputs[i] = making->features[i];
    for (int i = 0; i < making->output_count; i++) {
        config.outputs[i] = making->outputs[i].symbol;
        if (!keys) continue;
        config.output_keys[i] = making->outputs[i].key;
        if (!(to->keys[i] = cornu__copy_text(making->outputs[i].key))) return CORNU_ERR_MEMORY;
        to->key_count++;
    }
    to->model = cornu__model_of(&config);
    return to->model ? CORNU_OK : cornu_error_take();
}

/* Takes losses and metrics from the outputs, and the optimizer from the spec. Predictions are
 * compiled with an optimizer without variables of its own. */
static CornuStatus compile(Making *making, CornuEstimatorModel *to)
{
    CornuTPUEstimator *estimator = making->estimator;
    const bool         trains = making->mode == CORNU_MODE_TRAIN;
    const bool         several = making->output_count > 1;
    const bool         on_tpu = estimator->use_tpu;
    CornuCompileConfig config = {
        .model = to->model, .device = cornu__estimator_device(estimator, making->mode),
        .optimizer = trains ? to->spec->config.train_op : cornu_sgd(),
        .steps_per_execution = on_tpu ? estimator->config.tpu_config.iterations_per_loop : 1,
    };
    if (trains) to->spec->config.train_op = NULL;
    for (int i = 0; i < making->output_count && making->mode != CORNU_MODE_PREDICT; i++) {
        Output *output = &making->outputs[i];
        config.losses[i] = output->loss ? output->loss : CORNU_NO_LOSS;
        config.loss_weights[i] = output->weight;
        memcpy(several ? config.output_metrics[i] : config.metrics, output->metrics,
               sizeof output->metrics);
        output->loss = NULL;
        output->metric_count = 0;
    }
    return cornu_compile_from(&config);
}

/* A CornuMapFunction: the components in the order that the model takes them. */
static CornuStatus put_in_order(void *context, CornuSample sample, const CornuArray *in,
                                const CornuArray *out)
{
    const CornuEstimatorModel *of = context;
    (void)sample;
    for (int i = 0; i < of->components; i++)
        memcpy(out[i].data, in[of->copied[i]].data, cornu_type_bytes(out[i].type));
    return CORNU_OK;
}

/* The model takes the features and, for each output, its labels. */
static CornuStatus order_data(const Making *making, CornuEstimatorModel *to)
{
    const int features = making->estimator->feature_count;
    CornuType types[CORNU_MAX_COMPONENTS];
    bool      same = features + making->output_count == cornu_dataset_components(to->data);
    if (making->mode == CORNU_MODE_PREDICT) return CORNU_OK;
    to->components = features + making->output_count;
    for (int i = 0; i < to->components; i++) {
        to->copied[i] = i < features ? i : features + making->outputs[i - features].label;
        types[i] = cornu_dataset_type(to->data, to->copied[i]);
        same &= to->copied[i] == i;
    }
    if (same) return CORNU_OK;
    to->data = cornu_dataset_map(to->data, put_in_order, to, types, to->components);
    return to->data ? CORNU_OK : cornu_error_take();
}

static CornuStatus open_model(Making *making, CornuInputFn *input_fn, bool exports,
                              CornuEstimatorModel *to)
{
    const CornuTPUEstimator   *estimator = making->estimator;
    const CornuEstimatorParams params = {
        .batch_size = estimator->batch_size[making->mode], .use_tpu = estimator->use_tpu,
        .own = estimator->params };
    to->data = input_fn(&params);
    if (!to->data)
        return cornu_error_pending() ? cornu_error_take()
             : cornu__fail(CORNU_ERR_DATA, "%s: input_fn returned no data",
                           mode_names[making->mode]);
    CORNU__TRY(check_data(making, to->data));
    CORNU__TRY(make_symbols(making, to->data));
    to->spec = call_model_fn(making);
    if (cornu_error_pending()) return cornu_error_take();
    if (!to->spec)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: model_fn returned no spec",
                           mode_names[making->mode]);
    const CornuTPUEstimatorSpecConfig *spec = &to->spec->config;
    if (spec->mode != making->mode)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the spec of model_fn has another mode, "
                           "expected the one that it was given", mode_names[making->mode]);
    CORNU__TRY(making->mode == CORNU_MODE_PREDICT
               ? take_predictions(making, exports && spec->export_outputs[0].name
                                          ? spec->export_outputs : spec->predictions)
               : take_losses(making, to->spec));
    CORNU__TRY(make_model(making, to));
    CORNU__TRY(compile(making, to));
    return order_data(making, to);
}

/* The symbols of labels are in no model. After a failure those of the features, and what model_fn
 * has made of them, are not, either. */
static void free_symbols(const Making *making, CornuStatus status)
{
    for (int i = 0; i < making->label_count; i++)
        if (!status) cornu__node_detach(making->labels[i]->node);
    if (status) cornu_clear_session();
}

CornuStatus cornu__estimator_model_open(CornuTPUEstimator *estimator, CornuModeKeys mode,
                                        CornuInputFn *input_fn, bool exports,
                                        CornuEstimatorModel *to)
{
    static const char *const sizes[] = { NULL, "train_batch_size", "eval_batch_size",
                                         "predict_batch_size" };
    Making *making = cornu__allocate(1, sizeof *making);
    *to = (CornuEstimatorModel){ .model = NULL };
    if (!making) return CORNU_ERR_MEMORY;
    *making = (Making){ .estimator = estimator, .mode = mode };
    CornuStatus status = CORNU_OK;
    if (!input_fn)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: .input_fn is required", mode_names[mode]);
    else if (estimator->batch_size[mode] == 0)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s of the estimator is required",
                             mode_names[mode], sizes[mode]);
    if (!status) status = open_model(making, input_fn, exports, to);
    if (status) cornu_error_take();   /* of a constructor among the arguments of a call */
    free_symbols(making, status);
    for (int i = 0; i < making->output_count; i++) {
        cornu_loss_free(making->outputs[i].loss);
        for (int k = 0; k < making->outputs[i].metric_count; k++)
            cornu_metric_free(making->outputs[i].metrics[k]);
    }
    cornu__release(making);
    if (status) cornu__estimator_model_close(to);
    return status;
}

void cornu__estimator_model_close(CornuEstimatorModel *of)
{
    cornu_dataset_free(of->data);
    cornu_model_free(of->model);
    cornu__spec_free(of->spec);
    for (int i = 0; i < of->key_count; i++) cornu__release(of->keys[i]);
    *of = (CornuEstimatorModel){ .model = NULL };
}
