import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { server as hapiServer, type Server } from '@hapi/hapi';
import t from 'tap';
import { builtServer, localUriOf, uriOf } from '../../cli/built-server.ts';
import { certificate } from '../support/certificates.ts';
import { ended, scanwire, scanwireEach } from '../support/scanwire.ts';
import { json, serve, usedDataOf } from '../support/served.ts';

/** What some systems listen on, or resolve, and hapi does not take. */
const REFUSED = ['', '0', '127.1', '0x7f000001', 'fe80::1%eth0', '::1%lo', 'scan_host', 'localhost.', 'a b'];

t.test('serve refuses a host that hapi does not take before anything is made, and tells nothing of its key', async (t) => {
    const { key, cert } = await certificate();
    const folder = t.testdir();
    const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    const data = await usedDataOf(t);
    const args = ['serve', '--data', data, '--port', '0', '--tls-cert', certFile, '--tls-key', keyFile];
    const all = (...more: readonly string[]) => scanwireEach(REFUSED.map((host) => ({ args: [...args, '--host', host, ...more] })));
    const [plain, asJson] = [await all(), await all('--json')];
    for (const [index, { code, stdout, stderr }] of [...plain, ...asJson].entries()) {
        t.equal(code, 1, `${REFUSED[index % REFUSED.length]}`);
        t.equal(stdout, '');
        t.equal(stderr.trim().split('\n').length, 1, 'in one line');
        t.match(stderr, '--host must name an address');
        t.notMatch(stderr, /PRIVATE KEY|BEGIN/);
    }
    for (const { stderr } of asJson) {
        t.match(JSON.parse(stderr), { error: { code: 'MISCONFIGURED', field: 'host' } });
    }
    // The port of metrics is opened when all else is there.
    const metrics = await scanwire([...args, '--metrics', 'a_b:0']);
    t.match(metrics, { code: 1, stderr: /^scanwire: --metrics must name an address[^\n]*\n$/ });
    t.notMatch(metrics.stderr, 'PRIVATE');
});

t.test('what refuses a host holds no key, however it is printed', async (t) => {
    const tls = await certificate();
    for (const host of REFUSED) {
        try {
            builtServer({ host, port: 0, tls });
            t.fail(host);
        } catch (error) {
            t.match(error, { code: 'MISCONFIGURED', field: 'host' });
            t.notMatch(inspect(error, { depth: null, showHidden: true }), /PRIVATE KEY|BEGIN/);
        }
    }
    t.throws(
        () => builtServer({ host: 'localhost', tls: { ...tls, minVersion: 'x' as never } }),
        { code: /^ERR_/ },
        'else the cause is told',
    );
});

const at = (host: string): Server => hapiServer({ host, port: 1 });

t.test('the URI of a server has brackets around an IPv6 address, and the name of this machine for all addresses', (t) => {
    t.equal(uriOf(at('127.0.0.1')), 'http://127.0.0.1:1');
    t.equal(uriOf(at('::1')), 'http://[::1]:1');
    t.equal(uriOf(at('scans.test')), 'http://scans.test:1');
    for (const host of ['0.0.0.0', '::', '0:0:0:0:0:0:0:0', '::0']) {
        t.equal(localUriOf(at(host)), 'http://localhost:1', host);
    }
    t.equal(localUriOf(at('::1')), 'http://[::1]:1');
    t.equal(localUriOf(at('192.0.2.1')), 'http://192.0.2.1:1');
    t.end();
});

t.test('serve and console print URLs that can be opened where the host is an IPv6 address', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data, '--host', '::1');
    t.match(served.url, /^https:\/\/\[::1\]:\d+$/);
    const { url } = await json<{ url: string }>(data, 'console');
    t.match(url, /^https:\/\/\[::1\]:\d+\/admin\/sign-in\?link=/);
    t.equal(await ended(server, 'SIGTERM'), 0);
});
