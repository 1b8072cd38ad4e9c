#include "optimizer_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../../device/log_internal.h"
#include "../../tensor/tensor_internal.h"
#include "../config/naming_internal.h"

/* Those of the loss scale, iteration, learning_rate, a class's number. */
enum { MAX_SCALARS = 7 };

/* ---- Making ---- */

static CornuStatus check_arguments(const char *name, bool learning_rate_given,
                                   const CornuOptimizerArguments *a)
{
    const struct { const char *argument; double value; } positive[] = {
        { "weight_decay", a->weight_decay }, { "clipnorm", a->clipnorm },
        { "clipvalue", a->clipvalue }, { "global_clipnorm", a->global_clipnorm },
        { "learning_rate", a->learning_rate }, { "loss_scale_factor", a->loss_scale_factor },
    };
    for (size_t i = 0; i < sizeof positive / sizeof *positive; i++)
        if (!(positive[i].value >= 0.0 && isfinite(positive[i].value)))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected 0 or more", name,
                               positive[i].argument, positive[i].value);
    if ((a->clipnorm > 0.0) + (a->clipvalue > 0.0) + (a->global_clipnorm > 0.0) > 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .clipnorm is %g, .clipvalue %g, "
                           ".global_clipnorm %g; expected at most one of them", name, a->clipnorm,
                           a->clipvalue, a->global_clipnorm);
    if (a->schedule && learning_rate_given)
        return cornu__fail(CORNU_ERR_ARGUMENT,
                           "%s: both .learning_rate and .schedule are given, expected one", name);
    if (!(a->ema_momentum >= 0.0 && a->ema_momentum <= 1.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .ema_momentum is %g, expected 0 to 1", name,
                           a->ema_momentum);
    if (a->ema_overwrite_frequency < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .ema_overwrite_frequency is %lld, expected 1 "
                           "or more", name, (long long)a->ema_overwrite_frequency);
    if (a->gradient_accumulation_steps < 0 || a->gradient_accumulation_steps == 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .gradient_accumulation_steps is %lld, "
                           "expected 2 or more", name, (long long)a->gradient_accumulation_steps);
    return CORNU_OK;
}

CornuStatus cornu__optimizer_set(CornuOptimizer *optimizer, bool learning_rate_given,
                                 const CornuOptimizerArguments *arguments)
{
    const char *name = arguments->name ? arguments->name : optimizer->name;
    CornuStatus status = check_arguments(name, learning_rate_given, arguments);
    char       *copy = status ? NULL : cornu__copy_text(name);
    if (!copy) {
        cornu_schedule_free(arguments->schedule);
        return status ? status : CORNU_ERR_MEMORY;
    }
    cornu__release(optimizer->name);
    cornu_schedule_free(optimizer->schedule);
    optimizer->name = copy;
    optimizer->schedule = arguments->schedule;
    optimizer->learning_rate = arguments->learning_rate;
    optimizer->weight_decay = arguments->weight_decay;
    optimizer->clipnorm = arguments->clipnorm;
    optimizer->clipvalue = arguments->clipvalue;
    optimizer->global_clipnorm = arguments->global_clipnorm;
    optimizer->use_ema = arguments->use_ema;
    optimizer->ema_momentum = arguments->ema_momentum;
    optimizer->ema_overwrite_frequency = arguments->ema_overwrite_frequency;
    optimizer->loss_scale_factor = arguments->loss_scale_factor;
    optimizer->accumulation_steps = arguments->gradient_accumulation_steps;
    if (optimizer->learning_rate == 0.0 && !optimizer->schedule)
        cornu__log(CORNU_LOG_WARNING, "%s: .learning_rate is 0, so no weight changes; left "
                   "out it has its default", optimizer->name);
    return CORNU_OK;
}

