/* Text, identifiers and constants. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "source_internal.h"
#include "../text/print.h"

static void append(CornuCText *text, const char *from, size_t size)
{
    if (!text->status && size > (size_t)(INT32_MAX - 1) - text->size)
        text->status = cornu__fail(CORNU_ERR_UNSUPPORTED, "more than 2 GB of C source");
    if (!text->status)
        text->status = cornu__reserve(&text->text, &text->space, (int)text->size, (int)size + 1,
                                      1);
    if (text->status) return;
    memcpy(text->text + text->size, from, size);
    text->size += size;
    text->text[text->size] = '\0';
}

void cornu__c_print(CornuCText *text, const char *format, ...)
{
    char    line[1024];
    va_list arguments;
    va_start(arguments, format);
    const int length = cornu__vformat(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof line) {
        if (!text->status)
            text->status = cornu__fail(CORNU_ERR_UNSUPPORTED, "a name of more than %zu characters",
                                       sizeof line);
        return;
    }
    const bool begins = text->size == 0 || (text->text && text->text[text->size - 1] == '\n');
    for (int i = 0; begins && line[0] != '\n' && i < text->depth; i++) append(text, "    ", 4);
    append(text, line, (size_t)length);
}

/* Whether `part` is here, and no digit or point makes its number another one. */
static bool is_here(const char *at, const char *part)
{
    const size_t length = strlen(part);
    return !strncmp(at, part, length) && !isalnum((unsigned char)at[length]) && at[length] != '.';
}

void cornu__c_tidy(CornuCText *text)
{
    static const char *const nothing[] = { " * 1", " + 0", " - 0" };
    size_t                   to = 0;
    for (size_t from = 0; from < text->size; from++) {
        const char *at = text->text + from;
        size_t      skipped = !strncmp(at, "[0 + ", 5) ? 4 : 0;   /* all but the bracket */
        if (skipped) text->text[to++] = '[';
        for (int i = 0; i < 3 && !skipped; i++)
            if (is_here(at, nothing[i])) skipped = strlen(nothing[i]) - 1;
        if (skipped) from += skipped;
        else text->text[to++] = *at;
    }
    text->size = to;
    if (text->text) text->text[to] = '\0';
}

/* Words that may not name anything, of C99 and C++17. */
static const char *const words[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "class", "compl", "const", "const_cast", "constexpr", "continue",
    "decltype", "default", "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit",
    "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
    "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr", "operator", "or",
    "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "restrict",
    "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct",
    "switch", "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid",
    "typename", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while",
    "xor", "xor_eq", "main", "linux", "unix", "sum", "total", "best", "memory",
};

size_t cornu__c_spell(char *to, size_t size, const char *text)
{
    size_t n = 0;
    if (isdigit((unsigned char)text[0]) && n + 1 < size) to[n++] = 'n';
    for (; *text && n + 1 < size; text++) {
        const bool fits = isalnum((unsigned char)*text) && (unsigned char)*text < 128;
        if (!fits && (n == 0 || to[n - 1] == '_')) continue;
        to[n++] = fits ? *text : '_';
    }
    while (n > 0 && to[n - 1] == '_') n--;
    to[n] = '\0';
    return n;
}

void cornu__c_identifier(char *to, size_t size, const char *text)
{
    size_t n = cornu__c_spell(to, size, text);
    bool   taken = n > 0 && strspn(to + 1, "0123456789") == n - 1;   /* the letters of loops */
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) taken |= !strcmp(to, words[i]);
    if (taken && n + 1 < size) to[n++] = '_', to[n] = '\0';
}

void cornu__c_number_name(char *name, size_t size, size_t length, int n)
{
    char         suffix[16];
    const size_t bytes = (size_t)snprintf(suffix, sizeof suffix, "_%d", n) + 1;
    memcpy(name + (length + bytes <= size ? length : size - bytes), suffix, bytes);
}

static bool is_taken(const CornuCSource *source, const char *name)
{
    for (int i = 0; i < source->name_count; i++)
        if (!strcmp(source->names[i], name)) return true;
    return cornu__c_is_helper(source, name);
}

CornuStatus cornu__c_take_name(CornuCSource *source, char *name, size_t size)
{
    const size_t length = strlen(name);
    for (int n = 2; is_taken(source, name); n++) cornu__c_number_name(name, size, length, n);
    return cornu__add_text(&source->names, &source->name_space, &source->name_count, name);
}

const char *cornu__c_type(CornuDtype dtype)
{
    switch (dtype) {
    case CORNU_F32:  return "float";
    case CORNU_F64:  return "double";
    case CORNU_I64:  return "int64_t";
    case CORNU_I32:  return "int32_t";
    case CORNU_U32:  return "uint32_t";
    case CORNU_U8: case CORNU_BOOL: return "uint8_t";
    default: return NULL;
    }
}

/* The shortest decimal that is read as the number again. */
static void print_float(CornuCText *to, double number, bool is_double)
{
    char  text[40];
    char *end;
    for (int digits = 6; digits <= 17; digits++) {
        cornu__format(text, sizeof text, "%.*g", digits, number);
        const double read = cornu__parse_number(text, &end);
        if (is_double ? read == number : (float)read == (float)number) break;
    }
    cornu__c_print(to, signbit(number) ? "(%s%s%s)" : "%s%s%s", text,
                   strpbrk(text, ".e") ? "" : ".0", is_double ? "" : "f");
}

void cornu__c_number(CornuCText *to, CornuDtype dtype, double number)
{
    switch (dtype) {
    case CORNU_F32: case CORNU_F64:
        /* an infinity is what overflows, as no macro of a header is needed so */
        if (isnan(number)) cornu__c_print(to, "(1e38f * 10.0f - 1e38f * 10.0f)");
        else if (isinf((float)number))
            cornu__c_print(to, "(%s1e38f * 10.0f)", number < 0.0 ? "-" : "");
        else print_float(to, dtype == CORNU_F64 ? number : (float)number, dtype == CORNU_F64);
        break;
    case CORNU_I64:
        if (cornu__as_integer(number) == INT64_MIN) cornu__c_print(to, "INT64_MIN");
        else cornu__c_print(to, "INT64_C(%lld)", (long long)cornu__as_integer(number));
        break;
    case CORNU_I32:
        if (number == INT32_MIN) cornu__c_print(to, "INT32_MIN");
        else cornu__c_print(to, number < 0 ? "(%lld)" : "%lld", (long long)number);
        break;
    case CORNU_U32: cornu__c_print(to, "%lluu", (unsigned long long)number); break;
    case CORNU_BOOL: cornu__c_print(to, "%d", number != 0.0); break;
    default: cornu__c_print(to, "%lld", (long long)number); break;
    }
}

void cornu__c_source_free(CornuCSource *source)
{
    for (int i = 0; i < source->name_count; i++) cornu__release(source->names[i]);
    cornu__release(source->names);
    cornu__release(source->functions.text);
    *source = (CornuCSource){ 0 };
}
