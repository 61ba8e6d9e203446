import { createHash } from 'node:crypto';
import { ScanwireError } from '../../../lib/errors.ts';
import type { DeliveryMessage } from '../../../lib/webhooks/deliveries/deliveries.ts';
import { DISCARDABLE, hasFailed, isReplayable, waitsAgain } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Output } from '../operations.ts';
import { attemptShown, attemptTemplates, outcomeShown } from './attempt.ts';
import { errorText, filled, type Texts } from './languages.ts';
import type { LivePart } from './live-streams.ts';
import type { Page, Templates } from './renderer.ts';
import { type Redirect, type ScreenRoute, unlessAbsent, type Visit } from './screen.ts';

const SHOW = `{% layout 'layout' %}{% block content %}
{% if notice %}<p role="status">{{ notice }}</p>{% endif %}
<p class="actions" data-live="{{ base }}{{ path }}/live" data-seen="{{ seen }}" data-part="#delivery" data-texts="{{ t.deliveries.live | json }}" hidden><span role="status"></span> <button type="button" class="outline"></button></p>
<div id="delivery">{% render 'follow', path: path, part: '#delivery', when: 'changed' %}
<dl><dt>{{ t.state }}</dt><dd>{% render 'delivery-state', state: state %}</dd>
{% if last %}<dt>{{ t.deliveries.outcome }}</dt><dd>{% render 'attempt-outcome', attempt: last, exporterId: mends %}</dd>{% endif %}
<dt>{{ t.deliveries.exporter }}</dt><dd><a href="{{ base }}/exporters/{{ delivery.exporterId }}">{{ exporter }}</a></dd>
<dt>{{ t.deliveries.kind }}</dt><dd>{{ delivery.kind }}</dd>
<dt>{{ t.deliveries.event }}</dt><dd><a href="{{ base }}/deliveries?eventId={{ delivery.eventId }}">{{ delivery.eventId }}</a></dd>
<dt>{{ t.deliveries.accepted }}</dt><dd>{% render 'time', at: delivery.createdAt %}</dd>
{% if delivery.finishedAt %}<dt>{{ t.deliveries.finished }}</dt><dd>{% render 'time', at: delivery.finishedAt %}</dd>{% else %}<dt>{% if waits %}{{ t.deliveries.nextTry }}{% else %}{{ t.deliveries.due }}{% endif %}</dt><dd>{% render 'time', at: delivery.dueAt %}</dd>{% endif %}</dl>
{% if replayable %}{% assign action = '/deliveries/' | append: delivery.id | append: '/replay' %}{% render 'form', action: action %}<button>{{ t.deliveries.replay }}</button></form>{% endif %}
{% if waits %}{% if isLater %}{% assign action = '/deliveries/' | append: delivery.id | append: '/replay' %}{% render 'form', action: action %}<button>{{ t.deliveries.tryNow }}</button></form>{% endif %}<p>{{ t.deliveries.triedAgain }} <a href="{{ base }}/deliveries/replays?exporterId={{ delivery.exporterId }}">{{ t.deliveries.sendNow }}</a></p>{% endif %}
{% if discardable %}{% assign action = '/deliveries/' | append: delivery.id | append: '/discard' %}{% render 'form', action: action %}<button class="secondary" aria-describedby="discard">{{ t.deliveries.discard.button }}</button> <small id="discard">{{ t.deliveries.discard.hint }}</small></form>{% endif %}
<h2 id="attempts">{{ t.deliveries.attempts }}</h2>
{% if attempts.length == 0 %}<p>{{ t.deliveries.noAttempts }}</p>{% else %}
<div class="table cards" role="region" tabindex="0" aria-labelledby="attempts"><table>
<thead><tr><th scope="col">{{ t.deliveries.number }}</th><th scope="col">{{ t.deliveries.started }}</th><th scope="col">{{ t.deliveries.cameTo }}</th><th scope="col">{{ t.deliveries.times }}</th><th scope="col">{{ t.deliveries.response }}</th></tr></thead>
<tbody>{% for attempt in attempts %}<tr><th scope="row">{{ attempt.number }}</th>
<td data-label="{{ t.deliveries.started }}">{% render 'time', at: attempt.startedAt %}</td>
<td data-label="{{ t.deliveries.cameTo }}">{% if attempt.code %}{% render 'outcome', code: attempt.code %} {{ t.said.detail | fill: attempt.detail }}{% if attempt.late %} {{ t.deliveries.late }}{% endif %}{% render 'outcome-words', words: attempt.words %}{% else %}{{ t.deliveries.underWay }}{% endif %}</td>
<td data-label="{{ t.deliveries.times }}">{% if attempt.bar %}<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{{ attempt.took | join: ', ' }}">{% for part in attempt.bar %}<rect class="{{ part.phase }}" x="{{ part.from }}" width="{{ part.width }}" height="8"></rect>{% endfor %}</svg><small>{% for part in attempt.took %}<span class="whole">{{ part }}{% unless forloop.last %},{% endunless %}</span> {% endfor %}</small>{% else %}{{ t.none }}{% endif %}</td>
<td data-label="{{ t.deliveries.response }}">{% if attempt.response.length == 0 %}{{ t.none }}{% else %}{% for fact in attempt.response %}<div><small>{{ fact[0] }}</small> {{ fact[1] }}</div>{% endfor %}{% endif %}</td></tr>
{% if attempt.answer %}<tr class="answer"><td colspan="5">{% render 'answer', answer: attempt.answer %}</td></tr>{% endif %}
{% endfor %}</tbody></table></div>{% endif %}</div>
<section aria-labelledby="message"><h2 id="message">{{ t.deliveries.message }}</h2>
{% if message.trouble %}<p role="alert" class="fault">{{ message.trouble }}</p>
{% elsif message.erasedAt %}<p>{{ t.deliveries.erased }} {% render 'time', at: message.erasedAt %}.</p>
{% else %}
{% if message.headers %}<details><summary>{{ t.deliveries.headers }}</summary><p><small>{{ t.deliveries.headersHint }}</small></p>
<dl class="headers">{% for header in message.headers %}<dt>{{ header[0] }}</dt><dd><code>{{ header[1] }}</code></dd>{% endfor %}</dl></details>{% else %}<p>{{ t.deliveries.noExporter }}</p>{% endif %}
<h3>{{ t.deliveries.body }}</h3><p><small>{{ t.deliveries.bytes | fill: message.size }}{% if message.cut %} {{ t.deliveries.cut | fill: message.cut }}{% endif %}</small></p>
<pre tabindex="0" aria-label="{{ t.deliveries.body }}"><code>{{ message.body }}</code></pre>
{% endif %}</section>
{% endblock %}`;

