"""How models, histories and pages show themselves in notebooks, as HTML without scripts of its own.
What has pages of its own, which have scripts, is shown in a frame that sees nothing else."""

import html
import math
import sys

_TABLE = "white-space:pre;overflow-x:auto;line-height:normal;" \
         "font-family:Menlo,'DejaVu Sans Mono',consolas,'Courier New',monospace"
_COLOURS = ("#3d7ec2", "#b8690f")      # seen on light and on dark paper


def text_as_html(text):
    """Text in columns."""
    return '<pre style="%s">%s</pre>' % (_TABLE, html.escape(text))


def page_as_html(page, title):
    """A page of the library: its scripts run within a frame without access to the notebook."""
    return ('<iframe title="%s" sandbox="allow-scripts" style="width:100%%;height:42rem;border:0" '
            'srcdoc="%s"></iframe>' % (html.escape(title), html.escape(page)))


def shown(text):
    """Shows text in a notebook, with its columns aligned; False elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None or not hasattr(shell, "kernel"):
        return False
    from IPython.display import display
    display({"text/plain": text, "text/html": text_as_html(text)}, raw=True)
    return True


def _path(values, least, most):
    """The line of a chart of 280 by 120; NaN and infinity interrupt it."""
    width, height, line, pen = 280.0, 120.0, [], "M"
    for i, value in enumerate(values):
        if not math.isfinite(value):
            pen = "M"
            continue
        x = width * i / max(1, len(values) - 1)
        y = height * (most - value) / ((most - least) or 1.0)
        line.append("%s%.1f %.1f" % (pen, x, y))
        pen = "L"
    return " ".join(line)


def _chart(name, series):
    finite = [value for _, values in series for value in values if math.isfinite(value)]
    least, most = (min(finite), max(finite)) if finite else (0.0, 1.0)
    said = ", ".join("%s %.4g" % (kind, values[-1]) for kind, values in series if values)
    lines = "".join('<path d="%s" fill="none" stroke="%s" stroke-width="2"/>'
                    % (_path(values, least, most), _COLOURS[i])
                    for i, (_, values) in enumerate(series))
    ends = "".join('<text x="286" y="%d" fill="currentColor" font-size="11">%.4g</text>'
                   % place for place in ((8, most), (120, least)))
    key = " ".join('<tspan fill="%s">■</tspan> %s' % (_COLOURS[i], kind)
                   for i, (kind, _) in enumerate(series))
    return ('<svg viewBox="-6 -34 350 164" width="350" height="164" role="img" aria-label="%s: %s" '
            'style="font-family:sans-serif"><text y="-20" fill="currentColor" font-weight="600" '
            'font-size="13">%s</text>'
            '<text y="-6" fill="currentColor" font-size="11">%s</text>%s%s</svg>'
            % (html.escape(name), html.escape(said), html.escape(name), key, lines, ends))


def history_as_html(history):
    """A chart for each log of a training, with that of its validation; below, the last values."""
    names = [name for name in history if not name.startswith("val_") or name[4:] not in history]
    charts = [_chart(name, [(kind, history[key]) for kind, key in
                            (("training", name), ("validation", "val_" + name)) if key in history])
              for name in names]
    rows = "".join("<tr><th style='text-align:left'>%s</th><td>%d</td><td>%.6g</td></tr>"
                   % (html.escape(name), len(values), values[-1])
                   for name, values in history.items() if values)
    return ("<div>%s</div><table><thead><tr><th>log</th><th>values</th><th>last</th></tr></thead>"
            "<tbody>%s</tbody></table>" % ("".join(charts), rows))
