/* Shakespeare in blocks, the last tenth for testing. */
#include "shakespeare.h"

#include <stdio.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "text.h"

enum { STEPS = CORNU_SHAKESPEARE_STEPS, BLOCK = STEPS + 1, CHARACTERS = 256, TESTED = 10 };

/* The first blocks of a part of the text, at most `limit` of them. */
static CornuStatus cut(const uint8_t *characters, int64_t count, int64_t limit, CornuArray *x,
                       CornuArray *y)
{
    const int64_t all = count / BLOCK, blocks = limit && all > limit ? limit : all;
    *x = cornu_array(cornu__allocate((size_t)blocks, STEPS), CORNU_U8, blocks, STEPS);
    *y = cornu_array(cornu__allocate((size_t)blocks, STEPS), CORNU_U8, blocks, STEPS);
    if (!x->data || !y->data) return CORNU_ERR_MEMORY;
    for (int64_t b = 0; b < blocks; b++) {
        memcpy((uint8_t *)x->data + b * STEPS, characters + b * BLOCK, STEPS);
        memcpy((uint8_t *)y->data + b * STEPS, characters + b * BLOCK + 1, STEPS);
    }
    return CORNU_OK;
}

static CornuStatus fill(CornuTrainTest *data, const CornuTextData *text, int64_t limit)
{
    const int64_t  all = text->tokens.type.shape.extent[0], tested = all / TESTED;
    const uint8_t *characters = text->tokens.data;
    if (tested < BLOCK)
        return cornu__fail(CORNU_ERR_DATA, "%s: a tenth is for testing, expected at least %d "
                           "characters there, a sequence of %d and its successor",
                           text->description, BLOCK, STEPS);
    CORNU__TRY(cut(characters, all - tested, limit, &data->train_x, &data->train_y));
    CORNU__TRY(cut(characters + all - tested, tested, limit, &data->test_x, &data->test_y));
    const int length = snprintf(data->description, sizeof data->description, "%s",
                                text->description);
    snprintf(data->description + length, sizeof data->description - (size_t)length,
             "; %lld sequences of %d to train, %lld to test",
             (long long)data->train_x.type.shape.extent[0], STEPS,
             (long long)data->test_x.type.shape.extent[0]);
    return CORNU_OK;
}

static CornuTrainTest *load(const CornuTrainTestConfig *config)
{
    if (config->limit < 0)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "shakespeare: limit is %lld, expected 1 or "
                                "more, or 0 for all", (long long)config->limit);
    CornuTextData *text = cornu_text_load(.data = config->data, .seed = config->seed,
                                          .progress = config->progress,
                                          .context = config->context);
    if (!text) return NULL;
    CornuTrainTest *data = cornu__allocate(1, sizeof *data);
    CornuStatus     status = data ? CORNU_OK : CORNU_ERR_MEMORY;
    if (data) {
        data->name = "shakespeare";
        data->classes = CHARACTERS;
        data->things = "characters";
        data->synthetic = text->synthetic;
        status = fill(data, text, config->limit);
    }
    cornu_text_free(text);
    if (!status) return data;
    cornu_train_test_free(data);
    return NULL;
}

CornuTrainTest *cornu_shakespeare_load_from(const CornuTrainTestConfig *config)
{
    return cornu__refused() ? NULL : cornu__loaded(load(config));
}
