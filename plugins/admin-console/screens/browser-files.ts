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
body > header, body > main, body > footer { max-width: min(80rem, 100% - 2rem); padding-inline: 0; }
body > header { padding-block: 0.5rem; }
body > main { padding-block: 1rem 3rem; }
nav, nav ul { flex-wrap: wrap; }
nav li { padding-block: 0.375rem; }
nav [aria-current] { font-weight: bold; text-decoration: underline; text-underline-offset: 0.375rem; }
section { margin-bottom: 2rem; }
main h2 { margin-top: 1rem; }
button, [role=button] { width: auto; }
button:not(.outline):hover { text-decoration: underline; }
button:is(.outline, .secondary), [role=button].secondary { background: none; color: var(--pico-primary); border-color: currentcolor; }
form.htmx-request button:not(.secondary) { pointer-events: none; }
form.htmx-request button:not(.secondary)::after { content: ' …'; }
main form:not(.table form, .actions form, li form) { max-width: 48rem; margin-bottom: 1.5rem; }
.actions { display: flex; flex-wrap: wrap; align-items: center; gap: 0.5rem; margin-bottom: 1.5rem; }
.actions[hidden] { display: none; }
.actions[data-live] { margin-bottom: 0.5rem; }
.actions[data-live] button { padding: 0.25rem 0.75rem; font-size: 0.875rem; }
.actions form, .actions button, .actions [role=button] { margin: 0; }
.scopes [id$=opens] { display: block; margin: -0.25rem 0 0.5rem 2rem; }
.next { padding: 0.375rem 0.75rem; border-left: 0.25rem solid var(--pico-primary); }
.fault { color: var(--pico-form-element-invalid-border-color, #b00); }
.failed::before { content: '\\2715\\00a0'; content: '\\2715\\00a0' / ''; }
.arrived::before { content: '\\2713\\00a0'; content: '\\2713\\00a0' / ''; }
.whole { white-space: nowrap; }
.pair { display: flex; gap: 0 0.5rem; align-items: baseline; }
.pair input { flex: 1 1 0; min-width: 0; }
a > code { color: inherit; text-decoration: inherit; }
.filters { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 0 1rem; align-items: end; }
.filters label { min-width: 0; margin-bottom: 0; }
.filters button { justify-self: start; margin-bottom: var(--pico-spacing); }
main form:not(.table form):has(.filters) { max-width: none; margin-bottom: 0.5rem; }
.table { overflow-x: auto; margin-bottom: var(--pico-spacing); }
.table table { margin-bottom: 0; font-size: 0.875rem; }
.table th, .table td { padding: 0.5rem 0.625rem; }
.table time { white-space: nowrap; }
.table small { color: inherit; }
td, th { vertical-align: top; }
td form, td details, main li form { margin: 0; }
main section li { margin-bottom: 0.5rem; }
li form button { margin: 0.25rem 0; padding: 0.25rem 0.75rem; font-size: 0.875rem; }
.table progress { margin-bottom: 0.25rem; }
td button, td summary, td details { margin: 0; }
td summary:not([role]) { display: inline-block; padding: 0.25rem 0.5rem; border: 1px solid currentcolor; border-radius: var(--pico-border-radius); color: var(--pico-primary); line-height: var(--pico-line-height); }
td details > summary::after { display: none; }
td button { padding: 0.25rem 0.5rem; font-size: 0.875rem; }
dl { display: grid; grid-template-columns: minmax(8rem, max-content) 1fr; gap: 0.375rem 1.5rem; margin-bottom: 1.5rem; }
dt { font-weight: bold; }
dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
dd :is(p, pre) { margin-bottom: 0.25rem; }
.bar { display: block; width: 10rem; height: 0.5rem; }
.bar rect { fill: currentcolor; opacity: 0.25; }
.bar .connect { opacity: 0.4; }
.bar .tls { opacity: 0.6; }
.bar .firstByte { opacity: 0.9; }
figure { margin-bottom: 1.5rem; }
.chart { display: block; width: 100%; height: 8rem; fill: currentcolor; }
.chart.day { width: 5rem; height: 1.25rem; }
.age:not(:last-child)::after { content: ','; }
.chart .ground { stroke: currentcolor; stroke-width: 0.5; }
.chart .rest { opacity: 0.25; }
.chart .delivered, .chart .p50 { fill: #2f7d4f; }
.chart .failed { fill: #c0392b; }
.chart .p95 { opacity: 0.4; }
.axis { display: flex; justify-content: space-between; font-size: 0.75rem; }
.legend { white-space: nowrap; margin-inline-end: 0.75rem; }
.legend .chart { display: inline-block; width: 0.75rem; height: 0.75rem; }
p.words { margin: 0.25rem 0 0; max-width: 40rem; }
.key { overflow-wrap: anywhere; }
pre { max-height: 40rem; white-space: pre-wrap; overflow-wrap: anywhere; font-size: 0.875rem; }
details.part > summary span { color: var(--pico-muted-color); }
@media (max-width: 48rem) {
    main h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
    main h2 { font-size: 1.25rem; }
    .table:not(.cards) table { min-width: 40rem; }
    .cards thead { position: absolute; left: -100vw; }
    .cards :is(table, tbody, tr, th, td) { display: block; }
    .cards tbody tr { padding-block: 0.5rem; border-bottom: 1px solid var(--pico-muted-border-color); }
    .cards tbody :is(th, td) { padding: 0.125rem 0; border: 0; overflow-wrap: anywhere; }
    .cards tbody th { font-weight: bold; }
    .cards tbody td { position: relative; min-height: 1.5rem; padding-left: 8rem; }
    .cards td::before { content: attr(data-label); position: absolute; left: 0; max-width: 7.5rem; color: var(--pico-muted-color); }
    .cards tbody .answer td { padding-left: 0; }
    .cards td:empty { display: none; }
    .pair { flex-wrap: wrap; }
    .pair input { flex-basis: 100%; }
    .pair span { display: none; }
    .filters { grid-template-columns: 1fr 1fr; }
    .filters label:has([type=datetime-local], [name=eventId]) { grid-column: span 2; }
    dl { grid-template-columns: 1fr; gap: 0; }
    dd { margin-bottom: 0.5rem; }
}
@media (prefers-color-scheme: light) { .fault, .failed { color: #9b1c1c; } .arrived { color: #14532d; } }
@media (prefers-color-scheme: dark) { .fault, .failed { color: #ffb4a9; } .arrived { color: #9be0b0; } }
`;

/**
 * Only what cannot be done without a script: to copy, and to show a list, or one delivery, as it changes. What htmx puts into a page has such parts too. A list
 * that changes keeps its focus and is held when somebody says so; a stream that ends for good says that it has, and so does a page whose server is away.
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
        const holder = button && document.getElementById(button.dataset.copy);
        const text = holder?.value ?? holder?.textContent;
        if (text) {
            await navigator.clipboard.writeText(text);
            button.textContent = button.dataset.copied;
        }
    });
    let source = null;
    let followed = null;
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
        const bar = document.querySelector('[data-live]');
        if (source && bar === followed && source.readyState !== EventSource.CLOSED) {
            return;
        }
        source?.close();
        source = null;
        followed = bar;
        if (!bar) {
            return;
        }
        const texts = JSON.parse(bar.dataset.texts);
        const list = document.getElementById(bar.dataset.for);
        const [said, button] = bar.children;
        let held = null;
        let paused = false;
        const take = (data) => {
            if (list) {
                put(list, data);
            } else if (data !== bar.dataset.seen) {
                bar.dataset.seen = data;
                document.querySelector(bar.dataset.part + ' [hx-trigger=changed]')?.dispatchEvent(new Event('changed'));
            }
        };
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
                take(data);
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
                take(held);
                held = null;
            }
            say(paused ? 'paused' : 'on');
        });
    };
    const away = (isAway) => document.getElementById('away')?.toggleAttribute('hidden', !isAway);
    const begin = () => {
        away(false);
        show();
        follow();
    };
    document.addEventListener('htmx:error', ({ detail }) => detail.ctx && away(true));
    document.addEventListener('htmx:after:swap', begin);
    window.addEventListener('pagehide', () => source?.close());
    window.addEventListener('pageshow', ({ persisted }) => persisted && follow());
    begin();
})();
`;
