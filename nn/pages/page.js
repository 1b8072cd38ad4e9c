/* What all pages share: the data, elements, numbers, and charts of lines. */
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

/* An element with attributes and children; texts are text, never markup. */
function element(name, attributes = {}, ...children) {
    const drawn = ["svg", "g", "path", "line", "circle", "rect", "text", "title"].includes(name);
    const made = drawn ? document.createElementNS("http://www.w3.org/2000/svg", name)
                       : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
        else if (value !== null && value !== undefined) made.setAttribute(key, value);
    }
    made.append(...children.filter(child => child !== null).map(
        child => typeof child === "number" ? String(child) : child));
    return made;
}

/* Four significant digits, without an exponent where a person reads it better so. */
function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) return value.toExponential(3);
    return size >= 1000 ? Math.round(value).toLocaleString("en") : String(+value.toPrecision(4));
}

function percent(part) {
    return (100 * part).toFixed(2) + " %";
}

/* About `count` round numbers from least to most. */
function ticks(least, most, count) {
    const raw = (most - least) / count || 1, power = 10 ** Math.floor(Math.log10(raw));
    const step = power * [1, 2, 5, 10].find(times => times * power >= raw);
    const found = [];
    for (let at = Math.ceil(least / step); at * step <= most + step * 1e-9; at++)
        found.push(+(at * step).toPrecision(12));
    return found;
}

/* "training from 2.3 to 0.1" */
function inWords({ name, values }) {
    const known = values.filter(value => value !== null);
    return `${name} from ${number(known[0])} to ${number(known[known.length - 1])}`;
}

/* A figure of lines over x. series: [{name, values}], with null where there is none. The caption
 * has the values at the pointer, or at the place that the arrow keys move to. marked: an index, and
 * the reason why it is marked; -1 for none. */
function lineChart({ title, label, x, xName, series, marked, reason }) {
    const width = 420, height = 240, left = 52, right = 12, bottom = 34;
    const top = 20 + 13 * series.length;
    const values = series.flatMap(one => one.values).filter(value => value !== null);
    let least = Math.min(...values), most = Math.max(...values);
    if (least === most) { least -= Math.abs(least) / 2 || 0.5; most += Math.abs(most) / 2 || 0.5; }
    const first = x[0], last = x[x.length - 1] === first ? first + 1 : x[x.length - 1];
    const across = value => left + (width - left - right) * (value - first) / (last - first);
    const down = value => top + (height - top - bottom) * (most - value) / (most - least);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "application",
                                 "aria-roledescription": "chart", tabindex: 0,
                                 "aria-label": `${title}: ${series.map(inWords).join(", ")}` });
    svg.append(element("text", { x: left, y: 16, class: "title" }, title));
    for (const at of ticks(least, most, 4))
        svg.append(element("line", { x1: left, x2: width - right, y1: down(at), y2: down(at),
                                     class: "grid" }),
                   element("text", { x: left - 6, y: down(at) + 4, "text-anchor": "end" },
                           number(at)));
    for (const at of ticks(first, last, 6).filter(Number.isInteger))
        svg.append(element("text", { x: across(at), y: height - 18, "text-anchor": "middle" }, at));
    svg.append(element("text", { x: width - right, y: height - 4, "text-anchor": "end" }, xName));
    series.forEach((one, i) => {
        let path = "", pen = "M";
        one.values.forEach((value, at) => {
            if (value === null) { pen = "M"; return; }
            path += `${pen}${across(x[at]).toFixed(1)} ${down(value).toFixed(1)}`;
            pen = "L";
        });
        const colour = `var(--${["first", "second"][i % 2]})`;
        svg.append(element("path", { d: path, class: "line", style: `stroke:${colour}` }));
        if (one.values.length === 1 && one.values[0] !== null)
            svg.append(element("circle", { cx: across(x[0]), cy: down(one.values[0]), r: 3,
                                           style: `fill:${colour}` }));
        svg.append(element("text", { x: width - right, y: 16 + 13 * i, "text-anchor": "end",
                                     style: `fill:${colour}` }, one.name));
    });
    if (marked >= 0) {
        const of = series.find(one => one.values[marked] !== null);
        svg.append(element("circle", { cx: across(x[marked]), cy: down(series[series.length - 1]
            .values[marked] ?? of.values[marked]), r: 5, fill: "none", "stroke-width": 2,
                                       style: "stroke:var(--ink)" }));
    }
    const cursor = element("line", { y1: top, y2: height - bottom, class: "cursor",
                                     visibility: "hidden" });
    const caption = element("figcaption", { "aria-live": "polite" });
    svg.append(cursor);
    let place = marked >= 0 ? marked : x.length - 1;
    const show = at => {
        place = Math.max(0, Math.min(x.length - 1, at));
        cursor.setAttribute("x1", across(x[place]));
        cursor.setAttribute("x2", across(x[place]));
        cursor.setAttribute("visibility", "visible");
        const words = series.map(one => `${one.name} ${number(one.values[place])}`);
        caption.textContent = `${xName} ${x[place]}: ${words.join(", ")}`
            + (place === marked ? ` (${reason})` : "") + (label ? `; ${label}` : "");
    };
    svg.addEventListener("pointermove", event => {
        const box = svg.getBoundingClientRect();
        const at = (event.clientX - box.left) / box.width * width;
        let near = 0;
        x.forEach((value, i) => {
            if (Math.abs(across(value) - at) < Math.abs(across(x[near]) - at)) near = i;
        });
        show(near);
    });
    svg.addEventListener("keydown", event => {
        const move = { ArrowLeft: -1, ArrowRight: 1, Home: -x.length, End: x.length }[event.key];
        if (!move) return;
        event.preventDefault();
        show(place + move);
    });
    show(place);
    cursor.setAttribute("visibility", "hidden");
    return element("figure", {}, svg, caption);
}

