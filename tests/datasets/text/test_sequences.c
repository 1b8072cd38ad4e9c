/* Padded and truncated sequences against real Keras (tests/golden/lengths). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../allocations.h"
#include "../../nn/golden.h"

/* [[1, 2, 3], [4], [], [5, 6, 7, 8, 9], [10, 11]] of make_lengths.py. */
static int32_t    numbers[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
static CornuArray lists[5];

static void make_lists(void)
{
    static const int64_t lengths[5] = { 3, 1, 0, 5, 2 };
    int32_t             *at = numbers;
    for (int i = 0; i < 5; i++) {
        lists[i] = cornu_array_from(at, cornu_type(CORNU_I32, lengths[i]));
        lists[i].type.shape = (CornuShape){ .rank = 1, .extent = { lengths[i] } };
        at += lengths[i];
    }
}

static CornuSequenceSide side(const json_t *about, const char *name)
{
    const char *text = json_string_value(json_object_get(about, name));
    return text && !strcmp(text, "post") ? CORNU_POST : CORNU_PRE;
}

static void lists_are_padded_as_keras_does(void **state)
{
    const char *name;
    json_t     *about;
    int         cases = 0;
    Golden      golden = golden_open("tests/golden/lengths/models.safetensors");
    (void)state;
    json_object_foreach(golden.cases, name, about) {
        if (strncmp(name, "padded", 6) || !strcmp(name, "padded_steps")) continue;
        const CornuArray want = golden_array(&golden, name, "y");
        CornuArray       got;
        expect_ok(cornu_pad_sequences(
            lists, 5, .maxlen = json_integer_value(json_object_get(about, "maxlen")),
            .dtype = json_string_value(json_object_get(about, "dtype")),
            .padding = side(about, "padding"), .truncating = side(about, "truncating"),
            .value = json_number_value(json_object_get(about, "value")), .to = &got));
        assert_true(cornu_type_equal(got.type, want.type));
        assert_memory_equal(got.data, want.data, cornu_type_bytes(want.type));
        free(got.data);
        cases++;
    }
    assert_int_equal(cases, 9);
    golden_close(&golden);
}

static void steps_may_have_axes(void **state)
{
    float      steps[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    CornuArray sequences[3], got;
    Golden     golden = golden_open("tests/golden/lengths/models.safetensors");
    const CornuArray want = golden_array(&golden, "padded_steps", "y");
    (void)state;
    for (int i = 0; i < 3; i++)
        sequences[i] = cornu_array(steps, CORNU_F32, (const int64_t[]){ 3, 1, 4 }[i], 2);
    expect_ok(cornu_pad_sequences(sequences, 3, 3, .dtype = "float32", .to = &got));
    assert_true(cornu_type_equal(got.type, want.type));
    assert_memory_equal(got.data, want.data, cornu_type_bytes(want.type));
    free(got.data);
    golden_close(&golden);
}

static void mistakes_are_named(void **state)
{
    CornuArray got = { .data = NULL };
    float      wide[4] = { 0.5f, 300.0f };
    (void)state;
    expect_error(cornu_pad_sequences(lists, 5, .dtype = "int8", .to = &got), CORNU_ERR_DTYPE,
                 ".dtype is \"int8\", expected int32");
    expect_error(cornu_pad_sequences(lists, 5, .maxlen = -1, .to = &got), CORNU_ERR_ARGUMENT,
                 ".maxlen is -1");
    expect_error(cornu_pad_sequences(lists, 5), CORNU_ERR_ARGUMENT, ".to is NULL");
    expect_error(cornu_pad_sequences(lists, 0, .to = &got), CORNU_ERR_ARGUMENT, ".count");
    expect_error(cornu_pad_sequences(.count = 1, .to = &got), CORNU_ERR_ARGUMENT, ".sequences");
    expect_error(cornu_pad_sequences(lists, 5, .padding = 7, .to = &got), CORNU_ERR_ARGUMENT,
                 ".padding is 7");
    expect_error(cornu_pad_sequences(lists + 2, 1, .to = &got), CORNU_ERR_SHAPE,
                 "all sequences are empty");
    const CornuArray mixed[] = { cornu_array(wide, CORNU_F32, 2),
                                 cornu_array(wide, CORNU_F32, 1, 2) };
    expect_error(cornu_pad_sequences(mixed, 2, .to = &got), CORNU_ERR_SHAPE,
                 "sequence 1 is (1, 2), but others are (2,)");
    expect_error(cornu_pad_sequences(mixed, 1, .dtype = "uint8", .to = &got), CORNU_ERR_VALUE,
                 "sequence 0 has 300, which overflows u8");
    expect_error(cornu_pad_sequences(lists, 2, .value = 1e10, .to = &got), CORNU_ERR_VALUE,
                 ".value in row 1 has 10000000000");
    assert_null(got.data);
    if (!allocations_counted()) return;
    allocations_fail_after(0);
    const CornuStatus status = cornu_pad_sequences(lists, 5, .to = &got);
    allocations_fail_after(NEVER);
    assert_int_equal(status, CORNU_ERR_MEMORY);
}

int main(void)
{
    make_lists();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_padded_as_keras_does),
        cmocka_unit_test(steps_may_have_axes),
        cmocka_unit_test(mistakes_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
