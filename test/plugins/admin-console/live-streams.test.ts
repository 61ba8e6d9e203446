import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { mock } from 'node:test';
import cookie from '@hapi/cookie';
import t from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { LiveStreams, type StreamOptions, type Topic } from '../../../plugins/admin-console/screens/live-streams.ts';
import { admin, host, receiver, register, SESSIONS, systemOf } from './host.ts';

/** Streams whose time stands still until it is told to go on. */
function standing(options: Partial<StreamOptions> = {}) {
    const errors: unknown[] = [];
    let now = 0;
    let wake: (() => void) | null = null;
    const streams = new LiveStreams({
        onError: (error) => errors.push(error),
        monotonic: () => now,
        sleep: (_, signal) =>
            new Promise((resolve, reject) => {
                signal.throwIfAborted();
                wake = () => resolve(null);
                signal.addEventListener('abort', () => reject(signal.reason));
            }),
        ...options,
    });
    return {
        streams,
        errors,
        /** The next look begins. */
        async pass(milliseconds: number) {
            await until(() => wake !== null);
            now += milliseconds;
            wake?.();
            wake = null;
        },
    };
}

/** What is seen is a number that goes up when it is told to. */
function counting(key: string, owner: string | null = null) {
    const state = { value: 0, looks: 0 };
    const topic: Topic = {
        key,
        owner,
        async look(seen) {
            state.looks += 1;
            return seen === String(state.value) ? null : { seen: String(state.value), html: `${key}\n${state.value}` };
        },
    };
    return { state, topic };
}

function heard(stream: Readable | null): { text: string; ended: boolean } {
    const all = { text: '', ended: false };
    stream?.on('data', (chunk) => {
        all.text += chunk;
    });
    stream?.once('end', () => {
        all.ended = true;
    });
    return all;
}

/** Milliseconds for which a server may wait for its connections when it stops. */
const STOP_TIMEOUT = 60_000;

const always = async (): Promise<boolean> => true;

t.test('shows what there is to see, and then what has changed', async (t) => {
    const { streams, pass } = standing();
    const { state, topic } = counting('a');
    const first = heard(streams.open(topic, always));
    await until(() => first.text === 'retry: 3000\n\nevent: shown\ndata: a\ndata: 0\n\n');
    const second = heard(streams.open(topic, always));
    await until(() => second.text === first.text);
    t.equal(state.looks, 1, 'who comes later sees what was seen last');

    await pass(1_000);
    await until(() => state.looks === 2);
    state.value = 7;
    await pass(1_000);
    await until(() => first.text.endsWith('data: 7\n\n') && second.text === first.text);
    t.equal(state.looks, 3);
});

t.test('looks at one topic at a time, whoever is looked for', async () => {
    const { streams, pass } = standing();
    const topics = ['a', 'b', 'c'].map((key) => counting(key));
    for (const { topic } of [...topics, ...topics]) {
        heard(streams.open(topic, always));
    }
    const looks = (): number[] => topics.map(({ state }) => state.looks);
    for (const expected of [
        [1, 0, 0],
        // The others came after it.
        [2, 0, 0],
        [2, 1, 0],
        [2, 1, 1],
        [3, 1, 1],
    ]) {
        await until(() => looks().join() === expected.join());
        await pass(1_000);
    }
});

t.test('looks for nobody once all have gone', async (t) => {
    const { streams, pass } = standing();
    const { state, topic } = counting('a');
    const stream = streams.open(topic, always);
    await until(() => state.looks === 1);
    stream?.destroy();
    await once(stream as Readable, 'close');
    await pass(1_000);
    await new Promise((resolve) => setImmediate(resolve));
    t.equal(state.looks, 1);

    const again = heard(streams.open(topic, always));
    await until(() => again.text.includes('data: 0'));
});

