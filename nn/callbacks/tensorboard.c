/* Source: keras/src/callbacks/tensorboard.py. */
#include "tensorboard.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../device/system/clock_internal.h"
#include "../../device/memory_internal.h"
#include "../formats/output_internal.h"
#include "event_file_internal.h"
#include "tensorboard_profile_internal.h"
#include "../saving/files_internal.h"
#include "../model/model_internal.h"

typedef struct {
    CornuCallback base;
    char         *log_dir;
    int64_t       histogram_freq, update_freq;    /* 0: none */
    bool          graph, images, speed;           /* what to write; the graph only once */
    CornuEventFile *train, *validation;           /* NULL until something is written */
    int64_t       batch;                          /* of this fit, from 1 */
    int64_t       epoch;                          /* from 1 */
    double        epoch_began, batch_began;       /* seconds */
    int64_t       iterations;                     /* when the epoch began */
    float        *values;                         /* a weight's values, then its pictures */
    int64_t       value_space;
    CornuTensorboardProfile profile;
} TensorBoard;

typedef struct { char text[300]; } Tag;

static const char *tag_of(Tag *tag, const char *before, const char *name, const char *after)
{
    snprintf(tag->text, sizeof tag->text, "%s%s%s", before, name, after);
    return tag->text;
}

static CornuStatus open_events(const TensorBoard *self, CornuEventFile **events, const char *name)
{
    const size_t size = strlen(self->log_dir) + strlen(name) + 2;
    char        *folder = *events ? NULL : cornu__allocate(size, 1);
    if (*events) return CORNU_OK;
    if (!folder) return CORNU_ERR_MEMORY;
    snprintf(folder, size, "%s/%s", self->log_dir, name);
    *events = cornu__event_file_open(folder);
    cornu__release(folder);
    return *events ? CORNU_OK : cornu_error_status();
}

/* How often the optimizer has updated the weights: Keras' optimizer.iterations. */
static CornuStatus read_iterations(const CornuModel *model, int64_t *iterations)
{
    const CornuOptimizer *optimizer = model->optimizer;
    double                steps = 0.0;
    if (optimizer->iteration) CORNU__TRY(cornu_variable_get(optimizer->iteration, &steps));
    *iterations = (int64_t)steps;
    if (optimizer->accumulation_steps) *iterations /= optimizer->accumulation_steps;
    return CORNU_OK;
}

/* ---- Scalars ---- */

/* Writes the logs of validation, without their val_, or the others. */
static CornuStatus write_logs(CornuEventFile *events, const CornuLogs *logs, bool of_validation,
                              int64_t step)
{
    Tag tag;
    for (int i = 0; i < logs->count; i++) {
        const char *name = logs->logs[i].name;
        const bool  is_validation = strncmp(name, "val_", 4) == 0;
        if (is_validation != of_validation || strcmp(name, "learning_rate") == 0) continue;
        tag_of(&tag, "epoch_", is_validation ? name + 4 : name, "");
        CORNU__TRY(cornu__event_file_scalar(events, tag.text, step, logs->logs[i].value));
    }
    return CORNU_OK;
}

static CornuStatus write_epoch(TensorBoard *self, const CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    double rate = 0.0;   /* as Keras' MultiOptimizer, which has none of its own */
    CORNU__TRY(write_logs(self->train, logs, false, epoch));
    if (!model->optimizer->kind->composite)
        CORNU__TRY(cornu_optimizer_learning_rate(model->optimizer, &rate));
    CORNU__TRY(cornu__event_file_scalar(self->train, "epoch_learning_rate", epoch, rate));
    if (self->speed) {
        int64_t iterations;
        CORNU__TRY(read_iterations(model, &iterations));
        const double seconds = cornu__seconds() - self->epoch_began;
        CORNU__TRY(cornu__event_file_scalar(self->train, "epoch_steps_per_second", epoch,
                                            (double)(iterations - self->iterations) / seconds));
    }
    if (!self->validation) return CORNU_OK;
    CORNU__TRY(write_logs(self->validation, logs, true, epoch));
    return cornu__event_file_flush(self->validation);
}

/* ---- Weights ---- */

/* The values of a weight with one to three axes, not counting those of extent 1, as images (K, H,
 * W, C), which self->values holds after the values: a column, a matrix with its longer side
 * horizontal, a matrix for each index of the last axis. Four axes are taken as they are. False for
 * other weights. */
