/* One step of an optimizer: gradients summed over the shards, accumulated, clipped, applied. */
#include "optimizer_internal.h"

/* ---- The learning rate ---- */

static CornuTensor *iteration_f32(const CornuOptimizer *optimizer, CornuGraph *graph)
{
    return cornu_op_convert(cornu_read(graph, optimizer->iteration), CORNU_F32);
}

static CornuTensor *scheduled_learning_rate(const CornuOptimizer *optimizer, CornuGraph *graph)
{
    if (!optimizer->schedule) return cornu_read(graph, optimizer->rate_variable);
    CornuTensor *iteration = iteration_f32(optimizer, graph);
    return iteration ? optimizer->schedule->call(optimizer->schedule, iteration) : NULL;
}

CornuStatus cornu_optimizer_learning_rate(const CornuOptimizer *optimizer, double *value)
{
    if (optimizer->kind->composite)
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "%s: has no learning rate of its own",
                           optimizer->name);
    if (optimizer->rate_variable) return cornu_variable_get(optimizer->rate_variable, value);
    *value = optimizer->learning_rate;
    if (!optimizer->schedule) return CORNU_OK;
    if (!optimizer->iteration)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: not built yet, %s has not begun",
                           optimizer->name, optimizer->schedule->name);
    CornuGraph  *graph = cornu_graph_create(cornu_variable_device(optimizer->iteration));
    CornuTensor *now = graph ? scheduled_learning_rate(optimizer, graph) : NULL;
    CornuStatus  status = cornu_error_take();
    float        out = 0.0f;
    CornuArray   to = cornu_array_from(&out, cornu_scalar(CORNU_F32));
    if (!status) status = cornu_run(graph, &now, 1, &to);
    cornu_graph_free(graph);
    *value = out;
    return status;
}

/* The sum of `of` over the buckets' tensors, always added in the same order. */
static CornuTensor *sum_over_buckets(const CornuOptimizer *optimizer, CornuTensor *const *x,
                                     CornuTensor *(*of)(CornuTensor *x))
{
    CornuTensor *sum = of(x[0]);
    for (int b = 1; b < optimizer->bucket_count; b++) sum = cornu_op_add(sum, of(x[b]));
    return sum;
}

/* ---- Shards ---- */

/* A shard's loss is a part of the mean over all shards: in groups, or without the mean, it has a
 * larger weight. */
static double weight_of_loss(const CornuOptimizer *optimizer)
{
    const int shards = cornu__optimizer_shards(optimizer);
    const int together = cornu__optimizer_has_groups(optimizer) ? optimizer->groups.size : shards;
    return (double)shards / (optimizer->reduction == CORNU_SUM ? 1 : together);
}

/* What is to be applied: for each bucket a gradient and, of a sparse one, the rows it is for. */
typedef struct {
    CornuTensor **g, **rows;
} Gradients;

/* Sums the gradients of bucket b over the shards: the slice that this shard will apply; in groups
 * all of them. */
static CornuTensor *reduce_over_shards(const CornuOptimizer *optimizer, int b,
                                       const Gradients *gradients)
{
    CornuTensor *g = gradients->g[b];
    if (!g) return NULL;
    if (optimizer->buckets[b].sparse)
        return cornu__sparse_reduce(optimizer->buckets[b].weights, g, &gradients->rows[b]);
    if (optimizer->buckets[b].cut) return cornu_tensor_varies(g) ? cornu_op_all_reduce(g) : g;
    if (cornu__optimizer_has_groups(optimizer))
        return cornu_op_all_reduce_in(g, &optimizer->groups);
    return cornu_tensor_varies(g) ? cornu_op_reduce_scatter(g, NULL)
                                  : cornu_op_shard_slice(g, NULL);
}

/* Whether each shard updates all of the bucket: in groups, or as far as a graph sees of what the
 * mesh cuts. */
static bool is_whole(const CornuOptimizer *optimizer, const CornuBucket *bucket)
{
    return cornu__is_alone(bucket) || cornu__optimizer_has_groups(optimizer);
}

/* The slice that this shard updates, and the whole from the slices. */
static CornuTensor *slice_of(const CornuOptimizer *optimizer, const CornuBucket *bucket,
                             CornuTensor *whole)
{
    return is_whole(optimizer, bucket) ? whole : cornu_op_shard_slice(whole, NULL);
}

