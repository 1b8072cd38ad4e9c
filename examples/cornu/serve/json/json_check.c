/* Sources: RFC 8259 for the grammar; rapidjson, error/en.h, for the words of a parse error. */
#include "json_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Deeper lists and objects are refused: each level is a call. */
enum { MOST_DEPTH = 1000 };

/* Numbers of fewer characters without an exponent are below the largest double. */
enum { LONG_NUMBER = 300 };

typedef struct {
    const char *at, *begin, *end;
    Problem    *problem;
} Check;

static bool fail(const Check *c, const char *reason)
{
    return problem_set(c->problem, CODE_INVALID_ARGUMENT, "JSON Parse error: %s at offset: %zu",
                       reason, (size_t)(c->at - c->begin));
}

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

const char *json_skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at)) at++;
    return at;
}

/* Skips blanks, and then a character if that comes next. */
static bool take(Check *c, char wanted)
{
    c->at = json_skip_blanks(c->at, c->end);
    if (c->at == c->end || *c->at != wanted) return false;
    c->at++;
    return true;
}

/* ---- Strings ---- */

static int hex_digits(const char *at, const char *end)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char       *found = at + i < end && at[i] ? strchr(digits, at[i]) : NULL;
        if (!found) return -1;
        value = 16 * value + (int)(found - digits) % 16;
    }
    return value;
}

/* After a backslash. */
static bool check_escape(Check *c)
{
    if (c->at == c->end || !*c->at || !strchr("\"\\/bfnrtu", *c->at))
        return fail(c, "Invalid escape character in string.");
    if (*c->at++ != 'u') return true;
    const int first = hex_digits(c->at, c->end);
    if (first < 0) return fail(c, "Incorrect hex digit after \\u escape in string.");
    c->at += 4;
    if (first < 0xd800 || first > 0xdfff) return true;
    const bool another = c->end - c->at >= 2 && c->at[0] == '\\' && c->at[1] == 'u';
    const int  second = another ? hex_digits(c->at + 2, c->end) : -1;
    if (first > 0xdbff || second < 0xdc00 || second > 0xdfff)
        return fail(c, "The surrogate pair in string is invalid.");
    c->at += 6;
    return true;
}

/* A character of more than one byte: neither too long, nor a surrogate, nor above U+10FFFF. */
static bool check_utf8(Check *c)
{
    const unsigned char *at = (const unsigned char *)c->at;
    const unsigned       first = *at;
    const int            more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    unsigned             code = first & (0x3fU >> more);
    bool                 good = first >= 0xc2 && first <= 0xf4 && c->end - c->at > more;
    for (int i = 1; good && i <= more; i++) {
        good = (at[i] & 0xc0) == 0x80;
        code = code << 6 | (at[i] & 0x3f);
    }
    if (!good || (more == 2 && (code < 0x800 || (code >= 0xd800 && code <= 0xdfff))) ||
        (more == 3 && (code < 0x10000 || code > 0x10ffff)))
        return fail(c, "Invalid encoding in string.");
    c->at += more + 1;
    return true;
}

/* After the first quotation mark. */
static bool check_string(Check *c)
{
    while (c->at < c->end) {
        const unsigned char next = (unsigned char)*c->at;
        if (next == '"') return c->at++, true;
        if (next == '\\') {
            c->at++;
            if (!check_escape(c)) return false;
        } else if (next >= 0x80) {
            if (!check_utf8(c)) return false;
        } else if (next < 0x20) {
            return fail(c, "Invalid encoding in string.");
        } else {
            c->at++;
        }
    }
    return fail(c, "Missing a closing quotation mark in string.");
}

/* ---- Numbers ---- */

size_t json_special(const char *bytes, size_t size, double *value)
{
    static const struct { const char *token; double value; } specials[] = {
        { "NaN", (double)NAN }, { "Infinity", (double)INFINITY }, { "Inf", (double)INFINITY },
    };
    const size_t minus = size && *bytes == '-';
    if (size <= minus || (bytes[minus] != 'N' && bytes[minus] != 'I')) return 0;
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
        const size_t length = strlen(specials[i].token);
        if (size - minus < length || strncmp(bytes + minus, specials[i].token, length)) continue;
        *value = minus ? -specials[i].value : specials[i].value;
        return minus + length;
    }
    return 0;
}

