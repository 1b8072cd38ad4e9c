/*
 * Shuffling elements that come in order: the next one is drawn from a window of them, and the
 * following element of the source takes its place.
 */
#include <string.h>

#include "../../device/memory_internal.h"
#include "dataset_internal.h"

/* Random numbers of windows: counter = (i / 4, its upper half, epoch, this), see device/random.h;
 * as with shuffle's, streams never coincide with those of a model. */
static const uint32_t window_generator = UINT32_C(0xFFFF0005);

typedef struct { int64_t size; uint64_t seed; } Settings;

typedef struct {
    void   **memory;                 /* of each element, one block: see cornu__element_allocate */
    void   *(*at)[CORNU_MAX_COMPONENTS];
    int64_t *valid;                  /* rows that hold data, of each */
    int64_t  filled;                 /* elements in the window */
    int64_t  epoch;
    int64_t  read;                   /* of the source in that epoch */
    bool     ended;
} Window;

static int64_t draw_from_window(const Settings *settings, const Window *window, CornuSample at)
{
    const uint32_t word = cornu__sample_draw(settings->seed, window_generator, at);
    return (int64_t)((uint64_t)word * (uint64_t)window->filled >> 32);
}

/* Reads the next element of the source into place i; at the end there is none. */
static CornuStatus read_next(CornuStage *stage, Window *window, int64_t i)
{
    const int64_t count = stage->source->dataset->count;
    if (!window->ended && (count < 0 || window->read < count)) {
        window->valid[i] = 0;
        CORNU__TRY(cornu__stage_fetch(stage->source, (CornuSample){ window->epoch, window->read },
                                      window->at[i], &window->valid[i]));
        window->read++;
        window->ended = window->valid[i] == 0;
    } else {
        window->ended = true;
    }
    return CORNU_OK;
}

static CornuStatus begin_window(CornuStage *stage, int64_t epoch)
{
    const Settings *settings = stage->dataset->own;
    Window         *window = stage->own;
    window->epoch = epoch;
    window->read = window->filled = 0;
    window->ended = false;
    while (window->filled < settings->size) {
        CORNU__TRY(read_next(stage, window, window->filled));
        if (window->ended) break;
        window->filled++;
    }
    return CORNU_OK;
}

/* Element i of the window was given: the next one, or at the end the last, takes its place. */
static CornuStatus replace(CornuStage *stage, Window *window, int64_t i)
{
    if (!window->ended) CORNU__TRY(read_next(stage, window, i));
    if (!window->ended) return CORNU_OK;
    const int64_t last = --window->filled;
    for (int c = 0; c < stage->dataset->components; c++) {
        void *swapped = window->at[i][c];
        window->at[i][c] = window->at[last][c];
        window->at[last][c] = swapped;
    }
    window->valid[i] = window->valid[last];
    return CORNU_OK;
}

static CornuStatus draw_next(CornuStage *stage, CornuSample at, void *const *to, int64_t *valid)
{
    Window *window = stage->own;
    *valid = 0;
    if (!window->filled) return CORNU_OK;
    const int64_t i = draw_from_window(stage->dataset->own, window, at);
    *valid = window->valid[i];
    for (int c = 0; c < stage->dataset->components; c++)
        memcpy(to[c], window->at[i][c], stage->dataset->bytes[c]);
    return replace(stage, window, i);
}

static void window_close(CornuStage *stage)
{
    const Settings *settings = stage->dataset->own;
    Window         *window = stage->own;
    if (!window) return;
    for (int64_t i = 0; window->memory && i < settings->size; i++)
        cornu__release(window->memory[i]);
    cornu__release(window->memory);
    cornu__release(window->at);
    cornu__release(window->valid);
    cornu__release(window);
}

static CornuStatus window_open(CornuStage *stage)
{
    const Settings *settings = stage->dataset->own;
    const size_t    size = (size_t)settings->size;
    Window         *window = stage->own = cornu__allocate(1, sizeof *window);
    if (!window) return CORNU_ERR_MEMORY;
    window->memory = cornu__allocate(size, sizeof *window->memory);
    window->at = cornu__allocate(size, sizeof *window->at);
    window->valid = cornu__allocate(size, sizeof *window->valid);
    if (!window->memory || !window->at || !window->valid) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < size; i++) {
        window->memory[i] = cornu__element_allocate(stage->dataset, window->at[i]);
        if (!window->memory[i]) return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

static void window_free(CornuDataset *dataset) { cornu__release(dataset->own); }

static const CornuDatasetKind window_kind = { .name = "shuffle", .fetch = cornu__fetch_in_turn,
                                              .begin = begin_window, .next = draw_next,
                                              .open = window_open, .close = window_close,
                                              .free = window_free, .in_order = true,
                                              .origin = cornu__origin_unknown };

CornuDataset *cornu_dataset_shuffle_window(CornuDataset *source, int64_t size, uint64_t seed)
{
    CornuDataset *dataset = cornu__dataset_derive(source, &window_kind, "shuffle");
    if (!dataset) return NULL;
    Settings *settings = dataset->own = cornu__allocate(1, sizeof *settings);
    if (settings && (size < 1 || size > INT32_MAX))
        cornu__fail(CORNU_ERR_ARGUMENT, "shuffle: a window of %lld elements, expected 1 to %d",
                    (long long)size, INT32_MAX);
    else if (settings) {
        const int64_t count = dataset->count;
        *settings = (Settings){ count > 0 && size > count ? count : size, seed };
        return dataset;
    }
    cornu_dataset_free(dataset);
    return cornu__null();
}
