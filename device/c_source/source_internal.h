/* Shared by the files that write programs as C. */
#ifndef CORNU_DEVICE_C_SOURCE_INTERNAL_H
#define CORNU_DEVICE_C_SOURCE_INTERNAL_H

#include "../memory_internal.h"
#include "../ops/rules.h"
#include "c_source.h"

/* Where the elements of a value are: element (i, j, ..) is element offset + i stride[0] + .. of the
 * value `root`, which lies in memory densely. Shapes and slices of values are not computed, only
 * read so. `literal`: all elements are `number`. */
typedef struct {
    CornuValue root;
    int64_t    offset, stride[CORNU_MAX_RANK];
    bool       literal;
    double     number;
} CornuCView;

/* ---- Views (views.c) ---- */

CornuCView cornu__c_dense(CornuValue root, CornuShape shape);
/* Whether the elements are one after the other, as in memory of their own. */
bool cornu__c_is_dense(const CornuCView *view, CornuShape shape);
/* The view of an op that only says anew where elements are; false: it is none, or of this operand
 * there is none. */
bool cornu__c_view(const CornuProgram *program, const CornuProgramOp *op, const CornuCView *x,
                   CornuCView *out);

/* Loops over a shape in as few axes as all views allow. */
typedef struct {
    int     rank;
    int64_t extent[CORNU_MAX_RANK];
    int     axes[CORNU_MAX_RANK];   /* the last axis of the shape in each */
} CornuCLoops;

CornuCLoops cornu__c_loops(CornuShape shape, const CornuCView *const *views, int count);
/* Axes in `apart`, by bits, are not joined with those of other kind. */
CornuCLoops cornu__c_loops_apart(CornuShape shape, const CornuCView *const *views, int count,
                                 int64_t apart);

/* ---- A program as parts ---- */

typedef enum { CORNU_C_GROUP, CORNU_C_COPY, CORNU_C_OP } CornuCPartKind;

typedef struct CornuCSection CornuCSection;

/* What is computed in one piece: elementwise ops of one shape in a loop, a copy, or an op. */
typedef struct {
    CornuCPartKind kind;
    int            first, count;   /* of the section's members: ops */
    CornuValue     value;          /* that a copy makes */
    CornuCView     from;
    const char    *scope;
    int            unit;           /* the function that it is in */
    CornuCSection *body;           /* of a scan */
} CornuCPart;

/* Where a value lies that is not a view. */
typedef struct {
    int     made, last;        /* the first and the last unit that need it; -1: none, or an input */
    bool    stored;            /* in memory: not only within a loop */
    bool    given;             /* the caller has memory for it, at `at` */
    char    at[160];            /* an expression in calls */
    int     into;              /* the input whose memory it takes, -1: none */
} CornuCPlace;

/* A program as it is written. Values from program->value_count on are memory that is none of the
 * program's values: its outputs, and what scans need. */
struct CornuCSection {
    CornuCSource       *source;
    CornuProgram       *program;    /* lowered */
    const CornuCCalls  *how;
    const char         *named;      /* functions that are of no layer */
    CornuCView         *views;      /* by value */
    CornuType          *types;      /* by value, extra ones included */
    CornuCPlace        *places;     /* likewise */
    char              (*labels)[48];   /* parameters */
    int                 value_count, value_space;
    CornuCPart         *parts;
    int                 part_count, part_space, unit_count;
    int                *members;
    int                 member_count, member_space;
    size_t              scratch;
    CornuCText          text;       /* of the function that is being written */
    int                 part;       /* that is being written */
};

/* Of an op that is written: operands as views, and by name if they are dense. */
typedef struct CornuCCall {
    CornuCSection        *section;
    const CornuCPart     *part;
    const CornuProgramOp *record;
    CornuOpCall           op;
    const CornuCView    **in;
    char                (*name)[64];
    const CornuType      *out_type;
    const char           *out[CORNU_MAX_OUTPUTS];   /* names, NULL: it is not made */
} CornuCCall;

typedef void CornuCWrite(CornuCText *to, const CornuCCall *call);

/* An op's rule. One without `write` is elementwise, and `formula` its value in C: of the operands
 * a, b and c, or x alone, and the number n among its attributes, with numbers and functions of
 * double, which become those of float. `holds` is the comparison among the attributes. */
typedef struct {
    CornuCWrite *write;
    const char  *formula;
    unsigned     strided;      /* operands, by bits, that may be views */
    bool         any;          /* its loops are for f64, too, as formulas without functions are */
    bool         skips;        /* results that nothing reads: their names are NULL */
} CornuCRule;

extern const CornuCRule cornu__c_decomposed, cornu__c_refused, cornu__c_seen;
#define CORNU_C_DECOMPOSED (&cornu__c_decomposed)
#define CORNU_C_REFUSED    (&cornu__c_refused)
/* A view, or a constant: read where it is. */
#define CORNU_C_SEEN       (&cornu__c_seen)

