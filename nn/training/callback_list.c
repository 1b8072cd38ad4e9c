/* Calls the hooks of callbacks, with sorted logs. Source: keras/src/callbacks/callback_list.py. */
#include <stdlib.h>
#include <string.h>

#include "progbar_logger.h"
#include "training_internal.h"

bool cornu_always_wants_logs(CornuCallback *self, int64_t batch)
{
    (void)self, (void)batch;
    return true;
}

/* ---- Hooks ---- */

static bool is_duplicate(CornuCallback *const given[CORNU_MAX_CALLBACKS], int i)
{
    for (int k = 0; k < i; k++)
        if (given[k] == given[i]) return true;
    return false;
}

CornuStatus cornu__callback_list_take(CornuCallbackList *callbacks, CornuModel *model,
                                      CornuCallback *const given[CORNU_MAX_CALLBACKS])
{
    CornuStatus status = CORNU_OK;
    *callbacks = (CornuCallbackList){ .model = model };
    for (int last = 0; last < 2; last++)
        for (int i = 0; i < CORNU_MAX_CALLBACKS; i++) {
            if (!given[i] || given[i]->runs_last != last) continue;
            if (!is_duplicate(given, i)) callbacks->items[callbacks->count++] = given[i];
            else status = cornu__fail(CORNU_ERR_ARGUMENT, ".callbacks[%d] is given twice, "
                                      "expected each callback once", i);
        }
    return status;
}

/* Keras' number for the setting; -2 for an invalid one. */
static int verbose_number(const char *written, CornuVerbose verbose)
{
    switch ((int)verbose) {
    case 0:            return cornu__is_written(written, "verbose", -1) ? 0 : -1;
    case CORNU_AUTO:   return -1;
    case CORNU_SILENT: return 0;
    case CORNU_BAR:    return 1;
    case CORNU_LINES:  return 2;
    default:           return -2;
    }
}

CornuStatus cornu__callback_list_open(CornuCallbackList *callbacks, const char *written,
                                      CornuVerbose verbose, CornuParams params)
{
    params.verbose = verbose_number(written, verbose);
    if (params.verbose < -1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .verbose is %d, expected CORNU_AUTO, "
                           "CORNU_SILENT, CORNU_BAR or CORNU_LINES", callbacks->model->base.name,
                           (int)verbose);
    if (params.verbose != 0) {
        CornuCallback *bar = cornu_progbar();
        if (!bar) return cornu_error_take();
        callbacks->items[callbacks->count++] = bar;
    }
    for (int i = 0; i < callbacks->count; i++) callbacks->items[i]->params = params;
    return CORNU_OK;
}

void cornu__callback_list_close(CornuCallbackList *callbacks)
{
    for (int i = 0; i < callbacks->count; i++)
        if (callbacks->items[i]->free) callbacks->items[i]->free(callbacks->items[i]);
    callbacks->count = 0;
}

/* A hook's status, or else the error that a constructor in it left pending. */
static CornuStatus with_pending(CornuStatus status)
{
    const CornuStatus pending = cornu_error_take();
    return status ? status : pending;
}

CornuStatus cornu__call_hook(const CornuCallbackList *callbacks, size_t offset,
                             const CornuLogs *logs)
{
    for (int i = 0; i < callbacks->count; i++) {
        CornuCallback *item = callbacks->items[i];
        CornuHook     *hook;
        memcpy(&hook, (const char *)item + offset, sizeof hook);
        if (hook) CORNU__TRY(with_pending(hook(item, callbacks->model, logs)));
    }
    return CORNU_OK;
}

CornuStatus cornu__call_index_hook(const CornuCallbackList *callbacks, size_t offset, int64_t index,
                                   const CornuLogs *logs)
{
    for (int i = 0; i < callbacks->count; i++) {
        CornuCallback  *item = callbacks->items[i];
        CornuIndexHook *hook;
        memcpy(&hook, (const char *)item + offset, sizeof hook);
        if (hook) CORNU__TRY(with_pending(hook(item, callbacks->model, index, logs)));
    }
    return CORNU_OK;
}

bool cornu__wants_logs(const CornuCallbackList *callbacks, size_t offset, int64_t batch)
{
    bool wants = false;
    for (int i = 0; i < callbacks->count; i++) {
        CornuCallback  *item = callbacks->items[i];
        CornuIndexHook *hook;
        memcpy(&hook, (const char *)item + offset, sizeof hook);
        if (hook && item->wants_batch_logs) wants |= item->wants_batch_logs(item, batch);
    }
    return wants;
}

