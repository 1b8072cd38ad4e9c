/* Tables of features: their check, and how strings of bytes become components. */
#ifndef CORNU_DATASETS_FEATURE_INTERNAL_H
#define CORNU_DATASETS_FEATURE_INTERNAL_H

#include <stdbool.h>

#include "../../device/status_internal.h"
#include "../pipeline/dataset_internal.h"
#include "feature.h"

/* A feature, and where it is in an element. */
typedef struct {
    CornuFeature feature;        /* owns its name and its default value */
    size_t       name_length;
    int          component;      /* that of the count follows */
    CornuType    type;           /* of the component */
    CornuType    step;           /* of a part along axis 0, of a sequence; else as type */
    size_t       bytes, step_bytes;
} CornuFeatureRow;

typedef struct {
    CornuFeatureRow *rows;
    int              count;
} CornuFeatureTable;

/* Copies a table and sets the types of the data set's components. `what` is for messages. Free the
 * table in any case. CORNU_ERR_ARGUMENT for an empty table, two rows of a name, or what a kind does
 * not have; CORNU_ERR_DTYPE, CORNU_ERR_SHAPE. */
CornuStatus cornu__features_read(CornuFeatureTable *table, const CornuFeature *features,
                                 const char *what, CornuDataset *dataset);
void        cornu__features_free(CornuFeatureTable *table);

/* The row of a name that is not NUL-terminated; NULL. */
CornuFeatureRow *cornu__features_find(const CornuFeatureTable *table, const void *name,
                                      size_t length);

/* Whether axis 0 is padded. */
bool cornu__feature_is_padded(const CornuFeatureRow *row);

/* Pads axis 0 of a component from `used` on, and stores the count where there is one. */
void cornu__feature_end(const CornuFeatureRow *row, int64_t used, void *const *to);

/* For a record that lacks the feature: its default value, or nothing but padding. CORNU_ERR_FORMAT,
 * not naming it, if it is required. */
CornuStatus cornu__feature_missing(const CornuFeatureRow *row, void *const *to);

/* Writes a string of bytes, of the kinds that are made of one, to the component or to step `step`.
 * *used is the length along axis 0 of what was written. Errors do not name the feature. */
CornuStatus cornu__feature_bytes(const CornuFeatureRow *row, const unsigned char *bytes,
                                 size_t size, void *to, int64_t *used);

/* The number of values that fit, of `count` there are: CORNU_ERR_FORMAT unless these are as many as
 * the component, or a step of it, has, or at most so many where it is padded or truncated. */
CornuStatus cornu__feature_fits(const CornuFeatureRow *row, int64_t count, int64_t *fitting);

/* Stores a whole number as element i of a component. CORNU_ERR_VALUE if the dtype, which is not of
 * floats, does not hold it. */
static inline CornuStatus cornu__feature_integer(CornuDtype dtype, int64_t value, void *to,
                                                 int64_t i)
{
    bool fits = true;
    switch (dtype) {
    case CORNU_I64: ((int64_t *)to)[i] = value; break;
    case CORNU_I32:
        fits = value >= INT32_MIN && value <= INT32_MAX;
        ((int32_t *)to)[i] = (int32_t)value;
        break;
    case CORNU_U32:
        fits = value >= 0 && value <= UINT32_MAX;
        ((uint32_t *)to)[i] = (uint32_t)value;
        break;
    default:
        fits = value >= 0 && value <= (dtype == CORNU_BOOL ? 1 : UINT8_MAX);
        ((uint8_t *)to)[i] = (uint8_t)value;
    }
    if (fits) return CORNU_OK;
    return cornu__fail(CORNU_ERR_VALUE, "value %lld is %lld, which %s does not hold", (long long)i,
                       (long long)value, cornu_dtype_name(dtype));
}

#endif
