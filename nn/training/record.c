#include "record.h"

#include "../../device/files/file_internal.h"
#include "../formats/json_internal.h"

#include <math.h>

static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *describe_epoch(const CornuRunRecord *run, int i)
{
    const CornuHistory *history = run->history;
    const double seconds = cornu_history_seconds(history, i);
    const double rate = (double)cornu_history_samples(history, i) / seconds;
    const CornuInfeed infeed = cornu_history_infeed(history, i);
    return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:o, s:o}}",
                     "epoch", (json_int_t)cornu_history_epoch(history, i) + 1,
                     "seconds", number(seconds),
                     "samples_per_second", number(rate),
                     "gflops", number(rate * run->flops_per_sample * 1e-9),
                     "loss", number(cornu_history_get(history, "loss", i)),
                     "accuracy", number(cornu_history_get(history, "accuracy", i)),
                     "val_loss", number(cornu_history_get(history, "val_loss", i)),
                     "val_accuracy", number(cornu_history_get(history, "val_accuracy", i)),
                     "infeed", "batches", (json_int_t)infeed.batches,
                     "bytes", (json_int_t)infeed.bytes,
                     "wait_seconds", number(infeed.wait_seconds),
                     "copy_seconds", number(infeed.copy_seconds));
}

static json_t *describe(const CornuRunRecord *run)
{
    json_t *epochs = json_array();
    for (int i = 0; run->history && i < cornu_history_epochs(run->history); i++) {
        if (json_array_append_new(epochs, describe_epoch(run, i)) == 0) continue;
        json_decref(epochs);
        epochs = NULL;                /* fails below */
    }
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:i, s:s, s:I, s:{s:s, s:b, s:I, s:I}, s:o,"
                     " s:{s:o, s:o}}",
                     "model", run->model, "device", run->device, "policy", run->policy,
                     "threads", run->threads, "shards", run->shards,
                     "processes", run->processes ? run->processes : 1, "label", "measured",
                     "parameters", (json_int_t)run->parameters,
                     "data", "name", run->data.name, "synthetic", (int)run->data.synthetic,
                     "train", (json_int_t)run->data.train, "test", (json_int_t)run->data.test,
                     "epochs", epochs,
                     "test", "loss", number(run->test_loss),
                     "accuracy", number(run->test_accuracy));
}

CornuStatus cornu_record_write(const CornuRunRecord *run, const char *path)
{
    CORNU__NEED(run);
    CORNU__NEED(path);
    json_t *text = describe(run);
    if (!text)
        return cornu__fail(CORNU_ERR_MEMORY, "%s: no memory for the record, or a name in it "
                           "is not UTF-8", path);
    CornuNewFile file;
    CornuStatus status = cornu__file_create(&file, path);
    if (status == CORNU_OK) {
        /* In the order above; nine digits hold any float exactly. */
        json_dumpf(text, file.stream, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
        fputc('\n', file.stream);
        status = cornu__file_commit(&file);
    }
    json_decref(text);
    return status;
}
