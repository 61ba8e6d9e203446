import type { Delivery } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { ExporterSummary } from '../../../lib/webhooks/exporters/exporter-lists.ts';
import { ATTEMPT_PHASES, type OutcomeCode, type Timings } from '../../../lib/webhooks/outcomes/outcome.ts';
import type { Output } from '../operations.ts';
import { type OutcomeShown, outcomeShown } from './attempt.ts';
import { waitingFor } from './deliveries.ts';
import { durationText, type Texts } from './languages.ts';
import type { Templates } from './renderer.ts';
import type { Visit } from './screen.ts';

const TEST = `{% if attempt == null and steps.length > 0 %}<p>{{ t.exporters.sending }}</p>
{% elsif attempt and attempt.code == null %}<p>{{ t.exporters.underWay }} {% render 'time', at: attempt.startedAt %}.</p>
{% elsif attempt %}{% render 'attempt-outcome', attempt: attempt, exporterId: id %}{% else %}<p>{{ t.exporters.noOutcome }}<noscript> {{ t.exporters.lookAgain }}</noscript></p>{% endif %}
{% if steps.length > 0 %}<dl class="steps">{% for step in steps %}<dt>{{ step[0] }}</dt><dd>{{ step[1] }}</dd>{% endfor %}</dl>{% endif %}
{% if waits == 'few' %}<p>{{ t.exporters.othersWait }}</p>{% assign action = '/exporters/' | append: id | append: '/waiting' %}{% render 'form', action: action %}<button>{{ t.exporters.sendWaiting }}</button></form>
{% elsif waits %}<p>{{ t.exporters.othersWait }} <a role="button" class="secondary" href="{{ base }}/deliveries/replays?exporterId={{ id }}">{{ t.exporters.sendWaiting }}</a></p>{% endif %}`;

/** How the page of an exporter shows a test. */
export const testTemplates: Templates = { 'exporter-test': TEST };

/** A test as the page of its exporter shows it. */
export interface ShownTest {
    readonly id: string;
    /** Null before there is one. */
    readonly attempt: OutcomeShown | null;
    readonly ended: boolean;
    /** What each step took, in words. */
    readonly steps: readonly (readonly [string, string])[];
    /** Whether other deliveries wait, once the test has arrived: few, which a button sends, or many; null for none. */
    readonly waits: 'few' | 'many' | null;
}

/** What becomes of the test that the page was asked for; one of another exporter is none. */
export async function testOf({ query, perform, texts }: Visit, exporterId: string): Promise<ShownTest> {
    const id = query.get('test') ?? '';
    const delivery = await perform('showDelivery', { id });
    if (delivery.exporterId !== exporterId) {
        return { id, attempt: null, ended: true, steps: [], waits: null };
    }

    const attempt = delivery.history.at(-1) ?? null;
    const steps = attempt?.timings
        ? stepsOf(attempt.timings, true, texts)
        : delivery.progress
          ? stepsOf(delivery.progress, false, texts)
          : [];
    const { waiting, all } = attempt?.code === 'delivered' ? await waitingFor({ perform }, exporterId) : { waiting: [], all: true };
    const waits = waiting.length === 0 ? null : all ? 'few' : 'many';
    return { id, attempt: attempt && outcomeShown(attempt, texts), ended: delivery.finishedAt !== null, steps, waits };
}

/** So many of the newest deliveries of an exporter are looked at for a test. */
const NEWEST = 20;

/** The last test of an exporter that has ended, where it is newer than what the health of the exporter knows of: that leaves tests out. */
export async function lastTestOf(
    { perform }: Pick<Visit, 'perform'>,
    { id, health }: Output<'showExporter'>,
): Promise<{ readonly code: OutcomeCode; readonly at: Date } | null> {
    const newest = await perform('listDeliveries', { exporterId: id, limit: NEWEST });
    const test = newest.find(({ kind, finishedAt }) => kind === 'test' && finishedAt !== null);
    const { lastCode: code = null, finishedAt: at = null } = test ?? {};
    const isNewer = at !== null && (health.lastOutcome === null || at >= health.lastOutcome.at);
    return isNewer && code !== null ? { code, at } : null;
}

/** An exporter whose last test has failed. */
export interface FailedTest {
    readonly exporter: ExporterSummary;
    readonly code: OutcomeCode;
}

/** So many of the newest tests of all exporters are looked at, and so many exporters that these name. */
const NEWEST_TESTS = 50;
const MAX_ASKED = 10;

/** The newest tests of all exporters. */
export async function newestTests({ perform }: Visit): Promise<readonly Delivery[]> {
    return await perform('listDeliveries', { kind: 'test', limit: NEWEST_TESTS });
}

/**
 * Exporters that run and whose last test has failed, where their receivers have taken nothing since: those that fail otherwise say so themselves.
 *
 * @param tests As {@link newestTests}.
 */
export async function failedTests(
    { perform }: Visit,
    exporters: readonly ExporterSummary[],
    tests: readonly Delivery[],
): Promise<readonly FailedTest[]> {
    const last = new Map(tests.toReversed().map((test) => [test.exporterId, test]));
    const asked = exporters
        .filter(({ id, state, consecutiveFailures }) => state === 'running' && consecutiveFailures === 0 && hasFailed(last.get(id)))
        .slice(0, MAX_ASKED);
    const failed = await Promise.all(
        asked.map(async (exporter) => {
            const { code } = (await lastTestOf({ perform }, await perform('showExporter', { id: exporter.id }))) ?? {};
            return code === undefined || code === 'delivered' ? [] : [{ exporter, code }];
        }),
    );
    return failed.flat();
}

function hasFailed(test: Delivery | undefined): boolean {
    return test !== undefined && test.finishedAt !== null && test.lastCode !== 'delivered';
}

const STEPS = [...ATTEMPT_PHASES, 'total'] as const;

/** Each step with what it took. How long all of it takes is told once it is known. */
function stepsOf(timings: Timings, isOver: boolean, texts: Texts): readonly (readonly [string, string])[] {
    const { steps, notYet, notNeeded } = texts.exporters;
    const last = STEPS.findLastIndex((name) => name !== 'total' && timings[name] !== null);
    return STEPS.slice(0, isOver ? undefined : -1).map((name, index) => {
        const took = timings[name];
        return [steps[name], took === null ? (isOver || index < last ? notNeeded : notYet) : durationText(texts, took)];
    });
}
