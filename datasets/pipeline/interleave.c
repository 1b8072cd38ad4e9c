/* Elements of data sets that a function makes; interleave.h says in which order. */
#include "interleave.h"

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

enum { MOST_AT_A_TIME = 65536 };

typedef struct {
    const char          *name;
    CornuExpandFunction *function;
    void                *context;
    int64_t              cycle, block;
} Settings;

/* A data set that is being read; NULL: none. */
typedef struct {
    CornuDataset *dataset;
    CornuStage   *stages;
    int           stage_count;
    int64_t       used;      /* elements of it */
} Slot;

typedef struct {
    void   *memory, *element[CORNU_MAX_COMPONENTS];   /* of the source */
    int64_t read;            /* of the source */
    bool    ended;           /* the source */
    int64_t at;              /* the slot of the next element, */
    int64_t given;           /* which has given so many of its block */
    int64_t open;            /* slots with a data set */
    Slot    slots[];
} Cycle;

static void empty_slot(Cycle *cycle, Slot *slot)
{
    if (!slot->dataset) return;
    cornu__stages_close(slot->stages, slot->stage_count);
    cornu_dataset_free(slot->dataset);
    *slot = (Slot){ .dataset = NULL };
    cycle->open--;
}

static CornuStatus check_made(const CornuDataset *made, const CornuDataset *dataset,
                              const char *name)
{
    CornuText a, b;
    if (made->components != dataset->components || made->batch_size != dataset->batch_size ||
        cornu__dataset_varies(made) || cornu__dataset_is_open(made))
        return cornu__fail(CORNU_ERR_SHAPE, "%s: the data set has %d components and batches of "
                           "%lld rows, expected %d and %lld (0: none), and of one extent", name,
                           made->components,
                           (long long)made->batch_size, dataset->components,
                           (long long)dataset->batch_size);
    for (int c = 0; c < made->components; c++)
        if (!cornu_type_equal(made->type[c], dataset->type[c]))
            return cornu__fail(CORNU_ERR_SHAPE, "%s: component %d is %s, expected %s as in "
                               ".types", name, c, cornu_type_print(&a, made->type[c]),
                               cornu_type_print(&b, dataset->type[c]));
    return CORNU_OK;
}

/* The data set of the next element of the source, if it has one. */
static CornuStatus fill_slot(CornuStage *stage, Cycle *cycle, Slot *slot, int64_t epoch)
{
    const Settings   *settings = stage->dataset->own;
    const CornuSample at = { epoch, cycle->read };
    CornuArray        in[CORNU_MAX_COMPONENTS];
    int64_t           valid;
    CORNU__TRY(cornu__stage_fetch_within(stage->source, at, cycle->element, &valid));
    cycle->ended = !valid;
    if (!valid) return CORNU_OK;
    cycle->read++;
    cornu__stage_arrays(stage->source, cycle->element, in);
    slot->dataset = settings->function(settings->context, at, in);
    if (!slot->dataset && cornu_error_pending())
        return cornu__fail_sample(cornu_error_status(), settings->name, at);
    if (!slot->dataset)
        return cornu__fail(CORNU_ERR_DATA, "%s: the function made no data set of element %lld of "
                           "epoch %lld", settings->name, (long long)at.index,
                           (long long)at.epoch);
    cycle->open++;
    CORNU__TRY(cornu__fail_sample(check_made(slot->dataset, stage->dataset, settings->name),
                                   settings->name, at));
    slot->stages = cornu__stages_open(slot->dataset, stage->share, &slot->stage_count);
    return slot->stages ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void next_slot(const Settings *settings, Cycle *cycle)
{
    cycle->at = (cycle->at + 1) % settings->cycle;
    cycle->given = 0;
}

/* The slot of the next element as far as counts tell; NULL at the end. */
static CornuStatus find_slot(CornuStage *stage, int64_t epoch, Slot **found)
{
    const Settings *settings = stage->dataset->own;
    Cycle          *cycle = stage->own;
    *found = NULL;
    while (!cycle->ended || cycle->open > 0) {
        Slot *slot = &cycle->slots[cycle->at];
        if (!slot->dataset && !cycle->ended) CORNU__TRY(fill_slot(stage, cycle, slot, epoch));
        if (slot->dataset && slot->used != slot->dataset->count) {
            *found = slot;
            return CORNU_OK;
        }
        empty_slot(cycle, slot);
        next_slot(settings, cycle);
    }
    return CORNU_OK;
}

static void use_slot(const Settings *settings, Cycle *cycle, Slot *slot, int64_t count)
{
    slot->used += count;
    cycle->given += count;
    if (cycle->given == settings->block) next_slot(settings, cycle);
}

static CornuStatus cycle_begin(CornuStage *stage, int64_t epoch)
{
    const Settings *settings = stage->dataset->own;
    Cycle          *cycle = stage->own;
    (void)epoch;
    for (int64_t i = 0; i < settings->cycle; i++) empty_slot(cycle, &cycle->slots[i]);
    cycle->read = cycle->at = cycle->given = 0;
    cycle->ended = false;
    return CORNU_OK;
}

static CornuStatus cycle_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const Settings *settings = stage->dataset->own;
    Cycle          *cycle = stage->own;
    for (;;) {
        Slot *slot;
        *valid = 0;
        CORNU__TRY(find_slot(stage, at.epoch, &slot));
        if (!slot) return CORNU_OK;
        const CornuSample next = { at.epoch, slot->used };
        CORNU__TRY(cornu__stage_fetch(&slot->stages[slot->stage_count - 1], next, to, valid));
        if (*valid) {
            use_slot(settings, cycle, slot, 1);
            return CORNU_OK;
        }
        empty_slot(cycle, slot);
        next_slot(settings, cycle);
    }
}

