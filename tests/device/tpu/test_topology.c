/* Profiles of TPUs: the peak that follows from their figures, names; what the resolver claims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../skip.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../device/tpu/resolver.h"
#include "../../../device/tpu/topology.h"

/* ---- Profiles ---- */

/* cores x MXUs x R x C x 2 x clock is the peak as sold, which is rounded to a TFLOP/s. */
static void peaks_follow_from_the_arrays(void **state)
{
    (void)state;
    const double derived[] = { 45.9, 123.2, 275.3, 196.6, 458.8, 918.0 };
    for (int i = 0; i < 6; i++) {
        const CornuTpuProfile *profile = cornu_tpu_profile_at(i);
        const double           peak = cornu_tpu_chip_flops(profile) * 1e-12;
        assert_true(fabs(peak - derived[i]) < 0.06);
        assert_true(fabs(peak - profile->peak_tflops.value) < 0.005 * profile->peak_tflops.value);
    }
    assert_null(cornu_tpu_profile_at(6));
    assert_null(cornu_tpu_profile_at(-1));
}

static void replicas_share_their_chip(void **state)
{
    (void)state;
    const CornuTpuProfile *v2 = cornu_tpu_profile("v2-8"), *v4 = cornu_tpu_profile("v4-8");
    assert_true(v2->replicas.value == 8.0 && v4->replicas.value == 4.0);
    assert_int_equal(cornu_tpu_replica_mxus(v2), 1);
    assert_int_equal(cornu_tpu_replica_mxus(v4), 8);   /* two cores of four arrays, joined */
    assert_true(cornu_tpu_replica_hbm(v2) == 8e9);
    assert_true(fabs(cornu_tpu_replica_hbm(v4) - 32.0 * 1073741824.0) < 1.0);
    assert_true(cornu_tpu_replica_hbm_rate(v2) == 358e9);
    assert_true(cornu_tpu_replica_hbm_rate(v4) == 1200e9);
}

static void profiles_are_found_by_name(void **state)
{
    (void)state;
    assert_string_equal(cornu_tpu_profile(NULL)->name, "v2-8");
    for (int i = 0; i < 6; i++)
        assert_ptr_equal(cornu_tpu_profile(cornu_tpu_profile_at(i)->name), cornu_tpu_profile_at(i));
    assert_null(cornu_tpu_profile("v5p8"));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
    assert_string_equal(cornu_error_message(), "TPU profile \"v5p8\" is unknown, expected "
                        "\"v5p-8\", \"v2-8\", \"v3-8\", \"v4-8\", \"v5e-8\", \"v6e-8\", "
                        "\"v2-512\", \"v3-2048\"");
    assert_null(cornu_tpu_profile(""));
    assert_int_equal(cornu_error_take(), CORNU_ERR_DEVICE);
}

/* A pod has more of the same chips. By default as many shards are emulated as on a board. */
static void pods_have_the_figures_of_their_boards(void **state)
{
    (void)state;
    const struct { const char *pod, *board; double chips; } table[] = {
        { "v2-512", "v2-8", 256.0 }, { "v3-2048", "v3-8", 1024.0 },
    };
    for (int i = 0; i < 2; i++) {
        const CornuTpuProfile *pod = cornu_tpu_profile(table[i].pod);
        const CornuTpuProfile *board = cornu_tpu_profile(table[i].board);
        assert_string_equal(pod->name, table[i].pod);
        assert_true(pod->chips.value == table[i].chips);
        assert_true(pod->cores.value == 2.0 * table[i].chips);
        assert_true(pod->replicas.value == pod->cores.value && pod->shards.value == 8.0);
        assert_int_equal(cornu_tpu_replica_mxus(pod), cornu_tpu_replica_mxus(board));
        assert_true(cornu_tpu_chip_flops(pod) == cornu_tpu_chip_flops(board));
        assert_true(cornu_tpu_replica_hbm(pod) == cornu_tpu_replica_hbm(board));
        assert_true(cornu_tpu_replica_hbm_rate(pod) == cornu_tpu_replica_hbm_rate(board));
        assert_true(pod->link_gbps.value == board->link_gbps.value);
        assert_true(pod->dispatch_ms.mark == board->dispatch_ms.mark);
    }
}

