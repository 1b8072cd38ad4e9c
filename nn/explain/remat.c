/* The memory of a training step with each mode of rematerialization: a copy of the model for each
 * is compiled, and not run. */
#include "explain_internal.h"

/* Those that need nothing of the user. */
static const CornuRematMode modes[] = { CORNU_REMAT_OFF, CORNU_REMAT_FULL, CORNU_REMAT_ACTIVATIONS,
                                        CORNU_REMAT_LARGER_THAN };
enum { MODES = sizeof modes / sizeof *modes };

static CornuStatus measure(CornuExplanation *e, CornuRematMode mode)
{
    CornuExplainSubject subject = { NULL, NULL };
    CornuDevice        *device = cornu_device_open_like(e->device, 1);
    if (!device) return cornu_error_take();
    cornu_remat_enter(&(CornuRematConfig){ .mode = mode });
    CornuStatus status = cornu__explain_make(e, device, &e->probe, false, &subject);
    cornu_remat_leave();
    if (!status && !cornu_graph_executable(subject.step->graph)) status = cornu_error_take();
    if (!status) e->remat_bytes[mode] = cornu_device_memory(device).total.peak;
    cornu_model_free(subject.model);
    cornu_device_close(device);
    return status;
}

CornuStatus cornu__explain_remat(CornuExplanation *e)
{
    for (int i = 0; i < MODES && e->config.remat && e->trains; i++)
        CORNU__TRY(measure(e, modes[i]));
    return CORNU_OK;
}

void cornu__explain_print_remat(const CornuExplanation *e, FILE *to)
{
    char text[CORNU_EXPLAIN_TEXT];
    int  used = snprintf(text, sizeof text, "Rematerialization, at most at once:");
    if (!e->remat_bytes[CORNU_REMAT_OFF]) return;
    for (int i = 0; i < MODES; i++) {
        const double none = (double)e->remat_bytes[CORNU_REMAT_OFF];
        const double bytes = (double)e->remat_bytes[modes[i]];
        used += snprintf(text + used, sizeof text - (size_t)used, "%s %s %.2f MB", i ? "," : "",
                         cornu_remat_mode_name(modes[i]), 1e-6 * bytes);
        if (i) used += snprintf(text + used, sizeof text - (size_t)used, " (%.0f percent %s)",
                                bytes > none ? 100.0 * (bytes / none - 1.0)
                                             : 100.0 * (1.0 - bytes / none),
                                bytes > none ? "more" : "less");
    }
    snprintf(text + used, sizeof text - (size_t)used, ".");
    cornu__explain_wrap("", text, CORNU_EXPLAIN_WIDTH, to);
}

json_t *cornu__explain_remat_json(const CornuExplanation *e)
{
    json_t *all = e->remat_bytes[CORNU_REMAT_OFF] ? json_object() : json_null();
    for (int i = 0; i < MODES && json_is_object(all); i++)
        if (json_object_set_new(all, cornu_remat_mode_name(modes[i]),
                                json_integer((json_int_t)e->remat_bytes[modes[i]])) != 0) {
            json_decref(all);
            return NULL;
        }
    return all;
}
