/* Class names, as given by a user. */
#ifndef CORNU_DATASETS_LABELS_H
#define CORNU_DATASETS_LABELS_H

#include "../../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reads `count` names. A string with a comma is the list itself, "cat,dog"; any other is the path
 * of a file with one name per line. Blanks around a name are trimmed.
 * The array and its strings are one block, freed with free(). NULL and a pending error:
 * CORNU_ERR_FILE if the file cannot be read, CORNU_ERR_VALUE for a different number of names, for
 * an empty name or one with control characters, and for duplicates.
 */
char **cornu_labels_read(const char *list_or_path, int count);

#ifdef __cplusplus
}
#endif
#endif