static bool as_pictures(const TensorBoard *self, CornuShape shape, CornuArray *pictures)
{
    int64_t      extent[CORNU_MAX_RANK] = { 0 };
    int          rank = 0;
    const float *from = self->values;
    float       *to = self->values + cornu_shape_count(shape);
    for (int i = 0; i < shape.rank; i++)
        if (shape.extent[i] != 1) extent[rank++] = shape.extent[i];
    const int64_t rows = extent[0], columns = rank > 1 ? extent[1] : 1;
    const int64_t depth = rank > 2 ? extent[2] : 1;
    if (rank == 1 || (rank == 2 && rows <= columns)) {
        *pictures = cornu_array((void *)from, CORNU_F32, 1, rows, columns, 1);
    } else if (rank == 2) {
        for (int64_t i = 0; i < rows * columns; i++) to[i % columns * rows + i / columns] = from[i];
        *pictures = cornu_array(to, CORNU_F32, 1, columns, rows, 1);
    } else if (rank == 3) {
        for (int64_t i = 0; i < rows * columns * depth; i++)
            to[i % depth * rows * columns + i / depth] = from[i];
        *pictures = cornu_array(to, CORNU_F32, depth, rows, columns, 1);
    } else if (rank == 4 && (extent[3] == 3 || extent[3] == 4)) {
        *pictures = cornu_array((void *)from, CORNU_F32, rows, columns, depth, extent[3]);
    } else {
        return false;
    }
    return true;
}

static CornuStatus write_weight(TensorBoard *self, const CornuWeight *weight, int64_t epoch)
{
    const int64_t count = cornu_type_count(weight->type);
    CornuArray    pictures;
    Tag           tag;
    if (2 * count > self->value_space) {
        cornu__release(self->values);
        self->values = cornu__allocate(2 * (size_t)count, sizeof *self->values);
        self->value_space = self->values ? 2 * count : 0;
        if (!self->values) return CORNU_ERR_MEMORY;
    }
    CORNU__TRY(cornu_weight_read(weight, cornu_array_from(self->values, weight->type)));
    CORNU__TRY(cornu__event_file_histogram(self->train,
                                           tag_of(&tag, "", weight->path, "/histogram"), epoch,
                                           self->values, count));
    if (!self->images || !as_pictures(self, weight->type.shape, &pictures)) return CORNU_OK;
    return cornu__event_file_images(self->train, tag_of(&tag, "", weight->path, "/image"), epoch,
                                    pictures);
}

static CornuStatus write_weights(TensorBoard *self, const CornuModel *model, int64_t epoch)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++)
        CORNU__TRY(write_weight(self, cornu_model_weight(model, i), epoch));
    return CORNU_OK;
}

/* Writes nothing for a model with custom layers, which no JSON describes. */
static CornuStatus write_graph(TensorBoard *self, const CornuModel *model)
{
    json_t *config = cornu__model_config(model);
    if (!config) return CORNU_OK;
    char *text = cornu__json_text(config);
    json_decref(config);
    if (!text) return CORNU_ERR_MEMORY;
    CornuStatus status = cornu__event_file_keras_model(self->train, "keras", text);
    free(text);
    return status;
}

/* ---- Hooks ---- */

static CornuStatus train_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    (void)model, (void)logs;
    self->batch = 0;
    return open_events(self, &self->train, "train");
}

static CornuStatus train_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    (void)model, (void)logs;
    CORNU__TRY(cornu__profile_after(&self->profile, self->log_dir, true));
    return cornu__event_file_flush(self->train);
}

static CornuStatus epoch_begin(CornuCallback *base, CornuModel *model, int64_t epoch,
                               const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    (void)logs;
    self->epoch_began = cornu__seconds();
    self->epoch = epoch + 1;
    CORNU__TRY(cornu__profile_before(&self->profile, model, self->batch + 1, self->epoch, 1));
    return self->speed ? read_iterations(model, &self->iterations) : CORNU_OK;
}

static CornuStatus tensorboard_epoch_end(CornuCallback *base, CornuModel *model, int64_t epoch,
                                         const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    CORNU__TRY(write_epoch(self, model, epoch, logs));
    if (self->histogram_freq && epoch % self->histogram_freq == 0)
        CORNU__TRY(write_weights(self, model, epoch));
    return cornu__event_file_flush(self->train);
}

static CornuStatus train_batch_begin(CornuCallback *base, CornuModel *model, int64_t batch,
                                     const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    (void)model, (void)batch, (void)logs;
    self->batch++;
    self->batch_began = cornu__seconds();
    return CORNU_OK;
}

static bool is_due(const TensorBoard *self)
{
    return self->update_freq && self->batch % self->update_freq == 0;
}

static bool wants_batch_logs(CornuCallback *base, int64_t batch)
{
    (void)batch;
    return is_due((const TensorBoard *)base);
}

