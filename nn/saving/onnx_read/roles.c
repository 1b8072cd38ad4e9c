/* Which operands of a node are weights of its layer. */
#include "load_internal.h"

#include <math.h>
#include <string.h>

/* Operands by bits, those that are trained and those that are not; `single`: also if they have one
 * element only. */
static const struct { const char *op; int trained, kept; bool single; } operands[] = {
    { "Add", 3, 0, true }, { "BatchNormalization", 6, 24, true }, { "BiasGelu", 2, 0, true },
    { "Concat", -1, 0, false },
    { "Conv", 6, 0, true }, { "ConvTranspose", 6, 0, true }, { "Div", 3, 0, false },
    { "Einsum", -1, 0, true }, { "EmbedLayerNormalization", 4 + 8 + 16 + 32 + 64, 0, true },
    { "Expand", 1, 0, false }, { "FastGelu", 2, 0, true }, { "FusedConv", 6, 0, true },
    { "FusedGemm", 7, 0, true }, { "FusedMatMul", 3, 0, true }, { "GRU", 14, 0, true },
    { "Gather", 1, 0, false }, { "Gemm", 7, 0, true }, { "GroupNormalization", 6, 0, true },
    { "InstanceNormalization", 6, 0, true }, { "LSTM", 14 + 128, 0, true },
    { "LayerNormalization", 6, 0, true }, { "MatMul", 3, 0, true }, { "Mul", 3, 0, false },
    { "PRelu", 2, 0, true }, { "RMSNormalization", 2, 0, true }, { "RNN", 14, 0, true },
    { "SimplifiedLayerNormalization", 2, 0, true },
    { "SkipLayerNormalization", 4 + 8 + 16, 0, true },
    { "SkipSimplifiedLayerNormalization", 4 + 8, 0, true }, { "Sub", 3, 0, true },
    { "Tile", 1, 0, false }, { "Where", 6, 0, false },
};

bool cornu__read_trains(const CornuReadNode *node, int operand)
{
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        if (!strcmp(operands[i].op, node->op))
            return operand < 31 && operands[i].trained >> operand & 1;
    return false;
}

/* Masks have numbers that no weight has. */
static bool is_mask(CornuArray array)
{
    const int64_t count = cornu_type_count(array.type);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(cornu_array_get(array, i)) < 1e30)) return true;
    return false;
}

CornuReadRole cornu__read_role(const CornuReadNode *node, int operand, const CornuReadValue *value)
{
    const CornuArray array = value->runs[0].known;
    if (!value->known || !value->same || !value->parameter || array.type.shape.rank < 1 ||
        !cornu_dtype_is_float(array.type.dtype) || (operand > 30 && operand < node->own_count))
        return CORNU_READ_VALUE;
    if (node->tied) return is_mask(array) ? CORNU_READ_STATE : CORNU_READ_WEIGHT;
    if (operand >= node->own_count)   /* of a subgraph */
        return cornu_type_count(array.type) > 1 ? CORNU_READ_WEIGHT : CORNU_READ_VALUE;
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++) {
        if (strcmp(operands[i].op, node->op)) continue;
        if ((!operands[i].single || value->literal) && cornu_type_count(array.type) < 2)
            return CORNU_READ_VALUE;   /* such as an epsilon */
        if (operands[i].kept >> operand & 1) return CORNU_READ_STATE;
        if (!(operands[i].trained >> operand & 1)) return CORNU_READ_VALUE;
        if (operand == 1 && !strncmp(node->op, "Conv", 4)) return CORNU_READ_FILTER;
        return is_mask(array) ? CORNU_READ_STATE : CORNU_READ_WEIGHT;
    }
    return CORNU_READ_VALUE;
}

bool cornu__read_passes(const CornuReadLoad *load, const CornuReadNode *node)
{
    const CornuReadGraph *graph = &load->model.graph;
    for (int i = 0; i < graph->output_count && node->out_count > 0; i++)
        if (!strcmp(graph->outputs[i].name, node->out[0])) return false;
    if (!strcmp(node->op, "Identity")) return true;
    return !strcmp(node->op, "Dropout") && (node->out_count < 2 || !*node->out[1]);
}
