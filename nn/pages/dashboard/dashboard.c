#include "dashboard.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/memory_internal.h"
#include "../../../device/processes/processes_internal.h"
#include "../../../device/text/print.h"
#include "../../formats/output_internal.h"
#include "../../saving/files.h"
#include "../../training/training_internal.h"
#include "../report_internal.h"
#include "http_library_internal.h"
#include "server_internal.h"

/* What is done at which steps: the training looks for commands, and shows its progress, so often
 * that a person sees no delay; it reads the logs, which waits for the device, less often. */
static const double meet_every_s = 0.1, show_every_s = 0.25, logs_every_s = 0.5;
static const int64_t most_steps_apart = 10000;

/* The report is made anew at most so often that it takes this part of the time. */
static const double report_share = 0.005;

typedef struct {
    CornuReport   report;
    CornuListener listener;        /* of rank 0 */
    bool          serves;          /* this rank does */
    CornuServer  *server;          /* while fit runs */
    CornuBoard    board;
    char         *save;
    FILE         *file;            /* NULL: no messages */
    CornuProgress now;
    bool          paused, stopping;
    int64_t       steps;           /* calls of train_batch_end in this fit */
    int64_t       meets_at, met_at;   /* calls: the next and the last when ranks meet */
    double        met_s, shown_s, logs_s, report_s, report_took_s;
    int64_t       shown_samples;   /* of the epoch, when it was shown last */
} Dashboard;

/* What rank 0 tells the others, all of which take it at the same step. */
typedef struct {
    int64_t kind;
    double  value;
    int64_t next;                  /* calls until they meet again */
} Order;

/* ---- Messages ---- */

static void say(Dashboard *self, const char *format, ...) CORNU__PRINTF(2, 3);

/* In the page's log, and on the file, where a progress bar may stand at the beginning of a line. */
static void say(Dashboard *self, const char *format, ...)
{
    char    text[CORNU_MESSAGE_SIZE];
    va_list arguments;
    if (!self->serves) return;
    va_start(arguments, format);
    cornu__vformat_shown(text, sizeof text, format, arguments);
    va_end(arguments);
    cornu__board_say(&self->board, text);
    if (!self->file) return;
    fprintf(self->file, "\nDashboard: %s\n", text);
    fflush(self->file);
}

/* "after step 3 of epoch 1", for messages. */
static const char *place_of(const CornuModel *model, CornuText *text)
{
    const CornuTraining *at = model->training;
    if (at->step > 0)
        snprintf(text->text, sizeof text->text, "after step %lld of epoch %lld",
                 (long long)at->step, (long long)at->epoch + 1);
    else
        snprintf(text->text, sizeof text->text, "after epoch %lld", (long long)at->epoch);
    return text->text;
}

/* ---- Progress ---- */

static CornuStatus note_learning_rate(Dashboard *self, const CornuModel *model)
{
    double rate;
    CORNU__TRY(cornu_optimizer_learning_rate(cornu_model_optimizer(model), &rate));
    self->now.learning_rate = rate;
    return CORNU_OK;
}

/* The speed, mostly of the last second or so. */
static void note_speed(Dashboard *self, const CornuTraining *at, double now_s)
{
    const int64_t samples = at->samples - self->shown_samples;
    const double  seconds = now_s - self->shown_s;
    const int64_t left = self->now.steps - at->step;
    if (samples <= 0 || self->shown_samples == 0) {   /* the epoch has just begun */
        self->now.samples_per_second = self->now.seconds_left = NAN;
        return;
    }
    const double speed = (double)samples / seconds, before = self->now.samples_per_second;
    self->now.samples_per_second = isnan(before) ? speed : before + 0.25 * (speed - before);
    self->now.seconds_left = self->now.steps > 0
        ? (double)left * (double)at->samples / (double)at->step / self->now.samples_per_second
        : NAN;
}

