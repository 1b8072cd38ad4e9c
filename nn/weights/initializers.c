/* Source: keras/src/initializers/random_initializers.py, constant_initializers.py. */
#include "initializers.h"

#include <math.h>
#include <string.h>

#include "../../device/memory_internal.h"
#include "../config/keywords_internal.h"
#include "../fields/field_internal.h"
#include "weight_rules_internal.h"

#define FIELD(kind, name) { #name, CORNU_FIELD_##kind, offsetof(CornuInitializer, name) }
#define FAN_FIELDS FIELD(SEED, seed), FIELD(AXES_OR_NONE, input_axes), \
                   FIELD(AXES_OR_NONE, output_axes), { 0 }
static const CornuField plain_fields[] = { { 0 } };
static const CornuField constant_fields[] = {
    FIELD(NUMBER, value), { "value", CORNU_FIELD_NUMBERS, offsetof(CornuInitializer, values) },
    { 0 },
};
/* Keras 3.15 reads it but does not write it. */
static const CornuField identity_fields[] = { FIELD(NUMBER, gain), { 0 } };
static const CornuField orthogonal_fields[] = { FIELD(SEED, seed), FIELD(NUMBER, gain), { 0 } };
static const CornuField uniform_fields[] = {
    FIELD(SEED, seed), FIELD(NUMBER, minval), FIELD(NUMBER, maxval), { 0 },
};
static const CornuField normal_fields[] = {
    FIELD(SEED, seed), FIELD(NUMBER, mean), FIELD(NUMBER, stddev), { 0 },
};
static const CornuField scaling_fields[] = {
    FIELD(NUMBER, scale), FIELD(FAN_MODE, mode), FIELD(DISTRIBUTION, distribution), FAN_FIELDS,
};
static const CornuField fan_fields[] = { FAN_FIELDS };

/* In the order of CornuInitializerKind. */
static const CornuWeightRuleClass classes[] = {
    { "Zeros", "zeros", plain_fields },
    { "Ones", "ones", plain_fields },
    { "Constant", "constant", constant_fields },
    { "Identity", "identity", identity_fields },
    { "Orthogonal", "orthogonal", orthogonal_fields },
    { "RandomUniform", "random_uniform", uniform_fields },
    { "RandomNormal", "random_normal", normal_fields },
    { "TruncatedNormal", "truncated_normal", normal_fields },
    { "VarianceScaling", "variance_scaling", scaling_fields },
    { "GlorotUniform", "glorot_uniform", fan_fields },
    { "GlorotNormal", "glorot_normal", fan_fields },
    { "HeUniform", "he_uniform", fan_fields },
    { "HeNormal", "he_normal", fan_fields },
    { "LecunUniform", "lecun_uniform", fan_fields },
    { "LecunNormal", "lecun_normal", fan_fields },
};
enum { CLASSES = sizeof classes / sizeof *classes };

static const CornuWeightRuleAlias aliases[] = {
    { "zero", "zeros" }, { "one", "ones" }, { "normal", "random_normal" },
    { "uniform", "random_uniform" }, { "IdentityInitializer", "identity" },
    { "OrthogonalInitializer", "orthogonal" }, { NULL, NULL },
};

/* The scaling of initializers that take no arguments for it. */
static const struct {
    double            scale;
    CornuFanMode      mode;
    CornuDistribution distribution;
} scalings[] = {
    [CORNU_GLOROT_UNIFORM_INITIALIZER] = { 1.0, CORNU_FAN_AVG, CORNU_DISTRIBUTION_UNIFORM },
    [CORNU_GLOROT_NORMAL_INITIALIZER] = { 1.0, CORNU_FAN_AVG, CORNU_DISTRIBUTION_TRUNCATED_NORMAL },
    [CORNU_HE_UNIFORM_INITIALIZER] = { 2.0, CORNU_FAN_IN, CORNU_DISTRIBUTION_UNIFORM },
    [CORNU_HE_NORMAL_INITIALIZER] = { 2.0, CORNU_FAN_IN, CORNU_DISTRIBUTION_TRUNCATED_NORMAL },
    [CORNU_LECUN_UNIFORM_INITIALIZER] = { 1.0, CORNU_FAN_IN, CORNU_DISTRIBUTION_UNIFORM },
    [CORNU_LECUN_NORMAL_INITIALIZER] = { 1.0, CORNU_FAN_IN, CORNU_DISTRIBUTION_TRUNCATED_NORMAL },
};

