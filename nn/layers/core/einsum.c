/* Sums of products by matrix products: the operands are joined pairwise, from the left. */
#include "../einsum_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/status_internal.h"

/* Axes are named by their letters, those of "..." by the numbers 1 to CORNU_MAX_RANK, the last one
 * CORNU_MAX_RANK. */
typedef struct {
    int           count;
    unsigned char name[CORNU_MAX_RANK];
} Axes;

typedef struct {
    CornuTensor *x;
    Axes         axes;
} Operand;

/* Which names are needed after a product. */
typedef struct {
    bool has[128];
} Needed;

static int place_of(const Axes *axes, int name)
{
    for (int i = 0; i < axes->count; i++)
        if (axes->name[i] == name) return i;
    return -1;
}

static bool has(const Axes *axes, int name) { return place_of(axes, name) >= 0; }

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/* ---- The equation ---- */

/* Reads the names of an operand, up to ',' or '-' or the end; `elided` is the number of axes that
 * "..." stands for. */
static CornuStatus read_axes(const char **text, int elided, Axes *axes)
{
    bool dots = false;
    axes->count = 0;
    for (; **text && **text != ',' && **text != '-'; ++*text) {
        const int names = **text == '.' ? elided : 1;
        if (**text == ' ') continue;
        if (**text == '.' && (dots || strncmp(*text, "...", 3)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "expected \"...\" at most once in each operand");
        if (**text != '.' && !is_letter(**text))
            return cornu__fail(CORNU_ERR_ARGUMENT, "has '%c', expected letters, \"...\", \",\" and "
                               "\"->\"", **text);
        if (axes->count + names > CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_ARGUMENT, "has more than %d axes in one operand",
                               CORNU_MAX_RANK);
        for (int i = 0; i < names; i++) {
            const int name = **text == '.' ? CORNU_MAX_RANK - elided + 1 + i : **text;
            if (has(axes, name))
                return cornu__fail(CORNU_ERR_UNSUPPORTED, "has '%c' twice in one operand; a "
                                   "diagonal is not available in this version", **text);
            axes->name[axes->count++] = (unsigned char)name;
        }
        if (**text == '.') {
            dots = true;
            *text += 2;
        }
    }
    return CORNU_OK;
}

/* The number of letters of an operand, and whether it has dots. */
static int letters_of(const char *text, bool *dots)
{
    int count = 0;
    *dots = false;
    for (; *text && *text != ',' && *text != '-'; text++) {
        count += is_letter(*text);
        *dots |= *text == '.';
    }
    return count;
}

static CornuStatus read_operands(const char **text, CornuTensor *const *x, int count,
                                 Operand *operands, int *elided)
{
    *elided = 0;
    for (int i = 0; i < count; i++) {
        const CornuShape shape = cornu_tensor_shape(x[i]);
        CornuText        print;
        bool             dots;
        const int        letters = letters_of(*text, &dots), own = dots ? shape.rank - letters : 0;
        if (own < 0 || letters + own != shape.rank)
            return cornu__fail(CORNU_ERR_SHAPE, "names %d axes%s in operand %d, which is %s",
                               letters, dots ? " and \"...\"" : "", i,
                               cornu_shape_print(&print, shape));
        operands[i].x = x[i];
        CORNU__TRY(read_axes(text, own, &operands[i].axes));
        if (own > *elided) *elided = own;
        if (i + 1 < count && *(*text)++ != ',')
            return cornu__fail(CORNU_ERR_ARGUMENT, "has %d operands, %d tensors were given", i + 1,
                               count);
    }
    if (**text != ',') return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "has more operands than the %d tensors given", count);
}

/* The result without "->": the axes of "...", and the letters that occur once. */
static CornuStatus usual_result(const Operand *operands, int count, int elided, Axes *result)
{
    result->count = 0;
    for (int name = CORNU_MAX_RANK - elided + 1; name < 128; name++) {
        int times = 0;
        for (int i = 0; i < count; i++) times += has(&operands[i].axes, name);
        if (name <= CORNU_MAX_RANK ? times == 0 : times != 1) continue;
        if (result->count == CORNU_MAX_RANK)
            return cornu__fail(CORNU_ERR_ARGUMENT, "has a result of more than %d axes",
                               CORNU_MAX_RANK);
        result->name[result->count++] = (unsigned char)name;
    }
    return CORNU_OK;
}

