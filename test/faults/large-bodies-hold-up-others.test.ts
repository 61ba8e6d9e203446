import { randomBytes } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';

const LARGEST = 65_536;
const LARGE = LARGEST / 2;
const LIMIT = 64 * LARGEST;

/** A receiver that answers small bodies at once, and large ones when it is told to. */
async function receiver(t: Test) {
    const large: ServerResponse[] = [];
    let small = 0;
    let answers = false;
    const server = createServer((request, response) => {
        request.resume().on('end', () => {
            if (!answers && Number(request.headers['content-length']) >= LARGE) {
                large.push(response);
            } else {
                small += 1;
                response.writeHead(204).end();
            }
        });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        /** How many large bodies came that it has not answered. */
        unanswered: () => large.length,
        answered: () => small,
        answer(): void {
            answers = true;
            for (const response of large.splice(0)) {
                response.writeHead(204).end();
            }
        },
    };
}

/** Large events go to exporters that are not legacy, small ones to those that are. */
async function sending(t: Test) {
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const queue = memoryQueue();
    const body = Joi.object({ text: Joi.string() });
    const exporter = webhooks({
        ...memoryWebhooks(),
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard, attemptTimeout: 30_000 }),
        maxBodyBytes: LARGEST,
        maxBytesInFlight: LIMIT,
        kinds: [
            { name: 'large', schema: body, types: () => ['investigation'] },
            { name: 'small', schema: body, types: () => ['investigation_legacy'] },
        ],
    });
    await exporter.start();
    await exporter.work(['default']);
    t.teardown(async () => {
        await exporter.close();
        await queue.close();
    });
    return {
        exporter,
        async receiver(legacy: boolean) {
            const made = await receiver(t);
            const { exporter: created } = await exporter.exporters.create({ url: made.url, legacy });
            await exporter.exporters.start(created.id);
            await until(() => made.answered() === 1);
            return made;
        },
    };
}

/** More than one exporter may hold at once. */
const EVENTS = 80;

for (const neighbours of [1, 2, 5]) {
    t.test(`large bodies of ${neighbours} that do not answer hold up no other exporter`, async (t) => {
        const { exporter, receiver } = await sending(t);
        const quick = await receiver(true);
        const slow: Awaited<ReturnType<typeof receiver>>[] = [];
        while (slow.length < neighbours) {
            slow.push(await receiver(false));
        }

        await Promise.all(Array.from({ length: EVENTS }, () => exporter.publish('large', { text: 'x'.repeat(LARGE) })));
        await until(() => slow.every((one) => one.unanswered() > 0));
        for (let count = 1; count <= 50; count += 1) {
            await exporter.publish('small', { text: 'x' });
            // One after the other: each needs room that the slow ones might have taken meanwhile.
            await until(() => quick.answered() === 1 + count, 20_000);
        }
        const held = slow.reduce((sum, one) => sum + one.unanswered(), 0);
        t.ok(held * LARGE <= LIMIT, `${held} large bodies are held`);
        t.equal(quick.answered(), 51);

        for (const one of slow) {
            one.answer();
        }
        await until(
            async () =>
                (await exporter.deliveries.list({ state: 'delivered', limit: 1_000 })).length === 1 + neighbours + EVENTS * neighbours + 50,
        );
        t.pass('all of them arrive');
    });
}
