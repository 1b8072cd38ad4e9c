/*
 * Layers: weights plus a function from tensors to tensors.
 *
 * A layer is made by its constructor (layers.h), which a model takes over. Its class is a
 * struct of functions, so a user's own layer is made the same way as ours.
 *
 * Building happens when the layer meets its input shape: `build` declares weights, `call`
 * records ops. Output shapes need no rule of their own: `call` is traced once on a template
 * graph and asked.
 */
#ifndef CORNU_NN_LAYER_H
#define CORNU_NN_LAYER_H

#include "../../tensor/ops.h"
#include "../weights/constraints.h"
#include "../weights/initializers.h"
#include "../config/keywords.h"
#include "../config/policy.h"
#include "../weights/regularizers.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CornuLayer  CornuLayer;
typedef struct CornuWeight CornuWeight;

/* What a trace gives a layer besides its input. */
typedef struct CornuCall {
    CornuGraph  *graph;
    bool         training;
    CornuTensor *count;      /* i64 scalar: valid rows of the batch, the first ones */
    CornuTensor *total;      /* likewise, of all shards together */
    CornuTensor *seed;       /* i64 scalars, see device/random.h */
    CornuTensor *iteration;
    CornuTensor *position;   /* of row 0 in the global batch */
    CornuTensor *mask;       /* bool (B, T): which steps of the (first) input count; NULL: all */
    CornuTensor *const *masks; /* those of all inputs, for kind->call_many */
    bool         shapes_only;/* nothing will run: states and their like are not to be made */
    CornuTensor **loss;      /* where cornu_layer_add_loss adds up; NULL: nobody asks for it */
} CornuCall;

/* An argument of a layer's constructor: Keras' name for it, what it is, and where it stands in
 * the config. One table serves writing and reading of architectures. */
typedef enum {
    CORNU_FIELD_INTEGER,     /* int64_t                                                   */
    CORNU_FIELD_SINGLE,      /* int64_t, which Keras has as a list of one                 */
    CORNU_FIELD_SINGLE_OR_NONE, /* likewise; 0 is Keras' None, CORNU_ZERO is 0            */
    CORNU_FIELD_PAIR,        /* int64_t[2]: height, width                                 */
    CORNU_FIELD_PAIR_OR_NONE, /* likewise; Keras' None where both are 0, CORNU_ZERO is 0  */
    CORNU_FIELD_EDGES,       /* int64_t[2][2]: (top, bottom), (left, right); where all are 0
                                the first is CORNU_ZERO                                   */
    CORNU_FIELD_SHAPE,       /* int64_t[CORNU_MAX_RANK], ends at the first 0              */
    CORNU_FIELD_NUMBER,      /* double; CORNU_ZERO is 0                                   */
    CORNU_FIELD_RANGE,       /* double[2]: lowest and highest                             */
    CORNU_FIELD_RANGE_OR_NONE, /* likewise; Keras' None where both are 0, CORNU_ZERO is 0  */
    CORNU_FIELD_FLAG,        /* bool                                                      */
    CORNU_FIELD_NOT,         /* bool that says the opposite of Keras' flag                */
    CORNU_FIELD_ACTIVATION,  /* CornuActivation                                           */
    CORNU_FIELD_PADDING,     /* CornuPadding                                              */
    CORNU_FIELD_INITIALIZER, /* CornuInitializer                                          */
    CORNU_FIELD_SEED,        /* int64_t; 0 is Keras' None, CORNU_ZERO is 0                */
    CORNU_FIELD_FAN_MODE,    /* CornuFanMode                                              */
    CORNU_FIELD_DISTRIBUTION, /* CornuDistribution                                        */
    CORNU_FIELD_MERGE,       /* CornuMerge                                                */
    CORNU_FIELD_INTERPOLATION, /* CornuInterpolation                                      */
    CORNU_FIELD_FILL_MODE,   /* CornuFillMode                                             */
    CORNU_FIELD_FLIP_MODE,   /* CornuFlipMode                                             */
    CORNU_FIELD_REGULARIZER, /* CornuRegularizer                                          */
    CORNU_FIELD_CONSTRAINT,  /* CornuConstraint                                           */
    CORNU_FIELD_ORTHOGONAL_MODE, /* CornuOrthogonalMode                                   */
    CORNU_FIELD_AXES,        /* int64_t[CORNU_MAX_RANK], as in CornuConstraint            */
    CORNU_FIELD_ROW_AXES,    /* likewise, of a row: none is 0, the batch, and the list ends at
                                the first 0. All 0 is None, CORNU_ZERO first the empty list */
    CORNU_FIELD_AXES_OR_NONE, /* likewise, ends at the first 0; CORNU_ZERO is axis 0, all 0
                                 Keras' None                                              */
    CORNU_FIELD_INTEGER_OR_NONE, /* int64_t; 0 is Keras' None, CORNU_ZERO is 0            */
    CORNU_FIELD_NUMBER_OR_NONE,  /* double; likewise                                      */
    CORNU_FIELD_INTEGER_OR_DEFAULT, /* int64_t; 0 is Keras' default, which is left out,
                                       CORNU_ZERO is 0                                    */
    CORNU_FIELD_NUMBER_OR_DEFAULT,  /* double; likewise                                   */
    CORNU_FIELD_THRESHOLDS,  /* double[CORNU_MAX_THRESHOLDS], ends at the first 0, CORNU_ZERO
                                is 0; all 0 is None                                       */
    CORNU_FIELD_CLASSES,     /* uint64_t: a list of the numbers of its bits; 0 is left out */
    CORNU_FIELD_REDUCTION,   /* CornuReduction                                            */
    CORNU_FIELD_CURVE,       /* CornuCurve                                                */
    CORNU_FIELD_SUMMATION,   /* CornuSummation                                            */
    CORNU_FIELD_AVERAGE,     /* CornuAverage                                              */
    CORNU_FIELD_AGGREGATION, /* CornuAggregation                                          */
    CORNU_FIELD_LAYER        /* CornuLayer *                                              */
} CornuFieldKind;

