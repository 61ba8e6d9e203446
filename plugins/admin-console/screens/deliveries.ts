import type { DeliveryFilter } from '../../../lib/webhooks/deliveries/deliveries.ts';
import { DELIVERY_STATES, waitsAgain } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryCount } from '../../../lib/webhooks/deliveries/kept-counts.ts';
import { OUTCOME_CODES } from '../../../lib/webhooks/outcomes/outcome.ts';
import { activityRoute, activityTemplates } from './activity.ts';
import { deliveryLive, deliveryRoutes, deliveryTemplates, type Named, namedExporters, nameOf, stateShown } from './delivery.ts';
import { counted, type Texts } from './languages.ts';
import type { View } from './live-streams.ts';
import { type Fault, faultOf, type Page } from './renderer.ts';
import { type Redirect, type Screen, timeIn, type Visit } from './screen.ts';

const LIST = `{% layout 'layout' %}{% block content %}
{% if notice %}<p role="status">{{ notice }}</p>{% endif %}
<form method="get" action="{{ base }}/deliveries" aria-label="{{ t.deliveries.filter }}">{% render 'error', error: error %}
<div class="filters">
<label>{{ t.state }}{% render 'choice', field: 'state', choices: states, value: values.state, names: stateNames %}</label>
<label>{{ t.deliveries.exporter }}{% render 'exporter-choice', field: 'exporterId', exporters: exporters, value: values.exporterId, any: t.deliveries.any %}</label>
<label>{{ t.deliveries.outcome }}{% render 'choice', field: 'outcome', choices: outcomes, value: values.outcome %}</label>
{% render 'input', field: 'kind', label: t.deliveries.kind, value: values.kind, error: error %}
{% render 'input', field: 'eventId', label: t.deliveries.event, value: values.eventId, error: error %}
{% render 'input', field: 'since', type: 'datetime-local', label: t.deliveries.since, value: values.since, error: error %}
{% render 'input', field: 'until', type: 'datetime-local', label: t.deliveries.until, value: values.until, error: error %}
<button>{{ t.deliveries.show }}</button></div></form>
{% if live %}<p class="actions" data-live="{{ base }}/deliveries/live{{ live }}" data-for="listed" data-texts="{{ t.deliveries.live | json }}" hidden><span role="status"></span> <button type="button" class="outline"></button></p>{% endif %}
<div id="listed">{% render 'deliveries-listed', deliveries: deliveries, counted: counted, next: next %}</div>
{% endblock %}`;

/** What changes while somebody looks. */
const LISTED = `<p>{{ counted }} · <a href="{{ base }}/deliveries/activity">{{ t.activity.title }}</a> · <a href="{{ base }}/deliveries/replays">{{ t.deliveries.replays }}</a></p>
{% if deliveries.length > 0 %}
<div class="table cards" role="region" tabindex="0" aria-label="{{ t.deliveries.title }}"><table>
<thead><tr><th scope="col">{{ t.deliveries.kind }}</th><th scope="col">{{ t.deliveries.accepted }}</th><th scope="col">{{ t.deliveries.exporter }}</th><th scope="col">{{ t.state }}</th><th scope="col">{{ t.deliveries.attempts }}</th><th scope="col">{{ t.deliveries.outcome }}</th></tr></thead>
<tbody>{% for delivery in deliveries %}<tr>
<th scope="row"><a href="{{ base }}/deliveries/{{ delivery.id }}">{{ delivery.kind }}</a></th>
<td data-label="{{ t.deliveries.accepted }}">{% render 'time', at: delivery.createdAt %}</td><td data-label="{{ t.deliveries.exporter }}"><a href="{{ base }}/exporters/{{ delivery.exporterId }}">{{ delivery.exporter }}</a></td>
<td data-label="{{ t.state }}">{% render 'delivery-state', state: delivery.stateShown %}</td><td data-label="{{ t.deliveries.attempts }}">{{ delivery.attempts }}</td>
<td data-label="{{ t.deliveries.outcome }}">{% if delivery.lastCode %}<a href="{{ base }}/deliveries/{{ delivery.id }}">{% render 'outcome', code: delivery.lastCode %}</a>{% else %}{{ t.none }}{% endif %}</td></tr>
{% endfor %}</tbody></table></div>{% endif %}
{% if next %}<p><a rel="next" href="{{ base }}/deliveries?{{ next }}">{{ t.deliveries.older }}</a></p>{% endif %}
`;

