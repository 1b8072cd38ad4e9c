/*
 * The variables of optimizers in files of Keras 2. They are listed in orders of their own, under
 * names that say what they are:
 *
 *     Adam/m/dense/kernel:0                   tf.keras 2.11 and later
 *     training/Adam/dense/kernel/m:0          tf.keras before
 *     training/Adam/m_0:0, Variable_1:0       Keras 2; in the latter all m come first, then all v
 */
#include "keras2_weights_internal.h"

#include "../../../device/log_internal.h"
#include "../../../device/memory_internal.h"
#include "../../optimizers/optimizer_internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 64 };

static const char *const group = "optimizer_weights";

/* What Keras 3 calls the variable of a weight, and what Keras 2 called it. Of two that end alike
 * the longer one comes first. */
static const struct { const char *slot, *old[4]; } slots[] = {
    { "velocity_hat", { "vhat", "v_hat" } },
    { "velocity", { "v", "rms", "velocity", "accumulator" } },
    { "average_gradient", { "mg", "average_gradient" } },
    { "accumulated_grad", { "accum_grad", "accumulated_grad", "accumulator" } },
    { "accumulated_delta_var", { "accum_var", "accumulated_delta_var", "delta_accumulator" } },
    { "accumulator", { "accumulator" } },
    { "momentum", { "m", "momentum", "moment" } },
    { "norm", { "u", "v", "norm" } },
    { "linear", { "linear" } },
    { "average", { "average" } },
};
enum { SLOTS = sizeof slots / sizeof *slots };

/* The names in the file, and how many of each slot have been read. */
typedef struct {
    CornuHdf5 *file;
    char     **names;
    int64_t    count, used[SLOTS];
    int       *place;       /* of each weight among those without names; NULL: in their order */
} Listed;

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), tail = strlen(end);
    return length > tail && text[length - tail - 1] == '_' && !strcmp(text + length - tail, end);
}

/* The slot of a variable here, "adam/dense_kernel_velocity"; -1 for one that no weight has. */
static int slot_of(const char *name)
{
    for (int i = 0; i < SLOTS; i++)
        if (strchr(name, '/') && ends_with(name, slots[i].slot)) return i;
    return -1;
}

/* Part `at` of a name, from the end if negative, without ":0" and a number after it: "m" in "m_0".
 * */
static void part_of(const char *name, int at, char part[PART])
{
    const char *from = name;
    if (at < 0) from = strrchr(name, '/') ? strrchr(name, '/') + 1 : name;
    for (; at > 0 && from; at--) from = strchr(from, '/') ? strchr(from, '/') + 1 : NULL;
    snprintf(part, PART, "%.*s", from ? (int)strcspn(from, "/:") : 0, from ? from : "");
    char *end = part + strlen(part);
    while (end > part && end[-1] >= '0' && end[-1] <= '9') end--;
    if (end > part && end[-1] == '_' && *end) end[-1] = '\0';
}

static bool is_old(int slot, const char *part)
{
    for (size_t i = 0; i < sizeof slots[slot].old / sizeof *slots[slot].old; i++)
        if (slots[slot].old[i] && !strcmp(slots[slot].old[i], part)) return true;
    return false;
}

/* Whether a name of the file is that of a slot: its last part is, or the one after the
 * optimizer's. */
static bool is_of(const char *name, int slot)
{
    char last[PART], second[PART];
    part_of(name, -1, last);
    part_of(name, 1, second);
    return is_old(slot, last) || is_old(slot, second);
}

static bool is_scalar(const char *name, const char *const *words)
{
    char last[PART];
    part_of(name, -1, last);
    while (*words && strcmp(*words, last)) words++;
    return *words;
}

static const char *const iterations[] = { "iter", "iterations", "iteration", NULL };
static const char *const momentums[] = { "momentum_cache", "m_schedule", NULL };
static const char *const unnamed[] = { "Variable", NULL };

/* The number of the k-th name of a slot; -1 if there are fewer. Without names, slots are in the
 * order of the variables here, `count` of each. */
static int64_t find(const Listed *listed, int slot, int64_t k, int64_t before, int64_t count)
{
    int64_t of_slot = 0, without = 0;
    for (int64_t i = 0; i < listed->count; i++)
        if (is_of(listed->names[i], slot) && of_slot++ == k) return i;
    if (listed->place && k < count) k = listed->place[k];
    for (int64_t i = 0; i < listed->count; i++)
        if (is_scalar(listed->names[i], unnamed) && without++ == before * count + k) return i;
    return -1;
}

static int64_t find_scalar(const Listed *listed, const char *const *words)
{
    for (int64_t i = 0; i < listed->count; i++)
        if (is_scalar(listed->names[i], words)) return i;
    return -1;
}

