#include "auto_layout.h"

#include <math.h>
#include <string.h>

#include "../../device/device_internal.h"
#include "auto_layout_internal.h"

enum { BEST = 3, MESHES = 16 };

struct CornuAutoLayout {
    CornuAutoLayoutConfig config;
    const CornuTpuProfile *profile;
    CornuCutGroups         groups;
    CornuLayoutChoice      best[BEST], data_parallel;
    int                    best_count, priced, too_large, meshes;
    int64_t                hbm, least;   /* of a shard: what it has, what any layout takes */
    bool                   usual;        /* only the usual layouts are priced */
    char                   batch[32];
};

/* The price of a cutting on the mesh in question. */
typedef struct {
    CornuCutting cutting;
    double       step_s;
    int64_t      bytes;
} Price;

/* One mesh that is searched. */
typedef struct {
    CornuAutoLayout *all;
    CornuCutMesh     mesh;
    Price           *prices;      /* of all that have been asked for */
    int              count, space;
} Search;

/* ---- Prices ---- */

static CornuExplanation *explain_cutting(const CornuAutoLayout *all, CornuMesh mesh,
                                         const CornuLayoutRow *rows)
{
    const CornuAutoLayoutConfig *config = &all->config;
    char                         device[32];
    snprintf(device, sizeof device, "tpu:%s", all->profile->name);
    CornuExplainConfig explain = { .model = config->model, .device_name = device, .mesh = mesh,
                                   .layout_map = rows, .batch_size = config->batch_size,
                                   .extent = config->extent, .loss = config->loss };
    memcpy(explain.inputs, config->inputs, sizeof explain.inputs);
    memcpy(explain.labels, config->labels, sizeof explain.labels);
    return cornu_explain_from(&explain);
}

static bool better(const CornuLayoutChoice *a, const CornuLayoutChoice *b)
{
    if (a->fits != b->fits) return a->fits;
    if (!a->fits) return a->bytes < b->bytes;
    return a->step_s != b->step_s ? a->step_s < b->step_s : a->bytes < b->bytes;
}

static void release_rows(CornuLayoutChoice *choice)
{
    cornu__release((void *)(uintptr_t)choice->layout_map);
    choice->layout_map = NULL;
}

/* Keeps it if it is among the best, which then has its rows; else frees these. */
static void keep(CornuAutoLayout *all, CornuLayoutChoice choice)
{
    int at = all->best_count;
    while (at > 0 && better(&choice, &all->best[at - 1])) at--;
    if (at == BEST) {
        release_rows(&choice);
        return;
    }
    if (all->best_count == BEST) release_rows(&all->best[--all->best_count]);
    for (int i = all->best_count++; i > at; i--) all->best[i] = all->best[i - 1];
    all->best[at] = choice;
}

static CornuLayoutChoice choice_of(const Search *search, const CornuExplanation *e,
                                   CornuCutting cutting, CornuLayoutRow *rows)
{
    const CornuTpuModel *tpu = cornu_explanation_model(e);
    CornuLayoutChoice    choice = { .mesh = search->mesh.mesh, .layout_map = rows,
                                    .step_s = tpu->device_s, .mxu_s = tpu->mxu_s,
                                    .vector_s = tpu->vector_s, .hbm_s = tpu->hbm_s,
                                    .links_s = tpu->links_s, .bytes = e->memory.total.now };
    choice.fits = choice.bytes <= search->all->hbm;
    cornu__cut_summary(&search->all->groups, cutting, choice.summary, sizeof choice.summary);
    return choice;
}

static bool is_whole(const Search *search, CornuCutting cutting)
{
    int i = 0;
    while (i < search->all->groups.count && cutting.of[i] == CORNU_CUT_NOT) i++;
    return i == search->all->groups.count;
}

static void note_choice(Search *search, const CornuLayoutChoice *choice, CornuCutting cutting)
{
    CornuAutoLayout *all = search->all;
    const bool       over_all = search->mesh.model < 0 || all->config.mesh.axes;
    all->priced++;
    all->too_large += !choice->fits;
    if (!all->least || choice->bytes < all->least) all->least = choice->bytes;
    if (over_all && is_whole(search, cutting)) {
        all->data_parallel = *choice;
        all->data_parallel.layout_map = NULL;
    }
}