static CornuTensor *gathered(const CornuOptimizer *optimizer, const CornuBucket *bucket,
                             CornuTensor *slice)
{
    return is_whole(optimizer, bucket) ? slice : cornu_op_all_gather(slice, NULL);
}

/* ---- Clipping ---- */

static CornuTensor *sum_of_squares(CornuTensor *x) { return cornu_op_sum(cornu_op_square(x)); }

/* The sum of squares of all gradients, of which each shard has slices, or in groups the whole. */
static CornuTensor *squares_over_shards(const CornuOptimizer *optimizer, CornuTensor *const *g)
{
    CornuTensor *slices = NULL, *common = NULL;
    for (int b = 0; b < optimizer->bucket_count; b++) {
        CornuTensor  *squares = sum_of_squares(g[b]);
        const bool    whole = squares && cornu__is_alone(&optimizer->buckets[b]) &&
                              !cornu_tensor_varies(squares);
        CornuTensor **to = whole ? &common : &slices;
        *to = *to ? cornu_op_add(*to, squares) : squares;
    }
    if (!slices) return common;
    slices = cornu_op_all_reduce(slices);
    if (cornu__optimizer_has_groups(optimizer))
        slices = cornu_op_scale(slices, 1.0 / cornu__optimizer_shards(optimizer));
    return common ? cornu_op_add(slices, common) : slices;
}

/* The norm that is clipped: with groups that of the shard's own. */
static CornuTensor *global_norm(const CornuOptimizer *optimizer, CornuTensor *const *g)
{
    bool sliced = false;
    for (int b = 0; b < optimizer->bucket_count; b++)
        sliced |= g[b] && cornu_tensor_varies(g[b]) && !cornu__optimizer_has_groups(optimizer);
    return cornu_op_sqrt(sliced ? squares_over_shards(optimizer, g)
                                : sum_over_buckets(optimizer, g, sum_of_squares));
}

/* x limit / max(norm, limit): at most this norm */
static CornuTensor *limit_norm(CornuTensor *x, CornuTensor *norm, double limit)
{
    CornuTensor *most = cornu_op_constant_like(norm, limit);
    return cornu_op_multiply(x, cornu_op_divide(most, cornu_op_maximum(norm, most)));
}

static CornuTensor *norm_of(CornuTensor *x) { return cornu_op_sqrt(sum_of_squares(x)); }

/* norm - norm is 0, or NaN for an infinite norm, which must not be clipped to zeros silently.
 * Source: keras/src/optimizers/base_optimizer.py, clip_by_global_norm. */
static CornuTensor *limit_global_norm(CornuTensor *x, CornuTensor *norm, double limit)
{
    return cornu_op_add(limit_norm(x, norm, limit), cornu_op_subtract(norm, norm));
}

typedef CornuTensor *Part(const CornuOptimizer *optimizer, int i, CornuTensor *part);

/* Applies a function to the part of each weight in a tensor with the bucket's layout. */
static CornuTensor *each(const CornuOptimizer *optimizer, const CornuBucket *bucket, CornuTensor *x,
                         Part *part)
{
    if (cornu__is_alone(bucket)) return part(optimizer, bucket->first, x);
    CornuTensor **parts = cornu__allocate((size_t)bucket->count, sizeof(CornuTensor *));
    if (!parts) return cornu__null();
    for (int k = 0; k < bucket->count; k++) {
        const int i = bucket->first + k;
        parts[k] = part(optimizer, i, cornu_part(x, optimizer->w[i]));
    }
    x = cornu_pack(bucket->weights, parts);
    cornu__release(parts);
    return x;
}

static CornuTensor *limit_own_norm(const CornuOptimizer *optimizer, int i, CornuTensor *part)
{
    (void)i;
    return limit_norm(part, norm_of(part), optimizer->clipnorm);
}

/* Clips each weight's gradient: of a pack whole, as slices do not end where weights do. */
static CornuTensor *limit_each(const CornuOptimizer *optimizer, const CornuBucket *bucket,
                               CornuTensor *slice)
{
    CornuTensor *whole = gathered(optimizer, bucket, slice);
    return slice_of(optimizer, bucket, each(optimizer, bucket, whole, limit_own_norm));
}

/* Clips what this shard applies of the gradients of each bucket: sums over the shards, as Keras
 * clips after its strategies have aggregated. */
