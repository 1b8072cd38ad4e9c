/*
 * Local functions of a model: a node that calls one becomes the nodes of its body, with names of
 * their own, also in subgraphs and in other functions. This is done on the messages, before nodes
 * are parsed, so that what a layer keeps of its node has no calls.
 * Source: github.com/onnx/onnx, docs/IR.md, "Model Local Functions", onnx/onnx.proto.
 */
#include "tensors_internal.h"

#include <stdio.h>
#include <string.h>

#include "../../../device/memory_internal.h"

/* Of calls in calls; of subgraphs in subgraphs, as where they run; of all that a file makes. */
enum { MOST_DEPTH = 16, MOST_SUBGRAPHS = 8, MOST_NODES = 1 << 18, MOST_BYTES = 1 << 29 };

typedef struct {
    const char        *domain, *name, *overload;
    CornuProtobufField message;
} Function;

struct CornuReadFunctions {
    CornuArena  *arena;
    Function    *functions;
    int          count;
    CornuLookup  by_name;         /* their numbers */
    int          nodes;           /* that have been written, and calls */
    size_t       bytes, begun;    /* written; taken of the arena before */
    CornuLookup  taken;           /* prefixes of calls: the number of the next one alike */
};

/* What the names in a body become. NULL: they stay. */
typedef struct Scope {
    const char          *prefix;  /* of names that are not the function's inputs or outputs */
    CornuLookup          at;      /* of inputs and outputs: their number in `names` */
    const char         **names;
    CornuProtobufField  *attributes;   /* of the call and, after them, the function's defaults */
    CornuLookup          attribute_at; /* by name: the first one's number */
} Scope;

typedef struct {
    CornuReadFunctions *all;
    const Scope        *scope;
    int                 depth, subgraphs;   /* around this */
} Writing;

/* Before so many bytes are written or read once more: a small file can call its functions so that
 * they never end. */
static CornuStatus spend(const Writing *w, size_t bytes)
{
    CornuReadFunctions *all = w->all;
    all->bytes += bytes;
    if (all->nodes <= MOST_NODES && bytes <= MOST_BYTES &&
        all->bytes + (all->arena->taken - all->begun) <= MOST_BYTES)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "the calls of its functions make more than %d nodes or %d "
                       "bytes", MOST_NODES, MOST_BYTES);
}

/* ---- Reading parts of messages ---- */

static CornuStatus text_of(CornuArena *arena, const CornuProtobufField *field, const char **text)
{
    if (field->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a string");
    *text = cornu__arena_text(arena, field->bytes, field->size);
    return *text ? CORNU_OK : CORNU_ERR_MEMORY;
}

/* The string in a field of a message; "" if it is absent. */
static CornuStatus find_text(CornuArena *arena, const CornuProtobufField *message, uint32_t number,
                             const char **text)
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field;
    *text = "";
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a message");
    while (cornu__next_field(&fields, &field))
        if (field.field == number) CORNU__TRY(text_of(arena, &field, text));
    return fields.failed ? cornu__onnx_damaged("a message") : CORNU_OK;
}

/* All fields of a number, as an array. */
static CornuStatus collect(CornuArena *arena, const CornuProtobufField *message, uint32_t number,
                           CornuProtobufField **to, int *count)
{
    for (int pass = 0; pass < 2; pass++) {
        CornuFields        fields = cornu__fields(message->bytes, message->size);
        CornuProtobufField field;
        *count = 0;
        while (cornu__next_field(&fields, &field)) {
            if (field.field != number) continue;
            if (pass) (*to)[*count] = field;
            (*count)++;
        }
        if (fields.failed) return cornu__onnx_damaged("a message");
        if (!pass && !(*to = cornu__arena_take(arena, (size_t)*count, sizeof **to)))
            return CORNU_ERR_MEMORY;
    }
    return CORNU_OK;
}

/* ---- Writing ---- */

