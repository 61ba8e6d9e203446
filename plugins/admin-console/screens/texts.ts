import type { OutcomeCode } from '../../../lib/webhooks/outcomes/outcome.ts';
import { CLIENT_ERROR_WORDS, OUTCOME_WORDS, type OutcomeWords, outcomeWords } from '../../../lib/webhooks/outcomes/outcome-words.ts';
import { exporterTexts } from './exporter-texts.ts';

/** What the screens say, in English: another language is another object of this form. `%` stands for what is filled in. */
export const texts = {
    locale: 'en',
    product: 'Administration',
    skip: 'To the content',
    navigation: 'Pages',
    signOut: 'Sign out',
    never: 'never',
    none: 'none',
    state: 'State',
    actions: 'Actions',
    copy: 'Copy',
    copied: 'Copied',
    required: 'required',
    again: 'Enter it again: a secret is not sent back.',
    away: 'The server cannot be reached: what is shown is from before. Try again in a moment.',
    units: { milliseconds: '% ms', seconds: '% s', perSecond: '%/s', utc: '% UTC' },

    /** Of the pages of `scanwire serve` by which somebody comes in. The `%` is a command. */
    signIn: {
        title: 'Sign in',
        button: 'Sign in with this browser',
        about: 'You have opened a link that signs one browser in, once. It stays signed in for 12 hours, or until the server is restarted.',
        link: 'A link signs you in.',
        how: 'Run % where the server runs for a new one, and open it here.',
        used: 'This link was used already, or its time is over.',
        tooMany: 'Too many links that lead nowhere came from here. Try again in a minute.',
    },

    refusals: {
        title: 'This cannot be done',
        back: 'Back',
        forbidden: 'Access needs the rights of an administrator.',
        failed: 'The server failed; its log says why.',
        foreignForm: 'This form does not come from this page, or is out of date. Open the page again and repeat what you wanted.',
        unreadable: 'What was sent is no form, or is too long.',
        tooMany: 'Too many people look at lists that change. Load the page again to see what is new.',
        unknownPage: 'There is no such page.',
    },

    overview: {
        title: 'Overview',
        first: 'First steps',
        next: 'Next step:',
        start: 'Start an exporter, which sends a test event',
        publish: 'Publish a first event',
        publishHow: 'The application does it, or this command where the server runs:',
        publishOr: 'or let the application do it, or this command where the server runs:',
        sample: {
            button: 'Publish a sample event',
            hint: 'It goes to every exporter that runs and wants it.',
            later: 'A button for it appears here once an exporter runs.',
            done: 'The sample event was published.',
            title: 'A sample investigation',
            description: 'Published from the first steps, to see what becomes of an event.',
        },
        attention: 'What needs attention',
        nothing: 'Nothing.',
        looking: 'It is still being looked at. Load this page again in a moment.',
        states: { wrong: 'Wrong:', warning: 'Warning:' },
        stopped: 'Stopped by its receiver (%)',
        stoppedAdvice: 'Mend the receiver and start the exporter again. What was held meanwhile can be replayed.',
        failingAdvice: 'Its page says what the receiver did last. Once that is mended, a test shows whether it is well.',
        license: 'There is no valid licence: the REST API refuses every key.',
        runs: 'What runs',
        version: 'scanwire % on Node.js %',
    },

    keys: {
        title: 'API Keys',
        /** The `%` is the name of the header. */
        about: 'Programs send a key in the HTTP header %.',
        empty: 'There is no key yet.',
        create: 'Create an API Key',
        made: 'The key % was made.',
        shown: 'The key of %',
        shownOnce: 'Keep it now: it cannot be shown again.',
        shownAgain: 'To see it again, click its beginning in the list below.',
        token: 'Token',
        show: 'Show the full key of %',
        name: 'Name',
        nameHint: 'What it is for. It need not be unique.',
        scopes: 'Scopes',
        opens: {
            'inventory:read': 'Reads workspaces and hosts with all that belongs to them, by the REST API.',
            'records:read': 'Reads HTTPS scan records.',
            'records:write': 'Checks and stores HTTPS scan records.',
            'deliveries:read': 'Looks up what became of deliveries.',
            'events:publish': 'Publishes events, which are sent to the exporters.',
            admin: 'Opens nothing here: for routes of your own application that ask for it.',
        },
        workspaces: 'Workspaces',
        workspacesHint: 'Ids of the only workspaces that it sees, with commas between them. All when empty.',
        allWorkspaces: 'all',
        expiresAt: 'Expires',
        expiresAtHint: 'From the beginning of this day on, in UTC, it is refused. Never when empty.',
        limits: 'Scopes, workspaces, expiry',
        limitsHint: 'All optional: without them it has the scope %, all workspaces, and never expires.',
        created: 'Created',
        lastUsed: 'Last used',
        active: 'active',
        expired: 'expired',
        revoked: 'revoked',
        revoke: 'Revoke',
        revokeAsk: 'Whoever uses % is refused from then on, for good.',
        revokeNow: 'Revoke %',
        wasRevoked: 'The key was revoked.',
    },

    exporters: exporterTexts as typeof exporterTexts,
    outcomes: OUTCOME_WORDS as typeof OUTCOME_WORDS,
    clientErrors: CLIENT_ERROR_WORDS as typeof CLIENT_ERROR_WORDS,

    audit: {
        title: 'Audit',
        empty: 'Nobody has done anything.',
        at: 'Begun',
        actor: 'Who',
        operation: 'Operation',
        subject: 'Done to',
        outcome: 'Outcome',
        since: 'From (UTC)',
        until: 'Before (UTC)',
        filter: 'Which entries are shown',
        show: 'Show',
        any: 'any',
        unknown: 'under way, or not known',
        older: 'Older entries',
    },

    activity: {
        title: 'Deliveries over time',
        spans: { hour: 'The last hour', day: 'The last day' },
        allExporters: 'all',
        show: 'Show',
        counts: 'Deliveries: % in all, the most in a bar %',
        parts: { delivered: 'delivered', failed: 'failed', rest: 'neither yet' },
        latency: 'From acceptance to delivery',
        longest: 'the longest %',
        latencies: { p95: '19 of 20 within', p50: 'half within' },
        noLatency: 'Nothing was delivered.',
        numbers: 'The numbers',
        slice: 'From (UTC)',
        deliveries: 'Deliveries',
        delivered: 'Delivered',
        failed: 'Last attempt failed',
        cut: 'Of a bar with a + there may be more: the newest % were looked at.',
        absent: 'This store does not count deliveries over time.',
    },

    deliveries: {
        title: 'Deliveries',
        one: 'Delivery of %',
        filter: 'Which deliveries are shown',
        show: 'Show',
        any: 'any',
        counted: { one: '1 delivery', other: '% deliveries' },
        older: 'Older deliveries',
        live: {
            on: 'Changes are shown as they happen.',
            off: 'Changes are not shown as they happen: load this page again to see them.',
            paused: 'Changes are not shown until you go on.',
            pause: 'Pause',
            resume: 'Go on',
        },
        exporter: 'Exporter',
        kind: 'Kind',
        event: 'Event',
        since: 'Accepted from (UTC)',
        until: 'Accepted before (UTC)',
        outcome: 'Last outcome',
        cameTo: 'Outcome',
        accepted: 'Accepted',
        finished: 'Finished',
        due: 'Due',
        nextTry: 'Next try',
        message: 'What is sent',
        headers: 'Headers',
        headersHint:
            'As it would be sent now, with the time of the last attempt if there was one. Values of additional headers and credentials are not shown.',
        body: 'Body',
        bytes: '% bytes.',
        cut: 'Only the first % characters are shown.',
        erased: 'The body was erased',
        notSent: 'Nothing is sent: %.',
        noExporter: 'The exporter was removed, and its headers with it.',
        response: 'Response',
        answered: 'The receiver answered:',
        noText: '% bytes that are no text.',
        truncated: 'This is the beginning: % bytes were read.',
        retryAfter: 'Retry after',
        issuer: 'Issuer',
        certificateEnds: 'Certificate until',
        fingerprint: 'SHA-256',
        attempts: 'Attempts',
        noAttempts: 'There was no attempt yet.',
        number: 'No.',
        started: 'Begun',
        status: 'Status',
        times: 'Times',
        address: 'Address',
        underWay: 'under way',
        late: 'Its claim had run out: another attempt may have sent the same message.',
        replay: 'Send it once more',
        tryNow: 'Try it now',
        triedAgain: 'It is tried again by itself.',
        sendNow: 'Resend all failed deliveries of this exporter',
        discard: {
            button: 'Discard it',
            hint: 'It is never sent again, and what waits behind it for its order key goes on.',
            done: 'It was discarded.',
        },
        sentAgain: { one: '1 delivery was sent again.', other: '% deliveries were sent again.' },
        wasReplayed: 'It is sent once more: the same bytes, the same message id.',
        states: {
            pending: 'waiting',
            queued: 'queued',
            sending: 'being sent',
            delivered: 'delivered',
            exhausted: 'failed, given up',
            poisoned: 'set aside: it kills workers',
            cancelled: 'cancelled',
            erased: 'erased',
            held: 'held',
        },
        /** Of one that failed and is tried again; behind `later` stands when. */
        waits: { later: 'failed, next try', due: 'failed, due for its next try' },
        waitingChoice: 'waiting, for the first or the next try',
        replays: 'Replays',
        replayMany: 'Replay many',
        noReplays: 'Nothing was replayed yet.',
        begun: 'Begun',
        deliveriesOf: 'Deliveries of %',
        of: 'What',
        rate: 'Rate',
        progress: 'Progress',
        failedSince: 'failed since',
        held: 'held',
        failedWhat: 'what was sent in vain since a time',
        heldWhat: 'what was held while an outcome had stopped the exporter',
        failedSinceLabel: 'Failed since (UTC)',
        rateLabel: 'Deliveries a second',
        count: 'Next: count them',
        countFirst: 'Nothing is sent yet: you see how many they are, and confirm.',
        otherwise: 'Choose otherwise',
        wouldReplay: { one: '1 delivery would be sent once more.', other: '% deliveries would be sent once more.' },
        begin: 'Replay them',
        cancel: 'Cancel',
        replayStates: { running: 'running', done: 'done: all were handed out to be sent', cancelled: 'cancelled' },
        done: { begun: 'The replay has begun.', cancelled: 'The replay was cancelled. What was sent by then stays sent.' },
    },
} as const;