const STATE = `{% if state.failed %}<span class="failed">{{ state.text }}{% if state.nextTry %} {% render 'time', at: state.nextTry %}{% endif %}</span>{% else %}{{ state.text }}{% endif %}`;

/** What is said to a page that shows it. */
const SEEN = '{{ seen }}';

/** The page of a delivery, and its parts. */
export const deliveryTemplates: Templates = { delivery: SHOW, 'delivery-seen': SEEN, 'delivery-state': STATE, ...attemptTemplates };

/** One delivery: what it sends and what came of it, to send it once more, and to end it. */
export const deliveryRoutes: readonly ScreenRoute[] = [
    { method: 'GET', path: '/deliveries/{id}', answer: shown },
    { method: 'POST', path: '/deliveries/{id}/replay', answer: replayed },
    { method: 'POST', path: '/deliveries/{id}/discard', answer: discarded },
    // Where a page is loaded again that a form has led to.
    ...['replay', 'discard'].map(
        (step): ScreenRoute => ({
            method: 'GET',
            path: `/deliveries/{id}/${step}`,
            answer: async ({ params }) => ({ to: at(params.id ?? '') }),
        }),
    ),
];

function at(id: string, query = ''): string {
    return `/deliveries/${encodeURIComponent(id)}${query}`;
}

/** An exporter by what it is called on pages. */
export interface Named {
    readonly id: string;
    readonly name: string;
}

/** All exporters by what they are called on pages. */
export async function namedExporters({ perform }: Visit): Promise<readonly Named[]> {
    const all = await perform('summarizeExporters', {});
    return all.map(({ id, name }) => ({ id, name: name === '' ? id : name }));
}

/** Of an exporter that was removed its id. */
export function nameOf(exporters: readonly Named[], exporterId: string): string {
    return exporters.find(({ id }) => id === exporterId)?.name || exporterId;
}

/** The state of a delivery, as pages say it. */
export interface StateShown {
    readonly text: string;
    readonly failed: boolean;
    /** When it is tried again, where that is known and to come. */
    readonly nextTry: Date | null;
}

/** The state of a delivery in words, and whether it failed; of one that is tried again, when. */
export function stateShown(delivery: Delivery, now: Date, texts: Texts): StateShown {
    const { states, waits } = texts.deliveries;
    if (!waitsAgain(delivery)) {
        return { text: states[delivery.state], failed: hasFailed(delivery.state), nextTry: null };
    }

    const isLater = delivery.dueAt.getTime() > now.getTime();
    return { text: isLater ? waits.later : waits.due, failed: true, nextTry: isLater ? delivery.dueAt : null };
}

