# The page of a report in a browser: headless Chromium, if it is installed.
. tests/browser.sh
. tests/checks.sh
[ -n "$browser" ] || skip_all 4 "no browser: make deps-browser"

"$programs/cornu" train mnist_convnet --data synthetic --limit 300 --epochs 2 --seed 3 --verbose 0 \
    --report report.html --history run.json >out 2>err || { cat err; exit 1; }

draws() {
    shown report.html '' && grep -q '<h2>Curves</h2>' dom &&
        grep -q '<h2>Classes</h2>' dom &&
        grep -q '<h2>Filters' dom && grep -q '<h2>Run</h2>' dom && grep -q -- '--data synthetic' dom
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

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
