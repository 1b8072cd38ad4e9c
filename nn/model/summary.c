#include "summary.h"

#include "summary_internal.h"
#include "model_internal.h"

#include <stdlib.h>

/* Whether the model is more than a sequence of layers. */
static bool branches(const CornuModel *model)
{
    if (model->base.kind == &cornu__sequential_class) return false;
    for (int i = 1; i < model->call_count; i++) {
        const CornuNode *node = model->calls[i].node;
        if (cornu__node_symbols(node) != 1 || node->in[0]->node != model->calls[i - 1].node ||
            cornu__model_first_call(model, node->layer) < i)
            return true;
    }
    return false;
}

/* The sources of the inputs of a layer's calls; NULL without memory. */
static char *connections(const CornuModel *model, const CornuLayer *layer)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *memory = open_memstream(&text, &size);
    if (!memory) return NULL;
    bool first = true;
    for (int i = cornu__model_first_call(model, layer); i >= 0;
         i = cornu__model_next_call(model, i)) {
        const CornuNode *node = model->calls[i].node;
        for (int k = 0; k < cornu__node_symbols(node); k++) {
            CornuText place;
            fprintf(memory, "%s%s", first ? "" : ", ", cornu__symbol_print(&place, node->in[k]));
            first = false;
        }
    }
    if (fclose(memory) == 0) return text;
    free(text);
    return NULL;
}

void cornu__summary_release(CornuSummary *summary)
{
    for (int i = 0; summary->rows && i < summary->row_count; i++) {
        free(summary->rows[i].connected);
        cornu__release(summary->rows[i].more);
    }
    cornu__release(summary->rows);
}

/* Axis 0, where it is open, as the rows of every batch. */
static CornuShape with_batch(const CornuModel *model, CornuShape shape)
{
    if (shape.rank > 0 && shape.extent[0] == CORNU_NONE)
        shape.extent[0] = cornu_model_batch_size(model);
    return shape;
}

static CornuSummaryRow describe_layer(const CornuModel *model, const CornuLayer *layer, int depth)
{
    const CornuKerasClass *keras = cornu__keras_class(layer);
    CornuSummaryRow row = {
        .name = cornu_layer_name(layer), .depth = depth,
        .class_name = keras->shown ? keras->shown(layer) : layer->kind->class_name,
        .built = layer->built, .output = layer->output,
        .parameters = cornu_layer_parameters(layer),
        .has_weights = layer->weight_count > 0, .frozen = layer->frozen,
    };
    row.output = with_batch(model, row.output);
    return row;
}

/* The further outputs of its last call. */
static CornuStatus add_outputs(const CornuModel *model, const CornuLayer *layer,
                               CornuSummaryRow *row)
{
    const CornuNode *node = NULL;
    for (int i = cornu__model_first_call(model, layer); i >= 0;
         i = cornu__model_next_call(model, i))
        node = model->calls[i].node;
    if (!node || node->out_count == 1) return CORNU_OK;
    row->more = cornu__allocate((size_t)node->out_count - 1, sizeof *row->more);
    if (!row->more) return CORNU_ERR_MEMORY;
    row->more_count = node->out_count - 1;
    for (int i = 0; i < row->more_count; i++) {
        row->more[i] = with_batch(model, node->out[i + 1].type.shape);
    }
    return CORNU_OK;
}

/* A row for each layer; with expand_nested, the row of a model is followed by those of its
 * layers. */
static CornuStatus add_rows(const CornuModel *model, const CornuLayer *around, int depth,
                            bool expand_nested, CornuSummary *summary)
{
    for (int i = 0; i < around->inner_count; i++) {
        const CornuLayer *layer = around->inner[i];
        CORNU__TRY(cornu__reserve(&summary->rows, &summary->row_space, summary->row_count, 1,
                                  sizeof *summary->rows));
        CornuSummaryRow *row = &summary->rows[summary->row_count++];
        *row = describe_layer(model, layer, depth);
        CORNU__TRY(add_outputs(model, layer, row));
        if (summary->branching && !(row->connected = connections(model, layer)))
            return cornu__fail(CORNU_ERR_MEMORY, "summary: no memory for its text");
        if (expand_nested && layer->kind->call_masked)
            CORNU__TRY(add_rows(model, layer, depth + 1, true, summary));
    }
    return CORNU_OK;
}

