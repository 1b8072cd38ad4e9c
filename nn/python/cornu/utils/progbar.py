"""Keras' keras.utils.Progbar: the bar of fit, for loops of one's own."""

import sys
import time


def _per_unit(seconds, unit):
    for least, factor, name in ((1, 1, "s"), (1e-3, 1e3, "ms"), (0, 1e6, "us")):
        if seconds >= least and (seconds or name == "us"):
            break
    if not seconds:
        factor, name = 1, "s"
    return " %.0f%s/%s" % (seconds * factor, name, unit)


def _left(seconds):
    if seconds > 3600:
        return "%d:%02d:%02d" % (seconds // 3600, seconds % 3600 // 60, seconds % 60)
    if seconds > 60:
        return "%d:%02d" % (seconds // 60, seconds % 60)
    return "%ds" % seconds


class Progbar:
    """Progress to `target` units; None if that is not known.

    verbose: 1 a bar that moves, 2 a line at the end, 0 nothing
    stateful_metrics: the values that are shown as they are; others are averaged over the units
    """

    def __init__(self, target, width=20, verbose=1, interval=0.05, stateful_metrics=None,
                 unit_name="step"):
        self.target, self.width, self.verbose = target, width, verbose
        self.interval, self.unit_name = interval, unit_name
        self.stateful_metrics = set(stateful_metrics or ())
        self._values, self._done, self._shown = {}, 0, 0
        self._start, self._last, self._first = time.time(), 0, None

    def add(self, n, values=None):
        """n further units are done."""
        self.update(self._done + n, values)

    def update(self, current, values=None, finalize=None):
        """`current` units are done; values are pairs (name, value)."""
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        for name, value in values or []:
            units = max(current - self._done, 1)
            if name in self.stateful_metrics or finalize:
                self._values[name] = [value, 1]
            else:
                known = self._values.setdefault(name, [0, 0])
                known[0], known[1] = known[0] + value * units, known[1] + units
        self._done, now = current, time.time()
        seconds = self._seconds_per_unit(current, now)
        if self.verbose == 1 and (finalize or now - self._last >= self.interval):
            self._draw(current, now, seconds, finalize)
            self._last = now
        elif self.verbose == 2 and finalize and self.target:
            self._print("%s - %.0fs -%s%s\n" % (self._count(current), now - self._start,
                                                _per_unit(seconds, self.unit_name),
                                                self._shown_values()))

    def _seconds_per_unit(self, current, now):
        if not current:
            return 0
        if self._first is not None and current > 1:
            return (now - self._first) / (current - 1)
        if current == 1:
            self._first = now
        return (now - self._start) / current

    def _count(self, current):
        return "%*d/%d" % (len(str(int(self.target))), current, self.target)

    def _shown_values(self):
        text = ""
        for name, (total, count) in self._values.items():
            mean = float(total) / max(count, 1)
            text += (" - %s: %.4f" if abs(mean) > 1e-3 else " - %s: %.4e") % (name, mean)
        return text

    def _draw(self, current, now, seconds, finalize):
        bold = "\x1b[1m%s\x1b[0m"
        if self.target:
            full = int(self.width * current / self.target)
            count = self._count(current)
            bar = bold % count + " " + ("\x1b[32m%s\x1b[0m" % ("━" * full) if full else "") + \
                "\x1b[37m%s\x1b[0m" % ("━" * (self.width - full))
            size = len(count) + 1 + self.width
        else:
            bar = "%7d/Unknown" % current
            size = len(bar)
        spent = _left(seconds * (self.target - current)) if self.target and not finalize else \
            "%.0fs" % (now - self._start)
        rest = _per_unit(seconds, self.unit_name) + self._shown_values()
        size += len(spent) + 1 + len(rest)
        self._print("\b" * self._shown + "\r" + bar + " " + bold % spent + rest +
                    " " * max(self._shown - size, 0) + ("\n" if finalize else ""))
        self._shown = size

    @staticmethod
    def _print(text):
        sys.stdout.write(text)
        sys.stdout.flush()
