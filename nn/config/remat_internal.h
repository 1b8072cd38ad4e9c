/* What layers ask of rematerialization. */
#ifndef CORNU_NN_REMAT_INTERNAL_H
#define CORNU_NN_REMAT_INTERNAL_H

#include "remat.h"

/* A scope's config, which the layers made in it share. */
typedef struct CornuRemat CornuRemat;

/* The innermost scope's, with one more reference; NULL: none. */
const CornuRemat *cornu__remat_in_scope(void);
/* That of cornu_remat, which needs no reference. */
extern const CornuRemat cornu__remat_full;
/* One more reference to it, which is returned; NULL gives NULL. */
const CornuRemat *cornu__remat_retain(const CornuRemat *remat);
/* Drops a reference; NULL is ignored. */
void              cornu__remat_release(const CornuRemat *remat);

/* NULL is CORNU_REMAT_OFF. */
CornuRematMode    cornu__remat_mode(const CornuRemat *remat);
/* Of CORNU_REMAT_LARGER_THAN; and whether CORNU_REMAT_LIST_OF_LAYERS has the name. */
int64_t           cornu__remat_threshold(const CornuRemat *remat);
bool              cornu__remat_lists(const CornuRemat *remat, const char *name);

#endif
