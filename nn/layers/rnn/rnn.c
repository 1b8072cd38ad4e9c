/* RNN, which runs any cell over time, and cells one after another as one. */
#include "recurrent_internal.h"

typedef CORNU__LAYER(CornuRnnConfig) Rnn;   /* its cell is the inner layer */

typedef struct {
    CornuLayer                 base;
    CornuStackedRnnCellsConfig config;   /* its cells are the inner layers */
} Stack;

static CornuStatus check_cell(const char *name, const char *argument, const CornuLayer *cell)
{
    if (cornu__is_cell(cell)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s has a %s, expected LSTMCell, GRUCell, "
                       "SimpleRNNCell, StackedRNNCells or a layer whose call takes a step and "
                       "states and returns an output and as many states", name, argument,
                       cell->kind->class_name);
}

/* ---- Cells one after another ---- */

static int states(const CornuLayer *stack)
{
    int count = 0;
    for (int i = 0; i < stack->inner_count; i++)
        count += cornu__cell(stack->inner[i])->states(stack->inner[i]);
    return count;
}

static CornuShape state_shape(const CornuLayer *stack, int i, CornuShape x)
{
    int k = 0;
    for (int own; i >= (own = cornu__cell(stack->inner[k])->states(stack->inner[k])); k++) i -= own;
    return cornu__cell(stack->inner[k])->state_shape(stack->inner[k], i, x);
}

/* Each cell runs over all steps before the next one does, which gives the same: where a step is
 * masked every cell skips it. */
static CornuTensor *run(CornuLayer *stack, const CornuCall *call, CornuTensor *x,
                        CornuTensor *const *first, bool reverse, CornuTensor **last)
{
    for (int i = 0; i < stack->inner_count && x; i++) {
        CornuLayer *cell = stack->inner[i];
        x = cornu__cell(cell)->run(cell, call, x, first, reverse, last);
        first += cornu__cell(cell)->states(cell);
        last += cornu__cell(cell)->states(cell);
    }
    return x;
}

static CornuStatus begin(CornuLayer *stack, const CornuCall *call, int64_t rows,
                         CornuTensor **first)
{
    for (int i = 0; i < stack->inner_count; i++) {
        CornuLayer *cell = stack->inner[i];
        if (cornu__cell(cell)->begin)
            CORNU__TRY(cornu__cell(cell)->begin(cell, call, rows, first));
        first += cornu__cell(cell)->states(cell);
    }
    return CORNU_OK;
}

static const CornuCell stacked = { .states = states, .state_shape = state_shape, .begin = begin,
                                   .run = run };

static CornuStatus build_stack(CornuLayer *stack, CornuShape input)
{
    for (int i = 0; i < stack->inner_count; i++) {
        CORNU__TRY(cornu__build_cell(stack, i, input));
        input = stack->inner[i]->output;
    }
    return CORNU_OK;
}

static CornuLayer *stack_from(const void *config) { return cornu_stacked_rnn_cells_from(config); }

static const CornuField stack_fields[] = {
    { "cells", CORNU_FIELD_LAYERS, offsetof(CornuStackedRnnCellsConfig, cells) },
    { 0 },
};

static const char *const stack_folders[] = { "cells/", NULL };

const CornuLayerClass cornu__stacked_rnn_cells_class = {
    .class_name = "StackedRNNCells", .size = sizeof(Stack), .build = build_stack,
    .call_many = cornu__cell_call, .outputs = cornu__cell_outputs, .mask = cornu__no_mask,
    .family = &stacked, .is_cell = true,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(stack_fields, Stack, stack_from),
                                       .folders = stack_folders, .operands = "states*" },
};

