/* Optimizers of different weights. Source: keras/src/optimizers/multi_optimizer.py. */
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "optimizer_internal.h"

enum { MOST = CORNU_MAX_OPTIMIZERS + 1 };   /* the default one is the last */

typedef struct {
    CornuOptimizer  base;
    CornuOptimizer *inner[MOST];
    char           *path[MOST];
    int             count;
    int            *of, *place;   /* weight i is weight place[i] of optimizer of[i] */
    CornuChooseOptimizer *choose; /* or NULL: by the paths */
    const void     *context;
} Multi;

/* ---- Which optimizer ---- */

static CornuStatus compile_pattern(const char *path, regex_t *compiled)
{
    char whole[512];
    if (snprintf(whole, sizeof whole, "^(%s)$", path) < (int)sizeof whole &&
        regcomp(compiled, whole, REG_EXTENDED | REG_NOSUB) == 0)
        return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "multi_optimizer: the path \"%.80s\" is not a POSIX "
                       "extended regular expression of at most 500 bytes", path);
}

/* The constructor has compiled the pattern. */
static bool matches(const char *path, const char *weight)
{
    regex_t compiled;
    if (compile_pattern(path, &compiled)) return false;
    const bool found = regexec(&compiled, weight, 0, NULL, 0) == 0;
    regfree(&compiled);
    return found;
}

static CornuStatus choose_optimizer(const Multi *multi, const CornuVariable *w, int *of)
{
    const char *weight = cornu_variable_name(w);
    int         found = multi->count - 1, matching = 0;
    if (multi->choose) {
        *of = multi->choose(multi->context, w);
        return CORNU_OK;
    }
    for (int i = 0; i < multi->count - 1; i++)
        if (!strcmp(multi->path[i], weight)) {
            *of = i;
            return CORNU_OK;
        }
    for (int i = 0; i < multi->count - 1; i++)
        if (matches(multi->path[i], weight)) {
            found = i;
            matching++;
        }
    *of = found;
    if (matching < 2) return CORNU_OK;
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %d paths of .optimizer_map match %s, expected one",
                       multi->base.name, matching, weight);
}

/* ---- Building ---- */

/* The entries of `all`, one for each weight, that are of optimizer n; returns their number. */
#define SELECT(multi, n, all, some)                               \
    do {                                                          \
        for (int i = 0; i < (multi)->base.count; i++)             \
            if ((multi)->of[i] == (n)) (some)[(multi)->place[i]] = (all)[i]; \
    } while (0)

static int count_of(const Multi *multi, int n)
{
    int count = 0;
    for (int i = 0; i < multi->base.count; i++) count += multi->of[i] == n;
    return count;
}

/* As Keras does, an optimizer without weights has its own variables alone. */
static CornuStatus build_inner(Multi *multi, int n, CornuVariable *const *w, CornuVariable **some)
{
    CornuOptimizer *inner = multi->inner[n];
    const int       count = count_of(multi, n);
    inner->reduction = multi->base.reduction;
    inner->groups = multi->base.groups;
    inner->bucket_bytes = multi->base.bucket_bytes;
    SELECT(multi, n, w, some);
    if (count > 0) return cornu_optimizer_build(inner, some, count);
    return cornu__optimizer_build_empty(inner, cornu_variable_device(w[0]));
}

static CornuStatus list_variables(Multi *multi)
{
    CornuOptimizer *base = &multi->base;
    int             count = CORNU__COMPOSITE_VARIABLES;
    for (int n = 0; n < multi->count; n++) count += multi->inner[n]->variable_count;
    base->variables = cornu__allocate((size_t)count, sizeof *base->variables);
    if (!base->variables) return CORNU_ERR_MEMORY;
    CORNU__TRY(cornu__optimizer_add_clock(base, cornu_variable_device(base->w[0]), base->name, true,
                                          &base->iteration, &base->rate_variable));
    for (int n = 0; n < multi->count; n++)
        for (int i = 0; i < multi->inner[n]->variable_count; i++)
            base->variables[base->variable_count++] = multi->inner[n]->variables[i];
    return CORNU_OK;
}