t.test('ends the stream of who may not see it any more, before anything is sent', async (t) => {
    const { streams, pass } = standing();
    const { state, topic } = counting('a');
    let may = true;
    const stays = heard(streams.open(topic, always));
    const goes = heard(streams.open(topic, async () => may));
    await until(() => goes.text.includes('data: 0'));
    may = false;
    state.value = 1;
    await pass(1_000);
    await until(() => goes.ended && stays.text.includes('data: 1'));
    t.notMatch(goes.text, 'data: 1');

    const silent = heard(streams.open(topic, async () => may));
    await pass(9_999);
    await until(() => state.looks === 3);
    t.equal(silent.ended, false);
    await pass(1);
    await until(() => silent.ended && stays.text.endsWith(':\n\n'));
});

t.test('keeps so many streams and no more', async (t) => {
    const { streams } = standing({ max: 2 });
    const first = streams.open(counting('a').topic, always);
    t.not(first, null);
    t.not(streams.open(counting('b').topic, always), null);
    t.equal(streams.open(counting('a').topic, always), null);
    first?.destroy();
    await once(first as Readable, 'close');
    t.not(streams.open(counting('c').topic, always), null);
});

t.test('leaves streams for others when one owner wants many', async (t) => {
    const { streams } = standing({ maxOfOwner: 2 });
    const first = streams.open(counting('a', 'ann').topic, always);
    t.not(first, null);
    t.not(streams.open(counting('b', 'ann').topic, always), null);
    t.equal(streams.open(counting('c', 'ann').topic, always), null);
    t.not(streams.open(counting('d', 'bob').topic, always), null);
    for (const key of ['e', 'f', 'g']) {
        t.not(streams.open(counting(key).topic, always), null);
    }
    first?.destroy();
    await once(first as Readable, 'close');
    t.not(streams.open(counting('c', 'ann').topic, always), null);
});

t.test('ends the stream of who does not read', async (t) => {
    const { streams, pass } = standing();
    const stream = streams.open({ key: 'a', owner: null, look: async () => ({ seen: '', html: 'x'.repeat(600_000) }) }, always) as Readable;
    for (let times = 0; times < 5; times += 1) {
        await pass(1_000);
    }
    const read = heard(stream);
    await until(() => read.ended);
    t.ok(read.text.length < 2_000_000);
});

t.test('ends the streams of a look that fails, and says why', async (t) => {
    const { streams, errors } = standing();
    const failed = heard(streams.open({ key: 'a', owner: null, look: () => Promise.reject(new Error('away')) }, always));
    await until(() => failed.ended);
    t.match(errors, [{ message: 'away' }]);
});

t.test('ends all streams, and opens none until it begins again', async (t) => {
    const { streams } = standing();
    const { topic, state } = counting('a');
    const open = heard(streams.open(topic, always));
    await until(() => state.looks === 1);
    streams.end();
    await until(() => open.ended);
    t.equal(streams.open(topic, always), null);
    streams.begin();
    const again = heard(streams.open(topic, always));
    await until(() => again.text.includes('data: 0'));
    streams.end();
});

t.test('keeps a hundred streams of people whose rights can be asked for', async (t) => {
    const server = await host({ host: '127.0.0.1' });
    let trouble: Error | null = null;
    const authorize = (): boolean => {
        if (trouble !== null) {
            throw trouble;
        }
        return true;
    };
    await register(server, { system: systemOf(server), authorize, screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: ['app', 'error', 'internal'] }, (_, { error }) => {
        logged.push(error);
    });
    const streams = await Promise.all(
        Array.from({ length: 101 }, async () => {
            const asked = get(`${server.info.uri}/admin/deliveries/live`, { headers: admin });
            const [response] = (await once(asked, 'response')) as [IncomingMessage];
            return response;
        }),
    );
    const refused = streams.filter(({ statusCode }) => statusCode === 503);
    t.equal(refused.length, 1);
    const said = heard(refused[0] as IncomingMessage);
    await until(() => said.text.includes('Too many people look'));

    trouble = new Error('the directory is away');
    const all = streams.filter(({ statusCode }) => statusCode === 200).map(heard);
    await server.plugins['webhook-exporter'].exporters.create({ url: await receiver(t) }).then(({ exporter }) => {
        return server.plugins['webhook-exporter'].exporters.start(exporter.id);
    });
    await until(() => all.every(({ ended }) => ended));
    t.match(logged.filter(Boolean), Array(100).fill(trouble));
});

