"""Layers whose call is written out in operations, where a subclass overrides one of the methods that
it consists of: Conv2D.convolution_op, MultiHeadAttention._compute_attention and the like. Their
weights are those of the library's layer.
"""

from inspect import signature

from .. import ops
from .extended import Extended, extended_base, library_class
from .._tensors.operators import users_line


class OpenConvolution(Extended):
    """Source: keras/src/layers/convolutional/base_conv.py."""

    def convolution_op(self, inputs, kernel):
        padding = self.padding
        if padding == "causal":
            before = self.dilation_rate[0] * (self.kernel_size[0] - 1)
            edges = [[0, 0], [before, 0], [0, 0]]
            if self.data_format == "channels_first":
                edges[1:] = edges[:0:-1]
            inputs, padding = ops.pad(inputs, edges), "valid"
        return ops.conv(inputs, kernel, strides=list(self.strides), padding=padding,
                        dilation_rate=self.dilation_rate, data_format=self.data_format)

    def call(self, inputs):
        if type(self).convolution_op is OpenConvolution.convolution_op:
            return self._base(inputs)
        made = self.convolution_op(inputs, self.kernel)
        if self.use_bias:
            shape = [1] * made.ndim
            shape[1 if self.data_format == "channels_first" else -1] = self.filters
            made = made + ops.reshape(self.bias, shape)
        return self.activation(made) if self.activation is not None else made


class _Projection:
    """One of the products of MultiHeadAttention: the library's weights of that name."""

    def __init__(self, layer, part, equation):
        self._layer, self._part, self._equation = layer, part, equation

    def _weight(self, name):
        wanted = "/%s/%s" % (self._part, name)
        return next((w for w in self._layer.weights if w.path.endswith(wanted)), None)

    kernel, bias = property(lambda self: self._weight("kernel")), \
        property(lambda self: self._weight("bias"))

    def __call__(self, x):
        made = ops.einsum(self._equation, x, self.kernel)
        return made if self.bias is None else made + self.bias


