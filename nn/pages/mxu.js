/* A product within the MXU: weight-stationary, cycle by cycle, by the counts of device/tpu/model.h.
 *
 * Weights (K, N) are cut into tiles of the array's R rows by C columns. A tile is loaded row by row
 * in R cycles, the next one while rows of activations stream by the last; row i meets the cell
 * (r, c) of fold f in cycle R + f max(Mp, R) + i + r + c, where Mp is M rounded up to 8. So a walk
 * of F folds takes R + (F - 1) max(Mp, R) + Mp + R + C - 2 cycles, the model's `overlapped`. */

function walkOf(step) {
    const [count, m, k, n] = step.modelled.product;
    const R = profile.rows, C = profile.columns, rows = Math.ceil(m / 8) * 8;
    const deep = Math.ceil(k / R), wide = Math.ceil(n / C), tiles = count * deep * wide;
    const folds = Math.ceil(tiles / profile.arrays), period = Math.max(rows, R);
    return { count, m, k, n, R, C, rows, deep, wide, tiles, folds, period,
             cycles: R + (folds - 1) * period + rows + R + C - 2,
             /* Of tile number t of the product: how many rows and columns of it are weights. */
             tile(t) {
                 const within = t % (deep * wide), down = Math.floor(within / wide);
                 const across = within % wide;
                 return { used: Math.min(R, k - down * R), columns: Math.min(C, n - across * C),
                          down, across };
             },
             useful: count * m * k * n, padded: tiles * rows * R * C };
}

/* The folds of which the first array holds rows in a cycle, and the cycles since each began: the
 * last rows of a fold, or of several, leave while the next one enters. */
function foldsAt(walk, cycle) {
    const lasts = walk.rows + walk.R + walk.C - 2, found = [];
    const first = Math.max(0, Math.ceil((cycle - walk.R - lasts + 1) / walk.period));
    const last = Math.min(walk.folds - 1, Math.floor((cycle - walk.R) / walk.period));
    for (let fold = first; fold <= last; fold++)
        found.push({ fold, since: cycle - walk.R - fold * walk.period });
    return found;
}

/* The row of weights that is being loaded, and of which fold; null if none is. */
function loadingAt(walk, cycle) {
    for (let f = 0; f < walk.folds; f++) {
        const begin = f === 0 ? 0 : walk.R + f * walk.period - walk.R;
        if (cycle >= begin && cycle < begin + walk.R) return { fold: f, row: cycle - begin };
        if (begin > cycle) break;
    }
    return null;
}

function paint(canvas, walk, cycle) {
    const context = canvas.getContext("2d"), size = canvas.width / walk.C;
    const style = getComputedStyle(document.documentElement);
    const colour = name => style.getPropertyValue(name);
    const tile = cycle >= walk.R ? walk.tile(Math.min(walk.folds - 1,
        Math.max(0, Math.floor((cycle - walk.R) / walk.period))) * profile.arrays) : walk.tile(0);
    context.fillStyle = colour("--panel");
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.fillStyle = colour("--rule");
    context.fillRect(0, 0, tile.columns * size, tile.used * size);
    const gap = Math.max(1, size - 0.5);
    let useful = 0, padding = 0;
    for (const { fold, since } of foldsAt(walk, cycle)) {
        const held = walk.tile(fold * profile.arrays);
        for (let r = 0; r < walk.R; r++)
            for (let c = 0; c < walk.C; c++) {
                const row = since - r - c;
                if (row < 0 || row >= walk.rows) continue;
                const works = row < walk.m && r < held.used && c < held.columns;
                works ? useful++ : padding++;
                context.fillStyle = colour(works ? "--first" : "--second");
                context.fillRect(c * size, r * size, gap, gap);
            }
    }
    const loading = loadingAt(walk, cycle);
    if (loading) {
        context.fillStyle = colour("--ink");
        context.fillRect(0, loading.row * size, canvas.width, Math.max(2, size));
    }
    return { useful, padding, loading };
}

/* ---- bfloat16 ---- */

/* The bits of an f32, and of the bfloat16 nearest to it, ties to even. */
function bitsOf(value) {
    return new Uint32Array(new Float32Array([value]).buffer)[0];
}

function toBfloat16(value) {
    const bits = bitsOf(value);
    const rounded = (bits + 0x7fff + (bits >>> 16 & 1)) >>> 0;
    return new Float32Array(new Uint32Array([(rounded & 0xffff0000) >>> 0]).buffer)[0];
}

/* "0 01111011 1001100 1100110011001101": sign, exponent, and the fraction, of which bfloat16 keeps
 * seven. */
function digits(value, width) {
    const text = bitsOf(value).toString(2).padStart(32, "0");
    const parts = [text.slice(0, 1), text.slice(1, 9), text.slice(9, 16), text.slice(16)];
    return parts.slice(0, width > 16 ? 4 : 3).join(" ");
}

