/* The vocabulary of a layer of strings. */
#include "string_index_internal.h"

static CornuStringIndex *index_of(const CornuLayer *layer)
{
    CornuLayer *own = (CornuLayer *)(uintptr_t)layer;
    return layer->kind == &cornu__string_lookup_class ? cornu__string_lookup_index(own)
         : layer->kind == &cornu__text_vectorization_class ? cornu__text_vectorization_index(own)
                                                           : NULL;
}

CornuStatus cornu_layer_vocabulary(const CornuLayer *layer, CornuTexts *vocabulary)
{
    if (cornu_error_pending()) return cornu_error_status();
    if (!layer) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_layer_vocabulary: the layer is NULL");
    const CornuStringIndex *index = index_of(layer);
    if (index) return cornu__string_index_list(index, vocabulary);
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is of class %s, expected StringLookup or "
                       "TextVectorization", cornu_layer_name(layer), layer->kind->class_name);
}
