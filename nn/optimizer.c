#include "optimizer_internal.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../device/nearest.h"

/* Keras' initial_scale and dynamic_growth_steps; iteration, learning_rate, step_counter,
 * dynamic_scale. */
enum { FIRST_SCALE = 1 << 15, GROWTH_STEPS = 2000, MAX_SCALARS = 4 };

/* ---- Making ---- */

static CornuStatus check(const char *name, bool rate_given, const CornuOptimizerArguments *a)
{
    const struct { const char *argument; double value; } positive[] = {
        { "weight_decay", a->weight_decay }, { "clipnorm", a->clipnorm },
        { "clipvalue", a->clipvalue }, { "global_clipnorm", a->global_clipnorm },
        { "learning_rate", a->learning_rate },
    };
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        if (!(positive[i].value >= 0.0 && isfinite(positive[i].value)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected 0 or more", name,
                               positive[i].argument, positive[i].value);
    if ((a->clipnorm > 0.0) + (a->clipvalue > 0.0) + (a->global_clipnorm > 0.0) > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .clipnorm is %g, .clipvalue %g, "
                           ".global_clipnorm %g; expected one of them at most", name, a->clipnorm,
                           a->clipvalue, a->global_clipnorm);
    if (a->schedule && rate_given)
        return cornu__fail(CORNU_ERR_ARGUMENT,
                           "%s: both .learning_rate and .schedule are given, expected one", name);
    const char *refused = a->use_ema ? "use_ema"
                        : a->loss_scale_factor != 0.0 ? "loss_scale_factor"
                        : a->gradient_accumulation_steps != 0 ? "gradient_accumulation_steps"
                        : NULL;
    if (refused)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .%s is not available in this version",
                           name, refused);
    return CORNU_OK;
}

CornuOptimizer *cornu__optimizer_create(const CornuOptimizerClass *kind, bool rate_given,
                                        const CornuOptimizerArguments *arguments)
{
    char label[32];
    snprintf(label, sizeof label, "%s", kind->class_name);
    for (char *c = label; *c; c++) *c = (char)tolower((unsigned char)*c);
    const char     *name = arguments->name ? arguments->name : label;
    CornuOptimizer *optimizer = NULL;
    if (cornu_error_pending() || check(name, rate_given, arguments) ||
        !(optimizer = cornu__allocate(1, kind->size)) ||
        !(optimizer->name = cornu__copy_text(name))) {
        cornu__release(optimizer);
        cornu_schedule_free(arguments->schedule);
        return cornu__null();
    }
    optimizer->kind = kind;
    optimizer->schedule = arguments->schedule;
    optimizer->learning_rate = arguments->learning_rate;
    optimizer->weight_decay = arguments->weight_decay;
    optimizer->clipnorm = arguments->clipnorm;
    optimizer->clipvalue = arguments->clipvalue;
    optimizer->global_clipnorm = arguments->global_clipnorm;
    return optimizer;
}

CornuOptimizer *cornu__optimizer_expect(CornuOptimizer *optimizer, const char *argument,
                                        double value, double low, double high)
{
    if (!optimizer || (value >= low && value <= high)) return optimizer;
    cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected %g to %g", optimizer->name,
                     argument, value, low, high);
    cornu_optimizer_free(optimizer);
    return NULL;
}

CornuOptimizer *cornu_optimizer(const char *name)
{
    static const char *const names[] = { "sgd", "rmsprop", "adam" };
    if (name && !strcmp(name, "sgd")) return cornu_sgd();
    if (name && !strcmp(name, "rmsprop")) return cornu_rmsprop();
    if (name && !strcmp(name, "adam")) return cornu_adam();
    const char *near = name ? cornu__nearest(name, names, 3) : NULL;
    return cornu__fail_null(CORNU_ERR_ARGUMENT,
                            "optimizer \"%s\" is not known; known are sgd, rmsprop, adam%s%s%s",
                            name ? name : "(NULL)", near ? "; is \"" : "", near ? near : "",
                            near ? "\" meant?" : "");
}

