import t from 'tap';
import { eventBody } from '../../../../lib/webhooks/events/event-body.ts';
import { investigationCreated } from '../../../../lib/webhooks/events/event-kinds.ts';
import { formatEvent, formatTable } from '../../../../lib/webhooks/formats/format.ts';
import { messageMaker } from '../../../../lib/webhooks/messages/formatted-message.ts';
import { vendorNamed } from '../../../../lib/webhooks/messages/signature.ts';

const formats = formatTable();
const investigation = {
    timestamp: '2026-11-21T09:30:00Z',
    title: 'x',
    link: 'l',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:a:b',
};

/** Investigations of about as many bytes: of long texts, and of many small items. */
const largest: Readonly<Record<string, (bytes: number) => unknown>> = {
    title: (bytes) => ({ ...investigation, title: 'x'.repeat(bytes - 300), actors: { users: [], assets: [] } }),
    description: (bytes) => ({ ...investigation, description: '"'.repeat(bytes / 2 - 300), actors: { users: [], assets: [] } }),
    assets: (bytes) => {
        const assets = Array.from({ length: (bytes - 300) / 44 }, () => ({ hostname: 'h', shortname: 'h', link: 'l' }));
        return { ...investigation, actors: { users: [], assets } };
    },
    users: (bytes) => {
        const users = Array.from({ length: (bytes - 300) / 80 }, () => ({ name: 'u', distinguishedName: 'd', link: 'l', emails: 'e' }));
        return { ...investigation, actors: { users, assets: [] } };
    },
};

t.test('makes a message of every body that is accepted, in every format without a template', (t) => {
    for (const maxBodyBytes of [1_000, 1_048_576]) {
        for (const [name, bodyOf] of Object.entries(largest)) {
            const text = eventBody(investigationCreated, bodyOf(maxBodyBytes), maxBodyBytes);
            const event = formatEvent({
                kind: investigationCreated.name,
                id: '018f3f3e-7a51-7c1e-9f0a-2f8a6f6f0001',
                time: new Date(0),
                text,
            });
            for (const format of [...formats.keys()].filter((format) => format !== 'template')) {
                const message = messageMaker({ format, template: null }, { formats, vendor: vendorNamed('Acme'), maxBodyBytes })(event);
                t.equal(message?.failure ?? null, null, `${format} of a long ${name}, ${text.length} bytes`);
            }
        }
    }
    t.end();
});