/* The model is built by its first batch at the latest. */
static CornuStatus train_batch_end(CornuCallback *base, CornuModel *model, int64_t batch,
                                   const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    Tag          tag;
    CORNU__TRY(cornu__profile_after(&self->profile, self->log_dir, false));
    CORNU__TRY(cornu__profile_before(&self->profile, model, self->batch + 1, self->epoch,
                                     batch + 2));
    if (self->graph) CORNU__TRY(write_graph(self, model));
    self->graph = false;
    if (!is_due(self)) return CORNU_OK;
    if (self->speed)
        CORNU__TRY(cornu__event_file_scalar(self->train, "batch_steps_per_second", self->batch,
                                            1.0 / (cornu__seconds() - self->batch_began)));
    for (int i = 0; i < logs->count; i++)
        CORNU__TRY(cornu__event_file_scalar(self->train,
                                            tag_of(&tag, "batch_", logs->logs[i].name, ""),
                                            self->batch, logs->logs[i].value));
    return CORNU_OK;
}

static CornuStatus test_begin(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    (void)model, (void)logs;
    return open_events(self, &self->validation, "validation");
}

static CornuStatus test_end(CornuCallback *base, CornuModel *model, const CornuLogs *logs)
{
    TensorBoard *self = (TensorBoard *)base;
    int64_t      iterations;
    Tag          tag;
    CORNU__TRY(read_iterations(model, &iterations));
    for (int i = 0; i < logs->count; i++) {
        tag_of(&tag, "evaluation_", logs->logs[i].name, "_vs_iterations");
        CORNU__TRY(cornu__event_file_scalar(self->validation, tag.text, iterations,
                                            logs->logs[i].value));
    }
    return cornu__event_file_flush(self->validation);
}

static void free_tensorboard(CornuCallback *base)
{
    TensorBoard *self = (TensorBoard *)base;
    cornu__event_file_close(self->train);
    cornu__event_file_close(self->validation);
    cornu__profile_free(&self->profile);
    cornu__release(self->values);
    cornu__release(self->log_dir);
    cornu__release(self);
}

/* ---- Making one ---- */

static CornuStatus check_tensorboard(const CornuTensorboardConfig *config)
{
    const int64_t first = config->profile_batch, last = config->profile_until;
    if (config->embeddings_freq)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "tensorboard: .embeddings_freq is not supported");
    if (first < 0 || (last && (last < first || !first || last - first >= CORNU_MOST_PROFILED)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "tensorboard: .profile_batch is %lld and "
                           ".profile_until %lld, expected 0 or more, and a batch after it, at most "
                           "%d in all", (long long)first, (long long)last, CORNU_MOST_PROFILED);
    if (config->log_dir && !*config->log_dir)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tensorboard: .log_dir is empty, expected a folder");
    if (config->histogram_freq < 0 || config->update_freq < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tensorboard: .histogram_freq is %lld and "
                           ".update_freq %lld, expected 0 or more",
                           (long long)config->histogram_freq, (long long)config->update_freq);
    if (config->write_images && !config->histogram_freq)
        return cornu__fail(CORNU_ERR_ARGUMENT, "tensorboard: .write_images without "
                           ".histogram_freq would write nothing, expected 1 or more");
    return CORNU_OK;
}

/* Makes log_dir and sees whether it takes files. */
static CornuStatus prepare(const char *log_dir)
{
    if (!cornu__output_writes()) return CORNU_OK;
    const size_t size = strlen(log_dir) + 2;
    char        *folder = cornu__allocate(size, 1);
    if (!folder) return CORNU_ERR_MEMORY;
    snprintf(folder, size, "%s/", log_dir);
    CornuStatus status = cornu__output_folders_above(folder);
    if (!status && access(folder, W_OK | X_OK) != 0)
        status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be written: %s", folder, strerror(errno));
    cornu__release(folder);
    return status;
}

CornuCallback *cornu_tensorboard_from(const CornuTensorboardConfig *config)
{
    if (cornu__refused()) return NULL;
    const char *log_dir = config->log_dir ? config->log_dir : "logs";
    if (check_tensorboard(config) || prepare(log_dir)) return cornu__null();
    TensorBoard *self = cornu__allocate(1, sizeof *self);
    if (!self) return cornu__null();
    *self = (TensorBoard){
        .base = { .wants_batch_logs = wants_batch_logs,
                  .train_begin = train_begin, .train_end = train_end,
                  .epoch_begin = epoch_begin, .epoch_end = tensorboard_epoch_end,
                  .train_batch_begin = train_batch_begin, .train_batch_end = train_batch_end,
                  .test_begin = test_begin, .test_end = test_end, .free = free_tensorboard },
        .log_dir = cornu__copy_text(log_dir),
        .histogram_freq = config->histogram_freq, .update_freq = config->update_freq,
        .graph = !config->no_graph, .images = config->write_images,
        .speed = config->write_steps_per_second,
        .profile = { .first = config->profile_batch,
                     .last = config->profile_until ? config->profile_until
                                                   : config->profile_batch },
    };
    if (self->log_dir) return &self->base;
    free_tensorboard(&self->base);
    return cornu__null();
}