static void put_field(CornuMessage *to, const CornuProtobufField *field)
{
    const int number = (int)field->field;
    switch (field->kind) {
    case CORNU_PROTOBUF_BYTES: cornu__put_bytes(to, number, field->bytes, field->size); break;
    case CORNU_PROTOBUF_VARINT: cornu__put_number(to, number, (int64_t)field->bits); break;
    default:
        cornu__put_key(to, number, field->kind);
        cornu__put(to, &field->bits, field->kind == CORNU_PROTOBUF_FIXED32 ? 4 : 8);
    }
}

/* A name as it is in the scope around the call. */
static CornuStatus renamed(const Writing *w, const CornuProtobufField *field, const char **name)
{
    CORNU__TRY(text_of(w->all->arena, field, name));
    if (!w->scope || !**name) return CORNU_OK;
    const int at = cornu__lookup_find(&w->scope->at, *name);
    if (at >= 0) {
        *name = w->scope->names[at];
        return CORNU_OK;
    }
    const size_t size = strlen(w->scope->prefix) + strlen(*name) + 2;
    char        *text = cornu__arena_take(w->all->arena, size, 1);
    if (!text) return CORNU_ERR_MEMORY;
    snprintf(text, size, "%s/%s", w->scope->prefix, *name);
    *name = text;
    return CORNU_OK;
}

static CornuStatus put_renamed(const Writing *w, const CornuProtobufField *field, CornuMessage *to)
{
    const char *name;
    CORNU__TRY(renamed(w, field, &name));
    CORNU__TRY(spend(w, strlen(name)));
    cornu__put_text(to, (int)field->field, name);
    return CORNU_OK;
}

/* A message of which one field is a name: an initializer, an input or an output of a subgraph. */
static CornuStatus put_named(const Writing *w, const CornuProtobufField *message, uint32_t name,
                             CornuMessage *to)
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field;
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a subgraph");
    const size_t begin = cornu__begin_field(to, (int)message->field);
    while (cornu__next_field(&fields, &field)) {
        if (field.field == name) CORNU__TRY(put_renamed(w, &field, to));
        else put_field(to, &field);
    }
    cornu__end_field(to, begin);
    return fields.failed ? cornu__onnx_damaged("a subgraph") : CORNU_OK;
}

static CornuStatus put_node(const Writing *w, const CornuProtobufField *message, CornuMessage *to);

static CornuStatus put_graph(const Writing *around, const CornuProtobufField *message,
                             CornuMessage *to)
{
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field;
    Writing            own = *around;
    const Writing     *w = &own;
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a subgraph");
    if (own.subgraphs++ == MOST_SUBGRAPHS)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "subgraphs are in each other more than %d deep",
                           MOST_SUBGRAPHS);
    const size_t begin = cornu__begin_field(to, (int)message->field);
    while (cornu__next_field(&fields, &field)) {
        switch (field.field) {
        case 1: CORNU__TRY(put_node(w, &field, to)); break;
        case 5: CORNU__TRY(put_named(w, &field, 8, to)); break;
        case 11: case 12: CORNU__TRY(put_named(w, &field, 1, to)); break;
        case 13: break;   /* types of what is between, which nobody needs */
        default: put_field(to, &field);
        }
    }
    cornu__end_field(to, begin);
    return fields.failed ? cornu__onnx_damaged("a subgraph") : CORNU_OK;
}

/* ---- Attributes ---- */

/* An attribute; one that refers to an attribute of the function becomes that of the call, and is
 * left out if the call has none. What the call's own attributes hold is not renamed again. */
static CornuStatus put_attribute(const Writing *w, const CornuProtobufField *message,
                                 CornuMessage *to)
{
    const char               *refers, *name;
    const CornuProtobufField *from = message;
    Writing                   own = *w;
    CORNU__TRY(find_text(w->all->arena, message, 21, &refers));
    CORNU__TRY(find_text(w->all->arena, message, 1, &name));
    if (*refers) {
        const int at = w->scope ? cornu__lookup_find(&w->scope->attribute_at, refers) : -1;
        if (at < 0) return CORNU_OK;
        from = &w->scope->attributes[at];
        CORNU__TRY(spend(w, from->size));
        own.scope = NULL;
    }
    CornuFields        fields = cornu__fields(from->bytes, from->size);
    CornuProtobufField field;
    const size_t       begin = cornu__begin_field(to, 5);
    cornu__put_text(to, 1, name);
    while (cornu__next_field(&fields, &field)) {
        if (field.field == 1 || field.field == 21) continue;
        if (field.field == 6 || field.field == 11) CORNU__TRY(put_graph(&own, &field, to));
        else put_field(to, &field);
    }
    cornu__end_field(to, begin);
    return fields.failed ? cornu__onnx_damaged("an attribute") : CORNU_OK;
}