static void clip(const CornuOptimizer *optimizer, CornuTensor **g)
{
    CornuTensor *norm = optimizer->global_clipnorm > 0.0 ? global_norm(optimizer, g) : NULL;
    for (int b = 0; b < optimizer->bucket_count; b++)
        if (optimizer->clipnorm > 0.0)
            g[b] = limit_each(optimizer, &optimizer->buckets[b], g[b]);
        else if (optimizer->global_clipnorm > 0.0)
            g[b] = limit_global_norm(g[b], norm, optimizer->global_clipnorm);
        else if (optimizer->clipvalue > 0.0)
            g[b] = cornu_op_clip(g[b], -optimizer->clipvalue, optimizer->clipvalue);
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
    if (!optimizer->scales_loss)
        return optimizer->loss_scale_factor > 0.0
             ? cornu_op_scale(loss, optimizer->loss_scale_factor) : loss;
    return cornu_op_multiply(loss, cornu_read(graph, optimizer->dynamic_scale));
}

/* The number of elements that are not finite. */
static CornuTensor *faults_of(CornuTensor *x)
{
    CornuTensor *one = cornu_op_constant_like(x, 1.0), *zero = cornu_op_constant_like(x, 0.0);
    return cornu_op_sum(cornu_op_select(cornu_op_is_finite(x), zero, one));
}

/* A bool scalar: whether every element of every bucket on every shard is finite. */
static CornuTensor *all_finite(const CornuOptimizer *optimizer, CornuTensor *const *x)
{
    CornuTensor *faults = sum_over_buckets(optimizer, x, faults_of);
    if (faults && cornu_tensor_varies(faults)) faults = cornu_op_all_reduce(faults);
    return cornu_op_compare(faults, CORNU_EQUAL, cornu_op_constant_like(faults, 0.0));
}

/* The new value, or the old one if the condition, a bool scalar, is false; NULL is true. */
static CornuTensor *only_if(CornuTensor *condition, CornuTensor *value, CornuTensor *old)
{
    return condition ? cornu_op_select(condition, value, old) : value;
}

static CornuTensor *both_finite(CornuTensor *a, CornuTensor *b)
{
    return a && b ? cornu_op_select(a, b, cornu_op_constant_like(b, 0.0)) : a ? a : b;
}

static CornuStatus assign(CornuVariable *variable, CornuTensor *value)
{
    return value ? cornu_assign(variable, value) : cornu_error_take();
}

/* Counts finite steps in a row, and updates the scale. */
static CornuStatus move_scale(const CornuOptimizer *optimizer, CornuGraph *graph,
                              CornuTensor *finite)
{
    CornuTensor *counter = cornu_read(graph, optimizer->step_counter);
    CornuTensor *scale = cornu_read(graph, optimizer->dynamic_scale);
    CornuTensor *last = cornu_op_constant_like(counter,
                                               (double)(optimizer->growth_steps - 1));
    CornuTensor *zero = cornu_op_constant_like(counter, 0.0);
    CornuTensor *grows = cornu_op_compare(counter, CORNU_EQUAL, last);
    CornuTensor *counted = cornu_op_select(grows, zero, cornu_op_shift(counter, 1.0));
    CornuTensor *grown = cornu_op_select(grows, cornu_op_scale(scale, 2.0), scale);
    CORNU__TRY(assign(optimizer->step_counter, cornu_op_select(finite, counted, zero)));
    return assign(optimizer->dynamic_scale,
                  cornu_op_select(finite, grown, cornu_op_scale(scale, 0.5)));
}

/* Divides by the scale of the loss. */
static CornuTensor *unscaled(const CornuOptimizer *optimizer, CornuGraph *graph, CornuTensor *g)
{
    if (optimizer->scales_loss)
        return cornu_op_divide(g, cornu_read(graph, optimizer->dynamic_scale));
    return optimizer->loss_scale_factor > 0.0
         ? cornu_op_scale(g, 1.0 / optimizer->loss_scale_factor) : g;
}

