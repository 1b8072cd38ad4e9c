#include "report_internal.h"

#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../../device/text/print.h"

/* ---- Counting ---- */

static CornuStatus check_counts(CornuArray counts)
{
    const CornuShape shape = counts.type.shape;
    CornuText        text;
    if (counts.type.dtype != CORNU_I64)
        return cornu__fail(CORNU_ERR_DTYPE, "report: counts are %s, expected i64",
                           cornu_type_print(&text, counts.type));
    if (!counts.data || shape.rank != 2 || shape.extent[0] != shape.extent[1] ||
        shape.extent[0] < 1)
        return cornu__fail(CORNU_ERR_SHAPE, "report: counts are %s, expected (classes, classes)",
                           counts.data ? cornu_shape_print(&text, shape) : "not given");
    return CORNU_OK;
}

static CornuStatus check_samples(CornuArray predictions, CornuArray labels, int64_t classes)
{
    const CornuShape shape = predictions.type.shape;
    const CornuDtype dtype = labels.type.dtype;
    CornuText        a, b;
    if (!predictions.data || !labels.data)
        return cornu__fail(CORNU_ERR_ARGUMENT, "confusion: the %s are required",
                           labels.data ? "predictions" : "labels");
    if (predictions.type.dtype != CORNU_F32 ||
        (dtype != CORNU_U8 && dtype != CORNU_I32 && dtype != CORNU_I64))
        return cornu__fail(CORNU_ERR_DTYPE, "confusion: predictions are %s and labels %s, expected "
                           "f32 and one of u8, i32, i64", cornu_type_print(&a, predictions.type),
                           cornu_type_print(&b, labels.type));
    if (shape.rank != 2 || shape.extent[1] != classes ||
        cornu_type_count(labels.type) != shape.extent[0])
        return cornu__fail(CORNU_ERR_SHAPE, "confusion: predictions are %s and labels %s, expected "
                           "(N, %lld) and N of them", cornu_shape_print(&a, shape),
                           cornu_shape_print(&b, labels.type.shape), (long long)classes);
    return CORNU_OK;
}

int64_t cornu__label_at(CornuArray labels, int64_t i)
{
    switch (labels.type.dtype) {
    case CORNU_U8:  return ((const uint8_t *)labels.data)[i];
    case CORNU_I32: return ((const int32_t *)labels.data)[i];
    default:        return ((const int64_t *)labels.data)[i];
    }
}

int64_t cornu_predicted_class(const float *row, int64_t classes)
{
    int64_t best = 0;
    for (int64_t c = 0; c < classes; c++) {
        if (isnan(row[c])) return -1;
        if (row[c] > row[best]) best = c;
    }
    return best;
}

CornuStatus cornu_confusion(CornuArray predictions, CornuArray labels, CornuArray counts)
{
    CORNU__TRY(check_counts(counts));
    const int64_t classes = counts.type.shape.extent[0];
    CORNU__TRY(check_samples(predictions, labels, classes));
    const int64_t samples = predictions.type.shape.extent[0];
    const float  *p = predictions.data;
    int64_t      *count = counts.data;
    memset(count, 0, (size_t)(classes * classes) * sizeof *count);
    for (int64_t i = 0; i < samples; i++) {
        const int64_t label = cornu__label_at(labels, i);
        const int64_t best = cornu_predicted_class(p + i * classes, classes);
        if (label < 0 || label >= classes)
            return cornu__fail(CORNU_ERR_VALUE, "confusion: label %lld is %lld, expected 0 to %lld",
                               (long long)i, (long long)label, (long long)classes - 1);
        if (best < 0)
            return cornu__fail(CORNU_ERR_VALUE, "confusion: prediction %lld is not a number",
                               (long long)i);
        count[label * classes + best]++;
    }
    return CORNU_OK;
}

/* ---- Scores ---- */

static double ratio(int64_t part, int64_t whole)
{
    return whole ? (double)part / (double)whole : 0.0;
}

/* Of counts (classes, classes). */
static CornuClassSums sums_of(CornuArray counts, int64_t class)
{
    const int64_t  classes = counts.type.shape.extent[0], *count = counts.data;
    CornuClassSums sums = { .right = count[class * classes + class] };
    for (int64_t c = 0; c < classes; c++) {
        sums.predicted += count[c * classes + class];
        sums.support += count[class * classes + c];
    }
    return sums;
}

static void add(CornuClassScores *to, const CornuClassScores *scores, double weight)
{
    to->precision += weight * scores->precision;
    to->recall += weight * scores->recall;
    to->f1 += weight * scores->f1;
    to->support += scores->support;
}

/* Divides a weighted sum of scores by the weights; without any weight it stays 0. */
static void divide(CornuClassScores *sum, double weights)
{
    if (weights == 0.0) return;
    sum->precision /= weights;
    sum->recall /= weights;
    sum->f1 /= weights;
}

CornuClassScores cornu__scores_of(CornuClassSums sums)
{
    return (CornuClassScores){
        .precision = ratio(sums.right, sums.predicted),
        .recall = ratio(sums.right, sums.support),
        .f1 = ratio(2 * sums.right, sums.predicted + sums.support),
        .support = sums.support,
    };
}

