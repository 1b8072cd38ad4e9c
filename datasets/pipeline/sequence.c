/* Elements of a source in their order, arranged anew; sequence.h says how. */
#include "sequence.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

static void free_own(CornuDataset *dataset) { cornu__release(dataset->own); }

/* ---- enumerate ---- */

static CornuStatus enumerate_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                   int64_t *valid)
{
    *(int64_t *)to[0] = stage->dataset->range.start + at.index;
    return cornu__stage_fetch(stage->source, at, to + 1, valid);
}

static const CornuDatasetKind enumerate_kind = { .name = "enumerate", .fetch = enumerate_fetch,
                                                 .by_row = true };

CornuDataset *cornu_dataset_enumerate(CornuDataset *source, int64_t start)
{
    CornuDataset *dataset = cornu__dataset_derive(source, &enumerate_kind, "enumerate");
    if (!dataset) return NULL;
    dataset->range.start = start;
    const int64_t last = dataset->count < 0 ? CORNU__ENDLESS : dataset->count;
    if (start > INT64_MAX - last)
        cornu__fail(CORNU_ERR_ARGUMENT, "enumerate: numbers from %lld on exceed the range of i64",
                    (long long)start);
    else if (!cornu__dataset_prepend(dataset, cornu_scalar(CORNU_I64), "enumerate"))
        return dataset;
    return cornu__dataset_abandon(dataset);
}

/* ---- window ---- */

typedef struct { int64_t size, shift, stride; bool whole; } Window;

/* The elements of the source read last: element i is at place i % places. */
typedef struct {
    void    *memory;
    void    *at[CORNU_MAX_COMPONENTS];
    int64_t  epoch, places;
    int64_t  held[];                     /* of each place, -1: none */
} Ring;

/* Copies element i of the source to row w of the window; *valid is 0 after the end. */
static CornuStatus copy_element(CornuStage *stage, CornuSample at, int64_t w, void *const *to,
                                int64_t *valid)
{
    const CornuDataset *source = stage->dataset->source;
    Ring               *ring = stage->own;
    const int64_t       place = at.index % ring->places;
    void               *element[CORNU_MAX_COMPONENTS];
    for (int c = 0; c < source->components; c++)
        element[c] = (char *)ring->at[c] + (size_t)place * source->bytes[c];
    *valid = 1;
    if (ring->held[place] != at.index) {
        ring->held[place] = -1;
        CORNU__TRY(cornu__stage_fetch_within(stage->source, at, element, valid));
        if (!*valid) return CORNU_OK;
        ring->held[place] = at.index;
    }
    for (int c = 0; c < source->components; c++)
        memcpy((char *)to[c] + (size_t)w * source->bytes[c], element[c], source->bytes[c]);
    return CORNU_OK;
}

static CornuStatus window_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuDataset *source = stage->dataset->source;
    const Window       *window = stage->dataset->own;
    Ring               *ring = stage->own;
    int64_t             w = 0;
    if (ring->epoch != at.epoch)
        for (int64_t i = 0; i < ring->places; i++) ring->held[i] = -1;
    ring->epoch = at.epoch;
    *valid = 0;
    if (at.index > (INT64_MAX - (window->size - 1) * window->stride) / window->shift)
        return CORNU_OK;
    for (; w < window->size; w++) {
        int64_t           one;
        const CornuSample next = { at.epoch, at.index * window->shift + w * window->stride };
        CORNU__TRY(copy_element(stage, next, w, to, &one));
        if (!one) break;
    }
    if (w == 0 || (window->whole && w < window->size)) return CORNU_OK;
    for (int c = 0; c < source->components; c++)
        memset((char *)to[c] + (size_t)w * source->bytes[c], 0,
               (size_t)(window->size - w) * source->bytes[c]);
    if (!window->whole) *(int64_t *)to[source->components] = w;
    *valid = 1;
    return CORNU_OK;
}

