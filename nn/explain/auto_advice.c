/* What a message adds when a model takes more memory than a shard has: layouts that would fit. */
#include <string.h>

#include "../../device/device_internal.h"
#include "../model/compiled_internal.h"
#include "../model/host_stage_internal.h"
#include "auto_layout_internal.h"

/* Of devices whose time is modelled, if there are other shards and no mesh cuts anything yet. */
static bool is_for(const CornuModel *model)
{
    const CornuDevice *device = model->device;
    return device && device->profile && device->shards > 1 && !device->mesh.axes &&
           cornu_model_built(model);
}

enum { USUAL_BATCH = 32 };

static CornuAutoLayout *find_layouts(CornuModel *model, const CornuArray *x, const CornuArray *y)
{
    const CornuDevice    *device = model->device;
    CornuSymbol          *fed[CORNU_MAX_MODEL_TENSORS];
    CornuAutoLayoutConfig config = { .model = model, .profile = device->profile,
                                     .shards = device->shards,
                                     .hbm_bytes = device->memory.capacity };
    const int inputs = cornu__model_fed(model, fed);
    if (x && x[0].type.shape.rank > 0) config.batch_size = x[0].type.shape.extent[0];
    else if (cornu_model_batch_size(model) <= 0) config.batch_size = USUAL_BATCH;
    for (int i = 0; x && i < inputs; i++) config.inputs[i] = x[i].type;
    for (int i = 0; y && i < model->output_count; i++) config.labels[i] = y[i].type;
    return cornu__auto_layout(&config, true);
}

/* After a failure for want of memory, whose message it extends. x and y: of a batch, or NULL. */
void cornu__compiled_advise(CornuModel *model, const CornuArray *x, const CornuArray *y)
{
    char message[CORNU_MESSAGE_SIZE * 5 / 8];   /* the rest is for what is added */
    if (!is_for(model) || cornu_error_pending()) return;
    snprintf(message, sizeof message, "%s", cornu_error_message());
    CornuAutoLayout *layouts = find_layouts(model, x, y);
    if (!layouts) {
        cornu_error_take();
        cornu__fail(CORNU_ERR_MEMORY, "%s", message);
        return;
    }
    const CornuLayoutChoice *best = cornu_auto_layout_choice(layouts, 0);
    CornuMeshText            text;
    cornu__fail(CORNU_ERR_MEMORY, "%s. It fits if a mesh cuts it, as %s, %.1f MB of a shard%s: "
                "%.160s. cornu_auto_layout and cornu explain --mesh auto find the fastest layouts",
                message, cornu_mesh_print(&text, &best->mesh), 1e-6 * (double)best->bytes,
                x ? "" : " with batches of 32", best->summary);
    cornu_auto_layout_free(layouts);
}
