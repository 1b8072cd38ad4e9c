/* The report of a training: nn/pages/report.c writes its data. */

let epochs, names;   /* of the data when they were drawn last */
const log = name => epochs.map(epoch => epoch.logs[name] ?? null);

/* Whether less is better of a log: of losses and errors. */
const lessIsBetter = name => /loss|error|perplexity/.test(name) && !/accuracy/.test(name);

/* The index of the best value; -1 without any. */
function best(name) {
    const sign = lessIsBetter(name) ? -1 : 1;
    let found = -1;
    log(name).forEach((value, i) => {
        if (value !== null && (found < 0 || sign * value > sign * log(name)[found])) found = i;
    });
    return found;
}

/* ---- Head ---- */

function head() {
    const monitor = ["val_accuracy", "val_loss", "accuracy", "loss"]
        .find(name => names.includes(name));
    const done = data.ended ? `ended after ${epochs.length} of ${data.planned} epochs`
                            : `epoch ${epochs.length} of ${data.planned} has ended`;
    const tiles = [];
    if (monitor) {
        const at = best(monitor);
        tiles.push(tile(`best ${monitor}`, number(log(monitor)[at]), data.kind,
                        `epoch ${epochs[at].epoch}`));
    }
    if (names.includes("loss"))
        tiles.push(tile("last loss", number(log("loss")[epochs.length - 1]), data.kind,
                        "in training"));
    if (data.classes && !data.classes.why)
        tiles.push(tile("accuracy", percent(data.classes.accuracy), data.kind,
                        "of the samples below"));
    const timed = epochs.map(epoch => epoch.seconds).filter(value => value !== null);
    if (timed.length) {
        const sorted = [...timed].sort((a, b) => a - b);
        tiles.push(tile("an epoch", number(sorted[sorted.length >> 1]) + " s", "measured",
                        "median, without validation"));
    }
    return element("header", {}, element("h1", {}, data.title),
                   element("p", { class: "faint" }, `Training report: ${done}`),
                   element("div", { class: "tiles" }, ...tiles));
}

/* ---- Curves ---- */

function curve(name) {
    const series = [{ name: "training", values: log(name) }];
    const judged = names.includes("val_" + name) ? "val_" + name : name;
    if (judged !== name) series.push({ name: "validation", values: log(judged) });
    const plain = name === "learning_rate" || name === "gradient_norm";
    return lineChart({ title: name, x: epochs.map(epoch => epoch.epoch), xName: "epoch",
                       series: plain ? [{ name: "", values: log(name) }] : series,
                       marked: plain ? -1 : best(judged), reason: "the best" });
}

function curves() {
    const shown = names.filter(name => !name.startsWith("val_"));
    const figures = shown.map(curve);
    if (epochs.some(epoch => epoch.samples_per_second !== null))
        figures.push(lineChart({
            title: "samples a second", label: "measured, of training steps", marked: -1,
            x: epochs.map(epoch => epoch.epoch), xName: "epoch",
            series: [{ name: "", values: epochs.map(epoch => epoch.samples_per_second) }] }));
    const hint = names.includes("gradient_norm") ? null : element("p", { class: "faint" },
        "The norm of all gradients is among the curves if the model is compiled with "
        + "gradient_norm, --gradient-norm of cornu train.");
    return section("Curves", data.kind, element("div", { class: "charts" }, ...figures), hint,
        element("details", {}, element("summary", {}, "Numbers of all epochs"),
        table("epochs", ["epoch", ...names, "seconds, measured", "of these waited for data"],
            epochs.map(epoch => [epoch.epoch, ...names.map(name => number(epoch.logs[name])),
                                 number(epoch.seconds), number(epoch.wait_seconds)]))));
}

/* ---- Classes ---- */