static CornuStatus read_value(const Listed *listed, int64_t i, CornuNamedArray *to)
{
    char path[CORNU_KERAS2_MAX_PATH];
    CORNU__TRY(cornu__keras2_path(path, group, listed->names[i]));
    return cornu__fail_prefix(cornu__hdf5_read(listed->file, path, &to->array), to->name);
}

/* ---- What such files lack ---- */

bool cornu__keras2_lacks(const CornuModel *model, int i)
{
    const CornuOptimizer *optimizer = cornu_model_optimizer(model);
    const CornuVariable  *variable = cornu_model_optimizer_variable(model, i);
    return variable == optimizer->rate_variable || variable == optimizer->number;
}

/* u_1 u_2 … u_t of Nadam, u_t = beta_1 (1 - 0.96^t / 2) */
static double product(const CornuOptimizer *optimizer, int64_t iteration)
{
    double p = 1.0, power = 0.96;
    for (int64_t t = 1; t <= iteration && p > 1e-50; t++, power *= 0.96)
        p *= ((const CornuMoments *)optimizer)->beta_1 * (1.0 - 0.5 * power);
    return p;
}

/* Keras 2 has the learning rate in the optimizer's config alone, and Nadam begins anew with its
 * product of momenta where it goes on with its moments; here it is what the steps made it. */
CornuStatus cornu__keras2_complete(const CornuModel *model, int i, CornuValues *values)
{
    const CornuOptimizer *optimizer = cornu_model_optimizer(model);
    CornuVariable        *variable = cornu_model_optimizer_variable(model, i);
    CornuArray           *array = &values->arrays[values->weights + i].array;
    const CornuArray      iteration = values->arrays[values->weights].array;
    if (!array->data && !(array->data = cornu__allocate(cornu_type_bytes(array->type), 1)))
        return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu_variable_read(variable, *array));
    if (variable == optimizer->number && optimizer->kind == &cornu__nadam_class && iteration.data)
        cornu_array_set(*array, 0, product(optimizer, (int64_t)cornu_array_get(iteration, 0)));
    return CORNU_OK;
}

/* ---- Reading ---- */

/* A variable of the optimizer itself. */
static CornuStatus read_own(const Listed *listed, const CornuModel *model, int i,
                            CornuValues *values)
{
    CornuNamedArray *to = &values->arrays[values->weights + i];
    const char      *last = strrchr(to->name, '/') ? strrchr(to->name, '/') + 1 : to->name;
    const int64_t    at = strcmp(last, "iteration") ? -1 : find_scalar(listed, iterations);
    return at < 0 ? cornu__keras2_complete(model, i, values) : read_value(listed, at, to);
}

/* How many slots of the model come before this one, and how many variables it has. */
static void place_of(const CornuValues *values, int slot, int64_t *before, int64_t *count)
{
    bool met[SLOTS] = { false };
    *before = *count = 0;
    for (int i = 0; i < values->variables; i++) {
        const int of = slot_of(values->arrays[values->weights + i].name);
        *count += of == slot;
        if (of < 0 || met[of]) continue;
        met[of] = true;
        *before += !met[slot];
    }
}

/* ---- The order of variables without names: until 2.0.8 that of the weights' names ---- */

typedef struct { const char *path; int number; } Named;

/* As "dense/kernel:0": strings before all that they begin, but for digits. */
static int by_path(const void *a, const void *b)
{
    char x[CORNU_KERAS2_MAX_PATH], y[CORNU_KERAS2_MAX_PATH];
    snprintf(x, sizeof x, "%s:0", ((const Named *)a)->path);
    snprintf(y, sizeof y, "%s:0", ((const Named *)b)->path);
    return strcmp(x, y);
}

/* Whether the first of them have the shapes of the weights, by their places. */
static CornuStatus fits(const Listed *listed, const CornuOptimizer *optimizer, const Named *named,
                        bool *fit)
{
    int k = 0;
    *fit = true;
    for (int64_t i = 0; i < listed->count && k < optimizer->count && *fit; i++) {
        char      path[CORNU_KERAS2_MAX_PATH];
        CornuType type;
        if (!is_scalar(listed->names[i], unnamed)) continue;
        const CornuVariable *w = optimizer->w[named ? named[k].number : k];
        CORNU__TRY(cornu__keras2_path(path, group, listed->names[i]));
        CORNU__TRY(cornu__hdf5_type(listed->file, path, &type));
        *fit = cornu_shape_equal(type.shape, cornu_variable_type(w).shape);
        k++;
    }
    return CORNU_OK;
}

/* *fit: whether they are in one of both orders. Neither is that of a model whose layers have been
 * given other names since: as in Keras, its optimizer begins anew. */