static CornuStatus window_open(CornuStage *stage)
{
    const Window *window = stage->dataset->own;
    const int64_t places = (window->size - 1) * window->stride + 1;
    Ring *ring = stage->own = cornu__allocate(1, sizeof *ring +
                                                 (size_t)places * sizeof *ring->held);
    if (!ring) return CORNU_ERR_MEMORY;
    ring->epoch = -1;
    ring->places = places;
    ring->memory = cornu__elements_allocate(stage->dataset->source, places, ring->at);
    return ring->memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void window_close(CornuStage *stage)
{
    Ring *ring = stage->own;
    if (ring) cornu__release(ring->memory);
    cornu__release(ring);
}

static const CornuDatasetKind window_kind = { .name = "window", .fetch = window_fetch,
                                              .open = window_open, .close = window_close,
                                              .free = free_own, .origin = cornu__origin_unknown };

static int64_t windows_of(int64_t count, const Window *window)
{
    const int64_t needed = window->whole ? (window->size - 1) * window->stride + 1 : 1;
    return count < 0 ? count : count < needed ? 0 : (count - needed) / window->shift + 1;
}

static CornuStatus check_window(const CornuDataset *source, const Window *window)
{
    const struct { const char *name; int64_t value; } settings[] = {
        { "size", window->size }, { "shift", window->shift }, { "stride", window->stride },
    };
    if (source->batch_size)
        return cornu__fail(CORNU_ERR_ARGUMENT, "window: the data set is batched; window before "
                           "batch");
    for (int i = 0; i < 3; i++)
        if (settings[i].value < 1 || settings[i].value > INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "window: .%s is %lld, expected 1 to %d",
                               settings[i].name, (long long)settings[i].value, INT32_MAX);
    if (!window->whole && source->components == CORNU_MAX_COMPONENTS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "window: %d components, expected fewer for that of "
                           "the number of elements, or .drop_remainder", source->components);
    return CORNU_OK;
}

/* What an iterator keeps, in an array of which the type has been checked. */
static CornuStatus check_ring(const CornuDataset *source, const Window *window)
{
    const int64_t places = (window->size - 1) * window->stride + 1;
    size_t        total = 0;
    for (int c = 0; c < source->components; c++) {
        const size_t bytes = source->bytes[c];
        if (bytes && (size_t)places > (SIZE_MAX / 2 - total) / bytes)
            return cornu__fail(CORNU_ERR_SHAPE, "window: %lld elements to keep exceed the memory",
                               (long long)places);
        total += (size_t)places * bytes;
    }
    return CORNU_OK;
}

CornuDataset *cornu_dataset_window_from(const CornuWindowConfig *config)
{
    CornuDataset *dataset = cornu__dataset_derive(config->source, &window_kind, "window");
    if (!dataset) return NULL;
    const CornuDataset *source = dataset->source;
    Window *window = dataset->own = cornu__allocate(1, sizeof *window);
    if (!window) return cornu__dataset_abandon(dataset);
    *window = (Window){ config->size, config->shift ? config->shift : config->size,
                        config->stride ? config->stride : 1, config->drop_remainder };
    if (check_window(source, window) || check_ring(source, window))
        return cornu__dataset_abandon(dataset);
    dataset->count = windows_of(source->count, window);
    dataset->batch_size = window->size;   /* an axis of so many, for now */
    CornuStatus status = cornu__dataset_set_types(dataset, source->type, source->components);
    dataset->batch_size = 0;
    if (!status && !window->whole)
        status = cornu__dataset_set_type(dataset, dataset->components++, cornu_scalar(CORNU_I64));
    return cornu__fail_prefix(status, "window") ? cornu__dataset_abandon(dataset) : dataset;
}

/* ---- unbatch ---- */

/* The element of the source that rows are taken from. */
typedef struct {
    void       *memory, *at[CORNU_MAX_COMPONENTS];
    CornuSample held;      /* index -1: none */
    int64_t     rows;      /* that it has */
    int64_t     row;       /* the next one, if they are taken in turn */
} Rows;

static CornuStatus hold(CornuStage *stage, CornuSample at)
{
    Rows   *rows = stage->own;
    int64_t valid;
    if (rows->held.epoch == at.epoch && rows->held.index == at.index) return CORNU_OK;
    rows->held.index = -1;
    CORNU__TRY(cornu__stage_fetch_within(stage->source, at, rows->at, &valid));
    rows->held = at;
    rows->rows = valid;
    return CORNU_OK;
}

static void copy_row(const CornuStage *stage, int64_t row, void *const *to)
{
    const CornuDataset *dataset = stage->dataset;
    const Rows         *rows = stage->own;
    for (int c = 0; c < dataset->components; c++)
        memcpy(to[c], (const char *)rows->at[c] + (size_t)row * dataset->bytes[c],
               dataset->bytes[c]);
}

/* Elements of as many rows each. */
static CornuStatus row_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const int64_t each = stage->dataset->source->type[0].shape.extent[0];
    const Rows   *rows = stage->own;
    CORNU__TRY(hold(stage, (CornuSample){ at.epoch, at.index / each }));
    *valid = rows->rows > 0;
    if (*valid) copy_row(stage, at.index % each, to);
    return CORNU_OK;
}

