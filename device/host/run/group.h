/* Running groups of elementwise ops (compile/plan/group.h). */
#ifndef CORNU_DEVICE_HOST_RUN_GROUP_H
#define CORNU_DEVICE_HOST_RUN_GROUP_H

#include "../compile/plan/group.h"
#include "../machine/threads.h"

/* `in` has an address for each of the group's inputs. CORNU_ERR_VALUE if the operands of a
 * random_uniform do not fit in 32 bits. */
CornuStatus cornu__group_run(const CornuGroup *group, const void *const *in, void *const *out,
                             CornuThreads *threads, void *scratch);

#endif