static void unbuild(CornuOptimizer *optimizer)
{
    for (int i = 0; i < optimizer->variable_count; i++)
        cornu_variable_free(optimizer->variables[i]);
    cornu__release(optimizer->variables);
    cornu__release(optimizer->slots);
    cornu__release(optimizer->w);
    optimizer->variables = optimizer->slots = optimizer->w = NULL;
    optimizer->iteration = optimizer->rate = NULL;
    optimizer->step_counter = optimizer->dynamic_scale = NULL;
    optimizer->variable_count = optimizer->count = 0;
}

void cornu_optimizer_free(CornuOptimizer *optimizer)
{
    if (!optimizer) return;
    cornu_schedule_free(optimizer->schedule);
    unbuild(optimizer);
    cornu__release(optimizer->name);
    cornu__release(optimizer);
}

const char *cornu_optimizer_name(const CornuOptimizer *optimizer) { return optimizer->name; }

CornuOptimizer *cornu_loss_scale_optimizer(CornuOptimizer *optimizer)
{
    if (optimizer) optimizer->scales_loss = true;
    return optimizer;
}

/* ---- Variables ---- */

int cornu_optimizer_variable_count(const CornuOptimizer *optimizer)
{
    return optimizer->variable_count;
}

CornuVariable *cornu_optimizer_variable(const CornuOptimizer *optimizer, int i)
{
    return optimizer->variables[i];
}

CornuVariable *cornu_optimizer_iteration(const CornuOptimizer *optimizer)
{
    return optimizer->iteration;
}

/* "adam/conv2d_kernel_momentum" for slot "momentum" of "conv2d/kernel" */
static CornuVariable *add_variable(CornuOptimizer *optimizer, CornuDevice *device, CornuType type,
                                   const char *owner, const char *of, const char *name)
{
    char text[256];
    int  length = snprintf(text, sizeof text, "%s/%s%s%s", owner, of, *of ? "_" : "", name);
    if (length >= (int)sizeof text)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: a variable's name would have %d letters, "
                                "expected %d at most", optimizer->name, length,
                                (int)sizeof text - 1);
    for (char *c = text + strlen(owner) + 1; *c; c++)
        if (*c == '/') *c = '_';
    CornuVariable *variable = cornu_variable_create(device, type, text, .use = CORNU_USE_SLOTS,
                                                    .for_packing = *of != '\0');
    if (variable) optimizer->variables[optimizer->variable_count++] = variable;
    return variable;
}

static CornuStatus add_slots(CornuOptimizer *optimizer, CornuDevice *device)
{
    const char *names[CORNU_MAX_SLOTS];
    int         groups[CORNU_MAX_SLOTS];
    const int   slots = optimizer->kind->slots(optimizer, names, groups);
    for (int group = 0; group < slots; group++)
        for (int i = 0; i < optimizer->count; i++)
            for (int s = 0; s < slots; s++) {
                if (groups[s] != group) continue;
                const CornuVariable *w = optimizer->w[i];
                CornuVariable *slot = add_variable(optimizer, device, cornu_variable_type(w),
                                                   optimizer->name, cornu_variable_name(w),
                                                   names[s]);
                if (!slot) return cornu_error_take();
                optimizer->slots[i * slots + s] = slot;
            }
    return CORNU_OK;
}

static int shards_of(const CornuOptimizer *optimizer)
{
    return cornu_device_shards(cornu_variable_device(optimizer->w[0]));
}

/* A group of all shards is none. */
static bool has_groups(const CornuOptimizer *optimizer)
{
    return optimizer->groups.size > 0 && optimizer->groups.size < shards_of(optimizer);
}

/* A shard that is alone on its device meets nobody. */
static CornuStatus check_groups(const CornuOptimizer *optimizer)
{
    const int shards = shards_of(optimizer);
    if (shards == 1) return CORNU_OK;
    return cornu__fail_prefix(cornu_groups_check(&optimizer->groups, shards), optimizer->name);
}

