#include "check_gradients.h"

#include <math.h>
#include <string.h>

#include "training_internal.h"

typedef struct {
    const CornuCheckGradientsConfig *config;
    CornuModel   *model;
    CornuGraph   *graph;
    CornuTensor  *loss;        /* f64 */
    CornuTensor **d_w;         /* f64, of each trained weight */
    int          *weights;     /* their indices in the model */
    int           count;
    double        worst;
} Check;

static CornuStatus record_loss(Check *check)
{
    const CornuCheckGradientsConfig *config = check->config;
    CornuModel      *model = check->model;
    const CornuLoss *loss = model->losses[0];
    CornuTensor     *added = NULL;
    check->graph = cornu_graph_create(model->device);
    if (!check->graph) return cornu_error_take();
    CornuTensor *x = cornu_graph_input(check->graph, config->x.type);
    CornuTensor *y = cornu_graph_input(check->graph, config->y.type);
    CornuTensor *p = cornu_model_call(model, x, &(CornuCall){ .training = true, .loss = &added });
    CornuTensor *mean = p ? cornu_op_mean(loss->call(loss, y, p)) : NULL;
    if (mean && added) mean = cornu_op_add(mean, added);
    if (!mean) return cornu_error_take();
    if (cornu__layer_has_states(&model->base))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s has stateful layers, whose loss changes from "
                           "call to call", model->base.name);

    const int     all = cornu_model_weight_count(model);
    CornuTensor **w = check->d_w = cornu__allocate(2 * (size_t)all, sizeof(CornuTensor *));
    check->weights = cornu__allocate((size_t)all, sizeof *check->weights);
    if (!w || !check->weights) return CORNU_ERR_MEMORY;
    for (int i = 0; i < all; i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        if (!cornu_layer_trains(&model->base, weight)) continue;
        check->weights[check->count] = i;
        w[all + check->count++] = cornu_read(check->graph, weight->variable);
    }
    CORNU__TRY(cornu_gradients(mean, w + all, check->count, check->d_w));
    for (int i = 0; i < check->count; i++)
        check->d_w[i] = cornu_op_convert(check->d_w[i], CORNU_F64);
    check->loss = cornu_op_convert(mean, CORNU_F64);
    CORNU__TRY(cornu_error_take());
    CORNU__TRY(cornu_graph_feed(x, config->x));
    return cornu_graph_feed(y, config->y);
}

static CornuStatus loss_at(const Check *check, CornuWeight *weight, const CornuArray *values,
                           int64_t k, float value, double *loss)
{
    float *elements = values->data, old = elements[k];
    elements[k] = value;
    CornuStatus status = cornu_weight_write(weight, *values);
    elements[k] = old;
    CORNU__TRY(status);
    CornuArray to = cornu_array_from(loss, cornu_scalar(CORNU_F64));
    return cornu_run(check->graph, &check->loss, 1, &to);
}

/* Checks trained weight i, whose values and gradient are given. */
static CornuStatus check_weight(Check *check, int i, CornuArray values, const double *gradient)
{
    const CornuCheckGradientsConfig *config = check->config;
    CornuWeight  *weight = cornu_model_weight(check->model, check->weights[i]);
    const int64_t count = cornu_type_count(weight->type);
    const int64_t samples = config->samples ? config->samples : 8;
    const double  step = cornu__number(config->step, 1e-4);
    const double  tolerance = cornu__number(config->tolerance, 1e-3);
    double        greatest = 0.0;
    for (int64_t k = 0; k < count; k++) greatest = fmax(greatest, fabs(gradient[k]));
    for (int64_t k = 0; k < count; k += count > samples ? count / samples : 1) {
        /* Weights are f32: the element moves by the step rounded. */
        const float value = ((float *)values.data)[k];
        const float up = (float)((double)value + step), down = (float)((double)value - step);
        double      high, low;
        CORNU__TRY(loss_at(check, weight, &values, k, up, &high));
        CORNU__TRY(loss_at(check, weight, &values, k, down, &low));
        const double slope = (high - low) / ((double)up - (double)down);
        const double difference = fabs(slope - gradient[k]) / fmax(fmax(greatest, fabs(slope)),
                                                                   1e-6);
        check->worst = fmax(check->worst, difference);
        if (!(difference <= tolerance))
            return cornu__fail(CORNU_ERR_VALUE, "%s: the gradient by element %lld is %.9g, "
                               "expected %.9g by finite differences", weight->path, (long long)k,
                               gradient[k], slope);
    }
    return cornu_weight_write(weight, values);
}