/* Unscales the gradients of each bucket. *finite: NULL if the scale is constant. */
static CornuStatus unscale(const CornuOptimizer *optimizer, CornuGraph *graph, CornuTensor **g,
                           CornuTensor **finite)
{
    *finite = optimizer->scales_loss ? all_finite(optimizer, g) : NULL;
    for (int b = 0; b < optimizer->bucket_count; b++) g[b] = unscaled(optimizer, graph, g[b]);
    CORNU__TRY(cornu_error_take());
    return *finite ? move_scale(optimizer, graph, *finite) : CORNU_OK;
}

/* ---- Accumulated gradients ---- */

/* The number of updates so far, a scalar of any dtype: Keras' optimizer.iterations. */
static CornuTensor *updates(const CornuOptimizer *optimizer, CornuGraph *graph)
{
    CornuTensor *steps = cornu_read(graph, optimizer->iteration);
    if (!optimizer->accumulation_steps) return steps;
    steps = cornu_op_convert(steps, CORNU_F64);
    CornuTensor *of = cornu_op_constant_like(steps, (double)optimizer->accumulation_steps);
    return cornu_op_floor(cornu_op_divide(steps, of));
}

/* Whether number + 1 is a multiple of `of`. */
static CornuTensor *completes(CornuTensor *number, int64_t of)
{
    CornuTensor *next = cornu_op_shift(cornu_op_convert(number, CORNU_F64), 1.0);
    CornuTensor *times = cornu_op_divide(next, cornu_op_constant_like(next, (double)of));
    return cornu_op_compare(times, CORNU_EQUAL, cornu_op_floor(times));
}

/* Accumulates the bucket's gradient: the mean so far, of this shard's slice. */
static CornuTensor *accumulated(const CornuOptimizer *optimizer, CornuGraph *graph, int b,
                                const Gradients *gradients, CornuTensor *last,
                                CornuTensor *finite)
{
    CornuVariable *accumulator = optimizer->buckets[b].slots[optimizer->use_ema];
    CornuTensor   *old = cornu_read(graph, accumulator);
    CornuTensor   *sum = cornu_op_add(reduce_over_shards(optimizer, b, gradients), old);
    CornuTensor   *kept = sum ? cornu_op_select(last, cornu_op_constant_like(sum, 0.0), sum) : NULL;
    if (assign(accumulator, only_if(finite, kept, old))) return cornu__null();
    return cornu_op_scale(sum, 1.0 / (double)optimizer->accumulation_steps);
}

/* Replaces the gradients of each bucket by those that this shard applies. Accumulation comes after
 * the sum over shards, so that no part of it is a shard's own and files hold all of it. */
static void reduce_gradients(const CornuOptimizer *optimizer, CornuGraph *graph,
                             const Gradients *gradients, CornuTensor *last, CornuTensor *finite)
{
    CornuTensor **g = gradients->g;
    for (int b = 0; b < optimizer->bucket_count; b++)
        g[b] = last ? accumulated(optimizer, graph, b, gradients, last, finite)
                    : reduce_over_shards(optimizer, b, gradients);
    clip(optimizer, g);
}

/* ---- Averages and constraints ---- */

/* Updates the averages of the bucket's w, and returns the new w: itself or, when due, the averages.
 * Source: keras/src/optimizers/base_optimizer.py, _update_model_variables_moving_average. */
static CornuTensor *averaged(const CornuOptimizer *optimizer, CornuGraph *graph,
                             const CornuBucket *bucket, CornuTensor *w, CornuTensor *finite)
{
    CornuVariable *variable = bucket->slots[0];
    CornuTensor   *old = cornu_read(graph, variable), *before = updates(optimizer, graph);
    CornuTensor   *ruling = cornu_op_constant(graph, cornu_scalar(CORNU_F32),
                                              optimizer->ema_momentum);
    if (!before || !ruling) return NULL;
    CornuTensor *any = cornu_op_compare(before, CORNU_NOT_EQUAL,
                                        cornu_op_constant_like(before, 0.0));
    CornuTensor *momentum = cornu_op_select(any, ruling, cornu_op_constant_like(ruling, 0.0));
    CornuTensor *rest = cornu_op_shift(cornu_op_negative(momentum), 1.0);
    CornuTensor *average = cornu_op_add(cornu_op_multiply(old, momentum),
                                        cornu_op_multiply(w, rest));
    if (assign(variable, only_if(finite, average, old))) return cornu__null();
    if (!optimizer->ema_overwrite_frequency) return w;
    return cornu_op_select(completes(before, optimizer->ema_overwrite_frequency), average, w);
}

