/* Names of classes, as a user gives them. */
#ifndef CORNU_DATASETS_LABELS_H
#define CORNU_DATASETS_LABELS_H

#include "../../device/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Reads `count` names. A text with a comma is the list itself, "cat,dog"; any other is the path of
 * a file with a name on each line. Blanks around a name are no part of it.
 * The array and its texts are one block, freed with free(). NULL and a pending error:
 * CORNU_ERR_FILE if the file cannot be read, CORNU_ERR_VALUE for another number of names, one that
 * is empty or holds control characters, and two that are the same.
 */
char **cornu_labels_read(const char *list_or_path, int count);

#ifdef __cplusplus
}
#endif
#endif