/* Computes all gradients at once, then compares weight by weight. */
static CornuStatus compare_gradients(Check *check)
{
    CornuStatus status = CORNU_OK;
    CornuArray *gradients = cornu__allocate((size_t)check->count, sizeof *gradients);
    if (!gradients) return CORNU_ERR_MEMORY;
    for (int i = 0; i < check->count && !status; i++) {
        CornuType type = cornu_model_weight(check->model, check->weights[i])->type;
        type.dtype = CORNU_F64;
        gradients[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
        if (!gradients[i].data) status = CORNU_ERR_MEMORY;
    }
    if (!status) status = cornu_run(check->graph, check->d_w, check->count, gradients);
    for (int i = 0; i < check->count && !status; i++) {
        CornuWeight *weight = cornu_model_weight(check->model, check->weights[i]);
        CornuArray   values = cornu_array_from(cornu__allocate(cornu_type_bytes(weight->type), 1),
                                               weight->type);
        status = values.data ? cornu_weight_read(weight, values) : CORNU_ERR_MEMORY;
        if (!status) status = check_weight(check, i, values, gradients[i].data);
        cornu__release(values.data);
    }
    for (int i = 0; i < check->count; i++) cornu__release(gradients[i].data);
    cornu__release(gradients);
    return status;
}

/* Saves all weights, or restores them: every run updates moving statistics. */
static CornuStatus keep_weights(const CornuModel *model, CornuArray *values, bool restore)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        CornuWeight *weight = cornu_model_weight(model, i);
        if (!restore)
            values[i] = cornu_array_from(cornu__allocate(cornu_type_bytes(weight->type), 1),
                                         weight->type);
        if (!values[i].data) return CORNU_ERR_MEMORY;
        CORNU__TRY(restore ? cornu_weight_write(weight, values[i])
                           : cornu_weight_read(weight, values[i]));
    }
    return CORNU_OK;
}

static CornuStatus check_on_reference(Check *check)
{
    CornuModel *model = check->model;
    const int   count = cornu_model_weight_count(model);
    CornuArray *values = cornu__allocate((size_t)count, sizeof *values);
    if (!values) return CORNU_ERR_MEMORY;
    CornuStatus status = keep_weights(model, values, false);
    if (!status) {
        status = record_loss(check);
        if (!status) status = compare_gradients(check);
        const CornuStatus restored = keep_weights(model, values, true);
        if (!status) status = restored;
    }
    cornu_graph_free(check->graph);
    cornu__release(check->d_w);
    cornu__release(check->weights);
    for (int i = 0; i < count; i++) cornu__release(values[i].data);
    cornu__release(values);
    return status;
}

static CornuStatus check_config(const CornuCheckGradientsConfig *config)
{
    CornuModel *model = config->model;
    Check       check = { .config = config, .model = model };
    CORNU__TRY(cornu__model_check_single(model));
    if (!config->x.data || !config->y.data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "check_gradients: .x and .y are required");
    if (config->samples < 0 || config->step < 0.0 || config->tolerance < 0.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "check_gradients: .samples is %lld, .step %g, "
                           ".tolerance %g; expected numbers above 0", (long long)config->samples,
                           config->step, config->tolerance);
    CORNU__TRY(cornu__model_ready(model, config->x.type));
    if (!model->losses[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: compiled without .loss", model->base.name);
    CornuDevice *home = model->device, *reference = cornu_device_open("reference");
    if (!reference) return cornu_error_take();
    CornuStatus status = cornu_model_move(model, reference);
    if (!status) {
        status = check_on_reference(&check);
        const CornuStatus back = cornu_model_move(model, home);
        if (!status) status = back;
    }
    cornu_device_close(reference);
    if (config->worst) *config->worst = check.worst;
    return status;
}

CornuStatus cornu_check_gradients_from(const CornuCheckGradientsConfig *config)
{
    CORNU__WITHIN(config->model, "cornu_check_gradients", check_config(config));
}
