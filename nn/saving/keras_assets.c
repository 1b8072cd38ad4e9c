/* What layers keep in files of their own in .keras archives: adapted vocabularies.
 * Source: keras/src/saving/saving_lib.py, _load_state. */
#include "keras_internal.h"

#include <stdio.h>
#include <string.h>

static CornuStatus read_one(const CornuZip *zip, const char *group, CornuLayer *layer)
{
    char           path[1100];
    unsigned char *bytes;
    size_t         size;
    const int      length = (int)(strlen(group) - strlen("/vars"));
    snprintf(path, sizeof path, "assets/%.*s/%s", length > 0 ? length : 0, group,
             cornu__keras_class(layer)->asset);
    const int i = zip ? cornu__zip_find(zip, path) : -1;
    if (i < 0)
        return cornu__fail(CORNU_ERR_FORMAT, "%s: has no vocabulary, and there is no %s in the "
                           "file", cornu_layer_name(layer), path);
    CORNU__TRY(cornu__zip_check_size(zip, i, CORNU__MOST_JSON));   /* a vocabulary as text */
    CORNU__TRY(cornu__zip_read(zip, i, &bytes, &size));
    const CornuStatus status =
        cornu__keras_class(layer)->read_asset(layer, (const char *)bytes, size);
    cornu__release(bytes);
    return cornu__fail_prefix(status, cornu_layer_name(layer));
}

/* A group has the name of its layer; layers of one name, in models inside models, follow each
 * other in the order of the groups. */
static CornuStatus read_layer(const CornuZip *zip, const CornuKerasLayout *layout, int *next,
                              CornuLayer *layer)
{
    if (cornu__keras_class(layer)->asset && cornu__keras_class(layer)->needs_asset(layer)) {
        int i = *next;
        while (i < layout->count && strcmp(layout->groups[i].name, cornu_layer_name(layer))) i++;
        if (i < layout->count) {
            CORNU__TRY(read_one(zip, layout->groups[i].path, layer));
            *next = i + 1;
        }
    }
    for (int i = 0; i < layer->inner_count; i++)
        CORNU__TRY(read_layer(zip, layout, next, layer->inner[i]));
    return CORNU_OK;
}

static bool needs_any(const CornuLayer *layer)
{
    bool any = cornu__keras_class(layer)->asset && cornu__keras_class(layer)->needs_asset(layer);
    for (int i = 0; i < layer->inner_count && !any; i++) any = needs_any(layer->inner[i]);
    return any;
}

CornuStatus cornu__keras_read_assets(const CornuZip *zip, CornuModel *model)
{
    CornuKerasLayout layout;
    int              next = 0;
    if (!needs_any(&model->base)) return CORNU_OK;
    CORNU__TRY(cornu__keras_layout(model, "layers", NULL, &layout));
    const CornuStatus status = read_layer(zip, &layout, &next, &model->base);
    cornu__keras_layout_free(&layout);
    return status;
}
