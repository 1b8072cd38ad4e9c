/* Appended to a page by its test: the least contrast of text to what lies behind it, by WCAG 2.2,
 * "contrast ratio", and which text has it. Every panel of the page that is closed is opened. */
(() => {
    const parse = text => {
        const found = text.match(/-?[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
        return text.startsWith("color(srgb") ? [...found.slice(0, 3).map(part => 255 * part),
                                                found[3] ?? 1]
            : [found[0], found[1], found[2], found[3] ?? 1];
    };
    const over = (top, below) => top.slice(0, 3).map((part, i) =>
        part * top[3] + below[i] * (1 - top[3])).concat(1);
    const light = colour => {
        const [r, g, b] = colour.map(part => part / 255).map(part =>
            part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    /* Of an element's ancestors, and of a rectangle that is drawn before a text of SVG. */
    const behind = one => {
        const layers = [];
        const box = one.parentNode.tagName === "g" ? one.parentNode.querySelector("rect") : null;
        if (box) layers.push(parse(getComputedStyle(box).fill));
        for (let at = one; at; at = at.parentElement)
            layers.push(parse(getComputedStyle(at).backgroundColor));
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
    };
    for (const closed of document.querySelectorAll("details")) closed.open = true;
    let least = 99, which = "", count = 0;
    for (const one of document.querySelectorAll("body *")) {
        const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim());
        if (!own || !one.getClientRects().length || one.closest("script, style, noscript"))
            continue;
        const style = getComputedStyle(one), back = behind(one);
        const drawn = one instanceof SVGElement ? style.fill : style.color;
        const [a, b] = [light(over(parse(drawn), back)), light(back)].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        count++;
        if (ratio < least) [least, which] = [ratio, `${one.tagName} ${one.textContent}`];
    }
    document.body.append(`contrast ${least >= 4.5 && count > 20 ? "enough" : "too little"}: `
        + `${least.toFixed(2)} of ${which.slice(0, 60)}, of ${count} texts`);
})();
