import { execFileSync } from 'node:child_process';
import dns from 'node:dns';
import { closeSync, constants, openSync } from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mock } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { nameResolver, nameServersAnswer, type Resolve, type ResolverOptions } from '../../../lib/egress/resolver.ts';
import { type NameServerBehaviour, nameServer } from '../../support/name-server.ts';

const forever = new AbortController().signal;

async function asking(
    t: Test,
    behaviour: (name: string, type: 'A' | 'AAAA') => NameServerBehaviour,
    { ttl, ...options }: Partial<ResolverOptions> & { readonly ttl?: number } = {},
): Promise<{ resolve: Resolve; questions: readonly string[] }> {
    const server = await nameServer(behaviour, ttl);
    t.teardown(server.close);
    const hostsFile = join(t.testdir(), 'hosts');
    const resolve = nameResolver({ timeout: LIMIT, maxPending: 8, nameServers: [server.address], hostsFile, ...options });
    return { resolve, questions: server.questions };
}

/** The limit of a resolver, which passes when the test says so: what a name server is asked meanwhile is answered however busy the machine is. */
function heldTime(t: Test) {
    let now = 0;
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    return {
        monotonic: () => now,
        /** Lets the time of all be over of whom a name server has been asked so often. */
        async over(questions: readonly string[], count: number): Promise<void> {
            while (questions.length < count) {
                await setImmediate();
            }
            now += LIMIT;
            mock.timers.tick(LIMIT);
            // Whoever waits is told at once; the place is free when the question has been called off.
            await setImmediate();
        },
    };
}

/** Milliseconds in which a name of {@link asking} must be resolved. */
const LIMIT = 2_000;

t.test('gives the addresses of both families', async (t) => {
    const { resolve, questions } = await asking(t, () => ['192.0.2.1', '192.0.2.2', '2001:db8::1']);
    t.strictSame(await resolve('receiver.example', forever), ['192.0.2.1', '192.0.2.2', '2001:db8::1']);
    t.strictSame([...questions].sort(), ['A receiver.example', 'AAAA receiver.example']);
});

t.test('asks again only when the answer has aged as the server said', async (t) => {
    const kept = await asking(t, () => ['192.0.2.1'], { ttl: 3600 });
    await kept.resolve('receiver.example', forever);
    await kept.resolve('receiver.example', forever);
    t.equal(kept.questions.length, 2, 'one for each family');

    const { resolve, questions } = await asking(t, () => ['192.0.2.1'], { ttl: 0 });
    await resolve('receiver.example', forever);
    await resolve('receiver.example', forever);
    t.equal(questions.length, 4);
});

t.test('keeps the answers for so many names only, the last ones', async (t) => {
    const { resolve, questions } = await asking(t, () => ['192.0.2.1'], { ttl: 3600, maxKept: 2 });
    for (const name of ['a.example', 'b.example', 'c.example', 'b.example', 'c.example', 'a.example']) {
        await resolve(name, forever);
    }
    t.strictSame(
        questions.filter((question) => question.startsWith('A ')),
        ['A a.example', 'A b.example', 'A c.example', 'A a.example'],
    );
});

t.test('asks once for all who want a name at the same time', async (t) => {
    const { resolve, questions } = await asking(t, () => ['192.0.2.1'], { ttl: 0 });
    await Promise.all(Array.from({ length: 50 }, () => resolve('receiver.example', forever)));
    t.equal(questions.length, 2);
});

t.test('goes with one family when the other has no addresses or no answer', async (t) => {
    for (const other of [[], 'fails', 'silent', 'refuses', 'garbage', 'truncates'] as const) {
        const { resolve } = await asking(t, (_name, type) => (type === 'A' ? ['192.0.2.1'] : other));
        t.strictSame(await resolve('receiver.example', forever), ['192.0.2.1'], String(other));
    }
});

