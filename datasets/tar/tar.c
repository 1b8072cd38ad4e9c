#include "tar.h"

#include <stdio.h>

#include "../../device/log_internal.h"
#include "../../device/memory_internal.h"
#include "../files/stream_internal.h"
#include "tar_internal.h"

static CornuStatus samples_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const CornuTar *tar = stage->dataset->own;
    const int       file = cornu__inputs_find(tar->first, cornu__inputs_count(tar->inputs),
                                              at.index);
    CornuStatus     status = CORNU_OK;
    for (int i = 0; i < tar->table.count && !status; i++) {
        const CornuFeatureRow *row = &tar->table.rows[i];
        const CornuTarPlace    place = tar->places[at.index * tar->table.count + i];
        const unsigned char   *bytes;
        if (place.at < 0) {
            status = cornu__feature_missing(row, to);
        } else {
            status = cornu__reader_get(stage->own, file, place.at, (size_t)place.size, &bytes);
            if (!status) status = cornu__tar_decode(row, bytes, (size_t)place.size, to);
        }
        char what[CORNU_MESSAGE_SIZE / 2];
        snprintf(what, sizeof what, "%.400s: sample %lld at byte %lld: \"%.40s\"",
                 cornu__inputs_path(tar->inputs, file), (long long)(at.index - tar->first[file]),
                 (long long)tar->start[at.index], row->feature.name);
        status = cornu__fail_prefix(status, what);
    }
    *valid = 1;
    return status;
}

static CornuStatus samples_open(CornuStage *stage)
{
    stage->own = cornu__reader_create(((const CornuTar *)stage->dataset->own)->inputs);
    return stage->own ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void samples_close(CornuStage *stage) { cornu__reader_free(stage->own); }

static void samples_free(CornuDataset *dataset)
{
    CornuTar *tar = dataset->own;
    if (!tar) return;
    cornu__features_free(&tar->table);
    cornu__inputs_free(tar->inputs);
    cornu__release(tar->start);
    cornu__release(tar->places);
    cornu__release(tar->first);
    cornu__release(tar);
}

static const CornuDatasetKind samples_kind = { .name = "tar", .fetch = samples_fetch,
                                               .open = samples_open, .close = samples_close,
                                               .free = samples_free };

/* ---- Creation ---- */

static CornuStatus refuse_compressed(const CornuTar *tar)
{
    for (int i = 0; i < cornu__inputs_count(tar->inputs); i++) {
        unsigned char head[2];
        const char   *path = cornu__inputs_path(tar->inputs, i);
        if (cornu__inputs_size(tar->inputs, i) < (int64_t)sizeof head)
            return cornu__fail(CORNU_ERR_FORMAT, "%s: has %lld bytes, not a tar archive", path,
                               (long long)cornu__inputs_size(tar->inputs, i));
        CORNU__TRY(cornu__fail_prefix(cornu__inputs_read(tar->inputs, i, 0, head, sizeof head),
                                      path));
        if (cornu__compression_of(head, sizeof head) == CORNU__GZIP)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: is compressed by gzip, which cannot be "
                               "read in any order; uncompress it by gunzip", path);
    }
    return CORNU_OK;
}

static CornuStatus make_samples(CornuDataset *dataset, const CornuTarConfig *config)
{
    CornuTar *tar = dataset->own;
    CORNU__TRY(cornu__features_read(&tar->table, config->features, "tar", dataset));
    for (int i = 0; i < tar->table.count; i++)
        if (tar->table.rows[i].feature.sequence)
            return cornu__fail(CORNU_ERR_ARGUMENT, "tar: %s: .sequence is for SequenceExamples",
                               tar->table.rows[i].feature.name);
    tar->inputs = cornu__inputs_create();
    if (!tar->inputs) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu__inputs_match_all(tar->inputs, config->file, config->files, "tar"));
    CORNU__TRY(refuse_compressed(tar));
    CORNU__TRY(cornu__tar_index(tar));
    dataset->count = tar->first[cornu__inputs_count(tar->inputs)];
    if (dataset->count) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DATA, "%s: no samples in %d files, expected names such as "
                       "000001.jpg and 000001.cls", cornu__inputs_path(tar->inputs, 0),
                       cornu__inputs_count(tar->inputs));
}

CornuDataset *cornu_tar_dataset_from(const CornuTarConfig *config)
{
    if (cornu__refused()) return NULL;
    CornuDataset *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &samples_kind;
    CornuTar *tar = dataset->own = cornu__allocate(1, sizeof *tar);
    if (!tar || make_samples(dataset, config)) {
        cornu_dataset_free(dataset);
        return cornu__null();
    }
    cornu__log(CORNU_LOG_INFO, "%s: %lld samples in %d files", cornu__inputs_path(tar->inputs, 0),
               (long long)dataset->count, cornu__inputs_count(tar->inputs));
    return dataset;
}
