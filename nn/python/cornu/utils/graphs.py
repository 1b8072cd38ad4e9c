"""Models as graphs of Graphviz: text, and pictures where its program `dot` is installed."""

import json
import os
import shutil


class Dot:
    """A graph in Graphviz' language."""

    def __init__(self, text):
        self._text = text

    def to_string(self):
        return self._text

    __str__ = to_string

    def create(self, format="png"):
        """The bytes of a picture."""
        program = shutil.which("dot")
        if program is None:
            raise ImportError("plot_model: the program dot is not installed: apt-get install "
                              "graphviz; str(cornu.utils.model_to_dot(model)) is what it draws")
        import subprocess
        done = subprocess.run([program, "-T" + format], input=self._text.encode("utf-8"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode:
            raise ValueError("plot_model: dot -T%s: %s"
                             % (format, done.stderr.decode("utf-8", "replace").strip()))
        return done.stdout

    def write(self, path, format=None):
        """Writes a picture; its ending is the format. .dot and .gv are the text."""
        kind = format or os.path.splitext(os.fspath(path))[1][1:] or "png"
        data = self._text.encode("utf-8") if kind in ("dot", "gv") else self.create(kind)
        with open(path, "wb") as file:
            file.write(data)


def _tensors(value):
    """The layers' names that arguments of a call in a config come from."""
    if isinstance(value, dict):
        if value.get("class_name") == "__keras_tensor__":
            return [value["config"]["keras_history"][0]]
        return [name for v in value.values() for name in _tensors(v)]
    if isinstance(value, list):
        return [name for v in value for name in _tensors(v)]
    return []


def _edges(config):
    """Pairs of layers' names."""
    layers = config["config"]["layers"]
    if config["class_name"] == "Sequential":
        names = [layer["config"]["name"] for layer in layers]
        return list(zip(names, names[1:]))
    return [(source, layer["name"]) for layer in layers for node in layer["inbound_nodes"]
            for source in dict.fromkeys(_tensors([node["args"], node["kwargs"]]))]


def _quoted(text):
    return '"%s"' % str(text).replace("\\", "\\\\").replace('"', '\\"')


def _html(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _Writer:
    def __init__(self, options):
        self.options, self.lines = options, []

    def label(self, layer, config):
        """The cells of a layer: its class, and what was asked for."""
        cells, options = [config["class_name"]], self.options
        if options["show_layer_names"]:
            cells = ["%s (%s)" % (config["config"]["name"], config["class_name"])]
        activation = config["config"].get("activation")
        if options["show_layer_activations"] and isinstance(activation, str):
            cells.append("activation: " + activation)
        if options["show_dtype"]:
            dtype = config["config"].get("dtype")
            cells.append("dtype: %s" % (dtype["config"]["name"] if isinstance(dtype, dict)
                                        else dtype))
        if options["show_shapes"]:
            cells += self.shapes(layer)
        if options["show_trainable"] and layer is not None and layer.weights:
            cells.append("trainable" if layer.trainable else "not trainable")
        rows = "".join("<tr><td>%s</td></tr>" % _html(cell) for cell in cells)
        return '<<table border="0" cellborder="1" cellspacing="0">%s</table>>' % rows

    @staticmethod
    def shapes(layer):
        try:
            ends = [(name, getattr(layer, name)) for name in ("input", "output")]
        except (AttributeError, ValueError):
            return []
        shown = [(name, [t.shape for t in end] if isinstance(end, list) else end.shape)
                 for name, end in ends]
        return ["%s: %s" % pair for pair in shown]

    def model(self, model, config, prefix, depth):
        """The nodes and edges of a model, nested ones as clusters."""
        by_name = {layer.name: layer for layer in model.layers}
        inner = {}
        for layer in config["config"]["layers"]:
            name = layer["config"]["name"]
            within = by_name.get(name)
            if self.options["expand_nested"] and "layers" in layer["config"] and within is not None:
                self.lines.append("subgraph %s {" % _quoted("cluster_" + prefix + name))
                self.lines.append("label=%s;" % _quoted(name))
                ends = self.model(within, layer, prefix + name + "/", depth + 1)
                self.lines.append("}")
                inner[name] = ends
                continue
            self.lines.append("%s [label=%s];" % (_quoted(prefix + name),
                                                  self.label(within, layer)))
        sources, targets = set(), set()
        for source, target in _edges(config):
            sources.add(source), targets.add(target)
            self.lines.append("%s -> %s;" % (
                _quoted(inner.get(source, ("", prefix + source))[1]),
                _quoted(inner.get(target, (prefix + target, ""))[0])))
        names = [layer["config"]["name"] for layer in config["config"]["layers"]]
        first = next((n for n in names if n not in targets), names[0])
        last = next((n for n in reversed(names) if n not in sources), names[-1])
        return inner.get(first, (prefix + first,))[0], inner.get(last, ("", prefix + last))[1]


def model_to_dot(model, show_shapes=False, show_dtype=False, show_layer_names=True, rankdir="TB",
                 expand_nested=False, dpi=200, subgraph=False, show_layer_activations=False,
                 show_trainable=False, **kwargs):
    """The model as a Dot, whose str is Graphviz' text: a node for each layer."""
    if not model.built:
        raise ValueError("model_to_dot: %s is not built; call build, or train it" % model.name)
    writer = _Writer({"show_shapes": show_shapes, "show_dtype": show_dtype,
                      "show_layer_names": show_layer_names, "expand_nested": expand_nested,
                      "show_layer_activations": show_layer_activations,
                      "show_trainable": show_trainable})
    writer.lines += ["digraph %s {" % _quoted(model.name),
                     "graph [rankdir=%s, dpi=%d];" % (rankdir, dpi), "node [shape=plaintext];"]
    writer.model(model, json.loads(model.to_json()), "", 0)
    return Dot("\n".join(writer.lines + ["}"]) + "\n")


def plot_model(model, to_file="model.png", show_shapes=False, show_dtype=False,
               show_layer_names=True, rankdir="TB", expand_nested=False, dpi=200,
               show_layer_activations=False, show_trainable=False, **kwargs):
    """Writes a picture of a model by Graphviz' program dot; its ending is the format. A file
    .dot is the text, which needs no program."""
    model_to_dot(model, show_shapes, show_dtype, show_layer_names, rankdir, expand_nested, dpi,
                 False, show_layer_activations, show_trainable).write(to_file)
