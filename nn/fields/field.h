/*
 * An argument of a constructor: Keras' name, its kind, and its offset in the config. One table of
 * them serves writing and reading of files.
 *
 *     static const CornuField fields[] = {
 *         { "units", CORNU_FIELD_INTEGER, offsetof(Config, units) },
 *         { "use_bias", CORNU_FIELD_NOT, offsetof(Config, no_bias) },
 *         { 0 },
 *     };
 */
#ifndef CORNU_NN_FIELD_H
#define CORNU_NN_FIELD_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How values of a kind are written and read (field_internal.h). */
typedef struct CornuFieldKind CornuFieldKind;

typedef struct {
    const char           *name;     /* Keras': "use_bias"; NULL ends a table */
    const CornuFieldKind *kind;
    size_t                offset;   /* in the config */
} CornuField;

extern const CornuFieldKind
    cornu_field_integer, cornu_field_integer_or_none, cornu_field_integer_or_default,
    cornu_field_seed, cornu_field_number, cornu_field_number_or_none,
    cornu_field_number_or_default, cornu_field_range, cornu_field_range_or_none,
    cornu_field_reach, cornu_field_flag, cornu_field_not, cornu_field_clipping,
    cornu_field_classes, cornu_field_single, cornu_field_single_or_none, cornu_field_pair,
    cornu_field_pair_or_none, cornu_field_triple, cornu_field_triple_or_none, cornu_field_edges,
    cornu_field_edges_3d, cornu_field_shape, cornu_field_extents, cornu_field_shape_or_none,
    cornu_field_axes, cornu_field_row_axes, cornu_field_row_axes_or_none,
    cornu_field_axes_or_none, cornu_field_text, cornu_field_text_or_none,
    cornu_field_text_or_default, cornu_field_texts, cornu_field_numbers, cornu_field_integers,
    cornu_field_thresholds, cornu_field_initializer, cornu_field_regularizer,
    cornu_field_constraint, cornu_field_fan_mode, cornu_field_distribution,
    cornu_field_orthogonal_mode, cornu_field_activation, cornu_field_layer, cornu_field_layers,
    cornu_field_padding, cornu_field_data_format, cornu_field_score_mode, cornu_field_merge,
    cornu_field_interpolation, cornu_field_fill_mode, cornu_field_flip_mode,
    cornu_field_standardize, cornu_field_split, cornu_field_text_function,
    cornu_field_output_mode, cornu_field_reduction, cornu_field_curve, cornu_field_summation,
    cornu_field_average, cornu_field_aggregation;

/* Numbers. Where 0 stands for a default or for Keras' None, CORNU_ZERO is 0; _OR_DEFAULT is omitted
 * from files where it is 0. */
#define CORNU_FIELD_INTEGER            (&cornu_field_integer)            /* int64_t */
#define CORNU_FIELD_INTEGER_OR_NONE    (&cornu_field_integer_or_none)    /* 0 is None */
#define CORNU_FIELD_INTEGER_OR_DEFAULT (&cornu_field_integer_or_default)
#define CORNU_FIELD_SEED               (&cornu_field_seed)               /* int64_t, 0 is None */
#define CORNU_FIELD_NUMBER             (&cornu_field_number)             /* double */
#define CORNU_FIELD_NUMBER_OR_NONE     (&cornu_field_number_or_none)     /* 0 is None */
#define CORNU_FIELD_NUMBER_OR_DEFAULT  (&cornu_field_number_or_default)
#define CORNU_FIELD_RANGE         (&cornu_field_range)         /* double[2]: lowest and highest */
#define CORNU_FIELD_RANGE_OR_NONE (&cornu_field_range_or_none) /* likewise; both 0 is None */
#define CORNU_FIELD_REACH         (&cornu_field_reach)         /* likewise; x is from -x to x */
#define CORNU_FIELD_FLAG          (&cornu_field_flag)          /* bool */
#define CORNU_FIELD_NOT           (&cornu_field_not)           /* bool, the opposite of Keras' */
#define CORNU_FIELD_CLIPPING      (&cornu_field_clipping)      /* double[3]: rmax, rmin, dmax of a
                                                                  dictionary; 0 is omitted */
#define CORNU_FIELD_CLASSES       (&cornu_field_classes)       /* uint64_t: the list of the bits
                                                                  set; 0 is omitted */

/* Extents of windows; of _OR_NONE all 0 is None. */
#define CORNU_FIELD_SINGLE         (&cornu_field_single)         /* int64_t, a list of one */
#define CORNU_FIELD_SINGLE_OR_NONE (&cornu_field_single_or_none)
#define CORNU_FIELD_PAIR           (&cornu_field_pair)           /* int64_t[2]: height, width */
#define CORNU_FIELD_PAIR_OR_NONE   (&cornu_field_pair_or_none)
#define CORNU_FIELD_TRIPLE         (&cornu_field_triple)         /* int64_t[3], depth first */
#define CORNU_FIELD_TRIPLE_OR_NONE (&cornu_field_triple_or_none)
#define CORNU_FIELD_EDGES    (&cornu_field_edges)    /* int64_t[2][2]: (top, bottom), (left, right);
                                                        where all are 0 the first is CORNU_ZERO */