static CornuStatus cycle_pass(CornuStage *stage, CornuSample at, int64_t *count)
{
    const Settings *settings = stage->dataset->own;
    Cycle          *cycle = stage->own;
    const int64_t   most = *count;
    for (*count = 0; *count < most;) {
        Slot *slot;
        CORNU__TRY(find_slot(stage, at.epoch, &slot));
        if (!slot || slot->dataset->count == CORNU_UNKNOWN) return CORNU_OK;
        int64_t step = most - *count;
        if (slot->dataset->count >= 0 && step > slot->dataset->count - slot->used)
            step = slot->dataset->count - slot->used;
        if (step > settings->block - cycle->given) step = settings->block - cycle->given;
        use_slot(settings, cycle, slot, step);
        *count += step;
    }
    return CORNU_OK;
}

static CornuStatus cycle_open(CornuStage *stage)
{
    const Settings *settings = stage->dataset->own;
    Cycle          *cycle = cornu__allocate(1, sizeof *cycle +
                                               (size_t)settings->cycle * sizeof *cycle->slots);
    stage->own = cycle;
    if (!cycle) return CORNU_ERR_MEMORY;
    cycle->memory = cornu__element_allocate(stage->dataset->source, cycle->element);
    return cycle->memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void cycle_close(CornuStage *stage)
{
    const Settings *settings = stage->dataset->own;
    Cycle          *cycle = stage->own;
    if (!cycle) return;
    for (int64_t i = 0; i < settings->cycle; i++) empty_slot(cycle, &cycle->slots[i]);
    cornu__release(cycle->memory);
    cornu__release(cycle);
}

static void cycle_free(CornuDataset *dataset) { cornu__release(dataset->own); }

static const CornuDatasetKind cycle_kind = { .name = "interleave", .fetch = cornu__fetch_in_turn,
                                             .begin = cycle_begin, .next = cycle_next,
                                             .pass = cycle_pass, .open = cycle_open,
                                             .close = cycle_close, .free = cycle_free,
                                             .origin = cornu__origin_unknown };

static CornuStatus check_settings(const Settings *settings, int64_t batch_size)
{
    if (!settings->function)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the function is NULL", settings->name);
    if (settings->cycle < 1 || settings->cycle > MOST_AT_A_TIME)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .cycle_length is %lld, expected 1 to %d",
                           settings->name, (long long)settings->cycle, MOST_AT_A_TIME);
    if (settings->block < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .block_length is %lld, expected 1 or more",
                           settings->name, (long long)settings->block);
    if (batch_size < 0 || batch_size > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .batch_size is %lld, expected 0 to %d",
                           settings->name, (long long)batch_size, INT32_MAX);
    return CORNU_OK;
}

static CornuDataset *interleave(const CornuInterleaveConfig *config, const char *name)
{
    CornuDataset *dataset = cornu__dataset_derive(config->source, &cycle_kind, name);
    if (!dataset) return NULL;
    Settings *settings = dataset->own = cornu__allocate(1, sizeof *settings);
    if (!settings) return cornu__dataset_abandon(dataset);
    *settings = (Settings){ name, config->function, config->context,
                            config->cycle_length ? config->cycle_length : 1,
                            config->block_length ? config->block_length : 1 };
    CornuType types[CORNU_MAX_COMPONENTS];
    for (int c = 0; c < dataset->components; c++)
        types[c] = cornu_dataset_type(dataset->source, c);
    dataset->batch_size = config->batch_size;
    if (dataset->count != CORNU_NONE) dataset->count = CORNU_UNKNOWN;
    const bool given = config->types || config->count;
    if (check_settings(settings, config->batch_size) ||
        cornu__fail_prefix(cornu__dataset_set_types(dataset, given ? config->types : types,
                                                    given ? config->count : dataset->components),
                           name))
        return cornu__dataset_abandon(dataset);
    return dataset;
}

CornuDataset *cornu_dataset_interleave_from(const CornuInterleaveConfig *config)
{
    return interleave(config, "interleave");
}

CornuDataset *cornu_dataset_flat_map(CornuDataset *source, CornuExpandFunction *function,
                                     void *context, const CornuType *types, int count)
{
    return interleave(&(CornuInterleaveConfig){ .source = source, .function = function,
                                                .context = context, .types = types,
                                                .count = count }, "flat_map");
}