/** A tree of texts with the keys of the English one. */
export type Texts = Widened<typeof texts>;

type Widened<T> = { readonly [Key in keyof T]: T[Key] extends string ? string : Widened<T[Key]> };

/**
 * What an outcome that wants somebody is in words; null for one that does not, and for one of a newer version.
 *
 * @param status Of the answer, where one came and is known.
 */
export function wordsOf(code: OutcomeCode | null | undefined, status: number | null = null): OutcomeWords | null {
    const words: OutcomeWords | undefined = code == null ? undefined : outcomeWords(code, status, texts);
    return words?.advice == null ? null : words;
}

/** A number, `10,000+` where more were not counted. */
export function countText({ count, more = false }: { readonly count: number; readonly more?: boolean }): string {
    return `${count.toLocaleString(texts.locale)}${more ? '+' : ''}`;
}

/** A length of time in words. @param milliseconds Whole ones. */
export function durationText(milliseconds: number): string {
    const { units, locale } = texts;
    const [form, count] = milliseconds < 10_000 ? [units.milliseconds, milliseconds] : [units.seconds, Math.round(milliseconds / 1000)];
    return filled(form, [count.toLocaleString(locale)]);
}

/** A text of a number in its forms. */
export interface Forms {
    readonly one: string;
    readonly other: string;
}

/** A text of a number, in the form that goes with it. @param more Whether there may be more than that. */
export function counted(forms: Forms, count: number, more = false): string {
    return count === 1 && !more ? forms.one : filled(forms.other, [countText({ count, more })]);
}

/** A text with a value for each `%`, in their order; what is filled in may have one itself. */
export function filled(text: string, values: readonly string[]): string {
    let index = 0;
    return text.replace(/%/g, () => values[index++] ?? '');
}
