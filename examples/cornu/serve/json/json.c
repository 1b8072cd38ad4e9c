/* Source: tensorflow/serving, util/json_tensor.cc, for what is accepted and for the messages. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json_check.h"

enum { SHOWN = 256 };

/* The first bytes, at the end of a character. */
static const char *cut(JsonShown *to, const char *text, size_t length)
{
    if (length > SHOWN) length = SHOWN;
    while (length && length == SHOWN && (text[length - 1] & 0x80)) length--;
    memcpy(to->text, text, length);
    to->text[length] = '\0';
    return to->text;
}

Json json_parse(const char *bytes, size_t size, Problem *problem)
{
    JsonShown   shown;
    const char *at = bytes, *end = bytes + size;
    if (!json_check(&at, bytes, end, problem)) return NULL;
    const Json root = json_skip_blanks(bytes, end);
    if (*root == '{') return root;
    if (*root == '[') json_show(&shown, root);
    else cut(&shown, root, (size_t)(end - root));
    problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s Is not object", shown.text);
    return NULL;
}

/* Every value stands within an object, so something follows it. */
static const char *skip(const char *at)
{
    while (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r') at++;
    return at;
}

JsonKind json_kind(Json value)
{
    switch (*value) {
    case '{': return JSON_OBJECT;
    case '[': return JSON_LIST;
    case '"': return JSON_STRING;
    case 't': return JSON_TRUE;
    case 'f': return JSON_FALSE;
    case 'n': return JSON_NULL;
    default:  return JSON_NUMBER;
    }
}

const char *json_kind_name(Json value)
{
    static const char *const names[] = { "Object", "Array", "String", "Number", "True", "False",
                                         "Null" };
    return names[json_kind(value)];
}

/* ---- Lists and objects ---- */

bool json_enter(Json *at)
{
    *at = skip(*at + 1);
    if (**at != ']' && **at != '}') return true;
    ++*at;
    return false;
}

bool json_follow(Json *at)
{
    *at = skip(*at);
    const bool more = **at == ',';
    ++*at;
    if (more) *at = skip(*at);
    return more;
}

static const char *end_of_string(const char *at)
{
    for (at++; *at != '"'; at++)
        if (*at == '\\') at++;
    return at + 1;
}

Json json_end(Json value)
{
    int depth = 0;
    if (*value == '"') return end_of_string(value);
    if (*value != '{' && *value != '[') return value + strcspn(value, " \n\t\r,]}");
    do {
        if (*value == '"') {
            value = end_of_string(value);
            continue;
        }
        depth += (*value == '{' || *value == '[') - (*value == '}' || *value == ']');
        value++;
    } while (depth > 0);
    return value;
}

Json json_value_of(Json name) { return skip(skip(end_of_string(name)) + 1); }

static Json end_of_item(Json item, bool in_object)
{
    return json_end(in_object ? json_value_of(item) : item);
}

int64_t json_count(Json list)
{
    const bool object = *list == '{';
    int64_t    count = 0;
    Json       at = list;
    for (bool more = json_enter(&at); more; more = json_follow(&at), count++)
        at = end_of_item(at, object);
    return count;
}

bool json_find(Json object, const char *const *names, int count, Json *found, Problem *problem)
{
    for (int i = 0; i < count; i++) found[i] = NULL;
    Json at = object;
    for (bool more = json_enter(&at); more; more = json_follow(&at)) {
        int i = 0;
        while (i < count && !json_is(at, names[i])) i++;
        if (i < count && found[i])
            return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON object: the name %s comes "
                               "twice", names[i]);
        const Json value = json_value_of(at);
        if (i < count) found[i] = value;
        at = json_end(value);
    }
    return true;
}

/* ---- Numbers ---- */

/* Exactly: both factors are, and one rounding is what strtod does. */
static bool scale_exactly(double *value, uint64_t digits, int exponent)
{
    static const double powers[] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };
    if (digits > (uint64_t)1 << 53 || exponent < -22 || exponent > 22) return false;
    *value = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
    return true;
}

JsonNumber json_number(Json number)
{
    JsonNumber  result = { .whole = true };
    const bool  minus = *number == '-';
    const char *at = number + minus;
    uint64_t    digits = 0;
    int         exponent = 0;
    bool        exact = true;             /* digits has all of them */
    if (json_special(number, 9, &result.value)) return result.whole = false, result;
    for (; (*at >= '0' && *at <= '9') || *at == '.'; at++) {
        if (*at == '.') {
            result.whole = false;
            continue;
        }
        const unsigned digit = (unsigned)(*at - '0');
        exact = exact && digits <= (UINT64_MAX - digit) / 10;
        if (exact) digits = 10 * digits + digit;
        exponent -= !result.whole;
    }
    if (*at == 'e' || *at == 'E') {
        const long power = strtol(at + 1, NULL, 10);
        result.whole = false;
        exact = exact && power > -1000 && power < 1000 && exponent > -1000;
        if (exact) exponent += (int)power;
    }
    result.whole = result.whole && exact;
    if (!exact || !scale_exactly(&result.value, digits, exponent))
        result.value = strtod(number, NULL);
    else if (minus) result.value = -result.value;
    result.is_integer = result.whole && digits <= (uint64_t)INT64_MAX + minus;
    if (result.is_integer) result.integer = minus ? -(int64_t)(digits - 1) - 1 : (int64_t)digits;
    if (result.is_integer && digits == 0) result.integer = 0, result.value = 0;
    return result;
}