#define CORNU_OP(ID, name, ...) extern const CornuCRule *const cornu__##name##_c;
#include "../ops/ops.def"
#undef CORNU_OP

/* Those of every op (table.c). */
extern const CornuCRule *const *const cornu__c_table[CORNU_OP_COUNT];

/* The program in ops that have rules, on one shard, without what need not be computed. NULL,
 * pending. */
CornuProgram *cornu__c_lower(const CornuProgram *program);

/* ---- Parts and memory (parts.c, memory.c, program.c) ---- */

CornuStatus cornu__c_parts(CornuCSection *section);
CornuStatus cornu__c_memory(CornuCSection *section);
/* A section up to the plan of its memory, to be freed also after a failure; `program` is taken. */
CornuStatus cornu__c_section(CornuCSection *section, CornuCSource *source, CornuProgram *program,
                             const CornuCCalls *how);
CornuStatus cornu__c_write_section(CornuCSection *section, CornuCText *calls);
void        cornu__c_section_free(CornuCSection *section);
/* Memory of the section beside the values of the program. */
CornuStatus cornu__c_extra(CornuCSection *section, CornuType type, CornuValue *out);

/* ---- Scans (scan.c): the section of a body, and its memory ---- */

CornuStatus cornu__c_scan_prepare(CornuCSection *section, CornuCPart *part,
                                  const CornuProgramOp *op);
/* The memory that the body of a part needs, from value_count on; CORNU_NO_VALUE: none. */
size_t      cornu__c_scan_scratch(const CornuCPart *part, const CornuProgramOp *op);

/* ---- Writing (text.c, loops.c, group.c) ---- */

/* Whether <math.h> has this function of double, "exp"; with a source, that its macro is needed. */
bool cornu__c_math(CornuCSource *source, const char *name, size_t length);
/* Whether a formula calls functions, and whether <math.h> has all of them. */
bool cornu__c_calls(const char *formula, bool *known);

#define CORNU_C_HELPERS(X) X(FMA) X(TO_I32) X(TO_I64) X(TO_U32) X(TO_U8) X(PHILOX) X(ROW)
enum {
#define X(name) CORNU_C_HELPER_##name,
    CORNU_C_HELPERS(X)
#undef X
};
void cornu__c_helper(CornuCSource *source, int helper);

/* Opens loops over i0, i1, ..; closes that many. */
void cornu__c_open(CornuCText *to, const CornuCLoops *loops);
void cornu__c_close(CornuCText *to, int loops);
/* The element of a view in such loops: "x[i0 * 64 + i1]", or its number. */
void cornu__c_element(CornuCText *to, const CornuCSection *section, const CornuCView *view,
                      const CornuCLoops *loops, CornuDtype dtype);
/* "offset + i0 * 64 + i1" */
void cornu__c_index(CornuCText *to, const CornuCView *view, const CornuCLoops *loops);

void cornu__c_write_group(CornuCText *to, CornuCSection *section, const CornuCPart *part);
void cornu__c_write_copy(CornuCText *to, CornuCSection *section, const CornuCPart *part);

/* The parameter of a value's memory. */
const char *cornu__c_label(const CornuCSection *section, CornuValue root);

const char *cornu__c_prefix(const CornuCSection *section);

/* ---- Tiles (tiles.c) ---- */

/* The rows and columns of sums in registers, for sums of so many terms; `adjacent`: what rows read
 * lies one after the other. */
typedef struct { int64_t rows, columns; } CornuCTile;
CornuCTile cornu__c_tile(int64_t rows, int64_t columns, int64_t terms, bool adjacent);

/* Partial sums of a product of two rows. */
enum { CORNU_C_LANES = 16 };

/* The greatest number up to `most` that divides an extent, of at least 1. */
int64_t cornu__c_divisor(int64_t extent, int64_t most);

/* Adds a product to each sum[q][l] of a tile: of ROW[q * step + row_at] and COLUMN[column_at + l],
 * where an empty row_at or column_at is 0. */
typedef struct {
    const char *row, *row_at;
    int64_t     step;
    const char *column, *column_at;
} CornuCProducts;
void cornu__c_add_products(CornuCText *to, const CornuCCall *call, CornuCTile tile,
                           const CornuCProducts *products);

static inline int64_t cornu__c_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* A loop over tiles of an extent, `name` being the first element of each: the last tile ends where
 * the extent does. The first and the last line. */
void cornu__c_open_tiles(CornuCText *to, const char *name, int64_t extent, int64_t tile);
void cornu__c_close_tiles(CornuCText *to, int64_t extent, int64_t tile);

/* The macro of a b + c, "DIGITS_FMAF". */
void cornu__c_fma(const CornuCCall *call, char *name, size_t size);

/* Whether a helper may have this name (prelude.c). */
bool cornu__c_is_helper(const CornuCSource *source, const char *name);

#endif
