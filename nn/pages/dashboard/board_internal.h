/*
 * What a training and the server of its page share: the training writes what is shown and takes
 * commands, the server reads and queues them. Both hold the lock only to copy.
 */
#ifndef CORNU_NN_PAGES_BOARD_INTERNAL_H
#define CORNU_NN_PAGES_BOARD_INTERNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../device/status_internal.h"
#include "../../metrics/logs.h"

enum {
    CORNU__BOARD_LOGS = 16,      /* of a step: the first so many are shown */
    CORNU__BOARD_NAME = 48,
    CORNU__BOARD_POINTS = 512,   /* of the curve by steps; when they are full each other one goes */
    CORNU__BOARD_LINES = 64,     /* of the log: the last ones */
    CORNU__BOARD_LINE = CORNU_MESSAGE_SIZE,
    CORNU__BOARD_COMMANDS = 8,   /* that wait */
};

typedef enum {
    CORNU__BOARD_RUNNING, CORNU__BOARD_PAUSED,
    CORNU__BOARD_ENDED,          /* after train_end */
    CORNU__BOARD_BROKEN          /* before it */
} CornuBoardState;

typedef enum {
    CORNU__COMMAND_NONE, CORNU__COMMAND_PAUSE, CORNU__COMMAND_RESUME,
    CORNU__COMMAND_STOP,         /* after this epoch */
    CORNU__COMMAND_GO_ON,        /* not after all */
    CORNU__COMMAND_SAVE, CORNU__COMMAND_LEARNING_RATE
} CornuCommandKind;

typedef struct {
    CornuCommandKind kind;
    double           value;      /* of the learning rate */
} CornuCommand;

/* The training as it stands. */
typedef struct {
    CornuBoardState state;
    bool            stopping, saves;
    int64_t         epoch, epochs;         /* the present one, from 1 on */
    int64_t         step, steps;           /* done in it; steps -1: unknown */
    double          samples_per_second;    /* NaN: unknown */
    double          learning_rate;         /* NaN: a schedule's */
    double          seconds_left;          /* of the epoch's steps; NaN: unknown */
    int             log_count;
    struct { char name[CORNU__BOARD_NAME]; double value; } logs[CORNU__BOARD_LOGS];
} CornuProgress;

/* The mean loss of an epoch so far, after `step` steps of the training in this process. */
typedef struct { int64_t step; double loss; } CornuPoint;

typedef struct {
    int64_t number;              /* from 1 on */
    double  at;                  /* seconds since 1970 */
    char    text[CORNU__BOARD_LINE];
} CornuBoardLine;

/* The server's events, one after the other in memory: "event: NAME\ndata: JSON\n\n". */
typedef struct {
    int    holders;              /* of the server's thread, once it has it */
    size_t size;
    char  *bytes;
} CornuEvent;

typedef struct {
    pthread_mutex_t lock;
    int64_t         version;     /* of all below but `data`; rises with each change */
    CornuProgress   progress;
    CornuPoint      points[CORNU__BOARD_POINTS];
    int             point_count;
    CornuBoardLine  lines[CORNU__BOARD_LINES];   /* line n at n % CORNU__BOARD_LINES */
    int64_t         last_line;
    CornuEvent     *data;        /* the report's, newer than what the server has; NULL: none */
    CornuCommand    commands[CORNU__BOARD_COMMANDS];
    int             command_count;
    bool            ending;      /* the server ends */
} CornuBoard;

void cornu__board_init(CornuBoard *board);
void cornu__board_clear(CornuBoard *board);

/* ---- The training's side ---- */

/* Shows the progress; of logs, which may be NULL, the loss is a new point. */
void cornu__board_show(CornuBoard *board, const CornuProgress *progress, const CornuLogs *logs,
                       int64_t step);

void cornu__board_say(CornuBoard *board, const char *text);

/* Shows the report; takes `text`, JSON in one line. CORNU_ERR_MEMORY. */
CornuStatus cornu__board_report(CornuBoard *board, char *text);

/* The next command; of none the kind is CORNU__COMMAND_NONE. */
CornuCommand cornu__board_take(CornuBoard *board);

/* ---- The server's side ---- */

/* False if too many wait. */
bool cornu__board_command(CornuBoard *board, CornuCommand command);

/* Events of what the board shows, for the caller to drop; NULL if out of memory. Of lines the
 * oldest after *last that is still there, whose number becomes *last; NULL also if there is
 * none. */
CornuEvent *cornu__board_progress_event(CornuBoard *board);
CornuEvent *cornu__board_points_event(CornuBoard *board);
CornuEvent *cornu__board_line_event(CornuBoard *board, int64_t *last);

/* The newest report, if it is newer than the last that was taken, and what has changed. */
CornuEvent *cornu__board_take_report(CornuBoard *board);
typedef struct { int64_t version, last_line; bool ending; } CornuBoardNews;
CornuBoardNews cornu__board_news(CornuBoard *board);

/* One more holder, and one less: the last one frees it. NULL does nothing. */
CornuEvent *cornu__event_hold(CornuEvent *event);
void        cornu__event_drop(CornuEvent *event);

#endif