static CornuStatus pack(CornuOptimizer *optimizer)
{
    const int         count = optimizer->count, slots = optimizer->slot_count;
    const CornuSpread own = has_groups(optimizer) ? CORNU_DUPLICATED : CORNU_SLICED;
    const char       *names[CORNU_MAX_SLOTS];
    int               groups[CORNU_MAX_SLOTS];
    CornuVariable   **parts = cornu__allocate((size_t)count, sizeof(CornuVariable *));
    if (!parts) return CORNU_ERR_MEMORY;
    optimizer->kind->slots(optimizer, names, groups);
    optimizer->packed = cornu_variable_pack(
        optimizer->w, count, has_groups(optimizer) ? own : CORNU_SHARED, "weights");
    for (int s = 0; s < slots; s++) {
        char name[128];
        snprintf(name, sizeof name, "%s/%s", optimizer->name, names[s]);
        for (int i = 0; i < count; i++) parts[i] = optimizer->slots[i * slots + s];
        optimizer->packed_slots[s] = cornu_variable_pack(parts, count, own, name);
    }
    cornu__release(parts);
    return cornu_error_take();
}

static CornuStatus fill(CornuVariable *variable, double value)
{
    const CornuType type = cornu_variable_type(variable);
    CornuArray      all = cornu_array_from(cornu__allocate(cornu_type_bytes(type), 1), type);
    if (!all.data) return CORNU_ERR_MEMORY;
    for (int64_t i = 0; i < cornu_type_count(type); i++) cornu_array_set(all, i, value);
    CornuStatus status = cornu_variable_write(variable, all);
    cornu__release(all.data);
    return status;
}

/* The slots' first values; they are packed by now, and have memory. */
static CornuStatus begin_slots(CornuOptimizer *optimizer)
{
    const int slots = optimizer->slot_count;
    for (int s = 0; s < slots && optimizer->kind->initial; s++) {
        const double value = optimizer->kind->initial(optimizer, s);
        for (int i = 0; i < optimizer->count && value != 0.0; i++)   /* 0: they are made so */
            CORNU__TRY(fill(optimizer->slots[i * slots + s], value));
    }
    return CORNU_OK;
}

/* What there is once, whatever the weights. */
static CornuStatus add_scalars(CornuOptimizer *optimizer, CornuDevice *device)
{
    static const char scaling[] = "loss_scale_optimizer";   /* Keras wraps the optimizer in one */
    const CornuType   f32 = cornu_scalar(CORNU_F32), i64 = cornu_scalar(CORNU_I64);
    const char       *name = optimizer->name;
    if (optimizer->scales_loss) {
        optimizer->step_counter = add_variable(optimizer, device, i64, scaling, "", "step_counter");
        optimizer->dynamic_scale = add_variable(optimizer, device, f32, scaling, "",
                                                "dynamic_scale");
        if (!optimizer->dynamic_scale) return cornu_error_take();
        CORNU__TRY(cornu_variable_set(optimizer->dynamic_scale, FIRST_SCALE));
    }
    optimizer->iteration = add_variable(optimizer, device, i64, name, "", "iteration");
    if (!optimizer->iteration) return cornu_error_take();
    if (optimizer->schedule) return CORNU_OK;
    optimizer->rate = add_variable(optimizer, device, f32, name, "", "learning_rate");
    if (!optimizer->rate) return cornu_error_take();
    return cornu_variable_set(optimizer->rate, optimizer->learning_rate);
}

static CornuStatus build(CornuOptimizer *optimizer, CornuVariable *const *w, int count)
{
    const char *names[CORNU_MAX_SLOTS];
    int         groups[CORNU_MAX_SLOTS];
    const int   slots = optimizer->kind->slots(optimizer, names, groups);
    optimizer->slot_count = slots;
    optimizer->count = count;
    optimizer->variables = cornu__allocate((size_t)(count * slots + MAX_SCALARS),
                                           sizeof(CornuVariable *));
    optimizer->slots = cornu__allocate((size_t)(count * slots), sizeof(CornuVariable *));
    optimizer->w = cornu__allocate((size_t)count, sizeof(CornuVariable *));
    if (!optimizer->variables || !optimizer->slots || !optimizer->w) return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) optimizer->w[i] = w[i];

    CornuDevice *device = cornu_variable_device(w[0]);
    CORNU__TRY(check_groups(optimizer));
    CORNU__TRY(add_scalars(optimizer, device));
    CORNU__TRY(add_slots(optimizer, device));
    CORNU__TRY(pack(optimizer));
    return begin_slots(optimizer);
}