void cornu__mean_scores(const CornuClassSums *sums, int64_t classes, CornuClassScores *macro,
                        CornuClassScores *weighted, double *accuracy)
{
    int64_t right = 0;
    *macro = *weighted = (CornuClassScores){ 0 };
    for (int64_t c = 0; c < classes; c++) {
        const CornuClassScores scores = cornu__scores_of(sums[c]);
        right += sums[c].right;
        add(macro, &scores, 1.0);
        add(weighted, &scores, (double)scores.support);
    }
    divide(macro, (double)classes);
    divide(weighted, (double)weighted->support);
    *accuracy = ratio(right, weighted->support);
}

CornuStatus cornu_class_scores(CornuArray counts, CornuClassScores *each, CornuClassScores *macro,
                               CornuClassScores *weighted, double *accuracy)
{
    CORNU__TRY(check_counts(counts));
    const int64_t classes = counts.type.shape.extent[0], *count = counts.data;
    for (int64_t i = 0; i < classes * classes; i++)
        if (count[i] < 0)
            return cornu__fail(CORNU_ERR_VALUE, "report: %lld samples of class %lld as class %lld, "
                               "expected 0 or more", (long long)count[i], (long long)(i / classes),
                               (long long)(i % classes));
    CornuClassSums *sums = cornu__allocate((size_t)classes, sizeof *sums);
    if (!sums) return CORNU_ERR_MEMORY;
    for (int64_t c = 0; c < classes; c++) {
        sums[c] = sums_of(counts, c);
        each[c] = cornu__scores_of(sums[c]);
    }
    cornu__mean_scores(sums, classes, macro, weighted, accuracy);
    cornu__release(sums);
    return CORNU_OK;
}

/* ---- Printing: sklearn/metrics/_classification.py, classification_report ---- */

/* The number of UTF-8 characters: bytes that do not continue one. */
static int characters(const char *text)
{
    int count = 0;
    for (; *text; text++) count += (*text & 0xC0) != 0x80;
    return count;
}

/* "name ", right-aligned. */
static void print_name(FILE *file, int width, const char *name)
{
    CornuShown shown;
    name = cornu_shown(&shown, name);
    fprintf(file, "%*s%s ", width - characters(name), "", name);
}

static void print_scores(FILE *file, int width, const char *name, const CornuClassScores *scores,
                         int digits)
{
    print_name(file, width, name);
    cornu__print(file, " %9.*f %9.*f %9.*f %9lld\n", digits, scores->precision, digits,
                 scores->recall, digits, scores->f1, (long long)scores->support);
}

/* Prints for how many classes a divisor was 0. That of F1 is 0 only where both others are. */
static void print_undivided(FILE *file, CornuArray counts)
{
    const int64_t classes = counts.type.shape.extent[0];
    int64_t       never = 0, absent = 0;
    for (int64_t c = 0; c < classes; c++) {
        const CornuClassSums sums = sums_of(counts, c);
        never += sums.predicted == 0;
        absent += sums.support == 0;
    }
    if (!never && !absent) return;
    fputs("\ncounted as 0:", file);
    if (never)
        fprintf(file, " the precision of %lld class%s never predicted", (long long)never,
                never == 1 ? "" : "es");
    if (absent)
        fprintf(file, "%s the recall of %lld class%s without samples", never ? "," : "",
                (long long)absent, absent == 1 ? "" : "es");
    fputc('\n', file);
}

CornuStatus cornu_report_print(CornuArray counts, const char *const *names, int digits, FILE *file)
{
    CORNU__TRY(check_counts(counts));
    if (digits < 0 || digits > 9)
        return cornu__fail(CORNU_ERR_ARGUMENT, "report: %d digits, expected 0 to 9", digits);
    const int64_t     classes = counts.type.shape.extent[0];
    CornuClassScores *each = cornu__allocate((size_t)classes, sizeof *each), macro, weighted;
    double            accuracy;
    CornuStatus       status = each ? cornu_class_scores(counts, each, &macro, &weighted, &accuracy)
                                    : CORNU_ERR_MEMORY;
    if (status) goto done;
    int width = characters("weighted avg");
    for (int64_t c = 0; names && c < classes; c++) {
        CornuShown shown;
        const int  wide = characters(cornu_shown(&shown, names[c]));
        if (wide > width) width = wide;
    }

    print_name(file, width, "");
    fprintf(file, " %9s %9s %9s %9s\n\n", "precision", "recall", "f1-score", "support");
    for (int64_t c = 0; c < classes; c++) {
        char number[24];
        snprintf(number, sizeof number, "%lld", (long long)c);
        print_scores(file, width, names ? names[c] : number, &each[c], digits);
    }
    fputc('\n', file);
    print_name(file, width, "accuracy");
    cornu__print(file, " %9s %9s %9.*f %9lld\n", "", "", digits, accuracy,
                 (long long)macro.support);
    print_scores(file, width, "macro avg", &macro, digits);
    print_scores(file, width, "weighted avg", &weighted, digits);
    print_undivided(file, counts);
done:
    cornu__release(each);
    return status;
}
