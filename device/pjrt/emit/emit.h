/*
 * From programs to StableHLO text, the form in which XLA takes them.
 *
 * Each op has a rule, `cornu__NAME_stablehlo` in emit/FAMILY.c, which writes it in primitives;
 * CORNU_DECOMPOSED says that the op is replaced by its decomposition (device/ops/) before. A row of
 * ops.def without either does not link. Equal programs give equal text.
 *
 * Text is in MLIR's generic form, "stablehlo.add"(%1, %2) : (T, T) -> T, which changes least
 * between versions. Source: the StableHLO specification, openxla/stablehlo, docs/spec.md.
 */
#ifndef CORNU_DEVICE_PJRT_EMIT_H
#define CORNU_DEVICE_PJRT_EMIT_H

#include "../../device.h"
#include "../../ops/rules.h"
#include "../abi.h"

/* ---- Whole programs (module.c) ---- */

/* What an op expects of its data, which the device cannot refuse. The module's last result, i64
 * (checks, 2), has for each check the first row with a number that is not in [0, limit), at least
 * `rows` if there is none, and that number. */
typedef struct {
    const char *what;      /* "label", "index"; "iteration" */
    CornuOpId   id;
    int64_t     rows, limit;
    bool        is_scalar; /* not one of several rows */
} CornuCheck;

typedef struct {
    char       *text;      /* terminated */
    size_t      size;
    int64_t     steps;     /* of the program, one after the other */
    CornuCheck *checks;
    int         check_count, check_space;
} CornuModule;

/* Runs of a program in one module: inputs that outputs are written into pass from step to step,
 * stacked ones have one more axis in front, the step. In the results of checks, rows count through
 * all steps. */
typedef struct {
    int64_t     steps;
    const bool *is_stacked;   /* of each input */
} CornuModuleLoop;

typedef struct {
    int  shards;                 /* replicas of the module */
    bool widens_products;        /* products of bf16 and f16 are those of the same numbers in f32:
                                    exact, for platforms without products that are summed in f32 */
    bool narrow_convolutions;    /* their results have the operands' type, bf16 or f16: libraries
                                    for GPUs compute others in f32. Filters' gradients are rounded
                                    too, as those of Keras are */
    bool deterministic;          /* no sums in the order in which parts happen to be ready */
    CornuPrecision precision;    /* of products of f32 */
} CornuTarget;

/* Arguments and results are the program's inputs and outputs; an output that is written into an
 * input is aliased to it. Inputs of which every shard has its own lack their axis of shards. One
 * step if `loop` is NULL; in a loop all outputs must be written into inputs. cornu__module_free
 * frees it, also after a failure. */
CornuStatus cornu__module_emit(CornuModule *module, const CornuProgram *program,
                               CornuTarget target, const CornuModuleLoop *loop);
void        cornu__module_free(CornuModule *module);

/* The element type of a dtype. */
PjrtType cornu__pjrt_type(CornuDtype dtype);

/* ---- Rules ---- */

typedef struct CornuEmitter CornuEmitter;

/* A value of the text, %1, %2, ... */
typedef int CornuName;

typedef struct {
    PjrtType   element;
    CornuShape shape;
} CornuHloType;

/* An op to be written. */
typedef struct {
    CornuOpCall      op;
    const CornuName *in;
    const CornuType *out_type;
    CornuName       *out;        /* to be filled */
    const CornuProgram   *program;    /* which has it as this op */
    const CornuProgramOp *record;
} CornuEmitCall;

/* Failures are kept in the emitter. */
typedef void CornuEmit(CornuEmitter *e, const CornuEmitCall *call);

CornuEmit cornu__decomposed;
#define CORNU_DECOMPOSED cornu__decomposed

#define CORNU_OP(ID, name, ...) extern CornuEmit *const cornu__##name##_stablehlo;
#include "../../ops/ops.def"
#undef CORNU_OP

/* Those of every op (table.c); rules reach it through the emitter. */
typedef CornuEmit *const *CornuEmitTable[CORNU_OP_COUNT];
extern const CornuEmitTable cornu__emit_table;

/* ---- Writing (write.c) ---- */

struct CornuEmitter {
    CornuModule         *module;
    const CornuEmitTable *table;
    CornuTarget          target;
    int                  depth;           /* of regions, for indentation */
    CornuHloType        *types;           /* of each name */
    int                  names, type_space;
    size_t               text_space;
    CornuName           *failed;          /* of each check: i64 (1, 2) */
    int                  failed_space;
    CornuStatus          status;
};

CornuHloType cornu__hlo_type(CornuType type);
CornuHloType cornu__hlo_of(const CornuEmitter *e, CornuName x);
CornuHloType cornu__hlo_scalar(PjrtType element);
/* The same with another element type, another shape. */
CornuHloType cornu__hlo_as(CornuHloType type, PjrtType element);
CornuHloType cornu__hlo_shaped(CornuHloType type, CornuShape shape);

bool cornu__hlo_is_float(PjrtType element);

/* Appends to the text, indented at the start of a line. */
void cornu__write(CornuEmitter *e, const char *format, ...) CORNU__PRINTF(2, 3);
void cornu__write_type(CornuEmitter *e, CornuHloType type);
/* "array<i64: 1, 0>"; "array<i64>" without numbers. */
void cornu__write_array(CornuEmitter *e, const int64_t *numbers, int count);
/* "%1, %2", and their types: "(T, T)". */
void cornu__write_names(CornuEmitter *e, const CornuName *names, int count);
void cornu__write_types(CornuEmitter *e, const CornuName *names, int count);