static CornuStatus check_stack(const CornuStackedRnnCellsConfig *config, const char *name)
{
    int states = 0;
    if (!config->cells[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .cells is empty, expected at least one", name);
    for (int i = 0; i < CORNU_MAX_WRAPPED && config->cells[i]; i++) {
        CORNU__TRY(check_cell(name, "cells", config->cells[i]));
        CORNU__TRY(cornu__check_depth(name, config->cells[i]));
        states += cornu__cell(config->cells[i])->states(config->cells[i]);
    }
    if (states <= CORNU_MAX_LAYER_STATES) return CORNU_OK;
    return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: its cells have %d states, expected at most %d",
                       name, states, CORNU_MAX_LAYER_STATES);
}

CornuLayer *cornu_stacked_rnn_cells_from(const CornuStackedRnnCellsConfig *config)
{
    const char *name = config->name ? config->name : "stacked_rnn_cells";
    CornuLayer *layer = NULL;
    if (cornu__refused() || check_stack(config, name)) goto fail;
    layer = cornu_layer_create(&cornu__stacked_rnn_cells_class, config->name, config->dtype);
    if (!layer) goto fail;
    for (int i = 0; i < CORNU_MAX_WRAPPED && config->cells[i]; i++) {
        ((Stack *)layer)->config.cells[i] = config->cells[i];
        cornu__layer_add_inner(layer, config->cells[i], "");
    }
    layer->frozen = config->frozen;
    if (cornu__layer_name_list(layer) == CORNU_OK) return layer;
    cornu_layer_free(layer);
    return cornu__null();
fail:
    for (int i = 0; i < CORNU_MAX_WRAPPED && config->cells[i]; i++)
        cornu__layer_free_unowned(config->cells[i]);
    return cornu__null();
}

/* ---- RNN ---- */

static CornuStatus rnn_build(CornuLayer *layer, CornuShape input)
{
    CornuShape step = input;
    if (input.rank < 3) return cornu__expect_input(input, 3, "(B, T, …), a step of any shape");
    step.extent[0] = CORNU_NONE;
    for (int i = 1; i + 1 < step.rank; i++) step.extent[i] = step.extent[i + 1];
    step.extent[--step.rank] = 0;
    return cornu__build_cell(layer, 0, step);
}

static CornuLayer *rnn_from(const void *config) { return cornu_rnn_from(config); }

static const CornuField fields[] = {
    { "cell", CORNU_FIELD_LAYER, offsetof(CornuRnnConfig, cell) },
    { "activity_regularizer", CORNU_FIELD_REGULARIZER,
      offsetof(CornuRnnConfig, activity_regularizer) },
    CORNU__OVER_TIME_FIELDS(CornuRnnConfig),
    { 0 },
};

static const char *const folders[] = { "cell", NULL };

const CornuLayerClass cornu__rnn_class = {
    .class_name = "RNN", .size = sizeof(Rnn), .build = rnn_build,
    .call_many = cornu__over_time_call, .continues = CORNU__FULL(cornu__over_time_continue, NULL),
    .outputs = cornu__over_time_outputs, .mask = cornu__over_time_mask,
    .keras = &(const CornuKerasClass){ CORNU__SAVED(fields, Rnn, rnn_from), .folders = folders,
                                       .operands = "initial_state*" },
};

CornuLayer *cornu_rnn_from(const CornuRnnConfig *config)
{
    const char *name = config->name ? config->name : "rnn";
    CornuLayer *layer = NULL, *cell = config->cell;
    if (cornu__refused()) goto fail;
    if (!cell) {
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: .cell is required", name);
        goto fail;
    }
    if (check_cell(name, "cell", cell) || cornu__check_depth(name, cell) ||
        cornu__check_activity(name, &config->activity_regularizer))
        goto fail;
    layer = cornu_layer_create(&cornu__rnn_class, config->name, config->dtype);
    if (!layer) goto fail;
    cornu__layer_add_inner(layer, cell, "");
    ((Rnn *)layer)->config = *config;
    ((Rnn *)layer)->config.name = ((Rnn *)layer)->config.dtype = NULL;
    layer->frozen = config->frozen;
    layer->activity_regularizer = config->activity_regularizer;
    return layer;
fail:
    cornu__layer_free_unowned(cell);
    return cornu__null();
}