/* Counts shared weights once. */
static void add_up(const CornuModel *model, CornuSummary *summary)
{
    for (int i = 0; i < model->base.weight_count; i++) {
        const CornuWeight *weight = model->base.weights[i];
        CornuSummaryTotal *to = cornu_layer_trains(&model->base, weight) ? &summary->trainable
                                                                          : &summary->non_trainable;
        to->count += cornu_type_count(weight->type);
        to->bytes += (int64_t)cornu_type_bytes(weight->type);
    }
}

/* Keras creates the optimizer's variables at the first step, and does not count them before. */
static bool has_trained(const CornuModel *model)
{
    double iteration = 0.0;
    return cornu_model_optimizer_variable_count(model) > 0 &&
           cornu_variable_get(cornu_optimizer_iteration(cornu_model_optimizer(model)),
                              &iteration) == CORNU_OK &&
           iteration > 0.0;
}

CornuStatus cornu__summary_gather(const CornuModel *model, bool expand_nested,
                                  CornuSummary *summary)
{
    *summary = (CornuSummary){ .name = cornu_model_name(model), .branching = branches(model) };
    CORNU__TRY(add_rows(model, &model->base, 0, expand_nested, summary));
    add_up(model, summary);

    summary->optimizer_built = has_trained(model);
    const int variables =
        summary->optimizer_built ? cornu_model_optimizer_variable_count(model) : 0;
    for (int i = 0; i < variables; i++) {
        CornuType type = cornu_variable_type(cornu_model_optimizer_variable(model, i));
        summary->optimizer.count += cornu_type_count(type);
        /* Keras has 32-bit steps; this gives its sizes. */
        summary->optimizer.bytes += cornu_dtype_is_float(type.dtype)
                                        ? (int64_t)cornu_type_bytes(type)
                                        : 4 * cornu_type_count(type);
    }
    return CORNU_OK;
}

/* Passes the whole text to print_fn at once, without escape codes, as wide as stdout. */
static CornuStatus print_to_function(const CornuSummary *summary,
                                     const CornuSummaryConfig *config)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *memory = open_memstream(&text, &size);
    if (!memory) return cornu__fail(CORNU_ERR_MEMORY, "summary: no memory for its text");
    CornuTerminal terminal = cornu_terminal(stdout);
    terminal.styling = CORNU_PLAIN;
    CornuStatus status = cornu__summary_print(summary, config->line_length,
                                              config->show_trainable, terminal, memory);
    if (fclose(memory) != 0 && status == CORNU_OK)
        status = cornu__fail(CORNU_ERR_MEMORY, "summary: no memory for its text");
    if (status == CORNU_OK) config->print_fn(config->print_context, text);
    free(text);
    return status;
}

CornuStatus cornu_summary_from(const CornuSummaryConfig *config)
{
    if (!config->model) return cornu__fail(CORNU_ERR_ARGUMENT, "summary: the model is NULL");
    CornuSummary summary;
    CornuStatus status = cornu__summary_gather(config->model, config->expand_nested, &summary);
    if (status == CORNU_OK && config->print_fn) {
        status = print_to_function(&summary, config);
    } else if (status == CORNU_OK) {
        FILE *file = config->file ? config->file : stdout;
        status = cornu__summary_print(&summary, config->line_length, config->show_trainable,
                                      cornu_terminal(file), file);
        fflush(file);
    }
    cornu__summary_release(&summary);
    return status;
}