CornuOptimizer *cornu__optimizer_create(const CornuOptimizerClass *kind, bool learning_rate_given,
                                        const CornuOptimizerArguments *arguments)
{
    char           label[32];
    CornuSchedule *schedule = arguments->schedule;
    cornu__snake_case(kind->class_name, label, sizeof label);
    if (schedule && schedule->taken)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: .schedule, %s, is taken already by "
                                "another optimizer; each needs its own",
                                arguments->name ? arguments->name : label, schedule->name);
    CornuOptimizer *optimizer = cornu__refused() ? NULL : cornu__allocate(1, kind->size);
    if (!optimizer || !(optimizer->name = cornu__copy_text(label))) {
        cornu__release(optimizer);
        cornu_schedule_free(arguments->schedule);
        return cornu__null();
    }
    optimizer->kind = kind;
    if (cornu__optimizer_set(optimizer, learning_rate_given, arguments) == CORNU_OK) {
        if (schedule && schedule->free) schedule->taken = true;
        return optimizer;
    }
    cornu_optimizer_free(optimizer);
    return cornu__null();
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

CornuOptimizer *cornu__optimizer_number(CornuOptimizer *optimizer, const char *argument,
                                        size_t offset, double value, double low, double high)
{
    optimizer = cornu__optimizer_expect(optimizer, argument, value, low, high);
    if (optimizer) *(double *)(void *)((char *)optimizer + offset) = value;
    return optimizer;
}

void cornu__optimizer_unbuild(CornuOptimizer *optimizer)
{
    const int kept = cornu__optimizer_saved_count(optimizer);
    const int own = optimizer->kind->composite ? CORNU__COMPOSITE_VARIABLES : kept;
    CornuOptimizer *inner;
    for (int i = 0; (inner = cornu__optimizer_inner(optimizer, i)); i++)
        cornu__optimizer_unbuild(inner);
    for (int i = 0; i < own && i < kept; i++)
        cornu_variable_free(optimizer->variables[i]);
    cornu__release(optimizer->variables);
    cornu__release(optimizer->slots);
    cornu__release(optimizer->w);
    cornu__release(optimizer->constraints);
    cornu__release(optimizer->buckets);
    optimizer->variables = optimizer->slots = optimizer->w = NULL;
    optimizer->constraints = NULL;
    optimizer->buckets = NULL;
    optimizer->iteration = optimizer->rate_variable = optimizer->number = NULL;
    optimizer->step_counter = optimizer->dynamic_scale = NULL;
    optimizer->variable_count = optimizer->unlisted = 0;
    optimizer->count = optimizer->bucket_count = 0;
}

void cornu_optimizer_free(CornuOptimizer *optimizer)
{
    if (!optimizer) return;
    cornu_schedule_free(optimizer->schedule);
    cornu__optimizer_unbuild(optimizer);
    if (optimizer->kind->free) optimizer->kind->free(optimizer);
    cornu__release(optimizer->scale_name);
    cornu__release(optimizer->name);
    cornu__release(optimizer);
}

const char *cornu_optimizer_name(const CornuOptimizer *optimizer)
{
    CORNU__NEED_OR(optimizer, NULL);
    return optimizer->name;
}

CornuStatus cornu__optimizer_scale(CornuOptimizer *optimizer, const CornuLossScaleConfig *config)
{
    const double  scale = cornu__number(config->initial_scale, 32768.0);
    const int64_t steps = cornu__integer(config->dynamic_growth_steps, 2000);
    if (optimizer->kind->composite)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: made of several optimizers, it cannot scale "
                           "the loss; f16 layers need another", optimizer->name);
    if (!(scale > 0.0 && isfinite(scale)) || steps < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "loss_scale_optimizer: .initial_scale is %g and "
                           ".dynamic_growth_steps %lld, expected numbers above 0", scale,
                           (long long)steps);
    char *name = cornu__copy_text(config->name ? config->name : "loss_scale_optimizer");
    if (!name) return CORNU_ERR_MEMORY;
    cornu__release(optimizer->scale_name);
    optimizer->scale_name = name;
    optimizer->scales_loss = true;
    optimizer->initial_scale = scale;
    optimizer->growth_steps = steps;
    return CORNU_OK;
}

CornuOptimizer *cornu_loss_scale_optimizer_from(const CornuLossScaleConfig *config)
{
    CornuOptimizer *optimizer = config->optimizer;
    if (!optimizer || cornu__optimizer_scale(optimizer, config) == CORNU_OK) return optimizer;
    cornu_optimizer_free(optimizer);
    return cornu__null();
}

/* ---- Variables ---- */

int cornu_optimizer_variable_count(const CornuOptimizer *optimizer)
{
    CORNU__NEED_OR(optimizer, 0);
    return optimizer->variable_count;
}

