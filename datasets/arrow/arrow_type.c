/* Types of columns, and batches that are as these say. Source: Apache Arrow, "The Arrow C data
 * interface", "Data type description: format strings" and "Columnar format". */
#include <stdlib.h>
#include <string.h>

#include "arrow_internal.h"

CornuArrowType cornu__arrow_type(const char *format)
{
    static const struct { const char *format; CornuArrowType type; } known[] = {
        { "b", { CORNU__ARROW_BOOL, 0 } }, { "c", { CORNU__ARROW_INT, 1 } },
        { "C", { CORNU__ARROW_UINT, 1 } }, { "s", { CORNU__ARROW_INT, 2 } },
        { "S", { CORNU__ARROW_UINT, 2 } }, { "i", { CORNU__ARROW_INT, 4 } },
        { "I", { CORNU__ARROW_UINT, 4 } }, { "l", { CORNU__ARROW_INT, 8 } },
        { "L", { CORNU__ARROW_UINT, 8 } }, { "e", { CORNU__ARROW_FLOAT, 2 } },
        { "f", { CORNU__ARROW_FLOAT, 4 } }, { "g", { CORNU__ARROW_FLOAT, 8 } },
        { "z", { CORNU__ARROW_BYTES, 4 } }, { "u", { CORNU__ARROW_BYTES, 4 } },
        { "Z", { CORNU__ARROW_BYTES, 8 } }, { "U", { CORNU__ARROW_BYTES, 8 } },
        { "+l", { CORNU__ARROW_LIST, 4 } }, { "+L", { CORNU__ARROW_LIST, 8 } },
        { "+s", { CORNU__ARROW_STRUCT, 0 } }, { "tdD", { CORNU__ARROW_INT, 4 } },
        { "tdm", { CORNU__ARROW_INT, 8 } }, { "tts", { CORNU__ARROW_INT, 4 } },
        { "ttm", { CORNU__ARROW_INT, 4 } }, { "ttu", { CORNU__ARROW_INT, 8 } },
        { "ttn", { CORNU__ARROW_INT, 8 } },
    };
    if (!format) return (CornuArrowType){ CORNU__ARROW_OTHER, 0 };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(format, known[i].format)) return known[i].type;
    if (!strncmp(format, "ts", 2) || !strncmp(format, "tD", 2))   /* timestamps, durations */
        return (CornuArrowType){ CORNU__ARROW_INT, 8 };
    const bool list = !strncmp(format, "+w:", 3), bytes = !strncmp(format, "w:", 2);
    char      *end = NULL;
    const long long size = list || bytes ? strtoll(strchr(format, ':') + 1, &end, 10) : -1;
    if (size < 0 || *end || size > INT32_MAX) return (CornuArrowType){ CORNU__ARROW_OTHER, 0 };
    return (CornuArrowType){ list ? CORNU__ARROW_FIXED_LIST : CORNU__ARROW_FIXED_BYTES, size };
}

/* ---- Schemas ---- */

static CornuStatus check_schema(const struct ArrowSchema *schema, int depth)
{
    enum { DEEPEST = 64 };   /* also of columns that are not asked for */
    const char *what = depth > DEEPEST ? "too many columns within columns"
                     : !schema ? "a column that is NULL" : !schema->format ? "no format" : NULL;
    const CornuArrowKind kind = what ? CORNU__ARROW_OTHER : cornu__arrow_type(schema->format).kind;
    if (!what && (schema->n_children < 0 || (schema->n_children && !schema->children)))
        what = "children that are NULL, or fewer than none";
    if (!what && (kind == CORNU__ARROW_LIST || kind == CORNU__ARROW_FIXED_LIST) &&
        schema->n_children != 1)
        what = "another number of children than one";
    if (!what && schema->dictionary && kind != CORNU__ARROW_INT && kind != CORNU__ARROW_UINT)
        what = "a dictionary for what is no whole number";
    if (what)
        return cornu__fail(CORNU_ERR_FORMAT, "a schema whose column \"%.80s\" has %s",
                           schema && schema->name ? schema->name : "", what);
    for (int64_t i = 0; i < schema->n_children; i++)
        CORNU__TRY(check_schema(schema->children[i], depth + 1));
    return schema->dictionary ? check_schema(schema->dictionary, depth + 1) : CORNU_OK;
}

CornuStatus cornu__arrow_check_schema(const struct ArrowSchema *schema)
{
    return check_schema(schema, 0);
}

/* ---- Columns by name ---- */

static int64_t child_of(const struct ArrowSchema *schema, const char *name, size_t length)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        const char *other = schema->children[i]->name ? schema->children[i]->name : "";
        if (strlen(other) == length && !memcmp(other, name, length)) return i;
    }
    return -1;
}

/* A name with dots is a column of that name, else a field of the one before the first dot. */
CornuArrowPath cornu__arrow_find(const struct ArrowSchema *schema, const char *name)
{
    CornuArrowPath path = { .depth = 0 };
    while (path.depth < CORNU__ARROW_DEPTH &&
           cornu__arrow_type(schema->format).kind == CORNU__ARROW_STRUCT) {
        const char   *dot = strchr(name, '.');
        const int64_t whole = child_of(schema, name, strlen(name));
        const int64_t part = whole >= 0 || !dot ? whole : child_of(schema, name,
                                                                   (size_t)(dot - name));
        if (part < 0) break;
        path.child[path.depth++] = part;
        if (whole >= 0) return path;
        schema = schema->children[part];
        name = dot + 1;
    }
    return (CornuArrowPath){ .depth = 0 };
}

