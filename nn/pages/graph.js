/* A model's graph as rows of boxes, in the manner of Sugiyama, Tagawa and Toda, "Methods for visual
 * understanding of hierarchical system structures", IEEE Trans. SMC 11(2), 1981: each node below
 * all that it reads, edges over several rows bent at their places in the rows between, and rows
 * ordered by the means of their neighbours' places. */

/* How deep each of `count` nodes is: below all that it reads. Layers that are called again may read
 * what reads them; then the first of those that are left goes on, though not all that it reads has
 * a place. */
function depths(count, edges) {
    const depth = Array(count).fill(0), after = Array.from({ length: count }, () => []);
    const waits = Array(count).fill(0), left = new Set(depth.keys());
    for (const [from, to] of edges) { after[from].push(to); waits[to]++; }
    const ready = [...left].filter(node => waits[node] === 0);
    while (left.size) {
        const node = ready.length ? ready.shift() : Math.min(...left);
        if (!left.delete(node)) continue;
        for (const to of after[node]) {
            if (left.has(to)) depth[to] = Math.max(depth[to], depth[node] + 1);
            if (--waits[to] === 0) ready.push(to);
        }
    }
    return depth;
}

/* Rows from the top: lists of {node, up, down, x}, node -1 for the bends of long edges; up and down
 * are neighbours. And the places of the nodes. */
function layeredRows(count, edges) {
    const depth = depths(count, edges);
    const rows = Array.from({ length: Math.max(...depth) + 1 }, () => []);
    const places = depth.map((row, node) => ({ node, row, up: [], down: [], x: 0 }));
    for (const place of places) rows[place.row].push(place);
    for (const [from, to] of edges) {
        let last = places[from];
        for (let at = depth[from] + 1; at <= depth[to]; at++) {
            const next = at === depth[to] ? places[to] : { node: -1, up: [], down: [], x: 0 };
            if (next.node < 0) rows[at].push(next);
            last.down.push(next);
            next.up.push(last);
            last = next;
        }
    }
    return { rows, places };
}

/* Orders each row by the mean place of its neighbours above, then below, and so on; then gives each
 * place its x, in units of boxes, bends half as wide. */
function orderRows(rows) {
    const mean = (list, x) => list.length ? list.reduce((sum, one) => sum + one.x, 0) / list.length
                                          : x;
    const spread = row => {
        const width = row.reduce((sum, one) => sum + (one.node < 0 ? 0.5 : 1), 0);
        let at = -width / 2;
        for (const one of row) {
            const own = one.node < 0 ? 0.5 : 1;
            one.x = at + own / 2;
            at += own;
        }
    };
    rows.forEach(spread);
    for (let turn = 0; turn < 6; turn++) {
        const down = turn % 2 === 0;
        for (const row of down ? rows : [...rows].reverse()) {
            const wanted = new Map(row.map(one => [one, mean(down ? one.up : one.down, one.x)]));
            row.sort((a, b) => wanted.get(a) - wanted.get(b));
            spread(row);
        }
    }
}

/* A box for each layer of depth 0, with its output and parameters; null without edges. */
function modelGraph({ layers, edges }) {
    const own = layers.map((layer, index) => ({ ...layer, index })).filter(one => !one.depth);
    const number = new Map(own.map((layer, i) => [layer.index, i]));
    if (!edges.length) return null;
    const links = edges.map(ends => ends.map(end => number.get(end)));
    const { rows, places } = layeredRows(own.length, links);
    orderRows(rows);
    const boxWidth = 190, boxHeight = 40, stepX = 206, stepY = 66, edge = 10;
    const xs = rows.flat().map(place => place.x);
    const least = Math.min(...xs) - 0.5, width = (Math.max(...xs) + 0.6 - least) * stepX;
    const height = rows.length * stepY - (stepY - boxHeight) + 2 * edge;
    const across = place => (place.x - least) * stepX, down = at => edge + at * stepY;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
                                 class: "graph", "aria-label": `The graph of ${own.length} layers `
                                     + `in ${rows.length} rows; the table below says the same.` });
    const lines = element("g", {}), boxes = element("g", {});
    rows.forEach((row, at) => row.forEach(place => {
        const x = across(place), y = down(at);
        if (place.node < 0) lines.append(element("path", { d: `M${x} ${y}V${y + boxHeight}` }));
        for (const next of place.down) {
            const from = y + boxHeight, to = down(at + 1), middle = (from + to) / 2;
            lines.append(element("path", { d: `M${x} ${from}C${x} ${middle} ${across(next)} `
                + `${middle} ${across(next)} ${to}` + (next.node < 0 ? "" : "m-3 -5l3 5l3 -5") }));
        }
        if (place.node < 0) return;
        const layer = own[place.node], left = x - boxWidth / 2;
        const cut = text => text.length > 30 ? text.slice(0, 29) + "…" : text;
        boxes.append(element("g", {}, element("title", {}, `${layer.name}: ${layer.class}, output `
            + `${layer.output}, ${layer.parameters.toLocaleString("en")} parameters`),
            element("rect", { x: left, y, width: boxWidth, height: boxHeight, rx: 6,
                              class: layer.parameters ? "weights" : null }),
            element("text", { x, y: y + 17, "text-anchor": "middle", class: "title" },
                    cut(layer.name)),
            element("text", { x, y: y + 32, "text-anchor": "middle" },
                    cut(`${layer.class} ${layer.output}`))));
    }));
    for (const [from, to] of links.map(ends => ends.map(node => places[node]))) {
        if (from.row < to.row) continue;   /* of a layer that is called again: on its right */
        const right = boxWidth / 2, out = right + 28;
        const y = down(from.row) + boxHeight * 0.75, end = down(to.row) + boxHeight * 0.25;
        lines.append(element("path", { class: "again", d: `M${across(from) + right} ${y}C`
            + `${across(from) + out} ${y} ${across(to) + out} ${end} ${across(to) + right} ${end}`
            + "m5 -3l-5 3l5 3" }));
    }
    svg.append(lines, boxes);
    return scroller("The model's graph", { class: "graphs" }, svg);
}