static CornuStatus read_equation(const char *text, CornuTensor *const *x, int count,
                                 Operand *operands, Axes *result)
{
    int elided;
    CORNU__TRY(read_operands(&text, x, count, operands, &elided));
    if (!*text) return usual_result(operands, count, elided, result);
    if (strncmp(text, "->", 2))
        return cornu__fail(CORNU_ERR_ARGUMENT, "expected \"->\" after the operands");
    text += 2;
    CORNU__TRY(read_axes(&text, elided, result));
    if (*text) return cornu__fail(CORNU_ERR_ARGUMENT, "has \"%.10s\" after the result", text);
    for (int k = 0; k < result->count; k++) {
        bool known = false;
        for (int i = 0; i < count; i++) known |= has(&operands[i].axes, result->name[k]);
        if (!known)
            return cornu__fail(CORNU_ERR_ARGUMENT, "the result has '%c', which no operand has",
                               result->name[k]);
    }
    return CORNU_OK;
}

/* ---- Operands ---- */

static int64_t extent_of(const Operand *operand, int name)
{
    const int place = place_of(&operand->axes, name);
    return place < 0 ? 1 : cornu_tensor_shape(operand->x).extent[place];
}

/* Removes the axes of these bits by summing over them. */
static void sum_over(Operand *operand, int64_t bits)
{
    Axes rest = { .count = 0 };
    if (!bits || !operand->x) return;
    for (int i = 0; i < operand->axes.count; i++)
        if (!(bits >> i & 1)) rest.name[rest.count++] = operand->axes.name[i];
    operand->x = cornu_op_reduce_sum(operand->x, bits, false);
    operand->axes = rest;
}

/* Sums over the axes that only this operand has and nothing after it needs, and drops axes of
 * extent 1 that are broadcast. */
static void reduce(Operand *operand, const Operand *other, const Needed *needed)
{
    int64_t bits = 0;
    for (int i = 0; i < operand->axes.count; i++) {
        const int  name = operand->axes.name[i];
        const bool shared = has(&other->axes, name);
        if ((!shared && !needed->has[name]) ||
            (shared && extent_of(operand, name) == 1 && extent_of(other, name) != 1))
            bits |= INT64_C(1) << i;
    }
    sum_over(operand, bits);
}

/* The axes in this order; both lists have the same names. */
static CornuTensor *arranged(const Operand *operand, const Axes *order)
{
    int axes[CORNU_MAX_RANK];
    for (int i = 0; i < order->count; i++) axes[i] = place_of(&operand->axes, order->name[i]);
    return order->count > 1 ? cornu_op_transpose(operand->x, axes) : operand->x;
}

/* Appends the names of `from` that `other` has, or lacks, and that are needed, or not. */
static void append(Axes *to, const Axes *from, const Axes *other, bool shared,
                   const Needed *needed, bool wanted)
{
    for (int i = 0; i < from->count; i++)
        if (has(other, from->name[i]) == shared && needed->has[from->name[i]] == wanted)
            to->name[to->count++] = from->name[i];
}

static int64_t product(const Operand *operand, const Axes *axes, int first, int end)
{
    int64_t count = 1;
    for (int i = first; i < end; i++) count *= extent_of(operand, axes->name[i]);
    return count;
}

/* ---- Products of two ---- */

static CornuStatus check_extents(const Operand *a, const Operand *b)
{
    for (int i = 0; i < a->axes.count; i++) {
        const int     name = a->axes.name[i];
        const int64_t of_a = extent_of(a, name), of_b = extent_of(b, name);
        if (!has(&b->axes, name) || of_a == of_b || of_a == 1 || of_b == 1) continue;
        return cornu__fail(CORNU_ERR_SHAPE, "the axis '%c' has the extents %lld and %lld",
                           name <= CORNU_MAX_RANK ? '.' : name, (long long)of_a, (long long)of_b);
    }
    return CORNU_OK;
}

/* Nothing is summed: a product of elements, of the axes shared, those of a, and those of b. */
static CornuTensor *elements(const Operand *a, const Operand *b, int shared, const Axes *of_a,
                             const Axes *of_b, CornuDtype dtype)
{
    const int  rank = of_a->count + of_b->count - shared;
    CornuShape x = { .rank = rank }, y = { .rank = rank };
    for (int i = 0; i < rank; i++) {
        x.extent[i] = i < of_a->count ? extent_of(a, of_a->name[i]) : 1;
        y.extent[i] = i < shared ? x.extent[i] : 1;
        if (i >= of_a->count)
            y.extent[i] = extent_of(b, of_b->name[i - of_a->count + shared]);
    }
    CornuTensor *left = cornu_op_convert(cornu_op_reshape(arranged(a, of_a), x), dtype);
    CornuTensor *right = cornu_op_convert(cornu_op_reshape(arranged(b, of_b), y), dtype);
    return cornu_op_multiply(left, right);
}

