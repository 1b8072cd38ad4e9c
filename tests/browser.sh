# Sourced before checks.sh, which changes the folder, by tests of pages: headless Chromium, if it is installed.

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)

contrast=$(cat tests/nn/pages/contrast.js)

# shown PAGE SCRIPT [dark]: in dom the page's elements after its scripts and this one have run, in
# console the messages of errors, without which it succeeds. The browser prefers light colours, or
# dark ones.
shown() {
    cp "$1" page.html
    printf '<script>%s</script>\n' "$2" >> page.html
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --enable-logging=stderr \
        --blink-settings=preferredColorScheme="$([ "${3:-}" = dark ] && echo 0 || echo 1)" \
        --virtual-time-budget=5000 --dump-dom "file://$PWD/page.html" > dom 2> log
    grep CONSOLE log > console
    [ -s dom ] && [ ! -s console ]
}

# contrasts PAGE: all text is readable in light and in dark colours.
contrasts() {
    local mode
    for mode in light dark; do
        shown "$1" "$contrast" $mode && grep -q 'contrast enough' dom ||
            { grep -o 'contrast [et][^<]*' dom > err; echo "$mode" >> err; return 1; }
    done
}
