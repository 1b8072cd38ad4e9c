/* What a compiled model does and one that only predicts does not. */
#include "compiled_internal.h"

const CornuCompiled cornu__compiled = {
    .build = cornu__compiled_build, .scale_loss = cornu__compiled_scale_loss,
    .follow = cornu__compiled_follow, .pipeline = cornu__compiled_pipeline,
    .pack = cornu__compiled_pack, .record = cornu__compiled_record, .own = cornu__compiled_own,
    .free = cornu__compiled_free,
    .advise = cornu__compiled_advise,
};