CornuStatus cornu_optimizer_build(CornuOptimizer *optimizer, CornuVariable *const *w, int count)
{
    if (optimizer->variables) return CORNU_OK;
    if (count < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: there is no weight to train",
                           optimizer->name);
    CornuStatus status = build(optimizer, w, count);
    if (status) unbuild(optimizer);   /* for another try, on a device with more room */
    return status;
}

CornuStatus cornu__optimizer_move(CornuOptimizer *optimizer, CornuVariable *const *w)
{
    CornuOptimizer old = *optimizer;
    if (!old.variables) return CORNU_OK;
    optimizer->variables = NULL;
    optimizer->variable_count = 0;
    CornuStatus status = cornu_optimizer_build(optimizer, w, old.count);
    for (int i = 0; !status && i < old.variable_count; i++)
        status = cornu_variable_copy(optimizer->variables[i], old.variables[i]);
    if (status) {
        unbuild(optimizer);
        *optimizer = old;
    } else {
        unbuild(&old);
    }
    return status;
}

CornuStatus cornu_optimizer_set_learning_rate(CornuOptimizer *optimizer, double value)
{
    if (optimizer->schedule)
        return cornu__fail(CORNU_ERR_UNSUPPORTED,
                           "%s: the learning rate follows %s and cannot be set", optimizer->name,
                           optimizer->schedule->name);
    if (!(value >= 0.0 && isfinite(value)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the learning rate is %g, expected 0 or more",
                           optimizer->name, value);
    optimizer->learning_rate = value;
    return optimizer->rate ? cornu_variable_set(optimizer->rate, value) : CORNU_OK;
}

/* ---- One step ---- */

static CornuTensor *iteration_f32(const CornuOptimizer *optimizer, CornuGraph *graph)
{
    return cornu_op_convert(cornu_read(graph, optimizer->iteration), CORNU_F32);
}

static CornuTensor *rate(const CornuOptimizer *optimizer, CornuGraph *graph)
{
    if (!optimizer->schedule) return cornu_read(graph, optimizer->rate);
    CornuTensor *iteration = iteration_f32(optimizer, graph);
    return iteration ? optimizer->schedule->call(optimizer->schedule, iteration) : NULL;
}

CornuStatus cornu_optimizer_learning_rate(const CornuOptimizer *optimizer, double *value)
{
    if (optimizer->rate) return cornu_variable_get(optimizer->rate, value);
    *value = optimizer->learning_rate;
    if (!optimizer->schedule) return CORNU_OK;
    if (!optimizer->iteration)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: not built yet, %s has not begun",
                           optimizer->name, optimizer->schedule->name);
    CornuGraph  *graph = cornu_graph_create(cornu_variable_device(optimizer->iteration));
    CornuTensor *now = graph ? rate(optimizer, graph) : NULL;
    CornuStatus  status = cornu_error_take();
    float        out = 0.0f;
    CornuArray   to = cornu_array_from(&out, cornu_scalar(CORNU_F32));
    if (!status) status = cornu_run(graph, &now, 1, &to);
    cornu_graph_free(graph);
    *value = out;
    return status;
}

static CornuTensor *sum_of_squares(CornuTensor *x) { return cornu_op_sum(cornu_op_square(x)); }

/* x limit / max(norm, limit): at most this norm */
static CornuTensor *limit_norm(CornuTensor *x, CornuTensor *norm, double limit)
{
    CornuTensor *most = cornu_op_constant_like(norm, limit);
    return cornu_op_multiply(x, cornu_op_divide(most, cornu_op_maximum(norm, most)));
}

static CornuTensor *norm_of(CornuTensor *x) { return cornu_op_sqrt(sum_of_squares(x)); }

/* norm - norm is 0, or NaN for a norm that is infinite: it must not clip to zeros unseen.
 * Source: keras/src/optimizers/base_optimizer.py, clip_by_global_norm. */
