"""A BERT with a loss in a step of its own, of labels with weights, and an encoder that is cut out
of it and frozen under a classifier."""

import numpy as np
from harness import GradientTape, data, fit, keras, report, start

layers, ops = keras.layers, keras.ops
VOCAB, LENGTH, EMBED = 20, 6, 8


def bert_module(query, key, value, i):
    attention_output = layers.MultiHeadAttention(
        num_heads=2, key_dim=EMBED // 2, name="encoder_{}_multiheadattention".format(i))(
            query, key, value)
    attention_output = layers.Dropout(0.0, name="encoder_{}_att_dropout".format(i))(
        attention_output)
    attention_output = layers.LayerNormalization(
        epsilon=1e-6, name="encoder_{}_att_layernormalization".format(i))(query + attention_output)
    ffn = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dense(EMBED)],
                           name="encoder_{}_ffn".format(i))
    ffn_output = layers.Dropout(0.0, name="encoder_{}_ffn_dropout".format(i))(
        ffn(attention_output))
    return layers.LayerNormalization(
        epsilon=1e-6, name="encoder_{}_ffn_layernormalization".format(i))(
            attention_output + ffn_output)


def get_pos_encoding_matrix(max_len, d_emb):
    pos_enc = np.array([[pos / np.power(10000, 2 * (j // 2) / d_emb) for j in range(d_emb)]
                        if pos != 0 else np.zeros(d_emb) for pos in range(max_len)])
    pos_enc[1:, 0::2] = np.sin(pos_enc[1:, 0::2])
    pos_enc[1:, 1::2] = np.cos(pos_enc[1:, 1::2])
    return pos_enc


class MaskedLanguageModel(keras.Model):
    loss_fn = keras.losses.SparseCategoricalCrossentropy(reduction=None)
    loss_tracker = keras.metrics.Mean(name="loss")

    def train_step(self, inputs):
        features, labels, sample_weight = inputs if len(inputs) == 3 else (*inputs, None)
        with GradientTape() as tape:
            predictions = self(features, training=True)
            loss = self.loss_fn(labels, predictions, sample_weight=sample_weight)
        trainable_vars = self.trainable_variables
        gradients = tape.gradient(loss, trainable_vars)
        self.optimizer.apply_gradients(zip(gradients, trainable_vars))
        self.loss_tracker.update_state(loss, sample_weight=sample_weight)
        return {"loss": self.loss_tracker.result()}

    @property
    def metrics(self):
        return [self.loss_tracker]


inputs = layers.Input((LENGTH,), dtype="int64")
word_embeddings = layers.Embedding(VOCAB, EMBED, name="word_embedding")(inputs)
position_embeddings = layers.Embedding(
    input_dim=LENGTH, output_dim=EMBED, name="position_embedding",
    embeddings_initializer=keras.initializers.Constant(get_pos_encoding_matrix(LENGTH, EMBED)))(
        ops.arange(start=0, stop=LENGTH, step=1))
encoder_output = word_embeddings + position_embeddings
for i in range(1):
    encoder_output = bert_module(encoder_output, encoder_output, encoder_output, i)
mlm_output = layers.Dense(VOCAB, name="mlm_cls", activation="softmax")(encoder_output)
mlm_model = start(MaskedLanguageModel(inputs, mlm_output, name="masked_bert_model"))
mlm_model.compile(optimizer=keras.optimizers.Adam(learning_rate=0.0003))
tokens, labels = data(6, LENGTH, classes=VOCAB), data(6, LENGTH, classes=VOCAB, seed=1)
weights = data(6, LENGTH, classes=2, seed=2).astype("float32")
logs = mlm_model.fit(tokens, labels, sample_weight=weights, epochs=3, batch_size=6, shuffle=False,
                     verbose=0).history
pretrained = keras.Model(mlm_model.input,
                         mlm_model.get_layer("encoder_0_ffn_layernormalization").output)
pretrained.trainable = False
class_inputs = layers.Input((LENGTH,), dtype="int64")
pooled_output = layers.GlobalMaxPooling1D()(pretrained(class_inputs))
hidden_layer = layers.Dense(8, activation="relu")(pooled_output)
classifier = keras.Model(class_inputs, layers.Dense(1, activation="sigmoid")(hidden_layer))
start(classifier)
classifier.compile(optimizer=keras.optimizers.Adam(), loss="binary_crossentropy",
                   metrics=["accuracy"])
frozen = fit(classifier, tokens, data(6, 1, classes=2))
classifier.trainable = True
pretrained.trainable = True
classifier.compile(optimizer=keras.optimizers.Adam(), loss="binary_crossentropy",
                   metrics=["accuracy"])
report(mlm=logs["loss"], frozen=frozen["loss"],
       **fit(classifier, tokens, data(6, 1, classes=2)))