static CornuStatus compute_price(Search *search, CornuCutting cutting, Price *price)
{
    CornuLayoutRow *rows = cornu__cut_rows(&search->all->groups, &search->mesh, cutting);
    if (!rows) return cornu_error_take();
    CornuExplanation *e = explain_cutting(search->all, search->mesh.mesh, rows);
    if (!e) {
        cornu__release(rows);
        return cornu_error_take();
    }
    const CornuLayoutChoice choice = choice_of(search, e, cutting, rows);
    snprintf(search->all->batch, sizeof search->all->batch, "%lld samples", (long long)e->batch);
    cornu_explanation_free(e);
    *price = (Price){ cutting, choice.step_s, choice.bytes };
    note_choice(search, &choice, cutting);
    keep(search->all, choice);
    return CORNU_OK;
}

/* The price, which is computed once. */
static CornuStatus price_of(Search *search, CornuCutting cutting, Price *price)
{
    for (int i = 0; i < search->count; i++)
        if (!memcmp(&search->prices[i].cutting, &cutting, sizeof cutting)) {
            *price = search->prices[i];
            return CORNU_OK;
        }
    CORNU__TRY(cornu__reserve(&search->prices, &search->space, search->count, 1,
                              sizeof *search->prices));
    CORNU__TRY(compute_price(search, cutting, price));
    search->prices[search->count++] = *price;
    return CORNU_OK;
}

static bool divides(const Search *search, int group, int cut)
{
    return cornu__cut_divides(&search->all->groups, &search->mesh, group, (CornuCut)cut);
}

/* ---- The chain ---- */

/* What a cut adds to the whole model's price: alone, and together with a cut of the group before
 * beyond what both add alone. */
typedef struct {
    double seconds, bytes;
} Added;

typedef struct {
    bool  possible[CORNU_AUTO_GROUPS][CORNU_CUTS];
    Added alone[CORNU_AUTO_GROUPS][CORNU_CUTS];
    Added pair[CORNU_AUTO_GROUPS][CORNU_CUTS][CORNU_CUTS];   /* cut of the one before, own */
} Chain;

static Added added(Price price, Price to)
{
    return (Added){ price.step_s - to.step_s, (double)(price.bytes - to.bytes) };
}

/* Both are cut along the same axis of the mesh, so that one may leave the other what it makes. */
static bool exchanges(int before, int own)
{
    return (before == CORNU_CUT_COLUMNS || before == CORNU_CUT_ROWS) &&
           (own == CORNU_CUT_COLUMNS || own == CORNU_CUT_ROWS);
}

static CornuStatus price_pairs(Search *search, Chain *chain, int group, Price whole)
{
    for (int before = 0; before < CORNU_CUTS; before++)
        for (int own = 0; own < CORNU_CUTS; own++) {
            CornuCutting both = { { 0 } };
            Price        price;
            if (!exchanges(before, own) || !chain->possible[group - 1][before] ||
                !chain->possible[group][own])
                continue;
            both.of[group - 1] = (unsigned char)before;
            both.of[group] = (unsigned char)own;
            CORNU__TRY(price_of(search, both, &price));
            const Added together = added(price, whole);
            chain->pair[group][before][own] = (Added){
                together.seconds - chain->alone[group - 1][before].seconds -
                    chain->alone[group][own].seconds,
                together.bytes - chain->alone[group - 1][before].bytes -
                    chain->alone[group][own].bytes };
        }
    return CORNU_OK;
}

static CornuStatus price_chain(Search *search, Chain *chain, Price whole)
{
    for (int group = 0; group < search->all->groups.count; group++) {
        for (int cut = 0; cut < CORNU_CUTS; cut++) {
            CornuCutting one = { { 0 } };
            Price        price;
            chain->possible[group][cut] = divides(search, group, cut);
            if (!chain->possible[group][cut]) continue;
            one.of[group] = (unsigned char)cut;
            CORNU__TRY(price_of(search, one, &price));
            chain->alone[group][cut] = added(price, whole);
        }
        if (group > 0) CORNU__TRY(price_pairs(search, chain, group, whole));
    }
    return CORNU_OK;
}

/* ---- Dynamic programming ---- */

enum { LABELS = 32 };

/* Cuts of the first groups, by what they add. Of those with the same last cut only one that is
 * faster or smaller than each other is of use. */
typedef struct {
    Added        sum;
    CornuCutting cutting;
} Label;

typedef struct {
    Label labels[CORNU_CUTS][LABELS];
    int   count[CORNU_CUTS];
} Front;

