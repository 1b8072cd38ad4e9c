/*
 * Clicks: data for recommendation. A row is an event: which user, which item, a few numbers, and
 * whether it was a click, which is what a model learns to predict.
 *
 * Rows are in unlinked files, in $TMPDIR or /var/tmp, that are mapped into memory: data may be
 * larger than memory, in which the system keeps the parts that are in use.
 */
#ifndef CORNU_DATASETS_CLICKS_H
#define CORNU_DATASETS_CLICKS_H

#include "../pipeline/dataset.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { CORNU_CLICK_FEATURES = 4, CORNU_CLICK_NUMBERS = 4 };

typedef struct {
    const char   *names[CORNU_CLICK_FEATURES];       /* "user", "item", … */
    int64_t       vocabulary[CORNU_CLICK_FEATURES];  /* indices are below */
    int           features;
    int64_t       numbers;
    int64_t       train_rows, test_rows, train_clicks, test_clicks;
    /* Components: an i32 (1) for each feature, f32 (numbers), f32 (1): 1 for a click, else 0. */
    CornuDataset *train, *test;
    double        best_auc;      /* of the test rows, by the probabilities that they were drawn
                                    with; NAN where these are not known */
    char          description[160];
    void         *memory[2];     /* internal: the rows of train and test */
    size_t        bytes[2];
} CornuClicks;

/* With its data sets; NULL is ignored. */
void cornu_clicks_free(CornuClicks *clicks);

typedef struct {
    char        unset;
    const char *file;            /* required */
    double      threshold;       /* ratings from here on are clicks; default 4 */
    int64_t     limit;           /* of the rows read; default all */
    uint64_t    seed;            /* draws a tenth of the rows for testing */
} CornuRatingsConfig;

/*
 * A file as MovieLens' ratings.csv: a first line "userId,movieId,rating,timestamp", then for each
 * rating whole numbers, a number, and seconds since 1970. Features: user, item, and the hour of the
 * week; numbers: the time from 0 to 1 over the file, sine and cosine of the time of day, and 1 on
 * Saturday and Sunday (UTC). Lines end in LF, CR LF or CR. CORNU_ERR_DATA for a line that is
 * broken, with line and column, and for a file that changes while it is read; CORNU_ERR_FILE for
 * one that cannot be read, and where there is no room for the rows.
 * Source: grouplens.org/datasets/movielens, README of ml-latest.
 */
CornuClicks *cornu_ratings_load_from(const CornuRatingsConfig *config);
#define cornu_ratings_load(...) \
    cornu_ratings_load_from(&(CornuRatingsConfig){ .unset = 0, .file = __VA_ARGS__ })

/*
 * Events drawn by code: user u, item i, an hour h of 24, numbers x, clicked with the probability
 *     sigmoid(3 p_u q_i + b_i + c_h + x w),   p, q of 4 components, all uniform in [-1, 1)
 * Few users and items have most of the events. A row depends on the seed and its number alone.
 */
CornuClicks *cornu_synthetic_clicks(int64_t rows, int64_t users, int64_t items, uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif
