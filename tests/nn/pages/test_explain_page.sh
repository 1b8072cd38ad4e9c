# The page of an explanation in a browser: headless Chromium, if it is installed.
. tests/browser.sh
. tests/checks.sh
[ -n "$browser" ] || skip_all 7 "no browser: make deps-browser"

"$programs/cornu" explain mnist_cnn --device tpu:v3-8 --batch-size 64 --steps 1 --page tpu.html \
    --json tpu.json >out 2>err || { cat err; exit 1; }

draws() {
    shown tpu.html '' && grep -q '<h2>The step' dom && grep -q '<h2>Roofline' dom &&
        grep -q '<h2>Inside the MXU' dom && grep -q 'measured (emulated)' dom
}
check "all parts are drawn, without a message of the console" draws

# The walk through the MXU: cells that multiply, counted cycle by cycle on one array, are the padded
# multiply-accumulates of its folds, and the last cycle is the last in which one does.
walked='const saved = profile.arrays; profile.arrays = 1;
const small = { modelled: { product: [2, 13, 150, 200] } }, walk = walkOf(small);
let cells = 0, last = 0;
for (let cycle = 0; cycle < walk.cycles + 300; cycle++)
    for (const { since } of foldsAt(walk, cycle))
        for (let r = 0; r < walk.R; r++) {
            const first = Math.max(0, since - r - walk.rows + 1);
            const end = Math.min(walk.C - 1, since - r);
            if (end >= first) { cells += end - first + 1; last = cycle; }
        }
profile.arrays = saved;
document.body.append("cells " + (cells - walk.padded) + ", cycles " + (walk.cycles - 1 - last));'
counts() { shown tpu.html "$walked" && grep -q 'cells 0, cycles 0' dom; }
check "cells that multiply are the padded multiply-accumulates" counts

# For every network: what a walk counts is what explain says of an instruction of one product.
compared='const wrong = steps.filter(step => {
    const model = step.modelled, walk = model.product[0] ? walkOf(step) : null;
    return walk && walk.useful === model.useful_macs &&
        (walk.padded !== model.padded_macs || walk.tiles !== model.tiles);
}).length, same = steps.filter(step => step.modelled.product[0] &&
    walkOf(step).useful === step.modelled.useful_macs).length;
document.body.append("products " + (same > 0) + ", wrong " + wrong);'
networks() {
    local network
    for network in mnist_cnn mnist_cnn_bn mnist_convnet fashion_mnist_cnn resnet20 \
                   shakespeare_lstm shakespeare_lstm_quick char_gpt; do   # gpt_large is too large
        "$programs/cornu" explain "$network" --device tpu:v3-8 --no-run --page one.html \
            >out 2>err || return 1
        shown one.html "$compared" && grep -q 'products true, wrong 0' dom ||
            { echo "$network" > err; tail -c 300 dom >> err; return 1; }
        count=$((count + 1))
    done
    [ "$count" = 8 ]
}
count=0
check "walks count what the model counts, for every network" networks

# 0.1 is 0x3dcc_cccd: the bfloat16 nearest to it is 0x3dcd, 0.10009765625; ties go to even digits.
rounded='const ties = [1 + 1 / 256, 1 + 3 / 256].map(toBfloat16);
document.body.append("rounded " + toBfloat16(0.1) + " " + ties.join(" ") + " " + digits(0.1, 16));'
rounds() {
    shown tpu.html "$rounded" &&
        grep -q 'rounded 0.10009765625 1 1.015625 0 01111011 1001100' dom
}
check "bfloat16 is rounded to nearest, ties to even" rounds

check "text has a contrast of 4.5 to 1 at least, in light and dark colours" contrasts tpu.html

# Lanes are those of the TPU's units and of the threads; the times of their bars are the model's, and
# those measured are within the run.
lanes='const near = (a, b) => Math.abs(a - b) <= 1e-6 * Math.abs(b) + 1e-15;
const lanes = modelledLanes(), sum = lane => lane.bars.reduce((all, bar) =>
    all + bar.to - bar.from, 0);
const wrong = [["MXU", "mxu_s"], ["vector unit", "vector_s"], ["HBM", "hbm_s"],
    ["links", "links_s"]].filter(([name, key]) => !near(sum(lanes.find(one => one.name === name)),
        steps.reduce((all, step) => all + step.modelled[key], 0)));
const outside = measuredLanes().flatMap(lane => lane.bars).filter(bar => bar.from < 0
    || bar.to > all.measured.step_s * 1.000001 || bar.to < bar.from);
document.body.append("lanes " + lanes.map(one => one.name) + "; wrong " + wrong.length
    + ", outside " + outside.length + ", threads " + measuredLanes().length
    + ", " + document.querySelectorAll(".timeline").length + " timelines, host "
    + near(lanes[0].bars[0].to, own.dispatch_s) + ", infeed "
    + near(sum(lanes[1]), own.infeed_s));'
times() {
    shown tpu.html "$lanes" &&
        grep -q 'lanes host,infeed,MXU,vector unit,scalar unit,HBM,links; wrong 0, outside 0' dom &&
        grep -q 'threads [1-9][0-9]*, 2 timelines, host true, infeed true' dom &&
        grep -q 'not modelled: no figures of it are published' dom
}
check "lanes have the times of the model and of the run" times

# A pointer over the lane of the MXU and the arrow keys show bars, plus and the wheel zoom.
followed='const svg = document.querySelector(".timeline"), box = svg.getBoundingClientRect();
const key = name => svg.dispatchEvent(new KeyboardEvent("keydown", { key: name }));
const facts = () => svg.closest("figure").querySelector(".facts");
const width = () => svg.querySelector(".chosen").width.baseVal.value;
const first = modelledLanes()[2].bars[0], scale = box.width / laneWidth;
const view = makeView(own.dispatch_s, Math.max(...modelledLanes().flatMap(one =>
    one.bars.map(bar => bar.to))));
svg.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left
    + scale * view.across((first.from + first.to) / 2), clientY: box.top
    + scale * (laneTop + 2.5 * laneHeight) }));
const said = facts().textContent, wanted = first.facts().flat().every(text => said.includes(text));
const names = ["operation", "layer", "shapes", "tiles of weights", "multiply-accumulates",
               "bytes of HBM", "bound by"].every(name => said.includes(name));
svg.dispatchEvent(new PointerEvent("pointerleave"));
const before = facts().textContent;
key("ArrowRight");
const moved = facts().textContent !== before, narrow = width();
key("+");
const wide = width();
svg.dispatchEvent(new WheelEvent("wheel", { deltaY: -1, clientX: box.left + box.width / 2,
                                            clientY: box.top + 10 }));
const wider = width();
key("Home");
key("ArrowLeft"); key("Enter");
const shownProduct = document.querySelector("select").value === String(first.step.index);
key("ArrowDown");
const lower = facts().textContent.startsWith("vector unit");
document.body.append("hover " + wanted + " " + names + ", keys " + moved + ", zoom "
    + (wide > 1.9 * narrow && wider > 1.2 * wide) + ", product " + shownProduct + ", lane "
    + lower);'
follows() { shown tpu.html "$followed" && grep -q 'hover true true, keys true, zoom true, product true, lane true' \
    dom; }
check "a bar shows what it is, by the pointer and the keys" follows

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
