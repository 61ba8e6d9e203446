import { ScanwireError } from '../../../lib/errors.ts';
import { type Activity, type ActivitySlice, type ActivitySpan, MAX_OF_SLICE } from '../../../lib/webhooks/deliveries/activity.ts';
import { CHART, drawn, type Part } from './chart.ts';
import { namedExporters } from './delivery.ts';
import { durationText, filled, type Texts } from './languages.ts';
import type { Page, Templates } from './renderer.ts';
import type { ScreenRoute, Visit } from './screen.ts';

const ACTIVITY = `{% layout 'layout' %}{% block content %}
<form method="get" action="{{ base }}/deliveries/activity" aria-label="{{ t.deliveries.filter }}"><div class="filters">
<label>{{ t.deliveries.exporter }}{% render 'exporter-choice', field: 'exporterId', exporters: exporters, value: exporterId, any: t.activity.allExporters %}</label>
<button>{{ t.activity.show }}</button></div></form>
{% if spans == null %}<p>{{ t.activity.absent }}</p>{% endif %}
{% for span in spans %}<section aria-labelledby="{{ span.name }}"><h2 id="{{ span.name }}">{{ t.activity.spans[span.name] }}</h2>
{% render 'chart', chart: span.counts, names: t.activity.parts %}
{% if span.latency %}{% render 'chart', chart: span.latency, names: t.activity.latencies %}{% else %}<p>{{ t.activity.noLatency }}</p>{% endif %}
<details><summary>{{ t.activity.numbers }}</summary>
<div class="table" role="region" tabindex="0" aria-label="{{ t.activity.numbers }}: {{ t.activity.spans[span.name] }}"><table>
<thead><tr><th scope="col">{{ t.activity.slice }}</th><th scope="col">{{ t.activity.deliveries }}</th><th scope="col">{{ t.activity.delivered }}</th><th scope="col">{{ t.activity.failed }}</th><th scope="col">{{ t.activity.latencies.p50 }}</th><th scope="col">{{ t.activity.latencies.p95 }}</th></tr></thead>
<tbody>{% for row in span.rows %}<tr><th scope="row"><time datetime="{{ row.since | iso }}">{{ row.from }}</time></th>{% for cell in row.cells %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{% if span.cut %}<p><small>{{ t.activity.cut | fill: span.cut }}</small></p>{% endif %}</details></section>
{% endfor %}
{% endblock %}`;

/** What became of deliveries lately, as pictures and as tables. */
export const activityTemplates: Templates = { activity: ACTIVITY, chart: CHART };

/** The page of what became of deliveries lately. */
export const activityRoute: ScreenRoute = { method: 'GET', path: '/deliveries/activity', answer: shown };

const SPANS: readonly ActivitySpan[] = ['hour', 'day'];

async function shown(visit: Visit): Promise<Page> {
    const exporterId = visit.query.get('exporterId') ?? '';
    const asked = exporterId === '' ? {} : { exporterId };
    const [exporters, spans] = await Promise.all([namedExporters(visit), spansOf(visit, asked)]);
    return { template: 'activity', title: visit.texts.activity.title, data: { exporters, exporterId, spans } };
}

/** Null with a store that cannot tell. */
async function spansOf({ perform, texts }: Visit, asked: { readonly exporterId?: string }) {
    try {
        return await Promise.all(SPANS.map(async (span) => spanOf(span, await perform('showActivity', { ...asked, span }), texts)));
    } catch (error) {
        if (error instanceof ScanwireError && error.code === 'MISCONFIGURED') {
            return null;
        }
        throw error;
    }
}

function spanOf(name: ActivitySpan, { slices }: Activity, texts: Texts) {
    const number = (count: number): string => count.toLocaleString(texts.locale);
    const duration = (milliseconds: number | undefined): string =>
        milliseconds === undefined ? texts.none : durationText(texts, milliseconds);
    const rows = slices.map((slice) => {
        const { since, deliveries, more, delivered, failed, latency } = slice;
        const counted = number(deliveries) + (more ? '+' : '');
        const cells = [counted, number(delivered), number(failed), duration(latency?.p50), duration(latency?.p95)];
        return { since, from: timeOfDay(since), cells };
    });
    const cut = slices.some(({ more }) => more) ? number(MAX_OF_SLICE) : null;
    return { name, counts: countsChart(slices, texts), latency: latencyChart(slices, texts), rows, cut };
}

function countsChart(slices: readonly ActivitySlice[], texts: Texts) {
    const bars = slices.map(({ deliveries, delivered, failed }): readonly Part[] => [
        ['failed', failed],
        ['delivered', delivered],
        ['rest', Math.max(0, deliveries - delivered - failed)],
    ]);
    const total = slices.reduce((sum, { deliveries }) => sum + deliveries, 0);
    const max = Math.max(...slices.map(({ deliveries }) => deliveries));
    const more = slices.some((slice) => slice.more) ? '+' : '';
    const says = filled(texts.activity.counts, [total.toLocaleString(texts.locale) + more, max.toLocaleString(texts.locale) + more]);
    return { says, names: ['delivered', 'failed', 'rest'], ...axisOf(slices, texts), ...drawn(bars, max) };
}

/** Null where nothing was delivered. */
function latencyChart(slices: readonly ActivitySlice[], texts: Texts) {
    const longest = Math.max(-1, ...slices.flatMap(({ latency }) => (latency === null ? [] : [latency.p95])));
    if (longest < 0) {
        return null;
    }
    const bars = slices.map(({ latency }): readonly Part[] =>
        latency === null
            ? []
            : [
                  ['p50', latency.p50],
                  ['p95', latency.p95 - latency.p50],
              ],
    );
    const says = `${texts.activity.latency}: ${filled(texts.activity.longest, [durationText(texts, longest)])}`;
    return { says, names: ['p50', 'p95'], ...axisOf(slices, texts), ...drawn(bars, longest) };
}

/** What stands below the first bar and below the last. */
function axisOf(slices: readonly ActivitySlice[], texts: Texts) {
    const [first, last] = [slices[0], slices.at(-1)] as [ActivitySlice, ActivitySlice];
    return { from: timeOfDay(first.since), until: filled(texts.units.utc, [timeOfDay(last.until)]) };
}

function timeOfDay(time: Date): string {
    return time.toISOString().slice(11, 16);
}
