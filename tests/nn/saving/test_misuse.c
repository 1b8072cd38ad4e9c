/* Misuse of files of models and arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../../misuses.h"

static bool save_null_path(void)
{
    return failed(cornu_model_save(built(), NULL));
}

static bool save_null_model(void)
{
    return failed(cornu_model_save(NULL, file("a.safetensors")));
}

static bool save_not_built(void)
{
    return failed(cornu_model_save(cornu_sequential(), file("a.safetensors")));
}

static bool save_empty_path(void)
{
    return failed(cornu_model_save(built(), ""));
}

static bool save_check_null(void)
{
    return failed(cornu_model_save_check(NULL));
}

static bool save_weights_null(void)
{
    return failed(cornu_model_save_weights(built(), NULL));
}

static bool load_null(void)
{
    return nothing(cornu_model_load(NULL));
}

static bool load_folder(void)
{
    return nothing(cornu_model_load(folder));
}

static bool load_compiled_null(void)
{
    return nothing(cornu_model_load_compiled(NULL, NULL));
}

static bool load_weights_null(void)
{
    return failed(cornu_model_load_weights(built(), NULL));
}

static bool load_weights_null_model(void)
{
    return failed(cornu_model_load_weights(NULL, file("a.npz")));
}

static bool load_by_name_null(void)
{
    return failed(cornu_model_load_by_name(built(), NULL));
}

static bool safetensors_null(void)
{
    return nothing(cornu_safetensors_open(NULL));
}

static bool safetensors_write_null(void)
{
    return failed(cornu_safetensors_write(NULL, NULL, 0, NULL, 0));
}

static bool safetensors_negative_count(void)
{
    return failed(cornu_safetensors_write(file("b.safetensors"), NULL, -1, NULL, 0));
}

static bool safetensors_null_name(void)
{
    const CornuNamedArray a = { NULL, data_x() };
    return failed(cornu_safetensors_write(file("b.safetensors"), &a, 1, NULL, 0));
}

static bool npz_null(void)
{
    return nothing(cornu_npz_open(NULL));
}

static bool npz_write_null(void)
{
    return failed(cornu_npz_write(NULL, NULL, 0));
}

static bool npz_null_name(void)
{
    const CornuNamedArray a = { NULL, data_x() };
    return failed(cornu_npz_write(file("b.npz"), &a, 1));
}

static bool npz_negative_count(void)
{
    return failed(cornu_npz_write(file("b.npz"), NULL, -1));
}

static bool npz_no_data(void)
{
    const CornuNamedArray a = { "a", cornu_array(NULL, CORNU_F32, 4) };
    return failed(cornu_npz_write(file("b.npz"), &a, 1));
}

static bool file_write_null(void)
{
    return failed(cornu_file_write(NULL, "a", 1));
}

static const Misuse misuses[] = {
    MISUSE(save_null_path, "cornu_model_save|path"),
    MISUSE(save_null_model, "model"),
    MISUSE(save_not_built, "built"),
    MISUSE(save_empty_path, "the name has no known suffix"),
    MISUSE(save_check_null, "cornu_model_save_check|path"),
    MISUSE(save_weights_null, "cornu_model_save_weights|path"),
    MISUSE(load_null, "cornu_model_load|path"),
    MISUSE(load_folder, "cornu"),
    MISUSE(load_compiled_null, "cornu_model_load_compiled|path"),
    MISUSE(load_weights_null, "cornu_model_load_weights|path"),
    MISUSE(load_weights_null_model, "model"),
    MISUSE(load_by_name_null, "path"),
    MISUSE(safetensors_null, "cornu_safetensors_open|path"),
    MISUSE(safetensors_write_null, "cornu_safetensors_write|path"),
    MISUSE(safetensors_negative_count, "cornu_safetensors_write|count is -1"),
    MISUSE(safetensors_null_name, "name"),
    MISUSE(npz_null, "cornu_npz_open|path"),
    MISUSE(npz_write_null, "cornu_npz_write|path"),
    MISUSE(npz_null_name, "name"),
    MISUSE(npz_negative_count, "cornu_npz_write|count is -1"),
    MISUSE(npz_no_data, "NULL"),
    MISUSE(file_write_null, "cornu_file_write|path"),
};

int main(void) { return misuses_run(misuses, sizeof misuses / sizeof *misuses); }
