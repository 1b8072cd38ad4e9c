/* What random models are made of: layers, merging layers and optimizers, each as its constructor's
 * call, which stack_print prints, too. */
#ifndef CORNU_TESTS_CHECK_STACK_KINDS_H
#define CORNU_TESTS_CHECK_STACK_KINDS_H

/* Each kind, and how it is made from the fields of a StackLayer. */
#define LAYER_KINDS(X)                                                                            \
    X(dense, cornu_dense(n, .activation = act, .no_bias = flag))                                  \
    X(regularized_dense, cornu_dense(n, .kernel_regularizer = cornu_l2(0.01),                     \
                                     .bias_regularizer = cornu_l1(0.01),                          \
                                     .activity_regularizer = cornu_l1_l2(0.01, 0.02),             \
                                     .kernel_constraint = cornu_max_norm(0.75)))                  \
    X(conv2d, cornu_conv2d(n, k, .strides = { s, 1 }, .padding = pad, .activation = act,          \
                           .no_bias = flag, .dilation_rate = { 1, s > 1 ? 1 : 1 + more }))        \
    X(conv1d, cornu_conv1d(n, k, s, .padding = more ? CORNU_CAUSAL : pad, .activation = act,      \
                           .no_bias = flag))                                                      \
    X(depthwise_conv2d, cornu_depthwise_conv2d(k, s, pad, 1 + more, .activation = act))           \
    X(depthwise_conv1d, cornu_depthwise_conv1d(.kernel_size = { k }, .strides = { s },            \
                                               .padding = pad, .activation = act))                \
    X(separable_conv2d, cornu_separable_conv2d(n, k, s, pad, .activation = act,                   \
                                               .no_bias = flag))                                  \
    X(separable_conv1d, cornu_separable_conv1d(n, .kernel_size = { k }, .strides = { s },         \
                                               .padding = pad, .activation = act))                \
    X(conv2d_transpose, cornu_conv2d_transpose(n, k, s, pad, .activation = act,                   \
                                               .no_bias = flag))                                  \
    X(conv1d_transpose, cornu_conv1d_transpose(n, .kernel_size = { k }, .strides = { s },         \
                                               .padding = pad, .activation = act))                \
    X(max_pooling2d, cornu_max_pooling2d(k, s, pad))                                              \
    X(average_pooling2d, cornu_average_pooling2d(k, s, pad))                                      \
    X(max_pooling1d, cornu_max_pooling1d(k, s, pad))                                              \
    X(average_pooling1d, cornu_average_pooling1d(k, s, pad))                                      \
    X(global_average_pooling2d, cornu_global_average_pooling2d(.keepdims = flag))                 \
    X(global_max_pooling2d, cornu_global_max_pooling2d(.keepdims = flag))                         \
    X(global_average_pooling1d, cornu_global_average_pooling1d(.keepdims = flag))                 \
    X(global_max_pooling1d, cornu_global_max_pooling1d(.keepdims = flag))                         \
    X(flatten, cornu_flatten())                                                                   \
    X(reshape_2, cornu_reshape(.target_shape = { k, CORNU_NONE }))                                \
    X(reshape_3, cornu_reshape(.target_shape = { k, s, CORNU_NONE }))                             \
    X(dropout, cornu_dropout(0.25 * (double)s))                                                   \
    X(spatial_dropout2d, cornu_spatial_dropout2d(0.25))                                           \
    X(spatial_dropout1d, cornu_spatial_dropout1d(0.25))                                           \
    X(gaussian_dropout, cornu_gaussian_dropout(0.25))                                             \
    X(alpha_dropout, cornu_alpha_dropout(0.25))                                                   \
    X(gaussian_noise, cornu_gaussian_noise(0.25))                                                 \
    X(batch_normalization, cornu_batch_normalization(.no_center = flag, .no_scale = more))        \
    X(layer_normalization, cornu_layer_normalization(.axis = more ? -1 : 1, .no_center = flag))   \
    X(rms_normalization, cornu_rms_normalization(.axis = more ? -1 : 1, .epsilon = 1e-3))         \
    X(unit_normalization, cornu_unit_normalization(.axis = more ? -1 : 1))                        \
    X(group_normalization, cornu_group_normalization(.groups = flag ? -1 : s, .no_scale = more))  \
    X(normalization, cornu_normalization(.mean = 0.5, .variance = 4.0, .invert = flag))           \
    X(activation, cornu_activation(act))                                                          \
    X(relu, cornu_relu(.max_value = 1.5, .negative_slope = 0.1, .threshold = 0.25))               \
    X(leaky_relu, cornu_leaky_relu())                                                             \
    X(prelu, cornu_prelu(.alpha_initializer = cornu_constant(0.25)))                              \
    X(elu, cornu_elu(.alpha = 0.5))                                                               \
    X(softmax, cornu_softmax(.axis = more ? -1 : 1))                                              \
    X(rescaling, cornu_rescaling(0.5, 0.25))                                                      \
    X(embedding, cornu_embedding(5, n, .mask_zero = flag))                                        \
    X(masking, cornu_masking())                                                                   \
    X(lstm, cornu_lstm(n, .return_sequences = more, .go_backwards = flag,                         \
                       .no_bias = pad == CORNU_SAME))                                             \
    X(gru, cornu_gru(n, .return_sequences = more, .go_backwards = flag,                           \
                     .no_bias = pad == CORNU_SAME, .no_reset_after = pad == CORNU_SAME))          \
    X(simple_rnn, cornu_simple_rnn(n, .return_sequences = more, .go_backwards = flag,             \
                                   .no_bias = pad == CORNU_SAME))                                 \
    X(bidirectional, cornu_bidirectional(cornu_lstm(n, .return_sequences = more),                 \
                                         flag ? CORNU_MERGE_SUM : CORNU_MERGE_CONCAT))            \
    X(bidirectional_gru, cornu_bidirectional(cornu_gru(n, .return_sequences = more),              \
                                             flag ? CORNU_MERGE_MUL : CORNU_MERGE_AVE))           \
    X(time_distributed, cornu_time_distributed(cornu_dense(n, .activation = act,                  \
                                               .no_bias = flag)))                                 \
    X(multi_head_attention, cornu_multi_head_attention(s, k, .use_causal_mask = flag,             \
                                                       .no_bias = more))                          \
    X(position_embedding, cornu_position_embedding(40))                                           \
    X(zero_padding2d, cornu_zero_padding2d(.padding = { { k, s }, { 1, 0 } }))                    \
    X(zero_padding1d, cornu_zero_padding1d(.padding = { k, s }))                                  \
    X(cropping2d, cornu_cropping2d(.cropping = { { 1, 0 }, { 0, s - 1 } }))                       \
    X(cropping1d, cornu_cropping1d(.cropping = { s, k - 1 }))                                     \
    X(up_sampling2d, cornu_up_sampling2d(s, flag ? CORNU_BILINEAR : CORNU_NEAREST))               \
    X(up_sampling1d, cornu_up_sampling1d(s))                                                      \
    X(resizing, cornu_resizing(n, k, flag ? CORNU_NEAREST : CORNU_BICUBIC, .antialias = more))    \
    X(permute_2, cornu_permute(.dims = { 2, 1 }))                                                 \
    X(permute_3, cornu_permute(.dims = { 3, 1, 2 }))                                              \
    X(repeat_vector, cornu_repeat_vector(k))                                                      \
    X(random_flip, cornu_random_flip())                                                           \
    X(random_translation, cornu_random_translation(0.2, 0.2))                                     \
    X(random_zoom, cornu_random_zoom(0.2, 0.1))                                                   \
    X(random_rotation, cornu_random_rotation(0.1))

