/* An explanation as JSON, for programs. */
#include <math.h>
#include <stdlib.h>

#include "../formats/json_internal.h"
#include "explain_internal.h"

/* The kernels that declined before the one of step i, with their reasons. */
static json_t *describe_declined(const CornuExplanation *e, int i)
{
    CornuDeclined declined[CORNU_MOST_DECLINED];
    const int     count = cornu_executable_declined(e->executable, i, declined);
    json_t       *list = json_array();
    for (int k = 0; k < count && list; k++)
        if (json_array_append_new(list, json_pack("{s:s, s:s}", "kernel", declined[k].kernel,
                                                  "why", declined[k].why)) != 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* "f32 (8, 28, 28, 1)" each. */
static json_t *describe_types(const CornuType *types, int count)
{
    json_t   *list = json_array();
    CornuText text;
    for (int i = 0; i < count; i++)
        list = cornu__json_append(list, json_string(cornu_type_print(&text, types[i])));
    return list;
}

static json_t *describe_step(const CornuExplanation *e, int i)
{
    const CornuExecutableStep *step = &e->steps[i];
    json_t *ops = json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:b, s:I, s:I, s:I, s:o}",
                            "layer", step->scope, "name", step->name, "kind", step->kind,
                            "kernel", step->kernel, "declined", describe_declined(e, i),
                            "in", describe_types(step->in, step->in_count), "out",
                            describe_types(step->out, step->out_count),
                            "per_shard", (int)step->per_shard, "flops", (json_int_t)step->flops,
                            "bytes_read", (json_int_t)step->bytes_read,
                            "bytes_written", (json_int_t)step->bytes_written, "measured",
                            e->runs ? json_pack("{s:f}", "seconds", e->here_s[i]) : json_null());
    if (!e->tpu) return ops;
    const CornuTpuOp *op = &e->tpu->ops[i];
    json_t *modelled = json_pack(
        "{s:[I,I,I,I], s:i, s:I, s:{s:I, s:I, s:I}, s:I, s:I, s:{s:f, s:f, s:f}, s:I, s:I, s:I,"
        " s:f, s:f, s:f, s:f, s:f, s:s}",
        "product", (json_int_t)op->product.count, (json_int_t)op->product.m,
        (json_int_t)op->product.k, (json_int_t)op->product.n, "passes", op->passes,
        "tiles", (json_int_t)op->cycles.folds,
        "vmem", "blocks", (json_int_t)op->tiling.blocks, "rows", (json_int_t)op->tiling.rows,
        "bytes", (json_int_t)op->tiling.bytes, "useful_macs", (json_int_t)op->useful_macs,
        "padded_macs", (json_int_t)op->cycles.padded_macs,
        "use", "padding", op->use_padding, "overlapped", op->use_overlapped, "no_overlap",
        op->use_no_overlap, "vector_ops", (json_int_t)op->vector_ops, "hbm_bytes",
        (json_int_t)op->hbm_bytes, "link_bytes", (json_int_t)op->link_bytes,
        "mxu_s", op->mxu_s, "vector_s", op->vector_s, "hbm_s", op->hbm_s, "links_s", op->links_s,
        "seconds", op->seconds, "bound", cornu_tpu_bound_name(op->bound));
    if (json_object_set_new(ops, "modelled", modelled) == 0) return ops;
    json_decref(ops);
    return NULL;
}

static json_t *describe_model(const CornuExplanation *e, const CornuTpuModel *tpu)
{
    const double steps = ceil((double)e->epoch_samples / (double)e->batch);
    return json_pack("{s:s, s:s, s:I, s:f, s:f, s:f, s:I, s:f, s:I, s:f, s:f, s:o, s:s, s:s}",
                     "profile", tpu->profile->name, "slice", tpu->slice.name,
                     "shards", (json_int_t)tpu->shards,
                     "device_s", tpu->device_s, "mxu_use", tpu->use_overlapped,
                     "links_s", tpu->links_s, "link_bytes", (json_int_t)tpu->link_bytes,
                     "infeed_s", tpu->infeed_s, "infeed_bytes", (json_int_t)tpu->infeed_bytes,
                     "dispatch_s", tpu->dispatch_s, "step_s", tpu->step_s,
                     "epoch_s", steps > 0.0 ? json_real(steps * tpu->step_s) : json_null(),
                     "device_bound", cornu_tpu_bound_name(tpu->device_bound),
                     "bound", cornu_tpu_bound_name(tpu->bound));
}

