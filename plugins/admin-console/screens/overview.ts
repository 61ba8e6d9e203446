import { VERSION } from '../../../lib/version.ts';
import type { ExporterSummary } from '../../../lib/webhooks/exporters/exporter-lists.ts';
import type { Diagnosis } from '../../../lib/webhooks/observing/doctor.ts';
import type { Finding } from '../../../lib/webhooks/observing/finding.ts';
import { within } from '../../../lib/within.ts';
import { type FailedTest, failedTests, newestTests } from './exporter-tests.ts';
import { firstSteps, OVERVIEW_PATH, pathOf, publishedSample, SAMPLE_PATH } from './first-steps.ts';
import { counted, filled, findingShown, type Texts, wordsOf } from './languages.ts';
import type { Page } from './renderer.ts';
import { type Screen, unlessAbsent, type Visit } from './screen.ts';

const OVERVIEW = `{% layout 'layout' %}{% block content %}
{% if steps.length > 0 %}<section aria-labelledby="first"><h2 id="first">{{ t.overview.first }}</h2><ol>
{% for step in steps %}<li>{% if step.command %}{{ step.text }}{% if step.action %}{% render 'form', action: step.action %}<button aria-describedby="sample">{{ t.overview.sample.button }}</button> <small id="sample">{{ t.overview.sample.hint }}</small></form>{% else %}<p><small>{{ t.overview.sample.later }}</small></p>{% endif %}
<p><small>{% if step.action %}{{ t.overview.publishOr }}{% else %}{{ t.overview.publishHow }}{% endif %} <code>{{ step.command }}</code></small></p>{% else %}<a href="{{ base }}{{ step.to }}">{{ step.text }}</a>{% endif %}</li>
{% endfor %}</ol></section>{% endif %}
<section aria-labelledby="attention"><h2 id="attention">{{ t.overview.attention }}</h2>
{% if attention.length == 0 %}<p>{% if late %}{{ t.overview.looking }}{% else %}{{ t.overview.nothing }}{% endif %}</p>{% else %}<ul>
{% for item in attention %}<li><strong>{{ t.overview.states[item.state] }}</strong> {{ item.text }}{% if item.to %}: <a href="{{ base }}{{ item.to }}">{{ item.link }}</a>{% endif %}{% if item.advice %}<br><small>{{ item.advice }}</small>{% endif %}{% if item.command %}<br><code>{{ item.command }}</code>{% endif %}
{% if item.action %}{% assign action = item.to | append: '/' | append: item.action %}{% render 'form', action: action %}<button class="outline" aria-label="{{ t.exporters.actions[item.action] }}: {{ item.link }}">{{ t.exporters.actions[item.action] }}</button></form>{% endif %}</li>
{% endfor %}</ul>{% if late %}<p>{{ t.overview.looking }}</p>{% endif %}{% endif %}</section>
<section aria-labelledby="runs"><h2 id="runs">{{ t.overview.runs }}</h2><ul>
<li>{{ version }}</li>
{% for finding in well %}<li>{{ finding.text }}</li>
{% endfor %}</ul>{% if publishes %}<details><summary>{{ t.overview.sample.button }}</summary><p><small id="sample">{{ t.overview.sample.hint }}</small></p>
{% render 'form', action: publishes %}<button class="secondary" aria-describedby="sample">{{ t.overview.sample.now }}</button></form></details>{% endif %}</section>
{% endblock %}`;

/** How long a page waits for the doctor, who may have to wait for name servers, in milliseconds. */
const PATIENCE = 500;

/** What needs somebody, the most urgent first. */
interface Attention {
    readonly state: 'wrong' | 'warning';
    readonly text: string;
    readonly advice?: string | null;
    /** Where it can be seen to. */
    readonly to?: string;
    readonly link?: string;
    /** What can be done to it at once: a button of the page that it leads to. */
    readonly action?: 'start' | 'test';
    /** What helps, to be typed where the server runs. */
    readonly command?: string;
}

/** Overview: what runs, what needs attention, and how to begin. */
export function overviewScreen(): Screen {
    const look = looking();
    return {
        path: OVERVIEW_PATH,
        title: (texts) => texts.overview.title,
        templates: { overview: OVERVIEW },
        routes: [
            { method: 'GET', path: OVERVIEW_PATH, answer: (visit) => overview(visit, look) },
            { method: 'POST', path: SAMPLE_PATH, answer: publishedSample },
            // Where a page is loaded again that a form has led to.
            { method: 'GET', path: SAMPLE_PATH, answer: async () => ({ to: OVERVIEW_PATH }) },
        ],
    };
}

