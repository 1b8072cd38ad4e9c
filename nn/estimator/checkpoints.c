/* The checkpoints of a folder. Source of the file `checkpoint`: CheckpointState in
 * tensorflow/python/training/checkpoint_state.proto, as text. */
#include "estimator_internal.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../device/log_internal.h"
#include "../callbacks/backup_file_internal.h"
#include "../../device/files/file_internal.h"
#include "../saving/files_internal.h"

#define NAME "model.ckpt-%" PRId64
#define SUFFIX ".safetensors"

static const char state_name[] = "checkpoint";
static const char newest_key[] = "model_checkpoint_path", all_key[] = "all_model_checkpoint_paths";

/* FOLDER/NAME, for the caller to release. */
static char *path_in(const char *folder, const char *name)
{
    const size_t size = strlen(folder) + strlen(name) + 2;
    char        *path = cornu__allocate(size, 1);
    if (path) snprintf(path, size, "%s/%s", folder, name);
    return path;
}

char *cornu__checkpoint_path(const char *folder, int64_t step)
{
    char name[80];
    snprintf(name, sizeof name, NAME SUFFIX, step);
    return path_in(folder, name);
}

/* ---- The file `checkpoint` ---- */

void cornu__checkpoints_release(CornuCheckpoints *checkpoints)
{
    cornu__release(checkpoints->steps);
    *checkpoints = (CornuCheckpoints){ .count = 0 };
}

static CornuStatus add_checkpoint(CornuCheckpoints *to, int64_t step)
{
    CORNU__TRY(cornu__reserve(&to->steps, &to->space, to->count, 1, sizeof *to->steps));
    to->steps[to->count++] = step;
    return CORNU_OK;
}

/* `KEY: "model.ckpt-300"`. */
static bool parse_line(const char *line, bool *is_newest, int64_t *step)
{
    char key[40], again[80], path[80];
    if (sscanf(line, "%39[a-z_]: \"%79[^\"]\"", key, path) != 2) return false;
    *is_newest = !strcmp(key, newest_key);
    if ((!*is_newest && strcmp(key, all_key)) || sscanf(path, NAME, step) != 1) return false;
    snprintf(again, sizeof again, NAME, *step);
    return *step >= 0 && !strcmp(path, again);
}

static CornuStatus parse(char *text, const char *path, CornuCheckpoints *to)
{
    int64_t newest = -1;
    int     number = 0;
    char   *rest = text;
    for (char *line; (line = strtok_r(rest, "\n", &rest));) {
        bool    is_newest;
        int64_t step;
        number++;
        if (!parse_line(line, &is_newest, &step) ||
            (!is_newest && to->count && to->steps[to->count - 1] >= step))
            return cornu__fail(CORNU_ERR_FORMAT, "%s: line %d is \"%.60s\", expected %s: or %s: "
                               "and the name of a checkpoint, \"model.ckpt-300\", in ascending "
                               "order", path, number, line, newest_key, all_key);
        if (is_newest) newest = step;
        else CORNU__TRY(add_checkpoint(to, step));
    }
    while (to->count && newest >= 0 && to->steps[to->count - 1] > newest) to->count--;
    if (newest >= 0 && (!to->count || to->steps[to->count - 1] != newest))
        CORNU__TRY(add_checkpoint(to, newest));
    return CORNU_OK;
}

CornuStatus cornu__checkpoints_read(const char *folder, CornuCheckpoints *to)
{
    CornuFileBytes file;
    char          *path = path_in(folder, state_name), *text = NULL;
    CornuStatus    status = path ? CORNU_OK : CORNU_ERR_MEMORY;
    *to = (CornuCheckpoints){ .count = 0 };
    if (!status && access(path, F_OK) == 0) {
        status = cornu__file_read(&file, path);
        if (!status && !(text = cornu__allocate(file.size + 1, 1))) status = CORNU_ERR_MEMORY;
        if (text && file.size) memcpy(text, file.bytes, file.size);
        if (status == CORNU_ERR_FILE) cornu__fail_prefix(status, path);
        if (text) status = parse(text, path, to);
        cornu__file_release(&file);
    }
    cornu__release(text);
    cornu__release(path);
    if (status) cornu__checkpoints_release(to);
    return status;
}

static CornuStatus write_state(const char *folder, const CornuCheckpoints *checkpoints, int first)
{
    CornuNewFile file;
    char        *path = path_in(folder, state_name);
    CornuStatus  status = path ? cornu__file_create(&file, path) : CORNU_ERR_MEMORY;
    if (!status) {
        const int last = checkpoints->count - 1;
        fprintf(file.stream, "%s: \"" NAME "\"\n", newest_key, checkpoints->steps[last]);
        for (int i = first; i <= last; i++)
            fprintf(file.stream, "%s: \"" NAME "\"\n", all_key, checkpoints->steps[i]);
        status = cornu__file_commit(&file);
    }
    cornu__release(path);
    return status;
}