const CornuFieldKind cornu_field_fan_mode = {
    .name = "fan_mode", CORNU__FIELD_OF_WORDS(CornuFanMode),
    .words = { [CORNU_FAN_IN] = "fan_in", [CORNU_FAN_OUT] = "fan_out",
               [CORNU_FAN_AVG] = "fan_avg" },
};

const CornuFieldKind cornu_field_distribution = {
    .name = "distribution", CORNU__FIELD_OF_WORDS(CornuDistribution),
    .words = { [CORNU_DISTRIBUTION_TRUNCATED_NORMAL] = "truncated_normal",
               [CORNU_DISTRIBUTION_UNTRUNCATED_NORMAL] = "untruncated_normal",
               [CORNU_DISTRIBUTION_UNIFORM] = "uniform", [CORNU_DISTRIBUTION_NORMAL] = "normal" },
};

/* ---- Defaults and checks of arguments ---- */

static CornuStatus check_numbers(const CornuInitializer *self, const char *name)
{
    const struct { const char *argument; double value; } numbers[] = {
        { "value", self->value }, { "minval", self->minval }, { "maxval", self->maxval },
        { "mean", self->mean }, { "stddev", self->stddev }, { "scale", self->scale },
        { "gain", self->gain },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i].value))
            return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .%s is %g, expected a finite number", name,
                               numbers[i].argument, numbers[i].value);
    if (self->minval > self->maxval)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .minval is %g and .maxval %g, expected "
                           ".minval <= .maxval", name, self->minval, self->maxval);
    if (self->stddev < 0.0)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .stddev is %g, expected 0 or more", name,
                           self->stddev);
    return CORNU_OK;
}

static CornuStatus check_scaling(const CornuInitializer *self, const char *name)
{
    if (!(self->scale > 0.0))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .scale is %g, expected above 0", name,
                           self->scale);
    if (!cornu__field_word(CORNU_FIELD_FAN_MODE, (int)self->mode))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .mode is %d, expected CORNU_FAN_IN, "
                           "CORNU_FAN_OUT or CORNU_FAN_AVG", name, (int)self->mode);
    if (!cornu__field_word(CORNU_FIELD_DISTRIBUTION, (int)self->distribution))
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .distribution is %d, expected 0 to %d", name,
                           (int)self->distribution, CORNU_DISTRIBUTION_NORMAL);
    return CORNU_OK;
}

static CornuStatus resolve_initializer(void *rule)
{
    CornuInitializer *self = rule;
    const char       *name = cornu__weight_rule_class(&cornu__initializers, rule)->name;
    switch ((CornuInitializerKind)self->kind) {
    case CORNU_ONES_INITIALIZER: self->value = 1.0; break;
    case CORNU_CONSTANT_INITIALIZER: self->value = cornu__number(self->value, 0.0); break;
    case CORNU_IDENTITY_INITIALIZER:
    case CORNU_ORTHOGONAL_INITIALIZER: self->gain = cornu__number(self->gain, 1.0); break;
    case CORNU_RANDOM_UNIFORM_INITIALIZER:
        self->minval = cornu__number(self->minval, -0.05);
        self->maxval = cornu__number(self->maxval, 0.05);
        break;
    case CORNU_RANDOM_NORMAL_INITIALIZER:
    case CORNU_TRUNCATED_NORMAL_INITIALIZER:
        self->mean = cornu__number(self->mean, 0.0);
        self->stddev = cornu__number(self->stddev, 0.05);
        break;
    case CORNU_VARIANCE_SCALING_INITIALIZER:
        self->scale = cornu__number(self->scale, 1.0);
        CORNU__TRY(check_scaling(self, name));
        if (self->distribution == CORNU_DISTRIBUTION_NORMAL)
            self->distribution = CORNU_DISTRIBUTION_TRUNCATED_NORMAL;
        break;
    case CORNU_GLOROT_UNIFORM_INITIALIZER: case CORNU_GLOROT_NORMAL_INITIALIZER:
    case CORNU_HE_UNIFORM_INITIALIZER:     case CORNU_HE_NORMAL_INITIALIZER:
    case CORNU_LECUN_UNIFORM_INITIALIZER:  case CORNU_LECUN_NORMAL_INITIALIZER:
        self->scale = scalings[self->kind].scale;
        self->mode = scalings[self->kind].mode;
        self->distribution = scalings[self->kind].distribution;
        break;
    case CORNU_DEFAULT_INITIALIZER:
    case CORNU_ZEROS_INITIALIZER: break;
    }
    return check_numbers(self, name);
}