static CornuStatus find_places(Listed *listed, const CornuOptimizer *optimizer, bool *fit)
{
    const int count = optimizer->count;
    CORNU__TRY(fits(listed, optimizer, NULL, fit));
    if (*fit) return CORNU_OK;
    Named *named = cornu__allocate((size_t)count, sizeof *named);
    listed->place = cornu__allocate((size_t)count, sizeof *listed->place);
    CornuStatus status = named && listed->place ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int k = 0; k < count && !status; k++)
        named[k] = (Named){ cornu_variable_name(optimizer->w[k]), k };
    if (!status) qsort(named, (size_t)count, sizeof *named, by_path);
    for (int k = 0; k < count && !status; k++) listed->place[named[k].number] = k;
    if (!status) status = fits(listed, optimizer, named, fit);
    cornu__release(named);
    if (!status && !*fit)
        cornu__log(CORNU_LOG_WARNING, "the variables of the optimizer have no names and are in an "
                   "order that is not known: the optimizer begins anew");
    return status;
}

static CornuStatus read_all(Listed *listed, const CornuModel *model, CornuValues *values)
{
    bool fit;
    CORNU__TRY(find_places(listed, cornu_model_optimizer(model), &fit));
    if (!fit) values->variables = 0;
    for (int i = 0; i < values->variables; i++) {
        CornuNamedArray *to = &values->arrays[values->weights + i];
        const int        slot = slot_of(to->name);
        int64_t          before, count;
        if (slot < 0) {
            CORNU__TRY(read_own(listed, model, i, values));
            continue;
        }
        place_of(values, slot, &before, &count);
        const int64_t at = find(listed, slot, listed->used[slot]++, before, count);
        if (at < 0)
            return cornu__fail(CORNU_ERR_UNSUPPORTED, "\"%s\" has %lld variables, none of which is "
                               "%s; load the model by cornu_model_load, and compile it", group,
                               (long long)listed->count, to->name);
        CORNU__TRY(read_value(listed, at, to));
    }
    return CORNU_OK;
}

/* Those of Keras 3's optimizers, in order under the same names. */
static CornuStatus read_same(const Listed *listed, CornuValues *values)
{
    if (listed->count != values->variables)
        return cornu__fail(CORNU_ERR_SHAPE, "\"%s\" has %lld weights, the model's optimizer has %d",
                           group, (long long)listed->count, values->variables);
    for (int i = 0; i < values->variables; i++)
        CORNU__TRY(read_value(listed, i, &values->arrays[values->weights + i]));
    return CORNU_OK;
}

static bool equal_in_any_case(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) a++, b++;
    return *a == *b;
}

/* Whether the variables are those of another optimizer than the model's, by its class or its name:
 * "Adam/m/…" or "training/Adam/…". Those of Keras 2.0 do not say: "Variable_104:0". */
static bool is_other(const Listed *listed, const CornuOptimizer *optimizer)
{
    bool found = false;
    for (int64_t i = 0; i < listed->count && !found; i++)
        for (int k = 0; k < 2 && !found; k++) {
            char part[PART];
            part_of(listed->names[i], k, part);
            found = (k == 0 && !strcmp(part, unnamed[0])) ||
                    equal_in_any_case(part, optimizer->kind->class_name) ||
                    equal_in_any_case(part, cornu_optimizer_name(optimizer));
        }
    return !found;
}

/* Before the first step there are no variables of weights: then all begin as they are. */
static bool is_unused(const Listed *listed)
{
    char last[PART];
    bool only_own = true;
    for (int64_t i = 0; i < listed->count; i++) {
        part_of(listed->names[i], -1, last);
        only_own &= is_scalar(listed->names[i], iterations) ||
                    is_scalar(listed->names[i], momentums) || strstr(last, "learning_rate") ||
                    !strcmp(last, "decay");
    }
    return only_own;
}

CornuStatus cornu__keras2_read_optimizer(CornuHdf5 *file, const CornuModel *model,
                                         CornuValues *values)
{
    Listed      listed = { .file = file };
    CornuStatus status = CORNU_OK;
    CORNU__TRY(cornu__keras2_names(file, group, "weight_names", &listed.names, &listed.count));
    const bool same = listed.count > 0 &&
                      !strcmp(listed.names[0], values->arrays[values->weights].name);
    if (same && listed.count == values->variables) status = read_same(&listed, values);
    else if (is_unused(&listed) || is_other(&listed, cornu_model_optimizer(model)))
        values->variables = 0;
    else status = same ? read_same(&listed, values) : read_all(&listed, model, values);
    cornu__release(listed.place);
    cornu__hdf5_free_texts(listed.names, listed.count);
    return status;
}
