/* What a step is on a device: nn/pages/explain_page.c writes its data, which are those of
 * `cornu explain --json`, the TPU's figures, and what each thread did. timeline.js shows the step,
 * mxu.js a product within the MXU. */

const all = data.explanation, profile = data.profile;
const steps = all.steps.map((step, index) => ({ ...step, index }));
const own = all.modelled[0] ?? null;

/* 1.23 ms; 45.6 us */
function seconds(value) {
    if (value === null || value === undefined) return "–";
    const [size, unit] = value >= 1 ? [1, "s"] : value >= 1e-3 ? [1e-3, "ms"]
        : value >= 1e-6 ? [1e-6, "µs"] : [1e-9, "ns"];
    return value === 0 ? "0" : `${+(value / size).toPrecision(3)} ${unit}`;
}

const whole = value => Math.round(value).toLocaleString("en");
const called = step => (step.layer ? step.layer + ": " : "") + step.name;

/* ---- Head ---- */

function head() {
    const tiles = [];
    if (own) {
        tiles.push(tile("step on a TPU", seconds(own.step_s), "modelled", own.profile),
                   tile("the device's part", seconds(own.device_s), "modelled",
                        `bound by ${own.device_bound}`),
                   tile("MXU used", percent(own.mxu_use), "modelled",
                        "of what its arrays could do"));
    }
    if (all.measured)
        tiles.push(tile("step here", seconds(all.measured.step_s), "measured",
                        `${all.kind}, ${all.measured.clock}`));
    tiles.push(tile("parameters", whole(all.parameters), "counted",
                    all.flops ? `${number(all.flops / 1e9)} GFLOP a step` : ""));
    return element("header", {}, element("h1", {}, `${all.model}: a ${all.step} step`),
                   element("p", { class: "faint" }, `${all.device}, batch of ${all.batch_size}, `
                       + `${all.policy}`), element("div", { class: "tiles" }, ...tiles));
}

/* ---- Roofline ---- */

/* Every instruction with products: FLOP/s over FLOP per byte of HBM, as modelled, on axes of powers
 * of ten. */
function roofline(onStep) {
    const points = steps.filter(step => step.modelled.useful_macs > 0 && step.modelled.seconds > 0)
        .map(step => ({ step, x: 2 * step.modelled.useful_macs / step.modelled.hbm_bytes,
                        y: 2 * step.modelled.useful_macs * step.modelled.passes
                            / step.modelled.seconds }));
    if (!points.length) return null;
    const width = 560, height = 340, left = 62, top = 28, right = 34, bottom = 40;
    const knee = profile.flops_s / profile.hbm_bytes_s;
    const logs = list => list.map(Math.log10);
    const xs = [Math.floor(Math.min(...logs([knee / 10, ...points.map(p => p.x)]))),
                Math.ceil(Math.max(...logs([knee * 10, ...points.map(p => p.x)])))];
    const ys = [Math.floor(Math.min(...logs(points.map(p => p.y)))),
                Math.ceil(Math.log10(profile.flops_s))];
    const across = x => left + (width - left - right) * (Math.log10(x) - xs[0]) / (xs[1] - xs[0]);
    const down = y => top + (height - top - bottom) * (ys[1] - Math.log10(y)) / (ys[1] - ys[0]);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "group",
                                 "aria-label": "Roofline of the TPU with every product" });
    svg.append(element("text", { x: left, y: 16, class: "title" },
                       "FLOP/s over FLOP per byte of HBM"));
    for (let p = xs[0]; p <= xs[1]; p++)
        svg.append(element("line", { x1: across(10 ** p), x2: across(10 ** p), y1: top,
                                     y2: height - bottom, class: "grid" }),
                   element("text", { x: across(10 ** p), y: height - 22, "text-anchor": "middle" },
                           number(10 ** p)));
    for (let p = ys[0]; p <= ys[1]; p++)
        svg.append(element("line", { x1: left, x2: width - right, y1: down(10 ** p),
                                     y2: down(10 ** p), class: "grid" }),
                   element("text", { x: left - 6, y: down(10 ** p) + 4, "text-anchor": "end" },
                           "1e" + p));
    const start = Math.max(10 ** xs[0], 10 ** ys[0] / profile.hbm_bytes_s);
    svg.append(element("path", { class: "line", style: "stroke:var(--ink)",
        d: `M${across(start)} ${down(start * profile.hbm_bytes_s)}L${across(knee)} `
            + `${down(profile.flops_s)}L${across(10 ** xs[1])} ${down(profile.flops_s)}` }));
    const caption = element("figcaption", { "aria-live": "polite" },
        `Published: ${number(profile.flops_s / 1e12)} TFLOP/s and `
        + `${number(profile.hbm_bytes_s / 1e9)} GB/s a replica. Points are modelled.`);
    for (const { step, x, y } of points) {
        const point = element("circle", { cx: across(x), cy: down(y), r: 5, tabindex: 0,
            role: "button", class: "point",
            "aria-label": `${called(step)}: ${number(y / 1e12)} TFLOP/s` });
        const tell = () => {
            caption.textContent = `${called(step)}: ${number(y / 1e12)} TFLOP/s, `
                + `${percent(y / profile.flops_s)} of the MXU, ${number(x)} FLOP per byte; bound `
                + `by ${step.modelled.bound}; modelled`;
        };
        point.addEventListener("pointerenter", tell);
        point.addEventListener("focus", tell);
        point.addEventListener("click", () => onStep(step));
        point.addEventListener("keydown", event => { if (event.key === "Enter") onStep(step); });
        svg.append(point);
    }
    return section("Roofline", "modelled", element("figure", { class: "narrow" }, svg, caption));
}

