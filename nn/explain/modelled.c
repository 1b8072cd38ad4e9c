/* The step on TPUs that are not here. */
#include "explain_internal.h"

static CornuStatus model_on(const CornuExplanation *e, const CornuExecutable *executable,
                            const CornuTpuProfile *profile, const CornuTpuModel **to)
{
    *to = cornu_tpu_model(.executable = executable, .profile = profile,
                          .passes = cornu_tpu_passes(cornu_device_precision(e->device)));
    return *to ? CORNU_OK : cornu_error_take();
}

/* The step on so many shards: on the profile in question, and on those that have as many by
 * default. */
static CornuStatus model_shards(CornuExplanation *e, int row)
{
    const int           shards = 1 << row;
    const bool          has = shards <= (int)e->tpu->profile->replicas.value;
    CornuExplainSubject subject = { NULL, NULL };
    char                name[64];
    if (shards > e->batch || (shards > 1 && e->alone)) return CORNU_OK;
    snprintf(name, sizeof name, "tpu:%s", e->tpu->profile->name);
    CornuDevice *device = cornu_device_open(has ? name : "tpu", .threads = 1, .shards = shards);
    CornuStatus  status = device ? cornu__explain_make(e, device, &e->probe, false, &subject)
                                 : cornu_error_take();
    const CornuExecutable *executable =
        status || !subject.step ? NULL : cornu_graph_executable(subject.step->graph);
    if (!status && has)
        status = model_on(e, executable, e->tpu->profile, &e->by_shards[row]);
    for (int i = 0; !status && i < CORNU_EXPLAIN_PROFILES && cornu_tpu_profile_at(i); i++)
        if ((int)cornu_tpu_profile_at(i)->shards.value == shards)
            status = model_on(e, executable, cornu_tpu_profile_at(i), &e->by_profile[i]);
    cornu_model_free(subject.model);
    cornu_device_close(device);
    return status;
}

/* With twice the batch, where the model takes one and both this machine, which allocates what is
 * compiled, and the device have the memory. */
static void model_doubled(CornuExplanation *e)
{
    const int64_t       large = (int64_t)1 << 31;   /* bytes */
    CornuModelTypes   probe;
    CornuExplainSubject subject = { NULL, NULL };
    if (e->function || e->fixed_batch || e->statistics.bytes_planned > large) return;
    CornuDevice *device = cornu_device_open_like(e->device, 1);
    CornuStatus  status = device ? cornu__explain_probe(e, 2 * e->batch, &probe) : CORNU_ERR_DEVICE;
    if (!status) status = cornu__explain_make(e, device, &probe, false, &subject);
    if (!status)
        status = model_on(e, cornu_graph_executable(subject.step->graph), NULL, &e->doubled);
    if (status && cornu_error_pending()) cornu_error_take();
    cornu_model_free(subject.model);
    cornu_device_close(device);
}

CornuStatus cornu__explain_model_all(CornuExplanation *e)
{
    if (!cornu_device_profile(e->device)) return CORNU_OK;
    CORNU__TRY(model_on(e, e->executable, NULL, &e->tpu));
    if (cornu__explain_mesh(e)->axes) return CORNU_OK;   /* others have none */
    for (int row = 0; e->config.others && row < CORNU_EXPLAIN_SHARDS; row++)
        CORNU__TRY(model_shards(e, row));
    model_doubled(e);
    return CORNU_OK;
}
