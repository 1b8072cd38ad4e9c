/* Policies that quantize, and quantizers, in Keras' JSON. Source:
 * keras/src/dtype_policies/dtype_policy.py, keras/src/quantizers/quantization_config.py. */
#include "architecture_internal.h"

#include "../../config/policy_internal.h"
#include "../../layers/quantized_internal.h"

#include <stdio.h>
#include <string.h>

enum { DEFAULT_HISTORY = 1024 };

/* ---- Writing ---- */

json_t *cornu__quantized_policy_to_json(const CornuLayer *layer)
{
    const CornuQuantization mode = cornu__quantization(layer);
    const char   *name = cornu__quantization_names[mode];
    const int64_t block = layer->quantized.block, history = layer->quantized.history;
    json_t *config = json_pack("{s:s, s:s}", "mode", name, "source_name",
                               cornu__policy_source(layer->own_policy));
    const char *class_name = mode == CORNU_FLOAT8 ? "QuantizedFloat8DTypePolicy"
                           : mode == CORNU_INT4 && block ? "Int4DTypePolicy"
                                                         : "QuantizedDTypePolicy";
    if (mode == CORNU_FLOAT8)
        config = cornu__json_with(config, "amax_history_length",
                                  json_integer(history ? history : DEFAULT_HISTORY));
    if (mode == CORNU_INT4 && block)
        config = cornu__json_with(config, "mode", json_sprintf("int4/%lld", (long long)block));
    return cornu__json_object("keras.dtype_policies", class_name, config);
}

static json_t *quantizer_to_json(const CornuQuantizer *quantizer)
{
    if (!quantizer->given) return json_null();
    json_t *config = json_pack("{s:[i,i], s:f, s:s}", "value_range", (int)quantizer->low,
                               (int)quantizer->high, "epsilon", quantizer->epsilon,
                               "output_dtype", "int8");
    if (quantizer->axis_count > 0)
        config = cornu__json_with(config, "axis", cornu__json_list(quantizer->axes,
                                                                   quantizer->axis_count));
    return cornu__json_object("keras.quantizers", "AbsMaxQuantizer", config);
}

json_t *cornu__quantization_to_json(const CornuLayer *layer)
{
    static const char *const names[] = { "", "Int8QuantizationConfig", "Int4QuantizationConfig",
                                         "Float8QuantizationConfig" };
    const CornuQuantization mode = cornu__quantization(layer);
    const CornuQuantized   *settings = &layer->quantized;
    json_t                 *config = json_object();
    if (mode != CORNU_FLOAT8) {
        config = cornu__json_with(config, "weight_quantizer",
                                  quantizer_to_json(&settings->weights));
        config = cornu__json_with(config, "activation_quantizer",
                                  quantizer_to_json(&settings->inputs));
    }
    if (mode == CORNU_INT4)
        config = cornu__json_with(config, "block_size", settings->config_block
                                  ? json_integer(settings->config_block) : json_null());
    return cornu__json_object("keras.quantizers", names[mode], config);
}

/* ---- Reading ---- */

bool cornu__is_quantized_policy(const json_t *dtype)
{
    const char *class_name = json_string_value(json_object_get(dtype, "class_name"));
    const char *text = json_string_value(dtype);
    return (class_name && (!strcmp(class_name, "QuantizedDTypePolicy") ||
                           !strcmp(class_name, "Int4DTypePolicy") ||
                           !strcmp(class_name, "QuantizedFloat8DTypePolicy"))) ||
           (text && strstr(text, "_from_"));
}

static bool is_null(const json_t *value) { return !value || json_is_null(value); }

static CornuStatus read_history(const json_t *config, int64_t *history)
{
    const json_t *value = json_object_get(config, "amax_history_length");
    if (is_null(value)) return CORNU_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 1 ||
        json_integer_value(value) > INT32_MAX)
        return cornu__unexpected("amax_history_length", "a whole number of at least 1");
    *history = json_integer_value(value);
    return CORNU_OK;
}

