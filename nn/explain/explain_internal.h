/*
 * An explanation: a compiled step, what was measured and modelled of it, and its texts. Measured
 * and modelled numbers are in separate columns, which say which they are.
 */
#ifndef CORNU_NN_EXPLAIN_INTERNAL_H
#define CORNU_NN_EXPLAIN_INTERNAL_H

#include <jansson.h>

#include "../../device/placement/placement.h"
#include "../config/serializable_internal.h"
#include "../training/training_internal.h"
#include "explain.h"
#include "types.h"

enum { CORNU_EXPLAIN_WIDTH = 80, CORNU_EXPLAIN_SHARDS = 4, CORNU_EXPLAIN_PROFILES = 8 };
enum { CORNU_EXPLAIN_ADVICE = 16, CORNU_EXPLAIN_NOTES = 8, CORNU_EXPLAIN_TEXT = 400 };

/* A copy of the model with its compiled step. */
typedef struct {
    CornuModel *model;
    CornuStep  *step;   /* the model's */
} CornuExplainSubject;

/* What this process exchanges with others in a step. */
typedef struct {
    int                        processes, rank;
    int                        own, shards;   /* this process' shards, of all */
    const CornuExecutableStep *steps;
    const CornuExchangeEvent  *exchanges;     /* of a run */
    int                        count;
} CornuExplainExchanges;

typedef struct {
    char   text[CORNU_EXPLAIN_TEXT];
    double gain_s;           /* of a step, modelled; by it they are ordered */
} CornuAdvice;

/* An extent of a layer's product that pads tiles by more than a quarter. */
typedef struct {
    char    layer[CORNU_EXPLAIN_TEXT / 4];
    char    axis;            /* 'K', 'N' */
    int64_t extent, next;    /* as it is, and with the tiles full */
    double  wasted_s;        /* MXU time of the layer's padding in a step, with its gradients */
} CornuPadded;

struct CornuExplanation {
    CornuExplainConfig config;
    CornuDevice       *device, *own_device;   /* the latter if it was opened here */
    char              *compiled;              /* JSON of what it was compiled with, or NULL */
    bool               trains, function;
    bool               alone;                 /* on one shard, whatever the device has */
    char               loss[CORNU_EXPLAIN_TEXT];
    char               notes[CORNU_EXPLAIN_NOTES][CORNU_EXPLAIN_TEXT];   /* why; what is assumed */
    int                note_count;
    struct CornuPipelinePlan *plan;           /* of the stages; NULL: none are asked for */
    CornuModelTypes  probe;
    CornuExplainSubject subject;
    CornuExecutable   *executable;
    CornuPlacedOp     *placed;
    int                placed_count;

    const char     *model, *policy, *description;
    int             own_f32;         /* layers with weights that compute in f32 by a dtype of their
                                        own */
    bool            fixed_f32;       /* products of f32 though the model's policy is another, as
                                        those of nodes of files */
    const char     *target;          /* what is predicted: "class", "character" */
    int64_t         targets;         /* predictions per sample */
    int64_t         parameters, trainable, batch, epoch_samples;
    int64_t         fixed_batch;     /* of the model; 0: any */
    int             shards, threads;
    CornuStatistics statistics;
    CornuMemory     memory;          /* of a shard */
    int64_t         remat_bytes[CORNU_REMAT_MODES];   /* at most, of a shard; 0: not found out */

    const CornuExecutableStep *steps;
    int                        step_count;
    CornuExplainExchanges      exchanges;

    /* Measured: seconds on this machine, in the median of `runs` runs, by wall clock if the device
     * has no profiler. 0 runs: nothing ran.
     * A step that several threads run for a shard each counts as their time / the threads. */
    double    *here_s;               /* by step */
    CornuStepEvent *events;          /* of that run, by step and thread; NULL: nothing ran */
    double     wall_s;               /* of the run */
    int        runs;
    CornuClock clock;

    /* Modelled; NULL and 0 on a device that emulates nothing. */
    const CornuTpuModel *tpu;        /* one row per step */
    const CornuTpuModel *doubled;    /* with twice the batch; NULL: not possible */
    const CornuTpuModel *by_shards[CORNU_EXPLAIN_SHARDS];      /* 1, 2, 4, 8; NULL: not possible */
    const CornuTpuModel *by_profile[CORNU_EXPLAIN_PROFILES];   /* each with its own shards */
};

/* ---- The step ---- */

/* As cornu_model_types, also of models with layers on the host; they are those of the other layers
 * then. *taken: what open extents became, 0 for the usual ones; CORNU_NONE: none is open. */
CornuStatus cornu__model_types(const CornuModel *model, int64_t batch, int64_t extent,
                               CornuModelTypes *to, int64_t *taken);

/* For a batch of so many rows, with the explanation's extent. */
CornuStatus cornu__explain_probe(CornuExplanation *e, int64_t batch, CornuModelTypes *to);

/* Finds out whether the step trains and with which loss; opens a device of one shard where the
 * model needs that. */
CornuStatus cornu__explain_choose(CornuExplanation *e);

/* A copy of the model, compiled for the device with its step for a batch; `weights`: with the
 * model's own. cornu_model_free(to->model) frees both. */
CornuStatus cornu__explain_make(const CornuExplanation *e, CornuDevice *device,
                                const CornuModelTypes *probe, bool weights,
                                CornuExplainSubject *to);

/* Runs the step on invented data and fills its times and those of its parts. */
CornuStatus cornu__explain_measure(CornuExplanation *e);

