import { join } from 'node:path';
import fc from 'fast-check';
import t from 'tap';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { namesIn } from '../../../../lib/egress/hosts-file.ts';
import { domainIn, type OwnHost, ownHost } from '../../../../lib/egress/own-host.ts';
import type { AuthenticationPart } from '../../../../lib/webhooks/exporters/authentication.ts';
import { checkReceiverUrl, receiverWarnings } from '../../../../lib/webhooks/exporters/receiver-url.ts';

const closed = egressGuard({ allow: [] });

/** A machine, with the files that say what it is called. */
function ownNamed(name: string, { resolver = '', hosts = '' } = {}): OwnHost {
    const addresses = ['192.0.2.7', '8.8.8.8', '2606:4700::1111'];
    return { name, addresses, domain: () => domainIn(resolver), listed: (asked) => namesIn(hosts).get(asked) ?? [] };
}

t.test('writes a URL in its one form', async (t) => {
    const forms = {
        'https://example.com': 'https://example.com/',
        '  HTTPS://EXAMPLE.com:443/a/../b/%2e%2e/c  ': 'https://example.com/c',
        'http://example.com./hook?a=1#part': 'http://example.com/hook?a=1',
        'https://bücher.example/ü': 'https://xn--bcher-kva.example/%C3%BC',
        'https://exаmple.com/': 'https://xn--exmple-4nf.com/',
        'https://a_b.example.com:8443/': 'https://a_b.example.com:8443/',
        'http://8.8.8.8./': 'http://8.8.8.8/',
        'http://0x8080808/': 'http://8.8.8.8/',
        'http://[2606:4700:0:0::1111]/': 'http://[2606:4700::1111]/',
        'http://example.com:443/': 'http://example.com:443/',
        'http://example.com/%0d%0aX:%20y': 'http://example.com/%0d%0aX:%20y',
        'https://example.com/?re=\\d': 'https://example.com/?re=\\d',
    };
    for (const [text, expected] of Object.entries(forms)) {
        t.equal(checkReceiverUrl(text, closed), expected);
    }
});