const CHOICE = `<select name="{{ field }}"><option value="">{{ t.deliveries.any }}</option>{% for choice in choices %}<option value="{{ choice }}"{% if choice == value %} selected{% endif %}>{% if names %}{{ names[choice] }}{% else %}{{ choice }}{% endif %}</option>{% endfor %}</select>`;

const EXPORTER_CHOICE = `<select name="{{ field }}">{% if any %}<option value="">{{ any }}</option>{% endif %}{{ exporters | options: value | raw }}</select>`;

const REPLAYS = `{% layout 'layout' %}{% block content %}
{% if notice %}<p role="status">{{ notice }}</p>{% endif %}
{% if asked %}{% render 'replay-asked', asked: asked, totalText: totalText %}{% endif %}
<div id="replays">{% if replays.length == 0 %}{% if total == null %}<p>{{ t.deliveries.noReplays }}</p>{% endif %}{% else %}
<div class="table cards" role="region" tabindex="0" aria-label="{{ t.deliveries.replays }}"><table>
<thead><tr><th scope="col">{{ t.deliveries.begun }}</th><th scope="col">{{ t.deliveries.exporter }}</th><th scope="col">{{ t.deliveries.of }}</th><th scope="col">{{ t.deliveries.rate }}</th><th scope="col">{{ t.deliveries.progress }}</th><th scope="col">{{ t.state }}</th><th scope="col">{{ t.actions }}</th></tr></thead>
<tbody>{% for replay in replays %}<tr><th scope="row">{% render 'time', at: replay.createdAt %}</th>
<td data-label="{{ t.deliveries.exporter }}"><a href="{{ base }}/deliveries?exporterId={{ replay.exporterId }}">{{ t.deliveries.deliveriesOf | fill: replay.exporter }}</a></td>
<td data-label="{{ t.deliveries.of }}">{% if replay.failedSince %}{{ t.deliveries.failedSince }} {% render 'time', at: replay.failedSince %}{% else %}{{ t.deliveries.held }}{% endif %}</td>
<td data-label="{{ t.deliveries.rate }}">{{ t.units.perSecond | fill: replay.rate }}</td>
<td data-label="{{ t.deliveries.progress }}"><progress value="{{ replay.done }}" max="{{ replay.total }}" aria-label="{{ t.deliveries.progress }}"></progress> {{ replay.done }} / {{ replay.total }}</td>
<td data-label="{{ t.state }}">{{ t.deliveries.replayStates[replay.state] }}</td>
<td data-label="{{ t.actions }}">{% if replay.state == 'running' %}{% assign action = '/deliveries/replays/' | append: replay.id | append: '/cancel' %}{% render 'form', action: action %}<button>{{ t.deliveries.cancel }}</button></form>{% endif %}</td></tr>
{% endfor %}</tbody></table></div>{% endif %}{% if running %}{% render 'follow', path: '/deliveries/replays', part: '#replays' %}{% endif %}</div>
{% unless asked %}<section aria-labelledby="begin"><h2 id="begin">{{ t.deliveries.replayMany }}</h2>
{% if exporters.length == 0 %}<p>{{ t.exporters.empty }}</p>{% else %}
{% render 'form', action: '/deliveries/replays' %}{% render 'error', error: error %}
<label>{{ t.deliveries.exporter }}{% render 'exporter-choice', field: 'exporterId', exporters: exporters, value: values.exporterId, any: null %}</label>
<fieldset><legend>{{ t.deliveries.of }}</legend>
<label><input type="radio" name="what" value="failed"{% if values.what != 'held' %} checked{% endif %}> {{ t.deliveries.failedWhat }}</label>
<label><input type="radio" name="what" value="held"{% if values.what == 'held' %} checked{% endif %}> {{ t.deliveries.heldWhat }}</label></fieldset>
{% render 'input', field: 'failedSince', type: 'datetime-local', label: t.deliveries.failedSinceLabel, value: values.failedSince, error: error %}
{% render 'input', field: 'rate', type: 'number', label: t.deliveries.rateLabel, value: values.rate, error: error %}
{% if total == null %}{% else %}<p role="status">{{ totalText }}</p>{% endif %}
<div class="actions"><button name="step" value="count" aria-describedby="count-first">{{ t.deliveries.count }}</button> <small id="count-first">{{ t.deliveries.countFirst }}</small></div></form>{% endif %}</section>{% endunless %}
{% endblock %}`;

