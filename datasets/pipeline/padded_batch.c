/* Batches of elements of open extent; padded_batch.h says how they are padded. */
#include "padded_batch.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

enum { MOST_BUCKETS = 256 };

typedef struct {
    int64_t below;    /* lengths, INT64_MAX: any */
    int64_t size;     /* rows of a batch */
} Bucket;

typedef struct {
    const char *name;
    int         count;                          /* of buckets */
    Bucket      buckets[MOST_BUCKETS];
    int64_t     most;                           /* extent of the open axis */
    double      padding[CORNU_MAX_COMPONENTS];  /* by component */
    bool        whole;                          /* no remainder */
    bool        to_boundary;
} Settings;

/* Rows that wait for others: as many of each component as a batch has. */
typedef struct {
    void    *memory, *at[CORNU_MAX_COMPONENTS];
    int64_t *lengths;
    int64_t  count;
} Bin;

typedef struct {
    void   *memory, *element[CORNU_MAX_COMPONENTS];   /* of the source */
    int64_t read;
    Bin     bins[];
} Bins;

/* ---- A batch from rows ---- */

/* Writes `count` padding entries of `bytes` each. */
static void pad(char *to, CornuDtype dtype, int64_t count, size_t bytes, double value)
{
    memset(to, 0, (size_t)count * bytes);
    if (value == 0.0) return;
    const int64_t scalars = count * (int64_t)(bytes / cornu_dtype_size(dtype));
    const CornuArray array = cornu_array(to, dtype, scalars);
    for (int64_t i = 0; i < scalars; i++) cornu_array_set(array, i, value);
}

/* Component c: row after row, of `extent` entries. */
static void write_open(const CornuStage *stage, const Bin *bin, int c, int64_t extent, char *to)
{
    const CornuDataset *source = stage->dataset->source;
    const Settings     *settings = stage->dataset->own;
    const size_t        entry = source->bytes[c] / (size_t)settings->most;
    for (int64_t r = 0; r < bin->count; r++, to += (size_t)extent * entry) {
        const size_t used = (size_t)bin->lengths[r] * entry;
        memcpy(to, (const char *)bin->at[c] + (size_t)r * source->bytes[c], used);
        pad(to + used, source->type[c].dtype, extent - bin->lengths[r], entry,
            settings->padding[c]);
    }
}

/* Makes a batch of the rows of bin b, which is empty then. */
static void empty_bin(CornuStage *stage, int b, void *const *to, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset, *source = dataset->source;
    const Settings     *settings = dataset->own;
    Bin                *bin = &((Bins *)stage->own)->bins[b];
    const int64_t       size = settings->buckets[b].size;
    int64_t             extent = 1;
    for (int64_t r = 0; r < bin->count; r++)
        if (bin->lengths[r] > extent) extent = bin->lengths[r];
    if (settings->to_boundary)
        extent = b < settings->count - 1 ? settings->buckets[b].below - 1 : settings->most;
    if (extent < 1) extent = 1;
    for (int c = 0; c < dataset->components; c++) {
        const size_t row = dataset->open[c]
                         ? source->bytes[c] / (size_t)settings->most * (size_t)extent
                         : source->bytes[c];
        if (dataset->open[c]) write_open(stage, bin, c, extent, to[c]);
        else memcpy(to[c], bin->at[c], (size_t)bin->count * row);
        memset((char *)to[c] + (size_t)bin->count * row, 0, (size_t)(size - bin->count) * row);
    }
    *valid = bin->count;
    bin->count = 0;
    stage->trim = (CornuTrim){ .rows = size, .extent = extent };
}

/* ---- Rows from the source ---- */

/* Reads element `at` into the bin of its length, *b, unless *valid is 0. */
static CornuStatus read_row(CornuStage *stage, CornuSample at, int *b, int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset, *source = dataset->source;
    const Settings     *settings = dataset->own;
    Bins               *bins = stage->own;
    CORNU__TRY(cornu__stage_fetch_within(stage->source, at, bins->element, valid));
    if (!*valid) return CORNU_OK;
    const int     last = source->components - 1;
    const double  length = cornu_array_get(cornu_array_from(bins->element[last],
                                                            source->type[last]), 0);
    if (!(length >= 0.0 && length <= (double)settings->most))
        return cornu__fail(CORNU_ERR_VALUE, "%s: element %lld of epoch %lld has %g entries, "
                           "expected 0 to %lld", settings->name, (long long)at.index,
                           (long long)at.epoch, length, (long long)settings->most);
    for (*b = 0; length >= (double)settings->buckets[*b].below;) ++*b;
    Bin *bin = &bins->bins[*b];
    for (int c = 0; c < dataset->components; c++)
        memcpy((char *)bin->at[c] + (size_t)bin->count * source->bytes[c], bins->element[c],
               source->bytes[c]);
    bin->lengths[bin->count++] = (int64_t)length;
    return CORNU_OK;
}

