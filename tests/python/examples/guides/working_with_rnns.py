"""Stacked and bidirectional layers, states from an encoder to a decoder, and a state that outlasts
a batch."""

from harness import data, fit, keras, report, start

layers = keras.layers
text = start(keras.Sequential([
    keras.Input((None,)), layers.Embedding(input_dim=30, output_dim=8),
    layers.GRU(12, return_sequences=True), layers.SimpleRNN(10), layers.Dense(5)]))
text.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
first = fit(text, data(6, 9, classes=30), data(6, classes=5))

encoder_input = layers.Input(shape=(None,))
embedded = layers.Embedding(input_dim=30, output_dim=8)(encoder_input)
output, state_h, state_c = layers.LSTM(8, return_state=True, name="encoder")(embedded)
decoder_input = layers.Input(shape=(None,))
embedded = layers.Embedding(input_dim=20, output_dim=8)(decoder_input)
output = layers.LSTM(8, name="decoder")(embedded, initial_state=[state_h, state_c])
translator = start(keras.Model([encoder_input, decoder_input], layers.Dense(5)(output)))
translator.compile("sgd", "mse")
second = fit(translator, [data(6, 9, classes=30), data(6, 7, classes=20)], data(6, 5))

both = start(keras.Sequential([
    keras.Input(shape=(5, 10)), layers.Bidirectional(layers.LSTM(8, return_sequences=True)),
    layers.Bidirectional(layers.LSTM(4)), layers.Dense(3)]))
both.compile("sgd", "mse")
third = fit(both, data(6, 5, 10), data(6, 3))

states = keras.Input((7, 5))
cells = [layers.LSTMCell(6), layers.LSTMCell(4)]
stacked = start(keras.Model(states, layers.RNN(cells, return_sequences=True)(states)))

lstm = layers.LSTM(4, stateful=True)
outer = keras.Input(batch_shape=(2, 3, 5))
stateful = start(keras.Model(outer, lstm(outer)))
out1 = stateful.predict(data(2, 3, 5), batch_size=2, verbose=0)
out2 = stateful.predict(data(2, 3, 5), batch_size=2, verbose=0)
lstm.reset_state()
out3 = stateful.predict(data(2, 3, 5), batch_size=2, verbose=0)
report(loss1=first["loss"], loss2=second["loss"], loss3=third["loss"], out1=out1, out2=out2,
       out3=out3, stacked=stacked.predict(data(3, 7, 5), verbose=0))