static CornuTensor *held(const CornuOptimizer *optimizer, int i, CornuTensor *part)
{
    return cornu_constraint_call(&optimizer->constraints[i], part);
}

/* Applies the constraints to the bucket's weights. */
static CornuTensor *constrained(const CornuOptimizer *optimizer, const CornuBucket *bucket,
                                CornuTensor *w)
{
    bool any = false;
    for (int k = 0; k < bucket->count; k++)
        any |= optimizer->constraints[bucket->first + k].kind != 0;
    return any ? each(optimizer, bucket, w, held) : w;
}

/* ---- The whole step ---- */

/* What a step's updates have in common. */
typedef struct {
    const CornuOptimizer *optimizer;
    CornuGraph           *graph;
    CornuTensor          *finite;   /* whether the step counts, */
    CornuTensor          *now;      /* and applies gradients: bool scalars, NULL: true */
    CornuTensor          *learning_rate;   /* for the decay */
} Step;

static CornuTensor *decayed(const Step *step, CornuTensor *w, double decay)
{
    if (!(decay > 0.0)) return w;
    return cornu_op_subtract(w, cornu_op_multiply(cornu_op_scale(w, decay), step->learning_rate));
}

/* A value as a variable of this precision holds it. Keras computes the whole update of such a
 * weight in its dtype; here only what is kept is rounded. */
static CornuTensor *at_precision(CornuTensor *value, CornuDtype precision)
{
    return precision == CORNU_F32 ? value
                                  : cornu_op_convert(cornu_op_convert(value, precision),
                                                     CORNU_F32);
}

/* Records the next values of the slots that have one, unless the step does not apply gradients. */
static CornuStatus keep_slots(const Step *step, CornuVariable *const *slots, int count,
                              CornuTensor *const *old, CornuTensor *const *new_slot,
                              CornuDtype precision)
{
    for (int s = 0; s < count; s++)
        if (new_slot[s])
            CORNU__TRY(assign(slots[s], only_if(step->now, at_precision(new_slot[s], precision),
                                                old[s])));
    return CORNU_OK;
}

static CornuDtype precision_of(const CornuOptimizer *optimizer, const CornuBucket *bucket)
{
    return cornu_variable_precision(optimizer->w[bucket->first]);
}

/* Records the update of this shard's slice of the bucket's slots; returns that of its weights. */
static CornuTensor *update_slice(const Step *step, const CornuBucket *bucket, CornuUpdate *u,
                                 CornuTensor *w)
{
    const CornuOptimizer *optimizer = step->optimizer;
    const int             common = cornu__common_slots(optimizer);
    const int             count = optimizer->slot_count - common;
    CornuTensor          *new_slot[CORNU_MAX_SLOTS] = { 0 };
    u->w_before = w;
    u->w = decayed(step, w, optimizer->weight_decay);
    for (int s = 0; s < count; s++) u->slot[s] = cornu_read(step->graph, bucket->slots[common + s]);
    CornuTensor *new_w = only_if(step->now, optimizer->kind->update(optimizer, u, new_slot), w);
    const CornuDtype precision = precision_of(optimizer, bucket);
    return keep_slots(step, bucket->slots + common, count, u->slot, new_slot, precision)
               ? cornu__null() : new_w;
}

/* Records the update of one weight's slots; returns that of the weight. */
static CornuTensor *update_weight(const Step *step, int i, CornuUpdate *u, CornuTensor *w)
{
    const CornuOptimizer      *optimizer = step->optimizer;
    const CornuOptimizerClass *kind = optimizer->kind;
    const int                  common = cornu__common_slots(optimizer);
    const int                  count = optimizer->slot_count - common;
    CornuVariable *const      *slots = optimizer->slots + i * optimizer->slot_count + common;
    CornuTensor               *new_slot[CORNU_MAX_SLOTS] = { 0 };
    u->w_before = w;
    u->w = decayed(step, w, kind->decay_of ? kind->decay_of(optimizer, optimizer->w[i])
                                           : optimizer->weight_decay);
    for (int s = 0; s < count; s++)
        u->slot[s] = slots[s] ? cornu_read(step->graph, slots[s]) : NULL;
    CornuTensor *new_w = only_if(step->now, kind->update_weight(optimizer, i, u, new_slot), w);
    const CornuDtype precision = cornu_variable_precision(optimizer->w[i]);
    return keep_slots(step, slots, count, u->slot, new_slot, precision) ? cornu__null() : new_w;
}