t.test('says why a name has no address', async (t) => {
    const reasons: readonly (readonly [NameServerBehaviour, string])[] = [
        ['unknown', 'dns_not_found'],
        [[], 'dns_not_found'],
        ['fails', 'dns_failed'],
        ['refuses', 'dns_failed'],
        ['truncates', 'dns_failed'],
        ['silent', 'dns_timeout'],
    ];
    for (const [behaviour, code] of reasons) {
        const { resolve } = await asking(t, () => behaviour, { timeout: 500 });
        await t.rejects(resolve('receiver.example', forever), { code }, String(behaviour));
    }

    const { resolve: fooled } = await asking(t, () => 'garbage', { timeout: 500 });
    await t.rejects(fooled('receiver.example', forever), { code: /^dns_(failed|timeout)$/ }, 'as the c-ares of this Node takes it');

    const { resolve } = await asking(t, (_name, type) => (type === 'A' ? 'fails' : 'unknown'));
    await t.rejects(resolve('receiver.example', forever), { code: 'dns_failed' }, 'the family that cannot tell may have addresses');

    const closed = nameResolver({ timeout: 2000, maxPending: 8, nameServers: ['127.0.0.1:1'], hostsFile: '/nowhere' });
    await t.rejects(closed('receiver.example', forever), { code: 'dns_failed' }, 'nobody listens there');
});

t.test('tells whether a name server says anything, by a question that no stranger hears of', async (t) => {
    for (const [behaviour, answers] of [
        [[], true],
        ['unknown', true],
        ['fails', true],
        ['refuses', true],
        ['silent', false],
    ] as const) {
        const server = await nameServer(() => behaviour);
        t.teardown(server.close);
        const timeout = answers ? LIMIT : 500;
        t.equal(await nameServersAnswer({ timeout, nameServers: [server.address] }), answers, String(behaviour));
        t.strictSame(new Set(server.questions), new Set(['NS .']));
    }
    t.equal(await nameServersAnswer({ timeout: 2000, nameServers: ['127.0.0.1:1'] }), false, 'nobody listens there');
});

t.test('gives a silent name server no more time than it is told to', async (t) => {
    const server = await nameServer(() => 'silent');
    t.teardown(server.close);
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    const answers = nameServersAnswer({ timeout: LIMIT, nameServers: [server.address, '127.0.0.1:1', server.address] });
    mock.timers.tick(LIMIT);
    t.equal(await answers, false);
});

t.test('answers for one name while the servers of many others are silent', async (t) => {
    const { resolve } = await asking(t, (name) => (name === 'receiver.example' ? ['192.0.2.1'] : 'silent'), { maxPending: 200 });
    const silent = Array.from({ length: 100 }, (_, index) => resolve(`silent-${index}.example`, forever).catch(({ code }) => code));
    t.strictSame(await Promise.race([resolve('receiver.example', forever), ...silent]), ['192.0.2.1']);
    t.strictSame(new Set(await Promise.all(silent)), new Set(['dns_timeout']));
});

t.test('stops asking for a name whose time is over, and is asked again by the next', async (t) => {
    let silent = true;
    const { monotonic, over } = heldTime(t);
    const { resolve, questions } = await asking(t, () => (silent ? 'silent' : ['192.0.2.1']), { maxPending: 1, monotonic });
    const late = t.rejects(resolve('one.example', forever), {
        code: 'dns_timeout',
        message: 'Resolving one.example took longer than 2000 ms',
    });
    await over(questions, 2);
    await late;
    silent = false;
    t.strictSame(await resolve('two.example', forever), ['192.0.2.1'], 'the first is pending no more');
    t.strictSame(await resolve('one.example', forever), ['192.0.2.1']);
});

t.test('leaves waiting when the signal says so, with its reason', async (t) => {
    const { resolve } = await asking(t, () => 'silent');
    const controller = new AbortController();
    const waiting = resolve('receiver.example', controller.signal);
    controller.abort(new Error('enough'));
    await t.rejects(waiting, { message: 'enough' });
});

t.test('refuses more names at once than it may ask for: a fault of its own', async (t) => {
    const { resolve } = await asking(t, () => 'silent', { maxPending: 1, timeout: 200 });
    const first = resolve('one.example', forever).catch(({ code }) => code);
    await t.rejects(resolve('two.example', forever), { code: 'interrupted' });
    t.equal(await first, 'dns_timeout');
});