CornuStatus cornu__read_quantized_policy(const json_t *dtype, CornuLayer *layer)
{
    const json_t *config = json_object_get(dtype, "config");
    const char   *mode = json_string_value(json_object_get(config, "mode"));
    const char   *source = json_string_value(json_object_get(config, "source_name"));
    char          name[80];
    if (json_is_string(dtype)) snprintf(name, sizeof name, "%s", json_string_value(dtype));
    else if (mode && source) snprintf(name, sizeof name, "%.30s_from_%.30s", mode, source);
    else return cornu__unexpected("dtype", "a policy with a mode and a source_name");
    layer->own_policy = cornu_policy(name);
    if (!layer->own_policy) return cornu_error_take();
    CORNU__TRY(cornu__policy_block(name, &layer->quantized.block));
    CORNU__TRY(read_history(config, &layer->quantized.history));
    return cornu__check_quantization(layer);
}

static CornuStatus read_range(const json_t *value, CornuQuantizer *to)
{
    const json_t *low = json_array_get(value, 0), *high = json_array_get(value, 1);
    if (is_null(value)) return CORNU_OK;
    if (!json_is_number(low) || !json_is_number(high) || json_array_size(value) != 2)
        return cornu__unexpected("value_range", "a list of two numbers");
    to->low = json_number_value(low);
    to->high = json_number_value(high);
    if (to->low >= -128.0 && to->low < to->high && to->high > 0.0 && to->high <= 127.0)
        return CORNU_OK;
    return cornu__unexpected("value_range", "two numbers from -128 to 127");
}

static CornuStatus read_quantizer(const json_t *value, const char *what, CornuQuantizer *to)
{
    const char   *class_name = json_string_value(json_object_get(value, "class_name"));
    const json_t *config = json_object_get(value, "config");
    const json_t *tiny = json_object_get(config, "epsilon");
    const json_t *axis = json_object_get(config, "axis");
    size_t        axes = 0;
    if (is_null(value)) return CORNU_OK;
    if (!class_name || strcmp(class_name, "AbsMaxQuantizer"))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the %s is a %.60s, expected an AbsMaxQuantizer",
                           what, class_name ? class_name : "function");
    *to = (CornuQuantizer){ .given = true, .low = -127, .high = 127, .epsilon = 1e-7 };
    CORNU__TRY(read_range(json_object_get(config, "value_range"), to));
    if (json_is_number(tiny)) to->epsilon = json_number_value(tiny);
    if (is_null(axis)) return CORNU_OK;
    CORNU__TRY(cornu__read_list(axis, "axis", to->axes, CORNU_MAX_RANK, &axes));
    to->axis_count = (int)axes;
    return CORNU_OK;
}

CornuStatus cornu__read_quantization(const json_t *value, CornuLayer *layer)
{
    CornuQuantized *to = &layer->quantized;
    const json_t   *config = json_object_get(value, "config");
    const json_t   *block = json_object_get(config, "block_size");
    if (is_null(value)) return CORNU_OK;
    if (!json_is_object(value))
        return cornu__unexpected("quantization_config", "null or an object");
    if (!cornu__quantization(layer))
        return cornu__fail(CORNU_ERR_UNSUPPORTED, "the argument \"quantization_config\" is only "
                           "available with a dtype that quantizes");
    to->configured = true;
    CORNU__TRY(read_quantizer(json_object_get(config, "weight_quantizer"), "weight_quantizer",
                              &to->weights));
    CORNU__TRY(read_quantizer(json_object_get(config, "activation_quantizer"),
                              "activation_quantizer", &to->inputs));
    if (is_null(block)) return CORNU_OK;
    to->config_block = json_integer_value(block);
    if (json_is_integer(block) && to->config_block <= INT32_MAX &&
        (to->config_block == -1 || to->config_block > 0))
        return CORNU_OK;
    return cornu__unexpected("block_size", "null, -1 or a whole number of at least 1");
}
