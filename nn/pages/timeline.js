/* The timeline of a step: lanes of bars over one axis of time, to zoom into, with what each bar is
 * below. */

/* ---- What a bar is ---- */

/* Rows of a name and a text: of instruction `step`. */
function stepFacts(step) {
    const model = own ? step.modelled : null, rows = [["operation", step.name],
        ["layer", step.layer || "–"],
        ["shapes", `${step.in.join(", ") || "in place"} → ${step.out.join(", ") || "in place"}`]];
    if (!model) return rows;
    if (model.product[0] > 0) {
        const [count, m, k, n] = model.product.map(whole);
        rows.push(["product, M × K × N", (count === "1" ? "" : `${count} of `)
                   + `${m} × ${k} × ${n}, bfloat16 passes: ${model.passes}`],
                  ["tiles of weights", whole(model.tiles)],
                  ["multiply-accumulates", `${whole(model.useful_macs)} useful of `
                   + `${whole(model.padded_macs)} with padding, `
                   + percent(model.useful_macs / model.padded_macs)],
                  ["VMEM", `${whole(model.vmem.bytes)} bytes, ${whole(model.vmem.blocks)} blocks of `
                   + `${whole(model.vmem.rows)} rows`]);
    }
    if (model.vector_ops > 0) rows.push(["operations of the vector unit", whole(model.vector_ops)]);
    rows.push(["bytes of HBM, modelled", whole(model.hbm_bytes)]);
    if (model.link_bytes > 0) rows.push(["bytes exchanged", whole(model.link_bytes)]);
    rows.push(["bound by, modelled", `${model.bound}: MXU ${seconds(model.mxu_s)}, vector unit `
               + `${seconds(model.vector_s)}, HBM ${seconds(model.hbm_s)}, links `
               + seconds(model.links_s)]);
    return rows;
}

/* ---- Lanes: [{name, bars: [{from, to, bound, step, facts}], why}], seconds ---- */

/* A step as modelled: instructions run one after the other, their units at a time. */
function modelledLanes() {
    const units = [["MXU", "mxu"], ["vector unit", "vector"], ["HBM", "hbm"], ["links", "links"]];
    const lanes = units.map(([name, unit]) => ({ name, unit, bars: [], why: "not used" }));
    let at = own.dispatch_s;
    for (const step of steps) {
        for (const one of lanes) {
            const busy = step.modelled[one.unit + "_s"];
            if (busy > 0)
                one.bars.push({ from: at, to: at + busy, step,
                                bound: step.modelled.bound === one.unit,
                                facts: () => [[one.name, `busy for ${seconds(busy)}`],
                                              ...stepFacts(step)] });
        }
        at += step.modelled.seconds;
    }
    const bar = (name, from, length, what) => ({ name, why: "not used", bars: length > 0 ? [{ from,
        to: from + length, facts: () => [[name, `${what}: ${seconds(length)}`]] }] : [] });
    return [bar("host", 0, own.dispatch_s, "dispatch of the step"),
            bar("infeed", own.dispatch_s, own.infeed_s,
                `the next batch, ${whole(own.infeed_bytes)} bytes over PCIe`),
            ...lanes.slice(0, 2), { name: "scalar unit", bars: [],
                                    why: "not modelled: no figures of it are published" },
            ...lanes.slice(2)];
}

/* The run that was measured: a lane for each thread. */
function measuredLanes() {
    return data.threads.map((events, thread) => ({
        name: `thread ${thread}`, why: "had nothing to do",
        bars: events.map(([index, shard, from, to]) => ({ from, to, bound: true,
            step: steps[index], facts: () => [
                [`thread ${thread}`, `busy for ${seconds(to - from)}`
                 + (steps[index].per_shard ? `, shard ${shard}` : "")],
                ["kernel here", steps[index].kernel || steps[index].kind],
                ...stepFacts(steps[index])] })).sort((a, b) => a.from - b.from) }));
}

/* ---- The figure ---- */

const laneHeight = 30, laneTop = 26, laneLeft = 84, laneWidth = 1180;

