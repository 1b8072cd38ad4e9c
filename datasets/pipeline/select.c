/* Some elements of a source; select.h says which. */
#include "select.h"

#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

/* ---- filter and take_while ---- */

typedef struct {
    const char             *name;
    CornuPredicateFunction *function;
    void                   *context;
} Predicate;

enum { MOST_MARKS = 1024 };

/* Where a filter reads on: and, to begin there again, where every `stride`-th element that it has
 * found in this epoch is in the source. When all marks are in use, every other one is dropped. */
typedef struct {
    int64_t read;
    int64_t epoch, marked, stride;
    int64_t marks[MOST_MARKS];
} Filter;

static CornuStatus holds(const CornuStage *stage, CornuSample at, void *const *element, bool *is)
{
    const Predicate *predicate = stage->dataset->own;
    CornuArray       in[CORNU_MAX_COMPONENTS];
    cornu__stage_arrays(stage->source, element, in);
    *is = false;
    return cornu__fail_sample(predicate->function(predicate->context, at, in, is),
                               predicate->name, at);
}

static CornuStatus filter_begin(CornuStage *stage, int64_t epoch)
{
    Filter *filter = stage->own;
    filter->read = 0;
    if (filter->marked && filter->epoch == epoch) return CORNU_OK;
    filter->epoch = epoch;
    filter->marked = 0;
    filter->stride = 1;
    return CORNU_OK;
}

/* Element `index` was found at `place` of the source. */
static void mark(Filter *filter, int64_t index, int64_t place)
{
    if (index != filter->marked * filter->stride) return;
    if (filter->marked == MOST_MARKS) {
        for (int64_t i = 0; i < MOST_MARKS / 2; i++) filter->marks[i] = filter->marks[2 * i];
        filter->marked = MOST_MARKS / 2;
        filter->stride *= 2;
    }
    if (index == filter->marked * filter->stride) filter->marks[filter->marked++] = place;
}

static CornuStatus filter_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    Filter *filter = stage->own;
    for (;;) {
        const CornuSample next = { at.epoch, filter->read };
        bool              is;
        CORNU__TRY(cornu__stage_fetch_within(stage->source, next, to, valid));
        stage->trim = stage->source->trim;
        if (!*valid) return CORNU_OK;
        CORNU__TRY(holds(stage, next, to, &is));
        filter->read++;
        if (!is) continue;
        mark(filter, at.index, next.index);
        return CORNU_OK;
    }
}

/* To the last mark that is not after the element wanted. */
static CornuStatus filter_pass(CornuStage *stage, CornuSample at, int64_t *count)
{
    Filter *filter = stage->own;
    int64_t i = (at.index + *count) / filter->stride;
    *count = 0;
    if (i >= filter->marked) i = filter->marked - 1;
    if (i < 0 || i * filter->stride <= at.index) return CORNU_OK;
    filter->read = filter->marks[i];
    *count = i * filter->stride - at.index;
    return CORNU_OK;
}

static CornuStatus filter_open(CornuStage *stage)
{
    stage->own = cornu__allocate(1, sizeof(Filter));
    return stage->own ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void filter_close(CornuStage *stage) { cornu__release(stage->own); }

static void free_own(CornuDataset *dataset) { cornu__release(dataset->own); }

static const CornuDatasetKind filter_kind = { .name = "filter", .fetch = cornu__fetch_in_turn,
                                              .begin = filter_begin, .next = filter_next,
                                              .pass = filter_pass, .open = filter_open,
                                              .close = filter_close, .free = free_own,
                                              .in_order = true, .of_trims = true,
                                              .origin = cornu__origin_unknown };

static CornuStatus while_begin(CornuStage *stage, int64_t epoch)
{
    (void)stage, (void)epoch;
    return CORNU_OK;
}

static CornuStatus while_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    bool is;
    CORNU__TRY(cornu__stage_fetch_within(stage->source, at, to, valid));
    stage->trim = stage->source->trim;
    if (!*valid) return CORNU_OK;
    CORNU__TRY(holds(stage, at, to, &is));
    if (!is) *valid = 0;
    return CORNU_OK;
}