static CornuStatus missed(const CornuInitializer *self, CornuShape shape, uint64_t seed,
                          int64_t generator, float *values)
{
    (void)shape, (void)seed, (void)generator, (void)values;
    cornu__weight_rule_missed(&cornu__initializers, self->record);
    return cornu_error_take();
}

static void miss(void *rule) { ((CornuInitializer *)rule)->call = missed; }

const CornuWeightRuleFamily cornu__initializers = {
    .word = "initializer", .classes = classes, .count = CLASSES, .aliases = aliases,
    .size = sizeof(CornuInitializer), .own = CORNU_DEFAULT_INITIALIZER,
    .call = offsetof(CornuInitializer, call), .record = offsetof(CornuInitializer, record),
    .miss = miss, .resolve = resolve_initializer,
};

bool cornu__initializer_valid(const CornuInitializer *self)
{
    return self->kind == CORNU_DEFAULT_INITIALIZER ||
           cornu__weight_rule_class(&cornu__initializers, self);
}

static CornuStatus check_axes(const CornuInitializer *self, const char *argument,
                              const int64_t *axes, CornuShape shape)
{
    CornuText text;
    for (int i = 0; i < CORNU_MAX_RANK && axes[i] != 0; i++) {
        const int64_t axis = cornu__integer(axes[i], 0);
        if (axis < -shape.rank || axis >= shape.rank)
            return cornu__fail(CORNU_ERR_SHAPE, "%s: .%s has %lld, which the shape %s lacks",
                               cornu__weight_rule_class(&cornu__initializers, self)->name, argument,
                               (long long)axis, cornu_shape_print(&text, shape));
    }
    return CORNU_OK;
}

/* The array of a constant is broadcast to the weight. */
static CornuStatus check_values(const CornuShape *values, CornuShape shape)
{
    CornuText a, b;
    bool      fits = values->rank <= shape.rank;
    for (int i = 1; fits && i <= values->rank; i++) {
        const int64_t extent = values->extent[values->rank - i];
        fits = extent == 1 || extent == shape.extent[shape.rank - i];
    }
    if (fits) return CORNU_OK;
    return cornu__fail(CORNU_ERR_SHAPE, "constant: the values are %s, which cannot be broadcast to "
                       "a weight %s", cornu_shape_print(&a, *values),
                       cornu_shape_print(&b, shape));
}

CornuStatus cornu__initializer_check(const CornuInitializer *self, CornuShape shape,
                                     int64_t generator)
{
    const int64_t count = cornu_shape_count(shape);
    CornuText     text;
    if (self->kind == CORNU_ORTHOGONAL_INITIALIZER && shape.rank < 2)
        return cornu__fail(CORNU_ERR_SHAPE, "orthogonal: the shape is %s, expected 2 axes or more",
                           cornu_shape_print(&text, shape));
    if (self->kind == CORNU_IDENTITY_INITIALIZER && shape.rank != 2)
        return cornu__fail(CORNU_ERR_SHAPE, "identity: the shape is %s, expected 2 axes",
                           cornu_shape_print(&text, shape));
    if (self->input_axes[0] && self->output_axes[0]) {
        CORNU__TRY(check_axes(self, "input_axes", self->input_axes, shape));
        CORNU__TRY(check_axes(self, "output_axes", self->output_axes, shape));
    }
    if (self->values.values) CORNU__TRY(check_values(&self->values.shape, shape));
    if (generator < 0 || generator > UINT32_MAX || count / 4 > UINT32_MAX)
        return cornu__fail(CORNU_ERR_VALUE, "initializer: generator %lld or %lld elements do not "
                           "fit in the random numbers' counter", (long long)generator,
                           (long long)count);
    return CORNU_OK;
}

/* ---- Constructors ---- */

