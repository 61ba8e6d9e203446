import { ScanwireError } from '../../../lib/errors.ts';
import { spanText } from '../../../lib/span.ts';
import type { Exporter } from '../../../lib/webhooks/exporters/exporter.ts';
import { type SettingName, SHOWN_TOGETHER } from '../../../lib/webhooks/exporters/plain-settings.ts';
import type { ReceiverWarning } from '../../../lib/webhooks/exporters/receiver-url.ts';
import { generateSecret } from '../../../lib/webhooks/messages/signing-secret.ts';
import type { Output } from '../operations.ts';
import { waitingFor } from './deliveries.ts';
import {
    changesOf,
    controlsOf,
    type ExporterValues,
    formTemplates,
    newSettings,
    newValues,
    valuesFrom,
    valuesOf,
} from './exporter-form.ts';
import { listed, listTemplates } from './exporter-list.ts';
import { previewShown, previewTemplates } from './exporter-preview.ts';
import { lastTestOf, testOf, testTemplates } from './exporter-tests.ts';
import { countText, filled, type Texts, wordsOf } from './languages.ts';
import { type Fault, faultOf, type Page } from './renderer.ts';
import { FailedOnTheWay, type Redirect, type Screen, type ScreenRoute, type Visit } from './screen.ts';
import { settingFact } from './setting-fields.ts';

const SHOW = `{% layout 'layout' %}{% block content %}
{% if notice %}<p role="status">{{ notice }}</p>{% endif %}
{% if held %}<p role="status">{{ t.exporters.wasHeld }} {{ held }}. <a href="{{ base }}/deliveries/replays?exporterId={{ exporter.id }}&amp;what=held">{{ t.exporters.replayHeld }}</a></p>{% endif %}
{% for warning in warnings %}<p role="status"><strong>{{ t.exporters.warning }}</strong> {{ warning }}</p>{% endfor %}
{% if shown %}<section role="status" id="test"><h2>{{ t.exporters.test }}</h2>{% render 'exporter-test', id: exporter.id, attempt: shown.attempt, steps: shown.steps, waits: shown.waits %}{% unless shown.ended %}{% assign path = '/exporters/' | append: exporter.id | append: '?test=' | append: shown.id %}{% render 'follow', path: path, part: '#test', every: '250ms' %}{% endunless %}</section>{% endif %}
<section class="actions" aria-label="{{ t.actions }}">
<a role="button" href="{{ base }}/exporters/{{ exporter.id }}/edit">{{ t.exporters.edit }}</a>
{% for name in actions %}{% assign action = '/exporters/' | append: exporter.id | append: '/' | append: name %}{% render 'form', action: action %}<button{% if name == 'stop' or name == 'pause' %} class="secondary"{% endif %}>{{ t.exporters.actions[name] }}</button></form>{% endfor %}
<a role="button" class="secondary" href="{{ base }}/deliveries?exporterId={{ exporter.id }}">{{ t.deliveries.title }}</a>
<a role="button" class="secondary" href="{{ base }}/deliveries/replays?exporterId={{ exporter.id }}">{{ t.deliveries.replays }}</a>
<small>{{ t.exporters.stopOrPause }}</small></section>
<div id="facts">{% if shown and shown.ended == false %}{% assign path = '/exporters/' | append: exporter.id | append: '?test=' | append: shown.id %}{% render 'follow', path: path, part: '#facts' %}{% endif %}
<dl><dt>{{ t.state }}</dt><dd>{% render 'exporter-state', exporter: exporter %}</dd>
<dt>{{ t.exporters.lastOutcome }}</dt><dd>{% if lastTest %}{% render 'outcome', code: lastTest.code %} {% render 'time', at: lastTest.at %}, {{ t.exporters.byTest }}{% if exporter.health.lastOutcome %}<br>{{ t.exporters.beforeTest }} {% endif %}{% endif %}{% if lastTest == null or exporter.health.lastOutcome %}{% render 'exporter-outcome', health: exporter.health %}{% if exporter.health.lastOutcome %}{% assign detail = t.said.detail | fill: exporter.health.lastOutcome.detail %}{% if detail != '' %}: {{ detail }}{% endif %}{% endif %}{% endif %}{% render 'outcome-words', words: words %}</dd>
<dt>{{ t.exporters.health }}</dt><dd>{% render 'exporter-health', exporter: exporter %}{% if lastTest.code == 'delivered' and exporter.consecutiveFailures > 0 %}<br>{{ t.exporters.testArrived }}{% endif %}</dd>
<dt>{{ t.exporters.waiting }}</dt><dd>{% render 'exporter-waiting', backlog: exporter.health.backlog %}</dd>
{% for fact in facts %}<dt>{{ fact[0] }}</dt><dd>{{ fact[1] }}</dd>{% endfor %}</dl></div>
<details{% if error %} open{% endif %}><summary>{{ t.exporters.rotate }}</summary>{% assign action = '/exporters/' | append: exporter.id | append: '/secret' %}{% render 'form', action: action %}
{% render 'input', field: 'secret', label: t.exporters.secret, value: secret, hint: t.exporters.rotateHint, required: true, id: 'secret', error: error %}{% render 'copy', id: 'secret' %}
{% render 'input', field: 'overlap', label: t.exporters.overlap, value: overlap, hint: t.exporters.overlapHint, error: error %}<button>{{ t.exporters.rotateNow }}</button></form></details>
<details><summary>{{ t.exporters.remove }}</summary><p>{{ t.exporters.removeAsk }}</p>{% assign action = '/exporters/' | append: exporter.id | append: '/remove' %}{% render 'form', action: action %}<button>{{ t.exporters.removeNow }}</button></form></details>
{% endblock %}`;