/* a (shared, own, summed) by b (shared, summed, own). */
static CornuTensor *matrices(const Operand *a, const Operand *b, int shared, const Axes *of_a,
                             int own_a, const Axes *of_b, int summed, CornuDtype dtype)
{
    const int64_t batch = product(a, of_a, 0, shared);
    const int64_t M = product(a, of_a, shared, shared + own_a);
    const int64_t K = product(a, of_a, shared + own_a, of_a->count);
    const int64_t N = product(b, of_b, shared + summed, of_b->count);
    const CornuShape left = shared ? cornu_shape(batch, M, K) : cornu_shape(M, K);
    const CornuShape right = shared ? cornu_shape(batch, K, N) : cornu_shape(K, N);
    return cornu_op_matmul_to(cornu_op_reshape(arranged(a, of_a), left),
                              cornu_op_reshape(arranged(b, of_b), right), dtype);
}

/* The product of a and b with the axes that are needed. */
static CornuStatus join(Operand *a, Operand *b, const Needed *needed, CornuDtype dtype,
                        Operand *joined)
{
    Axes shared = { 0 }, of_a = { 0 }, of_b = { 0 };
    CORNU__TRY(check_extents(a, b));
    reduce(a, b, needed);
    reduce(b, a, needed);
    reduce(a, b, needed);   /* what b has just dropped */
    if (!a->x || !b->x) return cornu_error_status();
    append(&shared, &a->axes, &b->axes, true, needed, true);
    of_a = of_b = shared;
    append(&of_a, &a->axes, &b->axes, false, needed, true);
    const int own_a = of_a.count - shared.count;
    append(&of_b, &a->axes, &b->axes, true, needed, false);
    const int summed = of_b.count - shared.count;
    for (int i = shared.count; i < of_b.count; i++) of_a.name[of_a.count++] = of_b.name[i];
    append(&of_b, &b->axes, &a->axes, false, needed, true);
    Axes       all = of_a;
    CornuShape shape = { 0 };
    all.count = shared.count + own_a;
    if (all.count + of_b.count - shared.count - summed > CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "a product on the way has more than %d axes",
                           CORNU_MAX_RANK);
    for (int i = shared.count + summed; i < of_b.count; i++)
        all.name[all.count++] = of_b.name[i];
    for (int i = 0; i < all.count; i++)
        shape.extent[i] = extent_of(has(&a->axes, all.name[i]) ? a : b, all.name[i]);
    shape.rank = all.count;
    joined->axes = all;
    joined->x = summed ? cornu_op_reshape(matrices(a, b, shared.count, &of_a, own_a, &of_b, summed,
                                                   dtype), shape)
                       : elements(a, b, shared.count, &of_a, &of_b, dtype);
    return joined->x ? CORNU_OK : cornu_error_status();
}

/* The names that the result or operands from `first` on have. */
static Needed needed_by(const Axes *result, const Operand *operands, int first, int count)
{
    Needed needed = { { false } };
    for (int i = 0; i < result->count; i++) needed.has[result->name[i]] = true;
    for (int i = first; i < count; i++)
        for (int k = 0; k < operands[i].axes.count; k++)
            needed.has[operands[i].axes.name[k]] = true;
    return needed;
}

static CornuStatus multiply_all(Operand *operands, int count, const Axes *result, CornuDtype dtype)
{
    const CornuDtype narrow = cornu_tensor_type(operands[0].x).dtype;
    for (int i = 1; i < count; i++) {
        const Needed needed = needed_by(result, operands, i + 1, count);
        Operand    joined;
        CORNU__TRY(join(&operands[0], &operands[i], &needed, i + 1 < count ? narrow : dtype,
                        &joined));
        operands[0] = joined;
    }
    return CORNU_OK;
}

CornuTensor *cornu__einsum(const char *equation, CornuTensor *const *x, int count,
                           CornuDtype dtype)
{
    Operand operands[CORNU_EINSUM_OPERANDS];
    Axes    result;
    int64_t bits = 0;
    for (int i = 0; i < count; i++)
        if (!x[i]) return NULL;
    if (count < 1 || count > CORNU_EINSUM_OPERANDS)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "einsum of %d tensors, expected 1 to %d", count,
                                CORNU_EINSUM_OPERANDS);
    CornuStatus status = read_equation(equation, x, count, operands, &result);
    if (!status) status = multiply_all(operands, count, &result, dtype);
    if (status) {
        char place[80];
        snprintf(place, sizeof place, "the equation \"%.50s\"", equation);
        cornu__fail_prefix(status, place);
        return cornu__null();
    }
    Operand *all = &operands[0];
    for (int i = 0; i < all->axes.count; i++)
        if (!has(&result, all->axes.name[i])) bits |= INT64_C(1) << i;
    sum_over(all, bits);
    return all->x ? cornu_op_convert(arranged(all, &result), dtype) : NULL;
}
