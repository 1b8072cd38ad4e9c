/* Shared by the files that write models as C. */
#ifndef CORNU_NN_C_SOURCE_INTERNAL_H
#define CORNU_NN_C_SOURCE_INTERNAL_H

#include "../../device/c_source/c_source.h"
#include "../../tensor/graph_internal.h"
#include "../../device/files/file_internal.h"
#include "../training/training_internal.h"
#include "compile_to_c.h"

enum { CORNU_C_NAME = 64 };   /* bytes of what names begin with */

/* Where a variable lies in the files. */
typedef enum {
    CORNU_C_CONSTANT,   /* a constant of the .c file: nothing assigns it */
    CORNU_C_WEIGHT,     /* in PREFIX_weights */
    CORNU_C_STATE       /* in PREFIX_state: slots, statistics, metrics */
} CornuCPlaceOf;

typedef struct {
    CornuVariable *variable;    /* NULL: numbers that a layer was given, */
    CornuBuffer   *numbers;     /* in this one */
    CornuType      type;
    CornuCPlaceOf  where;
    bool           predicts, trains, assigned;   /* who reads or assigns it */
    char           name[64];
    char           at[2][160];                    /* its expression in predict, in step */
} CornuCVariable;

static inline CornuStatus cornu__c_read(const CornuCVariable *v, CornuArray to)
{
    return v->variable ? cornu_variable_read(v->variable, to) : cornu_buffer_read(v->numbers, to);
}

/* One of the two functions. */
typedef struct {
    CornuStep     *step;
    CornuProgram  *program;      /* what is fed besides data is constant */
    int           *variable;     /* of each input, -1: data */
    const char   **in, **out;
    CornuCText     calls;
    size_t         scratch;
} CornuCFunction;

/* An array that is passed: "x", "const float *". */
typedef struct {
    CornuType type;
    char      name[64];
} CornuCData;

typedef struct {
    const CornuCompileToCConfig *config;
    char            prefix[CORNU_C_NAME], capitals[CORNU_C_NAME];
    CornuModel     *model;        /* the copy that is recorded */
    CornuDevice    *device;
    CornuCSource    source;
    CornuCFunction  predict, train;
    CornuCVariable *variables;
    int             variable_count, variable_space;
    CornuCData      x[CORNU_MAX_MODEL_TENSORS], y[CORNU_MAX_MODEL_TENSORS],
                    fed_x[CORNU_MAX_MODEL_TENSORS], fed_y[CORNU_MAX_MODEL_TENSORS];
    int             x_count, y_count;
} CornuCModel;

/* ---- The files (files.c) ---- */

/* .name, which must be an identifier, or the name of the file as one; and it in capitals. */
CornuStatus cornu__c_names(const char *path, const char *name, char prefix[CORNU_C_NAME],
                           char capitals[CORNU_C_NAME]);

/* All under temporary names, until they are committed. */
typedef struct {
    CornuNewFile source, header, weights;   /* .weights.stream NULL: there is no such file */
    char        *path;      /* of the header */
    const char  *name;      /* without folders */
} CornuCFiles;

CornuStatus cornu__c_files_open(CornuCFiles *files, const char *path, const char *weights);
/* Keeps them, or after a failure, which it returns, none. */
CornuStatus cornu__c_files_close(CornuCFiles *files, CornuStatus status);

/* What stands at the top of the source and around the header's contents. */
void cornu__c_begin_source(FILE *to, const char *prefix, const char *header);
void cornu__c_begin_header(FILE *to, const char *capitals);
void cornu__c_end_header(FILE *to);

/* The programs of the model, with names for all that they read and assign (record.c). */
CornuStatus cornu__c_record(CornuCModel *c);

/* Writes them (write.c). */
CornuStatus cornu__c_write(CornuCModel *c);

#endif