static json_t *describe_bytes(CornuBytes bytes)
{
    return json_pack("{s:I, s:I}", "now", (json_int_t)bytes.now, "peak", (json_int_t)bytes.peak);
}

static json_t *describe_memory(const CornuMemory *memory)
{
    json_t *all = json_pack("{s:I, s:o}", "capacity", (json_int_t)memory->capacity, "total",
                            describe_bytes(memory->total));
    for (int use = 0; use < CORNU_USE_COUNT; use++)
        if (json_object_set_new(all, cornu_use_name((CornuUse)use),
                                describe_bytes(memory->uses[use]))) {
            json_decref(all);
            return NULL;
        }
    return all;
}

/* Appends and sets what may be NULL for want of memory. */
static void append_item(json_t *list, json_t *item, bool *failed)
{
    if (json_array_append_new(list, item)) *failed = true;
}

static void set(json_t *all, const char *key, json_t *item, bool *failed)
{
    if (json_object_set_new(all, key, item)) *failed = true;
}

static json_t *describe_op(const CornuPlacedOp *op)
{
    const CornuPlacement *placement = &op->placement;
    CornuText             type;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i}",
                     "op", op->number, "name", cornu_program_op_name(op->op), "layer",
                     op->op->scope,
                     "result", cornu_type_print(&type, op->type),
                     "placed", cornu_placement_name(placement->kind), "how", placement->how,
                     "why", placement->why, "fallbacks", placement->fallbacks, "step", op->step);
}

static json_t *describe_padded(const CornuExplanation *e, const CornuPadded *padded)
{
    return json_pack("{s:s, s:s%, s:I, s:I, s:f, s:f}", "layer", padded->layer, "axis",
                     &padded->axis, (size_t)1, "extent", (json_int_t)padded->extent, "next",
                     (json_int_t)padded->next, "padding",
                     1.0 - (double)padded->extent / (double)padded->next, "mxu_time",
                     0.01 * cornu__explain_percent(padded->wasted_s, e->tpu->mxu_s));
}

/* ---- The parts ---- */

static json_t *describe_mxu(const CornuExplanation *e)
{
    const CornuTpuModel *tpu = e->tpu;
    if (!tpu) return json_null();
    return json_pack("{s:f, s:f, s:I, s:I, s:I, s:f, s:f}", "rows", tpu->profile->mxu_rows.value,
                     "columns", tpu->profile->mxu_columns.value, "tiles", (json_int_t)tpu->folds,
                     "useful_macs", (json_int_t)tpu->useful_macs, "padded_macs",
                     (json_int_t)tpu->padded_macs, "useful", 0.01 * cornu__explain_percent(
                         (double)tpu->useful_macs, (double)tpu->padded_macs),
                     "use", tpu->use_overlapped);
}

static json_t *describe_vmem(const CornuExplanation *e)
{
    const int most = cornu__explain_vmem(e);
    if (!e->tpu) return json_null();
    return json_pack("{s:I, s:f, s:s}", "bytes",
                     (json_int_t)(most < 0 ? 0 : e->tpu->ops[most].tiling.bytes), "capacity",
                     0x1p20 * e->tpu->profile->vmem_mib.value, "layer",
                     most < 0 ? "" : e->steps[most].scope);
}

static void set_lists(const CornuExplanation *e, json_t *all, bool *failed)
{
    enum { MOST = 1024 };
    CornuAdvice  advice[CORNU_EXPLAIN_ADVICE];
    CornuPadded *padded = cornu__allocate(MOST, sizeof *padded);
    const int    lines = cornu__explain_advise(e, advice);
    const int    pads = padded ? cornu__explain_padded(e, padded, MOST) : 0;
    json_t      *lists[] = { json_array(), json_array(), json_array(), json_array(), json_array() };
    const char  *keys[] = { "reasons", "ops", "padding", "steps", "advice" };
    for (int i = 0; i < e->note_count; i++) append_item(lists[0], json_string(e->notes[i]), failed);
    for (int i = 0; i < e->placed_count; i++)
        append_item(lists[1], describe_op(&e->placed[i]), failed);
    for (int i = 0; i < pads; i++) append_item(lists[2], describe_padded(e, &padded[i]), failed);
    for (int i = 0; i < e->step_count; i++) append_item(lists[3], describe_step(e, i), failed);
    for (int i = 0; i < lines; i++) append_item(lists[4], json_string(advice[i].text), failed);
    for (int i = 0; i < 5; i++) set(all, keys[i], lists[i], failed);
    *failed |= !padded;
    cornu__release(padded);
}