t.test('leaves half of its places to names that are not known to be silent', async (t) => {
    const { monotonic, over } = heldTime(t);
    const behaviour = (name: string): NameServerBehaviour => (name.startsWith('silent') ? 'silent' : ['192.0.2.1']);
    const { resolve, questions } = await asking(t, behaviour, { maxPending: 4, monotonic });
    const all = (count: number): Promise<readonly unknown[]> =>
        Promise.all(Array.from({ length: count }, (_, index) => resolve(`silent-${index}.example`, forever).catch(({ code }) => code)));
    const first = all(4);
    await over(questions, 8);
    t.strictSame(await first, Array(4).fill('dns_timeout'), 'the first time nobody knows');
    const again = all(4);
    t.strictSame(await resolve('receiver.example', forever), ['192.0.2.1']);
    t.strictSame(await resolve('other.example', forever), ['192.0.2.1']);
    await over(questions, 8 + 4 + 4);
    t.strictSame((await again).toSorted(), ['dns_timeout', 'dns_timeout', 'interrupted', 'interrupted']);
});

t.test('takes a name for silent no more once it was answered', async (t) => {
    let silent = true;
    const { monotonic, over } = heldTime(t);
    const { resolve, questions } = await asking(t, () => (silent ? 'silent' : ['192.0.2.1']), { maxPending: 2, ttl: 0, monotonic });
    const both = (): Promise<readonly unknown[]> =>
        Promise.all(['one.example', 'two.example'].map((name) => resolve(name, forever).catch(({ code }) => code)));
    const first = both();
    await over(questions, 4);
    t.strictSame(await first, ['dns_timeout', 'dns_timeout']);
    const again = both();
    await over(questions, 4 + 2);
    t.strictSame(await again, ['dns_timeout', 'interrupted']);
    silent = false;
    for (const name of ['one.example', 'two.example']) {
        await resolve(name, forever);
    }
    t.strictSame(await both(), [['192.0.2.1'], ['192.0.2.1']]);
});

t.test('takes a name for slow by the time that it took, whatever came of it', async (t) => {
    const addresses = [{ address: '192.0.2.1' }];
    const again = Object.assign(new Error('getaddrinfo EAI_AGAIN'), { code: 'EAI_AGAIN' });
    for (const [error, took, last] of [
        [again, 1000, 'interrupted'],
        [again, 999, 'dns_failed'],
        [null, 1000, 'interrupted'],
        [null, 999, '192.0.2.1'],
    ] as const) {
        let now = 0;
        const waiting: (() => void)[] = [];
        const lookup: ResolverOptions['lookup'] = (_name, _options, done) => waiting.push(() => done(error, addresses));
        const resolve = nameResolver({ lookup, timeout: 2000, maxPending: 2, monotonic: () => now });
        const both = async (): Promise<readonly unknown[]> => {
            const ends = ['one.example', 'two.example'].map((name) => resolve(name, forever).then(String, ({ code }) => code));
            now += took;
            for (const answer of waiting.splice(0)) {
                answer();
            }
            return await Promise.all(ends);
        };
        const first = error === null ? '192.0.2.1' : 'dns_failed';
        t.strictSame(await both(), [first, first], 'the first time nobody knows');
        t.strictSame(await both(), [first, last], `${first} after ${took} of 2000 ms`);
    }
});

t.test('takes a name for slow whose failure a name server has long thought about', async (t) => {
    let now = 0;
    const behaviour = (): NameServerBehaviour => {
        now += 1000;
        return 'fails';
    };
    const { resolve } = await asking(t, behaviour, { maxPending: 2, monotonic: () => now });
    const both = (): Promise<readonly unknown[]> =>
        Promise.all(['one.example', 'two.example'].map((name) => resolve(name, forever).catch(({ code }) => code)));
    t.strictSame(await both(), ['dns_failed', 'dns_failed']);
    t.strictSame(await both(), ['dns_failed', 'interrupted']);
});

