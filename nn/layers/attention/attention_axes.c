/* Attention along some axes of many: inputs as sequences, and back. */
#include "heads_internal.h"

enum { QUERY = CORNU_HEADS_QUERY, MASK = CORNU_HEADS_MASK };

typedef CornuAttentionLayout Layout;

Layout cornu__attention_layout(const int64_t *attention_axes, int rank)
{
    Layout  layout = { .rank = rank };
    int64_t set = 0;
    int     count = 1;
    for (int i = 0; i < CORNU_MAX_RANK && attention_axes[i]; i++)
        set |= INT64_C(1) << (attention_axes[i] < 0 ? attention_axes[i] + rank : attention_axes[i]);
    for (int attended = 0; attended < 2; attended++)
        for (int i = 1; i < rank - 1; i++) {
            if ((set == 0 || (set >> i & 1)) != attended) continue;
            layout.order[count++] = i;
            layout.attended += attended;
        }
    layout.order[count] = rank - 1;
    return layout;
}

/* The number of the first attended axis in the order. */
static int first_attended(const Layout *layout) { return layout->rank - 1 - layout->attended; }

CornuShape cornu__attention_sequence_shape(const Layout *layout, CornuShape shape)
{
    int64_t rows = shape.extent[0], steps = 1;
    for (int i = 1; i < layout->rank - 1; i++) {
        const int64_t extent = shape.extent[layout->order[i]];
        if (i >= first_attended(layout)) steps *= extent;
        else if (rows != CORNU_NONE) rows *= extent;
    }
    return cornu_shape(rows, steps, shape.extent[layout->rank - 1]);
}

CornuTensor *cornu__attention_sequence(const Layout *layout, CornuTensor *x)
{
    if (!x || layout->rank == 3) return x;
    const CornuShape shape = cornu__attention_sequence_shape(layout, cornu_tensor_shape(x));
    return cornu_op_reshape(cornu_op_transpose(x, layout->order), shape);
}

CornuTensor *cornu__attention_restored(const Layout *layout, CornuShape query, CornuTensor *y)
{
    if (!y || layout->rank == 3) return y;
    const CornuShape made = cornu_tensor_shape(y);
    CornuShape       shape = { .rank = layout->rank - 1 };
    int              back[CORNU_MAX_RANK];
    for (int i = 0; i < layout->rank - 1; i++) {
        shape.extent[i] = query.extent[layout->order[i]];
        back[layout->order[i]] = i;
    }
    for (int i = 2; i < made.rank; i++) {
        back[shape.rank] = shape.rank;
        shape.extent[shape.rank++] = made.extent[i];
    }
    return cornu_op_transpose(cornu_op_reshape(y, shape), back);
}

/* (B, folded axes, heads, attended axes of the query, those of the value); without an axis for 0
 * heads. The rank may exceed CORNU_MAX_RANK: `extents` holds two more for each attended axis. */
enum { MOST_AXES = 2 * CORNU_MAX_RANK };

static int scores_extents(const Layout *layout, CornuShape query, CornuShape value, int64_t heads,
                          int64_t extents[MOST_AXES])
{
    int count = 0;
    for (int i = 0; i < first_attended(layout); i++)
        extents[count++] = query.extent[i ? layout->order[i] : 0];
    if (heads) extents[count++] = heads;
    for (int i = first_attended(layout); i < layout->rank - 1; i++)
        extents[count++] = query.extent[layout->order[i]];
    for (int i = first_attended(layout); i < layout->rank - 1; i++)
        extents[count++] = value.extent[layout->order[i]];
    return count;
}

CornuTensor *cornu__attention_scores(const Layout *layout, CornuShape query, CornuShape value,
                                     CornuTensor *scores)
{
    int64_t extents[MOST_AXES];
    if (!scores || layout->rank == 3) return scores;
    CornuShape shape = { .rank = scores_extents(layout, query, value,
                                                cornu_tensor_shape(scores).extent[1], extents) };
    if (shape.rank > CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the scores have %d axes, expected at most "
                                "%d", shape.rank, CORNU_MAX_RANK);
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = extents[i];
    return cornu_op_reshape(scores, shape);
}

/* ---- Masks ---- */

/* A mask has the batch, folded axes and heads, as many of them as it says, then the attended axes
 * of query and value. */
static bool has_heads(const Layout *layout, CornuShape mask)
{
    return mask.rank - 2 * layout->attended > first_attended(layout);
}

