import { type Asset, packagedAsset } from '../../web-page.ts';

/** The files that the pages below `base` load. @throws ScanwireError `MISCONFIGURED` without one of the packages. */
export function screenAssets(base: string, use: string): readonly Asset[] {
    const at = (name: string): string => `${base}/assets/${name}`;
    return [
        packagedAsset({ path: at('pico.css'), type: 'text/css' }, '@picocss/pico', 'css/pico.classless.min.css', use),
        packagedAsset({ path: at('htmx.js'), type: 'text/javascript' }, 'htmx.org', 'dist/htmx.min.js', use),
        { path: at('screens.css'), type: 'text/css', text: STYLE },
        { path: at('screens.js'), type: 'text/javascript', text: SCRIPT },
    ];
}

const STYLE = `.skip { position: absolute; left: -100vw; }
.skip:focus { position: static; }
:root { --pico-font-size: 100%; --pico-transition: 0s; }
:root:not([data-theme]) { --pico-primary-hover-background: var(--pico-primary-background); }
button:not(.outline):hover { text-decoration: underline; }
body > header, body > main, body > footer { max-width: min(80rem, 100% - 2rem); padding-inline: 0; }
body > header { padding-block: 0.5rem; }
nav { flex-wrap: wrap; }
nav ul { flex-wrap: wrap; }
.table { overflow-x: auto; margin-bottom: var(--pico-spacing); }
.table table { margin-bottom: 0; font-size: 0.875rem; }
.table th, .table td { padding: 0.5rem 0.625rem; }
td form, td details, li form { margin: 0; }
td button, td summary, td details { margin: 0; }
td button { padding: 0.25rem 0.5rem; width: auto; }
td button { font-size: 0.875rem; }
button { width: auto; }
main form:not(.table form) { max-width: 48rem; }
.actions { display: flex; flex-wrap: wrap; gap: 0.5rem; }
.fault { color: var(--pico-form-element-invalid-border-color, #b00); }
.pair { display: flex; flex-wrap: wrap; gap: 0 0.5rem; }
.pair input { flex: 1 1 12rem; }
.actions form { margin: 0; }
.filters { display: grid; grid-template-columns: repeat(auto-fill, minmax(12rem, 1fr)); gap: 0 1rem; }
main form:not(.table form):has(.filters) { max-width: none; }
.bar { display: block; width: 10rem; height: 0.5rem; }
.bar rect { fill: currentcolor; opacity: 0.25; }
.bar .connect { opacity: 0.4; }
.bar .tls { opacity: 0.6; }
.bar .firstByte { opacity: 0.9; }
.chart { display: block; width: 100%; height: 8rem; fill: currentcolor; }
.chart .ground { stroke: currentcolor; stroke-width: 0.5; }
.chart .rest { opacity: 0.25; }
.chart .delivered, .chart .p50 { fill: #2f7d4f; }
.chart .failed { fill: #c0392b; }
.chart .p95 { opacity: 0.4; }
.legend { white-space: nowrap; margin-inline-end: 0.75rem; }
.legend .chart { display: inline-block; width: 0.75rem; height: 0.75rem; }
details.part > summary span { color: var(--pico-muted-color); }
.actions[hidden] { display: none; }
.key { overflow-wrap: anywhere; }
pre { max-height: 40rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.875rem; }
.table small { color: inherit; }
dt { font-weight: bold; }
dd { overflow-wrap: anywhere; }
td, th { vertical-align: top; }
@media (prefers-color-scheme: light) { .fault { color: #9b1c1c; } }
@media (prefers-color-scheme: dark) { .fault { color: #ffb4a9; } }
`;

/**
 * Only what cannot be done without a script: to copy, and to show a list as it changes. What htmx puts into a page has such parts too. A list
 * that changes keeps its focus and is held when somebody says so; a stream that ends for good says that it has.
 */
const SCRIPT = `'use strict';
(() => {
    const show = () => {
        for (const button of document.querySelectorAll('button[data-copy][hidden]')) {
            button.hidden = false;
        }
    };
    document.addEventListener('click', async ({ target }) => {
        const button = target instanceof Element ? target.closest('button[data-copy]') : null;
        const text = button && document.getElementById(button.dataset.copy)?.textContent;
        if (text) {
            await navigator.clipboard.writeText(text);
            button.textContent = button.dataset.copied;
        }
    });
    let source = null;
    const put = (list, html) => {
        const active = list.contains(document.activeElement) ? document.activeElement : null;
        const left = list.querySelector('[role=region]')?.scrollLeft ?? 0;
        list.innerHTML = html;
        window.htmx?.process(list);
        const region = list.querySelector('[role=region]');
        region?.scrollTo({ left });
        if (active) {
            const href = active.getAttribute('href');
            const same = [...list.querySelectorAll('a')].find((link) => link.getAttribute('href') === href);
            (same ?? region)?.focus({ preventScroll: true });
        }
    };
    const follow = () => {
        source?.close();
        source = null;
        const bar = document.querySelector('[data-live]');
        if (!bar) {
            return;
        }
        const texts = JSON.parse(bar.dataset.texts);
        const list = document.getElementById(bar.dataset.for);
        const [said, button] = bar.children;
        let held = null;
        let paused = false;
        const say = (state) => {
            said.textContent = texts[state];
            button.textContent = paused ? texts.resume : texts.pause;
            button.hidden = state === 'off';
            bar.hidden = false;
        };
        const own = new EventSource(bar.dataset.live);
        source = own;
        own.addEventListener('open', () => say(paused ? 'paused' : 'on'));
        own.addEventListener('shown', ({ data }) => {
            if (paused) {
                held = data;
            } else {
                put(list, data);
            }
        });
        own.addEventListener('error', () => {
            if (own.readyState === EventSource.CLOSED) {
                say('off');
            }
        });
        button.addEventListener('click', () => {
            paused = !paused;
            if (!paused && held !== null) {
                put(list, held);
                held = null;
            }
            say(paused ? 'paused' : 'on');
        });
    };
    const begin = () => {
        show();
        follow();
    };
    document.addEventListener('htmx:after:swap', begin);
    window.addEventListener('pagehide', () => source?.close());
    window.addEventListener('pageshow', ({ persisted }) => persisted && follow());
    begin();
})();
`;
