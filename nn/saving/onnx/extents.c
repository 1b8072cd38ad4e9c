#include "extents_internal.h"

#include "../../../device/memory_internal.h"
#include "rules_internal.h"

#include <string.h>

/* Extents in rules are far below any other number. */
static const int64_t first_handle = INT64_MIN / 2;

bool cornu__onnx_is_open(int64_t extent) { return extent < first_handle / 2; }

static CornuOnnxExtent *entry(const CornuOnnx *to, int64_t extent)
{
    return &to->extents[extent - first_handle];
}

int64_t cornu__onnx_extent_in(const CornuOnnx *to, int64_t extent, int world)
{
    if (extent == CORNU_NONE) return cornu__onnx_batches[world];
    return cornu__onnx_is_open(extent) ? entry(to, extent)->numbers[world] : extent;
}

const int64_t cornu__onnx_batches[CORNU_ONNX_WORLDS] = { 7, 11, 17 };

/* ---- The table ---- */

static int64_t add(CornuOnnx *to, CornuOnnxExtent extent)
{
    if (cornu__reserve(&to->extents, &to->extent_space, to->extent_count, 1,
                       sizeof *to->extents)) {
        to->nodes.failed = true;
        return 1;
    }
    to->extents[to->extent_count] = extent;
    return first_handle + to->extent_count++;
}

int64_t cornu__onnx_axis(CornuOnnx *to, const int64_t *numbers, int value, int axis)
{
    CornuOnnxExtent extent = { .value = value, .axis = axis, .kind = CORNU_ONNX_AXIS };
    memcpy(extent.numbers, numbers, sizeof extent.numbers);
    return add(to, extent);
}

void cornu__onnx_axis_of(CornuOnnx *to, int64_t extent, int value)
{
    if (cornu__onnx_is_open(extent) && !entry(to, extent)->value &&
        entry(to, extent)->kind == CORNU_ONNX_AXIS)
        entry(to, extent)->value = value;
}

void cornu__onnx_batch_of(CornuOnnx *to, int value)
{
    if (!to->extent_count) cornu__onnx_axis(to, cornu__onnx_batches, 0, 0);
    if (!to->extent_count) return;
    to->extents[0].value = value;
    for (int i = 0; i < to->extent_count; i++)
        if (to->extents[i].of_batch || i == 0) to->extents[i].vector = 0;
}

/* ---- Finding ---- */

/* numbers = factor x + offset in all worlds. */
static bool is_linear(const int64_t *numbers, const int64_t *x, int64_t *factor, int64_t *offset)
{
    const int64_t step = x[1] - x[0];
    if (step == 0 || (numbers[1] - numbers[0]) % step != 0) return false;
    *factor = (numbers[1] - numbers[0]) / step;
    *offset = numbers[0] - *factor * x[0];
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++)
        if (*factor < 1 || numbers[w] != *factor * x[w] + *offset) return false;
    return true;
}

/* factor a + offset, or a b. */
static int64_t derive(CornuOnnx *to, CornuOnnxExtent extent)
{
    const CornuOnnxExtent *a = &to->extents[extent.a], *b = &to->extents[extent.b];
    const bool             product = extent.kind == CORNU_ONNX_PRODUCT;
    extent.of_batch = extent.a == 0 || a->of_batch ||
                      (product && (extent.b == 0 || b->of_batch));
    for (int w = 0; w < CORNU_ONNX_WORLDS; w++)
        extent.numbers[w] = product ? a->numbers[w] * b->numbers[w]
                                    : extent.factor * a->numbers[w] + extent.offset;
    return add(to, extent);
}

static int64_t multiple(CornuOnnx *to, int64_t of, int64_t factor, int64_t offset)
{
    if (factor == 1 && offset == 0) return of;
    return derive(to, (CornuOnnxExtent){ .kind = CORNU_ONNX_LINEAR, .factor = factor,
                                         .offset = offset, .a = (int)(of - first_handle) });
}

static int64_t product(CornuOnnx *to, int64_t a, int64_t b)
{
    return derive(to, (CornuOnnxExtent){ .kind = CORNU_ONNX_PRODUCT, .a = (int)(a - first_handle),
                                         .b = (int)(b - first_handle) });
}