typedef struct {
    const char    *name;     /* Keras': "use_bias"; NULL ends a table */
    CornuFieldKind kind;
    size_t         offset;   /* in the config */
} CornuField;

typedef struct {
    const char *class_name;  /* Keras' class: "Conv2D"; names follow from it: conv2d, conv2d_1 */
    size_t      size;        /* of the layer's own struct, whose first field is a CornuLayer */

    /* Declares the weights (cornu_layer_weight) for inputs of this shape; axis 0 is the batch,
     * CORNU_NONE, and so is an extent that may differ from batch to batch. Refuses shapes the layer
     * cannot take. May be NULL. */
    CornuStatus (*build)(CornuLayer *layer, CornuShape input);

    /* In place of build, for a layer whose weights or checks depend on several inputs. */
    CornuStatus (*build_many)(CornuLayer *layer, const CornuShape *in, int in_count);

    /* Records the layer. NULL on failure, as ops do. */
    CornuTensor *(*call)(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

    /* In place of call, for a layer that may take or give several tensors: x is in[0]. Sets all
     * that it gives and returns out[0]; how many these are the second function says. */
    CornuTensor *(*call_many)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor **out);
    int (*outputs)(const CornuLayer *layer);

    /* The mask that goes on with the result, from x and the one x came with, call->mask; NULL is
     * none. Without this rule it is the one x came with, which suits layers that treat each step
     * by itself. */
    CornuTensor *(*mask)(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

    /* In place of mask, for a layer that merges: masks[i] is the one of in[i], or NULL. */
    CornuTensor *(*mask_many)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                              int in_count, CornuTensor *const *masks);

    /* In place of call_many and mask, for a layer made of others, whose results each have a mask of
     * their own: sets out_masks too. Models are such layers. */
    CornuTensor *(*call_masked)(CornuLayer *layer, const CornuCall *call, CornuTensor *const *in,
                           int in_count, CornuTensor *const *masks, CornuTensor **out,
                           CornuTensor **out_masks);

    /* For a layer made of others that gives each its own place under a precision policy; NULL: all
     * in it are treated as it is. `last`: it ends a model. True if one of them computes in f16. */
    bool (*apply_policy)(CornuLayer *layer, const CornuPolicy *policy, bool last);

    void (*free)(CornuLayer *layer); /* what the layer owns besides weights; may be NULL */

    bool normalizes;         /* its weights are read in f32 under any policy */
    bool takes_integers;      /* whole numbers, as they are: indices */

    /* For files: the constructor's arguments, its config's size and place in the layer's struct,
     * filled in, and the constructor itself; all zero for a layer that files cannot hold. A class
     * of one's own is registered, too: cornu_register_layer. */
    const CornuField *fields;
    size_t            config_size, config_offset;
    CornuLayer     *(*from)(const void *config);

    /* What Keras' files call the parts of the layer, up to a NULL: the layers in it, in their
     * order; or else, of what its weights' names have in front, as "lstm_cell/kernel" does,
     * "lstm_cell:cell". */
    const char *const *folders;

    /* For files, of a layer that takes several tensors: Keras' keywords for those behind the first,
     * separated by blanks, "value key"; one that ends in * takes a list of all that are left,
     * "initial_state*". NULL: all stand in one list, as add([a, b]) does. */
    const char       *operands;
    /* For files: those of its fields that Keras takes as keywords of the call, likewise. */
    const char       *call_arguments;
} CornuLayerClass;