/* What is modelled: the device's own TPU alone, or that and others. */
static json_t *list_models(const CornuExplanation *e, bool *failed)
{
    json_t *list = json_array();
    if (e->tpu && !e->config.others) append_item(list, describe_model(e, e->tpu), failed);
    for (int i = 0; i < CORNU_EXPLAIN_SHARDS; i++)
        if (e->by_shards[i]) append_item(list, describe_model(e, e->by_shards[i]), failed);
    for (int i = 0; i < CORNU_EXPLAIN_PROFILES; i++)
        if (e->by_profile[i]) append_item(list, describe_model(e, e->by_profile[i]), failed);
    return list;
}

static json_t *list_inputs(const CornuExplanation *e, bool *failed)
{
    json_t    *list = json_array();
    CornuText  type;
    for (int i = 0; e->subject.step && i < e->subject.step->x_count; i++) {
        const char *name = cornu_model_input_name(e->subject.model, i);
        append_item(list, json_pack("{s:s, s:s}", "name", name ? name : "", "type",
                                    cornu_type_print(&type, e->subject.step->x_types[i])), failed);
    }
    return list;
}

static json_t *describe_numbers(const CornuExplanation *e)
{
    const CornuStatistics *s = &e->statistics;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:I, s:i, s:i, s:i, s:i, s:I, s:I, s:I,"
        " s:I}",
        "model", e->model, "device", e->description, "kind", e->tpu ? "emulated" : "native",
        "step", e->trains ? "training" : e->function ? "function" : "prediction",
        "policy", e->policy, "parameters", (json_int_t)e->parameters, "batch_size",
        (json_int_t)e->batch, "loss", e->loss, "target", e->target, "targets_per_sample",
        (json_int_t)e->targets, "shards", e->shards, "threads", e->threads, "processes",
        e->exchanges.processes, "own_shards", e->exchanges.own,
        "flops", (json_int_t)s->flops, "fallbacks", (json_int_t)s->fallbacks, "bytes_planned",
        (json_int_t)s->bytes_planned, "bytes_moved", (json_int_t)s->bytes_moved);
}

static json_t *describe_explanation(const CornuExplanation *e)
{
    int     of[CORNU_PLACED_COUNT];
    bool    failed = false;
    json_t *all = describe_numbers(e), *placed = json_object();
    cornu__explain_count_placed(e, of);
    for (int kind = 0; kind < CORNU_PLACED_COUNT; kind++)
        set(placed, cornu_placement_name(kind), json_integer(of[kind]), &failed);
    set(all, "placed", placed, &failed);
    set(all, "inputs", list_inputs(e, &failed), &failed);
    set(all, "exchanges", cornu__explain_exchanges_json(&e->exchanges), &failed);
    set(all, "memory_of_a_shard", describe_memory(&e->memory), &failed);
    set(all, "remat", cornu__explain_remat_json(e), &failed);
    set(all, "vmem", describe_vmem(e), &failed);
    set(all, "mxu", describe_mxu(e), &failed);
    set(all, "measured", e->runs ? json_pack("{s:f, s:i, s:s}", "step_s", e->wall_s, "runs",
                                             e->runs, "clock", cornu_clock_name(e->clock))
                                 : json_null(), &failed);
    set(all, "modelled", list_models(e, &failed), &failed);
    set(all, "mesh", cornu__explain_mesh_json(e), &failed);
    set_lists(e, all, &failed);
    if (!failed) return all;
    json_decref(all);
    return NULL;
}

json_t *cornu__explain_json(const CornuExplanation *e)
{
    return e->config.pipeline ? cornu__explain_pipeline_json(e) : describe_explanation(e);
}

char *cornu_explanation_to_json(const CornuExplanation *explanation)
{
    CORNU__NEED_TO_MAKE(explanation);
    if (cornu__refused()) return NULL;
    json_t *all = cornu__explain_json(explanation);
    char   *text = all ? json_dumps(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(all);
    if (text) return text;
    return cornu__fail_null(CORNU_ERR_MEMORY, "%s: no memory for its explanation as JSON",
                            explanation->model);
}
