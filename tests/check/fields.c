#include "fields.h"

#include <stddef.h>

#include "../../device/definition_internal.h"

typedef enum {
    KIND_I64, KIND_I64S, KIND_INTS, KIND_F64, KIND_F64S, KIND_DTYPE, KIND_COMPARISON, KIND_PROGRAM,
    KIND_DEFINITION
} Kind;

typedef struct {
    const char *name;   /* NULL ends a list */
    Kind        kind;
    size_t      offset;
} Field;

typedef struct {
    const char  *member;   /* of CornuAttributes */
    const Field *fields;
} List;

#define CORNU_ATTRIBUTES(LIST, member, fields) LIST_##LIST,
typedef enum {
#include "../../device/ops/attributes.def"
    LIST_COUNT
} ListId;
#undef CORNU_ATTRIBUTES

static const ListId list_ids[CORNU_OP_COUNT] = {
#define CORNU_OP(ID, name, inputs, outputs, LIST, ...) LIST_##LIST,
#include "../../device/ops/ops.def"
#undef CORNU_OP
};

static List list_of(CornuOpId id)
{
    static const Field none[] = { { NULL, KIND_I64, 0 } };
    switch (list_ids[id]) {
#define F(KIND, name) { #name, KIND_##KIND, offsetof(Attributes, name) },
#define CORNU_ATTRIBUTES(LIST, member, fields)                       \
    case LIST_##LIST: {                                              \
        typedef CornuAttributes_##LIST Attributes;                   \
        static const Field list[] = { fields { NULL, KIND_I64, 0 } }; \
        return (List){ #member, list };                              \
    }
#include "../../device/ops/attributes.def"
#undef CORNU_ATTRIBUTES
#undef F
    case LIST_COUNT: break;
    }
    return (List){ "none", none };
}

const char *dtype_identifier(CornuDtype dtype)
{
    static const char *const identifiers[CORNU_DTYPE_COUNT] = {
#define X(id, name, size, file_name) "CORNU_" #id,
        CORNU_DTYPE_MAP(X)
#undef X
    };
    return identifiers[dtype];
}

const char *op_identifier(CornuOpId id)
{
    static const char *const identifiers[CORNU_OP_COUNT] = {
#define CORNU_OP(ID, ...) "CORNU_OP_" #ID,
#include "../../device/ops/ops.def"
#undef CORNU_OP
    };
    return identifiers[id];
}

static void print_field(const Field *field, const void *at, FILE *to)
{
    const int64_t *extents = at;
    fprintf(to, " .%s = ", field->name);
    switch (field->kind) {
    case KIND_I64: fprintf(to, "%lld", (long long)*extents); break;
    case KIND_I64S:
        for (int i = 0; i < CORNU_MAX_RANK; i++)
            fprintf(to, "%s%lld", i ? ", " : "{ ", (long long)extents[i]);
        fprintf(to, " }");
        break;
    case KIND_INTS: {
        const CornuInts *list = at;
        if (list->count == 0) {
            fprintf(to, "{ 0 }");
            break;
        }
        fprintf(to, "{ %d, (const int[]){", list->count);
        for (int i = 0; i < list->count; i++) fprintf(to, "%s%d", i ? ", " : " ", list->at[i]);
        fprintf(to, " } }");
        break;
    }
    case KIND_F64: fprintf(to, "%.17g", *(const double *)at); break;
    case KIND_DTYPE: fprintf(to, "%s", dtype_identifier(*(const CornuDtype *)at)); break;
    case KIND_COMPARISON: fprintf(to, "%d", (int)*(const CornuComparison *)at); break;
    case KIND_PROGRAM: fprintf(to, "body"); break;
    case KIND_F64S:
        for (int i = 0; i < CORNU_OP_NUMBERS; i++)
            fprintf(to, "%s%.17g", i ? ", " : "{ ", ((const double *)at)[i]);
        fprintf(to, " }");
        break;
    case KIND_DEFINITION:
        fprintf(to, "cornu__definition_find(\"%s\")",
                (*(const CornuDefinition *const *)at)->name);
        break;
    }
}

void fields_print(CornuOpId id, const CornuAttributes *attributes, FILE *to)
{
    const List list = list_of(id);
    fprintf(to, "&(CornuAttributes){ .%s = {", list.member);
    for (const Field *field = list.fields; field->name; field++) {
        print_field(field, (const char *)attributes + field->offset, to);
        fprintf(to, field[1].name ? "," : " ");
    }
    fprintf(to, "} }");
}

void fields_replace(CornuOpId id, CornuAttributes *attributes, int64_t old, int64_t new)
{
    for (const Field *field = list_of(id).fields; field->name; field++) {
        const int count = field->kind == KIND_I64 ? 1 : field->kind == KIND_I64S ? CORNU_MAX_RANK
                                                                                 : 0;
        int64_t *at = (int64_t *)(void *)((char *)attributes + field->offset);
        for (int i = 0; i < count; i++)
            if (at[i] == old) at[i] = new;
    }
}