/** What was counted is asked about once more, without fields that could be changed meanwhile: what is confirmed is what was counted. */
const REPLAY_ASKED = `<section aria-labelledby="begin"><h2 id="begin">{{ t.deliveries.replayMany }}</h2>
<dl>{% for fact in asked.facts %}<dt>{{ fact[0] }}</dt><dd>{{ fact[1] }}</dd>{% endfor %}</dl>
{% render 'form', action: '/deliveries/replays' %}<p role="status"><strong>{{ totalText }}</strong></p>
{% for value in asked.values %}<input type="hidden" name="{{ value[0] }}" value="{{ value[1] }}">{% endfor %}
<div class="actions"><button name="step" value="begin">{{ t.deliveries.begin }}</button><a role="button" class="secondary" href="{{ base }}/deliveries/replays?{{ asked.query }}">{{ t.deliveries.otherwise }}</a></div></form></section>
`;

/** Deliveries: the list, each with its attempts, and what is sent once more. */
export const deliveriesScreen: Screen = {
    path: '/deliveries',
    title: (texts) => texts.deliveries.title,
    templates: {
        deliveries: LIST,
        'deliveries-listed': LISTED,
        choice: CHOICE,
        'exporter-choice': EXPORTER_CHOICE,
        ...activityTemplates,
        ...deliveryTemplates,
        replays: REPLAYS,
        'replay-asked': REPLAY_ASKED,
    },
    live: [{ path: '/deliveries/live', look }, deliveryLive],
    routes: [
        { method: 'GET', path: '/deliveries', answer: listed },
        activityRoute,
        ...deliveryRoutes,
        { method: 'GET', path: '/deliveries/replays', answer: (visit) => replaysPage(visit, {}) },
        { method: 'POST', path: '/deliveries/replays', answer: begun },
        { method: 'POST', path: '/deliveries/replays/{id}/cancel', answer: cancelled },
        // Where a page is loaded again that a form has led to.
        { method: 'GET', path: '/deliveries/replays/{id}/cancel', answer: async () => ({ to: '/deliveries/replays' }) },
    ],
};

const PAGE = 50;
const FIELDS = ['state', 'exporterId', 'kind', 'eventId', 'since', 'until', 'outcome'] as const;
type Values = Readonly<Record<(typeof FIELDS)[number], string>>;

function filterOf(values: Values): DeliveryFilter {
    const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ''));
    const { since, until } = values;
    return { ...given, ...(since !== '' && { since: timeIn(since) }), ...(until !== '' && { until: timeIn(until) }) };
}

function valuesOf(query: URLSearchParams): Values {
    return Object.fromEntries(FIELDS.map((field) => [field, query.get(field)?.trim() ?? ''])) as unknown as Values;
}