const EDIT = `{% layout 'layout' %}{% block content %}{% render 'exporter-form', title: title, action: action, isNew: isNew, isOwned: isOwned, values: values, error: error, collectors: collectors, settings: settings, others: others, formats: formats, types: types, typeHint: typeHint, ownerHint: ownerHint, isRunning: isRunning, carries: carries, keptHeaders: keptHeaders, parts: parts, preview: preview %}{% endblock %}`;

/** What is done by a button of the page of an exporter. Those that send a test show what it came to. */
const ACTIONS = ['start', 'stop', 'pause', 'resume', 'test'] as const;

/** Data Exporters: the list, the form, and each with what can be done to it. */
export const exportersScreen: Screen = {
    path: '/exporters',
    title: ({ exporters }) => exporters.title,
    templates: {
        ...listTemplates,
        exporter: SHOW,
        ...testTemplates,
        'exporter-edit': EDIT,
        ...formTemplates,
        ...previewTemplates,
    },
    routes: [
        { method: 'GET', path: '/exporters', answer: listed },
        { method: 'POST', path: '/exporters', answer: created },
        { method: 'GET', path: '/exporters/new', answer: (visit) => formPage(visit, { values: newValues() }) },
        { method: 'GET', path: '/exporters/{id}', answer: (visit) => exporterPage(visit) },
        { method: 'GET', path: '/exporters/{id}/edit', answer: edited },
        { method: 'POST', path: '/exporters/{id}/edit', answer: changed },
        { method: 'POST', path: '/exporters/{id}/secret', answer: rotated },
        { method: 'POST', path: '/exporters/{id}/remove', answer: removed },
        { method: 'POST', path: '/exporters/{id}/waiting', answer: sentWaiting },
        ...ACTIONS.map((name): ScreenRoute => ({ method: 'POST', path: `/exporters/{id}/${name}`, answer: acting(name) })),
        // Where a page is loaded again that a form has led to.
        ...[...ACTIONS, 'secret', 'remove', 'waiting'].map(
            (name): ScreenRoute => ({ method: 'GET', path: `/exporters/{id}/${name}`, answer: async (visit) => ({ to: at(idOf(visit)) }) }),
        ),
    ],
};

function idOf({ params }: Visit): string {
    return params.id ?? '';
}

/** Where an exporter is shown, and what is said there. */
function at(id: string, said: Readonly<Record<string, string>> = {}): string {
    const query = new URLSearchParams(said).toString();
    return `/exporters/${encodeURIComponent(id)}${query === '' ? '' : `?${query}`}`;
}

interface FormState {
    readonly values: ExporterValues;
    /** The one that is changed, absent for a new one. */
    readonly before?: Exporter;
    readonly error?: Fault;
    readonly status?: number;
}

