#include "pick.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

typedef struct {
    int from[CORNU_MAX_COMPONENTS];   /* of each component that of the source */
} Pick;

/* What the source writes: to the result's components and, those that are not picked, elsewhere. */
typedef struct {
    void *memory, *element[CORNU_MAX_COMPONENTS];
} Rest;

static CornuStatus pick_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    const Pick         *pick = dataset->own;
    const Rest         *rest = stage->own;
    void               *element[CORNU_MAX_COMPONENTS];
    int                 first[CORNU_MAX_COMPONENTS];
    memcpy(element, rest->element, sizeof element);
    for (int c = dataset->components - 1; c >= 0; c--) {
        element[pick->from[c]] = to[c];
        first[pick->from[c]] = c;
    }
    CORNU__TRY(cornu__stage_pass(stage, stage->source, at, element, valid));
    for (int c = 0; c < dataset->components && *valid; c++)
        if (first[pick->from[c]] != c)
            memcpy(to[c], to[first[pick->from[c]]], dataset->bytes[c]);
    return CORNU_OK;
}

static CornuStatus pick_open(CornuStage *stage)
{
    Rest *rest = stage->own = cornu__allocate(1, sizeof *rest);
    if (!rest) return CORNU_ERR_MEMORY;
    rest->memory = cornu__element_allocate(stage->dataset->source, rest->element);
    return rest->memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void pick_close(CornuStage *stage)
{
    Rest *rest = stage->own;
    if (rest) cornu__release(rest->memory);
    cornu__release(rest);
    stage->own = NULL;
}

static void pick_free(CornuDataset *dataset) { cornu__release(dataset->own); }

static const CornuDatasetKind pick_kind = { .name = "pick", .fetch = pick_fetch,
                                            .open = pick_open, .close = pick_close,
                                            .free = pick_free, .by_row = true, .of_trims = true };

static CornuStatus check(const CornuDataset *source, const int *components, int count)
{
    if (!components) return cornu__fail_absent("pick: the components");
    if (count < 1 || count > CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "pick: %d components, expected 1 to %d", count,
                           CORNU_MAX_COMPONENTS);
    for (int c = 0; c < count; c++)
        if (components[c] < 0 || components[c] >= source->components)
            return cornu__fail(CORNU_ERR_ARGUMENT, "pick: component %d, expected 0 to %d",
                               components[c], source->components - 1);
    return CORNU_OK;
}

CornuDataset *cornu_dataset_pick_from(CornuDataset *source, const int *components, int count)
{
    CornuDataset *dataset = cornu__dataset_derive(source, &pick_kind, "pick");
    if (!dataset) return NULL;
    Pick *pick = dataset->own = cornu__allocate(1, sizeof *pick);
    if (!pick || check(source, components, count)) {
        cornu_dataset_free(dataset);
        return cornu__null();
    }
    dataset->components = count;
    for (int c = 0; c < count; c++) {
        pick->from[c] = components[c];
        dataset->type[c] = source->type[components[c]];
        dataset->bytes[c] = source->bytes[components[c]];
        dataset->open[c] = source->open[components[c]];
    }
    return dataset;
}