/* ---- Instructions ---- */

function instructions() {
    const head = ["instruction", "kernel here", "measured"];
    const more = own ? ["modelled", "bound", "tiles", "useful", "padded", "bytes of HBM"] : [];
    return section("Instructions", null, element("details", {}, element("summary", {},
        `All ${steps.length} of the step`), table("instructions", [...head, ...more],
        steps.map(step => {
            const row = [called(step), step.kernel, seconds(step.measured?.seconds)];
            const model = step.modelled;
            return own ? [...row, seconds(model.seconds), model.bound, whole(model.tiles),
                          whole(model.useful_macs), whole(model.padded_macs),
                          whole(model.hbm_bytes)] : row;
        }))));
}

function advice() {
    return all.advice.length ? section("Advice", null, element("ul", {}, ...all.advice.map(text =>
        element("li", {}, text)))) : null;
}

/* ---- The page ---- */

function draw() {
    document.title = `${all.model}: a ${all.step} step`;
    const mxu = own ? mxuSection() : null;
    const onStep = step => { if (mxu && mxu.choose(step)) mxu.node.scrollIntoView(); };
    const lines = [];
    if (own)
        lines.push(timeline({ title: "One step on a replica", kind: "modelled",
            lanes: modelledLanes(), begin: own.dispatch_s, onStep,
            note: "Dark bars are the unit that an instruction waits for. Point at one, or go from "
                + "bar to bar by the arrow keys; the wheel, + and - zoom. The host's dispatch, "
                + `${seconds(own.dispatch_s)}, comes before.` }));
    if (data.threads)
        lines.push(timeline({ title: "The same step on this machine",
            kind: `measured (${all.kind})`, lanes: measuredLanes(), begin: 0, onStep,
            note: "A lane for each thread, in the median of the runs that were measured." }));
    page.replaceChildren(...[head(), lines.length ? section("The step", null, ...lines) : null,
        own ? roofline(onStep) : null, mxu?.node ?? null, advice(), instructions(),
        kinds(...own ? ["modelled", "published"] : [], ...all.measured ? ["measured"] : [],
              "counted")]
        .filter(part => part));
}