static CornuStatus rows_begin(CornuStage *stage, int64_t epoch)
{
    Rows *rows = stage->own;
    rows->row = rows->rows = 0;
    rows->held = (CornuSample){ epoch, -1 };
    return CORNU_OK;
}

/* Batches, of which the last one, and others after some transformations, have fewer rows. */
static CornuStatus row_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    Rows *rows = stage->own;
    *valid = 0;
    if (rows->row == rows->rows) {
        CORNU__TRY(hold(stage, (CornuSample){ at.epoch, rows->held.index + 1 }));
        rows->row = 0;
    }
    if (!rows->rows) return CORNU_OK;
    copy_row(stage, rows->row++, to);
    *valid = 1;
    return CORNU_OK;
}

static CornuStatus rows_open(CornuStage *stage)
{
    Rows *rows = stage->own = cornu__allocate(1, sizeof *rows);
    if (!rows) return CORNU_ERR_MEMORY;
    rows->held.index = -1;
    rows->memory = cornu__element_allocate(stage->dataset->source, rows->at);
    return rows->memory ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void rows_close(CornuStage *stage)
{
    Rows *rows = stage->own;
    if (rows) cornu__release(rows->memory);
    cornu__release(rows);
}

static const CornuDatasetKind rows_kind = { .name = "unbatch", .fetch = row_fetch,
                                            .open = rows_open, .close = rows_close,
                                            .origin = cornu__origin_unknown };
static const CornuDatasetKind batches_kind = { .name = "unbatch", .fetch = cornu__fetch_in_turn,
                                               .begin = rows_begin, .next = row_next,
                                               .open = rows_open, .close = rows_close,
                                               .in_order = true, .origin = cornu__origin_unknown };

/* The types of rows of components that all have as many. */
static CornuStatus take_rows(CornuDataset *dataset)
{
    const CornuDataset *source = dataset->source;
    const CornuShape    first = source->type[0].shape;
    for (int c = 0; c < dataset->components; c++) {
        CornuType type = source->type[c];
        if (type.shape.rank < 1 || type.shape.extent[0] != first.extent[0] || !first.extent[0]) {
            CornuText text;
            return cornu__fail(CORNU_ERR_SHAPE, "unbatch: component %d is %s, expected an axis of "
                               "rows, as many as of component 0", c,
                               cornu_type_print(&text, source->type[c]));
        }
        type = cornu_type_from(type.dtype, cornu_shape_from(type.shape.rank - 1,
                                                            type.shape.extent + 1));
        dataset->type[c] = type;
        dataset->bytes[c] = cornu_type_bytes(type);
    }
    if (dataset->count > INT64_MAX / first.extent[0])
        return cornu__fail(CORNU_ERR_ARGUMENT, "unbatch: the rows exceed the range of an index");
    dataset->count = dataset->count < 0 ? dataset->count : dataset->count * first.extent[0];
    return CORNU_OK;
}

CornuDataset *cornu_dataset_unbatch(CornuDataset *source)
{
    const bool    batched = source && source->batch_size;
    CornuDataset *dataset = cornu__dataset_derive(source, batched ? &batches_kind : &rows_kind,
                                                  "unbatch");
    if (!dataset) return NULL;
    dataset->batch_size = 0;
    if (take_rows(dataset)) return cornu__dataset_abandon(dataset);
    if (batched && dataset->count != CORNU_NONE) dataset->count = cornu__dataset_rows(source);
    return dataset;
}

/* ---- scan ---- */

typedef struct {
    CornuScanFunction *function;
    void              *context;
    size_t             bytes;
    char               initial[];
} Scan;

/* The element of the source, and the state. */
typedef struct {
    void *memory, *at[CORNU_MAX_COMPONENTS], *state;
} Scanned;

static CornuStatus scan_begin(CornuStage *stage, int64_t epoch)
{
    const Scan *scan = stage->dataset->own;
    Scanned    *scanned = stage->own;
    (void)epoch;
    memcpy(scanned->state, scan->initial, scan->bytes);
    return CORNU_OK;
}

static CornuStatus scan_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const Scan *scan = stage->dataset->own;
    Scanned    *scanned = stage->own;
    CornuArray  in[CORNU_MAX_COMPONENTS], out[CORNU_MAX_COMPONENTS];
    CORNU__TRY(cornu__stage_fetch_within(stage->source, at, scanned->at, valid));
    if (!*valid) return CORNU_OK;
    cornu__stage_arrays(stage->source, scanned->at, in);
    cornu__stage_arrays(stage, to, out);
    return cornu__fail_sample(scan->function(scan->context, at, scanned->state, in, out), "scan",
                               at);
}

