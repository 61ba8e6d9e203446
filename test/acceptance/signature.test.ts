import { execFileSync } from 'node:child_process';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { usedDataOf } from '../support/served.ts';
import { json, type Message, receiver, serve } from './support/processes.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

interface Created {
    readonly id: string;
    readonly secret: string;
}

const SAMPLE = new URL('../../../fixtures/events/investigation.json', import.meta.url).pathname;

t.test('signs so that other programs verify it', async (t) => {
    const folder = temporaryFolder(t);
    const data = await usedDataOf(t);
    const env = { SCANWIRE_EGRESS_ALLOW: '127.0.0.1/32' };
    const to = await receiver(t, folder);
    await serve(t, data, { env });
    const create = (...args: string[]) => json<Created>(['exporters', 'create', '--url', to.url, '--start', '--data', data, ...args]);
    const last = (kind: string): Message | undefined => to.messages().findLast(({ headers }) => headers['x-vendor-event'] === kind);

    const plain = await create('--header', 'Authorization: Bearer abc', '--name', 'plain');
    await until(() => last('test') !== undefined);
    t.match(JSON.parse(decoded(last('test')).toString()), { webhook_id: plain.id, webhook_name: 'plain' });

    const { eventId, deliveries } = await json<{ eventId: string; deliveries: string[] }>([
        ...['events', 'publish', 'idr_investigation_created', SAMPLE, '--data', data],
    ]);
    t.equal(deliveries.length, 1);
    await until(() => last('idr_investigation_created') !== undefined);
    const message = last('idr_investigation_created');
    t.equal(message?.headers['x-vendor-signature'], opensslHmac(decoded(message), plain.secret));
    t.equal(message?.method, 'POST');
    t.equal(message?.url, '/hook?of=test');
    t.match(message?.headers, {
        'content-type': 'application/json; charset=UTF-8',
        'content-length': String(decoded(message).length),
        'user-agent': 'Vendor Webhook Data Exporter',
        authorization: 'Bearer abc',
    });

    await json(['exporters', 'remove', plain.id, '--data', data]);
    const standard = await create('--signature', 'standard-webhooks', '--name', 'standard');
    await json(['events', 'publish', 'idr_investigation_created', SAMPLE, '--data', data]);
    await until(() => last('idr_investigation_created')?.headers['webhook-id'] !== undefined);
    const signed = last('idr_investigation_created');
    t.not(signed?.headers['webhook-id'], eventId);
    t.doesNotThrow(() => new Webhook(standard.secret).verify(decoded(signed).toString(), signed?.headers ?? {}));
    t.throws(() => new Webhook(standard.secret).verify(`${decoded(signed)} `, signed?.headers ?? {}));
});

function decoded(message: Message | undefined): Buffer {
    return Buffer.from(message?.body ?? '', 'base64');
}

/** As a receiver's shell script would compute it. */
function opensslHmac(body: Buffer, secret: string): string {
    return execFileSync('openssl', ['dgst', '-sha256', '-hmac', secret, '-binary'], { input: body }).toString('base64');
}
