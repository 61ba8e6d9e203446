import { randomUUID } from 'node:crypto';
import t from 'tap';
import { sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import type { Claim } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryContent } from '../../../../lib/webhooks/events/new-event.ts';
import { type Format, formatTable, lackingFormat } from '../../../../lib/webhooks/formats/format.ts';
import type { FormattedMessage } from '../../../../lib/webhooks/messages/formatted-message.ts';
import { vendorNamed } from '../../../../lib/webhooks/messages/signature.ts';
import { type Outcome, unsentOutcome } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { byteBudget } from '../../../../lib/webhooks/sending/byte-budget.ts';
import { lateMessages } from '../../../../lib/webhooks/sending/late-messages.ts';

const BODY = JSON.stringify({ title: 'é'.repeat(80_000) });
const BYTES = Buffer.byteLength(BODY);
/** Says everything twice. */
const TWICE: Format = { name: 'twice', contentType: 'text/plain', make: ({ text }) => ({ body: text + text }) };
const UNMADE: FormattedMessage = {
    contentType: 'application/json',
    headers: [],
    body: '',
    failure: `Format twice: ${lackingFormat('twice')}`,
};

const exporter = sampleExporter({ format: 'twice' });
const event = { id: randomUUID(), kind: 'note', body: BODY, createdAt: new Date(0) };
const claim: Claim = {
    deliveryId: randomUUID(),
    token: 'token',
    claimedAt: new Date(1_000),
    attempt: 1,
    attemptSinceReplay: 1,
    singleAttempt: false,
    event: { ...event, body: '' },
    message: UNMADE,
    exporter,
    generation: 1,
};

const CONTENT: DeliveryContent = { exporterId: exporter.id, event: { ...event, erasedAt: null }, message: UNMADE };

/** The late messages of a process, and what they hold and rest. */
function process(keep: (message: FormattedMessage) => Promise<FormattedMessage | null>, content: DeliveryContent | null = CONTENT) {
    const bodyMemory = byteBudget({ limit: 10 * BYTES, largest: BYTES });
    const seen: (readonly [what: string, bytes: number])[] = [];
    const see = (what: string): void => {
        seen.push([what, bodyMemory.bytesOf(exporter.id)]);
    };
    type Context = Parameters<typeof lateMessages>[0];
    const late = lateMessages({
        deliveries: {
            content: async () => content,
            messages: {
                keep: (_, message) => {
                    see('keep');
                    return keep(message);
                },
            },
        } as Partial<Context['deliveries']> as Context['deliveries'],
        formats: formatTable([TWICE]),
        vendor: vendorNamed('Acme'),
        maxBodyBytes: BYTES,
        bodyMemory,
        sleep: async (milliseconds) => see(`rest of ${milliseconds} ms`),
        onError: () => undefined,
        onWarning: (message) => t.fail(message),
    });
    return { late, see, seen, bodyMemory };
}

const DELIVERED: Outcome = unsentOutcome({ code: 'delivered', status: 204, detail: 'Answered 204', retryAfter: null });

t.test('what is loaded and made is on the account of the exporter until the attempt has ended', async (t) => {
    const { late, see, seen, bodyMemory } = process(async (message) => message);
    const outcome = await late.attempted(claim, async ({ message, event: { body } }) => {
        see(`attempt with ${Buffer.byteLength((message?.body ?? '') + body)} bytes`);
        return DELIVERED;
    });
    t.equal(outcome, DELIVERED);
    t.strictSame(seen, [
        ['rest of 2 ms', BYTES],
        ['keep', 3 * BYTES],
        ['rest of 4 ms', 2 * BYTES],
        [`attempt with ${2 * BYTES} bytes`, 2 * BYTES],
    ]);
    t.equal(bodyMemory.bytesOf(exporter.id), 0);
});

t.test('it is given back where nothing is sent', async (t) => {
    const { late, bodyMemory } = process(async () => {
        throw new Error('no');
    });
    const { code } = await late.attempted(claim, async () => DELIVERED);
    t.strictSame([code, bodyMemory.bytesOf(exporter.id)], ['interrupted', 0]);

    const sending = process(async (message) => message);
    await t.rejects(
        sending.late.attempted(claim, async () => {
            throw new Error('The sender has failed');
        }),
        'The sender has failed',
    );
    t.equal(sending.bodyMemory.bytesOf(exporter.id), 0);
});

t.test('nothing is made of an event that is not there any more', async (t) => {
    const erased = { ...CONTENT, event: { ...CONTENT.event, body: '', erasedAt: new Date(9) }, message: null };
    for (const [content, detail] of [
        [erased, 'The body of the event was erased during the attempt'],
        [null, lackingFormat('twice')],
    ] as const) {
        const { late, seen } = process(async (message) => message, content);
        t.match(await late.attempted(claim, async () => DELIVERED), { code: 'interrupted', detail });
        t.strictSame(seen, []);
    }
});

t.test('what needs no making is sent as it is', async (t) => {
    const { late, seen } = process(async (message) => message);
    const made = { ...claim, message: { ...UNMADE, body: 'x', failure: null } };
    await late.attempted(made, async (given) => {
        t.equal(given, made);
        return DELIVERED;
    });
    t.strictSame(seen, []);
});