async function listed(visit: Visit): Promise<Page> {
    const { texts } = visit;
    const { states, waitingChoice } = texts.deliveries;
    const values = valuesOf(visit.query);
    const after = visit.query.get('after');
    const [exporters, asked] = await Promise.all([namedExporters(visit), askedFor(visit, values, after)]);
    const choices = {
        values,
        exporters,
        states: DELIVERY_STATES,
        stateNames: { ...states, pending: waitingChoice },
        outcomes: OUTCOME_CODES,
    };
    if ('error' in asked) {
        const data = { ...choices, live: null, deliveries: [], counted: '', next: null, error: asked.error };
        return { template: 'deliveries', title: texts.deliveries.title, status: asked.status, data };
    }
    // What is older does not change but for what is sent once more.
    const live = after === null ? `?${queryOf(values)}` : null;
    const data = {
        ...choices,
        live,
        notice: noticeOf(visit),
        ...listOf(asked.found, asked.count, { ...visit, exporters, values }),
    };
    return { template: 'deliveries', title: texts.deliveries.title, data };
}

/** What was done by the button that has led here. */
function noticeOf({ query, texts }: Visit): string | null {
    const sent = /^\d{1,3}$/.exec(query.get('sent') ?? '')?.[0];
    if (sent !== undefined) {
        return counted(texts, texts.deliveries.sentAgain, Number(sent));
    }
    return query.has('published') ? texts.overview.sample.done : null;
}

/** What is found, and how many there are, or what is wrong with the question. */
async function askedFor({ perform, texts }: Visit, values: Values, after: string | null) {
    try {
        const filter = filterOf(values);
        if (after === null) {
            const found = await perform('listDeliveries', { ...filter, limit: PAGE + 1 });
            return { found, count: await countOf(found, filter, perform) };
        }
        const [found, count] = await Promise.all([
            perform('listDeliveries', { ...filter, after, limit: PAGE + 1 }),
            perform('countDeliveries', filter),
        ]);
        return { found, count };
    } catch (error) {
        return faultOf(error, texts);
    }
}

/** The list as it is now; names and number are asked for where it has changed. */
async function look(visit: Visit, seen: string | null): Promise<View | null> {
    const { query, perform } = visit;
    const values = valuesOf(query);
    const filter = filterOf(values);
    const found = await perform('listDeliveries', { ...filter, limit: PAGE + 1 });
    const now = JSON.stringify(found);
    if (now === seen) {
        return null;
    }

    const [count, exporters] = await Promise.all([countOf(found, filter, perform), namedExporters(visit)]);
    return { seen: now, template: 'deliveries-listed', data: listOf(found, count, { ...visit, exporters, values }) };
}

/** How many there are, of which the newest were found: rare ones are not looked for twice, among all that there are. */
async function countOf(found: readonly Delivery[], filter: DeliveryFilter, perform: Visit['perform']): Promise<DeliveryCount> {
    return found.length <= PAGE ? { count: found.length, more: false } : await perform('countDeliveries', filter);
}

interface ListedWith {
    readonly exporters: readonly Named[];
    readonly values: Values;
    readonly now: Date;
    readonly texts: Texts;
}

/** A page of what was found, which may be one more than a page has. */
function listOf(found: readonly Delivery[], { count, more }: DeliveryCount, { exporters, values, now, texts }: ListedWith) {
    const deliveries = found.slice(0, PAGE).map((delivery) => ({
        ...delivery,
        exporter: nameOf(exporters, delivery.exporterId),
        stateShown: stateShown(delivery, now, texts),
    }));
    return {
        deliveries,
        counted: counted(texts, texts.deliveries.counted, count, more),
        next: found.length > PAGE ? nextQuery(values, deliveries.at(-1)?.id ?? '') : null,
    };
}

function queryOf(values: Values): URLSearchParams {
    return new URLSearchParams(Object.entries(values).filter(([, value]) => value !== ''));
}

function nextQuery(values: Values, after: string): string {
    const query = queryOf(values);
    query.set('after', after);
    return query.toString();
}

interface ReplayValues {
    readonly exporterId: string;
    readonly what: string;
    readonly failedSince: string;
    readonly rate: string;
}

