/* Misuse of devices, graphs and variables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../misuses.h"

static bool device_unknown(void)
{
    return nothing(cornu_device_open("gpuu"));
}

static bool device_threads(void)
{
    return nothing(cornu_device_open("cpu", .threads = -1));
}

static bool graph_null(void)
{
    return nothing(cornu_graph_create(NULL));
}

static bool op_null(void)
{
    return nothing(cornu_op_relu(NULL));
}

static bool op_two_graphs(void)
{
    CornuDevice *d = cornu_device_open("reference");
    CornuTensor *a = cornu_graph_input(cornu_graph_create(d), cornu_type(CORNU_F32, 2)), *b =
        cornu_graph_input(cornu_graph_create(d), cornu_type(CORNU_F32, 2));
    return nothing(cornu_op_add(a, b));
}

static bool graph_input_rank(void)
{
    CornuType t = cornu_type(CORNU_F32, 2);
    t.shape.rank = 77;
    return nothing(cornu_graph_input(cornu_graph_create(cornu_device_open("reference")), t));
}

static bool run_null_graph(void)
{
    return failed(cornu_run(NULL, NULL, 0, NULL));
}

static bool run_null_fetches(void)
{
    return failed(cornu_run(cornu_graph_create(cornu_device_open("reference")), NULL, 1, NULL));
}

static bool run_null_fetch(void)
{
    CornuTensor *f = NULL;
    CornuArray a = data_x();
    return failed(cornu_run(cornu_graph_create(cornu_device_open("reference")), &f, 1, &a));
}

static bool feed_null(void)
{
    return failed(cornu_graph_feed(NULL, data_x()));
}

static bool feed_no_data(void)
{
    CornuTensor *in = cornu_graph_input(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, 32, 2));
    return failed(cornu_graph_feed(in, cornu_array(NULL, CORNU_F32, 32, 2)));
}

static bool gradients_null_loss(void)
{
    CornuTensor *g;
    return failed(cornu_gradients(NULL, NULL, 0, &g));
}

static bool gradients_null_x(void)
{
    CornuTensor *g, *l = cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_scalar(CORNU_F32), 1.0);
    return failed(cornu_gradients(l, NULL, 1, &g));
}

static bool tensor_type_null(void)
{
    return cornu_tensor_type(NULL).shape.rank == 0;
}

static bool read_null_variable(void)
{
    return nothing(cornu_read(cornu_graph_create(cornu_device_open("reference")), NULL));
}

static bool assign_null(void)
{
    return failed(cornu_assign(NULL, NULL));
}

static bool variable_no_device(void)
{
    return nothing(cornu_variable_create(NULL, cornu_scalar(CORNU_F32), "v"));
}

static bool variable_write_null(void)
{
    return failed(cornu_variable_write(NULL, data_x()));
}

static bool variable_read_null(void)
{
    return failed(cornu_variable_read(NULL, data_x()));
}

static bool variable_set_null(void)
{
    return failed(cornu_variable_set(NULL, 1.0));
}

static bool variable_type_null(void)
{
    return cornu_variable_type(NULL).shape.rank == 0;
}

static bool buffer_no_device(void)
{
    return nothing(cornu_buffer_create(NULL, cornu_scalar(CORNU_F32)));
}

static bool buffer_write_null(void)
{
    return failed(cornu_buffer_write(NULL, data_x()));
}

static bool buffer_read_null(void)
{
    return failed(cornu_buffer_read(NULL, data_x()));
}

static bool buffer_part_negative(void)
{
    CornuBuffer *b = cornu_buffer_create(cornu_device_open("reference"), cornu_type(CORNU_F32, 32,
        2));
    return failed(cornu_buffer_write_part(b, -1, data_x()));
}

static bool compile_null_program(void)
{
    return nothing(cornu_device_compile(cornu_device_open("reference"), NULL));
}

static bool device_name_null(void)
{
    return nothing(cornu_device_name(NULL));
}

static bool device_shards_null(void)
{
    return cornu_device_shards(NULL) == 0;
}

static bool shape_negative(void)
{
    return nothing(cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, -2), 0.0));
}

static bool reshape_count(void)
{
    CornuTensor *t = cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, 4), 0.0);
    return nothing(cornu_op_reshape(t, cornu_shape(3)));
}

static bool transpose_axes(void)
{
    CornuTensor *t = cornu_op_constant(cornu_graph_create(cornu_device_open("reference")),
        cornu_type(CORNU_F32, 4, 2), 0.0);
    return nothing(cornu_op_transpose(t, (int[]){ 0, 7 }));
}

static bool tpu_profile_unknown(void)
{
    return nothing(cornu_device_open("tpu:v99"));
}

static bool device_null_name(void)
{
    return nothing(cornu_device_open(NULL, .threads = -5));
}

static bool graph_program_null(void)
{
    return nothing(cornu_graph_program(NULL));
}

static bool graph_statistics_null(void)
{
    return nothing(cornu_graph_statistics(NULL));
}

static bool executable_run_null(void)
{
    return failed(cornu_executable_run(NULL, NULL, NULL));
}

static const Misuse misuses[] = {
    MISUSE(device_unknown, "gpuu"),
    MISUSE(device_threads, "threads|-1"),
    MISUSE(graph_null, "cornu_graph_create|device"),
    MISUSE(op_null, "NULL"),
    MISUSE(op_two_graphs, "graphs"),
    MISUSE(graph_input_rank, "rank"),
    MISUSE(run_null_graph, "cornu_run|graph"),
    MISUSE(run_null_fetches, "cornu_run|fetches"),
    MISUSE(run_null_fetch, "cornu_run|fetch"),
    MISUSE(feed_null, "cornu_graph_feed|input"),
    MISUSE(feed_no_data, "feed|NULL"),
    MISUSE(gradients_null_loss, "cornu_gradients|loss"),
    MISUSE(gradients_null_x, "cornu_gradients|x"),
    MISUSE(tensor_type_null, "cornu_tensor_type|tensor"),
    MISUSE(read_null_variable, "cornu_read|variable"),
    MISUSE(assign_null, "cornu_assign|variable"),
    MISUSE(variable_no_device, "variable v|device"),
    MISUSE(variable_write_null, "cornu_variable_write|variable"),
    MISUSE(variable_read_null, "cornu_variable_read|variable"),
    MISUSE(variable_set_null, "cornu_variable_set|variable"),
    MISUSE(variable_type_null, "cornu_variable_type|variable"),
    MISUSE(buffer_no_device, "device"),
    MISUSE(buffer_write_null, "cornu_buffer_write|buffer"),
    MISUSE(buffer_read_null, "cornu_buffer_read|buffer"),
    MISUSE(buffer_part_negative, "-1"),
    MISUSE(compile_null_program, "cornu_device_compile|program"),
    MISUSE(device_name_null, "cornu_device_name|device"),
    MISUSE(device_shards_null, "cornu_device_shards|device"),
    MISUSE(shape_negative, "-2"),
    MISUSE(reshape_count, "reshape"),
    MISUSE(transpose_axes, "transpose"),
    MISUSE(tpu_profile_unknown, "TPU profile|v99"),
    MISUSE(device_null_name, "device"),
    MISUSE(graph_program_null, "cornu_graph_program|graph"),
    MISUSE(graph_statistics_null, "cornu_graph_statistics|graph"),
    MISUSE(executable_run_null, "cornu_executable_run|executable"),
};

int main(void) { return misuses_run(misuses, sizeof misuses / sizeof *misuses); }
