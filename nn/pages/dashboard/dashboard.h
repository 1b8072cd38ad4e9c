/*
 * The report of a training as a live page, which also steers it.
 *
 *     cornu_fit(model, train, .epochs = 12, .callbacks = {
 *         cornu_dashboard(.port = 8790, .save = "model.keras") });
 *
 * The page is that of report.h, new after each epoch, with the progress and the mean loss of the
 * present one as they come. Its controls pause and resume the training, stop it after the epoch,
 * save the model, and change the learning rate. What each has done, and at which step, is said in
 * the page's log and on .file.
 *
 * The page is served by libmicrohttpd, which is loaded when a dashboard is made, in a thread of its
 * own. A step costs two looks at a clock; it allocates nothing, and no data of it are copied.
 *
 * Only this machine is served unless .address says otherwise, without TLS. The page's address ends
 * with a token of 192 random bits, new each time, without which nothing is shown or done. Up to 32
 * browsers may look on at once. A page that cannot be served any more does not end the training.
 *
 * Of several processes rank 0 serves; the others obey at the same step, so that their weights stay
 * equal. A pause is not in the seconds of the epoch, and ends when another callback is about to
 * end the training, as after a signal.
 */
#ifndef CORNU_NN_PAGES_DASHBOARD_H
#define CORNU_NN_PAGES_DASHBOARD_H

#include <stdio.h>

#include "../../../device/type.h"
#include "../../model/callback.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    char               unset;
    const char        *address;  /* of this machine, where to listen; default 127.0.0.1 */
    int64_t            port;     /* default a free one */
    const char        *save;     /* where a click saves the model, as cornu_model_save; default: it
                                    cannot */
    bool               quiet;    /* says nothing on .file, not even the page's address */
    FILE              *file;     /* default stdout */
    /* As those of report.h. */
    const char        *title, *command, *data;
    CornuArray         x, y, pictures;
    const char *const *names;
    int                classes;
    double             price_per_hour;
} CornuDashboardConfig;

/* Listens from now on, and serves while fit runs. NULL with a pending error: CORNU_ERR_UNSUPPORTED
 * without libmicrohttpd; CORNU_ERR_ARGUMENT for an address or port that there is not;
 * CORNU_ERR_BUSY if the port is taken; those of cornu_report for x, and of cornu_model_save_check
 * for .save. fit takes and frees it. */
CornuCallback *cornu_dashboard_from(const CornuDashboardConfig *config);
#define cornu_dashboard(...) \
    cornu_dashboard_from(&(CornuDashboardConfig){ .unset = 0, __VA_ARGS__ })

/* The page's address with its token, "http://127.0.0.1:8790/?token=…", until the dashboard is
 * freed; "" on ranks that do not serve. */
const char *cornu_dashboard_url(const CornuCallback *dashboard);

/* Whether a dashboard could listen there, to check before data are loaded. Errors are those of
 * cornu_dashboard. */
CornuStatus cornu_dashboard_check(const char *address, int64_t port);

#ifdef __cplusplus
}
#endif
#endif
