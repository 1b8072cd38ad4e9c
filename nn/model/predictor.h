/*
 * Predictors: one model, many callers.
 *
 *     CornuPredictor *predictor = cornu_predictor(model);
 *     ...on any number of threads:
 *     cornu_predictor_predict(predictor, &x, &y);
 *
 * A model belongs to one thread at a time (model.h); a predictor is for any number at once. It has
 * a copy of the model on a device of its own, made once: all callers share its weights, and
 * training or freeing the model afterwards changes nothing. Memory for the values between inputs
 * and outputs is per caller: there are as many sets as calls have overlapped, each is used again,
 * and after the first calls of a size nothing is allocated (but by layers that run on the host,
 * for strings).
 *
 * A row's prediction has the bits of cornu_predict, whatever the number of threads, of callers, and
 * of rows computed with it (but see fit.h for products by transposed matrices: there, the bits of
 * cornu_predict with .batch_size = .max_batch_size, given the same rows).
 */
#ifndef CORNU_NN_PREDICTOR_H
#define CORNU_NN_PREDICTOR_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuPredictor CornuPredictor;

typedef struct {
    char         unset;
    CornuModel  *model;            /* required: with weights, that is built or loaded; compiled or
                                      not */
    CornuDevice *device;           /* the predictor opens one like it, of the same name, shards and
                                      precision; default the model's, else "cpu". Policies apply as
                                      if the model had been compiled there */
    int64_t      max_batch_size;   /* default 32: rows computed at once; a call of more takes
                                      several turns. A model of a fixed batch size has that */
    int          threads;          /* default the device's. 1: a call computes on its own thread
                                      alone, which is fastest with as many callers as processors.
                                      With more, one call at a time has the threads, and calls
                                      beside it compute on their own */
} CornuPredictorConfig;

/* The caller frees it; the model may be freed before. NULL with a pending error:
 *   CORNU_ERR_ARGUMENT     no model, one that is not built, a negative number, or a device that
 *                          several processes share
 *   CORNU_ERR_BUSY         another thread uses the model now
 *   CORNU_ERR_UNSUPPORTED  a stateful layer, whose states callers would share; or a layer that
 *                          cannot be copied, as cornu_model_clone says */
CornuPredictor *cornu_predictor_from(const CornuPredictorConfig *config);
#define cornu_predictor(...) \
    cornu_predictor_from(&(CornuPredictorConfig){ .unset = 0, __VA_ARGS__ })

/* No call may be under way. */
void cornu_predictor_free(CornuPredictor *predictor);

/*
 * Predicts, from any thread. x: an array for each input; to: one for each output, in the model's
 * order (by name: cornu_model_order_inputs, with cornu_predictor_model). All have the same number
 * of rows, at least 1, in axis 0; but a function (cornu_model_is_function) is run once on arrays of
 * any extents that its types leave open. Where the rows of a loaded graph depend on each other, all
 * are computed at once. Inputs are of any number type, as for cornu_predict, outputs f32.
 * CORNU_ERR_SHAPE or CORNU_ERR_DTYPE for others, before anything is computed. CORNU_ERR_VALUE for
 * bad data, such as an index out of range; of `to` some rows are then written.
 *
 * On a pjrt device calls take turns; elsewhere they compute at the same time.
 */
CornuStatus cornu_predictor_predict(CornuPredictor *predictor, const CornuArray *x,
                                    const CornuArray *to);

/* ---- What it expects and gives ---- */

int cornu_predictor_input_count(const CornuPredictor *predictor);   /* arrays that a call takes */
int cornu_predictor_output_count(const CornuPredictor *predictor);  /* and that it fills        */

/* The name of input i: the key of the model's dictionary, else the layer's name. NULL past the
 * last. */
const char *cornu_predictor_input_name(const CornuPredictor *predictor, int i);
/* Likewise of output i. */
const char *cornu_predictor_output_name(const CornuPredictor *predictor, int i);

/* The type of input i. Axis 0, the batch, and extents that may differ from call to call are
 * CORNU_NONE. The dtype is the model's, f32 unless it was made with another: numbers of other types
 * are converted, integers scaled by the model's .input_scale. All zeros past the last. */
CornuType cornu_predictor_input_type(const CornuPredictor *predictor, int i);
/* Likewise of output i, f32. */
CornuType cornu_predictor_output_type(const CornuPredictor *predictor, int i);

/* The types of all outputs for such inputs, as cornu_predictor_predict wants them: with the extents
 * that are otherwise open. From any thread; errors are those of cornu_predictor_predict. */
CornuStatus cornu_predictor_output_types(CornuPredictor *predictor, const CornuArray *x,
                                         CornuType *types);

/* Rows computed at once: .max_batch_size, or those of a model of a fixed batch size. */
int64_t cornu_predictor_max_batch_size(const CornuPredictor *predictor);

/* Whether a call of more rows takes several turns, and rows of several calls may be those of one:
 * not of a function (cornu_model_is_function), nor where the rows of a batch depend on each other.
 * This is known after the first prediction, and true before. */
bool cornu_predictor_cuts(const CornuPredictor *predictor);

/* The predictor's copy: for names, class names and notes, from any thread. It must not be run or
 * changed. */
const CornuModel *cornu_predictor_model(const CornuPredictor *predictor);

#ifdef __cplusplus
}
#endif
#endif
