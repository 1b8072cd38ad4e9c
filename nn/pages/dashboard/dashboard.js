/* The dashboard of a training, above its report: nn/pages/dashboard/server_internal.h has what its
 * server sends and takes. */

const token = new URLSearchParams(location.search).get("token") ?? "";
let progress = null;       /* as it came last */
let points = [];           /* [step, loss] of the curve by steps */
let drawn = null;          /* the last of them when it was drawn */
let lastLine = 0;

/* ---- What is always there ---- */

const stateOf = element("b", { class: "state", role: "status" }, "connecting");
const progressOf = element("p", { class: "progress" });
const bar = element("progress", { "aria-label": "steps of the epoch", max: 1, value: 0 });
const curveOf = element("div", {});
const lines = element("ol", { class: "log", role: "log", tabindex: 0,
                              "aria-label": "log of the dashboard" });
const refusal = element("p", { class: "refusal", role: "alert" });

function button(text, title, ask) {
    return element("button", { type: "button", title, disabled: "", onclick: ask }, text);
}

const pause = button("Pause", "Wait after the present step",
                     () => command(progress.state === "paused" ? "resume" : "pause"));
const stop = button("Stop after this epoch", "End the training when the epoch has ended",
                    () => command(progress.stopping ? "go_on" : "stop"));
const save = button("Save now", "Write the model as it is to its file", () => command("save"));
const rate = element("input", { type: "number", id: "rate", min: 1e-12, max: 1e6, step: "any",
                                required: "", autocomplete: "off", disabled: "" });
const setRate = element("button", { disabled: "" }, "Set");
const controls = [pause, stop, save, rate, setRate];

document.querySelector("main").before(element("section", { id: "live", "aria-label": "Training" },
    element("div", { class: "now" }, stateOf, progressOf), bar,
    element("div", { class: "controls", role: "group", "aria-label": "Controls" },
        pause, stop, save,
        element("form", { onsubmit: changeRate },
                element("label", { for: "rate" }, "Learning rate"), rate, setRate)),
    refusal, element("div", { class: "watch" }, curveOf,
        element("details", { open: "" }, element("summary", {}, "Log"), lines))));

/* ---- Commands ---- */

/* What was done comes as a line of the log; here only that it was not taken. */
async function command(action, value) {
    refusal.textContent = "";
    try {
        const reply = await fetch("control", {
            method: "POST", body: JSON.stringify({ action, value }),
            headers: { "Content-Type": "application/json", "Authorization": `Bearer ${token}` } });
        if (!reply.ok) refusal.textContent = `Not done: ${(await reply.text()).trim()}.`;
    } catch {
        refusal.textContent = "Not done: the training does not answer.";
    }
}

function changeRate(event) {
    event.preventDefault();
    command("learning_rate", rate.valueAsNumber);
}

/* ---- What comes ---- */

const words = { running: "running", paused: "paused", ended: "ended",
                broken: "ended before its last epoch" };

function inTime(seconds) {
    const whole = Math.round(seconds), minutes = Math.floor(whole / 60);
    if (whole < 60) return `${whole} s`;
    return minutes < 60 ? `${minutes} min ${whole % 60} s`
                        : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/* Text that is the same again is not announced again. */
function write(to, text) {
    if (to.textContent !== text) to.textContent = text;
}

function drawProgress() {
    const { state, stopping, epoch, epochs, step, steps, logs } = progress;
    const over = state === "ended" || state === "broken";
    const parts = [`epoch ${Math.min(epoch, epochs)} of ${epochs}`,
                   `step ${step.toLocaleString("en")}`
                   + (steps > 0 ? ` of ${steps.toLocaleString("en")}` : ""),
                   ...Object.entries(logs).map(([name, value]) => `${name} ${number(value)}`)];
    if (progress.samples_per_second !== null && state === "running")
        parts.push(`${number(progress.samples_per_second)} samples/s`);
    if (progress.seconds_left !== null && state === "running")
        parts.push(`${inTime(progress.seconds_left)} left of the epoch`);
    write(stateOf, words[state]);
    stateOf.dataset.state = state;
    write(progressOf, over ? "" : parts.join(" · "));
    bar.max = Math.max(1, steps);
    bar.value = over ? bar.max : Math.max(0, step);
    write(pause, state === "paused" ? "Resume" : "Pause");
    stop.setAttribute("aria-pressed", stopping);
    rate.placeholder = number(progress.learning_rate);
    for (const control of controls) control.disabled = over;
    save.disabled ||= !progress.saves;
    save.title = progress.saves ? "Write the model as it is to its file"
                                : "The training was started without a file to save to";
}

/* At most 1024 points: then each other one goes. */
function addPoint([step, loss]) {
    if (loss === null || (points.length && step <= points[points.length - 1][0])) return;
    if (points.length >= 1024) points = points.filter((_, i) => i % 2 === 0);
    points.push([step, loss]);
}

/* A reader of its values keeps the curve as it is. */
function drawCurve() {
    const last = points[points.length - 1];
    if (points.length < 2 || last === drawn) return;
    if (curveOf.matches(":hover, :focus-within")) return;
    drawn = last;
    curveOf.replaceChildren(lineChart({
        title: "loss by steps", label: "mean of the epoch so far", xName: "step", marked: -1,
        x: points.map(([step]) => step),
        series: [{ name: "", values: points.map(([, loss]) => loss) }] }));
}

function addLine({ number, at, text }) {
    if (number <= lastLine) return;
    lastLine = number;
    const time = new Date(1000 * at);
    lines.append(element("li", {}, element("time", { datetime: time.toISOString() },
        time.toLocaleTimeString("en-GB")), ` ${text}`));
    while (lines.children.length > 64) lines.firstChild.remove();
    lines.scrollTop = lines.scrollHeight;
}

/* Draws the report anew; what was open or had the focus has it again. */
function redraw(fresh) {
    const parts = "details, svg[tabindex], button, summary";
    const before = [...page.querySelectorAll(parts)];
    const focus = before.indexOf(document.activeElement);
    const open = before.map(part => part.open);
    Object.assign(data, fresh);
    drawReport();
    const after = [...page.querySelectorAll(parts)];
    if (after.length === before.length) open.forEach((is, i) => { if (is) after[i].open = true; });
    if (focus >= 0) after[focus]?.focus({ preventScroll: true });
}

/* ---- The stream ---- */

const events = new EventSource(`events?token=${encodeURIComponent(token)}`);
const on = (name, take) => events.addEventListener(name, event => take(JSON.parse(event.data)));

on("points", list => { points = list; drawCurve(); });
on("report", redraw);
on("line", addLine);
on("progress", now => {
    progress = now;
    addPoint(now.point);
    drawProgress();
    if (now.state === "ended" || now.state === "broken") events.close();
});
setInterval(drawCurve, 1000);

/* The browser connects again by itself, unless it was refused. */
events.onerror = () => {
    stateOf.dataset.state = "lost";
    write(stateOf, events.readyState === EventSource.CLOSED ? "refused" : "connection lost");
    for (const control of controls) control.disabled = true;
};