static void show(Dashboard *self, const CornuModel *model, const CornuLogs *logs)
{
    const CornuTraining *at = model->training;
    const double         now_s = cornu__seconds();
    if (!self->serves) return;
    self->now.state = self->paused ? CORNU__BOARD_PAUSED : CORNU__BOARD_RUNNING;
    self->now.stopping = self->stopping;
    self->now.epoch = at->epoch + 1;
    self->now.step = at->step;
    self->now.steps = cornu__data_loader_steps(at->loader);
    note_speed(self, at, now_s);
    cornu__board_show(&self->board, &self->now, logs, self->steps);
    self->shown_s = now_s;
    self->shown_samples = at->samples;
}

/* ---- Commands ---- */

static void pause_training(Dashboard *self, const char *place)
{
    if (!self->paused) say(self, "paused %s", place);
    self->paused = true;
}

static void resume(Dashboard *self, const char *why)
{
    if (self->paused) say(self, "%s", why);
    self->paused = false;
}

static void plan_to_stop(Dashboard *self, const CornuModel *model, bool stops)
{
    const CornuTraining *at = model->training;
    if (stops && !self->stopping)
        say(self, "stopping after epoch %lld of %lld",
            (long long)at->epoch + (at->step > 0), (long long)self->report.base.params.epochs);
    if (!stops && self->stopping) say(self, "not stopping after this epoch");
    self->stopping = stops;
}

/* Failures of these are said, and the training goes on; one of the group is the training's. */
static CornuStatus settle(const CornuModel *model, CornuStatus status)
{
    const CornuStatus pending = cornu_error_take();
    return cornu__output_settle(cornu_model_device(model), "a command of the dashboard",
                                status ? status : pending);
}

static CornuStatus save(Dashboard *self, CornuModel *model, const char *place)
{
    const CornuStatus status = settle(model, cornu_model_save(model, self->save));
    if (status) say(self, "not saved: %s", cornu_error_message());
    else say(self, "saved %s %s", self->save, place);
    return status == CORNU_ERR_PROCESS ? status : CORNU_OK;
}

static CornuStatus set_learning_rate(Dashboard *self, CornuModel *model, double rate,
                                     const char *place)
{
    CornuOptimizer   *optimizer = cornu_model_optimizer(model);
    const double      before = self->now.learning_rate;
    const CornuStatus status = settle(model, cornu_optimizer_set_learning_rate(optimizer, rate));
    if (status) say(self, "the learning rate stays: %s", cornu_error_message());
    else say(self, "learning rate from %g to %g %s", before, rate, place);
    if (status) return status == CORNU_ERR_PROCESS ? status : CORNU_OK;
    return note_learning_rate(self, model);
}

static CornuStatus obey(Dashboard *self, CornuModel *model, const Order *order)
{
    CornuText   text;
    const char *place = place_of(model, &text);
    switch ((CornuCommandKind)order->kind) {
    case CORNU__COMMAND_NONE:          return CORNU_OK;
    case CORNU__COMMAND_PAUSE:         pause_training(self, place); return CORNU_OK;
    case CORNU__COMMAND_RESUME:        resume(self, "resumed"); return CORNU_OK;
    case CORNU__COMMAND_STOP:          plan_to_stop(self, model, true); return CORNU_OK;
    case CORNU__COMMAND_GO_ON:         plan_to_stop(self, model, false); return CORNU_OK;
    case CORNU__COMMAND_SAVE:          return save(self, model, place);
    case CORNU__COMMAND_LEARNING_RATE: return set_learning_rate(self, model, order->value, place);
    }
    return CORNU_OK;
}

/* ---- Meeting ---- */

/* So many steps until the ranks meet again as take meet_every_s, judged by the last ones. */
static int64_t steps_to_next(const Dashboard *self)
{
    const int64_t steps = self->steps - self->met_at;
    const double  seconds = cornu__seconds() - self->met_s;
    double        next = (double)steps * meet_every_s / (seconds > 1e-9 ? seconds : 1e-9);
    if (next > 2.0 * (double)steps) next = 2.0 * (double)steps;
    if (next > (double)most_steps_apart) next = (double)most_steps_apart;
    return next > 1.0 ? (int64_t)next : 1;
}