const struct ArrowSchema *cornu__arrow_schema_at(const struct ArrowSchema *schema,
                                                 const CornuArrowPath *path)
{
    for (int i = 0; i < path->depth; i++) schema = schema->children[path->child[i]];
    return schema;
}

/* ---- Batches ---- */

static CornuStatus bad(const struct ArrowSchema *schema, const char *what)
{
    return cornu__fail(CORNU_ERR_FORMAT, "a batch whose column \"%.80s\" of format \"%.20s\" has "
                       "%s", schema->name ? schema->name : "", schema->format, what);
}

static int64_t offset_at(const void *offsets, int64_t size, int64_t i)
{
    return size == 4 ? ((const int32_t *)offsets)[i] : ((const int64_t *)offsets)[i];
}

/* Offsets of elements first to first + length, which never go back. *begin and *end: what they
 * cover. */
static CornuStatus check_offsets(const struct ArrowSchema *schema, const struct ArrowArray *array,
                                 int64_t size, int64_t first, int64_t length, int64_t *begin,
                                 int64_t *end)
{
    const void *offsets = array->buffers[1];
    *begin = *end = 0;
    if (!length) return CORNU_OK;
    *begin = *end = offset_at(offsets, size, first);
    for (int64_t i = first; i < first + length; i++) {
        const int64_t next = offset_at(offsets, size, i + 1);
        if (next < *end) return bad(schema, "offsets that go back");
        *end = next;
    }
    return *begin >= 0 ? CORNU_OK : bad(schema, "a negative offset");
}

/* Buffers by kind: of all one of the bits of what is not null, which may be absent. */
static int buffers_of(CornuArrowKind kind)
{
    if (kind == CORNU__ARROW_BYTES) return 3;
    return kind == CORNU__ARROW_STRUCT || kind == CORNU__ARROW_FIXED_LIST ? 1 : 2;
}

static CornuStatus check_node(const struct ArrowSchema *schema, const struct ArrowArray *array,
                              int64_t first, int64_t length, int depth)
{
    const CornuArrowType type = cornu__arrow_type(schema->format);
    if (depth > CORNU__ARROW_DEPTH) return bad(schema, "too many columns within columns");
    if (!array || array->length < 0 || array->offset < 0 || first < 0 ||
        first > array->length || length > array->length - first ||
        array->offset > INT64_MAX / 2 - array->length)
        return bad(schema, "fewer rows than the batch");
    if (type.kind == CORNU__ARROW_OTHER) return CORNU_OK;
    if (array->n_buffers != buffers_of(type.kind) || !array->buffers)
        return bad(schema, "another number of buffers");
    for (int i = 1; i < array->n_buffers && length; i++)
        if (!array->buffers[i] && !(i == 2 && type.kind == CORNU__ARROW_BYTES))
            return bad(schema, "a buffer that is NULL");
    if (array->null_count > 0 && !array->buffers[0] && length)
        return bad(schema, "nulls, and no bits that say which");
    const bool lists = type.kind == CORNU__ARROW_LIST || type.kind == CORNU__ARROW_FIXED_LIST;
    if (lists && (array->n_children != 1 || !array->children))
        return bad(schema, "another number of children than one");
    if (type.kind == CORNU__ARROW_STRUCT && (array->n_children != schema->n_children ||
                                             (array->n_children && !array->children)))
        return bad(schema, "another number of children than its schema");
    if (!schema->dictionary != !array->dictionary)
        return bad(schema, "a dictionary, or none, other than its schema");

    int64_t begin = array->offset + first, end = begin + length;
    if (type.kind == CORNU__ARROW_LIST || type.kind == CORNU__ARROW_BYTES)
        CORNU__TRY(check_offsets(schema, array, type.size, array->offset + first, length, &begin,
                                 &end));
    if (type.kind == CORNU__ARROW_BYTES && end > begin && !array->buffers[2])
        return bad(schema, "a buffer that is NULL");
    if (type.kind == CORNU__ARROW_FIXED_LIST) {
        if (type.size && end > INT64_MAX / 2 / type.size) return bad(schema, "too many rows");
        begin *= type.size;
        end *= type.size;
    }
    if (schema->dictionary)
        CORNU__TRY(check_node(schema->dictionary, array->dictionary, 0, array->dictionary->length,
                              depth + 1));
    for (int64_t i = 0; i < schema->n_children && (lists || type.kind == CORNU__ARROW_STRUCT); i++)
        CORNU__TRY(check_node(schema->children[i], array->children[i], begin, end - begin,
                              depth + 1));
    return CORNU_OK;
}

/* A structure between the batch and the column. */
static bool is_struct(const struct ArrowArray *array)
{
    return array->n_buffers == 1 && array->buffers &&
           array->offset <= INT64_MAX / 2 - array->length &&
           !(array->null_count > 0 && !array->buffers[0]);
}

CornuStatus cornu__arrow_check(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                               const CornuArrowPath *path)
{
    const struct ArrowArray *array = batch;
    int64_t                  first = 0;
    for (int i = 0; i < path->depth; i++) {
        if (array->length < 0 || array->offset < 0 || array->n_children != schema->n_children ||
            !array->children || (i > 0 && !is_struct(array)))
            return bad(schema, "other buffers or children than its schema");
        first += array->offset;
        array = array->children[path->child[i]];
        schema = schema->children[path->child[i]];
        if (!array || array->length < first || array->length - first < batch->length)
            return bad(schema, "fewer rows than the batch");
    }
    return check_node(schema, array, first, batch->length, 0);
}