static CornuStatus multi_build(CornuOptimizer *base, CornuVariable *const *w, int count)
{
    Multi *multi = (Multi *)base;
    cornu__release(multi->of);
    cornu__release(multi->place);
    multi->of = cornu__allocate((size_t)count, sizeof *multi->of);
    multi->place = cornu__allocate((size_t)count, sizeof *multi->place);
    base->w = cornu__allocate((size_t)count, sizeof *base->w);
    CornuVariable **some = cornu__allocate((size_t)count, sizeof *some);
    CornuStatus     status = multi->of && multi->place && base->w && some ? CORNU_OK
                                                                         : CORNU_ERR_MEMORY;
    for (int i = 0; i < count && !status; i++) {
        base->w[i] = w[i];
        status = choose_optimizer(multi, w[i], &multi->of[i]);
        multi->place[i] = 0;
        for (int k = 0; k < i && !status; k++) multi->place[i] += multi->of[k] == multi->of[i];
    }
    if (!status) base->count = count;
    for (int n = 0; n < multi->count && !status; n++) status = build_inner(multi, n, w, some);
    cornu__release(some);
    return status ? status : list_variables(multi);
}

static void constrain(CornuOptimizer *self, int i, CornuConstraint constraint)
{
    const Multi *multi = (const Multi *)self;
    cornu_optimizer_constrain(multi->inner[multi->of[i]], multi->place[i], constraint);
}

/* ---- Steps ---- */

static CornuStatus apply(CornuOptimizer *self, CornuGraph *graph, CornuTensor *const *gradients)
{
    Multi        *multi = (Multi *)self;
    CornuTensor **some = cornu__allocate((size_t)self->count, sizeof *some);
    CornuStatus   status = some ? CORNU_OK : CORNU_ERR_MEMORY;
    for (int n = 0; n < multi->count && !status; n++) {
        if (count_of(multi, n) == 0) continue;
        SELECT(multi, n, gradients, some);
        status = cornu_optimizer_apply(multi->inner[n], graph, some);
    }
    cornu__release(some);
    CORNU__TRY(status);
    CornuTensor *next = cornu_op_shift(cornu_read(graph, self->iteration), 1.0);
    return next ? cornu_assign(self->iteration, next) : cornu_error_take();
}

static CornuTensor *gradient_norm(const CornuOptimizer *self, CornuGraph *graph,
                                  CornuTensor *const *gradients)
{
    const Multi  *multi = (const Multi *)self;
    CornuTensor **some = cornu__allocate((size_t)self->count, sizeof *some), *sum = NULL;
    if (!some) return cornu__null();
    for (int n = 0; n < multi->count; n++) {
        if (count_of(multi, n) == 0) continue;
        SELECT(multi, n, gradients, some);
        CornuTensor *square = cornu_op_square(
            cornu_optimizer_gradient_norm(multi->inner[n], graph, some));
        sum = sum ? cornu_op_add(sum, square) : square;
    }
    cornu__release(some);
    return cornu_op_sqrt(sum);
}

/* ---- The class ---- */

static CornuOptimizer *inner(const CornuOptimizer *self, int i)
{
    const Multi *multi = (const Multi *)self;
    return i < multi->count ? multi->inner[i] : NULL;
}

static const char *path(const CornuOptimizer *self, int i)
{
    return ((const Multi *)self)->path[i];
}

static void free_all(CornuOptimizer *self)
{
    Multi *multi = (Multi *)self;
    for (int n = 0; n < MOST; n++) {
        cornu_optimizer_free(multi->inner[n]);
        cornu__release(multi->path[n]);
    }
    cornu__release(multi->of);
    cornu__release(multi->place);
}

static const CornuComposite composite = {
    .build = multi_build, .apply = apply, .gradient_norm = gradient_norm, .constrain = constrain,
    .inner = inner, .path = path,
};

static const CornuOptimizerField fields[] = { { 0 } };

const CornuOptimizerClass cornu__multi_class = {
    .class_name = "MultiOptimizer", .size = sizeof(Multi), .free = free_all,
    .composite = &composite, .fields = fields,
};