/* Invalid arguments give the default initializer and a pending error. */
static CornuInitializer resolved(CornuInitializer given)
{
    if (resolve_initializer(&given) == CORNU_OK) return given;
    cornu__null();
    return (CornuInitializer){ 0 };
}

static CornuInitializer of_fans(CornuInitializer given, const int64_t *input_axes,
                                const int64_t *output_axes)
{
    memcpy(given.input_axes, input_axes, sizeof given.input_axes);
    memcpy(given.output_axes, output_axes, sizeof given.output_axes);
    return resolved(given);
}

CornuInitializer cornu_zeros_from(const CornuPlainInitializerConfig *config)
{
    (void)config;
    return resolved((CornuInitializer){ .kind = CORNU_ZEROS_INITIALIZER });
}

CornuInitializer cornu_ones_from(const CornuPlainInitializerConfig *config)
{
    (void)config;
    return resolved((CornuInitializer){ .kind = CORNU_ONES_INITIALIZER });
}

CornuInitializer cornu_constant_from(const CornuConstantConfig *config)
{
    return resolved((CornuInitializer){ .kind = CORNU_CONSTANT_INITIALIZER,
                                        .value = config->value, .values = config->values });
}

CornuInitializer cornu_identity_from(const CornuIdentityConfig *config)
{
    return resolved((CornuInitializer){ .kind = CORNU_IDENTITY_INITIALIZER,
                                        .gain = config->gain });
}

CornuInitializer cornu_orthogonal_from(const CornuOrthogonalConfig *config)
{
    return resolved((CornuInitializer){ .kind = CORNU_ORTHOGONAL_INITIALIZER,
                                        .gain = config->gain, .seed = config->seed });
}

CornuInitializer cornu_random_uniform_from(const CornuRandomUniformConfig *config)
{
    return resolved((CornuInitializer){ .kind = CORNU_RANDOM_UNIFORM_INITIALIZER,
                                        .minval = config->minval, .maxval = config->maxval,
                                        .seed = config->seed });
}

static CornuInitializer normal(unsigned kind, const CornuRandomNormalConfig *config)
{
    return resolved((CornuInitializer){ .kind = kind, .mean = config->mean,
                                        .stddev = config->stddev, .seed = config->seed });
}

CornuInitializer cornu_random_normal_from(const CornuRandomNormalConfig *config)
{
    return normal(CORNU_RANDOM_NORMAL_INITIALIZER, config);
}

CornuInitializer cornu_truncated_normal_from(const CornuRandomNormalConfig *config)
{
    return normal(CORNU_TRUNCATED_NORMAL_INITIALIZER, config);
}

CornuInitializer cornu_variance_scaling_from(const CornuVarianceScalingConfig *config)
{
    return of_fans((CornuInitializer){ .kind = CORNU_VARIANCE_SCALING_INITIALIZER,
                                       .scale = config->scale, .mode = config->mode,
                                       .distribution = config->distribution,
                                       .seed = config->seed },
                   config->input_axes, config->output_axes);
}

static CornuInitializer by_fan(unsigned kind, const CornuFanConfig *config)
{
    return of_fans((CornuInitializer){ .kind = kind, .seed = config->seed }, config->input_axes,
                   config->output_axes);
}

#define BY_FAN(name, kind)                                                       \
    CornuInitializer cornu_##name##_from(const CornuFanConfig *config)           \
    {                                                                            \
        return by_fan(kind, config);                                             \
    }
BY_FAN(glorot_uniform, CORNU_GLOROT_UNIFORM_INITIALIZER)
BY_FAN(glorot_normal, CORNU_GLOROT_NORMAL_INITIALIZER)
BY_FAN(he_uniform, CORNU_HE_UNIFORM_INITIALIZER)
BY_FAN(he_normal, CORNU_HE_NORMAL_INITIALIZER)
BY_FAN(lecun_uniform, CORNU_LECUN_UNIFORM_INITIALIZER)
BY_FAN(lecun_normal, CORNU_LECUN_NORMAL_INITIALIZER)

CornuInitializer cornu_initializer(const char *name)
{
    CornuInitializer found;
    if (cornu__weight_rule_find(&cornu__initializers, name, &found) == CORNU_OK) return found;
    cornu__null();
    return (CornuInitializer){ 0 };
}