static CornuStatus discard(const char *folder, int64_t step)
{
    char       *path = cornu__checkpoint_path(folder, step);
    CornuStatus status = path ? CORNU_OK : CORNU_ERR_MEMORY;
    if (path && unlink(path) != 0 && errno != ENOENT)
        status = cornu__fail(CORNU_ERR_FILE, "%s: cannot be removed: %s", path, strerror(errno));
    cornu__release(path);
    return status;
}

CornuStatus cornu__checkpoints_add(const char *folder, int64_t step, int64_t keep)
{
    CornuCheckpoints all;
    CORNU__TRY(cornu__checkpoints_read(folder, &all));
    while (all.count && all.steps[all.count - 1] >= step) all.count--;
    CornuStatus status = add_checkpoint(&all, step);
    const int   first = keep != CORNU_NONE && keep < all.count ? all.count - (int)keep : 0;
    if (!status) status = write_state(folder, &all, first);
    for (int i = 0; i < first && !status; i++) status = discard(folder, all.steps[i]);
    cornu__checkpoints_release(&all);
    return status;
}

void cornu__checkpoints_clean(const char *folder)
{
    static const char *const begins[] = { ".model.ckpt-", ".checkpoint." };
    DIR *list = opendir(folder);
    for (const struct dirent *entry; list && (entry = readdir(list));)
        for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
            if (!strncmp(entry->d_name, begins[i], strlen(begins[i])))
                unlinkat(dirfd(list), entry->d_name, 0);
    if (list) closedir(list);
}

/* ---- Weights ---- */

static CornuStatus copy_weight(CornuWeight *weight, const CornuSafetensors *file)
{
    const CornuNamedArray *from = cornu_safetensors_find(file, weight->path);
    const size_t bytes = cornu_type_bytes(weight->type);
    CornuArray   value = cornu_array_from(cornu__allocate(bytes, 1), weight->type);
    if (!value.data) return CORNU_ERR_MEMORY;
    cornu__fill_from(value, from->array);
    const CornuStatus status = cornu_weight_write(weight, value);
    cornu__release(value.data);
    return status;
}

static CornuStatus load_weights(CornuModel *model, const CornuSafetensors *file)
{
    for (int i = 0; i < cornu_model_weight_count(model); i++) {
        const CornuWeight *weight = cornu_model_weight(model, i);
        CORNU__TRY(cornu__check_fills(cornu_safetensors_find(file, weight->path), weight->path,
                                      weight->type));
    }
    CornuStatus status = CORNU_OK;
    for (int i = 0; i < cornu_model_weight_count(model) && !status; i++)
        status = copy_weight(cornu_model_weight(model, i), file);
    return status;
}

static CornuStatus load_checkpoint(const char *path, CornuModel *model)
{
    CornuSafetensors *file = cornu__backup_open(path);
    if (!file) return cornu_error_take();
    CornuStatus status = load_weights(model, file);
    if (status) cornu__fail_prefix(status, path);
    cornu_safetensors_close(file);
    if (!status) cornu__log(CORNU_LOG_INFO, "Restoring parameters from %s", path);
    return status;
}

/* The path given by the user, with the suffix, which TensorFlow's do not have. */
static CornuStatus load_given(const char *given, CornuModel *model, int64_t *step)
{
    const char *name = strrchr(given, '/') ? strrchr(given, '/') + 1 : given;
    const size_t length = strlen(given), tail = strlen(SUFFIX);
    const bool  whole = length >= tail && !strcmp(given + length - tail, SUFFIX);
    char       *path = cornu__allocate(length + tail + 1, 1);
    if (!path) return CORNU_ERR_MEMORY;
    snprintf(path, length + tail + 1, "%s%s", given, whole ? "" : SUFFIX);
    if (sscanf(name, NAME, step) != 1) *step = 0;
    const CornuStatus status = load_checkpoint(path, model);
    cornu__release(path);
    return status;
}

/* The process that trains may remove a checkpoint between our reading its name and opening it; then
 * there is a newer one. */
CornuStatus cornu__checkpoint_load(const CornuTPUEstimator *estimator, const char *path,
                                   CornuModel *model, const char *what, int64_t *step)
{
    const char *folder = estimator->model_dir;
    CornuStatus status = CORNU_OK;
    *step = 0;
    if (path) return load_given(path, model, step);
    for (int64_t tried = -1;; tried = *step) {
        CornuCheckpoints all;
        CORNU__TRY(cornu__checkpoints_read(folder, &all));
        const bool none = all.count == 0;
        if (!none) *step = all.steps[all.count - 1];
        cornu__checkpoints_release(&all);
        if (none) {
            cornu__log(CORNU_LOG_WARNING, "Could not find trained model in model_dir: %s, running "
                       "initialization to %s.", folder, what);
            return CORNU_OK;
        }
        if (*step == tried) return status;
        char *newest = cornu__checkpoint_path(folder, *step);
        status = newest ? load_checkpoint(newest, model) : CORNU_ERR_MEMORY;
        cornu__release(newest);
        if (status != CORNU_ERR_FILE) return status;
    }
}