/* Waits a little; *interrupted: the training is about to end on any rank, as after a signal. */
static CornuStatus wait_paused(const CornuModel *model, bool *interrupted)
{
    const struct timespec time = { .tv_nsec = (long)(1e9 * meet_every_s) };
    nanosleep(&time, NULL);
    *interrupted = cornu__interrupted(model->training->callbacks);
    return cornu_processes_any(cornu_device_processes(cornu_model_device(model)), interrupted);
}

/* All ranks take the next commands and obey them; a paused training stays in here. */
static CornuStatus meet(Dashboard *self, CornuModel *model)
{
    CornuProcesses *processes = cornu_device_processes(cornu_model_device(model));
    const double    begin_s = cornu__seconds();
    Order           order = { .next = steps_to_next(self) };
    bool            any = false;
    do {
        const CornuCommand command = self->serves ? cornu__board_take(&self->board)
                                                  : (CornuCommand){ .kind = CORNU__COMMAND_NONE };
        bool interrupted = false;
        order.kind = command.kind;
        order.value = command.value;
        CORNU__TRY(cornu__processes_broadcast(processes, "the dashboard's command", &order,
                                              sizeof order));
        CORNU__TRY(obey(self, model, &order));
        if (order.kind) show(self, model, NULL);
        any |= order.kind != CORNU__COMMAND_NONE || self->paused;
        if (self->paused && !order.kind) CORNU__TRY(wait_paused(model, &interrupted));
        if (interrupted) resume(self, "resumed, as the training is about to end");
    } while (self->paused || order.kind);
    self->met_s = cornu__seconds();
    self->met_at = self->steps;
    self->meets_at = self->steps + order.next;
    if (any) model->training->idle_seconds += self->met_s - begin_s;
    if (any) self->shown_s = self->met_s;
    return CORNU_OK;
}

/* ---- The report ---- */

/* With `always`, also if it was made a moment ago; `sums` as of cornu__report_data. */
static CornuStatus show_report(Dashboard *self, CornuModel *model, bool always, bool sums)
{
    const double begin_s = cornu__seconds();
    json_t      *data = NULL;
    const bool   due = begin_s - self->report_s > self->report_took_s / report_share;
    if (!always && !due) return CORNU_OK;
    CORNU__TRY(cornu__report_data(&self->report, model, sums, &data));
    if (!data || !self->serves) {
        json_decref(data);
        return CORNU_OK;
    }
    char *text = json_dumps(data, JSON_COMPACT | JSON_REAL_PRECISION(9));
    json_decref(data);
    CORNU__TRY(text ? cornu__board_report(&self->board, text) : CORNU_ERR_MEMORY);
    self->report_s = cornu__seconds();
    self->report_took_s = self->report_s - begin_s;
    return CORNU_OK;
}

/* ---- Hooks ---- */

static CornuStatus start(Dashboard *self, CornuModel *model)
{
    if (!self->serves) return CORNU_OK;
    self->now.saves = self->save != NULL;
    self->now.epochs = self->report.base.params.epochs;
    show(self, model, NULL);
    CORNU__TRY(cornu__server_start(&self->server, &self->listener, &self->board));
    if (!self->file) return CORNU_OK;
    fprintf(self->file, "Dashboard: %s\n", self->listener.url);
    fflush(self->file);
    return CORNU_OK;
}

static CornuStatus dashboard_train_begin(CornuCallback *base, CornuModel *model,
                                         const CornuLogs *logs)
{
    Dashboard *self = (Dashboard *)base;
    (void)logs;
    self->meets_at = 1;
    self->met_s = cornu__seconds();
    CORNU__TRY(cornu__report_train_begin(&self->report, model));
    CORNU__TRY(note_learning_rate(self, model));
    CORNU__TRY(cornu__output_settle(cornu_model_device(model), "the dashboard",
                                    start(self, model)));
    return show_report(self, model, true, false);
}

/* Also for the first logs of an epoch. */
static bool wants_batch_logs(CornuCallback *base, int64_t batch)
{
    const Dashboard *self = (Dashboard *)base;
    (void)batch;
    return self->serves && cornu__seconds() - self->logs_s > logs_every_s;
}

