#include "summary.h"

#include "model_internal.h"
#include "summary_internal.h"

#include <stdlib.h>

/* Whether it is anything but one layer behind the other. */
static bool branches(const CornuModel *model)
{
    if (model->base.kind == &cornu__sequential_class) return false;
    for (int i = 1; i < model->call_count; i++) {
        const CornuNode *node = model->calls[i].node;
        if (node->in_count != 1 || node->in[0]->node != model->calls[i - 1].node) return true;
        for (int k = 0; k < i; k++)
            if (model->calls[k].node->layer == node->layer) return true;
    }
    return false;
}

/* Where the inputs of a layer's calls come from; NULL without memory. */
static char *connections(const CornuModel *model, const CornuLayer *layer)
{
    char  *text = NULL;
    size_t size = 0;
    FILE  *memory = open_memstream(&text, &size);
    if (!memory) return NULL;
    bool first = true;
    for (int i = 0; i < model->call_count; i++) {
        const CornuNode *node = model->calls[i].node;
        for (int k = 0; k < node->in_count && node->layer == layer; k++) {
            CornuText place;
            fprintf(memory, "%s%s", first ? "" : ", ", cornu__symbol_print(&place, node->in[k]));
            first = false;
        }
    }
    if (fclose(memory) == 0) return text;
    free(text);
    return NULL;
}

static void free_rows(CornuSummary *summary)
{
    for (int i = 0; summary->rows && i < summary->row_count; i++) free(summary->rows[i].connected);
    cornu__release(summary->rows);
}

/* Adds the layer's weights to the totals and describes it. */
static CornuSummaryRow describe(const CornuModel *model, const CornuLayer *layer,
                                CornuSummary *summary)
{
    CornuSummaryRow row = {
        .name = cornu_layer_name(layer), .class_name = layer->kind->class_name,
        .built = layer->built, .output = layer->output,
        .parameters = cornu_layer_parameters(layer),
        .has_weights = layer->weight_count > 0, .frozen = layer->frozen,
    };
    if (row.output.rank > 0) row.output.extent[0] = cornu_model_batch_size(model);
    for (int i = 0; i < layer->weight_count; i++) {
        const CornuWeight *weight = layer->weights[i];
        CornuSummaryTotal *to = cornu__layer_trains(layer, weight) ? &summary->trainable
                                                                   : &summary->non_trainable;
        to->count += cornu_type_count(weight->type);
        to->bytes += (int64_t)cornu_type_bytes(weight->type);
    }
    return row;
}

/* Keras makes the optimizer's variables at the first step, and only then counts them. */
static bool has_trained(const CornuModel *model)
{
    double iteration = 0.0;
    return cornu_model_optimizer_variable_count(model) > 0 &&
           cornu_variable_get(cornu_optimizer_iteration(cornu_model_optimizer(model)),
                              &iteration) == CORNU_OK &&
           iteration > 0.0;
}

static CornuStatus gather(const CornuModel *model, CornuSummary *summary)
{
    *summary = (CornuSummary){ .name = cornu_model_name(model),
                               .row_count = cornu_model_layer_count(model) };
    summary->rows = cornu__allocate((size_t)summary->row_count, sizeof *summary->rows);
    if (!summary->rows) return CORNU_ERR_MEMORY;
    for (int i = 0; i < summary->row_count; i++)
        summary->rows[i] = describe(model, cornu_model_layer(model, i), summary);
    summary->branching = branches(model);
    for (int i = 0; i < summary->row_count && summary->branching; i++) {
        summary->rows[i].connected = connections(model, cornu_model_layer(model, i));
        if (!summary->rows[i].connected)
            return cornu__fail(CORNU_ERR_MEMORY, "summary: no memory for its text");
    }

    summary->optimizer_built = has_trained(model);
    const int variables =
        summary->optimizer_built ? cornu_model_optimizer_variable_count(model) : 0;
    for (int i = 0; i < variables; i++) {
        CornuType type = cornu_variable_type(cornu_model_optimizer_variable(model, i));
        summary->optimizer.count += cornu_type_count(type);
        /* Keras counts steps in 32 bits: sizes read as it shows them. */
        summary->optimizer.bytes += cornu_dtype_is_float(type.dtype)
                                        ? (int64_t)cornu_type_bytes(type)
                                        : 4 * cornu_type_count(type);
    }
    return CORNU_OK;
}

/* The text goes to print_fn in one piece, without codes, for a terminal as wide as stdout. */
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
    CornuStatus status = gather(config->model, &summary);
    if (status == CORNU_OK && config->print_fn) {
        status = print_to_function(&summary, config);
    } else if (status == CORNU_OK) {
        FILE *file = config->file ? config->file : stdout;
        status = cornu__summary_print(&summary, config->line_length, config->show_trainable,
                                      cornu_terminal(file), file);
        fflush(file);
    }
    free_rows(&summary);
    return status;
}