t.test('goes on to look an hour after it was opened: what is due in time is the page', async (t) => {
    const server = await host({ host: '127.0.0.1' });
    await register(server, { system: systemOf(server), screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t) });
    const asked = get(`${server.info.uri}/admin/deliveries/live`, { headers: admin });
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    const all = heard(response);
    await until(() => all.text.includes('0 deliveries'));

    const now = performance.now.bind(performance);
    const later = mock.method(performance, 'now', () => now() + 3_600_000);
    t.teardown(() => later.mock.restore());
    await exporters.start(exporter.id, { wait: false });
    await until(() => all.ended || all.text.includes('1 delivery'));
    t.equal(all.ended, false);
});

t.test('writes nothing to the log of a session that has ended and is sent to sign in', async (t) => {
    const server = await host({ host: '127.0.0.1' });
    let isValid = true;
    await server.register(cookie);
    server.auth.strategy('kept', 'cookie', {
        cookie: { name: 'kept', password: 'p'.repeat(32), isSecure: false, path: '/' },
        redirectTo: '/sign-in',
        validate: async () => ({ isValid }),
    });
    server.route({
        method: 'GET',
        path: '/sign-in',
        handler: (request, h) => {
            request.cookieAuth.set({ id: 'ada' });
            return h.response();
        },
    });
    await register(server, { system: systemOf(server), auth: 'kept', authorize: () => true, actor: () => 'ada', screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: ['app', 'error'] }, (_, event) => logged.push(event));

    const { headers } = await server.inject('/sign-in');
    const kept = String([headers['set-cookie']].flat()[0]).split(';')[0];
    const [response] = (await once(get(`${server.info.uri}/admin/deliveries/live`, { headers: { cookie: kept } }), 'response')) as [
        IncomingMessage,
    ];
    const all = heard(response);
    await until(() => all.text.includes('0 deliveries'));
    isValid = false;
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t) });
    await exporters.start(exporter.id);
    await until(() => all.ended);
    t.notMatch(all.text, '1 delivery');
    t.equal(logged.length, 0, 'neither the cookie of the browser nor anything else');
});

t.test('streams the list of deliveries to who is signed in, until the session or the server ends', async (t) => {
    const server = await host({ host: '127.0.0.1' });
    await register(server, { system: systemOf(server), screens: {} });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: await receiver(t), name: '<b>alerts</b>' });

    const opened = async (headers: Record<string, string>, query = ''): Promise<IncomingMessage> => {
        const asked = get(`${server.info.uri}/admin/deliveries/live${query}`, { headers: { 'accept-encoding': 'gzip', ...headers } });
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        return response;
    };
    t.equal((await opened({})).statusCode, 401);
    t.equal((await opened({ session: 'eve' })).statusCode, 403);
    const response = await opened(admin);
    t.equal(response.statusCode, 200);
    t.match(response.headers, { 'content-type': /^text\/event-stream/, 'cache-control': 'no-store' });
    t.match(response.headers['content-security-policy'], "connect-src 'self'");
    const all = heard(response);
    await until(() => all.text.includes('0 deliveries'));
    const refused = heard(await opened(admin, '?since=yesterday'));
    const others = heard(await opened(admin, '?kind=another'));

    await exporters.start(exporter.id);
    await until(() => /1 delivery[\s\S]*&lt;b&gt;alerts&lt;\/b&gt;[\s\S]*delivered/.test(all.text));
    await until(() => refused.ended && others.text.includes('0 deliveries'));
    t.notMatch(others.text, 'alerts');

    const { ada } = SESSIONS;
    delete SESSIONS.ada;
    t.teardown(() => Object.assign(SESSIONS, { ada }));
    await exporters.test(exporter.id);
    await until(() => all.ended);
    t.notMatch(all.text, '2 deliveries', 'nothing is shown after the end of the session');

    Object.assign(SESSIONS, { ada });
    const last = heard(await opened(admin));
    const begun = performance.now();
    await server.stop({ timeout: STOP_TIMEOUT });
    t.ok(performance.now() - begun < STOP_TIMEOUT, 'streams hold up no stop');
    t.equal(last.ended, true);
});
