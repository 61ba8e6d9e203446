import { exporterKinds, isNoticeKind, testEvent } from '../events/event-kinds.ts';
import type { Format, FormatEvent } from './format.ts';
import { SECRET_PLACEHOLDER } from './format-secret.ts';
import { type Severity, summaryOf, truncated } from './summary.ts';

/* Alerts and rows, for programs that page people or keep what happened. */

const JSON_TYPE = 'application/json; charset=UTF-8';

const PAGERDUTY_SUMMARY = 1024;
const PAGERDUTY_SOURCE = 1024;
const PAGERDUTY_DEDUP_KEY = 255;
/** PagerDuty takes 512 KB in all. */
const PAGERDUTY_DETAILS_BYTES = 480 * 1024;

/** PagerDuty's severity for each of ours. An event whose severity is unknown is to be looked at now: that is what such an exporter is for. */
const PAGERDUTY_SEVERITIES: Readonly<Record<Severity, 'critical' | 'error' | 'warning' | 'info'>> = {
    critical: 'critical',
    high: 'error',
    medium: 'warning',
    low: 'info',
    info: 'info',
    unknown: 'error',
};

/** Kinds that end an alert, if there is one, and page nobody. */
const RESOLVING: ReadonlySet<string> = new Set([testEvent.name, exporterKinds.exporter_recovered.name]);

/** An event of PagerDuty's Events API v2. A `test` resolves an alert that does not exist, so that it shows that everything works without paging anybody. */
export const pagerduty: Format = {
    name: 'pagerduty',
    contentType: JSON_TYPE,
    secret: {
        name: 'routing key',
        pattern: /^[A-Za-z0-9]{32}$/,
        rule: 'must be the 32 letters and digits of an Events API v2 integration',
    },
    make(event, { vendor }) {
        const summary = summaryOf(event);
        const message = {
            event_action: RESOLVING.has(event.kind) ? 'resolve' : 'trigger',
            dedup_key: truncated(dedupKey(event), PAGERDUTY_DEDUP_KEY),
            payload: {
                summary: truncated(summary.title, PAGERDUTY_SUMMARY),
                source: truncated(summary.host ?? vendor, PAGERDUTY_SOURCE),
                severity: PAGERDUTY_SEVERITIES[summary.severity],
                timestamp: summary.time.toISOString(),
                class: event.kind,
                custom_details: omission(event, PAGERDUTY_DETAILS_BYTES, 'PagerDuty') ?? event.body,
            },
            client: vendor,
            ...(summary.link !== null && { client_url: summary.link, links: [{ href: summary.link, text: `Open in ${vendor}` }] }),
        };
        return { body: `{"routing_key":"${SECRET_PLACEHOLDER}",${JSON.stringify(message).slice(1)}` };
    },
};

/** Events about one investigation are one alert, and so are those that tell about one exporter. */
function dedupKey({ kind, id, body }: FormatEvent): string {
    const subject = isNoticeKind(kind) ? body.exporterId : body.investigationId;
    return typeof subject === 'string' ? subject : id;
}

/** What is sent in place of a body that is too large for a receiver; null for a body that is not. */
function omission({ id, text }: FormatEvent, max: number, receiver: string): object | null {
    const bytes = Buffer.byteLength(text);
    return bytes <= max ? null : { event_id: id, omitted: `The body has ${bytes} bytes, more than ${receiver} takes` };
}

/** An event of Splunk's HTTP Event Collector, for its endpoint `/services/collector/event`. */
export const splunkHec: Format = {
    name: 'splunk-hec',
    contentType: JSON_TYPE,
    make(event, { vendor }) {
        const { time, host } = summaryOf(event);
        const envelope = JSON.stringify({
            time: time.getTime() / 1000,
            ...(host !== null && { host }),
            source: vendor,
            sourcetype: '_json',
            fields: { event_kind: event.kind, event_id: event.id },
        });
        return { body: `${envelope.slice(0, -1)},"event":${event.text}}` };
    },
};

/** A call of the Logs Ingestion API has 1 MB at most; this leaves room for the other columns. */
const SENTINEL_BODY_BYTES = 900 * 1024;
const SENTINEL_TEXT = 8192;

/** Rows of the Logs Ingestion API of Azure Monitor, which Microsoft Sentinel reads: a list of one, whose columns have no reserved name. */
export const sentinel: Format = {
    name: 'sentinel',
    contentType: JSON_TYPE,
    make(event) {
        const { time, title, severity, host, link } = summaryOf(event);
        const row = JSON.stringify({
            TimeGenerated: time.toISOString(),
            EventKind: event.kind,
            EventId: event.id,
            EventTitle: truncated(title, SENTINEL_TEXT),
            EventSeverity: severity,
            EventHost: truncated(host ?? '', SENTINEL_TEXT),
            EventLink: link ?? '',
        });
        const omitted = omission(event, SENTINEL_BODY_BYTES, 'Azure Monitor');
        return { body: `[${row.slice(0, -1)},"EventBody":${omitted === null ? event.text : JSON.stringify(omitted)}}]` };
    },
};
