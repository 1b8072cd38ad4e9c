#include "json_internal.h"

#include "../../datasets/text/text_internal.h"
#include "../../device/memory_internal.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

/* ---- Memory: out of it, jansson drops characters without an error ---- */

static _Thread_local bool out_of_memory;
static json_malloc_t      usual_malloc;
static pthread_once_t     once = PTHREAD_ONCE_INIT;

static void *note_malloc(size_t size)
{
    void *memory = usual_malloc(size);
    out_of_memory |= !memory;
    return memory;
}

/* Wraps the allocator that the process has set for jansson. */
static void watch_memory(void)
{
    json_free_t usual_free;
    json_get_alloc_funcs(&usual_malloc, &usual_free);
    json_set_alloc_funcs(note_malloc, usual_free);
}

/* ---- Parsing ---- */

/* How deep brackets nest outside strings. */
static int nesting(const char *bytes, size_t size)
{
    int  depth = 0, deepest = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        const char c = bytes[i];
        if (in_string) {
            if (c == '\\') i++;
            else if (c == '"') in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > deepest) deepest = depth;
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return deepest;
}

json_t *cornu__json_parse(const char *bytes, size_t size, int depth)
{
    if (size > CORNU__MOST_JSON) {
        cornu__fail(CORNU_ERR_FORMAT, "JSON of %zu bytes, expected at most %zu", size,
                    CORNU__MOST_JSON);
        return NULL;
    }
    const int found = nesting(bytes, size);
    if (found > depth) {
        cornu__fail(CORNU_ERR_FORMAT, "JSON nests %d deep, expected at most %d", found, depth);
        return NULL;
    }
    pthread_once(&once, watch_memory);
    out_of_memory = false;
    json_error_t error;
    json_t *value = json_loadb(bytes, size, JSON_REJECT_DUPLICATES, &error);
    if (!value && !out_of_memory)
        cornu__fail(CORNU_ERR_FORMAT, "JSON: %s, at byte %d", error.text, error.position);
    if (!out_of_memory) return value;
    cornu__fail(CORNU_ERR_MEMORY, "no memory for JSON of %zu bytes", size);
    json_decref(value);
    return NULL;
}

/* ---- Printing ---- */

bool cornu__is_utf8(const char *text)
{
    const unsigned char *bytes = (const unsigned char *)text;
    size_t               left = strlen(text);
    uint32_t             code;
    for (int length = 1; left > 0 && length > 0; left -= (size_t)length, bytes += length)
        length = cornu__utf8_read(bytes, left, &code);
    return left == 0;
}

/* A growing string. json_dumps would drop a key for lack of memory without an error. */
typedef struct {
    char *bytes;
    int   size, space;
    bool  failed;
} Text;

static int append(const char *bytes, size_t size, void *context)
{
    Text *text = context;
    if (size == 0) return 0;
    if (size >= INT_MAX / 4 ||
        cornu__reserve(&text->bytes, &text->space, text->size, (int)size, 1)) {
        text->failed = true;
        return -1;
    }
    memcpy(text->bytes + text->size, bytes, size);
    text->size += (int)size;
    return 0;
}

char *cornu__json_text(const json_t *value)
{
    Text text = { .failed = !value };
    if (value && (json_dump_callback(value, append, &text, JSON_SORT_KEYS | JSON_COMPACT) ||
                  append("", 1, &text)))
        text.failed = true;
    if (!text.failed) return text.bytes;
    cornu__release(text.bytes);
    cornu__fail(CORNU_ERR_MEMORY, "no memory to print JSON");
    return NULL;
}

json_t *cornu__json_append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) == 0) return list;
    json_decref(list);
    return NULL;
}

json_t *cornu__json_with(json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value) == 0) return object;
    json_decref(object);
    return NULL;
}

bool cornu__json_same(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) ? json_number_value(a) == json_number_value(b)
                                                  : json_equal(a, b);
}

bool cornu__json_is(const json_t *value, const char *text)
{
    json_t    *wanted = json_loads(text, JSON_DECODE_ANY, NULL);
    const bool same = cornu__json_same(value, wanted);
    json_decref(wanted);
    return same;
}

json_t *cornu__json_map_members(const json_t *object, CornuJsonLeaf *leaf, void *context)
{
    const char *key;
    json_t     *member, *made = json_object();
    json_object_foreach((json_t *)object, key, member)
        made = cornu__json_with(made, key, cornu__json_map(member, leaf, context));
    return made;
}

json_t *cornu__json_map(const json_t *value, CornuJsonLeaf *leaf, void *context)
{
    json_t *made = NULL;
    if (leaf(context, value, &made)) return made;
    if (json_is_object(value)) return cornu__json_map_members(value, leaf, context);
    if (!json_is_array(value)) return json_incref((json_t *)value);
    made = json_array();
    for (size_t i = 0; i < json_array_size(value); i++)
        made = cornu__json_append(made, cornu__json_map(json_array_get(value, i), leaf, context));
    return made;
}