const REFUSED: Readonly<Record<string, readonly string[]>> = {
    'must be an absolute http or https URL': [
        '',
        '   ',
        '//example.com',
        'example.com',
        '/path',
        'file:///etc/passwd',
        'ftp://example.com/',
        'gopher://example.com/',
        'ws://example.com/',
        'unix:/run/x',
        'data:,x',
        'javascript:alert(1)',
        'blob:https://example.com/x',
        'http:example.com',
        'http:/example.com',
        'http:\\\\example.com',
        'http:///example.com',
        'https+x://example.com',
        'hhttp://example.com',
    ],
    'control characters': [
        'http://exam\tple.com/',
        'http://example.com/\r\nX: y',
        '\u0000http://example.com/',
        'http://example.com/\u007f',
        'http://example.com/\u0085',
        'http://example.com/\u2028',
    ],
    'user name or password': [
        'http://user:pass@example.com/',
        'http://user@example.com/',
        'http://@example.com/',
        'http://:@example.com/',
        'http://example.com@127.0.0.1/',
        'http://example.com%2f@127.0.0.1/',
        'http://example.com\\@127.0.0.1/',
    ],
    backslash: ['http://a\\b.example/', 'http://example.com/a\\b'],
    'not a valid URL': [
        'http://256.256.256.256/',
        'http://1.2.3.4.5/',
        'http://0x100000000/',
        'http://example.com:65536/',
        'http://1.1.1.1:0x50/',
        'http://xn--/',
        'http://a.xn--99999999/',
        'http://xn--zzz---.example/',
        'http://exam ple.com/',
        'http://a%00b/',
        'http://[fe80::1%25eth0]/',
        'http://[::1/',
        'http://[1:2]/',
    ],
    'neither a name nor an IP address': [
        'http://example.com../',
        'http://.example.com/',
        'http://a..b/',
        'http://*.example.com/',
        "http://a'b.example/",
        'http://a,b/',
        'http://-a.example/',
        `http://${'a'.repeat(64)}.example/`,
    ],
    'more than 253': [`http://${'a.'.repeat(130)}example/`],
    'at most 2048 characters': [`http://example.com/${'a'.repeat(2048)}`, `http://example.com/${'ü'.repeat(1000)}`],
    'port 0': ['http://example.com:0/'],
    'a loopback address': [
        'http://127.0.0.1/',
        'http://127.1/',
        'http://2130706433/',
        'http://0x7f.1/',
        'http://0177.0.0.1/',
        'http://127.0.0.1./',
        'http://127。0。0。1/',
        'http://①②⑦.0.0.1/',
        'http://[::1]/',
        'http://[0:0:0:0:0:0:0:1]/',
        'http://[::ffff:127.0.0.1]/',
        'http://%31%32%37.0.0.1/',
        'http://127.0.0.1#@example.com/',
    ],
    'an address of this network': ['http://0/', 'http://0.0.0.0/'],
    'a cloud metadata address': [
        'http://2852039166/',
        'http://0xA9FEA9FE/',
        'http://169.254.169.254/latest/meta-data/',
        'http://169.254.170.2/',
        'http://100.100.100.200/',
        'http://192.0.0.192/',
        'http://168.63.129.16/',
        'http://[fd00:ec2::254]/',
        'http://[::ffff:169.254.169.254]/',
        'http://[64:ff9b::169.254.169.254]/',
        'http://[2002:a9fe:a9fe::]/',
    ],
    'a NAT64 address': ['http://[64:ff9b::127.0.0.1]/', 'http://[64:ff9b::8.8.8.8]/'],
    'the name of a cloud metadata service': [
        'http://metadata.google.internal/',
        'http://metadata/',
        'http://instance-data/',
        'http://METADATA.google.internal./',
    ],
    'an internal name': [
        'http://localhost/',
        'http://LOCALHOST./',
        'http://foo.localhost/',
        'http://printer.local/',
        'http://x.internal:8080/',
        'http://nas.home.arpa/',
        'http://abc.onion/',
    ],
    'without a dot': ['http://intranet/', 'http://postgres:8080/', 'https://bücher/'],
    'a name of the cluster': ['http://hooks.default.svc/', 'http://hooks.service.consul/', 'http://10-0-0-1.default.pod:8080/'],
    'port \\d+, one of those for mail': ['http://example.com:25/', 'https://mail.example.com:587/', 'http://8.8.8.8:143/'],
    'one of those for shells': ['https://example.com:22/', 'http://example.com:5985/wsman'],
    'one of those for databases': ['http://example.com:6379/', 'http://example.com:9200/_bulk', 'http://[2606:4700::1111]:11211/'],
    'one of those for orchestrators': [
        'http://example.com:2375/containers/create',
        'https://example.com:6443/',
        'https://example.com:10250/run',
    ],
    'not open': [
        'http://10.0.0.1/',
        'http://172.16.0.1/',
        'http://192.168.0.1/',
        'http://100.64.0.1/',
        'http://198.18.0.1/',
        'http://192.0.2.1/',
        'http://192.88.99.1/',
        'http://224.0.0.1/',
        'http://240.0.0.1/',
        'http://255.255.255.255/',
        'http://[fc00::1]/',
        'http://[fec0::1]/',
        'http://[ff02::1]/',
        'http://[2001:db8::1]/',
        'http://[3fff::1]/',
        'http://[100::1]/',
        'http://[5f00::1]/',
        'http://[::]/',
        'http://[2001:0:1::1]/',
        'http://[::127.0.0.1]/',
    ],
};

for (const [reason, texts] of Object.entries(REFUSED)) {
    t.test(`refuses with "${reason}"`, async (t) => {
        for (const text of texts) {
            t.throws(
                () => checkReceiverUrl(text, closed),
                { code: 'INVALID_INPUT', field: 'url', message: new RegExp(reason) },
                encodeURIComponent(text),
            );
        }
    });
}

t.test('refuses what is no text', async (t) => {
    for (const value of [undefined, null, 7, {}, ['http://example.com/'], new URL('http://example.com/')]) {
        t.throws(() => checkReceiverUrl(value as string, closed), { code: 'INVALID_INPUT', field: 'url' });
    }
});

t.test('follows the operator, but never to metadata', async (t) => {
    const guard = egressGuard({ allow: ['127.0.0.0/8', '169.254.0.0/16', 'nas.local'] });
    t.equal(checkReceiverUrl('http://127.0.0.1:8080/hook', guard), 'http://127.0.0.1:8080/hook');
    t.equal(checkReceiverUrl('http://nas.local/', guard), 'http://nas.local/');
    t.throws(() => checkReceiverUrl('http://169.254.169.254/', guard), /metadata/);
    t.throws(() => checkReceiverUrl('http://other.local/', guard), /internal name/);
});

