/* TF_CONFIG, as Keras' users write it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "../../../device/processes/tf_config_internal.h"

static void expect_rank(const char *text, int rank, int count, const char *last)
{
    CornuTfConfig config;
    assert_int_equal(cornu__tf_config_read(&config, text), CORNU_OK);
    assert_int_equal(config.rank, rank);
    assert_int_equal(config.count, count);
    if (count) assert_string_equal(config.workers[count - 1], last);
    cornu__tf_config_clear(&config);
}

static void test_ranks(void **state)
{
    (void)state;
    expect_rank("{\"cluster\":{\"worker\":[\"a:1\",\"b:2\"]},"
                "\"task\":{\"type\":\"worker\",\"index\":1}}", 1, 2, "b:2");
    expect_rank("{\"cluster\":{\"chief\":[\"c:3\"],\"worker\":[\"a:1\",\"b:2\"]},"
                "\"task\":{\"type\":\"chief\",\"index\":0}}", 0, 3, "b:2");
    expect_rank("{\"cluster\":{\"worker\":[\"a:1\",\"[::1]:2\"],\"chief\":[\"c:3\"]},"
                "\"task\":{\"type\":\"worker\",\"index\":1}, \"rpc_layer\": \"grpc\"}", 2, 3,
                "[::1]:2");
    expect_rank("{}", 0, 0, NULL);
    expect_rank("{\"cluster\":{},\"task\":{\"type\":\"worker\",\"index\":0}}", 0, 0, NULL);
}

static void expect_refused(const char *text, const char *message)
{
    CornuTfConfig config;
    assert_int_not_equal(cornu__tf_config_read(&config, text), CORNU_OK);
    assert_non_null(strstr(cornu_error_message(), message));
    assert_int_equal(config.count, 0);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("worker", "no JSON");
    expect_refused("[1]", "a JSON object");
    expect_refused("{\"cluster\":{\"worker\":\"a:1\"},\"task\":{}}", "lists of \"host:port\"");
    expect_refused("{\"cluster\":{\"worker\":[\"a\"]},\"task\":{}}", "lists of \"host:port\"");
    expect_refused("{\"cluster\":{\"worker\":[\"a:1\"]}}", "of type \"\"");
    expect_refused("{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"evaluator\","
                   "\"index\":0}}", "of type \"evaluator\"");
    expect_refused("{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\"}}",
                   "expected 0 to 0");
    expect_refused("{\"cluster\":{\"worker\":[\"a:1\"]},\"task\":{\"type\":\"worker\","
                   "\"index\":1}}", "worker 1, expected 0 to 0");
    expect_refused("{\"cluster\":{\"worker\":[\"a:1\"],\"ps\":[\"b:2\"]},"
                   "\"task\":{\"type\":\"worker\",\"index\":0}}", "parameter servers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
