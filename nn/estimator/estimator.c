#define _DEFAULT_SOURCE    /* mkdtemp */

#include "estimator_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../../device/open.h"

/* ---- The folder ---- */

/* A new folder for an estimator without one. */
static char *temporary_folder(void)
{
    static const char name[] = "/cornu-estimator-XXXXXX";
    const char  *above = getenv("TMPDIR") && *getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    const size_t size = strlen(above) + sizeof name;
    char        *folder = cornu__allocate(size, 1);
    if (!folder) return NULL;
    snprintf(folder, size, "%s%s", above, name);
    if (!mkdtemp(folder)) {
        cornu__fail(CORNU_ERR_FILE, "%s: cannot be made: %s", folder, strerror(errno));
        cornu__release(folder);
        return NULL;
    }
    cornu__log(CORNU_LOG_WARNING, "Using temporary folder as model directory: %s", folder);
    return folder;
}

static CornuStatus make_folder(const char *folder)
{
    bool made;
    CORNU__TRY(cornu__make_folders_above(folder));
    if (access(folder, F_OK) != 0) CORNU__TRY(cornu__make_folder(folder, &made));
    if (access(folder, W_OK | X_OK) == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", folder, strerror(errno));
}

/* ---- Making an estimator ---- */

static CornuStatus check_batch_size(const CornuTPUEstimator *self, const char *name, int64_t size,
                                    bool shards)
{
    const int64_t replicas = self->config.tpu_config.num_shards;
    if (size < 0 || size > INT32_MAX)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator: .%s is %lld, expected 1 to %d",
                           name, (long long)size, INT32_MAX);
    if (!shards || !self->use_tpu || replicas == 0 || size % replicas == 0) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator: .%s is %lld, expected a multiple of the "
                       "%lld replicas", name, (long long)size, (long long)replicas);
}

static CornuStatus check_estimator(const CornuTPUEstimatorConfig *config)
{
    const char *folder = config->model_dir, *other = config->config.model_dir;
    if (!config->model_fn)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator: .model_fn is required");
    if (folder && !*folder)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator: .model_dir is empty, expected a "
                           "folder");
    if (folder && other && strcmp(folder, other))
        return cornu__fail(CORNU_ERR_ARGUMENT, "tpu_estimator: .model_dir is %s, and %s in "
                           ".config; expected one of them", folder, other);
    return cornu__run_config_check(&config->config);
}

static CornuStatus copy(char **to, const char *text)
{
    *to = text ? cornu__copy_text(text) : NULL;
    return text && !*to ? CORNU_ERR_MEMORY : CORNU_OK;
}

static CornuStatus copy_texts(CornuTPUEstimator *self, const CornuTPUEstimatorConfig *given)
{
    const char *folder = given->model_dir ? given->model_dir : given->config.model_dir;
    self->model_dir = folder ? cornu__copy_text(folder) : temporary_folder();
    if (!self->model_dir) return cornu_error_status();
    for (size_t n = strlen(self->model_dir); n > 1 && self->model_dir[n - 1] == '/'; n--)
        self->model_dir[n - 1] = '\0';
    const CornuTpuTarget *cluster = given->config.cluster;
    CORNU__TRY(copy(&self->master, cluster ? cluster->device : given->config.master));
    CORNU__TRY(copy(&self->evaluation_master, given->config.evaluation_master));
    const char *const *names = given->feature_names;
    for (int i = 0; i < CORNU_MAX_MODEL_TENSORS && names[i]; i++, self->feature_count++)
        CORNU__TRY(copy(&self->feature_names[i], names[i]));
    if (self->feature_count > 0) return CORNU_OK;
    self->feature_count = 1;
    return copy(&self->feature_names[0], "features");
}

static CornuStatus fill_estimator(CornuTPUEstimator *self, const CornuTPUEstimatorConfig *given)
{
    CORNU__TRY(copy_texts(self, given));
    const struct { const char *name; CornuModeKeys mode; int64_t size; bool shards; } sizes[] = {
        { "train_batch_size", CORNU_MODE_TRAIN, given->train_batch_size, true },
        { "eval_batch_size", CORNU_MODE_EVAL, given->eval_batch_size, self->eval_on_tpu },
        { "predict_batch_size", CORNU_MODE_PREDICT, given->predict_batch_size, self->eval_on_tpu },
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CORNU__TRY(check_batch_size(self, sizes[i].name, sizes[i].size, sizes[i].shards));
        self->batch_size[sizes[i].mode] = sizes[i].size;
    }
    return make_folder(self->model_dir);
}

CornuTPUEstimator *cornu_tpu_estimator_from(const CornuTPUEstimatorConfig *config)
{
    if (cornu__refused()) return NULL;
    CornuTPUEstimator *self = check_estimator(config) ? NULL : cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (CornuTPUEstimator){
        .model_fn = config->model_fn, .params = config->params, .use_tpu = config->use_tpu,
        .eval_on_tpu = !config->no_eval_on_tpu,
        .config = cornu__run_config_resolve(&config->config),
    };
    if (!fill_estimator(self, config)) return self;
    cornu_tpu_estimator_free(self);
    return cornu__null();
}

void cornu_tpu_estimator_free(CornuTPUEstimator *self)
{
    if (!self) return;
    if (self->eval_device != self->device) cornu_device_close(self->eval_device);
    cornu_device_close(self->device);
    for (int i = 0; i < self->feature_count; i++) cornu__release(self->feature_names[i]);
    cornu__release(self->model_dir);
    cornu__release(self->master);
    cornu__release(self->evaluation_master);
    cornu__release(self->latest);
    cornu__release(self);
}

/* ---- Devices ---- */

static CornuDevice *open_device(const CornuTPUEstimator *self, bool on_tpu, const char *name)
{
    CornuTpuTarget found;
    const int      threads = self->config.session_config.intra_op_parallelism_threads;
    if (!on_tpu) return cornu_device_open("cpu", .threads = threads);
    if (!name && cornu_tpu_resolve(&found)) return cornu__null();
    return cornu_device_open(name ? name : found.device, .threads = threads,
                             .shards = self->config.tpu_config.num_shards);
}

CornuDevice *cornu__estimator_device(CornuTPUEstimator *self, CornuModeKeys mode)
{
    const bool  trains = mode == CORNU_MODE_TRAIN, on_tpu = trains || self->eval_on_tpu;
    const char *other = self->use_tpu && on_tpu && !trains ? self->evaluation_master : NULL;
    const bool  same = trains || ((on_tpu || !self->use_tpu) && !other);
    CornuDevice **kept = same ? &self->device : &self->eval_device, *device = *kept;
    if (device) return device;
    device = *kept = open_device(self, self->use_tpu && on_tpu, other ? other : self->master);
    if (device) cornu__log(CORNU_LOG_INFO, "%s", cornu_device_description(device));
    return device;
}

/* ---- What it says ---- */

const char *cornu_estimator_model_dir(const CornuTPUEstimator *estimator)
{
    CORNU__NEED_OR(estimator, NULL);
    return estimator->model_dir;
}

const char *cornu_estimator_latest_checkpoint(CornuTPUEstimator *estimator)
{
    CornuCheckpoints all;
    CORNU__NEED_OR(estimator, NULL);
    cornu__release(estimator->latest);
    estimator->latest = NULL;
    if (cornu__checkpoints_read(estimator->model_dir, &all)) return NULL;
    if (all.count)
        estimator->latest = cornu__checkpoint_path(estimator->model_dir,
                                                   all.steps[all.count - 1]);
    cornu__checkpoints_release(&all);
    return estimator->latest;
}
