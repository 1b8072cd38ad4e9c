"""RNN, its cells, cells one after another, and ConvLSTM. Writes cells/layers.safetensors.

The cases are as those of make_sequences.py.
"""

import common
import make_sequences
from make_sequences import C, T, U, case

out = common.folder("cells")


def cells():
    def cell(kind, units=U, **arguments):
        return (f"{kind}Cell", {"units": units} | arguments)

    def rnn(cell, **arguments):
        return ("RNN", {"cell": cell} | arguments)

    def stacked(*cells):
        return ("StackedRNNCells", {"cells": list(cells)})

    masking = ("Masking", {"mask_value": -1.0})
    for kind in ("LSTM", "GRU", "SimpleRNN"):
        case(f"{kind}", rnn(cell(kind)))
        case(f"{kind}_sequences", rnn(cell(kind), return_sequences=True))
        case(f"{kind}_backwards", rnn(cell(kind), return_sequences=True, go_backwards=True))
        case(f"{kind}_mask", masking, rnn(cell(kind), return_sequences=True), rnn(cell(kind)))
        case(f"{kind}_mask_zeros", masking,
             rnn(cell(kind), return_sequences=True, zero_output_for_mask=True))
        case(f"{kind}_stateful", rnn(cell(kind), stateful=True))
        case(f"{kind}_no_bias", rnn(cell(kind, use_bias=False), unroll=True))
        case(f"Bidirectional_{kind}",
             ("Bidirectional", {"layer": rnn(cell(kind), return_sequences=True)}))
    case("GRU_reset_before", rnn(cell("GRU", reset_after=False), return_sequences=True))
    case("GRU_softmax", rnn(cell("GRU", recurrent_activation="softmax", activation="relu")))
    case("LSTM_softmax", rnn(cell("LSTM", recurrent_activation="softmax", activation="selu")))
    both = stacked(cell("LSTM"), cell("GRU", 2), cell("SimpleRNN", 4), cell("LSTM", 2))
    case("stacked", rnn(both))
    case("stacked_sequences", rnn(both, return_sequences=True))
    case("stacked_backwards", rnn(both, return_sequences=True, go_backwards=True))
    case("stacked_mask", masking, rnn(stacked(cell("LSTM"), cell("LSTM", 2)),
                                      return_sequences=True), rnn(stacked(cell("GRU"),
                                                                          cell("GRU", 2))))
    case("Bidirectional_stacked", ("Bidirectional", {
        "layer": rnn(stacked(cell("LSTM"), cell("GRU", 2)), return_sequences=True),
        "merge_mode": "mul"}))
    case("Bidirectional_two", ("Bidirectional", {
        "layer": rnn(stacked(cell("GRU"), cell("GRU", 2))),
        "backward_layer": ("LSTM", {"units": U, "go_backwards": True})}))
    case("TimeDistributed", ("TimeDistributed", {"layer": rnn(cell("GRU"))}),
         input_shape=(2, T, C))


def convolutions():
    """Without masks, which Keras' JAX backend broadcasts over the wrong axes."""
    def conv(rank, **arguments):
        return (f"ConvLSTM{rank}D", {"filters": 2, "kernel_size": [3] * rank} | arguments)

    row, image = {"input_shape": (3, 6, 2)}, {"input_shape": (3, 5, 4, 2)}
    case("ConvLSTM1D", conv(1), **row)
    case("ConvLSTM1D_dilated", conv(1, dilation_rate=[2], return_sequences=True), **row)
    case("ConvLSTM1D_stateful", conv(1, strides=[2], stateful=True), **row)
    case("ConvLSTM2D", conv(2), **image)
    case("ConvLSTM2D_same", conv(2, kernel_size=[3, 2], padding="same", return_sequences=True),
         conv(2, strides=[2, 1], go_backwards=True), **image)
    case("ConvLSTM2D_activations", conv(2, activation="relu", recurrent_activation="hard_sigmoid",
                                        use_bias=False, return_sequences=True), **image)
    case("Bidirectional_ConvLSTM2D", ("Bidirectional", {"layer": conv(2, return_sequences=True)}),
         **image)


cells()
convolutions()
make_sequences.write(out / "layers.safetensors")