/* In order of time. Where there are too many, the slowest but the smallest goes. */
static void add_label(Front *front, int cut, const Label *label)
{
    Label *of = front->labels[cut];
    int   *count = &front->count[cut], at = 0, kept;
    while (at < *count && of[at].sum.seconds <= label->sum.seconds)
        if (of[at++].sum.bytes <= label->sum.bytes) return;
    for (kept = at; kept < *count && of[kept].sum.bytes >= label->sum.bytes;) kept++;
    if (kept == at && *count == LABELS) {
        if (at >= LABELS - 1) return;
        of[LABELS - 2] = of[LABELS - 1];
        --*count;
    }
    memmove(&of[at + 1], &of[kept], (size_t)(*count - kept) * sizeof *of);
    *count += 1 + at - kept;
    of[at] = *label;
}

static void extend(const Chain *chain, int group, const Front *from, Front *to)
{
    *to = (Front){ .count = { 0 } };
    for (int before = 0; before < CORNU_CUTS; before++)
        for (int i = 0; i < from->count[before]; i++)
            for (int own = 0; own < CORNU_CUTS; own++) {
                Label       label = from->labels[before][i];
                const Added alone = chain->alone[group][own];
                const Added pair = chain->pair[group][before][own];
                if (!chain->possible[group][own]) continue;
                label.cutting.of[group] = (unsigned char)own;
                label.sum.seconds += alone.seconds + pair.seconds;
                label.sum.bytes += alone.bytes + pair.bytes;
                add_label(to, own, &label);
            }
}

/* The cutting that the chain says is fastest of those that it says fit; else the smallest. */
static CornuCutting best_of(const Front *front, double room)
{
    const Label *best = NULL;
    for (int cut = 0; cut < CORNU_CUTS; cut++)
        for (int i = 0; i < front->count[cut]; i++) {
            const Label *label = &front->labels[cut][i];
            const bool   fits = label->sum.bytes <= room;
            const bool   fit = best && best->sum.bytes <= room;
            if (!best || (fits && !fit) ||
                (fits == fit && (fits ? label->sum.seconds < best->sum.seconds
                                      : label->sum.bytes < best->sum.bytes)))
                best = label;
        }
    return best->cutting;
}

static CornuStatus solve(const Search *search, const Chain *chain, Price whole, CornuCutting *to)
{
    Front *fronts = cornu__allocate(2, sizeof *fronts), *from = fronts, *next = fronts + 1;
    if (!fronts) return CORNU_ERR_MEMORY;
    from->count[CORNU_CUT_NOT] = 1;
    for (int group = 0; group < search->all->groups.count; group++) {
        Front *made = next;
        extend(chain, group, from, made);
        next = from;
        from = made;
    }
    *to = best_of(from, (double)(search->all->hbm - whole.bytes));
    cornu__release(fronts);
    return CORNU_OK;
}

/* ---- Improving ---- */

static bool cheaper(const Search *search, Price a, Price b)
{
    const int64_t hbm = search->all->hbm;
    const bool    fits = a.bytes <= hbm, fit = b.bytes <= hbm;
    if (fits != fit) return fits;
    if (!fits) return a.bytes < b.bytes;
    return a.step_s != b.step_s ? a.step_s < b.step_s : a.bytes < b.bytes;
}

/* Other cuts of a group and of the next one. */
static CornuStatus improve_at(Search *search, int group, Price *best, bool *improved)
{
    const bool alone = group + 1 == search->all->groups.count;
    for (int own = 0; own < CORNU_CUTS; own++)
        for (int next = 0; next < (alone ? 1 : CORNU_CUTS); next++) {
            CornuCutting other = best->cutting;
            Price        price;
            other.of[group] = (unsigned char)own;
            if (!alone) other.of[group + 1] = (unsigned char)next;
            if (!divides(search, group, own) || (!alone && !divides(search, group + 1, next)))
                continue;
            CORNU__TRY(price_of(search, other, &price));
            if (!cheaper(search, price, *best)) continue;
            *best = price;
            *improved = true;
        }
    return CORNU_OK;
}

static CornuStatus improve(Search *search, CornuCutting from)
{
    enum { ROUNDS = 8 };
    Price best;
    bool  improved = true;
    CORNU__TRY(price_of(search, from, &best));
    for (int round = 0; round < ROUNDS && improved; round++) {
        improved = false;
        for (int group = 0; group < search->all->groups.count; group++)
            CORNU__TRY(improve_at(search, group, &best, &improved));
    }
    return CORNU_OK;
}