t.test('looks into the hosts file first, as it is now', async (t) => {
    const hostsFile = join(t.testdir({ hosts: '# none yet\n' }), 'hosts');
    const { resolve, questions } = await asking(t, () => ['192.0.2.1'], { hostsFile, ttl: 0 });
    t.strictSame(await resolve('receiver.example', forever), ['192.0.2.1']);

    await writeFile(hostsFile, '10.0.0.1\tother Receiver.Example # ours\n\nfe80::1 receiver.example\nno-address receiver.example\n');
    const asked = questions.length;
    t.strictSame(await resolve('receiver.example', forever), ['10.0.0.1', 'fe80::1']);
    t.equal(questions.length, asked, 'no server is asked');
});

t.test('takes the answers of the system, or of a lookup of the caller', async (t) => {
    const system = nameResolver({ resolver: 'system', timeout: 5000, maxPending: 8 });
    t.ok((await system('localhost', forever)).length > 0);
    t.equal(await system('localhost', forever), await system('localhost', forever), 'kept for a while');

    let asked = 0;
    const lookup: ResolverOptions['lookup'] = (_name, _options, done) => {
        asked += 1;
        done(null, [{ address: '192.0.2.1' }, { address: '192.0.2.1' }]);
    };
    const own = nameResolver({ lookup, timeout: 5000, maxPending: 8 });
    t.strictSame([await own('a.example', forever), await own('a.example', forever)], [['192.0.2.1'], ['192.0.2.1']]);
    t.equal(asked, 2, 'its caller keeps answers if anybody does');
});

/** Keeps all threads of libuv in this process busy until it is called off. */
function busyThreads(t: Test): () => Promise<void> {
    const pipes = Array.from({ length: Number(process.env.UV_THREADPOOL_SIZE) || 4 }, (_, index) => join(t.testdir(), `pipe-${index}`));
    execFileSync('mkfifo', pipes);
    // Each waits in its thread for somebody who writes.
    const opening = pipes.map((pipe) => open(pipe, 'r'));
    return async () => {
        const writers = pipes.map((pipe) => openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK));
        for (const file of await Promise.all(opening)) {
            await file.close();
        }
        writers.forEach(closeSync);
    };
}

for (const resolver of ['system', 'dns'] as const) {
    t.test(`takes a look-up for its own fault that has only waited for threads of the process: ${resolver}`, async (t) => {
        const { resolve } = await asking(t, () => ['192.0.2.1'], { resolver, timeout: 200, maxPending: 2 });
        const free = busyThreads(t);
        const both = await Promise.all(['localhost', 'other.localhost'].map((name) => resolve(name, forever).catch((error) => error)));
        await free();
        const message = /^Resolving .*localhost waited for this process: its threads were busy$/;
        t.match(both, [
            { code: 'interrupted', message },
            { code: 'interrupted', message },
        ]);
    });
}

t.test('leaves a thread of the system to names that are not known to be slow', async (t) => {
    let now = 0;
    const waiting = new Map<string, () => void>();
    const lookup = mock.method(dns, 'lookup', (name: string, ...[options, done = options]: ((...found: unknown[]) => void)[]) => {
        if (name === '127.1') {
            return done?.(null, name, 4);
        }
        waiting.set(name, () => done?.(null, [{ address: '192.0.2.1', family: 4 }]));
    });
    t.teardown(() => lookup.mock.restore());
    const resolve = nameResolver({ resolver: 'system', timeout: 60_000, maxPending: 8, monotonic: () => now });
    const all = (): Promise<readonly unknown[]> =>
        Promise.all(['one.example', 'two.example', 'three.example'].map((name) => resolve(name, forever).then(String, ({ code }) => code)));
    for (const expected of [
        ['192.0.2.1', '192.0.2.1', '192.0.2.1'],
        ['192.0.2.1', 'interrupted', 'interrupted'],
    ]) {
        const ends = all();
        now += 30_000;
        for (const answer of waiting.values()) {
            answer();
        }
        t.strictSame(await ends, expected);
        now += 30_000;
    }
});