/**
 * What the doctor says, or said last where he takes longer than a page should. However many pages ask, he looks once at a time.
 *
 * @returns Null while he has said nothing yet.
 */
function looking(): (visit: Visit) => Promise<{ readonly diagnosis: Diagnosis | null; readonly late: boolean }> {
    let last: Diagnosis | null = null;
    let underWay: Promise<Diagnosis> | null = null;
    return async ({ perform }) => {
        underWay ??= perform('diagnose', {}).finally(() => {
            underWay = null;
        });
        const current = underWay;
        const isLate = new Error('late');
        try {
            last = await within(current, { timeout: PATIENCE, late: () => isLate });
            return { diagnosis: last, late: false };
        } catch (error) {
            if (error !== isLate) {
                throw error;
            }
            void current.then(
                (diagnosis) => {
                    last = diagnosis;
                },
                () => {},
            );
            return { diagnosis: last, late: true };
        }
    };
}

async function overview(visit: Visit, look: ReturnType<typeof looking>): Promise<Page> {
    const { perform, texts } = visit;
    const { diagnosis, late } = await look(visit);
    const findings = diagnosis?.findings ?? [];
    // Without a store nothing else can be asked; the doctor has said so.
    const isAway = findings[0]?.state === 'wrong';
    const [exporters, license, tests] = isAway
        ? [null, null, []]
        : await Promise.all([perform('summarizeExporters', {}), unlessAbsent(() => perform('showLicense', {})), newestTests(visit)]);
    const attention: readonly Attention[] = [
        ...findings.filter(({ state }) => state === 'wrong').map((finding) => seenTo(finding, texts)),
        ...(exporters ?? []).flatMap((exporter) => stopped(exporter, texts)),
        ...(license !== null && !license.valid ? [unlicensed(license.reason, texts)] : []),
        ...(exporters ?? []).flatMap((exporter) => failing(exporter, texts)),
        ...(exporters === null ? [] : (await failedTests(visit, exporters, tests)).map((failed) => testFailed(failed, texts))),
        ...findings.filter(({ state, part }) => state === 'warning' && part !== 'exporters').map((finding) => seenTo(finding, texts)),
    ];
    const steps = exporters === null ? [] : await firstSteps(visit, exporters);
    const isSent = exporters?.some(({ state }) => state === 'running') === true;
    const data = {
        attention,
        late,
        steps,
        // A step says it itself.
        publishes: isSent && !steps.some(({ action }) => action !== undefined) ? SAMPLE_PATH : null,
        version: filled(texts.overview.version, [VERSION, process.versions.node]),
        well: findings.filter(({ state }) => state === 'ok').map((finding) => findingShown(finding, texts)),
    };
    return { template: 'overview', title: texts.overview.title, data };
}

function seenTo(finding: Finding, texts: Texts): Attention {
    return { state: finding.state === 'wrong' ? 'wrong' : 'warning', ...findingShown(finding, texts) };
}

function unlicensed(reason: string | null, { overview, said }: Texts): Attention {
    return {
        state: 'wrong',
        text: overview.license,
        advice: reason === null ? null : filled(said.license, [reason]),
        command: 'scanwire license install FILE',
    };
}

function linkTo(exporter: ExporterSummary): Required<Pick<Attention, 'to' | 'link'>> {
    return { to: pathOf(exporter), link: exporter.name === '' ? exporter.id : exporter.name };
}

/** One that was stopped by what its receiver did. */
function stopped(exporter: ExporterSummary, { overview, said }: Texts): readonly Attention[] {
    const { stopReason } = exporter;
    return stopReason === null
        ? []
        : [
              {
                  state: 'wrong',
                  text: filled(overview.stopped, [filled(said.stopped, [stopReason])]),
                  advice: overview.stoppedAdvice,
                  action: 'start',
                  ...linkTo(exporter),
              },
          ];
}

function failing(exporter: ExporterSummary, texts: Texts): readonly Attention[] {
    const { consecutiveFailures, stopReason } = exporter;
    return consecutiveFailures === 0 || stopReason !== null
        ? []
        : [
              {
                  state: 'warning',
                  text: counted(texts, texts.exporters.failing, consecutiveFailures),
                  advice: texts.overview.failingAdvice,
                  action: 'test',
                  ...linkTo(exporter),
              },
          ];
}

function testFailed({ exporter, code }: FailedTest, texts: Texts): Attention {
    return {
        state: 'warning',
        text: filled(texts.overview.testFailed, [code]),
        advice: wordsOf(texts, code)?.advice ?? null,
        action: 'test',
        ...linkTo(exporter),
    };
}
