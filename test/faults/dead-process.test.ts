import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import t, { type Test } from 'tap';
import { ScanwireError } from '../../lib/errors.ts';
import { ownBoot, ownIdentity } from '../../lib/process-identity.ts';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import { fullWindow, simulatedDeployment } from '../support/simulated-deployment.ts';

async function busy(t: Test) {
    const deployment = simulatedDeployment(t);
    return { deployment, first: await fullWindow(t, deployment) };
}

t.test('a process that dies gives its claims back within 10 s', async (t) => {
    const { deployment, first } = await busy(t);
    await deployment.start('second');
    first.kill();
    const diedAt = deployment.now();
    await deployment.advance(5_000);
    t.strictSame(await deployment.states(), { pending: 10, sending: 50 }, 'it might only be slow');
    await deployment.advance(5_500);
    t.strictSame(await deployment.states(), { delivered: 60 });
    const again = deployment.posts.filter(({ by }) => by === 'second');
    t.equal(again.length, 60);
    t.ok((again[0]?.at ?? 0) - diedAt <= 10_000);
});

t.test('also where the store refuses a statement of the others now and then', async (t) => {
    const { deployment, first } = await busy(t);
    const { deliveries } = deployment.stores;
    const { dispatch } = deliveries;
    let refusedAt = Number.NEGATIVE_INFINITY;
    Object.assign(deliveries, {
        dispatch: async (...options: Parameters<typeof dispatch>) => {
            if (deployment.now() - refusedAt >= 4_000) {
                refusedAt = deployment.now();
                throw new ScanwireError('UNAVAILABLE', 'The pool gave no connection in time');
            }
            return await dispatch(...options);
        },
    });
    await deployment.start('second');
    first.kill();
    await deployment.advance(12_500);
    t.strictSame(await deployment.states(), { delivered: 60 });
});

t.test('a session that is kept alive keeps its claims, as long as they hold', async (t) => {
    const { deployment } = await busy(t);
    await deployment.start('second');
    await deployment.advance(30_000);
    t.strictSame(await deployment.states(), { delivered: 60 });
    t.equal(deployment.posts.length, 60);
});

t.test('the session of a process of this machine that has ended is ended by the next start', async (t) => {
    const { deployment, first } = await busy(t);
    const { deliveries } = deployment.stores;
    const [session] = (await deliveries.sessions()) as [Session];
    t.match(JSON.parse(session.process), { ...ownIdentity(), machine: String });

    // The first process is this one; to end it, another one takes its name.
    const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
    t.teardown(() => child.kill('SIGKILL'));
    await once(child, 'spawn');
    const identity = { pid: child.pid, started: '', machine: JSON.parse(session.process).machine };
    first.kill();
    await deliveries.keepAlive({ id: session.id, process: JSON.stringify(identity), slots: session.slots }, 3_600_000);

    const bystander = await deployment.start('bystander');
    await deployment.advance(2_000);
    t.match(await deployment.states(), { sending: 50 }, 'it still runs');
    await deployment.finish(bystander.close());

    child.kill('SIGKILL');
    await once(child, 'exit');
    await deployment.start('next');
    t.notOk((await deliveries.sessions()).some(({ id }) => id === session.id));
    await deployment.advance(4_000);
    t.strictSame(await deployment.states(), { delivered: 60 });
});

t.test('the sessions of other machines, and what cannot be read, are left to end by themselves', async (t) => {
    const deployment = simulatedDeployment(t);
    const { deliveries } = deployment.stores;
    const others = [JSON.stringify({ pid: 2 ** 22 + 1, started: 'x', machine: 'another' }), 'nonsense', '{}', 'null'];
    for (const [index, process] of others.entries()) {
        await deliveries.keepAlive({ id: `other ${index}`, process, slots: {} }, 7_500);
    }
    await deployment.start('next');
    t.equal((await deliveries.sessions()).length, 5);
    await deployment.advance(7_500);
    t.equal((await deliveries.sessions()).length, 1);
});

t.test('the sessions of live processes of another machine of the same name are left to them', async (t) => {
    const { deployment, first } = await busy(t);
    const { deliveries } = deployment.stores;
    const [session] = (await deliveries.sessions()) as [Session];
    const { machine } = JSON.parse(session.process);
    first.kill();

    // No process of this machine has this id, and one of the other machine has.
    const boot = '00000000-0000-4000-8000-000000000000';
    const elsewhere = { pid: 2 ** 22 + 1, started: `${boot}/1`, machine: machine.replace(ownBoot(), boot) };
    const byItsName = { ...elsewhere, machine: `${hostname()} ${readlinkSync('/proc/self/ns/pid')}` };
    await deliveries.keepAlive({ id: session.id, process: JSON.stringify(elsewhere), slots: session.slots }, 3_600_000);
    await deliveries.keepAlive({ id: 'of an earlier version', process: JSON.stringify(byItsName), slots: {} }, 3_600_000);
    await deployment.start('here');
    await deployment.advance(4_000);
    t.equal((await deliveries.sessions()).length, 3);
    t.strictSame(
        deployment.posts.filter(({ by }) => by === 'here'),
        [],
    );
});

t.test('a stop ends its own session, after what is in flight', async (t) => {
    const { deployment, first } = await busy(t);
    const second = await deployment.start('second');
    const closed = first.close();
    await deployment.advance(5_000);
    t.equal((await deployment.stores.deliveries.sessions()).length, 2);
    await deployment.finish(closed);
    t.equal((await deployment.stores.deliveries.sessions()).length, 1);
    await deployment.advance(30_000);
    t.strictSame(await deployment.states(), { delivered: 60 });
    t.equal(deployment.posts.length, 60, 'nothing is repeated');
    await deployment.finish(second.close());
    t.strictSame(await deployment.stores.deliveries.sessions(), []);
});