static const char *skip_digits(const char *at, const char *end)
{
    while (at < end && is_digit(*at)) at++;
    return at;
}

/* The number is copied, since nothing may follow it that ends it. */
static bool is_finite(const char *number, size_t length)
{
    char  small[LONG_NUMBER + 1];
    char *copy = length < sizeof small ? small : malloc(length + 1);
    if (!copy) return false;
    memcpy(copy, number, length);
    copy[length] = '\0';
    const bool finite = isfinite(strtod(copy, NULL));
    if (copy != small) free(copy);
    return finite;
}

static bool check_number(Check *c)
{
    const char *const number = c->at;
    bool              exponent = false;
    if (*c->at == '-') c->at++;
    const char *digits = c->at;
    c->at = skip_digits(c->at, c->end);
    if (c->at == digits) return fail(c, "Invalid value.");
    if (*digits == '0') c->at = digits + 1;    /* what follows a zero is another value */
    if (c->at < c->end && *c->at == '.') {
        digits = ++c->at;
        c->at = skip_digits(c->at, c->end);
        if (c->at == digits) return fail(c, "Missing fraction part in number.");
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        exponent = true;
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-')) c->at++;
        digits = c->at;
        c->at = skip_digits(c->at, c->end);
        if (c->at == digits) return fail(c, "Missing exponent in number.");
    }
    const size_t length = (size_t)(c->at - number);
    if ((exponent || length >= LONG_NUMBER) && !is_finite(number, length)) {
        c->at = number;
        return fail(c, "Number too big to be stored in double.");
    }
    return true;
}

/* ---- Values ---- */

static bool check_value(Check *c, int depth);

static bool check_list(Check *c, int depth)
{
    if (take(c, ']')) return true;
    do {
        if (!check_value(c, depth)) return false;
    } while (take(c, ','));
    return take(c, ']') || fail(c, "Missing a comma or ] after an array element.");
}

static bool check_object(Check *c, int depth)
{
    if (take(c, '}')) return true;
    do {
        if (!take(c, '"')) return fail(c, "Missing a name for object member.");
        if (!check_string(c)) return false;
        if (!take(c, ':')) return fail(c, "Missing a colon after a name of object member.");
        if (!check_value(c, depth)) return false;
    } while (take(c, ','));
    return take(c, '}') || fail(c, "Missing a comma or } after an object member.");
}

static bool check_word(Check *c)
{
    static const char *const words[] = { "true", "false", "null" };
    double                   value;
    const size_t             left = (size_t)(c->end - c->at);
    size_t                   length = json_special(c->at, left, &value);
    for (int i = 0; i < 3 && !length; i++)
        if (left >= strlen(words[i]) && !memcmp(c->at, words[i], strlen(words[i])))
            length = strlen(words[i]);
    if (!length) return fail(c, "Invalid value.");
    c->at += length;
    return true;
}

static bool check_value(Check *c, int depth)
{
    if (depth > MOST_DEPTH) return fail(c, "Lists or objects are nested too deep.");
    if (take(c, '{')) return check_object(c, depth + 1);
    if (take(c, '[')) return check_list(c, depth + 1);
    if (take(c, '"')) return check_string(c);
    if (c->at == c->end) return fail(c, "Invalid value.");
    const char *digit = c->at + (*c->at == '-');
    return digit < c->end && is_digit(*digit) ? check_number(c) : check_word(c);
}

bool json_check(const char **at, const char *begin, const char *end, Problem *problem)
{
    Check c = { json_skip_blanks(*at, end), begin, end, problem };
    if (c.at == end)
        return problem_set(problem, CODE_INVALID_ARGUMENT,
                           "JSON Parse error: The document is empty");
    if (!check_value(&c, 0)) return false;
    *at = c.at = json_skip_blanks(c.at, end);
    return c.at == end ||
           fail(&c, "The document root must not be followed by other values.");
}
