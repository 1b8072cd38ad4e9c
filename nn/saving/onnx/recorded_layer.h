/* A layer as a program of ops, for files that hold it op by op. */
#ifndef CORNU_NN_ONNX_RECORDED_LAYER_H
#define CORNU_NN_ONNX_RECORDED_LAYER_H

#include "../../../device/ops/rewrite.h"
#include "../../layers/layer_internal.h"

/* Whether a format has something for an op of these operands. */
typedef bool CornuHasOp(const CornuOpCall *call, const void *format);

/* What is recorded, for one size of the batch and of other extents. */
typedef struct {
    CornuLayer      *layer;         /* NULL: the activation, of one operand */
    CornuActivation  activation;
    int              in_count;
    const CornuType *in;
    const CornuType *masks;         /* NULL, or of each input: rank 0 for none */
    bool             masks_given;   /* to this call; else they come with the inputs */
    int64_t          rows;
    CornuHasOp      *has;           /* others are decomposed, unless they are primitive */
    const void      *format;
} CornuRecording;

/* Inputs, masks, weights and constants are inputs of the program, in this order; its outputs are
 * results, their masks, and then all of those inputs that the layer reads. */
typedef struct {
    CornuGraph   *graph;
    CornuProgram *program;
    CornuLayer   *layer;
    CornuTensor  *in[CORNU_MAX_LAYER_TENSORS], *masks[CORNU_MAX_LAYER_TENSORS];
    CornuTensor  *out[CORNU_MAX_LAYER_TENSORS], *out_masks[CORNU_MAX_LAYER_TENSORS];
    int           outputs, weight_count;
    CornuTensor **weights;          /* NULL where the layer reads none */
    CornuTensor **constants;
    CornuArray   *arrays;           /* of the constants, copied: all floats f32, all integers i64 */
    int           array_count, array_space, constant_space;
    CornuTensor **fetched;
    int           fetched_count, fetched_space;
} CornuRecordedLayer;

/* Fills a record of zeros, with functions kept (tensor/function_internal.h); nothing is compiled.
 * To be freed in any case. */
CornuStatus cornu__record_layer(CornuRecordedLayer *record, CornuDevice *device,
                                const CornuRecording *recording);
void        cornu__recorded_layer_free(CornuRecordedLayer *record);

/* Whether the programs differ in extents alone. */
bool cornu__programs_alike(const CornuProgram *a, const CornuProgram *b);
bool cornu__recorded_alike(const CornuRecordedLayer *a, const CornuRecordedLayer *b);

/* Whether reduce_mean is over any axis: over none, formats' reductions are over all. */
bool cornu__reduces_some(const CornuOpCall *call);

/* Whether resize is of a kind that formats have too: nearest, or bilinear without antialias. */
bool cornu__resizes_plainly(const CornuOpCall *call);

#endif