/* ---- Strings ---- */

static unsigned hex4(const char *at)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++, at++)
        value = 16 * value + (unsigned)(*at <= '9' ? *at - '0' : (*at | 32) - 'a' + 10);
    return value;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
        return to;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    *to++ = (char)((0xff00U >> (more + 1) & 0xff) | code >> 6 * more);
    for (int i = more - 1; i >= 0; i--) *to++ = (char)(0x80 | (code >> 6 * i & 0x3f));
    return to;
}

size_t json_room(Json string) { return (size_t)(end_of_string(string) - string) - 2; }

size_t json_read(Json string, char *to)
{
    static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
    char *const       begin = to;
    for (const char *at = string + 1; *at != '"'; at++) {
        if (*at != '\\') {
            *to++ = *at;
            continue;
        }
        const char *letter = strchr(letters, *++at);
        if (*at != 'u') {
            *to++ = letter ? meant[letter - letters] : *at;
            continue;
        }
        unsigned code = hex4(at + 1);
        at += 4;
        if (code >= 0xd800 && code <= 0xdbff) {
            code = 0x10000 + ((code - 0xd800) << 10) + (hex4(at + 3) - 0xdc00);
            at += 6;
        }
        to = put_utf8(to, code);
    }
    return (size_t)(to - begin);
}

/* Few strings have an escape, and none has it where they differ. */
bool json_is(Json string, const char *text)
{
    const size_t room = json_room(string), length = strlen(text);
    if (!memchr(string + 1, '\\', room)) return room == length && !memcmp(string + 1, text, room);
    if (room < length || room > 6 * length) return false;
    char      *decoded = malloc(room + 1);
    const bool equal = decoded && json_read(string, decoded) == length &&
                       !memcmp(decoded, text, length);
    free(decoded);
    return equal;
}

/* ---- Messages ---- */

static void show(Text *to, Json value, int depth)
{
    const bool object = *value == '{';
    bool       any = false;
    if (to->length >= SHOWN) return;
    if (!object && *value != '[') {
        const size_t length = (size_t)(json_end(value) - value);
        text_add_bytes(to, value, length < SHOWN ? length : SHOWN);
        return;
    }
    text_add(to, object ? "{" : "[");
    Json at = value;
    for (bool more = json_enter(&at); more && to->length < SHOWN; more = json_follow(&at)) {
        if (object) {
            text_add(to, "%s\n%*s", any ? "," : "", 4 * (depth + 1), "");
            show(to, at, depth);
            text_add(to, ": ");
            at = json_value_of(at);
        } else if (any) {
            text_add(to, ", ");
        }
        show(to, at, depth + object);
        at = json_end(at);
        any = true;
    }
    if (object && any) text_add(to, "\n%*s", 4 * depth, "");
    text_add(to, object ? "}" : "]");
}

const char *json_show(JsonShown *to, Json value)
{
    Text text = { .bytes = NULL };
    show(&text, value, 0);
    cut(to, text.bytes ? text.bytes : "", text.failed ? 0 : text.length);
    text_free(&text);
    return to->text;
}

const char *json_show_name(JsonShown *to, Json string)
{
    return cut(to, string + 1, json_room(string));
}

/* ---- Base64 ---- */

/* The string of { "b64": … }; NULL unless it is such an object. */
static Json base64_string(Json value)
{
    Json at = value;
    if (*value != '{' || !json_enter(&at) || !json_is(at, "b64")) return NULL;
    const Json string = at = json_value_of(at);
    if (*string != '"') return NULL;
    at = json_end(at);
    return json_follow(&at) ? NULL : string;
}

bool json_is_base64(Json value) { return base64_string(value) != NULL; }

size_t json_base64_room(Json value)
{
    const Json string = base64_string(value);
    return string ? json_room(string) : 0;
}

/* The value of a digit, of the plain alphabet; -1 if it is none. */
static int digit_of(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Decoded in place. Blanks are skipped, and the padding may be missing, as absl::Base64Unescape has
 * it. */
bool json_read_base64(Json value, char *to, size_t *size, Problem *problem)
{
    JsonShown  shown;
    const Json string = base64_string(value);
    if (!string)
        return problem_set(problem, CODE_INVALID_ARGUMENT, "JSON Value: %s not formatted correctly "
                           "for base64 data", json_show(&shown, value));
    const size_t length = json_read(string, to);
    unsigned     bits = 0;
    int          count = 0;
    size_t       digits = 0, padding = 0, i = 0;
    *size = 0;
    for (; i < length; i++) {
        if (to[i] && strchr(" \t\r\n\v\f", to[i])) continue;
        const int d = digit_of(to[i]);
        if (to[i] == '=') {
            padding++;
            continue;
        }
        if (d < 0 || padding) break;
        bits = bits << 6 | (unsigned)d;
        digits++;
        if ((count += 6) >= 8) to[(*size)++] = (char)(bits >> (count -= 8) & 255);
    }
    const bool whole = i == length && digits % 4 != 1 &&
                       (!padding || (digits + padding) % 4 == 0) && padding < 3 &&
                       !(bits & ((1U << count) - 1));
    return whole || problem_set(problem, CODE_INVALID_ARGUMENT, "Unable to base64 decode");
}
