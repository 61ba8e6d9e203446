import t, { type Test } from 'tap';
import { ScanwireError } from '../../lib/errors.ts';
import type { Format } from '../../lib/webhooks/formats/format.ts';
import { SECRET_PLACEHOLDER } from '../../lib/webhooks/formats/format-secret.ts';
import type { MessageStore } from '../../lib/webhooks/messages/formatted-message.ts';
import { type SimulatedDeployment, simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;
const SECRET = 'k-0123456789';

/** A version of the format: what it makes tells which one. */
function line(version: string): Format {
    return {
        name: 'line',
        contentType: 'application/json',
        secret: { name: 'key', pattern: /^k-/, rule: 'must begin with k-' },
        make: ({ body }) => ({ body: `{"title":"${version} of ${(body as { title: string }).title} with ${SECRET_PLACEHOLDER}"}` }),
    };
}

/** An event for an exporter of that format, which a process has accepted that has no such format; no process is left. */
async function accepted(t: Test) {
    const deployment = simulatedDeployment(t);
    const having = await deployment.start('having', { formats: [line('none')] });
    const id = await deployment.exporter(having);
    await deployment.finish(having.exporters.update(id, { format: 'line', formatSecret: SECRET }));
    await deployment.finish(having.close());
    const lacking = await deployment.start('lacking', { onWarning: () => undefined });
    const [delivery = ''] = await deployment.publish(lacking, 1);
    await deployment.finish(lacking.close());
    return { deployment, delivery };
}

/** Changes how the store keeps what is made afterwards; processes that start from now on find it so. */
function keeping({ stores: { deliveries } }: SimulatedDeployment, change: (keep: MessageStore['keep']) => MessageStore['keep']): void {
    const keep = deliveries.messages?.keep as MessageStore['keep'];
    Object.assign(deliveries, { messages: { keep: change(keep) } });
}

t.test('every try sends the same bytes, whatever version of the format is there by then', async (t) => {
    const { deployment } = await accepted(t);
    deployment.receive = () => ({ result: 500 });
    const first = await deployment.start('first', { formats: [line('1st')] });
    await deployment.advance(4 * SECOND);
    await deployment.finish(first.close());
    deployment.receive = () => ({ result: 204 });
    await deployment.start('second', { formats: [line('2nd')] });
    await deployment.advance(60 * SECOND);
    t.match(deployment.posts, [
        { by: 'first', title: `1st of 1 with ${SECRET}` },
        { by: 'second', title: `1st of 1 with ${SECRET}` },
    ]);
});

t.test('what was sent is shown, and its secret is not stored', async (t) => {
    const { deployment, delivery } = await accepted(t);
    const process = await deployment.start('only', { formats: [line('1st')] });
    await deployment.advance(60 * SECOND);
    t.strictSame(await deployment.states(), { delivered: 1 });
    t.match(await process.deliveries.message(delivery), { body: '{"title":"1st of 1 with ********"}', failure: null });
    const content = await deployment.stores.deliveries.content?.(delivery);
    t.equal(content?.message?.body, `{"title":"1st of 1 with ${SECRET_PLACEHOLDER}"}`);
});

t.test('where two make it at once, both send what the first has kept', async (t) => {
    const { deployment } = await accepted(t);
    keeping(deployment, (keep) => async (delivery, message, unmade) => {
        await keep(delivery, { ...message, body: message.body.replace('1st', 'another') }, unmade);
        return await keep(delivery, message, unmade);
    });
    await deployment.start('only', { formats: [line('1st')] });
    await deployment.advance(60 * SECOND);
    t.match(deployment.posts, [{ title: `another of 1 with ${SECRET}` }]);
});

t.test('nothing is sent before it is kept, which is no fault of the receiver', async (t) => {
    const { deployment, delivery } = await accepted(t);
    let away = true;
    keeping(deployment, (keep) => async (...given) => {
        if (away) {
            throw new ScanwireError('UNAVAILABLE', 'It is not kept');
        }
        return await keep(...given);
    });
    const process = await deployment.start('only', { formats: [line('1st')] });
    await deployment.advance(20 * SECOND);
    t.equal(deployment.posts.length, 0);
    const { history } = await process.deliveries.show(delivery);
    t.match(history.at(-1), { outcome: { code: 'interrupted', detail: 'The message could not be kept: It is not kept' } });
    t.ok(history.length < 8, 'the tries are further and further apart');

    away = false;
    await deployment.advance(60 * SECOND);
    t.strictSame(await deployment.states(), { delivered: 1 });
});

t.test('a message that no store can keep is given up, and can be replayed', async (t) => {
    const { deployment, delivery } = await accepted(t);
    keeping(deployment, () => async () => {
        throw new ScanwireError('INVALID_INPUT', 'A text has a character that no text has');
    });
    const process = await deployment.start('only', { formats: [line('1st')] });
    await deployment.advance(20 * SECOND);
    t.strictSame([await deployment.states(), deployment.posts.length], [{ exhausted: 1 }, 0]);
    const { history } = await process.deliveries.show(delivery);
    t.match(history, [{ outcome: { code: 'invalid_message', detail: /cannot be stored: A text has a character/ } }]);
});

t.test('a message of an event whose body was erased meanwhile is not sent', async (t) => {
    const { deployment, delivery } = await accepted(t);
    keeping(deployment, (keep) => async (...given) => {
        const { eventId } = (await deployment.stores.deliveries.get(delivery)) as { eventId: string };
        await deployment.stores.deliveries.erase(eventId);
        return await keep(...given);
    });
    await deployment.start('only', { formats: [line('1st')] });
    await deployment.advance(60 * SECOND);
    t.strictSame([await deployment.states(), deployment.posts.length], [{ erased: 1 }, 0]);
});

t.test('over a store that keeps nothing afterwards each try makes it anew', async (t) => {
    const { deployment } = await accepted(t);
    Object.assign(deployment.stores.deliveries, { messages: undefined });
    await deployment.start('only', { formats: [line('1st')] });
    await deployment.advance(60 * SECOND);
    t.match(deployment.posts, [{ title: `1st of 1 with ${SECRET}` }]);
    t.strictSame(await deployment.states(), { delivered: 1 });
});
