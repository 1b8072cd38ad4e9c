/* Data sets of several others; join.h says what each does. */
#include "join.h"

#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

/* ---- zip ---- */

static CornuStatus zip_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    int64_t             rows = 0;
    for (int i = 0; i < dataset->source_count; i++) {
        CORNU__TRY(cornu__stage_fetch_within(stage->sources[i], at, to, valid));
        if (!*valid) return CORNU_OK;
        if (i > 0 && *valid != rows)
            return cornu__fail(CORNU_ERR_SHAPE, "zip: batch %lld has %lld rows in data set %d, "
                               "expected %lld as in data set 0", (long long)at.index,
                               (long long)*valid, i, (long long)rows);
        rows = *valid;
        to += dataset->sources[i]->components;
    }
    return CORNU_OK;
}

static const CornuDatasetKind zip_kind = { .name = "zip", .fetch = zip_fetch, .by_row = true };

/* The least count: a known one bounds any other, an endless one none. */
static int64_t shortest(CornuDataset *const *sources, int count)
{
    int64_t least = CORNU_NONE;
    for (int i = 0; i < count; i++) {
        const int64_t one = sources[i]->count;
        if (one == CORNU_UNKNOWN) return CORNU_UNKNOWN;
        if (one >= 0 && (least < 0 || one < least)) least = one;
    }
    return least;
}

static CornuStatus join_components(CornuDataset *zip)
{
    zip->components = 0;
    for (int i = 0; i < zip->source_count; i++) {
        const CornuDataset *source = zip->sources[i];
        if (source->batch_size != zip->batch_size)
            return cornu__fail(CORNU_ERR_SHAPE, "zip: data set %d has batches of %lld rows, "
                               "expected %lld as data set 0 (0: none)", i,
                               (long long)source->batch_size, (long long)zip->batch_size);
        if (source->components > CORNU_MAX_COMPONENTS - zip->components)
            return cornu__fail(CORNU_ERR_ARGUMENT, "zip: the elements have more than %d "
                               "components", CORNU_MAX_COMPONENTS);
        const size_t n = (size_t)source->components;
        memcpy(zip->type + zip->components, source->type, n * sizeof *source->type);
        memcpy(zip->bytes + zip->components, source->bytes, n * sizeof *source->bytes);
        zip->components += source->components;
    }
    return CORNU_OK;
}

/* NULL, after freeing them, unless there is a list of one or more. */
static CornuDataset *join(CornuDataset *const *sources, int count, const CornuDatasetKind *kind,
                          const char *name)
{
    if (sources && count >= 1) return cornu__dataset_join(sources, count, kind, name);
    return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: %d data sets, expected 1 or more", name,
                            sources ? count : 0);
}

CornuDataset *cornu_dataset_zip(CornuDataset *const *sources, int count)
{
    CornuDataset *zip = join(sources, count, &zip_kind, "zip");
    if (!zip) return NULL;
    zip->count = shortest(sources, count);
    return join_components(zip) ? cornu__dataset_abandon(zip) : zip;
}

/* ---- Elements of one source or another ---- */

typedef struct Mix Mix;

/* Finds the source of the next element, and how many follow from it if it has them; -1 after the
 * last one. */
typedef CornuStatus ChooseFunction(CornuStage *stage, Mix *mix, int64_t epoch, int64_t *run);

typedef struct {
    ChooseFunction *choose;
    int             count;      /* of the sources that elements come from */
    uint64_t        seed;
    bool            stops;      /* when one that has ended is chosen */
    double          weights[];  /* of each; choices have none */
} Settings;

struct Mix {
    int64_t choice;        /* the source of the next elements, ...             */
    int64_t run;           /* so many at most; 0: not chosen yet               */
    int64_t read;          /* numbers drawn, or choices read                   */
    struct { int64_t used; bool ended; } from[];   /* each source              */
};

