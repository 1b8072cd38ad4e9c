#include "augment.h"

#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/random.h"
#include "../pipeline/dataset_internal.h"

/* Random numbers of augmentation: counter = (0, index, epoch, this), see device/random.h; as with
 * shuffle's, streams never coincide with those of a model. */
static const uint32_t augment_generator = UINT32_C(0xFFFF0004);

typedef struct {
    int64_t  shift;
    bool     flip;
    uint64_t seed;
} Augmentation;

/* The change to one image: flipped or not, then shifted down and right. */
typedef struct {
    int64_t down, right;
    bool    flip;
} Change;

/* The upper half of a word times n is uniform below n, up to differences of 2^-32. */
static int64_t draw_shift(uint32_t word, int64_t shift)
{
    return (int64_t)((uint64_t)word * (uint64_t)(2 * shift + 1) >> 32) - shift;
}

static Change draw_change(const CornuDataset *dataset, CornuSample at)
{
    const Augmentation *augmentation = dataset->own;
    uint32_t            word[4];
    cornu_philox(augmentation->seed, (uint32_t[]){ 0, (uint32_t)at.index, (uint32_t)at.epoch,
                                                   augment_generator }, word);
    return (Change){ .down = draw_shift(word[0], augmentation->shift),
                     .right = draw_shift(word[1], augmentation->shift),
                     .flip = augmentation->flip && word[2] >> 31 };
}

/* to(h, w) = from(h - down, w - right), mirrored: from(h - down, W - 1 - (w - right)); zero where
 * that is outside. */
static void change_image(Change change, CornuShape shape, size_t pixel, const char *from, char *to)
{
    const int64_t H = shape.extent[0], W = shape.extent[1];
    const int64_t begin = change.right > 0 ? change.right : 0;
    const int64_t end = change.right < 0 ? W + change.right : W;
    memset(to, 0, (size_t)(H * W) * pixel);
    for (int64_t h = 0; h < H; h++) {
        if (h < change.down || h - change.down >= H) continue;
        const char *in = from + (size_t)((h - change.down) * W) * pixel;
        char       *out = to + (size_t)(h * W) * pixel;
        if (!change.flip)
            memcpy(out + (size_t)begin * pixel, in + (size_t)(begin - change.right) * pixel,
                   (size_t)(end - begin) * pixel);
        for (int64_t w = begin; change.flip && w < end; w++)
            memcpy(out + (size_t)w * pixel, in + (size_t)(W - 1 - (w - change.right)) * pixel,
                   pixel);
    }
}

static CornuStatus augment_fetch(CornuStage *stage, CornuSample at, void *const *to,
                                 int64_t *valid)
{
    const CornuDataset *dataset = stage->dataset;
    const CornuShape    shape = dataset->type[0].shape;
    if (at.epoch > UINT32_MAX || at.index > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "augment: epoch %lld, element %lld; expected 0 to %lld",
                           (long long)at.epoch, (long long)at.index, (long long)UINT32_MAX);
    void *element[CORNU_MAX_COMPONENTS];
    memcpy(element, to, sizeof *element * (size_t)dataset->components);
    element[0] = stage->own;
    CORNU__TRY(cornu__stage_fetch(stage->source, at, element, valid));
    if (!*valid) return CORNU_OK;
    change_image(draw_change(dataset, at), shape,
                 dataset->bytes[0] / (size_t)(shape.extent[0] * shape.extent[1]),
                 stage->own, to[0]);
    return CORNU_OK;
}

static CornuStatus augment_open(CornuStage *stage)
{
    stage->own = cornu__allocate_aligned(stage->dataset->bytes[0]);
    return stage->own ? CORNU_OK : CORNU_ERR_MEMORY;
}

static void augment_close(CornuStage *stage) { cornu__release(stage->own); }

static void augment_free(CornuDataset *dataset) { cornu__release(dataset->own); }

static const CornuDatasetKind augment_kind = { .name = "augment", .fetch = augment_fetch,
                                               .open = augment_open, .close = augment_close,
                                               .free = augment_free };

static CornuStatus check_augment(const CornuDataset *source, int64_t shift)
{
    const CornuShape shape = source->type[0].shape;
    CornuText        text;
    if (source->batch_size)
        return cornu__fail(CORNU_ERR_ARGUMENT, "augment: the data set comes in batches of %lld; "
                           "augment before batch", (long long)source->batch_size);
    if (source->count == CORNU_NONE)
        return cornu__fail(CORNU_ERR_ARGUMENT, "augment: the data set repeats endlessly; augment "
                           "before repeat");
    if (source->count > UINT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "augment: %lld elements, expected at most %lld",
                           (long long)source->count, (long long)UINT32_MAX);
    if ((shape.rank != 2 && shape.rank != 3) || cornu_type_count(source->type[0]) == 0)
        return cornu__fail(CORNU_ERR_SHAPE, "augment: elements are %s, expected images (H, W) or "
                           "(H, W, C)", cornu_type_print(&text, source->type[0]));
    if (shift < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "augment: shift is %lld, expected 0 or more",
                           (long long)shift);
    if (shift >= shape.extent[0] || shift >= shape.extent[1])
        return cornu__fail(CORNU_ERR_SHAPE, "augment: shift is %lld, expected less than the "
                           "extents of the image, %s", (long long)shift,
                           cornu_shape_print(&text, shape));
    return CORNU_OK;
}

CornuDataset *cornu_dataset_augment_from(const CornuAugmentConfig *config)
{
    CornuDataset *augment = cornu__dataset_derive(config->source, &augment_kind, "augment");
    if (!augment) return NULL;
    Augmentation *augmentation = augment->own = cornu__allocate(1, sizeof *augmentation);
    if (augmentation && check_augment(augment->source, config->shift) == CORNU_OK) {
        *augmentation = (Augmentation){ config->shift, config->flip, config->seed };
        return augment;
    }
    cornu_dataset_free(augment);
    return cornu__null();
}