static CornuStatus scan_open(CornuStage *stage)
{
    const Scan *scan = stage->dataset->own;
    Scanned    *scanned = stage->own = cornu__allocate(1, sizeof *scanned);
    if (!scanned) return CORNU_ERR_MEMORY;
    scanned->memory = cornu__element_allocate(stage->dataset->source, scanned->at);
    scanned->state = cornu__allocate_aligned(scan->bytes);
    return scanned->memory && scanned->state ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void scan_close(CornuStage *stage)
{
    Scanned *scanned = stage->own;
    if (scanned) {
        cornu__release(scanned->memory);
        cornu__release(scanned->state);
    }
    cornu__release(scanned);
}

static const CornuDatasetKind scan_kind = { .name = "scan", .fetch = cornu__fetch_in_turn,
                                            .begin = scan_begin, .next = scan_next,
                                            .open = scan_open, .close = scan_close,
                                            .free = free_own, .in_order = true };

CornuDataset *cornu_dataset_scan_from(const CornuScanConfig *config)
{
    CornuDataset *dataset = cornu__dataset_derive(config->source, &scan_kind, "scan");
    if (!dataset) return NULL;
    if (!config->function || !config->initial_state || !config->state_bytes) {
        cornu__fail(CORNU_ERR_ARGUMENT, "scan: %s", config->function
                    ? "expected .initial_state of .state_bytes, 1 or more"
                    : "the function is NULL");
        return cornu__dataset_abandon(dataset);
    }
    Scan *scan = dataset->own = cornu__allocate(1, sizeof *scan + config->state_bytes);
    if (!scan) return cornu__dataset_abandon(dataset);
    scan->function = config->function;
    scan->context = config->context;
    scan->bytes = config->state_bytes;
    memcpy(scan->initial, config->initial_state, scan->bytes);
    if (cornu__fail_prefix(cornu__dataset_set_types(dataset, config->types, config->count),
                           "scan"))
        return cornu__dataset_abandon(dataset);
    return dataset;
}