static CornuStatus choose_in_order(CornuStage *stage, Mix *mix, int64_t epoch, int64_t *run)
{
    const Settings *settings = stage->dataset->own;
    (void)epoch;
    mix->choice = 0;
    while (mix->choice < settings->count && mix->from[mix->choice].ended) mix->choice++;
    if (mix->choice == settings->count) mix->choice = -1;
    *run = INT64_MAX;
    return CORNU_OK;
}

/* See cornu__sample_draw. */
static const uint32_t sample_operation = UINT32_C(0xFFFF0006);

static CornuStatus choose_at_random(CornuStage *stage, Mix *mix, int64_t epoch, int64_t *run)
{
    const Settings *settings = stage->dataset->own;
    double          sum = 0.0;
    int64_t         last = -1;
    for (int i = 0; i < settings->count; i++)
        if (settings->stops || !mix->from[i].ended) sum += settings->weights[i];
    const CornuSample number = { epoch, mix->read++ };
    double rest = sum * ldexp(cornu__sample_draw(settings->seed, sample_operation, number), -32);
    for (int i = 0; i < settings->count && rest >= 0.0; i++) {
        if (settings->weights[i] == 0.0 || (!settings->stops && mix->from[i].ended)) continue;
        rest -= settings->weights[i];
        last = i;   /* the last one also if rounding leaves a rest */
    }
    mix->choice = last;
    *run = 1;
    return CORNU_OK;
}

static CornuStatus choose_by_number(CornuStage *stage, Mix *mix, int64_t epoch, int64_t *run)
{
    const Settings   *settings = stage->dataset->own;
    const CornuSample at = { epoch, mix->read };
    int64_t           number = 0, valid, ended = 0;
    mix->choice = -1;
    *run = 1;
    for (int i = 0; i < settings->count; i++) ended += mix->from[i].ended;
    if (ended == settings->count) return CORNU_OK;
    CORNU__TRY(cornu__stage_fetch_within(stage->sources[settings->count], at, (void *[]){ &number },
                                         &valid));
    if (!valid) return CORNU_OK;
    if (number < 0 || number >= settings->count)
        return cornu__fail(CORNU_ERR_VALUE, "choose_from_datasets: choice %lld is data set %lld, "
                           "expected 0 to %d", (long long)at.index, (long long)number,
                           settings->count - 1);
    mix->read++;
    mix->choice = number;
    return CORNU_OK;
}

/* Chooses the source of the next element, unless that is done, until it is one that has not ended
 * as far as is known; -1 if the epoch ends. */
static CornuStatus settle_choice(CornuStage *stage, int64_t epoch)
{
    const Settings *settings = stage->dataset->own;
    Mix            *mix = stage->own;
    for (;;) {
        if (!mix->run) CORNU__TRY(settings->choose(stage, mix, epoch, &mix->run));
        if (mix->choice < 0) return CORNU_OK;
        const int64_t count = stage->dataset->sources[mix->choice]->count;
        if (count >= 0 && mix->from[mix->choice].used >= count) mix->from[mix->choice].ended = true;
        if (!mix->from[mix->choice].ended) return CORNU_OK;
        if (settings->stops) mix->choice = -1;
        else mix->run = 0;
    }
}

static void use_choice(Mix *mix, int64_t count)
{
    mix->from[mix->choice].used += count;
    mix->run -= mix->run == INT64_MAX ? 0 : count;
}

static CornuStatus mix_begin(CornuStage *stage, int64_t epoch)
{
    const Settings *settings = stage->dataset->own;
    (void)epoch;
    memset(stage->own, 0, sizeof(Mix) + (size_t)settings->count * sizeof *((Mix *)0)->from);
    return CORNU_OK;
}

static CornuStatus mix_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    Mix *mix = stage->own;
    for (;;) {
        *valid = 0;
        CORNU__TRY(settle_choice(stage, at.epoch));
        if (mix->choice < 0) return CORNU_OK;
        const CornuSample next = { at.epoch, mix->from[mix->choice].used };
        CORNU__TRY(cornu__stage_pass(stage, stage->sources[mix->choice], next, to, valid));
        if (*valid) {
            use_choice(mix, 1);
            return CORNU_OK;
        }
        mix->from[mix->choice].ended = true;
    }
}

