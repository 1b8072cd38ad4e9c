/* What a row of the data is to a model: one of a batch that may be cut, one that depends on others,
 * or none. */
#include "model_internal.h"

/* Whether it, or a layer in it, is a node of a file's graph. */
static bool is_of_graph(const CornuLayer *layer)
{
    bool is = layer->kind->types != NULL;
    for (int i = 0; i < layer->inner_count && !is; i++) is = is_of_graph(layer->inner[i]);
    return is;
}

static bool has_whole_batch(const CornuLayer *layer)
{
    bool has = layer->whole_batch;
    for (int i = 0; i < layer->inner_count && !has; i++) has = has_whole_batch(layer->inner[i]);
    return has;
}

/* Whether it, or a layer in it, regularizes its output by a function of the program's own, which
 * gets the whole batch. */
static bool is_regularized(const CornuLayer *layer)
{
    bool is = layer->activity_regularizer.kind == CORNU_OWN_REGULARIZER;
    for (int i = 0; i < layer->inner_count && !is; i++) is = is_regularized(layer->inner[i]);
    return is;
}

CornuStatus cornu__model_rows(CornuModel *model, const CornuType *x)
{
    if (cornu__model_is_function(model) || model->rows != CORNU_ROWS_UNKNOWN) return CORNU_OK;
    if (CORNU__FULL(is_regularized(&model->base), false)) {
        model->rows = CORNU_ROWS_BY_BATCH;
        return CORNU_OK;
    }
    const bool whole = has_whole_batch(&model->base);
    const bool unclear = model->batch_size != 1 && (whole || is_of_graph(&model->base));
    model->rows = CORNU__FULL(false, whole) ? CORNU_ROWS_BY_BATCH : CORNU_ROWS_INDEPENDENT;
    if (!CORNU__FULL(unclear, false)) return CORNU_OK;
    model->rows = CORNU_ROWS_UNKNOWN;
    CORNU__TRY(cornu__model_find_rows(model, x));
    /* Operations of Keras are of batches, which are cut as by Keras. */
    if (whole && model->rows != CORNU_ROWS_INDEPENDENT) model->rows = CORNU_ROWS_BY_BATCH;
    return CORNU_OK;
}

static bool has_batch(const CornuSymbol *symbol)
{
    return symbol->type.shape.rank > 0 && symbol->type.shape.extent[0] == CORNU_NONE;
}

/* What tells most that axis 0 is not a batch, and its name: of inputs a scalar, several rows, one;
 * then an output; else the last input, whose rows are others than those of the first. */
static const CornuSymbol *misfit(const CornuModel *model, const char **what, const char **name)
{
    const int last = model->input_count - 1;
    *what = "input";
    for (int pass = 0; pass < 3; pass++)
        for (int i = 0; i <= last; i++) {
            const CornuShape shape = model->inputs[i]->type.shape;
            *name = cornu__input_name(model, i);
            if (pass == 0 ? shape.rank == 0
                          : shape.rank > 0 && shape.extent[0] > (pass == 1 ? 1 : 0))
                return model->inputs[i];
        }
    *what = "output";
    for (int i = 0; i < model->output_count; i++) {
        *name = cornu__output_name(model, i);
        if (!has_batch(model->outputs[i])) return model->outputs[i];
    }
    *name = cornu__output_name(model, 0);
    if (last == 0) return model->outputs[0];
    *what = "input";
    *name = cornu__input_name(model, last);
    return model->inputs[last];
}

CornuStatus cornu__model_refuse_function(const CornuModel *model, const char *who)
{
    const char *what, *name;
    CornuText   text;
    if (!cornu__model_is_function(model)) return CORNU_OK;
    const CornuSymbol *symbol = misfit(model, &what, &name);
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: expected a model of batches, axis 0 of all "
                       "inputs and outputs, but the %s %s of %s is %s. cornu_predictor_predict and "
                       "cornu_predict_on_batch run it once on what is given", who, what, name,
                       model->base.name, cornu_shape_print(&text, symbol->type.shape));
}

CornuStatus cornu__model_refuse_cuts(const CornuModel *model, const char *who, int64_t batches)
{
    if (!cornu__model_runs_once(model) || batches == 1) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: the rows of %s depend on each other: %s. Expected one "
                       "batch of all rows, but the data are %s%.0lld%s", who, model->base.name,
                       model->dependence.text, batches < 0 ? "of unknown length" : "cut into ",
                       batches < 0 ? 0LL : (long long)batches, batches < 0 ? "" : " batches");
}
