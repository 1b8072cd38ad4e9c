#include "request_internal.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../../../device/status_internal.h"
#include "../../formats/json_internal.h"

/* The most bytes that are read of what is refused. */
static const size_t most_discarded = (size_t)128 << 20;

static void judge(CornuRequest *request, unsigned status, const char *why)
{
    if (!request->verdict.status) request->verdict = (CornuVerdict){ status, why, NULL };
}

/* ---- The head ---- */

static const struct { const char *path, *method; CornuTarget target; } targets[] = {
    { "/", "GET", CORNU__TARGET_PAGE },
    { "/events", "GET", CORNU__TARGET_EVENTS },
    { "/control", "POST", CORNU__TARGET_CONTROL },
};

static void find_target(CornuRequest *request)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(request->head.path, targets[i].path) != 0) continue;
        request->target = targets[i].target;
        if (!strcmp(request->head.method, targets[i].method)) return;
        judge(request, 405, "another method is expected here");
        if (request->verdict.status == 405) request->verdict.allow = targets[i].method;
        return;
    }
    judge(request, 404, "there is nothing here");
}

/* A command's token is in a header, which a form of another page cannot send. */
static bool has_token(const CornuRequest *request, const CornuListener *listener)
{
    static const char bearer[] = "Bearer ";
    const char       *given = request->head.authorization;
    if (given && !strncasecmp(given, bearer, sizeof bearer - 1) &&
        cornu__listen_is_token(listener, given + sizeof bearer - 1))
        return true;
    return request->target != CORNU__TARGET_CONTROL &&
           cornu__listen_is_token(listener, request->head.token);
}

/* The page of another server may not command, even with the token. */
static bool is_same_origin(const CornuRequestHead *head)
{
    static const char http[] = "http://";
    return !head->origin || (head->host && !strncmp(head->origin, http, sizeof http - 1) &&
                             !strcasecmp(head->origin + sizeof http - 1, head->host));
}

static bool is_json(const char *type)
{
    static const char json[] = "application/json";
    const size_t      length = sizeof json - 1;
    return type && !strncasecmp(type, json, length) && strchr("; ", type[length]);
}

void cornu__request_check(CornuRequest *request, const CornuListener *listener)
{
    const CornuRequestHead *head = &request->head;
    if (!cornu__listen_is_host(listener, head->host)) judge(request, 403, "not the host served");
    find_target(request);
    if (!has_token(request, listener) || !is_same_origin(head))
        judge(request, 403, "wrong or no token: open the address that the training has printed");
    if (request->target == CORNU__TARGET_CONTROL && !is_json(head->type))
        judge(request, 415, "expected application/json");
    if (head->length && strtod(head->length, NULL) > CORNU__REQUEST_BODY)
        judge(request, 413, "the body is too large, expected at most 1024 bytes");
    request->head = (CornuRequestHead){ .path = NULL };
}

/* ---- The body ---- */

bool cornu__request_body(CornuRequest *request, const char *bytes, size_t size)
{
    if (request->size + size > CORNU__REQUEST_BODY)
        judge(request, 413, "the body is too large, expected at most 1024 bytes");
    else
        memcpy(request->body + request->size, bytes, size);
    request->size += size;
    return request->size <= most_discarded;
}

typedef struct {
    const char      *name, *done;
    CornuCommandKind kind;
} Action;

static const Action actions[] = {
    { "pause", "pausing", CORNU__COMMAND_PAUSE },
    { "resume", "resuming", CORNU__COMMAND_RESUME },
    { "stop", "stopping after this epoch", CORNU__COMMAND_STOP },
    { "go_on", "not stopping after this epoch", CORNU__COMMAND_GO_ON },
    { "save", "saving", CORNU__COMMAND_SAVE },
    { "learning_rate", "changing the learning rate", CORNU__COMMAND_LEARNING_RATE },
};

static const Action *find_action(const char *name)
{
    for (size_t i = 0; name && i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(name, actions[i].name)) return &actions[i];
    return NULL;
}

static bool saves(CornuBoard *board)
{
    pthread_mutex_lock(&board->lock);
    const bool can = board->progress.saves;
    pthread_mutex_unlock(&board->lock);
    return can;
}

/* {"action": "learning_rate", "value": 0.01} */
void cornu__request_control(CornuRequest *request, CornuBoard *board)
{
    json_t       *body = cornu__json_parse(request->body, request->size, 2);
    const Action *action = find_action(json_string_value(json_object_get(body, "action")));
    const double  value = json_number_value(json_object_get(body, "value"));
    json_decref(body);
    if (!body)
        judge(request, 400, "the body is not JSON");
    else if (!action)
        judge(request, 400, "expected an \"action\": pause, resume, stop, go_on, save or "
              "learning_rate");
    else if (action->kind == CORNU__COMMAND_LEARNING_RATE && !(value >= 1e-12 && value <= 1e6))
        judge(request, 400, "expected a \"value\" from 1e-12 to 1e6");
    else if (action->kind == CORNU__COMMAND_SAVE && !saves(board))
        judge(request, 409, "the training was started without a file to save to");
    else if (!cornu__board_command(board, (CornuCommand){ action->kind, value }))
        judge(request, 503, "too many commands wait for the training");
    else
        judge(request, 202, action->done);
}