static CornuStatus mix_pass(CornuStage *stage, CornuSample at, int64_t *count)
{
    Mix          *mix = stage->own;
    const int64_t most = *count;
    for (*count = 0; *count < most;) {
        CORNU__TRY(settle_choice(stage, at.epoch));
        if (mix->choice < 0) return CORNU_OK;
        const int64_t all = stage->dataset->sources[mix->choice]->count;
        int64_t       step = most - *count;
        if (all == CORNU_UNKNOWN) return CORNU_OK;
        if (all >= 0 && step > all - mix->from[mix->choice].used)
            step = all - mix->from[mix->choice].used;
        if (step > mix->run) step = mix->run;
        use_choice(mix, step);
        *count += step;
    }
    return CORNU_OK;
}

static CornuStatus mix_open(CornuStage *stage)
{
    const Settings *settings = stage->dataset->own;
    stage->own = cornu__allocate(1, sizeof(Mix) +
                                    (size_t)settings->count * sizeof *((Mix *)0)->from);
    return stage->own ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void mix_close(CornuStage *stage) { cornu__release(stage->own); }

static void mix_free(CornuDataset *dataset) { cornu__release(dataset->own); }

static const CornuDatasetKind mix_kind = { .name = "choice", .fetch = cornu__fetch_in_turn,
                                           .begin = mix_begin, .next = mix_next, .pass = mix_pass,
                                           .open = mix_open, .close = mix_close, .free = mix_free,
                                           .by_row = true, .of_trims = true };

static CornuStatus check_alike(const CornuDataset *dataset, int count, const char *name)
{
    const CornuDataset *first = dataset->sources[0];
    CornuText           a, b;
    for (int i = 1; i < count; i++) {
        const CornuDataset *other = dataset->sources[i];
        if (other->components != first->components || other->batch_size != first->batch_size)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: data set %d has %d components and batches of "
                               "%lld rows, expected %d and %lld as data set 0 (0: none)", name, i,
                               other->components, (long long)other->batch_size, first->components,
                               (long long)first->batch_size);
        for (int c = 0; c < first->components; c++)
            if (!cornu_type_equal(other->type[c], first->type[c]))
                return cornu__fail(CORNU_ERR_SHAPE, "%s: component %d of data set %d is %s, "
                                   "expected %s as in data set 0", name, c, i,
                                   cornu_type_print(&a, other->type[c]),
                                   cornu_type_print(&b, first->type[c]));
        if (memcmp(other->open, first->open, sizeof first->open))
            return cornu__fail(CORNU_ERR_SHAPE, "%s: other components of data set %d are open "
                               "than of data set 0", name, i);
    }
    return CORNU_OK;
}

/* Of elements of the first `count` sources, with memory for weights. */
static CornuDataset *mixed(CornuDataset *const *sources, int source_count, int count,
                           ChooseFunction *choose, const char *name)
{
    CornuDataset *dataset = join(sources, source_count, &mix_kind, name);
    if (!dataset) return NULL;
    Settings *settings = cornu__allocate(1, sizeof *settings +
                                            (size_t)count * sizeof *settings->weights);
    dataset->own = settings;
    if (!settings || check_alike(dataset, count, name)) return cornu__dataset_abandon(dataset);
    settings->choose = choose;
    settings->count = count;
    return dataset;
}

/* The elements of all of them together: those of weight 0 have none. */
static CornuStatus sum_counts(CornuDataset *dataset, const double *weights, const char *name)
{
    bool    unknown = false, endless = false;
    int64_t sum = 0;
    for (int i = 0; i < dataset->source_count; i++) {
        const int64_t one = weights && weights[i] == 0.0 ? 0 : dataset->sources[i]->count;
        unknown |= one == CORNU_UNKNOWN;
        endless |= one == CORNU_NONE;
        if (one > INT64_MAX - sum)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the elements exceed the range of an index",
                               name);
        sum += one > 0 ? one : 0;
    }
    dataset->count = endless ? CORNU_NONE : unknown ? CORNU_UNKNOWN : sum;
    return CORNU_OK;
}

