/*
 * JSON of requests, as TensorFlow Serving's json_tensor.cc takes it, and its messages. A body is
 * checked as a whole; then its values are read where they stand, so that a request takes no memory
 * but for the arrays that are made of it.
 */
#ifndef CORNU_SERVE_JSON_H
#define CORNU_SERVE_JSON_H

#include "reply.h"

/* A value of a body that has been checked: where its text begins. NULL: absent. */
typedef const char *Json;

typedef enum {
    JSON_OBJECT, JSON_LIST, JSON_STRING, JSON_NUMBER, JSON_TRUE, JSON_FALSE, JSON_NULL
} JsonKind;

/* Checks a body, which must be one object and nothing else. NaN, Inf, Infinity and the same with a
 * minus are numbers. NULL with a problem. */
Json json_parse(const char *bytes, size_t size, Problem *problem);

JsonKind    json_kind(Json value);
const char *json_kind_name(Json value);       /* "Number", "Array", … */

/* ---- Lists and objects ----
 *
 *     Json at = list;
 *     for (bool more = json_enter(&at); more; more = json_follow(&at)) {
 *         ... *at is an item, or a member's name; it moves to the end of what is read ...
 *     }
 *     ... at is after the list ...
 */
bool json_enter(Json *at);                    /* from a list or object to its first item, if any */
bool json_follow(Json *at);                   /* from the end of an item to the next */
Json json_end(Json value);                    /* just after it */
Json json_value_of(Json name);                /* of a member */

int64_t json_count(Json list);                /* items, or members */

/* found[i] = the member of an object with the i-th name, or NULL. False with a problem if one comes
 * twice. */
bool json_find(Json object, const char *const *names, int count, Json *found, Problem *problem);

/* ---- Scalars ---- */

typedef struct {
    double  value;
    bool    whole;         /* without fraction and exponent, and within 64 bits */
    bool    is_integer;    /* whole, and an int64_t: */
    int64_t integer;
} JsonNumber;

JsonNumber json_number(Json number);

/* Whether a string, or a name, is that text. */
bool json_is(Json string, const char *text);

/* The bytes of a string, which are at most json_room: their number. They may have zeros. */
size_t json_room(Json string);
size_t json_read(Json string, char *to);

/* Whether it is { "b64": "…" } and nothing else; the bytes of it, at most json_room of the string
 * within. */
bool json_is_base64(Json value);
bool json_read_base64(Json value, char *to, size_t *size, Problem *problem);
size_t json_base64_room(Json value);

/* A value, or a string without its quotes, for messages, cut after 256 bytes. */
typedef struct { char text[264]; } JsonShown;
const char *json_show(JsonShown *to, Json value);
const char *json_show_name(JsonShown *to, Json string);

#endif