/* Each number is printed with its mark, and each mark stands in the legend. */
static void figures_are_printed_with_their_marks(void **state)
{
    (void)state;
    char  *text = NULL;
    size_t size = 0;
    FILE  *to = open_memstream(&text, &size);
    cornu_tpu_profiles_print(to);
    const long table = ftell(to);
    cornu_tpu_legend_print(to);
    fclose(to);
    assert_non_null(strstr(text, "v2-8"));
    assert_non_null(strstr(text, " 3502 D"));
    assert_non_null(strstr(text, "   43.8 F   43.8 ?"));
    assert_non_null(strstr(text, "v3-2048 is 32x32 chips with the figures of v3-8; 8 shards are "
                           "emulated unless told.\n"));
    int marks = 0;
    for (const char *at = text; at < text + table; at++) {
        if (at == text || at[-1] != ' ' || !strchr("VPTDF?", *at) || !*at) continue;
        if (at[1] != ' ' && at[1] != '\n') continue;
        const char legend[] = { '\n', *at, ' ', '\0' }, inner[] = { ' ', ' ', *at, ' ', '\0' };
        assert_true(strstr(text + table, inner) || strstr(text + table - 1, legend));
        marks++;
    }
    assert_int_equal(marks, 21 * 6 - 3);   /* three have no published power */
    free(text);
}

/* ---- Resolver ---- */

static void set_environment(const char *cornu, const char *colab, const char *name)
{
    const char *const names[] = { "CORNU_TPU", "COLAB_TPU_ADDR", "TPU_NAME" };
    const char *const values[] = { cornu, colab, name };
    for (int i = 0; i < 3; i++)
        if (values[i]) setenv(names[i], values[i], 1);
        else unsetenv(names[i]);
}

static int clear_environment(void **state)
{
    (void)state;
    set_environment(NULL, NULL, NULL);
    return 0;
}

static const char local_lines[] = "Found TPU at: local (emulated v2-8)\n"
                                  "*** Num TPU Cores: 8\n"
                                  "*** Num TPU Workers: 1\n"
                                  "*** Num TPU Cores Per Worker: 8\n";

static void the_emulated_one_answers(void **state)
{
    (void)state;
    CornuTpuTarget    target;
    const char *const cases[][3] = {
        { NULL, NULL, NULL }, { "", "", "" }, { "local", NULL, NULL }, { "v2-8", NULL, NULL },
        { NULL, NULL, "local" }, { "local", "10.0.0.2:8470", "grpc://10.0.0.2:8470" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_environment(cases[i][0], cases[i][1], cases[i][2]);
        assert_int_equal(cornu_tpu_resolve(&target), CORNU_OK);
        assert_string_equal(target.text, local_lines);
        assert_string_equal(target.refused, "");
        assert_string_equal(target.device, "tpu:v2-8");
    }
}

static void a_profile_may_be_wished_for(void **state)
{
    (void)state;
    CornuTpuTarget target;
    set_environment("v4-8", NULL, NULL);
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_OK);
    assert_string_equal(target.target, "local (emulated v4-8)");
    assert_string_equal(target.device, "tpu:v4-8");
    assert_int_equal(target.cores, 4);   /* two joined */
    assert_int_equal(target.cores_per_worker, 4);
    set_environment("v3-2048", NULL, NULL);
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_OK);
    assert_string_equal(target.device, "tpu:v3-2048");
    assert_int_equal(target.cores, 8);   /* of 2,048: those that are emulated */
}