#define CORNU_FIELD_EDGES_3D (&cornu_field_edges_3d) /* int64_t[3][2]: (front, back) first */

/* Shapes, int64_t[CORNU_MAX_RANK], end at the first 0. */
#define CORNU_FIELD_SHAPE         (&cornu_field_shape)         /* CORNU_NONE is -1 */
#define CORNU_FIELD_EXTENTS       (&cornu_field_extents)       /* CORNU_NONE is null */
#define CORNU_FIELD_SHAPE_OR_NONE (&cornu_field_shape_or_none) /* likewise; without extents None */

/* Axes, int64_t[CORNU_MAX_RANK]. */
#define CORNU_FIELD_AXES             (&cornu_field_axes)     /* as in CornuConstraint */
#define CORNU_FIELD_ROW_AXES         (&cornu_field_row_axes) /* without axis 0, the batch: ends at
                                        the first 0. All 0 is the default, CORNU_ZERO first the
                                        empty list or None */
#define CORNU_FIELD_ROW_AXES_OR_NONE (&cornu_field_row_axes_or_none) /* likewise; None is the
                                        default */
#define CORNU_FIELD_AXES_OR_NONE     (&cornu_field_axes_or_none) /* ends at the first 0; CORNU_ZERO
                                        is axis 0, all 0 None */

/* Strings, const char *, which constructors copy; and lists. */
#define CORNU_FIELD_TEXT            (&cornu_field_text)         /* NULL is None */
#define CORNU_FIELD_TEXT_OR_NONE    (&cornu_field_text_or_none) /* NULL is the default, "none" None,
                                       which a resolved config has as NULL */
#define CORNU_FIELD_TEXT_OR_DEFAULT (&cornu_field_text_or_default) /* NULL is omitted. After a row
                                       of the same name whose field holds a number: the string in
                                       its place */
#define CORNU_FIELD_TEXTS      (&cornu_field_texts)    /* CornuTexts: omitted if none is given */
#define CORNU_FIELD_NUMBERS    (&cornu_field_numbers)  /* CornuNumbers: likewise. After a row of the
                                  same name whose field holds one number: the list in its place */
#define CORNU_FIELD_INTEGERS   (&cornu_field_integers) /* likewise, of whole numbers */
#define CORNU_FIELD_THRESHOLDS (&cornu_field_thresholds) /* double[CORNU_MAX_THRESHOLDS], ends at
                                  the first 0, CORNU_ZERO is 0; all 0 is None */

/* Rules of weights, and layers. */
#define CORNU_FIELD_INITIALIZER (&cornu_field_initializer) /* CornuInitializer */
#define CORNU_FIELD_REGULARIZER (&cornu_field_regularizer) /* CornuRegularizer */
#define CORNU_FIELD_CONSTRAINT  (&cornu_field_constraint)  /* CornuConstraint */
#define CORNU_FIELD_ACTIVATION  (&cornu_field_activation)  /* CornuActivation */
#define CORNU_FIELD_LAYER       (&cornu_field_layer)       /* CornuLayer * */
#define CORNU_FIELD_LAYERS      (&cornu_field_layers)      /* CornuLayer *[CORNU_MAX_WRAPPED], ends
                                                              at the first NULL */

/* Enumerations, CornuFanMode etc. */
#define CORNU_FIELD_FAN_MODE        (&cornu_field_fan_mode)
#define CORNU_FIELD_DISTRIBUTION    (&cornu_field_distribution)
#define CORNU_FIELD_ORTHOGONAL_MODE (&cornu_field_orthogonal_mode)
#define CORNU_FIELD_PADDING         (&cornu_field_padding)
#define CORNU_FIELD_DATA_FORMAT     (&cornu_field_data_format)
#define CORNU_FIELD_SCORE_MODE      (&cornu_field_score_mode)
#define CORNU_FIELD_MERGE           (&cornu_field_merge)
#define CORNU_FIELD_INTERPOLATION   (&cornu_field_interpolation)
#define CORNU_FIELD_FILL_MODE       (&cornu_field_fill_mode)
#define CORNU_FIELD_FLIP_MODE       (&cornu_field_flip_mode)
#define CORNU_FIELD_STANDARDIZE     (&cornu_field_standardize)
#define CORNU_FIELD_SPLIT           (&cornu_field_split)
#define CORNU_FIELD_TEXT_FUNCTION   (&cornu_field_text_function) /* CornuTextFunction, of the
                                       caller's (own_objects.h). After a row of the same name */
#define CORNU_FIELD_OUTPUT_MODE     (&cornu_field_output_mode)
#define CORNU_FIELD_REDUCTION       (&cornu_field_reduction)
#define CORNU_FIELD_CURVE           (&cornu_field_curve)
#define CORNU_FIELD_SUMMATION       (&cornu_field_summation)
#define CORNU_FIELD_AVERAGE         (&cornu_field_average)
#define CORNU_FIELD_AGGREGATION     (&cornu_field_aggregation)

#ifdef __cplusplus
}
#endif
#endif
