"""Figures as inline SVG that takes its colours from the page, so light, dark and print are one picture.

Shapes carry what colours do: ▲ above, ▼ below, ○ not told apart; filled for learned controllers. Numbers are text of
the page beside them, so that nothing is lost without the picture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from analysis.verdict import Judgement

__all__ = ["Axis", "Point", "axis_over", "interval_bar", "interval_scale", "scatter"]

_BAR_WIDTH, _BAR_HEIGHT = 180, 22
_WIDTH, _HEIGHT = 380, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 22, 12, 44
_LABEL_GAP = 13
_LETTER = 6.8
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """A range with round ends, and where its ticks are."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def place(self, value: float) -> float:
        """0 at `low`, 1 at `high`; values outside are cut."""
        return min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))


@dataclass(frozen=True, slots=True)
class Point:
    """One arm in a scatter."""

    name: str
    x: float
    y: float
    y_low: float
    y_high: float
    learned: bool


def axis_over(values: Sequence[float], *, most_ticks: int = 5, zero: bool = False) -> Axis:
    """The smallest axis with round ticks over the finite `values`, with 0 if asked."""
    finite = [value for value in values if math.isfinite(value)] + ([0.0] if zero else [])
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if high - low < 1e-9:
        low, high = low - 0.05, high + 0.05
    rough = (high - low) / max(1, most_ticks - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in _STEPS if power * each >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(step * i, 10) for i in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks)


def interval_bar(low: float, mean: float, high: float, axis: Axis, judgement: Judgement, *, filled: bool) -> Markup:
    """An interval on a line with 0 marked."""
    svg = _svg(_BAR_WIDTH, _BAR_HEIGHT, "interval", f"{mean:+.3f}, from {low:+.3f} to {high:+.3f}")
    middle = _BAR_HEIGHT / 2

    def x(value: float) -> float:
        return 6 + (_BAR_WIDTH - 12) * axis.place(value)

    for tick in axis.ticks:
        _line(svg, x(tick), 0, x(tick), _BAR_HEIGHT, "zero" if tick == 0 else "grid")
    _line(svg, x(low), middle, x(high), middle, "whisker")
    for end in (low, high):
        _line(svg, x(end), middle - 4, x(end), middle + 4, "whisker")
    _mark(svg, x(mean), middle, judgement, filled=filled)
    return _markup(svg)


def interval_scale(axis: Axis) -> Markup:
    """The ticks above a column of interval bars."""
    svg = _svg(_BAR_WIDTH, 16, "interval scale", "scale of the intervals")
    ticks = axis.ticks if len(axis.ticks) <= 5 else tuple(t for t in axis.ticks if t in (axis.low, 0.0, axis.high))
    for tick in ticks:
        share = axis.place(tick)
        anchor = "start" if share < 0.08 else "end" if share > 0.92 else "middle"
        at = 6 + (_BAR_WIDTH - 12) * share
        at += {"start": -6, "end": 6, "middle": 0}[anchor]
        _text(svg, at, 12, f"{tick:+g}" if tick else "0", anchor)
    return _markup(svg)