/* The bucket's weights after the updates of each of them. */
static CornuTensor *update_weights(const Step *step, const CornuBucket *bucket,
                                   const CornuUpdate *u, CornuTensor *whole)
{
    CornuTensor  *gradient = gathered(step->optimizer, bucket, u->gradient);
    CornuTensor **parts = cornu__allocate((size_t)bucket->count, sizeof(CornuTensor *));
    if (!parts) return cornu__null();
    for (int k = 0; k < bucket->count; k++) {
        const int            i = bucket->first + k;
        const CornuVariable *w = step->optimizer->w[i];
        CornuUpdate          of_weight = *u;
        of_weight.gradient = bucket->cut ? gradient : cornu_part(gradient, w);
        parts[k] = update_weight(step, i, &of_weight, bucket->cut ? whole : cornu_part(whole, w));
    }
    CornuTensor *packed = bucket->cut ? parts[0] : cornu_pack(bucket->weights, parts);
    cornu__release(parts);
    return packed;
}

/* Records the update of rows of a table, and of its slots: the formula is that of whole weights. */
static CornuStatus update_rows(const Step *step, const CornuBucket *bucket, CornuUpdate *u,
                               CornuTensor *rows)
{
    const CornuOptimizer *optimizer = step->optimizer;
    const CornuDtype      precision = precision_of(optimizer, bucket);
    CornuTensor          *new_slot[CORNU_MAX_SLOTS] = { 0 };
    u->w = u->w_before = cornu__sparse_read(cornu_read(step->graph, bucket->weights), rows);
    for (int s = 0; s < optimizer->slot_count; s++)
        u->slot[s] = cornu__sparse_read(cornu_read(step->graph, bucket->slots[s]), rows);
    CornuTensor *new_w = only_if(step->now, optimizer->kind->update(optimizer, u, new_slot), u->w);
    for (int s = 0; s < optimizer->slot_count; s++)
        if (new_slot[s])
            CORNU__TRY(cornu__sparse_assign(bucket->slots[s], rows,
                                            only_if(step->now, at_precision(new_slot[s], precision),
                                                    u->slot[s])));
    return cornu__sparse_assign(bucket->weights, rows, at_precision(new_w, precision));
}

/* Records the update of a bucket's weights and slots: of this shard's slice, of each weight, or of
 * rows. */
static CornuStatus update_bucket(const Step *step, const CornuBucket *bucket, CornuUpdate *u,
                                 CornuTensor *rows)
{
    const CornuOptimizer *optimizer = step->optimizer;
    if (bucket->sparse) return update_rows(step, bucket, u, rows);
    CornuTensor *whole = cornu_read(step->graph, bucket->weights);
    CornuTensor *w = slice_of(optimizer, bucket, whole);
    CornuTensor *new_w = optimizer->kind->update_weight
                       ? slice_of(optimizer, bucket, update_weights(step, bucket, u, whole))
                       : update_slice(step, bucket, u, w);
    if (optimizer->use_ema)
        new_w = only_if(step->finite, averaged(optimizer, step->graph, bucket, new_w, step->finite),
                        w);
    CornuTensor *all = gathered(optimizer, bucket, new_w);
    CornuTensor *kept = constrained(optimizer, bucket, all);
    if (kept != all) kept = only_if(step->finite, kept, whole);
    return assign(bucket->weights, at_precision(kept, precision_of(optimizer, bucket)));
}

/* Records the class's number; the update uses the next one. */
static CornuStatus move_number(const CornuOptimizer *optimizer, CornuGraph *graph, CornuUpdate *u,
                               CornuTensor *now)
{
    if (!optimizer->number) return CORNU_OK;
    CornuTensor *old = u->number = cornu_read(graph, optimizer->number);
    u->number = optimizer->kind->number(optimizer, u);
    return assign(optimizer->number, only_if(now, u->number, old));
}

/* Records the step from the gradients of each bucket, packed and, if the loss was, scaled; replaces
 * them. */
