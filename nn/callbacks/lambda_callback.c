/* Source: keras/src/callbacks/lambda_callback.py. */
#include "callbacks.h"

#include "../../device/memory_internal.h"

typedef struct {
    CornuCallback base;
    void         *context;
} Lambda;

void *cornu_lambda_context(const CornuCallback *lambda)
{
    return ((const Lambda *)lambda)->context;
}

static void free_lambda(CornuCallback *base) { cornu__release(base); }

CornuCallback *cornu_lambda_callback_from(const CornuLambdaCallbackConfig *config)
{
    if (cornu__refused()) return NULL;
    Lambda *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (Lambda){
        .base = { .wants_batch_logs = cornu_always_wants_logs,
                  .epoch_begin = config->epoch_begin, .epoch_end = config->epoch_end,
                  .train_begin = config->train_begin, .train_end = config->train_end,
                  .train_batch_begin = config->train_batch_begin,
                  .train_batch_end = config->train_batch_end,
                  .test_begin = config->test_begin, .test_end = config->test_end,
                  .test_batch_begin = config->test_batch_begin,
                  .test_batch_end = config->test_batch_end,
                  .predict_begin = config->predict_begin, .predict_end = config->predict_end,
                  .predict_batch_begin = config->predict_batch_begin,
                  .predict_batch_end = config->predict_batch_end,
                  .free = free_lambda },
        .context = config->context,
    };
    return &self->base;
}
