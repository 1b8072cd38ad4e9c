/* The C interface as JSON. Sizes, offsets and types are the compiler's; what differs from
 * bindings.def does not compile. */
#include "bindings.h"

#include "../cornu.h"
#include "../formats/json_internal.h"
#include "../saving/describe.h"

#include <stddef.h>
#include <string.h>

/* The name of a type, of which `at` is a pointer. Enums are int or unsigned. A char * is a string
 * that the caller frees. */
#define NAME_OF(at)                                                                            \
    _Generic((at), void *: "void", bool *: "bool", char *: "char", int *: "i32",               \
             unsigned *: "u32", int64_t *: "i64", uint64_t *: "u64", double *: "f64",          \
             const char **: "text", CornuShape *: "CornuShape", CornuType *: "CornuType",      \
             CornuArray *: "CornuArray", CornuData *: "CornuData",                             \
             CornuParams *: "CornuParams", CornuMesh *: "CornuMesh", default: "pointer")

/* ---- Structs ---- */

typedef struct {
    const char *of, *name;     /* of NULL: a struct, whose fields follow */
    size_t      offset, size;
    const char *type;
} Field;

/* The name of a field's type; of an array, that of its elements. */
#define ELEMENT(member)                                                                \
    _Generic(&(member), int64_t (*)[CORNU_MAX_RANK]: "i64",                            \
             int64_t (*)[CORNU_MAX_MODEL_TENSORS][CORNU_MAX_RANK]: "i64",              \
             char (*)[sizeof(member)]: "char", char **: "text",                        \
             char (*)[CORNU_MESH_AXES][CORNU_MESH_NAME]: "char",                       \
             int (*)[CORNU_MESH_AXES]: "i32", int (*)[CORNU_MAX_MODEL_TENSORS]: "i32", \
             const char *(*)[CORNU_MAX_RANK]: "text",                                  \
             CornuArray (*)[CORNU_MAX_MODEL_TENSORS]: "CornuArray",                    \
             CornuArray (*)[CORNU_MAX_STOPS]: "CornuArray",                            \
             CornuType (*)[CORNU_MAX_STATES]: "CornuType",                             \
             const char *(*)[CORNU_MAX_MODEL_TENSORS]: "text",                         \
             CornuLog (*)[CORNU_MAX_ADDED_LOGS]: "CornuLog", default: NAME_OF(&(member)))

#define STRUCT(name) { NULL, #name, 0, sizeof(name), NULL },
#define FIELD(struct_name, member)                                                \
    { #struct_name, #member, offsetof(struct_name, member),                       \
      sizeof(((struct_name *)0)->member), ELEMENT(((struct_name *)0)->member) },
static const Field fields[] = {
#include "bindings.def"
};

static json_t *structs_to_json(void)
{
    json_t *all = json_object(), *list = NULL;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const Field *field = &fields[i];
        if (field->of)
            json_array_append_new(list, json_pack("[s, I, I, s]", field->name,
                                                  (json_int_t)field->offset,
                                                  (json_int_t)field->size, field->type));
        else
            json_object_set_new(all, field->name,
                                json_pack("{s:I, s:o}", "size", (json_int_t)field->size, "fields",
                                          list = json_array()));
    }
    return all;
}

/* ---- Functions ---- */

enum { MOST_ARGUMENTS = 7 };

typedef struct {
    const char *name;
    bool        slow;
    const char *declared;      /* the result as bindings.def has it */
    const char *result, *arguments[MOST_ARGUMENTS];
} Function;

/* Each function has the type that bindings.def says. */
#define QUICK(name, result, ...)                                            \
    _Static_assert(_Generic(&name, result (*)(__VA_ARGS__): 1, default: 0), \
                   "bindings.def: the type of " #name);
#define SLOW QUICK
#define CALLBACK(class_name, name, config) QUICK(name, CornuCallback *, const config *)
#include "bindings.def"

#define PICK(a, b, c, d, e, f, g, name, ...) name
#define NAMES(...)                                                                     \
    PICK(__VA_ARGS__, NAMES7, NAMES6, NAMES5, NAMES4, NAMES3, NAMES2, NAMES1, )(__VA_ARGS__)
#define NAMES1(type) NAME_OF((type *)0)
#define NAMES2(type, ...) NAMES1(type), NAMES1(__VA_ARGS__)
#define NAMES3(type, ...) NAMES1(type), NAMES2(__VA_ARGS__)
#define NAMES4(type, ...) NAMES1(type), NAMES3(__VA_ARGS__)
#define NAMES5(type, ...) NAMES1(type), NAMES4(__VA_ARGS__)
#define NAMES6(type, ...) NAMES1(type), NAMES5(__VA_ARGS__)
#define NAMES7(type, ...) NAMES1(type), NAMES6(__VA_ARGS__)

#define ROW(name, slow, result, ...) \
    { #name, slow, #result, NAMES1(result), { NAMES(__VA_ARGS__) } },
#define QUICK(name, result, ...) ROW(name, false, result, __VA_ARGS__)
#define SLOW(name, result, ...)  ROW(name, true, result, __VA_ARGS__)
#define CALLBACK(class_name, name, config) QUICK(name, CornuCallback *, const config *)
static const Function functions[] = {
#include "bindings.def"
};

static json_t *functions_to_json(void)
{
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const bool status = !strcmp(functions[i].declared, "CornuStatus");
        json_t    *list = json_pack("[s]", status ? "status" : functions[i].result);
        for (int k = 0; k < MOST_ARGUMENTS && functions[i].arguments[k]; k++)
            json_array_append_new(list, json_string(functions[i].arguments[k]));
        json_object_set_new(all, functions[i].name, list);
    }
    return all;
}

static json_t *slow_to_json(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i].slow) json_array_append_new(list, json_string(functions[i].name));
    return list;
}

/* ---- Constants and classes ---- */

#define CONSTANT(name) { #name, (int64_t)(name) },
static const struct { const char *name; int64_t value; } constants[] = {
#include "bindings.def"
};

#define CALLBACK(class_name, name, config) { #class_name, #name, #config },
static const struct { const char *class_name, *function, *config; } callbacks[] = {
#include "bindings.def"
};

static json_t *constants_to_json(void)
{
    json_t *all = json_object();
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        json_object_set_new(all, constants[i].name, json_integer(constants[i].value));
    return all;
}

static json_t *callbacks_to_json(void)
{
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof callbacks / sizeof *callbacks; i++)
        json_array_append_new(list, json_pack("[s, s, s]", callbacks[i].class_name,
                                              callbacks[i].function, callbacks[i].config));
    return list;
}

static json_t *statuses_to_json(void)
{
    json_t *list = json_array();
#define X(name, text) json_array_append_new(list, json_pack("[s, s]", #name, text));
    CORNU_STATUS_MAP(X)
#undef X
    return list;
}

static json_t *dtypes_to_json(void)
{
    json_t *list = json_array();
    for (int i = 0; i < CORNU_DTYPE_COUNT; i++)
        json_array_append_new(list, json_string(cornu_dtype_name((CornuDtype)i)));
    return list;
}

char *cornu_bindings_to_json(void)
{
    if (cornu__refused()) return NULL;
    json_t *all = json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version", CORNU_VERSION,
                            "structs", structs_to_json(), "functions", functions_to_json(),
                            "slow", slow_to_json(), "constants", constants_to_json(), "callbacks",
                            callbacks_to_json(), "statuses", statuses_to_json(), "dtypes",
                            dtypes_to_json());
    char *text = cornu__json_text(all);
    json_decref(all);
    return text ? text : cornu__null();
}