static const CornuDatasetKind while_kind = { .name = "take_while", .fetch = cornu__fetch_in_turn,
                                             .begin = while_begin, .next = while_next,
                                             .free = free_own, .in_order = true, .of_trims = true };

static CornuDataset *select_by(CornuDataset *source, const CornuDatasetKind *kind,
                               Predicate predicate)
{
    CornuDataset *dataset = cornu__dataset_derive(source, kind, predicate.name);
    if (!dataset) return NULL;
    Predicate *own = dataset->own = cornu__allocate(1, sizeof *own);
    if (!own) return cornu__dataset_abandon(dataset);
    *own = predicate;
    dataset->count = CORNU_UNKNOWN;
    if (own->function) return dataset;
    cornu__fail(CORNU_ERR_ARGUMENT, "%s: the function is NULL", own->name);
    return cornu__dataset_abandon(dataset);
}

CornuDataset *cornu_dataset_filter(CornuDataset *source, CornuPredicateFunction *function,
                                   void *context)
{
    return select_by(source, &filter_kind, (Predicate){ "filter", function, context });
}

CornuDataset *cornu_dataset_take_while(CornuDataset *source, CornuPredicateFunction *function,
                                       void *context)
{
    return select_by(source, &while_kind, (Predicate){ "take_while", function, context });
}

/* ---- rejection_resample ---- */

typedef struct {
    CornuClassFunction *function;
    void               *context;
    uint64_t            seed;
    int                 classes;
    bool                counts;     /* elements of each class, instead of initial shares */
    double              shares[];   /* wanted, then initial ones, of each class */
} Resampling;

typedef struct {
    int64_t read;
    double  seen[];   /* elements of each class, or their initial shares */
} Resampled;

/* See cornu__sample_draw. */
static const uint32_t resample_operation = UINT32_C(0xFFFF0007);

/* Of what every class has at first, so that few elements do not tell their distribution. */
static const double seen_before = 10.0;

static CornuStatus resample_begin(CornuStage *stage, int64_t epoch)
{
    const Resampling *resampling = stage->dataset->own;
    Resampled        *resampled = stage->own;
    (void)epoch;
    resampled->read = 0;
    for (int c = 0; c < resampling->classes; c++)
        resampled->seen[c] = resampling->counts ? seen_before
                                                : resampling->shares[resampling->classes + c];
    return CORNU_OK;
}

/* The class that is taken whole has the largest ratio of the share wanted to the one there. */
static double acceptance(const Resampling *resampling, const Resampled *resampled, int64_t class)
{
    double most = 0.0;
    for (int c = 0; c < resampling->classes; c++)
        if (resampled->seen[c] > 0.0)
            most = fmax(most, resampling->shares[c] / resampled->seen[c]);
    if (most == 0.0 || resampled->seen[class] == 0.0) return 0.0;
    return resampling->shares[class] / resampled->seen[class] / most;
}

static CornuStatus find_class(const CornuStage *stage, CornuSample at, void *const *element,
                              int64_t *class)
{
    const Resampling *resampling = stage->dataset->own;
    CornuArray        in[CORNU_MAX_COMPONENTS];
    cornu__stage_arrays(stage->source, element, in);
    CORNU__TRY(cornu__fail_sample(resampling->function(resampling->context, at, in, class),
                                   "rejection_resample", at));
    if (*class >= 0 && *class < resampling->classes) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "rejection_resample: element %lld of epoch %lld is of "
                       "class %lld, expected 0 to %d", (long long)at.index, (long long)at.epoch,
                       (long long)*class, resampling->classes - 1);
}