static CornuStatus padded_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                int64_t *valid)
{
    const Settings *settings = stage->dataset->own;
    Bins           *bins = stage->own;
    const int64_t   size = settings->buckets[0].size;
    int             b;
    *valid = 0;
    bins->bins[0].count = 0;   /* some may be left of a failure */
    for (int64_t r = 0; r < size; r++) {
        int64_t one;
        CORNU__TRY(read_row(stage, (CornuSample){ at.epoch, at.index * size + r }, &b, &one));
        if (!one) break;
    }
    const int64_t count = bins->bins[0].count;
    if (count > 0 && (count == size || !settings->whole)) empty_bin(stage, 0, to, valid);
    return CORNU_OK;
}

static CornuStatus bucket_begin(CornuStage *stage, int64_t epoch)
{
    const Settings *settings = stage->dataset->own;
    Bins           *bins = stage->own;
    (void)epoch;
    bins->read = 0;
    for (int b = 0; b < settings->count; b++) bins->bins[b].count = 0;
    return CORNU_OK;
}

/* The first bin that is not empty, or -1. */
static int find_rest(const Settings *settings, const Bins *bins)
{
    for (int b = 0; b < settings->count; b++)
        if (bins->bins[b].count) return b;
    return -1;
}

static CornuStatus bucket_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const Settings *settings = stage->dataset->own;
    Bins           *bins = stage->own;
    int             b = 0;
    do {
        CORNU__TRY(read_row(stage, (CornuSample){ at.epoch, bins->read }, &b, valid));
        if (!*valid) break;
        bins->read++;
    } while (bins->bins[b].count < settings->buckets[b].size);
    if (!*valid) b = settings->whole ? -1 : find_rest(settings, bins);
    if (b >= 0) empty_bin(stage, b, to, valid);
    return CORNU_OK;
}

/* ---- Their life ---- */

static CornuStatus open_bin(const CornuDataset *source, int64_t size, Bin *bin)
{
    bin->memory = cornu__elements_allocate(source, size, bin->at);
    bin->lengths = cornu__allocate((size_t)size, sizeof *bin->lengths);
    return bin->memory && bin->lengths ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus padded_open(CornuStage *stage)
{
    const Settings *settings = stage->dataset->own;
    Bins           *bins = cornu__allocate(1, sizeof *bins +
                                              (size_t)settings->count * sizeof *bins->bins);
    stage->own = bins;
    if (!bins) return CORNU_ERR_MEMORY;
    bins->memory = cornu__element_allocate(stage->dataset->source, bins->element);
    if (!bins->memory) return CORNU_ERR_MEMORY;
    for (int b = 0; b < settings->count; b++)
        CORNU__TRY(open_bin(stage->dataset->source, settings->buckets[b].size, &bins->bins[b]));
    return CORNU_OK;
}

static void padded_close(CornuStage *stage)
{
    const Settings *settings = stage->dataset->own;
    Bins           *bins = stage->own;
    for (int b = 0; bins && b < settings->count; b++) {
        cornu__release(bins->bins[b].memory);
        cornu__release(bins->bins[b].lengths);
    }
    if (bins) cornu__release(bins->memory);
    cornu__release(bins);
}

static void padded_free(CornuDataset *dataset) { cornu__release(dataset->own); }

static const CornuDatasetKind padded_kind = { .name = "padded_batch", .fetch = padded_fetch,
                                              .open = padded_open, .close = padded_close,
                                              .free = padded_free, .origin = cornu__origin_batch };
static const CornuDatasetKind bucket_kind = { .name = "bucket", .fetch = cornu__fetch_in_turn,
                                              .begin = bucket_begin, .next = bucket_next,
                                              .open = padded_open, .close = padded_close,
                                              .free = padded_free, .in_order = true,
                                              .origin = cornu__origin_unknown };

/* ---- Their settings ---- */

static CornuStatus check_source(const CornuDataset *source, const char *name)
{
    const int       last = source->components - 1;
    const CornuType length = source->type[last];
    CornuText       text;
    if (source->batch_size)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the data set already comes in batches of "
                           "%lld", name, (long long)source->batch_size);
    if (last > 0 && length.shape.rank == 0 &&
        (length.dtype == CORNU_I64 || length.dtype == CORNU_I32 || length.dtype == CORNU_U32 ||
         length.dtype == CORNU_U8))
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "%s: the last of %d component%s is %s, expected one after "
                       "the others with their number of entries, a whole number and scalar", name,
                       last + 1, last ? "s" : "", cornu_type_print(&text, length));
}

