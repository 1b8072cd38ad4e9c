/* Losses by name. */
#include "loss_internal.h"

CornuLoss *cornu_loss(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const CornuSerializableClass *kind = cornu__serializable_find(&cornu__losses, name);
    return kind ? cornu__serializable_default(kind, NULL) : NULL;
}