/* A new name of this type, not yet written. */
CornuName cornu__name(CornuEmitter *e, CornuHloType type);

/* An op is begun, its attributes and regions written, and ended:
 *     %9 = "stablehlo.NAME"(%1, %2)   ...   : (T, T) -> T */
CornuName cornu__begin(CornuEmitter *e, const char *name, CornuHloType type, const CornuName *in,
                       int in_count);
void      cornu__end(CornuEmitter *e, CornuName result, const CornuName *in, int in_count);

/* The type in which products of these operands are summed, and the operands as the target takes
 * them for it. */
PjrtType cornu__hlo_factors(CornuEmitter *e, const CornuEmitCall *call, CornuName in[2]);

/* Writes the attribute precision_config of a product. */
void cornu__hlo_precision(CornuEmitter *e, CornuPrecision precision);

/* The last line of a region or function: op is "stablehlo.return" or "func.return". */
void cornu__write_return(CornuEmitter *e, const char *op, const CornuName *names, int count);

/* ---- Ops of StableHLO (hlo.c) ---- */

CornuName cornu__hlo1(CornuEmitter *e, const char *op, CornuName x);
CornuName cornu__hlo2(CornuEmitter *e, const char *op, CornuName a, CornuName b);
CornuName cornu__hlo_compare(CornuEmitter *e, CornuName a, const char *direction, CornuName b);
CornuName cornu__hlo_select(CornuEmitter *e, CornuName condition, CornuName a, CornuName b);
CornuName cornu__hlo_constant(CornuEmitter *e, CornuHloType type, double value);
CornuName cornu__hlo_integer(CornuEmitter *e, CornuHloType type, int64_t value);
CornuName cornu__hlo_iota(CornuEmitter *e, CornuHloType type, int axis);
/* Between floats, integers or both as StableHLO's convert; x itself if it has that type. */
CornuName cornu__hlo_convert(CornuEmitter *e, CornuName x, PjrtType element);
/* x itself if it has that shape. */
CornuName cornu__hlo_reshape(CornuEmitter *e, CornuName x, CornuShape shape);
/* Axis i of x becomes axis axes[i]; extents of 1 are repeated. */
CornuName cornu__hlo_broadcast(CornuEmitter *e, CornuName x, CornuShape shape, const int *axes);
CornuName cornu__hlo_repeat(CornuEmitter *e, CornuName scalar, CornuShape shape);
CornuName cornu__hlo_transpose(CornuEmitter *e, CornuName x, const int64_t *axes);
CornuName cornu__hlo_reverse(CornuEmitter *e, CornuName x, const int64_t *axes, int count);
/* x[starts[i] : starts[i] + sizes[i] strides[i] : strides[i]] along each axis; strides NULL: 1. */
CornuName cornu__hlo_slice(CornuEmitter *e, CornuName x, const int64_t *starts,
                           const int64_t *sizes, const int64_t *strides);
/* Begins at scalar integers, one per axis. */
CornuName cornu__hlo_dynamic_slice(CornuEmitter *e, CornuName x, const CornuName *starts,
                                   const int64_t *sizes);
/* low and high may be negative; interior NULL: 0. */
CornuName cornu__hlo_pad(CornuEmitter *e, CornuName x, double value, const int64_t *low,
                         const int64_t *high, const int64_t *interior);
CornuName cornu__hlo_concat(CornuEmitter *e, const CornuName *x, int count, int axis);
/* Begins a region of two scalars, and ends it with its result. */
void      cornu__hlo_region(CornuEmitter *e, PjrtType element, CornuName in[2]);
void      cornu__hlo_region_end(CornuEmitter *e, CornuName result);
/* The region of a reduction, ({ add of two scalars }). */
void      cornu__hlo_reducer(CornuEmitter *e, const char *op, PjrtType element);
/* Over a set of axes, which are removed; op is "add", "maximum" or "minimum". */
CornuName cornu__hlo_reduce(CornuEmitter *e, const char *op, CornuName x, int64_t axes,
                            double initial);
/* Windows over axes 1 and 2 of images. */
CornuName cornu__hlo_window_sum(CornuEmitter *e, CornuName x, const int64_t size[2],
                                const int64_t strides[2], const int64_t low[2],
                                const int64_t high[2]);

/* Records a check of the op: `x`, integers, must be in [0, limit). */
void cornu__hlo_check(CornuEmitter *e, const CornuEmitCall *call, const char *what, CornuName x,
                      int64_t limit);

/* ---- Programs within programs (module.c, loop.c) ---- */

/* Writes the ops of a program whose inputs have the names `in`, and fills the names of its
 * outputs. */
void cornu__emit_program(CornuEmitter *e, const CornuProgram *program, const CornuName *in,
                         CornuName *out);

/* The type of `steps` values in one, along a new axis. */
CornuType cornu__hlo_stacked(CornuType type, int axis, int64_t steps);

typedef struct {
    const CornuProgram *body;
    int64_t     steps;
    int         axis;           /* of what is sliced and stacked: the step */
    bool        reverse;        /* the last slices come first */
    const bool *is_sliced;      /* of each input: a step is given a slice of it, not all */
    const int  *carried;        /* of each output: the input that it is for the next step; or -1,
                                   and those of all steps are stacked */
    bool        numbers_steps;  /* rows in the results of checks count through all steps */
} CornuHloLoop;

/* Writes a loop over a program. */
void cornu__hlo_loop(CornuEmitter *e, const CornuHloLoop *loop, const CornuName *in,
                     CornuName *out);

#endif
