/* What a program says at its end about the ops that had no kernel. session.c needs no main; it
 * calls the other files. */
#include "../../examples/cornu/common/data_kind.c"  /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/common/mesh_flags.c" /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/common/options.c"    /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/common/pictures.c"   /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/common/refuse.c"     /* NOLINT(bugprone-suspicious-include) */
#include "../../examples/cornu/common/session.c"    /* NOLINT(bugprone-suspicious-include) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char printed[200];

/* The run of a product of this dtype on a device, and what is said about it. */
static const char *said_of(const char *name, CornuDtype dtype)
{
    CornuDevice *device = cornu_device_open(name, .shards = 1);
    CornuGraph  *graph = cornu_graph_create(device);
    CornuTensor *x = cornu_graph_input(graph, cornu_type(dtype, 2, 2));
    CornuTensor *y = cornu_op_matmul(cornu_op_sin(x), x);
    if (cornu_graph_prepare(graph, &y, 1)) fail_msg("%s", cornu_error_message());

    FILE *file = tmpfile();
    assert_non_null(file);
    fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    dup2(fileno(file), STDOUT_FILENO);
    remark_on_fallbacks(device, cornu_graph_statistics(graph));
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    rewind(file);
    printed[fread(printed, 1, sizeof printed - 1, file)] = '\0';
    fclose(file);
    cornu_graph_free(graph);
    cornu_device_close(device);
    return printed;
}

static void test_fallbacks_are_counted_and_named(void **state)
{
    (void)state;
    assert_string_equal(said_of("cpu", CORNU_F32), "");
    assert_string_equal(said_of("tpu", CORNU_F32), "");
    assert_string_equal(said_of("tpu", CORNU_F64),
                        "1 op fell back to the reference kernels, which are slow: matmul\n");
    assert_string_equal(said_of("reference", CORNU_F32), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_fallbacks_are_counted_and_named) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
