/* Draws of one token from probabilities. */
#include "generate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int64_t largest(const double *p, int64_t count)
{
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++)
        if (p[i] > p[best]) best = i;
    return best;
}

/* Sets all but the k largest to 0. Each is found by a linear search, as k is small; the sign marks
 * those found so far. */
static void keep_largest(double *p, int64_t count, int64_t k)
{
    for (int64_t kept = 0; kept < k; kept++) {
        const int64_t best = largest(p, count);
        if (p[best] <= 0.0) break;
        p[best] = -p[best];
    }
    for (int64_t i = 0; i < count; i++) p[i] = p[i] < 0.0 ? -p[i] : 0.0;
}

static int descending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* Sets all to 0 but the largest that together have at least `share` of their sum; of equal ones the
 * first are kept. Returns the sum of those. */
static double keep_share(double *p, int64_t count, double sum, double share, double *sorted)
{
    double  kept = 0.0;
    int64_t equal = 0, i = 0;
    memcpy(sorted, p, (size_t)count * sizeof *p);
    qsort(sorted, (size_t)count, sizeof *sorted, descending);
    do {
        equal = i > 0 && sorted[i] == sorted[i - 1] ? equal + 1 : 1;
        kept += sorted[i++];
    } while (i < count && kept < share * sum);
    const double least = sorted[i - 1];
    for (i = 0; i < count; i++)
        if (p[i] < least || (p[i] == least && equal-- <= 0)) p[i] = 0.0;
    return kept;
}

int64_t cornu_sample_top_p(const float *p, int64_t count, double temperature, int64_t top_k,
                           double top_p, double uniform, double *scratch)
{
    double most = 0.0, sum = 0.0;
    for (int64_t i = 0; i < count; i++) {
        if (!(p[i] >= 0.0f && isfinite(p[i]))) return -1;
        scratch[i] = p[i];
        if (scratch[i] > most) most = scratch[i];
    }
    if (most == 0.0) return -1;
    if (temperature == 0.0) return largest(scratch, count);
    if (top_k > 0 && top_k < count) keep_largest(scratch, count, top_k);
    /* Relative to the largest, so that the powers do not all underflow. */
    for (int64_t i = 0; i < count; i++) {
        scratch[i] = pow(scratch[i] / most, 1.0 / temperature);
        sum += scratch[i];
    }
    if (top_p < 1.0) sum = keep_share(scratch, count, sum, top_p, scratch + count);
    double  left = uniform * sum;
    int64_t last = -1;
    for (int64_t i = 0; i < count; i++) {
        if (scratch[i] == 0.0) continue;
        last = i;
        if (left < scratch[i]) break;
        left -= scratch[i];
    }
    return last;
}

int64_t cornu_sample_token(const float *p, int64_t count, double temperature, int64_t top_k,
                           double uniform, double *scratch)
{
    return cornu_sample_top_p(p, count, temperature, top_k, 1.0, uniform, scratch);
}
