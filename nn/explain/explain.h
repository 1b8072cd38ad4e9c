/*
 * What a model's step is on a device: which ops it takes and how the device computes each of them,
 * its memory, where its time goes, measured on this machine and modelled on a TPU, and what to
 * change so that it fits the TPU better.
 *
 *     CornuExplanation *explanation = cornu_explain(model, .device_name = "tpu:v3-8");
 *     cornu_explanation_print(explanation, CORNU_EXPLAIN_OVERVIEW, stdout);
 *     char *json = cornu_explanation_to_json(explanation);
 *     ...
 *     free(json);
 *     cornu_explanation_free(explanation);
 *
 * The step is a training step if the model can be trained: with what it was compiled with, else
 * with .loss, else with a loss that fits how its outputs are made. Otherwise, and with .predict, it
 * is a prediction step. A function (cornu_model_is_function) runs once on inputs of its shapes. The
 * texts say which step it is and why, and what was assumed.
 *
 * The model stays as it is: a copy of it runs, on invented data. Those are numbers from 0 to 1, and
 * for inputs that are looked up in a table numbers of its rows.
 *
 * Numbers from a TPU's profile are *modelled* (device/tpu/model.h), others *measured* here; tables
 * and JSON say which they are.
 */
#ifndef CORNU_NN_EXPLAIN_H
#define CORNU_NN_EXPLAIN_H

#include <stdio.h>

#include "../../device/mesh/layout_map.h"
#include "../../device/tpu/model.h"
#include "../model/strategy.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuExplanation CornuExplanation;

typedef struct {
    char         unset;
    CornuModel  *model;            /* required: built, of layers that can be copied, as
                                      cornu_model_clone says */
    CornuDevice *device;           /* default: one of .device_name, opened and closed here */
    const char  *device_name;      /* default "cpu" */
    CornuMesh    mesh;             /* with axes: the step is planned and modelled on so many shards
                                      of .device_name, whatever memory they or this machine have;
                                      no .device then, and .no_run */
    const CornuLayoutRow *layout_map;   /* how the mesh cuts weights; default none; not copied */
    const CornuPipelineParallelConfig *pipeline;   /* the training step is cut into stages, planned
                                      and modelled as with .mesh, or on one shard for each stage:
                                      .stages, .microbatches, .schedule and .cut_at of it count.
                                      No .device then, and CORNU_EXPLAIN_PIPELINE is the only
                                      part. Not copied */
    const char  *name;             /* in the texts; default the model's */
    int64_t      batch_size;       /* default the model's own, else 32 */
    int64_t      extent;           /* in place of extents, besides the batch, that the model leaves
                                      open; default 224 for images, (B, H, W, C) and (B, C, H, W),
                                      else 128, or another of a few that the model takes */
    bool         predict;          /* explain the prediction step */
    const char  *loss;             /* Keras' name, of every output; default: above */
    int64_t      steps;            /* to measure after a first one; default 5, fewer where they take
                                      more than 20 s together */
    bool         no_run;           /* the step is compiled and modelled, and not run */
    bool         others;           /* model 1, 2, 4 and 8 shards and other TPUs, too */
    bool         remat;            /* of a training step also the memory that it takes with each
                                      mode of rematerialization (config/remat.h) */
    CornuType    inputs[CORNU_MAX_MODEL_TENSORS];   /* of a batch's arrays, such as u8 pixels;
                                      axis 0 is .batch_size. A rank of 0: default f32, or what the
                                      model's input is */
    CornuType    labels[CORNU_MAX_MODEL_TENSORS];   /* default i32 class numbers, or f32 */
    int64_t      epoch_samples;    /* for the times of epochs; default: none are given */
    const char  *target;           /* what is predicted, in one word; default "class" */
} CornuExplainConfig;

/* The caller frees it. NULL with a pending error:
 *   CORNU_ERR_ARGUMENT     no model, one that is not built, a negative number, an unknown loss; a
 *                          mesh or layouts that do not fit (strategy.h)
 *   CORNU_ERR_DEVICE       an unknown device
 *   CORNU_ERR_SHAPE        no extent that was tried fits the model, or a batch that does not fit it
 *                          or the device's shards
 *   CORNU_ERR_MEMORY       the step does not fit the device; the message says what is in use
 *   CORNU_ERR_UNSUPPORTED  a layer that cannot be copied, an op that the device does not have, or
 *                          with .loss a model that cannot be trained
 * A device of several shards is replaced by one of a single shard, which the texts say, for a
 * function, a model whose rows depend on each other, and one whose file fixes fewer rows. */