t.test('never says the URL that it refuses', async (t) => {
    for (const text of [
        'http://user:s3cr3t@example.com/',
        'http://127.0.0.1/?token=s3cr3t',
        'http://s3cr3t..x/',
        `http://example.com/s3cr3t${'x'.repeat(3000)}`,
    ]) {
        t.throws(() => checkReceiverUrl(text, closed), { message: /^(?!.*s3cr3t)/ });
    }
});

t.test('accepts its own result, unchanged', async () => {
    const host = fc.oneof(
        fc.domain(),
        fc.ipV4(),
        fc.ipV6().map((address) => `[${address}]`),
        fc.string(),
    );
    const text = fc.oneof(
        fc.webUrl({ withQueryParameters: true, withFragments: true }),
        fc.tuple(fc.constantFrom('http', 'https', 'HTTP'), host, fc.string()).map(([scheme, name, rest]) => `${scheme}://${name}/${rest}`),
    );
    fc.assert(
        fc.property(text, (input) => {
            let once: string;
            try {
                once = checkReceiverUrl(input, closed);
            } catch (error) {
                return error instanceof Error && 'field' in error && error.field === 'url';
            }

            return checkReceiverUrl(once, closed) === once && !once.includes('#') && !/[^\x21-\x7e]/.test(once);
        }),
        { numRuns: 300 },
    );
});

t.test('judges the port of a receiver URL, the default one included', async (t) => {
    const guard = egressGuard({ allow: ['127.0.0.1:8080', '10.1.2.3:443'] });
    t.equal(checkReceiverUrl('http://127.0.0.1:8080/in', guard), 'http://127.0.0.1:8080/in');
    t.equal(checkReceiverUrl('https://10.1.2.3/', guard), 'https://10.1.2.3/');
    t.throws(() => checkReceiverUrl('http://10.1.2.3/', guard), { code: 'INVALID_INPUT', field: 'url' });
    t.throws(() => checkReceiverUrl('http://127.0.0.1/', guard), { code: 'INVALID_INPUT', field: 'url' });
});

t.test('leaves the ports open where receivers listen', async (t) => {
    for (const port of [80, 443, 1880, 3000, 4000, 5000, 5678, 7001, 8000, 8065, 8080, 8088, 8123, 8443, 8888, 9000, 9090, 10443, 40_000]) {
        t.ok(checkReceiverUrl(`https://example.com:${port}/`, closed), String(port));
    }
});

t.test('takes this host for no receiver, unless it is named', async (t) => {
    const own = ownNamed('Scans.example.com');
    for (const url of ['https://scans.example.com/', 'https://SCANS.example.com.:8443/']) {
        t.throws(() => checkReceiverUrl(url, closed, own), { field: 'url', message: /the name of this host: name it in egress.allow/ });
    }

    for (const url of ['https://8.8.8.8/', 'https://[2606:4700:0::1111]/', 'http://0x8080808/']) {
        t.throws(() => checkReceiverUrl(url, closed, own), { field: 'url', message: /an address of this host/ });
    }

    t.ok(checkReceiverUrl('https://8.8.4.4/', closed, own));
    const wide = egressGuard({ allow: ['192.0.2.0/24'] });
    t.throws(() => checkReceiverUrl('https://192.0.2.7/', wide, own), { message: /an address of this host/ });
    for (const allow of ['192.0.2.7', '192.0.2.7:443']) {
        t.ok(checkReceiverUrl('https://192.0.2.7/', egressGuard({ allow: [allow] }), own), allow);
    }

    t.match(ownHost(), { name: /./, addresses: Array });
});

t.test('takes no other name of this host for a receiver, unless it is named', (t) => {
    const own = ownNamed('web1', {
        resolver: 'nameserver 192.0.2.53\ndomain old.example\nsearch Example.com. other.example\n',
        hosts: [
            '127.0.0.1 localhost',
            '127.0.1.1\tWeb1.lan.example web1 # by the installer',
            '8.8.8.8 public.example',
            '::ffff:8.8.8.8 mapped.example',
            '::1 six.example',
            '198.51.100.9 elsewhere.example',
            '0.0.0.0 blocked.example',
        ].join('\n'),
    });
    const names = ['web1.example.com', 'WEB1.Example.com.', 'web1.lan.example', 'public.example', 'mapped.example', 'six.example'];
    for (const name of [...names, 'localhost.example.com', 'localhost6.localdomain6', 'localhost4.example']) {
        t.throws(
            () => checkReceiverUrl(`https://${name}/`, closed, own),
            { field: 'url', message: /name of this host: name it in egress/ },
            name,
        );
        t.ok(checkReceiverUrl(`https://${name}/`, egressGuard({ allow: [name] }), own), `${name} is open to those who name it`);
    }

    const others = ['web1.other.example', 'web1.example', 'web11.example.com', 'a.web1.example.com', 'example.com', 'elsewhere.example'];
    for (const name of [...others, 'blocked.example', 'localhosts.example', 'my-localhost.example']) {
        t.ok(checkReceiverUrl(`https://${name}/`, closed, own), name);
    }
    t.end();
});