static int64_t find_linear(CornuOnnx *to, const int64_t *numbers, bool with_offset)
{
    int64_t factor, offset;
    for (int i = 0; i < to->extent_count; i++)
        if (is_linear(numbers, to->extents[i].numbers, &factor, &offset) &&
            (offset == 0 || (with_offset && i > 0)))
            return multiple(to, first_handle + i, factor, offset);
    return 0;
}

/* A multiple of a product of two of them, or of three that are extents of values. */
static int64_t find_product(CornuOnnx *to, const int64_t *numbers)
{
    const int count = to->extent_count;
    int64_t   both[CORNU_ONNX_WORLDS], all[CORNU_ONNX_WORLDS], factor, offset;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k <= i; k++) {
            const CornuOnnxExtent *a = &to->extents[i], *b = &to->extents[k];
            for (int w = 0; w < CORNU_ONNX_WORLDS; w++) both[w] = a->numbers[w] * b->numbers[w];
            if (is_linear(numbers, both, &factor, &offset) && offset == 0)
                return multiple(to, product(to, first_handle + i, first_handle + k), factor, 0);
            if (a->kind != CORNU_ONNX_AXIS || b->kind != CORNU_ONNX_AXIS) continue;
            for (int m = 0; m <= k; m++) {
                const CornuOnnxExtent *c = &to->extents[m];
                if (c->kind != CORNU_ONNX_AXIS) continue;
                for (int w = 0; w < CORNU_ONNX_WORLDS; w++) all[w] = both[w] * c->numbers[w];
                if (!is_linear(numbers, all, &factor, &offset) || offset != 0) continue;
                const int64_t pair = product(to, first_handle + i, first_handle + k);
                return multiple(to, product(to, pair, first_handle + m), factor, 0);
            }
        }
    }
    return 0;
}

int64_t cornu__onnx_extent(CornuOnnx *to, const int64_t *numbers)
{
    bool known = true;
    for (int w = 1; w < CORNU_ONNX_WORLDS; w++) known &= numbers[w] == numbers[0];
    if (known) return numbers[0];
    int64_t extent = find_linear(to, numbers, false);
    if (!extent) extent = find_product(to, numbers);
    return extent ? extent : find_linear(to, numbers, true);
}

/* ---- Writing ---- */

static int gathered(CornuOnnx *to, const CornuOnnxExtent *of)
{
    const CornuOnnxValue *value = &to->values[of->value];
    const int     source = value->source ? value->source : of->value;
    const int64_t axis = value->source ? value->order[of->axis] : of->axis;
    const int     shape = cornu__onnx_node(to, "Shape", &source, 1, NULL, 0, 1);
    return joined(to, "Gather", shape, cornu__onnx_integers(to, &axis, 1));
}

static int vector_of(CornuOnnx *to, int i)
{
    const CornuOnnxExtent of = to->extents[i];
    int                   vector = of.vector;
    if (vector) return vector;
    if (of.kind == CORNU_ONNX_AXIS) {
        to->pending |= of.value == CORNU_ONNX_NONE;
        if (of.value) vector = gathered(to, &of);
    } else if (of.kind == CORNU_ONNX_PRODUCT) {
        const int a = vector_of(to, of.a), b = vector_of(to, of.b);
        vector = joined(to, "Mul", a, b);
    } else {
        vector = vector_of(to, of.a);
        if (of.factor != 1)
            vector = joined(to, "Mul", vector, cornu__onnx_integers(to, &of.factor, 1));
        if (of.offset != 0)
            vector = joined(to, "Add", vector, cornu__onnx_integers(to, &of.offset, 1));
    }
    return to->extents[i].vector = vector;
}

int cornu__onnx_vector(CornuOnnx *to, const int64_t *extents, int count)
{
    int parts[2 * CORNU_MAX_RANK], open = 0;
    for (int i = 0; i < count; i++) open += cornu__onnx_is_open(extents[i]);
    if (!open) return cornu__onnx_integers(to, extents, count);
    for (int i = 0; i < count; i++)
        parts[i] = cornu__onnx_is_open(extents[i]) ? vector_of(to, (int)(extents[i] - first_handle))
                                                   : cornu__onnx_integers(to, &extents[i], 1);
    if (count == 1) return *parts;
    return cornu__onnx_node(to, "Concat", parts, count,
                            &(CornuOnnxAttribute){ .name = "axis", .whole = 0 }, 1, 1);
}
