/* The vocabulary of a layer of strings or integers. */
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
    CORNU__TRY(cornu__refused_status());
    if (!layer) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_layer_vocabulary: the layer is NULL");
    const CornuStringIndex *index = index_of(layer);
    if (index) return cornu__string_index_list(index, vocabulary);
    return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is of class %s, expected StringLookup or "
                       "TextVectorization", cornu_layer_name(layer), layer->kind->class_name);
}

bool cornu__layer_has_vocabulary(const CornuLayerClass *kind)
{
    return kind == &cornu__string_lookup_class || kind == &cornu__text_vectorization_class ||
           kind == &cornu__integer_lookup_class;
}

static CornuStatus strings_of(const CornuStringIndex *index, json_t **list, int64_t *specials)
{
    CornuTexts texts;
    CORNU__TRY(cornu__string_index_list(index, &texts));
    *list = json_array();
    *specials = cornu__string_index_start(index);
    for (int64_t i = 0; i < texts.count && *list; i++)
        *list = cornu__json_append(*list, json_string(texts.values[i]));
    cornu__release((void *)(uintptr_t)texts.values);
    return CORNU_OK;
}

char *cornu_layer_vocabulary_to_json(const CornuLayer *layer, bool no_special_tokens)
{
    CORNU__NEED_TO_MAKE(layer);
    json_t *list = NULL;
    int64_t specials = 0;
    if (cornu__refused()) return NULL;
    if (!cornu__layer_has_vocabulary(layer->kind))
        return cornu__fail_null(CORNU_ERR_ARGUMENT, "%s: is of class %s, expected StringLookup, "
                                "IntegerLookup or TextVectorization", cornu_layer_name(layer),
                                layer->kind->class_name);
    const CornuStringIndex *index = index_of(layer);
    if (!index) list = cornu__integer_lookup_vocabulary(layer, &specials);
    else if (strings_of(index, &list, &specials)) return cornu__null();
    for (int64_t i = 0; i < specials && no_special_tokens; i++) json_array_remove(list, 0);
    char *text = list ? cornu__json_text(list) : NULL;
    json_decref(list);
    if (text) return text;
    return cornu__fail_null(CORNU_ERR_VALUE, "%s: the vocabulary has a string that is not UTF-8, "
                            "or there is no memory for it", cornu_layer_name(layer));
}