static CornuStatus apply(CornuOptimizer *optimizer, CornuGraph *graph, const Gradients *gradients)
{
    CornuTensor *finite, *last = NULL;
    CORNU__TRY(unscale(optimizer, graph, gradients->g, &finite));
    CornuTensor *learning_rate = scheduled_learning_rate(optimizer, graph);
    CornuTensor *iteration = cornu_read(graph, optimizer->iteration);
    if (optimizer->accumulation_steps) last = completes(iteration, optimizer->accumulation_steps);
    CORNU__TRY(cornu_error_take());
    CornuTensor *before = cornu_op_convert(updates(optimizer, graph), CORNU_F32);
    reduce_gradients(optimizer, graph, gradients, last, finite);
    CornuUpdate u = { .learning_rate = learning_rate, .iteration = cornu_op_shift(before, 1.0) };
    CORNU__TRY(move_number(optimizer, graph, &u, both_finite(finite, last)));
    if (optimizer->kind->schedule) u.learning_rate = optimizer->kind->schedule(optimizer, &u);
    const Step step = { optimizer, graph, finite, both_finite(finite, last), learning_rate };
    CORNU__TRY(cornu_error_take());
    for (int b = 0; b < optimizer->bucket_count; b++) {
        u.gradient = gradients->g[b];
        CORNU__TRY(update_bucket(&step, &optimizer->buckets[b], &u, gradients->rows[b]));
    }
    return assign(optimizer->iteration,
                  only_if(finite, cornu_op_shift(iteration, 1.0), iteration));
}

/* Packs the gradients of the weights of each bucket. The arrays are the caller's to release: they
 * are one, at g, which is NULL on failure with a pending error. */
static Gradients packed(const CornuOptimizer *optimizer, CornuTensor *const *gradients)
{
    const size_t  count = (size_t)optimizer->bucket_count;
    CornuTensor **g = cornu__allocate(2 * count, sizeof *g);
    if (!g) return (Gradients){ (CornuTensor **)cornu__null(), NULL };
    for (size_t b = 0; b < count; b++) {
        const CornuBucket *bucket = &optimizer->buckets[b];
        g[b] = bucket->sparse ? cornu__sparse_gradient(bucket->weights, gradients[bucket->first],
                                                       &g[count + b])
                              : bucket->cut ? gradients[bucket->first]
              : cornu_pack(bucket->weights, gradients + bucket->first);
    }
    if (!cornu_error_pending()) return (Gradients){ g, g + count };
    cornu__release(g);
    return (Gradients){ NULL, NULL };
}

CornuStatus cornu_optimizer_apply(CornuOptimizer *optimizer, CornuGraph *graph,
                                  CornuTensor *const *gradients)
{
    if (!optimizer->variables)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: apply comes after build", optimizer->name);
    if (optimizer->kind->composite)
        return optimizer->kind->composite->apply(optimizer, graph, gradients);
    CORNU__TRY(cornu__optimizer_check_packed(optimizer));
    cornu_graph_scope(graph, optimizer->name);
    const Gradients of_buckets = packed(optimizer, gradients);
    CornuStatus     status = of_buckets.g ? apply(optimizer, graph, &of_buckets)
                                          : cornu_error_take();
    cornu_graph_scope(graph, NULL);
    cornu__release(of_buckets.g);
    return status;
}

/* The sum of squares of the gradients that are applied; with groups the mean of theirs. */
static CornuTensor *squares_of_all(const CornuOptimizer *optimizer, CornuGraph *graph,
                                   const Gradients *gradients)
{
    CornuTensor **g = gradients->g;
    for (int b = 0; b < optimizer->bucket_count; b++) {
        g[b] = unscaled(optimizer, graph, g[b]);
        g[b] = reduce_over_shards(optimizer, b, gradients);
    }
    return squares_over_shards(optimizer, g);
}

CornuTensor *cornu_optimizer_gradient_norm(const CornuOptimizer *optimizer, CornuGraph *graph,
                                           CornuTensor *const *gradients)
{
    if (!optimizer->variables)
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: gradient_norm comes after build",
                                optimizer->name);
    if (optimizer->kind->composite)
        return optimizer->kind->composite->gradient_norm(optimizer, graph, gradients);
    const Gradients of_buckets = packed(optimizer, gradients);
    CornuTensor    *squares = of_buckets.g ? squares_of_all(optimizer, graph, &of_buckets)
                                           : NULL;
    cornu__release(of_buckets.g);
    return cornu_op_sqrt(squares);
}