t.test('a block opens a name that the hosts file leads to this host as it opens the address itself', (t) => {
    const own = ownNamed('web1', { hosts: '127.0.0.1 hooks.example\n8.8.8.8 public.example' });
    const open = egressGuard({ allow: ['127.0.0.0/8', '8.8.8.0/24'] });
    t.ok(checkReceiverUrl('http://127.0.0.1:8080/', open, own));
    t.ok(checkReceiverUrl('http://hooks.example:8080/', open, own));
    t.throws(() => checkReceiverUrl('https://8.8.8.8/', open, own), { message: /an address of this host/ });
    t.throws(() => checkReceiverUrl('https://public.example/', open, own), { message: /a name of this host/ });
    t.end();
});

t.test('asks the files of the system what this host is called, and does without them', (t) => {
    const folder = t.testdir({ hosts: '192.0.2.9 one.example two.example\n', resolver: 'search example.org\n' });
    const [hostsFile, resolverFile] = [join(folder, 'hosts'), join(folder, 'resolver')];
    const host = ownHost({ hostsFile, resolverFile });
    t.strictSame([host.domain(), host.listed('two.example'), host.listed('three.example')], ['example.org', ['192.0.2.9'], []]);
    const bare = ownHost({ hostsFile: join(folder, 'none'), resolverFile: join(folder, 'none') });
    t.strictSame([bare.domain(), bare.listed('two.example')], [null, []]);
    t.ok(checkReceiverUrl('https://example.com/', closed, bare));
    t.end();
});

t.test('opens a name and a port to those who name them, each by itself', async (t) => {
    const named = egressGuard({ allow: ['hooks', '*:9200', '10.0.0.1:25'] });
    t.ok(checkReceiverUrl('http://hooks:9200/', named));
    t.ok(checkReceiverUrl('http://10.0.0.1:25/', named));
    t.throws(() => checkReceiverUrl('http://hooks:6379/', named), {
        message: /\*:6379 in egress.allow \(SCANWIRE_EGRESS_ALLOW\) opens it/,
    });
    t.throws(() => checkReceiverUrl('http://other:9200/', named), { message: /without a dot/ });
    t.throws(() => checkReceiverUrl('http://example.com:25/', named), { message: /one of those for mail/ });
});

t.test('warns of what is allowed and doubtful, without the URL', async (t) => {
    const warned = (
        url: string,
        trust: 'strict' | 'all' = 'strict',
        others: readonly string[] = [],
        authentication: readonly AuthenticationPart[] = [],
    ): readonly string[] => {
        const exporter = { id: 'a', url: checkReceiverUrl(url, closed), trust, authentication };
        const all = [exporter, ...others.map((other, index) => ({ id: `other ${index}`, url: other, name: '' }))].map((one) => ({
            name: '',
            ...one,
        }));
        const warnings = receiverWarnings(exporter, url, all);
        t.notMatch(JSON.stringify(warnings), 't0ken');
        return warnings.map(({ code }) => code);
    };
    t.same(warned('https://example.com/t0ken', 'all', ['https://example.com/other']), []);
    t.same(warned('http://example.com/t0ken'), ['plain_http']);
    t.same(warned('http://example.com:443/t0ken'), ['plain_http', 'http_on_https_port']);
    t.same(warned('https://example.com:8080/t0ken'), ['https_on_http_port']);
    t.same(warned('https://example.com/t0ken#t0ken'), ['fragment']);
    t.same(warned('https://example.com/t0ken', 'strict', ['https://example.com/t0ken']), ['same_url']);
    t.same(warned('http://example.com/t0ken', 'all'), ['plain_http', 'trust_without_tls']);
    t.same(warned('http://example.com/t0ken', 'strict', [], ['basic']), ['plain_http', 'credentials_over_http']);
    t.same(warned('https://example.com/t0ken', 'strict', [], ['basic']), []);
    t.same(receiverWarnings({ id: 'a', url: 'of somebody else', trust: 'strict', authentication: [] }, undefined, []), []);
});