/* An address that the machine sets is named, never claimed. */
static void an_address_is_not_claimed(void **state)
{
    (void)state;
    CornuTpuTarget target;
    set_environment(NULL, "10.0.0.2:8470", "grpc://10.9.9.9:8470");
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_OK);
    assert_string_equal(target.refused, "COLAB_TPU_ADDR is 10.0.0.2:8470, which is not used: this "
                        "version has no client for TPUs over the network");
    assert_int_equal(strncmp(target.text, target.refused, strlen(target.refused)), 0);
    assert_string_equal(strchr(target.text, '\n') + 1, local_lines);

    set_environment(NULL, NULL, "my-tpu");
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_OK);
    assert_non_null(strstr(target.text, "TPU_NAME is my-tpu, which is not used: "));

    /* Neither length nor control characters get through. */
    char address[2000];
    memset(address, 'x', sizeof address);
    address[0] = '\x1b';
    address[sizeof address - 1] = '\0';
    set_environment(NULL, address, NULL);
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_OK);
    assert_non_null(strstr(target.refused, "COLAB_TPU_ADDR is ?xxx"));
    assert_non_null(strstr(target.text, local_lines));
}

/* Any device that opens will do: here a plugin for CPUs, if there is one. */
static void a_device_that_is_no_emulation_is_taken(void **state)
{
    (void)state;
    CornuTpuTarget target;
    set_environment("pjrt:cpu", NULL, NULL);
    if (cornu_tpu_resolve(&target) == CORNU_ERR_DEVICE) SKIP_FOR(SKIP_PJRT);
    assert_true(target.is_real);
    assert_string_equal(target.device, "pjrt:cpu");
    assert_int_equal(target.cores, 1);
    assert_non_null(strstr(target.text, "Found TPU at: pjrt: cpu"));
    assert_null(strstr(target.text, "emulated"));
}

static void a_wish_that_cannot_be_met_is_an_error(void **state)
{
    (void)state;
    CornuTpuTarget target;
    set_environment("grpc://10.0.0.2:8470", NULL, NULL);
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_ERR_DEVICE);
    assert_string_equal(cornu_error_message(), "CORNU_TPU is grpc://10.0.0.2:8470: this version "
                        "has no client for TPUs over the network; expected local, pjrt:tpu or "
                        "a profile such as v2-8");
    set_environment("pjrt:/nowhere/plugin.so", NULL, NULL);
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_ERR_DEVICE);
    assert_int_equal(strncmp(cornu_error_message(), "CORNU_TPU: ", 11), 0);
    assert_non_null(strstr(cornu_error_message(), "/nowhere/plugin.so"));
    assert_false(cornu_error_pending());
    set_environment("v3-9", NULL, NULL);
    assert_int_equal(cornu_tpu_resolve(&target), CORNU_ERR_DEVICE);
    assert_string_equal(cornu_error_message(), "CORNU_TPU: TPU profile \"v3-9\" is unknown, "
                        "expected \"v3-8\", \"v2-8\", \"v4-8\", \"v5e-8\", \"v5p-8\", \"v6e-8\", "
                        "\"v2-512\", \"v3-2048\"");
    assert_false(cornu_error_pending());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_follow_from_the_arrays),
        cmocka_unit_test(replicas_share_their_chip),
        cmocka_unit_test(profiles_are_found_by_name),
        cmocka_unit_test(pods_have_the_figures_of_their_boards),
        cmocka_unit_test(figures_are_printed_with_their_marks),
        cmocka_unit_test_setup(the_emulated_one_answers, clear_environment),
        cmocka_unit_test_setup(a_profile_may_be_wished_for, clear_environment),
        cmocka_unit_test_setup(an_address_is_not_claimed, clear_environment),
        cmocka_unit_test_setup(a_device_that_is_no_emulation_is_taken, clear_environment),
        cmocka_unit_test_setup(a_wish_that_cannot_be_met_is_an_error, clear_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