class OpenMultiHeadAttention(Extended):
    """Of queries (B, T, E). Source: keras/src/layers/attention/multi_head_attention.py."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        from ..layers import Dropout
        self._dropout_layer = Dropout(self.dropout)
        # The names that Keras has for these.
        self._num_heads, self._key_dim, self._value_dim = (
            self.num_heads, self.key_dim, self.value_dim or self.key_dim)
        self._dropout, self._use_bias = self.dropout, self.use_bias
        self._dot_product_equation, self._combine_equation = "bsnh,btnh->bnts", "bnts,bsnh->btnh"
        self._query_dense, self._key_dense, self._value_dense = (
            _Projection(self._base, part, "bte,enh->btnh") for part in ("query", "key", "value"))
        self._output_dense = _Projection(self._base, "attention_output", "btnh,nho->bto")
        self._inverse_sqrt_key_dim = float(self.key_dim) ** -0.5

    def _masked_softmax(self, attention_scores, attention_mask=None):
        if attention_mask is not None:
            while attention_mask.ndim < attention_scores.ndim:
                attention_mask = ops.expand_dims(attention_mask, -3)
            attention_scores = ops.where(attention_mask, attention_scores, -1e9)
        return ops.softmax(attention_scores, axis=-1)

    def _compute_attention(self, query, key, value, attention_mask=None, training=None,
                           return_attention_scores=False, use_causal_mask=False):
        """Of queries (B, T, N, H) and keys and values (B, S, N, H)."""
        if use_causal_mask:
            causal = self._compute_causal_mask(query, value)
            attention_mask = causal if attention_mask is None else \
                ops.logical_and(attention_mask, causal)
        if not self.dropout and not return_attention_scores:
            if attention_mask is not None and attention_mask.ndim == 3:
                attention_mask = ops.expand_dims(attention_mask, -3)
            return ops.dot_product_attention(query, key, value, mask=attention_mask,
                                             scale=self._inverse_sqrt_key_dim), None
        scores = ops.einsum(self._dot_product_equation, key, query * self._inverse_sqrt_key_dim)
        scores = self._masked_softmax(scores, attention_mask)
        kept = self._dropout_layer(scores, training=training)
        return ops.einsum(self._combine_equation, kept, value), scores

    def _compute_causal_mask(self, query, value=None):
        rows = ops.arange(query.shape[1])
        columns = rows if value is None else ops.arange(value.shape[1])
        return ops.expand_dims(ops.expand_dims(rows, 1) >= ops.expand_dims(columns, 0), 0)

    def _compute_attention_mask(self, query, value, query_mask=None, value_mask=None,
                                key_mask=None, attention_mask=None, use_causal_mask=False):
        """All of them: bool (B, T, S), or None."""
        parts = [mask if mask is None else ops.expand_dims(ops.cast(mask, "bool"), axis)
                 for mask, axis in ((query_mask, -1), (value_mask, -2), (key_mask, -2))]
        if use_causal_mask:
            parts.append(self._compute_causal_mask(query, value))
        if attention_mask is not None:
            parts.append(ops.cast(attention_mask, "bool"))
        made = None
        for part in parts:
            if part is not None:
                made = part if made is None else ops.logical_and(made, part)
        return made

    def call(self, query, value, key=None, query_mask=None, value_mask=None, key_mask=None,
             attention_mask=None, return_attention_scores=False, training=None,
             use_causal_mask=False):
        kind, own = type(self), ("_compute_attention", "_compute_attention_mask", "_masked_softmax")
        if all(getattr(kind, name) is getattr(OpenMultiHeadAttention, name) for name in own):
            given = {"query_mask": query_mask, "value_mask": value_mask, "key_mask": key_mask,
                     "attention_mask": attention_mask, "training": training}
            flags = {"return_attention_scores": return_attention_scores,
                     "use_causal_mask": use_causal_mask}
            given.update({name: flag for name, flag in flags.items() if flag})
            return self._base(query, value, *([] if key is None else [key]), **given)
        if query.ndim != 3 or self.use_gate or self.sliding_window:
            raise NotImplementedError(
                "%s: overrides how MultiHeadAttention attends, which is written out for queries of "
                "3 axes without use_gate and sliding_window; in %s" % (self.name, users_line()))
        mask = self._compute_attention_mask(
            query, value, query_mask=query_mask, value_mask=value_mask, key_mask=key_mask,
            attention_mask=attention_mask, use_causal_mask=use_causal_mask)
        given = [self._query_dense(query), self._key_dense(value if key is None else key),
                 self._value_dense(value), mask, training]
        if "return_attention_scores" in signature(self._compute_attention).parameters:
            given.append(return_attention_scores)       # which Keras 3.0 did not give it
        made, scores = self._compute_attention(*given)
        made = self._output_dense(made)
        return (made, scores) if return_attention_scores else made


class OpenAttention(Extended):
    """Attention and AdditiveAttention. Source: keras/src/layers/attention/attention.py."""

    def _calculate_scores(self, query, key):
        if library_class(type(self)).class_name == "Attention" and self.score_mode == "dot":
            scores = ops.matmul(query, ops.swapaxes(key, -2, -1))
            return scores * self.scale if self.use_scale else scores
        both = ops.expand_dims(query, -2) + ops.expand_dims(key, -3)
        if library_class(type(self)).class_name == "AdditiveAttention":
            return ops.sum(ops.tanh(both) * self.scale if self.use_scale else ops.tanh(both), -1)
        both = both * self.scale if self.use_scale else both
        return self.concat_score_weight * ops.sum(ops.tanh(both), axis=-1)

    def _apply_scores(self, scores, value, scores_mask=None, training=False):
        if scores_mask is not None:
            while scores_mask.ndim < scores.ndim:
                scores_mask = ops.expand_dims(scores_mask, -2)
            scores = ops.where(scores_mask, scores, scores - 1e9)
        weights = ops.softmax(scores, axis=-1)
        kept = self._dropout_layer(weights, training=training) if self.dropout else weights
        return ops.matmul(kept, value), weights

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        from ..layers import Dropout
        self._dropout_layer = Dropout(self.dropout) if self.dropout else None

    def call(self, inputs, mask=None, training=False, return_attention_scores=False,
             use_causal_mask=False):
        kind = type(self)
        if kind._calculate_scores is OpenAttention._calculate_scores and \
                kind._apply_scores is OpenAttention._apply_scores:
            return Extended.call(self, inputs, mask=mask, training=training, **{
                name: True for name, flag in (("return_attention_scores", return_attention_scores),
                                              ("use_causal_mask", use_causal_mask)) if flag})
        query, value, key = inputs[0], inputs[1], inputs[-1]
        scores = self._calculate_scores(query=query, key=key)
        seen = mask[1] if mask else None
        if use_causal_mask:
            causal = ops.expand_dims(ops.arange(scores.shape[-2]), 1) >= \
                ops.expand_dims(ops.arange(scores.shape[-1]), 0)
            causal = ops.expand_dims(causal, 0)
            seen = causal if seen is None else ops.logical_and(ops.expand_dims(seen, -2), causal)
        made, weights = self._apply_scores(scores=scores, value=value, scores_mask=seen,
                                           training=training)
        if mask and mask[0] is not None:
            made = ops.where(ops.expand_dims(mask[0], -1), made, 0.0)
        return (made, weights) if return_attention_scores else made


_OPEN = {"Conv1D": OpenConvolution, "Conv2D": OpenConvolution, "Conv3D": OpenConvolution,
         "MultiHeadAttention": OpenMultiHeadAttention, "Attention": OpenAttention,
         "AdditiveAttention": OpenAttention}


def base_for(kind):
    """What a subclass of a class of the library gets as its first base."""
    return extended_base(kind, _OPEN.get(library_class(kind).class_name, Extended))
