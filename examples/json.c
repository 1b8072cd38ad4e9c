#include "json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A string in quotes. Bytes from 0x20 on are UTF-8 already. */
static void put_string(Json *json, const char *text)
{
    fputc('"', json->to);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') fprintf(json->to, "\\%c", c);
        else if (c < 0x20) fprintf(json->to, "\\u%04x", c);
        else fputc(c, json->to);
    }
    fputc('"', json->to);
}

/* What stands before a value: the comma after the last one, a new line, the key. */
static bool put_key(Json *json, const char *key)
{
    if (!json->to) return false;
    if (json->depth > 0) fprintf(json->to, "%s\n%*s", json->empty ? "" : ",", json->depth, "");
    json->empty = false;
    if (!key) return true;
    put_string(json, key);
    fputs(": ", json->to);
    return true;
}

void json_begin(Json *json, const char *key, char bracket)
{
    if (!put_key(json, key)) return;
    fputc(bracket, json->to);
    json->closing[json->depth++] = bracket == '{' ? '}' : ']';
    json->empty = true;
}

void json_end(Json *json)
{
    if (!json->to) return;
    json->depth--;
    if (!json->empty) fprintf(json->to, "\n%*s", json->depth, "");
    fputc(json->closing[json->depth], json->to);
    json->empty = false;
}

void json_text(Json *json, const char *key, const char *value)
{
    if (put_key(json, key)) put_string(json, value);
}

void json_whole(Json *json, const char *key, int64_t value)
{
    if (put_key(json, key)) fprintf(json->to, "%lld", (long long)value);
}

/* 17 digits tell doubles apart; the point tells them from whole numbers. */
void json_number(Json *json, const char *key, double value)
{
    char text[40] = "null";
    if (isfinite(value)) snprintf(text, sizeof text, "%.17g", value);
    if (isfinite(value) && !strpbrk(text, ".e")) strcat(text, ".0");
    if (put_key(json, key)) fputs(text, json->to);
}

void json_flag(Json *json, const char *key, bool value)
{
    if (put_key(json, key)) fputs(value ? "true" : "false", json->to);
}

void json_begin_file(Json *json)
{
    *json = (Json){ .text = NULL };
    json->to = open_memstream(&json->text, &json->length);
    json_begin(json, NULL, '{');
}

CornuStatus json_end_file(Json *json, const char *path)
{
    while (json->to && json->depth > 0) json_end(json);
    if (json->to) fputc('\n', json->to);
    bool failed = !json->to || ferror(json->to);
    if (json->to && fclose(json->to)) failed = true;
    const CornuStatus status = failed ? cornu_error_set(CORNU_ERR_MEMORY, "%s: out of memory", path)
                                      : cornu_file_write(path, json->text, json->length);
    free(json->text);
    return status;
}