/* Marks the open components, which must agree in the extent of their axis. */
static CornuStatus set_open(CornuDataset *dataset, const int *open, int count,
                            const double *padding)
{
    static const int first[] = { 0 };
    Settings        *settings = dataset->own;
    if (!open && !count) open = first, count = 1;
    if (!open || count < 1 || count > dataset->components)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d open components, expected 1 to %d",
                           settings->name, open ? count : 0, dataset->components);
    for (int i = 0; i < count; i++) {
        if (open[i] < 0 || open[i] >= dataset->components || (i > 0 && open[i] <= open[i - 1]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .open[%d] is %d, expected 0 to %d, in "
                               "ascending order", settings->name, i, open[i],
                               dataset->components - 1);
        const CornuType type = dataset->source->type[open[i]];
        const int64_t   most = type.shape.rank ? type.shape.extent[0] : 0;
        CornuText       text;
        if (i == 0) settings->most = most;
        if (most < 1 || most != settings->most)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: open component %d is %s, expected a first "
                               "axis of as many entries as of the others, 1 or more",
                               settings->name, open[i], cornu_type_print(&text, type));
        dataset->open[open[i]] = true;
        settings->padding[open[i]] = padding ? padding[i] : 0.0;
        if (type.dtype == CORNU_STRING && settings->padding[open[i]] != 0.0)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .padding_values[%d] is %g, expected 0 for "
                               "strings", settings->name, i, settings->padding[open[i]]);
    }
    return CORNU_OK;
}

/* Sizes of batches, and the memory of the bins, are within bounds. */
static CornuStatus set_rows(CornuDataset *dataset)
{
    const Settings *settings = dataset->own;
    const char     *name = settings->name;
    int64_t         most = 1;
    for (int b = 0; b < settings->count; b++) {
        const int64_t size = settings->buckets[b].size;
        if (size < 1 || size > INT32_MAX)
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: batch size %lld, expected 1 to %d", name,
                               (long long)size, INT32_MAX);
        if (size > most) most = size;
    }
    dataset->batch_size = most;
    dataset->components = dataset->source->components - 1;
    return cornu__fail_prefix(cornu__dataset_set_types(dataset, dataset->source->type,
                                                       dataset->components), name);
}

static CornuDataset *create(CornuDataset *source, const CornuDatasetKind *kind, const char *name)
{
    CornuDataset *dataset = cornu__dataset_derive(source, kind, name);
    if (!dataset) return NULL;
    Settings *settings = dataset->own = cornu__allocate(1, sizeof *settings);
    if (!settings || check_source(source, name)) return cornu__dataset_abandon(dataset);
    settings->name = name;
    return dataset;
}

CornuDataset *cornu_dataset_padded_batch_from(const CornuPaddedBatchConfig *config)
{
    CornuDataset *dataset = create(config->source, &padded_kind, "padded_batch");
    if (!dataset) return NULL;
    Settings     *settings = dataset->own;
    const int64_t size = config->batch_size, count = dataset->source->count;
    settings->count = 1;
    settings->buckets[0] = (Bucket){ INT64_MAX, size };
    settings->whole = config->drop_remainder;
    if (set_rows(dataset) || set_open(dataset, config->open, config->open_count,
                                      config->padding_values))
        return cornu__dataset_abandon(dataset);
    if (count >= 0)
        dataset->count = count / size + (!config->drop_remainder && count % size != 0);
    return dataset;
}

static CornuStatus set_buckets(Settings *settings, const CornuBucketBySequenceLengthConfig *config)
{
    const int64_t *below = config->bucket_boundaries, *sizes = config->bucket_batch_sizes;
    const int      count = config->boundaries;
    if (!below || !sizes || count < 1 || count >= MOST_BUCKETS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d boundaries, expected 1 to %d, with batch "
                           "sizes", settings->name, below && sizes ? count : 0, MOST_BUCKETS - 1);
    for (int b = 0; b < count; b++)
        if (below[b] < 1 || (b > 0 && below[b] <= below[b - 1]))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: boundary %d is %lld, expected ascending "
                               "numbers above 0", settings->name, b, (long long)below[b]);
    settings->count = count + 1;
    for (int b = 0; b <= count; b++)
        settings->buckets[b] = (Bucket){ b < count ? below[b] : INT64_MAX, sizes[b] };
    settings->whole = config->drop_remainder;
    settings->to_boundary = config->pad_to_bucket_boundary;
    return CORNU_OK;
}

CornuDataset *cornu_dataset_bucket_by_sequence_length_from(
    const CornuBucketBySequenceLengthConfig *config)
{
    CornuDataset *dataset = create(config->source, &bucket_kind, "bucket_by_sequence_length");
    if (!dataset) return NULL;
    Settings *settings = dataset->own;
    if (set_buckets(settings, config) || set_rows(dataset) ||
        set_open(dataset, config->open, config->open_count, config->padding_values))
        return cornu__dataset_abandon(dataset);
    const int64_t last = settings->buckets[settings->count - 2].below;
    if (last > settings->most) {
        cornu__fail(CORNU_ERR_ARGUMENT, "%s: the last boundary is %lld, but the open axis has %lld "
                    "entries", settings->name, (long long)last, (long long)settings->most);
        return cornu__dataset_abandon(dataset);
    }
    if (dataset->count != CORNU_NONE) dataset->count = CORNU_UNKNOWN;
    return dataset;
}
