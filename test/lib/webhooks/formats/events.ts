import { eventBody } from '../../../../lib/webhooks/events/event-body.ts';
import { investigationCreated } from '../../../../lib/webhooks/events/event-kinds.ts';
import { type FormatEvent, type FormatterResult, formatEvent, formatTable, formatterOf } from '../../../../lib/webhooks/formats/format.ts';

/* Events that formats are tried with. */

export const ID = '018f3f3e-7a51-7c1e-9f0a-2f8a6f6f0001';

interface Investigation {
    readonly timestamp: string;
    readonly title: string;
    readonly description?: string;
    readonly link: string;
    readonly investigationId: string;
    readonly investigationRrn: string;
    readonly actors: {
        readonly users: readonly Readonly<Record<string, string>>[];
        readonly assets: readonly Readonly<Record<string, string>>[];
    };
}

export const fullInvestigation: Investigation = {
    timestamp: '2026-11-21T09:30:00.500Z',
    title: 'Suspicious <sign-in> & more',
    description: 'From two countries.\nWithin an hour: "Ann" 😀',
    link: 'https://example.com/i/1?a=1&b=2',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: {
        users: [
            { name: 'Ann', distinguishedName: 'CN=Ann,DC=example,DC=com', link: 'https://example.com/u/1', emails: 'ann@example.com' },
            { name: 'Bob', link: 'https://example.com/u/2', emails: 'bob@example.com,b@example.com' },
        ],
        assets: [{ hostname: 'db1', fqdn: 'db1.example.com', shortname: 'db1', link: 'https://example.com/a/1' }],
    },
};

export const smallInvestigation: Investigation = {
    timestamp: '2026-11-21T09:30:00.500Z',
    title: 'Small',
    link: 'https://example.com/i/2',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0ab',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABD',
    actors: { users: [], assets: [] },
};

export const testBody = {
    timestamp: '2026-11-21T09:30:00.000Z',
    webhook_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
    webhook_name: 'SOC channel',
};

/** As it is accepted: an investigation in the bytes of the specification. */
export function eventOf(body: object, kind: string = investigationCreated.name): FormatEvent {
    const text = kind === investigationCreated.name ? eventBody(investigationCreated, body) : JSON.stringify(body);
    return formatEvent({ kind, id: ID, time: new Date('2026-11-21T09:30:01.234Z'), text });
}

const formats = formatTable();

export function made(format: string, event: FormatEvent, template: unknown = null): FormatterResult {
    return formatterOf(formats, { format, template }, 'Acme')(event);
}
