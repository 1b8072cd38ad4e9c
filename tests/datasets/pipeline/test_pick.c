/* Components in another order, some of them twice, before and after a batch. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../../../datasets/pipeline/iterator.h"
#include "../../../datasets/pipeline/pick.h"
#include "../../expect.h"
#include "pipelines.h"

/* Rows i of a, i64, b, f32 (2), and c, u8. */
static CornuDataset *three(void)
{
    static int64_t a[5];
    static float   b[5][2];
    static uint8_t c[5];
    for (int i = 0; i < 5; i++) {
        a[i] = i;
        b[i][0] = (float)(10 * i);
        b[i][1] = (float)(10 * i + 1);
        c[i] = (uint8_t)(100 + i);
    }
    return cornu_dataset_from_arrays((CornuArray[]){ cornu_array(a, CORNU_I64, 5),
                                                     cornu_array(b, CORNU_F32, 5, 2),
                                                     cornu_array(c, CORNU_U8, 5) }, 3);
}

static void some_in_another_order(void **state)
{
    (void)state;
    for (int after = 0; after < 2; after++) {
        CornuDataset *dataset = three();
        if (after) dataset = cornu_dataset_batch(dataset, 2, false);
        dataset = cornu_dataset_pick(dataset, 2, 1, 2);
        if (!after) dataset = cornu_dataset_batch(dataset, 2, false);
        assert_int_equal(cornu_dataset_components(dataset), 3);
        assert_true(cornu_type_equal(cornu_dataset_type(dataset, 1), cornu_type(CORNU_F32, 2)));
        CornuIterator    *iterator = cornu_iterator_begin(dataset, 0);
        const CornuBatch *batch;
        int64_t           row = 0;
        while (cornu_iterator_next(iterator, &batch) == CORNU_OK && batch)
            for (int64_t i = 0; i < batch->valid; i++, row++) {
                assert_int_equal(((uint8_t *)batch->arrays[0].data)[i], 100 + row);
                assert_int_equal(((uint8_t *)batch->arrays[2].data)[i], 100 + row);
                assert_true(((float *)batch->arrays[1].data)[2 * i + 1] == (float)(10 * row + 1));
            }
        assert_int_equal(row, 5);
        cornu_iterator_free(iterator);
        cornu_dataset_free(dataset);
    }
}

/* Of padded batches, whose extents go with their components. */
static void batches_of_their_own_extents(void **state)
{
    ListedAs          as;
    CornuDataset     *batches = pipeline_make("padded_batch", &as);
    CornuDataset     *picked = cornu_dataset_pick(cornu_dataset_retain(batches), 1, 0);
    CornuIterator    *in = cornu_iterator_begin(batches, 0), *out = cornu_iterator_begin(picked, 0);
    const CornuBatch *a, *b;
    (void)state;
    assert_true(in && out);
    for (;;) {
        expect_ok(cornu_iterator_next(in, &a));
        expect_ok(cornu_iterator_next(out, &b));
        assert_int_equal(!a, !b);
        if (!a) break;
        assert_true(cornu_type_equal(a->arrays[0].type, b->arrays[1].type));
        assert_true(cornu_type_equal(a->arrays[1].type, b->arrays[0].type));
        assert_memory_equal(a->arrays[0].data, b->arrays[1].data,
                            cornu_type_bytes(a->arrays[0].type));
    }
    cornu_iterator_free(in);
    cornu_iterator_free(out);
    cornu_dataset_free(batches);
    cornu_dataset_free(picked);
}

static void components_that_are_not_there(void **state)
{
    (void)state;
    assert_null(cornu_dataset_pick(three(), 0, 3));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "pick: component 3, expected 0 to 2");
    assert_null(cornu_dataset_pick(three(), -1));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "pick: component -1");
    assert_null(cornu_dataset_pick_from(three(), NULL, 1));
    cornu_error_take();
    assert_null(cornu_dataset_pick_from(three(), (int[]){ 0 }, 0));
    expect_error(cornu_error_take(), CORNU_ERR_ARGUMENT, "pick: 0 components");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(some_in_another_order),
                                        cmocka_unit_test(batches_of_their_own_extents),
                                        cmocka_unit_test(components_that_are_not_there) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