int cornu__optimizer_saved_count(const CornuOptimizer *optimizer)
{
    return optimizer->variable_count + optimizer->unlisted;
}

CornuVariable *cornu_optimizer_variable(const CornuOptimizer *optimizer, int i)
{
    CORNU__NEED_OR(optimizer, NULL);
    CORNU__NEED_INDEX(i, cornu__optimizer_saved_count(optimizer), NULL);
    return optimizer->variables[i];
}

CornuVariable *cornu_optimizer_iteration(const CornuOptimizer *optimizer)
{
    return optimizer->iteration;
}

/* "adam/conv2d_kernel_momentum" for slot "momentum" of "conv2d/kernel" */
static CornuVariable *add_part(CornuOptimizer *optimizer, CornuDevice *device, CornuType type,
                               const char *owner, const char *of, const char *name, bool packed,
                               const CornuVariable *like)
{
    const bool same = like && cornu_type_equal(type, cornu_variable_type(like));
    char text[256];
    int  length = snprintf(text, sizeof text, "%s/%s%s%s", owner, of, *of ? "_" : "", name);
    if (length >= (int)sizeof text)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: a variable's name would have %d bytes, "
                                "expected %d at most", optimizer->name, length,
                                (int)sizeof text - 1);
    for (char *c = text + strlen(owner) + 1; *c; c++)
        if (*c == '/') *c = '_';
    CornuVariable *variable = cornu_variable_create(device, type, text, .use = CORNU_USE_SLOTS,
                                                    .for_packing = packed,
                                                    .spread = like ? cornu_variable_spread(like)
                                                                   : CORNU_SHARED,
                                                    .layout = same ? cornu_variable_layout(like)
                                                                   : NULL);
    if (variable) optimizer->variables[optimizer->variable_count++] = variable;
    return variable;
}

static CornuVariable *add_variable(CornuOptimizer *optimizer, CornuDevice *device, CornuType type,
                                   const char *owner, const char *name)
{
    return add_part(optimizer, device, type, owner, "", name, false, NULL);
}

/* The slots of each weight: those of every optimizer, then the class's. */
typedef struct {
    const char *name[CORNU_MAX_COMMON_SLOTS + CORNU_MAX_SLOTS];
    int         group[CORNU_MAX_COMMON_SLOTS + CORNU_MAX_SLOTS], count;
} Slots;

static Slots slots_of(const CornuOptimizer *optimizer)
{
    const int common = cornu__common_slots(optimizer);
    Slots     slots = { .count = 0 };
    if (optimizer->use_ema) slots.name[slots.count++] = "average";
    if (optimizer->accumulation_steps) slots.name[slots.count++] = "gradient_accumulator";
    for (int s = 0; s < common; s++) slots.group[s] = s;
    slots.count += optimizer->kind->slots(optimizer, slots.name + common, slots.group + common);
    for (int s = common; s < slots.count; s++) slots.group[s] += common;
    return slots;
}

/* The type of a slot of the weight; false if the weight has none. */
static bool slot_type(const CornuOptimizer *optimizer, const CornuVariable *w, int s,
                      CornuType *type)
{
    const int common = cornu__common_slots(optimizer);
    *type = cornu_variable_type(w);
    return s < common || !optimizer->kind->slot_type ||
           optimizer->kind->slot_type(optimizer, w, s - common, type);
}

/* Whether the slot is packed: those of update_weight have shapes of their own. */
static bool is_packed(const CornuOptimizer *optimizer, int s)
{
    return !optimizer->kind->update_weight || s < cornu__common_slots(optimizer);
}

static bool is_slot_packed(const CornuOptimizer *optimizer, int i, int s)
{
    return is_packed(optimizer, s) && !cornu_variable_has_sparse_gradient(optimizer->w[i]) &&
           !cornu_variable_is_cut(optimizer->w[i]);
}

