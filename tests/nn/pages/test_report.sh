# The page of a report in a browser: headless Chromium, if it is installed.
. tests/browser.sh
. tests/checks.sh
[ -n "$browser" ] || skip_all 9 "no browser: make deps-browser"

"$programs/cornu" train mnist_convnet --data synthetic --limit 300 --epochs 2 --seed 3 --verbose 0 \
    --report report.html --history run.json >out 2>err || { cat err; exit 1; }

draws() {
    shown report.html '' && grep -q '<h2>Curves' dom &&
        grep -q '<h2>Classes' dom &&
        grep -q '<h2>Filters' dom && grep -q '<h2>Run' dom && grep -q -- '--data synthetic' dom
}
check "all parts are drawn, without a message of the console" draws

values() { # the last loss in the history, to four digits as the page rounds it
    shown report.html '' || return 1
    loss=$(sed -n 's/.*"loss": \([0-9.e-]*\),.*/\1/p' run.json | sed -n 2p)
    [ -n "$loss" ] && grep -q "training $(printf '%.4g' "$loss")[,;<]" dom
}
check "curves have the values of the history" values

# Every cell is clicked: its samples are those of the cell, as many as its count or the most.
clicks='const all = [...document.querySelectorAll(".matrix button")];
const wrong = all.filter((button, i) => {
    button.click();
    const n = Math.round(Math.sqrt(all.length)), label = Math.floor(i / n), predicted = i % n;
    const count = Number(button.textContent);
    const images = [...document.querySelectorAll("#cell img")].map(image => image.src);
    const expected = data.classes.samples.filter(one =>
        one.label === label && one.predicted === predicted).map(one => one.picture);
    return button.getAttribute("aria-pressed") !== "true"
        || count !== data.classes.counts[label][predicted]
        || images.length !== Math.min(count, 12) || images.some((src, at) => src !== expected[at]);
});
document.body.append("cells " + all.length + ", wrong " + wrong.length);'
cells() { shown report.html "$clicks" && grep -q 'cells 100, wrong 0' dom; }
check "a cell opens the samples in it" cells

# Every control has a name, every picture a text, and the arrow keys move along a curve.
named='const unnamed = [...document.querySelectorAll("button, svg[tabindex]")].filter(one =>
    !one.getAttribute("aria-label")).length + document.querySelectorAll("img:not([alt])").length;
const svg = document.querySelector("svg");
svg.dispatchEvent(new KeyboardEvent("keydown", { key: "Home" }));
const first = svg.parentNode.querySelector("figcaption").textContent;
svg.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
const second = svg.parentNode.querySelector("figcaption").textContent;
document.body.append("unnamed " + unnamed + ", " + first.slice(0, 7) + ", " + second.slice(0, 7));'
keys() { shown report.html "$named" && grep -q 'unnamed 0, epoch 1, epoch 2' dom; }
check "controls have names and curves follow the keys" keys

check "text has a contrast of 4.5 to 1 at least, in light and dark colours" contrasts report.html

# A box and an edge for each of the model, no box over another, every edge downward.
drawn='const boxes = [...document.querySelectorAll(".graph rect")].map(box => box.getBBox());
const over = boxes.some((a, i) => boxes.some((b, j) => i < j && a.x < b.x + b.width
    && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height));
const tops = new Map([...document.querySelectorAll(".graph g title")].map(one =>
    [one.textContent.split(":")[0], one.parentNode.querySelector("rect").getBBox().y]));
const topOf = layer => tops.get(layer.name);
const up = data.model.edges.filter(([from, to]) =>
    !(topOf(data.model.layers[from]) < topOf(data.model.layers[to])));
const arrows = [...document.querySelectorAll(".graph path")].filter(path =>
    path.getAttribute("d").includes("m-3")).length;
document.body.append("boxes " + boxes.length + ", over " + over + ", up " + up.length + ", edges "
    + (arrows - data.model.edges.length));'
graph() {
    "$programs/cornu" train resnet20 --data synthetic --limit 20 --epochs 1 --verbose 0 \
        --report graph.html >out 2>err || return 1
    shown graph.html '' dark && shown graph.html "$drawn" || return 1
    layers=$("$programs/cornu" summary resnet20 | grep -c '^│ [a-z]')
    [ "$layers" -gt 60 ] && grep -q "boxes [6-9][0-9], over false, up 0, edges 0" dom
}

# A layer that is called again reads what reads it: the graph still has all of its edges.
circle() {
    sed 's/"edges":\[/&[3,1],[2,2],/' graph.html > circle.html
    shown circle.html 'document.body.append("again "
        + document.querySelectorAll(".graph path.again").length + ", boxes "
        + document.querySelectorAll(".graph rect").length);' && grep -q 'again 2, boxes 72' dom
}
check "the graph has the model's layers, from top to bottom" graph
check "calls of a layer again are drawn" circle

# Every section with numbers, and every number of the head, says of which kind it is.
marked='const bare = [...document.querySelectorAll("section, .tile")].filter(one =>
    !one.querySelector(".kind") && one.querySelector("h2")?.textContent !== "Run");
document.body.append("bare " + bare.length + ", kinds "
    + [...new Set([...document.querySelectorAll(".kind")].map(one => one.textContent))].sort());'
kinds() {
    "$programs/cornu" train mnist_convnet --data synthetic --limit 100 --epochs 1 --verbose 0 \
        --device tpu:v3-8 --price-per-hour 3 --gradient-norm --report tpu.html >out 2>err &&
        shown tpu.html "$marked" &&
        grep -q 'bare 0, kinds counted,emulated,given,measured,modelled,published' dom &&
        grep -q '>gradient_norm<' dom
}
check "numbers say whether they are measured, emulated, modelled or published" kinds

# Printed, the page has its closed parts and all its graph, on light paper.
prints() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --no-pdf-header-footer \
        --blink-settings=preferredColorScheme=0 --print-to-pdf=page.pdf "file://$PWD/graph.html" \
        2> log
    [ "$(grep -ac '/Type */Page\b' page.pdf)" -ge 6 ]
}
check "it prints all its parts" prints

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
