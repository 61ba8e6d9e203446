import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { egressGuard } from '../../lib/egress/guard.ts';
import type { OutcomeCode } from '../../lib/webhooks/outcomes/outcome.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { answers, receiver } from '../support/bad-receiver.ts';
import { nameServer } from '../support/name-server.ts';

/** More than the system's resolver is asked for at once, and no more than a name server can hear at once. */
const NEIGHBOURS = 100;

t.test('a receiver whose name is answered gets all, beside many whose name servers never answer', async (t) => {
    // Closes each connection, so that each message needs its name anew.
    const target = await receiver(answers('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'));
    t.teardown(() => target.close());
    const names = await nameServer((name) => (name === 'healthy.test' ? ['127.0.0.1'] : 'silent'), 0);
    t.teardown(() => names.close());
    const sender = httpSender({
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        nameServers: [names.address],
        dnsTimeout: 2_000,
    });
    t.teardown(() => sender.close());
    const sent = async (host: string): Promise<OutcomeCode> => {
        const url = `http://${host}:${target.port}/`;
        return (await sender.send({ exporterId: host, url, trust: 'strict', headers: [], body: Buffer.from('{}') })).code;
    };

    for (const round of ['that nobody knows yet', 'that were silent before']) {
        const silent = Array.from({ length: NEIGHBOURS }, (_, index) => sent(`silent-${index}.test`));
        for (let message = 0; message < 20; message += 1) {
            t.equal(await sent('healthy.test'), 'delivered', `beside names ${round}`);
        }
        t.equal(new Set(names.questions).size, 2 * NEIGHBOURS + 2, 'all of which are asked for');
        t.strictSame(new Set(await Promise.all(silent)), new Set(['dns_timeout']));
    }
});

/** As many look-ups as go on at once where each may hold a thread, and some more. */
const MORE_THAN_PLACES = 100;

t.test('a receiver whose name the system finds gets all, beside more names than there are places that it looks for in vain', async (t) => {
    const target = await receiver(answers('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n'));
    t.teardown(() => target.close());
    const giveUp: (() => void)[] = [];
    const sender = httpSender({
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        dnsTimeout: 500,
        lookup: (name, _options, done) => {
            if (name === 'healthy.test') {
                done(null, [{ address: '127.0.0.1' }]);
            } else {
                giveUp.push(() => done(Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' }), []));
            }
        },
    });
    t.teardown(() => sender.close());
    const sent = async (host: string): Promise<OutcomeCode> => {
        const url = `http://${host}:${target.port}/`;
        return (await sender.send({ exporterId: host, url, trust: 'strict', headers: [], body: Buffer.from('{}') })).code;
    };
    const besides = async (from: number, to: number): Promise<ReadonlySet<OutcomeCode>> => {
        const silent = Array.from({ length: to - from }, (_, index) => sent(`silent-${from + index}.test`));
        for (let message = 0; message < 20; message += 1) {
            t.equal(await sent('healthy.test'), 'delivered', `beside ${to - from} names`);
        }
        const outcomes = new Set(await Promise.all(silent));
        for (const end of giveUp.splice(0)) {
            end();
        }
        await setImmediate();
        return outcomes;
    };

    const half = MORE_THAN_PLACES / 2;
    t.strictSame(await besides(0, half), new Set(['dns_timeout']));
    t.strictSame(await besides(half, MORE_THAN_PLACES), new Set(['dns_timeout']));
    t.strictSame(
        await besides(0, MORE_THAN_PLACES),
        new Set(['dns_timeout', 'interrupted']),
        'those that were silent have half of the places',
    );
});
