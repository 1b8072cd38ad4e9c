#include "../../../tensor/functions/functions_internal.h"
#include "../layer_internal.h"

typedef struct {
    CornuLayer                    base;
    CornuGroupNormalizationConfig config;
    int                           axis;     /* of the channels, not negative */
    int64_t                       groups;
} GroupNormalization;

static CornuStatus group_normalization_build(CornuLayer *layer, CornuShape input)
{
    GroupNormalization *self = (GroupNormalization *)layer;
    const CornuGroupNormalizationConfig *config = &self->config;
    const int64_t axes[CORNU_MAX_RANK] = { config->axis };
    int64_t       bits;
    CornuText     text;
    CORNU__TRY(cornu__axis_bits(axes, input, &bits));
    if (input.rank == CORNU_MAX_RANK)
        return cornu__fail(CORNU_ERR_SHAPE, "the input is %s, expected at most %d axes",
                           cornu_shape_print(&text, input), CORNU_MAX_RANK - 1);
    self->axis = (int)(config->axis < 0 ? config->axis + input.rank : config->axis);
    const int64_t channels = input.extent[self->axis];
    self->groups = config->groups == -1 ? channels : config->groups;
    if (self->groups > channels || channels % self->groups != 0)
        return cornu__fail(CORNU_ERR_SHAPE, "the input %s has %lld channels, expected a multiple "
                           "of the %lld groups", cornu_shape_print(&text, input),
                           (long long)channels, (long long)self->groups);
    const CornuShape shape = cornu_shape(channels);
    if (!config->no_scale) {
        CORNU__TRY(cornu_layer_weight(layer, "gamma", shape, config->gamma_initializer, false));
        CORNU__TRY(cornu_layer_weight_rules(layer, config->gamma_regularizer,
                                            config->gamma_constraint));
    }
    if (config->no_center) return CORNU_OK;
    CORNU__TRY(cornu_layer_weight(layer, "beta", shape, config->beta_initializer, false));
    return cornu_layer_weight_rules(layer, config->beta_regularizer, config->beta_constraint);
}

static CornuTensor *group_normalization_call(CornuLayer *layer, const CornuCall *call,
                                             CornuTensor *x)
{
    const GroupNormalization *self = (GroupNormalization *)layer;
    const CornuGroupNormalizationConfig *config = &self->config;
    CornuTensor *gamma = NULL, *beta = NULL;
    int          next = 0;
    x = cornu_op_convert(x, CORNU_F32);
    if (!config->no_scale) gamma = cornu_layer_read_as(layer, call, next++, CORNU_F32);
    if (!config->no_center) beta = cornu_layer_read_as(layer, call, next, CORNU_F32);
    CornuTensor *y = cornu__group_norm(x, gamma, beta, self->axis, self->groups, config->epsilon);
    return cornu_op_convert(y, layer->result);
}

static CornuStatus group_normalization_resolve(CornuLayer *layer)
{
    CornuGroupNormalizationConfig *config = &((GroupNormalization *)layer)->config;
    if (config->groups < -1)
        return cornu__fail(CORNU_ERR_ARGUMENT, "%s: .groups is %lld, expected at least 1, or -1",
                           cornu_layer_name(layer), (long long)config->groups);
    if (!config->groups) config->groups = 32;
    if (!config->axis) config->axis = -1;
    return cornu__resolve_epsilon(layer, &config->epsilon, 0.001);
}

#define FIELD(field) offsetof(CornuGroupNormalizationConfig, field)
static const CornuField fields[] = {
    { "groups", CORNU_FIELD_INTEGER, FIELD(groups) },
    { "axis", CORNU_FIELD_INTEGER, FIELD(axis) },
    { "epsilon", CORNU_FIELD_NUMBER, FIELD(epsilon) },
    { "center", CORNU_FIELD_NOT, FIELD(no_center) },
    { "scale", CORNU_FIELD_NOT, FIELD(no_scale) },
    { "beta_initializer", CORNU_FIELD_INITIALIZER, FIELD(beta_initializer) },
    { "gamma_initializer", CORNU_FIELD_INITIALIZER, FIELD(gamma_initializer) },
    CORNU__SCALE_FIELDS(CornuGroupNormalizationConfig),
    { 0 },
};

const CornuLayerClass cornu__group_normalization_class = {
    .class_name = "GroupNormalization", .size = sizeof(GroupNormalization),
    .build = group_normalization_build, .call = group_normalization_call,
    .keras = &(const CornuKerasClass){ CORNU__TRAINED(fields, GroupNormalization,
                                                      group_normalization_resolve) },
};

CORNU__CONSTRUCTOR(group_normalization, CornuGroupNormalizationConfig)
