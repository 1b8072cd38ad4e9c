# Sourced before checks.sh, which changes the folder, by tests of pages: headless Chromium, if it is installed.

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

# shown PAGE SCRIPT: in dom the page's elements after its scripts and this one have run, in console
# the messages of errors, without which it succeeds.
shown() {
    cp "$1" page.html
    printf '<script>%s</script>\n' "$2" >> page.html
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr \
        --virtual-time-budget=5000 --dump-dom "file://$PWD/page.html" > dom 2> log
    grep CONSOLE log > console
    [ -s dom ] && [ ! -s console ]
}
