import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import * as Boom from '@hapi/boom';
import { server as hapiServer, type Lifecycle, type Server } from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys, memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { STATUS, toBoom } from '../../plugins/errors.ts';
import { plugin as tokenAuth } from '../../plugins/token-auth/index.ts';
import { plugin as webhookExporter } from '../../plugins/webhook-exporter/index.ts';

const ring = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });

async function hostWith(mapErrors: boolean, handler: Lifecycle.Method): Promise<Server> {
    const server = hapiServer({ debug: false });
    await server.register([
        { plugin: tokenAuth, options: { store: memoryApiKeys(), keyRing: ring, mapErrors } },
        { plugin: webhookExporter, options: { stores: memoryWebhooks(), queue: memoryQueue(), keyRing: ring, mapErrors } },
    ]);
    server.route({ method: 'GET', path: '/', handler });
    return server;
}

t.test('docs/errors.md has the codes and their statuses', async (t) => {
    const page = await readFile('docs/errors.md', 'utf8');
    const rows = [...page.matchAll(/^\| `([A-Z_]+)` +\|[^|]+\| (\d{3}) +\|/gm)].map(([, code, status]) => [code, Number(status)]);
    t.strictSame(rows, Object.entries(STATUS));
});

t.test('makes of an error what the table says, and shows a client what it can do something about', async (t) => {
    const shown = (code: ScanwireErrorCode): object =>
        toBoom(new ScanwireError(code, 'Name must be short', { field: 'name' })).output.payload;
    const told = { message: 'Name must be short', field: 'name' };
    t.match(shown('INVALID_INPUT'), { statusCode: 400, error: 'Bad Request', code: 'INVALID_INPUT', ...told });
    t.match(shown('NOT_FOUND'), { statusCode: 404, code: 'NOT_FOUND', ...told });
    t.match(shown('CONFLICT'), { statusCode: 409, code: 'CONFLICT', ...told });
    t.match(shown('UNVERIFIED'), { statusCode: 401, error: 'Unauthorized', code: 'UNVERIFIED', ...told });
    t.match(shown('UNAVAILABLE'), { statusCode: 503, code: 'UNAVAILABLE', message: /try again later/ });
    for (const code of ['MISCONFIGURED', 'UNSEALABLE'] as const) {
        t.strictSame(shown(code), { statusCode: 500, error: 'Internal Server Error', message: 'An internal server error occurred' });
    }

    const error = new ScanwireError('CONFLICT', 'Cannot');
    t.match(toBoom(error), { cause: error, data: { code: 'CONFLICT' }, isServer: false });
    t.notOk('field' in toBoom(error).output.payload);
});

t.test('leaves a Boom as it is, and takes anything else for a fault of the server', async (t) => {
    const teapot = Boom.teapot('short and stout');
    t.equal(toBoom(teapot), teapot);
    t.equal(toBoom(new TypeError('x')).output.statusCode, 500);
    t.equal(toBoom('thrown').output.statusCode, 500);
});

t.test('repeats of what a client made up no sign that a terminal acts on', async (t) => {
    const hostile = 'a\u202etxt.exe\u001b[2J\u009d0;owned';
    const shown = 'a\uFFFDtxt.exe\uFFFD[2J\uFFFD0;owned';
    const create: Lifecycle.Method = ({ server }) =>
        server.plugins['webhook-exporter'].exporters.create({ url: 'https://example.com/', ...{ [hostile]: 1 } }).then(() => 'made');
    const answer = await (await hostWith(true, create)).inject('/');
    const told = { code: 'INVALID_INPUT', field: shown };
    t.match(answer.result, { statusCode: 400, message: `Exporter: ${shown} is not allowed`, ...told });

    const error = new ScanwireError('NOT_FOUND', `Unknown workspace "${hostile}"`, { field: hostile });
    t.match(toBoom(error), {
        message: `Unknown workspace "${shown}"`,
        data: { code: 'NOT_FOUND', field: shown },
        cause: { field: hostile },
    });
});

t.test('answers what leaves a handler of the application, where that is wished', async (t) => {
    const revokeTwice: Lifecycle.Method = async ({ server }) => {
        const { create, revoke } = server.plugins['token-auth'];
        const { id } = await create('ci');
        await revoke(id);
        await revoke(id);
        return 'revoked twice';
    };
    const mapped = await (await hostWith(true, revokeTwice)).inject('/');
    t.equal(mapped.statusCode, 409);
    t.match(mapped.result, { code: 'CONFLICT', message: 'Cannot revoke the key: it is revoked already' });
    t.equal((await (await hostWith(false, revokeTwice)).inject('/')).statusCode, 500, 'by default a plugin changes nothing of the host');

    const create: Lifecycle.Method = ({ server }) =>
        server.plugins['webhook-exporter'].exporters.create({ url: 'ftp://x' }).then(() => 'made');
    t.match((await (await hostWith(true, create)).inject('/')).result, { statusCode: 400, code: 'INVALID_INPUT', field: 'url' });
    t.equal((await (await hostWith(true, () => Promise.reject(Boom.teapot()))).inject('/')).statusCode, 418);
    t.equal((await (await hostWith(true, () => Promise.reject(new Error('x')))).inject('/')).statusCode, 500);
});

t.test('shows a page of errors of the application what it has made of them, and logs what a 503 came from', async (t) => {
    const away = new ScanwireError('UNAVAILABLE', 'The database is at 10.0.0.1', { field: 'name' });
    const host = await hostWith(true, () => Promise.reject(away));
    const logged: unknown[] = [];
    host.events.on({ name: 'request', channels: 'app' }, (_, { tags, error }) => logged.push([tags, (error as Error).message]));
    host.ext('onPreResponse', ({ response }, h) => {
        if (!Boom.isBoom(response)) {
            return h.continue;
        }
        // As pages do that change the status, and as those do that show what the error says.
        response.reformat();
        return h.response({ page: [response.output.payload.message, response.message], ...response.data }).code(response.output.statusCode);
    });
    const { statusCode, result } = await host.inject('/');
    const text = 'This cannot be done now; try again later';
    t.strictSame([statusCode, result], [503, { page: [text, text], code: 'UNAVAILABLE', field: 'name' }]);
    t.strictSame(logged, [[['scanwire', 'token-auth', 'error'], 'The database is at 10.0.0.1']], 'once, though two plugins are told to');
});

t.test('logs of an error that is thrown again what it said the first time', async (t) => {
    const kept = new ScanwireError('UNAVAILABLE', 'The database is at 10.0.0.1');
    const host = await hostWith(true, () => Promise.reject(kept));
    const logged: unknown[] = [];
    host.events.on({ name: 'request', channels: 'app' }, (_, { error }) => logged.push((error as Error).message));
    for (const _ of [1, 2, 3]) {
        t.match(await host.inject('/'), { statusCode: 503, result: { message: /try again later/ } });
    }
    t.strictSame(
        logged,
        Array.from({ length: 3 }, () => 'The database is at 10.0.0.1'),
    );
});