static CornuTensor *limit_global_norm(CornuTensor *x, CornuTensor *norm, double limit)
{
    return cornu_op_add(limit_norm(x, norm, limit), cornu_op_subtract(norm, norm));
}

static CornuTensor *limit_each_norm(const CornuOptimizer *optimizer, CornuTensor *g)
{
    CornuTensor **parts = cornu__allocate((size_t)optimizer->count, sizeof(CornuTensor *));
    if (!parts) return cornu__null();
    for (int i = 0; i < optimizer->count; i++) {
        CornuTensor *part = cornu_part(g, optimizer->w[i]);
        parts[i] = limit_norm(part, norm_of(part), optimizer->clipnorm);
    }
    g = cornu_pack(optimizer->packed, parts);
    cornu__release(parts);
    return g;
}

/* All gradients, packed. */
static CornuTensor *clipped(const CornuOptimizer *optimizer, CornuTensor *g)
{
    if (optimizer->clipnorm > 0.0) return limit_each_norm(optimizer, g);
    if (optimizer->global_clipnorm > 0.0)
        return limit_global_norm(g, norm_of(g), optimizer->global_clipnorm);
    if (!(optimizer->clipvalue > 0.0)) return g;
    CornuTensor *most = cornu_op_constant_like(g, optimizer->clipvalue);
    return cornu_op_minimum(cornu_op_maximum(g, cornu_op_negative(most)), most);
}

/* ---- Shards ---- */

/* The shards' losses are parts of the mean over all of them: in groups, or without the mean, they
 * count for more. */
static double weight_of_loss(const CornuOptimizer *optimizer)
{
    const int shards = shards_of(optimizer);
    const int together = has_groups(optimizer) ? optimizer->groups.size : shards;
    return (double)shards / (optimizer->reduction == CORNU_SUM ? 1 : together);
}

/* The slice of the summed gradients that this shard will apply, all of them in groups. */
static CornuTensor *meet(const CornuOptimizer *optimizer, CornuTensor *g)
{
    if (!g) return NULL;
    if (has_groups(optimizer)) return cornu_op_all_reduce_in(g, &optimizer->groups);
    return cornu_tensor_varies(g) ? cornu_op_reduce_scatter(g, NULL)
                                  : cornu_op_shard_slice(g, NULL);
}

/* ---- Loss scaling ---- */

CornuTensor *cornu_optimizer_scale_loss(const CornuOptimizer *optimizer, CornuTensor *loss)
{
    if (!loss) return NULL;
    if (!optimizer->variables)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: scale_loss comes after build",
                                optimizer->name);
    CornuGraph  *graph = cornu_tensor_graph(loss);
    const double weight = weight_of_loss(optimizer);
    if (weight != 1.0 && cornu_tensor_varies(loss)) loss = cornu_op_scale(loss, weight);
    if (!optimizer->scales_loss) return loss;
    return cornu_op_multiply(loss, cornu_read(graph, optimizer->dynamic_scale));
}

/* A bool scalar: whether every element is a finite number, on every shard. */
static CornuTensor *all_finite(CornuTensor *x)
{
    CornuTensor *one = cornu_op_constant_like(x, 1.0), *zero = cornu_op_constant_like(x, 0.0);
    CornuTensor *faults = cornu_op_sum(cornu_op_select(cornu_op_is_finite(x), zero, one));
    if (faults && cornu_tensor_varies(faults)) faults = cornu_op_all_reduce(faults);
    return cornu_op_compare(faults, CORNU_EQUAL, cornu_op_constant_like(faults, 0.0));
}

/* The new value, or the old one where not all is finite. */
static CornuTensor *unless(CornuTensor *finite, CornuTensor *value, CornuTensor *old)
{
    return finite ? cornu_op_select(finite, value, old) : value;
}

static CornuStatus assign(CornuVariable *variable, CornuTensor *value)
{
    return value ? cornu_assign(variable, value) : cornu_error_take();
}

