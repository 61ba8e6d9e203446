import type { Output } from '../operations.ts';
import { drawn, type Part } from './chart.ts';
import { filled, type Texts } from './languages.ts';
import type { Page, Templates } from './renderer.ts';
import type { Visit } from './screen.ts';

const LIST = `{% layout 'layout' %}{% block content %}
{% if notice %}<p role="status">{{ notice }}</p>{% endif %}
<p><a href="{{ base }}/exporters/new">{{ t.exporters.add }}</a></p>
{% if exporters.length == 0 %}<p>{{ t.exporters.empty }}</p>{% else %}
<div class="table cards" role="region" tabindex="0" aria-label="{{ t.exporters.title }}"><table>
<thead><tr><th scope="col">{{ t.exporters.name }}</th><th scope="col">{{ t.exporters.url }}</th><th scope="col">{{ t.exporters.collector }}</th><th scope="col">{{ t.state }}</th><th scope="col">{{ t.exporters.lastOutcomeListed }}</th><th scope="col">{{ t.exporters.day.title }}</th><th scope="col">{{ t.exporters.health }}</th><th scope="col">{{ t.exporters.waiting }}</th></tr></thead>
<tbody>{% for exporter in exporters %}<tr>
<th scope="row"><a href="{{ base }}/exporters/{{ exporter.id }}">{% if exporter.name == '' %}{{ exporter.id }}{% else %}{{ exporter.name }}{% endif %}</a></th>
<td data-label="{{ t.exporters.url }}">{{ exporter.url }}</td><td data-label="{{ t.exporters.collector }}">{{ exporter.collector }}</td>
<td data-label="{{ t.state }}">{% render 'exporter-state', exporter: exporter %}</td>
<td data-label="{{ t.exporters.lastOutcomeListed }}">{% render 'exporter-outcome', health: exporter.health %}</td>
<td data-label="{{ t.exporters.day.title }}">{% render 'exporter-day', day: exporter.day %}</td>
<td data-label="{{ t.exporters.health }}">{% render 'exporter-health', exporter: exporter %}</td>
<td data-label="{{ t.exporters.waiting }}">{% render 'exporter-waiting', backlog: exporter.health.backlog %}</td></tr>
{% endfor %}</tbody></table></div>{% endif %}
{% if next %}<p><a rel="next" href="{{ base }}/exporters?after={{ next }}">{{ t.exporters.next }}</a></p>{% endif %}
{% endblock %}`;

const STATE = `{{ t.exporters.states[exporter.state] }}{% if exporter.pausedAt %}, {{ t.exporters.paused }}{% endif %}`;
const OUTCOME = `{% if health.lastOutcome %}{% render 'outcome', code: health.lastOutcome.code %} {% render 'time', at: health.lastOutcome.at %}{% else %}{{ t.none }}{% endif %}`;
const HEALTH = `{% if exporter.stopReason %}{{ t.said.stopped | fill: exporter.stopReason }}{% elsif exporter.health.lastOutcome == null %}{{ t.exporters.untried }}{% elsif exporter.consecutiveFailures == 0 %}{{ t.exporters.well }}{% else %}{{ t.exporters.failing | counted: exporter.consecutiveFailures }}{% endif %}{% if exporter.health.breaker != 'closed' %}, {{ t.exporters.breakers[exporter.health.breaker] }}{% if exporter.health.nextProbe %}, {{ t.exporters.nextProbe }} {% render 'time', at: exporter.health.nextProbe %}{% endif %}{% endif %}`;
const WAITING = `{{ backlog.waiting }}{% if backlog.more %}+{% endif %}{% if backlog.oldest %}, {{ t.exporters.oldest }} {% render 'time', at: backlog.oldest %}<br><small>{% for age in backlog.ages %}{% if age[1] > 0 %}<span class="age">{{ age[1] }} {{ t.exporters.ages[age[0]] }}</span> {% endif %}{% endfor %}</small>{% endif %}`;
const DAY = `{% if day %}<svg class="chart day" viewBox="0 0 {{ day.width }} 100" preserveAspectRatio="none" role="img" aria-label="{{ day.says }}"><line class="ground" x1="0" x2="{{ day.width }}" y1="100" y2="100"></line>{% for part in day.rects %}<rect class="{{ part.name }}" x="{{ part.x }}" y="{{ part.y }}" width="8" height="{{ part.height }}"></rect>{% endfor %}</svg><small>{{ day.share }}</small>{% else %}{{ t.none }}{% endif %}`;

/** Rows of a page. */
const PAGE = 25;

/** The list, and how it shows what there is of an exporter, as its own page does too. */
export const listTemplates: Templates = {
    exporters: LIST,
    'exporter-state': STATE,
    'exporter-outcome': OUTCOME,
    'exporter-health': HEALTH,
    'exporter-waiting': WAITING,
    'exporter-day': DAY,
};

/** The list of exporters, a page of it. */
export async function listed({ query, perform, texts }: Visit): Promise<Page> {
    const after = query.get('after') ?? '';
    const [found, before] = await Promise.all([
        perform('pageExporters', { ...(after !== '' && { after }), limit: PAGE + 1 }),
        after === '' ? null : perform('summarizeExporters', { ids: [after] }),
    ]);
    const exporters = found.slice(0, PAGE).map((exporter) => ({ ...exporter, day: dayOf(exporter.day, texts) }));
    const next = found.length > PAGE ? exporters.at(-1)?.id : null;
    const { wasRemoved, fromFirst } = texts.exporters;
    const notice = query.has('removed') ? wasRemoved : before?.length === 0 ? fromFirst : null;
    return { template: 'exporters', title: texts.exporters.title, data: { exporters, next, notice } };
}

/** A day as a small picture, each slice as high as all others; null where nothing was accepted. */
function dayOf(day: Output<'pageExporters'>[number]['day'], texts: Texts) {
    const sum = (field: 'deliveries' | 'delivered' | 'failed'): number => (day ?? []).reduce((total, slice) => total + slice[field], 0);
    const [deliveries, delivered, failed] = [sum('deliveries'), sum('delivered'), sum('failed')];
    if (day === null || deliveries === 0) {
        return null;
    }

    const bars = day.map((slice): readonly Part[] => {
        const shareOf = (count: number): number => (100 * count) / Math.max(1, slice.deliveries);
        const rest = slice.deliveries - slice.delivered - slice.failed;
        return [
            ['failed', shareOf(slice.failed)],
            ['delivered', shareOf(slice.delivered)],
            ['rest', shareOf(Math.max(0, rest))],
        ];
    });
    const counted = deliveries.toLocaleString(texts.locale) + (day.some(({ more }) => more) ? '+' : '');
    const t = texts.exporters.day;
    const share = shareText(delivered, failed, texts);
    const numbers = [share, counted, delivered.toLocaleString(texts.locale), failed.toLocaleString(texts.locale)];
    return { says: filled(t.says, numbers), share: filled(t.share, numbers), ...drawn(bars, 100) };
}

/** Of those that have come to something; never all where one has failed, nor none where one was delivered. */
function shareText(delivered: number, failed: number, texts: Texts): string {
    const ended = delivered + failed;
    if (ended === 0) {
        return texts.exporters.day.unknown;
    }
    const percent = Math.round((100 * delivered) / ended);
    return `${failed > 0 && delivered > 0 ? Math.min(99, Math.max(1, percent)) : percent} %`;
}