async function formPage(visit: Visit, { values, before, error, status = 200 }: FormState): Promise<Page> {
    const { perform, owner, texts } = visit;
    const all = await perform('summarizeExporters', {});
    const collectors = [...new Set([String(values.collector), ...all.map(({ collector }) => collector)])].filter((name) => name !== '');
    const [title, action] =
        before === undefined
            ? [texts.exporters.add, '/exporters']
            : [filled(texts.exporters.editOne, [before.name || before.id]), `/exporters/${before.id}/edit`];
    const typeHint = before?.legacy === true ? texts.exporters.oneWay : null;
    const isNew = before === undefined;
    const data = {
        values,
        error: error ?? null,
        collectors,
        action,
        isNew,
        isOwned: owner !== null,
        typeHint,
        ownerHint: isNew ? texts.exporters.ownerHint : texts.exporters.ownerStays,
        preview: await previewShown(visit, values, before),
        ...controlsOf(values, texts, before),
    };
    return { template: 'exporter-edit', title, status, data };
}

/** Unless another button than that to save was pressed. */
function isSaved(form: Visit['form']): boolean {
    return !form.has('moreHeaders') && !form.has('preview');
}

async function created(visit: Visit): Promise<Page | Redirect> {
    const { form, perform } = visit;
    const values = valuesOf(form);
    if (!isSaved(form)) {
        return await formPage(visit, { values });
    }

    let made: Output<'createExporter'>;
    try {
        made = await perform('createExporter', newSettings(values));
    } catch (error) {
        return await formPage(visit, { values, ...faultOf(error, visit.texts) });
    }

    const warning = made.warnings.map(({ code }) => code).join(' ');
    const said = { done: 'created', ...(warning !== '' && { warning }) };
    try {
        const started = values.start ? await perform('startExporter', { id: made.id, wait: !visit.scripted }) : null;
        return { to: at(made.id, { ...said, ...(started !== null && { test: started.test.deliveryId }) }) };
    } catch (cause) {
        // Whoever sends the form once more would add another one.
        throw new FailedOnTheWay(cause, at(made.id, said));
    }
}

async function edited(visit: Visit): Promise<Page> {
    const before = await visit.perform('showExporter', { id: idOf(visit), showUrl: true });
    return await formPage(visit, { values: valuesFrom(before), before });
}

async function changed(visit: Visit): Promise<Page | Redirect> {
    const { form, perform } = visit;
    const before = await perform('showExporter', { id: idOf(visit) });
    const values = valuesOf(form);
    if (!isSaved(form)) {
        return await formPage(visit, { values, before });
    }

    try {
        const { id, test, warnings, held } = await perform('updateExporter', {
            ...changesOf(values, before),
            id: before.id,
            start: values.start,
            wait: !visit.scripted,
        });
        const warning = warnings.map(({ code }) => code).join(' ');
        return { to: at(id, { done: 'changed', test: test.deliveryId, ...(warning !== '' && { warning }), ...heldSaid(held) }) };
    } catch (error) {
        return await formPage(visit, { values, before, ...faultOf(error, visit.texts) });
    }
}

const HOUR = 3_600_000;

async function rotated(visit: Visit): Promise<Page | Redirect> {
    const { form, perform } = visit;
    const secret = form.get('secret') ?? '';
    const hours = (form.get('overlap') ?? '').trim();
    try {
        const overlap = hours === '' ? {} : { overlap: Number(hours) * HOUR };
        const { id, test } = await perform('updateExporter', { id: idOf(visit), secret, ...overlap, wait: !visit.scripted });
        return { to: at(id, { done: 'rotated', test: test.deliveryId }) };
    } catch (error) {
        const fault = faultOf(error, visit.texts);
        return { ...(await exporterPage(visit, fault.error)), status: fault.status };
    }
}

async function removed(visit: Visit): Promise<Redirect> {
    await visit.perform('removeExporter', { id: idOf(visit) });
    return { to: '/exporters?removed' };
}