/* A number of the page's head, between its name and what is said of it. */
function tile(name, value, kind, note) {
    return element("div", { class: "tile" }, element("span", { class: "faint" }, name),
                   element("b", {}, value), mark(kind), element("span", { class: "faint" },
                                                                note ? " " + note : ""));
}

/* How a number came about: a mark with a word. */
function mark(kind) {
    return element("span", { class: `kind ${kind}` }, kind);
}

/* A section whose numbers are all of one kind; null: of several, which then say it themselves. */
function section(title, kind, ...children) {
    return element("section", {}, element("h2", {}, title, kind ? " " : null,
                                          kind ? mark(kind) : null), ...children);
}

/* What the kinds mean, of those that a page has. */
function kinds(...shown) {
    const means = {
        measured: "on this machine, by its clock and counters",
        emulated: "computed here with the numbers and rounding of the device that is emulated",
        modelled: "computed from shapes and published figures; nothing ran there",
        published: "figures of vendors, papers and third parties",
        given: "by the program or its user",
        counted: "exact: of the model's shapes" };
    return element("footer", {}, element("h2", {}, "What the marks mean"), element("dl", {
        class: "kinds" }, ...shown.flatMap(kind => [element("dt", {}, mark(kind)),
                                                    element("dd", {}, means[kind])])));
}

/* Around what may be wider or higher than the page: whoever has no pointer scrolls it by the arrow
 * keys, once the tab key has led there. */
function scroller(label, attributes, ...children) {
    const made = element("div", { ...attributes, class: `scroll ${attributes.class ?? ""}` },
                         ...children);
    new ResizeObserver(() => {
        const over = made.scrollWidth > made.clientWidth || made.scrollHeight > made.clientHeight;
        for (const [name, value] of [["tabindex", 0], ["role", "region"], ["aria-label", label]])
            if (over) made.setAttribute(name, value);
            else made.removeAttribute(name);
    }).observe(made);
    return made;
}

/* label: what it is a table of. */
function table(label, head, rows, attributes = {}) {
    return scroller(label, {}, element("table", { "aria-label": label, ...attributes },
        element("thead", {}, element("tr", {}, ...head.map(text =>
            element("th", { scope: "col" }, text)))),
        element("tbody", {}, ...rows.map(row => element("tr", {}, ...row.map((cell, i) =>
            element(i ? "td" : "th", i ? {} : { scope: "row" }, cell)))))));
}
