import { isObject } from '../../schema-validation.ts';
import { exporterKinds, investigationCreated, isNoticeKind, testEvent } from '../events/event-kinds.ts';
import type { FormatEvent } from './format.ts';
import { writtenTime } from './written-time.ts';

/** How grave an event is, by its own word for it; `unknown` where it has none, as all kinds of ours but `test`. */
export type Severity = 'critical' | 'high' | 'medium' | 'low' | 'info' | 'unknown';

/** The parts of an event that people read, whatever its kind. Texts are those of the event: nothing in them is escaped. */
export interface Summary {
    /** Not empty. */
    readonly title: string;
    readonly text: string | null;
    /** An absolute http or https URL. */
    readonly link: string | null;
    /** Neither label nor value is empty. */
    readonly facts: readonly (readonly [label: string, value: string])[];
    readonly severity: Severity;
    /** When it happened: the body's own `timestamp`, else when it was accepted. */
    readonly time: Date;
    /** The host that it is about; null when it names none. */
    readonly host: string | null;
}

const MAX_FACTS = 10;
const MAX_LINK = 2000;
const LINK = /^https?:\/\/[^\s<>"|\\^`{}]+$/i;
/** Fields with the same meaning in every kind, which are shown by themselves. */
const SHOWN_APART: ReadonlySet<string> = new Set(['title', 'description', 'link', 'timestamp', 'severity']);

const SEVERITIES: Readonly<Record<string, Severity>> = {
    critical: 'critical',
    high: 'high',
    error: 'high',
    medium: 'medium',
    moderate: 'medium',
    warning: 'medium',
    low: 'low',
    info: 'info',
    informational: 'info',
};

/** What has become of an exporter, behind its name. */
const NOTICES: ReadonlyMap<string, string> = new Map([
    [exporterKinds.exporter_failing.name, 'is failing'],
    [exporterKinds.exporter_stopped.name, 'was stopped'],
    [exporterKinds.exporter_recovered.name, 'has recovered'],
]);

/** What people are shown of an event. */
export function summaryOf({ kind, body, time }: FormatEvent): Summary {
    return {
        title: textOf(body.title) ?? ownTitle(kind, body) ?? kind,
        text: isNoticeKind(kind) ? whyOf(body) : textOf(body.description),
        link: webLink(body.link),
        facts: kind === investigationCreated.name ? investigationFacts(body) : scalarFacts(body),
        severity: kind === testEvent.name ? 'info' : severityOf(body.severity),
        time: writtenTime(textOf(body.timestamp) ?? '') ?? time,
        host: textOf(itemsOf(body, 'assets')[0]?.hostname) ?? textOf(body.hostname) ?? textOf(body.host),
    };
}

/** The title of a kind of ours whose body has none; null for other kinds. */
function ownTitle(kind: string, body: FormatEvent['body']): string | null {
    if (kind === testEvent.name) {
        return `Test of ${textOf(body.webhook_name) ?? 'a webhook'}`;
    }

    const became = NOTICES.get(kind);
    return became === undefined ? null : `Exporter ${textOf(body.exporterName) ?? textOf(body.exporterId)} ${became}`;
}

/** Why an exporter was stopped, or what its last attempt came to. */
function whyOf({ reason, lastOutcome }: FormatEvent['body']): string | null {
    return textOf(reason) ?? (isObject(lastOutcome) ? textOf(lastOutcome.detail) : null);
}

/** The users or the assets of an investigation; none where a body has no such list. */
export function itemsOf(body: FormatEvent['body'], key: 'users' | 'assets'): readonly Readonly<Record<string, unknown>>[] {
    const list = isObject(body.actors) ? body.actors[key] : undefined;
    return Array.isArray(list) ? list.filter(isObject) : [];
}

/** The text without characters that cannot be shown; null for an empty text and for what is no text. */
export function textOf(value: unknown): string | null {
    if (typeof value !== 'string') {
        return null;
    }

    const text = (SUSPECT.test(value) ? value.replace(UNREADABLE, ' ') : value).trim();
    return text === '' ? null : text;
}

/** Control characters except the ends of lines, and halves of surrogate pairs. */
const UNREADABLE = /(?!\n)[\p{Cc}\p{Cs}]/gu;
/** A wider class than {@link UNREADABLE} that is tested in a fraction of the time. Most texts have none of it, and need no closer look. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const SUSPECT = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\ud800-\udfff]/;

/** The value when it is a URL that a reader may follow, else null. */
function webLink(value: unknown): string | null {
    return typeof value === 'string' && value.length <= MAX_LINK && LINK.test(value) ? value : null;
}

/** At most so many UTF-16 units; an ellipsis stands for what was cut off, and no character is cut in two. */
export function truncated(text: string, max: number): string {
    if (text.length <= max) {
        return text;
    }

    const end = max - 1;
    const last = text.charCodeAt(end - 1);
    return `${text.slice(0, last >= 0xd800 && last < 0xdc00 ? end - 1 : end)}…`;
}

function severityOf(value: unknown): Severity {
    const key = typeof value === 'string' ? value.toLowerCase() : '';
    return Object.hasOwn(SEVERITIES, key) ? (SEVERITIES[key] as Severity) : 'unknown';
}

function investigationFacts(body: FormatEvent['body']): Summary['facts'] {
    const names = (key: 'users' | 'assets', name: string): string =>
        itemsOf(body, key)
            .map((item) => textOf(item[name]))
            .filter((text) => text !== null)
            .join(', ');
    const facts: readonly (readonly [string, unknown])[] = [
        ['Users', names('users', 'name')],
        ['Assets', names('assets', 'hostname')],
        ['Investigation', body.investigationId],
    ];
    return facts.flatMap(([label, value]) => {
        const text = textOf(value);
        return text === null ? [] : [[label, text] as const];
    });
}

/** The fields at the top level of a body that can be read as they are. */
function scalarFacts(body: FormatEvent['body']): Summary['facts'] {
    const facts: (readonly [string, string])[] = [];
    for (const [key, value] of Object.entries(body)) {
        const text = textOf(typeof value === 'number' || typeof value === 'boolean' ? String(value) : value);
        const label = textOf(key);
        if (text !== null && label !== null && !SHOWN_APART.has(key) && facts.length < MAX_FACTS) {
            facts.push([label, text]);
        }
    }

    return facts;
}
