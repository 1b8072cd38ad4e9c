# cornu train --dashboard: the address, its refusals, a run steered by curl, and the page in
# headless Chromium, if it is installed.
#
# tests/run: takes 60 s
# tests/run: in check
browse=$PWD/tests/nn/pages/browse.py
. tests/browser.sh
. tests/checks.sh
cornu=$programs/cornu
soname=$(sed -n 's/.*CORNU_MICROHTTPD="\(.*\)".*/\1/p' "$programs/http")

# refuses STATUS MESSAGE FLAG...: before anything is loaded or trained.
refuses() {
    "$cornu" train mnist_convnet --data synthetic --limit 100 --epochs 1 "${@:3}" >out 2>err
    [ $? = "$1" ] && grep -qE -- "$2" err && ! grep -q Epoch out
}
check "a port that is none" \
    refuses 2 'dashboard is "65536", expected a whole number from 0 to 65535' --dashboard 65536
check "a port that is a word" refuses 2 'dashboard is "http"' --dashboard=http
check "an address alone" refuses 2 'dashboard-address comes with --dashboard' \
    --dashboard-address 127.0.0.1
if [ ! "$soname" ]; then
    check "built without libmicrohttpd" refuses 1 'dashboard needs libmicrohttpd, without which' --dashboard
    skip_all 11 "libmicrohttpd: make deps-serve, then make"
fi
check "an address of another machine" refuses 1 '192\.0\.2\.1 port 0: Cannot assign' \
    --dashboard --dashboard-address 192.0.2.1
command -v curl >/dev/null || skip_all 10 "curl: make deps"

# An empty file in its place cannot be loaded.
without_library() {
    mkdir -p none && : >"none/$soname" &&
        LD_LIBRARY_PATH=$PWD/none refuses 1 \
            "^cornu train: the dashboard needs libmicrohttpd, which cannot be loaded \(.*; install" --dashboard
}
check "without libmicrohttpd it says what to install" without_library
not_linked() { ! readelf -d "$programs/libcornu.so" | grep -i microhttpd >err; }
check "the library is not linked with it" not_linked

# ---- A run ----

