/* Sources: tensorflow/serving, util/json_tensor.cc, for what is accepted and for the messages;
 * rapidjson, error/en.h, for the words of a parse error. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- NaN and Infinity ----
 *
 * jansson has no such numbers: it is given strings in their place. A request that has one of these
 * strings itself means the same. */

static const struct { const char *token, *quoted, *string; double value; } specials[] = {
    { "NaN", "\"\\u001dN\"", "\x1dN", (double)NAN },
    { "Infinity", "\"\\u001dI\"", "\x1dI", (double)INFINITY },
    { "-Infinity", "\"\\u001d-I\"", "\x1d-I", -(double)INFINITY },
};

enum { SPECIALS = sizeof specials / sizeof *specials };

static int special_at(const char *bytes, size_t size)
{
    for (int i = 0; i < SPECIALS; i++) {
        const size_t length = strlen(specials[i].token);
        if (size >= length && !memcmp(bytes, specials[i].token, length)) return i;
    }
    return -1;
}

/* The document with strings in place of those numbers. */
static void replace_specials(const char *bytes, size_t size, Text *to)
{
    bool   in_string = false;
    size_t kept = 0;                    /* up to here the document is copied */
    for (size_t i = 0; i < size;) {
        const char c = bytes[i];
        const int  special = !in_string && (c == 'N' || c == 'I' || c == '-')
            ? special_at(bytes + i, size - i) : -1;
        if (special >= 0) {
            text_add_bytes(to, bytes + kept, i - kept);
            text_add(to, "%s", specials[special].quoted);
            kept = i += strlen(specials[special].token);
            continue;
        }
        if (c == '"') in_string = !in_string;
        i += in_string && c == '\\' ? 2 : 1;
    }
    text_add_bytes(to, bytes + kept, size - kept);
}

bool json_number(const json_t *value, double *number)
{
    if (json_is_number(value)) {
        *number = json_number_value(value);
        return true;
    }
    for (int i = 0; i < SPECIALS && json_is_string(value); i++)
        if (!strcmp(json_string_value(value), specials[i].string)) {
            *number = specials[i].value;
            return true;
        }
    return false;
}

/* ---- Parsing ---- */

/* rapidjson's words for jansson's. */
static const char *reason(const json_error_t *error)
{
    static const struct { const char *begin, *reason; } reasons[] = {
        { "string or '}' expected", "Missing a name for object member." },
        { "':' expected", "Missing a colon after a name of object member." },
        { "'}' expected", "Missing a comma or } after an object member." },
        { "']' expected", "Missing a comma or ] after an array element." },
        { "too big", "Number too big to be stored in double." },
        { "real number overflow", "Number too big to be stored in double." },
        { "premature end of input", "Missing a closing quotation mark in string." },
        { "invalid escape", "Invalid escape character in string." },
        { "invalid Unicode", "The surrogate pair in string is invalid." },
        { "unable to decode", "Invalid encoding in string." },
        { "duplicate", "The same name twice in an object." },
        { "maximum parsing depth", "Lists or objects are nested too deep." },
    };
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!strncmp(error->text, reasons[i].begin, strlen(reasons[i].begin)))
            return reasons[i].reason;
    return json_error_code(error) == json_error_out_of_memory ? "Out of memory."
                                                              : "Invalid value.";
}

json_t *json_parse(const char *bytes, size_t size, Problem *problem)
{
    const size_t flags = JSON_DECODE_ANY | JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES;
    json_error_t error;
    Text         replaced = { .bytes = NULL };
    size_t       blanks = 0;
    while (blanks < size && strchr(" \t\r\n", bytes[blanks]) && bytes[blanks]) blanks++;
    if (blanks == size) {
        problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Parse error: The document is empty");
        return NULL;
    }
    if (memchr(bytes, 'N', size) || memchr(bytes, 'I', size)) {
        replace_specials(bytes, size, &replaced);
        bytes = replaced.bytes;
        size = replaced.length;
    }
    json_t *document = replaced.failed ? NULL : json_loadb(bytes, size, flags, &error);
    if (replaced.failed)
        problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for the request");
    else if (!document)
        problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Parse error: %s at offset: %d",
                    reason(&error), error.position);
    text_free(&replaced);
    if (!document || json_is_object(document)) return document;
    JsonShown shown;
    problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Is not object",
                json_show(&shown, document));
    json_decref(document);
    return NULL;
}

