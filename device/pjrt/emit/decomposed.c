/* Ops that StableHLO says by their decompositions, which compute bf16 and f16 in f32 where kernels
 * do. */
#include "emit.h"

CornuEmit *const cornu__batch_norm_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__batch_norm_grad_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__lstm_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__lstm_grad_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__gru_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__gru_grad_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__attention_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__attention_grad_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__dropout_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__resample_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__momentum_update_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__rmsprop_update_stablehlo = CORNU_DECOMPOSED;
CornuEmit *const cornu__adam_update_stablehlo = CORNU_DECOMPOSED;
