/* cornu_adapt: the layers that learn from data before training. */
#include "adapt_internal.h"

typedef CornuStatus Adapt(const CornuAdaptConfig *config);

/* NULL if there is nothing to learn for layers of the class. */
static Adapt *adapt_of(const CornuLayerClass *kind)
{
    static const struct { const CornuLayerClass *kind; Adapt *adapt; } each[] = {
        { &cornu__normalization_class, cornu__adapt_normalization },
        { &cornu__discretization_class, cornu__adapt_discretization },
        { &cornu__integer_lookup_class, cornu__adapt_integer_lookup },
        { &cornu__string_lookup_class, cornu__adapt_string_lookup },
        { &cornu__text_vectorization_class, cornu__adapt_text_vectorization },
    };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++)
        if (kind == each[i].kind) return each[i].adapt;
    return NULL;
}

bool cornu__layer_adapts(const CornuLayerClass *kind) { return adapt_of(kind) != NULL; }

CornuStatus cornu_adapt_from(const CornuAdaptConfig *config)
{
    CORNU__TRY(cornu__refused_status());
    if (!config->layer) return cornu__fail(CORNU_ERR_ARGUMENT, "cornu_adapt: the layer is NULL");
    const char *name = cornu_layer_name(config->layer);
    Adapt      *adapt = adapt_of(config->layer->kind);
    if (!adapt)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: is of class %s, expected Normalization, "
                           "Discretization, IntegerLookup, StringLookup or TextVectorization", name,
                           config->layer->kind->class_name);
    if (adapt != cornu__adapt_normalization && config->layer->compiled)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: a compiled model uses it, expected "
                           "cornu_adapt before cornu_compile", name);
    return cornu__fail_prefix(adapt(config), name);
}