wait_for() { # until COMMAND succeeds, at most two minutes
    local i
    for ((i = 0; i < 6000; i++)); do "$@" && return; sleep 0.02; done
    return 1
}
# None outlives its check, or the script.
end_training() { [ ! "${training:-}" ] || { kill -KILL "$training"; wait "$training"; } 2>err; }
trap 'end_training; rm -rf "$folder"' EXIT
starts() { # starts COMMAND...: in the background; $url and its parts, when it has said them
    end_training
    : >out
    "$@" >out 2>err </dev/null &
    training=$!
    wait_for grep -q '^Dashboard: http' out || return 1
    url=$(sed -n 's/^Dashboard: //p' out | head -n 1)
    base=${url%%\?*} token=${url##*token=}
}
begin() { # a training of many epochs
    starts "$cornu" train mnist_convnet --data synthetic --limit 600 --epochs 100000 --seed 3 \
        --verbose 0 --save model.keras --dashboard
}
command() { # command ACTION [VALUE]: it is taken
    [ "$(curl -s -o body -w '%{http_code}' "${base}control" -H "Authorization: Bearer $token" \
        -H 'Content-Type: application/json' -d "{\"action\": \"$1\"${2:+, \"value\": $2}}")" = 202 ]
}
says() { wait_for grep -q "^Dashboard: $1" out; }   # the terminal

check "it prints an address of this machine alone" eval 'begin &&
    [[ $url =~ ^http://127\.0\.0\.1:[0-9]+/\?token=[0-9a-f]{48}$ ]]'
taken() {
    local port=${base##*:}
    refuses 1 'cannot listen on 127.0.0.1 .*Address already in use; expected another --dashboard' \
        --dashboard "${port%/}"
}
check "a port that is taken" taken
steered() {
    command pause && says 'paused after' && command learning_rate 0.0001 &&
        says 'learning rate from 0.001 to 0.0001 after' && command save &&
        says 'saved model.keras after' && [ -s model.keras ] && command resume && says resumed
}
check "it pauses, sets the rate, saves and resumes" steered
stops() {
    command stop && says 'stopped after epoch [0-9]* of 100000$' && wait $training &&
        grep -q '^Test accuracy' out
}
check "it stops after the epoch, and goes on to test" stops
interrupted() { # in a pause, too
    begin && command pause && says 'paused after' && kill -INT $training || return 1
    wait $training
    [ $? = 130 ] && grep -q 'is saved in model.keras' err
}
check "Ctrl-C ends a pause and the training" interrupted
ranks() {
    starts "$cornu" run -n 2 "$cornu" train mnist_convnet --data synthetic --limit 600 \
        --epochs 100000 --threads 1 --verbose 0 --dashboard &&
        command pause && says 'paused after' && sleep 0.5 && command learning_rate 0.0001 &&
        command resume && says resumed && command stop && wait $training &&
        [ "$(grep -c '^Dashboard: http' out)" = 1 ]
}
check "one page for all ranks" ranks

# ---- The page ----

[ -n "$browser" ] || skip_all 2 "no browser: make deps-browser"

# look SCRIPT: the body of an async function runs in the page; what it returns is in out.
look() { python3 "$browse" "$browser" "$url" "$1" >page 2>err && [ ! -s err ]; }

# A person's clicks and keys, one after the other, each until the page says that it is done.
clicks='const until = async is => { while (!is()) await new Promise(done => setTimeout(done, 50)); };
const said = text => () => document.querySelector(".log").textContent.includes(text);
const named = text => [...document.querySelectorAll("#live button")].find(
    button => button.textContent === text);
await until(() => progress && !pause.disabled);
named("Pause").click();
await until(said("paused after"));
await until(() => stateOf.textContent === "paused" && named("Resume"));
named("Save now").click();
await until(said("saved model.keras after"));
document.querySelector("label[for=rate]").click();
const focused = document.activeElement === rate;
rate.value = "0.00025";
rate.form.requestSubmit();
await until(said("learning rate from 0.001 to 0.00025"));
rate.value = "-1";
const refused = !rate.form.checkValidity();
named("Resume").click();
await until(said("resumed"));
await until(() => page.querySelectorAll("figure").length > 3);
named("Stop after this epoch").click();
await until(() => stateOf.textContent === "ended");
const unnamed = [...document.querySelectorAll("button, input, svg[tabindex], [role]")].filter(one =>
    !(one.textContent.trim() || one.getAttribute("aria-label") || one.labels?.length ||
      ["status", "alert"].includes(one.role))).length;
return [focused, refused, unnamed, controls.every(control => control.disabled),
        data.ended, document.querySelectorAll(".matrix button").length,
        document.documentElement.scrollWidth <= window.innerWidth].join(" ");'
walks() {
    begin && look "$clicks" && wait $training &&
        [ "$(cat page)" = "true true 0 true true 100 true" ]
}
check "its controls work, are named, and are off at the end" walks

# What the page shows at the end is what --report writes: the same parts of the same data. The
# training waits until the page is there.
resumed='while (pause.textContent !== "Resume") await new Promise(done => setTimeout(done, 50));
pause.click();'
ended='while (!data.ended) await new Promise(done => setTimeout(done, 50));
return [...page.querySelectorAll("h2")].map(one => one.textContent).join(", ") + "; "
    + data.epochs.map(epoch => epoch.logs.loss).join(" ");'
same() {
    starts "$cornu" train mnist_convnet --data synthetic --limit 2000 --epochs 40 --seed 3 \
        --verbose 0 --dashboard --report report.html && command pause && says 'paused after' &&
        look "$resumed $ended" && wait $training && cp page live &&
        url=file://$PWD/report.html && look "$ended" && cmp live page >err
}
check "at the end it is the page of --report" same

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
