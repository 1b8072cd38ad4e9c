/* Keeps the folder of parts within its limit. */
#ifndef CORNU_DATASETS_EVICT_INTERNAL_H
#define CORNU_DATASETS_EVICT_INTERNAL_H

#include <stdint.h>

/* Removes files of the folders in `folder`, those first that were used longest ago, while all of
 * them have more than `limit` bytes, and folders that are empty. Not `newest`, and not what is
 * locked. Nothing happens while another thread or program does this, or if a folder cannot be
 * read: the next call will do it. */
void cornu__evict(const char *folder, int64_t limit, const char *newest);

#endif