/* With .remat: the memory of the step with each mode of rematerialization. */
CornuStatus cornu__explain_remat(CornuExplanation *e);
void        cornu__explain_print_remat(const CornuExplanation *e, FILE *to);
json_t     *cornu__explain_remat_json(const CornuExplanation *e);

/* The device's emulated TPU, and with .others more of them. */
CornuStatus cornu__explain_model_all(CornuExplanation *e);

void cornu__explain_note(CornuExplanation *e, const char *format, ...) CORNU__PRINTF(2, 3);

/* What comes first: a device without memory, of the mesh of the config. */
CornuStatus cornu__explain_open_mesh(CornuExplanation *e);

/* ---- The mesh (mesh.c) ---- */

/* Without axes if there is none. */
const CornuMesh *cornu__explain_mesh(const CornuExplanation *e);

/* Exchanges of a layer, of one kind and over the same axes of the mesh. */
typedef struct {
    const char *layer, *op;    /* the scope, "dense_1/gradient" */
    unsigned    axes;
    int         group, groups, times;
    int64_t     bytes;
    double      wire_bytes, links_s;
} CornuExplainCollective;

/* In the order of the step, those of a loop once for each of its steps; NULL if out of memory. The
 * caller releases the list. */
CornuExplainCollective *cornu__explain_collectives(const CornuExplanation *e, int *count);
/* Of a shard, of the weights that are trained. */
int64_t     cornu__explain_gradient_bytes(const CornuExplanation *e);
/* CORNU_ERR_ARGUMENT if there is none; JSON's null then. */
CornuStatus cornu__explain_print_mesh(const CornuExplanation *e, FILE *to);
json_t     *cornu__explain_mesh_json(const CornuExplanation *e);

/* ---- Stages (pipeline.c) ---- */

/* With .pipeline: what comes first; the copy with its step, instead of an executable. */
CornuStatus cornu__explain_plan_pipeline(CornuExplanation *e);
CornuStatus cornu__explain_pipeline(CornuExplanation *e);
/* CORNU_ERR_ARGUMENT if there is none; NULL without memory. */
CornuStatus cornu__explain_print_pipeline(const CornuExplanation *e, FILE *to);
json_t     *cornu__explain_pipeline_json(const CornuExplanation *e);

/* ---- Texts ---- */

static inline double cornu__explain_percent(double part, double whole)
{
    return whole > 0.0 ? 100.0 * part / whole : 0.0;
}

static inline int64_t cornu__explain_round_up(int64_t a, int64_t unit)
{
    return (a + unit - 1) / unit * unit;
}

/* Prints words on lines of at most `width`, the first after `mark`, which is "-" or "", and returns
 * how many lines. With `to` NULL they are only counted. */
int cornu__explain_wrap(const char *mark, const char *text, int width, FILE *to);

enum { CORNU_EXPLAIN_LONGEST = 64 };

/* Shortened to `width`, below LONGEST: two dots replace what is left out before the last `tail`
 * characters. And of a scope, "dense_1/gradient" as "dense_1/grad". */
const char *cornu__explain_fit(char to[CORNU_EXPLAIN_LONGEST], const char *text, int width,
                               int tail);
const char *cornu__explain_fit_layer(char to[CORNU_EXPLAIN_LONGEST], const char *scope, int width);

/* The layer of a scope: "dense_1" of "dense_1/gradient"; whether it is of the gradient. */
bool cornu__explain_layer_of(const char *scope, char *to, size_t size);

/* MxKxN for a product, else the shape of the first result, or "in place". */
const char *cornu__explain_shape(char text[96], const CornuExecutableStep *step,
                                 const CornuTpuOp *op);

/* The measured seconds of all steps of the plan together. */
double cornu__explain_sum_here(const CornuExplanation *e);

/* How many of the ops are of each kind. */
void cornu__explain_count_placed(const CornuExplanation *e, int of[CORNU_PLACED_COUNT]);

/* The layers that pad most, the worst first; at most `most`. And the product that needs most VMEM;
 * -1: none. */
int cornu__explain_padded(const CornuExplanation *e, CornuPadded *to, int most);
int cornu__explain_vmem(const CornuExplanation *e);

/* Advice that follows from the numbers, what gains most first, each with the figures that it is
 * based on; returns how many. */
int cornu__explain_advise(const CornuExplanation *e, CornuAdvice advice[CORNU_EXPLAIN_ADVICE]);

/* CORNU_EXPLAIN_OVERVIEW: at most 80 columns. */
void cornu__explain_print_overview(const CornuExplanation *e, FILE *to);
/* CORNU_EXPLAIN_ALL: at most 120 columns. */
void cornu__explain_print_all(const CornuExplanation *e, FILE *to);

/* Of an executable that has run. A sentence, empty for one process; a row for each, at most 120
 * columns, nothing for one process; [{"name", "begin_step", …}], NULL without memory. */
CornuExplainExchanges cornu__explain_exchanges(CornuExecutable *executable);
void    cornu__explain_exchanges_line(const CornuExplainExchanges *e,
                                      char text[CORNU_EXPLAIN_TEXT]);
void    cornu__explain_exchanges_print(const CornuExplainExchanges *e, FILE *to);
json_t *cornu__explain_exchanges_json(const CornuExplainExchanges *e);

/* Everything, as cornu_explanation_to_json has it; NULL without memory. The caller owns it. */
json_t *cornu__explain_json(const CornuExplanation *e);

#endif