interface ReplaysSaid {
    readonly values?: ReplayValues;
    /** How many a replay would have. */
    readonly total?: number | null;
    readonly error?: Fault | null;
    readonly status?: number;
}

const YESTERDAY = 86_400_000;

async function replaysPage(visit: Visit, { values, total = null, error = null, status = 200 }: ReplaysSaid): Promise<Page> {
    const { query, now, perform, texts } = visit;
    const [all, exporters] = await Promise.all([perform('listReplays', {}), namedExporters(visit)]);
    const since = new Date(now.getTime() - YESTERDAY).toISOString().slice(0, 16);
    const notices: Readonly<Record<string, string>> = texts.deliveries.done;
    const done = query.get('done') ?? '';
    const begins = values ?? {
        exporterId: query.get('exporterId') ?? '',
        what: query.get('what') ?? 'failed',
        failedSince: query.get('failedSince') ?? since,
        rate: query.get('rate') ?? '100',
    };
    const data = {
        running: all.some(({ state }) => state === 'running'),
        replays: all.map((replay) => ({ ...replay, exporter: nameOf(exporters, replay.exporterId) })),
        exporters,
        values: begins,
        total,
        asked: total ? askedAbout(begins, nameOf(exporters, begins.exporterId), texts) : null,
        totalText: counted(texts, texts.deliveries.wouldReplay, total ?? 0),
        error,
        notice: Object.hasOwn(notices, done) ? notices[done] : null,
    };
    return { template: 'replays', title: texts.deliveries.replays, status, data };
}

/** What somebody confirms who has counted it. */
function askedAbout(values: ReplayValues, exporter: string, texts: Texts) {
    const { what, failedSince, rate } = values;
    const t = texts.deliveries;
    const facts = [
        [t.exporter, exporter],
        what === 'held' ? [t.of, t.heldWhat] : [t.failedSinceLabel, timeIn(failedSince).toISOString().slice(0, 16).replace('T', ' ')],
        ...(rate === '' ? [] : [[t.rateLabel, rate]]),
    ];
    return { facts, values: Object.entries(values), query: new URLSearchParams(Object.entries(values)).toString() };
}

async function begun(visit: Visit): Promise<Page | Redirect> {
    const { form, perform } = visit;
    const text = (field: string): string => form.get(field)?.trim() ?? '';
    const values: ReplayValues = {
        exporterId: text('exporterId'),
        what: text('what'),
        failedSince: text('failedSince'),
        rate: text('rate'),
    };
    try {
        const answer = await perform('beginReplay', {
            exporterId: values.exporterId,
            ...(values.what === 'held' ? { held: true as const } : { failedSince: timeIn(values.failedSince) }),
            ...(values.rate !== '' && { rate: Number(values.rate) }),
            dryRun: text('step') !== 'begin',
        });
        return 'id' in answer ? { to: '/deliveries/replays?done=begun' } : await replaysPage(visit, { values, total: answer.total });
    } catch (error) {
        return await replaysPage(visit, { values, ...faultOf(error, visit.texts) });
    }
}

async function cancelled({ params, perform }: Visit): Promise<Redirect> {
    await perform('cancelReplay', { id: params.id ?? '' });
    return { to: '/deliveries/replays?done=cancelled' };
}

/** So many of what waits for an exporter, the newest, are looked at, and sent by one button: more are replayed, at a rate. */
const LOOKED_AT = 50;

interface Waiting {
    readonly waiting: readonly Delivery[];
    readonly all: boolean;
}

/** What waits for its next try of an exporter, the newest, and whether that is all of it. */
export async function waitingFor({ perform }: Pick<Visit, 'perform'>, exporterId: string): Promise<Waiting> {
    const found = await perform('listDeliveries', { exporterId, state: 'pending', limit: LOOKED_AT });
    return { waiting: found.filter(waitsAgain), all: found.length < LOOKED_AT };
}