/* ---- Calls ---- */

/* What a function is found by; in the arena. */
static CornuStatus key_of(CornuArena *arena, const char *domain, const char *name,
                          const char *overload, const char **key)
{
    const size_t size = strlen(domain) + strlen(name) + strlen(overload) + 3;
    char        *text = cornu__arena_take(arena, size, 1);
    if (!text) return CORNU_ERR_MEMORY;
    snprintf(text, size, "%s\n%s\n%s", domain, name, overload);
    *key = text;
    return CORNU_OK;
}

static CornuStatus function_of(const Writing *w, const CornuProtobufField *node,
                               const Function **found)
{
    const char *op, *domain, *overload, *key;
    CORNU__TRY(find_text(w->all->arena, node, 4, &op));
    CORNU__TRY(find_text(w->all->arena, node, 7, &domain));
    CORNU__TRY(find_text(w->all->arena, node, 8, &overload));
    CORNU__TRY(key_of(w->all->arena, domain, op, overload, &key));
    const int at = cornu__lookup_find(&w->all->by_name, key);
    *found = at < 0 ? NULL : &w->all->functions[at];
    return CORNU_OK;
}

/* A prefix that no other call has: the call's name, or its function's. */
static CornuStatus prefix_of(const Writing *w, const CornuProtobufField *call,
                             const Function *function, const char **prefix)
{
    CornuArena *arena = w->all->arena;
    const char *own, *outer = w->scope ? w->scope->prefix : "";
    CORNU__TRY(find_text(arena, call, 3, &own));
    if (!*own) own = function->name;
    const size_t size = strlen(outer) + strlen(own) + 24;
    char        *text = cornu__arena_take(arena, size, 1);
    if (!text) return CORNU_ERR_MEMORY;
    const int length = snprintf(text, size, "%s%s%s", outer, *outer ? "/" : "", own);
    int       next = cornu__lookup_find(&w->all->taken, text);
    if (next > 0) {
        while (snprintf(text + length, size - (size_t)length, "_%d", next),
               cornu__lookup_find(&w->all->taken, text) > 0)
            next++;
        text[length] = '\0';
        CORNU__TRY(cornu__lookup_set(&w->all->taken, text, next + 1));
        snprintf(text + length, size - (size_t)length, "_%d", next);
    }
    *prefix = text;
    return cornu__lookup_set(&w->all->taken, text, 1);
}

/* Notes what inputs (`number` 1 of the call, 4 of the function) or outputs (2, 5) are called. */
static CornuStatus bind(const Writing *w, const CornuProtobufField *call, uint32_t number,
                        const Function *function, Scope *scope, int *bound)
{
    CornuArena         *arena = w->all->arena;
    CornuProtobufField *given, *wanted;
    int                 given_count, wanted_count;
    CORNU__TRY(collect(arena, call, number, &given, &given_count));
    CORNU__TRY(collect(arena, &function->message, number + 3, &wanted, &wanted_count));
    if (given_count > wanted_count)
        return cornu__fail(CORNU_ERR_FORMAT, "a call of the function %.60s has %d %s, expected at "
                           "most %d", function->name, given_count,
                           number == 1 ? "inputs" : "outputs", wanted_count);
    for (int i = 0; i < wanted_count; i++) {
        const char *inner = NULL, *outer = "";
        CORNU__TRY(text_of(arena, &wanted[i], &inner));
        if (i < given_count) CORNU__TRY(renamed(w, &given[i], &outer));
        if (number == 2 && !*outer) continue;   /* nobody wants it: a name of the body */
        CORNU__TRY(cornu__lookup_set(&scope->at, inner, *bound));
        scope->names[(*bound)++] = outer;
    }
    return CORNU_OK;
}

