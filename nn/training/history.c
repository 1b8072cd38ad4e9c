#include "history.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../device/text/nearest.h"
#include "training_internal.h"

typedef struct {
    int64_t     epoch, samples;
    double      seconds;
    CornuInfeed infeed;
} Epoch;

/* Value i of key k is values[k][i]. */
struct CornuHistory {
    Epoch   *epochs;
    int      epoch_count, epoch_space;
    char   **keys;
    double **values;
    int      key_count;
};

/* A NaN that no computation gives: there is no value. A backup keeps its bits. */
static const uint64_t no_value_bits = UINT64_C(0x7FF8000061627374);

static double no_value(void)
{
    double value;
    memcpy(&value, &no_value_bits, sizeof value);
    return value;
}

bool cornu__history_is_value(double value)
{
    return memcmp(&value, &no_value_bits, sizeof value) != 0;
}

CornuHistory *cornu__history_create(void)
{
    CornuHistory *history = cornu__allocate(1, sizeof *history);
    return history ? history : cornu__null();
}

void cornu_history_free(CornuHistory *history)
{
    if (!history) return;
    for (int k = 0; k < history->key_count; k++) {
        cornu__release(history->keys[k]);
        cornu__release(history->values[k]);
    }
    cornu__release(history->keys);
    cornu__release(history->values);
    cornu__release(history->epochs);
    cornu__release(history);
}

/* Keys are sorted; a new one is NaN in earlier epochs. */
static CornuStatus add_key(CornuHistory *history, const char *name, int *key)
{
    int k = 0;
    while (k < history->key_count && strcmp(history->keys[k], name) < 0) k++;
    *key = k;
    if (k < history->key_count && !strcmp(history->keys[k], name)) return CORNU_OK;

    const int n = history->key_count;
    int       key_space = n, value_space = n;
    CORNU__TRY(cornu__reserve(&history->keys, &key_space, n, 1, sizeof *history->keys));
    CORNU__TRY(cornu__reserve(&history->values, &value_space, n, 1, sizeof *history->values));
    char   *copy = cornu__copy_text(name);
    double *values = cornu__allocate((size_t)history->epoch_space, sizeof *values);
    if (!copy || !values) {
        cornu__release(copy);
        cornu__release(values);
        return CORNU_ERR_MEMORY;
    }
    for (int i = 0; i < history->epoch_space; i++) values[i] = no_value();
    const size_t after = (size_t)(n - k);
    memmove(history->keys + k + 1, history->keys + k, after * sizeof *history->keys);
    memmove(history->values + k + 1, history->values + k, after * sizeof *history->values);
    history->keys[k] = copy;
    history->values[k] = values;
    history->key_count++;
    return CORNU_OK;
}

CornuStatus cornu__history_reserve(CornuHistory *history)
{
    const int old = history->epoch_space;
    CORNU__TRY(cornu__reserve(&history->epochs, &history->epoch_space, history->epoch_count, 1,
                              sizeof *history->epochs));
    for (int k = 0; k < history->key_count && history->epoch_space > old; k++) {
        int space = old;
        CORNU__TRY(cornu__reserve(&history->values[k], &space, old, history->epoch_space - old,
                                  sizeof *history->values[k]));
        for (int i = old; i < history->epoch_space; i++) history->values[k][i] = no_value();
    }
    return CORNU_OK;
}

CornuStatus cornu__history_add(CornuHistory *history, int64_t epoch, const CornuLogs *logs,
                               double seconds, int64_t samples, const CornuInfeed *infeed)
{
    CORNU__TRY(cornu__history_reserve(history));
    for (int i = 0; i < logs->count; i++) {
        int key;
        CORNU__TRY(add_key(history, logs->logs[i].name, &key));
        history->values[key][history->epoch_count] = logs->logs[i].value;
    }
    history->epochs[history->epoch_count++] =
        (Epoch){ .epoch = epoch, .samples = samples, .seconds = seconds, .infeed = *infeed };
    return CORNU_OK;
}

int cornu_history_epochs(const CornuHistory *history)
{
    CORNU__NEED_OR(history, 0);
    return history->epoch_count;
}

int64_t cornu_history_epoch(const CornuHistory *history, int i)
{
    return history->epochs[i].epoch;
}

int cornu_history_key_count(const CornuHistory *history)
{
    CORNU__NEED_OR(history, 0);
    return history->key_count;
}

const char *cornu_history_key(const CornuHistory *history, int key)
{
    CORNU__NEED_OR(history, NULL);
    CORNU__NEED_INDEX(key, history->key_count, NULL);
    return history->keys[key];
}

/* NaN, with an error that says why. */
static double absent(const CornuHistory *history, const char *name, int i)
{
    char        known[400] = "";
    size_t      used = 0;
    const char *near = cornu_nearest(name, (const char *const *)history->keys, history->key_count);
    for (int k = 0; k < history->key_count && used < sizeof known; k++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", k ? ", " : "",
                                 history->keys[k]);
    if (i < 0 || i >= history->epoch_count)
        cornu__fail(CORNU_ERR_ARGUMENT, "history: no epoch %d, expected 0 to %d", i,
                    history->epoch_count - 1);
    else
        cornu__fail(CORNU_ERR_ARGUMENT, "history: no \"%.60s\", expected one of %s%s%s%s",
                    name, known, near ? "; is \"" : "", near ? near : "", near ? "\" meant?" : "");
    cornu__log(CORNU_LOG_WARNING, "%s", cornu_error_message());
    return NAN;
}

double cornu_history_get(const CornuHistory *history, const char *name, int i)
{
    CORNU__NEED_OR(history, NAN);
    CORNU__NEED_OR(name, NAN);
    const bool there = i >= 0 && i < history->epoch_count;
    for (int k = 0; k < history->key_count && there; k++)
        if (!strcmp(history->keys[k], name)) return history->values[k][i];
    return absent(history, name, i);
}

bool cornu_history_has(const CornuHistory *history, const char *name, int i)
{
    CORNU__NEED_OR(history, false);
    CORNU__NEED_OR(name, false);
    for (int k = 0; k < history->key_count && i >= 0 && i < history->epoch_count; k++)
        if (!strcmp(history->keys[k], name)) return cornu__history_is_value(history->values[k][i]);
    return false;
}

double cornu_history_seconds(const CornuHistory *history, int i)
{
    CORNU__NEED_OR(history, NAN);
    CORNU__NEED_INDEX(i, history->epoch_count, NAN);
    return history->epochs[i].seconds;
}

int64_t cornu_history_samples(const CornuHistory *history, int i)
{
    CORNU__NEED_OR(history, 0);
    CORNU__NEED_INDEX(i, history->epoch_count, 0);
    return history->epochs[i].samples;
}

CornuInfeed cornu_history_infeed(const CornuHistory *history, int i)
{
    const CornuInfeed none = { 0 };
    CORNU__NEED_OR(history, none);
    CORNU__NEED_INDEX(i, history->epoch_count, none);
    return history->epochs[i].infeed;
}