function rounding() {
    const fields = [0.1, 3.1415927, 1].map((value, i) => element("input", { type: "number",
        step: "any", value, "aria-label": ["activation", "weight", "sum so far"][i] }));
    const out = element("div", { "aria-live": "polite" });
    const show = () => {
        const [x, w, sum] = fields.map(field => Math.fround(Number(field.value) || 0));
        const a = toBfloat16(x), b = toBfloat16(w), product = Math.fround(a * b);
        const total = Math.fround(sum + product);
        out.replaceChildren(table("digits", ["", "number", "sign, exponent, fraction"], [
            ["activation, f32", String(x), digits(x, 32)],
            ["activation, bfloat16", String(a), digits(a, 16)],
            ["weight, f32", String(w), digits(w, 32)],
            ["weight, bfloat16", String(b), digits(b, 16)],
            ["product, exact in f32", String(product), digits(product, 32)],
            ["sum, f32", String(total), digits(total, 32)],
            ["the sum without rounding", String(sum + x * w), ""]], { class: "digits" }));
    };
    for (const field of fields) field.addEventListener("input", show);
    show();
    return element("div", {}, element("h3", {}, "bfloat16, digit by digit"),
        element("p", { class: "faint" }, "A cell multiplies two bfloat16 numbers, 7 digits of "
            + "fraction each, to a product that f32 holds exactly, and adds it to an f32 sum."),
        element("p", {}, "sum ", fields[2], " + activation ", fields[0], " × weight ", fields[1]),
        out);
}

/* ---- The section ---- */

function mxuSection() {
    const products = steps.filter(step => step.modelled.product[0] > 0);
    if (!products.length) return null;
    const select = element("select", { "aria-label": "product" }, ...products.map(step =>
        element("option", { value: step.index }, `${called(step)}: ${step.modelled.product.slice(1)
            .map(whole).join(" × ")}`)));
    const canvas = element("canvas", { width: 512, height: 512, role: "img",
                                       "aria-label": "cells of the array" });
    const slider = element("input", { type: "range", min: 0, value: 0, "aria-label": "cycle" });
    const play = element("button", { type: "button" }, "play");
    const state = element("p", { "aria-live": "off", id: "mxu-state" });
    const facts = element("div", { id: "mxu-facts" });
    const map = element("div", { class: "tilemap" });
    let walk, timer = null;

    const show = () => {
        const cycle = Number(slider.value), at = paint(canvas, walk, cycle);
        const cells = walk.R * walk.C;
        state.textContent = `cycle ${whole(cycle)} of ${whole(walk.cycles)}: `
            + `${whole(at.useful)} cells multiply, ${whole(at.padding)} multiply padding, `
            + `${whole(cells - at.useful - at.padding)} wait`
            + (at.loading ? `; row ${at.loading.row} of tile ${at.loading.fold} is loaded` : "");
    };
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "play"; };
    const begin = step => {
        stop();
        walk = walkOf(step);
        slider.max = walk.cycles - 1;
        slider.value = Math.min(walk.cycles - 1, walk.R + Math.min(walk.rows, walk.R));
        const model = step.modelled;
        facts.replaceChildren(table("product", ["of this instruction", ""], [
            ["products of rows × depth × columns", `${whole(walk.count)} of ${whole(walk.m)} × `
                + `${whole(walk.k)} × ${whole(walk.n)}`],
            ["tiles of weights", whole(model.tiles)],
            ["useful multiply-accumulates", whole(model.useful_macs)],
            ["those with padding", whole(model.padded_macs)],
            ["useful part", percent(model.useful_macs / model.padded_macs)],
            ["bfloat16 passes", model.passes],
            ["rows of a block in VMEM, blocks",
             `${whole(model.vmem.rows)}, ${whole(model.vmem.blocks)}`],
            ["MXU busy", seconds(model.mxu_s) + ", modelled"],
            ["used of the arrays", percent(model.use.overlapped)]]));
        const shown = Math.min(walk.deep * walk.wide, 1024);
        map.style.gridTemplateColumns = `repeat(${walk.wide}, minmax(6px, 24px))`;
        map.replaceChildren(...Array.from({ length: shown }, (_, t) => {
            const tile = walk.tile(t), part = tile.used * tile.columns / (walk.R * walk.C);
            return element("span", { title: `tile ${tile.down}, ${tile.across}: ${tile.used} × `
                + `${tile.columns} weights, ${percent(part)}`,
                style: `opacity:${(0.15 + 0.85 * part).toFixed(2)}` });
        }));
        show();
    };
    const choose = step => {
        if (!products.includes(step)) return false;
        select.value = step.index;
        begin(step);
        return true;
    };
    slider.addEventListener("input", show);
    select.addEventListener("change", () => begin(steps[Number(select.value)]));
    play.addEventListener("click", () => {
        if (timer) return stop();
        play.textContent = "stop";
        timer = setInterval(() => {
            if (Number(slider.value) >= walk.cycles - 1) return stop();
            slider.value = Number(slider.value) + 1;
            show();
        }, 40);
    });
    choose(products.reduce((a, b) => a.modelled.mxu_s > b.modelled.mxu_s ? a : b));
    const node = section("Inside the MXU", "modelled",
        element("p", { class: "faint" }, `Weights stay in an array of ${profile.rows} × `
            + `${profile.columns} cells (${profile.arrays} of them a replica; the first is shown), `
            + "rows of activations enter from the left, one a cycle, sums leave below. Counted as "
            + "the device does, on no TPU."),
        element("p", {}, select), element("div", { class: "mxu" },
            element("div", {}, canvas, element("p", {}, play, " ", slider), state,
                element("p", { class: "faint" }, element("span", { class: "key first" }),
                    " weights meet activations ",
                    element("span", { class: "key second" }), " padding ",
                    element("span", { class: "key ink" }), " a row of the next tile is loaded")),
            element("div", {}, facts, element("h3", {}, "Tiles of weights"),
                element("p", { class: "faint" }, "The fuller a square's colour, the more of the "
                    + "tile are weights."), map)),
        rounding());
    return { node, choose };
}

draw();
