#include "board_internal.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../device/memory_internal.h"
#include "../../../device/text/print.h"
#include "../../formats/json_internal.h"
#include "../page_internal.h"

void cornu__board_init(CornuBoard *board)
{
    memset(board, 0, sizeof *board);
    pthread_mutex_init(&board->lock, NULL);
}

void cornu__board_clear(CornuBoard *board)
{
    cornu__event_drop(board->data);
    pthread_mutex_destroy(&board->lock);
}

/* ---- Events ---- */

CornuEvent *cornu__event_hold(CornuEvent *event)
{
    if (event) event->holders++;
    return event;
}

void cornu__event_drop(CornuEvent *event)
{
    if (!event || --event->holders > 0) return;
    cornu__release(event->bytes);
    cornu__release(event);
}

/* Of a line of JSON. */
static CornuEvent *make_event(const char *name, const char *json)
{
    static const char form[] = "event: %s\ndata: %s\n\n";
    const size_t      size = sizeof form + strlen(name) + strlen(json);
    CornuEvent       *event = cornu__allocate(1, sizeof *event);
    char             *bytes = event ? cornu__allocate(size, 1) : NULL;
    if (!bytes) {
        cornu__release(event);
        return NULL;
    }
    const int length = snprintf(bytes, size, form, name, json);
    *event = (CornuEvent){ .holders = 1, .size = (size_t)length, .bytes = bytes };
    return event;
}

/* Takes the value; NULL, as after a json_pack that failed, gives NULL. */
static CornuEvent *json_event(const char *name, json_t *value)
{
    char       *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    CornuEvent *event = text ? make_event(name, text) : NULL;
    json_decref(value);
    free(text);
    return event;
}

/* ---- The training's side ---- */

/* Each other point goes: the curve keeps its whole width. */
static void add_point(CornuBoard *board, int64_t step, double loss)
{
    if (board->point_count == CORNU__BOARD_POINTS) {
        for (int i = 0; i < CORNU__BOARD_POINTS / 2; i++) board->points[i] = board->points[2 * i];
        board->point_count = CORNU__BOARD_POINTS / 2;
    }
    board->points[board->point_count++] = (CornuPoint){ step, loss };
}

static void copy_logs(CornuProgress *progress, const CornuLogs *logs)
{
    progress->log_count = logs->count < CORNU__BOARD_LOGS ? logs->count : CORNU__BOARD_LOGS;
    for (int i = 0; i < progress->log_count; i++) {
        snprintf(progress->logs[i].name, CORNU__BOARD_NAME, "%s", logs->logs[i].name);
        progress->logs[i].value = logs->logs[i].value;
    }
}

void cornu__board_show(CornuBoard *board, const CornuProgress *progress, const CornuLogs *logs,
                       int64_t step)
{
    double loss;
    pthread_mutex_lock(&board->lock);
    const CornuProgress before = board->progress;
    board->progress = *progress;
    board->progress.log_count = before.log_count;
    memcpy(board->progress.logs, before.logs, sizeof before.logs);
    if (logs) copy_logs(&board->progress, logs);
    if (logs && cornu_logs_find(logs, "loss", &loss) && isfinite(loss))
        add_point(board, step, loss);
    board->version++;
    pthread_mutex_unlock(&board->lock);
}

void cornu__board_say(CornuBoard *board, const char *text)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&board->lock);
    CornuBoardLine *line = &board->lines[++board->last_line % CORNU__BOARD_LINES];
    line->number = board->last_line;
    line->at = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    snprintf(line->text, sizeof line->text, "%s", text);
    board->version++;
    pthread_mutex_unlock(&board->lock);
}

CornuStatus cornu__board_report(CornuBoard *board, char *text)
{
    CornuEvent *event = make_event("report", text), *before;
    free(text);
    if (!event) return CORNU_ERR_MEMORY;
    pthread_mutex_lock(&board->lock);
    before = board->data;
    board->data = event;
    pthread_mutex_unlock(&board->lock);
    cornu__event_drop(before);
    return CORNU_OK;
}

