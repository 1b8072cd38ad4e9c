#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../device/memory_internal.h"
#include "clicks_internal.h"

/* What numbers are drawn for. */
enum { OF_ROW = 1, OF_USER, OF_ITEM, OF_HOUR, OF_NUMBER };
enum { COMPONENTS = 4, HOURS = 24, MOST_RANKED = 1 << 20 };

static double around_0(uint64_t seed, uint64_t kind, uint64_t number, uint64_t part)
{
    return 2.0 * cornu__clicks_uniform(seed, kind, number, part) - 1.0;
}

/* The row, and the logit of its click. */
static double draw(uint64_t seed, int64_t row, int64_t users, int64_t items, CornuClick *click)
{
    const uint64_t number = (uint64_t)row;
    const double   u = cornu__clicks_uniform(seed, OF_ROW, number, 0);
    const double   i = cornu__clicks_uniform(seed, OF_ROW, number, 1);
    click->ids[0] = (int32_t)((double)users * u * u);
    click->ids[1] = (int32_t)((double)items * i * i);
    click->ids[2] = (int32_t)(HOURS * cornu__clicks_uniform(seed, OF_ROW, number, 2));
    double logit = around_0(seed, OF_ITEM, (uint64_t)click->ids[1], COMPONENTS) +
                   around_0(seed, OF_HOUR, (uint64_t)click->ids[2], 0);
    for (uint64_t k = 0; k < COMPONENTS; k++)
        logit += 3.0 * around_0(seed, OF_USER, (uint64_t)click->ids[0], k) *
                 around_0(seed, OF_ITEM, (uint64_t)click->ids[1], k);
    for (uint64_t k = 0; k < CORNU_CLICK_NUMBERS; k++) {
        click->numbers[k] = (float)around_0(seed, OF_ROW, number, 4 + k);
        logit += (double)click->numbers[k] * around_0(seed, OF_NUMBER, k, 0);
    }
    click->click = cornu__clicks_uniform(seed, OF_ROW, number, 3) < 1.0 / (1.0 + exp(-logit));
    return logit;
}

typedef struct { double logit; bool click; } Ranked;

static int by_logit(const void *a, const void *b)
{
    const double x = ((const Ranked *)a)->logit, y = ((const Ranked *)b)->logit;
    return x < y ? -1 : x > y;
}

/* The part of the pairs of a click and another row that the logits have in that order. */
static double auc(Ranked *rows, int64_t count)
{
    double clicks = 0.0, below = 0.0, pairs = 0.0;
    qsort(rows, (size_t)count, sizeof *rows, by_logit);
    for (int64_t k = 0; k < count; k++) {
        clicks += rows[k].click;
        below += !rows[k].click;
        if (rows[k].click) pairs += below;
    }
    return pairs / (clicks * below);
}

static CornuStatus fill(CornuClicks *clicks, int64_t rows, uint64_t seed)
{
    const int64_t most = clicks->test_rows < MOST_RANKED ? clicks->test_rows : MOST_RANKED;
    Ranked       *ranked = cornu__allocate((size_t)most, sizeof *ranked);
    int64_t       next[2] = { 0, 0 };
    if (!ranked) return CORNU_ERR_MEMORY;
    for (int64_t row = 0; row < rows; row++) {
        CornuClick   click = { .click = 0.0f };
        const int    part = cornu__clicks_tests(seed, row);
        const double logit = draw(seed, row, clicks->vocabulary[0], clicks->vocabulary[1], &click);
        if (part && next[1] < most) ranked[next[1]] = (Ranked){ logit, click.click > 0.0f };
        cornu__clicks_set(clicks, part, next[part]++, &click);
    }
    clicks->best_auc = auc(ranked, most);
    cornu__release(ranked);
    return CORNU_OK;
}

CornuClicks *cornu_synthetic_clicks(int64_t rows, int64_t users, int64_t items, uint64_t seed)
{
    if (rows < 1 || users < 1 || items < 1 || users > INT32_MAX - 1 || items > INT32_MAX - 1)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "synthetic clicks: %lld rows, %lld users, %lld "
                                "items, expected 1 or more, and fewer than 2^31 users and items",
                                (long long)rows, (long long)users, (long long)items);
    CornuClicks *clicks = cornu__allocate(1, sizeof *clicks);
    if (!clicks) return cornu__null();
    *clicks = (CornuClicks){ .names = { "user", "item", "hour" },
                             .vocabulary = { users, items, HOURS }, .features = 3,
                             .numbers = CORNU_CLICK_NUMBERS };
    for (int64_t row = 0; row < rows; row++)
        (*(cornu__clicks_tests(seed, row) ? &clicks->test_rows : &clicks->train_rows))++;
    snprintf(clicks->description, sizeof clicks->description, "%lld synthetic events of %lld users "
             "and %lld items", (long long)rows, (long long)users, (long long)items);
    CornuStatus status = cornu__clicks_map(clicks);
    if (!status) status = fill(clicks, rows, seed);
    if (!status) status = cornu__clicks_finish(clicks);
    if (!status) return clicks;
    cornu_clicks_free(clicks);
    return cornu__null();
}
