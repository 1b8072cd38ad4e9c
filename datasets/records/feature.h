/*
 * What becomes of a record: a table with a row for each feature that an element shall have, as
 * tf.io.parse_example takes it.
 *
 *     const CornuFeature features[] = {
 *         { "image", CORNU_FEATURE_IMAGE, .shape = cornu_shape(28, 28, 1) },
 *         { "label", .dtype = CORNU_I32 },
 *         { "words", CORNU_FEATURE_VAR, .dtype = CORNU_I64, .shape = cornu_shape(64),
 *           .count = true },
 *         { .name = NULL },
 *     };
 *
 * An element has a component for each row, in this order, and one more after a row with .count.
 */
#ifndef CORNU_DATASETS_FEATURE_H
#define CORNU_DATASETS_FEATURE_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CORNU_FEATURE_FIXED,   /* as many numbers as the shape has: FixedLenFeature */
    CORNU_FEATURE_VAR,     /* at most so many, padded along axis 0: VarLenFeature, made dense */
    CORNU_FEATURE_RAW,     /* a string of bytes, which are numbers, little-endian: decode_raw */
    CORNU_FEATURE_BYTES,   /* a string as u8 (length), padded */
    CORNU_FEATURE_IMAGE    /* an image file (images/image.h) as u8 (H, W, C); C is 1 or 3 */
} CornuFeatureKind;

typedef struct {
    const char      *name;          /* required: its key; NULL ends the table */
    CornuFeatureKind kind;
    /* Of the component. Numbers of a record are int64, delivered as i64 or, if they fit, as i32,
     * u32, u8 or bool, and float, delivered as f32 or f64; raw ones are any. Strings and images are
     * u8, whatever this is. */
    CornuDtype       dtype;
    CornuShape       shape;         /* of the component; a scalar by default */
    /* Of SequenceExample: a list of features, one for each step along axis 0, each as the kind says
     * of the other axes; fewer steps are padded. Not with VAR. */
    bool             sequence;
    /* The elements of the component where a record lacks the feature. NULL: it is required, but one
     * that is padded has length 0 then. Copied. */
    const void      *default_value;
    double           padding;
    bool             truncate;      /* longer ones end there; else they are refused */
    bool             count;         /* another component, i32: the length along axis 0, unpadded */
    bool             resize;        /* images of other sizes, bilinearly; else they are refused */
} CornuFeature;

#ifdef __cplusplus
}
#endif
#endif