CornuCommand cornu__board_take(CornuBoard *board)
{
    CornuCommand command = { .kind = CORNU__COMMAND_NONE };
    pthread_mutex_lock(&board->lock);
    if (board->command_count > 0) {
        command = board->commands[0];
        memmove(board->commands, board->commands + 1,
                (size_t)--board->command_count * sizeof command);
    }
    pthread_mutex_unlock(&board->lock);
    return command;
}

/* ---- The server's side ---- */

bool cornu__board_command(CornuBoard *board, CornuCommand command)
{
    pthread_mutex_lock(&board->lock);
    const bool fits = board->command_count < CORNU__BOARD_COMMANDS;
    if (fits) board->commands[board->command_count++] = command;
    pthread_mutex_unlock(&board->lock);
    return fits;
}

static json_t *describe_logs(const CornuProgress *progress)
{
    json_t *logs = json_object();
    for (int i = 0; i < progress->log_count; i++)
        logs = cornu__json_with(logs, progress->logs[i].name,
                                cornu__page_number(progress->logs[i].value));
    return logs;
}

CornuEvent *cornu__board_progress_event(CornuBoard *board)
{
    static const char *const states[] = { "running", "paused", "ended", "broken" };
    pthread_mutex_lock(&board->lock);
    const CornuProgress now = board->progress;
    const CornuPoint    point =
        board->point_count ? board->points[board->point_count - 1] : (CornuPoint){ 0, NAN };
    pthread_mutex_unlock(&board->lock);
    return json_event("progress", json_pack(
        "{s:s, s:b, s:b, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:[I, o]}",
        "state", states[now.state], "stopping", (int)now.stopping, "saves", (int)now.saves,
        "epoch", (json_int_t)now.epoch, "epochs", (json_int_t)now.epochs,
        "step", (json_int_t)now.step, "steps", (json_int_t)now.steps,
        "samples_per_second", cornu__page_number(now.samples_per_second),
        "learning_rate", cornu__page_number(now.learning_rate),
        "seconds_left", cornu__page_number(now.seconds_left), "logs", describe_logs(&now),
        "point", (json_int_t)point.step, cornu__page_number(point.loss)));
}

CornuEvent *cornu__board_points_event(CornuBoard *board)
{
    CornuPoint points[CORNU__BOARD_POINTS];
    json_t    *list = json_array();
    pthread_mutex_lock(&board->lock);
    const int count = board->point_count;
    memcpy(points, board->points, (size_t)count * sizeof *points);
    pthread_mutex_unlock(&board->lock);
    for (int i = 0; i < count; i++)
        list = cornu__json_append(list, json_pack("[I, f]", (json_int_t)points[i].step,
                                                  points[i].loss));
    return json_event("points", list);
}

CornuEvent *cornu__board_line_event(CornuBoard *board, int64_t *last)
{
    pthread_mutex_lock(&board->lock);
    const int64_t oldest = board->last_line - CORNU__BOARD_LINES + 1;
    const int64_t number = *last + 1 > oldest ? *last + 1 : oldest;
    const bool    there = number <= board->last_line;
    const CornuBoardLine line = board->lines[number % CORNU__BOARD_LINES];
    pthread_mutex_unlock(&board->lock);
    if (!there) return NULL;
    *last = number;
    return json_event("line", json_pack("{s:I, s:f, s:s}", "number", (json_int_t)number, "at",
                                        line.at, "text",
                                        cornu__is_utf8(line.text) ? line.text : "?"));
}

CornuEvent *cornu__board_take_report(CornuBoard *board)
{
    pthread_mutex_lock(&board->lock);
    CornuEvent *event = board->data;
    board->data = NULL;
    pthread_mutex_unlock(&board->lock);
    return event;
}

CornuBoardNews cornu__board_news(CornuBoard *board)
{
    pthread_mutex_lock(&board->lock);
    const CornuBoardNews news = { board->version, board->last_line, board->ending };
    pthread_mutex_unlock(&board->lock);
    return news;
}
