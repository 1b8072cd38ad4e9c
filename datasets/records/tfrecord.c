#include "tfrecord_internal.h"

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"

/* ---- Elements ---- */

static CornuStatus check_bytes(const unsigned char *bytes, int64_t length)
{
    int64_t stated;
    if (!cornu__record_head(bytes, &stated) || stated != length)
        return cornu__fail(CORNU_ERR_FORMAT, "its length is another one than when the file "
                           "was opened");
    return cornu__record_check(bytes + CORNU__RECORD_HEAD, length);
}

static CornuStatus records_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                 int64_t *valid)
{
    const CornuTfrecords *records = stage->dataset->own;
    const int64_t record = records->order ? records->order[at.index] : at.index;
    const int     file = cornu__inputs_find(records->first, cornu__inputs_count(records->inputs),
                                              record);
    const int64_t start = records->start[record];
    const int64_t end = record + 1 < records->first[file + 1]
                            ? records->start[record + 1]
                            : cornu__inputs_size(records->inputs, file);
    const int64_t        length = end - start - CORNU__RECORD_AROUND;
    const unsigned char *bytes;
    CornuStatus status = cornu__reader_get(stage->own, file, start, (size_t)(end - start), &bytes);
    if (!status) status = check_bytes(bytes, length);
    if (!status)
        status = cornu__tfrecord_element(records, bytes + CORNU__RECORD_HEAD, length,
                                         stage->dataset, to);
    *valid = 1;
    return cornu__tfrecord_fail(records, status, file, record - records->first[file], start);
}

static CornuStatus records_open(CornuStage *stage)
{
    stage->own = cornu__reader_create(((const CornuTfrecords *)stage->dataset->own)->inputs);
    return stage->own ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void records_close(CornuStage *stage) { cornu__reader_free(stage->own); }

static void records_free(CornuDataset *dataset)
{
    CornuTfrecords *records = dataset->own;
    if (!records) return;
    cornu__features_free(&records->table);
    cornu__inputs_free(records->inputs);
    cornu__release(records->compression);
    cornu__release(records->start);
    cornu__release(records->first);
    cornu__release(records->order);
    cornu__release(records);
}

static const CornuDatasetKind records_kind = { .name = "records", .fetch = records_fetch,
                                               .open = records_open, .close = records_close,
                                               .free = records_free };
static const CornuDatasetKind stream_kind = { .name = "records", .fetch = cornu__fetch_in_turn,
                                              .begin = cornu__tfrecord_stream_begin,
                                              .next = cornu__tfrecord_stream_next,
                                              .pass = cornu__tfrecord_stream_pass,
                                              .close = cornu__tfrecord_stream_close,
                                              .free = records_free, .in_order = true };

/* ---- Creation ---- */

/* A plain file begins with a length and its checksum. */
static CornuStatus find_compression(CornuTfrecords *records, bool *compressed)
{
    const int files = cornu__inputs_count(records->inputs);
    records->compression = cornu__allocate((size_t)files, sizeof *records->compression);
    if (!records->compression) return CORNU_ERR_MEMORY;
    for (int i = 0; i < files; i++) {
        unsigned char head[CORNU__RECORD_HEAD] = { 0 };
        int64_t       size = cornu__inputs_size(records->inputs, i), length;
        if (size > CORNU__RECORD_HEAD) size = CORNU__RECORD_HEAD;
        CORNU__TRY(cornu__fail_prefix(cornu__inputs_read(records->inputs, i, 0, head, (size_t)size),
                                      cornu__inputs_path(records->inputs, i)));
        if (size < CORNU__RECORD_HEAD || !cornu__record_head(head, &length))
            records->compression[i] = cornu__compression_of(head, (size_t)size);
        *compressed = *compressed || records->compression[i] != CORNU__PLAIN;
    }
    return CORNU_OK;
}

static CornuStatus set_types(CornuDataset *dataset, const CornuTfrecordConfig *config)
{
    CornuTfrecords *records = dataset->own;
    if (config->features) {
        if (config->record_length)
            return cornu__fail(CORNU_ERR_ARGUMENT, "tfrecord: .record_length is for records "
                               "without .features");
        return cornu__features_read(&records->table, config->features, "tfrecord", dataset);
    }
    if (config->record_length < 1 || config->record_length > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tfrecord: .record_length is %lld, expected 1 to "
                           "%d, or .features", (long long)config->record_length, INT32_MAX);
    dataset->components = 2;
    dataset->type[0] = cornu_type(CORNU_U8, config->record_length);
    dataset->type[1] = cornu_scalar(CORNU_I32);
    for (int c = 0; c < 2; c++) dataset->bytes[c] = cornu_type_bytes(dataset->type[c]);
    return CORNU_OK;
}

static CornuStatus make_records(CornuDataset *dataset, const CornuTfrecordConfig *config)
{
    CornuTfrecords *records = dataset->own;
    bool            compressed = false;
    if (config->cycle_length < 0 || config->block_length < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tfrecord: .cycle_length is %lld and .block_length "
                           "%lld, expected 1 or more", (long long)config->cycle_length,
                           (long long)config->block_length);
    records->cycle = config->cycle_length ? config->cycle_length : 1;
    records->block = config->block_length ? config->block_length : 1;
    CORNU__TRY(set_types(dataset, config));
    records->inputs = cornu__inputs_create();
    if (!records->inputs) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu__inputs_match_all(records->inputs, config->file, config->files, "tfrecord"));
    CORNU__TRY(find_compression(records, &compressed));
    /* To find the places of all records takes a pass over the files, which are far away. */
    if (compressed || !cornu__inputs_are_local(records->inputs)) {
        dataset->kind = &stream_kind;
        dataset->count = CORNU_UNKNOWN;
        return CORNU_OK;
    }
    CORNU__TRY(cornu__tfrecord_index(records));
    dataset->count = records->first[cornu__inputs_count(records->inputs)];
    return CORNU_OK;
}

CornuDataset *cornu_tfrecord_dataset_from(const CornuTfrecordConfig *config)
{
    if (cornu__refused()) return NULL;
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &records_kind;
    CornuTfrecords *records = dataset->own = cornu__allocate(1, sizeof *records);
    if (!records || make_records(dataset, config)) {
        cornu_dataset_free(dataset);
        return cornu__null();
    }
    cornu__log(CORNU_LOG_INFO, "%s: %lld records in %d files",
               cornu__inputs_path(records->inputs, 0), (long long)dataset->count,
               cornu__inputs_count(records->inputs));
    return dataset;
}
