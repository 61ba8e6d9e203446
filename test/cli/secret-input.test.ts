import { Command } from 'commander';
import t, { type Test } from 'tap';
import { addAuthentication, authenticationOf } from '../../cli/authentication-input.ts';
import type { AuthenticationSettings } from '../../lib/webhooks/exporters/authentication.ts';

/** What is asked for by arguments, each that ends in `.file` a file of this folder. */
async function given(t: Test, files: Record<string, string>, ...args: readonly string[]): Promise<AuthenticationSettings> {
    const folder = t.testdir(files);
    const command = addAuthentication(new Command().exitOverride(), true);
    command.parse(
        args.map((arg) => (arg in files ? `${folder}/${arg}` : arg)),
        { from: 'user' },
    );
    return await authenticationOf(command.opts());
}

t.test('reads from files what an exporter authenticates by', async (t) => {
    const oauth = { tokenUrl: 'https://example.com/', clientId: 'id', clientSecret: 'secret' };
    for (const text of ['http://siem:secret@proxy.example.com:3128\n', '{"url":"http://siem:secret@proxy.example.com:3128"}']) {
        t.same(await given(t, { text }, '--proxy-file', 'text'), { proxy: { url: 'http://siem:secret@proxy.example.com:3128' } });
    }
    t.same(await given(t, { oauth: JSON.stringify(oauth) }, '--oauth', 'oauth'), { oauth });
    const files = { basic: 'siem:with:colon and blank \n', ca: 'authorities\n', cert: 'certificate\n', key: 'key\n' };
    t.same(await given(t, files), {});
    t.same(await given(t, files, '--basic-file', 'basic'), { basic: { username: 'siem', password: 'with:colon and blank ' } });
    t.same(await given(t, files, '--ca', 'ca', '--client-cert', 'cert', '--client-key', 'key'), {
        ca: 'authorities\n',
        clientCertificate: { certificate: 'certificate\n', key: 'key\n' },
    });
});

t.test('drops what is not wanted any more', async (t) => {
    t.same(await given(t, {}, '--no-basic', '--no-client-cert', '--no-ca', '--no-oauth', '--no-proxy'), {
        proxy: null,
        basic: null,
        ca: null,
        clientCertificate: null,
        oauth: null,
    });
});

t.test('refuses files that do not fit, without what they hold', async (t) => {
    const error = await given(t, { basic: 'hidden' }, '--basic-file', 'basic').catch((thrown) => thrown);
    t.match(error, { code: 'INVALID_INPUT', field: 'basic', message: /user:password/ });
    t.notMatch(error.message, /hidden/);
    await t.rejects(given(t, { text: '{"url' }, '--proxy-file', 'text'), {
        code: 'INVALID_INPUT',
        field: 'proxy',
        message: /must be a URL, or valid JSON$/,
    });
    await t.rejects(given(t, { none: 'null' }, '--oauth', 'none'), {
        message: 'What is given for --oauth must be more than null',
        field: 'oauth',
    });
    await t.rejects(given(t, { text: '{"url' }, '--oauth', 'text'), {
        code: 'INVALID_INPUT',
        field: 'oauth',
        message: /must be valid JSON$/,
    });
    await t.rejects(given(t, { cert: 'cert' }, '--client-cert', 'cert'), { field: 'client-cert', message: /together/ });
    await t.rejects(given(t, { key: 'key' }, '--no-client-cert', '--client-key', 'key'), { code: 'INVALID_INPUT', field: 'client-cert' });
    await t.rejects(given(t, { key: '' }, '--client-key', 'key'), {
        field: 'client-key',
        message: /^There is nothing in .*key, which --client-key/,
    });
    const both = given(t, { key: 'key' }, '--client-key', 'key', '--client-key-env', 'HOME');
    await t.rejects(both, { field: 'client-key', message: 'Give --client-key or --client-key-env, and only one of them' });
    await t.rejects(given(t, {}, '--no-proxy', '--proxy-env', 'HOME'), { field: 'proxy', message: /^Give either --no-proxy or / });
    await t.rejects(given(t, {}, '--ca', '/no/such/file'), { code: 'INVALID_INPUT' });
});
