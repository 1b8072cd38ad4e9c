/*
 * From programs to C source: functions of C99 that compute a program for machines without an
 * operating system, a library or an allocator. A function is a layer's part of the program; its
 * extents are constants, its values lie in memory of the caller at offsets that are planned here.
 *
 * Each op has a rule, `cornu__NAME_c` in FAMILY.c, or is replaced by its decomposition
 * (device/ops/). What has neither is refused by name, before anything is written.
 */
#ifndef CORNU_DEVICE_C_SOURCE_H
#define CORNU_DEVICE_C_SOURCE_H

#include "../program_internal.h"

/* Text that grows; a failure is kept in it. */
typedef struct {
    char       *text;       /* terminated */
    size_t      size;
    int         space, depth;   /* of indentation, in levels */
    CornuStatus status;
} CornuCText;

/* Appends as printf does; a line that begins is indented. */
void cornu__c_print(CornuCText *text, const char *format, ...) CORNU__PRINTF(2, 3);

/* Leaves out what is multiplied by 1, and 0 where it is added or subtracted. */
void cornu__c_tidy(CornuCText *text);

/* What programs written to the same file share. */
typedef struct {
    const char *prefix;       /* of all names, an identifier: "digits" */
    CornuCText  functions;    /* definitions, each before its first call */
    uint64_t    math;         /* the functions of <math.h> that are called, by bits of their rows */
    unsigned    helpers;      /* the helpers that are called, likewise */
    char      **names;        /* of what is at file scope, without the helpers */
    int         name_count, name_space;
} CornuCSource;

void cornu__c_source_free(CornuCSource *source);

/* What helpers and macros the functions need, to be written before them. */
void cornu__c_prelude(const CornuCSource *source, CornuCText *to);

/* `text` in the characters of an identifier, others being "_", for a name that goes on: "int" for
 * int_predict. Returns its length; 0: there are none. */
size_t cornu__c_spell(char *to, size_t size, const char *text);

/* Likewise as a whole identifier; not a word of C or C++. */
void cornu__c_identifier(char *to, size_t size, const char *text);

/* Puts "_n" after the first `length` characters of a name, or after fewer so that it fits. */
void cornu__c_number_name(char *name, size_t size, size_t length, int n);

/* Makes a name of file scope, PREFIX_LAYER, one that nothing else has: PREFIX_LAYER_2. */
CornuStatus cornu__c_take_name(CornuCSource *source, char *name, size_t size);

/* The C type of a dtype, NULL if there is none. */
const char *cornu__c_type(CornuDtype dtype);

/* A number as a constant of this dtype, exact. */
void cornu__c_number(CornuCText *to, CornuDtype dtype, double number);

/* Appends functions that compute a program to the source, and to `calls` the statements that call
 * them. in[i] and out[i] are expressions in these statements: pointers to the elements of input and
 * output i, of which those of outputs that are written into an input are not read. `s` is in their
 * scope: an unsigned char *, to *scratch bytes aligned to CORNU_C_ALIGNMENT. `what` names the
 * functions that are of no layer. CORNU_ERR_UNSUPPORTED names an op or dtype without C source. */
typedef struct {
    const char        *what;
    const char *const *in, *const *out;
} CornuCCalls;

enum { CORNU_C_ALIGNMENT = 64 };

/* Memory that is needed from step `first` to step `last`. */
typedef struct {
    int    first, last;
    size_t bytes, offset;
} CornuCLife;

/* Gives each its offset, and *scratch the bytes of all, if those are more. */
CornuStatus cornu__c_place(CornuCLife *lives, int count, size_t *scratch);

/* Whether an op or an output reads the value. */
bool cornu__c_is_read(const CornuProgram *program, CornuValue value);

CornuStatus cornu__c_program(CornuCSource *source, const CornuProgram *program,
                             const CornuCCalls *how, CornuCText *calls, size_t *scratch);

#endif
