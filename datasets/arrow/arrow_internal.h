/* Shared by the files of Arrow: arrow_type.c reads schemas and checks batches by them,
 * arrow_value.c makes components of rows, arrow.c is the data set. */
#ifndef CORNU_DATASETS_ARROW_INTERNAL_H
#define CORNU_DATASETS_ARROW_INTERNAL_H

#include "../records/feature_internal.h"
#include "../tables/table_internal.h"
#include "arrow.h"

typedef enum {
    CORNU__ARROW_BOOL, CORNU__ARROW_INT, CORNU__ARROW_UINT, CORNU__ARROW_FLOAT,
    CORNU__ARROW_BYTES,      /* strings and binaries, with offsets */
    CORNU__ARROW_FIXED_BYTES,
    CORNU__ARROW_LIST, CORNU__ARROW_FIXED_LIST, CORNU__ARROW_STRUCT,
    CORNU__ARROW_OTHER
} CornuArrowKind;

enum { CORNU__ARROW_DEPTH = 12 };   /* of columns within columns */

/* A type, by its format. */
typedef struct {
    CornuArrowKind kind;
    int64_t        size;         /* bytes of a number, of an offset, of fixed bytes; elements of a
                                    fixed list */
} CornuArrowType;

CornuArrowType cornu__arrow_type(const char *format);

/* Checks that a schema has the children, dictionaries and formats that its types need.
 * CORNU_ERR_FORMAT. */
CornuStatus cornu__arrow_check_schema(const struct ArrowSchema *schema);

/* The column of a name, or "column.field", among the children of a schema of structures: the
 * number of the child at each depth. *depth 0: there is none. */
typedef struct {
    int64_t child[CORNU__ARROW_DEPTH];
    int     depth;
} CornuArrowPath;

CornuArrowPath cornu__arrow_find(const struct ArrowSchema *schema, const char *name);
const struct ArrowSchema *cornu__arrow_schema_at(const struct ArrowSchema *schema,
                                                 const CornuArrowPath *path);

/* Checks the column of a path in a batch by its schema: that there are buffers and children, and
 * that offsets lie in what they point to; the sizes of buffers are not known. */
CornuStatus cornu__arrow_check(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                               const CornuArrowPath *path);

/* The feature of a column that was not asked for by one: its dtype, and a shape of fixed lists. */
CornuStatus cornu__arrow_infer(const struct ArrowSchema *schema, CornuFeature *feature);

/* Whether a column can become a feature; CORNU_ERR_UNSUPPORTED with both. */
CornuStatus cornu__arrow_fits(const struct ArrowSchema *schema, const CornuFeatureRow *row);

/* Writes row `index` of a batch to the component. *null: a value is null that no default value
 * replaces; with CORNU_MISSING_KEPT it is written as NaN instead. */
CornuStatus cornu__arrow_put(const struct ArrowSchema *schema, const struct ArrowArray *batch,
                             const CornuArrowPath *path, int64_t index, const CornuFeatureRow *row,
                             CornuMissing missing, void *const *to, bool *null);

/* The bytes of a field of a table. Zeros: none yet; the owner releases them. */
typedef struct {
    char  *bytes;
    size_t space;
} CornuArrowString;

/* Whether a column can be one of a table: numbers, bool, dates, strings, and dictionaries of
 * these. */
bool cornu__arrow_is_field(const struct ArrowSchema *schema);

/* Element `index` of such a column of a checked batch, a null or NaN as an empty field; its text
 * is in *string. */
CornuStatus cornu__arrow_field(const struct ArrowSchema *schema, const struct ArrowArray *array,
                               int64_t index, CornuArrowString *string, CornuField *field);

/* A table of all rows of a stream, in memory. NULL with an error that names `name`. */
CornuTable *cornu__arrow_table(CornuArrowOpen *open, void *context, const char *name,
                               const CornuTableConfig *config);

#endif