/* Counts finite steps in a row, and moves the scale. */
static CornuStatus move_scale(const CornuOptimizer *optimizer, CornuGraph *graph,
                              CornuTensor *finite)
{
    CornuTensor *counter = cornu_read(graph, optimizer->step_counter);
    CornuTensor *scale = cornu_read(graph, optimizer->dynamic_scale);
    CornuTensor *last = cornu_op_constant_like(counter, GROWTH_STEPS - 1);
    CornuTensor *zero = cornu_op_constant_like(counter, 0.0);
    CornuTensor *grows = cornu_op_compare(counter, CORNU_EQUAL, last);
    CornuTensor *counted = cornu_op_select(grows, zero, cornu_op_shift(counter, 1.0));
    CornuTensor *grown = cornu_op_select(grows, cornu_op_scale(scale, 2.0), scale);
    CORNU__TRY(assign(optimizer->step_counter, cornu_op_select(finite, counted, zero)));
    return assign(optimizer->dynamic_scale,
                  cornu_op_select(finite, grown, cornu_op_scale(scale, 0.5)));
}

/* ---- The whole step ---- */

/* Records the update of this shard's slice of the weights and slots. */
static CornuStatus update(const CornuOptimizer *optimizer, CornuGraph *graph, CornuUpdate *u,
                          CornuTensor *decay, CornuTensor *finite)
{
    CornuTensor *new_slot[CORNU_MAX_SLOTS] = { 0 };
    CornuTensor *w = cornu_read(graph, optimizer->packed);
    if (!has_groups(optimizer)) w = cornu_op_shard_slice(w, NULL);
    u->w = decay ? cornu_op_subtract(w, cornu_op_multiply(w, decay)) : w;
    for (int s = 0; s < optimizer->slot_count; s++)
        u->slot[s] = cornu_read(graph, optimizer->packed_slots[s]);
    CornuTensor *new_w = unless(finite, optimizer->kind->update(optimizer, u, new_slot), w);
    if (!has_groups(optimizer)) new_w = cornu_op_all_gather(new_w, NULL);
    CORNU__TRY(assign(optimizer->packed, new_w));
    for (int s = 0; s < optimizer->slot_count; s++)
        CORNU__TRY(assign(optimizer->packed_slots[s], unless(finite, new_slot[s], u->slot[s])));
    return CORNU_OK;
}

/* Records the step from all gradients, packed; they are scaled where the loss was. */
static CornuStatus apply(CornuOptimizer *optimizer, CornuGraph *graph, CornuTensor *g)
{
    CornuTensor *finite = NULL;
    if (optimizer->scales_loss) {
        finite = all_finite(g);
        if (!finite) return cornu_error_take();
        g = cornu_op_divide(g, cornu_read(graph, optimizer->dynamic_scale));
        CORNU__TRY(move_scale(optimizer, graph, finite));
    }
    CornuTensor *learning_rate = rate(optimizer, graph);
    CornuTensor *iteration = cornu_read(graph, optimizer->iteration);
    CornuUpdate  u = { .learning_rate = learning_rate,
                       .gradient = meet(optimizer, clipped(optimizer, g)),
                       .iteration = cornu_op_shift(iteration_f32(optimizer, graph), 1.0) };
    if (optimizer->kind->rate) u.learning_rate = optimizer->kind->rate(optimizer, &u);
    CornuTensor *decay = optimizer->weight_decay > 0.0
                       ? cornu_op_scale(learning_rate, optimizer->weight_decay) : NULL;
    CORNU__TRY(cornu_error_take());
    CORNU__TRY(update(optimizer, graph, &u, decay, finite));
    return assign(optimizer->iteration,
                  unless(finite, cornu_op_shift(iteration, 1.0), iteration));
}

CornuStatus cornu_optimizer_apply(CornuOptimizer *optimizer, CornuGraph *graph,
                                  CornuTensor *const *gradients)
{
    if (!optimizer->variables)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: apply comes after build", optimizer->name);
    cornu_graph_scope(graph, optimizer->name);
    CornuTensor *packed = cornu_pack(optimizer->packed, gradients);
    CornuStatus  status = packed ? apply(optimizer, graph, packed) : cornu_error_take();
    cornu_graph_scope(graph, NULL);
    return status;
}
