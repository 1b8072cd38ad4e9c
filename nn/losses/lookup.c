/* Losses by name. */
#include "loss_internal.h"

CornuLoss *cornu_loss(const char *name)
{
    CORNU__NEED_TO_MAKE(name);
    const CornuObjectClass *kind = cornu__object_find(&cornu__losses, name);
    return kind ? cornu__object_usual(kind, NULL) : NULL;
}
