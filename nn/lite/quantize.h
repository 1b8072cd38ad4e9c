/*
 * Models of 8 bits: post-training quantization, for inference on small devices.
 *
 *     CornuInt8Model *small = cornu_quantize(model, .data = train, .samples = 500);
 *     cornu_int8_predict(small, images, probabilities);
 *     cornu_int8_save(small, "digits.tflite");
 *
 * real value = scale (integer - zero point). Weights are int8 with a scale for each output channel,
 * activations int8 with one scale, biases and sums i32; the ranges of activations are those that
 * the float model has on the calibration data. Results are the integers of LiteRT's reference
 * kernels, whatever the processor and the number of threads.
 *
 * Sources: "LiteRT 8-bit quantization specification"; Jacob et al., "Quantization and Training of
 * Neural Networks for Efficient Integer-Arithmetic-Only Inference", arXiv 1712.05877.
 */
#ifndef CORNU_NN_LITE_QUANTIZE_H
#define CORNU_NN_LITE_QUANTIZE_H

#include "../../datasets/pipeline/dataset.h"
#include "../../device/edgetpu/edgetpu.h"
#include "../model/model.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuInt8Model CornuInt8Model;

typedef struct {
    char          unset;
    CornuModel   *model;                       /* required: built, with the weights to quantize */
    CORNU_DATA_MEMBERS;                        /* of CornuData: calibration, as predict takes it */
    int64_t       samples;                     /* that are used, the first ones; default 512 */
    int           threads;                     /* that predict; default: one for each processor */
} CornuQuantizeConfig;

/* Keeps nothing of the model and the data. NULL on failure: CORNU_ERR_UNSUPPORTED names a layer
 * or operator that has no form of 8 bits, CORNU_ERR_VALUE data whose activations are not finite.
 * Free with cornu_int8_free. */
CornuInt8Model *cornu_quantize_from(const CornuQuantizeConfig *config);
#define cornu_quantize(...) \
    cornu_quantize_from(&(CornuQuantizeConfig){ .unset = 0, __VA_ARGS__ })
/* Once; NULL is ignored. */
void cornu_int8_free(CornuInt8Model *model);

/* Writes a .tflite file, of int8 inputs and outputs; or by its suffix an .onnx file, with pairs of
 * QuantizeLinear and DequantizeLinear. */
CornuStatus     cornu_int8_save(const CornuInt8Model *model, const char *path);
/* Loads a .tflite file that is quantized in whole and has no variables; cornu_model_load loads
 * others, and these as well, as a model that computes in f32 and can be trained (its note
 * "arithmetic" says so). The caller frees it; NULL, not pending, on failure. */
CornuInt8Model *cornu_int8_load(const char *path);

/* x: rows of the model's input, f32, or integers, which are multiplied by the input_scale of the
 * model that was quantized; a file does not hold it, so that it is 1 for a loaded model. `to` gets
 * f32 (rows, …). For a model with one input and one output. One caller at a time. */
CornuStatus cornu_int8_predict(CornuInt8Model *model, CornuArray x, CornuArray to);
/* The same with an array for each input and each output. */
CornuStatus cornu_int8_predict_many(CornuInt8Model *model, const CornuArray *xs, int inputs,
                                    const CornuArray *tos, int outputs);

/* The same in the integers of the model: `rows` rows of int8, and of the result. */
CornuStatus cornu_int8_predict_integers(CornuInt8Model *model, int64_t rows, const int8_t *x,
                                        int8_t *y);

typedef struct {
    double scale;
    int    zero_point;
} CornuScale;

/* What the integers of the first input and output stand for: scale (integer - zero_point). */
CornuScale cornu_int8_input_scale(const CornuInt8Model *model);
CornuScale cornu_int8_output_scale(const CornuInt8Model *model);   /* of the first output */

/* The shape of the first input, with CORNU_NONE for the batch. */
CornuShape cornu_int8_input_shape(const CornuInt8Model *model);
CornuShape cornu_int8_output_shape(const CornuInt8Model *model);   /* of the first output */

int        cornu_int8_input_count(const CornuInt8Model *model);    /* the number of inputs  */
int        cornu_int8_output_count(const CornuInt8Model *model);   /* the number of outputs */
/* The shape of output i, from 0, of a model with several. */
CornuShape cornu_int8_output_shape_at(const CornuInt8Model *model, int i);

/* Bytes of weights and biases. */
int64_t cornu_int8_bytes(const CornuInt8Model *model);

/* ---- On the device edgetpu, emulated ---- */

/* The number of its operators. */
int cornu_int8_operator_count(const CornuInt8Model *model);

/* The modelled cost of one row; and unless it is NULL the operators in their order, with what
 * Coral's compiler would map. CORNU_ERR_MEMORY. */
CornuStatus cornu_int8_edgetpu_cost(const CornuInt8Model *model, CornuEdgeTpuCost *cost,
                                    CornuEdgeTpuOperator *operators);

#ifdef __cplusplus
}
#endif
#endif