static CornuStatus dashboard_batch_end(CornuCallback *base, CornuModel *model, int64_t batch,
                                       const CornuLogs *logs)
{
    Dashboard   *self = (Dashboard *)base;
    const double now_s = self->serves ? cornu__seconds() : 0.0;
    (void)batch;
    self->steps++;
    if (logs) self->logs_s = now_s;
    if (self->serves && (logs || now_s - self->shown_s > show_every_s)) show(self, model, logs);
    return self->steps < self->meets_at ? CORNU_OK : meet(self, model);
}

static CornuStatus dashboard_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                       const CornuLogs *logs)
{
    Dashboard *self = (Dashboard *)base;
    CORNU__TRY(cornu__report_note_epoch(&self->report, model));
    CORNU__TRY(note_learning_rate(self, model));
    self->shown_samples = 0;
    show(self, model, logs);
    CORNU__TRY(show_report(self, model, false, false));
    CORNU__TRY(meet(self, model));
    if (!self->stopping || epoch + 1 >= base->params.epochs) return CORNU_OK;
    say(self, "stopped after epoch %lld of %lld", (long long)epoch + 1,
        (long long)base->params.epochs);
    model->stop_training = true;
    return CORNU_OK;
}

static CornuStatus dashboard_train_end(CornuCallback *base, CornuModel *model,
                                       const CornuLogs *logs)
{
    Dashboard *self = (Dashboard *)base;
    (void)logs;
    CORNU__TRY(cornu__report_train_end(&self->report, model));
    return show_report(self, model, true, true);
}

/* ---- Making one ---- */

static void free_dashboard(CornuCallback *base)
{
    Dashboard *self = (Dashboard *)base;
    if (self->server) {
        self->now.state = self->report.ended ? CORNU__BOARD_ENDED : CORNU__BOARD_BROKEN;
        self->now.stopping = false;
        cornu__board_show(&self->board, &self->now, NULL, self->steps);
    }
    cornu__server_end(self->server);
    cornu__listen_close(&self->listener);
    cornu__board_clear(&self->board);
    cornu__report_clear(&self->report);
    cornu__release(self->save);
    cornu__release(self);
}

static CornuStatus open_dashboard(Dashboard *self, const CornuDashboardConfig *config)
{
    CORNU__TRY(cornu__report_init(&self->report, "dashboard", &(CornuReportConfig){
        .title = config->title, .command = config->command, .data = config->data,
        .x = config->x, .y = config->y, .pictures = config->pictures, .names = config->names,
        .classes = config->classes, .price_per_hour = config->price_per_hour }));
    CORNU__TRY(config->save ? cornu_model_save_check(config->save) : CORNU_OK);
    if (config->save && !(self->save = cornu__copy_text(config->save))) return CORNU_ERR_MEMORY;
    if (!(self->serves = cornu__output_writes())) return CORNU_OK;
    self->file = config->quiet ? NULL : config->file ? config->file : stdout;
    CORNU__TRY(cornu__http_load());
    return cornu__listen(&self->listener, config->address, config->port);
}

CornuCallback *cornu_dashboard_from(const CornuDashboardConfig *config)
{
    if (cornu__refused()) return NULL;
    Dashboard *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    self->listener.socket = -1;
    cornu__board_init(&self->board);
    const CornuStatus status = open_dashboard(self, config);
    self->report.base.train_begin = dashboard_train_begin;
    self->report.base.train_batch_end = dashboard_batch_end;
    self->report.base.wants_batch_logs = wants_batch_logs;
    self->report.base.epoch_end = dashboard_epoch_end;
    self->report.base.train_end = dashboard_train_end;
    self->report.base.free = free_dashboard;
    if (!status) return &self->report.base;
    free_dashboard(&self->report.base);
    return cornu__null();
}

const char *cornu_dashboard_url(const CornuCallback *dashboard)
{
    return dashboard ? ((const Dashboard *)dashboard)->listener.url : "";
}

CornuStatus cornu_dashboard_check(const char *address, int64_t port)
{
    CornuListener listener;
    CORNU__TRY(cornu__http_load());
    CORNU__TRY(cornu__listen(&listener, address, port));
    cornu__listen_close(&listener);
    return CORNU_OK;
}