/* The part of time from `begin` on, or all, that a timeline shows. */
function makeView(begin, end) {
    return {
        from: begin, to: end,
        across(time) {
            return laneLeft + (laneWidth - laneLeft - 8) * (time - this.from)
                / (this.to - this.from);
        },
        time(x) {
            return this.from + (this.to - this.from) * (x - laneLeft) / (laneWidth - laneLeft - 8);
        },
        show(from, span) {
            const width = Math.min(end, Math.max(end / 1e6, span));
            this.from = Math.min(end - width, Math.max(0, from));
            this.to = this.from + width;
        },
        zoom(centre, factor) {
            const span = Math.min(end, (this.to - this.from) * factor);
            this.show(centre - (centre - this.from) * span / (this.to - this.from), span);
        } };
}

function drawLane(svg, lane, i, view, chosen) {
    const y = laneTop + i * laneHeight;
    svg.append(element("text", { x: laneLeft - 8, y: y + laneHeight / 2 + 4,
                                 "text-anchor": "end" }, lane.name));
    if (!lane.bars.length)
        svg.append(element("text", { x: laneLeft + 6, y: y + laneHeight / 2 + 4 }, lane.why));
    for (const bar of lane.bars) {
        const x = Math.max(laneLeft, view.across(bar.from));
        const right = Math.min(laneWidth - 8, view.across(bar.to));
        if (right - x <= 0.05 && bar !== chosen) continue;
        if (right < laneLeft || x > laneWidth - 8) continue;
        svg.append(element("rect", { x, y: y + 3, width: Math.max(0.5, right - x),
            height: laneHeight - 6, class: "bar" + (bar.bound ? " bound" : "")
                + (bar === chosen ? " chosen" : "") }));
    }
}

function drawTimes(svg, view, begin, height) {
    for (const at of ticks(view.from - begin, view.to - begin, 8).map(tick => tick + begin))
        svg.append(element("line", { x1: view.across(at), x2: view.across(at), y1: laneTop,
                                     y2: height - 22, class: "grid" }),
                   element("text", { x: view.across(at), y: height - 8, "text-anchor": "middle" },
                           (at < begin ? "−" : "") + seconds(Math.abs(at - begin))));
}

/* The bar of a lane at a time, or the nearest one within `near` seconds. */
function barAt(lane, time, near) {
    const apart = bar => Math.max(bar.from - time, time - bar.to, 0);
    const nearest = lane.bars.reduce((best, bar) =>
        best === null || apart(bar) < apart(best) ? bar : best, null);
    return nearest && apart(nearest) <= near ? nearest : null;
}

/* The longest bar from `begin` on, and its lane. */
function longest(lanes, begin) {
    return lanes.flatMap((one, lane) => one.bars.map(bar => ({ bar, lane })))
        .filter(({ bar }) => bar.from >= begin)
        .reduce((a, b) => b.bar.to - b.bar.from > a.bar.to - a.bar.from ? b : a);
}