/* ---- Messages ---- */

const char *json_kind(const json_t *value)
{
    double number;
    if (json_number(value, &number)) return "Number";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "Object";
    case JSON_ARRAY:  return "Array";
    case JSON_STRING: return "String";
    case JSON_TRUE:   return "True";
    case JSON_FALSE:  return "False";
    default:          return "Null";
    }
}

enum { SHOWN = 256 };

static void show(Text *to, const json_t *value, int depth)
{
    const char *key;
    json_t     *item;
    size_t      i;
    double      number;
    bool        any = false;
    if (to->length >= SHOWN) return;
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        text_add(to, "{");
        json_object_foreach((json_t *)value, key, item) {
            if (to->length >= SHOWN) return;
            text_add(to, "%s\n%*s", any ? "," : "", 4 * (depth + 1), "");
            text_add_quoted(to, key);
            text_add(to, ": ");
            show(to, item, depth + 1);
            any = true;
        }
        if (any) text_add(to, "\n%*s", 4 * depth, "");
        text_add(to, "}");
        return;
    case JSON_ARRAY:
        text_add(to, "[");
        json_array_foreach(value, i, item) {
            if (to->length >= SHOWN) return;
            if (i > 0) text_add(to, ", ");
            show(to, item, depth);
        }
        text_add(to, "]");
        return;
    case JSON_INTEGER: text_add(to, "%lld", (long long)json_integer_value(value)); return;
    case JSON_REAL:
    case JSON_STRING:
        if (!json_number(value, &number)) {
            text_add_quoted(to, json_string_value(value));
        } else if (isfinite(number)) {
            char *text = json_dumps(value, JSON_ENCODE_ANY);   /* 2.5, 1.0 */
            text_add(to, "%s", text ? text : "?");
            free(text);
        } else {
            text_add_float(to, (float)number);
        }
        return;
    case JSON_TRUE:  text_add(to, "true"); return;
    case JSON_FALSE: text_add(to, "false"); return;
    default:         text_add(to, "null"); return;
    }
}

/* Cut before a byte in the middle of a UTF-8 character. */
const char *json_show(JsonShown *to, const json_t *value)
{
    Text text = { .bytes = NULL };
    show(&text, value, 0);
    size_t length = text.length < SHOWN ? text.length : SHOWN;
    while (length > 0 && length < text.length && (text.bytes[length] & 0xC0) == 0x80) length--;
    if (length) memcpy(to->text, text.bytes, length);
    to->text[length] = '\0';
    text_free(&text);
    return to->text;
}

/* ---- Base64 ---- */

bool json_is_base64(const json_t *value)
{
    return json_is_object(value) && json_object_size(value) == 1 &&
           json_is_string(json_object_get(value, "b64"));
}

/* The value of a digit, of the plain alphabet; -1 if it is none. */
static int digit(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Blanks are skipped, and the padding may be missing, as absl::Base64Unescape has it. */
char *json_decode_base64(const json_t *value, size_t *size, Problem *problem)
{
    JsonShown shown;
    if (!json_is_base64(value)) {
        problem_set(problem, CODE_INVALID_ARGUMENT,
                    "JSON Value: %s not formatted correctly for base64 data",
                    json_show(&shown, value));
        return NULL;
    }
    const char *from = json_string_value(json_object_get(value, "b64"));
    char       *to = malloc(strlen(from) + 1);
    unsigned    bits = 0;
    int         count = 0;
    size_t      digits = 0, padding = 0;
    *size = 0;
    if (!to) {
        problem_set(problem, CODE_RESOURCE_EXHAUSTED, "no memory for base64 data");
        return NULL;
    }
    for (; *from; from++) {
        if (strchr(" \t\r\n\v\f", *from)) continue;
        const int d = digit(*from);
        if (*from == '=') {
            padding++;
            continue;
        }
        if (d < 0 || padding) break;
        bits = bits << 6 | (unsigned)d;
        digits++;
        if ((count += 6) >= 8) to[(*size)++] = (char)(bits >> (count -= 8) & 255);
    }
    const bool whole = !*from && digits % 4 != 1 && (!padding || (digits + padding) % 4 == 0) &&
                       padding < 3 && !(bits & ((1U << count) - 1));
    to[*size] = '\0';
    if (whole) return to;
    free(to);
    problem_set(problem, CODE_INVALID_ARGUMENT, "Unable to base64 decode");
    return NULL;
}