CornuExplanation *cornu_explain_from(const CornuExplainConfig *config);
#define cornu_explain(...) \
    cornu_explain_from(&(CornuExplainConfig){ .unset = 0, __VA_ARGS__ })
/* With the device that was opened for it; NULL is ignored. */
void cornu_explanation_free(CornuExplanation *explanation);

typedef enum {
    CORNU_EXPLAIN_OVERVIEW,   /* the answers, at most 80 columns and about 40 lines */
    CORNU_EXPLAIN_ALL,        /* a row for each step of the plan, at most 120 columns */
    CORNU_EXPLAIN_OPS,        /* a row for each op as it was recorded: how the device computes it
                                 and why not better (device/placement/placement.h) */
    CORNU_EXPLAIN_MESH,       /* of a device with a mesh: how each weight is cut, what shards
                                 exchange, memory of a shard, modelled time; 100 columns */
    CORNU_EXPLAIN_PIPELINE    /* with .pipeline: cornu_pipeline_print, 120 columns */
} CornuExplainPart;

/* Prints a part as text. CORNU_ERR_ARGUMENT for an unknown part, for that of a mesh or of stages if
 * there are none, and for any other than that of stages if there are. */
CornuStatus cornu_explanation_print(const CornuExplanation *explanation, CornuExplainPart part,
                                    FILE *to);

/* The same as a string, which the caller frees by free(). NULL with a pending error when out of
 * memory. */
char *cornu_explanation_to_text(const CornuExplanation *explanation, CornuExplainPart part);

/* Everything as JSON, likewise a string:
 *
 *     {"model", "device", "kind": "emulated" | "native", "step": "training" | "prediction" |
 *      "function", "loss", "reasons": […], "inputs": [{"name", "type"}], "batch_size", "policy",
 *      "parameters", "shards", "threads", "flops", …,
 *      "placed": {"native", "decomposed", "reference", "refused"},
 *      "ops": [{"op", "name", "layer", "result", "placed", "how", "why", "fallbacks", "step"}],
 *      "memory_of_a_shard": {"capacity", "total", "weights", "slots", …: {"now", "peak"}},
 *      "remat": {"none", "full", "activations", "larger_than"},
 *      "vmem": {"bytes", "capacity", "layer"},
 *      "mxu": {"rows", "columns", "tiles", "useful_macs", "padded_macs", "useful"},
 *      "padding": [{"layer", "axis": "K" | "N", "extent", "next", "padding", "mxu_time"}],
 *      "measured": {"step_s", "runs", "clock"}, "modelled": [a row for each TPU],
 *      "steps": [{"layer", "name", "kind", "kernel", "declined": [{"kernel", "why"}],
 *                 "in": [types], "out": [types], …, "measured": {"seconds"}, "modelled": {…}}],
 *      "mesh": {"axes": [{"name", "shards"}], "batch": [names],
 *               "weights": [{"path", "type", "layout": [axes of the mesh or null], "slice",
 *                            "bytes"}], "gradient_bytes",
 *               "collectives": [{"layer", "op", "axes": [names], "group", "groups", "times",
 *                                "bytes", "wire_bytes", "links_s"}]},
 *      "advice": [texts]}
 *
 * With .pipeline it is {"model", "policy", "batch_size", "pipeline": {"microbatches", "shards",
 * "rows", "schedule", "slots", "bubble", "least_bubble", "step_s", "idle", "stages": [{"first",
 * "last", "share", "forward_s", …}]}}, the fields of CornuPipelineReport.
 *
 * "mesh" is null on a device without one. Bytes there are of a shard; a collective's are what goes
 * into a sum, and what comes out of a gather, of all its `times` in a step.
 *
 * "padding" lists the layers of which an extent fills less than three quarters of the tiles of the
 * MXU that it takes: `padding` of each row or column of tiles is empty, `next` would take the same
 * time, and `mxu_time` is the part of the MXU's time that the layer's padding takes. "vmem" and
 * "mxu" are null on a device that emulates nothing, and "measured" where nothing ran. "remat",
 * null without .remat, has the most bytes of a shard at once with each of these modes. */
char *cornu_explanation_to_json(const CornuExplanation *explanation);

/* The compiled step, owned by the explanation. */
CornuExecutable     *cornu_explanation_executable(const CornuExplanation *explanation);
/* On a device that emulates a TPU, the step's model on that; NULL on another. */
const CornuTpuModel *cornu_explanation_model(const CornuExplanation *explanation);
/* What a step was measured to take, in seconds; 0 if none ran. */
double               cornu_explanation_seconds(const CornuExplanation *explanation);
/* The name of the dtype policy that the step computes in. */
const char          *cornu_explanation_policy(const CornuExplanation *explanation);

#ifdef __cplusplus
}
#endif
#endif
