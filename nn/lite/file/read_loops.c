/*
 * Loops, turn by turn: the condition must follow from constants, as where a counter goes to a known
 * end. Single integers and truths are computed as they are read, constants are those of all turns.
 */
#include <string.h>

#include "../../../device/memory_internal.h"
#include "read_internal.h"

enum { MOST_TURNS = 1024, TURN = 1024 };   /* TURN: bytes that one counts as at least */

/* ---- Numbers ---- */

static bool number_of(const CornuLiteGraph *graph, int tensor, int64_t *number)
{
    const CornuLiteTensor *t = tensor < 0 ? NULL : &graph->tensors[tensor];
    int32_t                narrow;
    if (!t || !t->data || cornu__lite_count(t->shape, 1) != 1) return false;
    switch (t->dtype) {
    case CORNU_LITE_I64:  memcpy(number, t->data, sizeof *number); return true;
    case CORNU_LITE_BOOL: *number = *(const unsigned char *)t->data != 0; return true;
    case CORNU_LITE_I32:
        memcpy(&narrow, t->data, sizeof narrow);
        *number = narrow;
        return true;
    default: return false;
    }
}

/* Of numbers of at most 32 bits, so that nothing overflows. */
static bool compute(int code, int64_t a, int64_t b, int64_t *y)
{
    switch (code) {
    case CORNU_LITE_ADD:           *y = a + b; return true;
    case CORNU_LITE_SUB:           *y = a - b; return true;
    case CORNU_LITE_MUL:           *y = a * b; return true;
    case CORNU_LITE_MAXIMUM:       *y = a > b ? a : b; return true;
    case CORNU_LITE_MINIMUM:       *y = a < b ? a : b; return true;
    case CORNU_LITE_LESS:          *y = a < b; return true;
    case CORNU_LITE_LESS_EQUAL:    *y = a <= b; return true;
    case CORNU_LITE_GREATER:       *y = a > b; return true;
    case CORNU_LITE_GREATER_EQUAL: *y = a >= b; return true;
    case CORNU_LITE_EQUAL:         *y = a == b; return true;
    case CORNU_LITE_NOT_EQUAL:     *y = a != b; return true;
    case CORNU_LITE_LOGICAL_AND:   *y = a && b; return true;
    case CORNU_LITE_LOGICAL_OR:    *y = a || b; return true;
    case CORNU_LITE_LOGICAL_NOT:   *y = !a; return true;
    default: return false;
    }
}

static bool fits(int64_t number) { return number >= INT32_MIN && number <= INT32_MAX; }

CornuStatus cornu__lite_fold_number(CornuLiteReader *reader, int code, const int *in, int in_count,
                                    int out, bool *folded)
{
    CornuLiteTensor *to = &reader->graph->tensors[out];
    const size_t     size = cornu__lite_dtype_size(to->dtype);
    int64_t          a, b = 0, y;
    *folded = false;
    if (in_count < 1 || in_count > 2 || in_count != (code == CORNU_LITE_LOGICAL_NOT ? 1 : 2) ||
        to->data || cornu__lite_count(to->shape, 1) != 1 ||
        (to->dtype != CORNU_LITE_I32 && to->dtype != CORNU_LITE_I64 &&
         to->dtype != CORNU_LITE_BOOL) ||
        !number_of(reader->graph, in[0], &a) ||
        (in_count == 2 && !number_of(reader->graph, in[1], &b)) || !fits(a) || !fits(b) ||
        !compute(code, a, b, &y) || (to->dtype == CORNU_LITE_I32 && !fits(y)))
        return CORNU_OK;
    if (!(to->data = cornu__allocate(size, 1))) return CORNU_ERR_MEMORY;
    memcpy(to->data, &y, size);   /* little-endian */
    to->bytes = size;
    *folded = true;
    return CORNU_OK;
}

/* ---- Turns ---- */

/* A subgraph that is read again and again. */
typedef struct {
    int64_t index;
    int    *constants;
} Part;

static CornuStatus open_part(CornuLiteReader *reader, int64_t index, Part *part)
{
    *part = (Part){ .index = index };
    if (index < 0 || (size_t)index >= reader->subgraphs.count)
        return cornu__lite_damaged("a number of a subgraph that there is not");
    const CornuFlatTable  table = cornu__flat_element(&reader->from, &reader->subgraphs,
                                                      (size_t)index);
    const CornuFlatVector tensors = cornu__flat_vector_at(&reader->from, &table, 0, 4);
    part->constants = cornu__allocate(tensors.count, sizeof *part->constants);
    if (!part->constants) return CORNU_ERR_MEMORY;
    for (size_t i = 0; i < tensors.count; i++) part->constants[i] = CORNU_LITE_UNREAD;
    return CORNU_OK;
}

static CornuStatus read_part(CornuLiteReader *reader, const Part *part, const int *in, int count,
                             int **out, int *out_count)
{
    reader->shared = part->constants;
    return cornu__lite_read_subgraph(reader, part->index, in, count, out, out_count);
}

static CornuStatus goes_on(CornuLiteReader *reader, const Part *condition, const int *values,
                           int count, bool *on)
{
    int        *out = NULL, out_count;
    int64_t     number = 0;
    CornuStatus status = read_part(reader, condition, values, count, &out, &out_count);
    if (!status && (out_count != 1 || !number_of(reader->graph, out[0], &number)))
        status = cornu__fail(CORNU_ERR_UNSUPPORTED, "a loop whose turns depend on data, or on "
                             "shapes that are not known");
    cornu__release(out);
    *on = number != 0;
    return status;
}

static CornuStatus read_turns(CornuLiteReader *reader, const Part *condition, const Part *body,
                              int count, int **values)
{
    bool on;
    for (int turn = 0;; turn++) {
        int *next = NULL, next_count;
        CORNU__TRY(cornu__lite_take(reader, TURN));
        CORNU__TRY(goes_on(reader, condition, *values, count, &on));
        if (!on) return CORNU_OK;
        if (turn == MOST_TURNS)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "a loop of over %d turns", MOST_TURNS);
        CornuStatus status = read_part(reader, body, *values, count, &next, &next_count);
        if (!status && next_count != count)
            status = cornu__fail(CORNU_ERR_FORMAT, "the loop has %d values, its body gives %d",
                                 count, next_count);
        if (status) {
            cornu__release(next);
            return status;
        }
        cornu__release(*values);
        *values = next;
    }
}

CornuStatus cornu__lite_read_loop(CornuLiteReader *reader, int64_t condition, int64_t body,
                                  const int *in, int count, int **results)
{
    Part        parts[2] = { { .constants = NULL } };
    CornuStatus status = open_part(reader, condition, &parts[0]);
    if (!status) status = open_part(reader, body, &parts[1]);
    if (!status && !(*results = cornu__allocate((size_t)count, sizeof **results)))
        status = CORNU_ERR_MEMORY;
    if (!status) {
        if (count) memcpy(*results, in, (size_t)count * sizeof *in);
        reader->loops++;
        status = read_turns(reader, &parts[0], &parts[1], count, results);
        reader->loops--;
    }
    reader->shared = NULL;
    cornu__release(parts[0].constants);
    cornu__release(parts[1].constants);
    return status;
}
