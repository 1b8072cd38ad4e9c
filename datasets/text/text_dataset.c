/* Windows of text as a data set. */
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/random.h"
#include "../pipeline/dataset_internal.h"
#include "text.h"

typedef struct {
    void             *tokens;   /* owned */
    size_t            token_bytes;
    int64_t           length;   /* T */
    CornuTextSampling sampling;
    uint64_t          seed;
    int64_t           places;      /* random windows start at 0 to places - 1 */
    int64_t           rows, steps; /* continued: of a batch, batches of an epoch */
} Windows;

/* Random numbers of window positions: counter = (i / 2, 0, epoch, this), see device/random.h; as
 * with shuffle's, streams never coincide with those of a model. */
static const uint32_t place_generator = UINT32_C(0xFFFF0002);

/* Uniform in [0, places): the upper part of 64 random bits times places. */
static int64_t draw_place(const Windows *text, CornuSample at)
{
    uint32_t word[4];
    cornu_philox(text->seed, (uint32_t[]){ (uint32_t)(at.index / 2), 0, (uint32_t)at.epoch,
                                           place_generator }, word);
    const uint64_t places = (uint64_t)text->places;
    const uint32_t high = word[2 * (at.index % 2)], low = word[2 * (at.index % 2) + 1];
    return (int64_t)((high * places + (low * places >> 32)) >> 32);
}

static int64_t place_of(const Windows *text, CornuSample at)
{
    switch (text->sampling) {
    case CORNU_TEXT_BLOCKS: return at.index * (text->length + 1);
    case CORNU_TEXT_RANDOM: return draw_place(text, at);
    case CORNU_TEXT_CONTINUED: break;
    }
    return (at.index % text->rows * text->steps + at.index / text->rows) * text->length;
}

static CornuStatus text_fetch(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    const Windows *text = stage->dataset->own;
    if (at.epoch > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "text: epoch %lld, expected 0 to %lld",
                           (long long)at.epoch, (long long)UINT32_MAX);
    const size_t bytes = stage->dataset->bytes[0];
    const char  *x = (const char *)text->tokens + (size_t)place_of(text, at) * text->token_bytes;
    memcpy(to[0], x, bytes);
    memcpy(to[1], x + text->token_bytes, bytes);
    *valid = 1;
    return CORNU_OK;
}

static void text_free(CornuDataset *dataset)
{
    Windows *text = dataset->own;
    if (text) cornu__release(text->tokens);
    cornu__release(text);
}

static const CornuDatasetKind text_kind = { .name = "text", .fetch = text_fetch,
                                            .free = text_free };

static CornuStatus check_positive(const char *name, int64_t value)
{
    if (value >= 1 && value <= INT32_MAX) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "text: .%s is %lld, expected 1 to %d", name,
                       (long long)value, INT32_MAX);
}

/* Checks the settings and sets *count, the tokens of the range. */
static CornuStatus check_text_dataset(const CornuTextDatasetConfig *config, int64_t *count)
{
    if (!config->text) return cornu__fail_absent("text: .text");
    const int64_t all = config->text->tokens.type.shape.extent[0], T = config->sequence_length;
    CORNU__TRY(check_positive("sequence_length", T));
    if (config->sampling == CORNU_TEXT_RANDOM)
        CORNU__TRY(check_positive("samples", config->samples));
    else if (config->sampling == CORNU_TEXT_CONTINUED)
        CORNU__TRY(check_positive("batch_size", config->batch_size));
    else if (config->sampling != CORNU_TEXT_BLOCKS)
        return cornu__fail(CORNU_ERR_ARGUMENT, "text: sampling %d is not known, expected "
                           "CORNU_TEXT_BLOCKS, RANDOM or CONTINUED", (int)config->sampling);
    if (config->first < 0 || config->first > all || config->count < 0 ||
        config->count > all - config->first)
        return cornu__fail(CORNU_ERR_ARGUMENT, "text: tokens %lld to %lld were requested, expected "
                           "a range within 0 to %lld", (long long)config->first,
                           (long long)config->first + (long long)config->count, (long long)all);
    *count = config->count ? config->count : all - config->first;
    const int64_t rows = config->sampling == CORNU_TEXT_CONTINUED ? config->batch_size : 1;
    if (*count > rows * T) return CORNU_OK;
    return cornu__fail(CORNU_ERR_DATA, "text: %lld tokens are too few for %lld sequence%s of %lld "
                       "and their successors, expected at least %lld", (long long)*count,
                       (long long)rows, rows == 1 ? "" : "s", (long long)T,
                       (long long)(rows * T + 1));
}

CornuDataset *cornu_text_dataset_from(const CornuTextDatasetConfig *config)
{
    int64_t count = 0;
    if (cornu__refused() || check_text_dataset(config, &count)) return cornu__null();
    const CornuArray tokens = config->text->tokens;
    const int64_t    T = config->sequence_length;
    CornuDataset    *dataset = cornu__allocate(1, sizeof *dataset);
    if (!dataset) return cornu__null();
    atomic_init(&dataset->owners, 1);
    dataset->kind = &text_kind;
    dataset->components = 2;
    for (int c = 0; c < 2; c++) {
        dataset->type[c] = cornu_type(tokens.type.dtype, T);
        dataset->bytes[c] = cornu_type_bytes(dataset->type[c]);
    }
    Windows *text = dataset->own = cornu__allocate(1, sizeof *text);
    if (!text) goto fail;
    *text = (Windows){
        .token_bytes = cornu_dtype_size(tokens.type.dtype), .length = T,
        .sampling = config->sampling, .seed = config->seed, .places = count - T,
        .rows = config->batch_size,
    };
    if (config->sampling == CORNU_TEXT_CONTINUED)
        text->steps = (count - 1) / (config->batch_size * T);
    dataset->count = config->sampling == CORNU_TEXT_RANDOM ? config->samples
                   : config->sampling == CORNU_TEXT_BLOCKS ? count / (T + 1)
                                                           : text->rows * text->steps;
    text->tokens = cornu__allocate((size_t)count, text->token_bytes);
    if (!text->tokens) goto fail;
    memcpy(text->tokens, (const char *)tokens.data + (size_t)config->first * text->token_bytes,
           (size_t)count * text->token_bytes);
    return dataset;
fail:
    cornu_dataset_free(dataset);
    return cornu__null();
}