static CornuStatus add_slots(CornuOptimizer *optimizer, CornuDevice *device)
{
    const Slots slots = slots_of(optimizer);
    for (int group = 0; group < slots.count; group++)
        for (int i = 0; i < optimizer->count; i++)
            for (int s = 0; s < slots.count; s++) {
                const CornuVariable *w = optimizer->w[i];
                CornuType            type;
                if (slots.group[s] != group || !slot_type(optimizer, w, s, &type)) continue;
                CornuVariable *slot = add_part(optimizer, device, type, optimizer->name,
                                               cornu_variable_name(w), slots.name[s],
                                               is_slot_packed(optimizer, i, s), w);
                if (!slot) return cornu_error_take();
                optimizer->slots[i * slots.count + s] = slot;
            }
    return CORNU_OK;
}

/* A single shard has no groups to check. */
static CornuStatus check_groups(const CornuOptimizer *optimizer)
{
    const int shards = cornu__optimizer_shards(optimizer);
    if (shards == 1) return CORNU_OK;
    if (optimizer->kind->update_weight && cornu__optimizer_has_groups(optimizer))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: .group_size is %d of %d shards, expected "
                           "all of them: it updates whole weights", optimizer->name,
                           optimizer->groups.size, shards);
    return cornu__fail_prefix(cornu_groups_check(&optimizer->groups, shards), optimizer->name);
}

static CornuStatus pack_slots(CornuOptimizer *optimizer)
{
    const Slots slots = slots_of(optimizer);
    for (int s = 0; s < slots.count && is_packed(optimizer, s); s++)
        CORNU__TRY(cornu__optimizer_pack_slots(optimizer, s, slots.name[s]));
    return CORNU_OK;
}

/* A table, which may be large, is filled by the device. */
static CornuStatus fill(const CornuBucket *bucket, CornuVariable *slots, double value)
{
    return cornu__is_alone(bucket) && !cornu__variable_waits(slots)
         ? cornu__sparse_fill(slots, value) : cornu__variable_fill(slots, value);
}

/* Sets the slots' first values once those that are packed have memory. The padding between them
 * gets the same values: no division by 0 there either. */
static CornuStatus begin_slots(CornuOptimizer *optimizer)
{
    const int common = cornu__common_slots(optimizer);
    for (int i = 0; i < optimizer->count && optimizer->kind->weight_slot; i++) {
        const int s = common + optimizer->kind->weight_slot - 1;
        CORNU__TRY(cornu_variable_copy(optimizer->slots[i * optimizer->slot_count + s],
                                       optimizer->w[i]));
    }
    for (int s = common; s < optimizer->slot_count && optimizer->kind->initial; s++) {
        const double value = optimizer->kind->initial(optimizer, s - common);
        for (int b = 0; b < optimizer->bucket_count && value != 0.0; b++)   /* new memory is 0 */
            CORNU__TRY(fill(&optimizer->buckets[b], optimizer->buckets[b].slots[s], value));
    }
    return CORNU_OK;
}

CornuStatus cornu__optimizer_add_clock(CornuOptimizer *optimizer, CornuDevice *device,
                                       const char *owner, bool has_rate,
                                       CornuVariable **iteration, CornuVariable **rate)
{
    *iteration = add_variable(optimizer, device, cornu_scalar(CORNU_I64), owner, "iteration");
    if (*iteration && has_rate)
        *rate = add_variable(optimizer, device, cornu_scalar(CORNU_F32), owner,
                             "learning_rate");
    return cornu_error_take();
}

/* Adds the variables that do not depend on the weights. Keras wraps the optimizer in one that
 * scales the loss. */
static CornuStatus add_scalars(CornuOptimizer *optimizer, CornuDevice *device)
{
    const CornuType f32 = cornu_scalar(CORNU_F32), i64 = cornu_scalar(CORNU_I64);
    if (optimizer->scales_loss) {
        const char    *owner = optimizer->scale_name;
        CornuVariable *unused[2];
        CORNU__TRY(cornu__optimizer_add_clock(optimizer, device, owner, true, &unused[0],
                                              &unused[1]));
        optimizer->step_counter = add_variable(optimizer, device, i64, owner, "step_counter");
        optimizer->dynamic_scale = add_variable(optimizer, device, f32, owner, "dynamic_scale");
        if (!optimizer->dynamic_scale) return cornu_error_take();
        CORNU__TRY(cornu_variable_set(optimizer->dynamic_scale, optimizer->initial_scale));
    }
    CORNU__TRY(cornu__optimizer_add_clock(optimizer, device, optimizer->name, !optimizer->schedule,
                                          &optimizer->iteration, &optimizer->rate_variable));
    if (!optimizer->rate_variable) return CORNU_OK;
    return cornu_variable_set(optimizer->rate_variable, optimizer->learning_rate);
}

