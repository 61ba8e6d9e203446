import t from 'tap';
import { served } from './served.ts';

/** What hapi's option `security` puts into answers. */
const NAMES = [
    'strict-transport-security',
    'x-frame-options',
    'x-xss-protection',
    'x-download-options',
    'x-content-type-options',
    'referrer-policy',
];
const WITH_KEY = ['/base', '/workspaces', '/workspaces/1', '/workspaces/99', '/nothing', '/openapi.json'];

/** Those headers of each kind of answer, refusals included. */
async function securityOf(security?: boolean | { noSniff: false; hsts: number }): Promise<readonly object[]> {
    const { server, get } = await served({}, security === undefined ? {} : { routes: { security } });
    const answers = [...(await Promise.all(WITH_KEY.map((path) => get(path)))), await get('/workspaces', { headers: {} })];
    await server.stop();
    return answers.map(({ headers }) => Object.fromEntries(NAMES.filter((name) => name in headers).map((name) => [name, headers[name]])));
}

t.test('no answer lets a browser guess what it is, and nothing more is said of security', async (t) => {
    for (const security of [undefined, false]) {
        for (const said of await securityOf(security)) {
            t.strictSame(said, { 'x-content-type-options': 'nosniff' });
        }
    }
});

t.test('what an application says of security for all its routes stays, but for the guessing', async (t) => {
    const byDefault = {
        'x-frame-options': 'DENY',
        'x-xss-protection': '0',
        'x-download-options': 'noopen',
        'x-content-type-options': 'nosniff',
    };
    for (const said of await securityOf(true)) {
        t.strictSame(said, { 'strict-transport-security': 'max-age=15768000', ...byDefault });
    }
    for (const said of await securityOf({ noSniff: false, hsts: 60 })) {
        t.strictSame(said, { 'strict-transport-security': 'max-age=60', ...byDefault });
    }
});
