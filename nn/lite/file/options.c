/* The tables of options.def. */
#include "options_internal.h"

#include <string.h>

/* Fields of enumerated types are read and set as integers of 32 bits. */
_Static_assert(sizeof(CornuLitePadding) == 4 && sizeof(CornuLiteActivation) == 4 &&
               sizeof(CornuLiteDtype) == 4, "an enum is an int");

enum {
#define OPTIONS(name, number, fields) TABLE_##name,
#include "options.def"
#undef OPTIONS
    TABLES
};

#define FIELD(slot, kind, member) { slot, CORNU_LITE_##kind, offsetof(CornuLiteOptions, member) },
#define BYTE(slot, member) FIELD(slot, BYTE, member)
#define INT(slot, member) FIELD(slot, INT, member)
#define ONE(slot, member) FIELD(slot, ONE, member)
#define FLOAT(slot, member) FIELD(slot, FLOAT, member)
#define FLAG(slot, member) FIELD(slot, FLAG, member)
#define EXTENTS(slot, member) FIELD(slot, EXTENTS, member)
#define NO_FIELDS { 0, CORNU_LITE_BYTE, 0 },
static const CornuLiteTable tables[TABLES] = {
#define OPTIONS(name, number, fields) \
    { number, (int)(sizeof((CornuLiteField[]){ fields }) / sizeof(CornuLiteField)), { fields } },
#include "options.def"
#undef OPTIONS
};

const CornuLiteTable *cornu__lite_table(int code)
{
    switch (code) {
#define OPERATOR(number, name, options, int8) case number: return &tables[TABLE_##options];
#include "../graph/operators.def"
#undef OPERATOR
    default: return NULL;
    }
}

int32_t cornu__lite_get(const CornuLiteOptions *options, const CornuLiteField *field)
{
    const char *at = (const char *)options + field->offset;
    int32_t     value;
    if (field->kind == CORNU_LITE_FLAG) return *(const bool *)at;
    memcpy(&value, at, sizeof value);
    return field->kind == CORNU_LITE_ONE && value == 0 ? 1 : value;
}

void cornu__lite_set(CornuLiteOptions *options, const CornuLiteField *field, int32_t value)
{
    char *at = (char *)options + field->offset;
    if (field->kind == CORNU_LITE_FLAG) *(bool *)at = value != 0;
    else memcpy(at, &value, sizeof value);
}