async function shown(visit: Visit): Promise<Page> {
    const { params, now, perform, offers, texts } = visit;
    const delivery = await perform('showDelivery', { id: params.id ?? '' });
    const [message, exporters] = await Promise.all([
        messageOf(visit, delivery.id),
        perform('summarizeExporters', { ids: [delivery.exporterId] }),
    ]);
    const last = delivery.history.findLast(({ code }) => code !== null) ?? null;
    const attempts = delivery.history.map((attempt, index, all) => ({
        ...attemptShown(attempt, texts, all[index + 1]),
        // Said above already.
        ...(attempt === last && { words: null, answer: null }),
    }));
    return {
        template: 'delivery',
        title: filled(texts.deliveries.one, [delivery.kind]),
        data: {
            delivery,
            attempts,
            last: last && outcomeShown(last, texts),
            mends: exporters.length > 0 ? delivery.exporterId : null,
            message,
            exporter: nameOf(exporters, delivery.exporterId),
            replayable: delivery.finishedAt !== null && isReplayable(delivery),
            state: stateShown(delivery, now, texts),
            waits: waitsAgain(delivery),
            isLater: delivery.dueAt.getTime() > now.getTime(),
            discardable: offers('discardDelivery') && DISCARDABLE.includes(delivery.state),
            notice: noticeOf(visit),
            path: at(delivery.id),
            seen: seenOf(delivery),
        },
    };
}

/** Differs where there is something else to see. */
function seenOf(delivery: Output<'showDelivery'>): string {
    return createHash('sha256').update(JSON.stringify(delivery)).digest('base64url');
}

/** Whether a delivery is another one than was seen: a page fetches it itself, with forms of its own. One that is gone has no more to see. */
export const deliveryLive: LivePart = {
    path: '/deliveries/{id}/live',
    async look({ params, perform }, seen) {
        const delivery = await unlessAbsent(() => perform('showDelivery', { id: params.id ?? '' }));
        const now = delivery === null ? seen : seenOf(delivery);
        return now === seen || now === null ? null : { seen: now, template: 'delivery-seen', data: { seen: now } };
    },
};

function noticeOf({ query, texts }: Visit): string | null {
    if (query.has('discarded')) {
        return texts.deliveries.discard.done;
    }
    return query.has('replayed') ? texts.deliveries.wasReplayed : null;
}

/** Characters of a body that a page shows. */
const MAX_SHOWN = 50_000;

interface MessageShown extends Omit<DeliveryMessage, 'bytes' | 'failure'> {
    readonly size: string;
    /** How many characters are shown of a longer body, else null. */
    readonly cut: string | null;
    /** Why it cannot be shown, or is not sent. */
    readonly trouble: string | null;
}

/** A message that cannot be shown, for example because the key ring lacks a key, leaves the rest of the page as it is. */
async function messageOf({ perform, texts }: Visit, id: string): Promise<MessageShown> {
    const nothing = { body: null, headers: null, erasedAt: null, size: '', cut: null };
    try {
        const { body, bytes, headers, erasedAt, failure } = await perform('showMessage', { id });
        if (body === null) {
            return {
                ...nothing,
                erasedAt,
                trouble: failure === null ? null : filled(texts.deliveries.notSent, [filled(texts.said.unsent, [failure])]),
            };
        }

        const pretty = indented(body, MAX_SHOWN);
        const cut = pretty.length > MAX_SHOWN ? MAX_SHOWN.toLocaleString(texts.locale) : null;
        const size = (bytes ?? 0).toLocaleString(texts.locale);
        return { body: pretty.slice(0, MAX_SHOWN), headers, erasedAt, size, cut, trouble: null };
    } catch (error) {
        if (error instanceof ScanwireError && error.code !== 'UNAVAILABLE') {
            return { ...nothing, trouble: errorText(error, texts) };
        }
        throw error;
    }
}

const MAX_INDENT = 40;

/**
 * JSON with line breaks: nothing but blanks between its parts is added, so that numbers and repeated keys are those that are sent. Another text
 * stays as it is, and so does what follows so many characters.
 */
export function indented(text: string, length: number): string {
    try {
        JSON.parse(text);
    } catch {
        return text;
    }

    const written: string[] = [];
    let depth = 0;
    let size = 0;
    for (const [part] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|[^[\]{},:"\s]+/g)) {
        depth += part === '[' || part === '{' ? 1 : part === ']' || part === '}' ? -1 : 0;
        const line = `\n${'  '.repeat(Math.min(depth, MAX_INDENT))}`;
        const laid = spaced(part, line);
        written.push(laid);
        size += laid.length;
        if (size > length) {
            break;
        }
    }
    return written.join('');
}

function spaced(part: string, line: string): string {
    switch (part) {
        case ':':
            return ': ';
        case ',':
        case '[':
        case '{':
            return part + line;
        case ']':
        case '}':
            return line + part;
        default:
            return part;
    }
}

async function replayed({ params, perform }: Visit): Promise<Redirect> {
    const { id } = await perform('replayDelivery', { id: params.id ?? '' });
    return { to: at(id, '?replayed') };
}

async function discarded({ params, perform }: Visit): Promise<Redirect> {
    const { id } = await perform('discardDelivery', { id: params.id ?? '' });
    return { to: at(id, '?discarded') };
}
