/* Models that begin at what layers return: the calls after that are made again, of inputs in its
 * place. Source: keras/src/models/functional.py, clone_graph_nodes. */
#include "../../device/memory_internal.h"
#include "model_internal.h"

/* A node whose operands are being visited; `next` is the index of the next one. */
typedef struct {
    CornuNode *node;
    int        next;
} Visit;

typedef struct {
    CornuLookup   places;   /* of symbols that others take the place of, in `others` */
    CornuSymbol **others;
    Visit        *visits;   /* the stack of the walk */
    int           count, space, visit_count, visit_space, stamp;
} Cut;

static CornuSymbol *other_of(const Cut *cut, CornuSymbol *symbol)
{
    const int at = cornu__lookup_find(&cut->places, symbol);
    return at < 0 ? symbol : cut->others[at];
}

static CornuStatus replace(Cut *cut, const CornuSymbol *symbol, CornuSymbol *other)
{
    if (!other) return cornu_error_status();
    CORNU__TRY(cornu__reserve(&cut->others, &cut->space, cut->count, 1, sizeof *cut->others));
    cut->others[cut->count] = other;
    return cornu__lookup_set(&cut->places, symbol, cut->count++);
}

/* An input of the symbol's type. */
static CornuSymbol *input_like(const CornuSymbol *symbol)
{
    const CornuType  type = symbol->type;
    CornuInputConfig config = { .scalar = type.shape.rank == 1 };
    if (!cornu_dtype_is_float(type.dtype)) config.dtype = type.dtype;
    for (int i = 1; i < type.shape.rank; i++) config.shape[i - 1] = type.shape.extent[i];
    return cornu_input_from(&config);
}

/* Makes the node's call again if it depends on what is replaced. */
static CornuStatus make_again(Cut *cut, const CornuNode *node)
{
    CornuSymbol     *in[CORNU_MAX_LAYER_TENSORS];
    CornuCallOptions options = { .training = node->training, .reverse = node->reverse };
    bool             depends = false;
    for (int i = 0; i < cornu__node_symbols(node); i++) {
        CornuSymbol *symbol = other_of(cut, node->in[i]);
        depends |= symbol != node->in[i];
        if (i < node->in_count) in[i] = symbol;
        else options.masks[node->mask_of[i - node->in_count]] = symbol;
    }
    if (!depends) return CORNU_OK;
    CornuSymbol *made = cornu__call_with(node->layer, in, node->in_count, &options);
    if (!made) return cornu_error_status();
    for (int i = 0; i < node->out_count; i++)
        CORNU__TRY(replace(cut, &node->out[i], &made->node->out[i]));
    return CORNU_OK;
}

static CornuStatus enter(Cut *cut, CornuSymbol *symbol)
{
    if (symbol->node->stamp == cut->stamp || other_of(cut, symbol) != symbol) return CORNU_OK;
    symbol->node->stamp = cut->stamp;
    CORNU__TRY(cornu__reserve(&cut->visits, &cut->visit_space, cut->visit_count, 1,
                              sizeof *cut->visits));
    cut->visits[cut->visit_count++] = (Visit){ .node = symbol->node };
    return CORNU_OK;
}

/* The calls that an output depends on, each after its operands'. */
static CornuStatus visit(Cut *cut, CornuSymbol *output)
{
    CORNU__TRY(enter(cut, output));
    while (cut->visit_count > 0) {
        Visit *at = &cut->visits[cut->visit_count - 1];
        if (at->next < cornu__node_symbols(at->node)) {
            CORNU__TRY(enter(cut, at->node->in[at->next++]));
            continue;
        }
        cut->visit_count--;
        CORNU__TRY(make_again(cut, at->node));
    }
    return CORNU_OK;
}

static CornuStatus cut_all(Cut *cut, CornuModelConfig *config)
{
    cut->stamp = cornu__next_stamp();
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && config->inputs[i]; i++) {
        if (cornu__node_is_input(config->inputs[i]->node) ||
            config->inputs[i]->type.shape.extent[0] != CORNU_NONE) continue;
        CORNU__TRY(replace(cut, config->inputs[i], input_like(config->inputs[i])));
        config->inputs[i] = other_of(cut, config->inputs[i]);
    }
    if (!cut->count) return CORNU_OK;
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && config->outputs[i]; i++) {
        CORNU__TRY(visit(cut, config->outputs[i]));
        config->outputs[i] = other_of(cut, config->outputs[i]);
    }
    return CORNU_OK;
}

CornuStatus cornu__cut_inputs(CornuModelConfig *config)
{
    Cut               cut = { .count = 0 };
    const CornuStatus status = cut_all(&cut, config);
    cornu__lookup_clear(&cut.places);
    cornu__release(cut.others);
    cornu__release(cut.visits);
    return status;
}