/* Adds the class's number besides slots. */
static CornuStatus add_number(CornuOptimizer *optimizer, CornuDevice *device)
{
    const CornuOptimizerClass *kind = optimizer->kind;
    if (!kind->number_name) return CORNU_OK;
    optimizer->number = add_variable(optimizer, device, cornu_scalar(CORNU_F32), optimizer->name,
                                     kind->number_name);
    if (!optimizer->number) return cornu_error_take();
    if (optimizer->scales_loss) {
        optimizer->variable_count--;
        optimizer->unlisted = 1;
    }
    return cornu_variable_set(optimizer->number, kind->first_number);
}

static CornuStatus build_optimizer(CornuOptimizer *optimizer, CornuVariable *const *w, int count)
{
    const int slots = slots_of(optimizer).count;
    optimizer->slot_count = slots;
    optimizer->count = count;
    optimizer->variables = cornu__allocate((size_t)(count * slots + MAX_SCALARS),
                                           sizeof(CornuVariable *));
    optimizer->slots = cornu__allocate((size_t)(count * slots), sizeof(CornuVariable *));
    optimizer->w = cornu__allocate((size_t)count, sizeof(CornuVariable *));
    optimizer->constraints = cornu__allocate((size_t)count, sizeof(CornuConstraint));
    optimizer->buckets = cornu__allocate((size_t)count, sizeof(CornuBucket));
    if (!optimizer->variables || !optimizer->slots || !optimizer->w || !optimizer->constraints ||
        !optimizer->buckets)
        return CORNU_ERR_MEMORY;
    for (int i = 0; i < count; i++) optimizer->w[i] = w[i];
    cornu__optimizer_divide(optimizer);

    CornuDevice *device = cornu_variable_device(w[0]);
    CORNU__TRY(check_groups(optimizer));
    for (int i = 0; i < count; i++) CORNU__TRY(cornu__sparse_check(optimizer, w[i]));
    CORNU__TRY(add_scalars(optimizer, device));
    CORNU__TRY(add_slots(optimizer, device));
    CORNU__TRY(add_number(optimizer, device));
    CORNU__TRY(cornu__optimizer_pack(optimizer));
    CORNU__TRY(pack_slots(optimizer));
    return begin_slots(optimizer);
}

CornuStatus cornu__optimizer_build_empty(CornuOptimizer *optimizer, CornuDevice *device)
{
    if (optimizer->variables || optimizer->kind->composite) return CORNU_OK;
    optimizer->variables = cornu__allocate(MAX_SCALARS, sizeof *optimizer->variables);
    CornuStatus status = optimizer->variables ? add_scalars(optimizer, device) : CORNU_ERR_MEMORY;
    if (!status) status = add_number(optimizer, device);
    if (status) cornu__optimizer_unbuild(optimizer);
    return status;
}

CornuStatus cornu_optimizer_build(CornuOptimizer *optimizer, CornuVariable *const *w, int count)
{
    if (optimizer->variables)
        return optimizer->kind->composite ? CORNU_OK : cornu__optimizer_pack(optimizer);
    if (count < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: no weights to train, expected at least one",
                           optimizer->name);
    const CornuComposite *composite = optimizer->kind->composite;
    CornuStatus status = composite ? composite->build(optimizer, w, count)
                                   : build_optimizer(optimizer, w, count);
    if (status)   /* undone for another attempt, on a device with more memory */
        cornu__optimizer_unbuild(optimizer);
    return status;
}

CornuStatus cornu__optimizer_move(CornuOptimizer *optimizer, CornuDevice *device,
                                  CornuVariable *const *w)
{
    CornuOptimizer old = *optimizer;
    if (!old.variables) return CORNU_OK;
    if (optimizer->kind->composite)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: made of several optimizers, it cannot move "
                           "to another device; compile the model for that one", optimizer->name);
    optimizer->variables = NULL;
    optimizer->variable_count = optimizer->unlisted = 0;
    CornuStatus status = old.count > 0 ? cornu_optimizer_build(optimizer, w, old.count)
                                       : cornu__optimizer_build_empty(optimizer, device);
    for (int i = 0; !status && i < cornu__optimizer_saved_count(&old); i++)
        status = cornu_variable_copy(optimizer->variables[i], old.variables[i]);
    if (status) {
        cornu__optimizer_unbuild(optimizer);
        *optimizer = old;
    } else {
        for (int i = 0; i < old.count; i++) optimizer->constraints[i] = old.constraints[i];
        cornu__optimizer_unbuild(&old);
    }
    return status;
}