/* What is drawn, and which bar of which lane is chosen, with its facts. */
function makeChart({ title, kind, lanes, begin, onStep }) {
    const height = laneTop + lanes.length * laneHeight + 24;
    const end = Math.max(...lanes.flatMap(one => one.bars.map(bar => bar.to)));
    const svg = element("svg", { viewBox: `0 0 ${laneWidth} ${height}`, tabindex: 0,
        role: "application", class: "timeline", "aria-label": `${title}, ${kind}: `
            + `${seconds(end)}. The arrow keys go from bar to bar and lane to lane, plus and minus `
            + "zoom, Enter shows a product in the MXU." });
    return {
        svg, lanes, onStep, view: makeView(begin, end), ...longest(lanes, begin),
        facts: element("div", { class: "facts", "aria-live": "polite" }),
        tell(bar) {
            const button = bar.step?.modelled?.product[0] > 0 ? [element("button", {
                type: "button", onclick: () => onStep(bar.step) }, "See it in the MXU")] : [];
            this.facts.replaceChildren(element("dl", {}, ...bar.facts().flatMap(([name, text]) =>
                [element("dt", {}, name), element("dd", {}, text)])), ...button);
        },
        draw() {
            svg.replaceChildren(element("text", { x: laneLeft, y: 15, class: "title" },
                                        `${title}, ${kind}`));
            drawTimes(svg, this.view, begin, height);
            lanes.forEach((one, i) => drawLane(svg, one, i, this.view, this.bar));
        },
        centre() { return (this.bar.from + this.bar.to) / 2; },
        choose(bar, lane) {
            const span = this.view.to - this.view.from;
            if (!bar) return;
            [this.bar, this.lane] = [bar, lane];
            if (bar.to < this.view.from || bar.from > this.view.to)
                this.view.show(this.centre() - span / 2, span);
            this.tell(bar);
            this.draw();
        },
        zoom(centre, factor) { this.view.zoom(centre, factor); this.draw(); },
        whole() { this.view.show(begin, end - begin); this.draw(); },
        /* To the next bar of the lane, or to the next lane that has bars. */
        along(step) {
            const bars = lanes[this.lane].bars;
            this.choose(bars[bars.indexOf(this.bar) + step], this.lane);
        },
        across(step) {
            for (let i = this.lane + step; lanes[i]; i += step)
                if (lanes[i].bars.length)
                    return this.choose(barAt(lanes[i], this.centre(), Infinity), i);
        } };
}

/* The pointer shows, chooses and moves; the wheel zooms; keys do all of it. */
function listen(chart) {
    const { svg, view, lanes } = chart;
    const place = event => {
        const box = svg.getBoundingClientRect(), scale = laneWidth / box.width;
        const time = view.time((event.clientX - box.left) * scale);
        const lane = Math.floor(((event.clientY - box.top) * scale - laneTop) / laneHeight);
        const near = 3 * (view.to - view.from) / laneWidth;
        return { time, lane, bar: lanes[lane] ? barAt(lanes[lane], time, near) : null };
    };
    const keys = { ArrowLeft: () => chart.along(-1), ArrowRight: () => chart.along(1),
                   ArrowUp: () => chart.across(-1), ArrowDown: () => chart.across(1),
                   "+": () => chart.zoom(chart.centre(), 0.5),
                   "-": () => chart.zoom(chart.centre(), 2), Home: () => chart.whole(),
                   Enter: () => { if (chart.bar.step) chart.onStep(chart.bar.step); } };
    svg.addEventListener("wheel", event => {
        event.preventDefault();
        chart.zoom(place(event).time, event.deltaY < 0 ? 0.8 : 1.25);
    }, { passive: false });
    svg.addEventListener("pointermove", event => {
        if (!(event.buttons & 1)) return chart.tell(place(event).bar ?? chart.bar);
        const moved = event.movementX * laneWidth / svg.getBoundingClientRect().width;
        view.show(view.from + view.time(laneLeft) - view.time(laneLeft + moved),
                  view.to - view.from);
        chart.draw();
    });
    svg.addEventListener("pointerleave", () => chart.tell(chart.bar));
    svg.addEventListener("click", event => {
        const { bar, lane } = place(event);
        chart.choose(bar, lane);
    });
    svg.addEventListener("keydown", event => {
        if (!keys[event.key]) return;
        event.preventDefault();
        keys[event.key]();
    });
}

/* A figure of {title, kind, note, lanes, begin, onStep}. Time is counted from `begin`, where the
 * view begins, too. onStep takes an instruction whose product can be shown. */
function timeline(what) {
    const chart = makeChart(what);
    const button = (text, label, onclick) =>
        element("button", { type: "button", "aria-label": label, onclick }, text);
    listen(chart);
    chart.tell(chart.bar);
    chart.draw();
    return element("figure", {}, scroller(what.title, {}, chart.svg),
        element("p", { class: "screen" },
            button("+", "zoom in", () => chart.zoom(chart.centre(), 0.5)), " ",
            button("−", "zoom out", () => chart.zoom(chart.centre(), 2)), " ",
            button("whole", "the whole step", () => chart.whole())),
        element("p", { class: "faint" }, what.note), chart.facts);
}
