import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import type { NewExporterSettings } from '../../lib/webhooks/exporters/exporter.ts';
import { masked } from '../../lib/webhooks/outcomes/masking.ts';
import { responseBody } from '../../lib/webhooks/outcomes/response-bodies.ts';
import { investigation } from '../support/investigation.ts';
import { recordingProcess } from '../support/recording-process.ts';
import { traces, WRITINGS } from '../support/text-writings.ts';
import { loopbackSender, ROOT, secureServer } from '../support/token-server.ts';

/*
 * Receivers that repeat what they were sent, in whatever form their framework writes it, so that secrets would be stored with what they
 * answered, and shown to whoever looks at a delivery.
 */

const KIND = 'idr_investigation_created';

const SECRET = `S3cret"of<the>'exporter'&co/ö+1%`;
const KEYS = {
    token: 'he4der-T0ken/with+signs=',
    cookie: 'sess10n%2Fid',
    path: 'p4th-T0ken',
    query: 'qu3ry&T0ken',
    password: `pa55"w<ö>rd`,
    routing: 'R0uting'.repeat(5).slice(0, 32),
};

interface Echo {
    readonly url: string;
    /** What the next answer says of a request. */
    write: (dump: string) => string;
    /** What was received, as a dump of all of it. */
    readonly dumps: string[];
}