/* Takes the optimizer, unless another has it. */
static CornuStatus take_optimizer(Multi *multi, CornuOptimizer *optimizer)
{
    const int n = multi->count;
    if (optimizer->taken || optimizer->kind->composite || optimizer->scales_loss)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: %s is %s, expected an optimizer that is new "
                           "and plain", multi->base.name, optimizer->name,
                           optimizer->taken ? "taken already" : "made of another");
    optimizer->taken = true;
    optimizer->loss_scale_factor = multi->base.loss_scale_factor;
    multi->inner[n] = optimizer;
    multi->count++;
    return CORNU_OK;
}

static CornuStatus set_path(Multi *multi, const char *path)
{
    char *copy = cornu__copy_text(path);
    multi->path[multi->count - 1] = copy;
    return copy ? CORNU_OK : CORNU_ERR_MEMORY;
}

static CornuStatus add_optimizer(Multi *multi, const char *path, CornuOptimizer *optimizer)
{
    regex_t compiled;
    CORNU__TRY(take_optimizer(multi, optimizer));
    if (!path) return CORNU_OK;
    CORNU__TRY(compile_pattern(path, &compiled));
    regfree(&compiled);
    return set_path(multi, path);
}

static Multi *make_multi(const char *name, double loss_scale_factor)
{
    CornuOptimizer *optimizer = cornu__optimizer_create(
        &cornu__multi_class, false, &(CornuOptimizerArguments){
            .learning_rate = 1.0, .ema_momentum = 0.99, .loss_scale_factor = loss_scale_factor,
            .name = name ? name : "multi_optimizer" });
    if (optimizer) optimizer->learning_rate = 0.0;
    return (Multi *)optimizer;
}

CornuOptimizer *cornu__multi_optimizer_of(CornuOptimizer *const *optimizers,
                                          const char *const *names, int count,
                                          CornuChooseOptimizer *choose, const void *context)
{
    Multi      *multi = make_multi(NULL, 0.0);
    CornuStatus status = multi ? CORNU_OK : cornu_error_status();
    int         taken = 0;
    for (; taken < count && !status; taken++) {
        status = take_optimizer(multi, optimizers[taken]);
        if (!status && taken < count - 1) status = set_path(multi, names[taken]);
    }
    for (int i = multi ? multi->count : 0; i < count && status; i++)
        cornu_optimizer_free(optimizers[i]);
    if (!status) {
        multi->choose = choose;
        multi->context = context;
        return &multi->base;
    }
    cornu_optimizer_free(multi ? &multi->base : NULL);
    return cornu__null();
}

static void free_given(const CornuMultiConfig *config)
{
    cornu_optimizer_free(config->default_optimizer);
    for (int i = 0; i < CORNU_MAX_OPTIMIZERS; i++)
        cornu_optimizer_free(config->optimizer_map[i].optimizer);
}

CornuOptimizer *cornu_multi_optimizer_from(const CornuMultiConfig *config)
{
    CornuMultiConfig given = *config;
    Multi *multi = cornu_error_pending() ? NULL
                                         : make_multi(config->name, config->loss_scale_factor);
    if (!multi) {
        free_given(&given);
        return cornu__null();
    }
    CornuOptimizer *optimizer = &multi->base;
    CornuStatus     status = CORNU_OK;
    for (int i = 0; i < CORNU_MAX_OPTIMIZERS && !status; i++) {
        CornuMappedOptimizer *entry = &given.optimizer_map[i];
        if (!entry->path) break;
        if (!entry->optimizer)
            status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: \"%s\" has no optimizer",
                                 optimizer->name, entry->path);
        else
            status = add_optimizer(multi, entry->path, entry->optimizer);
        if (multi->count == i + 1) entry->optimizer = NULL;
    }
    const int mapped = multi->count;
    if (!status && !given.default_optimizer)
        status = cornu__fail(CORNU_ERR_ARGUMENT, "%s: .default_optimizer is required",
                             optimizer->name);
    if (!status) status = add_optimizer(multi, NULL, given.default_optimizer);
    if (multi->count > mapped) given.default_optimizer = NULL;
    if (!status) return optimizer;
    free_given(&given);
    cornu_optimizer_free(optimizer);
    return cornu__null();
}