/* ---- Meshes ---- */

/* All layers fully; heads of attention, and of others columns and rows by turns. */
static CornuStatus price_usual(Search *search)
{
    const CornuCutGroups *groups = &search->all->groups;
    CornuCutting          fully = { { 0 } }, turns = { { 0 } };
    Price                 price;
    int                   before = CORNU_CUT_NOT;
    for (int i = 0; i < groups->count; i++) {
        const bool rows = before == CORNU_CUT_COLUMNS && divides(search, i, CORNU_CUT_ROWS);
        const int  cut = rows ? CORNU_CUT_ROWS
                       : divides(search, i, CORNU_CUT_COLUMNS) ? CORNU_CUT_COLUMNS : CORNU_CUT_NOT;
        before = groups->groups[i].attention ? CORNU_CUT_NOT : cut;
        turns.of[i] = (unsigned char)cut;
        if (divides(search, i, CORNU_CUT_FULLY)) fully.of[i] = CORNU_CUT_FULLY;
    }
    CORNU__TRY(price_of(search, fully, &price));
    return price_of(search, turns, &price);
}

static CornuStatus search_mesh(Search *search)
{
    const CornuCutting none = { { 0 } };
    CornuCutting       best;
    Price              whole;
    Chain             *chain = cornu__allocate(1, sizeof *chain);
    if (!chain) return CORNU_ERR_MEMORY;
    CornuStatus status = price_of(search, none, &whole);
    if (!status && search->all->usual) {
        cornu__release(chain);
        return price_usual(search);
    }
    if (!status) status = price_chain(search, chain, whole);
    if (!status) status = solve(search, chain, whole, &best);
    if (!status) status = improve(search, best);
    cornu__release(chain);
    return status;
}

/* A mesh over which the batch's rows cannot be dealt is passed over, but not the only one. */
static CornuStatus try_mesh(CornuAutoLayout *all, CornuMesh mesh, bool only)
{
    Search            search = { .all = all, .mesh = cornu__cut_mesh(mesh) };
    const CornuStatus status = search_mesh(&search);
    cornu__release(search.prices);
    all->meshes += !status;
    return status == CORNU_ERR_SHAPE && !only ? CORNU_OK : status;
}

static CornuStatus try_meshes(CornuAutoLayout *all, int shards)
{
    for (int model = 1; model <= shards; model++) {
        const CornuMesh mesh = { 2, { shards / model, model }, { "batch", "model" } };
        if (shards % model == 0) CORNU__TRY(try_mesh(all, mesh, false));
    }
    return CORNU_OK;
}

/* ---- The answer ---- */

static CornuStatus check_config(const CornuAutoLayoutConfig *config)
{
    if (config->shards < 0 || config->shards > CORNU_MAX_SHARDS || config->hbm_bytes < 0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "auto_layout: .shards is %d and .hbm_bytes %lld, "
                           "expected 1 to %d and 1 or more", config->shards,
                           (long long)config->hbm_bytes, CORNU_MAX_SHARDS);
    if (config->mesh.axes && config->shards &&
        config->shards != cornu_mesh_size(&config->mesh, ~0u))
        return cornu__fail(CORNU_ERR_ARGUMENT, "auto_layout: .shards is %d and the mesh has %d, "
                           "expected one of them", config->shards,
                           cornu_mesh_size(&config->mesh, ~0u));
    if (!cornu_model_built(config->model))
        return cornu__fail(CORNU_ERR_ARGUMENT, "auto_layout: %s is not built; give its input shape "
                           "or load it", cornu_model_name(config->model));
    return cornu__fail_prefix(cornu_mesh_check(&config->mesh), "auto_layout");
}