enum { CORNU_MAX_WRAPPED = 2, CORNU_MAX_LAYER_STATES = 2, CORNU_MAX_LAYER_TENSORS = 16 };

/* How deep layers may lie in layers, such as models in models; what a model's files can hold. How
 * many are one behind the other is not bounded. */
enum { CORNU_MAX_LAYER_DEPTH = 16 };

struct CornuLayer {
    const CornuLayerClass *kind;
    char                  *name;        /* NULL until given or added to a model */
    char                   class_label[48];  /* the class in small letters: "max_pooling2d" */
    bool                   frozen;      /* Keras' trainable = False; read at compile */
    CornuRegularizer       activity_regularizer; /* of its output, by row of the batch; or none */
    const CornuPolicy     *own_policy;  /* its .dtype, or NULL */
    CornuDtype             compute;     /* by the policy that rules it: known once compiled,  */
    CornuDtype             result;      /* f32 before. result is f32 too for the last layer   */
    bool                   built;
    CornuShape             output;      /* once built; axis 0 is CORNU_NONE */
    CornuWeight          **weights;     /* in Keras' order; those of inner layers, which own them,
                                           are listed once more */
    int                    weight_count;
    CornuLayer           **inner;       /* layers that this one calls, each once */
    int                    inner_count;
    CornuLayer            *wrapped[CORNU_MAX_WRAPPED]; /* those of a layer around others */
    int                    depth;       /* of layers in layers: 0 without inner ones */
    const CornuLayer      *outer;       /* the layer around this one, or NULL */
    const char            *prefix;      /* "forward_": of its name in that one */
    int                    owners;      /* calls and models that hold it; 0: its maker's */
    int                    calls;       /* in graphs of symbols (functional.h) */
    int                    compiled;    /* models that were compiled with it */
    CornuLayer            *next_kept;   /* see functional.c */
    bool                   numbered;    /* a model has given it its random numbers */
    CornuVariable         *states[CORNU_MAX_LAYER_STATES]; /* NULL until asked for */
    bool                   takes_integers; /* of its class, or its inner layer's */
    uint64_t               seed;        /* these two are set by the model before building: of  */
    int64_t                generator;   /* the layer's random draws; those of its weights follow */
};

/* A weight: its value is drawn when it is first wanted, so a model that its device has no room for
 * takes none here either. Once compiled it lives in a variable of the model's device. */
struct CornuWeight {
    char             *path;          /* Keras' variable path: "conv2d/kernel" */
    CornuType         type;          /* f32 */
    bool              non_trainable; /* moving statistics */
    CornuInitializer  initializer;
    CornuRegularizer  regularizer;   /* part of the loss while it is trained; or none */
    CornuConstraint   constraint;    /* that its updates end with; or none */
    uint64_t          seed;          /* these two are those of its initial draw */
    int64_t           generator;
    float            *host;          /* a value written before compile, else NULL */
    CornuVariable    *variable;      /* the value after compile, else NULL */
};

/* Makes a class of one's own known to files, and to cornu_model_clone, as "package>Name": what
 * Keras' register_keras_serializable(package) does, default "Custom". Keras reads such a layer
 * where its program has registered a class of the same name. The class is not copied; again is
 * nothing. CORNU_ERR_ARGUMENT for a class without .from, .fields and where its config stands, or a
 * name that another class has. */
CornuStatus cornu_register_layer(const CornuLayerClass *kind, const char *package);

/* For kind->build: declares the next weight, "kernel" of shape `shape`; CORNU_ERR_SHAPE where that
 * depends on an extent that is not known. */
CornuStatus cornu_layer_weight(CornuLayer *layer, const char *name, CornuShape shape,
                               CornuInitializer initializer, bool non_trainable);

/* For kind->build: rules for the weight declared last. CORNU_ERR_SHAPE for those that do not go
 * with its shape. */
CornuStatus cornu_layer_weight_rules(CornuLayer *layer, CornuRegularizer regularizer,
                                     CornuConstraint constraint);

