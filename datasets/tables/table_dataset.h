/*
 * Rows of a table as a data set, from memory or, of a table .on_disk, from its file: training on
 * a CSV that is larger than memory.
 *
 *     const char *const target[] = { "price", NULL };
 *     CornuTable   *table = cornu_table_load("flats.csv", .on_disk = true);
 *     CornuDataset *train = cornu_table_dataset(
 *         table, (CornuTableTakeConfig[]){ { .except = target }, { .columns = target } }, 2);
 *     cornu_table_free(table);
 *     train = cornu_dataset_batch(cornu_dataset_shuffle(train, 1), 256, false);
 */
#ifndef CORNU_DATASETS_TABLE_DATASET_H
#define CORNU_DATASETS_TABLE_DATASET_H

#include "../pipeline/dataset.h"
#include "table.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Element i is row i: component c what cornu_table_take makes of it with components[c], whose
 * .table and .to are ignored, f32 or i32 (n). The data set holds a reference to the table, which
 * remains the caller's, too. Any number of threads may read.
 *
 * NULL and a pending error: CORNU_ERR_ARGUMENT for a column that does not exist, or if there are no
 * columns, components or rows; CORNU_ERR_DTYPE. When an element is read: CORNU_ERR_VALUE as of
 * cornu_table_take; CORNU_ERR_FILE, and errors of cornu_table_load with the line, if the file has
 * changed.
 */
CornuDataset *cornu_table_dataset(CornuTable *table, const CornuTableTakeConfig *components,
                                  int count);

#ifdef __cplusplus
}
#endif
#endif
