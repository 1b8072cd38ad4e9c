/* Misuse of data sets, images, tables and texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../datasets/pipeline/iterator.h"
#include "../../datasets/mnist/idx.h"
#include "../../datasets/images/image.h"
#include "../../datasets/images/image_folder.h"
#include "../../datasets/tables/table.h"
#include "../../datasets/text/text.h"
#include "../misuses.h"

static bool arrays_null(void)
{
    return nothing(cornu_dataset_from_arrays(NULL, 2));
}

static bool arrays_none(void)
{
    return nothing(cornu_dataset_from_arrays((CornuArray[]){ data_x() }, 0));
}

static bool arrays_999(void)
{
    CornuArray many[999];
    for (int i = 0; i < 999; i++) many[i] = data_x();
    return nothing(cornu_dataset_from_arrays(many, 999));
}

static bool arrays_no_data(void)
{
    return nothing(cornu_dataset_from_arrays((CornuArray[]){ cornu_array(NULL, CORNU_F32, 4, 2) },
        1));
}

static bool arrays_rank_99(void)
{
    CornuArray a = data_x();
    a.type.shape.rank = 99;
    return nothing(cornu_dataset_from_arrays(&a, 1));
}

static bool arrays_dtype_99(void)
{
    CornuArray a = data_x();
    a.type.dtype = (CornuDtype)99;
    return nothing(cornu_dataset_from_arrays(&a, 1));
}

static bool arrays_extent_negative(void)
{
    return nothing(cornu_dataset_from_arrays((CornuArray[]){ cornu_array(x, CORNU_F32, -32, 2) },
        1));
}

static bool dataset_batch_zero(void)
{
    return nothing(cornu_dataset_batch(dataset(), 0, false));
}

static bool dataset_batch_negative(void)
{
    return nothing(cornu_dataset_batch(dataset(), -3, false));
}

static bool dataset_batch_null(void)
{
    return nothing(cornu_dataset_batch(NULL, 3, false));
}

static bool dataset_map_null(void)
{
    const CornuType t = cornu_scalar(CORNU_F32);
    return nothing(cornu_dataset_map(dataset(), NULL, NULL, &t, 1));
}

static bool dataset_take_negative(void)
{
    return nothing(cornu_dataset_take(dataset(), -2));
}

static bool dataset_prefetch_negative(void)
{
    return nothing(cornu_dataset_prefetch(dataset(), -1));
}

static bool dataset_given_twice(void)
{
    CornuDataset *d = dataset();
    CornuDataset *a = cornu_dataset_take(d, 3), *b = cornu_dataset_skip(d, 3);
    cornu_dataset_free(a);
    return nothing(b);
}

static bool dataset_count_null(void)
{
    return cornu_dataset_count(NULL) == 0;
}

static bool dataset_type_99(void)
{
    return cornu_dataset_type(dataset(), 99).shape.rank == 0;
}

static bool iterator_null(void)
{
    return nothing(cornu_iterator_begin(NULL, 0));
}

static bool iterator_for_null(void)
{
    return nothing(cornu_iterator_begin_for(NULL, 0, NULL));
}

static bool idx_null(void)
{
    CornuArray a;
    return failed(cornu_idx_load(NULL, &a));
}

static bool image_null(void)
{
    CornuArray a;
    return failed(cornu_image_load(NULL, 3, &a));
}

static bool image_info_null(void)
{
    return failed(cornu_image_info("a.png", NULL));
}

static bool image_channels(void)
{
    CornuArray a;
    return failed(cornu_image_load("a.png", 9, &a));
}

static bool image_folder_null(void)
{
    return nothing(cornu_image_folder());
}

static bool image_folder_size(void)
{
    return nothing(cornu_image_folder(folder, .image_size = { -1 }));
}

static bool table_null(void)
{
    return nothing(cornu_table_load());
}

static bool table_find_null(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return cornu_table_find(t, NULL) < 0;
}

static bool table_name_99(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return nothing(cornu_table_column_name(t, 99));
}

static bool table_categories_99(void)
{
    int n;
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return nothing(cornu_table_categories(t, 99, &n));
}

static bool table_take_null(void)
{
    CornuArray a;
    return failed(cornu_table_take(.to = &a));
}

static bool table_take_no_to(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ 0 });
    return failed(cornu_table_take(t));
}

static bool table_delimiter(void)
{
    CornuTable *t = cornu_table_parse("a,b\n1,2\n", 8, "t", &(CornuTableConfig){ .delimiter = '"'
        });
    return nothing(t);
}

static bool table_parse_null_config(void)
{
    return nothing(cornu_table_parse("a\n1\n", 4, "t", NULL));
}

static bool table_parse_null_bytes(void)
{
    return nothing(cornu_table_parse(NULL, 4, "t", &(CornuTableConfig){ 0 }));
}

static bool text_parse_null_bytes(void)
{
    return nothing(cornu_text_parse(NULL, 4, CORNU_TEXT_BYTES, "t"));
}

static bool iterator_next_null(void)
{
    const CornuBatch *b;
    return failed(cornu_iterator_next(NULL, &b));
}

static const Misuse misuses[] = {
    MISUSE(arrays_null, "cornu_dataset_from_arrays|arrays"),
    MISUSE(arrays_none, "data set|0 components"),
    MISUSE(arrays_999, "999"),
    MISUSE(arrays_no_data, "NULL"),
    MISUSE(arrays_rank_99, "rank"),
    MISUSE(arrays_dtype_99, "element type 99"),
    MISUSE(arrays_extent_negative, "-32"),
    MISUSE(dataset_batch_zero, "size|0"),
    MISUSE(dataset_batch_negative, "-3"),
    MISUSE(dataset_batch_null, "batch|NULL"),
    MISUSE(dataset_map_null, "map|function"),
    MISUSE(dataset_take_negative, "take|-2"),
    MISUSE(dataset_prefetch_negative, "-1"),
    MISUSE(dataset_given_twice, "retain"),
    MISUSE(dataset_count_null, "cornu_dataset_count|dataset"),
    MISUSE(dataset_type_99, "cornu_dataset_type|99"),
    MISUSE(iterator_null, "iterator|data set"),
    MISUSE(iterator_for_null, "iterator|data set"),
    MISUSE(idx_null, "cornu_idx_load|path"),
    MISUSE(image_null, "cornu_image_load|path"),
    MISUSE(image_info_null, "cornu_image_info|info"),
    MISUSE(image_channels, "channels|9"),
    MISUSE(image_folder_null, "directory"),
    MISUSE(image_folder_size, "image_size|-1"),
    MISUSE(table_null, "file"),
    MISUSE(table_find_null, "cornu_table_find|name"),
    MISUSE(table_name_99, "cornu_table_column_name|99"),
    MISUSE(table_categories_99, "cornu_table_categories|99"),
    MISUSE(table_take_null, "table"),
    MISUSE(table_take_no_to, "table: no array"),
    MISUSE(table_delimiter, "delimiter"),
    MISUSE(table_parse_null_config, "cornu_table_parse|config"),
    MISUSE(table_parse_null_bytes, "cornu_table_parse|bytes"),
    MISUSE(text_parse_null_bytes, "cornu_text_parse|bytes"),
    MISUSE(iterator_next_null, "cornu_iterator_next|iterator"),
};

int main(void) { return misuses_run(misuses, sizeof misuses / sizeof *misuses); }