#define MERGE_KINDS(X)                                        \
    X(add, cornu_add())                                       \
    X(subtract, cornu_subtract())                             \
    X(multiply, cornu_multiply())                             \
    X(average, cornu_average())                               \
    X(maximum, cornu_maximum())                               \
    X(minimum, cornu_minimum())                               \
    X(concatenate, cornu_concatenate(.axis = more ? -1 : 1))  \
    X(dot, cornu_dot(.axes = -1, .normalize = flag))

/* Default learning rates move weights too little in three steps for a wrong gradient to show. */
#define OPTIMIZERS(X)                                                                              \
    X(cornu_sgd(.learning_rate = 0.1))                                                             \
    X(cornu_sgd(.learning_rate = 0.05, .momentum = 0.9, .nesterov = true))                         \
    X(cornu_sgd(.learning_rate = 0.1, .global_clipnorm = 0.5, .weight_decay = 0.1))                \
    X(cornu_rmsprop(.learning_rate = 0.02))                                                        \
    X(cornu_rmsprop(.learning_rate = 0.02, .momentum = 0.5, .centered = true))                     \
    X(cornu_adam(.learning_rate = 0.05))                                                           \
    X(cornu_adam(.learning_rate = 0.05, .amsgrad = true, .clipnorm = 0.5))                         \
    X(cornu_adam(.learning_rate = 0.05, .gradient_accumulation_steps = 2))                         \
    X(cornu_adamw(.learning_rate = 0.05, .weight_decay = 0.1, .clipvalue = 0.2))                   \
    X(cornu_adamw(.learning_rate = 0.05, .use_ema = true))                                         \
    X(cornu_adagrad(.learning_rate = 0.1))                                                         \
    X(cornu_adadelta(.learning_rate = 1.0))                                                        \
    X(cornu_adamax(.learning_rate = 0.05))                                                         \
    X(cornu_nadam(.learning_rate = 0.05))                                                          \
    X(cornu_lion(.learning_rate = 0.01))                                                           \
    X(cornu_ftrl(.learning_rate = 0.1))

#endif