CornuStatus cornu__attention_check_mask(const Layout *layout, CornuShape query, CornuShape value,
                                        int64_t heads, CornuShape mask)
{
    int64_t   wanted[MOST_AXES];
    const int count = scores_extents(layout, query, value, heads, wanted);
    const int given = mask.rank - 2 * layout->attended, all = count - 2 * layout->attended;
    CornuText a, b;
    bool      fits = given >= 1 && given <= all;
    for (int i = 1; i < mask.rank && fits; i++) {
        const int64_t extent = wanted[i < given ? i : i + all - given];
        fits = mask.extent[i] == 1 || mask.extent[i] == extent;
    }
    if (fits) return CORNU_OK;
    CornuShape scores = { .rank = count < CORNU_MAX_RANK ? count : CORNU_MAX_RANK };
    for (int i = 0; i < scores.rank; i++) scores.extent[i] = wanted[i];
    return cornu__fail(CORNU_ERR_SHAPE, "the mask is %s, expected it to broadcast to %s, or to "
                       "that without the heads", cornu_shape_print(&a, mask),
                       cornu_shape_print(&b, scores));
}

CornuTensor *cornu__attention_mask(const Layout *layout, CornuShape query, CornuShape value,
                                   int64_t heads, CornuTensor *mask)
{
    int64_t extents[MOST_AXES];
    if (!mask) return NULL;
    const CornuShape own = cornu_tensor_shape(mask);
    const int64_t    kept = has_heads(layout, own) ? heads : 0;
    const int        given = own.rank - 2 * layout->attended;
    CornuShape all = { .rank = scores_extents(layout, query, value, kept, extents) };
    CornuShape raised = { .rank = all.rank };
    if (all.rank > CORNU_MAX_RANK)
        return cornu__fail_null(CORNU_ERR_UNSUPPORTED, "the mask has %d axes, expected at most %d",
                                all.rank, CORNU_MAX_RANK);
    for (int i = 0; i < all.rank; i++) {
        const int ahead = all.rank - own.rank;   /* axes of 1 after the given ones */
        all.extent[i] = extents[i];
        raised.extent[i] = i < given ? own.extent[i] : i < given + ahead ? 1
                                                                       : own.extent[i - ahead];
    }
    const CornuShape q = cornu__attention_sequence_shape(layout, query);
    const CornuShape v = cornu__attention_sequence_shape(layout, value);
    mask = cornu_op_reshape(mask, raised);
    if (layout->rank > 3) mask = cornu_op_broadcast(mask, all);
    if (!mask) return NULL;
    if (layout->rank > 3)
        return cornu_op_reshape(mask, cornu_shape(q.extent[0], kept ? heads : 1, q.extent[1],
                                                  v.extent[1]));
    const CornuShape s = cornu_tensor_shape(mask);
    return kept ? mask : cornu_op_reshape(mask, cornu_shape(s.extent[0], 1, s.extent[1],
                                                            s.extent[2]));
}

/* ---- Checks ---- */

CornuStatus cornu__attention_check_axes(const int64_t *attention_axes, const CornuShape *in,
                                        int in_count)
{
    static const char *const names[] = { "query", "value", "key" };
    const int rank = in[QUERY].rank;
    CornuText a, b;
    for (int i = 0; i < in_count && i < MASK; i++)
        if (in[i].rank < 3 || in[i].rank != rank)
            return cornu__fail(CORNU_ERR_SHAPE, "the %s is %s, expected (B, T, C) or more axes, as "
                               "many as the query has", names[i], cornu_shape_print(&a, in[i]));
    for (int i = 0; i < CORNU_MAX_RANK && attention_axes[i]; i++) {
        const int64_t given = attention_axes[i];
        const int64_t axis = given < 0 ? given + rank : given;
        if (axis < 1 || axis > rank - 2)
            return cornu__fail(CORNU_ERR_ARGUMENT, ".attention_axes has %lld, expected 1 to %d",
                               (long long)(given == CORNU_ZERO ? 0 : given), rank - 2);
    }
    const Layout layout = cornu__attention_layout(attention_axes, rank);
    for (int i = 1; i < in_count && i < MASK; i++)
        for (int k = 1; k < rank - 1 - layout.attended; k++)
            if (in[i].extent[layout.order[k]] != in[QUERY].extent[layout.order[k]])
                return cornu__fail(CORNU_ERR_SHAPE, "the %s is %s and the query %s, expected the "
                                   "same along axis %d", names[i], cornu_shape_print(&a, in[i]),
                                   cornu_shape_print(&b, in[QUERY]), layout.order[k]);
    return CORNU_OK;
}