/* The attributes of the call, as they are in its own scope, then the function's defaults. */
static CornuStatus bind_attributes(const Writing *w, const CornuProtobufField *call,
                                   const Function *function, Scope *scope)
{
    CornuArena         *arena = w->all->arena;
    CornuProtobufField *own, *usual;
    CornuMessage        resolved = { 0 };
    int                 own_count, usual_count;
    CORNU__TRY(collect(arena, call, 5, &own, &own_count));
    CORNU__TRY(collect(arena, &function->message, 11, &usual, &usual_count));
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < own_count && !status; i++) status = put_attribute(w, &own[i], &resolved);
    if (!status && resolved.failed) status = CORNU_ERR_MEMORY;
    if (!status) status = spend(w, resolved.size);
    char *bytes = status ? NULL : cornu__arena_text(arena, resolved.bytes, resolved.size);
    const CornuProtobufField message = { .kind = CORNU_PROTOBUF_BYTES, .size = resolved.size,
                                         .bytes = (const unsigned char *)bytes };
    cornu__release(resolved.bytes);
    CORNU__TRY(status);
    if (!bytes) return CORNU_ERR_MEMORY;
    CORNU__TRY(collect(arena, &message, 5, &own, &own_count));
    const int count = own_count + usual_count;
    scope->attributes = cornu__arena_take(arena, (size_t)count, sizeof *scope->attributes);
    if (!scope->attributes) return CORNU_ERR_MEMORY;
    for (int i = count - 1; i >= 0; i--) {   /* of two, the first one is found */
        const char *name;
        scope->attributes[i] = i < own_count ? own[i] : usual[i - own_count];
        CORNU__TRY(find_text(arena, &scope->attributes[i], 1, &name));
        CORNU__TRY(cornu__lookup_set(&scope->attribute_at, name, i));
    }
    return CORNU_OK;
}

static CornuStatus put_call(const Writing *w, const CornuProtobufField *call,
                            const Function *function, CornuMessage *to)
{
    Scope       scope = { .at = { .of_strings = true }, .attribute_at = { .of_strings = true } };
    Writing     inner = { .all = w->all, .scope = &scope, .depth = w->depth + 1,
                          .subgraphs = w->subgraphs };
    CornuFields fields = cornu__fields(function->message.bytes, function->message.size);
    CornuProtobufField field;
    int         names = 0, bound = 0;
    if (w->depth == MOST_DEPTH)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "functions call each other more than %d deep",
                           MOST_DEPTH);
    CORNU__TRY(spend(w, function->message.size));
    while (cornu__next_field(&fields, &field)) names += field.field == 4 || field.field == 5;
    scope.names = cornu__arena_take(w->all->arena, (size_t)names, sizeof *scope.names);
    CornuStatus status = scope.names ? prefix_of(w, call, function, &scope.prefix)
                                     : CORNU_ERR_MEMORY;
    if (!status) status = bind(w, call, 1, function, &scope, &bound);
    if (!status) status = bind(w, call, 2, function, &scope, &bound);
    if (!status) status = bind_attributes(w, call, function, &scope);
    fields = cornu__fields(function->message.bytes, function->message.size);
    while (!status && cornu__next_field(&fields, &field))
        if (field.field == 7) status = put_node(&inner, &field, to);
    cornu__lookup_clear(&scope.at);
    cornu__lookup_clear(&scope.attribute_at);
    return cornu__fail_prefix(status, function->name);
}

static CornuStatus put_node(const Writing *w, const CornuProtobufField *message, CornuMessage *to)
{
    const Function *function;
    if (message->kind != CORNU_PROTOBUF_BYTES) return cornu__onnx_damaged("a node");
    w->all->nodes++;
    CORNU__TRY(spend(w, message->size));
    CORNU__TRY(function_of(w, message, &function));
    if (function) return put_call(w, message, function, to);
    CornuFields        fields = cornu__fields(message->bytes, message->size);
    CornuProtobufField field;
    const size_t       begin = cornu__begin_field(to, 1);
    while (cornu__next_field(&fields, &field)) {
        if (field.field <= 3) CORNU__TRY(put_renamed(w, &field, to));
        else if (field.field == 5) CORNU__TRY(put_attribute(w, &field, to));
        else put_field(to, &field);
    }
    cornu__end_field(to, begin);
    if (to->failed) return CORNU_ERR_MEMORY;
    return fields.failed ? cornu__onnx_damaged("a node") : CORNU_OK;
}