bool cornu__interrupted(const CornuCallbackList *callbacks)
{
    bool is = false;
    for (int i = 0; i < callbacks->count; i++) {
        CornuCallback *item = callbacks->items[i];
        if (item->interrupted) is |= item->interrupted(item);
    }
    return is;
}

bool cornu__takes_nan(const CornuCallbackList *callbacks)
{
    bool takes = false;
    for (int i = 0; i < callbacks->count; i++) takes |= callbacks->items[i]->takes_nan;
    return takes;
}

/* As in a Python dict, a new key comes last. */
static void put_log(CornuLog *items, int *count, CornuLog log)
{
    int i = 0;
    while (i < *count && strcmp(items[i].name, log.name) != 0) i++;
    if (i == *count) ++*count;
    items[i] = log;
}

CornuStatus cornu__epoch_end(const CornuCallbackList *callbacks, bool last, int64_t epoch,
                             CornuLogSet *set, CornuLogs *logs)
{
    for (int i = 0; i < callbacks->count; i++) {
        CornuCallback *item = callbacks->items[i];
        if (item->runs_last != last) continue;
        if (item->epoch_end)
            CORNU__TRY(with_pending(item->epoch_end(item, callbacks->model, epoch, logs)));
        for (int k = 0; k < CORNU_MAX_ADDED_LOGS && item->added[k].name; k++)
            put_log(set->items, &logs->count, item->added[k]);
    }
    return CORNU_OK;
}

/* ---- Logs ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static char *join_name(const char *prefix, const char *name)
{
    const size_t before = strlen(prefix), after = strlen(name) + 1;
    char        *text = cornu__allocate(before + after, 1);
    if (!text) return NULL;
    memcpy(text, prefix, before);
    memcpy(text + before, name, after);
    return text;
}

CornuStatus cornu__logs_open(CornuLogSet *set, const CornuModel *model, bool training,
                             bool evaluation)
{
    const int all = cornu_model_metric_count(model);
    *set = (CornuLogSet){ .metrics = all };
    const int added = (CORNU_MAX_CALLBACKS + 1) * CORNU_MAX_ADDED_LOGS;
    set->items = cornu__allocate((size_t)(2 * all + added), sizeof *set->items);
    set->names = cornu__allocate((size_t)(2 * all + 1), sizeof *set->names);
    set->value_of = cornu__allocate((size_t)(2 * all + 1), sizeof *set->value_of);
    set->values = cornu__allocate((size_t)(2 * all + 1), sizeof *set->values);
    char **unsorted = cornu__allocate((size_t)(2 * all + 1), sizeof *unsorted);
    CornuStatus status = set->items && set->names && set->value_of && set->values && unsorted
                       ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int i = 0; !status && i < 2 * all; i++) {
        const bool second = i >= all;   /* of validation, beside training */
        if (second && !(training && evaluation)) break;
        if (!cornu_model_metric_shown(model, i % all, training && !second)) continue;
        const int at = set->logs.count;
        unsorted[i] = set->names[at] = join_name(second ? "val_" : "",
                                                 cornu_model_metric_name(model, i % all));
        if (!unsorted[i]) status = CORNU_ERR_MEMORY;
        else set->logs.count++;
    }
    if (!status) {
        qsort(set->names, (size_t)set->logs.count, sizeof *set->names, by_name);
        for (int i = 0; i < set->logs.count; i++) {
            set->items[i].name = set->names[i];
            while (unsorted[set->value_of[i]] != set->names[i]) set->value_of[i]++;
        }
        set->logs.logs = set->items;
    }
    cornu__release(unsorted);
    return status;
}

void cornu__logs_close(CornuLogSet *set)
{
    for (int i = 0; i < set->logs.count; i++) cornu__release(set->names[i]);
    cornu__release(set->names);
    cornu__release(set->items);
    cornu__release(set->value_of);
    cornu__release(set->values);
    *set = (CornuLogSet){ 0 };
}

void cornu__logs_refresh(CornuLogSet *set)
{
    for (int i = 0; i < set->logs.count; i++) set->items[i].value = set->values[set->value_of[i]];
}
