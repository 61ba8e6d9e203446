import type { AuditQuery } from '../../../lib/audit/audit-trail.ts';
import { faultOf, type Page } from './renderer.ts';
import { type Screen, timeIn, type Visit } from './screen.ts';

const AUDIT = `{% layout 'layout' %}{% block content %}
<form method="get" action="{{ base }}/audit" aria-label="{{ t.audit.filter }}">{% render 'error', error: error %}
<div class="filters">
{% render 'input', field: 'actor', label: t.audit.actor, value: values.actor, error: error %}
{% render 'input', field: 'operation', label: t.audit.operation, value: values.operation, error: error %}
{% render 'input', field: 'since', type: 'datetime-local', label: t.audit.since, value: values.since, error: error %}
{% render 'input', field: 'until', type: 'datetime-local', label: t.audit.until, value: values.until, error: error %}
<button>{{ t.audit.show }}</button></div></form>
{% if entries.length == 0 %}<p>{{ t.audit.empty }}</p>{% else %}
<div class="table cards" role="region" tabindex="0" aria-label="{{ t.audit.title }}"><table>
<thead><tr><th scope="col">{{ t.audit.at }}</th><th scope="col">{{ t.audit.actor }}</th><th scope="col">{{ t.audit.operation }}</th><th scope="col">{{ t.audit.subject }}</th><th scope="col">{{ t.audit.outcome }}</th></tr></thead>
<tbody>{% for entry in entries %}<tr><th scope="row">{% render 'time', at: entry.at %}</th><td data-label="{{ t.audit.actor }}">{{ entry.actor }}</td><td data-label="{{ t.audit.operation }}"><code>{{ entry.operation }}</code></td>
<td data-label="{{ t.audit.subject }}">{% if entry.subject %}<code>{{ entry.subject }}</code>{% else %}{{ t.none }}{% endif %}</td><td data-label="{{ t.audit.outcome }}">{% if entry.outcome == 'done' %}{{ t.audit.done }}{% else %}{{ entry.outcome | default: t.audit.unknown }}{% endif %}</td></tr>
{% endfor %}</tbody></table></div>{% endif %}
{% if next %}<p><a rel="next" href="{{ base }}/audit?{{ next }}">{{ t.audit.older }}</a></p>{% endif %}
{% endblock %}`;

/** Audit: who has done what. */
export const auditScreen: Screen = {
    path: '/audit',
    title: ({ audit }) => audit.title,
    templates: { audit: AUDIT },
    routes: [{ method: 'GET', path: '/audit', answer: listed }],
};

const PAGE = 50;
const FIELDS = ['actor', 'operation', 'since', 'until'] as const;

async function listed({ query, perform, texts }: Visit): Promise<Page> {
    const values = Object.fromEntries(FIELDS.map((field) => [field, query.get(field)?.trim() ?? '']));
    const given = Object.entries(values).filter(([, value]) => value !== '');
    const after = query.get('after');
    try {
        const asked: Partial<AuditQuery> = Object.fromEntries(
            given.map(([field, value]) => [field, field === 'since' || field === 'until' ? timeIn(value) : value]),
        );
        const found = await perform('listAudit', { ...asked, ...(after !== null && { after }), limit: PAGE + 1 });
        const entries = found.slice(0, PAGE);
        const next = found.length > PAGE ? new URLSearchParams([...given, ['after', entries.at(-1)?.id ?? '']]).toString() : null;
        return { template: 'audit', title: texts.audit.title, data: { values, entries, next } };
    } catch (error) {
        const { error: fault, status } = faultOf(error, texts);
        return { template: 'audit', title: texts.audit.title, status, data: { values, entries: [], next: null, error: fault } };
    }
}