void cornu_optimizer_constrain(CornuOptimizer *optimizer, int i, CornuConstraint constraint)
{
    if (optimizer->kind->composite)
        optimizer->kind->composite->constrain(optimizer, i, constraint);
    else
        optimizer->constraints[i] = constraint;
}

CornuStatus cornu_optimizer_finalize_variable_values(CornuOptimizer *optimizer)
{
    CornuOptimizer *inner;
    for (int i = 0; (inner = cornu__optimizer_inner(optimizer, i)); i++)
        CORNU__TRY(cornu_optimizer_finalize_variable_values(inner));
    for (int i = 0; i < optimizer->count && optimizer->use_ema; i++)   /* the average is slot 0 */
        CORNU__TRY(cornu_variable_copy(optimizer->w[i],
                                       optimizer->slots[i * optimizer->slot_count]));
    return CORNU_OK;
}

/* Through two host arrays: whatever may fail comes before any change. */
static CornuStatus swap(CornuVariable *a, CornuVariable *b)
{
    const CornuType  type = cornu_variable_type(a);
    const size_t     bytes = cornu_type_bytes(type);
    char            *both = cornu__allocate(2, bytes);
    const CornuArray of_a = cornu_array_from(both, type);
    const CornuArray of_b = { type, both ? both + bytes : NULL };
    CornuStatus      status = both ? CORNU_OK : CORNU_ERR_MEMORY;
    if (!status) status = cornu_variable_read(a, of_a);
    if (!status) status = cornu_variable_read(b, of_b);
    if (!status) status = cornu_variable_write(a, of_b);
    if (!status) status = cornu_variable_write(b, of_a);
    cornu__release(both);
    return status;
}

CornuStatus cornu_optimizer_swap_averages(CornuOptimizer *optimizer)
{
    if (!optimizer->use_ema)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: keeps no averages of the weights, expected "
                           ".use_ema = true", optimizer->name);
    for (int i = 0; i < optimizer->count; i++)   /* the average is the first slot */
        CORNU__TRY(swap(optimizer->w[i], optimizer->slots[i * optimizer->slot_count]));
    return CORNU_OK;
}

CornuStatus cornu_optimizer_set_accumulation(CornuOptimizer *optimizer, int64_t steps)
{
    CORNU__NEED(optimizer);
    const int64_t own = optimizer->accumulation_steps ? optimizer->accumulation_steps : 1;
    if (optimizer->kind->composite)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: its optimizers accumulate gradients, each "
                           "by its .gradient_accumulation_steps", optimizer->name);
    if (steps < 1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: gradients of %lld steps, expected 1 or more",
                           optimizer->name, (long long)steps);
    if (steps == own) return CORNU_OK;
    if (own > 1 || optimizer->w)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: accumulates the gradients of %lld step%s, not "
                           "of %lld; an optimizer for that has to be made anew", optimizer->name,
                           (long long)own, own > 1 ? "s" : "", (long long)steps);
    optimizer->accumulation_steps = steps;
    return CORNU_OK;
}

CornuStatus cornu_optimizer_set_learning_rate(CornuOptimizer *optimizer, double value)
{
    CORNU__NEED(optimizer);
    if (optimizer->kind->composite)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has no learning rate of its own",
                           optimizer->name);
    if (optimizer->schedule)
        return cornu__fail(CORNU_ERR_UNSUPPORTED,
                           "%s: the learning rate follows %s and cannot be set", optimizer->name,
                           optimizer->schedule->name);
    if (!(value >= 0.0 && isfinite(value)))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: the learning rate is %g, expected 0 or more",
                           optimizer->name, value);
    optimizer->learning_rate = value;
    if (!optimizer->rate_variable) return CORNU_OK;
    return cornu_variable_set(optimizer->rate_variable, value);
}
