import { type ChildProcess, spawn } from 'node:child_process';
import { request } from 'node:http';
import { join } from 'node:path';
import { server as hapiServer, type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { addConsole, addSignInLinks, type SignIn } from '../../cli/console-sign-in.ts';
import type { AuditTrail } from '../../lib/audit/audit-trail.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { host, systemOf } from '../plugins/admin-console/host.ts';
import { Visitor } from '../plugins/admin-console/visitor.ts';
import { ENTRY, QUICK_NODE, scanwire, startScanwire } from '../support/scanwire.ts';
import { get, json, serve, serveIn, usedDataOf } from '../support/served.ts';

const COOKIE = /^scanwire-console=([^;]+); Max-Age=43200; Expires=[^;]+; Secure; HttpOnly; SameSite=Strict; Path=\/admin$/;
const SIGN_IN = '/admin/sign-in';

interface Deployment {
    readonly server: Server;
    readonly signIn: SignIn;
    /** Path of a new link, and what it holds. */
    offered(): { readonly path: string; readonly link: string };
    later(milliseconds: number): void;
}

async function deployment(t: Test): Promise<Deployment> {
    let now = Date.UTC(2030, 0);
    const parts = await host();
    const server = hapiServer({ host: '127.0.0.1', port: 0 });
    const signIn = (await addConsole(server, systemOf(parts), () => new Date(now))) as SignIn;
    await parts.initialize();
    t.teardown(() => parts.stop());
    return {
        server,
        signIn,
        offered() {
            const { pathname, search, searchParams } = new URL(signIn.link().url.replace(/:0\//, '/'));
            return { path: pathname + search, link: String(searchParams.get('link')) };
        },
        later(milliseconds) {
            now += milliseconds;
        },
    };
}

/** Somebody with a browser, who has opened the link and pressed the button; and the cookie that this has set. */
async function signedIn(server: Server, link: string): Promise<string> {
    const answer = await post(server, SIGN_IN, `link=${link}`);
    return String(answer.headers['set-cookie']?.[0]);
}

async function post(server: Server, url: string, payload: string, headers: Record<string, string> = {}, remoteAddress = '192.0.2.1') {
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    return await server.inject({ method: 'POST', url, payload, headers: { ...type, ...headers }, remoteAddress });
}

/** Where somebody with this cookie ends up. */
async function home(server: Server, cookie?: string): Promise<string | number> {
    const headers = cookie === undefined ? {} : { cookie: cookie.split(';')[0] as string };
    const { statusCode, headers: answered } = await server.inject({ url: '/admin/overview', headers });
    return statusCode === 302 ? String(answered.location) : statusCode;
}

t.test('signs one browser in by a link, once', async (t) => {
    const { server, offered } = await deployment(t);
    const { path, link } = offered();
    const opened = await server.inject({ url: path });
    t.match(opened.payload, 'Sign in with this browser');
    t.match(opened.headers, {
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'content-security-policy': /form-action 'self'/,
    });
    t.match((await server.inject({ url: path })).payload, 'Sign in with this browser', 'to look at it uses nothing up');

    const entered = await post(server, SIGN_IN, `link=${link}`);
    t.match([entered.statusCode, entered.headers.location], [303, '/admin']);
    const cookie = String(entered.headers['set-cookie']?.[0]);
    t.match(cookie, COOKIE);
    t.equal(await home(server, cookie), 200);

    const again = await post(server, SIGN_IN, `link=${link}`);
    t.equal(again.statusCode, 403);
    t.notOk(again.headers['set-cookie']);
    t.match(again.payload, 'scanwire console');
});

t.test('lets nobody in without one', async (t) => {
    const { server, offered, later } = await deployment(t);
    t.equal(await home(server), SIGN_IN);
    t.match((await server.inject({ url: `${SIGN_IN}?link=${encodeURIComponent('"><script>')}` })).payload, 'A link signs you in');
    t.equal(await home(server, 'scanwire-console=forged'), SIGN_IN);
    t.equal((await post(server, '/admin/keys', 'name=x')).statusCode, 302);
    t.equal((await server.inject({ url: '/admin-console/keys' })).statusCode, 404, 'programs have the socket');

    const { link } = offered();
    later(5 * 60_000);
    t.equal((await post(server, SIGN_IN, `link=${link}`)).statusCode, 403, 'its time is over');

    const other = await deployment(t);
    const cookie = await signedIn(other.server, other.offered().link);
    t.equal(await home(other.server, cookie), 200);
    t.equal(await home(server, cookie), SIGN_IN, 'a cookie of another process, such as the one before a restart');
    t.equal((await post(server, SIGN_IN, `link=${other.offered().link}`)).statusCode, 403, 'a link of another process');
});

t.test('ends a sign-in when it is signed out, and after its time', async (t) => {
    const { server, offered, later } = await deployment(t);
    const [first, second] = [await signedIn(server, offered().link), await signedIn(server, offered().link)];
    const pair = String(first.split(';')[0]);
    const page = await server.inject({ url: '/admin/overview', headers: { cookie: pair } });
    t.match(page.payload, 'href="/admin/sign-out"');
    t.match((await server.inject({ url: '/admin/sign-out', headers: { cookie: pair } })).payload, '<button>Sign out');
    t.equal(await home(server, first), 200, 'to look at that page ends nothing');

    const out = await post(server, '/admin/sign-out', '', { cookie: pair });
    t.match([out.statusCode, out.headers.location], [303, SIGN_IN]);
    t.match(out.headers['set-cookie'], [/^scanwire-console=; Max-Age=0;/]);
    t.equal(await home(server, first), SIGN_IN, 'also for who has kept the cookie');
    t.equal(await home(server, second), 200, 'others stay');
    later(12 * 3_600_000);
    t.equal(await home(server, second), SIGN_IN);
});

t.test('listens no more to who tries links, and takes a good one all the same', async (t) => {
    const { server, offered, later } = await deployment(t);
    const wrong = (address: string) => post(server, SIGN_IN, `link=${'A'.repeat(43)}`, {}, address);
    for (let times = 0; times < 10; times += 1) {
        t.equal((await wrong('198.51.100.1')).statusCode, 403);
    }
    t.equal((await wrong('198.51.100.1')).statusCode, 429);
    const { link } = offered();
    t.equal((await post(server, SIGN_IN, `link=${link}`, {}, '198.51.100.1')).statusCode, 303, 'behind a proxy all have one address');
    t.equal((await post(server, SIGN_IN, `link=${link}`, {}, '198.51.100.1')).statusCode, 429);
    t.equal((await wrong('198.51.100.2')).statusCode, 403);
    later(60_000);
    t.equal((await wrong('198.51.100.1')).statusCode, 403);
    t.equal((await post(server, SIGN_IN, 'x'.repeat(2000))).statusCode, 413);
    t.equal((await post(server, SIGN_IN, '')).statusCode, 403);
});

t.test('works with the pages: a key is made by whoever has signed in', async (t) => {
    const { server, offered } = await deployment(t);
    const visitor = new Visitor(server, {});
    const { path, link } = offered();
    const home = await visitor.send(await visitor.get(path), SIGN_IN, { link });
    t.equal(home.path, '/admin/overview');
    const made = await visitor.send(await visitor.get('/admin/keys'), '/admin/keys', { name: 'ci' });
    t.match(made.html, /id="shown-key"/);
});

t.test('tells in the trail who has signed in, and lets in whoever looks why that is away', async (t) => {
    let refusal: ScanwireError | null = null;
    const parts = await host();
    const system = systemOf(parts);
    const record: AuditTrail['record'] = (deed, act) => (refusal === null ? system.audit.record(deed, act) : Promise.reject(refusal));
    const server = hapiServer({ host: '127.0.0.1', port: 0 });
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_, { error }) => logged.push(error));
    const signIn = (await addConsole(server, { ...system, audit: { ...system.audit, record } }, () => new Date())) as SignIn;
    const enter = async (): Promise<number> => {
        const link = new URL(signIn.link().url).searchParams.get('link');
        return (await post(server, SIGN_IN, `link=${link}`)).statusCode;
    };
    t.equal((await post(server, SIGN_IN, `link=${'A'.repeat(43)}`)).statusCode, 403);
    t.equal(await enter(), 303);
    const expected = [{ actor: 'operator', operation: 'signIn', subject: '192.0.2.1', outcome: 'done' }];
    t.match(await system.audit.list(), expected);
    t.equal((await system.audit.list()).length, 1, 'a link that leads nowhere is nobody signing in');
    refusal = new ScanwireError('UNAVAILABLE', 'The database cannot be reached');
    t.equal(await enter(), 303);
    t.same(logged, [refusal]);
});

t.test('gives no links where there are no pages', async (t) => {
    const admin = hapiServer();
    addSignInLinks(admin, null);
    const { statusCode, payload } = await admin.inject({ method: 'POST', url: '/sign-in' });
    t.equal(statusCode, 409);
    t.match(payload, 'npm install @picocss/pico@2 htmx.org@4');
});

t.test('prints a link of the server that runs', async (t) => {
    const data = await usedDataOf(t);
    t.match(await scanwire(['console', '--data', data]), { code: 1, stderr: /^scanwire: No server runs on .*scanwire serve/ });
    const { served } = await serve(t, data);
    const { url } = await json<{ url: string }>(data, 'console');
    t.ok(url.startsWith(`${served.url}${SIGN_IN}?link=`));
    const page = await get(served, url.slice(served.url.length), '');
    t.match(page, { status: 200, body: /Sign in with this browser/ });
    t.match((await scanwire(['console', '--data', data])).stdout, /^https:\/\/\S+\nSigns one browser in, once, in 5 minutes/);
});

t.test('prints a link as it starts to a terminal, and to nothing else', async (t) => {
    const data = await usedDataOf(t);
    const args = [ENTRY, 'serve', '--data', data, '--port', '0'];
    const [program, ...first] = QUICK_NODE;
    const command = [program, ...first, ...args].map((word) => `'${word}'`).join(' ');
    const onTerminal = spawn('script', ['--quiet', '--command', `exec ${command}`, '/dev/null'], { stdio: ['pipe', 'pipe', 'inherit'] });
    t.teardown(() => onTerminal.kill('SIGKILL'));
    const shown = await saidUntil(onTerminal, /Ctrl-C stops/);
    const [, url = ''] = /Administration\s+(https:\S+)/.exec(shown) ?? [];
    t.ok(url.includes(`${SIGN_IN}?link=`), shown);

    const elsewhere = await usedDataOf(t);
    const toPipe = startScanwire(['serve', '--data', elsewhere, '--port', '0']);
    t.teardown(() => toPipe.kill('SIGKILL'));
    t.notMatch(await saidUntil(toPipe, /Ctrl-C stops/), /Administration|link=/);
});

/** What it has written once that is among it. */
async function saidUntil({ stdout }: ChildProcess, what: RegExp): Promise<string> {
    let said = '';
    for await (const part of stdout?.setEncoding('utf8') ?? []) {
        said += part;
        if (what.test(said)) {
            return said;
        }
    }
    throw new Error(`It ended without ${what}: ${said}`);
}

/** Run in a server before all else: the moment between listening and what follows is a long one. */
const SLOW_CHMOD = `
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
const { chmod } = fs;
fs.chmod = async (...given) => {
    await new Promise((resolve) => setTimeout(resolve, 300));
    await chmod(...given);
};
syncBuiltinESMExports();`;

t.test('gives out links from the moment on that the socket of the data folder listens', async (t) => {
    const data = await usedDataOf(t);
    const status = firstAnswer(join(data, 'scanwire.sock'));
    await serveIn(t, { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(SLOW_CHMOD)}` }, data);
    t.equal(await status, 200);
});

/** The status by which the socket answers who wants a link, as soon as it listens. */
async function firstAnswer(socketPath: string): Promise<number> {
    for (;;) {
        const status = await new Promise<number | null>((resolve) => {
            const outgoing = request({ socketPath, method: 'POST', path: '/sign-in', agent: false }, (incoming) => {
                incoming.resume();
                resolve(incoming.statusCode ?? 0);
            });
            outgoing.on('error', () => setImmediate(resolve, null)).end();
        });
        if (status !== null) {
            return status;
        }
    }
}
