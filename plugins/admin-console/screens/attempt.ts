import { ATTEMPT_PHASES, type Timings } from '../../../lib/webhooks/outcomes/outcome.ts';
import type { OutcomeWords } from '../../../lib/webhooks/outcomes/outcome-words.ts';
import type { ResponseBody } from '../../../lib/webhooks/outcomes/response-bodies.ts';
import type { AttemptView } from '../operations.ts';
import { durationText, filled, type Texts, wordsOf } from './languages.ts';
import type { Templates } from './renderer.ts';

const OUTCOME = `<code class="{% if code == 'delivered' %}arrived{% else %}failed{% endif %}">{{ code }}</code>`;

/** What an attempt came to, what mends it and where, and the start of the answer. */
const CAME_TO = `<p>{% render 'outcome', code: attempt.code %} {{ t.said.detail | fill: attempt.detail }}{% if attempt.late %} {{ t.deliveries.late }}{% endif %}</p>
{% render 'outcome-words', words: attempt.words %}{% if attempt.words and exporterId %}<p><a href="{{ base }}/exporters/{{ exporterId }}/edit{{ attempt.mendAt }}">{{ t.exporters.mend }}</a></p>{% endif %}
{% if attempt.answer %}{% render 'answer', answer: attempt.answer %}{% endif %}`;

const ANSWER = `<div>{{ t.deliveries.answered }}{% if answer.text == nil %} {{ t.deliveries.noText | fill: answer.size }}</div>{% else %}</div><pre tabindex="0" aria-label="{{ t.deliveries.answered }}"><code>{{ answer.text }}</code></pre>{% if answer.truncated %}<small>{{ t.deliveries.truncated | fill: answer.size }}</small>{% endif %}{% endif %}`;

/** How pages show an attempt: what came of it, and what was answered. */
export const attemptTemplates: Templates = { outcome: OUTCOME, 'attempt-outcome': CAME_TO, answer: ANSWER };

type AnswerShown = ResponseBody & { readonly size: string };

/** An attempt with what its outcome means, and the start of the answer. */
export type OutcomeShown = AttemptView & {
    readonly words: OutcomeWords | null;
    /** Where in the form of its exporter it is mended: a fragment, or nothing. */
    readonly mendAt: string;
    readonly answer: AnswerShown | null;
};

/** An attempt as a row. */
export type AttemptShown = Omit<OutcomeShown, 'mendAt'> & {
    readonly response: readonly Fact[];
    readonly bar: readonly object[] | null;
    /** What each phase took, in words. */
    readonly took: readonly string[];
};

type Fact = readonly [string, string | number | null | undefined];

/** What an attempt came to, as a page says it where nothing else does. */
export function outcomeShown(attempt: AttemptView, texts: Texts): OutcomeShown {
    const words = wordsOf(texts, attempt.code, attempt.status);
    // Headers are what a receiver wants that asks for credentials; for all else the form is shown from its beginning.
    const mendAt = words === texts.clientErrors.credentials ? '#headers' : '';
    return { ...attempt, words, mendAt, answer: answerShown(attempt.responseBody, texts) };
}

function answerShown(body: ResponseBody | null, { locale }: Texts): AnswerShown | null {
    return body && { ...body, size: body.bytes.toLocaleString(locale) };
}

/** @param next The one after it: what several came to, one after the other, is explained once, and what all were answered shown once. */
export function attemptShown(attempt: AttemptView, texts: Texts, next?: AttemptView): AttemptShown {
    const { timings, status, retryAfter, address, fingerprint, certificate, responseBody } = attempt;
    const t = texts.deliveries;
    const facts: readonly Fact[] = [
        [t.status, status],
        [t.retryAfter, retryAfter === null ? null : filled(texts.units.seconds, [String(Math.ceil(retryAfter / 1000))])],
        [t.address, address],
        [t.issuer, certificate?.issuer],
        [t.certificateEnds, certificate?.expiresAt.slice(0, 10)],
        [t.fingerprint, fingerprint],
    ];
    const response = facts.filter(([, value]) => value !== null && value !== undefined);
    const isRepeated = attempt.code === next?.code && attempt.status === next.status;
    const words = isRepeated ? null : wordsOf(texts, attempt.code, attempt.status);
    const isSaidAgain = isRepeated && responseBody?.text === next?.responseBody?.text && responseBody?.bytes === next?.responseBody?.bytes;
    const answer = isSaidAgain ? null : answerShown(responseBody, texts);
    return { ...attempt, words, response, answer, ...(timings === null ? { bar: null, took: [] } : barOf(timings, texts)) };
}

/** The phases of an attempt one behind the other, in percent of all of it, and the same in words. */
function barOf(timings: Timings, texts: Texts): Pick<AttemptShown, 'bar' | 'took'> {
    const { total } = timings;
    let from = 0;
    const bar = ATTEMPT_PHASES.flatMap((phase) => {
        const width = Math.min(100 - from, (100 * (timings[phase] ?? 0)) / Math.max(1, total));
        from += width;
        return width === 0 ? [] : [{ phase, from: (from - width).toFixed(1), width: width.toFixed(1) }];
    });
    const took = [...ATTEMPT_PHASES, 'total' as const].flatMap((phase) => {
        const milliseconds = timings[phase];
        return milliseconds === null ? [] : [`${texts.exporters.steps[phase]} ${durationText(texts, milliseconds)}`];
    });
    return { bar, took };
}
