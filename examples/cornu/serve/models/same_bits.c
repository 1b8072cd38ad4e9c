/*
 * Which sizes of batches give a row the same bits. Kernels may add in another order for few rows
 * than for many; so the sizes at which they may change, powers of two and the next ones, are tried
 * on random rows: the first row, and as many others as there are, must agree in every bit.
 */
#include <stdlib.h>
#include <string.h>

#include "../../clock.h"
#include "served.h"

/* Slow models are not tried further after so many seconds: larger sizes count as different ones. */
#define MOST_SECONDS 5.0

static int64_t next_size(int64_t size, int64_t most)
{
    const bool    power = (size & (size - 1)) == 0;
    const int64_t next = size == 1 ? 2 : power ? size + 1 : 2 * (size - 1);
    return next < most ? next : most;
}

/* Between -1 and 1, or 0 and 1 for integers, which may be indices; strings are empty. */
static void fill(CornuArray x, bool zeros)
{
    const int64_t count = cornu_shape_count(x.type.shape);
    uint32_t      random = 1;
    memset(x.data, 0, (size_t)count * cornu_dtype_size(x.type.dtype));
    for (int64_t i = 0; i < count && x.type.dtype != CORNU_STRING && !zeros; i++) {
        random = random * 1664525U + 1013904223U;
        cornu_array_set(x, i, cornu_dtype_is_float(x.type.dtype)
                                  ? (double)random / 2147483648.0 - 1.0 : (double)(random >> 31));
    }
}

static void set_rows(CornuArray *arrays, int count, int64_t rows)
{
    for (int i = 0; i < count; i++) arrays[i].type.shape.extent[0] = rows;
}

/* Whether the rows of a, of which b has more, are equal in both. */
static bool same_rows(const Served *served, const CornuArray *a, const CornuArray *b)
{
    for (int i = 0; i < served->output_count; i++)
        if (memcmp(a[i].data, b[i].data, (size_t)cornu_type_count(a[i].type) * sizeof(float)) != 0)
            return false;
    return true;
}

/* Notes that one more size was tried, with the bits of the one before or with others. */
static void note(ServedSizes *sizes, int64_t size, bool same)
{
    const int64_t before = sizes->count ? sizes->size[sizes->count - 1] : 0;
    for (int i = 0; i < sizes->count && same; i++)
        if (sizes->end[i] == before) sizes->end[i] = size;
    sizes->size[sizes->count] = sizes->end[sizes->count] = size;
    sizes->count++;
}

/* Outputs of one size and of the one before take turns. */
static bool try_sizes(Served *served, CornuArray *x, CornuArray y[2][CORNU_MAX_MODEL_TENSORS],
                      int64_t first, int64_t most, Problem *problem)
{
    const double begin_s = clock_seconds();
    int          turn = 0;
    for (int64_t size = first;; size = next_size(size, most), turn ^= 1) {
        set_rows(x, served->input_count, size);
        set_rows(y[turn], served->output_count, size);
        if (!served_predict(served, x, y[turn], problem)) return false;
        note(&served->sizes, size, size > first && same_rows(served, y[turn ^ 1], y[turn]));
        if (size == most || served->sizes.count == SERVED_MOST_SIZES ||
            clock_seconds() - begin_s > MOST_SECONDS)
            return true;
    }
}

/* Open extents have as many values as there are lengths of sequences: such models are not tried. */
static bool is_open(const Served *served)
{
    for (int i = 0; i < served->input_count; i++)
        for (int axis = 1; axis < served->inputs[i].type.shape.rank; axis++)
            if (served->inputs[i].type.shape.extent[axis] == CORNU_NONE) return true;
    return false;
}

bool served_try_sizes(Served *served, int64_t batch_size, Problem *problem)
{
    CornuArray    x[CORNU_MAX_MODEL_TENSORS] = { { .data = NULL } };
    CornuArray    y[2][CORNU_MAX_MODEL_TENSORS] = { { { .data = NULL } } };
    const int64_t first = served->fixed_rows ? served->fixed_rows : 1;
    const int64_t most = served->fixed_rows ? served->fixed_rows : batch_size;
    bool          good = true;
    if (is_open(served)) return true;
    for (int i = 0; i < served->input_count; i++) {
        x[i] = (CornuArray){ .type = served->inputs[i].type };
        x[i].type.shape.extent[0] = most;
        good &= (x[i].data = malloc((size_t)cornu_shape_count(x[i].type.shape) *
                                    cornu_dtype_size(x[i].type.dtype))) != NULL;
        if (x[i].data) fill(x[i], false);
    }
    if (!good) problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for a first prediction");
    for (int i = 0; i < 2 && good; i++) good = served_make_outputs(served, x, y[i], problem);
    if (good && !try_sizes(served, x, y, first, most, problem)) {
        for (int i = 0; i < served->input_count; i++) fill(x[i], true);
        served->sizes.count = 0;
        problem->code = CODE_OK;
        good = try_sizes(served, x, y, first, most, problem);   /* 1 was no valid index */
    }
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS; i++) {
        free(x[i].data);
        free(y[0][i].data);
        free(y[1][i].data);
    }
    return good;
}

int64_t served_most_rows(const Served *served, int64_t rows)
{
    const ServedSizes *sizes = &served->sizes;
    int                i = 0;
    while (i < sizes->count && sizes->size[i] < rows) i++;
    if (i == sizes->count || served->fixed_rows) return rows;
    if (sizes->size[i] > rows && i > 0 && sizes->end[i - 1] != sizes->end[i]) return rows;
    return sizes->end[i];
}