/** A receiver that answers 401 with all that it was sent. */
async function echo(t: Test): Promise<Echo> {
    const state = { url: '', write: (dump: string): string => dump, dumps: [] as string[] };
    const server = createServer(async (request: IncomingMessage, response) => {
        const body = await text(request);
        const names = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
        // Headers first, since a body is longer than what is kept.
        state.dumps.push(`${request.method} ${request.url}\n${names.join('\n')}\n\n${body}`);
        response.writeHead(401).end(state.write(state.dumps.at(-1) as string));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks/${KEYS.path}?key=${encodeURIComponent(KEYS.query)}`;
    return state;
}

/** A process that sends over a network, and what it keeps of what a receiver answers to a message. */
async function process(t: Test) {
    const made = recordingProcess(t, memoryWebhooks(), {
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        sender: loopbackSender(t),
        sleep: (milliseconds) => new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, 25))),
    });
    const { exporters, publish, deliveries, start, work, errors } = made;
    await start();
    await work(['default']);
    async function answered(settings: Partial<NewExporterSettings> & Pick<NewExporterSettings, 'url'>) {
        const { exporter, secret } = await exporters.create({ secret: SECRET, ...settings });
        await exporters.start(exporter.id);
        const [id = ''] = (await publish(KIND, investigation)).deliveries;
        await until(async () => (await deliveries.show(id)).lastCode !== null);
        const [attempt] = (await deliveries.show(id)).history;
        await exporters.remove(exporter.id);
        t.same(errors, []);
        return { attempt, secret };
    }
    return answered;
}

t.test('stores no secret that a receiver repeats, however it writes it', async (t) => {
    const receiver = await echo(t);
    const answered = await process(t);
    const headers: [string, string][] = [
        ['X-Token', `Bearer ${KEYS.token}`],
        ['Cookie', `theme=dark-mode; session=${KEYS.cookie}`],
    ];
    const basic = { username: 'our-u5er', password: KEYS.password };
    const signatures = ['base64', 'hex', 'sha256-hex', 'standard-webhooks'] as const;
    const settings = { url: receiver.url, headers, basic, signatures, format: 'pagerduty', formatSecret: KEYS.routing };
    for (const [name, write] of Object.entries(WRITINGS)) {
        receiver.write = write;
        const { attempt } = await answered(settings);
        const shown = attempt?.responseBody?.text ?? '';
        t.ok(shown.includes('***'), `${name}: it was repeated and masked: ${shown.slice(0, 60)}`);
        const dump = receiver.dumps.at(-1) as string;
        const sent = [...dump.matchAll(/^(?:x-vendor-signature.*|webhook-signature|authorization): (.+)$/gm)].flatMap(([, value = '']) => [
            value,
            ...value.split(/[ ,]/).filter((part) => part.length > 20),
        ]);
        t.equal(sent.length > 8, true, 'signatures and credentials were sent');
        for (const secret of [SECRET, 'our-u5er', ...Object.values(KEYS), ...sent]) {
            const found = traces(secret).filter((trace) => trace.length > 3 && shown.includes(trace));
            t.same(found, [], `${name}: ${secret}`);
        }
        t.notMatch(JSON.stringify(attempt?.outcome), /\*\*\*|T0ken/, 'the outcome has nothing of it');
    }
});

t.test('stores no access token that a receiver repeats', async (t) => {
    const accessToken = 'acce55-t0ken-of-the-client';
    const origin = await secureServer(t, (request, response) => {
        const isTokenServer = request.url === '/token';
        const body = isTokenServer ? { access_token: accessToken, token_type: 'Bearer' } : { error: 'invalid_token', got: request.headers };
        response.writeHead(isTokenServer ? 200 : 401, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
    const answered = await process(t);
    const oauth = { tokenUrl: `${origin}/token`, clientId: 'id-of-the-client', clientSecret: 'hidden-client-secret', ca: ROOT.cert };
    const { attempt } = await answered({ url: `${origin}/in`, ca: ROOT.cert, oauth });
    t.match(attempt?.responseBody?.text, /"error":"invalid_token".*"authorization":"\*\*\*"/);
    t.notMatch(attempt?.responseBody?.text, /acce55|t0ken/);
});

t.test('says of a 401 what a receiver says, but for what is secret', async (t) => {
    const receiver = await echo(t);
    const answered = await process(t);
    receiver.write = () => `{"error":"Unknown token ${KEYS.token}","path":"/hooks/${KEYS.path}","docs":"https://example.com/webhooks"}\n`;
    const { attempt } = await answered({ url: receiver.url, headers: [['X-Token', KEYS.token]] });
    const text = '{"error":"Unknown token ***","path":"***","docs":"https://example.com/webhooks"}\n';
    t.match(attempt, { outcome: { code: 'client_error', detail: 'Answered 401' }, responseBody: { text, truncated: false } });
});

t.test('leaves no part of a secret where a body was cut off', (t) => {
    for (const [name, write] of Object.entries(WRITINGS)) {
        const beginning = revealing(write, 4);
        const whole = Buffer.from(`{"error":"no","got":"${write(SECRET)}`);
        const cuts = Array.from({ length: whole.length - 1 }, (_, at) => whole.subarray(0, at + 1));
        const shown = cuts.map((body) => responseBody({ body, bytes: 9_999, encoded: false, cut: true, sent: [] }, [SECRET])?.text ?? '');
        t.ok(cuts.filter((cut) => cut.includes(beginning)).length > 9, `${name}: it would be shown`);
        t.same(
            shown.filter((text) => text.includes(beginning)),
            [],
            name,
        );
        t.ok(
            shown.every((text, at) => at < 20 || text.startsWith('{"error":"no","got":')),
            `${name}: what comes before is shown`,
        );
    }
    t.end();
});

/** How the first characters of the secret are written, whatever follows them, without what is written before any text. */
function revealing(write: (text: string) => string, count: number): string {
    const common = (one: string, other: string): string =>
        one.slice(
            0,
            [...one].findIndex((sign, at) => sign !== other[at]),
        );
    const beginning = SECRET.slice(0, count);
    return common(write(`${beginning}0000`), write(`${beginning}zzzz`)).slice(common(write('0000'), write('zzzz')).length);
}

t.test('cuts what it shows after it has masked it', (t) => {
    for (let before = 1000; before <= 1024; before += 1) {
        const body = Buffer.from(`${'-'.repeat(before)}${SECRET}${'-'.repeat(100)}`);
        const { text = '', truncated } = responseBody({ body, bytes: body.length, encoded: false, cut: false, sent: [] }, [SECRET]) ?? {};
        t.match(text, /^-+\*{0,3}-*$/);
        t.equal(Buffer.byteLength(text ?? ''), 1024);
        t.equal(truncated, true);
    }
    t.end();
});

t.test('masks little else', (t) => {
    const secrets = ['abcd', 'x', 'a-longer-secret'];
    const text = 'abcde abcd xabcd y=x&z x1 ABCD a-longer-secrets a-long';
    t.equal(masked(text, secrets, { cut: false }), 'abcde *** xabcd y=***&z x1 ABCD ***s a-long');
    t.equal(masked('nothing of it', [], { cut: true }), 'nothing of it');
    t.equal(masked('eHh4', ['x', 'xxx'], { cut: false }), '***', 'a short one that is alone');
    t.end();
});

t.test('masks secrets that overlap with themselves and one another as one, and those that follow one another as each', (t) => {
    const secrets = ['ababababab', 'abababababab-', '-and-more', 'and-more-of'];
    t.equal(masked('x abababababababab y', secrets, { cut: false }), 'x *** y');
    t.equal(masked('x abababababab-and-more-of y', secrets, { cut: false }), 'x *** y');
    t.equal(masked('x ababababab-and-more y', secrets, { cut: false }), 'x ****** y');
    t.equal(masked('x ab-ababab', secrets, { cut: true }), 'x ab-***');
    t.end();
});

t.test('masks a secret with a noncharacter, however it is written', (t) => {
    const secret = 'b\uFFFFhidden-word';
    for (const written of [secret, JSON.stringify(secret), 'b\\uffffhidden-word', encodeURIComponent(secret)]) {
        t.notMatch(masked(written, [secret], { cut: false }), /hidden/);
        t.match(masked(`${Buffer.from(written).toString('base64')} .`, [secret], { cut: false }), /^.?\*{3}.{0,2} \.$/);
    }
    t.end();
});

t.test('takes a bounded time, whatever a receiver writes', (t) => {
    const secrets = Array.from({ length: 60 }, (_, number) => `secret-number-${number}-and-more`);
    for (const unit of ['%5c\\u0041&#65;', 'QUJD', '\\', '&amp;', '41', '%25', 'secret-number-1']) {
        assertQuick(t, unit, unit.repeat(4096 / unit.length), secrets);
    }
    t.end();
});

t.test('takes a bounded time, whatever headers an exporter has', (t) => {
    const words: Readonly<Record<string, readonly string[]>> = {
        'that overlap with themselves and one another': Array.from({ length: 110 }, (_, number) => 'a'.repeat(10 + number)),
        'that are short, and very many': Array.from({ length: 1600 }, (_, number) => `aa${number.toString(36).padStart(2, 'a')}`),
        'of which each is the beginning of another': Array.from({ length: 110 }, (_, number) => `${'a'.repeat(10 + number)}-`),
        'that are as long as a value': ['a'.repeat(4096), `${'a'.repeat(4095)}b`],
    };
    const escapes = '%5c\\u0041&#65;'.repeat(20);
    for (const [name, secrets] of Object.entries(words)) {
        for (const unit of ['a', 'a-', 'aaaaaaaaab', '-aaa']) {
            const repeated = `${escapes}${unit.repeat(3800 / unit.length)}`;
            assertQuick(t, `${name}: ${unit}`, repeated, secrets);
            assertQuick(t, `${name}: ${unit}, within an encoding`, Buffer.from(repeated).toString('base64').slice(0, 4096), secrets);
        }
    }
    t.end();
});

function assertQuick(t: Test, name: string, text: string, secrets: readonly string[]): void {
    const before = globalThis.process.cpuUsage();
    masked(text, secrets, { cut: true });
    const { user } = globalThis.process.cpuUsage(before);
    t.ok(user < 500_000, `${name}: ${user} µs`);
}