static CornuStatus choose(CornuAutoLayout *all)
{
    const CornuAutoLayoutConfig *config = &all->config;
    CORNU__TRY(check_config(config));
    all->profile = cornu_tpu_profile(config->profile ? config->profile : "v3-8");
    if (!all->profile) return cornu_error_take();
    all->hbm = config->hbm_bytes ? config->hbm_bytes
                                 : (int64_t)cornu_tpu_replica_hbm(all->profile);
    CORNU__TRY(cornu__cut_groups(config->model, &all->groups));
    const int shards = config->shards ? config->shards : (int)all->profile->shards.value;
    CORNU__TRY(config->mesh.axes ? try_mesh(all, config->mesh, true) : try_meshes(all, shards));
    if (all->best_count == 0)
        return cornu__fail(CORNU_ERR_SHAPE, "auto_layout: %s: over no mesh of %d shards can the "
                           "batch be dealt", cornu_model_name(config->model), shards);
    if (all->best[0].fits) return CORNU_OK;
    return cornu__fail(CORNU_ERR_MEMORY, "auto_layout: no layout of %s fits: of %d the smallest "
                       "takes %.1f MB of a shard's %.1f", cornu_model_name(config->model),
                       all->priced, 1e-6 * (double)all->least, 1e-6 * (double)all->hbm);
}

CornuAutoLayout *cornu_auto_layout_from(const CornuAutoLayoutConfig *config)
{
    CORNU__NEED_TO_MAKE(config);
    return cornu__auto_layout(config, false);
}

CornuAutoLayout *cornu__auto_layout(const CornuAutoLayoutConfig *config, bool usual)
{
    CORNU__NEED_TO_MAKE(config->model);
    if (cornu__refused()) return NULL;
    CornuAutoLayout *all = cornu__allocate(1, sizeof *all);
    if (!all) return cornu__null();
    all->config = *config;
    all->usual = usual;
    if (choose(all) == CORNU_OK) return all;
    cornu_auto_layout_free(all);
    return cornu__null();
}

void cornu_auto_layout_free(CornuAutoLayout *all)
{
    if (!all) return;
    for (int i = 0; i < all->best_count; i++) release_rows(&all->best[i]);
    cornu__cut_groups_free(&all->groups);
    cornu__release(all);
}

const CornuLayoutChoice *cornu_auto_layout_choice(const CornuAutoLayout *all, int i)
{
    CORNU__NEED_OR(all, NULL);
    return i >= 0 && i < all->best_count && all->best[i].fits ? &all->best[i] : NULL;
}

const CornuLayoutChoice *cornu_auto_layout_data_parallel(const CornuAutoLayout *all)
{
    CORNU__NEED_OR(all, NULL);
    return all->data_parallel.step_s > 0.0 ? &all->data_parallel : NULL;
}

/* ---- Five lines ---- */

static void print_choice(const CornuLayoutChoice *choice, FILE *to)
{
    CornuMeshText text;
    fprintf(to, "%s %.3f ms, %.1f MB: %s\n", cornu_mesh_print(&text, &choice->mesh),
            1e3 * choice->step_s, 1e-6 * (double)choice->bytes, choice->summary);
}

/* What sets the first apart from data parallelism. */
static void print_reason(const CornuAutoLayout *all, FILE *to)
{
    const CornuLayoutChoice *best = &all->best[0], *plain = &all->data_parallel;
    if (plain->step_s <= 0.0) {
        fputs("Data parallelism has more shards than the batch has rows.\n", to);
        return;
    }
    fprintf(to, "Data parallelism %.3f ms, %.1f MB%s; 1 takes %.0f percent of its time: MXU %+.3f "
            "ms, HBM %+.3f, links %+.3f.\n", 1e3 * plain->step_s, 1e-6 * (double)plain->bytes,
            plain->fits ? "" : ", which do not fit", 100.0 * best->step_s / plain->step_s,
            1e3 * (best->mxu_s - plain->mxu_s), 1e3 * (best->hbm_s - plain->hbm_s),
            1e3 * (best->links_s - plain->links_s));
}

CornuStatus cornu_auto_layout_print(const CornuAutoLayout *all, FILE *to)
{
    CORNU__NEED(all);
    CORNU__NEED(to);
    const int shards = cornu_mesh_size(&all->best[0].mesh, ~0u);
    fprintf(to, "%s, %s on %d shards of %s: %d layouts on %d mesh%s modelled, %d do not fit %.0f "
            "MB of HBM.\n", cornu_model_name(all->config.model), all->batch, shards,
            all->profile->name, all->priced, all->meshes, all->meshes == 1 ? "" : "es",
            all->too_large, 1e-6 * (double)all->hbm);
    for (int i = 0; i < BEST; i++) {
        const CornuLayoutChoice *choice = cornu_auto_layout_choice(all, i);
        fprintf(to, "%d. ", i + 1);
        if (choice) print_choice(choice, to);
        else fputs("No other fits.\n", to);
    }
    print_reason(all, to);
    return CORNU_OK;
}