/* ---- The functions of a model ---- */

/* The rules of operators differ by opset up to 12 only. */
static CornuStatus check_opset(CornuArena *arena, const Function *function, int64_t opset)
{
    CornuFields        imports = cornu__fields(function->message.bytes, function->message.size);
    CornuProtobufField import, field;
    while (cornu__next_field(&imports, &import)) {
        const char *domain;
        int64_t     version = 0;
        if (import.field != 9) continue;
        CORNU__TRY(find_text(arena, &import, 1, &domain));
        CornuFields fields = cornu__fields(import.bytes, import.size);
        while (cornu__next_field(&fields, &field))
            if (field.field == 2) version = (int64_t)field.bits;
        if ((*domain && strcmp(domain, "ai.onnx")) || version == opset) continue;
        if (version < 13 || opset < 13)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "the function %.60s has opset %lld, and the "
                               "model %lld", function->name, (long long)version, (long long)opset);
    }
    return CORNU_OK;
}

CornuStatus cornu__onnx_functions(CornuArena *arena, const CornuProtobufField *model,
                                  int64_t opset, CornuReadFunctions **to)
{
    CornuProtobufField *messages;
    CornuReadFunctions *all = cornu__arena_take(arena, 1, sizeof *all);
    if (!all) return CORNU_ERR_MEMORY;
    *all = (CornuReadFunctions){ .arena = arena, .by_name = { .of_strings = true },
                                 .taken = { .of_strings = true } };
    CORNU__TRY(collect(arena, model, 25, &messages, &all->count));
    all->functions = cornu__arena_take(arena, (size_t)all->count, sizeof *all->functions);
    if (!all->functions) return CORNU_ERR_MEMORY;
    for (int i = 0; i < all->count; i++) {
        Function *function = &all->functions[i];
        function->message = messages[i];
        CORNU__TRY(find_text(arena, &messages[i], 1, &function->name));
        CORNU__TRY(find_text(arena, &messages[i], 10, &function->domain));
        CORNU__TRY(find_text(arena, &messages[i], 13, &function->overload));
        CORNU__TRY(check_opset(arena, function, opset));
    }
    *to = all->count ? all : NULL;
    return CORNU_OK;
}

static CornuStatus note_names(CornuReadFunctions *all)
{
    for (int i = 0; i < all->count; i++) {
        const Function *function = &all->functions[i];
        const char     *key;
        CORNU__TRY(key_of(all->arena, function->domain, function->name, function->overload, &key));
        CORNU__TRY(cornu__lookup_set(&all->by_name, key, i));
    }
    return CORNU_OK;
}

CornuStatus cornu__onnx_expand(CornuReadFunctions *functions, const CornuProtobufField *graph,
                               CornuProtobufField *nodes)
{
    const Writing      w = { .all = functions };
    CornuMessage       to = { 0 };
    CornuFields        fields = cornu__fields(graph->bytes, graph->size);
    CornuProtobufField field;
    functions->begun = functions->arena->taken;
    CornuStatus        status = note_names(functions);
    while (!status && cornu__next_field(&fields, &field))
        if (field.field == 1) status = put_node(&w, &field, &to);
    if (!status && to.failed) status = CORNU_ERR_MEMORY;
    char *bytes = status ? NULL : cornu__arena_text(functions->arena, to.bytes, to.size);
    if (!status && !bytes) status = CORNU_ERR_MEMORY;
    *nodes = (CornuProtobufField){ .kind = CORNU_PROTOBUF_BYTES, .size = to.size,
                                   .bytes = (const unsigned char *)bytes };
    cornu__release(to.bytes);
    cornu__lookup_clear(&functions->by_name);
    cornu__lookup_clear(&functions->taken);
    return status;
}