CornuDataset *cornu_dataset_concatenate(CornuDataset *source, CornuDataset *other)
{
    CornuDataset *dataset = mixed((CornuDataset *[]){ source, other }, 2, 2, choose_in_order,
                                  "concatenate");
    if (!dataset) return NULL;
    return sum_counts(dataset, NULL, "concatenate") ? cornu__dataset_abandon(dataset) : dataset;
}

static CornuStatus set_weights(Settings *settings, const double *weights)
{
    double sum = 0.0;
    for (int i = 0; i < settings->count; i++) {
        const double weight = weights ? weights[i] : 1.0;
        if (!(weight >= 0.0) || isinf(weight))
            return cornu__fail(CORNU_ERR_VALUE, "sample_from_datasets: weight %d is %g, expected 0 "
                               "or more", i, weight);
        settings->weights[i] = weight;
        sum += weight;
    }
    if (sum > 0.0 && !isinf(sum)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "sample_from_datasets: the sum of the weights is %g, "
                       "expected more than 0", sum);
}

CornuDataset *cornu_dataset_sample_from_datasets_from(const CornuSampleFromDatasetsConfig *config)
{
    const char *const name = "sample_from_datasets";
    CornuDataset     *dataset = mixed(config->sources, config->count, config->count,
                                      choose_at_random, name);
    if (!dataset) return NULL;
    Settings *settings = dataset->own;
    settings->seed = config->seed;
    settings->stops = config->stop_on_empty_dataset;
    if (set_weights(settings, config->weights) ||
        sum_counts(dataset, settings->weights, name))
        return cornu__dataset_abandon(dataset);
    if (!settings->stops || dataset->count == 0) return dataset;
    for (int i = 0; i < settings->count; i++)
        if (settings->weights[i] > 0.0 && dataset->sources[i]->count != CORNU_NONE)
            dataset->count = CORNU_UNKNOWN;
    return dataset;
}

CornuDataset *cornu_dataset_choose_from_datasets_from(const CornuChooseFromDatasetsConfig *config)
{
    const char *const name = "choose_from_datasets";
    const int         count = config->sources && config->count > 0 ? config->count : 0;
    CornuDataset    **all = cornu__allocate((size_t)count + 1, sizeof *all);
    if (!all) {
        for (int i = 0; i < count; i++) cornu_dataset_free(config->sources[i]);
        cornu_dataset_free(config->choices);
        return cornu__null();
    }
    if (count) memcpy(all, config->sources, (size_t)count * sizeof *all);
    all[count] = config->choices;
    CornuDataset *dataset = mixed(all, count + 1, count ? count : 1, choose_by_number, name);
    cornu__release(all);
    if (!dataset) return NULL;
    const CornuDataset *choices = config->choices;
    CornuText           text;
    bool                endless = choices->count == CORNU_NONE;
    ((Settings *)dataset->own)->stops = !config->ignore_empty_datasets;
    if (!count)
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: no data sets, expected 1 or more", name);
    else if (choices->components != 1 || choices->batch_size ||
             !cornu_type_equal(choices->type[0], cornu_scalar(CORNU_I64)))
        cornu__fail(CORNU_ERR_SHAPE, "%s: the choices have %d component%s, the first %s, expected "
                    "one i64 scalar, not batched", name, choices->components,
                    choices->components == 1 ? "" : "s", cornu_type_print(&text, choices->type[0]));
    else {
        for (int i = 0; i < count; i++) endless &= dataset->sources[i]->count == CORNU_NONE;
        dataset->count = endless ? CORNU_NONE : CORNU_UNKNOWN;
        return dataset;
    }
    return cornu__dataset_abandon(dataset);
}