static CornuStatus resample_next(CornuStage *stage, CornuSample at, void *const *to,
                                 int64_t *valid)
{
    const Resampling *resampling = stage->dataset->own;
    Resampled        *resampled = stage->own;
    for (;;) {
        const CornuSample next = { at.epoch, resampled->read };
        int64_t           class = 0;
        CORNU__TRY(cornu__stage_fetch_within(stage->source, next, to + 1, valid));
        if (!*valid) return CORNU_OK;
        CORNU__TRY(find_class(stage, next, to + 1, &class));
        resampled->read++;
        if (resampling->counts) resampled->seen[class]++;
        const uint32_t drawn = cornu__sample_draw(resampling->seed, resample_operation, next);
        if (ldexp(drawn, -32) >= acceptance(resampling, resampled, class)) continue;
        *(int64_t *)to[0] = class;
        return CORNU_OK;
    }
}

static CornuStatus resample_open(CornuStage *stage)
{
    const Resampling *resampling = stage->dataset->own;
    stage->own = cornu__allocate(1, sizeof(Resampled) +
                                    (size_t)resampling->classes * sizeof *((Resampled *)0)->seen);
    return stage->own ? CORNU_OK : CORNU_ERR_MEMORY;
}

static const CornuDatasetKind resample_kind = { .name = "rejection_resample",
                                                .fetch = cornu__fetch_in_turn,
                                                .begin = resample_begin, .next = resample_next,
                                                .open = resample_open, .close = filter_close,
                                                .free = free_own, .in_order = true,
                                                .origin = cornu__origin_unknown };

static CornuStatus check_shares(const double *shares, int classes, const char *name)
{
    double sum = 0.0;
    for (int c = 0; c < classes; c++) {
        if (!(shares[c] >= 0.0) || isinf(shares[c]))
            return cornu__fail(CORNU_ERR_VALUE, "rejection_resample: .%s[%d] is %g, expected 0 or "
                               "more", name, c, shares[c]);
        sum += shares[c];
    }
    if (sum > 0.0 && !isinf(sum)) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "rejection_resample: the sum of .%s is %g, expected more "
                       "than 0", name, sum);
}

static CornuStatus set_up(CornuDataset *dataset, const CornuRejectionResampleConfig *config)
{
    const int classes = config->classes;
    if (!config->class_func || !config->target_dist || classes < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "rejection_resample: %s", !config->class_func
                           ? "the function is NULL" : "expected .target_dist of .classes, 1 or "
                           "more");
    CORNU__TRY(check_shares(config->target_dist, classes, "target_dist"));
    if (config->initial_dist) CORNU__TRY(check_shares(config->initial_dist, classes,
                                                      "initial_dist"));
    for (int c = 0; config->initial_dist && c < classes; c++)
        if (config->initial_dist[c] == 0.0 && config->target_dist[c] > 0.0)
            return cornu__fail(CORNU_ERR_VALUE, "rejection_resample: .target_dist[%d] is %g, but "
                               ".initial_dist[%d] is 0", c, config->target_dist[c], c);
    const size_t bytes = (size_t)classes * sizeof(double);
    Resampling  *resampling = dataset->own = cornu__allocate(1, sizeof *resampling + 2 * bytes);
    if (!resampling) return CORNU_ERR_MEMORY;
    resampling->function = config->class_func;
    resampling->context = config->context;
    resampling->seed = config->seed;
    resampling->classes = classes;
    resampling->counts = !config->initial_dist;
    memcpy(resampling->shares, config->target_dist, bytes);
    if (config->initial_dist) memcpy(resampling->shares + classes, config->initial_dist, bytes);
    dataset->count = dataset->count == CORNU_NONE ? CORNU_NONE : CORNU_UNKNOWN;
    return cornu__dataset_prepend(dataset, cornu_scalar(CORNU_I64), "rejection_resample");
}

CornuDataset *cornu_dataset_rejection_resample_from(const CornuRejectionResampleConfig *config)
{
    CornuDataset *dataset = cornu__dataset_derive(config->source, &resample_kind,
                                                  "rejection_resample");
    if (!dataset) return NULL;
    return set_up(dataset, config) ? cornu__dataset_abandon(dataset) : dataset;
}
