import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { licenseNotice, licenseWatch } from '../../cli/stored-license.ts';
import { issueLicense, newLicenseKeyPair } from '../../lib/license/issue-license.ts';
import { inspectLicense } from '../../lib/license/verify-license.ts';
import { linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';
import { get, json, type Served, serve, usedDataOf } from '../support/served.ts';

const DAY = 86_400_000;
const { privateKey, publicKey } = newLicenseKeyPair();

/** From yesterday on, for so many days from now. */
const licence = (days: number): Promise<string> => {
    const now = Date.now();
    return issueLicense({ holder: 'Acme', notBefore: new Date(now - 99 * DAY), expires: new Date(now + days * DAY) }, privateKey);
};

t.test('trusts the issuer that it is told, while it serves, and tells its operator what is wrong with the licence', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci');
    t.equal((await get(served, '/rest_api/v2/base', key)).status, 200);

    const files = t.testdir({ 'issuer.pem': publicKey, 'private.pem': privateKey, 'good.jws': await licence(400), 'none.pem': 'no key' });
    t.match(await scanwire(['license', 'trust', join(files, 'none.pem'), '--data', data]), {
        code: 1,
        stderr: /Ed25519 public key in PEM form/,
    });
    t.match(await scanwire(['license', 'show', '--data', data]), { code: 0, stdout: /^Licence {2}valid$/m }, 'as it was');

    t.match(await scanwire(['license', 'trust', join(files, 'private.pem'), '--data', data]), {
        code: 1,
        stderr: /Ed25519 public key in PEM form/,
    });
    t.match(await json(data, 'license', 'trust', join(files, 'issuer.pem')), {
        valid: false,
        reason: 'not a licence signed with the expected key',
    });
    t.equal(readFileSync(join(data, 'license', 'public-key.pem'), 'utf8'), publicKey);
    t.match(await scanwire(['license', 'show', '--data', data]), { code: 1, stdout: /not valid/, stderr: '' });
    t.equal((await get(served, '/rest_api/v2/base', key)).status, 403, 'for clients as ever');

    t.match(await json(data, 'license', 'install', join(files, 'good.jws')), { valid: true, holder: 'Acme' });
    server.kill('SIGTERM');
    await once(server, 'exit');

    writeFileSync(join(data, 'license', 'license.jws'), await licence(-1));
    const again = startScanwire(['serve', '--data', data, '--port', '0', '--json']);
    t.teardown(() => again.kill('SIGKILL'));
    let log = '';
    again.stderr?.on('data', (text) => {
        log += text;
    });
    const said = (await nextJson(again, linesOf(again))) as unknown as Served;
    t.match(said, { license: /^The licence is not valid \(expired on \d{4}-\d\d-\d\d\), so the REST API refuses every request: / });
    t.equal((await get(said, '/rest_api/v2/base', key)).status, 403);
    again.kill('SIGTERM');
    await once(again, 'close');
    t.match(log, /^\S+Z The licence is not valid \(expired on /m);
});

t.test('says what changes at once, and what stays once a day', async (t) => {
    let now = new Date();
    let text: string | null = await licence(31);
    const said: string[] = [];
    const inspect = () => inspectLicense(text, publicKey, now);
    const look = licenseWatch(
        { inspect },
        () => now,
        (notice) => said.push(notice),
    );
    t.equal(await look(), null);
    now = new Date(now.getTime() + 1.5 * DAY);
    t.match(await look(), /^The licence ends on \d{4}-\d\d-\d\d: /);
    await look();
    t.equal(said.length, 1);
    now = new Date(now.getTime() + DAY);
    await look();
    t.equal(said.length, 2);
    now = new Date(now.getTime() + 40 * DAY);
    t.match(await look(), /expired on/);
    text = null;
    t.match(await look(), /no licence is installed/);
    text = await licence(400);
    t.equal(await look(), null);
    t.equal(said.length, 4);
});

t.test('names the day from which a licence holds', async (t) => {
    const now = new Date('2026-01-01T00:00:00Z');
    const early = await issueLicense({ holder: 'Acme', notBefore: new Date('2026-02-03'), expires: new Date('2027-01-01') }, privateKey);
    t.match(licenseNotice(await inspectLicense(early, publicKey, now), now), /\(not valid yet before 2026-02-03\)/);
});
