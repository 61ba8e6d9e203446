import { randomBytes } from 'node:crypto';
import t from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { ConnectionFailure } from '../../lib/egress/connection-code.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { AttemptFailure } from '../../lib/webhooks/outcomes/outcome.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const MINUTE = 60_000;

const fail = (error: unknown) => (): never => {
    throw error;
};

for (const [what, failing] of Object.entries<() => unknown>({
    'an error of its own': fail(new Error('The key service cannot be reached')),
    'an error with a code': fail(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })),
    'what is no error': fail('no'),
    'an error of ours for input that is wrong': fail(new ScanwireError('INVALID_INPUT', 'context is required')),
    'an error of ours for a text that it cannot open': fail(new ScanwireError('UNSEALABLE', 'Not with this key')),
    'a failure of an attempt': fail(new AttemptFailure('invalid_exporter', 'no')),
    'a failure of a connection': fail(new ConnectionFailure('address_blocked', 'no')),
    'no text': () => undefined,
    'a promise': async () => 'secret',
})) {
    t.test(`a key ring of the application that gives ${what} costs a delivery no try`, async (t) => {
        const deployment = simulatedDeployment(t);
        const own = keyRing({ current: 'k', keys: { k: randomBytes(32) } });
        let isDown = false;
        let failed = 0;
        const ring = {
            ...own,
            open(sealed: string, context: string): string {
                failed += isDown ? 1 : 0;
                return isDown ? (failing() as string) : own.open(sealed, context);
            },
        };
        const host = await deployment.start('host', { keyRing: ring });
        const exporter = await deployment.exporter(host);
        await deployment.finish(host.exporters.update(exporter, { headers: [['X-Token', 'sealed']] }));
        host.kill();
        const process = await deployment.start('worker', { keyRing: ring });
        isDown = true;
        await deployment.publish(process, 1);
        await deployment.advance(MINUTE);
        t.ok(failed > 0);
        t.strictSame((await deployment.states()).exhausted ?? 0, 0, 'nothing ends');
        isDown = false;
        await deployment.advance(30 * MINUTE);
        t.strictSame(await deployment.states(), { delivered: 1 });
        const [one] = await process.deliveries.list({ exporterId: exporter });
        const { history } = await process.deliveries.show(present(one).id);
        const codes = new Set(history.slice(0, -1).map(({ outcome }) => outcome?.code));
        t.strictSame([...codes], ['interrupted'], 'which uses up no try');
        t.match(await process.exporters.get(exporter), { state: 'running', consecutiveFailures: 0 });
    });
}
