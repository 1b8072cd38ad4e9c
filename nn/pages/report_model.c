/* The model of a report: its summary and its graph. */
#include "report_internal.h"

#include "../../device/memory_internal.h"
#include "../formats/json_internal.h"
#include "../model/model_internal.h"
#include "../model/summary_internal.h"

/* The layers, as cornu_summary has them. */
static json_t *describe_layers(const CornuSummary *summary)
{
    json_t *rows = json_array();
    for (int i = 0; i < summary->row_count; i++) {
        const CornuSummaryRow *row = &summary->rows[i];
        CornuText              shape = { 0 };
        if (row->built) cornu_shape_print(&shape, row->output);
        rows = cornu__json_append(
            rows, json_pack("{s:i, s:s, s:s, s:s, s:I, s:b, s:s}", "depth", row->depth, "name",
                            row->name, "class", row->class_name, "output", shape.text,
                            "parameters", (json_int_t)row->parameters, "frozen", (int)row->frozen,
                            "from", row->connected ? row->connected : ""));
    }
    return rows;
}

/* The row of a layer of depth 0, -1 without one: rows follow base.inner, nested ones between. */
static int row_of(const CornuModel *model, const CornuSummary *summary, const CornuLayer *layer)
{
    int row = 0;
    for (int i = 0; i < model->base.inner_count; i++, row++) {
        while (row < summary->row_count && summary->rows[row].depth > 0) row++;
        if (model->base.inner[i] == layer) return row;
    }
    return -1;
}

static bool has_edge(const json_t *edges, int from, int to)
{
    size_t  i;
    json_t *edge;
    json_array_foreach(edges, i, edge)
        if (json_integer_value(json_array_get(edge, 0)) == from &&
            json_integer_value(json_array_get(edge, 1)) == to)
            return true;
    return false;
}

/* What each layer's calls read; a layer that is called twice is one node. */
static json_t *describe_edges(const CornuModel *model, const CornuSummary *summary)
{
    json_t *edges = json_array();
    for (int i = 0; i < model->call_count; i++) {
        const CornuNode *node = model->calls[i].node;
        const int        to = row_of(model, summary, node->layer);
        for (int k = 0; k < cornu__node_symbols(node) && to >= 0; k++) {
            const int from = row_of(model, summary, node->in[k]->node->layer);
            if (from >= 0 && edges && !has_edge(edges, from, to))
                edges = cornu__json_append(edges, json_pack("[i, i]", from, to));
        }
    }
    return edges;
}

json_t *cornu__report_model(const CornuModel *model)
{
    CornuSummary summary;
    json_t      *described = NULL;
    if (!cornu__summary_gather(model, true, &summary))
        described = json_pack("{s:o, s:o, s:b, s:I, s:I}", "layers", describe_layers(&summary),
                              "edges", describe_edges(model, &summary), "branching",
                              (int)summary.branching, "trainable",
                              (json_int_t)summary.trainable.count, "others",
                              (json_int_t)summary.non_trainable.count);
    cornu__summary_release(&summary);
    return described;
}