function acting(name: (typeof ACTIONS)[number]): ScreenRoute['answer'] {
    return async (visit) => {
        const id = idOf(visit);
        const { perform } = visit;
        if (name === 'pause' || name === 'resume') {
            await perform(name === 'pause' ? 'pauseExporter' : 'resumeExporter', { id });
            return { to: at(id, { done: name }) };
        }

        const wait = !visit.scripted;
        if (name === 'start') {
            const { test, held } = await perform('startExporter', { id, wait });
            return { to: at(id, { done: name, test: test.deliveryId, ...heldSaid(held) }) };
        }
        const { deliveryId } = name === 'test' ? await perform('testExporter', { id, wait }) : (await perform('stopExporter', { id })).test;
        return { to: at(id, { done: name, test: deliveryId }) };
    };
}

/** Of a start after which something is held: the page says how much, as long as it is. */
function heldSaid(held: Output<'updateExporter'>['held']): Readonly<Record<string, string>> {
    return held === undefined || held.count === 0 ? {} : { held: '' };
}

async function exporterPage(visit: Visit, error: Fault | null = null): Promise<Page> {
    const { query, perform, texts } = visit;
    const exporter = await perform('showExporter', { id: idOf(visit) });
    const notices: Readonly<Record<string, string>> = texts.exporters.done;
    const warnings: Readonly<Record<string, string>> = texts.exporters.warnings satisfies Record<ReceiverWarning['code'], string>;
    const said = (query.get('warning') ?? '').split(' ').flatMap((code) => (Object.hasOwn(warnings, code) ? [warnings[code]] : []));
    const done = query.get('done') ?? '';
    const shown = query.has('test') ? await testOf(visit, exporter.id) : null;
    // Afterwards: where the page shows that the test has ended, it is not looked for again.
    const lastTest = await lastTestOf(visit, exporter);
    const { lastOutcome } = exporter.health;
    const data = {
        exporter,
        lastTest,
        // A test that is shown has words of its own, and one that has arrived takes back what was said before.
        words: lastTest?.code === 'delivered' ? null : wordsOf(texts, (lastOutcome ?? (shown === null ? lastTest : null))?.code),
        facts: factsOf(exporter, texts),
        actions: actionsOf(exporter),
        secret: generateSecret(),
        overlap: visit.form.get('overlap') ?? '24',
        notice: Object.hasOwn(notices, done) ? notices[done] : null,
        warnings: said,
        held: query.has('held') && exporter.state === 'running' ? await heldBack(visit, exporter.id) : null,
        error,
        shown,
    };
    return { template: 'exporter', title: exporter.name || exporter.id, data };
}

/** How much is still held for one that was started; null for nothing. */
async function heldBack({ perform, texts }: Visit, exporterId: string): Promise<string | null> {
    const held = await perform('countDeliveries', { exporterId, state: 'held' });
    return held.count === 0 ? null : countText(texts, held);
}

/** One that is being sent by itself by now needs nobody to send it. */
async function sentWaiting(visit: Visit): Promise<Redirect> {
    const { perform } = visit;
    const exporterId = idOf(visit);
    let sent = 0;
    for (const { id } of (await waitingFor(visit, exporterId)).waiting) {
        try {
            await perform('replayDelivery', { id });
            sent += 1;
        } catch (error) {
            if (!(error instanceof ScanwireError && error.code === 'CONFLICT')) {
                throw error;
            }
        }
    }
    return { to: `/deliveries?${new URLSearchParams({ exporterId, sent: String(sent) })}` };
}

function actionsOf({ state, pausedAt }: Exporter): readonly string[] {
    return ['test', state === 'running' ? 'stop' : 'start', pausedAt === null ? 'pause' : 'resume'];
}

function factsOf(exporter: Exporter, texts: Texts): readonly (readonly [string, string])[] {
    const { id, url, type, owner, headerNames, authentication, schedule = [] } = exporter;
    const t = texts.exporters;
    const plain = (...names: readonly SettingName[]) => names.map((name) => settingFact(name, exporter, texts));
    const facts: readonly (readonly [string, string])[] = [
        [t.id, id],
        [t.url, url],
        ...plain('collector'),
        [t.type, t.types[type]],
        ...plain('trust'),
        [t.headers, headerNames.join(', ')],
        ...plain('kinds', 'filter', 'format', 'signatures', ...SHOWN_TOGETHER),
        [t.schedule, schedule.map(spanText).join(', ')],
        [t.authentication, authentication.map((part) => t.authentications[part].title).join(', ')],
        [t.owner, owner ?? ''],
    ];
    return facts.filter(([, value]) => value !== '');
}