def scatter(points: Sequence[Point], *, title: str, x_label: str, y_label: str, x_zero: bool = False) -> Markup:
    """Arms by two figures, each with its name beside it and its interval of y; nothing without arms."""
    if not points:
        return Markup()
    svg = _svg(_WIDTH, _HEIGHT, "scatter", title)
    xs = axis_over([point.x for point in points], zero=x_zero)
    ys = axis_over([end for point in points for end in (point.y_low, point.y, point.y_high)])
    marks = [(point.name, _across(xs, point.x), _down(ys, point.y)) for point in points]

    for tick in xs.ticks:
        _line(svg, _across(xs, tick), _TOP, _across(xs, tick), _HEIGHT - _BOTTOM, "grid")
        _text(svg, _across(xs, tick), _HEIGHT - _BOTTOM + 14, f"{tick:,g}", "middle")
    for tick in ys.ticks:
        _line(svg, _LEFT, _down(ys, tick), _WIDTH - _RIGHT, _down(ys, tick), "grid")
        _text(svg, _LEFT - 6, _down(ys, tick) + 4, f"{tick:g}", "end")
    _text(svg, (_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 8, x_label, "middle")
    label = _text(svg, 13, (_TOP + _HEIGHT - _BOTTOM) / 2, y_label, "middle")
    label.set("transform", f"rotate(-90 13 {(_TOP + _HEIGHT - _BOTTOM) / 2:.1f})")
    for point, (_, x, _) in zip(points, marks, strict=True):
        _line(svg, x, _down(ys, point.y_low), x, _down(ys, point.y_high), "whisker faint")
    _names(svg, marks)
    for point, (_, x, y) in zip(points, marks, strict=True):
        shape = SubElement(svg, "circle" if not point.learned else "rect", {"class": "mark"})
        if point.learned:
            values = {"x": x - 4.5, "y": y - 4.5, "width": 9.0, "height": 9.0}
            shape.set("class", "mark filled")
        else:
            values = {"cx": x, "cy": y, "r": 5.0}
        for name, value in values.items():
            shape.set(name, f"{value:.1f}")
    return _markup(svg)


def _names(svg: Element, marks: Sequence[tuple[str, float, float]]) -> None:
    """Names beside their marks, moved apart so that each can be read; a thin line leads to one that was moved."""
    taken = [(x - 6, x + 6, y) for _, x, y in marks]
    for name, x, y in sorted(marks, key=lambda mark: (mark[2], mark[1])):
        width = _LETTER * len(name)
        right = x + 9 + width < _WIDTH
        left_edge = x + 9 if right else x - 9 - width
        wanted = next(
            place
            for shift in range(0, _HEIGHT, 2)
            for place in (y + shift, y - shift)
            if not any(abs(place - t) < _LABEL_GAP and left_edge < t1 and left_edge + width > t0 for t0, t1, t in taken)
        )
        taken.append((left_edge, left_edge + width, wanted))
        edge = left_edge if right else left_edge + width
        if abs(wanted - y) > 3:
            _line(svg, x, y, edge, wanted, "leader")
        _text(svg, edge, wanted + 4, name, "start" if right else "end", "name")


def _across(axis: Axis, value: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * axis.place(value)


def _down(axis: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * axis.place(value)


def _svg(width: int, height: int, name: str, label: str) -> Element:
    return Element(
        "svg",
        {"viewBox": f"0 0 {width} {height}", "width": str(width), "height": str(height), "class": name, "role": "img"}
        | {"aria-label": label},
    )


def _line(svg: Element, x1: float, y1: float, x2: float, y2: float, name: str) -> None:
    ends = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(svg, "line", {"class": name} | {key: f"{value:.1f}" for key, value in ends.items()})


def _text(svg: Element, x: float, y: float, text: str, anchor: str, name: str = "tick") -> Element:
    made = SubElement(svg, "text", {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor, "class": name})
    made.text = text
    return made


def _mark(svg: Element, x: float, y: float, judgement: Judgement, *, filled: bool) -> None:
    name = f"mark {judgement.value}{' filled' if filled else ''}"
    if judgement is Judgement.UNDECIDED:
        SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "4.5", "class": name})
        return
    tip = -5.5 if judgement is Judgement.BETTER else 5.5
    corners = ((x, y + tip), (x - 5.5, y - tip * 0.75), (x + 5.5, y - tip * 0.75))
    SubElement(svg, "polygon", {"points": " ".join(f"{a:.1f},{b:.1f}" for a, b in corners), "class": name})


def _markup(svg: Element) -> Markup:
    # ElementTree escaped every text and attribute above; only its own tags are markup.
    return Markup(tostring(svg, encoding="unicode"))  # noqa: S704