function classes() {
    if (data.classes.why)
        return section("Classes", data.kind, element("p", {}, `No matrix: ${data.classes.why}.`));
    const { of, names: called, counts, scores, samples } = data.classes;
    const some = of > called.length;
    const panel = element("div", { id: "cell", "aria-live": "polite" });
    const most = Math.max(1, ...counts.flatMap((row, i) => row.filter((_, j) => j !== i)));
    const buttons = [];

    const open = (label, predicted, button) => {
        for (const other of buttons) other.setAttribute("aria-pressed", other === button);
        const found = samples.filter(one => one.label === label && one.predicted === predicted);
        const count = counts[label][predicted];
        panel.replaceChildren(
            element("h3", {}, `${called[label]} predicted as ${called[predicted]}: `
                    + `${count} of ${scores[label].support}`),
            element("p", { class: "faint" }, count === 0 ? "There are none."
                : `${found.length} of them are in this page, ` + (label === predicted
                    ? "the least certain first." : "the most certain first.")),
            element("ul", { class: "samples" }, ...found.map(one => element("li", {},
                one.picture ? element("img", { src: one.picture, alt:
                    `sample ${one.index}: ${called[label]} predicted as ${called[predicted]}` })
                            : null,
                `${one.index}: ${percent(one.confidence)}`))));
    };
    const cell = (label, predicted) => {
        const count = counts[label][predicted], right = label === predicted;
        const part = right ? count / (scores[label].support || 1) : count / most;
        const colour = `rgb(var(--${right ? "good" : "bad"}-part) / ${(0.45 * part).toFixed(3)})`;
        const button = element("button", {
            type: "button", "aria-pressed": "false",
            style: count === 0 ? null : `background:${colour}`,
            "aria-label": `${count} of ${called[label]} predicted as ${called[predicted]}`,
            onclick: () => open(label, predicted, button) }, count);
        buttons.push(button);
        return element("td", {}, button);
    };
    const words = "A row for each true class, a column for each predicted one."
        + (some ? ` The ${called.length} of ${of} classes that are confused most; the last column `
                  + "is of all others." : "");
    const matrix = scroller("confusion matrix", {}, element("table", { class: "matrix",
        "aria-label": "confusion matrix" },
        element("thead", {}, element("tr", {}, element("td"), ...called.map(name =>
            element("th", { scope: "col", title: name }, name)),
            some ? element("th", { scope: "col" }, "others") : null)),
        element("tbody", {}, ...counts.map((row, i) => element("tr", {},
            element("th", { scope: "row", title: called[i] }, called[i]),
            ...row.map((_, j) => cell(i, j)), some ? element("td", {}, scores[i].support
                - row.reduce((sum, count) => sum + count, 0)) : null)))));
    const score = (name, one) => [name, one.precision.toFixed(4), one.recall.toFixed(4),
                                  one.f1.toFixed(4), one.support.toLocaleString("en")];
    const worst = counts.flatMap((row, i) => row.map((count, j) => ({ i, j, count })))
        .filter(one => one.i !== one.j).sort((a, b) => b.count - a.count)[0];
    open(worst.i, worst.j, buttons[worst.i * called.length + worst.j]);
    return section("Classes", data.kind, element("p", { class: "faint" }, words), matrix, panel,
        table("scores of classes", ["class", "precision", "recall", "F1", "samples"],
              [...scores.map((one, i) => score(called[i], one)),
               score(some ? `mean of all ${of}` : "mean", data.classes.macro),
               score("weighted", data.classes.weighted)]));
}

/* ---- The rest ---- */

function filters() {
    const most = number(data.filters.most);
    return section("Filters of the first convolution", data.kind,
        element("p", { class: "faint" },
        `${data.filters.weight}; the middle grey is zero, black and white ±${most}`),
        element("div", { class: "filters" }, ...data.filters.pictures.map((url, i) =>
            element("img", { src: url, alt: `filter ${i}` }))));
}

function model() {
    const { layers, branching, trainable, others } = data.model;
    const whole = value => value.toLocaleString("en");
    return section("Model", "counted", modelGraph(data.model),
        table("layers", ["layer", "class", "output", "parameters", ...branching ? ["from"] : []],
              layers.map(layer => ["\u2003".repeat(layer.depth) + layer.name, layer.class,
                                   layer.output, whole(layer.parameters)
                                   + (layer.frozen ? " (frozen)" : ""),
                                   ...branching ? [layer.from] : []]), { class: "words" }),
        element("p", { class: "faint" }, `${whole(trainable)} parameters are trained, `
                + `${whole(others)} are not.`));
}

function cost() {
    return section("Cost and energy", null, table("cost", ["", "", "kind", "of what"],
        data.cost.map(({ name, value, unit, kind, note }) =>
            [name, `${number(value)} ${value === null ? "" : unit}`, mark(kind), note]),
        { class: "cost" }));
}

function run() {
    return section("Run", null, element("table", { class: "run", "aria-label": "run" },
        element("tbody", {}, ...data.run.map(([name, value]) => element("tr", {},
            element("th", { scope: "row" }, name), element("td", {}, value))))));
}

/* Draws the data as they are now, in place of what was drawn. */
function drawReport() {
    epochs = data.epochs;
    names = [...new Set(epochs.flatMap(epoch => Object.keys(epoch.logs)))];
    document.title = data.title + ": training report";
    page.replaceChildren(head(), ...[epochs.length ? curves() : null,
        data.classes ? classes() : null, data.filters ? filters() : null, model(), cost(), run(),
        kinds(...new Set(["measured", data.kind, "counted", ...data.cost.map(one => one.kind)]))]
        .filter(part => part));
}

if (data.epochs) drawReport();
