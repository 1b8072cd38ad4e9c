/* Ragged arrays: rows of different lengths, as offsets and indices. */
#ifndef CORNU_DATASETS_RAGGED_H
#define CORNU_DATASETS_RAGGED_H

#include "../../device/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Row r has indices[offsets[r]] to indices[offsets[r + 1] - 1]. */
typedef struct {
    CornuArray offsets;        /* whole numbers (R + 1): from 0, ascending, to N */
    CornuArray indices;        /* whole numbers (N) */
    CornuArray weights;        /* f32 (N), one for each index; NULL data: none */
} CornuRagged;

typedef struct {
    char               unset;
    const CornuRagged *ragged;      /* required */
    const char        *name;        /* of what the indices are, for messages; default "ragged" */
    int64_t            limit;       /* required: indices are in [0, limit) */
    int64_t            length;      /* required: of the rows made */
    bool               truncate;    /* longer rows end there; else they are refused */
    CornuArray         to;          /* required: i32 (R, length), the indices, then -1 */
    CornuArray         weights_to;  /* f32 (R, length), the weights, then 0; 1 if there are none */
} CornuRaggedRowsConfig;

/*
 * Rows of one length, padded at the end.
 *
 *     int64_t offsets[] = { 0, 2, 2, 3 };              rows of 2, 0 and 1 indices
 *     int32_t indices[] = { 7, 4, 9 }, rows[3 * 2];
 *     CornuRagged watched = { .offsets = cornu_array(offsets, CORNU_I64, 4),
 *                             .indices = cornu_array(indices, CORNU_I32, 3) };
 *     cornu_ragged_rows(&watched, .name = "watched", .limit = 10, .length = 2,
 *                       .to = cornu_array(rows, CORNU_I32, 3, 2));     7 4  -1 -1  9 -1
 *
 * CORNU_ERR_VALUE, naming the row, for offsets that run backwards or do not fit the indices, for an
 * index that is not below the limit, and for a row that is too long; nothing is written then.
 */
CornuStatus cornu_ragged_rows_from(const CornuRaggedRowsConfig *config);
#define cornu_ragged_rows(...) \
    cornu_ragged_rows_from(&(CornuRaggedRowsConfig){ .unset = 0, .ragged = __VA_ARGS__ })

#ifdef __cplusplus
}
#endif
#endif
