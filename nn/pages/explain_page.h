/*
 * An explanation of a step (explain/explain.h) as one page for a browser, which needs no network.
 *
 *     CornuExplanation *explanation = cornu_explain(model, .device_name = "tpu:v3-8");
 *     CornuStatus status = cornu_explanation_save_page(explanation, "tpu.html");
 *
 * The page has a timeline of the step, with a lane for each unit of an emulated TPU as modelled and
 * for each thread of this machine as measured; a roofline with every product; and, of a product
 * that is chosen there, how its tiles of weights and rows of activations pass through the MXU,
 * cycle by cycle, with the counters of the model (device/tpu/model.h). Its numbers are those of
 * cornu_explanation_to_json.
 */
#ifndef CORNU_NN_PAGES_EXPLAIN_PAGE_H
#define CORNU_NN_PAGES_EXPLAIN_PAGE_H

#include "../explain/explain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the page, whole or not at all. CORNU_ERR_UNSUPPORTED for an explanation of stages
 * (.pipeline), CORNU_ERR_FILE if it cannot be written. Of several processes rank 0 writes. */
CornuStatus cornu_explanation_save_page(const CornuExplanation *explanation, const char *path);

#ifdef __cplusplus
}
#endif
#endif