/* For kind->call: weight number i as a tensor of the trace's graph, in the dtype that the layer
 * computes in; or in another one. */
CornuTensor *cornu_layer_read(CornuLayer *layer, const CornuCall *call, int i);
CornuTensor *cornu_layer_read_as(CornuLayer *layer, const CornuCall *call, int i,
                                 CornuDtype dtype);

/* For kind->call: what weight i shall be after the step (moving statistics), as f32. */
CornuStatus cornu_layer_assign(CornuLayer *layer, const CornuCall *call, int i,
                               CornuTensor *value);

/* For kind->call: adds a scalar, f32, to the model's loss; a shard's part of it, as the shards'
 * sum up. CORNU_ERR_DTYPE, pending, for any other type. Keras' add_loss. */
CornuStatus cornu_layer_add_loss(CornuLayer *layer, const CornuCall *call, CornuTensor *loss);

/* For kind->call of a layer that remembers: state i, what the rows of the last batch left behind,
 * f32 of this shape, whose axis 0 are the rows; zeros at first. Each shard keeps that of its rows.
 * Another number of rows than before is CORNU_ERR_SHAPE. */
CornuTensor *cornu_layer_state(CornuLayer *layer, const CornuCall *call, int i, CornuShape shape);
/* What state i shall be after the step; value is converted to f32. */
CornuStatus  cornu_layer_set_state(CornuLayer *layer, const CornuCall *call, int i,
                                   CornuTensor *value);
/* Lets the next batch begin with zeros, as Keras' reset_state. */
CornuStatus  cornu_layer_reset_states(CornuLayer *layer);

/* Allocates a layer of the class; the name is copied. A layer without one is named by the model
 * it is added to: conv2d, conv2d_1, … counted per model. dtype: a policy's name (policy.h), or
 * NULL for the model's. NULL while an error is pending. */
CornuLayer *cornu_layer_create(const CornuLayerClass *kind, const char *name, const char *dtype);
/* Gives one hold on it up: what nobody holds any more is freed. */
void        cornu_layer_free(CornuLayer *layer);

/* The layer's name or, before it has one, its class in Keras' small letters. */
const char *cornu_layer_name(const CornuLayer *layer);

/* Builds the layer, draws its weights, and traces it for inference, which gives its output shape;
 * axis 0 of `input` is CORNU_NONE, and so are extents that are not known. Messages begin with the
 * layer's name. */
CornuStatus cornu_layer_build(CornuLayer *layer, CornuShape input);
CornuStatus cornu_layer_build_many(CornuLayer *layer, const CornuShape *in, int in_count);

/* Moves the weights to a device, whose graphs can then call the layer; models do it for theirs. */
CornuStatus cornu_layer_move(CornuLayer *layer, CornuDevice *device);

/* Records the layer in the call's graph, under its name; float inputs are converted to the dtype
 * that the layer computes in. NULL on failure, as ops do. */
CornuTensor *cornu_layer_call(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* How many tensors a call gives: 1, or what the layer's constructor says. Layers of a Sequential
 * model give 1. */
int cornu_layer_outputs(const CornuLayer *layer);

/* The same for a layer that takes or gives several tensors: x, in[0], and what else its constructor
 * says. out_count is what cornu_layer_outputs says. Returns out[0]; NULL, and so all of them, on
 * failure. Of such a layer cornu_layer_call gives the first.
 *
 *     CornuTensor *y[3], *lstm_in[] = { x, h0, c0 };           Keras' initial_state
 *     cornu_layer_call_many(lstm, &call, lstm_in, 3, y, 3);    return_state: y, h, c */
CornuTensor *cornu_layer_call_many(CornuLayer *layer, const CornuCall *call,
                                   CornuTensor *const *in, int in_count, CornuTensor **out,
                                   int out_count);

/* The mask that goes on with what the call of x alone returns. */
CornuTensor *cornu_layer_mask(CornuLayer *layer, const CornuCall *call, CornuTensor *x);

/* Keras' layer.trainable = …, of the layer and all in it; read at compile. */
void cornu_layer_set_trainable(CornuLayer *layer, bool trainable);

/* Number of elements of all weights. */
int64_t cornu_layer_parameters(const CornuLayer *layer);

/* Copies a weight's value out or in, wherever it lives; f32, the weight's shape. */
CornuStatus cornu_weight_read(const CornuWeight *weight, CornuArray to);
CornuStatus cornu_weight_write(CornuWeight *weight, CornuArray from);

#ifdef __cplusplus
}
#endif
#endif
